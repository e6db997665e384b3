/*
 * metrics.k8s.io: the use of pods and nodes, from the engine's samples, as metrics-server tells it.
 * A pod is told when all of its running containers have been measured for a whole window; a node's
 * use is that of its pods. Objects are not read for it: the store knows names and labels, the
 * engine the rest.
 */
#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "kube/quantity/quantity.h"
#include "kube/selector/selector.h"
#include "local/engine/engine.h"
#include "local/engine/faults.h"
#include "local/engine/metrics.h"
#include "local/kinds/condition.h"
#include "local/store/store.h"

#define METRICS_VERSION "metrics.k8s.io/v1beta1"
#define METRICS_KI 1024 /* memory is told in whole Ki */

struct metrics_use {
    double cpu_milli;
    double memory_bytes;
    td_time at; /* the oldest sample's */
    td_duration window;
    size_t count; /* samples in it */
};

static void metrics_add(struct metrics_use *use, const struct td_engine_sample *sample)
{
    if (use->count == 0 || sample->at < use->at) {
        use->at = sample->at;
        use->window = sample->window;
    }
    use->cpu_milli += sample->cpu_milli;
    use->memory_bytes += sample->memory_bytes;
    use->count++;
}

static struct td_json *metrics_usage(struct td_arena *arena, double cpu_milli, double memory_bytes)
{
    struct td_quantity cpu = td_quantity_new_scaled((int64_t)(cpu_milli * 1e6 + 0.5), -9);
    struct td_quantity memory =
        td_quantity_new((int64_t)(memory_bytes / METRICS_KI) * METRICS_KI, TD_QUANTITY_BINARY_SI);
    struct td_json *usage = td_json_new_object(arena);
    td_json_set_str(arena, usage, TD_STR("cpu"), td_quantity_text(arena, &cpu));
    td_json_set_str(arena, usage, TD_STR("memory"), td_quantity_text(arena, &memory));
    return usage;
}

/* Kind, version, metadata, timestamp and window. */
static struct td_json *metrics_head(struct td_api_call *call, const char *kind,
                                    const struct td_stored *stored, const struct metrics_use *use)
{
    struct td_arena *arena = &call->arena;
    char window[TD_DURATION_TEXT_BYTES];
    size_t len = td_duration_format(use->window, window);
    struct td_json *head = td_json_new_object(arena);
    struct td_json *labels = NULL;
    td_json_set_str(arena, head, TD_STR("kind"), td_str_from(kind));
    td_json_set_str(arena, head, TD_STR("apiVersion"), TD_STR(METRICS_VERSION));
    struct td_json *metadata = td_json_ensure_object(arena, head, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"), td_arena_copy_str(arena, stored->name));
    if (stored->ns.len > 0) {
        td_json_set_str(arena, metadata, TD_STR("namespace"), td_arena_copy_str(arena, stored->ns));
    }
    if (stored->labels.len > 0 && td_json_parse(arena, td_arena_copy_str(arena, stored->labels),
                                                NULL, &labels, NULL) == TD_OK) {
        td_json_set(arena, metadata, TD_STR("labels"), labels);
    }
    td_json_set_str(arena, metadata, TD_STR("creationTimestamp"),
                    td_metrics_time(arena, td_metrics_now(call)));
    const struct td_faults *faults = call->api->faults;
    td_duration ahead = faults ? faults->measures_ahead : 0;
    td_json_set_str(arena, head, TD_STR("timestamp"), td_metrics_time(arena, use->at + ahead));
    td_json_set_str(arena, head, TD_STR("window"),
                    td_arena_copy_str(arena, (td_str){.ptr = window, .len = len}));
    return head;
}

/* The metrics of a running pod, or NULL while one of its containers has not been measured. */
static struct td_json *metrics_of_pod(struct td_api_call *call, const struct td_stored *stored)
{
    const struct td_engine *engine = td_metrics_engine(call);
    const struct td_engine_pod *pod =
        engine ? td_engine_find_pod(engine, stored->ns, stored->name) : NULL;
    const struct td_engine_container *container;
    struct td_arena *arena = &call->arena;
    struct metrics_use use = {.count = 0};
    size_t position = 0;
    if (!pod) {
        return NULL;
    }
    struct td_json *list = td_json_new_array(arena);
    while ((container = td_engine_next_container(pod, &position))) {
        struct td_engine_sample sample;
        if (!td_engine_sample(container, &sample)) {
            return NULL;
        }
        metrics_add(&use, &sample);
        struct td_json *entry = td_json_new_object(arena);
        td_json_set_str(arena, entry, TD_STR("name"),
                        td_arena_copy_str(arena, td_engine_name(container)));
        td_json_set(arena, entry, TD_STR("usage"),
                    metrics_usage(arena, sample.cpu_milli, sample.memory_bytes));
        td_json_append(list, entry);
    }
    if (use.count == 0) {
        return NULL;
    }
    struct td_json *head = metrics_head(call, "PodMetrics", stored, &use);
    td_json_set(arena, head, TD_STR("containers"), list);
    return head;
}

static bool metrics_is_ready(const struct td_stored *stored)
{
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *node = NULL;
    (void)td_json_parse(&scratch, stored->json, NULL, &node, NULL); /* what we stored can be read */
    return td_condition_is(td_json_get(node, TD_STR("status")), TD_STR("Ready"), TD_STR("True"));
}

/* A node that runs nothing uses nothing, unless it is silent: then its usage is unknown. */
static struct td_json *metrics_of_node(struct td_api_call *call, const struct td_stored *stored)
{
    const struct td_engine *engine = td_metrics_engine(call);
    const struct td_engine_pod *pod;
    struct metrics_use use = {.at = td_metrics_now(call), .window = TD_METRICS_WINDOW};
    struct td_want now;
    size_t at = 0;
    if (!engine || !td_engine_node_use(engine, stored->name, &now)) {
        return NULL;
    }
    while ((pod = td_engine_next_pod(engine, stored->name, &at))) {
        const struct td_engine_container *container;
        struct td_engine_sample sample;
        size_t position = 0;
        while ((container = td_engine_next_container(pod, &position))) {
            if (td_engine_sample(container, &sample)) {
                metrics_add(&use, &sample);
            }
        }
    }
    if (use.count == 0 && !metrics_is_ready(stored)) {
        return NULL;
    }
    struct td_json *head = metrics_head(call, "NodeMetrics", stored, &use);
    td_json_set(&call->arena, head, TD_STR("usage"),
                metrics_usage(&call->arena, use.cpu_milli, use.memory_bytes));
    return head;
}

static struct td_json *metrics_of(struct td_api_call *call, const struct td_stored *stored)
{
    return td_str_equal(call->path.plural, TD_STR("pods")) ? metrics_of_pod(call, stored)
                                                           : metrics_of_node(call, stored);
}

static void metrics_list(struct td_api_call *call, const struct td_collection *collection)
{
    struct td_arena *arena = &call->arena;
    struct td_selector selector;
    if (!td_metrics_selector(call, &selector)) {
        return;
    }
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    bool is_pods = td_str_equal(call->path.plural, TD_STR("pods"));
    struct td_json *items = td_json_new_array(arena);
    struct td_collection_iter iter = td_collection_walk(collection, call->path.ns);
    for (const struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        struct td_json *item =
            td_metrics_selected(&scratch, &selector, stored) ? metrics_of(call, stored) : NULL;
        if (item) {
            td_json_append(items, item);
        }
        td_arena_reset(&scratch);
    }
    struct td_json *list = td_json_new_object(arena);
    td_json_set_str(arena, list, TD_STR("kind"),
                    is_pods ? TD_STR("PodMetricsList") : TD_STR("NodeMetricsList"));
    td_json_set_str(arena, list, TD_STR("apiVersion"), TD_STR(METRICS_VERSION));
    td_json_set(arena, list, TD_STR("metadata"), td_json_new_object(arena));
    td_json_set(arena, list, TD_STR("items"), items);
    td_call_reply_json(call, 200, list);
}

void td_metrics_resource(struct td_api_call *call)
{
    struct td_collection *collection;
    struct td_error err = TD_ERROR_INIT;
    if (td_store_collection(td_api_store(call->api), call->path.plural, &collection, &err) !=
        TD_OK) {
        td_call_fail(call, 413, "RequestEntityTooLarge", "%s", err.message);
        return;
    }
    if (call->path.name.len == 0) {
        metrics_list(call, collection);
        return;
    }
    const struct td_stored *stored = td_collection_get(collection, call->path.ns, call->path.name);
    struct td_json *item = stored ? metrics_of(call, stored) : NULL;
    if (item) {
        td_call_reply_json(call, 200, item);
    } else {
        td_call_not_found(call, call->path.name);
    }
}
