/*
 * The cluster as the page shows it: pods grouped into rows (one workload, or the part of it that
 * one autoscaler has), what they ask for and use, and what their autoscalers want. It reads what
 * any client reads: informers and metrics.k8s.io; in a local cluster straight through its API. It
 * keeps a few numbers of each pod and object, and a bounded history of each row. Nothing is
 * written. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "base/vec.h"
#include "control/informers/informers.h"
#include "kube/selector/selector.h"
#include "web/rings.h"

struct td_client;
struct td_client_flow;
struct td_loop;
struct td_metrics_call;
struct td_metrics_client;
struct td_timer;
struct td_transport;

enum td_model_resource { TD_MODEL_CPU, TD_MODEL_MEMORY, TD_MODEL_RESOURCES };

#define TD_MODEL_ROWS_MAX ((size_t)50000)
#define TD_MODEL_MARKS_MAX 8192 /* of all rows together; the oldest go */
#define TD_MODEL_TEXT_MAX 300   /* bytes of a mark's text */
#define TD_MODEL_ACCOUNTS_MAX 256
#define TD_MODEL_ACCOUNT_BYTES_MAX 4000

struct td_model_row;

struct td_model_pod {
    td_str key; /* namespace and name; owned, behind the structure, as the two below */
    td_str ns;
    td_str name;
    td_str node; /* owned, as the three below */
    td_str top_kind;
    td_str top_name;
    td_str top_api;
    bool is_resolved; /* its topmost controller is known */
    int tries;        /* to find it */
    bool is_over;
    bool is_ready;
    bool is_pending;
    bool is_pod_level;
    double request[TD_MODEL_RESOURCES]; /* millicores and bytes; 0: none */
    double limit[TD_MODEL_RESOURCES];
    double use[TD_MODEL_RESOURCES];      /* below 0: not measured */
    double use_next[TD_MODEL_RESOURCES]; /* of the list that is arriving; below 0: not in it */
    int64_t restarts;
    int64_t created; /* unix seconds */
    td_time oom_at;  /* TD_TIME_NONE: never */
    uint64_t oom_count;
    uint64_t oom_told; /* of them marked */
    struct td_model_row *row;
    struct td_model_pod *next; /* of the row, as of the last look */
};

enum td_model_scaler_kind { TD_MODEL_HVPA, TD_MODEL_HPA, TD_MODEL_VPA, TD_MODEL_SCALER_KINDS };

struct td_model_container {
    td_str name;
    double target[TD_MODEL_RESOURCES]; /* below 0: none */
    double lower[TD_MODEL_RESOURCES];
    double upper[TD_MODEL_RESOURCES];
};

struct td_model_condition {
    td_str type;
    td_str text;
};

/* A VPA, HPA or Hvpa. */
struct td_model_scaler {
    td_str key; /* kind, namespace and name; owned, behind the structure, as the two below */
    td_str ns;
    td_str name;
    enum td_model_scaler_kind kind;
    struct td_arena arena; /* of all below */
    td_str api_version;
    td_str target_kind;
    td_str target_name;
    td_str mode;
    bool has_selector;
    struct td_selector selector;
    int64_t replicas_min; /* below 0: not said, as the three below */
    int64_t replicas_max;
    int64_t wanted;
    int64_t utilization;              /* target of cpu, percent */
    double ratio;                     /* of an Hvpa; below 0: none */
    td_str estimator;                 /* its annotation; empty: the recommender's */
    double least[TD_MODEL_RESOURCES]; /* allowed, by the one policy there is; below 0: not said */
    double most[TD_MODEL_RESOURCES];
    struct td_model_container *containers;
    size_t container_count;
    struct td_model_condition *problems;
    size_t problem_count;
    struct td_model_scaler *next; /* of the target */
};

struct td_model_row {
    td_str key; /* namespace, kind, name and who scales it; owned, behind the structure */
    td_str ns;
    td_str kind;
    td_str name;
    td_str by;  /* "vpa/db-leader", "hpa/api"; empty: no autoscaler */
    td_str api; /* of the workload, "apps/v1"; owned */
    const struct td_model_scaler *scalers[TD_MODEL_SCALER_KINDS]; /* of the last look */
    struct td_model_pod *pods;
    size_t pod_count;
    size_t ready_count;
    size_t pending_count;
    size_t measured_count;
    int64_t replicas; /* wished by the workload, of a part of it: the pods there are */
    int64_t wished;   /* by its object; below 0: not said */
    bool has_object;
    uint64_t object_version; /* of which `wished` was read */
    bool is_pod_level;
    bool is_part;                       /* one of several of its workload */
    bool is_there;                      /* it has pods, or its object is there */
    double request[TD_MODEL_RESOURCES]; /* of all pods */
    double limit[TD_MODEL_RESOURCES];
    double use[TD_MODEL_RESOURCES];
    double target[TD_MODEL_RESOURCES]; /* of one pod; below 0: none */
    double lower[TD_MODEL_RESOURCES];
    double upper[TD_MODEL_RESOURCES];
    double throttled; /* share; below 0: not known */
    double latency;   /* seconds; below 0: none */
    uint64_t oom_count;
    uint64_t gone_oom_count; /* of pods that are gone */
    td_time decided_at;      /* TD_TIME_NONE: never */
    td_str decision;         /* owned */
    struct td_ring *ring;    /* NULL: nothing yet */
    td_time seen;            /* when it was last there */
};

/* Something that happened to a row. */
struct td_model_mark {
    td_str row;  /* its key; owned, as the two below */
    td_str kind; /* "resize", "scale", "evict", "oom", "event" */
    td_str text;
    td_time at;
};

/* What an autoscaler said of itself soon after something happened to its row. */
struct td_model_account {
    td_str row; /* its key; owned, as the one below */
    td_str text;
    td_time at;
};

/* Of the whole cluster, a point a minute. */
struct td_model_point {
    int64_t minute;
    double request[TD_MODEL_RESOURCES];
    double use[TD_MODEL_RESOURCES];
    double room[TD_MODEL_RESOURCES]; /* allocatable */
    uint32_t pods;
};

enum td_model_happened {
    TD_HAPPENED_OOM,
    TD_HAPPENED_EVICTION,
    TD_HAPPENED_RESIZE,
    TD_HAPPENED_SCALING, /* a change of a workload's wished replicas */
    TD_HAPPENED_COUNT,
};

#define TD_MODEL_HOURS 24

/* One hour of the whole cluster; sums over its minutes. */
struct td_model_hour {
    int64_t hour; /* since the epoch */
    uint32_t happened[TD_HAPPENED_COUNT];
    double asked[TD_MODEL_RESOURCES]; /* of pods whose use is known */
    double slack[TD_MODEL_RESOURCES]; /* of it not used */
    double pods[TD_MODEL_RESOURCES];  /* whose request and use are known */
    double over[TD_MODEL_RESOURCES];  /* of them with more use than request */
};

struct td_model_room {
    double allocatable[TD_MODEL_RESOURCES]; /* of ready nodes */
    size_t nodes;
    size_t ready_nodes;
};

struct td_model_totals {
    double request[TD_MODEL_RESOURCES];
    double use[TD_MODEL_RESOURCES];
    size_t pods;
    size_t pending;
    struct td_model_hour judged; /* its sums, of now */
};

struct td_model_options {
    struct td_loop *loop;
    struct td_transport *transport; /* taken, also on failure */
    td_str namespace;               /* only this one; empty: all */
    bool watches_events;            /* what happens is told by Events; else by td_model_tell */
    bool selector_gate;             /* selectors of VPAs count */
};

struct td_model {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow;
    struct td_informers *informers;
    struct td_metrics_client *metrics_client;
    struct td_metrics_call *metrics_call;
    struct td_timer *metrics_timer;
    struct td_timer *minute_timer;
    struct td_cache *events; /* NULL: what happens is told */
    bool are_events_read;
    td_str namespace; /* owned */
    bool selector_gate;
    struct td_map pods;
    struct td_map scalers;
    struct td_map targets; /* first scaler by namespace, kind and name of the workload */
    struct td_map rows;
    bool are_links_stale;     /* which row a pod is in has to be found anew */
    bool are_workloads_stale; /* their objects changed */
    bool are_scalers_stale;   /* what they say changed, or there is a new row */
    bool are_nodes_stale;
    struct td_rings rings;
    struct {
        TD_VEC_FIELDS(struct td_model_mark);
    } marks;
    struct {
        TD_VEC_FIELDS(struct td_model_account);
    } accounts;
    struct td_model_point *points; /* TD_RING_MINUTES, a ring */
    size_t point_count;
    size_t point_first;
    struct td_model_hour hours[TD_MODEL_HOURS]; /* each at its hour modulo their number */
    struct td_model_totals totals;
    struct td_model_room room;
    td_time measured; /* TD_TIME_NONE: never */
    struct td_error metrics_error;
    td_time started;
    uint64_t version;    /* goes up with each look that found something new */
    bool is_changed;     /* since the last look */
    bool has_unresolved; /* pods whose owners are not known yet */
    /* Adds what only a local cluster knows; NULL: nothing. */
    void (*overlay)(void *context);
    void *overlay_context;
};

int td_model_new(const struct td_model_options *options, struct td_model **ret,
                 struct td_error *err);
void td_model_free(struct td_model *model); /* NULL is accepted */

td_time td_model_now(const struct td_model *model);
/* Sums up rows anew, if something changed. */
void td_model_look(struct td_model *model);

struct td_model_row *td_model_find(const struct td_model *model, td_str ns, td_str kind,
                                   td_str name, td_str by);

/* Something happened to an object; of no concern when it belongs to no row. */
struct td_model_happening {
    td_time at;
    td_str reason;
    td_str kind;
    td_str ns;
    td_str name;
    td_str message;
    td_str decision; /* in a few words; empty: the message, where it tells of a decision */
    bool is_scenario;
};
void td_model_tell(struct td_model *model, const struct td_model_happening *what);

/* The row of the object, or of what the object scales; NULL: none. */
struct td_model_row *td_model_row_of(const struct td_model *model, td_str kind, td_str ns,
                                     td_str name);
/* The row of the newest mark that no account is behind yet; NULL: there is none. */
const struct td_model_row *td_model_unexplained(const struct td_model *model);
/* Kept when something happened to the row since its last one. */
void td_model_explain(struct td_model *model, const struct td_model_row *row, td_str text);

/* The hour of that time, NULL when it is over a day ago. */
struct td_model_hour *td_model_hour(struct td_model *model, td_time at);

/* Key of a mark about no row, but about the whole cluster. */
#define TD_MODEL_CLUSTER TD_STR("")

/* ---- Private to the files model*.c ---- */

/* model_scalers.c */
void model_scalers_subscribe(struct td_model *model);
void model_scalers_done(struct td_model *model);
struct td_model_scaler *model_scalers_of(const struct td_model *model, td_str ns, td_str kind,
                                         td_str name);
struct td_model_scaler *model_find_scaler(const struct td_model *model,
                                          enum td_model_scaler_kind kind, td_str ns, td_str name);

/* model_rows.c */
void model_rows_look(struct td_model *model);
void model_rows_sample(struct td_model *model, int64_t minute);
void model_rows_done(struct td_model *model);
/* Of the whole cluster, what was before the first one; minutes ascend. */
void model_points_put_before(struct td_model *model, const struct td_model_point *past,
                             size_t count);

/* model_marks.c */
void model_marks_done(struct td_model *model);
