/* The tree: parsing options, duplicates, edits, comparison and what hostile texts cannot do. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json/json.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static struct td_json *parse(struct td_arena *arena, td_str text)
{
    struct td_json *root = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_json_parse(arena, text, NULL, &root, &err) < 0) {
        fail_msg("%.*s: %s", TD_STR_ARG(text), err.message);
    }
    return root;
}

static void expect_json(const struct td_json *node, const char *expected)
{
    td_auto_buf out;
    td_buf_init(&out, 1 << 20);
    td_json_write(node, NULL, &out);
    assert_string_equal(td_buf_str(&out).ptr, expected);
}

/* The list, its counts and its ends agree, and every member is found. */
static void expect_sound(const struct td_json *node)
{
    size_t count = 0;
    const struct td_json *last = NULL;
    for (const struct td_json *child = td_json_first_child(node); child; child = child->next) {
        if (node->type == TD_JSON_TYPE_OBJECT) {
            assert_ptr_equal(td_json_get(node, child->key), child);
        }
        last = child;
        count++;
    }
    assert_int_equal(node->count, count);
    assert_ptr_equal(td_json_last_child(node), last);
}

/* Values keep their kinds, order and texts. */
static void test_json_parse_keeps_what_was_written(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    td_str text =
        TD_STR("{\"z\":[1.50,-0,\"a\\nb\"],\"a\":{\"b\":null,\"\\u0063\":true},\"\":false}");
    const struct td_json *root = parse(&arena, text);
    expect_json(root, "{\"z\":[1.50,-0,\"a\\nb\"],\"a\":{\"b\":null,\"c\":true},\"\":false}");
    assert_int_equal(root->type, TD_JSON_TYPE_OBJECT);
    assert_int_equal(root->count, 3);
    const struct td_json *z = td_json_first_member(root);
    assert_int_equal(z->type, TD_JSON_TYPE_ARRAY);
    assert_ptr_equal(z->key.ptr, text.ptr + 2); /* a slice of the text */
    assert_true(td_json_is(td_json_at(z, 2), TD_JSON_TYPE_STRING));
    assert_true(td_str_equal(td_json_at(z, 2)->text, TD_STR("a\nb")));
    assert_true(td_json_get_bool(td_json_get(root, TD_STR("a")), TD_STR("c"), false));
    assert_int_equal(root->line, 0);
    expect_sound(root);
}

/* Each kind of failure has its code and place, and leaves the result alone. */
static void test_json_parse_reports_failures(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        struct td_json_options options;
        size_t arena_bytes_max;
        int code;
        const char *message;
    } rows[] = {
        {TD_STR_INIT(""), {0}, 10000, TD_INVALID, "line 1 column 1: the text is empty"},
        {TD_STR_INIT("{\"a\":1\n\"b\"}"),
         {0},
         10000,
         TD_INVALID,
         "line 2 column 1: expected ',' or '}' after a member"},
        {TD_STR_INIT("[1,2,3]"),
         {.bytes_max = 6},
         10000,
         TD_LIMIT,
         "JSON text of 7 bytes is larger than 6 bytes"},
        {TD_STR_INIT("[1,2,3]"), {.bytes_max = 7}, 10000, TD_OK, ""},
        {TD_STR_INIT("[\n[[1]]]"),
         {.depth_max = 2},
         10000,
         TD_LIMIT,
         "line 2 column 2: nested deeper than 2 levels"},
        {TD_STR_INIT("[[1]]"), {.depth_max = 2}, 10000, TD_OK, ""},
        {TD_STR_INIT("[1,2,3,4,5,6,7,8,9]"),
         {0},
         256,
         TD_LIMIT,
         "needs more than 256 bytes of memory"},
        {TD_STR_INIT("\"\\u0041234567890123456789012345678901234567890123456789\""),
         {0},
         80,
         TD_LIMIT,
         "needs more than 80 bytes of memory"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, rows[i].arena_bytes_max);
        struct td_json *root = NULL;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_json_parse(&arena, rows[i].text, &rows[i].options, &root, &err),
                         rows[i].code);
        assert_string_equal(err.message, rows[i].message);
        assert_int_equal(root != NULL, rows[i].code == TD_OK);
    }
    /* The default cap, without making so large a text: only the length is looked at. */
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_json *root = NULL;
    struct td_error err = TD_ERROR_INIT;
    td_str huge = {.ptr = "", .len = (size_t)200 << 20};
    assert_int_equal(td_json_parse(&arena, huge, NULL, &root, &err), TD_LIMIT);
    assert_string_equal(err.message, "JSON text of 209715200 bytes is larger than 67108864 bytes");
}

/* Lines are where values begin. */
static void test_json_parse_tracks_lines(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_json *root;
    struct td_json_options options = {.track_lines = true};
    td_str text = TD_STR("\n{\"a\":\n1,\"b\":[\n\n{}\r\n, \"x\"\n],\n\"c\":null}");
    assert_int_equal(td_json_parse(&arena, text, &options, &root, NULL), TD_OK);
    assert_int_equal(root->line, 2);
    assert_int_equal(td_json_get(root, TD_STR("a"))->line, 3);
    assert_int_equal(td_json_get(root, TD_STR("b"))->line, 3);
    assert_int_equal(td_json_at(td_json_get(root, TD_STR("b")), 0)->line, 5);
    assert_int_equal(td_json_at(td_json_get(root, TD_STR("b")), 1)->line, 6);
    assert_int_equal(td_json_get(root, TD_STR("c"))->line, 8);
}

/* With copies asked for, the tree outlives its text. */
static void test_json_parse_copies_strings(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    td_str text = TD_STR("{\"name\":\"value\",\"n\":12}");
    char *bytes = td_alloc(text.len);
    memcpy(bytes, text.ptr, text.len);
    struct td_json *root;
    struct td_json_options options = {.copy_strings = true};
    td_str copy = {.ptr = bytes, .len = text.len};
    assert_int_equal(td_json_parse(&arena, copy, &options, &root, NULL), TD_OK);
    memset(bytes, 'x', text.len);
    td_free(bytes);
    expect_json(root, "{\"name\":\"value\",\"n\":12}");
}

/* The last of equal names wins and stands where the first stood. */
static void test_json_parse_last_duplicate_wins_in_place(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        const char *result;
    } rows[] = {
        {TD_STR_INIT("{\"a\":1,\"b\":2,\"a\":3}"), "{\"a\":3,\"b\":2}"},
        {TD_STR_INIT("{\"a\":{\"x\":1},\"b\":2,\"a\":[]}"), "{\"a\":[],\"b\":2}"},
        {TD_STR_INIT("{\"a\":[1,2],\"a\":{\"y\":{}},\"b\":2}"), "{\"a\":{\"y\":{}},\"b\":2}"},
        {TD_STR_INIT("{\"b\":0,\"a\":1,\"\\u0061\":2,\"a\":\"x\"}"), "{\"b\":0,\"a\":\"x\"}"},
        {TD_STR_INIT("{\"\":1,\"\":2}"), "{\"\":2}"},
        {TD_STR_INIT("{\"k1\":1,\"k2\":1,\"k3\":1,\"k4\":1,\"k5\":1,\"k6\":1,\"k7\":1,\"k8\":1,"
                     "\"k9\":1,\"l1\":1,\"l2\":1,\"l3\":1,\"l4\":1,\"l5\":1,\"l6\":1,\"l7\":1,"
                     "\"l8\":1,\"l9\":1,\"k1\":2,\"l9\":2,\"l4\":{},\"m\":1,\"m\":2}"),
         "{\"k1\":2,\"k2\":1,\"k3\":1,\"k4\":1,\"k5\":1,\"k6\":1,\"k7\":1,\"k8\":1,\"k9\":1,\"l1\":"
         "1,\"l2\":1,\"l3\":1,\"l4\":{},\"l5\":1,\"l6\":1,\"l7\":1,\"l8\":1,\"l9\":2,\"m\":2}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        const struct td_json *root = parse(&arena, rows[i].text);
        expect_json(root, rows[i].result);
        expect_sound(root);
    }
}

static void parse_problems(struct td_arena *arena, td_str text, struct td_json_problems *problems)
{
    *problems = (struct td_json_problems){.arena = arena};
    struct td_json *root;
    struct td_json_options options = {.problems = problems};
    assert_int_equal(td_json_parse(arena, text, &options, &root, NULL), TD_OK);
}

/* Duplicates are named by their path, each once, as Kubernetes' strict decoder names them. */
static void test_json_parse_names_duplicates_by_path(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        const char *problems;
    } rows[] = {
        {TD_STR_INIT("{\"a\":1,\"b\":2}"), ""},
        {TD_STR_INIT("{\"a\":1,\"a\":2,\"a\":3}"), "duplicate field \"a\";"},
        {TD_STR_INIT("{\"spec\":{\"containers\":[{\"name\":\"x\",\"name\":\"y\"}]}}"),
         "duplicate field \"spec.containers[0].name\";"},
        {TD_STR_INIT("{\"spec\":{\"c\":[{},1,{\"n\":1,\"m\":1,\"n\":2}],\"c\":[]},\"spec\":1}"),
         "duplicate field \"spec.c[2].n\";duplicate field \"spec.c\";duplicate field \"spec\";"},
        {TD_STR_INIT("[[{\"a\":1,\"a\":1}],{\"b\":{\"c\":1,\"c\":1}}]"),
         "duplicate field \"[0][0].a\";duplicate field \"[1].b.c\";"},
        {TD_STR_INIT("{\"a\":{\"b\":1,\"b\":1},\"a\":{\"b\":1,\"b\":1}}"),
         "duplicate field \"a.b\";duplicate field \"a\";"},
        {TD_STR_INIT("{\"\":{\"x\":1,\"x\":1}}"), "duplicate field \".x\";"},
        {TD_STR_INIT("{\"a\\\"\\\\\\n\\u0001\\u007f\":1,\"a\\\"\\\\\\n\\u0001\\u007f\":1}"),
         "duplicate field \"a\\\"\\\\\\n\\x01\\x7f\";"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        struct td_json_problems problems;
        parse_problems(&arena, rows[i].text, &problems);
        td_auto_buf named;
        td_buf_init(&named, 1000);
        for (size_t j = 0; j < problems.count; j++) {
            (void)td_buf_append_format(&named, "%.*s;", TD_STR_ARG(problems.items[j]));
        }
        assert_string_equal(td_buf_str(&named).ptr, rows[i].problems);
        assert_false(problems.is_cut);
    }
}

/* A hundred are named and no more; paths of any length are cut. */
static void test_json_parse_bounds_what_it_names(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, (size_t)1 << 26);
    td_auto_buf text;
    td_buf_init(&text, 1 << 22);
    (void)td_buf_append_char(&text, '{');
    for (int i = 0; i < 101; i++) {
        (void)td_buf_append_format(&text, "\"k%d\":1,\"k%d\":2,", i, i);
    }
    (void)td_buf_append(&text, TD_STR("\"end\":1}"));
    struct td_json_problems problems;
    parse_problems(&arena, td_buf_str(&text), &problems);
    assert_int_equal(problems.count, TD_STRICT_PROBLEMS_MAX);
    assert_true(problems.is_cut);

    td_buf_reset(&text);
    (void)td_buf_append(&text, TD_STR("{\""));
    for (int i = 0; i < 10000; i++) {
        (void)td_buf_append(&text, TD_STR("\xE2\x82\xAC"));
    }
    (void)td_buf_append(&text, TD_STR("\":{\"a\":1,\"a\":1"));
    for (int i = 0; i < 100000; i++) {
        (void)td_buf_append(&text, TD_STR(",\"a\":1"));
    }
    (void)td_buf_append(&text, TD_STR("}}"));
    parse_problems(&arena, td_buf_str(&text), &problems);
    assert_int_equal(problems.count, 1);
    assert_true(problems.is_cut);
    assert_true(problems.items[0].len <= TD_STRICT_PATH_BYTES_MAX + 1);
    assert_true(td_str_is_utf8(problems.items[0]));
    assert_true(td_str_ends_with(problems.items[0], TD_STR("\xE2\x82\xAC...\"")));
}

/* Members are found, added, replaced in place and removed; other kinds have none. */
static void test_json_members_are_edited_in_place(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_json *root = parse(&arena, TD_STR("{\"a\":1,\"b\":{\"c\":{\"d\":\"x\"}},\"e\":[]}"));
    assert_null(td_json_get(root, TD_STR("x")));
    assert_null(td_json_get(NULL, TD_STR("a")));
    assert_null(td_json_get(td_json_get(root, TD_STR("e")), TD_STR("a")));
    assert_true(td_str_equal(td_json_get_path(root, "b.c.d")->text, TD_STR("x")));
    assert_ptr_equal(td_json_get_path(root, "a"), td_json_first_child(root));
    assert_null(td_json_get_path(root, "b.x.d"));
    assert_null(td_json_get_path(root, "a.b"));
    assert_null(td_json_get_path(NULL, "a"));
    assert_null(td_json_get_path(root, ""));
    td_json_set_str(&arena, root, TD_STR("a"), TD_STR("new"));
    td_json_set_int64(&arena, root, TD_STR("e"), INT64_MIN);
    td_json_set(&arena, root, TD_STR("f"), td_json_new_double(&arena, 0.5));
    td_json_set(&arena, root, TD_STR("f"), td_json_get(root, TD_STR("f")));
    td_json_set(&arena, td_json_ensure_object(&arena, root, TD_STR("b")), TD_STR("n"),
                td_json_new_null(&arena));
    td_json_set(&arena, td_json_ensure_object(&arena, root, TD_STR("g")), TD_STR("t"),
                td_json_new_bool(&arena, true));
    assert_int_equal(td_json_ensure_object(&arena, root, TD_STR("a"))->count, 0);
    expect_json(root, "{\"a\":{},\"b\":{\"c\":{\"d\":\"x\"},\"n\":null},\"e\":-9223372036854775808,"
                      "\"f\":0.5,\"g\":{\"t\":true}}");
    expect_sound(root);
    assert_true(td_json_remove(root, TD_STR("a")));
    assert_false(td_json_remove(root, TD_STR("a")));
    assert_true(td_json_remove(root, TD_STR("g")));
    assert_true(td_json_remove(root, TD_STR("e")));
    assert_false(td_json_remove(NULL, TD_STR("e")));
    expect_json(root, "{\"b\":{\"c\":{\"d\":\"x\"},\"n\":null},\"f\":0.5}");
    expect_sound(root);
    assert_true(td_json_remove(root, TD_STR("f")));
    assert_true(td_json_remove(root, TD_STR("b")));
    expect_json(root, "{}");
    expect_sound(root);
}

/* Items are added, inserted, replaced and removed at every place. */
static void test_json_items_are_edited_in_place(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_json *array = td_json_new_array(&arena);
    assert_null(td_json_at(array, 0));
    td_json_insert(array, 0, td_json_new_number(&arena, TD_STR("2")));
    td_json_insert(array, 0, td_json_new_number(&arena, TD_STR("0")));
    td_json_insert(array, 1, td_json_new_number(&arena, TD_STR("1")));
    td_json_insert(array, 3, td_json_new_number(&arena, TD_STR("3e0")));
    td_json_append(array, td_json_new_string(&arena, TD_STR("4")));
    expect_json(array, "[0,1,2,3e0,\"4\"]");
    expect_sound(array);
    assert_ptr_equal(td_json_at(array, 4), td_json_last_child(array));
    assert_null(td_json_at(array, 5));
    assert_null(td_json_at(NULL, 0));
    td_json_replace_at(array, 0, td_json_new_null(&arena));
    td_json_replace_at(array, 4, td_json_new_object(&arena));
    td_json_replace_at(array, 2, td_json_new_bool(&arena, false));
    td_json_replace_at(array, 2, td_json_at(array, 2));
    expect_json(array, "[null,1,false,3e0,{}]");
    expect_sound(array);
    td_json_remove_at(array, 4);
    td_json_remove_at(array, 1);
    td_json_remove_at(array, 0);
    expect_json(array, "[false,3e0]");
    expect_sound(array);
    td_json_remove_at(array, 0);
    td_json_remove_at(array, 0);
    expect_json(array, "[]");
    expect_sound(array);
}

/* Typed members fall back when missing or of another kind. */
static void test_json_typed_members_fall_back(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    const struct td_json *o =
        parse(&arena, TD_STR("{\"s\":\"x\",\"b\":true,\"n\":1e2,\"f\":1.5,\"z\":null}"));
    assert_true(td_str_equal(td_json_get_str(o, TD_STR("s"), TD_STR("d")), TD_STR("x")));
    assert_true(td_str_equal(td_json_get_str(o, TD_STR("b"), TD_STR("d")), TD_STR("d")));
    assert_true(td_str_equal(td_json_get_str(NULL, TD_STR("b"), TD_STR("d")), TD_STR("d")));
    assert_true(td_json_get_bool(o, TD_STR("b"), false));
    assert_true(td_json_get_bool(o, TD_STR("s"), true));
    assert_int_equal(td_json_get_int64(o, TD_STR("n"), 7), 100);
    assert_int_equal(td_json_get_int64(o, TD_STR("f"), 7), 7);
    assert_int_equal(td_json_get_int64(o, TD_STR("z"), 7), 7);
    int64_t whole = 9;
    double real = 9;
    assert_false(td_json_to_int64(td_json_get(o, TD_STR("s")), &whole));
    assert_false(td_json_to_double(td_json_get(o, TD_STR("z")), &real));
    assert_false(td_json_to_double(NULL, &real));
}

/* Doubles are the nearest ones whatever the length of the text; overflow is refused. */
static void test_json_reads_doubles(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        bool is_finite;
        double value;
    } rows[] = {
        {TD_STR_INIT("0"), true, 0.0},
        {TD_STR_INIT("-0.0e9"), true, -0.0},
        {TD_STR_INIT("1.5"), true, 1.5},
        {TD_STR_INIT("0.1"), true, 0.1},
        {TD_STR_INIT("-123456789.123456789"), true, -123456789.123456789},
        {TD_STR_INIT("9007199254740993"), true, 9007199254740992.0},
        {TD_STR_INIT("9007199254740993.0000000000000000000000000000000000001"), true,
         9007199254740994.0},
        {TD_STR_INIT("1e22"), true, 1e22},
        {TD_STR_INIT("1e23"), true, 1e23},
        {TD_STR_INIT("123456789012345e-22"), true, 123456789012345e-22},
        {TD_STR_INIT("5e-324"), true, 5e-324},
        {TD_STR_INIT("2.4703282292062327e-324"), true, 0.0},
        {TD_STR_INIT("2.4703282292062328e-324"), true, 5e-324},
        {TD_STR_INIT("1e-400"), true, 0.0},
        {TD_STR_INIT("-1e-99999999999999999999"), true, -0.0},
        {TD_STR_INIT("1.7976931348623157e308"), true, 1.7976931348623157e308},
        {TD_STR_INIT("1.7976931348623158e308"), true, 1.7976931348623157e308},
        {TD_STR_INIT("1.7976931348623159e308"), false, 0},
        {TD_STR_INIT("1e309"), false, 0},
        {TD_STR_INIT("-1e400"), false, 0},
        {TD_STR_INIT("1e999999999"), false, 0},
        {TD_STR_INIT("1e99999999999999999999"), false, 0},
        {TD_STR_INIT("0.00000000000000000000000000000000000000000000000001e50"), true, 1.0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        double value = 77;
        assert_int_equal(td_json_to_double(parse(&arena, rows[i].text), &value), rows[i].is_finite);
        double expected = rows[i].is_finite ? rows[i].value : 77;
        assert_memory_equal(&value, &expected, sizeof(value));
    }
}

/* A number of a million digits is exact too: what lies behind the digits that count decides ties.
 */
static void test_json_reads_long_numbers(void **state)
{
    (void)state;
    enum { ZEROS = 1000000 };
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    td_auto_buf text;
    td_buf_init(&text, ZEROS + 100);
    (void)td_buf_append(&text, TD_STR("9007199254740993."));
    char *zeros = td_buf_reserve(&text, ZEROS);
    memset(zeros, '0', ZEROS);
    td_buf_commit(&text, ZEROS);
    double value;
    const struct td_json *tie = parse(&arena, td_buf_str(&text));
    assert_true(td_json_to_double(tie, &value));
    assert_true(value == 9007199254740992.0);
    assert_true(td_json_equal(tie, td_json_new_number(&arena, TD_STR("9007199254740993"))));
    (void)td_buf_append_char(&text, '1');
    const struct td_json *above = parse(&arena, td_buf_str(&text));
    assert_true(td_json_to_double(above, &value));
    assert_true(value == 9007199254740994.0);
    int64_t whole;
    assert_false(td_json_to_int64(above, &whole));
}

/* Values are equal whatever their spelling and order; nothing else is. */
static void test_json_equal_compares_values(void **state)
{
    (void)state;
    static const struct {
        td_str a;
        td_str b;
        bool is_equal;
    } rows[] = {
        {TD_STR_INIT("1"), TD_STR_INIT("1.0"), true},
        {TD_STR_INIT("1"), TD_STR_INIT("10e-1"), true},
        {TD_STR_INIT("1"), TD_STR_INIT("0.1e1"), true},
        {TD_STR_INIT("100"), TD_STR_INIT("1E+2"), true},
        {TD_STR_INIT("0"), TD_STR_INIT("-0.0e5"), true},
        {TD_STR_INIT("1"), TD_STR_INIT("-1"), false},
        {TD_STR_INIT("12.5"), TD_STR_INIT("1.25e1"), true},
        {TD_STR_INIT("12.5"), TD_STR_INIT("1.25e2"), false},
        {TD_STR_INIT("12.5"), TD_STR_INIT("12.51"), false},
        {TD_STR_INIT("0.1"), TD_STR_INIT("0.1000000000000000055511151231257827"), false},
        {TD_STR_INIT("9007199254740993"), TD_STR_INIT("9007199254740992"), false},
        {TD_STR_INIT("1e400"), TD_STR_INIT("10e399"), true},
        {TD_STR_INIT("1e400"), TD_STR_INIT("1e401"), false},
        {TD_STR_INIT("1e999999999"), TD_STR_INIT("10e999999998"), true},
        {TD_STR_INIT("1e-999999999"), TD_STR_INIT("1e999999999"), false},
        {TD_STR_INIT("1e99999999999999999999"), TD_STR_INIT("1.0e0099999999999999999999"), true},
        {TD_STR_INIT("1e99999999999999999999"), TD_STR_INIT("1e-99999999999999999999"), false},
        {TD_STR_INIT("1e99999999999999999999"), TD_STR_INIT("1e99999999999999999998"), false},
        {TD_STR_INIT("0e99999999999999999999"), TD_STR_INIT("0"), true},
        {TD_STR_INIT("1"), TD_STR_INIT("\"1\""), false},
        {TD_STR_INIT("null"), TD_STR_INIT("false"), false},
        {TD_STR_INIT("true"), TD_STR_INIT("false"), false},
        {TD_STR_INIT("\"\\u0061\""), TD_STR_INIT("\"a\""), true},
        {TD_STR_INIT("[]"), TD_STR_INIT("{}"), false},
        {TD_STR_INIT("[1,2]"), TD_STR_INIT("[2,1]"), false},
        {TD_STR_INIT("[1,2]"), TD_STR_INIT("[1,2,3]"), false},
        {TD_STR_INIT("[[[1]],{}]"), TD_STR_INIT("[[[1.0]],{}]"), true},
        {TD_STR_INIT("[[[1]],{}]"), TD_STR_INIT("[[[]],{}]"), false},
        {TD_STR_INIT("{\"a\":1,\"b\":{\"c\":2,\"d\":3}}"),
         TD_STR_INIT("{\"b\":{\"d\":3,\"c\":2},\"a\":1}"), true},
        {TD_STR_INIT("{\"a\":1,\"b\":2}"), TD_STR_INIT("{\"a\":1,\"c\":2}"), false},
        {TD_STR_INIT("{\"a\":1,\"b\":2}"), TD_STR_INIT("{\"b\":1,\"a\":2}"), false},
        {TD_STR_INIT("{\"a\":null}"), TD_STR_INIT("{}"), false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        const struct td_json *a = parse(&arena, rows[i].a);
        const struct td_json *b = parse(&arena, rows[i].b);
        assert_int_equal(td_json_equal(a, b), rows[i].is_equal);
        assert_int_equal(td_json_equal(b, a), rows[i].is_equal);
        assert_true(td_json_equal(a, a));
        assert_false(td_json_equal(a, NULL));
    }
    assert_true(td_json_equal(NULL, NULL));
}

/* A copy shares no node, and no text either when asked; changing it leaves the original alone. */
static void test_json_copy_is_independent(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    td_str text = TD_STR("{\"a\":[1,{\"b\":\"x\"},[]],\"c\":{\"d\":{}},\"e\":true}");
    struct td_json *root = parse(&arena, text);
    struct td_json *shared = td_json_copy(&arena, root, false);
    assert_ptr_equal(td_json_first_child(shared)->key.ptr, td_json_first_child(root)->key.ptr);
    struct td_json *copy = td_json_copy(&arena, root, true);
    assert_ptr_not_equal(td_json_first_child(copy)->key.ptr, td_json_first_child(root)->key.ptr);
    assert_true(td_json_equal(root, copy));
    td_json_append(td_json_get(copy, TD_STR("a")), td_json_new_null(&arena));
    assert_true(td_json_remove(td_json_get(copy, TD_STR("c")), TD_STR("d")));
    expect_json(copy, "{\"a\":[1,{\"b\":\"x\"},[],null],\"c\":{},\"e\":true}");
    expect_json(root, text.ptr);
    assert_null(td_json_copy(&arena, NULL, true));
    expect_json(td_json_copy(&arena, td_json_get_path(root, "e"), true), "true");
}

/* Sorting orders the members of every object by bytes and leaves items where they are. */
static void test_json_sort_orders_members_by_bytes(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_json *root =
        parse(&arena, TD_STR("{\"b\":1,\"a\":{\"z\":1,\"y\":[{\"d\":1,\"c\":2},0]},\"B\":2,\"\":3,"
                             "\"aa\":4,\"\xC3\xA9\":5}"));
    td_json_sort(&arena, root);
    expect_json(root,
                "{\"\":3,\"B\":2,\"a\":{\"y\":[{\"c\":2,\"d\":1},0],\"z\":1},\"aa\":4,\"b\":1,"
                "\"\xC3\xA9\":5}");
    expect_sound(root);
    td_json_sort(&arena, NULL);
}

/* Large objects against a plain model: random sets and removals, with the order kept. */
static void test_json_large_objects_match_a_model(void **state)
{
    (void)state;
    enum { NAMES = 200, STEPS = 20000 };
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    struct td_json *object = td_json_new_object(&arena);
    int order[NAMES];
    int64_t values[NAMES];
    size_t count = 0;
    td_str names[NAMES];
    for (int i = 0; i < NAMES; i++) {
        names[i] = td_arena_format(&arena, "name-%d", i);
    }
    uint64_t seed = 1;
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        int pick = (int)(seed >> 33) % NAMES;
        size_t at = 0;
        while (at < count && order[at] != pick) {
            at++;
        }
        if (seed >> 63) {
            td_json_set(&arena, object, names[pick], td_json_new_int64(&arena, step));
            order[at] = pick;
            values[at] = step;
            count += at == count;
        } else {
            assert_int_equal(td_json_remove(object, names[pick]), at < count);
            for (size_t i = at; at < count && i + 1 < count; i++) {
                order[i] = order[i + 1];
                values[i] = values[i + 1];
            }
            count -= at < count;
        }
        if (step % 5000 == 4999) {
            td_json_sort(&arena, td_json_copy(&arena, object, false)); /* must not touch it */
        }
    }
    assert_int_equal(object->count, count);
    expect_sound(object);
    const struct td_json *member = td_json_first_member(object);
    for (size_t i = 0; i < count; i++, member = member->next) {
        assert_true(td_str_equal(member->key, names[order[i]]));
        assert_int_equal(td_json_get_int64(object, names[order[i]], -1), values[i]);
    }
    td_json_sort(&arena, object);
    expect_sound(object);
    while (td_json_last_child(object)) {
        assert_true(td_json_remove(object, td_json_last_child(object)->key));
    }
    expect_json(object, "{}");
}

/* Nothing about many members is quadratic: reading, naming twice, comparing in another order,
 * sorting, and removing from the end would each take hours here if it were. */
static void test_json_many_members_stay_cheap(void **state)
{
    (void)state;
    enum { MEMBERS = 200000 };
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    td_auto_buf text;
    td_buf_init(&text, 1 << 26);
    (void)td_buf_append_char(&text, '{');
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MEMBERS; i++) {
            (void)td_buf_append_format(&text, "\"%d\":%d,", i, round);
        }
    }
    (void)td_buf_append(&text, TD_STR("\"end\":1}"));
    struct td_json *root = parse(&arena, td_buf_str(&text));
    assert_int_equal(root->count, MEMBERS + 1);
    assert_int_equal(td_json_get_int64(root, TD_STR("77777"), 0), 1);
    struct td_json *copy = td_json_copy(&arena, root, false);
    td_json_sort(&arena, copy);
    assert_true(td_json_equal(root, copy));
    for (int i = MEMBERS - 1; i >= 0; i--) {
        char name[16];
        int len = snprintf(name, sizeof(name), "%d", i);
        assert_true(td_json_remove(root, (td_str){.ptr = name, .len = (size_t)len}));
    }
    expect_json(root, "{\"end\":1}");
    assert_false(td_json_equal(root, copy));
}

/* Depth counts collections. */
static void test_json_depth_counts_collections(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        size_t depth;
    } rows[] = {{TD_STR_INIT("1"), 0},
                {TD_STR_INIT("[]"), 1},
                {TD_STR_INIT("[1,\"x\"]"), 1},
                {TD_STR_INIT("[[],{\"a\":[]},1]"), 3},
                {TD_STR_INIT("{\"a\":{}}"), 2}};
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(td_json_depth(parse(&arena, rows[i].text)), rows[i].depth);
    }
    assert_int_equal(td_json_depth(NULL), 0);
}

/* A walk finds nothing in what is no collection of its kind: a text shares its place with the links
 * of a list. */
static void test_json_walks_only_collections(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t items;
        size_t members;
    } rows[] = {
        {"null", 0, 0},     {"true", 0, 0},        {"12345678901234567", 0, 0},
        {"\"text\"", 0, 0}, {"[]", 0, 0},          {"[1,2]", 2, 0},
        {"{}", 0, 0},       {"{\"a\":[1]}", 0, 1},
    };
    td_auto_arena arena;
    td_arena_init(&arena, (size_t)1 << 20);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_json *node;
        assert_int_equal(td_json_parse(&arena, td_str_from(rows[i].text), NULL, &node, NULL),
                         TD_OK);
        size_t all = rows[i].items + rows[i].members;
        assert_int_equal(td_json_first_item(node) != NULL, rows[i].items > 0);
        assert_int_equal(td_json_first_member(node) != NULL, rows[i].members > 0);
        assert_int_equal(td_json_first_child(node) != NULL, all > 0);
        assert_int_equal(td_json_last_child(node) != NULL, all > 0);
        assert_int_equal(td_json_item_count(node), rows[i].items);
        assert_int_equal(td_json_member_count(node), rows[i].members);
    }
    assert_null(td_json_first_item(NULL));
    assert_null(td_json_first_member(NULL));
    assert_null(td_json_first_child(NULL));
    assert_null(td_json_last_child(NULL));
    assert_int_equal(td_json_item_count(NULL) + td_json_member_count(NULL), 0);
}

/* A value that is taken leaves the place, the name and the line as they were. */
static void test_json_takes_values(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, (size_t)1 << 20);
    struct td_json *root;
    struct td_json *value;
    assert_int_equal(td_json_parse(&arena, TD_STR("{\"a\":null,\"b\":1}"), NULL, &root, NULL),
                     TD_OK);
    assert_int_equal(td_json_parse(&arena, TD_STR("[1,{\"c\":2}]"), NULL, &value, NULL), TD_OK);
    td_json_take(td_json_get(root, TD_STR("a")), value);
    td_auto_buf text;
    td_buf_init(&text, 100);
    td_json_write(root, NULL, &text);
    assert_string_equal(text.ptr, "{\"a\":[1,{\"c\":2}],\"b\":1}");
}

/* Values are counted wherever they are, items collection by collection; both caps count themselves
 * in. */
static void test_json_size_counts_values_and_items(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        size_t values_max;
        size_t items_max;
        int code;
    } rows[] = {
        {TD_STR_INIT("1"), 0, 0, TD_OK},
        {TD_STR_INIT("[1,2,3]"), 3, 3, TD_OK},
        {TD_STR_INIT("[1,2,3]"), 2, 3, TD_LIMIT},
        {TD_STR_INIT("[1,2,3]"), 3, 2, TD_LIMIT},
        {TD_STR_INIT("{\"a\":1,\"b\":2,\"c\":3}"), 3, 3, TD_OK},
        {TD_STR_INIT("{\"a\":1,\"b\":2,\"c\":3}"), 3, 2, TD_LIMIT},
        {TD_STR_INIT("{\"a\":[1,2],\"b\":[3,4]}"), 6, 2, TD_OK},
        {TD_STR_INIT("{\"a\":[1,2],\"b\":[3,4]}"), 5, 2, TD_LIMIT},
        {TD_STR_INIT("{\"a\":{\"b\":[[],[],[]]}}"), 9, 2, TD_LIMIT},
    };
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(td_json_check_size(parse(&arena, rows[i].text), rows[i].values_max,
                                            rows[i].items_max, NULL),
                         rows[i].code);
    }
    assert_int_equal(td_json_check_size(NULL, 0, 0, NULL), TD_OK);
}

/* The program's own text is read into an arena that is past its cap: only strangers are capped. */
static void test_json_own_text_is_always_read(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 16);
    assert_non_null(td_arena_alloc(&arena, 64));
    assert_true(td_json_is(td_json_parse_own(&arena, "[1]"), TD_JSON_TYPE_ARRAY));
    assert_int_equal(td_arena_check(&arena, NULL), TD_LIMIT);
}

/* What is empty or missing sets nothing, and an array that became empty goes. */
static void test_json_sets_only_what_there_is(void **state)
{
    (void)state;
    td_auto_arena arena = td_arena_capped(1 << 20);
    struct td_json *root = td_json_new_object(&arena);
    td_json_set_text(&arena, root, TD_STR("a"), TD_STR_EMPTY);
    td_json_set_copy(&arena, root, TD_STR("b"), NULL);
    expect_json(root, "{}");
    td_json_set_text(&arena, root, TD_STR("a"), TD_STR("x"));
    td_json_set_copy(&arena, root, TD_STR("b"), td_json_get(root, TD_STR("a")));
    struct td_json *list = td_json_ensure_array(&arena, root, TD_STR("a"));
    td_json_append(list, td_json_new_int64(&arena, 1));
    td_json_append(list, td_json_new_string(&arena, TD_STR("y")));
    assert_ptr_equal(td_json_ensure_array(&arena, root, TD_STR("a")), list);
    expect_json(root, "{\"a\":[1,\"y\"],\"b\":\"x\"}");
    assert_true(td_json_has_text(list, TD_STR("y")));
    assert_false(td_json_has_text(list, TD_STR("1")));
    assert_false(td_json_has_text(NULL, TD_STR("y")));
    td_json_set_filled(&arena, root, TD_STR("b"), td_json_copy(&arena, list, false));
    expect_json(td_json_get(root, TD_STR("b")), "[1,\"y\"]");
    td_json_set_filled(&arena, root, TD_STR("b"), td_json_new_array(&arena));
    td_json_set_filled(&arena, root, TD_STR("c"), td_json_new_array(&arena));
    assert_null(td_json_get(root, TD_STR("b")));
    assert_null(td_json_get(root, TD_STR("c")));
    expect_sound(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_parse_keeps_what_was_written),
        cmocka_unit_test(test_json_parse_reports_failures),
        cmocka_unit_test(test_json_parse_tracks_lines),
        cmocka_unit_test(test_json_parse_copies_strings),
        cmocka_unit_test(test_json_parse_last_duplicate_wins_in_place),
        cmocka_unit_test(test_json_parse_names_duplicates_by_path),
        cmocka_unit_test(test_json_parse_bounds_what_it_names),
        cmocka_unit_test(test_json_members_are_edited_in_place),
        cmocka_unit_test(test_json_items_are_edited_in_place),
        cmocka_unit_test(test_json_typed_members_fall_back),
        cmocka_unit_test(test_json_reads_doubles),
        cmocka_unit_test(test_json_reads_long_numbers),
        cmocka_unit_test(test_json_equal_compares_values),
        cmocka_unit_test(test_json_copy_is_independent),
        cmocka_unit_test(test_json_sort_orders_members_by_bytes),
        cmocka_unit_test(test_json_large_objects_match_a_model),
        cmocka_unit_test(test_json_many_members_stay_cheap),
        cmocka_unit_test(test_json_depth_counts_collections),
        cmocka_unit_test(test_json_walks_only_collections),
        cmocka_unit_test(test_json_takes_values),
        cmocka_unit_test(test_json_size_counts_values_and_items),
        cmocka_unit_test(test_json_own_text_is_always_read),
        cmocka_unit_test(test_json_sets_only_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
