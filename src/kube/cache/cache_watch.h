/*
 * Reads the answer of a watch: bytes arrive in pieces of any size, events come out whole and in
 * order, each decoded once by the cache's plan; those of other shards are counted and passed over.
 * A broken event is final, for it and all that follows. Private to the cache and its tests.
 */
#pragma once

#include "base/json/json_stream.h"
#include "kube/cache/cache_decode.h"

struct td_shard_range;

enum td_watch_type {
    TD_WATCH_ADDED,
    TD_WATCH_MODIFIED,
    TD_WATCH_DELETED,
    TD_WATCH_BOOKMARK,
    TD_WATCH_ERROR,
};

/* What was decoded is in `decoded` until the return. Negative: stop, with this code. It must not
 * free the reader. */
typedef int (*td_watch_event_fn)(void *context, enum td_watch_type type,
                                 struct td_cache_decoded *decoded, struct td_error *err);

struct td_watch_reader {
    const struct td_cache_plan *plan; /* borrowed */
    struct td_cache_decoded *decoded; /* borrowed */
    td_watch_event_fn fn;
    void *context;
    const struct td_shard_range *shard; /* borrowed; NULL: all objects are wanted */
    uint64_t foreign;                   /* objects of other shards, passed over */
    uint64_t foreign_bytes;
    struct td_json_stream stream;
    int code; /* 0, or that of the failure, for ever */
};

void td_watch_reader_init(struct td_watch_reader *reader, const struct td_cache_plan *plan,
                          struct td_cache_decoded *decoded, td_watch_event_fn fn, void *context);
void td_watch_reader_done(struct td_watch_reader *reader);

/* TD_INVALID for a line that is no event, TD_LIMIT for one above TD_CACHE_EVENT_BYTES_MAX, or what
 * fn returned. */
int td_watch_reader_feed(struct td_watch_reader *reader, td_str bytes, struct td_error *err);

/* A whole answer of a list: every object goes to fn as TD_WATCH_ADDED; texts are copied into the
 * buffers, which are emptied first. */
int td_watch_read_list(struct td_watch_reader *reader, td_str body, struct td_buf *ret_version,
                       struct td_buf *ret_continue, struct td_error *err);
