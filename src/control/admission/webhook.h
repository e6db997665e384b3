/*
 * Admission that cannot hurt: an HTTPS server of our own that answers AdmissionReviews from memory
 * (pods are mutated, VPAs, our HPAs and Hvpas are validated and defaulted), its authority and
 * certificate in a Secret shared by all replicas and renewed in time without a failed request, its
 * registration with failurePolicy Ignore, and a probe that creates a pod by dry run through the API
 * server to see whether it is really mutated. What cannot be decided within the deadline is
 * admitted as it is, and counted. Every replica serves; none needs to lead.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "control/common.h"
#include "decide/vertical/resourcelist.h"

struct td_arena;
struct td_buf;
struct td_controller;
struct td_error;
struct ssl_ctx_st; /* OpenSSL's SSL_CTX */
struct td_webhook;
struct td_pod_sizes;
struct td_pod;

/* Is the target of a pod under an Hvpa that sizes its pods? `top` is the pod's topmost controller;
 * results are in the arena or live until the return to the loop. True also when it has not decided
 * yet: VPAs are not asked then. */
typedef bool (*td_webhook_sizes_fn)(void *context, struct td_arena *arena,
                                    const struct td_controller *top, const struct td_pod *pod,
                                    struct td_pod_sizes *ret);

/* The configurations of a process outside the cluster, which the API server calls by URL: not those
 * of an installation in it. */
#define TD_WEBHOOK_OUTSIDE "tandem-outside-webhook-config"
#define TD_WEBHOOK_INSIDE "tandem-webhook-config"
#define TD_WEBHOOK_UPSTREAM "vpa-webhook-config"

struct td_webhook_options {
    struct td_control control;
    const char *listen;     /* "0.0.0.0:8000" in a cluster, "127.0.0.1:PORT" outside; NULL: no
                               server, a local cluster in this process calls td_webhook_review */
    bool is_by_url;         /* registered by the address it listens on, not by a Service */
    bool registers;         /* --register-webhook */
    bool keeps;             /* --keep-webhooks: a registration by URL stays at a clean stop; one by
                               Service always does, other replicas serve it */
    td_str namespace;       /* of Secret, Service and probe */
    td_str service;         /* "tandem-webhook" */
    bool replaces_upstream; /* --replace-upstream: the registration is upstream's, by its name */
    td_str secret;          /* "tandem-webhook-tls" */
    bool is_issued;         /* --webhook-certificate-issued: the Secret is another program's */
    td_str client_ca_pem;   /* a client must show a certificate of it; empty: any may ask */
    int timeout_seconds;    /* --webhook-timeout-seconds */
    bool fails_closed;      /* --webhook-failure-policy-fail */
    td_str labels;          /* --webhook-labels */
    const td_str *exempt_namespaces;
    size_t exempt_count;
    td_str lease_namespace;            /* empty: kube-system, where upstream's updater looks */
    td_str lease_name;                 /* renewed while pods are mutated; empty: none */
    td_duration lease_interval;        /* 10 s */
    struct td_quantity *max_cpu_boost; /* NULL: none */
    bool warns_of_limit_range;         /* --pod-level-container-limitrange=warn */
    td_duration probe_interval;        /* of the self-probe; 0: none */
    td_duration deadline;              /* of one answer */
    td_webhook_sizes_fn get_sizes;     /* NULL: no Hvpas */
    void *sizes_context;
    void (*changed)(void *context); /* what td_webhook_problem says; NULL: not told */
    void *changed_context;
    const struct td_clock *certificate_clock; /* NULL: the machine's, as peers check it */
};

/* Listens from here on, so that an address that cannot be had is known at once. Before
 * td_informers_start; the informers must not be run after the webhook is freed. */
int td_webhook_new(const struct td_webhook_options *options, struct td_webhook **ret,
                   struct td_error *err);
void td_webhook_start(struct td_webhook *webhook);
/* Unregisters what was registered by URL (unless it keeps) and calls done once; requests are
 * answered until then. */
void td_webhook_stop(struct td_webhook *webhook, void (*done)(void *context), void *context);
void td_webhook_free(struct td_webhook *webhook);

/* Where the API server reaches it; without a server a name for the local cluster. */
td_str td_webhook_url(const struct td_webhook *webhook);

/* Another server of this process goes by the same certificate: `fn` is called at once with what is
 * served now, and with each that takes its place. Nothing without a server; two may follow. */
void td_webhook_follow_tls(struct td_webhook *webhook,
                           void (*fn)(void *context, struct ssl_ctx_st *tls), void *context);

/* Why pods are not mutated, as a sentence, or empty: the last probe saw that they are. */
td_str td_webhook_problem(const struct td_webhook *webhook);

/* Are pods of the namespace never asked about? */
bool td_webhook_is_exempt(const struct td_webhook *webhook, td_str namespace);

/* Has a probe that was sent at `since` (td_clock_machine), a quarter of a second before it, or
 * later shown that pods are mutated? If not, one is sent, so that it is known soon. Always where
 * there are no probes. */
bool td_webhook_is_proved(struct td_webhook *webhook, td_duration since);

/* One review, as the server does it: `body` is an AdmissionReview, the answer is appended. Also
 * called by a local cluster in this process on a clock that no socket keeps up with. */
void td_webhook_review(struct td_webhook *webhook, td_str body, struct td_buf *answer);
