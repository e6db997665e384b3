/* CRDs from schema tables: shapes of every kind of value, attached notes and rules, our HPA. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/crd.h"
#include "api/hpa/hpa.h"
#include "api/hvpa/hvpa.h"
#include "api/vpa/vpa.h"
#include "base/error.h"

static const struct td_schema_type text_type = {.kind = TD_SCHEMA_STRING};
static const struct td_schema_type number_type = {.kind = TD_SCHEMA_INT32};
static const struct td_schema_type any_type = {.kind = TD_SCHEMA_ANY};

static const struct td_schema_field port_fields[] = {
    {.name = TD_STR_INIT("port"), .type = &number_type},
    {.name = TD_STR_INIT("protocol"), .type = &text_type},
};
static const struct td_schema_type port_type = {
    .kind = TD_SCHEMA_OBJECT, .fields = port_fields, .field_count = 2};
static const struct td_schema_key port_keys[] = {
    {.name = TD_STR_INIT("port")},
    {.name = TD_STR_INIT("protocol"), .fallback = TD_STR_INIT("\"TCP\"")},
};

static void assert_schema(const struct td_schema_type *type, const char *expected)
{
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 24);
    struct td_json *wanted = NULL;
    assert_int_equal(td_json_parse(&arena, td_str_from(expected), NULL, &wanted, NULL), TD_OK);
    struct td_json *got = td_crd_schema(&arena, type);
    if (!td_json_equal(got, wanted)) {
        td_auto_buf text;
        td_buf_init(&text, 1 << 20);
        td_json_write(got, &(struct td_json_format){.indent = 0}, &text);
        fail_msg("got %.*s, expected %s", TD_STR_ARG(td_buf_str(&text)), expected);
    }
}

/* Each kind of value has its structural form. */
static void test_schema_of_each_kind(void **state)
{
    (void)state;
    assert_schema(&text_type, "{\"type\":\"string\"}");
    assert_schema(&number_type, "{\"type\":\"integer\",\"format\":\"int32\"}");
    assert_schema(&any_type, "{\"x-kubernetes-preserve-unknown-fields\":true}");
    assert_schema(&(struct td_schema_type){.kind = TD_SCHEMA_TIME},
                  "{\"type\":\"string\",\"format\":\"date-time\"}");
    assert_schema(&(struct td_schema_type){.kind = TD_SCHEMA_INT_OR_STRING},
                  "{\"x-kubernetes-int-or-string\":true,"
                  "\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}");
    assert_schema(&(struct td_schema_type){.kind = TD_SCHEMA_MAP,
                                           .topology = TD_SCHEMA_ATOMIC,
                                           .element = &text_type},
                  "{\"type\":\"object\",\"x-kubernetes-map-type\":\"atomic\","
                  "\"additionalProperties\":{\"type\":\"string\"}}");
    assert_schema(&(struct td_schema_type){.kind = TD_SCHEMA_LIST,
                                           .topology = TD_SCHEMA_SET,
                                           .element = &text_type},
                  "{\"type\":\"array\",\"items\":{\"type\":\"string\"},"
                  "\"x-kubernetes-list-type\":\"set\"}");
    assert_schema(&(struct td_schema_type){.kind = TD_SCHEMA_OBJECT, .element = &any_type},
                  "{\"type\":\"object\","
                  "\"x-kubernetes-preserve-unknown-fields\":true}");
}

/* Keys of a keyed list are demanded, or filled in where they have a default. */
static void test_schema_of_a_keyed_list(void **state)
{
    (void)state;
    assert_schema(&(struct td_schema_type){.kind = TD_SCHEMA_LIST,
                                           .topology = TD_SCHEMA_KEYED,
                                           .element = &port_type,
                                           .list_keys = port_keys,
                                           .list_key_count = 2},
                  "{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\","
                  "\"x-kubernetes-list-map-keys\":[\"port\",\"protocol\"],"
                  "\"items\":{\"type\":\"object\",\"required\":[\"port\"],\"properties\":{"
                  "\"port\":{\"type\":\"integer\",\"format\":\"int32\"},"
                  "\"protocol\":{\"type\":\"string\",\"default\":\"TCP\"}}}}");
}

struct text_row {
    const char *path;
    const char *expected;
};

/* Of each metric source two: its field is missing, or forbidden, as of the built-in kind. */
static void check_source_rules(const struct td_json *rules)
{
    size_t pods = 0;
    assert_int_equal(td_json_item_count(rules), 2 * TD_HPA_METRIC_UNKNOWN);
    for (const struct td_json *rule = td_json_first_item(rules); rule; rule = rule->next) {
        bool is_required = td_str_equal(td_json_text(rule, "reason"), TD_STR("FieldValueRequired"));
        td_str message = td_json_text(rule, "message");
        assert_true(td_str_equal(
            message, is_required ? TD_STR("must populate information for the given metric source")
                                 : TD_STR("must populate the given metric source only")));
        if (td_str_equal(td_json_text(rule, "fieldPath"), TD_STR(".pods"))) {
            td_str text = td_json_text(rule, "rule");
            pods++;
            assert_true(td_str_equal(
                text,
                is_required
                    ? TD_STR("self.type != 'Pods' || has(self.pods)")
                    : TD_STR("self.type == 'Pods' || !has(self.pods) || !(has(self.object) || "
                             "has(self.external) || has(self.resource) || "
                             "has(self.containerResource))")));
        }
    }
    assert_int_equal(pods, 2);
}

/* A server takes no two rules of one text at one place. */
static void check_unique_rules(const struct td_json *schema)
{
    const struct td_json *rules = td_json_get(schema, TD_STR("x-kubernetes-validations"));
    for (const struct td_json *a = td_json_first_item(rules); a; a = a->next) {
        for (const struct td_json *b = a->next; b; b = b->next) {
            assert_false(td_str_equal(td_json_text(a, "rule"), td_json_text(b, "rule")));
        }
    }
    const struct td_json *properties = td_json_get(schema, TD_STR("properties"));
    for (const struct td_json *member = td_json_first_member(properties); member;
         member = member->next) {
        check_unique_rules(member);
    }
    const struct td_json *items = td_json_get(schema, TD_STR("items"));
    if (items) {
        check_unique_rules(items);
    }
}

/* Objects that are missing are demanded by rules about their members. */
static void check_part_rules(struct td_json *schema)
{
    static const struct text_row rows[] = {
        {"", ".spec.maxReplicas .spec.scaleTargetRef.kind .spec.scaleTargetRef.name"},
        {"spec.metrics[].pods", ".metric.name .target.type"},
        {"spec.metrics[].object",
         ".describedObject.kind .describedObject.name .metric.name .target.type"},
        {"spec.metrics[].resource", ".target.type"},
    };
    td_auto_arena arena = td_arena_capped(1 << 20);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct td_json *rules =
            td_json_get(td_crd_schema_at(schema, rows[i].path), TD_STR("x-kubernetes-validations"));
        td_str fields = TD_STR_EMPTY;
        for (const struct td_json *rule = td_json_first_item(rules); rule; rule = rule->next) {
            td_str field = td_json_text(rule, "fieldPath");
            fields = td_arena_format(&arena, "%.*s%s%.*s", TD_STR_ARG(fields),
                                     fields.len > 0 ? " " : "", TD_STR_ARG(field));
        }
        assert_string_equal(fields.ptr, rows[i].expected);
    }
    assert_null(td_json_get(td_crd_schema_at(schema, ""), TD_STR("required")));
}

static void test_hpa_crd_has_what_servers_ask_for(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 24);
    struct td_json *crd = td_hpa_crd(&arena);
    static const struct text_row rows[] = {
        {"apiVersion", "apiextensions.k8s.io/v1"},
        {"metadata.name", "horizontalpodautoscalers.autoscaling.tandem.dev"},
        {"spec.scope", "Namespaced"},
        {"spec.names.kind", "HorizontalPodAutoscaler"},
        {"spec.names.listKind", "HorizontalPodAutoscalerList"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct td_json *node = td_json_get_path(crd, rows[i].path);
        assert_true(td_json_is(node, TD_JSON_TYPE_STRING));
        assert_true(td_str_equal(node->text, td_str_from(rows[i].expected)));
    }
    assert_true(td_str_equal(
        td_json_first_child(td_json_get_path(crd, "spec.names.shortNames"))->text, TD_STR("thpa")));
    struct td_json *version = td_json_first_child(td_json_get_path(crd, "spec.versions"));
    assert_non_null(td_json_get_path(version, "subresources.status"));
    assert_null(td_json_get_path(version, "subresources.scale"));
    assert_int_equal(td_json_get(version, TD_STR("additionalPrinterColumns"))->count, 5);
    struct td_json *schema = td_json_get_path(version, "schema.openAPIV3Schema");
    assert_int_equal(td_crd_schema_at(schema, "metadata")->count, 1);
    assert_non_null(
        td_json_get(td_crd_schema_at(schema, "spec.selectionStrategy"), TD_STR("enum")));
    check_source_rules(td_json_get(td_crd_schema_at(schema, "spec.metrics[]"),
                                   TD_STR("x-kubernetes-validations")));
    check_unique_rules(schema);
    check_part_rules(schema);
    assert_non_null(td_crd_schema_at(
        schema, "spec.metrics[].pods.metric.selector.matchExpressions[].values[]"));
    assert_non_null(td_crd_schema_at(schema, "spec.metrics[].pods.metric.selector.matchLabels{}"));
}

/* What `kubectl explain` says: everything of our own kinds, of the VPA what upstream does not have.
 */
static void test_our_fields_are_described(void **state)
{
    (void)state;
    static const struct {
        struct td_json *(*make)(struct td_arena *arena);
        const char *path;
        bool is_described;
    } rows[] = {
        {td_hvpa_crd, "", true},
        {td_hvpa_crd, "spec.onDelete", true},
        {td_hvpa_crd, "spec.ratioBasedScalingSpec", true},
        {td_hvpa_crd, "status.reason", true},
        {td_hpa_crd, "spec.selectionStrategy", true},
        {td_hpa_crd, "spec.behavior.scaleUp", true},
        {td_vpa_crd, "spec.selector", true},
        {td_vpa_crd, "spec.resourcePolicy.podPolicies.maxAllowed", true},
        {td_vpa_crd, "spec.targetRef", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 24);
        const struct td_json *version =
            td_json_at(td_json_get_path(rows[i].make(&arena), "spec.versions"), 0);
        struct td_json *schema =
            td_json_get(td_json_member(version, "schema"), TD_STR("openAPIV3Schema"));
        const struct td_json *place = td_crd_schema_at(schema, rows[i].path);
        assert_int_equal(td_json_member(place, "description") != NULL, rows[i].is_described);
    }
}

/* What `kubectl get` prints, and with -o wide. */
static void test_columns_of_our_kinds(void **state)
{
    (void)state;
    static const struct {
        struct td_json *(*make)(struct td_arena *arena);
        const char *columns;
    } rows[] = {
        {td_vpa_crd, "Target Mode CPU Mem Provided Age (Selector) (PodCPU) (PodMem) (MinReplicas) "
                     "(OOMSeconds) "},
        {td_hvpa_crd, "Mode Ready Replicas Desired Axis Reason Age "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 24);
        td_auto_buf text;
        td_buf_init(&text, 1 << 12);
        const struct td_json *version =
            td_json_at(td_json_get_path(rows[i].make(&arena), "spec.versions"), 0);
        const struct td_json *column =
            td_json_first_item(td_json_member(version, "additionalPrinterColumns"));
        for (; column; column = column->next) {
            bool is_wide = td_json_get_int64(column, TD_STR("priority"), 0) > 0;
            (void)td_buf_append_format(&text, is_wide ? "(%.*s) " : "%.*s ",
                                       TD_STR_ARG(td_json_text(column, "name")));
        }
        assert_true(td_str_equal(td_buf_str(&text), td_str_from(rows[i].columns)));
    }
}

/* Ours is the built-in v2 with one field more, and nothing else changed. */
static void test_hpa_schema_adds_one_field(void **state)
{
    (void)state;
    const struct td_schema_type *builtin =
        td_schema_find(TD_STR("autoscaling/v2"), TD_STR("HorizontalPodAutoscaler"));
    const struct td_schema_type *ours = td_hpa_schema();
    const struct td_schema_type *spec = td_schema_member(ours, TD_STR("spec"));
    const struct td_schema_type *builtin_spec = td_schema_member(builtin, TD_STR("spec"));
    assert_ptr_equal(ours, td_hpa_schema());
    assert_int_equal(ours->field_count, builtin->field_count);
    assert_int_equal(spec->field_count, builtin_spec->field_count + 1);
    assert_non_null(td_schema_field(spec, TD_STR("selectionStrategy")));
    assert_null(td_schema_field(builtin_spec, TD_STR("selectionStrategy")));
    assert_ptr_equal(td_schema_member(ours, TD_STR("status")),
                     td_schema_member(builtin, TD_STR("status")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema_of_each_kind),
        cmocka_unit_test(test_schema_of_a_keyed_list),
        cmocka_unit_test(test_hpa_crd_has_what_servers_ask_for),
        cmocka_unit_test(test_our_fields_are_described),
        cmocka_unit_test(test_columns_of_our_kinds),
        cmocka_unit_test(test_hpa_schema_adds_one_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
