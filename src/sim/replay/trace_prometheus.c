/*
 * Traces from dumps of Prometheus range queries (api/v1/query_range, resultType matrix). The points
 * of each container are collected by kind over all files, and at the end cut into windows of five
 * minutes; a window counts when it has both CPU and memory.
 *
 * What a series measures is told by its name (__name__), else by a label resource="cpu|memory",
 * else by a file name that begins with cpu or memory: an expression such as rate(...) loses the
 * name.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "sim/replay/trace_private.h"

#define WINDOW_SECONDS 300
#define COUNTER_GAP_SECONDS                                                                        \
    900 /* a counter says nothing of the time between points so far apart                          \
         */

static const struct {
    const char *name;
    enum trace_kind kind;
} series_names[] = {
    {"container_cpu_usage_seconds_total", TRACE_CPU_COUNTER},
    {"node_namespace_pod_container:container_cpu_usage_seconds_total:sum_irate", TRACE_CPU_RATE},
    {"node_namespace_pod_container:container_cpu_usage_seconds_total:sum_rate5m", TRACE_CPU_RATE},
    {"container_memory_working_set_bytes", TRACE_MEMORY},
    {"node_namespace_pod_container:container_memory_working_set_bytes", TRACE_MEMORY},
    {"container_memory_usage_bytes", TRACE_MEMORY},
    {"container_memory_rss", TRACE_MEMORY},
};

/* Requests and limits carry their resource as a label. */
static const char *const limit_names[] = {
    "kube_pod_container_resource_limits",
    "kube_pod_container_resource_requests",
};

struct prometheus_reader {
    struct td_trace_set *set;
    struct td_arena *arena;
    td_str path;
    size_t index; /* of the series in result */
};

static int fail(const struct prometheus_reader *reader, const char *where, td_str value,
                const char *why, struct td_error *err)
{
    return td_error_set(err, TD_INVALID, "%.*s: result[%zu]%s: '%.*s': %s",
                        TD_STR_ARG(reader->path), reader->index, where,
                        TD_STR_ARG(td_str_cut_utf8(value, 64)), why);
}

static td_str base_name(td_str path)
{
    size_t start = path.len;
    while (start > 0 && path.ptr[start - 1] != '/') {
        start--;
    }
    return td_str_slice(path, start, path.len);
}

/* "cpu" and "memory" by what the text is or begins with. */
static bool find_resource(td_str text, bool is_prefix, bool *ret_is_cpu)
{
    bool is_cpu =
        is_prefix ? td_str_starts_with(text, TD_STR("cpu")) : td_str_equal(text, TD_STR("cpu"));
    bool is_memory = is_prefix ? td_str_starts_with(text, TD_STR("memory"))
                               : td_str_equal(text, TD_STR("memory"));
    *ret_is_cpu = is_cpu;
    return is_cpu || is_memory;
}

static int series_kind(const struct prometheus_reader *reader, const struct td_json *metric,
                       enum trace_kind *ret, struct td_error *err)
{
    td_str name = td_json_text(metric, "__name__");
    td_str resource = td_json_text(metric, "resource");
    bool is_cpu = false;
    bool is_known = find_resource(resource, false, &is_cpu);
    for (size_t i = 0; i < TD_COUNT(series_names); i++) {
        if (td_str_equal(name, td_str_from(series_names[i].name))) {
            *ret = series_names[i].kind;
            return TD_OK;
        }
    }
    for (size_t i = 0; i < TD_COUNT(limit_names); i++) {
        if (td_str_equal(name, td_str_from(limit_names[i]))) {
            *ret = is_cpu ? TRACE_CPU_LIMIT : TRACE_MEMORY_LIMIT;
            return is_known
                       ? TD_OK
                       : fail(reader, ".metric.resource", resource, "not 'cpu' or 'memory'", err);
        }
    }
    if (name.len > 0) {
        return fail(reader, ".metric.__name__", name, "not a known series", err);
    }
    if (!is_known && !find_resource(base_name(reader->path), true, &is_cpu)) {
        return fail(reader, ".metric.resource", resource,
                    "neither the metric name nor this label tells cpu from memory; rename the file "
                    "to begin with cpu or memory",
                    err);
    }
    *ret = is_cpu ? TRACE_CPU_RATE : TRACE_MEMORY;
    return TD_OK;
}

/* The place for a container's series, made when it is new. */
static int series_of(struct prometheus_reader *reader, const struct td_json *metric,
                     struct td_trace_series **ret, struct td_error *err)
{
    struct td_trace_set *set = reader->set;
    td_str name = td_arena_format(
        &set->arena, "%.*s/%.*s/%.*s", TD_STR_ARG(td_json_text(metric, "namespace")),
        TD_STR_ARG(td_json_text(metric, "pod")), TD_STR_ARG(td_json_text(metric, "container")));
    /* The map holds 1 + index, because the vector moves. */
    size_t place = (size_t)(uintptr_t)td_map_get(&set->by_name, name);
    if (place == 0) {
        struct td_trace_series *series = td_vec_push(&set->series);
        if (!series || td_map_put(&set->by_name, name, (void *)(uintptr_t)set->series.count) < 0) {
            return td_error_set(err, TD_LIMIT, "%.*s: more than %d containers",
                                TD_STR_ARG(reader->path), TD_TRACES_MAX);
        }
        series->name = name;
        for (size_t k = 0; k < TRACE_KIND_COUNT; k++) {
            series->kinds[k].count_max = TD_TRACE_POINTS_MAX;
        }
        place = set->series.count;
    }
    *ret = &set->series.items[place - 1];
    return td_arena_check(&set->arena, err);
}

/* [1772409600.5, "0.25"] */
static int read_point(const struct prometheus_reader *reader, const struct td_json *pair,
                      size_t index, double max, struct trace_point *ret, struct td_error *err)
{
    char where[64];
    (void)snprintf(where, sizeof(where), ".values[%zu]", index);
    const struct td_json *time = td_json_at(pair, 0);
    const struct td_json *value = td_json_at(pair, 1);
    double seconds;
    if (!td_json_is(pair, TD_JSON_TYPE_ARRAY) || pair->count != 2 ||
        !td_json_is(time, TD_JSON_TYPE_NUMBER) || !td_json_is(value, TD_JSON_TYPE_STRING)) {
        return fail(reader, where, TD_STR_EMPTY, "not a pair of timestamp and string", err);
    }
    if (!trace_parse_number(time->text, TRACE_TIME_MAX, &seconds)) {
        return fail(reader, where, time->text, "not a time in seconds", err);
    }
    if (!trace_parse_number(value->text, max, &ret->value)) {
        return fail(reader, where, value->text, "not a number in its range", err);
    }
    ret->time = (int64_t)seconds;
    return TD_OK;
}

static int read_values(struct prometheus_reader *reader, const struct td_json *values,
                       enum trace_kind kind, struct trace_points *points, struct td_error *err)
{
    bool is_cpu = kind == TRACE_CPU_RATE || kind == TRACE_CPU_LIMIT;
    double max = is_cpu ? TRACE_CPU_CORES_MAX : TRACE_MEMORY_BYTES_MAX;
    size_t index = 0;
    for (const struct td_json *pair = td_json_first_item(values); pair; pair = pair->next) {
        struct trace_point point;
        int code = read_point(reader, pair, index++, max, &point, err);
        if (code < 0) {
            return code;
        }
        struct trace_point *place =
            reader->set->point_count < TD_TRACE_POINTS_MAX ? td_vec_push(points) : NULL;
        if (!place) {
            return td_error_set(err, TD_LIMIT, "%.*s: more than %zu points in all files",
                                TD_STR_ARG(reader->path), TD_TRACE_POINTS_MAX);
        }
        reader->set->point_count++;
        *place = point;
    }
    return TD_OK;
}

static int read_series(struct prometheus_reader *reader, const struct td_json *item,
                       struct td_error *err)
{
    const struct td_json *metric = td_json_get(item, TD_STR("metric"));
    const struct td_json *values = td_json_get(item, TD_STR("values"));
    td_str container = td_json_text(metric, "container");
    if (!td_json_is(metric, TD_JSON_TYPE_OBJECT)) {
        return fail(reader, ".metric", TD_STR_EMPTY, "not an object", err);
    }
    if (!td_json_is(values, TD_JSON_TYPE_ARRAY)) {
        return fail(reader, ".values", TD_STR_EMPTY,
                    "not a list: is it the response of a range query?", err);
    }
    if (container.len == 0 || td_str_equal(container, TD_STR("POD"))) {
        return TD_OK; /* sums over a pod, and the pause container */
    }
    enum trace_kind kind = TRACE_MEMORY;
    struct td_trace_series *series = NULL;
    int code = series_kind(reader, metric, &kind, err);
    if (code == TD_OK) {
        code = series_of(reader, metric, &series, err);
    }
    return code < 0 ? code : read_values(reader, values, kind, &series->kinds[kind], err);
}

int trace_read_prometheus(struct td_trace_set *set, td_str path, td_str text, struct td_error *err)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct prometheus_reader reader = {.set = set, .arena = &arena, .path = path};
    const struct td_json_options options = {.bytes_max = TD_TRACE_BYTES_MAX};
    struct td_json *tree = NULL;
    struct td_error cause = TD_ERROR_INIT;
    int code = td_json_parse(&arena, text, &options, &tree, &cause);
    if (code < 0) {
        return td_error_set(err, code, "%.*s:%s", TD_STR_ARG(path), cause.message);
    }
    td_str status = td_json_get_str(tree, TD_STR("status"), TD_STR("success"));
    if (!td_str_equal(status, TD_STR("success"))) {
        return td_error_set(err, TD_INVALID, "%.*s: status: '%.*s': the query failed",
                            TD_STR_ARG(path), TD_STR_ARG(td_str_cut_utf8(status, 64)));
    }
    /* The whole answer, its data, or the bare list of series. */
    const struct td_json *data = td_json_get(tree, TD_STR("data"));
    data = data ? data : tree;
    td_str type = td_json_get_str(data, TD_STR("resultType"), TD_STR("matrix"));
    if (!td_str_equal(type, TD_STR("matrix"))) {
        return td_error_set(err, TD_INVALID, "%.*s: resultType: '%.*s': not 'matrix'",
                            TD_STR_ARG(path), TD_STR_ARG(td_str_cut_utf8(type, 64)));
    }
    const struct td_json *list = td_json_get(data, TD_STR("result"));
    list = list ? list : data;
    if (!td_json_is(list, TD_JSON_TYPE_ARRAY)) {
        return td_error_set(err, TD_INVALID, "%.*s: result: not a list of series",
                            TD_STR_ARG(path));
    }
    for (const struct td_json *item = td_json_first_item(list); item && code == TD_OK;
         item = item->next) {
        code = read_series(&reader, item, err);
        reader.index++;
    }
    return code;
}

static int compare_points(const void *a, const void *b)
{
    const struct trace_point *left = a;
    const struct trace_point *right = b;
    if (left->time != right->time) {
        return left->time < right->time ? -1 : 1;
    }
    return left->value < right->value ? -1 : left->value > right->value;
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

/* From a counter to rates, in place: the first point of each stretch is dropped, and a fall is a
 * restart at 0. */
static void differentiate(struct trace_points *points)
{
    size_t kept = 0;
    for (size_t i = 1; i < points->count; i++) {
        struct trace_point before = points->items[i - 1];
        struct trace_point now = points->items[i];
        int64_t passed = now.time - before.time;
        double grown = now.value >= before.value ? now.value - before.value : now.value;
        if (passed > 0 && passed <= COUNTER_GAP_SECONDS) {
            points->items[kept++] =
                (struct trace_point){.time = now.time, .value = grown / (double)passed};
        }
        /* Slot i - 1 is free from here on, and kept never passes it. */
    }
    points->count = kept;
}

/* A position in one series while windows are cut. */
struct cursor {
    const struct trace_points *points;
    size_t at;
};

struct summary {
    size_t count;
    double mean;
    double p90;
    double max;
};

/* The points before `end`, moving past them; sorts a copy of their values in `scratch`. */
static struct summary take_points(struct cursor *cursor, int64_t end, double *scratch)
{
    struct summary summary = {.count = 0};
    double sum = 0;
    while (cursor->at < cursor->points->count && cursor->points->items[cursor->at].time < end) {
        double value = cursor->points->items[cursor->at++].value;
        scratch[summary.count++] = value;
        sum += value;
    }
    if (summary.count > 0) {
        qsort(scratch, summary.count, sizeof(scratch[0]), compare_doubles);
        summary.mean = sum / (double)summary.count;
        summary.p90 = scratch[(summary.count * 9 + 9) / 10 - 1];
        summary.max = scratch[summary.count - 1];
    }
    return summary;
}

/* The last value before `end`; it stays in force until another comes. */
static double latest(struct cursor *cursor, int64_t end, double before)
{
    while (cursor->at < cursor->points->count && cursor->points->items[cursor->at].time < end) {
        before = cursor->points->items[cursor->at++].value;
    }
    return before;
}

static int64_t next_start(const struct cursor *cpu, const struct cursor *memory)
{
    int64_t next = INT64_MAX;
    if (cpu->at < cpu->points->count) {
        next = cpu->points->items[cpu->at].time;
    }
    if (memory->at < memory->points->count && memory->points->items[memory->at].time < next) {
        next = memory->points->items[memory->at].time;
    }
    return next - next % WINDOW_SECONDS;
}

static int cut_windows(struct td_trace_set *set, struct td_trace *trace,
                       const struct td_trace_series *series, double *scratch, struct td_error *err)
{
    struct cursor cpu = {.points = &series->kinds[TRACE_CPU_RATE]};
    struct cursor memory = {.points = &series->kinds[TRACE_MEMORY]};
    struct cursor cpu_limit = {.points = &series->kinds[TRACE_CPU_LIMIT]};
    struct cursor memory_limit = {.points = &series->kinds[TRACE_MEMORY_LIMIT]};
    double limits[2] = {0, 0};
    int code = TD_OK;
    while (code == TD_OK && (cpu.at < cpu.points->count || memory.at < memory.points->count)) {
        int64_t start = next_start(&cpu, &memory);
        int64_t end = start + WINDOW_SECONDS;
        struct summary used = take_points(&cpu, end, scratch);
        struct summary held = take_points(&memory, end, scratch);
        limits[0] = latest(&cpu_limit, end, limits[0]);
        limits[1] = latest(&memory_limit, end, limits[1]);
        const struct td_trace_window window = {
            .time = start,
            .cpu_milli = trace_milli(used.mean),
            .cpu_p90_milli = trace_milli(used.p90),
            .memory_bytes = (int64_t)held.mean,
            .memory_bytes_max = (int64_t)held.max,
            .cpu_limit_milli = trace_milli(limits[0]),
            .memory_limit_bytes = (int64_t)limits[1],
        };
        if (used.count > 0 && held.count > 0) {
            code = trace_add_window(set, trace, &window, err);
        }
    }
    return code;
}

/* Rates and counters of one container become one list, each list is put in order. */
static void prepare(struct td_trace_series *series)
{
    for (size_t k = 0; k < TRACE_KIND_COUNT; k++) {
        struct trace_points *points = &series->kinds[k];
        if (points->count > 1) {
            qsort(points->items, points->count, sizeof(points->items[0]), compare_points);
        }
    }
    if (series->kinds[TRACE_CPU_RATE].count == 0) {
        struct trace_points empty = series->kinds[TRACE_CPU_RATE];
        differentiate(&series->kinds[TRACE_CPU_COUNTER]);
        series->kinds[TRACE_CPU_RATE] = series->kinds[TRACE_CPU_COUNTER];
        series->kinds[TRACE_CPU_COUNTER] = empty;
    }
}

int trace_make_windows(struct td_trace_set *set, struct td_error *err)
{
    struct scratch {
        TD_VEC_FIELDS(double);
    } scratch = TD_VEC_INIT(TD_TRACE_POINTS_MAX);
    int code = TD_OK;
    for (size_t i = 0; i < set->series.count && code == TD_OK; i++) {
        struct td_trace_series *series = &set->series.items[i];
        struct td_trace *trace = NULL;
        prepare(series);
        /* Room for as many values as one window can have. */
        size_t need = series->kinds[TRACE_CPU_RATE].count + series->kinds[TRACE_MEMORY].count;
        while (scratch.count < need) {
            *td_vec_push(&scratch) = 0;
        }
        code = trace_add(set, series->name, &trace, err);
        if (code == TD_OK) {
            code = cut_windows(set, trace, series, scratch.items, err);
        }
        if (code == TD_OK && trace->count == 0) {
            td_vec_done(trace);
            set->traces.count--; /* never CPU and memory in the same window */
        }
    }
    td_vec_done(&scratch);
    return code;
}
