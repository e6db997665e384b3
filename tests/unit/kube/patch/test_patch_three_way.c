/* The patch of a client-side apply: changes, deletions, order and conflicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/patch/patch.h"
#include "unit/kube/patch/patch_fixture.h"

static const struct td_schema_type *pod_type(void)
{
    return td_schema_find(TD_STR("v1"), TD_STR("Pod"));
}

static const struct td_schema_type *deployment_type(void)
{
    return td_schema_find(TD_STR("apps/v1"), TD_STR("Deployment"));
}

/* What is in the new configuration is set, what only the last one had is deleted, the rest stays.
 */
static void test_patch_three_way_finds_changes(void **state)
{
    (void)state;
    static const struct {
        const char *original; /* NULL: never applied */
        const char *modified;
        const char *current;
        const char *expected;
    } rows[] = {
        {"{}", "{}", "{}", "{}"},
        {NULL, "{'kind':'Pod'}", "{}", "{'kind':'Pod'}"},
        {"{'kind':'Pod'}", "{'kind':'Pod'}", "{'kind':'Pod','status':{'phase':'Running'}}", "{}"},
        {"{'metadata':{'labels':{'a':'1','b':'1'}}}", "{'metadata':{'labels':{'a':'2'}}}",
         "{'metadata':{'labels':{'a':'1','b':'1','live':'x'}}}",
         "{'metadata':{'labels':{'a':'2','b':null}}}"},
        {NULL, "{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{'labels':{'a':'1','live':'x'}}}",
         "{}"},
        {"{'spec':{'tolerations':[{'key':'a'}]}}", "{'spec':{'tolerations':[{'key':'b'}]}}",
         "{'spec':{'tolerations':[{'key':'a'},{'key':'live'}]}}",
         "{'spec':{'tolerations':[{'key':'b'}]}}"},
        {"{'spec':{'containers':[{'name':'a','image':'1'},{'name':'b'}]}}",
         "{'spec':{'containers':[{'name':'a','image':'2'}]}}",
         "{'spec':{'containers':[{'name':'a','image':'1'},{'name':'b'},{'name':'live'}]}}",
         "{'spec':{'$setElementOrder/containers':[{'name':'a'}],"
         "'containers':[{'image':'2','name':'a'},{'$patch':'delete','name':'b'}]}}"},
        {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
         "{'spec':{'containers':[{'name':'b'},{'name':'a'}]}}",
         "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
         "{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}]}}"},
        {"{'metadata':{'finalizers':['a','b']}}", "{'metadata':{'finalizers':['b','c']}}",
         "{'metadata':{'finalizers':['b','a']}}",
         "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a'],"
         "'$setElementOrder/finalizers':['b','c'],'finalizers':['c']}}"},
        {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}]}}",
         "{'spec':{'volumes':[{'name':'v','secret':{'secretName':'s'}}]}}",
         "{'spec':{'volumes':[{'name':'v','emptyDir':{}}]}}",
         "{'spec':{'$setElementOrder/volumes':[{'name':'v'}],'volumes':[{'$retainKeys':["
         "'name','secret'],'emptyDir':null,'name':'v','secret':{'secretName':'s'}}]}}"},
        {"{'a':1}", "{'a':1.0}", "{'a':1}", "{'a':1}"},
        {"{'a':{'x':1}}", "{'a':{'x':1}}", "{'a':{'x':1}}", "{}"},
        {"null", "null", "null", "{}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_patch_three_way input = {
            .original = rows[i].original ? json(&arena, rows[i].original) : NULL,
            .modified = json(&arena, rows[i].modified),
            .current = json(&arena, rows[i].current),
            .overwrite = true,
        };
        struct td_json *patch = NULL;
        struct td_error err = TD_ERROR_INIT;
        if (td_patch_three_way(&arena, pod_type(), &input, &patch, &err) < 0) {
            fail_msg("%s: %s", rows[i].modified, err.message);
        }
        assert_string_equal(text_of(&arena, patch), rows[i].expected);
    }
}

/* Without overwrite, a field that both sides changed differently is a conflict, named by its
 * path. */
static void test_patch_three_way_finds_conflicts(void **state)
{
    (void)state;
    static const struct {
        const char *original;
        const char *modified;
        const char *current;
        int code;
        const char *path;
    } rows[] = {
        {"{'spec':{'replicas':1}}", "{'spec':{'replicas':2}}", "{'spec':{'replicas':3}}",
         TD_CONFLICT, "spec.replicas: "},
        {"{'spec':{'replicas':1}}", "{'spec':{'replicas':2}}", "{'spec':{'replicas':1}}", TD_OK,
         ""},
        {"{'spec':{'replicas':1}}", "{'spec':{'replicas':2}}", "{'spec':{'replicas':2}}", TD_OK,
         ""},
        {"{'spec':{'replicas':1}}", "{'spec':{}}", "{'spec':{'replicas':3}}", TD_CONFLICT,
         "spec.replicas: "},
        {"{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{'labels':{'a':'2'}}}",
         "{'metadata':{'labels':{'a':'1','b':'2'}}}", TD_OK, ""},
        {"{'spec':{'template':{'spec':{'containers':[{'name':'a','image':'1'}]}}}}",
         "{'spec':{'template':{'spec':{'containers':[{'name':'a','image':'2'}]}}}}",
         "{'spec':{'template':{'spec':{'containers':[{'name':'a','image':'3'}]}}}}", TD_CONFLICT,
         "spec.template.spec.containers.image: "},
        {"{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':['a','b']}}",
         "{'metadata':{'finalizers':['a','c']}}", TD_OK, ""},
        {"{'spec':{'replicas':1}}", "{'spec':{'replicas':'x'}}", "{'spec':{'replicas':{}}}",
         TD_CONFLICT, "spec.replicas: "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_patch_three_way input = {
            .original = json(&arena, rows[i].original),
            .modified = json(&arena, rows[i].modified),
            .current = json(&arena, rows[i].current),
        };
        struct td_json *patch = NULL;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_patch_three_way(&arena, deployment_type(), &input, &patch, &err),
                         rows[i].code);
        assert_memory_equal(err.message, rows[i].path, strlen(rows[i].path));
        input.overwrite = true;
        assert_int_equal(td_patch_three_way(&arena, deployment_type(), &input, &patch, NULL),
                         TD_OK);
    }
}

/* Inputs that are no objects, or that upstream cannot compare. */
static void test_patch_three_way_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *original;
        const char *modified;
        const char *current;
    } rows[] = {
        {"[]", "{}", "{}"},
        {"{}", "1", "{}"},
        {"{}", "{}", "'x'"},
        {"{}", "{'a':1e999}", "{}"},
        {"{}", "{'a':{'x':1}}", "{'a':{'x':2}}"},
        {"{}", "{'a':[1]}", "{'a':[2]}"},
        {"{}", "{'spec':{'containers':[{'image':'1'}]}}", "{'spec':{'containers':[{'name':'1'}]}}"},
        {"{}", "{'spec':{'containers':['a']}}", "{'spec':{'containers':[{'name':'1'}]}}"},
        {"{}", "{'$patch':1}", "{'$patch':'x'}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_patch_three_way input = {
            .original = json(&arena, rows[i].original),
            .modified = json(&arena, rows[i].modified),
            .current = json(&arena, rows[i].current),
            .overwrite = true,
        };
        struct td_json *patch = NULL;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_patch_three_way(&arena, pod_type(), &input, &patch, &err), TD_INVALID);
        assert_null(patch);
        assert_true(err.message[0] != 0);
    }
}

static void set_texts(struct td_arena *arena, struct td_json *object, uint64_t *seed)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++) {
        if (random_below(seed, 2) == 0) {
            struct td_json *value =
                td_json_new_string(arena, td_str_from(names[random_below(seed, 4)]));
            td_json_set(arena, object, td_str_from(names[i]), value);
        }
    }
}

static struct td_json *random_list(struct td_arena *arena, uint64_t *seed, size_t depth)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct td_json *list = td_json_new_array(arena);
    size_t from = random_below(seed, 5);
    for (size_t i = random_below(seed, 5); i > 0; i--) {
        struct td_json *element = td_json_new_object(arena);
        td_str name = td_str_from(names[(from + i * 2) % 5]);
        td_json_set(arena, element, TD_STR("name"), td_json_new_string(arena, name));
        if (depth > 0) {
            td_json_set(arena, element, TD_STR("env"), random_list(arena, seed, depth - 1));
        } else {
            td_json_set(arena, element, TD_STR("value"),
                        td_json_new_string(arena, td_str_from(names[random_below(seed, 3)])));
        }
        td_json_append(list, element);
    }
    return list;
}

static struct td_json *random_pod(struct td_arena *arena, uint64_t *seed)
{
    struct td_json *pod = json(arena, "{'metadata':{'labels':{}},'spec':{'nodeSelector':{}}}");
    struct td_json *spec = td_json_get(pod, TD_STR("spec"));
    set_texts(arena, td_json_get_path(pod, "metadata.labels"), seed);
    set_texts(arena, td_json_get(spec, TD_STR("nodeSelector")), seed);
    td_json_set(arena, spec, TD_STR("containers"), random_list(arena, seed, 1));
    td_json_set(arena, spec, TD_STR("initContainers"), random_list(arena, seed, 0));
    return pod;
}

/* Is everything of `wanted` in `got`? Elements of lists are found by name. */
static bool holds(const struct td_json *got, const struct td_json *wanted)
{
    if (!got || got->type != wanted->type) {
        return false;
    }
    if (wanted->type == TD_JSON_TYPE_OBJECT) {
        for (const struct td_json *member = td_json_first_child(wanted); member;
             member = member->next) {
            if (!holds(td_json_get(got, member->key), member)) {
                return false;
            }
        }
        return true;
    }
    if (wanted->type != TD_JSON_TYPE_ARRAY) {
        return td_json_equal(got, wanted);
    }
    for (const struct td_json *item = td_json_first_child(wanted); item; item = item->next) {
        const struct td_json *other = td_json_first_child(got);
        td_str name = td_json_get_str(item, TD_STR("name"), TD_STR_EMPTY);
        while (other && !td_str_equal(td_json_get_str(other, TD_STR("name"), TD_STR_EMPTY), name)) {
            other = other->next;
        }
        if (!holds(other, item)) {
            return false;
        }
    }
    return true;
}

/* Applied to the live object, the patch brings in all of the new configuration; applying that
 * again has nothing left to do; inputs stay. */
static void test_patch_three_way_brings_in_the_configuration(void **state)
{
    (void)state;
    uint64_t seed = 0xca11;
    for (int i = 0; i < 2000; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_json *modified = random_pod(&arena, &seed);
        struct td_patch_three_way input = {
            .original = random_pod(&arena, &seed),
            .modified = modified,
            .current = random_pod(&arena, &seed),
            .overwrite = true,
        };
        const char *before[] = {text_of(&arena, input.original), text_of(&arena, input.modified),
                                text_of(&arena, input.current)};
        struct td_json *patch = NULL;
        struct td_json *result = NULL;
        assert_int_equal(td_patch_three_way(&arena, pod_type(), &input, &patch, NULL), TD_OK);
        assert_int_equal(
            td_patch_strategic(&arena, pod_type(), input.current, patch, &result, NULL), TD_OK);
        assert_true(holds(result, modified));
        assert_string_equal(text_of(&arena, input.original), before[0]);
        assert_string_equal(text_of(&arena, input.modified), before[1]);
        assert_string_equal(text_of(&arena, input.current), before[2]);
        input.original = modified;
        input.current = modified;
        assert_int_equal(td_patch_three_way(&arena, pod_type(), &input, &patch, NULL), TD_OK);
        assert_int_equal(patch->count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patch_three_way_finds_changes),
        cmocka_unit_test(test_patch_three_way_finds_conflicts),
        cmocka_unit_test(test_patch_three_way_refuses),
        cmocka_unit_test(test_patch_three_way_brings_in_the_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
