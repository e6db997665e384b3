/*
 * The requests that controllers make, filled in: each function writes path, body and content type
 * of one td_client_request into the caller's arena and says whether it may be sent twice. The
 * caller adds flow and deadline, and sends it. Nothing is sent here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "kube/client/client.h"
#include "kube/paths.h"

struct td_write_options {
    td_str field_manager;    /* empty: the server takes the User-Agent */
    td_str field_validation; /* "Strict", "Warn", "Ignore"; empty: the server's choice */
    bool is_dry_run;
};

enum td_patch_kind {
    TD_PATCH_JSON,      /* not idempotent: operations may add up */
    TD_PATCH_MERGE,     /* idempotent: done twice is done once */
    TD_PATCH_STRATEGIC, /* the same, for kinds that the server was built with */
};

int td_verb_get(struct td_arena *arena, const struct td_api_path *path,
                struct td_client_request *ret, struct td_error *err);

/* `path` without a name; may not be sent twice. `options` may be NULL here and below. */
int td_verb_create(struct td_arena *arena, const struct td_api_path *path, td_str body,
                   const struct td_write_options *options, struct td_client_request *ret,
                   struct td_error *err);

/* PUT; a body with a resourceVersion loses against another writer with TD_CONFLICT. */
int td_verb_update(struct td_arena *arena, const struct td_api_path *path, td_str body,
                   const struct td_write_options *options, struct td_client_request *ret,
                   struct td_error *err);

/* Subresources (status, scale, resize) are in the path. */
int td_verb_patch(struct td_arena *arena, const struct td_api_path *path, enum td_patch_kind kind,
                  td_str body, const struct td_write_options *options,
                  struct td_client_request *ret, struct td_error *err);

/* Server-side apply of a JSON object; options->field_manager is needed. */
int td_verb_apply(struct td_arena *arena, const struct td_api_path *path, td_str body,
                  bool is_forced, const struct td_write_options *options,
                  struct td_client_request *ret, struct td_error *err);

struct td_delete_options {
    td_str uid;                   /* only the object with it; empty: any */
    td_str resource_version;      /* only this version of it; empty: any */
    td_str propagation;           /* "Background", "Foreground", "Orphan"; empty: the default */
    int64_t grace_period_seconds; /* negative: the object's own */
    bool is_dry_run;
};
#define TD_DELETE_OPTIONS_INIT ((struct td_delete_options){.grace_period_seconds = -1})

int td_verb_delete(struct td_arena *arena, const struct td_api_path *path,
                   const struct td_delete_options *options, struct td_client_request *ret,
                   struct td_error *err);

/* policy/v1 Eviction of a pod; propagation is not looked at. */
int td_verb_evict(struct td_arena *arena, td_str namespace, td_str pod,
                  const struct td_delete_options *options, struct td_client_request *ret,
                  struct td_error *err);

enum td_evict_result {
    TD_EVICT_DONE,
    TD_EVICT_GONE,      /* there is no such pod any more, or another one under its name */
    TD_EVICT_BUDGET,    /* a disruption budget says no, for now */
    TD_EVICT_THROTTLED, /* the server has too much to do */
    TD_EVICT_FAILED,    /* see the reply's err */
};
enum td_evict_result td_evict_result_of(const struct td_client_reply *reply);
