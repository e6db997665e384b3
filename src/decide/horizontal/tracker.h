/*
 * Which HPA selects which pods: the selectors of all HPAs as last seen, found again by a pod's
 * labels, so that two HPAs over the same pods are noticed. Selectors are kept under one equality
 * of theirs ("app=web"); a lookup asks for each label of a pod and for the few selectors that have
 * no equality, and never walks all HPAs. An HPA that is known but not yet reconciled selects
 * nothing. Targets are kept the same way, to find the HPAs that share one, and to leave pods out
 * that an HPA does not count because its target does not own them. Owns copies of everything; one
 * owner, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/hpa/hpa.h"
#include "base/map.h"
#include "base/str.h"
#include "model/owners.h"
#include "model/pod.h"

struct td_error;

#define TD_HPA_TRACKED_MAX ((size_t)1 << 20) /* HPAs of one cluster */
#define TD_HPA_AMBIGUOUS_MAX 16              /* HPAs that one message names */

struct td_hpa_tracker {
    struct td_map entries; /* "namespace/name" to its entry */
    struct td_map labels;  /* namespace and equality to a list of entries */
    struct td_map targets; /* namespace, group, kind and name to a list of entries */
};

void td_hpa_tracker_init(struct td_hpa_tracker *tracker);
void td_hpa_tracker_done(struct td_hpa_tracker *tracker);

/* Known from now on; keeps what there is. TD_LIMIT past TD_HPA_TRACKED_MAX. */
int td_hpa_tracker_add(struct td_hpa_tracker *tracker, td_str namespace, td_str name);
void td_hpa_tracker_remove(struct td_hpa_tracker *tracker, td_str namespace, td_str name);

/* The selector of a known HPA, as text; one that is not known is left alone. The same text again
 * costs a comparison. */
int td_hpa_tracker_put(struct td_hpa_tracker *tracker, td_str namespace, td_str name,
                       td_str selector, struct td_error *err);

/* Of the pods that its selector matches, a known HPA counts all, or those that its target owns. */
void td_hpa_tracker_put_owned_only(struct td_hpa_tracker *tracker, td_str namespace, td_str name,
                                   bool is_owned_only);

/* The HPAs of the namespace that count at least one of the pods: sorted "namespace/name", at most
 * TD_HPA_AMBIGUOUS_MAX of them, borrowed. Returns how many. Owners are looked up in `source`; NULL:
 * labels alone decide. */
size_t td_hpa_tracker_find(const struct td_hpa_tracker *tracker,
                           const struct td_workload_source *source, td_str namespace,
                           const struct td_pod *const *pods, size_t pod_count,
                           td_str ret[TD_HPA_AMBIGUOUS_MAX]);

/* The target of a known HPA, as above; to be told as soon as the object is there, since it counts
 * before the first reconcile. */
void td_hpa_tracker_put_target(struct td_hpa_tracker *tracker, td_str namespace, td_str name,
                               const struct td_object_reference *target);

/* The HPAs of the namespace with this target, its version ignored; returns as above. */
size_t td_hpa_tracker_find_target(const struct td_hpa_tracker *tracker, td_str namespace,
                                  const struct td_object_reference *target,
                                  td_str ret[TD_HPA_AMBIGUOUS_MAX]);
