/*
 * The order of admission: built-in plugins, then webhooks one after another. Mutating ones whose
 * reinvocationPolicy is IfNeeded are asked once more when a later one changed the object. A run
 * without a webhook is over before td_admission_run returns.
 */
#include "local/admission.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/patch.h"
#include "local/admission_private.h"

struct admission_run {
    struct td_admission *admission;
    struct td_admission_request *request;
    td_admission_done_fn done;
    void *context;
    const struct td_webhook *webhooks[TD_WEBHOOKS_MAX];
    size_t count;
    size_t next;        /* the webhook to ask */
    size_t last_change; /* one more than the index of the last webhook that changed the object */
    bool is_second;     /* the round of those that are asked again */
    bool is_starting;   /* td_admission_run has not returned */
    bool is_over;       /* during is_starting: the verdict below */
    struct td_admission_verdict verdict;
    struct td_webhook_call *call; /* in progress, or NULL */
    struct admission_run *following;
    struct admission_run *preceding;
};

struct td_admission {
    struct td_api *api;
    struct td_webhooks *mutating;
    struct td_webhooks *validating;
    struct td_webhook_caller *caller;
    struct admission_run *runs; /* that wait */
};

struct td_admission *td_admission_new(struct td_api *api)
{
    struct td_admission *admission = td_alloc_zero(1, sizeof(*admission));
    admission->api = api;
    admission->mutating = td_webhooks_new(api, TD_ADMISSION_MUTATING);
    admission->validating = td_webhooks_new(api, TD_ADMISSION_VALIDATING);
    admission->caller = td_webhook_caller_new(api);
    return admission;
}

static void run_free(struct admission_run *run)
{
    struct td_admission *admission = run->admission;
    if (run->call) {
        td_webhook_cancel(run->call);
    }
    if (run->following) {
        run->following->preceding = run->preceding;
    }
    if (run->preceding) {
        run->preceding->following = run->following;
    } else {
        admission->runs = run->following;
    }
    td_free(run);
}

void td_admission_free(struct td_admission *admission)
{
    if (!admission) {
        return;
    }
    while (admission->runs) {
        run_free(admission->runs);
    }
    td_webhook_caller_free(admission->caller);
    td_webhooks_free(admission->mutating);
    td_webhooks_free(admission->validating);
    td_free(admission);
}

static void run_finish(struct admission_run *run, const struct td_admission_verdict *verdict)
{
    if (run->is_starting) {
        run->is_over = true;
        run->verdict = *verdict;
        return;
    }
    td_admission_done_fn done = run->done;
    void *context = run->context;
    struct td_admission_verdict copy = *verdict;
    run_free(run);
    done(context, &copy);
}

/* A webhook that refused, in upstream's words. */
static struct td_admission_verdict run_refusal(struct td_arena *arena,
                                               const struct td_webhook *webhook,
                                               const struct td_webhook_answer *answer)
{
    td_str message =
        answer->message.len > 0
            ? td_arena_format(arena, "admission webhook \"%.*s\" denied the request: %.*s",
                              TD_STR_ARG(webhook->name), TD_STR_ARG(answer->message))
            : td_arena_format(arena,
                              "admission webhook \"%.*s\" denied the request without explanation",
                              TD_STR_ARG(webhook->name));
    bool is_error = answer->status >= 400 && answer->status <= 599;
    return (struct td_admission_verdict){
        .status = is_error ? answer->status : 403,
        .reason = answer->reason.len > 0 ? answer->reason : TD_STR("Forbidden"),
        .message = message,
    };
}

static struct td_admission_verdict run_failure(struct td_arena *arena,
                                               const struct td_webhook *webhook, td_str message)
{
    return (struct td_admission_verdict){
        .status = 500,
        .reason = TD_STR("InternalError"),
        .message = td_arena_format(arena,
                                   "Internal error occurred: failed calling webhook \"%.*s\": "
                                   "failed to call webhook: %.*s",
                                   TD_STR_ARG(webhook->name), TD_STR_ARG(message)),
    };
}

static void run_warn(struct admission_run *run, const struct td_json *warnings)
{
    for (const struct td_json *w = warnings ? warnings->first : NULL; w; w = w->next) {
        if (w->type == TD_JSON_TYPE_STRING && run->request->warnings->count < TD_API_HEADERS_MAX) {
            td_json_append(run->request->warnings,
                           td_json_new_string(run->request->arena, w->text));
        }
    }
}

/* False when the patch cannot be applied; *ret says so. */
static bool run_patch(struct admission_run *run, const struct td_webhook *webhook,
                      const struct td_json *patch, td_str *ret)
{
    struct td_json *patched;
    struct td_error err = TD_ERROR_INIT;
    if (!patch || patch->count == 0 || run->request->phase != TD_ADMISSION_MUTATING ||
        !run->request->object) {
        return true;
    }
    if (td_patch_json(run->request->arena, run->request->object, patch, &patched, &err) != TD_OK ||
        !td_json_is(patched, TD_JSON_TYPE_OBJECT)) {
        *ret = td_arena_format(run->request->arena, "its patch cannot be applied: %s", err.message);
        return false;
    }
    if (!td_json_equal(patched, run->request->object)) {
        run->last_change = run->next;
    }
    (void)webhook;
    run->request->object = patched;
    return true;
}

static void run_go_on(struct admission_run *run);

static void run_answered(void *context, const struct td_webhook_answer *answer)
{
    struct admission_run *run = context;
    const struct td_webhook *webhook = run->webhooks[run->next - 1];
    struct td_arena *arena = run->request->arena;
    td_str problem = answer->message;
    run->call = NULL;
    run_warn(run, answer->warnings);
    if (!answer->is_failed && !answer->is_allowed) {
        struct td_admission_verdict verdict = run_refusal(arena, webhook, answer);
        run_finish(run, &verdict);
        return;
    }
    bool is_failed = answer->is_failed || !run_patch(run, webhook, answer->patch, &problem);
    if (is_failed && !webhook->is_ignored) {
        struct td_admission_verdict verdict = run_failure(arena, webhook, problem);
        run_finish(run, &verdict);
        return;
    }
    run_go_on(run);
}

/* The next webhook to ask, or false when all were. */
static bool run_next(struct admission_run *run, const struct td_webhook **ret)
{
    while (run->next < run->count || !run->is_second) {
        if (run->next == run->count) {
            if (run->request->phase != TD_ADMISSION_MUTATING) {
                return false;
            }
            run->is_second = true; /* those before the last change may want to see it */
            run->count = run->last_change > 0 ? run->last_change - 1 : 0;
            run->next = 0;
            continue;
        }
        const struct td_webhook *webhook = run->webhooks[run->next++];
        if (!run->is_second || webhook->is_reinvoked) {
            *ret = webhook;
            return true;
        }
    }
    return false;
}

static void run_go_on(struct admission_run *run)
{
    static const struct td_admission_verdict admitted = {.status = 0};
    const struct td_webhook *webhook;
    if (!run_next(run, &webhook)) {
        run_finish(run, &admitted);
        return;
    }
    if (run->request->is_dry_run && webhook->has_side_effects) {
        const struct td_admission_verdict verdict = {
            .status = 400,
            .reason = TD_STR("BadRequest"),
            .message = td_arena_format(run->request->arena,
                                       "admission webhook \"%.*s\" does not support dry run",
                                       TD_STR_ARG(webhook->name)),
        };
        run_finish(run, &verdict);
        return;
    }
    run->call = td_webhook_ask(run->admission->caller, webhook, run->request, run_answered, run);
}

static bool run_plugins(struct td_admission *admission, struct td_admission_request *request,
                        struct td_admission_verdict *ret)
{
    return request->phase == TD_ADMISSION_MUTATING
               ? td_admission_mutate(admission->api, request, ret)
               : td_admission_validate(admission->api, request, ret);
}

bool td_admission_run(struct td_admission *admission, struct td_admission_request *request,
                      struct td_admission_verdict *ret, td_admission_done_fn done, void *context)
{
    *ret = (struct td_admission_verdict){.status = 0};
    if (!run_plugins(admission, request, ret)) {
        return true;
    }
    struct td_webhooks *webhooks =
        request->phase == TD_ADMISSION_MUTATING ? admission->mutating : admission->validating;
    const struct td_webhook *wanted[TD_WEBHOOKS_MAX];
    size_t count = td_webhooks_match(webhooks, request, wanted, TD_WEBHOOKS_MAX);
    if (count == 0) {
        return true;
    }
    struct admission_run *run = td_alloc_zero(1, sizeof(*run));
    run->admission = admission;
    run->request = request;
    run->done = done;
    run->context = context;
    run->count = count;
    run->is_starting = true;
    for (size_t i = 0; i < count; i++) {
        run->webhooks[i] = wanted[i];
    }
    run->following = admission->runs;
    if (admission->runs) {
        admission->runs->preceding = run;
    }
    admission->runs = run;
    run_go_on(run);
    run->is_starting = false;
    if (run->is_over) {
        *ret = run->verdict;
        run_free(run);
        return true;
    }
    return false;
}

void td_admission_cancel(struct td_admission *admission, void *context)
{
    for (struct admission_run *run = admission->runs; run; run = run->following) {
        if (run->context == context) {
            run_free(run);
            return;
        }
    }
}
