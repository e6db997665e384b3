/*
 * A bed for the Hvpa controller: a local cluster whose pods share a load, the recommender and, when
 * wanted, the horizontal controller beside it.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "control/horizontal/horizontal_loop.h"
#include "control/hvpa/hvpa_loop.h"
#include "control/informers/informers.h"
#include "control/recommender/recommend_loop.h"
#include "kube/client/events.h"
#include "kube/client/metrics_client.h"
#include "local/engine/demand.h"
#include "local/engine/faults.h"
#include "support/control_bed.h"

#define HVPAS "/apis/autoscaling.k8s.io/v1alpha1/namespaces/default/hvpas"
#define DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"
#define PODS "/api/v1/namespaces/default/pods"

struct hvpa_bed {
    struct control_bed c;
    struct td_faults faults;
    struct td_node_size node; /* when not the bed's */
    struct td_informers *informers;
    struct td_metrics_client *metrics_client;
    struct td_events *events;
    struct td_metric_registry *registry;
    struct td_recommend_loop *recommend;
    struct td_hvpa_loop *loop;
    struct td_horizontal_loop *horizontal; /* serves HPAs too, when there is one */
    bool has_horizontal;
    td_str (*get_webhook_problem)(void *context); /* for the loop, when there is one */
    void *webhook_context;
    int stopped;
    int replica_changes; /* as hvpa_bed_watch saw them */
    int size_changes;
    int replica_turns;
    int64_t replicas;
    int64_t size;
    int direction;
    int64_t most; /* total of requests */
};

static inline void hvpa_bed_start(struct hvpa_bed *h)
{
    struct td_informers_options informers = {
        .loop = h->c.bed.loop, .client = h->c.client, .seed = 1};
    for (size_t i = 0; i < TD_INFORMER_COUNT; i++) {
        informers.wants[i] = true;
    }
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_informers_new(&informers, &h->informers, &err), TD_OK);
    h->metrics_client = td_metrics_client_new(h->c.bed.loop, h->c.client, NULL, TD_MINUTE);
    const struct td_events_options events = {.loop = h->c.bed.loop,
                                             .client = h->c.client,
                                             .component = TD_STR("hvpa"),
                                             .host = TD_STR("bed")};
    h->events = td_events_new(&events);
    h->registry = td_metric_registry_new();
    const struct td_control control = {
        .loop = h->c.bed.loop,
        .client = h->c.client,
        .informers = h->informers,
        .metrics_client = h->metrics_client,
        .events = h->events,
        .registry = h->registry,
        .gates = {.heterogeneous_workloads = true, .pod_level_resources = true},
        .hvpa_gate = true,
    };
    const struct td_recommend_options recommend = {
        .control = control,
        .config = td_vertical_config_default(),
        .name = TD_STR("default"),
        .interval = TD_MINUTE,
        .checkpoints_gc_interval = 10 * TD_MINUTE,
        .checkpoints_timeout = TD_MINUTE,
        .writes_max = 10,
    };
    assert_int_equal(td_recommend_loop_new(&recommend, &h->recommend, &err), TD_OK);
    h->horizontal = NULL;
    if (h->has_horizontal) {
        const struct td_horizontal_options horizontal = {
            .control = control,
            .config = td_hpa_config_default(),
            .sync_period = 15 * TD_SECOND,
            .syncs_max = 5,
            .serves_builtin = true,
            .is_alone = true,
        };
        assert_int_equal(td_horizontal_loop_new(&horizontal, &h->horizontal, &err), TD_OK);
    }
    const struct td_hvpa_options options = {
        .control = control,
        .gather = h->horizontal,
        .sync_period = 15 * TD_SECOND,
        .recommend = h->recommend,
        .horizontal = td_hpa_config_default(),
        .get_webhook_problem = h->get_webhook_problem,
        .context = h->webhook_context,
    };
    assert_int_equal(td_hvpa_loop_new(&options, &h->loop, &err), TD_OK);
    td_informers_start(h->informers);
    td_recommend_loop_start(h->recommend);
    td_hvpa_loop_start(h->loop);
    if (h->horizontal) {
        td_horizontal_loop_start(h->horizontal);
    }
}

static inline void hvpa_bed_stopped(void *context)
{
    (*(int *)context)++;
}

static inline void hvpa_bed_stop(struct hvpa_bed *h)
{
    h->stopped = 0;
    td_hvpa_loop_stop(h->loop, hvpa_bed_stopped, &h->stopped);
    td_recommend_loop_stop(h->recommend, hvpa_bed_stopped, &h->stopped);
    if (h->horizontal) {
        td_horizontal_loop_stop(h->horizontal, hvpa_bed_stopped, &h->stopped);
    }
    control_bed_run(&h->c, TD_SECOND);
    assert_int_equal(h->stopped, h->horizontal ? 3 : 2);
    td_hvpa_loop_free(h->loop);
    td_horizontal_loop_free(h->horizontal);
    td_recommend_loop_free(h->recommend);
    td_metrics_client_free(h->metrics_client);
    td_informers_free(h->informers);
    td_events_free(h->events);
    td_metric_registry_free(h->registry);
}

/* The bed is zero but for what shall be otherwise. */
static inline void hvpa_bed_init(struct hvpa_bed *h, const struct td_demand *demands, size_t count)
{
    const struct td_cluster_options options = {.seed = 1,
                                               .faults = &h->faults,
                                               .demands = demands,
                                               .demand_count = count,
                                               .nodes = h->node.count > 0 ? &h->node : NULL,
                                               .node_size_count = h->node.count > 0 ? 1 : 0};
    control_bed_init_with(&h->c, &options);
    hvpa_bed_start(h);
}

static inline void hvpa_bed_done(struct hvpa_bed *h)
{
    hvpa_bed_stop(h);
    control_bed_done(&h->c);
}

static inline void hvpa_bed_deploy(struct hvpa_bed *h, int replicas, const char *resources)
{
    char text[2048];
    (void)snprintf(
        text, sizeof(text),
        "{'metadata':{'name':'web'},'spec':{'replicas':%d,'selector':{'matchLabels':{'app':'web'}},"
        "'template':{'metadata':{'labels':{'app':'web'}},'spec':{'containers':[{'name':'app',"
        "'image':'nginx','resources':{%s}}]}}}}",
        replicas, resources);
    control_bed_create(&h->c, DEPLOYMENTS, text);
}

#define CPU_50                                                                                     \
    "'hpaSpec':{'minReplicas':1,'maxReplicas':20,'metrics':[{'type':'Resource','resource':{"       \
    "'name':'cpu','target':{'type':'Utilization','averageUtilization':50}}}]}"
#define CPU_ONLY                                                                                   \
    "'vpaSpec':{'resourcePolicy':{'containerPolicies':[{'containerName':'*',"                      \
    "'controlledResources':['cpu'],'minAllowed':{'cpu':'100m'},'maxAllowed':{'cpu':'4'}}]}}"

static inline void hvpa_bed_hvpa(struct hvpa_bed *h, const char *name, const char *spec)
{
    char text[4096];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':"
                   "'%s'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':"
                   "'web'},%s}}",
                   name, spec);
    control_bed_create(&h->c, HVPAS, text);
}

static inline struct td_json *hvpa_bed_status(struct hvpa_bed *h, const char *name)
{
    char target[256];
    (void)snprintf(target, sizeof(target), HVPAS "/%s", name);
    struct td_json *hvpa = control_bed_get(&h->c, target);
    assert_non_null(hvpa);
    return td_json_get(hvpa, TD_STR("status"));
}

static inline int64_t hvpa_bed_replicas(struct hvpa_bed *h)
{
    const struct td_json *object = control_bed_get(&h->c, DEPLOYMENTS "/web");
    return td_json_get_int64(td_json_get(object, TD_STR("spec")), TD_STR("replicas"), -1);
}

/* The largest request of a resource among the pods, milli-cores or bytes. */
static inline int64_t hvpa_bed_size(struct hvpa_bed *h, const char *resource)
{
    const struct td_json *items = td_json_get(control_bed_get(&h->c, PODS), TD_STR("items"));
    int64_t most = 0;
    for (const struct td_json *pod = td_json_first_child(items); pod; pod = pod->next) {
        const struct td_json *containers = td_json_get_path(pod, "spec.containers");
        td_str text =
            td_json_get_str(td_json_get_path(td_json_first_child(containers), "resources.requests"),
                            td_str_from(resource), TD_STR("0"));
        struct td_quantity quantity;
        assert_int_equal(td_quantity_parse(&h->c.bed.arena, text, &quantity, NULL), TD_OK);
        int64_t amount = strcmp(resource, "cpu") == 0 ? td_quantity_milli(&quantity)
                                                      : td_quantity_value(&quantity);
        most = amount > most ? amount : most;
    }
    return most;
}

/* "True/Deciding"; empty: there is no such condition. */
static inline const char *hvpa_bed_condition(struct hvpa_bed *h, const char *name, const char *type)
{
    const struct td_json *list = td_json_get(hvpa_bed_status(h, name), TD_STR("conditions"));
    const struct td_json *c = td_json_first_child(list);
    for (; c; c = c->next) {
        if (td_str_equal(td_json_get_str(c, TD_STR("type"), TD_STR_EMPTY), td_str_from(type))) {
            return td_arena_format(&h->c.bed.arena, "%.*s/%.*s",
                                   TD_STR_ARG(td_json_get_str(c, TD_STR("status"), TD_STR_EMPTY)),
                                   TD_STR_ARG(td_json_get_str(c, TD_STR("reason"), TD_STR_EMPTY)))
                .ptr;
        }
    }
    return "";
}

/* A text inside the status; empty: it is not there. */
static inline const char *hvpa_bed_text(struct hvpa_bed *h, const char *name, const char *path)
{
    const struct td_json *node = td_json_get_path(hvpa_bed_status(h, name), path);
    return td_json_is(node, TD_JSON_TYPE_STRING)
               ? td_arena_copy_str(&h->c.bed.arena, node->text).ptr
               : "";
}

/* How many events of that reason there are about the object. */
static inline int hvpa_bed_events(struct hvpa_bed *h, const char *name, const char *reason)
{
    const struct td_json *items =
        td_json_get(control_bed_get(&h->c, "/api/v1/namespaces/default/events"), TD_STR("items"));
    int count = 0;
    for (const struct td_json *e = td_json_first_child(items); e; e = e->next) {
        const struct td_json *about = td_json_get(e, TD_STR("involvedObject"));
        count +=
            td_str_equal(td_json_get_str(e, TD_STR("reason"), TD_STR_EMPTY), td_str_from(reason)) &&
            td_str_equal(td_json_get_str(about, TD_STR("name"), TD_STR_EMPTY), td_str_from(name));
    }
    return count;
}

/* Looks every 15 s and counts what changes. */
static inline void hvpa_bed_watch(struct hvpa_bed *h, td_duration span)
{
    for (td_duration past = 0; past < span; past += 15 * TD_SECOND) {
        control_bed_run(&h->c, 15 * TD_SECOND);
        int64_t replicas = hvpa_bed_replicas(h);
        int64_t size = hvpa_bed_size(h, "cpu");
        int direction = replicas > h->replicas ? 1 : replicas < h->replicas ? -1 : 0;
        if (h->replicas > 0 && direction != 0) {
            h->replica_changes++;
            h->replica_turns += h->direction != 0 && h->direction != direction;
            h->direction = direction;
        }
        h->size_changes += h->size > 0 && size != h->size;
        h->replicas = replicas;
        h->size = size;
        h->most = replicas * size > h->most ? replicas * size : h->most;
    }
}

/* Five times the load, from half an hour on and for an hour. */
static const struct td_series_point hvpa_bed_spike[] = {{.at = 0, .value = 100},
                                                        {.at = 30 * TD_MINUTE, .value = 500},
                                                        {.at = 90 * TD_MINUTE, .value = 100}};

/* Requests that the pods share; at first one core of work. */
static inline struct td_demand hvpa_bed_demand(void)
{
    return (struct td_demand){
        .ns = TD_STR("default"),
        .kind = TD_STR("Deployment"),
        .name = TD_STR("web"),
        .container = TD_STR("app"),
        .seed = 1,
        .driver = TD_DEMAND_REQUESTS,
        .requests = {.shape = TD_SERIES_STEPS,
                     .low = 100,
                     .points = hvpa_bed_spike,
                     .point_count = sizeof(hvpa_bed_spike) / sizeof(hvpa_bed_spike[0])},
        .request_cpu_ms = 10,
        .idle_memory_bytes = 100 << 20,
        .warmup_factor = 1,
    };
}
