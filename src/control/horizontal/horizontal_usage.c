/*
 * The source of Resource and ContainerResource metrics: the resource metrics API. HPAs over the
 * same pods share the answer, and so do cpu and memory of one HPA.
 *
 * Where the HPAs of a namespace ask for most of its pods anyway, one shared query asks for all pods
 * of the namespace, and each HPA takes its own pods out of the answer. When the shared query fails,
 * each HPA asks for its own pods, so that the error names those.
 *
 * What HPAs are judged by is asked for again and again, at the pace of the source
 * (decide/horizontal/pace.h) and not of syncs: a sync takes the newest answer, and an answer with
 * other values makes its HPAs be looked at. When a request fails this ends, and begins again with
 * the next sync. Those who are not HPAs get an answer that is at most 1 s old.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/horizontal/horizontal_private.h"
#include "decide/horizontal/pace.h"
#include "kube/client/metrics_client.h"

#define USAGE_FRESH TD_SECOND
#define USAGE_SHARED_FRESH (5 * TD_SECOND) /* where it knows none of the pods */
#define USAGE_SHARED_MIN 2                 /* HPAs that ask in one sync period */
#define USAGE_SHARED_PODS 16               /* to each of them, above which one by one is cheaper */
#define USAGE_SHARED_IDLE_PERIODS 4        /* without a query, then it is forgotten */

/* The containers of a pod; the first one has its name, time and window. */
struct usage_pod {
    size_t first;
    size_t count;
};

/* What was asked about the pods of a namespace lately. */
struct horizontal_shared_query {
    td_str namespace; /* owned */
    td_time since;
    size_t queries; /* since then, one of each HPA */
    bool is_shared; /* all of its pods are asked for at once */
};

/* One answer of the resource metrics API. */
struct usage_answer {
    struct td_arena arena;
    struct td_map by_name; /* of a shared query: its pods */
    struct usage_pod *pods;
    size_t pod_count;
    size_t pod_cap;
    struct td_container_metrics *containers;
    size_t container_count;
    size_t container_cap;
    td_time newest;  /* stamp; 0: there is none */
    uint64_t values; /* a hash of them, in whatever order they came */
    int code;
    td_str error;
    td_time answered;
};

/* What is asked, and who wants to know. */
struct horizontal_usage {
    struct td_horizontal_loop *loop;
    td_str key;                             /* owned: namespace, newline, selector */
    size_t namespace_bytes;                 /* of it */
    struct horizontal_shared_query *shared; /* all pods of this one are asked for; or NULL */
    struct td_metrics_call *call;
    struct horizontal_query *waiters; /* for the answer to it */
    struct usage_answer *coming;      /* likewise */
    struct usage_answer *last;        /* NULL: there was none yet */
    struct horizontal_item *users;    /* for whom it is asked again and again */
    size_t user_count;
    size_t polled_containers; /* that are counted in the loop because of it */
    struct td_hpa_pace pace;
    struct td_timer *timer;
};

/* ---- Answers ---- */

static struct usage_answer *answer_new(void)
{
    struct usage_answer *answer = td_alloc_zero(1, sizeof(*answer));
    td_map_init(&answer->by_name, TD_CACHE_OBJECTS_MAX);
    td_arena_init(&answer->arena, TD_TREE_ARENA_BYTES_MAX);
    return answer;
}

static void answer_free(struct usage_answer *answer)
{
    if (answer) {
        td_map_done(&answer->by_name);
        td_arena_done(&answer->arena);
        td_free(answer);
    }
}

static void usage_free(struct horizontal_usage *usage)
{
    if (usage->call) {
        td_metrics_cancel(usage->call);
    }
    answer_free(usage->coming);
    answer_free(usage->last);
    td_timer_free(usage->timer);
    td_text_free(usage->key);
    td_free(usage);
}

/* The answer about the pods that a sync is about, one by one; NULL: there is none about this one.
 */
static size_t usage_count(const struct horizontal_usage *usage, const struct horizontal_sync *sync)
{
    return usage->shared ? sync->seen.pod_count : usage->last->pod_count;
}

static const struct usage_pod *usage_at(const struct horizontal_usage *usage,
                                        const struct horizontal_sync *sync, size_t index)
{
    return usage->shared ? td_map_get(&usage->last->by_name, sync->seen.pods[index]->meta.name)
                         : &usage->last->pods[index];
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
        const struct td_container_metrics *container = &usage->last->containers[pod->first + i];
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
                usage_copy(&sync->arena, &usage->last->containers[pod->first + j]);
        }
    }
}

static void usage_take(const struct horizontal_usage *usage, struct horizontal_query *query)
{
    if (usage->last->code != TD_OK) {
        horizontal_query_fail(query, usage->last->error);
        return;
    }
    usage_keep(usage, query->sync);
    size_t found = 0;
    for (size_t i = 0; i < usage_count(usage, query->sync); i++) {
        const struct usage_pod *pod = usage_at(usage, query->sync, i);
        if (!pod) {
            continue;
        }
        const struct td_container_metrics *first = &usage->last->containers[pod->first];
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

static void usage_answered(void *context, int code, const struct td_error *err);
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
static void answer_index(struct usage_answer *answer)
{
    for (size_t i = 0; i < answer->pod_count; i++) {
        /* One that does not fit has no metrics; the map is as large as a cluster can be. */
        (void)td_map_put(&answer->by_name, answer->containers[answer->pods[i].first].pod,
                         &answer->pods[i]);
    }
}

static uint64_t answer_hash(const struct td_container_metrics *measure)
{
    const uint64_t parts[] = {
        td_map_hash(measure->pod),
        td_map_hash(measure->container),
        measure->has_cpu ? (uint64_t)measure->cpu_milli : UINT64_MAX,
        measure->has_memory ? (uint64_t)measure->memory_bytes : UINT64_MAX,
    };
    return td_map_hash((td_str){.ptr = (const char *)parts, .len = sizeof(parts)});
}

static void usage_add(void *context, const struct td_container_metrics *measure)
{
    struct usage_answer *answer = ((struct horizontal_usage *)context)->coming;
    size_t count = answer->container_count;
    answer->containers = td_arena_grow(&answer->arena, answer->containers, count,
                                       &answer->container_cap, sizeof(*answer->containers));
    answer->containers[answer->container_count++] = usage_copy(&answer->arena, measure);
    if (count == 0 || !td_str_equal(answer->containers[count - 1].pod, measure->pod)) {
        answer->pods = td_arena_grow(&answer->arena, answer->pods, answer->pod_count,
                                     &answer->pod_cap, sizeof(*answer->pods));
        answer->pods[answer->pod_count++] = (struct usage_pod){.first = count};
    }
    answer->pods[answer->pod_count - 1].count++;
    answer->values += answer_hash(measure);
    answer->newest = measure->time > answer->newest ? measure->time : answer->newest;
}

/* ---- For whom it is asked again and again ---- */

/* Of what all answers bring together. */
static void usage_count_polled(struct horizontal_usage *usage, size_t containers)
{
    usage->loop->polled_containers += containers - usage->polled_containers;
    usage->polled_containers = containers;
}

static void usage_sweep_soon(struct td_horizontal_loop *loop)
{
    if (!td_timer_is_set(loop->usages_sweep)) {
        td_timer_set(loop->usages_sweep, USAGE_FRESH);
    }
}

void horizontal_usage_quit(struct horizontal_item *item)
{
    struct horizontal_usage *usage = item->usage;
    if (!usage) {
        return;
    }
    *(item->previous_user ? &item->previous_user->next_user : &usage->users) = item->next_user;
    if (item->next_user) {
        item->next_user->previous_user = item->previous_user;
    }
    item->usage = NULL;
    item->next_user = NULL;
    item->previous_user = NULL;
    if (--usage->user_count == 0) {
        td_timer_stop(usage->timer);
        usage_count_polled(usage, 0);
        usage_sweep_soon(usage->loop);
    }
}

static void usage_join(struct horizontal_usage *usage, struct horizontal_item *item)
{
    if (item->usage == usage) {
        return;
    }
    if (item->usage && !usage->last) {
        usage->pace = item->usage->pace; /* it is the same source */
    }
    horizontal_usage_quit(item);
    item->usage = usage;
    item->next_user = usage->users;
    if (usage->users) {
        usage->users->previous_user = item;
    }
    usage->users = item;
    usage->user_count++;
}

static void usage_request(struct horizontal_usage *usage)
{
    static const struct td_metrics_handler handler = {.pod = usage_add, .done = usage_answered};
    td_timer_stop(usage->timer);
    usage->coming = answer_new();
    usage->call = td_metrics_get_pods(
        usage->loop->options.control.metrics_client,
        td_str_slice(usage->key, 0, usage->namespace_bytes),
        td_str_slice(usage->key, usage->namespace_bytes + 1, usage->key.len), &handler, usage);
}

static void usage_poll(struct td_timer *timer, void *context)
{
    (void)timer;
    struct horizontal_usage *usage = context;
    if (!usage->call) {
        usage_request(usage);
    }
}

/* When to ask again; with other values than before, its users are looked at. */
static void usage_go_on(struct horizontal_usage *usage, bool is_other)
{
    struct td_horizontal_loop *loop = usage->loop;
    td_duration now = horizontal_steady(loop);
    usage_count_polled(usage, usage->last->container_count);
    for (struct horizontal_item *item = usage->users; is_other && item; item = item->next_user) {
        horizontal_look_want(item);
    }
    const struct td_hpa_pace_answer answer = {
        .now = now,
        .newest = usage->last->newest,
        .cost =
            td_hpa_pace_cost(usage->user_count, loop->polled_containers, loop->options.sync_period),
        .period = loop->options.sync_period,
    };
    td_timer_set(usage->timer, td_hpa_pace_next(&usage->pace, &answer) - now);
}

/* ---- When the answer has come ---- */

static void usage_tell(struct horizontal_usage *usage)
{
    while (usage->waiters) {
        struct horizontal_query *query = usage->waiters;
        usage->waiters = query->next_waiter;
        query->usage = NULL;
        usage_take(usage, query);
    }
}

static void usage_answered(void *context, int code, const struct td_error *err)
{
    struct horizontal_usage *usage = context;
    struct usage_answer *before = usage->last;
    usage->last = usage->coming;
    usage->coming = NULL;
    usage->call = NULL;
    usage->last->code = code;
    usage->last->answered = horizontal_now(usage->loop);
    bool is_other = before && before->values != usage->last->values;
    answer_free(before);
    if (code != TD_OK) {
        usage->last->error = td_arena_copy_str(&usage->last->arena, td_str_from(err->message));
        while (usage->users) {
            horizontal_usage_quit(usage->users);
        }
        if (usage->shared) {
            usage_disperse(usage);
        }
    } else if (usage->shared) {
        answer_index(usage->last);
    }
    usage_tell(usage);
    if (usage->users) {
        usage_go_on(usage, is_other);
    } else {
        usage_sweep_soon(usage->loop);
    }
}

static void usage_drop(struct horizontal_usage *usage)
{
    (void)td_map_remove(&usage->loop->usages, usage->key); /* it is there */
    usage_free(usage);
}

static td_duration usage_age(const struct horizontal_usage *usage)
{
    return usage->last ? horizontal_now(usage->loop) - usage->last->answered : INT64_MAX;
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

/* Would one query for all of its pods do for those of the last sync period? */
static bool shared_is_worth_it(const struct td_horizontal_loop *loop,
                               const struct horizontal_shared_query *shared)
{
    const struct td_informer_pod *pod = NULL;
    size_t pods_max = shared->queries * USAGE_SHARED_PODS;
    size_t pods = 0;
    while (pods <= pods_max &&
           (pod = td_informers_next_pod(loop->options.control.informers, shared->namespace, pod))) {
        pods++;
    }
    return shared->queries >= USAGE_SHARED_MIN && pods <= pods_max;
}

/* Counts an HPA that asks; the shared query, where the namespace has one. */
static struct horizontal_shared_query *shared_ask(struct horizontal_item *item)
{
    struct td_horizontal_loop *loop = item->loop;
    struct horizontal_shared_query *shared = shared_of(loop, item->namespace);
    if (!shared) {
        return NULL;
    }
    td_time now = horizontal_now(loop);
    if (now - shared->since >= loop->options.sync_period) {
        shared->is_shared = shared_is_worth_it(loop, shared);
        shared->queries = 0;
        shared->since = now;
    }
    if (item->counted != shared->since) {
        item->counted = shared->since;
        shared->queries++;
    }
    return shared->is_shared ? shared : NULL;
}

static td_str usage_key(struct td_arena *arena, td_str namespace, td_str selector)
{
    return td_arena_format(arena, "%.*s\n%.*s", TD_STR_ARG(namespace), TD_STR_ARG(selector));
}

static void shared_queries_sweep(struct td_horizontal_loop *loop)
{
    td_duration idle = USAGE_SHARED_IDLE_PERIODS * loop->options.sync_period;
    for (struct td_map_walk at = {.map = &loop->shared_queries}; td_map_step(&at);) {
        struct horizontal_shared_query *shared = at.value;
        td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
        if (horizontal_now(loop) - shared->since > idle &&
            !td_map_get(&loop->usages, usage_key(&arena, shared->namespace, TD_STR_EMPTY))) {
            (void)td_map_remove(&loop->shared_queries, shared->namespace); /* it is this one */
            shared_free(shared);
        }
    }
}

/* What is without users goes. */
static void usages_sweep(struct td_timer *timer, void *context)
{
    struct td_horizontal_loop *loop = context;
    size_t unused = 0;
    for (struct td_map_walk at = {.map = &loop->usages}; td_map_step(&at);) {
        struct horizontal_usage *usage = at.value;
        if (!usage->users && !usage->call && usage_age(usage) >= USAGE_FRESH) {
            usage_drop(usage);
        } else {
            unused += !usage->users;
        }
    }
    shared_queries_sweep(loop);
    if (unused > 0) {
        td_timer_set(timer, USAGE_FRESH);
    }
}

static struct horizontal_usage *usage_new(struct td_horizontal_loop *loop, td_str key,
                                          size_t namespace_bytes,
                                          struct horizontal_shared_query *shared)
{
    struct horizontal_usage *usage = td_alloc_zero(1, sizeof(*usage));
    usage->loop = loop;
    usage->key = td_text_copy(key);
    usage->namespace_bytes = namespace_bytes;
    usage->shared = shared;
    usage->timer = td_timer_new(loop->options.control.loop, usage_poll, usage);
    if (td_map_put(&loop->usages, usage->key, usage) != TD_OK) {
        usage_free(usage);
        return NULL;
    }
    return usage;
}

/* Will the last answer do? A sync takes what is asked for again and again. One of a shared query
 * that knows none of its pods may be from before they were measured. */
static bool usage_serves(const struct horizontal_usage *usage, const struct horizontal_sync *sync)
{
    if (usage_age(usage) < USAGE_FRESH) {
        return true;
    }
    if (!td_timer_is_set(usage->timer) || !sync->purpose->is_periodic) {
        return false;
    }
    if (!usage->shared) {
        return usage->last->pod_count > 0;
    }
    if (usage_age(usage) < USAGE_SHARED_FRESH) {
        return true;
    }
    for (size_t i = 0; i < sync->seen.pod_count; i++) {
        if (usage_at(usage, sync, i)) {
            return true;
        }
    }
    return false;
}

static void usage_start(struct horizontal_query *query, td_str selector,
                        struct horizontal_shared_query *shared)
{
    struct horizontal_sync *sync = query->sync;
    td_str namespace = sync->seen.hpa.meta.namespace;
    td_str key = usage_key(&sync->arena, namespace, shared ? TD_STR_EMPTY : selector);
    struct horizontal_usage *usage = td_map_get(&sync->loop->usages, key);
    usage = usage ? usage : usage_new(sync->loop, key, namespace.len, shared);
    if (!usage) {
        horizontal_query_fail(query, TD_STR("too many metrics requests in flight"));
        return;
    }
    if (sync->item) {
        usage_join(usage, sync->item);
    }
    if (!usage->call && usage_serves(usage, sync)) {
        usage_take(usage, query);
        return;
    }
    if (!usage->call) {
        usage_request(usage);
    }
    query->usage = usage;
    query->next_waiter = usage->waiters;
    usage->waiters = query;
}

static void usage_ask(struct horizontal_query *query, td_str selector)
{
    struct horizontal_sync *sync = query->sync;
    if (sync->purpose->is_look) {
        if (sync->item->usage && sync->item->usage->last) {
            usage_take(sync->item->usage, query);
        } else {
            horizontal_query_fail(query, TD_STR_EMPTY); /* no caller is told */
        }
        return;
    }
    /* Others than HPAs are few. */
    usage_start(query, selector, sync->item ? shared_ask(sync->item) : NULL);
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
