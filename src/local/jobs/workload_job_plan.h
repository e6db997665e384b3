/*
 * The arithmetic of Jobs: pure. How many pods should run, when the next may be tried after a
 * failure, and sets of completion indexes as they stand in a status ("0-3,5").
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/os/clock.h"
#include "base/str.h"

struct td_job_need {
    int64_t parallelism;
    int64_t completions; /* negative: not given, so that one success is enough */
    int64_t succeeded;
    int64_t active;
};

int64_t td_job_want_active(const struct td_job_need *need);

/* Is it done? */
bool td_job_is_complete(const struct td_job_need *need);

/* When the next pod may be made after so many failures since the last success: ten seconds after
 * the last one, then twice as long each time, at most ten minutes. */
td_time td_job_retry_at(int64_t failures, td_time last_failure);

/* A set of indexes below `size`, which is at most TD_JOB_INDEXES_MAX. */
struct td_job_indexes {
    uint64_t *bits; /* in the arena */
    size_t size;
};

struct td_job_indexes td_job_indexes_new(struct td_arena *arena, size_t size);
void td_job_indexes_add(struct td_job_indexes *set, int64_t index); /* others are left out */
bool td_job_indexes_has(const struct td_job_indexes *set, int64_t index);
size_t td_job_indexes_count(const struct td_job_indexes *set);

/* Adds those of a text; what cannot be read is left out. */
void td_job_indexes_read(struct td_job_indexes *set, td_str text);
td_str td_job_indexes_write(struct td_arena *arena, const struct td_job_indexes *set);
