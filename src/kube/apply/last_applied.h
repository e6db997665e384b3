/*
 * The annotation of client-side apply (kubectl.kubernetes.io/last-applied-configuration) in its two
 * meetings with server-side apply by the manager "kubectl": fields that the annotation proves to be
 * kubectl's may be taken over without force, and an apply keeps the annotation up to date.
 */
#pragma once

#include "base/str.h"
#include "kube/apply/fieldset.h"

struct td_error;

#define TD_LAST_APPLIED_ANNOTATION "kubectl.kubernetes.io/last-applied-configuration"

struct td_last_applied {
    const struct td_schema_type *type;
    td_str api_version;
    const struct td_json *live;
};

/* The fields that were last applied by the client and still have those values in the live object.
 * TD_NOT_FOUND without an annotation, another code when it cannot be used. */
int td_last_applied_fields(struct td_arena *arena, const struct td_last_applied *last,
                           const struct td_fieldset **ret, struct td_error *err);

/* When `object` has the annotation, set it to the text of `applied`; an annotation that would make
 * all of them larger than Kubernetes allows is removed instead. */
void td_last_applied_refresh(struct td_arena *arena, const struct td_json *applied,
                             struct td_json *object);
