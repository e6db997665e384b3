/*
 * VerticalPodAutoscaler v1 (autoscaling.k8s.io) with the fields of three proposals: spec.selector
 * (HeterogeneousWorkloads), stricter updatePolicy.evictionRequirements, and
 * resourcePolicy.podPolicies with status.recommendation.podRecommendation (PodLevelResources). On
 * the wire an object is a JSON tree whose unknown fields survive; deciders read the struct that
 * td_vpa_decode makes. Decoded texts are slices of the tree, arrays are in the arena. Everything is
 * pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/vpa/recommendation.h"
#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/fielderror.h"
#include "kube/meta.h"
#include "kube/podresources.h"
#include "kube/schema/schema.h"
#include "kube/selector/selector.h"

struct td_error;

enum td_vpa_mode {
    TD_VPA_OFF,
    TD_VPA_INITIAL,
    TD_VPA_RECREATE, /* also Auto, absent and empty */
    TD_VPA_IN_PLACE_OR_RECREATE,
    TD_VPA_IN_PLACE,
};

/* "Off", "Initial", "Recreate", "InPlaceOrRecreate", "InPlace". */
td_str td_vpa_mode_name(enum td_vpa_mode mode);

enum td_change_requirement {
    TD_TARGET_HIGHER_THAN_REQUESTS,
    TD_TARGET_LOWER_THAN_REQUESTS,
    TD_CHANGE_UNKNOWN, /* never met */
};

struct td_eviction_requirement {
    const td_str *resources;
    size_t resource_count;
    enum td_change_requirement change;
};

enum td_boost_type { TD_BOOST_FACTOR, TD_BOOST_QUANTITY, TD_BOOST_UNKNOWN };

struct td_startup_boost {
    bool is_set;  /* the startupBoost object is there */
    bool has_cpu; /* and has cpu */
    enum td_boost_type type;
    td_str type_text;
    bool has_factor;
    int32_t factor;
    bool has_quantity;
    struct td_quantity quantity;
    bool has_duration; /* a container's boost without one takes that of the spec */
    int32_t duration_seconds;
};

/* One entry of resourcePolicy.containerPolicies; "*" is the default entry. */
struct td_container_policy {
    td_str container_name;
    bool is_off; /* mode Off */
    struct td_resource_list min_allowed;
    struct td_resource_list max_allowed;
    bool has_controlled_resources; /* else cpu and memory */
    const td_str *controlled_resources;
    size_t controlled_resource_count;
    bool is_requests_only; /* controlledValues */
    bool has_oom_bump_up_ratio;
    struct td_quantity oom_bump_up_ratio;
    bool has_oom_min_bump_up;
    struct td_quantity oom_min_bump_up;
    bool has_memory_interval;
    int32_t memory_interval_seconds;
    bool has_memory_interval_count;
    int64_t memory_interval_count;
    struct td_startup_boost startup_boost;
};

/* resourcePolicy.podPolicies of the pod-level proposal. */
struct td_pod_policy {
    bool is_set;
    struct td_resource_list min_allowed;
    struct td_resource_list max_allowed;
    bool has_controlled_resources;
    const td_str *controlled_resources;
    size_t controlled_resource_count;
    bool is_requests_only;
};

struct td_resource_policy {
    bool is_set; /* spec.resourcePolicy is there */
    const struct td_container_policy *containers;
    size_t container_count;
    struct td_pod_policy pod;
};

struct td_vpa_condition {
    td_str type;
    td_str status; /* "True", "False" */
    td_str reason;
    td_str message;
    struct td_instant last_transition;
};

/* The conditions of a status; a time that is absent or cannot be read is TD_INSTANT_ZERO. */
const struct td_vpa_condition *
td_vpa_conditions_read(struct td_arena *arena, const struct td_json *list, size_t *ret_count);

/* The condition of a type, or NULL. */
const struct td_vpa_condition *td_vpa_condition_find(const struct td_vpa_condition *conditions,
                                                     size_t count, td_str type);
/* Is the condition there, and "True"? */
bool td_vpa_condition_holds(const struct td_vpa_condition *conditions, size_t count, td_str type);

struct td_vpa {
    struct td_meta meta;
    bool has_target;
    td_str target_api_version;
    td_str target_kind;
    td_str target_name;
    bool has_selector;                   /* spec.selector is there and constrains something */
    struct td_selector pod_selector;     /* valid when has_selector */
    const struct td_json *selector_tree; /* as written, or NULL */
    bool has_update_policy;
    enum td_vpa_mode mode;
    bool has_min_replicas;
    int32_t min_replicas;
    bool has_evict_after_oom;
    int32_t evict_after_oom_seconds;
    const struct td_eviction_requirement *eviction_requirements;
    size_t eviction_requirement_count;
    struct td_resource_policy policy;
    struct td_startup_boost startup_boost;
    td_str recommender;      /* empty: the default one */
    bool has_recommendation; /* status.recommendation is there (it may be empty) */
    struct td_recommendation recommendation;
    const struct td_vpa_condition *conditions;
    size_t condition_count;
    int64_t observed_generation;
    const struct td_json *tree; /* the whole object */
};

struct td_vpa_gates {
    bool in_place;                /* InPlace */
    bool per_vpa_config;          /* PerVPAConfig */
    bool cpu_startup_boost;       /* CPUStartupBoost */
    bool heterogeneous_workloads; /* HeterogeneousWorkloads: spec.selector */
    bool pod_level_resources;     /* PodLevelResources: podPolicies */
};
extern const struct td_vpa_gates td_vpa_gates_all; /* on */

/* Lenient: unknown fields are ignored, null counts as absent. Wrong types, bad quantities and bad
 * selectors are TD_INVALID with their path and value. */
int td_vpa_decode(struct td_arena *arena, const struct td_json *object, struct td_vpa *ret,
                  struct td_error *err);

/* The policy of a container: the first entry with its name, else the last "*", else NULL
 * (vpa.md 1.2). */
const struct td_container_policy *td_vpa_container_policy(const struct td_resource_policy *policy,
                                                          td_str container);

/* Is a resource controlled by this policy (NULL: both cpu and memory are)? */
bool td_vpa_controls(const struct td_container_policy *policy, td_str resource);

struct td_vpa_admission {
    bool is_update;
    const struct td_json *object;
    const struct td_json *old; /* stored; NULL on create */
    struct td_vpa_gates gates;
};

/* The webhook's own checks and defaults (vpa.md 4.7, proposals.md 2, 3.5), of one object alone;
 * siblings are judged in decide/vertical/siblings.h. Errors come in upstream's order. *ret_patches
 * gets the JSON Patch of the defaults (an empty array when none), *ret_warnings an array of
 * strings. TD_INVALID when the object does not decode. */
int td_vpa_admit(struct td_arena *arena, const struct td_vpa_admission *admission,
                 struct td_field_errors *errors, struct td_json **ret_patches,
                 struct td_json **ret_warnings, struct td_error *err);

/* Fields of a spec at `spec` that are right and have no effect: eviction requirements and bounds of
 * resources that are not controlled. For warnings; the sentences are in ret->arena. */
void td_vpa_find_unused(const struct td_vpa *vpa, const struct td_field_path *spec,
                        struct td_field_errors *ret);

/* The value of a flag that is a maximum, such as --pod-recommendation-max-allowed-cpu: a quantity
 * above 0 that has digits (a quantity alone could be a bare suffix). The message begins with the
 * flag. */
int td_vpa_parse_flag(struct td_arena *arena, td_str flag, td_str text, struct td_quantity *ret,
                      struct td_error *err);

/* What the CRD's schema does with a created object: prune unknown fields, drop nulls, check types,
 * enums, patterns, minima and CEL rules. *ret_stored is the object as stored. */
int td_vpa_apply_crd(struct td_arena *arena, const struct td_json *object,
                     struct td_field_errors *errors, struct td_json **ret_stored,
                     struct td_error *err);

/* The CEL rules of the CRD, about an object that its schema accepts. */
void td_vpa_check_rules(const struct td_json *object, struct td_field_errors *errors);

/* The schema tables and the CRDs made from them, as trees ready to be applied. */
const struct td_schema_type *td_vpa_schema(void);
const struct td_schema_type *td_vpa_checkpoint_schema(void);
struct td_json *td_vpa_crd(struct td_arena *arena);
struct td_json *td_vpa_checkpoint_crd(struct td_arena *arena);

/* What `tandem run --shadow` would recommend and do for the VPA of the same name, and what
 * upstream's updater would by what upstream recommends: pods to evict and to resize. */
#define TD_SHADOW_GROUP "autoscaling.tandem.dev"
#define TD_SHADOW_VERSION "v1alpha1"
#define TD_SHADOW_KIND "VerticalPodAutoscalerShadow"
#define TD_SHADOW_PLURAL "verticalpodautoscalershadows"
const struct td_schema_type *td_vpa_shadow_schema(void);
struct td_json *td_vpa_shadow_crd(struct td_arena *arena);
