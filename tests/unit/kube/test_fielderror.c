/* Field errors: paths, values and whole lines as clients and servers read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/fielderror.h"

static void assert_text(td_str got, const char *expected)
{
    if (!td_str_equal(got, td_str_from(expected))) {
        fail_msg("got '%.*s', expected '%s'", TD_STR_ARG(got), expected);
    }
}

static void assert_line(const struct td_field_errors *errors, size_t index, const char *expected)
{
    td_auto_buf text;
    td_buf_init(&text, 4096);
    assert_true(index < errors->count);
    td_field_error_write(&errors->items[index], &text);
    assert_text(td_buf_str(&text), expected);
}

/* Members are joined by dots, items and keys stand in brackets. */
static void test_path_is_written_from_the_root(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_field_path spec = td_field_child(NULL, TD_STR("spec"));
    struct td_field_path list = td_field_child(&spec, TD_STR("metrics"));
    struct td_field_path item = td_field_item(&list, 12);
    struct td_field_path name = td_field_child(&item, TD_STR("type"));
    struct td_field_path key = {.parent = &spec, .name = TD_STR("a.b/c"), .is_key = true};
    assert_text(td_field_path_text(&arena, &name), "spec.metrics[12].type");
    assert_text(td_field_path_text(&arena, &key), "spec[a.b/c]");
    assert_text(td_field_path_text(&arena, &spec), "spec");
    assert_text(td_field_path_text(&arena, NULL), "");
}

/* One line each, as upstream words its classes; hostile values are escaped. */
static void test_lines_name_field_class_value_and_detail(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_field_errors errors = {.arena = &arena};
    static const td_str supported[] = {TD_STR_INIT("a"), TD_STR_INIT("b")};
    struct td_field_path spec = td_field_child(NULL, TD_STR("spec"));
    struct td_field_path path = td_field_child(&spec, TD_STR("x"));
    td_field_required(&errors, &path, "");
    td_field_required(&errors, &path, "must be set");
    td_field_forbidden(&errors, &path, "not here");
    td_field_invalid_str(&errors, &path, TD_STR("q\"\n"), "must be plain");
    td_field_invalid_str(&errors, &path, TD_STR_EMPTY, "must be plain");
    td_field_invalid_int(&errors, &path, INT64_MIN, "must be positive");
    td_field_unsupported(&errors, &path, TD_STR("c"), supported, 2);
    td_field_error_add(&errors, &path, TD_FIELD_TOO_MANY, TD_STR("9"), TD_STR("at most 8"));
    assert_int_equal(errors.count, 8);
    assert_line(&errors, 0, "spec.x: Required value");
    assert_line(&errors, 1, "spec.x: Required value: must be set");
    assert_line(&errors, 2, "spec.x: Forbidden: not here");
    assert_line(&errors, 3, "spec.x: Invalid value: \"q\\\"\\n\": must be plain");
    assert_line(&errors, 4, "spec.x: Invalid value: \"\": must be plain");
    assert_line(&errors, 5, "spec.x: Invalid value: -9223372036854775808: must be positive");
    assert_line(&errors, 6, "spec.x: Unsupported value: \"c\": supported values: \"a\", \"b\"");
    assert_line(&errors, 7, "spec.x: Too many: 9: at most 8");
}

/* The list grows past its first capacity and keeps order and texts. */
static void test_many_errors_keep_their_order(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 24);
    struct td_field_errors errors = {.arena = &arena};
    struct td_field_path list = td_field_child(NULL, TD_STR("items"));
    for (size_t i = 0; i < TD_FIELD_ERRORS_MAX; i++) {
        struct td_field_path item = td_field_item(&list, i);
        td_field_invalid_int(&errors, &item, (int64_t)i, "no");
    }
    assert_int_equal(errors.count, TD_FIELD_ERRORS_MAX);
    assert_line(&errors, 0, "items[0]: Invalid value: 0: no");
    assert_line(&errors, 99, "items[99]: Invalid value: 99: no");
}

/* Every class has a name of its own kind. */
static void test_every_class_has_a_name(void **state)
{
    (void)state;
    static const struct {
        enum td_field_error_type type;
        const char *name;
    } rows[] = {
        {TD_FIELD_REQUIRED, "Required value"},
        {TD_FIELD_INVALID, "Invalid value"},
        {TD_FIELD_UNSUPPORTED, "Unsupported value"},
        {TD_FIELD_FORBIDDEN, "Forbidden"},
        {TD_FIELD_DUPLICATE, "Duplicate value"},
        {TD_FIELD_TOO_MANY, "Too many"},
        {TD_FIELD_TOO_LONG, "Too long"},
        {TD_FIELD_TYPE_INVALID, "Invalid value"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_text(td_field_error_type_name(rows[i].type), rows[i].name);
    }
}

struct double_row {
    double value;
    const char *expected;
};

/* Floats look as upstream prints them. */
static void test_double_text(void **state)
{
    (void)state;
    static const struct double_row rows[] = {
        {0, "0"},           {0.5, "0.5"},       {-1, "-1"},
        {999999, "999999"}, {1e6, "1e+06"},     {-1234567.5, "-1.2345675e+06"},
        {0.0001, "0.0001"}, {0.00001, "1e-05"}, {1.5e-7, "1.5e-07"},
        {1e21, "1e+21"},    {1e300, "1e+300"},  {9223372036854775808.0, "9.223372036854776e+18"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 16);
        td_str got = td_field_double_text(&arena, rows[i].value);
        assert_string_equal(got.ptr, rows[i].expected);
    }
}

/* However many errors an object has and however long its texts are, what is told is bounded. */
static void test_errors_without_end_are_cut(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 20 };
    td_auto_arena arena;
    td_arena_init(&arena, (size_t)64 << 20);
    char *text = td_arena_alloc(&arena, LENGTH);
    memset(text, 1, LENGTH);
    td_str value = {text, LENGTH};
    size_t before = arena.used_bytes;
    struct td_field_errors errors = {.arena = &arena};
    struct td_field_path path = td_field_child(NULL, value);
    for (size_t i = 0; i < 3; i++) {
        td_field_invalid_str(&errors, &path, value, "is bad");
    }
    assert_true(arena.used_bytes - before < (size_t)4 << 20); /* the path is written once each */
    struct td_field_path spec = td_field_child(NULL, TD_STR("spec"));
    for (size_t i = 0; i < 100000; i++) {
        td_field_required(&errors, &spec, "");
    }
    assert_int_equal(errors.count, TD_FIELD_ERRORS_MAX);
    assert_true(errors.items[0].value.len < 2 * TD_FIELD_ERROR_TEXT_BYTES_MAX);
    assert_true(td_str_ends_with(errors.items[0].value, TD_STR("...")));
    assert_true(errors.items[0].field.len < 2 * TD_FIELD_ERROR_TEXT_BYTES_MAX);
    assert_true(arena.used_bytes - before < (size_t)5 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_double_text),
        cmocka_unit_test(test_path_is_written_from_the_root),
        cmocka_unit_test(test_lines_name_field_class_value_and_detail),
        cmocka_unit_test(test_many_errors_keep_their_order),
        cmocka_unit_test(test_errors_without_end_are_cut),
        cmocka_unit_test(test_every_class_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
