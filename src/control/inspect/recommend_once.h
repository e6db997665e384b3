/*
 * Right sizes of a whole cluster at once, with nothing installed: what the recommender would say of
 * every container, from checkpoints where VPAs have taught it and from present metrics where there
 * is no VPA. A workload without one is given a made-up VPA in the model of this process; nothing is
 * written. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "kube/podresources.h"

struct td_snapshot;
struct td_json;
struct td_recommend_once;
struct td_vpa_status;

/* What is too little to judge by, and what is too small to ask for. */
struct td_right_limits {
    int64_t samples_min;     /* this many samples, or */
    td_duration history_min; /* this long between the first and the last, are enough */
    int64_t cpu_min_milli;   /* of a container that no VPA sizes; those have their own floors */
    int64_t memory_min_bytes;
};

/* 100 samples or 6 hours, 10m and 64Mi. */
struct td_right_limits td_right_limits_default(void);

enum td_right_resource { TD_RIGHT_CPU, TD_RIGHT_MEMORY, TD_RIGHT_COUNT };

/* One container of the pods that one VPA, real or made up, has. */
struct td_right_size {
    td_str namespace;
    td_str api_version; /* of the workload; empty: not known */
    td_str kind;
    td_str workload;
    td_str container;
    td_str by;                      /* "vpa/web", "hvpa/web"; empty: no autoscaler sizes it */
    size_t pods;                    /* running */
    struct td_resource_list now;    /* requests of the newest pod */
    struct td_resource_list limits; /* likewise */
    struct td_resource_list should; /* the target; empty: there is not enough data */
    bool is_floor[TD_RIGHT_COUNT];  /* the target is a floor: use is below it */
    bool is_kept[TD_RIGHT_COUNT];   /* ... and the request lies between the two, and may stay */
    bool is_pod_level;              /* the pod as a whole asks, the container does not */
    int64_t samples;
    td_duration history; /* between the first sample and the last */
    double confidence;   /* in confidence intervals of a day */
    int64_t ooms;
};

struct td_right_sizes {
    int code; /* TD_OK, or why there are none */
    struct td_error err;
    const struct td_right_size *items; /* by namespace, workload, who sizes it, container */
    size_t count;
    td_str window;  /* "14d of Prometheus", where the data is from */
    size_t unowned; /* running pods without a controller, which no VPA can have */
    td_str problem; /* of metrics and rights, with the next step; empty: none */
};

/* Valid during the call. */
typedef void (*td_right_sizes_fn)(void *context, const struct td_right_sizes *sizes);

/* On a snapshot that is there; one namespace, which must exist, or all when it is empty. `fn` is
 * called once, from the loop, unless it is freed before. */
struct td_recommend_once *td_recommend_once_start(struct td_snapshot *snapshot, td_str namespace,
                                                  const struct td_right_limits *limits,
                                                  td_right_sizes_fn fn, void *context);
void td_recommend_once_free(struct td_recommend_once *once); /* not from inside `fn` */

/* ---- recommend_table.c ---- */

/* What the status says of the row's container. */
void td_right_size_fill(struct td_arena *arena, struct td_right_size *row,
                        const struct td_vpa_status *status, const struct td_right_limits *limits);
/* Milli-cores or bytes; false: the list has none. */
bool td_right_amount(const struct td_resource_list *list, enum td_right_resource resource,
                     int64_t *ret);
extern const td_str td_right_names[TD_RIGHT_COUNT]; /* "cpu", "memory" */
void td_right_sizes_sort(struct td_right_size *items, size_t count);

/* As text, a tab between two cells (base/os/table.h lays them out); ends with the totals. Check out
 * at the end. */
void td_right_sizes_write(const struct td_right_sizes *sizes, struct td_buf *out);
/* Requests of all pods that there is a recommendation for, now and as they should be. A floor is
 * nothing that a pod wants, so floors have a sum of their own. */
struct td_right_sum {
    double before;
    double after;
    double floors;
};
struct td_right_sum td_right_sizes_sum(const struct td_right_sizes *sizes,
                                       enum td_right_resource resource);
struct td_json *td_right_sizes_json(struct td_arena *arena, const struct td_right_sizes *sizes);
/* Containers of too little data, for which nothing is recommended. */
size_t td_right_sizes_left_out(const struct td_right_sizes *sizes);
/* RFC 4180 with a header, in milli-cores, bytes and seconds. */
void td_right_sizes_csv(const struct td_right_sizes *sizes, struct td_buf *out);

/* ---- recommend_yaml.c ---- */

/* Is it for a manifest: its workload is known and may change, no autoscaler sizes it, and there is
 * a recommendation? */
bool td_right_size_is_for_manifest(const struct td_right_size *row);
/* The request to write: whole milli-cores, or memory rounded up to a Mi; false: it is left as it
 * is. */
bool td_right_size_request(const struct td_right_size *row, enum td_right_resource resource,
                           struct td_quantity *ret);
/* Partial workloads, one for each that a manifest is for, with the requests that its containers
 * should have (and limits, where they would be too small): for `kubectl apply --server-side`.
 * Comments say from how much data. */
void td_right_sizes_yaml(const struct td_right_sizes *sizes, struct td_buf *out);
