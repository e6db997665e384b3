/*
 * A bed for tests of the horizontal controller: a local cluster with the controller on it, and
 * short words for Deployments, HPAs, conditions, events and counts.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "control/horizontal/horizontal_loop.h"
#include "control/informers/informers.h"
#include "kube/client/events.h"
#include "kube/client/metrics_client.h"
#include "local/engine/faults.h"
#include "support/control_bed.h"

#define HPAS "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
#define OWN_HPAS "/apis/autoscaling.tandem.dev/v2/namespaces/default/horizontalpodautoscalers"
#define DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"
#define PODS "/api/v1/namespaces/default/pods"

struct horizontal_bed {
    struct control_bed c;
    struct td_faults faults;
    struct td_informers *informers;
    struct td_metrics_client *metrics_client;
    struct td_events *events;
    struct td_metric_registry *registry;
    struct td_horizontal_loop *loop;
    bool is_careful; /* other controllers may exist */
    bool is_own_only;
    bool is_passive;          /* not started */
    struct td_client *client; /* of the controller; NULL: the bed's */
    bool is_stopped;
};

static inline void horizontal_bed_start(struct horizontal_bed *h)
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
                                             .component = TD_STR("horizontal-pod-autoscaler"),
                                             .host = TD_STR("bed")};
    h->events = td_events_new(&events);
    h->registry = td_metric_registry_new();
    const struct td_horizontal_options options = {
        .control = {.loop = h->c.bed.loop,
                    .client = h->client ? h->client : h->c.client,
                    .informers = h->informers,
                    .metrics_client = h->metrics_client,
                    .events = h->events,
                    .registry = h->registry,
                    .hvpa_gate = true,
                    .selection_strategy_gate = true},
        .config = td_hpa_config_default(),
        .sync_period = 15 * TD_SECOND,
        .syncs_max = 5,
        .serves_builtin = !h->is_own_only,
        .is_alone = !h->is_careful,
        .strategy = {.is_gate_on = true, .primary_key = TD_HPA_STRATEGY_ANNOTATION},
        .owner_ttl = TD_OWNER_TTL_DEFAULT,
    };
    assert_int_equal(td_horizontal_loop_new(&options, &h->loop, &err), TD_OK);
    td_informers_start(h->informers);
    if (!h->is_passive) {
        td_horizontal_loop_start(h->loop);
    }
}

static inline void horizontal_bed_stopped(void *context)
{
    *(bool *)context = true;
}

static inline void horizontal_bed_stop(struct horizontal_bed *h)
{
    h->is_stopped = false;
    td_horizontal_loop_stop(h->loop, horizontal_bed_stopped, &h->is_stopped);
    control_bed_run(&h->c, TD_SECOND);
    assert_true(h->is_stopped);
    td_horizontal_loop_free(h->loop);
    td_metrics_client_free(h->metrics_client);
    td_informers_free(h->informers);
    td_events_free(h->events);
    td_metric_registry_free(h->registry);
}

static inline void horizontal_bed_init(struct horizontal_bed *h)
{
    *h = (struct horizontal_bed){.informers = NULL};
    const struct td_cluster_options options = {.seed = 1, .faults = &h->faults};
    control_bed_init_with(&h->c, &options);
    horizontal_bed_start(h);
}

static inline void horizontal_bed_done(struct horizontal_bed *h)
{
    horizontal_bed_stop(h);
    control_bed_done(&h->c);
}

/* Pods of the Deployment use so much of 500m. */
static inline void horizontal_bed_deploy(struct horizontal_bed *h, const char *name, int replicas,
                                         const char *use)
{
    char text[2048];
    (void)snprintf(
        text, sizeof(text),
        "{'metadata':{'name':'%s'},'spec':{'replicas':%d,'selector':{'matchLabels':{'app':'%s'}},"
        "'template':{'metadata':{'labels':{'app':'%s'},'annotations':{'usage.tandem.dev/app':"
        "'%s'}},'spec':{'containers':[{'name':'app','image':'nginx','resources':{'requests':{"
        "'cpu':'500m','memory':'100Mi'}}}]}}}}",
        name, replicas, name, name, use);
    control_bed_create(&h->c, DEPLOYMENTS, text);
}

static inline void horizontal_bed_hpa(struct horizontal_bed *h, const char *collection,
                                      const char *name, const char *target, const char *rest)
{
    char text[2048];
    bool is_own = strcmp(collection, OWN_HPAS) == 0;
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'%s','kind':'HorizontalPodAutoscaler','metadata':{'name':'%s'},"
                   "'spec':{'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':"
                   "'%s'},%s}}",
                   is_own ? "autoscaling.tandem.dev/v2" : "autoscaling/v2", name, target, rest);
    control_bed_create(&h->c, collection, text);
}

#define CPU_50                                                                                     \
    "'metrics':[{'type':'Resource','resource':{'name':'cpu','target':{'type':'Utilization',"       \
    "'averageUtilization':50}}}]"

static inline int64_t horizontal_bed_replicas(struct horizontal_bed *h, const char *name)
{
    char target[256];
    (void)snprintf(target, sizeof(target), DEPLOYMENTS "/%s", name);
    const struct td_json *object = control_bed_get(&h->c, target);
    assert_non_null(object);
    return td_json_get_int64(td_json_get(object, TD_STR("spec")), TD_STR("replicas"), -1);
}

/* "True/ValidMetricFound", "" when there is no such condition. */
static inline const char *horizontal_bed_condition(struct horizontal_bed *h, const char *collection,
                                                   const char *name, const char *type)
{
    char target[256];
    (void)snprintf(target, sizeof(target), "%s/%s", collection, name);
    const struct td_json *list =
        td_json_get_path(control_bed_get(&h->c, target), "status.conditions");
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

/* The message of the first event with the reason; NULL: there is none. */
static inline const char *horizontal_bed_event(struct horizontal_bed *h, const char *name,
                                               const char *reason)
{
    const struct td_json *items =
        td_json_get(control_bed_get(&h->c, "/api/v1/namespaces/default/events"), TD_STR("items"));
    for (const struct td_json *e = td_json_first_child(items); e; e = e->next) {
        const struct td_json *about = td_json_get(e, TD_STR("involvedObject"));
        if (td_str_equal(td_json_get_str(e, TD_STR("reason"), TD_STR_EMPTY), td_str_from(reason)) &&
            td_str_equal(td_json_get_str(about, TD_STR("name"), TD_STR_EMPTY), td_str_from(name))) {
            return td_arena_copy_str(&h->c.bed.arena,
                                     td_json_get_str(e, TD_STR("message"), TD_STR_EMPTY))
                .ptr;
        }
    }
    return NULL;
}

/* Every pod with the label gets an annotation. */
static inline void horizontal_bed_annotate(struct horizontal_bed *h, const char *label,
                                           const char *key, const char *value)
{
    char target[256];
    char patch[256];
    (void)snprintf(target, sizeof(target), PODS "?labelSelector=%s", label);
    const struct td_json *items = td_json_get(control_bed_get(&h->c, target), TD_STR("items"));
    (void)snprintf(patch, sizeof(patch), "{'metadata':{'annotations':{'%s':'%s'}}}", key, value);
    for (const struct td_json *pod = td_json_first_child(items); pod; pod = pod->next) {
        td_str name =
            td_json_get_str(td_json_get(pod, TD_STR("metadata")), TD_STR("name"), TD_STR_EMPTY);
        (void)snprintf(target, sizeof(target), PODS "/%.*s", TD_STR_ARG(name));
        assert_int_equal(control_bed_patch(&h->c, target, patch), 200);
    }
}

static inline bool horizontal_bed_tells(struct horizontal_bed *h, const char *line)
{
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_metric_registry_write(h->registry, &text);
    return strstr(td_buf_str(&text).ptr, line);
}
