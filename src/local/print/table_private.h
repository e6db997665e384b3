/*
 * What the files of the Table form share; nobody else includes this. A kind is a list of columns,
 * and a column knows how its cell is made: by one of the general functions of table.c with a path
 * into the object, or by a function of its own. Objects are in the storage version.
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "local/print/table.h"

struct td_table_pod;
struct td_table_column;

/* The row being made. */
struct td_table_row {
    struct td_arena *arena;
    const struct td_json *object;
    struct td_instant now;
    struct td_table_pod *pod; /* what several cells of a pod need; made by the first of them */
};

typedef struct td_json *(*td_table_cell_fn)(struct td_table_row *row,
                                            const struct td_table_column *column);

struct td_table_column {
    const char *name;
    const char *type;
    int priority; /* 1: only with -o wide */
    td_table_cell_fn cell;
    const char *path;     /* dotted, for the general functions */
    const char *fallback; /* shown when there is nothing at the path */
};

struct td_table_kind {
    td_str group;
    td_str kind;
    const struct td_table_column *columns;
    size_t column_count;
};

extern const struct td_table_kind td_table_kinds[];
extern const size_t td_table_kind_count;

/* ---- table.c: the general cells ---- */

struct td_json *td_cell_name(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_age(struct td_table_row *row, const struct td_table_column *column);
/* The creation time itself. */
struct td_json *td_cell_created(struct td_table_row *row, const struct td_table_column *column);
/* A string at the path, or the fallback when it is absent or empty. */
struct td_json *td_cell_text(struct td_table_row *row, const struct td_table_column *column);
/* A number at the path, or 0. */
struct td_json *td_cell_number(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_bool(struct td_table_row *row, const struct td_table_column *column);
/* How many items or members there are. */
struct td_json *td_cell_count(struct td_table_row *row, const struct td_table_column *column);
/* "ready/wanted"; the path of what is wanted is the fallback. */
struct td_json *td_cell_ready(struct td_table_row *row, const struct td_table_column *column);
/* A number or a text, of an IntOrString. */
struct td_json *td_cell_scalar(struct td_table_row *row, const struct td_table_column *column);
/* A map of labels: "a=1,b=2". */
struct td_json *td_cell_labels(struct td_table_row *row, const struct td_table_column *column);
/* A LabelSelector. */
struct td_json *td_cell_selector(struct td_table_row *row, const struct td_table_column *column);
/* "True" or "False". */
struct td_json *td_cell_bool_text(struct td_table_row *row, const struct td_table_column *column);
/* The names or images of the containers at the path: "a,b". */
struct td_json *td_cell_containers(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_images(struct td_table_row *row, const struct td_table_column *column);

td_str td_table_text(const struct td_json *object, const char *path, td_str fallback);
int64_t td_table_number(const struct td_json *object, const char *path);
struct td_json *td_table_string(const struct td_table_row *row, td_str text);
/* What was gathered, as a cell. */
struct td_json *td_table_buffer(const struct td_table_row *row, const struct td_buf *text);
/* Appends with a separator in front, unless it is the first. */
void td_table_join(struct td_buf *out, td_str separator, td_str text);
/* A quantity as Go writes it; "0" for one that is absent. */
td_str td_table_quantity(const struct td_table_row *row, const struct td_json *node);
/* The status of the condition of this type, or empty. */
td_str td_table_condition(const struct td_json *conditions, td_str type);
/* A span as kubectl shows it; both instants are known. */
td_str td_table_span(struct td_arena *arena, struct td_instant from, struct td_instant to);

/* ---- table_pod.c ---- */

struct td_json *td_cell_pod_ready(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_pod_status(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_pod_restarts(struct td_table_row *row,
                                     const struct td_table_column *column);
struct td_json *td_cell_pod_ip(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_pod_gates(struct td_table_row *row, const struct td_table_column *column);

/* ---- table_workload.c ---- */

struct td_json *td_cell_deployment_selector(struct td_table_row *row,
                                            const struct td_table_column *column);
struct td_json *td_cell_job_status(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_job_completions(struct td_table_row *row,
                                        const struct td_table_column *column);
struct td_json *td_cell_job_duration(struct td_table_row *row,
                                     const struct td_table_column *column);
struct td_json *td_cell_since(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_hpa_reference(struct td_table_row *row,
                                      const struct td_table_column *column);
struct td_json *td_cell_hpa_targets(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_revision_owner(struct td_table_row *row,
                                       const struct td_table_column *column);

/* ---- table_cluster.c: nodes, events, volumes, quotas, access ---- */

struct td_json *td_cell_node_status(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_node_roles(struct td_table_row *row, const struct td_table_column *column);
/* The first address of the type that is the path. */
struct td_json *td_cell_node_address(struct td_table_row *row,
                                     const struct td_table_column *column);
struct td_json *td_cell_node_kernel(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_event_last(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_event_first(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_event_object(struct td_table_row *row,
                                     const struct td_table_column *column);
struct td_json *td_cell_event_source(struct td_table_row *row,
                                     const struct td_table_column *column);
struct td_json *td_cell_event_message(struct td_table_row *row,
                                      const struct td_table_column *column);
struct td_json *td_cell_event_count(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_config_count(struct td_table_row *row,
                                     const struct td_table_column *column);
/* Requests, or with "limits" for a path, limits of a quota. */
struct td_json *td_cell_quota(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_role(struct td_table_row *row, const struct td_table_column *column);
/* The subjects of the kind that is the path. */
struct td_json *td_cell_subjects(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_param_kind(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_param_ref(struct td_table_row *row, const struct td_table_column *column);

/* ---- table_network.c: services, endpoints, ingresses, storage ---- */

struct td_json *td_cell_cluster_ip(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_external_ip(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_service_ports(struct td_table_row *row,
                                      const struct td_table_column *column);
struct td_json *td_cell_endpoints(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_slice_ports(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_slice_endpoints(struct td_table_row *row,
                                        const struct td_table_column *column);
struct td_json *td_cell_hosts(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_ingress_address(struct td_table_row *row,
                                        const struct td_table_column *column);
struct td_json *td_cell_ingress_ports(struct td_table_row *row,
                                      const struct td_table_column *column);
struct td_json *td_cell_class_parameters(struct td_table_row *row,
                                         const struct td_table_column *column);
/* The name, marked when the annotation that is the path says that it is the default. */
struct td_json *td_cell_class_name(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_capacity(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_claim_capacity(struct td_table_row *row,
                                       const struct td_table_column *column);
struct td_json *td_cell_access_modes(struct td_table_row *row,
                                     const struct td_table_column *column);
struct td_json *td_cell_claim_modes(struct td_table_row *row, const struct td_table_column *column);
struct td_json *td_cell_volume_phase(struct td_table_row *row,
                                     const struct td_table_column *column);
struct td_json *td_cell_volume_claim(struct td_table_row *row,
                                     const struct td_table_column *column);
struct td_json *td_cell_volume_class(struct td_table_row *row,
                                     const struct td_table_column *column);

/* ---- table_custom.c ---- */

struct td_json *td_table_custom_columns(struct td_arena *arena, const struct td_json *columns);
struct td_json *td_table_custom_cells(struct td_table_row *row, const struct td_json *columns);
