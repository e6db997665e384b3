/*
 * Explanations: the same look at the cluster as `tandem explain` takes, with the same words, one
 * after another. Every few of them the same way finds out what is wrong with metrics, webhook and
 * rights. At most WEB_ASKS_MAX wait; who comes later is told to come again.
 */
#include "base/alloc.h"
#include "base/os/loop.h"
#include "control/inspect/explain.h"
#include "control/inspect/snapshot.h"
#include "decide/vertical/recommender/config.h"
#include "decide/vertical/recommender/recommender.h"
#include "web/json_writer.h"
#include "web/web_private.h"

#define ASK_CHECK_EVERY (30 * TD_SECOND) /* machine's time */
#define ASK_ROWS_MAX 500                 /* past it accounts are asked for only by a viewer */
#define ASK_PATIENCE (20 * TD_SECOND)

struct web_ask {
    struct td_web *web;
    struct web_ask *next;
    struct td_http_exchange *exchange; /* NULL: gone, or none: a check */
    struct td_arena arena;
    struct td_explain_subject subject;
    bool is_check;
    bool is_started;
    bool is_over;
    struct td_snapshot *snapshot;
    struct td_explain *explain;
};

static void ask_free(struct web_ask *ask)
{
    td_explain_free(ask->explain);
    td_snapshot_free(ask->snapshot);
    td_arena_done(&ask->arena);
    td_free(ask);
}

/* Freed, and the next begun, in another turn of the loop. */
static void ask_over(struct web_ask *ask)
{
    ask->is_over = true;
    ask->exchange = NULL;
    td_timer_set_machine(ask->web->asks_timer, 0);
}

static void ask_fail(struct web_ask *ask, int status, td_str message)
{
    if (ask->exchange) {
        web_fail(ask->exchange, status, message);
    }
    ask_over(ask);
}

/* ---- Histograms ---- */

static void buckets_write(struct td_json_writer *writer, const char *name,
                          const struct td_histogram_checkpoint *histogram,
                          const struct td_bucketing *scheme, double scale, double percentile)
{
    size_t from = 0;
    size_t to = TD_CHECKPOINT_BUCKETS_MAX;
    while (from < to && histogram->weights[from] == 0) {
        from++;
    }
    while (to > from && histogram->weights[to - 1] == 0) {
        to--;
    }
    td_writer_open(writer, name, '{');
    td_writer_number(writer, "percentile", percentile, 4);
    td_writer_open(writer, "starts", '[');
    for (size_t i = from; i < to + (to > from ? 1 : 0); i++) {
        td_writer_number(writer, NULL, td_bucketing_start(scheme, (int32_t)i) * scale, 0);
    }
    td_writer_close(writer, ']');
    td_writer_open(writer, "weights", '[');
    for (size_t i = from; i < to; i++) {
        td_writer_int(writer, NULL, histogram->weights[i]);
    }
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static void histograms_write(struct web_ask *ask, struct td_json_writer *writer)
{
    struct td_vertical_config config = td_vertical_config_default();
    struct td_stored_checkpoint *stored = NULL;
    size_t count = 0;
    td_str name = ask->subject.name;
    if (ask->subject.kind == TD_EXPLAIN_HVPA) {
        name = td_arena_format(&ask->arena, "hvpa:%.*s", TD_STR_ARG(name));
    }
    bool is_sized = ask->subject.kind == TD_EXPLAIN_VPA || ask->subject.kind == TD_EXPLAIN_HVPA;
    td_writer_open(writer, "histograms", '[');
    if (is_sized &&
        td_recommender_store(td_recommend_loop_model(ask->snapshot->recommend), &ask->arena,
                             ask->subject.namespace, name, td_snapshot_now(ask->snapshot), &stored,
                             &count, NULL) == TD_OK) {
        for (size_t i = 0; i < count; i++) {
            td_writer_open(writer, NULL, '{');
            td_writer_text(writer, "container", stored[i].checkpoint.container_name);
            buckets_write(writer, "cpu", &stored[i].checkpoint.cpu, &config.cpu.scheme, 1000,
                          config.target_cpu_percentile);
            buckets_write(writer, "memory", &stored[i].checkpoint.memory, &config.memory.scheme, 1,
                          config.target_memory_percentile);
            td_writer_close(writer, '}');
        }
    }
    td_writer_close(writer, ']');
}

/* ---- Answers ---- */

/* What was said is kept for what happened before. */
static void ask_keep(struct web_ask *ask, td_str text)
{
    static const td_str kinds[] = {[TD_EXPLAIN_VPA] = TD_STR_INIT("VerticalPodAutoscaler"),
                                   [TD_EXPLAIN_HPA] = TD_STR_INIT("HorizontalPodAutoscaler"),
                                   [TD_EXPLAIN_HVPA] = TD_STR_INIT("Hvpa")};
    const struct td_model_row *row =
        ask->subject.kind <= TD_EXPLAIN_HVPA
            ? td_model_row_of(ask->web->model, kinds[ask->subject.kind], ask->subject.namespace,
                              ask->subject.name)
            : NULL;
    if (row) {
        td_model_explain(ask->web->model, row, text);
    }
}

static void ask_explained(void *context, const struct td_explanation *explanation)
{
    struct web_ask *ask = context;
    if (explanation->code != TD_OK) {
        ask_keep(ask, td_str_from(explanation->err.message));
        ask_fail(ask, explanation->code == TD_NOT_FOUND ? 404 : 503,
                 td_str_from(explanation->err.message));
        return;
    }
    ask_keep(ask, explanation->text);
    if (!ask->exchange) {
        ask_over(ask);
        return;
    }
    td_auto_buf body = td_buf_capped(WEB_ANSWER_BYTES_MAX);
    struct td_json_writer writer = {.out = &body};
    td_writer_open(&writer, NULL, '{');
    td_writer_raw(&writer, "explanation", td_json_line(&ask->arena, explanation->json));
    td_writer_text(&writer, "text", explanation->text);
    histograms_write(ask, &writer);
    td_writer_close(&writer, '}');
    web_reply_json(ask->exchange, 200, &body);
    ask_over(ask);
}

static void ask_check(struct web_ask *ask)
{
    struct td_web *web = ask->web;
    td_arena_reset(&web->check_arena);
    web->metrics_problem = td_snapshot_metrics_problem(ask->snapshot, &web->check_arena);
    web->webhook_problem = td_snapshot_webhook_problem(ask->snapshot, &web->check_arena);
    web->rights_problem = td_snapshot_rights_problem(ask->snapshot, &web->check_arena);
    web->metrics_problem = td_arena_copy_str(&web->check_arena, web->metrics_problem);
    web->webhook_problem = td_arena_copy_str(&web->check_arena, web->webhook_problem);
    web->rights_problem = td_arena_copy_str(&web->check_arena, web->rights_problem);
    web->model->is_changed = true; /* so that who looks is told */
    ask_over(ask);
}

static void ask_seen(void *context, int code, const struct td_error *err)
{
    struct web_ask *ask = context;
    if (code != TD_OK) {
        ask_fail(ask, 503, td_str_from(err->message));
    } else if (ask->is_check) {
        ask_check(ask);
    } else {
        ask->explain = td_explain_start(ask->snapshot, &ask->subject, ask_explained, ask);
    }
}

/* ---- One after another ---- */

static void ask_begin(struct web_ask *ask)
{
    struct td_web *web = ask->web;
    struct td_error err = TD_ERROR_INIT;
    struct td_snapshot_options options = {.loop = web->options.loop,
                                          .patience = ASK_PATIENCE,
                                          .namespace = ask->is_check ? web->options.namespace
                                                                     : ask->subject.namespace,
                                          .feature_gates = web->options.feature_gates};
    ask->is_started = true;
    if (!ask->is_check) {
        td_explain_needs(&ask->subject, options.needs);
    }
    if (web->options.connect(web->options.context, &options.transport, &err) != TD_OK ||
        td_snapshot_new(&options, &ask->snapshot, &err) != TD_OK) {
        ask_fail(ask, 503, td_str_from(err.message));
        return;
    }
    td_snapshot_start(ask->snapshot, ask_seen, ask);
}

static void asks_go_on(struct td_timer *timer, void *context)
{
    struct td_web *web = context;
    (void)timer;
    while (web->asks && web->asks->is_over) {
        struct web_ask *ask = web->asks;
        web->asks = ask->next;
        web->ask_count--;
        ask_free(ask);
    }
    if (web->asks && !web->asks->is_started) {
        ask_begin(web->asks);
    }
}

static struct web_ask *ask_add(struct td_web *web)
{
    struct web_ask *ask = td_alloc_zero(1, sizeof(*ask));
    struct web_ask **place = &web->asks;
    while (*place) {
        place = &(*place)->next;
    }
    *place = ask;
    ask->web = web;
    td_arena_init(&ask->arena, WEB_ARENA_BYTES_MAX);
    web->ask_count++;
    web->asks_timer =
        web->asks_timer ? web->asks_timer : td_timer_new(web->options.loop, asks_go_on, web);
    td_timer_set_machine(web->asks_timer, 0);
    return ask;
}

/* The client went away: the answer is dropped when it comes. */
static void ask_closed(struct td_http_exchange *exchange, void *context)
{
    struct web_ask *ask = context;
    (void)exchange;
    ask->exchange = NULL;
    ask->is_over = ask->is_over || !ask->is_started;
}

void web_view_explain(const struct web_call *call)
{
    struct td_web *web = call->web;
    td_auto_arena arena = td_arena_capped(WEB_ARENA_BYTES_MAX);
    struct td_explain_subject subject = {.workload = TD_STR_EMPTY};
    struct td_error err = TD_ERROR_INIT;
    td_str ns = web_parameter(&arena, call->query, "ns");
    td_str kind = web_parameter(&arena, call->query, "kind");
    if (td_explain_parse_kind(kind, &subject, &err) != TD_OK) {
        web_fail(call->exchange, 400, td_str_from(err.message));
    } else if (ns.len == 0 || !web_is_in_scope(call, ns) ||
               (web->options.namespace.len > 0 && !td_str_equal(ns, web->options.namespace))) {
        web_fail(call->exchange, 404, TD_STR("no such namespace on this page"));
    } else if (web->ask_count >= WEB_ASKS_MAX) {
        web_fail(call->exchange, 503, TD_STR("too many questions wait; ask again in a second"));
    } else {
        struct web_ask *ask = ask_add(web);
        ask->subject = subject;
        ask->subject.workload = td_arena_copy_str(&ask->arena, subject.workload);
        ask->subject.namespace = td_arena_copy_str(&ask->arena, ns);
        ask->subject.name =
            td_arena_copy_str(&ask->arena, web_parameter(&arena, call->query, "name"));
        ask->exchange = call->exchange;
        td_http_exchange_set_callbacks(call->exchange, NULL, ask_closed, ask);
    }
}

void web_check(struct td_web *web)
{
    td_duration now = td_clock_machine(td_loop_clock(web->options.loop));
    if (web->ask_count > 0 || (web->checked_at != 0 && now - web->checked_at < ASK_CHECK_EVERY)) {
        return;
    }
    web->checked_at = now;
    ask_add(web)->is_check = true;
}

void web_account(struct td_web *web)
{
    static const enum td_explain_kind kinds[] = {[TD_MODEL_HVPA] = TD_EXPLAIN_HVPA,
                                                 [TD_MODEL_HPA] = TD_EXPLAIN_HPA,
                                                 [TD_MODEL_VPA] = TD_EXPLAIN_VPA};
    bool is_small = web->model->rows.count <= ASK_ROWS_MAX;
    const struct td_model_row *row =
        is_small && web->ask_count == 0 ? td_model_unexplained(web->model) : NULL;
    const struct td_model_scaler *scaler = NULL;
    for (size_t kind = 0; row && kind < TD_MODEL_SCALER_KINDS && !scaler; kind++) {
        scaler = row->scalers[kind];
    }
    if (scaler) {
        struct web_ask *ask = ask_add(web);
        ask->subject = (struct td_explain_subject){
            .kind = kinds[scaler->kind],
            .workload = TD_STR_EMPTY,
            .namespace = td_arena_copy_str(&ask->arena, scaler->ns),
            .name = td_arena_copy_str(&ask->arena, scaler->name),
        };
    }
}

void web_asks_done(struct td_web *web)
{
    while (web->asks) {
        struct web_ask *ask = web->asks;
        web->asks = ask->next;
        ask_free(ask);
    }
    td_timer_free(web->asks_timer);
}
