/*
 * The sources of Pods, Object and External metrics: the custom and the external metrics API, one
 * request each.
 */
#include "base/error.h"
#include "base/limits.h"
#include "control/horizontal/horizontal_private.h"
#include "kube/client/metrics_client.h"

/* ---- Answers ---- */

static void sample_add(void *context, const struct td_metric_value *measure)
{
    struct horizontal_query *query = context;
    const struct td_hpa_sample sample = {
        .pod = measure->object,
        .value_milli = measure->milli,
        .at = measure->time,
        .window = measure->window,
    };
    horizontal_query_see_time(query, measure->time);
    horizontal_query_add_sample(query, &sample);
}

static void value_add(void *context, const struct td_metric_value *measure)
{
    struct horizontal_query *query = context;
    horizontal_query_see_time(query, measure->time);
    query->values = td_arena_grow(&query->sync->arena, query->values, query->value_count,
                                  &query->value_cap, sizeof(*query->values));
    query->values[query->value_count++] = measure->milli;
}

static void samples_answered(void *context, int code, const struct td_error *err)
{
    struct horizontal_query *query = context;
    query->call = NULL;
    if (code != TD_OK) {
        horizontal_query_fail(query, td_str_from(err->message));
    } else {
        horizontal_query_close(query);
    }
}

static void values_answered(void *context, int code, const struct td_error *err)
{
    struct horizontal_query *query = context;
    if (code == TD_OK && query->value_count == 0) {
        query->call = NULL;
        horizontal_query_fail(query, TD_STR("cannot decode the value returned by the metrics API"));
    } else {
        samples_answered(context, code, err);
    }
}

static const struct td_metric_value_handler sample_handler = {.value = sample_add,
                                                              .done = samples_answered};
static const struct td_metric_value_handler value_handler = {.value = value_add,
                                                             .done = values_answered};

/* ---- Questions ---- */

/* The selector of a metric as text; empty: none. False: it cannot be read, and the query has
 * failed. */
static bool custom_selector(struct horizontal_query *query, td_str *ret)
{
    struct td_arena *arena = &query->sync->arena;
    struct td_selector selector;
    struct td_error err = TD_ERROR_INIT;
    *ret = TD_STR_EMPTY;
    if (!query->metric->metric_selector) {
        return true;
    }
    if (td_selector_from_json(arena, query->metric->metric_selector, &selector, &err) != TD_OK) {
        horizontal_query_fail(query, td_str_from(err.message));
        return false;
    }
    td_auto_buf text = td_buf_capped(TD_METRICS_PATH_BYTES_MAX);
    td_selector_write(&selector, &text);
    *ret = td_arena_copy_str(arena, td_buf_str(&text));
    return true;
}

/* The custom metrics API, about pods of the namespace or one object. */
static void custom_ask(struct horizontal_query *query, struct td_custom_query custom,
                       const struct td_metric_value_handler *handler)
{
    struct horizontal_sync *sync = query->sync;
    custom.namespace = sync->seen.hpa.meta.namespace;
    custom.metric = query->metric->name;
    if (custom_selector(query, &custom.metric_selector)) {
        query->call = td_metrics_get_custom(sync->loop->options.control.metrics_client, &custom,
                                            handler, query);
    }
}

static void pods_ask(struct horizontal_query *query, td_str selector)
{
    custom_ask(query,
               (struct td_custom_query){.group = TD_STR_EMPTY,
                                        .resource = TD_STR("pods"),
                                        .object = TD_STR_EMPTY,
                                        .selector = selector},
               &sample_handler);
}

static void object_ask(struct horizontal_query *query, td_str selector)
{
    (void)selector; /* of pods */
    custom_ask(query,
               (struct td_custom_query){.group = query->resource.group,
                                        .resource = query->resource.plural,
                                        .object = query->metric->described.name,
                                        .selector = TD_STR_EMPTY},
               &value_handler);
}

static void external_ask(struct horizontal_query *query, td_str selector)
{
    (void)selector; /* of pods */
    struct horizontal_sync *sync = query->sync;
    td_str metric_selector;
    if (custom_selector(query, &metric_selector)) {
        query->call = td_metrics_get_external(sync->loop->options.control.metrics_client,
                                              sync->seen.hpa.meta.namespace, query->metric->name,
                                              metric_selector, &value_handler, query);
    }
}

/* Which resource an Object metric's object is. False: discovery is under way. */
static bool object_resolve(struct horizontal_query *query)
{
    struct horizontal_sync *sync = query->sync;
    const struct td_object_reference *object = &query->metric->described;
    td_str group = td_group_version_parse(object->api_version).group;
    struct td_error err = TD_ERROR_INIT;
    int code = td_informers_resource(sync->loop->options.control.informers, group, object->kind, 0,
                                     &query->resource, &err);
    if (code == TD_OK) {
        query->resource.group = td_arena_copy_str(&sync->arena, query->resource.group);
        query->resource.plural = td_arena_copy_str(&sync->arena, query->resource.plural);
    } else if (code != TD_BUSY) {
        horizontal_query_fail(
            query, td_arena_format(&sync->arena,
                                   "unable to fetch metrics from custom metrics API: unable to "
                                   "map kind %.*s%s%.*s to resource: %s",
                                   TD_STR_ARG(object->kind), group.len > 0 ? "." : "",
                                   TD_STR_ARG(group), err.message));
    }
    return code != TD_BUSY;
}

const struct horizontal_source horizontal_source_pods = {.ask = pods_ask};
const struct horizontal_source horizontal_source_object = {.resolve = object_resolve,
                                                           .ask = object_ask};
const struct horizontal_source horizontal_source_external = {.ask = external_ask};
