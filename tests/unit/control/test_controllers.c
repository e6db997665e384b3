/*
 * The frame of the controllers on a local cluster: started together or by leader election, handed
 * over without loss, stopped in order, and what the process says of itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/controllers.h"
#include "local/engine/faults.h"
#include "support/control_bed.h"

#define VPAS "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
#define PODS "/api/v1/namespaces/default/pods"

struct frame_bed {
    struct control_bed c;
    struct td_faults faults;
    struct td_controllers *first;
    struct td_controllers *second;
    bool is_stopped;
    int64_t renewals; /* of a lease of upstream's */
};

static struct td_transport *frame_transport(struct frame_bed *f, const char *user,
                                            const char *group)
{
    const struct td_transport_local_options local = {
        .api = f->c.bed.api,
        .loop = f->c.bed.loop,
        .user = td_str_from(user),
        .group = td_str_from(group),
        .user_agent = TD_STR("tandem"),
    };
    return td_transport_local_new(&local);
}

static struct td_controllers_options frame_options(struct frame_bed *f, const char *identity)
{
    struct td_controllers_options options = td_controllers_options_default();
    options.loop = f->c.bed.loop;
    options.transport = frame_transport(f, "kubernetes-admin", "system:masters");
    options.leader.is_on = identity != NULL;
    options.leader.identity = td_str_from(identity);
    options.has[TD_CONTROLLER_ADMISSION] = false;
    options.update.uses_lease = false;
    return options;
}

static struct td_controllers *frame_start(struct frame_bed *f, const char *identity)
{
    struct td_controllers_options options = frame_options(f, identity);
    struct td_controllers *controllers = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_controllers_new(&options, &controllers, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    td_controllers_start(controllers);
    return controllers;
}

static void frame_stopped(void *context)
{
    *(bool *)context = true;
}

static void frame_stop(struct frame_bed *f, struct td_controllers **controllers)
{
    f->is_stopped = false;
    td_controllers_stop(*controllers, frame_stopped, &f->is_stopped);
    control_bed_run(&f->c, TD_SECOND);
    assert_true(f->is_stopped);
    td_controllers_free(*controllers);
    *controllers = NULL;
}

static void frame_init(struct frame_bed *f)
{
    *f = (struct frame_bed){.first = NULL};
    const struct td_cluster_options options = {.seed = 1, .faults = &f->faults};
    control_bed_init_with(&f->c, &options);
}

static void frame_done(struct frame_bed *f)
{
    td_controllers_free(f->first);
    td_controllers_free(f->second);
    control_bed_done(&f->c);
}

static void frame_deploy(struct frame_bed *f)
{
    control_bed_create(
        &f->c, "/apis/apps/v1/namespaces/default/deployments",
        "{'metadata':{'name':'web'},'spec':{'replicas':3,'selector':{'matchLabels':{'app':'web'}},"
        "'template':{'metadata':{'labels':{'app':'web'},'annotations':{'usage.tandem.dev/app':"
        "'400m,300Mi'}},'spec':{'containers':[{'name':'app','image':'nginx','resources':"
        "{'requests':{'cpu':'100m','memory':'100Mi'}}}]}}}}");
    control_bed_create(
        &f->c, VPAS,
        "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler','metadata':{'name':"
        "'web'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'},"
        "'updatePolicy':{'updateMode':'Off'}}}");
}

/* Pods whose direct owner is the topmost one. */
static void frame_deploy_direct(struct frame_bed *f)
{
    control_bed_create(
        &f->c, "/apis/apps/v1/namespaces/default/statefulsets",
        "{'metadata':{'name':'db'},'spec':{'replicas':3,'serviceName':'db','selector':{"
        "'matchLabels':{'app':'db'}},'template':{'metadata':{'labels':{'app':'db'},'annotations':{"
        "'usage.tandem.dev/app':'300m,200Mi'}},'spec':{'containers':[{'name':'app','image':'nginx'"
        "}]}}}}");
    control_bed_create(
        &f->c, VPAS,
        "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler','metadata':{'name':"
        "'db'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':'StatefulSet','name':'db'},"
        "'updatePolicy':{'updateMode':'Off'}}}");
}

/* The recommended CPU of a VPA, or empty. */
static td_str frame_target_of(struct frame_bed *f, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), VPAS "/%s", name);
    const struct td_json *recommended = td_json_get_path(
        control_bed_get(&f->c, path), "status.recommendation.containerRecommendations");
    return td_json_get_str(td_json_get(td_json_at(recommended, 0), TD_STR("target")), TD_STR("cpu"),
                           TD_STR_EMPTY);
}

static td_str frame_target(struct frame_bed *f)
{
    return frame_target_of(f, "web");
}

static td_str frame_holder(struct frame_bed *f, const char *lease)
{
    char path[256];
    (void)snprintf(path, sizeof(path), LEASES "/%s", lease);
    const struct td_json *spec = td_json_get(control_bed_get(&f->c, path), TD_STR("spec"));
    return td_json_get_str(spec, TD_STR("holderIdentity"), TD_STR_EMPTY);
}

static void frame_assert_text(td_str got, const char *expected)
{
    if (!td_str_equal(got, td_str_from(expected))) {
        fail_msg("'%.*s' is not '%s'", TD_STR_ARG(got), expected);
    }
}

static size_t frame_leaders(const struct td_controllers *controllers)
{
    size_t count = 0;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        count += td_controllers_is_leading(controllers, (enum td_controller_kind)kind);
    }
    return count;
}

static size_t frame_count(void)
{
    const struct td_controllers_options options = td_controllers_options_default();
    size_t count = 0;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        count += options.has[kind] && td_controller_lease((enum td_controller_kind)kind);
    }
    return count;
}

static void frame_assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) {
        fail_msg("'%s' is not in: %s", part, text);
    }
}

/* Without leader election all controllers work from the start. */
static void test_all_start_at_once(void **state)
{
    (void)state;
    struct frame_bed f;
    frame_init(&f);
    f.first = frame_start(&f, NULL);
    assert_true(frame_leaders(f.first) >= frame_count());
    frame_deploy(&f);
    frame_deploy_direct(&f);
    control_bed_run(&f.c, 3 * TD_MINUTE);
    assert_true(frame_target(&f).len > 0);
    assert_true(frame_target_of(&f, "db").len > 0);
    assert_null(control_bed_get(&f.c, LEASES "/tandem-updater"));
    frame_stop(&f, &f.first);
    frame_done(&f);
}

/* Of two processes one leads; when it stops it gives its leases back and the other leads at once
 * with all that was learnt. */
static void test_a_stop_hands_over(void **state)
{
    (void)state;
    struct frame_bed f;
    frame_init(&f);
    f.first = frame_start(&f, "a");
    control_bed_run(&f.c, 5 * TD_SECOND);
    f.second = frame_start(&f, "b");
    frame_deploy(&f);
    control_bed_run(&f.c, 10 * TD_MINUTE);
    assert_int_equal(frame_leaders(f.first), frame_count());
    assert_int_equal(frame_leaders(f.second), 0);
    frame_assert_text(frame_holder(&f, "tandem-recommender"), "a");
    frame_assert_text(frame_holder(&f, "tandem-updater"), "a");
    frame_assert_text(frame_holder(&f, "tandem-horizontal"), "a");
    char before[32];
    td_str target = frame_target(&f);
    (void)snprintf(before, sizeof(before), "%.*s", TD_STR_ARG(target));
    assert_true(strlen(before) > 0);
    f.is_stopped = false;
    td_controllers_stop(f.first, frame_stopped, &f.is_stopped);
    control_bed_run(&f.c, 4 * TD_SECOND);
    assert_true(f.is_stopped);
    assert_int_equal(frame_leaders(f.first), 0);
    assert_int_equal(frame_leaders(f.second), frame_count());
    frame_assert_text(frame_holder(&f, "tandem-recommender"), "b");
    td_controllers_free(f.first);
    f.first = NULL;
    control_bed_run(&f.c, 2 * TD_MINUTE);
    frame_assert_text(frame_target(&f), before);
    frame_done(&f);
}

/* Where the leases are, what they are called and how long they last is said by flags. */
static void test_leases_are_as_they_were_asked_for(void **state)
{
    (void)state;
    static const struct {
        bool is_alone; /* the updater is the only controller */
        const char *chosen;
        const char *lease;
    } rows[] = {
        {false, "", "tandem-updater"},
        {false, "mine", "mine-updater"},
        {true, "mine", "mine"},
        {true, "", "tandem-updater"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct frame_bed f;
        frame_init(&f);
        control_bed_create(&f.c, "/api/v1/namespaces", "{'metadata':{'name':'elections'}}");
        struct td_controllers_options options = frame_options(&f, "a");
        for (size_t kind = 0; kind < TD_CONTROLLER_COUNT && rows[i].is_alone; kind++) {
            options.has[kind] = kind == TD_CONTROLLER_UPDATER;
        }
        options.leader.name = td_str_from(rows[i].chosen);
        options.leader.namespace = TD_STR("elections");
        options.leader.lease_duration = 40 * TD_SECOND;
        options.leader.renew_deadline = 30 * TD_SECOND;
        options.leader.retry_period = 5 * TD_SECOND;
        assert_int_equal(td_controllers_new(&options, &f.first, NULL), TD_OK);
        td_controllers_start(f.first);
        control_bed_run(&f.c, 20 * TD_SECOND);
        assert_true(td_controllers_is_leading(f.first, TD_CONTROLLER_UPDATER));
        char path[256];
        (void)snprintf(path, sizeof(path),
                       "/apis/coordination.k8s.io/v1/namespaces/elections/leases/%s",
                       rows[i].lease);
        const struct td_json *spec = td_json_get(control_bed_get(&f.c, path), TD_STR("spec"));
        frame_assert_text(td_json_get_str(spec, TD_STR("holderIdentity"), TD_STR_EMPTY), "a");
        assert_int_equal(td_json_get_int64(spec, TD_STR("leaseDurationSeconds"), 0), 40);
        assert_null(control_bed_get(&f.c, LEASES "/tandem-updater"));
        td_auto_buf text;
        td_buf_init(&text, (size_t)1 << 20);
        td_controllers_write_metrics(f.first, &text);
        char line[256];
        (void)snprintf(line, sizeof(line), "leader_election_master_status{name=\"%s\"} 1",
                       rows[i].lease);
        frame_assert_has(td_buf_str(&text).ptr, line);
        frame_stop(&f, &f.first);
        frame_done(&f);
    }
}

/* A process that dies without a word is followed when its lease ends, and what it knew comes from
 * its checkpoints. */
static void test_a_death_is_followed(void **state)
{
    (void)state;
    struct frame_bed f;
    frame_init(&f);
    f.first = frame_start(&f, "a");
    control_bed_run(&f.c, 5 * TD_SECOND);
    f.second = frame_start(&f, "b");
    frame_deploy(&f);
    control_bed_run(&f.c, 30 * TD_MINUTE);
    td_controllers_free(f.first);
    f.first = NULL;
    control_bed_run(&f.c, 10 * TD_SECOND);
    assert_int_equal(frame_leaders(f.second), 0);
    control_bed_run(&f.c, 15 * TD_SECOND);
    assert_true(td_controllers_is_leading(f.second, TD_CONTROLLER_RECOMMENDER));
    control_bed_run(&f.c, 20 * TD_SECOND); /* Hvpas are decided where the recommender is */
    assert_int_equal(frame_leaders(f.second), frame_count());
    control_bed_run(&f.c, 2 * TD_MINUTE);
    assert_true(frame_target(&f).len > 0);
    const struct td_json *checkpoint =
        control_bed_get(&f.c, "/apis/autoscaling.k8s.io/v1/namespaces/default/"
                              "verticalpodautoscalercheckpoints/web-app");
    const struct td_json *samples = td_json_get_path(checkpoint, "status.totalSamplesCount");
    int64_t count = 0;
    assert_true(samples && td_json_to_int64(samples, &count));
    assert_true(count > 25 * 3); /* of before and after */
    frame_done(&f);
}

/* A leader that cannot renew stops by itself before another begins, and waits for the lease. */
static void test_an_outage_stops_the_leader(void **state)
{
    (void)state;
    struct frame_bed f;
    frame_init(&f);
    f.first = frame_start(&f, "a");
    control_bed_run(&f.c, 10 * TD_SECOND);
    assert_int_equal(frame_leaders(f.first), frame_count());
    const char *theft = "{'spec':{'holderIdentity':'thief','leaseDurationSeconds':15,"
                        "'renewTime':'2030-01-01T00:00:00.000000Z'}}";
    assert_int_equal(control_bed_patch(&f.c, LEASES "/tandem-recommender", theft), 200);
    control_bed_run(&f.c, 15 * TD_SECOND);
    assert_false(td_controllers_is_leading(f.first, TD_CONTROLLER_RECOMMENDER));
    assert_true(td_controllers_is_leading(f.first, TD_CONTROLLER_UPDATER));
    control_bed_run(&f.c, 30 * TD_SECOND);
    assert_true(td_controllers_is_leading(f.first, TD_CONTROLLER_RECOMMENDER));
    frame_done(&f);
}

/* Ready means: the caches are synced, and there is a leader. */
static void test_ready_says_what_is_missing(void **state)
{
    (void)state;
    struct frame_bed f;
    frame_init(&f);
    f.first = frame_start(&f, "a");
    td_auto_buf text;
    td_buf_init(&text, 4096);
    assert_false(td_controllers_is_ready(f.first, &text));
    frame_assert_has(td_buf_str(&text).ptr, "informers: caches not synced yet: pods (0 so far), ");
    frame_assert_has(td_buf_str(&text).ptr, "recommender: no leader elected yet\n");
    control_bed_run(&f.c, 5 * TD_SECOND);
    td_buf_reset(&text);
    assert_true(td_controllers_is_ready(f.first, &text));
    assert_string_equal(td_buf_str(&text).ptr, "ok");
    f.is_stopped = false;
    td_controllers_stop(f.first, frame_stopped, &f.is_stopped);
    td_buf_reset(&text);
    assert_false(td_controllers_is_ready(f.first, &text));
    control_bed_run(&f.c, TD_SECOND);
    assert_true(f.is_stopped);
    frame_done(&f);
}

/* A controller that has not come round for five intervals is said to be silent. */
static void test_silence_is_noticed(void **state)
{
    (void)state;
    struct frame_bed f;
    frame_init(&f);
    f.first = frame_start(&f, "a");
    control_bed_run(&f.c, 3 * TD_MINUTE);
    td_auto_buf text;
    td_buf_init(&text, 4096);
    assert_true(td_controllers_is_active(f.first, &text));
    assert_string_equal(td_buf_str(&text).ptr, "OK");
    td_clock_advance(&f.c.bed.clock, 4 * TD_MINUTE);
    td_buf_reset(&text);
    assert_true(td_controllers_is_active(f.first, &text));
    td_clock_advance(&f.c.bed.clock, 2 * TD_MINUTE);
    td_buf_reset(&text);
    assert_false(td_controllers_is_active(f.first, &text));
    frame_assert_has(td_buf_str(&text).ptr, "Error: the recommender's last activity was ");
    frame_done(&f);
}

/* The process tells of itself, of its client and of what it sees. */
static void test_metrics(void **state)
{
    (void)state;
    struct frame_bed f;
    frame_init(&f);
    f.first = frame_start(&f, "a");
    frame_deploy(&f);
    control_bed_run(&f.c, 3 * TD_MINUTE);
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_controllers_write_metrics(f.first, &text);
    static const char *const parts[] = {
        "# TYPE process_cpu_seconds_total counter\n",
        "\nprocess_resident_memory_bytes ",
        "\ntandem_client_calls_total ",
        "\ntandem_cache_objects{resource=\"pods\"} 3\n",
        "\ntandem_cache_objects{resource=\"verticalpodautoscalers.autoscaling.k8s.io\"} 1\n",
        "\nleader_election_master_status{name=\"tandem-updater\"} 1\n",
        "\nleader_election_master_status{name=\"tandem-recommender\"} 1\n",
        "vpa_recommender_",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        frame_assert_has(td_buf_str(&text).ptr, parts[i]);
    }
    frame_done(&f);
}

/* Settings that cannot be are refused in words. */
static void test_wrong_settings(void **state)
{
    (void)state;
    struct frame_bed f;
    frame_init(&f);
    static const td_str ignored[] = {{.ptr = "a", .len = 1}};
    for (int row = 0; row < 3; row++) {
        struct td_controllers_options options = frame_options(&f, "a");
        const char *expected = NULL;
        if (row == 0) {
            memset(options.has, 0, sizeof(options.has));
            expected = "controllers: the list names no controller";
        } else if (row == 1) {
            options.vpa_namespace = TD_STR("b");
            options.ignored_namespaces = ignored;
            options.ignored_count = 1;
            expected = "vpa-object-namespace and ignored-vpa-object-namespaces exclude each other";
        } else {
            options.leader.renew_deadline = options.leader.lease_duration;
            expected = "renew";
        }
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_controllers_new(&options, &f.first, &err), TD_INVALID);
        frame_assert_has(err.message, expected);
        assert_null(f.first);
    }
    frame_done(&f);
}

/* Upstream's program renews its lease every two seconds for a while. */
static void frame_renew(struct frame_bed *f, const char *lease, int64_t seconds)
{
    char path[256];
    (void)snprintf(path, sizeof(path), LEASES "/%s", lease);
    for (int64_t at = 0; at < seconds; at += 2) {
        char spec[256];
        (void)snprintf(spec, sizeof(spec),
                       "{'spec':{'holderIdentity':'vpa-7d_x','leaseDurationSeconds':15,"
                       "'leaseTransitions':%lld}}",
                       (long long)f->renewals++);
        assert_int_equal(control_bed_patch(&f->c, path, spec), 200);
        control_bed_run(&f->c, 2 * TD_SECOND);
    }
}

static void frame_upstream(struct frame_bed *f, const char *lease)
{
    char object[256];
    (void)snprintf(object, sizeof(object), "{'metadata':{'name':'%s'},'spec':{}}", lease);
    control_bed_create(&f->c, LEASES, object);
}

/* While upstream's updater is alive ours holds, and no other controller; it begins when upstream's
 * is gone, and steps back when it comes again. */
static void test_upstream_goes_first(void **state)
{
    (void)state;
    struct frame_bed f;
    frame_init(&f);
    frame_upstream(&f, "vpa-updater");
    frame_renew(&f, "vpa-updater", 2);
    struct td_controllers_options options = frame_options(&f, "a");
    options.watches_upstream = true;
    assert_int_equal(td_controllers_new(&options, &f.first, NULL), TD_OK);
    td_controllers_start(f.first);
    for (int round = 0; round < 2; round++) {
        frame_renew(&f, "vpa-updater", 30);
        assert_false(td_controllers_is_leading(f.first, TD_CONTROLLER_UPDATER));
        assert_true(td_controllers_is_leading(f.first, TD_CONTROLLER_RECOMMENDER));
        td_auto_buf text = td_buf_capped((size_t)1 << 20);
        td_controllers_write_metrics(f.first, &text);
        frame_assert_has(td_buf_str(&text).ptr,
                         "\ntandem_held_by_upstream{controller=\"updater\"} 1\n");
        td_auto_buf ready = td_buf_capped(4096);
        assert_true(td_controllers_is_ready(f.first, &ready));
        control_bed_run(&f.c, 30 * TD_SECOND); /* it died without a word */
        assert_true(td_controllers_is_leading(f.first, TD_CONTROLLER_UPDATER));
        frame_assert_text(frame_holder(&f, "tandem-updater"), "a");
        frame_assert_text(frame_holder(&f, "vpa-updater"), "vpa-7d_x");
    }
    frame_stop(&f, &f.first);
    frame_done(&f);
}

/* A lease that upstream's recommender gave back, or that has no holder, holds no controller of ours
 * back. */
static void test_a_released_lease_is_no_sign_of_life(void **state)
{
    (void)state;
    struct frame_bed f;
    frame_init(&f);
    frame_upstream(&f, "vpa-recommender-lease");
    struct td_controllers_options options = frame_options(&f, "a");
    options.watches_upstream = true;
    assert_int_equal(td_controllers_new(&options, &f.first, NULL), TD_OK);
    td_controllers_start(f.first);
    control_bed_run(&f.c, 5 * TD_SECOND);
    assert_int_equal(frame_leaders(f.first), frame_count());
    frame_stop(&f, &f.first);
    frame_done(&f);
}

static void frame_refused(void *context, const struct td_error *why)
{
    *(struct td_error *)context = *why;
}

/* A process on its own does not wait: it says what is in its way. */
static void test_one_alone_is_refused_beside_upstream(void **state)
{
    (void)state;
    struct frame_bed f;
    struct td_error why = TD_ERROR_INIT;
    frame_init(&f);
    frame_upstream(&f, "vpa-updater");
    frame_renew(&f, "vpa-updater", 2);
    struct td_controllers_options options = frame_options(&f, TD_IDENTITY_ALONE "vm_a");
    options.leader.is_on = false;
    options.leader.is_alone = true;
    options.watches_upstream = true;
    options.refused = frame_refused;
    options.refused_context = &why;
    assert_int_equal(td_controllers_new(&options, &f.first, NULL), TD_OK);
    td_controllers_start(f.first);
    frame_renew(&f, "vpa-updater", 10);
    assert_int_equal(frame_leaders(f.first), 0);
    assert_string_equal(why.message,
                        "upstream's vpa-updater is alive: lease kube-system/vpa-updater is held "
                        "and renewed by 'vpa-7d_x'; stop it first, leave out updater with "
                        "--controllers, or take its place with --replace-upstream");
    frame_stop(&f, &f.first);
    frame_done(&f);
}

/* With --replace-upstream its leases are shared: their holder acts. */
static void test_upstream_is_replaced_by_its_own_leases(void **state)
{
    (void)state;
    struct frame_bed f;
    frame_init(&f);
    frame_upstream(&f, "vpa-updater");
    frame_renew(&f, "vpa-updater", 2);
    struct td_controllers_options options = frame_options(&f, "tandem-7d_a");
    options.replaces_upstream = true;
    options.watches_upstream = true;
    assert_int_equal(td_controllers_new(&options, &f.first, NULL), TD_OK);
    td_controllers_start(f.first);
    frame_renew(&f, "vpa-updater", 20);
    assert_false(td_controllers_is_leading(f.first, TD_CONTROLLER_UPDATER));
    frame_assert_text(frame_holder(&f, "vpa-recommender-lease"), "tandem-7d_a");
    control_bed_run(&f.c, 30 * TD_SECOND);
    assert_true(td_controllers_is_leading(f.first, TD_CONTROLLER_UPDATER));
    frame_assert_text(frame_holder(&f, "vpa-updater"), "tandem-7d_a");
    assert_null(control_bed_get(&f.c, LEASES "/tandem-updater"));
    frame_stop(&f, &f.first);
    frame_done(&f);
}

/* Who shares leases, and who is of another installation. */
static void test_installations_are_told_apart(void **state)
{
    static const struct {
        const char *own;
        const char *holder;
        bool is_foreign;
    } rows[] = {
        {"tandem-7d_a", "", false},
        {"tandem-7d_a", "tandem-7d_a", false},
        {"tandem-7d_a", "tandem-7d_b", false}, /* replicas of one Deployment */
        {"tandem-7d_a", "tandem-alone_vm_a", true},
        {"tandem-7d_a", "tandem-outside_vm_a", true},
        {"tandem-alone_vm_a", "tandem-alone_vm_a", false},
        {"tandem-alone_vm_a", "tandem-alone_vm_b", true},
        {"tandem-alone_vm_a", "tandem-outside_vm_a", true},
        {"tandem-alone_vm_a", "vpa-recommender-1_x", true},
        {"tandem-outside_vm_a", "tandem-outside_vm_b", false}, /* they elect one of them */
        {"tandem-outside_vm_a", "tandem-7d_a", true},
        {"tandem-outside_vm_a", "tandem-alone_vm_b", true},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        assert_int_equal(
            td_leader_is_foreign(td_str_from(rows[i].own), td_str_from(rows[i].holder)),
            rows[i].is_foreign);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_start_at_once),
        cmocka_unit_test(test_a_stop_hands_over),
        cmocka_unit_test(test_leases_are_as_they_were_asked_for),
        cmocka_unit_test(test_a_death_is_followed),
        cmocka_unit_test(test_an_outage_stops_the_leader),
        cmocka_unit_test(test_ready_says_what_is_missing),
        cmocka_unit_test(test_silence_is_noticed),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_wrong_settings),
        cmocka_unit_test(test_installations_are_told_apart),
        cmocka_unit_test(test_upstream_goes_first),
        cmocka_unit_test(test_a_released_lease_is_no_sign_of_life),
        cmocka_unit_test(test_one_alone_is_refused_beside_upstream),
        cmocka_unit_test(test_upstream_is_replaced_by_its_own_leases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
