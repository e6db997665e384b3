/*
 * A client of one Prometheus (its HTTP API, v1), on the transport of kube/: instant and range
 * queries whose answers are read as they arrive (prometheus_answer.h). Nothing is retried: who asks
 * decides what a failure means. Messages name the URL and what was wrong, never a secret. One
 * thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "base/str.h"
#include "control/prometheus/prometheus_answer.h"

struct td_loop;
struct td_prometheus;
struct td_prometheus_call;
struct td_metric_registry;
struct td_transport;

struct td_prometheus_options {
    td_str address; /* "http://127.0.0.1:9090"; empty: there is none */
    bool is_insecure;
    td_str job; /* of the containers; empty: any */
    td_str username;
    td_str password;
    td_str bearer_token; /* before a user's name */
    td_duration query_timeout;
    td_duration history_length;
    td_duration history_resolution;
    td_str cpu_metric;
    td_str memory_metric;
    td_str pod_label_prefix;
    td_str pod_labels_metric;
    td_str pod_namespace_label;
    td_str pod_name_label;
    td_str container_namespace_label;
    td_str container_pod_name_label;
    td_str container_name_label;
    struct td_transport *transport; /* taken; NULL: over HTTP to the address */
};

/* Of the options only where it is and who we are is used; texts are copied. The registry may be
 * NULL. TD_INVALID when the address is none. */
int td_prometheus_new(struct td_loop *loop, const struct td_prometheus_options *options,
                      struct td_metric_registry *registry, struct td_prometheus **ret,
                      struct td_error *err);
/* Calls are cancelled; not from inside a callback. NULL is accepted. */
void td_prometheus_free(struct td_prometheus *prometheus);

struct td_prometheus_query {
    td_str text;
    td_time at;       /* of an instant query; of a range its begin, in whole milliseconds */
    td_time end;      /* of a range, included */
    td_duration step; /* 0: an instant query */
    td_duration timeout;
};

struct td_prometheus_events {
    struct td_prometheus_handler series;
    /* Once, unless it is cancelled; the call is gone. TD_LIMIT: the answer is too large, or a point
     * was refused so. */
    void (*done)(void *context, int code, const struct td_error *err);
};

struct td_prometheus_call *td_prometheus_ask(struct td_prometheus *prometheus,
                                             const struct td_prometheus_query *query,
                                             const struct td_prometheus_events *events,
                                             void *context);
void td_prometheus_cancel(struct td_prometheus_call *call); /* no callback any more */

/* Where it is, for messages. */
td_str td_prometheus_url(const struct td_prometheus *prometheus);
/* Bytes of all answers so far. */
uint64_t td_prometheus_bytes(const struct td_prometheus *prometheus);

/* A span as PromQL writes it, in whole milliseconds: "1h", "90s", "1500ms". */
#define TD_PROMETHEUS_SPAN_BYTES 32
void td_prometheus_span(td_duration span, char out[TD_PROMETHEUS_SPAN_BYTES]);
/* A text between double quotes, as PromQL writes it. */
void td_prometheus_quote(td_str text, struct td_buf *out);
