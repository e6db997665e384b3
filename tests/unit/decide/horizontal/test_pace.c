/*
 * When a metrics source is asked: values are seen within a second of being there, at hardly more
 * requests than there are values, and never at more than the budget.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "decide/horizontal/pace.h"

#define EPOCH ((td_time)1000000 * TD_SECOND)
#define PERIOD (15 * TD_SECOND)
#define RUN TD_HOUR
#define LEARNING (3 * TD_MINUTE) /* what is late until then does not count */

struct source {
    const char *name;
    td_duration resolution; /* 0: new values at each request */
    td_duration drift;      /* of each moment, either way */
    size_t users;
    size_t containers;
    td_duration lag_p50_max; /* from the values to the request that sees them */
    td_duration lag_p99_max;
    unsigned requests_max; /* in an hour */
};

static int lag_order(const void *a, const void *b)
{
    td_duration x = *(const td_duration *)a;
    td_duration y = *(const td_duration *)b;
    return (x > y) - (x < y);
}

/* The moment of values number `index`; every other one is late or early. */
static td_duration source_moment(const struct source *source, td_duration index)
{
    static const int shift[] = {0, 1, -1, 2, 0, -2, 1};
    td_duration phase = 7300 * TD_MILLISECOND;
    return phase + index * source->resolution + shift[(index + 7) % 7] * source->drift / 2;
}

static void source_run(const struct source *source)
{
    static td_duration lags[RUN / TD_SECOND + 1];
    struct td_hpa_pace pace = {.resolution = 0};
    td_duration now = TD_SECOND;
    td_duration seen = -1;
    size_t count = 0;
    unsigned requests = 0;
    while (now < RUN) {
        requests++;
        td_duration newest = seen;
        while (source->resolution > 0 && source_moment(source, newest + 1) <= now) {
            newest++;
        }
        if (newest > seen) {
            lags[count] = now - source_moment(source, seen + 1);
            count += now > LEARNING;
            seen = newest;
        }
        td_time stamp = source->resolution > 0 ? source_moment(source, seen) : now;
        const struct td_hpa_pace_answer answer = {
            .now = now,
            .newest = EPOCH + stamp / TD_SECOND * TD_SECOND, /* whole seconds are told */
            .cost = td_hpa_pace_cost(source->users, source->containers, PERIOD),
            .period = PERIOD,
        };
        td_duration next = td_hpa_pace_next(&pace, &answer);
        assert_true(next >= now + TD_HPA_PACE_FLOOR);
        if (source->resolution == 0 && now > LEARNING) {
            lags[count++] = (next - now) / 2; /* of a value that comes at any time, in the mean */
        }
        now = next;
    }
    qsort(lags, count, sizeof(lags[0]), lag_order);
    print_message("# %s: %u requests, p50 %.2f s, p99 %.2f s\n", source->name, requests,
                  (double)lags[count / 2] / (double)TD_SECOND,
                  (double)lags[count * 99 / 100] / (double)TD_SECOND);
    assert_true(requests <= source->requests_max);
    assert_true(lags[count / 2] <= source->lag_p50_max);
    assert_true(lags[count * 99 / 100] <= source->lag_p99_max);
}

static void test_values_are_seen_when_they_are_there(void **state)
{
    (void)state;
    const struct source sources[] = {
        {"each 15 s, one HPA", 15 * TD_SECOND, 0, 1, 3, TD_SECOND, 2 * TD_SECOND, 420},
        {"each 15 s, 20 HPAs", 15 * TD_SECOND, 0, 20, 60, TD_SECOND, 2 * TD_SECOND, 420},
        {"each 15 s, moments drift", 15 * TD_SECOND, 600 * TD_MILLISECOND, 20, 60, TD_SECOND,
         4 * TD_SECOND, 480},
        {"each 30 s, one HPA", 30 * TD_SECOND, 0, 1, 3, TD_SECOND, 2 * TD_SECOND, 420},
        {"each 60 s, 5 HPAs", TD_MINUTE, 0, 5, 15, TD_SECOND, 4 * TD_SECOND, 200},
        {"each 5 s, 5 HPAs", 5 * TD_SECOND, 0, 5, 15, TD_SECOND, 2 * TD_SECOND, 1500},
        {"at each request, 20 HPAs", 0, 0, 20, 60, TD_SECOND, 2 * TD_SECOND, 3605},
    };
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        source_run(&sources[i]);
    }
}

/* Upstream asks eight times a minute for an HPA. */
static void test_the_budget_holds(void **state)
{
    (void)state;
    const struct source sources[] = {
        {"at each request, one HPA", 0, 0, 1, 3, 5 * TD_SECOND, 5 * TD_SECOND, 7 * 60 + 4},
        {"at each request, three HPAs", 0, 0, 3, 9, 5 * TD_SECOND, 5 * TD_SECOND, 21 * 60 + 8},
        {"at each request, 1,000 HPAs of 3 pods", 0, 0, 1000, 3000, 5 * TD_SECOND, 5 * TD_SECOND,
         20 * 60 + 8},
        {"at each request, 150,000 containers", 0, 0, 10000, 150000, 8 * TD_SECOND, 8 * TD_SECOND,
         4 * 60 + 4},
    };
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        source_run(&sources[i]);
    }
}

/* A source that was silent for a while is asked ever less, and at its pace again afterwards. */
static void test_silence_is_not_learnt(void **state)
{
    (void)state;
    struct td_hpa_pace pace = {.resolution = 0};
    struct td_hpa_pace_answer answer = {.cost = TD_SECOND, .period = PERIOD};
    td_duration now = TD_SECOND;
    for (int i = 0; i < 8; i++) { /* new values each 15 s, found at once */
        answer.now = now;
        answer.newest = EPOCH + now;
        (void)td_hpa_pace_next(&pace, &answer);
        now += 15 * TD_SECOND;
    }
    unsigned asked = 0;
    for (td_duration end = now + 10 * TD_MINUTE; now < end; asked++) {
        answer.now = now;
        now = td_hpa_pace_next(&pace, &answer);
    }
    assert_true(asked < 50);
    answer.now = now;
    answer.newest = EPOCH + now;
    td_duration next = td_hpa_pace_next(&pace, &answer);
    assert_true(next - now <= 15 * TD_SECOND);
    assert_true(next - now >= 14 * TD_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_seen_when_they_are_there),
        cmocka_unit_test(test_the_budget_holds),
        cmocka_unit_test(test_silence_is_not_learnt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
