/*
 * A whole local cluster in this process: storage, API handler, HTTPS server, its own controllers.
 * Made, it serves as soon as the loop runs. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "base/str.h"

struct td_api;
struct td_cluster;
struct td_demand;
struct td_engine;
struct td_error;
struct td_faults;
struct td_log;
struct td_loop;
struct td_measure;
struct td_node_size;

struct td_cluster_options {
    struct td_loop *loop;
    struct td_log *log;   /* may be NULL */
    td_str name;          /* of the cluster, user and context in its kubeconfig */
    const char *listen;   /* "127.0.0.1:6443"; NULL: for this process only */
    const char *data_dir; /* durable; NULL: in memory */
    uint64_t seed;
    const struct td_node_size *nodes; /* of our own; none: pods are others' business */
    size_t node_size_count;
    const struct td_demand *demands; /* borrowed, as the three below */
    size_t demand_count;
    const struct td_measure *measures;
    size_t measure_count;
    td_duration metrics_every; /* 0: as local/engine/engine.h says */
    td_duration metrics_lag;
    struct td_faults *faults; /* NULL: nothing ever breaks */
    bool has_no_strategy;     /* the gate HPASelectionStrategy is off */
};

int td_cluster_new(const struct td_cluster_options *options, struct td_cluster **ret,
                   struct td_error *err);
void td_cluster_free(struct td_cluster *cluster); /* NULL is accepted */

/* "https://127.0.0.1:6443" */
td_str td_cluster_url(const struct td_cluster *cluster);
int td_cluster_write_kubeconfig(const struct td_cluster *cluster, const char *path,
                                struct td_error *err);

struct td_api *td_cluster_api(struct td_cluster *cluster);
struct td_engine *td_cluster_engine(struct td_cluster *cluster);

/* A node of ours falls silent, with everything on it, or comes back. TD_NOT_FOUND. */
int td_cluster_lose_node(struct td_cluster *cluster, td_str node, bool is_lost,
                         struct td_error *err);
