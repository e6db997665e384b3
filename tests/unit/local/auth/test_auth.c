/* Who asks: certificates, tokens of service accounts, impersonation. And may they: roles. */
#include "support/auth_bed.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RBAC "/apis/rbac.authorization.k8s.io/v1"
#define RULE(group, resource, verb)                                                                \
    "{\"apiGroups\":[\"" group "\"],\"resources\":[\"" resource "\"],\"verbs\":[\"" verb "\"]}"
#define REF(kind, name)                                                                            \
    "\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"" kind                     \
    "\",\"name\":\"" name "\"}"
#define SUBJECT(kind, name)                                                                        \
    "{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"" kind "\",\"name\":\"" name "\"}"

static int setup(void **state)
{
    struct auth_bed *auth = td_alloc_zero(1, sizeof(*auth));
    auth_bed_init(auth);
    auth_make(auth, "/api/v1/namespaces", "{\"metadata\":{\"name\":\"ns\"}}");
    auth_make(auth, "/api/v1/namespaces/ns/serviceaccounts", "{\"metadata\":{\"name\":\"bot\"}}");
    auth_make(auth, RBAC "/clusterroles",
              "{\"metadata\":{\"name\":\"impersonator\"},\"rules\":["
              "{\"apiGroups\":[\"\"],\"resources\":[\"users\"],\"verbs\":[\"impersonate\"],"
              "\"resourceNames\":[\"bob\",\"*\",\"system:anonymous\"]},"
              "{\"apiGroups\":[\"\"],\"resources\":[\"groups\"],\"verbs\":[\"impersonate\"],"
              "\"resourceNames\":[\"dev\",\"system:unauthenticated\"]},"
              "{\"apiGroups\":[\"authentication.k8s.io\"],\"resources\":[\"uids\"],\"verbs\":["
              "\"impersonate\"],\"resourceNames\":[\"u-1\"]}]}");
    auth_make(auth, RBAC "/clusterrolebindings",
              "{\"metadata\":{\"name\":\"impersonator\"}," REF(
                  "ClusterRole", "impersonator") ",\"subjects\":[" SUBJECT("User", "alice") "]}");
    auth_make(auth, RBAC "/namespaces/ns/roles",
              "{\"metadata\":{\"name\":\"as-bot\"},\"rules\":[" RULE("", "serviceaccounts",
                                                                     "impersonate") "]}");
    auth_make(auth, RBAC "/namespaces/ns/rolebindings",
              "{\"metadata\":{\"name\":\"as-bot\"}," REF(
                  "Role", "as-bot") ",\"subjects\":[" SUBJECT("Group", "botters") "]}");
    *state = auth;
    return 0;
}

static int teardown(void **state)
{
    auth_bed_done(*state);
    td_free(*state);
    return 0;
}

/* "name uid group,group" */
static const char *user_text(struct td_arena *arena, const struct td_api_user *user)
{
    td_str text =
        td_arena_format(arena, "%.*s %.*s ", TD_STR_ARG(user->name), TD_STR_ARG(user->uid));
    for (size_t i = 0; i < user->group_count; i++) {
        text = td_arena_format(arena, "%.*s%s%.*s", TD_STR_ARG(text), i > 0 ? "," : "",
                               TD_STR_ARG(user->groups[i]));
    }
    return text.ptr;
}

struct identify_row {
    const char *certificate; /* NULL: none */
    const char *organizations;
    const char *authorization;
    const char *as_user;
    const char *as_groups;
    const char *as_uid;
    int code;
    const char *text; /* the user, or the message */
};

static const struct identify_row identify_rows[] = {
    {NULL, "", "", "", "", "", TD_OK, "system:anonymous  system:unauthenticated"},
    {"alice", "dev,ops", "", "", "", "", TD_OK, "alice  dev,ops,system:authenticated"},
    {"alice", "system:authenticated", "", "", "", "", TD_OK, "alice  system:authenticated"},
    {"alice", "", "Bearer wrong", "", "", "", TD_OK, "alice  system:authenticated"},
    {"", "dev", "", "", "", "", TD_OK, "system:anonymous  system:unauthenticated"},
    {NULL, "", "Bearer " AUTH_ADMIN_TOKEN, "", "", "", TD_OK,
     "kubernetes-admin  system:masters,system:authenticated"},
    {NULL, "", "bearer   " AUTH_ADMIN_TOKEN " ", "", "", "", TD_OK,
     "kubernetes-admin  system:masters,system:authenticated"},
    {NULL, "", "Bearer ", "", "", "", TD_OK, "system:anonymous  system:unauthenticated"},
    {NULL, "", "Basic eDp5", "", "", "", TD_OK, "system:anonymous  system:unauthenticated"},
    {NULL, "", "Bearer x", "", "", "", TD_INVALID, "the bearer token is unknown"},
    {NULL, "", "Bearer a.b.c", "", "", "", TD_INVALID, "the bearer token is unknown"},
    {NULL, "", "Bearer ..", "", "", "", TD_INVALID, "the bearer token is unknown"},
    {"alice", "", "", "bob", "", "", TD_OK, "bob  system:authenticated"},
    {"alice", "", "", "bob", "dev", "u-1", TD_OK, "bob u-1 dev,system:authenticated"},
    {"alice", "", "", "bob", "system:unauthenticated", "", TD_OK, "bob  system:unauthenticated"},
    {"alice", "", "", "system:anonymous", "", "", TD_OK,
     "system:anonymous  system:unauthenticated"},
    {"alice", "", "", "carol", "", "", TD_DENIED,
     "users \"carol\" is forbidden: User \"alice\" cannot impersonate resource \"users\" in API "
     "group \"\" at the cluster scope"},
    {"alice", "", "", "bob", "system:masters", "", TD_DENIED,
     "groups \"system:masters\" is forbidden: User \"alice\" cannot impersonate resource "
     "\"groups\" in API group \"\" at the cluster scope"},
    {"alice", "", "", "bob", "", "u-2", TD_DENIED,
     "uids.authentication.k8s.io \"u-2\" is forbidden: User \"alice\" cannot impersonate resource "
     "\"uids\" in API group \"authentication.k8s.io\" at the cluster scope"},
    {"alice", "", "", "system:serviceaccount:ns:bot", "", "", TD_DENIED,
     "serviceaccounts \"bot\" is forbidden: User \"alice\" cannot impersonate resource "
     "\"serviceaccounts\" in API group \"\" in the namespace \"ns\""},
    {"dora", "botters", "", "system:serviceaccount:ns:bot", "", "", TD_OK,
     "system:serviceaccount:ns:bot  "
     "system:serviceaccounts,system:serviceaccounts:ns,system:authenticated"},
    {"dora", "botters", "", "system:serviceaccount:other:bot", "", "", TD_DENIED,
     "serviceaccounts \"bot\" is forbidden: User \"dora\" cannot impersonate resource "
     "\"serviceaccounts\" in API group \"\" in the namespace \"other\""},
    {"alice", "", "", "", "dev", "", TD_DENIED,
     "Impersonate-Group or Impersonate-Uid without Impersonate-User"},
    {NULL, "", "", "bob", "", "", TD_DENIED,
     "users \"bob\" is forbidden: User \"system:anonymous\" cannot impersonate resource \"users\" "
     "in API group \"\" at the cluster scope"},
    {"root", "system:masters", "", "carol", "dev", "u-9", TD_OK,
     "carol u-9 dev,system:authenticated"},
};

/* What a connection shows decides who asks. */
static void test_identify(void **state)
{
    struct auth_bed *auth = *state;
    for (size_t i = 0; i < COUNT(identify_rows); i++) {
        const struct identify_row *row = &identify_rows[i];
        td_str organizations[AUTH_GROUPS_MAX];
        td_str groups[AUTH_GROUPS_MAX];
        const struct td_auth_evidence evidence = {
            .has_certificate = row->certificate != NULL,
            .certificate_name = td_str_from(row->certificate),
            .certificate_groups = organizations,
            .certificate_group_count = auth_groups(row->organizations, organizations),
            .authorization = td_str_from(row->authorization),
            .impersonate_user = td_str_from(row->as_user),
            .impersonate_uid = td_str_from(row->as_uid),
            .impersonate_groups = groups,
            .impersonate_group_count = auth_groups(row->as_groups, groups),
        };
        struct td_api_user user = {.name = TD_STR("untouched")};
        struct td_error err = TD_ERROR_INIT;
        int code = td_auth_identify(auth->auth, &auth->bed.arena, &evidence, &user, &err);
        const char *text = code == TD_OK ? user_text(&auth->bed.arena, &user) : err.message;
        if (code != row->code || strcmp(text, row->text) != 0) {
            fail_msg("row %zu: %d '%s' is not %d '%s'", i, code, text, row->code, row->text);
        }
        assert_true(code == TD_OK || td_str_equal(user.name, TD_STR("untouched")));
    }
}

/* Extra fields of a user are not known here, so no request is let through without them. */
static void test_extra_is_refused(void **state)
{
    struct auth_bed *auth = *state;
    const struct td_auth_evidence evidence = {.has_certificate = true,
                                              .certificate_name = TD_STR("alice"),
                                              .impersonate_user = TD_STR("bob"),
                                              .has_impersonate_extra = true};
    struct td_api_user user;
    assert_int_equal(td_auth_identify(auth->auth, &auth->bed.arena, &evidence, &user, NULL),
                     TD_DENIED);
}

static const char *account_uid(struct auth_bed *auth)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    (void)auth_call(auth, "admin", "system:masters",
                    &(struct bed_request){.method = "GET",
                                          .target = "/api/v1/namespaces/ns/serviceaccounts/bot"},
                    &answer);
    return bed_text(&auth->bed, &answer, "metadata.uid");
}

static td_str new_token(struct auth_bed *auth, const char *audience, int64_t seconds)
{
    td_str audiences[AUTH_GROUPS_MAX];
    const struct td_token_request request = {
        .ns = TD_STR("ns"),
        .name = TD_STR("bot"),
        .uid = td_str_from(account_uid(auth)),
        .audiences = audiences,
        .audience_count = auth_groups(audience, audiences),
        .expires_unix_seconds = BED_START + seconds,
    };
    td_auto_buf token;
    td_buf_init(&token, TD_TOKEN_TEXT_BYTES_MAX);
    assert_int_equal(td_auth_issue_token(auth->auth, &request, &token, NULL), TD_OK);
    return td_arena_copy_str(&auth->bed.arena, td_buf_str(&token));
}

static int token_code(struct auth_bed *auth, td_str token)
{
    struct td_api_user user;
    return td_auth_token_user(auth->auth, &auth->bed.arena, token, NULL, &user, NULL, NULL);
}

/* A token holds until its time, for its audience, as long as its account is there. */
static void test_tokens(void **state)
{
    struct auth_bed *auth = *state;
    td_str token = new_token(auth, "", 600);
    struct td_api_user user;
    struct td_audiences found;
    assert_int_equal(
        td_auth_token_user(auth->auth, &auth->bed.arena, token, NULL, &user, &found, NULL), TD_OK);
    td_str wanted = td_arena_format(&auth->bed.arena,
                                    "system:serviceaccount:ns:bot %s "
                                    "system:serviceaccounts,system:serviceaccounts:ns",
                                    account_uid(auth));
    assert_string_equal(user_text(&auth->bed.arena, &user), wanted.ptr);
    assert_int_equal(found.count, 1);
    assert_true(td_str_equal(found.names[0], TD_STR(TD_AUTH_AUDIENCE)));
    td_str other = new_token(auth, "vault,db", 600);
    assert_int_equal(token_code(auth, other), TD_INVALID);
    const td_str names[] = {TD_STR("x"), TD_STR("db")};
    const struct td_audiences audiences = {.names = names, .count = 2};
    assert_int_equal(
        td_auth_token_user(auth->auth, &auth->bed.arena, other, &audiences, &user, &found, NULL),
        TD_OK);
    assert_int_equal(found.count, 1);
    assert_true(td_str_equal(found.names[0], TD_STR("db")));
    bed_run(&auth->bed, 599 * TD_SECOND);
    assert_int_equal(token_code(auth, token), TD_OK);
    bed_run(&auth->bed, 2 * TD_SECOND);
    assert_int_equal(token_code(auth, token), TD_INVALID);
}

/* No byte of a token can be changed, and none left out. */
static void test_tokens_are_signed(void **state)
{
    struct auth_bed *auth = *state;
    td_str token = new_token(auth, "", 600);
    char *copy = td_alloc(token.len);
    for (size_t i = 0; i + 1 < token.len; i++) { /* the last letter has bits that mean nothing */
        memcpy(copy, token.ptr, token.len);
        copy[i] = copy[i] == 'A' ? 'B' : 'A';
        assert_int_equal(token_code(auth, (td_str){.ptr = copy, .len = token.len}), TD_INVALID);
        assert_int_equal(token_code(auth, td_str_slice(token, 0, i)), TD_INVALID);
    }
    td_free(copy);
}

/* A token dies with its account, also when one of the same name comes after. */
static void test_token_of_a_deleted_account(void **state)
{
    struct auth_bed *auth = *state;
    td_str token = new_token(auth, "", 600);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct bed_request drop = {.method = "DELETE",
                                     .target = "/api/v1/namespaces/ns/serviceaccounts/bot"};
    assert_int_equal(auth_call(auth, "admin", "system:masters", &drop, &answer), 200);
    assert_int_equal(token_code(auth, token), TD_INVALID);
    auth_make(auth, "/api/v1/namespaces/ns/serviceaccounts", "{\"metadata\":{\"name\":\"bot\"}}");
    assert_int_equal(token_code(auth, token), TD_INVALID);
}

struct access_row {
    const char *user;
    const char *groups;
    struct td_auth_attributes access;
    const char *reason; /* NULL: not allowed */
};

#define S(text) TD_STR_INIT(text)

static const struct access_row access_rows[] = {
    {"eve", "", {.verb = S("get"), .resource = S("pods"), .ns = S("ns")}, NULL},
    {"eve", "system:masters", {.verb = S("eat"), .resource = S("x"), .ns = S("ns")}, ""},
    {"rita",
     "",
     {.verb = S("get"), .resource = S("pods"), .ns = S("ns")},
     "RBAC: allowed by RoleBinding \"readers/ns\" of Role \"reader\" to User \"rita\""},
    {"rita", "", {.verb = S("get"), .resource = S("pods"), .ns = S("other")}, NULL},
    {"rita", "", {.verb = S("get"), .resource = S("pods")}, NULL},
    {"rita", "", {.verb = S("list"), .resource = S("pods"), .ns = S("ns")}, NULL},
    {"rita",
     "",
     {.verb = S("get"), .group = S("apps"), .resource = S("pods"), .ns = S("ns")},
     NULL},
    {"rita",
     "",
     {.verb = S("get"), .resource = S("pods"), .subresource = S("log"), .ns = S("ns")},
     NULL},
    {"rita",
     "",
     {.verb = S("update"), .resource = S("pods"), .subresource = S("status"), .ns = S("ns")},
     "RBAC: allowed by RoleBinding \"readers/ns\" of Role \"reader\" to User \"rita\""},
    {"x",
     "team",
     {.verb = S("get"), .resource = S("pods"), .ns = S("ns")},
     "RBAC: allowed by RoleBinding \"readers/ns\" of Role \"reader\" to Group \"team\""},
    {"system:serviceaccount:ns:bot",
     "",
     {.verb = S("get"), .resource = S("pods"), .ns = S("ns")},
     "RBAC: allowed by RoleBinding \"readers/ns\" of Role \"reader\" to ServiceAccount "
     "\"bot/ns\""},
    {"system:serviceaccount:other:bot",
     "",
     {.verb = S("get"), .resource = S("pods"), .ns = S("ns")},
     NULL},
    {"olga",
     "",
     {.verb = S("delete"), .group = S("apps"), .resource = S("deployments"), .name = S("web")},
     "RBAC: allowed by ClusterRoleBinding \"owners\" of ClusterRole \"owner\" to User \"olga\""},
    {"olga",
     "",
     {.verb = S("delete"), .group = S("apps"), .resource = S("deployments"), .name = S("db")},
     NULL},
    {"olga", "", {.verb = S("delete"), .group = S("apps"), .resource = S("deployments")}, NULL},
    {"olga",
     "",
     {.verb = S("patch"),
      .group = S("x.dev"),
      .resource = S("things"),
      .subresource = S("scale"),
      .ns = S("any")},
     "RBAC: allowed by ClusterRoleBinding \"owners\" of ClusterRole \"owner\" to User \"olga\""},
    {"olga",
     "",
     {.verb = S("patch"), .group = S("x.dev"), .resource = S("things"), .ns = S("any")},
     NULL},
    {"olga",
     "",
     {.verb = S("get"), .path = S("/healthz")},
     "RBAC: allowed by ClusterRoleBinding \"owners\" of ClusterRole \"owner\" to User \"olga\""},
    {"olga",
     "",
     {.verb = S("get"), .path = S("/logs/a/b")},
     "RBAC: allowed by ClusterRoleBinding \"owners\" of ClusterRole \"owner\" to User \"olga\""},
    {"olga", "", {.verb = S("get"), .path = S("/log")}, NULL},
    {"olga", "", {.verb = S("post"), .path = S("/healthz")}, NULL},
    {"nora", "", {.verb = S("get"), .resource = S("pods"), .ns = S("ns")}, NULL},
};

/* Roles, their bindings and how far they reach. */
static void test_roles(void **state)
{
    struct auth_bed *auth = *state;
    auth_make(auth, RBAC "/namespaces/ns/roles",
              "{\"metadata\":{\"name\":\"reader\"},\"rules\":[" RULE("", "pods", "get") "," RULE(
                  "", "pods/status", "*") ",{\"nonResourceURLs\":[],\"verbs\":[\"get\"],"
                                          "\"apiGroups\":[\"\"],\"resources\":[\"nothing\"]}]}");
    auth_make(
        auth, RBAC "/namespaces/ns/rolebindings",
        "{\"metadata\":{\"name\":\"readers\"}," REF("Role", "reader") ",\"subjects\":[" SUBJECT(
            "User", "rita") "," SUBJECT("Group", "team") ",{\"kind\":\"ServiceAccount\","
                                                         "\"name\":\"bot\",\"namespace\":"
                                                         "\"ns\"}]}");
    auth_make(auth, RBAC "/namespaces/ns/rolebindings",
              "{\"metadata\":{\"name\":\"dangling\"}," REF(
                  "Role", "nobody") ",\"subjects\":[" SUBJECT("User", "nora") "]}");
    auth_make(
        auth, RBAC "/clusterroles",
        "{\"metadata\":{\"name\":\"owner\"},\"rules\":[{\"apiGroups\":[\"apps\"],"
        "\"resources\":[\"deployments\"],\"verbs\":[\"*\"],\"resourceNames\":[\"web\"]}," RULE(
            "*", "*/scale", "patch") ",{\"nonResourceURLs\":[\"/healthz\",\"/logs/*\"],"
                                     "\"verbs\":[\"get\"]}]}");
    auth_make(auth, RBAC "/clusterrolebindings",
              "{\"metadata\":{\"name\":\"owners\"}," REF(
                  "ClusterRole", "owner") ",\"subjects\":[" SUBJECT("User", "olga") "]}");
    for (size_t i = 0; i < COUNT(access_rows); i++) {
        const struct access_row *row = &access_rows[i];
        td_str groups[AUTH_GROUPS_MAX];
        const struct td_api_user user = {.name = td_str_from(row->user),
                                         .groups = groups,
                                         .group_count = auth_groups(row->groups, groups)};
        td_str reason = TD_STR_EMPTY;
        bool is_allowed =
            td_auth_allows(auth->auth, &user, &row->access, &auth->bed.arena, &reason);
        if (is_allowed != (row->reason != NULL) ||
            !td_str_equal(reason, td_str_from(row->reason))) {
            fail_msg("row %zu: %d '%.*s'", i, is_allowed, TD_STR_ARG(reason));
        }
    }
}

/* A change of a role counts from the next question on. */
static void test_roles_change(void **state)
{
    struct auth_bed *auth = *state;
    const struct td_api_user rita = {.name = TD_STR("rita")};
    const struct td_auth_attributes access = {
        .verb = TD_STR("get"), .resource = TD_STR("pods"), .ns = TD_STR("ns")};
    struct td_arena *arena = &auth->bed.arena;
    assert_false(td_auth_allows(auth->auth, &rita, &access, arena, NULL));
    auth_make(auth, RBAC "/namespaces/ns/rolebindings",
              "{\"metadata\":{\"name\":\"b\"}," REF("Role", "r") ",\"subjects\":[" SUBJECT(
                  "User", "rita") "]}");
    assert_false(td_auth_allows(auth->auth, &rita, &access, arena, NULL));
    auth_make(auth, RBAC "/namespaces/ns/roles",
              "{\"metadata\":{\"name\":\"r\"},\"rules\":[" RULE("", "pods", "get") "]}");
    assert_true(td_auth_allows(auth->auth, &rita, &access, arena, NULL));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct bed_request drop = {.method = "DELETE", .target = RBAC "/namespaces/ns/roles/r"};
    assert_int_equal(auth_call(auth, "admin", "system:masters", &drop, &answer), 200);
    assert_false(td_auth_allows(auth->auth, &rita, &access, arena, NULL));
}

struct refusal_row {
    const char *method;
    const char *target;
    const char *type;
    const char *body;
    const char *message;
};

static const struct refusal_row refusal_rows[] = {
    {"GET", "/api/v1/pods", NULL, NULL,
     "pods is forbidden: User \"eve\" cannot list resource \"pods\" in API group \"\" at the "
     "cluster scope"},
    {"GET", "/api/v1/namespaces/ns/pods?watch=1", NULL, NULL,
     "pods is forbidden: User \"eve\" cannot watch resource \"pods\" in API group \"\" in the "
     "namespace \"ns\""},
    {"GET", "/api/v1/namespaces/ns", NULL, NULL,
     "namespaces \"ns\" is forbidden: User \"eve\" cannot get resource \"namespaces\" in API group "
     "\"\" in the namespace \"ns\""},
    {"DELETE", "/apis/apps/v1/namespaces/ns/deployments", NULL, NULL,
     "deployments.apps is forbidden: User \"eve\" cannot deletecollection resource \"deployments\" "
     "in API group \"apps\" in the namespace \"ns\""},
    {"PATCH", "/apis/apps/v1/namespaces/ns/deployments/d/scale", "application/merge-patch+json",
     "{}",
     "deployments.apps \"d\" is forbidden: User \"eve\" cannot patch resource "
     "\"deployments/scale\" in API group \"apps\" in the namespace \"ns\""},
    {"GET", "/apis/no.dev/v1/namespaces/ns/things", NULL, NULL,
     "things.no.dev is forbidden: User \"eve\" cannot list resource \"things\" in API group "
     "\"no.dev\" in the namespace \"ns\""},
    {"GET", "/version", NULL, NULL, "forbidden: User \"eve\" cannot get path \"/version\""},
    {"POST", "/nope", NULL, "{}", "forbidden: User \"eve\" cannot post path \"/nope\""},
};

/* A refusal says who, what and where, and tells nothing of what is there. */
static void test_refusals(void **state)
{
    struct auth_bed *auth = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    for (size_t i = 0; i < COUNT(refusal_rows); i++) {
        const struct refusal_row *row = &refusal_rows[i];
        const struct bed_request request = {.method = row->method,
                                            .target = row->target,
                                            .content_type = row->type,
                                            .body = td_str_from(row->body)};
        int status = auth_call(auth, "eve", "", &request, &answer);
        assert_string_equal(bed_text(&auth->bed, &answer, "message"), row->message);
        assert_int_equal(status, 403);
        assert_string_equal(bed_text(&auth->bed, &answer, "reason"), "Forbidden");
    }
}

/* Applying what is not there needs the permission to create it. */
static void test_apply_needs_create(void **state)
{
    struct auth_bed *auth = *state;
    auth_make(auth, RBAC "/namespaces/ns/roles",
              "{\"metadata\":{\"name\":\"p\"},\"rules\":[" RULE("", "configmaps", "patch") "]}");
    auth_make(auth, RBAC "/namespaces/ns/rolebindings",
              "{\"metadata\":{\"name\":\"p\"}," REF("Role", "p") ",\"subjects\":[" SUBJECT(
                  "User", "paul") "]}");
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct bed_request request = {
        .method = "PATCH",
        .target = "/api/v1/namespaces/ns/configmaps/m?fieldManager=me",
        .content_type = "application/apply-patch+yaml",
        .body = TD_STR("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"}"
                       "}"),
    };
    assert_int_equal(auth_call(auth, "paul", "", &request, &answer), 403);
    assert_string_equal(bed_text(&auth->bed, &answer, "message"),
                        "configmaps \"m\" is forbidden: User \"paul\" cannot create resource "
                        "\"configmaps\" in API group \"\" in the namespace \"ns\"");
    auth_make(auth, "/api/v1/namespaces/ns/configmaps", "{\"metadata\":{\"name\":\"m\"}}");
    assert_int_equal(auth_call(auth, "paul", "", &request, &answer), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_identify, setup, teardown),
        cmocka_unit_test_setup_teardown(test_extra_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tokens, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tokens_are_signed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_token_of_a_deleted_account, setup, teardown),
        cmocka_unit_test_setup_teardown(test_roles, setup, teardown),
        cmocka_unit_test_setup_teardown(test_roles_change, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_apply_needs_create, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
