/*
 * Upstream's estimator: a percentile of the histogram, raised by a margin; the bounds are widened
 * while confidence is low. Each step truncates to a whole amount, as upstream's chain of estimators
 * does.
 */
#include <stdio.h>

#include "decide/vertical/estimator/estimator.h"
#include "decide/vertical/estimator/gomath.h"

#define LOWER_MULTIPLIER 0.001
#define LOWER_EXPONENT (-2)
#define UPPER_MULTIPLIER 1.0
#define UPPER_EXPONENT 1

/* One resource of one container. */
struct measured {
    const struct td_decaying *histogram;
    const struct td_decay *decay;
    double unit; /* amounts per value of the histogram: 1000 for cores */
    double margin_fraction;
    int64_t floor;
};

static double confidence_of(const struct td_aggregate *aggregate, td_duration interval)
{
    double span = (double)td_instant_since(aggregate->last_sample, aggregate->first_sample) /
                  (double)interval;
    /* Go's Duration.Minutes: whole minutes and the rest, added as floats. */
    double minutes =
        (double)(interval / TD_MINUTE) + (double)(interval % TD_MINUTE) / (double)TD_MINUTE;
    double samples = (double)aggregate->total_samples / minutes;
    return span < samples ? span : samples;
}

static int64_t estimate_bound(const struct measured *measured, double percentile, double factor,
                              bool has_factor, struct td_bound_account *account)
{
    double value = td_decaying_percentile(measured->histogram, measured->decay, percentile);
    int64_t base = td_amount_from_double(measured->unit == 1.0 ? value : value * measured->unit);
    int64_t with_margin = base + td_amount_scale(base, measured->margin_fraction);
    int64_t scaled = has_factor ? td_amount_scale(with_margin, factor) : with_margin;
    *account = (struct td_bound_account){
        .percentile = percentile,
        .base = base,
        .with_margin = with_margin,
        .confidence_factor = has_factor ? factor : 1.0,
        .is_floor = scaled < measured->floor,
    };
    account->estimate = account->is_floor ? measured->floor : scaled;
    return account->estimate;
}

static void estimate_resource(const struct measured *measured, const double percentiles[3],
                              double confidence, bool is_display_only, struct td_bounds *ret,
                              struct td_resource_account *account)
{
    double lower = td_go_pow(1.0 + LOWER_MULTIPLIER / confidence, LOWER_EXPONENT);
    double upper = td_go_pow(1.0 + UPPER_MULTIPLIER / confidence, UPPER_EXPONENT);
    account->margin_fraction = measured->margin_fraction;
    account->confidence = confidence;
    account->floor = measured->floor;
    account->is_display_only = is_display_only;
    (void)snprintf(account->reason, sizeof(account->reason), "percentile");
    ret->target = estimate_bound(measured, percentiles[0], 1.0, false, &account->target);
    ret->lower = estimate_bound(measured, percentiles[1], lower, true, &account->lower);
    /* On the first day the factor makes an upper bound of any size. Where nothing acts on it, it
     * only frightens: the percentile itself is shown. */
    ret->upper = estimate_bound(measured, percentiles[2], upper, !is_display_only, &account->upper);
    if (is_display_only && ret->upper < ret->target) {
        ret->upper = ret->target;
        account->upper.estimate = ret->target;
    }
    if (account->target.is_floor) {
        (void)snprintf(account->reason, sizeof(account->reason), "minimum");
    }
}

static void upstream_recommend(const struct td_estimator_input *input, struct td_estimate *ret,
                               struct td_account *account)
{
    const struct td_vertical_config *config = input->config;
    const struct td_aggregate *aggregate = input->aggregate;
    const struct measured cpu = {.histogram = &aggregate->cpu,
                                 .decay = &config->cpu,
                                 .unit = 1000.0,
                                 .margin_fraction = config->margin_fraction,
                                 .floor = input->min_cpu_milli};
    const struct measured memory = {.histogram = &aggregate->memory,
                                    .decay = &config->memory,
                                    .unit = 1.0,
                                    .margin_fraction = config->margin_fraction,
                                    .floor = input->min_memory_bytes};
    const double cpu_percentiles[] = {config->target_cpu_percentile, config->lower_cpu_percentile,
                                      config->upper_cpu_percentile};
    const double memory_percentiles[] = {config->target_memory_percentile,
                                         config->lower_memory_percentile,
                                         config->upper_memory_percentile};
    bool is_display_only = input->is_display_only && !config->is_upstream_exact;
    estimate_resource(&cpu, cpu_percentiles, confidence_of(aggregate, config->confidence_cpu),
                      is_display_only, &ret->cpu, &account->cpu);
    estimate_resource(&memory, memory_percentiles,
                      confidence_of(aggregate, config->confidence_memory), is_display_only,
                      &ret->memory, &account->memory);
}

const struct td_estimator td_estimator_upstream = {
    .name = "upstream",
    .title = "upstream VPA",
    .recommend = upstream_recommend,
};
