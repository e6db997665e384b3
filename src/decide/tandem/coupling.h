/*
 * Where the HPA measures by a request that the VPA moves, each would answer to the other's changes
 * (hvpa.md 4.3). Here is which rows are coupled in that way, what each setting of `coupling` does
 * about it, and how strong the loop is. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/hvpa/hvpa.h"
#include "decide/tandem/decide.h"
#include "kube/quantity/quantity.h"

/* The name under which the pod's own resources (pod-level resources) are one more container: no
 * container can have it. */
#define TD_TANDEM_POD TD_STR_INIT("(pod)")
bool td_tandem_is_pod(td_str container);

bool td_tandem_controls(const struct td_hvpa *hvpa, td_str container,
                        enum td_hvpa_resource resource);

/* Is the row coupled, and by which target (usage is left unset)? */
struct td_tandem_coupling td_tandem_coupling_of(const struct td_hvpa *hvpa, td_str container,
                                                enum td_hvpa_resource resource);

/* The same where the pod as a whole asks for the resource: metrics of whole pods are measured by
 * that, not by what its containers ask for. */
struct td_tandem_coupling td_tandem_coupling_beside_pod(const struct td_hvpa *hvpa,
                                                        td_str container,
                                                        enum td_hvpa_resource resource);

/* Does this metric measure the container's resource in percent of its request? */
bool td_tandem_is_measured_by(const struct td_hpa_metric *metric, td_str container,
                              enum td_hvpa_resource resource);

/* A row's wish: its target after caps, coupling, floor and caps again. */
struct td_tandem_wish {
    int64_t target;
    int64_t policy_target;       /* before the cap by a fixed limit */
    int64_t uncapped;            /* as coupling and floor raised it */
    int64_t floor;               /* after caps; 0: none */
    struct td_tandem_bound most; /* that it could ever be */
    bool is_raised;              /* Reconcile decided */
    bool is_kept;                /* the floor decided */
};
struct td_tandem_wish td_tandem_wish_of(const struct td_tandem_input *in,
                                        const struct td_tandem_row *row);

/* g: by how much HPA and VPA in turn would multiply the replicas each round, at this target. False
 * when the row is not coupled, its usage is not known or its target is 0. Idle pods have a gain of
 * 0, which means nothing and raises no condition. */
bool td_tandem_gain(const struct td_tandem_row *row, int64_t target, double *ret);

/* A container's resource as it runs and as its user wrote it; 0: no request. */
struct td_tandem_request {
    td_str container;
    enum td_hvpa_resource resource;
    int64_t live;
    int64_t in_template;
};

/* What the HPA's utilisation of a coupled row is measured against; 0 when there is no request. */
int64_t td_tandem_measured_against(const struct td_hvpa *hvpa,
                                   const struct td_tandem_request *request);

/* Under Reference: a Utilization metric of a coupled row as an average value, exactly. False for
 * any other metric. `requests` are those of all containers, and of the pod where it has its own. */
bool td_tandem_average_value(const struct td_hvpa *hvpa, size_t metric_index,
                             const struct td_tandem_request *requests, size_t count,
                             struct td_quantity *ret);

enum td_tandem_coupled {
    TD_TANDEM_COUPLED_FALSE,
    TD_TANDEM_COUPLED_LOOP_POSSIBLE,     /* coupling None, and some row is coupled */
    TD_TANDEM_COUPLED_NO_REFERENCE,      /* a coupled row has no request in the template */
    TD_TANDEM_COUPLED_HEADROOM_CONFLICT, /* the VPA's headroom is larger than the HPA's */
};

struct td_tandem_coupled_condition {
    enum td_tandem_coupled reason;
    size_t row;    /* that the condition is about */
    bool has_gain; /* of that row */
    double gain;
};

/* The Coupled condition; `in_template` has the template's request of each row, 0 for none. The row
 * named is the one with the gain farthest from 1, else the first. */
struct td_tandem_coupled_condition td_tandem_coupled_of(const struct td_hvpa *hvpa,
                                                        const struct td_tandem_row *rows,
                                                        const int64_t *in_template, size_t count);

/* "LoopPossible", ...; empty for False. */
td_str td_tandem_coupled_name(enum td_tandem_coupled reason);
