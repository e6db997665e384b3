/* What the topics on vertical scaling of pods share. */
#pragma once

#include "api/vpa/vpa.h"
#include "base/json/json.h"
#include "decide/vertical/patch/limitrange.h"

/* The summary of an array of LimitRange objects. */
int golden_limit_ranges(struct td_arena *arena, const struct td_json *objects, td_str namespace,
                        struct td_limit_ranges *ret, struct td_error *err);

/* A VPA with that spec.resourcePolicy and that list of container recommendations; null is none. */
int golden_vpa_of(struct td_arena *arena, const struct td_json *policy,
                  const struct td_json *container_recommendations, struct td_vpa *ret,
                  struct td_error *err);

/* The list of container recommendations, absent lists as null. */
struct td_json *golden_recommendation_json(struct td_arena *arena,
                                           const struct td_recommendation *recommendation);

/* The clauses of a vpaUpdates text, each as an object of its parts. */
struct td_json *golden_sorted_clauses(struct td_arena *arena, td_str text);

/* Equal, where texts that are quantities compare by value and arrays as sets. */
bool golden_equal_values(const struct td_json *a, const struct td_json *b);
