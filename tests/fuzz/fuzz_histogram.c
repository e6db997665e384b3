/* Any bytes as a stream of histogram operations: weights stay non-negative, percentiles monotone,
 * a checkpoint loads again, and merging is commutative within 1e-9 or epsilon. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "decide/vertical/recommender/config.h"

#define OPERATION_BYTES 4
#define OPERATIONS_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct td_decaying *histogram, const struct td_decay *decay)
{
    double last = 0;
    struct td_histogram_checkpoint saved;
    struct td_decaying loaded;
    for (int step = 0; step <= 10; step++) {
        double value = td_decaying_percentile(histogram, decay, step / 10.0);
        td_assert(value >= last);
        last = value;
    }
    for (int32_t bucket = 0; bucket < decay->scheme.count; bucket++) {
        td_assert(td_histogram_weight(&histogram->plain, bucket) >= 0);
    }
    td_decaying_save(histogram, &saved);
    td_decaying_init(&loaded, decay);
    int code = td_decaying_load(&loaded, decay, &saved, NULL);
    td_assert(code == TD_OK);
    td_decaying_done(&loaded);
}

static void apply(struct td_decaying *histogram, const struct td_decay *decay, const uint8_t *bytes,
                  struct td_instant *time)
{
    double value = exp((double)bytes[1] / 16.0) * 0.005;
    double weight = (double)bytes[2] / 100.0;
    time->unix_seconds += (int64_t)bytes[3] * bytes[3] * 60;
    if (bytes[0] % 4 == 0) {
        td_decaying_subtract(histogram, decay, value, weight, *time);
    } else {
        td_decaying_add(histogram, decay, value, weight, *time);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct td_vertical_config config = td_vertical_config_default();
    struct td_instant time = {.unix_seconds = 1772323200};
    struct td_decaying sides[2];
    struct td_decaying copies[2];
    td_decaying_init(&sides[0], &config.cpu);
    td_decaying_init(&sides[1], &config.cpu);
    for (size_t at = 0; at + OPERATION_BYTES <= size && at < OPERATIONS_MAX;
         at += OPERATION_BYTES) {
        apply(&sides[data[at] >> 7], &config.cpu, data + at, &time);
    }
    for (int i = 0; i < 2; i++) {
        check(&sides[i], &config.cpu);
        td_decaying_copy(&sides[i], &copies[i]);
    }
    td_decaying_merge(&sides[0], &config.cpu, &sides[1]);
    td_decaying_merge(&copies[1], &config.cpu, &copies[0]);
    for (int32_t bucket = 0; bucket < config.cpu.scheme.count; bucket++) {
        double a = td_histogram_weight(&sides[0].plain, bucket);
        double b = td_histogram_weight(&copies[1].plain, bucket);
        /* A merge leaves out the other side's weights below epsilon, as upstream's does. */
        double allowed = fmax(1e-9 * fmax(1.0, fabs(a)), config.cpu.scheme.epsilon);
        td_assert(fabs(a - b) <= allowed);
    }
    check(&sides[0], &config.cpu);
    for (int i = 0; i < 2; i++) {
        td_decaying_done(&sides[i]);
        td_decaying_done(&copies[i]);
    }
    return 0;
}
