/*
 * Conditions in the status of objects: one entry a type, whose time is that of its last change of
 * status. Used by the cluster's own controllers. Texts are borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "base/timefmt.h"

struct td_condition {
    td_str type;
    td_str status; /* "True", "False", "Unknown" */
    td_str reason;
    td_str message;
    int64_t observed_generation; /* 0: not written */
    bool has_probe_time;         /* pods': lastProbeTime is written as null */
    bool has_empty_texts;        /* metav1.Condition: an empty reason or message is written too */
};

/* The entry of that type in `status`, or NULL. */
struct td_json *td_condition_find(const struct td_json *status, td_str type);

/* Is it there with that status? */
bool td_condition_is(const struct td_json *status, td_str type, td_str value);

/* Adds or replaces the entry, keeping its time while its status stays. False: nothing changed. */
bool td_condition_set(struct td_arena *arena, struct td_json *status,
                      const struct td_condition *condition, struct td_instant now);

/* False: there was none. */
bool td_condition_remove(struct td_json *status, td_str type);
