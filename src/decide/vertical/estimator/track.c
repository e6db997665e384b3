/*
 * State, recommendation and apply rule of the track estimator.
 *
 * CPU is set to what three quarters of the last hour needed, but not below what a usual hour of
 * the last day needed, so that the request does not fall into the gap before a peak that comes
 * every day. On the first day, and on days whose hours are alike, a busy hour stands in for the
 * usual one. The margin on top learns: each slot above its request raises it a little, each other
 * one lowers it by much less, so that the share of slots above the request settles where the two
 * are even.
 *
 * Only observed slots and hours are stored: a gap forgets nothing.
 */
#include "decide/vertical/estimator/track.h"

#include <string.h>

#include "base/str.h"

#define SLOT_SECONDS 300
#define SLOTS_PER_HOUR 12
#define WHOLE 1000      /* permille */
#define MILLION 1000000 /* parts per million */
#define MARGIN_FIRST 105000
#define HOUR_QUANTILE 750 /* permille of an hour's slots */
#define BUSY_QUANTILE 900 /* permille of a day's hours */
#define QUIET_QUANTILE 100
#define FLAT_SPREAD 350  /* permille of the middle hour */
#define CLOSE_RATIO 1200 /* permille of limit to request */
#define DIVISOR_MAX 2000

static const struct td_track_params track_params[] = {
    [TD_TRACK_BALANCED] = {"balanced", 2400, 100, 50000, 400, 100, 120, 150, 7200, 10},
    [TD_TRACK_CAREFUL] = {"careful", 4900, 100, 80000, 400, 80, 120, 150, 7200, 10},
    [TD_TRACK_FRUGAL] = {"frugal", 1900, 100, 50000, 250, 100, 120, 150, 3600, 10},
    [TD_TRACK_CALM] = {"calm", 2400, 100, 50000, 400, 120, 250, 200, 21600, 10},
};

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smallest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

const struct td_track_params *td_track_params_of(enum td_track_risk risk)
{
    return &track_params[risk];
}

const struct td_track_params *td_track_params_find(td_str risk)
{
    for (size_t i = 0; i < TD_COUNT(track_params); i++) {
        if (td_str_equal(td_str_from(track_params[i].risk), risk)) {
            return &track_params[i];
        }
    }
    return NULL;
}

td_str td_track_risk_reason(struct td_arena *arena, const char *risk)
{
    return td_arena_format(arena, "%c%s", risk[0] - 'a' + 'A', risk + 1);
}

const struct td_track_params *td_track_params_of_reason(td_str reason)
{
    for (size_t i = 0; i < TD_COUNT(track_params); i++) {
        const char *risk = track_params[i].risk;
        if (reason.len > 0 && reason.ptr[0] == risk[0] - 'a' + 'A' &&
            td_str_equal(td_str_slice(reason, 1, reason.len), td_str_from(risk + 1))) {
            return &track_params[i];
        }
    }
    return NULL;
}

const char *td_track_reason_name(enum td_track_reason reason)
{
    static const char *const names[] = {
        [TD_TRACK_NO_DATA] = "no-data",   [TD_TRACK_MINIMUM] = "minimum",
        [TD_TRACK_RECENT_USE] = "recent", [TD_TRACK_FIRST_DAY] = "first-day",
        [TD_TRACK_FLAT_DAY] = "flat-day", [TD_TRACK_USUAL_HOUR] = "usual-hour",
    };
    return names[reason];
}

void td_track_init(struct td_track *state)
{
    *state = (struct td_track){.first = -1, .slot = -1, .hour = -1, .margin = MARGIN_FIRST};
}

/* One more value at the end of a list of `cap` places; a full one drops its oldest. */
static void list_append(uint32_t *list, uint8_t *count, uint8_t cap, uint32_t value)
{
    if (*count == cap) {
        memmove(list, list + 1, (size_t)(cap - 1) * sizeof(list[0]));
        (*count)--;
    }
    list[(*count)++] = value;
}

/* In ascending order; lists are of 24 at most. */
static void sort_into(uint32_t *sorted, const uint32_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at > 0 && sorted[at - 1] > list[i]; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = list[i];
    }
}

static uint32_t at_quantile(const uint32_t *sorted, size_t count, int64_t permille)
{
    return sorted[smallest((int64_t)count * permille / WHOLE, (int64_t)count - 1)];
}

static uint32_t quantile_of(const uint32_t *list, size_t count, int64_t permille)
{
    uint32_t sorted[TD_TRACK_HOURS];
    sort_into(sorted, list, count);
    return at_quantile(sorted, count, permille);
}

static void learn_margin(struct td_track *state, const struct td_track_params *params,
                         int64_t value)
{
    if (state->slot_requests < 0) {
        return;
    }
    bool is_over = value > state->slot_requests / state->slot_samples;
    state->margin = is_over ? smallest(state->margin + params->rise, TD_TRACK_MARGIN_MAX)
                            : largest(state->margin - params->fall, params->margin_min);
    if (state->judged >= TD_TRACK_JUDGED_MAX) {
        state->judged /= 2;
        state->over /= 2;
    }
    state->judged++;
    state->over = (uint16_t)(state->over + is_over);
}

static void slot_close(struct td_track *state, const struct td_track_params *params)
{
    int64_t value = td_adaptive_slot_value(state->slot_sum, state->slot_samples, state->slot_top);
    learn_margin(state, params, value);
    int64_t hour = state->slot / SLOTS_PER_HOUR;
    if (hour > state->hour) {
        if (state->hour_count > 0) {
            list_append(state->hours, &state->hours_count, TD_TRACK_HOURS,
                        quantile_of(state->hour_values, state->hour_count, HOUR_QUANTILE));
            state->hour_count = 0;
        }
        state->hour = hour;
    }
    list_append(state->hour_values, &state->hour_count, TD_TRACK_RECENT, (uint32_t)value);
    list_append(state->recent, &state->recent_count, TD_TRACK_RECENT, (uint32_t)value);
}

void td_track_cpu(struct td_track *state, const struct td_track_params *params, int64_t t,
                  int64_t milli, int64_t limit_milli, int64_t request_milli)
{
    int64_t time = smallest(t, TD_ADAPTIVE_MAX);
    int64_t slot = time / SLOT_SECONDS;
    if (milli < 0 || t < 0 || slot < state->slot) {
        return;
    }
    int64_t value = td_adaptive_demand(td_adaptive_params_of(TD_RISK_BALANCED), milli, limit_milli);
    int64_t request = smallest(request_milli, TD_ADAPTIVE_CPU_MAX);
    if (state->first < 0) {
        state->first = time;
    }
    if (slot > state->slot) {
        if (state->slot_samples > 0) {
            slot_close(state, params);
        }
        state->slot = slot;
        state->slot_sum = 0;
        state->slot_samples = 0;
        state->slot_top = 0;
        state->slot_requests = 0;
    }
    if (state->slot_samples < TD_ADAPTIVE_SLOT_SAMPLES_MAX) {
        bool is_known = request > 0 && state->slot_requests >= 0;
        state->slot_requests = is_known ? state->slot_requests + request : -1;
        state->slot_sum += value;
        state->slot_samples++;
    }
    state->slot_top = largest(state->slot_top, value);
}

/* The hour of the last day below which the request does not fall. */
static void find_floor(const struct td_track *state, const struct td_track_params *params,
                       struct td_track_answer *ret, enum td_track_reason *ret_kind)
{
    uint32_t sorted[TD_TRACK_HOURS];
    size_t count = state->hours_count;
    sort_into(sorted, state->hours, count);
    int64_t spread =
        (int64_t)at_quantile(sorted, count, BUSY_QUANTILE) - sorted[count * QUIET_QUANTILE / WHOLE];
    bool is_flat = spread * WHOLE < (int64_t)sorted[count / 2] * FLAT_SPREAD;
    *ret_kind = count < TD_TRACK_HOURS ? TD_TRACK_FIRST_DAY
                : is_flat              ? TD_TRACK_FLAT_DAY
                                       : TD_TRACK_USUAL_HOUR;
    ret->quantile = *ret_kind == TD_TRACK_USUAL_HOUR ? params->usual : BUSY_QUANTILE;
    ret->floor = at_quantile(sorted, count, ret->quantile);
}

static void recommend_known(const struct td_track *state, const struct td_track_params *params,
                            const uint32_t *last, size_t count, struct td_track_answer *ret)
{
    ret->recent = quantile_of(last, count, HOUR_QUANTILE);
    ret->slots = (int64_t)count;
    ret->hours = state->hours_count;
    ret->margin = state->margin;
    ret->base = TD_TRACK_RECENT_USE;
    int64_t base = ret->recent;
    if (state->hours_count > 0) {
        enum td_track_reason kind;
        find_floor(state, params, ret, &kind);
        if (ret->floor > base) {
            base = ret->floor;
            ret->base = kind;
        }
    }
    int64_t raised = base + base * state->margin / MILLION;
    ret->target = largest(raised, params->min_cpu);
    ret->reason = raised < params->min_cpu ? TD_TRACK_MINIMUM : ret->base;
}

void td_track_recommend(const struct td_track *state, const struct td_track_params *params,
                        struct td_track_answer *ret)
{
    uint32_t last[TD_TRACK_RECENT];
    size_t open = state->slot_samples > 0 ? 1 : 0;
    size_t kept = state->recent_count;
    kept = kept + open > TD_TRACK_RECENT ? TD_TRACK_RECENT - open : kept;
    memcpy(last, state->recent + (state->recent_count - kept), kept * sizeof(last[0]));
    if (open) {
        last[kept] =
            (uint32_t)td_adaptive_slot_value(state->slot_sum, state->slot_samples, state->slot_top);
    }
    *ret = (struct td_track_answer){.target = params->min_cpu,
                                    .reason = TD_TRACK_NO_DATA,
                                    .judged = state->judged,
                                    .over = state->over};
    if (kept + open > 0) {
        recommend_known(state, params, last, kept + open, ret);
    }
    /* Exactly the requests that the apply rule leaves alone. */
    ret->lower = (ret->target * WHOLE + WHOLE + params->up - 1) / (WHOLE + params->up);
    ret->upper = ret->target * WHOLE / (WHOLE - params->down);
}

/* Permille of the limit to the request; 0: there is no limit. */
static int64_t memory_ratio(const struct td_track_template *template)
{
    int64_t limit = smallest(template->limit_bytes, TD_ADAPTIVE_MAX);
    if (limit <= 0) {
        return 0;
    }
    return template->request_bytes > 0 ? WHOLE * limit / template->request_bytes : WHOLE;
}

bool td_track_is_close(const struct td_track_template *template)
{
    int64_t ratio = memory_ratio(template);
    return ratio == 0 || ratio >= CLOSE_RATIO;
}

struct td_adaptive_params td_track_memory_params(const struct td_track_template *template,
                                                 enum td_adaptive_risk risk)
{
    struct td_adaptive_params params = *td_adaptive_params_of(risk);
    int64_t ratio = memory_ratio(template);
    if (td_track_is_close(template)) {
        params.mem_margin = 30;
        params.mem_young = 50;
        params.day_decay = 50;
        params.mem_up = 30;
        params.mem_down = 80;
        params.mem_step = 60;
        params.oom_divisor = ratio > 0 ? smallest(ratio, DIVISOR_MAX) : WHOLE;
    }
    return params;
}

struct td_track_decision td_track_apply(const struct td_track_apply_input *input,
                                        const struct td_track_params *params)
{
    int64_t current = smallest(largest(input->current, 0), 2 * TD_ADAPTIVE_CPU_MAX);
    int64_t target = smallest(largest(input->target, 0), 2 * TD_ADAPTIVE_CPU_MAX);
    struct td_track_decision made = {.reason = TD_APPLY_IN_BAND, .request = input->current};
    int64_t passed = td_adaptive_passed(input->changed, input->now);
    if (current == 0) {
        made = (struct td_track_decision){
            .is_apply = true, .reason = TD_APPLY_NO_REQUEST, .request = input->target};
    } else if (target * WHOLE > current * (WHOLE + params->up)) {
        made = (struct td_track_decision){.is_apply = true,
                                          .reason = TD_APPLY_INCREASE,
                                          .request = target * (WHOLE + params->step) / WHOLE};
    } else if (target * WHOLE < current * (WHOLE - params->down)) {
        made.is_apply = passed >= params->wait;
        made.reason = made.is_apply ? TD_APPLY_DECREASE : TD_APPLY_WAITING;
        made.request = made.is_apply ? input->target : input->current;
        bool is_far = __builtin_add_overflow(input->changed, params->wait, &made.until);
        made.until = made.is_apply ? 0 : is_far ? INT64_MAX : made.until;
    }
    return made;
}
