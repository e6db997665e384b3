/*
 * All controllers on a local cluster on a virtual clock, with a spy between the two that counts
 * what they do to pods, and that a test may use to change the cluster in the middle of a call.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "control/controllers.h"
#include "kube/client/transport.h"
#include "local/api/api.h"
#include "local/engine/faults.h"
#include "support/control_bed.h"

#define VPAS "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
#define HVPAS "/apis/autoscaling.k8s.io/v1alpha1/namespaces/default/hvpas"
#define PODS "/api/v1/namespaces/default/pods"
#define DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"
#define PDBS "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#define NAMES_MAX 16

struct never_bed;

struct never_spy {
    struct td_transport transport;
    struct td_transport_ops ops;
    struct td_transport *inner;
    struct never_bed *bed;
};

struct never_bed {
    struct control_bed c;
    struct td_faults faults;
    struct never_spy spy;
    struct td_controllers *all;
    bool has_webhook;
    size_t evictions; /* asked for */
    size_t deletions; /* of pods, not by eviction */
    size_t scalings;
    void (*before_eviction)(struct never_bed *n);
    void (*before_write)(struct never_bed *n, const struct td_call_request *request); /* or NULL */
    void (*configure)(struct td_controllers_options *options); /* before they start; or NULL */
};

static inline struct td_call *never_spy_start(struct td_transport *transport,
                                              const struct td_call_request *request,
                                              const struct td_call_events *events, void *context)
{
    struct never_spy *spy = (struct never_spy *)transport;
    struct never_bed *n = spy->bed;
    if (n->before_write && !td_str_equal(request->method, TD_STR("GET"))) {
        n->before_write(n, request);
    }
    bool is_pod = td_str_starts_with(request->path, TD_STR(PODS "/"));
    if (is_pod && memmem(request->path.ptr, request->path.len, "/eviction", 9)) {
        n->evictions++;
        if (n->before_eviction) {
            n->before_eviction(n);
        }
    } else if (is_pod && td_str_equal(request->method, TD_STR("DELETE"))) {
        n->deletions++;
    } else if (memmem(request->path.ptr, request->path.len, "/scale", 6) &&
               !td_str_equal(request->method, TD_STR("GET"))) {
        n->scalings++;
    }
    return spy->inner->ops->start(spy->inner, request, events, context);
}

static inline void never_spy_free(struct td_transport *transport)
{
    struct never_spy *spy = (struct never_spy *)transport;
    spy->inner->ops->free(spy->inner);
}

static inline void never_review(void *context, td_str review, struct td_buf *answer)
{
    td_webhook_review(context, review, answer);
}

/* The controllers, with a webhook in this process. */
static inline void never_start(struct never_bed *n)
{
    const struct td_transport_local_options local = {
        .api = n->c.bed.api,
        .loop = n->c.bed.loop,
        .user = TD_STR("kubernetes-admin"),
        .group = TD_STR("system:masters"),
        .user_agent = TD_STR("tandem"),
    };
    n->spy = (struct never_spy){.inner = td_transport_local_new(&local), .bed = n};
    n->spy.ops = *n->spy.inner->ops;
    n->spy.ops.start = never_spy_start;
    n->spy.ops.free = never_spy_free;
    n->spy.ops.forget_credentials = NULL;
    n->spy.transport.ops = &n->spy.ops;
    struct td_controllers_options options = td_controllers_options_default();
    options.loop = n->c.bed.loop;
    options.transport = &n->spy.transport;
    options.horizontal.serves_builtin = true;
    options.horizontal.is_alone = true;
    options.webhook.listen = NULL;
    options.webhook.is_by_url = true;
    if (n->configure) {
        n->configure(&options);
    }
    struct td_error err = TD_ERROR_INIT;
    if (td_controllers_new(&options, &n->all, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    struct td_webhook *webhook = td_controllers_webhook(n->all);
    if (options.has[TD_CONTROLLER_ADMISSION]) {
        assert_non_null(webhook);
        td_api_answer_reviews(n->c.bed.api, td_webhook_url(webhook), never_review, webhook);
    }
    td_controllers_start(n->all);
}

/* Without a word, as kill -9 does it. */
static inline void never_kill(struct never_bed *n)
{
    td_api_answer_reviews(n->c.bed.api, TD_STR_EMPTY, NULL, NULL);
    td_controllers_free(n->all);
    n->all = NULL;
}

static inline void never_init(struct never_bed *n)
{
    *n = (struct never_bed){.all = NULL};
    const struct td_cluster_options options = {.seed = 1, .faults = &n->faults};
    control_bed_init_with(&n->c, &options);
}

static inline void never_done(struct never_bed *n)
{
    if (n->all) {
        never_kill(n);
    }
    control_bed_done(&n->c);
}

static inline void never_deploy(struct never_bed *n, const char *name, int replicas)
{
    char text[1024];
    (void)snprintf(
        text, sizeof(text),
        "{'metadata':{'name':'%s'},'spec':{'replicas':%d,'selector':{'matchLabels':{'app':'%s'}},"
        "'template':{'metadata':{'labels':{'app':'%s'},'annotations':{'usage.tandem.dev/app':"
        "'400m,300Mi'}},'spec':{'containers':[{'name':'app','image':'nginx','resources':"
        "{'requests':{'cpu':'100m','memory':'100Mi'}}}]}}}}",
        name, replicas, name, name);
    control_bed_create(&n->c, DEPLOYMENTS, text);
}

/* A VPA of Deployment web; `rest` goes on with the spec. */
static inline void never_vpa(struct never_bed *n, const char *name, const char *rest)
{
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler','metadata'"
                   ":{'name':'%s'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':'Deployment',"
                   "'name':'web'},'updatePolicy':{'updateMode':'Recreate'}%s}}",
                   name, rest);
    control_bed_create(&n->c, VPAS, text);
}

/* Their pods are wrong from the first recommendation on. */
#define NEVER_AT_LEAST(cpu)                                                                        \
    ",'resourcePolicy':{'containerPolicies':[{'containerName':'*','minAllowed':{'cpu':'" cpu "'}}" \
    "]}"

struct never_pods {
    size_t count;
    size_t ready;
    char uids[NAMES_MAX][64];
    char cpu[NAMES_MAX][16];
};

static inline bool never_is_ready(const struct td_json *pod)
{
    const struct td_json *list = td_json_get_path(pod, "status.conditions");
    const struct td_json *c = td_json_first_child(list);
    for (; c; c = c->next) {
        if (td_str_equal(td_json_get_str(c, TD_STR("type"), TD_STR_EMPTY), TD_STR("Ready"))) {
            return td_str_equal(td_json_get_str(c, TD_STR("status"), TD_STR_EMPTY),
                                TD_STR("True")) &&
                   !td_json_get_path(pod, "metadata.deletionTimestamp");
        }
    }
    return false;
}

static inline struct never_pods never_pods(struct never_bed *n)
{
    struct never_pods pods = {.count = 0};
    const struct td_json *items =
        td_json_get(control_bed_get(&n->c, PODS "?labelSelector=app%3Dweb"), TD_STR("items"));
    for (const struct td_json *p = td_json_first_child(items); p && pods.count < NAMES_MAX;
         p = p->next) {
        const struct td_json *container = td_json_at(td_json_get_path(p, "spec.containers"), 0);
        td_str uid =
            td_json_get_str(td_json_get(p, TD_STR("metadata")), TD_STR("uid"), TD_STR_EMPTY);
        td_str cpu = td_json_get_str(td_json_get_path(container, "resources.requests"),
                                     TD_STR("cpu"), TD_STR_EMPTY);
        (void)snprintf(pods.uids[pods.count], sizeof(pods.uids[0]), "%.*s", TD_STR_ARG(uid));
        (void)snprintf(pods.cpu[pods.count], sizeof(pods.cpu[0]), "%.*s", TD_STR_ARG(cpu));
        pods.count++;
        pods.ready += never_is_ready(p);
    }
    return pods;
}

static inline bool never_same_pods(const struct never_pods *a, const struct never_pods *b)
{
    return a->count == b->count && memcmp(a->uids, b->uids, sizeof(a->uids)) == 0;
}

/* "status/reason: message" of a condition of an object; empty: there is none. */
static inline const char *never_condition(struct never_bed *n, const char *path, const char *type)
{
    const struct td_json *list =
        td_json_get_path(control_bed_get(&n->c, path), "status.conditions");
    const struct td_json *c = td_json_first_child(list);
    for (; c; c = c->next) {
        if (td_str_equal(td_json_get_str(c, TD_STR("type"), TD_STR_EMPTY), td_str_from(type))) {
            td_str status = td_json_get_str(c, TD_STR("status"), TD_STR_EMPTY);
            td_str reason = td_json_get_str(c, TD_STR("reason"), TD_STR_EMPTY);
            td_str message = td_json_get_str(c, TD_STR("message"), TD_STR_EMPTY);
            return td_arena_format(&n->c.bed.arena, "%.*s/%.*s: %.*s", TD_STR_ARG(status),
                                   TD_STR_ARG(reason), TD_STR_ARG(message))
                .ptr;
        }
    }
    return "";
}

static inline void never_assert_begins(const char *text, const char *with)
{
    if (strncmp(text, with, strlen(with)) != 0) {
        fail_msg("'%s' does not begin with '%s'", text, with);
    }
}

/* Is a line in what the process counts? */
static inline bool never_counts(struct never_bed *n, const char *line)
{
    td_auto_buf text;
    td_buf_init(&text, (size_t)4 << 20);
    td_controllers_write_metrics(n->all, &text);
    return strstr(td_buf_str(&text).ptr, line) != NULL;
}
