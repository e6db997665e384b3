/*
 * The whole cluster: what is wrong now, each with its next step, and what was asked for, used and
 * allocatable over the last day. Also what a page has to know once: title, prices, scenario.
 */
#include "base/os/loop.h"
#include "control/inspect/snapshot.h"
#include "decide/vertical/estimator/estimator.h"
#include "sim/world/world.h"
#include "web/assets.h"
#include "web/json_writer.h"
#include "web/web_private.h"

#define VIEW_PROBLEMS_MAX 50
#define VIEW_MARKS_MAX 200
#define VIEW_PLACES_MAX 100

static const char *const resource_names[] = {"cpu", "memory"};

static int64_t milliseconds(td_time time)
{
    return time / TD_MILLISECOND;
}

/* ---- Once ---- */

void web_view_info(const struct web_call *call)
{
    const struct td_web *web = call->web;
    td_auto_buf body = td_buf_capped(WEB_ANSWER_BYTES_MAX);
    struct td_json_writer writer = {.out = &body};
    const char *charts = td_web_charts();
    td_writer_open(&writer, NULL, '{');
    td_writer_text(&writer, "title", web->options.title);
    td_writer_text(&writer, "namespace",
                   call->scope.len > 0 ? call->scope : web->options.namespace);
    td_writer_bool(&writer, "local", web->options.world != NULL);
    td_writer_text(&writer, "charts", charts ? td_str_from(charts) : TD_STR_EMPTY);
    td_writer_number(&writer, "priceCpu", web->options.price_cpu, 4);
    td_writer_number(&writer, "priceMemory", web->options.price_memory, 4);
    td_writer_int(&writer, "started", milliseconds(web->model->started));
    td_writer_open(&writer, "estimators", '[');
    for (size_t e = 0; td_estimator_at(e); e++) {
        td_writer_text(&writer, NULL, td_str_from(td_estimator_at(e)->name));
    }
    td_writer_close(&writer, ']');
    td_writer_close(&writer, '}');
    web_reply_json(call->exchange, 200, &body);
}

/* ---- What is wrong ---- */

struct problems {
    struct td_json_writer *writer;
    size_t count;
};

static void problem_write(struct problems *problems, td_str what, td_str about, td_str text)
{
    if (text.len == 0 || problems->count++ >= VIEW_PROBLEMS_MAX) {
        return;
    }
    td_writer_open(problems->writer, NULL, '{');
    td_writer_text(problems->writer, "what", what);
    td_writer_text(problems->writer, "about", about);
    td_writer_text(problems->writer, "text", text);
    td_writer_close(problems->writer, '}');
}

static void problems_of_scalers(const struct web_call *call, struct problems *problems)
{
    static const char *const kinds[] = {"hvpa", "hpa", "vpa"};
    td_auto_arena arena = td_arena_capped(WEB_ARENA_BYTES_MAX);
    for (struct td_map_walk at = {.map = &call->web->model->scalers}; td_map_step(&at);) {
        const struct td_model_scaler *scaler = at.value;
        if (!web_is_in_scope(call, scaler->ns)) {
            continue;
        }
        for (size_t i = 0; i < scaler->problem_count; i++) {
            td_str about = td_arena_format(&arena, "%s %.*s/%.*s", kinds[scaler->kind],
                                           TD_STR_ARG(scaler->ns), TD_STR_ARG(scaler->name));
            problem_write(problems, scaler->problems[i].type, about, scaler->problems[i].text);
        }
    }
}

static void cluster_problems(const struct web_call *call, struct td_json_writer *writer)
{
    const struct td_web *web = call->web;
    const struct td_model *model = web->model;
    struct problems problems = {.writer = writer};
    td_auto_arena arena = td_arena_capped(WEB_ARENA_BYTES_MAX);
    td_writer_open(writer, "problems", '[');
    problem_write(&problems, TD_STR("metrics"), TD_STR_EMPTY, web->metrics_problem);
    problem_write(&problems, TD_STR("webhook"), TD_STR_EMPTY, web->webhook_problem);
    problem_write(&problems, TD_STR("rights"), TD_STR_EMPTY, web->rights_problem);
    problem_write(&problems, TD_STR("Prometheus"), TD_STR_EMPTY, web->history_problem);
    if (model->room.ready_nodes < model->room.nodes) {
        problem_write(&problems, TD_STR("nodes"), TD_STR_EMPTY,
                      td_arena_format(&arena,
                                      "%zu of %zu nodes are not ready; next: kubectl get "
                                      "nodes",
                                      model->room.nodes - model->room.ready_nodes,
                                      model->room.nodes));
    }
    if (model->totals.pending > 0) {
        problem_write(&problems, TD_STR("pods"), TD_STR_EMPTY,
                      td_arena_format(&arena,
                                      "%zu pod%s pending; next: kubectl get pods -A "
                                      "--field-selector=status.phase=Pending",
                                      model->totals.pending,
                                      model->totals.pending == 1 ? " is" : "s are"));
    }
    problems_of_scalers(call, &problems);
    td_writer_close(writer, ']');
    td_writer_int(writer, "problemCount", (int64_t)problems.count);
}

/* ---- Now, and over time ---- */

static void cluster_totals(const struct web_call *call, struct td_json_writer *writer)
{
    const struct td_model *model = call->web->model;
    const struct td_model_totals *totals = &model->totals;
    td_writer_open(writer, "totals", '{');
    td_writer_int(writer, "pods", (int64_t)totals->pods);
    td_writer_int(writer, "pending", (int64_t)totals->pending);
    td_writer_int(writer, "nodes", (int64_t)model->room.nodes);
    td_writer_int(writer, "readyNodes", (int64_t)model->room.ready_nodes);
    td_writer_int(writer, "workloads", (int64_t)model->rows.count);
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        td_writer_open(writer, resource_names[r], '{');
        td_writer_number(writer, "request", totals->request[r], 0);
        td_writer_number(writer, "use", totals->use[r], 0);
        td_writer_number(writer, "room", model->room.allocatable[r], 0);
        td_writer_close(writer, '}');
    }
    td_writer_close(writer, '}');
}

static const struct td_model_point *point_at(const struct td_model *model, size_t index)
{
    return &model->points[(model->point_first + index) % TD_RING_MINUTES];
}

static void series_of(const struct td_model *model, struct td_json_writer *writer, const char *name,
                      double (*value)(const struct td_model_point *point))
{
    td_writer_open(writer, name, '[');
    for (size_t i = 0; i < model->point_count; i++) {
        td_writer_known(writer, NULL, value(point_at(model, i)), 0);
    }
    td_writer_close(writer, ']');
}

#define POINT_VALUE(word, what)                                                                    \
    static double word(const struct td_model_point *point)                                         \
    {                                                                                              \
        return (double)(what);                                                                     \
    }
POINT_VALUE(point_time, point->minute * 60000)
POINT_VALUE(point_cpu_request, point->request[TD_MODEL_CPU])
POINT_VALUE(point_cpu_use, point->use[TD_MODEL_CPU])
POINT_VALUE(point_cpu_room, point->room[TD_MODEL_CPU])
POINT_VALUE(point_memory_request, point->request[TD_MODEL_MEMORY])
POINT_VALUE(point_memory_use, point->use[TD_MODEL_MEMORY])
POINT_VALUE(point_memory_room, point->room[TD_MODEL_MEMORY])
POINT_VALUE(point_pods, point->pods)

static void cluster_history(const struct web_call *call, struct td_json_writer *writer)
{
    static const struct {
        const char *name;
        double (*value)(const struct td_model_point *point);
    } rows[] = {{"times", point_time},
                {"cpuRequest", point_cpu_request},
                {"cpuUse", point_cpu_use},
                {"cpuRoom", point_cpu_room},
                {"memoryRequest", point_memory_request},
                {"memoryUse", point_memory_use},
                {"memoryRoom", point_memory_room},
                {"pods", point_pods}};
    td_writer_open(writer, "history", '{');
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        series_of(call->web->model, writer, rows[i].name, rows[i].value);
    }
    td_writer_close(writer, '}');
}

/* The last 24 hours, the present one last; what is not known is null. */
static void hours_write(const struct td_model *model, struct td_json_writer *writer,
                        const char *name, double (*value)(const struct td_model_hour *hour, size_t),
                        size_t which)
{
    static const struct td_model_hour empty = {.hour = 0};
    int64_t now = td_model_now(model) / TD_HOUR;
    td_writer_open(writer, name, '[');
    for (int64_t number = now - TD_MODEL_HOURS + 1; number <= now; number++) {
        const struct td_model_hour *hour = &model->hours[(uint64_t)number % TD_MODEL_HOURS];
        td_writer_known(writer, NULL, value(hour->hour == number ? hour : &empty, which), 4);
    }
    td_writer_close(writer, ']');
}

static double hour_happened(const struct td_model_hour *hour, size_t what)
{
    return hour->happened[what];
}

static double hour_slack(const struct td_model_hour *hour, size_t resource)
{
    return hour->asked[resource] > 0 ? hour->slack[resource] / hour->asked[resource] : -1;
}

static double hour_overrun(const struct td_model_hour *hour, size_t resource)
{
    return hour->pods[resource] > 0 ? hour->over[resource] / hour->pods[resource] : -1;
}

static void cluster_hours(const struct web_call *call, struct td_json_writer *writer)
{
    static const char *const happened[TD_HAPPENED_COUNT] = {"ooms", "evictions", "resizes",
                                                            "scalings"};
    static const char *const slack[] = {"cpuSlack", "memorySlack"};
    static const char *const overrun[] = {"cpuOverrun", "memoryOverrun"};
    const struct td_model *model = call->web->model;
    td_writer_open(writer, "hours", '{');
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        hours_write(model, writer, slack[r], hour_slack, r);
        hours_write(model, writer, overrun[r], hour_overrun, r);
    }
    for (size_t i = 0; i < TD_HAPPENED_COUNT; i++) {
        hours_write(model, writer, happened[i], hour_happened, i);
    }
    td_writer_close(writer, '}');
}

static void cluster_marks(const struct web_call *call, struct td_json_writer *writer)
{
    const struct td_model *model = call->web->model;
    size_t count = 0;
    td_writer_open(writer, "marks", '[');
    for (size_t i = model->marks.count; i > 0 && count < VIEW_MARKS_MAX; i--) {
        const struct td_model_mark *mark = &model->marks.items[i - 1];
        if (mark->row.len > 0) {
            continue;
        }
        count++;
        td_writer_open(writer, NULL, '{');
        td_writer_int(writer, "at", milliseconds(mark->at));
        td_writer_text(writer, "kind", mark->kind);
        td_writer_text(writer, "text", mark->text);
        td_writer_close(writer, '}');
    }
    td_writer_close(writer, ']');
}

/* What a visitor may break. */
static void cluster_places(const struct web_call *call, struct td_json_writer *writer)
{
    const struct td_model *model = call->web->model;
    const struct td_cache *cache = td_informers_cache(model->informers, TD_INFORMER_NODES);
    size_t position = 0;
    size_t count = 0;
    td_writer_open(writer, "nodes", '[');
    for (const struct td_informer_object *node;
         count++ < VIEW_PLACES_MAX && (node = td_cache_next(cache, &position));) {
        td_writer_text(writer, NULL, node->head.name);
    }
    td_writer_close(writer, ']');
    td_writer_open(writer, "somePods", '[');
    count = 0;
    for (struct td_map_walk at = {.map = &model->pods}; td_map_step(&at);) {
        const struct td_model_pod *pod = at.value;
        if (!pod->is_ready || count++ >= VIEW_PLACES_MAX) {
            continue;
        }
        td_writer_open(writer, NULL, '{');
        td_writer_text(writer, "ns", pod->ns);
        td_writer_text(writer, "name", pod->name);
        td_writer_close(writer, '}');
    }
    td_writer_close(writer, ']');
}

static void cluster_write(const struct web_call *call, struct td_buf *body)
{
    struct td_json_writer writer = {.out = body};
    td_writer_open(&writer, NULL, '{');
    td_writer_int(&writer, "now", milliseconds(td_model_now(call->web->model)));
    td_writer_int(&writer, "version", (int64_t)call->web->model->version);
    cluster_problems(call, &writer);
    if (call->scope.len == 0) { /* sums of all namespaces tell of others */
        cluster_totals(call, &writer);
        cluster_history(call, &writer);
        cluster_hours(call, &writer);
        cluster_marks(call, &writer);
    }
    if (call->web->options.world) {
        cluster_places(call, &writer);
    }
    td_writer_close(&writer, '}');
}

void web_view_cluster(const struct web_call *call)
{
    struct td_web *web = call->web;
    web_look(web);
    if (call->scope.len > 0) {
        td_auto_buf body = td_buf_capped(WEB_ANSWER_BYTES_MAX);
        cluster_write(call, &body);
        web_reply_json(call->exchange, 200, &body);
        return;
    }
    if (web_shared_begin(web, &web->cluster)) {
        cluster_write(call, &web->cluster.body);
    }
    web_reply_json(call->exchange, 200, &web->cluster.body);
}
