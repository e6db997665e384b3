/*
 * Hvpa (autoscaling.k8s.io/v1alpha1): one object that scales a workload horizontally and vertically
 * in one of five modes. On the wire it is a JSON tree whose unknown fields survive; deciders read
 * the struct that td_hvpa_decode makes, with every default filled in and every rule of the object
 * checked, so a decoded Hvpa is a valid one. hpaSpec and vpaSpec may be a spec (flat form) or a
 * whole object (object form), the HPA one of v1 or v2. Decoded texts are slices of the tree, arrays
 * are in the arena. Everything is pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/hpa/hpa.h"
#include "api/vpa/recommendation.h"
#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "base/timefmt.h"
#include "kube/fielderror.h"
#include "kube/meta.h"
#include "kube/podresources.h"
#include "kube/quantity/quantity.h"
#include "kube/schema/schema.h"

struct td_error;

#define TD_HVPA_GROUP "autoscaling.k8s.io"
#define TD_HVPA_VERSION "v1alpha1"
#define TD_HVPA_API_VERSION TD_HVPA_GROUP "/" TD_HVPA_VERSION

enum td_hvpa_mode {
    TD_HVPA_HPA_PREFERRED,
    TD_HVPA_HPA_BIASED,
    TD_HVPA_VPA_BIASED,
    TD_HVPA_MIXED,
    TD_HVPA_RATIO_BASED,
};

enum td_hvpa_axis { TD_HVPA_HORIZONTAL, TD_HVPA_VERTICAL };

/* Which resource an entry of a small table is about. */
enum td_hvpa_resource { TD_HVPA_CPU, TD_HVPA_MEMORY };
#define TD_HVPA_RESOURCE_COUNT 2

enum td_hvpa_capacity { TD_HVPA_BLEND, TD_HVPA_MAX };
enum td_hvpa_update { TD_HVPA_UPDATE_AUTO, TD_HVPA_UPDATE_OFF, TD_HVPA_UPDATE_WINDOW };
enum td_hvpa_on_delete { TD_HVPA_DELETE_TEMPLATE, TD_HVPA_DELETE_KEEP };
enum td_hvpa_actuation { TD_HVPA_ACTUATE_PODS, TD_HVPA_ACTUATE_TEMPLATE };
enum td_hvpa_coupling { TD_HVPA_REFERENCE, TD_HVPA_RECONCILE, TD_HVPA_COUPLING_NONE };
enum td_hvpa_sources { TD_HVPA_INTERNAL, TD_HVPA_OBJECTS };

/* {value, percentage}: neither, one or both may be given. */
struct td_hvpa_change {
    bool has_value;
    struct td_quantity value;
    int64_t amount; /* value in milli cpu or in bytes, rounded up; 0 or more */
    bool has_percentage;
    int32_t percentage; /* 0 or more */
};

struct td_hvpa_ratio {
    double v_to_h; /* ρ, 0 to 1e6; 0 is horizontal only */
    bool has_start;
    int32_t start; /* x1 */
    bool has_finish;
    int32_t finish; /* x2 */
    bool overflow;
    enum td_hvpa_capacity capacity;
};

struct td_hvpa_mixed {
    enum td_hvpa_axis preference;
    int32_t horizontal_threshold; /* x */
    /* y, by td_hvpa_resource: at least one member each, percentage 10 when none was given. */
    struct td_hvpa_change vertical_threshold[TD_HVPA_RESOURCE_COUNT];
    int64_t patience_seconds; /* 0: never */
};

struct td_hvpa_scale_policy {
    enum td_hvpa_update update;
    td_duration stabilization; /* 0 or more */
    /* By td_hvpa_resource; neither member: none configured. The horizontal axis ignores it. */
    struct td_hvpa_change min_change[TD_HVPA_RESOURCE_COUNT];
};

/* Seconds of the UTC day, both ends inclusive; end below begin spans midnight; never equal. */
struct td_hvpa_window {
    bool is_set;
    int32_t begin_second;
    int32_t end_second;
};

/* container -> resources, as in status.current.requests. */
struct td_hvpa_container_resources {
    td_str container;
    struct td_resource_list resources;
};
struct td_hvpa_requests {
    const struct td_hvpa_container_resources *items;
    size_t count;
};

struct td_hvpa_blocked {
    enum td_hvpa_axis axis;
    td_str container; /* empty on the horizontal axis */
    td_str resource;
    td_str reason;
    bool has_since;
    struct td_instant since;
};

struct td_hvpa_emergency {
    td_str container;
    struct td_instant since;
    int64_t usable_seconds; /* for how long it could have acted; it is dropped after 30 minutes */
};

struct td_hvpa_status_decision {
    bool is_set;
    bool has_time;
    struct td_instant time;
    td_str axis;   /* None, Horizontal, Vertical, Both */
    td_str reason; /* HorizontalApplied, ... */
    td_str stage;  /* Initial, Ratio, Final; empty: none */
    bool has_replicas;
    int32_t replicas;
    struct td_hvpa_requests requests; /* what new pods are admitted with */
    struct td_hvpa_requests limits;
    bool has_weights;
    double weight_horizontal;
    double weight_vertical;
    bool emergency;
    bool has_below_thresholds_since;
    struct td_instant below_thresholds_since;
};

/* A vertical target that could not be carried out, and when that was found. */
struct td_hvpa_infeasible {
    bool is_set;
    struct td_instant time;
    struct td_hvpa_requests requests;
};

/* Sizes before anything was resized, where the template does not say them (or is what we write): in
 * their proportion limits follow requests. */
struct td_hvpa_origin {
    struct td_hvpa_requests requests;
    struct td_hvpa_requests limits;
};

struct td_hvpa_status {
    int64_t observed_generation;
    td_str mode;
    td_str reason; /* of the decision, or why there is none */
    bool has_replicas;
    int32_t replicas;       /* live pods, for the scale subresource */
    td_str target_selector; /* of the workload, as text */
    bool has_current;
    int32_t current_replicas;
    struct td_hvpa_requests current_requests;
    bool has_horizontal; /* recommendation.horizontal */
    bool horizontal_valid;
    bool has_desired_replicas;
    int32_t desired_replicas;
    td_str horizontal_reason;
    bool has_vertical; /* recommendation.vertical */
    bool vertical_valid;
    td_str vertical_reason;
    struct td_recommendation vertical;
    struct td_hvpa_status_decision decision;
    bool has_horizontal_time; /* lastScaling */
    struct td_instant horizontal_time;
    bool has_vertical_time;
    struct td_instant vertical_time;
    bool has_from_to;
    int32_t from_replicas;
    int32_t to_replicas;
    bool has_written_replicas; /* the last .spec.replicas that we wrote (sources: Objects) */
    int32_t written_replicas;
    struct td_hvpa_infeasible infeasible;
    const struct td_hvpa_blocked *blocked;
    size_t blocked_count;
    const struct td_hvpa_emergency *emergency;
    size_t emergency_count;
    struct td_hvpa_requests reference_requests; /* of the template before we wrote to it */
    struct td_hvpa_origin origin;
    const struct td_vpa_condition *conditions;
    size_t condition_count;
};

struct td_hvpa {
    struct td_meta meta;
    enum td_hvpa_mode mode;
    struct td_object_reference target; /* the chosen one */
    enum td_hvpa_axis initial_scaling;
    enum td_hvpa_axis final_scaling;
    struct td_hvpa_ratio ratio;
    struct td_hvpa_mixed mixed;
    bool has_hpa;
    struct td_hpa hpa;              /* defaulted v2; meta and target are the Hvpa's */
    const struct td_json *hpa_spec; /* the same as a tree: a v2 spec, or NULL */
    bool has_vpa;
    struct td_vpa vpa;              /* mode is always TD_VPA_OFF; meta and target are the Hvpa's */
    const struct td_json *vpa_spec; /* the same as a tree: a v1 spec, or NULL */
    bool has_replicas;
    int32_t replicas; /* .spec.replicas, written through scale */
    struct td_hvpa_scale_policy horizontal_up;
    struct td_hvpa_scale_policy horizontal_down;
    struct td_hvpa_scale_policy vertical_up;
    struct td_hvpa_scale_policy vertical_down;
    int32_t tolerance_percent; /* 0 to 100 */
    int64_t settle_seconds;
    struct td_hvpa_change gap[TD_HVPA_RESOURCE_COUNT]; /* limitsRequestsGapScaleParams */
    enum td_hvpa_actuation actuation;
    struct td_hvpa_window window;
    enum td_hvpa_coupling coupling; /* default: Reconcile in RatioBased, else Reference */
    bool opposing_guard;
    enum td_hvpa_sources sources;
    bool paused;
    enum td_hvpa_on_delete on_delete;
    struct td_hvpa_status status; /* empty when none is stored or it cannot be read */
    const struct td_json *tree;   /* the whole object */
};

/* What decoding found: every fault with its path, and what is accepted but does not do what it
 * seems to (of a warning only field and detail are set). */
struct td_hvpa_findings {
    struct td_field_errors errors;
    bool is_target_mismatch; /* the condition's reason is TargetMismatch, else InvalidSpec */
    struct td_field_errors warnings;
};

/* Decode, default, validate. null counts as absent; unknown fields are ignored. TD_INVALID when
 * anything is wrong: the message is the first fault, beginning with its JSON path (with
 * "TargetMismatch: " before it for a mismatch). `findings` may be NULL; its lists are made in the
 * arena. A status that cannot be read is dropped with a warning: it is our own and is rebuilt. */
int td_hvpa_decode(struct td_arena *arena, const struct td_json *object, struct td_hvpa *ret,
                   struct td_hvpa_findings *findings, struct td_error *err);

/* The reference to the workload as it is stored, of an object that need not be valid: in
 * spec.targetRef, else in hpaSpec, else in vpaSpec, flat or as a whole object; NULL: none. A
 * reference in which everything is empty is how a Go client writes none. *ret_field is its path. */
const struct td_json *td_hvpa_target(const struct td_json *object, td_str *ret_field);

/* The spec inside spec.hpaSpec or spec.vpaSpec, which may be a whole object; NULL: none. */
const struct td_json *td_hvpa_part(const struct td_json *spec, td_str key, bool *ret_is_object);

/* Does the object own a horizontal axis: hpaSpec is there and the target is not a DaemonSet. */
bool td_hvpa_scales_horizontally(const struct td_hvpa *hvpa);

/* Is the UTC time of day of `now` inside the window (hvpa.md 2.9)? An unset window never is. */
bool td_hvpa_window_contains(const struct td_hvpa_window *window, struct td_instant now);

/* status as in 5.3. Decoding is lenient about what is missing; wrong types are TD_INVALID. */
int td_hvpa_status_decode(struct td_arena *arena, const struct td_json *status,
                          struct td_hvpa_status *ret, struct td_error *err);
struct td_json *td_hvpa_status_encode(struct td_arena *arena, const struct td_hvpa_status *status);

/* Texts as they are written: "RatioBased", "horizontal", "cpu", "Reconcile", ... */
td_str td_hvpa_mode_name(enum td_hvpa_mode mode);
td_str td_hvpa_axis_name(enum td_hvpa_axis axis);
td_str td_hvpa_resource_name(enum td_hvpa_resource resource);
td_str td_hvpa_capacity_name(enum td_hvpa_capacity capacity);
td_str td_hvpa_update_name(enum td_hvpa_update update);
td_str td_hvpa_on_delete_name(enum td_hvpa_on_delete on_delete);
td_str td_hvpa_actuation_name(enum td_hvpa_actuation actuation);
td_str td_hvpa_coupling_name(enum td_hvpa_coupling coupling);
td_str td_hvpa_sources_name(enum td_hvpa_sources sources);

const struct td_schema_type *td_hvpa_schema(void);
struct td_json *td_hvpa_crd(struct td_arena *arena);
