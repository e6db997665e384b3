/*
 * The API handler: one function from request to response, called by the HTTP server
 * (local/api/serve.h) and by the in-process transport (local/api/transport.h) alike. It knows the
 * store, the resources and admission, and nothing of sockets. Most calls are answered before
 * td_api_start returns; a watch, a large list, a write that waits for a webhook or for the disk
 * goes on by itself and is ended by its sink or by td_api_cancel. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/loop.h"
#include "base/str.h"

struct td_admission;
struct td_api;
struct td_api_call;
struct td_auth;
struct td_buf;
struct td_error;
struct td_faults;
struct td_measures;
struct td_resources;
struct td_store;

struct td_api_user {
    td_str name; /* "system:admin" */
    td_str uid;
    const td_str *groups;
    size_t group_count;
};

struct td_api_request {
    td_str method;
    td_str target; /* raw: path and query */
    td_str accept;
    td_str content_type;
    td_str user_agent;
    td_str body;
    struct td_api_user user; /* who authentication found */
};

struct td_api_header {
    td_str name;
    td_str value;
};

/* Where the answer goes. head once, then body in pieces, then end once. `body` with a release
 * function lends bytes that stay unchanged until it is called, else they are copied. `is_full`
 * asks whether the receiver wants no more for now: a stream then waits for td_api_resume. */
struct td_api_sink {
    void (*head)(void *context, int status, const struct td_api_header *headers, size_t count);
    void (*body)(void *context, td_str bytes, void (*release)(void *owner), void *owner);
    bool (*is_full)(void *context);
    void (*end)(void *context);
};

struct td_api_options {
    struct td_loop *loop;
    struct td_store *store;             /* borrowed */
    struct td_auth *auth;               /* borrowed; NULL: every request is allowed */
    uint64_t seed;                      /* of uids and generated names */
    struct td_faults *faults;           /* borrowed; NULL: none */
    const struct td_measures *measures; /* borrowed; NULL: only what objects say themselves */
    bool has_no_strategy;               /* the gate HPASelectionStrategy is off */
    td_str server_url;                  /* for discovery's answers that name it; may be empty */
};

int td_api_new(const struct td_api_options *options, struct td_api **ret, struct td_error *err);
void td_api_free(struct td_api *api); /* open calls are ended */

/* Texts of the request are copied. The sink may be called before this returns; the result is NULL
 * when the call has already ended. */
struct td_api_call *td_api_start(struct td_api *api, const struct td_api_request *request,
                                 const struct td_api_sink *sink, void *context);
void td_api_resume(struct td_api_call *call); /* the sink has room again */
void td_api_cancel(struct td_api_call *call); /* the client is gone; the sink is not called */

struct td_resources *td_api_resources(struct td_api *api);
/* The row of a kind, such as v1 and Pod; NULL: it is not served. */
const struct td_resource *td_api_kind(struct td_api *api, td_str api_version, td_str kind);
struct td_admission *td_api_admission(struct td_api *api);
struct td_store *td_api_store(struct td_api *api);
struct td_auth *td_api_auth(struct td_api *api); /* NULL: there is none */
struct td_loop *td_api_loop(struct td_api *api);
td_time td_api_now(struct td_api *api); /* the wall clock's */

/* A webhook of this process: reviews for `url` are given to `fn`, in a turn of their own, instead
 * of over the network, which does not keep up with a clock that is not the machine's. `fn` appends
 * the answer. One at a time; NULL takes it back. The text is copied. */
typedef void (*td_api_review_fn)(void *context, td_str review, struct td_buf *answer);
void td_api_answer_reviews(struct td_api *api, td_str url, td_api_review_fn fn, void *context);
