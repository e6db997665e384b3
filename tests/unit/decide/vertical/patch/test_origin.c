/* Limits keep the proportion of the owner's template, however often a pod is resized. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>

#include "decide/vertical/patch/origin.h"
#include "decide/vertical/patch/resizepatch.h"
#include "kube/patch/patch.h"
#include "unit/decide/support.h"
#include "unit/decide/vertical_support.h"

#define ARENA_BYTES ((size_t)64 << 20)
#define RESIZES 100

static int64_t amount(const struct td_resource_list *list, const char *resource, bool is_milli)
{
    const struct td_quantity *found = td_resource_list_get(list, td_str_from(resource));
    assert_non_null(found);
    return is_milli ? td_quantity_milli(found) : td_quantity_value(found);
}

/* |limit - request * numerator / denominator| is less than one unit. */
static bool is_in_proportion(int64_t limit, int64_t request, int64_t numerator, int64_t denominator)
{
    int64_t rest = limit * denominator - request * numerator;
    return rest > -denominator && rest < denominator;
}

/* The pod after a resize to these targets, as the API server would store it. */
static struct td_json *resize(struct td_arena *arena, const struct td_json *tree,
                              const struct td_pod_template *template, const char *level, int cpu,
                              int memory)
{
    struct td_pod pod = {.tree = NULL};
    assert_int_equal(td_pod_decode(arena, tree, &pod, NULL), TD_OK);
    td_vertical_set_origin(arena, template, NULL, &pod);
    td_str text =
        td_arena_format(arena,
                        "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"updatePolicy\":{\"updateMode\":"
                        "\"InPlaceOrRecreate\"}},\"status\":{\"recommendation\":{%s{%s"
                        "\"target\":{\"cpu\":\"%dm\",\"memory\":\"%d\"}}%s}}}",
                        level, level[1] == 'c' ? "\"containerName\":\"c\"," : "", cpu, memory,
                        level[1] == 'c' ? "]" : "");
    struct td_vpa vpa = vertical_vpa(arena, text.ptr);
    struct td_limit_ranges limits = vertical_limits(arena, NULL);
    const struct td_resize_input input = {
        .pod = &pod,
        .vpa = &vpa,
        .limits = &limits,
        .gates = {.in_place = true, .pod_level_resources = true},
    };
    struct td_resize_patch made;
    struct td_json *patched = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_resize_patch(arena, &input, &made, &err) < 0 ||
        td_patch_json(arena, tree, made.resize, &patched, &err) < 0) {
        fail_msg("%s", err.message);
    }
    return patched;
}

#define CONTAINERS                                                                                 \
    "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"100m\","     \
    "\"memory\":\"1000003\"},\"limits\":{\"cpu\":\"125m\",\"memory\":\"1500004\"}}}]}"

static void test_a_hundred_resizes_keep_the_proportion_of_the_template(void **state)
{
    (void)state;
    uint64_t seed = 7;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_pod_template template =
        td_pod_template_decode(&arena, vertical_tree(&arena, "{" CONTAINERS "}"));
    assert_true(template.is_set);
    struct td_json *tree = vertical_tree(&arena, "{\"metadata\":{\"name\":\"p\"}," CONTAINERS "}");
    for (int i = 0; i < RESIZES; i++) {
        int cpu = 1 + (int)test_below(&seed, 50);
        int memory = 1000 + (int)test_below(&seed, 100000);
        tree = resize(&arena, tree, &template, "\"containerRecommendations\":[", cpu, memory);
        struct td_pod pod = {.tree = NULL};
        assert_int_equal(td_pod_decode(&arena, tree, &pod, NULL), TD_OK);
        const struct td_pod_container *c = &pod.containers[0];
        assert_int_equal(amount(&c->spec_requests, "cpu", true), cpu);
        assert_int_equal(amount(&c->spec_requests, "memory", false), memory);
        assert_true(is_in_proportion(amount(&c->spec_limits, "cpu", true), cpu, 125, 100));
        assert_true(
            is_in_proportion(amount(&c->spec_limits, "memory", false), memory, 1500004, 1000003));
    }
}

#define STANZA                                                                                     \
    "\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"1000003\"},"             \
    "\"limits\":{\"cpu\":\"125m\",\"memory\":\"1500004\"}},\"containers\":[{\"name\":\"c\"}]}"

static void test_a_hundred_resizes_keep_the_proportion_of_a_pod_level_stanza(void **state)
{
    (void)state;
    uint64_t seed = 11;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_pod_template template =
        td_pod_template_decode(&arena, vertical_tree(&arena, "{" STANZA "}"));
    struct td_json *tree = vertical_tree(&arena, "{\"metadata\":{\"name\":\"p\"}," STANZA "}");
    for (int i = 0; i < RESIZES; i++) {
        int cpu = 1 + (int)test_below(&seed, 50);
        int memory = 1000 + (int)test_below(&seed, 100000);
        tree = resize(&arena, tree, &template, "\"podRecommendation\":", cpu, memory);
        struct td_pod pod = {.tree = NULL};
        assert_int_equal(td_pod_decode(&arena, tree, &pod, NULL), TD_OK);
        assert_int_equal(amount(&pod.pod_requests, "cpu", true), cpu);
        assert_true(is_in_proportion(amount(&pod.pod_limits, "cpu", true), cpu, 125, 100));
        assert_true(
            is_in_proportion(amount(&pod.pod_limits, "memory", false), memory, 1500004, 1000003));
    }
}

/* What the limit of a container is in proportion to, for one resource. */
static void test_the_origin_is_what_admission_would_have_seen(void **state)
{
    (void)state;
    static const struct {
        const char *template; /* resources of its container */
        const char *pod;      /* resources now */
        const char *defaults; /* of a LimitRange, or NULL */
        const char *limit;    /* origin; NULL: none, a default may stand in */
        const char *request;  /* origin; NULL: none, as much as the limit */
    } rows[] = {
        {"{\"requests\":{\"cpu\":\"1\"},\"limits\":{\"cpu\":\"2\"}}",
         "{\"requests\":{\"cpu\":\"7m\"},\"limits\":{\"cpu\":\"13m\"}}", NULL, "2", "1"},
        /* A limit alone requests as much. */
        {"{\"limits\":{\"cpu\":\"2\"}}",
         "{\"requests\":{\"cpu\":\"7m\"},\"limits\":{\"cpu\":\"9m\"}}", NULL, "2", NULL},
        /* The limit came from a LimitRange. */
        {"{\"requests\":{\"cpu\":\"1\"}}",
         "{\"requests\":{\"cpu\":\"7m\"},\"limits\":{\"cpu\":\"13m\"}}", "{\"cpu\":\"3\"}", NULL,
         "1"},
        /* The limit came from elsewhere: upstream's formula. */
        {"{\"requests\":{\"cpu\":\"1\"}}",
         "{\"requests\":{\"cpu\":\"7m\"},\"limits\":{\"cpu\":\"13m\"}}", NULL, "13m", "7m"},
        /* A pod that has no limit now is given none by the template. */
        {"{\"requests\":{\"cpu\":\"1\"},\"limits\":{\"cpu\":\"2\"}}",
         "{\"requests\":{\"cpu\":\"7m\"},\"limits\":{\"memory\":\"1\"}}", NULL, NULL, "7m"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        td_str text = td_arena_format(
            &arena,
            "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":%s}]}}",
            rows[i].template);
        struct td_pod_template template =
            td_pod_template_decode(&arena, vertical_tree(&arena, text.ptr));
        text = td_arena_format(
            &arena,
            "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":%s}]}}",
            rows[i].pod);
        struct td_pod pod = vertical_pod(&arena, text.ptr);
        struct td_resource_list defaults = {.count = 0};
        if (rows[i].defaults) {
            assert_int_equal(td_resource_list_decode(
                                 &arena, vertical_tree(&arena, rows[i].defaults), &defaults, NULL),
                             TD_OK);
        }
        td_vertical_set_origin(&arena, &template, &defaults, &pod);
        const char *expected[] = {rows[i].limit, rows[i].request};
        const struct td_resource_list *lists[] = {td_vertical_origin_limits(&pod.containers[0]),
                                                  td_vertical_origin_requests(&pod.containers[0])};
        for (size_t side = 0; side < 2; side++) {
            const struct td_quantity *found = td_resource_list_get(lists[side], TD_CPU);
            assert_int_equal(found != NULL, expected[side] != NULL);
            if (found) {
                assert_string_equal(td_quantity_text(&arena, found).ptr, expected[side]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hundred_resizes_keep_the_proportion_of_the_template),
        cmocka_unit_test(test_a_hundred_resizes_keep_the_proportion_of_a_pod_level_stanza),
        cmocka_unit_test(test_the_origin_is_what_admission_would_have_seen),
    };
    return cmocka_run_group_tests_name("decide/origin", tests, NULL, NULL);
}
