/*
 * The HTTPS transport beside a raw server on one loop, for tests: calls whose pieces are kept, and
 * a run that ends when they have ended or after some real seconds.
 */
#pragma once

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "kube/client/client.h"
#include "kube/client/transport_http.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "support/raw_server.h"

#define HTTP_BED_SECONDS 20 /* a run that takes longer hangs */

struct http_bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct raw_server server;
    struct td_arena arena;
    struct td_kube_config config;
    struct td_transport *transport;
    struct event *watchdog;
    size_t open; /* calls that have not ended */
    bool is_hung;
};

/* One call and what came of it. */
struct http_call {
    struct http_bed *bed;
    struct td_call *call;
    int heads, bodies, ends, code, status;
    td_duration retry_after;
    td_time date;
    double clock_speed;
    char content_type[64];
    char warning[64];
    char body[4096];
    size_t body_len;
    char message[TD_ERROR_MESSAGE_BYTES];
    bool is_cancelling; /* from inside body */
};

static inline void http_bed_hangs(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct http_bed *bed = context;
    bed->is_hung = true;
    td_loop_stop(bed->loop);
}

/* Nothing is connected before http_bed_connect, so that a test can change the configuration. */
static inline void http_bed_init(struct http_bed *bed, struct td_clock clock, SSL_CTX *tls,
                                 raw_fn fn, void *context)
{
    (void)signal(SIGPIPE, SIG_IGN);
    *bed = (struct http_bed){.clock = clock};
    int code = td_loop_new(&bed->clock, &bed->loop, NULL);
    td_assert(code == TD_OK);
    raw_server_start(&bed->server, bed->loop, tls, fn, context);
    td_arena_init(&bed->arena, 1 << 20);
    bed->watchdog = event_new(td_loop_base(bed->loop), -1, 0, http_bed_hangs, bed);
    bed->config = (struct td_kube_config){
        .is_tls = tls != NULL,
        .server = td_arena_format(&bed->arena, "%s://127.0.0.1:%u", tls ? "https" : "http",
                                  bed->server.port),
        .host = TD_STR("127.0.0.1"),
        .port = bed->server.port,
    };
}

static inline void http_bed_connect(struct http_bed *bed)
{
    const struct td_transport_http_options options = {.loop = bed->loop, .config = &bed->config};
    int code = td_transport_http_new(&options, &bed->transport, NULL);
    td_assert(code == TD_OK);
}

/* The transport may have gone with a client: then bed->transport is NULL. */
static inline void http_bed_done(struct http_bed *bed)
{
    if (bed->transport) {
        bed->transport->ops->free(bed->transport);
    }
    raw_server_stop(&bed->server);
    event_free(bed->watchdog);
    td_arena_done(&bed->arena);
    td_loop_free(bed->loop);
}

/* Until every call has ended (or `ms` have passed, when not 0). */
static inline void http_bed_run(struct http_bed *bed, unsigned ms)
{
    const struct timeval wait = {.tv_sec = ms > 0 ? ms / 1000 : HTTP_BED_SECONDS,
                                 .tv_usec = (suseconds_t)(ms % 1000) * 1000};
    bed->is_hung = false;
    (void)event_add(bed->watchdog, &wait);
    int code = td_loop_run(bed->loop, NULL);
    td_assert(code == TD_OK);
    (void)event_del(bed->watchdog);
    td_assert(!bed->is_hung || ms > 0);
}

static inline void http_bed_ended(struct http_bed *bed)
{
    bed->open--;
    if (bed->open == 0) {
        td_loop_stop(bed->loop);
    }
}

static inline void http_call_head(void *context, const struct td_call_head *head)
{
    struct http_call *call = context;
    call->heads++;
    call->status = head->status;
    call->retry_after = head->retry_after;
    call->date = head->date;
    call->clock_speed = head->clock_speed;
    (void)snprintf(call->content_type, sizeof(call->content_type), "%.*s",
                   TD_STR_ARG(head->content_type));
    (void)snprintf(call->warning, sizeof(call->warning), "%.*s", TD_STR_ARG(head->warning));
}

static inline void http_call_body(void *context, td_str bytes)
{
    struct http_call *call = context;
    call->bodies++;
    td_assert(call->heads == 1);
    td_assert(call->body_len + bytes.len < sizeof(call->body));
    memcpy(call->body + call->body_len, bytes.ptr, bytes.len);
    call->body_len += bytes.len;
    call->body[call->body_len] = '\0';
    if (call->is_cancelling) {
        call->bed->transport->ops->cancel(call->call);
        http_bed_ended(call->bed);
    }
}

static inline void http_call_end(void *context, int code, const struct td_error *err)
{
    struct http_call *call = context;
    call->ends++;
    call->code = code;
    (void)snprintf(call->message, sizeof(call->message), "%s", code == TD_OK ? "" : err->message);
    http_bed_ended(call->bed);
}

static inline void http_call_start(struct http_bed *bed, struct http_call *call,
                                   const struct td_call_request *request)
{
    static const struct td_call_events events = {http_call_head, http_call_body, http_call_end};
    *call = (struct http_call){.bed = bed, .is_cancelling = call->is_cancelling};
    bed->open++;
    call->call = bed->transport->ops->start(bed->transport, request, &events, call);
}

static inline void http_get(struct http_bed *bed, struct http_call *call)
{
    const struct td_call_request request = {.method = TD_STR("GET"),
                                            .path = TD_STR("/api/v1/pods")};
    http_call_start(bed, call, &request);
    http_bed_run(bed, 0);
}

/* The same through a client, which takes the transport. */
struct http_reply {
    struct http_bed *bed;
    int done, code, status;
    char body[1024];
    char message[TD_ERROR_MESSAGE_BYTES];
};

static inline void http_reply_done(void *context, const struct td_client_reply *reply)
{
    struct http_reply *to = context;
    to->done++;
    to->code = reply->code;
    to->status = reply->status;
    (void)snprintf(to->body, sizeof(to->body), "%.*s", TD_STR_ARG(reply->body));
    (void)snprintf(to->message, sizeof(to->message), "%s", reply->err.message);
    http_bed_ended(to->bed);
}

static inline struct td_client *http_bed_client(struct http_bed *bed)
{
    struct td_client *client = td_client_new(
        &(struct td_client_options){.loop = bed->loop, .transport = bed->transport, .seed = 1});
    bed->transport = NULL;
    return client;
}

static inline void http_client_get(struct http_bed *bed, struct td_client *client,
                                   struct http_reply *reply)
{
    *reply = (struct http_reply){.bed = bed};
    bed->open++;
    (void)td_client_send(
        client,
        &(struct td_client_request){.method = TD_STR("GET"), .path = TD_STR("/api/v1/pods")},
        http_reply_done, reply);
    http_bed_run(bed, 0);
}
