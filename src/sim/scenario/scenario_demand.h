/*
 * The demand entries of a scenario file; private to the scenario reader.
 */
#pragma once

#include "local/engine/demand.h"
#include "sim/scenario/scenario_values.h"

struct td_scenario;

/* All of spec.demand. Namespace and seed are set before; what refers to another entry is resolved
 * and checked. */
int td_scenario_read_demands(const struct td_place *place, struct td_scenario *ret);
uint64_t td_scenario_demand_seed(uint64_t seed, size_t index);

/* "statefulset/db": kind and name; a container may follow where the caller says so. */
struct td_scenario_target {
    td_str kind; /* "StatefulSet" */
    td_str name;
    td_str container;
};
int td_scenario_read_target(const struct td_place *place, bool may_have_container,
                            struct td_scenario_target *ret);
