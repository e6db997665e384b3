/*
 * What the files of the webhook share. Each part has one owner: the index of VPAs (hook_index.c),
 * a review (hook_review*.c), the server (hook_serve.c), the certificates in their Secret
 * (hook_identity.c), the registration (hook_register.c) and the probe with the heartbeat that
 * depends on it (hook_probe.c). hook.c puts them together.
 */
#pragma once

#include "api/fielderror.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "control/admission/webhook.h"
#include "control/sight.h"
#include "control/tally.h"

struct hook_identity;
struct hook_index;
struct hook_probe;
struct hook_registration;
struct hook_server;
struct hook_siblings;
struct td_vpa;

struct hook_tallies {
    struct td_tally_family *latency; /* admission_latency_seconds */
    struct td_tally_family *steps;   /* execution_latency_seconds */
    struct td_tally_family *undecided;
    struct td_tally_family *siblings;
    struct td_tally_series *pods[2]; /* not applied, applied */
    struct td_tally_series *mutates;
    struct td_tally_series *expiry;
};

struct td_hook {
    struct td_hook_options options; /* texts are in `texts` */
    struct td_arena texts;
    td_str url;
    struct td_arena turn; /* of one review */
    struct hook_index *index;
    struct hook_siblings *siblings;
    struct hook_server *server;             /* NULL: nobody listens */
    struct hook_identity *identity;         /* NULL likewise */
    struct hook_registration *registration; /* NULL: --register-webhook=false */
    struct hook_probe *probe;
    struct hook_tallies tallies;
};

/* Wall time for certificates. */
struct td_instant hook_certificate_now(const struct td_hook *hook);

/* ---- hook_tallies.c ---- */

void hook_tallies_init(struct td_hook *hook);
td_duration hook_tally_step(struct td_hook *hook, const char *step, td_duration since);
void hook_tally_undecided(struct td_hook *hook, const char *reason);
/* What siblings were judged by: "list" or "informer". */
void hook_tally_siblings(struct td_hook *hook, const char *source);

/* ---- hook_index.c ---- */

struct hook_index *hook_index_new(struct td_sight *sight, bool counts_hvpas);
void hook_index_free(struct hook_index *index);
/* Is there a VPA, or an Hvpa, in the namespace at all? */
bool hook_index_has(const struct hook_index *index, td_str namespace);
/* The VPAs that name a target, by kind and name, decoded into the arena. */
size_t hook_index_find(const struct hook_index *index, struct td_arena *arena, td_str namespace,
                       td_str kind, td_str name, const struct td_vpa *const **ret);

/* ---- hook_review.c ---- */

/* How a review is tried. */
struct hook_attempt {
    bool is_last;      /* it cannot wait any longer */
    bool can_wait;     /* it could have: a caller in this process needs its answer at once */
    td_duration since; /* when the review came; machine's time */
};

/* One review under way. */
struct hook_review {
    struct td_hook *hook;
    struct td_arena *arena;
    const struct hook_attempt *attempt;

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
int hook_review_try(struct td_hook *hook, td_str body, const struct hook_attempt *attempt,
                    struct td_buf *answer);

/* Refuse with a Status of HTTP code `code`. */
void hook_review_refuse(struct hook_review *review, int code, const char *reason, td_str message);
/* Refuse with a cause for each error (422). */
void hook_review_refuse_fields(struct hook_review *review, const struct td_field_errors *errors);
void hook_review_warn(struct hook_review *review, td_str text);
/* Admitted as it is, and counted. */
void hook_review_undecided(struct hook_review *review, const char *reason);
/* The same when it is the last try, else asked again later. */
void hook_review_wait(struct hook_review *review, const char *reason);

/* ---- hook_review_pod.c ---- */

#define HOOK_PROBE_KEY "tandem.dev/webhook-probe" /* label and annotation of probe pods */
#define HOOK_PROBE_ANSWER "mutated"

void hook_review_pod(struct hook_review *review);

/* ---- hook_review_object.c ---- */

void hook_review_vpa(struct hook_review *review);
void hook_review_hpa(struct hook_review *review);
void hook_review_hvpa(struct hook_review *review);

/* ---- hook_siblings.c ---- */

/* Trees of other objects of the kind, with metadata and spec, in the arena of the review. */
struct hook_sibling_list {
    struct td_json **items;
    size_t count;
    size_t cap;
    size_t bytes; /* of their texts */
};

struct hook_siblings *hook_siblings_new(struct td_hook *hook);
void hook_siblings_free(struct hook_siblings *siblings);
/* The VPAs or Hvpas of the namespace that name the same target by kind and name, as they are
 * stored now. TD_BUSY: that is being asked for, and the review waits. */
int hook_siblings_get(struct hook_review *review, enum td_sight_kind kind,
                      struct hook_sibling_list *ret);
/* The object of the review is about to be stored. */
void hook_siblings_admitted(struct hook_review *review, enum td_sight_kind kind);

/* ---- hook_serve.c ---- */

struct ssl_ctx_st;

int hook_server_new(struct td_hook *hook, struct ssl_ctx_st *tls, struct hook_server **ret,
                    struct td_error *err);
void hook_server_free(struct hook_server *server); /* NULL is accepted, as below */
uint16_t hook_server_port(const struct hook_server *server);
void hook_server_set_tls(struct hook_server *server, struct ssl_ctx_st *tls);
/* Something became known: those that wait may be answered. */
void hook_server_retry(struct hook_server *server);

/* ---- hook_identity.c ---- */

/* A certificate to begin with, until the Secret is read: nobody trusts it. */
int hook_identity_first(struct td_hook *hook, struct ssl_ctx_st **ret, struct td_error *err);
int hook_identity_new(struct td_hook *hook, struct hook_identity **ret, struct td_error *err);
void hook_identity_start(struct hook_identity *identity);
void hook_identity_free(struct hook_identity *identity);
/* The authorities to be trusted, PEM; empty: not known yet. */
td_str hook_identity_bundle(const struct hook_identity *identity);

/* ---- hook_register.c ---- */

int hook_registration_new(struct td_hook *hook, struct hook_registration **ret,
                          struct td_error *err);
void hook_registration_start(struct hook_registration *registration);
void hook_registration_free(struct hook_registration *registration);
/* The bundle changed. */
void hook_registration_check(struct hook_registration *registration);
/* Is it at the server as it should be, but for a bundle that is being renewed? */
bool hook_registration_is_right(const struct hook_registration *registration);
/* And is the bundle there that hook_identity_bundle has? */
bool hook_registration_is_current(const struct hook_registration *registration);
void hook_registration_remove(struct hook_registration *registration, void (*done)(void *context),
                              void *context);
/* Why it is not there, for people; empty: not known. */
td_str hook_registration_problem(const struct hook_registration *registration);

/* ---- hook_register_object.c ---- */

enum hook_configuration { HOOK_MUTATING, HOOK_VALIDATING, HOOK_CONFIGURATIONS };

td_str hook_configuration_name(enum hook_configuration which);
td_str hook_configuration_plural(enum hook_configuration which);
/* The object as it should be, every default written out. */
struct td_json *hook_configuration_make(struct td_arena *arena, const struct td_hook *hook,
                                        enum hook_configuration which, td_str bundle_pem);
/* Do the labels and webhooks of `found` say the same? */
bool hook_configuration_is_same(const struct td_json *wanted, const struct td_json *found);

/* ---- hook_probe.c ---- */

struct hook_probe *hook_probe_new(struct td_hook *hook);
void hook_probe_start(struct hook_probe *probe);
void hook_probe_stop(struct hook_probe *probe);
void hook_probe_free(struct hook_probe *probe);
/* The registration came to be right, or is not any more. */
void hook_probe_registered(struct hook_probe *probe);
td_str hook_probe_trouble(const struct hook_probe *probe);
bool hook_probe_is_proved(struct hook_probe *probe, td_duration since);
