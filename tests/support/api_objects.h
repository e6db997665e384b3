/* Objects put straight into the store of a bed, without the write path: what reading tests need. */
#pragma once

#include "support/api_bed.h"

struct bed_object {
    const char *collection; /* "configmaps" */
    const char *api_version;
    const char *kind;
    const char *ns;
    const char *name;
    const char *labels; /* members of the JSON object; NULL: none */
    const char *rest;   /* further members of the object, with their comma: ",\"data\":{}"; NULL */
};

/* Commits it (added, modified or deleted by what is there and `is_gone`); its version. */
static inline uint64_t bed_commit(struct bed *bed, const struct bed_object *object, bool is_gone)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_collection *collection;
    if (td_store_collection(bed->store, td_str_from(object->collection), &collection, &err) !=
        TD_OK) {
        __builtin_trap();
    }
    td_str ns = td_str_from(object->ns);
    td_str name = td_str_from(object->name);
    uint64_t version = td_store_reserve(bed->store);
    td_auto_buf json;
    td_buf_init(&json, (size_t)4 << 20);
    (void)td_buf_append_format(&json, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{",
                               object->kind, object->api_version);
    (void)td_buf_append_format(&json, "\"name\":\"%s\",", object->name);
    if (ns.len > 0) {
        (void)td_buf_append_format(&json, "\"namespace\":\"%s\",", object->ns);
    }
    (void)td_buf_append_format(&json, "\"uid\":\"u-%s\",\"resourceVersion\":\"%llu\"", object->name,
                               (unsigned long long)version);
    (void)td_buf_append_format(&json, ",\"creationTimestamp\":\"2023-11-14T22:13:20Z\"");
    if (object->labels) {
        (void)td_buf_append_format(&json, ",\"labels\":{%s}", object->labels);
    }
    (void)td_buf_append_format(&json, "}%s}", object->rest ? object->rest : "");
    struct td_commit commit = {
        .type = is_gone                                   ? TD_CHANGE_DELETED
                : td_collection_get(collection, ns, name) ? TD_CHANGE_MODIFIED
                                                          : TD_CHANGE_ADDED,
        .ns = ns,
        .name = name,
        .version = version,
        .json = td_buf_str(&json),
    };
    if (td_store_commit(bed->store, collection, &commit, NULL, &err) != TD_OK) {
        fprintf(stderr, "%s\n", err.message);
        __builtin_trap();
    }
    return version;
}

/* A ConfigMap in the namespace "default". */
static inline uint64_t bed_put_map(struct bed *bed, const char *name, const char *labels,
                                   const char *value)
{
    char rest[256];
    (void)snprintf(rest, sizeof(rest), ",\"data\":{\"a\":\"%s\"}", value);
    const struct bed_object object = {"configmaps", "v1",   "ConfigMap", "default",
                                      name,         labels, rest};
    return bed_commit(bed, &object, false);
}

static inline uint64_t bed_drop_map(struct bed *bed, const char *name, const char *labels)
{
    const struct bed_object object = {"configmaps", "v1",   "ConfigMap", "default",
                                      name,         labels, NULL};
    return bed_commit(bed, &object, true);
}
