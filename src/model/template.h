/*
 * What autoscalers ask of a workload's pod template: the labels that its pods are born with, and
 * the resources that they would have if no autoscaler changed them. A few hundred bytes of the
 * kilobytes that a template has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "kube/podresources.h"
#include "kube/selector/labels.h"

struct td_template_container {
    td_str name;
    struct td_resource_list requests;
    struct td_resource_list limits;
};

struct td_pod_template {
    bool is_set; /* it is known */
    struct td_labels labels;
    const struct td_template_container *containers; /* spec.containers, in order */
    size_t container_count;
    struct td_resource_list pod_requests; /* spec.resources */
    struct td_resource_list pod_limits;
};

/* From a PodTemplateSpec; what is no template, or has an amount that cannot be read, is not set.
 * Texts are slices of the tree. */
struct td_pod_template td_pod_template_decode(struct td_arena *arena,
                                              const struct td_json *template);

/* A copy in the arena, texts too. */
struct td_pod_template td_pod_template_copy(struct td_arena *arena,
                                            const struct td_pod_template *template);

const struct td_template_container *
td_pod_template_container(const struct td_pod_template *template, td_str name); /* or NULL */
