/*
 * Node and Lease objects of our own nodes, as trees. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/str.h"

#define TD_TAINT_NOT_READY "node.kubernetes.io/not-ready"
#define TD_TAINT_UNREACHABLE "node.kubernetes.io/unreachable"
#define TD_TAINT_MEMORY_PRESSURE "node.kubernetes.io/memory-pressure"
#define TD_TAINT_UNSCHEDULABLE "node.kubernetes.io/unschedulable"

/* So many nodes of that size. */
struct td_node_size {
    int64_t count;
    int64_t cpu_milli;
    int64_t memory_bytes;
    int64_t pods;
};

/* 8 CPUs, 32Gi, 110 pods. */
struct td_node_size td_node_size_usual(int64_t count);

/* Node "node-NUMBER", from 1 on. */
struct td_json *td_node_object_new(struct td_arena *arena, size_t number,
                                   const struct td_node_size *size);

/* The number of a node of that name; 0: it is not one of those. */
size_t td_node_object_number(td_str name);

struct td_node_state {
    td_time now;
    bool is_heartbeat; /* renews the times, too */
    bool is_pressed;   /* has too little memory */
};

/* Fills in what a node's status lacks and says that it is ready. False: nothing changed. */
bool td_node_object_complete(struct td_arena *arena, struct td_json *node,
                             const struct td_node_state *state);

/* Its conditions are not known any more: its kubelet is silent. False: that was said before. */
bool td_node_object_silence(struct td_arena *arena, struct td_json *node, td_time now);

/* Taints with NoSchedule follow conditions and cordon. False: nothing changed. */
bool td_node_object_follow(struct td_arena *arena, struct td_json *node, td_time now);

/* False: it was there, or was not. */
bool td_node_object_add_taint(struct td_arena *arena, struct td_json *node, td_str key,
                              td_str effect, td_time now);
bool td_node_object_remove_taint(struct td_json *node, td_str key, td_str effect);

struct td_json *td_node_lease_new(struct td_arena *arena, const struct td_json *node);
void td_node_lease_renew(struct td_arena *arena, struct td_json *lease, td_time now);
