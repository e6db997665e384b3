/* Request lines: paths, escapes and what an Accept header leads to. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/error.h"
#include "local/api/api_private.h"

#define ARENA_BYTES ((size_t)1 << 20)

static void check_text(td_str text, const char *expected)
{
    td_str other = td_str_from(expected);
    if (!td_str_equal(text, other)) {
        print_error("'%.*s' instead of '%s'\n", TD_STR_ARG(text), expected);
    }
    assert_true(td_str_equal(text, other));
}

/* Every form of resource path is taken apart, and what is none is refused. */
static void test_path_takes_resource_paths_apart(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        const char *group, *version, *ns, *plural, *name, *subresource;
        bool is_watch;
    } rows[] = {
        {"/api/v1/pods", "", "v1", "", "pods", "", "", false},
        {"/api/v1/pods/", "", "v1", "", "pods", "", "", false},
        {"/api/v1/pods?limit=5", "", "v1", "", "pods", "", "", false},
        {"/api/v1/namespaces", "", "v1", "", "namespaces", "", "", false},
        {"/api/v1/namespaces/shop", "", "v1", "", "namespaces", "shop", "", false},
        {"/api/v1/namespaces/shop/status", "", "v1", "", "namespaces", "shop", "status", false},
        {"/api/v1/namespaces/shop/finalize", "", "v1", "", "namespaces", "shop", "finalize", false},
        {"/api/v1/namespaces/shop/pods", "", "v1", "shop", "pods", "", "", false},
        {"/api/v1/namespaces/shop/pods/web", "", "v1", "shop", "pods", "web", "", false},
        {"/api/v1/namespaces/shop/pods/web/log", "", "v1", "shop", "pods", "web", "log", false},
        {"/api/v1/namespaces/shop/pods/web/proxy/a/b", "", "v1", "shop", "pods", "web", "proxy",
         false},
        {"/api/v1/nodes/n%2D1", "", "v1", "", "nodes", "n-1", "", false},
        {"/apis/apps/v1/namespaces/shop/deployments/web/scale", "apps", "v1", "shop", "deployments",
         "web", "scale", false},
        {"/apis/apps/v1/watch/deployments", "apps", "v1", "", "deployments", "", "", true},
        {"/api/v1/watch/namespaces/shop/pods/web", "", "v1", "shop", "pods", "web", "", true},
        {"/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/rps", "custom.metrics.k8s.io",
         "v1beta2", "shop", "pods", "*", "rps", false},
        {"/apis/x.dev/v1/status", "x.dev", "v1", "", "status", "", "", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_target target;
        struct td_call_path path;
        bool is_watch = false;
        assert_int_equal(td_target_parse(&arena, td_str_from(rows[i].target), &target, NULL),
                         TD_OK);
        assert_true(td_path_parse(&target, &path, &is_watch));
        check_text(path.group, rows[i].group);
        check_text(path.version, rows[i].version);
        check_text(path.ns, rows[i].ns);
        check_text(path.plural, rows[i].plural);
        check_text(path.name, rows[i].name);
        check_text(path.subresource, rows[i].subresource);
        assert_int_equal(is_watch, rows[i].is_watch);
    }
}

/* Paths of the server itself, and broken ones, are no resources. */
static void test_path_refuses_what_is_no_resource(void **state)
{
    (void)state;
    static const char *const targets[] = {
        "/",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/healthz",
        "/api/v1//pods",
        "/api/v1/namespaces/shop/pods//web",
        "/api/v1/namespaces//pods",
        "/api/v1/namespaces/shop/pods/web/log/more",
        "/api/v1/nodes/a/b/c",
    };
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_target target;
        struct td_call_path path;
        bool is_watch = false;
        assert_int_equal(td_target_parse(&arena, td_str_from(targets[i]), &target, NULL), TD_OK);
        if (td_path_parse(&target, &path, &is_watch)) {
            fail_msg("'%s' was taken", targets[i]);
        }
    }
}

/* Escapes that are broken, or hide bytes no name can have, are refused at once. */
static void test_target_refuses_broken_escapes(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        int code;
    } rows[] = {
        {"/api/v1/pods/%41", TD_OK},
        {"/api/v1/pods/%4", TD_INVALID},
        {"/api/v1/pods/%", TD_INVALID},
        {"/api/v1/pods/%zz", TD_INVALID},
        {"/api/v1/pods/%4z", TD_INVALID},
        {"/api/v1/pods/a%00b", TD_INVALID},
        {"/api/v1/pods/%ff", TD_INVALID},
        {"/api/v1/pods/%c3%a9", TD_OK},
        {"", TD_INVALID},
        {"api/v1", TD_INVALID},
        {"*", TD_INVALID},
        {"/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", TD_OK},
        {"/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", TD_LIMIT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_target target;
        int code = td_target_parse(&arena, td_str_from(rows[i].target), &target, NULL);
        if (code != rows[i].code) {
            fail_msg("'%s' gave %d", rows[i].target, code);
        }
    }
}

/* The header of each common client leads to the form it expects. */
static void test_accept_finds_the_form(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        bool is_stream;
        bool is_taken;
        enum td_api_form form;
        bool is_yaml;
        bool is_list_form;
    } rows[] = {
        {"", false, true, TD_FORM_OBJECT, false, false},
        {"*/*", false, true, TD_FORM_OBJECT, false, false},
        {"application/*", false, true, TD_FORM_OBJECT, false, false},
        {"application/json", false, true, TD_FORM_OBJECT, false, false},
        {"application/json;stream=watch", true, true, TD_FORM_OBJECT, false, false},
        {"application/vnd.kubernetes.protobuf", false, true, TD_FORM_OBJECT, false, false},
        {"application/vnd.kubernetes.protobuf,application/json", false, true, TD_FORM_OBJECT, false,
         false},
        {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;"
         "g=meta.k8s.io,application/json",
         false, true, TD_FORM_TABLE, false, false},
        {"application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", false, true,
         TD_FORM_OBJECT, false, false},
        {"application/json;as=Table;v=v2;g=meta.k8s.io", false, false, TD_FORM_OBJECT, false,
         false},
        {"application/json;as=Foo;v=v1;g=meta.k8s.io", false, false, TD_FORM_OBJECT, false, false},
        {"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
         "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
         true, true, TD_FORM_PARTIAL, false, false},
        {"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", false, true,
         TD_FORM_PARTIAL, false, true},
        {"application/yaml", false, true, TD_FORM_OBJECT, true, false},
        {"application/yaml", true, false, TD_FORM_OBJECT, false, false},
        {"text/html", false, false, TD_FORM_OBJECT, false, false},
        {"text/html, application/xml;q=0.9, */*;q=0.8", false, true, TD_FORM_OBJECT, false, false},
        {"application/json;q=0.5, application/yaml;q=0.9", false, true, TD_FORM_OBJECT, true,
         false},
        {"application/json;q=0.5, application/yaml;q=0.05", false, true, TD_FORM_OBJECT, false,
         false},
        {",,;;,=", false, false, TD_FORM_OBJECT, false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_accept accept = {.form = TD_FORM_OBJECT};
        bool is_taken = td_accept_parse(td_str_from(rows[i].header), rows[i].is_stream, &accept);
        if (is_taken != rows[i].is_taken || accept.form != rows[i].form ||
            accept.is_yaml != rows[i].is_yaml || accept.is_list_form != rows[i].is_list_form) {
            fail_msg("row %zu: '%s'", i, rows[i].header);
        }
    }
}

/* A continue token reads back; what is no token is told so. */
static void test_page_token_reads_back(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_page_token token = {.version = 326, .ns = TD_STR_EMPTY, .name = TD_STR("c2")};
    td_str text = td_page_token_write(&arena, &token);
    check_text(text, "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MzI2LCJzdGFydCI6Ii9jMlx1MDAwMCJ9");
    struct td_page_token again;
    assert_int_equal(td_page_token_read(&arena, text, &again, NULL), TD_OK);
    assert_int_equal(again.version, 326);
    check_text(again.name, "c2");
    static const char *const bad[] = {"xx",
                                      "!",
                                      "e30",
                                      "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ",
                                      "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiIvYTEifQ",
                                      "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIifQ"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_page_token_read(&arena, td_str_from(bad[i]), &again, &err), TD_INVALID);
        assert_non_null(strstr(err.message, "continue key is not valid"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path_takes_resource_paths_apart),
        cmocka_unit_test(test_path_refuses_what_is_no_resource),
        cmocka_unit_test(test_target_refuses_broken_escapes),
        cmocka_unit_test(test_accept_finds_the_form),
        cmocka_unit_test(test_page_token_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
