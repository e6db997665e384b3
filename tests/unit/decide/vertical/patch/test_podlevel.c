/* Pod-level resources: sums, bounds, what is written, what the API server would accept. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "decide/vertical/patch/podlevel.h"
#include "decide/vertical/patch/podpatch.h"
#include "kube/patch/patch.h"
#include "unit/decide/support.h"
#include "unit/decide/vertical_support.h"

#define ARENA_BYTES ((size_t)64 << 20)

/* The proposal: 100, 120 and 150 Mi under a Pod LimitRange of at least 200 Mi are all 200 Mi. */
static void test_proposal_limit_range_moves_100_120_150_to_200(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_vpa vpa = vertical_vpa(
        &arena, "{\"status\":{\"recommendation\":{\"podRecommendation\":{\"lowerBound\":{"
                "\"memory\":\"100Mi\"},\"target\":{\"memory\":\"120Mi\"},\"upperBound\":{"
                "\"memory\":\"150Mi\"}}}}}");
    struct td_limit_ranges limits =
        vertical_limits(&arena, "[{\"type\":\"Pod\",\"min\":{\"memory\":\"200Mi\"}}]");
    struct td_cap_steps steps = {.items = NULL};
    struct td_pod_recommendation capped =
        td_pod_level_cap(&arena, &vpa.recommendation.pod, &limits.pod, NULL, &steps);
    assert_string_equal(vertical_list(&arena, &capped.target), "memory=200Mi");
    assert_string_equal(vertical_list(&arena, &capped.lower_bound), "memory=200Mi");
    assert_string_equal(vertical_list(&arena, &capped.upper_bound), "memory=200Mi");
    assert_int_equal(steps.count, 3);
    assert_string_equal(vertical_list(&arena, &vpa.recommendation.pod.target), "memory=120Mi");
}

#define MAIN_AND_SIDECAR                                                                           \
    "\"status\":{\"recommendation\":{\"containerRecommendations\":["                               \
    "{\"containerName\":\"main\",\"lowerBound\":{\"memory\":\"80Mi\",\"cpu\":\"20m\"},"            \
    "\"target\":{\"memory\":\"100Mi\",\"cpu\":\"30m\"},\"upperBound\":{\"memory\":\"120Mi\","      \
    "\"cpu\":\"50m\"}},{\"containerName\":\"sidecar1\",\"lowerBound\":{\"memory\":\"20Mi\","       \
    "\"cpu\":\"10m\"},\"target\":{\"memory\":\"25Mi\",\"cpu\":\"20m\"},\"upperBound\":{"           \
    "\"memory\":\"30Mi\",\"cpu\":\"30m\"}}]}}"

/* The proposal's example of a status, alone and under bounds of the pod. */
static void test_proposal_sums_and_scales_containers(void **state)
{
    (void)state;
    static const struct {
        const char *vpa;
        const char *pod_target, *pod_lower, *pod_upper, *main_target, *sidecar_target;
    } rows[] = {
        {"{\"spec\":{}," MAIN_AND_SIDECAR "}", "cpu=50m,memory=125Mi", "cpu=30m,memory=100Mi",
         "cpu=80m,memory=150Mi", "cpu=30m,memory=100Mi", "cpu=20m,memory=25Mi"},
        {"{\"spec\":{\"resourcePolicy\":{\"podPolicies\":{\"minAllowed\":{\"cpu\":\"75m\","
         "\"memory\":\"200Mi\"}}}}," MAIN_AND_SIDECAR "}",
         "cpu=75m,memory=200Mi", "cpu=45m,memory=160Mi", "cpu=120m,memory=240Mi",
         "cpu=45m,memory=160Mi", "cpu=30m,memory=40Mi"},
        {"{\"spec\":{\"resourcePolicy\":{\"podPolicies\":{\"maxAllowed\":{\"cpu\":\"25m\"},"
         "\"controlledResources\":[\"cpu\"]}}}," MAIN_AND_SIDECAR "}",
         "cpu=25m", "cpu=15m", "cpu=40m", "cpu=15m,memory=100Mi", "cpu=10m,memory=25Mi"},
        /* The maximum wins over the minimum, in one step. */
        {"{\"spec\":{\"resourcePolicy\":{\"podPolicies\":{\"minAllowed\":{\"cpu\":\"1\"},"
         "\"maxAllowed\":{\"cpu\":\"100m\"},\"controlledResources\":[\"cpu\"]}}}," MAIN_AND_SIDECAR
         "}",
         "cpu=100m", "cpu=60m", "cpu=160m", "cpu=60m,memory=100Mi", "cpu=40m,memory=25Mi"},
        /* A container's own policy wins over the pod's. */
        {"{\"spec\":{\"resourcePolicy\":{\"containerPolicies\":[{\"containerName\":\"main\","
         "\"maxAllowed\":{\"cpu\":\"40m\"}}],\"podPolicies\":{\"minAllowed\":{\"cpu\":\"100m\"},"
         "\"controlledResources\":[\"cpu\"]}}}," MAIN_AND_SIDECAR "}",
         "cpu=100m", "cpu=60m", "cpu=100m", "cpu=40m,memory=100Mi", "cpu=40m,memory=25Mi"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_vpa vpa = vertical_vpa(&arena, rows[i].vpa);
        struct td_recommendation made = td_recommendation_copy(&arena, &vpa.recommendation);
        td_pod_level_recommend(
            &arena,
            &(struct td_pod_level_terms){.use = {.has_cpu = true, .has_memory = true},
                                         .policy = &vpa.policy},
            &made, NULL);
        assert_true(made.pod.is_set);
        assert_string_equal(vertical_list(&arena, &made.pod.target), rows[i].pod_target);
        assert_string_equal(vertical_list(&arena, &made.pod.lower_bound), rows[i].pod_lower);
        assert_string_equal(vertical_list(&arena, &made.pod.upper_bound), rows[i].pod_upper);
        assert_string_equal(vertical_list(&arena, &made.containers[0].target), rows[i].main_target);
        assert_string_equal(vertical_list(&arena, &made.containers[1].target),
                            rows[i].sidecar_target);
    }
}

/* No pod with a stanza, nothing recommended at pod level. */
static void test_no_use_means_no_pod_recommendation(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_vpa vpa = vertical_vpa(&arena, "{\"spec\":{}," MAIN_AND_SIDECAR "}");
    struct td_pod_level_use use = {.has_cpu = false};
    struct td_pod pod = vertical_pod(&arena, "{\"metadata\":{},\"spec\":{\"containers\":[]}}");
    td_pod_level_use_add(&use, &pod);
    td_pod_level_recommend(&arena, &(struct td_pod_level_terms){.use = use, .policy = &vpa.policy},
                           &vpa.recommendation, NULL);
    assert_false(vpa.recommendation.pod.is_set);
    pod = vertical_pod(&arena,
                       "{\"metadata\":{},\"spec\":{\"resources\":{\"limits\":{\"cpu\":\"1\"}}}}");
    td_pod_level_use_add(&use, &pod);
    assert_true(use.has_cpu);
    assert_false(use.has_memory);
}

struct admission {
    const char *vpa;
    const char *pod;
    const char *limits;
    bool is_warning;
};

static struct td_pod_patch admit(struct td_arena *arena, const struct admission *admission,
                                 struct td_pod *ret_after)
{
    struct td_vpa vpa = vertical_vpa(arena, admission->vpa);
    struct td_pod pod = vertical_pod(arena, admission->pod);
    struct td_limit_ranges limits = vertical_limits(arena, admission->limits);
    struct td_pod_patch made = {.patches = NULL};
    struct td_json *patched = NULL;
    struct td_error err = TD_ERROR_INIT;
    const struct td_pod_patch_input input = {
        .pod = &pod,
        .vpa = &vpa,
        .limits = &limits,
        .gates = {.pod_level_resources = true, .cpu_startup_boost = true},
        .warns_of_limit_range = admission->is_warning};
    if (td_pod_patch(arena, &input, &made, &err) < 0 ||
        td_patch_json(arena, pod.tree, made.patches, &patched, &err) < 0 ||
        td_pod_decode(arena, patched, ret_after, &err) < 0) {
        fail_msg("%s", err.message);
    }
    return made;
}

/* The rules that an API server checks on a pod with resources of its own. */
static void assert_acceptable(struct td_arena *arena, const struct td_pod *pod)
{
    const td_str names[] = {TD_CPU, TD_MEMORY};
    const struct td_pod_resource_options options = {.skip_pod_level_resources = true,
                                                    .exclude_overhead = true};
    struct td_resource_list sum;
    assert_int_equal(td_pod_requests(arena, pod->tree, &options, &sum, NULL), TD_OK);
    for (size_t n = 0; n < 2; n++) {
        const struct td_quantity *request = td_resource_list_get(&pod->pod_requests, names[n]);
        const struct td_quantity *limit = td_resource_list_get(&pod->pod_limits, names[n]);
        const struct td_quantity *containers = td_resource_list_get(&sum, names[n]);
        assert_true(!request || !containers || td_quantity_compare(request, containers) >= 0);
        assert_true(!request || !limit || td_quantity_compare(limit, request) >= 0);
        for (size_t c = 0; c < pod->container_count; c++) {
            const struct td_quantity *own =
                td_resource_list_get(&pod->containers[c].spec_limits, names[n]);
            const struct td_quantity *asked =
                td_resource_list_get(&pod->containers[c].spec_requests, names[n]);
            assert_true(!own || !limit || td_quantity_compare(own, limit) <= 0);
            assert_true(!own || !asked || td_quantity_compare(own, asked) >= 0);
        }
    }
}

/* Random valid pods stay valid, whatever is recommended. */
static void test_patched_pods_are_acceptable(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 400; round++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        int32_t request = 100 + test_below(&seed, 400);
        td_str pod = td_arena_format(
            &arena,
            "{\"metadata\":{},\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"%dm\",\"memory\":"
            "\"1Gi\"},"
            "\"limits\":{\"cpu\":\"%dm\"}},\"initContainers\":[{\"name\":\"i\",\"resources\":{"
            "\"requests\":{\"cpu\":\"%dm\"},\"limits\":{\"cpu\":\"90m\"}}}],\"containers\":[{"
            "\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"50m\",\"memory\":\"100Mi\"},"
            "\"limits\":{\"cpu\":\"%dm\"}}},{\"name\":\"b\"},{\"name\":\"c\",\"resources\":{"
            "\"requests\":{\"cpu\":\"50m\"},\"limits\":{\"cpu\":\"50m\"}}}]}}",
            request, request + test_below(&seed, 300), test_below(&seed, 90),
            50 + test_below(&seed, 50));
        td_str vpa = td_arena_format(
            &arena,
            "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"startupBoost\":%s,\"resourcePolicy\":{"
            "\"podPolicies\":{\"controlledValues\":\"%s\"}}},\"status\":{\"recommendation\":{"
            "\"podRecommendation\":{\"target\":{\"cpu\":\"%dm\",\"memory\":\"%dMi\"}},"
            "\"containerRecommendations\":[{\"containerName\":\"a\",\"target\":{\"cpu\":\"%dm\","
            "\"memory\":\"%dMi\"}},{\"containerName\":\"b\",\"target\":{\"cpu\":\"1\"}},{"
            "\"containerName\":\"c\",\"target\":{\"cpu\":\"%dm\"}}]}}}",
            test_below(&seed, 2) ? "{\"cpu\":{\"type\":\"Factor\",\"factor\":3}}" : "null",
            test_below(&seed, 2) ? "RequestsOnly" : "RequestsAndLimits", 1 + test_below(&seed, 600),
            1 + test_below(&seed, 600), 1 + test_below(&seed, 400), 1 + test_below(&seed, 2000),
            1 + test_below(&seed, 400));
        td_str limits = td_arena_format(
            &arena, "[{\"type\":\"Pod\",\"min\":{\"cpu\":\"%dm\"},\"max\":{\"cpu\":\"%dm\"}}]",
            1 + test_below(&seed, 300), 300 + test_below(&seed, 300));
        struct td_pod after;
        struct td_pod_patch made = admit(
            &arena,
            &(struct admission){
                .vpa = vpa.ptr, .pod = pod.ptr, .limits = test_below(&seed, 2) ? limits.ptr : NULL},
            &after);
        assert_true(made.is_pod_level);
        assert_acceptable(&arena, &after);
        /* No request is added where there was none. */
        assert_int_equal(after.containers[1].spec_requests.count, 0);
    }
}

/* The annotation says what was done to the pod, in a clause of its own. */
static void test_updates_annotation_has_a_pod_clause(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_pod after;
    (void)admit(
        &arena,
        &(struct admission){
            .vpa = "{\"metadata\":{\"name\":\"v\"},\"status\":{\"recommendation\":{"
                   "\"podRecommendation\":{\"target\":{\"memory\":\"120Mi\"}},"
                   "\"containerRecommendations\":[{\"containerName\":\"a\",\"target\":{"
                   "\"memory\":\"300Mi\"}}]}}}",
            .pod = "{\"metadata\":{},\"spec\":{\"resources\":{\"requests\":{\"memory\":\"200Mi\"},"
                   "\"limits\":{\"memory\":\"200Mi\"}},\"containers\":[{\"name\":\"a\","
                   "\"resources\":{\"requests\":{\"memory\":\"100Mi\"},\"limits\":{"
                   "\"memory\":\"200Mi\"}}}]}}",
            .limits = "[{\"type\":\"Pod\",\"min\":{\"memory\":\"150Mi\"}}]"},
        &after);
    td_str text = td_json_get_str(after.meta.annotations, TD_STR("vpaUpdates"), TD_STR_EMPTY);
    assert_string_equal(
        td_arena_copy_str(&arena, text).ptr,
        "Pod resources updated by v: Pod: memory capped to fit Min in Pod LimitRange, memory "
        "request, memory limit, memory request raised to the sum of containers, memory limit "
        "raised to hold requests and init containers; container 0: memory limit lowered to the "
        "Pod limit, memory request, memory limit");
    assert_string_equal(vertical_list(&arena, &after.pod_requests), "memory=300Mi");
    assert_string_equal(vertical_list(&arena, &after.pod_limits), "memory=300Mi");
    assert_string_equal(vertical_list(&arena, &after.containers[0].spec_limits), "memory=300Mi");
}

/* A LimitRange for containers refuses such a pod, warns, or does not matter. */
static void test_container_limit_range_refuses_the_pod(void **state)
{
    (void)state;
    static const char stanza[] = "{\"metadata\":{},\"spec\":{\"resources\":{\"limits\":{\"cpu\":"
                                 "\"1\"}},\"containers\":[{\"name\":\"a\"}]}}";
    static const char plain[] = "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"a\"}]}}";
    static const char container[] = "[{\"type\":\"Container\",\"defaultRequest\":{\"cpu\":\"1\"}}]";
    static const struct {
        const char *pod, *limits, *mode;
        bool is_warning, is_rejected, has_message;
    } rows[] = {
        {stanza, container, "Recreate", false, true, true},
        {stanza, container, "Initial", false, true, true},
        {stanza, container, "Off", false, false, false},
        {stanza, container, "Recreate", true, false, true},
        {plain, container, "Recreate", false, false, false},
        {stanza, "[{\"type\":\"Pod\",\"max\":{\"cpu\":\"9\"}}]", "Recreate", false, false, false},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str vpa = td_arena_format(&arena,
                                     "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"updatePolicy\":{"
                                     "\"updateMode\":\"%s\"}}}",
                                     rows[i].mode);
        struct td_pod after;
        struct td_pod_patch made = admit(&arena,
                                         &(struct admission){.vpa = vpa.ptr,
                                                             .pod = rows[i].pod,
                                                             .limits = rows[i].limits,
                                                             .is_warning = rows[i].is_warning},
                                         &after);
        assert_int_equal(made.is_rejected, rows[i].is_rejected);
        assert_int_equal(made.message.len > 0, rows[i].has_message);
        assert_true(made.message.len == 0 ||
                    strstr(td_arena_copy_str(&arena, made.message).ptr, "LimitRange 'bounds'"));
        assert_true(!made.is_rejected || made.patches->count == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proposal_limit_range_moves_100_120_150_to_200),
        cmocka_unit_test(test_proposal_sums_and_scales_containers),
        cmocka_unit_test(test_no_use_means_no_pod_recommendation),
        cmocka_unit_test(test_patched_pods_are_acceptable),
        cmocka_unit_test(test_updates_annotation_has_a_pod_clause),
        cmocka_unit_test(test_container_limit_range_refuses_the_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
