/*
 * Samples come from the world with a timer of its own loop. Rows are found by the names of their
 * workload and made when it is first seen; those beyond the cap are counted, not kept.
 */
#include "sim/record/record.h"

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/loop.h"
#include "base/vec.h"
#include "kube/objectkey.h"
#include "local/cluster.h"
#include "sim/world/world.h"
#include "sim/world/world_sample.h"

#define RECORD_EVERY (TD_ENGINE_TICK_MS * TD_MILLISECOND)
#define RECORD_TEXT_BYTES_MAX ((size_t)512) /* of what happened; the rest is cut */
#define RECORD_LEFT_OUT_MAX ((size_t)10000) /* that are counted */

struct td_record {
    td_duration lasts;
    size_t columns_max;
    struct td_curve_grid grid;
    struct td_arena arena; /* names and texts */
    struct td_world *world;
    struct td_timer *timer;
    struct td_map by_name;
    struct td_record_row **rows; /* owned; TD_RECORD_ROWS_MAX places, as left_out */
    size_t row_count;
    struct td_map left_out; /* names of workloads that found no place */
    struct td_curve totals[TD_RECORD_TOTALS];
    struct {
        TD_VEC_FIELDS(struct td_record_event);
    } events;
    uint64_t events_left_out;
};

struct td_record *td_record_new(td_duration lasts, size_t columns_max)
{
    struct td_record *record = td_alloc_zero(1, sizeof(*record));
    record->lasts = lasts;
    record->columns_max = columns_max;
    record->grid =
        td_curve_grid(lasts, RECORD_EVERY, columns_max > 0 ? columns_max : TD_RECORD_COLUMNS);
    record->rows = td_alloc_zero(TD_RECORD_ROWS_MAX, sizeof(struct td_record_row *));
    record->events.count_max = TD_RECORD_EVENTS_MAX;
    td_arena_init(&record->arena, TD_TREE_ARENA_BYTES_MAX);
    td_map_init(&record->by_name, TD_RECORD_ROWS_MAX);
    td_map_init(&record->left_out, RECORD_LEFT_OUT_MAX);
    return record;
}

void td_record_free(struct td_record *record)
{
    if (!record) {
        return;
    }
    td_record_end(record);
    for (size_t i = 0; i < record->row_count; i++) {
        for (size_t s = 0; s < TD_RECORD_CURVES; s++) {
            td_curve_done(&record->rows[i]->curves[s]);
        }
        td_free(record->rows[i]->latency);
        td_free(record->rows[i]);
    }
    for (size_t t = 0; t < TD_RECORD_TOTALS; t++) {
        td_curve_done(&record->totals[t]);
    }
    td_free(record->rows);
    td_vec_done(&record->events);
    td_map_done(&record->by_name);
    td_map_done(&record->left_out);
    td_arena_done(&record->arena);
    td_free(record);
}

/* ---- Rows ---- */

const struct td_record_row *td_record_find(const struct td_record *record, td_str ns, td_str kind,
                                           td_str name, td_str role)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&record->by_name, TD_KEY_LINES(buffer, ns, kind, name, role));
}

/* NULL: there are too many. */
static struct td_record_row *record_row(struct td_record *record,
                                        const struct td_world_sample *sample)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, sample->ns, sample->kind, sample->name, sample->role);
    struct td_record_row *row = td_map_get(&record->by_name, key);
    if (row || td_map_has(&record->left_out, key)) {
        return row;
    }
    bool is_full = record->row_count == TD_RECORD_ROWS_MAX;
    if (is_full && record->left_out.count == RECORD_LEFT_OUT_MAX) {
        return NULL;
    }
    key = td_arena_copy_str(&record->arena, key);
    if (is_full) {
        (void)td_map_put(&record->left_out, key, NULL); /* there is room */
        return NULL;
    }
    row = td_alloc_zero(1, sizeof(*row));
    row->ns = td_arena_copy_str(&record->arena, sample->ns);
    row->kind = td_arena_copy_str(&record->arena, sample->kind);
    row->name = td_arena_copy_str(&record->arena, sample->name);
    row->role = td_arena_copy_str(&record->arena, sample->role);
    row->replicas = -1;
    row->throttled_cpu_seconds = sample->throttled_cpu_seconds;
    row->wanted_cpu_seconds = sample->wanted_cpu_seconds;
    record->rows[record->row_count++] = row;
    (void)td_map_put(&record->by_name, key, row); /* its cap is that of rows */
    return row;
}

/* ---- Samples ---- */

static double known(double value)
{
    return value < 0 ? (double)NAN : value;
}

static void row_count_replicas(struct td_record_row *row, const struct td_world_sample *sample)
{
    int64_t replicas = sample->replicas;
    row->replicas_most = replicas > row->replicas_most ? replicas : row->replicas_most;
    if (sample->has_replicas) {
        row->replica_changes += row->replicas >= 0 && row->replicas != replicas;
        row->replicas = replicas;
    }
}

static void row_take_requests(struct td_record_row *row, const struct td_world_sample *sample)
{
    if (sample->latency_seconds < 0) {
        return;
    }
    if (!row->latency) {
        row->latency = td_alloc_zero(1, sizeof(*row->latency));
    }
    td_record_latency_add(row->latency, sample->latency_seconds,
                          sample->served_per_second * (double)RECORD_EVERY / (double)TD_SECOND);
}

/* Percent of what was wanted since the last sample. */
static double row_throttled(struct td_record_row *row, const struct td_world_sample *sample)
{
    double wanted = sample->wanted_cpu_seconds - row->wanted_cpu_seconds;
    double throttled = sample->throttled_cpu_seconds - row->throttled_cpu_seconds;
    row->wanted_cpu_seconds = sample->wanted_cpu_seconds;
    row->throttled_cpu_seconds = sample->throttled_cpu_seconds;
    return wanted > 0 ? 100 * (throttled > 0 ? throttled : 0) / wanted : (double)NAN;
}

struct record_moment {
    struct td_record *record;
    td_duration at;
};

static void record_sample(void *context, const struct td_world_sample *sample)
{
    const struct record_moment *moment = context;
    struct td_record_row *row = record_row(moment->record, sample);
    if (!row) {
        return;
    }
    const double values[TD_RECORD_CURVES] = {
        [TD_RECORD_CPU_USE] = known(sample->use_middle[TD_WORLD_CPU]),
        [TD_RECORD_CPU_MOST] = known(sample->use_most[TD_WORLD_CPU]),
        [TD_RECORD_CPU_REQUEST] = known(sample->request[TD_WORLD_CPU]),
        [TD_RECORD_CPU_LIMIT] = known(sample->limit[TD_WORLD_CPU]),
        [TD_RECORD_CPU_TARGET] = known(sample->target[TD_WORLD_CPU]),
        [TD_RECORD_CPU_LOWER] = known(sample->lower[TD_WORLD_CPU]),
        [TD_RECORD_CPU_UPPER] = known(sample->upper[TD_WORLD_CPU]),
        [TD_RECORD_MEMORY_USE] = known(sample->use_middle[TD_WORLD_MEMORY]),
        [TD_RECORD_MEMORY_MOST] = known(sample->use_most[TD_WORLD_MEMORY]),
        [TD_RECORD_MEMORY_REQUEST] = known(sample->request[TD_WORLD_MEMORY]),
        [TD_RECORD_MEMORY_LIMIT] = known(sample->limit[TD_WORLD_MEMORY]),
        [TD_RECORD_MEMORY_TARGET] = known(sample->target[TD_WORLD_MEMORY]),
        [TD_RECORD_MEMORY_LOWER] = known(sample->lower[TD_WORLD_MEMORY]),
        [TD_RECORD_MEMORY_UPPER] = known(sample->upper[TD_WORLD_MEMORY]),
        [TD_RECORD_REPLICAS] = (double)sample->replicas,
        [TD_RECORD_READY] = (double)sample->ready_count,
        [TD_RECORD_WANTED] = known((double)sample->wanted),
        [TD_RECORD_THROTTLED] = row_throttled(row, sample),
        [TD_RECORD_LATENCY] =
            sample->served_per_second > 0 ? known(sample->latency_seconds) : (double)NAN,
    };
    for (size_t s = 0; s < TD_RECORD_CURVES; s++) {
        td_curve_put(&row->curves[s], &moment->record->grid, moment->at, values[s]);
    }
    row_count_replicas(row, sample);
    row_take_requests(row, sample);
}

static void record_take(struct td_record *record)
{
    struct record_moment moment = {
        .record = record,
        .at = td_engine_since(td_cluster_engine(td_world_cluster(record->world)))};
    struct td_world_sum sum = td_world_take_sample(record->world, record_sample, &moment);
    uint64_t scalings = 0;
    for (size_t i = 0; i < record->row_count; i++) {
        scalings += record->rows[i]->replica_changes;
    }
    const double values[TD_RECORD_TOTALS] = {
        [TD_RECORD_CPU_USED] = sum.used[TD_WORLD_CPU],
        [TD_RECORD_CPU_REQUESTED] = sum.requested[TD_WORLD_CPU],
        [TD_RECORD_CPU_ROOM] = sum.room[TD_WORLD_CPU],
        [TD_RECORD_MEMORY_USED] = sum.used[TD_WORLD_MEMORY],
        [TD_RECORD_MEMORY_REQUESTED] = sum.requested[TD_WORLD_MEMORY],
        [TD_RECORD_MEMORY_ROOM] = sum.room[TD_WORLD_MEMORY],
        [TD_RECORD_PODS] = (double)sum.pod_count,
        [TD_RECORD_PENDING] = (double)sum.pending_count,
        [TD_RECORD_KILLS] = (double)sum.kill_count,
        [TD_RECORD_EVICTIONS] = (double)sum.eviction_count,
        [TD_RECORD_RESIZES] = (double)sum.resize_count,
        [TD_RECORD_SCALINGS] = (double)scalings,
    };
    for (size_t t = 0; t < TD_RECORD_TOTALS; t++) {
        td_curve_put(&record->totals[t], &record->grid, moment.at, values[t]);
    }
}

static void record_due(struct td_timer *timer, void *context)
{
    record_take(context);
    td_timer_set(timer, RECORD_EVERY);
}

static void record_count_row(void *context, const struct td_world_sample *sample)
{
    (void)sample;
    ++*(size_t *)context;
}

/* Many workloads have fewer columns each, so that a report of them stays one that a browser
 * opens. */
static void record_fit(struct td_record *record)
{
    size_t rows = 0;
    (void)td_world_take_sample(record->world, record_count_row, &rows);
    if (record->columns_max == 0 && rows > TD_RECORD_ROWS_FULL) {
        size_t columns = TD_RECORD_COLUMNS * TD_RECORD_ROWS_FULL / rows;
        columns = columns > TD_RECORD_COLUMNS_MIN ? columns : TD_RECORD_COLUMNS_MIN;
        record->grid = td_curve_grid(record->lasts, RECORD_EVERY, columns);
    }
}

void td_record_begin(struct td_record *record, struct td_loop *loop, struct td_world *world)
{
    record->world = world;
    record_fit(record);
    record->timer = td_timer_new(loop, record_due, record);
    record_take(record);
    td_timer_set(record->timer, RECORD_EVERY);
}

void td_record_end(struct td_record *record)
{
    td_timer_free(record->timer);
    record->timer = NULL;
    record->world = NULL;
}

/* ---- What happened ---- */

static td_str record_text(struct td_record *record, td_str text)
{
    return td_arena_copy_str(&record->arena, td_str_cut_utf8(text, RECORD_TEXT_BYTES_MAX));
}

void td_record_tell(struct td_record *record, const struct td_world_event *event)
{
    struct td_record_event *kept = td_vec_push(&record->events);
    if (!kept) {
        record->events_left_out++;
        return;
    }
    *kept = (struct td_record_event){
        .at = event->at,
        .is_scenario = td_str_equal(event->type, TD_STR("Scenario")),
        .is_warning = td_str_equal(event->type, TD_STR("Warning")),
        .reason = record_text(record, event->reason),
        .kind = record_text(record, event->kind),
        .ns = record_text(record, event->ns),
        .name = record_text(record, event->name),
        .workload_kind = record_text(record, event->workload_kind),
        .workload_name = record_text(record, event->workload_name),
        .role = record_text(record, event->role),
        .message = record_text(record, event->message),
        .decision = record_text(record, event->decision),
    };
}

/* ---- Afterwards ---- */

struct td_curve_grid td_record_grid(const struct td_record *record)
{
    return record->grid;
}

const struct td_record_row *td_record_row_at(const struct td_record *record, size_t index)
{
    return index < record->row_count ? record->rows[index] : NULL;
}

size_t td_record_rows_left_out(const struct td_record *record)
{
    return record->left_out.count;
}

const struct td_curve *td_record_total(const struct td_record *record, enum td_record_total total)
{
    return &record->totals[total];
}

const struct td_record_event *td_record_event_at(const struct td_record *record, size_t index)
{
    return index < record->events.count ? &record->events.items[index] : NULL;
}

uint64_t td_record_events_left_out(const struct td_record *record)
{
    return record->events_left_out;
}
