/*
 * A user grants only what that user has: roles are written with the rights that their writer has,
 * or with `escalate`; bindings to roles whose rights the writer has, or with `bind`.
 */
#include "support/auth_bed.h"

#define RBAC "/apis/rbac.authorization.k8s.io/v1"
#define NS RBAC "/namespaces/ns"
#define RULE(groups, resources, verbs)                                                             \
    "{\"apiGroups\":[" groups "],\"resources\":[" resources "],\"verbs\":[" verbs "]}"
#define ROLE(name, rules) "{\"metadata\":{\"name\":\"" name "\"},\"rules\":[" rules "]}"
#define REF(kind, name)                                                                            \
    "\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"" kind                     \
    "\",\"name\":\"" name "\"}"
#define SUBJECT(name)                                                                              \
    "\"subjects\":[{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"User\",\"name\":\"" name \
    "\"}]"
#define BINDING(name, kind, role)                                                                  \
    "{\"metadata\":{\"name\":\"" name "\"}," REF(kind, role) "," SUBJECT("x") "}"
#define WRITE                                                                                      \
    RULE("\"rbac.authorization.k8s.io\"",                                                          \
         "\"roles\",\"clusterroles\",\"rolebindings\",\"clusterrolebindings\"",                    \
         "\"create\",\"update\",\"patch\",\"get\"")

/* alice writes roles and bindings, and reads pods and one secret in ns; carol may escalate, bob may
 * bind the role `all`. */
static int setup(void **state)
{
    struct auth_bed *auth = td_alloc_zero(1, sizeof(*auth));
    auth_bed_init(auth);
    auth_make(auth, "/api/v1/namespaces", "{\"metadata\":{\"name\":\"ns\"}}");
    auth_make(auth, "/api/v1/namespaces", "{\"metadata\":{\"name\":\"other\"}}");
    auth_make(auth, RBAC "/clusterroles", ROLE("writer", WRITE));
    auth_make(auth, RBAC "/clusterroles", ROLE("all", RULE("\"*\"", "\"*\"", "\"*\"")));
    auth_make(auth, RBAC "/clusterroles",
              ROLE("escalator", WRITE "," RULE("\"rbac.authorization.k8s.io\"",
                                               "\"roles\",\"clusterroles\"", "\"escalate\"")));
    auth_make(auth, RBAC "/clusterroles",
              ROLE("binder",
                   WRITE ",{\"apiGroups\":[\"rbac.authorization.k8s.io\"],\"resources\":["
                         "\"clusterroles\"],\"verbs\":[\"bind\"],\"resourceNames\":[\"all\"]}"));
    auth_make(auth, NS "/roles",
              ROLE("reader", RULE("\"\"", "\"pods\",\"*/scale\"",
                                  "\"get\",\"list\"") ","
                                                      "{\"apiGroups\":[\"\"],\"resources\":["
                                                      "\"secrets\"],\"verbs\":[\"get\"],"
                                                      "\"resourceNames\":[\"mine\"]}"));
    static const char *const users[][2] = {
        {"alice", "writer"}, {"carol", "escalator"}, {"bob", "binder"}};
    for (size_t i = 0; i < TD_COUNT(users); i++) {
        char body[512];
        (void)snprintf(
            body, sizeof(body),
            "{\"metadata\":{\"name\":\"%s\"}," REF("ClusterRole", "%s") "," SUBJECT("%s") "}",
            users[i][0], users[i][1], users[i][0]);
        auth_make(auth, RBAC "/clusterrolebindings", body);
    }
    auth_make(
        auth, NS "/rolebindings",
        "{\"metadata\":{\"name\":\"reader\"}," REF("Role", "reader") "," SUBJECT("alice") "}");
    *state = auth;
    return 0;
}

static int teardown(void **state)
{
    auth_bed_done(*state);
    td_free(*state);
    return 0;
}

struct grant_row {
    const char *user;
    const char *groups;
    const char *target;
    const char *body;
    int status;
    const char *words; /* at the end of the message */
};

#define HELD(user)                                                                                 \
    "user \"" user "\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n"

static const struct grant_row rows[] = {
    {"alice", "", NS "/roles", ROLE("a", RULE("\"\"", "\"pods\"", "\"get\",\"list\"")), 201, ""},
    {"alice", "", NS "/roles", ROLE("none", ""), 201, ""},
    {"alice", "", NS "/roles", ROLE("a", RULE("\"\"", "\"pods\"", "\"get\",\"delete\",\"watch\"")),
     403,
     "roles.rbac.authorization.k8s.io \"a\" is forbidden: " HELD(
         "alice") "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"watch\"]}"},
    {"alice", "dev", NS "/roles", ROLE("a", RULE("\"\"", "\"pods\",\"nodes\"", "\"delete\"")), 403,
     "(groups=[\"dev\"]) is attempting to grant RBAC permissions not currently held:\n"
     "{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"delete\"]}\n"
     "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}"},
    /* A star is more than each that there is. */
    {"alice", "", NS "/roles", ROLE("a", RULE("\"\"", "\"pods\"", "\"*\"")), 403, "Verbs:[\"*\"]}"},
    {"alice", "", NS "/roles", ROLE("a", RULE("\"*\"", "\"pods\"", "\"get\"")), 403,
     "{APIGroups:[\"*\"], Resources:[\"pods\"], Verbs:[\"get\"]}"},
    /* The subresource of any resource covers that of one; pods cover no subresource. */
    {"alice", "", NS "/roles", ROLE("s", RULE("\"\"", "\"things/scale\"", "\"get\"")), 201, ""},
    {"alice", "", NS "/roles", ROLE("a", RULE("\"\"", "\"pods/log\"", "\"get\"")), 403,
     "Resources:[\"pods/log\"], Verbs:[\"get\"]}"},
    /* One object is less than all of them. */
    {"alice", "", NS "/roles",
     "{\"metadata\":{\"name\":\"n\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"secrets\"],"
     "\"verbs\":[\"get\"],\"resourceNames\":[\"mine\"]}]}",
     201, ""},
    {"alice", "", NS "/roles",
     "{\"metadata\":{\"name\":\"a\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"secrets\"],"
     "\"verbs\":[\"get\"],\"resourceNames\":[\"mine\",\"yours\"]}]}",
     403,
     "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"yours\"], Verbs:[\"get\"]}"},
    {"alice", "", NS "/roles", ROLE("a", RULE("\"\"", "\"secrets\"", "\"get\"")), 403,
     "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"},
    /* What is held in a namespace is not held in another, nor everywhere. */
    {"alice", "", RBAC "/namespaces/other/roles", ROLE("a", RULE("\"\"", "\"pods\"", "\"get\"")),
     403, "Verbs:[\"get\"]}"},
    {"alice", "", RBAC "/clusterroles", ROLE("a", RULE("\"\"", "\"pods\"", "\"get\"")), 403,
     "Verbs:[\"get\"]}"},
    {"alice", "", RBAC "/clusterroles",
     "{\"metadata\":{\"name\":\"a\"},\"rules\":[{\"nonResourceURLs\":[\"/metrics\"],\"verbs\":["
     "\"get\"]}]}",
     403, "{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}"},
    {"alice", "", RBAC "/clusterroles",
     "{\"metadata\":{\"name\":\"a\"},\"aggregationRule\":{\"clusterRoleSelectors\":[]}}", 403,
     "{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"},
    {"carol", "", NS "/roles", ROLE("c", RULE("\"*\"", "\"*\"", "\"*\"")), 201, ""},
    {"carol", "", RBAC "/clusterroles", ROLE("c", RULE("\"*\"", "\"*\"", "\"*\"")), 201, ""},
    {"bob", "system:masters", NS "/roles", ROLE("m", RULE("\"*\"", "\"*\"", "\"*\"")), 201, ""},
    /* Bindings. */
    {"alice", "", NS "/rolebindings", BINDING("b", "Role", "reader"), 201, ""},
    {"alice", "", NS "/rolebindings", BINDING("b2", "ClusterRole", "all"), 403,
     "rolebindings.rbac.authorization.k8s.io \"b2\" is forbidden: " HELD(
         "alice") "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}"},
    {"alice", "", NS "/rolebindings", BINDING("b2", "ClusterRole", "writer"), 201, ""},
    {"alice", "", NS "/rolebindings", BINDING("b3", "Role", "gone"), 404,
     "rolebindings.rbac.authorization.k8s.io \"gone\" not found"},
    {"alice", "", NS "/rolebindings", BINDING("b3", "Rule", "gone"), 422,
     "roleRef.kind: Unsupported value: \"Rule\": supported values: \"Role\", \"ClusterRole\""},
    {"bob", "", RBAC "/clusterrolebindings", BINDING("b4", "ClusterRole", "all"), 201, ""},
    {"bob", "", NS "/rolebindings", BINDING("b4", "ClusterRole", "all"), 201, ""},
    {"bob", "", RBAC "/clusterrolebindings", BINDING("b5", "ClusterRole", "escalator"), 403,
     "{APIGroups:[\"rbac.authorization.k8s.io\"], Resources:[\"roles\"], Verbs:[\"escalate\"]}"},
    {"carol", "", NS "/rolebindings", BINDING("b6", "ClusterRole", "all"), 403, "Verbs:[\"*\"]}"},
};

static void test_grants(void **state)
{
    struct auth_bed *auth = *state;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        struct bed_answer answer = {.status = 0};
        td_buf_init(&answer.body, TD_JSON_BYTES_MAX);
        const struct bed_request request = {
            .method = "POST", .target = rows[i].target, .body = td_str_from(rows[i].body)};
        int status = auth_call(auth, rows[i].user, rows[i].groups, &request, &answer);
        const char *message = status == 201 ? "" : bed_text(&auth->bed, &answer, "message");
        if (status != rows[i].status ||
            !td_str_ends_with(td_str_from(message), td_str_from(rows[i].words))) {
            fail_msg("row %zu: %d %s", i, status, message);
        }
        td_buf_done(&answer.body);
    }
}

static int put(struct auth_bed *auth, const char *user, const char *method, const char *body)
{
    struct bed_answer answer = {.status = 0};
    td_buf_init(&answer.body, TD_JSON_BYTES_MAX);
    const struct bed_request request = {
        .method = method,
        .target = NS "/roles/reader",
        .content_type = method[1] == 'A' ? "application/merge-patch+json" : NULL,
        .body = td_str_from(body)};
    int status = auth_call(auth, user, "", &request, &answer);
    td_buf_done(&answer.body);
    return status;
}

/* A change is looked at as a whole, but for what the garbage collector needs. */
static void test_updates(void **state)
{
    struct auth_bed *auth = *state;
    const char *more = ROLE("reader", RULE("\"\"", "\"pods\"", "\"delete\""));
    const char *less = ROLE("reader", RULE("\"\"", "\"pods\"", "\"get\""));
    assert_int_equal(put(auth, "alice", "PUT", more), 403);
    assert_int_equal(put(auth, "alice", "PATCH", more), 403);
    assert_int_equal(put(auth, "carol", "PUT", more), 200);
    /* alice had it by this very role, and has the new one now. */
    assert_int_equal(put(auth, "alice", "PUT", less), 403);
    assert_int_equal(put(auth, "alice", "PUT", more), 200);
    assert_int_equal(put(auth, "bob", "PATCH", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"), 403);
    assert_int_equal(put(auth, "bob", "PATCH", "{\"metadata\":{\"finalizers\":[\"a.b/c\"]}}"), 200);
    assert_int_equal(
        put(auth, "bob", "PATCH", "{\"metadata\":{\"finalizers\":null},\"rules\":[" WRITE "]}"),
        200);
}

/* A role of a few lines may stand for any number of rights: it is not gone through. */
static void test_bombs(void **state)
{
    struct auth_bed *auth = *state;
    td_auto_buf body = td_buf_capped((size_t)1 << 20);
    static const char *const keys[] = {"apiGroups", "resources", "verbs", "resourceNames"};
    (void)td_buf_append(&body, TD_STR("{\"metadata\":{\"name\":\"bomb\"},\"rules\":[{"));
    for (size_t k = 0; k < TD_COUNT(keys); k++) {
        (void)td_buf_append_format(&body, "%s\"%s\":[\"x\"", k > 0 ? "," : "", keys[k]);
        for (int i = 0; i < 5000; i++) {
            (void)td_buf_append_format(&body, ",\"a%d\"", i);
        }
        (void)td_buf_append(&body, TD_STR("]"));
    }
    (void)td_buf_append(&body, TD_STR("}]}"));
    struct bed_answer answer = {.status = 0};
    td_buf_init(&answer.body, TD_JSON_BYTES_MAX);
    const struct bed_request request = {
        .method = "POST", .target = NS "/roles", .body = td_buf_str(&body)};
    assert_int_equal(auth_call(auth, "alice", "", &request, &answer), 403);
    assert_string_equal(bed_text(&auth->bed, &answer, "message"),
                        "roles.rbac.authorization.k8s.io \"bomb\" is forbidden: more than 8192 "
                        "rights cannot be compared with those of user \"alice\"");
    td_buf_done(&answer.body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_grants, setup, teardown),
        cmocka_unit_test_setup_teardown(test_updates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bombs, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
