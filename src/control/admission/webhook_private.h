/*
 * What the files of the webhook share. Each part has one owner: the index of VPAs
 * (webhook_index.c), a review (webhook_review*.c), the server (webhook_serve.c), the certificates
 * in their Secret (webhook_identity.c), the registration (webhook_register.c) and the probe with
 * the heartbeat that depends on it (webhook_probe.c). webhook.c puts them together.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "base/metrics.h"
#include "control/admission/webhook.h"
#include "control/informers/informers.h"
#include "kube/fielderror.h"

struct webhook_identity;
struct webhook_index;
struct webhook_probe;
struct webhook_registration;
struct webhook_server;
struct webhook_siblings;
struct td_vpa;

struct webhook_metrics {
    struct td_metric_family *latency; /* admission_latency_seconds */
    struct td_metric_family *steps;   /* execution_latency_seconds */
    struct td_metric_family *undecided;
    struct td_metric_family *siblings;
    struct td_metric_series *pods[2]; /* not applied, applied */
    struct td_metric_series *mutates;
    struct td_metric_series *expiry;
};

struct webhook_follower {
    void (*fn)(void *context, struct ssl_ctx_st *tls);
    void *context;
};

struct td_webhook {
    struct td_webhook_options options; /* texts are in `texts` */
    struct td_arena texts;
    td_str url;
    struct td_arena turn; /* of one review */
    struct webhook_index *index;
    struct webhook_siblings *siblings;
    struct webhook_server *server;             /* NULL: without a server */
    struct webhook_identity *identity;         /* NULL likewise */
    struct webhook_registration *registration; /* NULL: --register-webhook=false */
    struct webhook_probe *probe;
    struct webhook_metrics metrics;
    struct webhook_follower followers[2]; /* the page, and the server of metrics */
    size_t follower_count;
};

/* Wall time for certificates. */
struct td_instant webhook_certificate_now(const struct td_webhook *webhook);

/* ---- webhook_metrics.c ---- */

void webhook_metrics_init(struct td_webhook *webhook);
td_duration webhook_metrics_step(struct td_webhook *webhook, const char *step, td_duration since);
void webhook_metrics_undecided(struct td_webhook *webhook, const char *reason);
/* What siblings were judged by: "list" or "informer". */
void webhook_metrics_siblings(struct td_webhook *webhook, const char *source);

/* ---- webhook_index.c ---- */

struct webhook_index *webhook_index_new(struct td_informers *informers, bool counts_hvpas);
void webhook_index_free(struct webhook_index *index);
/* Is there a VPA, or an Hvpa, in the namespace at all? */
bool webhook_index_has(const struct webhook_index *index, td_str namespace);
/* The VPAs that name a target, by kind and name, decoded into the arena. */
size_t webhook_index_find(const struct webhook_index *index, struct td_arena *arena,
                          td_str namespace, td_str kind, td_str name,
                          const struct td_vpa *const **ret);

/* ---- webhook_review.c ---- */

/* What a review waits for, as far as that can be asked without the review. Texts are in the arena
 * of the review, or wherever they were copied to. */
enum webhook_question_kind {
    WEBHOOK_ASKS_REVIEW, /* only the review knows */
    WEBHOOK_ASKS_OWNER,  /* the topmost controller of a pod's owner */
    WEBHOOK_ASKS_TARGET, /* the targets of the VPAs on that controller */
};
struct webhook_question {
    enum webhook_question_kind kind;
    struct td_controller controller;
};

/* How a review is tried. */
struct webhook_attempt {
    bool is_last;      /* it cannot wait any longer */
    bool can_wait;     /* it could have: a caller in this process needs its answer at
                          once */
    td_duration since; /* when the review came; machine's time */
    struct webhook_question *question; /* out, when it waits; NULL: not wanted */
};

/* One review under way. */
struct webhook_review {
    struct td_webhook *webhook;
    struct td_arena *arena;
    const struct webhook_attempt *attempt;

    /* The request. */
    td_str uid;
    td_str group;
    td_str resource;
    td_str kind;       /* as the client named it */
    td_str kind_group; /* likewise */
    td_str namespace;
    td_str name;
    bool is_update;
    bool is_dry_run;
    struct td_json *object;
    const struct td_json *old; /* NULL on create */

    /* The answer. */
    bool waits; /* ask again: something is not known yet */
    bool is_error;
    bool is_too_large; /* to be judged at all */
    bool is_refused;
    struct td_json *patches;  /* NULL: none */
    struct td_json *warnings; /* array, or NULL */
    struct td_json *status;   /* of a refusal */
    const char *counted_as;   /* "Pod", "VPA", or NULL */
};

/* Answers, or says TD_BUSY when it is not the last try and something is not known yet, or TD_LIMIT
 * of a review that is larger than any real one. */
int webhook_review_try(struct td_webhook *webhook, td_str body,
                       const struct webhook_attempt *attempt, struct td_buf *answer);

/* Refuse with a Status of HTTP code `code`. */
void webhook_review_refuse(struct webhook_review *review, int code, const char *reason,
                           td_str message);
/* Refuse with a cause for each error (422). */
void webhook_review_refuse_fields(struct webhook_review *review,
                                  const struct td_field_errors *errors);
void webhook_review_warn(struct webhook_review *review, td_str text);
/* Admitted as it is, and counted. */
void webhook_review_undecided(struct webhook_review *review, const char *reason);
/* The same when it is the last try, else asked again later, when the answer to the question may be
 * another. */
void webhook_review_wait(struct webhook_review *review, const char *reason,
                         const struct webhook_question *question);

/* ---- webhook_review_pod.c ---- */

#define WEBHOOK_PROBE_KEY "tandem.dev/webhook-probe" /* label and annotation of probe pods */
#define WEBHOOK_PROBE_ANSWER "mutated"

void webhook_review_pod(struct webhook_review *review);
/* Would a review that waits for this wait on? */
bool webhook_question_is_open(struct td_webhook *webhook, const struct webhook_question *question);

/* ---- webhook_review_object.c ---- */

void webhook_review_vpa(struct webhook_review *review);
void webhook_review_hpa(struct webhook_review *review);
void webhook_review_hvpa(struct webhook_review *review);

/* ---- webhook_siblings.c ---- */

/* Trees of other objects of the kind, with metadata and spec, in the arena of the review. */
struct webhook_sibling_list {
    struct td_json **items;
    size_t count;
    size_t cap;
    size_t bytes; /* of their texts */
};

struct webhook_siblings *webhook_siblings_new(struct td_webhook *webhook);
void webhook_siblings_free(struct webhook_siblings *siblings);
/* The VPAs or Hvpas of the namespace that name the same target by kind and name, as they are
 * stored now. TD_BUSY: that is being asked for, and the review waits. */
int webhook_siblings_get(struct webhook_review *review, enum td_informer_kind kind,
                         struct webhook_sibling_list *ret);
/* The object of the review is about to be stored. */
void webhook_siblings_admitted(struct webhook_review *review, enum td_informer_kind kind);

/* ---- webhook_serve.c ---- */

struct ssl_ctx_st;

int webhook_server_new(struct td_webhook *webhook, struct ssl_ctx_st *tls,
                       struct webhook_server **ret, struct td_error *err);
void webhook_server_free(struct webhook_server *server); /* NULL is accepted, as below */
uint16_t webhook_server_port(const struct webhook_server *server);
void webhook_server_set_tls(struct webhook_server *server, struct ssl_ctx_st *tls);
/* Something became known: those that wait may be answered. */
void webhook_server_retry(struct webhook_server *server);

/* ---- webhook_identity.c ---- */

/* A certificate to begin with, until the Secret is read: no bundle has its authority. */
int webhook_identity_first(struct td_webhook *webhook, struct ssl_ctx_st **ret,
                           struct td_error *err);
int webhook_identity_new(struct td_webhook *webhook, struct webhook_identity **ret,
                         struct td_error *err);
void webhook_identity_start(struct webhook_identity *identity);
void webhook_identity_free(struct webhook_identity *identity);
/* The authorities to be trusted, PEM; empty: not known yet. */
td_str webhook_identity_bundle(const struct webhook_identity *identity);

/* ---- webhook_register.c ---- */

int webhook_registration_new(struct td_webhook *webhook, struct webhook_registration **ret,
                             struct td_error *err);
void webhook_registration_start(struct webhook_registration *registration);
void webhook_registration_free(struct webhook_registration *registration);
/* The bundle changed. */
void webhook_registration_check(struct webhook_registration *registration);
/* Is it at the server as it should be, but for a bundle that is being renewed? */
bool webhook_registration_is_right(const struct webhook_registration *registration);
/* And is the bundle there that webhook_identity_bundle has? */
bool webhook_registration_is_current(const struct webhook_registration *registration);
void webhook_registration_remove(struct webhook_registration *registration,
                                 void (*done)(void *context), void *context);
/* Why it is not there, as a sentence; empty: not known. */
td_str webhook_registration_problem(const struct webhook_registration *registration);

/* ---- webhook_register_object.c ---- */

enum webhook_configuration { WEBHOOK_MUTATING, WEBHOOK_VALIDATING, WEBHOOK_CONFIGURATIONS };

td_str webhook_configuration_name(const struct td_webhook *webhook,
                                  enum webhook_configuration which);
td_str webhook_configuration_plural(enum webhook_configuration which);
/* The object as it should be, every default written out. */
struct td_json *webhook_configuration_make(struct td_arena *arena, const struct td_webhook *webhook,
                                           enum webhook_configuration which, td_str bundle_pem);
/* Do the labels and webhooks of `found` say the same? */
bool webhook_configuration_is_same(const struct td_json *wanted, const struct td_json *found);

/* ---- webhook_probe.c ---- */

struct webhook_probe *webhook_probe_new(struct td_webhook *webhook);
void webhook_probe_start(struct webhook_probe *probe);
void webhook_probe_stop(struct webhook_probe *probe);
void webhook_probe_free(struct webhook_probe *probe);
/* The registration came to be right, or is not any more. */
void webhook_probe_registered(struct webhook_probe *probe);
td_str webhook_probe_problem(const struct webhook_probe *probe);
bool webhook_probe_is_proved(struct webhook_probe *probe, td_duration since);
