/*
 * Time is passed in. A clock tells wall time (nanoseconds since 1970 UTC) and a steady time that
 * never goes back; real, accelerated (a factor over the real one) or virtual (moved only by
 * td_clock_advance, so that a run is a function of its inputs). Deciders never see a clock, only a
 * td_time. One thread moves a virtual clock; reading is safe from any thread for the other two.
 */
#pragma once

#include <stdint.h>

typedef int64_t td_time;     /* nanoseconds since 1970-01-01T00:00:00Z: years 1678 to 2262 */
typedef int64_t td_duration; /* nanoseconds, as Go's time.Duration */

#define TD_NANOSECOND ((td_duration)1)
#define TD_MICROSECOND (1000 * TD_NANOSECOND)
#define TD_MILLISECOND (1000 * TD_MICROSECOND)
#define TD_SECOND (1000 * TD_MILLISECOND)
#define TD_MINUTE (60 * TD_SECOND)
#define TD_HOUR (60 * TD_MINUTE)

enum td_clock_kind { TD_CLOCK_REAL, TD_CLOCK_ACCELERATED, TD_CLOCK_VIRTUAL };

struct td_clock {
    enum td_clock_kind kind;
    double speed;             /* accelerated: clock seconds per real second, above 0 */
    td_time wall_start;       /* wall time when steady_start was read; virtual: the start */
    td_duration steady_start; /* accelerated: the machine's steady time at the start */
    td_duration elapsed;      /* virtual: all of it; accelerated: before the speed last changed */
};

struct td_clock td_clock_real(void);
struct td_clock td_clock_accelerated(double speed, td_time wall_start);
struct td_clock td_clock_virtual(td_time wall_start);

td_time td_clock_wall(const struct td_clock *clock);
td_duration td_clock_steady(const struct td_clock *clock);

/* Virtual clocks only; elapsed is not negative. */
void td_clock_advance(struct td_clock *clock, td_duration elapsed);

/* From now on, on an accelerated clock; a real one is one of speed 1 until then, and accelerated
 * from then on. Steady time does not jump. Who waits on this clock has to be told of a speed:
 * td_loop_set_speed. */
void td_clock_set_speed(struct td_clock *clock, double speed);
void td_clock_set_wall(struct td_clock *clock, td_time wall);

/* How long the machine has to wait for `span` to pass on this clock; 0 on a virtual one. */
td_duration td_clock_real_span(const struct td_clock *clock, td_duration span);

/* An accelerated clock makes neither other programs nor the network faster: what they wait for
 * goes by the machine's time. A virtual clock takes that as its own.
 * Steady and wall time of the machine, and how much passes on this clock while `span` does there.
 */
td_duration td_clock_machine(const struct td_clock *clock);
td_time td_clock_machine_wall(const struct td_clock *clock);
td_duration td_clock_from_machine(const struct td_clock *clock, td_duration span);
