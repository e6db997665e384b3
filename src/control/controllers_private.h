/*
 * The inside of the frame, shared by the files controllers*.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/os/clock.h"
#include "control/controllers.h"

struct td_access;
struct td_preflight;
struct td_shadow;
struct td_http_server;
struct td_lease;
struct td_reach;
struct td_timer;
struct td_upstream;

enum controllers_state {
    CONTROLLERS_IDLE,
    CONTROLLERS_WAITING, /* for its lease */
    CONTROLLERS_RUNNING,
    CONTROLLERS_STOPPING, /* what it has begun comes to its end */
    CONTROLLERS_RELEASING,
};

/* One controller of the process. */
struct controllers_one {
    struct td_controllers *all;
    enum td_controller_kind kind;
    enum controllers_state state;
    td_time since; /* it runs */
    struct td_client_flow *flow;
    struct td_events *events;
    struct td_lease *lease; /* NULL: it needs none */
    td_str lease_name;      /* owned */
    bool has_leader;        /* the lease names a holder */
    bool has_seen;          /* the lease was read */
    bool is_denied;         /* this client may not have a lease */
    td_str holder;          /* owned; of the lease, as last seen */
};

struct td_controllers {
    struct td_controllers_options options;
    struct td_client *client;
    struct td_client_flow *lease_flow;
    struct td_client_flow *access_flow; /* many questions at the start: others take their turn */
    struct td_client_flow *reach_flow;  /* asks whether the server is there, behind nothing else */
    struct td_client_flow *measure_flow;
    struct td_upstream *upstream; /* NULL: nothing is asked about upstream's programs */
    struct td_informers *informers;
    struct td_metrics_client *metrics_client;
    struct td_metric_registry *registry;
    struct td_access *access;
    struct td_preflight *preflight;
    struct td_shadow *shadow; /* NULL: not with --shadow */
    void (*shadow_done)(void *context);
    void *shadow_context;
    struct td_reach *reach; /* NULL: nothing is said of a server that is away */
    size_t access_missing;
    struct td_http_server *server;
    struct controllers_one ones[TD_CONTROLLER_COUNT];
    struct td_recommend_loop *recommend;
    struct td_update_loop *update;
    struct td_webhook *webhook;
    struct td_horizontal_loop *horizontal;
    struct td_hvpa_loop *hvpa; /* for admission also where no Hvpa is decided */
    bool is_started;
    bool is_ending;
    bool is_refused;            /* another installation is there */
    struct td_bearers *bearers; /* of /metrics */
    struct controllers_caller *callers;
    int listen_code;
    struct td_error listen_error;
    struct td_timer *guard;    /* looks whether it is alive */
    struct td_timer *patience; /* of the end */
    void (*done)(void *context);
    void *done_context;
    struct td_arena texts; /* of problems, until the next is asked for */
};

/* Why a running controller has to be taken for dead: silent for five of its intervals. Empty: it
 * is not. */
td_str controllers_staleness(const struct controllers_one *one, struct td_arena *arena);

/* ---- controllers_check.c ---- */

/* Asks what is allowed and what the cluster has; what is missing is logged. */
void controllers_check(struct td_controllers *all);

/* ---- controllers_guard.c ---- */

/* May controllers begin that no lease of their own says it for? */
bool controllers_is_clear(const struct td_controllers *all);
void controllers_guard_rings(struct td_timer *timer, void *context);
void controllers_guard_see(struct controllers_one *one, td_str holder);
struct td_upstream *controllers_watch_upstream(struct td_controllers *all);

/* ---- controllers.c ---- */

/* Tries for its lease, or ends, by whether it may now. */
void controllers_follow(struct controllers_one *one);
void controllers_begin_clear(struct td_controllers *all);

/* ---- controllers_http.c ---- */

int controllers_listen(struct td_controllers *controllers, struct td_error *err);
void controllers_stop_listening(struct td_controllers *controllers);
