/*
 * Between the files of the pod validators; nothing else includes this.
 */
#pragma once

#include "api/object_check.h"
#include "api/pod/pod_validate.h"
#include "base/limits.h"

/* What all containers of one pod share while they are checked. */
struct td_pod_check {
    struct td_field_errors *errors;
    struct td_json *volumes; /* set of names, as an object */
    struct td_json *names;   /* of containers seen so far */
    td_str restart_policy;   /* of the pod */
};

enum td_pod_container_kind { TD_CONTAINER_REGULAR, TD_CONTAINER_INIT, TD_CONTAINER_EPHEMERAL };

/* One container (pod_container.c). */
void td_pod_check_container(struct td_pod_check *check, const struct td_field_path *path,
                            const struct td_json *container, enum td_pod_container_kind kind);

/* Probes and lifecycle handlers of one container (pod_probe.c). */
void td_pod_check_probes(struct td_field_errors *errors, const struct td_field_path *path,
                         const struct td_json *container, bool are_allowed);

/* requests and limits of a container or, with is_pod, of the pod (pod_resources.c). */
void td_pod_check_resources(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *resources, bool is_pod);
/* Resources of the pod against those of its containers. */
void td_pod_check_consistency(struct td_field_errors *errors, const struct td_field_path *path,
                              const struct td_json *spec);

void td_pod_not_found(struct td_field_errors *errors, const struct td_field_path *path,
                      td_str value);
