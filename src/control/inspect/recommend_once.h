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
#include "base/str.h"
#include "kube/podresources.h"

struct td_glance;
struct td_json;
struct td_recommend_once;
struct td_vpa_status;

/* One container of the pods that one VPA, real or made up, has. */
struct td_right_size {
    td_str namespace;
    td_str api_version; /* of the workload; empty: not known */
    td_str kind;
    td_str workload;
    td_str container;
    td_str by;                      /* "vpa/web", "hvpa/web"; empty: nobody sizes it */
    size_t pods;                    /* running */
    struct td_resource_list now;    /* requests of the newest pod */
    struct td_resource_list limits; /* likewise */
    struct td_resource_list should; /* the target; empty: nothing was measured */
    bool is_pod_level;              /* the pod as a whole asks, the container does not */
    int64_t samples;
    double confidence; /* in confidence intervals of a day */
    int64_t ooms;
};

struct td_right_sizes {
    int code; /* TD_OK, or why there are none */
    struct td_error err;
    const struct td_right_size *items; /* by namespace, workload, who sizes it, container */
    size_t count;
    size_t unowned; /* running pods without a controller, which no VPA can have */
    td_str trouble; /* of metrics and rights, with the next step; empty: none */
};

/* Valid during the call. */
typedef void (*td_right_sizes_fn)(void *context, const struct td_right_sizes *sizes);

/* On a glance that is there; one namespace, or all when it is empty. `fn` is called once, from the
 * loop, unless it is freed before. */
struct td_recommend_once *td_recommend_once_start(struct td_glance *glance, td_str namespace,
                                                  td_right_sizes_fn fn, void *context);
void td_recommend_once_free(struct td_recommend_once *once); /* not from inside `fn` */

/* ---- recommend_table.c ---- */

/* What the status says of the row's container. */
void td_right_size_fill(struct td_right_size *row, const struct td_vpa_status *status);
void td_right_sizes_sort(struct td_right_size *items, size_t count);

/* For people; ends with the totals. Check out at the end. */
void td_right_sizes_write(const struct td_right_sizes *sizes, struct td_buf *out);
struct td_json *td_right_sizes_json(struct td_arena *arena, const struct td_right_sizes *sizes);
/* An array of partial workloads, one for each that would change and that nobody sizes, with the
 * requests that its containers should have (and limits, where they would be too small): for
 * `kubectl apply --server-side`. */
struct td_json *td_right_sizes_patches(struct td_arena *arena, const struct td_right_sizes *sizes);
