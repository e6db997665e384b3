/* Sizes of an Hvpa written into a running pod, and when there is nothing to write. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "decide/vertical/patch/podsizes.h"
#include "kube/patch/patch.h"
#include "unit/decide/support.h"
#include "unit/decide/vertical_support.h"

#define ARENA_BYTES ((size_t)8 << 20)

static struct td_resource_list cpu(struct td_arena *arena, const char *amount)
{
    struct td_resource_list list = {.count = 0};
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("cpu"), td_str_from(amount));
    assert_int_equal(td_resource_list_decode(arena, object, &list, NULL), TD_OK);
    return list;
}

static td_str text_of(struct td_arena *arena, const struct td_json *tree)
{
    td_auto_buf buf;
    td_buf_init(&buf, ARENA_BYTES);
    td_json_write(tree, &(struct td_json_format){.indent = 0}, &buf);
    return td_arena_copy_str(arena, td_buf_str(&buf));
}

static void test_a_resize_writes_what_the_spec_lacks(void **unused)
{
    (void)unused;
    static const struct {
        const char *resources; /* of the container */
        const char *patch;     /* NULL: there is nothing to send */
    } rows[] = {
        {"{\"requests\":{\"cpu\":\"200m\"},\"limits\":{\"cpu\":\"400m\"}}", NULL},
        {"{\"requests\":{\"cpu\":\"0.2\"},\"limits\":{\"cpu\":\"0.4\"}}", NULL},
        {"{\"requests\":{\"cpu\":\"100m\"},\"limits\":{\"cpu\":\"400m\"}}",
         "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"u-1\"},"
         "{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/requests/"
         "cpu\",\"value\":\"200m\"},"
         "{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/limits/"
         "cpu\",\"value\":\"400m\"}]"},
        /* What else the stanza has stays. */
        {"{\"claims\":[{\"name\":\"gpu\"}]}",
         "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"u-1\"},"
         "{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/requests\",\"value\":{}},"
         "{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/requests/"
         "cpu\",\"value\":\"200m\"},"
         "{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/limits\",\"value\":{}},"
         "{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/limits/"
         "cpu\",\"value\":\"400m\"}]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const struct td_pod pod = vertical_pod(
            &arena, td_arena_format(&arena,
                                    "{\"metadata\":{\"name\":\"p\",\"uid\":\"u-1\"},\"spec\":"
                                    "{\"containers\":[{\"name\":\"c\",\"resources\":%s},"
                                    "{\"name\":\"other\"}]}}",
                                    rows[i].resources)
                        .ptr);
        const struct td_pod_size size = {.container = TD_STR("c"),
                                         .requests = cpu(&arena, "200m"),
                                         .limits = cpu(&arena, "400m")};
        const struct td_pod_sizes sizes = {.hvpa = TD_STR("h"), .items = &size, .count = 1};
        struct td_json *patch = td_pod_sizes_resize(&arena, &sizes, &pod);
        assert_int_equal(td_pod_sizes_are_in_spec(&sizes, &pod), !rows[i].patch);
        assert_int_equal(!patch, !rows[i].patch);
        if (patch) {
            assert_string_equal(text_of(&arena, patch).ptr, rows[i].patch);
        }
    }
}

static void test_sizes_above_a_limit_range_are_known(void **unused)
{
    (void)unused;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    const struct td_limit_ranges limits = {
        .container = {.is_set = true, .has_max = true, .max = cpu(&arena, "300m")}};
    struct td_pod_size size = {.container = TD_STR("c"), .requests = cpu(&arena, "300m")};
    const struct td_pod_sizes sizes = {.items = &size, .count = 1};
    assert_false(td_pod_sizes_exceed(&sizes, &limits));
    assert_false(td_pod_sizes_exceed(&sizes, NULL));
    size.limits = cpu(&arena, "301m");
    assert_true(td_pod_sizes_exceed(&sizes, &limits));
    size.container = TD_STR_EMPTY; /* the pod's own: a LimitRange for containers does not count */
    assert_false(td_pod_sizes_exceed(&sizes, &limits));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_resize_writes_what_the_spec_lacks),
        cmocka_unit_test(test_sizes_above_a_limit_range_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
