/*
 * Where a value stands in an object, for messages: "spec.containers[0].name". A path is built on
 * the way down as a chain of frames on the stack and written only when something is wrong there,
 * so that a walk that finds nothing costs nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

struct td_field_path {
    const struct td_field_path *parent; /* NULL at the root */
    td_str name;                        /* member, or empty for an index */
    size_t index;                       /* of a list item, when is_index */
    bool is_index;
    bool is_key;    /* name is a map key: written [name] */
    uint32_t depth; /* frames above it */
};

struct td_field_path td_field_child(const struct td_field_path *parent, td_str name);
struct td_field_path td_field_item(const struct td_field_path *parent, size_t index);
/* The address of a frame that lives as long as the block around it, for one call:
 * `td_field_required( errors, TD_FIELD(&path, "name"), "")`. */
#define TD_FIELD_AT(parent, name) ((struct td_field_path[1]){td_field_child(parent, name)})
#define TD_FIELD_ITEM(parent, index) ((struct td_field_path[1]){td_field_item(parent, index)})
#define TD_FIELD(parent, literal) TD_FIELD_AT(parent, TD_STR(literal))

/* Appends the text of the path; NULL is the root and has none. What does not fit into the buffer is
 * cut, which its sticky failure shows. */
void td_field_path_write(const struct td_field_path *path, struct td_buf *out);
td_str td_field_path_text(struct td_arena *arena, const struct td_field_path *path);
