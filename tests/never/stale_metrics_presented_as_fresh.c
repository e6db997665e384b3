/*
 * Never: recommendations from stale or missing metrics presented as fresh. The metrics API falls
 * silent: VPAs say so, figures say so, no pod is evicted until it is back, and neither a restart in
 * the middle nor a first start without metrics makes old knowledge look new.
 */
#include "never_bed.h"

#define STALE "MetricsStale"

static void stale_begin(struct never_bed *n)
{
    never_init(n);
    never_deploy(n, "web", 4);
    never_start(n);
    never_vpa(n, "web", NEVER_AT_LEAST("500m"));
    control_bed_run(&n->c, 30 * TD_MINUTE);
    assert_int_equal(n->evictions, 4);
    assert_string_equal(never_condition(n, VPAS "/web", STALE), "");
    assert_true(never_counts(n, "\ntandem_recommender_stale_vpas 0\n"));
}

/* All pods are wrong from now on. */
static void stale_want_more(struct never_bed *n)
{
    const char *patch = "{'spec':{'resourcePolicy':{'containerPolicies':[{'containerName':'*',"
                        "'minAllowed':{'cpu':'700m'}}]}}}";
    assert_int_equal(control_bed_patch(&n->c, VPAS "/web", patch), 200);
}

static char *stale_version(struct never_bed *n, const char *path)
{
    static char text[64];
    const struct td_json *metadata = td_json_get(control_bed_get(&n->c, path), TD_STR("metadata"));
    td_str version = td_json_get_str(metadata, TD_STR("resourceVersion"), TD_STR_EMPTY);
    (void)snprintf(text, sizeof(text), "%.*s", TD_STR_ARG(version));
    return text;
}

static void stale_end(struct never_bed *n)
{
    n->faults.is_metrics_gap = false;
    n->evictions = 0;
    control_bed_run(&n->c, 20 * TD_MINUTE);
    assert_string_equal(never_condition(n, VPAS "/web", STALE), "");
    assert_int_equal(n->evictions, 4);
    assert_true(never_counts(n, "\ntandem_recommender_stale_vpas 0\n"));
    never_done(n);
}

static void test_an_outage_is_said_and_nobody_is_evicted(void **state)
{
    (void)state;
    struct never_bed n;
    stale_begin(&n);
    n.faults.is_metrics_gap = true;
    control_bed_run(&n.c, TD_MINUTE); /* one read has failed */
    n.evictions = 0;
    stale_want_more(&n);
    control_bed_run(&n.c, 3 * TD_MINUTE);
    never_assert_begins(never_condition(&n, VPAS "/web", STALE),
                        "True/NoRecentMetrics: the newest metrics of its pods are from 20");
    char before[64];
    (void)snprintf(before, sizeof(before), "%s", stale_version(&n, VPAS "/web"));
    control_bed_run(&n.c, 2 * TD_HOUR);
    assert_int_equal(n.evictions, 0);
    assert_string_equal(stale_version(&n, VPAS "/web"), before); /* said once */
    assert_true(never_counts(&n, "\ntandem_recommender_stale_vpas 1\n"));
    assert_true(never_counts(&n, "\ntandem_updater_skipped_passes_total{reason=\"Metrics\"} "));
    stale_end(&n);
}

/* What comes from checkpoints is no fresher than they are. */
static void test_a_restart_in_the_outage(void **state)
{
    (void)state;
    struct never_bed n;
    stale_begin(&n);
    n.faults.is_metrics_gap = true;
    control_bed_run(&n.c, TD_MINUTE);
    never_kill(&n);
    stale_want_more(&n);
    assert_int_equal(control_bed_patch(&n.c, VPAS "/web/status", "{'status':{'conditions':[]}}"),
                     200);
    n.evictions = 0;
    never_start(&n);
    control_bed_run(&n.c, 4 * TD_MINUTE);
    never_assert_begins(never_condition(&n, VPAS "/web", STALE),
                        "True/NoRecentMetrics: the newest metrics of its pods are from 20");
    control_bed_run(&n.c, TD_HOUR);
    assert_int_equal(n.evictions, 0);
    stale_end(&n);
}

/* A clock that was an hour fast at one read does not make two hours old metrics look new, nor keep
 * new ones out when they are back. */
static void test_a_fast_clock_hides_nothing(void **state)
{
    (void)state;
    struct never_bed n;
    stale_begin(&n);
    n.faults.measures_ahead = TD_HOUR;
    control_bed_run(&n.c, 2 * TD_MINUTE);
    n.faults.measures_ahead = -2 * TD_HOUR;
    control_bed_run(&n.c, 6 * TD_MINUTE);
    n.evictions = 0;
    stale_want_more(&n);
    never_assert_begins(never_condition(&n, VPAS "/web", STALE),
                        "True/NoRecentMetrics: the newest metrics of its pods are from 20");
    control_bed_run(&n.c, 30 * TD_MINUTE);
    assert_int_equal(n.evictions, 0);
    assert_true(never_counts(&n, "\ntandem_recommender_stale_vpas 1\n"));
    n.faults.measures_ahead = 0;
    stale_end(&n);
}

/* Who never saw metrics recommends nothing, and says what is missing. */
static void test_no_metrics_at_all(void **state)
{
    (void)state;
    struct never_bed n;
    never_init(&n);
    n.faults.is_metrics_gap = true;
    never_deploy(&n, "web", 4);
    never_start(&n);
    never_vpa(&n, "web", NEVER_AT_LEAST("500m"));
    control_bed_run(&n.c, 10 * TD_MINUTE);
    never_assert_begins(never_condition(&n, VPAS "/web", "RecommendationProvided"), "False/");
    never_assert_begins(never_condition(&n, VPAS "/web", STALE),
                        "True/NoRecentMetrics: the metrics API never had metrics of its pods; "
                        "cannot read pod metrics: ");
    assert_int_equal(n.evictions, 0);
    stale_end(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_outage_is_said_and_nobody_is_evicted),
        cmocka_unit_test(test_a_restart_in_the_outage),
        cmocka_unit_test(test_a_fast_clock_hides_nothing),
        cmocka_unit_test(test_no_metrics_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
