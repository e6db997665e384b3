/* Whole passes of the updater: what must never happen, and what is remembered between passes. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "unit/decide/updater_support.h"

static void add_replicas(struct stage *stage, const char *kind, const char *owner, size_t count)
{
    static const char *const names[] = {"p0", "p1", "p2", "p3", "p4", "p5"};
    for (size_t i = 0; i < count; i++) {
        stage_add_pod(stage,
                      &(struct stage_pod){.name = names[i], .owner_kind = kind, .owner = owner});
    }
}

/* A group never loses more pods in a pass than its tolerance. */
static void test_pass_keeps_to_the_budget(void **unused)
{
    (void)unused;
    static const struct {
        int replicas;
        size_t evicted;
    } rows[] = {{1, 0}, {2, 1}, {3, 1}, {4, 2}, {5, 2}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        stage_add_web(&stage, rows[i].replicas);
        add_replicas(&stage, "ReplicaSet", "web", (size_t)rows[i].replicas);
        assert_int_equal(stage_pass(&stage), rows[i].evicted);
        assert_int_equal(stage.event_count, 2 * rows[i].evicted);
        assert_int_equal(stage_rule(&stage, rows[i].replicas == 1 ? "p0" : "p1"),
                         rows[i].replicas == 1  ? TD_RULE_TOO_FEW_REPLICAS
                         : rows[i].evicted == 1 ? TD_RULE_BUDGET
                                                : TD_RULE_EVICTED);
        stage_done(&stage);
    }
}

/* Of two VPAs that both match a pod only the elder acts, with and without selectors. */
static void test_pass_never_lets_two_vpas_act_on_a_pod(void **unused)
{
    (void)unused;
    static const char *const specs[][2] = {
        {RECREATE, RECREATE},
        {RECREATE OF_ROLE("leader"), RECREATE},
        {RECREATE, RECREATE ",\"selector\":{\"matchLabels\":{\"app\":\"a\"}}"},
        {RECREATE ",\"selector\":{\"matchLabels\":{\"app\":\"a\"}}", RECREATE OF_ROLE("leader")},
    };
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        for (int swap = 0; swap < 2; swap++) {
            struct stage stage;
            stage_init(&stage);
            stage.config.restriction.tolerance = 1;
            stage_add_workload(&stage, "StatefulSet", "db", 2);
            stage_add_vpa(&stage, swap ? "old" : "new", swap ? OLD : NEW, "StatefulSet", "db",
                          specs[i][swap ? 0 : 1]);
            stage_add_vpa(&stage, swap ? "new" : "old", swap ? NEW : OLD, "StatefulSet", "db",
                          specs[i][swap ? 1 : 0]);
            stage_add_pod(&stage, &(struct stage_pod){.name = "db-0",
                                                      .owner_kind = "StatefulSet",
                                                      .owner = "db",
                                                      .role = "leader"});
            stage_add_pod(&stage, &(struct stage_pod){.name = "db-1",
                                                      .owner_kind = "StatefulSet",
                                                      .owner = "db",
                                                      .role = "leader"});
            assert_int_equal(stage_pass(&stage), 2);
            assert_int_equal(stage.call_count, 2);
            assert_string_equal(stage.calls[0].vpa, "old");
            assert_string_equal(stage.calls[1].vpa, "old");
            assert_string_not_equal(stage.calls[0].pod, stage.calls[1].pod);
            stage_done(&stage);
        }
    }
}

/* A single leader among three replicas can be updated: the whole workload counts. */
static void test_pass_counts_the_whole_workload_of_a_selector(void **unused)
{
    (void)unused;
    for (int gate = 0; gate < 2; gate++) {
        struct stage stage;
        stage_init(&stage);
        stage_add_roles(&stage, gate, OLD);
        const char *roles[] = {"leader", "follower", "follower"};
        const char *names[] = {"db-0", "db-1", "db-2"};
        for (size_t i = 0; i < 3; i++) {
            stage_add_pod(&stage, &(struct stage_pod){.name = names[i],
                                                      .owner_kind = "StatefulSet",
                                                      .owner = "db",
                                                      .role = roles[i]});
        }
        /* One of three may be unavailable, by either kind of update: the budget is shared. */
        assert_int_equal(stage_pass(&stage), 1);
        assert_string_equal(stage.calls[0].vpa, gate ? "leader" : "follower");
        stage_done(&stage);
    }
}

/* A pod being deleted is neither acted on nor counted. */
static void test_pass_passes_over_pods_being_deleted(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage_add_web(&stage, 2);
    add_replicas(&stage, "ReplicaSet", "web", 1);
    stage_add_pod(&stage, &(struct stage_pod){.name = "going",
                                              .owner_kind = "ReplicaSet",
                                              .owner = "web",
                                              .is_deleted = true});
    assert_int_equal(stage_pass(&stage), 0);
    assert_int_equal(stage_rule(&stage, "p0"), TD_RULE_TOO_FEW_REPLICAS);
    assert_int_equal(stage_rule(&stage, "going"), -1);
    stage_done(&stage);
}

/* The owner reference without `controller`, on which upstream crashes, is no controller. */
static void test_pass_survives_an_owner_without_controller_field(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage_add_web(&stage, 2);
    add_replicas(&stage, "ReplicaSet", "web", 2);
    stage_add_pod(&stage, &(struct stage_pod){.name = "odd",
                                              .owner_kind = "ReplicaSet",
                                              .owner = "web",
                                              .lacks_controller = true});
    assert_int_equal(stage_pass(&stage), 1);
    assert_string_equal(stage.calls[0].pod, "p0");
    assert_int_equal(stage_rule(&stage, "odd"), -1);
    stage_done(&stage);
}

/* The evicted replica comes back under a new uid. */
static void rebear(struct stage *stage, size_t index, const char *uid, const char *name,
                   const char *kind, const char *cpu)
{
    size_t count = stage->pod_count;
    stage->pod_count = index;
    stage_add_pod(stage,
                  &(struct stage_pod){
                      .name = name, .uid = uid, .owner_kind = kind, .owner = "db", .cpu = cpu});
    stage->pod_count = count;
    stage->now += TD_MINUTE;
}

/* A replica that comes back unchanged is evicted twice, then left alone for an hour or until the
 * recommendation changes. */
static void test_pass_leaves_alone_what_comes_back_unchanged(void **unused)
{
    (void)unused;
    static const struct {
        const char *kind;
        const char *names[4];
    } rows[] = {{"StatefulSet", {"db-0", "db-0", "db-0", "db-0"}},
                {"ReplicaSet", {"a", "b", "c", "d"}}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int way_out = 0; way_out < 2; way_out++) {
            struct stage stage;
            stage_init(&stage);
            stage.config.restriction.min_replicas = 1;
            stage_add_workload(&stage, rows[i].kind, "db", 1);
            struct td_vpa *vpa = stage_add_vpa(&stage, "v", OLD, rows[i].kind, "db", RECREATE);
            rebear(&stage, 0, "u0", rows[i].names[0], rows[i].kind, NULL);
            stage.pod_count = 1;
            assert_int_equal(stage_pass(&stage), 1);
            rebear(&stage, 0, "u1", rows[i].names[1], rows[i].kind, NULL);
            assert_int_equal(stage_pass(&stage), 1);
            rebear(&stage, 0, "u2", rows[i].names[2], rows[i].kind, NULL);
            for (int pass = 0; pass < 5; pass++) {
                assert_int_equal(stage_pass(&stage), 0);
                assert_int_equal(stage_rule(&stage, rows[i].names[2]), TD_RULE_LEFT_ALONE);
                /* Told once, about the pod and about the VPA. */
                assert_int_equal(stage.event_count, pass == 0 ? 2 : 0);
                stage.now += TD_MINUTE;
            }
            if (way_out == 0) {
                stage.now += TD_HOUR;
            } else {
                vpa->recommendation.containers[0].target.items[0].quantity =
                    td_quantity_new_milli(400, TD_QUANTITY_DECIMAL_SI);
            }
            assert_int_equal(stage_pass(&stage), 1);
            stage_done(&stage);
        }
    }
}

/* A replica that comes back changed starts afresh. */
static void test_pass_forgets_evictions_that_helped(void **unused)
{
    (void)unused;
    static const char *const cpus[] = {NULL, "120m", "140m", "160m", "180m"};
    struct stage stage;
    stage_init(&stage);
    stage.config.restriction.min_replicas = 1;
    stage_add_workload(&stage, "StatefulSet", "db", 1);
    stage_add_vpa(&stage, "v", OLD, "StatefulSet", "db", RECREATE);
    for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
        char uid[8];
        (void)snprintf(uid, sizeof(uid), "u%zu", i);
        rebear(&stage, 0, uid, "db-0", "StatefulSet", cpus[i]);
        stage.pod_count = 1;
        assert_int_equal(stage_pass(&stage), 1);
    }
    stage_done(&stage);
}

/* A pod that moved to another VPA is updated at once, and the move is not forgotten while the
 * budget delays it. */
static void test_pass_acts_on_a_role_change(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage_add_workload(&stage, "StatefulSet", "db", 2);
    stage_add_vpa(&stage, "leader", OLD, "StatefulSet", "db", RECREATE OF_ROLE("leader"));
    stage_add_pod(&stage, &(struct stage_pod){.name = "db-0",
                                              .owner_kind = "StatefulSet",
                                              .owner = "db",
                                              .role = "follower",
                                              .cpu = "200m",
                                              .memory = "200Mi"});
    stage_add_pod(&stage, &(struct stage_pod){.name = "db-1",
                                              .owner_kind = "StatefulSet",
                                              .owner = "db",
                                              .role = "follower"});
    assert_int_equal(stage_pass(&stage), 0); /* seen, and no VPA has it */
    stage.pod_count = 0;
    stage_add_pod(&stage, &(struct stage_pod){.name = "db-0",
                                              .owner_kind = "StatefulSet",
                                              .owner = "db",
                                              .role = "leader",
                                              .cpu = "200m",
                                              .memory = "200Mi"});
    struct td_pod *other = stage_add_pod(&stage, &(struct stage_pod){.name = "db-1",
                                                                     .owner_kind = "StatefulSet",
                                                                     .owner = "db",
                                                                     .role = "follower"});
    other->phase = TD_POD_PENDING; /* one of two is missing: no budget */
    assert_int_equal(stage_pass(&stage), 0);
    assert_int_equal(stage_rule(&stage, "db-0"), TD_RULE_BUDGET);
    other->phase = TD_POD_RUNNING;
    assert_int_equal(stage_pass(&stage), 1);
    assert_true(stage.notes[0].answer.is_moved);
    stage_done(&stage);
}

static void add_member(struct stage *stage, const char *name, const char *role)
{
    stage_add_pod(stage, &(struct stage_pod){.name = name,
                                             .owner_kind = "StatefulSet",
                                             .owner = "db",
                                             .role = role,
                                             .cpu = "200m",
                                             .memory = "200Mi"});
}

/* A pod that joins a VPA before it recommends anything keeps its move until there is something to
 * compare with; one that is close to its recommendation has ended it. */
static void test_pass_keeps_a_move_until_there_is_a_recommendation(void **unused)
{
    (void)unused;
    static const struct {
        bool has_recommendation;
        const char *container; /* the only one it knows; NULL: none */
        int rule;
    } rows[] = {
        {false, NULL, TD_RULE_NO_RECOMMENDATION},
        {true, NULL, TD_RULE_YOUNG},
        {true, "another", TD_RULE_YOUNG},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        stage_add_workload(&stage, "StatefulSet", "db", 2);
        struct td_vpa *vpa =
            stage_add_vpa(&stage, "leader", OLD, "StatefulSet", "db", RECREATE OF_ROLE("leader"));
        struct td_recommendation whole = vpa->recommendation;
        struct td_container_recommendation known = whole.containers[0];
        known.container_name = td_str_from(rows[i].container ? rows[i].container : "");
        vpa->has_recommendation = rows[i].has_recommendation;
        vpa->recommendation.containers = &known;
        vpa->recommendation.container_count = rows[i].container ? 1 : 0;
        add_member(&stage, "db-0", "follower");
        add_member(&stage, "db-1", "follower");
        assert_int_equal(stage_pass(&stage), 0);
        stage.pod_count = 0;
        add_member(&stage, "db-0", "leader");
        add_member(&stage, "db-1", "follower");
        for (int pass = 0; pass < 3; pass++) {
            assert_int_equal(stage_pass(&stage), 0);
            assert_int_equal(stage_rule(&stage, "db-0"), rows[i].rule);
            stage.now += TD_MINUTE;
        }
        vpa->has_recommendation = true;
        vpa->recommendation = whole;
        assert_int_equal(stage_pass(&stage), 1);
        assert_string_equal(stage.calls[0].pod, "db-0");
        stage_done(&stage);
    }
}

/* Close to what its new VPA recommends, the pod has ended its move: later it waits like any other.
 */
static void test_pass_ends_a_move_that_asks_for_nothing(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage_add_workload(&stage, "StatefulSet", "db", 2);
    struct td_vpa *vpa =
        stage_add_vpa(&stage, "leader", OLD, "StatefulSet", "db", RECREATE OF_ROLE("leader"));
    struct td_resource_amount *target = vpa->recommendation.containers[0].target.items;
    const struct td_resource_amount whole[] = {target[0], target[1]};
    target[0].quantity = td_quantity_new_milli(200, TD_QUANTITY_DECIMAL_SI);
    target[1].quantity = td_quantity_new((int64_t)200 << 20, TD_QUANTITY_BINARY_SI);
    add_member(&stage, "db-0", "follower");
    add_member(&stage, "db-1", "follower");
    assert_int_equal(stage_pass(&stage), 0);
    stage.pod_count = 0;
    add_member(&stage, "db-0", "leader");
    add_member(&stage, "db-1", "follower");
    assert_int_equal(stage_pass(&stage), 0);
    target[0] = whole[0];
    target[1] = whole[1];
    assert_int_equal(stage_pass(&stage), 0);
    assert_int_equal(stage_rule(&stage, "db-0"), TD_RULE_YOUNG);
    stage_done(&stage);
}

/* A VPA that is switched off and on again has not changed the VPA of any pod. */
static void test_pass_takes_a_mode_for_no_role(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    struct td_vpa *vpa = stage_add_web(&stage, 2);
    for (int i = 0; i < 2; i++) {
        stage_add_pod(&stage, &(struct stage_pod){.name = i ? "b" : "a",
                                                  .owner_kind = "ReplicaSet",
                                                  .owner = "web",
                                                  .cpu = "200m",
                                                  .memory = "200Mi"});
    }
    const enum td_vpa_mode modes[] = {TD_VPA_OFF, TD_VPA_RECREATE, TD_VPA_INITIAL, TD_VPA_RECREATE};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        vpa->mode = modes[i];
        assert_int_equal(stage_pass(&stage), 0);
        assert_int_equal(stage_rule(&stage, "a"), modes[i] == TD_VPA_RECREATE ? TD_RULE_YOUNG : -1);
    }
    size_t count = stage.workload_count;
    stage.workload_count = 0; /* the controllers cannot be read for a moment */
    assert_int_equal(stage_pass(&stage), 0);
    stage.workload_count = count;
    assert_int_equal(stage_pass(&stage), 0);
    assert_int_equal(stage_rule(&stage, "a"), TD_RULE_YOUNG);
    stage_done(&stage);
}

/* The same pod without a move waits for its age. */
static void test_pass_waits_for_age_inside_the_range(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage_add_web(&stage, 2);
    for (int i = 0; i < 2; i++) {
        stage_add_pod(&stage, &(struct stage_pod){.name = i ? "b" : "a",
                                                  .owner_kind = "ReplicaSet",
                                                  .owner = "web",
                                                  .cpu = "200m",
                                                  .memory = "200Mi"});
    }
    assert_int_equal(stage_pass(&stage), 0);
    assert_int_equal(stage_rule(&stage, "a"), TD_RULE_YOUNG);
    assert_int_equal(stage.notes[0].until, STAGE_NOW + 11 * TD_HOUR);
    stage.now = STAGE_NOW + 11 * TD_HOUR;
    assert_int_equal(stage_pass(&stage), 1);
    stage_done(&stage);
}

/* A refused resize becomes an eviction where the mode allows it, and never in mode InPlace. */
static void test_pass_falls_back_to_eviction(void **unused)
{
    (void)unused;
    static const struct {
        const char *mode;
        enum td_updater_result result;
        size_t calls;
        int rule;
    } rows[] = {
        {"InPlaceOrRecreate", TD_UPDATER_DONE, 1, TD_RULE_RESIZED},
        {"InPlaceOrRecreate", TD_UPDATER_FAILED, 3, TD_RULE_EVICTED},
        {"InPlaceOrRecreate", TD_UPDATER_INFEASIBLE, 3, TD_RULE_EVICTED},
        {"InPlace", TD_UPDATER_DONE, 2, TD_RULE_RESIZED},
        {"InPlace", TD_UPDATER_FAILED, 2, TD_RULE_RESIZE_FAILED},
        {"InPlace", TD_UPDATER_INFEASIBLE, 2, TD_RULE_RESIZE_IMPOSSIBLE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        stage.resize_result = rows[i].result;
        stage_add_workload(&stage, "ReplicaSet", "web", 2);
        td_str spec =
            td_arena_format(&stage.arena, "\"updatePolicy\":{\"updateMode\":\"%s\"}", rows[i].mode);
        stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web", spec.ptr);
        add_replicas(&stage, "ReplicaSet", "web", 2);
        (void)stage_pass(&stage);
        assert_int_equal(stage.call_count, rows[i].calls);
        assert_int_equal(stage_rule(&stage, "p0"), rows[i].rule);
        bool is_remembered = rows[i].result == TD_UPDATER_INFEASIBLE && rows[i].mode[7] == '\0';
        (void)stage_pass(&stage);
        if (is_remembered) {
            assert_int_equal(stage.call_count, 0);
            assert_int_equal(stage_rule(&stage, "p0"), TD_RULE_INFEASIBLE);
        } else {
            assert_int_not_equal(stage.call_count, 0);
        }
        stage_done(&stage);
    }
}

/* Requirements waived for resizes still hold for the eviction that would follow. */
static void test_pass_checks_requirements_before_the_fallback(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage.config.in_place_ignores_requirements = true;
    stage.resize_result = TD_UPDATER_FAILED;
    stage_add_workload(&stage, "ReplicaSet", "web", 2);
    stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web",
                  "\"updatePolicy\":{\"updateMode\":\"InPlaceOrRecreate\","
                  "\"evictionRequirements\":[{\"resources\":[\"cpu\"],\"changeRequirement\":"
                  "\"TargetLowerThanRequests\"}]}");
    add_replicas(&stage, "ReplicaSet", "web", 2);
    assert_int_equal(stage_pass(&stage), 0);
    assert_int_equal(stage.call_count, 2);
    assert_int_equal(stage.calls[0].call, TD_UPDATER_RESIZE);
    assert_int_equal(stage_rule(&stage, "p0"), TD_RULE_REQUIREMENTS);
    stage_done(&stage);
}

/* A recommendation whose recommender says that it rests on too little, or on old metrics, is not
 * carried out. */
static void test_pass_waits_when_the_recommender_says_so(void **unused)
{
    (void)unused;
    static const struct {
        td_str type;
        td_str status;
        int rule; /* -1: it acts */
    } rows[] = {
        {TD_STR_INIT("MetricsStale"), TD_STR_INIT("True"), TD_RULE_METRICS_STALE},
        {TD_STR_INIT("MetricsStale"), TD_STR_INIT("False"), -1},
        {TD_STR_INIT("LowConfidence"), TD_STR_INIT("True"), TD_RULE_LOW_CONFIDENCE},
        {TD_STR_INIT("LowConfidence"), TD_STR_INIT("False"), -1},
        {TD_STR_INIT("RecommendationProvided"), TD_STR_INIT("True"), -1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        struct td_vpa *vpa = stage_add_web(&stage, 2);
        const struct td_vpa_condition condition = {.type = rows[i].type, .status = rows[i].status};
        vpa->conditions = &condition;
        vpa->condition_count = 1;
        add_replicas(&stage, "ReplicaSet", "web", 2);
        assert_int_equal(stage_pass(&stage), rows[i].rule < 0 ? 1 : 0);
        assert_int_equal(stage_rule(&stage, NULL), rows[i].rule);
        stage_done(&stage);
    }
}

/* Out of tokens the pass ends, and the next one begins with the VPA that had to wait. */
static void test_pass_resumes_where_the_rate_limit_stopped_it(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage.config.rate_per_second = 0.001;
    stage_add_workload(&stage, "ReplicaSet", "one", 2);
    stage_add_workload(&stage, "ReplicaSet", "two", 2);
    stage_add_vpa(&stage, "v1", OLD, "ReplicaSet", "one", RECREATE);
    stage_add_vpa(&stage, "v2", OLD, "ReplicaSet", "two", RECREATE);
    const char *names[] = {"a0", "a1", "b0", "b1"};
    for (size_t i = 0; i < 4; i++) {
        stage_add_pod(&stage, &(struct stage_pod){.name = names[i],
                                                  .owner_kind = "ReplicaSet",
                                                  .owner = i < 2 ? "one" : "two"});
    }
    stage.deadline = stage.now + TD_MINUTE;
    assert_int_equal(stage_pass(&stage), 1);
    assert_string_equal(stage.calls[0].vpa, "v1");
    assert_int_equal(stage_rule(&stage, "b0"), TD_RULE_RATE_LIMIT);
    stage.now += 1000 * TD_SECOND;
    stage.deadline = stage.now + TD_MINUTE;
    assert_int_equal(stage_pass(&stage), 1);
    assert_string_equal(stage.calls[0].vpa, "v2");
    stage_done(&stage);
}

/* A pod-level request that had to be raised to its containers' sum is not written for ever. */
static void test_pass_rests_at_a_raised_pod_request(void **unused)
{
    (void)unused;
    static const struct {
        const char *cpu; /* of the pod itself */
        size_t done;
    } rows[] = {{"300m", 0}, {"400m", 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        stage.now += 24 * TD_HOUR;
        stage_add_workload(&stage, "ReplicaSet", "web", 2);
        struct td_vpa *vpa =
            stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web",
                          "\"updatePolicy\":{\"updateMode\":\"InPlaceOrRecreate\"}");
        struct td_resource_amount pod_target = {
            .name = TD_STR("cpu"), .quantity = td_quantity_new_milli(200, TD_QUANTITY_DECIMAL_SI)};
        struct td_resource_list level = {.items = &pod_target, .count = 1};
        vpa->recommendation.pod = (struct td_pod_recommendation){
            .is_set = true, .target = level, .lower_bound = level, .upper_bound = level};
        struct td_resource_amount request = {.name = TD_STR("cpu")};
        assert_int_equal(
            td_quantity_parse(&stage.arena, td_str_from(rows[i].cpu), &request.quantity, NULL),
            TD_OK);
        for (int p = 0; p < 2; p++) {
            struct td_pod *pod =
                stage_add_pod(&stage, &(struct stage_pod){.name = p ? "b" : "a",
                                                          .owner_kind = "ReplicaSet",
                                                          .owner = "web",
                                                          .cpu = "300m",
                                                          .memory = "300Mi"});
            pod->has_pod_level = true;
            pod->pod_requests = (struct td_resource_list){.items = &request, .count = 1};
        }
        assert_int_equal(stage_pass(&stage), rows[i].done);
        stage_done(&stage);
    }
}

/* A pod that admission would refuse for a LimitRange of containers is not evicted; it may be
 * resized, and others may be evicted. */
static void test_pass_spares_pods_that_could_not_come_back(void **unused)
{
    (void)unused;
    static const td_str names[] = {TD_STR_INIT("small")};
    static const struct td_limit_ranges ranges = {.container_names = names,
                                                  .container_name_count = 1};
    static const struct {
        const struct td_limit_ranges *limits;
        const char *mode;
        bool has_pod_level;
        bool is_gate_open;
        bool warns;
        int rule;
    } rows[] = {
        {&ranges, "Recreate", true, true, false, TD_RULE_LIMIT_RANGE},
        {&ranges, "Recreate", true, true, true, TD_RULE_EVICTED},
        {&ranges, "Recreate", true, false, false, TD_RULE_EVICTED},
        {&ranges, "Recreate", false, true, false, TD_RULE_EVICTED},
        {NULL, "Recreate", true, true, false, TD_RULE_EVICTED},
        {&ranges, "InPlaceOrRecreate", true, true, false, TD_RULE_RESIZED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        stage.limits = rows[i].limits;
        stage.gates.pod_level_resources = rows[i].is_gate_open;
        stage.config.warns_of_limit_range = rows[i].warns;
        stage_add_workload(&stage, "ReplicaSet", "web", 2);
        td_str policy =
            td_arena_format(&stage.arena, "\"updatePolicy\":{\"updateMode\":\"%s\"}", rows[i].mode);
        stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web", policy.ptr);
        for (int p = 0; p < 2; p++) {
            stage_add_pod(&stage, &(struct stage_pod){.name = p ? "b" : "a",
                                                      .owner_kind = "ReplicaSet",
                                                      .owner = "web"})
                ->has_pod_level = rows[i].has_pod_level;
        }
        assert_int_equal(stage_pass(&stage), rows[i].rule != TD_RULE_LIMIT_RANGE);
        assert_int_equal(stage_rule(&stage, "a"), rows[i].rule);
        stage_done(&stage);
    }
}

/* Every note reads as a sentence and as JSON with who, rule and numbers. */
static void test_pass_accounts_for_every_pod(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage_add_web(&stage, 3);
    add_replicas(&stage, "ReplicaSet", "web", 3);
    assert_int_equal(stage_pass(&stage), 1);
    assert_int_equal(stage.note_count, 3);
    static const char *const texts[] = {
        "Pod ns/p0 (VPA v): evicted, so that its replacement gets the recommended resources (3 "
        "running, 3 configured, 1 may be unavailable, 0 evicted and 0 resized in this pass); "
        "differs "
        "by 4x (threshold 0.1x), outside its bounds",
        "Pod ns/p1 (VPA v): its workload is at its eviction tolerance (3 running, 3 configured, 1 "
        "may be unavailable, 1 evicted and 0 resized in this pass); differs by 4x (threshold "
        "0.1x), "
        "outside its bounds",
    };
    for (size_t i = 0; i < 2; i++) {
        td_auto_buf text;
        td_buf_init(&text, 4096);
        td_updater_note_write(&stage.notes[i], &text);
        assert_string_equal(text.ptr, texts[i]);
    }
    td_auto_buf json;
    td_buf_init(&json, 4096);
    td_json_write(td_updater_note_json(&stage.arena, &stage.notes[1]), &(struct td_json_format){0},
                  &json);
    assert_string_equal(
        json.ptr,
        "{\"namespace\":\"ns\",\"vpa\":\"v\",\"pod\":\"p1\",\"rule\":\"Budget\",\"acted\":false,"
        "\"group\":{\"kind\":\"ReplicaSet\",\"name\":\"web\",\"live\":3,\"running\":3,"
        "\"pending\":0,\"required\":2,\"configured\":3,\"tolerance\":1,\"evicted\":1,"
        "\"resized\":0},\"change\":{\"resourceDiff\":4,\"threshold\":0.1,\"outside\":true,"
        "\"scaleUp\":true,\"quickOOM\":false,\"moved\":false,\"podLevel\":false}}");
    stage_done(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pass_keeps_to_the_budget),
        cmocka_unit_test(test_pass_never_lets_two_vpas_act_on_a_pod),
        cmocka_unit_test(test_pass_counts_the_whole_workload_of_a_selector),
        cmocka_unit_test(test_pass_passes_over_pods_being_deleted),
        cmocka_unit_test(test_pass_survives_an_owner_without_controller_field),
        cmocka_unit_test(test_pass_leaves_alone_what_comes_back_unchanged),
        cmocka_unit_test(test_pass_forgets_evictions_that_helped),
        cmocka_unit_test(test_pass_acts_on_a_role_change),
        cmocka_unit_test(test_pass_keeps_a_move_until_there_is_a_recommendation),
        cmocka_unit_test(test_pass_ends_a_move_that_asks_for_nothing),
        cmocka_unit_test(test_pass_takes_a_mode_for_no_role),
        cmocka_unit_test(test_pass_waits_for_age_inside_the_range),
        cmocka_unit_test(test_pass_falls_back_to_eviction),
        cmocka_unit_test(test_pass_checks_requirements_before_the_fallback),
        cmocka_unit_test(test_pass_waits_when_the_recommender_says_so),
        cmocka_unit_test(test_pass_resumes_where_the_rate_limit_stopped_it),
        cmocka_unit_test(test_pass_rests_at_a_raised_pod_request),
        cmocka_unit_test(test_pass_spares_pods_that_could_not_come_back),
        cmocka_unit_test(test_pass_accounts_for_every_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
