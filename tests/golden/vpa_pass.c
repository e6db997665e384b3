/* Whole passes of the updater, and its judgement of single pods under the proposals. */
#include "golden/golden.h"

#include <math.h>
#include <stdlib.h>

#include "decide/vertical/updater/pass.h"
#include "decide/vertical/updater/requirements.h"
#include "golden/hpa_support.h"
#include "golden/updater_support.h"
#include "golden/vpa_support.h"

struct pass_case {
    struct td_arena *arena;
    const struct td_json *in;
};

static const struct td_limit_ranges *get_limits(void *context, td_str namespace)
{
    const struct pass_case *run = context;
    struct td_limit_ranges *limits = td_arena_new(run->arena, struct td_limit_ranges);
    int code = golden_limit_ranges(run->arena, td_json_get(run->in, TD_STR("limitRanges")),
                                   namespace, limits, NULL);
    return code == TD_OK ? limits : NULL;
}

static td_str vpa_key(struct td_arena *arena, const struct td_vpa *vpa)
{
    return td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(vpa->meta.namespace),
                           TD_STR_ARG(vpa->meta.name));
}

/* Makes the call as in.fail says, and writes it down. */
static enum td_updater_result make_call(const struct pass_case *run, struct td_json *actions,
                                        const struct td_updater_action *action)
{
    static const char *const names[] = {"evict", "resize", "annotate"};
    struct td_arena *arena = run->arena;
    td_str key =
        td_arena_format(arena, "%s:%.*s", names[action->call], TD_STR_ARG(action->pod->meta.name));
    const struct td_json *fail = td_json_get(td_json_get(run->in, TD_STR("fail")), key);
    struct td_json *call = td_json_new_object(arena);
    golden_set_text(arena, call, TD_STR("call"), td_str_from(names[action->call]));
    golden_set_text(arena, call, TD_STR("pod"), action->pod->meta.name);
    if (action->call != TD_UPDATER_ANNOTATE) {
        td_json_set(arena, call, TD_STR("ok"), td_json_new_bool(arena, !fail));
    }
    if (action->patch) {
        td_json_set(arena, call, TD_STR("patch"), td_json_copy(arena, action->patch, false));
    }
    td_str vpa = vpa_key(arena, action->vpa);
    struct td_json *calls = td_json_get(actions, vpa);
    if (!calls) {
        calls = td_json_new_array(arena);
        td_json_set(arena, actions, vpa, calls);
    }
    td_json_append(calls, call);
    if (!fail) {
        return TD_UPDATER_DONE;
    }
    return td_str_equal(fail->text, TD_STR("infeasible")) ? TD_UPDATER_INFEASIBLE
                                                          : TD_UPDATER_FAILED;
}

static struct td_json *sorted_json(struct td_arena *arena, td_str *texts, size_t count)
{
    qsort(texts, count, sizeof(texts[0]), td_str_compare_items);
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        td_json_append(list, td_json_new_string(arena, texts[i]));
    }
    return list;
}

static struct td_json *events_json(struct td_arena *arena, const struct td_updater_events *events)
{
    td_str *texts = td_arena_array(arena, td_str, events->count);
    for (size_t i = 0; i < events->count; i++) {
        texts[i] = td_arena_format(arena, "Normal %.*s %.*s", TD_STR_ARG(events->items[i].reason),
                                   TD_STR_ARG(events->items[i].message));
    }
    return sorted_json(arena, texts, events->count);
}

static struct td_json *infeasible_json(struct td_arena *arena, const struct td_updater_state *state)
{
    td_str *texts = td_arena_array(arena, td_str, state->pods.count);
    size_t count = 0;
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&state->pods, &position))) {
        const struct td_pod_memory *memory = entry->value;
        if (memory->failed.len > 0) {
            texts[count++] = td_arena_copy_str(arena, memory->key);
        }
    }
    return sorted_json(arena, texts, count);
}

static struct td_updater_config read_config(struct td_arena *arena, const struct td_json *config)
{
    struct td_updater_config made = td_updater_config_default();
    made.update = (struct td_update_config){
        .threshold = golden_double(config, TD_STR("podUpdateThreshold"), 0.1),
        .lifetime = golden_duration(config, TD_STR("lifetimeThreshold"), 0),
        .oom_threshold = golden_duration(config, TD_STR("evictAfterOOMThreshold"), 0),
    };
    made.restriction = golden_restriction_config(config);
    made.is_upstream_exact = true;
    const struct td_json *ignored = td_json_get(config, TD_STR("ignoredNamespaces"));
    if (td_json_is(ignored, TD_JSON_TYPE_ARRAY)) {
        td_str *names = td_arena_array(arena, td_str, ignored->count);
        for (const struct td_json *item = td_json_first_child(ignored); item; item = item->next) {
            names[made.ignored_namespace_count++] = item->text;
        }
        made.ignored_namespaces = names;
    }
    return made;
}

static int drive(const struct td_updater_input *input, const struct pass_case *run,
                 struct td_json **ret_out, struct td_error *err)
{
    struct td_arena *arena = run->arena;
    struct td_updater_pass pass;
    int code = td_updater_pass_begin(&pass, input, err);
    if (code < 0) {
        return code;
    }
    struct td_json *out = td_json_new_object(arena);
    struct td_json *actions = td_json_ensure_object(arena, out, TD_STR("actions"));
    struct td_updater_action action;
    while (td_updater_pass_next(&pass, input->now, &action)) {
        td_updater_pass_result(&pass, make_call(run, actions, &action), TD_STR("refused"));
    }
    td_json_set(arena, out, TD_STR("events"), events_json(arena, &pass.events));
    td_updater_pass_end(&pass);
    td_json_set(arena, out, TD_STR("infeasible"), infeasible_json(arena, input->state));
    td_json_set(arena, out, TD_STR("lastInPlaceAttempt"),
                golden_resizing_json(arena, input->state));
    *ret_out = out;
    return TD_OK;
}

static int run_pass(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                    struct td_error *err)
{
    struct pass_case run = {.arena = arena, .in = in};
    struct golden_workloads workloads;
    struct golden_vpas vpas;
    struct golden_vertical_pods pods;
    int code = golden_read_workloads(arena, in, &workloads, err);
    code = code < 0 ? code : golden_read_vpas(arena, td_json_get(in, TD_STR("vpas")), &vpas, err);
    code = code < 0 ? code
                    : golden_read_vertical_pods(arena, td_json_get(in, TD_STR("pods")), &pods, err);
    if (code < 0) {
        return code;
    }
    struct td_workload_source source = golden_source(&workloads);
    struct td_updater_config config = read_config(arena, td_json_get(in, TD_STR("config")));
    struct td_updater_state state;
    td_updater_state_init(&state);
    code = golden_read_state(arena, in, &pods, &state, err);
    const struct td_updater_input input = {
        .arena = arena,
        .now = golden_time(in, TD_STR("now")),
        .config = &config,
        .gates = golden_vpa_gates(td_json_get(in, TD_STR("gates"))),
        .vpas = vpas.items,
        .vpa_count = vpas.count,
        .pods = pods.items,
        .pod_count = pods.count,
        .source = &source,
        .state = &state,
        .context = &run,
        .get_limits = get_limits,
    };
    code = code < 0 ? code : drive(&input, &run, ret_out, err);
    td_updater_state_done(&state);
    return code;
}

static int compare_records(const void *a, const void *b)
{
    const struct td_json *const *left = a;
    const struct td_json *const *right = b;
    return td_str_compare(golden_text(*left, TD_STR("path")), golden_text(*right, TD_STR("path")));
}

/* A patch with its records by path: the order of resources inside a container is free, and a parent
 * sorts before its children. */
static struct td_json *sorted_patch(struct td_arena *arena, const struct td_json *patch)
{
    const struct td_json **items = td_arena_array(arena, const struct td_json *, patch->count);
    size_t count = 0;
    for (const struct td_json *item = td_json_first_child(patch); item; item = item->next) {
        items[count++] = item;
    }
    qsort(items, count, sizeof(items[0]), compare_records);
    struct td_json *sorted = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        td_json_append(sorted, td_json_copy(arena, items[i], false));
    }
    return sorted;
}

static struct td_json *with_sorted_patches(struct td_arena *arena, const struct td_json *out)
{
    struct td_json *copy = td_json_copy(arena, out, false);
    for (struct td_json *calls = td_json_first_child(td_json_get(copy, TD_STR("actions"))); calls;
         calls = calls->next) {
        for (struct td_json *call = td_json_first_child(calls); call; call = call->next) {
            const struct td_json *patch = td_json_get(call, TD_STR("patch"));
            if (td_json_is(patch, TD_JSON_TYPE_ARRAY)) {
                td_json_set(arena, call, TD_STR("patch"), sorted_patch(arena, patch));
            }
        }
    }
    return copy;
}

static bool is_same_pass(const struct td_json *expected, const struct td_json *got)
{
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    return td_json_equal(with_sorted_patches(&arena, expected), with_sorted_patches(&arena, got));
}

/* One pod under one VPA, as the proposals' topics describe them. */
struct seed_case {
    struct td_arena *arena;
    const struct td_json *in;
    struct td_vpa vpa;
    struct td_pod pod;
    struct td_updater_config config;
    struct td_vpa_gates gates;
    struct td_updater_state state;
    struct td_workload workload;
    td_time now;
};

static const struct td_workload *seed_workload(void *context, td_str kind, td_str namespace,
                                               td_str name)
{
    const struct td_workload *workload = context;
    bool is_it = td_str_equal(kind, workload->kind) &&
                 td_str_equal(namespace, workload->namespace) && td_str_equal(name, workload->name);
    return is_it ? workload : NULL;
}

static bool seed_resource(void *context, td_str group, td_str kind, size_t index,
                          td_str *ret_resource)
{
    (void)context, (void)group, (void)kind, (void)index, (void)ret_resource;
    return false;
}

static struct td_scale_answer seed_scale(void *context, td_str group, td_str resource,
                                         td_str namespace, td_str name)
{
    (void)context, (void)group, (void)resource, (void)namespace, (void)name;
    return (struct td_scale_answer){.code = TD_NOT_FOUND};
}

static const struct td_limit_ranges *seed_limits(void *context, td_str namespace)
{
    (void)context, (void)namespace;
    return NULL;
}

static void set_copy(struct td_arena *arena, struct td_json *object, td_str key,
                     const struct td_json *value)
{
    if (value && value->type != TD_JSON_TYPE_NULL) {
        td_json_set(arena, object, key, td_json_copy(arena, value, false));
    }
}

static struct td_json *seed_object(struct td_arena *arena, td_str name)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *meta = td_json_ensure_object(arena, object, TD_STR("metadata"));
    golden_set_text(arena, meta, TD_STR("name"), name);
    golden_set_text(arena, meta, TD_STR("namespace"), TD_STR("default"));
    return object;
}

/* The recommendation is a list of containers, or a whole one. */
static int make_vpa(struct seed_case *run, td_str name, td_str mode,
                    const struct td_json *requirements, const struct td_json *recommendation,
                    struct td_error *err)
{
    struct td_arena *arena = run->arena;
    struct td_json *object = seed_object(arena, name);
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    struct td_json *target = td_json_ensure_object(arena, spec, TD_STR("targetRef"));
    golden_set_text(arena, target, TD_STR("apiVersion"), TD_STR("apps/v1"));
    golden_set_text(arena, target, TD_STR("kind"), TD_STR("ReplicaSet"));
    golden_set_text(arena, target, TD_STR("name"), TD_STR("web"));
    struct td_json *policy = td_json_ensure_object(arena, spec, TD_STR("updatePolicy"));
    golden_set_text(arena, policy, TD_STR("updateMode"), mode);
    set_copy(arena, policy, TD_STR("evictionRequirements"), requirements);
    struct td_json *status = td_json_ensure_object(arena, object, TD_STR("status"));
    if (td_json_is(recommendation, TD_JSON_TYPE_ARRAY)) {
        set_copy(arena, td_json_ensure_object(arena, status, TD_STR("recommendation")),
                 TD_STR("containerRecommendations"), recommendation);
    } else {
        set_copy(arena, status, TD_STR("recommendation"), recommendation);
    }
    return td_vpa_decode(arena, object, &run->vpa, err);
}

/* A container of the pod was killed for its memory two minutes ago, one minute after its start. */
static void add_quick_oom(struct seed_case *run, struct td_json *status, td_str container)
{
    struct td_arena *arena = run->arena;
    struct td_json *list = td_json_new_array(arena);
    struct td_json *item = td_json_new_object(arena);
    golden_set_text(arena, item, TD_STR("name"), container);
    struct td_json *last = td_json_ensure_object(arena, item, TD_STR("lastState"));
    struct td_json *end = td_json_ensure_object(arena, last, TD_STR("terminated"));
    golden_set_text(arena, end, TD_STR("reason"), TD_STR("OOMKilled"));
    td_json_set(arena, end, TD_STR("startedAt"), golden_time_json(arena, run->now - 3 * TD_MINUTE));
    td_json_set(arena, end, TD_STR("finishedAt"),
                golden_time_json(arena, run->now - 2 * TD_MINUTE));
    td_json_append(list, item);
    td_json_set(arena, status, TD_STR("containerStatuses"), list);
}

static int make_pod(struct seed_case *run, const struct td_json *pod, struct td_error *err)
{
    struct td_arena *arena = run->arena;
    struct td_json *object = seed_object(arena, TD_STR("p"));
    struct td_json *meta = td_json_get(object, TD_STR("metadata"));
    golden_set_text(arena, meta, TD_STR("uid"), TD_STR("uid-p"));
    struct td_json *owner = td_json_new_object(arena);
    golden_set_text(arena, owner, TD_STR("apiVersion"), TD_STR("apps/v1"));
    golden_set_text(arena, owner, TD_STR("kind"), TD_STR("ReplicaSet"));
    golden_set_text(arena, owner, TD_STR("name"), TD_STR("web"));
    golden_set_text(arena, owner, TD_STR("uid"), TD_STR("uid-web"));
    td_json_set(arena, owner, TD_STR("controller"), td_json_new_bool(arena, true));
    struct td_json *owners = td_json_new_array(arena);
    td_json_append(owners, owner);
    td_json_set(arena, meta, TD_STR("ownerReferences"), owners);
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    const struct td_json *containers = td_json_get(pod, TD_STR("containers"));
    set_copy(arena, spec, TD_STR("containers"), containers);
    set_copy(arena, spec, TD_STR("resources"), td_json_get(pod, TD_STR("resources")));
    struct td_json *status = td_json_ensure_object(arena, object, TD_STR("status"));
    golden_set_text(arena, status, TD_STR("phase"), TD_STR("Running"));
    set_copy(arena, status, TD_STR("startTime"), td_json_get(pod, TD_STR("startTime")));
    if (td_json_get_bool(pod, TD_STR("quickOOM"), false)) {
        add_quick_oom(run, status, golden_text(td_json_first_child(containers), TD_STR("name")));
    }
    return td_pod_decode(arena, object, &run->pod, err);
}

static void seed_init(struct seed_case *run, struct td_arena *arena, const struct td_json *in)
{
    *run = (struct seed_case){.arena = arena, .in = in, .now = golden_time(in, TD_STR("now"))};
    run->config = td_updater_config_default();
    run->config.update.threshold = golden_double(in, TD_STR("threshold"), 0.1);
    run->config.update.lifetime = golden_duration(in, TD_STR("lifetime"), 12 * TD_HOUR);
    run->config.restriction.min_replicas = 1;
    run->config.in_place_ignores_requirements =
        td_json_get_bool(in, TD_STR("inPlaceIgnoresEvictionRequirements"), false);
    run->gates.in_place = true;
    run->workload = (struct td_workload){
        .namespace = TD_STR("default"),
        .kind = TD_STR("ReplicaSet"),
        .name = TD_STR("web"),
        .has_replicas = true,
        .replicas = 1,
    };
    td_updater_state_init(&run->state);
}

static struct td_update_answer seed_judge(struct seed_case *run, bool is_moved)
{
    const struct td_update_question question = {
        .vpa = &run->vpa,
        .pod = &run->pod,
        .recommendation = &run->vpa.recommendation,
        .config = &run->config.update,
        .gates = &run->gates,
        .now = run->now,
        .is_moved = is_moved,
    };
    return td_update_judge(run->arena, &question);
}

/* What a pass does with the pod, in order. */
static int seed_actions(struct seed_case *run, struct td_json **ret, struct td_error *err)
{
    const struct td_vpa *vpas[] = {&run->vpa};
    struct td_workload_source source = {.context = &run->workload,
                                        .get_workload = seed_workload,
                                        .get_resource = seed_resource,
                                        .get_scale = seed_scale};
    const struct td_updater_input input = {
        .arena = run->arena,
        .now = run->now,
        .config = &run->config,
        .gates = run->gates,
        .vpas = vpas,
        .vpa_count = 1,
        .pods = &run->pod,
        .pod_count = 1,
        .source = &source,
        .state = &run->state,
        .get_limits = seed_limits,
    };
    struct td_updater_pass pass;
    int code = td_updater_pass_begin(&pass, &input, err);
    if (code < 0) {
        return code;
    }
    bool is_refused = td_str_equal(golden_text(run->in, TD_STR("resize")), TD_STR("refused"));
    struct td_json *actions = td_json_new_array(run->arena);
    struct td_updater_action action;
    while (td_updater_pass_next(&pass, run->now, &action)) {
        if (action.call != TD_UPDATER_ANNOTATE) {
            td_json_append(actions, td_json_new_string(run->arena, action.call == TD_UPDATER_EVICT
                                                                       ? TD_STR("evict")
                                                                       : TD_STR("inplace")));
        }
        bool is_ok = !(is_refused && action.call == TD_UPDATER_RESIZE);
        td_updater_pass_result(&pass, is_ok ? TD_UPDATER_DONE : TD_UPDATER_FAILED, TD_STR("no"));
    }
    td_updater_pass_end(&pass);
    *ret = actions;
    return TD_OK;
}

static void set_bool(struct td_arena *arena, struct td_json *object, const char *key, bool value)
{
    td_json_set(arena, object, td_str_from(key), td_json_new_bool(arena, value));
}

static void set_double(struct td_arena *arena, struct td_json *object, const char *key,
                       double value)
{
    td_json_set(arena, object, td_str_from(key), td_json_new_double(arena, value));
}

static int role_change(struct seed_case *run, struct td_json **ret_out, struct td_error *err)
{
    struct td_arena *arena = run->arena;
    const struct td_json *previous = td_json_get(run->in, TD_STR("previous"));
    bool is_moved = false;
    if (td_json_get_bool(previous, TD_STR("seen"), false)) {
        td_str old = golden_text(previous, TD_STR("vpa"));
        struct td_pod_memory *memory = td_updater_state_pod(&run->state, &run->pod, NULL);
        td_updater_state_see(
            memory, old.len ? td_arena_format(arena, "default/%.*s", TD_STR_ARG(old)) : old, true);
        is_moved = run->gates.heterogeneous_workloads && !td_str_equal(old, run->vpa.meta.name);
    }
    struct td_update_answer answer = seed_judge(run, is_moved);
    struct td_json *actions;
    int code = seed_actions(run, &actions, err);
    if (code < 0) {
        return code;
    }
    struct td_json *out = td_json_new_object(arena);
    set_bool(arena, out, "moved", is_moved);
    set_bool(arena, out, "outside", answer.container.is_outside);
    set_double(arena, out, "resourceDiff", answer.container.resource_diff);
    set_bool(arena, out, "scaleUp", answer.container.is_scale_up);
    set_bool(arena, out, "accepted", answer.verdict == TD_UPDATE_ACCEPTED);
    set_bool(arena, out, "admitted",
             td_requirements_admit(arena, &run->vpa, &run->pod, &run->vpa.recommendation, false));
    golden_set_text(arena, out, TD_STR("action"),
                    actions->count > 0 ? td_json_first_child(actions)->text : TD_STR("none"));
    *ret_out = out;
    return TD_OK;
}

static int run_role_change(struct td_arena *arena, const struct td_json *in,
                           struct td_json **ret_out, struct td_error *err)
{
    struct seed_case run;
    seed_init(&run, arena, in);
    run.gates.heterogeneous_workloads = td_json_get_bool(in, TD_STR("gate"), false);
    const struct td_json *vpa = td_json_get(in, TD_STR("vpa"));
    int code =
        make_vpa(&run, golden_text(vpa, TD_STR("name")), golden_text(vpa, TD_STR("updateMode")),
                 td_json_get(vpa, TD_STR("evictionRequirements")),
                 td_json_get(vpa, TD_STR("recommendation")), err);
    code = code < 0 ? code : make_pod(&run, td_json_get(in, TD_STR("pod")), err);
    code = code < 0 ? code : role_change(&run, ret_out, err);
    td_updater_state_done(&run.state);
    return code;
}

static int pod_level(struct seed_case *run, struct td_json **ret_out, struct td_error *err)
{
    struct td_arena *arena = run->arena;
    struct td_update_answer answer = seed_judge(run, false);
    struct td_json *actions;
    int code = seed_actions(run, &actions, err);
    if (code < 0) {
        return code;
    }
    struct td_json *out = td_json_new_object(arena);
    set_bool(arena, out, "containerOutside", answer.container.is_outside);
    set_double(arena, out, "containerDiff", answer.container.resource_diff);
    set_bool(arena, out, "podChecked", answer.is_pod_checked);
    if (answer.is_pod_checked) {
        set_bool(arena, out, "podOutside", answer.pod.is_outside);
        set_double(arena, out, "podDiff", answer.pod.resource_diff);
    }
    set_bool(arena, out, "accepted", answer.verdict == TD_UPDATE_ACCEPTED);
    td_json_set(arena, out, TD_STR("actions"), actions);
    *ret_out = out;
    return TD_OK;
}

static int run_pod_level(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    struct seed_case run;
    seed_init(&run, arena, in);
    run.gates.pod_level_resources = td_json_get_bool(in, TD_STR("gate"), false);
    int code = make_vpa(&run, TD_STR("v"), golden_text(in, TD_STR("updateMode")), NULL,
                        td_json_get(in, TD_STR("recommendation")), err);
    code = code < 0 ? code : make_pod(&run, td_json_get(in, TD_STR("pod")), err);
    code = code < 0 ? code : pod_level(&run, ret_out, err);
    td_updater_state_done(&run.state);
    return code;
}

/* Members are equal; numbers within 1e-12. */
static bool is_same_judgement(const struct td_json *expected, const struct td_json *got)
{
    if (expected->count != got->count) {
        return false;
    }
    for (const struct td_json *item = td_json_first_child(expected); item; item = item->next) {
        double a = golden_double(expected, item->key, 0);
        double b = golden_double(got, item->key, 0);
        bool is_number = td_json_is(item, TD_JSON_TYPE_NUMBER);
        if (is_number ? fabs(a - b) > 1e-12 * fmax(1, fabs(a))
                      : !td_json_equal(item, td_json_get(got, item->key))) {
            return false;
        }
    }
    return true;
}

const struct golden_topic golden_vpa_pass[] = {
    {.name = "vpa/updater-pass", .run = run_pass, .is_same = is_same_pass},
    {.name = "seeds/role-change", .run = run_role_change, .is_same = is_same_judgement},
    {.name = "seeds/pod-level-updater", .run = run_pod_level, .is_same = is_same_judgement},
    {.name = NULL},
};
