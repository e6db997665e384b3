/*
 * Shared by the files of the Table form only. A kind is a list of columns,
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

typedef struct td_json *td_table_cell(struct td_table_row *row,
                                      const struct td_table_column *column);

struct td_table_column {
    const char *name;
    const char *type;
    int priority; /* 1: only with -o wide */
    td_table_cell *cell;
    const char *path;     /* dotted, for the general functions */
    const char *fallback; /* shown when there is nothing at the path */
};

#define TD_TABLE_COLUMNS_MAX 11

struct td_table_kind {
    const char *collection;                               /* "pods", "deployments.apps" */
    struct td_table_column columns[TD_TABLE_COLUMNS_MAX]; /* up to the first without a name */
};

extern const struct td_table_kind td_table_kinds[];
extern const size_t td_table_kind_count;

/* ---- table.c: the general cells ---- */

td_table_cell td_cell_name, td_cell_age;
/* The creation time itself. */
td_table_cell td_cell_created;
/* A string at the path, or the fallback when it is absent or empty. */
td_table_cell td_cell_text;
/* A number at the path, or 0. */
td_table_cell td_cell_number;
td_table_cell td_cell_bool;
/* How many items or members there are. */
td_table_cell td_cell_count;
/* "ready/wanted"; the path of what is wanted is the fallback. */
td_table_cell td_cell_ready;
/* A number or a text, of an IntOrString. */
td_table_cell td_cell_scalar;
/* A map of labels: "a=1,b=2". */
td_table_cell td_cell_labels;
/* A LabelSelector. */
td_table_cell td_cell_selector;
/* "True" or "False". */
td_table_cell td_cell_bool_text;
/* Kind and name of the object that is referred to: "Deployment/web". */
td_table_cell td_cell_reference;
/* The names or images of the containers at the path: "a,b". */
td_table_cell td_cell_containers;
td_table_cell td_cell_images;

td_str td_table_text(const struct td_json *object, const char *path, td_str fallback);
int64_t td_table_number(const struct td_json *object, const char *path);
struct td_json *td_table_string(const struct td_table_row *row, td_str text);
/* What was gathered, as a cell. */
struct td_json *td_table_buffer(const struct td_table_row *row, const struct td_buf *text);
/* Appends with a separator in front, unless it is the first. */
void td_table_join(struct td_buf *out, td_str separator, td_str text);
/* Texts in byte order, each once, with commas between. */
void td_table_join_sorted(struct td_buf *out, td_str *texts, size_t count);
td_str td_table_lower(struct td_arena *arena, td_str text);
/* A quantity as Go writes it; "0" for one that is absent. */
td_str td_table_quantity(const struct td_table_row *row, const struct td_json *node);
/* The status of the condition of this type, or empty. */
td_str td_table_condition(const struct td_json *conditions, td_str type);
/* A span as kubectl shows it; both instants are known. */
td_str td_table_span(struct td_arena *arena, struct td_instant from, struct td_instant to);

/* ---- table_pod.c ---- */

td_table_cell td_cell_pod_ready, td_cell_pod_status, td_cell_pod_restarts, td_cell_pod_ip,
    td_cell_pod_gates;

/* ---- table_workload.c ---- */

td_table_cell td_cell_deployment_selector, td_cell_job_status, td_cell_job_completions,
    td_cell_job_duration, td_cell_since, td_cell_hpa_targets, td_cell_revision_owner;

/* ---- table_cluster.c: nodes, events, volumes, quotas, access ---- */

td_table_cell td_cell_node_status, td_cell_node_roles;
/* The first address of the type that is the path. */
td_table_cell td_cell_node_address;
td_table_cell td_cell_node_kernel, td_cell_event_last, td_cell_event_first, td_cell_event_object,
    td_cell_event_source, td_cell_event_message, td_cell_event_count, td_cell_config_count;
/* Requests, or with "limits" for a path, limits of a quota. */
td_table_cell td_cell_quota;
/* The subjects of the kind that is the path. */
td_table_cell td_cell_subjects;
td_table_cell td_cell_param_kind, td_cell_param_ref;

/* ---- table_network.c: services, endpoints, ingresses, storage ---- */

td_table_cell td_cell_cluster_ip, td_cell_external_ip, td_cell_service_ports, td_cell_endpoints,
    td_cell_slice_ports, td_cell_slice_endpoints, td_cell_hosts, td_cell_ingress_address,
    td_cell_ingress_ports, td_cell_class_parameters;
/* The name, marked when the annotation that is the path says that it is the default. */
td_table_cell td_cell_class_name;
td_table_cell td_cell_capacity, td_cell_claim_capacity, td_cell_access_modes, td_cell_claim_modes,
    td_cell_volume_phase, td_cell_volume_claim, td_cell_volume_class;

/* ---- table_custom.c ---- */

struct td_json *td_table_custom_columns(struct td_arena *arena, const struct td_json *columns);
struct td_json *td_table_custom_cells(struct td_table_row *row, const struct td_json *columns);
