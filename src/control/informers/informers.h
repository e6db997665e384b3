/*
 * The cluster as the controllers of this process see it: one watch a kind, shared by all that need
 * it, each object kept as the few fields or the few kilobytes of JSON that deciders read. Also the
 * answers of discovery and of scale subresources, asked for when a caller needs them and
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
#include "kube/paths.h"
#include "model/owners.h"

struct td_client;
struct td_error;
struct td_limit_ranges;
struct td_log;
struct td_loop;
struct td_informers;
struct td_pod_set;
struct td_shard_range;
struct td_pod_index_link;
struct td_informer_workload;

enum td_informer_kind {
    TD_INFORMER_PODS,
    TD_INFORMER_VPAS,
    TD_INFORMER_HPAS,     /* autoscaling/v2 */
    TD_INFORMER_OWN_HPAS, /* autoscaling.tandem.dev/v2 */
    TD_INFORMER_HVPAS,
    TD_INFORMER_LIMIT_RANGES,
    TD_INFORMER_NODES,
    TD_INFORMER_DEPLOYMENTS,
    TD_INFORMER_REPLICA_SETS,
    TD_INFORMER_STATEFUL_SETS,
    TD_INFORMER_DAEMON_SETS,
    TD_INFORMER_JOBS,
    TD_INFORMER_CRON_JOBS,
    TD_INFORMER_REPLICATION_CONTROLLERS,
    TD_INFORMER_COUNT,
};

/* Every object: what is kept of it as compact JSON, which td_informers_tree reads. Pods keep what
 * td_pod_decode looks at, nodes their allocatable, conditions and declared features,
 * workloads what td_workload_decode does and, where an Hvpa can be on them, the resources of their
 * template; autoscalers and LimitRanges are kept whole. */
struct td_informer_object {
    struct td_cache_head head;
    td_str text; /* of a pod private: td_informers_text */
    int64_t generation;
    bool is_deleting;
    bool is_split; /* private: a pod whose text is values only, without its shape (pod_text.h) */
    union {        /* by kind */
        struct {   /* autoscalers */
            td_str
                status_text; /* HPAs: the managedFields entries of the status subresource, JSON */
            uint64_t spec_hash; /* the same while spec and annotations are, to the letter */
        };
        struct td_informer_workload
            *workload;            /* private; workloads: decoded when it is asked for */
        struct {                  /* pods */
            td_str shape;         /* private; shared by pods of one template */
            uint64_t labels_hash; /* the same for the same labels */
        };
    };
};

struct td_informer_vpa {
    struct td_informer_object object;
    td_str target_kind; /* of spec.targetRef */
    td_str target_name;
};

struct td_informer_pod {
    struct td_informer_object object;
    td_str node;
    td_str phase;
    struct td_informer_pod *next;     /* private: of its namespace */
    struct td_informer_pod *previous; /* private */
    struct td_pod_set *alike;         /* private: those of its namespace with the same labels */
    struct td_informer_pod *next_alike;
    struct td_informer_pod *previous_alike;
};

struct td_informers_options {
    struct td_loop *loop;
    struct td_client *client;
    bool wants[TD_INFORMER_COUNT];
    struct td_log *log;   /* may be NULL */
    td_str vpa_namespace; /* --vpa-object-namespace: VPAs of this one only; empty: all */
    td_str namespace;     /* all that is in a namespace of this one only; empty: of all */
    const struct td_shard_range *shard; /* all that is in a namespace of it only; NULL: of all */
    uint64_t seed;
};

int td_informers_new(const struct td_informers_options *options, struct td_informers **ret,
                     struct td_error *err);
void td_informers_free(struct td_informers *informers);

/* Handlers as kube/cache/cache.h has them; before td_informers_start. */
void td_informers_subscribe(struct td_informers *informers, enum td_informer_kind kind,
                            const struct td_cache_handler *handler, void *context);
/* Called when an answer that a source said TD_BUSY for has come, or failed. */
void td_informers_on_settled(struct td_informers *informers, void (*settled)(void *context),
                             void *context);
void td_informers_start(struct td_informers *informers);

/* All kinds that are wanted were listed once. */
bool td_informers_is_synced(const struct td_informers *informers);
/* The oldest knowledge among the wanted kinds (td_cache_age). */
td_duration td_informers_age(const struct td_informers *informers);

const struct td_cache *td_informers_cache(const struct td_informers *informers,
                                          enum td_informer_kind kind);
/* What is kept of it, in the arena where the object has it in parts. */
td_str td_informers_text(struct td_arena *arena, const struct td_informer_object *object);
/* Has what is kept of it that word in a name or a value? Quick: no tree is made. */
bool td_informers_mentions(const struct td_informer_object *object, td_str word);
/* The object as a tree in the arena, texts copied. */
int td_informers_tree(struct td_arena *arena, const struct td_informer_object *object,
                      struct td_json **ret, struct td_error *err);
/* The reference to its workload that such a tree of a VPA, an HPA or an Hvpa has; NULL: none. */
const struct td_json *td_informers_target(enum td_informer_kind kind, const struct td_json *tree);

/* Of two states of a workload: is it still itself, and owned by the same ones? */
bool td_informers_has_same_owners(const struct td_informer_object *before,
                                  const struct td_informer_object *after);

/* The pods of a namespace, one after another: the first after NULL, NULL after the last. */
const struct td_informer_pod *td_informers_next_pod(const struct td_informers *informers,
                                                    td_str namespace,
                                                    const struct td_informer_pod *previous);

/* The pods of a namespace that a selector matches, in no particular order, at the cost of those
 * alone where it has an equality. td_informers_index_pods first, before td_informers_start. */
struct td_pod_match {
    const struct td_selector *selector; /* private, as all of it */
    const struct td_pod_index_link *link;
    const struct td_informer_pod *pod;
};
void td_informers_index_pods(struct td_informers *informers);
void td_informers_match_pods(const struct td_informers *informers, td_str namespace,
                             const struct td_selector *selector, struct td_pod_match *ret);
const struct td_informer_pod *td_pod_match_next(struct td_pod_match *match); /* NULL: no more */

/* Its answers are borrowed until the current callback returns. */
const struct td_workload_source *td_informers_source(struct td_informers *informers);
/* Lets go of what the source keeps of workloads; it is decoded again when it is asked for. For
 * callers that ask once for many. */
void td_informers_forget_workloads(struct td_informers *informers);

/* LimitRanges of a namespace, sorted by name; NULL: there are none. Remembered until they change.
 * What cannot be read is left out and said in the log once. */
const struct td_limit_ranges *td_informers_limits(struct td_informers *informers, td_str namespace);

/* The objects themselves, sorted by name; borrowed until the current callback returns. */
struct td_limit_objects td_informers_limit_objects(struct td_informers *informers,
                                                   td_str namespace);

/* What the largest node offers, in the arena; NULL: nodes are not looked at, or there are none. */
const struct td_resource_list *td_informers_largest_node(struct td_informers *informers,
                                                         struct td_arena *arena);

/* The group, version and plural that serve a kind, by discovery, number `index` of them in its
 * order; TD_BUSY: asked for, TD_NOT_FOUND with upstream's words. */
int td_informers_resource(struct td_informers *informers, td_str group, td_str kind, size_t index,
                          struct td_served_resource *ret, struct td_error *err);
