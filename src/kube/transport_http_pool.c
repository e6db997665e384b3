/*
 * curl's multi interface on libevent. curl says which sockets it waits for and until when, we tell
 * it what happened; while it runs our callbacks nothing of the multi interface may be called, so
 * what users ask for meanwhile is done when it has returned.
 */
#include "kube/transport_http_internal.h"

#include <event2/event.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/loop.h"

#define POOL_REST_MICROS 20000                 /* of a watch's socket, when fewer bytes than ... */
#define POOL_REST_BYTES_MAX ((size_t)16 << 10) /* ... these came in one go */

/* A socket that libevent looks at. Between two requests curl lets go of it, and a moment later asks
 * for it again: it is kept until something happens there or it is closed. That of a stream rests
 * for a while after a few bytes came, so that what trickles in is read together. */
struct http_socket {
    struct http_pool *pool;
    struct http_socket *next;
    curl_socket_t fd;
    short events;
    bool is_idle; /* curl does not wait for it */
    bool is_stream;
    bool is_resting;     /* nobody looks at it until the pool's rest is over */
    struct event *event; /* owned */
};

static void pool_finish_done(struct http_pool *pool)
{
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(pool->multi, &left))) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        void *private = NULL;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private); /* set by us */
        struct td_call *call = private;
        struct td_error err = TD_ERROR_INIT;
        int code = td_http_code(call, message->data.result, &err);
        td_http_call_finish(call, code, &err);
    }
}

static void pool_act(struct http_pool *pool, curl_socket_t socket, int events)
{
    struct http_transport *http = pool->http;
    int running = 0;
    td_assert(!http->is_in_curl);
    http->is_in_curl = true;
    (void)curl_multi_socket_action(pool->multi, socket, events,
                                   &running); /* results are messages */
    http->is_in_curl = false;
    while (http->cancelled.first) {
        td_http_call_free(http->cancelled.first); /* before their messages are read */
    }
    pool_finish_done(pool);
    if (pool->is_retired && !pool->calls.first) {
        event_active(http->kick, EV_TIMEOUT, 0);
    }
}

/* NULL: it is not known. One that is found stands first then: curl takes the same ones again and
 * again. */
static struct http_socket *pool_find_socket(struct http_pool *pool, curl_socket_t fd)
{
    struct http_socket **at = &pool->sockets;
    while (*at && (*at)->fd != fd) {
        at = &(*at)->next;
    }
    struct http_socket *entry = *at;
    if (entry) {
        *at = entry->next;
        entry->next = pool->sockets;
        pool->sockets = entry;
    }
    return entry;
}

static void pool_drop_first_socket(struct http_pool *pool)
{
    struct http_socket *entry = pool->sockets;
    pool->sockets = entry->next;
    event_free(entry->event);
    td_free(entry);
}

void td_http_pool_forget_socket(struct http_pool *pool, curl_socket_t fd)
{
    if (pool_find_socket(pool, fd)) {
        pool_drop_first_socket(pool);
    }
}

int td_http_pool_close_socket(void *context, curl_socket_t fd)
{
    td_http_pool_forget_socket(context, fd);
    return close(fd);
}

static void pool_let_rest(struct http_socket *entry)
{
    static const struct timeval rest = {.tv_usec = POOL_REST_MICROS};
    struct http_pool *pool = entry->pool;
    entry->is_resting = event_del(entry->event) == 0;
    if (!event_pending(pool->rest, EV_TIMEOUT, NULL) && event_add(pool->rest, &rest) != 0) {
        td_out_of_memory();
    }
}

static void pool_rest_is_over(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct http_pool *pool = context;
    for (struct http_socket *entry = pool->sockets; entry; entry = entry->next) {
        if (entry->is_resting && event_add(entry->event, NULL) != 0) {
            td_out_of_memory();
        }
        entry->is_resting = false;
    }
}

static void pool_socket_is_ready(evutil_socket_t fd, short what, void *context)
{
    struct http_socket *entry = context;
    struct http_pool *pool = entry->pool;
    if (entry->is_idle) { /* the server has closed it; curl sees that before it uses it again */
        td_http_pool_forget_socket(pool, fd);
        return;
    }
    int events =
        ((what & EV_READ) ? CURL_CSELECT_IN : 0) | ((what & EV_WRITE) ? CURL_CSELECT_OUT : 0);
    bool is_stream = entry->is_stream;
    pool->taken = 0;
    pool_act(pool, fd, events); /* the entry may be gone */
    if (is_stream && pool->taken > 0 && pool->taken < POOL_REST_BYTES_MAX) {
        entry = pool_find_socket(pool, fd);
        if (entry && entry->is_stream) {
            pool_let_rest(entry);
        }
    }
}

static void pool_timer_rings(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    pool_act(context, CURL_SOCKET_TIMEOUT, 0);
}

static void pool_end_rings(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct http_pool *pool = context;
    pool->is_over = true;
    event_active(pool->http->kick, EV_TIMEOUT, 0);
}

static int pool_watch_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *data)
{
    (void)data;
    struct http_pool *pool = context;
    struct http_socket *entry = pool_find_socket(pool, fd);
    short events = (short)(EV_PERSIST | ((what & CURL_POLL_IN) ? EV_READ : 0) |
                           ((what & CURL_POLL_OUT) ? EV_WRITE : 0));
    void *private = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private); /* NULL while it is given back */
    const struct td_call *call = private;
    bool is_stream = call && td_http_is_stream(call);
    if (entry) {
        entry->is_idle = what == CURL_POLL_REMOVE;
        entry->is_stream = is_stream && !entry->is_idle;
        if (entry->is_idle || (entry->events == events && !entry->is_resting)) {
            return 0;
        }
        pool_drop_first_socket(pool);
    }
    if (what == CURL_POLL_REMOVE) {
        return 0;
    }
    entry = td_alloc_zero(1, sizeof(*entry));
    *entry = (struct http_socket){
        .pool = pool, .next = pool->sockets, .fd = fd, .events = events, .is_stream = is_stream};
    pool->sockets = entry;
    entry->event =
        event_new(td_loop_base(pool->http->loop), fd, events, pool_socket_is_ready, entry);
    if (!entry->event || event_add(entry->event, NULL) != 0) {
        td_out_of_memory();
    }
    return 0;
}

static int pool_watch_time(CURLM *multi, long timeout_ms, void *context)
{
    (void)multi;
    struct http_pool *pool = context;
    if (timeout_ms < 0) {
        (void)event_del(pool->timer); /* fails only for an event without a base */
        return 0;
    }
    const struct timeval wait = {
        .tv_sec = timeout_ms / 1000,
        .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000,
    };
    if (event_add(pool->timer, &wait) != 0) {
        td_out_of_memory();
    }
    return 0;
}

static struct http_pool *pool_new(struct http_transport *http, uint64_t generation)
{
    struct http_pool *pool = td_alloc_zero(1, sizeof(*pool));
    pool->http = http;
    pool->generation = generation;
    pool->multi = curl_multi_init();
    pool->timer = event_new(td_loop_base(http->loop), -1, 0, pool_timer_rings, pool);
    pool->end = event_new(td_loop_base(http->loop), -1, 0, pool_end_rings, pool);
    pool->rest = event_new(td_loop_base(http->loop), -1, 0, pool_rest_is_over, pool);
    if (!pool->multi || !pool->timer || !pool->end || !pool->rest) {
        td_out_of_memory();
    }
    /* These fail only for options that curl does not know. */
    (void)curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, pool_watch_socket);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, pool_watch_time);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, http->connections_max);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, http->connections_max);
    return pool;
}

void td_http_pool_free(struct http_pool *pool)
{
    td_assert(!pool->calls.first);
    td_assert(!pool->http->is_in_curl);
    while (pool->spare_count > 0) {
        curl_easy_cleanup(pool->spares[--pool->spare_count]);
    }
    (void)curl_multi_cleanup(pool->multi); /* closes the connections */
    while (pool->sockets) {
        pool_drop_first_socket(pool);
    }
    event_free(pool->rest);
    event_free(pool->timer);
    event_free(pool->end);
    td_free(pool);
}

struct http_pool *td_http_pool_for(struct http_transport *http, uint64_t generation)
{
    struct http_pool *pool = http->pools;
    if (pool && pool->generation == generation) {
        return pool;
    }
    if (pool && !pool->is_retired) {
        static const struct timeval wait = {.tv_sec = TD_TRANSPORT_RETIRE_MS / 1000};
        pool->is_retired = true;
        if (event_add(pool->end, &wait) != 0) {
            td_out_of_memory();
        }
    }
    struct http_pool *fresh = pool_new(http, generation);
    fresh->next = http->pools;
    http->pools = fresh;
    event_active(http->kick, EV_TIMEOUT, 0); /* the old one may be free of calls already */
    return fresh;
}

int td_http_pool_add(struct http_pool *pool, struct td_call *call, struct td_error *err)
{
    td_assert(!pool->http->is_in_curl);
    CURLMcode result = curl_multi_add_handle(pool->multi, call->easy);
    if (result != CURLM_OK) {
        return td_error_set(err, TD_IO, "cannot start the request: %s",
                            curl_multi_strerror(result));
    }
    call->pool = pool;
    td_http_call_move(call, &pool->calls);
    return TD_OK;
}

void td_http_pool_remove(struct td_call *call)
{
    td_assert(!call->http->is_in_curl);
    /* It is there, and we are not inside curl: nothing can fail. Closing a connection may tell
     * curl's callbacks, which do not touch calls. */
    struct http_pool *pool = call->pool;
    (void)curl_multi_remove_handle(pool->multi, call->easy);
    call->pool = NULL;
    if (pool->is_retired || pool->spare_count == HTTP_SPARES_MAX) {
        return;
    }
    /* What belongs to the call goes with it; what belongs to the connection stays. */
    (void)curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, NULL);
    (void)curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, NULL);
    (void)curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, NULL);
    (void)curl_easy_setopt(call->easy, CURLOPT_USERNAME, NULL);
    (void)curl_easy_setopt(call->easy, CURLOPT_PASSWORD, NULL);
    (void)curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, NULL);
    (void)curl_easy_setopt(call->easy, CURLOPT_PRIVATE, NULL);
    pool->spares[pool->spare_count++] = call->easy;
    call->easy = NULL;
}

void td_http_pools_retire(struct http_transport *http)
{
    struct http_pool **at = &http->pools;
    while (*at) {
        struct http_pool *pool = *at;
        while (pool->is_over && pool->calls.first) {
            struct td_error err = TD_ERROR_INIT;
            int code =
                td_error_set(&err, TD_IO, "the client certificate or the authorities changed");
            td_http_call_finish(pool->calls.first, code, &err);
        }
        if (pool->is_retired && !pool->calls.first) {
            *at = pool->next;
            td_http_pool_free(pool);
        } else {
            at = &pool->next;
        }
    }
}
