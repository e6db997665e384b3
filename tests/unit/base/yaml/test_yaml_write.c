/* YAML as it is written, and that it is always read back as the same tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define ARENA_BYTES ((size_t)64 << 20)
#define TEXT_BYTES ((size_t)16 << 20)

/* A tree as JSON, and how it is written. */
struct row {
    const char *json;
    const char *yaml;
};

static struct td_json *read_json(struct td_arena *arena, const char *text)
{
    struct td_json *node = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_json_parse(arena, td_str_from(text), NULL, &node, &err) < 0) {
        fail_msg("%s: %s", text, err.message);
    }
    return node;
}

/* Null is the one tree that is written but, as an empty document, not read back. */
static void expect_same_tree(struct td_arena *arena, const struct td_json *tree, td_str yaml)
{
    struct td_yaml_documents documents;
    struct td_error err = TD_ERROR_INIT;
    if (td_yaml_parse(arena, yaml, &documents, &err) < 0) {
        fail_msg("%s\n%.*s", err.message, TD_STR_ARG(yaml));
    }
    if (tree->type == TD_JSON_TYPE_NULL) {
        assert_int_equal(documents.count, 0);
    } else if (documents.count != 1 || !td_json_equal(documents.items[0], tree)) {
        fail_msg("read back as another tree:\n%.*s", TD_STR_ARG(yaml));
    }
}

static void expect_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        td_auto_arena arena;
        td_auto_buf out;
        td_arena_init(&arena, ARENA_BYTES);
        td_buf_init(&out, TEXT_BYTES);
        const struct td_json *tree = read_json(&arena, rows[i].json);
        td_yaml_write(tree, &out);
        assert_string_equal(td_buf_str(&out).ptr, rows[i].yaml);
        expect_same_tree(&arena, tree, td_buf_str(&out));
    }
}

/* Collections are blocks of two spaces; a list stands under its key without indentation. */
static void test_yaml_writes_collections(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{}", "{}\n"},
        {"[]", "[]\n"},
        {"null", "null\n"},
        {"{\"a\":1}", "a: 1\n"},
        {"{\"b\":1,\"a\":2}", "b: 1\na: 2\n"},
        {"[1,2]", "- 1\n- 2\n"},
        {"{\"a\":{\"b\":{\"c\":1}}}", "a:\n  b:\n    c: 1\n"},
        {"{\"a\":[1,2],\"b\":3}", "a:\n- 1\n- 2\nb: 3\n"},
        {"{\"a\":{\"b\":[1]}}", "a:\n  b:\n  - 1\n"},
        {"[{\"a\":1,\"b\":2},{\"c\":3}]", "- a: 1\n  b: 2\n- c: 3\n"},
        {"[[1,[2,3]],[4]]", "- - 1\n  - - 2\n    - 3\n- - 4\n"},
        {"[{\"a\":[{\"b\":[1]}]}]", "- a:\n  - b:\n    - 1\n"},
        {"{\"a\":{},\"b\":[],\"c\":null}", "a: {}\nb: []\nc: null\n"},
        {"[{},[],null,[[]],[{}]]", "- {}\n- []\n- null\n- - []\n- - {}\n"},
        {"{\"a\":[[{\"b\":{\"c\":[]}}]]}", "a:\n- - b:\n      c: []\n"},
    };
    expect_rows(rows, COUNT(rows));
}

/* Numbers stay as they are, booleans and null are the plain words. */
static void test_yaml_writes_plain_values(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"true", "true\n"},
        {"false", "false\n"},
        {"0", "0\n"},
        {"-1.50", "-1.50\n"},
        {"1E+3", "1E+3\n"},
        {"18446744073709551615", "18446744073709551615\n"},
        {"\"text\"", "text\n"},
        {"\"some words\"", "some words\n"},
        {"\"http://example.com:80/?a=b&c#d\"", "http://example.com:80/?a=b&c#d\n"},
        {"\"--flag=on\"", "--flag=on\n"},
        {"\"-x\"", "-x\n"},
        {"\"500Mi\"", "500Mi\n"},
        {"\"1.2.3\"", "1.2.3\n"},
        {"\"it's\"", "it's\n"},
        {"\"say \\\"hi\\\"\"", "say \"hi\"\n"},
        {"\"a:b\"", "a:b\n"},
        {"\"a#b\"", "a#b\n"},
        {"\"a, b\"", "a, b\n"},
        {"\"\\u00e9 \\u2603 \\ud83d\\ude00\"", "\303\251 \342\230\203 \360\237\230\200\n"},
        {"\"\\\\d+\"", "\\d+\n"},
        {"\"nope\"", "nope\n"},
        {"\"$(VAR)\"", "$(VAR)\n"},
    };
    expect_rows(rows, COUNT(rows));
}

/* A text that would be read as another type gets double quotes. */
static void test_yaml_quotes_typed_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",     "y",     "Y",          "yes",   "No",    "on",   "OFF",   "true",  "False", "n",
        "null", "~",     "Null",       "1",     "-1",    "+1",   "1_000", "0x1F",  "0b11",  "0o17",
        "017",  "08",    "1.5",        ".5",    "1.",    "1e3",  ".inf",  "-.Inf", ".nan",  "=",
        "<<",   "12:30", "2001-12-14", "1:2:3", "-1:30", "0b-1", "1:30.5"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        td_auto_arena arena;
        td_auto_buf out;
        td_arena_init(&arena, ARENA_BYTES);
        td_buf_init(&out, TEXT_BYTES);
        td_str text = td_str_from(texts[i]);
        struct td_json *object = td_json_new_object(&arena);
        td_json_set(&arena, object, text, td_json_new_string(&arena, text));
        td_yaml_write(object, &out);
        td_str want = td_arena_format(&arena, "\"%s\": \"%s\"\n", texts[i], texts[i]);
        assert_string_equal(out.ptr, want.ptr);
        expect_same_tree(&arena, object, td_buf_str(&out));
    }
}

/* A text with characters that mean something to YAML gets single quotes, one that needs escapes
 * double quotes. */
static void test_yaml_quotes_special_texts(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"\" a\"", "' a'\n"},
        {"\"a \"", "'a '\n"},
        {"\"a: b\"", "'a: b'\n"},
        {"\"a:\"", "'a:'\n"},
        {"\"a #b\"", "'a #b'\n"},
        {"\"#a\"", "'#a'\n"},
        {"\"*a\"", "'*a'\n"},
        {"\"&a\"", "'&a'\n"},
        {"\"!a\"", "'!a'\n"},
        {"\"|\"", "'|'\n"},
        {"\">a\"", "'>a'\n"},
        {"\"%a\"", "'%a'\n"},
        {"\"@a\"", "'@a'\n"},
        {"\"`a\"", "'`a'\n"},
        {"\"'a'\"", "'''a'''\n"},
        {"\"\\\"a\\\"\"", "'\"a\"'\n"},
        {"\"[a]\"", "'[a]'\n"},
        {"\"{a}\"", "'{a}'\n"},
        {"\"]\"", "']'\n"},
        {"\"}\"", "'}'\n"},
        {"\",a\"", "',a'\n"},
        {"\"-\"", "'-'\n"},
        {"\"- a\"", "'- a'\n"},
        {"\"?a\"", "'?a'\n"},
        {"\":a\"", "':a'\n"},
        {"\"---\"", "'---'\n"},
        {"\"...\"", "'...'\n"},
        {"\" it's\"", "' it''s'\n"},
        {"{\"a: b\":1}", "'a: b': 1\n"},
        {"\"a\\tb\"", "\"a\\tb\"\n"},
        {"\"a\\r\\nb\"", "\"a\\r\\nb\"\n"},
        {"\"\\u0000\\u0001\\u001b\\u007f\"", "\"\\0\\x01\\e\\x7F\"\n"},
        {"\"\\u0085\\u2028\\ufeff\\uffff\"", "\"\\x85\\u2028\\uFEFF\\uFFFF\"\n"},
        {"\"\\u0007\\b\\f\\u000b\\\"\\\\\"", "\"\\a\\b\\f\\v\\\"\\\\\"\n"},
        {"\"\\n\"", "\"\\n\"\n"},
        {"\"\\n\\n\"", "\"\\n\\n\"\n"},
        {"{\"a\\nb\":1}", "\"a\\nb\": 1\n"},
    };
    expect_rows(rows, COUNT(rows));
}

/* Texts of several lines are literal blocks that keep their end and their indentation. */
static void test_yaml_writes_literal_blocks(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"\"a\\nb\"", "|-\n  a\n  b\n"},
        {"\"a\\nb\\n\"", "|\n  a\n  b\n"},
        {"\"a\\n\"", "|\n  a\n"},
        {"\"a\\nb\\n\\n\"", "|+\n  a\n  b\n\n"},
        {"\"a\\n\\n\\nb\"", "|-\n  a\n\n\n  b\n"},
        {"\"  a\\nb\"", "|2-\n    a\n  b\n"},
        {"\"\\na\"", "|2-\n\n  a\n"},
        {"\"\\n  a\\n\"", "|2\n\n    a\n"},
        {"\"\\ta\\n\"", "|2\n  \ta\n"},
        {"\"a\\n\\tb\\n\"", "|\n  a\n  \tb\n"},
        {"\"a\\n  \"", "|-\n  a\n    \n"},
        {"\"a \\nb\"", "|-\n  a \n  b\n"},
        {"{\"a\":\"x\\ny\\n\",\"b\":1}", "a: |\n  x\n  y\nb: 1\n"},
        {"{\"a\":{\"b\":\"x\\ny\"}}", "a:\n  b: |-\n    x\n    y\n"},
        {"[\"x\\ny\",[\" x\\n\"]]", "- |-\n  x\n  y\n- - |2\n     x\n"},
        {"{\"a\":[\" x\\ny\\n\"]}", "a:\n- |2\n   x\n  y\n"},
        {"[{\"a\":\"x\\n\\n\",\"b\":1}]", "- a: |+\n    x\n\n  b: 1\n"},
        {"\"---\\n...\\n# x\\n\"", "|\n  ---\n  ...\n  # x\n"},
    };
    expect_rows(rows, COUNT(rows));
}

/* A key too long to be found without its indicator gets one. */
static void test_yaml_writes_long_keys(void **state)
{
    (void)state;
    static const size_t lengths[] = {253, 1000, 1001, 1024, 1025, 5000};
    static const char fillers[] = {'k', ' ', '\x01'};
    for (size_t i = 0; i < COUNT(lengths) * COUNT(fillers); i++) {
        td_auto_arena arena;
        td_auto_buf out;
        td_arena_init(&arena, ARENA_BYTES);
        td_buf_init(&out, TEXT_BYTES);
        size_t len = lengths[i / COUNT(fillers)];
        char *key = td_arena_alloc(&arena, len);
        memset(key, fillers[i % COUNT(fillers)], len);
        struct td_json *object = read_json(&arena, "{\"a\":[1],\"b\":{\"c\":1},\"d\":\"e\\nf\"}");
        for (struct td_json *member = td_json_first_child(object); member; member = member->next) {
            struct td_json *outer = td_json_new_object(&arena);
            struct td_json *list = td_json_new_array(&arena);
            td_json_set(&arena, outer, (td_str){.ptr = key, .len = len},
                        td_json_copy(&arena, member, false));
            td_json_set(&arena, outer, TD_STR("next"), td_json_new_null(&arena));
            td_json_append(list, outer);
            td_buf_reset(&out);
            td_yaml_write(list, &out);
            expect_same_tree(&arena, list, td_buf_str(&out));
        }
        bool is_marked = td_str_starts_with(td_buf_str(&out), TD_STR("- ? "));
        if (fillers[i % COUNT(fillers)] == 'k') {
            assert_int_equal(is_marked, len > 1000);
        }
    }
}

/* xorshift: the same trees on every run. */
static uint32_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)(*seed >> 32);
}

static td_str random_text(struct td_arena *arena, uint64_t *seed)
{
    static const char *const pieces[] = {"a",
                                         "b",
                                         " ",
                                         "  ",
                                         "\n",
                                         "\n\n",
                                         "\t",
                                         "\r",
                                         ":",
                                         ": ",
                                         "#",
                                         " #",
                                         "-",
                                         "- ",
                                         "---",
                                         "...",
                                         "'",
                                         "\"",
                                         "\\",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         "&",
                                         "*",
                                         "!",
                                         "|",
                                         ">",
                                         "%",
                                         "@",
                                         "`",
                                         "?",
                                         "? ",
                                         "=",
                                         "<<",
                                         "~",
                                         "yes",
                                         "1",
                                         "0x1F",
                                         ".5",
                                         "1e3",
                                         "12:3",
                                         "2001-01-01",
                                         "\303\251",
                                         "null",
                                         "_",
                                         "\x01",
                                         "\x7f",
                                         ".inf",
                                         "+",
                                         "0",
                                         "\342\200\250",
                                         "\357\273\277",
                                         "x",
                                         "=",
                                         "\302\205"};
    td_auto_buf text;
    td_buf_init(&text, 4096);
    for (uint32_t i = next_random(seed) % 9; i > 0; i--) {
        (void)td_buf_append(&text, td_str_from(pieces[next_random(seed) % COUNT(pieces)]));
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static struct td_json *random_scalar(struct td_arena *arena, uint64_t *seed)
{
    switch (next_random(seed) % 8) {
    case 0:
        return td_json_new_null(arena);
    case 1:
        return td_json_new_bool(arena, next_random(seed) % 2 == 0);
    case 2:
        return td_json_new_int64(arena, (int64_t)next_random(seed) * (1 << 30) - INT32_MAX);
    case 3:
        return td_json_new_double(arena, (double)(int32_t)next_random(seed) * 1e-5);
    default:
        return td_json_new_string(arena, random_text(arena, seed));
    }
}

static struct td_json *random_tree(struct td_arena *arena, uint64_t *seed, int depth)
{
    uint32_t choice = next_random(seed) % 6;
    if (depth == 0 || choice > 3) {
        return random_scalar(arena, seed);
    }
    struct td_json *node = choice < 2 ? td_json_new_object(arena) : td_json_new_array(arena);
    for (uint32_t i = next_random(seed) % 5; i > 0; i--) {
        struct td_json *child = random_tree(arena, seed, depth - 1);
        if (choice < 2) {
            td_json_set(arena, node, random_text(arena, seed), child);
        } else {
            td_json_append(node, child);
        }
    }
    return node;
}

/* Whatever the tree, what is written is read back as the same tree. */
static void test_yaml_reads_back_random_trees(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_auto_buf out;
    td_arena_init(&arena, ARENA_BYTES);
    td_buf_init(&out, TEXT_BYTES);
    uint64_t seed = 0x9E3779B97F4A7C15U;
    for (int i = 0; i < 5000; i++) {
        td_arena_reset(&arena);
        td_buf_reset(&out);
        const struct td_json *tree = random_tree(&arena, &seed, 6);
        td_yaml_write(tree, &out);
        assert_false(out.is_full);
        expect_same_tree(&arena, tree, td_buf_str(&out));
    }
}

/* Trees at the depth cap are written and read back; deeper ones make the buffer full. */
static void test_yaml_write_bounds_depth(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_auto_buf out;
    td_arena_init(&arena, ARENA_BYTES);
    td_buf_init(&out, TEXT_BYTES);
    struct td_json *tree = td_json_new_int64(&arena, 1);
    for (int i = 0; i < TD_JSON_DEPTH_MAX; i++) {
        struct td_json *outer = i % 2 ? td_json_new_array(&arena) : td_json_new_object(&arena);
        if (i % 2) {
            td_json_append(outer, tree);
        } else {
            td_json_set(&arena, outer, TD_STR("k"), tree);
        }
        tree = outer;
    }
    td_yaml_write(tree, &out);
    assert_false(out.is_full);
    expect_same_tree(&arena, tree, td_buf_str(&out));
    struct td_json *deeper = td_json_new_array(&arena);
    td_json_append(deeper, tree);
    td_yaml_write(deeper, &out);
    assert_true(out.is_full);
}

/* A buffer that is too small is full, and nothing past its cap is written. */
static void test_yaml_write_bounds_bytes(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    const struct td_json *tree = read_json(&arena, "{\"a\":[1,2,\"x\\ny\"],\"b\":\" q\"}");
    for (size_t max = 0; max < 60; max++) {
        td_auto_buf out;
        td_buf_init(&out, max);
        td_yaml_write(tree, &out);
        assert_int_equal(out.is_full, max < sizeof("a:\n- 1\n- 2\n- |-\n  x\n  y\nb: ' q'\n") - 1);
        assert_true(out.len <= max);
    }
}

/* The same value in ASCII, with escapes in double quotes. */
static void test_yaml_write_ascii(void **state)
{
    (void)state;
    td_auto_arena arena = td_arena_capped(1 << 20);
    td_auto_buf out = td_buf_capped(1 << 16);
    struct td_json *tree;
    td_str text = TD_STR("{\"k\u00fc\":\"3 \u2192 5\",\"b\":\"\U0001f600\",\"c\":\"plain\"}");
    assert_int_equal(td_json_parse(&arena, text, NULL, &tree, NULL), TD_OK);
    td_yaml_write_ascii(tree, &out);
    assert_string_equal(td_buf_str(&out).ptr,
                        "\"k\\xFC\": \"3 \\u2192 5\"\nb: \"\\U0001F600\"\nc: plain\n");
    struct td_yaml_documents read = {.count = 0};
    assert_int_equal(td_yaml_parse(&arena, td_buf_str(&out), &read, NULL), TD_OK);
    assert_true(td_json_equal(tree, read.items[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_writes_collections),
        cmocka_unit_test(test_yaml_writes_plain_values),
        cmocka_unit_test(test_yaml_quotes_typed_texts),
        cmocka_unit_test(test_yaml_quotes_special_texts),
        cmocka_unit_test(test_yaml_writes_literal_blocks),
        cmocka_unit_test(test_yaml_writes_long_keys),
        cmocka_unit_test(test_yaml_reads_back_random_trees),
        cmocka_unit_test(test_yaml_write_bounds_depth),
        cmocka_unit_test(test_yaml_write_bounds_bytes),
        cmocka_unit_test(test_yaml_write_ascii),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
