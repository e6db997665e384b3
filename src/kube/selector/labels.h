/*
 * A label set: sorted, unique keys with values, compact and comparable. Used wherever pods meet
 * selectors. Texts are borrowed from the arena or intern table of the builder.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"

struct td_label {
    td_str key;
    td_str value;
};

struct td_labels {
    const struct td_label *items; /* sorted by key, unique */
    size_t count;
};

/* From a JSON object of strings (metadata.labels); members of another type are left out. NULL gives
 * the empty set. */
struct td_labels td_labels_from_json(struct td_arena *arena, const struct td_json *object);

/* From pairs in any order; the last value of a repeated key wins. */
struct td_labels td_labels_from_pairs(struct td_arena *arena, const struct td_label *pairs,
                                      size_t count);

/* The value of `key`, or NULL; binary search in all but small sets. */
const td_str *td_labels_get(const struct td_labels *labels, td_str key);
bool td_labels_equal(const struct td_labels *a, const struct td_labels *b);
