/*
 * What the files of the VerticalPodAutoscaler module share; private to them.
 */
#pragma once

#include "api/crd.h"
#include "api/object_check.h"
#include "api/vpa/vpa.h"

/* td_vpa_decode, but a selector that is no valid one is passed over (has_selector stays false):
 * admission names its faults one by one, or must not look at it at all. */
int td_vpa_decode_lax(struct td_arena *arena, const struct td_json *object, struct td_vpa *ret,
                      struct td_error *err);

/* One admission while it is judged. */
struct td_vpa_check {
    struct td_arena *arena;
    struct td_field_errors *errors;
    struct td_json *warnings;       /* array of strings */
    const struct td_vpa *vpa;       /* decoded; without what a closed gate hides */
    const struct td_vpa *old;       /* NULL on create */
    const struct td_json *spec;     /* of the tree that vpa was decoded from, or NULL */
    struct td_field_errors pod_bad; /* quantities of podPolicies that do not parse */
    struct td_json *old_resources;  /* set of controlledResources that the old object names */
    bool allows_boost;
    bool allows_config;   /* PerVPAConfig */
    bool allows_in_place; /* InPlace */
    bool checks_pod;      /* podPolicies: gate open, and not left as it was */
};

/* Enough errors for one answer: a hostile object could have millions of errors. */
bool td_vpa_check_is_full(const struct td_vpa_check *check);

/* A fraction of a millicore (cpu) or of a byte (memory) is an error at `path`. */
void td_vpa_check_resolution(struct td_vpa_check *check, const struct td_field_path *path,
                             td_str resource, const struct td_quantity *quantity);

/* startupBoost at `path`. */
void td_vpa_check_boost(struct td_vpa_check *check, const struct td_startup_boost *boost,
                        const struct td_field_path *path);

/* spec.resourcePolicy: containerPolicies, then podPolicies. */
void td_vpa_check_policies(struct td_vpa_check *check, const struct td_field_path *spec_path);

/* A copy of spec.resourcePolicy.podPolicies' tree without the quantities that do not parse, each of
 * which is added to check->pod_bad; called before decoding, which would stop at the first. */
struct td_json *td_vpa_check_pod_quantities(struct td_vpa_check *check,
                                            const struct td_json *policies);
