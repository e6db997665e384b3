/*
 * Pods by their labels. Pods of a namespace that have the same labels are one set, and sets are
 * found by each label they have, so a selector with an equality looks at the sets with that label
 * only: an HPA costs its own pods, not those of the namespace. Private to the sight.
 */
#pragma once

#include "base/map.h"
#include "control/sight.h"

struct td_sight_labels {
    struct td_map sets;    /* by namespace and hash of the labels */
    struct td_map spaces;  /* all sets of a namespace */
    struct td_map buckets; /* sets of a namespace that have a label */
    bool is_cut;           /* there were more labels than buckets: those are not used any more */
};

void td_sight_labels_init(struct td_sight_labels *labels);
void td_sight_labels_done(struct td_sight_labels *labels); /* pods are not touched */

void td_sight_labels_add(struct td_sight_labels *labels, struct td_sight_pod *pod);
void td_sight_labels_remove(struct td_sight_labels *labels, struct td_sight_pod *pod);
void td_sight_labels_change(struct td_sight_labels *labels, struct td_sight_pod *before,
                            struct td_sight_pod *after);

void td_sight_labels_match(const struct td_sight_labels *labels, td_str namespace,
                           const struct td_selector *selector, struct td_sight_match *ret);
