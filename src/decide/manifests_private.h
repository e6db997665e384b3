/* Shared by manifests.c and manifests_lint.c: all files of one run, and how a finding is said. */
#pragma once

#include "decide/manifests.h"

struct td_manifests_files {
    struct td_arena *arena; /* scratch */
    const struct td_manifest *manifest;
    struct td_problems *problems; /* of each object */
    struct td_autoscaled_list list;
};

/* "Deployment shop/web (k8s/web.yaml:3)". */
td_str td_manifests_place(struct td_arena *arena, const struct td_manifest_object *item);
/* The namespace that it would get. */
td_str td_manifests_namespace(const struct td_manifest_object *item);

/* The line is that of the field; texts are copied. */
struct td_manifests_finding {
    const char *rule;
    bool is_warning;
    td_str field;
    td_str message;
};
void td_manifests_say(const struct td_manifests_files *files, size_t item,
                      const struct td_manifests_finding *finding);

/* Does the VPA set this resource in some container? */
bool td_manifests_controls(const struct td_resource_policy *policy, td_str resource);

/* What works, or cannot work, although every object is right by itself (docs/validate.md). */
void td_manifests_lint(const struct td_manifests_files *files);
