/*
 * The estimators with rules of their own on recorded use and on a cluster: one harness gives the
 * same samples to the policy of `tandem replay` and to recommender and updater on a local cluster
 * in virtual time, window by window, and both must ask for the same requests in the same windows.
 * The two controllers are processes of their own, which know of each other by the API alone, and
 * are started anew now and then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/os/file.h"
#include "control/controllers.h"
#include "decide/vertical/estimator/estimator.h"
#include "decide/vertical/estimator/track.h"
#include "decide/vertical/resourcelist.h"
#include "local/engine/engine.h"
#include "sim/replay/replay.h"
#include "sim/replay/replay_policy.h"
#include "support/control_bed.h"

#define VPAS "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
#define CHECKPOINTS                                                                                \
    "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalercheckpoints"
#define PODS "/api/v1/namespaces/default/pods"
#define MIB (INT64_C(1) << 20)
#define KIB INT64_C(1024)
#define WINDOW (5 * TD_MINUTE)
#define WINDOWS_A_DAY 288
#define SEEDS 3
#define DAYS 5

#define BED_REQUEST_CPU 400
#define BED_REQUEST_MEMORY (256 * MIB)

/* What is tried: an estimator, and how much the template's memory limit is above its request. */
struct live_case {
    const struct td_estimator *estimator;
    int64_t limit_permille;
    const struct td_trace *trace; /* recorded use, window by window; NULL: a made-up load */
};

static const struct live_case adaptive_case = {.estimator = &td_estimator_adaptive,
                                               .limit_permille = 1000};

struct live_bed {
    struct control_bed c;
    const struct live_case *tried;
    struct td_controllers *recommender;
    struct td_controllers *updater;
    bool is_stopped;
    char pod[128];
    td_time begin;             /* of the first window */
    td_duration recommends_at; /* in a window: the recommender metrics_client, */
    td_duration updates_at;    /* and then the updater acts */
    int64_t cpu_milli;         /* levels of the day */
    int64_t memory_bytes;
    uint64_t dice;
};

static struct td_controllers *live_start(struct live_bed *l, enum td_controller_kind kind)
{
    const struct td_transport_local_options local = {
        .api = l->c.bed.api,
        .loop = l->c.bed.loop,
        .user = TD_STR("kubernetes-admin"),
        .group = TD_STR("system:masters"),
        .user_agent = TD_STR("tandem"),
    };
    struct td_controllers_options options = td_controllers_options_default();
    memset(options.has, 0, sizeof(options.has));
    options.has[kind] = true;
    options.loop = l->c.bed.loop;
    options.transport = td_transport_local_new(&local);
    options.recommend.interval = WINDOW;
    options.update.interval = WINDOW;
    options.update.uses_lease = false;
    struct td_controllers *controllers = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_controllers_new(&options, &controllers, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    td_controllers_start(controllers);
    return controllers;
}

static void live_stopped(void *context)
{
    *(bool *)context = true;
}

static void live_stop(struct live_bed *l, struct td_controllers **controllers)
{
    l->is_stopped = false;
    td_controllers_stop(*controllers, live_stopped, &l->is_stopped);
    control_bed_run(&l->c, TD_SECOND);
    assert_true(l->is_stopped);
    td_controllers_free(*controllers);
    *controllers = NULL;
}

static td_time live_now(const struct live_bed *l)
{
    return td_clock_wall(&l->c.bed.clock);
}

static void live_run_until(struct live_bed *l, td_time at)
{
    assert_true(at >= live_now(l));
    control_bed_run(&l->c, at - live_now(l));
}

static int64_t live_limit(const struct live_bed *l, int64_t request_bytes)
{
    return request_bytes * l->tried->limit_permille / 1000;
}

/* What the template asks for: of a trace what was really set in its first window. */
static struct replay_request live_template(const struct live_case *tried)
{
    return (struct replay_request){
        .cpu_milli = tried->trace ? tried->trace->items[0].cpu_limit_milli : BED_REQUEST_CPU,
        .memory_bytes =
            tried->trace ? tried->trace->items[0].memory_limit_bytes : BED_REQUEST_MEMORY};
}

static void live_deploy(struct live_bed *l)
{
    struct replay_request request = live_template(l->tried);
    char text[1024];
    (void)snprintf(
        text, sizeof(text),
        "{'metadata':{'name':'web'},'spec':{'replicas':1,'selector':{'matchLabels':{'app':'web'}},"
        "'template':{'metadata':{'labels':{'app':'web'}},'spec':{'containers':[{'name':'app',"
        "'image':'nginx','resources':{'requests':{'cpu':'%lldm','memory':'%lld'},'limits':{"
        "'memory':'%lld'}}}]}}}}",
        (long long)request.cpu_milli, (long long)request.memory_bytes,
        (long long)live_limit(l, request.memory_bytes));
    control_bed_create(&l->c, "/apis/apps/v1/namespaces/default/deployments", text);
    (void)snprintf(
        text, sizeof(text),
        "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler','metadata':{'name':"
        "'web','annotations':{'tandem.dev/estimator':'%s'}},'spec':{'targetRef':{"
        "'apiVersion':'apps/v1','kind':'Deployment','name':'web'},'updatePolicy':{'updateMode':"
        "'InPlaceOrRecreate','minReplicas':1}}}",
        l->tried->estimator->name);
    control_bed_create(&l->c, VPAS, text);
    control_bed_run(&l->c, 10 * TD_SECOND);
    const struct td_json *list = td_json_get(control_bed_get(&l->c, PODS), TD_STR("items"));
    assert_int_equal(list->count, 1);
    td_str name = td_json_get_str(td_json_get(td_json_at(list, 0), TD_STR("metadata")),
                                  TD_STR("name"), TD_STR_EMPTY);
    (void)snprintf(l->pod, sizeof(l->pod), "%.*s", TD_STR_ARG(name));
}

/* Both controllers begin so that their passes fall into the windows, which begin at midnight. */
static void live_init(struct live_bed *l, const struct live_case *tried, uint64_t seed)
{
    *l = (struct live_bed){
        .tried = tried, .recommends_at = 2 * TD_MINUTE, .updates_at = 3 * TD_MINUTE, .dice = seed};
    control_bed_init(&l->c);
    int64_t day = 86400 * TD_SECOND;
    l->begin = (live_now(l) / day + 1) * day;
    live_run_until(l, l->begin - WINDOW + TD_MINUTE);
    live_deploy(l);
    live_run_until(l, l->begin - WINDOW + l->recommends_at);
    l->recommender = live_start(l, TD_CONTROLLER_RECOMMENDER);
    live_run_until(l, l->begin - WINDOW + l->updates_at);
    l->updater = live_start(l, TD_CONTROLLER_UPDATER);
    live_run_until(l, l->begin);
}

static void live_done(struct live_bed *l)
{
    live_stop(l, &l->updater);
    live_stop(l, &l->recommender);
    control_bed_done(&l->c);
}

/* The requests in the pod's spec. */
static struct replay_request live_request(struct live_bed *l)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *pod = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_edit_get(l->c.bed.api, edit_bed_resource(&l->c.bed, "v1", "Pod"), TD_STR("default"),
                    td_str_from(l->pod), &arena, &pod, &err) != TD_OK) {
        fail_msg("%s: %s", l->pod, err.message); /* it was evicted */
    }
    struct td_pod decoded;
    assert_int_equal(td_pod_decode(&arena, pod, &decoded, &err), TD_OK);
    struct td_resource_list requests = decoded.containers[0].spec_requests;
    struct td_quantity cpu = td_resource_list_value(&requests, TD_CPU);
    struct td_quantity memory = td_resource_list_value(&requests, TD_MEMORY);
    return (struct replay_request){.cpu_milli = td_quantity_milli(&cpu),
                                   .memory_bytes = td_quantity_value(&memory)};
}

static void live_want(struct live_bed *l, double cpu_milli, double memory_bytes)
{
    struct td_engine *engine = td_cluster_engine(l->c.cluster);
    struct td_engine_pod *pod = td_engine_find_pod(engine, TD_STR("default"), td_str_from(l->pod));
    assert_non_null(pod);
    struct td_engine_container *container = td_engine_find(pod, TD_STR("app"));
    for (int second = 0; !container && second < 60; second++) { /* it is started again */
        control_bed_run(&l->c, TD_SECOND);
        container = td_engine_find(pod, TD_STR("app"));
    }
    assert_non_null(container);
    td_engine_set_fixed(container,
                        &(struct td_want){.cpu_milli = cpu_milli, .memory_bytes = memory_bytes});
}

/* The window's use on the cluster. More memory than its limit, which is its request, kills the
 * container once; then it uses all that it may. */
static void live_use(struct live_bed *l, const struct replay_sample *sample)
{
    if (sample->is_oom) {
        live_want(l, (double)sample->cpu_milli, (double)(sample->memory_bytes + 64 * MIB));
        control_bed_run(&l->c, 3 * TD_SECOND);
    }
    live_want(l, (double)sample->cpu_milli, (double)sample->memory_bytes);
}

static int64_t live_roll(struct live_bed *l, int64_t below)
{
    l->dice = l->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((l->dice >> 33) % (uint64_t)below);
}

static struct replay_sample live_recorded(const struct live_bed *l, size_t window)
{
    const struct td_trace_window *recorded = &l->tried->trace->items[window];
    return (struct replay_sample){.index = window,
                                  .cpu_milli = recorded->cpu_milli,
                                  .memory_bytes = recorded->memory_bytes_max / KIB * KIB};
}

/* A load with a day's rhythm, noise and spikes; each day has a level of its own. */
static struct replay_sample live_load(struct live_bed *l, size_t window)
{
    if (window % WINDOWS_A_DAY == 0) {
        l->cpu_milli = 80 + live_roll(l, 700);
        l->memory_bytes = (120 + live_roll(l, 300)) * MIB;
    }
    int64_t hour = (int64_t)(window % WINDOWS_A_DAY) / 12;
    int64_t rhythm = hour < 12 ? hour : 24 - hour;
    int64_t cpu = l->cpu_milli * (60 + 5 * rhythm) / 100;
    cpu += live_roll(l, cpu / 6 + 1);
    cpu *= live_roll(l, 100) == 0 ? 3 : 1;
    int64_t memory = l->memory_bytes + 2 * rhythm * MIB + live_roll(l, 6 * MIB);
    memory += live_roll(l, 400) == 0 ? 120 * MIB : 0;
    return (struct replay_sample){
        .index = window, .cpu_milli = cpu, .memory_bytes = memory / KIB * KIB};
}

/* What replay makes of a window that the container of this request would have shown. */
static void live_cut(const struct live_bed *l, const struct replay_request *request,
                     struct replay_sample *sample)
{
    sample->time = l->begin / TD_SECOND + (int64_t)sample->index * (WINDOW / TD_SECOND);
    sample->limit_bytes = live_limit(l, request->memory_bytes);
    sample->is_oom = sample->memory_bytes > sample->limit_bytes;
    if (sample->is_oom) {
        sample->memory_bytes = sample->limit_bytes / KIB * KIB; /* metrics are in whole Ki */
    }
}

/* Right after its pass: the next one is a window later then. */
static void live_restart_one(struct live_bed *l, td_time window, enum td_controller_kind kind)
{
    bool is_updater = kind == TD_CONTROLLER_UPDATER;
    struct td_controllers **one = is_updater ? &l->updater : &l->recommender;
    td_duration *at = is_updater ? &l->updates_at : &l->recommends_at;
    live_run_until(l, window + *at + TD_SECOND);
    live_stop(l, one);
    *at = live_now(l) - window;
    *one = live_start(l, kind);
}

static void live_restart(struct live_bed *l, size_t window)
{
    td_time began = l->begin + (int64_t)window * WINDOW;
    if (window % 311 == 200) {
        live_restart_one(l, began, TD_CONTROLLER_RECOMMENDER);
    }
    if (window % 97 == 50) {
        live_restart_one(l, began, TD_CONTROLLER_UPDATER);
    }
}

static void live_compare(const struct live_bed *l, uint64_t seed, size_t window,
                         const struct replay_request *replayed, const struct replay_request *live)
{
    if (replayed->cpu_milli != live->cpu_milli || replayed->memory_bytes != live->memory_bytes) {
        fail_msg(
            "%s seed %llu day %zu window %zu: replay asks for %lldm %lld, the cluster for %lldm "
            "%lld",
            l->tried->estimator->name, (unsigned long long)seed, window / WINDOWS_A_DAY,
            window % WINDOWS_A_DAY, (long long)replayed->cpu_milli,
            (long long)replayed->memory_bytes, (long long)live->cpu_milli,
            (long long)live->memory_bytes);
    }
}

/* Restarts of the container, as its status has them. */
static int32_t live_restarts(struct live_bed *l)
{
    char path[256];
    (void)snprintf(path, sizeof(path), PODS "/%s", l->pod);
    const struct td_json *pod = control_bed_get(&l->c, path);
    struct td_pod decoded;
    assert_int_equal(td_pod_decode(&l->c.bed.arena, pod, &decoded, NULL), TD_OK);
    return decoded.containers[0].restart_count;
}

/* How often a load made the requests change, and the container was killed. */
struct live_figures {
    size_t changes;
    int32_t kills;
};

static struct live_figures live_windows(const struct live_case *tried, uint64_t seed, size_t count)
{
    struct live_bed l;
    struct live_figures figures = {.changes = 0};
    live_init(&l, tried, seed);
    td_auto_free void *policy = td_alloc_zero(1, replay_estimator.state_bytes);
    struct td_trace_window first = {.time = l.begin / TD_SECOND};
    replay_estimator.init(policy, &(struct td_trace){.items = &first, .count = 1},
                          &(struct td_replay_policy){.estimator = tried->estimator,
                                                     .limit_permille = tried->limit_permille});
    struct replay_request request = live_template(tried);
    for (size_t window = 0; window < count; window++) {
        struct replay_sample sample =
            tried->trace ? live_recorded(&l, window) : live_load(&l, window);
        live_cut(&l, &request, &sample);
        figures.kills += sample.is_oom;
        live_use(&l, &sample);
        live_restart(&l, window);
        struct replay_request before = request;
        replay_estimator.after(policy, &sample, &request);
        figures.changes +=
            request.cpu_milli != before.cpu_milli || request.memory_bytes != before.memory_bytes;
        live_run_until(&l, l.begin + (int64_t)(window + 1) * WINDOW);
        struct replay_request live = live_request(&l);
        live_compare(&l, seed, window, &request, &live);
    }
    assert_int_equal(live_restarts(&l), figures.kills);
    replay_estimator.done(policy);
    live_done(&l);
    return figures;
}

/* The same samples lead to the same requests in the same windows, kills and restarts included. */
static void live_check(const struct live_case *tried, size_t changes_min, int32_t kills_min)
{
    struct live_figures sum = {.changes = 0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct live_figures figures = live_windows(tried, seed, DAYS * WINDOWS_A_DAY);
        sum.changes += figures.changes;
        sum.kills += figures.kills;
    }
    print_message("%s: %d loads of %d days: %zu changes, %d kills\n", tried->estimator->name, SEEDS,
                  DAYS, sum.changes, sum.kills);
    assert_true(sum.changes >= changes_min); /* there is something to decide */
    assert_true(sum.kills >= kills_min);
}

static void test_the_updater_follows_adaptive_as_the_replay_does(void **state)
{
    (void)state;
    live_check(&adaptive_case, 20, 3);
}

static void test_the_updater_follows_track_as_the_replay_does(void **state)
{
    (void)state;
    live_check(&(struct live_case){.estimator = &td_estimator_track, .limit_permille = 1000}, 60,
               3);
}

/* With room above the request memory is close, and kills come at the limit. */
static void test_the_updater_follows_track_with_room_for_memory(void **state)
{
    (void)state;
    live_check(
        &(struct live_case){.estimator = &td_estimator_track_careful, .limit_permille = 1250}, 60,
        1);
}

/* A kill before the recommender's first pass is told by the change of the pod and found again when
 * the pod is seen for the first time: it is one kill all the same. */
static void test_a_kill_before_the_first_pass_counts_once(void **state)
{
    (void)state;
    struct live_bed l;
    live_init(&l, &adaptive_case, 1);
    const struct replay_sample sample = {
        .cpu_milli = 100, .memory_bytes = BED_REQUEST_MEMORY, .is_oom = true};
    live_use(&l, &sample);
    live_run_until(&l, l.begin + WINDOW);
    assert_int_equal(live_restarts(&l), 1);
    const struct td_json *checkpoint = control_bed_get(&l.c, CHECKPOINTS "/web-app");
    td_str saved = td_json_get_str(td_json_get_path(checkpoint, "metadata.annotations"),
                                   TD_ADAPTIVE_ANNOTATION, TD_STR_EMPTY);
    struct td_json *tree = NULL;
    struct td_adaptive learnt;
    assert_int_equal(td_json_parse(&l.c.bed.arena, saved, NULL, &tree, NULL), TD_OK);
    assert_int_equal(td_adaptive_load(&learnt, tree, NULL), TD_OK);
    assert_int_equal(learnt.oom_count, 1);
    assert_int_equal(learnt.oom_floor, BED_REQUEST_MEMORY + 100 * MIB);
    live_done(&l);
}

/* The condition of that type in the VPA's status; its reason is empty when there is none. */
static struct td_vpa_condition live_condition(struct live_bed *l, td_str type)
{
    struct td_vpa vpa;
    const struct td_json *object = control_bed_get(&l->c, VPAS "/web");
    assert_int_equal(td_vpa_decode(&l->c.bed.arena, object, &vpa, NULL), TD_OK);
    const struct td_vpa_condition *found =
        td_vpa_condition_find(vpa.conditions, vpa.condition_count, type);
    return found ? *found : (struct td_vpa_condition){.reason = TD_STR_EMPTY};
}

/* One window of use, after the VPA was changed. */
static void live_change(struct live_bed *l, size_t window, const char *patch)
{
    if (patch) {
        assert_int_equal(control_bed_patch(&l->c, VPAS "/web", patch), 200);
    }
    const struct replay_sample sample = {.cpu_milli = 100, .memory_bytes = 100 * MIB};
    live_use(l, &sample);
    live_run_until(l, l->begin + (int64_t)(window + 1) * WINDOW);
}

/* Track needs a mode that resizes: without one adaptive stands in, and the status says why; a risk
 * that there is not is said too. */
static void test_the_status_says_why_track_is_not_used(void **state)
{
    (void)state;
    struct live_bed l;
    const struct live_case tried = {.estimator = &td_estimator_track, .limit_permille = 1000};
    live_init(&l, &tried, 1);
    live_change(&l, 0, NULL);
    assert_true(td_str_equal(live_condition(&l, TD_TRACK_CONDITION).reason, TD_STR("Balanced")));
    assert_true(td_str_equal(live_condition(&l, TD_ADAPTIVE_CONDITION).reason, TD_STR("Measured")));
    live_change(&l, 1, "{'spec':{'updatePolicy':{'updateMode':'Recreate'}}}");
    assert_int_equal(live_condition(&l, TD_TRACK_CONDITION).reason.len, 0);
    struct td_vpa_condition instead = live_condition(&l, TD_ADAPTIVE_CONDITION);
    assert_true(td_str_equal(instead.reason, TD_STR("InsteadOfTrack")));
    assert_true(td_str_starts_with(
        instead.message, TD_STR("container 'app' is sized by adaptive instead of track, because "
                                "its update mode does not resize pods in place; ")));
    live_change(&l, 2,
                "{'metadata':{'annotations':{'tandem.dev/risk':'bold'}},"
                "'spec':{'updatePolicy':{'updateMode':'InPlaceOrRecreate'}}}");
    assert_true(td_str_equal(live_condition(&l, TD_TRACK_CONDITION).reason, TD_STR("Balanced")));
    assert_true(td_str_equal(live_condition(&l, TD_STR("EstimatorUnknown")).message,
                             TD_STR("annotation tandem.dev/risk: 'bold': use one of balanced, "
                                    "careful, frugal, calm; track is used")));
    live_change(&l, 3, "{'metadata':{'annotations':{'tandem.dev/risk':'calm'}}}");
    assert_true(td_str_equal(live_condition(&l, TD_TRACK_CONDITION).reason, TD_STR("Calm")));
    assert_int_equal(live_condition(&l, TD_STR("EstimatorUnknown")).reason.len, 0);
    live_done(&l);
}

/* Traces that the command line names. */
static struct td_trace_set live_traces;

/* Recorded use, its windows one after another: what replay decides the cluster does. */
static void test_the_updater_follows_recorded_use_as_the_replay_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < live_traces.traces.count; i++) {
        const struct td_trace *trace = &live_traces.traces.items[i];
        const struct live_case tried = {
            .estimator = &td_estimator_track, .limit_permille = 1000, .trace = trace};
        struct live_figures figures = live_windows(&tried, 1, trace->count);
        print_message("%.*s: %zu windows, %zu changes, %d kills\n", TD_STR_ARG(trace->name),
                      trace->count, figures.changes, figures.kills);
        assert_true(figures.changes > 0);
    }
}

static int live_run_traces(int count, char **paths)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_updater_follows_recorded_use_as_the_replay_does),
    };
    td_auto_arena arena;
    td_arena_init(&arena, (size_t)count * TD_TRACE_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    int code = TD_OK;
    td_trace_set_init(&live_traces);
    for (int i = 0; i < count && code == TD_OK; i++) {
        td_str text;
        code = td_file_read(paths[i], &arena, TD_TRACE_BYTES_MAX, &text, &err);
        code = code < 0 ? code : td_trace_read(&live_traces, td_str_from(paths[i]), text, &err);
    }
    code = code < 0 ? code : td_trace_set_finish(&live_traces, &err);
    if (code < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
    }
    int failed = code < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
    td_trace_set_done(&live_traces);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        return live_run_traces(argc - 1, argv + 1);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kill_before_the_first_pass_counts_once),
        cmocka_unit_test(test_the_status_says_why_track_is_not_used),
        cmocka_unit_test(test_the_updater_follows_adaptive_as_the_replay_does),
        cmocka_unit_test(test_the_updater_follows_track_as_the_replay_does),
        cmocka_unit_test(test_the_updater_follows_track_with_room_for_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
