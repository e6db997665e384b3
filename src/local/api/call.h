/*
 * One request on its way through the handler: what was asked, parsed once, and the ways to answer.
 * Private to the files of the API face (api.c, read.c, watch.c, write*.c, ...). Everything a call
 * needs lives in its arena. Each answer function ends the call, except those that begin a stream;
 * memory of an ended call stays valid until the entry below, or the callback that holds it
 * (td_call_hold), has returned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/timefmt.h"
#include "kube/fielderror.h"
#include "local/api/api.h"
#include "local/resources/resource.h"
#include "local/store/store.h"

/* A resource path, parsed: /apis/apps/v1/namespaces/shop/deployments/web/scale */
struct td_call_path {
    td_str group;
    td_str version;
    td_str ns;
    td_str plural;
    td_str name;
    td_str subresource;
};

/* The query of a resource request, parsed and checked; absent ones are empty, 0 or false. */
struct td_api_query {
    td_str label_selector;
    td_str field_selector;
    td_str shard_selector;
    td_str resource_version;
    td_str resource_version_match;
    td_str continue_token;
    int64_t limit;
    int64_t timeout_seconds;
    bool is_watch;
    bool allow_bookmarks;
    bool send_initial_events;
    bool has_send_initial_events;
    bool is_dry_run;
    bool force; /* apply */
    td_str field_manager;
    td_str field_validation; /* "Ignore", "Warn" or "Strict"; "Warn" when not given */
    td_str propagation_policy;
    int64_t grace_period_seconds; /* -1: not given */
    td_str include_object;        /* of a Table: "None", "Metadata", "Object" */
};

/* What the client wants to get, of its Accept header. */
enum td_api_form {
    TD_FORM_OBJECT,
    TD_FORM_TABLE,
    TD_FORM_PARTIAL, /* PartialObjectMetadata(List) */
};

struct td_call_answer;

struct td_api_call {
    struct td_api *api;
    struct td_arena arena;
    struct td_api_request request; /* texts in the arena */
    const struct td_api_sink *sink;
    void *sink_context;
    struct td_call_path path;
    struct td_api_query query;
    enum td_api_form form;
    struct td_resource_at at;
    struct td_json *warnings;       /* array of strings, sent as Warning headers */
    bool is_yaml;                   /* answer in YAML; reads only */
    bool is_pretty;                 /* indented JSON */
    bool has_head;                  /* the head was sent */
    bool is_over;                   /* ended or cancelled; the sink is not called any more */
    int retry_after_seconds;        /* sent as a header when above 0 */
    unsigned holds;                 /* frames that still use the call: it is freed by the last */
    struct td_durable_wait durable; /* an answer that waits until what it tells is on disk */
    struct td_call_answer *answer;  /* that answer */
    /* A call that goes on by itself: what to do when the sink has room, and what to release. */
    void (*resume)(struct td_api_call *call);
    void (*release)(struct td_api_call *call);
    void *state;
    size_t held_bytes;        /* memory of a write that waits, as counted by the api; else 0 */
    struct td_api_call *next; /* open calls of the api */
    struct td_api_call *previous;
};

/* Whole answers. None leaves before all that was committed is on disk: the call then ends later,
 * and with a 500 when the disk failed. Bytes are copied. */
void td_call_reply(struct td_api_call *call, int status, td_str content_type, td_str body);
void td_call_reply_json(struct td_api_call *call, int status, const struct td_json *tree);
/* An object in the storage version, sent in the version and form that the client asked for. */
void td_call_reply_object(struct td_api_call *call, int status, struct td_json *stored);

/* The stored text itself, in the storage version. */
void td_call_reply_stored(struct td_api_call *call, int status, struct td_stored *stored);

/* A v1 Status with its HTTP code: reason such as "NotFound"; the message is formatted. */
void td_call_fail(struct td_api_call *call, int status, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The usual ones, in upstream's words, with details (group, kind, name, causes). */
void td_call_not_found(struct td_api_call *call, td_str name);
void td_call_invalid(struct td_api_call *call, td_str kind, td_str name,
                     const struct td_field_errors *errors);                       /* 422 */
void td_call_conflict(struct td_api_call *call, td_str name, const char *detail); /* 409 */
void td_call_no_resource(struct td_api_call *call); /* 404: the path leads nowhere */
void td_call_no_method(struct td_api_call *call);   /* 405 */
/* Status tree for those that need more: add details, then td_call_reply_json. */
struct td_json *td_call_status(struct td_api_call *call, int status, const char *reason,
                               td_str message);

/* 504: a version that is still to come. */
void td_call_version_too_large(struct td_api_call *call, uint64_t version);

/* Streams: head, then pieces while !td_call_is_full, then end. */
void td_call_begin(struct td_api_call *call, int status, td_str content_type);
void td_call_write(struct td_api_call *call, td_str bytes);
void td_call_write_shared(struct td_api_call *call, td_str bytes, void (*release)(void *owner),
                          void *owner);
bool td_call_is_full(struct td_api_call *call);
void td_call_end(struct td_api_call *call); /* the call is gone */

/* Around a callback of the loop that answers or streams: the call outlives its end until dropped.
 */
void td_call_hold(struct td_api_call *call);
void td_call_drop(struct td_api_call *call);

/* Of the api: time now as an instant, a new uid, five random letters for generateName. */
struct td_instant td_call_now(const struct td_api_call *call);
td_str td_call_new_uid(struct td_api_call *call);
td_str td_call_name_suffix(struct td_api_call *call);

/* The entries of the API face. Each answers or leaves a call that goes on. */
void td_read_get(struct td_api_call *call);
void td_read_list(struct td_api_call *call);
void td_watch_start(struct td_api_call *call);
void td_write_create(struct td_api_call *call);
void td_write_update(struct td_api_call *call); /* PUT, also of status, scale, resize */
void td_write_patch(struct td_api_call *call);  /* PATCH, also of subresources, apply included */
void td_write_delete(struct td_api_call *call);
void td_write_delete_collection(struct td_api_call *call);
void td_scale_get(struct td_api_call *call);
void td_pod_evict(struct td_api_call *call);      /* POST pods/NAME/eviction */
void td_pod_bind(struct td_api_call *call);       /* POST pods/NAME/binding and /bindings */
void td_reviews_create(struct td_api_call *call); /* virtual kinds of authn and authz; tokens */
void td_metrics_read(struct td_api_call *call);   /* metrics.k8s.io and its two siblings */
/* Discovery, OpenAPI, version: true when the path is one of its own. */
bool td_describe(struct td_api_call *call, td_str path);
