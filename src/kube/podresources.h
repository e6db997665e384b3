/*
 * What a pod asks for and may use: Go's component-helpers PodRequests and PodLimits, sidecars, init
 * containers, overhead, pod-level resources and in-place resize status included. Pure functions
 * over a pod as a JSON tree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/quantity/quantity.h"

struct td_error;

struct td_resource_amount {
    td_str name; /* "cpu", "memory", "example.com/gpu" */
    struct td_quantity quantity;
};

struct td_resource_list {
    struct td_resource_amount *items; /* sorted by name; in the arena */
    size_t count;
};

struct td_pod_resource_options {
    bool use_status_resources;
    bool in_place_pod_level_resources;
    bool exclude_overhead;
    bool skip_pod_level_resources;
    bool skip_container_level_resources; /* requests only */
    const struct td_json
        *non_missing_container_requests; /* resource to quantity; requests only; may be NULL */
};

/* A resource list such as resources.requests; NULL gives the empty list. Errors name the member and
 * its value. */
int td_resource_list_decode(struct td_arena *arena, const struct td_json *object,
                            struct td_resource_list *ret, struct td_error *err);
const struct td_quantity *td_resource_list_get(const struct td_resource_list *resources,
                                               td_str name);
/* As a JSON object of texts. */
struct td_json *td_resource_list_json(struct td_arena *arena, const struct td_resource_list *list);

int td_pod_requests(struct td_arena *arena, const struct td_json *pod,
                    const struct td_pod_resource_options *options, struct td_resource_list *ret,
                    struct td_error *err);
int td_pod_limits(struct td_arena *arena, const struct td_json *pod,
                  const struct td_pod_resource_options *options, struct td_resource_list *ret,
                  struct td_error *err);
