/*
 * One review a rule, sent together; the answers are gathered into the lines of a Role in the order
 * of the rules.
 */
#include "kube/client/access.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "kube/quote.h"

enum access_answer { ACCESS_OPEN, ACCESS_ALLOWED, ACCESS_MISSING, ACCESS_UNKNOWN };

struct access_question {
    struct td_access *access;
    struct td_access_rule rule;
    struct td_client_call *call;
    enum access_answer answer;
};

struct td_access {
    struct td_arena memory; /* of rules and questions */
    struct access_question *questions;
    size_t count;
    size_t open;
    td_str namespace; /* of the service account that is asked about */
    td_str account;   /* empty: we ourselves */
    struct td_error err;
    td_access_fn fn;
    void *context;
};

/* apiGroups: ["apps"], resources: ["deployments/scale"], verbs: ["patch"] (Role in namespace "a")
 */
static void access_write_line(const struct td_access_rule *rule, struct td_buf *out)
{
    td_auto_buf resource = td_buf_capped(TD_API_PATH_BYTES_MAX);
    (void)td_buf_append(&resource, rule->resource); /* small by the caps of callers */
    if (rule->subresource.len > 0) {
        (void)td_buf_append_char(&resource, '/');
        (void)td_buf_append(&resource, rule->subresource);
    }
    (void)td_buf_append(out, TD_STR("apiGroups: ["));
    td_quote_write(rule->group, out);
    (void)td_buf_append(out, TD_STR("], resources: ["));
    td_quote_write(td_buf_str(&resource), out);
    if (rule->name.len > 0) {
        (void)td_buf_append(out, TD_STR("], resourceNames: ["));
        td_quote_write(rule->name, out);
    }
    (void)td_buf_append(out, TD_STR("], verbs: ["));
    td_quote_write(rule->verb, out);
    (void)td_buf_append(out, TD_STR("] ("));
    if (rule->namespace.len > 0) {
        (void)td_buf_append(out, TD_STR("Role in namespace "));
        td_quote_write(rule->namespace, out);
    } else {
        (void)td_buf_append(out, TD_STR("ClusterRole"));
    }
    (void)td_buf_append(out, TD_STR(")\n"));
}

static void access_free(struct td_access *access)
{
    for (size_t i = 0; i < access->count; i++) {
        td_client_cancel(access->questions[i].call);
    }
    td_arena_done(&access->memory);
    td_free(access);
}

static void access_end(struct td_access *access)
{
    td_auto_buf lines = td_buf_capped(TD_JSON_BYTES_MAX);
    struct td_access_result result = {.code = access->err.code, .err = access->err};
    for (size_t i = 0; i < access->count; i++) {
        if (access->questions[i].answer == ACCESS_MISSING) {
            access_write_line(&access->questions[i].rule, &lines);
            result.missing++;
        }
    }
    result.lines = td_buf_str(&lines);
    td_access_fn fn = access->fn;
    void *context = access->context;
    access_free(access);
    fn(context, &result);
}

static enum access_answer access_read(td_str body, struct td_error *err)
{
    td_auto_arena turn;
    td_arena_init(&turn, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    if (td_json_parse(&turn, body, NULL, &object, err) != TD_OK) {
        return ACCESS_UNKNOWN;
    }
    const struct td_json *status = td_json_get(object, TD_STR("status"));
    if (!td_json_is(td_json_get(status, TD_STR("allowed")), TD_JSON_TYPE_BOOL)) {
        (void)td_error_set(err, TD_INVALID, "access review: an answer without status.allowed");
        return ACCESS_UNKNOWN;
    }
    return td_json_get_bool(status, TD_STR("allowed"), false) ? ACCESS_ALLOWED : ACCESS_MISSING;
}

static void access_answered(void *context, const struct td_client_reply *reply)
{
    struct access_question *question = context;
    struct td_access *access = question->access;
    struct td_error err = reply->err;
    question->call = NULL;
    question->answer = reply->code == TD_OK ? access_read(reply->body, &err) : ACCESS_UNKNOWN;
    if (question->answer == ACCESS_UNKNOWN && access->err.code == TD_OK) {
        access->err = err;
    }
    td_assert(access->open > 0);
    access->open--;
    if (access->open == 0) {
        access_end(access);
    }
}

/* As the API server names a service account and puts it into groups. */
static void access_name(struct td_arena *turn, const struct td_access *access, struct td_json *spec)
{
    td_str namespace = access->namespace;
    td_json_set_str(turn, spec, TD_STR("user"),
                    td_arena_format(turn, "system:serviceaccount:%.*s:%.*s", TD_STR_ARG(namespace),
                                    TD_STR_ARG(access->account)));
    const td_str groups[] = {
        TD_STR("system:serviceaccounts"),
        td_arena_format(turn, "system:serviceaccounts:%.*s", TD_STR_ARG(namespace)),
        TD_STR("system:authenticated")};
    struct td_json *list = td_json_ensure_array(turn, spec, TD_STR("groups"));
    for (size_t i = 0; i < TD_COUNT(groups); i++) {
        td_json_append(list, td_json_new_string(turn, groups[i]));
    }
}

static void access_ask(struct td_client *client, struct td_client_flow *flow,
                       struct access_question *question)
{
    td_auto_arena turn;
    td_arena_init(&turn, TD_JSON_BYTES_MAX);
    const struct td_access_rule *rule = &question->rule;
    struct td_json *object = td_json_new_object(&turn);
    bool is_self = question->access->account.len == 0;
    td_json_set_str(&turn, object, TD_STR("apiVersion"), TD_STR("authorization.k8s.io/v1"));
    td_json_set_str(&turn, object, TD_STR("kind"),
                    is_self ? TD_STR("SelfSubjectAccessReview") : TD_STR("SubjectAccessReview"));
    struct td_json *spec = td_json_ensure_object(&turn, object, TD_STR("spec"));
    if (!is_self) {
        access_name(&turn, question->access, spec);
    }
    struct td_json *what = td_json_ensure_object(&turn, spec, TD_STR("resourceAttributes"));
    td_json_set_str(&turn, what, TD_STR("verb"), rule->verb);
    td_json_set_str(&turn, what, TD_STR("group"), rule->group);
    td_json_set_str(&turn, what, TD_STR("resource"), rule->resource);
    td_json_set_str(&turn, what, TD_STR("subresource"), rule->subresource);
    td_json_set_str(&turn, what, TD_STR("namespace"), rule->namespace);
    td_json_set_text(&turn, what, TD_STR("name"), rule->name);
    const struct td_client_request request = {
        .flow = flow,
        .method = TD_STR("POST"),
        .path = is_self ? TD_STR("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
                        : TD_STR("/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        .body = td_json_line(&turn, object),
        .is_idempotent = true, /* nothing is kept of a review */
    };
    question->call = td_client_send(client, &request, access_answered, question);
}

struct td_access *td_access_check_account(struct td_client *client, struct td_client_flow *flow,
                                          td_str namespace, td_str account,
                                          const struct td_access_rule *rules, size_t count,
                                          td_access_fn fn, void *context)
{
    td_assert(count > 0);
    td_assert(count <= TD_ACCESS_RULES_MAX);
    struct td_access *access = td_alloc_zero(1, sizeof(*access));
    td_arena_init(&access->memory, TD_JSON_BYTES_MAX);
    access->questions = td_arena_array(&access->memory, struct access_question, count);
    access->namespace = td_arena_copy_str(&access->memory, namespace);
    access->account = td_arena_copy_str(&access->memory, account);
    access->count = count;
    access->open = count;
    access->fn = fn;
    access->context = context;
    for (size_t i = 0; i < count; i++) {
        struct access_question *question = &access->questions[i];
        question->access = access;
        question->rule = (struct td_access_rule){
            .verb = td_arena_copy_str(&access->memory, rules[i].verb),
            .group = td_arena_copy_str(&access->memory, rules[i].group),
            .resource = td_arena_copy_str(&access->memory, rules[i].resource),
            .subresource = td_arena_copy_str(&access->memory, rules[i].subresource),
            .namespace = td_arena_copy_str(&access->memory, rules[i].namespace),
            .name = td_arena_copy_str(&access->memory, rules[i].name),
        };
        access_ask(client, flow, question);
    }
    return access;
}

struct td_access *td_access_check(struct td_client *client, struct td_client_flow *flow,
                                  const struct td_access_rule *rules, size_t count, td_access_fn fn,
                                  void *context)
{
    return td_access_check_account(client, flow, TD_STR_EMPTY, TD_STR_EMPTY, rules, count, fn,
                                   context);
}

void td_access_cancel(struct td_access *access)
{
    if (access) {
        access_free(access);
    }
}
