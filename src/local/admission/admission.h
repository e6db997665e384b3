/*
 * Admission between decoding and storing: the built-in plugins that users notice (namespace
 * lifecycle, limit ranges, service accounts) and the webhooks of MutatingWebhookConfiguration and
 * ValidatingWebhookConfiguration, called over TLS by URL or Service. Without a webhook that
 * matches, everything is decided before td_admission_run returns; else `done` is called later from
 * the loop. The object is changed in place (its tree replaced) by mutating ones.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"
#include "local/api/api.h"
#include "local/resources/resource.h"

struct td_admission;

enum td_admission_phase { TD_ADMISSION_MUTATING, TD_ADMISSION_VALIDATING };

struct td_admission_request {
    enum td_admission_phase phase;
    const char *operation; /* "CREATE", "UPDATE", "DELETE", "CONNECT" */
    struct td_resource_at at;
    td_str subresource;
    td_str ns;
    td_str name; /* may be empty on create with generateName */
    const struct td_api_user *user;
    bool is_dry_run;
    const char *options_kind; /* "CreateOptions"; NULL: a webhook is shown none */
    td_str field_manager;     /* of the options, like the next */
    td_str field_validation;
    struct td_arena *arena;    /* of the call; lives until `done` */
    struct td_json *object;    /* NULL on delete; replaced by mutating webhooks */
    const struct td_json *old; /* NULL on create */
    struct td_json *warnings;  /* array of strings; appended to */
};

/* What came of it. status 0: admitted. Else the HTTP status, reason and message to answer with. */
struct td_admission_verdict {
    int status;
    td_str reason; /* may be empty */
    td_str message;
    const struct td_json *details; /* that a webhook gave, or causes of our own, or NULL */
    bool is_foreign;               /* no details but those given: the words are a webhook's */
};

typedef void (*td_admission_done_fn)(void *context, const struct td_admission_verdict *verdict);

struct td_admission *td_admission_new(struct td_api *api);
void td_admission_free(struct td_admission *admission);

/* True: decided at once, *ret is filled and `done` is not called. False: `done` comes later, unless
 * td_admission_cancel(context) comes first. */
bool td_admission_run(struct td_admission *admission, struct td_admission_request *request,
                      struct td_admission_verdict *ret, td_admission_done_fn done, void *context);
void td_admission_cancel(struct td_admission *admission, void *context);
