/*
 * The cache is in one of three places: in a pause, at a page of a list, or at a watch. `needs_list`
 * says which of the latter two comes after a pause:
 *
 *   list    first by a watch that sends what there is (sendInitialEvents) and goes on as an
 *           ordinary watch behind the bookmark that ends it; where the server refuses that, by
 *           pages. The list is a round of the store: what it did not bring is deleted at its end,
 *           and a list that breaks off is begun anew, without harm to what it brought already.
 *   watch   from the version of the last list, event or bookmark. An answer 410, as a status or as
 *           an event, means that this version has expired: the next thing is a list.
 *
 * Every attempt that ends, for whatever reason, is followed by a pause, so nothing the server does
 * makes the cache spin; pauses grow until a watch has proven to be good. Only the step from a list
 * to its watch, from page to page, and from a refused streaming list to pages is taken at once.
 */
#include "kube/cache/cache.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "kube/cache/cache_store.h"
#include "kube/cache/cache_watch.h"
#include "kube/client/client.h"
#include "kube/objectkey.h"
#include "kube/paths.h"
#include "kube/selector/shard.h"

enum cache_state { CACHE_NEW, CACHE_PAUSED, CACHE_AT_PAGE, CACHE_AT_WATCH };

struct td_cache {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow;
    td_duration silence;
    bool is_metadata_only;
    struct td_buf base; /* path of the collection with its selectors */
    struct td_buf path; /* of the request being made */
    struct td_cache_plan *plan;
    struct td_cache_decoded decoded;
    struct cache_store store;
    struct td_watch_reader reader; /* of the watch; its plan and function serve lists too */
    enum cache_state state;
    struct td_timer *timer; /* the end of a pause, or of patience with a silent watch */
    struct td_client_call *call;
    struct td_backoff backoff;
    struct td_backoff spread; /* only its random state is used: how long watches last */
    struct td_buf version;    /* up to which everything was seen */
    struct td_buf list_version;
    struct td_buf list_continue;
    int page_count;           /* objects asked for in one page */
    bool needs_list;          /* nothing to go on from */
    bool is_listing;          /* the watch sends what there is first */
    bool has_streams;         /* not known to refuse that */
    unsigned stream_failures; /* since the last whole list */
    unsigned stream_refusals; /* in a row, each followed by pages that worked */
    bool is_synced;
    bool has_heard;        /* anything of this watch */
    td_duration opened_at; /* steady: of the watch, or of the list's first page */
    td_duration fresh_at;  /* steady; see td_cache_age */
    bool has_shard;
    struct td_shard_range shard;
    uint64_t foreign_before; /* the list began */
    struct td_error last_error;
    struct td_cache_counts counts;
};

static td_duration cache_now(const struct td_cache *cache)
{
    return td_clock_machine(td_loop_clock(cache->loop)); /* which the server lives in */
}

/* ---- Between attempts ---- */

static void cache_pause(struct td_cache *cache, td_duration pause)
{
    cache->state = CACHE_PAUSED;
    cache->call = NULL;
    td_timer_set_machine(cache->timer, pause);
}

/* The attempt is over; the next one comes after a pause. */
static void cache_fail(struct td_cache *cache, const struct td_error *err)
{
    cache->counts.failures++;
    cache->last_error = *err;
    if (err->code == TD_GONE) {
        cache->counts.expired++;
        cache->needs_list = true;
    }
    cache_pause(cache, td_backoff_next(&cache->backoff));
}

/* What the reader passed over since it was asked last. */
static void cache_count_foreign(struct td_cache *cache)
{
    cache->counts.foreign += cache->reader.foreign;
    cache->counts.foreign_bytes += cache->reader.foreign_bytes;
    cache->reader.foreign = 0;
    cache->reader.foreign_bytes = 0;
}

static void cache_set_version(struct td_cache *cache, td_str version)
{
    td_buf_reset(&cache->version);
    (void)td_buf_append(&cache->version, version); /* was checked against the cap */
}

static void cache_begin_list(struct td_cache *cache)
{
    cache->counts.lists++;
    cache->foreign_before = cache->counts.foreign;
    td_cache_store_begin(&cache->store);
}

/* A whole list has been seen. */
static void cache_listed(struct td_cache *cache, td_str version, td_duration fresh_at)
{
    cache_set_version(cache, version);
    cache_count_foreign(cache);
    cache->needs_list = false;
    cache->is_listing = false;
    cache->stream_failures = 0;
    cache->is_synced = true;
    cache->counts.is_filtered = cache->has_shard && cache->counts.foreign == cache->foreign_before;
    cache->fresh_at = fresh_at;
    cache->last_error = TD_ERROR_INIT;
    td_cache_store_finish(&cache->store);
}

/* ---- Requests ---- */

static void cache_path(struct td_cache *cache)
{
    td_buf_reset(&cache->path);
    (void)td_buf_append(&cache->path, td_buf_str(&cache->base)); /* checked when it is sent */
}

static void cache_query(struct td_cache *cache, td_str key, td_str value)
{
    td_path_add_query(&cache->path, key, value);
}

static void cache_query_int(struct td_cache *cache, td_str key, int64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof(digits), "%lld", (long long)value); /* fits */
    cache_query(cache, key, td_str_from(digits));
}

static td_str cache_accept(const struct td_cache *cache, bool is_list)
{
    if (!cache->is_metadata_only) {
        return TD_STR("application/json");
    }
    return is_list ? TD_STR("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
                   : TD_STR("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
}

static struct td_client_request cache_request(const struct td_cache *cache, bool is_list)
{
    return (struct td_client_request){
        .flow = cache->flow,
        .method = TD_STR("GET"),
        .path = td_buf_str(&cache->path),
        .accept = cache_accept(cache, is_list),
        .content_type = TD_STR_EMPTY,
        .body = TD_STR_EMPTY,
        .is_idempotent = true,
    };
}

/* ---- Watching ---- */

static int cache_event_error(const struct td_cache_decoded *decoded, struct td_error *err)
{
    return td_error_set(
        err, decoded->status_code == 410 ? TD_GONE : TD_IO, "the watch ended with code %lld: %.*s",
        (long long)decoded->status_code,
        TD_STR_ARG(td_str_cut_utf8(decoded->status_message, TD_EVENT_MESSAGE_BYTES_MAX / 2)));
}

static int cache_bookmark(struct td_cache *cache, const struct td_cache_decoded *decoded,
                          struct td_error *err)
{
    const struct td_cache_head *head = td_cache_decoded_head(decoded);
    cache->counts.bookmarks++;
    if (head->version.len == 0 || head->version.len > TD_CACHE_VERSION_BYTES_MAX) {
        return td_error_set(err, TD_INVALID, "a bookmark with a resourceVersion of %zu bytes",
                            head->version.len);
    }
    if (cache->is_listing && decoded->initial_end.len > 0) {
        cache->stream_refusals = 0;
        cache_listed(cache, head->version, cache_now(cache));
    } else if (!cache->is_listing) {
        cache_set_version(cache, head->version);
    }
    return TD_OK;
}

/* Of a watch and, all as TD_WATCH_ADDED, of lists. */
static int cache_event(void *context, enum td_watch_type type, struct td_cache_decoded *decoded,
                       struct td_error *err)
{
    struct td_cache *cache = context;
    if (type == TD_WATCH_ERROR) {
        return cache_event_error(decoded, err);
    }
    if (type == TD_WATCH_BOOKMARK) {
        return cache_bookmark(cache, decoded, err);
    }
    cache->counts.events++;
    cache->counts.wrong_fields += decoded->wrong_count;
    int code = type == TD_WATCH_DELETED ? td_cache_store_remove(&cache->store, decoded, err)
                                        : td_cache_store_put(&cache->store, decoded, err);
    /* The objects of a list come in no order of versions. */
    if (code == TD_OK && !cache->needs_list) {
        cache_set_version(cache, td_cache_decoded_head(decoded)->version);
    }
    return code;
}

static void cache_watch_over(struct td_cache *cache, const struct td_error *err)
{
    td_duration lasted = cache_now(cache) - cache->opened_at;
    td_duration enough =
        (cache->has_heard ? TD_CACHE_GOOD_WATCH_MS : TD_CACHE_QUIET_WATCH_MS) * TD_MILLISECOND;
    if (lasted >= enough) {
        td_backoff_reset(&cache->backoff);
    }
    if (err->code == TD_OK) {
        cache_pause(cache, td_backoff_next(&cache->backoff));
        return;
    }
    cache_fail(cache, err);
}

/* A streaming list that was not seen to its end. */
static void cache_stream_over(struct td_cache *cache, const struct td_error *err)
{
    bool is_refused = err->code == TD_INVALID && !cache->has_heard;
    cache->has_streams = cache->has_streams && !is_refused;
    cache->stream_failures++;
    struct td_error cut = *err;
    if (cut.code == TD_OK) {
        (void)td_error_set(&cut, TD_IO, "the streaming list of '%.*s' was cut",
                           TD_STR_ARG(td_buf_str(&cache->base)));
    }
    cache_watch_over(cache, &cut);
    if (is_refused) {
        td_timer_set(cache->timer, 0); /* once in a life: pages need not wait */
    }
}

static void cache_watch_end(void *context, int code, const struct td_error *err)
{
    struct td_cache *cache = context;
    cache->call = NULL;
    struct td_error none = TD_ERROR_INIT;
    const struct td_error *why = code == TD_OK ? &none : err;
    if (cache->is_listing) {
        cache_stream_over(cache, why);
    } else {
        cache_watch_over(cache, why);
    }
}

static void cache_watch_cancel(struct td_cache *cache, const struct td_error *err)
{
    struct td_client_call *call = cache->call;
    cache->call = NULL;
    td_client_cancel(call);
    cache_watch_end(cache, err->code, err);
}

static void cache_watch_body(void *context, td_str bytes)
{
    struct td_cache *cache = context;
    td_timer_set_machine(cache->timer, cache->silence);
    struct td_error err = TD_ERROR_INIT;
    uint64_t before = cache->counts.events + cache->counts.bookmarks;
    int code = td_watch_reader_feed(&cache->reader, bytes, &err);
    cache_count_foreign(cache);
    if (cache->counts.events + cache->counts.bookmarks > before) {
        cache->has_heard = true;
        cache->fresh_at = cache->needs_list ? cache->fresh_at : cache_now(cache);
        cache->last_error = cache->needs_list ? cache->last_error : TD_ERROR_INIT;
    }
    if (code != TD_OK) {
        cache_watch_cancel(cache, &err);
    }
}

/* The server took the request. What is in the way now will be said anew. */
static void cache_watch_head(void *context, const struct td_call_head *head)
{
    (void)head;
    struct td_cache *cache = context;
    cache->last_error = cache->needs_list ? cache->last_error : TD_ERROR_INIT;
}

/* Servers end a watch by themselves; at different times, lest all come back at once. */
static int64_t cache_watch_seconds(struct td_cache *cache)
{
    cache->spread.attempts = 0;
    double random = (double)td_backoff_next(&cache->spread) / (double)TD_SECOND - 0.5;
    return TD_CACHE_WATCH_SECONDS_MIN + (int64_t)(random * TD_CACHE_WATCH_SECONDS_SPREAD);
}

static void cache_init_reader(struct td_cache *cache)
{
    td_watch_reader_init(&cache->reader, cache->plan, &cache->decoded, cache_event, cache);
    cache->reader.shard = cache->has_shard ? &cache->shard : NULL;
}

static void cache_watch(struct td_cache *cache)
{
    static const struct td_call_events events = {
        .head = cache_watch_head,
        .body = cache_watch_body,
        .end = cache_watch_end,
    };
    cache_path(cache);
    cache_query(cache, TD_STR("watch"), TD_STR("1"));
    cache_query(cache, TD_STR("allowWatchBookmarks"), TD_STR("true"));
    cache_query_int(cache, TD_STR("timeoutSeconds"), cache_watch_seconds(cache));
    cache->is_listing = cache->needs_list;
    if (cache->is_listing) {
        cache_begin_list(cache);
        cache_query(cache, TD_STR("sendInitialEvents"), TD_STR("true"));
        cache_query(cache, TD_STR("resourceVersionMatch"), TD_STR("NotOlderThan"));
    } else {
        cache_query(cache, TD_STR("resourceVersion"), td_buf_str(&cache->version));
    }
    td_watch_reader_done(&cache->reader);
    cache_init_reader(cache);
    cache->state = CACHE_AT_WATCH;
    cache->has_heard = false;
    cache->opened_at = cache_now(cache);
    cache->counts.watches++;
    struct td_client_request request = cache_request(cache, false);
    cache->call = td_client_stream(cache->client, &request, &events, cache);
    td_timer_set_machine(cache->timer, cache->silence);
}

/* ---- Lists in pages ---- */

static void cache_page(struct td_cache *cache);

/* The list is given up. Pages that expire are too many, pages too large too few. */
static void cache_page_fail(struct td_cache *cache, const struct td_error *err)
{
    if (err->code == TD_GONE && cache->page_count < TD_CACHE_PAGE_COUNT_MAX) {
        cache->page_count *= 2;
    } else if (err->code == TD_LIMIT && cache->page_count > 1) {
        cache->page_count /= 2;
    }
    cache_fail(cache, err);
}

static void cache_page_done(void *context, const struct td_client_reply *reply)
{
    struct td_cache *cache = context;
    cache->call = NULL;
    struct td_error err = reply->err;
    int code = reply->code;
    if (code == TD_OK) {
        code = td_watch_read_list(&cache->reader, reply->body, &cache->list_version,
                                  &cache->list_continue, &err);
    }
    if (code != TD_OK) {
        cache_page_fail(cache, &err);
        return;
    }
    cache->counts.pages++;
    if (cache->list_continue.len > 0) {
        cache_page(cache);
        return;
    }
    if (cache->stream_failures > 0 && ++cache->stream_refusals >= TD_CACHE_STREAM_REFUSALS_MAX) {
        cache->has_streams = false; /* pages work, streams do not: again and again */
    }
    cache_listed(cache, td_buf_str(&cache->list_version), cache->opened_at);
    cache_watch(cache);
}

static void cache_page(struct td_cache *cache)
{
    cache_path(cache);
    cache_query_int(cache, TD_STR("limit"), cache->page_count);
    if (cache->list_continue.len > 0) {
        cache_query(cache, TD_STR("continue"), td_buf_str(&cache->list_continue));
    }
    struct td_client_request request = cache_request(cache, true);
    request.deadline = TD_CACHE_PAGE_DEADLINE_MS * TD_MILLISECOND;
    cache->call = td_client_send(cache->client, &request, cache_page_done, cache);
}

static void cache_list(struct td_cache *cache)
{
    cache->state = CACHE_AT_PAGE;
    cache_begin_list(cache);
    cache->opened_at = cache_now(cache);
    td_buf_reset(&cache->list_continue);
    cache_page(cache);
}

/* ---- Steps ---- */

static void cache_go(struct td_cache *cache)
{
    if (cache->needs_list &&
        (!cache->has_streams || cache->stream_failures >= TD_CACHE_STREAM_TRIES)) {
        cache_list(cache);
    } else {
        cache_watch(cache);
    }
}

static void cache_rings(struct td_timer *timer, void *context)
{
    (void)timer;
    struct td_cache *cache = context;
    if (cache->state == CACHE_PAUSED) {
        cache_go(cache);
        return;
    }
    td_assert(cache->state == CACHE_AT_WATCH);
    struct td_error err = TD_ERROR_INIT;
    (void)td_error_set(&err, TD_TIMEOUT, "the watch of '%.*s' was silent for %lld s",
                       TD_STR_ARG(td_buf_str(&cache->base)),
                       (long long)(cache->silence / TD_SECOND));
    cache_watch_cancel(cache, &err);
}

static int cache_make_base(struct td_cache *cache, const struct td_cache_options *options,
                           struct td_error *err)
{
    const struct td_api_path path = {
        .group = options->group,
        .version = options->version,
        .namespace = options->namespace,
        .plural = options->plural,
    };
    int code = td_path_write(&path, &cache->base, err);
    if (code != TD_OK) {
        return code;
    }
    if (options->label_selector.len > 0) {
        td_path_add_query(&cache->base, TD_STR("labelSelector"), options->label_selector);
    }
    if (options->field_selector.len > 0) {
        td_path_add_query(&cache->base, TD_STR("fieldSelector"), options->field_selector);
    }
    if (options->shard) {
        td_auto_buf selector = td_buf_capped(TD_API_PATH_BYTES_MAX / 8);
        td_shard_selector_write(&(struct td_shard_selector){.ranges = options->shard, .count = 1},
                                &selector);
        td_path_add_query(&cache->base, TD_STR("shardSelector"), td_buf_str(&selector));
    }
    return td_buf_check(&cache->base, "the path of a watched resource", err);
}

int td_cache_new(const struct td_cache_options *options, struct td_cache **ret,
                 struct td_error *err)
{
    struct td_cache_plan *plan;
    int code =
        td_cache_plan_new(options->fields, options->field_count, options->struct_bytes, &plan, err);
    if (code != TD_OK) {
        return code;
    }
    if (options->kept_bytes > 0) {
        td_cache_plan_keep(plan, options->kept_bytes);
    }
    struct td_cache *cache = td_alloc_zero(1, sizeof(*cache));
    cache->loop = options->loop;
    cache->client = options->client;
    cache->flow = options->flow;
    cache->is_metadata_only = options->is_metadata_only;
    cache->silence = options->silence > 0 ? options->silence : TD_CACHE_SILENCE_MS * TD_MILLISECOND;
    cache->plan = plan;
    /* A continue token and the rest of a query must fit behind the base. */
    td_buf_init(&cache->base, TD_API_PATH_BYTES_MAX / 4);
    td_buf_init(&cache->path, TD_API_PATH_BYTES_MAX);
    td_buf_init(&cache->version, TD_CACHE_VERSION_BYTES_MAX);
    td_buf_init(&cache->list_version, TD_CACHE_VERSION_BYTES_MAX);
    td_buf_init(&cache->list_continue, TD_CACHE_CONTINUE_BYTES_MAX);
    td_cache_decoded_init(&cache->decoded, plan);
    td_cache_store_init(&cache->store, plan, options);
    cache->has_shard = options->shard != NULL;
    cache->shard = options->shard ? *options->shard : (struct td_shard_range){.first = 0};
    cache_init_reader(cache);
    cache->timer = td_timer_new(options->loop, cache_rings, cache);
    cache->backoff = (struct td_backoff){.min = TD_CACHE_PAUSE_MIN_MS * TD_MILLISECOND,
                                         .max = TD_CACHE_PAUSE_MAX_MS * TD_MILLISECOND,
                                         .random = options->seed};
    cache->spread =
        (struct td_backoff){.min = TD_SECOND, .max = TD_SECOND, .random = ~options->seed};
    cache->page_count = TD_CACHE_PAGE_COUNT;
    cache->needs_list = true;
    cache->has_streams = true;
    code = cache_make_base(cache, options, err);
    if (code != TD_OK) {
        td_cache_free(cache);
        return code;
    }
    *ret = cache;
    return TD_OK;
}

void td_cache_free(struct td_cache *cache)
{
    if (!cache) {
        return;
    }
    td_client_cancel(cache->call);
    td_timer_free(cache->timer);
    td_watch_reader_done(&cache->reader);
    td_cache_store_done(&cache->store);
    td_cache_decoded_done(&cache->decoded);
    td_cache_plan_free(cache->plan);
    td_buf_done(&cache->base);
    td_buf_done(&cache->path);
    td_buf_done(&cache->version);
    td_buf_done(&cache->list_version);
    td_buf_done(&cache->list_continue);
    td_free(cache);
}

void td_cache_subscribe(struct td_cache *cache, const struct td_cache_handler *handler,
                        void *context)
{
    td_assert(cache->state == CACHE_NEW);
    td_assert(cache->store.subscriber_count < TD_CACHE_HANDLERS_MAX);
    cache->store.subscribers[cache->store.subscriber_count++] =
        (struct cache_subscriber){.handler = *handler, .context = context};
}

void td_cache_start(struct td_cache *cache)
{
    td_assert(cache->state == CACHE_NEW);
    cache_pause(cache, 0);
}

/* ---- Reading ---- */

const void *td_cache_get(const struct td_cache *cache, td_str namespace, td_str name)
{
    char text[TD_OBJECT_KEY_BYTES_MAX]; /* no object has the empty key */
    return td_map_get(&cache->store.objects,
                      td_object_key_write(TD_OBJECT_KEY(namespace, name), text));
}

const void *td_cache_next(const struct td_cache *cache, size_t *position)
{
    const struct td_map_entry *entry = td_map_next(&cache->store.objects, position);
    return entry ? entry->value : NULL;
}

size_t td_cache_count(const struct td_cache *cache)
{
    return cache->store.objects.count;
}

bool td_cache_is_synced(const struct td_cache *cache)
{
    return cache->is_synced;
}

td_duration td_cache_age(const struct td_cache *cache)
{
    return cache->is_synced ? cache_now(cache) - cache->fresh_at : INT64_MAX;
}

td_str td_cache_version(const struct td_cache *cache)
{
    return td_buf_str(&cache->version);
}

const struct td_error *td_cache_error(const struct td_cache *cache)
{
    return &cache->last_error;
}

struct td_cache_counts td_cache_counts(const struct td_cache *cache)
{
    struct td_cache_counts counts = cache->counts;
    counts.bytes = cache->store.bytes;
    return counts;
}
