/*
 * What is known of one container of one VPA: its CPU and memory-peak histograms, when and how often
 * it was measured, the policy values that govern learning, and its OOMs. Shared by all replicas and
 * rollouts. init/done own the histograms; everything else is a pure function of its arguments.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/vpa/checkpoint.h"
#include "api/vpa/vpa.h"
#include "decide/vertical/recommender/config.h"
#include "decide/vertical/recommender/container_state.h"

struct td_error;

enum td_learn_resource { TD_LEARN_CPU, TD_LEARN_MEMORY };

/* The part of a container's policy that learning depends on. */
struct td_learn_policy {
    double oom_bump_up_ratio;
    double oom_min_bump_up; /* bytes */
    td_duration memory_interval;
    int64_t memory_interval_count;
    int64_t memory_bytes_max; /* maxAllowed.memory, 0 without one */
    uint8_t controlled[2];    /* enum td_learn_resource, in the order of the policy */
    uint8_t controlled_count;
    bool is_off;   /* mode Off */
    bool is_known; /* some policy, or the absence of one, was applied */
};

/* What a VPA says about learning for one container, as plain values; without a policy only the
 * defaults. The has_ values are those of PerVPAConfig. */
struct td_learn_terms {
    double oom_bump_up_ratio;
    double oom_min_bump_up; /* bytes */
    td_duration memory_interval;
    int64_t memory_interval_count;
    int64_t memory_bytes_max;
    bool has_oom_bump_up_ratio;
    bool has_oom_min_bump_up;
    bool has_memory_interval;
    bool has_memory_interval_count;
    bool is_off;
    uint8_t controlled[2];
    uint8_t controlled_count;
};

/* OOMs, kept beside the histograms because those forget and a checkpoint leaves out the window in
 * progress. */
struct td_oom_knowledge {
    td_time last_at;      /* TD_CONTAINER_TIME_NONE when there was none */
    td_time window_end;   /* of the window that the latest one raised */
    int64_t bytes;        /* what the latest one demanded */
    int64_t count;        /* ever */
    int64_t capped_bytes; /* what it would have demanded had maxAllowed not stopped it; else 0 */
    int64_t short_runs;   /* instances that ended before they were measured */
};

struct td_aggregate {
    struct td_decaying cpu;         /* cores */
    struct td_decaying memory;      /* bytes; peaks of windows */
    struct td_instant first_sample; /* CPU; TD_INSTANT_ZERO when there was none */
    struct td_instant last_sample;  /* likewise */
    int64_t total_samples;          /* CPU */
    td_time created;
    struct td_learn_policy policy;
    struct td_oom_knowledge oom;
};

void td_aggregate_init(struct td_aggregate *aggregate, const struct td_vertical_config *config,
                       td_time created);
void td_aggregate_done(struct td_aggregate *aggregate);

void td_aggregate_add_cpu(struct td_aggregate *aggregate, const struct td_vertical_config *config,
                          td_time time, int64_t milli);
void td_aggregate_apply(struct td_aggregate *aggregate, const struct td_vertical_config *config,
                        const struct td_peak_change *change);

/* An OOM of an instance: the step of container_state.h, the change applied, the knowledge kept. */
enum td_oom_verdict td_aggregate_oom(struct td_aggregate *aggregate,
                                     const struct td_vertical_config *config,
                                     struct td_container_state *state, td_time time,
                                     int64_t requested_bytes);

/* Adds `other`, whose histograms may be rescaled by it, as upstream's are. */
void td_aggregate_merge(struct td_aggregate *aggregate, const struct td_vertical_config *config,
                        struct td_aggregate *other);

/* Values of a container's policy (NULL: none applies). Values that only PerVPAConfig allows go back
 * to the flags when the policy no longer has them, except in upstream's exact way. */
void td_aggregate_set_policy(struct td_aggregate *aggregate,
                             const struct td_vertical_config *config,
                             const struct td_container_policy *policy);
struct td_learn_terms td_learn_terms_of(const struct td_container_policy *policy);
void td_learn_policy_apply(struct td_learn_policy *learn, const struct td_vertical_config *config,
                           const struct td_learn_terms *terms);
bool td_learn_controls(const struct td_learn_policy *learn, enum td_learn_resource resource);
struct td_oom_rule td_learn_rule(const struct td_learn_policy *learn,
                                 const struct td_vertical_config *config);

/* Without CPU samples; memory does not count, as upstream has it. */
bool td_aggregate_is_empty(const struct td_aggregate *aggregate);
bool td_aggregate_is_expired(const struct td_aggregate *aggregate, td_time now);

/* Status fields and histograms; names and last_update are the caller's. */
void td_aggregate_save(const struct td_aggregate *aggregate, struct td_checkpoint *ret);

/* Into an empty aggregate; refuses what upstream refuses, and then the aggregate is unchanged. */
int td_aggregate_load(struct td_aggregate *aggregate, const struct td_vertical_config *config,
                      const struct td_checkpoint *checkpoint, struct td_error *err);
