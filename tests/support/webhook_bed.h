/*
 * The webhook on a local cluster on a virtual clock: no socket listens, the cluster calls it in
 * this process. What a test creates goes through admission as everywhere.
 */
#pragma once

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/metrics.h"
#include "control/admission/webhook.h"
#include "control/informers/informers.h"
#include "local/engine/faults.h"
#include "support/control_bed.h"

#define WEBHOOK_VPAS "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
#define WEBHOOK_PODS "/api/v1/namespaces/default/pods"
#define WEBHOOK_DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"
#define WEBHOOK_MUTATING_CONFIG                                                                    \
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/"                         \
    "tandem-outside-webhook-config"
#define WEBHOOK_VALIDATING_CONFIG                                                                  \
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"                       \
    "tandem-outside-webhook-config"

/* A webhook with what it looks through. */
struct webhook_side {
    struct td_informers *informers;
    struct td_metric_registry *registry;
    struct td_webhook *webhook;
    bool is_stopped;
    bool is_blind; /* its informers are not started */
};

struct webhook_bed {
    struct control_bed c;
    struct td_faults faults;
    struct webhook_side side;
};

static inline void webhook_bed_review(void *context, td_str review, struct td_buf *answer)
{
    td_webhook_review(context, review, answer);
}

static inline struct td_webhook_options webhook_bed_options(void)
{
    static const td_str exempt[] = {TD_STR_INIT("kube-system")};
    return (struct td_webhook_options){
        .control = {.gates = {.heterogeneous_workloads = true, .pod_level_resources = true},
                    .hvpa_gate = true,
                    .selection_strategy_gate = true,
                    .tolerance_gate = true,
                    .seed = 1},
        .is_by_url = true,
        .registers = true,
        .namespace = TD_STR("kube-system"),
        .service = TD_STR("vpa-webhook"),
        .secret = TD_STR("tandem-webhook-tls"),
        .timeout_seconds = 10,
        .exempt_namespaces = exempt,
        .exempt_count = 1,
        .lease_name = TD_STR("vpa-admission-controller"),
        .lease_interval = 10 * TD_SECOND,
        .probe_interval = 10 * TD_SECOND,
        .deadline = 2 * TD_SECOND,
    };
}

static inline void webhook_side_init(struct webhook_side *side, struct td_loop *loop,
                                     struct td_client *client, struct td_webhook_options options)
{
    *side = (struct webhook_side){.is_blind = side->is_blind};
    struct td_informers_options informers = {.loop = loop, .client = client, .seed = 1};
    for (size_t i = 0; i < TD_INFORMER_COUNT; i++) {
        informers.wants[i] = true;
    }
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_informers_new(&informers, &side->informers, &err), TD_OK);
    side->registry = td_metric_registry_new();
    options.control.loop = loop;
    options.control.client = client;
    options.control.informers = side->informers;
    options.control.registry = side->registry;
    if (td_webhook_new(&options, &side->webhook, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    if (!side->is_blind) {
        td_informers_start(side->informers);
    }
    td_webhook_start(side->webhook);
}

static inline void webhook_side_stopped(void *context)
{
    *(bool *)context = true;
}

static inline void webhook_side_free(struct webhook_side *side)
{
    td_webhook_free(side->webhook);
    td_informers_free(side->informers);
    td_metric_registry_free(side->registry);
}

static inline void webhook_bed_init_with(struct webhook_bed *h,
                                         const struct td_webhook_options *options)
{
    *h = (struct webhook_bed){.faults = {.are_webhooks_down = false}};
    const struct td_cluster_options cluster = {.seed = 1, .faults = &h->faults};
    control_bed_init_with(&h->c, &cluster);
    webhook_side_init(&h->side, h->c.bed.loop, h->c.client, *options);
    td_api_answer_reviews(h->c.bed.api, td_webhook_url(h->side.webhook), webhook_bed_review,
                          h->side.webhook);
    control_bed_run(&h->c, 5 * TD_SECOND);
}

static inline void webhook_bed_init(struct webhook_bed *h)
{
    const struct td_webhook_options options = webhook_bed_options();
    webhook_bed_init_with(h, &options);
}

static inline void webhook_bed_stop(struct webhook_bed *h)
{
    td_webhook_stop(h->side.webhook, webhook_side_stopped, &h->side.is_stopped);
    control_bed_run(&h->c, TD_SECOND);
    assert_true(h->side.is_stopped);
}

static inline void webhook_bed_done(struct webhook_bed *h)
{
    td_api_answer_reviews(h->c.bed.api, TD_STR_EMPTY, NULL, NULL);
    webhook_side_free(&h->side);
    control_bed_done(&h->c);
}

/* POST with any answer: its status, and the answer as a tree. Quotes may be written as '. */
static inline int webhook_bed_post(struct webhook_bed *h, const char *target, const char *text,
                                   struct td_json **ret)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    td_auto_buf body;
    td_buf_init(&body, (size_t)8 << 20);
    td_json_write(edit_bed_parse(&h->c.bed, text), &(struct td_json_format){.indent = 0}, &body);
    int status = bed_call(&h->c.bed, "POST", target, td_buf_str(&body).ptr, &answer);
    if (ret) {
        *ret = NULL;
        (void)td_json_parse(&h->c.bed.arena, td_buf_str(&answer.body),
                            &(struct td_json_options){.copy_strings = true}, ret, NULL);
    }
    return status;
}

static inline void webhook_bed_deploy(struct webhook_bed *h, const char *name, const char *labels,
                                      const char *spec)
{
    char text[4096];
    (void)snprintf(text, sizeof(text),
                   "{'metadata':{'name':'%s'},'spec':{'replicas':1,'selector':{'matchLabels':{"
                   "'app':'%s'}},'template':{'metadata':{'labels':{'app':'%s'%s}},'spec':{%s}}}}",
                   name, name, name, labels, spec);
    control_bed_create(&h->c, WEBHOOK_DEPLOYMENTS, text);
}

/* A VPA of a Deployment, with a status as the recommender writes it. */
static inline void webhook_bed_vpa(struct webhook_bed *h, const char *name, const char *target,
                                   const char *spec, const char *recommendation)
{
    char text[4096];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
                   "'metadata':{'name':'%s'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':"
                   "'Deployment','name':'%s'}%s}}",
                   name, target, spec);
    control_bed_create(&h->c, WEBHOOK_VPAS, text);
    char place[256];
    (void)snprintf(place, sizeof(place), WEBHOOK_VPAS "/%s/status", name);
    (void)snprintf(text, sizeof(text), "{'status':{'recommendation':{%s}}}", recommendation);
    assert_int_equal(control_bed_patch(&h->c, place, text), 200);
    control_bed_run(&h->c, TD_SECOND);
}

/* The first pod of an app, or NULL. */
static inline const struct td_json *webhook_bed_pod(struct webhook_bed *h, const char *app)
{
    char target[256];
    (void)snprintf(target, sizeof(target), WEBHOOK_PODS "?labelSelector=app%%3D%s", app);
    const struct td_json *items = td_json_get(control_bed_get(&h->c, target), TD_STR("items"));
    return td_json_first_child(items);
}

/* A text of a pod's first container, by path under resources ("requests.cpu"). */
static inline const char *webhook_bed_resource(struct webhook_bed *h, const struct td_json *pod,
                                               const char *path)
{
    const struct td_json *containers = td_json_get_path(pod, "spec.containers");
    if (!td_json_is(containers, TD_JSON_TYPE_ARRAY)) {
        return "";
    }
    const struct td_json *value =
        td_json_get_path(td_json_get(td_json_first_child(containers), TD_STR("resources")), path);
    return td_json_is(value, TD_JSON_TYPE_STRING)
               ? td_arena_copy_str(&h->c.bed.arena, value->text).ptr
               : "";
}

static inline const char *webhook_bed_annotation(struct webhook_bed *h, const struct td_json *pod,
                                                 const char *name)
{
    td_str value = td_json_get_str(td_json_get_path(pod, "metadata.annotations"), td_str_from(name),
                                   TD_STR_EMPTY);
    return td_arena_copy_str(&h->c.bed.arena, value).ptr;
}

/* Is a line in what the process counts? */
static inline bool webhook_side_counts(const struct webhook_side *side, const char *line)
{
    td_auto_buf text;
    td_buf_init(&text, (size_t)4 << 20);
    td_metric_registry_write(side->registry, &text);
    return strstr(td_buf_str(&text).ptr, line) != NULL;
}
