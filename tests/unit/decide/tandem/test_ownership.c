/* Who owns a target: what is read from objects, and who acts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "decide/tandem/ownership.h"
#include "support/quoted_json.h"

#define ARENA_BYTES ((size_t)64 << 20)

struct read_row {
    const char *object;
    int kind; /* -1: it owns nothing */
    const char *target_kind;
    const char *target_name;
    bool is_off;
};

#define META "'metadata':{'name':'a','namespace':'n','creationTimestamp':'2026-01-01T00:00:00Z'}"
#define HVPA "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa'," META ",'spec':"
#define VPA "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler'," META ",'spec':"
#define REF "{'kind':'Deployment','name':'web'}"

/* Targets are read from all places where they may stand, validity aside. */
static void test_reading_targets(void **state)
{
    (void)state;
    static const struct read_row rows[] = {
        {HVPA "{'mode':'nonsense','targetRef':" REF "}}", TD_OWNERSHIP_HVPA, "Deployment", "web",
         false},
        {HVPA "{'hpaSpec':{'scaleTargetRef':" REF "}}}", TD_OWNERSHIP_HVPA, "Deployment", "web",
         false},
        {HVPA "{'hpaSpec':{'spec':{'scaleTargetRef':" REF "}}}}", TD_OWNERSHIP_HVPA, "Deployment",
         "web", false},
        {HVPA "{'vpaSpec':{'spec':{'targetRef':" REF "}}}}", TD_OWNERSHIP_HVPA, "Deployment", "web",
         false},
        {HVPA "{'targetRef':{'kind':'','name':''},'vpaSpec':{'spec':{'targetRef':" REF "}}}}",
         TD_OWNERSHIP_HVPA, "Deployment", "web", false},
        {HVPA "{}}", -1, NULL, NULL, false},
        {HVPA "{'targetRef':{'name':'web'}}}", -1, NULL, NULL, false},
        {HVPA "[]}", -1, NULL, NULL, false},
        {VPA "{'targetRef':" REF "}}", TD_OWNERSHIP_VPA, "Deployment", "web", false},
        {VPA "{'targetRef':" REF ",'updatePolicy':{'updateMode':'Initial'}}}", TD_OWNERSHIP_VPA,
         "Deployment", "web", false},
        {VPA "{'targetRef':" REF ",'updatePolicy':{'updateMode':'Off'}}}", TD_OWNERSHIP_VPA,
         "Deployment", "web", true},
        {"{'apiVersion':'autoscaling/v1','kind':'HorizontalPodAutoscaler'," META
         ",'spec':{'scaleTargetRef':{'kind':'Hvpa','name':'web'}}}",
         TD_OWNERSHIP_HPA, "Hvpa", "web", false},
        {"{'apiVersion':'keda.sh/v1alpha1','kind':'ScaledObject'," META
         ",'spec':{'scaleTargetRef':{'name':'web'}}}",
         TD_OWNERSHIP_SCALED_OBJECT, "Deployment", "web", false},
        {"{'apiVersion':'v1','kind':'Pod'," META ",'spec':{'targetRef':" REF "}}", -1, NULL, NULL,
         false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_ownership_object object;
        bool is_owner = td_ownership_read(quoted_json(&arena, rows[i].object), &object);
        assert_int_equal(is_owner, rows[i].kind >= 0);
        if (is_owner) {
            assert_int_equal(object.kind, rows[i].kind);
            assert_true(td_str_equal(object.target.kind, td_str_from(rows[i].target_kind)));
            assert_true(td_str_equal(object.target.name, td_str_from(rows[i].target_name)));
            assert_int_equal(object.is_off, rows[i].is_off);
            assert_int_equal(object.created.unix_seconds, 1767225600);
        }
    }
}

static struct td_ownership_object owner(enum td_ownership_kind kind, const char *name,
                                        int64_t created, const char *api_version)
{
    return (struct td_ownership_object){
        .kind = kind,
        .name = td_str_from(name),
        .created = {.unix_seconds = created},
        .target = {.namespace = TD_STR("n"),
                   .api_version = td_str_from(api_version),
                   .kind = TD_STR("Deployment"),
                   .name = TD_STR("web")},
    };
}

/* The eldest acts; a foreign autoscaler stops all; another group is another target. */
static void test_who_acts(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_ownership_object objects[] = {
        owner(TD_OWNERSHIP_HVPA, "c", 5, "apps/v1"),
        owner(TD_OWNERSHIP_HVPA, "b", 4, ""),
        owner(TD_OWNERSHIP_HVPA, "a", 5, "apps/v1beta2"),
        owner(TD_OWNERSHIP_HVPA, "elsewhere", 1, "example.com/v1"),
        owner(TD_OWNERSHIP_VPA, "v", 1, "apps/v1"),
    };
    struct td_ownership_target target = objects[0].target;
    struct td_ownership verdict;
    objects[4].is_off = true;
    td_ownership_judge(&arena, &target, objects, 5, &verdict);
    assert_int_equal(verdict.acting, 1);
    assert_true(verdict.foreign == TD_OWNERSHIP_NONE);
    assert_int_equal(verdict.conflict_count, 2);
    assert_int_equal(verdict.conflicts[0], 2); /* by name */
    assert_int_equal(verdict.conflicts[1], 0);
    objects[4].is_off = false;
    td_ownership_judge(&arena, &target, objects, 5, &verdict);
    assert_true(verdict.acting == TD_OWNERSHIP_NONE);
    assert_int_equal(verdict.foreign, 4);
    assert_int_equal(verdict.conflict_count, 3);
    td_ownership_judge(&arena, &target, NULL, 0, &verdict);
    assert_true(verdict.acting == TD_OWNERSHIP_NONE);
    assert_int_equal(verdict.conflict_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reading_targets),
        cmocka_unit_test(test_who_acts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
