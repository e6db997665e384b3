/*
 * Between the files of the Deployment controller: what it does (workload_deployment.c) and what it
 * says about it, in annotations and status (workload_deployment_status.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "local/workloads/workload_private.h"
#include "local/workloads/workload_rollout.h"

#define TD_ANNOTATION_REVISION "deployment.kubernetes.io/revision"
#define TD_ANNOTATION_HISTORY "deployment.kubernetes.io/revision-history"
#define TD_ANNOTATION_DESIRED "deployment.kubernetes.io/desired-replicas"
#define TD_ANNOTATION_MAX "deployment.kubernetes.io/max-replicas"

struct td_deployment_set {
    struct td_json *object;
    td_str name;
    td_time created;
};

struct td_deployment {
    struct td_workload_item *item;
    struct td_rollout rollout;
    struct td_deployment_set *sets; /* by age; there is room for one more */
    struct td_rollout_set *plans;   /* of the same */
    size_t count;
    bool has_new;
    size_t new_index;
};

/* Is there a deadline for progress? */
bool td_deployment_has_deadline(const struct td_workload_item *item);

/* SetDeploymentCondition: one with the same status and reason stays as it is. */
void td_deployment_set_condition(struct td_workload_item *item, struct td_json *status,
                                 const struct td_condition *condition);

/* Does the status that is there say that all is done? */
bool td_deployment_is_complete(const struct td_workload_item *item);

/* One more than the highest revision of the old sets. */
td_str td_deployment_next_revision(const struct td_deployment *deployment);

/* The annotations of the new set: revision, history, the Deployment's own. True when changed. */
bool td_deployment_annotate_new(struct td_deployment *deployment, struct td_json *set,
                                td_str revision, bool does_exist);

/* Written into the Deployment: a set was made, or is there. */
void td_deployment_note_new(struct td_deployment *deployment, td_str revision, td_str name);
void td_deployment_note_found(struct td_deployment *deployment);

/* Paused and resumed are conditions of their own. */
void td_deployment_check_paused(struct td_workload_item *item);

/* Counts and conditions; with `is_rollout` progress is judged as well. */
void td_deployment_update_status(struct td_deployment *deployment, bool is_rollout);
