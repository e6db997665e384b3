/* Patches of pods at admission and in place: what is written, boosts, their end. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "decide/vertical/patch/boost.h"
#include "decide/vertical/patch/podpatch.h"
#include "decide/vertical/patch/resizepatch.h"
#include "kube/patch/patch.h"
#include "unit/decide/support.h"
#include "unit/decide/vertical_support.h"

#define ARENA_BYTES ((size_t)64 << 20)

static struct td_pod_patch admit(struct td_arena *arena, const char *vpa_text, const char *pod_text,
                                 const struct td_quantity *max_boost)
{
    struct td_vpa vpa = vertical_vpa(arena, vpa_text);
    struct td_pod pod = vertical_pod(arena, pod_text);
    struct td_limit_ranges limits = vertical_limits(arena, NULL);
    struct td_pod_patch made = {.patches = NULL};
    struct td_error err = TD_ERROR_INIT;
    const struct td_pod_patch_input input = {.pod = &pod,
                                             .vpa = &vpa,
                                             .limits = &limits,
                                             .gates = {.cpu_startup_boost = true},
                                             .max_cpu_boost = max_boost};
    if (td_pod_patch(arena, &input, &made, &err) < 0) {
        fail_msg("%s", err.message);
    }
    return made;
}

static struct td_json *apply(struct td_arena *arena, const char *pod_text,
                             const struct td_json *patches)
{
    struct td_json *patched = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_patch_json(arena, vertical_tree(arena, pod_text), patches, &patched, &err) < 0) {
        fail_msg("%s", err.message);
    }
    return patched;
}

/* Random pods: after the patch the pod states what the change declares, with limits not below
 * requests where the limit was not below the request before. */
static void test_patch_gives_the_declared_resources(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 300; round++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        static const char *const stanzas[] = {
            "", ",\"resources\":{}", ",\"resources\":{\"requests\":{}}",
            ",\"resources\":{\"requests\":{\"cpu\":\"70m\",\"memory\":\"31Mi\"}}",
            (",\"resources\":{\"requests\":{\"cpu\":\"70m\"},\"limits\":{\"cpu\":\"170m\","
             "\"memory\":\"1Gi\"}}")};
        td_str pod = td_arena_format(
            &arena,
            "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"a\"%s},{\"name\":\"b\"%s}]}}",
            stanzas[test_below(&seed, 5)], stanzas[test_below(&seed, 5)]);
        td_str vpa = td_arena_format(
            &arena,
            "{\"metadata\":{\"name\":\"v\"},\"spec\":{},\"status\":{\"recommendation\":{"
            "\"containerRecommendations\":[{\"containerName\":\"a\",\"target\":{\"cpu\":\"%dm\","
            "\"memory\":\"%d\",\"x/"
            "y\":\"1\"}},{\"containerName\":\"b\",\"target\":{\"cpu\":\"%dm\"}}]}}}",
            1 + test_below(&seed, 5000), 1 + test_below(&seed, 1000000),
            1 + test_below(&seed, 5000));
        struct td_pod_patch made = admit(&arena, vpa.ptr, pod.ptr, NULL);
        struct td_json *patched = apply(&arena, pod.ptr, made.patches);
        struct td_pod after = {.tree = NULL};
        assert_int_equal(td_pod_decode(&arena, patched, &after, NULL), TD_OK);
        for (size_t c = 0; c < 2; c++) {
            const struct td_container_change *change = &made.changes.containers[c];
            const struct td_resource_list *lists[] = {&change->requests, &change->limits};
            const struct td_resource_list *got[] = {&after.containers[c].spec_requests,
                                                    &after.containers[c].spec_limits};
            for (size_t l = 0; l < 2; l++) {
                for (size_t r = 0; r < lists[l]->count; r++) {
                    const struct td_quantity *value =
                        td_resource_list_get(got[l], lists[l]->items[r].name);
                    assert_non_null(value);
                    assert_int_equal(td_quantity_compare(value, &lists[l]->items[r].quantity), 0);
                }
            }
            for (size_t r = 0; r < change->limits.count; r++) {
                const struct td_quantity *request =
                    td_resource_list_get(&change->requests, change->limits.items[r].name);
                assert_true(td_quantity_compare(&change->limits.items[r].quantity, request) >= 0);
            }
        }
        assert_true(td_str_equal(td_json_get_str(td_json_get_path(patched, "metadata.annotations"),
                                                 TD_STR("vpaObservedContainers"), TD_STR_EMPTY),
                                 TD_STR("a, b")));
    }
}

#define BOOSTED(boost)                                                                             \
    "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"startupBoost\":" boost "},\"status\":{"            \
    "\"recommendation\":{\"containerRecommendations\":[{\"containerName\":\"a\",\"target\":{"      \
    "\"cpu\":\"100m\"}}]}}}"

/* A boost that upstream panics on, overflows with or caps has a request all the same. */
static void test_boosted_request(void **state)
{
    (void)state;
    static const struct {
        const char *vpa, *max, *request;
        bool is_boosted;
    } rows[] = {
        {BOOSTED("{\"cpu\":{\"type\":\"Factor\",\"factor\":3}}"), "0", "cpu=300m", true},
        {BOOSTED("{\"cpu\":{\"type\":\"Quantity\",\"quantity\":\"1\"}}"), "0", "cpu=1100m", true},
        {BOOSTED("{\"cpu\":{\"type\":\"Factor\",\"factor\":3}}"), "50m", "cpu=50m", true},
        {BOOSTED("{\"cpu\":{\"type\":\"Quantity\",\"quantity\":\"9P\"}}"), "0",
         "cpu=9000000000000000100m", true},
        {BOOSTED("{\"cpu\":{\"type\":\"Quantity\",\"quantity\":\"9E\"}}"), "0",
         "cpu=9223372036854775807m", true},
        {BOOSTED("{}"), "0", "cpu=100m", false},
        {BOOSTED("null"), "0", "cpu=100m", false},
    };
    static const char pod[] =
        "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{"
        "\"requests\":{\"cpu\":\"10m\"}}}]}}";
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_quantity max = vertical_quantity(&arena, rows[i].max);
        struct td_pod_patch made = admit(&arena, rows[i].vpa, pod, &max);
        assert_string_equal(vertical_list(&arena, &made.changes.containers[0].requests),
                            rows[i].request);
        const struct td_json *annotations =
            td_json_get_path(apply(&arena, pod, made.patches), "metadata.annotations");
        td_str original =
            td_json_get_str(annotations, TD_STR("vpaCpuStartupBoost/a"), TD_STR_EMPTY);
        assert_true(td_str_equal(original, rows[i].is_boosted
                                               ? TD_STR("{\"requests\":{\"cpu\":\"10m\"},"
                                                        "\"limits\":{}}")
                                               : TD_STR_EMPTY));
    }
}

/* Under RequestsOnly a boost stays one thousandth below the limit. */
static void test_boost_below_the_limit(void **state)
{
    (void)state;
    static const struct {
        const char *limit, *request;
    } rows[] = {{"200m", "cpu=199m"}, {"1m", "cpu=1m"}, {"1", "cpu=500m"}, {"500m", "cpu=500m"}};
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str pod = td_arena_format(
            &arena,
            "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{"
            "\"requests\":{\"cpu\":\"100m\"},\"limits\":{\"cpu\":\"%s\"}}}]}}",
            rows[i].limit);
        struct td_pod_patch made =
            admit(&arena,
                  "{\"spec\":{\"startupBoost\":{\"cpu\":{\"type\":\"Factor\",\"factor\":5}},"
                  "\"resourcePolicy\":{\"containerPolicies\":[{\"containerName\":\"*\","
                  "\"controlledValues\":\"RequestsOnly\"}]}}}",
                  pod.ptr, NULL);
        assert_string_equal(vertical_list(&arena, &made.changes.containers[0].requests),
                            rows[i].request);
        assert_int_equal(made.changes.containers[0].limits.count, 0);
    }
}

/* A boost without a usable amount is an error, and nothing is returned. */
static void test_unusable_boost_is_refused(void **state)
{
    (void)state;
    static const char *const boosts[] = {
        BOOSTED("{\"cpu\":{\"type\":\"Factor\"}}"),
        BOOSTED("{\"cpu\":{\"type\":\"Factor\",\"factor\":0}}"),
        BOOSTED("{\"cpu\":{\"type\":\"Quantity\"}}"),
        BOOSTED("{\"cpu\":{\"type\":\"Percent\",\"factor\":2}}"),
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(boosts) / sizeof(boosts[0]); i++) {
        struct td_vpa vpa = vertical_vpa(&arena, boosts[i]);
        struct td_pod pod =
            vertical_pod(&arena, "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"a\"}]}}");
        struct td_limit_ranges limits = vertical_limits(&arena, NULL);
        struct td_pod_patch made = {.patches = NULL};
        struct td_error err = TD_ERROR_INIT;
        const struct td_pod_patch_input input = {
            .pod = &pod, .vpa = &vpa, .limits = &limits, .gates = {.cpu_startup_boost = true}};
        assert_int_equal(td_pod_patch(&arena, &input, &made, &err), TD_INVALID);
        assert_null(made.patches);
        assert_true(err.message[0] != '\0');
    }
}

/* A boost ends once the pod has been Ready for longer than its duration, the container's before the
 * spec's. */
static void test_boost_expires_after_ready(void **state)
{
    (void)state;
    static const struct {
        const char *ready, *spec, *container;
        int64_t at_seconds; /* after Ready */
        bool is_expired;
        int64_t left_seconds;
    } rows[] = {
        {"True", "60", "null", 60, false, 0},  {"True", "60", "null", 61, true, 0},
        {"True", "60", "null", 10, false, 50}, {"True", "60", "100", 61, false, 39},
        {"True", "60", "0", 1, true, 0},       {"True", "null", "null", 0, true, 0},
        {"False", "60", "null", 99, false, 0}, {"True", "60", "null", -5, false, 65},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_instant ready_at;
    assert_int_equal(td_time_parse(TD_STR("2026-01-15T11:00:00Z"), &ready_at, NULL), TD_OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str pod_text = td_arena_format(
            &arena,
            "{\"metadata\":{\"annotations\":{\"vpaCpuStartupBoost/a\":\"{}\",\"other\":\"\"}},"
            "\"spec\":{\"containers\":[{\"name\":\"a\"}]},\"status\":{\"conditions\":[{\"type\":"
            "\"Ready\",\"status\":\"%s\",\"lastTransitionTime\":\"2026-01-15T11:00:00Z\"}]}}",
            rows[i].ready);
        td_str vpa_text = td_arena_format(
            &arena,
            "{\"spec\":{\"startupBoost\":{\"cpu\":{\"type\":\"Factor\",\"factor\":2,"
            "\"durationSeconds\":%s}},\"resourcePolicy\":{\"containerPolicies\":[{"
            "\"containerName\":"
            "\"a\",\"startupBoost\":{\"cpu\":{\"type\":\"Factor\",\"factor\":2,\"durationSeconds\":"
            "%s"
            "}}}]}}}",
            rows[i].spec, rows[i].container);
        struct td_pod pod = vertical_pod(&arena, pod_text.ptr);
        struct td_vpa vpa = vertical_vpa(&arena, vpa_text.ptr);
        td_time now = td_time_from_instant(ready_at) + rows[i].at_seconds * TD_SECOND;
        assert_true(td_boost_is_in_progress(&pod));
        assert_int_equal(td_boost_is_expired(&pod, &vpa, TD_STR("vpaCpuStartupBoost/a"), now),
                         rows[i].is_expired);
        assert_false(td_boost_is_expired(&pod, &vpa, TD_STR("other"), now));
        assert_int_equal(td_boost_remaining(&pod, &vpa, now), rows[i].left_seconds * TD_SECOND);
    }
}

/* Nothing to resize is an error, and so is an annotation that cannot be read; what the spec has
 * already is no change. */
static void test_resize_without_changes_sends_nothing(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_pod pod =
        vertical_pod(&arena, "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"a\","
                             "\"resources\":{\"requests\":{\"cpu\":"
                             "\"1\"}}}]}}");
    struct td_vpa vpa = vertical_vpa(&arena, "{\"spec\":{}}");
    struct td_limit_ranges limits = vertical_limits(&arena, NULL);
    struct td_resize_patch made;
    struct td_error err = TD_ERROR_INIT;
    struct td_resize_input input = {.pod = &pod, .vpa = &vpa, .limits = &limits};
    assert_int_equal(td_resize_patch(&arena, &input, &made, &err), TD_NOT_FOUND);
    assert_string_equal(err.message, TD_RESIZE_NOTHING);
    static const char *const targets[] = {"1", "1000m", "1001m"};
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        td_str text = td_arena_format(
            &arena,
            "{\"spec\":{},\"status\":{\"recommendation\":{\"containerRecommendations\":[{"
            "\"containerName\":\"a\",\"target\":{\"cpu\":\"%s\"}}]}}}",
            targets[i]);
        vpa = vertical_vpa(&arena, text.ptr);
        assert_int_equal(td_resize_patch(&arena, &input, &made, &err), TD_OK);
        assert_int_equal(made.has_change, i == 2);
    }
    pod = vertical_pod(
        &arena, "{\"metadata\":{\"annotations\":{\"vpaCpuStartupBoost/a\":\"[]\"}},\"spec\":{"
                "\"containers\":[{\"name\":\"a\"}]},\"status\":{\"conditions\":[{\"type\":"
                "\"Ready\",\"status\":\"True\"}]}}");
    assert_int_equal(td_resize_patch(&arena, &input, &made, &err), TD_INVALID);
    assert_non_null(strstr(err.message, "vpaCpuStartupBoost/a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patch_gives_the_declared_resources),
        cmocka_unit_test(test_boosted_request),
        cmocka_unit_test(test_boost_below_the_limit),
        cmocka_unit_test(test_unusable_boost_is_refused),
        cmocka_unit_test(test_boost_expires_after_ready),
        cmocka_unit_test(test_resize_without_changes_sends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
