/*
 * The account of what was done to a recommendation on its way to a pod: every change of a value, by
 * which rule, before and after, in the order taken; and the notes that a pod's annotation carries.
 * Plain values; texts are slices that outlive the arena's turn or are in the arena.
 */
#pragma once

#include <stddef.h>

#include "base/str.h"
#include "kube/quantity/quantity.h"

enum td_cap_rule {
    TD_CAP_RULE_POD_RANGE_MIN,
    TD_CAP_RULE_POD_RANGE_MAX,
    TD_CAP_RULE_CONTAINER_RANGE_MIN,
    TD_CAP_RULE_CONTAINER_RANGE_MAX,
    TD_CAP_RULE_MIN_ALLOWED,
    TD_CAP_RULE_MAX_ALLOWED,
    TD_CAP_RULE_OWN_LIMIT, /* RequestsOnly: the container's own limit */
    TD_CAP_RULE_NODE,      /* --cap-to-node */
    TD_CAP_RULE_POD_MIN_ALLOWED,
    TD_CAP_RULE_POD_MAX_ALLOWED,
    TD_CAP_RULE_POD_GLOBAL_MAX, /* --pod-recommendation-max-allowed-* */
    TD_CAP_RULE_BESIDE_TARGET,  /* a bound moved to enclose its target */
    TD_CAP_RULE_CONTAINER_SUM,  /* pod request raised to what its containers ask for */
    TD_CAP_RULE_POD_REQUEST,    /* pod limit raised to the pod request */
    TD_CAP_RULE_INIT_LIMIT,     /* pod limit raised to the limit of an init container */
    TD_CAP_RULE_POD_LIMIT,      /* container limit lowered to the pod limit */
    TD_CAP_RULE_BOOST,          /* CPU startup boost */
};

enum td_cap_value {
    TD_CAP_TARGET,
    TD_CAP_LOWER,
    TD_CAP_UPPER,
    TD_CAP_REQUEST,
    TD_CAP_LIMIT,
};

struct td_cap_step {
    td_str container; /* empty: the pod */
    td_str resource;
    enum td_cap_value value;
    enum td_cap_rule rule;
    struct td_quantity before;
    struct td_quantity after;
};

struct td_cap_steps {
    struct td_cap_step *items;
    size_t count;
    size_t cap;
};

/* Nothing is recorded when steps is NULL or the step changes nothing. */
void td_cap_steps_add(struct td_arena *arena, struct td_cap_steps *steps,
                      const struct td_cap_step *step);

/* "capped to maxAllowed", "capped to fit Min in container LimitRange", ... */
td_str td_cap_rule_text(enum td_cap_rule rule);

struct td_notes {
    td_str *items;
    size_t count;
    size_t cap;
};

void td_notes_add(struct td_arena *arena, struct td_notes *notes, td_str note);
