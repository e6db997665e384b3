/*
 * `tandem run --shadow`: beside upstream's VPA, what ours would recommend and which pods it would
 * evict or resize, and the same by upstream's recommendation. Written into objects of ours, one for
 * each VPA (VerticalPodAutoscalerShadow), and into metrics; nothing else is ever written. The
 * recommender that learns for it is quiet (recommend_loop.h). One thread, the loop's.
 */
#pragma once

#include "base/os/clock.h"
#include "control/common.h"

struct td_recommend_loop;
struct td_shadow;
struct td_update_options;

struct td_shadow_options {
    struct td_control control;
    struct td_recommend_loop *recommend;    /* borrowed, quiet */
    const struct td_update_options *update; /* what the updater would go by; copied */
    td_duration interval;
};

struct td_shadow *td_shadow_new(const struct td_shadow_options *options);
void td_shadow_start(struct td_shadow *shadow);
/* What is under way ends; done once. */
void td_shadow_stop(struct td_shadow *shadow, void (*done)(void *context), void *context);
void td_shadow_free(struct td_shadow *shadow); /* NULL is accepted */
