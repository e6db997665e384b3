/*
 * The text of a pod in two parts. Pods of one template have nearly the same text: they differ in
 * name, uid, version, node, a few times and counts. The shape is the text with a mark in place of
 * each of those, and is shared; the values are what the marks stand for and the object does not
 * have elsewhere, a few dozen bytes. Both together are the text again, to the byte. Pure; private
 * to the informers.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* What the object has anyway. */
struct td_pod_text_known {
    td_str name;
    td_str uid;
    td_str version;
    td_str node;
};

/* Appends to both. False when the text cannot be split: it is not compact JSON, or too long; what
 * the buffers hold is of no use then. */
bool td_pod_text_split(td_str text, const struct td_pod_text_known *known, struct td_buf *shape,
                       struct td_buf *values);

/* Appends the text. */
void td_pod_text_join(td_str shape, td_str values, const struct td_pod_text_known *known,
                      struct td_buf *out);
