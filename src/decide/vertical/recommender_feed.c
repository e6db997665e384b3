#include "base/alloc.h"
#include "base/error.h"
#include "decide/vertical/recommender_private.h"

/* The estimator that wants its own samples of this group's containers, or NULL. */
static const struct td_estimator *own_estimator(const struct td_group *group,
                                                const struct td_slot *slot)
{
    const struct td_model_vpa *owner = td_group_owner(group);
    return owner && slot->estimator_state ? owner->estimator : NULL;
}

enum td_feed td_recommender_sample(struct td_recommender *recommender, struct td_tracked_pod *pod,
                                   td_str container, enum td_learn_resource resource, td_time time,
                                   int64_t amount, td_time now)
{
    const struct td_vertical_config *config = &recommender->config;
    struct td_tracked_container *tracked = td_pod_container(recommender, pod, container);
    if (!tracked) {
        return TD_FEED_NO_CONTAINER;
    }
    struct td_slot *slot = td_group_slot(recommender, pod->group, container, now);
    if (!slot) {
        return TD_FEED_UNMANAGED;
    }
    const struct td_estimator *estimator = own_estimator(pod->group, slot);
    if (resource == TD_LEARN_CPU) {
        if (!td_container_cpu(&tracked->state, time, amount)) {
            return TD_FEED_DISCARDED;
        }
        td_aggregate_add_cpu(&slot->aggregate, config, time, amount);
        if (estimator) {
            estimator->add_cpu(slot->estimator_state, time, amount, tracked->cpu_limit_milli);
        }
    } else {
        struct td_oom_rule rule = td_learn_rule(&slot->aggregate.policy, config);
        struct td_peak_change change = td_container_memory(&tracked->state, &rule, time, amount);
        if (!change.is_accepted) {
            return TD_FEED_DISCARDED;
        }
        if (change.has_add) {
            td_aggregate_apply(&slot->aggregate, config, &change);
        }
        if (estimator) {
            estimator->add_memory(slot->estimator_state, time, amount);
        }
    }
    tracked->was_measured = true;
    return TD_FEED_TAKEN;
}

static enum td_feed slot_oom(struct td_recommender *recommender, const struct td_group *group,
                             struct td_slot *slot, struct td_container_state *state, td_time time,
                             int64_t requested_bytes)
{
    const struct td_estimator *estimator = own_estimator(group, slot);
    if (estimator) {
        estimator->add_oom(slot->estimator_state, time, requested_bytes);
    }
    switch (
        td_aggregate_oom(&slot->aggregate, &recommender->config, state, time, requested_bytes)) {
    case TD_OOM_TAKEN:
        return TD_FEED_TAKEN;
    case TD_OOM_CAPPED:
        return TD_FEED_OOM_CAPPED;
    case TD_OOM_TOO_OLD:
        return TD_FEED_OOM_TOO_OLD;
    case TD_OOM_INVALID:
        break;
    }
    return TD_FEED_DISCARDED;
}

enum td_feed td_recommender_oom(struct td_recommender *recommender, struct td_tracked_pod *pod,
                                td_str container, td_time time, int64_t requested_bytes,
                                td_time now)
{
    struct td_tracked_container *tracked = td_pod_container(recommender, pod, container);
    if (!tracked) {
        return TD_FEED_NO_CONTAINER;
    }
    struct td_slot *slot = td_group_slot(recommender, pod->group, container, now);
    if (!slot) {
        return TD_FEED_UNMANAGED;
    }
    return slot_oom(recommender, pod->group, slot, &tracked->state, time, requested_bytes);
}

enum td_feed td_recommender_ended(struct td_recommender *recommender, struct td_tracked_pod *pod,
                                  td_str container, td_time finished, bool is_oom,
                                  int64_t requested_bytes, td_time now)
{
    struct td_tracked_container *tracked = td_pod_container(recommender, pod, container);
    if (!tracked) {
        return TD_FEED_NO_CONTAINER;
    }
    struct td_slot *slot = td_group_slot(recommender, pod->group, container, now);
    if (!slot) {
        return TD_FEED_UNMANAGED;
    }
    if (!tracked->was_measured) {
        slot->aggregate.oom.short_runs++;
    }
    tracked->was_measured = false; /* the next run of this container is another one */
    if (!is_oom) {
        return TD_FEED_TAKEN;
    }
    return slot_oom(recommender, pod->group, slot, &tracked->state, finished, requested_bytes);
}

enum td_feed td_recommender_oom_of(struct td_recommender *recommender,
                                   const struct td_pod_sight *sight, td_str container, td_time time,
                                   int64_t requested_bytes, td_time now)
{
    struct td_container_state state; /* of an instance that is gone */
    struct td_group *group = td_group_ensure(recommender, sight);
    enum td_feed fed = TD_FEED_UNMANAGED;
    if (!group) {
        return fed;
    }
    td_container_state_init(&state);
    struct td_slot *slot = td_group_slot(recommender, group, container, now);
    if (slot) {
        fed = slot_oom(recommender, group, slot, &state, time, requested_bytes);
    }
    td_group_free_if_unused(recommender, group);
    return fed;
}
