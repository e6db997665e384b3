/*
 * Which pods an HPA counts, and what is known of each.
 */
#include "api/hpa/hpa_source.h"
#include "base/error.h"
#include "base/timefmt.h"
#include "control/horizontal/horizontal_private.h"

const struct td_pod *horizontal_pods_decode(struct td_arena *arena,
                                            const struct td_informer_pod *pod)
{
    struct td_json *tree;
    struct td_pod *decoded = td_arena_new(arena, struct td_pod);
    bool is_read = td_informers_tree(arena, &pod->object, &tree, NULL) == TD_OK &&
                   td_pod_decode_brief(arena, tree, decoded, NULL) == TD_OK;
    return is_read ? decoded : NULL;
}

void horizontal_pods_match(struct horizontal_sync *sync)
{
    size_t cap = 0;
    struct td_pod_match match;
    td_informers_match_pods(sync->loop->options.control.informers, sync->seen.hpa.meta.namespace,
                            &sync->decided.pass.selector, &match);
    for (const struct td_informer_pod *pod; (pod = td_pod_match_next(&match));) {
        const struct td_pod *decoded = horizontal_pods_decode(&sync->arena, pod);
        if (decoded) {
            sync->seen.pods = td_arena_grow(&sync->arena, sync->seen.pods, sync->seen.pod_count,
                                            &cap, sizeof(*sync->seen.pods));
            sync->seen.pods[sync->seen.pod_count++] = decoded;
        }
    }
}

struct td_hpa_answer horizontal_pods_answer(struct horizontal_sync *sync,
                                            struct horizontal_query *query)
{
    const struct td_hpa_metric *metric = query->metric;
    bool is_filtered = sync->decided.selection.is_filtered && !sync->decided.selection.is_failed;
    bool has_requests = td_hpa_metric_is_resource(metric) && metric->target.has_average_utilization;
    struct td_hpa_pod *pods =
        td_arena_array(&sync->arena, struct td_hpa_pod, sync->seen.pod_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < sync->seen.pod_count; i++) {
        if (is_filtered && sync->seen.filter.verdicts[i] != TD_OWNER_OWNED) {
            continue;
        }
        td_hpa_pod_fill(&pods[count], sync->seen.pods[i]);
        if (has_requests) {
            td_hpa_pod_fill_request(&pods[count], sync->seen.pods[i], metric->name,
                                    metric->container);
        }
        count++;
    }
    struct td_hpa_answer answer = {
        .is_failed = query->is_failed,
        .error = query->error,
        .timestamp = td_time_to_instant(query->time),
        .view = {.pods = pods,
                 .count = count,
                 .unowned_count = sync->seen.pod_count - count,
                 .is_owner_filtered = is_filtered},
        .values_milli = query->values,
        .value_count = query->value_count,
    };
    td_hpa_samples_join(&sync->arena, pods, count, query->samples, query->sample_count,
                        &answer.view);
    return answer;
}
