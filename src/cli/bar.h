/*
 * The progress bar of long work: it begins to show after two seconds, on a terminal only, on
 * standard error. A bar that cannot be drawn is no failure.
 */
#pragma once

#include <stdbool.h>

#include "base/os/clock.h"

struct td_bar {
    struct td_clock clock;
    td_duration began;
    td_duration drawn; /* 0: never */
    bool is_off;
};

void td_bar_begin(struct td_bar *bar, bool is_off);
td_duration td_bar_passed(const struct td_bar *bar);

/* Is it time to draw it (anew)? */
bool td_bar_is_due(const struct td_bar *bar);

/* "replaying ██████░░░░  60%  " and what the format makes; `share` is 0 to 1. */
void td_bar_draw(struct td_bar *bar, const char *work, double share, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void td_bar_clear(struct td_bar *bar);
