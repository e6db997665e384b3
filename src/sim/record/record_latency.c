#include <math.h>

#include "base/assert.h"
#include "sim/record/record.h"

#define LATENCY_LEAST 0.0001 /* seconds; the first bucket ends there */
#define LATENCY_GROWTH 1.02

static_assert(TD_RECORD_LATENCY_BUCKETS == 896, "the last bucket begins beyond an hour");

static size_t latency_bucket(double seconds)
{
    if (!(seconds > LATENCY_LEAST)) {
        return 0;
    }
    double place = ceil(log(seconds / LATENCY_LEAST) / log(LATENCY_GROWTH));
    return place < TD_RECORD_LATENCY_BUCKETS ? (size_t)place : TD_RECORD_LATENCY_BUCKETS - 1;
}

void td_record_latency_add(struct td_record_latency *latency, double seconds, double requests)
{
    if (!(requests > 0) || !(seconds >= 0)) {
        return;
    }
    latency->served[latency_bucket(seconds)] += requests;
    latency->sum += seconds * requests;
    latency->most = seconds > latency->most ? seconds : latency->most;
}

void td_record_latency_join(struct td_record_latency *sum, const struct td_record_latency *other)
{
    for (size_t i = 0; i < TD_RECORD_LATENCY_BUCKETS; i++) {
        sum->served[i] += other->served[i];
    }
    sum->sum += other->sum;
    sum->most = other->most > sum->most ? other->most : sum->most;
}

static double latency_count(const struct td_record_latency *latency)
{
    double count = 0;
    for (size_t i = 0; i < TD_RECORD_LATENCY_BUCKETS; i++) {
        count += latency->served[i];
    }
    return count;
}

double td_record_latency_at(const struct td_record_latency *latency, double share)
{
    double count = latency_count(latency);
    double so_far = 0;
    for (size_t i = 0; count > 0 && i < TD_RECORD_LATENCY_BUCKETS; i++) {
        so_far += latency->served[i];
        if (so_far >= share * count) {
            double end = LATENCY_LEAST * pow(LATENCY_GROWTH, (double)i);
            return end < latency->most ? end : latency->most;
        }
    }
    return count > 0 ? latency->most : -1;
}

double td_record_latency_mean(const struct td_record_latency *latency)
{
    double count = latency_count(latency);
    return count > 0 ? latency->sum / count : -1;
}
