/* From the tree of a defaulted v2 object to the struct that deciders read. Types are checked first,
 * so that everything below may take them for granted; what a validated object cannot contain but a
 * tree can (an unknown policy) is refused here by name. */
#include "api/hpa/hpa.h"
#include "api/hpa/hpa_private.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/quantity/quantity.h"

#define DECODE_TARGET_COUNT 3

static int32_t decode_int32(const struct td_json *object, td_str key)
{
    return (int32_t)td_json_get_int64(object, key, 0); /* its range is checked */
}

static td_str decode_text(const struct td_json *object, td_str key)
{
    return td_json_get_str(object, key, TD_STR_EMPTY);
}

static struct td_object_reference decode_reference(const struct td_json *reference)
{
    return (struct td_object_reference){
        .api_version = decode_text(reference, TD_STR("apiVersion")),
        .kind = decode_text(reference, TD_STR("kind")),
        .name = decode_text(reference, TD_STR("name")),
    };
}

static int decode_milli(struct td_arena *arena, const struct td_json *object, td_str key,
                        bool *ret_has, int64_t *ret_milli, struct td_error *err)
{
    const struct td_json *node = td_hpa_member(object, key);
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
    static const td_str names[DECODE_TARGET_COUNT] = {
        [TD_HPA_UTILIZATION] = TD_STR_INIT("Utilization"),
        [TD_HPA_VALUE] = TD_STR_INIT("Value"),
        [TD_HPA_AVERAGE_VALUE] = TD_STR_INIT("AverageValue"),
    };
    struct td_hpa_target made = {.type = TD_HPA_TARGET_UNKNOWN};
    td_str type = decode_text(target, TD_STR("type"));
    for (size_t i = 0; i < DECODE_TARGET_COUNT; i++) {
        if (td_str_equal(type, names[i])) {
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
    made.has_average_utilization = td_hpa_member(target, TD_STR("averageUtilization")) != NULL;
    made.average_utilization = decode_int32(target, TD_STR("averageUtilization"));
    *ret = made;
    return TD_OK;
}

struct decode_source {
    td_str type;   /* of the metric */
    td_str member; /* that holds it */
    bool is_resource;
};

static const struct decode_source decode_sources[] = {
    [TD_HPA_RESOURCE] = {TD_STR_INIT("Resource"), TD_STR_INIT("resource"), true},
    [TD_HPA_CONTAINER_RESOURCE] = {TD_STR_INIT("ContainerResource"),
                                   TD_STR_INIT("containerResource"), true},
    [TD_HPA_PODS] = {TD_STR_INIT("Pods"), TD_STR_INIT("pods"), false},
    [TD_HPA_OBJECT] = {TD_STR_INIT("Object"), TD_STR_INIT("object"), false},
    [TD_HPA_EXTERNAL] = {TD_STR_INIT("External"), TD_STR_INIT("external"), false},
};

static int decode_metric(struct td_arena *arena, const struct td_json *metric,
                         struct td_hpa_metric *ret, struct td_error *err)
{
    struct td_hpa_metric made = {.type = TD_HPA_METRIC_UNKNOWN,
                                 .type_text = decode_text(metric, TD_STR("type")),
                                 .target = {.type = TD_HPA_TARGET_UNKNOWN}};
    size_t type = 0;
    while (type < TD_HPA_METRIC_UNKNOWN &&
           !td_str_equal(made.type_text, decode_sources[type].type)) {
        type++;
    }
    made.type = (enum td_hpa_metric_type)type;
    if (made.type != TD_HPA_METRIC_UNKNOWN) {
        const struct td_json *source = td_hpa_member(metric, decode_sources[type].member);
        const struct td_json *identifier = td_hpa_member(source, TD_STR("metric"));
        made.name =
            decode_text(decode_sources[type].is_resource ? source : identifier, TD_STR("name"));
        made.container = decode_text(source, TD_STR("container"));
        made.described = decode_reference(td_hpa_member(source, TD_STR("describedObject")));
        made.metric_selector = td_hpa_member(identifier, TD_STR("selector"));
        int code = decode_target(arena, td_hpa_member(source, TD_STR("target")), &made.target, err);
        if (code < 0) {
            return code;
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
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
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
    td_str type = decode_text(policy, TD_STR("type"));
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
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
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
        .has_window = td_hpa_member(rules, TD_STR("stabilizationWindowSeconds")) != NULL,
        .window_seconds = decode_int32(rules, TD_STR("stabilizationWindowSeconds")),
    };
    int code = decode_select(td_hpa_member(rules, TD_STR("selectPolicy")), path, &made.select, err);
    if (code == TD_OK) {
        code = decode_policies(arena, td_hpa_member(rules, TD_STR("policies")), path, &made, err);
    }
    const struct td_json *tolerance = td_hpa_member(rules, TD_STR("tolerance"));
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
    hpa->target = decode_reference(td_hpa_member(spec, TD_STR("scaleTargetRef")));
    hpa->has_min_replicas = td_hpa_member(spec, TD_STR("minReplicas")) != NULL;
    hpa->min_replicas = hpa->has_min_replicas ? decode_int32(spec, TD_STR("minReplicas")) : 1;
    hpa->max_replicas = decode_int32(spec, TD_STR("maxReplicas"));
    const struct td_json *strategy = td_hpa_member(spec, TD_STR("selectionStrategy"));
    hpa->has_selection_strategy = strategy != NULL;
    hpa->selection_strategy = strategy ? strategy->text : TD_STR_EMPTY;
    int code = decode_metrics(arena, td_hpa_member(spec, TD_STR("metrics")), hpa, err);
    const struct td_json *behavior = td_hpa_member(spec, TD_STR("behavior"));
    hpa->has_behavior = behavior != NULL;
    if (code == TD_OK && behavior) {
        code = decode_rules(arena, td_hpa_member(behavior, TD_STR("scaleUp")),
                            TD_STR("spec.behavior.scaleUp"), &hpa->scale_up, err);
    }
    if (code == TD_OK && behavior) {
        code = decode_rules(arena, td_hpa_member(behavior, TD_STR("scaleDown")),
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
    if (td_str_equal(decode_text(object, TD_STR("apiVersion")), TD_HPA_V1)) {
        return td_error_set(err, TD_INVALID,
                            "apiVersion: \"autoscaling/v1\": must be converted to v2 first");
    }
    struct td_hpa made = {.status = td_hpa_member(object, TD_STR("status"))};
    code = td_meta_decode(arena, object, &made.meta, err);
    if (code == TD_OK) {
        code = decode_spec(arena, td_hpa_member(object, TD_STR("spec")), &made, err);
    }
    if (code == TD_OK) {
        *ret = made;
    }
    return code;
}
