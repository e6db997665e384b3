/*
 * A watch is a stream of JSON objects, cut into events by td_json_stream; a list is one body with
 * metadata and items. Both hand each object to the same decoder while it is read, so that no tree
 * of a whole list is ever made.
 *
 * With a shard, the namespace is looked for before anything is decoded: the reader is copied, which
 * costs nothing, and walks up to metadata.namespace, which servers write near the front. An object
 * of another shard is then skipped to its end. What has no namespace (a bookmark, a Status) is
 * of no shard.
 */
#include "kube/cache/cache_watch.h"

#include "base/error.h"
#include "base/limits.h"
#include "kube/selector/shard.h"

void td_watch_reader_init(struct td_watch_reader *reader, const struct td_cache_plan *plan,
                          struct td_cache_decoded *decoded, td_watch_event_fn fn, void *context)
{
    *reader =
        (struct td_watch_reader){.plan = plan, .decoded = decoded, .fn = fn, .context = context};
    td_json_stream_init(&reader->stream, TD_CACHE_EVENT_BYTES_MAX);
}

void td_watch_reader_done(struct td_watch_reader *reader)
{
    td_json_stream_done(&reader->stream);
}

static bool watch_type_of(td_str text, enum td_watch_type *ret)
{
    static const td_str names[] = {
        [TD_WATCH_ADDED] = TD_STR_INIT("ADDED"),     [TD_WATCH_MODIFIED] = TD_STR_INIT("MODIFIED"),
        [TD_WATCH_DELETED] = TD_STR_INIT("DELETED"), [TD_WATCH_BOOKMARK] = TD_STR_INIT("BOOKMARK"),
        [TD_WATCH_ERROR] = TD_STR_INIT("ERROR"),
    };
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        if (td_str_equal(text, names[i])) {
            *ret = (enum td_watch_type)i;
            return true;
        }
    }
    return false;
}

/* ---- Shards ---- */

/* Stands at the value of this member of the object that was begun; false: it has none. */
static bool foreign_find(struct td_json_reader *reader, td_str key)
{
    enum td_json_token token;
    while ((token = td_json_reader_next(reader)) == TD_JSON_KEY) {
        if (td_json_reader_key_is(reader, key)) {
            return true;
        }
        if (td_json_reader_skip(reader) != TD_OK) {
            return false;
        }
    }
    return false;
}

/* Is the object whose brace was just read of another shard? A name of a namespace has no escapes.
 */
static bool watch_is_foreign(const struct td_watch_reader *watch, const struct td_json_reader *at)
{
    struct td_json_reader reader = *at;
    return watch->shard && foreign_find(&reader, TD_STR("metadata")) &&
           td_json_reader_next(&reader) == TD_JSON_BEGIN_OBJECT &&
           foreign_find(&reader, TD_STR("namespace")) &&
           td_json_reader_next(&reader) == TD_JSON_STRING && reader.text.len > 0 &&
           !td_shard_range_has(watch->shard, td_shard_hash(reader.text));
}

/* To the end of an object whose brace was just read. */
static int watch_pass_over(struct td_watch_reader *watch, struct td_json_reader *reader,
                           struct td_error *err)
{
    const char *from = reader->at;
    if (td_json_reader_skip(reader) != TD_OK) {
        return td_json_reader_error(reader, err);
    }
    watch->foreign++;
    watch->foreign_bytes += (uint64_t)(reader->at - from) + 1;
    return TD_OK;
}

/* The members of one event; the object is decoded where it stands. */
static int watch_read_members(struct td_watch_reader *watch, struct td_json_reader *reader,
                              td_str *ret_type, bool *ret_has_object, bool *ret_is_foreign,
                              struct td_error *err)
{
    enum td_json_token token;
    while ((token = td_json_reader_next(reader)) == TD_JSON_KEY) {
        if (td_json_reader_key_is(reader, TD_STR("object"))) {
            token = td_json_reader_next(reader);
            *ret_is_foreign = token == TD_JSON_BEGIN_OBJECT && watch_is_foreign(watch, reader);
            int code = *ret_is_foreign
                           ? watch_pass_over(watch, reader, err)
                           : td_cache_decode(watch->plan, reader, token, watch->decoded, err);
            if (code != TD_OK) {
                return code;
            }
            *ret_has_object = token == TD_JSON_BEGIN_OBJECT;
            continue;
        }
        bool is_type = td_json_reader_key_is(reader, TD_STR("type"));
        if (is_type && td_json_reader_next(reader) == TD_JSON_STRING) {
            *ret_type = reader->text; /* a type is never written with escapes */
        } else if (td_json_reader_skip(reader) != TD_OK) {
            return td_json_reader_error(reader, err);
        }
    }
    return token == TD_JSON_ERROR ? td_json_reader_error(reader, err) : TD_OK;
}

static int watch_read_event(struct td_watch_reader *watch, td_str text, struct td_error *err)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, text, TD_JSON_DEPTH_MAX);
    td_str type_text = TD_STR_EMPTY;
    bool has_object = false;
    bool is_foreign = false;
    enum td_json_token token = td_json_reader_next(&reader);
    int code = TD_OK;
    if (token == TD_JSON_BEGIN_OBJECT) {
        code = watch_read_members(watch, &reader, &type_text, &has_object, &is_foreign, err);
    } else if (token == TD_JSON_ERROR) {
        code = td_json_reader_error(&reader, err);
    }
    if (code != TD_OK) {
        return code;
    }
    enum td_watch_type type;
    if (!has_object || !watch_type_of(type_text, &type)) {
        return td_error_set(err, TD_INVALID, "a line of the watch is no event: '%.*s'",
                            TD_STR_ARG(td_str_cut_utf8(text, TD_CACHE_SHOWN_BYTES)));
    }
    return is_foreign ? TD_OK : watch->fn(watch->context, type, watch->decoded, err);
}

int td_watch_reader_feed(struct td_watch_reader *reader, td_str bytes, struct td_error *err)
{
    if (reader->code != TD_OK) {
        return td_error_set(err, reader->code, "the watch was broken before");
    }
    /* In pieces, so that the buffer of the stream holds one event and one piece at most. */
    while (bytes.len > 0 && reader->code == TD_OK) {
        td_str piece = td_str_slice(bytes, 0, TD_CACHE_PIECE_BYTES);
        bytes = td_str_slice(bytes, piece.len, bytes.len);
        reader->code = td_json_stream_feed(&reader->stream, piece, err);
        td_str text;
        while (reader->code == TD_OK && td_json_stream_next(&reader->stream, &text)) {
            reader->code = watch_read_event(reader, text, err);
        }
    }
    return reader->code;
}

/* ---- Lists ---- */

static void list_take_text(struct td_json_reader *reader, struct td_arena *arena,
                           struct td_buf *ret)
{
    td_buf_reset(ret);
    (void)td_buf_append(ret, td_json_reader_decode(reader, arena)); /* checked at the end */
}

static int list_read_metadata(struct td_watch_reader *watch, struct td_json_reader *reader,
                              struct td_buf *ret_version, struct td_buf *ret_continue,
                              struct td_error *err)
{
    if (td_json_reader_next(reader) != TD_JSON_BEGIN_OBJECT) {
        return td_json_reader_skip(reader) == TD_OK ? TD_OK : td_json_reader_error(reader, err);
    }
    enum td_json_token token;
    while ((token = td_json_reader_next(reader)) == TD_JSON_KEY) {
        bool is_version = td_json_reader_key_is(reader, TD_STR("resourceVersion"));
        bool is_continue = td_json_reader_key_is(reader, TD_STR("continue"));
        if ((is_version || is_continue) && td_json_reader_next(reader) == TD_JSON_STRING) {
            list_take_text(reader, &watch->decoded->arena, is_version ? ret_version : ret_continue);
        } else if (td_json_reader_skip(reader) != TD_OK) {
            return td_json_reader_error(reader, err);
        }
    }
    return token == TD_JSON_ERROR ? td_json_reader_error(reader, err) : TD_OK;
}

static int list_read_items(struct td_watch_reader *watch, struct td_json_reader *reader,
                           struct td_error *err)
{
    enum td_json_token token = td_json_reader_next(reader);
    if (token != TD_JSON_BEGIN_ARRAY) { /* null is how Go writes no items */
        return td_json_reader_skip(reader) == TD_OK ? TD_OK : td_json_reader_error(reader, err);
    }
    while ((token = td_json_reader_next(reader)) == TD_JSON_BEGIN_OBJECT) {
        bool is_foreign = watch_is_foreign(watch, reader);
        int code = is_foreign ? watch_pass_over(watch, reader, err)
                              : td_cache_decode(watch->plan, reader, token, watch->decoded, err);
        if (code == TD_OK && !is_foreign) {
            code = watch->fn(watch->context, TD_WATCH_ADDED, watch->decoded, err);
        }
        if (code != TD_OK) {
            return code;
        }
    }
    if (token == TD_JSON_ERROR) {
        return td_json_reader_error(reader, err);
    }
    return token == TD_JSON_END_ARRAY
               ? TD_OK
               : td_error_set(err, TD_INVALID, "an item of the list is no object");
}

int td_watch_read_list(struct td_watch_reader *reader, td_str body, struct td_buf *ret_version,
                       struct td_buf *ret_continue, struct td_error *err)
{
    struct td_json_reader json;
    td_json_reader_init(&json, body, TD_JSON_DEPTH_MAX);
    td_buf_reset(ret_version);
    td_buf_reset(ret_continue);
    enum td_json_token token = td_json_reader_next(&json);
    if (token != TD_JSON_BEGIN_OBJECT) {
        return td_error_set(err, TD_INVALID, "the answer is no list");
    }
    while ((token = td_json_reader_next(&json)) == TD_JSON_KEY) {
        int code = TD_OK;
        if (td_json_reader_key_is(&json, TD_STR("metadata"))) {
            code = list_read_metadata(reader, &json, ret_version, ret_continue, err);
        } else if (td_json_reader_key_is(&json, TD_STR("items"))) {
            code = list_read_items(reader, &json, err);
        } else if (td_json_reader_skip(&json) != TD_OK) {
            code = td_json_reader_error(&json, err);
        }
        if (code != TD_OK) {
            return code;
        }
    }
    if (token == TD_JSON_ERROR || td_json_reader_next(&json) == TD_JSON_ERROR) {
        return td_json_reader_error(&json, err);
    }
    if (ret_version->len == 0 || ret_version->is_full || ret_continue->is_full) {
        return td_error_set(err, TD_INVALID, "a list without a usable resourceVersion");
    }
    return TD_OK;
}
