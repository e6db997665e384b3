/*
 * The inside of a policy. `before` may set the request before a window begins; `after` sees the
 * window that is over and may change the request for the next. Both see the past only, by way of
 * what they are handed; the oracle reads ahead in the trace. State is zeroed memory of state_bytes;
 * `done` frees what `init` made.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/replay/trace.h"

struct td_replay_policy;

#define REPLAY_DAY 86400
#define REPLAY_WINDOW 300 /* seconds */
#define REPLAY_HOLE 3600  /* a longer time without windows: the pod was gone */

struct replay_request {
    int64_t cpu_milli; /* 0: not set */
    int64_t memory_bytes;
    const char *why; /* of the latest change; NULL: there was none */
};

/* A window as the policy's container would have shown it. */
struct replay_sample {
    size_t index;
    int64_t time;
    int64_t cpu_milli;
    int64_t memory_bytes; /* the highest use, cut off at the limit */
    int64_t limit_bytes;  /* of memory, in force; 0: none */
    bool is_oom;
};

struct replay_rule {
    size_t state_bytes;
    bool is_as_was; /* no container is killed: what was above the limit did happen */
    void (*init)(void *state, const struct td_trace *trace, const struct td_replay_policy *policy);
    void (*done)(void *state);
    /* A new pod comes at that time after a hole, and gets what admission would give it. */
    void (*recreate)(void *state, int64_t time, struct replay_request *request);
    void (*before)(void *state, const struct td_trace *trace, size_t index,
                   struct replay_request *request);
    void (*after)(void *state, const struct replay_sample *sample, struct replay_request *request);
};

extern const struct replay_rule replay_as_was;
extern const struct replay_rule replay_krr;
extern const struct replay_rule replay_oracle;
extern const struct replay_rule replay_estimator; /* of any estimator */
