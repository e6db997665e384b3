/* Random coordinator cases, and a digest of what was decided: the same on every machine. */
#pragma once

#include "support/tandem_cases.h"

struct tandem_random {
    uint64_t state; /* not 0 */
};

/* xorshift64*: small, and the same everywhere. */
static inline uint64_t tandem_next(struct tandem_random *random)
{
    random->state ^= random->state >> 12;
    random->state ^= random->state << 25;
    random->state ^= random->state >> 27;
    return random->state * UINT64_C(2685821657736338717);
}

/* 0 to below - 1. */
static inline int64_t tandem_pick(struct tandem_random *random, int64_t below)
{
    return (int64_t)((tandem_next(random) >> 11) % (uint64_t)below);
}

static inline bool tandem_chance(struct tandem_random *random, int64_t percent)
{
    return tandem_pick(random, 100) < percent;
}

static inline struct td_tandem_bound tandem_some_bound(struct tandem_random *random,
                                                       int64_t percent, int64_t amount)
{
    return (struct td_tandem_bound){.is_set = tandem_chance(random, percent), .amount = amount};
}

/* An amount times 5 to 500 percent, often near 100. */
static inline int64_t tandem_near(struct tandem_random *random, int64_t amount)
{
    int64_t percent =
        tandem_chance(random, 30) ? 85 + tandem_pick(random, 31) : 5 + tandem_pick(random, 496);
    return amount / 100 * percent + tandem_pick(random, 100);
}

static inline struct td_hvpa_change tandem_some_change(struct tandem_random *random,
                                                       int64_t percent)
{
    if (!tandem_chance(random, percent)) {
        return (struct td_hvpa_change){.has_value = false};
    }
    bool has_value = tandem_chance(random, 60);
    return (struct td_hvpa_change){.has_value = has_value,
                                   .amount = tandem_pick(random, 500) + 1,
                                   .has_percentage = !has_value || tandem_chance(random, 50),
                                   .percentage = (int32_t)tandem_pick(random, 120)};
}

static inline void tandem_random_policy(struct tandem_random *random,
                                        struct td_hvpa_scale_policy *policy)
{
    policy->update = tandem_chance(random, 80)   ? TD_HVPA_UPDATE_AUTO
                     : tandem_chance(random, 50) ? TD_HVPA_UPDATE_OFF
                                                 : TD_HVPA_UPDATE_WINDOW;
    policy->stabilization = tandem_pick(random, 20) * TD_MINUTE;
    for (int i = 0; i < TD_HVPA_RESOURCE_COUNT; i++) {
        policy->min_change[i] = tandem_some_change(random, 15);
    }
}

static inline void tandem_random_spec(struct tandem_random *random, struct td_hvpa *hvpa)
{
    static const double ratios[] = {0, 0.001, 0.25, 0.5, 1, 2, 3, 9, 1e6};
    hvpa->hpa.min_replicas = (int32_t)tandem_pick(random, 6) + 1;
    hvpa->hpa.max_replicas = hvpa->hpa.min_replicas + (int32_t)tandem_pick(random, 60);
    int32_t range = hvpa->hpa.max_replicas - hvpa->hpa.min_replicas + 1;
    hvpa->has_hpa = tandem_chance(random, 97);
    hvpa->has_vpa = tandem_chance(random, 97);
    hvpa->ratio.v_to_h = ratios[tandem_pick(random, 9)];
    hvpa->ratio.has_start = tandem_chance(random, 70);
    hvpa->ratio.start = hvpa->hpa.min_replicas + (int32_t)tandem_pick(random, range);
    hvpa->ratio.has_finish = tandem_chance(random, 70);
    int32_t from = hvpa->ratio.has_start ? hvpa->ratio.start : hvpa->hpa.min_replicas;
    hvpa->ratio.finish = from + (int32_t)tandem_pick(random, hvpa->hpa.max_replicas - from + 1);
    hvpa->ratio.overflow = tandem_chance(random, 80);
    hvpa->ratio.capacity = tandem_chance(random, 20) ? TD_HVPA_MAX : TD_HVPA_BLEND;
    hvpa->initial_scaling = (enum td_hvpa_axis)tandem_pick(random, 2);
    hvpa->final_scaling = (enum td_hvpa_axis)tandem_pick(random, 2);
    hvpa->mixed.preference = (enum td_hvpa_axis)tandem_pick(random, 2);
    hvpa->mixed.horizontal_threshold = (int32_t)tandem_pick(random, 4);
    tandem_random_policy(random, &hvpa->horizontal_up);
    tandem_random_policy(random, &hvpa->horizontal_down);
    tandem_random_policy(random, &hvpa->vertical_up);
    tandem_random_policy(random, &hvpa->vertical_down);
    hvpa->tolerance_percent = (int32_t)tandem_pick(random, 31);
    hvpa->settle_seconds = tandem_pick(random, 300);
    hvpa->gap[TD_HVPA_CPU] = tandem_some_change(random, 20);
    hvpa->gap[TD_HVPA_MEMORY] = tandem_some_change(random, 20);
    hvpa->window = (struct td_hvpa_window){.is_set = true,
                                           .begin_second = (int32_t)tandem_pick(random, 86400),
                                           .end_second = (int32_t)tandem_pick(random, 86400)};
    hvpa->coupling = (enum td_hvpa_coupling)tandem_pick(random, 3);
    hvpa->opposing_guard = tandem_chance(random, 85);
}

static inline void tandem_random_row(struct tandem_random *random, struct tandem_case *self,
                                     size_t index)
{
    enum td_hvpa_resource resource = (enum td_hvpa_resource)(index % 2);
    int64_t size = resource == TD_HVPA_CPU ? 50 + tandem_pick(random, 8000)
                                           : (16 + tandem_pick(random, 65536)) * MI;
    int64_t request = tandem_chance(random, 5) ? 0 : size;
    int64_t target = tandem_chance(random, 15) ? request : tandem_near(random, size);
    struct td_tandem_row *row = tandem_case_add(self, index < 2 ? TD_STR("app") : TD_STR("sidecar"),
                                                resource, request, target);
    row->uncapped = tandem_chance(random, 70) ? target : tandem_near(random, size);
    row->lower = tandem_some_bound(random, 30, target / 2);
    row->upper = tandem_some_bound(random, 30, target * 2);
    row->min_allowed = tandem_some_bound(random, 30, size / 3);
    row->max_allowed = tandem_some_bound(random, 30, size / 3 + tandem_near(random, size));
    row->limit = tandem_some_bound(random, 40, size + tandem_pick(random, size + 1));
    row->is_requests_only = tandem_chance(random, 30);
    row->is_emergency = tandem_chance(random, 10);
    row->coupling = (struct td_tandem_coupling){
        .is_coupled = self->hvpa.has_hpa && tandem_chance(random, 40),
        .utilization = 10 + (int32_t)tandem_pick(random, 90),
        .usage = tandem_some_bound(random, 80, tandem_near(random, size))};
    row->is_young = tandem_chance(random, 20);
    row->coupling.in_template = tandem_chance(random, 50) ? 0 : tandem_near(random, size);
    row->coupling.reference = tandem_chance(random, 30) ? 0 : tandem_near(random, size) / 2;
    row->coupling.beside = tandem_chance(random, 70) ? 0 : tandem_near(random, size);
    row->coupling.headroom_percent = (int32_t)tandem_pick(random, 40);
    if (tandem_chance(random, 30)) {
        row->origin =
            (struct td_tandem_pair){.request = size, .limit = size + tandem_pick(random, size + 1)};
    }
}

static inline struct td_tandem_time tandem_some_time(struct tandem_random *random)
{
    struct td_tandem_time time = tandem_ago(tandem_pick(random, 2000) - 10);
    time.is_set = tandem_chance(random, 90);
    return time;
}

static inline void tandem_random_case(struct tandem_random *random, struct tandem_case *self)
{
    tandem_case_init(self, (enum td_hvpa_mode)tandem_pick(random, 5));
    tandem_random_spec(random, &self->hvpa);
    self->in.replicas = tandem_chance(random, 1) ? 0 : (int32_t)tandem_pick(random, 70) + 1;
    self->in.desired_replicas = tandem_chance(random, 40)
                                    ? (int32_t)tandem_pick(random, 80)
                                    : self->in.replicas + (int32_t)tandem_pick(random, 7) - 3;
    self->in.is_horizontal_valid = tandem_chance(random, 92);
    self->in.is_vertical_valid = tandem_chance(random, 92);
    self->in.resize = tandem_chance(random, 90)   ? TD_TANDEM_RESIZE_NONE
                      : tandem_chance(random, 50) ? TD_TANDEM_RESIZE_IN_PROGRESS
                                                  : TD_TANDEM_RESIZE_INFEASIBLE;
    self->in.last_horizontal = tandem_some_time(random);
    self->in.last_vertical = tandem_some_time(random);
    self->in.first_seen = tandem_some_time(random);
    self->in.below_thresholds_since = tandem_some_time(random);
    size_t rows = (size_t)tandem_pick(random, 5);
    for (size_t i = 0; i < rows; i++) {
        tandem_random_row(random, self, i);
    }
}

/* FNV-1a, eight bytes at a time. */
static inline uint64_t tandem_digest(uint64_t digest, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        digest = (digest ^ ((value >> (8 * i)) & 0xff)) * UINT64_C(1099511628211);
    }
    return digest;
}

#define TANDEM_DIGEST_START UINT64_C(14695981039346656037)

static inline uint64_t tandem_digest_decision(uint64_t digest, const struct tandem_case *self)
{
    const struct td_tandem_decision *decision = &self->decision;
    digest = tandem_digest(digest, (uint64_t)decision->replicas);
    digest = tandem_digest(digest, (uint64_t)decision->reason * 16 + (uint64_t)decision->axis);
    digest = tandem_digest(digest, (uint64_t)decision->horizontal_block);
    for (size_t i = 0; i < decision->outcome_count; i++) {
        digest = tandem_digest(digest, (uint64_t)self->outcomes[i].request);
        digest = tandem_digest(digest, (uint64_t)self->outcomes[i].limit.amount);
        digest = tandem_digest(digest, (uint64_t)self->outcomes[i].block);
    }
    return digest;
}
