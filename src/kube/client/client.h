/*
 * A client of one API server: whole requests and answers over a transport, with the rate limit and
 * the one place that retries. Users of one client take turns by flow (one flow a controller), so a
 * burst of one cannot starve another. Idempotent calls are repeated on TD_IO, TD_TIMEOUT, 429 and
 * 5xx with growing pauses and jitter, Retry-After honoured, until the tries or the deadline are
 * used up; others are repeated only when the server said that it did nothing (429 with
 * Retry-After, a refused connection). An eviction's 429 by a disruption budget is an answer, not a
 * reason to repeat. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/os/loop.h"
#include "base/str.h"
#include "kube/client/transport.h"

struct td_client;
struct td_client_flow;
struct td_client_call;

struct td_client_options {
    struct td_loop *loop;
    struct td_transport *transport; /* taken: freed with the client */
    double qps;                     /* --kube-api-qps; 0: no limit */
    int burst;                      /* --kube-api-burst, at least 1 */
    uint64_t seed;                  /* of the jitter */
    bool keeps_server_time;         /* the loop's clock is kept on the server's: server_clock.h */
};

struct td_client *td_client_new(const struct td_client_options *options);
/* Calls in progress are cancelled without their callbacks, flows are freed; not from inside a
 * callback of the client. */
void td_client_free(struct td_client *client);

struct td_client_flow *td_client_flow_new(struct td_client *client, td_str name);
void td_client_flow_free(struct td_client_flow *flow); /* its calls are cancelled */

struct td_client_request {
    struct td_client_flow *flow; /* NULL: one that all such calls share */
    td_str method;
    td_str path; /* see kube/paths.h */
    td_str accept;
    td_str content_type; /* empty with a body: "application/json" */
    td_str body;
    td_duration deadline; /* of everything, waiting and retries included, in real time unless the
                             clock is virtual; 0: 30 s, for a stream none */
    bool is_idempotent;   /* GETs always are; say so for a write that may be sent twice */
    unsigned tries_max;   /* in all; 0: TD_CLIENT_TRIES_MAX */
    td_duration idle;     /* a stream's: real time without a byte after which it is cut; 0: none */
};

struct td_client_reply {
    int code;   /* TD_OK for 2xx; TD_NOT_FOUND 404, TD_CONFLICT 409, TD_EXISTS 409 with reason
                   AlreadyExists, TD_GONE 410, TD_INVALID 400 and 422, TD_DENIED 401 and 403,
                   TD_BUSY 429, TD_IO 5xx and broken connections, TD_TIMEOUT, TD_LIMIT */
    int status; /* HTTP status; 0 when there was no answer */
    td_str
        reason; /* of a Status answer: "AlreadyExists"; causes "DisruptionBudget", "NodeCapacity" */
    td_str body;         /* valid during the callback */
    td_str warning;      /* what the server warned about, or empty */
    struct td_error err; /* one line: method, path and the server's message */
};

typedef void (*td_client_done_fn)(void *context, const struct td_client_reply *reply);

/* `done` is called once from the loop; the call is gone by then. Texts are copied. TD_LIMIT when
 * TD_CLIENT_QUEUE_MAX calls of the flow wait already. */
struct td_client_call *td_client_send(struct td_client *client,
                                      const struct td_client_request *request,
                                      td_client_done_fn done, void *context);
void td_client_cancel(struct td_client_call *call); /* no callback any more */

/* A stream (watch): waits its turn; the answer's pieces go to `events`. An answer that is not 2xx
 * ends with its code and the server's message, its head and body are not handed on. It is not
 * repeated, except after a 401 once with new credentials and, as calls are, when the server says
 * when to come back (429 or 5xx with Retry-After). */
struct td_client_call *td_client_stream(struct td_client *client,
                                        const struct td_client_request *request,
                                        const struct td_call_events *events, void *context);

/* Pauses between repeated attempts: doubling from min to max, each multiplied by 0.5 to 1.5. */
struct td_backoff {
    td_duration min;
    td_duration max;
    unsigned attempts;
    uint64_t random; /* state */
};
td_duration td_backoff_next(struct td_backoff *backoff);
void td_backoff_reset(struct td_backoff *backoff);

struct td_client_counts {
    uint64_t calls; /* sent to the transport */
    uint64_t retries;
    uint64_t failures;  /* given up */
    uint64_t waited_ns; /* by the rate limit, summed */
};
struct td_client_counts td_client_counts(const struct td_client *client);
