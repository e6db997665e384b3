/*
 * One character after the other, by depth. At depth 1 the names of the list's members go by; what
 * `place` counts is how much of
 *
 *     "items" : [
 *
 * was just seen there: 0 nothing, 1 to 6 the quote and the letters, 7 the closing quote, 8 the
 * colon. Behind it the array is depth 2, and each object from depth 2 back to depth 2 is an item. A
 * value that is the text "items" is not followed by a colon, so it is not taken for the name.
 */
#include "kube/cache/list_stream.h"

#include "base/error.h"
#include "base/limits.h"

#define LIST_KEY "\"items\":"
#define LIST_PLACE_QUOTED 7 /* the whole name */
#define LIST_PLACE_COLON 8
#define LIST_PLACE_INSIDE 9 /* the array of items */
#define LIST_ITEM_DEPTH 2

static_assert(TD_JSON_DEPTH_MAX % 64 == 0, "the bits of open brackets fill their words");

void td_list_stream_init(struct td_list_stream *stream, td_list_item_fn fn, void *context)
{
    *stream = (struct td_list_stream){.fn = fn, .context = context};
    td_buf_init(&stream->item, TD_OBJECT_BYTES_MAX);
}

void td_list_stream_done(struct td_list_stream *stream)
{
    td_buf_done(&stream->item);
}

static int list_fail(struct td_list_stream *stream, struct td_error *err)
{
    stream->code = TD_INVALID;
    return td_error_set(err, TD_INVALID, "the answer is no list");
}

/* Follows the name, letter by letter, at depth 1. */
static void list_follow(struct td_list_stream *stream, char c)
{
    bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (stream->place >= LIST_PLACE_QUOTED && is_space) {
        return;
    }
    if (stream->place < LIST_PLACE_COLON && c == LIST_KEY[stream->place]) {
        stream->place++;
    } else {
        stream->place = c == LIST_KEY[0] && !stream->in_string ? 1 : 0;
    }
}

/* Which bracket the innermost open one is: a bit for each depth. */
static bool list_is_array(const struct td_list_stream *stream)
{
    uint32_t at = stream->depth - 1;
    return (stream->arrays[at / 64] >> at % 64 & 1) != 0;
}

static void list_open(struct td_list_stream *stream, char c)
{
    uint64_t bit = (uint64_t)1 << stream->depth % 64;
    uint64_t *word = &stream->arrays[stream->depth / 64];
    *word = c == '[' ? *word | bit : *word & ~bit;
    if (stream->depth == 1) {
        bool is_items = c == '[' && stream->place == LIST_PLACE_COLON;
        stream->place = is_items ? LIST_PLACE_INSIDE : 0;
    }
    stream->depth++;
}

/* True: the item ends here. */
static bool list_close(struct td_list_stream *stream, char c)
{
    stream->depth--;
    stream->is_over = stream->depth == 0;
    if (stream->depth == 1) {
        stream->place = 0;
    }
    return stream->place == LIST_PLACE_INSIDE && stream->depth == LIST_ITEM_DEPTH && c == '}';
}

/* Inside a text: only its end matters, and at depth 1 whether it is the name. */
static void list_text(struct td_list_stream *stream, char c)
{
    if (stream->in_escape) {
        stream->in_escape = false;
        stream->place = stream->place == LIST_PLACE_INSIDE ? stream->place : 0;
        return;
    }
    stream->in_escape = c == '\\';
    if (stream->depth == 1) {
        list_follow(stream, c);
    }
    stream->in_string = c != '"';
}

static int list_take(struct td_list_stream *stream, td_str last, struct td_error *err)
{
    td_str text = last;
    if (stream->item.len > 0) {
        if (td_buf_append(&stream->item, last) != TD_OK) {
            return td_error_set(err, TD_LIMIT, "an item of the list is larger than %zu bytes",
                                (size_t)TD_OBJECT_BYTES_MAX);
        }
        text = td_buf_str(&stream->item);
    }
    stream->count++;
    int code = stream->fn(stream->context, text, err);
    td_buf_reset(&stream->item);
    return code;
}

/* One character; true: an item ends with it. */
static bool list_step(struct td_list_stream *stream, char c)
{
    if (stream->in_string) {
        list_text(stream, c);
        return false;
    }
    if (c == '{' || c == '[') {
        list_open(stream, c);
        return false;
    }
    if (c == '}' || c == ']') {
        return list_close(stream, c);
    }
    if (stream->depth == 1) {
        list_follow(stream, c);
    }
    stream->in_string = c == '"';
    return false;
}

/* Can this character stand here? Inside the array there are objects and commas, nothing but space
 * comes before and after the list, and a bracket closes one of its kind: else items would end where
 * none does. The rest of texts and items is left to their parser. */
static bool list_can_be(const struct td_list_stream *stream, char c)
{
    if (stream->in_string || c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        return true;
    }
    if (stream->depth == 0) {
        return c == '{' && !stream->is_over;
    }
    if (c == '}' || c == ']') {
        return list_is_array(stream) == (c == ']');
    }
    if (stream->place == LIST_PLACE_INSIDE && stream->depth == LIST_ITEM_DEPTH) {
        return c == '{' || c == ',';
    }
    return stream->depth < TD_JSON_DEPTH_MAX || (c != '{' && c != '[');
}

static bool list_is_in_item(const struct td_list_stream *stream)
{
    return stream->place == LIST_PLACE_INSIDE && stream->depth > LIST_ITEM_DEPTH;
}

int td_list_stream_feed(struct td_list_stream *stream, td_str bytes, struct td_error *err)
{
    if (stream->code != TD_OK) {
        return td_error_set(err, stream->code, "the list was broken before");
    }
    size_t begin = 0; /* of the item, in these bytes */
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.ptr[i];
        bool was_in_item = list_is_in_item(stream);
        if (!list_can_be(stream, c)) {
            return list_fail(stream, err);
        }
        if (list_step(stream, c)) {
            stream->code = list_take(stream, td_str_slice(bytes, begin, i + 1), err);
        } else if (!was_in_item && list_is_in_item(stream)) {
            begin = i;
        }
        if (stream->code != TD_OK) {
            return stream->code;
        }
    }
    if (list_is_in_item(stream) &&
        td_buf_append(&stream->item, td_str_slice(bytes, begin, bytes.len)) != TD_OK) {
        stream->code = TD_LIMIT;
        return td_error_set(err, TD_LIMIT, "an item of the list is larger than %zu bytes",
                            (size_t)TD_OBJECT_BYTES_MAX);
    }
    return TD_OK;
}

int td_list_stream_finish(const struct td_list_stream *stream, struct td_error *err)
{
    if (stream->code != TD_OK) {
        return td_error_set(err, stream->code, "the list was broken before");
    }
    return stream->is_over ? TD_OK : td_error_set(err, TD_INVALID, "the list is cut off");
}
