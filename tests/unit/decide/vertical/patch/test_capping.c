/* Capping for a pod: proportional limits, LimitRanges, policies, the largest node. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "decide/vertical/patch/capping.h"
#include "decide/vertical/patch/proportional.h"
#include "unit/decide/support.h"
#include "unit/decide/vertical_support.h"

#define ARENA_BYTES ((size_t)256 << 20)

/* A limit keeps its ratio to the request, or says why not. */
static void test_proportional_limit_keeps_ratio(void **state)
{
    (void)state;
    static const struct {
        const char *resource, *limit, *request, *recommended, *default_limit;
        const char *expected; /* NULL: not set */
        const char *note;     /* a part of it; NULL: none */
    } rows[] = {
        {"cpu", "2", "1", "500m", NULL, "1", NULL},
        {"cpu", "1", "3", "100m", NULL, "33m", NULL},
        {"memory", "3", "2", "5", NULL, "7", NULL},
        {"memory", NULL, "1Gi", "2Gi", "2Gi", "4Gi", NULL},
        {"memory", NULL, "1Gi", "2Gi", NULL, NULL, "originalLimit"},
        {"cpu", "0", "1", "1", "0", NULL, "originalLimit"},
        {"cpu", "1", "1", "0", NULL, NULL, "recommendedRequest"},
        {"cpu", "1", NULL, "70m", NULL, "70m", NULL},
        {"memory", "9E", "1", "9E", NULL, "9223372036854775807", "int64"},
        {"cpu", "9P", "1m", "9P", NULL, "9223372036854775807m", "int64"},
        {"memory", "8Ei", "4Ei", "1Gi", NULL, "2147483647", NULL},
        {"cpu", "100000T", "100000T", "1", NULL, "1", NULL},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *texts[] = {rows[i].limit, rows[i].request, rows[i].recommended,
                               rows[i].default_limit};
        struct td_quantity values[4];
        for (size_t v = 0; v < 4; v++) {
            values[v] = vertical_quantity(&arena, texts[v] ? texts[v] : "0");
        }
        const struct td_proportion proportion = {
            .limit = texts[0] ? &values[0] : NULL,
            .request = texts[1] ? &values[1] : NULL,
            .recommended = texts[2] ? &values[2] : NULL,
            .default_limit = texts[3] ? &values[3] : NULL,
        };
        struct td_proportional_limit made =
            td_proportional_limit(td_str_from(rows[i].resource), &proportion);
        assert_int_equal(made.is_set, rows[i].expected != NULL);
        if (rows[i].expected) {
            struct td_quantity expected = vertical_quantity(&arena, rows[i].expected);
            assert_int_equal(td_quantity_compare(&made.limit, &expected), 0);
        }
        assert_int_equal(made.note != NULL, rows[i].note != NULL);
        assert_true(!rows[i].note || strstr(made.note, rows[i].note));
    }
}

/* Scaling never divides by zero and rounds as asked. */
static void test_scale_rounds_and_survives_zero(void **state)
{
    (void)state;
    struct td_quantity three = td_quantity_new(3, TD_QUANTITY_DECIMAL_SI);
    struct td_quantity two = td_quantity_new(2, TD_QUANTITY_DECIMAL_SI);
    struct td_quantity zero = td_quantity_new(0, TD_QUANTITY_DECIMAL_SI);
    struct td_quantity minus = td_quantity_new(-3, TD_QUANTITY_DECIMAL_SI);
    td_str memory = TD_STR("memory");
    struct td_quantity got = td_scale_quantity(memory, &three, &three, &zero, TD_ROUND_DOWN, NULL);
    assert_int_equal(td_quantity_value(&got), 3);
    got = td_scale_quantity(memory, &three, &three, &two, TD_ROUND_DOWN, NULL);
    assert_int_equal(td_quantity_value(&got), 4);
    got = td_scale_quantity(memory, &three, &three, &two, TD_ROUND_UP, NULL);
    assert_int_equal(td_quantity_value(&got), 5);
    got = td_scale_quantity(memory, &minus, &three, &two, TD_ROUND_DOWN, NULL);
    assert_int_equal(td_quantity_value(&got), -5);
}

/* Caps one VPA for one pod under one spec.limits list. */
static struct td_capped cap(struct td_arena *arena, const char *vpa_text, const char *pod_text,
                            const char *limits_text, const struct td_resource_list *node)
{
    struct td_vpa *vpa = td_arena_new(arena, struct td_vpa);
    struct td_pod *pod = td_arena_new(arena, struct td_pod);
    struct td_limit_ranges limits = vertical_limits(arena, limits_text);
    struct td_capped capped;
    *vpa = vertical_vpa(arena, vpa_text);
    *pod = vertical_pod(arena, pod_text);
    td_cap_for_pod(arena,
                   &(struct td_capping){.pod = pod,
                                        .recommendation =
                                            vpa->has_recommendation ? &vpa->recommendation : NULL,
                                        .policy = &vpa->policy,
                                        .container_limits = &limits.container,
                                        .pod_limits = &limits.pod,
                                        .largest_node = node},
                   &capped);
    return capped;
}

#define VPA(recommendations)                                                                       \
    "{\"spec\":{},\"status\":{\"recommendation\":{\"containerRecommendations\":[" recommendations  \
    "]}}}"

static const char two_pod[] = "{\"spec\":{\"containers\":["
                              "{\"name\":\"c1\",\"resources\":{\"requests\":{\"memory\":\"100Mi\"},"
                              "\"limits\":{\"memory\":\"200Mi\"}}},{\"name\":\"c2\"}]}}";

/* The pod-level proposal: targets 120 and 30 Mi under a Pod LimitRange of at least 200 Mi. */
static void test_proposal_limit_range_scales_120_and_30_to_160_and_40(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_capped capped =
        cap(&arena,
            VPA("{\"containerName\":\"c1\",\"target\":{\"memory\":\"120Mi\"}},"
                "{\"containerName\":\"c2\",\"target\":{\"memory\":\"30Mi\"}}"),
            two_pod, "[{\"type\":\"Pod\",\"min\":{\"memory\":\"200Mi\"}}]", NULL);
    assert_string_equal(vertical_list(&arena, &capped.recommendation.containers[0].target),
                        "memory=160Mi");
    assert_string_equal(vertical_list(&arena, &capped.recommendation.containers[1].target),
                        "memory=40Mi");
    assert_int_equal(capped.steps.count, 2);
    const struct td_cap_step *step = &capped.steps.items[0];
    assert_true(td_str_equal(step->container, TD_STR("c1")));
    assert_true(td_str_equal(step->resource, TD_STR("memory")));
    assert_int_equal(step->value, TD_CAP_TARGET);
    assert_string_equal(td_quantity_text(&arena, &step->before).ptr, "120Mi");
    assert_string_equal(td_quantity_text(&arena, &step->after).ptr, "160Mi");
    assert_true(
        td_str_equal(td_cap_rule_text(step->rule), TD_STR("capped to fit Min in Pod LimitRange")));
}

/* Inputs on which upstream panics or writes -1 byte have an answer: what is not spoken of stays. */
static void test_pod_limit_range_hazards_have_answers(void **state)
{
    (void)state;
    static const char bounded[] = "[{\"type\":\"Pod\",\"max\":{\"cpu\":\"100m\",\"memory\":"
                                  "\"100Mi\"},\"min\":{\"memory\":\"1Mi\"}}]";
    static const char full[] =
        "{\"name\":\"app\",\"resources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"1Gi\"},"
        "\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}}}";
    static const struct {
        const char *what, *vpa, *other_container, *expected;
    } rows[] = {
        {"an inserted entry has no bounds to scale",
         VPA("{\"containerName\":\"other\",\"target\":{\"memory\":\"1Gi\"},\"upperBound\":"
             "{\"memory\":\"2Gi\"},\"lowerBound\":{\"memory\":\"1Gi\"}}"),
         "{\"name\":\"other\",\"resources\":{\"limits\":{\"memory\":\"1Gi\"}}}",
         "cpu=0,memory=50Mi"},
        {"a container with neither entry nor request",
         VPA("{\"containerName\":\"app\",\"target\":{\"memory\":\"1Gi\"}}"), "{\"name\":\"other\"}",
         "memory=100Mi"},
        {"an entry without a list",
         VPA("{\"containerName\":\"app\"},{\"containerName\":\"other\",\"target\":{\"memory\":"
             "\"1Gi\"}}"),
         "{\"name\":\"other\",\"resources\":{\"limits\":{\"memory\":\"1Gi\"}}}", ""},
        {"an entry that lacks memory keeps its request",
         VPA("{\"containerName\":\"app\",\"target\":{\"cpu\":\"50m\"}},{\"containerName\":"
             "\"other\",\"target\":{\"memory\":\"1Gi\"}}"),
         "{\"name\":\"other\",\"resources\":{\"limits\":{\"memory\":\"1Gi\"}}}", "cpu=50m"},
        {"a share below one byte",
         VPA("{\"containerName\":\"app\",\"target\":{\"memory\":\"1\"}},{\"containerName\":"
             "\"other\",\"target\":{\"memory\":\"900Gi\"}}"),
         "{\"name\":\"other\",\"resources\":{\"limits\":{\"memory\":\"1Gi\"}}}", "memory=0"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str pod = td_arena_format(&arena, "{\"spec\":{\"containers\":[%s,%s]}}", full,
                                     rows[i].other_container);
        struct td_capped capped = cap(&arena, rows[i].vpa, pod.ptr, bounded, NULL);
        print_message("%s\n", rows[i].what);
        assert_string_equal(vertical_list(&arena, &capped.recommendation.containers[0].target),
                            rows[i].expected);
        for (size_t c = 0; c < capped.recommendation.container_count; c++) {
            const struct td_resource_list *target = &capped.recommendation.containers[c].target;
            for (size_t r = 0; r < target->count; r++) {
                assert_true(td_quantity_sign(&target->items[r].quantity) >= 0);
            }
        }
    }
}

/* What stays as it is takes part of the room under a Pod LimitRange's max, and the rest shares what
 * is left: 1Gi less what "b" and the sidecar keep. */
static void test_pod_max_leaves_room_for_what_is_kept(void **state)
{
    (void)state;
#define APP "{\"containerName\":\"a\",\"target\":{\"cpu\":\"1\",\"memory\":\"900Mi\"}}"
#define SPEC(spec, recommendations)                                                                \
    "{\"spec\":{" spec                                                                             \
    "},\"status\":{\"recommendation\":{\"containerRecommendations\":[" recommendations "]}}}"
#define REQUESTS_ONLY                                                                              \
    "\"resourcePolicy\":{\"containerPolicies\":[{\"containerName\":\"b\","                         \
    "\"controlledValues\":\"RequestsOnly\"}]}"
    static const char pod[] =
        "{\"spec\":{\"containers\":["
        "{\"name\":\"a\",\"resources\":{\"requests\":{\"memory\":\"128Mi\"},"
        "\"limits\":{\"memory\":\"256Mi\"}}},"
        "{\"name\":\"b\",\"resources\":{\"requests\":{\"memory\":\"256Mi\"},"
        "\"limits\":{\"memory\":\"512Mi\"}}}],\"initContainers\":["
        "{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":{\"limits\":{\"memory\":"
        "\"100Mi\"}}},{\"name\":\"i\",\"resources\":{\"limits\":{\"memory\":\"900Mi\"}}}]}}";
    static const struct {
        const char *what, *vpa, *expected_a, *expected_b;
    } rows[] = {
        {"b has no recommendation", SPEC("", APP), "cpu=1,memory=206Mi",
         "memory=256Mi"}, /* (1024-512-100) / 2 */
        {"memory of b is not controlled",
         SPEC("", APP ",{\"containerName\":\"b\",\"target\":{\"cpu\":\"1\"}}"),
         "cpu=1,memory=206Mi", "cpu=1"},
        {"only requests of b are controlled",
         SPEC(REQUESTS_ONLY, APP ",{\"containerName\":\"b\",\"target\":{\"memory\":\"64Mi\"}}"),
         "cpu=1,memory=206Mi", "memory=64Mi"},
        {"all is controlled",
         SPEC("", APP ",{\"containerName\":\"b\",\"target\":{\"memory\":\"100Mi\"}}"),
         "cpu=1,memory=435997900", "memory=48444211"}, /* (1024-100) / 2 as 9 to 1 */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_capped capped = cap(&arena, rows[i].vpa, pod,
                                      "[{\"type\":\"Pod\",\"max\":{\"memory\":\"1Gi\"}}]", NULL);
        print_message("%s\n", rows[i].what);
        assert_int_equal(capped.recommendation.container_count, 2);
        assert_string_equal(vertical_list(&arena, &capped.recommendation.containers[0].target),
                            rows[i].expected_a);
        assert_string_equal(vertical_list(&arena, &capped.recommendation.containers[1].target),
                            rows[i].expected_b);
    }
}

static uint64_t next_random(uint64_t *seed)
{
    *seed += 0x9e3779b97f4a7c15;
    uint64_t z = *seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Random pods of which some containers are controlled: the limits that follow never add up to more
 * than the max, unless what is kept does so alone. */
static void test_pods_under_a_pod_max_would_be_accepted(void **state)
{
    (void)state;
    uint64_t seed = 20;
    size_t capped_count = 0;
    for (size_t turn = 0; turn < 20000; turn++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        td_auto_buf pod;
        td_auto_buf vpa;
        td_buf_init(&pod, 1 << 16);
        td_buf_init(&vpa, 1 << 16);
        int64_t request[4];
        int64_t limit[4];
        int64_t kept = 0;
        size_t count = 1 + next_random(&seed) % 4;
        for (size_t i = 0; i < count; i++) {
            request[i] = 1 + (int64_t)(next_random(&seed) % 1000);
            limit[i] = request[i] + (int64_t)(next_random(&seed) % 1000);
            (void)td_buf_append_format(
                &pod,
                "%s{\"name\":\"c%zu\",\"resources\":{\"requests\":{\"memory\":"
                "\"%lld\"},\"limits\":{\"memory\":\"%lld\"}}}",
                i > 0 ? "," : "", i, (long long)request[i], (long long)limit[i]);
            bool is_controlled = i == 0 || next_random(&seed) % 2 == 0;
            kept += is_controlled ? 0 : limit[i];
            (void)td_buf_append_format(
                &vpa, "%s{\"containerName\":\"c%zu\",\"target\":{\"%s\":\"%llu\"}}",
                i > 0 ? "," : "", i, is_controlled ? "memory" : "cpu",
                (unsigned long long)(1 + next_random(&seed) % 3000));
        }
        int64_t max = kept + 1 + (int64_t)(next_random(&seed) % 3000);
        struct td_capped capped =
            cap(&arena, td_arena_format(&arena, VPA("%s"), td_buf_str(&vpa).ptr).ptr,
                td_arena_format(&arena, "{\"spec\":{\"containers\":[%s]}}", pod.ptr).ptr,
                td_arena_format(&arena, "[{\"type\":\"Pod\",\"max\":{\"memory\":\"%lld\"}}]",
                                (long long)max)
                    .ptr,
                NULL);
        int64_t sum = kept;
        for (size_t i = 0; i < count; i++) {
            const struct td_quantity *made =
                td_resource_list_get(&capped.recommendation.containers[i].target, TD_STR("memory"));
            sum += made ? td_quantity_value(made) * limit[i] / request[i] : 0;
        }
        capped_count += capped.steps.count > 0;
        assert_true(sum <= max);
    }
    assert_true(capped_count > 5000);
}

/* Whatever the bounds, a capped target is at most maxAllowed, and at least minAllowed unless
 * maxAllowed is lower. */
static void test_capped_target_is_in_bounds_and_max_wins(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (int round = 0; round < 300; round++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        int32_t min = test_below(&seed, 1000);
        int32_t max = test_below(&seed, 1000);
        int32_t target = test_below(&seed, 1000);
        td_str vpa = td_arena_format(
            &arena,
            "{\"spec\":{\"resourcePolicy\":{\"containerPolicies\":[{\"containerName\":\"*\","
            "\"minAllowed\":{\"cpu\":\"%dm\"},\"maxAllowed\":{\"cpu\":\"%dm\"}}]}},"
            "\"status\":{\"recommendation\":{\"containerRecommendations\":[{\"containerName\":"
            "\"app\",\"target\":{\"cpu\":\"%dm\"},\"upperBound\":{\"cpu\":\"%dm\"}}]}}}",
            min, max, target, target + 5);
        td_str limits = td_arena_format(
            &arena,
            "[{\"type\":\"Container\",\"min\":{\"cpu\":\"%dm\"},\"max\":{\"cpu\":\"%dm\"}},"
            "{\"type\":\"Pod\",\"max\":{\"cpu\":\"%dm\"}}]",
            test_below(&seed, 500), 1 + test_below(&seed, 900), 1 + test_below(&seed, 900));
        struct td_capped capped =
            cap(&arena, vpa.ptr,
                "{\"spec\":{\"containers\":[{\"name\":\"app\",\"resources\":{\"requests\":"
                "{\"cpu\":\"100m\"},\"limits\":{\"cpu\":\"300m\"}}}]}}",
                limits.ptr, NULL);
        int64_t got =
            td_quantity_milli(&capped.recommendation.containers[0].target.items[0].quantity);
        assert_true(max == 0 || got <= max);
        assert_true(got >= min || got == max);
        /* Steps of the target chain from the first value to the last. */
        int64_t at = target;
        for (size_t i = 0; i < capped.steps.count; i++) {
            if (capped.steps.items[i].value == TD_CAP_TARGET) {
                assert_int_equal(td_quantity_milli(&capped.steps.items[i].before), at);
                at = td_quantity_milli(&capped.steps.items[i].after);
            }
        }
        assert_int_equal(at, got);
    }
}

/* Targets that no node can hold are scaled to the largest, with a note, and the lower bound too. */
static void test_largest_node_caps_the_sum_of_targets(void **state)
{
    (void)state;
    static const char targets[] =
        VPA("{\"containerName\":\"a\",\"target\":{\"cpu\":\"6\"},\"lowerBound\":{\"cpu\":\"5\"},"
            "\"upperBound\":{\"cpu\":\"9\"}},{\"containerName\":\"b\",\"target\":{\"cpu\":\"2\"}}");
    static const struct {
        const char *node, *third_request, *expected_a, *expected_b, *lower_a;
    } rows[] = {
        {"4", "0", "cpu=3", "cpu=1", "cpu=3"},
        {"4", "2", "cpu=1500m", "cpu=500m", "cpu=1500m"},
        {"8", "0", "cpu=6", "cpu=2", "cpu=5"},
        {"4", "4", "cpu=6", "cpu=2", "cpu=5"}, /* no room at all: it fits nowhere anyway */
        {"7999m", "0", "cpu=5999m", "cpu=1999m", "cpu=5"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_resource_amount allocatable = {
            .name = TD_STR("cpu"), .quantity = vertical_quantity(&arena, rows[i].node)};
        const struct td_resource_list node = {.items = &allocatable, .count = 1};
        td_str pod =
            td_arena_format(&arena,
                            "{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"},"
                            "{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%s\"}}}"
                            "]}}",
                            rows[i].third_request);
        struct td_capped capped = cap(&arena, targets, pod.ptr, NULL, &node);
        const struct td_container_recommendation *a = &capped.recommendation.containers[0];
        const struct td_container_recommendation *b = &capped.recommendation.containers[1];
        assert_string_equal(vertical_list(&arena, &a->target), rows[i].expected_a);
        assert_string_equal(vertical_list(&arena, &b->target), rows[i].expected_b);
        assert_string_equal(vertical_list(&arena, &a->lower_bound), rows[i].lower_a);
        assert_string_equal(vertical_list(&arena, &a->upper_bound), "cpu=9");
        bool is_capped = strcmp(rows[i].expected_a, "cpu=6") != 0;
        assert_int_equal(capped.notes[0].count, is_capped);
        if (is_capped) {
            assert_true(
                td_str_equal(capped.notes[0].items[0], TD_STR("cpu capped to largest node")));
        }
    }
}

/* The account says what changed, by which rule. */
static void test_steps_of_a_policy(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_capped capped = cap(
        &arena,
        "{\"spec\":{\"resourcePolicy\":{\"containerPolicies\":[{\"containerName\":\"app\","
        "\"maxAllowed\":{\"cpu\":\"1\"}}]}},\"status\":{\"recommendation\":"
        "{\"containerRecommendations\":[{\"containerName\":\"app\",\"target\":{\"cpu\":\"2\"}}]}}}",
        "{\"spec\":{\"containers\":[{\"name\":\"app\"}]}}", NULL, NULL);
    assert_int_equal(capped.steps.count, 1);
    const struct td_cap_step *step = &capped.steps.items[0];
    assert_true(td_str_equal(step->container, TD_STR("app")));
    assert_true(td_str_equal(step->resource, TD_STR("cpu")));
    assert_int_equal(step->value, TD_CAP_TARGET);
    assert_int_equal(step->rule, TD_CAP_RULE_MAX_ALLOWED);
    assert_string_equal(td_quantity_text(&arena, &step->before).ptr, "2");
    assert_string_equal(td_quantity_text(&arena, &step->after).ptr, "1");
}

/* Without recommendation and policy there is nothing to say; entries of unknown containers go. */
static void test_capping_without_input(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_capped capped = cap(&arena, "{\"spec\":{}}", two_pod, NULL, NULL);
    assert_false(capped.is_set);
    capped = cap(&arena, "{\"spec\":{\"resourcePolicy\":{}}}", two_pod, NULL, NULL);
    assert_true(capped.is_set);
    assert_int_equal(capped.recommendation.container_count, 0);
    capped = cap(&arena, VPA("{\"containerName\":\"gone\",\"target\":{\"cpu\":\"1\"}}"), two_pod,
                 NULL, NULL);
    assert_int_equal(capped.recommendation.container_count, 0);
}

/* Many containers and entries are matched without multiplying their numbers. */
static void test_capping_of_many_containers(void **state)
{
    (void)state;
    const size_t count = 20000;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_auto_buf pod;
    td_auto_buf vpa;
    td_buf_init(&pod, (size_t)64 << 20);
    td_buf_init(&vpa, (size_t)64 << 20);
    (void)td_buf_append(&pod, TD_STR("{\"spec\":{\"containers\":["));
    (void)td_buf_append(&vpa, TD_STR("{\"spec\":{},\"status\":{\"recommendation\":{"
                                     "\"containerRecommendations\":["));
    for (size_t i = 0; i < count; i++) {
        const char *comma = i > 0 ? "," : "";
        (void)td_buf_append_format(&pod, "%s{\"name\":\"c%zu\"}", comma, i);
        (void)td_buf_append_format(&vpa,
                                   "%s{\"containerName\":\"c%zu\",\"target\":{\"cpu\":\"1\"}}",
                                   comma, count - i - 1);
    }
    (void)td_buf_append(&pod, TD_STR("]}}"));
    (void)td_buf_append(&vpa, TD_STR("]}}}"));
    struct td_capped capped =
        cap(&arena, vpa.ptr, pod.ptr, "[{\"type\":\"Pod\",\"max\":{\"cpu\":\"100\"}}]", NULL);
    assert_int_equal(capped.recommendation.container_count, count);
}

/* Wrong types are named by their path, and nothing is returned. */
static void test_decoding_names_the_field(void **state)
{
    (void)state;
    static const struct {
        const char *pod, *part;
    } rows[] = {
        {"{\"spec\":7}", "spec"},
        {"{\"spec\":{\"containers\":{}}}", "containers"},
        {"{\"spec\":{\"containers\":[1]}}", "spec.containers[0]"},
        {"{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"x\"}}}]}}", "cpu"},
        {"{\"spec\":{\"resources\":{\"limits\":[]}}}", "limits"},
        {"{\"status\":{\"startTime\":\"noon\"}}", "startTime"},
        {"{\"status\":{\"conditions\":3}}", "conditions"},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\"}]},\"status\":{\"containerStatuses\":"
         "[{\"name\":\"a\",\"lastState\":{\"terminated\":{\"finishedAt\":5}}}]}}",
         "finishedAt"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_pod pod = {.container_count = 99};
        assert_int_equal(td_pod_decode(&arena, vertical_tree(&arena, rows[i].pod), &pod, &err),
                         TD_INVALID);
        assert_non_null(strstr(err.message, rows[i].part));
        assert_int_equal(pod.container_count, 99);
    }
    struct td_limit_ranges limits;
    struct td_error err = TD_ERROR_INIT;
    const struct td_json *const objects[] = {
        vertical_tree(&arena, "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"limits\":[{\"type\":"
                              "\"Pod\",\"max\":{\"cpu\":\"x\"}}]}}")};
    assert_int_equal(td_limit_ranges_read(&arena, objects, 1, TD_STR_EMPTY, &limits, &err),
                     TD_INVALID);
    assert_non_null(strstr(err.message, "LimitRange 'l': spec.limits[0]: max"));
}

/* What a decision needs of a pod's status. */
static void test_decoding_reads_status(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_pod pod = vertical_pod(
        &arena,
        "{\"spec\":{\"containers\":[{\"name\":\"a\",\"resizePolicy\":[{\"resourceName\":\"cpu\","
        "\"restartPolicy\":\"RestartContainer\"}],\"resources\":{\"requests\":{}}}]},\"status\":{"
        "\"phase\":\"Running\",\"conditions\":[{\"type\":\"PodResizeInProgress\",\"status\":"
        "\"True\"},{\"type\":\"PodResizePending\",\"status\":\"False\",\"reason\":\"Deferred\"},"
        "{\"type\":\"Ready\",\"status\":\"True\"}],\"containerStatuses\":[{\"name\":\"a\","
        "\"restartCount\":3,\"resources\":{\"limits\":{\"cpu\":\"2\"}},\"lastState\":{"
        "\"terminated\":{\"reason\":\"OOMKilled\",\"finishedAt\":\"2026-01-01T00:00:00Z\"}}}]}}");
    const struct td_pod_container *container = &pod.containers[0];
    assert_int_equal(pod.phase, TD_POD_RUNNING);
    assert_int_equal(pod.ready, TD_CONDITION_TRUE);
    assert_int_equal(pod.ready_since, TD_TIME_NONE);
    assert_false(pod.is_pending_first);
    assert_true(pod.resize_in_progress.is_true);
    assert_true(pod.resize_pending.is_present);
    assert_false(pod.resize_pending.is_true);
    assert_true(container->restarts_on_resize);
    assert_true(container->has_spec_requests);
    assert_false(container->has_spec_limits);
    assert_false(td_vertical_has_requests(container));
    assert_true(td_vertical_has_limits(container));
    assert_string_equal(vertical_list(&arena, td_vertical_limits(container)), "cpu=2");
    assert_int_equal(container->restart_count, 3);
    assert_true(td_str_equal(container->last_terminated_reason, TD_STR("OOMKilled")));
    assert_int_equal(container->last_started, TD_TIME_NONE);
    assert_true(container->last_finished > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proportional_limit_keeps_ratio),
        cmocka_unit_test(test_scale_rounds_and_survives_zero),
        cmocka_unit_test(test_proposal_limit_range_scales_120_and_30_to_160_and_40),
        cmocka_unit_test(test_pod_limit_range_hazards_have_answers),
        cmocka_unit_test(test_pod_max_leaves_room_for_what_is_kept),
        cmocka_unit_test(test_pods_under_a_pod_max_would_be_accepted),
        cmocka_unit_test(test_capped_target_is_in_bounds_and_max_wins),
        cmocka_unit_test(test_largest_node_caps_the_sum_of_targets),
        cmocka_unit_test(test_steps_of_a_policy),
        cmocka_unit_test(test_capping_without_input),
        cmocka_unit_test(test_capping_of_many_containers),
        cmocka_unit_test(test_decoding_names_the_field),
        cmocka_unit_test(test_decoding_reads_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
