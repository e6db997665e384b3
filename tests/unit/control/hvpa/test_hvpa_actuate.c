/*
 * How decisions of Hvpas are carried out on a local cluster: in place, by eviction, through the
 * template, through child objects, and what happens when the API server refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decide/vertical/patch/podsizes.h"
#include "decide/vertical/pod.h"
#include "model/owners.h"
#include "support/hvpa_bed.h"

#define HPAS "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
#define VPAS "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"

/* One load, ten times that of the beginning from the tenth minute on. */
static const struct td_series_point growth[] = {{.at = 0, .value = 100},
                                                {.at = 10 * TD_MINUTE, .value = 300}};

static struct td_demand growing(void)
{
    struct td_demand demand = hvpa_bed_demand();
    demand.requests = (struct td_series){
        .shape = TD_SERIES_STEPS, .low = 100, .points = growth, .point_count = 2};
    return demand;
}

/* Two pods of one core that an Hvpa may give more, played for so long. */
static void begin(struct hvpa_bed *h, const struct td_demand *demand, td_time span)
{
    hvpa_bed_init(h, demand, 1);
    hvpa_bed_deploy(h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(h, "web", CPU_50 "," CPU_ONLY);
    control_bed_run(&h->c, span);
}

static int64_t pods_count(struct hvpa_bed *h, const char *phase)
{
    const struct td_json *items = td_json_get(control_bed_get(&h->c, PODS), TD_STR("items"));
    int64_t count = 0;
    for (const struct td_json *pod = td_json_first_child(items); pod; pod = pod->next) {
        count += td_str_equal(
            td_json_get_str(td_json_get(pod, TD_STR("status")), TD_STR("phase"), TD_STR_EMPTY),
            td_str_from(phase));
    }
    return count;
}

static bool sizes_of_web(struct hvpa_bed *h, struct td_pod_sizes *ret)
{
    const struct td_controller top = {.namespace = TD_STR("default"),
                                      .api_version = TD_STR("apps/v1"),
                                      .kind = TD_STR("Deployment"),
                                      .name = TD_STR("web"),
                                      .uid = TD_STR_EMPTY};
    const struct td_pod pod = {.container_count = 0};
    return td_hvpa_loop_sizes(h->loop, &h->c.bed.arena, &top, &pod, ret);
}

static void test_new_pods_are_given_what_was_decided(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = growing();
    struct td_pod_sizes sizes = {.count = 0};
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'},'limits':{'cpu':'2'}");
    assert_false(sizes_of_web(&h, &sizes));
    hvpa_bed_hvpa(&h, "web", CPU_50 "," CPU_ONLY);
    control_bed_run(&h.c, TD_MINUTE);
    assert_true(sizes_of_web(&h, &sizes)); /* ours, but nothing was ever decided */
    assert_int_equal(sizes.count, 0);
    control_bed_run(&h.c, 11 * TD_MINUTE);
    assert_true(sizes_of_web(&h, &sizes));
    assert_int_equal(sizes.count, 1);
    assert_true(td_str_equal(sizes.hvpa, TD_STR("web")));
    assert_true(td_str_equal(sizes.items[0].container, TD_STR("app")));
    const struct td_quantity *request =
        td_resource_list_get(&sizes.items[0].requests, TD_STR("cpu"));
    const struct td_quantity *limit = td_resource_list_get(&sizes.items[0].limits, TD_STR("cpu"));
    assert_int_equal(td_quantity_milli(request), hvpa_bed_size(&h, "cpu"));
    assert_int_equal(td_quantity_milli(limit), 2 * td_quantity_milli(request));
    /* A stopped process knows it from the object. */
    hvpa_bed_stop(&h);
    hvpa_bed_start(&h);
    h.stopped = 0;
    td_hvpa_loop_stop(h.loop, hvpa_bed_stopped, &h.stopped);
    control_bed_run(&h.c, TD_SECOND);
    assert_true(sizes_of_web(&h, &sizes));
    assert_int_equal(sizes.count, 1);
    hvpa_bed_done(&h);
}

static void test_pods_that_come_at_another_size_are_mended(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = growing();
    begin(&h, &demand, 15 * TD_MINUTE);
    int64_t size = hvpa_bed_size(&h, "cpu");
    assert_true(size > 1000);
    const struct td_json *items = td_json_get(control_bed_get(&h.c, PODS), TD_STR("items"));
    for (const struct td_json *pod = td_json_first_child(items); pod; pod = pod->next) {
        const struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
        char target[256];
        (void)snprintf(target, sizeof(target), PODS "/%.*s",
                       TD_STR_ARG(td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY)));
        assert_int_equal(control_bed_delete(&h.c, target), 200);
    }
    control_bed_run(&h.c, TD_MINUTE); /* no webhook sizes new pods in this bed */
    assert_int_equal(hvpa_bed_size(&h, "cpu"), size);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Progressing"), "False/AsDecided");
    hvpa_bed_done(&h);
}

/* What no node has is given up after a quarter of an hour, and pods go on as they were. */
static void test_a_size_that_no_node_has_is_given_up(void **state)
{
    (void)state;
    struct hvpa_bed h = {
        .node = {.count = 2, .cpu_milli = 1500, .memory_bytes = INT64_C(8) << 30, .pods = 110}};
    struct td_demand demand = growing();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web",
                  "'hpaSpec':{'minReplicas':2,'maxReplicas':2,'metrics':[{'type':"
                  "'Resource','resource':{'name':'cpu','target':{'type':'Utilization',"
                  "'averageUtilization':50}}}]},'coupling':'Reconcile'," CPU_ONLY);
    control_bed_run(&h.c, 12 * TD_MINUTE);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Progressing"), "True/Resizing");
    control_bed_run(&h.c, 15 * TD_MINUTE);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Progressing"), "False/ResizeInfeasible");
    assert_non_null(td_json_get(hvpa_bed_status(&h, "web"), TD_STR("infeasible")));
    assert_int_equal(hvpa_bed_events(&h, "web", "ResizeInfeasible"), 1);
    control_bed_run(&h.c, TD_MINUTE);
    assert_int_equal(hvpa_bed_size(&h, "cpu"), 1000);
    assert_int_equal(pods_count(&h, "Running"), 2);
    assert_string_equal(hvpa_bed_text(&h, "web", "decision.reason"), "Blocked");
    hvpa_bed_done(&h);
}

static td_str template_cpu(struct hvpa_bed *h)
{
    const struct td_json *list = td_json_get_path(control_bed_get(&h->c, DEPLOYMENTS "/web"),
                                                  "spec.template.spec.containers");
    return td_json_get_str(td_json_get_path(td_json_first_child(list), "resources.requests"),
                           TD_STR("cpu"), TD_STR_EMPTY);
}

static void test_sizes_go_into_the_template_when_told_so(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = growing();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web", "'vertical':{'actuation':'Template'}," CPU_50 "," CPU_ONLY);
    control_bed_run(&h.c, 16 * TD_MINUTE);
    td_str size = td_arena_copy_str(&h.c.bed.arena, template_cpu(&h));
    assert_false(td_str_equal(size, TD_STR("1")));
    assert_string_equal(hvpa_bed_text(&h, "web", "referenceRequests.app.cpu"), "1");
    assert_string_equal(hvpa_bed_condition(&h, "web", "Progressing"), "False/AsDecided");
    struct td_pod_sizes sizes = {.count = 1};
    assert_true(sizes_of_web(&h, &sizes)); /* the template has them */
    assert_int_equal(sizes.count, 0);
    /* Another writer's template is the reference from then on. */
    assert_int_equal(control_bed_patch(
                         &h.c, DEPLOYMENTS "/web",
                         "{'spec':{'template':{'spec':{'containers':[{'name':'app','image':'nginx',"
                         "'resources':{'requests':{'cpu':'1700m','memory':'200Mi'}}}]}}}}"),
                     200);
    control_bed_run(&h.c, TD_MINUTE);
    assert_string_equal(hvpa_bed_text(&h, "web", "referenceRequests.app.cpu"), "1700m");
    hvpa_bed_done(&h);
}

/* What a container of the pods has of cpu, milli-cores. */
static int64_t pods_cpu(struct hvpa_bed *h, const char *list)
{
    const struct td_json *items = td_json_get(control_bed_get(&h->c, PODS), TD_STR("items"));
    const struct td_json *containers =
        td_json_get_path(td_json_first_item(items), "spec.containers");
    const struct td_json *resources =
        td_json_get(td_json_first_item(containers), TD_STR("resources"));
    struct td_quantity quantity;
    td_str text =
        td_json_get_str(td_json_get(resources, td_str_from(list)), TD_STR("cpu"), TD_STR("0"));
    assert_int_equal(td_quantity_parse(&h->c.bed.arena, text, &quantity, NULL), TD_OK);
    return td_quantity_milli(&quantity);
}

/* However often pods are resized, and wherever their limit is from: it keeps the proportion to the
 * request that it had at first. */
static void test_limits_keep_their_proportion_in_every_path(void **state)
{
    (void)state;
    static const struct {
        const char *resources;
        const char *vertical;
        bool has_limit_range;
        int size_changes_min;
    } rows[] = {
        {"'requests':{'cpu':'100m'},'limits':{'cpu':'125m'}", "", false, 100},
        {"'requests':{'cpu':'100m'}", "", true, 100},
        {"'requests':{'cpu':'100m'},'limits':{'cpu':'125m'}", ",'actuation':'Template'", false, 30},
    };
    static struct td_series_point points[150];
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        points[i] = (struct td_series_point){.at = (td_duration)i * TD_MINUTE,
                                             .value = 40 + (double)(i * 7919 % 61)};
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hvpa_bed h = {.stopped = 0};
        char spec[1024];
        struct td_demand demand = hvpa_bed_demand();
        demand.request_cpu_ms = 1;
        demand.requests = (struct td_series){
            .shape = TD_SERIES_STEPS, .low = 40, .points = points, .point_count = 150};
        (void)snprintf(spec, sizeof(spec),
                       "'vertical':{'settleSeconds':0,'tolerancePercent':1,'scaleUp':{"
                       "'stabilizationDuration':'0s'},'scaleDown':{'stabilizationDuration':'0s'}%s}"
                       ",'hpaSpec':{'minReplicas':1,'maxReplicas':1,"
                       "'targetCPUUtilizationPercentage':50},'vpaSpec':{}",
                       rows[i].vertical);
        hvpa_bed_init(&h, &demand, 1);
        if (rows[i].has_limit_range) {
            control_bed_create(&h.c, "/api/v1/namespaces/default/limitranges",
                               "{'metadata':{'name':'r'},'spec':{'limits':[{'type':'Container',"
                               "'default':{'cpu':'125m'}}]}}");
        }
        hvpa_bed_deploy(&h, 1, rows[i].resources);
        hvpa_bed_hvpa(&h, "web", spec);
        hvpa_bed_watch(&h, 150 * TD_MINUTE);
        assert_true(h.size_changes >= rows[i].size_changes_min);
        assert_int_equal(pods_cpu(&h, "limits"), (pods_cpu(&h, "requests") * 125 + 99) / 100);
        hvpa_bed_done(&h);
    }
}

static void test_verdicts_of_child_objects(void **state)
{
    (void)state;
    struct hvpa_bed h = {.has_horizontal = true};
    struct td_demand demand = hvpa_bed_demand();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web", "'sources':'Objects'," CPU_50 "," CPU_ONLY);
    control_bed_run(&h.c, 5 * TD_MINUTE);
    const struct td_json *hpa = control_bed_get(&h.c, HPAS "/web-hvpa");
    const struct td_json *vpa = control_bed_get(&h.c, VPAS "/web-hvpa");
    assert_non_null(hpa);
    assert_non_null(vpa);
    assert_true(
        td_str_equal(td_json_get_path(hpa, "spec.scaleTargetRef.kind")->text, TD_STR("Hvpa")));
    assert_true(
        td_str_equal(td_json_get_path(vpa, "spec.updatePolicy.updateMode")->text, TD_STR("Off")));
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "True/Deciding");
    assert_string_equal(hvpa_bed_condition(&h, "web", "HorizontalReady"), "True/ValidMetricFound");
    assert_string_equal(hvpa_bed_condition(&h, "web", "VerticalReady"),
                        "True/RecommendationProvided");
    hvpa_bed_watch(&h, 60 * TD_MINUTE); /* the spike is on */
    assert_true(h.replicas > 3);
    assert_true(h.replicas * h.size >= 9000);
    hvpa_bed_watch(&h, 90 * TD_MINUTE);
    assert_true(h.replicas <= 3);
    assert_true(h.replica_turns <= 1);
    /* Without them again. */
    assert_int_equal(control_bed_patch(&h.c, HVPAS "/web", "{'spec':{'sources':'Internal'}}"), 200);
    control_bed_run(&h.c, TD_MINUTE);
    assert_null(control_bed_get(&h.c, HPAS "/web-hvpa"));
    assert_null(control_bed_get(&h.c, VPAS "/web-hvpa"));
    assert_string_equal(hvpa_bed_condition(&h, "web", "HorizontalReady"), "True/ValidMetricFound");
    hvpa_bed_done(&h);
}

/* A selector in the vpaSpec: the others keep their size, and new ones are not given any. */
static void test_only_selected_pods_are_sized(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = growing();
    struct td_pod_sizes sizes = {.count = 0};
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web",
                  "'mode':'VPABiased','coupling':'Reconcile'," CPU_50
                  ",'vpaSpec':{'selector':{'matchLabels':{'role':'leader'}}}");
    control_bed_run(&h.c, 5 * TD_SECOND);
    const struct td_json *items = td_json_get(control_bed_get(&h.c, PODS), TD_STR("items"));
    td_str leader = td_json_get_str(td_json_get(td_json_first_child(items), TD_STR("metadata")),
                                    TD_STR("name"), TD_STR_EMPTY);
    char target[256];
    (void)snprintf(target, sizeof(target), PODS "/%.*s", TD_STR_ARG(leader));
    assert_int_equal(control_bed_patch(&h.c, target, "{'metadata':{'labels':{'role':'leader'}}}"),
                     200);
    control_bed_run(&h.c, 14 * TD_MINUTE);
    items = td_json_get(control_bed_get(&h.c, PODS), TD_STR("items"));
    size_t changed = 0;
    for (const struct td_json *pod = td_json_first_child(items); pod; pod = pod->next) {
        const struct td_json *container =
            td_json_first_child(td_json_get_path(pod, "spec.containers"));
        changed += !td_str_equal(td_json_get_str(td_json_get_path(container, "resources.requests"),
                                                 TD_STR("cpu"), TD_STR_EMPTY),
                                 TD_STR("1"));
    }
    assert_int_equal(changed, 1);
    assert_true(sizes_of_web(&h, &sizes)); /* of a pod without labels */
    assert_int_equal(sizes.count, 0);
    hvpa_bed_done(&h);
}

/* Resources of the pod itself are one more container: decided, shown and given to new pods; what a
 * container does not ask for it is not given. */
static void test_a_pod_with_resources_of_its_own_is_sized_as_a_whole(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = growing();
    struct td_pod_sizes sizes = {.count = 0};
    hvpa_bed_init(&h, &demand, 1);
    control_bed_create(
        &h.c, DEPLOYMENTS,
        "{'metadata':{'name':'web'},'spec':{'replicas':2,'selector':{'matchLabels':{'app':'web'}},"
        "'template':{'metadata':{'labels':{'app':'web'}},'spec':{'resources':{'requests':{'cpu':"
        "'1','memory':'400Mi'}},'containers':[{'name':'app','image':'nginx'}]}}}}");
    hvpa_bed_hvpa(&h, "web",
                  CPU_50 ",'vpaSpec':{'resourcePolicy':{'podPolicies':{'controlledResources':["
                         "'cpu'],'minAllowed':{'cpu':'100m'},'maxAllowed':{'cpu':'4'}}}}");
    control_bed_run(&h.c, 8 * TD_MINUTE);
    assert_string_equal(hvpa_bed_text(&h, "web", "current.requests.(pod).cpu"), "1");
    assert_string_equal(hvpa_bed_condition(&h, "web", "Coupled"), "False/NotCoupled");
    control_bed_run(&h.c, 7 * TD_MINUTE);
    assert_true(hvpa_bed_replicas(&h) > 2);
    assert_true(sizes_of_web(&h, &sizes));
    assert_int_equal(sizes.count, 1);
    assert_int_equal(sizes.items[0].container.len, 0); /* the pod itself */
    const struct td_quantity *decided =
        td_resource_list_get(&sizes.items[0].requests, TD_STR("cpu"));
    assert_true(td_quantity_milli(decided) > 1000);
    assert_string_equal(hvpa_bed_text(&h, "web", "decision.requests.(pod).cpu"),
                        td_quantity_text(&h.c.bed.arena, decided).ptr);
    const struct td_json *items = td_json_get(control_bed_get(&h.c, PODS), TD_STR("items"));
    for (const struct td_json *pod = td_json_first_child(items); pod; pod = pod->next) {
        const struct td_json *container =
            td_json_first_child(td_json_get_path(pod, "spec.containers"));
        assert_null(td_json_get_path(container, "resources.requests"));
        assert_true(td_str_equal(td_json_get_path(pod, "spec.resources.requests.cpu")->text,
                                 td_quantity_text(&h.c.bed.arena, decided)));
    }
    hvpa_bed_done(&h);
}

static void test_a_daemon_set_is_sized_only(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = hvpa_bed_demand();
    demand.kind = TD_STR("DaemonSet");
    demand.requests = (struct td_series){.shape = TD_SERIES_CONSTANT, .low = 300};
    hvpa_bed_init(&h, &demand, 1);
    control_bed_create(
        &h.c, "/apis/apps/v1/namespaces/default/daemonsets",
        "{'metadata':{'name':'web'},'spec':{'selector':{'matchLabels':{'app':'web'}},'template':{"
        "'metadata':{'labels':{'app':'web'}},'spec':{'containers':[{'name':'app','image':'nginx',"
        "'resources':{'requests':{'cpu':'100m','memory':'200Mi'}}}]}}}}");
    control_bed_create(&h.c, HVPAS,
                       "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{"
                       "'name':'web'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':"
                       "'DaemonSet','name':'web'},'mode':'VPABiased'," CPU_ONLY "}}");
    control_bed_run(&h.c, 10 * TD_MINUTE);
    assert_true(hvpa_bed_size(&h, "cpu") > 1000);
    assert_string_equal(hvpa_bed_condition(&h, "web", "HorizontalReady"), "False/NoHpaSpec");
    assert_string_equal(hvpa_bed_condition(&h, "web", "Progressing"), "False/AsDecided");
    hvpa_bed_done(&h);
}

/* What the server refuses is said with its words, tried again ever later, and works in the end. */
static void test_a_refused_resize_is_said_and_tried_again(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = growing();
    begin(&h, &demand, 9 * TD_MINUTE);
    control_bed_create(&h.c, "/api/v1/namespaces/default/limitranges",
                       "{'metadata':{'name':'small'},'spec':{'limits':[{'type':'Container','min':{"
                       "'cpu':'100m'},'max':{'cpu':'1200m'},'default':{'cpu':'1200m'},"
                       "'defaultRequest':{'cpu':'1'}}]}}");
    control_bed_run(&h.c, 3 * TD_MINUTE);
    assert_int_equal(hvpa_bed_size(&h, "cpu"), 1000);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "False/ScaleFailed");
    assert_int_equal(hvpa_bed_events(&h, "web", "ScaleFailed"), 1);
    assert_true(hvpa_bed_replicas(&h) > 2); /* the other half is not rolled back */
    assert_int_equal(control_bed_delete(&h.c, "/api/v1/namespaces/default/limitranges/small"), 200);
    control_bed_run(&h.c, 9 * TD_MINUTE); /* five minutes and up to half of that */
    assert_true(hvpa_bed_size(&h, "cpu") > 1000);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "True/Deciding");
    hvpa_bed_done(&h);
}

/* A client that writes the workload between our read of its scale and our write of it. */
static struct rude {
    struct hvpa_bed *bed;
    const struct td_transport_ops *ops; /* the real ones */
    int left;                           /* that often */
    int writes;                         /* of the scale, ours */
} rude;

static struct td_call *rude_start(struct td_transport *transport,
                                  const struct td_call_request *request,
                                  const struct td_call_events *events, void *context)
{
    bool is_scale = td_str_equal(request->method, TD_STR("PUT")) &&
                    memmem(request->path.ptr, request->path.len, "web/scale", 9);
    rude.writes += is_scale;
    if (is_scale && rude.left > 0) {
        char patch[64];
        (void)snprintf(patch, sizeof(patch), "{'metadata':{'annotations':{'at':'%d'}}}",
                       rude.left--);
        assert_int_equal(control_bed_patch(&rude.bed->c, DEPLOYMENTS "/web", patch), 200);
    }
    return rude.ops->start(transport, request, events, context);
}

/* A conflict is decided anew from what there is, three times at most, and then later. */
static void test_others_write_the_scale_too(void **state)
{
    (void)state;
    static const struct {
        int conflicts;
        int writes;
        const char *ready; /* after the first tick of the growth */
    } rows[] = {{0, 1, "True/Deciding"}, {2, 3, "True/Deciding"}, {9, 3, "False/ScaleFailed"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hvpa_bed h = {.stopped = 0};
        struct td_demand demand = growing();
        hvpa_bed_init(&h, &demand, 1);
        struct td_transport_ops ops = *h.c.transport->ops;
        rude = (struct rude){.bed = &h, .ops = h.c.transport->ops};
        ops.start = rude_start;
        h.c.transport->ops = &ops;
        hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
        hvpa_bed_hvpa(&h, "web", "'mode':'HPAPreferred'," CPU_50);
        control_bed_run(&h.c, 9 * TD_MINUTE);
        assert_int_equal(rude.writes, 0);
        rude.left = rows[i].conflicts;
        for (int j = 0; j < 300 && rude.writes < rows[i].writes; j++) {
            control_bed_run(&h.c, TD_SECOND);
        }
        control_bed_run(&h.c, 2 * TD_SECOND);
        assert_int_equal(rude.writes, rows[i].writes);
        assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), rows[i].ready);
        assert_int_equal(hvpa_bed_events(&h, "web", "HorizontalScaled"), rows[i].conflicts < 3);
        rude.left = 0;
        control_bed_run(&h.c, 3 * TD_MINUTE); /* the back-off too */
        assert_true(hvpa_bed_replicas(&h) > 4);
        assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "True/Deciding");
        h.c.transport->ops = rude.ops;
        hvpa_bed_done(&h);
    }
}

#define RESTARTS                                                                                   \
    "'requests':{'cpu':'1','memory':'200Mi'}},'resizePolicy':[{'resourceName':'cpu',"              \
    "'restartPolicy':'RestartContainer'}],'securityContext':{"

static int64_t pods_generation(struct hvpa_bed *h)
{
    const struct td_json *items = td_json_get(control_bed_get(&h->c, PODS), TD_STR("items"));
    int64_t most = 0;
    for (const struct td_json *pod = td_json_first_child(items); pod; pod = pod->next) {
        int64_t generation =
            td_json_get_int64(td_json_get(pod, TD_STR("metadata")), TD_STR("generation"), 1);
        most = generation > most ? generation : most;
    }
    return most;
}

static int evictions; /* asked for */

static struct td_call *counting_start(struct td_transport *transport,
                                      const struct td_call_request *request,
                                      const struct td_call_events *events, void *context)
{
    evictions += memmem(request->path.ptr, request->path.len, "/eviction", 9) != NULL;
    return rude.ops->start(transport, request, events, context);
}

static td_str broken_webhook(void *context)
{
    return *(const bool *)context ? TD_STR("pods are not mutated") : TD_STR_EMPTY;
}

/* Pods that would restart are evicted, one a tick. No webhook sizes new ones in this bed: after two
 * evictions without effect a replica is left alone, with an event; and none is evicted while it is
 * known that they would come back unchanged. */
static void test_evictions_without_effect_come_to_an_end(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    bool is_broken = true;
    h.get_webhook_problem = broken_webhook;
    h.webhook_context = &is_broken;
    struct td_demand demand = growing();
    hvpa_bed_init(&h, &demand, 1);
    struct td_transport_ops ops = *h.c.transport->ops;
    rude = (struct rude){.bed = &h, .ops = h.c.transport->ops};
    evictions = 0;
    ops.start = counting_start;
    h.c.transport->ops = &ops;
    hvpa_bed_deploy(&h, 3, RESTARTS);
    hvpa_bed_hvpa(&h, "web", "'mode':'VPABiased','coupling':'Reconcile'," CPU_ONLY);
    control_bed_run(&h.c, 14 * TD_MINUTE);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Progressing"), "True/Resizing");
    assert_int_equal(evictions, 0);
    is_broken = false;
    control_bed_run(&h.c, TD_MINUTE);
    assert_in_range(evictions, 1, 5); /* one a tick */
    control_bed_run(&h.c, 9 * TD_MINUTE);
    assert_in_range(evictions, 2, 6); /* two of each replica */
    assert_true(hvpa_bed_events(&h, "web", "LeftAlone") > 0);
    assert_int_equal(pods_generation(&h), 1); /* none was resized in place */
    assert_int_equal(pods_count(&h, "Running"), 3);
    h.c.transport->ops = rude.ops;
    hvpa_bed_done(&h);
}

/* A quota that would refuse the pod that comes back: none is evicted, which the condition and one
 * event say. */
static void test_a_pod_that_could_not_come_back_is_not_evicted(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = growing();
    hvpa_bed_init(&h, &demand, 1);
    struct td_transport_ops ops = *h.c.transport->ops;
    rude = (struct rude){.bed = &h, .ops = h.c.transport->ops};
    evictions = 0;
    ops.start = counting_start;
    h.c.transport->ops = &ops;
    hvpa_bed_deploy(&h, 3, RESTARTS);
    control_bed_run(&h.c, TD_MINUTE);
    control_bed_create(&h.c, "/api/v1/namespaces/default/resourcequotas",
                       "{'metadata':{'name':'compute'},'spec':{'hard':{'requests.cpu':'3'}}}");
    assert_int_equal(control_bed_patch(&h.c,
                                       "/api/v1/namespaces/default/resourcequotas/compute/status",
                                       "{'status':{'hard':{'requests.cpu':'3'},'used':{"
                                       "'requests.cpu':'3'}}}"),
                     200);
    hvpa_bed_hvpa(&h, "web", "'mode':'VPABiased','coupling':'Reconcile'," CPU_ONLY);
    control_bed_run(&h.c, 15 * TD_MINUTE);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Progressing"), "True/Resizing");
    assert_string_equal(hvpa_bed_condition(&h, "web", "EvictionBlocked"),
                        "True/ReplacementRefused");
    assert_int_equal(hvpa_bed_events(&h, "web", "EvictionBlocked"), 1);
    assert_int_equal(evictions, 0);
    assert_int_equal(pods_count(&h, "Running"), 3);
    assert_int_equal(control_bed_delete(&h.c, "/api/v1/namespaces/default/resourcequotas/compute"),
                     200);
    control_bed_run(&h.c, TD_MINUTE);
    assert_in_range(evictions, 1, 5);
    h.c.transport->ops = rude.ops;
    hvpa_bed_done(&h);
}

static void test_zero_replicas_switch_it_off(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = growing();
    struct td_pod_sizes sizes = {.count = 0};
    begin(&h, &demand, 15 * TD_MINUTE);
    int64_t size = hvpa_bed_size(&h, "cpu");
    assert_true(size > 1000);
    assert_int_equal(control_bed_patch(&h.c, DEPLOYMENTS "/web", "{'spec':{'replicas':0}}"), 200);
    control_bed_run(&h.c, 5 * TD_MINUTE);
    assert_int_equal(hvpa_bed_replicas(&h), 0);
    assert_string_equal(hvpa_bed_text(&h, "web", "decision.reason"), "ScalingDisabled");
    assert_true(sizes_of_web(&h, &sizes)); /* the first pod has the size of the last */
    assert_int_equal(sizes.count, 1);
    assert_int_equal(
        td_quantity_milli(td_resource_list_get(&sizes.items[0].requests, TD_STR("cpu"))), size);
    /* Above the maximum: straight back, with the sizes kept. */
    assert_int_equal(control_bed_patch(&h.c, DEPLOYMENTS "/web", "{'spec':{'replicas':23}}"), 200);
    control_bed_run(&h.c, 20 * TD_SECOND);
    assert_int_equal(hvpa_bed_replicas(&h), 20);
    hvpa_bed_done(&h);
}

/* Errors of the API now and then are only delays. */
static void test_an_api_that_fails_now_and_then(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = growing();
    begin(&h, &demand, 9 * TD_MINUTE);
    h.faults.api_error_share = 0.2;
    control_bed_run(&h.c, 10 * TD_MINUTE);
    h.faults.api_error_share = 0;
    control_bed_run(&h.c, 5 * TD_MINUTE);
    int64_t total = hvpa_bed_replicas(&h) * hvpa_bed_size(&h, "cpu");
    assert_true(total >= 5700 && total <= 7800);
    assert_string_equal(hvpa_bed_condition(&h, "web", "Ready"), "True/Deciding");
    assert_string_equal(hvpa_bed_condition(&h, "web", "Progressing"), "False/AsDecided");
    hvpa_bed_done(&h);
}

static bool oom_is_flagged(struct hvpa_bed *h)
{
    const struct td_json *web = control_bed_get(&h->c, HVPAS "/web");
    return td_json_at(td_json_get_path(web, "status.emergency"), 0) != NULL;
}

/* A pod shows an OOM that many seconds behind the last scaling: is a flag up then? */
static bool oom_raises(struct hvpa_bed *h, int seconds_behind)
{
    const struct td_json *status =
        td_json_get(control_bed_get(&h->c, HVPAS "/web"), TD_STR("status"));
    td_str applied = td_json_get_str(td_json_get(status, TD_STR("lastScaling")),
                                     TD_STR("verticalTime"), TD_STR_EMPTY);
    struct td_instant at;
    assert_int_equal(td_time_parse(applied, &at, NULL), TD_OK);
    at.unix_seconds += seconds_behind;
    char finished[TD_TIME_TEXT_BYTES];
    (void)td_time_format(at, 0, finished);
    const struct td_json *items = td_json_get(control_bed_get(&h->c, PODS), TD_STR("items"));
    char target[256];
    char patch[512];
    (void)snprintf(target, sizeof(target), PODS "/%.*s/status",
                   TD_STR_ARG(td_json_get_str(td_json_get(td_json_at(items, 0), TD_STR("metadata")),
                                              TD_STR("name"), TD_STR_EMPTY)));
    (void)snprintf(patch, sizeof(patch),
                   "{'status':{'containerStatuses':[{'name':'app','image':'app','imageID':'',"
                   "'ready':true,'restartCount':9,'state':{'running':{}},'lastState':{'terminated':"
                   "{'exitCode':137,'reason':'OOMKilled','finishedAt':'%s'}}}]}}",
                   finished);
    assert_int_equal(control_bed_patch(&h->c, target, patch), 200);
    control_bed_run(&h->c, 20 * TD_SECOND);
    return oom_is_flagged(h);
}

/* Times of both are whole seconds: nothing that may have happened with the new size is lost. */
static void test_an_oom_in_the_second_of_the_last_scaling_counts(void **state)
{
    (void)state;
    for (int behind = -1; behind <= 1; behind++) {
        struct hvpa_bed h = {.stopped = 0};
        struct td_demand demand = growing();
        begin(&h, &demand, 15 * TD_MINUTE);
        assert_false(oom_is_flagged(&h));
        assert_int_equal(oom_raises(&h, behind), behind >= 0);
        hvpa_bed_done(&h);
    }
}

/* ---- What stays of one that is deleted ---- */

#define WEB "/apis/apps/v1/namespaces/default/deployments/web"

/* Millicores that the template of web asks for. */
static int64_t deleted_template_cpu(struct hvpa_bed *h)
{
    const struct td_json *containers =
        td_json_get_path(control_bed_get(&h->c, WEB), "spec.template.spec.containers");
    const struct td_json *requests =
        td_json_get_path(td_json_at(containers, 0), "resources.requests");
    struct td_quantity quantity;
    assert_int_equal(
        td_quantity_parse(&h->c.bed.arena, td_json_text(requests, "cpu"), &quantity, NULL), TD_OK);
    return td_quantity_milli(&quantity);
}

static bool has_hvpa(struct hvpa_bed *h)
{
    const struct td_json *list = td_json_get(control_bed_get(&h->c, HVPAS), TD_STR("items"));
    return list->count > 0;
}

static bool has_finalizer(struct hvpa_bed *h)
{
    const struct td_json *list =
        td_json_get_path(control_bed_get(&h->c, HVPAS "/web"), "metadata.finalizers");
    const struct td_json *first = td_json_first_item(list);
    return first && td_str_equal(first->text, TD_STR("tandem.dev/on-delete"));
}

static void test_on_delete_says_what_the_next_pods_have(void **state)
{
    (void)state;
    for (int keeps = 0; keeps < 2; keeps++) {
        struct hvpa_bed h = {.stopped = 0};
        struct td_demand demand = growing();
        hvpa_bed_init(&h, &demand, 1);
        hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
        hvpa_bed_hvpa(&h, "web",
                      keeps ? "'onDelete':'Keep'," CPU_50 "," CPU_ONLY : CPU_50 "," CPU_ONLY);
        control_bed_run(&h.c, 15 * TD_MINUTE);
        int64_t size = hvpa_bed_size(&h, "cpu");
        assert_true(size > 1000);
        assert_int_equal(deleted_template_cpu(&h), 1000);
        assert_int_equal(has_finalizer(&h), keeps);
        assert_int_equal(control_bed_delete(&h.c, HVPAS "/web"), 200);
        control_bed_run(&h.c, TD_MINUTE);
        assert_false(has_hvpa(&h));
        assert_int_equal(deleted_template_cpu(&h), keeps ? size : 1000);
        assert_int_equal(hvpa_bed_events(&h, "web", "SizesKept"), keeps);
        assert_int_equal(hvpa_bed_size(&h, "cpu"), size); /* of the pods that there are */
        hvpa_bed_done(&h);
    }
}

/* Nothing holds an object whose target is gone, or which is not to keep sizes any more. */
static void test_on_delete_does_not_hold_for_ever(void **state)
{
    (void)state;
    struct hvpa_bed h = {.stopped = 0};
    struct td_demand demand = growing();
    hvpa_bed_init(&h, &demand, 1);
    hvpa_bed_deploy(&h, 2, "'requests':{'cpu':'1','memory':'200Mi'}");
    hvpa_bed_hvpa(&h, "web", "'onDelete':'Keep'," CPU_50 "," CPU_ONLY);
    control_bed_run(&h.c, 15 * TD_MINUTE);
    assert_true(has_finalizer(&h));
    assert_int_equal(control_bed_patch(&h.c, HVPAS "/web", "{'spec':{'onDelete':'Template'}}"),
                     200);
    control_bed_run(&h.c, 30 * TD_SECOND);
    assert_false(has_finalizer(&h));
    assert_int_equal(control_bed_patch(&h.c, HVPAS "/web", "{'spec':{'onDelete':'Keep'}}"), 200);
    control_bed_run(&h.c, 30 * TD_SECOND);
    assert_true(has_finalizer(&h));
    assert_int_equal(control_bed_delete(&h.c, WEB), 200);
    control_bed_run(&h.c, 10 * TD_SECOND);
    assert_int_equal(control_bed_delete(&h.c, HVPAS "/web"), 200);
    control_bed_run(&h.c, TD_MINUTE);
    assert_false(has_hvpa(&h));
    assert_int_equal(hvpa_bed_events(&h, "web", "SizesNotKept"), 1);
    hvpa_bed_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_pods_are_given_what_was_decided),
        cmocka_unit_test(test_on_delete_says_what_the_next_pods_have),
        cmocka_unit_test(test_on_delete_does_not_hold_for_ever),
        cmocka_unit_test(test_pods_that_come_at_another_size_are_mended),
        cmocka_unit_test(test_a_size_that_no_node_has_is_given_up),
        cmocka_unit_test(test_sizes_go_into_the_template_when_told_so),
        cmocka_unit_test(test_limits_keep_their_proportion_in_every_path),
        cmocka_unit_test(test_verdicts_of_child_objects),
        cmocka_unit_test(test_only_selected_pods_are_sized),
        cmocka_unit_test(test_a_pod_with_resources_of_its_own_is_sized_as_a_whole),
        cmocka_unit_test(test_a_daemon_set_is_sized_only),
        cmocka_unit_test(test_a_refused_resize_is_said_and_tried_again),
        cmocka_unit_test(test_others_write_the_scale_too),
        cmocka_unit_test(test_evictions_without_effect_come_to_an_end),
        cmocka_unit_test(test_a_pod_that_could_not_come_back_is_not_evicted),
        cmocka_unit_test(test_zero_replicas_switch_it_off),
        cmocka_unit_test(test_an_api_that_fails_now_and_then),
        cmocka_unit_test(test_an_oom_in_the_second_of_the_last_scaling_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
