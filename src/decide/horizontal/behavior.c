/* Lists keep upstream's order of places: a new entry takes the last place whose time has passed,
 * else the end. Only a comparison of histories depends on the order. */
#include "decide/horizontal/behavior.h"

#include <math.h>

#include "base/assert.h"
#include "decide/horizontal/pods.h"
#include "decide/horizontal/replicas.h"

#define LEGACY_UP_FACTOR 2.0
#define LEGACY_UP_MINIMUM 4.0

/* Reason and message of a condition. */
struct words {
    td_str reason;
    td_str message;
};
static const struct words within = {
    TD_STR_INIT("DesiredWithinRange"),
    TD_STR_INIT("the desired count is within the acceptable range")};
static const struct words too_few = {
    TD_STR_INIT("TooFewReplicas"),
    TD_STR_INIT("the desired replica count is less than the minimum replica count")};
static const struct words too_many = {
    TD_STR_INIT("TooManyReplicas"),
    TD_STR_INIT("the desired replica count is more than the maximum replica count")};
static const struct words too_fast_up = {
    TD_STR_INIT("ScaleUpLimit"),
    TD_STR_INIT("the desired replica count is increasing faster than the maximum scale rate")};
static const struct words too_fast_down = {
    TD_STR_INIT("ScaleDownLimit"),
    TD_STR_INIT("the desired replica count is decreasing faster than the maximum scale rate")};
static const struct words held_up = {
    TD_STR_INIT("ScaleUpStabilized"),
    TD_STR_INIT("recent recommendations were lower than current one, applying the lowest recent "
                "recommendation")};
static const struct words held_down = {
    TD_STR_INIT("ScaleDownStabilized"),
    TD_STR_INIT("recent recommendations were higher than current one, applying the highest recent "
                "recommendation")};

void td_hpa_history_init(struct td_hpa_history *history)
{
    *history = (struct td_hpa_history){
        .recommendations = TD_VEC_INIT(TD_HPA_HISTORY_MAX),
        .ups = TD_VEC_INIT(TD_HPA_HISTORY_MAX),
        .downs = TD_VEC_INIT(TD_HPA_HISTORY_MAX),
    };
}

void td_hpa_history_done(struct td_hpa_history *history)
{
    td_vec_done(&history->recommendations);
    td_vec_done(&history->ups);
    td_vec_done(&history->downs);
}

static void record(struct td_hpa_recommendations *list, size_t reused, int32_t replicas,
                   td_time now)
{
    struct td_hpa_recommendation *place = NULL;
    if (reused < list->count) {
        place = &list->items[reused];
    } else {
        place = td_vec_push(list);
    }
    if (!place) {
        place = &list->items[0];
        for (size_t i = 1; i < list->count; i++) {
            place = list->items[i].at < place->at ? &list->items[i] : place;
        }
    }
    *place = (struct td_hpa_recommendation){.at = now, .replicas = replicas};
}

void td_hpa_history_seed(struct td_hpa_history *history, int32_t current, td_time now)
{
    if (history->recommendations.count == 0) {
        record(&history->recommendations, SIZE_MAX, current, now);
    }
}

static struct td_hpa_stabilized stabilize_legacy(struct td_hpa_history *history,
                                                 const struct td_hpa_normalization *in)
{
    struct td_hpa_stabilized result = {
        .replicas = in->proposed,
        .reason = held_down.reason,
        .message = held_down.message,
        .held_until = TD_TIME_NONE,
    };
    struct td_hpa_recommendations *list = &history->recommendations;
    td_time cutoff = td_hpa_add(in->now, -in->downscale_stabilization);
    size_t reused = SIZE_MAX;
    for (size_t i = 0; i < list->count; i++) {
        const struct td_hpa_recommendation *each = &list->items[i];
        if (each->at < cutoff) {
            reused = i;
        } else if (each->replicas > result.replicas) {
            result.replicas = each->replicas;
            result.held_until = td_hpa_add(each->at, in->downscale_stabilization);
        } else if (each->replicas == result.replicas && result.held_until != TD_TIME_NONE) {
            td_time until = td_hpa_add(each->at, in->downscale_stabilization);
            result.held_until = until > result.held_until ? until : result.held_until;
        }
    }
    record(list, reused, in->proposed, in->now);
    result.is_held = result.replicas != in->proposed;
    return result;
}

static td_duration window_of(const struct td_hpa_rules *rules, td_duration fallback)
{
    if (rules->has_window) {
        return rules->window_seconds * TD_SECOND;
    }
    return fallback / TD_SECOND * TD_SECOND;
}

/* The latest moment at which a proposal of this count still stands in its window. */
static td_time held_until(const struct td_hpa_recommendations *list, int32_t replicas,
                          td_duration window, td_time now)
{
    td_time until = TD_TIME_NONE;
    for (size_t i = 0; i < list->count; i++) {
        td_time end = td_hpa_add(list->items[i].at, window);
        if (list->items[i].replicas == replicas && end > now && end > until) {
            until = end;
        }
    }
    return until;
}

struct td_hpa_stabilized td_hpa_stabilize(struct td_hpa_history *history,
                                          const struct td_hpa_normalization *in)
{
    struct td_hpa_recommendations *list = &history->recommendations;
    td_duration up_window = window_of(&in->hpa->scale_up, 0);
    td_duration down_window = window_of(&in->hpa->scale_down, in->downscale_stabilization);
    td_time up_cutoff = td_hpa_add(in->now, -up_window);
    td_time down_cutoff = td_hpa_add(in->now, -down_window);
    int32_t lowest = in->proposed;
    int32_t highest = lowest;
    size_t reused = SIZE_MAX;
    for (size_t i = 0; i < list->count; i++) {
        const struct td_hpa_recommendation *each = &list->items[i];
        if (each->at > up_cutoff && each->replicas < lowest) {
            lowest = each->replicas;
        }
        if (each->at > down_cutoff && each->replicas > highest) {
            highest = each->replicas;
        }
        if (each->at < up_cutoff && each->at < down_cutoff) {
            reused = i;
        }
    }
    int32_t replicas = in->current;
    replicas = replicas < lowest ? lowest : replicas;
    replicas = replicas > highest ? highest : replicas;
    bool is_up = in->proposed >= in->current;
    struct td_hpa_stabilized result = {
        .replicas = replicas,
        .reason = (is_up ? &held_up : &held_down)->reason,
        .message = (is_up ? &held_up : &held_down)->message,
        .is_held = replicas != in->proposed,
        .held_until = TD_TIME_NONE,
    };
    if (result.is_held) {
        result.held_until = is_up ? held_until(list, lowest, up_window, in->now)
                                  : held_until(list, highest, down_window, in->now);
    }
    record(list, reused, in->proposed, in->now);
    return result;
}

static struct td_hpa_limited limited(int32_t replicas, const struct words *words)
{
    return (struct td_hpa_limited){
        .replicas = replicas,
        .reason = words->reason,
        .message = words->message,
        .is_limited = words != &within,
        .limit = {.policy = SIZE_MAX, .loosens_at = TD_TIME_NONE},
    };
}

struct td_hpa_limited td_hpa_limit_legacy(const struct td_hpa_normalization *in, int32_t wanted)
{
    int32_t min = in->hpa->min_replicas;
    int32_t max = in->hpa->max_replicas;
    int32_t fastest =
        td_hpa_to_int32(fmax(LEGACY_UP_FACTOR * (double)in->current, LEGACY_UP_MINIMUM));
    int32_t highest = max > fastest ? fastest : max;
    if (wanted < min) {
        return limited(min, &too_few);
    }
    if (wanted > highest) {
        return max > fastest ? limited(highest, &too_fast_up) : limited(highest, &too_many);
    }
    return limited(wanted, &within);
}

/* Sum of the changes inside a period; *oldest is moved back to the oldest of them. */
static int64_t changes_since(const struct td_hpa_scale_events *events, td_time cutoff,
                             td_time *oldest)
{
    int64_t sum = 0;
    for (size_t i = 0; i < events->count; i++) {
        const struct td_hpa_scale_event *each = &events->items[i];
        if (each->at > cutoff) {
            sum += each->change;
            *oldest = *oldest == TD_TIME_NONE || each->at < *oldest ? each->at : *oldest;
        }
    }
    return sum;
}

static int32_t to_count(int64_t value)
{
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

static int32_t propose(const struct td_hpa_policy *policy, int64_t start, bool is_up)
{
    if (policy->type == TD_HPA_POLICY_PODS) {
        return to_count(is_up ? start + policy->value : start - policy->value);
    }
    /* Rounded up on the way up, else a small target could never grow. */
    double share = (double)policy->value / 100;
    return is_up ? td_hpa_to_int32(ceil((double)start * (1 + share)))
                 : td_hpa_to_int32((double)start * (1 - share));
}

struct td_hpa_limit td_hpa_limit_by_policies(const struct td_hpa_history *history,
                                             const struct td_hpa_rules *rules, int32_t current,
                                             td_time now, bool is_up)
{
    struct td_hpa_limit limit = {
        .replicas = current, .policy = SIZE_MAX, .loosens_at = TD_TIME_NONE};
    if (rules->select == TD_HPA_SELECT_DISABLED) {
        return limit;
    }
    bool takes_larger = is_up == (rules->select == TD_HPA_SELECT_MAX);
    limit.replicas = takes_larger ? INT32_MIN : INT32_MAX;
    for (size_t i = 0; i < rules->policy_count; i++) {
        const struct td_hpa_policy *policy = &rules->policies[i];
        td_duration period = policy->period_seconds * TD_SECOND;
        td_time cutoff = td_hpa_add(now, -period);
        td_time oldest = TD_TIME_NONE;
        int64_t added = changes_since(&history->ups, cutoff, &oldest);
        int64_t removed = changes_since(&history->downs, cutoff, &oldest);
        int32_t proposal = propose(policy, current - added + removed, is_up);
        if (takes_larger ? proposal > limit.replicas : proposal < limit.replicas) {
            limit = (struct td_hpa_limit){
                .replicas = proposal,
                .policy = i,
                .loosens_at = oldest == TD_TIME_NONE ? TD_TIME_NONE : td_hpa_add(oldest, period),
            };
        }
    }
    return limit;
}

/* `wanted` is not the current count. */
static struct td_hpa_limited limit_change(const struct td_hpa_history *history,
                                          const struct td_hpa_normalization *in, int32_t wanted)
{
    bool is_up = wanted > in->current;
    struct td_hpa_limit limit = td_hpa_limit_by_policies(
        history, is_up ? &in->hpa->scale_up : &in->hpa->scale_down, in->current, in->now, is_up);
    int32_t bound = is_up ? in->hpa->max_replicas : in->hpa->min_replicas;
    bool is_backward = is_up ? limit.replicas < in->current : limit.replicas > in->current;
    int32_t fastest = is_backward ? in->current : limit.replicas;
    bool is_rate = is_up ? bound > fastest : bound < fastest;
    int32_t farthest = is_rate ? fastest : bound;
    struct td_hpa_limited result = limited(wanted, &within);
    if (is_up ? wanted > farthest : wanted < farthest) {
        const struct words *by_rate = is_up ? &too_fast_up : &too_fast_down;
        const struct words *by_bound = is_up ? &too_many : &too_few;
        result = limited(farthest, is_rate ? by_rate : by_bound);
    }
    result.limit = limit;
    result.has_limit = true;
    return result;
}

struct td_hpa_limited td_hpa_limit(const struct td_hpa_history *history,
                                   const struct td_hpa_normalization *in, int32_t wanted)
{
    return wanted == in->current ? limited(wanted, &within) : limit_change(history, in, wanted);
}

struct td_hpa_normalized td_hpa_normalize(struct td_hpa_history *history,
                                          const struct td_hpa_normalization *in)
{
    struct td_hpa_normalized result;
    if (in->hpa->has_behavior) {
        result.stabilized = td_hpa_stabilize(history, in);
        result.limited = td_hpa_limit(history, in, result.stabilized.replicas);
    } else {
        result.stabilized = stabilize_legacy(history, in);
        result.limited = td_hpa_limit_legacy(in, result.stabilized.replicas);
    }
    result.replicas = result.limited.replicas;
    return result;
}

static td_duration longest_period(const struct td_hpa_rules *rules)
{
    int32_t longest = 0;
    for (size_t i = 0; i < rules->policy_count; i++) {
        int32_t period = rules->policies[i].period_seconds;
        longest = period > longest ? period : longest;
    }
    return longest * TD_SECOND;
}

void td_hpa_history_store(struct td_hpa_history *history, const struct td_hpa *hpa,
                          int32_t replicas_before, int32_t replicas_after, td_time now)
{
    if (!hpa->has_behavior) {
        return;
    }
    bool is_up = replicas_after > replicas_before;
    struct td_hpa_scale_events *events = is_up ? &history->ups : &history->downs;
    td_time cutoff = td_hpa_add(now, -longest_period(is_up ? &hpa->scale_up : &hpa->scale_down));
    struct td_hpa_scale_event *place = NULL;
    struct td_hpa_scale_event *oldest = NULL;
    for (size_t i = 0; i < events->count; i++) {
        struct td_hpa_scale_event *each = &events->items[i];
        each->is_outdated = each->is_outdated || each->at < cutoff;
        place = each->is_outdated ? each : place;
        oldest = !oldest || each->at < oldest->at ? each : oldest;
    }
    if (!place) {
        place = td_vec_push(events);
    }
    if (!place) {
        td_assert(oldest);
        place = oldest;
    }
    int64_t change = (int64_t)replicas_after - replicas_before;
    *place = (struct td_hpa_scale_event){
        .at = now, .change = to_count(is_up ? change : -change), .is_outdated = false};
}
