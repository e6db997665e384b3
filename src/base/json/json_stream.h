/*
 * Splits a byte stream into complete JSON texts, for watch responses: bytes arrive in pieces of any
 * size, whole values come out one at a time, each parsed once. Values are separated by any white
 * space, newline or nothing. Partial values wait in a capped buffer; a value past the cap is
 * TD_LIMIT and final, and so is feeding on and on without taking values out. The slice handed out
 * is valid until the next call of feed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct td_error;

struct td_json_stream {
    struct td_buf pending; /* bytes not yet handed out */
    size_t taken;          /* bytes at the front already handed out */
    /* Private: the boundary search. */
    size_t scanned;         /* how far it has come */
    size_t value_bytes_max; /* of one value */
    int code;               /* 0, or TD_LIMIT for ever */
    uint32_t depth;
    char last; /* of the structure, spaces not counted */
    bool in_string;
    bool in_escape;
    bool in_scalar;
    bool is_started;  /* the value at `taken` has begun */
    bool is_ready;    /* it is complete: from `taken` to `scanned` */
    bool is_finished; /* no more bytes will come */
};

void td_json_stream_init(struct td_json_stream *stream, size_t value_bytes_max);
void td_json_stream_done(struct td_json_stream *stream);

int td_json_stream_feed(struct td_json_stream *stream, td_str bytes, struct td_error *err);

/* The next complete value's text, or false when more bytes are needed. Only boundaries are found
 * here: parse the slice. Text that cannot become a value (a string with a line break in it, values
 * without a comma between) is handed out as far as it was read, for the parser to refuse. */
bool td_json_stream_next(struct td_json_stream *stream, td_str *ret);

/* At the end of input: TD_INVALID when a partial value is left (a scalar at the very end is
 * complete and still handed out by next after this). */
int td_json_stream_finish(struct td_json_stream *stream, struct td_error *err);
