/*
 * The horizontal controller among others: controllers that serve the same HPA, objects that scale
 * the same target, writers that are faster, many HPAs, explanations, and leaders that change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/horizontal_bed.h"

static void horizontal_bed_rival(struct horizontal_bed *h, int replicas)
{
    char patch[256];
    (void)snprintf(patch, sizeof(patch),
                   "{'status':{'currentReplicas':%d,'desiredReplicas':%d,'conditions':[{'type':"
                   "'AbleToScale','status':'True','reason':'ReadyForNewScale',"
                   "'lastTransitionTime':'2023-11-14T22:13:20Z'}]}}",
                   replicas, replicas);
    assert_int_equal(
        control_bed_patch(&h->c, HPAS "/web/status?fieldManager=kube-controller-manager", patch),
        200);
}

static void horizontal_bed_careful(struct horizontal_bed *h)
{
    *h = (struct horizontal_bed){.is_careful = true};
    const struct td_cluster_options options = {.seed = 1};
    control_bed_init_with(&h->c, &options);
    horizontal_bed_start(h);
    horizontal_bed_deploy(h, "web", 2, "400m,10Mi");
    control_bed_run(&h->c, TD_MINUTE);
    horizontal_bed_hpa(h, HPAS, "web", "web", "'maxReplicas':4," CPU_50);
}

static void test_an_hpa_that_nobody_writes_is_served_after_a_while(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_careful(&h);
    control_bed_run(&h.c, 29 * TD_SECOND);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 2);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "web", "AbleToScale"), "");
    control_bed_run(&h.c, 2 * TD_SECOND);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 4);
    /* It is known as ours from now on. */
    horizontal_bed_stop(&h);
    horizontal_bed_start(&h);
    control_bed_run(&h.c, 2 * TD_SECOND);
    assert_true(
        horizontal_bed_tells(&h, "horizontal_pod_autoscaler_controller_reconciliations_total{"));
    horizontal_bed_done(&h);
}

static void test_another_controller_is_left_to_its_work(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_careful(&h);
    for (int i = 0; i < 8; i++) {
        horizontal_bed_rival(&h, 2 + i % 2);
        control_bed_run(&h.c, 15 * TD_SECOND);
    }
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 2);
    const char *event = horizontal_bed_event(&h, "web", "AnotherControllerActive");
    assert_non_null(event);
    assert_non_null(strstr(event, "'kube-controller-manager' reconciles this HPA"));
    /* It has nothing to write for a while: is it still there? It is, and wipes the claim away. */
    control_bed_run(&h.c, 30 * TD_SECOND);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "web", "AbleToScale"),
                        "True/TakingOver");
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 2);
    horizontal_bed_rival(&h, 2);
    control_bed_run(&h.c, 2 * TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 2);
    /* It was switched off: the next claim stands. */
    control_bed_run(&h.c, TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 4);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "web", "ScalingActive"),
                        "True/ValidMetricFound");
    horizontal_bed_done(&h);
}

static void test_a_target_that_others_scale_is_refused(void **state)
{
    (void)state;
    static const char *const hvpa =
        "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':'web'},"
        "'spec':{'mode':'HPAPreferred','targetRef':{'apiVersion':'apps/v1','kind':"
        "'Deployment','name':'web'},'hpaSpec':{'maxReplicas':4}}}";
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 2, "400m,10Mi");
    control_bed_run(&h.c, TD_MINUTE);
    horizontal_bed_hpa(&h, HPAS, "theirs", "web", "'minReplicas':2,'maxReplicas':2," CPU_50);
    horizontal_bed_hpa(&h, OWN_HPAS, "ours", "web", "'maxReplicas':4," CPU_50);
    control_bed_run(&h.c, TD_MINUTE);
    assert_string_equal(horizontal_bed_condition(&h, OWN_HPAS, "ours", "AbleToScale"),
                        "False/TargetConflict");
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "theirs", "ScalingActive"),
                        "True/ValidMetricFound");
    assert_string_equal(horizontal_bed_event(&h, "ours", "TargetConflict"),
                        "Deployment 'web' is also scaled by the autoscaling/v2 "
                        "HorizontalPodAutoscaler 'default/theirs'; delete one of them");
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 2);
    control_bed_create(&h.c, "/apis/autoscaling.k8s.io/v1alpha1/namespaces/default/hvpas", hvpa);
    assert_int_equal(control_bed_delete(&h.c, HPAS "/theirs"), 200);
    control_bed_run(&h.c, TD_MINUTE);
    assert_string_equal(horizontal_bed_condition(&h, OWN_HPAS, "ours", "AbleToScale"),
                        "False/TargetConflict");
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 2);
    assert_int_equal(
        control_bed_delete(&h.c, "/apis/autoscaling.k8s.io/v1alpha1/namespaces/default/hvpas/web"),
        200);
    control_bed_run(&h.c, TD_MINUTE);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 4);
    assert_string_equal(horizontal_bed_condition(&h, OWN_HPAS, "ours", "AbleToScale"),
                        "True/ReadyForNewScale");
    horizontal_bed_done(&h);
}

/* ---- Another writer is faster ---- */

/* The transport of the bed, but the first writes of scales name a version of long ago. */
struct late_transport {
    struct td_transport transport;
    struct td_transport *inner;
    int late; /* writes that come late yet */
    int puts;
};

static struct late_transport late;

static struct td_call *late_start(struct td_transport *transport,
                                  const struct td_call_request *request,
                                  const struct td_call_events *events, void *context)
{
    (void)transport;
    struct td_call_request changed = *request;
    char body[4096];
    bool is_put = td_str_equal(request->method, TD_STR("PUT")) &&
                  memmem(request->path.ptr, request->path.len, "/scale", 6);
    late.puts += is_put;
    if (is_put && late.late > 0) {
        late.late--;
        const char *key = "\"resourceVersion\":\"";
        assert_true(request->body.len < sizeof(body));
        (void)snprintf(body, sizeof(body), "%.*s", TD_STR_ARG(request->body));
        char *version = strstr(body, key);
        assert_non_null(version);
        version[strlen(key)] = '1';
        memmove(version + strlen(key) + 1, strchr(version + strlen(key), '"'),
                strlen(strchr(version + strlen(key), '"')) + 1);
        changed.body = td_str_from(body);
    }
    return late.inner->ops->start(late.inner, &changed, events, context);
}

static void late_cancel(struct td_call *call)
{
    late.inner->ops->cancel(call);
}

static void late_free(struct td_transport *transport)
{
    (void)transport;
    late.inner->ops->free(late.inner);
}

static const struct td_transport_ops late_ops = {
    .start = late_start, .cancel = late_cancel, .free = late_free};

static void test_a_conflict_is_tried_again(void **state)
{
    (void)state;
    static const struct {
        int late;
        int64_t replicas;
        int puts;
        const char *able;
    } rows[] = {
        {0, 4, 1, "True/SucceededRescale"},
        {4, 4, 5, "True/SucceededRescale"},
        {5, 2, 5, "False/FailedUpdateScale"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct horizontal_bed h = {.informers = NULL};
        const struct td_cluster_options options = {.seed = 1};
        control_bed_init_with(&h.c, &options);
        const struct td_transport_local_options local = {.api = h.c.bed.api,
                                                         .loop = h.c.bed.loop,
                                                         .user = TD_STR("kubernetes-admin"),
                                                         .group = TD_STR("system:masters"),
                                                         .user_agent = TD_STR("tandem")};
        late = (struct late_transport){.transport = {.ops = &late_ops},
                                       .inner = td_transport_local_new(&local),
                                       .late = rows[i].late};
        const struct td_client_options client = {
            .loop = h.c.bed.loop, .transport = &late.transport, .seed = 1};
        h.client = td_client_new(&client);
        horizontal_bed_start(&h);
        horizontal_bed_deploy(&h, "web", 2, "400m,10Mi");
        control_bed_run(&h.c, 6 * TD_MINUTE);
        horizontal_bed_hpa(&h, HPAS, "web", "web", "'maxReplicas':9," CPU_50);
        control_bed_run(&h.c, 5 * TD_SECOND);
        assert_int_equal(horizontal_bed_replicas(&h, "web"), rows[i].replicas);
        assert_int_equal(late.puts, rows[i].puts);
        assert_string_equal(horizontal_bed_condition(&h, HPAS, "web", "AbleToScale"), rows[i].able);
        horizontal_bed_stop(&h);
        td_client_free(h.client);
        control_bed_done(&h.c);
    }
}

/* ---- Our own writes, not seen yet ---- */

/* The transport of the bed, but answers to writes of a status speak of a version to come. */
struct early_call {
    const struct td_call_events *events;
    void *context;
    bool is_status;
};

static struct td_transport *early_inner;
static struct early_call early_calls[256];
static size_t early_count;

static void early_head(void *context, const struct td_call_head *head)
{
    const struct early_call *call = context;
    if (call->events->head) {
        call->events->head(call->context, head);
    }
}

static void early_body(void *context, td_str bytes)
{
    const struct early_call *call = context;
    const char *key = "\"resourceVersion\":\"";
    char text[8192];
    assert_true(!call->is_status || bytes.len < sizeof(text) - 8);
    if (call->is_status) {
        (void)snprintf(text, sizeof(text), "%.*s", TD_STR_ARG(bytes));
        char *version = strstr(text, key);
        if (version) {
            version += strlen(key);
            memmove(version + 6, version, strlen(version) + 1);
            memset(version, '9', 6);
            bytes = td_str_from(text);
        }
    }
    call->events->body(call->context, bytes);
}

static void early_end(void *context, int code, const struct td_error *err)
{
    const struct early_call *call = context;
    call->events->end(call->context, code, err);
}

static struct td_call *early_start(struct td_transport *transport,
                                   const struct td_call_request *request,
                                   const struct td_call_events *events, void *context)
{
    static const struct td_call_events own = {
        .head = early_head, .body = early_body, .end = early_end};
    (void)transport;
    assert_true(early_count < sizeof(early_calls) / sizeof(early_calls[0]));
    struct early_call *call = &early_calls[early_count++];
    *call = (struct early_call){
        .events = events,
        .context = context,
        .is_status = td_str_equal(request->method, TD_STR("PUT")) &&
                     memmem(request->path.ptr, request->path.len, "/status", 7),
    };
    return early_inner->ops->start(early_inner, request, &own, call);
}

static void early_cancel(struct td_call *call)
{
    early_inner->ops->cancel(call);
}

static void early_free(struct td_transport *transport)
{
    (void)transport;
    early_inner->ops->free(early_inner);
}

static void test_a_write_of_ours_must_be_seen_first(void **state)
{
    (void)state;
    static const struct td_transport_ops ops = {
        .start = early_start, .cancel = early_cancel, .free = early_free};
    static struct td_transport early = {.ops = &ops};
    struct horizontal_bed h = {.informers = NULL};
    const struct td_cluster_options options = {.seed = 1};
    control_bed_init_with(&h.c, &options);
    const struct td_transport_local_options local = {.api = h.c.bed.api,
                                                     .loop = h.c.bed.loop,
                                                     .user = TD_STR("kubernetes-admin"),
                                                     .group = TD_STR("system:masters"),
                                                     .user_agent = TD_STR("tandem")};
    early_inner = td_transport_local_new(&local);
    const struct td_client_options client = {.loop = h.c.bed.loop, .transport = &early, .seed = 1};
    h.client = td_client_new(&client);
    horizontal_bed_start(&h);
    horizontal_bed_hpa(&h, HPAS, "lost", "nobody", "'maxReplicas':9," CPU_50);
    control_bed_run(&h.c, TD_SECOND);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "lost", "AbleToScale"),
                        "False/FailedGetScale");
    control_bed_run(&h.c, TD_MINUTE);
    assert_true(horizontal_bed_tells(
        &h, "horizontal_pod_autoscaler_controller_stale_sync_skips_total{group=\"autoscaling\","
            "resource=\"horizontalpodautoscalers\"} 4\n"));
    assert_true(horizontal_bed_tells(
        &h, "horizontal_pod_autoscaler_controller_reconciliations_total{action=\"none\",error="
            "\"internal\"} 1\n"));
    horizontal_bed_stop(&h);
    td_client_free(h.client);
    control_bed_done(&h.c);
}

/* ---- Many ---- */

#define MANY 200

static void test_many_hpas_share_their_calls(void **state)
{
    (void)state;
    static const struct td_node_size nodes[] = {
        {.count = 3, .cpu_milli = 64000, .memory_bytes = INT64_C(256) << 30, .pods = 110}};
    struct horizontal_bed h = {.informers = NULL};
    const struct td_cluster_options options = {
        .seed = 1, .nodes = nodes, .node_size_count = 1, .faults = &h.faults};
    control_bed_init_with(&h.c, &options);
    horizontal_bed_start(&h);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "web-%d", i);
        horizontal_bed_deploy(&h, name, 1, "250m,10Mi");
        horizontal_bed_hpa(&h, i % 2 == 0 ? HPAS : OWN_HPAS, name, name,
                           "'maxReplicas':3,'metrics':[{'type':'Resource','resource':{'name':'cpu',"
                           "'target':{'type':'Utilization','averageUtilization':50}}},{'type':"
                           "'Resource','resource':{'name':'memory','target':{'type':"
                           "'AverageValue','averageValue':'10Mi'}}}]");
    }
    control_bed_run(&h.c, 5 * TD_MINUTE);
    uint64_t before = td_client_counts(h.c.client).calls;
    control_bed_run(&h.c, TD_MINUTE);
    uint64_t calls = td_client_counts(h.c.client).calls - before;
    /* Four syncs, each with one call for the metrics of all pods: their targets are watched. The
     * rest are watches that begin anew. */
    assert_in_range(calls, 4, 4 + 20);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "web-0", "ScalingActive"),
                        "True/ValidMetricFound");
    assert_true(horizontal_bed_tells(
        &h, "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers 200\n"));
    /* When the metrics are gone each is told so, and no target is scaled. */
    h.faults.is_metrics_gap = true;
    control_bed_run(&h.c, TD_MINUTE);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "web-0", "ScalingActive"),
                        "False/FailedGetResourceMetric");
    assert_string_equal(horizontal_bed_condition(&h, OWN_HPAS, "web-199", "ScalingActive"),
                        "False/FailedGetResourceMetric");
    assert_int_equal(horizontal_bed_replicas(&h, "web-199"), 1);
    h.faults.is_metrics_gap = false;
    control_bed_run(&h.c, TD_MINUTE);
    assert_string_equal(horizontal_bed_condition(&h, OWN_HPAS, "web-199", "ScalingActive"),
                        "True/ValidMetricFound");
    horizontal_bed_done(&h);
}

/* ---- Explaining ---- */

struct reported {
    int count;
    int code;
    int32_t desired[2];
    bool wants_rescale[2];
    char text[2][4096];
    char warning[512];
    bool is_over;
};

static void horizontal_bed_reported(void *context, const struct td_horizontal_account *account)
{
    struct reported *reported = context;
    int i = reported->count++;
    assert_true(i < 2);
    assert_false(reported->is_over);
    reported->code = account->code;
    reported->is_over = account->is_last;
    (void)snprintf(reported->warning, sizeof(reported->warning), "%.*s",
                   TD_STR_ARG(account->warning));
    if (account->code == TD_OK) {
        td_auto_buf text;
        td_buf_init(&text, sizeof(reported->text[0]) - 1);
        td_hpa_account_write(account->pass, account->selection, TD_HPA_ACCOUNT_TEXT, &text);
        (void)snprintf(reported->text[i], sizeof(reported->text[i]), "%.*s",
                       TD_STR_ARG(td_buf_str(&text)));
        reported->desired[i] = account->pass->desired;
        reported->wants_rescale[i] = account->pass->wants_rescale;
    }
}

static void horizontal_bed_explain(struct horizontal_bed *h, const char *name,
                                   struct reported *reported)
{
    *reported = (struct reported){.code = TD_OK};
    td_horizontal_explain(h->loop, TD_STR("default"), td_str_from(name), horizontal_bed_reported,
                          reported);
    control_bed_run(&h->c, TD_SECOND);
    assert_true(reported->is_over);
}

static void test_explaining_writes_nothing(void **state)
{
    (void)state;
    struct horizontal_bed h = {.is_passive = true};
    const struct td_cluster_options options = {.seed = 1};
    control_bed_init_with(&h.c, &options);
    horizontal_bed_start(&h);
    struct reported reported;
    horizontal_bed_deploy(&h, "web", 2, "400m,10Mi");
    horizontal_bed_deploy(&h, "other", 2, "100m,10Mi");
    control_bed_run(&h.c, 6 * TD_MINUTE);
    horizontal_bed_hpa(&h, HPAS, "web", "web", "'maxReplicas':9," CPU_50);
    horizontal_bed_hpa(&h, OWN_HPAS, "web", "other", "'maxReplicas':9," CPU_50);
    control_bed_run(&h.c, TD_SECOND);
    horizontal_bed_explain(&h, "web", &reported);
    assert_int_equal(reported.count, 2);     /* ours first */
    assert_false(reported.wants_rescale[0]); /* a start holds what is there */
    assert_true(reported.wants_rescale[1]);
    assert_int_equal(reported.desired[1], 4);
    assert_non_null(strstr(reported.text[1], "2 -> 4 replicas"));
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 2);
    assert_string_equal(horizontal_bed_condition(&h, HPAS, "web", "AbleToScale"), "");
    horizontal_bed_hpa(&h, HPAS, "more", "web", "'maxReplicas':9," CPU_50);
    assert_int_equal(control_bed_patch(&h.c,
                                       HPAS "/more/status?fieldManager=kube-controller-manager",
                                       "{'status':{'currentReplicas':2,'desiredReplicas':2}}"),
                     200);
    control_bed_run(&h.c, TD_SECOND);
    horizontal_bed_explain(&h, "more", &reported);
    assert_int_equal(reported.count, 1);
    assert_non_null(
        strstr(reported.text[0], "controlled by multiple HPAs: [default/more default/web]"));
    assert_non_null(strstr(reported.warning, "kube-controller-manager"));
    horizontal_bed_explain(&h, "nobody", &reported);
    assert_int_equal(reported.code, TD_NOT_FOUND);
    horizontal_bed_done(&h);
}

/* A controller that is stopped in the middle writes nothing more, and goes on when started. */
static void test_stopping_and_starting_again(void **state)
{
    (void)state;
    struct horizontal_bed h;
    horizontal_bed_init(&h);
    horizontal_bed_deploy(&h, "web", 2, "400m,10Mi");
    control_bed_run(&h.c, 6 * TD_MINUTE);
    h.is_stopped = false;
    horizontal_bed_hpa(&h, HPAS, "web", "web", "'maxReplicas':4," CPU_50);
    td_horizontal_loop_stop(h.loop, horizontal_bed_stopped, &h.is_stopped);
    control_bed_run(&h.c, TD_MINUTE);
    assert_true(h.is_stopped);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 2);
    td_horizontal_loop_start(h.loop);
    control_bed_run(&h.c, TD_SECOND);
    assert_int_equal(horizontal_bed_replicas(&h, "web"), 4);
    horizontal_bed_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_hpa_that_nobody_writes_is_served_after_a_while),
        cmocka_unit_test(test_another_controller_is_left_to_its_work),
        cmocka_unit_test(test_a_target_that_others_scale_is_refused),
        cmocka_unit_test(test_a_conflict_is_tried_again),
        cmocka_unit_test(test_a_write_of_ours_must_be_seen_first),
        cmocka_unit_test(test_many_hpas_share_their_calls),
        cmocka_unit_test(test_explaining_writes_nothing),
        cmocka_unit_test(test_stopping_and_starting_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
