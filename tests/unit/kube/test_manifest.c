/* Files of objects: YAML and JSON, Lists, and what cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/limits.h"
#include "kube/manifest.h"

/* Documents and the items of a List are objects of their own, each with its line. */
static void test_manifest_reads_documents_and_lists(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_manifest manifest = {.count = 0};
    const char *text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ns}\n---\n---\n"
                       "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n"
                       "  metadata: {generateName: s-}\n- {apiVersion: v1, kind: ConfigMap}\n";
    assert_int_equal(td_manifest_read(&arena, TD_STR("a.yaml"), td_str_from(text), &manifest, NULL),
                     TD_OK);
    assert_int_equal(manifest.count, 3);
    assert_true(td_str_equal(manifest.items[0].name, TD_STR("a")));
    assert_true(td_str_equal(manifest.items[0].namespace, TD_STR("ns")));
    assert_int_equal(manifest.items[0].line, 1);
    assert_true(td_str_equal(manifest.items[1].kind, TD_STR("Secret")));
    assert_true(td_str_equal(manifest.items[1].name, TD_STR("s-")));
    assert_int_equal(manifest.items[1].line, 9);
    assert_true(td_str_equal(manifest.items[2].kind, TD_STR("ConfigMap")));
    assert_int_equal(manifest.items[2].line, 12);
}

/* A byte order mark is no part of a text, whichever its form. */
static void test_manifest_passes_over_byte_order_marks(void **state)
{
    (void)state;
    static const char *const names[] = {"a.json", "a.yaml"};
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
        struct td_manifest manifest = {.count = 0};
        td_str text = TD_STR("\xef\xbb\xbf{\"apiVersion\": \"v1\", \"kind\": \"Pod\"}");
        assert_int_equal(td_manifest_read(&arena, td_str_from(names[i]), text, &manifest, NULL),
                         TD_OK);
        assert_int_equal(manifest.count, 1);
    }
}

/* Values of JSON follow each other without anything between them, whatever the file is called. */
static void test_manifest_reads_values_of_json(void **state)
{
    (void)state;
    static const char *const names[] = {"a.json", "-"};
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
        struct td_manifest manifest = {.count = 0};
        td_str text = TD_STR("\n{\"apiVersion\": \"v1\",\r\n\"kind\": \"Pod\"}\r\n"
                             "{\"apiVersion\": \"v1\", \"kind\": \"Secret\"}"
                             "{\"apiVersion\": \"v1\", \"kind\": \"Node\"}\n\n");
        assert_int_equal(td_manifest_read(&arena, td_str_from(names[i]), text, &manifest, NULL),
                         TD_OK);
        assert_int_equal(manifest.count, 3);
        assert_int_equal(manifest.items[0].line, 2);
        assert_true(td_str_equal(manifest.items[1].kind, TD_STR("Secret")));
        assert_int_equal(manifest.items[1].line, 4);
        assert_true(td_str_equal(manifest.items[2].kind, TD_STR("Node")));
        assert_int_equal(manifest.items[2].line, 4);
    }
}

/* A mapping in YAML's flow style begins as JSON does. */
static void test_manifest_reads_flow_mappings(void **state)
{
    (void)state;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_manifest manifest = {.count = 0};
    td_str text = TD_STR("{apiVersion: v1, kind: Pod}\n---\n{apiVersion: v1, kind: Secret}\n");
    assert_int_equal(td_manifest_read(&arena, TD_STR("a.yaml"), text, &manifest, NULL), TD_OK);
    assert_int_equal(manifest.count, 2);
}

/* The items of a list of a kind are of that kind unless they say another. */
static void test_manifest_completes_items(void **state)
{
    (void)state;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_manifest manifest = {.count = 0};
    td_str text =
        TD_STR("apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: a}\n"
               "- {apiVersion: v1, kind: Pod}\n");
    assert_int_equal(td_manifest_read(&arena, TD_STR("a.yaml"), text, &manifest, NULL), TD_OK);
    assert_int_equal(manifest.count, 2);
    assert_true(td_str_equal(manifest.items[0].kind, TD_STR("Deployment")));
    assert_true(td_str_equal(manifest.items[0].api_version, TD_STR("apps/v1")));
    assert_true(td_str_equal(td_json_text(manifest.items[0].tree, "kind"), TD_STR("Deployment")));
    assert_int_equal(manifest.items[0].line, 4);
    assert_true(td_str_equal(manifest.items[1].kind, TD_STR("Pod")));
}

/* A failure names file, line and cause, and leaves what was read before. */
static void test_manifest_failures_add_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        const char *text;
        const char *start;
    } rows[] = {
        {"a.json", "{\"kind\":\"Pod\",", "a.json:1:"},
        {"a.json", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"kind\":\"Pod\"}",
         "a.json: duplicate field \"kind\""},
        {"a.json", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}\n {\"a\" 1}", "a.json:2:7: expected"},
        {"a.json", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"},", "a.json:1:33: expected"},
        {"a.json", "[]", "a.json:1: not an object"},
        {"a.yaml", "a: b: c", "a.yaml:1: "},
        {"a.yaml", "a: 1\na: 2", "a.yaml:2: "},
        {"a.yaml", "apiVersion: v1\nkind: Pod\n---\nkind: Pod", "a.yaml:4: apiVersion: "},
        {"a.yaml", "apiVersion: v1\nkind: 3", "a.yaml:1: kind: "},
        {"a.yaml", "apiVersion: v1\nkind: List\nitems: [3]", "a.yaml:3: not an object"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
        struct td_manifest manifest = {.count = 0};
        const char *good = "apiVersion: v1\nkind: Pod";
        assert_int_equal(
            td_manifest_read(&arena, TD_STR("good.yaml"), td_str_from(good), &manifest, NULL),
            TD_OK);
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_manifest_read(&arena, td_str_from(rows[i].file),
                                          td_str_from(rows[i].text), &manifest, &err),
                         TD_INVALID);
        assert_int_equal(manifest.count, 1);
        if (!td_str_starts_with(td_str_from(err.message), td_str_from(rows[i].start))) {
            fail_msg("'%s' does not start with '%s'", err.message, rows[i].start);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manifest_reads_documents_and_lists),
        cmocka_unit_test(test_manifest_passes_over_byte_order_marks),
        cmocka_unit_test(test_manifest_reads_values_of_json),
        cmocka_unit_test(test_manifest_reads_flow_mappings),
        cmocka_unit_test(test_manifest_completes_items),
        cmocka_unit_test(test_manifest_failures_add_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
