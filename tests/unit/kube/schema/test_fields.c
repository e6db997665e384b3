/* Field selectors: splitting, escaping, order and matching. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/limits.h"
#include "kube/schema/fields.h"
#include "support/random.h"

#define ARENA_BYTES ((size_t)256 << 20)
#define TEXT_BYTES ((size_t)8 << 20)
#define ROUNDS 20000
#define RANDOM_BYTES 16

static td_str written(struct td_arena *arena, const struct td_field_selector *selector)
{
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES);
    td_field_selector_write(selector, &text);
    assert_int_equal(td_buf_check(&text, "selector", NULL), TD_OK);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* Accepted texts and the canonical text of each. */
static void test_fields_parse_to_canonical_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *canonical;
        size_t count;
    } rows[] = {
        {"", "", 0},
        {",", "", 0},
        {",,,", "", 0},
        {"=", "", 0},
        {"==", "", 0},
        {"!=", "", 0},
        {"=,x=1", "x=1", 1},
        {"=a", "=a", 1},
        {"x=", "x=", 1},
        {"x==a", "x=a", 1},
        {"x!=a", "x!=a", 1},
        {" x = a ", " x = a ", 1},
        {"b=1,a=2", "a=2,b=1", 2},
        {"x=a,x==b", "x=b,x=a", 2}, /* terms are sorted as they were written */
        {"x=1,x=1", "x=1,x=1", 2},
        {"x=a\\,b", "x=a\\,b", 1},
        {"x=\\\\,y=1", "x=\\\\,y=1", 2},
        {"x=\\=", "x=\\=", 1},
        {"x\\,y=1", "x\\,y=1", 1},
        {"x\\=y", "x\\=y", 1},
        {"a!!=b", "a!!=b", 1},
        {"x=!y", "x=!y", 1},
        {"x=a\n", "x=a\n", 1},
        {"x=\xC3\xA9\\,", "x=\xC3\xA9\\,", 1},
        {"x=\xFF", "x=\xFF", 1},
        {"x=\xFF\\,", "x=\xEF\xBF\xBD\\,", 1}, /* unescaping goes through code points */
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_field_selector selector;
        int code = td_field_selector_parse(&arena, td_str_from(rows[i].text), &selector, &err);
        if (code != TD_OK) {
            fail_msg("'%s': %s", rows[i].text, err.message);
        }
        assert_string_equal(written(&arena, &selector).ptr, rows[i].canonical);
        assert_int_equal(selector.count, rows[i].count);
    }
}

/* Refused texts; the output is not touched. */
static void test_fields_refuse_malformed_text(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "x",    "x!y",   "x=a,b", "x=a=b",        "x===a",   "x!==a",   "x=a!=b",
        "x=\\", "x=a\\", "x=\\n", "x=\\\xC3\xA9", "x\\=y=1", "x=1,\\,",
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_field_selector selector = {.count = 77};
        td_str text = td_str_from(rows[i]);
        if (td_field_selector_parse(&arena, text, &selector, &err) != TD_INVALID) {
            fail_msg("'%s' is accepted", rows[i]);
        }
        assert_int_equal(selector.count, 77);
        assert_non_null(strstr(err.message, "field selector"));
        assert_int_equal(td_field_selector_parse(&arena, text, &selector, NULL), TD_INVALID);
    }
}

/* The length of a text is capped; commas alone take no memory for terms. */
static void test_fields_long_texts(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    size_t len = TD_SELECTOR_BYTES_MAX + 1;
    char *text = td_arena_alloc(&arena, len);
    memset(text, ',', len);
    struct td_field_selector selector;
    assert_int_equal(td_field_selector_parse(&arena, (td_str){text, len}, &selector, NULL),
                     TD_LIMIT);
    assert_int_equal(td_field_selector_parse(&arena, (td_str){text, len - 1}, &selector, NULL),
                     TD_OK);
    assert_int_equal(selector.count, 0);
    td_auto_arena small;
    td_arena_init(&small, 1);
    assert_int_equal(td_field_selector_parse(&small, TD_STR("a=b"), &selector, NULL), TD_LIMIT);
}

struct fields {
    const char *name;
    const char *phase;
};

static td_str get_field(td_str field, void *context)
{
    const struct fields *fields = context;
    if (td_str_equal(field, TD_STR("metadata.name"))) {
        return td_str_from(fields->name);
    }
    return td_str_equal(field, TD_STR("status.phase")) ? td_str_from(fields->phase) : TD_STR_EMPTY;
}

/* A field without a value counts as empty, and every term must hold. */
static void test_fields_match(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct fields fields;
        bool is_match;
    } rows[] = {
        {"", {"a", "Running"}, true},
        {"metadata.name=a", {"a", NULL}, true},
        {"metadata.name=a", {"b", NULL}, false},
        {"metadata.name==a,status.phase!=Running", {"a", "Pending"}, true},
        {"metadata.name==a,status.phase!=Running", {"a", "Running"}, false},
        {"status.phase=", {"a", NULL}, true},
        {"status.phase!=", {"a", NULL}, false},
        {"spec.nodeName=", {"a", NULL}, true},
        {"metadata.name=a\\,b", {"a,b", NULL}, true},
        {"metadata.name=a,metadata.name=b", {"a", NULL}, false},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_field_selector selector;
        struct fields fields = rows[i].fields;
        assert_int_equal(
            td_field_selector_parse(&arena, td_str_from(rows[i].text), &selector, NULL), TD_OK);
        if (td_field_selector_matches(&selector, get_field, &fields) != rows[i].is_match) {
            fail_msg("'%s'", rows[i].text);
        }
    }
}

/* Random texts: what is accepted can be written, read again and is then stable. */
static void test_fields_survive_writing(void **state)
{
    (void)state;
    static const char alphabet[] = "xy=!\\,a\xC3\xA9\xFF.";
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t round = 0; round < ROUNDS; round++) {
        char text[RANDOM_BYTES];
        size_t len = random_below(RANDOM_BYTES + 1);
        for (size_t i = 0; i < len; i++) {
            text[i] = alphabet[random_below(sizeof(alphabet) - 1)];
        }
        struct td_field_selector selector;
        if (td_field_selector_parse(&arena, (td_str){text, len}, &selector, NULL) == TD_OK) {
            struct td_field_selector second;
            struct td_field_selector third;
            td_str once = written(&arena, &selector);
            assert_int_equal(td_field_selector_parse(&arena, once, &second, NULL), TD_OK);
            td_str twice = written(&arena, &second);
            assert_int_equal(td_field_selector_parse(&arena, twice, &third, NULL), TD_OK);
            assert_int_equal(selector.count, second.count);
            assert_int_equal(once.len, twice.len);
            assert_true(td_str_equal(twice, written(&arena, &third)));
        }
        td_arena_reset(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_parse_to_canonical_text),
        cmocka_unit_test(test_fields_refuse_malformed_text),
        cmocka_unit_test(test_fields_long_texts),
        cmocka_unit_test(test_fields_match),
        cmocka_unit_test(test_fields_survive_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
