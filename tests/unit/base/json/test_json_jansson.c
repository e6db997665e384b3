/* Our reader against jansson: texts made at random from a fixed seed, whole and damaged. What is
 * compared, and the differences that are meant, are in support/json_oracle.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/json/json_reader.h"
#include "support/json_oracle.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define TEXT_BYTES_MAX 4096

struct maker {
    uint64_t seed;
    struct td_buf text;
};

static uint32_t maker_pick(struct maker *maker, uint32_t bound)
{
    maker->seed = maker->seed * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(maker->seed >> 33) % bound;
}

static void maker_put(struct maker *maker, const char *text)
{
    (void)td_buf_append(&maker->text, td_str_from(text)); /* a text that is cut is a test too */
}

static void maker_put_one(struct maker *maker, const char *const words[], uint32_t count)
{
    maker_put(maker, words[maker_pick(maker, count)]);
}

static void maker_put_space(struct maker *maker)
{
    static const char *const words[] = {"", "", "", "", " ", "\n", "\t", "\r", "  \n      "};
    maker_put_one(maker, words, COUNT(words));
}

static void maker_put_string(struct maker *maker)
{
    static const char *const words[] = {"a",
                                        "name",
                                        "0123456789abcdef",
                                        "\\n",
                                        "\\\"",
                                        "\\\\",
                                        "\\/",
                                        "\\u00e9",
                                        "\\u0000",
                                        "\\ud83d\\ude00",
                                        "\xC3\xA9",
                                        "\xE2\x82\xAC",
                                        "\xF0\x9F\x98\x80",
                                        "\x7F",
                                        "{",
                                        "]",
                                        ",",
                                        ":",
                                        "\\b\\f\\r\\t"};
    maker_put(maker, "\"");
    for (uint32_t i = maker_pick(maker, 5); i > 0; i--) {
        maker_put_one(maker, words, COUNT(words));
    }
    maker_put(maker, "\"");
}

/* Names from a small set, so that some are there twice. */
static void maker_put_name(struct maker *maker)
{
    static const char *const words[] = {"\"a\"",       "\"b\"",    "\"\"",
                                        "\"\\u0061\"", "\"spec\"", "\"\xC3\xA9\""};
    if (maker_pick(maker, 3) == 0) {
        maker_put_string(maker);
    } else if (maker_pick(maker, 2) == 0) {
        (void)td_buf_append_format(&maker->text, "\"k%u\"", maker_pick(maker, 40));
    } else {
        maker_put_one(maker, words, COUNT(words));
    }
}

static void maker_put_number(struct maker *maker)
{
    static const char *const words[] = {"0",
                                        "-0",
                                        "-0.0",
                                        "1",
                                        "-1",
                                        "0.1",
                                        "1e3",
                                        "1E-3",
                                        "1.5e+10",
                                        "12345",
                                        "1e308",
                                        "5e-324",
                                        "1e-400",
                                        "1e400",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "9223372036854775808",
                                        "0.30000000000000004",
                                        "123456789012345678901234567890.123456789e-20"};
    uint32_t kind = maker_pick(maker, 4);
    if (kind == 0) {
        maker_put_one(maker, words, COUNT(words));
    } else if (kind == 1) {
        (void)td_buf_append_format(&maker->text, "%u", maker_pick(maker, UINT32_MAX));
    } else {
        (void)td_buf_append_format(&maker->text, "-%u.%ue%d", maker_pick(maker, 100000),
                                   maker_pick(maker, 1000000), (int)maker_pick(maker, 600) - 300);
    }
}

static void maker_put_value(struct maker *maker, uint32_t depth);

static void maker_put_collection(struct maker *maker, uint32_t depth)
{
    bool is_object = maker_pick(maker, 2) == 0;
    maker_put(maker, is_object ? "{" : "[");
    uint32_t count = maker_pick(maker, 10) == 0 ? 30 : maker_pick(maker, 5);
    for (uint32_t i = 0; i < count; i++) {
        maker_put(maker, i > 0 ? "," : "");
        maker_put_space(maker);
        if (is_object) {
            maker_put_name(maker);
            maker_put_space(maker);
            maker_put(maker, ":");
        }
        maker_put_value(maker, depth + 1);
    }
    maker_put_space(maker);
    maker_put(maker, is_object ? "}" : "]");
}

/* Depth is bounded by 6. */
static void maker_put_value(struct maker *maker, uint32_t depth)
{
    static const char *const words[] = {"true", "false", "null"};
    maker_put_space(maker);
    uint32_t kind = maker_pick(maker, 8);
    if (depth == 0 || (kind < 3 && depth < 6)) {
        maker_put_collection(maker, depth);
    } else if (kind < 5) {
        maker_put_string(maker);
    } else if (kind < 7) {
        maker_put_number(maker);
    } else {
        maker_put_one(maker, words, COUNT(words));
    }
    maker_put_space(maker);
}

/* One small damage: a byte changed, taken out, put in or cut off, or a piece said twice. */
static void maker_damage(struct maker *maker)
{
    static const char bytes[] =
        "{}[]\",:\\/ue0159+-.E\n\t \x01\x7F\x80\xBF\xC0\xE2\xED\xF0\xF5\xFF";
    struct td_buf *text = &maker->text;
    if (text->len < 2) {
        return;
    }
    size_t at = maker_pick(maker, (uint32_t)text->len);
    char byte = bytes[maker_pick(maker, sizeof(bytes))]; /* the NUL at the end too */
    switch (maker_pick(maker, 5)) {
    case 0:
        text->ptr[at] = byte;
        break;
    case 1:
        memmove(text->ptr + at, text->ptr + at + 1, text->len - at - 1);
        text->len--;
        break;
    case 2:
        (void)td_buf_append_char(text, '\0');
        memmove(text->ptr + at + 1, text->ptr + at, text->len - at - 1);
        text->ptr[at] = byte;
        break;
    case 3:
        text->len = maker_pick(maker, 4) == 0 ? at : text->len;
        break;
    default: {
        size_t len = text->len - at < 8 ? text->len - at : 8;
        char piece[8];
        memcpy(piece, text->ptr + at, len);
        memcpy(text->ptr + maker_pick(maker, (uint32_t)(text->len - len + 1)), piece, len);
        break;
    }
    }
}

static int reader_code(td_str text)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, text, 0);
    enum td_json_token token;
    do {
        token = td_json_reader_next(&reader);
    } while (token > TD_JSON_END);
    return reader.code;
}

/* The text in a heap block of its own size: tree, tokens and jansson must agree. */
static enum json_oracle_verdict maker_check(const struct maker *maker)
{
    td_str text = td_buf_str(&maker->text);
    char *copy = td_alloc(text.len);
    memcpy(copy, text.ptr, text.len);
    text.ptr = copy;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *root = NULL;
    int code = td_json_parse(&arena, text, NULL, &root, NULL);
    enum json_oracle_verdict verdict = json_oracle_judge(text, code, root);
    if (verdict == JSON_ORACLE_DIFFERS || reader_code(text) != code) {
        fail_msg("code %d differs for: %.*s", code, TD_STR_ARG(text));
    }
    td_free(copy);
    return verdict;
}

static void maker_run(uint64_t seed, int rounds, int damages)
{
    struct maker maker = {.seed = seed};
    td_buf_init(&maker.text, TEXT_BYTES_MAX);
    int agreed = 0;
    for (int i = 0; i < rounds; i++) {
        td_buf_reset(&maker.text);
        maker_put_value(&maker, 0);
        for (int j = 0; j < damages; j++) {
            maker_damage(&maker);
        }
        agreed += maker_check(&maker) == JSON_ORACLE_AGREES;
    }
    assert_true(agreed > rounds / 2); /* or this test would prove little */
    td_buf_done(&maker.text);
}

/* Good texts are read, with the same values. */
static void test_json_agrees_with_jansson_on_good_texts(void **state)
{
    (void)state;
    maker_run(20260314, 4000, 0);
}

/* Damaged texts are accepted or refused alike. */
static void test_json_agrees_with_jansson_on_damaged_texts(void **state)
{
    (void)state;
    maker_run(7, 8000, 1);
    maker_run(8, 4000, 2);
    maker_run(9, 2000, 5);
}

/* The differences that are meant. */
static void test_json_differs_from_jansson_where_documented(void **state)
{
    (void)state;
    static const td_str rows[] = {
        TD_STR_INIT("[9223372036854775808]"),
        TD_STR_INIT("[-9223372036854775809]"),
        TD_STR_INIT("[1e400]"),
        TD_STR_INIT("[1e999999999]"),
        TD_STR_INIT("{\"a\\u0000b\":1}"),
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        struct td_json *root = NULL;
        assert_int_equal(td_json_parse(&arena, rows[i], NULL, &root, NULL), TD_OK);
        assert_int_equal(json_oracle_judge(rows[i], TD_OK, root), JSON_ORACLE_SKIPPED);
    }
    char deep[2 * (TD_JSON_DEPTH_MAX + 1)];
    memset(deep, '[', TD_JSON_DEPTH_MAX + 1);
    memset(deep + TD_JSON_DEPTH_MAX + 1, ']', TD_JSON_DEPTH_MAX + 1);
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_json *root = NULL;
    td_str text = {.ptr = deep, .len = sizeof(deep)};
    assert_int_equal(td_json_parse(&arena, text, NULL, &root, NULL), TD_LIMIT);
    assert_int_equal(json_oracle_judge(text, TD_LIMIT, NULL), JSON_ORACLE_SKIPPED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_agrees_with_jansson_on_good_texts),
        cmocka_unit_test(test_json_agrees_with_jansson_on_damaged_texts),
        cmocka_unit_test(test_json_differs_from_jansson_where_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
