#include "cli/bar.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define BAR_AFTER (2 * TD_SECOND)
#define BAR_EVERY (200 * TD_MILLISECOND)
#define BAR_WIDTH 20

void td_bar_begin(struct td_bar *bar, bool is_off)
{
    bar->clock = td_clock_real();
    bar->began = td_clock_steady(&bar->clock);
    bar->is_off = is_off || !isatty(STDERR_FILENO);
}

td_duration td_bar_passed(const struct td_bar *bar)
{
    return td_clock_steady(&bar->clock) - bar->began;
}

bool td_bar_is_due(const struct td_bar *bar)
{
    return !bar->is_off && td_bar_passed(bar) >= BAR_AFTER &&
           td_clock_steady(&bar->clock) - bar->drawn >= BAR_EVERY;
}

void td_bar_draw(struct td_bar *bar, const char *work, double share, const char *format, ...)
{
    va_list args;
    bar->drawn = td_clock_steady(&bar->clock);
    (void)fprintf(stderr, "\r%s ", work); /* no failure, and so below */
    for (int i = 0; i < BAR_WIDTH; i++) {
        (void)fputs(i < (int)(share * BAR_WIDTH) ? "█" : "░", stderr);
    }
    (void)fprintf(stderr, " %3.0f%%  ", share * 100);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputs(" \033[K", stderr);
}

void td_bar_clear(struct td_bar *bar)
{
    if (bar->drawn > 0) {
        (void)fputs("\r\033[K", stderr);
    }
    bar->drawn = 0;
}
