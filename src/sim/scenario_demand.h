/*
 * The demand entries of a scenario file; private to scenario.c.
 */
#pragma once

#include "local/demand.h"
#include "sim/scenario_values.h"

/* One entry of spec.demand. The namespace and the seed are the caller's. */
int td_scenario_read_demand(const struct td_place *place, struct td_demand *ret);

/* "statefulset/db" of an event, or the kind of a target: "StatefulSet". */
int td_scenario_read_kind(const struct td_place *place, td_str text, td_str *ret);
