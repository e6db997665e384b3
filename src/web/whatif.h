/*
 * What other settings would have done with the history of one workload: which settings there are
 * (whatif_read.c), the objects that would make them so, one point of the history with the deciders
 * (whatif_decide.c), and the whole in slices of the loop (whatif.c). A pod counts as one container.
 */
#pragma once

#include "api/hvpa/hvpa.h"
#include "base/arena.h"
#include "base/json/json.h"
#include "decide/tandem/decide.h"
#include "decide/vertical/estimator/estimator.h"
#include "decide/vertical/recommender/aggregate.h"
#include "web/web_private.h"

#define WHATIF_DOWN_MINUTES 5 /* scaleDown's usual stabilization */

/* Who acts. */
enum whatif_way {
    WHATIF_VPA,
    WHATIF_HPA,
    WHATIF_BOTH, /* each for itself */
    WHATIF_HVPA,
};

/* As it was asked; of numbers below 0: not said. */
struct whatif_settings {
    enum whatif_way way;
    enum td_hvpa_mode mode;
    const struct td_estimator *estimator;
    double cpu_percentile;
    double memory_percentile;
    double margin;
    double least[TD_MODEL_RESOURCES];
    double most[TD_MODEL_RESOURCES];
    double utilization;
    double replicas_min;
    double replicas_max;
    double ratio;
};

struct whatif_point {
    double request[TD_MODEL_RESOURCES]; /* of one pod; below 0: none */
    double replicas;                    /* below 0: not known */
};

struct web_whatif {
    struct td_web *web;
    struct web_whatif *next;
    struct td_http_exchange *exchange; /* NULL: the caller is gone */
    struct td_timer *timer;
    struct td_arena arena;   /* of the whole */
    struct td_arena scratch; /* of one decision */
    td_str row_key;
    td_str container;
    td_str yaml;
    struct whatif_settings settings;
    struct td_vertical_config config;
    struct td_aggregate aggregate;
    struct td_container_state learnt;
    void *state; /* the estimator's own; NULL: it has none */
    struct td_resource_policy policy;
    struct td_hvpa hvpa; /* of WHATIF_HVPA */
    struct whatif_point *points;
    double *asked[TD_MODEL_RESOURCES]; /* requests as they were, at each point */
    struct td_ring_span span;
    int64_t step; /* minutes */
    size_t done;
    double desired[WHATIF_DOWN_MINUTES]; /* of the HPA, lately */
    struct td_tandem_time last_horizontal;
    struct td_tandem_time last_vertical;
    struct td_tandem_time below_since;
    td_duration worked;
};

/* Settings, objects and their YAML into `whatif`, whose arena is there; TD_INVALID names a field.
 */
int whatif_read(const struct web_call *call, struct web_whatif *whatif, const struct td_json *order,
                const struct td_model_row *row, struct td_error *err);

void whatif_learner_init(struct web_whatif *whatif);
void whatif_learner_done(struct web_whatif *whatif);
/* The point whatif->done. */
void whatif_decide(struct web_whatif *whatif, const struct td_ring *ring);
