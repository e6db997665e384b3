/*
 * Does a pod fit on a node, and if not, why? The filters of upstream's default scheduler, in its
 * order and words: unschedulable, taints, node affinity and selector, resources. Affinity between
 * pods, topology spread, ports and volumes are not looked at. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "local/nodes/node_index.h"

/* What placement needs of a pod; borrowed from its tree and the arena. */
struct td_fit_pod {
    const struct td_node_amount *requests;
    size_t request_count;
    const struct td_json *node_selector; /* may be NULL, as the next two */
    const struct td_json *affinity;      /* requiredDuringSchedulingIgnoredDuringExecution */
    const struct td_json *tolerations;
    td_str controller_uid;
};

int td_fit_pod_read(struct td_arena *arena, const struct td_json *pod, struct td_fit_pod *ret);

struct td_fit {
    bool fits;
    bool is_hopeless;                          /* even an empty node of this kind would not do */
    td_str reasons[TD_NODE_RESOURCES_MAX + 1]; /* when it does not fit */
    size_t reason_count;
};

void td_fit_check(struct td_arena *arena, const struct td_fit_pod *pod, const struct td_node *node,
                  struct td_fit *ret);

/* Of two nodes that fit: is `a` the better place? Fewer pods of the same controller, then more
 * free, then the name. */
bool td_fit_is_better(const struct td_fit_pod *pod, const struct td_node *a,
                      const struct td_node *b);
