/* The track estimator against its reference model: streams of samples, decisions, saved states. */
#include "decide/vertical/estimator/track.h"
#include "golden/events.h"
#include "golden/golden.h"

/* A stream of events into one state, its answers into a list. */
struct stream {
    struct td_arena *arena;
    struct td_track state;
    struct td_adaptive memory;
    struct td_track_params params;
    struct td_adaptive_params memory_params;
    bool has_memory;
    struct td_json *answers;
};

static int read_preset(const struct td_json *in, struct td_track_params *ret, struct td_error *err)
{
    td_str name = td_json_get_str(in, TD_STR("preset"), TD_STR("balanced"));
    const struct td_track_params *found = td_track_params_find(name);
    if (!found) {
        return td_error_set(err, TD_INVALID, "preset: '%.*s': unknown", TD_STR_ARG(name));
    }
    *ret = *found;
    ret->min_cpu = td_json_get_int64(in, TD_STR("minCPU"), found->min_cpu);
    return TD_OK;
}

static struct td_track_template read_template(const struct td_json *in)
{
    const struct td_json *template = td_json_get(in, TD_STR("template"));
    return (struct td_track_template){
        .request_bytes = td_json_get_int64(template, TD_STR("request"), 0),
        .limit_bytes = td_json_get_int64(template, TD_STR("limit"), 0),
    };
}

static int stream_init(struct td_arena *arena, const struct td_json *in, struct stream *ret,
                       struct td_error *err)
{
    struct td_track_template template = read_template(in);
    *ret = (struct stream){
        .arena = arena,
        .memory_params = td_track_memory_params(&template, TD_RISK_BALANCED),
        .has_memory = td_json_get(in, TD_STR("template")) != NULL,
    };
    td_track_init(&ret->state);
    td_adaptive_init(&ret->memory);
    return read_preset(in, &ret->params, err);
}

static struct td_json *cpu_json(struct td_arena *arena, const struct td_track_answer *answer)
{
    struct td_json *cpu = td_json_new_object(arena);
    golden_put_number(arena, cpu, "target", answer->target);
    golden_put_number(arena, cpu, "lower", answer->lower);
    golden_put_number(arena, cpu, "upper", answer->upper);
    golden_put_text(arena, cpu, "reason", td_track_reason_name(answer->reason));
    golden_put_number(arena, cpu, "recent", answer->recent);
    golden_put_number(arena, cpu, "floor", answer->floor);
    golden_put_number(arena, cpu, "quantile", answer->quantile);
    golden_put_number(arena, cpu, "margin", answer->margin);
    golden_put_number(arena, cpu, "slots", answer->slots);
    golden_put_number(arena, cpu, "hours", answer->hours);
    return cpu;
}

static struct td_json *recommend_json(const struct stream *stream, int64_t t)
{
    struct td_arena *arena = stream->arena;
    struct td_json *both = td_json_new_object(arena);
    struct td_track_answer answer;
    td_track_recommend(&stream->state, &stream->params, &answer);
    td_json_set(arena, both, TD_STR("cpu"), cpu_json(arena, &answer));
    if (stream->has_memory) {
        struct td_adaptive_answer adaptive;
        td_adaptive_recommend(&stream->memory, &stream->memory_params, t, &adaptive);
        td_json_set(arena, both, TD_STR("memory"), golden_adaptive_memory(arena, &adaptive.memory));
    }
    return both;
}

static int take_event(void *context, const struct golden_event *event, struct td_error *err)
{
    struct stream *stream = context;
    if (td_str_equal(event->op, TD_STR("cpu"))) {
        td_track_cpu(&stream->state, &stream->params, event->t, event->v, event->limit,
                     event->request);
    } else if (td_str_equal(event->op, TD_STR("memory"))) {
        td_adaptive_memory(&stream->memory, event->t, event->v);
    } else if (td_str_equal(event->op, TD_STR("oom"))) {
        td_adaptive_oom(&stream->memory, &stream->memory_params, event->t, event->v);
    } else if (td_str_equal(event->op, TD_STR("recommend"))) {
        struct td_json *answer = recommend_json(stream, event->t);
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

static const char *rule_name(const struct td_track_template *template)
{
    return td_track_is_close(template) ? "close" : "adaptive";
}

static int run_update(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                      struct td_error *err)
{
    struct stream stream;
    int code = stream_init(arena, in, &stream, err);
    code = code < 0 ? code : feed(&stream, td_json_get(in, TD_STR("events")), err);
    if (code == TD_OK) {
        struct td_track_template template = read_template(in);
        *ret_out = td_json_new_object(arena);
        td_json_set(arena, *ret_out, TD_STR("recommendations"), stream.answers);
        if (stream.has_memory) {
            golden_put_text(arena, *ret_out, "memoryRule", rule_name(&template));
            golden_put_number(arena, *ret_out, "divisor", stream.memory_params.oom_divisor);
        }
    }
    return code;
}

static int apply_cpu(struct td_arena *arena, const struct td_json *in, struct td_json *out,
                     struct td_error *err)
{
    struct td_track_params params;
    struct td_track_apply_input input = {
        .current = td_json_get_int64(in, TD_STR("current"), 0),
        .target = td_json_get_int64(in, TD_STR("target"), 0),
    };
    if (read_preset(in, &params, err) < 0 || golden_read_time(in, "now", &input.now, err) < 0 ||
        golden_read_time(in, "changed", &input.changed, err) < 0) {
        return err->code;
    }
    struct td_track_decision made = td_track_apply(&input, &params);
    golden_put_text(arena, out, "action", made.is_apply ? "apply" : "hold");
    golden_put_text(arena, out, "reason", td_adaptive_apply_reason_name(made.reason));
    golden_put_number(arena, out, "request", made.request);
    return TD_OK;
}

static int apply_memory(struct td_arena *arena, const struct td_json *in, struct td_json *out,
                        struct td_error *err)
{
    struct td_track_template template = read_template(in);
    struct td_adaptive_params params = td_track_memory_params(&template, TD_RISK_BALANCED);
    struct td_adaptive_apply_input input = {
        .is_oom = td_json_get_bool(in, TD_STR("oom"), false),
        .current = {.cpu_milli = 1, .memory_bytes = td_json_get_int64(in, TD_STR("current"), 0)},
        .target = {.cpu_milli = 1, .memory_bytes = td_json_get_int64(in, TD_STR("target"), 0)},
    };
    if (golden_read_time(in, "now", &input.now, err) < 0 ||
        golden_read_time(in, "changed", &input.changed, err) < 0) {
        return err->code;
    }
    struct td_adaptive_decision made = td_adaptive_apply(&input, &params);
    golden_put_text(arena, out, "memoryRule", rule_name(&template));
    golden_put_text(arena, out, "action", made.is_apply ? "apply" : "hold");
    golden_put_text(arena, out, "reason", td_adaptive_apply_reason_name(made.reason));
    golden_put_number(arena, out, "request", made.request.memory_bytes);
    return TD_OK;
}

static int run_apply(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                     struct td_error *err)
{
    td_str resource = td_json_get_str(in, TD_STR("resource"), TD_STR_EMPTY);
    struct td_json *out = td_json_new_object(arena);
    int code = td_str_equal(resource, TD_STR("cpu")) ? apply_cpu(arena, in, out, err)
                                                     : apply_memory(arena, in, out, err);
    if (code == TD_OK) {
        *ret_out = out;
    }
    return code;
}

/* What comes after a state was read: answers, and what is saved then. */
static int run_later(struct stream *stream, const struct td_json *in, struct td_json *out,
                     struct td_error *err)
{
    int code = feed(stream, td_json_get(in, TD_STR("after")), err);
    if (code == TD_OK) {
        td_json_set(stream->arena, out, TD_STR("later"), stream->answers);
        td_json_set(stream->arena, out, TD_STR("laterCheckpoint"),
                    td_track_save(stream->arena, &stream->state));
    }
    return code;
}

static int run_state(struct stream *stream, const struct td_json *in, struct td_json *out,
                     struct td_error *err)
{
    struct td_arena *arena = stream->arena;
    int code = feed(stream, td_json_get(in, TD_STR("events")), err);
    if (code < 0) {
        return code;
    }
    struct td_json *saved = td_track_save(arena, &stream->state);
    td_json_set(arena, out, TD_STR("before"), recommend_json(stream, 0));
    td_json_set(arena, out, TD_STR("checkpoint"), saved);
    code = td_track_load(&stream->state, golden_reparse(arena, saved), err);
    if (code < 0) {
        return code;
    }
    td_json_set(arena, out, TD_STR("after"), recommend_json(stream, 0));
    td_json_set(arena, out, TD_STR("resaved"), td_track_save(arena, &stream->state));
    return run_later(stream, in, out, err);
}

static int run_load(struct stream *stream, const struct td_json *in, struct td_json *out,
                    struct td_error *err)
{
    struct td_arena *arena = stream->arena;
    int code = td_track_load(&stream->state, td_json_get(in, TD_STR("checkpoint")), err);
    if (code < 0) {
        return code;
    }
    td_json_set(arena, out, TD_STR("resaved"), td_track_save(arena, &stream->state));
    td_json_set(arena, out, TD_STR("before"), recommend_json(stream, 0));
    return run_later(stream, in, out, err);
}

static int run_persist(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                       struct td_error *err)
{
    struct stream stream;
    struct td_json *out = td_json_new_object(arena);
    td_str kind = td_json_get_str(in, TD_STR("kind"), TD_STR_EMPTY);
    int code = stream_init(arena, in, &stream, err);
    if (code == TD_OK) {
        code = td_str_equal(kind, TD_STR("state")) ? run_state(&stream, in, out, err)
                                                   : run_load(&stream, in, out, err);
    }
    if (code == TD_OK) {
        *ret_out = out;
    }
    return code;
}

const struct golden_topic golden_track[] = {
    {.name = "track/update-recommend", .run = run_update},
    {.name = "track/apply", .run = run_apply},
    {.name = "track/persist", .run = run_persist, .names_field = true},
    {.name = NULL},
};
