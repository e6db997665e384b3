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
struct td_http_server;
struct td_lease;
struct td_timer;

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
    bool has_leader;        /* somebody's name is in the lease */
};

struct td_controllers {
    struct td_controllers_options options;
    struct td_client *client;
    struct td_client_flow *lease_flow;
    struct td_client_flow *access_flow; /* many questions at the start: others take their turn */
    struct td_client_flow *measure_flow;
    struct td_sight *sight;
    struct td_measure_client *measures;
    struct td_tally *tally;
    struct td_access *access;
    size_t access_missing;
    struct td_http_server *server;
    struct controllers_one ones[TD_CONTROLLER_COUNT];
    struct td_recommend_loop *recommend;
    struct td_update_loop *update;
    struct td_hook *hook;
    struct td_horizontal_loop *horizontal;
    struct td_hvpa_loop *hvpa; /* for admission also where no Hvpa is decided */
    bool is_started;
    bool is_ending;
    struct td_timer *patience; /* of the end */
    void (*done)(void *context);
    void *done_context;
    struct td_arena texts; /* of troubles, until the next is asked for */
};

td_time controllers_now(const struct td_controllers *controllers);

/* Why a running controller has to be taken for dead: silent for five of its intervals. Empty: it
 * is not. */
td_str controllers_silence(const struct controllers_one *one, struct td_arena *arena);

/* ---- controllers_http.c ---- */

int controllers_listen(struct td_controllers *controllers, struct td_error *err);
