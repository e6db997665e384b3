/*
 * In which order a decision is carried out (hvpa.md 5.4): what adds capacity goes first, what takes
 * it away comes after, so that a workload is never smaller on the way than at both ends. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/hvpa/hvpa.h"
#include "decide/tandem/decide.h"

enum td_tandem_step {
    TD_TANDEM_STEP_SCALE,
    TD_TANDEM_STEP_RESIZE,         /* pods, in place or by eviction */
    TD_TANDEM_STEP_PATCH_TEMPLATE, /* the workload's template: a rollout */
    TD_TANDEM_STEP_WAIT_READY,     /* until the resized pods are Ready */
};

#define TD_TANDEM_STEPS_MAX 3

struct td_tandem_plan {
    enum td_tandem_step steps[TD_TANDEM_STEPS_MAX];
    size_t count;
};

/* The steps of a decision; none when nothing changes or the Hvpa is paused. */
struct td_tandem_plan td_tandem_plan_of(const struct td_hvpa *hvpa,
                                        const struct td_tandem_input *in,
                                        const struct td_tandem_decision *decision);
