/*
 * Which object of a kind: its namespace and its name, and the one text that stands for both in
 * maps, queues and messages: "namespace/name", or "name" for a cluster-scoped object, as
 * client-go's MetaNamespaceKeyFunc writes it. What is told apart by more than that has a line for
 * each part. Keys borrow their texts. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"

struct td_object_key {
    td_str namespace; /* empty: cluster-scoped */
    td_str name;
};

#define TD_OBJECT_KEY(of_namespace, of_name)                                                       \
    ((struct td_object_key){.namespace = (of_namespace), .name = (of_name)})

/* In the buffer; empty when it does not fit, which no name that an API server accepts does. */
td_str td_object_key_write(struct td_object_key key, char buffer[TD_OBJECT_KEY_BYTES_MAX]);

/* In the arena, of any length. */
td_str td_object_key_text(struct td_arena *arena, struct td_object_key key);

/* What td_object_key_write wrote: slices of the text. */
struct td_object_key td_object_key_read(td_str text);

/* A line for each part, none of which may hold one; in the buffer, empty when it does not fit. */
td_str td_key_lines(char buffer[TD_OBJECT_KEY_BYTES_MAX], const td_str *parts, size_t count);
#define TD_KEY_LINES(buffer, ...)                                                                  \
    td_key_lines(buffer, (const td_str[]){__VA_ARGS__},                                            \
                 sizeof((const td_str[]){__VA_ARGS__}) / sizeof(td_str))
