/*
 * Pods and metrics. A pod is read when it changes; metrics.k8s.io is listed every few seconds of
 * the machine's time, at least once a sample period of the cluster, while the minute timer follows
 * the cluster's clock. What each row is, model_rows.c finds out.
 */
#include "web/model.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/resourcelist.h"
#include "kube/client/client.h"
#include "kube/client/events.h"
#include "kube/client/metrics_client.h"
#include "kube/objectkey.h"
#include "model/pod.h"

#define MODEL_METRICS_EVERY (1 * TD_SECOND) /* machine's time; a large cluster is asked less */
#define MODEL_METRICS_LEAST (100 * TD_MILLISECOND)
#define MODEL_METRICS_PODS 200 /* so many more pods, one second more */
#define MODEL_OWNER_TRIES 20   /* looks, until a pod stands for itself */
#define MODEL_POD_ARENA_BYTES_MAX ((size_t)8 << 20)

td_time td_model_now(const struct td_model *model)
{
    return td_clock_wall(td_loop_clock(model->loop));
}

/* ---- Pods ---- */

static void amounts_add(double sum[TD_MODEL_RESOURCES], const struct td_resource_list *list)
{
    const struct td_quantity *cpu = td_resource_list_get(list, TD_CPU);
    const struct td_quantity *memory = td_resource_list_get(list, TD_MEMORY);
    sum[TD_MODEL_CPU] += cpu ? (double)td_quantity_milli(cpu) : 0;
    sum[TD_MODEL_MEMORY] += memory ? (double)td_quantity_value(memory) : 0;
}

static void pod_read_container(struct td_model_pod *pod, const struct td_pod_container *container)
{
    amounts_add(pod->request, td_vertical_requests(container));
    amounts_add(pod->limit, td_vertical_limits(container));
    pod->restarts += container->restart_count;
    bool is_oom = container->has_last_terminated &&
                  td_str_equal(container->last_terminated_reason, TD_STR("OOMKilled")) &&
                  container->last_finished != TD_TIME_NONE;
    if (is_oom && container->last_finished != pod->oom_at) {
        bool is_news = pod->oom_at == TD_TIME_NONE || container->last_finished > pod->oom_at;
        pod->oom_at = is_news ? container->last_finished : pod->oom_at;
        pod->oom_count += is_news ? 1 : 0;
    }
}

static void pod_read(struct td_model *model, struct td_model_pod *pod,
                     const struct td_informer_pod *seen)
{
    td_auto_arena scratch = td_arena_capped(MODEL_POD_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct td_pod decoded;
    struct td_controller owner;
    struct td_controller top;
    bool is_found = false;
    if (td_informers_tree(&scratch, &seen->object, &tree, NULL) != TD_OK ||
        td_pod_decode(&scratch, tree, &decoded, NULL) != TD_OK) {
        return;
    }
    memset(pod->request, 0, sizeof(pod->request));
    memset(pod->limit, 0, sizeof(pod->limit));
    pod->restarts = 0;
    for (size_t i = 0; i < decoded.container_count; i++) {
        pod_read_container(pod, &decoded.containers[i]);
    }
    pod->is_pod_level = decoded.has_pod_level;
    if (decoded.has_pod_level) {
        memset(pod->request, 0, sizeof(pod->request));
        memset(pod->limit, 0, sizeof(pod->limit));
        amounts_add(pod->request, &decoded.whole_requests);
        amounts_add(pod->limit, &decoded.pod_limits);
    }
    pod->is_over = td_pod_phase_is_over(decoded.phase);
    pod->is_pending = decoded.phase == TD_POD_PENDING;
    pod->is_ready = decoded.ready == TD_CONDITION_TRUE && !decoded.is_terminating;
    pod->created = decoded.meta.created.unix_seconds;
    td_text_set(&pod->node, seen->node);
    if (pod->is_resolved) {
        return;
    }
    int code = TD_OK;
    bool is_owned = td_controller_of_pod(&decoded.meta, &owner);
    if (is_owned) {
        code =
            td_controller_top(td_informers_source(model->informers), &owner, &top, &is_found, NULL);
    }
    /* Its owner may be listed later than the pod. */
    bool is_final = is_found || !is_owned || ++pod->tries > MODEL_OWNER_TRIES;
    pod->is_resolved = code != TD_BUSY && is_final;
    model->has_unresolved = model->has_unresolved || !pod->is_resolved;
    td_text_set(&pod->top_kind, is_found && code == TD_OK ? top.kind : TD_STR("Pod"));
    td_text_set(&pod->top_name, is_found && code == TD_OK ? top.name : pod->name);
    td_text_set(&pod->top_api, is_found && code == TD_OK ? top.api_version : TD_STR("v1"));
    pod->row = NULL;
}

static void pod_free(struct td_model_pod *pod)
{
    td_text_free(pod->node);
    td_text_free(pod->top_kind);
    td_text_free(pod->top_name);
    td_text_free(pod->top_api);
    td_free(pod);
}

static struct td_model_pod *pod_add(struct td_model *model, const struct td_informer_pod *seen)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str ns = seen->object.head.namespace;
    td_str name = seen->object.head.name;
    td_str key = TD_KEY_LINES(buffer, ns, name);
    struct td_model_pod *pod = td_alloc_zero(1, sizeof(*pod) + key.len + ns.len + name.len + 3);
    char *at = (char *)(pod + 1);
    pod->key = td_text_place(&at, key);
    pod->ns = td_text_place(&at, ns);
    pod->name = td_text_place(&at, name);
    pod->oom_at = TD_TIME_NONE;
    pod->use[TD_MODEL_CPU] = pod->use_next[TD_MODEL_CPU] = -1;
    pod->use[TD_MODEL_MEMORY] = pod->use_next[TD_MODEL_MEMORY] = -1;
    if (td_map_put(&model->pods, pod->key, pod) != TD_OK) {
        td_free(pod);
        return NULL;
    }
    return pod;
}

static void pod_seen(void *context, const void *object)
{
    struct td_model *model = context;
    const struct td_informer_pod *seen = object;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, seen->object.head.namespace, seen->object.head.name);
    struct td_model_pod *pod = td_map_get(&model->pods, key);
    pod = pod ? pod : pod_add(model, seen);
    if (pod) {
        pod_read(model, pod, seen);
        model->is_changed = true;
    }
}

static void pod_changed(void *context, const void *before, const void *after)
{
    const struct td_informer_pod *was = before;
    const struct td_informer_pod *is = after;
    struct td_model *model = context;
    if (was->object.labels_hash != is->object.labels_hash) {
        model->are_links_stale = true;
    }
    pod_seen(context, after);
}

static void pod_gone(void *context, const void *object)
{
    struct td_model *model = context;
    const struct td_informer_pod *seen = object;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, seen->object.head.namespace, seen->object.head.name);
    struct td_model_pod *pod = td_map_remove(&model->pods, key);
    if (pod) {
        if (pod->row) {
            pod->row->gone_oom_count += pod->oom_count;
            pod->row->pods = NULL; /* linked anew by the next look */
        }
        pod_free(pod);
        model->is_changed = true;
    }
}

/* Pods whose owners were not known yet. */
static void pods_resolve(struct td_model *model)
{
    const struct td_cache *cache = td_informers_cache(model->informers, TD_INFORMER_PODS);
    model->has_unresolved = false;
    for (struct td_map_walk at = {.map = &model->pods}; td_map_step(&at);) {
        struct td_model_pod *pod = at.value;
        const struct td_informer_pod *seen =
            pod->is_resolved ? NULL : td_cache_get(cache, pod->ns, pod->name);
        if (seen) {
            pod_read(model, pod, seen);
        }
    }
}

static void model_settled(void *context)
{
    struct td_model *model = context;
    model->are_workloads_stale = true;
    model->is_changed = true;
}

static void workload_changed(void *context, const void *before, const void *after)
{
    (void)before;
    (void)after;
    model_settled(context);
}

static void workload_seen(void *context, const void *object)
{
    workload_changed(context, object, NULL);
}

static void node_changed(void *context, const void *before, const void *after)
{
    struct td_model *model = context;
    (void)before;
    (void)after;
    model->are_nodes_stale = true;
    model->is_changed = true;
}

static void node_seen(void *context, const void *object)
{
    node_changed(context, object, NULL);
}

/* ---- Metrics ---- */

static void metrics_pod(void *context, const struct td_container_metrics *measure)
{
    struct td_model *model = context;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    struct td_model_pod *pod =
        td_map_get(&model->pods, TD_KEY_LINES(buffer, measure->namespace, measure->pod));
    if (!pod) {
        return;
    }
    if (measure->has_cpu) {
        double so_far = pod->use_next[TD_MODEL_CPU];
        pod->use_next[TD_MODEL_CPU] = (so_far > 0 ? so_far : 0) + (double)measure->cpu_milli;
    }
    if (measure->has_memory) {
        double so_far = pod->use_next[TD_MODEL_MEMORY];
        pod->use_next[TD_MODEL_MEMORY] = (so_far > 0 ? so_far : 0) + (double)measure->memory_bytes;
    }
    if (model->measured == TD_TIME_NONE || measure->time > model->measured) {
        model->measured = measure->time;
    }
}

/* Until the next list, machine's time. While the cluster's clock is fast a small one is asked more
 * often, so that no minute of it goes by without a sample. */
static td_duration metrics_period(const struct td_model *model)
{
    const struct td_clock *clock = td_loop_clock(model->loop);
    td_duration extra = (td_duration)(model->pods.count / MODEL_METRICS_PODS) * TD_SECOND;
    td_duration period = MODEL_METRICS_EVERY + (extra < 14 * TD_SECOND ? extra : 14 * TD_SECOND);
    if (clock->kind == TD_CLOCK_ACCELERATED && extra == 0) {
        td_duration minute = (td_duration)((double)TD_MINUTE / clock->speed);
        minute = minute < MODEL_METRICS_LEAST ? MODEL_METRICS_LEAST : minute;
        period = minute < period ? minute : period;
    }
    return period;
}

static void metrics_done(void *context, int code, const struct td_error *err)
{
    struct td_model *model = context;
    model->metrics_call = NULL;
    model->metrics_error = *err;
    model->metrics_error.code = code;
    for (struct td_map_walk at = {.map = &model->pods}; td_map_step(&at);) {
        struct td_model_pod *pod = at.value;
        if (code == TD_OK) {
            memcpy(pod->use, pod->use_next, sizeof(pod->use));
        }
        pod->use_next[TD_MODEL_CPU] = -1;
        pod->use_next[TD_MODEL_MEMORY] = -1;
    }
    model->is_changed = true;
    if (model->events && !model->are_events_read && td_informers_is_synced(model->informers)) {
        model->are_events_read = true;
        td_model_look(model); /* so that what was told before finds its rows */
        td_cache_start(model->events);
    }
    td_timer_set_machine(model->metrics_timer, metrics_period(model));
}

static void metrics_ask(struct td_timer *timer, void *context)
{
    static const struct td_metrics_handler handler = {.pod = metrics_pod, .done = metrics_done};
    struct td_model *model = context;
    (void)timer;
    model->metrics_call =
        td_metrics_get_pods(model->metrics_client, model->namespace, TD_STR_EMPTY, &handler, model);
}

/* ---- Over time ---- */

static void minute_over(struct td_timer *timer, void *context)
{
    struct td_model *model = context;
    td_time now = td_model_now(model);
    model->is_changed = true;
    td_model_look(model);
    model_rows_sample(model, now / TD_MINUTE);
    td_timer_set(timer, TD_MINUTE - now % TD_MINUTE);
}

void td_model_look(struct td_model *model)
{
    if (!model->is_changed && !model->has_unresolved) {
        return;
    }
    model->is_changed = false;
    if (model->has_unresolved) {
        pods_resolve(model);
    }
    model_rows_look(model);
    if (model->overlay) {
        model->overlay(model->overlay_context);
    }
    model->version++;
}

/* ---- Events of a cluster that is not ours ---- */

struct seen_event {
    struct td_cache_head head;
    td_str reason;
    td_str message;
    td_str notes; /* annotations, JSON */
    td_str kind;
    td_str ns;
    td_str name;
    td_time last;
    td_time first;
    td_time at;
    int64_t count;
};

static void event_seen(void *context, const void *object)
{
    struct td_model *model = context;
    const struct seen_event *event = object;
    td_time at = event->last != TD_CACHE_TIME_NONE ? event->last
                 : event->at != TD_CACHE_TIME_NONE ? event->at
                                                   : event->first;
    td_auto_arena arena = td_arena_capped(MODEL_POD_ARENA_BYTES_MAX);
    struct td_json *notes = NULL;
    if (at == TD_CACHE_TIME_NONE) {
        at = td_model_now(model);
    }
    if (event->notes.len > 0 && td_json_parse(&arena, event->notes, NULL, &notes, NULL) != TD_OK) {
        notes = NULL;
    }
    const struct td_model_happening what = {
        .at = at,
        .reason = event->reason,
        .kind = event->kind,
        .ns = event->ns,
        .name = event->name,
        .message = event->message,
        .decision = td_json_get_str(notes, TD_STR(TD_EVENT_DECISION), TD_STR_EMPTY)};
    td_model_tell(model, &what);
}

static void event_changed(void *context, const void *before, const void *after)
{
    const struct seen_event *was = before;
    const struct seen_event *is = after;
    if (was->count != is->count || was->last != is->last) {
        event_seen(context, after);
    }
}

static int events_watch(struct td_model *model, struct td_error *err)
{
    static const struct td_cache_field fields[] = {
        {"reason", TD_CACHE_TEXT, offsetof(struct seen_event, reason)},
        {"message", TD_CACHE_TEXT, offsetof(struct seen_event, message)},
        {"metadata.annotations", TD_CACHE_RAW, offsetof(struct seen_event, notes)},
        {"involvedObject.kind", TD_CACHE_TEXT, offsetof(struct seen_event, kind)},
        {"involvedObject.namespace", TD_CACHE_TEXT, offsetof(struct seen_event, ns)},
        {"involvedObject.name", TD_CACHE_TEXT, offsetof(struct seen_event, name)},
        {"lastTimestamp", TD_CACHE_TIME, offsetof(struct seen_event, last)},
        {"firstTimestamp", TD_CACHE_TIME, offsetof(struct seen_event, first)},
        {"eventTime", TD_CACHE_TIME, offsetof(struct seen_event, at)},
        {"count", TD_CACHE_INT64, offsetof(struct seen_event, count)},
    };
    static const struct td_cache_handler handler = {.added = event_seen, .changed = event_changed};
    const struct td_cache_options options = {.loop = model->loop,
                                             .client = model->client,
                                             .flow = model->flow,
                                             .version = TD_STR("v1"),
                                             .plural = TD_STR("events"),
                                             .namespace = model->namespace,
                                             .fields = fields,
                                             .field_count = TD_COUNT(fields),
                                             .struct_bytes = sizeof(struct seen_event)};
    int code = td_cache_new(&options, &model->events, err);
    if (code == TD_OK) {
        td_cache_subscribe(model->events, &handler, model);
    }
    return code;
}

/* ---- The whole ---- */

static int model_watch(struct td_model *model, const struct td_model_options *options,
                       struct td_error *err)
{
    static const struct td_cache_handler pods = {
        .added = pod_seen, .changed = pod_changed, .deleted = pod_gone};
    static const struct td_cache_handler workloads = {
        .added = workload_seen, .changed = workload_changed, .deleted = workload_seen};
    static const struct td_cache_handler nodes = {
        .added = node_seen, .changed = node_changed, .deleted = node_seen};
    struct td_informers_options informers = {
        .loop = model->loop, .client = model->client, .namespace = model->namespace};
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        informers.wants[kind] = kind != TD_INFORMER_LIMIT_RANGES;
    }
    int code = td_informers_new(&informers, &model->informers, err);
    if (code != TD_OK) {
        return code;
    }
    model_scalers_subscribe(model);
    td_informers_subscribe(model->informers, TD_INFORMER_PODS, &pods, model);
    td_informers_subscribe(model->informers, TD_INFORMER_NODES, &nodes, model);
    td_informers_subscribe(model->informers, TD_INFORMER_DEPLOYMENTS, &workloads, model);
    td_informers_subscribe(model->informers, TD_INFORMER_STATEFUL_SETS, &workloads, model);
    td_informers_subscribe(model->informers, TD_INFORMER_DAEMON_SETS, &workloads, model);
    td_informers_subscribe(model->informers, TD_INFORMER_CRON_JOBS, &workloads, model);
    td_informers_on_settled(model->informers, model_settled, model);
    code = options->watches_events ? events_watch(model, err) : TD_OK;
    td_informers_start(model->informers);
    return code;
}

int td_model_new(const struct td_model_options *options, struct td_model **ret,
                 struct td_error *err)
{
    struct td_model *model = td_alloc_zero(1, sizeof(*model));
    const struct td_client_options client = {.loop = options->loop,
                                             .transport = options->transport};
    model->loop = options->loop;
    model->namespace = td_text_copy(options->namespace);
    model->selector_gate = options->selector_gate;
    model->client = td_client_new(&client);
    model->flow = td_client_flow_new(model->client, TD_STR("page"));
    model->metrics_client =
        td_metrics_client_new(model->loop, model->client, model->flow, TD_MINUTE);
    model->metrics_timer = td_timer_new(model->loop, metrics_ask, model);
    model->minute_timer = td_timer_new(model->loop, minute_over, model);
    model->points = td_alloc_zero(TD_RING_MINUTES, sizeof(model->points[0]));
    model->marks.count_max = TD_MODEL_MARKS_MAX;
    model->accounts.count_max = TD_MODEL_ACCOUNTS_MAX;
    model->measured = TD_TIME_NONE;
    model->started = td_model_now(model);
    model->is_changed = true;
    td_map_init(&model->pods, TD_CACHE_OBJECTS_MAX);
    td_map_init(&model->rows, TD_MODEL_ROWS_MAX);
    td_rings_init(&model->rings);
    int code = model_watch(model, options, err);
    if (code != TD_OK) {
        td_model_free(model);
        return code;
    }
    td_timer_set_machine(model->metrics_timer, 0);
    td_timer_set(model->minute_timer, TD_MINUTE - model->started % TD_MINUTE);
    *ret = model;
    return TD_OK;
}

void td_model_free(struct td_model *model)
{
    if (!model) {
        return;
    }
    if (model->metrics_call) {
        td_metrics_cancel(model->metrics_call);
    }
    td_timer_free(model->metrics_timer);
    td_timer_free(model->minute_timer);
    td_metrics_client_free(model->metrics_client);
    td_cache_free(model->events);
    td_informers_free(model->informers);
    td_client_free(model->client);
    for (struct td_map_walk at = {.map = &model->pods}; td_map_step(&at);) {
        pod_free(at.value);
    }
    td_map_done(&model->pods);
    model_scalers_done(model);
    model_rows_done(model);
    model_marks_done(model);
    td_free(model->points);
    td_text_free(model->namespace);
    td_free(model);
}
