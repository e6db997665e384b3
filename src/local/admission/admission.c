/*
 * The order of admission: built-in plugins, then webhooks one after another, each when its turn
 * comes by the labels that the object has then. Once a mutating webhook has changed the object
 * there is a second round, as upstream's: the plugins again (a container that was put in wants its
 * defaults), then the webhooks with reinvocationPolicy IfNeeded that were asked before the last
 * change. An object is shown in the version that the webhook's rule names and comes back in the
 * request's. A run without a webhook is over before td_admission_run returns.
 *
 * A run may end inside run_go_on, so nothing touches it behind that call.
 */
#include "local/admission/admission.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/patch/patch.h"
#include "local/admission/admission_private.h"

struct admission_run {
    struct td_admission *admission;
    struct td_admission_request *request;
    td_admission_done_fn done;
    void *context;
    const struct td_webhook_entry *webhooks[TD_WEBHOOKS_MAX]; /* whose rules fit */
    bool was_asked[TD_WEBHOOKS_MAX];
    size_t count;
    size_t next;        /* the webhook to ask */
    size_t last_change; /* one more than the index of the last webhook that changed the object */
    size_t version;     /* of the resource, in which the object is now */
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
                                               const struct td_webhook_entry *webhook,
                                               const struct td_webhook_answer *answer)
{
    td_str why = answer->message.len > 0 ? answer->message : answer->reason;
    return (struct td_admission_verdict){
        .status = answer->status >= 400 && answer->status <= 599 ? answer->status : 400,
        .reason = answer->reason,
        .message = td_arena_format(arena, "admission webhook \"%.*s\" denied the request%s%.*s",
                                   TD_STR_ARG(webhook->name),
                                   why.len > 0 ? ": " : " without explanation", TD_STR_ARG(why)),
        .details = answer->details,
        .is_foreign = true,
    };
}

/* A 500 whatever the failurePolicy says: the answer came, but nothing can be made of it. */
static struct td_admission_verdict run_broken(struct td_arena *arena, td_str message)
{
    return (struct td_admission_verdict){
        .status = 500,
        .reason = TD_STR("InternalError"),
        .message = td_arena_format(arena, "Internal error occurred: %.*s", TD_STR_ARG(message)),
    };
}

static struct td_admission_verdict
run_failure(struct td_arena *arena, const struct td_webhook_entry *webhook, td_str message)
{
    return run_broken(arena, td_arena_format(arena, "failed calling webhook \"%.*s\": %.*s",
                                             TD_STR_ARG(webhook->name), TD_STR_ARG(message)));
}

static void run_warn(struct admission_run *run, const struct td_json *warnings)
{
    for (const struct td_json *w = td_json_first_item(warnings); w; w = w->next) {
        if (w->type == TD_JSON_TYPE_STRING && run->request->warnings->count < TD_API_HEADERS_MAX) {
            td_json_append(run->request->warnings,
                           td_json_new_string(run->request->arena, w->text));
        }
    }
}

/* The object, and what it was, in another version of its resource. Objects of subresources have a
 * kind of their own, which has one version. */
static bool run_convert(struct admission_run *run, size_t version, struct td_admission_verdict *ret)
{
    struct td_admission_request *request = run->request;
    struct td_error err = TD_ERROR_INIT;
    struct td_json *object = request->object;
    struct td_json *old = NULL;
    if (run->version == version) {
        return true;
    }
    int code = object ? td_resource_convert(request->arena, request->at.resource, run->version,
                                            version, object, &object, &err)
                      : TD_OK;
    if (code == TD_OK && request->old) {
        code = td_resource_convert(request->arena, request->at.resource, run->version, version,
                                   td_json_copy(request->arena, request->old, false), &old, &err);
    }
    if (code != TD_OK) {
        *ret = run_broken(request->arena, td_str_from(err.message));
        return false;
    }
    request->object = object;
    request->old = old;
    run->version = version;
    return true;
}

/* False when *ret refuses: a patch that does not fit is no failure to call. */
static bool run_patch(struct admission_run *run, const struct td_webhook_entry *webhook,
                      const struct td_json *patch, struct td_admission_verdict *ret)
{
    struct td_admission_request *request = run->request;
    struct td_json *patched;
    struct td_error err = TD_ERROR_INIT;
    if (!patch || patch->count == 0) {
        return true;
    }
    if (!request->object) {
        *ret = run_broken(request->arena,
                          td_arena_format(request->arena,
                                          "admission webhook \"%.*s\" attempted to modify the "
                                          "object, which is not supported for this operation",
                                          TD_STR_ARG(webhook->name)));
        return false;
    }
    int code = td_patch_json(request->arena, request->object, patch, &patched, &err);
    if (code == TD_OK && !td_json_is(patched, TD_JSON_TYPE_OBJECT)) {
        code = td_error_set(&err, TD_INVALID, "the patched text is not an object");
    }
    if (code == TD_OK) {
        code = td_arena_check(request->arena, &err);
    }
    if (code != TD_OK) {
        *ret = run_broken(request->arena, td_str_from(err.message));
        return false;
    }
    if (!td_json_equal(patched, request->object)) {
        run->last_change = run->next;
    }
    request->object = patched;
    return true;
}

/* What an answer, or the lack of one, means; false when *ret refuses. */
static bool run_take(struct admission_run *run, const struct td_webhook_answer *answer,
                     struct td_admission_verdict *ret)
{
    const struct td_webhook_entry *webhook = run->webhooks[run->next - 1];
    struct td_arena *arena = run->request->arena;
    if (answer->is_failed) {
        *ret = run_failure(arena, webhook, answer->message);
        return webhook->is_ignored;
    }
    run_warn(run, answer->warnings);
    if (!answer->is_allowed) {
        *ret = run_refusal(arena, webhook, answer);
        return false;
    }
    return run_patch(run, webhook, answer->patch, ret);
}

static void run_go_on(struct admission_run *run);

static void run_answered(void *context, const struct td_webhook_answer *answer)
{
    struct admission_run *run = context;
    struct td_admission_verdict verdict;
    run->call = NULL;
    if (run_take(run, answer, &verdict)) {
        run_go_on(run);
    } else {
        run_finish(run, &verdict);
    }
}

/* The second round: false when there is none, or when *ret refuses. */
static bool run_again(struct admission_run *run, struct td_admission_verdict *ret)
{
    struct td_admission_request *request = run->request;
    if (run->last_change == 0 || run->is_second || !run_convert(run, request->at.version, ret)) {
        return false;
    }
    run->is_second = true;
    const struct td_json *before = td_json_copy(request->arena, request->object, false);
    if (!td_admission_mutate(run->admission->api, request, ret)) {
        return false;
    }
    if (td_json_equal(before, request->object)) {
        run->count = run->last_change - 1; /* the last one saw what it made itself */
    }
    run->next = 0;
    return true;
}

/* The next webhook to ask. False when there is none, or when *ret refuses. */
static bool run_next(struct admission_run *run, const struct td_webhook_entry **ret_webhook,
                     struct td_admission_verdict *ret)
{
    struct td_webhooks *webhooks = run->request->phase == TD_ADMISSION_MUTATING
                                       ? run->admission->mutating
                                       : run->admission->validating;
    do {
        while (run->next < run->count) {
            size_t at = run->next++;
            const struct td_webhook_entry *webhook = run->webhooks[at];
            bool is_due = !run->is_second || (run->was_asked[at] && webhook->is_reinvoked);
            if (is_due && td_webhooks_select(webhooks, webhook, run->request)) {
                run->was_asked[at] = true;
                *ret_webhook = webhook;
                return run_convert(run, webhook->version, ret);
            }
        }
    } while (run_again(run, ret));
    return false;
}

static void run_go_on(struct admission_run *run)
{
    struct td_admission_verdict verdict = {.status = 0};
    const struct td_webhook_entry *webhook;
    while (run_next(run, &webhook, &verdict)) {
        if (run->request->is_dry_run && webhook->has_side_effects) {
            verdict = (struct td_admission_verdict){
                .status = 400,
                .reason = TD_STR("BadRequest"),
                .message = td_arena_format(run->request->arena,
                                           "admission webhook \"%.*s\" does not support dry run",
                                           TD_STR_ARG(webhook->name)),
                .is_foreign = true,
            };
            break;
        }
        struct td_webhook_answer failure;
        run->call = td_webhook_ask(run->admission->caller, webhook, run->request, run_answered, run,
                                   &failure);
        if (run->call) {
            return;
        }
        if (!run_take(run, &failure, &verdict)) {
            break;
        }
        verdict = (struct td_admission_verdict){.status = 0}; /* it may be ignored */
    }
    if (verdict.status == 0) {
        (void)run_convert(run, run->request->at.version, &verdict); /* then the verdict says so */
    }
    run_finish(run, &verdict);
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
    const struct td_webhook_entry *wanted[TD_WEBHOOKS_MAX];
    size_t count = td_webhooks_match(webhooks, request, wanted, TD_WEBHOOKS_MAX);
    if (count == 0) {
        return true;
    }
    if (count > TD_WEBHOOKS_MAX) { /* leaving some out would let through what they refuse */
        *ret =
            run_broken(request->arena,
                       td_arena_format(request->arena, "more than %d webhooks match this request",
                                       TD_WEBHOOKS_MAX));
        return true;
    }
    struct admission_run *run = td_alloc_zero(1, sizeof(*run));
    run->admission = admission;
    run->request = request;
    run->done = done;
    run->context = context;
    run->count = count;
    run->version = request->at.version;
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
