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

static const td_str rule_texts[] = {
    [TD_CAP_RULE_POD_RANGE_MIN] = TD_STR_INIT("capped to fit Min in Pod LimitRange"),
    [TD_CAP_RULE_POD_RANGE_MAX] = TD_STR_INIT("capped to fit Max in Pod LimitRange"),
    [TD_CAP_RULE_CONTAINER_RANGE_MIN] = TD_STR_INIT("capped to fit Min in container LimitRange"),
    [TD_CAP_RULE_CONTAINER_RANGE_MAX] = TD_STR_INIT("capped to fit Max in container LimitRange"),
    [TD_CAP_RULE_MIN_ALLOWED] = TD_STR_INIT("capped to minAllowed"),
    [TD_CAP_RULE_MAX_ALLOWED] = TD_STR_INIT("capped to maxAllowed"),
    [TD_CAP_RULE_OWN_LIMIT] = TD_STR_INIT("capped to container limit"),
    [TD_CAP_RULE_NODE] = TD_STR_INIT("capped to largest node"),
    [TD_CAP_RULE_POD_MIN_ALLOWED] = TD_STR_INIT("scaled to minAllowed of podPolicies"),
    [TD_CAP_RULE_POD_MAX_ALLOWED] = TD_STR_INIT("scaled to maxAllowed of podPolicies"),
    [TD_CAP_RULE_POD_GLOBAL_MAX] = TD_STR_INIT("scaled to --pod-recommendation-max-allowed"),
    [TD_CAP_RULE_BESIDE_TARGET] = TD_STR_INIT("moved to enclose the target"),
    [TD_CAP_RULE_CONTAINER_SUM] = TD_STR_INIT("raised to the sum of containers"),
    [TD_CAP_RULE_POD_REQUEST] = TD_STR_INIT("raised to the Pod request"),
    [TD_CAP_RULE_INIT_LIMIT] = TD_STR_INIT("raised to the limit of an init container"),
    [TD_CAP_RULE_POD_LIMIT] = TD_STR_INIT("lowered to the Pod limit"),
    [TD_CAP_RULE_BOOST] = TD_STR_INIT("boosted during startup"),
};

td_str td_cap_rule_text(enum td_cap_rule rule)
{
    return rule_texts[rule];
}
