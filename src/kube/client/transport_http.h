/*
 * The transport over HTTPS: libcurl's multi interface on the loop, HTTP/1.1, connections kept.
 * Timers here are of real time, whatever the loop's clock is, since the network is real.
 * Credentials come from kube/kubeconfig/credentials.h before each call; when certificate or
 * authorities change, new calls get new connections and the old ones are closed once their calls
 * are over, at the latest after TD_TRANSPORT_RETIRE_MS. Redirects are not followed. No text of an
 * error holds a secret. One thread, the loop's; SIGPIPE must be ignored by the program.
 */
#pragma once

#include "kube/client/transport.h"

struct td_error;
struct td_kube_config;
struct td_loop;

struct td_transport_http_options {
    struct td_loop *loop;
    const struct td_kube_config *config; /* borrowed with its arena for the transport's life */
    long connections_max;                /* 0: TD_TRANSPORT_CONNECTIONS_MAX */
};

/* Freed by its ops->free, not from inside a callback. Nothing is connected yet. */
int td_transport_http_new(const struct td_transport_http_options *options,
                          struct td_transport **ret, struct td_error *err);
