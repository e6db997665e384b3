/*
 * Between the files of pods; nobody else includes this. Errors are upstream's: its paths, classes
 * and words.
 */
#pragma once

#include "api/fielderror.h"
#include "local/kinds_private.h"

/* A pod as written by any of its doors (kinds_pod_validate.c, kinds_pod_update.c). */
void td_pod_validate(const struct td_kind_write *write, struct td_field_errors *errors);
void td_pod_check_update(const struct td_kind_write *write, struct td_field_errors *errors);
void td_pod_check_resize(const struct td_kind_write *write, struct td_field_errors *errors);

/* What all containers of one pod share while they are checked. */
struct td_pod_check {
    struct td_field_errors *errors;
    struct td_json *volumes; /* set of names, as an object */
    struct td_json *names;   /* of containers seen so far */
    td_str restart_policy;   /* of the pod */
};

enum td_pod_container_kind { TD_CONTAINER_REGULAR, TD_CONTAINER_INIT, TD_CONTAINER_EPHEMERAL };

/* One container (kinds_pod_container.c). */
void td_pod_check_container(struct td_pod_check *check, const struct td_field_path *path,
                            const struct td_json *container, enum td_pod_container_kind kind);

/* Probes and lifecycle handlers of one container (kinds_pod_probe.c). */
void td_pod_check_probes(struct td_field_errors *errors, const struct td_field_path *path,
                         const struct td_json *container, bool are_allowed);

/* requests and limits of a container or, with is_pod, of the pod (kinds_pod_resources.c). */
void td_pod_check_resources(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *resources, bool is_pod);
/* Resources of the pod against those of its containers. */
void td_pod_check_consistency(struct td_field_errors *errors, const struct td_field_path *path,
                              const struct td_json *spec);

void td_pod_not_found(struct td_field_errors *errors, const struct td_field_path *path,
                      td_str value);
