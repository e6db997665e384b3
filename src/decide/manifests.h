/*
 * Autoscalers of one workload in files: what `tandem validate` says about objects that are right by
 * themselves and work against each other. An HPA and a VPA that act on one resource drive each
 * other (decide/tandem/loopgain.h); a target has one Hvpa, and no other autoscaler beside it
 * (decide/tandem/ownership.h). Objects that do not decode are passed over: their own checks have
 * named the fault. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/hpa/hpa.h"
#include "api/vpa/vpa.h"
#include "decide/tandem/ownership.h"
#include "kube/manifest.h"
#include "kube/schema/check.h"

struct td_error;

/* The autoscalers of one target, in the order of files; the same object in two files is one. */
struct td_autoscaled {
    struct td_ownership_target target;
    size_t *items; /* indices into the manifest */
    size_t count;
    size_t cap;
    size_t workload; /* index of the target itself, or TD_OWNERSHIP_NONE when no file has it */
};

struct td_autoscaled_list {
    struct td_autoscaled *items;
    size_t count;
    struct td_ownership_object *objects; /* one for each item of the manifest */
    bool *is_autoscaler;                 /* is objects[i] filled? */
};

/* Group the autoscalers of all files. Objects without a namespace are in "default". */
void td_manifests_group(struct td_arena *arena, const struct td_manifest *manifest,
                        struct td_autoscaled_list *ret);

/* An HPA of any version as deciders see it. */
int td_manifests_hpa(struct td_arena *arena, const struct td_json *tree, struct td_hpa *ret,
                     struct td_error *err);

/* Do both act on `resource`? The smallest covering target and its metric are given back. */
struct td_shared_metric {
    size_t metric; /* index of spec.metrics of the v2 form */
    int32_t utilization_percent;
};
bool td_manifests_shares(const struct td_hpa *hpa, const struct td_vpa *vpa, td_str resource,
                         struct td_shared_metric *ret);

/* problems[i] belongs to manifest->items[i] and is added to. */
void td_manifests_check_all(const struct td_manifest *manifest, struct td_problems *problems);
