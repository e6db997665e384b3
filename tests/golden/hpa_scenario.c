/* Topics of whole decisions: several metrics together, and reconciles one after another. */
#include "decide/horizontal/reconcile.h"
#include "golden/golden.h"
#include "golden/hpa_support.h"

#define SCALE_PUTS_MAX 5 /* upstream's attempts on conflicts */

static int decode_hpa(struct td_arena *arena, const struct td_json *object, struct td_hpa *ret,
                      struct td_error *err)
{
    return td_hpa_decode(arena, object, ret, err);
}

static int run_metrics(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                       struct td_error *err)
{
    struct td_hpa hpa;
    struct golden_pods pods;
    int code = decode_hpa(arena, td_json_get(in, TD_STR("hpa")), &hpa, err);
    if (code == TD_OK) {
        code = golden_read_pods(arena, td_json_get(in, TD_STR("pods")), &pods, err);
    }
    if (code < 0) {
        return code;
    }
    struct td_hpa_config config = golden_config(td_json_get(in, TD_STR("flags")));
    struct td_hpa_scale scale = {
        .spec_replicas = (int32_t)td_json_get_int64(in, TD_STR("scaleSpecReplicas"), 0),
        .status_replicas = (int32_t)td_json_get_int64(in, TD_STR("scaleStatusReplicas"), 0),
        .selector = golden_text(in, TD_STR("scaleSelector")),
    };
    td_time now = golden_time(in, TD_STR("now"));
    /* The topic is about metrics alone, so the pass is made by hand around them. */
    struct td_hpa_pass pass = {
        .arena = arena, .hpa = &hpa, .config = &config, .scale = scale, .events = {.arena = arena}};
    td_hpa_status_read(arena, hpa.status, &pass.status);
    struct td_json *out = td_json_new_object(arena);
    struct td_hpa_evaluation evaluation = {
        .replicas = -1, .metric = TD_STR_EMPTY, .timestamp = TD_INSTANT_ZERO};
    bool is_selected = td_hpa_select(&pass, now);
    if (is_selected) {
        struct golden_pods matched =
            golden_match_pods(arena, &pods, hpa.meta.namespace, &pass.selector);
        const struct td_hpa_answer *answers = NULL;
        (void)golden_answers(arena, td_json_get(in, TD_STR("metrics")), &hpa, &matched, &answers,
                             err);
        struct td_hpa_evaluation_input input = {
            .hpa = &hpa,
            .config = &config,
            .now = now,
            .spec_replicas = scale.spec_replicas,
            .status_replicas = scale.status_replicas,
            .answers = answers,
        };
        evaluation = td_hpa_evaluate(arena, &input, &pass.status.conditions, &pass.events);
    }
    golden_set_int(arena, out, TD_STR("replicas"), evaluation.replicas);
    golden_set_text(arena, out, TD_STR("metric"), evaluation.metric);
    td_json_set(arena, out, TD_STR("timestamp"), golden_instant_json(arena, evaluation.timestamp));
    td_json_set(arena, out, TD_STR("statuses"),
                is_selected ? td_hpa_current_metrics_json(arena, &hpa, &evaluation)
                            : td_json_new_null(arena));
    td_json_set(arena, out, TD_STR("conditions"),
                golden_conditions_json(arena, &pass.status.conditions));
    td_json_set(arena, out, TD_STR("events"), golden_events_json(arena, &pass.events));
    td_str error = is_selected ? evaluation.error : pass.late_event;
    if (error.len > 0) {
        golden_set_text(arena, out, TD_STR("error"), error);
    }
    *ret_out = out;
    return TD_OK;
}

/* The world of a scenario between its steps. */
struct world {
    struct td_arena *arena;
    const struct td_json *pool; /* id to pod */
    struct td_json *hpa;        /* as stored */
    struct td_hpa_config config;
    struct td_hpa_state state;
    struct td_hpa_tracker tracker;
    int32_t replicas;
    td_str selector;
    const struct td_json *step;
    struct td_json *puts;
    bool is_written;
};

static const struct {
    td_str group;
    td_str kind;
    td_str resource;
} mapped[] = {
    {TD_STR_INIT("apps"), TD_STR_INIT("Deployment"), TD_STR_INIT("deployments.apps")},
    {TD_STR_INIT("apps"), TD_STR_INIT("StatefulSet"), TD_STR_INIT("statefulsets.apps")},
    {TD_STR_INIT("apps"), TD_STR_INIT("ReplicaSet"), TD_STR_INIT("replicasets.apps")},
    {TD_STR_INIT(""), TD_STR_INIT("ReplicationController"), TD_STR_INIT("replicationcontrollers")},
    {TD_STR_INIT("example.com"), TD_STR_INIT("Widget"), TD_STR_INIT("widgets.example.com")},
};

static td_str find_resource(td_str group, td_str kind)
{
    for (size_t i = 0; i < sizeof(mapped) / sizeof(mapped[0]); i++) {
        if (td_str_equal(mapped[i].group, group) && td_str_equal(mapped[i].kind, kind)) {
            return mapped[i].resource;
        }
    }
    return TD_STR_EMPTY;
}

static bool is_bad_version(td_str api_version)
{
    size_t first = td_str_find(api_version, '/', 0);
    return td_str_find(api_version, '/', first + 1) < api_version.len;
}

static struct td_hpa_scale get_scale(struct world *world, const struct td_hpa *hpa)
{
    struct td_hpa_scale scale = {.fault = TD_HPA_SCALE_OK};
    td_str group = td_group_version_parse(hpa->target.api_version).group;
    td_str resource = find_resource(group, hpa->target.kind);
    td_str error = golden_text(world->step, TD_STR("scaleGetError"));
    if (is_bad_version(hpa->target.api_version)) {
        scale.fault = TD_HPA_SCALE_BAD_API_VERSION;
        scale.error = td_arena_format(world->arena, "unexpected GroupVersion string: %.*s",
                                      TD_STR_ARG(hpa->target.api_version));
    } else if (resource.len == 0) {
        scale.fault = TD_HPA_SCALE_NO_MAPPING;
        scale.error =
            td_arena_format(world->arena, "no matches for kind \"%.*s\" in group \"%.*s\"",
                            TD_STR_ARG(hpa->target.kind), TD_STR_ARG(group));
    } else if (error.len > 0) {
        scale.fault = TD_HPA_SCALE_NOT_READ;
        scale.error = td_str_equal(error, TD_STR("notfound"))
                          ? td_arena_format(world->arena, "%.*s \"%.*s\" not found",
                                            TD_STR_ARG(resource), TD_STR_ARG(hpa->target.name))
                          : error;
    } else {
        scale.spec_replicas = world->replicas;
        scale.status_replicas =
            (int32_t)td_json_get_int64(world->step, TD_STR("scaleStatusReplicas"), world->replicas);
        scale.selector = world->selector;
    }
    return scale;
}

/* PUT scale as upstream does it: again on a conflict, a few times. */
static void put_scale(struct world *world, struct td_hpa_pass *pass, td_time now)
{
    const struct td_json *errors = td_json_get(world->step, TD_STR("scalePutErrors"));
    td_str resource = find_resource(td_group_version_parse(pass->hpa->target.api_version).group,
                                    pass->hpa->target.kind);
    td_str failure = TD_STR_EMPTY;
    bool is_done = false;
    bool is_conflict = true;
    for (size_t i = 0; i < SCALE_PUTS_MAX && !is_done && is_conflict; i++) {
        const struct td_json *error = td_json_at(errors, i);
        td_str text = error ? error->text : TD_STR_EMPTY;
        is_done = text.len == 0;
        is_conflict = td_str_equal(text, TD_STR("conflict"));
        failure = is_conflict
                      ? td_arena_format(world->arena,
                                        "Operation cannot be fulfilled on %.*s \"%.*s\": conflict",
                                        TD_STR_ARG(resource), TD_STR_ARG(pass->hpa->target.name))
                      : text;
        struct td_json *put = td_json_new_object(world->arena);
        golden_set_int(world->arena, put, TD_STR("replicas"), pass->desired);
        golden_set_text(world->arena, put, TD_STR("result"),
                        is_done       ? TD_STR("ok")
                        : is_conflict ? TD_STR("conflict")
                                      : TD_STR("error"));
        td_json_append(world->puts, put);
    }
    if (is_done) {
        world->replicas = pass->desired;
    }
    td_hpa_rescaled(pass, is_done, failure, now);
}

static int reconcile(struct world *world, struct td_hpa_pass *pass, const struct td_hpa *hpa,
                     td_time now, struct td_error *err)
{
    struct td_arena *arena = world->arena;
    struct td_hpa_scale scale = get_scale(world, hpa);
    td_hpa_begin(pass, arena, hpa, &world->config, &world->state, &scale, now);
    if (pass->path == TD_HPA_PATH_METRICS && td_hpa_select(pass, now)) {
        struct td_json *list = td_json_new_array(arena);
        const struct td_json *ids = td_json_get(world->step, TD_STR("pods"));
        for (const struct td_json *id = td_json_first_child(ids); id; id = id->next) {
            td_json_append(list, td_json_copy(arena, td_json_get(world->pool, id->text), false));
        }
        struct golden_pods pods;
        int code = golden_read_pods(arena, list, &pods, err);
        if (code < 0) {
            return code;
        }
        struct golden_pods matched =
            golden_match_pods(arena, &pods, hpa->meta.namespace, &pass->selector);
        const struct td_hpa_answer *answers = NULL;
        (void)golden_answers(arena, td_json_get(world->step, TD_STR("metrics")), hpa, &matched,
                             &answers, err);
        if (td_hpa_select_alone(
                pass, &world->tracker,
                &(struct td_hpa_matched){.pods = matched.items, .count = matched.count}, now)) {
            td_hpa_decide(pass, answers, now);
        }
    }
    if (pass->wants_rescale) {
        put_scale(world, pass, now);
    }
    td_hpa_finish(pass, now);
    td_str error = golden_text(world->step, TD_STR("statusPutError"));
    world->is_written = pass->needs_write && error.len == 0;
    td_hpa_end(pass, error.len == 0, error);
    if (world->is_written) {
        td_json_set(arena, world->hpa, TD_STR("status"), pass->updated);
    }
    return TD_OK;
}

static void change_world(struct world *world)
{
    const struct td_json *step = world->step;
    world->replicas =
        (int32_t)td_json_get_int64(step, TD_STR("setScaleSpecReplicas"), world->replicas);
    world->selector = td_json_get_str(step, TD_STR("scaleSelector"), world->selector);
    const struct td_json *spec = td_json_get(step, TD_STR("setSpec"));
    if (spec) {
        td_json_set(world->arena, world->hpa, TD_STR("spec"),
                    td_json_copy(world->arena, spec, false));
    }
    if (td_json_get_bool(step, TD_STR("restart"), false) ||
        td_json_get_bool(step, TD_STR("deleted"), false)) {
        td_hpa_state_done(&world->state);
        td_hpa_state_init(&world->state);
    }
}

static struct td_json *nothing_json(struct td_arena *arena)
{
    struct td_json *status = td_json_new_object(arena);
    golden_set_int(arena, status, TD_STR("desiredReplicas"), 0);
    td_json_set(arena, status, TD_STR("currentMetrics"), td_json_new_null(arena));
    return status;
}

static int run_step(struct world *world, struct td_json **ret_out, struct td_error *err)
{
    struct td_arena *arena = world->arena;
    struct td_json *out = td_json_new_object(arena);
    bool is_deleted = td_json_get_bool(world->step, TD_STR("deleted"), false);
    change_world(world);
    world->puts = td_json_new_array(arena);
    world->is_written = false;
    struct td_hpa_pass pass = {.events = {.arena = arena}, .error = TD_STR_EMPTY};
    const struct td_json *status = NULL;
    if (is_deleted) {
        (void)td_json_remove(world->hpa, TD_STR("status"));
    } else {
        struct td_hpa *hpa = td_arena_new(arena, struct td_hpa);
        int code = decode_hpa(arena, world->hpa, hpa, err);
        if (code == TD_OK) {
            code = reconcile(world, &pass, hpa, golden_time(world->step, TD_STR("at")), err);
        }
        if (code < 0) {
            return code;
        }
        status = td_json_get(world->hpa, TD_STR("status"));
    }
    td_json_set(arena, out, TD_STR("scalePuts"), world->puts);
    golden_set_int(arena, out, TD_STR("scaleSpecReplicas"), world->replicas);
    td_json_set(arena, out, TD_STR("statusWritten"), td_json_new_bool(arena, world->is_written));
    td_json_set(arena, out, TD_STR("status"),
                is_deleted ? td_json_new_null(arena)
                : status   ? td_json_copy(arena, status, false)
                           : nothing_json(arena));
    td_json_set(arena, out, TD_STR("events"), golden_events_json(arena, &pass.events));
    if (pass.has_error) {
        golden_set_text(arena, out, TD_STR("error"), pass.error);
    }
    td_json_set(arena, out, TD_STR("recommendations"),
                golden_recommendations_json(arena, &world->state.history));
    td_json_set(arena, out, TD_STR("scaleUpEvents"),
                golden_scale_events_json(arena, &world->state.history.ups));
    td_json_set(arena, out, TD_STR("scaleDownEvents"),
                golden_scale_events_json(arena, &world->state.history.downs));
    *ret_out = out;
    return TD_OK;
}

static int run_scenario(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                        struct td_error *err)
{
    struct world world = {
        .arena = arena,
        .pool = td_json_get(in, TD_STR("podPool")),
        .hpa = td_json_copy(arena, td_json_get(in, TD_STR("hpa")), false),
        .config = golden_config(td_json_get(in, TD_STR("flags"))),
        .replicas = (int32_t)td_json_get_int64(in, TD_STR("scaleSpecReplicas"), 0),
        .selector = golden_text(in, TD_STR("scaleSelector")),
    };
    td_hpa_state_init(&world.state);
    td_hpa_tracker_init(&world.tracker);
    (void)td_hpa_tracker_add(&world.tracker, TD_STR("ns"), TD_STR("hpa"));
    struct td_json *steps = td_json_new_array(arena);
    int code = TD_OK;
    const struct td_json *list = td_json_get(in, TD_STR("steps"));
    for (const struct td_json *step = td_json_first_child(list); step && code == TD_OK;
         step = step->next) {
        struct td_json *out = NULL;
        world.step = step;
        code = run_step(&world, &out, err);
        if (code == TD_OK) {
            td_json_append(steps, out);
        }
    }
    td_hpa_state_done(&world.state);
    td_hpa_tracker_done(&world.tracker);
    *ret_out = td_json_new_object(arena);
    td_json_set(arena, *ret_out, TD_STR("steps"), steps);
    return code;
}

const struct golden_topic golden_hpa_scenario[] = {
    {.name = "hpa/multi-metric", .run = run_metrics},
    {.name = "hpa/scenario", .run = run_scenario},
    {.name = NULL},
};
