/* What a recommender is given of its past by an object that others may write. The first byte of an
 * input chooses the estimator, the parts between bytes of value 0 are the status of a checkpoint
 * and its annotations by turns. Whatever was loaded, a recommendation has amounts that are
 * quantities of 0 or more, also after samples and an OOM; and what is stored is loaded again
 * without a complaint. All of it within a budget. */
#include <stdint.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "budget.h"
#include "decide/vertical/estimator/estimator.h"
#include "decide/vertical/recommender/oom_annotation.h"
#include "decide/vertical/recommender/recommender.h"

#define START ((td_time)1772323200 * TD_SECOND) /* 2026-03-01 */
#define SAMPLES 90
#define MIB ((int64_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
    "tandem.dev/adaptive",
    "tandem.dev/track",
    "tandem.dev/track-shortage",
    TD_OOM_ANNOTATION,
};

struct past {
    struct td_checkpoint checkpoint;
    struct td_json *annotations;
};

/* One VPA, one pod with one container. */
struct stage {
    struct td_recommender *recommender;
    struct td_vpa vpa;
    const struct td_estimator *estimator;
    struct td_tracked_pod *pod;
};

static void stage_begin(struct td_arena *arena, struct stage *stage)
{
    static const struct td_label label = {TD_STR_INIT("app"), TD_STR_INIT("a")};
    const struct td_vertical_config config = td_vertical_config_default();
    const struct td_observed_pod observed = {.namespace = TD_STR("ns"),
                                             .name = TD_STR("p"),
                                             .labels = {.items = &label, .count = 1},
                                             .phase = TD_POD_RUNNING,
                                             .started = START};
    struct td_selector selector;
    stage->recommender = td_recommender_new(&config);
    stage->vpa = (struct td_vpa){.meta = {.name = TD_STR("v"), .namespace = TD_STR("ns")},
                                 .target_kind = TD_STR("Deployment"),
                                 .target_name = TD_STR("d"),
                                 .target_api_version = TD_STR("apps/v1"),
                                 .mode = TD_VPA_RECREATE};
    const struct td_vpa_link link = {
        .vpa = &stage->vpa, .target_selector = &selector, .estimator = stage->estimator};
    td_assert(td_selector_parse(arena, TD_STR("app=a"), &selector, NULL) == TD_OK);
    td_assert(td_recommender_set_vpa(stage->recommender, &link, START, NULL) == TD_OK);
    td_assert(td_recommender_set_pod(stage->recommender, &observed, START, &stage->pod, NULL) ==
              TD_OK);
    td_assert(td_recommender_set_container(stage->recommender, &stage->pod, TD_STR("app"), 1000,
                                           START, NULL) == TD_OK);
}

static void check_list(const struct td_resource_list *list)
{
    static const td_str resources[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};
    for (size_t i = 0; i < TD_COUNT(resources); i++) {
        const struct td_quantity *amount = td_resource_list_get(list, resources[i]);
        td_assert(!amount || td_quantity_sign(amount) >= 0);
    }
}

static void check_status(struct td_arena *arena, struct stage *stage, td_time now)
{
    struct td_vpa_status status;
    td_assert(td_recommender_status(stage->recommender, arena, &stage->vpa, NULL, now, &status,
                                    NULL) == TD_OK);
    for (size_t i = 0; i < status.recommendation.container_count; i++) {
        check_list(&status.recommendation.containers[i].target);
        check_list(&status.recommendation.containers[i].lower_bound);
        check_list(&status.recommendation.containers[i].upper_bound);
    }
    td_assert(td_vpa_status_json(arena, &status));
}

/* Refused or not, the estimator has a state that it can go on with. */
static void stage_load(struct stage *stage, const struct past *past)
{
    struct td_error err = TD_ERROR_INIT;
    int code = td_recommender_load(stage->recommender, TD_STR("ns"), &past->checkpoint,
                                   past->annotations, START, &err);
    td_assert(code == TD_OK || err.message[0] != '\0');
}

static void stage_live(struct td_arena *arena, struct stage *stage, uint8_t seed)
{
    td_time now = START;
    const struct td_oom_kill kill = {.request_bytes = 100 * MIB, .limit_bytes = 200 * MIB};
    check_status(arena, stage, now);
    for (int64_t i = 0; i < SAMPLES; i++) {
        now += TD_MINUTE * (1 + i * i / 8); /* hours at the end */
        (void)td_recommender_sample(stage->recommender, stage->pod, TD_STR("app"), TD_LEARN_CPU,
                                    now, (i * 37 + seed) % 900, now);
        (void)td_recommender_sample(stage->recommender, stage->pod, TD_STR("app"), TD_LEARN_MEMORY,
                                    now, (i * 53 + seed) % 300 * MIB, now);
    }
    (void)td_recommender_oom(stage->recommender, stage->pod, TD_STR("app"), now, &kill, now);
    check_status(arena, stage, now);
    check_status(arena, stage, now + TD_HOUR);
}

/* What is stored is as good as what an estimator itself would have written. */
static void stage_store(struct td_arena *arena, struct stage *stage)
{
    struct td_stored_checkpoint *stored;
    size_t count;
    td_assert(td_recommender_store(stage->recommender, arena, TD_STR("ns"), TD_STR("v"),
                                   START + TD_HOUR, &stored, &count, NULL) == TD_OK);
    for (size_t i = 0; i < count; i++) {
        struct td_json *status = td_checkpoint_encode_status(arena, &stored[i].checkpoint);
        struct past past = {.annotations = stored[i].annotations};
        struct td_error err = TD_ERROR_INIT;
        td_assert(td_checkpoint_decode_status(status, &past.checkpoint, &err) == TD_OK);
        td_str oom = td_json_get_str(past.annotations, TD_STR(TD_OOM_ANNOTATION), TD_STR_EMPTY);
        struct td_oom_knowledge knowledge;
        td_assert(oom.len == 0 || td_oom_annotation_decode(oom, &knowledge, &err) == TD_OK);
        if (stage->estimator->state_bytes > 0) {
            void *state = td_alloc_zero(1, stage->estimator->state_bytes);
            td_assert(stage->estimator->load(state, past.annotations, &err) == TD_OK);
            td_free(state);
        }
    }
}

static bool past_read(struct td_arena *arena, td_str input, struct past *past)
{
    struct td_json *status;
    struct td_error err = TD_ERROR_INIT;
    size_t from = td_str_find(input, '\0', 0);
    td_str text = td_str_slice(input, 0, from);
    past->annotations = td_json_new_object(arena);
    for (size_t i = 0; i < TD_COUNT(names) && from < input.len; i++) {
        size_t end = td_str_find(input, '\0', from + 1);
        td_json_set_str(arena, past->annotations, td_str_from(names[i]),
                        td_str_slice(input, from + 1, end));
        from = end;
    }
    if (td_json_parse(arena, text, NULL, &status, NULL) != TD_OK) {
        return false;
    }
    if (td_checkpoint_decode_status(status, &past->checkpoint, &err) != TD_OK) {
        td_assert(err.message[0] != '\0');
        return false;
    }
    past->checkpoint.vpa_name = TD_STR("v");
    past->checkpoint.container_name = TD_STR("app");
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const struct budget budget = budget_begin();
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct stage stage = {.estimator = td_estimator_at(data[0] % 8)};
    struct past past = {.annotations = NULL};
    td_assert(stage.estimator);
    if (past_read(&arena, (td_str){.ptr = (const char *)data + 1, .len = size - 1}, &past)) {
        stage_begin(&arena, &stage);
        stage_load(&stage, &past);
        stage_live(&arena, &stage, data[0]);
        stage_store(&arena, &stage);
        td_recommender_free(stage.recommender);
    }
    budget_end(&budget);
    return 0;
}
