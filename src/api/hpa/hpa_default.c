/*
 * Defaults of HPAs in the version that they have, and the names that members are stored under.
 */
#include "api/hpa/hpa.h"
#include "api/hpa/hpa_private.h"
#include "base/error.h"

struct td_json *td_hpa_new_cpu_metric(struct td_arena *arena, bool is_status, int64_t percent)
{
    struct td_json *value = td_json_new_object(arena);
    if (!is_status) {
        td_json_set_str(arena, value, TD_STR("type"), TD_STR("Utilization"));
    }
    td_json_set_int64(arena, value, TD_STR("averageUtilization"), percent);
    struct td_json *resource = td_json_new_object(arena);
    td_json_set_str(arena, resource, TD_STR("name"), TD_STR("cpu"));
    td_json_set(arena, resource, is_status ? TD_STR("current") : TD_STR("target"), value);
    struct td_json *metric = td_json_new_object(arena);
    td_json_set_str(arena, metric, TD_STR("type"), TD_STR("Resource"));
    td_json_set(arena, metric, TD_STR("resource"), resource);
    return metric;
}

struct default_policy {
    td_str type;
    int64_t value;
};

#define DEFAULT_PERIOD_SECONDS 15

/* Doubling or four pods, whichever is more, every period; and down to nothing at once. */
static const struct default_policy default_up[] = {{TD_STR_INIT("Pods"), 4},
                                                   {TD_STR_INIT("Percent"), 100}};
static const struct default_policy default_down[] = {{TD_STR_INIT("Percent"), 100}};

static struct td_json *default_policies(struct td_arena *arena,
                                        const struct default_policy *policies, size_t count)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        struct td_json *policy = td_json_new_object(arena);
        td_json_set_str(arena, policy, TD_STR("type"), policies[i].type);
        td_json_set_int64(arena, policy, TD_STR("value"), policies[i].value);
        td_json_set_int64(arena, policy, TD_STR("periodSeconds"), DEFAULT_PERIOD_SECONDS);
        td_json_append(list, policy);
    }
    return list;
}

/* A list that was given stays as it is, even when it is empty. */
static void default_rules(struct td_arena *arena, struct td_json *rules,
                          const struct default_policy *policies, size_t count)
{
    if (!td_json_member(rules, "selectPolicy")) {
        td_json_set_str(arena, rules, TD_STR("selectPolicy"), TD_STR("Max"));
    }
    if (!td_json_member(rules, "policies")) {
        td_json_set(arena, rules, TD_STR("policies"), default_policies(arena, policies, count));
    }
}

/* spec.behavior's missing members (hpa.md 1.2), of a v2 tree. */
static void default_behavior(struct td_arena *arena, struct td_json *behavior)
{
    struct td_json *up = td_json_ensure_object(arena, behavior, TD_STR("scaleUp"));
    if (!td_json_member(up, "stabilizationWindowSeconds")) {
        td_json_set_int64(arena, up, TD_STR("stabilizationWindowSeconds"), 0);
    }
    default_rules(arena, up, default_up, TD_COUNT(default_up));
    /* scaleDown's window stays unset: the controller's flag decides it. */
    struct td_json *down = td_json_ensure_object(arena, behavior, TD_STR("scaleDown"));
    default_rules(arena, down, default_down, TD_COUNT(default_down));
}

void td_hpa_rename_strategy(struct td_arena *arena, struct td_json *object)
{
    struct td_json *spec = td_json_member(object, "spec");
    const struct td_json *value = td_json_get(spec, TD_HPA_STRATEGY_ALIAS_FIELD);
    bool is_v2 = !td_str_equal(td_json_text(object, "apiVersion"), TD_HPA_V1);
    if (value && is_v2) {
        td_json_set_copy(arena, spec, TD_STR("selectionStrategy"), value);
        (void)td_json_remove(spec, TD_HPA_STRATEGY_ALIAS_FIELD); /* it was just found */
    }
}

int td_hpa_default(struct td_arena *arena, struct td_json *object, struct td_error *err)
{
    td_hpa_rename_strategy(arena, object);
    int code = td_hpa_check_types(object, err);
    if (code < 0) {
        return code;
    }
    td_str version = td_json_text(object, "apiVersion");
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    if (!td_json_member(spec, "minReplicas")) {
        td_json_set_int64(arena, spec, TD_STR("minReplicas"), 1);
    }
    /* v1 has neither metrics nor behavior; its CPU default waits for conversion, which sees the
     * annotations. */
    if (!td_str_equal(version, TD_HPA_V1)) {
        const struct td_json *metrics = td_json_member(spec, "metrics");
        if (!metrics || metrics->count == 0) {
            struct td_json *list = td_json_new_array(arena);
            td_json_append(list, td_hpa_new_cpu_metric(arena, false, TD_HPA_DEFAULT_CPU_PERCENT));
            td_json_set(arena, spec, TD_STR("metrics"), list);
        }
        struct td_json *behavior = td_json_member(spec, "behavior");
        if (behavior) {
            default_behavior(arena, behavior);
        }
    }
    td_hpa_to_wire(arena, td_hpa_schema_of(version), object);
    return TD_OK;
}
