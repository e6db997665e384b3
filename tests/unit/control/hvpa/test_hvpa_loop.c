/*
 * The Hvpa controller on a local cluster: a load that is shared by the pods there are, from metrics
 * and what the recommender learns to replicas and sizes, and back again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/hvpa_bed.h"

#define CHECKPOINTS                                                                                \
    "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalercheckpoints"
#define VPAS "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
#define HPAS "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"

struct mode_row {
    const char *mode;
    int64_t spike_replicas_min; /* in the spike, at its end */
    int64_t spike_size_min;
    int replica_changes_max; /* over both steps of the load */
    int size_changes_max;
};

/* Each mode follows a spike and its end with few changes, none back and forth, and comes to rest.
 */
static void test_each_mode_follows_a_spike_and_its_end(void **state)
{
    (void)state;
    static const struct mode_row rows[] = {
        {"HPAPreferred", 10, 1000, 3, 0}, {"HPABiased", 10, 550, 3, 5},
        {"VPABiased", 10, 550, 3, 5},     {"Mixed", 10, 550, 3, 5},
        {"RatioBased", 4, 1500, 6, 6},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hvpa_bed h = {.stopped = 0};
        char spec[1024];
        struct td_demand demand = hvpa_bed_demand();
        (void)snprintf(spec, sizeof(spec), "'mode':'%s'," CPU_50 "," CPU_ONLY, rows[i].mode);
        hvpa_bed_init(&h, &demand, 1);
        hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
        hvpa_bed_hvpa(&h, "web", spec);
        hvpa_bed_watch(&h, 30 * TD_MINUTE);
        assert_int_equal(h.replicas, 2);
        hvpa_bed_watch(&h, 59 * TD_MINUTE);
        assert_true(h.replicas >= rows[i].spike_replicas_min);
        assert_true(h.size >= rows[i].spike_size_min);
        assert_true(h.replicas * h.size >= 5000); /* requests cover the use */
        assert_true(hvpa_bed_events(&h, "web", "HorizontalScaled") > 0);
        hvpa_bed_watch(&h, 91 * TD_MINUTE); /* a size may wait an hour after replicas went */
        assert_true(h.replicas <= 3);
        assert_true(h.replica_turns <= 1);
        assert_true(h.replica_changes <= rows[i].replica_changes_max);
        assert_true(h.size_changes <= rows[i].size_changes_max);
        int changes = h.replica_changes + h.size_changes;
        hvpa_bed_watch(&h, 30 * TD_MINUTE);
        assert_int_equal(h.replica_changes + h.size_changes, changes);
        assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "True/Deciding");
        assert_string_equal(hvpa_bed_condition(&h, "web", "Progressing"), "False/AsDecided");
        assert_string_equal(hvpa_bed_condition(&h, "web", "HorizontalReady"),
                            "True/ValidMetricFound");
        assert_string_equal(hvpa_bed_condition(&h, "web", "VerticalReady"),
                            "True/RecommendationProvided");
        assert_string_equal(hvpa_bed_text(&h, "web", "mode"), rows[i].mode);
        assert_string_equal(hvpa_bed_text(&h, "web", "targetSelector"), "app=web");
        hvpa_bed_done(&h);
    }
}

static td_str hvpa_version(struct hvpa_bed *h)
{
    const struct td_json *hvpa = control_bed_get(&h->c, HVPAS "/web");
    return td_json_get_str(td_json_get(hvpa, TD_STR("metadata")), TD_STR("resourceVersion"),
                           TD_STR_EMPTY);
}

static void test_a_steady_load_is_a_silent_status(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = hvpa_bed_demand();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web", "'mode':'HPABiased'," CPU_50);
    control_bed_run(&h.c, 10 * TD_MINUTE);
    td_str before = hvpa_version(&h);
    control_bed_run(&h.c, 10 * TD_MINUTE);
    assert_true(td_str_equal(hvpa_version(&h), before));
    /* Its scale can be read, since .spec.replicas was filled in. */
    assert_non_null(control_bed_get(&h.c, HVPAS "/web/scale"));
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_metric_registry_write(h.registry, &text);
    assert_non_null(strstr(td_buf_str(&text).ptr, "hvpa_decisions_total{mode=\"HPABiased\""));
    assert_non_null(strstr(td_buf_str(&text).ptr, "hvpa_replicas{namespace=\"default\",hvpa="
                                                  "\"web\",kind=\"current\"} 2\n"));
    assert_int_equal(control_bed_delete(&h.c, HVPAS "/web"), 200);
    control_bed_run(&h.c, TD_MINUTE);
    td_buf_reset(&text);
    td_metric_registry_write(h.registry, &text);
    assert_null(strstr(td_buf_str(&text).ptr, "hvpa_replicas{"));
    assert_int_equal(hvpa_bed_replicas(&h), 2);
    hvpa_bed_done(&h);
}

/* A size that is a little more than the target stays: with a short history the upper bound is far
 * above the target, although only the Hvpa acts on it. */
static void test_a_size_inside_the_tolerance_stays(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        int size_changes;
    } rows[] = {{"'requests':{'cpu':'620m'}", 0}, {"'requests':{'cpu':'1'}", 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hvpa_bed h = {.stopped = 0};
        struct td_demand demand = hvpa_bed_demand();
        hvpa_bed_init(&h, &demand, 1);
        hvpa_bed_deploy(&h, 2, rows[i].request); /* each uses 500m */
        hvpa_bed_hvpa(&h, "web", "'mode':'VPABiased'," CPU_ONLY);
        hvpa_bed_watch(&h, 29 * TD_MINUTE);
        assert_string_equal(hvpa_bed_condition(&h, "web", "VerticalReady"),
                            "True/RecommendationProvided");
        assert_int_equal(h.size_changes, rows[i].size_changes);
        hvpa_bed_done(&h);
    }
}

static int64_t scale_of_hvpa(struct hvpa_bed *h)
{
    const struct td_json *scale = control_bed_get(&h->c, HVPAS "/web/scale");
    return td_json_get_int64(td_json_get(scale, TD_STR("spec")), TD_STR("replicas"), -1);
}

/* What stands in the Hvpa's own scale is what was applied; a value written there has no effect. */
static void test_its_scale_follows_what_is_applied(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = hvpa_bed_demand();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web", CPU_50 "," CPU_ONLY);
    hvpa_bed_watch(&h, 35 * TD_MINUTE);
    assert_true(h.replicas > 2);
    assert_int_equal(scale_of_hvpa(&h), h.replicas);
    int changes = h.replica_changes + h.size_changes;
    assert_int_equal(control_bed_patch(&h.c, HVPAS "/web", "{'spec':{'replicas':17}}"), 200);
    hvpa_bed_watch(&h, 5 * TD_MINUTE);
    assert_int_equal(scale_of_hvpa(&h), h.replicas);
    assert_int_equal(h.replica_changes + h.size_changes, changes);
    hvpa_bed_done(&h);
}

static void test_a_paused_one_decides_and_does_nothing(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = hvpa_bed_demand();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web", "'paused':true," CPU_50 "," CPU_ONLY);
    hvpa_bed_watch(&h, 40 * TD_MINUTE);
    assert_int_equal(h.replicas, 2);
    assert_int_equal(h.size, 1000);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "True/Paused");
    assert_string_equal(hvpa_bed_text(&h, "web", "decision.reason"), "BothApplied");
    assert_non_null(td_json_get_path(hvpa_bed_status(&h, "web"), "recommendation.horizontal"));
    assert_non_null(td_json_get_path(hvpa_bed_status(&h, "web"), "decision.requests.app.cpu"));
    assert_null(td_json_get(hvpa_bed_status(&h, "web"), TD_STR("lastScaling")));
    assert_int_equal(control_bed_patch(&h.c, HVPAS "/web", "{'spec':{'paused':false}}"), 200);
    control_bed_run(&h.c, 5 * TD_SECOND);
    assert_true(hvpa_bed_replicas(&h) > 2);
    hvpa_bed_watch(&h, 2 * TD_MINUTE);
    assert_true(h.size > 1000);
    hvpa_bed_done(&h);
}

static void test_who_is_not_alone_on_its_target_stops_at_once(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = hvpa_bed_demand();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web", CPU_50 "," CPU_ONLY);
    control_bed_run(&h.c, 2 * TD_SECOND);
    hvpa_bed_hvpa(&h, "younger", CPU_50);
    control_bed_run(&h.c, 20 * TD_SECOND);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "True/Deciding");
    assert_string_equal(hvpa_bed_condition(&h, "younger", "Ready"), "False/TargetConflict");
    control_bed_create(&h.c, HPAS,
                       "{'apiVersion':'autoscaling/v2','kind':'HorizontalPodAutoscaler','metadata':"
                       "{'name':'rival'},'spec':{'scaleTargetRef':{'apiVersion':'apps/v1','kind':"
                       "'Deployment','name':'web'},'minReplicas':1,'maxReplicas':3}}");
    control_bed_run(&h.c, TD_SECOND);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "False/TargetConflict");
    hvpa_bed_watch(&h, 35 * TD_MINUTE); /* into the spike */
    assert_int_equal(h.replicas, 2);
    assert_int_equal(h.replica_changes + h.size_changes, 0);
    assert_int_equal(hvpa_bed_events(&h, "web", "TargetConflict"), 1);
    assert_int_equal(control_bed_delete(&h.c, HPAS "/rival"), 200);
    hvpa_bed_watch(&h, TD_MINUTE);
    assert_true(h.replicas > 2);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "True/Deciding");
    hvpa_bed_done(&h);
}

static void test_a_restart_in_the_middle_changes_nothing(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = hvpa_bed_demand();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web", CPU_50 "," CPU_ONLY);
    hvpa_bed_watch(&h, 35 * TD_MINUTE);
    assert_true(h.replicas > 2 && h.size > 1000);
    td_str time = td_arena_copy_str(
        &h.c.bed.arena, td_str_from(hvpa_bed_text(&h, "web", "lastScaling.verticalTime")));
    assert_non_null(control_bed_get(&h.c, CHECKPOINTS "/web-hvpa-app"));
    int64_t replicas = h.replicas;
    int64_t size = h.size;
    hvpa_bed_stop(&h);
    control_bed_run(&h.c, TD_MINUTE);
    hvpa_bed_start(&h);
    /* Before the recommender has read its checkpoints the vertical axis waits, and stays. */
    control_bed_run(&h.c, 20 * TD_SECOND);
    assert_string_equal(hvpa_bed_condition(&h, "web", "VerticalReady"),
                        "False/RecommendationUnavailable");
    assert_int_equal(hvpa_bed_size(&h, "cpu"), size);
    hvpa_bed_watch(&h, 15 * TD_MINUTE); /* the collection of checkpoints runs too */
    assert_int_equal(h.replicas, replicas);
    assert_int_equal(h.size, size);
    assert_true(
        td_str_equal(td_str_from(hvpa_bed_text(&h, "web", "lastScaling.verticalTime")), time));
    assert_non_null(control_bed_get(&h.c, CHECKPOINTS "/web-hvpa-app"));
    hvpa_bed_watch(&h, 60 * TD_MINUTE);
    assert_true(h.replicas <= 3);
    assert_int_equal(control_bed_delete(&h.c, HVPAS "/web"), 200);
    control_bed_run(&h.c, 12 * TD_MINUTE);
    assert_null(control_bed_get(&h.c, CHECKPOINTS "/web-hvpa-app"));
    hvpa_bed_done(&h);
}

static void test_what_is_wrong_is_said_and_nothing_is_done(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = hvpa_bed_demand();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_hvpa(&h, "web", CPU_50);
    control_bed_run(&h.c, 2 * TD_SECOND);
    hvpa_bed_hvpa(&h, "bad", "'hpaSpec':{'minReplicas':5,'maxReplicas':2}");
    hvpa_bed_hvpa(&h, "mixed",
                  "'hpaSpec':{'maxReplicas':2,'scaleTargetRef':{'apiVersion':'apps/v1',"
                  "'kind':'Deployment','name':'other'}}");
    control_bed_run(&h.c, 10 * TD_MINUTE);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "False/TargetNotFound");
    assert_string_equal(hvpa_bed_condition(&h, "bad", "Ready"), "False/InvalidSpec");
    assert_string_equal(hvpa_bed_condition(&h, "mixed", "Ready"), "False/TargetMismatch");
    assert_true(td_str_equal(
        td_json_text(td_json_get_path(control_bed_get(&h.c, HVPAS "/bad"), "status"), "reason"),
        TD_STR("InvalidSpec")));
    assert_int_equal(hvpa_bed_events(&h, "web", "TargetNotFound"), 1);
    assert_int_equal(hvpa_bed_events(&h, "bad", "InvalidSpec"), 1);
    hvpa_bed_stop(&h); /* the next process reads in the status that it was told */
    hvpa_bed_start(&h);
    control_bed_run(&h.c, TD_MINUTE);
    assert_int_equal(hvpa_bed_events(&h, "bad", "InvalidSpec"), 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_watch(&h, 6 * TD_MINUTE); /* at most five minutes until it looks again */
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "True/Deciding");
    assert_string_equal(hvpa_bed_condition(&h, "web", "VerticalReady"), "False/NoVpaSpec");
    hvpa_bed_done(&h);
}

static void test_each_verdict_alone_goes_on(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = hvpa_bed_demand();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web", "'mode':'HPABiased','coupling':'None'," CPU_50 "," CPU_ONLY);
    control_bed_run(&h.c, 10 * TD_MINUTE);
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_metric_registry_write(h.registry, &text);
    assert_non_null(strstr(td_buf_str(&text).ptr,
                           "hvpa_blocked_total{axis=\"vertical\",reason=\"StabilizationWindow\"}"));
    h.faults.is_metrics_gap = true;
    control_bed_run(&h.c, 7 * TD_MINUTE); /* a decrease waits for a quarter of an hour */
    assert_string_equal(hvpa_bed_condition(&h, "web", "HorizontalReady"),
                        "False/MetricsUnavailable");
    assert_int_equal(hvpa_bed_events(&h, "web", "RecommendationUnavailable"), 1);
    assert_true(hvpa_bed_size(&h, "cpu") < 1000);
    hvpa_bed_watch(&h, 20 * TD_MINUTE); /* into the spike, blind */
    assert_int_equal(h.replicas, 2);
    h.faults.is_metrics_gap = false;
    hvpa_bed_watch(&h, 2 * TD_MINUTE);
    assert_true(h.replicas > 2);
    hvpa_bed_done(&h);
}

/* A VPA that only recommends is no rival, and both have a recommendation from the same pods. */
static void test_a_vpa_of_mode_off_may_be_beside(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = hvpa_bed_demand();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web", CPU_50 "," CPU_ONLY);
    control_bed_run(&h.c, 3 * TD_SECOND);
    control_bed_create(&h.c, VPAS,
                       "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
                       "'metadata':{'name':'look'},'spec':{'targetRef':{'apiVersion':'apps/v1',"
                       "'kind':'Deployment','name':'web'},'updatePolicy':{'updateMode':'Off'}}}");
    control_bed_run(&h.c, 4 * TD_MINUTE);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "True/Deciding");
    assert_string_equal(hvpa_bed_condition(&h, "web", "VerticalReady"),
                        "True/RecommendationProvided");
    assert_non_null(td_json_get_path(control_bed_get(&h.c, VPAS "/look"), "status.recommendation"));
    assert_int_equal(control_bed_patch(&h.c, VPAS "/look",
                                       "{'spec':{'updatePolicy':{'updateMode':'Recreate'}}}"),
                     200);
    control_bed_run(&h.c, TD_SECOND);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "False/TargetConflict");
    hvpa_bed_done(&h);
}

static void test_an_oom_is_answered_in_every_mode_and_stage(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = hvpa_bed_demand();
    const struct td_series_point growth[] = {{.at = 0, .value = 100},
                                             {.at = 10 * TD_MINUTE, .value = 300}};
    demand.requests = (struct td_series){
        .shape = TD_SERIES_STEPS, .low = 100, .points = growth, .point_count = 2};
    demand.request_cpu_ms = 1;
    demand.request_memory_bytes = 1 << 20; /* 150Mi a pod more, then */
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2,
                    "'requests':{'cpu':'500m','memory':'200Mi'},'limits':{'memory':'220Mi'}");
    hvpa_bed_hvpa(&h, "web",
                  "'mode':'HPAPreferred'," CPU_50
                  ",'vpaSpec':{'resourcePolicy':{'containerPolicies':[{'containerName':'*',"
                  "'controlledResources':['memory'],'maxAllowed':{'memory':'1Gi'}}]}}");
    control_bed_run(&h.c, 10 * TD_MINUTE - 5 * TD_SECOND);
    assert_int_equal(hvpa_bed_size(&h, "memory"), INT64_C(200) << 20);
    control_bed_run(&h.c, 65 * TD_SECOND);
    assert_true(hvpa_bed_size(&h, "memory") > INT64_C(220) << 20);
    assert_true(hvpa_bed_events(&h, "web", "EmergencyMemoryIncrease") > 0);
    control_bed_run(&h.c, 10 * TD_MINUTE);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Progressing"), "False/AsDecided");
    hvpa_bed_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_mode_follows_a_spike_and_its_end),
        cmocka_unit_test(test_a_steady_load_is_a_silent_status),
        cmocka_unit_test(test_a_size_inside_the_tolerance_stays),
        cmocka_unit_test(test_its_scale_follows_what_is_applied),
        cmocka_unit_test(test_a_paused_one_decides_and_does_nothing),
        cmocka_unit_test(test_who_is_not_alone_on_its_target_stops_at_once),
        cmocka_unit_test(test_a_restart_in_the_middle_changes_nothing),
        cmocka_unit_test(test_what_is_wrong_is_said_and_nothing_is_done),
        cmocka_unit_test(test_each_verdict_alone_goes_on),
        cmocka_unit_test(test_a_vpa_of_mode_off_may_be_beside),
        cmocka_unit_test(test_an_oom_is_answered_in_every_mode_and_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
