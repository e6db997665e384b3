/*
 * Types shared by the files of the HTTPS transport only. A call is in the
 * line (waiting), with the credentials (a plugin runs), or in a pool. A pool is one curl multi
 * handle with its connections, all made under one generation of certificates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/os/clock.h"
#include "kube/client/transport.h"
#include "kube/kubeconfig/credentials.h"
#include "kube/kubeconfig/kubeconfig.h"

struct event;

struct http_list {
    struct td_call *first;
    struct td_call *last;
};

#define HTTP_SPARES_MAX 16

struct http_pool {
    struct http_transport *http;
    struct http_pool *next;
    CURLM *multi;                  /* owned */
    struct event *timer;           /* owned: what curl waits for */
    struct event *end;             /* owned: when a retired pool's calls are cut */
    int set;                       /* owned: the sockets */
    struct event *ready;           /* owned: something happened in the set */
    struct event *rest;            /* owned: when the set is looked at again */
    size_t taken;                  /* bytes of bodies since it was looked at */
    uint64_t generation;           /* of the connections */
    CURL *spares[HTTP_SPARES_MAX]; /* of calls that are over, ready for the next; owned */
    size_t spare_count;
    struct http_list calls;
    struct http_socket *sockets; /* owned */
    bool is_retired;
    bool is_over; /* its time has come: its calls are cut */
};

struct http_transport {
    struct td_transport transport;
    struct td_loop *loop;
    const struct td_kube_config *config;
    struct td_credentials *credentials; /* owned */
    struct td_clock machine;            /* real time */
    long connections_max;
    bool wants_gzip;
    struct curl_slist *impersonation; /* header lines; owned */
    struct http_pool *pools;          /* the one in use first; owned */
    struct http_list waiting;         /* for the kick, oldest first */
    struct http_list asking;          /* with the credentials */
    struct http_list cancelled;       /* from inside curl: freed when that returns */
    size_t call_count;                /* of all lists and pools */
    struct event *kick;               /* owned: takes up what waits, outside of every callback */
    bool is_in_curl;                  /* no call of the multi interface is allowed */
    uint64_t refused_generation;      /* of the newest credentials that met a 401 */
    char date_text[64];               /* the Date header that was read last: most are the same */
    td_time date;
};

struct td_call {
    struct http_transport *http;
    struct http_list *list; /* the one it is in */
    struct td_call *next;
    struct td_call *previous;
    struct http_pool *pool;           /* NULL before it is sent */
    struct td_credentials_wait *wait; /* while a plugin runs */
    bool is_cancelled;
    bool is_write;
    bool is_begun; /* it was sent, or a part of it */
    bool is_again; /* curl would have sent it once more */
    bool has_head;
    bool is_too_large;
    CURL *easy; /* owned, with the header lines */
    struct curl_slist *headers;
    struct curl_slist *route; /* for a server name of its own */
    struct event *timer;      /* owned; NULL without deadline and idle limit */
    td_duration due;          /* machine's steady time; INT64_MAX: none */
    td_duration deadline;
    td_duration idle;
    td_duration last_byte;
    uint64_t generation; /* of its credentials */
    struct td_call_request request;
    char *text;          /* of the request, each part followed by a NUL; owned */
    uint64_t body_bytes; /* received, decoded */
    struct td_call_events events;
    void *context;
    int status;
    td_duration retry_after;
    td_time date; /* the Date header; 0: there was none */
    double clock_speed;
    char content_type[128];
    char warning[512];
    char problem[CURL_ERROR_SIZE];
};

/* Build the request of `call` under `credential`, to be sent by `pool`. TD_INVALID or TD_DENIED for
 * what cannot be sent. */
int td_http_setup(struct td_call *call, struct http_pool *pool,
                  const struct td_credential *credential, struct td_error *err);

/* Lines of the configuration's impersonation; NULL when there is none. TD_INVALID for a value that
 * no header can carry. */
int td_http_impersonation(const struct td_kube_impersonation *who, struct curl_slist **ret,
                          struct td_error *err);

bool td_http_is_loopback(td_str host);

/* What curl says, in our codes. */
int td_http_code(const struct td_call *call, CURLcode result, struct td_error *err);

/* The pool for `generation`, made when needed; older ones are retired. NULL: err says why. */
struct http_pool *td_http_pool_for(struct http_transport *http, uint64_t generation,
                                   struct td_error *err);
int td_http_pool_add(struct http_pool *pool, struct td_call *call, struct td_error *err);

/* No event is waited for at `fd` any more; the second one closes it too, for curl. */
void td_http_pool_forget_socket(struct http_pool *pool, curl_socket_t fd);
int td_http_pool_close_socket(void *context, curl_socket_t fd);

void td_http_pool_remove(struct td_call *call); /* not from inside curl; takes its handle back */

/* Cut the calls of pools whose time is over and free retired pools without calls. */
void td_http_pools_retire(struct http_transport *http);
void td_http_pool_free(struct http_pool *pool);

/* To the end of `list`, out of the one it was in; NULL: into none. */
void td_http_call_move(struct td_call *call, struct http_list *list);

/* The call is over: everything of it is released, then the user is told. */
void td_http_call_finish(struct td_call *call, int code, const struct td_error *err);
void td_http_call_free(struct td_call *call);

/* curl's callbacks of one call. */
size_t td_http_take_header(char *bytes, size_t size, size_t count, void *context);
size_t td_http_take_body(char *bytes, size_t size, size_t count, void *context);
int td_http_begin(void *context, char *to_ip, char *from_ip, int to_port, int from_port);
