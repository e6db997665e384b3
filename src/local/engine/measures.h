/*
 * What the metrics APIs tell (local/metrics.c): use of containers as the engine samples it, its
 * streams of requests, and series that a scenario names, as custom metrics of an object or as
 * external ones. Plain data, borrowed by the API handler.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "kube/selector/labels.h"
#include "local/engine/series.h"

struct td_demand;
struct td_engine;

struct td_measure {
    td_str name;
    td_str ns;
    td_str kind;             /* of the object that it is about: "Service"; empty: external */
    td_str object;           /* its name */
    struct td_labels labels; /* external: that a selector can ask for */
    struct td_series series;
    uint64_t seed;
};

struct td_measures {
    const struct td_engine *engine; /* its start is the start of the series too */
    const struct td_measure *items;
    size_t count;
    const struct td_demand *demands; /* the engine's: streams of requests are metrics too */
    size_t demand_count;
};
