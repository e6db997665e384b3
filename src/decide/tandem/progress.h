/*
 * A resize on its way (hvpa.md 5.4): pods that do not have the decided sizes are unfinished
 * business, whatever made them so. After 15 minutes the sizes are given up, and tried again when
 * lower ones are wanted, or after an hour. Pure.
 */
#pragma once

#include "decide/tandem/decide.h"
#include "decide/vertical/pod.h"

struct td_tandem_progress_input {
    const struct td_hvpa *hvpa;             /* with the status of the reconcile before */
    const struct td_hvpa_requests *decided; /* what pods are to have */
    const struct td_hvpa_requests *limits;
    const struct td_pod *pods; /* alive */
    size_t pod_count;
    bool is_selective; /* gate VPAHeterogeneousWorkloads: the selector of the vpaSpec counts */
    td_time now;
};

struct td_tandem_progress {
    bool is_progressing; /* some pod is not as decided */
    bool is_growing;     /* a ready one has less */
    bool is_given_up;    /* just now */
    bool is_dropped; /* given up, and no ready pod has the sizes: they are not wanted any more */
    struct td_hvpa_infeasible infeasible; /* what could not be had, for the status */
};

struct td_tandem_progress td_tandem_progress_of(const struct td_tandem_progress_input *input);

/* What a decision on these rows is told of it. */
enum td_tandem_resize td_tandem_resize_of(const struct td_tandem_progress *progress,
                                          const struct td_tandem_input *in);

/* Do fewer replicas have to wait until the larger pods are there and ready? `is_unready`: some pod
 * that may have been resized is not. */
bool td_tandem_holds_scale(const struct td_tandem_progress *progress,
                           const struct td_tandem_input *in,
                           const struct td_tandem_decision *decision, bool is_unready);

/* Is the pod one that the vpaSpec selects? */
bool td_tandem_pod_is_sized(const struct td_hvpa *hvpa, bool is_selective,
                            const struct td_pod *pod);
/* Are requests and limits of the pod as decided? `ret_is_smaller`: some request is below. */
bool td_tandem_pod_is_as_decided(const struct td_hvpa_requests *requests,
                                 const struct td_hvpa_requests *limits, const struct td_pod *pod,
                                 bool *ret_is_smaller);
