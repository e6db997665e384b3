/*
 * Request paths of the Kubernetes API, escaped: "/apis/apps/v1/namespaces/web/deployments/front/
 * scale" and the parameters behind it. Names come from objects and users, so each part is escaped
 * byte by byte and cannot reach another resource; what no escape can make safe ("." and "..") is
 * refused.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"
#include "kube/objectkey.h"

struct td_error;

/* What is accepted of "/api" and "/apis": the aggregated list, or of an old server its own. */
#define TD_DISCOVERY_ACCEPT                                                                        \
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

struct td_api_path {
    td_str group;     /* empty: the core group, "/api" */
    td_str version;   /* "v1" */
    td_str namespace; /* empty: cluster-scoped, or every namespace */
    td_str plural;    /* "deployments" */
    td_str name;      /* empty: the collection */
    td_str subresource;
};

/* What serves a kind, as discovery tells it. */
struct td_served_resource {
    td_str group;
    td_str version;
    td_str plural;
    bool is_namespaced;
};

/* Of the scale subresource of one object. */
struct td_api_path td_path_scale(const struct td_served_resource *resource,
                                 struct td_object_key object);

/* Appended. TD_INVALID for a part that cannot stand in a path, TD_LIMIT when out is full. */
int td_path_write(const struct td_api_path *path, struct td_buf *out, struct td_error *err);

/* One more parameter behind a path: "?key=value", then "&key=value"; check out at the end. */
void td_path_add_query(struct td_buf *out, td_str key, td_str value);

/* One part, every byte but letters, digits, '-', '_', '.' and '~' escaped. */
void td_path_escape(struct td_buf *out, td_str part);
