/*
 * The set of traces that both readers (trace_csv.c, trace_prometheus.c) fill: its limits, the
 * choice of the reader, and numbers as both write them.
 */
#include "sim/replay/trace.h"

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "sim/replay/trace_private.h"

void td_trace_set_init(struct td_trace_set *set)
{
    *set = (struct td_trace_set){.traces = TD_VEC_INIT(TD_TRACES_MAX),
                                 .series = TD_VEC_INIT(TD_TRACES_MAX)};
    td_arena_init(&set->arena, TD_TREE_ARENA_BYTES_MAX);
    td_map_init(&set->by_name, TD_TRACES_MAX);
}

static void drop_series(struct td_trace_set *set)
{
    for (size_t i = 0; i < set->series.count; i++) {
        for (size_t k = 0; k < TRACE_KIND_COUNT; k++) {
            td_vec_done(&set->series.items[i].kinds[k]);
        }
    }
    td_vec_done(&set->series);
    td_map_reset(&set->by_name);
    set->point_count = 0;
}

void td_trace_set_done(struct td_trace_set *set)
{
    drop_series(set);
    td_map_done(&set->by_name);
    for (size_t i = 0; i < set->traces.count; i++) {
        td_vec_done(&set->traces.items[i]);
    }
    td_vec_done(&set->traces);
    td_arena_done(&set->arena);
}

int trace_add(struct td_trace_set *set, td_str name, struct td_trace **ret, struct td_error *err)
{
    struct td_trace *trace = td_vec_push(&set->traces);
    if (!trace) {
        return td_error_set(err, TD_LIMIT, "more than %d traces", TD_TRACES_MAX);
    }
    *trace = (struct td_trace){.name = td_arena_copy_str(&set->arena, name),
                               .count_max = TD_TRACE_WINDOWS_MAX};
    *ret = trace;
    return TD_OK;
}

int trace_add_window(struct td_trace_set *set, struct td_trace *trace,
                     const struct td_trace_window *window, struct td_error *err)
{
    struct td_trace_window *place =
        set->window_count < TD_TRACE_WINDOWS_MAX ? td_vec_push(trace) : NULL;
    if (!place) {
        return td_error_set(err, TD_LIMIT, "more than %zu windows in all traces",
                            TD_TRACE_WINDOWS_MAX);
    }
    set->window_count++;
    *place = *window;
    return TD_OK;
}

/* The grammar of JSON's numbers, checked by hand because td_json_to_double trusts its text. */
static bool is_number(td_str text)
{
    size_t at = 0;
    size_t digits[3] = {0, 0, 0}; /* whole, fraction, exponent */
    for (size_t part = 0; part < 3; part++) {
        if (part == 1 && at < text.len && text.ptr[at] == '.') {
            at++;
        } else if (part == 2 && at < text.len && (text.ptr[at] == 'e' || text.ptr[at] == 'E')) {
            at++;
            at += at < text.len && (text.ptr[at] == '+' || text.ptr[at] == '-') ? 1 : 0;
        } else if (part > 0) {
            digits[part] = 1; /* absent, and that is well */
            continue;
        }
        while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9') {
            digits[part]++;
            at++;
        }
    }
    bool has_zero_first = text.len > 0 && text.ptr[0] == '0' && digits[0] > 1;
    return at == text.len && digits[0] > 0 && digits[1] > 0 && digits[2] > 0 && !has_zero_first;
}

bool trace_parse_number(td_str text, double max, double *ret)
{
    const struct td_json number = {.type = TD_JSON_TYPE_NUMBER, .text = text};
    double value;
    if (!is_number(text) || !td_json_to_double(&number, &value) || !(value <= max)) {
        return false;
    }
    *ret = value;
    return true;
}

int64_t trace_milli(double cores)
{
    double bounded = cores < TRACE_CPU_CORES_MAX ? cores : TRACE_CPU_CORES_MAX;
    /* By way of whole microcores, so that 1.139 cores are 1139 and not 1138.9999. */
    return (int64_t)(bounded * 1e6 + 0.5) / 1000;
}

int td_trace_read(struct td_trace_set *set, td_str path, td_str text, struct td_error *err)
{
    td_str trimmed = td_str_trim(text);
    if (trimmed.len == 0) {
        return td_error_set(err, TD_INVALID, "%.*s:1: the file is empty", TD_STR_ARG(path));
    }
    if (trimmed.ptr[0] == '{' || trimmed.ptr[0] == '[') {
        return trace_read_prometheus(set, path, text, err);
    }
    return trace_read_csv(set, path, text, err);
}

int td_trace_set_finish(struct td_trace_set *set, struct td_error *err)
{
    int code = trace_make_windows(set, err);
    drop_series(set);
    if (code == TD_OK && set->window_count == 0) {
        return td_error_set(err, TD_INVALID, "the traces have no window with both cpu and memory");
    }
    return code;
}
