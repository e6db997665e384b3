/*
 * What a StatefulSet does next: pure. Replicas are the ordinals that should be, whether their pods
 * exist or not; condemned are pods beyond them, the highest ordinal first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct td_stateful_slot {
    bool exists;
    bool is_finished; /* Succeeded or Failed */
    bool is_terminating;
    bool is_ready;     /* running and ready */
    bool is_available; /* ready for long enough */
    td_str revision;
};

struct td_stateful_set {
    bool is_parallel;
    bool is_on_delete;
    int64_t partition;
    td_str update_revision;
    const struct td_stateful_slot *replicas;
    size_t replica_count;
    const struct td_stateful_slot *condemned;
    size_t condemned_count;
};

enum td_stateful_action { TD_STATEFUL_CREATE, TD_STATEFUL_DELETE, TD_STATEFUL_CONDEMN };

struct td_stateful_step {
    enum td_stateful_action action;
    size_t index; /* of replicas, or to condemn: of condemned */
};

/* Fills `steps` (room for all replicas and condemned, and one more); says how many. Ordered sets
 * take one at a time. */
size_t td_stateful_decide(const struct td_stateful_set *set, struct td_stateful_step *steps);
