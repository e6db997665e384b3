/*
 * Node and Lease objects of our own nodes, as trees. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"

/* Node "tandem-NUMBER", from 1 on: 8 CPUs, 32Gi, 110 pods. */
struct td_json *td_node_object_new(struct td_arena *arena, size_t number);

/* The number of a node of that name; 0: it is not one of those. */
size_t td_node_object_number(td_str name);

/* Fills in what a node's status lacks and says that it is ready; a heartbeat also renews the times.
 * False: nothing changed. */
bool td_node_object_complete(struct td_arena *arena, struct td_json *node, td_time now,
                             bool is_heartbeat);

struct td_json *td_node_lease_new(struct td_arena *arena, const struct td_json *node);
void td_node_lease_renew(struct td_arena *arena, struct td_json *lease, td_time now);
