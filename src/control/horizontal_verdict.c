/*
 * What an Hvpa is told: the same reconcile as that of an HPA, up to its decision, with the pods it
 * was made of and what their containers use.
 */
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "control/horizontal/horizontal_private.h"

struct horizontal_sync *td_horizontal_ask(struct td_horizontal_loop *loop,
                                          const struct td_horizontal_question *question,
                                          td_horizontal_verdict_fn fn, void *context)
{
    return horizontal_sync_start_verdict(loop, question, fn, context);
}

void td_horizontal_cancel(struct horizontal_sync *sync)
{
    if (sync) {
        horizontal_sync_free(sync);
    }
}

/* Without those that belong to somebody else. */
static size_t verdict_pods(struct horizontal_sync *sync, const struct td_pod ***ret)
{
    bool is_filtered = sync->selection.is_filtered && !sync->selection.is_failed;
    const struct td_pod **pods =
        td_arena_array(&sync->arena, const struct td_pod *, sync->pod_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < sync->pod_count; i++) {
        if (!is_filtered || sync->filter.verdicts[i] == TD_OWNER_OWNED) {
            pods[count++] = sync->pods[i];
        }
    }
    *ret = pods;
    return count;
}

void horizontal_verdict_tell(struct horizontal_sync *sync)
{
    struct td_hpa_pass *pass = &sync->pass;
    bool is_read = pass->scale.fault == TD_HPA_SCALE_OK;
    const struct td_pod **pods;
    /* Whoever is outside of its bounds goes back without looking at pods; an Hvpa needs them. */
    if (is_read && pass->path != TD_HPA_PATH_METRICS && pass->scale.selector.len > 0 &&
        td_selector_parse(&sync->arena, pass->scale.selector, &pass->selector, NULL) == TD_OK) {
        horizontal_pods_match(sync);
    }
    struct td_horizontal_verdict verdict = {
        .arena = &sync->arena,
        .pass = pass,
        .resource = is_read ? &sync->resource : NULL,
        .scale = is_read ? sync->scale : NULL,
        .sync = sync,
    };
    verdict.pod_count = verdict_pods(sync, &pods);
    verdict.pods = pods;
    sync->verdict(sync->verdict_context, &verdict);
    horizontal_sync_free(sync);
}

/* Pods that count, by name. */
static void verdict_index(const struct td_horizontal_verdict *verdict, struct td_map *ret)
{
    for (size_t i = 0; i < verdict->pod_count; i++) {
        const struct td_pod *pod = verdict->pods[i];
        (void)td_map_put(ret, pod->name, (void *)(uintptr_t)pod); /* room for all of them */
    }
}

bool td_horizontal_usage(const struct td_horizontal_verdict *verdict, td_str container,
                         td_str resource, int64_t *ret_amount)
{
    const struct horizontal_sync *sync = verdict->sync;
    const struct td_hpa_config *config = sync->pass.config;
    const struct td_hpa_grouping grouping = {
        .is_cpu = td_str_equal(resource, TD_STR("cpu")),
        .now = horizontal_now(sync->loop),
        .cpu_initialization = config->cpu_initialization,
        .readiness_delay = config->readiness_delay,
    };
    td_auto_map pods;
    td_map_init(&pods, verdict->pod_count + 1);
    verdict_index(verdict, &pods);
    int64_t sum = 0;
    int64_t count = 0;
    for (size_t i = 0; i < sync->use_count; i++) {
        const struct horizontal_use *use = &sync->uses[i];
        const struct td_pod *pod = td_map_get(&pods, use->pod);
        bool has_value = grouping.is_cpu ? use->has_cpu : use->has_memory;
        if (!pod || !has_value || !td_str_equal(use->container, container)) {
            continue;
        }
        struct td_hpa_pod judged = {.has_sample = false};
        td_hpa_pod_fill(&judged, pod);
        judged.has_sample = true;
        judged.sample_time = use->time;
        judged.sample_window = use->window;
        if (td_hpa_pod_judge(&judged, &grouping) == TD_HPA_WHY_COUNTED) {
            sum = td_hpa_add(sum, grouping.is_cpu ? use->cpu_milli : use->memory_bytes);
            count++;
        }
    }
    if (count > 0) {
        *ret_amount = sum / count + (sum % count != 0);
    }
    return count > 0;
}
