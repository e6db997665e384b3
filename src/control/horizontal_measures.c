/*
 * The questions of one reconcile to the metrics APIs, all at once. Resource metrics of a namespace
 * and selector are asked for once and shared by whoever asks within a second: cpu and memory of one
 * HPA, or several HPAs over the same pods.
 *
 * Where a namespace has so many HPAs that they ask about most of its pods anyway, a crowd, its pods
 * are asked for all at once, and whoever asks within five seconds takes its own out of the answer:
 * metrics are a quarter of a minute old when they are served, and the answer says how old. When
 * that fails everybody asks for itself again, so that the words of the failure are about its pods.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "base/vec.h"
#include "control/horizontal/horizontal_private.h"
#include "control/measure_client.h"

#define USAGE_FRESH TD_SECOND
#define USAGE_CROWD_FRESH (5 * TD_SECOND)
#define USAGE_CROWD_MIN 16         /* questions in one sync period */
#define USAGE_CROWD_PODS 16        /* to each of them, above which one by one is cheaper */
#define USAGE_CROWD_IDLE_PERIODS 4 /* without a question, then it is forgotten */

struct usage_container {
    td_str name;
    bool has_cpu;
    bool has_memory;
    int64_t cpu_milli;
    int64_t memory_bytes;
};

struct usage_pod {
    td_str name;
    td_time time;
    td_duration window;
    size_t first; /* container */
    size_t count;
};

/* What was asked about the pods of a namespace lately. */
struct horizontal_crowd {
    td_str namespace; /* owned */
    td_time since;
    size_t asked;   /* since then */
    bool is_shared; /* all of its pods are asked for at once */
};

/* One answer of the resource metrics API. */
struct horizontal_usage {
    struct td_horizontal_loop *loop;
    td_str key;                     /* owned */
    struct horizontal_crowd *crowd; /* the answer is about all pods of this one; or NULL */
    struct td_map by_name;          /* of a crowd: its pods */
    struct td_measure_call *call;
    struct horizontal_question *waiters;
    struct td_arena arena;
    struct usage_pod *pods;
    size_t pod_count;
    size_t pod_cap;
    struct usage_container *containers;
    size_t container_count;
    size_t container_cap;
    int code;
    td_str error;
    td_time answered;
};

/* ---- Answers ---- */

static void question_close(struct horizontal_question *question)
{
    struct horizontal_sync *sync = question->sync;
    question->is_open = false;
    question->took = horizontal_now(sync->loop) - question->asked;
    if (--sync->questions_open == 0) {
        horizontal_sync_resume(sync, horizontal_sync_decide);
    }
}

static void question_fail(struct horizontal_question *question, td_str error)
{
    question->is_failed = true;
    question->error = td_arena_copy_str(&question->sync->arena, error);
    question_close(question);
}

static void question_add_sample(struct horizontal_question *question,
                                const struct td_hpa_sample *sample)
{
    struct td_arena *arena = &question->sync->arena;
    question->samples = td_arena_grow(arena, question->samples, question->sample_count,
                                      &question->sample_cap, sizeof(*question->samples));
    question->samples[question->sample_count] = *sample;
    question->samples[question->sample_count++].pod = td_arena_copy_str(arena, sample->pod);
}

static void question_see_time(struct horizontal_question *question, td_time time)
{
    if (!question->has_time) {
        question->has_time = true;
        question->time = time;
    }
}

/* ---- Resource metrics ---- */

static void usage_free(struct horizontal_usage *usage)
{
    if (usage->call) {
        td_measure_cancel(usage->call);
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
    return usage->crowd ? sync->pod_count : usage->pod_count;
}

static const struct usage_pod *usage_at(const struct horizontal_usage *usage,
                                        const struct horizontal_sync *sync, size_t index)
{
    return usage->crowd ? td_map_get(&usage->by_name, sync->pods[index]->name)
                        : &usage->pods[index];
}

static bool usage_value(const struct usage_container *container, td_str resource, int64_t *ret)
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
    bool is_one = metric->type == TD_HPA_CONTAINER_RESOURCE;
    int64_t sum = 0;
    for (size_t i = 0; i < pod->count; i++) {
        const struct usage_container *container = &usage->containers[pod->first + i];
        int64_t value;
        if (is_one && !td_str_equal(container->name, metric->container)) {
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

/* A verdict is asked for containers one by one. */
static void usage_keep(const struct horizontal_usage *usage, struct horizontal_sync *sync)
{
    if (!sync->verdict || sync->use_count > 0) {
        return; /* nobody asks, or another metric brought them */
    }
    for (size_t i = 0; i < usage_count(usage, sync); i++) {
        const struct usage_pod *pod = usage_at(usage, sync, i);
        td_str name = pod ? td_arena_copy_str(&sync->arena, pod->name) : TD_STR_EMPTY;
        for (size_t j = 0; pod && j < pod->count; j++) {
            const struct usage_container *container = &usage->containers[pod->first + j];
            sync->uses = td_arena_grow(&sync->arena, sync->uses, sync->use_count, &sync->use_cap,
                                       sizeof(*sync->uses));
            sync->uses[sync->use_count++] = (struct horizontal_use){
                .pod = name,
                .container = td_arena_copy_str(&sync->arena, container->name),
                .time = pod->time,
                .window = pod->window,
                .has_cpu = container->has_cpu,
                .has_memory = container->has_memory,
                .cpu_milli = container->cpu_milli,
                .memory_bytes = container->memory_bytes,
            };
        }
    }
}

static void usage_take(const struct horizontal_usage *usage, struct horizontal_question *question)
{
    if (usage->code == TD_OK) {
        usage_keep(usage, question->sync);
    }
    if (usage->code != TD_OK) {
        question_fail(question, usage->error);
        return;
    }
    size_t found = 0;
    for (size_t i = 0; i < usage_count(usage, question->sync); i++) {
        const struct usage_pod *pod = usage_at(usage, question->sync, i);
        if (!pod) {
            continue;
        }
        struct td_hpa_sample sample = {.pod = pod->name, .at = pod->time, .window = pod->window};
        found++;
        question_see_time(question, pod->time);
        if (usage_of_pod(usage, pod, question->metric, &sample.value_milli)) {
            question_add_sample(question, &sample);
        }
    }
    if (found == 0) { /* as if its pods alone had been asked for */
        question_fail(question, TD_STR("no metrics returned from resource metrics API"));
        return;
    }
    question_close(question);
}

static void question_ask_usage(struct horizontal_question *question, td_str selector,
                               struct horizontal_crowd *crowd);

/* A crowd whose pods cannot be had: each for itself, and together again when it has been asked
 * enough. */
static void usage_disperse(struct horizontal_usage *usage)
{
    usage->crowd->is_shared = false;
    usage->crowd->asked = 0;
    usage->crowd->since = horizontal_now(usage->loop);
    while (usage->waiters) {
        struct horizontal_question *question = usage->waiters;
        usage->waiters = question->next_waiter;
        question->usage = NULL;
        td_auto_buf selector;
        td_buf_init(&selector, TD_MEASURE_PATH_BYTES_MAX);
        td_selector_write(&question->sync->pass.selector, &selector);
        question_ask_usage(question, td_buf_str(&selector), NULL);
    }
}

/* Names of pods are unique in their namespace. */
static void usage_index(struct horizontal_usage *usage)
{
    for (size_t i = 0; i < usage->pod_count; i++) {
        /* One that does not fit has no metrics; the map is as large as a cluster can be. */
        (void)td_map_put(&usage->by_name, usage->pods[i].name, &usage->pods[i]);
    }
}

static void usage_add(void *context, const struct td_pod_measure *measure)
{
    struct horizontal_usage *usage = context;
    struct usage_pod *last = usage->pod_count > 0 ? &usage->pods[usage->pod_count - 1] : NULL;
    if (!last || !td_str_equal(last->name, measure->pod)) {
        usage->pods = td_arena_grow(&usage->arena, usage->pods, usage->pod_count, &usage->pod_cap,
                                    sizeof(*usage->pods));
        last = &usage->pods[usage->pod_count++];
        *last = (struct usage_pod){
            .name = td_arena_copy_str(&usage->arena, measure->pod),
            .time = measure->time,
            .window = measure->window,
            .first = usage->container_count,
        };
    }
    usage->containers = td_arena_grow(&usage->arena, usage->containers, usage->container_count,
                                      &usage->container_cap, sizeof(*usage->containers));
    usage->containers[usage->container_count++] = (struct usage_container){
        .name = td_arena_copy_str(&usage->arena, measure->container),
        .has_cpu = measure->has_cpu,
        .has_memory = measure->has_memory,
        .cpu_milli = measure->cpu_milli,
        .memory_bytes = measure->memory_bytes,
    };
    last->count++;
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
    if (usage->crowd && code != TD_OK) {
        usage_disperse(usage);
    } else if (usage->crowd) {
        usage_index(usage);
    }
    while (usage->waiters) {
        struct horizontal_question *question = usage->waiters;
        usage->waiters = question->next_waiter;
        question->usage = NULL;
        usage_take(usage, question);
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
    td_duration fresh = usage->crowd && usage->code == TD_OK ? USAGE_CROWD_FRESH : USAGE_FRESH;
    return !usage->call && horizontal_now(usage->loop) - usage->answered >= fresh;
}

/* ---- Crowds ---- */

static void crowd_free(struct horizontal_crowd *crowd)
{
    td_text_free(crowd->namespace);
    td_free(crowd);
}

static struct horizontal_crowd *crowd_of(struct td_horizontal_loop *loop, td_str namespace)
{
    struct horizontal_crowd *crowd = td_map_get(&loop->crowds, namespace);
    if (!crowd) {
        crowd = td_alloc_zero(1, sizeof(*crowd));
        crowd->namespace = td_text_copy(namespace);
        crowd->since = horizontal_now(loop);
        if (td_map_put(&loop->crowds, crowd->namespace, crowd) != TD_OK) {
            crowd_free(crowd);
            return NULL;
        }
    }
    return crowd;
}

/* Counts a question; the crowd, when it is one. */
static struct horizontal_crowd *crowd_ask(struct td_horizontal_loop *loop, td_str namespace)
{
    struct horizontal_crowd *crowd = crowd_of(loop, namespace);
    if (!crowd) {
        return NULL;
    }
    crowd->asked++;
    td_time now = horizontal_now(loop);
    if (now - crowd->since >= loop->options.sync_period) {
        const struct td_sight_pod *pod = NULL;
        size_t pods = 0;
        while (pods <= crowd->asked * USAGE_CROWD_PODS &&
               (pod = td_sight_next_pod(loop->options.control.sight, namespace, pod))) {
            pods++;
        }
        crowd->is_shared =
            crowd->asked >= USAGE_CROWD_MIN && pods <= crowd->asked * USAGE_CROWD_PODS;
        crowd->asked = 0;
        crowd->since = now;
    }
    return crowd->is_shared ? crowd : NULL;
}

/* Answers that are about a crowd are gone long before it is. */
static void crowds_sweep(struct td_horizontal_loop *loop)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    td_duration idle = USAGE_CROWD_IDLE_PERIODS * loop->options.sync_period + USAGE_CROWD_FRESH;
    while ((entry = td_map_next(&loop->crowds, &position))) {
        struct horizontal_crowd *crowd = entry->value;
        if (horizontal_now(loop) - crowd->since > idle) {
            (void)td_map_remove(&loop->crowds, crowd->namespace); /* it is this one */
            crowd_free(crowd);
        }
    }
}

static void usages_sweep(struct td_timer *timer, void *context)
{
    struct td_horizontal_loop *loop = context;
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&loop->usages, &position))) {
        if (usage_is_old(entry->value)) {
            usage_drop(entry->value);
        }
    }
    if (loop->usages.count > 0) {
        td_timer_set(timer, USAGE_FRESH);
    } else {
        crowds_sweep(loop);
    }
}

static struct horizontal_usage *usage_new(struct td_horizontal_loop *loop, td_str key,
                                          td_str namespace, td_str selector,
                                          struct horizontal_crowd *crowd)
{
    static const struct td_measure_handler handler = {.pod = usage_add, .done = usage_answered};
    struct horizontal_usage *usage = td_alloc_zero(1, sizeof(*usage));
    usage->loop = loop;
    usage->key = td_text_copy(key);
    usage->crowd = crowd;
    td_map_init(&usage->by_name, TD_CACHE_OBJECTS_MAX);
    td_arena_init(&usage->arena, TD_TREE_ARENA_BYTES_MAX);
    if (td_map_put(&loop->usages, usage->key, usage) != TD_OK) {
        usage_free(usage);
        return NULL;
    }
    usage->call =
        td_measure_pods(loop->options.control.measures, namespace, selector, &handler, usage);
    return usage;
}

static void question_ask_usage(struct horizontal_question *question, td_str selector,
                               struct horizontal_crowd *crowd)
{
    struct horizontal_sync *sync = question->sync;
    td_str namespace = sync->hpa.meta.namespace;
    td_str which = crowd ? TD_STR_EMPTY : selector;
    td_str key =
        td_arena_format(&sync->arena, "%.*s\n%.*s", TD_STR_ARG(namespace), TD_STR_ARG(which));
    struct horizontal_usage *usage = td_map_get(&sync->loop->usages, key);
    if (usage && usage_is_old(usage)) {
        usage_drop(usage);
        usage = NULL;
    }
    usage = usage ? usage : usage_new(sync->loop, key, namespace, which, crowd);
    if (!usage) {
        question_fail(question, TD_STR("too many metrics are asked for at one time"));
    } else if (usage->call) {
        question->usage = usage;
        question->next_waiter = usage->waiters;
        usage->waiters = question;
    } else {
        usage_take(usage, question);
    }
}

/* ---- Custom and external metrics ---- */

static void value_add(void *context, const struct td_value_measure *measure)
{
    struct horizontal_question *question = context;
    question_see_time(question, measure->time);
    if (question->metric->type == TD_HPA_PODS) {
        const struct td_hpa_sample sample = {
            .pod = measure->object,
            .value_milli = measure->milli,
            .at = measure->time,
            .window = measure->window,
        };
        question_add_sample(question, &sample);
        return;
    }
    question->values =
        td_arena_grow(&question->sync->arena, question->values, question->value_count,
                      &question->value_cap, sizeof(*question->values));
    question->values[question->value_count++] = measure->milli;
}

static void value_answered(void *context, int code, const struct td_error *err)
{
    struct horizontal_question *question = context;
    question->call = NULL;
    if (code != TD_OK) {
        question_fail(question, td_str_from(err->message));
    } else if (question->metric->type != TD_HPA_PODS && question->value_count == 0) {
        question_fail(question, TD_STR("the metrics API gave no value that can be read"));
    } else {
        question_close(question);
    }
}

static const struct td_value_handler value_handler = {.value = value_add, .done = value_answered};

/* The selector of a metric as text; empty: none. False: it cannot be read, and the question has
 * failed. */
static bool question_selector(struct horizontal_question *question, td_str *ret)
{
    struct td_arena *arena = &question->sync->arena;
    struct td_selector selector;
    struct td_error err = TD_ERROR_INIT;
    *ret = TD_STR_EMPTY;
    if (!question->metric->metric_selector) {
        return true;
    }
    if (td_selector_from_json(arena, question->metric->metric_selector, &selector, &err) != TD_OK) {
        question_fail(question, td_str_from(err.message));
        return false;
    }
    td_auto_buf text;
    td_buf_init(&text, TD_MEASURE_PATH_BYTES_MAX);
    td_selector_write(&selector, &text);
    *ret = td_arena_copy_str(arena, td_buf_str(&text));
    return true;
}

static void question_ask(struct horizontal_question *question, td_str selector)
{
    struct horizontal_sync *sync = question->sync;
    struct td_measure_client *measures = sync->loop->options.control.measures;
    const struct td_hpa_metric *metric = question->metric;
    td_str metric_selector;
    question->asked = horizontal_now(sync->loop);
    if (!question->is_open) {
        return; /* its object's kind is not known */
    }
    if (metric->type == TD_HPA_RESOURCE || metric->type == TD_HPA_CONTAINER_RESOURCE) {
        /* Hvpas are few, and ask with a selector of their own. */
        struct horizontal_crowd *crowd =
            sync->item ? crowd_ask(sync->loop, sync->hpa.meta.namespace) : NULL;
        question_ask_usage(question, selector, crowd);
        return;
    }
    if (metric->type == TD_HPA_METRIC_UNKNOWN) {
        question_close(question); /* the decider refuses it by its name */
        return;
    }
    if (!question_selector(question, &metric_selector)) {
        return;
    }
    if (metric->type == TD_HPA_EXTERNAL) {
        question->call = td_measure_external(measures, sync->hpa.meta.namespace, metric->name,
                                             metric_selector, &value_handler, question);
        return;
    }
    bool is_pods = metric->type == TD_HPA_PODS;
    const struct td_custom_query query = {
        .namespace = sync->hpa.meta.namespace,
        .group = is_pods ? TD_STR_EMPTY : question->resource.group,
        .resource = is_pods ? TD_STR("pods") : question->resource.plural,
        .object = is_pods ? TD_STR_EMPTY : metric->described.name,
        .selector = is_pods ? selector : TD_STR_EMPTY,
        .metric = metric->name,
        .metric_selector = metric_selector,
    };
    question->call = td_measure_custom(measures, &query, &value_handler, question);
}

/* Which resource an Object metric's object is. False: discovery is under way. */
static bool question_resolve(struct horizontal_question *question)
{
    struct horizontal_sync *sync = question->sync;
    const struct td_object_reference *object = &question->metric->described;
    td_str group = td_group_version_parse(object->api_version).group;
    struct td_error err = TD_ERROR_INIT;
    if (question->metric->type != TD_HPA_OBJECT || !question->is_open) {
        return true;
    }
    int code = td_sight_resource(sync->loop->options.control.sight, group, object->kind, 0,
                                 &question->resource, &err);
    if (code == TD_OK) {
        question->resource.group = td_arena_copy_str(&sync->arena, question->resource.group);
        question->resource.plural = td_arena_copy_str(&sync->arena, question->resource.plural);
    } else if (code != TD_BUSY) {
        question_fail(question,
                      td_arena_format(&sync->arena,
                                      "unable to fetch metrics from custom metrics API: unable to "
                                      "map kind %.*s%s%.*s to resource: %s",
                                      TD_STR_ARG(object->kind), group.len > 0 ? "." : "",
                                      TD_STR_ARG(group), err.message));
    }
    return code != TD_BUSY;
}

static void measures_go_on(struct horizontal_sync *sync)
{
    for (size_t i = 0; i < sync->question_count; i++) {
        if (!question_resolve(&sync->questions[i])) {
            horizontal_sync_wait(sync, measures_go_on);
            return;
        }
    }
    td_auto_buf selector;
    td_buf_init(&selector, TD_MEASURE_PATH_BYTES_MAX);
    td_selector_write(&sync->pass.selector, &selector);
    for (size_t i = 0; i < sync->question_count; i++) {
        question_ask(&sync->questions[i], td_buf_str(&selector));
    }
    if (--sync->questions_open == 0) {
        horizontal_sync_decide(sync);
    }
}

void horizontal_measures_ask(struct horizontal_sync *sync)
{
    sync->question_count = sync->hpa.metric_count;
    sync->questions =
        td_arena_array(&sync->arena, struct horizontal_question, sync->question_count + 1);
    sync->questions_open = sync->question_count + 1; /* one until all are asked */
    for (size_t i = 0; i < sync->question_count; i++) {
        sync->questions[i].sync = sync;
        sync->questions[i].metric = &sync->hpa.metrics[i];
        sync->questions[i].error = TD_STR_EMPTY;
        sync->questions[i].is_open = true;
    }
    measures_go_on(sync);
}

void horizontal_measures_leave(struct horizontal_sync *sync)
{
    for (size_t i = 0; i < sync->question_count; i++) {
        struct horizontal_question *question = &sync->questions[i];
        if (question->call) {
            td_measure_cancel(question->call);
        }
        struct horizontal_question **at = question->usage ? &question->usage->waiters : NULL;
        while (at && *at && *at != question) {
            at = &(*at)->next_waiter;
        }
        if (at && *at) {
            *at = question->next_waiter;
        }
    }
}

void horizontal_measures_init(struct td_horizontal_loop *loop)
{
    td_map_init(&loop->usages, TD_HPA_TRACKED_MAX);
    td_map_init(&loop->crowds, TD_CACHE_OBJECTS_MAX);
    loop->usages_sweep = td_timer_new(loop->options.control.loop, usages_sweep, loop);
}

void horizontal_measures_done(struct td_horizontal_loop *loop)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&loop->usages, &position))) {
        usage_free(entry->value);
    }
    position = 0;
    while ((entry = td_map_next(&loop->crowds, &position))) {
        crowd_free(entry->value);
    }
    td_map_done(&loop->usages);
    td_map_done(&loop->crowds);
    td_timer_free(loop->usages_sweep);
}
