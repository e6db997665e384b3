/*
 * The queries of one reconcile to the metrics APIs, all at once, each by the source of its metric
 * (horizontal_usage.c, horizontal_custom.c). When the last one is answered, the sync decides.
 */
#include "base/limits.h"
#include "control/horizontal/horizontal_private.h"
#include "kube/client/metrics_client.h"

/* A metric of an unknown type is not asked for: the decider refuses it by its name. */
static void unknown_ask(struct horizontal_query *query, td_str selector)
{
    (void)selector; /* of pods */
    horizontal_query_close(query);
}

static const struct horizontal_source source_unknown = {.ask = unknown_ask};

static const struct horizontal_source *const sources[TD_HPA_METRIC_UNKNOWN + 1] = {
#define ROW(name, row) [TD_HPA_##name] = &horizontal_source_##row,
    TD_HPA_SOURCES(ROW)
#undef ROW
        [TD_HPA_METRIC_UNKNOWN] = &source_unknown,
};

void horizontal_query_close(struct horizontal_query *query)
{
    struct horizontal_sync *sync = query->sync;
    query->is_open = false;
    query->took = horizontal_now(sync->loop) - query->sent_at;
    if (--sync->queries_open == 0) {
        horizontal_sync_resume(sync, horizontal_sync_decide);
    }
}

void horizontal_query_fail(struct horizontal_query *query, td_str error)
{
    query->is_failed = true;
    query->error = td_arena_copy_str(&query->sync->arena, error);
    horizontal_query_close(query);
}

void horizontal_query_add_sample(struct horizontal_query *query, const struct td_hpa_sample *sample)
{
    struct td_arena *arena = &query->sync->arena;
    query->samples = td_arena_grow(arena, query->samples, query->sample_count, &query->sample_cap,
                                   sizeof(*query->samples));
    query->samples[query->sample_count] = *sample;
    query->samples[query->sample_count++].pod = td_arena_copy_str(arena, sample->pod);
}

void horizontal_query_see_time(struct horizontal_query *query, td_time time)
{
    if (!query->has_time) {
        query->has_time = true;
        query->time = time;
    }
}

static void queries_go_on(struct horizontal_sync *sync)
{
    for (size_t i = 0; i < sync->seen.query_count; i++) {
        struct horizontal_query *query = &sync->seen.queries[i];
        bool (*resolve)(struct horizontal_query *) = query->source->resolve;
        if (query->is_open && resolve && !resolve(query)) {
            horizontal_sync_wait(sync, queries_go_on);
            return;
        }
    }
    td_auto_buf selector = td_buf_capped(TD_METRICS_PATH_BYTES_MAX);
    td_selector_write(&sync->decided.pass.selector, &selector);
    for (size_t i = 0; i < sync->seen.query_count; i++) {
        struct horizontal_query *query = &sync->seen.queries[i];
        query->sent_at = horizontal_now(sync->loop);
        if (query->is_open) { /* else it could not be resolved */
            query->source->ask(query, td_buf_str(&selector));
        }
    }
    if (--sync->queries_open == 0) {
        horizontal_sync_decide(sync);
    }
}

void horizontal_queries_ask(struct horizontal_sync *sync)
{
    sync->seen.query_count = sync->seen.hpa.metric_count;
    sync->seen.queries =
        td_arena_array(&sync->arena, struct horizontal_query, sync->seen.query_count + 1);
    sync->queries_open = sync->seen.query_count + 1; /* one until all are asked */
    for (size_t i = 0; i < sync->seen.query_count; i++) {
        sync->seen.queries[i].sync = sync;
        sync->seen.queries[i].metric = &sync->seen.hpa.metrics[i];
        sync->seen.queries[i].source = sources[sync->seen.hpa.metrics[i].type];
        sync->seen.queries[i].error = TD_STR_EMPTY;
        sync->seen.queries[i].is_open = true;
    }
    queries_go_on(sync);
}

void horizontal_queries_leave(struct horizontal_sync *sync)
{
    for (size_t i = 0; i < sync->seen.query_count; i++) {
        struct horizontal_query *query = &sync->seen.queries[i];
        if (query->call) {
            td_metrics_cancel(query->call);
        }
        void (*leave)(struct horizontal_query *) = query->source->leave;
        if (leave) {
            leave(query);
        }
    }
}
