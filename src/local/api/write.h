/*
 * One write on its way from a decoded body to the store, shared by the write*.c files, scale.c and
 * edit.c; private to them. A write is a loop of attempts: read the stored object, build the next
 * one from it, ask admission (which may take a while), complete and check it, commit. When another
 * write came in between, the attempt is made again with the newer object, unless the client named
 * the version it wanted to change. Everything lives in the arena of the call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "local/admission/admission.h"
#include "local/api/call.h"
#include "local/kinds/kinds.h"
#include "local/resources/resource.h"
#include "local/store/store.h"

struct td_error;

/* What a step leaves behind. */
enum td_write_step {
    TD_STEP_NEXT,     /* go on */
    TD_STEP_ANSWERED, /* the call got its answer and is gone */
    TD_STEP_WAITS,    /* something else goes on with it later */
};

#define TD_GRACE_UNSET (-1) /* as td_api_query has it; other negative ones mean a second */

/* What a client asks of a deletion. */
struct td_deletion {
    td_str uid;              /* precondition; empty: none */
    td_str resource_version; /* precondition; empty: none */
    td_str propagation;      /* "Background", "Foreground", "Orphan"; empty: not said */
    int64_t grace_seconds;   /* TD_GRACE_UNSET: not said */
    bool has_orphans;        /* the old orphanDependents was there ... */
    bool orphans;            /* ... and this is what it said */
};

enum td_delete_outcome {
    TD_DELETE_NOW,     /* it goes */
    TD_DELETE_LATER,   /* it stays, marked as being deleted */
    TD_DELETE_PENDING, /* it is being deleted already and nothing changes */
};

struct td_write {
    struct td_api_call *call;
    struct td_arena *arena;
    const struct td_resource *resource;
    size_t version; /* of the resource, as the client speaks it */
    struct td_collection *collection;
    enum td_write_operation operation;
    td_str ns;
    td_str name; /* empty until a generated name is made */
    td_str manager;
    bool is_scale;    /* the client sees a Scale, the store the object behind it */
    bool is_finalize; /* only spec.finalizers of a namespace */
    bool is_apply;    /* managed fields are already those of an apply */
    bool can_create;  /* a missing object is made */
    bool is_delete;
    bool is_dry_run;

    /* Builds `incoming` from `body` and `old_at`; answers when it cannot. */
    enum td_write_step (*build)(struct td_write *write);
    /* Ends a write that succeeded. */
    void (*finish)(struct td_write *write);
    void *finish_state;

    struct td_json *body;                    /* as sent, read only */
    const struct td_json_problems *repeated; /* fields that a patch has twice; NULL: none */
    struct td_deletion deletion;
    enum td_delete_outcome outcome;

    /* This attempt. */
    int attempt;
    uint64_t base_version;    /* of the stored object; 0: there is none */
    struct td_json *old;      /* it, in the storage version; NULL: there is none */
    struct td_json *old_at;   /* it, as the client sees it */
    struct td_json *incoming; /* the next one, as the client sees it */
    bool resets_owners;       /* its list of managed fields is empty on purpose */
    struct td_json *object;   /* the next one, in the storage version; later what was stored */
    struct td_stored *stored; /* what was stored, borrowed until the return to the loop, or NULL */

    bool is_validating; /* the second of admission's two phases */
    struct td_admission_request admission;
};

/* write.c */
struct td_write *td_write_new(struct td_api_call *call, struct td_json *body);
void td_write_run(struct td_write *write);                   /* answers now or later */
enum td_write_step td_write_attempt(struct td_write *write); /* _NEXT: it is committed */

/* write_object.c: whole objects, and what bodies of all shapes have in common. */
/* The incoming object decodes as its kind; defaults are filled in. `is_patch`: how to refuse it. */
enum td_write_step td_object_default(struct td_write *write, bool is_patch);
/* 422 as upstream answers a patch whose result does not decode: the value is the result. */
enum td_write_step td_object_refuse_patched(struct td_write *write, const char *message);
/* Its name, namespace and version are those of the request. */
enum td_write_step td_object_check_identity(struct td_write *write);
/* What this resource's main or status face cannot write is put back as it was. */
void td_object_confine(struct td_write *write, struct td_json *incoming);
/* Managed fields of an update. */
void td_object_manage(struct td_write *write);
/* Who writes what, in this version of the object. */
struct td_apply_request td_write_apply_request(const struct td_write *write,
                                               const struct td_resource_version *version);
struct td_body_want td_object_want(const struct td_write *write);

/* write_answer.c: failures in upstream's words; each ends the call. */
enum td_write_step td_write_bad_request(struct td_write *write, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum td_write_step td_write_fail(struct td_write *write, int status, const char *reason,
                                 td_str message); /* with details of the object */
enum td_write_step td_write_conflict(struct td_write *write);
enum td_write_step td_write_missing(struct td_write *write);
enum td_write_step td_write_exists(struct td_write *write);
enum td_write_step td_write_too_large(struct td_write *write, const char *message);
enum td_write_step td_write_invalid(struct td_write *write, const struct td_field_errors *errors);
/* The same for something that is no stored object: a Scale, a patched text. */
enum td_write_step td_write_invalid_part(struct td_write *write, td_str group, td_str kind,
                                         td_str name, const struct td_field_errors *errors);

/* write_meta.c: metadata that all kinds share. */
void td_meta_wipe(struct td_json *object);
enum td_write_step td_meta_check_place(struct td_write *write, struct td_json *object);
void td_meta_complete(struct td_write *write, struct td_json *object);
bool td_meta_has_finalizers(const struct td_resource *resource, const struct td_json *object);
bool td_meta_is_finished(const struct td_resource *resource, const struct td_json *old,
                         const struct td_json *object);
/* Equal but for the times in managedFields. */
bool td_meta_is_same(const struct td_json *old, const struct td_json *object);
struct td_json *td_meta_time(struct td_arena *arena, struct td_instant instant);
/* kind, apiVersion and metadata first, members of metadata as upstream orders them. */
void td_meta_order(struct td_arena *arena, struct td_json *object);
/* Stores `object` under the next version, which is written into it. *ret (may be NULL) is borrowed.
 */
int td_meta_commit(struct td_store *store, struct td_collection *collection,
                   enum td_change_type type, struct td_arena *arena, struct td_json *object,
                   struct td_stored **ret, struct td_error *err);

/* write_body.c */
struct td_body_want {
    td_str api_version;
    td_str kind;
    const struct td_schema_type *type;
    bool needs_kind; /* custom resources: apiVersion and kind must be there */
    bool is_checked; /* every field must have its type; a stored object's are checked once it is
                        merged with what is there */
};
/* The body as a tree of that kind, strictness reported; false when the call was answered. */
bool td_body_decode(struct td_api_call *call, const struct td_body_want *want,
                    struct td_json **ret);
/* Options in a body: of that kind, in any group's version. */
bool td_body_decode_options(struct td_api_call *call, td_str kind, struct td_json **ret);
/* What the client is told of unknown and duplicate fields: nothing, Warning headers, or a refusal,
 * whose text is returned; empty: it is accepted. */
td_str td_body_report(struct td_api_call *call, const struct td_json_problems *problems);
/* "array", as Go's decoder calls it. */
const char *td_body_type_name(const struct td_json *tree);
/* "application/json" of "Application/JSON; charset=utf-8". */
td_str td_body_media_type(struct td_arena *arena, td_str content_type);
/* The tree of the call's body, or NULL with an error: TD_LIMIT for one that no real object is as
 * large as. `want` is asked for protobuf only. */
struct td_json *td_body_parse(struct td_api_call *call, const struct td_body_want *want,
                              td_str media, struct td_json_problems *problems,
                              struct td_error *err);

/* write_patch.c: 409 with one cause for each field that another manager owns. */
enum td_write_step td_patch_report_conflicts(struct td_write *write,
                                             const struct td_json *conflicts,
                                             const struct td_error *err);

/* write_delete_plan.c: what becomes of an object, by upstream's rules; `object` is changed. */
enum td_delete_outcome td_delete_plan(struct td_arena *arena, const struct td_resource *resource,
                                      const struct td_deletion *options, struct td_instant now,
                                      struct td_json *object);

/* scale.c */
struct td_json *td_scale_view(struct td_arena *arena, const struct td_resource *resource,
                              size_t version, const struct td_json *object);
enum td_write_step td_scale_take(struct td_write *write);
const struct td_schema_type *td_scale_type(void);
/* A path of a scale subresource (".spec.replicas") as td_json_get_path takes it. */
td_str td_scale_place(struct td_arena *arena, td_str path);
/* The object that holds the last word of such a path, made when it is not there. */
struct td_json *td_scale_parent(struct td_arena *arena, struct td_json *object, td_str path,
                                td_str *ret_key);
