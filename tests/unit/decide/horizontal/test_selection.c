/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>
/* clang-format on */

#include "decide/horizontal/account.h"
#include "decide/horizontal/owners.h"
#include "unit/decide/support.h"

#define PODS 5

/* The proposal's example: a Deployment of two pods and a Job of three share the label app=test-app.
 * The Deployment idles, the Job works hard. */
struct example {
    struct td_arena arena;
    struct td_owner_cache cache;
    struct td_pod pods[PODS];
    const struct td_pod *matched[PODS];
    struct td_hpa hpa;
    struct td_hpa_metric metric;
};

static const struct td_owner_reference of_replica_set = {
    .api_version = TD_STR_INIT("apps/v1"),
    .kind = TD_STR_INIT("ReplicaSet"),
    .name = TD_STR_INIT("web-1"),
    .uid = TD_STR_INIT("uid-rs"),
};
static const struct td_owner_reference of_job = {
    .api_version = TD_STR_INIT("batch/v1"),
    .kind = TD_STR_INIT("Job"),
    .name = TD_STR_INIT("report"),
    .uid = TD_STR_INIT("uid-job"),
};
static const struct td_owner_reference of_deployment = {
    .api_version = TD_STR_INIT("apps/v1"),
    .kind = TD_STR_INIT("Deployment"),
    .name = TD_STR_INIT("web"),
    .uid = TD_STR_INIT("uid-web"),
};

static void make_example(struct example *example)
{
    static const td_str names[PODS] = {TD_STR_INIT("web-1-a"), TD_STR_INIT("web-1-b"),
                                       TD_STR_INIT("report-a"), TD_STR_INIT("report-b"),
                                       TD_STR_INIT("report-c")};
    td_arena_init(&example->arena, 1 << 20);
    td_owner_cache_init(&example->cache, TD_OWNER_TTL_DEFAULT, TD_OWNER_MISSING_TTL_DEFAULT);
    for (size_t i = 0; i < PODS; i++) {
        example->pods[i] = (struct td_pod){.meta = {.namespace = TD_STR("shop"),
                                                    .name = names[i],
                                                    .owners = i < 2 ? &of_replica_set : &of_job,
                                                    .owner_count = 1},
                                           .phase = TD_POD_RUNNING,
                                           .ready = TD_CONDITION_TRUE,
                                           .start_time = TEST_NOW - TD_HOUR,
                                           .ready_since = TEST_NOW - TD_HOUR};
        example->matched[i] = &example->pods[i];
    }
    example->metric = (struct td_hpa_metric){
        .type = TD_HPA_RESOURCE,
        .type_text = TD_STR("Resource"),
        .name = TD_STR("cpu"),
        .target = {.type = TD_HPA_AVERAGE_VALUE,
                   .has_average_value = true,
                   .average_value_milli = 500},
    };
    example->hpa = test_hpa(1, 20);
    example->hpa.metrics = &example->metric;
    example->hpa.metric_count = 1;
}

static void free_example(struct example *example)
{
    td_owner_cache_done(&example->cache);
    td_arena_done(&example->arena);
}

static const struct td_owner_target web = {.group = TD_STR_INIT("apps"),
                                           .kind = TD_STR_INIT("Deployment"),
                                           .name = TD_STR_INIT("web"),
                                           .namespace = TD_STR_INIT("shop"),
                                           .uid = TD_STR_INIT("uid-web")};

/* The verdicts of a filter whose only fetch is the ReplicaSet. */
static void filter_example(struct example *example, struct td_owner_filter *filter)
{
    td_owner_filter_begin(filter, &example->arena, &example->cache, &web, example->matched, PODS,
                          TEST_NOW);
    assert_int_equal(td_owner_filter_step(filter), TD_OWNER_FETCH);
    assert_int_equal(filter->wanted_count, 1);
    assert_true(td_str_equal(filter->wanted[0].kind, TD_STR("ReplicaSet")));
    td_owner_filter_answer(filter, 0, TD_OWNER_FOUND, TD_STR("uid-rs"), &of_deployment, 1);
    assert_int_equal(td_owner_filter_step(filter), TD_OWNER_DONE);
}

/* One decision over the pods that count. */
static struct td_hpa_pass decide(struct example *example, struct td_hpa_state *state,
                                 const struct td_owner_filter *filter)
{
    static const struct td_hpa_config config = {
        .tolerance = 0.1, .cpu_initialization = 5 * TD_MINUTE, .readiness_delay = 30 * TD_SECOND};
    struct td_hpa_pod *items = td_arena_array(&example->arena, struct td_hpa_pod, PODS);
    struct td_hpa_sample samples[PODS];
    struct td_hpa_answer answer = {.view = {.is_owner_filtered = filter != NULL}};
    size_t count = 0;
    for (size_t i = 0; i < PODS; i++) {
        samples[i] = (struct td_hpa_sample){.pod = example->pods[i].meta.name,
                                            .value_milli = i < 2 ? 500 : 2000,
                                            .at = TEST_NOW,
                                            .window = 30 * TD_SECOND};
        if (!filter || filter->verdicts[i] == TD_OWNER_OWNED) {
            td_hpa_pod_fill(&items[count++], &example->pods[i]);
        }
    }
    answer.view.unowned_count = PODS - count;
    td_hpa_samples_join(&example->arena, items, count, samples, PODS, &answer.view);
    struct td_hpa_scale scale = {
        .spec_replicas = 2, .status_replicas = 2, .selector = TD_STR("app=test-app")};
    struct td_hpa_pass pass;
    td_hpa_begin(&pass, &example->arena, &example->hpa, &config, state, &scale, TEST_NOW);
    td_hpa_decide(&pass, &answer, TEST_NOW);
    return pass;
}

/* Counting by labels takes the Job's load for the Deployment's; counting by owners does not. */
static void test_job_sharing_labels_misleads_labels_but_not_owners(void **state)
{
    (void)state;
    struct example example;
    make_example(&example);
    struct td_hpa_state memory;
    td_hpa_state_init(&memory);
    struct td_hpa_pass by_labels = decide(&example, &memory, NULL);
    assert_int_equal(by_labels.proposed, 14); /* 1400m a pod over five pods */
    assert_true(by_labels.wants_rescale);
    td_hpa_state_done(&memory);
    td_hpa_state_init(&memory);
    struct td_owner_filter filter;
    filter_example(&example, &filter);
    struct td_hpa_pass by_owners = decide(&example, &memory, &filter);
    assert_int_equal(by_owners.proposed, 2); /* 500m a pod over its own two */
    assert_false(by_owners.wants_rescale);
    assert_int_equal(by_owners.evaluation.results[0].calculation.unowned_count, 3);
    td_owner_filter_done(&filter);
    td_hpa_state_done(&memory);
    free_example(&example);
}

static void assert_same_text(td_str a, td_str b)
{
    assert_true(td_str_equal(a, b));
}

/* With the gate off a strategy in the spec changes nothing at all: not the choice, not an event,
 * not a bit of the decision. */
static void test_gate_off_is_todays_behaviour(void **state)
{
    (void)state;
    struct example example;
    make_example(&example);
    const struct td_hpa_strategy_options off = {.primary_key = TD_HPA_STRATEGY_ANNOTATION,
                                                .by_default = TD_HPA_STRATEGY_OWNERS};
    struct td_hpa_pass passes[2];
    struct td_hpa_state memories[2];
    struct td_hpa_events events = {.arena = &example.arena};
    for (size_t i = 0; i < 2; i++) {
        td_hpa_state_init(&memories[i]);
        example.hpa.has_selection_strategy = i == 1;
        example.hpa.selection_strategy = TD_STR("OwnerReference");
        struct td_hpa_strategy_choice choice = td_hpa_strategy_choose(&example.hpa, &off);
        assert_int_equal(choice.strategy, TD_HPA_STRATEGY_LABELS);
        assert_int_equal(choice.source, TD_HPA_STRATEGY_FROM_GATE);
        td_hpa_strategy_observe(&memories[i].strategy, &choice, &events);
        passes[i] = decide(&example, &memories[i], NULL);
    }
    assert_int_equal(events.count, 0);
    /* Everything a decision holds is in its account, its status and its history. */
    struct td_buf accounts[2];
    for (size_t i = 0; i < 2; i++) {
        td_buf_init(&accounts[i], 1 << 16);
        td_hpa_account_write(&passes[i], NULL, TD_HPA_ACCOUNT_JSON, &accounts[i]);
        td_hpa_finish(&passes[i], TEST_NOW);
    }
    assert_string_equal(accounts[0].ptr, accounts[1].ptr);
    assert_true(td_json_equal(passes[0].updated, passes[1].updated));
    assert_int_equal(passes[0].events.count, passes[1].events.count);
    assert_same_text(passes[0].rescale_reason, passes[1].rescale_reason);
    assert_int_equal(memories[0].history.recommendations.count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct td_hpa_recommendation *a = &memories[0].history.recommendations.items[i];
        const struct td_hpa_recommendation *b = &memories[1].history.recommendations.items[i];
        assert_true(a->at == b->at && a->replicas == b->replicas);
    }
    td_buf_done(&accounts[0]);
    td_buf_done(&accounts[1]);
    td_hpa_state_done(&memories[0]);
    td_hpa_state_done(&memories[1]);
    free_example(&example);
}

/* A ring of owners ends, and answers that may pass fail the filter and are not kept. */
static void test_rings_end_and_passing_failures_are_not_cached(void **state)
{
    (void)state;
    struct example example;
    make_example(&example);
    const struct td_owner_target target = {.group = TD_STR("argoproj.io"),
                                           .kind = TD_STR("Rollout"),
                                           .name = TD_STR("web"),
                                           .namespace = TD_STR("shop"),
                                           .uid = TD_STR("uid-rollout")};
    struct td_owner_filter filter;
    td_owner_filter_begin(&filter, &example.arena, &example.cache, &target, example.matched, 2,
                          TEST_NOW);
    assert_int_equal(td_owner_filter_step(&filter), TD_OWNER_FETCH);
    td_owner_filter_answer(&filter, 0, TD_OWNER_FOUND, TD_STR("uid-rs"), &of_replica_set, 1);
    assert_int_equal(td_owner_filter_step(&filter), TD_OWNER_DONE);
    assert_int_equal(filter.owned_count, 0);
    td_owner_filter_done(&filter);
    td_owner_filter_begin(&filter, &example.arena, &example.cache, &target, example.matched, PODS,
                          TEST_NOW);
    assert_int_equal(td_owner_filter_step(&filter), TD_OWNER_FETCH);
    td_owner_filter_answer(&filter, 0, TD_OWNER_TIMED_OUT, TD_STR_EMPTY, NULL, 0);
    assert_int_equal(td_owner_filter_step(&filter), TD_OWNER_GIVEN_UP);
    assert_int_equal(filter.cause, TD_HPA_FILTER_TIMEOUT);
    assert_same_text(filter.culprit, TD_STR("Job/report"));
    td_owner_filter_done(&filter);
    assert_int_equal(example.cache.entries.count, 1);
    td_owner_cache_sweep(&example.cache, TEST_NOW + TD_OWNER_TTL_DEFAULT);
    assert_int_equal(example.cache.entries.count, 1);
    td_owner_cache_sweep(&example.cache, TEST_NOW + TD_OWNER_TTL_DEFAULT + 1);
    assert_int_equal(example.cache.entries.count, 0);
    free_example(&example);
}

/* References of one uid with another kind or name are not the same owner: neither does one pod's
 * verdict count for another pod, nor does one reference of a pod hide the next. */
static void test_references_of_one_uid_are_told_apart(void **state)
{
    (void)state;
    struct example example;
    make_example(&example);
    struct td_owner_reference forged = of_replica_set;
    forged.kind = TD_STR("Job");
    const struct td_owner_reference both[] = {{.api_version = of_replica_set.api_version,
                                               .kind = of_replica_set.kind,
                                               .name = TD_STR("gone"),
                                               .uid = of_replica_set.uid},
                                              of_replica_set};
    example.pods[0].meta.owners = &of_replica_set;
    example.pods[0].meta.owner_count = 1;
    example.pods[1].meta.owners = &forged;
    example.pods[1].meta.owner_count = 1;
    example.pods[2].meta.owners = both;
    example.pods[2].meta.owner_count = 2;
    for (size_t first = 0; first < 2; first++) { /* whichever is judged first */
        const struct td_pod *pods[] = {&example.pods[first], &example.pods[1 - first],
                                       &example.pods[2]};
        struct td_owner_filter filter;
        td_owner_filter_begin(&filter, &example.arena, &example.cache, &web, pods, 3, TEST_NOW);
        while (td_owner_filter_step(&filter) == TD_OWNER_FETCH) {
            for (size_t i = 0; i < filter.wanted_count; i++) {
                bool is_known = td_str_equal(filter.wanted[i].name, of_replica_set.name);
                td_owner_filter_answer(&filter, i, is_known ? TD_OWNER_FOUND : TD_OWNER_MISSING,
                                       of_replica_set.uid, &of_deployment, 1);
            }
        }
        assert_int_equal(filter.verdicts[first], TD_OWNER_OWNED);
        assert_int_equal(filter.verdicts[1 - first], TD_OWNER_NOT_OWNED);
        assert_int_equal(filter.verdicts[2], TD_OWNER_OWNED);
        td_owner_filter_done(&filter);
    }
    free_example(&example);
}

/* A pod with more references than any workload needs is looked at in part and counts as not owned.
 */
static void test_many_references_are_bounded(void **state)
{
    (void)state;
    struct example example;
    make_example(&example);
    struct td_owner_reference *many =
        td_arena_array(&example.arena, struct td_owner_reference, 1000);
    for (size_t i = 0; i < 1000; i++) {
        many[i] = of_job;
        many[i].uid = td_arena_format(&example.arena, "uid-%zu", i);
        many[i].name = td_arena_format(&example.arena, "job-%zu", i);
    }
    example.pods[0].meta.owners = many;
    example.pods[0].meta.owner_count = 1000;
    const struct td_owner_target target = {.group = TD_STR("example.com"),
                                           .kind = TD_STR("Widget"),
                                           .name = TD_STR("w"),
                                           .namespace = TD_STR("shop"),
                                           .uid = TD_STR("uid-w")};
    struct td_owner_filter filter;
    td_owner_filter_begin(&filter, &example.arena, &example.cache, &target, example.matched, 1,
                          TEST_NOW);
    assert_int_equal(td_owner_filter_step(&filter), TD_OWNER_FETCH);
    assert_int_equal(filter.wanted_count, TD_OWNER_VISITS_MAX);
    for (size_t i = 0; i < TD_OWNER_VISITS_MAX; i++) {
        td_owner_filter_answer(&filter, i, TD_OWNER_MISSING, TD_STR_EMPTY, NULL, 0);
    }
    assert_int_equal(td_owner_filter_step(&filter), TD_OWNER_DONE);
    assert_int_equal(filter.verdicts[0], TD_OWNER_NOT_OWNED);
    assert_int_equal(filter.too_deep_count, 1);
    td_owner_filter_done(&filter);
    free_example(&example);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_sharing_labels_misleads_labels_but_not_owners),
        cmocka_unit_test(test_gate_off_is_todays_behaviour),
        cmocka_unit_test(test_rings_end_and_passing_failures_are_not_cached),
        cmocka_unit_test(test_references_of_one_uid_are_told_apart),
        cmocka_unit_test(test_many_references_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
