/*
 * The table of `tandem simulate`: one row a workload with averages and sums over the run, then the
 * totals. Pure.
 */
#pragma once

#include "base/os/table.h"
#include "base/str.h"
#include "sim/world/world.h"

/* Names of other namespaces than `ns` are written with theirs. `shape`: width and character set. */
void td_simulate_table(const struct td_world_view *view, td_str ns,
                       const struct td_table_options *shape, struct td_arena *arena,
                       struct td_buf *out);
