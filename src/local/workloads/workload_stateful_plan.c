/*
 * What a StatefulSet does next: create, replace or delete one pod, by ordinal and by its policies.
 */
#include "local/workloads/workload_stateful_plan.h"

struct plan {
    const struct td_stateful_set *set;
    struct td_stateful_step *steps;
    size_t count;
};

static void plan_add(struct plan *plan, enum td_stateful_action action, size_t index)
{
    plan->steps[plan->count++] = (struct td_stateful_step){.action = action, .index = index};
}

static bool plan_is_unavailable(const struct td_stateful_slot *slot)
{
    return !slot->exists || !slot->is_available || slot->is_terminating;
}

/* Makes what is missing, removes what is finished. True: nothing else is done before it is there.
 */
static bool plan_replica(struct plan *plan, size_t index)
{
    const struct td_stateful_slot *slot = &plan->set->replicas[index];
    bool is_ordered = !plan->set->is_parallel;
    if (slot->exists && slot->is_finished) {
        if (!slot->is_terminating) {
            plan_add(plan, TD_STATEFUL_DELETE, index);
        }
        return true;
    }
    if (!slot->exists) {
        plan_add(plan, TD_STATEFUL_CREATE, index);
        return true;
    }
    return is_ordered && (slot->is_terminating || !slot->is_ready || !slot->is_available);
}

/* The first pod that is not well may go although it is not: it would never become so. */
static const struct td_stateful_slot *plan_first_unhealthy(const struct td_stateful_set *set)
{
    for (size_t i = 0; i < set->replica_count; i++) {
        if (plan_is_unavailable(&set->replicas[i])) {
            return &set->replicas[i];
        }
    }
    for (size_t i = set->condemned_count; i > 0; i--) {
        if (plan_is_unavailable(&set->condemned[i - 1])) {
            return &set->condemned[i - 1];
        }
    }
    return NULL;
}

static bool plan_condemned(struct plan *plan)
{
    const struct td_stateful_set *set = plan->set;
    const struct td_stateful_slot *unhealthy = plan_first_unhealthy(set);
    for (size_t i = 0; i < set->condemned_count; i++) {
        const struct td_stateful_slot *slot = &set->condemned[i];
        bool is_well = slot->is_ready && slot->is_available;
        if (slot->is_terminating) {
            if (!set->is_parallel) {
                return true;
            }
            continue;
        }
        if (!set->is_parallel && !is_well && slot != unhealthy) {
            return true;
        }
        plan_add(plan, TD_STATEFUL_CONDEMN, i);
        if (!set->is_parallel) {
            return true;
        }
    }
    return false;
}

/* From the top, one at a time, each when the ones above it are well. */
static void plan_update(struct plan *plan)
{
    const struct td_stateful_set *set = plan->set;
    for (size_t i = set->replica_count; i > 0 && (int64_t)i > set->partition; i--) {
        const struct td_stateful_slot *slot = &set->replicas[i - 1];
        if (slot->exists && !slot->is_terminating &&
            !td_str_equal(slot->revision, set->update_revision)) {
            plan_add(plan, TD_STATEFUL_DELETE, i - 1);
            return;
        }
        if (plan_is_unavailable(slot)) {
            return;
        }
    }
}

size_t td_stateful_decide(const struct td_stateful_set *set, struct td_stateful_step *steps)
{
    struct plan plan = {.set = set, .steps = steps};
    bool is_finishing = false;
    for (size_t i = 0; i < set->replica_count; i++) {
        bool is_blocked = plan_replica(&plan, i);
        if (is_blocked && !set->is_parallel) {
            return plan.count;
        }
        is_finishing = is_finishing || (set->replicas[i].exists && set->replicas[i].is_finished);
    }
    if (plan_condemned(&plan) || set->is_on_delete || is_finishing) {
        return plan.count;
    }
    plan_update(&plan);
    return plan.count;
}
