/*
 * Pods by their labels. Pods of a namespace that have the same labels are one set, and sets are
 * found by each label they have, so a selector with an equality looks at the sets with that label
 * only: an HPA costs its own pods, not those of the namespace. Private to the informers.
 */
#pragma once

#include "base/map.h"
#include "control/informers/informers.h"

struct td_pod_index {
    struct td_map sets;    /* by namespace and hash of the labels */
    struct td_map spaces;  /* all sets of a namespace */
    struct td_map buckets; /* sets of a namespace that have a label */
    bool is_cut;           /* there were more labels than buckets: those are not used any more */
};

void td_pod_index_init(struct td_pod_index *labels);
void td_pod_index_done(struct td_pod_index *labels); /* pods are not touched */

void td_pod_index_add(struct td_pod_index *labels, struct td_informer_pod *pod);
void td_pod_index_remove(struct td_pod_index *labels, struct td_informer_pod *pod);
void td_pod_index_change(struct td_pod_index *labels, struct td_informer_pod *before,
                         struct td_informer_pod *after);

void td_pod_index_match(const struct td_pod_index *labels, td_str namespace,
                        const struct td_selector *selector, struct td_pod_match *ret);
