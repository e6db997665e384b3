/*
 * When a pod follows the adaptive estimator: one container, CPU and memory together. Increases
 * come at once, decreases late and only past a wide band. It replaces the updater's own question
 * ("is the request outside the bounds?"); modes, disruption budgets and in-place rules stay the
 * updater's. Pure.
 */
#pragma once

#include "decide/vertical/estimator/adaptive.h"

struct td_adaptive_amounts {
    int64_t cpu_milli;
    int64_t memory_bytes;
};

struct td_adaptive_apply_input {
    int64_t now;
    int64_t changed; /* latest of: last change of the requests, the pod's creation, the state's
                        first sample */
    bool is_oom;     /* the container was OOM-killed after `changed` */
    struct td_adaptive_amounts current; /* 0: not set */
    struct td_adaptive_amounts target;  /* capped; equal to current for what is not controlled or
                                           has no data */
};

enum td_adaptive_apply_reason {
    TD_APPLY_NO_REQUEST,
    TD_APPLY_OOM,
    TD_APPLY_INCREASE,
    TD_APPLY_DECREASE,
    TD_APPLY_WAITING, /* hold until `until` */
    TD_APPLY_IN_BAND, /* hold */
};

struct td_adaptive_decision {
    bool is_apply;
    enum td_adaptive_apply_reason reason;
    struct td_adaptive_amounts request; /* what is set afterwards */
    int64_t until;                      /* WAITING: the time from which a decrease is possible */
};

const char *td_adaptive_apply_reason_name(enum td_adaptive_apply_reason reason);

/* Seconds between two times, which may be any. */
int64_t td_adaptive_passed(int64_t from, int64_t to);

/* The new values may pass maxAllowed: the caller caps them again. */
struct td_adaptive_decision td_adaptive_apply(const struct td_adaptive_apply_input *input,
                                              const struct td_adaptive_params *params);

/* "waiting: cpu 500m → 250m, memory 1Gi → 512Mi, kept within −20 % to +10 % and −10 % to +4 %;
 * a decrease is possible from 2026-03-12T12:00:00Z" */
void td_adaptive_write_decision(const struct td_adaptive_apply_input *input,
                                const struct td_adaptive_params *params,
                                const struct td_adaptive_decision *decision, struct td_buf *out);
