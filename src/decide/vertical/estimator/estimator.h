/*
 * From what was learnt of a container to amounts: one small interface, one file per estimator. An
 * estimator may keep a state of its own beside the aggregate (state_bytes above 0), fed by the same
 * samples and saved with the checkpoint. Everything after the estimate is the same for all:
 * recommend.h. A new estimator is a file and a line in estimator.c.
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
    size_t state_bytes; /* of its own state per container, 0 without one; then the next six are
                           NULL */
    void (*init)(void *state);
    /* Accepted samples only, in the order accepted. limit_milli: CPU limit in force, 0 without. */
    void (*add_cpu)(void *state, td_time time, int64_t milli, int64_t limit_milli);
    void (*add_memory)(void *state, td_time time, int64_t bytes);
    void (*add_oom)(void *state, td_time time, int64_t requested_bytes);
    struct td_json *(*save)(struct td_arena *arena, const void *state);
    int (*load)(void *state, const struct td_json *saved, struct td_error *err);

    /* Fills the amounts and, of the account, cpu and memory up to `is_floor`; the rest is filled by
     * recommend.h. */
    void (*recommend)(const struct td_estimator_input *input, struct td_estimate *ret,
                      struct td_account *account);
};

/* Upstream's: percentiles, margin, confidence. */
extern const struct td_estimator td_estimator_upstream;

/* A quantile of the last day and peaks of the last week (adaptive.h), at three risks. */
extern const struct td_estimator td_estimator_adaptive;
extern const struct td_estimator td_estimator_adaptive_careful;
extern const struct td_estimator td_estimator_adaptive_frugal;

/* By name; NULL when there is none of that name. */
const struct td_estimator *td_estimator_find(td_str name);

/* Annotations of a VPA. An estimator E that offers a risk R is registered as "E-R"; "balanced" is E
 * itself. */
#define TD_ESTIMATOR_ANNOTATION TD_STR("tandem.dev/estimator")
#define TD_RISK_ANNOTATION TD_STR("tandem.dev/risk")

struct td_estimator_choice {
    const struct td_estimator *estimator;
    const struct td_json *unknown; /* the annotation whose value names nothing, for a condition; its
                                      key and text say which; NULL when all is well */
};

/* What a VPA's annotations (NULL: none) ask for; `fallback` where they ask for nothing, or for
 * something unknown. */
struct td_estimator_choice td_estimator_choose(const struct td_json *annotations,
                                               const struct td_estimator *fallback);
