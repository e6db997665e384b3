/*
 * One container instance of one pod: which of its samples count, the memory peak of its running
 * window, and what an OOM demands. A pure step each: state and event in, new state and the change
 * to make to the aggregate out. Forty bytes an instance; nothing to free.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/os/clock.h"

#define TD_CONTAINER_TIME_NONE INT64_MIN /* a time that was not seen yet */

struct td_container_state {
    td_time last_cpu;    /* of the last accepted CPU sample, or TD_CONTAINER_TIME_NONE; as the node
                          * told it, maybe in the future */
    td_time last_memory; /* of the last memory sample or OOM, likewise */
    td_time window_end;  /* of the memory window in progress, likewise */
    int64_t memory_peak; /* bytes; of this window, samples only */
    int64_t oom_peak;    /* bytes; of this window, OOMs only */
};

/* What a step does to the memory histogram: first take the old peak away, then add the new one,
 * both with weight 1 at `at`. */
struct td_peak_change {
    bool is_accepted;
    bool has_subtract;
    bool has_add;
    int64_t subtract_bytes;
    int64_t add_bytes;
    td_time at; /* the end of the window, usually in the future */
};

/* How a container's OOMs and windows are judged. */
struct td_oom_rule {
    td_duration interval; /* of one memory window, above 0 */
    double bump_up_ratio;
    double min_bump_up;     /* bytes */
    int64_t bytes_max;      /* maxAllowed, which no bump passes; 0 without one */
    bool is_upstream_exact; /* a window that begins with 0 bytes learns nothing more */
};

enum td_oom_verdict {
    TD_OOM_TAKEN,
    TD_OOM_CAPPED,  /* taken, but the bump stopped at bytes_max */
    TD_OOM_TOO_OLD, /* more than one window before the last sample */
    TD_OOM_INVALID, /* not an amount of memory */
};

void td_container_state_init(struct td_container_state *state);

/* True when the sample counts. */
bool td_container_cpu(struct td_container_state *state, td_time time, int64_t milli);

struct td_peak_change td_container_memory(struct td_container_state *state,
                                          const struct td_oom_rule *rule, td_time time,
                                          int64_t bytes);

/* requested_bytes: the memory request of the container that was killed, 0 without one. */
enum td_oom_verdict td_container_oom(struct td_container_state *state,
                                     const struct td_oom_rule *rule, td_time time,
                                     int64_t requested_bytes, struct td_peak_change *ret_change);

/* The peak that the running window has put into the histogram. */
int64_t td_container_peak(const struct td_container_state *state);
