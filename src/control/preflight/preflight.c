/*
 * All questions that read are sent at once. When they are answered, what depends on them is tried
 * by dry run and the rights are asked for. Then each judge looks at the answers, in the order in
 * which the lines are printed. An answer that did not come, or may not be read, is a judge's
 * business: it says what it could not see.
 */
#include "control/preflight/preflight.h"

#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "control/controllers.h"
#include "control/preflight/preflight_private.h"
#include "control/upstream.h"
#include "kube/client/access.h"

#define PREFLIGHT_FINDINGS_MAX 256
#define PREFLIGHT_ACCOUNT_NAME "tandem"

static void (*const preflight_judges[])(struct td_preflight *preflight) = {
    preflight_judge_server,     preflight_judge_metrics, preflight_judge_definitions,
    preflight_judge_rights,     preflight_judge_parts,   preflight_judge_webhook,
    preflight_judge_horizontal, preflight_judge_keda,    preflight_judge_pods,
};

void preflight_tell(struct td_preflight *preflight, enum td_finding_state state, const char *check,
                    td_str found, td_str remedy)
{
    struct td_finding *finding = td_vec_push(&preflight->findings);
    if (finding) { /* more lines than that are not read */
        *finding =
            (struct td_finding){.state = state, .check = check, .found = found, .remedy = remedy};
    }
}

td_duration preflight_age(const struct td_preflight *preflight, td_str time)
{
    struct td_instant at;
    bool is_read = td_time_parse(time, &at, NULL) == TD_OK;
    return is_read ? td_clock_wall(preflight->options.clock) - td_time_from_instant(at)
                   : TD_TIME_NONE;
}

/* ---- The end ---- */

static void preflight_end(struct td_preflight *preflight)
{
    const struct preflight_answer *version = preflight_answer(preflight, PREFLIGHT_VERSION);
    struct td_findings *result = &preflight->result;
    if (version->code != TD_OK) {
        result->code = version->code;
        result->err = version->err;
    }
    for (size_t i = 0; result->code == TD_OK && i < TD_COUNT(preflight_judges); i++) {
        preflight_judges[i](preflight);
    }
    if (result->code == TD_OK) {
        result->code = td_arena_check(&preflight->arena, &result->err);
    }
    result->items = preflight->findings.items;
    result->count = preflight->findings.count;
    for (size_t i = 0; i < result->count; i++) {
        result->mends += result->items[i].state == TD_FINDING_MEND;
    }
    preflight->fn(preflight->context, result);
}

/* ---- Rights ---- */

static void preflight_access_read(void *context, const struct td_access_result *result)
{
    struct td_preflight *preflight = context;
    preflight->access = NULL;
    preflight->access_error = result->err;
    preflight->missing = td_arena_copy_str(&preflight->arena, result->lines);
    preflight->missing_count = result->missing;
    preflight_end(preflight);
}

/* Those of the service account where it is there, else our own. */
static void preflight_ask_rights(struct td_preflight *preflight)
{
    const struct td_preflight_options *options = &preflight->options;
    const struct td_controllers_options defaults = td_controllers_options_default();
    const td_str leases = TD_STR(TD_UPSTREAM_NAMESPACE);
    struct td_rights_scope scope = {
        .has = options->install.has,
        .replaces_upstream = options->install.replaces_upstream,
        .places = {
            [TD_RIGHT_OWN] = {.namespace = options->install.namespace,
                              .name = defaults.webhook.secret},
            [TD_RIGHT_ELECTION] = {.namespace = leases},
            [TD_RIGHT_STATUS] = {.namespace = leases},
            [TD_RIGHT_STATUS_READ] = {.namespace = leases},
            [TD_RIGHT_UPSTREAM] = {.namespace = leases},
            [TD_RIGHT_SHARDS] = {.is_off = options->install.shards == 0, .namespace = leases},
        }};
    memcpy(scope.features, options->install.features, sizeof(scope.features));
    td_auto_arena turn = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_access_rule *rules;
    preflight->rights_count = td_rights_questions(&turn, &scope, &rules);
    preflight->is_account = preflight_tree(preflight, PREFLIGHT_ACCOUNT) != NULL;
    td_str account = preflight->is_account ? TD_STR(PREFLIGHT_ACCOUNT_NAME) : TD_STR_EMPTY;
    preflight->access =
        td_access_check_account(options->client, options->flow, options->install.namespace, account,
                                rules, preflight->rights_count, preflight_access_read, preflight);
}

/* ---- Answers ---- */

static void preflight_answered(void *context, const struct td_client_reply *reply);

static void preflight_send(struct td_preflight *preflight, enum preflight_question question,
                           const struct td_client_request *request)
{
    struct preflight_answer *answer = &preflight->answers[question];
    struct td_client_request sent = *request;
    sent.flow = preflight->options.flow;
    answer->preflight = preflight;
    answer->is_asked = true;
    preflight->open++;
    answer->call = td_client_send(preflight->options.client, &sent, preflight_answered, answer);
}

/* The next page of the Deployments; false: it was the last. */
static bool preflight_go_on(struct td_preflight *preflight)
{
    const struct td_json *list = preflight_tree(preflight, PREFLIGHT_DEPLOYMENTS);
    preflight_take_parts(preflight, list);
    td_str next = td_json_text(td_json_get(list, TD_STR("metadata")), "continue");
    if (next.len == 0) {
        return false;
    }
    td_auto_buf path = td_buf_capped(TD_API_PATH_BYTES_MAX);
    struct td_client_request request = preflight_read(preflight, PREFLIGHT_DEPLOYMENTS);
    (void)td_buf_append(&path, request.path);
    td_path_add_query(&path, TD_STR("continue"), next);
    request.path = td_buf_str(&path);
    preflight_send(preflight, PREFLIGHT_DEPLOYMENTS, &request);
    return true;
}

static void preflight_try_all(struct td_preflight *preflight)
{
    preflight->is_trying = true;
    preflight->open++; /* none of them may end it before all are sent */
    for (size_t i = PREFLIGHT_READS; i < PREFLIGHT_QUESTIONS; i++) {
        enum preflight_question question = (enum preflight_question)i;
        if (preflight_is_wanted(preflight, question)) {
            const struct td_client_request request = preflight_try(preflight, question);
            preflight_send(preflight, question, &request);
        }
    }
    preflight->open--;
    if (preflight->open == 0) {
        preflight_ask_rights(preflight);
    }
}

static void preflight_answered(void *context, const struct td_client_reply *reply)
{
    struct preflight_answer *answer = context;
    struct td_preflight *preflight = answer->preflight;
    size_t question = (size_t)(answer - preflight->answers);
    const struct td_json_options options = {.copy_strings = true};
    answer->call = NULL;
    answer->code = reply->code;
    answer->status = reply->status;
    answer->err = reply->err;
    answer->warning = td_arena_copy_str(&preflight->arena, reply->warning);
    answer->tree = NULL;
    /* Of a page only what autoscales is kept. */
    bool is_page = question == PREFLIGHT_DEPLOYMENTS;
    struct td_arena *arena = is_page ? &preflight->page : &preflight->arena;
    td_arena_reset(&preflight->page);
    if (reply->code == TD_OK) {
        answer->code = td_json_parse(arena, reply->body, &options, &answer->tree, &answer->err);
    }
    preflight->open--;
    if (is_page && preflight_go_on(preflight)) {
        return;
    }
    if (preflight->open > 0) {
        return;
    }
    bool is_dead = preflight_answer(preflight, PREFLIGHT_VERSION)->code != TD_OK;
    if (preflight->options.is_short || is_dead) {
        preflight_end(preflight);
    } else if (!preflight->is_trying) {
        preflight_try_all(preflight);
    } else {
        preflight_ask_rights(preflight);
    }
}

struct td_preflight *td_preflight_start(const struct td_preflight_options *options,
                                        td_preflight_fn fn, void *context)
{
    struct td_preflight *preflight = td_alloc_zero(1, sizeof(*preflight));
    preflight->options = *options;
    preflight->fn = fn;
    preflight->context = context;
    td_arena_init(&preflight->arena, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&preflight->page, TD_TREE_ARENA_BYTES_MAX);
    preflight->findings.count_max = PREFLIGHT_FINDINGS_MAX;
    preflight->parts.count_max = PREFLIGHT_FINDINGS_MAX;
    for (size_t i = 0; i < PREFLIGHT_READS; i++) {
        enum preflight_question question = (enum preflight_question)i;
        if (preflight_is_wanted(preflight, question)) {
            const struct td_client_request request = preflight_read(preflight, question);
            preflight_send(preflight, question, &request);
        }
    }
    return preflight;
}

void td_preflight_free(struct td_preflight *preflight)
{
    if (!preflight) {
        return;
    }
    for (size_t i = 0; i < PREFLIGHT_QUESTIONS; i++) {
        td_client_cancel(preflight->answers[i].call);
    }
    td_access_cancel(preflight->access);
    td_vec_done(&preflight->findings);
    td_vec_done(&preflight->parts);
    td_arena_done(&preflight->page);
    td_arena_done(&preflight->arena);
    td_free(preflight);
}

/* ---- What is printed ---- */

static const char *finding_state_name(enum td_finding_state state)
{
    static const char *const names[] = {
        [TD_FINDING_OK] = "ok", [TD_FINDING_NOTE] = "note", [TD_FINDING_MEND] = "mend"};
    return names[state];
}

void td_findings_write(const struct td_findings *findings, struct td_buf *out)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct td_finding *one = &findings->items[i];
        (void)td_buf_append_format(out, "%-5s %-11s %.*s%s%.*s\n", finding_state_name(one->state),
                                   one->check, TD_STR_ARG(one->found),
                                   one->remedy.len > 0 ? "; " : "", TD_STR_ARG(one->remedy));
    }
    if (findings->mends > 0) {
        (void)td_buf_append_format(out, "%zu to mend\n", findings->mends);
    } else {
        (void)td_buf_append(out, TD_STR("nothing to mend\n"));
    }
}

struct td_json *td_findings_json(struct td_arena *arena, const struct td_findings *findings)
{
    struct td_json *report = td_json_new_object(arena);
    struct td_json *list = td_json_ensure_array(arena, report, TD_STR("findings"));
    for (size_t i = 0; i < findings->count; i++) {
        const struct td_finding *one = &findings->items[i];
        struct td_json *item = td_json_new_object(arena);
        td_json_set_str(arena, item, TD_STR("state"), td_str_from(finding_state_name(one->state)));
        td_json_set_str(arena, item, TD_STR("check"), td_str_from(one->check));
        td_json_set_str(arena, item, TD_STR("found"), one->found);
        td_json_set_text(arena, item, TD_STR("remedy"), one->remedy);
        td_json_append(list, item);
    }
    td_json_set_int64(arena, report, TD_STR("mends"), (int64_t)findings->mends);
    return report;
}
