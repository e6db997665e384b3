/*
 * The three metrics APIs. Until somebody measures, what there is to tell is written on the objects
 * themselves: a pod's annotation usage.tandem.dev/CONTAINER: "250m,300Mi" is its use, an
 * annotation metrics.tandem.dev/NAME: "20" on any object is a custom metric about it, and a
 * ConfigMap with the label metrics.tandem.dev/external: "true" holds external metrics, a value for
 * each name in its data, with its other labels as theirs.
 */
#include <string.h>

#include "base/error.h"
#include "kube/labels.h"
#include "kube/quantity.h"
#include "kube/selector.h"
#include "local/api_private.h"
#include "local/store.h"

#define METRICS_USAGE "usage.tandem.dev/"
#define METRICS_CUSTOM "metrics.tandem.dev/"
#define METRICS_EXTERNAL "metrics.tandem.dev/external"
#define METRICS_WINDOW_SECONDS 15

static td_str metrics_now(struct td_api_call *call)
{
    char text[TD_TIME_TEXT_BYTES];
    size_t len = td_time_format(td_call_now(call), 0, text);
    return td_arena_copy_str(&call->arena, (td_str){.ptr = text, .len = len});
}

static struct td_json *metrics_parse(struct td_api_call *call, const struct td_stored *stored)
{
    struct td_json *tree = NULL;
    const struct td_json_options options = {.copy_strings = true};
    if (!memmem(stored->json.ptr, stored->json.len, "tandem.dev/", strlen("tandem.dev/"))) {
        return NULL; /* without an annotation of ours it need not be read */
    }
    /* What we stored can be read; if not, there is nothing to tell of it. */
    (void)td_json_parse(&call->arena, stored->json, &options, &tree, NULL);
    return tree;
}

struct metrics_use {
    struct td_quantity cpu;
    struct td_quantity memory;
};

/* "250m,300Mi"; false when it is not that. */
static bool metrics_read_use(struct td_arena *arena, td_str text, struct metrics_use *ret)
{
    size_t comma = td_str_find(text, ',', 0);
    return comma < text.len &&
           td_quantity_parse(arena, td_str_slice(text, 0, comma), &ret->cpu, NULL) == TD_OK &&
           td_quantity_parse(arena, td_str_slice(text, comma + 1, text.len), &ret->memory, NULL) ==
               TD_OK;
}

static struct td_json *metrics_usage_tree(struct td_arena *arena, const struct metrics_use *use)
{
    struct td_json *usage = td_json_new_object(arena);
    td_json_set_str(arena, usage, TD_STR("cpu"), td_quantity_text(arena, &use->cpu));
    td_json_set_str(arena, usage, TD_STR("memory"), td_quantity_text(arena, &use->memory));
    return usage;
}

static struct td_json *metrics_head(struct td_api_call *call, const char *kind,
                                    const struct td_json *object)
{
    struct td_arena *arena = &call->arena;
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    struct td_json *head = td_json_new_object(arena);
    td_json_set_str(arena, head, TD_STR("kind"), td_str_from(kind));
    td_json_set_str(arena, head, TD_STR("apiVersion"), TD_STR("metrics.k8s.io/v1beta1"));
    struct td_json *copy = td_json_ensure_object(arena, head, TD_STR("metadata"));
    static const char *const kept[] = {"name", "namespace", "labels"};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        const struct td_json *value = td_json_get(metadata, td_str_from(kept[i]));
        if (value) {
            td_json_set(arena, copy, td_str_from(kept[i]), td_json_copy(arena, value, false));
        }
    }
    td_json_set_str(arena, copy, TD_STR("creationTimestamp"), metrics_now(call));
    td_json_set_str(arena, head, TD_STR("timestamp"), metrics_now(call));
    td_json_set_str(arena, head, TD_STR("window"),
                    td_arena_format(arena, "%ds", METRICS_WINDOW_SECONDS));
    return head;
}

/* The metrics of a running pod, or NULL when nobody measured it; its sum is added to *sum. */
static struct td_json *metrics_of_pod(struct td_api_call *call, const struct td_json *pod,
                                      struct metrics_use *sum)
{
    struct td_arena *arena = &call->arena;
    const struct td_json *annotations = td_json_get_path(pod, "metadata.annotations");
    const struct td_json *containers = td_json_get_path(pod, "spec.containers");
    td_str phase =
        td_json_get_str(td_json_get(pod, TD_STR("status")), TD_STR("phase"), TD_STR_EMPTY);
    if (!annotations || !td_str_equal(phase, TD_STR("Running"))) {
        return NULL;
    }
    struct td_json *list = td_json_new_array(arena);
    for (const struct td_json *c = containers ? containers->first : NULL; c; c = c->next) {
        td_str name = td_json_get_str(c, TD_STR("name"), TD_STR_EMPTY);
        td_str key = td_arena_format(arena, METRICS_USAGE "%.*s", TD_STR_ARG(name));
        struct metrics_use use;
        if (!metrics_read_use(arena, td_json_get_str(annotations, key, TD_STR_EMPTY), &use)) {
            continue;
        }
        struct td_json *entry = td_json_new_object(arena);
        td_json_set_str(arena, entry, TD_STR("name"), name);
        td_json_set(arena, entry, TD_STR("usage"), metrics_usage_tree(arena, &use));
        td_json_append(list, entry);
        td_quantity_add(arena, &sum->cpu, &use.cpu);
        td_quantity_add(arena, &sum->memory, &use.memory);
    }
    if (list->count == 0) {
        return NULL;
    }
    struct td_json *head = metrics_head(call, "PodMetrics", pod);
    td_json_set(arena, head, TD_STR("containers"), list);
    return head;
}

static struct metrics_use metrics_zero(void)
{
    return (struct metrics_use){.cpu = td_quantity_new(0, TD_QUANTITY_DECIMAL_SI),
                                .memory = td_quantity_new(0, TD_QUANTITY_BINARY_SI)};
}

/* A node's use is that of its pods; a node without measured pods is not measured either. */
static struct td_json *metrics_of_node(struct td_api_call *call, const struct td_json *node)
{
    const struct td_collection *pods = td_store_find(td_api_store(call->api), TD_STR("pods"));
    td_str name =
        td_json_get_str(td_json_get(node, TD_STR("metadata")), TD_STR("name"), TD_STR_EMPTY);
    struct metrics_use sum = metrics_zero();
    size_t measured = 0;
    struct td_collection_iter iter;
    const struct td_stored *stored;
    if (!pods) {
        return NULL;
    }
    td_collection_iter_init(&iter, pods, TD_STR_EMPTY);
    while ((stored = td_collection_iter_next(&iter))) {
        const struct td_json *pod = metrics_parse(call, stored);
        td_str on =
            td_json_get_str(td_json_get(pod, TD_STR("spec")), TD_STR("nodeName"), TD_STR_EMPTY);
        if (td_str_equal(on, name) && metrics_of_pod(call, pod, &sum)) {
            measured++;
        }
    }
    if (measured == 0) {
        return NULL;
    }
    struct td_json *head = metrics_head(call, "NodeMetrics", node);
    td_json_set(&call->arena, head, TD_STR("usage"), metrics_usage_tree(&call->arena, &sum));
    return head;
}

static struct td_json *metrics_of(struct td_api_call *call, const struct td_json *object)
{
    struct metrics_use sum = metrics_zero();
    return td_str_equal(call->path.plural, TD_STR("pods")) ? metrics_of_pod(call, object, &sum)
                                                           : metrics_of_node(call, object);
}

/* The label selector of the query; false when it was refused. */
static bool metrics_selector(struct td_api_call *call, td_str text, struct td_selector *ret)
{
    struct td_error err = TD_ERROR_INIT;
    if (td_selector_parse(&call->arena, text, ret, &err) == TD_OK) {
        return true;
    }
    td_call_fail(call, 400, "BadRequest", "%s", err.message);
    return false;
}

static bool metrics_selected(struct td_arena *arena, const struct td_selector *selector,
                             const struct td_json *object)
{
    struct td_labels labels =
        td_labels_from_json(arena, td_json_get_path(object, "metadata.labels"));
    return td_selector_matches(selector, &labels);
}

static void metrics_list(struct td_api_call *call, const struct td_collection *collection)
{
    struct td_arena *arena = &call->arena;
    struct td_selector selector;
    if (!metrics_selector(call, call->query.label_selector, &selector)) {
        return;
    }
    struct td_json *items = td_json_new_array(arena);
    struct td_collection_iter iter;
    const struct td_stored *stored;
    td_collection_iter_init(&iter, collection, call->path.ns);
    while ((stored = td_collection_iter_next(&iter))) {
        struct td_json *object = metrics_parse(call, stored);
        struct td_json *item =
            metrics_selected(arena, &selector, object) ? metrics_of(call, object) : NULL;
        if (item) {
            td_json_append(items, item);
        }
    }
    struct td_json *list = td_json_new_object(arena);
    td_json_set_str(arena, list, TD_STR("kind"),
                    td_str_equal(call->path.plural, TD_STR("pods")) ? TD_STR("PodMetricsList")
                                                                    : TD_STR("NodeMetricsList"));
    td_json_set_str(arena, list, TD_STR("apiVersion"), TD_STR("metrics.k8s.io/v1beta1"));
    td_json_set(arena, list, TD_STR("metadata"), td_json_new_object(arena));
    td_json_set(arena, list, TD_STR("items"), items);
    td_call_reply_json(call, 200, list);
}

static void metrics_resource(struct td_api_call *call)
{
    const struct td_collection *collection =
        td_store_find(td_api_store(call->api), call->path.plural);
    if (call->path.name.len == 0 && collection) {
        metrics_list(call, collection);
        return;
    }
    const struct td_stored *stored =
        collection ? td_collection_get(collection, call->path.ns, call->path.name) : NULL;
    struct td_json *item = stored ? metrics_of(call, metrics_parse(call, stored)) : NULL;
    if (item) {
        td_call_reply_json(call, 200, item);
    } else {
        td_call_not_found(call, call->path.name);
    }
}

/* ---- Custom metrics ---- */

static struct td_json *metrics_custom_value(struct td_api_call *call,
                                            const struct td_resource *resource,
                                            const struct td_json *object, td_str metric)
{
    struct td_arena *arena = &call->arena;
    td_str key = td_arena_format(arena, METRICS_CUSTOM "%.*s", TD_STR_ARG(metric));
    td_str text =
        td_json_get_str(td_json_get_path(object, "metadata.annotations"), key, TD_STR_EMPTY);
    struct td_quantity quantity;
    if (text.len == 0 || td_quantity_parse(arena, text, &quantity, NULL) != TD_OK) {
        return NULL;
    }
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    struct td_json *about = td_json_new_object(arena);
    td_json_set_str(arena, about, TD_STR("kind"), resource->kind);
    td_json_set_str(arena, about, TD_STR("namespace"),
                    td_json_get_str(metadata, TD_STR("namespace"), TD_STR_EMPTY));
    td_json_set_str(arena, about, TD_STR("name"),
                    td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY));
    td_json_set_str(arena, about, TD_STR("apiVersion"),
                    resource->versions[resource->storage].api_version);
    struct td_json *value = td_json_new_object(arena);
    td_json_set(arena, value, TD_STR("describedObject"), about);
    if (call->at.version == 0) { /* v1beta2; v1beta1 had the bare name */
        struct td_json *name = td_json_ensure_object(arena, value, TD_STR("metric"));
        td_json_set_str(arena, name, TD_STR("name"), metric);
    } else {
        td_json_set_str(arena, value, TD_STR("metricName"), metric);
    }
    td_json_set_str(arena, value, TD_STR("timestamp"), metrics_now(call));
    td_json_set_int64(arena, value, TD_STR("windowSeconds"), METRICS_WINDOW_SECONDS);
    td_json_set_str(arena, value, TD_STR("value"), td_quantity_text(arena, &quantity));
    return value;
}

/* "pods", "deployments.apps": the row of a described resource, in any group when none is named. */
static const struct td_resource *metrics_described(struct td_api_call *call, td_str name)
{
    const struct td_resources *resources = td_api_resources(call->api);
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *row = td_resources_row(resources, i);
        td_str full = td_arena_format(&call->arena, "%.*s.%.*s", TD_STR_ARG(row->plural),
                                      TD_STR_ARG(row->group));
        if (!row->is_virtual && (td_str_equal(row->plural, name) || td_str_equal(full, name))) {
            return row;
        }
    }
    return NULL;
}

static void metrics_reply_values(struct td_api_call *call, const char *kind, struct td_json *items)
{
    struct td_arena *arena = &call->arena;
    struct td_json *list = td_json_new_object(arena);
    td_json_set_str(arena, list, TD_STR("kind"), td_str_from(kind));
    td_json_set_str(arena, list, TD_STR("apiVersion"),
                    call->at.resource->versions[call->at.version].api_version);
    td_json_set(arena, list, TD_STR("metadata"), td_json_new_object(arena));
    td_json_set(arena, list, TD_STR("items"), items);
    td_call_reply_json(call, 200, list);
}

/* A metric of a namespace itself is asked as namespaces/NS/metrics/NAME. */
static void metrics_custom(struct td_api_call *call)
{
    struct td_arena *arena = &call->arena;
    bool is_namespace = td_str_equal(call->path.plural, TD_STR("metrics"));
    td_str plural = is_namespace ? TD_STR("namespaces") : call->path.plural;
    td_str metric = is_namespace ? call->path.name : call->path.subresource;
    const struct td_resource *resource = metrics_described(call, plural);
    const struct td_collection *collection =
        resource ? td_store_find(td_api_store(call->api), resource->collection) : NULL;
    struct td_selector selector;
    if (!metrics_selector(call, call->query.label_selector, &selector)) {
        return;
    }
    struct td_json *items = td_json_new_array(arena);
    bool is_all = td_str_equal(call->path.name, TD_STR("*"));
    td_str ns = resource && resource->is_namespaced ? call->path.ns : TD_STR_EMPTY;
    td_str name = is_namespace ? call->path.ns : call->path.name;
    struct td_collection_iter iter;
    const struct td_stored *stored;
    if (collection && metric.len > 0) {
        td_collection_iter_init(&iter, collection, ns);
        while ((stored = td_collection_iter_next(&iter))) {
            if (!is_all && !td_str_equal(stored->name, name)) {
                continue;
            }
            struct td_json *object = metrics_parse(call, stored);
            struct td_json *value = metrics_selected(arena, &selector, object)
                                        ? metrics_custom_value(call, resource, object, metric)
                                        : NULL;
            if (value) {
                td_json_append(items, value);
            }
        }
    }
    if (items->count == 0) {
        td_call_fail(call, 404, "NotFound",
                     "the server could not find the metric %.*s for %.*s %.*s", TD_STR_ARG(metric),
                     TD_STR_ARG(plural), TD_STR_ARG(is_all ? TD_STR_EMPTY : name));
        return;
    }
    metrics_reply_values(call, "MetricValueList", items);
}

/* ---- External metrics ---- */

static void metrics_external_of(struct td_api_call *call, const struct td_selector *selector,
                                const struct td_json *map, struct td_json *items)
{
    struct td_arena *arena = &call->arena;
    const struct td_json *labels = td_json_get_path(map, "metadata.labels");
    td_str text =
        td_json_get_str(td_json_get(map, TD_STR("data")), call->path.plural, TD_STR_EMPTY);
    struct td_quantity quantity;
    if (!td_str_equal(td_json_get_str(labels, TD_STR(METRICS_EXTERNAL), TD_STR_EMPTY),
                      TD_STR("true")) ||
        !metrics_selected(arena, selector, map) || text.len == 0 ||
        td_quantity_parse(arena, td_str_trim(text), &quantity, NULL) != TD_OK) {
        return;
    }
    struct td_json *kept = td_json_copy(arena, labels, false);
    (void)td_json_remove(kept, TD_STR(METRICS_EXTERNAL)); /* it is there */
    struct td_json *value = td_json_new_object(arena);
    td_json_set_str(arena, value, TD_STR("metricName"), call->path.plural);
    td_json_set(arena, value, TD_STR("metricLabels"), kept);
    td_json_set_str(arena, value, TD_STR("timestamp"), metrics_now(call));
    td_json_set_int64(arena, value, TD_STR("window"), METRICS_WINDOW_SECONDS);
    td_json_set_str(arena, value, TD_STR("value"), td_quantity_text(arena, &quantity));
    td_json_append(items, value);
}

static void metrics_external(struct td_api_call *call)
{
    struct td_selector selector;
    if (!metrics_selector(call, call->query.label_selector, &selector)) {
        return;
    }
    const struct td_collection *maps = td_store_find(td_api_store(call->api), TD_STR("configmaps"));
    struct td_json *items = td_json_new_array(&call->arena);
    struct td_collection_iter iter;
    const struct td_stored *stored;
    if (maps) {
        td_collection_iter_init(&iter, maps, call->path.ns);
        while ((stored = td_collection_iter_next(&iter))) {
            metrics_external_of(call, &selector, metrics_parse(call, stored), items);
        }
    }
    metrics_reply_values(call, "ExternalMetricValueList", items);
}

void td_metrics_read(struct td_api_call *call)
{
    td_str group = call->path.group;
    if (td_str_equal(group, TD_STR("metrics.k8s.io"))) {
        metrics_resource(call);
    } else if (td_str_equal(group, TD_STR("custom.metrics.k8s.io"))) {
        metrics_custom(call);
    } else {
        metrics_external(call);
    }
}
