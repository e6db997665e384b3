/*
 * How a request reaches an API server: over HTTPS (kube/client/transport_http.h) or straight into
 * the embedded server in this process (local/api/transport.h). One call is one request and its
 * answer, which arrives in pieces: head once, body any number of times, end exactly once. Callbacks
 * come from the loop, never from inside start; after cancel none comes any more, and cancel may be
 * called from inside a callback. Request texts are copied by start. A transport does not retry,
 * limit or interpret: that is kube/client/client.h. One thread, the loop's.
 */
#pragma once

#include "base/os/clock.h"
#include "base/str.h"

struct td_error;
struct td_transport;
struct td_call; /* one request in progress; owned by its transport, gone after end or cancel */

struct td_call_request {
    td_str method;       /* "GET" */
    td_str path;         /* escaped, with query: "/api/v1/pods?limit=500" */
    td_str accept;       /* empty: "application/json" */
    td_str content_type; /* of the body */
    td_str body;
    td_duration deadline; /* real time until the end of the answer; 0: none, for watches */
    td_duration idle;     /* real time without a byte after which it is cut; 0: none */
};

struct td_call_head {
    int status;              /* 200 */
    td_str content_type;     /* without parameters: "application/json" */
    td_duration retry_after; /* -1: not said */
    td_time date;            /* what time it is at the server; 0: not said */
    double clock_speed;      /* how fast time goes there; 0: not said */
    td_str warning;          /* the first Warning header, empty when there is none */
};

struct td_call_events {
    void (*head)(void *context, const struct td_call_head *head); /* may be NULL */
    void (*body)(void *context, td_str bytes);                    /* decoded of any coding */
    /* TD_OK when the whole answer came, whatever its status; else TD_IO, TD_TIMEOUT, TD_DENIED (no
     * credentials), TD_INVALID (broken answer), TD_LIMIT (answer too large), TD_BUSY (no
     * connection, so nothing was sent) with the reason in err. The call is gone. */
    void (*end)(void *context, int code, const struct td_error *err);
};

struct td_transport_ops {
    struct td_call *(*start)(struct td_transport *transport, const struct td_call_request *request,
                             const struct td_call_events *events, void *context);
    void (*cancel)(struct td_call *call);
    /* The server refused the credentials (401): get new ones before the next call. May be NULL. */
    void (*forget_credentials)(struct td_transport *transport);
    void (*free)(struct td_transport *transport); /* every call must have ended */
};

/* The first member of each transport's own struct. */
struct td_transport {
    const struct td_transport_ops *ops;
};
