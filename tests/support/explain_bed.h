/*
 * A bed for tests of explain and recommend: a local cluster, and short words for looking at it, as
 * any user and with kinds missing.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/os/table.h"
#include "control/inspect/explain.h"
#include "control/inspect/recommend_once.h"
#include "control/inspect/snapshot.h"
#include "support/control_bed.h"

#define NAMESPACE "/namespaces/default/"
#define VPAS "/apis/autoscaling.k8s.io/v1" NAMESPACE "verticalpodautoscalers"
#define HVPAS "/apis/autoscaling.k8s.io/v1alpha1" NAMESPACE "hvpas"
#define HPAS "/apis/autoscaling/v2" NAMESPACE "horizontalpodautoscalers"
#define DEPLOYMENTS "/apis/apps/v1" NAMESPACE "deployments"

/* A transport in front of the local one: some paths lead nowhere. */
struct absent_transport {
    struct td_transport transport;
    struct td_transport *inner;
    const char *absent; /* "/apis/autoscaling.k8s.io/" */
};

struct explain_bed {
    struct control_bed c;
    struct absent_transport absent; /* used when its path is set */
    const char *user;               /* NULL: one who may do anything */
    const char *namespace;          /* the only one looked at; NULL: all */
    const char *gates;              /* NULL: the defaults */
    struct td_error failure;        /* of the look */
    struct td_snapshot *snapshot;
    bool is_seen;
    int code; /* of the last answer; 1: none yet */
    struct td_buf text;
    struct td_json *json;
    td_str yaml;                   /* of right sizes */
    struct td_right_limits limits; /* likewise */
};

static inline void explain_bed_init(struct explain_bed *e)
{
    *e = (struct explain_bed){.code = 1, .limits = td_right_limits_default()};
    control_bed_init(&e->c);
    td_buf_init(&e->text, (size_t)1 << 20);
}

static inline void explain_bed_done(struct explain_bed *e)
{
    td_buf_done(&e->text);
    control_bed_done(&e->c);
}

static inline void explain_bed_deploy(struct explain_bed *e, const char *name, const char *labels)
{
    char text[2048];
    (void)snprintf(
        text, sizeof(text),
        "{'metadata':{'name':'%s'},'spec':{'replicas':2,'selector':{'matchLabels':{'app':'%s'}},"
        "'template':{'metadata':{'labels':{'app':'%s'%s},'annotations':{'usage.tandem.dev/app':"
        "'500m,500000000'}},'spec':{'containers':[{'name':'app','image':'nginx','resources':"
        "{'requests':{'cpu':'1','memory':'1Gi'}}}]}}}}",
        name, name, name, labels);
    control_bed_create(&e->c, DEPLOYMENTS, text);
}

static inline void explain_bed_vpa(struct explain_bed *e, const char *name, const char *target,
                                   const char *spec)
{
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
                   "'metadata':{'name':'%s'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':"
                   "'Deployment','name':'%s'}%s}}",
                   name, target, spec);
    control_bed_create(&e->c, VPAS, text);
}

static inline void explain_bed_seen(void *context, int code, const struct td_error *err)
{
    struct explain_bed *e = context;
    e->failure = *err;
    e->failure.code = code;
    e->is_seen = true;
}

static inline struct td_call *absent_start(struct td_transport *transport,
                                           const struct td_call_request *request,
                                           const struct td_call_events *events, void *context)
{
    struct absent_transport *absent = (struct absent_transport *)(void *)transport;
    struct td_call_request sent = *request;
    if (td_str_starts_with(sent.path, td_str_from(absent->absent))) {
        sent.path = TD_STR("/apis/nobody.example/v1/nothing");
    }
    return absent->inner->ops->start(absent->inner, &sent, events, context);
}

static inline void absent_free(struct td_transport *transport)
{
    struct absent_transport *absent = (struct absent_transport *)(void *)transport;
    absent->inner->ops->free(absent->inner);
}

static inline struct td_transport *explain_bed_transport(struct explain_bed *e)
{
    static struct td_transport_ops ops;
    const struct td_transport_local_options local = {
        .api = e->c.bed.api,
        .loop = e->c.bed.loop,
        .user = e->user ? td_str_from(e->user) : TD_STR("kubernetes-admin"),
        .group = e->user ? TD_STR("developers") : TD_STR("system:masters"),
        .user_agent = TD_STR("tandem"),
    };
    struct td_transport *inner = td_transport_local_new(&local);
    if (!e->absent.absent) {
        return inner;
    }
    ops = *inner->ops;
    ops.start = absent_start;
    ops.free = absent_free;
    ops.forget_credentials = NULL;
    e->absent.transport.ops = &ops;
    e->absent.inner = inner;
    return &e->absent.transport;
}

/* False: the cluster cannot be seen, for the reasons in e->failure. */
static inline bool explain_bed_try(struct explain_bed *e, const bool needs[TD_INFORMER_COUNT])
{
    struct td_snapshot_options options = {.loop = e->c.bed.loop,
                                          .transport = explain_bed_transport(e),
                                          .namespace = td_str_from(e->namespace),
                                          .feature_gates = td_str_from(e->gates)};
    struct td_error err = TD_ERROR_INIT;
    if (needs) {
        memcpy(options.needs, needs, sizeof(options.needs));
    }
    e->is_seen = false;
    e->code = 1;
    td_buf_reset(&e->text);
    assert_int_equal(td_snapshot_new(&options, &e->snapshot, &err), TD_OK);
    td_snapshot_start(e->snapshot, explain_bed_seen, e);
    for (int i = 0; i < 100 && !e->is_seen; i++) {
        control_bed_run(&e->c, 10 * TD_MILLISECOND);
    }
    assert_true(e->is_seen);
    return e->failure.code == TD_OK;
}

static inline void explain_bed_look(struct explain_bed *e, const bool needs[TD_INFORMER_COUNT])
{
    if (!explain_bed_try(e, needs)) {
        fail_msg("%s", e->failure.message);
    }
}

static inline void explain_bed_reported(void *context, const struct td_explanation *explanation)
{
    struct explain_bed *e = context;
    assert_int_equal(e->code, 1);
    e->code = explanation->code;
    e->json = NULL;
    (void)td_buf_append(&e->text, explanation->code == TD_OK
                                      ? explanation->text
                                      : td_str_from(explanation->err.message));
    if (explanation->json) {
        e->json = td_json_copy(&e->c.bed.arena, explanation->json, true);
    }
}

/* The text, or the message of a failure. */
static inline const char *explain_bed_ask(struct explain_bed *e, const char *kind, const char *name)
{
    struct td_explain_subject subject = {.namespace = TD_STR("default"), .name = td_str_from(name)};
    assert_int_equal(td_explain_parse_kind(td_str_from(kind), &subject, NULL), TD_OK);
    bool needs[TD_INFORMER_COUNT];
    td_explain_needs(&subject, needs);
    explain_bed_look(e, needs);
    struct td_explain *explain = td_explain_start(e->snapshot, &subject, explain_bed_reported, e);
    for (int i = 0; i < 500 && e->code == 1; i++) {
        control_bed_run(&e->c, 10 * TD_MILLISECOND);
    }
    assert_int_not_equal(e->code, 1);
    td_explain_free(explain);
    td_snapshot_free(e->snapshot);
    return td_buf_str(&e->text).ptr;
}

static inline void explain_expect(const char *text, const char *part)
{
    if (!strstr(text, part)) {
        fail_msg("'%s' is not in:\n%s", part, text);
    }
}

static inline void sizes_reported(void *context, const struct td_right_sizes *sizes)
{
    struct explain_bed *e = context;
    assert_int_equal(e->code, 1);
    e->code = sizes->code;
    if (sizes->code != TD_OK) {
        (void)td_buf_append(&e->text, td_str_from(sizes->err.message));
        return;
    }
    td_auto_buf cells = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    td_right_sizes_write(sizes, &cells);
    td_table_write(td_buf_str(&cells), &(struct td_table_options){.has_utf8 = true}, &e->text);
    td_auto_buf yaml = td_buf_capped(1 << 20);
    td_right_sizes_yaml(sizes, &yaml);
    e->yaml = td_arena_copy_str(&e->c.bed.arena, td_buf_str(&yaml));
}

static inline const char *sizes_ask(struct explain_bed *e, const char *namespace)
{
    explain_bed_look(e, NULL);
    struct td_recommend_once *once =
        td_recommend_once_start(e->snapshot, td_str_from(namespace), &e->limits, sizes_reported, e);
    for (int i = 0; i < 500 && e->code == 1; i++) {
        control_bed_run(&e->c, 10 * TD_MILLISECOND);
    }
    td_recommend_once_free(once);
    td_snapshot_free(e->snapshot);
    return td_buf_str(&e->text).ptr;
}
