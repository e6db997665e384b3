/*
 * Metric sources: what an HPA can scale on. A source is a row of TD_HPA_SOURCES (hpa.h) and three
 * constants, one a room: what it looks like is a struct td_hpa_source in this folder, how many
 * replicas its values ask for a struct td_hpa_judge (decide/horizontal/judge.h), which API has the
 * values a struct horizontal_source (control/horizontal). What sources share is done once, by who
 * walks the rows; nothing else tells them apart.
 */
#pragma once

#include "api/hpa/hpa.h"

struct td_hpa_rules_in_force;

#define TD_HPA_V1_PLACES_MAX 5

/* Quantities that v1 cannot leave out, and so writes as "0". */
enum td_hpa_v1_zero { TD_HPA_V1_OPTIONAL, TD_HPA_V1_ZERO_IN_STATUS, TD_HPA_V1_ZERO };

/* Where a value stands in v1 and in v2. */
struct td_hpa_v1_place {
    td_str spec;   /* v1's name of it in a spec */
    td_str status; /* and in a status */
    td_str outer;  /* v2: the object it is in ("target" is "current" in a status); empty: none */
    td_str inner;
    enum td_hpa_v1_zero zero;
};

/* Of two ways to say how much, exactly one: which is missing, and which is too much. */
struct td_hpa_target_choice {
    enum td_hpa_target_type first; /* the one that counts when v1 has both */
    enum td_hpa_target_type second;
    enum td_hpa_target_type missing; /* the one that is named when neither is there */
    enum td_hpa_target_type surplus;
    const char *missing_detail;
    const char *surplus_detail; /* NULL: both may be there */
};

struct td_hpa_source {
    td_str type;      /* of the metric: "ContainerResource" */
    td_str member;    /* that holds it: "containerResource" */
    bool is_resource; /* its name is that of a resource, which has a unit and requests */
    bool is_of_pods;  /* it has no value without pods, so it cannot scale up from zero */
    /* Of a source that autoscaling/v2 does not have; NULL: it has. */
    const struct td_schema_type *spec_type;
    const struct td_schema_type *status_type;
    /* All but the target, which is the same for all. */
    void (*decode)(const struct td_json *source, struct td_hpa_metric *ret);
    void (*validate)(struct td_field_errors *errors, const struct td_field_path *path,
                     const struct td_json *source, const struct td_hpa_rules_in_force *rules);
    struct td_hpa_target_choice choice;
    struct td_hpa_v1_place places[TD_HPA_V1_PLACES_MAX]; /* v1's order; ends at an empty name */
};

#define PLACE(spec_name, status_name, outer_name, inner_name, zero_kind)                           \
    {                                                                                              \
        .spec = TD_STR_INIT(spec_name), .status = TD_STR_INIT(status_name),                        \
        .outer = TD_STR_INIT(outer_name), .inner = TD_STR_INIT(inner_name), .zero = (zero_kind)    \
    }

#define ROW(name, row) extern const struct td_hpa_source td_hpa_source_##row;
TD_HPA_SOURCES(ROW)
#undef ROW

/* By type. */
extern const struct td_hpa_source *const td_hpa_sources[TD_HPA_METRIC_UNKNOWN];

void td_hpa_source_types(td_str ret[TD_HPA_METRIC_UNKNOWN]); /* sorted */

static inline bool td_hpa_metric_is_resource(const struct td_hpa_metric *metric)
{
    return metric->type < TD_HPA_METRIC_UNKNOWN && td_hpa_sources[metric->type]->is_resource;
}

static inline bool td_hpa_metric_is_of_pods(const struct td_hpa_metric *metric)
{
    return metric->type == TD_HPA_METRIC_UNKNOWN || td_hpa_sources[metric->type]->is_of_pods;
}

/* ---- What sources decode and validate with ---- */

/* The type of a spec's metrics, or of a status': that of autoscaling/v2, with the sources that it
 * does not have. */
const struct td_schema_type *td_hpa_metric_schema(bool is_status);

struct td_object_reference td_hpa_decode_reference(const struct td_json *reference);

/* A text that becomes part of a URL path. */
void td_hpa_validate_segment(struct td_field_errors *errors, const struct td_field_path *parent,
                             td_str member, const struct td_json *object,
                             const char *missing_detail);
void td_hpa_validate_reference(struct td_field_errors *errors, const struct td_field_path *path,
                               const struct td_json *reference, bool allows_any_version,
                               bool allows_core);
