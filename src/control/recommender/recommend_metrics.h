/*
 * What the recommender counts (vpa.md 2.13); private to it.
 */
#pragma once

#include "control/recommender/recommend_private.h"

void recommend_metrics_init(struct td_recommend_loop *loop);

/* A pass begins: gauges that are set anew. */
void recommend_metrics_begin(struct td_recommend_loop *loop);
void recommend_metrics_vpa(struct td_recommend_loop *loop, struct recommend_vpa *vpa,
                           const struct td_vpa *object, const struct td_vpa_status *status);
/* One phase took so long: "LoadVPAs", ..., "total". */
void recommend_metrics_step(struct td_recommend_loop *loop, const char *step, td_duration took);
/* One VPA of the pass; counted when all are looked at. */
void recommend_metrics_stale(struct td_recommend_loop *loop, bool is_stale);
/* Who gave a pod its requests last, by its annotations. */
enum recommend_sizer {
    RECOMMEND_SIZED_BY_OWNER, /* as its template has them */
    RECOMMEND_SIZED_BY_ADMISSION,
    RECOMMEND_SIZED_BY_RESIZE,
    RECOMMEND_SIZERS,
};

/* A container of such a pod was OOM-killed. */
void recommend_metrics_kill(struct td_recommend_loop *loop, enum recommend_sizer sizer);
/* The write of a checkpoint was answered. */
void recommend_metrics_checkpoint(struct td_recommend_loop *loop, bool is_error);
void recommend_metrics_responses(struct td_recommend_loop *loop, bool is_error);
/* How reading history from Prometheus ended, and how much was learnt. */
void recommend_metrics_history(struct td_recommend_loop *loop, bool is_failed, size_t samples);
