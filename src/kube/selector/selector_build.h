/*
 * What the two readers of label selectors share: lists that grow in the arena, the checks of keys
 * and values, and the order of the finished selector. Private to the selector module.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "kube/selector/selector.h"

struct td_error;

struct td_selector_values {
    td_str *items; /* in the arena */
    size_t count;
    size_t cap;
};

struct td_selector_list {
    struct td_requirement *items; /* in the arena */
    size_t count;
    size_t cap;
};

void td_selector_values_push(struct td_arena *arena, struct td_selector_values *values,
                             td_str text);
void td_selector_values_sort(struct td_selector_values *values);

/* Drops repeated ones of a sorted list. */
void td_selector_values_unique(struct td_selector_values *values);

/* TD_LIMIT when the arena is past its cap. */
int td_selector_list_push(struct td_arena *arena, struct td_selector_list *list,
                          const struct td_requirement *requirement, struct td_error *err);

/* The selector of these requirements, sorted by key. Those of one key keep the order in which they
 * were pushed: upstream's sort promises that only up to twelve requirements, here it always holds.
 */
struct td_selector td_selector_list_finish(struct td_arena *arena,
                                           const struct td_selector_list *list);

/* What upstream refuses in one requirement: its key, how many values it has, each value. TD_INVALID
 * in upstream's words, which HPA conditions quote; several faults stand in brackets. */
int td_selector_check(const struct td_requirement *requirement, struct td_error *err);

/* The key alone, as the text form checks it before it looks further. */
int td_selector_check_key(td_str key, struct td_error *err);
