/*
 * What an API server demands of a pod's spec, of a pod or of a template, and the defaults that it
 * fills in before it asks. Errors are upstream's: its paths, classes and words. Trees are in the
 * form in which a server writes them. Pure functions; everything is in the arena of the errors.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/fielderror.h"

/* The spec of a pod, whatever is done to it. */
void td_pod_check_spec(struct td_field_errors *errors, const struct td_field_path *path,
                       const struct td_json *spec);
/* The spec of a pod that is being created: that, and what only then can be wrong. */
void td_pod_check_new(struct td_field_errors *errors, const struct td_field_path *path,
                      const struct td_json *spec);
/* A pod template at `path`. */
void td_pod_check_template(struct td_field_errors *errors, const struct td_field_path *path,
                           const struct td_json *template);

/* "Guaranteed", "Burstable" or "BestEffort". */
td_str td_pod_qos_class(struct td_arena *arena, const struct td_json *pod);

/* The rules of defaulting that are no constants: of one object of the type they are named for. */
void td_default_pod(struct td_arena *arena, struct td_json *pod);
void td_default_pod_spec(struct td_arena *arena, struct td_json *spec);
void td_default_container(struct td_arena *arena, struct td_json *container);
void td_default_volume(struct td_arena *arena, struct td_json *volume);
