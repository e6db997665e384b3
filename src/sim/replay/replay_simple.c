/*
 * The policies to compare with: what was set, KRR's rule with its knowledge of OOMs, and an oracle.
 *
 * KRR's is a percentile over all that was seen, asked for once a day. Sorting all of it each day
 * would be quadratic in the length of a trace, so the values are ranked once, at the start, and
 * what was seen so far is counted in a Fenwick tree over the ranks: a percentile is a walk of log n
 * steps.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "sim/replay/replay_policy.h"

#define KRR_CPU_PERMILLE 950
#define KRR_MEMORY_PERMILLE 1150
#define KRR_CPU_MIN 10        /* millicores */
#define KRR_OOM_PERMILLE 1250 /* of the limit at which a container was killed */
#define KRR_MEMORY_MIN ((int64_t)104857600)

static int64_t at_least(int64_t value, int64_t min)
{
    return value > min ? value : min;
}

static void as_was_before(void *state, const struct td_trace *trace, size_t index,
                          struct replay_request *request)
{
    (void)state;
    request->cpu_milli = trace->items[index].cpu_limit_milli;
    request->memory_bytes = trace->items[index].memory_limit_bytes;
    request->why = "it was really set so";
}

const struct replay_rule replay_as_was = {.is_as_was = true, .before = as_was_before};

struct krr {
    int64_t *values; /* CPU of the whole trace, ascending */
    uint32_t *tree;  /* counts of what was seen, from 1 */
    size_t count;    /* of values */
    size_t seen;
    int64_t memory_max;
    int64_t oom_max; /* the highest limit at which it was killed; 0: it never was */
    int64_t decided; /* time of the last decision, or of the first window */
};

static int compare_int64(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static void krr_init(void *state, const struct td_trace *trace,
                     const struct td_replay_policy *policy)
{
    (void)policy;
    struct krr *krr = state;
    krr->count = trace->count;
    krr->values = td_alloc_zero(trace->count + 1, sizeof(krr->values[0]));
    krr->tree = td_alloc_zero(trace->count + 1, sizeof(krr->tree[0]));
    for (size_t i = 0; i < trace->count; i++) {
        krr->values[i] = trace->items[i].cpu_milli;
    }
    qsort(krr->values, krr->count, sizeof(krr->values[0]), compare_int64);
    krr->decided = trace->count > 0 ? trace->items[0].time : 0;
}

static void krr_done(void *state)
{
    struct krr *krr = state;
    td_free(krr->values);
    td_free(krr->tree);
}

/* The first place of a value among the sorted ones. */
static size_t krr_rank(const struct krr *krr, int64_t value)
{
    size_t low = 0;
    size_t high = krr->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (krr->values[middle] < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void krr_add(struct krr *krr, int64_t value)
{
    for (size_t i = krr_rank(krr, value) + 1; i <= krr->count; i += i & (~i + 1)) {
        krr->tree[i]++;
    }
    krr->seen++;
}

/* The value with `below` of the seen ones before it in ascending order. */
static int64_t krr_pick(const struct krr *krr, size_t below)
{
    size_t step = 1;
    while (step * 2 <= krr->count) {
        step *= 2;
    }
    size_t at = 0;
    for (; step > 0; step /= 2) {
        if (at + step <= krr->count && krr->tree[at + step] <= below) {
            at += step;
            below -= krr->tree[at];
        }
    }
    return krr->values[at];
}

static void krr_after(void *state, const struct replay_sample *sample,
                      struct replay_request *request)
{
    struct krr *krr = state;
    krr_add(krr, sample->cpu_milli);
    krr->memory_max = at_least(sample->memory_bytes, krr->memory_max);
    if (sample->is_oom) {
        krr->oom_max = at_least(sample->limit_bytes, krr->oom_max);
    }
    int64_t memory = at_least(krr->memory_max * KRR_MEMORY_PERMILLE / 1000,
                              krr->oom_max * KRR_OOM_PERMILLE / 1000);
    if (sample->time - krr->decided >= REPLAY_DAY) {
        size_t below = krr->seen * KRR_CPU_PERMILLE / 1000;
        krr->decided = sample->time;
        request->cpu_milli = at_least(krr_pick(krr, below), KRR_CPU_MIN);
        request->memory_bytes = at_least(memory, KRR_MEMORY_MIN);
        request->why = "once a day: the 95th percentile of CPU, the highest memory + 15 %";
    } else if (sample->is_oom) {
        request->memory_bytes = at_least(memory, KRR_MEMORY_MIN); /* its user asks again */
        request->why = "killed: 25 % above the limit of that time";
    }
}

const struct replay_rule replay_krr = {
    .state_bytes = sizeof(struct krr), .init = krr_init, .done = krr_done, .after = krr_after};

struct oracle {
    int64_t until; /* the end of what it has looked at */
};

/* Each window is looked at once, because a look ends where the next begins. */
static void oracle_before(void *state, const struct td_trace *trace, size_t index,
                          struct replay_request *request)
{
    struct oracle *oracle = state;
    int64_t now = trace->items[index].time;
    if (index > 0 && now < oracle->until) {
        return;
    }
    oracle->until = now + REPLAY_DAY;
    request->cpu_milli = 1;
    request->memory_bytes = 1;
    request->why = "the highest use of the day to come";
    for (size_t i = index; i < trace->count && trace->items[i].time < oracle->until; i++) {
        request->cpu_milli = at_least(trace->items[i].cpu_milli, request->cpu_milli);
        request->memory_bytes = at_least(trace->items[i].memory_bytes_max, request->memory_bytes);
    }
}

const struct replay_rule replay_oracle = {.state_bytes = sizeof(struct oracle),
                                          .before = oracle_before};
