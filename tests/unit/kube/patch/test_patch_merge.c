/* Merge patch: RFC 7386 with upstream's treatment of nulls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/patch/patch.h"
#include "unit/kube/patch/patch_fixture.h"

/* The rows of the RFC, then those where upstream has its own way. */
static void test_patch_merge_merges(void **state)
{
    (void)state;
    static const struct {
        const char *document;
        const char *patch;
        const char *expected; /* NULL: refused */
    } rows[] = {
        {"{'a':'b'}", "{'a':'c'}", "{'a':'c'}"},
        {"{'a':'b'}", "{'b':'c'}", "{'a':'b','b':'c'}"},
        {"{'a':'b'}", "{'a':null}", "{}"},
        {"{'a':'b','b':'c'}", "{'a':null}", "{'b':'c'}"},
        {"{'a':['b']}", "{'a':'c'}", "{'a':'c'}"},
        {"{'a':'c'}", "{'a':['b']}", "{'a':['b']}"},
        {"{'a':{'b':'c'}}", "{'a':{'b':'d','c':null}}", "{'a':{'b':'d'}}"},
        {"{'a':[{'b':'c'}]}", "{'a':[1]}", "{'a':[1]}"},
        {"['a','b']", "['c','d']", "['c','d']"},
        {"{'a':'b'}", "['c']", "['c']"},
        {"{'e':null}", "{'a':1}", "{'a':1,'e':null}"},
        {"[1,2]", "{'a':'b','c':null}", "{'a':'b'}"},
        {"{}", "{'a':{'bb':{'ccc':null}}}", "{'a':{'bb':{}}}"},
        {"{'a':null}", "{'a':{'b':null,'c':1}}", "{'a':{'c':1}}"},
        {"{'a':1}", "{'a':[null,{'b':null,'c':[{'d':null}]}]}", "{'a':[null,{'c':[{}]}]}"},
        {"{'a':{}}", "{'a':[{'b':null}]}", "{'a':[{'b':null}]}"},
        {"{'a':[]}", "{'a':[{'b':null}]}", "{'a':[{}]}"},
        {"5", "{'a':1}", "{'a':1}"},
        {"5", "[{'a':null}]", "[{}]"},
        {"{'a':1.0}", "{'b':1e3}", "{'a':1.0,'b':1e3}"},
        {"null", "{}", NULL},
        {"null", "[]", NULL},
        {"{}", "null", NULL},
        {"{}", "5", NULL},
        {"{}", "'a'", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_error err = TD_ERROR_INIT;
        struct td_json *result = NULL;
        int code = td_patch_merge(&arena, json(&arena, rows[i].document),
                                  json(&arena, rows[i].patch), &result, &err);
        assert_int_equal(code, rows[i].expected ? TD_OK : TD_INVALID);
        if (rows[i].expected) {
            assert_string_equal(text_of(&arena, result), rows[i].expected);
        } else {
            assert_null(result);
        }
    }
}

/* Does an array hold a null member? Upstream leaves it there when the array replaces an object,
 * and only then. */
static bool has_null_in_array(const struct td_json *node, bool in_array)
{
    if (node->type != TD_JSON_TYPE_OBJECT && node->type != TD_JSON_TYPE_ARRAY) {
        return in_array && node->type == TD_JSON_TYPE_NULL;
    }
    bool is_array = in_array || node->type == TD_JSON_TYPE_ARRAY;
    for (const struct td_json *child = td_json_first_child(node); child; child = child->next) {
        if (has_null_in_array(child, is_array)) {
            return true;
        }
    }
    return false;
}

/* Once is enough, nothing is a change of nothing, and the inputs stay. */
static void test_patch_merge_applied_twice_is_applied_once(void **state)
{
    (void)state;
    uint64_t seed = 0xfeed;
    int merged = 0;
    for (int i = 0; i < 5000; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_json *document = random_json(&arena, &seed, 4);
        struct td_json *patch = random_json(&arena, &seed, 4);
        const char *document_before = text_of(&arena, document);
        const char *patch_before = text_of(&arena, patch);
        struct td_json *once = NULL;
        struct td_json *twice = NULL;
        if (has_null_in_array(patch, false) ||
            td_patch_merge(&arena, document, patch, &once, NULL) < 0) {
            continue;
        }
        merged++;
        assert_int_equal(td_patch_merge(&arena, once, patch, &twice, NULL), TD_OK);
        assert_true(td_json_equal(once, twice));
        assert_string_equal(text_of(&arena, document), document_before);
        assert_string_equal(text_of(&arena, patch), patch_before);
        if (document->type == TD_JSON_TYPE_OBJECT) {
            assert_int_equal(td_patch_merge(&arena, document, json(&arena, "{}"), &once, NULL),
                             TD_OK);
            assert_true(td_json_equal(once, document));
        }
    }
    assert_true(merged > 1000);
}

/* Trees made by code may be deeper than any text; they are refused. */
static void test_patch_merge_refuses_deep_trees(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *deep = td_json_new_object(&arena);
    for (size_t i = 0; i < TD_JSON_DEPTH_MAX; i++) {
        struct td_json *outer = td_json_new_object(&arena);
        td_json_set(&arena, outer, TD_STR("a"), deep);
        deep = outer;
    }
    struct td_json *result = NULL;
    struct td_json *flat = json(&arena, "{}");
    assert_int_equal(td_patch_merge(&arena, flat, deep, &result, NULL), TD_LIMIT);
    assert_int_equal(td_patch_merge(&arena, deep, flat, &result, NULL), TD_LIMIT);
    assert_int_equal(td_patch_json(&arena, deep, json(&arena, "[]"), &result, NULL), TD_LIMIT);
    deep = td_json_get(deep, TD_STR("a"));
    assert_int_equal(td_patch_merge(&arena, flat, deep, &result, NULL), TD_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patch_merge_merges),
        cmocka_unit_test(test_patch_merge_applied_twice_is_applied_once),
        cmocka_unit_test(test_patch_merge_refuses_deep_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
