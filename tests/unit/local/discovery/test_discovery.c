/* Discovery in both forms, compared entry by entry with what a real server told. */
#include "support/api_script.h"

#include "base/limits.h"
#include "base/os/file.h"
#include "local/kinds/crds.h"
#include "local/resources/version_rank.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct td_json *read_json(struct bed *bed, const char *name)
{
    struct td_error err = TD_ERROR_INIT;
    td_str path = td_arena_format(&bed->arena, TEST_DATA_DIR "/discovery/%s", name);
    td_str text;
    struct td_json *tree = NULL;
    if (td_file_read(path.ptr, &bed->arena, TD_JSON_BYTES_MAX, &text, &err) != TD_OK ||
        td_json_parse(&bed->arena, text, NULL, &tree, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    return tree;
}

static struct td_json *ask(struct bed *bed, const char *target, const char *accept)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    bed_ask(bed, &(struct bed_request){.method = "GET", .target = target, .accept = accept},
            &answer);
    assert_int_equal(answer.status, 200);
    return bed_tree(bed, &answer);
}

static void expect_same(struct bed *bed, const char *what, const struct td_json *found,
                        const struct td_json *wanted)
{
    if (found && td_json_equal(found, wanted)) {
        return;
    }
    td_auto_buf text;
    td_buf_init(&text, BED_BODY_BYTES_MAX);
    td_json_write(wanted, &(struct td_json_format){.indent = 0}, &text);
    (void)td_buf_append(&text, TD_STR("\nbut found "));
    if (found) {
        td_json_write(found, &(struct td_json_format){.indent = 0}, &text);
    }
    fail_msg("%s: wanted %s", what, td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr);
}

/* Each group's list has the same resources in the same order, with the same words. */
static void test_lists_are_upstreams(void **state)
{
    struct bed *bed = *state;
    const struct td_json *lists = read_json(bed, "lists.json");
    assert_true(lists->count > 15);
    for (const struct td_json *list = td_json_first_child(lists); list; list = list->next) {
        bool is_core = td_str_find(list->key, '/', 0) == list->key.len;
        td_str target = td_arena_format(&bed->arena, "%s/%.*s", is_core ? "/api" : "/apis",
                                        TD_STR_ARG(list->key));
        const struct td_json *answer = ask(bed, target.ptr, "application/json");
        expect_same(bed, target.ptr, td_json_get(answer, TD_STR("resources")), list);
    }
}

static const struct td_json *find_text(const struct td_json *list, td_str key, td_str text)
{
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        if (td_str_equal(td_json_get_str(item, key, TD_STR_EMPTY), text)) {
            return item;
        }
    }
    return NULL;
}

static const struct td_json *find_group(const struct td_json *items, td_str group)
{
    for (const struct td_json *item = td_json_first_child(items); item; item = item->next) {
        const struct td_json *metadata = td_json_get(item, TD_STR("metadata"));
        if (td_str_equal(td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY), group)) {
            return item;
        }
    }
    return NULL;
}

/* The aggregated form has the same entries. */
static void test_aggregated_is_upstreams(void **state)
{
    struct bed *bed = *state;
    static const char *const accept =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const struct td_json *entries = read_json(bed, "aggregated.json");
    const struct td_json *core = td_json_get(ask(bed, "/api", accept), TD_STR("items"));
    const struct td_json *others = td_json_get(ask(bed, "/apis", accept), TD_STR("items"));
    assert_true(entries->count > 40);
    for (const struct td_json *entry = td_json_first_child(entries); entry; entry = entry->next) {
        size_t first = td_str_find(entry->key, '/', 0);
        size_t second = td_str_find(entry->key, '/', first + 1);
        td_str group = td_str_slice(entry->key, 0, first);
        td_str version = td_str_slice(entry->key, first + 1, second);
        td_str resource = td_str_slice(entry->key, second + 1, entry->key.len);
        const struct td_json *item = find_group(group.len == 0 ? core : others, group);
        const struct td_json *at =
            find_text(td_json_get(item, TD_STR("versions")), TD_STR("version"), version);
        const struct td_json *found =
            find_text(td_json_get(at, TD_STR("resources")), TD_STR("resource"), resource);
        expect_same(bed, td_arena_copy_str(&bed->arena, entry->key).ptr, found, entry);
    }
}

/* Versions in the order that Kubernetes prefers them. */
static void test_version_order(void **state)
{
    (void)state;
    static const char *const order[] = {
        "v10",   "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1",
        "foo10", "v",  "v0", "v01",      "v1alpha0", "v1beta",  "v1gamma1",  "v1x"};
    for (size_t i = 0; i < COUNT(order); i++) {
        for (size_t k = 0; k < COUNT(order); k++) {
            int found = td_version_compare(td_str_from(order[i]), td_str_from(order[k]));
            assert_int_equal((found > 0) - (found < 0), (i > k) - (i < k));
        }
    }
}

/* What describes the server is read, not written. */
static void test_descriptions(void **state)
{
    static const struct step steps[] = {
        {"GET", "/version", NULL, NULL, 200, "minor", "36"},
        {"GET", "/version/", NULL, NULL, 200, "major", "1"},
        {"POST", "/version", NULL, "{}", 405, "reason", "MethodNotAllowed"},
        {"DELETE", "/apis", NULL, NULL, 405, "reason", "MethodNotAllowed"},
        {"PUT", "/openapi/v3", NULL, "{}", 405, "reason", "MethodNotAllowed"},
        {"GET", "/api", NULL, NULL, 200, "versions", "[\"v1\"]"},
        {"GET", "/apis/nope.dev", NULL, NULL, 404, NULL, NULL},
        {"GET", "/apis/apps/v9", NULL, NULL, 404, NULL, NULL},
        {"GET", "/openapi/v3/apis/apps/v1", NULL, NULL, 200, "openapi", "3.0.0"},
        {"GET", "/openapi/v2", NULL, NULL, 200, "swagger", "2.0"},
        {"GET", "/openapi/v3/apis/apps/v9", NULL, NULL, 404, NULL, NULL},
        {"GET", "/healthz", NULL, NULL, 200, NULL, NULL},
        {"GET", "/healthz/nope", NULL, NULL, 404, NULL, NULL},
    };
    RUN(*state, steps);
}

#define VERSION(name, served, storage)                                                             \
    "{\"name\":\"" name "\",\"served\":" served ",\"storage\":" storage                            \
    ",\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":"    \
    "\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}},\"subresources\":{\"status\":{}" \
    "}}"
#define DEFINITION(plural, kind, versions)                                                         \
    "{\"metadata\":{\"name\":\"" plural                                                            \
    ".example.dev\"},\"spec\":{\"group\":\"example.dev\",\"scope\":\"Namespaced\",\"names\":{"     \
    "\"plural\":\"" plural "\",\"kind\":\"" kind "\"},\"versions\":[" versions "]}}"
#define DEFINITIONS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

/* Custom groups: versions of all kinds by rank, and what is not served is not there, though objects
 * are stored in it. */
static void test_custom_groups(void **state)
{
    struct bed *bed = *state;
    struct td_crds *crds;
    assert_int_equal(td_crds_new(bed->api, NULL, &crds, NULL), TD_OK);
    static const struct step make[] = {
        {"POST", DEFINITIONS, NULL,
         DEFINITION("olds", "Old",
                    VERSION("v1alpha1", "true", "false") "," VERSION("v1", "false", "true")),
         201, NULL, NULL},
        {"POST", DEFINITIONS, NULL,
         DEFINITION("news", "New",
                    VERSION("v1beta1", "true", "false") "," VERSION("v2", "true", "true")),
         201, NULL, NULL},
        {"POST", DEFINITIONS, NULL, DEFINITION("nones", "None", VERSION("v1", "false", "true")),
         201, NULL, NULL},
    };
    RUN(bed, make);
    bed_run(bed, TD_SECOND);
    static const struct step steps[] = {
        {"GET", "/apis/example.dev", NULL, NULL, 200, "versions",
         "[{\"groupVersion\":\"example.dev/v2\",\"version\":\"v2\"},{\"groupVersion\":"
         "\"example.dev/v1beta1\",\"version\":\"v1beta1\"},{\"groupVersion\":"
         "\"example.dev/v1alpha1\",\"version\":\"v1alpha1\"}]"},
        {"GET", "/apis/example.dev", NULL, NULL, 200, "preferredVersion.version", "v2"},
        {"GET", "/apis/example.dev/v1/namespaces/default/olds", NULL, NULL, 404, NULL, NULL},
        {"GET", "/apis/example.dev/v1/namespaces/default/nones", NULL, NULL, 404, NULL, NULL},
        {"POST", "/apis/example.dev/v1alpha1/namespaces/default/olds", NULL,
         "{\"apiVersion\":\"example.dev/v1alpha1\",\"kind\":\"Old\",\"metadata\":{\"name\":\"o\"},"
         "\"spec\":{\"x\":1}}",
         201, "apiVersion", "example.dev/v1alpha1"},
        {"GET", "/apis/example.dev/v1alpha1/namespaces/default/olds/o", NULL, NULL, 200, "spec.x",
         "1"},
        {"GET", DEFINITIONS "/olds.example.dev", NULL, NULL, 200, "status.storedVersions",
         "[\"v1\"]"},
    };
    RUN(bed, steps);
    td_crds_free(crds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lists_are_upstreams, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_aggregated_is_upstreams, script_setup,
                                        script_teardown),
        cmocka_unit_test(test_version_order),
        cmocka_unit_test_setup_teardown(test_descriptions, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_custom_groups, script_setup, script_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
