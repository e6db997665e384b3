/*
 * One turn of the loop: (1) timers that are due, (2) jobs, both within one slice of real time, (3)
 * libevent, without waiting when there is more to do. When there is not, real clocks wait in
 * libevent until the earliest timer, for which one libevent alarm is set; a virtual clock is moved
 * to it instead, but only after libevent had nothing active either.
 *
 * Timers are a binary heap by due time and then by the order in which they were set. A timer set
 * while timers fire waits for the next turn, even with no delay, so a timer that sets itself again
 * cannot shut out the rest.
 *
 * On a virtual clock a slice ends after a number of jobs, not after a time, so that the order of
 * everything depends on the inputs alone.
 */
#include "base/os/loop.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <event2/event.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop_internal.h"

#define TIMER_NOT_SET SIZE_MAX
#define HEAP_CAP_FIRST ((size_t)16)
#define LOOP_ALARM_MAX TD_HOUR /* a longer wait is made of several: libevent adds up timevals */

static bool timer_is_before(const struct td_timer *a, const struct td_timer *b)
{
    return a->due < b->due || (a->due == b->due && a->sequence < b->sequence);
}

static void heap_put(struct td_loop *loop, size_t place, struct td_timer *timer)
{
    loop->heap[place] = timer;
    timer->place = place;
}

/* Move `timer`, which stands at `place`, to where it belongs. */
static void heap_settle(struct td_loop *loop, size_t place, struct td_timer *timer)
{
    while (place > 0 && timer_is_before(timer, loop->heap[(place - 1) / 2])) {
        heap_put(loop, place, loop->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (size_t child = 2 * place + 1; child < loop->heap_count; child = 2 * place + 1) {
        bool has_right = child + 1 < loop->heap_count;
        if (has_right && timer_is_before(loop->heap[child + 1], loop->heap[child])) {
            child++;
        }
        if (!timer_is_before(loop->heap[child], timer)) {
            break;
        }
        heap_put(loop, place, loop->heap[child]);
        place = child;
    }
    heap_put(loop, place, timer);
}

static void heap_resize(struct td_loop *loop, size_t cap)
{
    loop->heap = td_realloc(loop->heap, cap * sizeof(struct td_timer *));
    loop->heap_cap = cap;
}

static void heap_add(struct td_loop *loop, struct td_timer *timer)
{
    if (loop->heap_count == loop->heap_cap) {
        heap_resize(loop, loop->heap_cap > 0 ? loop->heap_cap * 2 : HEAP_CAP_FIRST);
    }
    loop->heap_count++;
    heap_settle(loop, loop->heap_count - 1, timer);
}

static void heap_remove(struct td_loop *loop, struct td_timer *timer)
{
    size_t place = timer->place;
    td_assert(place < loop->heap_count);
    td_assert(loop->heap[place] == timer);
    timer->place = TIMER_NOT_SET;
    loop->heap_count--;
    if (place < loop->heap_count) {
        heap_settle(loop, place, loop->heap[loop->heap_count]);
    }
    if (loop->heap_cap > HEAP_CAP_FIRST && loop->heap_count < loop->heap_cap / 4) {
        heap_resize(loop, loop->heap_cap / 2);
    }
}

void td_timer_init(struct td_timer *timer, struct td_loop *loop, td_timer_fn fn, void *context)
{
    *timer = (struct td_timer){.loop = loop, .fn = fn, .context = context, .place = TIMER_NOT_SET};
}

struct td_timer *td_timer_new(struct td_loop *loop, td_timer_fn fn, void *context)
{
    struct td_timer *timer = td_alloc(sizeof(*timer));
    td_timer_init(timer, loop, fn, context);
    loop->timer_count++;
    return timer;
}

void td_timer_free(struct td_timer *timer)
{
    if (!timer) {
        return;
    }
    td_timer_stop(timer);
    td_assert(timer->loop->timer_count > 0);
    timer->loop->timer_count--;
    td_free(timer);
}

void td_timer_set(struct td_timer *timer, td_duration after)
{
    struct td_loop *loop = timer->loop;
    td_duration now = td_clock_steady(loop->clock);
    timer->due = after <= 0 ? now : now > INT64_MAX - after ? INT64_MAX : now + after;
    timer->sequence = loop->sequence++;
    timer->is_machine = false;
    if (td_timer_is_set(timer)) {
        heap_settle(loop, timer->place, timer);
    } else {
        heap_add(loop, timer);
    }
}

void td_timer_set_machine(struct td_timer *timer, td_duration after)
{
    td_timer_set(timer, td_clock_from_machine(timer->loop->clock, after));
    timer->is_machine = true;
}

void td_loop_set_speed(struct td_loop *loop, double speed)
{
    double before = loop->clock->speed;
    td_clock_set_speed(loop->clock, speed);
    td_duration now = td_clock_steady(loop->clock);
    size_t count = loop->heap_count;
    for (loop->heap_count = 0; loop->heap_count < count;) {
        struct td_timer *timer = loop->heap[loop->heap_count];
        if (timer->is_machine && timer->due > now) {
            double span = ceil((double)(timer->due - now) / before);
            timer->due = now + td_clock_from_machine(loop->clock, (td_duration)span);
        }
        loop->heap_count++;
        heap_settle(loop, loop->heap_count - 1, timer);
    }
    loop->alarm_due = INT64_MIN; /* the alarm goes by the machine's time */
}

void td_timer_stop(struct td_timer *timer)
{
    if (td_timer_is_set(timer)) {
        heap_remove(timer->loop, timer);
    }
}

bool td_timer_is_set(const struct td_timer *timer)
{
    return timer->place != TIMER_NOT_SET;
}

static void loop_alarm_rings(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct td_loop *loop = context;
    loop->is_alarm_set = false; /* the turn that follows looks at the timers */
}

static struct event_base *loop_base_new(bool is_accelerated)
{
    struct event_config *config = event_config_new();
    if (!config) {
        return NULL;
    }
    if (is_accelerated) {
        /* Without it libevent reads a clock of 4 ms, so that a wait may end so much too early, and
         * rounds up to whole milliseconds; with it each wait is a system call more. */
        (void)event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    }
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

int td_loop_new(struct td_clock *clock, struct td_loop **ret, struct td_error *err)
{
    struct event_base *base = loop_base_new(clock->kind == TD_CLOCK_ACCELERATED);
    if (!base) {
        return td_error_set(err, TD_IO, "cannot make an event loop: %s", strerror(errno));
    }
    struct td_loop *loop = td_alloc_zero(1, sizeof(*loop));
    loop->base = base;
    loop->clock = clock;
    loop->machine = td_clock_real();
    loop->alarm = event_new(base, -1, 0, loop_alarm_rings, loop);
    if (!loop->alarm) {
        td_out_of_memory();
    }
    *ret = loop;
    return TD_OK;
}

void td_loop_free(struct td_loop *loop)
{
    if (!loop) {
        return;
    }
    td_assert(!loop->is_running);
    td_assert(loop->timer_count == 0);
    td_assert(loop->queue_count == 0);
    td_assert(loop->heap_count == 0);
    event_free(loop->alarm);
    event_base_free(loop->base);
    td_free(loop->heap);
    td_free(loop);
}

void td_loop_stop(struct td_loop *loop)
{
    loop->is_stopped = true;
    (void)event_base_loopbreak(loop->base); /* no matter outside libevent: the flag is enough */
}

struct event_base *td_loop_base(struct td_loop *loop)
{
    return loop->base;
}

struct td_clock *td_loop_clock(struct td_loop *loop)
{
    return loop->clock;
}

bool td_loop_slice_is_over(struct td_loop *loop)
{
    bool is_virtual = loop->clock->kind == TD_CLOCK_VIRTUAL;
    return !is_virtual && td_clock_steady(&loop->machine) >= loop->slice_end;
}

/* Callbacks may free, set and stop any timer, their own too: nothing is held across the call. */
static void loop_fire_timers(struct td_loop *loop)
{
    td_duration now = td_clock_steady(loop->clock);
    uint64_t sequence_end = loop->sequence;
    while (loop->heap_count > 0 && !loop->is_stopped) {
        struct td_timer *timer = loop->heap[0];
        /* What was set meanwhile is due now at the earliest, so it stands behind all the others. */
        if (timer->due > now || timer->sequence >= sequence_end) {
            return;
        }
        heap_remove(loop, timer);
        timer->fn(timer, timer->context);
        if (td_loop_slice_is_over(loop)) {
            return;
        }
    }
}

static void loop_run_jobs(struct td_loop *loop)
{
    bool is_virtual = loop->clock->kind == TD_CLOCK_VIRTUAL;
    bool is_over = false;
    for (size_t count = 1; loop->ready_first && !loop->is_stopped && !is_over; count++) {
        td_queue_run_next(loop);
        is_over = is_virtual ? count >= TD_SLICE_JOBS_MAX : td_loop_slice_is_over(loop);
    }
}

static bool loop_has_events(const struct td_loop *loop)
{
    unsigned kinds = EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE | EVENT_BASE_COUNT_VIRTUAL;
    return event_base_get_num_events(loop->base, kinds) > 0;
}

/* One round of libevent; *ret_is_busy tells whether any callback was run. */
static int loop_serve_events(struct td_loop *loop, int flags, bool *ret_is_busy,
                             struct td_error *err)
{
    bool is_busy = event_base_get_num_events(loop->base, EVENT_BASE_COUNT_ACTIVE) > 0;
    (void)event_base_get_max_events(loop->base, EVENT_BASE_COUNT_ACTIVE, 1); /* clears */
    if (event_base_loop(loop->base, EVLOOP_ONCE | flags) < 0) {
        return td_error_set(err, TD_IO, "wait for events: %s", strerror(errno));
    }
    int active_max = event_base_get_max_events(loop->base, EVENT_BASE_COUNT_ACTIVE, 1);
    *ret_is_busy = is_busy || active_max > 0;
    return TD_OK;
}

static void loop_set_alarm(struct td_loop *loop, td_duration now)
{
    if (loop->heap_count == 0) {
        if (loop->is_alarm_set) {
            (void)event_del(loop->alarm); /* fails only for an event without a base */
            loop->is_alarm_set = false;
        }
        return;
    }
    td_duration due = loop->heap[0]->due;
    if (loop->is_alarm_set && loop->alarm_due == due) {
        return;
    }
    td_duration span = td_clock_real_span(loop->clock, due - now);
    span = span < LOOP_ALARM_MAX ? span : LOOP_ALARM_MAX;
    td_duration micros = (span + TD_MICROSECOND - 1) / TD_MICROSECOND;
    const struct timeval wait = {
        .tv_sec = (time_t)(micros / 1000000),
        .tv_usec = (suseconds_t)(micros % 1000000),
    };
    if (event_add(loop->alarm, &wait) != 0) {
        td_out_of_memory();
    }
    loop->alarm_due = due;
    loop->is_alarm_set = true;
}

/* Serve libevent after a slice, and let time pass when there is nothing else to do. */
static int loop_wait(struct td_loop *loop, bool *ret_is_done, struct td_error *err)
{
    bool is_virtual = loop->clock->kind == TD_CLOCK_VIRTUAL;
    td_duration now = td_clock_steady(loop->clock);
    bool has_work = loop->ready_first || (loop->heap_count > 0 && loop->heap[0]->due <= now);
    bool is_busy = false;
    if ((has_work || is_virtual) && loop_has_events(loop)) {
        int result = loop_serve_events(loop, EVLOOP_NONBLOCK, &is_busy, err);
        if (result != TD_OK) {
            return result;
        }
    }
    if (has_work || is_busy || loop->is_stopped) {
        return TD_OK;
    }
    if (is_virtual && loop->heap_count > 0) {
        td_clock_advance(loop->clock, loop->heap[0]->due - now);
        return TD_OK;
    }
    if (!is_virtual) {
        loop_set_alarm(loop, now);
    }
    if (!loop_has_events(loop)) {
        *ret_is_done = true;
        return TD_OK;
    }
    return loop_serve_events(loop, 0, &is_busy, err);
}

int td_loop_run(struct td_loop *loop, struct td_error *err)
{
    td_assert(!loop->is_running);
    loop->is_running = true;
    int result = TD_OK;
    bool is_done = false;
    while (result == TD_OK && !is_done && !loop->is_stopped) {
        loop->slice_end = td_clock_steady(&loop->machine) + TD_SLICE_US * TD_MICROSECOND;
        loop_fire_timers(loop);
        loop_run_jobs(loop);
        if (!loop->is_stopped) {
            result = loop_wait(loop, &is_done, err);
        }
    }
    loop->is_running = false;
    loop->is_stopped = false;
    return result;
}
