/*
 * What every controller is given. Each has a file pair of its own: NAME_loop.h with new, start,
 * stop and free. A controller observes through the informers, decides with the functions of
 * decide/, acts through its flow of the client, tells events, and counts in the metric registry.
 * started by the frame (controllers.h) when this process leads, stopped when it does not; stopped,
 * it holds knowledge but writes nothing. All times are of the loop's clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/vpa/vpa.h"
#include "base/str.h"

struct td_client;
struct td_client_flow;
struct td_events;
struct td_log;
struct td_loop;
struct td_metrics_client;
struct td_informers;
struct td_metric_registry;
struct td_shard_range;

struct td_control {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow; /* of this controller */
    struct td_informers *informers;
    struct td_events *events;
    struct td_metrics_client *metrics_client;
    struct td_metric_registry *registry;
    struct td_log *log; /* may be NULL */
    struct td_vpa_gates gates;
    bool hvpa_gate;               /* Hvpa */
    bool selection_strategy_gate; /* HPASelectionStrategy */
    bool scale_to_zero_gate;      /* HPAScaleToZero */
    bool tolerance_gate;          /* HPAConfigurableTolerance */
    const struct td_shard_range
        *shard;        /* this controller is of its namespaces only; NULL: of all */
    bool caps_to_node; /* --cap-to-node: no pod larger than the largest node */
    uint64_t seed;
};
