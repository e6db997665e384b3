/*
 * Objects of custom kinds against structural schemas: what is left of an object and which errors
 * it has are those of upstream's own code (tests/data/schema).
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>

#include "base/error.h"
#include "base/os/file.h"
#include "kube/schema/schema_check.h"

#define SCHEMA_ARENA_BYTES_MAX ((size_t)512 << 20)

static td_str tree_text(struct td_arena *arena, const struct td_json *tree)
{
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    td_json_write(tree, &(struct td_json_format){.indent = 0}, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static td_str error_line(struct td_arena *arena, const struct td_field_error *error)
{
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    td_field_error_write(error, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static void show(const char *what, const td_str *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        print_error("  %s %.*s\n", what, TD_STR_ARG(lines[i]));
    }
}

/* Upstream walks maps in any order, so lines are compared as sets. */
static bool same_lines(td_str *ours, size_t our_count, td_str *theirs, size_t their_count)
{
    bool is_same = our_count == their_count;
    qsort(ours, our_count, sizeof(ours[0]), td_str_compare_items);
    qsort(theirs, their_count, sizeof(theirs[0]), td_str_compare_items);
    for (size_t i = 0; is_same && i < our_count; i++) {
        is_same = td_str_equal(ours[i], theirs[i]);
    }
    return is_same;
}

static bool check_case(struct td_arena *arena, const struct td_json *row)
{
    const struct td_json *schema = td_json_get(row, TD_STR("schema"));
    const struct td_json *theirs = td_json_get(row, TD_STR("errors"));
    td_str name = td_json_get_str(row, TD_STR("name"), TD_STR_EMPTY);
    struct td_json *shaped = NULL;
    assert_int_equal(
        td_schema_shape(arena, schema, td_json_get(row, TD_STR("object")), &shaped, NULL), TD_OK);
    struct td_field_errors errors = {.arena = arena};
    td_schema_check(schema, shaped, &errors);
    td_str *got = td_arena_array(arena, td_str, errors.count + 1);
    td_str *wanted = td_arena_array(arena, td_str, theirs->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < errors.count; i++) {
        got[i] = error_line(arena, &errors.items[i]);
    }
    for (const struct td_json *line = td_json_first_child(theirs); line; line = line->next) {
        wanted[count++] = line->text;
    }
    bool is_same = true;
    if (!td_json_equal(shaped, td_json_get(row, TD_STR("shaped")))) {
        td_str ours = tree_text(arena, shaped);
        td_str other = tree_text(arena, td_json_get(row, TD_STR("shaped")));
        print_error("%.*s:\n  got  %.*s\n  want %.*s\n", TD_STR_ARG(name), TD_STR_ARG(ours),
                    TD_STR_ARG(other));
        is_same = false;
    }
    if (!same_lines(got, errors.count, wanted, count)) {
        td_str text = tree_text(arena, schema);
        td_str object = tree_text(arena, shaped);
        print_error("%.*s: %.*s\n  %.*s\n", TD_STR_ARG(name), TD_STR_ARG(text), TD_STR_ARG(object));
        show("got ", got, errors.count);
        show("want", wanted, count);
        is_same = false;
    }
    return is_same;
}

/* Shapes and errors are upstream's, for cases by hand and for random ones. */
static void test_objects_are_shaped_and_refused_as_upstream_does(void **state)
{
    (void)state;
    struct td_error err = TD_ERROR_INIT;
    td_auto_arena arena;
    td_arena_init(&arena, SCHEMA_ARENA_BYTES_MAX);
    td_str text;
    struct td_json *cases = NULL;
    size_t wrong = 0;
    if (td_file_read(TEST_DATA_DIR "/schema/cases.json", &arena, TD_JSON_BYTES_MAX, &text, &err) <
            0 ||
        td_json_parse(&arena, text, NULL, &cases, &err) < 0) {
        fail_msg("%s", err.message);
    }
    for (const struct td_json *row = td_json_first_child(cases); row; row = row->next) {
        wrong += !check_case(&arena, row);
    }
    assert_true(cases->count > 600);
    assert_int_equal(wrong, 0);
}

static struct td_json *parse(struct td_arena *arena, const char *text)
{
    struct td_json *tree = NULL;
    assert_int_equal(td_json_parse(arena, td_str_from(text), NULL, &tree, NULL), TD_OK);
    return tree;
}

/* Rules in CEL and patterns that are not known are told, once a version. */
static void test_what_is_not_enforced_is_reported(void **state)
{
    (void)state;
    static const struct {
        const char *schema;
        size_t warnings;
    } rows[] = {
        {"{\"type\":\"object\"}", 0},
        {"{\"properties\":{\"a\":{\"pattern\":\"^a$\"}}}", 0},
        {"{\"properties\":{\"a\":{\"pattern\":\"\\\\p{L}\"}}}", 1},
        {"{\"x-kubernetes-validations\":[{\"rule\":\"true\"}]}", 1},
        {"{\"properties\":{\"a\":{\"x-kubernetes-validations\":[{\"rule\":\"true\"}]},"
         "\"b\":{\"x-kubernetes-validations\":[{\"rule\":\"true\"}]}}}",
         1},
        {"{\"properties\":{\"pattern\":{\"type\":\"string\"}}}", 0},
    };
    td_auto_arena arena;
    td_arena_init(&arena, SCHEMA_ARENA_BYTES_MAX);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_json *warnings = td_json_new_array(&arena);
        td_schema_warn(&arena, TD_STR("v1"), parse(&arena, rows[i].schema), warnings);
        assert_int_equal(warnings->count, rows[i].warnings);
    }
}

/* Work on one object is bounded, and an object that would need more is refused. */
static void test_costly_schemas_end(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, SCHEMA_ARENA_BYTES_MAX);
    struct td_json *schema =
        parse(&arena, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\","
                      "\"pattern\":\"^(x?){900}(x*x*){200}y$\"}}}");
    enum { LENGTH = 1 << 20 };
    char *text = td_arena_alloc(&arena, LENGTH);
    for (size_t i = 0; i < LENGTH; i++) {
        text[i] = 'x';
    }
    struct td_json *object = td_json_new_object(&arena);
    td_json_set_str(&arena, object, TD_STR("a"), (td_str){text, LENGTH});
    struct td_field_errors errors = {.arena = &arena};
    td_schema_check(schema, object, &errors);
    assert_int_equal(errors.count, 1);
    assert_string_equal(errors.items[0].detail.ptr,
                        "the object takes too long to check against its schema");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_are_shaped_and_refused_as_upstream_does),
        cmocka_unit_test(test_what_is_not_enforced_is_reported),
        cmocka_unit_test(test_costly_schemas_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
