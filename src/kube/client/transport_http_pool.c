/*
 * curl's multi interface on libevent. curl says which sockets it waits for and until when, we tell
 * it what happened; while it runs our callbacks nothing of the multi interface may be called, so
 * what users ask for meanwhile is done when it has returned. The sockets are in a set of their own,
 * which the loop looks at as a whole.
 */
#include "kube/client/transport_http_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/loop.h"

#define POOL_REST_MICROS 10000                 /* when fewer bytes than ... */
#define POOL_REST_BYTES_MAX ((size_t)16 << 10) /* ... these came in one go */
#define POOL_READY_MAX 64                      /* sockets told of in one go */

/* A socket that the pool's set looks at. Between two requests curl lets go of it, and a moment
 * later asks for it again: it is kept until something happens there or it is closed. */
struct http_socket {
    struct http_socket *next;
    curl_socket_t fd;
    uint32_t events;
    bool is_idle; /* curl does not wait for it */
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

/* The loop looks at the set while there is something in it, but for its rests. */
static void pool_look(struct http_pool *pool)
{
    bool is_looking = pool->sockets && !event_pending(pool->rest, EV_TIMEOUT, NULL);
    if ((is_looking ? event_add(pool->ready, NULL) : event_del(pool->ready)) != 0) {
        td_out_of_memory();
    }
}

static void pool_control(struct http_pool *pool, int operation, const struct http_socket *entry)
{
    struct epoll_event event = {.events = entry->events, .data = {.fd = entry->fd}};
    if (epoll_ctl(pool->set, operation, entry->fd, &event) != 0 && operation == EPOLL_CTL_ADD) {
        td_out_of_memory(); /* an open socket that is not in the set: nothing else can be wrong */
    }
}

static void pool_drop_first_socket(struct http_pool *pool)
{
    struct http_socket *entry = pool->sockets;
    pool->sockets = entry->next;
    pool_control(pool, EPOLL_CTL_DEL, entry);
    td_free(entry);
    if (!pool->sockets) {
        pool_look(pool);
    }
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

static void pool_socket_is_ready(struct http_pool *pool, curl_socket_t fd, uint32_t what)
{
    const struct http_socket *entry = pool_find_socket(pool, fd);
    if (!entry) {
        return; /* closed by what was done for another one */
    }
    if (entry->is_idle) { /* the server has closed it; curl sees that before it uses it again */
        pool_drop_first_socket(pool);
        return;
    }
    bool is_broken = what & (EPOLLERR | EPOLLHUP);
    pool_act(pool, fd,
             ((what & EPOLLIN) || is_broken ? CURL_CSELECT_IN : 0) |
                 ((what & EPOLLOUT) || is_broken ? CURL_CSELECT_OUT : 0));
}

/* What happens close together is done together: the process wakes up less often. A rest is too
 * short to be noticed, and where much arrives there is none. */
static void pool_is_ready(evutil_socket_t set, short what, void *context)
{
    (void)what;
    static const struct timeval rest = {.tv_usec = POOL_REST_MICROS};
    struct http_pool *pool = context;
    struct epoll_event events[POOL_READY_MAX];
    int count = epoll_wait(set, events, POOL_READY_MAX, 0);
    pool->taken = 0;
    for (int i = 0; i < count; i++) {
        pool_socket_is_ready(pool, events[i].data.fd, events[i].events);
    }
    bool rests = pool->taken > 0 && pool->taken < POOL_REST_BYTES_MAX;
    if (rests && event_add(pool->rest, &rest) != 0) {
        td_out_of_memory();
    }
    pool_look(pool);
}

static void pool_rest_is_over(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    pool_look(context);
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
    (void)easy;
    (void)data;
    struct http_pool *pool = context;
    struct http_socket *entry = pool_find_socket(pool, fd);
    uint32_t events =
        ((what & CURL_POLL_IN) ? EPOLLIN : 0) | ((what & CURL_POLL_OUT) ? EPOLLOUT : 0);
    if (entry) {
        entry->is_idle = what == CURL_POLL_REMOVE;
        if (!entry->is_idle && entry->events != events) {
            entry->events = events;
            pool_control(pool, EPOLL_CTL_MOD, entry);
        }
        return 0;
    }
    if (what == CURL_POLL_REMOVE) {
        return 0;
    }
    entry = td_alloc(sizeof(*entry));
    *entry = (struct http_socket){.next = pool->sockets, .fd = fd, .events = events};
    pool->sockets = entry;
    pool_control(pool, EPOLL_CTL_ADD, entry);
    if (!entry->next) {
        pool_look(pool);
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

static struct http_pool *pool_new(struct http_transport *http, uint64_t generation,
                                  struct td_error *err)
{
    int set = epoll_create1(EPOLL_CLOEXEC);
    if (set < 0) {
        (void)td_error_set(err, TD_IO, "cannot wait for sockets: %s", strerror(errno));
        return NULL;
    }
    struct event_base *base = td_loop_base(http->loop);
    struct http_pool *pool = td_alloc_zero(1, sizeof(*pool));
    pool->http = http;
    pool->generation = generation;
    pool->set = set;
    pool->multi = curl_multi_init();
    pool->ready = event_new(base, set, EV_READ | EV_PERSIST, pool_is_ready, pool);
    pool->rest = event_new(base, -1, 0, pool_rest_is_over, pool);
    pool->timer = event_new(base, -1, 0, pool_timer_rings, pool);
    pool->end = event_new(base, -1, 0, pool_end_rings, pool);
    if (!pool->multi || !pool->ready || !pool->rest || !pool->timer || !pool->end) {
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
    event_free(pool->ready);
    (void)close(pool->set); /* nothing was written to it */
    event_free(pool->rest);
    event_free(pool->timer);
    event_free(pool->end);
    td_free(pool);
}

struct http_pool *td_http_pool_for(struct http_transport *http, uint64_t generation,
                                   struct td_error *err)
{
    struct http_pool *pool = http->pools;
    if (pool && pool->generation == generation) {
        return pool;
    }
    struct http_pool *fresh = pool_new(http, generation, err);
    if (!fresh) {
        return NULL;
    }
    if (pool && !pool->is_retired) {
        static const struct timeval wait = {.tv_sec = TD_TRANSPORT_RETIRE_MS / 1000};
        pool->is_retired = true;
        if (event_add(pool->end, &wait) != 0) {
            td_out_of_memory();
        }
    }
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
