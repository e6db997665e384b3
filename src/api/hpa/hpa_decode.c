/* From the tree of a defaulted v2 object to the struct that deciders read. Types are checked first,
 * so that everything below may take them for granted; what a validated object cannot contain but a
 * tree can (an unknown policy) is refused here by name. */
#include "api/hpa/hpa.h"
#include "api/hpa/hpa_private.h"
#include "api/hpa/hpa_source.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/quantity/quantity.h"

static int32_t decode_int32(const struct td_json *object, td_str key)
{
    return (int32_t)td_json_get_int64(object, key, 0); /* its range is checked */
}

struct td_object_reference td_hpa_decode_reference(const struct td_json *reference)
{
    return (struct td_object_reference){
        .api_version = td_json_text(reference, "apiVersion"),
        .kind = td_json_text(reference, "kind"),
        .name = td_json_text(reference, "name"),
    };
}

static int decode_milli(struct td_arena *arena, const struct td_json *object, td_str key,
                        bool *ret_has, int64_t *ret_milli, struct td_error *err)
{
    const struct td_json *node = td_kind_member(object, key);
    struct td_quantity quantity;
    *ret_has = node != NULL;
    if (!node) {
        return TD_OK;
    }
    int code = td_quantity_from_json(arena, node, &quantity, err);
    if (code == TD_OK) {
        *ret_milli = td_quantity_milli(&quantity);
    }
    return code;
}

static int decode_target(struct td_arena *arena, const struct td_json *target,
                         struct td_hpa_target *ret, struct td_error *err)
{
    struct td_hpa_target made = {.type = TD_HPA_TARGET_UNKNOWN};
    td_str type = td_json_text(target, "type");
    for (size_t i = 0; i < TD_HPA_TARGET_UNKNOWN; i++) {
        if (td_str_equal(type, td_hpa_target_types[i])) {
            made.type = (enum td_hpa_target_type)i;
        }
    }
    int code =
        decode_milli(arena, target, TD_STR("value"), &made.has_value, &made.value_milli, err);
    if (code == TD_OK) {
        code = decode_milli(arena, target, TD_STR("averageValue"), &made.has_average_value,
                            &made.average_value_milli, err);
    }
    if (code < 0) {
        return code;
    }
    made.has_average_utilization = td_json_member(target, "averageUtilization") != NULL;
    made.average_utilization = decode_int32(target, TD_STR("averageUtilization"));
    *ret = made;
    return TD_OK;
}

static int decode_metric(struct td_arena *arena, const struct td_json *metric,
                         struct td_hpa_metric *ret, struct td_error *err)
{
    struct td_hpa_metric made = {.type = TD_HPA_METRIC_UNKNOWN,
                                 .type_text = td_json_text(metric, "type"),
                                 .name = TD_STR_EMPTY,
                                 .container = TD_STR_EMPTY,
                                 .described = td_hpa_decode_reference(NULL),
                                 .target = {.type = TD_HPA_TARGET_UNKNOWN}};
    for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN; i++) {
        if (td_str_equal(made.type_text, td_hpa_sources[i]->type)) {
            const struct td_json *source = td_kind_member(metric, td_hpa_sources[i]->member);
            made.type = (enum td_hpa_metric_type)i;
            td_hpa_sources[i]->decode(source, &made);
            int code = decode_target(arena, td_json_member(source, "target"), &made.target, err);
            if (code < 0) {
                return code;
            }
        }
    }
    *ret = made;
    return TD_OK;
}

static int decode_metrics(struct td_arena *arena, const struct td_json *list, struct td_hpa *ret,
                          struct td_error *err)
{
    size_t count = td_json_item_count(list);
    struct td_hpa_metric *metrics = td_arena_array(arena, struct td_hpa_metric, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        int code = decode_metric(arena, item, &metrics[i++], err);
        if (code < 0) {
            return code;
        }
    }
    ret->metrics = metrics;
    ret->metric_count = count;
    return TD_OK;
}

/* Upstream multiplies the canonical form's digits with a power of ten: 300m is 300 * 0.001, the
 * literal 0.3 would be 3 * 0.1, which is another double. */
static int decode_tolerance(struct td_arena *arena, const struct td_json *node, double *ret,
                            struct td_error *err)
{
    struct td_quantity quantity;
    int code = td_quantity_from_json(arena, node, &quantity, err);
    if (code < 0) {
        return code;
    }
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_quantity_write_canonical(&quantity, &text);
    struct td_quantity canonical;
    /* A canonical text that is longer than what is read (1e2000) is beyond any use: the first
     * reading serves. */
    if (td_quantity_parse(arena, td_arena_copy_str(arena, td_buf_str(&text)), &canonical, NULL) <
        0) {
        canonical = quantity;
    }
    *ret = td_quantity_to_double(&canonical);
    return TD_OK;
}

static int decode_policy(const struct td_json *policy, td_str path, size_t index,
                         struct td_hpa_policy *ret, struct td_error *err)
{
    td_str type = td_json_text(policy, "type");
    bool is_pods = td_str_equal(type, TD_STR("Pods"));
    if (!is_pods && !td_str_equal(type, TD_STR("Percent"))) {
        return td_error_set(err, TD_INVALID,
                            "%.*s.policies[%zu].type: \"%.*s\": must be Pods or Percent",
                            TD_STR_ARG(path), index, TD_STR_ARG(type));
    }
    *ret = (struct td_hpa_policy){
        .type = is_pods ? TD_HPA_POLICY_PODS : TD_HPA_POLICY_PERCENT,
        .value = decode_int32(policy, TD_STR("value")),
        .period_seconds = decode_int32(policy, TD_STR("periodSeconds")),
    };
    return TD_OK;
}

static int decode_policies(struct td_arena *arena, const struct td_json *list, td_str path,
                           struct td_hpa_rules *ret, struct td_error *err)
{
    size_t count = td_json_item_count(list);
    struct td_hpa_policy *policies = td_arena_array(arena, struct td_hpa_policy, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next, i++) {
        int code = decode_policy(item, path, i, &policies[i], err);
        if (code < 0) {
            return code;
        }
    }
    ret->policies = policies;
    ret->policy_count = count;
    return TD_OK;
}

static int decode_select(const struct td_json *node, td_str path, enum td_hpa_select_policy *ret,
                         struct td_error *err)
{
    static const td_str names[] = {
        [TD_HPA_SELECT_MAX] = TD_STR_INIT("Max"),
        [TD_HPA_SELECT_MIN] = TD_STR_INIT("Min"),
        [TD_HPA_SELECT_DISABLED] = TD_STR_INIT("Disabled"),
    };
    if (!node) {
        *ret = TD_HPA_SELECT_MAX;
        return TD_OK;
    }
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        if (td_str_equal(node->text, names[i])) {
            *ret = (enum td_hpa_select_policy)i;
            return TD_OK;
        }
    }
    return td_error_set(err, TD_INVALID,
                        "%.*s.selectPolicy: \"%.*s\": must be Max, Min or Disabled",
                        TD_STR_ARG(path), TD_STR_ARG(node->text));
}

static int decode_rules(struct td_arena *arena, const struct td_json *rules, td_str path,
                        struct td_hpa_rules *ret, struct td_error *err)
{
    struct td_hpa_rules made = {
        .has_window = td_json_member(rules, "stabilizationWindowSeconds") != NULL,
        .window_seconds = decode_int32(rules, TD_STR("stabilizationWindowSeconds")),
    };
    int code = decode_select(td_json_member(rules, "selectPolicy"), path, &made.select, err);
    if (code == TD_OK) {
        code = decode_policies(arena, td_json_member(rules, "policies"), path, &made, err);
    }
    const struct td_json *tolerance = td_json_member(rules, "tolerance");
    if (code == TD_OK && tolerance) {
        made.has_tolerance = true;
        code = decode_tolerance(arena, tolerance, &made.tolerance, err);
    }
    if (code == TD_OK) {
        *ret = made;
    }
    return code;
}

static int decode_spec(struct td_arena *arena, const struct td_json *spec, struct td_hpa *hpa,
                       struct td_error *err)
{
    hpa->target = td_hpa_decode_reference(td_json_member(spec, "scaleTargetRef"));
    hpa->has_min_replicas = td_json_member(spec, "minReplicas") != NULL;
    hpa->min_replicas = hpa->has_min_replicas ? decode_int32(spec, TD_STR("minReplicas")) : 1;
    hpa->max_replicas = decode_int32(spec, TD_STR("maxReplicas"));
    const struct td_json *strategy = td_json_member(spec, "selectionStrategy");
    hpa->has_selection_strategy = strategy != NULL;
    hpa->selection_strategy = strategy ? strategy->text : TD_STR_EMPTY;
    int code = decode_metrics(arena, td_json_member(spec, "metrics"), hpa, err);
    const struct td_json *behavior = td_json_member(spec, "behavior");
    hpa->has_behavior = behavior != NULL;
    if (code == TD_OK && behavior) {
        code = decode_rules(arena, td_json_member(behavior, "scaleUp"),
                            TD_STR("spec.behavior.scaleUp"), &hpa->scale_up, err);
    }
    if (code == TD_OK && behavior) {
        code = decode_rules(arena, td_json_member(behavior, "scaleDown"),
                            TD_STR("spec.behavior.scaleDown"), &hpa->scale_down, err);
    }
    return code;
}

int td_hpa_decode(struct td_arena *arena, const struct td_json *object, struct td_hpa *ret,
                  struct td_error *err)
{
    int code = td_hpa_check_types(object, err);
    if (code < 0) {
        return code;
    }
    if (td_str_equal(td_json_text(object, "apiVersion"), TD_HPA_V1)) {
        return td_error_set(err, TD_INVALID,
                            "apiVersion: \"autoscaling/v1\": must be converted to v2 first");
    }
    struct td_hpa made = {.status = td_json_member(object, "status")};
    code = td_meta_decode(arena, object, &made.meta, err);
    if (code == TD_OK) {
        code = decode_spec(arena, td_json_member(object, "spec"), &made, err);
    }
    if (code == TD_OK) {
        *ret = made;
    }
    return code;
}
