/*
 * Custom and external metrics. About an object there is what it says of itself (the annotation
 * metrics.tandem.dev/NAME: "20"), what a scenario's series say of it, and for what requests drive,
 * what the engine measures: of a pod requests_per_second and request_latency_seconds from its
 * samples, of a workload the same and waiting_requests of its whole stream. The first one that
 * knows the name answers. External metrics are series of a scenario without an object, and what is
 * in ConfigMaps with the label metrics.tandem.dev/external: "true", a value for each name in its
 * data, with its other labels as theirs.
 */
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "kube/objectkey.h"
#include "kube/quantity/quantity.h"
#include "kube/selector/selector.h"
#include "local/engine/engine.h"
#include "local/engine/metrics.h"
#include "local/store/store.h"

#define METRICS_ANNOTATION "metrics.tandem.dev/"
#define METRICS_EXTERNAL "metrics.tandem.dev/external"
#define METRICS_FINE_MAX 1e9 /* below it a value is told in millionths, else in thousandths */
#define METRICS_RATE "requests_per_second"
#define METRICS_LATENCY "request_latency_seconds"
#define METRICS_WAITING "waiting_requests"

struct metrics_value {
    struct td_quantity quantity;
    td_time at;
    td_duration window;
};

/* What a path of custom.metrics.k8s.io asks for. */
struct metrics_question {
    const struct td_resource *resource;
    td_str metric;
    td_str ns;   /* empty: all, or none */
    td_str name; /* empty: all that the selector selects */
    struct td_selector selector;
    struct td_map streams; /* "ns/kind/name": entry that requests drive, when asked for one */
};

/* Autoscalers count in thousandths; latencies can be shorter than one. */
static struct td_quantity metrics_quantity(double value)
{
    return value < METRICS_FINE_MAX ? td_quantity_new_scaled((int64_t)(value * 1e6 + 0.5), -6)
                                    : td_quantity_new_scaled((int64_t)(value * 1000 + 0.5), -3);
}

/* ---- Who knows it ---- */

/* The object's tree in `scratch` when it may have a word of ours, else NULL. */
static struct td_json *metrics_parse(struct td_arena *scratch, const struct td_stored *stored)
{
    struct td_json *tree = NULL;
    if (memmem(stored->json.ptr, stored->json.len, METRICS_ANNOTATION,
               strlen(METRICS_ANNOTATION))) {
        /* What we stored can be read; if not, there is nothing to tell of it. */
        (void)td_json_parse(scratch, stored->json, NULL, &tree, NULL);
    }
    return tree;
}

static bool metrics_from_annotation(struct td_api_call *call, struct td_arena *scratch,
                                    const struct metrics_question *question,
                                    const struct td_stored *stored, struct metrics_value *ret)
{
    const struct td_json *object = metrics_parse(scratch, stored);
    td_str key = td_arena_format(scratch, METRICS_ANNOTATION "%.*s", TD_STR_ARG(question->metric));
    td_str text =
        td_json_get_str(td_json_get_path(object, "metadata.annotations"), key, TD_STR_EMPTY);
    return text.len > 0 && td_quantity_parse(&call->arena, td_arena_copy_str(&call->arena, text),
                                             &ret->quantity, NULL) == TD_OK;
}

static double metrics_series_now(const struct td_measures *measures,
                                 const struct td_measure *measure)
{
    return td_series_at(&measure->series, td_engine_since(measures->engine), measure->seed);
}

static bool metrics_from_series(const struct td_api_call *call,
                                const struct metrics_question *question,
                                const struct td_stored *stored, struct metrics_value *ret)
{
    const struct td_measures *measures = call->api->measures;
    bool is_namespace = td_str_equal(question->resource->kind, TD_STR("Namespace"));
    for (size_t i = 0; measures && measures->engine && i < measures->count; i++) {
        const struct td_measure *measure = &measures->items[i];
        bool is_here = !question->resource->is_namespaced || is_namespace ||
                       td_str_equal(measure->ns, stored->ns);
        if (is_here && td_str_equal(measure->name, question->metric) &&
            td_str_equal(measure->kind, question->resource->kind) &&
            td_str_equal(measure->object, stored->name)) {
            ret->quantity = metrics_quantity(metrics_series_now(measures, measure));
            return true;
        }
    }
    return false;
}

/* Of a pod: the container that requests drive. */
static bool metrics_from_pod(const struct td_engine *engine,
                             const struct metrics_question *question,
                             const struct td_stored *stored, struct metrics_value *ret)
{
    bool is_rate = td_str_equal(question->metric, TD_STR(METRICS_RATE));
    const struct td_engine_pod *pod = td_engine_find_pod(engine, stored->ns, stored->name);
    const struct td_engine_container *container;
    size_t position = 0;
    while (pod && (container = td_engine_next_container(pod, &position))) {
        struct td_engine_sample sample;
        if (td_engine_sample(container, &sample) && sample.has_requests) {
            ret->quantity =
                metrics_quantity(is_rate ? sample.requests_per_second : sample.latency_seconds);
            ret->at = sample.at;
            ret->window = sample.window;
            return true;
        }
    }
    return false;
}

static bool metrics_from_stream(const struct td_engine *engine,
                                const struct metrics_question *question,
                                const struct td_stored *stored, struct metrics_value *ret)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = td_object_key_write(TD_OBJECT_KEY(stored->ns, stored->name), buffer);
    const size_t *entry = td_map_get(&question->streams, key);
    struct td_engine_flow flow;
    if (!entry || !td_engine_flow(engine, *entry, &flow)) {
        return false;
    }
    bool is_rate = td_str_equal(question->metric, TD_STR(METRICS_RATE));
    bool is_waiting = td_str_equal(question->metric, TD_STR(METRICS_WAITING));
    ret->quantity = metrics_quantity(is_rate      ? flow.served_per_second
                                     : is_waiting ? flow.waiting
                                                  : flow.latency_seconds);
    return true;
}

static bool metrics_is_of_requests(td_str metric)
{
    return td_str_equal(metric, TD_STR(METRICS_RATE)) ||
           td_str_equal(metric, TD_STR(METRICS_LATENCY)) ||
           td_str_equal(metric, TD_STR(METRICS_WAITING));
}

static bool metrics_find(struct td_api_call *call, struct td_arena *scratch,
                         const struct metrics_question *question, const struct td_stored *stored,
                         struct metrics_value *ret)
{
    const struct td_engine *engine = td_metrics_engine(call);
    bool is_pod = td_str_equal(question->resource->kind, TD_STR("Pod"));
    *ret = (struct metrics_value){.at = td_metrics_now(call), .window = TD_METRICS_WINDOW};
    if (metrics_from_annotation(call, scratch, question, stored, ret) ||
        metrics_from_series(call, question, stored, ret)) {
        return true;
    }
    if (!engine || !metrics_is_of_requests(question->metric)) {
        return false;
    }
    return is_pod && !td_str_equal(question->metric, TD_STR(METRICS_WAITING))
               ? metrics_from_pod(engine, question, stored, ret)
               : metrics_from_stream(engine, question, stored, ret);
}

/* ---- Answers ---- */

static struct td_json *metrics_custom_tree(struct td_api_call *call,
                                           const struct metrics_question *question,
                                           const struct td_stored *stored,
                                           const struct metrics_value *found)
{
    struct td_arena *arena = &call->arena;
    const struct td_resource *resource = question->resource;
    struct td_json *about = td_json_new_object(arena);
    td_json_set_str(arena, about, TD_STR("kind"), resource->kind);
    td_json_set_str(arena, about, TD_STR("namespace"), td_arena_copy_str(arena, stored->ns));
    td_json_set_str(arena, about, TD_STR("name"), td_arena_copy_str(arena, stored->name));
    td_json_set_str(arena, about, TD_STR("apiVersion"),
                    resource->versions[resource->storage].api_version);
    struct td_json *value = td_json_new_object(arena);
    td_json_set(arena, value, TD_STR("describedObject"), about);
    if (call->at.version == 0) { /* v1beta2; v1beta1 had the bare name */
        struct td_json *named = td_json_ensure_object(arena, value, TD_STR("metric"));
        td_json_set_str(arena, named, TD_STR("name"), question->metric);
    } else {
        td_json_set_str(arena, value, TD_STR("metricName"), question->metric);
    }
    td_json_set_str(arena, value, TD_STR("timestamp"), td_metrics_time(arena, found->at));
    td_json_set_int64(arena, value, TD_STR("windowSeconds"), found->window / TD_SECOND);
    td_json_set_str(arena, value, TD_STR("value"), td_quantity_text(arena, &found->quantity));
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

/* Streams by the workload they are of; the first of one that has several. */
static void metrics_map_streams(struct td_api_call *call, struct metrics_question *question)
{
    const struct td_measures *measures = call->api->measures;
    bool is_asked = measures && metrics_is_of_requests(question->metric);
    for (size_t i = 0; is_asked && i < measures->demand_count; i++) {
        const struct td_demand *demand = &measures->demands[i];
        if (demand->driver != TD_DEMAND_REQUESTS ||
            !td_str_equal(demand->kind, question->resource->kind)) {
            continue;
        }
        td_str key = td_object_key_text(&call->arena, TD_OBJECT_KEY(demand->ns, demand->name));
        if (!td_map_has(&question->streams, key)) {
            size_t *entry = td_arena_new(&call->arena, size_t);
            *entry = i;
            (void)td_map_put(&question->streams, key, entry); /* as many fit */
        }
    }
}

static void metrics_answer_one(struct td_api_call *call, struct td_arena *scratch,
                               const struct metrics_question *question,
                               const struct td_stored *stored, struct td_json *items)
{
    struct metrics_value found;
    if (td_metrics_selected(scratch, &question->selector, stored) &&
        metrics_find(call, scratch, question, stored, &found)) {
        td_json_append(items, metrics_custom_tree(call, question, stored, &found));
    }
    td_arena_reset(scratch);
}

static void metrics_answer(struct td_api_call *call, struct metrics_question *question,
                           struct td_json *items)
{
    const struct td_collection *collection =
        td_store_find(td_api_store(call->api), question->resource->collection);
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_stored *stored;
    if (!collection) {
        return;
    }
    td_map_init(&question->streams, TD_SCENARIO_DEMANDS_MAX);
    metrics_map_streams(call, question);
    if (question->name.len > 0) {
        stored = td_collection_get(collection, question->ns, question->name);
        if (stored) {
            metrics_answer_one(call, &scratch, question, stored, items);
        }
    } else {
        struct td_collection_iter iter = td_collection_walk(collection, question->ns);
        while ((stored = td_collection_iter_next(&iter))) {
            metrics_answer_one(call, &scratch, question, stored, items);
        }
    }
    td_map_done(&question->streams);
}

/* A metric of a namespace itself is asked as namespaces/NS/metrics/NAME. */
void td_metrics_custom(struct td_api_call *call)
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
    if (!td_metrics_selector(call, &question.selector)) {
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

static void metrics_add_external(struct td_api_call *call, struct td_json *labels,
                                 const struct td_quantity *quantity, struct td_json *items)
{
    struct td_arena *arena = &call->arena;
    struct td_json *value = td_json_new_object(arena);
    td_json_set_str(arena, value, TD_STR("metricName"), call->path.plural);
    td_json_set(arena, value, TD_STR("metricLabels"), labels);
    td_json_set_str(arena, value, TD_STR("timestamp"),
                    td_metrics_time(arena, td_metrics_now(call)));
    td_json_set_int64(arena, value, TD_STR("window"), TD_METRICS_WINDOW / TD_SECOND);
    td_json_set_str(arena, value, TD_STR("value"), td_quantity_text(arena, quantity));
    td_json_append(items, value);
}

static void metrics_external_map(struct td_api_call *call, const struct td_json *map,
                                 struct td_json *items)
{
    struct td_arena *arena = &call->arena;
    const struct td_json *labels = td_json_get_path(map, "metadata.labels");
    td_str text =
        td_json_get_str(td_json_get(map, TD_STR("data")), call->path.plural, TD_STR_EMPTY);
    struct td_quantity quantity;
    if (!td_str_equal(td_json_get_str(labels, TD_STR(METRICS_EXTERNAL), TD_STR_EMPTY),
                      TD_STR("true")) ||
        text.len == 0 ||
        td_quantity_parse(arena, td_arena_copy_str(arena, td_str_trim(text)), &quantity, NULL) !=
            TD_OK) {
        return;
    }
    struct td_json *kept = td_json_copy(arena, labels, true);
    (void)td_json_remove(kept, TD_STR(METRICS_EXTERNAL)); /* it is there */
    metrics_add_external(call, kept, &quantity, items);
}

static void metrics_external_series(struct td_api_call *call, const struct td_selector *selector,
                                    struct td_json *items)
{
    const struct td_measures *measures = call->api->measures;
    for (size_t i = 0; measures && measures->engine && i < measures->count; i++) {
        const struct td_measure *measure = &measures->items[i];
        if (measure->kind.len > 0 || !td_str_equal(measure->name, call->path.plural) ||
            !td_str_equal(measure->ns, call->path.ns) ||
            !td_selector_matches(selector, &measure->labels)) {
            continue;
        }
        struct td_json *labels = td_json_new_object(&call->arena);
        for (size_t l = 0; l < measure->labels.count; l++) {
            td_json_set_str(&call->arena, labels, measure->labels.items[l].key,
                            measure->labels.items[l].value);
        }
        struct td_quantity quantity = metrics_quantity(metrics_series_now(measures, measure));
        metrics_add_external(call, labels, &quantity, items);
    }
}

void td_metrics_external(struct td_api_call *call)
{
    struct td_selector selector;
    if (!td_metrics_selector(call, &selector)) {
        return;
    }
    const struct td_collection *maps = td_store_find(td_api_store(call->api), TD_STR("configmaps"));
    struct td_json *items = td_json_new_array(&call->arena);
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    metrics_external_series(call, &selector, items);
    struct td_collection_iter iter = td_collection_walk(maps, call->path.ns);
    for (const struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        if (td_metrics_selected(&scratch, &selector, stored)) {
            metrics_external_map(call, metrics_parse(&scratch, stored), items);
        }
        td_arena_reset(&scratch);
    }
    metrics_reply_values(call, "ExternalMetricValueList", items);
}
