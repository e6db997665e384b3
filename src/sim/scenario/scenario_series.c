/*
 * Series of a scenario file. Each shape has a table of its members, so a member of another shape is
 * refused like any unknown one. A trace is read once, however many entries use it: its windows
 * become two rows of steps, average cpu and highest memory, and entries share them.
 */
#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "local/engine/series.h"
#include "sim/replay/trace.h"
#include "sim/scenario/scenario_values.h"

#define SERIES_FIELDS_MAX 8
#define SERIES_SHAPE_TRACE (-1)             /* not a shape of its own: becomes steps */
#define SERIES_TRACE_WINDOW (5 * TD_MINUTE) /* of a trace that has one window only */

/* Stands for the kind of the series' numbers in the tables. */
#define SERIES_NUMBER TD_PLACE_OTHER

struct series_shape {
    const char *name;
    int shape; /* enum td_series_shape, or SERIES_SHAPE_TRACE */
    size_t count;
    struct td_place_field fields[SERIES_FIELDS_MAX];
};

#define AT(member) offsetof(struct td_series, member)
static const struct series_shape series_shapes[] = {
    {"constant",
     TD_SERIES_CONSTANT,
     2,
     {{"value", SERIES_NUMBER, true, AT(low)}, {"noise", TD_PLACE_SHARE, false, AT(noise)}}},
    {"steps",
     TD_SERIES_STEPS,
     4,
     {{"low", SERIES_NUMBER, false, AT(low)},
      {"points", TD_PLACE_OTHER, true, SIZE_MAX},
      {"repeat", TD_PLACE_SPAN, false, AT(period)},
      {"noise", TD_PLACE_SHARE, false, AT(noise)}}},
    {"ramp",
     TD_SERIES_RAMP,
     3,
     {{"points", TD_PLACE_OTHER, true, SIZE_MAX},
      {"repeat", TD_PLACE_SPAN, false, AT(period)},
      {"noise", TD_PLACE_SHARE, false, AT(noise)}}},
    {"day",
     TD_SERIES_DAY,
     4,
     {{"low", SERIES_NUMBER, true, AT(low)},
      {"high", SERIES_NUMBER, true, AT(high)},
      {"peakAt", TD_PLACE_TIME_OF_DAY, false, AT(peak_at)},
      {"noise", TD_PLACE_SHARE, false, AT(noise)}}},
    {"week",
     TD_SERIES_WEEK,
     5,
     {{"low", SERIES_NUMBER, true, AT(low)},
      {"high", SERIES_NUMBER, true, AT(high)},
      {"peakAt", TD_PLACE_TIME_OF_DAY, false, AT(peak_at)},
      {"weekend", TD_PLACE_NUMBER, false, AT(weekend)},
      {"noise", TD_PLACE_SHARE, false, AT(noise)}}},
    {"spikes",
     TD_SERIES_SPIKES,
     5,
     {{"low", SERIES_NUMBER, false, AT(low)},
      {"high", SERIES_NUMBER, true, AT(high)},
      {"every", TD_PLACE_SPAN, true, AT(every)},
      {"for", TD_PLACE_SPAN, true, AT(lasts)},
      {"noise", TD_PLACE_SHARE, false, AT(noise)}}},
    {"trace",
     SERIES_SHAPE_TRACE,
     3,
     {{"file", TD_PLACE_OTHER, true, SIZE_MAX},
      {"repeat", TD_PLACE_OTHER, false, SIZE_MAX},
      {"noise", TD_PLACE_SHARE, false, AT(noise)}}},
};
#undef AT

/* ---- Traces ---- */

/* One trace, as steps; what `place` names must be the path of its file. */
struct series_trace {
    struct td_series cpu;
    struct td_series memory;
};

static int series_count_points(const struct td_place *place, size_t count)
{
    place->source->point_count += count;
    return place->source->point_count > TD_SCENARIO_POINTS_MAX
               ? td_place_refuse(place, "all series together have more than %zu points",
                                 TD_SCENARIO_POINTS_MAX)
               : TD_OK;
}

static void series_from_trace(struct td_arena *arena, const struct td_trace *trace,
                              struct series_trace *ret)
{
    struct td_series_point *cpu = td_arena_array(arena, struct td_series_point, trace->count);
    struct td_series_point *memory = td_arena_array(arena, struct td_series_point, trace->count);
    for (size_t i = 0; i < trace->count; i++) {
        const struct td_trace_window *window = &trace->items[i];
        td_duration at = (window->time - trace->items[0].time) * TD_SECOND;
        cpu[i] = (struct td_series_point){.at = at, .value = (double)window->cpu_milli};
        memory[i] = (struct td_series_point){.at = at, .value = (double)window->memory_bytes_max};
    }
    /* The last window is as long as the one before it. */
    size_t last = trace->count - 1;
    td_duration period =
        cpu[last].at + (last > 0 ? cpu[last].at - cpu[last - 1].at : SERIES_TRACE_WINDOW);
    ret->cpu = (struct td_series){
        .shape = TD_SERIES_STEPS, .points = cpu, .point_count = trace->count, .period = period};
    ret->memory = ret->cpu;
    ret->memory.points = memory;
}

static int series_check_trace(const struct td_place *place, const struct td_trace_set *set)
{
    if (set->traces.count != 1) {
        return td_place_refuse(place, "has %zu containers; a scenario takes files of one",
                               set->traces.count);
    }
    const struct td_trace *trace = &set->traces.items[0];
    int64_t seconds = trace->items[trace->count - 1].time - trace->items[0].time;
    if (seconds > (int64_t)TD_SCENARIO_DAYS_MAX * 86400) {
        return td_place_refuse(place, "is longer than %d days", TD_SCENARIO_DAYS_MAX);
    }
    return series_count_points(place, trace->count);
}

/* The messages of what is in the file are about its own lines. */
static int series_read_trace(const struct td_place *place, td_str path, struct series_trace *ret)
{
    struct td_error err = TD_ERROR_INIT;
    td_auto_arena arena = td_arena_capped(TD_TRACE_BYTES_MAX);
    td_str text;
    if (td_file_read(path.ptr, &arena, TD_TRACE_BYTES_MAX, &text, &err) != TD_OK) {
        td_str why = td_str_from(err.message); /* "PATH: why", and the path is shown already */
        why = td_str_starts_with(why, path) ? td_str_slice(why, path.len + 2, why.len) : why;
        return td_place_refuse(place, "%.*s", TD_STR_ARG(why));
    }
    struct td_trace_set set;
    td_trace_set_init(&set);
    int code = td_trace_read(&set, path, text, place->source->err);
    if (code == TD_OK && td_trace_set_finish(&set, &err) != TD_OK) {
        code = td_place_refuse(place, "%s", err.message);
    }
    code = code == TD_OK ? series_check_trace(place, &set) : code;
    if (code == TD_OK) {
        series_from_trace(place->source->arena, &set.traces.items[0], ret);
    }
    td_trace_set_done(&set);
    td_place_flatten(place->source->err);
    return code;
}

static int series_trace(const struct td_place *place, const struct series_trace **ret)
{
    td_str path = TD_STR_EMPTY;
    int code = td_place_read(place, TD_PLACE_PATH, &path);
    if (code != TD_OK) {
        return code;
    }
    struct td_map *traces = &place->source->traces;
    struct series_trace *trace = td_map_get(traces, path);
    if (!trace) {
        trace = td_arena_new(place->source->arena, struct series_trace);
        code = series_read_trace(place, path, trace);
        if (code == TD_OK) {
            (void)td_map_put(traces, path, trace); /* else it is read again */
        }
    }
    if (code == TD_OK) {
        *ret = trace;
    }
    return code;
}

int td_place_trace(const struct td_place *place, struct td_series *ret_cpu,
                   struct td_series *ret_memory)
{
    static const struct td_place_field fields[] = {
        {"file", TD_PLACE_OTHER, true, SIZE_MAX},
        {"repeat", TD_PLACE_BOOL, false, 0},
    };
    bool repeats = false;
    const struct series_trace *trace = NULL;
    int code = td_place_fields(place, fields, TD_COUNT(fields), &repeats);
    struct td_place file = td_place_member(place, "file");
    code = code == TD_OK ? series_trace(&file, &trace) : code;
    if (code == TD_OK) {
        *ret_cpu = trace->cpu;
        *ret_memory = trace->memory;
        ret_cpu->period = repeats ? trace->cpu.period : 0;
        ret_memory->period = ret_cpu->period;
    }
    return code;
}

/* ---- Shapes ---- */

static int series_points(const struct td_place *place, enum td_place_kind number,
                         struct td_series *series)
{
    const struct td_place_field fields[] = {
        {"at", TD_PLACE_DURATION, true, offsetof(struct td_series_point, at)},
        {"value", number, true, offsetof(struct td_series_point, value)},
    };
    size_t count = 0;
    int code = td_place_list(place, TD_SCENARIO_POINTS_MAX, &count);
    code = code == TD_OK ? series_count_points(place, count) : code;
    if (code == TD_OK && count == 0) {
        return td_place_refuse(place, "has no point");
    }
    struct td_series_point *points =
        td_arena_array(place->source->arena, struct td_series_point, code == TD_OK ? count : 0);
    const struct td_json *item = code == TD_OK ? td_json_first_item(place->value) : NULL;
    for (size_t i = 0; code == TD_OK && i < count; i++, item = item->next) {
        struct td_place at = td_place_item(place, item, i);
        code = td_place_fields(&at, fields, TD_COUNT(fields), &points[i]);
        if (code == TD_OK && i > 0 && points[i].at <= points[i - 1].at) {
            struct td_place when = td_place_member(&at, "at");
            code = td_place_refuse(&when, "must be later than the point before it");
        }
    }
    if (code == TD_OK) {
        series->points = points;
        series->point_count = count;
    }
    return code;
}

/* What the table cannot say: one value against another. */
static int series_check(const struct td_place *place, const struct td_series *series)
{
    struct td_place high = td_place_member(place, "high");
    if (high.value && series->high < series->low) {
        return td_place_refuse(&high, "must not be below low");
    }
    struct td_place lasts = td_place_member(place, "for");
    if (lasts.value && series->lasts >= series->every) {
        return td_place_refuse(&lasts, "must be shorter than every");
    }
    struct td_place period = td_place_member(place, "repeat");
    if (series->period > 0 && series->points[series->point_count - 1].at >= series->period) {
        return td_place_refuse(&period, "must be later than the last point");
    }
    return TD_OK;
}

static int series_find_shape(const struct td_place *place, enum td_place_kind number,
                             const struct series_shape **ret)
{
    struct td_place shape = td_place_member(place, "shape");
    td_str name = TD_STR("constant");
    int code = td_place_read(&shape, TD_PLACE_TEXT, &name);
    bool may_trace = number == TD_PLACE_CPU || number == TD_PLACE_BYTES;
    for (size_t i = 0; code == TD_OK && i < TD_COUNT(series_shapes); i++) {
        if (td_str_equal(name, td_str_from(series_shapes[i].name)) &&
            (may_trace || series_shapes[i].shape != SERIES_SHAPE_TRACE)) {
            *ret = &series_shapes[i];
            return TD_OK;
        }
    }
    return code == TD_OK ? td_place_refuse(&shape, "must be constant, steps, ramp, day, week%s",
                                           may_trace ? ", spikes or trace" : " or spikes")
                         : code;
}

static int series_of_trace(const struct td_place *place, enum td_place_kind number,
                           struct td_series *series)
{
    bool repeats = false;
    const struct series_trace *trace = NULL;
    double noise = series->noise;
    struct td_place repeat = td_place_member(place, "repeat");
    struct td_place file = td_place_member(place, "file");
    int code = td_place_read(&repeat, TD_PLACE_BOOL, &repeats);
    code = code == TD_OK ? series_trace(&file, &trace) : code;
    if (code == TD_OK) {
        *series = number == TD_PLACE_CPU ? trace->cpu : trace->memory;
        series->period = repeats ? series->period : 0;
        series->noise = noise;
    }
    return code;
}

static int series_read(const struct td_place *place, enum td_place_kind number,
                       struct td_series *series)
{
    struct td_place_field fields[SERIES_FIELDS_MAX + 1] = {
        {"shape", TD_PLACE_OTHER, false, SIZE_MAX}};
    const struct series_shape *shape = NULL;
    int code = series_find_shape(place, number, &shape);
    if (code != TD_OK) {
        return code;
    }
    for (size_t i = 0; i < shape->count; i++) {
        fields[i + 1] = shape->fields[i];
        if (fields[i + 1].kind == SERIES_NUMBER && fields[i + 1].offset != SIZE_MAX) {
            fields[i + 1].kind = number;
        }
    }
    code = td_place_fields(place, fields, shape->count + 1, series);
    if (code == TD_OK && shape->shape == SERIES_SHAPE_TRACE) {
        return series_of_trace(place, number, series);
    }
    struct td_place points = td_place_member(place, "points");
    series->shape = (enum td_series_shape)shape->shape;
    if (code == TD_OK && points.value) {
        code = series_points(&points, number, series);
    }
    return code == TD_OK ? series_check(place, series) : code;
}

int td_place_series(const struct td_place *place, enum td_place_kind number, struct td_series *ret)
{
    struct td_series series = {.shape = TD_SERIES_CONSTANT, .peak_at = 14 * TD_HOUR, .weekend = 1};
    int code = TD_OK;
    if (td_json_is(place->value, TD_JSON_TYPE_OBJECT)) {
        code = series_read(place, number, &series);
    } else {
        code = td_place_read(place, number, &series.low);
    }
    if (code == TD_OK) {
        *ret = series;
    }
    return code;
}
