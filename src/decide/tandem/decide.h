/*
 * One tick of an Hvpa: from both verdicts, read at one instant, to replicas and requests. Pure:
 * same inputs, same decision on every machine; no clock but `now`, no allocation, no I/O. The
 * caller owns all memory: rows in, and an array of as many outcomes for what becomes of each row.
 * Every wish that is not carried out has a reason in the decision. O(rows).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/hvpa/hvpa.h"
#include "base/str.h"
#include "base/timefmt.h"

/* An amount of a row is in milli-cores or bytes, not negative. */
struct td_tandem_bound {
    bool is_set;
    int64_t amount;
};

/* How an HPA metric measures the row by its request (hvpa.md 4.3). */
struct td_tandem_coupling {
    bool is_coupled;
    int32_t utilization;          /* percent: the smallest target that covers the row; above 0 */
    struct td_tandem_bound usage; /* measured mean of a pod, when known */
    int64_t in_template;          /* what the row asks for in the template; 0: nothing, no floor */
    int64_t reference;        /* use of a pod that the HPA waits for, by the template; 0: none */
    int64_t beside;           /* asked for by the containers that are measured with it */
    int32_t headroom_percent; /* floor.h; 0: that of the usual tolerance */
};

/* A request and its limit as they were before anything was resized; 0: not known. */
struct td_tandem_pair {
    int64_t request;
    int64_t limit;
};

/* One container and one resource that the VPA controls. */
struct td_tandem_row {
    td_str container;
    enum td_hvpa_resource resource;
    int64_t request;  /* applied now; 0: none */
    int64_t target;   /* before every cap */
    int64_t uncapped; /* the recommender's uncapped target */
    struct td_tandem_bound lower;
    struct td_tandem_bound upper;
    struct td_tandem_bound min_allowed;
    struct td_tandem_bound max_allowed;
    struct td_tandem_bound limit; /* applied now */
    struct td_tandem_pair origin; /* whose proportion the limit keeps; unknown: that of now */
    bool is_requests_only;        /* controlledValues */
    bool is_emergency;            /* the container's memory flag is up and not yet expired */
    bool is_young;                /* less than a day of it was seen */
    struct td_tandem_coupling coupling;
};

enum td_tandem_resize {
    TD_TANDEM_RESIZE_NONE,
    TD_TANDEM_RESIZE_IN_PROGRESS, /* an earlier vertical action is unfinished */
    TD_TANDEM_RESIZE_INFEASIBLE,  /* exactly these targets failed and are not yet due again */
};

struct td_tandem_time {
    bool is_set;
    struct td_instant at;
};

struct td_tandem_input {
    const struct td_hvpa *hvpa; /* its spec; status is not read */
    int32_t replicas;           /* of the target's scale, not negative */
    bool is_horizontal_valid;
    int32_t desired_replicas; /* when valid: the HPA's wish, before the clamp */
    bool is_vertical_valid;
    const struct td_tandem_row *rows;
    size_t row_count;
    enum td_tandem_resize resize;
    struct td_tandem_time last_horizontal;        /* applied scaling; unset: long ago */
    struct td_tandem_time last_vertical;          /* unset: first_seen for decreases */
    struct td_tandem_time first_seen;             /* by this process; unset: long ago */
    struct td_tandem_time below_thresholds_since; /* Mixed: of the state as yet uninterrupted */
    struct td_instant now;
};

enum td_tandem_axis {
    TD_TANDEM_AXIS_NONE,
    TD_TANDEM_AXIS_HORIZONTAL,
    TD_TANDEM_AXIS_VERTICAL,
    TD_TANDEM_AXIS_BOTH,
};

enum td_tandem_reason {
    TD_TANDEM_HORIZONTAL_APPLIED,
    TD_TANDEM_VERTICAL_APPLIED,
    TD_TANDEM_BOTH_APPLIED,
    TD_TANDEM_NO_RECOMMENDATION, /* neither axis has one */
    TD_TANDEM_NO_CHANGE,         /* what is recommended is what there is, near enough */
    TD_TANDEM_VERTICAL_HELD_BELOW_MAX_REPLICAS,
    TD_TANDEM_VERTICAL_HELD_ABOVE_MIN_REPLICAS,
    TD_TANDEM_BELOW_THRESHOLDS,
    TD_TANDEM_THRESHOLD_PATIENCE_EXPIRED,
    TD_TANDEM_STAGE_FORBIDS,
    TD_TANDEM_EMERGENCY_MEMORY,
    TD_TANDEM_BLOCKED,
    TD_TANDEM_SCALING_DISABLED,
    TD_TANDEM_REASON_COUNT,
};

enum td_tandem_block {
    TD_TANDEM_BLOCK_NONE,
    TD_TANDEM_BLOCK_UPDATE_POLICY,
    TD_TANDEM_BLOCK_MAINTENANCE_WINDOW,
    TD_TANDEM_BLOCK_STABILIZATION_WINDOW,
    TD_TANDEM_BLOCK_SETTLING,
    TD_TANDEM_BLOCK_MIN_CHANGE,
    TD_TANDEM_BLOCK_OPPOSING,
    TD_TANDEM_BLOCK_RESIZE_IN_PROGRESS,
    TD_TANDEM_BLOCK_RESIZE_INFEASIBLE,
    TD_TANDEM_BLOCK_STAGE,
    TD_TANDEM_BLOCK_SMALL_STEP,
    TD_TANDEM_BLOCK_COUNT,
};

enum td_tandem_stage { TD_TANDEM_INITIAL, TD_TANDEM_RATIO, TD_TANDEM_FINAL };

/* What becomes of one row. */
struct td_tandem_outcome {
    int64_t request;              /* decided; the row's own when nothing changes */
    struct td_tandem_bound limit; /* decided; changes only with the request */
    enum td_tandem_block block;   /* why its wish was not carried out */
    int64_t wish;                 /* the target after caps and coupling */
    int64_t target;               /* what was left of it for the mode; the request when removed */
    int64_t policy_target;        /* the wish before the cap by a fixed limit */
    int64_t uncapped;             /* as the coupling raised it */
    bool is_significant;          /* the target, by bounds, tolerance or minChange */
    int64_t floor;                /* the least that it may ask for (floor.h), after caps; 0: none */
    struct td_tandem_bound most;  /* that it may ever ask for: maxAllowed, and what is fixed */
    bool is_coupling_raised;      /* Reconcile decided the wish */
    bool is_kept;                 /* the floor decided the wish */
    bool is_emergency;            /* raised in full after an out-of-memory kill */
    bool is_at_max_allowed;       /* an emergency that maxAllowed leaves nothing to do */
    bool can_emergency_act;       /* not held by Off or a closed window: its time runs */
    bool is_saturated;            /* a limit left the range of int64 and was cut */
    double exponent;              /* RatioBased: the share of the target's logarithm */
};

/* RatioBased: what of a shared growth is made (stride.c). */
enum td_tandem_carrier {
    TD_TANDEM_CARRIED_BY_BOTH,
    TD_TANDEM_CARRIED_BY_REPLICAS,
    TD_TANDEM_CARRIED_BY_SIZE,
};

/* RatioBased: how the replicas came about. */
struct td_tandem_blend {
    bool has_stage; /* all wishes of the tick share one */
    enum td_tandem_stage stage;
    bool has_weights; /* and no overflow changed an exponent */
    double horizontal;
    double vertical;
    bool is_overflow; /* the other axis took over */
    bool is_max;      /* capacityPolicy Max decided */
    bool is_hold;     /* Max: no common direction */
    enum td_tandem_carrier carrier;
    double exponent;         /* of the horizontal wish */
    double replicas_exact;   /* before rounding */
    bool is_cut_by_border;   /* the rest belongs to the next stage: decide again at once */
    int32_t border_replicas; /* when cut */
};

struct td_tandem_decision {
    int32_t replicas;
    enum td_tandem_axis axis;
    enum td_tandem_reason reason;
    enum td_tandem_block horizontal_block;
    bool is_emergency; /* a memory increase after an out-of-memory kill is part of it */
    struct td_tandem_blend blend;
    struct td_tandem_time below_thresholds_since; /* to be kept for the next tick */
    int32_t min_replicas;                         /* the range in force */
    int32_t max_replicas;
    int32_t desired_replicas; /* after the clamp; the present count when the HPA is invalid */
    bool has_horizontal;      /* both after filter and guard (7) */
    bool has_vertical;
    struct td_tandem_outcome *outcomes; /* of the rows, in their order */
    size_t outcome_count;
};

/* `outcomes` has room for in->row_count and stays the caller's. */
void td_tandem_decide(const struct td_tandem_input *in, struct td_tandem_outcome *outcomes,
                      struct td_tandem_decision *ret);

/* Words of status, events and metrics: "Both", "BothApplied", "StabilizationWindow", "Ratio". */
td_str td_tandem_axis_name(enum td_tandem_axis axis);
td_str td_tandem_reason_name(enum td_tandem_reason reason);
td_str td_tandem_block_name(enum td_tandem_block block);
td_str td_tandem_stage_name(enum td_tandem_stage stage);
