/*
 * The live table of `tandem up`: what a world shows (sim/world/world.h) as text. Pure: the caller
 * knows the terminal. Columns that do not fit are dropped from the right, the last one is cut.
 * Nothing that a name or a message holds reaches the terminal as an order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "sim/world/world.h"

struct td_screen {
    size_t width;  /* columns of the terminal */
    size_t height; /* lines; rows that do not fit are counted in a last line */
    bool has_colour;
    bool has_utf8;   /* arrows are arrows */
    bool shows_help; /* explains the columns instead */
};

/* "day 1 09:42   pods 23   cpu asked ..." and one line for each workload, each ended by a newline:
 * at most `height` lines of at most `width` columns. */
void td_screen_table(const struct td_screen *screen, const struct td_world_view *view,
                     struct td_buf *buf);

/* "day 1 09:42:15  Deployment web  ScalingReplicaSet: ..." in one line. */
void td_screen_event(const struct td_world_event *event, bool has_colour, struct td_buf *buf);
