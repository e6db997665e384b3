/*
 * Which pods an HPA counts, and what is known of each.
 */
#include "base/error.h"
#include "base/timefmt.h"
#include "control/horizontal/horizontal_private.h"

static const struct td_pod *pods_decode(struct td_arena *arena, const struct td_sight_pod *pod)
{
    struct td_json *tree;
    struct td_pod *decoded = td_arena_new(arena, struct td_pod);
    bool is_read = td_sight_tree(arena, &pod->object, &tree, NULL) == TD_OK &&
                   td_pod_decode(arena, tree, decoded, NULL) == TD_OK;
    return is_read ? decoded : NULL;
}

void horizontal_pods_match(struct horizontal_sync *sync)
{
    size_t cap = 0;
    struct td_sight_match match;
    td_sight_match_pods(sync->loop->options.control.sight, sync->hpa.meta.namespace,
                        &sync->pass.selector, &match);
    for (const struct td_sight_pod *pod; (pod = td_sight_match_next(&match));) {
        const struct td_pod *decoded = pods_decode(&sync->arena, pod);
        if (decoded) {
            sync->pods =
                td_arena_grow(&sync->arena, sync->pods, sync->pod_count, &cap, sizeof(*sync->pods));
            sync->pods[sync->pod_count++] = decoded;
        }
    }
}

/* ---- Answers ---- */

static bool pods_is_of_resource(const struct td_hpa_metric *metric)
{
    return metric->type == TD_HPA_RESOURCE || metric->type == TD_HPA_CONTAINER_RESOURCE;
}

struct td_hpa_answer horizontal_pods_answer(struct horizontal_sync *sync,
                                            struct horizontal_question *question)
{
    const struct td_hpa_metric *metric = question->metric;
    bool is_filtered = sync->selection.is_filtered && !sync->selection.is_failed;
    bool has_requests = pods_is_of_resource(metric) && metric->target.has_average_utilization;
    struct td_hpa_pod *pods = td_arena_array(&sync->arena, struct td_hpa_pod, sync->pod_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < sync->pod_count; i++) {
        if (is_filtered && sync->filter.verdicts[i] != TD_OWNER_OWNED) {
            continue;
        }
        td_hpa_pod_fill(&pods[count], sync->pods[i]);
        if (has_requests) {
            td_hpa_pod_fill_request(&pods[count], sync->pods[i], metric->name, metric->container);
        }
        count++;
    }
    struct td_hpa_answer answer = {
        .is_failed = question->is_failed,
        .error = question->error,
        .timestamp = td_time_to_instant(question->time),
        .view = {.pods = pods,
                 .count = count,
                 .unowned_count = sync->pod_count - count,
                 .is_owner_filtered = is_filtered},
        .values_milli = question->values,
        .value_count = question->value_count,
    };
    td_hpa_samples_join(&sync->arena, pods, count, question->samples, question->sample_count,
                        &answer.view);
    return answer;
}
