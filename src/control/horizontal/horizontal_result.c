/*
 * What an Hvpa is told: the same reconcile as that of an HPA, up to its decision, with the pods it
 * was made of and what their containers use.
 */
#include "base/error.h"
#include "base/map.h"
#include "control/horizontal/horizontal_private.h"
#include "kube/client/metrics_client.h"

struct result_context {
    td_horizontal_result_fn fn;
    void *context;
};

struct horizontal_sync *td_horizontal_ask(struct td_horizontal_loop *loop,
                                          const struct td_horizontal_input *input,
                                          td_horizontal_result_fn fn, void *context)
{
    struct horizontal_sync *sync =
        horizontal_sync_new(loop, HORIZONTAL_OWN, &horizontal_purpose_result);
    struct result_context *result = td_arena_new(&sync->arena, struct result_context);
    *result = (struct result_context){.fn = fn, .context = context};
    sync->context = result;
    sync->seen.hpa = *input->hpa;
    sync->decided.config = input->config;
    sync->decided.state = input->state;
    horizontal_sync_resume(sync, horizontal_sync_ask_scale);
    return sync;
}

void td_horizontal_cancel(struct horizontal_sync *sync)
{
    if (sync) {
        horizontal_sync_free(sync);
    }
}

/* Without those that another target owns. */
static size_t result_pods(struct horizontal_sync *sync, const struct td_pod ***ret)
{
    bool is_filtered = sync->decided.selection.is_filtered && !sync->decided.selection.is_failed;
    const struct td_pod **pods =
        td_arena_array(&sync->arena, const struct td_pod *, sync->seen.pod_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < sync->seen.pod_count; i++) {
        if (!is_filtered || sync->seen.filter.verdicts[i] == TD_OWNER_OWNED) {
            pods[count++] = sync->seen.pods[i];
        }
    }
    *ret = pods;
    return count;
}

static void result_decided(struct horizontal_sync *sync)
{
    struct td_hpa_pass *pass = &sync->decided.pass;
    bool is_read = pass->scale.fault == TD_HPA_SCALE_OK;
    const struct td_pod **pods;
    /* A target outside of its bounds goes back without looking at pods; an Hvpa needs them. */
    if (is_read && pass->path != TD_HPA_PATH_METRICS && pass->scale.selector.len > 0 &&
        td_selector_parse(&sync->arena, pass->scale.selector, &pass->selector, NULL) == TD_OK) {
        horizontal_pods_match(sync);
    }
    struct td_horizontal_result result = {
        .arena = &sync->arena,
        .pass = pass,
        .resource = is_read ? &sync->seen.resource : NULL,
        .scale = is_read ? sync->seen.scale : NULL,
        .sync = sync,
    };
    result.pod_count = result_pods(sync, &pods);
    result.pods = pods;
    const struct result_context *to = sync->context;
    to->fn(to->context, &result);
    horizontal_sync_free(sync);
}

const struct horizontal_purpose horizontal_purpose_result = {.decided = result_decided,
                                                             .keeps_uses = true};

/* Pods that count, by name. */
static void result_index(const struct td_horizontal_result *result, struct td_map *ret)
{
    for (size_t i = 0; i < result->pod_count; i++) {
        const struct td_pod *pod = result->pods[i];
        (void)td_map_put(ret, pod->meta.name, (void *)(uintptr_t)pod); /* room for all of them */
    }
}

bool td_horizontal_usage(const struct td_horizontal_result *result, td_str container,
                         td_str resource, int64_t *ret_amount)
{
    const struct horizontal_sync *sync = result->sync;
    const struct td_hpa_config *config = sync->decided.pass.config;
    const struct td_hpa_grouping grouping = {
        .is_cpu = td_str_equal(resource, TD_STR("cpu")),
        .now = horizontal_now(sync->loop),
        .cpu_initialization = config->cpu_initialization,
        .readiness_delay = config->readiness_delay,
    };
    td_auto_map pods;
    td_map_init(&pods, result->pod_count + 1);
    result_index(result, &pods);
    int64_t sum = 0;
    int64_t count = 0;
    for (size_t i = 0; i < sync->seen.use_count; i++) {
        const struct td_container_metrics *use = &sync->seen.uses[i];
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
