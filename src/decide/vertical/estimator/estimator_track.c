/*
 * The track estimator behind the interface of estimator.h, once for each risk. The state of the
 * adaptive estimator is kept beside: memory is sized by it, and CPU too where it cannot be resized
 * in place. All four share one state and one format of saving, so changing the risk of a VPA
 * forgets nothing.
 */
#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/estimator/estimator_adaptive.h"
#include "decide/vertical/estimator/state_json.h"
#include "decide/vertical/estimator/track.h"

#define DETAIL_BYTES_MAX ((size_t)1024)
/* How often a slot was above its request, for the explanation: no part of the state's format. */
#define SHORTAGE_ANNOTATION TD_STR("tandem.dev/track-shortage")

struct tracked {
    struct td_track cpu;
    struct td_adaptive adaptive;
    struct td_estimator_terms terms;
};

static void track_init(void *state)
{
    struct tracked *tracked = state;
    td_track_init(&tracked->cpu);
    td_adaptive_init(&tracked->adaptive);
    tracked->terms = (struct td_estimator_terms){.lack = TD_RESIZE_POSSIBLE};
}

static void track_set_terms(void *state, const struct td_estimator_terms *terms)
{
    struct tracked *tracked = state;
    tracked->terms = *terms;
}

static void add_cpu_with(struct tracked *tracked, enum td_track_risk risk, td_time time,
                         const struct td_cpu_use *use)
{
    int64_t t = td_adaptive_seconds(time);
    td_track_cpu(&tracked->cpu, td_track_params_of(risk), t, use->milli, use->limit_milli,
                 use->request_milli);
    td_adaptive_cpu(&tracked->adaptive, td_adaptive_params_of(TD_RISK_BALANCED), t, use->milli,
                    use->limit_milli);
}

static void track_add_memory(void *state, td_time time, int64_t bytes)
{
    struct tracked *tracked = state;
    td_adaptive_memory(&tracked->adaptive, td_adaptive_seconds(time), bytes);
}

static struct td_track_template template_of(const struct tracked *tracked)
{
    return (struct td_track_template){.request_bytes = tracked->terms.memory_request_bytes,
                                      .limit_bytes = tracked->terms.memory_limit_bytes};
}

/* With room above the request a container is killed at its limit, and the template's limit follows
 * what is recommended. */
static void track_add_oom(void *state, td_time time, const struct td_oom_kill *kill)
{
    struct tracked *tracked = state;
    struct td_track_template template = template_of(tracked);
    struct td_adaptive_params params = *td_adaptive_params_of(TD_RISK_BALANCED);
    int64_t requested = kill->request_bytes;
    if (tracked->terms.lack == TD_RESIZE_POSSIBLE && td_track_is_close(&template)) {
        params = td_track_memory_params(&template, TD_RISK_BALANCED);
        requested = kill->limit_bytes > 0 ? kill->limit_bytes : kill->request_bytes;
    }
    td_adaptive_oom(&tracked->adaptive, &params, td_adaptive_seconds(time), requested);
}

static void track_save(struct td_arena *arena, const void *state, struct td_json *annotations)
{
    const struct tracked *tracked = state;
    td_json_set_str(arena, annotations, TD_TRACK_ANNOTATION,
                    td_json_line(arena, td_track_save(arena, &tracked->cpu)));
    td_json_set_str(
        arena, annotations, SHORTAGE_ANNOTATION,
        td_arena_format(arena, "%d/%d", (int)tracked->cpu.over, (int)tracked->cpu.judged));
    td_adaptive_store(arena, &tracked->adaptive, annotations);
}

/* "18/500"; what cannot be read is not known. */
static void load_shortage(struct td_track *state, const struct td_json *annotations)
{
    td_str text = td_json_get_str(annotations, SHORTAGE_ANNOTATION, TD_STR_EMPTY);
    size_t slash = td_str_find(text, '/', 0);
    int64_t over;
    int64_t judged;
    if (slash < text.len && td_str_to_int64(td_str_slice(text, 0, slash), &over) &&
        td_str_to_int64(td_str_slice(text, slash + 1, text.len), &judged) && over >= 0 &&
        over <= judged && judged <= TD_TRACK_JUDGED_MAX) {
        state->over = (uint16_t)over;
        state->judged = (uint16_t)judged;
    }
}

static int load_cpu(struct td_track *state, const struct td_json *annotations, struct td_error *err)
{
    td_track_init(state);
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *saved = NULL;
    int code = td_state_read(&arena, annotations, TD_TRACK_ANNOTATION, &saved, err);
    if (code < 0 || !saved) {
        return code;
    }
    code = td_track_load(state, saved, err);
    if (code < 0) {
        return td_error_wrap(err, code, "tandem.dev/track");
    }
    load_shortage(state, annotations);
    return code;
}

static int track_load(void *state, const struct td_json *annotations, struct td_error *err)
{
    struct tracked *tracked = state;
    int memory = td_adaptive_restore(&tracked->adaptive, annotations, err);
    int cpu = load_cpu(&tracked->cpu, annotations, memory < 0 ? NULL : err);
    return memory < 0 ? memory : cpu;
}

static void account_cpu(const struct td_track_answer *answer, int64_t floor,
                        struct td_resource_account *account)
{
    td_auto_buf text = td_buf_capped(DETAIL_BYTES_MAX);
    td_track_write_cpu(answer, true, &text);
    bool is_floor = answer->reason == TD_TRACK_MINIMUM || answer->reason == TD_TRACK_NO_DATA;
    bool is_recent = answer->base == TD_TRACK_RECENT_USE;
    int64_t base = is_recent ? answer->recent : answer->floor;
    account->lacks_data = answer->reason == TD_TRACK_NO_DATA;
    account->margin_fraction = (double)answer->margin / 1e6;
    account->confidence = (double)answer->hours / TD_TRACK_HOURS;
    account->floor = floor;
    account->target = td_adaptive_bound(base, answer->target, answer->target, is_floor);
    account->lower = td_adaptive_bound(base, answer->lower, answer->target, is_floor);
    account->upper = td_adaptive_bound(base, answer->upper, answer->target, is_floor);
    account->target.percentile = is_recent ? 0.75 : (double)answer->quantile / 1000;
    td_adaptive_tell(account, td_track_reason_name(answer->reason), &text);
}

/* The estimator that stands in, at the risk that is nearest. */
static enum td_adaptive_risk adaptive_risk(enum td_track_risk risk)
{
    return risk == TD_TRACK_CAREFUL  ? TD_RISK_CAREFUL
           : risk == TD_TRACK_FRUGAL ? TD_RISK_FRUGAL
                                     : TD_RISK_BALANCED;
}

static const char *adaptive_name(enum td_adaptive_risk risk)
{
    return risk == TD_RISK_CAREFUL  ? td_estimator_adaptive_careful.name
           : risk == TD_RISK_FRUGAL ? td_estimator_adaptive_frugal.name
                                    : td_estimator_adaptive.name;
}

static void recommend_with(const struct td_estimator_input *input, enum td_track_risk risk,
                           struct td_estimate *ret, struct td_account *account)
{
    struct tracked empty;
    track_init(&empty);
    const struct tracked *tracked = input->state ? input->state : &empty;
    enum td_adaptive_risk stand_in = adaptive_risk(risk);
    if (tracked->terms.lack != TD_RESIZE_POSSIBLE) {
        td_adaptive_estimate(input, &tracked->adaptive, stand_in, ret, account);
        account->estimator = adaptive_name(stand_in);
        account->instead = td_resize_lack_text(tracked->terms.lack);
        return;
    }
    struct td_track_template template = template_of(tracked);
    struct td_adaptive_params memory = td_track_memory_params(&template, stand_in);
    td_adaptive_estimate_memory(input, &tracked->adaptive, &memory, ret, account);
    struct td_track_params params = *td_track_params_of(risk);
    params.min_cpu = td_adaptive_minima(input, &memory).min_cpu;
    struct td_track_answer answer;
    td_track_recommend(&tracked->cpu, &params, &answer);
    ret->cpu = (struct td_bounds){answer.target, answer.lower, answer.upper};
    account_cpu(&answer, params.min_cpu, &account->cpu);
    account->tracked_risk = tracked->cpu.first < 0 ? NULL : params.risk;
    account->tracked_since = tracked->cpu.first * TD_SECOND;
}

#define TRACK_ESTIMATOR(symbol, label, words, risk)                                                \
    static void symbol##_add_cpu(void *state, td_time time, const struct td_cpu_use *use)          \
    {                                                                                              \
        add_cpu_with(state, risk, time, use);                                                      \
    }                                                                                              \
    static void symbol##_recommend(const struct td_estimator_input *input,                         \
                                   struct td_estimate *ret, struct td_account *account)            \
    {                                                                                              \
        recommend_with(input, risk, ret, account);                                                 \
    }                                                                                              \
    const struct td_estimator td_estimator_##symbol = {.name = (label),                            \
                                                       .title = (words),                           \
                                                       .state_bytes = sizeof(struct tracked),      \
                                                       .init = track_init,                         \
                                                       .add_cpu = symbol##_add_cpu,                \
                                                       .add_memory = track_add_memory,             \
                                                       .add_oom = track_add_oom,                   \
                                                       .save = track_save,                         \
                                                       .load = track_load,                         \
                                                       .set_terms = track_set_terms,               \
                                                       .recommend = symbol##_recommend}

TRACK_ESTIMATOR(track, "track", "track", TD_TRACK_BALANCED);
TRACK_ESTIMATOR(track_careful, "track-careful", "track, careful", TD_TRACK_CAREFUL);
TRACK_ESTIMATOR(track_frugal, "track-frugal", "track, frugal", TD_TRACK_FRUGAL);
TRACK_ESTIMATOR(track_calm, "track-calm", "track, calm", TD_TRACK_CALM);
