/* Would the replacement of an evicted pod belong to the same VPA? */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "decide/vertical/updater/selected.h"
#include "unit/decide/vertical_support.h"

#define ARENA_BYTES ((size_t)1 << 20)

static struct td_vpa selecting(struct td_arena *arena, const char *mode, const char *selector)
{
    td_str text = td_arena_format(
        arena,
        "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"targetRef\":{\"kind\":\"StatefulSet\","
        "\"name\":\"db\"},\"updatePolicy\":{\"updateMode\":\"%s\"}%s%s}}",
        mode, selector ? ",\"selector\":" : "", selector ? selector : "");
    return vertical_vpa(arena, text.ptr);
}

static struct td_labels labels_of(struct td_arena *arena, const char *text)
{
    return td_labels_from_json(arena, vertical_tree(arena, text));
}

#define LEADER "{\"matchLabels\":{\"role\":\"leader\"}}"
#define NAMED "{\"matchLabels\":{\"statefulset.kubernetes.io/pod-name\":\"db-0\"}}"
#define HOT                                                                                        \
    "{\"matchExpressions\":[{\"key\":\"apps.kubernetes.io/pod-index\",\"operator\":\"In\","        \
    "\"values\":[\"0\",\"7\"]}]}"
#define LABELS                                                                                     \
    "{\"app\":\"db\",\"role\":\"leader\",\"statefulset.kubernetes.io/pod-name\":\"db-0\","         \
    "\"apps.kubernetes.io/pod-index\":\"0\"}"

static void test_a_replacement_has_the_labels_of_the_template(void **state)
{
    (void)state;
    static const struct {
        const char *selector; /* NULL: none */
        const char *template;
        bool gate;
        bool is_selected;
    } rows[] = {
        {NULL, "{\"app\":\"db\"}", true, true},
        {LEADER, "{\"app\":\"db\"}", true, false},
        {LEADER, "{\"app\":\"db\",\"role\":\"follower\"}", true, false},
        {LEADER, "{\"app\":\"db\",\"role\":\"leader\"}", true, true},
        {LEADER, "{}", false, true}, /* the selector does not count */
        {"{\"matchExpressions\":[{\"key\":\"role\",\"operator\":\"NotIn\",\"values\":[\"x\"]}]}",
         "{\"app\":\"db\"}", true, true},
        {NAMED, "{\"app\":\"db\"}", true, true}, /* the controller names its pods alike */
        {HOT, "{\"app\":\"db\"}", true, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_vpa vpa = selecting(&arena, "Recreate", rows[i].selector);
        struct td_labels template = labels_of(&arena, rows[i].template);
        struct td_labels pod = labels_of(&arena, LABELS);
        if (td_vpa_selects_replacement(&arena, &vpa, rows[i].gate, &template, &pod) !=
            rows[i].is_selected) {
            fail_msg("row %zu", i);
        }
    }
}

static void test_a_selector_that_no_new_pod_meets_is_warned_of(void **state)
{
    (void)state;
    static const struct {
        const char *mode;
        const char *selector;
        const char *template;
        const char *says; /* NULL: nothing */
    } rows[] = {
        {"Recreate", LEADER, "{\"app\":\"db\"}", "StatefulSet db does not meet role=leader"},
        {"Auto", LEADER, "{\"app\":\"db\"}", "are not updated; updateMode InPlaceOrRecreate"},
        {"InPlaceOrRecreate", LEADER, "{\"app\":\"db\"}", "are resized in place only"},
        {"InPlace", LEADER, "{\"app\":\"db\"}", NULL},
        {"Initial", LEADER, "{\"app\":\"db\"}", NULL},
        {"Off", LEADER, "{\"app\":\"db\"}", NULL},
        {"Recreate", LEADER, "{\"role\":\"leader\"}", NULL},
        {"Recreate", NULL, "{}", NULL},
        {"Recreate", NAMED, "{\"app\":\"db\"}", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_vpa vpa = selecting(&arena, rows[i].mode, rows[i].selector);
        struct td_labels template = labels_of(&arena, rows[i].template);
        td_str text = td_vpa_selector_warning(&arena, &vpa, &template);
        if (rows[i].says ? !strstr(text.ptr ? text.ptr : "", rows[i].says) : text.len > 0) {
            fail_msg("row %zu: %.*s", i, TD_STR_ARG(text));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_replacement_has_the_labels_of_the_template),
        cmocka_unit_test(test_a_selector_that_no_new_pod_meets_is_warned_of),
    };
    return cmocka_run_group_tests_name("decide/selected", tests, NULL, NULL);
}
