/*
 * Who controls a pod, and which pods a target selects (vpa.md 4.1, 4.2): owner references are
 * followed upwards from a controller to the topmost one that is well-known or can be scaled. Where
 * objects, kinds and scales come from is the caller's business: a source answers from caches, from
 * files or from a test. A source that has to send a request first says so, and the walk ends with
 * TD_BUSY; the caller asks and walks again. Pure otherwise; texts are borrowed from the source.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/meta.h"
#include "kube/selector/selector.h"
#include "model/template.h"

struct td_error;

enum td_workload_kind {
    TD_WORKLOAD_OTHER, /* found by its scale, if at all */
    TD_WORKLOAD_CRON_JOB,
    TD_WORKLOAD_DAEMON_SET,
    TD_WORKLOAD_DEPLOYMENT,
    TD_WORKLOAD_JOB,
    TD_WORKLOAD_REPLICATION_CONTROLLER,
    TD_WORKLOAD_REPLICA_SET,
    TD_WORKLOAD_STATEFUL_SET,
};

/* Well-known by its kind alone, whatever the group, as upstream has it. */
enum td_workload_kind td_workload_kind_of(td_str kind);

/* What is needed of an object of a well-known kind. */
struct td_workload {
    td_str namespace;
    td_str kind;
    td_str name;
    td_str uid; /* may be empty: not known */
    const struct td_owner_reference *owners;
    size_t owner_count;
    struct td_selector selector; /* of its pods; valid when selector_error is empty */
    td_str selector_error;
    bool has_replicas; /* spec.replicas is there */
    int64_t replicas;
    int64_t desired_scheduled;       /* DaemonSet: status.desiredNumberScheduled */
    struct td_pod_template template; /* may be unknown */
};

/* From an object; its kind decides how it is read. A selector that cannot be read is not an error
 * of the object. */
int td_workload_decode(struct td_arena *arena, const struct td_json *object,
                       struct td_workload *ret, struct td_error *err);

/* A copy in the arena, texts too. */
struct td_workload td_workload_copy(struct td_arena *arena, const struct td_workload *workload);

/* An answer of the scale subresource. */
struct td_scale_answer {
    int code;       /* TD_OK, TD_NOT_FOUND, TD_BUSY (not known yet), or another failure */
    td_str message; /* of another failure */
    td_str uid;     /* may be empty: not known */
    td_str selector;
    const struct td_owner_reference *owners;
    size_t owner_count;
};

struct td_workload_source {
    void *context;
    /* The object of a well-known kind, or NULL. */
    const struct td_workload *(*get_workload)(void *context, td_str kind, td_str namespace,
                                              td_str name);
    /* Resource number `index` that discovery names for a kind ("games"), in discovery's order;
     * false past the last. */
    bool (*get_resource)(void *context, td_str group, td_str kind, size_t index,
                         td_str *ret_resource);
    struct td_scale_answer (*get_scale)(void *context, td_str group, td_str resource,
                                        td_str namespace, td_str name);
};

struct td_controller {
    td_str namespace;
    td_str api_version;
    td_str kind;
    td_str name;
    td_str uid; /* of the reference that led here; may be empty */
};

/* A pod's direct owner: the last reference with controller: true, where td_meta_controller takes
 * the first. False when there is none; a reference without the field counts as false, where
 * upstream's updater crashes. */
bool td_controller_of_pod(const struct td_meta *pod, struct td_controller *ret);

/* The template from which the pod's direct owner would make another in its place; NULL: not known.
 * Borrowed from the source. */
const struct td_pod_template *td_template_of_pod(const struct td_workload_source *source,
                                                 const struct td_meta *pod);

/* Visits `start` and the controllers above it, each with the parent that the last visit named. Ends
 * when a visit names no parent (TD_OK) or fails, at a cycle (TD_INVALID), or past
 * TD_CONTROLLER_CHAIN_MAX controllers (TD_LIMIT). A visit sets *ret_parent before *ret_has_parent,
 * which is false when it is called. */
typedef int (*td_controller_visit_fn)(void *context, const struct td_controller *at,
                                      struct td_controller *ret_parent, bool *ret_has_parent,
                                      struct td_error *err);
int td_controllers_walk(const struct td_controller *start, td_controller_visit_fn visit,
                        void *context, struct td_error *err);

/* The topmost well-known or scalable controller from `start` upwards, itself included. *ret_found
 * is false when there is none. An object whose uid is not that of the reference counts as missing.
 * TD_DENIED: the way leads to a Node, which for a pod just means that it has no controller.
 * TD_BUSY: the source has to ask first. Messages are upstream's. */
int td_controller_top(const struct td_workload_source *source, const struct td_controller *start,
                      struct td_controller *ret, bool *ret_found, struct td_error *err);

/* Which pods a target selects; `target` is a VPA's targetRef with its namespace. */
int td_target_selector(struct td_arena *arena, const struct td_workload_source *source,
                       const struct td_controller *target, struct td_selector *ret,
                       struct td_error *err);

/* Is the target itself topmost, as the recommender demands? TD_OK, or TD_INVALID with the text of
 * condition ConfigUnsupported. */
int td_target_check(const struct td_workload_source *source, const struct td_controller *target,
                    struct td_error *err);
