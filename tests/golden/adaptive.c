/* The adaptive estimator against its reference model: streams of samples, decisions, saved states.
 */
#include "decide/vertical/estimator/adaptive.h"
#include "decide/vertical/estimator/adaptive_apply.h"
#include "golden/events.h"
#include "golden/golden.h"

struct params_field {
    const char *name;
    size_t offset;
};

#define FIELD(field)                                                                               \
    {                                                                                              \
#field, offsetof(struct td_adaptive_params, field)                                         \
    }

static void read_list(const struct td_json *list, int64_t *values, size_t cap, size_t *ret_count)
{
    size_t count = 0;
    for (const struct td_json *item = td_json_first_child(list); item && count < cap;
         item = item->next) {
        count += td_json_to_int64(item, &values[count]) ? 1 : 0;
    }
    if (count > 0) {
        *ret_count = count;
    }
}

static struct td_adaptive_params read_params(const struct td_json *in)
{
    static const struct params_field fields[] = {
        FIELD(overrun_cost), FIELD(throttle_at), FIELD(throttle_bump), FIELD(cpu_young),
        FIELD(mem_margin),   FIELD(mem_young),   FIELD(young_hours),   FIELD(day_decay),
        FIELD(min_cpu),      FIELD(min_mem),     FIELD(bump_min),      FIELD(floor_days),
        FIELD(floor_decay),  FIELD(cpu_up),      FIELD(cpu_down),      FIELD(mem_up),
        FIELD(mem_down),     FIELD(cpu_step),    FIELD(mem_step),      FIELD(wait),
        FIELD(cpu_wait),
    };
    struct td_adaptive_params params = *td_adaptive_params_of(TD_RISK_BALANCED);
    const struct td_json *given = td_json_get(in, TD_STR("params"));
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        int64_t *place = (int64_t *)(void *)((char *)&params + fields[i].offset);
        *place = td_json_get_int64(given, td_str_from(fields[i].name), *place);
    }
    size_t bump_count = 0;
    read_list(td_json_get(given, TD_STR("arms")), params.arms, TD_ADAPTIVE_ARMS_MAX,
              &params.arm_count);
    read_list(td_json_get(given, TD_STR("bumps")), params.bumps, TD_ADAPTIVE_STREAK_MAX,
              &bump_count);
    return params;
}

struct td_json *golden_adaptive_memory(struct td_arena *arena,
                                       const struct td_adaptive_memory_answer *answer)
{
    struct td_json *memory = td_json_new_object(arena);
    golden_put_number(arena, memory, "target", answer->target);
    golden_put_number(arena, memory, "lower", answer->lower);
    golden_put_number(arena, memory, "upper", answer->upper);
    golden_put_text(arena, memory, "reason", td_adaptive_reason_name(answer->reason));
    golden_put_number(arena, memory, "margin", answer->margin);
    golden_put_number(arena, memory, "peak", answer->peak);
    golden_put_number(arena, memory, "oldPeak", answer->old_peak);
    golden_put_number(arena, memory, "floor", answer->floor);
    return memory;
}

static struct td_json *answer_json(struct td_arena *arena, const struct td_adaptive_answer *answer)
{
    struct td_json *cpu = td_json_new_object(arena);
    golden_put_number(arena, cpu, "target", answer->cpu.target);
    golden_put_number(arena, cpu, "lower", answer->cpu.lower);
    golden_put_number(arena, cpu, "upper", answer->cpu.upper);
    golden_put_text(arena, cpu, "reason", td_adaptive_reason_name(answer->cpu.reason));
    golden_put_number(arena, cpu, "quantile", answer->cpu.quantile);
    golden_put_number(arena, cpu, "slots", answer->cpu.slots);
    golden_put_number(arena, cpu, "margin", answer->cpu.margin);
    golden_put_number(arena, cpu, "peak", answer->cpu.peak);
    struct td_json *both = td_json_new_object(arena);
    td_json_set(arena, both, TD_STR("cpu"), cpu);
    td_json_set(arena, both, TD_STR("memory"), golden_adaptive_memory(arena, &answer->memory));
    return both;
}

static struct td_json *recommend_json(struct td_arena *arena, const struct td_adaptive *state,
                                      const struct td_adaptive_params *params, int64_t t)
{
    struct td_adaptive_answer answer;
    td_adaptive_recommend(state, params, t, &answer);
    return answer_json(arena, &answer);
}

/* A stream of events into one state, its answers into a list. */
struct stream {
    struct td_arena *arena;
    struct td_adaptive *state;
    const struct td_adaptive_params *params;
    struct td_json *answers;
};

static int take_event(void *context, const struct golden_event *event, struct td_error *err)
{
    struct stream *stream = context;
    if (td_str_equal(event->op, TD_STR("cpu"))) {
        td_adaptive_cpu(stream->state, stream->params, event->t, event->v, event->limit);
    } else if (td_str_equal(event->op, TD_STR("memory"))) {
        td_adaptive_memory(stream->state, event->t, event->v);
    } else if (td_str_equal(event->op, TD_STR("oom"))) {
        td_adaptive_oom(stream->state, stream->params, event->t, event->v);
    } else if (td_str_equal(event->op, TD_STR("recommend"))) {
        struct td_json *answer =
            recommend_json(stream->arena, stream->state, stream->params, event->t);
        td_json_set(stream->arena, answer, TD_STR("t"),
                    td_json_new_string(stream->arena, event->time));
        td_json_append(stream->answers, answer);
    } else {
        return td_error_set(err, TD_INVALID, "op: '%.*s': unknown", TD_STR_ARG(event->op));
    }
    return TD_OK;
}

static int feed(struct stream *stream, const struct td_json *events, struct td_error *err)
{
    stream->answers = td_json_new_array(stream->arena);
    return golden_each_event(events, take_event, stream, err);
}

static int run_update(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                      struct td_error *err)
{
    struct td_adaptive state;
    td_adaptive_init(&state);
    struct td_adaptive_params params = read_params(in);
    struct stream stream = {.arena = arena, .state = &state, .params = &params};
    int code = feed(&stream, td_json_get(in, TD_STR("events")), err);
    if (code == TD_OK) {
        *ret_out = td_json_new_object(arena);
        td_json_set(arena, *ret_out, TD_STR("recommendations"), stream.answers);
    }
    return code;
}

static struct td_adaptive_amounts read_amounts(const struct td_json *in, const char *key)
{
    const struct td_json *amounts = td_json_get(in, td_str_from(key));
    return (struct td_adaptive_amounts){
        .cpu_milli = td_json_get_int64(amounts, TD_STR("cpu"), 0),
        .memory_bytes = td_json_get_int64(amounts, TD_STR("memory"), 0),
    };
}

static int run_apply(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                     struct td_error *err)
{
    struct td_adaptive_params params = read_params(in);
    struct td_adaptive_apply_input input = {
        .is_oom = td_json_get_bool(in, TD_STR("oom"), false),
        .current = read_amounts(in, "current"),
        .target = read_amounts(in, "target"),
    };
    if (golden_read_time(in, "now", &input.now, err) < 0 ||
        golden_read_time(in, "changed", &input.changed, err) < 0) {
        return err->code;
    }
    struct td_adaptive_decision made = td_adaptive_apply(&input, &params);
    struct td_json *request = td_json_new_object(arena);
    golden_put_number(arena, request, "cpu", made.request.cpu_milli);
    golden_put_number(arena, request, "memory", made.request.memory_bytes);
    *ret_out = td_json_new_object(arena);
    golden_put_text(arena, *ret_out, "action", made.is_apply ? "apply" : "hold");
    golden_put_text(arena, *ret_out, "reason", td_adaptive_apply_reason_name(made.reason));
    td_json_set(arena, *ret_out, TD_STR("request"), request);
    return TD_OK;
}

static int run_state(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                     struct td_error *err)
{
    struct td_adaptive state;
    struct td_adaptive loaded;
    td_adaptive_init(&state);
    struct td_adaptive_params params = read_params(in);
    struct stream stream = {.arena = arena, .state = &state, .params = &params};
    int64_t at = 0;
    if (feed(&stream, td_json_get(in, TD_STR("events")), err) < 0 ||
        golden_read_time(in, "at", &at, err) < 0) {
        return err->code;
    }
    struct td_json *out = td_json_new_object(arena);
    struct td_json *saved = td_adaptive_save(arena, &state);
    td_json_set(arena, out, TD_STR("before"), recommend_json(arena, &state, &params, at));
    td_json_set(arena, out, TD_STR("checkpoint"), saved);
    int code = td_adaptive_load(&loaded, golden_reparse(arena, saved), err);
    if (code < 0) {
        return code;
    }
    td_json_set(arena, out, TD_STR("after"), recommend_json(arena, &loaded, &params, at));
    td_json_set(arena, out, TD_STR("resaved"), td_adaptive_save(arena, &loaded));
    stream.state = &loaded;
    code = feed(&stream, td_json_get(in, TD_STR("after")), err);
    if (code < 0) {
        return code;
    }
    td_json_set(arena, out, TD_STR("later"), stream.answers);
    td_json_set(arena, out, TD_STR("laterCheckpoint"), td_adaptive_save(arena, &loaded));
    *ret_out = out;
    return TD_OK;
}

static int run_persist(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                       struct td_error *err)
{
    td_str kind = td_json_get_str(in, TD_STR("kind"), TD_STR_EMPTY);
    if (td_str_equal(kind, TD_STR("state"))) {
        return run_state(arena, in, ret_out, err);
    }
    struct td_adaptive state;
    int code = td_adaptive_load(&state, td_json_get(in, TD_STR("checkpoint")), err);
    if (code == TD_OK) {
        *ret_out = td_adaptive_save(arena, &state);
    }
    return code;
}

const struct golden_topic golden_adaptive[] = {
    {.name = "adaptive/update-recommend", .run = run_update},
    {.name = "adaptive/apply", .run = run_apply},
    {.name = "adaptive/persist", .run = run_persist, .names_field = true},
    {.name = NULL},
};
