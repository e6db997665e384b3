/* Memory pressure of nodes: who is evicted, when, what is said of it, and when it is over. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "local/node_pressure.h"

/* Above its request first, then the lowest priority, then the most above, then the first. */
static void test_pressure_ranks_pods(void **state)
{
    (void)state;
    static const struct {
        struct td_pressure_pod pods[3];
        size_t count;
        size_t picked;
    } rows[] = {
        {{{0}}, 0, 0},
        {{{100, 50, 0}}, 1, 0},
        {{{100, 200, 0}, {60, 50, 0}}, 2, 1},                /* who is above its request */
        {{{500, 0, 10}, {60, 50, 0}}, 2, 1},                 /* lower priority, though less */
        {{{100, 200, -5}, {60, 50, 1000}}, 2, 1},            /* above its request counts first */
        {{{100, 50, 0}, {200, 50, 0}, {160, 50, 0}}, 3, 1},  /* most above */
        {{{100, 200, 0}, {100, 150, 0}}, 2, 1},              /* least below */
        {{{100, 50, 0}, {100, 50, 0}}, 2, 0},                /* the same: who came first */
        {{{50, 50, 0}, {51, 51, 0}, {1, 0, 0}}, 3, 2},       /* at its request is not above it */
        {{{100, 0, 2000000000}, {1, 50, 1999999999}}, 2, 1}, /* critical ones stay */
        {{{100, 0, 2000000000}, {1, 50, 2000001000}}, 2, 2},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t picked = td_pressure_pick(rows[i].pods, rows[i].count);
        if (picked != rows[i].picked) {
            fail_msg("row %zu: %zu", i, picked);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pressure_ranks_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
