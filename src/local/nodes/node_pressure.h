/*
 * Memory pressure of our nodes, as a kubelet's eviction manager with its defaults sees it: below
 * 100Mi available the node says so in its condition (and is tainted by that, nodes.c), and one pod
 * every ten seconds is evicted until there is more; the condition stays for five minutes after
 * that. Fed by nodes.c with what the engine tells. One thread, the loop's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "base/str.h"

struct td_api;
struct td_engine;
struct td_kubelet;
struct td_node_index;
struct td_node_pressure;
struct td_node_report;

#define TD_PRESSURE_EVICT_EVERY (10 * TD_SECOND) /* housekeeping */
#define TD_PRESSURE_TRANSITION (5 * TD_MINUTE)   /* eviction-pressure-transition-period */

/* All borrowed. */
struct td_node_pressure_options {
    struct td_api *api;
    struct td_node_index *index;
    struct td_engine *engine;
    struct td_kubelet *kubelet;
    struct td_node_report *report;
};

struct td_node_pressure *td_node_pressure_new(const struct td_node_pressure_options *options);
void td_node_pressure_free(struct td_node_pressure *pressure); /* NULL is accepted */

/* Containers of the node leave so little; told as long as it is too little. */
void td_node_pressure_tell(struct td_node_pressure *pressure, td_str node, double available_bytes);

/* Ends what is over; now and then. */
void td_node_pressure_look(struct td_node_pressure *pressure);

/* Who goes first: who uses more than it asked for, then the lowest priority, then who uses most
 * above what it asked for, then the one that came first. `count` when there is none. Critical
 * pods never go. Pure. */
struct td_pressure_pod {
    double used_bytes;
    double request_bytes;
    int64_t priority;
};
size_t td_pressure_pick(const struct td_pressure_pod *pods, size_t count);
