/*
 * The times of a CronJob's schedule, as robfig/cron computes them: five fields, or a descriptor
 * such as @daily or @every 90s. Time zones are UTC and fixed offsets ("Etc/GMT-2" is two hours
 * east); zones with rules need a database that this program does not carry. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "base/str.h"

struct td_error;

struct td_cron_schedule {
    uint64_t minutes; /* one bit a value */
    uint64_t hours;
    uint64_t days;
    uint64_t months;
    uint64_t weekdays;
    bool is_any_day;     /* "*": only the day of the week counts */
    bool is_any_weekday; /* the other way round; neither: one of them is enough */
    td_duration every;   /* above 0: instead of all of these */
    int64_t offset;      /* seconds east of UTC */
};

/* TD_INVALID when it cannot be read. */
int td_cron_parse(td_str schedule, struct td_cron_schedule *ret, struct td_error *err);

/* "", "UTC", "Etc/UTC", "GMT", "Etc/GMT+5"; TD_INVALID for all others. */
int td_cron_zone(td_str zone, int64_t *ret_offset, struct td_error *err);

/* The first time after `time`; TD_NOT_FOUND when there is none within five years. */
int td_cron_next(const struct td_cron_schedule *schedule, td_time time, td_time *ret);
