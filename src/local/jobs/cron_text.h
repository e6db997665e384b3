/*
 * Schedules of CronJobs: five fields (minute, hour, day of month, month, day of week) of numbers,
 * names, ranges, steps and lists, or a descriptor such as @daily or @every 1h. Says whether one can
 * be read; nothing here computes times.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

/* Empty when it can be read, else what is wrong. */
td_str td_cron_problem(struct td_arena *arena, td_str schedule);

/* Does it name a time zone itself (TZ= or CRON_TZ=)? */
bool td_cron_has_zone(td_str schedule);
