/*
 * What the files of the API face share beyond call.h: the api itself and the steps between a
 * request line and its entry. Nothing here is for other rooms.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/schema/fields.h"
#include "kube/selector/selector.h"
#include "kube/selector/shard.h"
#include "local/admission/admission.h"
#include "local/api/api.h"
#include "local/api/call.h"

struct td_error;
struct td_faults;
struct td_measures;

struct td_api {
    struct td_loop *loop;   /* borrowed */
    struct td_store *store; /* borrowed */
    struct td_resources *resources;
    struct td_admission *admission;
    struct td_auth *auth;               /* borrowed; NULL: every request is allowed */
    struct td_faults *faults;           /* borrowed; NULL: none */
    const struct td_measures *measures; /* borrowed; may be NULL */
    td_str server_url;                  /* owned */
    uint64_t random;                    /* state of uids and generated names */
    uint64_t audit_random; /* state of audit ids, apart so that reading does not change uids */
    struct td_api_call *calls;
    size_t held_bytes; /* memory of the writes that wait: for webhooks, for the disk */
    size_t held_count;
    bool is_closing;
    bool has_no_strategy; /* td_api_options */
    struct {
        td_str url; /* owned */
        td_api_review_fn fn;
        void *context;
    } reviews; /* td_api_answer_reviews */
};

/* ---- authorize.c ---- */

/* False when the user may not, and the call was answered with a 403. */
bool td_authorize_path(struct td_api_call *call, td_str path);
bool td_authorize_resource(struct td_api_call *call, bool is_watch);
bool td_authorize_create(struct td_api_call *call); /* an apply to what is not there */

/* ---- path.c ---- */

/* The path of a target with its segments, decoded. */
struct td_target {
    td_str path;  /* decoded as a whole, for paths that are no resources */
    td_str query; /* raw */
    td_str *segments;
    size_t segment_count;
};

/* TD_INVALID on a bad escape, TD_LIMIT on too many segments. A single slash at the end is left out.
 */
int td_target_parse(struct td_arena *arena, td_str target, struct td_target *ret,
                    struct td_error *err);

/* False when the segments are no resource path. *ret_is_watch: the old /watch/ prefix was there. */
bool td_path_parse(const struct td_target *target, struct td_call_path *ret, bool *ret_is_watch);

/* ---- query.c ---- */

/* Percent-decoded, with '+' for a space. */
bool td_query_decode(struct td_arena *arena, td_str text, td_str *ret);

enum td_query_kind {
    TD_QUERY_GET,
    TD_QUERY_LIST, /* also watches */
    TD_QUERY_CREATE,
    TD_QUERY_UPDATE,
    TD_QUERY_PATCH,
    TD_QUERY_DELETE,
    TD_QUERY_DELETE_COLLECTION,
};

/* Fills call->query and call->is_pretty, or answers (400, 422) and returns false. */
bool td_query_parse(struct td_api_call *call, td_str query, enum td_query_kind kind);

/* The query's resourceVersion is a number; else 400 and false. Of a list it is judged after the
 * selectors. */
bool td_query_check_version(struct td_api_call *call);

/* ---- accept.c ---- */

struct td_accept {
    enum td_api_form form;
    bool is_list_form; /* PartialObjectMetadataList was named */
    bool is_yaml;
};

/* What an Accept header asks for; false when it names nothing that there is. For a stream there is
 * no YAML. */
bool td_accept_parse(td_str header, bool is_stream, struct td_accept *ret);

/* ---- status.c ---- */

/* details of a Status; empty texts are left out. */
struct td_json *td_status_details(struct td_arena *arena, td_str name, td_str group, td_str kind);

/* ---- form.c ---- */

/* A stored object in the call's version: a new tree in the arena, or the same one. */
int td_form_convert(const struct td_api_call *call, struct td_arena *arena, struct td_json *stored,
                    struct td_json **ret, struct td_error *err);

/* A stored object in the call's version and form, whole: a Table has one row. The input is used up.
 */
int td_form_object(const struct td_api_call *call, struct td_arena *arena, struct td_json *stored,
                   struct td_json **ret, struct td_error *err);

/* PartialObjectMetadata with the metadata of the object, which is used up. */
struct td_json *td_form_partial(struct td_arena *arena, struct td_json *object);

/* One row of a Table; the object, already in its version, is used up. */
struct td_json *td_form_row(const struct td_api_call *call, struct td_arena *arena,
                            struct td_json *object);

/* A Table without rows: kind, apiVersion, metadata of a list, and its columns or null. */
struct td_json *td_form_table(const struct td_api_call *call, struct td_arena *arena,
                              struct td_json *metadata, bool has_columns);

/* ---- select.c ---- */

/* The selectors of a list, a watch or a deletecollection, parsed once. */
struct td_select {
    const struct td_resource *resource;
    struct td_selector labels;
    struct td_field_selector fields;
    struct td_shard_selector shards;
    bool has_labels;
    bool has_other_fields; /* than name and namespace: matching needs the whole object */
};

/* Parses the query's selectors and checks its version, or answers (400, 500) and returns false. */
bool td_select_parse(struct td_api_call *call, struct td_select *ret);
/* Neither labels nor fields; shards do not count, since upstream counts what remains without them.
 */
bool td_select_is_empty(const struct td_select *select);

/* Into the metadata of a list: the proof that shards were selected. Upstream has it on what it
 * keeps as typed lists: not on custom resources, Tables and metadata alone. */
void td_select_prove(struct td_api_call *call, const struct td_select *select,
                     struct td_json *metadata);

/* `scratch` is reset. */
bool td_select_matches(const struct td_select *select, struct td_arena *scratch,
                       const struct td_stored *stored);

/* ---- page_token.c ---- */

struct td_page_token {
    int64_t version; /* of the snapshot; -1: the newest, after an expiry */
    td_str ns;       /* of the last object given */
    td_str name;
};

/* The continue token, in the arena. `ns` is left out where the path names it. */
td_str td_page_token_write(struct td_arena *arena, const struct td_page_token *token);
int td_page_token_read(struct td_arena *arena, td_str text, struct td_page_token *ret,
                       struct td_error *err);

/* ---- item.c ---- */

/* How objects of one call are written: what is decided once for all of them. */
struct td_item_writer {
    const struct td_api_call *call;
    struct td_arena scratch;
    bool is_raw;   /* the stored text is what the client wants */
    bool is_list;  /* items leave out kind and apiVersion */
    bool is_first; /* no row of a Table was written yet: a watch sends columns once */
};

void td_item_writer_init(struct td_item_writer *writer, const struct td_api_call *call,
                         bool is_list);
void td_item_writer_done(struct td_item_writer *writer);

/* When raw: what comes before the slice of stored->json that is *ret_rest. */
td_str td_item_raw(const struct td_item_writer *writer, const struct td_stored *stored,
                   td_str *ret_rest);

/* Appends the object in the call's version and form (in a list of rows: a row). TD_INVALID when a
 * stored text does not convert. */
int td_item_write(struct td_item_writer *writer, const struct td_stored *stored, struct td_buf *out,
                  struct td_error *err);

/* The same of a tree in the storage version, which is used up; it may lie in the scratch arena. */
int td_item_write_tree(struct td_item_writer *writer, struct td_json *stored, struct td_buf *out,
                       struct td_error *err);

/* ---- call.c ---- */

/* 422 about options: kind "ListOptions", group "meta.k8s.io". */
void td_call_invalid_options(struct td_api_call *call, const char *kind,
                             const struct td_field_errors *errors);

/* 422 about something else than the call's resource, in its own group. */
void td_call_invalid_of(struct td_api_call *call, td_str group, td_str kind, td_str name,
                        const struct td_field_errors *errors);

/* Calls `fn` at once when everything is on disk, else later; fails the call when the disk does. */
void td_call_when_durable(struct td_api_call *call, void (*fn)(struct td_api_call *call));

uint64_t td_api_chance(struct td_api *api); /* of the rest */
td_str td_api_new_uid(struct td_api *api, struct td_arena *arena);

/* Ends the call without telling the sink. */
void td_call_cancel(struct td_api_call *call);
