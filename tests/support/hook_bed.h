/*
 * The webhook on a local cluster on a virtual clock: nobody listens, the cluster calls it in this
 * process. What a test creates goes through admission as everywhere.
 */
#pragma once

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "control/admission/webhook.h"
#include "control/sight.h"
#include "control/tally.h"
#include "local/engine/faults.h"
#include "support/control_bed.h"

#define HOOK_VPAS "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
#define HOOK_PODS "/api/v1/namespaces/default/pods"
#define HOOK_DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"
#define HOOK_MUTATING_CONFIG                                                                       \
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/vpa-webhook-config"
#define HOOK_VALIDATING_CONFIG                                                                     \
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/tandem-webhook-config"

/* A webhook with what it looks through. */
struct hook_side {
    struct td_sight *sight;
    struct td_tally *tally;
    struct td_hook *hook;
    bool is_stopped;
    bool is_blind; /* its informers are not started */
};

struct hook_bed {
    struct control_bed c;
    struct td_faults faults;
    struct hook_side side;
};

static inline void hook_bed_review(void *context, td_str review, struct td_buf *answer)
{
    td_hook_review(context, review, answer);
}

static inline struct td_hook_options hook_bed_options(void)
{
    static const td_str exempt[] = {TD_STR_INIT("kube-system")};
    return (struct td_hook_options){
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

static inline void hook_side_init(struct hook_side *side, struct td_loop *loop,
                                  struct td_client *client, struct td_hook_options options)
{
    *side = (struct hook_side){.is_blind = side->is_blind};
    struct td_sight_options sight = {.loop = loop, .client = client, .seed = 1};
    for (size_t i = 0; i < TD_SIGHT_COUNT; i++) {
        sight.wants[i] = true;
    }
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_sight_new(&sight, &side->sight, &err), TD_OK);
    side->tally = td_tally_new();
    options.control.loop = loop;
    options.control.client = client;
    options.control.sight = side->sight;
    options.control.tally = side->tally;
    if (td_hook_new(&options, &side->hook, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    if (!side->is_blind) {
        td_sight_start(side->sight);
    }
    td_hook_start(side->hook);
}

static inline void hook_side_stopped(void *context)
{
    *(bool *)context = true;
}

static inline void hook_side_free(struct hook_side *side)
{
    td_hook_free(side->hook);
    td_sight_free(side->sight);
    td_tally_free(side->tally);
}

static inline void hook_bed_init_with(struct hook_bed *h, const struct td_hook_options *options)
{
    *h = (struct hook_bed){.faults = {.are_webhooks_down = false}};
    const struct td_cluster_options cluster = {.seed = 1, .faults = &h->faults};
    control_bed_init_with(&h->c, &cluster);
    hook_side_init(&h->side, h->c.bed.loop, h->c.client, *options);
    td_api_answer_reviews(h->c.bed.api, td_hook_url(h->side.hook), hook_bed_review, h->side.hook);
    control_bed_run(&h->c, 5 * TD_SECOND);
}

static inline void hook_bed_init(struct hook_bed *h)
{
    const struct td_hook_options options = hook_bed_options();
    hook_bed_init_with(h, &options);
}

static inline void hook_bed_stop(struct hook_bed *h)
{
    td_hook_stop(h->side.hook, hook_side_stopped, &h->side.is_stopped);
    control_bed_run(&h->c, TD_SECOND);
    assert_true(h->side.is_stopped);
}

static inline void hook_bed_done(struct hook_bed *h)
{
    td_api_answer_reviews(h->c.bed.api, TD_STR_EMPTY, NULL, NULL);
    hook_side_free(&h->side);
    control_bed_done(&h->c);
}

/* POST with any answer: its status, and the answer as a tree. Quotes may be written as '. */
static inline int hook_bed_post(struct hook_bed *h, const char *target, const char *text,
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

static inline void hook_bed_deploy(struct hook_bed *h, const char *name, const char *labels,
                                   const char *spec)
{
    char text[4096];
    (void)snprintf(text, sizeof(text),
                   "{'metadata':{'name':'%s'},'spec':{'replicas':1,'selector':{'matchLabels':{"
                   "'app':'%s'}},'template':{'metadata':{'labels':{'app':'%s'%s}},'spec':{%s}}}}",
                   name, name, name, labels, spec);
    control_bed_create(&h->c, HOOK_DEPLOYMENTS, text);
}

/* A VPA of a Deployment, with a status as the recommender writes it. */
static inline void hook_bed_vpa(struct hook_bed *h, const char *name, const char *target,
                                const char *spec, const char *recommendation)
{
    char text[4096];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
                   "'metadata':{'name':'%s'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':"
                   "'Deployment','name':'%s'}%s}}",
                   name, target, spec);
    control_bed_create(&h->c, HOOK_VPAS, text);
    char place[256];
    (void)snprintf(place, sizeof(place), HOOK_VPAS "/%s/status", name);
    (void)snprintf(text, sizeof(text), "{'status':{'recommendation':{%s}}}", recommendation);
    assert_int_equal(control_bed_patch(&h->c, place, text), 200);
    control_bed_run(&h->c, TD_SECOND);
}

/* The first pod of an app, or NULL. */
static inline const struct td_json *hook_bed_pod(struct hook_bed *h, const char *app)
{
    char target[256];
    (void)snprintf(target, sizeof(target), HOOK_PODS "?labelSelector=app%%3D%s", app);
    const struct td_json *items = td_json_get(control_bed_get(&h->c, target), TD_STR("items"));
    return td_json_first_child(items);
}

/* A text of a pod's first container, by path under resources ("requests.cpu"). */
static inline const char *hook_bed_resource(struct hook_bed *h, const struct td_json *pod,
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

static inline const char *hook_bed_annotation(struct hook_bed *h, const struct td_json *pod,
                                              const char *name)
{
    td_str value = td_json_get_str(td_json_get_path(pod, "metadata.annotations"), td_str_from(name),
                                   TD_STR_EMPTY);
    return td_arena_copy_str(&h->c.bed.arena, value).ptr;
}

/* Is a line in what the process counts? */
static inline bool hook_side_counts(const struct hook_side *side, const char *line)
{
    td_auto_buf text;
    td_buf_init(&text, (size_t)4 << 20);
    td_tally_write(side->tally, &text);
    return strstr(td_buf_str(&text).ptr, line) != NULL;
}
