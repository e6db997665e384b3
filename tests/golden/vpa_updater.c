/* Topics on single decisions of the updater. Whole passes are in vpa_pass.c. */
#include "golden/golden.h"

#include <stdlib.h>

#include "decide/vertical/patch/capping.h"
#include "decide/vertical/patch/resizepatch.h"
#include "decide/vertical/updater/priority.h"
#include "decide/vertical/updater/requirements.h"
#include "decide/vertical/updater/restriction.h"
#include "decide/vertical/updater/updater_state.h"
#include "golden/hpa_support.h"
#include "golden/updater_support.h"
#include "golden/vpa_support.h"

static int run_requirements(struct td_arena *arena, const struct td_json *in,
                            struct td_json **ret_out, struct td_error *err)
{
    struct td_vpa vpa;
    struct td_pod pod;
    int code = td_vpa_decode(arena, td_json_get(in, TD_STR("vpa")), &vpa, err);
    code = code < 0 ? code : td_pod_decode(arena, td_json_get(in, TD_STR("pod")), &pod, err);
    if (code < 0) {
        return code;
    }
    struct td_json *out = td_json_new_object(arena);
    bool is_admitted = td_requirements_admit(arena, &vpa, &pod, &vpa.recommendation, true);
    td_json_set(arena, out, TD_STR("admit"), td_json_new_bool(arena, is_admitted));
    *ret_out = out;
    return TD_OK;
}

static void set_copy(struct td_arena *arena, struct td_json *object, td_str key,
                     const struct td_json *value)
{
    if (value && value->type != TD_JSON_TYPE_NULL) {
        td_json_set(arena, object, key, td_json_copy(arena, value, false));
    }
}

/* {metadata, spec, status} of a VPA made from the pieces that the seeds' topics give. */
static int make_vpa(struct td_arena *arena, const struct td_json *update_policy,
                    const struct td_json *container_policies, const struct td_json *recommendation,
                    struct td_vpa *ret, struct td_error *err)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *meta = td_json_ensure_object(arena, object, TD_STR("metadata"));
    golden_set_text(arena, meta, TD_STR("name"), TD_STR("v"));
    golden_set_text(arena, meta, TD_STR("namespace"), TD_STR("default"));
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    set_copy(arena, spec, TD_STR("updatePolicy"), update_policy);
    if (td_json_is(container_policies, TD_JSON_TYPE_ARRAY)) {
        set_copy(arena, td_json_ensure_object(arena, spec, TD_STR("resourcePolicy")),
                 TD_STR("containerPolicies"), container_policies);
    }
    struct td_json *status = td_json_ensure_object(arena, object, TD_STR("status"));
    if (td_json_is(recommendation, TD_JSON_TYPE_ARRAY)) {
        set_copy(arena, td_json_ensure_object(arena, status, TD_STR("recommendation")),
                 TD_STR("containerRecommendations"), recommendation);
    } else {
        set_copy(arena, status, TD_STR("recommendation"), recommendation);
    }
    return td_vpa_decode(arena, object, ret, err);
}

static int make_pod(struct td_arena *arena, const struct td_json *pod, struct td_pod *ret,
                    struct td_error *err)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *meta = td_json_ensure_object(arena, object, TD_STR("metadata"));
    golden_set_text(arena, meta, TD_STR("name"), TD_STR("p"));
    golden_set_text(arena, meta, TD_STR("namespace"), TD_STR("default"));
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    set_copy(arena, spec, TD_STR("containers"), td_json_get(pod, TD_STR("containers")));
    set_copy(arena, spec, TD_STR("resources"), td_json_get(pod, TD_STR("resources")));
    struct td_json *status = td_json_ensure_object(arena, object, TD_STR("status"));
    golden_set_text(arena, status, TD_STR("phase"), TD_STR("Running"));
    set_copy(arena, status, TD_STR("startTime"), td_json_get(pod, TD_STR("startTime")));
    return td_pod_decode(arena, object, ret, err);
}

static int run_seed_requirements(struct td_arena *arena, const struct td_json *in,
                                 struct td_json **ret_out, struct td_error *err)
{
    struct td_vpa vpa;
    struct td_pod pod;
    int code = make_vpa(arena, td_json_get(in, TD_STR("updatePolicy")),
                        td_json_get(in, TD_STR("containerPolicies")),
                        td_json_get(in, TD_STR("recommendation")), &vpa, err);
    code = code < 0 ? code : make_pod(arena, in, &pod, err);
    if (code < 0) {
        return code;
    }
    bool is_ignored = td_str_equal(golden_text(in, TD_STR("action")), TD_STR("inplace")) &&
                      td_json_get_bool(in, TD_STR("inPlaceIgnoresEvictionRequirements"), false);
    bool is_admitted =
        is_ignored || td_requirements_admit(arena, &vpa, &pod, &vpa.recommendation, false);
    struct td_json *out = td_json_new_object(arena);
    td_json_set(arena, out, TD_STR("admit"), td_json_new_bool(arena, is_admitted));
    *ret_out = out;
    return TD_OK;
}

static bool is_same_admit(const struct td_json *expected, const struct td_json *got)
{
    return td_json_equal(td_json_get(expected, TD_STR("admit")), td_json_get(got, TD_STR("admit")));
}

/* One case of vpa/eviction-restriction. */
struct restriction_case {
    struct td_arena *arena;
    const struct td_json *in;
    struct golden_vertical_pods pods;
    struct td_restriction restriction;
    struct td_updater_state state;
    struct td_vpa_gates gates;
    td_time now;
    const struct td_vpa *vpa;
};

static bool has_resize_patch(struct restriction_case *run, const struct td_pod *pod)
{
    static const struct td_limit_ranges no_limits;
    const struct td_resize_input input = {
        .pod = pod, .vpa = run->vpa, .limits = &no_limits, .gates = run->gates, .now = run->now};
    struct td_resize_patch patch;
    return td_resize_patch(run->arena, &input, &patch, NULL) == TD_OK;
}

static struct td_json *step_result(struct restriction_case *run, td_str op,
                                   const struct td_pod *pod)
{
    struct td_arena *arena = run->arena;
    struct td_restriction *restriction = &run->restriction;
    const struct td_json *fail = td_json_get(run->in, TD_STR("fail"));
    td_str name = pod->meta.name;
    if (td_str_equal(op, TD_STR("canEvict"))) {
        return td_json_new_bool(arena, td_restriction_can_evict(restriction, pod, NULL) ==
                                           TD_EVICTION_YES);
    }
    if (td_str_equal(op, TD_STR("canUnboost"))) {
        return td_json_new_bool(arena, td_restriction_can_revert_boost(restriction, pod));
    }
    if (td_str_equal(op, TD_STR("canInPlaceUpdate"))) {
        const struct td_recommendation *failed =
            td_updater_state_failed(arena, td_updater_state_find(&run->state, pod));
        static const td_str names[] = {
            [TD_IN_PLACE_APPROVED] = TD_STR_INIT("InPlaceApproved"),
            [TD_IN_PLACE_DEFERRED] = TD_STR_INIT("InPlaceDeferred"),
            [TD_IN_PLACE_EVICT] = TD_STR_INIT("InPlaceEvict"),
            [TD_IN_PLACE_INFEASIBLE] = TD_STR_INIT("InPlaceInfeasible"),
            [TD_IN_PLACE_INFEASIBLE_CACHED] = TD_STR_INIT("InPlaceInfeasibleCached"),
        };
        return td_json_new_string(
            arena, names[td_restriction_in_place(restriction, pod, failed).decision]);
    }
    bool is_evict = td_str_equal(op, TD_STR("evict"));
    td_str key = td_arena_format(arena, "%s:%.*s", is_evict ? "evict" : "resize", TD_STR_ARG(name));
    bool is_ok = is_evict ? td_restriction_can_evict(restriction, pod, NULL) == TD_EVICTION_YES
                          : td_restriction_view(restriction, pod) && has_resize_patch(run, pod);
    if (!is_ok || td_json_get(fail, key)) {
        return td_json_new_string(arena, TD_STR("error: refused"));
    }
    if (is_evict) {
        td_restriction_evicted(restriction, pod);
    } else {
        td_restriction_resized(restriction, pod);
    }
    return td_json_new_string(arena, TD_STR("ok"));
}

static struct td_json *run_steps(struct restriction_case *run)
{
    struct td_json *results = td_json_new_array(run->arena);
    const struct td_json *steps = td_json_get(run->in, TD_STR("steps"));
    for (const struct td_json *step = td_json_first_child(steps); step; step = step->next) {
        for (size_t i = 0; i < run->pods.count; i++) {
            if (td_str_equal(run->pods.items[i].meta.name, golden_text(step, TD_STR("pod")))) {
                td_json_append(results, step_result(run, golden_text(step, TD_STR("op")),
                                                    &run->pods.items[i]));
                break;
            }
        }
    }
    return results;
}

static int run_restriction(struct td_arena *arena, const struct td_json *in,
                           struct td_json **ret_out, struct td_error *err)
{
    struct restriction_case run = {.arena = arena, .in = in};
    struct golden_workloads workloads;
    struct td_vpa vpa;
    int code = golden_read_workloads(arena, in, &workloads, err);
    code = code < 0 ? code : td_vpa_decode(arena, td_json_get(in, TD_STR("vpa")), &vpa, err);
    code = code < 0
               ? code
               : golden_read_vertical_pods(arena, td_json_get(in, TD_STR("pods")), &run.pods, err);
    if (code < 0) {
        return code;
    }
    run.vpa = &vpa;
    struct td_workload_source source = golden_source(&workloads);
    const struct td_json *config = td_json_get(in, TD_STR("config"));
    struct td_restriction_config limits = golden_restriction_config(config);
    struct td_vpa_gates gates = golden_vpa_gates(td_json_get(in, TD_STR("gates")));
    td_updater_state_init(&run.state);
    code = golden_read_state(arena, in, &run.pods, &run.state, err);
    if (code < 0) {
        td_updater_state_done(&run.state);
        return code;
    }
    run.gates = gates;
    run.now = golden_time(in, TD_STR("now"));
    struct td_groups groups;
    td_groups_init(&groups, arena);
    const struct td_pod **pods = td_arena_array(arena, const struct td_pod *, run.pods.count);
    for (size_t i = 0; i < run.pods.count; i++) {
        (void)td_groups_add(&groups, &run.pods.items[i]);
        pods[i] = &run.pods.items[i];
    }
    struct td_restriction_input input = {
        .arena = arena,
        .groups = &groups,
        .source = &source,
        .vpa = &vpa,
        .pods = pods,
        .pod_count = run.pods.count,
        .config = &limits,
        .gates = &gates,
        .state = &run.state,
        .now = run.now,
    };
    td_restriction_init(&run.restriction, &input);
    struct td_json *out = td_json_new_object(arena);
    td_json_set(arena, out, TD_STR("results"), run_steps(&run));
    td_json_set(arena, out, TD_STR("lastInPlaceAttempt"), golden_resizing_json(arena, &run.state));
    td_restriction_done(&run.restriction);
    td_groups_done(&groups);
    td_updater_state_done(&run.state);
    *ret_out = out;
    return TD_OK;
}

/* That a call fails is what counts, not the text. */
static bool is_same_results(const struct td_json *expected, const struct td_json *got)
{
    if (!td_json_equal(td_json_get(expected, TD_STR("lastInPlaceAttempt")),
                       td_json_get(got, TD_STR("lastInPlaceAttempt")))) {
        return false;
    }
    const struct td_json *a = td_json_first_child(td_json_get(expected, TD_STR("results")));
    const struct td_json *b = td_json_first_child(td_json_get(got, TD_STR("results")));
    for (; a && b; a = a->next, b = b->next) {
        bool are_errors = td_json_is(a, TD_JSON_TYPE_STRING) &&
                          td_json_is(b, TD_JSON_TYPE_STRING) &&
                          td_str_starts_with(a->text, TD_STR("error: ")) &&
                          td_str_starts_with(b->text, TD_STR("error: "));
        if (!are_errors && !td_json_equal(a, b)) {
            return false;
        }
    }
    return !a && !b;
}

static struct td_json *priority_json(struct td_arena *arena,
                                     const struct td_update_priority *priority)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set(arena, object, TD_STR("outsideRecommendedRange"),
                td_json_new_bool(arena, priority->is_outside));
    td_json_set(arena, object, TD_STR("scaleUp"), td_json_new_bool(arena, priority->is_scale_up));
    td_json_set(arena, object, TD_STR("resourceDiff"),
                td_json_new_double(arena, priority->resource_diff));
    return object;
}

struct ranked {
    const struct td_pod *pod;
    const struct td_recommendation *recommendation;
    struct td_update_answer answer;
    size_t position;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *left = a;
    const struct ranked *right = b;
    int order = td_update_priority_compare(&left->answer.priority, &right->answer.priority);
    return order != 0 ? order : (left->position < right->position ? -1 : 1);
}

static struct td_update_config update_config(const struct td_json *config)
{
    return (struct td_update_config){
        .threshold = golden_double(config, TD_STR("minChangePriority"), 0.1),
        .lifetime = golden_duration(config, TD_STR("podLifetimeUpdateThreshold"), 0),
        .oom_threshold = golden_duration(config, TD_STR("evictAfterOOMThreshold"), 0),
    };
}

/* The answer for one pod of vpa/update-priority. */
static int rank_pod(struct td_arena *arena, const struct td_json *in, const struct td_vpa *vpa,
                    struct ranked *ranked, struct td_error *err)
{
    const struct td_pod *pod = ranked->pod;
    struct td_limit_ranges limits;
    int code = golden_limit_ranges(arena, td_json_get(in, TD_STR("limitRanges")),
                                   pod->meta.namespace, &limits, err);
    if (code < 0) {
        return code;
    }
    const struct td_capping capping = {
        .pod = pod,
        .recommendation = vpa->has_recommendation ? &vpa->recommendation : NULL,
        .policy = &vpa->policy,
        .container_limits = td_limit_summary_or_null(&limits.container),
        .pod_limits = td_limit_summary_or_null(&limits.pod),
    };
    struct td_capped *capped = td_arena_new(arena, struct td_capped);
    td_cap_for_pod(arena, &capping, capped);
    ranked->recommendation = &capped->recommendation;
    struct td_recommendation failed;
    const struct td_json *attempt =
        td_json_get(td_json_get(in, TD_STR("infeasibleAttempts")), pod->meta.uid);
    code = attempt ? td_recommendation_decode(arena, attempt, &failed, err) : TD_OK;
    if (code < 0) {
        return code;
    }
    struct td_update_config config = update_config(td_json_get(in, TD_STR("config")));
    struct td_vpa_gates gates = golden_vpa_gates(td_json_get(in, TD_STR("gates")));
    const struct td_update_question question = {.vpa = vpa,
                                                .pod = pod,
                                                .recommendation = ranked->recommendation,
                                                .failed = attempt ? &failed : NULL,
                                                .config = &config,
                                                .gates = &gates,
                                                .now = golden_time(in, TD_STR("now"))};
    ranked->answer = td_update_judge(arena, &question);
    return TD_OK;
}

static int run_priority(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                        struct td_error *err)
{
    struct td_vpa vpa;
    struct golden_vertical_pods pods;
    int code = td_vpa_decode(arena, td_json_get(in, TD_STR("vpa")), &vpa, err);
    code = code < 0 ? code
                    : golden_read_vertical_pods(arena, td_json_get(in, TD_STR("pods")), &pods, err);
    if (code < 0) {
        return code;
    }
    struct td_json *out = td_json_new_object(arena);
    struct td_json *priorities = td_json_ensure_object(arena, out, TD_STR("priorities"));
    struct td_json *accepted = td_json_new_array(arena);
    struct td_json *order = td_json_new_array(arena);
    struct ranked *ranked = td_arena_array(arena, struct ranked, pods.count);
    size_t count = 0;
    for (size_t i = 0; i < pods.count; i++) {
        struct ranked one = {.pod = &pods.items[i], .position = i};
        code = rank_pod(arena, in, &vpa, &one, err);
        if (code < 0) {
            return code;
        }
        td_json_set(arena, priorities, one.pod->meta.name,
                    priority_json(arena, &one.answer.priority));
        if (one.answer.verdict == TD_UPDATE_ACCEPTED) {
            td_json_append(accepted, td_json_new_string(arena, one.pod->meta.name));
            ranked[count++] = one;
        }
    }
    qsort(ranked, count, sizeof(ranked[0]), compare_ranked);
    bool is_asked = td_json_get_bool(in, TD_STR("evictionAdmission"), false);
    for (size_t i = 0; i < count; i++) {
        if (!is_asked ||
            td_requirements_admit(arena, &vpa, ranked[i].pod, ranked[i].recommendation, true)) {
            td_json_append(order, td_json_new_string(arena, ranked[i].pod->meta.name));
        }
    }
    td_json_set(arena, out, TD_STR("accepted"), accepted);
    td_json_set(arena, out, TD_STR("order"), order);
    *ret_out = out;
    return TD_OK;
}

/* Numbers of priorities are compared as doubles: the texts have different lengths. */
static bool is_same_priority(const struct td_json *expected, const struct td_json *got)
{
    const struct td_json *wanted = td_json_get(expected, TD_STR("priorities"));
    const struct td_json *made = td_json_get(got, TD_STR("priorities"));
    if (!td_json_equal(td_json_get(expected, TD_STR("accepted")),
                       td_json_get(got, TD_STR("accepted"))) ||
        !td_json_equal(td_json_get(expected, TD_STR("order")), td_json_get(got, TD_STR("order"))) ||
        wanted->count != made->count) {
        return false;
    }
    for (const struct td_json *item = td_json_first_child(wanted); item; item = item->next) {
        const struct td_json *other = td_json_get(made, item->key);
        double a = golden_double(item, TD_STR("resourceDiff"), -1);
        double b = golden_double(other, TD_STR("resourceDiff"), -2);
        td_str keys[] = {TD_STR("outsideRecommendedRange"), TD_STR("scaleUp")};
        if (memcmp(&a, &b, sizeof(a)) != 0 ||
            !td_json_equal(td_json_get(item, keys[0]), td_json_get(other, keys[0])) ||
            !td_json_equal(td_json_get(item, keys[1]), td_json_get(other, keys[1]))) {
            return false;
        }
    }
    return true;
}

const struct golden_topic golden_vpa_updater[] = {
    {.name = "vpa/eviction-requirements", .run = run_requirements},
    {.name = "vpa/eviction-restriction", .run = run_restriction, .is_same = is_same_results},
    {.name = "vpa/update-priority", .run = run_priority, .is_same = is_same_priority},
    {.name = "seeds/eviction-requirements-eval",
     .run = run_seed_requirements,
     .is_same = is_same_admit},
    {.name = NULL},
};
