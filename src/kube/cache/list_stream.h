/*
 * Takes the answer to a list apart while it arrives: bytes come in pieces of any size, each item
 * goes out as the text of one JSON object, and nothing else is kept. For lists that servers do not
 * page, such as the metrics of all pods, which would otherwise be held whole. Only boundaries are
 * found here: the callback parses its item. An item past the cap is TD_LIMIT, an answer that
 * is no list TD_INVALID, both final.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"

struct td_error;

/* An item; the text is valid during the call. A failure ends the reading with that code. */
typedef int (*td_list_item_fn)(void *context, td_str text, struct td_error *err);

struct td_list_stream {
    td_list_item_fn fn;
    void *context;
    size_t count; /* items so far */
    /* Private. */
    struct td_buf item; /* the beginning of one whose end has not come */
    int code;
    uint64_t arrays[TD_JSON_DEPTH_MAX / 64]; /* which of the open brackets are square */
    uint32_t depth;
    uint8_t place; /* how much of the key was seen, see the .c */
    bool in_string;
    bool in_escape;
    bool is_over; /* the end of the object was seen */
};

void td_list_stream_init(struct td_list_stream *stream, td_list_item_fn fn, void *context);
void td_list_stream_done(struct td_list_stream *stream);

int td_list_stream_feed(struct td_list_stream *stream, td_str bytes, struct td_error *err);

/* At the end of the answer: TD_INVALID when it was cut off. */
int td_list_stream_finish(const struct td_list_stream *stream, struct td_error *err);
