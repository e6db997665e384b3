/*
 * Finds the end of each value with a small machine over quotes and brackets, and hands whole
 * values to the parser; bytes of an unfinished value are kept.
 */
#include "base/json/json_stream.h"

#include <stdint.h>

#include "base/error.h"
#include "base/json/json_scan.h"

/* A feed may bring several values, so the buffer holds more than one of the largest. */
#define STREAM_PIECE_BYTES_MAX ((size_t)1 << 20)

void td_json_stream_init(struct td_json_stream *stream, size_t value_bytes_max)
{
    size_t cap = value_bytes_max < SIZE_MAX / 4 ? value_bytes_max : SIZE_MAX / 4;
    *stream = (struct td_json_stream){.value_bytes_max = cap};
    td_buf_init(&stream->pending, cap * 2 + STREAM_PIECE_BYTES_MAX);
}

void td_json_stream_done(struct td_json_stream *stream)
{
    td_buf_done(&stream->pending);
}

/* What no JSON text can hold ends the value at once, for the parser to refuse: a quote or bracket
 * that is missing must not make one value of all that follows. */
static void stream_break(struct td_json_stream *stream)
{
    stream->in_string = false;
    stream->in_escape = false;
    stream->depth = 0;
}

/* May a string or a collection begin behind this byte of the structure? */
static bool stream_may_begin(char before, char byte)
{
    return before == ',' || before == ':' || before == '[' || (before == '{' && byte == '"');
}

/* Inside a string: to the byte after its closing quote, or to the end. */
static const char *stream_pass_string(struct td_json_stream *stream, const char *at,
                                      const char *end)
{
    while (at < end) {
        if (stream->in_escape && (unsigned char)*at >= 0x20) {
            stream->in_escape = false;
            at++;
            continue;
        }
        for (unsigned plain = JSON_SCAN_WIDTH;
             plain == JSON_SCAN_WIDTH && end - at >= JSON_SCAN_WIDTH;) {
            plain = json_scan_plain(at);
            at += plain;
        }
        if (at == end) {
            break;
        }
        char byte = *at++;
        if ((unsigned char)byte < 0x20) {
            stream_break(stream);
            break;
        }
        stream->in_escape = byte == '\\';
        if (byte == '"') {
            stream->in_string = false;
            break;
        }
    }
    return at;
}

/* Inside a scalar that is no string: to the byte that cannot belong to it, or to the end. */
static const char *stream_pass_scalar(struct td_json_stream *stream, const char *at,
                                      const char *end)
{
    while (at < end && !json_scan_is_space(*at) && !strchr("{}[]\"", *at)) {
        at++;
    }
    stream->in_scalar = at == end;
    return at;
}

/* Between the strings of a collection: to the next quote or bracket and past it, or to the end. */
static const char *stream_pass_structure(struct td_json_stream *stream, const char *at,
                                         const char *end)
{
    while (at < end) {
        char byte = *at++;
        if (json_scan_is_space(byte)) {
            continue;
        }
        char before = stream->last;
        stream->last = byte;
        if ((byte == '"' || byte == '{' || byte == '[') && !stream_may_begin(before, byte)) {
            stream_break(stream);
            break;
        }
        if (byte == '"') {
            stream->in_string = true;
            break;
        }
        if (byte == '{' || byte == '[') {
            stream->depth++;
        } else if (byte == '}' || byte == ']') {
            stream->depth--;
            if (stream->depth == 0) {
                break;
            }
        }
    }
    return at;
}

/* The first byte of a value; returns the byte after it. Brackets that close nothing are handed out
 * alone, for the parser to refuse. */
static const char *stream_begin(struct td_json_stream *stream, const char *at)
{
    stream->is_started = true;
    stream->last = *at;
    stream->in_string = *at == '"';
    stream->depth = *at == '{' || *at == '[';
    stream->in_scalar = !stream->in_string && stream->depth == 0 && *at != '}' && *at != ']';
    return at + 1;
}

/* Go on looking for the end of the value at `taken`; true when it was found at `scanned`. */
static bool stream_scan(struct td_json_stream *stream)
{
    td_str bytes = td_buf_str(&stream->pending);
    const char *at = bytes.ptr + stream->scanned;
    const char *end = bytes.ptr + bytes.len;
    if (!stream->is_started) {
        at = json_scan_space(at, end);
        stream->taken = (size_t)(at - bytes.ptr);
        if (at < end) {
            at = stream_begin(stream, at);
        }
    }
    while (at < end && (stream->in_string || stream->in_scalar || stream->depth > 0)) {
        if (stream->in_string) {
            at = stream_pass_string(stream, at, end);
        } else if (stream->in_scalar) {
            at = stream_pass_scalar(stream, at, end);
        } else {
            at = stream_pass_structure(stream, at, end);
        }
    }
    stream->scanned = (size_t)(at - bytes.ptr);
    bool is_open =
        stream->in_string || stream->depth > 0 || (stream->in_scalar && !stream->is_finished);
    return stream->is_started && !is_open;
}

/* Look for the next boundary unless one is waiting, and keep the cap. */
static void stream_advance(struct td_json_stream *stream)
{
    if (!stream->is_ready && stream->code == TD_OK) {
        stream->is_ready = stream_scan(stream);
        if (stream->scanned - stream->taken > stream->value_bytes_max) {
            stream->is_ready = false;
            stream->code = TD_LIMIT;
        }
    }
}

static int stream_check(const struct td_json_stream *stream, struct td_error *err)
{
    if (stream->code < 0) {
        return td_error_set(err, stream->code,
                            "a JSON value in the stream is larger than %zu bytes",
                            stream->value_bytes_max);
    }
    return TD_OK;
}

int td_json_stream_feed(struct td_json_stream *stream, td_str bytes, struct td_error *err)
{
    int code = stream_check(stream, err);
    if (code < 0) {
        return code;
    }
    /* Moving the rest only when it is the smaller part keeps the moves below the bytes fed. */
    if (stream->taken > stream->pending.len / 2) {
        td_buf_consume(&stream->pending, stream->taken);
        stream->scanned -= stream->taken;
        stream->taken = 0;
    }
    code = td_buf_append(&stream->pending, bytes);
    if (code < 0) {
        stream->code = TD_LIMIT;
        return td_buf_check(&stream->pending, "what waits in the JSON stream", err);
    }
    stream_advance(stream);
    return stream_check(stream, err);
}

bool td_json_stream_next(struct td_json_stream *stream, td_str *ret)
{
    stream_advance(stream);
    if (!stream->is_ready) {
        return false;
    }
    *ret = td_str_slice(td_buf_str(&stream->pending), stream->taken, stream->scanned);
    stream->taken = stream->scanned;
    stream->is_ready = false;
    stream->is_started = false;
    stream->in_scalar = false;
    return true;
}

int td_json_stream_finish(struct td_json_stream *stream, struct td_error *err)
{
    stream->is_finished = true;
    stream_advance(stream);
    int code = stream_check(stream, err);
    if (code < 0) {
        return code;
    }
    if (stream->is_started && !stream->is_ready) {
        return td_error_set(err, TD_INVALID,
                            "the stream ended inside a JSON value, after %zu bytes of it",
                            stream->scanned - stream->taken);
    }
    return TD_OK;
}
