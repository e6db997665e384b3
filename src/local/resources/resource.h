/*
 * What the server serves: one row a resource, built in or from a user's CustomResourceDefinition.
 * Rows are immutable; a changed CRD is a new row, and calls in progress keep the old one alive by
 * reference. Group "" is the core group. Versions of one resource share one collection of the
 * store, kept in the storage version; td_resource_convert turns an object into another version.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/schema/schema.h"

struct td_error;
struct td_custom; /* local/kinds/custom.h: what only custom resources have */
struct td_resource_life;

enum td_resource_verbs {
    TD_VERB_CREATE = 1 << 0,
    TD_VERB_DELETE = 1 << 1,
    TD_VERB_DELETE_COLLECTION = 1 << 2,
    TD_VERB_GET = 1 << 3,
    TD_VERB_LIST = 1 << 4,
    TD_VERB_PATCH = 1 << 5,
    TD_VERB_UPDATE = 1 << 6,
    TD_VERB_WATCH = 1 << 7,
};
#define TD_VERBS_ALL 0xff

enum td_subresources {
    TD_SUB_STATUS = 1 << 0,
    TD_SUB_SCALE = 1 << 1,
    TD_SUB_EVICTION = 1 << 2,
    TD_SUB_RESIZE = 1 << 3,
    TD_SUB_BINDING = 1 << 4,
    TD_SUB_TOKEN = 1 << 5,
    TD_SUB_FINALIZE = 1 << 6, /* namespaces */
    TD_SUB_APPROVAL = 1 << 7,
    TD_SUB_EPHEMERAL = 1 << 8, /* ephemeralcontainers */
    TD_SUB_PROCESS = 1 << 9,   /* exec, log, attach, portforward, proxy: refused in one sentence */
};

struct td_resource_version {
    td_str name;                       /* "v1" */
    td_str api_version;                /* "apps/v1" */
    const struct td_schema_type *type; /* of the kind in this version */
};

struct td_resource {
    td_str group;
    td_str plural;
    td_str singular;
    td_str kind;
    td_str list_kind;
    td_str collection; /* key in the store: "deployments.apps", "pods" */
    const td_str *short_names;
    size_t short_name_count;
    const td_str *categories;
    size_t category_count;
    bool is_namespaced;
    bool is_virtual;     /* answered without the store: reviews, metrics */
    bool has_generation; /* metadata.generation counts changes of the spec */
    unsigned verbs;      /* enum td_resource_verbs */
    unsigned subresources;
    const struct td_resource_version *versions; /* preferred first */
    size_t version_count;
    size_t storage; /* index of the version in which it is stored: of versions, but of
                       events.k8s.io one behind the served ones, since core/v1 stores them */
    const struct td_custom *custom; /* NULL: built in */
    struct td_resource_life *life;  /* private: references of a custom row; NULL: built in */
};

/* A plural that stands for any: metrics of custom.metrics.k8s.io and external.metrics.k8s.io. */
#define TD_RESOURCE_ANY_PLURAL "*"

/* Where a path leads: a resource in one of its versions. */
struct td_resource_at {
    const struct td_resource *resource; /* NULL: there is none */
    size_t version;
};

struct td_resources;

struct td_resources *td_resources_new(void); /* the built-in ones */
void td_resources_free(struct td_resources *resources);

struct td_resource_at td_resources_find(const struct td_resources *resources, td_str group,
                                        td_str version, td_str plural);
struct td_resource_at td_resources_find_kind(const struct td_resources *resources,
                                             td_str api_version, td_str kind);

/* All rows in a fixed order: built-in groups in upstream's discovery order, then custom ones by
 * group and plural. */
size_t td_resources_count(const struct td_resources *resources);
const struct td_resource *td_resources_row(const struct td_resources *resources, size_t index);

/* Grows with every change of the rows: discovery and OpenAPI are made anew when it differs. */
uint64_t td_resources_generation(const struct td_resources *resources);

/* Custom resources; `row` is taken, its owner frees it by `release` when the last user is gone. A
 * row of the same group and plural is replaced. */
void td_resources_put_custom(struct td_resources *resources, struct td_resource *row,
                             void (*release)(struct td_resource *row));
void td_resources_remove_custom(struct td_resources *resources, td_str group, td_str plural);
const struct td_resource *td_resource_ref(const struct td_resource *row);
void td_resource_unref(const struct td_resource *row);

/* A stored object as a client of another version sees it; the same tree when nothing changes. */
int td_resource_convert(struct td_arena *arena, const struct td_resource *resource,
                        size_t from_version, size_t to_version, struct td_json *object,
                        struct td_json **ret, struct td_error *err);
