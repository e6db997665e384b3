/*
 * Checks of one object before anybody acts on it, offline and without a server: can it be decoded
 * as its kind (types of every field, quantities, times), and is what it says acceptable (unknown
 * and duplicate fields, names, labels, annotations, selectors). Decoding stops at the first
 * failure, as a server's 400 does; problems are collected, as its 422. Texts are in the arena or
 * slices of the tree.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/schema/schema.h"

struct td_error;

struct td_problem {
    uint32_t line;  /* in its file, from 1; 0 when not known */
    td_str field;   /* JSON path: "spec.selector.matchLabels" */
    td_str message; /* what is wrong, with the value */
};

struct td_problems {
    struct td_arena *arena;
    struct td_problem *items;
    size_t count; /* at most TD_STRICT_PROBLEMS_MAX */
    size_t cap;
    bool is_cut; /* there were more */
};

void td_problems_add(struct td_problems *problems, uint32_t line, td_str field, td_str message);

/* Does every field of `object` have the type that `type` says? null is accepted everywhere, as Go's
 * decoder does. The message reads "spec.replicas: \"three\": must be an integer"; ret_line (may be
 * NULL) gets the line of the value. */
int td_check_types(const struct td_schema_type *type, const struct td_json *object,
                   uint32_t *ret_line, struct td_error *err);

/* What a server would refuse or warn about although it decodes; type NULL: metadata only. */
void td_check_object(const struct td_schema_type *type, const struct td_json *object,
                     struct td_problems *problems);
