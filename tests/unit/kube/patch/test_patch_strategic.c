/* Strategic merge patch: lists by key, directives, and what upstream does at the edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/patch/patch.h"
#include "unit/kube/patch/patch_fixture.h"

struct row {
    const char *document;
    const char *patch;
    const char *expected; /* NULL: refused */
};

static const struct td_schema_type *pod_type(void)
{
    return td_schema_find(TD_STR("v1"), TD_STR("Pod"));
}

static void check_all(const struct td_schema_type *type, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_error err = TD_ERROR_INIT;
        struct td_json *result = NULL;
        int code = td_patch_strategic(&arena, type, json(&arena, rows[i].document),
                                      json(&arena, rows[i].patch), &result, &err);
        if (!rows[i].expected) {
            assert_int_equal(code, TD_INVALID);
            assert_null(result);
            assert_true(err.message[0] != 0);
            continue;
        }
        if (code < 0) {
            fail_msg("%s: %s", rows[i].patch, err.message);
        }
        assert_string_equal(text_of(&arena, result), rows[i].expected);
    }
}

/* Objects merge, nulls delete, other lists are replaced. */
static void test_patch_strategic_merges_objects(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{}", "{}", "{}"},
        {"null", "{'kind':'Pod'}", "{'kind':'Pod'}"},
        {"{'kind':'Pod'}", "null", "{'kind':'Pod'}"},
        {"{'metadata':{'labels':{'a':'1','b':'2'}}}",
         "{'metadata':{'labels':{'a':'3','b':null,'c':'4','d':null}}}",
         "{'metadata':{'labels':{'a':'3','c':'4'}}}"},
        {"{'spec':{}}", "{'spec':{'nodeSelector':{'a':null,'b':'1'}}}",
         "{'spec':{'nodeSelector':{'b':'1'}}}"},
        {"{'spec':{'tolerations':[{'key':'a'}]}}", "{'spec':{'tolerations':[{'key':'b'}]}}",
         "{'spec':{'tolerations':[{'key':'b'}]}}"},
        {"{'spec':{'hostname':'a'}}", "{'spec':{'hostname':{'x':[1]}}}",
         "{'spec':{'hostname':{'x':[1]}}}"},
        {"{'Spec':{'nodeSelector':{'a':'1'}}}", "{'Spec':{'NODESELECTOR':{'a':'2'}}}",
         "{'Spec':{'NODESELECTOR':{'a':'2'},'nodeSelector':{'a':'1'}}}"},
        {"{'a':1}", "{'a':2.50}", "{'a':2.5}"},
        {"{'a':12345678901234567890}", "{}", "{'a':12345678901234567000}"},
        {"{'a':{'x':1}}", "{'a':1}", "{'a':1}"},
        {"[]", "{}", NULL},
        {"{}", "[]", NULL},
        {"{'a':1e400}", "{}", NULL},
        {"{'a':{'b':1}}", "{'a':{'b':2}}", NULL},
        {"{'metadata':{'labels':{'a':{'b':1}}}}", "{'metadata':{'labels':{'a':{'b':2}}}}", NULL},
        {"{'metadata':{'labels':[1]}}", "{'metadata':{'labels':[2]}}", NULL},
        {"{'spec':{'securityContext':[1]}}", "{'spec':{'securityContext':[2]}}",
         "{'spec':{'securityContext':[2]}}"},
    };
    check_all(pod_type(), rows, sizeof(rows) / sizeof(rows[0]));
}

/* Elements with the same key merge, others join; the patch's order leads. */
static void test_patch_strategic_merges_lists_by_key(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'spec':{'containers':[{'name':'a','image':'1'},{'name':'b'}]}}",
         "{'spec':{'containers':[{'name':'a','image':'2'}]}}",
         "{'spec':{'containers':[{'image':'2','name':'a'},{'name':'b'}]}}"},
        {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
         "{'spec':{'containers':[{'name':'c'},{'name':'b','image':'1'}]}}",
         "{'spec':{'containers':[{'name':'c'},{'name':'a'},{'image':'1','name':'b'}]}}"},
        {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
         "{'spec':{'containers':[{'name':'a','$patch':'delete'}]}}",
         "{'spec':{'containers':[{'name':'b'}]}}"},
        {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
         "{'spec':{'containers':[{'$patch':'replace'},{'name':'c'}]}}",
         "{'spec':{'containers':[{'name':'c'}]}}"},
        /* 80 and 80.0 are different keys: an int64 and a float64. */
        {"{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80}]}]}}",
         "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80.0,'name':'x'}]}]}}",
         "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80,'name':'x'},"
         "{'containerPort':80}]}]}}"},
        {"{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80}]}]}}",
         "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80,'name':'x'}]}]}}",
         "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80,'name':'x'}]}]}}"},
        {"{'spec':{'containers':[]}}", "{'spec':{'containers':[]}}", "{'spec':{'containers':[]}}"},
        {"{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':[{'image':'x'}]}}", NULL},
        {"{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':['a']}}", NULL},
        {"{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':[null]}}", NULL},
        {"{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':[[]]}}", NULL},
        {"{'spec':{'containers':[{'name':{}}]}}", "{'spec':{'containers':[{'name':{}}]}}", NULL},
        {"{'spec':{'containers':[{'name':'a'}]}}",
         "{'spec':{'containers':[{'name':'a','$patch':'merge'}]}}", NULL},
        {"{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':[{'$patch':'delete'}]}}",
         NULL},
    };
    check_all(pod_type(), rows, sizeof(rows) / sizeof(rows[0]));
}

/* $setElementOrder puts known elements in order and keeps the server's own beside their
 * neighbours. */
static void test_patch_strategic_orders_elements(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'metadata':{'finalizers':['a','b','c']}}",
         "{'metadata':{'$setElementOrder/finalizers':['c','a']}}",
         "{'metadata':{'finalizers':['b','c','a']}}"},
        {"{'spec':{'containers':[{'name':'a'},{'name':'x'},{'name':'b'}]}}",
         "{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'n'},{'name':'a'}],"
         "'containers':[{'name':'n'}]}}",
         "{'spec':{'containers':[{'name':'x'},{'name':'b'},{'name':'n'},{'name':'a'}]}}"},
        /* The room that a deleted element left counts: see the top of patch_strategic.c. */
        {"{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'l'}]}}",
         "{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'c'}],"
         "'containers':[{'name':'b','image':'1'},{'name':'c'},{'name':'a','$patch':'delete'}]}}",
         "{'spec':{'containers':[{'image':'1','name':'b'},{'name':'l'},{'name':'c'}]}}"},
        {"{}", "{'metadata':{'$setElementOrder/finalizers':['a']}}",
         "{'metadata':{'$setElementOrder/finalizers':['a']}}"},
        {"{'metadata':{}}", "{'metadata':{'$setElementOrder/finalizers':['a']}}",
         "{'metadata':{}}"},
        {"{'metadata':{}}",
         "{'metadata':{'$setElementOrder/finalizers':[],'finalizers':['a','b','c']}}",
         "{'metadata':{'finalizers':['c','b','a']}}"},
        {"{'metadata':{'finalizers':['a']}}",
         "{'metadata':{'$setElementOrder/finalizers':['a','b'],'finalizers':['c']}}", NULL},
        {"{'metadata':{'finalizers':[]}}", "{'metadata':{'$setElementOrder/finalizers':['a']}}",
         NULL},
        {"{'metadata':{'finalizers':['a']}}", "{'metadata':{'$setElementOrder/finalizers':'a'}}",
         NULL},
        {"{'metadata':{}}", "{'metadata':{'$setElementOrder':['a']}}", NULL},
        {"{'metadata':{}}", "{'metadata':{'$setElementOrderX/finalizers':['a']}}", NULL},
        {"{'spec':{'containers':[{'name':'a'}]}}",
         "{'spec':{'$setElementOrder/containers':[{'x':1}],'containers':[{'name':'a'}]}}", NULL},
    };
    check_all(pod_type(), rows, sizeof(rows) / sizeof(rows[0]));
}

/* Lists of scalars merge as sets; $deleteFromPrimitiveList takes away. */
static void test_patch_strategic_merges_scalars(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'metadata':{'finalizers':['a','b']}}", "{'metadata':{'finalizers':['b','c']}}",
         "{'metadata':{'finalizers':['a','b','c']}}"},
        {"{'metadata':{'finalizers':['a','b','a']}}",
         "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a','x']}}",
         "{'metadata':{'finalizers':['b']}}"},
        {"{'metadata':{}}", "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a']}}",
         "{'metadata':{}}"},
        {"{'metadata':{'finalizers':['a']}}",
         "{'metadata':{'$deleteFromPrimitiveList/finalizers':null}}", "{'metadata':{}}"},
        {"{'metadata':{'finalizers':['a']}}",
         "{'metadata':{'$deleteFromPrimitiveList/finalizers':'a'}}",
         "{'metadata':{'finalizers':['a']}}"},
        {"{'metadata':{'finalizers':['a']}}", "{'metadata':{'$deleteFromPrimitiveList':['a']}}",
         NULL},
        {"{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':[1]}}", NULL},
        {"{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':[{'a':1}]}}", NULL},
        {"{'metadata':{'finalizers':[{'a':1}]}}", "{'metadata':{'finalizers':[{'a':1}]}}", NULL},
        /* Two of one value: upstream edits the list it orders by. */
        {"{'metadata':{'finalizers':['a','a','b']}}", "{'metadata':{'finalizers':['c']}}",
         "{'metadata':{'finalizers':['a','c','b']}}"},
    };
    check_all(pod_type(), rows, sizeof(rows) / sizeof(rows[0]));
}

/* $patch and $retainKeys on objects. */
static void test_patch_strategic_obeys_object_directives(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'a':1}", "{'$patch':'replace','b':2}", "{'b':2}"},
        {"{'a':1}", "{'$patch':'delete'}", "{}"},
        {"{'a':1}", "{'$patch':'merge'}", NULL},
        {"{'a':1}", "{'$patch':1}", NULL},
        {"{'metadata':{'labels':{'a':'1'}}}",
         "{'metadata':{'labels':{'$patch':'replace','b':null}}}",
         "{'metadata':{'labels':{'b':null}}}"},
        {"{'spec':{}}", "{'spec':{'nodeSelector':{'$patch':'replace','b':'1'}}}", "{'spec':{}}"},
        {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}]}}",
         "{'spec':{'volumes':[{'name':'v','$retainKeys':['name','secret'],'secret':{'x':1}}]}}",
         "{'spec':{'volumes':[{'name':'v','secret':{'x':1}}]}}"},
        {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}]}}",
         "{'spec':{'volumes':[{'name':'v','$retainKeys':['name'],'secret':{'x':1}}]}}", NULL},
        {"{'a':1,'b':2}", "{'$retainKeys':['b',1,null]}", "{'b':2}"},
        {"{'a':1,'b':2}", "{'$retainKeys':[{}]}", NULL},
        {"{'a':1,'b':2}", "{'$retainKeys':'a'}", NULL},
    };
    check_all(pod_type(), rows, sizeof(rows) / sizeof(rows[0]));
    static const struct row budget[] = {
        {"{'spec':{'selector':{'matchLabels':{'a':'1'}}}}",
         "{'spec':{'selector':{'matchExpressions':[]}}}",
         "{'spec':{'selector':{'matchExpressions':[]}}}"},
    };
    check_all(td_schema_find(TD_STR("policy/v1"), TD_STR("PodDisruptionBudget")), budget, 1);
}

/* The message leads to the field. */
static void test_patch_strategic_names_the_field(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_error err = TD_ERROR_INIT;
    struct td_json *result = NULL;
    const struct td_json *document = json(&arena, "{'spec':{'containers':[{'name':'a'}]}}");
    const struct td_json *patch = json(&arena, "{'spec':{'containers':[{'image':'x'}]}}");
    assert_int_equal(td_patch_strategic(&arena, pod_type(), document, patch, &result, &err),
                     TD_INVALID);
    assert_string_equal(err.message, "spec.containers: element 0 has no merge key \"name\"");
    assert_int_equal(td_patch_strategic(&arena, pod_type(), document, patch, &result, NULL),
                     TD_INVALID);
}

static struct td_json *environment(struct td_arena *arena, size_t count, size_t step,
                                   const char *directive)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        struct td_json *element = td_json_new_object(arena);
        td_str name = td_arena_format(arena, "N%zu", i * step % count);
        td_json_set(arena, element, TD_STR("name"), td_json_new_string(arena, name));
        if (directive) {
            td_json_set(arena, element, TD_STR("$patch"),
                        td_json_new_string(arena, td_str_from(directive)));
        }
        td_json_append(list, element);
    }
    struct td_json *pod = json(arena, "{'spec':{'containers':[{'name':'a'}]}}");
    td_json_set(arena, td_json_first_child(td_json_get_path(pod, "spec.containers")), TD_STR("env"),
                list);
    return pod;
}

/* Long lists merge, reorder and empty without a quadratic search. */
static void test_patch_strategic_takes_long_lists(void **state)
{
    (void)state;
    const size_t count = 20011; /* prime, so that every step visits all */
    td_auto_arena arena;
    td_arena_init(&arena, (size_t)1 << 30);
    const struct td_json *document = environment(&arena, count, 1, NULL);
    struct td_json *result = NULL;
    const struct td_json *patch = environment(&arena, count, 7919, NULL);
    assert_int_equal(td_patch_strategic(&arena, pod_type(), document, patch, &result, NULL), TD_OK);
    assert_true(td_json_equal(result, patch));
    patch = environment(&arena, count, 7919, "delete");
    assert_int_equal(td_patch_strategic(&arena, pod_type(), document, patch, &result, NULL), TD_OK);
    assert_string_equal(text_of(&arena, result), "{'spec':{'containers':[{'env':[],'name':'a'}]}}");
}

/* Inputs stay, an empty patch is no change, and a patch changes what it changed to the same. */
static void test_patch_strategic_leaves_its_inputs_alone(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "{'metadata':{'labels':{'a':'1'},'finalizers':['a','b']}}",
        "{'metadata':{'labels':{'a':null,'b':'2'},'$deleteFromPrimitiveList/finalizers':['a']}}",
        "{'spec':{'containers':[{'name':'a','env':[{'name':'X','value':'1'}]},{'name':'b'}]}}",
        "{'spec':{'containers':[{'name':'b','$patch':'delete'},{'name':'c','image':null}]}}",
        "{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}]}}",
        "{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'tolerations':[{'key':'a'}]}}",
        "{'spec':{'volumes':[{'name':'v','$retainKeys':['name','secret'],'secret':{}}]}}",
        "{'spec':{'$patch':'replace','hostname':'h'}}",
    };
    const size_t count = sizeof(parts) / sizeof(parts[0]);
    for (size_t i = 0; i < count * count; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const struct td_json *document = json(&arena, parts[i / count]);
        const struct td_json *patch = json(&arena, parts[i % count]);
        const char *document_before = text_of(&arena, document);
        const char *patch_before = text_of(&arena, patch);
        struct td_json *once = NULL;
        struct td_json *same = NULL;
        (void)td_patch_strategic(&arena, pod_type(), document, patch, &once, NULL);
        assert_string_equal(text_of(&arena, document), document_before);
        assert_string_equal(text_of(&arena, patch), patch_before);
        assert_int_equal(
            td_patch_strategic(&arena, pod_type(), document, json(&arena, "{}"), &same, NULL),
            TD_OK);
        assert_true(td_json_equal(same, document));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patch_strategic_merges_objects),
        cmocka_unit_test(test_patch_strategic_merges_lists_by_key),
        cmocka_unit_test(test_patch_strategic_orders_elements),
        cmocka_unit_test(test_patch_strategic_merges_scalars),
        cmocka_unit_test(test_patch_strategic_obeys_object_directives),
        cmocka_unit_test(test_patch_strategic_names_the_field),
        cmocka_unit_test(test_patch_strategic_takes_long_lists),
        cmocka_unit_test(test_patch_strategic_leaves_its_inputs_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
