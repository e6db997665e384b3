/*
 * A piece is some steps of time. Its two queries are asked one after the other; their points are
 * kept by step, eight steps or two hundred, and then handed on step by step by a job of the loop.
 * When the points of a piece do not fit, the piece is halved and asked for again: nothing of it was
 * handed on yet.
 */
#include "control/prometheus/history.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/loop.h"
#include "base/vec.h"
#include "kube/objectkey.h"

#define HISTORY_SLICE_POINTS 256 /* between two looks at the clock */
#define HISTORY_CORES_MAX 1e6    /* no container has more: not a measurement */
#define HISTORY_BYTES_MAX 1e16

struct history_point {
    int64_t amount;
    uint32_t container; /* place in containers */
    uint32_t resource;  /* an enum td_learn_resource */
};

struct history_step {
    TD_VEC_FIELDS(struct history_point);
};

struct td_history {
    struct td_history_options options;
    struct td_history_handler handler;
    void *context;
    struct td_arena arena;
    struct td_map names; /* "namespace\npod\ncontainer" to 1 + place in containers */
    struct {
        TD_VEC_FIELDS(void *);
    } containers;
    struct td_history_counts counts;
    td_duration began; /* machine's */
    struct td_queue *work;
    struct td_prometheus_call *call;
    enum td_learn_resource resource; /* that is being asked for */
    size_t piece;                    /* steps of the piece */
    size_t points;                   /* of the piece */
    struct history_step steps[TD_HISTORY_STEPS_MAX];
    size_t step_at; /* while handing on */
    size_t point_at;
    bool is_asking;
    uint32_t container; /* of the series that is read */
};

static void history_ask(struct td_history *history);

static td_duration history_machine(const struct td_history *history)
{
    return td_clock_machine(td_loop_clock(history->options.loop));
}

static void history_end(struct td_history *history, int code, const struct td_error *err)
{
    history->handler.done(history->context, code, err); /* it may be gone now */
}

static void history_drop_points(struct td_history *history)
{
    for (size_t i = 0; i < TD_HISTORY_STEPS_MAX; i++) {
        td_vec_reset(&history->steps[i]);
    }
    history->points = 0;
    history->step_at = 0;
    history->point_at = 0;
}

/* ---- An answer ---- */

static td_str history_label(const struct td_labels *labels, td_str name)
{
    const td_str *value = td_labels_get(labels, name);
    return value ? *value : TD_STR_EMPTY;
}

static bool history_series(void *context, const struct td_labels *labels)
{
    struct td_history *history = context;
    td_str ns = history_label(labels, history->options.namespace_label);
    td_str pod = history_label(labels, history->options.pod_label);
    td_str name = history_label(labels, history->options.container_label);
    history->counts.series++;
    if (ns.len == 0 || pod.len == 0 || name.len == 0) {
        return false;
    }
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, ns, pod, name);
    if (key.len == 0) {
        return false; /* no name in Kubernetes is that long */
    }
    uintptr_t known = (uintptr_t)td_map_get(&history->names, key);
    if (known == 0) {
        void *mine = history->handler.container(history->context, ns, pod, name);
        void **place = mine ? td_vec_push(&history->containers) : NULL;
        if (!place) {
            return false;
        }
        *place = mine;
        known = history->containers.count;
        td_str copy = td_arena_copy_str(&history->arena, key);
        (void)td_map_put(&history->names, copy, (void *)known); /* as many as containers */
        history->counts.containers++;
    }
    history->container = (uint32_t)(known - 1);
    return true;
}

static int history_take(void *context, td_time time, double value, struct td_error *err)
{
    struct td_history *history = context;
    const struct td_history_options *options = &history->options;
    td_time start = options->start + (td_duration)history->counts.steps_done * options->step;
    bool is_cpu = history->resource == TD_LEARN_CPU;
    td_duration since = time - start + options->step / 2;
    size_t step = since >= 0 ? (size_t)(since / options->step) : SIZE_MAX;
    if (step >= history->piece) {
        return td_error_set(err, TD_INVALID, "a sample lies outside the queried time range");
    }
    if (!(value >= 0) || value > (is_cpu ? HISTORY_CORES_MAX : HISTORY_BYTES_MAX)) {
        return TD_OK; /* no measurement */
    }
    size_t most = options->points_max > 0 ? options->points_max : TD_HISTORY_POINTS_MAX;
    struct history_point *place =
        history->points < most ? td_vec_push(&history->steps[step]) : NULL;
    if (!place) {
        return td_error_set(err, TD_LIMIT, "more than %zu samples in one step", most);
    }
    *place = (struct history_point){
        .amount = (int64_t)(is_cpu ? value * 1000 : value),
        .container = history->container,
        .resource = history->resource,
    };
    history->points++;
    return TD_OK;
}

static void history_answered(void *context, int code, const struct td_error *err)
{
    struct td_history *history = context;
    history->call = NULL;
    if (code == TD_LIMIT && history->piece > 1) {
        history->piece /= 2;
        history->resource = TD_LEARN_CPU;
        history_drop_points(history);
    } else if (code != TD_OK) {
        history_end(history, code, err);
        return;
    } else if (history->resource == TD_LEARN_CPU) {
        history->resource = TD_LEARN_MEMORY;
    } else {
        history->is_asking = false;
    }
    (void)td_queue_add(history->work, TD_STR("history"), NULL); /* one key always fits */
}

/* ---- Handing on ---- */

/* True when the piece is through, false: the slice is over. */
static bool history_hand_on(struct td_history *history)
{
    const struct td_history_options *options = &history->options;
    size_t handed = 0;
    while (history->step_at < history->piece) {
        const struct history_step *step = &history->steps[history->step_at];
        td_time time = options->start +
                       (td_duration)(history->counts.steps_done + history->step_at) * options->step;
        while (history->point_at < step->count) {
            const struct history_point *point = &step->items[history->point_at++];
            history->counts.samples++;
            history->handler.sample(history->context, history->containers.items[point->container],
                                    (enum td_learn_resource)point->resource, time, point->amount);
            if (++handed % HISTORY_SLICE_POINTS == 0 && td_loop_slice_is_over(options->loop)) {
                return false;
            }
        }
        history->point_at = 0;
        history->step_at++;
    }
    return true;
}

/* Steps of the next piece: grown again while there is room for four times the points. */
static size_t history_piece(const struct td_history *history)
{
    size_t left = history->counts.steps - history->counts.steps_done;
    size_t most =
        history->options.points_max > 0 ? history->options.points_max : TD_HISTORY_POINTS_MAX;
    size_t piece = history->points < most / 4 ? history->piece * 2 : history->piece;
    piece = piece < TD_HISTORY_STEPS_MAX ? piece : TD_HISTORY_STEPS_MAX;
    return piece < left ? piece : left;
}

static enum td_job_result history_work(td_str key, void *context)
{
    struct td_history *history = context;
    (void)key;
    if (history->is_asking) {
        history_ask(history);
        return TD_JOB_DONE;
    }
    if (!history_hand_on(history)) {
        return TD_JOB_AGAIN;
    }
    history->counts.steps_done += history->piece;
    if (history->handler.progress) {
        history->handler.progress(history->context, &history->counts);
    }
    if (history->counts.steps_done >= history->counts.steps) {
        const struct td_error none = TD_ERROR_INIT;
        history_end(history, TD_OK, &none);
        return TD_JOB_DONE;
    }
    history->piece = history_piece(history);
    history_drop_points(history);
    history->is_asking = true;
    history->resource = TD_LEARN_CPU;
    return TD_JOB_AGAIN;
}

/* ---- The whole ---- */

static void history_ask(struct td_history *history)
{
    static const struct td_prometheus_events events = {
        .series = {.series = history_series, .point = history_take}, .done = history_answered};
    const struct td_history_options *options = &history->options;
    td_duration timeout = options->query_timeout;
    td_duration left = options->budget - (history_machine(history) - history->began);
    if (options->budget > 0 && left <= 0) {
        struct td_error err = TD_ERROR_INIT;
        char text[TD_DURATION_TEXT_BYTES];
        (void)td_duration_format(options->budget, text);
        (void)td_error_set(&err, TD_TIMEOUT, "the Prometheus queries took longer than %s in total",
                           text);
        history_end(history, TD_TIMEOUT, &err);
        return;
    }
    td_time start = options->start + (td_duration)history->counts.steps_done * options->step;
    const struct td_prometheus_query query = {
        .text = history->resource == TD_LEARN_CPU ? options->cpu_query : options->memory_query,
        .at = start,
        .end = start + (td_duration)(history->piece - 1) * options->step,
        .step = options->step,
        .timeout = options->budget > 0 && left < timeout ? left : timeout,
    };
    history->call = td_prometheus_ask(options->prometheus, &query, &events, history);
}

struct td_history *td_history_start(const struct td_history_options *options,
                                    const struct td_history_handler *handler, void *context)
{
    struct td_history *history = td_alloc_zero(1, sizeof(*history));
    struct td_arena *arena = &history->arena;
    td_arena_init(arena, TD_TREE_ARENA_BYTES_MAX);
    history->options = *options;
    history->options.cpu_query = td_arena_copy_str(arena, options->cpu_query);
    history->options.memory_query = td_arena_copy_str(arena, options->memory_query);
    history->options.namespace_label = td_arena_copy_str(arena, options->namespace_label);
    history->options.pod_label = td_arena_copy_str(arena, options->pod_label);
    history->options.container_label = td_arena_copy_str(arena, options->container_label);
    /* Prometheus counts milliseconds. */
    history->options.step = options->step - options->step % TD_MILLISECOND;
    history->options.step = history->options.step > 0 ? history->options.step : TD_MILLISECOND;
    history->options.start = options->start - options->start % TD_MILLISECOND;
    td_duration span = options->end > options->start ? options->end - options->start : 0;
    history->handler = *handler;
    history->context = context;
    history->counts.steps = (size_t)(span / history->options.step) + 1;
    history->began = history_machine(history);
    history->containers.count_max = TD_HISTORY_CONTAINERS_MAX;
    td_map_init(&history->names, TD_HISTORY_CONTAINERS_MAX);
    for (size_t i = 0; i < TD_HISTORY_STEPS_MAX; i++) {
        history->steps[i].count_max = TD_HISTORY_POINTS_MAX;
    }
    history->resource = TD_LEARN_CPU;
    history->piece =
        history->counts.steps < TD_HISTORY_STEPS_MAX ? history->counts.steps : TD_HISTORY_STEPS_MAX;
    history->is_asking = true;
    history->work = td_queue_new(options->loop, history_work, history, 1);
    (void)td_queue_add(history->work, TD_STR("history"), NULL); /* one key always fits */
    return history;
}

void td_history_free(struct td_history *history)
{
    if (!history) {
        return;
    }
    if (history->call) {
        td_prometheus_cancel(history->call);
    }
    td_queue_free(history->work);
    for (size_t i = 0; i < TD_HISTORY_STEPS_MAX; i++) {
        td_vec_done(&history->steps[i]);
    }
    td_vec_done(&history->containers);
    td_map_done(&history->names);
    td_arena_done(&history->arena);
    td_free(history);
}

struct td_history_counts td_history_counts(const struct td_history *history)
{
    return history->counts;
}
