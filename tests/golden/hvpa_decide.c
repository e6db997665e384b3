/* Topics of the coordinator: decisions in the five modes, coupling, order of writes, and whole runs
 * of both deciders in a loop. */
#include <math.h>

#include "decide/tandem/actuation.h"
#include "decide/tandem/coupling.h"
#include "decide/tandem/decide.h"
#include "golden/golden.h"
#include "golden/hpa_support.h"
#include "support/closed_loop.h"

#define WEIGHT_TOLERANCE 1e-9

/* A whole Hvpa around the spec of a case. */
static int read_hvpa(struct td_arena *arena, const struct td_json *spec, struct td_hvpa *ret,
                     struct td_error *err)
{
    static const td_str text =
        TD_STR_INIT("{\"apiVersion\":\"autoscaling.k8s.io/v1alpha1\",\"kind\":\"Hvpa\","
                    "\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"}}");
    struct td_json *object = NULL;
    int code = td_json_parse(arena, text, NULL, &object, err);
    if (code < 0) {
        return code;
    }
    td_json_set(arena, object, TD_STR("spec"), td_json_copy(arena, spec, false));
    return td_hvpa_decode(arena, object, ret, NULL, err);
}

static enum td_hvpa_resource read_resource(const struct td_json *object)
{
    return td_str_equal(golden_text(object, TD_STR("resource")), TD_STR("cpu")) ? TD_HVPA_CPU
                                                                                : TD_HVPA_MEMORY;
}

/* A quantity of the case in milli-cores or bytes. */
static struct td_tandem_bound read_amount(struct td_arena *arena, const struct td_json *object,
                                          const char *key, enum td_hvpa_resource resource)
{
    const struct td_json *node = td_json_get(object, td_str_from(key));
    struct td_quantity quantity;
    if (!td_json_is(node, TD_JSON_TYPE_STRING) ||
        td_quantity_parse(arena, node->text, &quantity, NULL) < 0) {
        return (struct td_tandem_bound){.is_set = false};
    }
    return (struct td_tandem_bound){
        .is_set = true,
        .amount =
            resource == TD_HVPA_CPU ? td_quantity_milli(&quantity) : td_quantity_value(&quantity),
    };
}

static struct td_json *amount_json(struct td_arena *arena, enum td_hvpa_resource resource,
                                   int64_t amount)
{
    struct td_quantity quantity = resource == TD_HVPA_CPU
                                      ? td_quantity_new_milli(amount, TD_QUANTITY_DECIMAL_SI)
                                      : td_quantity_new(amount, TD_QUANTITY_BINARY_SI);
    return td_json_new_string(arena, td_quantity_text(arena, &quantity));
}

static void set_of_row(struct td_arena *arena, struct td_json *out, td_str container,
                       enum td_hvpa_resource resource, struct td_json *value)
{
    td_json_set(arena, td_json_ensure_object(arena, out, container),
                td_hvpa_resource_name(resource), value);
}

static struct td_tandem_time read_time(const struct td_json *object, td_str key)
{
    if (!td_json_is(td_json_get(object, key), TD_JSON_TYPE_STRING)) {
        return (struct td_tandem_time){.is_set = false};
    }
    return (struct td_tandem_time){.is_set = true, .at = golden_instant(object, key)};
}

static bool is_in_list(const struct td_json *list, td_str container)
{
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        if (td_str_equal(golden_text(item, TD_STR("container")), container)) {
            return true;
        }
    }
    return false;
}

static void read_coupled(struct td_arena *arena, const struct td_json *in,
                         struct td_tandem_row *row)
{
    const struct td_json *list = td_json_get(in, TD_STR("coupled"));
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        if (td_str_equal(golden_text(item, TD_STR("container")), row->container) &&
            read_resource(item) == row->resource) {
            row->coupling = (struct td_tandem_coupling){
                .is_coupled = true,
                .utilization = (int32_t)td_json_get_int64(item, TD_STR("utilization"), 0),
                .usage = read_amount(arena, item, "usage", row->resource),
            };
        }
    }
}

static struct td_tandem_row read_row(struct td_arena *arena, const struct td_json *in,
                                     const struct td_json *item)
{
    enum td_hvpa_resource resource = read_resource(item);
    struct td_tandem_row row = {
        .container = golden_text(item, TD_STR("container")),
        .resource = resource,
        .request = read_amount(arena, item, "request", resource).amount,
        .target = read_amount(arena, item, "target", resource).amount,
        .uncapped = read_amount(arena, item, "uncappedTarget", resource).amount,
        .lower = read_amount(arena, item, "lowerBound", resource),
        .upper = read_amount(arena, item, "upperBound", resource),
        .min_allowed = read_amount(arena, item, "minAllowed", resource),
        .max_allowed = read_amount(arena, item, "maxAllowed", resource),
        .limit = read_amount(arena, item, "limit", resource),
        .is_requests_only =
            td_str_equal(golden_text(item, TD_STR("controlledValues")), TD_STR("RequestsOnly")),
    };
    row.is_emergency = is_in_list(td_json_get(in, TD_STR("emergency")), row.container);
    read_coupled(arena, in, &row);
    return row;
}

static struct td_tandem_input read_input(struct td_arena *arena, const struct td_json *in,
                                         const struct td_hvpa *hvpa)
{
    const struct td_json *hpa = td_json_get(in, TD_STR("hpa"));
    const struct td_json *vpa = td_json_get(in, TD_STR("vpa"));
    const struct td_json *list = td_json_get(vpa, TD_STR("recommendations"));
    const struct td_json *times = td_json_get(in, TD_STR("timestamps"));
    td_str resize = golden_text(vpa, TD_STR("resize"));
    size_t count = list ? list->count : 0;
    struct td_tandem_row *rows = td_arena_array(arena, struct td_tandem_row, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        rows[i++] = read_row(arena, in, item);
    }
    return (struct td_tandem_input){
        .hvpa = hvpa,
        .replicas = (int32_t)td_json_get_int64(in, TD_STR("currentReplicas"), 0),
        .is_horizontal_valid = td_json_get_bool(hpa, TD_STR("valid"), false),
        .desired_replicas = (int32_t)td_json_get_int64(hpa, TD_STR("desiredReplicas"), 0),
        .is_vertical_valid = td_json_get_bool(vpa, TD_STR("valid"), false),
        .rows = rows,
        .row_count = count,
        .resize = td_str_equal(resize, TD_STR("InProgress"))   ? TD_TANDEM_RESIZE_IN_PROGRESS
                  : td_str_equal(resize, TD_STR("Infeasible")) ? TD_TANDEM_RESIZE_INFEASIBLE
                                                               : TD_TANDEM_RESIZE_NONE,
        .last_horizontal = read_time(times, TD_STR("lastHorizontal")),
        .last_vertical = read_time(times, TD_STR("lastVertical")),
        .below_thresholds_since = read_time(times, TD_STR("belowThresholdsSince")),
        .now = golden_instant(in, TD_STR("now")),
    };
}

static struct td_json *blocked_json(struct td_arena *arena, const struct td_tandem_input *in,
                                    const struct td_tandem_decision *decision)
{
    struct td_json *list = td_json_new_array(arena);
    if (decision->horizontal_block != TD_TANDEM_BLOCK_NONE) {
        struct td_json *item = td_json_new_object(arena);
        golden_set_text(arena, item, TD_STR("axis"), TD_STR("horizontal"));
        golden_set_text(arena, item, TD_STR("reason"),
                        td_tandem_block_name(decision->horizontal_block));
        td_json_append(list, item);
    }
    for (size_t i = 0; i < in->row_count; i++) {
        if (decision->outcomes[i].block == TD_TANDEM_BLOCK_NONE) {
            continue;
        }
        struct td_json *item = td_json_new_object(arena);
        golden_set_text(arena, item, TD_STR("axis"), TD_STR("vertical"));
        golden_set_text(arena, item, TD_STR("container"), in->rows[i].container);
        golden_set_text(arena, item, TD_STR("resource"),
                        td_hvpa_resource_name(in->rows[i].resource));
        golden_set_text(arena, item, TD_STR("reason"),
                        td_tandem_block_name(decision->outcomes[i].block));
        td_json_append(list, item);
    }
    return list;
}

static void set_blend(struct td_arena *arena, struct td_json *out,
                      const struct td_tandem_blend *blend)
{
    if (blend->has_stage) {
        golden_set_text(arena, out, TD_STR("stage"), td_tandem_stage_name(blend->stage));
    }
    if (blend->has_weights) {
        struct td_json *weights = td_json_ensure_object(arena, out, TD_STR("weights"));
        td_json_set(arena, weights, TD_STR("horizontal"),
                    td_json_new_double(arena, blend->horizontal));
        td_json_set(arena, weights, TD_STR("vertical"), td_json_new_double(arena, blend->vertical));
    }
}

static int run_decide(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                      struct td_error *err)
{
    struct td_hvpa hvpa;
    int code = read_hvpa(arena, td_json_get(in, TD_STR("spec")), &hvpa, err);
    if (code < 0) {
        return code;
    }
    struct td_tandem_input input = read_input(arena, in, &hvpa);
    struct td_tandem_outcome *outcomes =
        td_arena_array(arena, struct td_tandem_outcome, input.row_count);
    struct td_tandem_decision decision;
    td_tandem_decide(&input, outcomes, &decision);
    struct td_json *out = td_json_new_object(arena);
    golden_set_int(arena, out, TD_STR("replicas"), decision.replicas);
    struct td_json *requests = td_json_ensure_object(arena, out, TD_STR("requests"));
    struct td_json *limits = td_json_ensure_object(arena, out, TD_STR("limits"));
    for (size_t i = 0; i < input.row_count; i++) {
        const struct td_tandem_row *row = &input.rows[i];
        if (outcomes[i].request > 0) {
            set_of_row(arena, requests, row->container, row->resource,
                       amount_json(arena, row->resource, outcomes[i].request));
        }
        if (outcomes[i].limit.is_set) {
            set_of_row(arena, limits, row->container, row->resource,
                       amount_json(arena, row->resource, outcomes[i].limit.amount));
        }
    }
    golden_set_text(arena, out, TD_STR("axis"), td_tandem_axis_name(decision.axis));
    /* The cases have one name for a recommendation that changes nothing and for none at all. */
    enum td_tandem_reason reason =
        decision.reason == TD_TANDEM_NO_CHANGE ? TD_TANDEM_NO_RECOMMENDATION : decision.reason;
    golden_set_text(arena, out, TD_STR("reason"), td_tandem_reason_name(reason));
    td_json_set(arena, out, TD_STR("blocked"), blocked_json(arena, &input, &decision));
    td_json_set(arena, out, TD_STR("emergency"), td_json_new_bool(arena, decision.is_emergency));
    set_blend(arena, out, &decision.blend);
    *ret_out = out;
    return TD_OK;
}

/* Texts that are quantities compare by value, others as they are. */
static bool is_same_text(td_str a, td_str b)
{
    td_auto_arena arena;
    td_arena_init(&arena, (size_t)1 << 16);
    struct td_quantity first;
    struct td_quantity second;
    if (td_str_equal(a, b)) {
        return true;
    }
    return td_quantity_parse(&arena, a, &first, NULL) == TD_OK &&
           td_quantity_parse(&arena, b, &second, NULL) == TD_OK &&
           td_quantity_compare(&first, &second) == 0;
}

static bool is_same_number(const struct td_json *a, const struct td_json *b)
{
    double first = 0;
    double second = 0;
    return td_json_to_double(a, &first) && td_json_to_double(b, &second) &&
           fabs(first - second) <= WEIGHT_TOLERANCE * fmax(1, fabs(first));
}

static bool is_same_value(const struct td_json *expected, const struct td_json *got, int depth);

/* Lists named blocked and coupled are sets; the other lists are in order. */
static bool is_same_list(const struct td_json *expected, const struct td_json *got, int depth)
{
    bool is_set = td_str_equal(expected->key, TD_STR("blocked")) ||
                  td_str_equal(expected->key, TD_STR("coupled"));
    if (expected->count != got->count) {
        return false;
    }
    const struct td_json *other = td_json_first_child(got);
    for (const struct td_json *item = td_json_first_child(expected); item; item = item->next) {
        const struct td_json *found = is_set ? td_json_first_child(got) : other;
        while (is_set && found && !is_same_value(item, found, depth + 1)) {
            found = found->next;
        }
        if (!found || !is_same_value(item, found, depth + 1)) {
            return false;
        }
        other = other->next;
    }
    return true;
}

/* Below the top an object has the same members; what the top leaves out is not compared. */
static bool is_same_object(const struct td_json *expected, const struct td_json *got, int depth)
{
    if (depth > 0 && expected->count != got->count) {
        return false;
    }
    for (const struct td_json *item = td_json_first_child(expected); item; item = item->next) {
        const struct td_json *other = td_json_get(got, item->key);
        if (!other || !is_same_value(item, other, depth + 1)) {
            return false;
        }
    }
    return true;
}

#define COMPARED_DEPTH_MAX 16

static bool is_same_value(const struct td_json *expected, const struct td_json *got, int depth)
{
    if (depth > COMPARED_DEPTH_MAX || expected->type != got->type) {
        return false;
    }
    switch (expected->type) {
    case TD_JSON_TYPE_OBJECT:
        return is_same_object(expected, got, depth);
    case TD_JSON_TYPE_ARRAY:
        return is_same_list(expected, got, depth);
    case TD_JSON_TYPE_STRING:
        return is_same_text(expected->text, got->text);
    case TD_JSON_TYPE_NUMBER:
        return is_same_number(expected, got);
    default:
        return td_json_equal(expected, got);
    }
}

static bool is_same_decision(const struct td_json *expected, const struct td_json *got)
{
    return is_same_value(expected, got, 0);
}

/* Coupling: the containers of a case as rows and as requests. */
struct coupled_case {
    struct td_tandem_row *rows; /* controlled ones */
    int64_t *in_template;       /* of each row */
    size_t row_count;
    struct td_tandem_request *requests; /* of all containers */
    size_t request_count;
};

static struct td_tandem_bound policy_bound(const struct td_resource_list *resources,
                                           enum td_hvpa_resource resource)
{
    const struct td_quantity *quantity =
        td_resource_list_get(resources, td_hvpa_resource_name(resource));
    if (!quantity) {
        return (struct td_tandem_bound){.is_set = false};
    }
    return (struct td_tandem_bound){
        .is_set = true,
        .amount =
            resource == TD_HVPA_CPU ? td_quantity_milli(quantity) : td_quantity_value(quantity),
    };
}

static void read_coupled_row(struct td_arena *arena, const struct td_hvpa *hvpa,
                             const struct td_json *item, const struct td_tandem_request *request,
                             struct coupled_case *ret)
{
    const struct td_container_policy *policy =
        td_vpa_container_policy(&hvpa->vpa.policy, request->container);
    enum td_hvpa_resource resource = request->resource;
    struct td_tandem_row row = {
        .container = request->container,
        .resource = resource,
        .request = request->live,
        .target = read_amount(arena, item, "target", resource).amount,
        .coupling = td_tandem_coupling_of(hvpa, request->container, resource),
    };
    row.uncapped = row.target;
    row.coupling.usage = read_amount(arena, item, "usage", resource);
    if (policy) {
        row.min_allowed = policy_bound(&policy->min_allowed, resource);
        row.max_allowed = policy_bound(&policy->max_allowed, resource);
    }
    ret->in_template[ret->row_count] = request->in_template;
    ret->rows[ret->row_count++] = row;
}

static struct coupled_case read_coupled_case(struct td_arena *arena, const struct td_hvpa *hvpa,
                                             const struct td_json *in)
{
    const struct td_json *list = td_json_get(in, TD_STR("containers"));
    size_t max = (list ? list->count : 0) * TD_HVPA_RESOURCE_COUNT;
    struct coupled_case ret = {
        .rows = td_arena_array(arena, struct td_tandem_row, max),
        .in_template = td_arena_array(arena, int64_t, max),
        .requests = td_arena_array(arena, struct td_tandem_request, max),
    };
    for (const struct td_json *container = td_json_first_child(list); container;
         container = container->next) {
        const struct td_json *resources = td_json_get(container, TD_STR("resources"));
        for (int i = 0; i < TD_HVPA_RESOURCE_COUNT; i++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)i;
            const struct td_json *item = td_json_get(resources, td_hvpa_resource_name(resource));
            if (!item) {
                continue;
            }
            struct td_tandem_request request = {
                .container = golden_text(container, TD_STR("name")),
                .resource = resource,
                .live = read_amount(arena, item, "request", resource).amount,
                .in_template = read_amount(arena, item, "template", resource).amount,
            };
            ret.requests[ret.request_count++] = request;
            if (td_tandem_controls(hvpa, request.container, resource)) {
                read_coupled_row(arena, hvpa, item, &request, &ret);
            }
        }
    }
    return ret;
}

static void set_coupled_row(struct td_arena *arena, const struct td_hvpa *hvpa,
                            const struct coupled_case *coupled, size_t i, struct td_json *out)
{
    const struct td_tandem_row *row = &coupled->rows[i];
    int64_t target = td_tandem_wish_of(&(struct td_tandem_input){.hvpa = hvpa}, row).target;
    set_of_row(arena, td_json_get(out, TD_STR("targets")), row->container, row->resource,
               amount_json(arena, row->resource, target));
    if (!row->coupling.is_coupled) {
        return;
    }
    struct td_json *item = td_json_new_object(arena);
    golden_set_text(arena, item, TD_STR("container"), row->container);
    golden_set_text(arena, item, TD_STR("resource"), td_hvpa_resource_name(row->resource));
    golden_set_int(arena, item, TD_STR("utilization"), row->coupling.utilization);
    td_json_append(td_json_get(out, TD_STR("coupled")), item);
    struct td_tandem_request request = {.container = row->container,
                                        .resource = row->resource,
                                        .live = row->request,
                                        .in_template = coupled->in_template[i]};
    int64_t measured = td_tandem_measured_against(hvpa, &request);
    if (measured != 0) {
        set_of_row(arena, td_json_get(out, TD_STR("measuredAgainst")), row->container,
                   row->resource, amount_json(arena, row->resource, measured));
    }
    double gain = 0;
    if (hvpa->coupling != TD_HVPA_REFERENCE && td_tandem_gain(row, target, &gain)) {
        set_of_row(arena, td_json_get(out, TD_STR("gain")), row->container, row->resource,
                   td_json_new_double(arena, gain));
    }
}

static void set_condition(struct td_arena *arena, struct td_json *out,
                          enum td_tandem_coupled reason)
{
    struct td_json *condition = td_json_ensure_object(arena, out, TD_STR("condition"));
    golden_set_text(arena, condition, TD_STR("type"), TD_STR("Coupled"));
    golden_set_text(arena, condition, TD_STR("status"),
                    reason == TD_TANDEM_COUPLED_FALSE ? TD_STR("False") : TD_STR("True"));
    if (reason != TD_TANDEM_COUPLED_FALSE) {
        golden_set_text(arena, condition, TD_STR("reason"), td_tandem_coupled_name(reason));
    }
}

static int run_coupling(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                        struct td_error *err)
{
    struct td_hvpa hvpa;
    int code = read_hvpa(arena, td_json_get(in, TD_STR("spec")), &hvpa, err);
    if (code < 0) {
        return code;
    }
    struct coupled_case coupled = read_coupled_case(arena, &hvpa, in);
    struct td_json *out = td_json_new_object(arena);
    golden_set_text(arena, out, TD_STR("coupling"), td_hvpa_coupling_name(hvpa.coupling));
    td_json_set(arena, out, TD_STR("coupled"), td_json_new_array(arena));
    (void)td_json_ensure_object(arena, out, TD_STR("targets"));
    (void)td_json_ensure_object(arena, out, TD_STR("measuredAgainst"));
    (void)td_json_ensure_object(arena, out, TD_STR("gain"));
    for (size_t i = 0; i < coupled.row_count; i++) {
        set_coupled_row(arena, &hvpa, &coupled, i, out);
    }
    struct td_json *averages = td_json_new_array(arena);
    for (size_t i = 0; i < hvpa.hpa.metric_count; i++) {
        struct td_quantity average;
        if (td_tandem_average_value(&hvpa, i, coupled.requests, coupled.request_count, &average)) {
            struct td_json *item = td_json_new_object(arena);
            golden_set_int(arena, item, TD_STR("metric"), (int64_t)i);
            golden_set_text(arena, item, TD_STR("averageValue"), td_quantity_text(arena, &average));
            td_json_append(averages, item);
        }
    }
    td_json_set(arena, out, TD_STR("averageValues"), averages);
    set_condition(
        arena, out,
        td_tandem_coupled_of(&hvpa, coupled.rows, coupled.in_template, coupled.row_count).reason);
    *ret_out = out;
    return TD_OK;
}

/* The rows of an order: every request of `after`, with what it was before. */
static size_t read_order(struct td_arena *arena, const struct td_json *in,
                         struct td_tandem_row *rows, struct td_tandem_outcome *outcomes, size_t max)
{
    const struct td_json *before = td_json_get_path(in, "before.requests");
    const struct td_json *after = td_json_get_path(in, "after.requests");
    size_t count = 0;
    for (const struct td_json *container = td_json_first_child(after); container;
         container = container->next) {
        const struct td_json *was = td_json_get(before, container->key);
        for (const struct td_json *item = td_json_first_child(container); item && count < max;
             item = item->next) {
            enum td_hvpa_resource resource =
                td_str_equal(item->key, TD_STR("cpu")) ? TD_HVPA_CPU : TD_HVPA_MEMORY;
            const char *key = resource == TD_HVPA_CPU ? "cpu" : "memory";
            rows[count] = (struct td_tandem_row){
                .container = container->key,
                .resource = resource,
                .request = read_amount(arena, was, key, resource).amount,
            };
            outcomes[count++].request = read_amount(arena, container, key, resource).amount;
        }
    }
    return count;
}

static struct td_json *step_json(struct td_arena *arena, const struct td_tandem_input *input,
                                 const struct td_tandem_decision *decision,
                                 enum td_tandem_step step)
{
    struct td_json *action = td_json_new_object(arena);
    static const td_str names[] = {
        [TD_TANDEM_STEP_SCALE] = TD_STR_INIT("scale"),
        [TD_TANDEM_STEP_RESIZE] = TD_STR_INIT("resize"),
        [TD_TANDEM_STEP_PATCH_TEMPLATE] = TD_STR_INIT("patchTemplate"),
        [TD_TANDEM_STEP_WAIT_READY] = TD_STR_INIT("waitReady"),
    };
    golden_set_text(arena, action, TD_STR("do"), names[step]);
    if (step == TD_TANDEM_STEP_SCALE) {
        golden_set_int(arena, action, TD_STR("from"), input->replicas);
        golden_set_int(arena, action, TD_STR("to"), decision->replicas);
    }
    if (step == TD_TANDEM_STEP_RESIZE || step == TD_TANDEM_STEP_PATCH_TEMPLATE) {
        struct td_json *requests = td_json_ensure_object(arena, action, TD_STR("requests"));
        for (size_t i = 0; i < input->row_count; i++) {
            const struct td_tandem_row *row = &input->rows[i];
            if (decision->outcomes[i].request != row->request) {
                set_of_row(arena, requests, row->container, row->resource,
                           amount_json(arena, row->resource, decision->outcomes[i].request));
            }
        }
    }
    return action;
}

#define ORDER_ROWS_MAX 64

static int run_order(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                     struct td_error *err)
{
    (void)err; /* every case has an order */
    struct td_hvpa hvpa = {
        .actuation = td_str_equal(golden_text(in, TD_STR("actuation")), TD_STR("Template"))
                         ? TD_HVPA_ACTUATE_TEMPLATE
                         : TD_HVPA_ACTUATE_PODS,
        .paused = td_json_get_bool(in, TD_STR("paused"), false),
    };
    struct td_tandem_row rows[ORDER_ROWS_MAX];
    struct td_tandem_outcome outcomes[ORDER_ROWS_MAX];
    struct td_tandem_input input = {
        .hvpa = &hvpa,
        .replicas =
            (int32_t)td_json_get_int64(td_json_get(in, TD_STR("before")), TD_STR("replicas"), 0),
        .rows = rows,
        .row_count = read_order(arena, in, rows, outcomes, ORDER_ROWS_MAX),
    };
    struct td_tandem_decision decision = {
        .replicas =
            (int32_t)td_json_get_int64(td_json_get(in, TD_STR("after")), TD_STR("replicas"), 0),
        .outcomes = outcomes,
        .outcome_count = input.row_count,
    };
    struct td_tandem_plan plan = td_tandem_plan_of(&hvpa, &input, &decision);
    struct td_json *actions = td_json_new_array(arena);
    for (size_t i = 0; i < plan.count; i++) {
        td_json_append(actions, step_json(arena, &input, &decision, plan.steps[i]));
    }
    struct td_json *out = td_json_new_object(arena);
    td_json_set(arena, out, TD_STR("actions"), actions);
    *ret_out = out;
    return TD_OK;
}

/* A whole run. */
static enum td_hvpa_coupling read_coupling(const struct td_json *in)
{
    td_str text = golden_text(in, TD_STR("coupling"));
    if (td_str_equal(text, TD_STR("Reference"))) {
        return TD_HVPA_REFERENCE;
    }
    return td_str_equal(text, TD_STR("Reconcile")) ? TD_HVPA_RECONCILE : TD_HVPA_COUPLING_NONE;
}

static struct closed_load *read_loads(struct td_arena *arena, const struct td_json *in,
                                      size_t *ret_count)
{
    const struct td_json *list = td_json_get(in, TD_STR("load"));
    struct closed_load *loads = td_arena_array(arena, struct closed_load, list ? list->count : 0);
    size_t count = 0;
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        int64_t first_tick = 0;
        (void)td_json_to_int64(td_json_at(item, 0), &first_tick);
        (void)td_json_to_int64(td_json_at(item, 1), &loads[count].demand_milli);
        loads[count++].first_tick = (int32_t)first_tick;
    }
    *ret_count = count;
    return loads;
}

static struct td_json *change_json(struct td_arena *arena, const struct closed_tick *tick,
                                   int32_t number, bool has_reason)
{
    struct td_json *item = td_json_new_object(arena);
    golden_set_int(arena, item, TD_STR("tick"), number);
    golden_set_int(arena, item, TD_STR("replicas"), tick->replicas);
    td_json_set(arena, item, TD_STR("request"),
                amount_json(arena, TD_HVPA_CPU, tick->request_milli));
    if (has_reason) {
        golden_set_text(arena, item, TD_STR("reason"), td_tandem_reason_name(tick->reason));
    }
    return item;
}

static int run_loop(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                    struct td_error *err)
{
    const struct td_json *spec = td_json_get(in, TD_STR("spec"));
    const struct td_json *start = td_json_get(in, TD_STR("start"));
    bool has_spec = td_json_is(spec, TD_JSON_TYPE_OBJECT);
    struct td_hvpa hvpa;
    int code = has_spec ? read_hvpa(arena, spec, &hvpa, err) : TD_OK;
    if (code < 0) {
        return code;
    }
    int64_t peak_ticks = td_json_get_int64(in, TD_STR("vpaPeakTicks"), 1);
    struct closed_loop options = {
        .hvpa = has_spec ? &hvpa : NULL,
        .coupling = read_coupling(in),
        .utilization = (int32_t)td_json_get_int64(in, TD_STR("utilization"), 0),
        .min_replicas = (int32_t)td_json_get_int64(in, TD_STR("minReplicas"), 1),
        .max_replicas = (int32_t)td_json_get_int64(in, TD_STR("maxReplicas"), 1),
        .min_allowed_milli = read_amount(arena, in, "minAllowed", TD_HVPA_CPU).amount,
        .max_allowed_milli = read_amount(arena, in, "maxAllowed", TD_HVPA_CPU).amount,
        .replicas = (int32_t)td_json_get_int64(start, TD_STR("replicas"), 1),
        .request_milli = read_amount(arena, start, "request", TD_HVPA_CPU).amount,
        .scale_in_stabilization_seconds =
            td_json_get_int64(in, TD_STR("hpaScaleInStabilizationSeconds"), 0),
        .peak_ticks = (int32_t)peak_ticks,
        .ticks = (int32_t)td_json_get_int64(in, TD_STR("ticks"), 0),
        .start = {.unix_seconds = 1773100800}, /* 2026-03-10T00:00:00Z */
    };
    options.loads = read_loads(arena, in, &options.load_count);
    struct closed_tick *ticks = td_arena_array(arena, struct closed_tick, (size_t)options.ticks);
    closed_loop_run(arena, &options, ticks);
    struct td_json *out = td_json_new_object(arena);
    struct td_json *changes = td_json_new_array(arena);
    int32_t last_change = -1;
    for (int32_t i = 0; i < options.ticks; i++) {
        if (ticks[i].is_changed) {
            last_change = i;
            td_json_append(changes, change_json(arena, &ticks[i], i, has_spec));
        }
    }
    td_json_set(arena, out, TD_STR("changes"), changes);
    struct td_json *end = td_json_ensure_object(arena, out, TD_STR("final"));
    golden_set_int(arena, end, TD_STR("replicas"), ticks[options.ticks - 1].replicas);
    td_json_set(arena, end, TD_STR("request"),
                amount_json(arena, TD_HVPA_CPU, ticks[options.ticks - 1].request_milli));
    int64_t quiet = peak_ticks + 2 > 10 ? peak_ticks + 2 : 10;
    bool is_settled = last_change < options.ticks - quiet;
    td_json_set(arena, out, TD_STR("settled"), td_json_new_bool(arena, is_settled));
    *ret_out = out;
    return TD_OK;
}

const struct golden_topic golden_hvpa_decide[] = {
    {.name = "hvpa/decide-hpapreferred", .run = run_decide, .is_same = is_same_decision},
    {.name = "hvpa/decide-hpabiased", .run = run_decide, .is_same = is_same_decision},
    {.name = "hvpa/decide-vpabiased", .run = run_decide, .is_same = is_same_decision},
    {.name = "hvpa/decide-mixed", .run = run_decide, .is_same = is_same_decision},
    {.name = "hvpa/decide-ratiobased", .run = run_decide, .is_same = is_same_decision},
    {.name = "hvpa/coupling", .run = run_coupling, .is_same = is_same_decision},
    {.name = "hvpa/actuation-order", .run = run_order, .is_same = is_same_decision},
    {.name = "hvpa/closed-loop", .run = run_loop, .is_same = is_same_decision},
    {.name = NULL},
};
