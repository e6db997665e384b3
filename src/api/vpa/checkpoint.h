/*
 * VerticalPodAutoscalerCheckpoint v1: what a recommender remembers of one container of one VPA, in
 * upstream's format (version v3), readable by upstream and from it. Weights are integers up to
 * 10000 by bucket index. What upstream has no field for (OOM knowledge, the adaptive estimator's
 * state) travels in annotations under tandem.dev/, which upstream ignores and keeps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "base/timefmt.h"

struct td_error;

#define TD_CHECKPOINT_BUCKETS_MAX 176

struct td_histogram_checkpoint {
    struct td_instant reference; /* TD_INSTANT_ZERO when null */
    uint32_t weights[TD_CHECKPOINT_BUCKETS_MAX];
    double total_weight;
};

struct td_checkpoint {
    td_str vpa_name;
    td_str container_name;
    td_str version;
    struct td_instant last_update;  /* TD_INSTANT_ZERO when null */
    struct td_instant first_sample; /* likewise */
    struct td_instant last_sample;  /* likewise */
    int64_t total_samples;
    struct td_histogram_checkpoint cpu;
    struct td_histogram_checkpoint memory;
};

/* One histogram as it lies in a status: refused as below; and written with omitempty. */
int td_histogram_checkpoint_decode(const struct td_json *object,
                                   struct td_histogram_checkpoint *ret, struct td_error *err);
struct td_json *td_histogram_checkpoint_encode(struct td_arena *arena,
                                               const struct td_histogram_checkpoint *histogram);

/* The status object alone; refuses what upstream's decoder refuses, naming the field. Bucket
 * indices outside 0..175 are kept out with TD_INVALID, as upstream's load does. */
int td_checkpoint_decode_status(const struct td_json *status, struct td_checkpoint *ret,
                                struct td_error *err);

/* The status object; zero totals and empty maps are left out as Go's omitempty does. */
struct td_json *td_checkpoint_encode_status(struct td_arena *arena,
                                            const struct td_checkpoint *checkpoint);

/* A whole object, metadata.name "<vpa>-<container>". */
struct td_json *td_checkpoint_encode(struct td_arena *arena, td_str namespace,
                                     const struct td_checkpoint *checkpoint);
int td_checkpoint_decode(struct td_arena *arena, const struct td_json *object,
                         struct td_checkpoint *ret, struct td_error *err);
