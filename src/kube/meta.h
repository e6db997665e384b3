/*
 * Object metadata as controllers need it: identity, version, owners, labels. Decoded from a JSON
 * tree; texts are borrowed from it. resourceVersion is opaque text and never compared for order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "base/timefmt.h"
#include "kube/selector/labels.h"

struct td_error;

struct td_owner_reference {
    td_str api_version;
    td_str kind;
    td_str name;
    td_str uid;
    bool is_controller;
    bool blocks_owner_deletion;
};

struct td_meta {
    td_str name;
    td_str generate_name;
    td_str namespace; /* empty for cluster-scoped objects */
    td_str uid;
    td_str resource_version;
    int64_t generation;
    struct td_instant created; /* TD_INSTANT_ZERO when missing */
    struct td_instant deleted; /* TD_INSTANT_ZERO when not being deleted */
    struct td_labels labels;
    const struct td_json *annotations; /* object or NULL; borrowed from the tree */
    const struct td_owner_reference *owners;
    size_t owner_count;
};

/* apiVersion split at its slash: "apps/v1" is group "apps", version "v1"; "v1" has the empty group.
 */
struct td_group_version {
    td_str group;
    td_str version;
};
struct td_group_version td_group_version_parse(td_str api_version);

/* From a whole object (its "metadata" member). Wrong types are TD_INVALID with their path
 * ("metadata.labels.app"). */
int td_meta_decode(struct td_arena *arena, const struct td_json *object, struct td_meta *ret,
                   struct td_error *err);

/* The first owner with controller: true, or NULL; of a tree, the reference as it stands there. */
const struct td_owner_reference *td_owner_controller(const struct td_owner_reference *owners,
                                                     size_t count);
const struct td_owner_reference *td_meta_controller(const struct td_meta *meta);
const struct td_json *td_meta_controller_tree(const struct td_json *object);

/* A text of metadata, by its key; empty when there is none. */
td_str td_meta_text(const struct td_json *object, td_str key);

/* A copy in the arena, texts too. */
const struct td_owner_reference *
td_owners_copy(struct td_arena *arena, const struct td_owner_reference *owners, size_t count);
