/*
 * A what-if from its question to its answer: worked off in slices of the loop, so that nothing else
 * waits for it, and given up after 200 ms of work. Nothing is applied.
 */
#include "web/whatif.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/os/loop.h"
#include "web/json_writer.h"

#define WHATIF_WORK (200 * TD_MILLISECOND)
#define WHATIF_WAITING_MAX 8
#define WHATIF_POINTS_A_TURN 16

static void whatif_free(struct web_whatif *whatif)
{
    struct web_whatif **place = &whatif->web->whatifs;
    while (*place && *place != whatif) {
        place = &(*place)->next;
    }
    *place = *place ? whatif->next : NULL;
    td_timer_free(whatif->timer);
    whatif_learner_done(whatif);
    td_arena_done(&whatif->scratch);
    td_arena_done(&whatif->arena);
    td_free(whatif);
}

/* ---- The answer ---- */

struct whatif_costs {
    double asked[TD_MODEL_RESOURCES]; /* millicore and byte hours */
    double short_share[TD_MODEL_RESOURCES];
    double pod_hours;
};

static struct whatif_costs whatif_cost(const struct web_whatif *whatif, const struct td_ring *ring,
                                       bool is_new)
{
    struct whatif_costs costs = {.pod_hours = 0};
    double counted[TD_MODEL_RESOURCES] = {0};
    double hours = (double)whatif->step / 60;
    for (size_t i = 0; i < whatif->span.count; i++) {
        double was = td_ring_sample(ring, i, TD_SAMPLE_REPLICAS);
        double pods = is_new ? whatif->points[i].replicas : was;
        pods = pods < 0 ? 0 : pods;
        costs.pod_hours += pods * hours;
        for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
            bool is_cpu = r == TD_MODEL_CPU;
            double asked = is_new ? whatif->points[i].request[r] : whatif->asked[r][i];
            double use = td_ring_sample(ring, i, is_cpu ? TD_SAMPLE_CPU_MAX : TD_SAMPLE_MEMORY_MAX);
            if (asked < 0) {
                continue;
            }
            double share = is_new && is_cpu && pods > 0 && was > 0 ? was / pods : 1;
            costs.asked[r] += asked * pods * hours;
            counted[r] += use >= 0;
            costs.short_share[r] += use >= 0 && use * share > asked;
        }
    }
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        costs.short_share[r] = counted[r] > 0 ? costs.short_share[r] / counted[r] : 0;
    }
    return costs;
}

static void costs_write(const struct web_whatif *whatif, struct td_json_writer *writer,
                        const char *name, const struct whatif_costs *costs)
{
    double hours = (double)whatif->span.count * (double)whatif->step / 60;
    double mean = hours > 0 ? hours : 1;
    const struct td_web_options *options = &whatif->web->options;
    double cpu = costs->asked[TD_MODEL_CPU] / mean;
    double memory = costs->asked[TD_MODEL_MEMORY] / mean;
    td_writer_open(writer, name, '{');
    td_writer_number(writer, "cpu", cpu, 0);
    td_writer_number(writer, "memory", memory, 0);
    td_writer_number(writer, "replicas", costs->pod_hours / mean, 2);
    td_writer_number(writer, "cpuShort", costs->short_share[TD_MODEL_CPU], 4);
    td_writer_number(writer, "memoryShort", costs->short_share[TD_MODEL_MEMORY], 4);
    td_writer_number(writer, "money",
                     cpu / 1000 * options->price_cpu +
                         memory / (1024.0 * 1024 * 1024) * options->price_memory,
                     2);
    td_writer_close(writer, '}');
}

static void whatif_answer(struct web_whatif *whatif, const struct td_ring *ring)
{
    td_auto_buf body = td_buf_capped(WEB_ANSWER_BYTES_MAX);
    struct td_json_writer writer = {.out = &body};
    static const char *const names[] = {"cpu", "memory"};
    td_writer_open(&writer, NULL, '{');
    td_writer_int(&writer, "start", whatif->span.first * 60000);
    td_writer_int(&writer, "step", whatif->step * 60000);
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        td_writer_open(&writer, names[r], '[');
        for (size_t i = 0; i < whatif->span.count; i++) {
            td_writer_known(&writer, NULL, whatif->points[i].request[r], 0);
        }
        td_writer_close(&writer, ']');
    }
    td_writer_open(&writer, "replicas", '[');
    for (size_t i = 0; i < whatif->span.count; i++) {
        td_writer_known(&writer, NULL, whatif->points[i].replicas, 0);
    }
    td_writer_close(&writer, ']');
    struct whatif_costs was = whatif_cost(whatif, ring, false);
    struct whatif_costs is = whatif_cost(whatif, ring, true);
    costs_write(whatif, &writer, "was", &was);
    costs_write(whatif, &writer, "is", &is);
    td_writer_text(&writer, "yaml", whatif->yaml);
    td_writer_close(&writer, '}');
    web_reply_json(whatif->exchange, 200, &body);
}

/* ---- Slices ---- */

/* The ring of the workload, when it is still what was begun with; NULL: the history moved on. */
static const struct td_ring *whatif_ring(const struct web_whatif *whatif)
{
    const struct td_model *model = whatif->web->model;
    const struct td_model_row *row = td_map_get(&model->rows, whatif->row_key);
    if (!row || !row->ring || model->rings.minutes_per_point != whatif->step) {
        return NULL;
    }
    struct td_ring_span span = td_ring_span(&model->rings, row->ring);
    return span.first == whatif->span.first && span.count >= whatif->span.count ? row->ring : NULL;
}

static void whatif_turn(struct td_timer *timer, void *context)
{
    struct web_whatif *whatif = context;
    const struct td_clock *clock = td_loop_clock(whatif->web->options.loop);
    const struct td_ring *ring = whatif_ring(whatif);
    td_duration began = td_clock_machine(clock);
    if (!whatif->exchange) {
        whatif_free(whatif);
        return;
    }
    if (!ring || whatif->worked > WHATIF_WORK) {
        web_fail(whatif->exchange, 503,
                 ring ? TD_STR("too much work") : TD_STR("the history moved on; try again"));
        whatif_free(whatif);
        return;
    }
    for (size_t n = 0; n < WHATIF_POINTS_A_TURN && whatif->done < whatif->span.count; n++) {
        whatif_decide(whatif, ring);
        whatif->done++;
    }
    whatif->worked += td_clock_machine(clock) - began;
    if (whatif->done < whatif->span.count) {
        td_timer_set_machine(timer, 0);
        return;
    }
    whatif_answer(whatif, ring);
    whatif_free(whatif);
}

/* ---- The question ---- */

static void whatif_closed(struct td_http_exchange *exchange, void *context)
{
    struct web_whatif *whatif = context;
    (void)exchange;
    whatif->exchange = NULL;
}

static void whatif_prepare(struct web_whatif *whatif, const struct td_model_row *row)
{
    static const enum td_ring_setting settings[TD_MODEL_RESOURCES] = {TD_SETTING_CPU_REQUEST,
                                                                      TD_SETTING_MEMORY_REQUEST};
    const struct td_rings *rings = &whatif->web->model->rings;
    whatif->row_key = td_arena_copy_str(&whatif->arena, row->key);
    whatif->span = td_ring_span(rings, row->ring);
    whatif->step = rings->minutes_per_point;
    whatif->points = td_arena_array(&whatif->arena, struct whatif_point, whatif->span.count + 1);
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        whatif->asked[r] = td_arena_array(&whatif->arena, double, whatif->span.count + 1);
        td_ring_fill(rings, row->ring, settings[r], whatif->asked[r]);
    }
}

static void whatif_start(const struct web_call *call, const struct td_json *order,
                         const struct td_model_row *row)
{
    struct td_web *web = call->web;
    struct web_whatif *whatif = td_alloc_zero(1, sizeof(*whatif));
    struct td_error err = TD_ERROR_INIT;
    whatif->web = web;
    td_arena_init(&whatif->arena, WEB_ARENA_BYTES_MAX);
    td_arena_init(&whatif->scratch, WEB_ARENA_BYTES_MAX);
    if (whatif_read(call, whatif, order, row, &err) != TD_OK) {
        web_fail(call->exchange, 400, td_str_from(err.message));
        whatif_free(whatif);
        return;
    }
    whatif_prepare(whatif, row);
    whatif_learner_init(whatif);
    whatif->next = web->whatifs;
    web->whatifs = whatif;
    whatif->exchange = call->exchange;
    td_http_exchange_set_callbacks(call->exchange, NULL, whatif_closed, whatif);
    whatif->timer = td_timer_new(web->options.loop, whatif_turn, whatif);
    td_timer_set_machine(whatif->timer, 0);
}

void web_do_whatif(const struct web_call *call)
{
    td_auto_arena arena = td_arena_capped(WEB_ARENA_BYTES_MAX);
    struct td_web *web = call->web;
    struct td_json *order;
    struct td_error err = TD_ERROR_INIT;
    size_t waiting = 0;
    for (const struct web_whatif *each = web->whatifs; each; each = each->next) {
        waiting++;
    }
    if (td_json_parse(&arena, call->request->body, NULL, &order, &err) != TD_OK) {
        web_fail(call->exchange, 400, td_str_from(err.message));
        return;
    }
    td_model_look(web->model);
    const struct td_model_row *row =
        web_is_in_scope(call, td_json_text(order, "ns"))
            ? td_model_find(web->model, td_json_text(order, "ns"), td_json_text(order, "kind"),
                            td_json_text(order, "name"), td_json_text(order, "by"))
            : NULL;
    if (!row || !row->ring) {
        web_fail(call->exchange, 404, TD_STR("no such workload, or it has no history yet"));
    } else if (waiting >= WHATIF_WAITING_MAX) {
        web_fail(call->exchange, 503, TD_STR("too many questions wait; ask again in a second"));
    } else {
        whatif_start(call, order, row);
    }
}

void web_whatifs_done(struct td_web *web)
{
    while (web->whatifs) {
        whatif_free(web->whatifs);
    }
}
