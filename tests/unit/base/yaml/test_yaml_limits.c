/* The bounds of the YAML reader: depth, aliases, anchors, bytes and time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static int parse_code(const struct td_buf *text, struct td_error *err)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_yaml_documents documents;
    return td_yaml_parse(&arena, td_buf_str(text), &documents, err);
}

static void repeat(struct td_buf *out, const char *piece, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append(out, td_str_from(piece));
    }
    assert_false(out->is_full);
}

/* Exactly TD_YAML_DEPTH_MAX collections may be nested, in every style and through aliases. */
static void test_yaml_bounds_depth(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        const char *open;
        const char *inner;
        const char *close;
        size_t levels; /* that before and inner add */
    } rows[] = {
        {"", "[", "1", "]", 0},
        {"", "- ", "1", "", 0},
        {"", "{a: ", "1", "}", 0},
        {"- a\n- ", "[", "1", "]", 1},
        {"x: &x [[1]]\ny: ", "[", "*x", "]", 3},
        {"x: &x {k: [1]}\ny: ", "[", "{<<: *x}", "]", 3},
        {"", "{<<: ", "{}", "}", 1},
        {"", "{<<: ", "[]", "}", 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t over = 0; over <= 1; over++) {
            td_auto_buf text;
            struct td_error err = TD_ERROR_INIT;
            size_t levels = TD_YAML_DEPTH_MAX - rows[i].levels + over;
            td_buf_init(&text, 1 << 20);
            repeat(&text, rows[i].before, 1);
            repeat(&text, rows[i].open, levels);
            repeat(&text, rows[i].inner, 1);
            repeat(&text, rows[i].close, levels);
            int code = parse_code(&text, &err);
            if (code != (over ? TD_LIMIT : TD_OK)) {
                fail_msg("row %zu over %zu: code %d %s", i, over, code, err.message);
            }
        }
    }
}

/* Brackets without end are refused at the depth cap, long before the text ends. */
static void test_yaml_stops_early_at_depth(void **state)
{
    (void)state;
    static const char *const pieces[] = {"[", "{a: ", "- ", "{? ", "[{a: ", "? "};
    for (size_t i = 0; i < COUNT(pieces); i++) {
        td_auto_buf text;
        struct td_error err = TD_ERROR_INIT;
        td_buf_init(&text, TD_YAML_BYTES_MAX);
        repeat(&text, pieces[i], 2000000);
        int code = parse_code(&text, &err);
        assert_true(code == TD_LIMIT || code == TD_INVALID);
        assert_memory_equal(err.message, "line 1: ", 8);
    }
}

/* Ten lists of ten aliases each, one in the other, are refused before they take memory. */
static void test_yaml_bounds_aliases(void **state)
{
    (void)state;
    td_auto_buf laughs;
    td_buf_init(&laughs, 1 << 20);
    repeat(&laughs, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n", 1);
    for (int level = 1; level < 10; level++) {
        (void)td_buf_append_format(&laughs, "a%d: &a%d [", level, level);
        for (int i = 0; i < 10; i++) {
            (void)td_buf_append_format(&laughs, "*a%d, ", level - 1);
        }
        repeat(&laughs, "]\n", 1);
    }
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(parse_code(&laughs, &err), TD_LIMIT);
    assert_string_equal(err.message, "line 4: aliases make up too much of the document");
}

/* The cap on copies holds over a whole stream, where each document alone is within its share. */
static void test_yaml_bounds_alias_copies(void **state)
{
    (void)state;
    size_t copies = 2 * 1001; /* a list of 1000 items, twice */
    size_t documents_max = TD_YAML_ALIAS_NODES_MAX / copies;
    td_auto_buf text;
    td_buf_init(&text, TD_YAML_BYTES_MAX);
    for (size_t i = 0; i < documents_max; i++) {
        repeat(&text, "--- [&x [", 1);
        repeat(&text, "1,", 1000);
        repeat(&text, "], *x, *x]\n", 1);
    }
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(parse_code(&text, &err), TD_OK);
    repeat(&text, "--- [&x [", 1);
    repeat(&text, "1,", 1000);
    repeat(&text, "], *x, *x]\n", 1);
    assert_int_equal(parse_code(&text, &err), TD_LIMIT);
    assert_string_equal(err.message, "line 500: aliases expand to more than 1000000 values");
}

/* Aliases may make up nearly all of a small document, as the library allows it. */
static void test_yaml_allows_shared_parts(void **state)
{
    (void)state;
    td_auto_buf text;
    td_buf_init(&text, 1 << 20);
    repeat(&text, "a: &a [", 1);
    repeat(&text, "x, ", 50);
    repeat(&text, "]\nb: [", 1);
    repeat(&text, "*a, ", 300);
    repeat(&text, "]\n", 1);
    assert_int_equal(parse_code(&text, NULL), TD_OK);
}

/* A text past the cap is refused before it is looked at. */
static void test_yaml_bounds_bytes(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_yaml_documents documents;
    struct td_error err = TD_ERROR_INIT;
    td_str text = {.ptr = "a", .len = TD_YAML_BYTES_MAX + 1};
    assert_int_equal(td_yaml_parse(&arena, text, &documents, &err), TD_LIMIT);
    assert_string_equal(err.message, "line 1: the text is larger than 67108864 bytes");
    text.len = 0;
    text.ptr = NULL;
    assert_int_equal(td_yaml_parse(&arena, text, &documents, &err), TD_OK);
    assert_int_equal(documents.count, 0);
}

/* The arena's cap is an ordinary refusal with its line. */
static void test_yaml_bounds_memory(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1000);
    struct td_yaml_documents documents;
    struct td_error err = TD_ERROR_INIT;
    td_str text = TD_STR("- 1\n- 2\n- 3\n- 4\n- 5\n- 6\n- 7\n- 8\n- 9\n- 0\n- 1\n- 2\n- 3\n");
    assert_int_equal(td_yaml_parse(&arena, text, &documents, &err), TD_LIMIT);
    assert_memory_equal(err.message, "line 1", 6);
}

/* More anchors than the cap in one document are refused. */
static void test_yaml_bounds_anchors(void **state)
{
    (void)state;
    td_auto_buf text;
    td_buf_init(&text, TD_YAML_BYTES_MAX);
    for (size_t i = 0; i <= TD_YAML_ANCHORS_MAX; i++) {
        (void)td_buf_append_format(&text, "- &a%zu\n", i);
    }
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(parse_code(&text, &err), TD_LIMIT);
    assert_string_equal(err.message, "line 100001: more than 100000 anchors");
}

/* Deep brackets around little text, and shallow ones around much, are read; much text inside deep
 * brackets, for which libyaml takes long, is refused. */
static void test_yaml_bounds_flow_steps(void **state)
{
    (void)state;
    static const struct {
        size_t depth;
        size_t items;
        int code;
    } rows[] = {{500, 20000, TD_OK}, {1, 500000, TD_OK}, {510, 400000, TD_LIMIT}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_buf text;
        struct td_error err = TD_ERROR_INIT;
        td_buf_init(&text, TD_YAML_BYTES_MAX);
        repeat(&text, "[", rows[i].depth);
        repeat(&text, "a,", rows[i].items);
        repeat(&text, "]", rows[i].depth);
        assert_int_equal(parse_code(&text, &err), rows[i].code);
    }
}

/* Directives, which libyaml compares with each other, are bounded in every encoding and after every
 * line break; the same text elsewhere is not counted. */
static void test_yaml_bounds_tag_directives(void **state)
{
    (void)state;
    static const char *const breaks[] = {"\n", "\r", "\302\205", "\342\200\250", "\342\200\251"};
    for (size_t i = 0; i < COUNT(breaks); i++) {
        for (int over = 0; over <= 1; over++) {
            td_auto_buf text;
            struct td_error err = TD_ERROR_INIT;
            td_buf_init(&text, 1 << 20);
            for (int k = 0; k < TD_YAML_TAG_DIRECTIVES_MAX + over; k++) {
                (void)td_buf_append_format(&text, "%%TAG !t%d! tag:x%s", k, breaks[i]);
            }
            repeat(&text, "--- 1\n", 1);
            assert_int_equal(parse_code(&text, &err), over ? TD_LIMIT : TD_OK);
        }
    }
    td_auto_buf text;
    struct td_error err = TD_ERROR_INIT;
    td_buf_init(&text, 1 << 20);
    repeat(&text, "- a %TAG b\n", 1000);
    assert_int_equal(parse_code(&text, &err), TD_OK);
    td_buf_reset(&text);
    (void)td_buf_append(&text, TD_STR("\377\376"));
    for (int i = 0; i <= TD_YAML_TAG_DIRECTIVES_MAX; i++) {
        (void)td_buf_append(&text, TD_STR("%\0T\0A\0G\0\n\0"));
    }
    assert_int_equal(parse_code(&text, &err), TD_LIMIT);
    assert_memory_equal(err.message, "line ", 5);
}

/* Large inputs that would be slow if anything in the reader were quadratic. */
static void test_yaml_is_linear(void **state)
{
    (void)state;
    td_auto_buf text;
    td_buf_init(&text, TD_YAML_BYTES_MAX);
    for (int i = 0; i < 200000; i++) {
        (void)td_buf_append_format(&text, "key%d: %d\n", i, i);
    }
    assert_int_equal(parse_code(&text, NULL), TD_OK);
    td_buf_reset(&text);
    repeat(&text, "--- &a 1\n", 200000); /* an anchor in each of many documents */
    assert_int_equal(parse_code(&text, NULL), TD_OK);
    td_buf_reset(&text);
    repeat(&text, "{<<: ", 400); /* members written through nested merges */
    repeat(&text, "{", 1);
    for (int i = 0; i < 50000; i++) {
        (void)td_buf_append_format(&text, "k%d: 1, ", i);
    }
    repeat(&text, "}", 401);
    assert_int_equal(parse_code(&text, NULL), TD_OK);
    td_buf_reset(&text);
    repeat(&text, "a: ", 1);
    repeat(&text, "1", 4000000); /* one long scalar, a float that overflows */
    assert_int_equal(parse_code(&text, NULL), TD_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_bounds_depth),
        cmocka_unit_test(test_yaml_stops_early_at_depth),
        cmocka_unit_test(test_yaml_bounds_aliases),
        cmocka_unit_test(test_yaml_bounds_alias_copies),
        cmocka_unit_test(test_yaml_allows_shared_parts),
        cmocka_unit_test(test_yaml_bounds_bytes),
        cmocka_unit_test(test_yaml_bounds_memory),
        cmocka_unit_test(test_yaml_bounds_anchors),
        cmocka_unit_test(test_yaml_bounds_flow_steps),
        cmocka_unit_test(test_yaml_bounds_tag_directives),
        cmocka_unit_test(test_yaml_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
