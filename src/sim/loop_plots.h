/*
 * The two pictures of the user's page: what a Horizontal and a Vertical Pod Autoscaler do to each
 * other under a constant load, and what a coordinated pair makes of a load that rises and falls.
 * Pure: a picture is always the same bytes.
 */
#pragma once

#include "api/hvpa/hvpa.h"
#include "base/buf.h"
#include "sim/scenario/closed_loop.h"

/* The runs behind the pictures; loads are static. The coordinator's spec is passed in because it
 * comes from a manifest. */
struct td_closed_loop td_loop_uncoordinated(void);
struct td_closed_loop td_loop_in_tandem(const struct td_hvpa *hvpa);

/* Runs it and draws replicas, request of a pod, and totals. */
void td_loop_plot(const struct td_closed_loop *loop, td_str title, struct td_buf *out);
