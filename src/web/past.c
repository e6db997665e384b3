/*
 * The day before the page began, from a Prometheus: what pods used (cAdvisor) and asked for
 * (kube-state-metrics, where it has it), a point for each five minutes, put in front of the rings.
 * Which one: that of the options, or the one that the flags of the controllers in the cluster name.
 * Pods that are gone belong to the workload that their name begins with; of a workload that several
 * autoscalers share by selectors only pods that are there are known to be whose. Once, when the
 * model is there; a failure is shown on the page, which begins with its start then. What was wished
 * and decided in that time no Prometheus knows.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "control/prometheus/history.h"
#include "kube/client/client.h"
#include "kube/client/transport.h"
#include "web/web_private.h"

#define PAST_STEP (5 * TD_MINUTE)
#define PAST_DAY (TD_RING_MINUTES * TD_MINUTE)
#define PAST_QUERY_TIMEOUT (2 * TD_MINUTE)
#define PAST_LOOK_AGAIN TD_SECOND
#define PAST_PODS "/api/v1/pods?limit=20&labelSelector="
#define PAST_FLAG "--prometheus-address="

/* Of a workload at a step; below 0: not known. */
enum past_field {
    PAST_CPU_P50,
    PAST_MEMORY_P50,
    PAST_CPU_MAX,
    PAST_MEMORY_MAX,
    PAST_CPU_REQUEST,
    PAST_MEMORY_REQUEST,
    PAST_PODS_SEEN,
    PAST_FIELDS,
};

struct past_pod {
    struct past_row *row;
    struct past_pod *next;          /* of the row */
    double sum[TD_MODEL_RESOURCES]; /* of its containers in the step; below 0: nothing yet */
};

struct past_row {
    td_str key; /* of the model's row; empty: of pods without a row */
    struct past_pod *pods;
    struct past_row *next;
    float (*steps)[PAST_FIELDS];
};

struct web_past {
    struct td_web *web;
    struct td_arena arena;
    struct td_prometheus_options options;
    bool is_found; /* the address, in flags */
    size_t selector;
    struct td_client_call *call;
    struct td_timer *timer;
    struct td_prometheus *prometheus;
    struct td_history *history;
    bool is_of_requests; /* the second reading */
    struct td_map pods;  /* by namespace and name */
    struct td_map rows;  /* by key */
    struct td_map whole; /* rows of one workload, by namespace, kind and name */
    struct past_row *first;
    struct past_row unowned;
    double *scratch; /* as many as pods */
    size_t scratch_count;
    struct td_model_point *points; /* of the whole cluster, as many as steps */
    td_time start;
    td_duration step;
    size_t steps;
    size_t at; /* the step that is being summed up */
};

static void past_end(struct web_past *past, const char *message)
{
    if (message) {
        past->web->history_problem = td_arena_format(
            &past->arena,
            "no history: %s%s; next: --prometheus-address with one that this machine reaches",
            message, past->is_found ? " (named by the flags of the controllers)" : "");
        past->web->model->is_changed = true;
    }
    td_timer_stop(past->timer);
}

/* ---- Whose pod ---- */

static struct past_row *past_row_add(struct web_past *past, const struct td_model_row *row)
{
    struct past_row *mine = td_map_get(&past->rows, row->key);
    if (!mine) {
        mine = td_arena_alloc(&past->arena, sizeof(*mine));
        *mine = (struct past_row){.key = td_arena_copy_str(&past->arena, row->key),
                                  .next = past->first};
        past->first = mine;
        (void)td_map_put(&past->rows, mine->key, mine); /* as many as the model's */
    }
    return mine;
}

/* By what a controller appends to the name of its workload. */
static struct past_row *past_by_name(const struct web_past *past, td_str ns, td_str pod)
{
    static const struct {
        td_str kind;
        int parts;
    } kinds[] = {{TD_STR_INIT("Deployment"), 2}, {TD_STR_INIT("StatefulSet"), 1},
                 {TD_STR_INIT("DaemonSet"), 1},  {TD_STR_INIT("CronJob"), 2},
                 {TD_STR_INIT("ReplicaSet"), 1}, {TD_STR_INIT("Job"), 1}};
    for (size_t i = 0; i < TD_COUNT(kinds); i++) {
        char buffer[TD_OBJECT_KEY_BYTES_MAX];
        td_str name = pod;
        for (int part = 0; part < kinds[i].parts; part++) {
            while (name.len > 0 && name.ptr[--name.len] != '-') {
            }
        }
        struct past_row *row =
            name.len > 0 ? td_map_get(&past->whole, TD_KEY_LINES(buffer, ns, kinds[i].kind, name))
                         : NULL;
        if (row) {
            return row;
        }
    }
    return NULL;
}

static void *past_container(void *context, td_str ns, td_str name, td_str container)
{
    struct web_past *past = context;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, ns, name);
    struct past_pod *pod = td_map_get(&past->pods, key);
    const struct td_model_pod *living = td_map_get(&past->web->model->pods, key);
    (void)container;
    if (pod || key.len == 0) {
        return pod;
    }
    pod = td_arena_alloc(&past->arena, sizeof(*pod));
    *pod = (struct past_pod){.row = living && living->row ? past_row_add(past, living->row)
                                                          : past_by_name(past, ns, name),
                             .sum = {-1, -1}};
    pod->row = pod->row ? pod->row : &past->unowned;
    pod->next = pod->row->pods;
    pod->row->pods = pod;
    if (td_map_put(&past->pods, td_arena_copy_str(&past->arena, key), pod) != TD_OK) {
        pod->row->pods = pod->next;
        return NULL;
    }
    return pod;
}

/* ---- Steps ---- */

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static void past_row_steps(const struct web_past *past, struct past_row *row)
{
    if (row->steps) {
        return;
    }
    row->steps = td_alloc_zero(past->steps, sizeof(row->steps[0]));
    for (size_t i = 0; i < past->steps; i++) {
        for (size_t field = 0; field < PAST_FIELDS; field++) {
            row->steps[i][field] = -1;
        }
    }
}

/* What the pods of a row had in the step; they are empty again then. */
static void past_row_close(struct web_past *past, struct past_row *row, size_t resource)
{
    struct td_model_point *point = &past->points[past->at];
    size_t count = 0;
    double sum = 0;
    for (struct past_pod *pod = row->pods; pod; pod = pod->next) {
        if (pod->sum[resource] >= 0) {
            past->scratch[count++] = pod->sum[resource];
            sum += pod->sum[resource];
        }
        pod->sum[resource] = -1;
    }
    if (count == 0) {
        return;
    }
    double *all = past->is_of_requests ? &point->request[resource] : &point->use[resource];
    *all = (*all > 0 ? *all : 0) + sum;
    past_row_steps(past, row);
    float *fields = row->steps[past->at];
    if (past->is_of_requests) {
        fields[PAST_CPU_REQUEST + resource] = (float)(sum / (double)count);
        return;
    }
    qsort(past->scratch, count, sizeof(past->scratch[0]), compare_doubles);
    fields[PAST_CPU_P50 + resource] = (float)past->scratch[(count - 1) / 2];
    fields[PAST_CPU_MAX + resource] = (float)past->scratch[count - 1];
    if (fields[PAST_PODS_SEEN] < (float)count) {
        fields[PAST_PODS_SEEN] = (float)count;
    }
}

static void past_close_step(struct web_past *past)
{
    if (past->scratch_count < past->pods.count) {
        past->scratch_count = past->pods.count * 2;
        past->scratch = td_realloc(past->scratch, past->scratch_count * sizeof(past->scratch[0]));
    }
    for (size_t resource = 0; resource < TD_MODEL_RESOURCES; resource++) {
        for (struct past_row *row = past->first; row; row = row->next) {
            past_row_close(past, row, resource);
        }
        past_row_close(past, &past->unowned, resource);
    }
}

static void past_sample(void *context, void *container, enum td_learn_resource resource,
                        td_time time, int64_t amount)
{
    struct web_past *past = context;
    struct past_pod *pod = container;
    size_t step = (size_t)((time - past->start) / past->step);
    size_t which = resource == TD_LEARN_CPU ? TD_MODEL_CPU : TD_MODEL_MEMORY;
    if (step != past->at) {
        past_close_step(past);
        past->at = step < past->steps ? step : past->steps - 1;
    }
    pod->sum[which] = (pod->sum[which] > 0 ? pod->sum[which] : 0) + (double)amount;
}

/* ---- Into the model ---- */

static void past_row_give(const struct web_past *past, const struct past_row *row,
                          struct td_ring_past *points)
{
    struct td_model *model = past->web->model;
    struct td_model_row *to = td_map_get(&model->rows, row->key);
    if (!row->steps || !to) {
        return;
    }
    for (size_t i = 0; i < past->steps; i++) {
        const float *from = row->steps[i];
        double *samples = points[i].samples;
        double *settings = points[i].settings;
        points[i].minute = (past->start + (td_duration)i * past->step) / TD_MINUTE;
        for (size_t s = 0; s < TD_SAMPLE_COUNT; s++) {
            samples[s] = -1;
        }
        for (size_t s = 0; s < TD_SETTING_COUNT; s++) {
            settings[s] = -1;
        }
        samples[TD_SAMPLE_CPU_P50] = from[PAST_CPU_P50];
        samples[TD_SAMPLE_CPU_MAX] = from[PAST_CPU_MAX];
        samples[TD_SAMPLE_MEMORY_P50] = from[PAST_MEMORY_P50];
        samples[TD_SAMPLE_MEMORY_MAX] = from[PAST_MEMORY_MAX];
        samples[TD_SAMPLE_REPLICAS] = from[PAST_PODS_SEEN];
        settings[TD_SETTING_CPU_REQUEST] = from[PAST_CPU_REQUEST];
        settings[TD_SETTING_MEMORY_REQUEST] = from[PAST_MEMORY_REQUEST];
    }
    to->ring = to->ring ? to->ring : td_rings_add(&model->rings);
    td_rings_put_before(&model->rings, to->ring, points, past->steps);
}

static void past_give(struct web_past *past)
{
    struct td_ring_past *points = td_alloc_zero(past->steps, sizeof(*points));
    for (const struct past_row *row = past->first; row; row = row->next) {
        past_row_give(past, row, points);
    }
    td_free(points);
    model_points_put_before(past->web->model, past->points, past->steps);
    past->web->model->is_changed = true;
}

/* ---- Readings ---- */

static void past_read(struct web_past *past);

static void past_history_done(void *context, int code, const struct td_error *err)
{
    struct web_past *past = context;
    past_close_step(past);
    bool is_empty = td_history_counts(past->history).samples == 0;
    td_history_free(past->history);
    past->history = NULL;
    if (!past->is_of_requests && (code != TD_OK || is_empty)) {
        past_end(past, code != TD_OK ? err->message : "Prometheus has no series of containers");
    } else if (!past->is_of_requests) {
        past->is_of_requests = true;
        past->at = 0;
        past_read(past);
    } else { /* without requests there is still the use */
        past_give(past);
        past_end(past, NULL);
    }
}

static td_str past_query(struct web_past *past, size_t resource)
{
    static const char *const uses[] = {
        "rate(container_cpu_usage_seconds_total{%.*s}[5m])",
        "max_over_time(container_memory_working_set_bytes{%.*s}[5m])"};
    static const char *const requests[] = {
        "kube_pod_container_resource_requests{resource=\"cpu\",%.*s}",
        "kube_pod_container_resource_requests{resource=\"memory\",%.*s}"};
    td_auto_buf where = td_buf_capped(TD_PROMETHEUS_QUERY_BYTES_MAX);
    (void)td_buf_append(&where, TD_STR("container!=\"\",container!=\"POD\",pod!=\"\""));
    if (past->web->options.namespace.len > 0) {
        (void)td_buf_append(&where, TD_STR(",namespace="));
        td_prometheus_quote(past->web->options.namespace, &where);
    }
    td_auto_buf inner = td_buf_capped(TD_PROMETHEUS_QUERY_BYTES_MAX);
    const char *format = past->is_of_requests ? requests[resource] : uses[resource];
    const char *hole = strstr(format, "%.*s");
    (void)td_buf_append(&inner, (td_str){.ptr = format, .len = (size_t)(hole - format)});
    (void)td_buf_append(&inner, td_buf_str(&where));
    (void)td_buf_append(&inner, td_str_from(hole + strlen("%.*s")));
    return td_arena_format(&past->arena, "max by (namespace, pod, container) (%.*s)",
                           TD_STR_ARG(td_buf_str(&inner)));
}

static void past_read(struct web_past *past)
{
    static const struct td_history_handler handler = {
        .container = past_container, .sample = past_sample, .done = past_history_done};
    const struct td_history_options options = {
        .loop = past->web->options.loop,
        .prometheus = past->prometheus,
        .cpu_query = past_query(past, TD_MODEL_CPU),
        .memory_query = past_query(past, TD_MODEL_MEMORY),
        .namespace_label = TD_STR("namespace"),
        .pod_label = TD_STR("pod"),
        .container_label = TD_STR("container"),
        .start = past->start,
        .end = past->start + (td_duration)(past->steps - 1) * past->step,
        .step = past->step,
        .query_timeout = PAST_QUERY_TIMEOUT,
    };
    past->history = td_history_start(&options, &handler, past);
}

static void past_begin(struct web_past *past)
{
    struct td_model *model = past->web->model;
    struct td_error err = TD_ERROR_INIT;
    td_duration point = model->rings.minutes_per_point * TD_MINUTE;
    past->step = point > PAST_STEP ? point : PAST_STEP;
    past->steps = (size_t)(PAST_DAY / past->step);
    past->start = (model->started / past->step - (td_time)past->steps) * past->step;
    past->points = td_alloc_zero(past->steps, sizeof(*past->points));
    for (size_t i = 0; i < past->steps; i++) {
        struct td_model_point *each = &past->points[i];
        each->minute = (past->start + (td_duration)i * past->step) / TD_MINUTE;
        for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
            each->use[r] = each->request[r] = each->room[r] = -1;
        }
    }
    for (struct td_map_walk at = {.map = &model->rows}; td_map_step(&at);) {
        const struct td_model_row *row = at.value;
        char buffer[TD_OBJECT_KEY_BYTES_MAX];
        td_str key = TD_KEY_LINES(buffer, row->ns, row->kind, row->name);
        if (!row->is_part && key.len > 0) {
            (void)td_map_put(&past->whole, td_arena_copy_str(&past->arena, key),
                             past_row_add(past, row)); /* as many as rows */
        }
    }
    if (td_prometheus_new(past->web->options.loop, &past->options, NULL, &past->prometheus, &err) !=
        TD_OK) {
        past_end(past, err.message);
        return;
    }
    past->options.transport = NULL; /* taken */
    past_read(past);
}

/* ---- Where ---- */

static td_str past_flag_of(const struct td_json *list)
{
    for (const struct td_json *word = td_json_first_item(list); word; word = word->next) {
        if (td_json_is(word, TD_JSON_TYPE_STRING) &&
            td_str_starts_with(word->text, TD_STR(PAST_FLAG))) {
            return td_str_slice(word->text, strlen(PAST_FLAG), word->text.len);
        }
    }
    return TD_STR_EMPTY;
}

static td_str past_address_of(const struct td_json *pods)
{
    for (const struct td_json *pod = td_json_first_item(td_json_member(pods, "items")); pod;
         pod = pod->next) {
        const struct td_json *list = td_json_get_path(pod, "spec.containers");
        for (const struct td_json *c = td_json_first_item(list); c; c = c->next) {
            td_str address = past_flag_of(td_json_member(c, "args"));
            address = address.len > 0 ? address : past_flag_of(td_json_member(c, "command"));
            if (address.len > 0) {
                return address;
            }
        }
    }
    return TD_STR_EMPTY;
}

/* Who may not list pods of all namespaces is not told where it is. */
static void past_found(void *context, const struct td_client_reply *reply)
{
    struct web_past *past = context;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *pods = NULL;
    past->call = NULL;
    if (reply->code == TD_OK && td_json_parse(&arena, reply->body, NULL, &pods, NULL) == TD_OK) {
        past->options.address = td_arena_copy_str(&past->arena, past_address_of(pods));
        past->is_found = past->options.address.len > 0;
    }
    past->selector++;
    td_timer_set_machine(past->timer, 0);
}

static void past_look(struct td_timer *timer, void *context)
{
    static const char *const selectors[] = {PAST_PODS "app.kubernetes.io%2Fname%3Dtandem",
                                            PAST_PODS "app%3Dvpa-recommender"};
    struct web_past *past = context;
    struct td_model *model = past->web->model;
    td_model_look(model);
    if (!td_informers_is_synced(model->informers) || model->has_unresolved) {
        td_timer_set_machine(timer, PAST_LOOK_AGAIN);
    } else if (past->options.address.len > 0) {
        past_begin(past);
    } else if (past->selector < TD_COUNT(selectors)) {
        const struct td_client_request request = {.flow = model->flow,
                                                  .method = TD_STR("GET"),
                                                  .path = td_str_from(selectors[past->selector])};
        past->call = td_client_send(model->client, &request, past_found, past);
    }
}

void web_past_new(struct td_web *web, const struct td_prometheus_options *options)
{
    struct web_past *past = td_alloc_zero(1, sizeof(*past));
    past->web = web;
    td_arena_init(&past->arena, WEB_ARENA_BYTES_MAX);
    past->options = (struct td_prometheus_options){
        .address = td_arena_copy_str(&past->arena, options->address),
        .is_insecure = options->is_insecure,
        .username = td_arena_copy_str(&past->arena, options->username),
        .password = td_arena_copy_str(&past->arena, options->password),
        .bearer_token = td_arena_copy_str(&past->arena, options->bearer_token),
        .transport = options->transport,
    };
    td_map_init(&past->pods, TD_CACHE_OBJECTS_MAX);
    td_map_init(&past->rows, TD_MODEL_ROWS_MAX);
    td_map_init(&past->whole, TD_MODEL_ROWS_MAX);
    past->timer = td_timer_new(web->options.loop, past_look, past);
    td_timer_set_machine(past->timer, 0);
    web->past = past;
}

void web_past_free(struct web_past *past)
{
    if (!past) {
        return;
    }
    if (past->call) {
        td_client_cancel(past->call);
    }
    td_history_free(past->history);
    td_prometheus_free(past->prometheus);
    if (past->options.transport) {
        past->options.transport->ops->free(past->options.transport);
    }
    td_timer_free(past->timer);
    for (struct past_row *row = past->first; row; row = row->next) {
        td_free(row->steps);
    }
    td_free(past->unowned.steps);
    td_free(past->scratch);
    td_free(past->points);
    td_map_done(&past->pods);
    td_map_done(&past->rows);
    td_map_done(&past->whole);
    td_arena_done(&past->arena);
    td_free(past);
}
