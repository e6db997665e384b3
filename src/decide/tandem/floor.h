/*
 * Below which size a pod starves. Use ends at the limit, and limits follow requests: a pod that was
 * made too small can no longer use what the HPA waits for, and the HPA never goes out. The law that
 * the floor keeps: where an HPA alone would reach a count of replicas that serves the load, with
 * the pods of the template, the Hvpa serves it too (docs/internals/decide/tandem.md has the
 * argument). Pure.
 */
#pragma once

#include "decide/tandem/decide.h"

/* How far above its target a use must be able to come, so that an HPA of this tolerance (0.1 for a
 * tenth) goes out: percent. */
int32_t td_tandem_headroom_of(double tolerance);

/* The HPA's tolerance of growth, in percent, by which the row's headroom was found. */
int32_t td_tandem_tolerance_of(const struct td_tandem_row *row);

/* The least that the row may ask for now, before every cap; 0: nothing forbids less. */
int64_t td_tandem_floor_of(const struct td_tandem_input *in, const struct td_tandem_row *row);

/* The most: a fixed limit under requests that grow is a share of them that the HPA can wait for in
 * vain. Not set: nothing forbids more. */
struct td_tandem_bound td_tandem_ceiling_of(const struct td_tandem_input *in,
                                            const struct td_tandem_row *row);
