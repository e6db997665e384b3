/* A coordinator's case under construction: an Hvpa with its defaults, and one tick's input. */
#pragma once

#include "decide/tandem/decide.h"

#define TANDEM_ROWS_MAX 8
#define MI ((int64_t)1 << 20)

struct tandem_case {
    struct td_hvpa hvpa;
    struct td_tandem_input in;
    struct td_tandem_row rows[TANDEM_ROWS_MAX];
    struct td_tandem_outcome outcomes[TANDEM_ROWS_MAX];
    struct td_tandem_decision decision;
};

#define TANDEM_NOON ((int64_t)1773144000) /* 2026-03-10T12:00:00Z */

static inline struct td_tandem_time tandem_ago(int64_t seconds)
{
    return (struct td_tandem_time){.is_set = true, .at = {.unix_seconds = TANDEM_NOON - seconds}};
}

/* Deployment, both axes, everything at its default, last scalings nine days ago. */
static inline void tandem_case_init(struct tandem_case *self, enum td_hvpa_mode mode)
{
    *self = (struct tandem_case){
        .hvpa =
            {
                .mode = mode,
                .target = {.api_version = TD_STR("apps/v1"),
                           .kind = TD_STR("Deployment"),
                           .name = TD_STR("web")},
                .ratio = {.v_to_h = 1, .overflow = true},
                .mixed = {.patience_seconds = 300,
                          .vertical_threshold = {{.has_percentage = true, .percentage = 10},
                                                 {.has_percentage = true, .percentage = 10}}},
                .has_hpa = true,
                .hpa = {.has_min_replicas = true, .min_replicas = 2, .max_replicas = 10},
                .has_vpa = true,
                .vertical_up = {.stabilization = 3 * TD_MINUTE},
                .vertical_down = {.stabilization = 15 * TD_MINUTE},
                .tolerance_percent = 10,
                .settle_seconds = 60,
                .coupling = mode == TD_HVPA_RATIO_BASED ? TD_HVPA_RECONCILE : TD_HVPA_REFERENCE,
                .opposing_guard = true,
            },
        .in = {.is_horizontal_valid = true,
               .is_vertical_valid = true,
               .last_horizontal = tandem_ago(777600),
               .last_vertical = tandem_ago(777600),
               .now = {.unix_seconds = TANDEM_NOON}},
    };
}

/* A row whose uncapped target is its target. */
static inline struct td_tandem_row *tandem_case_add(struct tandem_case *self, td_str container,
                                                    enum td_hvpa_resource resource, int64_t request,
                                                    int64_t target)
{
    struct td_tandem_row *row = &self->rows[self->in.row_count++];
    *row = (struct td_tandem_row){.container = container,
                                  .resource = resource,
                                  .request = request,
                                  .target = target,
                                  .uncapped = target};
    return row;
}

static inline void tandem_case_decide(struct tandem_case *self)
{
    self->in.hvpa = &self->hvpa;
    self->in.rows = self->rows;
    td_tandem_decide(&self->in, self->outcomes, &self->decision);
}
