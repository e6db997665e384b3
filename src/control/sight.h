/*
 * The cluster as the controllers of this process see it: one watch a kind, shared by all that need
 * it, each object kept as the few fields or the few kilobytes of JSON that deciders read. Also the
 * answers of discovery and of scale subresources, asked for when somebody needs them and
 * remembered for a while, so that a td_workload_source can be given to the deciders: what is not
 * known yet is TD_BUSY, is asked for, and `settled` is called when there is more to know. Nothing
 * is written here. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/pod/pod_limits.h"
#include "base/arena.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "kube/cache/cache.h"
#include "model/owners.h"

struct td_client;
struct td_error;
struct td_limit_ranges;
struct td_log;
struct td_loop;
struct td_sight;
struct td_sight_alike;
struct td_sight_hook;
struct td_sight_workload;

enum td_sight_kind {
    TD_SIGHT_PODS,
    TD_SIGHT_VPAS,
    TD_SIGHT_HPAS,     /* autoscaling/v2 */
    TD_SIGHT_OWN_HPAS, /* autoscaling.tandem.dev/v2 */
    TD_SIGHT_HVPAS,
    TD_SIGHT_LIMIT_RANGES,
    TD_SIGHT_NODES,
    TD_SIGHT_DEPLOYMENTS,
    TD_SIGHT_REPLICA_SETS,
    TD_SIGHT_STATEFUL_SETS,
    TD_SIGHT_DAEMON_SETS,
    TD_SIGHT_JOBS,
    TD_SIGHT_CRON_JOBS,
    TD_SIGHT_REPLICATION_CONTROLLERS,
    TD_SIGHT_COUNT,
};

/* Every object: what is kept of it as compact JSON, which td_sight_tree reads. Pods keep what
 * td_pod_decode and td_vertical_pod_decode look at, nodes their allocatable and conditions,
 * workloads what td_workload_decode does and, where an Hvpa can be on them, the resources of their
 * template; autoscalers and LimitRanges are kept whole. */
struct td_sight_object {
    struct td_cache_head head;
    td_str text;        /* owned by the object */
    td_str status_text; /* HPAs: the managedFields entries of the status subresource, JSON */
    int64_t generation;
    uint64_t asked; /* autoscalers: the same while spec and annotations are, to the letter */
    bool is_deleting;
    struct td_sight_workload *workload; /* private: decoded when somebody asks */
    td_str raw;             /* private, while it is filled: all of it, of autoscalers the spec */
    td_str raw_managers;    /* private: likewise */
    td_str raw_annotations; /* private: likewise */
};

struct td_sight_vpa {
    struct td_sight_object object;
    td_str target_kind; /* of spec.targetRef */
    td_str target_name;
};

struct td_sight_pod {
    struct td_sight_object object;
    td_str node;
    td_str phase;
    uint64_t labels_hash;          /* the same for the same labels */
    struct td_sight_pod *next;     /* private: of its namespace */
    struct td_sight_pod *previous; /* private */
    struct td_sight_alike *alike;  /* private: those of its namespace with the same labels */
    struct td_sight_pod *next_alike;
    struct td_sight_pod *previous_alike;
};

struct td_sight_options {
    struct td_loop *loop;
    struct td_client *client;
    bool wants[TD_SIGHT_COUNT];
    struct td_log *log;   /* may be NULL */
    td_str vpa_namespace; /* --vpa-object-namespace: VPAs of this one only; empty: all */
    td_str namespace;     /* all that is in a namespace of this one only; empty: of all */
    uint64_t seed;
};

int td_sight_new(const struct td_sight_options *options, struct td_sight **ret,
                 struct td_error *err);
void td_sight_free(struct td_sight *sight);

/* Handlers as kube/cache.h has them; before td_sight_start. */
void td_sight_subscribe(struct td_sight *sight, enum td_sight_kind kind,
                        const struct td_cache_handler *handler, void *context);
/* Called when an answer that a source said TD_BUSY for has come, or failed. */
void td_sight_on_settled(struct td_sight *sight, void (*settled)(void *context), void *context);
void td_sight_start(struct td_sight *sight);

/* All kinds that are wanted were listed once. */
bool td_sight_is_synced(const struct td_sight *sight);
/* The oldest knowledge among the wanted kinds (td_cache_age). */
td_duration td_sight_age(const struct td_sight *sight);

const struct td_cache *td_sight_cache(const struct td_sight *sight, enum td_sight_kind kind);
/* The object as a tree in the arena, texts copied. */
int td_sight_tree(struct td_arena *arena, const struct td_sight_object *object,
                  struct td_json **ret, struct td_error *err);
/* The reference to its workload that such a tree of a VPA, an HPA or an Hvpa has; NULL: none. */
const struct td_json *td_sight_target(enum td_sight_kind kind, const struct td_json *tree);

/* Of two states of a workload: is it still itself, and owned by the same ones? */
bool td_sight_has_same_owners(const struct td_sight_object *before,
                              const struct td_sight_object *after);

/* The pods of a namespace, one after another: the first after NULL, NULL after the last. */
const struct td_sight_pod *td_sight_next_pod(const struct td_sight *sight, td_str namespace,
                                             const struct td_sight_pod *previous);

/* The pods of a namespace that a selector matches, in no particular order, at the cost of those
 * alone where it has an equality. td_sight_index_pods first, before td_sight_start. */
struct td_sight_match {
    const struct td_selector *selector; /* private, as all of it */
    const struct td_sight_hook *hook;
    const struct td_sight_pod *pod;
};
void td_sight_index_pods(struct td_sight *sight);
void td_sight_match_pods(const struct td_sight *sight, td_str namespace,
                         const struct td_selector *selector, struct td_sight_match *ret);
const struct td_sight_pod *td_sight_match_next(struct td_sight_match *match); /* NULL: no more */

/* Its answers are valid until the return to the loop. */
const struct td_workload_source *td_sight_source(struct td_sight *sight);

/* LimitRanges of a namespace, sorted by name; NULL: there are none. Remembered until they change.
 * What cannot be read is left out and said in the log once. */
const struct td_limit_ranges *td_sight_limits(struct td_sight *sight, td_str namespace);

/* The objects themselves, sorted by name; borrowed until the current callback returns. */
struct td_limit_objects td_sight_limit_objects(struct td_sight *sight, td_str namespace);

/* What the largest node offers, in the arena; NULL: nodes are not looked at, or there are none. */
const struct td_resource_list *td_sight_largest_node(struct td_sight *sight,
                                                     struct td_arena *arena);

/* The group, version and plural that serve a kind, by discovery, number `index` of them in its
 * order; TD_BUSY: asked for, TD_NOT_FOUND with upstream's words. */
struct td_sight_resource {
    td_str group;
    td_str version;
    td_str plural;
    bool is_namespaced;
};
int td_sight_resource(struct td_sight *sight, td_str group, td_str kind, size_t index,
                      struct td_sight_resource *ret, struct td_error *err);
