/* The recommender where it is better than upstream, each row of docs/deviations.md with a test. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "decide/vertical/recommender/oom_annotation.h"
#include "decide/vertical/recommender/recommender.h"
#include "kube/quantity/quantity.h"

#define START ((td_time)1772323200 * TD_SECOND) /* 2026-03-01 */
#define MIB ((int64_t)1 << 20)

/* One namespace, one VPA, one pod with one container; tests change what they are about. */
struct stage {
    struct td_arena arena;
    struct td_recommender *recommender;
    struct td_vpa vpa;
    struct td_container_policy policy;
    struct td_selector selector;
    struct td_tracked_pod *pod;
};

static void stage_link(struct stage *stage, const char *selector, td_time now)
{
    assert_int_equal(
        td_selector_parse(&stage->arena, td_str_from(selector), &stage->selector, NULL), TD_OK);
    const struct td_vpa_link link = {
        .vpa = &stage->vpa, .target_selector = &stage->selector, .target = TD_STR_EMPTY};
    assert_int_equal(td_recommender_set_vpa(stage->recommender, &link, now, NULL), TD_OK);
}

static struct td_tracked_pod *stage_pod_started(struct stage *stage, const char *name,
                                                const char *role, td_time started)
{
    const struct td_label labels[] = {{TD_STR("app"), TD_STR("a")},
                                      {TD_STR("role"), td_str_from(role)}};
    const struct td_observed_pod observed = {.namespace = TD_STR("ns"),
                                             .name = td_str_from(name),
                                             .labels = {.items = labels, .count = 2},
                                             .target = TD_STR_EMPTY,
                                             .phase = TD_POD_RUNNING,
                                             .started = started};
    struct td_tracked_pod *pod = NULL;
    assert_int_equal(td_recommender_set_pod(stage->recommender, &observed, START, &pod, NULL),
                     TD_OK);
    assert_int_equal(
        td_recommender_set_container(stage->recommender, &pod, TD_STR("app"), 0, START, NULL),
        TD_OK);
    return pod;
}

static struct td_tracked_pod *stage_pod(struct stage *stage, const char *name, const char *role)
{
    return stage_pod_started(stage, name, role, 0);
}

static void stage_init(struct stage *stage)
{
    struct td_vertical_config config = td_vertical_config_default();
    config.per_vpa_config = true;
    *stage = (struct stage){.policy = {.container_name = TD_STR("app")}};
    td_arena_init(&stage->arena, SIZE_MAX);
    stage->recommender = td_recommender_new(&config);
    stage->vpa = (struct td_vpa){.meta = {.name = TD_STR("v"),
                                          .namespace = TD_STR("ns"),
                                          .created = TD_INSTANT_ZERO,
                                          .generation = 1},
                                 .target_kind = TD_STR("Deployment"),
                                 .target_name = TD_STR("d"),
                                 .target_api_version = TD_STR("apps/v1"),
                                 .mode = TD_VPA_RECREATE};
    stage->vpa.policy = (struct td_resource_policy){
        .is_set = true, .containers = &stage->policy, .container_count = 1};
    stage_link(stage, "app=a", START);
    stage->pod = stage_pod(stage, "p", "follower");
}

static void stage_done(struct stage *stage)
{
    td_recommender_free(stage->recommender);
    td_arena_done(&stage->arena);
}

static struct td_vpa_status stage_status(struct stage *stage, td_time now)
{
    struct td_vpa_status status;
    assert_int_equal(td_recommender_status(stage->recommender, &stage->arena, &stage->vpa, NULL,
                                           now, &status, NULL),
                     TD_OK);
    return status;
}

static int64_t memory_target(struct stage *stage, td_time now)
{
    struct td_vpa_status status = stage_status(stage, now);
    assert_int_equal(status.recommendation.container_count, 1);
    return td_quantity_value(
        td_resource_list_get(&status.recommendation.containers[0].target, TD_STR("memory")));
}

static enum td_feed memory_sample(struct stage *stage, td_time time, int64_t bytes)
{
    return td_recommender_sample(stage->recommender, stage->pod, TD_STR("app"), TD_LEARN_MEMORY,
                                 time, bytes, time);
}

/* A first sample of 0 bytes does not close the window to what follows. */
static void test_zero_first_sample_does_not_block_a_window(void **unused)
{
    struct stage stage;
    (void)unused;
    stage_init(&stage);
    assert_int_equal(memory_sample(&stage, START, 0), TD_FEED_TAKEN);
    assert_int_equal(memory_sample(&stage, START + TD_MINUTE, 900 * MIB), TD_FEED_TAKEN);
    assert_true(memory_target(&stage, START + TD_HOUR) > 900 * MIB);
    stage_done(&stage);
}

/* An OOM in the window that a checkpoint leaves out is back after a restart. */
static void test_oom_survives_a_restart(void **unused)
{
    struct stage before;
    struct stage after;
    struct td_stored_checkpoint *stored = NULL;
    size_t count = 0;
    (void)unused;
    stage_init(&before);
    assert_int_equal(memory_sample(&before, START, 500 * MIB), TD_FEED_TAKEN);
    assert_int_equal(
        td_recommender_oom(before.recommender, before.pod, TD_STR("app"), START + TD_MINUTE,
                           &(struct td_oom_kill){.request_bytes = 800 * MIB}, START + TD_MINUTE),
        TD_FEED_TAKEN);
    int64_t target = memory_target(&before, START + 2 * TD_MINUTE);
    assert_true(target > 960 * MIB);
    assert_int_equal(td_recommender_store(before.recommender, &before.arena, TD_STR("ns"),
                                          TD_STR("v"), START + 2 * TD_MINUTE, &stored, &count,
                                          NULL),
                     TD_OK);
    assert_int_equal(count, 1);
    stage_init(&after);
    assert_int_equal(td_recommender_load(after.recommender, TD_STR("ns"), &stored[0].checkpoint,
                                         stored[0].annotations, START + TD_HOUR, NULL),
                     TD_OK);
    assert_int_equal(memory_target(&after, START + TD_HOUR), target);
    struct td_vpa_status status = stage_status(&after, START + TD_HOUR);
    assert_int_equal(status.accounts[0].ooms, 1);
    stage_done(&before);
    stage_done(&after);
}

/* Knowledge stays when pods and target are gone for weeks, without a single CPU sample. */
static void test_oom_survives_pods_and_garbage_collection(void **unused)
{
    struct stage stage;
    (void)unused;
    stage_init(&stage);
    assert_int_equal(td_recommender_oom(stage.recommender, stage.pod, TD_STR("app"), START,
                                        &(struct td_oom_kill){.request_bytes = 800 * MIB}, START),
                     TD_FEED_TAKEN);
    int64_t target = memory_target(&stage, START);
    td_recommender_delete_pod(stage.recommender, TD_STR("ns"), TD_STR("p"));
    td_recommender_gc(stage.recommender, START + 30 * 24 * TD_HOUR, NULL);
    assert_int_equal(memory_target(&stage, START + 30 * 24 * TD_HOUR), target);
    stage_done(&stage);
}

/* A bump stops at maxAllowed and the status says so, until maxAllowed is raised and it OOMs anew.
 */
static void test_oom_bump_stops_at_max_allowed(void **unused)
{
    struct stage stage;
    struct td_resource_amount most = {.name = TD_STR("memory")};
    (void)unused;
    stage_init(&stage);
    most.quantity = td_quantity_new(600 * MIB, TD_QUANTITY_BINARY_SI);
    stage.policy.max_allowed = (struct td_resource_list){.items = &most, .count = 1};
    stage_link(&stage, "app=a", START);
    for (int i = 0; i < 5; i++) {
        td_time at = START + i * TD_HOUR;
        assert_int_equal(td_recommender_oom(stage.recommender, stage.pod, TD_STR("app"), at,
                                            &(struct td_oom_kill){.request_bytes = 580 * MIB}, at),
                         TD_FEED_OOM_CAPPED);
    }
    struct td_vpa_status status = stage_status(&stage, START + 6 * TD_HOUR);
    assert_int_equal(status.condition_count, 2);
    assert_true(td_str_equal(status.conditions[0].type, TD_STR("OOMBumpLimited")));
    assert_true(td_str_equal(status.conditions[0].status, TD_STR("True")));
    most.quantity = td_quantity_new(2000 * MIB, TD_QUANTITY_BINARY_SI);
    stage_link(&stage, "app=a", START);
    assert_int_equal(
        td_recommender_oom(stage.recommender, stage.pod, TD_STR("app"), START + 7 * TD_HOUR,
                           &(struct td_oom_kill){.request_bytes = 600 * MIB}, START + 7 * TD_HOUR),
        TD_FEED_TAKEN);
    assert_int_equal(stage_status(&stage, START + 8 * TD_HOUR).condition_count, 1);
    stage_done(&stage);
}

/* Editing the selector keeps what was learnt. */
static void test_history_survives_a_selector_edit(void **unused)
{
    struct stage stage;
    (void)unused;
    stage_init(&stage);
    assert_int_equal(memory_sample(&stage, START, 900 * MIB), TD_FEED_TAKEN);
    int64_t target = memory_target(&stage, START);
    stage_link(&stage, "app=other", START);
    assert_int_equal(stage_status(&stage, START).pod_count, 0);
    assert_int_equal(memory_target(&stage, START), target);
    stage_link(&stage, "app=a,role=follower", START);
    assert_int_equal(stage_status(&stage, START).pod_count, 1);
    assert_int_equal(memory_target(&stage, START), target);
    stage_done(&stage);
}

/* Settings of a VPA end with the settings. */
static void test_per_vpa_settings_do_not_stick(void **unused)
{
    struct stage stage;
    (void)unused;
    stage_init(&stage);
    stage.policy.has_oom_bump_up_ratio = true;
    stage.policy.oom_bump_up_ratio = td_quantity_new(3, TD_QUANTITY_DECIMAL_SI);
    stage_link(&stage, "app=a", START);
    stage.policy.has_oom_bump_up_ratio = false;
    stage_link(&stage, "app=a", START);
    assert_int_equal(td_recommender_oom(stage.recommender, stage.pod, TD_STR("app"), START,
                                        &(struct td_oom_kill){.request_bytes = 1000 * MIB}, START),
                     TD_FEED_TAKEN);
    assert_int_equal(stage_status(&stage, START).accounts[0].oom_bytes, 1200 * MIB);
    stage_done(&stage);
}

/* A sample belongs to the VPA of the moment; a pod that moves starts a new window there. */
static void test_samples_follow_the_selector_of_the_moment(void **unused)
{
    struct stage stage;
    (void)unused;
    stage_init(&stage);
    stage_link(&stage, "role=follower", START);
    struct td_vpa leader = stage.vpa;
    leader.meta.name = TD_STR("w");
    struct td_selector selector;
    assert_int_equal(td_selector_parse(&stage.arena, TD_STR("role=leader"), &selector, NULL),
                     TD_OK);
    const struct td_vpa_link link = {
        .vpa = &leader, .target_selector = &selector, .target = TD_STR_EMPTY};
    assert_int_equal(td_recommender_set_vpa(stage.recommender, &link, START, NULL), TD_OK);
    assert_int_equal(memory_sample(&stage, START, 300 * MIB), TD_FEED_TAKEN);
    int64_t before = memory_target(&stage, START);
    stage.pod = stage_pod(&stage, "p", "leader");
    assert_true(td_str_equal(td_recommender_vpa_of(stage.recommender, &stage.arena, stage.pod),
                             TD_STR("ns/w")));
    assert_int_equal(memory_sample(&stage, START + TD_MINUTE, 2000 * MIB), TD_FEED_TAKEN);
    assert_int_equal(memory_target(&stage, START + TD_HOUR), before);
    stage.vpa.meta.name = TD_STR("w");
    assert_true(memory_target(&stage, START + TD_HOUR) > 2000 * MIB);
    stage_done(&stage);
}

/* Rollouts leave nothing behind. */
static void test_rollouts_do_not_grow_the_model(void **unused)
{
    struct stage stage;
    (void)unused;
    stage_init(&stage);
    for (int i = 0; i < 1000; i++) {
        char role[32];
        (void)snprintf(role, sizeof(role), "r%d", i);
        stage.pod = stage_pod(&stage, "p", role);
        assert_int_equal(memory_sample(&stage, START + i * TD_MINUTE, 300 * MIB), TD_FEED_TAKEN);
        assert_int_equal(td_recommender_aggregates(stage.recommender), 1);
        assert_int_equal(stage_status(&stage, START + i * TD_MINUTE).pod_count, 1);
    }
    stage_done(&stage);
}

static td_time newest(const struct stage *stage)
{
    return td_recommender_measured(stage->recommender, TD_STR("ns"), TD_STR("v")).newest;
}

/* A measurement from the future counts once, as of when it was read; those of a clock that was set
 * right count again. */
static void test_measurements_from_the_future_count_as_of_now(void **unused)
{
    (void)unused;
    static const struct {
        td_duration reported; /* minutes after START */
        td_duration now;
        enum td_feed fed;
        td_duration newest;
    } rows[] = {
        {1, 2, TD_FEED_TAKEN, 1},
        {60, 3, TD_FEED_TAKEN, 3},
        {60, 4, TD_FEED_DISCARDED, 3}, /* told again: no younger than before */
        {59, 5, TD_FEED_DISCARDED, 3},
        {61, 6, TD_FEED_TAKEN, 6},
        {7, 7, TD_FEED_TAKEN, 7}, /* the clock was set right */
        {7, 8, TD_FEED_DISCARDED, 7},
        {9, 9, TD_FEED_TAKEN, 9},
        {100, 30, TD_FEED_TAKEN, 30},
        {100, 200, TD_FEED_DISCARDED, 30}, /* told again when it is no longer the future */
    };
    struct stage stage;
    stage_init(&stage);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(td_recommender_sample(stage.recommender, stage.pod, TD_STR("app"),
                                               TD_LEARN_CPU, START + rows[i].reported * TD_MINUTE,
                                               500, START + rows[i].now * TD_MINUTE),
                         rows[i].fed);
        assert_int_equal(newest(&stage), START + rows[i].newest * TD_MINUTE);
    }
    stage_done(&stage);
}

/* One of ten years ahead neither outweighs what was learnt before nor closes memory windows, and a
 * checkpoint that bears such a time does not either. */
static void test_a_far_future_does_not_outweigh_the_past(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(memory_sample(&stage, START + i * 24 * TD_HOUR, 300 * MIB), TD_FEED_TAKEN);
    }
    int64_t before = memory_target(&stage, START + 50 * TD_HOUR);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(td_recommender_sample(stage.recommender, stage.pod, TD_STR("app"),
                                               TD_LEARN_MEMORY, START + 87600 * TD_HOUR, MIB,
                                               START + (73 + 24 * i) * TD_HOUR),
                         i == 0 ? TD_FEED_TAKEN : TD_FEED_DISCARDED);
    }
    assert_int_equal(memory_target(&stage, START + 100 * TD_HOUR), before);
    struct td_stored_checkpoint *stored;
    size_t count;
    assert_int_equal(td_recommender_store(stage.recommender, &stage.arena, TD_STR("ns"),
                                          TD_STR("v"), START, &stored, &count, NULL),
                     TD_OK);
    assert_int_equal(count, 1);
    stored[0].checkpoint.last_sample = td_time_to_instant(START + 1000 * TD_HOUR);
    assert_int_equal(td_recommender_load(stage.recommender, TD_STR("ns"), &stored[0].checkpoint,
                                         NULL, START + 100 * TD_HOUR, NULL),
                     TD_OK);
    assert_int_equal(newest(&stage), START + 100 * TD_HOUR);
    stage_done(&stage);
}

/* A workload of pods that grow: 300 MiB when they start, 900 MiB after three hours. */
struct crowd {
    struct stage stage;
    struct {
        char name[16];
        td_time started;
    } pods[32];
    size_t count;
};

static void crowd_add(struct crowd *crowd, size_t count, td_time started)
{
    for (size_t i = 0; i < count; i++) {
        char *name = crowd->pods[crowd->count].name;
        (void)snprintf(name, sizeof(crowd->pods[0].name), "web-%zu", crowd->count);
        crowd->pods[crowd->count++].started = started;
        (void)stage_pod_started(&crowd->stage, name, "web", started);
    }
}

static int64_t crowd_use(td_duration age)
{
    td_duration grown = age < 3 * TD_HOUR ? age : 3 * TD_HOUR;
    return (300 + 200 * grown / TD_HOUR) * MIB;
}

/* Minutes of measurements up to `to`, a status each as a pass has it; the least target of them. */
static int64_t crowd_run(struct crowd *crowd, td_time from, td_time to)
{
    int64_t least = INT64_MAX;
    for (td_time at = from; at < to; at += TD_MINUTE) {
        for (size_t i = 0; i < crowd->count; i++) {
            struct td_tracked_pod *pod = td_recommender_find_pod(
                crowd->stage.recommender, TD_STR("ns"), td_str_from(crowd->pods[i].name));
            (void)td_recommender_sample(crowd->stage.recommender, pod, TD_STR("app"), TD_LEARN_CPU,
                                        at, 100, at);
            (void)td_recommender_sample(crowd->stage.recommender, pod, TD_STR("app"),
                                        TD_LEARN_MEMORY, at, crowd_use(at - crowd->pods[i].started),
                                        at);
        }
        struct td_vpa_status status = stage_status(&crowd->stage, at);
        const struct td_container_recommendation *made = &status.recommendation.containers[0];
        const struct td_quantity *memory = td_resource_list_get(&made->target, TD_STR("memory"));
        const struct td_quantity *upper =
            td_resource_list_get(&made->upper_bound, TD_STR("memory"));
        assert_true(td_quantity_compare(upper, memory) >= 0);
        least = td_quantity_value(memory) < least ? td_quantity_value(memory) : least;
        crowd->stage.vpa.has_recommendation = true; /* as it would be stored */
        crowd->stage.vpa.recommendation = status.recommendation;
    }
    return least;
}

static void crowd_init(struct crowd *crowd, size_t count, bool is_upstream_exact)
{
    *crowd = (struct crowd){.count = 0};
    stage_init(&crowd->stage);
    td_recommender_free(crowd->stage.recommender);
    struct td_vertical_config config = td_vertical_config_default();
    config.is_upstream_exact = is_upstream_exact;
    crowd->stage.recommender = td_recommender_new(&config);
    stage_link(&crowd->stage, "app=a", START);
    crowd_add(crowd, count, START);
}

/* Three old pods and then twenty-three new ones: upstream lowers memory at once, ours neither while
 * they are young nor in the hours after, and then by what they use by then. */
static void test_young_pods_do_not_lower_memory(void **unused)
{
    (void)unused;
    td_time grown = START + 47 * TD_HOUR;
    for (int exact = 0; exact < 2; exact++) {
        struct crowd crowd;
        crowd_init(&crowd, 3, exact);
        (void)crowd_run(&crowd, START, grown);
        int64_t before = memory_target(&crowd.stage, grown);
        assert_true(before > 1000 * MIB && before < 1100 * MIB);
        crowd_add(&crowd, 23, grown);
        int64_t least = crowd_run(&crowd, grown, grown + 2 * TD_MINUTE);
        if (exact) {
            assert_true(least < 600 * MIB);
        } else {
            assert_int_equal(least, before);
            assert_true(crowd_run(&crowd, grown + 2 * TD_MINUTE, grown + 12 * TD_HOUR) >= before);
        }
        stage_done(&crowd.stage);
    }
}

/* New pods that will never need as much: memory falls, but not before the hold is over, and the
 * account says so meanwhile. A restart in between changes nothing. */
static void test_memory_is_held_after_a_scale_out(void **unused)
{
    (void)unused;
    td_time grown = START + 40 * TD_HOUR;
    struct crowd crowd;
    crowd_init(&crowd, 1, false);
    (void)crowd_run(&crowd, START, grown);
    int64_t before = memory_target(&crowd.stage, grown);
    crowd_add(&crowd, 29, grown);
    for (int minute = 0; minute <= 7 * 60; minute++) {
        td_time at = grown + minute * TD_MINUTE;
        if (minute == 180) { /* of what the recommender remembers beside its checkpoint */
            struct td_stored_checkpoint *stored;
            size_t count;
            assert_int_equal(td_recommender_store(crowd.stage.recommender, &crowd.stage.arena,
                                                  TD_STR("ns"), TD_STR("v"), at, &stored, &count,
                                                  NULL),
                             TD_OK);
            struct td_vertical_config config = td_vertical_config_default();
            td_recommender_free(crowd.stage.recommender);
            crowd.stage.recommender = td_recommender_new(&config);
            stage_link(&crowd.stage, "app=a", at);
            assert_int_equal(td_recommender_load(crowd.stage.recommender, TD_STR("ns"),
                                                 &stored[0].checkpoint, NULL, at, NULL),
                             TD_OK);
            for (size_t i = 0; i < crowd.count; i++) {
                (void)stage_pod_started(&crowd.stage, crowd.pods[i].name, "web",
                                        crowd.pods[i].started);
            }
        }
        for (size_t i = 0; i < crowd.count; i++) {
            struct td_tracked_pod *pod = td_recommender_find_pod(
                crowd.stage.recommender, TD_STR("ns"), td_str_from(crowd.pods[i].name));
            (void)td_recommender_sample(crowd.stage.recommender, pod, TD_STR("app"),
                                        TD_LEARN_MEMORY, at, (i < 1 ? 900 : 300) * MIB, at);
        }
        struct td_vpa_status status = stage_status(&crowd.stage, at);
        crowd.stage.vpa.recommendation = status.recommendation;
        bool is_over = minute >= 6 * 60;
        assert_int_equal(memory_target(&crowd.stage, at) < before, is_over);
        assert_int_equal(status.accounts[0].memory.held > 0, minute >= 60 && minute < 6 * 60);
        if (minute == 300) {
            td_auto_buf text;
            td_buf_init(&text, 1 << 16);
            td_account_write(&status.accounts[0], &text);
            assert_non_null(strstr(text.ptr, "because there are more pods than before"));
        }
    }
    stage_done(&crowd.stage);
}

/* A young pod's peak above the target counts at once, and so does an OOM of it; the peak that was
 * held back is counted once. */
static void test_young_pods_raise_memory(void **unused)
{
    (void)unused;
    td_time grown = START + 47 * TD_HOUR;
    struct crowd crowd;
    crowd_init(&crowd, 3, false);
    (void)crowd_run(&crowd, START, grown);
    int64_t before = memory_target(&crowd.stage, grown);
    crowd_add(&crowd, 1, grown);
    crowd.stage.pod =
        td_recommender_find_pod(crowd.stage.recommender, TD_STR("ns"), TD_STR("web-3"));
    assert_int_equal(memory_sample(&crowd.stage, grown + TD_MINUTE, 100 * MIB), TD_FEED_TAKEN);
    assert_int_equal(memory_target(&crowd.stage, grown + TD_MINUTE), before);
    assert_int_equal(memory_sample(&crowd.stage, grown + 2 * TD_MINUTE, 3000 * MIB), TD_FEED_TAKEN);
    assert_true(memory_target(&crowd.stage, grown + 2 * TD_MINUTE) > 3000 * MIB);
    crowd_add(&crowd, 1, grown);
    crowd.stage.pod =
        td_recommender_find_pod(crowd.stage.recommender, TD_STR("ns"), TD_STR("web-4"));
    assert_int_equal(memory_sample(&crowd.stage, grown + TD_MINUTE, 100 * MIB), TD_FEED_TAKEN);
    assert_int_equal(td_recommender_oom(crowd.stage.recommender, crowd.stage.pod, TD_STR("app"),
                                        grown + 2 * TD_MINUTE,
                                        &(struct td_oom_kill){.request_bytes = 4000 * MIB},
                                        grown + 2 * TD_MINUTE),
                     TD_FEED_TAKEN);
    assert_true(memory_target(&crowd.stage, grown + 2 * TD_MINUTE) > 4000 * MIB);
    stage_done(&crowd.stage);
}

/* Where nothing acts on it, the upper bound is not inflated on the first day. */
static void test_upper_bound_is_not_inflated_for_display(void **unused)
{
    struct stage stage;
    (void)unused;
    stage_init(&stage);
    stage.vpa.mode = TD_VPA_OFF;
    for (int i = 0; i < 10; i++) {
        td_time at = START + i * TD_MINUTE;
        assert_int_equal(td_recommender_sample(stage.recommender, stage.pod, TD_STR("app"),
                                               TD_LEARN_CPU, at, 500, at),
                         TD_FEED_TAKEN);
    }
    struct td_vpa_status status = stage_status(&stage, START + TD_HOUR);
    const struct td_container_recommendation *made = &status.recommendation.containers[0];
    assert_int_equal(td_quantity_milli(td_resource_list_get(&made->upper_bound, TD_STR("cpu"))),
                     587);
    stage.vpa.mode = TD_VPA_RECREATE;
    status = stage_status(&stage, START + TD_HOUR);
    made = &status.recommendation.containers[0];
    assert_true(td_quantity_milli(td_resource_list_get(&made->upper_bound, TD_STR("cpu"))) > 50000);
    const struct td_owner_reference hvpa = {.kind = TD_STR("Hvpa"), .is_controller = true};
    stage.vpa.mode = TD_VPA_OFF; /* its Hvpa acts */
    stage.vpa.meta.owners = &hvpa;
    stage.vpa.meta.owner_count = 1;
    status = stage_status(&stage, START + TD_HOUR);
    made = &status.recommendation.containers[0];
    assert_true(td_quantity_milli(td_resource_list_get(&made->upper_bound, TD_STR("cpu"))) > 50000);
    stage_done(&stage);
}

/* A young recommendation waits, unless an OOM speaks for it; and the account explains itself. */
static void test_confidence_gates_application(void **unused)
{
    struct stage stage;
    (void)unused;
    stage_init(&stage);
    for (int i = 0; i < 720; i++) {
        td_time at = START + i * TD_MINUTE;
        (void)td_recommender_sample(stage.recommender, stage.pod, TD_STR("app"), TD_LEARN_CPU, at,
                                    500, at);
    }
    struct td_vpa_status status = stage_status(&stage, START + 12 * TD_HOUR);
    assert_true(td_confidence_allows(&status.accounts[0], 0));
    assert_true(td_confidence_allows(&status.accounts[0], 0.4));
    assert_false(td_confidence_allows(&status.accounts[0], 1));
    (void)td_recommender_oom(stage.recommender, stage.pod, TD_STR("app"), START + 12 * TD_HOUR,
                             &(struct td_oom_kill){.request_bytes = 100 * MIB},
                             START + 12 * TD_HOUR);
    status = stage_status(&stage, START + 12 * TD_HOUR);
    assert_true(td_confidence_allows(&status.accounts[0], 1));
    td_auto_buf text;
    td_buf_init(&text, 8192);
    td_account_write(&status.accounts[0], &text);
    assert_non_null(strstr(text.ptr, "720 samples from 2026-03-01T00:00:00Z"));
    assert_non_null(strstr(text.ptr, "percentile 90 of use is 511m"));
    assert_non_null(strstr(text.ptr, "would change it: "));
    assert_non_null(
        td_json_get_path(td_account_json(&stage.arena, &status.accounts[0]), "memory.target.base"));
    stage_done(&stage);
}

/* The annotation reads back what it wrote and refuses the rest. */
static void test_oom_annotation_round_trip(void **unused)
{
    static const char *const bad[] = {
        "", "{}", "[]", "{\"at\":1}", "null", "{\"bytes\":-1,\"count\":1,\"cappedBytes\":0}"};
    const struct td_oom_knowledge oom = {.last_at = START,
                                         .window_end = START + TD_HOUR,
                                         .bytes = 5,
                                         .count = 3,
                                         .capped_bytes = 0,
                                         .short_runs = 2};
    struct td_oom_knowledge back;
    td_auto_arena arena;
    (void)unused;
    td_arena_init(&arena, SIZE_MAX);
    assert_int_equal(td_oom_annotation_decode(td_oom_annotation_encode(&arena, &oom), &back, NULL),
                     TD_OK);
    assert_memory_equal(&oom, &back, sizeof(oom));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_oom_annotation_decode(td_str_from(bad[i]), &back, &err), TD_INVALID);
    }
}

/* A resource that the metrics do not have is no call: the other one is learnt, this one is not. */
static void test_missing_resource_gives_no_sample(void **unused)
{
    const struct {
        enum td_learn_resource fed;
        int64_t amount;
        int64_t cpu_samples;
    } rows[] = {
        {TD_LEARN_CPU, 300, 3},
        {TD_LEARN_MEMORY, 300 * MIB, 0},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        struct td_stored_checkpoint *stored = NULL;
        size_t count = 0;
        td_time now = START;
        stage_init(&stage);
        /* A window a day, so that all but the last are in the checkpoint. */
        for (int day = 0; day < 3; day++, now += 24 * TD_HOUR) {
            assert_int_equal(td_recommender_sample(stage.recommender, stage.pod, TD_STR("app"),
                                                   rows[i].fed, now, rows[i].amount, now),
                             TD_FEED_TAKEN);
        }
        assert_int_equal(td_recommender_store(stage.recommender, &stage.arena, TD_STR("ns"),
                                              TD_STR("v"), now, &stored, &count, NULL),
                         TD_OK);
        assert_int_equal(count, 1);
        bool is_cpu = rows[i].fed == TD_LEARN_CPU;
        assert_int_equal(stored[0].checkpoint.total_samples, rows[i].cpu_samples);
        assert_true((stored[0].checkpoint.cpu.total_weight > 0) == is_cpu);
        assert_true((stored[0].checkpoint.memory.total_weight > 0) == !is_cpu);
        stage_done(&stage);
    }
}

static bool has_container(struct stage *stage, td_time now, const char *name)
{
    struct td_vpa_status status = stage_status(stage, now);
    for (size_t i = 0; i < status.recommendation.container_count; i++) {
        if (td_str_equal(status.recommendation.containers[i].container_name, td_str_from(name))) {
            return true;
        }
    }
    return false;
}

/* A container that left the template is forgotten when what it taught is eight days old, and not
 * before; the one that stayed is kept though it is not measured. */
static void test_gc_forgets_a_container_removed_from_its_template(void **unused)
{
    const td_time day = 24 * TD_HOUR;
    struct stage stage;
    (void)unused;
    stage_init(&stage);
    assert_int_equal(td_recommender_set_container(stage.recommender, &stage.pod, TD_STR("sidecar"),
                                                  0, START, NULL),
                     TD_OK);
    const td_str names[] = {TD_STR_INIT("app"), TD_STR_INIT("sidecar")};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(td_recommender_sample(stage.recommender, stage.pod, names[i], TD_LEARN_CPU,
                                               START, 100, START),
                         TD_FEED_TAKEN);
    }
    td_recommender_delete_pod(stage.recommender, TD_STR("ns"), TD_STR("p"));
    (void)stage_pod(&stage, "q", "follower"); /* app only */
    td_recommender_gc(stage.recommender, START + 8 * day - TD_HOUR, NULL);
    assert_true(has_container(&stage, START + 8 * day, "sidecar"));
    td_recommender_gc(stage.recommender, START + 8 * day, NULL);
    assert_false(has_container(&stage, START + 8 * day, "sidecar"));
    assert_true(has_container(&stage, START + 8 * day, "app"));
    assert_int_equal(td_recommender_aggregates(stage.recommender), 1);
    stage_done(&stage);
}

/* However pods come and go, exactly those that are there are found, with their own containers. */
static void test_pods_are_found_while_they_are_there(void **unused)
{
    enum { PODS = 600, STEPS = 20000 };
    static bool is_there[PODS];
    struct stage stage;
    char name[32];
    char container[32];
    uint32_t random = 1;
    (void)unused;
    stage_init(&stage);
    memset(is_there, 0, sizeof(is_there));
    for (int step = 0; step < STEPS; step++) {
        random = random * 1664525U + 1013904223U;
        /* The first half adds more than it deletes, the second deletes more: both ways of
         * changing the size of the table. */
        size_t p = (random >> 8) % PODS;
        bool is_added = (random >> 28) < (step < STEPS / 2 ? 12U : 2U);
        (void)snprintf(name, sizeof(name), "pod-%zu", p);
        (void)snprintf(container, sizeof(container), "c-%zu", p);
        struct td_tracked_pod *pod =
            td_recommender_find_pod(stage.recommender, TD_STR("ns"), td_str_from(name));
        assert_true((pod != NULL) == is_there[p]);
        if (is_added) {
            pod = stage_pod(&stage, name, "follower");
            assert_int_equal(td_recommender_set_container(stage.recommender, &pod,
                                                          td_str_from(container), 0, START, NULL),
                             TD_OK);
        } else {
            td_recommender_delete_pod(stage.recommender, TD_STR("ns"), td_str_from(name));
        }
        is_there[p] = is_added;
        if (pod && is_added) {
            td_time now = START + step * TD_SECOND;
            assert_int_equal(td_recommender_sample(stage.recommender, pod, td_str_from(container),
                                                   TD_LEARN_CPU, now, 10, now),
                             TD_FEED_TAKEN);
            assert_int_equal(td_recommender_sample(stage.recommender, pod, TD_STR("c"),
                                                   TD_LEARN_CPU, now, 10, now),
                             TD_FEED_NO_CONTAINER);
        }
    }
    assert_null(td_recommender_find_pod(stage.recommender, TD_STR("other"), TD_STR("p")));
    assert_non_null(td_recommender_find_pod(stage.recommender, TD_STR("ns"), TD_STR("p")));
    stage_done(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zero_first_sample_does_not_block_a_window),
        cmocka_unit_test(test_oom_survives_a_restart),
        cmocka_unit_test(test_oom_survives_pods_and_garbage_collection),
        cmocka_unit_test(test_oom_bump_stops_at_max_allowed),
        cmocka_unit_test(test_history_survives_a_selector_edit),
        cmocka_unit_test(test_per_vpa_settings_do_not_stick),
        cmocka_unit_test(test_samples_follow_the_selector_of_the_moment),
        cmocka_unit_test(test_rollouts_do_not_grow_the_model),
        cmocka_unit_test(test_measurements_from_the_future_count_as_of_now),
        cmocka_unit_test(test_a_far_future_does_not_outweigh_the_past),
        cmocka_unit_test(test_young_pods_do_not_lower_memory),
        cmocka_unit_test(test_memory_is_held_after_a_scale_out),
        cmocka_unit_test(test_young_pods_raise_memory),
        cmocka_unit_test(test_upper_bound_is_not_inflated_for_display),
        cmocka_unit_test(test_confidence_gates_application),
        cmocka_unit_test(test_oom_annotation_round_trip),
        cmocka_unit_test(test_missing_resource_gives_no_sample),
        cmocka_unit_test(test_gc_forgets_a_container_removed_from_its_template),
        cmocka_unit_test(test_pods_are_found_while_they_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
