/* Types, names and selectors of objects, checked by the schema table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"
#include "kube/schema/check.h"

static struct td_json *parse(struct td_arena *arena, const char *text)
{
    struct td_yaml_documents documents;
    struct td_error err = TD_ERROR_INIT;
    if (td_yaml_parse(arena, td_str_from(text), &documents, &err) < 0) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(documents.count, 1);
    return documents.items[0];
}

struct type_row {
    const char *kind;
    const char *text;
    const char *message; /* NULL: accepted */
    uint32_t line;
};

/* Each scalar kind accepts what Go's decoder accepts and names path and value of the rest. */
static void test_check_types_names_path_value_and_line(void **state)
{
    (void)state;
    static const struct type_row rows[] = {
        {"Pod", "spec: {priority: 1}", NULL, 0},
        {"Pod", "spec: null", NULL, 0},
        {"Pod", "spec:\n  priority: x", "spec.priority: \"x\": must be a 32-bit integer", 2},
        {"Pod", "spec: {priority: 2147483648}",
         "spec.priority: 2147483648: must be a 32-bit integer", 1},
        {"Pod", "spec: {priority: 1.5}", "spec.priority: 1.5: must be a 32-bit integer", 1},
        {"Pod", "spec: {activeDeadlineSeconds: 9223372036854775808}",
         "spec.activeDeadlineSeconds: 9223372036854775808: must be an integer", 1},
        {"Pod", "spec: {nodeName: 3}", "spec.nodeName: 3: must be a string", 1},
        {"Pod", "spec: {hostNetwork: \"yes\"}", "spec.hostNetwork: \"yes\": must be true or false",
         1},
        {"Pod", "spec: {containers: {}}", "spec.containers: {}: must be a list", 1},
        {"Pod", "spec: {containers: [a]}", "spec.containers[0]: \"a\": must be an object", 1},
        {"Pod", "spec: {nodeSelector: [a]}", "spec.nodeSelector: [\"a\"]: must be an object", 1},
        {"Pod", "spec: {overhead: {cpu: 1}}", NULL, 0},
        {"Pod", "spec: {overhead: {cpu: 1.5.5Gi}}",
         "spec.overhead.cpu: \"1.5.5Gi\": must be a quantity such as 500m, 1.5 or 128Mi", 1},
        {"Pod", "spec: {overhead: {cpu: [1]}}",
         "spec.overhead.cpu: [1]: must be a quantity such as 500m, 1.5 or 128Mi", 1},
        {"Pod", "metadata: {creationTimestamp: \"2026-01-02T03:04:05Z\"}", NULL, 0},
        {"Pod", "metadata: {creationTimestamp: \"2026-01-02\"}",
         "metadata.creationTimestamp: \"2026-01-02\": must be a time such as 2006-01-02T15:04:05Z",
         1},
        {"Secret", "data: {a: aGk=, b: \"\"}", NULL, 0},
        {"Secret", "data: {a: \"a=bc\"}", "data.a: \"a=bc\": must be base64", 1},
        {"Secret", "data: {a: hi}", "data.a: \"hi\": must be base64", 1},
        {"Pod", "unknownField: {a: [1]}", NULL, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
        const struct td_schema_type *type = td_schema_find(TD_STR("v1"), td_str_from(rows[i].kind));
        assert_non_null(type);
        struct td_error err = TD_ERROR_INIT;
        uint32_t line = 0;
        int code = td_check_types(type, parse(&arena, rows[i].text), &line, &err);
        assert_int_equal(code, rows[i].message ? TD_INVALID : TD_OK);
        if (rows[i].message) {
            assert_string_equal(err.message, rows[i].message);
            assert_int_equal(line, rows[i].line);
        }
    }
}

/* A long value is cut at a whole character, so that the line stays a line. */
static void test_check_types_cuts_long_values(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    const char *text = "spec: {priority: äääääääääääääääääääääääääääääääääääääääääääääääää}";
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_check_types(td_schema_find(TD_STR("v1"), TD_STR("Pod")),
                                    parse(&arena, text), NULL, &err),
                     TD_INVALID);
    assert_true(td_str_is_utf8(td_str_from(err.message)));
    assert_non_null(strstr(err.message, "…: must be a 32-bit integer"));
}

/* What decodes but no type has is a problem with its field and line. */
static void test_check_unknown_names_field_and_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *field; /* NULL: no problem */
        uint32_t line;
    } rows[] = {
        {"metadata: {name: a}\nspec: {foo: 1}", "spec.foo", 2},
        {"spec:\n  template:\n    spec:\n      containers:\n      - {}\n      - imagePullpolicy: x",
         "spec.template.spec.containers[1].imagePullpolicy", 6},
        {"metadata: {labels: {any: x}, annotations: {any: y}}", NULL, 0},
        {"metadata: {label: x}", "metadata.label", 1},
        {"spec: 7", NULL, 0}, /* a type's matter */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
        struct td_problems problems = {.arena = &arena};
        td_check_unknown(td_schema_find(TD_STR("apps/v1"), TD_STR("Deployment")),
                         parse(&arena, rows[i].text), &problems);
        if (problems.count != (rows[i].field ? 1 : 0)) {
            fail_msg("%s: %zu problems", rows[i].text, problems.count);
        }
        if (rows[i].field) {
            assert_string_equal(problems.items[0].field.ptr, rows[i].field);
            assert_string_equal(problems.items[0].message.ptr, "unknown field");
            assert_string_equal(problems.items[0].rule, "unknown-field");
            assert_int_equal(problems.items[0].line, rows[i].line);
        }
    }
}

/* However many problems there are, the list is bounded and says that it was cut. */
static void test_check_unknown_is_bounded(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object = parse(&arena, "metadata: {name: a}");
    for (size_t i = 0; i < 3 * TD_STRICT_PROBLEMS_MAX; i++) {
        td_json_set(&arena, object, td_arena_format(&arena, "field%zu", i),
                    td_json_new_null(&arena));
    }
    struct td_problems problems = {.arena = &arena};
    td_check_unknown(td_schema_find(TD_STR("v1"), TD_STR("Pod")), object, &problems);
    assert_int_equal(problems.count, TD_STRICT_PROBLEMS_MAX);
    assert_true(problems.is_cut);
}

/* Of a kind without schema nothing below its metadata is unknown. */
static void test_check_unknown_without_schema(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_problems problems = {.arena = &arena};
    td_check_unknown(td_schema_any_object(), parse(&arena, "metadata: {name: a}\nspec: {any: [1]}"),
                     &problems);
    assert_int_equal(problems.count, 0);
    td_check_unknown(td_schema_any_object(), parse(&arena, "metadata: {nam: a}"), &problems);
    assert_int_equal(problems.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_types_names_path_value_and_line),
        cmocka_unit_test(test_check_types_cuts_long_values),
        cmocka_unit_test(test_check_unknown_names_field_and_line),
        cmocka_unit_test(test_check_unknown_is_bounded),
        cmocka_unit_test(test_check_unknown_without_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
