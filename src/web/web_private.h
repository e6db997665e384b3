/*
 * The inside of the page's server, shared by the files of this folder.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/http/http_server.h"
#include "base/map.h"
#include "web/model.h"
#include "web/web.h"

#define WEB_VIEWERS_MAX 64
#define WEB_ASKS_MAX 16 /* explanations that wait */
#define WEB_CONNECTIONS_MAX 256
#define WEB_BODY_BYTES_MAX ((size_t)64 << 10) /* of a request */
#define WEB_ANSWER_BYTES_MAX ((size_t)64 << 20)
#define WEB_QUERY_BYTES_MAX ((size_t)4 << 10)
#define WEB_ARENA_BYTES_MAX ((size_t)256 << 20)

struct web_ask;
struct web_access;
struct td_json;
struct web_past;
struct web_whatif;

struct web_viewer {
    struct td_http_exchange *exchange; /* NULL: a free place */
};

/* An answer that is the same for all who ask, made once for each version of the model. */
struct web_shared {
    struct td_buf body;
    uint64_t version;
};

struct td_web {
    struct td_web_options options;
    struct td_arena texts; /* of options */
    struct td_http_server *server;
    struct td_model *model;
    struct web_viewer viewers[WEB_VIEWERS_MAX];
    size_t viewer_count;
    struct td_timer *tick;
    unsigned beat;             /* of the stream */
    struct web_shared cluster; /* of all namespaces, as the next */
    struct web_shared rows;
    td_duration looked_at; /* machine's time; 0: never */
    struct web_ask *asks;  /* the first is being answered */
    size_t ask_count;
    struct td_timer *asks_timer;
    struct web_access *access;   /* NULL: no login is asked for */
    struct web_whatif *whatifs;  /* being worked off */
    struct web_past *past;       /* NULL: history begins with the page */
    struct web_ask *check;       /* under way, or NULL */
    struct td_arena check_arena; /* of the three texts */
    td_str metrics_problem;
    td_str webhook_problem;
    td_str rights_problem;
    td_str history_problem; /* in the memory of the past */
    td_duration checked_at; /* machine's time; 0: never */
};

/* One request. Lives in the call of the handler, and is copied by those who answer later. */
struct web_call {
    struct td_web *web;
    struct td_http_exchange *exchange;
    const struct td_http_request *request;
    td_str path;
    td_str query;
    td_str scope; /* namespace whose objects may be seen; empty: all */
};

/* ---- web.c ---- */

void web_reply_json(struct td_http_exchange *exchange, int status, const struct td_buf *body);
/* {"error": ...} */
void web_fail(struct td_http_exchange *exchange, int status, td_str message);
/* The value of a parameter, unescaped, in the arena; empty: there is none. */
td_str web_parameter(struct td_arena *arena, td_str query, const char *name);
bool web_is_in_scope(const struct web_call *call, td_str namespace);
/* Brings the model up to date; of a large cluster, where that takes time which the controllers of
 * the same process need too, not more often than it is worth. */
void web_look(struct td_web *web);
/* The answer as of now has to be made: it is empty, or of another version. */
bool web_shared_begin(const struct td_web *web, struct web_shared *shared);
/* Goes on with a call whose caller is known by now. */
void web_route(const struct web_call *call);

/* ---- The views ---- */

void web_view_info(const struct web_call *call);      /* view_cluster.c */
void web_view_cluster(const struct web_call *call);   /* likewise */
void web_view_workloads(const struct web_call *call); /* view_workloads.c */
void web_view_workload(const struct web_call *call);  /* view_workload.c */
void web_view_yaml(const struct web_call *call);      /* yaml.c */
void web_view_explain(const struct web_call *call);   /* ask.c */
void web_view_stream(const struct web_call *call);    /* stream.c */
void web_do_whatif(const struct web_call *call);      /* whatif.c */
void web_do_scenario(const struct web_call *call);    /* scenario.c */

/* The row that the parameters ns, kind, name and by name, or NULL after an answer. */
struct td_model_row *web_call_row(const struct web_call *call, struct td_arena *arena);

/* ---- ask.c ---- */

void web_asks_done(struct td_web *web);
/* Looks at what is wrong, when a page is open and it has been a while. */
void web_check(struct td_web *web);
/* Asks for the account of what has just happened, so that a mark can show it. */
void web_account(struct td_web *web);

/* ---- stream.c ---- */

void web_stream_start(struct td_web *web);
void web_stream_done(struct td_web *web);

/* ---- access.c ---- */

void web_access_new(struct td_web *web);
void web_access_free(struct web_access *access);
/* Answers the call, now or later, or goes on with it. */
void web_access_admit(const struct web_call *call);

/* ---- past.c ---- */

void web_past_new(struct td_web *web, const struct td_prometheus_options *options);
void web_past_free(struct web_past *past); /* NULL is accepted */

/* ---- scenario.c ---- */

/* What only a local cluster knows of its rows. */
void web_overlay(void *context);
double web_speed(const struct td_web *web);

/* ---- yaml.c ---- */

/* The autoscaler as it is stored, without what a server or a controller adds; NULL: not known. */
struct td_json *web_yaml_stored(const struct web_call *call, struct td_arena *arena,
                                const struct td_model_scaler *scaler);
/* New ones for the workload of a row; an Hvpa in place of its pair, where it has one. */
struct td_json *web_yaml_vpa(struct td_arena *arena, const struct td_model_row *row);
struct td_json *web_yaml_hpa(struct td_arena *arena, const struct td_model_row *row);
struct td_json *web_yaml_hvpa(const struct web_call *call, struct td_arena *arena,
                              const struct td_model_row *row);

/* ---- whatif.c ---- */

void web_whatifs_done(struct td_web *web);
