/* JSON patch: RFC 6902 with the habits of upstream's library, and its limits. */
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

static void check(const struct row *row)
{
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_error err = TD_ERROR_INIT;
    struct td_json *result = NULL;
    int code =
        td_patch_json(&arena, json(&arena, row->document), json(&arena, row->patch), &result, &err);
    if (!row->expected) {
        assert_true(code < 0);
        assert_null(result);
        assert_true(err.message[0] != 0);
        return;
    }
    if (code < 0) {
        fail_msg("%s: %s", row->patch, err.message);
    }
    assert_string_equal(text_of(&arena, result), row->expected);
}

static void check_all(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check(&rows[i]);
    }
}

/* The six operations do what the RFC says. */
static void test_patch_json_runs_operations(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{}", "[]", "{}"},
        {"{'a':1}", "null", "{'a':1}"},
        {"{'a':1}", "[{'op':'add','path':'/b','value':{'c':2}}]", "{'a':1,'b':{'c':2}}"},
        {"{'a':1}", "[{'op':'add','path':'/a','value':2}]", "{'a':2}"},
        {"{'a':[1,3]}", "[{'op':'add','path':'/a/1','value':2}]", "{'a':[1,2,3]}"},
        {"{'a':[1]}", "[{'op':'add','path':'/a/-','value':2}]", "{'a':[1,2]}"},
        {"{'a':1,'b':2}", "[{'op':'remove','path':'/a'}]", "{'b':2}"},
        {"{'a':[1,2]}", "[{'op':'remove','path':'/a/0'}]", "{'a':[2]}"},
        {"{'a':1}", "[{'op':'replace','path':'/a','value':[]}]", "{'a':[]}"},
        {"{'a':[1]}", "[{'op':'replace','path':'/a/0','value':2}]", "{'a':[2]}"},
        {"{'a':{'b':1}}", "[{'op':'move','from':'/a/b','path':'/c'}]", "{'a':{},'c':1}"},
        {"{'a':{'b':1}}", "[{'op':'copy','from':'/a','path':'/a/c'}]", "{'a':{'b':1,'c':{'b':1}}}"},
        {"{'a':[1,{'b':null}]}", "[{'op':'test','path':'/a/1','value':{'b':null}}]",
         "{'a':[1,{'b':null}]}"},
        {"{'x/y':1,'m~n':2}",
         "[{'op':'remove','path':'/x~1y'},{'op':'replace','path':'/m~0n','value':3}]", "{'m~n':3}"},
        {"[1]", "[{'op':'add','path':'/0','value':0}]", "[0,1]"},
        {"{}", "[{'op':'replace','path':'','value':[1]}]", "[1]"},
    };
    check_all(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Where upstream is laxer than the RFC, so are we. */
static void test_patch_json_keeps_lax_habits(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'a':[1,2]}", "[{'op':'add','path':'/a/-1','value':3}]", "{'a':[1,2,3]}"},
        {"{'a':[1,2]}", "[{'op':'add','path':'/a/-3','value':0}]", "{'a':[0,1,2]}"},
        {"{'a':[1,2]}", "[{'op':'remove','path':'/a/-1'}]", "{'a':[1]}"},
        {"{'a':[1,2]}", "[{'op':'remove','path':'/a/01'}]", "{'a':[1]}"},
        {"{'a':[1,2]}", "[{'op':'add','path':'/a/2','value':3}]", "{'a':[1,2,3]}"},
        {"{}", "[{'op':'add','path':'ignored/a','value':1}]", "{'a':1}"},
        {"{}", "[{'op':'replace','path':'/a','value':1}]", "{'a':1}"},
        {"{}", "[{'op':'add','path':'/a'}]", "{'a':null}"},
        {"{}", "[{'op':'copy','from':'/x','path':'/a'}]", "{'a':null}"},
        {"{'a':1}", "[{'op':'test','path':'/x'},{'op':'test','path':'/x','value':null}]",
         "{'a':1}"},
        {"{}", "[{'op':'add','path':'/~2','value':1}]", "{'~2':1}"},
        {"{}", "[{'op':'add','path':'/~01','value':1}]", "{'~1':1}"},
        {"{}", "[{'op':'add','path':'/','value':1}]", "{'':1}"},
        {"null", "[]", "null"},
        {"null", "[{'op':'test','path':'','value':{}}]", "null"},
        {"{}", "[{'op':'test','path':'','value':{}}]", "{}"},
    };
    check_all(rows, sizeof(rows) / sizeof(rows[0]));
}

/* What is refused, is refused whole. */
static void test_patch_json_refuses(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"5", "[]", NULL},
        {"{}", "{}", NULL},
        {"{}", "[1]", NULL},
        {"{}", "[null]", NULL},
        {"{}", "[{'path':'/a'}]", NULL},
        {"{}", "[{'op':'Add','path':'/a','value':1}]", NULL},
        {"{}", "[{'op':1,'path':'/a','value':1}]", NULL},
        {"{}", "[{'op':'add','value':1}]", NULL},
        {"{}", "[{'op':'add','path':null,'value':1}]", NULL},
        {"{}", "[{'op':'add','path':'','value':1}]", NULL},
        {"{}", "[{'op':'add','path':'a','value':1}]", NULL},
        {"{}", "[{'op':'add','path':'/a/b','value':1}]", NULL},
        {"{'a':null}", "[{'op':'add','path':'/a/b','value':1}]", NULL},
        {"{'a':1}", "[{'op':'add','path':'/a/b','value':1}]", NULL},
        {"{'a':[]}", "[{'op':'add','path':'/a/1','value':1}]", NULL},
        {"{'a':[]}", "[{'op':'add','path':'/a/-2','value':1}]", NULL},
        {"{'a':[]}", "[{'op':'add','path':'/a/x','value':1}]", NULL},
        {"{'a':[1]}", "[{'op':'remove','path':'/a/-'}]", NULL},
        {"{'a':[1]}", "[{'op':'remove','path':'/a/1'}]", NULL},
        {"{'a':[1]}", "[{'op':'replace','path':'/a/1','value':1}]", NULL},
        {"{'a':[1]}", "[{'op':'remove','path':'/a/99999999999999999999'}]", NULL},
        {"{}", "[{'op':'remove','path':'/a'}]", NULL},
        {"{}", "[{'op':'move','from':'/a','path':'/b'}]", NULL},
        {"{'a':{}}", "[{'op':'move','from':'/a','path':'/a/b'}]", NULL},
        {"{}", "[{'op':'copy','path':'/b'}]", NULL},
        {"{}", "[{'op':'replace','path':'','value':1}]", NULL},
        {"{}", "[{'op':'replace','path':''}]", NULL},
        {"null", "[{'op':'add','path':'/a','value':1}]", NULL},
        {"{'a':1}", "[{'op':'test','path':'/a'}]", NULL},
        {"{'a':1}", "[{'op':'test','path':'/a','value':2}]", NULL},
        {"{'a':1}", "[{'op':'test','path':''}]", NULL},
        {"{'a':[1,2]}", "[{'op':'test','path':'/a','value':[1]}]", NULL},
    };
    check_all(rows, sizeof(rows) / sizeof(rows[0]));
}

/* "test" compares scalars as written, and nulls by where they came from. */
static void test_patch_json_compares_as_written(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'a':1}", "[{'op':'test','path':'/a','value':1.0}]", NULL},
        {"{'a':1e2}", "[{'op':'test','path':'/a','value':100}]", NULL},
        {"{'a':'A'}", "[{'op':'test','path':'/a','value':'\\u0041'}]", NULL},
        {"{'a':'\\u0041'}", "[{'op':'test','path':'/a','value':'\\u0041'}]", "{'a':'A'}"},
        {"{'a':'\\n'}", "[{'op':'test','path':'/a','value':'\\n'}]", "{'a':'\\n'}"},
        {"{'a':{'b':1,'c':2}}", "[{'op':'test','path':'/a','value':{'c':2,'b':1}}]",
         "{'a':{'b':1,'c':2}}"},
        /* Upstream crashes on nulls in compared arrays. */
        {"{'a':[null]}", "[{'op':'test','path':'/a','value':[null]}]", NULL},
        /* A null that was given is found alone, but not inside its parent. */
        {"{'p':{}}",
         "[{'op':'add','path':'/p/a','value':null},{'op':'test','path':'/p/a','value':null}]",
         "{'p':{'a':null}}"},
        {"{'p':{}}",
         "[{'op':'add','path':'/p/a','value':null},{'op':'test','path':'/p','value':{'a':null}}]",
         NULL},
        /* A copy of it looks like an empty object. */
        {"{}",
         "[{'op':'add','path':'/a','value':null},{'op':'copy','from':'/a','path':'/b'},"
         "{'op':'test','path':'/b','value':{}}]",
         "{'a':null,'b':null}"},
        {"{}",
         "[{'op':'add','path':'/a','value':null},{'op':'copy','from':'/a','path':'/b'},"
         "{'op':'test','path':'/b','value':null}]",
         NULL},
        {"{}",
         "[{'op':'add','path':'/a','value':null},{'op':'copy','from':'/a','path':'/b'},"
         "{'op':'add','path':'/b/c','value':1}]",
         NULL},
        /* Copies are compared with their HTML escaped. */
        {"{'a':'<'}",
         "[{'op':'copy','from':'/a','path':'/b'},{'op':'test','path':'/b','value':'<'}]", NULL},
        {"{'a':'<'}",
         "[{'op':'copy','from':'/a','path':'/b'},{'op':'test','path':'/b','value':'\\u003c'}]",
         "{'a':'<','b':'<'}"},
    };
    check_all(rows, sizeof(rows) / sizeof(rows[0]));
}

static struct td_json *operation(struct td_arena *arena, const char *op, const char *from,
                                 const char *path)
{
    struct td_json *made = td_json_new_object(arena);
    td_json_set(arena, made, TD_STR("op"), td_json_new_string(arena, td_str_from(op)));
    td_json_set(arena, made, TD_STR("from"), td_json_new_string(arena, td_str_from(from)));
    td_json_set(arena, made, TD_STR("path"), td_json_new_string(arena, td_str_from(path)));
    return made;
}

/* Neither many operations, nor copies of copies, nor nesting, nor long walks get far. */
static void test_patch_json_is_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *document;
        const char *from;
        const char *path;
        size_t count;
        int code;
        const char *message;
    } rows[] = {
        {"{'a':1}", "/a", "/b", TD_PATCH_OPERATIONS_MAX, TD_OK, ""},
        {"{'a':1}", "/a", "/b", TD_PATCH_OPERATIONS_MAX + 1, TD_LIMIT, "10001 operations"},
        {"{'a':['0123456789']}", "/a", "/a/-", 100, TD_LIMIT, "copies more than"},
        {"{'a':{}}", "/a", "/a/a", 509, TD_OK, ""},
        {"{'a':{}}", "/a", "/a/a", 600, TD_LIMIT, "deeper than"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_json *patch = td_json_new_array(&arena);
        for (size_t j = 0; j < rows[i].count; j++) {
            td_json_append(patch, operation(&arena, "copy", rows[i].from, rows[i].path));
        }
        struct td_json *result = NULL;
        struct td_error err = TD_ERROR_INIT;
        int code = td_patch_json(&arena, json(&arena, rows[i].document), patch, &result, &err);
        assert_int_equal(code, rows[i].code);
        assert_non_null(strstr(err.message, rows[i].message));
    }
}

/* The message names the operation at fault. */
static void test_patch_json_names_the_operation(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_error err = TD_ERROR_INIT;
    struct td_json *result = NULL;
    const struct td_json *patch =
        json(&arena, "[{'op':'add','path':'/a','value':1},{'op':'remove','path':'/b/c'}]");
    assert_int_equal(td_patch_json(&arena, json(&arena, "{}"), patch, &result, &err), TD_INVALID);
    assert_string_equal(err.message, "operation 1 (remove \"/b/c\"): document has no object or "
                                     "array at \"/b\"");
    assert_int_equal(td_patch_json(&arena, json(&arena, "{}"), patch, &result, NULL), TD_INVALID);
}

static struct td_json *random_patch(struct td_arena *arena, uint64_t *seed)
{
    static const char *const ops[] = {"add", "remove", "replace", "move", "copy", "test"};
    static const char *const paths[] = {"", "/a", "/b", "/a/a", "/a/0", "/c/-", "/~0", "/x~1y/a"};
    struct td_json *patch = td_json_new_array(arena);
    for (size_t i = random_below(seed, 4); i > 0; i--) {
        struct td_json *made =
            operation(arena, ops[random_below(seed, 6)], paths[random_below(seed, 8)],
                      paths[random_below(seed, 8)]);
        td_json_set(arena, made, TD_STR("value"), random_json(arena, seed, 2));
        td_json_append(patch, made);
    }
    return patch;
}

/* Inputs stay as they are, the result can be changed freely, and the same patch gives the same. */
static void test_patch_json_leaves_its_inputs_alone(void **state)
{
    (void)state;
    uint64_t seed = 0x5eed;
    for (int i = 0; i < 3000; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_json *document = random_json(&arena, &seed, 4);
        struct td_json *patch = random_patch(&arena, &seed);
        const char *document_before = text_of(&arena, document);
        const char *patch_before = text_of(&arena, patch);
        struct td_json *result = NULL;
        struct td_json *again = NULL;
        int code = td_patch_json(&arena, document, patch, &result, NULL);
        assert_int_equal(td_patch_json(&arena, document, patch, &again, NULL), code);
        if (code == TD_OK) {
            assert_true(td_json_equal(result, again));
        }
        if (td_json_is(result, TD_JSON_TYPE_OBJECT)) {
            td_json_set(&arena, result, TD_STR("a"), td_json_new_null(&arena));
        }
        assert_string_equal(text_of(&arena, document), document_before);
        assert_string_equal(text_of(&arena, patch), patch_before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patch_json_runs_operations),
        cmocka_unit_test(test_patch_json_keeps_lax_habits),
        cmocka_unit_test(test_patch_json_refuses),
        cmocka_unit_test(test_patch_json_compares_as_written),
        cmocka_unit_test(test_patch_json_is_bounded),
        cmocka_unit_test(test_patch_json_names_the_operation),
        cmocka_unit_test(test_patch_json_leaves_its_inputs_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
