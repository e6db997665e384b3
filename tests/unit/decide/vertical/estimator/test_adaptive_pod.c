/* The adaptive estimator's rule on whole pods, alone and in the updater's pass. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/timefmt.h"
#include "decide/vertical/estimator/adaptive_pod.h"
#include "decide/vertical/resourcelist.h"
#include "unit/decide/updater_support.h"

#define IN_PLACE "\"updatePolicy\":{\"updateMode\":\"InPlaceOrRecreate\",\"minReplicas\":1}"

static void set_since(struct stage *stage, struct td_vpa *vpa, td_time since)
{
    struct td_vpa_condition *condition = td_arena_new(&stage->arena, struct td_vpa_condition);
    *condition = (struct td_vpa_condition){.type = TD_ADAPTIVE_CONDITION,
                                           .status = TD_STR("True"),
                                           .last_transition = td_time_to_instant(since)};
    vpa->conditions = condition;
    vpa->condition_count = 1;
}

static struct td_vpa *add_adaptive(struct stage *stage, const char *spec, td_duration age)
{
    stage_add_workload(stage, "ReplicaSet", "web", 1);
    struct td_vpa *vpa = stage_add_vpa(stage, "v", OLD, "ReplicaSet", "web", spec);
    set_since(stage, vpa, stage->now - age);
    return vpa;
}

static struct td_pod *add_pod(struct stage *stage, const char *cpu, const char *memory)
{
    return stage_add_pod(
        stage,
        &(struct stage_pod){
            .name = "p", .owner_kind = "ReplicaSet", .owner = "web", .cpu = cpu, .memory = memory});
}

static void set_oom(struct stage *stage, struct td_pod *pod, td_time at)
{
    struct td_pod_container *container = td_arena_new(&stage->arena, struct td_pod_container);
    *container = pod->containers[0];
    pod->containers = container;
    container->has_last_terminated = true;
    container->last_terminated_reason = TD_STR("OOMKilled");
    container->last_finished = at;
}

/* The target is 300m and 300Mi. Memory grows at once, CPU after four hours, both shrink after
 * twelve; hours count from the estimator's first sample, the pod's creation and its last resize. */
static void test_adaptive_waits_by_the_hour(void **unused)
{
    (void)unused;
    enum { NEVER = 1000 };
    static const struct {
        const char *cpu;
        const char *memory;
        int since; /* hours ago, as all of them */
        int created;
        int resized;
        int oom;
        enum td_updater_rule rule;
        int until; /* hours from now; 0: none */
    } rows[] = {
        {"300m", "100Mi", 0, NEVER, NEVER, NEVER, TD_RULE_RESIZED, 0},
        {"100m", "300Mi", 3, NEVER, NEVER, NEVER, TD_RULE_IN_BAND, 0},
        {"100m", "300Mi", 4, NEVER, NEVER, NEVER, TD_RULE_RESIZED, 0},
        {"100m", "300Mi", 4, 3, NEVER, NEVER, TD_RULE_IN_BAND, 0},
        {"100m", "300Mi", 4, NEVER, 3, NEVER, TD_RULE_IN_BAND, 0},
        {"500m", "300Mi", 5, NEVER, NEVER, NEVER, TD_RULE_WAITING, 7},
        {"500m", "300Mi", 12, NEVER, NEVER, NEVER, TD_RULE_RESIZED, 0},
        {"500m", "300Mi", 24, NEVER, 1, NEVER, TD_RULE_WAITING, 11},
        {"500m", "300Mi", 24, 2, NEVER, NEVER, TD_RULE_WAITING, 10},
        {"300m", "600Mi", 5, NEVER, NEVER, NEVER, TD_RULE_WAITING, 7},
        {"280m", "295Mi", 24, NEVER, NEVER, NEVER, TD_RULE_IN_BAND, 0},
        {"280m", "295Mi", 24, NEVER, NEVER, 1, TD_RULE_RESIZED, 0},
        {"280m", "295Mi", 24, NEVER, 2, 3, TD_RULE_IN_BAND, 0}, /* that was before the resize */
        {"280m", "295Mi", 24, NEVER, 3, 2, TD_RULE_RESIZED, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        (void)add_adaptive(&stage, IN_PLACE, rows[i].since * TD_HOUR);
        struct td_pod *pod = add_pod(&stage, rows[i].cpu, rows[i].memory);
        pod->meta.created = td_time_to_instant(stage.now - rows[i].created * TD_HOUR);
        pod->resized =
            rows[i].resized == NEVER ? TD_TIME_NONE : stage.now - rows[i].resized * TD_HOUR;
        if (rows[i].oom != NEVER) {
            set_oom(&stage, pod, stage.now - rows[i].oom * TD_HOUR);
        }
        (void)stage_pass(&stage);
        assert_int_equal(stage_rule(&stage, "p"), rows[i].rule);
        td_time until = rows[i].until > 0 ? stage.now + rows[i].until * TD_HOUR : 0;
        assert_int_equal(stage.notes[stage.note_count - 1].until, until);
        stage_done(&stage);
    }
}

static struct td_adaptive_pod judge(struct stage *stage, td_duration age, bool is_pod_level)
{
    const struct td_adaptive_pod_input input = {
        .vpa = stage->vpas[0],
        .pod = &stage->pods[0],
        .recommendation = &stage->vpas[0]->recommendation,
        .since = stage->now - age,
        .now = stage->now,
        .is_pod_level = is_pod_level,
    };
    return td_adaptive_judge_pod(&stage->arena, &input);
}

static int64_t milli_of(const struct td_resource_list *list)
{
    struct td_quantity cpu = td_resource_list_value(list, TD_CPU);
    return td_quantity_milli(&cpu);
}

static int64_t mib_of(const struct td_resource_list *list)
{
    struct td_quantity memory = td_resource_list_value(list, TD_MEMORY);
    return td_quantity_value(&memory) >> 20;
}

/* An increase is a step of its own; the other resource keeps what it has until its time. */
static void test_adaptive_sets_what_the_rule_says(void **unused)
{
    (void)unused;
    static const struct {
        const char *cpu;
        const char *memory;
        int hours;
        int64_t set_cpu;
        int64_t set_memory;
        enum td_adaptive_apply_reason reason;
    } rows[] = {
        {"270m", "300Mi", 5, 324, 300, TD_APPLY_INCREASE}, /* by a fifth at least */
        {"100m", "300Mi", 5, 300, 300, TD_APPLY_INCREASE},
        {"500m", "100Mi", 5, 500, 300, TD_APPLY_INCREASE},
        {"500m", "100Mi", 13, 300, 300, TD_APPLY_INCREASE},
        {"500m", "300Mi", 13, 300, 300, TD_APPLY_DECREASE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        (void)add_adaptive(&stage, IN_PLACE, 0);
        (void)add_pod(&stage, rows[i].cpu, rows[i].memory);
        struct td_adaptive_pod made = judge(&stage, rows[i].hours * TD_HOUR, false);
        assert_true(made.is_apply);
        assert_int_equal(made.reason, rows[i].reason);
        assert_int_equal(made.vpa->recommendation.container_count, 1);
        const struct td_resource_list *target = &made.vpa->recommendation.containers[0].target;
        assert_int_equal(milli_of(target), rows[i].set_cpu);
        assert_int_equal(mib_of(target), rows[i].set_memory);
        assert_true(td_str_starts_with(made.text, TD_STR("container c: ")));
        stage_done(&stage);
    }
}

static void give_pod(struct stage *stage, const char *text)
{
    struct td_error err = TD_ERROR_INIT;
    if (td_pod_decode(&stage->arena, stage_json(stage, text), &stage->pods[0], &err) < 0) {
        fail_msg("%s", err.message);
    }
    stage->pod_count = 1;
}

static void give_vpa(struct stage *stage, const char *recommendation)
{
    stage_add_workload(stage, "ReplicaSet", "web", 1);
    struct td_vpa *vpa = stage_add_vpa(stage, "v", OLD, "ReplicaSet", "web", IN_PLACE);
    struct td_error err = TD_ERROR_INIT;
    if (td_recommendation_decode(&stage->arena, stage_json(stage, recommendation),
                                 &vpa->recommendation, &err) < 0) {
        fail_msg("%s", err.message);
    }
}

#define TARGET(name, cpu, memory)                                                                  \
    "{\"containerName\":\"" name "\",\"target\":{\"cpu\":\"" cpu "\",\"memory\":\"" memory "\"}}"
#define HAS(name, cpu, memory)                                                                     \
    "{\"name\":\"" name "\",\"resources\":{\"requests\":{\"cpu\":\"" cpu "\",\"memory\":\"" memory \
    "\"}}}"

/* One container asks for a change: the others stay as they are, and so does what the webhook never
 * saw. */
static void test_adaptive_leaves_containers_that_hold(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    give_vpa(&stage, "{\"containerRecommendations\":[" TARGET("a", "300m", "300Mi") "," TARGET(
                         "b", "100m", "300Mi") "," TARGET("c", "100m", "900Mi") "]}");
    give_pod(&stage, "{\"metadata\":{\"name\":\"p\",\"annotations\":{\"vpaObservedContainers\":"
                     "\"a, b\"}},\"spec\":{\"containers\":[" HAS("a", "300m", "200Mi") "," HAS(
                         "b", "500m", "300Mi") "," HAS("c", "100m", "300Mi") "]}}");
    struct td_adaptive_pod made = judge(&stage, 5 * TD_HOUR, false);
    assert_true(made.is_apply);
    assert_int_equal(made.reason, TD_APPLY_INCREASE);
    assert_int_equal(made.vpa->recommendation.container_count, 1);
    assert_true(td_str_equal(made.vpa->recommendation.containers[0].container_name, TD_STR("a")));
    assert_int_equal(made.until, stage.now + 7 * TD_HOUR); /* of b */
    stage_done(&stage);
}

/* What is not recommended is left alone, and does not stop the other resource from shrinking. */
static void test_adaptive_leaves_resources_that_are_not_recommended(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    give_vpa(&stage, "{\"containerRecommendations\":[{\"containerName\":\"a\",\"target\":{\"cpu\":"
                     "\"100m\"}}]}");
    give_pod(&stage, "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"a\","
                     "\"resources\":{\"requests\":{\"cpu\":\"500m\"}}}]}}");
    assert_false(judge(&stage, 5 * TD_HOUR, false).is_apply);
    struct td_adaptive_pod made = judge(&stage, 13 * TD_HOUR, false);
    assert_true(made.is_apply);
    assert_int_equal(made.reason, TD_APPLY_DECREASE);
    const struct td_resource_list *target = &made.vpa->recommendation.containers[0].target;
    assert_int_equal(milli_of(target), 100);
    assert_null(td_resource_list_get(target, TD_MEMORY));
    stage_done(&stage);
}

/* A request that is missing is set at once; in a pod with resources of its own it may be missing.
 */
static void test_adaptive_sets_missing_requests(void **unused)
{
    (void)unused;
    for (int is_pod_level = 0; is_pod_level < 2; is_pod_level++) {
        struct stage stage;
        stage_init(&stage);
        give_vpa(&stage, "{\"containerRecommendations\":[" TARGET("a", "100m", "200Mi") "]}");
        give_pod(&stage, "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"a\","
                         "\"resources\":{\"requests\":{\"cpu\":\"100m\"}}}],\"resources\":{"
                         "\"requests\":{\"memory\":\"1Gi\"}}}}");
        struct td_adaptive_pod made = judge(&stage, 0, is_pod_level);
        assert_int_equal(made.is_apply, !is_pod_level);
        assert_int_equal(made.reason, is_pod_level ? TD_APPLY_IN_BAND : TD_APPLY_NO_REQUEST);
        stage_done(&stage);
    }
}

/* The pod's own request is a row like any other: held, it is written as it is. */
static void test_adaptive_judges_the_pod_itself(void **unused)
{
    (void)unused;
    static const struct {
        int hours;
        const char *cpu; /* of the container */
        bool is_apply;
        int64_t pod_cpu;
    } rows[] = {
        {5, "100m", false, 0}, {13, "100m", true, 200}, {5, "50m", true, 900} /* waits itself */};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        give_vpa(&stage, "{\"containerRecommendations\":[" TARGET(
                             "a", "100m", "200Mi") "],\"podRecommendation\":{\"target\":{\"cpu\":"
                                                   "\"200m\",\"memory\":\"200Mi\"}}}");
        td_str text = td_arena_format(
            &stage.arena,
            "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\""
            ":{\"requests\":{\"cpu\":\"%s\",\"memory\":\"200Mi\"}}}],\"resources\":{\"requests\":{"
            "\"cpu\":\"900m\",\"memory\":\"200Mi\"}}}}",
            rows[i].cpu);
        give_pod(&stage, text.ptr);
        struct td_adaptive_pod made = judge(&stage, rows[i].hours * TD_HOUR, true);
        assert_int_equal(made.is_apply, rows[i].is_apply);
        if (made.is_apply) {
            assert_int_equal(milli_of(&made.vpa->recommendation.pod.target), rows[i].pod_cpu);
        }
        stage_done(&stage);
    }
}

/* First what was killed, then what grows, then what shrinks, whatever the differences. */
static void test_adaptive_orders_the_queue(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage.config.restriction.tolerance = 1;
    stage_add_workload(&stage, "ReplicaSet", "web", 3);
    struct td_vpa *vpa = stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web", IN_PLACE);
    set_since(&stage, vpa, stage.now - 24 * TD_HOUR);
    static const char *const rows[][3] = {
        {"shrinks", "500m", "900Mi"}, {"grows", "100m", "100Mi"}, {"killed", "300m", "295Mi"}};
    for (size_t i = 0; i < 3; i++) {
        struct td_pod *pod = add_pod(&stage, rows[i][1], rows[i][2]);
        pod->meta.name = td_str_from(rows[i][0]);
        pod->meta.uid = td_str_from(rows[i][0]);
    }
    set_oom(&stage, &stage.pods[2], stage.now - TD_HOUR);
    assert_int_equal(stage_pass(&stage), 3);
    assert_string_equal(stage.calls[0].pod, "killed");
    assert_string_equal(stage.calls[1].pod, "grows");
    assert_string_equal(stage.calls[2].pod, "shrinks");
    stage_done(&stage);
}

/* The eviction requirements are asked about what the mode really does. */
static void test_adaptive_asks_the_requirements_about_the_change(void **unused)
{
    (void)unused;
    static const struct {
        const char *mode;
        enum td_updater_rule rule;
    } rows[] = {{"InPlaceOrRecreate", TD_RULE_REQUIREMENTS}, {"Recreate", TD_RULE_EVICTED}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        td_str spec = td_arena_format(
            &stage.arena,
            "\"updatePolicy\":{\"updateMode\":\"%s\",\"minReplicas\":1,\"evictionRequirements\":[{"
            "\"resources\":[\"cpu\"],\"changeRequirement\":\"TargetLowerThanRequests\"}]}",
            rows[i].mode);
        (void)add_adaptive(&stage, spec.ptr, 5 * TD_HOUR);
        (void)add_pod(&stage, "500m", "100Mi"); /* in place its CPU would stay as it is */
        (void)stage_pass(&stage);
        assert_int_equal(stage_rule(&stage, "p"), rows[i].rule);
        stage_done(&stage);
    }
}

/* Without the condition upstream's rule decides, and so it does for a VPA that had it. */
static void test_adaptive_needs_the_condition(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    struct td_vpa *vpa = add_adaptive(&stage, IN_PLACE, TD_HOUR);
    td_time since;
    assert_true(td_adaptive_since(vpa, &since));
    assert_int_equal(since, stage.now - TD_HOUR);
    (void)add_pod(&stage, "250m", "300Mi");
    (void)stage_pass(&stage);
    assert_int_equal(stage_rule(&stage, "p"), TD_RULE_IN_BAND);
    vpa->condition_count = 0;
    assert_false(td_adaptive_since(vpa, &since));
    (void)stage_pass(&stage);
    assert_int_equal(stage_rule(&stage, "p"), TD_RULE_YOUNG);
    stage_done(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adaptive_waits_by_the_hour),
        cmocka_unit_test(test_adaptive_sets_what_the_rule_says),
        cmocka_unit_test(test_adaptive_leaves_containers_that_hold),
        cmocka_unit_test(test_adaptive_leaves_resources_that_are_not_recommended),
        cmocka_unit_test(test_adaptive_sets_missing_requests),
        cmocka_unit_test(test_adaptive_judges_the_pod_itself),
        cmocka_unit_test(test_adaptive_orders_the_queue),
        cmocka_unit_test(test_adaptive_asks_the_requirements_about_the_change),
        cmocka_unit_test(test_adaptive_needs_the_condition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
