/*
 * The source of Resource and ContainerResource metrics: the resource metrics API. Requests for one
 * namespace and selector within 1 s share the response: cpu and memory of one HPA, or several HPAs
 * over the same pods.
 *
 * Where the HPAs of a namespace ask for most of its pods anyway, one shared query asks for all
 * pods of the namespace, and each HPA takes its own pods out of a response that is at most 5 s old;
 * metrics are about 15 s old when they are served, and the response says how old. When the shared
 * query fails, each HPA asks for its own pods, so that the error names those.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/horizontal/horizontal_private.h"
#include "kube/client/metrics_client.h"

#define USAGE_FRESH TD_SECOND
#define USAGE_SHARED_FRESH (5 * TD_SECOND)
#define USAGE_SHARED_MIN 16         /* queries in one sync period */
#define USAGE_SHARED_PODS 16        /* to each of them, above which one by one is cheaper */
#define USAGE_SHARED_IDLE_PERIODS 4 /* without a query, then it is forgotten */

/* The containers of a pod; the first one has its name, time and window. */
struct usage_pod {
    size_t first;
    size_t count;
};

/* What was asked about the pods of a namespace lately. */
struct horizontal_shared_query {
    td_str namespace; /* owned */
    td_time since;
    size_t queries; /* since then */
    bool is_shared; /* all of its pods are asked for at once */
};

/* One answer of the resource metrics API. */
struct horizontal_usage {
    struct td_horizontal_loop *loop;
    td_str key;                             /* owned */
    struct horizontal_shared_query *shared; /* the answer is about all pods of this one; or NULL */
    struct td_map by_name;                  /* of a shared query: its pods */
    struct td_metrics_call *call;
    struct horizontal_query *waiters;
    struct td_arena arena;
    struct usage_pod *pods;
    size_t pod_count;
    size_t pod_cap;
    struct td_container_metrics *containers;
    size_t container_count;
    size_t container_cap;
    int code;
    td_str error;
    td_time answered;
};

/* ---- Answers ---- */

static void usage_free(struct horizontal_usage *usage)
{
    if (usage->call) {
        td_metrics_cancel(usage->call);
    }
    td_map_done(&usage->by_name);
    td_arena_done(&usage->arena);
    td_text_free(usage->key);
    td_free(usage);
}

/* The answer about the pods that a sync is about, one by one; NULL: there is none about this one.
 */
static size_t usage_count(const struct horizontal_usage *usage, const struct horizontal_sync *sync)
{
    return usage->shared ? sync->seen.pod_count : usage->pod_count;
}

static const struct usage_pod *usage_at(const struct horizontal_usage *usage,
                                        const struct horizontal_sync *sync, size_t index)
{
    return usage->shared ? td_map_get(&usage->by_name, sync->seen.pods[index]->meta.name)
                         : &usage->pods[index];
}

static bool usage_value(const struct td_container_metrics *container, td_str resource, int64_t *ret)
{
    if (td_str_equal(resource, TD_STR("cpu")) && container->has_cpu) {
        *ret = container->cpu_milli;
        return true;
    }
    if (td_str_equal(resource, TD_STR("memory")) && container->has_memory) {
        bool is_large = container->memory_bytes > INT64_MAX / 1000;
        *ret = is_large ? INT64_MAX : container->memory_bytes * 1000;
        return true;
    }
    return false;
}

/* The sum over all containers, each of which must have a value; or that of the one named. */
static bool usage_of_pod(const struct horizontal_usage *usage, const struct usage_pod *pod,
                         const struct td_hpa_metric *metric, int64_t *ret)
{
    bool is_one = metric->container.len > 0;
    int64_t sum = 0;
    for (size_t i = 0; i < pod->count; i++) {
        const struct td_container_metrics *container = &usage->containers[pod->first + i];
        int64_t value;
        if (is_one && !td_str_equal(container->container, metric->container)) {
            continue;
        }
        if (!usage_value(container, metric->name, &value)) {
            return false;
        }
        sum = td_hpa_add(sum, value);
        if (is_one) {
            *ret = value;
            return true;
        }
    }
    *ret = sum;
    return !is_one && pod->count > 0;
}

static struct td_container_metrics usage_copy(struct td_arena *arena,
                                              const struct td_container_metrics *from)
{
    struct td_container_metrics made = *from;
    made.namespace = TD_STR_EMPTY; /* that of the query */
    made.pod = td_arena_copy_str(arena, from->pod);
    made.container = td_arena_copy_str(arena, from->container);
    return made;
}

/* The result for an Hvpa is read container by container. */
static void usage_keep(const struct horizontal_usage *usage, struct horizontal_sync *sync)
{
    struct horizontal_seen *seen = &sync->seen;
    if (!sync->purpose->keeps_uses || seen->use_count > 0) {
        return; /* not wanted, or another metric brought them */
    }
    for (size_t i = 0; i < usage_count(usage, sync); i++) {
        const struct usage_pod *pod = usage_at(usage, sync, i);
        for (size_t j = 0; pod && j < pod->count; j++) {
            seen->uses = td_arena_grow(&sync->arena, seen->uses, seen->use_count, &seen->use_cap,
                                       sizeof(*seen->uses));
            seen->uses[seen->use_count++] =
                usage_copy(&sync->arena, &usage->containers[pod->first + j]);
        }
    }
}

static void usage_take(const struct horizontal_usage *usage, struct horizontal_query *query)
{
    if (usage->code != TD_OK) {
        horizontal_query_fail(query, usage->error);
        return;
    }
    usage_keep(usage, query->sync);
    size_t found = 0;
    for (size_t i = 0; i < usage_count(usage, query->sync); i++) {
        const struct usage_pod *pod = usage_at(usage, query->sync, i);
        if (!pod) {
            continue;
        }
        const struct td_container_metrics *first = &usage->containers[pod->first];
        struct td_hpa_sample sample = {
            .pod = first->pod, .at = first->time, .window = first->window};
        found++;
        horizontal_query_see_time(query, first->time);
        if (usage_of_pod(usage, pod, query->metric, &sample.value_milli)) {
            horizontal_query_add_sample(query, &sample);
        }
    }
    if (found == 0) { /* as if its pods alone had been asked for */
        horizontal_query_fail(query, TD_STR("no metrics returned from resource metrics API"));
        return;
    }
    horizontal_query_close(query);
}

static void usage_start(struct horizontal_query *query, td_str selector,
                        struct horizontal_shared_query *shared);

/* A shared query that failed: each HPA asks alone, and together again when it has been asked
 * enough. */
static void usage_disperse(struct horizontal_usage *usage)
{
    usage->shared->is_shared = false;
    usage->shared->queries = 0;
    usage->shared->since = horizontal_now(usage->loop);
    while (usage->waiters) {
        struct horizontal_query *query = usage->waiters;
        usage->waiters = query->next_waiter;
        query->usage = NULL;
        td_auto_buf selector = td_buf_capped(TD_METRICS_PATH_BYTES_MAX);
        td_selector_write(&query->sync->decided.pass.selector, &selector);
        usage_start(query, td_buf_str(&selector), NULL);
    }
}

/* Names of pods are unique in their namespace. */
static void usage_index(struct horizontal_usage *usage)
{
    for (size_t i = 0; i < usage->pod_count; i++) {
        /* One that does not fit has no metrics; the map is as large as a cluster can be. */
        (void)td_map_put(&usage->by_name, usage->containers[usage->pods[i].first].pod,
                         &usage->pods[i]);
    }
}

static void usage_add(void *context, const struct td_container_metrics *measure)
{
    struct horizontal_usage *usage = context;
    size_t count = usage->container_count;
    usage->containers = td_arena_grow(&usage->arena, usage->containers, count,
                                      &usage->container_cap, sizeof(*usage->containers));
    usage->containers[usage->container_count++] = usage_copy(&usage->arena, measure);
    if (count == 0 || !td_str_equal(usage->containers[count - 1].pod, measure->pod)) {
        usage->pods = td_arena_grow(&usage->arena, usage->pods, usage->pod_count, &usage->pod_cap,
                                    sizeof(*usage->pods));
        usage->pods[usage->pod_count++] = (struct usage_pod){.first = count};
    }
    usage->pods[usage->pod_count - 1].count++;
}

static void usage_answered(void *context, int code, const struct td_error *err)
{
    struct horizontal_usage *usage = context;
    usage->call = NULL;
    usage->code = code;
    usage->answered = horizontal_now(usage->loop);
    if (code != TD_OK) {
        usage->error = td_arena_copy_str(&usage->arena, td_str_from(err->message));
    }
    if (usage->shared && code != TD_OK) {
        usage_disperse(usage);
    } else if (usage->shared) {
        usage_index(usage);
    }
    while (usage->waiters) {
        struct horizontal_query *query = usage->waiters;
        usage->waiters = query->next_waiter;
        query->usage = NULL;
        usage_take(usage, query);
    }
    if (!td_timer_is_set(usage->loop->usages_sweep)) {
        td_timer_set(usage->loop->usages_sweep, USAGE_FRESH);
    }
}

static void usage_drop(struct horizontal_usage *usage)
{
    (void)td_map_remove(&usage->loop->usages, usage->key); /* it is there */
    usage_free(usage);
}

static bool usage_is_old(const struct horizontal_usage *usage)
{
    td_duration fresh = usage->shared && usage->code == TD_OK ? USAGE_SHARED_FRESH : USAGE_FRESH;
    return !usage->call && horizontal_now(usage->loop) - usage->answered >= fresh;
}

/* ---- Shared queries ---- */

static void shared_free(struct horizontal_shared_query *shared)
{
    td_text_free(shared->namespace);
    td_free(shared);
}

static struct horizontal_shared_query *shared_of(struct td_horizontal_loop *loop, td_str namespace)
{
    struct horizontal_shared_query *shared = td_map_get(&loop->shared_queries, namespace);
    if (!shared) {
        shared = td_alloc_zero(1, sizeof(*shared));
        shared->namespace = td_text_copy(namespace);
        shared->since = horizontal_now(loop);
        if (td_map_put(&loop->shared_queries, shared->namespace, shared) != TD_OK) {
            shared_free(shared);
            return NULL;
        }
    }
    return shared;
}

/* Counts a query; the shared query, where the namespace has one. */
static struct horizontal_shared_query *shared_ask(struct td_horizontal_loop *loop, td_str namespace)
{
    struct horizontal_shared_query *shared = shared_of(loop, namespace);
    if (!shared) {
        return NULL;
    }
    shared->queries++;
    td_time now = horizontal_now(loop);
    if (now - shared->since >= loop->options.sync_period) {
        const struct td_informer_pod *pod = NULL;
        size_t pods = 0;
        while (pods <= shared->queries * USAGE_SHARED_PODS &&
               (pod = td_informers_next_pod(loop->options.control.informers, namespace, pod))) {
            pods++;
        }
        shared->is_shared =
            shared->queries >= USAGE_SHARED_MIN && pods <= shared->queries * USAGE_SHARED_PODS;
        shared->queries = 0;
        shared->since = now;
    }
    return shared->is_shared ? shared : NULL;
}

/* Responses of a shared query are gone long before it is. */
static void shared_queries_sweep(struct td_horizontal_loop *loop)
{
    td_duration idle = USAGE_SHARED_IDLE_PERIODS * loop->options.sync_period + USAGE_SHARED_FRESH;
    for (struct td_map_walk at = {.map = &loop->shared_queries}; td_map_step(&at);) {
        struct horizontal_shared_query *shared = at.value;
        if (horizontal_now(loop) - shared->since > idle) {
            (void)td_map_remove(&loop->shared_queries, shared->namespace); /* it is this one */
            shared_free(shared);
        }
    }
}

static void usages_sweep(struct td_timer *timer, void *context)
{
    struct td_horizontal_loop *loop = context;
    for (struct td_map_walk at = {.map = &loop->usages}; td_map_step(&at);) {
        if (usage_is_old(at.value)) {
            usage_drop(at.value);
        }
    }
    if (loop->usages.count > 0) {
        td_timer_set(timer, USAGE_FRESH);
    } else {
        shared_queries_sweep(loop);
    }
}

static struct horizontal_usage *usage_new(struct td_horizontal_loop *loop, td_str key,
                                          td_str namespace, td_str selector,
                                          struct horizontal_shared_query *shared)
{
    static const struct td_metrics_handler handler = {.pod = usage_add, .done = usage_answered};
    struct horizontal_usage *usage = td_alloc_zero(1, sizeof(*usage));
    usage->loop = loop;
    usage->key = td_text_copy(key);
    usage->shared = shared;
    td_map_init(&usage->by_name, TD_CACHE_OBJECTS_MAX);
    td_arena_init(&usage->arena, TD_TREE_ARENA_BYTES_MAX);
    if (td_map_put(&loop->usages, usage->key, usage) != TD_OK) {
        usage_free(usage);
        return NULL;
    }
    usage->call = td_metrics_get_pods(loop->options.control.metrics_client, namespace, selector,
                                      &handler, usage);
    return usage;
}

static void usage_start(struct horizontal_query *query, td_str selector,
                        struct horizontal_shared_query *shared)
{
    struct horizontal_sync *sync = query->sync;
    td_str namespace = sync->seen.hpa.meta.namespace;
    td_str which = shared ? TD_STR_EMPTY : selector;
    td_str key =
        td_arena_format(&sync->arena, "%.*s\n%.*s", TD_STR_ARG(namespace), TD_STR_ARG(which));
    struct horizontal_usage *usage = td_map_get(&sync->loop->usages, key);
    if (usage && usage_is_old(usage)) {
        usage_drop(usage);
        usage = NULL;
    }
    usage = usage ? usage : usage_new(sync->loop, key, namespace, which, shared);
    if (!usage) {
        horizontal_query_fail(query, TD_STR("too many metrics requests in flight"));
    } else if (usage->call) {
        query->usage = usage;
        query->next_waiter = usage->waiters;
        usage->waiters = query;
    } else {
        usage_take(usage, query);
    }
}

static void usage_ask(struct horizontal_query *query, td_str selector)
{
    struct horizontal_sync *sync = query->sync;
    bool is_shared = sync->purpose->is_periodic; /* others are few */
    usage_start(query, selector,
                is_shared ? shared_ask(sync->loop, sync->seen.hpa.meta.namespace) : NULL);
}

static void usage_leave(struct horizontal_query *query)
{
    struct horizontal_query **at = query->usage ? &query->usage->waiters : NULL;
    while (at && *at && *at != query) {
        at = &(*at)->next_waiter;
    }
    if (at && *at) {
        *at = query->next_waiter;
    }
}

const struct horizontal_source horizontal_source_resource = {.ask = usage_ask,
                                                             .leave = usage_leave};
const struct horizontal_source horizontal_source_container_resource = {.ask = usage_ask,
                                                                       .leave = usage_leave};

void horizontal_usage_init(struct td_horizontal_loop *loop)
{
    td_map_init(&loop->usages, TD_HPA_TRACKED_MAX);
    td_map_init(&loop->shared_queries, TD_CACHE_OBJECTS_MAX);
    loop->usages_sweep = td_timer_new(loop->options.control.loop, usages_sweep, loop);
}

void horizontal_usage_done(struct td_horizontal_loop *loop)
{
    for (struct td_map_walk at = {.map = &loop->usages}; td_map_step(&at);) {
        usage_free(at.value);
    }
    for (struct td_map_walk at = {.map = &loop->shared_queries}; td_map_step(&at);) {
        shared_free(at.value);
    }
    td_map_done(&loop->usages);
    td_map_done(&loop->shared_queries);
    td_timer_free(loop->usages_sweep);
}
