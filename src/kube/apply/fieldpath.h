/*
 * One step of a path into an object, as field ownership names it: a member by name, a list item by
 * its key members, by its own value or by its index. Steps are small values that borrow names and
 * JSON nodes from the object or set they came from; nothing is owned, nothing is changed. Order,
 * equality and texts are those of upstream's structured merge and diff.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "base/str.h"

struct td_error;

/* In the order in which steps sort. */
enum td_field_step_kind {
    TD_FIELD_NAME,  /* f:name */
    TD_FIELD_KEY,   /* k:{"name":"a"} */
    TD_FIELD_VALUE, /* v:"a" */
    TD_FIELD_INDEX, /* i:0 */
    TD_FIELD_LOST,  /* a list item that lost its key while fields were taken away; never written */
};

struct td_field_key {
    td_str name;
    const struct td_json *value;
};

struct td_field_step {
    enum td_field_step_kind kind;
    bool is_read; /* from fieldsV1, where every number is a float64 and shows as one */
    union {
        td_str name;
        struct {
            const struct td_field_key *keys; /* sorted by name */
            size_t key_count;
        };
        const struct td_json *value;
        int64_t index;
    };
};

/* Negative, zero or positive; a total order in which equal means the same place. */
int td_field_step_compare(const struct td_field_step *a, const struct td_field_step *b);

/* Read one member name of fieldsV1. TD_INVALID for a malformed one; TD_NOT_FOUND, with err left
 * alone, for a kind of step that is not known (upstream skips those). */
int td_field_step_parse(struct td_arena *arena, td_str text, struct td_field_step *ret,
                        struct td_error *err);

/* The member name in fieldsV1, in the arena. */
td_str td_field_step_text(struct td_arena *arena, const struct td_field_step *step);

/* The step as messages show it: `.image`, `[name="a"]`, `[="x"]`, `[0]`. */
void td_field_step_write(const struct td_field_step *step, struct td_buf *out);

/* Equality of values as server-side apply sees it: members in any order, whole numbers exactly and
 * others as float64. NULL pointers are not allowed. */
bool td_field_value_equal(const struct td_json *a, const struct td_json *b);
