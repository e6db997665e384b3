/* What the recommender says of a VPA under the adaptive estimator: nothing of what was not
 * measured, and since when it has measured. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/error.h"
#include "decide/vertical/estimator/track.h"
#include "decide/vertical/recommender/recommender.h"
#include "decide/vertical/resourcelist.h"

#define START ((td_time)1772323200 * TD_SECOND) /* 2026-03-01 */
#define MIB ((int64_t)1 << 20)

/* One VPA and one pod with containers "a" and "b". */
struct stage {
    struct td_arena arena;
    struct td_recommender *recommender;
    struct td_vpa vpa;
    struct td_tracked_pod *pod;
};

static void stage_link(struct stage *stage, const struct td_estimator *estimator)
{
    struct td_selector selector;
    assert_int_equal(td_selector_parse(&stage->arena, TD_STR("app=a"), &selector, NULL), TD_OK);
    const struct td_vpa_link link = {.vpa = &stage->vpa,
                                     .target_selector = &selector,
                                     .target = TD_STR_EMPTY,
                                     .estimator = estimator};
    assert_int_equal(td_recommender_set_vpa(stage->recommender, &link, START, NULL), TD_OK);
}

static void stage_init(struct stage *stage, const struct td_estimator *estimator)
{
    struct td_vertical_config config = td_vertical_config_default();
    *stage = (struct stage){.pod = NULL};
    td_arena_init(&stage->arena, SIZE_MAX);
    stage->recommender = td_recommender_new(&config);
    stage->vpa = (struct td_vpa){
        .meta = {.name = TD_STR("v"), .namespace = TD_STR("ns"), .generation = 1},
        .target_kind = TD_STR("Deployment"),
        .target_name = TD_STR("d"),
        .mode = TD_VPA_RECREATE,
    };
    stage_link(stage, estimator);
    const struct td_label label = {TD_STR("app"), TD_STR("a")};
    const struct td_observed_pod observed = {.namespace = TD_STR("ns"),
                                             .name = TD_STR("p"),
                                             .labels = {.items = &label, .count = 1},
                                             .target = TD_STR_EMPTY,
                                             .phase = TD_POD_RUNNING};
    const td_str names[] = {TD_STR("a"), TD_STR("b")};
    assert_int_equal(
        td_recommender_set_pod(stage->recommender, &observed, START, &stage->pod, NULL), TD_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            td_recommender_set_container(stage->recommender, &stage->pod, names[i], 0, START, NULL),
            TD_OK);
    }
}

static void stage_done(struct stage *stage)
{
    td_recommender_free(stage->recommender);
    td_arena_done(&stage->arena);
}

static void stage_sample(struct stage *stage, const char *container,
                         enum td_learn_resource resource, td_time at, int64_t amount)
{
    assert_int_equal(td_recommender_sample(stage->recommender, stage->pod, td_str_from(container),
                                           resource, at, amount, at),
                     TD_FEED_TAKEN);
}

/* The status becomes the object's, as the API would have it at the next pass. */
static struct td_vpa_status stage_status(struct stage *stage, td_time now)
{
    struct td_vpa_status status;
    assert_int_equal(td_recommender_status(stage->recommender, &stage->arena, &stage->vpa, NULL,
                                           now, &status, NULL),
                     TD_OK);
    stage->vpa.has_recommendation = true;
    stage->vpa.recommendation = status.recommendation;
    stage->vpa.conditions = status.conditions;
    stage->vpa.condition_count = status.condition_count;
    stage->vpa.observed_generation = status.observed_generation;
    return status;
}

/* Since when, or TD_TIME_NONE. */
static td_time since_of(const struct td_vpa_status *status)
{
    for (size_t i = 0; i < status->condition_count; i++) {
        if (td_str_equal(status->conditions[i].type, TD_ADAPTIVE_CONDITION)) {
            assert_true(td_str_equal(status->conditions[i].status, TD_STR("True")));
            return td_time_from_instant(status->conditions[i].last_transition);
        }
    }
    return TD_TIME_NONE;
}

/* A container is recommended when it was measured, a resource when that was. */
static void test_nothing_is_recommended_of_what_was_not_measured(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage, &td_estimator_adaptive);
    assert_int_equal(stage_status(&stage, START).recommendation.container_count, 0);
    stage_sample(&stage, "a", TD_LEARN_CPU, START + TD_MINUTE, 300);
    struct td_vpa_status status = stage_status(&stage, START + TD_MINUTE);
    assert_int_equal(status.recommendation.container_count, 1);
    const struct td_container_recommendation *a = &status.recommendation.containers[0];
    assert_non_null(td_resource_list_get(&a->target, TD_CPU));
    assert_null(td_resource_list_get(&a->target, TD_MEMORY));
    assert_null(td_resource_list_get(&a->lower_bound, TD_MEMORY));
    assert_null(td_resource_list_get(&a->upper_bound, TD_MEMORY));
    stage_sample(&stage, "a", TD_LEARN_MEMORY, START + 2 * TD_MINUTE, 300 * MIB);
    status = stage_status(&stage, START + 2 * TD_MINUTE);
    a = &status.recommendation.containers[0];
    assert_non_null(td_resource_list_get(&a->target, TD_MEMORY));
    stage_done(&stage);
}

/* A VPA that had another estimator until now does not recommend the minimum in the meantime. */
static void test_a_change_of_the_estimator_recommends_nothing_until_it_measured(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage, &td_estimator_upstream);
    stage_sample(&stage, "a", TD_LEARN_CPU, START + TD_MINUTE, 300);
    stage_sample(&stage, "a", TD_LEARN_MEMORY, START + TD_MINUTE, 300 * MIB);
    struct td_vpa_status status = stage_status(&stage, START + TD_MINUTE);
    assert_int_equal(status.recommendation.container_count, 1);
    assert_int_equal(since_of(&status), TD_TIME_NONE);
    stage_link(&stage, &td_estimator_adaptive);
    assert_int_equal(stage_status(&stage, START + 2 * TD_MINUTE).recommendation.container_count, 0);
    stage_sample(&stage, "a", TD_LEARN_CPU, START + 3 * TD_MINUTE, 300);
    status = stage_status(&stage, START + 3 * TD_MINUTE);
    assert_int_equal(status.recommendation.container_count, 1);
    assert_int_equal(since_of(&status), START + 3 * TD_MINUTE);
    stage_done(&stage);
}

/* The condition has the first sample of the container that was measured last, stays as it is, and
 * goes with the estimator. */
static void test_a_condition_says_since_when_it_has_measured(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage, &td_estimator_adaptive_careful);
    for (int minute = 1; minute < 5; minute++) {
        stage_sample(&stage, "a", TD_LEARN_CPU, START + minute * TD_MINUTE, 300);
        struct td_vpa_status status = stage_status(&stage, START + minute * TD_MINUTE);
        assert_int_equal(since_of(&status), START + TD_MINUTE);
        assert_int_equal(status.is_changed, minute == 1);
    }
    stage_sample(&stage, "b", TD_LEARN_MEMORY, START + TD_HOUR, MIB);
    struct td_vpa_status status = stage_status(&stage, START + TD_HOUR);
    assert_int_equal(since_of(&status), START + TD_HOUR);
    stage_link(&stage, &td_estimator_upstream);
    status = stage_status(&stage, START + TD_HOUR);
    assert_int_equal(since_of(&status), TD_TIME_NONE);
    stage_done(&stage);
}

static const struct td_vpa_condition *condition_of(const struct td_vpa_status *status, td_str type)
{
    return td_vpa_condition_find(status->conditions, status->condition_count, type);
}

static void stage_terms(struct stage *stage, const char *container, enum td_resize_lack lack)
{
    const struct td_container_terms terms = {.cpu_request_milli = 100, .lack = lack};
    td_recommender_set_terms(stage->recommender, stage->pod, td_str_from(container), &terms, START);
}

/* A VPA that goes from adaptive to track keeps what it knew of memory, and each estimator says
 * since when it has measured; one container that cannot be resized is adaptive's, with the reason.
 */
static void test_a_change_to_track_keeps_what_was_learnt(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage, &td_estimator_adaptive);
    assert_false(td_recommender_wants_terms(stage.pod));
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "a" : "b";
        stage_sample(&stage, name, TD_LEARN_CPU, START + TD_MINUTE, 300);
        stage_sample(&stage, name, TD_LEARN_MEMORY, START + TD_MINUTE, 300 * MIB);
    }
    (void)stage_status(&stage, START + TD_MINUTE);
    stage_link(&stage, &td_estimator_track_calm);
    assert_true(td_recommender_wants_terms(stage.pod));
    stage_terms(&stage, "a", TD_RESIZE_POSSIBLE);
    stage_terms(&stage, "b", TD_RESIZE_RESTARTS);
    stage_sample(&stage, "a", TD_LEARN_CPU, START + TD_HOUR, 300);
    stage_sample(&stage, "b", TD_LEARN_CPU, START + TD_HOUR, 300);
    struct td_vpa_status status = stage_status(&stage, START + TD_HOUR);
    assert_int_equal(status.recommendation.container_count, 2);
    assert_int_equal(since_of(&status), START + TD_MINUTE);
    const struct td_vpa_condition *track = condition_of(&status, TD_TRACK_CONDITION);
    assert_non_null(track);
    assert_int_equal(td_time_from_instant(track->last_transition), START + TD_HOUR);
    assert_true(td_str_equal(track->reason, TD_STR("Calm")));
    const struct td_vpa_condition *adaptive = condition_of(&status, TD_ADAPTIVE_CONDITION);
    assert_true(td_str_equal(adaptive->reason, TD_STR("InsteadOfTrack")));
    assert_true(td_str_starts_with(
        adaptive->message, TD_STR("container 'b' is sized by adaptive instead of track, because "
                                  "its resizePolicy of cpu is RestartContainer; ")));
    assert_string_equal(status.accounts[0].estimator, "track-calm");
    assert_string_equal(status.accounts[1].estimator, "adaptive");
    /* The pod is gone: nothing speaks against resizing any more. */
    stage_terms(&stage, "b", TD_RESIZE_POSSIBLE);
    status = stage_status(&stage, START + 2 * TD_HOUR);
    assert_null(status.accounts[1].instead);
    stage_done(&stage);
}

/* Both parts of the state are in the checkpoint's annotations, and a restart goes on with them. */
static void test_track_is_stored_beside_adaptive(void **unused)
{
    (void)unused;
    struct stage stage;
    struct stage after;
    stage_init(&stage, &td_estimator_track);
    stage_init(&after, &td_estimator_track_careful);
    stage_sample(&stage, "a", TD_LEARN_CPU, START + TD_MINUTE, 300);
    stage_sample(&stage, "a", TD_LEARN_MEMORY, START + TD_MINUTE, 300 * MIB);
    struct td_stored_checkpoint *stored;
    size_t count;
    assert_int_equal(td_recommender_store(stage.recommender, &stage.arena, TD_STR("ns"),
                                          TD_STR("v"), START + TD_MINUTE, &stored, &count, NULL),
                     TD_OK);
    assert_int_equal(count, 2);
    assert_non_null(td_json_get(stored[0].annotations, TD_STR("tandem.dev/track")));
    assert_non_null(td_json_get(stored[0].annotations, TD_STR("tandem.dev/adaptive")));
    assert_int_equal(td_recommender_load(after.recommender, TD_STR("ns"), &stored[0].checkpoint,
                                         stored[0].annotations, START + TD_HOUR, NULL),
                     TD_OK);
    struct td_vpa_status before = stage_status(&stage, START + TD_HOUR);
    struct td_vpa_status status = stage_status(&after, START + TD_HOUR);
    assert_int_equal(status.recommendation.container_count, 1);
    assert_int_equal(before.recommendation.container_count, 1);
    assert_string_equal(status.accounts[0].cpu.detail, before.accounts[0].cpu.detail);
    stage_done(&after);
    stage_done(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_recommended_of_what_was_not_measured),
        cmocka_unit_test(test_a_change_of_the_estimator_recommends_nothing_until_it_measured),
        cmocka_unit_test(test_a_condition_says_since_when_it_has_measured),
        cmocka_unit_test(test_a_change_to_track_keeps_what_was_learnt),
        cmocka_unit_test(test_track_is_stored_beside_adaptive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
