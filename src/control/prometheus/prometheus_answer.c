/*
 * {"status":"success","data":{"resultType":"matrix","result":[SERIES,SERIES]}}
 *
 * A search by bytes finds the list under data.result and the end of each series in it; everything
 * else is copied aside. A whole series is then parsed strictly, and so is, at the end, what is left
 * around the list, which reads as an answer without series. So the search may be simple: what it
 * takes for a boundary and is none, a parser refuses.
 */
#include "control/prometheus/prometheus_answer.h"

#include <string.h>

#include "base/json/json.h"
#include "base/json/json_reader.h"
#include "base/limits.h"

#define ANSWER_SHOWN_BYTES 300 /* of what Prometheus says, in a message */
#define ANSWER_SECONDS_MAX 9.0e9

void td_prometheus_answer_init(struct td_prometheus_answer *answer,
                               const struct td_prometheus_handler *handler, void *context)
{
    *answer = (struct td_prometheus_answer){.handler = *handler, .context = context};
    td_buf_init(&answer->around, TD_PROMETHEUS_HEAD_BYTES_MAX);
    td_buf_init(&answer->series, TD_PROMETHEUS_SERIES_BYTES_MAX);
    td_arena_init(&answer->arena, TD_TREE_ARENA_BYTES_MAX);
}

void td_prometheus_answer_done(struct td_prometheus_answer *answer)
{
    td_buf_done(&answer->around);
    td_buf_done(&answer->series);
    td_arena_done(&answer->arena);
}

/* ---- One series ---- */

static int series_fail(const struct td_prometheus_answer *answer, const char *what,
                       struct td_error *err)
{
    return td_error_set(err, TD_INVALID, "data.result[%zu]: %s", answer->series_count, what);
}

/* A whole text that is one number; false for "NaN", "+Inf" and anything else. */
static bool series_number(td_str text, double *ret)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, text, 1);
    if (td_json_reader_next(&reader) != TD_JSON_NUMBER) {
        return false;
    }
    const struct td_json number = {.type = TD_JSON_TYPE_NUMBER, .text = reader.text};
    return td_json_reader_next(&reader) == TD_JSON_END && td_json_to_double(&number, ret);
}

static bool series_is_no_number(td_str text)
{
    static const char *const words[] = {"NaN", "+Inf", "-Inf", "Inf"};
    for (size_t i = 0; i < TD_COUNT(words); i++) {
        if (td_str_equal(text, td_str_from(words[i]))) {
            return true;
        }
    }
    return false;
}

/* [1772409600.5, "0.25"], whose bracket was just read. */
static int series_point(struct td_prometheus_answer *answer, struct td_json_reader *reader,
                        struct td_error *err)
{
    double seconds;
    double value = 0;
    if (td_json_reader_next(reader) != TD_JSON_NUMBER || !series_number(reader->text, &seconds) ||
        !(seconds >= 0) || !(seconds < ANSWER_SECONDS_MAX)) {
        return series_fail(answer, "the timestamp of a sample is not a number", err);
    }
    if (td_json_reader_next(reader) != TD_JSON_STRING) {
        return series_fail(answer, "the value of a sample is not a string", err);
    }
    td_str text = reader->text;
    bool is_number = series_number(text, &value);
    if (!is_number && !series_is_no_number(text)) {
        return td_error_set(err, TD_INVALID, "data.result[%zu]: '%.*s': not a number",
                            answer->series_count, TD_STR_ARG(td_str_cut_utf8(text, 64)));
    }
    if (td_json_reader_next(reader) != TD_JSON_END_ARRAY) {
        return series_fail(answer, "a sample is not a pair of timestamp and value", err);
    }
    td_time time = (td_time)(seconds * 1000 + 0.5) * TD_MILLISECOND; /* as Prometheus has them */
    return is_number ? answer->handler.point(answer->context, time, value, err) : TD_OK;
}

/* A list of points, or one. The text was read once already: it is sound. */
static int series_points(struct td_prometheus_answer *answer, td_str text, bool is_list,
                         struct td_error *err)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, text, TD_PROMETHEUS_DEPTH_MAX);
    if (td_json_reader_next(&reader) != TD_JSON_BEGIN_ARRAY) {
        return series_fail(answer, "its samples are not a list", err);
    }
    if (!is_list) {
        return series_point(answer, &reader, err);
    }
    int code = TD_OK;
    enum td_json_token token = td_json_reader_next(&reader);
    for (; code == TD_OK && token == TD_JSON_BEGIN_ARRAY; token = td_json_reader_next(&reader)) {
        code = series_point(answer, &reader, err);
    }
    if (code == TD_OK && token != TD_JSON_END_ARRAY) {
        return series_fail(answer, "a sample is not a list", err);
    }
    return code;
}

static int series_labels(struct td_prometheus_answer *answer, td_str text, struct td_labels *ret,
                         struct td_error *err)
{
    struct td_json_reader reader;
    size_t count = 0;
    struct td_label *pairs =
        td_arena_array(&answer->arena, struct td_label, TD_PROMETHEUS_LABELS_MAX);
    td_json_reader_init(&reader, text, TD_PROMETHEUS_DEPTH_MAX);
    if (td_json_reader_next(&reader) != TD_JSON_BEGIN_OBJECT) {
        return series_fail(answer, "its metric is not an object", err);
    }
    while (td_json_reader_next(&reader) == TD_JSON_KEY) {
        if (count == TD_PROMETHEUS_LABELS_MAX) {
            return td_error_set(err, TD_LIMIT, "data.result[%zu]: more than %zu labels",
                                answer->series_count, TD_PROMETHEUS_LABELS_MAX);
        }
        pairs[count].key = td_json_reader_decode(&reader, &answer->arena);
        if (td_json_reader_next(&reader) != TD_JSON_STRING) {
            return series_fail(answer, "a label value is not a string", err);
        }
        pairs[count++].value = td_json_reader_decode(&reader, &answer->arena);
    }
    *ret = td_labels_from_pairs(&answer->arena, pairs, count);
    return TD_OK;
}

/* Where the members are that count; every byte is checked here. */
struct series_members {
    td_str metric;
    td_str points;
    bool is_list; /* "values", not "value" */
};

static int series_find(const struct td_prometheus_answer *answer, struct series_members *ret,
                       struct td_error *err)
{
    struct td_json_reader reader;
    *ret = (struct series_members){.metric = TD_STR_EMPTY};
    td_json_reader_init(&reader, td_buf_str(&answer->series), TD_PROMETHEUS_DEPTH_MAX);
    (void)td_json_reader_next(&reader); /* the brace that it was found by */
    enum td_json_token token;
    while ((token = td_json_reader_next(&reader)) == TD_JSON_KEY) {
        bool is_metric = td_json_reader_key_is(&reader, TD_STR("metric"));
        bool is_list = td_json_reader_key_is(&reader, TD_STR("values"));
        bool is_points = is_list || td_json_reader_key_is(&reader, TD_STR("value"));
        token = td_json_reader_next(&reader);
        const char *begin = reader.at - 1;
        if (token != TD_JSON_BEGIN_OBJECT && token != TD_JSON_BEGIN_ARRAY) {
            continue; /* no value that counts; what is missing is told below */
        }
        if (td_json_reader_skip(&reader) != TD_OK) {
            break;
        }
        td_str text = {.ptr = begin, .len = (size_t)(reader.at - begin)};
        ret->metric = is_metric ? text : ret->metric;
        ret->points = is_points ? text : ret->points;
        ret->is_list = is_points ? is_list : ret->is_list;
    }
    if (token != TD_JSON_END_OBJECT || td_json_reader_next(&reader) != TD_JSON_END) {
        struct td_error cause = TD_ERROR_INIT;
        (void)td_json_reader_error(&reader, &cause); /* its words are what counts */
        return series_fail(answer, cause.message, err);
    }
    return TD_OK;
}

static int series_read(struct td_prometheus_answer *answer, struct td_error *err)
{
    struct series_members members;
    struct td_labels labels;
    td_arena_reset(&answer->arena);
    int code = series_find(answer, &members, err);
    if (code == TD_OK) {
        code = series_labels(answer, members.metric, &labels, err);
    }
    if (code == TD_OK && members.points.len > 0 &&
        answer->handler.series(answer->context, &labels)) {
        code = series_points(answer, members.points, members.is_list, err);
    }
    answer->series_count++;
    return code;
}

/* ---- The search for boundaries ---- */

static void around_string(struct td_prometheus_answer *answer, char byte)
{
    if (answer->in_escape) {
        answer->in_escape = false;
    } else if (byte == '\\') {
        answer->in_escape = true;
        answer->text_len = TD_PROMETHEUS_KEY_BYTES; /* no key that counts has one */
    } else if (byte == '"') {
        answer->in_string = false;
        answer->last = '"';
        return;
    }
    if (answer->text_len < TD_PROMETHEUS_KEY_BYTES) {
        answer->text[answer->text_len++] = byte;
    }
}

static bool around_is(const struct td_prometheus_answer *answer, unsigned depth, const char *key)
{
    return strncmp(answer->keys[depth], key, TD_PROMETHEUS_KEY_BYTES) == 0;
}

static int around_structure(struct td_prometheus_answer *answer, char byte, struct td_error *err)
{
    bool is_result = byte == '[' && answer->depth == 2 && answer->last == ':' &&
                     around_is(answer, 1, "data") && around_is(answer, 2, "result");
    if (is_result && answer->has_result) {
        return td_error_set(err, TD_INVALID, "data.result: given twice");
    }
    if (is_result) {
        answer->has_result = true;
        answer->place = TD_PROMETHEUS_BETWEEN;
        answer->may_begin = true;
        answer->may_end = true;
    } else if (byte == '{' || byte == '[') {
        answer->depth++;
    } else if (byte == '}' || byte == ']') {
        answer->depth -= answer->depth > 0;
    } else if (byte == ':' && answer->last == '"' && answer->depth < 3) {
        char *key = answer->keys[answer->depth];
        memset(key, 0, TD_PROMETHEUS_KEY_BYTES);
        bool fits = answer->text_len < TD_PROMETHEUS_KEY_BYTES;
        memcpy(key, answer->text, fits ? answer->text_len : 0);
    }
    answer->last = byte;
    return TD_OK;
}

/* Takes bytes around the list; returns how many, or a failure. */
static int around_take(struct td_prometheus_answer *answer, td_str bytes, size_t *ret_taken,
                       struct td_error *err)
{
    size_t at = 0;
    int code = TD_OK;
    while (at < bytes.len && code == TD_OK && answer->place == TD_PROMETHEUS_AROUND) {
        char byte = bytes.ptr[at++];
        if (answer->in_string) {
            around_string(answer, byte);
        } else if (byte == '"') {
            answer->in_string = true;
            answer->text_len = 0;
        } else if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') {
            code = around_structure(answer, byte, err);
        }
    }
    *ret_taken = at;
    (void)td_buf_append(&answer->around, td_str_slice(bytes, 0, at));
    return code == TD_OK ? td_buf_check(&answer->around, "the response envelope", err) : code;
}

/* One byte between two series. */
static int between_take(struct td_prometheus_answer *answer, char byte, struct td_error *err)
{
    if (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t') {
        return TD_OK;
    }
    if (byte == '{' && answer->may_begin) {
        answer->place = TD_PROMETHEUS_INSIDE;
        answer->depth = 1;
        answer->in_string = false;
        td_buf_reset(&answer->series);
        (void)td_buf_append_char(&answer->series, byte); /* the first always fits */
        return TD_OK;
    }
    if (byte == ',' && !answer->may_begin) {
        answer->may_begin = true;
        answer->may_end = false;
        return TD_OK;
    }
    if (byte == ']' && answer->may_end) {
        answer->place = TD_PROMETHEUS_AROUND;
        answer->depth = 2;
        answer->last = ']';
        return td_buf_append_char(&answer->around, byte) == TD_OK
                   ? TD_OK
                   : td_buf_check(&answer->around, "the response envelope", err);
    }
    return series_fail(answer, "expected a series, a comma or the end of the list", err);
}

/* Takes bytes of a series, up to its end. */
static int inside_take(struct td_prometheus_answer *answer, td_str bytes, size_t *ret_taken,
                       struct td_error *err)
{
    size_t at = 0;
    while (at < bytes.len && answer->depth > 0) {
        char byte = bytes.ptr[at++];
        if (answer->in_escape) {
            answer->in_escape = false;
        } else if (answer->in_string) {
            answer->in_escape = byte == '\\';
            answer->in_string = byte != '"';
        } else if (byte == '"') {
            answer->in_string = true;
        } else if (byte == '{' || byte == '[') {
            answer->depth++;
        } else if (byte == '}' || byte == ']') {
            answer->depth--;
        }
    }
    *ret_taken = at;
    if (td_buf_append(&answer->series, td_str_slice(bytes, 0, at)) != TD_OK) {
        return td_error_set(err, TD_LIMIT, "data.result[%zu]: larger than %zu bytes",
                            answer->series_count, TD_PROMETHEUS_SERIES_BYTES_MAX);
    }
    if (answer->depth > 0) {
        return TD_OK;
    }
    answer->place = TD_PROMETHEUS_BETWEEN;
    answer->may_begin = false;
    answer->may_end = true;
    return series_read(answer, err);
}

int td_prometheus_answer_feed(struct td_prometheus_answer *answer, td_str bytes,
                              struct td_error *err)
{
    if (answer->code != TD_OK) {
        return td_error_set(err, answer->code, "the query was cancelled");
    }
    int code = TD_OK;
    for (size_t at = 0; at < bytes.len && code == TD_OK;) {
        size_t taken = 1; /* at least one in each turn */
        td_str rest = td_str_slice(bytes, at, bytes.len);
        switch (answer->place) {
        case TD_PROMETHEUS_AROUND:
            code = around_take(answer, rest, &taken, err);
            break;
        case TD_PROMETHEUS_BETWEEN:
            code = between_take(answer, rest.ptr[0], err);
            break;
        case TD_PROMETHEUS_INSIDE:
            code = inside_take(answer, rest, &taken, err);
            break;
        }
        at += taken;
    }
    answer->code = code;
    return code;
}

/* ---- The end ---- */

/* What Prometheus says of itself, in one line. */
static int finish_refused(const struct td_json *tree, struct td_arena *arena, struct td_error *err)
{
    td_str type = td_json_get_str(tree, TD_STR("errorType"), TD_STR("error"));
    td_str text = td_json_text(tree, "error");
    td_str line =
        td_arena_format(arena, "%.*s: %.*s", TD_STR_ARG(td_str_cut_utf8(type, ANSWER_SHOWN_BYTES)),
                        TD_STR_ARG(td_str_cut_utf8(text, ANSWER_SHOWN_BYTES)));
    char *bytes = td_arena_array(arena, char, line.len + 1);
    for (size_t i = 0; i < line.len; i++) {
        unsigned char byte = (unsigned char)line.ptr[i];
        bytes[i] = byte < 0x20 || byte == 0x7f ? '?' : line.ptr[i];
    }
    return td_error_set(err, TD_INVALID, "%.*s", (int)line.len, bytes);
}

int td_prometheus_answer_finish(struct td_prometheus_answer *answer, struct td_error *err)
{
    if (answer->code != TD_OK) {
        return td_error_set(err, answer->code, "the query was cancelled");
    }
    if (answer->place != TD_PROMETHEUS_AROUND) {
        return td_error_set(err, TD_INVALID, "the response ends within data.result");
    }
    struct td_json *tree;
    struct td_error cause = TD_ERROR_INIT;
    td_arena_reset(&answer->arena);
    const struct td_json_options options = {.bytes_max = TD_PROMETHEUS_HEAD_BYTES_MAX};
    if (td_json_parse(&answer->arena, td_buf_str(&answer->around), &options, &tree, &cause) !=
        TD_OK) {
        return td_error_set(err, TD_INVALID, "the response is not valid JSON: %s", cause.message);
    }
    td_str status = td_json_text(tree, "status");
    if (td_str_equal(status, TD_STR("error"))) {
        return finish_refused(tree, &answer->arena, err);
    }
    if (!td_str_equal(status, TD_STR("success"))) {
        return td_error_set(err, TD_INVALID,
                            "the response is not from the Prometheus API: no status");
    }
    const struct td_json *data = td_json_get(tree, TD_STR("data"));
    td_str type = td_json_text(data, "resultType");
    bool is_series = td_str_equal(type, TD_STR("matrix")) || td_str_equal(type, TD_STR("vector"));
    if (!is_series || !answer->has_result ||
        !td_json_is(td_json_get(data, TD_STR("result")), TD_JSON_TYPE_ARRAY)) {
        return td_error_set(err, TD_INVALID, "no list of series, resultType '%.*s'",
                            TD_STR_ARG(td_str_cut_utf8(type, 64)));
    }
    return TD_OK;
}
