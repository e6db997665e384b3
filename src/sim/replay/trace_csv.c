/* Traces as CSV: a header of known names in any order, then numbers. No quotes: none of the fields
 * has a use for them. */
#include "base/error.h"
#include "sim/replay/trace_private.h"

#define CSV_COLUMNS_MAX 16
#define LACKING (-1.0)

enum csv_column {
    CSV_TIME,
    CSV_CPU_AVG,
    CSV_CPU_P90,
    CSV_CPU_MAX,
    CSV_MEMORY_AVG,
    CSV_MEMORY_MAX,
    CSV_CPU_LIMIT,
    CSV_MEMORY_LIMIT,
    CSV_KNOWN
};

static const struct {
    const char *name;
    double max;
    bool is_required;
    bool may_lack; /* empty or negative where the window was too short to tell, as Borg's are */
} csv_columns[CSV_KNOWN] = {
    [CSV_TIME] = {"time_s", TRACE_TIME_MAX, true, false},
    [CSV_CPU_AVG] = {"cpu_avg_cores", TRACE_CPU_CORES_MAX, true, false},
    [CSV_CPU_P90] = {"cpu_p90_cores", TRACE_CPU_CORES_MAX, false, true},
    [CSV_CPU_MAX] = {"cpu_max_cores", TRACE_CPU_CORES_MAX, false, true},
    [CSV_MEMORY_AVG] = {"memory_avg_bytes", TRACE_MEMORY_BYTES_MAX, false, false},
    [CSV_MEMORY_MAX] = {"memory_max_bytes", TRACE_MEMORY_BYTES_MAX, true, false},
    [CSV_CPU_LIMIT] = {"cpu_limit_cores", TRACE_CPU_CORES_MAX, false, false},
    [CSV_MEMORY_LIMIT] = {"memory_limit_bytes", TRACE_MEMORY_BYTES_MAX, false, false},
};

struct csv_reader {
    td_str path;
    size_t line;                            /* from 1 */
    enum csv_column order[CSV_COLUMNS_MAX]; /* what the file's columns are */
    size_t column_count;
    bool has[CSV_KNOWN];
};

/* The next line without its end; false after the last one. */
static bool next_line(td_str *rest, td_str *ret_line)
{
    if (rest->len == 0) {
        return false;
    }
    size_t end = td_str_find(*rest, '\n', 0);
    *ret_line = td_str_trim(td_str_slice(*rest, 0, end));
    *rest = td_str_slice(*rest, end + 1, rest->len);
    return true;
}

/* The next field; the text after the last comma is a field too. */
static bool next_field(td_str line, size_t *at, td_str *ret_field)
{
    if (*at > line.len) {
        return false;
    }
    size_t end = td_str_find(line, ',', *at);
    *ret_field = td_str_trim(td_str_slice(line, *at, end));
    *at = end + 1;
    return true;
}

static int read_header(struct csv_reader *reader, td_str line, struct td_error *err)
{
    size_t at = 0;
    td_str field;
    while (next_field(line, &at, &field)) {
        size_t known = 0;
        while (known < CSV_KNOWN && !td_str_equal(field, td_str_from(csv_columns[known].name))) {
            known++;
        }
        if (known == CSV_KNOWN || reader->has[known]) {
            return td_error_set(err, TD_INVALID, "%.*s:%zu: column %zu: '%.*s': %s",
                                TD_STR_ARG(reader->path), reader->line, reader->column_count + 1,
                                TD_STR_ARG(td_str_cut_utf8(field, 64)),
                                known == CSV_KNOWN ? "unknown column; docs/replay.md lists them"
                                                   : "duplicate column");
        }
        reader->has[known] = true;
        reader->order[reader->column_count++] = (enum csv_column)known;
    }
    for (size_t known = 0; known < CSV_KNOWN; known++) {
        if (csv_columns[known].is_required && !reader->has[known]) {
            return td_error_set(err, TD_INVALID, "%.*s:%zu: %s: the column is missing",
                                TD_STR_ARG(reader->path), reader->line, csv_columns[known].name);
        }
    }
    return TD_OK;
}

/* LACKING for what a window may lack and lacks. */
static bool read_value(td_str field, enum csv_column column, double *ret)
{
    if (csv_columns[column].may_lack && field.len == 0) {
        *ret = LACKING;
        return true;
    }
    bool is_lacking = csv_columns[column].may_lack && field.ptr[0] == '-';
    if (!trace_parse_number(td_str_slice(field, is_lacking ? 1 : 0, field.len),
                            csv_columns[column].max, ret)) {
        return false;
    }
    *ret = is_lacking ? LACKING : *ret;
    return true;
}

static int read_row(struct csv_reader *reader, td_str line, double values[CSV_KNOWN],
                    struct td_error *err)
{
    size_t at = 0;
    size_t count = 0;
    td_str field;
    while (next_field(line, &at, &field)) {
        if (count < reader->column_count) {
            enum csv_column column = reader->order[count];
            if (!read_value(field, column, &values[column])) {
                return td_error_set(
                    err, TD_INVALID, "%.*s:%zu: %s: '%.*s': not a number from 0 to %g",
                    TD_STR_ARG(reader->path), reader->line, csv_columns[column].name,
                    TD_STR_ARG(td_str_cut_utf8(field, 64)), csv_columns[column].max);
            }
        }
        count++;
    }
    if (count != reader->column_count) {
        return td_error_set(err, TD_INVALID, "%.*s:%zu: %zu columns, but the header has %zu",
                            TD_STR_ARG(reader->path), reader->line, count, reader->column_count);
    }
    return TD_OK;
}

static struct td_trace_window row_window(const struct csv_reader *reader,
                                         const double values[CSV_KNOWN])
{
    bool has_p90 = reader->has[CSV_CPU_P90] && values[CSV_CPU_P90] >= 0;
    enum csv_column p90 = has_p90 ? CSV_CPU_P90 : CSV_CPU_AVG;
    enum csv_column average = reader->has[CSV_MEMORY_AVG] ? CSV_MEMORY_AVG : CSV_MEMORY_MAX;
    return (struct td_trace_window){
        .time = (int64_t)values[CSV_TIME],
        .cpu_milli = trace_milli(values[CSV_CPU_AVG]),
        .cpu_p90_milli = trace_milli(values[p90]),
        .memory_bytes = (int64_t)values[average],
        .memory_bytes_max = (int64_t)values[CSV_MEMORY_MAX],
        .cpu_limit_milli = trace_milli(values[CSV_CPU_LIMIT]),
        .memory_limit_bytes = (int64_t)values[CSV_MEMORY_LIMIT],
    };
}

/* "traces/web-1.csv" is the trace "web-1". */
static td_str name_of(td_str path)
{
    size_t start = path.len;
    while (start > 0 && path.ptr[start - 1] != '/') {
        start--;
    }
    td_str name = td_str_slice(path, start, path.len);
    bool has_ending = td_str_ends_with(name, TD_STR(".csv")) && name.len > 4;
    return has_ending ? td_str_slice(name, 0, name.len - 4) : name;
}

int trace_read_csv(struct td_trace_set *set, td_str path, td_str text, struct td_error *err)
{
    struct csv_reader reader = {.path = path, .line = 1};
    struct td_trace *trace = NULL;
    td_str rest = text;
    td_str line;
    int code = trace_add(set, name_of(path), &trace, err);
    if (code == TD_OK && next_line(&rest, &line)) {
        code = read_header(&reader, line, err);
    }
    while (code == TD_OK && next_line(&rest, &line)) {
        double values[CSV_KNOWN] = {0};
        reader.line++;
        if (line.len == 0 && td_str_trim(rest).len == 0) {
            break; /* an empty last line */
        }
        code = read_row(&reader, line, values, err);
        if (code < 0) {
            return code;
        }
        struct td_trace_window window = row_window(&reader, values);
        if (trace->count > 0 && window.time <= trace->items[trace->count - 1].time) {
            return td_error_set(err, TD_INVALID, "%.*s:%zu: time_s: '%lld': not later than '%lld'",
                                TD_STR_ARG(path), reader.line, (long long)window.time,
                                (long long)trace->items[trace->count - 1].time);
        }
        code = trace_add_window(set, trace, &window, err);
    }
    if (code == TD_OK && trace->count == 0) {
        return td_error_set(err, TD_INVALID, "%.*s:%zu: no rows after the header", TD_STR_ARG(path),
                            reader.line);
    }
    return code;
}
