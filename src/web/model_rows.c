/*
 * Rows: every workload, and of one whose pods several VPAs share by their selectors, each part. A
 * look links pods to rows and sums them up; once a minute a point of each is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "kube/objectkey.h"
#include "kube/quantity/quantity.h"
#include "kube/selector/labels.h"
#include "model/pod.h"
#include "web/model.h"

#define ROWS_GONE_AFTER (24 * TD_HOUR) /* a workload that is gone is remembered as long */
#define ROWS_POD_ARENA_BYTES_MAX ((size_t)8 << 20)

static const char *const scaler_words[] = {"hvpa", "hpa", "vpa"};

/* ---- Which row ---- */

struct td_model_row *td_model_find(const struct td_model *model, td_str ns, td_str kind,
                                   td_str name, td_str by)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&model->rows, TD_KEY_LINES(buffer, ns, kind, name, by));
}

static struct td_model_row *row_get(struct td_model *model, td_str ns, td_str kind, td_str name,
                                    td_str by)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, ns, kind, name, by);
    struct td_model_row *row = td_map_get(&model->rows, key);
    if (row) {
        return row;
    }
    row = td_alloc_zero(1, sizeof(*row) + key.len + ns.len + kind.len + name.len + by.len + 5);
    char *at = (char *)(row + 1);
    row->key = td_text_place(&at, key);
    row->ns = td_text_place(&at, ns);
    row->kind = td_text_place(&at, kind);
    row->name = td_text_place(&at, name);
    row->by = td_text_place(&at, by);
    row->decided_at = TD_TIME_NONE;
    row->wished = -1;
    row->throttled = -1;
    row->latency = -1;
    if (td_map_put(&model->rows, row->key, row) != TD_OK) {
        td_free(row);
        return NULL;
    }
    model->are_scalers_stale = true;
    return row;
}

static bool pod_labels(struct td_model *model, struct td_arena *arena,
                       const struct td_model_pod *pod, struct td_labels *ret)
{
    const struct td_informer_object *seen =
        td_cache_get(td_informers_cache(model->informers, TD_INFORMER_PODS), pod->ns, pod->name);
    struct td_json *tree;
    if (!seen || td_informers_tree(arena, seen, &tree, NULL) != TD_OK) {
        return false;
    }
    *ret = td_labels_from_json(arena, td_json_get_path(tree, "metadata.labels"));
    return true;
}

static bool scaler_has(struct td_model *model, const struct td_model_scaler *scaler,
                       const struct td_model_pod *pod)
{
    td_auto_arena arena = td_arena_capped(ROWS_POD_ARENA_BYTES_MAX);
    struct td_labels labels;
    if (!scaler->has_selector || !model->selector_gate) {
        return true;
    }
    return pod && pod_labels(model, &arena, pod, &labels) &&
           td_selector_matches(&scaler->selector, &labels);
}

/* The first autoscaler of the workload that has the pod. */
static struct td_model_row *row_of(struct td_model *model, td_str ns, td_str kind, td_str name,
                                   const struct td_model_pod *pod)
{
    td_auto_buf by = td_buf_capped(TD_OBJECT_KEY_BYTES_MAX);
    const struct td_model_scaler *scaler = model_scalers_of(model, ns, kind, name);
    bool is_shared = false;
    for (const struct td_model_scaler *s = scaler; s; s = s->next) {
        is_shared = is_shared || (s->has_selector && model->selector_gate);
    }
    while (scaler && !scaler_has(model, scaler, pod)) {
        scaler = scaler->next;
    }
    if (scaler) {
        (void)td_buf_append_format(&by, "%s/%.*s", scaler_words[scaler->kind],
                                   TD_STR_ARG(scaler->name));
    }
    if (!scaler && is_shared && !pod) {
        return NULL; /* its parts are the rows of its pods */
    }
    struct td_model_row *row = row_get(model, ns, kind, name, td_buf_str(&by));
    if (row) {
        row->is_part = is_shared;
    }
    return row;
}

/* ---- Autoscalers of a row ---- */

static void row_add_targets(struct td_model_row *row, const struct td_model_scaler *scaler)
{
    for (size_t i = 0; i < scaler->container_count; i++) {
        const struct td_model_container *c = &scaler->containers[i];
        bool is_pod = c->name.len == 0;
        for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
            double *sums[] = {&row->target[r], &row->lower[r], &row->upper[r]};
            const double values[] = {c->target[r], c->lower[r], c->upper[r]};
            for (size_t v = 0; v < TD_COUNT(sums); v++) {
                if (values[v] >= 0) {
                    *sums[v] = (*sums[v] > 0 && !is_pod ? *sums[v] : 0) + values[v];
                }
            }
        }
    }
}

static void row_find_scalers(struct td_model *model, struct td_model_row *row)
{
    memset(row->scalers, 0, sizeof(row->scalers));
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        row->target[r] = row->lower[r] = row->upper[r] = -1;
    }
    for (const struct td_model_scaler *s = model_scalers_of(model, row->ns, row->kind, row->name);
         s; s = s->next) {
        if (!row->scalers[s->kind] && scaler_has(model, s, row->pods)) {
            row->scalers[s->kind] = s;
        }
    }
    const struct td_model_scaler *sizes =
        row->scalers[TD_MODEL_HVPA] ? row->scalers[TD_MODEL_HVPA] : row->scalers[TD_MODEL_VPA];
    if (sizes) {
        row_add_targets(row, sizes);
    }
}

/* ---- A look ---- */

static void row_clear(struct td_model_row *row)
{
    row->pods = NULL;
    row->pod_count = 0;
    row->ready_count = 0;
    row->pending_count = 0;
    row->measured_count = 0;
    row->replicas = row->is_part ? -1 : row->wished;
    row->is_there = row->has_object;
    row->is_pod_level = false;
    row->oom_count = row->gone_oom_count;
    memset(row->request, 0, sizeof(row->request));
    memset(row->limit, 0, sizeof(row->limit));
    memset(row->use, 0, sizeof(row->use));
}

/* No Event tells of a container out of memory. */
static void row_tell_ooms(struct td_model *model, struct td_model_pod *pod)
{
    const struct td_model_happening what = {.at = pod->oom_at,
                                            .reason = TD_STR("OOMKilled"),
                                            .kind = TD_STR("Pod"),
                                            .ns = pod->ns,
                                            .name = pod->name,
                                            .message = TD_STR("more memory than its limit"),
                                            .decision = TD_STR_EMPTY};
    if (model->events && pod->oom_told < pod->oom_count) {
        pod->oom_told = pod->oom_count;
        td_model_tell(model, &what);
    }
}

/* What it asks for and does not use, and whether it uses more. */
static void judge_pod(struct td_model_hour *judged, const struct td_model_pod *pod)
{
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        if (pod->use[r] < 0 || pod->request[r] <= 0) {
            continue;
        }
        judged->asked[r] += pod->request[r];
        judged->slack[r] += pod->request[r] > pod->use[r] ? pod->request[r] - pod->use[r] : 0;
        judged->pods[r] += 1;
        judged->over[r] += pod->use[r] > pod->request[r];
    }
}

static void row_add_pod(struct td_model *model, struct td_model_row *row, struct td_model_pod *pod)
{
    row->oom_count += pod->oom_count;
    row_tell_ooms(model, pod);
    td_text_set(&row->api, pod->top_api);
    if (pod->is_over) {
        return;
    }
    pod->next = row->pods;
    row->pods = pod;
    row->is_there = true;
    row->pod_count++;
    row->ready_count += pod->is_ready;
    row->pending_count += pod->is_pending;
    row->is_pod_level = row->is_pod_level || pod->is_pod_level;
    row->measured_count += pod->use[TD_MODEL_CPU] >= 0;
    model->totals.pods++;
    model->totals.pending += pod->is_pending;
    judge_pod(&model->totals.judged, pod);
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        double use = pod->use[r] > 0 ? pod->use[r] : 0;
        row->request[r] += pod->request[r];
        row->limit[r] += pod->limit[r];
        row->use[r] += use;
        model->totals.request[r] += pod->request[r];
        model->totals.use[r] += use;
    }
}

static void look_pods(struct td_model *model)
{
    for (struct td_map_walk at = {.map = &model->pods}; td_map_step(&at);) {
        struct td_model_pod *pod = at.value;
        if (!pod->is_resolved) {
            continue;
        }
        if (!pod->row || model->are_links_stale) {
            pod->row = row_of(model, pod->ns, pod->top_kind, pod->top_name, pod);
        }
        if (pod->row) {
            row_add_pod(model, pod->row, pod);
        }
    }
}

static void look_wish(struct td_model *model, struct td_model_row *row, int64_t wished)
{
    struct td_model_hour *hour = td_model_hour(model, td_model_now(model));
    if (hour && row->wished >= 0 && row->wished != wished) {
        hour->happened[TD_HAPPENED_SCALING]++;
    }
    row->wished = wished;
    row->replicas = row->is_part ? -1 : wished;
}

/* Workloads whose objects are there, with or without pods. */
static void look_workloads(struct td_model *model)
{
    static const struct {
        enum td_informer_kind informer;
        td_str kind;
        td_str api;
    } kinds[] = {
        {TD_INFORMER_DEPLOYMENTS, TD_STR_INIT("Deployment"), TD_STR_INIT("apps/v1")},
        {TD_INFORMER_STATEFUL_SETS, TD_STR_INIT("StatefulSet"), TD_STR_INIT("apps/v1")},
        {TD_INFORMER_DAEMON_SETS, TD_STR_INIT("DaemonSet"), TD_STR_INIT("apps/v1")},
        {TD_INFORMER_CRON_JOBS, TD_STR_INIT("CronJob"), TD_STR_INIT("batch/v1")},
    };
    const struct td_workload_source *source = td_informers_source(model->informers);
    for (struct td_map_walk at = {.map = &model->rows}; td_map_step(&at);) {
        ((struct td_model_row *)at.value)->has_object = false;
    }
    for (size_t k = 0; k < TD_COUNT(kinds); k++) {
        const struct td_cache *cache = td_informers_cache(model->informers, kinds[k].informer);
        size_t position = 0;
        for (const struct td_informer_object *object;
             cache && (object = td_cache_next(cache, &position));) {
            struct td_model_row *row =
                row_of(model, object->head.namespace, kinds[k].kind, object->head.name, NULL);
            if (!row) {
                continue;
            }
            row->is_there = true;
            row->has_object = true;
            td_text_set(&row->api, kinds[k].api);
            uint64_t version = td_map_hash(object->head.version);
            if (row->object_version == version) {
                continue;
            }
            const struct td_workload *workload = source->get_workload(
                source->context, kinds[k].kind, object->head.namespace, object->head.name);
            row->object_version = version;
            if (workload && workload->has_replicas) {
                look_wish(model, row, workload->replicas);
            }
        }
    }
}

static double node_amount(const struct td_json *allocatable, const char *name)
{
    td_auto_arena arena = td_arena_capped(ROWS_POD_ARENA_BYTES_MAX);
    struct td_quantity quantity;
    const struct td_json *node = td_json_member(allocatable, name);
    if (!node || td_quantity_from_json(&arena, node, &quantity, NULL) != TD_OK) {
        return 0;
    }
    return strcmp(name, "cpu") == 0 ? (double)td_quantity_milli(&quantity)
                                    : (double)td_quantity_value(&quantity);
}

static bool node_is_ready(const struct td_json *tree)
{
    const struct td_json *list = td_json_get_path(tree, "status.conditions");
    for (const struct td_json *c = td_json_first_item(list); c; c = c->next) {
        if (td_str_equal(td_json_text(c, "type"), TD_STR("Ready"))) {
            return td_str_equal(td_json_text(c, "status"), TD_STR("True"));
        }
    }
    return false;
}

static void look_nodes(struct td_model *model)
{
    const struct td_cache *cache = td_informers_cache(model->informers, TD_INFORMER_NODES);
    size_t position = 0;
    model->room = (struct td_model_room){.nodes = 0};
    for (const struct td_informer_object *object;
         cache && (object = td_cache_next(cache, &position));) {
        td_auto_arena arena = td_arena_capped(ROWS_POD_ARENA_BYTES_MAX);
        struct td_json *tree;
        if (td_informers_tree(&arena, object, &tree, NULL) != TD_OK) {
            continue;
        }
        const struct td_json *room = td_json_get_path(tree, "status.allocatable");
        model->room.nodes++;
        if (node_is_ready(tree)) {
            model->room.ready_nodes++;
            model->room.allocatable[TD_MODEL_CPU] += node_amount(room, "cpu");
            model->room.allocatable[TD_MODEL_MEMORY] += node_amount(room, "memory");
        }
    }
}

static void row_free(struct td_model *model, struct td_model_row *row)
{
    if (row->ring) {
        td_rings_remove(&model->rings, row->ring);
    }
    td_text_free(row->api);
    td_text_free(row->decision);
    td_free(row);
}

/* Rows that are gone for a day, and such as never had a point. */
static void rows_forget(struct td_model *model, td_time now)
{
    for (struct td_map_walk at = {.map = &model->rows}; td_map_step(&at);) {
        struct td_model_row *row = at.value;
        row->seen = row->is_there ? now : row->seen;
        if (!row->is_there && (!row->ring || now - row->seen > ROWS_GONE_AFTER)) {
            (void)td_map_remove(&model->rows, row->key);
            row_free(model, row);
        }
    }
}

void model_rows_look(struct td_model *model)
{
    model->totals = (struct td_model_totals){.pods = 0};
    for (struct td_map_walk at = {.map = &model->rows}; td_map_step(&at);) {
        row_clear(at.value);
    }
    look_pods(model);
    if (model->are_workloads_stale || model->are_links_stale) {
        look_workloads(model);
        if (!model->has_unresolved) {
            td_informers_forget_workloads(model->informers);
        }
    }
    if (model->are_nodes_stale) {
        look_nodes(model);
    }
    bool finds_scalers = model->are_scalers_stale || model->are_links_stale;
    for (struct td_map_walk at = {.map = &model->rows}; td_map_step(&at);) {
        struct td_model_row *row = at.value;
        row->replicas = row->replicas < 0 ? (int64_t)row->pod_count : row->replicas;
        if (finds_scalers) {
            row_find_scalers(model, row);
        }
    }
    model->are_links_stale = model->are_workloads_stale = false;
    model->are_scalers_stale = model->are_nodes_stale = false;
    /* A pod that is over keeps its row only while that is there. */
    for (struct td_map_walk at = {.map = &model->pods}; td_map_step(&at);) {
        struct td_model_pod *pod = at.value;
        if (pod->row && !pod->row->is_there) {
            pod->row = NULL;
        }
    }
    rows_forget(model, td_model_now(model));
}

/* ---- A point ---- */

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The middle and the highest use of a pod; below 0: nothing is measured. */
static void row_spread(const struct td_model_row *row, enum td_model_resource resource,
                       double *values, double *ret_middle, double *ret_most)
{
    size_t count = 0;
    for (const struct td_model_pod *pod = row->pods; pod; pod = pod->next) {
        if (pod->use[resource] >= 0) {
            values[count++] = pod->use[resource];
        }
    }
    *ret_middle = -1;
    *ret_most = -1;
    if (count > 0) {
        qsort(values, count, sizeof(values[0]), compare_doubles);
        *ret_middle = values[(count - 1) / 2];
        *ret_most = values[count - 1];
    }
}

static int64_t row_wanted(const struct td_model_row *row)
{
    const struct td_model_scaler *scaler =
        row->scalers[TD_MODEL_HVPA] ? row->scalers[TD_MODEL_HVPA] : row->scalers[TD_MODEL_HPA];
    return scaler ? scaler->wanted : -1;
}

static void row_sample(struct td_model *model, struct td_model_row *row, int64_t minute,
                       double *values)
{
    double samples[TD_SAMPLE_COUNT];
    double settings[TD_SETTING_COUNT];
    double pods = row->pod_count > 0 ? (double)row->pod_count : 1;
    row_spread(row, TD_MODEL_CPU, values, &samples[TD_SAMPLE_CPU_P50], &samples[TD_SAMPLE_CPU_MAX]);
    row_spread(row, TD_MODEL_MEMORY, values, &samples[TD_SAMPLE_MEMORY_P50],
               &samples[TD_SAMPLE_MEMORY_MAX]);
    samples[TD_SAMPLE_REPLICAS] = (double)row->replicas;
    samples[TD_SAMPLE_READY] = (double)row->ready_count;
    samples[TD_SAMPLE_THROTTLED] = row->throttled < 0 ? -1 : row->throttled * 1000;
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        size_t at = r == TD_MODEL_CPU ? TD_SETTING_CPU_REQUEST : TD_SETTING_MEMORY_REQUEST;
        bool has_pods = row->pod_count > 0;
        settings[at] = has_pods && row->request[r] > 0 ? row->request[r] / pods : -1;
        settings[at + 1] = has_pods && row->limit[r] > 0 ? row->limit[r] / pods : -1;
        settings[at + 2] = row->target[r];
        settings[at + 3] = row->lower[r];
        settings[at + 4] = row->upper[r];
    }
    settings[TD_SETTING_WANTED] = (double)row_wanted(row);
    row->ring = row->ring ? row->ring : td_rings_add(&model->rings);
    td_rings_put(&model->rings, row->ring, minute, samples, settings);
}

static void hour_judge(struct td_model *model, int64_t minute)
{
    const struct td_model_hour *now = &model->totals.judged;
    struct td_model_hour *hour = td_model_hour(model, minute * TD_MINUTE);
    for (size_t r = 0; hour && r < TD_MODEL_RESOURCES; r++) {
        hour->asked[r] += now->asked[r];
        hour->slack[r] += now->slack[r];
        hour->pods[r] += now->pods[r];
        hour->over[r] += now->over[r];
    }
}

void model_rows_sample(struct td_model *model, int64_t minute)
{
    double *values = td_alloc_zero(model->pods.count + 1, sizeof(*values));
    for (struct td_map_walk at = {.map = &model->rows}; td_map_step(&at);) {
        struct td_model_row *row = at.value;
        if (row->is_there) {
            row_sample(model, row, minute, values);
        }
    }
    td_free(values);
    if (model->point_count == TD_RING_MINUTES) {
        model->point_first = (model->point_first + 1) % TD_RING_MINUTES;
        model->point_count--;
    }
    struct td_model_point *point =
        &model->points[(model->point_first + model->point_count++) % TD_RING_MINUTES];
    *point = (struct td_model_point){
        .minute = minute,
        .pods = (uint32_t)model->totals.pods,
    };
    memcpy(point->request, model->totals.request, sizeof(point->request));
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        point->use[r] = model->measured == TD_TIME_NONE ? -1 : model->totals.use[r];
    }
    memcpy(point->room, model->room.allocatable, sizeof(point->room));
    hour_judge(model, minute);
}

void model_points_put_before(struct td_model *model, const struct td_model_point *past,
                             size_t count)
{
    struct td_model_point *points = td_alloc_zero(TD_RING_MINUTES, sizeof(*points));
    size_t room = TD_RING_MINUTES - model->point_count;
    while (count > 0 && model->point_count > 0 &&
           past[count - 1].minute >= model->points[model->point_first].minute) {
        count--;
    }
    size_t kept = count < room ? count : room;
    if (kept > 0) {
        memcpy(points, past + (count - kept), kept * sizeof(*points));
    }
    for (size_t i = 0; i < model->point_count; i++) {
        points[kept + i] = model->points[(model->point_first + i) % TD_RING_MINUTES];
    }
    td_free(model->points);
    model->points = points;
    model->point_first = 0;
    model->point_count += kept;
}

void model_rows_done(struct td_model *model)
{
    for (struct td_map_walk at = {.map = &model->rows}; td_map_step(&at);) {
        row_free(model, at.value);
    }
    td_map_done(&model->rows);
}
