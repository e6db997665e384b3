/*
 * Each type is one JSON token: a string that a parser of base/timefmt.h reads, or null for the zero
 * time. Writing is the reverse.
 */
#include "kube/metatime.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json_reader.h"

#define TOKEN_DEPTH_MAX 1 /* one token: a collection is refused anyway */
#define MICRO_DIGITS 6
#define TOKEN_ARENA_BYTES_MAX TD_JSON_BYTES_MAX /* a decoded string is no longer than its token */

typedef int (*text_parse_fn)(td_str text, void *ret, struct td_error *err);

static int parse_time(td_str text, void *ret, struct td_error *err)
{
    return td_time_parse(text, ret, err);
}

static int parse_micro_time(td_str text, void *ret, struct td_error *err)
{
    return td_time_parse_fraction(text, MICRO_DIGITS, ret, err);
}

static int parse_duration(td_str text, void *ret, struct td_error *err)
{
    return td_duration_parse(text, ret, err);
}

/* Go decodes the token into a string first; null leaves that empty, and the parser then refuses it.
 */
static int parse_string_token(td_str token, text_parse_fn parse, void *ret, struct td_error *err)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, token, TOKEN_DEPTH_MAX);
    enum td_json_token kind = td_json_reader_next(&reader);
    if (kind == TD_JSON_ERROR) {
        return td_json_reader_error(&reader, err);
    }
    if (kind != TD_JSON_STRING && kind != TD_JSON_NULL) {
        return td_error_set(err, TD_INVALID, "%.*s is not a string", TD_STR_ARG(token));
    }
    td_auto_arena arena = td_arena_capped(TOKEN_ARENA_BYTES_MAX);
    td_str text = kind == TD_JSON_STRING ? td_json_reader_decode(&reader, &arena) : TD_STR_EMPTY;
    if (td_json_reader_next(&reader) != TD_JSON_END) {
        return td_json_reader_error(&reader, err);
    }
    return parse(text, ret, err);
}

int td_metatime_parse_json(td_str token, struct td_instant *ret, struct td_error *err)
{
    if (td_str_equal(token, TD_STR("null"))) {
        *ret = TD_INSTANT_ZERO;
        return TD_OK;
    }
    return parse_string_token(token, parse_time, ret, err);
}

int td_microtime_parse_json(td_str token, struct td_instant *ret, struct td_error *err)
{
    if (td_str_equal(token, TD_STR("null"))) {
        *ret = TD_INSTANT_ZERO;
        return TD_OK;
    }
    return parse_string_token(token, parse_micro_time, ret, err);
}

int td_metaduration_parse_json(td_str token, td_duration *ret, struct td_error *err)
{
    return parse_string_token(token, parse_duration, ret, err);
}

static void write_quoted(const char *text, size_t len, struct td_buf *out)
{
    /* Times and durations hold nothing that JSON escapes. A full buffer stays full. */
    (void)td_buf_append_char(out, '"');
    (void)td_buf_append(out, (td_str){.ptr = text, .len = len});
    (void)td_buf_append_char(out, '"');
}

static void write_time(struct td_instant instant, int fraction_digits, struct td_buf *out)
{
    struct td_instant zero = TD_INSTANT_ZERO;
    if (instant.unix_seconds == zero.unix_seconds && instant.nanos == zero.nanos) {
        (void)td_buf_append(out, TD_STR("null")); /* A full buffer stays full. */
        return;
    }
    char text[TD_TIME_TEXT_BYTES];
    size_t len = td_time_format(instant, fraction_digits, text);
    write_quoted(text, len, out);
}

void td_metatime_write_json(struct td_instant instant, struct td_buf *out)
{
    write_time(instant, 0, out);
}

void td_microtime_write_json(struct td_instant instant, struct td_buf *out)
{
    write_time(instant, MICRO_DIGITS, out);
}

void td_metaduration_write_json(td_duration duration, struct td_buf *out)
{
    char text[TD_DURATION_TEXT_BYTES];
    size_t len = td_duration_format(duration, text);
    write_quoted(text, len, out);
}
