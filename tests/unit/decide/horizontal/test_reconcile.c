/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>
/* clang-format on */

#include "decide/horizontal/account.h"
#include "unit/decide/support.h"

#define ROUNDS 3000

static const struct td_hpa_metric cpu_metric = {
    .type = TD_HPA_RESOURCE,
    .type_text = TD_STR_INIT("Resource"),
    .name = TD_STR_INIT("cpu"),
    .target = {.type = TD_HPA_UTILIZATION,
               .has_average_utilization = true,
               .average_utilization = 60},
};
static const struct td_hpa_metric queue_metric = {
    .type = TD_HPA_EXTERNAL,
    .type_text = TD_STR_INIT("External"),
    .name = TD_STR_INIT("queue"),
    .target = {.type = TD_HPA_AVERAGE_VALUE,
               .has_average_value = true,
               .average_value_milli = 1000},
};

/* An answer without a value is no usage of 0: nothing is scaled in, and the words are the client's.
 */
static void test_an_empty_answer_is_a_failure(void **state)
{
    (void)state;
    static const struct {
        enum td_hpa_metric_type type;
        bool is_average;
        const char *expected;
    } rows[] = {
        {TD_HPA_EXTERNAL, true,
         "unable to get external metric shop/queue/nil: no metrics returned from external metrics "
         "API"},
        {TD_HPA_EXTERNAL, false,
         "unable to get external metric shop/queue/nil: no metrics returned from external metrics "
         "API"},
        {TD_HPA_OBJECT, true,
         "unable to get metric queue: Ingress on shop main/no metrics returned from custom metrics "
         "API"},
        {TD_HPA_OBJECT, false,
         "unable to get metric queue: Ingress on shop main/no metrics returned from custom metrics "
         "API"},
    };
    const struct td_hpa_config config = td_hpa_config_default();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        struct td_hpa_pod pod = test_pod(TD_STR("p"), 1000, 0);
        const struct td_hpa_metric metric = {
            .type = rows[i].type,
            .name = TD_STR("queue"),
            .described = {.kind = TD_STR("Ingress"), .name = TD_STR("main")},
            .target = {.type = rows[i].is_average ? TD_HPA_AVERAGE_VALUE : TD_HPA_VALUE,
                       .has_average_value = rows[i].is_average,
                       .average_value_milli = 1000,
                       .has_value = !rows[i].is_average,
                       .value_milli = 1000},
        };
        struct td_hpa hpa = test_hpa(1, 10);
        hpa.metrics = &metric;
        hpa.metric_count = 1;
        const struct td_hpa_answer answer = {.view = {.pods = &pod, .count = 1}};
        const struct td_hpa_evaluation_input input = {.hpa = &hpa,
                                                      .config = &config,
                                                      .now = TEST_NOW,
                                                      .spec_replicas = 4,
                                                      .status_replicas = 4,
                                                      .answers = &answer};
        struct td_hpa_conditions conditions = {.arena = &arena};
        struct td_hpa_events events = {.arena = &arena};
        struct td_hpa_evaluation made = td_hpa_evaluate(&arena, &input, &conditions, &events);
        assert_int_equal(made.replicas, -1);
        assert_true(made.results[0].is_failed);
        assert_string_equal(td_arena_copy_str(&arena, made.results[0].inner).ptr, rows[i].expected);
    }
}

/* Two metrics in any state of health: the count stays in bounds, and as soon as one of them is
 * broken or no pod has a sample it does not fall. */
static void test_never_scales_in_on_missing_metrics(void **state)
{
    (void)state;
    uint64_t seed = 4;
    const struct td_hpa_config config = td_hpa_config_default();
    const struct td_hpa_metric metrics[2] = {cpu_metric, queue_metric};
    for (int round = 0; round < ROUNDS; round++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        struct td_hpa_state memory;
        td_hpa_state_init(&memory);
        struct td_hpa hpa = test_hpa(1 + test_below(&seed, 3), 10 + test_below(&seed, 30));
        hpa.metrics = metrics;
        hpa.metric_count = 2;
        struct td_hpa_pod pods[8];
        size_t count = (size_t)test_below(&seed, 8) + 1;
        bool has_sample = test_below(&seed, 2) > 0;
        for (size_t i = 0; i < count; i++) {
            pods[i] = test_pod(TD_STR("p"), 1000, test_below(&seed, 2000));
            pods[i].has_sample = has_sample;
        }
        int64_t value = test_below(&seed, 50) * 1000;
        struct td_hpa_answer answers[2] = {
            {.view = {.pods = pods, .count = count}},
            {.values_milli = &value, .value_count = 1, .error = TD_STR("down")}};
        answers[1].is_failed = test_below(&seed, 2) > 0;
        struct td_hpa_scale scale = {.spec_replicas =
                                         hpa.min_replicas +
                                         test_below(&seed, hpa.max_replicas - hpa.min_replicas + 1),
                                     .status_replicas = 1 + test_below(&seed, 10),
                                     .selector = TD_STR("app=web")};
        struct td_hpa_pass pass;
        td_hpa_begin(&pass, &arena, &hpa, &config, &memory, &scale, TEST_NOW);
        assert_int_equal(pass.path, TD_HPA_PATH_METRICS);
        td_hpa_decide(&pass, answers, TEST_NOW + TD_HOUR);
        if (pass.wants_rescale) {
            assert_in_range(pass.desired, hpa.min_replicas, hpa.max_replicas);
            td_hpa_rescaled(&pass, true, TD_STR_EMPTY, TEST_NOW + TD_HOUR);
        }
        td_hpa_finish(&pass, TEST_NOW + TD_HOUR);
        if (answers[1].is_failed || !has_sample) {
            assert_true(!pass.wants_rescale || pass.desired > scale.spec_replicas);
        }
        td_hpa_state_done(&memory);
    }
}

/* Every way to begin, told by what it leads to. */
static void test_paths(void **state)
{
    (void)state;
    static const struct {
        int32_t current;
        int32_t min;
        bool can_zero;
        enum td_hpa_path path;
        int32_t desired;
    } rows[] = {
        {0, 1, false, TD_HPA_PATH_DISABLED, 0},    {0, 0, true, TD_HPA_PATH_DISABLED, 0},
        {11, 1, false, TD_HPA_PATH_ABOVE_MAX, 10}, {1, 2, false, TD_HPA_PATH_BELOW_MIN, 2},
        {10, 1, false, TD_HPA_PATH_METRICS, 0},    {2, 2, false, TD_HPA_PATH_METRICS, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        struct td_hpa_state memory;
        td_hpa_state_init(&memory);
        struct td_hpa hpa = test_hpa(rows[i].min, 10);
        struct td_hpa_config config = td_hpa_config_default();
        config.can_scale_to_zero = rows[i].can_zero;
        struct td_hpa_scale scale = {.spec_replicas = rows[i].current};
        struct td_hpa_pass pass;
        td_hpa_begin(&pass, &arena, &hpa, &config, &memory, &scale, TEST_NOW);
        assert_int_equal(pass.path, rows[i].path);
        assert_int_equal(pass.desired, rows[i].desired);
        td_hpa_state_done(&memory);
    }
}

static struct td_hpa_pass one_pass(struct td_arena *arena, const struct td_hpa *hpa,
                                   const struct td_hpa_config *config, struct td_hpa_state *memory,
                                   struct td_hpa_pod *pods, size_t count)
{
    struct td_hpa_scale scale = {
        .spec_replicas = 4, .status_replicas = 4, .selector = TD_STR("app=web")};
    struct td_hpa_answer answer = {.view = {.pods = pods, .count = count}};
    struct td_hpa_pass pass;
    td_hpa_begin(&pass, arena, hpa, config, memory, &scale, TEST_NOW);
    td_hpa_decide(&pass, &answer, TEST_NOW);
    return pass;
}

/* The account says what was wanted, done and held, in both forms from one tree. */
static void test_account_explains_a_limited_rise(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_hpa_state memory;
    td_hpa_state_init(&memory);
    const struct td_hpa_config config = td_hpa_config_default();
    const struct td_hpa_policy policy = {TD_HPA_POLICY_PODS, 2, 60};
    struct td_hpa hpa = test_hpa(1, 20);
    hpa.metrics = &cpu_metric;
    hpa.metric_count = 1;
    hpa.has_behavior = true;
    hpa.scale_up = (struct td_hpa_rules){.policies = &policy, .policy_count = 1};
    hpa.scale_down = hpa.scale_up;
    struct td_hpa_pod pods[5];
    for (size_t i = 0; i < 5; i++) {
        pods[i] = test_pod(TD_STR("p"), 1000, 1200);
    }
    pods[4].ready = TD_CONDITION_FALSE;
    pods[4].start_time = TEST_NOW - TD_MINUTE;
    struct td_hpa_pass pass = one_pass(&arena, &hpa, &config, &memory, pods, 5);
    assert_int_equal(pass.desired, 6);
    td_auto_buf text;
    td_buf_init(&text, 1 << 16);
    td_hpa_account_write(&pass, NULL, TD_HPA_ACCOUNT_TEXT, &text);
    static const char *const parts[] = {
        "web (HorizontalPodAutoscaler shop/web of Deployment/web, replicas 1..20) decided at ",
        "8 replicas: cpu resource utilization (percentage of request) 120% of target 60% over 4 "
        "ready pods (1 starting); 5 x 1.6 rounded up",
        "did     4 -> 6 replicas",
        "6 instead of 8: the desired replica count is increasing faster than the maximum scale "
        "rate, policy Pods 2 in 60 s",
        "would change it: scales out: cpu resource utilization (percentage of request) above 83%\n",
        "would change it: scales in: cpu resource utilization (percentage of request) at or below "
        "45%\n",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        assert_non_null(strstr(text.ptr, parts[i]));
    }
    td_buf_reset(&text);
    td_hpa_account_write(&pass, NULL, TD_HPA_ACCOUNT_JSON, &text);
    struct td_json *tree = NULL;
    assert_int_equal(td_json_parse(&arena, td_buf_str(&text), NULL, &tree, NULL), 0);
    assert_int_equal(td_json_get_int64(tree, TD_STR("desiredReplicas"), 0), 6);
    assert_int_equal(td_json_get_int64(tree, TD_STR("proposedReplicas"), 0), 8);
    td_hpa_state_done(&memory);
}

/* What is said of the values at which an HPA moves: rounding up, tolerance, minReplicas and
 * maxReplicas, a disabled direction. */
static void test_account_thresholds_are_exact(void **state)
{
    (void)state;
    static const struct {
        int32_t min;
        int32_t max;
        int32_t target;
        bool is_in_disabled;
        const char *out;
        const char *in;
    } rows[] = {
        {1, 10, 80, false, " above 88%\n", " at or below 60%\n"},
        {4, 10, 80, false, " above 88%\n", "scales in: not below minReplicas 4\n"},
        {1, 4, 80, false, "scales out: not beyond maxReplicas 4\n", " at or below 60%\n"},
        {1, 10, 80, true, " above 88%\n", "scales in: not while its selectPolicy is Disabled\n"},
        {1, 10, 3, false, " above 3%\n", " at or below 2%\n"},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        td_auto_arena arena = td_arena_capped(1 << 20);
        struct td_hpa_state memory;
        td_hpa_state_init(&memory);
        const struct td_hpa_config config = td_hpa_config_default();
        struct td_hpa_metric metric = cpu_metric;
        metric.target.average_utilization = rows[i].target;
        struct td_hpa hpa = test_hpa(rows[i].min, rows[i].max);
        hpa.metrics = &metric;
        hpa.metric_count = 1;
        hpa.has_behavior = rows[i].is_in_disabled;
        hpa.scale_down.select = TD_HPA_SELECT_DISABLED;
        struct td_hpa_pod pods[4];
        for (size_t j = 0; j < 4; j++) {
            pods[j] = test_pod(TD_STR("p"), 1000, 660);
        }
        struct td_hpa_pass pass = one_pass(&arena, &hpa, &config, &memory, pods, 4);
        td_auto_buf text = td_buf_capped(1 << 16);
        td_hpa_account_write(&pass, NULL, TD_HPA_ACCOUNT_TEXT, &text);
        assert_non_null(strstr(text.ptr, rows[i].out));
        assert_non_null(strstr(text.ptr, rows[i].in));
        td_hpa_state_done(&memory);
    }
}

/* Where the count would begin to move stays a number, however large the target. */
static void test_account_thresholds_of_a_target_at_the_cap(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_hpa_state memory;
    td_hpa_state_init(&memory);
    struct td_hpa_config config = td_hpa_config_default();
    config.tolerance = 0;
    const struct td_hpa_metric metric = {
        .type = TD_HPA_PODS,
        .name = TD_STR("load"),
        .target = {.has_average_value = true, .average_value_milli = INT64_MAX},
    };
    struct td_hpa hpa = test_hpa(1, 20);
    hpa.metrics = &metric;
    hpa.metric_count = 1;
    struct td_hpa_pod pod = test_pod(TD_STR("p"), 0, 1000);
    struct td_hpa_pass pass = one_pass(&arena, &hpa, &config, &memory, &pod, 1);
    td_auto_buf text;
    td_buf_init(&text, 1 << 16);
    td_hpa_account_write(&pass, NULL, TD_HPA_ACCOUNT_TEXT, &text);
    assert_null(strstr(text.ptr, "scales out: pods metric"));
    assert_non_null(strstr(text.ptr, "scales in: pods metric load at or below 9.22P\n"));
    td_hpa_state_done(&memory);
}

/* Two HPAs over one pod are both found, by an equality or without one; a third that selects other
 * pods is not, nor one of another namespace, nor one that was not reconciled yet. */
static void test_tracker_finds_all_that_select_a_pod(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_hpa_tracker tracker;
    td_hpa_tracker_init(&tracker);
    static const struct {
        td_str namespace;
        td_str name;
        const char *selector;
    } rows[] = {
        {TD_STR_INIT("shop"), TD_STR_INIT("b"), "app=web"},
        {TD_STR_INIT("shop"), TD_STR_INIT("a"), "app"},
        {TD_STR_INIT("shop"), TD_STR_INIT("c"), "app=web,tier=back"},
        {TD_STR_INIT("shop"), TD_STR_INIT("d"), "app in (web),tier!=front"},
        {TD_STR_INIT("shop"), TD_STR_INIT("e"), NULL},
        {TD_STR_INIT("else"), TD_STR_INIT("f"), "app=web"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(td_hpa_tracker_add(&tracker, rows[i].namespace, rows[i].name), 0);
        if (rows[i].selector) {
            assert_int_equal(td_hpa_tracker_put(&tracker, rows[i].namespace, rows[i].name,
                                                td_str_from(rows[i].selector), NULL),
                             0);
        }
    }
    const struct td_label labels[] = {{TD_STR("app"), TD_STR("web")},
                                      {TD_STR("tier"), TD_STR("front")}};
    const struct td_pod pod = {.meta.labels = {.items = labels, .count = 2}};
    const struct td_pod *pods[] = {&pod, &pod};
    td_str names[TD_HPA_AMBIGUOUS_MAX];
    assert_int_equal(td_hpa_tracker_find(&tracker, NULL, TD_STR("shop"), pods, 2, names), 2);
    assert_true(td_str_equal(names[0], TD_STR("shop/a")));
    assert_true(td_str_equal(names[1], TD_STR("shop/b")));
    td_hpa_tracker_remove(&tracker, TD_STR("shop"), TD_STR("a"));
    assert_int_equal(
        td_hpa_tracker_put(&tracker, TD_STR("shop"), TD_STR("b"), TD_STR("app=other"), NULL), 0);
    assert_int_equal(td_hpa_tracker_find(&tracker, NULL, TD_STR("shop"), pods, 2, names), 0);
    assert_true(td_hpa_tracker_put(&tracker, TD_STR("shop"), TD_STR("b"), TD_STR("=="), NULL) < 0);
    assert_int_equal(
        td_hpa_tracker_put(&tracker, TD_STR("shop"), TD_STR("nobody"), TD_STR("app=web"), NULL), 0);
    td_hpa_tracker_done(&tracker);
}

/* HPAs whose labels overlap: how many of their passes go on, and what the others say. */
static void test_ambiguity_by_labels_or_by_target(void **state)
{
    (void)state;
    static const struct {
        bool is_owner_scoped;
        enum td_hpa_strategy strategies[2];
        const char *targets[2]; /* name */
        const char *versions[2];
        bool is_alone[2];
    } rows[] = {
#define OWNERS TD_HPA_STRATEGY_OWNERS
#define LABELS TD_HPA_STRATEGY_LABELS
        {false, {LABELS, LABELS}, {"web", "canary"}, {"apps/v1", "apps/v1"}, {false, false}},
        {false, {OWNERS, OWNERS}, {"web", "canary"}, {"apps/v1", "apps/v1"}, {false, false}},
        {true, {LABELS, LABELS}, {"web", "canary"}, {"apps/v1", "apps/v1"}, {false, false}},
        {true, {OWNERS, OWNERS}, {"web", "canary"}, {"apps/v1", "apps/v1"}, {true, true}},
        {true, {OWNERS, LABELS}, {"web", "canary"}, {"apps/v1", "apps/v1"}, {true, false}},
        {true, {OWNERS, OWNERS}, {"web", "web"}, {"apps/v1", "apps/v1"}, {false, false}},
        {true, {OWNERS, LABELS}, {"web", "web"}, {"apps/v1", "apps/v1"}, {false, false}},
        {true, {OWNERS, OWNERS}, {"web", "web"}, {"apps/v1", "apps/v1beta2"}, {false, false}},
        {true, {OWNERS, OWNERS}, {"web", "web"}, {"apps/v1", "batch/v1"}, {true, true}},
    };
    static const td_str names[] = {TD_STR_INIT("a"), TD_STR_INIT("b")};
    const struct td_label label = {TD_STR("app"), TD_STR("web")};
    const struct td_pod pod = {.meta.labels = {.items = &label, .count = 1}};
    const struct td_pod *pods[] = {&pod};
    const struct td_hpa_matched matched = {.pods = pods, .count = 1};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        struct td_hpa_config config = td_hpa_config_default();
        assert_true(config.is_ambiguity_owner_scoped);
        config.is_ambiguity_owner_scoped = rows[i].is_owner_scoped;
        struct td_hpa_tracker tracker;
        td_hpa_tracker_init(&tracker);
        for (size_t turn = 0; turn < 4; turn++) { /* twice each: the first sees only itself */
            size_t one = turn % 2;
            struct td_hpa hpa = test_hpa(1, 10);
            hpa.meta.name = names[one];
            hpa.target.name = td_str_from(rows[i].targets[one]);
            hpa.target.api_version = td_str_from(rows[i].versions[one]);
            assert_int_equal(td_hpa_tracker_add(&tracker, TD_STR("shop"), names[one]), 0);
            struct td_hpa_state memory;
            td_hpa_state_init(&memory);
            struct td_hpa_scale scale = {.spec_replicas = 4, .selector = TD_STR("app=web")};
            struct td_hpa_pass pass;
            td_hpa_begin(&pass, &arena, &hpa, &config, &memory, &scale, TEST_NOW);
            pass.strategy = rows[i].strategies[one];
            assert_true(td_hpa_select(&pass, TEST_NOW));
            bool is_alone = td_hpa_select_alone(&pass, &tracker, &matched, TEST_NOW);
            assert_int_equal(is_alone, turn == 0 || rows[i].is_alone[one]);
            if (!is_alone) {
                assert_string_equal(pass.late_event.ptr,
                                    "pods by selector app=web are controlled by multiple HPAs: "
                                    "[shop/a shop/b]");
            }
            td_hpa_state_done(&memory);
        }
        td_hpa_tracker_done(&tracker);
    }
}

/* ReplicaSet NAME of the Deployment that the context names; "lost" is not known. */
static const struct td_workload *find_replica_set(void *context, td_str kind, td_str namespace,
                                                  td_str name)
{
    static struct td_owner_reference owner;
    static struct td_workload workload;
    owner = (struct td_owner_reference){.api_version = TD_STR("apps/v1"),
                                        .kind = TD_STR("Deployment"),
                                        .name = td_str_from(context),
                                        .uid = TD_STR("uid-deployment")};
    workload = (struct td_workload){.namespace = namespace,
                                    .kind = kind,
                                    .name = name,
                                    .uid = TD_STR("uid-set"),
                                    .owners = &owner,
                                    .owner_count = 1};
    return td_str_equal(name, TD_STR("lost")) ? NULL : &workload;
}

/* One HPA counts what Deployment "broad" owns of the pods with tier=a, another by labels the pods
 * of "api" with app=api, tier=a: they share pods only where "broad" owns one of those. */
static void test_ambiguity_is_judged_on_pods_that_count(void **state)
{
    (void)state;
    static const struct {
        const char *replica_set;
        const char *deployment; /* that owns it */
        bool is_owner_scoped;
        bool is_alone;
    } rows[] = {
        {"api-1", "api", true, true},
        {"api-1", "broad", true, false},
        {"lost", "api", true, false}, /* whose it is cannot be told */
        {"api-1", "api", false, false},
    };
    const struct td_label labels[] = {{TD_STR("app"), TD_STR("api")},
                                      {TD_STR("tier"), TD_STR("a")}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        const struct td_owner_reference owner = {.api_version = TD_STR("apps/v1"),
                                                 .kind = TD_STR("ReplicaSet"),
                                                 .name = td_str_from(rows[i].replica_set),
                                                 .uid = TD_STR("uid-set")};
        const struct td_pod pod = {
            .meta = {.labels = {.items = labels, .count = 2}, .owners = &owner, .owner_count = 1}};
        const struct td_pod *pods[] = {&pod, &pod};
        const struct td_workload_source source = {.context = (void *)(uintptr_t)rows[i].deployment,
                                                  .get_workload = find_replica_set};
        const struct td_hpa_matched matched = {.pods = pods, .count = 2, .source = &source};
        struct td_hpa_config config = td_hpa_config_default();
        config.is_ambiguity_owner_scoped = rows[i].is_owner_scoped;
        struct td_hpa_tracker tracker;
        td_hpa_tracker_init(&tracker);
        bool is_alone = false;
        for (size_t turn = 0; turn < 2; turn++) {
            struct td_hpa hpa = test_hpa(1, 10);
            hpa.meta.name = turn == 0 ? TD_STR("broad") : TD_STR("api");
            hpa.target.api_version = TD_STR("apps/v1");
            hpa.target.name = hpa.meta.name;
            assert_int_equal(td_hpa_tracker_add(&tracker, TD_STR("shop"), hpa.meta.name), 0);
            struct td_hpa_state memory;
            td_hpa_state_init(&memory);
            struct td_hpa_scale scale = {
                .spec_replicas = 4, .selector = turn == 0 ? TD_STR("tier=a") : TD_STR("app=api")};
            struct td_hpa_pass pass;
            td_hpa_begin(&pass, &arena, &hpa, &config, &memory, &scale, TEST_NOW);
            pass.strategy = turn == 0 ? OWNERS : LABELS;
            assert_true(td_hpa_select(&pass, TEST_NOW));
            is_alone = td_hpa_select_alone(&pass, &tracker, &matched, TEST_NOW);
            assert_true(is_alone || turn == 1);
            td_hpa_state_done(&memory);
        }
        assert_int_equal(is_alone, rows[i].is_alone);
        td_hpa_tracker_done(&tracker);
    }
}

/* Targets are known before the first reconcile, follow a change, and go with their HPA. */
static void test_tracker_finds_all_of_a_target(void **state)
{
    (void)state;
    struct td_hpa_tracker tracker;
    td_hpa_tracker_init(&tracker);
    const struct td_object_reference web = {
        .api_version = TD_STR("apps/v1"), .kind = TD_STR("Deployment"), .name = TD_STR("web")};
    const struct td_object_reference set = {
        .api_version = TD_STR("apps/v1"), .kind = TD_STR("StatefulSet"), .name = TD_STR("web")};
    td_str found[TD_HPA_AMBIGUOUS_MAX];
    td_hpa_tracker_put_target(&tracker, TD_STR("shop"), TD_STR("nobody"), &web);
    assert_int_equal(td_hpa_tracker_find_target(&tracker, TD_STR("shop"), &web, found), 0);
    for (char name = 'z'; name >= 'a'; name--) {
        td_str text = {.ptr = &name, .len = 1};
        assert_int_equal(td_hpa_tracker_add(&tracker, TD_STR("shop"), text), 0);
        td_hpa_tracker_put_target(&tracker, TD_STR("shop"), text, name < 'd' ? &web : &set);
    }
    assert_int_equal(td_hpa_tracker_find_target(&tracker, TD_STR("shop"), &web, found), 3);
    assert_true(td_str_equal(found[0], TD_STR("shop/a")));
    assert_true(td_str_equal(found[2], TD_STR("shop/c")));
    assert_int_equal(td_hpa_tracker_find_target(&tracker, TD_STR("shop"), &set, found),
                     TD_HPA_AMBIGUOUS_MAX);
    assert_int_equal(td_hpa_tracker_find_target(&tracker, TD_STR("else"), &web, found), 0);
    td_hpa_tracker_put_target(&tracker, TD_STR("shop"), TD_STR("a"), &set);
    td_hpa_tracker_put_target(&tracker, TD_STR("shop"), TD_STR("b"), &web);
    td_hpa_tracker_remove(&tracker, TD_STR("shop"), TD_STR("c"));
    assert_int_equal(td_hpa_tracker_find_target(&tracker, TD_STR("shop"), &web, found), 1);
    td_hpa_tracker_done(&tracker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_answer_is_a_failure),
        cmocka_unit_test(test_never_scales_in_on_missing_metrics),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_account_explains_a_limited_rise),
        cmocka_unit_test(test_account_thresholds_are_exact),
        cmocka_unit_test(test_account_thresholds_of_a_target_at_the_cap),
        cmocka_unit_test(test_tracker_finds_all_that_select_a_pod),
        cmocka_unit_test(test_ambiguity_by_labels_or_by_target),
        cmocka_unit_test(test_ambiguity_is_judged_on_pods_that_count),
        cmocka_unit_test(test_tracker_finds_all_of_a_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
