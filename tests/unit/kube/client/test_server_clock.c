/* The clock of the API server: when it is followed, how far, and what does not count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/os/loop.h"
#include "kube/client/server_clock.h"
#include "kube/client/transport.h"

struct bed {
    struct td_clock clock;
    struct td_loop *loop;
};

static struct td_loop *bed_start(struct bed *bed, struct td_clock clock)
{
    struct td_error err = TD_ERROR_INIT;
    bed->clock = clock;
    assert_int_equal(td_loop_new(&bed->clock, &bed->loop, &err), TD_OK);
    return bed->loop;
}

static void bed_see(struct bed *bed, int status, td_time date, double speed)
{
    const struct td_call_head head = {.status = status, .date = date, .clock_speed = speed};
    td_server_clock_follow(bed->loop, &head);
}

/* How far the clock is from where it should be, in whole seconds. */
static int64_t bed_apart(const struct bed *bed, td_time expected)
{
    td_duration apart = td_clock_wall(&bed->clock) - expected;
    return (apart < 0 ? -apart : apart) / TD_SECOND;
}

/* Less than a minute is how machines differ: the clock stays the machine's. */
static void test_a_clock_near_the_servers_stays(void **state)
{
    (void)state;
    struct bed bed;
    struct td_loop *loop = bed_start(&bed, td_clock_real());
    td_time now = td_clock_wall(&bed.clock);
    bed_see(&bed, 200, now, 0);
    bed_see(&bed, 200, now + 50 * TD_SECOND, 0);
    bed_see(&bed, 200, now - 50 * TD_SECOND, 0);
    assert_int_equal(bed.clock.kind, TD_CLOCK_REAL);
    td_loop_free(loop);
}

/* An hour away, in either direction: followed, and the steady time does not jump. */
static void test_a_clock_apart_is_followed(void **state)
{
    (void)state;
    static const td_duration aparts[] = {TD_HOUR, -TD_HOUR, -28 * 24 * TD_HOUR};
    for (size_t i = 0; i < sizeof(aparts) / sizeof(aparts[0]); i++) {
        struct bed bed;
        struct td_loop *loop = bed_start(&bed, td_clock_real());
        td_duration steady = td_clock_steady(&bed.clock);
        td_time date = td_clock_wall(&bed.clock) + aparts[i];
        bed_see(&bed, 200, date, 0);
        assert_int_equal(bed_apart(&bed, date), 0);
        assert_true(bed.clock.speed == 1);
        assert_true(td_clock_steady(&bed.clock) >= steady);
        assert_true(td_clock_steady(&bed.clock) - steady < TD_MINUTE);
        td_loop_free(loop);
    }
}

/* What a clock does that follows already, at the speed of one row. */
static void test_a_clock_that_follows_is_never_behind(void **state)
{
    (void)state;
    static const struct {
        double speed;
        td_duration ahead; /* of the date, before it is seen */
        bool moves;
    } rows[] = {
        {1, -2 * TD_SECOND, true},     /* behind: forward at once */
        {1, 50 * TD_SECOND, false},    /* the answer may have been on its way */
        {1, 70 * TD_SECOND, true},     /* further than any answer */
        {600, 500 * TD_SECOND, false}, /* less than passes there in a second */
        {600, 700 * TD_SECOND, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bed bed;
        td_time date = 1767366245 * TD_SECOND;
        struct td_loop *loop =
            bed_start(&bed, td_clock_accelerated(rows[i].speed, date + rows[i].ahead));
        bed_see(&bed, 200, date, rows[i].speed);
        td_duration most = rows[i].speed > 1 ? 50 : 1; /* while this test was held up */
        assert_true(bed_apart(&bed, rows[i].moves ? date : date + rows[i].ahead) <= most);
        td_loop_free(loop);
    }
}

/* A fast cluster says how fast, each time: the clock takes the speed, and the way back. */
static void test_the_speed_is_the_servers(void **state)
{
    (void)state;
    struct bed bed;
    struct td_loop *loop = bed_start(&bed, td_clock_real());
    td_time date = 1767366245 * TD_SECOND;
    bed_see(&bed, 200, date, 60);
    assert_int_equal(bed.clock.kind, TD_CLOCK_ACCELERATED);
    assert_true(bed.clock.speed == 60);
    assert_true(bed_apart(&bed, date) < 60);
    bed_see(&bed, 404, date, 0.001);
    assert_true(bed.clock.speed == 0.001);
    bed_see(&bed, 200, date, 0);
    assert_true(bed.clock.speed == 1);
    td_loop_free(loop);
}

/* Answers without a date, those that may be a proxy's, and a virtual clock: nothing changes. */
static void test_what_is_not_followed(void **state)
{
    (void)state;
    struct bed bed;
    struct td_loop *loop = bed_start(&bed, td_clock_real());
    td_time far = 1767366245 * TD_SECOND;
    bed_see(&bed, 200, 0, 60);
    bed_see(&bed, 502, far, 0);
    bed_see(&bed, 503, far, 60);
    assert_int_equal(bed.clock.kind, TD_CLOCK_REAL);
    assert_true(bed.clock.speed == 1);
    td_loop_free(loop);
    loop = bed_start(&bed, td_clock_virtual(5 * TD_HOUR));
    bed_see(&bed, 200, far, 60);
    assert_int_equal(bed.clock.kind, TD_CLOCK_VIRTUAL);
    assert_int_equal(td_clock_wall(&bed.clock), 5 * TD_HOUR);
    td_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_clock_near_the_servers_stays),
        cmocka_unit_test(test_a_clock_apart_is_followed),
        cmocka_unit_test(test_a_clock_that_follows_is_never_behind),
        cmocka_unit_test(test_the_speed_is_the_servers),
        cmocka_unit_test(test_what_is_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
