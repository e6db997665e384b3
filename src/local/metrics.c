/*
 * The three metrics APIs. Until somebody measures, what there is to tell is written on the objects
 * themselves: a pod's annotation usage.tandem.dev/CONTAINER: "250m,300Mi" is its use, an
 * annotation metrics.tandem.dev/NAME: "20" on any object is a custom metric about it, and a
 * ConfigMap with the label metrics.tandem.dev/external: "true" holds external metrics, a value for
 * each name in its data, with its other labels as theirs.
 */
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
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

/* The object in `scratch`, which is reset: a list reads many, and keeps little of each. NULL when
 * it has no annotation of ours and so nothing to tell. */
static struct td_json *metrics_parse(struct td_arena *scratch, const struct td_stored *stored)
{
    struct td_json *tree = NULL;
    td_arena_reset(scratch);
    if (memmem(stored->json.ptr, stored->json.len, "tandem.dev/", strlen("tandem.dev/"))) {
        /* What we stored can be read; if not, there is nothing to tell of it. */
        (void)td_json_parse(scratch, stored->json, NULL, &tree, NULL);
    }
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
            td_json_set(arena, copy, td_str_from(kept[i]), td_json_copy(arena, value, true));
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
        td_json_set_str(arena, entry, TD_STR("name"), td_arena_copy_str(arena, name));
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

/* What the pods of one node use together. */
struct metrics_node {
    struct metrics_use sum;
};

/* Every node that has measured pods, by name: one walk over the pods, however many nodes. */
static void metrics_sum_nodes(struct td_api_call *call, struct td_map *nodes)
{
    const struct td_collection *pods = td_store_find(td_api_store(call->api), TD_STR("pods"));
    td_auto_arena scratch;
    td_arena_init(&scratch, TD_TREE_ARENA_BYTES_MAX);
    struct td_collection_iter iter;
    const struct td_stored *stored;
    if (!pods) {
        return;
    }
    td_collection_iter_init(&iter, pods, TD_STR_EMPTY);
    while ((stored = td_collection_iter_next(&iter))) {
        const struct td_json *pod = metrics_parse(&scratch, stored);
        td_str on =
            td_json_get_str(td_json_get(pod, TD_STR("spec")), TD_STR("nodeName"), TD_STR_EMPTY);
        struct metrics_use use = metrics_zero();
        if (on.len == 0 || !metrics_of_pod(call, pod, &use)) {
            continue;
        }
        struct metrics_node *node = td_map_get(nodes, on);
        if (!node) {
            node = td_arena_new(&call->arena, struct metrics_node);
            node->sum = metrics_zero();
            (void)td_map_put(nodes, td_arena_copy_str(&call->arena, on), node); /* as many fit */
        }
        td_quantity_add(&call->arena, &node->sum.cpu, &use.cpu);
        td_quantity_add(&call->arena, &node->sum.memory, &use.memory);
    }
}

/* A node's use is that of its pods; a node without measured pods is not measured either. */
static struct td_json *metrics_of_node(struct td_api_call *call, const struct td_map *nodes,
                                       const struct td_stored *stored)
{
    const struct metrics_node *node = td_map_get(nodes, stored->name);
    td_auto_arena scratch;
    td_arena_init(&scratch, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    if (!node || td_json_parse(&scratch, stored->json, NULL, &object, NULL) != TD_OK) {
        return NULL;
    }
    struct td_json *head = metrics_head(call, "NodeMetrics", object);
    td_json_set(&call->arena, head, TD_STR("usage"), metrics_usage_tree(&call->arena, &node->sum));
    return head;
}

/* Of all pods or nodes, or of one. */
struct metrics_walk {
    struct td_api_call *call;
    bool is_pods;
    struct td_map nodes;     /* by name: metrics_node, when it is about nodes */
    struct td_arena scratch; /* of one object */
};

static void metrics_walk_begin(struct metrics_walk *walk, struct td_api_call *call)
{
    walk->call = call;
    walk->is_pods = td_str_equal(call->path.plural, TD_STR("pods"));
    td_map_init(&walk->nodes, TD_COLLECTION_OBJECTS_MAX);
    td_arena_init(&walk->scratch, TD_TREE_ARENA_BYTES_MAX);
    if (!walk->is_pods) {
        metrics_sum_nodes(call, &walk->nodes);
    }
}

static void metrics_walk_end(struct metrics_walk *walk)
{
    td_map_done(&walk->nodes);
    td_arena_done(&walk->scratch);
}

static struct td_json *metrics_of(struct metrics_walk *walk, const struct td_stored *stored)
{
    struct metrics_use sum = metrics_zero();
    return walk->is_pods ? metrics_of_pod(walk->call, metrics_parse(&walk->scratch, stored), &sum)
                         : metrics_of_node(walk->call, &walk->nodes, stored);
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

static void metrics_list(struct metrics_walk *walk, const struct td_collection *collection)
{
    struct td_api_call *call = walk->call;
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
        struct td_json *item = metrics_of(walk, stored);
        if (item && metrics_selected(&walk->scratch, &selector, item)) {
            td_json_append(items, item);
        }
    }
    struct td_json *list = td_json_new_object(arena);
    td_json_set_str(arena, list, TD_STR("kind"),
                    walk->is_pods ? TD_STR("PodMetricsList") : TD_STR("NodeMetricsList"));
    td_json_set_str(arena, list, TD_STR("apiVersion"), TD_STR("metrics.k8s.io/v1beta1"));
    td_json_set(arena, list, TD_STR("metadata"), td_json_new_object(arena));
    td_json_set(arena, list, TD_STR("items"), items);
    td_call_reply_json(call, 200, list);
}

static void metrics_resource(struct td_api_call *call)
{
    struct td_collection *collection;
    struct td_error err = TD_ERROR_INIT;
    if (td_store_collection(td_api_store(call->api), call->path.plural, &collection, &err) !=
        TD_OK) {
        td_call_fail(call, 413, "RequestEntityTooLarge", "%s", err.message);
        return;
    }
    struct metrics_walk walk;
    metrics_walk_begin(&walk, call);
    if (call->path.name.len == 0) {
        metrics_list(&walk, collection);
    } else {
        const struct td_stored *stored =
            td_collection_get(collection, call->path.ns, call->path.name);
        struct td_json *item = stored ? metrics_of(&walk, stored) : NULL;
        if (item) {
            td_call_reply_json(call, 200, item);
        } else {
            td_call_not_found(call, call->path.name);
        }
    }
    metrics_walk_end(&walk);
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
    td_str ns = td_json_get_str(metadata, TD_STR("namespace"), TD_STR_EMPTY);
    td_str name = td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY);
    td_json_set_str(arena, about, TD_STR("namespace"), td_arena_copy_str(arena, ns));
    td_json_set_str(arena, about, TD_STR("name"), td_arena_copy_str(arena, name));
    td_json_set_str(arena, about, TD_STR("apiVersion"),
                    resource->versions[resource->storage].api_version);
    struct td_json *value = td_json_new_object(arena);
    td_json_set(arena, value, TD_STR("describedObject"), about);
    if (call->at.version == 0) { /* v1beta2; v1beta1 had the bare name */
        struct td_json *named = td_json_ensure_object(arena, value, TD_STR("metric"));
        td_json_set_str(arena, named, TD_STR("name"), metric);
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

/* What a path of custom.metrics.k8s.io asks for. */
struct metrics_question {
    const struct td_resource *resource;
    td_str metric;
    td_str ns;   /* empty: all, or none */
    td_str name; /* empty: all that the selector selects */
    struct td_selector selector;
};

static void metrics_answer(struct td_api_call *call, const struct metrics_question *question,
                           struct td_json *items)
{
    const struct td_collection *collection =
        td_store_find(td_api_store(call->api), question->resource->collection);
    td_auto_arena scratch;
    td_arena_init(&scratch, TD_TREE_ARENA_BYTES_MAX);
    struct td_collection_iter iter;
    const struct td_stored *stored;
    if (!collection) {
        return;
    }
    td_collection_iter_init(&iter, collection, question->ns);
    while ((stored = td_collection_iter_next(&iter))) {
        if (question->name.len > 0 && !td_str_equal(stored->name, question->name)) {
            continue;
        }
        struct td_json *object = metrics_parse(&scratch, stored);
        struct td_json *value =
            metrics_selected(&scratch, &question->selector, object)
                ? metrics_custom_value(call, question->resource, object, question->metric)
                : NULL;
        if (value) {
            td_json_append(items, value);
        }
    }
}

/* A metric of a namespace itself is asked as namespaces/NS/metrics/NAME. */
static void metrics_custom(struct td_api_call *call)
{
    bool is_namespace = td_str_equal(call->path.plural, TD_STR("metrics"));
    bool is_all = td_str_equal(call->path.name, TD_STR("*")) && !is_namespace;
    td_str plural = is_namespace ? TD_STR("namespaces") : call->path.plural;
    struct metrics_question question = {
        .resource = metrics_described(call, plural),
        .metric = is_namespace ? call->path.name : call->path.subresource,
        .name = is_namespace ? call->path.ns
                : is_all     ? TD_STR_EMPTY
                             : call->path.name,
    };
    if (!metrics_selector(call, call->query.label_selector, &question.selector)) {
        return;
    }
    struct td_json *items = td_json_new_array(&call->arena);
    if (question.resource && question.metric.len > 0) {
        question.ns = question.resource->is_namespaced ? call->path.ns : TD_STR_EMPTY;
        metrics_answer(call, &question, items);
    }
    if (items->count == 0) {
        td_call_fail(call, 404, "NotFound",
                     "the server could not find the metric %.*s for %.*s %.*s",
                     TD_STR_ARG(question.metric), TD_STR_ARG(plural), TD_STR_ARG(question.name));
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
    struct td_json *kept = td_json_copy(arena, labels, true);
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
    td_auto_arena scratch;
    td_arena_init(&scratch, TD_TREE_ARENA_BYTES_MAX);
    struct td_collection_iter iter;
    const struct td_stored *stored;
    if (maps) {
        td_collection_iter_init(&iter, maps, call->path.ns);
        while ((stored = td_collection_iter_next(&iter))) {
            metrics_external_of(call, &selector, metrics_parse(&scratch, stored), items);
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
