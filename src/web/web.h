/*
 * The page: what a cluster asks for, uses and decides, in a browser (docs/page.md). One server on
 * the loop with the files of web/ in the program and JSON of each view; nothing is ever written to
 * the cluster. In a local cluster (`tandem up`) it also moves the clock and breaks things. Who may
 * see it: on loopback a browser of this machine, with a token a browser that has it, in a cluster
 * a user whom the API server allows to list VerticalPodAutoscalers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct ssl_ctx_st;
struct td_error;
struct td_log;
struct td_loop;
struct td_prometheus_options;
struct td_transport;
struct td_web;
struct td_world;
struct td_world_event;

struct td_web_options {
    struct td_loop *loop;
    struct td_log *log;     /* may be NULL */
    const char *listen;     /* "127.0.0.1:8080" */
    bool moves_port;        /* the next free port when that one is taken */
    struct ssl_ctx_st *tls; /* NULL: plain, and then the address must be a loopback one */
    td_str title;           /* of the cluster */
    td_str namespace;       /* only this one; empty: all */
    td_str token;           /* that every call must have; empty: none */
    bool asks_server;       /* callers prove themselves to the API server */
    double price_cpu;       /* of a core for a month; 0: no money is shown */
    double price_memory;    /* of a GiB for a month */
    td_str feature_gates;   /* as the controllers have them; empty: the defaults */
    bool selector_gate;     /* selectors of VPAs count */
    /* A new connection to the API server, ended with its ops->free. */
    int (*connect)(void *context, struct td_transport **ret, struct td_error *err);
    void *context;
    struct td_world *world; /* of a local cluster; NULL: another one's */
    /* Where the day before is known, NULL: nowhere. Without an address: the one in the flags of the
     * controllers that run in the cluster. Its transport is taken. */
    const struct td_prometheus_options *prometheus;
};

/* Texts are copied. TD_INVALID for an address that cannot be, TD_IO for one that is taken. */
int td_web_new(const struct td_web_options *options, struct td_web **ret, struct td_error *err);
void td_web_free(struct td_web *web); /* NULL is accepted */

uint16_t td_web_port(const struct td_web *web);
void td_web_set_tls(struct td_web *web, struct ssl_ctx_st *tls);

/* Something happened in the local cluster. */
void td_web_happened(struct td_web *web, const struct td_world_event *event);
