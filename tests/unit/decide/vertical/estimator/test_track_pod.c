/* The track estimator's rule on whole pods in the updater's pass: when each resource follows, and
 * what becomes of resizes that are not granted. */
#include "decide/vertical/estimator/adaptive_pod.h"
#include "decide/vertical/resourcelist.h"
#include "unit/decide/updater_support.h"

#define MODE(mode) "\"updatePolicy\":{\"updateMode\":\"" mode "\",\"minReplicas\":1}"
#define IN_PLACE MODE("InPlaceOrRecreate")
#define STATUS(cpu, memory)                                                                        \
    "[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"" cpu "\",\"memory\":\"" memory       \
    "\"}}}]"
#define DEFERRED "[{\"type\":\"PodResizePending\",\"status\":\"True\",\"reason\":\"Deferred\"}]"

static void set_tracked(struct stage *stage, struct td_vpa *vpa, td_duration age)
{
    struct td_vpa_condition *conditions = td_arena_array(&stage->arena, struct td_vpa_condition, 2);
    struct td_instant since = td_time_to_instant(stage->now - age);
    conditions[0] = (struct td_vpa_condition){
        .type = TD_ADAPTIVE_CONDITION, .status = TD_STR("True"), .last_transition = since};
    conditions[1] = (struct td_vpa_condition){.type = TD_TRACK_CONDITION,
                                              .status = TD_STR("True"),
                                              .reason = TD_STR("Balanced"),
                                              .last_transition = since};
    vpa->conditions = conditions;
    vpa->condition_count = 2;
}

/* The target is 300m and 300Mi. */
static struct td_pod *set_up(struct stage *stage, const char *spec, const struct stage_pod *pod)
{
    stage_init(stage);
    stage_add_workload(stage, "ReplicaSet", "web", 1);
    struct td_vpa *vpa = stage_add_vpa(stage, "v", OLD, "ReplicaSet", "web", spec);
    set_tracked(stage, vpa, 48 * TD_HOUR);
    struct stage_pod made = *pod;
    made.name = "p";
    made.owner_kind = "ReplicaSet";
    made.owner = "web";
    struct td_pod *added = stage_add_pod(stage, &made);
    added->meta.created = td_time_to_instant(stage->now - 48 * TD_HOUR);
    return added;
}

static struct td_adaptive_pod judge(struct stage *stage)
{
    const struct td_vpa *vpa = stage->vpas[0];
    struct td_adaptive_pod_input input = {.vpa = vpa,
                                          .pod = &stage->pods[0],
                                          .recommendation = &vpa->recommendation,
                                          .now = stage->now};
    assert_true(td_adaptive_since(vpa, &input.since));
    input.track = td_track_since(vpa, &input.track_since);
    assert_non_null(input.track);
    return td_adaptive_judge_pod(&stage->arena, &input);
}

/* CPU grows at once by its step and shrinks after two hours, whatever memory does. */
static void test_track_follows_each_resource_from_its_own_change(void **unused)
{
    (void)unused;
    static const struct {
        const char *cpu;
        const char *memory;
        int cpu_minutes; /* since its last change */
        int memory_minutes;
        int64_t set_cpu; /* 0: held */
        int64_t set_memory;
        enum td_adaptive_apply_reason reason;
    } rows[] = {
        {"200m", "300Mi", 1, 1, 345, 300, TD_APPLY_INCREASE},
        {"280m", "300Mi", 1, 1, 0, 0, TD_APPLY_IN_BAND},
        {"500m", "300Mi", 119, 900, 0, 0, TD_APPLY_WAITING},
        {"500m", "300Mi", 120, 1, 300, 300, TD_APPLY_DECREASE},
        {"300m", "500Mi", 1, 719, 0, 0, TD_APPLY_WAITING},
        {"300m", "500Mi", 1, 720, 300, 300, TD_APPLY_DECREASE},
        {"500m", "500Mi", 120, 719, 300, 500, TD_APPLY_DECREASE},
        {"500m", "200Mi", 1, 1, 500, 300, TD_APPLY_INCREASE}, /* CPU keeps what it has */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        char annotations[256];
        int64_t now = STAGE_NOW / TD_SECOND;
        (void)snprintf(annotations, sizeof(annotations),
                       "{\"tandem.dev/resized\":\"{\\\"c\\\":{\\\"cpu\\\":[\\\"%s\\\",%lld],"
                       "\\\"memory\\\":[\\\"%s\\\",%lld]}}\"}",
                       rows[i].cpu, (long long)(now - rows[i].cpu_minutes * 60), rows[i].memory,
                       (long long)(now - rows[i].memory_minutes * 60));
        struct td_pod *pod =
            set_up(&stage, IN_PLACE,
                   &(struct stage_pod){
                       .cpu = rows[i].cpu, .memory = rows[i].memory, .annotations = annotations});
        pod->resized = stage.now - TD_MINUTE; /* of one of the two */
        struct td_adaptive_pod decided = judge(&stage);
        assert_int_equal(decided.reason, rows[i].reason);
        assert_int_equal(decided.is_apply, rows[i].set_cpu > 0);
        if (decided.is_apply) {
            const struct td_resource_list *target =
                &decided.vpa->recommendation.containers[0].target;
            struct td_quantity cpu = td_resource_list_value(target, TD_CPU);
            struct td_quantity memory = td_resource_list_value(target, TD_MEMORY);
            assert_int_equal(td_quantity_milli(&cpu), rows[i].set_cpu);
            assert_int_equal(td_quantity_value(&memory) >> 20, rows[i].set_memory);
        }
        stage_done(&stage);
    }
}

/* An amount that another client has set counts from the last resize of the pod; so does everything
 * without the annotation. */
static void test_track_counts_other_clients_by_the_last_resize(void **unused)
{
    (void)unused;
    static const char *const annotations[] = {
        NULL, "{\"tandem.dev/resized\":\"{\\\"c\\\":{\\\"cpu\\\":[\\\"450m\\\",1]}}\"}",
        "{\"tandem.dev/resized\":\"no JSON\"}",
        "{\"tandem.dev/resized\":\"{\\\"c\\\":{\\\"cpu\\\":[\\\"500m\\\",\\\"then\\\"]}}\"}"};
    for (size_t i = 0; i < sizeof(annotations) / sizeof(annotations[0]); i++) {
        struct stage stage;
        struct td_pod *pod = set_up(
            &stage, IN_PLACE,
            &(struct stage_pod){.cpu = "500m", .memory = "300Mi", .annotations = annotations[i]});
        pod->resized = stage.now - TD_HOUR;
        struct td_adaptive_pod decided = judge(&stage);
        assert_int_equal(decided.reason, TD_APPLY_WAITING);
        assert_int_equal(decided.until, stage.now + TD_HOUR);
        stage_done(&stage);
    }
}

/* What is written beside a resize: the new amount with now, the other as it was. */
static void test_track_writes_when_each_request_changed(void **unused)
{
    (void)unused;
    struct stage stage;
    struct td_pod *pod =
        set_up(&stage, IN_PLACE, &(struct stage_pod){.cpu = "200m", .memory = "300Mi"});
    struct td_resource_list made =
        td_resource_list_copy(&stage.arena, &pod->containers[0].spec_requests);
    struct td_quantity cpu = td_quantity_new_milli(345, TD_QUANTITY_DECIMAL_SI);
    td_resource_list_set(&stage.arena, &made, TD_CPU, &cpu);
    const struct td_resource_list *requests[] = {&made};
    td_str text = td_resized_text(&stage.arena, pod, requests, stage.now);
    td_str expected = td_arena_format(
        &stage.arena, "{\"c\":{\"cpu\":[\"345m\",%lld],\"memory\":[\"300Mi\",%lld]}}",
        (long long)(stage.now / TD_SECOND), (long long)((stage.now - 48 * TD_HOUR) / TD_SECOND));
    assert_true(td_str_equal(text, expected));
    stage_done(&stage);
}

/* Where a resize of CPU restarts the container, the adaptive estimator's rule holds for it. */
static void test_track_leaves_restarting_containers_to_adaptive(void **unused)
{
    (void)unused;
    struct stage stage;
    struct td_pod *pod = set_up(
        &stage, IN_PLACE, &(struct stage_pod){.cpu = "500m", .memory = "300Mi", .restarts = true});
    pod->resized = stage.now - 3 * TD_HOUR;
    struct td_adaptive_pod decided = judge(&stage);
    assert_int_equal(decided.reason, TD_APPLY_WAITING);
    assert_int_equal(decided.until, stage.now + 9 * TD_HOUR);
    stage_done(&stage);
}

/* A resize that the node defers is tried again after 5, 10, 20, 40, 60, 60 minutes; no pod is
 * evicted for it while its target is less than half as much again. */
static void test_track_holds_deferred_resizes_with_growing_pauses(void **unused)
{
    (void)unused;
    static const int minutes[] = {5, 10, 20, 40, 60, 60};
    struct stage stage;
    (void)set_up(&stage, IN_PLACE,
                 &(struct stage_pod){.cpu = "250m",
                                     .memory = "300Mi",
                                     .conditions = DEFERRED,
                                     .statuses = STATUS("210m", "300Mi")});
    td_time due = 0;
    for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
        (void)stage_pass(&stage);
        if (i == 0) {
            assert_int_equal(stage.call_count, 0);
            assert_int_equal(stage_rule(&stage, "p"), TD_RULE_RESIZE_HELD);
        } else {
            assert_int_equal(stage.call_count, 1);
            assert_int_equal(stage.calls[0].call, TD_UPDATER_RESIZE);
        }
        due = stage.now + minutes[i] * TD_MINUTE;
        stage.now = due - TD_MINUTE;
        (void)stage_pass(&stage);
        assert_int_equal(stage.call_count, 0);
        assert_int_equal(stage_rule(&stage, "p"), TD_RULE_RESIZE_HELD);
        assert_int_equal(stage.notes[stage.note_count - 1].until, due);
        stage.now = due;
    }
    stage_done(&stage);
}

/* The server refuses: the same pauses, in both modes, and never an eviction. */
static void test_track_holds_refused_resizes(void **unused)
{
    (void)unused;
    static const char *const modes[] = {IN_PLACE, MODE("InPlace")};
    static const enum td_updater_result results[] = {TD_UPDATER_INFEASIBLE, TD_UPDATER_FAILED};
    for (size_t i = 0; i < 4; i++) {
        struct stage stage;
        (void)set_up(&stage, modes[i / 2], &(struct stage_pod){.cpu = "210m", .memory = "300Mi"});
        stage.resize_result = results[i % 2];
        (void)stage_pass(&stage);
        assert_int_equal(stage.call_count, 1);
        stage.now += 4 * TD_MINUTE;
        (void)stage_pass(&stage);
        assert_int_equal(stage.call_count, 0);
        assert_int_equal(stage_rule(&stage, "p"), TD_RULE_RESIZE_HELD);
        stage.now += TD_MINUTE;
        (void)stage_pass(&stage);
        assert_int_equal(stage.call_count, 1);
        assert_int_equal(stage.calls[0].call, TD_UPDATER_RESIZE);
        stage.now += 9 * TD_MINUTE;
        (void)stage_pass(&stage);
        assert_int_equal(stage.call_count, 0);
        /* Granted at last: the next one does not wait. */
        stage.now += TD_MINUTE;
        stage.resize_result = TD_UPDATER_DONE;
        assert_int_equal(stage_pass(&stage), 1);
        stage.now += TD_MINUTE;
        assert_int_equal(stage_pass(&stage), 1);
        stage_done(&stage);
    }
}

/* With a target of half as much again for an hour the mode that evicts does so. */
static void test_track_evicts_pods_that_were_short_for_an_hour(void **unused)
{
    (void)unused;
    static const struct {
        const char *spec;
        const char *has;
        bool is_evicted;
    } rows[] = {
        {IN_PLACE, "200m", true},
        {IN_PLACE, "201m", false},
        {MODE("InPlace"), "200m", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        struct td_pod *pod = set_up(&stage, rows[i].spec,
                                    &(struct stage_pod){.cpu = "250m",
                                                        .memory = "300Mi",
                                                        .conditions = DEFERRED,
                                                        .statuses = STATUS("200m", "300Mi")});
        struct td_pod_container *container = td_arena_new(&stage.arena, struct td_pod_container);
        *container = pod->containers[0];
        pod->containers = container;
        assert_int_equal(
            td_quantity_parse(&stage.arena, td_str_from(rows[i].has),
                              td_resource_list_edit(&container->status_requests, TD_CPU), NULL),
            TD_OK);
        bool is_evicted = false;
        for (int minute = 0; minute <= 60; minute++) {
            (void)stage_pass(&stage);
            for (size_t c = 0; c < stage.call_count; c++) {
                is_evicted = is_evicted || stage.calls[c].call == TD_UPDATER_EVICT;
            }
            assert_false(is_evicted && minute < 60);
            stage.now += TD_MINUTE;
        }
        assert_int_equal(is_evicted, rows[i].is_evicted);
        stage_done(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_track_follows_each_resource_from_its_own_change),
        cmocka_unit_test(test_track_counts_other_clients_by_the_last_resize),
        cmocka_unit_test(test_track_writes_when_each_request_changed),
        cmocka_unit_test(test_track_leaves_restarting_containers_to_adaptive),
        cmocka_unit_test(test_track_holds_deferred_resizes_with_growing_pauses),
        cmocka_unit_test(test_track_holds_refused_resizes),
        cmocka_unit_test(test_track_evicts_pods_that_were_short_for_an_hour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
