/* The kinds that are questions, and tokens on request, as different users ask for them. */
#include "support/auth_bed.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RBAC "/apis/rbac.authorization.k8s.io/v1"
#define AUTHZ "/apis/authorization.k8s.io/v1"
#define AUTHN "/apis/authentication.k8s.io/v1"
#define TOKEN "/api/v1/namespaces/ns/serviceaccounts/bot/token"

static int setup(void **state)
{
    struct auth_bed *auth = td_alloc_zero(1, sizeof(*auth));
    auth_bed_init(auth);
    auth_make(auth, "/api/v1/namespaces", "{\"metadata\":{\"name\":\"ns\"}}");
    auth_make(auth, "/api/v1/namespaces/ns/serviceaccounts", "{\"metadata\":{\"name\":\"bot\"}}");
    auth_make(auth, RBAC "/clusterroles",
              "{\"metadata\":{\"name\":\"asker\"},\"rules\":[{\"apiGroups\":["
              "\"authorization.k8s.io\",\"authentication.k8s.io\"],\"resources\":[\"*\"],\"verbs\":"
              "[\"create\"]},{\"nonResourceURLs\":[\"/healthz\"],\"verbs\":[\"get\"]}]}");
    auth_make(auth, RBAC "/clusterrolebindings",
              "{\"metadata\":{\"name\":\"asker\"},\"roleRef\":{\"apiGroup\":"
              "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"asker\"},"
              "\"subjects\":[{\"kind\":\"Group\",\"apiGroup\":\"rbac.authorization.k8s.io\","
              "\"name\":\"system:authenticated\"}]}");
    *state = auth;
    return 0;
}

static int teardown(void **state)
{
    auth_bed_done(*state);
    td_free(*state);
    return 0;
}

struct review_row {
    const char *target;
    const char *body;
    int status;
    const char *path;
    const char *text; /* as JSON when it is no text; NULL: nothing is there */
};

static const struct review_row review_rows[] = {
    {AUTHZ "/selfsubjectaccessreviews",
     "{\"spec\":{\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\",\"namespace\":"
     "\"ns\"}}}",
     201, "status.allowed", "false"},
    {AUTHZ "/selfsubjectaccessreviews",
     "{\"spec\":{\"nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/healthz\"}}}", 201,
     "status.reason",
     "RBAC: allowed by ClusterRoleBinding \"asker\" of ClusterRole \"asker\" to Group "
     "\"system:authenticated\""},
    {AUTHZ "/selfsubjectaccessreviews", "{\"spec\":{}}", 422, "details.causes",
     "[{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid value: null: exactly one of "
     "nonResourceAttributes or resourceAttributes must be specified\",\"field\":"
     "\"spec.resourceAttributes\"}]"},
    {AUTHZ "/selfsubjectaccessreviews",
     "{\"spec\":{\"resourceAttributes\":{},\"nonResourceAttributes\":{}}}", 422, "details.causes",
     "[{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid value: null: cannot be specified in "
     "combination with resourceAttributes\",\"field\":\"spec.nonResourceAttributes\"}]"},
    {AUTHZ "/subjectaccessreviews",
     "{\"spec\":{\"groups\":[\"system:masters\"],\"resourceAttributes\":{\"verb\":\"eat\"}}}", 201,
     "status.allowed", "true"},
    {AUTHZ "/subjectaccessreviews",
     "{\"spec\":{\"user\":\"nobody\",\"resourceAttributes\":{\"verb\":\"eat\"}}}", 201,
     "status.allowed", "false"},
    {AUTHZ "/subjectaccessreviews", "{\"spec\":{\"resourceAttributes\":{\"verb\":\"eat\"}}}", 422,
     "reason", "Invalid"},
    {AUTHZ "/namespaces/ns/localsubjectaccessreviews",
     "{\"spec\":{\"user\":\"u\",\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\","
     "\"namespace\":\"ns\"}}}",
     201, "status.allowed", "false"},
    {AUTHZ "/namespaces/ns/localsubjectaccessreviews",
     "{\"spec\":{\"user\":\"u\",\"resourceAttributes\":{\"verb\":\"get\",\"namespace\":\"other\"}}"
     "}",
     422, "details.causes",
     "[{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid value: \\\"other\\\": must match "
     "metadata.namespace\",\"field\":\"spec.resourceAttributes.namespace\"}]"},
    {AUTHZ "/namespaces/ns/localsubjectaccessreviews",
     "{\"spec\":{\"user\":\"u\",\"nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/x\"}}}",
     422, "reason", "Invalid"},
    {AUTHZ "/selfsubjectrulesreviews", "{\"spec\":{\"namespace\":\"ns\"}}", 201,
     "status.nonResourceRules", "[{\"verbs\":[\"get\"],\"nonResourceURLs\":[\"/healthz\"]}]"},
    {AUTHZ "/selfsubjectrulesreviews", "{\"spec\":{}}", 400, "message", "no namespace on request"},
    {AUTHN "/selfsubjectreviews", "{}", 201, "status.userInfo",
     "{\"username\":\"rita\",\"groups\":[\"system:authenticated\"]}"},
    {AUTHN "/tokenreviews", "{\"spec\":{\"token\":\"" AUTH_ADMIN_TOKEN "\"}}", 201, "status.user",
     "{\"username\":\"kubernetes-admin\",\"groups\":[\"system:masters\"]}"},
    {AUTHN "/tokenreviews",
     "{\"spec\":{\"token\":\"" AUTH_ADMIN_TOKEN "\",\"audiences\":[\"vault\"]}}", 201,
     "status.error", "the bearer token is for another audience"},
    {AUTHN "/tokenreviews", "{\"spec\":{\"token\":\"x\"}}", 201, "status.authenticated", NULL},
    {AUTHN "/tokenreviews", "{\"spec\":{}}", 400, "message",
     "token is required for TokenReview in authentication"},
    {AUTHN "/tokenreviews", "{", 400, "reason", "BadRequest"},
    {AUTHN "/tokenreviews", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", 400, "reason",
     "BadRequest"},
};

static const char *text_at(struct auth_bed *auth, const struct bed_answer *answer, const char *path)
{
    const struct td_json *node = td_json_get_path(bed_tree(&auth->bed, answer), path);
    if (!node || td_json_is(node, TD_JSON_TYPE_STRING)) {
        return node ? td_arena_copy_str(&auth->bed.arena, node->text).ptr : NULL;
    }
    td_auto_buf text;
    td_buf_init(&text, BED_BODY_BYTES_MAX);
    td_json_write(node, &(struct td_json_format){.indent = 0}, &text);
    return td_arena_copy_str(&auth->bed.arena, td_buf_str(&text)).ptr;
}

static void expect_row(struct auth_bed *auth, const char *user, const struct review_row *row)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    int status = auth_send(auth, user, "POST", row->target, row->body, &answer);
    const char *found = text_at(auth, &answer, row->path);
    if (status != row->status || (found == NULL) != (row->text == NULL) ||
        (found && strcmp(found, row->text) != 0)) {
        fail_msg("%s %s: %d %s", row->target, row->body, status, td_buf_str(&answer.body).ptr);
    }
}

/* Each question has its answer in a status, or is refused in the real server's words. */
static void test_reviews(void **state)
{
    for (size_t i = 0; i < COUNT(review_rows); i++) {
        expect_row(*state, "rita", &review_rows[i]);
    }
}

/* A list that is something else cannot be decoded, as by the real server; nothing walks it. */
static void test_reviews_refuse_other_shapes(void **state)
{
    static const char *const shapes[] = {
        "\"system:masters\"",     "123456789012345678", "true",
        "{\"a\":\"b\",\"c\":{}}", "[{\"a\":[1]}]",      "[[\"x\"]]"};
    static const struct {
        const char *target;
        const char *body; /* with the shape */
        const char *message;
    } rows[] = {
        {AUTHN "/tokenreviews", "{\"spec\":{\"token\":\"x\",\"audiences\":%s}}",
         "TokenReview in version \"v1\" cannot be handled as a TokenReview: spec.audiences"},
        {AUTHZ "/subjectaccessreviews",
         "{\"spec\":{\"groups\":%s,\"resourceAttributes\":{\"verb\":\"eat\"}}}",
         "SubjectAccessReview in version \"v1\" cannot be handled as a SubjectAccessReview: "
         "spec.groups"},
        {AUTHZ "/namespaces/ns/localsubjectaccessreviews",
         "{\"spec\":{\"groups\":%s,\"resourceAttributes\":{\"namespace\":\"ns\"}}}",
         "LocalSubjectAccessReview in version \"v1\" cannot be handled as a "
         "LocalSubjectAccessReview: spec.groups"},
        {TOKEN, "{\"spec\":{\"audiences\":%s}}",
         "TokenRequest in version \"v1\" cannot be handled as a TokenRequest: spec.audiences"},
    };
    struct auth_bed *auth = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    for (size_t i = 0; i < COUNT(rows) * COUNT(shapes); i++) {
        const char *shape = shapes[i % COUNT(shapes)];
        size_t row = i / COUNT(shapes);
        td_auto_buf body;
        td_buf_init(&body, BED_BODY_BYTES_MAX);
        td_str whole = td_str_from(rows[row].body);
        size_t hole = td_str_find(whole, '%', 0);
        td_buf_append(&body, td_str_slice(whole, 0, hole));
        td_buf_append(&body, td_str_from(shape));
        td_buf_append(&body, td_str_slice(whole, hole + 2, whole.len));
        const struct bed_request request = {
            .method = "POST", .target = rows[row].target, .body = td_buf_str(&body)};
        int status = auth_call(auth, "admin", "system:masters", &request, &answer);
        const char *message = text_at(auth, &answer, "message");
        if (status != 400 || strncmp(message, rows[row].message, strlen(rows[row].message)) != 0) {
            fail_msg("%s %s: %d %s", rows[row].target, body.ptr, status, message);
        }
    }
}

/* A token on request is one of the account's, for whom it is asked and as long as it is asked. */
static void test_token_request(void **state)
{
    struct auth_bed *auth = *state;
    static const struct review_row rows[] = {
        {TOKEN, "{}", 201, "spec.audiences", "[\"" TD_AUTH_AUDIENCE "\"]"},
        {TOKEN, "{\"spec\":{\"expirationSeconds\":600}}", 201, "status.expirationTimestamp",
         "2023-11-14T22:23:20Z"},
        {TOKEN, "{\"spec\":{\"audiences\":[\"vault\"]}}", 201, "spec.audiences", "[\"vault\"]"},
        {TOKEN, "{}", 201, "metadata.name", "bot"},
        {TOKEN, "{\"spec\":{\"expirationSeconds\":599}}", 422, "reason", "Invalid"},
        {TOKEN, "{\"spec\":{\"expirationSeconds\":4294967297}}", 422, "reason", "Invalid"},
        {TOKEN, "{\"metadata\":{\"name\":\"other\"}}", 400, "reason", "BadRequest"},
        {TOKEN, "{\"spec\":{\"boundObjectRef\":{\"kind\":\"Pod\",\"name\":\"p\"}}}", 400, "message",
         "the local cluster binds tokens to service accounts only"},
        {"/api/v1/namespaces/ns/serviceaccounts/none/token", "{}", 404, "reason", "NotFound"},
    };
    static const char *const admin = "admin";
    auth_make(auth, RBAC "/clusterrolebindings",
              "{\"metadata\":{\"name\":\"admin\"},\"roleRef\":{\"apiGroup\":"
              "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"tokens\"},"
              "\"subjects\":[{\"kind\":\"User\",\"apiGroup\":\"rbac.authorization.k8s.io\","
              "\"name\":\"admin\"}]}");
    auth_make(auth, RBAC "/clusterroles",
              "{\"metadata\":{\"name\":\"tokens\"},\"rules\":[{\"apiGroups\":[\"\"],\"resources\":["
              "\"serviceaccounts/token\"],\"verbs\":[\"create\"]}]}");
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect_row(auth, admin, &rows[i]);
    }
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(auth_send(auth, "rita", "POST", TOKEN, "{}", &answer), 403);
    assert_int_equal(auth_send(auth, admin, "POST", TOKEN, "{}", &answer), 201);
    struct td_api_user user;
    assert_int_equal(td_auth_token_user(auth->auth, &auth->bed.arena,
                                        td_str_from(bed_text(&auth->bed, &answer, "status.token")),
                                        NULL, &user, NULL, NULL),
                     TD_OK);
    assert_true(td_str_equal(user.name, TD_STR("system:serviceaccount:ns:bot")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reviews, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reviews_refuse_other_shapes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_token_request, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
