/*
 * The events of a scenario file; private to the scenario reader.
 */
#pragma once

#include "sim/scenario/scenario_values.h"

struct td_scenario;

/* All of spec.events, after nodes and demand: what they name there is checked. */
int td_scenario_read_events(const struct td_place *place, struct td_scenario *ret);
