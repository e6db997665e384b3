/*
 * Shared by admission.c (order of things), admission_plugins.c and admission_limits.c (what is
 * built in), webhooks.c (which webhook wants a request) and webhook_call.c (asking one).
 */
#pragma once

#include "local/admission/admission.h"

/* Built-in plugins; false when *ret refuses. */
bool td_admission_mutate(struct td_api *api, struct td_admission_request *request,
                         struct td_admission_verdict *ret);
bool td_admission_validate(struct td_api *api, const struct td_admission_request *request,
                           struct td_admission_verdict *ret);

/* How a refusal calls the object: its name, or as long as it has none, what its name begins with.
 */
td_str td_admission_name(const struct td_admission_request *request);

/* Limit ranges: defaults of containers, and what is outside the bounds. */
void td_admission_limit_defaults(struct td_api *api, struct td_admission_request *request);
bool td_admission_limit_check(struct td_api *api, const struct td_admission_request *request,
                              struct td_admission_verdict *ret);

/* One webhook of a configuration, read once. */
struct td_webhook_entry {
    td_str name;
    const struct td_json *tree; /* the webhook as written */
    bool is_ignored;            /* failurePolicy Ignore */
    bool has_side_effects;      /* it cannot take part in a dry run */
    bool is_reinvoked;          /* reinvocationPolicy IfNeeded */
    bool is_mutating;
    size_t version; /* of the request's resource, in which it wants to see objects */
    int64_t timeout_seconds;
};

struct td_webhooks; /* the configurations of one phase */

struct td_webhooks *td_webhooks_new(struct td_api *api, enum td_admission_phase phase);
void td_webhooks_free(struct td_webhooks *webhooks);

/* Those whose rules fit the request, in order, copied into its arena; how many there are, which may
 * be more than `max`. */
size_t td_webhooks_match(struct td_webhooks *webhooks, const struct td_admission_request *request,
                         const struct td_webhook_entry **ret, size_t max);

/* Do the labels of the namespace, and those of the object as it is now, fit too? */
bool td_webhooks_select(struct td_webhooks *webhooks, const struct td_webhook_entry *webhook,
                        const struct td_admission_request *request);

/* ---- webhook_call.c ---- */

struct td_webhook_caller; /* connections to webhooks */
struct td_webhook_call;

struct td_webhook_caller *td_webhook_caller_new(struct td_api *api);
void td_webhook_caller_free(struct td_webhook_caller *caller);

struct td_webhook_answer {
    bool is_failed; /* no usable answer; `message` says why */
    bool is_allowed;
    int status;    /* of a refusal; 0: not said */
    td_str reason; /* likewise */
    td_str message;
    const struct td_json *details;
    struct td_json *patch;          /* JSON patch, or NULL */
    const struct td_json *warnings; /* array, or NULL */
};

/* Texts of the answer are in the request's arena. */
typedef void (*td_webhook_fn)(void *context, const struct td_webhook_answer *answer);

/* The request's object is in the webhook's version. NULL when it cannot be asked: *ret says why,
 * and `done` is not called. Else `done` comes once from the loop, unless it is cancelled first. */
struct td_webhook_call *td_webhook_ask(struct td_webhook_caller *caller,
                                       const struct td_webhook_entry *webhook,
                                       const struct td_admission_request *request,
                                       td_webhook_fn done, void *context,
                                       struct td_webhook_answer *ret);
void td_webhook_cancel(struct td_webhook_call *call);
