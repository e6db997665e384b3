/*
 * What a VPA's policy lets be learnt of a container, the two histograms with the times of their
 * samples, what OOMs have taught, the merging of aggregates, and both directions of a checkpoint.
 */
#include "decide/vertical/recommender/aggregate.h"

#include "base/error.h"

#define CPU_SAMPLE_WEIGHT 0.1
#define MEMORY_PEAK_WEIGHT 1.0

static void learn_policy_init(struct td_learn_policy *learn,
                              const struct td_vertical_config *config)
{
    *learn = (struct td_learn_policy){
        .oom_bump_up_ratio = config->oom_bump_up_ratio,
        .oom_min_bump_up = config->oom_min_bump_up,
        .memory_interval = config->memory_interval,
        .memory_interval_count = config->memory_interval_count,
        .controlled = {TD_LEARN_CPU, TD_LEARN_MEMORY},
        .controlled_count = 2,
    };
}

void td_aggregate_init(struct td_aggregate *aggregate, const struct td_vertical_config *config,
                       td_time created)
{
    *aggregate = (struct td_aggregate){
        .first_sample = TD_INSTANT_ZERO,
        .last_sample = TD_INSTANT_ZERO,
        .created = created,
        .oom = {.last_at = TD_CONTAINER_TIME_NONE, .window_end = TD_CONTAINER_TIME_NONE},
    };
    td_decaying_init(&aggregate->cpu, &config->cpu);
    td_decaying_init(&aggregate->memory, &config->memory);
    learn_policy_init(&aggregate->policy, config);
}

void td_aggregate_done(struct td_aggregate *aggregate)
{
    td_decaying_done(&aggregate->cpu);
    td_decaying_done(&aggregate->memory);
}

/* The count comes from checkpoints, which hold anything. Go's sum wraps. */
static void count_samples(struct td_aggregate *aggregate, int64_t more)
{
    aggregate->total_samples = (int64_t)((uint64_t)aggregate->total_samples + (uint64_t)more);
}

void td_aggregate_add_cpu(struct td_aggregate *aggregate, const struct td_vertical_config *config,
                          td_time time, int64_t milli)
{
    struct td_instant at = td_time_to_instant(time);
    td_decaying_add(&aggregate->cpu, &config->cpu, (double)milli / 1000.0, CPU_SAMPLE_WEIGHT, at);
    if (td_instant_before(aggregate->last_sample, at)) {
        aggregate->last_sample = at;
    }
    if (td_instant_is_zero(aggregate->first_sample) ||
        td_instant_before(at, aggregate->first_sample)) {
        aggregate->first_sample = at;
    }
    count_samples(aggregate, 1);
}

void td_aggregate_apply(struct td_aggregate *aggregate, const struct td_vertical_config *config,
                        const struct td_peak_change *change)
{
    struct td_instant at = td_time_to_instant(change->at);
    if (change->has_subtract) {
        td_decaying_subtract(&aggregate->memory, &config->memory, (double)change->subtract_bytes,
                             MEMORY_PEAK_WEIGHT, at);
    }
    if (change->has_add) {
        td_decaying_add(&aggregate->memory, &config->memory, (double)change->add_bytes,
                        MEMORY_PEAK_WEIGHT, at);
    }
}

struct td_oom_rule td_learn_rule(const struct td_learn_policy *learn,
                                 const struct td_vertical_config *config)
{
    return (struct td_oom_rule){
        .interval = learn->memory_interval,
        .bump_up_ratio = learn->oom_bump_up_ratio,
        .min_bump_up = learn->oom_min_bump_up,
        .bytes_max = config->is_upstream_exact ? 0 : learn->memory_bytes_max,
        .is_upstream_exact = config->is_upstream_exact,
    };
}

enum td_oom_verdict td_aggregate_oom(struct td_aggregate *aggregate,
                                     const struct td_vertical_config *config,
                                     struct td_container_state *state, td_time time,
                                     int64_t requested_bytes)
{
    struct td_oom_rule rule = td_learn_rule(&aggregate->policy, config);
    struct td_peak_change change;
    enum td_oom_verdict verdict = td_container_oom(state, &rule, time, requested_bytes, &change);
    if (verdict != TD_OOM_TAKEN && verdict != TD_OOM_CAPPED) {
        return verdict;
    }
    td_aggregate_apply(aggregate, config, &change);
    struct td_oom_knowledge *oom = &aggregate->oom;
    oom->count++;
    if (oom->last_at == TD_CONTAINER_TIME_NONE || time >= oom->last_at) {
        oom->last_at = time;
        oom->capped_bytes = verdict == TD_OOM_CAPPED ? rule.bytes_max : 0;
    }
    int64_t peak = td_container_peak(state);
    if (oom->window_end == TD_CONTAINER_TIME_NONE || oom->window_end < state->window_end ||
        oom->bytes < peak) {
        oom->window_end = state->window_end;
        oom->bytes = peak;
    }
    return verdict;
}

static void oom_merge(struct td_oom_knowledge *into, const struct td_oom_knowledge *from)
{
    into->count += from->count;
    into->short_runs += from->short_runs;
    if (from->last_at != TD_CONTAINER_TIME_NONE &&
        (into->last_at == TD_CONTAINER_TIME_NONE || from->last_at > into->last_at)) {
        into->last_at = from->last_at;
        into->window_end = from->window_end;
        into->bytes = from->bytes;
        into->capped_bytes = from->capped_bytes;
    }
}

void td_aggregate_merge(struct td_aggregate *aggregate, const struct td_vertical_config *config,
                        struct td_aggregate *other)
{
    td_decaying_merge(&aggregate->cpu, &config->cpu, &other->cpu);
    td_decaying_merge(&aggregate->memory, &config->memory, &other->memory);
    if (td_instant_is_zero(aggregate->first_sample) ||
        (!td_instant_is_zero(other->first_sample) &&
         td_instant_before(other->first_sample, aggregate->first_sample))) {
        aggregate->first_sample = other->first_sample;
    }
    if (td_instant_before(aggregate->last_sample, other->last_sample)) {
        aggregate->last_sample = other->last_sample;
    }
    count_samples(aggregate, other->total_samples);
    oom_merge(&aggregate->oom, &other->oom);
}

static void terms_controlled(struct td_learn_terms *terms, const struct td_container_policy *policy)
{
    terms->controlled[0] = TD_LEARN_CPU;
    terms->controlled[1] = TD_LEARN_MEMORY;
    terms->controlled_count = 2;
    if (!policy || !policy->has_controlled_resources) {
        return;
    }
    terms->controlled_count = 0;
    for (size_t i = 0; i < policy->controlled_resource_count && terms->controlled_count < 2; i++) {
        bool is_cpu = td_str_equal(policy->controlled_resources[i], TD_STR("cpu"));
        bool is_memory = td_str_equal(policy->controlled_resources[i], TD_STR("memory"));
        uint8_t resource = is_cpu ? TD_LEARN_CPU : TD_LEARN_MEMORY;
        bool is_repeated = terms->controlled_count == 1 && terms->controlled[0] == resource;
        if ((is_cpu || is_memory) && !is_repeated) {
            terms->controlled[terms->controlled_count++] = resource;
        }
    }
}

struct td_learn_terms td_learn_terms_of(const struct td_container_policy *policy)
{
    struct td_learn_terms terms = {.is_off = policy && policy->is_off};
    terms_controlled(&terms, policy);
    if (!policy) {
        return terms;
    }
    const struct td_quantity *most = td_resource_list_get(&policy->max_allowed, TD_STR("memory"));
    terms.memory_bytes_max = most ? td_quantity_value(most) : 0;
    terms.has_oom_bump_up_ratio = policy->has_oom_bump_up_ratio;
    if (policy->has_oom_bump_up_ratio) {
        terms.oom_bump_up_ratio = (double)td_quantity_milli(&policy->oom_bump_up_ratio) / 1000.0;
    }
    terms.has_oom_min_bump_up = policy->has_oom_min_bump_up;
    if (policy->has_oom_min_bump_up) {
        terms.oom_min_bump_up = (double)td_quantity_milli(&policy->oom_min_bump_up) / 1000.0;
    }
    terms.has_memory_interval = policy->has_memory_interval;
    terms.memory_interval = policy->memory_interval_seconds * TD_SECOND;
    terms.has_memory_interval_count = policy->has_memory_interval_count;
    terms.memory_interval_count = policy->memory_interval_count;
    return terms;
}

void td_learn_policy_apply(struct td_learn_policy *learn, const struct td_vertical_config *config,
                           const struct td_learn_terms *terms)
{
    if (!config->is_upstream_exact) {
        learn_policy_init(learn, config);
    }
    learn->is_known = true;
    learn->is_off = terms->is_off;
    learn->controlled[0] = terms->controlled[0];
    learn->controlled[1] = terms->controlled[1];
    learn->controlled_count = terms->controlled_count;
    learn->memory_bytes_max = terms->memory_bytes_max;
    if (!config->per_vpa_config) {
        return;
    }
    if (terms->has_oom_bump_up_ratio) {
        learn->oom_bump_up_ratio = terms->oom_bump_up_ratio;
    }
    if (terms->has_oom_min_bump_up) {
        learn->oom_min_bump_up = terms->oom_min_bump_up;
    }
    if (terms->has_memory_interval) {
        learn->memory_interval = terms->memory_interval;
    }
    if (terms->has_memory_interval_count) {
        learn->memory_interval_count = terms->memory_interval_count;
    }
}

void td_aggregate_set_policy(struct td_aggregate *aggregate,
                             const struct td_vertical_config *config,
                             const struct td_container_policy *policy)
{
    struct td_learn_terms terms = td_learn_terms_of(policy);
    td_learn_policy_apply(&aggregate->policy, config, &terms);
}

bool td_learn_controls(const struct td_learn_policy *learn, enum td_learn_resource resource)
{
    for (uint8_t i = 0; i < learn->controlled_count; i++) {
        if (learn->controlled[i] == resource) {
            return true;
        }
    }
    return false;
}

bool td_aggregate_is_empty(const struct td_aggregate *aggregate)
{
    return aggregate->total_samples == 0;
}

bool td_aggregate_is_expired(const struct td_aggregate *aggregate, td_time now)
{
    struct td_instant since = td_aggregate_is_empty(aggregate)
                                  ? td_time_to_instant(aggregate->created)
                                  : aggregate->last_sample;
    /* Go's product of two durations wraps. */
    td_duration kept = (td_duration)((uint64_t)aggregate->policy.memory_interval *
                                     (uint64_t)aggregate->policy.memory_interval_count);
    return td_instant_since(td_time_to_instant(now), since) >= kept;
}

void td_aggregate_save(const struct td_aggregate *aggregate, struct td_checkpoint *ret)
{
    ret->version = TD_STR("v3");
    ret->first_sample = aggregate->first_sample;
    ret->last_sample = aggregate->last_sample;
    ret->total_samples = aggregate->total_samples;
    td_decaying_save(&aggregate->memory, &ret->memory);
    td_decaying_save(&aggregate->cpu, &ret->cpu);
}

int td_aggregate_load(struct td_aggregate *aggregate, const struct td_vertical_config *config,
                      const struct td_checkpoint *checkpoint, struct td_error *err)
{
    struct td_decaying cpu;
    struct td_decaying memory;
    if (!td_str_equal(checkpoint->version, TD_STR("v3"))) {
        return td_error_set(err, TD_INVALID, "unsupported checkpoint version %.*s",
                            TD_STR_ARG(checkpoint->version));
    }
    td_decaying_copy(&aggregate->cpu, &cpu);
    td_decaying_copy(&aggregate->memory, &memory);
    int code = td_decaying_load(&memory, &config->memory, &checkpoint->memory, err);
    if (code < 0) {
        (void)td_error_wrap(err, code, "memoryHistogram");
    } else {
        code = td_decaying_load(&cpu, &config->cpu, &checkpoint->cpu, err);
        if (code < 0) {
            (void)td_error_wrap(err, code, "cpuHistogram");
        }
    }
    if (code < 0) {
        td_decaying_done(&cpu);
        td_decaying_done(&memory);
        return code;
    }
    td_aggregate_done(aggregate);
    aggregate->cpu = cpu;
    aggregate->memory = memory;
    aggregate->total_samples = checkpoint->total_samples;
    aggregate->first_sample = checkpoint->first_sample;
    aggregate->last_sample = checkpoint->last_sample;
    return TD_OK;
}
