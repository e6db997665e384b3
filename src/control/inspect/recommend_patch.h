/*
 * Right sizes written into manifests: the text of a file in, the same text with the requests of its
 * workloads' containers out, and limits in the proportion that the file has. A container that
 * cannot be edited safely is refused with a sentence, and the others are edited all the same.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "control/inspect/recommend_once.h"

struct td_recommend_patch {
    const struct td_right_sizes *sizes;
    const char *path; /* for sentences */
    td_str namespace; /* of objects that name none; empty: the only one that has such a workload */
    td_str text;
    td_str edited;     /* made, as all below; owned */
    size_t edit_count; /* containers that changed */
    td_str *refusals;  /* "k8s/web.yaml: line 12: Deployment web, container app: ..." */
    size_t refusal_count;
    size_t refusal_cap; /* private */
};

/* Sentences are in the arena. Also on failure the caller gives the edited text back. */
int td_recommend_patch(struct td_arena *arena, struct td_recommend_patch *patch,
                       struct td_error *err);
void td_recommend_patch_done(struct td_recommend_patch *patch);
