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

#define REPLAY_DAY 86400

struct replay_request {
    int64_t cpu_milli; /* 0: not set */
    int64_t memory_bytes;
};

/* A window as the policy's container would have shown it. */
struct replay_sample {
    size_t index;
    int64_t time;
    int64_t cpu_milli;
    int64_t memory_bytes; /* the highest use, cut off at the request */
    bool is_oom;
};

struct td_replay_policy {
    const char *name;
    const char *title;
    size_t state_bytes;
    bool is_as_was; /* nobody is killed: what was above the limit did happen */
    void (*init)(void *state, const struct td_trace *trace);
    void (*done)(void *state);
    void (*before)(void *state, const struct td_trace *trace, size_t index,
                   struct replay_request *request);
    void (*after)(void *state, const struct replay_sample *sample, struct replay_request *request);
};

extern const struct td_replay_policy replay_as_was;
extern const struct td_replay_policy replay_upstream;
extern const struct td_replay_policy replay_krr;
extern const struct td_replay_policy replay_adaptive;
extern const struct td_replay_policy replay_adaptive_careful;
extern const struct td_replay_policy replay_adaptive_frugal;
extern const struct td_replay_policy replay_oracle;
