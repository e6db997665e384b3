/* Upstream builds a map of samples, removes and adds entries and sums it twice. Only sums and
 * counts of it matter, so one pass over the pods collects them for every way the first ratio can
 * fall: what the counted pods use and ask for, and what pods without a sample would add. */
#include "decide/horizontal/replicas.h"

#include <math.h>

struct td_hpa_tolerance td_hpa_tolerance_of(const struct td_hpa *hpa, double cluster,
                                            bool is_configurable)
{
    struct td_hpa_tolerance tolerance = {.down = cluster, .up = cluster};
    if (hpa->has_behavior && is_configurable) {
        if (hpa->scale_down.has_tolerance) {
            tolerance.down = hpa->scale_down.tolerance;
        }
        if (hpa->scale_up.has_tolerance) {
            tolerance.up = hpa->scale_up.tolerance;
        }
    }
    return tolerance;
}

bool td_hpa_is_within(struct td_hpa_tolerance tolerance, double ratio)
{
    return (1.0 - tolerance.down) <= ratio && ratio <= (1.0 + tolerance.up);
}

void td_hpa_tolerance_write(struct td_hpa_tolerance tolerance, struct td_buf *out)
{
    (void)td_buf_append_format(out, "[down:%.1f%%, up:%.1f%%]", tolerance.down * 100.,
                               tolerance.up * 100.); /* the caller checks the buffer */
}

int32_t td_hpa_to_int32(double value)
{
    if (isnan(value)) {
        return 0;
    }
    if (value >= (double)INT32_MAX) {
        return INT32_MAX;
    }
    return value <= (double)INT32_MIN ? INT32_MIN : (int32_t)value;
}

int64_t td_hpa_to_int64(double value)
{
    if (isnan(value)) {
        return 0;
    }
    if (value >= 9223372036854775808.0) {
        return INT64_MAX;
    }
    return value <= -9223372036854775808.0 ? INT64_MIN : (int64_t)value;
}

/* a * b / c, truncated; through double only where the product leaves int64. */
static int64_t scale_amount(int64_t a, int64_t b, int64_t c)
{
    int64_t product;
    if (!__builtin_mul_overflow(a, b, &product)) {
        return product / c;
    }
    return td_hpa_to_int64((double)a * ((double)b / (double)c));
}

/* What one pass over the pods collects. */
struct sums {
    size_t ready;
    size_t unready;
    size_t missing;
    int64_t usage;           /* of ready pods */
    int64_t request;         /* of ready pods */
    int64_t missing_request; /* what pods without a sample ask for */
    int64_t missing_fill;    /* and what they count as on the way down */
    int64_t unready_request;
    const struct td_hpa_pod *problem_pod; /* the first without a request */
};

static struct sums collect(const struct td_hpa_view *view, const struct td_hpa_grouping *grouping,
                           int64_t fill_percent, struct td_hpa_calculation *calculation)
{
    struct sums sums = {.problem_pod = NULL};
    for (size_t i = 0; i < view->count; i++) {
        const struct td_hpa_pod *pod = &view->pods[i];
        enum td_hpa_why why = td_hpa_pod_judge(pod, grouping);
        calculation->why_count[why]++;
        if (pod->request_problem != TD_HPA_REQUEST_OK && !sums.problem_pod) {
            sums.problem_pod = pod;
        }
        switch (td_hpa_why_group(why)) {
        case TD_HPA_GROUP_READY:
            sums.ready++;
            sums.usage = td_hpa_add(sums.usage, pod->sample_milli);
            sums.request = td_hpa_add(sums.request, pod->request_milli);
            break;
        case TD_HPA_GROUP_UNREADY:
            sums.unready++;
            sums.unready_request = td_hpa_add(sums.unready_request, pod->request_milli);
            break;
        case TD_HPA_GROUP_MISSING:
            sums.missing++;
            sums.missing_request = td_hpa_add(sums.missing_request, pod->request_milli);
            sums.missing_fill =
                td_hpa_add(sums.missing_fill, scale_amount(pod->request_milli, fill_percent, 100));
            break;
        case TD_HPA_GROUP_IGNORED:
            break;
        }
    }
    calculation->extra_count = view->extra_count;
    calculation->unowned_count = view->unowned_count;
    return sums;
}

/* True when there is something to reckon with. */
static bool has_pods(const struct td_hpa_view *view, struct td_hpa_calculation *calculation)
{
    calculation->unowned_count = view->unowned_count;
    if (view->count == 0 && !view->is_owner_filtered) {
        calculation->problem = TD_HPA_CALC_NO_PODS;
        return false;
    }
    return true;
}

static void hold(struct td_hpa_calculation *calculation, int32_t replicas, enum td_hpa_rule rule)
{
    calculation->replicas = replicas;
    calculation->rule = rule;
}

/* The first ratio decides alone when no pod is without a say. */
static bool decide_at_once(struct td_hpa_calculation *calculation, const struct sums *sums,
                           const struct td_hpa_calc_options *options)
{
    if ((sums->unready > 0 && calculation->ratio > 1.0) || sums->missing > 0) {
        return false;
    }
    calculation->factor = sums->ready;
    if (td_hpa_is_within(options->tolerance, calculation->ratio)) {
        hold(calculation, options->replicas, TD_HPA_RULE_TOLERANCE);
    } else {
        hold(calculation, td_hpa_to_int32(ceil(calculation->ratio * (double)sums->ready)),
             TD_HPA_RULE_RATIO);
    }
    return true;
}

/* The second ratio, with pods filled in, may shrink a change but never turn it around. */
static void decide_filled_in(struct td_hpa_calculation *calculation,
                             const struct td_hpa_calc_options *options)
{
    double first = calculation->ratio;
    double second = calculation->ratio_again;
    calculation->is_filled_in = true;
    if (td_hpa_is_within(options->tolerance, second)) {
        hold(calculation, options->replicas, TD_HPA_RULE_TOLERANCE);
        return;
    }
    if ((first < 1.0 && second > 1.0) || (first > 1.0 && second < 1.0)) {
        hold(calculation, options->replicas, TD_HPA_RULE_SIDES);
        return;
    }
    int32_t replicas = td_hpa_to_int32(ceil(second * (double)calculation->factor));
    if ((second < 1.0 && replicas > options->replicas) ||
        (second > 1.0 && replicas < options->replicas)) {
        hold(calculation, options->replicas, TD_HPA_RULE_DIRECTION);
        return;
    }
    hold(calculation, replicas, TD_HPA_RULE_RATIO);
}

static int32_t percent_of(int64_t usage, int64_t request)
{
    int64_t percent = scale_amount(usage, 100, request);
    return percent > INT32_MAX ? INT32_MAX : percent < INT32_MIN ? INT32_MIN : (int32_t)percent;
}

struct td_hpa_calculation td_hpa_calc_utilization(const struct td_hpa_view *view,
                                                  const struct td_hpa_calc_options *options,
                                                  int32_t target_percent)
{
    struct td_hpa_calculation calculation = {.target_milli = target_percent};
    if (!has_pods(view, &calculation)) {
        return calculation;
    }
    int64_t fill_percent = target_percent > 100 ? target_percent : 100;
    struct sums sums = collect(view, &options->grouping, fill_percent, &calculation);
    if (sums.ready + view->extra_count == 0) {
        calculation.problem = TD_HPA_CALC_NO_METRICS;
        return calculation;
    }
    if (sums.problem_pod) {
        calculation.problem = TD_HPA_CALC_REQUEST;
        calculation.problem_pod = sums.problem_pod;
        return calculation;
    }
    if (sums.request == 0) {
        calculation.problem = TD_HPA_CALC_NO_MATCH;
        return calculation;
    }
    calculation.has_utilization = true;
    calculation.utilization = percent_of(sums.usage, sums.request);
    calculation.usage_milli = sums.usage / (int64_t)sums.ready;
    calculation.ratio = (double)calculation.utilization / (double)target_percent;
    if (decide_at_once(&calculation, &sums, options)) {
        return calculation;
    }
    int64_t usage = sums.usage;
    int64_t request = sums.request;
    calculation.factor = sums.ready + view->extra_count;
    if (calculation.ratio < 1.0 || calculation.ratio > 1.0) {
        usage = td_hpa_add(usage, calculation.ratio < 1.0 ? sums.missing_fill : 0);
        request = td_hpa_add(request, sums.missing_request);
        calculation.factor += sums.missing;
    }
    if (sums.unready > 0 && calculation.ratio > 1.0) {
        request = td_hpa_add(request, sums.unready_request);
        calculation.factor += sums.unready;
    }
    if (request == 0) {
        calculation.problem = TD_HPA_CALC_NO_MATCH;
        return calculation;
    }
    calculation.ratio_again = (double)percent_of(usage, request) / (double)target_percent;
    decide_filled_in(&calculation, options);
    return calculation;
}

struct td_hpa_calculation td_hpa_calc_average(const struct td_hpa_view *view,
                                              const struct td_hpa_calc_options *options,
                                              int64_t target_milli)
{
    struct td_hpa_calculation calculation = {.target_milli = target_milli};
    if (!has_pods(view, &calculation)) {
        return calculation;
    }
    struct sums sums = collect(view, &options->grouping, 100, &calculation);
    size_t size = sums.ready + view->extra_count;
    if (size == 0) {
        calculation.problem = TD_HPA_CALC_NO_METRICS;
        return calculation;
    }
    int64_t usage = td_hpa_add(sums.usage, view->extra_milli);
    calculation.usage_milli = usage / (int64_t)size;
    calculation.ratio = (double)calculation.usage_milli / (double)target_milli;
    if (decide_at_once(&calculation, &sums, options)) {
        return calculation;
    }
    if (calculation.ratio < 1.0) {
        int64_t fill;
        if (__builtin_mul_overflow(target_milli, (int64_t)sums.missing, &fill)) {
            fill = INT64_MAX;
        }
        usage = td_hpa_add(usage, fill);
    }
    if (calculation.ratio < 1.0 || calculation.ratio > 1.0) {
        size += sums.missing;
    }
    if (calculation.ratio > 1.0) {
        size += sums.unready;
    }
    calculation.factor = size;
    calculation.ratio_again = (double)(usage / (int64_t)size) / (double)target_milli;
    decide_filled_in(&calculation, options);
    return calculation;
}

struct td_hpa_calculation td_hpa_calc_value(const struct td_hpa_view *view,
                                            const struct td_hpa_calc_options *options,
                                            int64_t usage_milli, int64_t target_milli)
{
    struct td_hpa_calculation calculation = {
        .usage_milli = usage_milli,
        .target_milli = target_milli,
        .ratio = (double)usage_milli / (double)target_milli,
        .unowned_count = view->unowned_count,
    };
    if (options->replicas == 0) {
        hold(&calculation, td_hpa_to_int32(ceil(calculation.ratio)), TD_HPA_RULE_FROM_ZERO);
        return calculation;
    }
    if (td_hpa_is_within(options->tolerance, calculation.ratio)) {
        hold(&calculation, options->replicas, TD_HPA_RULE_TOLERANCE);
        return calculation;
    }
    if (view->count == 0) {
        calculation.problem =
            view->is_owner_filtered ? TD_HPA_CALC_NOT_OWNED : TD_HPA_CALC_NO_READY_PODS_LISTED;
        return calculation;
    }
    calculation.factor = td_hpa_ready_count(view);
    calculation.why_count[TD_HPA_WHY_COUNTED] = calculation.factor;
    hold(&calculation, td_hpa_to_int32(ceil(calculation.ratio * (double)calculation.factor)),
         TD_HPA_RULE_RATIO);
    return calculation;
}

struct td_hpa_calculation td_hpa_calc_per_pod(const struct td_hpa_calc_options *options,
                                              int64_t usage_milli, int64_t target_milli)
{
    double replicas = (double)options->replicas;
    struct td_hpa_calculation calculation = {
        .target_milli = target_milli,
        .ratio = (double)usage_milli / ((double)target_milli * replicas),
    };
    if (td_hpa_is_within(options->tolerance, calculation.ratio)) {
        hold(&calculation, options->replicas, TD_HPA_RULE_TOLERANCE);
    } else {
        hold(&calculation, td_hpa_to_int32(ceil((double)usage_milli / (double)target_milli)),
             TD_HPA_RULE_TOTAL);
    }
    /* Without replicas there is nothing to divide by; upstream then reports the smallest int64. A
     * sum at the cap is reported as the cap. */
    calculation.usage_milli = options->replicas == 0 || usage_milli == INT64_MAX
                                  ? usage_milli
                                  : td_hpa_to_int64(ceil((double)usage_milli / replicas));
    return calculation;
}

int64_t td_hpa_sum_values(const int64_t *values_milli, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (values_milli[i] > 0 && sum > INT64_MAX - values_milli[i]) {
            return INT64_MAX;
        }
        sum = td_hpa_add(sum, values_milli[i]);
    }
    return sum;
}

int64_t td_hpa_sum_averages(const int64_t *values_milli, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (__builtin_add_overflow(sum, values_milli[i], &sum) || sum < 0) {
            return INT64_MAX;
        }
    }
    return sum;
}

static void write_request_problem(const struct td_hpa_pod *pod, td_str resource, struct td_buf *out)
{
    switch ((enum td_hpa_request_problem)pod->request_problem) {
    case TD_HPA_REQUEST_MISSING:
        (void)td_buf_append_format(out, "missing request for %.*s in container %.*s of Pod %.*s",
                                   TD_STR_ARG(resource), TD_STR_ARG(pod->request_container),
                                   TD_STR_ARG(pod->name));
        break;
    case TD_HPA_REQUEST_NO_CONTAINER:
        (void)td_buf_append_format(out, "container %.*s not found in Pod %.*s",
                                   TD_STR_ARG(pod->request_container), TD_STR_ARG(pod->name));
        break;
    case TD_HPA_REQUEST_NO_POD_LEVEL:
        (void)td_buf_append_format(out, "missing pod-level request for %.*s in Pod %.*s",
                                   TD_STR_ARG(resource), TD_STR_ARG(pod->name));
        break;
    case TD_HPA_REQUEST_OK:
        break;
    }
}

/* Appends are checked by whoever owns the buffer. */
void td_hpa_calc_write_problem(const struct td_hpa_calculation *calculation, td_str resource,
                               const struct td_hpa *hpa, struct td_buf *out)
{
    static const td_str no_pods =
        TD_STR_INIT("no pods returned by selector while calculating replica count");
    switch (calculation->problem) {
    case TD_HPA_CALC_OK:
        break;
    case TD_HPA_CALC_NO_PODS:
        (void)td_buf_append(out, no_pods);
        break;
    case TD_HPA_CALC_NO_READY_PODS_LISTED:
        (void)td_buf_append(out, TD_STR("unable to calculate ready pods: "));
        (void)td_buf_append(out, no_pods);
        break;
    case TD_HPA_CALC_NOT_OWNED:
        (void)td_buf_append_format(out,
                                   "no pods owned by %.*s %.*s/%.*s among pods matched by selector",
                                   TD_STR_ARG(hpa->target.kind), TD_STR_ARG(hpa->meta.namespace),
                                   TD_STR_ARG(hpa->target.name));
        break;
    case TD_HPA_CALC_NO_METRICS:
        (void)td_buf_append(
            out, TD_STR("did not receive metrics for targeted pods (pods might be unready)"));
        break;
    case TD_HPA_CALC_REQUEST:
        write_request_problem(calculation->problem_pod, resource, out);
        break;
    case TD_HPA_CALC_NO_MATCH:
        (void)td_buf_append(out, TD_STR("no metrics returned matched known pods"));
        break;
    }
}
