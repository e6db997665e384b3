/* DELETE through the handler: answers, preconditions, grace, finalizers, propagation, collections;
 * and writes by the cluster's own controllers (edit.h). */
#include "support/api_script.h"

#include "local/store/edit.h"

#define MAP(name, rest) "{\"metadata\":{\"name\":\"" name "\"" rest "}}"
#define POD(name, rest)                                                                            \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"   \
    "\"i\"}]" rest "}}"

static void test_delete_answers_by_kind(void **state)
{
    static const struct step steps[] = {
        {"POST", MAPS, NULL, MAP("a", ""), 201, NULL, NULL},
        {"DELETE", MAPS "/a", NULL, NULL, 200, "status", "Success"},
        {"DELETE", MAPS "/a", NULL, NULL, 404, "message", "configmaps \"a\" not found"},
        {"POST", "/api/v1/namespaces/default/serviceaccounts", NULL, MAP("s", ""), 201, NULL, NULL},
        {"DELETE", "/api/v1/namespaces/default/serviceaccounts/s", NULL, NULL, 200, "kind",
         "ServiceAccount"},
        {"POST", PODS, NULL, POD("p", ""), 201, NULL, NULL},
        {"DELETE", PODS "/p", NULL, NULL, 200, "metadata.deletionGracePeriodSeconds", "0"},
        {"GET", PODS "/p", NULL, NULL, 404, NULL, NULL},
    };
    RUN(*state, steps);
}

/* Kinds that are older than the collector keep what they own, unless the request says more. */
static void test_delete_keeps_what_old_kinds_own(void **state)
{
    static const char *const jobs = "/apis/batch/v1/namespaces/default/jobs";
    static const char *const work = "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"template\":{"
                                    "\"spec\":{\"restartPolicy\":\"Never\","
                                    "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}";
    const struct step steps[] = {
        {"POST", jobs, NULL, work, 201, NULL, NULL},
        {"DELETE", "/apis/batch/v1/namespaces/default/jobs/w", NULL, NULL, 200,
         "metadata.finalizers", "[\"orphan\"]"},
        {"DELETE", "/apis/batch/v1/namespaces/default/jobs/w", NULL,
         "{\"propagationPolicy\":\"Background\"}", 200, NULL, NULL},
        {"GET", "/apis/batch/v1/namespaces/default/jobs/w", NULL, NULL, 404, NULL, NULL},
    };
    RUN(*state, steps);
}

static void test_delete_checks_its_options(void **state)
{
    static const struct step steps[] = {
        {"POST", MAPS, NULL, MAP("a", ""), 201, NULL, NULL},
        {"DELETE", MAPS "/a", NULL, "{\"preconditions\":{\"uid\":\"x\"}}", 409, "reason",
         "Conflict"},
        {"DELETE", MAPS "/a", NULL, "{\"preconditions\":{\"resourceVersion\":\"1\"}}", 409,
         "reason", "Conflict"},
        {"DELETE", MAPS "/a", NULL, "{\"kind\":\"Foo\"}", 400, "message",
         "no kind \"Foo\" is registered for version \"meta.k8s.io/v1\""},
        {"DELETE", MAPS "/a", NULL, "{", 400, "reason", "BadRequest"},
        {"DELETE", MAPS "/a", NULL, "[]", 400, "reason", "BadRequest"},
        {"DELETE", MAPS "/a", "application/foo", "{}", 415, "reason", "UnsupportedMediaType"},
        {"DELETE", MAPS "/a", NULL, "{\"gracePeriodSeconds\":\"x\"}", 400, "reason", "BadRequest"},
        {"DELETE", MAPS "/a", NULL, "{\"propagationPolicy\":\"X\"}", 422, "message",
         "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"X\": "
         "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""},
        {"DELETE", MAPS "/a", NULL, "{\"propagationPolicy\":\"Orphan\",\"orphanDependents\":true}",
         422, "message",
         "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": "
         "orphanDependents and deletionPropagation cannot be both set"},
        {"DELETE", MAPS "/a", NULL, "{\"dryRun\":[\"foo\"]}", 422, "message",
         "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"foo\"]: "
         "supported values: \"All\""},
        {"DELETE", MAPS "/a", NULL, "{\"dryRun\":[\"All\"]}", 200, "status", "Success"},
        {"GET", MAPS "/a", NULL, NULL, 200, NULL, NULL},
        {"DELETE", MAPS "/a", NULL, "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}", 200,
         "status", "Success"},
    };
    RUN(*state, steps);
}

/* A finalizer keeps an object that is being deleted; taking the last one away removes it. */
static void test_delete_waits_for_finalizers(void **state)
{
    struct bed *bed = *state;
    struct script_watch watch;
    script_watch(bed, "configmaps", &watch);
    static const struct step steps[] = {
        {"POST", MAPS, NULL, MAP("a", ",\"finalizers\":[\"z\"]"), 422, "message",
         "ConfigMap \"a\" is invalid: metadata.finalizers[0]: Invalid value: \"z\": name is "
         "neither a "
         "standard finalizer name nor is it fully qualified"},
        {"POST", MAPS, NULL, MAP("a", ",\"finalizers\":[\"x.y/z\"]"), 201, NULL, NULL},
        {"DELETE", MAPS "/a", NULL, NULL, 200, "metadata.deletionTimestamp",
         "2023-11-14T22:13:20Z"},
        {"DELETE", MAPS "/a", NULL, NULL, 200, "metadata.deletionGracePeriodSeconds", "0"},
        {"POST", MAPS, NULL, MAP("a", ""), 409, "message",
         "object is being deleted: configmaps \"a\" already exists"},
        {"PATCH", MAPS "/a", MERGE, "{\"metadata\":{\"finalizers\":[\"x.y/z\",\"x.y/w\"]}}", 422,
         "reason", "Invalid"},
        {"PATCH", MAPS "/a", MERGE, "{\"metadata\":{\"finalizers\":null}}", 200,
         "metadata.finalizers", NULL},
        {"GET", MAPS "/a", NULL, NULL, 404, NULL, NULL},
    };
    RUN(bed, steps);
    assert_string_equal(script_changes(bed, &watch), "ADDED a, MODIFIED a, DELETED a");
    td_watch_close(&watch.cursor);
}

/* Foreground and Orphan are finalizers for the garbage collector. */
static void test_delete_propagates_by_finalizers(void **state)
{
    static const struct step steps[] = {
        {"POST", MAPS, NULL, MAP("a", ""), 201, NULL, NULL},
        {"DELETE", MAPS "/a?propagationPolicy=Foreground", NULL, NULL, 200, "metadata.finalizers",
         "[\"foregroundDeletion\"]"},
        {"DELETE", MAPS "/a?propagationPolicy=Orphan", NULL, NULL, 200, "metadata.finalizers",
         "[\"orphan\"]"},
        {"DELETE", MAPS "/a", NULL, NULL, 200, "metadata.finalizers", "[\"orphan\"]"},
        {"DELETE", MAPS "/a?propagationPolicy=Background", NULL, NULL, 200, "status", "Success"},
        {"POST", MAPS, NULL, MAP("b", ",\"finalizers\":[\"x.y/z\"]"), 201, NULL, NULL},
        {"DELETE", MAPS "/b", NULL, "{\"orphanDependents\":false}", 202, "metadata.finalizers",
         "[\"x.y/z\"]"},
    };
    RUN(*state, steps);
}

/* A pod on a node is given time, which later requests can only shorten. */
static void test_delete_gives_pods_time(void **state)
{
    static const struct step steps[] = {
        {"POST", PODS, NULL, POD("p", ",\"nodeName\":\"n\""), 201, "metadata.generation", "1"},
        {"DELETE", PODS "/p", NULL, NULL, 200, "metadata.deletionTimestamp",
         "2023-11-14T22:13:50Z"},
        {"DELETE", PODS "/p?gracePeriodSeconds=5", NULL, NULL, 200, "metadata.deletionTimestamp",
         "2023-11-14T22:13:25Z"},
        {"DELETE", PODS "/p?gracePeriodSeconds=50", NULL, NULL, 200,
         "metadata.deletionGracePeriodSeconds", "5"},
        {"DELETE", PODS "/p", NULL, NULL, 200, "metadata.generation", "2"},
        {"DELETE", PODS "/p?gracePeriodSeconds=0", NULL, NULL, 200,
         "metadata.deletionGracePeriodSeconds", "0"},
        {"GET", PODS "/p", NULL, NULL, 404, NULL, NULL},
        {"POST", PODS, NULL, POD("q", ",\"nodeName\":\"n\""), 201, NULL, NULL},
        {"DELETE", PODS "/q", NULL, "{\"gracePeriodSeconds\":-7}", 200,
         "metadata.deletionGracePeriodSeconds", "1"},
        {"POST", PODS, NULL, POD("r", ",\"nodeName\":\"n\""), 201, NULL, NULL},
        {"DELETE", PODS "/r", NULL, "{\"gracePeriodSeconds\":9223372036854775807}", 200,
         "metadata.deletionGracePeriodSeconds", "4294967296"},
        {"DELETE", PODS "/r?gracePeriodSeconds=0", NULL, NULL, 200, NULL, NULL},
    };
    RUN(*state, steps);
}

/* A namespace is marked first, and goes when its own finalizers are gone. */
static void test_delete_terminates_namespaces(void **state)
{
    static const struct step steps[] = {
        {"POST", "/api/v1/namespaces", NULL,
         "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"finalizers\":[\"kubernetes\"]}}", 201, NULL,
         NULL},
        {"DELETE", "/api/v1/namespaces/n", NULL, NULL, 200, "status.phase", "Terminating"},
        {"DELETE", "/api/v1/namespaces/n", NULL, NULL, 200, "status.phase", "Terminating"},
        {"POST", "/api/v1/namespaces/n/configmaps", NULL, MAP("late", ""), 403, "details.causes",
         "[{\"reason\":\"NamespaceTerminating\",\"message\":\"namespace n is being terminated\","
         "\"field\":\"metadata.namespace\"}]"},
        {"PUT", "/api/v1/namespaces/n/finalize", NULL, "{\"metadata\":{\"name\":\"n\"}}", 200,
         "spec", "{}"},
        {"GET", "/api/v1/namespaces/n", NULL, NULL, 404, NULL, NULL},
    };
    RUN(*state, steps);
}

static void test_delete_collection_takes_what_it_selects(void **state)
{
    struct bed *bed = *state;
    static const struct step steps[] = {
        {"POST", MAPS, NULL, MAP("a", ",\"labels\":{\"q\":\"r\"}"), 201, NULL, NULL},
        {"POST", MAPS, NULL, MAP("b", ",\"labels\":{\"q\":\"r\"},\"finalizers\":[\"x.y/z\"]"), 201,
         NULL, NULL},
        {"POST", MAPS, NULL, MAP("c", ""), 201, NULL, NULL},
        {"DELETE", MAPS "?labelSelector=q%3Ds", NULL, NULL, 200, "items", "[]"},
        {"DELETE", MAPS "?labelSelector=q%3D%3D%3D", NULL, NULL, 400, "reason", "BadRequest"},
        {"DELETE", MAPS "?labelSelector=q%3Dr", NULL, NULL, 200, "kind", "ConfigMapList"},
        {"GET", MAPS "/a", NULL, NULL, 404, NULL, NULL},
        {"GET", MAPS "/b", NULL, NULL, 200, "metadata.deletionGracePeriodSeconds", "0"},
        {"GET", MAPS "/c", NULL, NULL, 200, NULL, NULL},
        {"DELETE", MAPS "?fieldSelector=metadata.name%3Dc&dryRun=All", NULL, NULL, 200, NULL, NULL},
        {"GET", MAPS "/c", NULL, NULL, 200, NULL, NULL},
        {"DELETE", MAPS "?fieldSelector=metadata.name%3Dc", NULL, NULL, 200, NULL, NULL},
        {"GET", MAPS "/c", NULL, NULL, 404, NULL, NULL},
    };
    RUN(bed, steps);
}

/* ---- edit.h ---- */

static const struct td_resource *edit_row(struct bed *bed, const char *version, const char *kind)
{
    struct td_resource_at at =
        td_resources_find_kind(td_api_resources(bed->api), td_str_from(version), td_str_from(kind));
    assert_non_null(at.resource);
    return at.resource;
}

static void test_edit_follows_the_rules_of_writes(void **state)
{
    struct bed *bed = *state;
    const struct td_resource *row = edit_row(bed, "v1", "ConfigMap");
    td_str ns = TD_STR("default");
    td_str name = TD_STR("a");
    struct script_watch watch;
    script_watch(bed, "configmaps", &watch);
    struct td_json *object = NULL;
    assert_int_equal(td_edit_get(bed->api, row, ns, name, &bed->arena, &object, NULL),
                     TD_NOT_FOUND);
    td_str text = TD_STR("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                         "\"a\",\"namespace\":\"default\",\"finalizers\":[\"x.y/z\"]}}");
    assert_int_equal(td_json_parse(&bed->arena, text, NULL, &object, NULL), TD_OK);
    assert_int_equal(td_edit_put(bed->api, row, &bed->arena, object, NULL), TD_OK);
    struct td_json *stale = td_json_copy(&bed->arena, object, true);
    assert_int_equal(td_edit_put(bed->api, row, &bed->arena, object, NULL), TD_OK);
    td_json_set(&bed->arena, object, TD_STR("data"), td_json_new_object(&bed->arena));
    assert_int_equal(td_edit_put(bed->api, row, &bed->arena, object, NULL), TD_OK);
    assert_int_equal(td_edit_put(bed->api, row, &bed->arena, stale, NULL), TD_CONFLICT);
    assert_int_equal(
        td_edit_delete(bed->api, row, ns, name, TD_STR("other"), TD_STR_EMPTY, -1, NULL),
        TD_CONFLICT);
    assert_int_equal(
        td_edit_delete(bed->api, row, ns, name, TD_STR_EMPTY, TD_STR("Background"), -1, NULL),
        TD_OK);
    assert_int_equal(td_edit_get(bed->api, row, ns, name, &bed->arena, &object, NULL), TD_OK);
    (void)td_json_remove(td_json_get(object, TD_STR("metadata")), TD_STR("finalizers"));
    assert_int_equal(td_edit_put(bed->api, row, &bed->arena, object, NULL), TD_OK);
    assert_string_equal(script_changes(bed, &watch), "ADDED a, MODIFIED a, MODIFIED a, DELETED a");
    td_watch_close(&watch.cursor);
}

/* The same occasion again is counted, not told twice. */
static void test_edit_counts_repeated_events(void **state)
{
    struct bed *bed = *state;
    struct script_watch watch;
    script_watch(bed, "events", &watch);
    struct td_json *about = NULL;
    const struct td_resource *row = edit_row(bed, "v1", "ServiceAccount");
    assert_int_equal(
        td_edit_get(bed->api, row, TD_STR("default"), TD_STR("default"), &bed->arena, &about, NULL),
        TD_OK);
    for (int i = 0; i < 3; i++) {
        td_edit_event(bed->api, about, TD_STR("Normal"), TD_STR("Seen"), TD_STR("tester"),
                      i < 2 ? TD_STR("once") : TD_STR("twice"));
    }
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(bed_call(bed, "GET", "/api/v1/namespaces/default/events", NULL, &answer), 200);
    int64_t total = 0;
    const struct td_json *items = td_json_get(bed_tree(bed, &answer), TD_STR("items"));
    for (const struct td_json *item = td_json_first_child(items); item; item = item->next) {
        total += td_json_get_int64(item, TD_STR("count"), 0);
    }
    assert_int_equal(items->count, 2);
    assert_int_equal(total, 3);
    assert_int_equal(strncmp(script_changes(bed, &watch), "ADDED default.", 14), 0);
    td_watch_close(&watch.cursor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_delete_answers_by_kind, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_delete_keeps_what_old_kinds_own, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_delete_checks_its_options, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_delete_waits_for_finalizers, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_delete_propagates_by_finalizers, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_delete_gives_pods_time, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_delete_terminates_namespaces, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_delete_collection_takes_what_it_selects, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_edit_follows_the_rules_of_writes, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_edit_counts_repeated_events, script_setup,
                                        script_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
