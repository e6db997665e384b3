/*
 * All controllers of one process: made from one set of flags, sharing informers, client, events,
 * registry; those that act are started when this process holds their Lease and stopped when it
 * loses it, the webhook serves always. Also the address for /metrics, /healthz, /readyz, /livez.
 * `tandem run` puts it on a real cluster, `tandem up` on the local one, simulations on a virtual
 * clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "base/str.h"
#include "control/admission/webhook.h"
#include "control/horizontal/horizontal_loop.h"
#include "control/hvpa/hvpa_loop.h"
#include "control/recommender/recommend_loop.h"
#include "control/rights.h"
#include "control/updater/update_loop.h"

struct td_buf;
struct td_controllers;
struct td_error;
struct td_metric_registry;
struct td_shard_range;
struct td_transport;

struct td_leader_options {
    bool is_on;    /* --leader-elect */
    bool is_alone; /* outside the cluster without it: leases only keep other installations away */
    td_duration lease_duration;
    td_duration renew_deadline;
    td_duration retry_period;
    td_str namespace; /* kube-system */
    td_str name;      /* of the lease, see td_controller_lease_name; empty: those of the table */
    td_str identity;  /* outside the cluster it begins with one of the two below */
};

#define TD_IDENTITY_OUTSIDE "tandem-outside_"
#define TD_IDENTITY_ALONE "tandem-alone_"

/* Is a holder of a lease of another installation than the process of that identity? */
bool td_leader_is_foreign(td_str own, td_str holder);

struct td_controllers_options {
    struct td_loop *loop;
    struct td_log *log;
    struct td_transport *transport; /* taken, also on failure */
    double qps;
    int burst;
    bool has[TD_CONTROLLER_COUNT];
    td_str vpa_namespace;
    const td_str *ignored_namespaces;
    size_t ignored_count;
    const char *address; /* of /metrics and health; NULL: none */
    bool is_metrics_tls; /* with TLS by the webhook's certificate, /metrics for who may get it */
    bool checks_access;  /* asks at the start what is allowed, and says what is not */
    td_str server;       /* URL, for what is said while it cannot be reached; empty: nothing is */
    struct td_leader_options leader;
    /* Of a replica with shards (control/shards/shards.h): one of these for each shard that it
     * holds, and one for what all replicas do, the webhook and the address. */
    const struct td_shard_range *shard; /* namespaces of it only; NULL: all */
    struct td_controllers *common;      /* whose webhook is asked; NULL: its own */
    const bool *asks_rights_of;         /* TD_CONTROLLER_COUNT; NULL: of those in `has` */
    void (*write_metrics)(void *context, struct td_buf *out); /* at /metrics; NULL: its own */
    void *shards_context;
    bool watches_upstream;  /* holds each controller while upstream's program of it is alive */
    bool replaces_upstream; /* --replace-upstream: takes its leases and webhook configuration */
    /* Another installation runs on the cluster: told once, nothing more is begun, the caller stops.
     * May be NULL. */
    void (*refused)(void *context, const struct td_error *why);
    void *refused_context;
    /* The control member of each is filled in here. */
    struct td_recommend_options recommend;
    struct td_update_options update;
    struct td_webhook_options webhook;
    struct td_horizontal_options horizontal;
    struct td_hvpa_options hvpa;
    struct td_vpa_gates gates;
    bool hvpa_gate;
    bool selection_strategy_gate;
    bool caps_to_node;
    uint64_t seed;
};

/* Upstream's defaults of every flag. */
struct td_controllers_options td_controllers_options_default(void);

/* The value of --controllers: names with commas between them; TD_INVALID names the wrong one. */
int td_controllers_choose(td_str list, bool has[TD_CONTROLLER_COUNT], struct td_error *err);

/* Texts that options point at must live as long. TD_INVALID for a setting that cannot be, TD_IO
 * for an address that is taken. */
int td_controllers_new(const struct td_controllers_options *options, struct td_controllers **ret,
                       struct td_error *err);
void td_controllers_start(struct td_controllers *controllers);
/* Ends what is under way, gives leases back, removes the webhooks when told so; done once. */
void td_controllers_stop(struct td_controllers *controllers, void (*done)(void *context),
                         void *context);
void td_controllers_free(struct td_controllers *controllers);

/* "ok", or what is not, one line each: /readyz. */
bool td_controllers_is_ready(const struct td_controllers *controllers, struct td_buf *out);
/* "OK", or which controller was silent for five of its intervals: /health-check, as upstream's. */
bool td_controllers_is_active(const struct td_controllers *controllers, struct td_buf *out);
/* Does this process act as that controller now? */
bool td_controllers_is_leading(const struct td_controllers *controllers,
                               enum td_controller_kind kind);
void td_controllers_write_metrics(struct td_controllers *controllers, struct td_buf *out);
/* What those would be written from, brought up to date; of the process only where it is common. */
const struct td_metric_registry *td_controllers_metrics(struct td_controllers *controllers);
/* The port that the address listens on; 0: there is none. */
uint16_t td_controllers_port(const struct td_controllers *controllers);
struct td_webhook *td_controllers_webhook(struct td_controllers *controllers); /* may be NULL */
