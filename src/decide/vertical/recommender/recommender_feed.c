#include "base/alloc.h"
#include "base/error.h"
#include "decide/vertical/recommender/recommender_private.h"

/* The estimator that wants its own samples of this group's containers, or NULL. */
static const struct td_estimator *own_estimator(const struct td_group *group,
                                                const struct td_slot *slot)
{
    const struct td_model_vpa *owner = td_group_owner(group);
    return owner && slot->estimator_state ? owner->estimator : NULL;
}

/* ---- Clocks ----
 *
 * Measurements bear the time of their node, whose clock may be fast. One from the future counts at
 * the time when it was read, and once: told again, it is as old as it was then. When the clock of
 * the node was set right, what it measures is taken although the last one seems newer. Upstream
 * believes every clock.
 */

static td_time earlier(td_time a, td_time b)
{
    return a < b ? a : b;
}

/* False: it was read before. Otherwise *last is what the step may compare with. */
static bool clock_judges(td_time *last, td_time time, td_time now)
{
    if (*last == TD_CONTAINER_TIME_NONE || (*last <= now && time <= now)) {
        return true; /* the step judges */
    }
    if (time > now && time <= *last) {
        return false;
    }
    *last = TD_CONTAINER_TIME_NONE;
    return true;
}

/* ---- Samples ---- */

static bool sample_cpu(struct td_recommender *recommender, const struct td_tracked_pod *pod,
                       struct td_slot *slot, struct td_tracked_container *tracked, td_time at,
                       int64_t milli)
{
    const struct td_estimator *estimator = own_estimator(pod->group, slot);
    if (!td_container_cpu(&tracked->state, at, milli)) {
        return false;
    }
    td_aggregate_add_cpu(&slot->aggregate, &recommender->config, at, milli);
    if (estimator) {
        estimator->add_cpu(slot->estimator_state, at, milli, tracked->cpu_limit_milli);
    }
    return true;
}

/* A pod that starts has not yet used what it will need. Beside what older pods have taught, a peak
 * of its first hour counts only where it does not lower the target: it is held back until then. */
static bool is_to_be_held(const struct td_vertical_config *config,
                          const struct td_aggregate *aggregate, const struct td_tracked_pod *pod,
                          int64_t peak, td_time at)
{
    td_time started = td_pod_started(pod);
    bool is_young = started != TD_TIME_NONE && at < started + TD_YOUNG_POD;
    bool is_taught =
        !td_instant_is_zero(aggregate->first_sample) &&
        td_instant_since(td_time_to_instant(at), aggregate->first_sample) >= TD_YOUNG_POD;
    return is_young && is_taught && !config->is_upstream_exact &&
           (double)peak < td_decaying_percentile(&aggregate->memory, &config->memory,
                                                 config->target_memory_percentile);
}

static void release_peak(struct td_recommender *recommender, struct td_slot *slot,
                         struct td_tracked_container *tracked)
{
    const struct td_peak_change change = {.has_add = true,
                                          .add_bytes = td_container_peak(&tracked->state),
                                          .at = tracked->state.window_end};
    td_aggregate_apply(&slot->aggregate, &recommender->config, &change);
    tracked->is_held = false;
}

static bool sample_memory(struct td_recommender *recommender, const struct td_tracked_pod *pod,
                          struct td_slot *slot, struct td_tracked_container *tracked, td_time at,
                          int64_t bytes)
{
    const struct td_vertical_config *config = &recommender->config;
    struct td_oom_rule rule = td_learn_rule(&slot->aggregate.policy, config);
    struct td_peak_change change = td_container_memory(&tracked->state, &rule, at, bytes);
    if (!change.is_accepted) {
        return false;
    }
    bool is_outside = tracked->is_held || (change.has_add && !change.has_subtract);
    if (is_outside &&
        is_to_be_held(config, &slot->aggregate, pod, td_container_peak(&tracked->state), at)) {
        tracked->is_held = true;
    } else if (is_outside) {
        release_peak(recommender, slot, tracked);
    } else if (change.has_add) {
        td_aggregate_apply(&slot->aggregate, config, &change);
    }
    const struct td_estimator *estimator = own_estimator(pod->group, slot);
    if (estimator) {
        estimator->add_memory(slot->estimator_state, at, bytes);
    }
    return true;
}

enum td_feed td_recommender_sample(struct td_recommender *recommender, struct td_tracked_pod *pod,
                                   td_str container, enum td_learn_resource resource, td_time time,
                                   int64_t amount, td_time now)
{
    bool is_exact = recommender->config.is_upstream_exact;
    struct td_tracked_container *tracked = td_pod_container(recommender, pod, container);
    if (!tracked) {
        return TD_FEED_NO_CONTAINER;
    }
    struct td_slot *slot = td_group_slot(recommender, pod->group, container, now);
    if (!slot) {
        return TD_FEED_UNMANAGED;
    }
    bool is_cpu = resource == TD_LEARN_CPU;
    td_time *last = is_cpu ? &tracked->state.last_cpu : &tracked->state.last_memory;
    td_time before = *last;
    td_time at = is_exact ? time : earlier(time, now);
    bool is_taken = is_exact || clock_judges(last, time, now);
    is_taken = is_taken && (is_cpu ? sample_cpu(recommender, pod, slot, tracked, at, amount)
                                   : sample_memory(recommender, pod, slot, tracked, at, amount));
    *last = is_taken ? time : before;
    tracked->was_measured = tracked->was_measured || is_taken;
    return is_taken ? TD_FEED_TAKEN : TD_FEED_DISCARDED;
}

static enum td_feed slot_oom(struct td_recommender *recommender, const struct td_group *group,
                             struct td_slot *slot, struct td_container_state *state, td_time time,
                             int64_t requested_bytes, td_time now)
{
    const struct td_estimator *estimator = own_estimator(group, slot);
    if (!recommender->config.is_upstream_exact) {
        time = earlier(time, now);
        state->last_memory = earlier(state->last_memory, now);
    }
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

/* The step takes the old peak out of the histogram, so it must be in there. */
static enum td_feed pod_oom(struct td_recommender *recommender, const struct td_tracked_pod *pod,
                            struct td_slot *slot, struct td_tracked_container *tracked,
                            td_time time, int64_t requested_bytes, td_time now)
{
    if (tracked->is_held) {
        release_peak(recommender, slot, tracked);
    }
    return slot_oom(recommender, pod->group, slot, &tracked->state, time, requested_bytes, now);
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
    return pod_oom(recommender, pod, slot, tracked, time, requested_bytes, now);
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
    return pod_oom(recommender, pod, slot, tracked, finished, requested_bytes, now);
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
        fed = slot_oom(recommender, group, slot, &state, time, requested_bytes, now);
    }
    td_group_free_if_unused(recommender, group);
    return fed;
}
