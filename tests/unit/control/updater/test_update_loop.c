/*
 * The updater on a local cluster, with the recommender beside it: pods are resized in place or
 * evicted, a few at a time, and never while pods would come back unchanged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "control/informers/informers.h"
#include "control/recommender/recommend_loop.h"
#include "control/updater/update_loop.h"
#include "kube/client/events.h"
#include "kube/client/metrics_client.h"
#include "support/control_bed.h"

#define VPAS "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"

struct update_bed {
    struct control_bed c;
    struct td_informers *informers;
    struct td_metrics_client *metrics_client;
    struct td_metric_registry *registry;
    struct td_events *events;
    struct td_recommend_loop *recommend;
    struct td_update_loop *update;
    const char *problem;
    const char *exempt; /* namespace that the webhook leaves out; NULL: none */
    td_duration proof;  /* how long it takes to see that pods are mutated */
    int stopped;
};

static struct td_update_problem update_bed_problem(void *context)
{
    const struct update_bed *u = context;
    return (struct td_update_problem){.reason = "Webhook", .message = td_str_from(u->problem)};
}

static bool update_bed_is_exempt(void *context, td_str namespace)
{
    const struct update_bed *u = context;
    return u->exempt && td_str_equal(namespace, td_str_from(u->exempt));
}

static bool update_bed_is_proved(void *context, td_duration since)
{
    const struct update_bed *u = context;
    return td_clock_machine(td_loop_clock(u->c.bed.loop)) >= since + u->proof;
}

static void update_bed_init_gated(struct update_bed *u, bool uses_lease, bool in_place)
{
    *u = (struct update_bed){.problem = ""};
    control_bed_init(&u->c);
    struct td_informers_options informers = {
        .loop = u->c.bed.loop, .client = u->c.client, .seed = 1};
    for (size_t i = 0; i < TD_INFORMER_COUNT; i++) {
        informers.wants[i] = true;
    }
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_informers_new(&informers, &u->informers, &err), TD_OK);
    u->metrics_client = td_metrics_client_new(u->c.bed.loop, u->c.client, NULL, TD_MINUTE);
    u->registry = td_metric_registry_new();
    u->events = td_events_new(&(struct td_events_options){
        .loop = u->c.bed.loop, .client = u->c.client, .component = TD_STR("vpa-updater")});
    const struct td_control control = {
        .loop = u->c.bed.loop,
        .client = u->c.client,
        .informers = u->informers,
        .metrics_client = u->metrics_client,
        .registry = u->registry,
        .events = u->events,
        .gates = {.heterogeneous_workloads = true,
                  .pod_level_resources = true,
                  .in_place = in_place},
    };
    const struct td_recommend_options recommend = {
        .control = control,
        .config = td_vertical_config_default(),
        .name = TD_STR("default"),
        .interval = TD_MINUTE,
        .checkpoints_gc_interval = 10 * TD_MINUTE,
        .checkpoints_timeout = TD_MINUTE,
        .writes_max = 10,
        .is_exempt = update_bed_is_exempt,
        .context = u,
    };
    const struct td_update_options update = {
        .control = control,
        .config = td_updater_config_default(),
        .interval = TD_MINUTE,
        .uses_lease = uses_lease,
        .lease_namespace = TD_STR("kube-system"),
        .lease_name = TD_STR("vpa-admission-controller"),
        .lease_timeout = TD_MINUTE,
        .get_problem = update_bed_problem,
        .is_exempt = update_bed_is_exempt,
        .is_proved = update_bed_is_proved,
        .context = u,
    };
    assert_int_equal(td_recommend_loop_new(&recommend, &u->recommend, &err), TD_OK);
    assert_int_equal(td_update_loop_new(&update, &u->update, &err), TD_OK);
    td_informers_start(u->informers);
    td_recommend_loop_start(u->recommend);
    td_update_loop_start(u->update);
    control_bed_create(
        &u->c, "/apis/apps/v1/namespaces/default/deployments",
        "{'metadata':{'name':'web'},'spec':{'replicas':4,'selector':{'matchLabels':{'app':'web'}},"
        "'template':{'metadata':{'labels':{'app':'web'},'annotations':{'usage.tandem.dev/app':"
        "'500m,300Mi'}},'spec':{'containers':[{'name':'app','image':'nginx','resources':{"
        "'requests':{'cpu':'100m','memory':'100Mi'}}}]}}}}");
}

static void update_bed_init(struct update_bed *u, bool uses_lease)
{
    update_bed_init_gated(u, uses_lease, false);
}

static void update_bed_vpa(struct update_bed *u, const char *mode)
{
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
                   "'metadata':{'name':'web'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':"
                   "'Deployment','name':'web'},'updatePolicy':{'updateMode':'%s'}}}",
                   mode);
    control_bed_create(&u->c, VPAS, text);
}

static void update_bed_stopped(void *context)
{
    (*(int *)context)++;
}

static void update_bed_done(struct update_bed *u)
{
    td_update_loop_stop(u->update, update_bed_stopped, &u->stopped);
    td_recommend_loop_stop(u->recommend, update_bed_stopped, &u->stopped);
    control_bed_run(&u->c, TD_SECOND);
    assert_int_equal(u->stopped, 2);
    td_update_loop_free(u->update);
    td_recommend_loop_free(u->recommend);
    td_events_free(u->events);
    td_metrics_client_free(u->metrics_client);
    td_informers_free(u->informers);
    td_metric_registry_free(u->registry);
    control_bed_done(&u->c);
}

/* Pods whose status shows that cpu request. */
static size_t update_bed_sized(struct update_bed *u, const char *cpu)
{
    const struct td_json *list = control_bed_get(&u->c, "/api/v1/namespaces/default/pods");
    const struct td_json *items = td_json_get(list, TD_STR("items"));
    size_t count = 0;
    for (const struct td_json *pod = td_json_first_child(items); pod; pod = pod->next) {
        const struct td_json *statuses = td_json_get_path(pod, "status.containerStatuses");
        const struct td_json *requests =
            td_json_get_path(td_json_first_child(statuses), "resources.requests");
        count +=
            td_str_equal(td_json_get_str(requests, TD_STR("cpu"), TD_STR_EMPTY), td_str_from(cpu));
    }
    return count;
}

static double update_bed_count(struct update_bed *u, const char *line)
{
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_metric_registry_write(u->registry, &text);
    const char *found = strstr(td_buf_str(&text).ptr, line);
    return found ? strtod(strchr(found, '}') + 1, NULL) : -1;
}

static void test_pods_are_resized_in_place_a_few_at_a_time(void **state)
{
    (void)state;
    struct update_bed u;
    update_bed_init(&u, false);
    update_bed_vpa(&u, "InPlaceOrRecreate");
    size_t before = 0;
    size_t most = 0;
    for (int minute = 0; minute < 10; minute++) {
        control_bed_run(&u.c, TD_MINUTE);
        size_t sized = update_bed_sized(&u, "587m");
        most = sized - before > most ? sized - before : most;
        before = sized;
    }
    assert_int_equal(before, 4);
    assert_int_equal(most, 2); /* half of four */
    assert_true(update_bed_count(&u, "vpa_updater_in_place_updated_pods_total{") == 4);
    assert_true(update_bed_count(&u, "vpa_updater_evicted_pods_total{") == 0);
    update_bed_done(&u);
}

static void test_pods_that_come_back_unchanged_are_left_alone(void **state)
{
    (void)state;
    struct update_bed u;
    update_bed_init(&u, false); /* no webhook mutates pods here */
    update_bed_vpa(&u, "Recreate");
    control_bed_run(&u.c, 45 * TD_MINUTE);
    double evicted = update_bed_count(&u, "vpa_updater_evicted_pods_total{");
    assert_true(evicted > 0);
    assert_true(evicted <= 8); /* twice each */
    update_bed_done(&u);
}

static void test_nothing_is_evicted_while_something_is_wrong(void **state)
{
    (void)state;
    struct update_bed u;
    update_bed_init(&u, true);
    update_bed_vpa(&u, "Recreate");
    control_bed_run(&u.c, 5 * TD_MINUTE);
    assert_true(update_bed_count(&u, "vpa_updater_evicted_pods_total{") <= 0);
    assert_true(update_bed_count(&u, "vpa_updater_admission_controller_status_invalid_total{"
                                     "reason=\"error\"}") >= 4);
    control_bed_create(&u.c, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
                       "{'metadata':{'name':'vpa-admission-controller'},'spec':{}}");
    u.problem = "pods are not mutated";
    control_bed_run(&u.c, 2 * TD_MINUTE);
    assert_true(update_bed_count(&u, "vpa_updater_evicted_pods_total{") <= 0);
    assert_true(update_bed_count(&u, "tandem_updater_skipped_passes_total{reason=\"Webhook\"}") >=
                1);
    update_bed_done(&u);
}

/* Mode InPlace: a size that no node has is asked for once, not in every pass. */
static void test_what_no_node_has_is_not_asked_for_again(void **state)
{
    (void)state;
    struct update_bed u;
    update_bed_init_gated(&u, false, true);
    update_bed_vpa(&u, "InPlace");
    assert_int_equal(control_bed_patch(&u.c, VPAS "/web",
                                       "{'spec':{'resourcePolicy':{'containerPolicies':[{"
                                       "'containerName':'app','minAllowed':{'cpu':'50'}}]}}}"),
                     200);
    control_bed_run(&u.c, 20 * TD_MINUTE);
    assert_true(update_bed_count(&u,
                                 "vpa_updater_failed_in_place_update_attempts_total{"
                                 "vpa_size_log2=\"2\",reason=\"InPlaceUpdateInfeasible\"") == 4);
    assert_true(update_bed_count(&u, "vpa_updater_evicted_pods_total{") == 0);
    update_bed_done(&u);
}

/* Pods of a namespace that the webhook leaves out would come back unchanged. */
static void test_nothing_is_evicted_where_the_webhook_does_not_look(void **state)
{
    (void)state;
    struct update_bed u;
    update_bed_init(&u, false);
    u.exempt = "default";
    update_bed_vpa(&u, "Recreate");
    control_bed_run(&u.c, 10 * TD_MINUTE);
    assert_true(update_bed_count(&u, "vpa_updater_evicted_pods_total{") <= 0);
    const struct td_json *vpa = control_bed_get(&u.c, VPAS "/web");
    const struct td_json *condition = td_json_get_path(vpa, "status.conditions");
    td_str reason = TD_STR_EMPTY;
    for (condition = td_json_first_child(condition); condition; condition = condition->next) {
        if (td_str_equal(td_json_get_str(condition, TD_STR("type"), TD_STR_EMPTY),
                         TD_STR("WebhookNotMutating"))) {
            reason = td_json_get_str(condition, TD_STR("reason"), TD_STR_EMPTY);
        }
    }
    assert_true(td_str_equal(reason, TD_STR("NamespaceExempt")));
    update_bed_done(&u);
}

/* How often something was told of the VPA. */
static int64_t update_bed_reported(struct update_bed *u, const char *reason)
{
    const struct td_json *list = control_bed_get(&u->c, "/api/v1/namespaces/default/events");
    int64_t count = 0;
    for (const struct td_json *e = td_json_first_child(td_json_get(list, TD_STR("items"))); e;
         e = e->next) {
        const struct td_json *about = td_json_get(e, TD_STR("involvedObject"));
        bool is_it =
            td_str_equal(td_json_get_str(e, TD_STR("reason"), TD_STR_EMPTY), td_str_from(reason)) &&
            td_str_equal(td_json_get_str(about, TD_STR("kind"), TD_STR_EMPTY),
                         TD_STR("VerticalPodAutoscaler"));
        count += is_it ? td_json_get_int64(e, TD_STR("count"), 1) : 0;
    }
    return count;
}

/* A wish that the requirements withhold is told when it begins, not in every pass. */
static void test_what_requirements_withhold_is_told_once(void **state)
{
    (void)state;
    static const char lower[] =
        "{'spec':{'updatePolicy':{'evictionRequirements':[{'resources':['cpu','memory'],"
        "'changeRequirement':'TargetLowerThanRequests'}]}}}";
    static const char none[] = "{'spec':{'updatePolicy':{'evictionRequirements':null,"
                               "'minReplicas':5}}}"; /* held for another reason */
    struct update_bed u;
    update_bed_init(&u, false);
    update_bed_vpa(&u, "Recreate");
    assert_int_equal(control_bed_patch(&u.c, VPAS "/web", lower), 200);
    control_bed_run(&u.c, 10 * TD_MINUTE);
    assert_int_equal(update_bed_reported(&u, "EvictionRequirements"), 1);
    assert_int_equal(control_bed_patch(&u.c, VPAS "/web", none), 200);
    control_bed_run(&u.c, 5 * TD_MINUTE);
    assert_int_equal(update_bed_reported(&u, "EvictionRequirements"), 1);
    assert_int_equal(control_bed_patch(&u.c, VPAS "/web", lower), 200);
    assert_int_equal(
        control_bed_patch(&u.c, VPAS "/web", "{'spec':{'updatePolicy':{'minReplicas':1}}}"), 200);
    control_bed_run(&u.c, 5 * TD_MINUTE);
    assert_int_equal(update_bed_reported(&u, "EvictionRequirements"), 2);
    assert_true(update_bed_count(&u, "vpa_updater_evicted_pods_total{") <= 0);
    update_bed_done(&u);
}

/* A pass whose time is over before its work: the next follows it at once, not an interval later. */
static void test_a_pass_that_used_up_its_time_is_followed_by_the_next(void **state)
{
    (void)state;
    struct update_bed u;
    update_bed_init(&u, false);
    u.proof = 14 * TD_SECOND;
    assert_int_equal(control_bed_patch(&u.c, "/apis/apps/v1/namespaces/default/deployments/web",
                                       "{'spec':{'replicas':40}}"),
                     200);
    update_bed_vpa(&u, "Recreate");
    control_bed_run(&u.c, 12 * TD_MINUTE);
    assert_true(update_bed_count(&u, "vpa_updater_evicted_pods_total{") >= 10 * 60 / 15);
    update_bed_done(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_are_resized_in_place_a_few_at_a_time),
        cmocka_unit_test(test_pods_that_come_back_unchanged_are_left_alone),
        cmocka_unit_test(test_nothing_is_evicted_while_something_is_wrong),
        cmocka_unit_test(test_what_no_node_has_is_not_asked_for_again),
        cmocka_unit_test(test_nothing_is_evicted_where_the_webhook_does_not_look),
        cmocka_unit_test(test_what_requirements_withhold_is_told_once),
        cmocka_unit_test(test_a_pass_that_used_up_its_time_is_followed_by_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
