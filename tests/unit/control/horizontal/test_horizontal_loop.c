/*
 * The horizontal controller on a local cluster: from metrics to replicas, statuses and events, by
 * labels and by owners, of built-in and of custom kinds, and through an outage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/horizontal_bed.h"

static void test_cpu_scales_out_and_back_after_stabilisation(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 3, "100m,10Mi");
    control_bed_run(&h.c, TD_MINUTE);
    horizontal_bed_annotate(&h, "app%3Dweb", "usage.tandem.dev/app", "500m,10Mi");
    horizontal_bed_hpa(&h, HPAS, "web", "web", "'minReplicas':2,'maxReplicas':10," CPU_50);
    control_bed_run(&h.c, 6 * TD_MINUTE);
    /* Three pods at 100 % and five at 20 % are 50 % on average. */
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 8);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "web", "ScalingActive"),
                        "True/ValidMetricFound");
    assert_non_null(horizontal_bed_event(&h, "web", "SuccessfulRescale"));
    horizontal_bed_annotate(&h, "app%3Dweb", "usage.tandem.dev/app", "100m,10Mi");
    control_bed_run(&h.c, 4 * TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 8);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "web", "AbleToScale"),
                        "True/ScaleDownStabilized");
    control_bed_run(&h.c, 2 * TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 4); /* 8 x 20 / 50, rounded up */
    control_bed_run(&h.c, 6 * TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 2);
    assert_true(horizontal_bed_tells(
        &h, "horizontal_pod_autoscaler_controller_desired_replicas{namespace=\"default\",hpa_name="
            "\"web\"} 2\n"));
    assert_true(horizontal_bed_tells(
        &h, "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers 1\n"));
    assert_true(horizontal_bed_tells(
        &h, "horizontal_pod_autoscaler_controller_reconciliations_total{action=\"scale_down\","
            "error=\"none\"} 2\n"));
    assert_int_equal(control_bed_delete(&h.c, HPAS "/web"), 200);
    control_bed_run(&h.c, TD_MINUTE);
    assert_false(horizontal_bed_tells(&h, "desired_replicas{"));
    horizontal_bed_done(&h);
}

static unsigned horizontal_bed_syncs(struct horizontal_bed *h)
{
    char line[160];
    unsigned count = 0;
    do {
        (void)snprintf(line, sizeof(line),
                       "horizontal_pod_autoscaler_controller_reconciliations_total{action=\"none\","
                       "error=\"none\"} %u\n",
                       ++count);
    } while (count < 100 && !horizontal_bed_tells(h, line));
    return count < 100 ? count : 0;
}

/* Each is judged every 15 s, and those of one moment, a tenth of a second, together. */
static void test_syncs_of_one_moment_stay_together(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 2, "50m,10Mi");
    horizontal_bed_deploy(&h, "api", 2, "50m,10Mi");
    control_bed_run(&h.c, TD_MINUTE + 20 * TD_MILLISECOND);
    horizontal_bed_hpa(&h, HPAS, "web", "web", "'minReplicas':2,'maxReplicas':2," CPU_50);
    control_bed_run(&h.c, 40 * TD_MILLISECOND);
    horizontal_bed_hpa(&h, HPAS, "api", "api", "'minReplicas':2,'maxReplicas':2," CPU_50);
    control_bed_run(&h.c, 30 * TD_MILLISECOND);
    assert_int_equal(horizontal_bed_syncs(&h), 2);
    for (unsigned round = 1; round < 4;
         round++) { /* both are past their period, then is the moment */
        control_bed_run(&h.c, 15 * TD_SECOND - (round > 1 ? 20 * TD_MILLISECOND : 0));
        assert_int_equal(horizontal_bed_syncs(&h), 2 * round);
        control_bed_run(&h.c, 20 * TD_MILLISECOND);
        assert_int_equal(horizontal_bed_syncs(&h), 2 * round + 2);
    }
    horizontal_bed_done(&h);
}

static void test_custom_object_and_external_metrics(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "pods", 2, "10m,10Mi");
    horizontal_bed_deploy(&h, "object", 1, "10m,10Mi");
    horizontal_bed_deploy(&h, "external", 1, "10m,10Mi");
    control_bed_create(&h.c, "/api/v1/namespaces/default/configmaps",
                       "{'metadata':{'name':'mail','labels':{'metrics.tandem.dev/external':'true',"
                       "'topic':'mail'}},'data':{'depth':'30'}}");
    control_bed_create(&h.c, "/api/v1/namespaces/default/configmaps",
                       "{'metadata':{'name':'news','labels':{'metrics.tandem.dev/external':'true',"
                       "'topic':'news'}},'data':{'depth':'500'}}");
    control_bed_run(&h.c, TD_MINUTE);
    horizontal_bed_annotate(&h, "app%3Dpods", "metrics.tandem.dev/rps", "20");
    assert_int_equal(control_bed_patch(&h.c, DEPLOYMENTS "/object",
                                       "{'metadata':{'annotations':{'metrics.tandem.dev/Depth':"
                                       "'45'}}}"),
                     200);
    horizontal_bed_hpa(&h, HPAS, "pods", "pods",
                       "'maxReplicas':9,'metrics':[{'type':'Pods','pods':{'metric':{'name':'rps'},"
                       "'target':{'type':'AverageValue','averageValue':'10'}}}]");
    horizontal_bed_hpa(&h, OWN_HPAS, "object", "object",
                       "'maxReplicas':9,'metrics':[{'type':'Object','object':{'metric':{'name':"
                       "'Depth'},'describedObject':{'apiVersion':'apps/v1','kind':'Deployment',"
                       "'name':'object'},'target':{'type':'AverageValue','averageValue':'9'}}}]");
    horizontal_bed_hpa(&h, HPAS, "external", "external",
                       "'maxReplicas':9,'metrics':[{'type':'External','external':{'metric':{'name':"
                       "'Depth','selector':{'matchLabels':{'topic':'mail'}}},'target':{'type':"
                       "'AverageValue','averageValue':'10'}}}]");
    control_bed_run(&h.c, 2 * TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "pods"), 4); /* new pods have no sample: nothing */
    assert_int_equal(horizontal_bed_replicas(&h, "object"), 5);
    assert_int_equal(horizontal_bed_replicas(&h, "external"), 3);
    const struct td_json *metrics =
        td_json_get_path(control_bed_get(&h.c, HPAS "/external"), "status.currentMetrics");
    assert_true(td_json_is(metrics, TD_JSON_TYPE_ARRAY));
    assert_true(td_str_equal(
        td_json_get_str(td_json_get_path(td_json_first_child(metrics), "external.current"),
                        TD_STR("averageValue"), TD_STR_EMPTY),
        TD_STR("10")));
    horizontal_bed_done(&h);
}

static void horizontal_bed_depth(struct horizontal_bed *h, const char *patch, int64_t replicas,
                                 const char *event)
{
    assert_int_equal(control_bed_patch(&h->c, "/api/v1/namespaces/default/configmaps/mail", patch),
                     200);
    control_bed_run(&h->c, 15 * TD_SECOND);
    assert_int_equal(horizontal_bed_replicas(h, "web"), replicas);
    const struct td_json *events =
        td_json_get(control_bed_get(&h->c, "/api/v1/namespaces/default/events?fieldSelector="
                                           "involvedObject.name%3Dweb,reason%3DSuccessfulRescale"),
                    TD_STR("items"));
    bool is_reported = false;
    for (const struct td_json *item = td_json_first_child(events); item; item = item->next) {
        td_str message = td_json_get_str(item, TD_STR("message"), TD_STR_EMPTY);
        is_reported = is_reported || td_str_equal(message, td_str_from(event));
    }
    assert_true(is_reported);
}

/* Every rescale has a reason, also where only an earlier proposal calls for it. */
static void test_an_earlier_proposal_is_named_as_the_reason(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 2, "10m,10Mi");
    control_bed_create(&h.c, "/api/v1/namespaces/default/configmaps",
                       "{'metadata':{'name':'mail','labels':{'metrics.tandem.dev/external':'true'"
                       "}},'data':{'depth':'20'}}");
    horizontal_bed_hpa(&h, HPAS, "web", "web",
                       "'maxReplicas':20,'metrics':[{'type':'External','external':{'metric':{"
                       "'name':'Depth'},'target':{'type':'AverageValue','averageValue':'10'}}}]");
    control_bed_run(&h.c, TD_MINUTE);
    horizontal_bed_depth(&h, "{'data':{'depth':'100'}}", 4,
                         "New size: 4; reason: external metric Depth(nil) above target");
    horizontal_bed_depth(&h, "{'data':{'depth':'40'}}", 8,
                         "New size: 8; reason: 10 replicas were proposed within the stabilization "
                         "window");
    horizontal_bed_depth(&h, "{'data':{'depth':'10'}}", 10,
                         "New size: 10; reason: 10 replicas were proposed within the stabilization "
                         "window");
    horizontal_bed_done(&h);
}

static void test_what_cannot_be_measured_stays(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *metric;
        const char *active;
        const char *event;
    } rows[] = {
        {"external",
         "{'type':'External','external':{'metric':{'name':'nothing'},'target':{'type':"
         "'AverageValue','averageValue':'1'}}}",
         "False/FailedGetExternalMetric",
         "unable to get external metric default/nothing/nil: no metrics returned from external "
         "metrics API"},
        {"object",
         "{'type':'Object','object':{'metric':{'name':'x'},'describedObject':{'apiVersion':"
         "'play.dev/v1','kind':'Game','name':'chess'},'target':{'type':'Value','value':'1'}}}",
         "False/FailedGetObjectMetric",
         "unable to get metric x: Game on default chess/unable to fetch metrics from custom "
         "metrics "
         "API: unable to map kind Game.play.dev to resource: no matches for kind \"Game\" in group "
         "\"play.dev\""},
        {"container",
         "{'type':'ContainerResource','containerResource':{'name':'cpu','container':'sidecar',"
         "'target':{'type':'AverageValue','averageValue':'1'}}}",
         "False/FailedGetContainerResourceMetric", NULL},
    };
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char rest[512];
        horizontal_bed_deploy(&h, rows[i].name, 2, "10m,10Mi");
        (void)snprintf(rest, sizeof(rest), "'maxReplicas':9,'metrics':[%s]", rows[i].metric);
        horizontal_bed_hpa(&h, HPAS, rows[i].name, rows[i].name, rest);
    }
    horizontal_bed_hpa(&h, HPAS, "lost", "nobody", "'maxReplicas':9," CPU_50);
    control_bed_run(&h.c, 2 * TD_MINUTE);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(horizontal_bed_replicas(&h, rows[i].name), 2);
        assert_string_equal(horizontal_bed_condition(&h, HPAS, rows[i].name, "ScalingActive"),
                            rows[i].active);
        const char *event = horizontal_bed_event(&h, rows[i].name, strchr(rows[i].active, '/') + 1);
        assert_non_null(event);
        if (rows[i].event) {
            assert_non_null(strstr(event, rows[i].event));
        }
        assert_non_null(horizontal_bed_event(&h, rows[i].name, "FailedComputeMetricsReplicas"));
    }
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "lost", "AbleToScale"),
                        "False/FailedGetScale");
    assert_string_equal(horizontal_bed_event(&h, "lost", "FailedGetScale"),
                        "deployments.apps \"nobody\" not found");
    horizontal_bed_done(&h);
}

static void test_two_hpas_over_one_target_both_stop(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 2, "400m,10Mi");
    horizontal_bed_hpa(&h, HPAS, "a", "web", "'maxReplicas':2," CPU_50);
    horizontal_bed_hpa(&h, HPAS, "b", "web", "'maxReplicas':9," CPU_50);
    control_bed_run(&h.c, 2 * TD_MINUTE);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "a", "ScalingActive"),
                        "False/AmbiguousSelector");
    assert_string_equal(horizontal_bed_event(&h, "b", "AmbiguousSelector"),
                        "pods by selector app=web are controlled by multiple HPAs: [default/a "
                        "default/b]");
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 2);
    assert_int_equal(control_bed_delete(&h.c, HPAS "/b"), 200);
    control_bed_run(&h.c, TD_MINUTE);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "a", "ScalingActive"),
                        "True/ValidMetricFound");
    horizontal_bed_done(&h);
}

/* The proposal's example: a Deployment that idles and a Job that works hard share a label. */
static void horizontal_bed_example(struct horizontal_bed *h)
{
    horizontal_bed_deploy(h, "web", 2, "100m,10Mi");
    control_bed_create(&h->c, "/apis/batch/v1/namespaces/default/jobs",
                       "{'metadata':{'name':'report'},'spec':{'parallelism':3,'completions':3,"
                       "'template':{'metadata':{'labels':{'app':'web'},'annotations':{"
                       "'usage.tandem.dev/app':'450m,10Mi','tandem.dev/"
                       "runs-for':'24h'}},'spec':{'restartPolicy':'Never',"
                       "'containers':[{'name':'app','image':'nginx','resources':{'requests':{"
                       "'cpu':'500m'}}}]}}}}");
    control_bed_run(&h->c, 6 * TD_MINUTE);
}

static void assert_strategy(struct horizontal_bed *h, const char *words, const char *message)
{
    assert_string_equal(horizontal_bed_condition(h, HPAS, "web", "SelectionStrategy"), words);
    const struct td_json *conditions =
        td_json_get_path(control_bed_get(&h->c, HPAS "/web"), "status.conditions");
    const struct td_json *item = td_json_first_item(conditions);
    while (item && !td_str_equal(td_json_text(item, "type"), TD_STR("SelectionStrategy"))) {
        item = item->next;
    }
    td_str found = td_json_text(item, "message");
    assert_int_equal(found.len, strlen(message));
    assert_memory_equal(found.ptr, message, found.len);
}

/* The built-in kind has the field on the local API server. */
static void test_the_built_in_kind_has_the_strategy_in_its_spec(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_example(&h);
    horizontal_bed_hpa(&h, HPAS, "web", "web",
                       "'maxReplicas':20,'SelectionStrategy':'OwnerReference'," CPU_50);
    control_bed_run(&h.c, 6 * TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 1);
    assert_strategy(&h, "True/OwnerReference",
                    "OwnerReference: 1 of 4 pods that the selector matches counted, 3 excluded");
    horizontal_bed_done(&h);
}

static void test_owners_tell_pods_apart_and_the_strategy_switches_live(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_example(&h);
    horizontal_bed_hpa(&h, HPAS, "web", "web", "'maxReplicas':20," CPU_50);
    control_bed_run(&h.c, 5 * TD_SECOND);
    /* All five pods: 2 x 20 % and 3 x 90 % are 62 %, so seven; doubling allows four. */
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 4);
    assert_null(horizontal_bed_event(&h, "web", "SelectionStrategyActive"));
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "web", "SelectionStrategy"), "");
    uint64_t before = td_client_counts(h.c.client).calls;
    assert_int_equal(control_bed_patch(&h.c, HPAS "/web",
                                       "{'metadata':{'annotations':{"
                                       "'tandem.dev/hpa-selection-strategy':'OwnerReference'}}}"),
                     200);
    control_bed_run(&h.c, TD_SECOND);
    assert_string_equal(horizontal_bed_event(&h, "web", "StrategyChanged"),
                        "Pod selection strategy changed from 'LabelSelector' to 'OwnerReference'");
    assert_string_equal(horizontal_bed_event(&h, "web", "SelectionStrategyActive"),
                        "Pod selection strategy 'OwnerReference' is active");
    /* The seven of a moment ago still count, as upstream's older rules have it. Two calls for the
     * scale, one for the status, three for events: the ReplicaSet was known, and so were metrics.
     */
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 7);
    assert_int_equal(td_client_counts(h.c.client).calls - before, 6);
    assert_true(horizontal_bed_tells(
        &h, "horizontal_pod_autoscaler_controller_cache_misses_total{resource_kind="
            "\"replicasets\"} 1\n"));
    control_bed_run(&h.c, 6 * TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 3); /* of seven that use 20 % */
    assert_true(horizontal_bed_tells(
        &h, "horizontal_pod_autoscaler_controller_cache_misses_total{resource_kind="
            "\"replicasets\"} 1\n"));
    control_bed_run(&h.c, 12 * TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 1);
    assert_strategy(&h, "True/OwnerReference",
                    "OwnerReference: 1 of 4 pods that the selector matches counted, 3 excluded");
    assert_int_equal(control_bed_patch(&h.c, HPAS "/web",
                                       "{'metadata':{'annotations':{"
                                       "'tandem.dev/hpa-selection-strategy':'Owners'}}}"),
                     200);
    control_bed_run(&h.c, TD_SECOND);
    assert_strategy(&h, "False/InvalidValue",
                    "unsupported value 'Owners' (LabelSelector, OwnerReference), so "
                    "LabelSelector: 4 of 4 pods that the selector matches counted, 0 excluded");
    assert_int_equal(control_bed_patch(&h.c, HPAS "/web",
                                       "{'metadata':{'annotations':{"
                                       "'tandem.dev/hpa-selection-strategy':null}}}"),
                     200);
    control_bed_run(&h.c, TD_MINUTE);
    assert_true(horizontal_bed_replicas(&h, "web") > 1);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "web", "SelectionStrategy"), "");
    horizontal_bed_done(&h);
}

static void test_our_own_kind_has_the_strategy_in_its_spec(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_example(&h);
    horizontal_bed_hpa(&h, OWN_HPAS, "web", "web",
                       "'maxReplicas':20,'selectionStrategy':'OwnerReference'," CPU_50);
    control_bed_run(&h.c, 6 * TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 1);
    assert_non_null(horizontal_bed_event(&h, "web", "SelectionStrategyActive"));
    assert_null(horizontal_bed_event(&h, "web", "StrategyChanged"));
    const struct td_json *hpa = control_bed_get(&h.c, OWN_HPAS "/web");
    assert_int_equal(
        td_json_get_int64(td_json_get(hpa, TD_STR("status")), TD_STR("observedGeneration"), 0), 1);
    horizontal_bed_done(&h);
}

/* An outage of metrics is no reason to have fewer pods, however long it lasts. */
static void test_a_metrics_outage_never_scales_in(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 6, "100m,10Mi");
    control_bed_run(&h.c, TD_MINUTE);
    h.faults.is_metrics_gap = true;
    horizontal_bed_hpa(&h, HPAS, "web", "web", "'maxReplicas':9," CPU_50);
    control_bed_run(&h.c, TD_HOUR);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 6);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "web", "ScalingActive"),
                        "False/FailedGetResourceMetric");
    const char *event = horizontal_bed_event(&h, "web", "FailedGetResourceMetric");
    assert_non_null(strstr(event, "the server is currently unable to handle the request (get "
                                  "pods.metrics.k8s.io)"));
    h.faults.is_metrics_gap = false;
    control_bed_run(&h.c, 2 * TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 3);
    horizontal_bed_done(&h);
}

/* ---- Custom kinds ---- */

#define KIND(plural, kind)                                                                         \
    "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{'name'" \
    ":'" plural                                                                                    \
    ".play.dev'},'spec':{'group':'play.dev','scope':'Namespaced','names':{'plural':'" plural       \
    "','kind':'" kind "'},'versions':[{'name':'v1','served':true,'storage':true,'schema':{"        \
    "'openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'object','properties':{"      \
    "'replicas':{'type':'integer'}}},'status':{'type':'object','properties':{'replicas':{'type':"  \
    "'integer'},'selector':{'type':'string'}}}}}},'subresources':{'status':{},'scale':{"           \
    "'specReplicasPath':'.spec.replicas','statusReplicasPath':'.status.replicas',"                 \
    "'labelSelectorPath':'.status.selector'}}}]}}"

#define PLAY "/apis/play.dev/v1/namespaces/default/"

static const char *horizontal_bed_uid(struct horizontal_bed *h, const char *target)
{
    const struct td_json *metadata =
        td_json_get(control_bed_get(&h->c, target), TD_STR("metadata"));
    return td_arena_copy_str(&h->c.bed.arena,
                             td_json_get_str(metadata, TD_STR("uid"), TD_STR_EMPTY))
        .ptr;
}

static void horizontal_bed_pod(struct horizontal_bed *h, const char *name, const char *use,
                               const char *owners)
{
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "{'metadata':{'name':'%s','labels':{'app':'chess'},'annotations':{"
                   "'usage.tandem.dev/app':'%s'},'ownerReferences':[%s]},'spec':{'containers':[{"
                   "'name':'app','image':'nginx','resources':{'requests':{'cpu':'500m'}}}]}}",
                   name, use, owners);
    control_bed_create(&h->c, PODS, text);
}

/* Pods belong to a set and that to the game, as operators have it; one with the label is alone. */
static void horizontal_bed_game(struct horizontal_bed *h)
{
    char text[512];
    control_bed_create(&h->c, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                       KIND("games", "Game"));
    control_bed_create(&h->c, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                       KIND("gamesets", "GameSet"));
    control_bed_run(&h->c, TD_SECOND);
    control_bed_create(&h->c, PLAY "games",
                       "{'apiVersion':'play.dev/v1','kind':'Game','metadata':{'name':'chess'},"
                       "'spec':{'replicas':2}}");
    assert_int_equal(control_bed_patch(&h->c, PLAY "games/chess/status",
                                       "{'status':{'replicas':2,'selector':'app=chess'}}"),
                     200);
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'play.dev/v1','kind':'GameSet','metadata':{'name':'set',"
                   "'ownerReferences':[{'apiVersion':'play.dev/v1','kind':'Game','name':'chess',"
                   "'uid':'%s'}]},'spec':{}}",
                   horizontal_bed_uid(h, PLAY "games/chess"));
    control_bed_create(&h->c, PLAY "gamesets", text);
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'play.dev/v1','kind':'GameSet','name':'set','uid':'%s'}",
                   horizontal_bed_uid(h, PLAY "gamesets/set"));
    horizontal_bed_pod(h, "chess-1", "400m,10Mi", text);
    horizontal_bed_pod(h, "chess-2", "400m,10Mi", text);
    horizontal_bed_pod(h, "alone", "10m,10Mi", "");
    control_bed_run(&h->c, 6 * TD_MINUTE);
    control_bed_create(&h->c, OWN_HPAS,
                       "{'apiVersion':'autoscaling.tandem.dev/v2','kind':'HorizontalPodAutoscaler',"
                       "'metadata':{'name':'chess'},'spec':{'scaleTargetRef':{'apiVersion':"
                       "'play.dev/v1','kind':'Game','name':'chess'},'maxReplicas':9," CPU_50 "}}");
    control_bed_run(&h->c, TD_MINUTE);
}

static int64_t horizontal_bed_games(struct horizontal_bed *h)
{
    const struct td_json *game = control_bed_get(&h->c, PLAY "games/chess");
    return td_json_get_int64(td_json_get(game, TD_STR("spec")), TD_STR("replicas"), 0);
}

static void horizontal_bed_by_owners(struct horizontal_bed *h)
{
    assert_int_equal(horizontal_bed_games(h), 2); /* all three pods: 54 %, near enough */
    assert_int_equal(control_bed_patch(&h->c, OWN_HPAS "/chess",
                                       "{'spec':{'selectionStrategy':'OwnerReference'}}"),
                     200);
    control_bed_run(&h->c, 5 * TD_SECOND);
}

static void test_a_custom_kind_is_scaled_and_owns_through_others(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_game(&h);
    horizontal_bed_by_owners(&h);
    assert_int_equal(horizontal_bed_games(&h), 4); /* both of its own: 80 % */
    control_bed_run(&h.c, TD_MINUTE);
    assert_true(horizontal_bed_tells(
        &h, "horizontal_pod_autoscaler_controller_cache_misses_total{resource_kind="
            "\"gamesets\"} 1\n"));
    horizontal_bed_done(&h);
}

/* The kind is served by two resources, of which the first has no scale. */
static void test_every_resource_of_a_kind_is_tried(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    control_bed_create(&h.c, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                       "{'metadata':{'name':'boards.play.dev'},'spec':{'group':'play.dev','scope':"
                       "'Namespaced','names':{'plural':'boards','singular':'board','kind':'Game',"
                       "'listKind':'BoardList'},'versions':[{'name':'v1','served':true,'storage':"
                       "true,'schema':{'openAPIV3Schema':{'type':'object'}}}]}}");
    control_bed_run(&h.c, TD_SECOND);
    control_bed_create(&h.c, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                       KIND("games", "Game"));
    control_bed_run(&h.c, TD_SECOND);
    control_bed_create(&h.c, PLAY "games",
                       "{'apiVersion':'play.dev/v1','kind':'Game','metadata':{'name':'chess'},"
                       "'spec':{'replicas':2}}");
    assert_int_equal(control_bed_patch(&h.c, PLAY "games/chess/status",
                                       "{'status':{'replicas':2,'selector':'app=chess'}}"),
                     200);
    horizontal_bed_pod(&h, "chess-1", "400m,10Mi", "");
    horizontal_bed_pod(&h, "chess-2", "400m,10Mi", "");
    control_bed_run(&h.c, 6 * TD_MINUTE);
    control_bed_create(&h.c, OWN_HPAS,
                       "{'apiVersion':'autoscaling.tandem.dev/v2','kind':'HorizontalPodAutoscaler',"
                       "'metadata':{'name':'chess'},'spec':{'scaleTargetRef':{'apiVersion':"
                       "'play.dev/v1','kind':'Game','name':'chess'},'maxReplicas':9," CPU_50 "}}");
    control_bed_run(&h.c, TD_MINUTE);
    assert_int_equal(horizontal_bed_games(&h), 4); /* 80 % */
    /* None has it: what the first said. */
    assert_int_equal(control_bed_delete(&h.c, PLAY "games/chess"), 200);
    control_bed_run(&h.c, TD_MINUTE);
    assert_string_equal(horizontal_bed_condition(&h, OWN_HPAS, "chess", "AbleToScale"),
                        "False/FailedGetScale");
    assert_non_null(strstr(horizontal_bed_event(&h, "chess", "FailedGetScale"),
                           "the server could not find the requested resource"));
    horizontal_bed_done(&h);
}

/* The controller may read everything but the sets: who owns the pods cannot be known. */
static void test_owners_that_may_not_be_read_are_told_and_all_pods_count(void **state)
{
    (void)state;
    struct horizontal_bed h = {.informers = NULL};
    const struct td_cluster_options options = {.seed = 1};
    control_bed_init_with(&h.c, &options);
    control_bed_create(
        &h.c, "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "{'metadata':{'name':'robot'},'rules':[{'apiGroups':['','apps','autoscaling',"
        "'autoscaling.tandem.dev','metrics.k8s.io'],'resources':['*'],'verbs':['*']}"
        ",{'apiGroups':['play.dev'],'resources':['games','games/scale'],'verbs':["
        "'*']}]}");
    control_bed_create(&h.c, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                       "{'metadata':{'name':'robot'},'roleRef':{'apiGroup':"
                       "'rbac.authorization.k8s.io','kind':'ClusterRole','name':'robot'},'subjects'"
                       ":[{'apiGroup':'rbac.authorization.k8s.io','kind':'User','name':'robot'}]}");
    const struct td_transport_local_options local = {.api = h.c.bed.api,
                                                     .loop = h.c.bed.loop,
                                                     .user = TD_STR("robot"),
                                                     .group = TD_STR("system:authenticated"),
                                                     .user_agent = TD_STR("tandem")};
    const struct td_client_options client = {
        .loop = h.c.bed.loop, .transport = td_transport_local_new(&local), .seed = 1};
    h.client = td_client_new(&client);
    horizontal_bed_start(&h);
    horizontal_bed_game(&h);
    horizontal_bed_by_owners(&h);
    control_bed_run(&h.c, 5 * TD_MINUTE);
    assert_int_equal(horizontal_bed_games(&h), 2);
    const char *event = horizontal_bed_event(&h, "chess", "PodFilterFailed");
    assert_non_null(event);
    assert_non_null(strstr(event, "owner 'GameSet/set': reading it is forbidden"));
    assert_string_equal(horizontal_bed_condition(&h, OWN_HPAS, "chess", "SelectionStrategy"),
                        "False/PodFilterFailed");
    assert_true(horizontal_bed_tells(
        &h, "horizontal_pod_autoscaler_controller_pod_filter_fallbacks_total{reason="
            "\"forbidden\"} "));
    horizontal_bed_stop(&h);
    td_client_free(h.client);
    control_bed_done(&h.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_scales_out_and_back_after_stabilisation),
        cmocka_unit_test(test_syncs_of_one_moment_stay_together),
        cmocka_unit_test(test_custom_object_and_external_metrics),
        cmocka_unit_test(test_an_earlier_proposal_is_named_as_the_reason),
        cmocka_unit_test(test_what_cannot_be_measured_stays),
        cmocka_unit_test(test_two_hpas_over_one_target_both_stop),
        cmocka_unit_test(test_owners_tell_pods_apart_and_the_strategy_switches_live),
        cmocka_unit_test(test_the_built_in_kind_has_the_strategy_in_its_spec),
        cmocka_unit_test(test_our_own_kind_has_the_strategy_in_its_spec),
        cmocka_unit_test(test_a_metrics_outage_never_scales_in),
        cmocka_unit_test(test_a_custom_kind_is_scaled_and_owns_through_others),
        cmocka_unit_test(test_every_resource_of_a_kind_is_tried),
        cmocka_unit_test(test_owners_that_may_not_be_read_are_told_and_all_pods_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
