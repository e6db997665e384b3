/*
 * The recommender on a local cluster: from use to statuses and checkpoints, over restarts, OOMs,
 * targets that are not there, siblings, and metrics that stop coming.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "control/informers/informers.h"
#include "control/recommender/recommend_loop.h"
#include "kube/client/events.h"
#include "kube/client/metrics_client.h"
#include "local/engine/faults.h"
#include "support/control_bed.h"

#define VPAS "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
#define CHECKPOINTS                                                                                \
    "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalercheckpoints"

struct recommend_bed {
    struct control_bed c;
    struct td_faults faults;
    struct td_informers *informers;
    struct td_metrics_client *metrics_client;
    struct td_metric_registry *registry;
    struct td_events *events;
    struct td_recommend_loop *loop;
    double min_confidence; /* from the next start on */
    bool is_stopped;
};

static void recommend_bed_start(struct recommend_bed *r)
{
    struct td_informers_options informers = {
        .loop = r->c.bed.loop, .client = r->c.client, .seed = 1};
    for (size_t i = 0; i < TD_INFORMER_COUNT; i++) {
        informers.wants[i] = true;
    }
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_informers_new(&informers, &r->informers, &err), TD_OK);
    r->metrics_client = td_metrics_client_new(r->c.bed.loop, r->c.client, NULL, TD_MINUTE);
    r->registry = td_metric_registry_new();
    r->events = td_events_new(&(struct td_events_options){
        .loop = r->c.bed.loop, .client = r->c.client, .component = TD_STR("vpa-recommender")});
    const struct td_recommend_options options = {
        .control = {.loop = r->c.bed.loop,
                    .client = r->c.client,
                    .informers = r->informers,
                    .metrics_client = r->metrics_client,
                    .events = r->events,
                    .registry = r->registry,
                    .gates = {.heterogeneous_workloads = true, .pod_level_resources = true}},
        .config = td_vertical_config_default(),
        .name = TD_STR("default"),
        .interval = TD_MINUTE,
        .checkpoints_gc_interval = 10 * TD_MINUTE,
        .checkpoints_timeout = TD_MINUTE,
        .writes_max = 10,
        .min_confidence = r->min_confidence,
    };
    assert_int_equal(td_recommend_loop_new(&options, &r->loop, &err), TD_OK);
    td_informers_start(r->informers);
    td_recommend_loop_start(r->loop);
}

static void recommend_bed_stopped(void *context)
{
    *(bool *)context = true;
}

static void recommend_bed_stop(struct recommend_bed *r)
{
    r->is_stopped = false;
    td_recommend_loop_stop(r->loop, recommend_bed_stopped, &r->is_stopped);
    control_bed_run(&r->c, TD_SECOND);
    assert_true(r->is_stopped);
    td_recommend_loop_free(r->loop);
    td_events_free(r->events);
    td_metrics_client_free(r->metrics_client);
    td_informers_free(r->informers);
    td_metric_registry_free(r->registry);
}

static void recommend_bed_init(struct recommend_bed *r)
{
    *r = (struct recommend_bed){.informers = NULL};
    const struct td_cluster_options options = {.seed = 1, .faults = &r->faults};
    control_bed_init_with(&r->c, &options);
    recommend_bed_start(r);
}

static void recommend_bed_done(struct recommend_bed *r)
{
    recommend_bed_stop(r);
    control_bed_done(&r->c);
}

static void recommend_bed_deploy(struct recommend_bed *r, const char *name, const char *use,
                                 const char *resources)
{
    char text[2048];
    (void)snprintf(
        text, sizeof(text),
        "{'metadata':{'name':'%s'},'spec':{'replicas':2,'selector':{'matchLabels':{'app':'%s'}},"
        "'template':{'metadata':{'labels':{'app':'%s'},'annotations':{'usage.tandem.dev/app':"
        "'%s'}},'spec':{'containers':[{'name':'app','image':'nginx','resources':{%s}}]}}}}",
        name, name, name, use, resources);
    control_bed_create(&r->c, "/apis/apps/v1/namespaces/default/deployments", text);
}

static void recommend_bed_vpa(struct recommend_bed *r, const char *name, const char *target,
                              const char *spec)
{
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
                   "'metadata':{'name':'%s'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':"
                   "'Deployment','name':'%s'}%s}}",
                   name, target, spec);
    control_bed_create(&r->c, VPAS, text);
}

static struct td_json *recommend_bed_status(struct recommend_bed *r, const char *name)
{
    char target[256];
    (void)snprintf(target, sizeof(target), VPAS "/%s", name);
    struct td_json *vpa = control_bed_get(&r->c, target);
    assert_non_null(vpa);
    return td_json_get(vpa, TD_STR("status"));
}

static td_str recommend_bed_target(struct recommend_bed *r, const char *name, const char *resource)
{
    const struct td_json *list =
        td_json_get_path(recommend_bed_status(r, name), "recommendation.containerRecommendations");
    const struct td_json *first = td_json_first_child(list);
    return td_json_get_str(td_json_get(first, TD_STR("target")), td_str_from(resource),
                           TD_STR_EMPTY);
}

/* The message of a condition that is True; empty: it is not. */
static td_str recommend_bed_condition(struct recommend_bed *r, const char *name, const char *type)
{
    const struct td_json *list = td_json_get(recommend_bed_status(r, name), TD_STR("conditions"));
    const struct td_json *c = td_json_first_child(list);
    for (; c; c = c->next) {
        if (td_str_equal(td_json_get_str(c, TD_STR("type"), TD_STR_EMPTY), td_str_from(type)) &&
            td_str_equal(td_json_get_str(c, TD_STR("status"), TD_STR_EMPTY), TD_STR("True"))) {
            return td_json_get_str(c, TD_STR("message"), TD_STR("-"));
        }
    }
    return TD_STR_EMPTY;
}

static void test_use_becomes_a_recommendation_and_a_checkpoint(void **state)
{
    (void)state;
    struct recommend_bed r;
    recommend_bed_init(&r);
    recommend_bed_deploy(&r, "web", "500m,500000000", "");
    recommend_bed_vpa(&r, "web", "web", "");
    control_bed_run(&r.c, 5 * TD_MINUTE);
    assert_true(td_str_equal(recommend_bed_target(&r, "web", "cpu"), TD_STR("587m")));
    assert_true(td_str_equal(recommend_bed_target(&r, "web", "memory"), TD_STR("587804717")));
    assert_true(recommend_bed_condition(&r, "web", "RecommendationProvided").len > 0);
    assert_non_null(control_bed_get(&r.c, CHECKPOINTS "/web-app"));
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_metric_registry_write(r.registry, &text);
    assert_non_null(strstr(td_buf_str(&text).ptr,
                           "vpa_recommender_vpa_objects_count{update_mode=\"Recreate\","
                           "has_recommendation=\"true\",api=\"v1\",matches_pods=\"true\","
                           "unsupported_config=\"false\"} 1\n"));
    assert_non_null(strstr(td_buf_str(&text).ptr, "vpa_recommender_execution_latency_seconds"));
    assert_non_null(
        strstr(td_buf_str(&text).ptr, "vpa=\"web\",container=\"app\",resource=\"cpu\"} 0.587\n"));
    recommend_bed_done(&r);
}

/* Asked for a day of history, the recommender recommends before that and says that it is early. */
static void test_a_short_history_is_said_where_it_matters(void **state)
{
    (void)state;
    struct recommend_bed r;
    recommend_bed_init(&r);
    recommend_bed_deploy(&r, "web", "300m,200Mi", "");
    recommend_bed_vpa(&r, "web", "web", "");
    control_bed_run(&r.c, 10 * TD_MINUTE);
    assert_int_equal(recommend_bed_condition(&r, "web", "LowConfidence").len, 0);
    recommend_bed_stop(&r);
    r.min_confidence = 0.5;
    recommend_bed_start(&r);
    control_bed_run(&r.c, 10 * TD_MINUTE);
    assert_true(recommend_bed_target(&r, "web", "cpu").len > 0);
    assert_true(recommend_bed_condition(&r, "web", "LowConfidence").len > 0);
    control_bed_run(&r.c, 16 * TD_HOUR);
    assert_int_equal(recommend_bed_condition(&r, "web", "LowConfidence").len, 0);
    recommend_bed_done(&r);
}

static void test_a_restart_keeps_what_was_learnt(void **state)
{
    (void)state;
    struct recommend_bed r;
    recommend_bed_init(&r);
    recommend_bed_deploy(&r, "web", "500m,500000000", "");
    recommend_bed_vpa(&r, "web", "web", "");
    control_bed_run(&r.c, 10 * TD_MINUTE);
    recommend_bed_stop(&r);
    assert_int_equal(control_bed_delete(&r.c, "/apis/apps/v1/namespaces/default/deployments/web"),
                     200);
    control_bed_run(&r.c, TD_MINUTE);
    recommend_bed_start(&r);
    control_bed_run(&r.c, 3 * TD_MINUTE);
    assert_true(td_str_equal(recommend_bed_target(&r, "web", "cpu"), TD_STR("587m")));
    assert_true(recommend_bed_condition(&r, "web", "NoPodsMatched").len > 0);
    assert_true(recommend_bed_condition(&r, "web", "ConfigUnsupported").len > 0);
    recommend_bed_done(&r);
}

static void test_an_oom_is_written_at_once_and_outlives_a_crash(void **state)
{
    (void)state;
    struct recommend_bed r;
    recommend_bed_init(&r);
    recommend_bed_deploy(&r, "web", "10m,300Mi",
                         "'requests':{'memory':'200Mi'},'limits':{"
                         "'memory':'256Mi'}");
    recommend_bed_vpa(&r, "web", "web", "");
    control_bed_run(&r.c, 4 * TD_MINUTE);
    /* Killed at 256Mi, asked for 200Mi: 300Mi is the least that helps. */
    const struct td_json *checkpoint = control_bed_get(&r.c, CHECKPOINTS "/web-app");
    assert_non_null(checkpoint);
    const struct td_json *annotations = td_json_get_path(checkpoint, "metadata.annotations");
    assert_true(td_json_get_str(annotations, TD_STR("tandem.dev/oom"), TD_STR_EMPTY).len > 0);
    td_auto_buf told = td_buf_capped((size_t)1 << 20);
    td_metric_registry_write(r.registry, &told);
    assert_null(strstr(td_buf_str(&told).ptr,
                       "tandem_recommender_oom_kills_total{sized_by=\"owner\"} 0\n"));
    assert_non_null(strstr(td_buf_str(&told).ptr,
                           "tandem_recommender_oom_kills_total{sized_by=\"resize\"} 0\n"));
    assert_null(strstr(td_buf_str(&told).ptr,
                       "tandem_recommender_checkpoint_writes_total{is_error=\"false\"} 0\n"));
    assert_non_null(strstr(td_buf_str(&told).ptr,
                           "tandem_recommender_checkpoint_writes_total{is_error=\"true\"} 0\n"));
    td_str before = td_arena_copy_str(&r.c.bed.arena, recommend_bed_target(&r, "web", "memory"));
    assert_true(before.len > 0);
    recommend_bed_stop(&r);
    recommend_bed_start(&r);
    control_bed_run(&r.c, 2 * TD_MINUTE);
    int64_t was;
    int64_t is;
    assert_true(td_str_to_int64(before, &was));
    assert_true(td_str_to_int64(recommend_bed_target(&r, "web", "memory"), &is));
    assert_true(is >= was);
    assert_true(was > 300 * 1048576);
    recommend_bed_done(&r);
}

/* What others wrote beside a checkpoint stays, and a map is made where there was none. */
static void test_annotations_of_others_stay(void **state)
{
    (void)state;
    static const char *const theirs[] = {"", ",'annotations':{'example.com/note':'keep'}"};
    for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++) {
        struct recommend_bed r;
        recommend_bed_init(&r);
        char text[512];
        (void)snprintf(text, sizeof(text),
                       "{'apiVersion':'autoscaling.k8s.io/v1','kind':"
                       "'VerticalPodAutoscalerCheckpoint','metadata':{'name':'web-app'%s},'spec':{"
                       "'vpaObjectName':'web','containerName':'app'},'status':{'version':'v3'}}",
                       theirs[i]);
        recommend_bed_deploy(&r, "web", "10m,300Mi",
                             "'requests':{'memory':'200Mi'},'limits':{'memory':'256Mi'}");
        recommend_bed_vpa(&r, "web", "web", "");
        control_bed_create(&r.c, CHECKPOINTS, text);
        control_bed_run(&r.c, 4 * TD_MINUTE);
        const struct td_json *checkpoint = control_bed_get(&r.c, CHECKPOINTS "/web-app");
        const struct td_json *annotations = td_json_get_path(checkpoint, "metadata.annotations");
        assert_true(td_json_get_str(annotations, TD_STR("tandem.dev/oom"), TD_STR_EMPTY).len > 0);
        td_str note = td_json_get_str(annotations, TD_STR("example.com/note"), TD_STR_EMPTY);
        assert_true(td_str_equal(note, i == 0 ? TD_STR_EMPTY : TD_STR("keep")));
        recommend_bed_done(&r);
    }
}

/* The kubelet evicts for want of memory while the recommender is not running: the event is read at
 * the start. */
static void test_an_eviction_for_want_of_memory_outlives_a_pause(void **state)
{
    (void)state;
    struct recommend_bed r;
    recommend_bed_init(&r);
    recommend_bed_deploy(&r, "web", "10m,50Mi", "'requests':{'memory':'200Mi'}");
    recommend_bed_vpa(&r, "web", "web", "");
    control_bed_run(&r.c, 4 * TD_MINUTE);
    recommend_bed_stop(&r);
    control_bed_run(&r.c, 2 * TD_MINUTE);
    const struct td_json *pods = control_bed_get(&r.c, "/api/v1/namespaces/default/pods");
    const struct td_json *pod = td_json_at(td_json_get(pods, TD_STR("items")), 0);
    td_str name =
        td_json_get_str(td_json_get(pod, TD_STR("metadata")), TD_STR("name"), TD_STR_EMPTY);
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "{'metadata':{'name':'starved','annotations':{'offending_containers':'app',"
                   "'offending_containers_usage':'900Mi','starved_resource':'memory'}},"
                   "'reason':'Evicted','type':'Warning','involvedObject':{'kind':'Pod',"
                   "'namespace':'default','name':'%.*s'}}",
                   TD_STR_ARG(name));
    control_bed_create(&r.c, "/api/v1/namespaces/default/events", text);
    recommend_bed_start(&r);
    control_bed_run(&r.c, 5 * TD_SECOND);
    int64_t target;
    assert_true(td_str_to_int64(recommend_bed_target(&r, "web", "memory"), &target));
    assert_true(target > 900 * 1048576);
    const struct td_json *checkpoint = control_bed_get(&r.c, CHECKPOINTS "/web-app");
    const struct td_json *annotations = td_json_get_path(checkpoint, "metadata.annotations");
    assert_true(td_json_get_str(annotations, TD_STR("tandem.dev/oom"), TD_STR_EMPTY).len > 0);
    recommend_bed_done(&r);
}

static size_t recommend_bed_events(struct recommend_bed *r, const char *reason)
{
    const struct td_json *list = control_bed_get(&r->c, "/api/v1/namespaces/default/events");
    size_t count = 0;
    for (const struct td_json *e = td_json_first_child(td_json_get(list, TD_STR("items"))); e;
         e = e->next) {
        if (td_str_equal(td_json_get_str(e, TD_STR("reason"), TD_STR_EMPTY), td_str_from(reason))) {
            count += (size_t)td_json_get_int64(e, TD_STR("count"), 1);
        }
    }
    return count;
}

/* Two that were admitted at the same instant: the younger one says so within seconds, long before
 * the next pass, and takes it back as soon. */
static void test_siblings_meet_between_two_passes(void **state)
{
    (void)state;
    struct recommend_bed r;
    recommend_bed_init(&r);
    recommend_bed_deploy(&r, "web", "500m,500000000", "");
    recommend_bed_vpa(&r, "alone", "api", "");
    control_bed_run(&r.c, 90 * TD_SECOND); /* half-way between two passes */
    recommend_bed_vpa(&r, "a", "web", "");
    recommend_bed_vpa(&r, "b", "web", "");
    control_bed_run(&r.c, 4 * TD_SECOND);
    assert_int_equal(recommend_bed_condition(&r, "a", "ConflictingSelector").len, 0);
    assert_true(recommend_bed_condition(&r, "b", "ConflictingSelector").len > 0);
    assert_int_equal(recommend_bed_events(&r, "ConflictingSelector"), 1);
    assert_int_equal(
        control_bed_patch(&r.c, VPAS "/b", "{'spec':{'targetRef':{'name':'another'}}}"), 200);
    recommend_bed_vpa(&r, "c", "web", ""); /* shares its target, so there is a look */
    control_bed_run(&r.c, 4 * TD_SECOND);
    assert_int_equal(recommend_bed_condition(&r, "b", "ConflictingSelector").len, 0);
    assert_true(recommend_bed_condition(&r, "c", "ConflictingSelector").len > 0);
    recommend_bed_done(&r);
}

static void test_siblings_that_overlap_are_reported(void **state)
{
    (void)state;
    struct recommend_bed r;
    recommend_bed_init(&r);
    recommend_bed_deploy(&r, "web", "500m,500000000", "");
    recommend_bed_vpa(&r, "a", "web", "");
    control_bed_run(&r.c, 2 * TD_SECOND);
    recommend_bed_vpa(&r, "b", "web", ",'selector':{'matchLabels':{'app':'web'}}");
    recommend_bed_vpa(&r, "lost", "nobody", "");
    control_bed_run(&r.c, 3 * TD_MINUTE);
    assert_int_equal(recommend_bed_condition(&r, "a", "ConflictingSelector").len, 0);
    assert_true(recommend_bed_condition(&r, "b", "ConflictingSelector").len > 0);
    assert_int_equal(recommend_bed_events(&r, "ConflictingSelector"), 1);
    recommend_bed_stop(&r); /* the next process does not say it again */
    recommend_bed_start(&r);
    control_bed_run(&r.c, 3 * TD_MINUTE);
    assert_int_equal(recommend_bed_events(&r, "ConflictingSelector"), 1);
    assert_true(td_str_equal(recommend_bed_condition(&r, "lost", "ConfigUnsupported"),
                             TD_STR("Cannot read targetRef. Reason: Deployment default/nobody "
                                    "does not exist")));
    assert_int_equal(control_bed_delete(&r.c, VPAS "/a"), 200);
    control_bed_run(&r.c, 2 * TD_MINUTE);
    assert_int_equal(recommend_bed_condition(&r, "b", "ConflictingSelector").len, 0);
    recommend_bed_done(&r);
}

/* The first pod of the Deployment gets or loses a label and the use that goes with it. */
static void recommend_bed_move(struct recommend_bed *r, const char *role, const char *use)
{
    const struct td_json *pods =
        td_json_get(control_bed_get(&r->c, "/api/v1/namespaces/default/pods"), TD_STR("items"));
    char target[256];
    char patch[256];
    td_str name = td_json_get_str(td_json_get(td_json_first_child(pods), TD_STR("metadata")),
                                  TD_STR("name"), TD_STR_EMPTY);
    (void)snprintf(target, sizeof(target), "/api/v1/namespaces/default/pods/%.*s",
                   TD_STR_ARG(name));
    (void)snprintf(
        patch, sizeof(patch),
        "{'metadata':{'labels':{'role':%s},'annotations':{'usage.tandem.dev/app':'%s'}}}", role,
        use);
    assert_int_equal(control_bed_patch(&r->c, target, patch), 200);
}

/* A watch of ReplicaSets that can fall silent. */
static struct {
    const struct td_transport_ops *ops; /* the transport's own */
    struct td_call_events events;
    void *context;
    bool is_silent;
} late;

static void late_head(void *context, const struct td_call_head *head)
{
    (void)context;
    late.events.head(late.context, head);
}

static void late_body(void *context, td_str bytes)
{
    (void)context;
    if (!late.is_silent) {
        late.events.body(late.context, bytes);
    }
}

static void late_end(void *context, int code, const struct td_error *err)
{
    (void)context;
    late.events.end(late.context, code, err);
}

static struct td_call *late_start(struct td_transport *transport,
                                  const struct td_call_request *request,
                                  const struct td_call_events *events, void *context)
{
    static const struct td_call_events between = {
        .head = late_head, .body = late_body, .end = late_end};
    const char *wanted = "/replicasets?watch=";
    if (!memmem(request->path.ptr, request->path.len, wanted, strlen(wanted))) {
        return late.ops->start(transport, request, events, context);
    }
    late.events = *events;
    late.context = context;
    transport->ops = late.ops; /* this one only */
    return late.ops->start(transport, request, &between, NULL);
}

/* Watches know nothing of each other: a pod may be seen minutes before its ReplicaSet is. */
static void test_a_pod_that_is_seen_before_its_owner_counts_later(void **state)
{
    (void)state;
    struct recommend_bed r;
    recommend_bed_init(&r);
    recommend_bed_stop(&r);
    late.ops = r.c.transport->ops;
    struct td_transport_ops ops = *late.ops;
    ops.start = late_start;
    r.c.transport->ops = &ops;
    recommend_bed_start(&r);
    control_bed_run(&r.c, TD_SECOND);
    assert_ptr_equal(r.c.transport->ops, late.ops);
    late.is_silent = true;
    recommend_bed_deploy(&r, "web", "500m,500000000", "");
    recommend_bed_vpa(&r, "web", "web", "");
    control_bed_run(&r.c, 80 * TD_SECOND);
    assert_true(recommend_bed_condition(&r, "web", "NoPodsMatched").len > 0);
    control_bed_run(&r.c, 4 * TD_MINUTE); /* another watch has taken its place meanwhile */
    assert_int_equal(recommend_bed_condition(&r, "web", "NoPodsMatched").len, 0);
    assert_true(td_str_equal(recommend_bed_target(&r, "web", "memory"), TD_STR("587804717")));
    recommend_bed_done(&r);
}

/* A Deployment that is made anew adopts its ReplicaSet; of that the pods say nothing. */
static void test_pods_follow_a_workload_that_is_adopted(void **state)
{
    (void)state;
    struct recommend_bed r;
    recommend_bed_init(&r);
    recommend_bed_deploy(&r, "web", "500m,500000000", "");
    recommend_bed_vpa(&r, "web", "web", "");
    control_bed_run(&r.c, 2 * TD_MINUTE);
    const char *target = "/apis/apps/v1/namespaces/default/deployments/web";
    char orphan[128];
    (void)snprintf(orphan, sizeof(orphan), "%s?propagationPolicy=Orphan", target);
    assert_int_equal(control_bed_delete(&r.c, orphan), 200);
    control_bed_run(&r.c, TD_SECOND);
    assert_null(control_bed_get(&r.c, target));
    recommend_bed_move(&r, "null", "2,5000000000"); /* it is looked at while it has no owner */
    control_bed_run(&r.c, 2 * TD_MINUTE);
    assert_true(recommend_bed_condition(&r, "web", "NoPodsMatched").len > 0);
    recommend_bed_deploy(&r, "web", "500m,500000000", "");
    control_bed_run(&r.c, 3 * TD_MINUTE);
    assert_int_equal(recommend_bed_condition(&r, "web", "NoPodsMatched").len, 0);
    assert_true(recommend_bed_target(&r, "web", "memory").len > strlen("587804717"));
    recommend_bed_done(&r);
}

/* What a leader used just before it is none any more is not the peak of the followers. */
static void test_a_measurement_stays_with_the_vpa_of_its_time(void **state)
{
    (void)state;
    struct recommend_bed r;
    recommend_bed_init(&r);
    recommend_bed_stop(&r);
    control_bed_run(&r.c, 12 * TD_SECOND); /* passes and measurements are not at one time */
    recommend_bed_start(&r);
    recommend_bed_deploy(&r, "web", "500m,500000000", "");
    recommend_bed_vpa(&r, "leader", "web", ",'selector':{'matchLabels':{'role':'leader'}}");
    recommend_bed_vpa(&r, "follower", "web",
                      ",'selector':{'matchExpressions':[{'key':'role','operator':'NotIn','values':"
                      "['leader']}]}");
    control_bed_run(&r.c, 5 * TD_MINUTE);
    for (int i = 0; i < 20; i++) { /* at any distance from a pass and a measurement */
        recommend_bed_move(&r, "'leader'", "2,5000000000");
        control_bed_run(&r.c, 3 * TD_MINUTE + 7 * TD_SECOND);
        recommend_bed_move(&r, "null", "500m,500000000");
        control_bed_run(&r.c, 3 * TD_MINUTE);
    }
    assert_true(td_str_equal(recommend_bed_target(&r, "follower", "memory"), TD_STR("587804717")));
    assert_true(td_str_equal(recommend_bed_target(&r, "follower", "cpu"), TD_STR("587m")));
    assert_true(recommend_bed_target(&r, "leader", "memory").len > strlen("587804717"));
    recommend_bed_done(&r);
}

static void test_checkpoints_go_with_their_vpa_only(void **state)
{
    (void)state;
    struct recommend_bed r;
    recommend_bed_init(&r);
    recommend_bed_deploy(&r, "web", "500m,500000000", "");
    recommend_bed_vpa(&r, "web", "web", "");
    recommend_bed_vpa(&r, "theirs", "web", ",'recommenders':[{'name':'other'}]");
    control_bed_create(&r.c, CHECKPOINTS,
                       "{'apiVersion':'autoscaling.k8s.io/v1','kind':"
                       "'VerticalPodAutoscalerCheckpoint','metadata':{'name':'theirs-app'},'spec':{"
                       "'vpaObjectName':'theirs','containerName':'app'},'status':{'version':"
                       "'v3'}}");
    control_bed_run(&r.c, 15 * TD_MINUTE);
    assert_non_null(control_bed_get(&r.c, CHECKPOINTS "/theirs-app"));
    assert_non_null(control_bed_get(&r.c, CHECKPOINTS "/web-app"));
    assert_null(td_json_get(recommend_bed_status(&r, "theirs"), TD_STR("recommendation")));
    assert_int_equal(control_bed_delete(&r.c, VPAS "/web"), 200);
    control_bed_run(&r.c, 12 * TD_MINUTE);
    assert_null(control_bed_get(&r.c, CHECKPOINTS "/web-app"));
    assert_non_null(control_bed_get(&r.c, CHECKPOINTS "/theirs-app"));
    recommend_bed_done(&r);
}

/* Stopped while checkpoints cannot be read, at any moment: the end is told, and nothing is written
 * over them; started again it goes on with what they say. */
static void test_a_stop_ends_while_checkpoints_cannot_be_read(void **state)
{
    (void)state;
    static const td_duration moments[] = {TD_MILLISECOND, 61 * TD_SECOND, 10 * TD_MINUTE};
    for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
        struct recommend_bed r;
        recommend_bed_init(&r);
        recommend_bed_deploy(&r, "web", "500m,500000000", "");
        recommend_bed_vpa(&r, "web", "web", "");
        control_bed_run(&r.c, 5 * TD_MINUTE);
        recommend_bed_stop(&r);
        assert_non_null(control_bed_get(&r.c, CHECKPOINTS "/web-app"));
        recommend_bed_start(&r);
        control_bed_run(&r.c, TD_MINUTE - TD_MILLISECOND);
        struct td_json *before = control_bed_get(&r.c, CHECKPOINTS "/web-app");
        r.faults.api_error_share = 1;
        control_bed_run(&r.c, moments[i]);
        bool is_stopped = false;
        td_recommend_loop_stop(r.loop, recommend_bed_stopped, &is_stopped);
        control_bed_run(&r.c, TD_SECOND);
        assert_true(is_stopped);
        r.faults.api_error_share = 0;
        control_bed_run(&r.c, 5 * TD_MINUTE);
        struct td_json *after = control_bed_get(&r.c, CHECKPOINTS "/web-app");
        assert_true(td_json_equal(before, after));
        td_recommend_loop_start(r.loop);
        control_bed_run(&r.c, 3 * TD_MINUTE);
        after = control_bed_get(&r.c, CHECKPOINTS "/web-app");
        assert_false(td_json_equal(before, after));
        recommend_bed_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_use_becomes_a_recommendation_and_a_checkpoint),
        cmocka_unit_test(test_a_short_history_is_said_where_it_matters),
        cmocka_unit_test(test_a_restart_keeps_what_was_learnt),
        cmocka_unit_test(test_an_oom_is_written_at_once_and_outlives_a_crash),
        cmocka_unit_test(test_an_eviction_for_want_of_memory_outlives_a_pause),
        cmocka_unit_test(test_siblings_meet_between_two_passes),
        cmocka_unit_test(test_siblings_that_overlap_are_reported),
        cmocka_unit_test(test_a_pod_that_is_seen_before_its_owner_counts_later),
        cmocka_unit_test(test_pods_follow_a_workload_that_is_adopted),
        cmocka_unit_test(test_a_measurement_stays_with_the_vpa_of_its_time),
        cmocka_unit_test(test_annotations_of_others_stay),
        cmocka_unit_test(test_checkpoints_go_with_their_vpa_only),
        cmocka_unit_test(test_a_stop_ends_while_checkpoints_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
