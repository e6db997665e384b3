/* The kinds with rules of their own, the lines their problems name, and checks across objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/objects.h"
#include "base/error.h"
#include "base/limits.h"

#define OBJECTS_MAX 8

static struct td_manifest read_manifest(struct td_arena *arena, const char *text)
{
    struct td_manifest manifest = {.items = NULL, .count = 0, .cap = 0};
    struct td_error err = TD_ERROR_INIT;
    if (td_manifest_read(arena, TD_STR("a.yaml"), td_str_from(text), &manifest, &err) < 0) {
        fail_msg("%s", err.message);
    }
    assert_true(manifest.count <= OBJECTS_MAX);
    return manifest;
}

/* A path leads to the line of its value, or of the deepest parent that is there. */
static void test_objects_find_the_line_of_a_path(void **state)
{
    (void)state;
    static const char text[] = "apiVersion: v1\n" /* 1 */
                               "kind: Thing\n"    /* 2 */
                               "spec:\n"          /* 3 */
                               "  list:\n"        /* 4 */
                               "  - name: a\n"    /* 5 */
                               "    value: 1\n"   /* 6 */
                               "  - name: b\n"    /* 7 */
                               "    deep:\n"      /* 8 */
                               "      - [x, y]\n" /* 9 */
                               "  map: {a: b}\n"; /* 10 */
    static const struct {
        td_str path;
        uint32_t line;
    } rows[] = {
        {TD_STR_INIT(""), 1},
        {TD_STR_INIT("kind"), 2},
        {TD_STR_INIT("spec.list[0].name"), 5},
        {TD_STR_INIT("spec.list[0].value"), 6},
        {TD_STR_INIT("spec.list[1].name"), 7},
        {TD_STR_INIT("spec.list[1].deep[0][1]"), 9},
        {TD_STR_INIT("spec.map.a"), 10},
        {TD_STR_INIT("spec.map.none.below"), 10},
        {TD_STR_INIT("spec.map[a]"), 10},
        {TD_STR_INIT("spec.list[1].none"), 7},
        {TD_STR_INIT("spec.list[1].none.name"), 7},
        {TD_STR_INIT("none"), 1},
        {TD_STR_INIT("none.spec"), 1},
        {TD_STR_INIT(".kind"), 2},
        {TD_STR_INIT("kind[0]"), 2},
        {TD_STR_INIT("kind["), 2},
        {TD_STR_INIT("kind[]"), 2},
        {TD_STR_INIT("kind[-1]"), 2},
    };
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_manifest manifest = read_manifest(&arena, text);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t line = td_objects_line(manifest.items[0].tree, rows[i].path);
        if (line != rows[i].line) {
            fail_msg("%s: line %u, not %u", rows[i].path.ptr, line, rows[i].line);
        }
    }
}

#define HPA_HEAD                                                                                   \
    "apiVersion: autoscaling.tandem.dev/v2\nkind: HorizontalPodAutoscaler\n"                       \
    "metadata: {name: a, namespace: shop}\nspec:\n"
#define HPA_TARGET "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n"

/* Our webhooks' rules speak with field and line; other kinds, and metadata, are left to servers. */
static void test_objects_check_one_object(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *field; /* NULL: no problem */
        uint32_t line;
        const char *part;
    } rows[] = {
        {HPA_HEAD HPA_TARGET "  maxReplicas: 5\n", NULL, 0, NULL},
        {HPA_HEAD HPA_TARGET "  minReplicas: 6\n  maxReplicas: 5\n", "spec.maxReplicas", 7,
         "Invalid value: 5: must be"},
        {HPA_HEAD "  maxReplicas: 5\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment}\n",
         "spec.scaleTargetRef.name", 6, "Required value"},
        {HPA_HEAD HPA_TARGET "  maxReplicas: 5\n  metrics: [{type: Pods}]\n",
         "spec.metrics[0].pods", 7, "Required value"},
        {"apiVersion: autoscaling.tandem.dev/v2\nkind: HorizontalPodAutoscaler\n"
         "metadata: {name: -a, namespace: shop}\nspec:\n" HPA_TARGET "  maxReplicas: 5\n",
         NULL, 0, NULL},
        {"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {maxReplicas: -1}\n",
         NULL, 0, NULL},
        {"apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\n"
         "metadata: {name: a, namespace: shop}\nspec:\n  targetRef: {kind: Deployment, name: a}\n"
         "  updatePolicy: {updateMode: Recreate, minReplicas: 0}\n",
         "spec.updatePolicy.minReplicas", 6, "Invalid value: 0"},
        {"apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscalerCheckpoint\nspec: {}\n",
         NULL, 0, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
        struct td_manifest manifest = read_manifest(&arena, rows[i].text);
        const struct td_manifest_object *item = &manifest.items[0];
        struct td_problems problems = {.arena = &arena};
        /* Twice: what is said already is not said again. */
        td_objects_check(item->api_version, item->kind, item->tree, &problems);
        td_objects_check(item->api_version, item->kind, item->tree, &problems);
        if (problems.count != (rows[i].field ? 1 : 0)) {
            fail_msg("%s: %zu problems, first %s", rows[i].text, problems.count,
                     problems.count > 0 ? problems.items[0].message.ptr : "");
        }
        if (rows[i].field) {
            assert_string_equal(problems.items[0].field.ptr, rows[i].field);
            assert_int_equal(problems.items[0].line, rows[i].line);
            assert_non_null(strstr(problems.items[0].message.ptr, rows[i].part));
        }
    }
}

#define HPA_OF(version, namespace, name, target_version, target)                                   \
    "---\napiVersion: " version "\nkind: HorizontalPodAutoscaler\nmetadata: {name: " name          \
    ", namespace: '" namespace "'}\nspec:\n  scaleTargetRef: {apiVersion: " target_version         \
                               ", kind: Deployment, name: " target "}\n  maxReplicas: 3\n"

/* Two HPAs on one target: the later one is blamed and names the first; what differs in namespace,
 * group or name is another target, and a copy of the same object is no rival. */
static void test_objects_two_hpas_on_one_target(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_blamed; /* the last object; the others never */
    } rows[] = {
#define FIRST HPA_OF("autoscaling/v2", "shop", "a", "apps/v1", "web")
        {FIRST, false},
        {FIRST HPA_OF("autoscaling/v2", "shop", "b", "apps/v1", "web"), true},
        {FIRST HPA_OF("autoscaling/v1", "shop", "b", "apps/v1beta1", "web"), true},
        {FIRST HPA_OF("autoscaling.tandem.dev/v2", "shop", "b", "apps/v1", "web"), true},
        {FIRST HPA_OF("autoscaling.tandem.dev/v2", "shop", "a", "apps/v1", "web"), true},
        {FIRST HPA_OF("autoscaling/v1", "shop", "a", "apps/v1", "web"), false},
        {FIRST HPA_OF("autoscaling/v2", "shop", "b", "apps/v1", "db"), false},
        {FIRST HPA_OF("autoscaling/v2", "shop", "b", "extensions/v1", "web"), false},
        {FIRST HPA_OF("autoscaling/v2", "else", "b", "apps/v1", "web"), false},
        {FIRST HPA_OF("autoscaling/v2", "shop", "b", "apps/v1", "''"), false},
        {FIRST HPA_OF("example.com/v2", "shop", "b", "apps/v1", "web"), false},
        {HPA_OF("autoscaling/v2", "default", "a", "apps/v1", "web")
             HPA_OF("autoscaling/v2", "", "b", "apps/v1", "web"),
         true},
        {FIRST HPA_OF("autoscaling/v2", "shop", "c", "apps/v1", "db")
             HPA_OF("autoscaling/v2", "shop", "b", "apps/v1", "web"),
         true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
        struct td_manifest manifest = read_manifest(&arena, rows[i].text);
        struct td_problems problems[OBJECTS_MAX];
        for (size_t k = 0; k < OBJECTS_MAX; k++) {
            problems[k] = (struct td_problems){.arena = &arena};
        }
        td_objects_check_all(&manifest, problems);
        for (size_t k = 0; k < manifest.count; k++) {
            bool is_blamed = rows[i].is_blamed && k + 1 == manifest.count;
            if (problems[k].count != (is_blamed ? 1 : 0)) {
                fail_msg("row %zu, object %zu: %zu problems", i, k, problems[k].count);
            }
        }
        if (rows[i].is_blamed) {
            const struct td_problem *problem = &problems[manifest.count - 1].items[0];
            assert_string_equal(problem->field.ptr, "spec.scaleTargetRef");
            assert_int_equal(problem->line, manifest.items[manifest.count - 1].line + 4);
            assert_string_equal(problem->message.ptr, "HorizontalPodAutoscaler a (a.yaml:2) "
                                                      "already scales this target");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_find_the_line_of_a_path),
        cmocka_unit_test(test_objects_check_one_object),
        cmocka_unit_test(test_objects_two_hpas_on_one_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
