/*
 * Samples and OOMs of tracked pods on their way into aggregates and, where the estimator has a
 * state of its own, into that. Here clocks of nodes are judged and the peaks of young pods held
 * back.
 */
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
        const struct td_cpu_use use = {.milli = milli,
                                       .limit_milli = tracked->cpu_limit_milli,
                                       .request_milli = tracked->cpu_request_milli};
        estimator->add_cpu(slot->estimator_state, at, &use);
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
    return is_taken ? TD_FEED_TAKEN : TD_FEED_DISCARDED;
}

enum td_feed td_recommender_oom(struct td_recommender *recommender, struct td_tracked_pod *pod,
                                td_str container, td_time time, const struct td_oom_kill *kill,
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
    if (tracked->is_held) { /* the step takes the old peak out of the histogram */
        release_peak(recommender, slot, tracked);
    }
    struct td_container_state *state = &tracked->state;
    if (!recommender->config.is_upstream_exact) {
        time = earlier(time, now);
        state->last_memory = earlier(state->last_memory, now);
    }
    const struct td_estimator *estimator = own_estimator(pod->group, slot);
    if (estimator) {
        estimator->add_oom(slot->estimator_state, time, kill);
    }
    switch (td_aggregate_oom(&slot->aggregate, &recommender->config, state, time,
                             kill->request_bytes)) {
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
