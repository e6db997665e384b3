/* The event loop: order of timers, virtual and accelerated time, sockets beside long work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "support/random.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static struct td_loop *loop_new(struct td_clock *clock)
{
    struct td_loop *loop = NULL;
    assert_int_equal(td_loop_new(clock, &loop, NULL), TD_OK);
    return loop;
}

/* What a callback appends to, and the loop it may stop. */
struct record {
    struct td_loop *loop;
    char text[256];
    int count;
    struct td_timer *timers[4];
};

struct named {
    struct record *record;
    char name;
};

static void write_name(struct td_timer *timer, void *context)
{
    (void)timer;
    struct named *named = context;
    char one[2] = {named->name, '\0'};
    strncat(named->record->text, one,
            sizeof(named->record->text) - strlen(named->record->text) - 1);
}

/* By due time, and those due together by the order of setting; setting again moves to the end. */
static void test_loop_timers_fire_in_order(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_virtual(0);
    struct record record = {.loop = loop_new(&clock)};
    struct td_timer *timers[6];
    struct named names[6];
    for (size_t i = 0; i < 6; i++) {
        names[i] = (struct named){.record = &record, .name = (char)('a' + i)};
        timers[i] = td_timer_new(record.loop, write_name, &names[i]);
        assert_false(td_timer_is_set(timers[i]));
        td_timer_set(timers[i], TD_SECOND);
        assert_true(td_timer_is_set(timers[i]));
    }
    td_timer_set(timers[3], TD_MILLISECOND); /* d: first */
    td_timer_set(timers[0], TD_SECOND);      /* a: again, so behind the others */
    td_timer_stop(timers[4]);                /* e: never */
    td_timer_stop(timers[4]);
    td_timer_set(timers[5], -5); /* f: due now, before d */
    assert_int_equal(td_loop_run(record.loop, NULL), TD_OK);
    assert_string_equal(record.text, "fdbca");
    assert_int_equal(td_clock_steady(&clock), TD_SECOND);
    for (size_t i = 0; i < 6; i++) {
        assert_false(td_timer_is_set(timers[i]));
        td_timer_free(timers[i]);
    }
    td_timer_free(NULL);
    td_loop_free(record.loop);
    td_loop_free(NULL);
}

struct tick {
    struct td_clock *clock;
    td_duration last;
    int left;
    int fired;
};

static void tick_second(struct td_timer *timer, void *context)
{
    struct tick *tick = context;
    td_duration now = td_clock_steady(tick->clock);
    assert_true(now == tick->last + TD_SECOND);
    tick->last = now;
    tick->fired++;
    if (--tick->left > 0) {
        td_timer_set(timer, TD_SECOND);
    }
}

/* An hour of timers of a second passes at once, exactly on time. */
static void test_loop_virtual_hour_does_not_wait(void **state)
{
    (void)state;
    struct td_clock machine = td_clock_real();
    td_duration before = td_clock_steady(&machine);
    struct td_clock clock = td_clock_virtual(0);
    struct td_loop *loop = loop_new(&clock);
    struct tick tick = {.clock = &clock, .left = 3600};
    struct td_timer *timer = td_timer_new(loop, tick_second, &tick);
    td_timer_set(timer, TD_SECOND);
    assert_int_equal(td_loop_run(loop, NULL), TD_OK);
    assert_int_equal(tick.fired, 3600);
    assert_int_equal(td_clock_steady(&clock), TD_HOUR);
    assert_true(td_clock_steady(&machine) - before < 5 * TD_SECOND);
    td_timer_free(timer);
    td_loop_free(loop);
}

#define MANY 2000

struct many {
    struct td_clock *clock;
    struct td_timer *timers[MANY];
    td_duration due[MANY]; /* -1 when not set */
    uint64_t sequence[MANY];
    uint64_t next_sequence;
    td_duration last_due;
    uint64_t last_sequence;
    size_t fired;
};

struct many_one {
    struct many *many;
    size_t index;
};

static void many_change(struct many *many, size_t i)
{
    if (random_below(4) == 0) {
        td_timer_stop(many->timers[i]);
        many->due[i] = -1;
        return;
    }
    td_duration after = (td_duration)random_below(300);
    td_timer_set(many->timers[i], after);
    many->due[i] = td_clock_steady(many->clock) + after;
    many->sequence[i] = many->next_sequence++;
}

static void many_fire(struct td_timer *timer, void *context)
{
    struct many_one *one = context;
    struct many *many = one->many;
    size_t i = one->index;
    assert_ptr_equal(timer, many->timers[i]);
    assert_true(td_clock_steady(many->clock) == many->due[i]);
    bool is_after = many->due[i] > many->last_due ||
                    (many->due[i] == many->last_due && many->sequence[i] > many->last_sequence);
    assert_true(is_after);
    many->last_due = many->due[i];
    many->last_sequence = many->sequence[i];
    many->due[i] = -1;
    many->fired++;
    if (many->fired < 20000) {
        many_change(many, random_below(MANY));
        many_change(many, random_below(MANY));
    }
}

/* Thousands of timers set, moved and stopped at random each fire on time and in order, and none is
 * forgotten. */
static void test_loop_random_timers_fire_on_time(void **state)
{
    (void)state;
    static struct many many;
    static struct many_one ones[MANY];
    struct td_clock clock = td_clock_virtual(0);
    struct td_loop *loop = loop_new(&clock);
    many = (struct many){.clock = &clock, .last_due = -1, .next_sequence = 1};
    for (size_t i = 0; i < MANY; i++) {
        ones[i] = (struct many_one){.many = &many, .index = i};
        many.timers[i] = td_timer_new(loop, many_fire, &ones[i]);
        many.due[i] = -1;
        many_change(&many, i);
    }
    assert_int_equal(td_loop_run(loop, NULL), TD_OK);
    assert_true(many.fired >= 20000);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(many.due[i] == -1);
        td_timer_free(many.timers[i]);
    }
    td_loop_free(loop);
}

static void free_several(struct td_timer *timer, void *context)
{
    struct record *record = context;
    assert_ptr_equal(timer, record->timers[0]);
    record->count++;
    for (size_t i = 0; i < 3; i++) {
        td_timer_free(record->timers[i]);
        record->timers[i] = NULL;
    }
}

/* A callback may free its own timer and others that are due at the same time. */
static void test_loop_timer_may_free_itself_and_others(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_virtual(0);
    struct record record = {.loop = loop_new(&clock)};
    for (size_t i = 0; i < 3; i++) {
        record.timers[i] = td_timer_new(record.loop, free_several, &record);
        td_timer_set(record.timers[i], 7);
    }
    assert_int_equal(td_loop_run(record.loop, NULL), TD_OK);
    assert_int_equal(record.count, 1);
    td_loop_free(record.loop);
}

static void again_at_once(struct td_timer *timer, void *context)
{
    struct record *record = context;
    if (++record->count == 1000) {
        td_loop_stop(record->loop);
    }
    td_timer_set(timer, 0);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    struct record *record = context;
    char byte;
    assert_int_equal(read((int)fd, &byte, 1), 1);
    (void)snprintf(record->text, sizeof(record->text), "read after %d", record->count);
}

/* A timer that sets itself again without delay shuts out neither sockets nor td_loop_stop, on a
 * real and on a virtual clock. */
static void test_loop_zero_timer_does_not_starve(void **state)
{
    (void)state;
    struct td_clock clocks[] = {td_clock_virtual(0), td_clock_real()};
    for (size_t i = 0; i < COUNT(clocks); i++) {
        struct record record = {.loop = loop_new(&clocks[i])};
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        assert_int_equal(write(ends[0], "x", 1), 1);
        struct event *event =
            event_new(td_loop_base(record.loop), ends[1], EV_READ, on_readable, &record);
        assert_int_equal(event_add(event, NULL), 0);
        struct td_timer *timer = td_timer_new(record.loop, again_at_once, &record);
        td_timer_set(timer, 0);
        assert_int_equal(td_loop_run(record.loop, NULL), TD_OK);
        assert_int_equal(record.count, 1000);
        assert_string_equal(record.text, "read after 1");
        td_timer_free(timer);
        event_free(event);
        (void)close(ends[0]);
        (void)close(ends[1]);
        td_loop_free(record.loop);
    }
}

static void note_time(struct td_timer *timer, void *context)
{
    (void)timer;
    struct record *record = context;
    strncat(record->text, "; timer", sizeof(record->text) - strlen(record->text) - 1);
}

/* On a virtual clock what libevent has ready comes before time moves; without timers the loop waits
 * for events and ends when there are none. */
static void test_loop_virtual_time_waits_for_events(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_virtual(0);
    struct record record = {.loop = loop_new(&clock)};
    assert_int_equal(td_loop_run(record.loop, NULL), TD_OK); /* nothing at all */
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct event *event =
        event_new(td_loop_base(record.loop), ends[1], EV_READ, on_readable, &record);
    struct td_timer *timer = td_timer_new(record.loop, note_time, &record);
    for (int with_timer = 0; with_timer < 2; with_timer++) {
        assert_int_equal(event_add(event, NULL), 0);
        assert_int_equal(write(ends[0], "x", 1), 1);
        if (with_timer) {
            td_timer_set(timer, TD_HOUR);
        }
        assert_int_equal(td_loop_run(record.loop, NULL), TD_OK);
        assert_string_equal(record.text, with_timer ? "read after 0; timer" : "read after 0");
        assert_int_equal(td_clock_steady(&clock), with_timer ? TD_HOUR : 0);
    }
    td_timer_free(timer);
    event_free(event);
    (void)close(ends[0]);
    (void)close(ends[1]);
    td_loop_free(record.loop);
}

/* A timer of a minute takes a twentieth of a second on a clock that is 1200 times as fast, and is
 * never early. */
static void test_loop_accelerated_timers_wait_less(void **state)
{
    (void)state;
    struct td_clock machine = td_clock_real();
    struct td_clock clock = td_clock_accelerated(1200, 0);
    struct record record = {.loop = loop_new(&clock)};
    struct td_timer *timer = td_timer_new(record.loop, note_time, &record);
    td_duration machine_start = td_clock_steady(&machine);
    td_duration start = td_clock_steady(&clock);
    td_timer_set(timer, TD_MINUTE);
    assert_int_equal(td_loop_run(record.loop, NULL), TD_OK);
    assert_string_equal(record.text, "; timer");
    assert_true(td_clock_steady(&clock) - start >= TD_MINUTE);
    assert_true(td_clock_steady(&machine) - machine_start >= 50 * TD_MILLISECOND);
    assert_true(td_clock_steady(&machine) - machine_start < 5 * TD_SECOND);
    td_timer_free(timer);
    td_loop_free(record.loop);
}

/* A protocol's timeout takes as long on a fast clock as it takes other programs; on a virtual one
 * it takes no time at all. */
static void test_loop_machine_timers_keep_the_machines_time(void **state)
{
    (void)state;
    struct td_clock machine = td_clock_real();
    struct td_clock fast = td_clock_accelerated(1000, 0);
    struct td_clock virtual = td_clock_virtual(0);
    struct td_clock *clocks[] = {&fast, &virtual};
    for (size_t i = 0; i < COUNT(clocks); i++) {
        struct record record = {.loop = loop_new(clocks[i])};
        struct td_timer *timer = td_timer_new(record.loop, note_time, &record);
        td_duration start = td_clock_steady(&machine);
        td_duration begin = td_clock_steady(clocks[i]);
        td_timer_set_machine(timer, 50 * TD_MILLISECOND);
        assert_int_equal(td_loop_run(record.loop, NULL), TD_OK);
        td_duration waited = td_clock_steady(&machine) - start;
        td_duration passed = td_clock_steady(clocks[i]) - begin;
        assert_true(i == 0 ? passed >= 50 * TD_SECOND : passed == 50 * TD_MILLISECOND);
        assert_true(i == 0 ? waited >= 49 * TD_MILLISECOND : waited < 5 * TD_SECOND);
        td_timer_free(timer);
        td_loop_free(record.loop);
    }
}

/* A stop is not lost when it comes before the run, and ends one run only. */
static void test_loop_stop_ends_one_run(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_virtual(0);
    struct record record = {.loop = loop_new(&clock)};
    struct td_timer *timer = td_timer_new(record.loop, note_time, &record);
    td_timer_set(timer, 1);
    td_loop_stop(record.loop);
    assert_int_equal(td_loop_run(record.loop, NULL), TD_OK);
    assert_true(td_timer_is_set(timer));
    assert_int_equal(td_loop_run(record.loop, NULL), TD_OK);
    assert_false(td_timer_is_set(timer));
    assert_ptr_equal(td_loop_clock(record.loop), &clock);
    td_timer_free(timer);
    td_loop_free(record.loop);
}

/* A timer that is stopped while the loop has its alarm set wakes no callback and holds nothing up.
 */
static void test_loop_real_timers_move_and_stop(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_real();
    struct record record = {.loop = loop_new(&clock)};
    struct named names[3];
    struct td_timer *timers[3];
    for (size_t i = 0; i < 3; i++) {
        names[i] = (struct named){.record = &record, .name = (char)('a' + i)};
        timers[i] = td_timer_new(record.loop, write_name, &names[i]);
    }
    td_duration start = td_clock_steady(&clock);
    td_timer_set(timers[0], 300 * TD_HOUR);
    td_timer_set(timers[1], 10 * TD_MILLISECOND);
    td_timer_set(timers[2], 5 * TD_MILLISECOND);
    td_timer_set(timers[0], 1 * TD_MILLISECOND);
    assert_int_equal(td_loop_run(record.loop, NULL), TD_OK);
    assert_string_equal(record.text, "acb");
    assert_true(td_clock_steady(&clock) - start >= 10 * TD_MILLISECOND);
    for (size_t i = 0; i < 3; i++) {
        td_timer_free(timers[i]);
    }
    td_loop_free(record.loop);
}

#define PINGS 60

struct ping {
    struct td_loop *loop;
    struct td_queue *queue;
    struct td_timer *timer;
    int ends[2];
    td_duration sent;
    td_duration latencies[PINGS];
    size_t count;
    long slices;
    long slices_sent; /* slices when the message was sent */
};

static td_duration processor_time(void)
{
    struct timespec used;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
    return used.tv_sec * TD_SECOND + used.tv_nsec;
}

static void ping_send(struct td_timer *timer, void *context)
{
    (void)timer;
    struct ping *ping = context;
    ping->sent = processor_time();
    ping->slices_sent = ping->slices;
    assert_int_equal(write(ping->ends[0], "x", 1), 1);
}

static void ping_answer(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    struct ping *ping = context;
    char byte;
    assert_int_equal(read((int)fd, &byte, 1), 1);
    assert_true(ping->slices - ping->slices_sent <= 2);
    ping->latencies[ping->count++] = processor_time() - ping->sent;
    if (ping->count < PINGS) {
        td_timer_set(ping->timer, TD_MILLISECOND);
    } else {
        td_loop_stop(ping->loop);
    }
}

/* A pass that never ends, but yields. */
static enum td_job_result long_pass(td_str key, void *context)
{
    assert_true(td_str_equal(key, TD_STR("pass")));
    struct ping *ping = context;
    while (!td_loop_slice_is_over(ping->loop)) {
    }
    ping->slices++;
    return TD_JOB_AGAIN;
}

static int compare_durations(const void *a, const void *b)
{
    td_duration left = *(const td_duration *)a;
    td_duration right = *(const td_duration *)b;
    return (left > right) - (left < right);
}

/* While a long pass takes all the time there is, a message on a socket is answered after at most
 * two slices of it, which is milliseconds. Our own processor time is judged: how much of the
 * machine others take is not ours to promise. */
static void test_loop_long_job_lets_sockets_through(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_real();
    static struct ping ping;
    ping = (struct ping){.loop = loop_new(&clock)};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ping.ends), 0);
    ping.timer = td_timer_new(ping.loop, ping_send, &ping);
    struct event *event =
        event_new(td_loop_base(ping.loop), ping.ends[1], EV_READ | EV_PERSIST, ping_answer, &ping);
    assert_int_equal(event_add(event, NULL), 0);
    ping.queue = td_queue_new(ping.loop, long_pass, &ping, 1);
    assert_int_equal(td_queue_add(ping.queue, TD_STR("pass"), NULL), TD_OK);
    td_timer_set(ping.timer, TD_MILLISECOND);
    assert_int_equal(td_loop_run(ping.loop, NULL), TD_OK);
    qsort(ping.latencies, PINGS, sizeof(ping.latencies[0]), compare_durations);
    assert_true(ping.latencies[PINGS / 2] < 5 * TD_MILLISECOND);
    assert_true(ping.slices >= PINGS / 2);
    td_queue_free(ping.queue);
    td_timer_free(ping.timer);
    event_free(event);
    (void)close(ping.ends[0]);
    (void)close(ping.ends[1]);
    td_loop_free(ping.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_timers_fire_in_order),
        cmocka_unit_test(test_loop_virtual_hour_does_not_wait),
        cmocka_unit_test(test_loop_random_timers_fire_on_time),
        cmocka_unit_test(test_loop_timer_may_free_itself_and_others),
        cmocka_unit_test(test_loop_zero_timer_does_not_starve),
        cmocka_unit_test(test_loop_virtual_time_waits_for_events),
        cmocka_unit_test(test_loop_accelerated_timers_wait_less),
        cmocka_unit_test(test_loop_machine_timers_keep_the_machines_time),
        cmocka_unit_test(test_loop_stop_ends_one_run),
        cmocka_unit_test(test_loop_real_timers_move_and_stop),
        cmocka_unit_test(test_loop_long_job_lets_sockets_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
