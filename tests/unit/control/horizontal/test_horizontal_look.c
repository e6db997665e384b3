/*
 * Between the syncs of the horizontal controller: what changes is acted upon when it is seen, with
 * no more requests and no faster growth than once in a sync period.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/horizontal_bed.h"

#define METRICS "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
#define STEP (50 * TD_MILLISECOND)
#define AT_ONCE "'behavior':{'scaleDown':{'stabilizationWindowSeconds':0}}"

/* What the first container of the first pod uses, as text. */
static td_str look_use(struct horizontal_bed *h)
{
    const struct td_json *items = td_json_get(control_bed_get(&h->c, METRICS), TD_STR("items"));
    const struct td_json *containers = td_json_get(td_json_first_item(items), TD_STR("containers"));
    return td_json_text(td_json_get(td_json_first_item(containers), TD_STR("usage")), "cpu");
}

/* How long until the metrics API tells of a change. */
static td_duration look_until_told(struct horizontal_bed *h)
{
    td_str before = td_arena_copy_str(&h->c.bed.arena, look_use(h));
    td_duration passed = 0;
    for (; td_str_equal(look_use(h), before); passed += STEP) {
        assert_true(passed < TD_MINUTE);
        control_bed_run(&h->c, STEP);
    }
    return passed;
}

static td_duration look_until_scaled(struct horizontal_bed *h, int64_t replicas)
{
    td_duration passed = 0;
    for (; horizontal_bed_replicas(h, "web") != replicas; passed += STEP) {
        assert_true(passed < TD_MINUTE);
        control_bed_run(&h->c, STEP);
    }
    return passed;
}

/* The local cluster measures every 15 s, all pods at once. Use changes when it has just measured,
 * so that what is told next is whole. */
static void test_new_metrics_are_acted_upon_when_they_are_there(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 2, "250m,10Mi");
    control_bed_run(&h.c, TD_MINUTE + 6 * TD_SECOND);
    horizontal_bed_hpa(&h, HPAS, "web", "web",
                       "'minReplicas':2,'maxReplicas':4," AT_ONCE "," CPU_50);
    control_bed_run(&h.c, 4 * TD_MINUTE);
    horizontal_bed_annotate(&h, "app%3Dweb", "usage.tandem.dev/app", "251m,10Mi");
    (void)look_until_told(&h);
    unsigned late = 0;
    for (int round = 0; round < 12; round++) {
        bool is_up = round % 2 == 0;
        horizontal_bed_annotate(&h, "app%3Dweb", "usage.tandem.dev/app",
                                is_up ? "500m,10Mi" : "125m,10Mi");
        td_duration passed = look_until_told(&h);
        td_duration lag = look_until_scaled(&h, is_up ? 4 : 2);
        assert_true(lag <= 2 * TD_SECOND);
        late += lag > TD_SECOND;
        control_bed_run(&h.c, 75 * TD_SECOND - passed - lag);
    }
    assert_true(late < 6);
    horizontal_bed_done(&h);
}

/* Upstream makes eight a minute for one HPA that has nothing to do. */
static void test_one_hpa_at_rest_costs_less_than_upstream(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 2, "250m,10Mi");
    control_bed_run(&h.c, TD_MINUTE);
    horizontal_bed_hpa(&h, HPAS, "web", "web", "'minReplicas':2,'maxReplicas':4," CPU_50);
    control_bed_run(&h.c, 5 * TD_MINUTE);
    uint64_t before = td_client_counts(h.c.client).calls;
    control_bed_run(&h.c, 10 * TD_MINUTE);
    uint64_t made = td_client_counts(h.c.client).calls - before;
    assert_in_range(made, 30, 80);
    horizontal_bed_done(&h);
}

/* An idle pod of the same label keeps two busy ones from being three. */
static void test_a_pod_that_goes_is_noticed(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 2, "300m,10Mi");
    control_bed_create(&h.c, PODS,
                       "{'metadata':{'name':'idle','labels':{'app':'web'},'annotations':{"
                       "'usage.tandem.dev/app':'100m,10Mi'}},'spec':{'containers':[{'name':'app',"
                       "'image':'nginx','resources':{'requests':{'cpu':'500m'}}}]}}");
    control_bed_run(&h.c, TD_MINUTE);
    horizontal_bed_hpa(&h, HPAS, "web", "web", "'minReplicas':2,'maxReplicas':4," CPU_50);
    control_bed_run(&h.c, 6 * TD_MINUTE + 3 * TD_SECOND);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 2);
    assert_int_equal(control_bed_delete(&h.c, PODS "/idle?gracePeriodSeconds=0"), 200);
    assert_true(look_until_scaled(&h, 3) <= 2 * TD_SECOND);
    horizontal_bed_done(&h);
}

/* Without policies an HPA may double in each sync, however often its metrics change meanwhile. */
static void test_it_doubles_once_in_a_sync_period(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 1, "250m,10Mi");
    control_bed_run(&h.c, TD_MINUTE);
    horizontal_bed_hpa(&h, HPAS, "web", "web", "'minReplicas':1,'maxReplicas':64," CPU_50);
    control_bed_run(&h.c, 6 * TD_MINUTE);
    horizontal_bed_annotate(&h, "app%3Dweb", "usage.tandem.dev/app", "5,10Mi");
    assert_int_equal(control_bed_patch(&h.c, DEPLOYMENTS "/web",
                                       "{'spec':{'template':{'metadata':{'annotations':{"
                                       "'usage.tandem.dev/app':'5,10Mi'}}}}}"),
                     200);
    static const int64_t steps[] = {4, 8, 16};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        td_duration waited = look_until_scaled(&h, steps[i]);
        assert_true(i == 0 || waited >= 14 * TD_SECOND + 900 * TD_MILLISECOND);
    }
    horizontal_bed_done(&h);
}

static void look_stopped(void *context)
{
    *(bool *)context = true;
}

/* The informers go on and confirm their watches. */
static void test_a_loop_that_was_stopped_asks_for_no_metrics(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 2, "250m,10Mi");
    control_bed_run(&h.c, TD_MINUTE);
    horizontal_bed_hpa(&h, HPAS, "web", "web", "'minReplicas':2,'maxReplicas':4," CPU_50);
    control_bed_run(&h.c, 5 * TD_MINUTE);
    uint64_t begun = td_client_counts(h.c.client).calls;
    control_bed_run(&h.c, 5 * TD_MINUTE);
    uint64_t ended = td_client_counts(h.c.client).calls;
    bool is_stopped = false;
    td_horizontal_loop_stop(h.loop, look_stopped, &is_stopped);
    control_bed_run(&h.c, 5 * TD_MINUTE);
    assert_true(is_stopped);
    uint64_t stopped = td_client_counts(h.c.client).calls - ended;
    assert_true(stopped + 20 <= ended - begun);
    horizontal_bed_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_metrics_are_acted_upon_when_they_are_there),
        cmocka_unit_test(test_one_hpa_at_rest_costs_less_than_upstream),
        cmocka_unit_test(test_a_pod_that_goes_is_noticed),
        cmocka_unit_test(test_it_doubles_once_in_a_sync_period),
        cmocka_unit_test(test_a_loop_that_was_stopped_asks_for_no_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
