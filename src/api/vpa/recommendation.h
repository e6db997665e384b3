/*
 * status.recommendation of a VPA: per container (and per pod) target, lowerBound, upperBound and
 * uncappedTarget, each a list of resources with quantities that keep their format. Shared by the
 * API objects and the vertical deciders. Value semantics: lists are in the arena that made them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/podresources.h"

struct td_error;

struct td_container_recommendation {
    td_str container_name;
    struct td_resource_list target;
    struct td_resource_list lower_bound;
    struct td_resource_list upper_bound;
    struct td_resource_list uncapped_target;
    /* An absent list is not an empty one: upstream tells nil from {}. */
    bool has_target;
    bool has_lower_bound;
    bool has_upper_bound;
    bool has_uncapped_target;
};

struct td_pod_recommendation {
    bool is_set;
    struct td_resource_list target;
    struct td_resource_list lower_bound;
    struct td_resource_list upper_bound;
};

struct td_recommendation {
    struct td_container_recommendation *containers;
    size_t container_count;
    struct td_pod_recommendation pod;
};

int td_recommendation_decode(struct td_arena *arena, const struct td_json *object,
                             struct td_recommendation *ret, struct td_error *err);
struct td_json *td_recommendation_encode(struct td_arena *arena,
                                         const struct td_recommendation *recommendation);
/* The lists of one container as members of `object`. */
void td_recommendation_put_lists(struct td_arena *arena, struct td_json *object,
                                 const struct td_container_recommendation *from, bool skips_empty);

/* The same recommendation in meaning: quantities by value, an absent list equal to an empty one. */
bool td_recommendation_equal(const struct td_recommendation *a, const struct td_recommendation *b);
