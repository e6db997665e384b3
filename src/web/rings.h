/*
 * What a page remembers of one workload: a point a minute for the last day, as 16-bit codes on a
 * logarithmic scale (a value comes back within 0.06 %), and what changes rarely (requests, targets,
 * bounds) only when it does. All rings share one budget: 1,000 workloads are kept by the minute
 * within 32 MiB, and with more of them points cover two, four, ... minutes, so that the memory
 * stays what it is. Points that are merged keep the highest peak; of changes that are more than
 * there is room for, those close together become one, so that the day stays whole. One owner, no
 * locking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_RING_MINUTES 1440
#define TD_RINGS_BY_MINUTE 1000 /* that are kept by the minute */
#define TD_RING_CHANGES_MAX 900 /* of what changes rarely, of one of those */
#define TD_RING_CHANGES_MIN 48  /* of one of many */

/* Sampled each minute; CPU in millicores, memory in bytes, of one pod. */
enum td_ring_sample {
    TD_SAMPLE_CPU_P50,
    TD_SAMPLE_CPU_MAX,
    TD_SAMPLE_MEMORY_P50,
    TD_SAMPLE_MEMORY_MAX,
    TD_SAMPLE_REPLICAS,
    TD_SAMPLE_READY,
    TD_SAMPLE_THROTTLED, /* in thousandths */
    TD_SAMPLE_COUNT,
};

/* Kept when it changes. */
enum td_ring_setting {
    TD_SETTING_CPU_REQUEST,
    TD_SETTING_CPU_LIMIT,
    TD_SETTING_CPU_TARGET,
    TD_SETTING_CPU_LOWER,
    TD_SETTING_CPU_UPPER,
    TD_SETTING_MEMORY_REQUEST,
    TD_SETTING_MEMORY_LIMIT,
    TD_SETTING_MEMORY_TARGET,
    TD_SETTING_MEMORY_LOWER,
    TD_SETTING_MEMORY_UPPER,
    TD_SETTING_WANTED, /* replicas that the HPA asked for */
    TD_SETTING_COUNT,
};

extern const char *const td_ring_sample_names[TD_SAMPLE_COUNT];
extern const char *const td_ring_setting_names[TD_SETTING_COUNT];

struct td_ring;

struct td_rings {
    int64_t minutes_per_point;
    size_t count;
    struct td_ring *first;
};

void td_rings_init(struct td_rings *rings);

struct td_ring *td_rings_add(struct td_rings *rings);
void td_rings_remove(struct td_rings *rings, struct td_ring *ring);
size_t td_rings_bytes(const struct td_rings *rings);

/* Values below 0 are not known. A minute before the first that is kept is left out. */
void td_rings_put(struct td_rings *rings, struct td_ring *ring, int64_t minute,
                  const double samples[TD_SAMPLE_COUNT], const double settings[TD_SETTING_COUNT]);

/* What was before a ring began; minutes ascend, and those from its first point on are left out. */
struct td_ring_past {
    int64_t minute;
    double samples[TD_SAMPLE_COUNT];
    double settings[TD_SETTING_COUNT];
};
void td_rings_put_before(struct td_rings *rings, struct td_ring *ring,
                         const struct td_ring_past *past, size_t count);

/* Points from `first` on; a value that is not known is below 0. */
struct td_ring_span {
    int64_t first; /* minute */
    size_t count;
};
struct td_ring_span td_ring_span(const struct td_rings *rings, const struct td_ring *ring);
double td_ring_sample(const struct td_ring *ring, size_t point, enum td_ring_sample sample);

/* The changes of one setting, oldest first; *position is 0 at first. false: there is no more. */
bool td_ring_next_change(const struct td_ring *ring, enum td_ring_setting setting, size_t *position,
                         int64_t *ret_minute, double *ret_value);
/* One setting as of each point of the span. */
void td_ring_fill(const struct td_rings *rings, const struct td_ring *ring,
                  enum td_ring_setting setting, double *ret_values);
