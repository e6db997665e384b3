/* The three clocks: real, accelerated, virtual. Only a virtual one stands still by itself. */
#include "base/os/clock.h"

#include <math.h>
#include <time.h>

#include "base/assert.h"

static td_duration clock_read(clockid_t id)
{
    struct timespec now;
    int result = clock_gettime(id, &now);
    td_assert(result == 0); /* both clocks are always there on Linux */
    return (td_duration)now.tv_sec * TD_SECOND + (td_duration)now.tv_nsec;
}

/* The end of time is a place where clocks stay, not one where they wrap. */
static int64_t clock_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return a < 0 ? INT64_MIN : INT64_MAX;
    }
    return sum;
}

static int64_t clock_from_double(double value)
{
    /* 2^63 is the first double that does not fit. */
    return value >= 0x1p63 ? INT64_MAX : (int64_t)value;
}

struct td_clock td_clock_real(void)
{
    return (struct td_clock){.kind = TD_CLOCK_REAL, .speed = 1};
}

struct td_clock td_clock_accelerated(double speed, td_time wall_start)
{
    td_assert(isfinite(speed));
    td_assert(speed > 0);
    return (struct td_clock){
        .kind = TD_CLOCK_ACCELERATED,
        .speed = speed,
        .wall_start = wall_start,
        .steady_start = clock_read(CLOCK_MONOTONIC),
    };
}

struct td_clock td_clock_virtual(td_time wall_start)
{
    return (struct td_clock){.kind = TD_CLOCK_VIRTUAL, .speed = 1, .wall_start = wall_start};
}

td_duration td_clock_steady(const struct td_clock *clock)
{
    switch (clock->kind) {
    case TD_CLOCK_REAL:
        return clock_read(CLOCK_MONOTONIC);
    case TD_CLOCK_ACCELERATED: {
        td_duration passed = clock_read(CLOCK_MONOTONIC) - clock->steady_start;
        return clock_add(clock->elapsed, clock_from_double((double)passed * clock->speed));
    }
    case TD_CLOCK_VIRTUAL:
        break;
    }
    return clock->elapsed;
}

td_time td_clock_wall(const struct td_clock *clock)
{
    if (clock->kind == TD_CLOCK_REAL) {
        return clock_read(CLOCK_REALTIME);
    }
    return clock_add(clock->wall_start, td_clock_steady(clock));
}

void td_clock_advance(struct td_clock *clock, td_duration elapsed)
{
    td_assert(clock->kind == TD_CLOCK_VIRTUAL);
    td_assert(elapsed >= 0);
    clock->elapsed = clock_add(clock->elapsed, elapsed);
}

/* A real clock that is not the machine's any more: it goes on from where it is. */
static void clock_detach(struct td_clock *clock)
{
    td_assert(clock->kind != TD_CLOCK_VIRTUAL);
    if (clock->kind == TD_CLOCK_REAL) {
        td_duration steady = clock_read(CLOCK_MONOTONIC);
        *clock = (struct td_clock){
            .kind = TD_CLOCK_ACCELERATED,
            .speed = 1,
            .wall_start = clock_read(CLOCK_REALTIME) - steady,
            .steady_start = steady,
            .elapsed = steady,
        };
    }
}

void td_clock_set_wall(struct td_clock *clock, td_time wall)
{
    clock_detach(clock);
    clock->wall_start = clock_add(wall, -td_clock_steady(clock));
}

void td_clock_set_speed(struct td_clock *clock, double speed)
{
    clock_detach(clock);
    td_assert(isfinite(speed));
    td_assert(speed > 0);
    clock->elapsed = td_clock_steady(clock);
    clock->steady_start = clock_read(CLOCK_MONOTONIC);
    clock->speed = speed;
}

td_duration td_clock_real_span(const struct td_clock *clock, td_duration span)
{
    if (clock->kind == TD_CLOCK_VIRTUAL || span <= 0) {
        return 0;
    }
    if (clock->kind == TD_CLOCK_REAL) {
        return span;
    }
    return clock_from_double(ceil((double)span / clock->speed));
}

td_duration td_clock_machine(const struct td_clock *clock)
{
    return clock->kind == TD_CLOCK_VIRTUAL ? clock->elapsed : clock_read(CLOCK_MONOTONIC);
}

td_time td_clock_machine_wall(const struct td_clock *clock)
{
    return clock->kind == TD_CLOCK_VIRTUAL ? td_clock_wall(clock) : clock_read(CLOCK_REALTIME);
}

td_duration td_clock_from_machine(const struct td_clock *clock, td_duration span)
{
    if (clock->kind != TD_CLOCK_ACCELERATED) {
        return span;
    }
    double own = (double)span * clock->speed;
    return own < -0x1p63 ? INT64_MIN : clock_from_double(own);
}
