/*
 * What the three metrics APIs answer, asked through the client: resource metrics of pods
 * (metrics.k8s.io), custom metrics of pods or of one object, external metrics (hpa.md 5). Answers
 * are read as they arrive and handed on as plain numbers; texts are valid during the callback. The
 * version of custom.metrics is found by discovery, where that of a server that is away is missing
 * after a while, and good for `version_for`: a sync period, as upstream has it. One thread, the
 * loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "base/str.h"

struct td_client;
struct td_client_flow;
struct td_loop;
struct td_metrics_call;
struct td_metrics_client;

struct td_metrics_client *td_metrics_client_new(struct td_loop *loop, struct td_client *client,
                                                struct td_client_flow *flow,
                                                td_duration version_for);
void td_metrics_client_free(struct td_metrics_client *client); /* calls are cancelled */

/* One container of one pod; a resource that the answer lacks has no value. */
struct td_container_metrics {
    td_str namespace;
    td_str pod;
    td_str container;
    td_time time;
    td_duration window;
    bool has_cpu;
    bool has_memory;
    int64_t cpu_milli; /* rounded up, each container for itself, as upstream does */
    int64_t memory_bytes;
};

struct td_metrics_handler {
    void (*pod)(void *context, const struct td_container_metrics *measure); /* for each container */
    /* code as td_client_reply; the client's words in err are upstream's (hpa.md 5). */
    void (*done)(void *context, int code, const struct td_error *err);
};

/* Pods of a namespace (empty: all) that a selector matches (empty: all). */
struct td_metrics_call *td_metrics_get_pods(struct td_metrics_client *client, td_str namespace,
                                            td_str selector,
                                            const struct td_metrics_handler *handler,
                                            void *context);

/* A value about an object: of a custom metric its name, of an external one empty. */
struct td_metric_value {
    td_str object;
    td_time time;
    td_duration window;
    int64_t milli;
};

struct td_metric_value_handler {
    void (*value)(void *context, const struct td_metric_value *measure);
    void (*done)(void *context, int code, const struct td_error *err);
};

struct td_custom_query {
    td_str namespace;
    td_str group; /* of the object's resource; empty: core */
    td_str resource;
    td_str object;   /* empty: every pod that `selector` matches */
    td_str selector; /* of the pods */
    td_str metric;
    td_str metric_selector; /* may be empty */
};
struct td_metrics_call *td_metrics_get_custom(struct td_metrics_client *client,
                                              const struct td_custom_query *query,
                                              const struct td_metric_value_handler *handler,
                                              void *context);

struct td_metrics_call *td_metrics_get_external(struct td_metrics_client *client, td_str namespace,
                                                td_str metric, td_str selector,
                                                const struct td_metric_value_handler *handler,
                                                void *context);

void td_metrics_cancel(struct td_metrics_call *call); /* no callback any more */
