/*
 * From what was learnt of a container to amounts: one small interface, one file per estimator. An
 * estimator may keep a state of its own beside the aggregate (state_bytes above 0), fed by the same
 * samples and saved with the checkpoint. Everything after the estimate is the same for all:
 * recommend.h. A new estimator is a file and a row of TD_ESTIMATORS: the annotation, --estimator
 * and the policies of replay then know it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "decide/vertical/recommender/account.h"
#include "decide/vertical/recommender/aggregate.h"
#include "decide/vertical/recommender/config.h"

struct td_error;

struct td_bounds {
    int64_t target;
    int64_t lower;
    int64_t upper;
};

/* CPU in milli-cores, memory in bytes; before rounding and capping. */
struct td_estimate {
    struct td_bounds cpu;
    struct td_bounds memory;
};

/* A sample of CPU, millicores: what was used, and the limit and request in force; 0: none. */
struct td_cpu_use {
    int64_t milli;
    int64_t limit_milli;
    int64_t request_milli;
};

/* Memory of a container that was OOM-killed; 0: not set. */
struct td_oom_kill {
    int64_t request_bytes;
    int64_t limit_bytes;
};

/* Why the CPU of a container cannot be resized while it runs. */
enum td_resize_lack {
    TD_RESIZE_POSSIBLE,
    TD_RESIZE_LACKS_MODE, /* running pods are evicted, or left alone */
    TD_RESIZE_LACKS_NODE, /* its node or the API server does not resize */
    TD_RESIZE_RESTARTS,   /* resizePolicy of cpu: RestartContainer */
};

/* "its update mode does not resize pods in place"; NULL: it is possible. */
const char *td_resize_lack_text(enum td_resize_lack lack);

/* What is known of a container beside its samples, for estimators that ask. */
struct td_estimator_terms {
    int64_t memory_request_bytes; /* of the pod template; 0: not set */
    int64_t memory_limit_bytes;   /* likewise */
    enum td_resize_lack lack;
};

struct td_estimator_input {
    const struct td_vertical_config *config;
    const struct td_aggregate *aggregate;
    const void *state; /* the estimator's own, NULL without one */
    int64_t min_cpu_milli;
    int64_t min_memory_bytes;
    td_time now;
    bool is_display_only; /* mode Off or Initial: nothing acts on the bounds */
};

struct td_estimator {
    const char *name;   /* "upstream", "adaptive"; value of annotation tandem.dev/estimator */
    const char *title;  /* for tables */
    size_t state_bytes; /* of its own state per container, 0 without one; then the next seven are
                           NULL */
    void (*init)(void *state);
    /* Accepted samples only, in the order accepted. */
    void (*add_cpu)(void *state, td_time time, const struct td_cpu_use *use);
    void (*add_memory)(void *state, td_time time, int64_t bytes);
    void (*add_oom)(void *state, td_time time, const struct td_oom_kill *kill);
    /* Into annotations of a checkpoint, and out of those (NULL: none). What they do not have starts
     * empty, and so does what is refused: then the error names annotation and field. */
    void (*save)(struct td_arena *arena, const void *state, struct td_json *annotations);
    int (*load)(void *state, const struct td_json *annotations, struct td_error *err);
    /* NULL: it asks for none. */
    void (*set_terms)(void *state, const struct td_estimator_terms *terms);

    /* Fills the amounts and, of the account, cpu and memory up to `is_floor`; the rest is filled by
     * recommend.h. */
    void (*recommend)(const struct td_estimator_input *input, struct td_estimate *ret,
                      struct td_account *account);
};

/* All there are. Upstream's: percentiles, margin, confidence. Adaptive: a quantile of the last day
 * and peaks of the last week (adaptive.h), at three risks. Track: CPU by the last hour and the
 * margin that was learnt, resized in place, at four risks (track.h). */
#define TD_ESTIMATORS(ROW)                                                                         \
    ROW(td_estimator_upstream)                                                                     \
    ROW(td_estimator_adaptive)                                                                     \
    ROW(td_estimator_adaptive_careful)                                                             \
    ROW(td_estimator_adaptive_frugal)                                                              \
    ROW(td_estimator_track)                                                                        \
    ROW(td_estimator_track_careful)                                                                \
    ROW(td_estimator_track_frugal)                                                                 \
    ROW(td_estimator_track_calm)

#define TD_ESTIMATOR_DECLARE(name) extern const struct td_estimator name;
TD_ESTIMATORS(TD_ESTIMATOR_DECLARE)
#undef TD_ESTIMATOR_DECLARE

/* By its place in the list; NULL past the end. */
const struct td_estimator *td_estimator_at(size_t index);
/* By name; NULL when there is none of that name. */
const struct td_estimator *td_estimator_find(td_str name);
/* All names, parted by ", ". */
void td_estimator_write_names(struct td_buf *out);

/* Annotations of a VPA. An estimator E that offers a risk R is registered as "E-R"; "balanced" is E
 * itself. */
#define TD_ESTIMATOR_ANNOTATION TD_STR("tandem.dev/estimator")
#define TD_RISK_ANNOTATION TD_STR("tandem.dev/risk")

struct td_estimator_choice {
    const struct td_estimator *estimator;
    const struct td_json *unknown; /* the annotation whose value names nothing, for a condition; its
                                      key and text say which; NULL when all is well */
};

/* "annotation tandem.dev/risk: 'bold': use one of balanced, careful, frugal; adaptive is used";
 * empty where all is well. */
td_str td_estimator_problem(struct td_arena *arena, const struct td_estimator_choice *choice);

/* "'bold': use one of balanced, careful, frugal"; there must be something unknown. */
td_str td_estimator_refusal(struct td_arena *arena, const struct td_estimator_choice *choice);

/* What a VPA's annotations (NULL: none) ask for; `fallback` where they ask for nothing, or for
 * something unknown. */
struct td_estimator_choice td_estimator_choose(const struct td_json *annotations,
                                               const struct td_estimator *fallback);
