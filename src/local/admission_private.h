/*
 * Shared by admission.c (order of things), admission_plugins.c and admission_limits.c (what is
 * built in), webhooks.c (which webhook wants a request) and webhook_call.c (asking one).
 */
#pragma once

#include "local/admission.h"

struct td_collection;

/* Built-in plugins; false when *ret refuses. */
bool td_admission_mutate(struct td_api *api, struct td_admission_request *request,
                         struct td_admission_verdict *ret);
bool td_admission_validate(struct td_api *api, const struct td_admission_request *request,
                           struct td_admission_verdict *ret);

/* Limit ranges: defaults of containers, and what is outside the bounds. */
void td_admission_limit_defaults(struct td_api *api, struct td_admission_request *request);
bool td_admission_limit_check(struct td_api *api, const struct td_admission_request *request,
                              struct td_admission_verdict *ret);

/* One webhook of a configuration, read once. */
struct td_webhook {
    td_str name;
    const struct td_json *tree; /* the webhook as written */
    bool is_ignored;            /* failurePolicy Ignore */
    bool has_side_effects;      /* it cannot take part in a dry run */
    bool is_reinvoked;          /* reinvocationPolicy IfNeeded */
    int64_t timeout_seconds;
};

struct td_webhooks; /* the configurations of one phase */

struct td_webhooks *td_webhooks_new(struct td_api *api, enum td_admission_phase phase);
void td_webhooks_free(struct td_webhooks *webhooks);

/* Those that want the request, in order, copied into its arena. */
size_t td_webhooks_match(struct td_webhooks *webhooks, const struct td_admission_request *request,
                         const struct td_webhook **ret, size_t max);

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
    struct td_json *patch;    /* JSON patch, or NULL */
    struct td_json *warnings; /* array, or NULL */
};

/* Texts of the answer are in the request's arena. */
typedef void (*td_webhook_fn)(void *context, const struct td_webhook_answer *answer);

struct td_webhook_call *td_webhook_ask(struct td_webhook_caller *caller,
                                       const struct td_webhook *webhook,
                                       const struct td_admission_request *request,
                                       td_webhook_fn done, void *context);
void td_webhook_cancel(struct td_webhook_call *call);
