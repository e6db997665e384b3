/*
 * The Table form: columns and cells of every kind against those of kube-apiserver 1.36.3
 * (tests/data/table), and the rules of ages and of JSON paths.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/error.h"
#include "base/os/file.h"
#include "local/kinds/custom.h"
#include "local/print/table.h"

#define TABLE_ARENA_BYTES_MAX ((size_t)256 << 20)

static td_str tree_text(struct td_arena *arena, const struct td_json *tree)
{
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    if (tree) {
        td_json_write(tree, &(struct td_json_format){.indent = 0}, &text);
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* Fails when two trees differ, showing both. */
static void expect_same(struct td_arena *arena, td_str where, const struct td_json *ours,
                        const struct td_json *theirs)
{
    if (!td_json_equal(ours, theirs)) {
        td_str got = tree_text(arena, ours);
        td_str wanted = tree_text(arena, theirs);
        print_error("%.*s:\n  got  %.*s\n  want %.*s\n", TD_STR_ARG(where), TD_STR_ARG(got),
                    TD_STR_ARG(wanted));
        fail();
    }
}

/* A custom kind is a row made for the test. */
struct table_custom {
    struct td_resource row;
    struct td_resource_version version;
    struct td_custom_version schema;
    struct td_custom custom;
};

static struct td_resource_at table_custom_at(struct table_custom *made,
                                             const struct td_json *columns)
{
    *made = (struct table_custom){.schema = {.columns = columns}};
    made->version =
        (struct td_resource_version){.name = TD_STR("v1"), .api_version = TD_STR("example.com/v1")};
    made->custom = (struct td_custom){.versions = &made->schema, .version_count = 1};
    made->row = (struct td_resource){.group = TD_STR("example.com"),
                                     .kind = TD_STR("Widget"),
                                     .versions = &made->version,
                                     .version_count = 1,
                                     .custom = &made->custom};
    return (struct td_resource_at){.resource = &made->row};
}

static void check_case(struct td_arena *arena, const struct td_resources *resources,
                       const struct td_json *table)
{
    td_str plural = td_json_get_str(table, TD_STR("plural"), TD_STR_EMPTY);
    struct table_custom custom;
    struct td_resource_at at =
        td_resources_find(resources, td_json_get_str(table, TD_STR("group"), TD_STR_EMPTY),
                          td_json_get_str(table, TD_STR("version"), TD_STR_EMPTY), plural);
    struct td_instant now;
    if (!at.resource) {
        at = table_custom_at(&custom, td_json_get(table, TD_STR("printerColumns")));
    }
    assert_int_equal(td_time_parse(td_json_get_str(table, TD_STR("now"), TD_STR_EMPTY), &now, NULL),
                     TD_OK);
    struct td_json *columns = td_table_columns(arena, at);
    for (struct td_json *column = td_json_first_child(columns); column; column = column->next) {
        (void)td_json_remove(column, TD_STR("description"));
    }
    expect_same(arena, plural, columns, td_json_get(table, TD_STR("columns")));
    const struct td_json *row = td_json_first_child(td_json_get(table, TD_STR("rows")));
    for (; row; row = row->next) {
        const struct td_json *object = td_json_get(row, TD_STR("object"));
        expect_same(arena, plural, td_table_cells(arena, at, object, now),
                    td_json_get(row, TD_STR("cells")));
        struct td_json *conditions = td_table_conditions(arena, at, object);
        if (conditions) {
            (void)td_json_remove(td_json_first_child(conditions), TD_STR("message"));
        }
        expect_same(arena, plural, conditions, td_json_get(row, TD_STR("conditions")));
    }
}

/* Every kind shows what the real server shows. */
static void test_cells_are_those_of_the_server(void **state)
{
    (void)state;
    struct td_error err = TD_ERROR_INIT;
    td_auto_arena arena;
    td_arena_init(&arena, TABLE_ARENA_BYTES_MAX);
    td_str text;
    struct td_json *cases = NULL;
    if (td_file_read(TEST_DATA_DIR "/table/cases.json", &arena, TD_JSON_BYTES_MAX, &text, &err) <
            0 ||
        td_json_parse(&arena, text, NULL, &cases, &err) < 0) {
        fail_msg("%s", err.message);
    }
    struct td_resources *resources = td_resources_new();
    assert_true(cases->count > 40);
    for (const struct td_json *table = td_json_first_child(cases); table; table = table->next) {
        check_case(&arena, resources, table);
    }
    td_resources_free(resources);
}

/* Ages have one or two units, by how old a thing is. */
static void test_ages_have_the_units_people_read(void **state)
{
    (void)state;
    static const struct {
        int64_t seconds;
        const char *age;
    } rows[] = {
        {-10, "<invalid>"},
        {-1, "0s"},
        {0, "0s"},
        {119, "119s"},
        {120, "2m"},
        {125, "2m5s"},
        {599, "9m59s"},
        {600, "10m"},
        {3 * 3600 - 1, "179m"},
        {3 * 3600, "3h"},
        {3 * 3600 + 60, "3h1m"},
        {8 * 3600 - 1, "7h59m"},
        {8 * 3600 + 60, "8h"},
        {48 * 3600 - 1, "47h"},
        {48 * 3600, "2d"},
        {49 * 3600, "2d1h"},
        {8 * 86400, "8d"},
        {730 * 86400 - 1, "729d"},
        {730 * 86400, "2y"},
        {731 * 86400, "2y1d"},
        {(int64_t)8 * 365 * 86400 + 86400, "8y"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, TABLE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_instant now = {.unix_seconds = 1704067200 + rows[i].seconds};
        td_str age = td_table_age(&arena, TD_STR("2024-01-01T00:00:00Z"), now);
        assert_string_equal(age.ptr, rows[i].age);
    }
    td_str unknown = td_table_age(&arena, TD_STR("soon"), (struct td_instant){0});
    assert_string_equal(unknown.ptr, "<unknown>");
}

/* A path that cannot be read, or leads nowhere, leaves its cell empty. */
static void test_odd_paths_leave_cells_empty(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {".a.b", "\"x\""},
        {".a['b']", "\"x\""},
        {".list[1].n", "2"},
        {".list[-2].n", "1"},
        {".list[?(@.n==2)].t", "\"two\""},
        {".list[?(@.n>=2)].t", "\"two\""},
        {".list[?(@.t!='one')].n", "2"},
        {".list[?(@.t)].n", "1"},
        {".list[?(@.on==true)].n", "2"},
        {".*.b", "\"x\""},
        {".list[7].n", "null"},
        {".list[x].n", "null"},
        {".list[?(@.n==)].t", "null"},
        {".list[?(n==2)].t", "null"},
        {".list[", "null"},
        {".list[?(@.t=='one'", "null"},
        {".a..b", "null"},
        {"a.b", "null"},
        {".", "null"},
        {".a.b.c.d", "null"},
        {".a['b'", "null"},
        {".[*][*][*][*][*][*][*][*][*][*][*][*]", "null"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, TABLE_ARENA_BYTES_MAX);
    struct td_json *object = NULL;
    assert_int_equal(td_json_parse(&arena,
                                   TD_STR("{\"metadata\":{\"name\":\"w\"},\"a\":{\"b\":\"x\"},"
                                          "\"list\":[{\"n\":1,\"t\":\"one\"},"
                                          "{\"n\":2,\"t\":\"two\",\"on\":true}]}"),
                                   NULL, &object, NULL),
                     TD_OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_json *columns = td_json_new_array(&arena);
        struct td_json *column = td_json_new_object(&arena);
        bool is_number = rows[i][1][0] >= '0' && rows[i][1][0] <= '9';
        td_json_set_str(&arena, column, TD_STR("name"), TD_STR("C"));
        td_json_set_str(&arena, column, TD_STR("type"),
                        is_number ? TD_STR("integer") : TD_STR("string"));
        td_json_set_str(&arena, column, TD_STR("jsonPath"), td_str_from(rows[i][0]));
        td_json_append(columns, column);
        struct table_custom custom;
        struct td_resource_at at = table_custom_at(&custom, columns);
        struct td_json *cells = td_table_cells(&arena, at, object, (struct td_instant){0});
        td_str got = tree_text(&arena, td_json_at(cells, 1));
        if (!td_str_equal(got, td_str_from(rows[i][1]))) {
            fail_msg("%s gives %s", rows[i][0], got.ptr);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells_are_those_of_the_server),
        cmocka_unit_test(test_ages_have_the_units_people_read),
        cmocka_unit_test(test_odd_paths_leave_cells_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
