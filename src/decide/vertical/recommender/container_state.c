/*
 * The order of samples of one running container, and its memory peak in windows of a day: a higher
 * peak of the same window takes the place of the one before. An OOM is a peak of its own, raised
 * above what was used.
 */
#include "decide/vertical/recommender/container_state.h"

#include "decide/vertical/recommender/config.h"

void td_container_state_init(struct td_container_state *state)
{
    *state = (struct td_container_state){.last_cpu = TD_CONTAINER_TIME_NONE,
                                         .last_memory = TD_CONTAINER_TIME_NONE,
                                         .window_end = TD_CONTAINER_TIME_NONE};
}

int64_t td_container_peak(const struct td_container_state *state)
{
    return state->memory_peak > state->oom_peak ? state->memory_peak : state->oom_peak;
}

bool td_container_cpu(struct td_container_state *state, td_time time, int64_t milli)
{
    if (milli < 0 || (state->last_cpu != TD_CONTAINER_TIME_NONE && time <= state->last_cpu)) {
        return false;
    }
    state->last_cpu = time;
    return true;
}

/* The end of the window that `time` is in, when the last one ended at or before it. */
static td_time next_window_end(td_time window_end, td_time time, td_duration interval)
{
    td_duration passed;
    if (__builtin_sub_overflow(time, window_end, &passed)) {
        passed = INT64_MAX;
    }
    td_duration whole = interval > 0 ? passed - passed % interval : passed;
    td_time end;
    if (__builtin_add_overflow(whole, interval, &whole) ||
        __builtin_add_overflow(window_end, whole, &end)) {
        return INT64_MAX;
    }
    return end;
}

static struct td_peak_change memory_step(struct td_container_state *state,
                                         const struct td_oom_rule *rule, td_time time,
                                         int64_t bytes, bool is_oom)
{
    struct td_peak_change change = {.is_accepted = false};
    bool is_late = state->last_memory != TD_CONTAINER_TIME_NONE && time < state->last_memory;
    if (bytes < 0 || (!is_oom && is_late)) {
        return change;
    }
    change.is_accepted = true;
    state->last_memory = time;
    if (state->window_end == TD_CONTAINER_TIME_NONE) {
        state->window_end = time;
    }
    if (time < state->window_end) {
        int64_t old = td_container_peak(state);
        /* Upstream reads an old peak of 0 as "no peak yet" and ignores the rest of the window,
         * OOMs included. A window always has the peak that opened it. */
        bool is_known = old != 0 || !rule->is_upstream_exact;
        change.has_subtract = is_known && bytes > old;
        change.subtract_bytes = old;
        change.has_add = change.has_subtract;
    } else {
        state->window_end = next_window_end(state->window_end, time, rule->interval);
        state->memory_peak = 0;
        state->oom_peak = 0;
        change.has_add = true;
    }
    change.at = state->window_end;
    if (change.has_add) {
        change.add_bytes = bytes;
        *(is_oom ? &state->oom_peak : &state->memory_peak) = bytes;
    }
    return change;
}

struct td_peak_change td_container_memory(struct td_container_state *state,
                                          const struct td_oom_rule *rule, td_time time,
                                          int64_t bytes)
{
    return memory_step(state, rule, time, bytes, false);
}

/* What the container needs after being killed with `used` bytes. The sum wraps as Go's does; a
 * negative result is then refused as a sample. */
static int64_t oom_need(const struct td_oom_rule *rule, int64_t used)
{
    uint64_t sum = (uint64_t)used + (uint64_t)td_amount_from_double(rule->min_bump_up);
    int64_t raised = (int64_t)sum;
    int64_t scaled = td_amount_scale(used, rule->bump_up_ratio);
    return raised > scaled ? raised : scaled;
}

enum td_oom_verdict td_container_oom(struct td_container_state *state,
                                     const struct td_oom_rule *rule, td_time time,
                                     int64_t requested_bytes, struct td_peak_change *ret_change)
{
    td_time oldest;
    *ret_change = (struct td_peak_change){.is_accepted = false};
    if (state->last_memory != TD_CONTAINER_TIME_NONE &&
        !__builtin_sub_overflow(state->last_memory, rule->interval, &oldest) && time < oldest) {
        return TD_OOM_TOO_OLD;
    }
    int64_t used = requested_bytes > state->memory_peak ? requested_bytes : state->memory_peak;
    int64_t need = oom_need(rule, used);
    bool is_capped = rule->bytes_max > 0 && need > rule->bytes_max;
    if (is_capped) {
        need = used > rule->bytes_max ? used : rule->bytes_max;
    }
    struct td_peak_change change = memory_step(state, rule, time, need, true);
    if (!change.is_accepted) {
        return TD_OOM_INVALID;
    }
    *ret_change = change;
    return is_capped ? TD_OOM_CAPPED : TD_OOM_TAKEN;
}
