/*
 * The four patches of the Kubernetes API, as pure functions on JSON trees: JSON patch (RFC 6902),
 * merge patch (RFC 7386), strategic merge patch and kubectl's three-way apply patch, with the
 * quirks of upstream's libraries. The document is never changed: the result is a new tree in the
 * arena that may share texts (not nodes) with its inputs. A refused patch changes nothing and names
 * the operation or path at fault.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "kube/schema/schema.h"

struct td_error;

int td_patch_json(struct td_arena *arena, const struct td_json *document,
                  const struct td_json *patch, struct td_json **ret, struct td_error *err);

int td_patch_merge(struct td_arena *arena, const struct td_json *document,
                   const struct td_json *patch, struct td_json **ret, struct td_error *err);

int td_patch_strategic(struct td_arena *arena, const struct td_schema_type *type,
                       const struct td_json *document, const struct td_json *patch,
                       struct td_json **ret, struct td_error *err);

struct td_patch_three_way {
    const struct td_json *original; /* last applied; NULL when there was none */
    const struct td_json *modified;
    const struct td_json *current;
    bool overwrite; /* kubectl says true; false makes a change on both sides TD_CONFLICT */
};

/* The strategic merge patch that turns current into modified, deleting what original had and
 * modified has not. */
int td_patch_three_way(struct td_arena *arena, const struct td_schema_type *type,
                       const struct td_patch_three_way *input, struct td_json **ret_patch,
                       struct td_error *err);
