/* How many pods of a group may be disturbed, and the in-place decision table row by row. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "unit/decide/updater_support.h"

struct rig {
    struct td_groups groups;
    struct td_restriction restriction;
};

/* All pods of the stage under its first VPA. */
static void rig_init(struct rig *rig, struct stage *stage)
{
    struct td_workload_source source = stage_source(stage);
    td_groups_init(&rig->groups, &stage->arena);
    const struct td_pod **pods =
        td_arena_array(&stage->arena, const struct td_pod *, stage->pod_count);
    for (size_t i = 0; i < stage->pod_count; i++) {
        pods[i] = &stage->pods[i];
        assert_non_null(td_groups_add(&rig->groups, pods[i]));
    }
    const struct td_restriction_input input = {
        .arena = &stage->arena,
        .groups = &rig->groups,
        .source = &source,
        .vpa = stage->vpas[0],
        .pods = pods,
        .pod_count = stage->pod_count,
        .config = &stage->config.restriction,
        .gates = &stage->gates,
        .state = &stage->state,
        .now = stage->now,
    };
    td_restriction_init(&rig->restriction, &input);
}

static void rig_done(struct rig *rig)
{
    td_restriction_done(&rig->restriction);
    td_groups_done(&rig->groups);
}

/* How many running pods may go, counted out in plain words: as long as more than the rest stay, or
 * a single one when nothing may be missing and nothing is. */
static int brute_force(int configured, int running, int tolerance)
{
    int gone = 0;
    while (gone < running && running - gone > configured - tolerance) {
        gone++;
    }
    if (gone == 0 && running > 0 && running == configured && tolerance == 0) {
        gone = 1;
    }
    return gone;
}

/* Evict whatever may be evicted: never more than the budget, and all of it. */
static void test_restriction_never_passes_the_budget(void **unused)
{
    (void)unused;
    static const double tolerances[] = {0, 0.1, 0.34, 0.5, 0.99, 1};
    uint64_t seed = 1;
    for (int round = 0; round < 300; round++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        int configured = 1 + (int)((seed >> 33) % 12);
        int live = (int)((seed >> 40) % 14);
        int pending = live > 0 ? (int)((seed >> 48) % (uint64_t)(live + 1)) : 0;
        double tolerance = tolerances[(seed >> 56) % 6];
        struct stage stage;
        stage_init(&stage);
        stage.config.restriction = (struct td_restriction_config){.tolerance = tolerance};
        stage_add_web(&stage, configured);
        for (int i = 0; i < live; i++) {
            td_str name = td_arena_format(&stage.arena, "p%d", i);
            stage_add_pod(&stage, &(struct stage_pod){.name = name.ptr,
                                                      .owner_kind = "ReplicaSet",
                                                      .owner = "web",
                                                      .phase = i < pending ? "Pending" : NULL});
        }
        struct rig rig;
        rig_init(&rig, &stage);
        int evicted = 0;
        for (size_t i = 0; i < stage.pod_count; i++) {
            const struct td_pod *pod = &stage.pods[i];
            bool may = td_restriction_can_evict(&rig.restriction, pod, NULL) == TD_EVICTION_YES;
            if (pod->phase == TD_POD_PENDING) {
                assert_true(may); /* nothing is lost with it, and it is not counted */
            }
            if (may) {
                td_restriction_evicted(&rig.restriction, pod);
                evicted += pod->phase != TD_POD_PENDING;
            }
        }
        assert_int_equal(evicted, brute_force(configured, live - pending,
                                              (int)((double)configured * tolerance)));
        rig_done(&rig);
        stage_done(&stage);
    }
}

/* What a group is told by its controller and its size. */
static void test_restriction_judges_groups(void **unused)
{
    (void)unused;
    static const struct {
        const char *kind;
        int replicas; /* -1: no such object */
        int live;
        const char *spec;
        bool skips;
        enum td_group_fate fate;
        int64_t configured;
    } rows[] = {
        {"ReplicaSet", 3, 3, RECREATE, false, TD_GROUP_KEPT, 3},
        {"ReplicaSet", 3, 1, RECREATE, false, TD_GROUP_TOO_FEW, 3},
        {"ReplicaSet", 0, 3, RECREATE, false, TD_GROUP_NO_REPLICAS, 0},
        {"ReplicaSet", -1, 3, RECREATE, false, TD_GROUP_NO_REPLICAS, 0},
        {"StatefulSet", 5, 4, RECREATE, false, TD_GROUP_KEPT, 5},
        {"Job", 9, 3, RECREATE, false, TD_GROUP_KEPT, 3},
        {"DaemonSet", 3, 3, RECREATE, false, TD_GROUP_NO_REPLICAS, 0},
        {"Game", -1, 3, RECREATE, false, TD_GROUP_KEPT, 0},
        {"ReplicaSet", 3, 1, RECREATE, true, TD_GROUP_TOO_FEW, 3},
        {"ReplicaSet", 3, 1, "\"updatePolicy\":{\"updateMode\":\"InPlaceOrRecreate\"}", true,
         TD_GROUP_BELOW_MIN, 3},
        {"ReplicaSet", 1, 1, "\"updatePolicy\":{\"updateMode\":\"Recreate\",\"minReplicas\":1}",
         false, TD_GROUP_KEPT, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        stage.config.restriction.in_place_skips_budget = rows[i].skips;
        if (rows[i].replicas >= 0) {
            stage_add_workload(&stage, rows[i].kind, "w", rows[i].replicas);
        }
        stage_add_vpa(&stage, "v", OLD, rows[i].kind, "w", rows[i].spec);
        for (int p = 0; p < rows[i].live; p++) {
            td_str name = td_arena_format(&stage.arena, "p%d", p);
            stage_add_pod(&stage, &(struct stage_pod){
                                      .name = name.ptr, .owner_kind = rows[i].kind, .owner = "w"});
        }
        struct rig rig;
        rig_init(&rig, &stage);
        const struct td_group_view *view =
            td_restriction_any_view(&rig.restriction, &stage.pods[0]);
        assert_non_null(view);
        assert_int_equal(view->fate, rows[i].fate);
        assert_int_equal(view->configured, rows[i].configured);
        enum td_evict_verdict verdict =
            td_restriction_can_evict(&rig.restriction, &stage.pods[0], NULL);
        assert_int_equal(verdict, rows[i].fate == TD_GROUP_KEPT        ? TD_EVICTION_YES
                                  : rows[i].fate == TD_GROUP_BELOW_MIN ? TD_EVICTION_BELOW_MIN
                                                                       : TD_EVICTION_NO_GROUP);
        rig_done(&rig);
        stage_done(&stage);
    }
}

#define PENDING(status, reason)                                                                    \
    "{\"type\":\"PodResizePending\",\"status\":\"" status "\",\"reason\":\"" reason "\"}"
#define RUNNING(status, reason)                                                                    \
    "{\"type\":\"PodResizeInProgress\",\"status\":\"" status "\",\"reason\":\"" reason "\"}"

struct table_row {
    const char *mode;
    const char *conditions; /* of the pod */
    td_duration seen;       /* resizing first seen so long ago; -1: never */
    bool gate_off;
    bool no_group;
    bool pending;
    bool no_recommendation;
    bool failed_before;
    bool skips_budget;
    bool restarts;
    bool no_budget;
    enum td_in_place_decision decision;
    enum td_in_place_cause cause;
};

#define IPOR "InPlaceOrRecreate"

static const struct table_row table[] = {
    /* 1 */ {.mode = "InPlace", .gate_off = true, .decision = TD_IN_PLACE_DEFERRED},
    /* 2 */
    {.mode = IPOR,
     .no_group = true,
     .decision = TD_IN_PLACE_DEFERRED,
     .cause = TD_IN_PLACE_NO_GROUP},
    /* 3 */
    {.mode = IPOR, .pending = true, .decision = TD_IN_PLACE_DEFERRED, .cause = TD_IN_PLACE_PENDING},
    /* 4 */
    {.mode = IPOR,
     .no_recommendation = true,
     .decision = TD_IN_PLACE_DEFERRED,
     .cause = TD_IN_PLACE_NO_RECOMMENDATION},
    /* 5 */
    {.mode = "InPlace",
     .failed_before = true,
     .decision = TD_IN_PLACE_INFEASIBLE_CACHED,
     .cause = TD_IN_PLACE_FAILED_BEFORE},
    {.mode = IPOR,
     .failed_before = true,
     .decision = TD_IN_PLACE_APPROVED,
     .cause = TD_IN_PLACE_BUDGET},
    /* 6, mode InPlace */
    {.mode = "InPlace",
     .conditions = PENDING("True", "Infeasible"),
     .decision = TD_IN_PLACE_INFEASIBLE,
     .cause = TD_IN_PLACE_RESIZING},
    {.mode = "InPlace",
     .conditions = PENDING("True", "Deferred"),
     .decision = TD_IN_PLACE_DEFERRED,
     .cause = TD_IN_PLACE_RESIZING},
    {.mode = "InPlace",
     .conditions = RUNNING("True", "Error"),
     .decision = TD_IN_PLACE_DEFERRED,
     .cause = TD_IN_PLACE_RESIZING},
    /* 6, other modes */
    {.mode = IPOR,
     .conditions = PENDING("True", "Deferred"),
     .seen = -1,
     .decision = TD_IN_PLACE_DEFERRED,
     .cause = TD_IN_PLACE_RESIZING},
    {.mode = IPOR,
     .conditions = PENDING("True", "Deferred"),
     .seen = 5 * TD_MINUTE,
     .decision = TD_IN_PLACE_DEFERRED,
     .cause = TD_IN_PLACE_RESIZING},
    {.mode = IPOR,
     .conditions = PENDING("True", "Deferred"),
     .seen = 5 * TD_MINUTE + 1,
     .decision = TD_IN_PLACE_EVICT,
     .cause = TD_IN_PLACE_RESIZING},
    {.mode = IPOR,
     .conditions = PENDING("True", "Infeasible"),
     .seen = -1,
     .decision = TD_IN_PLACE_EVICT,
     .cause = TD_IN_PLACE_RESIZING},
    {.mode = IPOR,
     .conditions = PENDING("True", "Infeasible"),
     .no_budget = true,
     .decision = TD_IN_PLACE_DEFERRED,
     .cause = TD_IN_PLACE_RESIZING},
    {.mode = IPOR,
     .conditions = RUNNING("True", ""),
     .seen = TD_HOUR,
     .decision = TD_IN_PLACE_DEFERRED,
     .cause = TD_IN_PLACE_RESIZING},
    {.mode = IPOR,
     .conditions = RUNNING("True", ""),
     .seen = TD_HOUR + 1,
     .decision = TD_IN_PLACE_EVICT,
     .cause = TD_IN_PLACE_RESIZING},
    {.mode = IPOR,
     .conditions = RUNNING("True", "Error"),
     .seen = -1,
     .decision = TD_IN_PLACE_EVICT,
     .cause = TD_IN_PLACE_RESIZING},
    /* only the first condition tells whether it is resizing */
    {.mode = IPOR,
     .conditions = PENDING("False", "Deferred") "," RUNNING("True", ""),
     .decision = TD_IN_PLACE_APPROVED,
     .cause = TD_IN_PLACE_BUDGET},
    {.mode = IPOR,
     .conditions = RUNNING("True", "") "," PENDING("False", "Infeasible"),
     .seen = -1,
     .decision = TD_IN_PLACE_EVICT,
     .cause = TD_IN_PLACE_RESIZING},
    /* 7 */
    {.mode = IPOR,
     .skips_budget = true,
     .no_budget = true,
     .decision = TD_IN_PLACE_APPROVED,
     .cause = TD_IN_PLACE_NO_RESTART},
    {.mode = IPOR,
     .skips_budget = true,
     .restarts = true,
     .no_budget = true,
     .decision = TD_IN_PLACE_DEFERRED,
     .cause = TD_IN_PLACE_BUDGET},
    /* 8 */ {.mode = IPOR, .decision = TD_IN_PLACE_APPROVED, .cause = TD_IN_PLACE_BUDGET},
    {.mode = IPOR,
     .no_budget = true,
     .decision = TD_IN_PLACE_DEFERRED,
     .cause = TD_IN_PLACE_BUDGET},
};

static void check_row(const struct table_row *row)
{
    struct stage stage;
    stage_init(&stage);
    stage.gates.in_place = !row->gate_off;
    stage.config.restriction.in_place_skips_budget = row->skips_budget;
    stage_add_workload(&stage, "ReplicaSet", "web", row->no_budget ? 5 : 3);
    td_str spec =
        td_arena_format(&stage.arena, "\"updatePolicy\":{\"updateMode\":\"%s\"}", row->mode);
    struct td_vpa *vpa = stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web", spec.ptr);
    td_str conditions = td_arena_format(&stage.arena, "[%s]", stage_or(row->conditions, ""));
    stage_add_pod(&stage, &(struct stage_pod){.name = "p",
                                              .owner_kind = "ReplicaSet",
                                              .owner = "web",
                                              .phase = row->pending ? "Pending" : NULL,
                                              .conditions = conditions.ptr,
                                              .restarts = row->restarts});
    for (int i = 0; i < 2 && !row->no_group; i++) {
        stage_add_pod(
            &stage,
            &(struct stage_pod){.name = i ? "q" : "r", .owner_kind = "ReplicaSet", .owner = "web"});
    }
    vpa->has_recommendation = !row->no_recommendation;
    if (row->seen > 0) {
        td_updater_state_set_resizing(&stage.state, TD_STR("ns/p"), stage.now - row->seen);
    }
    struct rig rig;
    rig_init(&rig, &stage);
    struct td_in_place_answer answer = td_restriction_in_place(
        &rig.restriction, &stage.pods[0], row->failed_before ? &vpa->recommendation : NULL);
    assert_int_equal(answer.decision, row->decision);
    assert_int_equal(answer.cause, row->cause);
    rig_done(&rig);
    stage_done(&stage);
}

/* Each row of the decision table, boundaries included. */
static void test_restriction_in_place_table(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        check_row(&table[i]);
    }
}

/* The first sight of a resize is kept, never renewed. */
static void test_restriction_remembers_when_a_resize_was_first_seen(void **unused)
{
    (void)unused;
    struct td_updater_state state;
    td_updater_state_init(&state);
    assert_int_equal(
        td_updater_state_resizing_since(&state, TD_STR("ns"), TD_STR("p"), 5 * TD_SECOND),
        5 * TD_SECOND);
    assert_int_equal(
        td_updater_state_resizing_since(&state, TD_STR("ns"), TD_STR("p"), 9 * TD_SECOND),
        5 * TD_SECOND);
    td_updater_state_end(&state, 9 * TD_SECOND + TD_RESIZE_MEMORY);
    assert_int_equal(state.resizing.count, 1);
    td_updater_state_end(&state, 10 * TD_SECOND + TD_RESIZE_MEMORY);
    assert_int_equal(state.resizing.count, 0);
    td_updater_state_done(&state);
}

/* Pods without a controller form a group that has no number to keep. */
static void test_restriction_takes_pods_without_controller(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web", RECREATE);
    stage_add_pod(&stage, &(struct stage_pod){.name = "a"});
    stage_add_pod(&stage,
                  &(struct stage_pod){
                      .name = "b", .owner_kind = "X", .owner = "x", .lacks_controller = true});
    struct rig rig;
    rig_init(&rig, &stage);
    const struct td_group_view *view = td_restriction_view(&rig.restriction, &stage.pods[1]);
    assert_non_null(view);
    assert_ptr_equal(view, td_restriction_view(&rig.restriction, &stage.pods[0]));
    assert_int_equal(view->actual, 2);
    assert_int_equal(view->configured, 0);
    rig_done(&rig);
    stage_done(&stage);
}

/* Tokens come back at the rate, never more than the burst. */
static void test_restriction_token_bucket(void **unused)
{
    (void)unused;
    struct td_token_bucket bucket = {.is_started = false};
    assert_int_equal(td_token_bucket_take(&bucket, 0, 1, 7), 7);
    assert_int_equal(td_token_bucket_take(&bucket, 2, 2, TD_SECOND), TD_SECOND);
    assert_int_equal(td_token_bucket_take(&bucket, 2, 2, TD_SECOND), TD_SECOND);
    assert_int_equal(td_token_bucket_take(&bucket, 2, 2, TD_SECOND), TD_SECOND + TD_SECOND / 2);
    assert_int_equal(td_token_bucket_take(&bucket, 2, 2, 100 * TD_SECOND), 100 * TD_SECOND);
    assert_int_equal(td_token_bucket_take(&bucket, 2, 2, 100 * TD_SECOND), 100 * TD_SECOND);
    assert_true(td_token_bucket_take(&bucket, 2, 2, 100 * TD_SECOND) > 100 * TD_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restriction_never_passes_the_budget),
        cmocka_unit_test(test_restriction_judges_groups),
        cmocka_unit_test(test_restriction_in_place_table),
        cmocka_unit_test(test_restriction_remembers_when_a_resize_was_first_seen),
        cmocka_unit_test(test_restriction_takes_pods_without_controller),
        cmocka_unit_test(test_restriction_token_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
