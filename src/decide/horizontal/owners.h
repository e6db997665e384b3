/*
 * Which pods does the target own? Owner references are followed upwards until one is the target. A
 * reference that leads on needs the object it names; those objects are kept in a cache shared by
 * all HPAs: found ones and forbidden ones for its TTL, missing ones for a shorter time. The filter
 * does no I/O: a step says which owners must be fetched, the caller brings the answers and steps
 * again, at most TD_OWNER_LEVELS_MAX times.
 *
 * A failure that may pass (throttling, errors, timeouts) fails the whole filter: then all pods
 * count, as without a filter. One owner each, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/str.h"
#include "base/stringset.h"
#include "decide/horizontal/strategy.h"
#include "kube/meta.h"
#include "model/owners.h"
#include "model/pod.h"

#define TD_OWNER_LEVELS_MAX 10                        /* the pod is the first */
#define TD_OWNER_VISITS_MAX 256                       /* references looked at for one pod */
#define TD_OWNER_CACHE_MAX ((size_t)1 << 18)          /* objects in the cache */
#define TD_OWNER_REFERENCES_MAX 64                    /* kept of one object */
#define TD_OWNER_TTL_DEFAULT (15 * TD_MINUTE)         /* found and forbidden */
#define TD_OWNER_MISSING_TTL_DEFAULT (15 * TD_SECOND) /* one sync period */
#define TD_OWNER_SWEEP_DEFAULT (30 * TD_MINUTE)

struct td_owner_key;

struct td_owner_cache {
    struct td_map entries;
    td_duration ttl;
    td_duration missing_ttl;
    uint64_t hits;
    uint64_t misses;
    /* Called for each lookup, to count them by kind; may be NULL. */
    void (*looked_up)(void *context, const struct td_owner_key *key, bool is_hit);
    void *context;
};

void td_owner_cache_init(struct td_owner_cache *cache, td_duration ttl, td_duration missing_ttl);
void td_owner_cache_done(struct td_owner_cache *cache);

/* Drops what has expired. */
void td_owner_cache_sweep(struct td_owner_cache *cache, td_time now);

/* An object to be fetched; the version is that of the reference. */
struct td_owner_key {
    td_str api_version;
    td_str kind;
    td_str namespace;
    td_str name;
};

/* It changed: what is kept of it is not true any more. */
void td_owner_cache_forget(struct td_owner_cache *cache, const struct td_owner_key *key);

enum td_owner_answer {
    TD_OWNER_FOUND,
    TD_OWNER_MISSING,   /* 404 */
    TD_OWNER_FORBIDDEN, /* 403 */
    TD_OWNER_THROTTLED, /* 429 */
    TD_OWNER_FAILED,    /* 5xx and the like */
    TD_OWNER_TIMED_OUT,
    TD_OWNER_UNMAPPED, /* discovery does not know the kind, or fails */
};

struct td_owner_target {
    td_str group;
    td_str kind;
    td_str name;
    td_str namespace;
    td_str uid; /* of the scale; empty: compare group, kind and name */
};

enum td_owner_verdict {
    TD_OWNER_UNDECIDED, /* waits for a fetch */
    TD_OWNER_OWNED,
    TD_OWNER_NOT_OWNED,
    TD_OWNER_UNDETERMINED, /* an owner on the way may not be read */
};

enum td_owner_step { TD_OWNER_FETCH, TD_OWNER_DONE, TD_OWNER_GIVEN_UP };

/* All of the two references: kind and name need not belong to the uid. */
bool td_owner_is_same(const struct td_owner_reference *a, const struct td_owner_reference *b);

/* Does the target own the pod, as far as the source knows without a request? An owner on the way
 * that it does not know leaves that open, which counts as owned. The uid of the target is not
 * looked at. */
bool td_owner_may_own(const struct td_workload_source *source, const struct td_owner_target *target,
                      const struct td_pod *pod);

struct td_owner_filter {
    struct td_arena *arena;
    struct td_owner_cache *cache;
    struct td_owner_target target;
    const struct td_pod *const *pods;
    size_t pod_count;
    uint8_t *verdicts; /* enum td_owner_verdict, one a pod */
    td_time now;
    struct td_owner_key *wanted; /* to be fetched before the next step */
    size_t wanted_count;
    size_t wanted_cap;
    size_t owned_count;
    size_t undetermined_count;
    size_t too_deep_count; /* pods whose chain of owners was cut */
    bool is_failed;
    enum td_hpa_filter_cause cause; /* when it failed */
    td_str culprit;                 /* "ReplicaSet/web-1", when it failed; may be empty */
    struct td_map memo;             /* an only owner's reference to its verdict */
    struct td_string_set wanted_keys;
    size_t step_count;
};

/* `pods` are those that the selector matches; they and the cache must outlive the filter. */
void td_owner_filter_begin(struct td_owner_filter *filter, struct td_arena *arena,
                           struct td_owner_cache *cache, const struct td_owner_target *target,
                           const struct td_pod *const *pods, size_t pod_count, td_time now);
void td_owner_filter_done(struct td_owner_filter *filter);

enum td_owner_step td_owner_filter_step(struct td_owner_filter *filter);

/* The answer for wanted[index]; uid and owners when it was found, borrowed. */
void td_owner_filter_answer(struct td_owner_filter *filter, size_t index,
                            enum td_owner_answer answer, td_str uid,
                            const struct td_owner_reference *owners, size_t owner_count);
