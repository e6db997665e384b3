/* Namespaces are furnished, and leave with everything in them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "local/controllers/namespaces.h"
#include "local/kinds/crds.h"
#include "local/system.h"
#include "support/api_bed.h"

struct fixture {
    struct bed bed;
    struct td_crds *crds;
    struct td_namespaces *namespaces;
    struct bed_answer answer;
};

static int setup(void **state)
{
    struct fixture *f = td_alloc_zero(1, sizeof(*f));
    bed_init(&f->bed);
    assert_int_equal(td_crds_new(f->bed.api, NULL, &f->crds, NULL), TD_OK);
    f->namespaces = td_namespaces_new(f->bed.api, NULL, TD_STR("PEM"));
    assert_int_equal(td_system_install(f->bed.api, NULL), TD_OK);
    bed_answer_init(&f->answer);
    bed_run(&f->bed, TD_SECOND);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    bed_answer_done(&f->answer);
    td_namespaces_free(f->namespaces);
    td_crds_free(f->crds);
    bed_done(&f->bed);
    td_free(f);
    return 0;
}

static int call(struct fixture *f, const char *method, const char *target, const char *body)
{
    int status = bed_call(&f->bed, method, target, body, &f->answer);
    bed_run(&f->bed, 10 * TD_MILLISECOND);
    return status;
}

static void make_namespace(struct fixture *f)
{
    assert_int_equal(
        call(f, "POST", "/api/v1/namespaces",
             "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"team\"}}"),
        201);
}

/* Each namespace, those of the system too, has its account and the authority, also after a client
 * deleted or changed them. */
static void test_namespaces_are_furnished(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"team", "default", "kube-system", "kube-node-lease"};
    make_namespace(f);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char account[128];
        char map[128];
        (void)snprintf(account, sizeof(account), "/api/v1/namespaces/%s/serviceaccounts/default",
                       names[i]);
        (void)snprintf(map, sizeof(map), "/api/v1/namespaces/%s/configmaps/kube-root-ca.crt",
                       names[i]);
        assert_int_equal(call(f, "GET", account, NULL), 200);
        assert_int_equal(call(f, "GET", map, NULL), 200);
        assert_non_null(strstr(td_buf_str(&f->answer.body).ptr, "\"ca.crt\":\"PEM\""));
        assert_int_equal(call(f, "DELETE", account, NULL), 200);
        assert_int_equal(call(f, "DELETE", map, NULL), 200);
        assert_int_equal(call(f, "GET", account, NULL), 200);
        assert_int_equal(call(f, "GET", map, NULL), 200);
    }
    struct bed_request patch = {
        .method = "PATCH",
        .target = "/api/v1/namespaces/team/configmaps/kube-root-ca.crt",
        .content_type = "application/merge-patch+json",
        .body = TD_STR("{\"data\":{\"ca.crt\":\"other\",\"more\":\"x\"}}"),
    };
    bed_ask(&f->bed, &patch, &f->answer);
    bed_run(&f->bed, 10 * TD_MILLISECOND);
    assert_int_equal(call(f, "GET", patch.target, NULL), 200);
    assert_non_null(strstr(td_buf_str(&f->answer.body).ptr, "{\"ca.crt\":\"PEM\"}"));
}

static const char widgets[] =
    "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
    "\"metadata\":{\"name\":\"widgets.example.com\"},\"spec\":{\"group\":\"example.com\","
    "\"scope\":\"Namespaced\",\"names\":{\"plural\":\"widgets\",\"singular\":\"widget\","
    "\"kind\":\"Widget\",\"listKind\":\"WidgetList\"},\"versions\":[{\"name\":\"v1\","
    "\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\","
    "\"x-kubernetes-preserve-unknown-fields\":true}}}]}}";

/* Built-in and custom objects go with their namespace, more than one page of them. */
static void test_a_deleted_namespace_takes_its_content_along(void **state)
{
    struct fixture *f = *state;
    make_namespace(f);
    assert_int_equal(
        call(f, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets), 201);
    assert_int_equal(call(f, "POST", "/apis/example.com/v1/namespaces/team/widgets",
                          "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{"
                          "\"name\":\"w\"},\"spec\":{\"deletionTimestamp\":\"no\"}}"),
                     201);
    for (int i = 0; i < 600; i++) {
        char body[160];
        (void)snprintf(body, sizeof(body),
                       "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                       "\"m-%d\"}}",
                       i);
        assert_int_equal(
            bed_call(&f->bed, "POST", "/api/v1/namespaces/team/configmaps", body, &f->answer), 201);
    }
    assert_int_equal(call(f, "DELETE", "/api/v1/namespaces/team", NULL), 200);
    assert_string_equal(bed_text(&f->bed, &f->answer, "status.phase"), "Terminating");
    bed_run(&f->bed, TD_SECOND);
    assert_int_equal(call(f, "GET", "/api/v1/namespaces/team", NULL), 404);
    static const char *const lists[] = {"configmaps", "serviceaccounts", "widgets.example.com"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        assert_int_equal(
            td_collection_count(td_store_find(f->bed.store, td_str_from(lists[i])), TD_STR("team")),
            0);
    }
    make_namespace(f); /* and a new one of the same name is a namespace like any other */
    assert_int_equal(call(f, "GET", "/api/v1/namespaces/team/serviceaccounts/default", NULL), 200);
}

static const char *condition(struct fixture *f, const char *type, const char *member)
{
    const struct td_json *list =
        td_json_get_path(bed_tree(&f->bed, &f->answer), "status.conditions");
    for (const struct td_json *c = td_json_first_child(list); c; c = c->next) {
        if (td_str_equal(td_json_get_str(c, TD_STR("type"), TD_STR_EMPTY), td_str_from(type))) {
            td_str text = td_json_get_str(c, td_str_from(member), TD_STR_EMPTY);
            return td_arena_copy_str(&f->bed.arena, text).ptr;
        }
    }
    return "";
}

/* What has a finalizer is waited for, and the namespace says so. */
static void test_a_namespace_waits_for_finalizers(void **state)
{
    struct fixture *f = *state;
    make_namespace(f);
    assert_int_equal(call(f, "POST", "/api/v1/namespaces/team/configmaps",
                          "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                          "\"a\",\"finalizers\":[\"example.com/x\"]}}"),
                     201);
    assert_int_equal(call(f, "DELETE", "/api/v1/namespaces/team", NULL), 200);
    bed_run(&f->bed, 30 * TD_SECOND);
    assert_int_equal(call(f, "GET", "/api/v1/namespaces/team", NULL), 200);
    static const struct {
        const char *type;
        const char *status;
        const char *reason;
        const char *message;
    } rows[] = {
        {"NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered",
         "All resources successfully discovered"},
        {"NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions",
         "All legacy kube types successfully parsed"},
        {"NamespaceDeletionContentFailure", "False", "ContentDeleted",
         "All content successfully deleted, may be waiting on finalization"},
        {"NamespaceContentRemaining", "True", "SomeResourcesRemain",
         "Some resources are remaining: configmaps. has 1 resource instances"},
        {"NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain",
         "Some content in the namespace has finalizers remaining: example.com/x in 1 resource "
         "instances"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(condition(f, rows[i].type, "status"), rows[i].status);
        assert_string_equal(condition(f, rows[i].type, "reason"), rows[i].reason);
        assert_string_equal(condition(f, rows[i].type, "message"), rows[i].message);
    }
    const char *version = bed_text(&f->bed, &f->answer, "metadata.resourceVersion");
    bed_run(&f->bed, TD_MINUTE);
    assert_int_equal(call(f, "GET", "/api/v1/namespaces/team", NULL), 200);
    assert_string_equal(bed_text(&f->bed, &f->answer, "metadata.resourceVersion"), version);
    struct bed_request patch = {
        .method = "PATCH",
        .target = "/api/v1/namespaces/team/configmaps/a",
        .content_type = "application/merge-patch+json",
        .body = TD_STR("{\"metadata\":{\"finalizers\":null}}"),
    };
    bed_ask(&f->bed, &patch, &f->answer);
    bed_run(&f->bed, 10 * TD_MILLISECOND);
    assert_int_equal(call(f, "GET", "/api/v1/namespaces/team", NULL), 404);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_namespaces_are_furnished, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_deleted_namespace_takes_its_content_along, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_namespace_waits_for_finalizers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
