/*
 * Startup boosts on a local cluster: given by the webhook, taken back in place when the pod has
 * been Ready for long enough, whatever the VPA's mode, and tried again where that cannot be done.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/updater/update_loop.h"
#include "kube/client/events.h"
#include "support/webhook_bed.h"

#define TARGET                                                                                     \
    "'containerRecommendations':[{'containerName':'app','target':{'cpu':'250m','memory':'300Mi'}," \
    "'lowerBound':{'cpu':'250m','memory':'300Mi'},'upperBound':{'cpu':'250m','memory':'300Mi'}}]"
#define SMALL                                                                                      \
    "'containers':[{'name':'app','image':'nginx','resources':{'requests':{'cpu':'100m','memory':"  \
    "'100Mi'}}}]"
#define BOOST(seconds)                                                                             \
    ",'startupBoost':{'cpu':{'type':'Factor','factor':3,'durationSeconds':" #seconds "}}"
#define MODE(mode) ",'updatePolicy':{'updateMode':'" mode "'}"
#define MARK "vpaCpuStartupBoost/app"

/* An updater with what it looks through. */
struct boost_side {
    struct td_informers *informers;
    struct td_metric_registry *registry;
    struct td_events *events;
    struct td_update_loop *update;
    int stopped;
};

/* In front of the updater's transport: which calls it made, in their order. */
struct boost_calls {
    struct td_transport transport;
    struct td_transport *inner;
    char order[64]; /* R: a resize, A: annotations */
};

struct boost_bed {
    struct webhook_bed h;
    struct boost_side side;
    struct boost_calls calls;
    struct td_client *client; /* of the updater */
    struct td_updater_config config;
    size_t syncs;
    bool is_gate_off;
};

static struct td_call *boost_calls_start(struct td_transport *transport,
                                         const struct td_call_request *request,
                                         const struct td_call_events *events, void *context)
{
    struct boost_calls *calls = (struct boost_calls *)(void *)transport;
    size_t len = strlen(calls->order);
    if (td_str_equal(request->method, TD_STR("PATCH")) && len + 1 < sizeof(calls->order)) {
        calls->order[len] = td_str_ends_with(request->path, TD_STR("/resize")) ? 'R' : 'A';
    }
    return calls->inner->ops->start(calls->inner, request, events, context);
}

static void boost_calls_free(struct td_transport *transport)
{
    struct boost_calls *calls = (struct boost_calls *)(void *)transport;
    calls->inner->ops->free(calls->inner);
}

static struct td_client *boost_client(struct boost_bed *b)
{
    static struct td_transport_ops ops;
    const struct td_transport_local_options local = {
        .api = b->h.c.bed.api,
        .loop = b->h.c.bed.loop,
        .user = TD_STR("kubernetes-admin"),
        .group = TD_STR("system:masters"),
        .user_agent = TD_STR("tandem"),
    };
    b->calls = (struct boost_calls){.inner = td_transport_local_new(&local)};
    ops = *b->calls.inner->ops;
    ops.start = boost_calls_start;
    ops.free = boost_calls_free;
    b->calls.transport.ops = &ops;
    const struct td_client_options options = {
        .loop = b->h.c.bed.loop, .transport = &b->calls.transport, .seed = 1};
    return td_client_new(&options);
}

static void boost_side_start(struct boost_bed *b)
{
    struct boost_side *side = &b->side;
    struct td_loop *loop = b->h.c.bed.loop;
    *side = (struct boost_side){.stopped = 0};
    b->client = boost_client(b);
    struct td_informers_options informers = {.loop = loop, .client = b->h.c.client, .seed = 1};
    for (size_t i = 0; i < TD_INFORMER_COUNT; i++) {
        informers.wants[i] = true;
    }
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_informers_new(&informers, &side->informers, &err), TD_OK);
    side->registry = td_metric_registry_new();
    side->events = td_events_new(&(struct td_events_options){
        .loop = loop, .client = b->h.c.client, .component = TD_STR("vpa-updater")});
    const struct td_update_options update = {
        .control = {.loop = loop,
                    .client = b->client,
                    .informers = side->informers,
                    .registry = side->registry,
                    .events = side->events,
                    .gates = {.cpu_startup_boost = !b->is_gate_off}},
        .config = b->config,
        .interval = 10 * TD_SECOND,
        .boost_syncs = b->syncs,
    };
    assert_int_equal(td_update_loop_new(&update, &side->update, &err), TD_OK);
    td_informers_start(side->informers);
    td_update_loop_start(side->update);
}

static void boost_stopped(void *context)
{
    (*(int *)context)++;
}

static void boost_side_stop(struct boost_bed *b)
{
    struct boost_side *side = &b->side;
    td_update_loop_stop(side->update, boost_stopped, &side->stopped);
    control_bed_run(&b->h.c, TD_SECOND);
    assert_int_equal(side->stopped, 1);
    td_update_loop_free(side->update);
    td_events_free(side->events);
    td_informers_free(side->informers);
    td_metric_registry_free(side->registry);
    td_client_free(b->client);
}

static void boost_bed_init(struct boost_bed *b, bool is_gate_off)
{
    *b = (struct boost_bed){
        .config = td_updater_config_default(), .syncs = 1, .is_gate_off = is_gate_off};
    struct td_webhook_options webhook = webhook_bed_options();
    webhook.control.gates.cpu_startup_boost = true;
    webhook_bed_init_with(&b->h, &webhook);
    boost_side_start(b);
}

static void boost_bed_done(struct boost_bed *b)
{
    boost_side_stop(b);
    webhook_bed_done(&b->h);
}

static void boost_bed_run(struct boost_bed *b, int64_t seconds)
{
    control_bed_run(&b->h.c, seconds * TD_SECOND);
}

static double boost_bed_count(struct boost_bed *b, const char *line)
{
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_metric_registry_write(b->side.registry, &text);
    const char *found = strstr(td_buf_str(&text).ptr, line);
    return found ? strtod(strchr(found, '}') + 1, NULL) : 0;
}

static double boost_bed_resized(struct boost_bed *b)
{
    return boost_bed_count(b, "vpa_updater_in_place_updated_pods_total{");
}

/* The cpu request of the first pod, which is to be boosted or not. */
static const char *boost_bed_cpu(struct boost_bed *b, const char *app, bool is_boosted)
{
    const struct td_json *pod = webhook_bed_pod(&b->h, app);
    assert_non_null(pod);
    const char *mark = webhook_bed_annotation(&b->h, pod, MARK);
    assert_int_equal(mark && mark[0] != '\0', is_boosted);
    return webhook_bed_resource(&b->h, pod, "requests.cpu");
}

static size_t boost_bed_boosted(struct boost_bed *b)
{
    const struct td_json *items =
        td_json_get(control_bed_get(&b->h.c, WEBHOOK_PODS), TD_STR("items"));
    size_t count = 0;
    for (const struct td_json *pod = td_json_first_child(items); pod; pod = pod->next) {
        count += td_json_get(td_json_get_path(pod, "metadata.annotations"), TD_STR(MARK)) != NULL;
    }
    return count;
}

static void test_a_boost_ends_when_its_time_is_over(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *spec;
        const char *recommendation;
        const char *boosted;
        const char *after;
    } rows[] = {
        {"in-place", MODE("InPlaceOrRecreate") BOOST(60), TARGET, "750m", "250m"},
        {"recreate", MODE("Recreate") BOOST(60), TARGET, "750m", "250m"},
        {"initial", MODE("Initial") BOOST(60), TARGET, "750m", "250m"},
        {"off", MODE("Off") BOOST(60), TARGET, "300m", "100m"},
        {"untaught", MODE("Recreate") BOOST(60), "'containerRecommendations':[]", "300m", "100m"},
        {"own",
         MODE("Initial") ",'resourcePolicy':{'containerPolicies':[{'containerName':'app'" BOOST(
             60) "}]}",
         TARGET, "750m", "250m"},
    };
    struct boost_bed b;
    boost_bed_init(&b, false);
    size_t count = sizeof(rows) / sizeof(rows[0]);
    for (size_t i = 0; i < count; i++) {
        webhook_bed_vpa(&b.h, rows[i].name, rows[i].name, rows[i].spec, rows[i].recommendation);
        webhook_bed_deploy(&b.h, rows[i].name, "", SMALL);
    }
    boost_bed_run(&b, 45);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(boost_bed_cpu(&b, rows[i].name, true), rows[i].boosted);
    }
    boost_bed_run(&b, 45);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(boost_bed_cpu(&b, rows[i].name, false), rows[i].after);
        char line[160];
        (void)snprintf(line, sizeof(line),
                       "vpa_updater_in_place_updated_pods_total{vpa_size_log2=\"0\",vpa_name="
                       "\"%s\"",
                       rows[i].name);
        assert_true(boost_bed_count(&b, line) == 1);
    }
    const struct td_json *events = control_bed_get(
        &b.h.c, "/api/v1/namespaces/default/events?fieldSelector=reason%3DInPlaceResizedByVPA");
    assert_int_equal(td_json_get(events, TD_STR("items"))->count, count);
    boost_bed_done(&b);
}

/* No duration: the boost is for the start alone. */
static void test_a_boost_without_a_duration_ends_when_the_pod_is_ready(void **state)
{
    (void)state;
    struct boost_bed b;
    boost_bed_init(&b, false);
    webhook_bed_vpa(&b.h, "web", "web",
                    MODE("Initial") ",'startupBoost':{'cpu':{'type':'Quantity','quantity':'1'}}",
                    TARGET);
    webhook_bed_deploy(&b.h, "web", "", SMALL);
    boost_bed_run(&b, 15);
    assert_string_equal(boost_bed_cpu(&b, "web", false), "250m");
    boost_bed_done(&b);
}

static void test_nothing_is_taken_back_while_the_gate_is_off(void **state)
{
    (void)state;
    struct boost_bed b;
    boost_bed_init(&b, true);
    webhook_bed_vpa(&b.h, "web", "web", MODE("Initial") BOOST(10), TARGET);
    webhook_bed_deploy(&b.h, "web", "", SMALL);
    boost_bed_run(&b, 300);
    assert_string_equal(boost_bed_cpu(&b, "web", true), "750m");
    boost_bed_done(&b);
}

/* Each container has a time of its own; one that is over does not take the other along. */
static void test_containers_end_one_by_one(void **state)
{
    (void)state;
    struct boost_bed b;
    boost_bed_init(&b, false);
    webhook_bed_vpa(&b.h, "web", "web",
                    MODE("Off")
                        BOOST(30) ",'resourcePolicy':{'containerPolicies':[{'containerName':"
                                  "'side'" BOOST(120) "}]}",
                    "'containerRecommendations':[]");
    webhook_bed_deploy(
        &b.h, "web", "",
        "'containers':[{'name':'app','image':'a','resources':{'requests':{'cpu':"
        "'100m'}}},{'name':'side','image':'b','resources':{'requests':{'cpu':'200m'}}}"
        "]");
    boost_bed_run(&b, 60);
    assert_string_equal(boost_bed_cpu(&b, "web", false), "100m");
    const struct td_json *pod = webhook_bed_pod(&b.h, "web");
    assert_string_not_equal(webhook_bed_annotation(&b.h, pod, "vpaCpuStartupBoost/side"), "");
    assert_true(boost_bed_resized(&b) == 1);
    boost_bed_run(&b, 90);
    pod = webhook_bed_pod(&b.h, "web");
    assert_string_equal(webhook_bed_annotation(&b.h, pod, "vpaCpuStartupBoost/side"), "");
    const struct td_json *side =
        td_json_first_child(td_json_get_path(pod, "spec.containers"))->next;
    assert_true(
        td_str_equal(td_json_get_path(side, "resources.requests.cpu")->text, TD_STR("200m")));
    assert_true(boost_bed_resized(&b) == 2);
    assert_true(boost_bed_count(&b, "vpa_updater_failed_in_place_update_attempts_total{") == 0);
    boost_bed_done(&b);
}

static void test_a_pod_without_a_vpa_is_forgotten_until_it_changes(void **state)
{
    (void)state;
    struct boost_bed b;
    boost_bed_init(&b, false);
    webhook_bed_vpa(&b.h, "web", "web", MODE("Off") BOOST(30), TARGET);
    webhook_bed_deploy(&b.h, "web", "", SMALL);
    boost_bed_run(&b, 15);
    assert_int_equal(control_bed_delete(&b.h.c, WEBHOOK_VPAS "/web"), 200);
    boost_bed_run(&b, 120);
    assert_int_equal(boost_bed_boosted(&b), 1);
    webhook_bed_vpa(&b.h, "web", "web", MODE("Off") BOOST(30), TARGET);
    boost_bed_run(&b, 120);
    assert_int_equal(boost_bed_boosted(&b), 1);
    char target[256];
    td_str name = td_json_get_path(webhook_bed_pod(&b.h, "web"), "metadata.name")->text;
    (void)snprintf(target, sizeof(target), WEBHOOK_PODS "/%.*s", TD_STR_ARG(name));
    assert_int_equal(control_bed_patch(&b.h.c, target, "{'metadata':{'labels':{'a':'b'}}}"), 200);
    boost_bed_run(&b, 5);
    assert_string_equal(boost_bed_cpu(&b, "web", false), "100m");
    boost_bed_done(&b);
}

/* A VPA that comes back within the first tries is found. */
static void test_a_vpa_that_comes_back_soon_is_found(void **state)
{
    (void)state;
    struct boost_bed b;
    boost_bed_init(&b, false);
    webhook_bed_vpa(&b.h, "web", "web", MODE("Off") BOOST(30), TARGET);
    webhook_bed_deploy(&b.h, "web", "", SMALL);
    boost_bed_run(&b, 15);
    assert_int_equal(control_bed_delete(&b.h.c, WEBHOOK_VPAS "/web"), 200);
    boost_bed_run(&b, 18);
    webhook_bed_vpa(&b.h, "web", "web", MODE("Off") BOOST(30), TARGET);
    boost_bed_run(&b, 10);
    assert_string_equal(boost_bed_cpu(&b, "web", false), "100m");
    boost_bed_done(&b);
}

static void test_failures_are_tried_again_ever_more_seldom(void **state)
{
    (void)state;
    struct boost_bed b;
    boost_bed_init(&b, false);
    webhook_bed_vpa(&b.h, "web", "web", MODE("Off") BOOST(30), TARGET);
    webhook_bed_deploy(&b.h, "web", "", SMALL);
    boost_bed_run(&b, 25);
    b.h.faults.api_error_share = 1;
    boost_bed_run(&b, 60);
    b.h.faults.api_error_share = 0;
    static const char failed[] = "vpa_updater_failed_in_place_update_attempts_total{vpa_size_log2="
                                 "\"0\",reason=\"UnboostError\",vpa_name=\"web\"";
    double count = boost_bed_count(&b, failed);
    assert_in_range((int)count, 6, 10); /* 0.1, 0.3, 0.7, 1.5, ... 51 s */
    assert_int_equal(boost_bed_boosted(&b), 1);
    boost_bed_run(&b, 60);
    assert_string_equal(boost_bed_cpu(&b, "web", false), "100m");
    assert_true(boost_bed_resized(&b) == 1);
    boost_bed_done(&b);
}

/* What the annotation says cannot be read: told, and tried again when it can be. */
static void test_an_annotation_that_says_nothing_is_a_failure(void **state)
{
    (void)state;
    struct boost_bed b;
    boost_bed_init(&b, false);
    webhook_bed_vpa(&b.h, "web", "web", MODE("Off") BOOST(30), TARGET);
    webhook_bed_deploy(&b.h, "web", "", SMALL);
    boost_bed_run(&b, 15);
    char target[256];
    td_str name = td_json_get_path(webhook_bed_pod(&b.h, "web"), "metadata.name")->text;
    (void)snprintf(target, sizeof(target), WEBHOOK_PODS "/%.*s", TD_STR_ARG(name));
    assert_int_equal(
        control_bed_patch(&b.h.c, target, "{'metadata':{'annotations':{'" MARK "':'nonsense'}}}"),
        200);
    boost_bed_run(&b, 30);
    assert_true(boost_bed_count(&b, "vpa_updater_failed_in_place_update_attempts_total{") >= 3);
    assert_string_equal(boost_bed_cpu(&b, "web", true), "300m");
    assert_int_equal(control_bed_patch(&b.h.c, target,
                                       "{'metadata':{'annotations':{'" MARK
                                       "':'{\\'requests\\':{\\'cpu\\':\\'150m\\'}}'}}}"),
                     200);
    boost_bed_run(&b, 2);
    assert_string_equal(boost_bed_cpu(&b, "web", false), "150m");
    boost_bed_done(&b);
}

/* Three of six pods run: half may be missing, so none is disturbed until fewer are wanted. */
static void test_a_boost_stays_while_the_workload_has_too_few_pods(void **state)
{
    (void)state;
    struct boost_bed b;
    boost_bed_init(&b, false);
    webhook_bed_vpa(&b.h, "web", "web", MODE("Off") BOOST(30), TARGET);
    webhook_bed_deploy(&b.h, "web", "",
                       "'containers':[{'name':'app','image':'a','resources':{'requests':{'cpu':"
                       "'2'}}}]"); /* boosted: one a node */
    assert_int_equal(
        control_bed_patch(&b.h.c, WEBHOOK_DEPLOYMENTS "/web", "{'spec':{'replicas':6}}"), 200);
    boost_bed_run(&b, 60);
    assert_int_equal(boost_bed_boosted(&b), 6);
    assert_true(boost_bed_resized(&b) == 0);
    assert_int_equal(
        control_bed_patch(&b.h.c, WEBHOOK_DEPLOYMENTS "/web", "{'spec':{'replicas':3}}"), 200);
    boost_bed_run(&b, 120);
    assert_int_equal(boost_bed_boosted(&b), 0);
    assert_true(boost_bed_resized(&b) == 3);
    boost_bed_done(&b);
}

static void test_a_restart_in_between_loses_nothing(void **state)
{
    (void)state;
    static const struct {
        int64_t before;
        int64_t away;
    } rows[] = {{10, 1}, {10, 120}, {29, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct boost_bed b;
        boost_bed_init(&b, false);
        webhook_bed_vpa(&b.h, "web", "web", MODE("Initial") BOOST(30), TARGET);
        webhook_bed_deploy(&b.h, "web", "", SMALL);
        boost_bed_run(&b, rows[i].before);
        boost_side_stop(&b);
        boost_bed_run(&b, rows[i].away);
        assert_string_equal(boost_bed_cpu(&b, "web", true), "750m");
        boost_side_start(&b);
        boost_bed_run(&b, 40);
        assert_string_equal(boost_bed_cpu(&b, "web", false), "250m");
        boost_bed_done(&b);
    }
}

/* Stopped, as one that lost its lease: it learns, but does not act until it is started. */
static void test_one_that_does_not_lead_only_looks_on(void **state)
{
    (void)state;
    struct boost_bed b;
    boost_bed_init(&b, false);
    td_update_loop_stop(b.side.update, boost_stopped, &b.side.stopped);
    assert_int_equal(b.side.stopped, 1);
    webhook_bed_vpa(&b.h, "web", "web", MODE("Off") BOOST(30), TARGET);
    webhook_bed_deploy(&b.h, "web", "", SMALL);
    boost_bed_run(&b, 90);
    assert_int_equal(boost_bed_boosted(&b), 1);
    td_update_loop_start(b.side.update);
    boost_bed_run(&b, 2);
    assert_int_equal(boost_bed_boosted(&b), 0);
    b.side.stopped = 0;
    boost_bed_done(&b);
}

/* The limit of evictions and resizes holds for boosts too. */
static void test_boosts_end_at_the_rate_of_resizes(void **state)
{
    (void)state;
    struct boost_bed b;
    boost_bed_init(&b, false);
    boost_side_stop(&b);
    b.config.rate_per_second = 0.1;
    b.config.rate_burst = 1;
    boost_side_start(&b);
    webhook_bed_vpa(&b.h, "web", "web", MODE("Off") BOOST(30), TARGET);
    webhook_bed_deploy(&b.h, "web", "", SMALL);
    assert_int_equal(
        control_bed_patch(&b.h.c, WEBHOOK_DEPLOYMENTS "/web", "{'spec':{'replicas':4}}"), 200);
    boost_bed_run(&b, 30);
    size_t left = boost_bed_boosted(&b);
    assert_int_equal(left, 4);
    for (size_t i = 0; left > 0 && i < 60; i++) {
        boost_bed_run(&b, 1);
        size_t now = boost_bed_boosted(&b);
        assert_true(left - now <= 1);
        left = now;
    }
    assert_int_equal(left, 0);
    assert_true(boost_bed_resized(&b) == 4);
    boost_bed_done(&b);
}

/* One after the other, or as many at one time as were asked for. */
static void test_so_many_boosts_end_at_one_time(void **state)
{
    (void)state;
    static const struct {
        size_t syncs;
        const char *order;
    } rows[] = {{1, "RARARARA"}, {2, "RRAARRAA"}, {4, "RRRRAAAA"}, {9, "RRRRAAAA"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct boost_bed b;
        boost_bed_init(&b, false);
        boost_side_stop(&b);
        b.syncs = rows[i].syncs;
        boost_side_start(&b);
        webhook_bed_vpa(&b.h, "web", "web", MODE("Off") BOOST(30), TARGET);
        webhook_bed_deploy(&b.h, "web", "", SMALL);
        assert_int_equal(
            control_bed_patch(&b.h.c, WEBHOOK_DEPLOYMENTS "/web", "{'spec':{'replicas':4}}"), 200);
        boost_bed_run(&b, 60);
        assert_int_equal(boost_bed_boosted(&b), 0);
        assert_string_equal(b.calls.order, rows[i].order);
        boost_bed_done(&b);
    }
}

/* The pass leaves boosted pods alone, and looks at them afterwards. */
static void test_the_pass_waits_for_the_end_of_the_boost(void **state)
{
    (void)state;
    struct boost_bed b;
    boost_bed_init(&b, false);
    webhook_bed_vpa(&b.h, "web", "web",
                    ",'updatePolicy':{'updateMode':'Recreate','minReplicas':1}" BOOST(60), TARGET);
    webhook_bed_deploy(&b.h, "web", "", SMALL);
    boost_bed_run(&b, 30);
    assert_int_equal(control_bed_patch(&b.h.c, WEBHOOK_VPAS "/web/status",
                                       "{'status':{'recommendation':{'containerRecommendations':[{"
                                       "'containerName':'app','target':{'cpu':'2'},'lowerBound':{"
                                       "'cpu':'2'},'upperBound':{'cpu':'2'}}]}}}"),
                     200);
    boost_bed_run(&b, 25);
    assert_string_equal(boost_bed_cpu(&b, "web", true), "750m");
    assert_true(boost_bed_count(&b, "vpa_updater_evicted_pods_total{") == 0);
    boost_bed_run(&b, 30);
    assert_string_equal(boost_bed_cpu(&b, "web", false), "2");
    assert_true(boost_bed_count(&b, "vpa_updater_evicted_pods_total{") == 0);
    boost_bed_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_boost_ends_when_its_time_is_over),
        cmocka_unit_test(test_a_boost_without_a_duration_ends_when_the_pod_is_ready),
        cmocka_unit_test(test_nothing_is_taken_back_while_the_gate_is_off),
        cmocka_unit_test(test_containers_end_one_by_one),
        cmocka_unit_test(test_a_pod_without_a_vpa_is_forgotten_until_it_changes),
        cmocka_unit_test(test_a_vpa_that_comes_back_soon_is_found),
        cmocka_unit_test(test_failures_are_tried_again_ever_more_seldom),
        cmocka_unit_test(test_an_annotation_that_says_nothing_is_a_failure),
        cmocka_unit_test(test_a_boost_stays_while_the_workload_has_too_few_pods),
        cmocka_unit_test(test_a_restart_in_between_loses_nothing),
        cmocka_unit_test(test_one_that_does_not_lead_only_looks_on),
        cmocka_unit_test(test_boosts_end_at_the_rate_of_resizes),
        cmocka_unit_test(test_so_many_boosts_end_at_one_time),
        cmocka_unit_test(test_the_pass_waits_for_the_end_of_the_boost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
