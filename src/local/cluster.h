/*
 * A whole local cluster in this process: storage, API handler, HTTPS server, its own controllers.
 * Made, it serves as soon as the loop runs. One thread, the loop's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct td_api;
struct td_cluster;
struct td_error;
struct td_log;
struct td_loop;
struct td_transport;

struct td_cluster_options {
    struct td_loop *loop;
    struct td_log *log;   /* may be NULL */
    td_str name;          /* of the cluster, user and context in its kubeconfig */
    const char *listen;   /* "127.0.0.1:6443" */
    const char *data_dir; /* durable; NULL: in memory */
    uint64_t seed;
    size_t node_count; /* nodes of our own; 0: none, and pods are others' business */
};

int td_cluster_new(const struct td_cluster_options *options, struct td_cluster **ret,
                   struct td_error *err);
void td_cluster_free(struct td_cluster *cluster); /* NULL is accepted */

/* "https://127.0.0.1:6443" */
td_str td_cluster_url(const struct td_cluster *cluster);
int td_cluster_write_kubeconfig(const struct td_cluster *cluster, const char *path,
                                struct td_error *err);

struct td_api *td_cluster_api(struct td_cluster *cluster);
