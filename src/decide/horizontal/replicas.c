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

static int64_t to_int64(double value)
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
    return to_int64((double)a * ((double)b / (double)c));
}

/* One pass over the pods. Returns what the ready ones use. */
static int64_t collect(const struct td_hpa_view *view, const struct td_hpa_calc_options *options,
                       int64_t fill_percent, struct td_hpa_calculation *calculation)
{
    struct td_hpa_basis *basis = &calculation->basis;
    int64_t usage = 0;
    for (size_t i = 0; i < view->count; i++) {
        const struct td_hpa_pod *pod = &view->pods[i];
        enum td_hpa_why why = td_hpa_pod_judge(pod, &options->grouping);
        calculation->why_count[why]++;
        if (pod->request_problem != TD_HPA_REQUEST_OK && !calculation->problem_pod) {
            calculation->problem_pod = pod;
        }
        switch (td_hpa_why_group(why)) {
        case TD_HPA_GROUP_READY:
            basis->ready++;
            usage = td_hpa_add(usage, pod->sample_milli);
            basis->request = td_hpa_add(basis->request, pod->request_milli);
            break;
        case TD_HPA_GROUP_UNREADY:
            basis->unready++;
            basis->unready_request = td_hpa_add(basis->unready_request, pod->request_milli);
            break;
        case TD_HPA_GROUP_MISSING:
            basis->missing++;
            basis->missing_request = td_hpa_add(basis->missing_request, pod->request_milli);
            basis->missing_fill = td_hpa_add(basis->missing_fill,
                                             scale_amount(pod->request_milli, fill_percent, 100));
            break;
        case TD_HPA_GROUP_IGNORED:
            break;
        }
    }
    basis->extra = view->extra_count;
    calculation->extra_count = view->extra_count;
    calculation->unowned_count = view->unowned_count;
    return usage;
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

/* What the pods are held against; the counts come with them. */
static void set_basis(struct td_hpa_calculation *calculation, enum td_hpa_measure measure,
                      const struct td_hpa_calc_options *options, int64_t target)
{
    calculation->target_milli = target;
    calculation->basis.measure = measure;
    calculation->basis.target = target;
    calculation->basis.replicas = options->replicas;
    calculation->basis.tolerance = options->tolerance;
}

static void hold(struct td_hpa_calculation *calculation, int32_t replicas, enum td_hpa_rule rule)
{
    calculation->replicas = replicas;
    calculation->rule = rule;
}

/* The first ratio decides alone when no pod is without a say. */
static bool decide_at_once(struct td_hpa_calculation *calculation)
{
    const struct td_hpa_basis *basis = &calculation->basis;
    if ((basis->unready > 0 && calculation->ratio > 1.0) || basis->missing > 0) {
        return false;
    }
    calculation->factor = basis->ready;
    if (td_hpa_is_within(basis->tolerance, calculation->ratio)) {
        hold(calculation, basis->replicas, TD_HPA_RULE_TOLERANCE);
    } else {
        hold(calculation, td_hpa_to_int32(ceil(calculation->ratio * (double)basis->ready)),
             TD_HPA_RULE_RATIO);
    }
    return true;
}

/* The second ratio, with pods filled in, may shrink a change but never turn it around. */
static void decide_filled_in(struct td_hpa_calculation *calculation)
{
    const struct td_hpa_basis *basis = &calculation->basis;
    double first = calculation->ratio;
    double second = calculation->ratio_again;
    calculation->is_filled_in = true;
    if (td_hpa_is_within(basis->tolerance, second)) {
        hold(calculation, basis->replicas, TD_HPA_RULE_TOLERANCE);
        return;
    }
    if ((first < 1.0 && second > 1.0) || (first > 1.0 && second < 1.0)) {
        hold(calculation, basis->replicas, TD_HPA_RULE_SIDES);
        return;
    }
    int32_t replicas = td_hpa_to_int32(ceil(second * (double)calculation->factor));
    if ((second < 1.0 && replicas > basis->replicas) ||
        (second > 1.0 && replicas < basis->replicas)) {
        hold(calculation, basis->replicas, TD_HPA_RULE_DIRECTION);
        return;
    }
    hold(calculation, replicas, TD_HPA_RULE_RATIO);
}

static int32_t percent_of(int64_t usage, int64_t request)
{
    int64_t percent = scale_amount(usage, 100, request);
    return percent > INT32_MAX ? INT32_MAX : percent < INT32_MIN ? INT32_MIN : (int32_t)percent;
}

/* `usage`: of the ready pods. */
static void decide_utilization(struct td_hpa_calculation *calculation, int64_t usage)
{
    const struct td_hpa_basis *basis = &calculation->basis;
    int64_t request = basis->request;
    calculation->has_utilization = true;
    calculation->utilization = percent_of(usage, request);
    calculation->usage_milli = usage / (int64_t)basis->ready;
    calculation->ratio = (double)calculation->utilization / (double)basis->target;
    if (decide_at_once(calculation)) {
        return;
    }
    calculation->factor = basis->ready + basis->extra;
    if (calculation->ratio < 1.0 || calculation->ratio > 1.0) {
        usage = td_hpa_add(usage, calculation->ratio < 1.0 ? basis->missing_fill : 0);
        request = td_hpa_add(request, basis->missing_request);
        calculation->factor += basis->missing;
    }
    if (basis->unready > 0 && calculation->ratio > 1.0) {
        request = td_hpa_add(request, basis->unready_request);
        calculation->factor += basis->unready;
    }
    if (request == 0) {
        calculation->problem = TD_HPA_CALC_NO_MATCH;
        return;
    }
    calculation->ratio_again = (double)percent_of(usage, request) / (double)basis->target;
    decide_filled_in(calculation);
}

struct td_hpa_calculation td_hpa_calc_utilization(const struct td_hpa_view *view,
                                                  const struct td_hpa_calc_options *options,
                                                  int32_t target_percent)
{
    struct td_hpa_calculation calculation = {.problem = TD_HPA_CALC_OK};
    set_basis(&calculation, TD_HPA_MEASURE_UTILIZATION, options, target_percent);
    if (!has_pods(view, &calculation)) {
        return calculation;
    }
    int64_t fill_percent = target_percent > 100 ? target_percent : 100;
    int64_t usage = collect(view, options, fill_percent, &calculation);
    if (calculation.basis.ready + view->extra_count == 0) {
        calculation.problem = TD_HPA_CALC_NO_METRICS;
    } else if (calculation.problem_pod) {
        calculation.problem = TD_HPA_CALC_REQUEST;
    } else if (calculation.basis.request == 0) {
        calculation.problem = TD_HPA_CALC_NO_MATCH;
    } else {
        decide_utilization(&calculation, usage);
    }
    return calculation;
}

/* `usage`: of the ready pods and of samples without a pod. */
static void decide_average(struct td_hpa_calculation *calculation, int64_t usage)
{
    const struct td_hpa_basis *basis = &calculation->basis;
    size_t size = basis->ready + basis->extra;
    calculation->usage_milli = usage / (int64_t)size;
    calculation->ratio = (double)calculation->usage_milli / (double)basis->target;
    if (decide_at_once(calculation)) {
        return;
    }
    if (calculation->ratio < 1.0) {
        int64_t fill;
        if (__builtin_mul_overflow(basis->target, (int64_t)basis->missing, &fill)) {
            fill = INT64_MAX;
        }
        usage = td_hpa_add(usage, fill);
    }
    if (calculation->ratio < 1.0 || calculation->ratio > 1.0) {
        size += basis->missing;
    }
    if (calculation->ratio > 1.0) {
        size += basis->unready;
    }
    calculation->factor = size;
    calculation->ratio_again = (double)(usage / (int64_t)size) / (double)basis->target;
    decide_filled_in(calculation);
}

struct td_hpa_calculation td_hpa_calc_average(const struct td_hpa_view *view,
                                              const struct td_hpa_calc_options *options,
                                              int64_t target_milli)
{
    struct td_hpa_calculation calculation = {.problem = TD_HPA_CALC_OK};
    set_basis(&calculation, TD_HPA_MEASURE_AVERAGE, options, target_milli);
    if (!has_pods(view, &calculation)) {
        return calculation;
    }
    int64_t usage = td_hpa_add(collect(view, options, 100, &calculation), view->extra_milli);
    calculation.problem_pod = NULL; /* requests do not matter */
    if (calculation.basis.ready + view->extra_count == 0) {
        calculation.problem = TD_HPA_CALC_NO_METRICS;
    } else {
        decide_average(&calculation, usage);
    }
    return calculation;
}

static void decide_value(struct td_hpa_calculation *calculation, int64_t usage_milli)
{
    const struct td_hpa_basis *basis = &calculation->basis;
    calculation->usage_milli = usage_milli;
    calculation->ratio = (double)usage_milli / (double)basis->target;
    if (basis->replicas == 0) {
        hold(calculation, td_hpa_to_int32(ceil(calculation->ratio)), TD_HPA_RULE_FROM_ZERO);
    } else if (td_hpa_is_within(basis->tolerance, calculation->ratio)) {
        hold(calculation, basis->replicas, TD_HPA_RULE_TOLERANCE);
    } else if (!basis->has_pods) {
        calculation->problem = TD_HPA_CALC_NO_READY_PODS_LISTED;
    } else {
        calculation->factor = basis->ready;
        calculation->why_count[TD_HPA_WHY_COUNTED] = calculation->factor;
        hold(calculation, td_hpa_to_int32(ceil(calculation->ratio * (double)calculation->factor)),
             TD_HPA_RULE_RATIO);
    }
}

struct td_hpa_calculation td_hpa_calc_value(const struct td_hpa_view *view,
                                            const struct td_hpa_calc_options *options,
                                            int64_t usage_milli, int64_t target_milli)
{
    struct td_hpa_calculation calculation = {.unowned_count = view->unowned_count};
    set_basis(&calculation, TD_HPA_MEASURE_VALUE, options, target_milli);
    calculation.basis.has_pods = view->count > 0;
    calculation.basis.ready = td_hpa_ready_count(view);
    decide_value(&calculation, usage_milli);
    if (calculation.problem != TD_HPA_CALC_OK && view->is_owner_filtered) {
        calculation.problem = TD_HPA_CALC_NOT_OWNED;
    }
    return calculation;
}

static void decide_per_pod(struct td_hpa_calculation *calculation, int64_t usage_milli)
{
    const struct td_hpa_basis *basis = &calculation->basis;
    double replicas = (double)basis->replicas;
    calculation->ratio = (double)usage_milli / ((double)basis->target * replicas);
    if (td_hpa_is_within(basis->tolerance, calculation->ratio)) {
        hold(calculation, basis->replicas, TD_HPA_RULE_TOLERANCE);
    } else {
        hold(calculation, td_hpa_to_int32(ceil((double)usage_milli / (double)basis->target)),
             TD_HPA_RULE_TOTAL);
    }
    /* Without replicas there is nothing to divide by; upstream then reports the smallest int64. A
     * sum at the cap is reported as the cap. */
    calculation->usage_milli = basis->replicas == 0 || usage_milli == INT64_MAX
                                   ? usage_milli
                                   : to_int64(ceil((double)usage_milli / replicas));
}

struct td_hpa_calculation td_hpa_calc_per_pod(const struct td_hpa_calc_options *options,
                                              int64_t usage_milli, int64_t target_milli)
{
    struct td_hpa_calculation calculation = {.problem = TD_HPA_CALC_OK};
    set_basis(&calculation, TD_HPA_MEASURE_PER_POD, options, target_milli);
    decide_per_pod(&calculation, usage_milli);
    return calculation;
}

/* The usage behind what status shows as `shown`: the least, or the most that is shown as it. */
static int64_t usage_behind(const struct td_hpa_basis *basis, int64_t shown, bool is_most)
{
    __int128 usage = shown;
    __int128 size = basis->ready + basis->extra;
    switch (basis->measure) {
    case TD_HPA_MEASURE_UTILIZATION:
        usage = (usage + (is_most ? 1 : 0)) * basis->request;
        usage = (usage + 99) / 100 - (is_most ? 1 : 0);
        break;
    case TD_HPA_MEASURE_AVERAGE:
        usage = usage * size + (is_most ? size - 1 : 0);
        break;
    case TD_HPA_MEASURE_PER_POD:
        usage *= basis->replicas;
        usage -= is_most || shown == 0 ? 0 : basis->replicas - 1;
        break;
    case TD_HPA_MEASURE_VALUE:
        break;
    }
    return usage > INT64_MAX ? INT64_MAX : (int64_t)usage;
}

int32_t td_hpa_calc_again(const struct td_hpa_basis *basis, int64_t shown, bool is_most)
{
    struct td_hpa_calculation calculation = {.basis = *basis};
    int64_t usage = usage_behind(basis, shown, is_most);
    switch (basis->measure) {
    case TD_HPA_MEASURE_UTILIZATION:
        decide_utilization(&calculation, usage);
        break;
    case TD_HPA_MEASURE_AVERAGE:
        decide_average(&calculation, usage);
        break;
    case TD_HPA_MEASURE_VALUE:
        decide_value(&calculation, usage);
        break;
    case TD_HPA_MEASURE_PER_POD:
        decide_per_pod(&calculation, usage);
        break;
    }
    return calculation.problem == TD_HPA_CALC_OK ? calculation.replicas : basis->replicas;
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

/* The owner of the buffer checks its appends. */
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
