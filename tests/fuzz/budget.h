/*
 * What one input may cost: processor time and memory above what there was, both asserted. Times are
 * those of a sanitizer's build, several times a release's; a busy neighbour does not count.
 */
#pragma once

#include <sys/resource.h>
#include <time.h>

#include "base/assert.h"

#define BUDGET_SECONDS_MAX 2.0
#define BUDGET_MIB_MAX 256

struct budget {
    double seconds;
    long peak_kib;
};

static inline double budget_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline long budget_peak_kib(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static inline struct budget budget_begin(void)
{
    return (struct budget){.seconds = budget_seconds(), .peak_kib = budget_peak_kib()};
}

static inline void budget_end(const struct budget *budget)
{
    td_assert(budget_seconds() - budget->seconds < BUDGET_SECONDS_MAX);
    td_assert(budget_peak_kib() - budget->peak_kib < BUDGET_MIB_MAX * 1024L);
}
