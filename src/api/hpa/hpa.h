/*
 * HorizontalPodAutoscaler, autoscaling/v1 and v2 and our own autoscaling.tandem.dev/v2 (the same
 * schema with spec.selectionStrategy as a real field). Objects are JSON trees on the wire:
 * defaulting, conversion and validation work on the tree, so that unknown fields survive; deciders
 * read the compact struct that td_hpa_decode makes from a defaulted v2 tree. Decoded texts are
 * slices of the tree, arrays are in the arena. Everything is pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/fielderror.h"
#include "kube/meta.h"
#include "kube/schema/schema.h"
#include "kube/selector/selector.h"

struct td_error;

/* The metric sources, in the order in which upstream looks for them in a metric: of several, only
 * the first is looked into. How to add one: hpa_source.h. */
#define TD_HPA_SOURCES(ROW)                                                                        \
    ROW(OBJECT, object)                                                                            \
    ROW(EXTERNAL, external)                                                                        \
    ROW(PODS, pods)                                                                                \
    ROW(RESOURCE, resource)                                                                        \
    ROW(CONTAINER_RESOURCE, container_resource)

enum td_hpa_metric_type { /* TD_HPA_OBJECT, TD_HPA_EXTERNAL, ... */
#define ROW(name, row) TD_HPA_##name,
                          TD_HPA_SOURCES(ROW)
#undef ROW
                              TD_HPA_METRIC_UNKNOWN, /* type_text says which */
};

enum td_hpa_target_type {
    TD_HPA_UTILIZATION,
    TD_HPA_VALUE,
    TD_HPA_AVERAGE_VALUE,
    TD_HPA_TARGET_UNKNOWN
};

struct td_hpa_target {
    enum td_hpa_target_type type;
    bool has_value;
    bool has_average_value;
    bool has_average_utilization;
    int64_t value_milli;         /* saturated */
    int64_t average_value_milli; /* saturated */
    int32_t average_utilization; /* percent */
};

/* CrossVersionObjectReference: scaleTargetRef, describedObject. */
struct td_object_reference {
    td_str api_version;
    td_str kind;
    td_str name;
};

struct td_hpa_metric {
    enum td_hpa_metric_type type;
    td_str type_text;
    td_str name;                           /* of the resource or the metric */
    td_str container;                      /* ContainerResource */
    struct td_object_reference described;  /* Object */
    const struct td_json *metric_selector; /* LabelSelector as written, or NULL */
    struct td_hpa_target target;
};

enum td_hpa_policy_type { TD_HPA_POLICY_PODS, TD_HPA_POLICY_PERCENT };
enum td_hpa_select_policy { TD_HPA_SELECT_MAX, TD_HPA_SELECT_MIN, TD_HPA_SELECT_DISABLED };

struct td_hpa_policy {
    enum td_hpa_policy_type type;
    int32_t value;
    int32_t period_seconds;
};

struct td_hpa_rules {
    bool has_window;
    int32_t window_seconds;
    enum td_hpa_select_policy select;
    const struct td_hpa_policy *policies;
    size_t policy_count;
    bool has_tolerance;
    double tolerance; /* as upstream converts it: canonical mantissa times a power of ten */
};

struct td_hpa {
    struct td_meta meta;
    struct td_object_reference target; /* scaleTargetRef */
    bool has_min_replicas;
    int32_t min_replicas; /* 1 when unset */
    int32_t max_replicas;
    const struct td_hpa_metric *metrics;
    size_t metric_count;
    bool has_behavior;
    struct td_hpa_rules scale_up;
    struct td_hpa_rules scale_down;
    bool has_selection_strategy;
    td_str selection_strategy;    /* as written in spec, when present */
    const struct td_json *status; /* stored status, or NULL */
};

struct td_hpa_gates {
    bool scale_to_zero;          /* HPAScaleToZero */
    bool selection_strategy;     /* HPASelectionStrategy */
    bool configurable_tolerance; /* HPAConfigurableTolerance; admission does not ask */
};

/* Can the tree be decoded as its kind at all (types of every field)? The message has the JSON path
 * and the value. */
int td_hpa_check_types(const struct td_json *object, struct td_error *err);

/* The cpu utilization of a spec's metrics, or of a status'. */
struct td_json *td_hpa_new_cpu_metric(struct td_arena *arena, bool is_status, int64_t percent);

/* Defaulting of the object's own version, in place, idempotent. The tree also takes the form in
 * which a server writes it: no nulls, required members there, quantities and times canonical.
 * TD_INVALID when it does not decode. */
int td_hpa_default(struct td_arena *arena, struct td_json *object, struct td_error *err);

/* The object as a client of `to_api_version` sees it ("autoscaling/v1", "autoscaling/v2"): a new
 * tree. The input is defaulted in its own version first, as a server does on decode. */
int td_hpa_convert(struct td_arena *arena, const struct td_json *object, td_str to_api_version,
                   struct td_json **ret, struct td_error *err);

enum td_hpa_operation { TD_HPA_CREATE, TD_HPA_UPDATE, TD_HPA_STATUS_UPDATE };

struct td_hpa_admission {
    enum td_hpa_operation operation;
    const struct td_json *object; /* as sent, v1 or v2 */
    const struct td_json *old;    /* stored; NULL on create */
    struct td_hpa_gates gates;
};

/* Decode, default, prepare (clear or keep status, drop gated fields), validate: what a server does
 * with a write. Errors are sorted by field, type, detail; accepted when there are none, and
 * *ret_stored (may be NULL) is what to store, in v2. Returns TD_INVALID when it does not even
 * decode. */
int td_hpa_admit(struct td_arena *arena, const struct td_hpa_admission *admission,
                 struct td_field_errors *errors, struct td_json **ret_stored, struct td_error *err);

/* From a defaulted v2 tree. */
int td_hpa_decode(struct td_arena *arena, const struct td_json *object, struct td_hpa *ret,
                  struct td_error *err);

/* Does the apiVersion of a reference parse, and has it a group (when one is needed)? NULL, or what
 * is wrong. */
const char *td_hpa_version_problem(struct td_arena *arena, td_str api_version, bool allows_core);

/* The schema of our own kind: v2 with selectionStrategy; and its CRD as a tree (structural schema,
 * scale-free, status subresource, printer columns as kubectl shows HPAs). */
const struct td_schema_type *td_hpa_schema(void);
/* The built-in kind, autoscaling/v2, as a server with the proposal's field publishes it. */
const struct td_schema_type *td_hpa_served_schema(void);
/* spec.SelectionStrategy, as the proposal's text writes it, becomes spec.selectionStrategy. No
 * object is stored with the capital, so the one that has it was just written, and wins. In place;
 * any tree is taken. */
void td_hpa_rename_strategy(struct td_arena *arena, struct td_json *object);
struct td_json *td_hpa_crd(struct td_arena *arena);

/* The rules that the CRD states in CEL, about an object that its schema accepts: an object that is
 * missing as a whole is told by the fields that the built-in kind names. */
void td_hpa_check_rules(const struct td_json *object, struct td_field_errors *errors);
