/*
 * The loop between an HPA and a VPA that act on one resource (hvpa.md 4.3): each round multiplies
 * the replicas by a gain g. Total requests stay as they are while pods become ever more and smaller
 * (g above 1) or fewer and larger (g below 1), until a bound stops them. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* An HPA does nothing inside its tolerance, so a gain inside these bounds is quiet. */
#define TD_LOOP_GAIN_QUIET_MIN 0.9
#define TD_LOOP_GAIN_QUIET_MAX 1.1

/* What a VPA adds to the usage it has seen. */
#define TD_LOOP_MARGIN_PERCENT 15

/* g = usage / (U * target), of one container's resource: usage is the mean per pod and target the
 * VPA's, in one unit; U in percent. False when one of them is unknown or 0: then there is no g. */
bool td_loop_gain(int64_t usage, int64_t target, int64_t utilization_percent, double *ret);

/* The same before anything has run: usage that does not vary, so g = 1 / (U * (1 + margin)). */
bool td_loop_gain_of_target(int64_t utilization_percent, double *ret);

bool td_loop_gain_is_quiet(double gain);

/* An uncoordinated pair under a constant load: requests and usage in one unit (milli cpu, bytes).
 */
struct td_loop_pair {
    int64_t replicas;
    int64_t request;
    int64_t utilization_percent; /* of the HPA's target; above 0 */
    int64_t usage_total;         /* of all pods */
    int64_t replicas_min;        /* at least 1 */
    int64_t replicas_max;
    int64_t request_min;
    int64_t request_max; /* INT64_MAX: none */
};

/* Rounds of VPA and then HPA, from what `loop` says until nothing changes. */
struct td_loop_end {
    int64_t replicas;
    int64_t request;
    int64_t rounds;  /* that changed something */
    bool is_settled; /* false: still moving after TD_LOOP_ROUNDS_MAX */
};
#define TD_LOOP_ROUNDS_MAX 1000

struct td_loop_end td_loop_pair_run(const struct td_loop_pair *loop);
