/*
 * What the JSON patches of admission and updater are made of: annotations and resources of a pod,
 * as operations (kube/patch/patch_write.h) appended to an array in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/podresources.h"

void td_patchops_set_annotation(struct td_arena *arena, struct td_json *patches, td_str name,
                                td_str value);
void td_patchops_remove_annotation(struct td_arena *arena, struct td_json *patches, td_str name);

/* Where a resources stanza is, and which of its maps are there. */
struct td_patch_place {
    td_str path; /* "/spec/containers/0/resources", "/spec/resources" */
    bool has_requests;
    bool has_limits;
    bool has_stanza; /* it is there even without the two maps: what else it has stays */
};

td_str td_patchops_container_path(struct td_arena *arena, size_t index);

/* Adds what is missing of the stanza, then every request and limit. */
void td_patchops_set_resources(struct td_arena *arena, struct td_json *patches,
                               const struct td_patch_place *place,
                               const struct td_resource_list *requests,
                               const struct td_resource_list *limits);
