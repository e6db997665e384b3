/* What the learning topics share: flags, streams of events, checkpoints in the form of the vectors.
 * The vectors are upstream's, so they are judged with is_upstream_exact. */
#pragma once

#include "decide/vertical/recommender/recommend.h"
#include "golden/hpa_support.h"

#define LEARN_CONTAINERS_MAX 64

int golden_learn_config(const struct td_json *in, struct td_vertical_config *ret,
                        struct td_error *err);

/* Time, or null when it is not set. */
struct td_json *golden_optional_time(struct td_arena *arena, td_time time);
struct td_json *golden_optional_instant(struct td_arena *arena, struct td_instant instant);

/* All fields present, as the vectors have them. */
struct td_json *golden_histogram_json(struct td_arena *arena,
                                      const struct td_histogram_checkpoint *histogram,
                                      bool has_reference);
struct td_json *golden_checkpoint_json(struct td_arena *arena,
                                       const struct td_checkpoint *checkpoint);

/* One entry of a stream: `count` samples, or one. */
struct golden_event {
    td_str op;
    int64_t container;
    td_time time;
    int64_t value;
    bool is_series;
    int64_t count;
    td_duration step;
    int64_t multiplier;
    int64_t modulus;
};
int golden_event_read(const struct td_json *json, struct golden_event *ret, struct td_error *err);
int64_t golden_event_value(const struct golden_event *event, int64_t index);

/* Instances that share an aggregate. */
struct golden_instances {
    struct td_container_state states[LEARN_CONTAINERS_MAX];
};

/* Feeds events; results (and the calls made, unless NULL) are appended. */
int golden_learn_events(struct td_arena *arena, const struct td_vertical_config *config,
                        const struct td_json *events, struct td_aggregate *aggregate,
                        struct golden_instances *instances, struct td_json *results,
                        struct td_json *calls, struct td_error *err);

/* Go's text of an OOM that came too late. */
td_str golden_oom_error(struct td_arena *arena, enum td_oom_verdict verdict, td_time time);

struct td_json *golden_percentiles(struct td_arena *arena, const struct td_decaying *histogram,
                                   const struct td_decay *decay, const struct td_json *fractions);

struct td_json *golden_bounds_json(struct td_arena *arena, const struct td_learn_policy *learn,
                                   const struct td_estimate *estimate);

/* ContainerResourcePolicy as JSON; NULL and null give NULL. */
int golden_container_policy(struct td_arena *arena, const struct td_json *json,
                            struct td_container_policy *ret, struct td_error *err);

/* Equal as JSON values, numbers as doubles: the vectors write seventeen digits. */
bool golden_same_doubles(const struct td_json *expected, const struct td_json *got);

/* "24h" of "24h0m0s", as the vectors write durations. */
td_str golden_short_duration(struct td_arena *arena, td_duration duration);
