/*
 * Checks of one object by its schema alone, offline and without a server: can it be decoded as its
 * kind (types of every field, quantities, times), and has it fields that the kind does not have?
 * Decoding stops at the first failure, as a server's 400 does; problems are collected. A list of
 * problems is also what all other checks of files add to. Texts are in the arena or slices of the
 * tree.
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
    uint32_t line;    /* in its file, from 1; 0 when not known */
    td_str field;     /* JSON path: "spec.selector.matchLabels" */
    td_str message;   /* what is wrong, with the value */
    const char *rule; /* which check found it: "unknown-field"; docs/validate.md lists them */
    bool is_warning;  /* it works, but hardly as it was meant */
};

struct td_problems {
    struct td_arena *arena;
    struct td_problem *items;
    size_t count; /* at most TD_STRICT_PROBLEMS_MAX */
    size_t cap;
    bool is_cut; /* there were more */
};

void td_problems_add(struct td_problems *problems, const struct td_problem *problem);

/* Does every field of `object` have the type that `type` says? null is accepted everywhere, as Go's
 * decoder does. The message reads "spec.replicas: \"three\": must be an integer"; ret_line (may be
 * NULL) gets the line of the value. */
int td_check_types(const struct td_schema_type *type, const struct td_json *object,
                   uint32_t *ret_line, struct td_error *err);

/* Fields that `type` does not have, each a problem: a server refuses them or drops them silently.
 */
void td_check_unknown(const struct td_schema_type *type, const struct td_json *object,
                      struct td_problems *problems);
