/*
 * A transport without a network for tests: each request is shown to a function of the test, which
 * says what comes back and after how long on the loop's clock. Everything that was asked is kept
 * as one line a request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/os/loop.h"
#include "kube/client/transport.h"

struct fake_answer {
    int status;              /* 0: the call ends with `code` and without a head */
    int code;                /* how it ends */
    const char *body;        /* NULL: none */
    const char *type;        /* NULL: application/json */
    const char *warning;     /* NULL: none */
    td_duration retry_after; /* -1: not said */
    td_time date;            /* 0: not said */
    td_duration after;       /* until the answer */
    bool is_open;            /* head and body come, the end does not */
    bool is_silent;          /* nothing comes, ever */
};

typedef void (*fake_fn)(void *context, const struct td_call_request *request,
                        struct fake_answer *ret);

struct fake_transport {
    struct td_transport transport;
    struct td_loop *loop;
    fake_fn fn;
    void *context;
    struct td_buf log; /* "METHOD path body" lines */
    size_t starts;
    size_t cancels;
    size_t forgotten;
    size_t open; /* calls not ended */
    size_t open_max;
    bool is_freed;
};

struct td_call {
    struct fake_transport *fake;
    struct td_timer *timer;
    struct fake_answer answer;
    struct td_call_events events;
    void *context;
    bool is_cancelled;
    bool is_busy; /* inside its own callbacks */
};

static inline void fake_call_free(struct td_call *call)
{
    call->fake->open--;
    td_timer_free(call->timer);
    td_free(call);
}

static inline void fake_rings(struct td_timer *timer, void *context)
{
    (void)timer;
    struct td_call *call = context;
    const struct fake_answer *answer = &call->answer;
    call->is_busy = true;
    if (answer->status != 0) {
        const struct td_call_head head = {
            .status = answer->status,
            .content_type = td_str_from(answer->type ? answer->type : "application/json"),
            .retry_after = answer->retry_after,
            .date = answer->date,
            .warning = td_str_from(answer->warning),
        };
        if (call->events.head) {
            call->events.head(call->context, &head);
        }
        if (!call->is_cancelled && answer->body) {
            call->events.body(call->context, td_str_from(answer->body));
        }
    }
    call->is_busy = false;
    if (call->is_cancelled) {
        fake_call_free(call);
        return;
    }
    if (answer->is_open) {
        return;
    }
    struct td_error err = TD_ERROR_INIT;
    if (answer->code != TD_OK) {
        (void)td_error_set(&err, answer->code, "the fake says so");
    }
    struct td_call_events events = call->events;
    void *user = call->context;
    int code = answer->code;
    fake_call_free(call);
    events.end(user, code, &err);
}

static inline struct td_call *fake_start(struct td_transport *transport,
                                         const struct td_call_request *request,
                                         const struct td_call_events *events, void *context)
{
    struct fake_transport *fake = (struct fake_transport *)transport;
    struct td_call *call = td_alloc_zero(1, sizeof(*call));
    call->fake = fake;
    call->events = *events;
    call->context = context;
    call->answer = (struct fake_answer){.status = 200, .retry_after = -1};
    fake->starts++;
    fake->open++;
    fake->open_max = fake->open > fake->open_max ? fake->open : fake->open_max;
    (void)td_buf_append_format(&fake->log, "%.*s %.*s%s%.*s\n", TD_STR_ARG(request->method),
                               TD_STR_ARG(request->path), request->body.len > 0 ? " " : "",
                               TD_STR_ARG(request->body));
    fake->fn(fake->context, request, &call->answer);
    call->timer = td_timer_new(fake->loop, fake_rings, call);
    if (!call->answer.is_silent) {
        td_timer_set(call->timer, call->answer.after);
    }
    return call;
}

static inline void fake_cancel(struct td_call *call)
{
    call->fake->cancels++;
    call->is_cancelled = true;
    if (!call->is_busy) {
        fake_call_free(call);
    }
}

static inline void fake_forget(struct td_transport *transport)
{
    ((struct fake_transport *)transport)->forgotten++;
}

static inline void fake_free(struct td_transport *transport)
{
    struct fake_transport *fake = (struct fake_transport *)transport;
    td_assert(fake->open == 0);
    td_buf_done(&fake->log);
    fake->is_freed = true;
}

/* `fake` is the caller's storage. */
static inline void fake_init(struct fake_transport *fake, struct td_loop *loop, fake_fn fn,
                             void *context)
{
    static const struct td_transport_ops ops = {
        .start = fake_start,
        .cancel = fake_cancel,
        .forget_credentials = fake_forget,
        .free = fake_free,
    };
    *fake = (struct fake_transport){
        .transport = {.ops = &ops}, .loop = loop, .fn = fn, .context = context};
    td_buf_init(&fake->log, (size_t)16 << 20);
}
