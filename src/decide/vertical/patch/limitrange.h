/*
 * LimitRanges of a namespace, brought down to one effective item for containers and one for pods,
 * as upstream's calculator does: the smallest max and the largest min of cpu and memory, other
 * resources from the first list seen, and of the defaults the last map, whole. Upstream's order is
 * that of its cache; ours is the caller's, so sort by name. Texts are slices of the trees, lists
 * are in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/podresources.h"

struct td_error;

struct td_limit_summary {
    bool is_set;  /* some item has max, min or default */
    bool has_min; /* an absent map is not an empty one */
    bool has_max;
    bool has_default;
    struct td_resource_list min;
    struct td_resource_list max;
    struct td_resource_list default_limit;
};

struct td_limit_ranges {
    struct td_limit_summary container;
    struct td_limit_summary pod;
    const td_str *container_names; /* LimitRanges that have an item for containers */
    size_t container_name_count;
};

/* Of the objects in `namespace`, in the order given; the empty namespace takes all. Wrong types and
 * bad quantities are TD_INVALID, naming the LimitRange. */
int td_limit_ranges_read(struct td_arena *arena, const struct td_json *const *objects, size_t count,
                         td_str namespace, struct td_limit_ranges *ret, struct td_error *err);

/* The summary when there is one, else NULL. */
const struct td_limit_summary *td_limit_summary_or_null(const struct td_limit_summary *summary);
