#include "decide/vertical/patch/capstep.h"

void td_cap_steps_add(struct td_arena *arena, struct td_cap_steps *steps,
                      const struct td_cap_step *step)
{
    if (!steps || td_quantity_compare(&step->before, &step->after) == 0) {
        return;
    }
    steps->items =
        td_arena_grow(arena, steps->items, steps->count, &steps->cap, sizeof(*steps->items));
    steps->items[steps->count++] = *step;
}

void td_notes_add(struct td_arena *arena, struct td_notes *notes, td_str note)
{
    notes->items =
        td_arena_grow(arena, notes->items, notes->count, &notes->cap, sizeof(*notes->items));
    notes->items[notes->count++] = note;
}

static const struct {
    td_str name;
    td_str text;
} rules[] = {
    [TD_CAP_RULE_POD_RANGE_MIN] = {TD_STR_INIT("PodLimitRangeMin"),
                                   TD_STR_INIT("capped to fit Min in Pod LimitRange")},
    [TD_CAP_RULE_POD_RANGE_MAX] = {TD_STR_INIT("PodLimitRangeMax"),
                                   TD_STR_INIT("capped to fit Max in Pod LimitRange")},
    [TD_CAP_RULE_CONTAINER_RANGE_MIN] = {TD_STR_INIT("ContainerLimitRangeMin"),
                                         TD_STR_INIT("capped to fit Min in container LimitRange")},
    [TD_CAP_RULE_CONTAINER_RANGE_MAX] = {TD_STR_INIT("ContainerLimitRangeMax"),
                                         TD_STR_INIT("capped to fit Max in container LimitRange")},
    [TD_CAP_RULE_MIN_ALLOWED] = {TD_STR_INIT("MinAllowed"), TD_STR_INIT("capped to minAllowed")},
    [TD_CAP_RULE_MAX_ALLOWED] = {TD_STR_INIT("MaxAllowed"), TD_STR_INIT("capped to maxAllowed")},
    [TD_CAP_RULE_OWN_LIMIT] = {TD_STR_INIT("ContainerLimit"),
                               TD_STR_INIT("capped to container limit")},
    [TD_CAP_RULE_NODE] = {TD_STR_INIT("LargestNode"), TD_STR_INIT("capped to largest node")},
    [TD_CAP_RULE_POD_MIN_ALLOWED] = {TD_STR_INIT("PodMinAllowed"),
                                     TD_STR_INIT("scaled to minAllowed of podPolicies")},
    [TD_CAP_RULE_POD_MAX_ALLOWED] = {TD_STR_INIT("PodMaxAllowed"),
                                     TD_STR_INIT("scaled to maxAllowed of podPolicies")},
    [TD_CAP_RULE_POD_GLOBAL_MAX] = {TD_STR_INIT("PodGlobalMax"),
                                    TD_STR_INIT("scaled to --pod-recommendation-max-allowed")},
    [TD_CAP_RULE_BESIDE_TARGET] = {TD_STR_INIT("BesideTarget"),
                                   TD_STR_INIT("moved to enclose the target")},
    [TD_CAP_RULE_CONTAINER_SUM] = {TD_STR_INIT("ContainerSum"),
                                   TD_STR_INIT("raised to the sum of containers")},
    [TD_CAP_RULE_POD_REQUEST] = {TD_STR_INIT("PodRequest"),
                                 TD_STR_INIT("raised to the Pod request")},
    [TD_CAP_RULE_INIT_LIMIT] = {TD_STR_INIT("InitContainerLimit"),
                                TD_STR_INIT("raised to the limit of an init container")},
    [TD_CAP_RULE_POD_LIMIT] = {TD_STR_INIT("PodLimit"), TD_STR_INIT("lowered to the Pod limit")},
    [TD_CAP_RULE_BOOST] = {TD_STR_INIT("StartupBoost"), TD_STR_INIT("boosted during startup")},
};

static const td_str value_names[] = {
    [TD_CAP_TARGET] = TD_STR_INIT("target"),    [TD_CAP_LOWER] = TD_STR_INIT("lowerBound"),
    [TD_CAP_UPPER] = TD_STR_INIT("upperBound"), [TD_CAP_REQUEST] = TD_STR_INIT("request"),
    [TD_CAP_LIMIT] = TD_STR_INIT("limit"),
};

td_str td_cap_rule_text(enum td_cap_rule rule)
{
    return rules[rule].text;
}

void td_cap_step_write(const struct td_cap_step *step, struct td_buf *out)
{
    if (step->container.len > 0) {
        (void)td_buf_append_format(out, "container '%.*s' ", TD_STR_ARG(step->container));
    } else {
        (void)td_buf_append(out, TD_STR("pod ")); /* the caller checks the buffer once */
    }
    (void)td_buf_append_format(out, "%.*s %.*s ", TD_STR_ARG(step->resource),
                               TD_STR_ARG(value_names[step->value]));
    td_quantity_write(&step->before, out);
    (void)td_buf_append(out, TD_STR(" -> "));
    td_quantity_write(&step->after, out);
    (void)td_buf_append_format(out, ", %.*s", TD_STR_ARG(rules[step->rule].text));
}

struct td_json *td_cap_steps_json(struct td_arena *arena, const struct td_cap_steps *steps)
{
    struct td_json *array = td_json_new_array(arena);
    for (size_t i = 0; i < steps->count; i++) {
        const struct td_cap_step *step = &steps->items[i];
        const struct {
            td_str key;
            td_str text;
        } members[] = {
            {TD_STR("container"), step->container},
            {TD_STR("resource"), step->resource},
            {TD_STR("value"), value_names[step->value]},
            {TD_STR("rule"), rules[step->rule].name},
            {TD_STR("before"), td_quantity_text(arena, &step->before)},
            {TD_STR("after"), td_quantity_text(arena, &step->after)},
        };
        struct td_json *object = td_json_new_object(arena);
        for (size_t m = step->container.len > 0 ? 0 : 1; m < sizeof(members) / sizeof(members[0]);
             m++) {
            td_json_set(arena, object, members[m].key, td_json_new_string(arena, members[m].text));
        }
        td_json_append(array, object);
    }
    return array;
}
