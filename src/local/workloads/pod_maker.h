/*
 * Pods for controllers, created through the API handler as any client's, so that admission sees
 * them: that may take time, because webhooks are asked. While an answer is outstanding the owner
 * counts it as pending, so that nothing is created twice. One maker a controller, because each has
 * a user of its own. One thread, the loop's.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"

struct td_api;
struct td_pod_maker;

struct td_pod_made {
    const struct td_json *owner; /* enough of it for an event: kind, apiVersion, metadata */
    td_str ns;
    td_str pod; /* its name; of a failure the one asked for, or empty */
    int code;   /* TD_OK; TD_EXISTS; TD_GONE: the namespace is terminating; TD_DENIED: refused */
    td_str message; /* of a failure, the server's */
};

/* May be called from inside td_pod_maker_create. The pod is in the store. */
typedef void (*td_pod_made_fn)(void *context, const struct td_pod_made *made);

struct td_pod_maker_options {
    struct td_api *api; /* borrowed */
    td_str user;        /* "system:serviceaccount:kube-system:replicaset-controller"; static text */
    td_str group_version; /* of what is made; empty: "/api/v1", that of pods; static text */
    td_str plural;        /* empty: "pods"; CronJobs make Jobs */
    td_pod_made_fn fn;
    void *context;
};

struct td_pod_maker *td_pod_maker_new(const struct td_pod_maker_options *options);
void td_pod_maker_free(struct td_pod_maker *maker); /* what is pending is given up */

/* A pod of a template (metadata and spec) controlled by `owner`: named after it, with its
 * namespace. The caller may change the tree before it is created. */
struct td_json *td_pod_from_template(struct td_arena *arena, const struct td_json *owner,
                                     const struct td_json *template);

/* The reference that `owner` puts on what it controls. */
struct td_json *td_controller_reference(struct td_arena *arena, const struct td_json *owner);
/* Makes it the only owner of the object with that metadata. */
void td_set_controller(struct td_arena *arena, struct td_json *metadata,
                       const struct td_json *owner);

void td_pod_maker_create(struct td_pod_maker *maker, const struct td_json *owner,
                         const struct td_json *pod);

/* Creations of that owner that were not answered yet. */
size_t td_pod_maker_pending(const struct td_pod_maker *maker, td_str owner_uid);
