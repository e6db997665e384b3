#include "api/hpa/hpa.h"
#include "api/hpa/hpa_private.h"
#include "base/error.h"

struct td_json *td_hpa_new_cpu_metric(struct td_arena *arena, int64_t percent)
{
    struct td_json *target = td_json_new_object(arena);
    td_json_set(arena, target, TD_STR("type"), td_json_new_string(arena, TD_STR("Utilization")));
    td_json_set(arena, target, TD_STR("averageUtilization"), td_json_new_int64(arena, percent));
    struct td_json *resource = td_json_new_object(arena);
    td_json_set(arena, resource, TD_STR("name"), td_json_new_string(arena, TD_STR("cpu")));
    td_json_set(arena, resource, TD_STR("target"), target);
    struct td_json *metric = td_json_new_object(arena);
    td_json_set(arena, metric, TD_STR("type"), td_json_new_string(arena, TD_STR("Resource")));
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
        td_json_set(arena, policy, TD_STR("type"), td_json_new_string(arena, policies[i].type));
        td_json_set(arena, policy, TD_STR("value"), td_json_new_int64(arena, policies[i].value));
        td_json_set(arena, policy, TD_STR("periodSeconds"),
                    td_json_new_int64(arena, DEFAULT_PERIOD_SECONDS));
        td_json_append(list, policy);
    }
    return list;
}

/* A list that was given stays as it is, even when it is empty. */
static void default_rules(struct td_arena *arena, struct td_json *rules,
                          const struct default_policy *policies, size_t count)
{
    if (!td_hpa_member(rules, TD_STR("selectPolicy"))) {
        td_json_set(arena, rules, TD_STR("selectPolicy"), td_json_new_string(arena, TD_STR("Max")));
    }
    if (!td_hpa_member(rules, TD_STR("policies"))) {
        td_json_set(arena, rules, TD_STR("policies"), default_policies(arena, policies, count));
    }
}

/* spec.behavior's missing members (hpa.md 1.2), of a v2 tree. */
static void default_behavior(struct td_arena *arena, struct td_json *behavior)
{
    struct td_json *up = td_json_ensure_object(arena, behavior, TD_STR("scaleUp"));
    if (!td_hpa_member(up, TD_STR("stabilizationWindowSeconds"))) {
        td_json_set(arena, up, TD_STR("stabilizationWindowSeconds"), td_json_new_int64(arena, 0));
    }
    default_rules(arena, up, default_up, sizeof(default_up) / sizeof(default_up[0]));
    /* scaleDown's window stays unset: the controller's flag decides it. */
    struct td_json *down = td_json_ensure_object(arena, behavior, TD_STR("scaleDown"));
    default_rules(arena, down, default_down, sizeof(default_down) / sizeof(default_down[0]));
}

int td_hpa_default(struct td_arena *arena, struct td_json *object, struct td_error *err)
{
    int code = td_hpa_check_types(object, err);
    if (code < 0) {
        return code;
    }
    td_str version = td_json_get_str(object, TD_STR("apiVersion"), TD_STR_EMPTY);
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    if (!td_hpa_member(spec, TD_STR("minReplicas"))) {
        td_json_set(arena, spec, TD_STR("minReplicas"), td_json_new_int64(arena, 1));
    }
    /* v1 has neither metrics nor behavior; its CPU default waits for conversion, which sees the
     * annotations. */
    if (!td_str_equal(version, TD_HPA_V1)) {
        const struct td_json *metrics = td_hpa_member(spec, TD_STR("metrics"));
        if (!metrics || metrics->count == 0) {
            struct td_json *list = td_json_new_array(arena);
            td_json_append(list, td_hpa_new_cpu_metric(arena, TD_HPA_DEFAULT_CPU_PERCENT));
            td_json_set(arena, spec, TD_STR("metrics"), list);
        }
        struct td_json *behavior = td_hpa_member(spec, TD_STR("behavior"));
        if (behavior) {
            default_behavior(arena, behavior);
        }
    }
    td_hpa_to_wire(arena, td_hpa_schema_of(version), object);
    return TD_OK;
}
