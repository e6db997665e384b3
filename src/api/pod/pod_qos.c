/* The quality of service class of a pod. */
#include "api/object_check.h"
#include "api/pod/pod_validate.h"
#include "base/error.h"
#include "kube/quantity/quantity.h"

static bool qos_positive(struct td_arena *arena, const struct td_json *list, td_str name,
                         struct td_quantity *ret)
{
    const struct td_json *value = td_kind_member(list, name);
    return value && td_quantity_from_json(arena, value, ret, NULL) == TD_OK &&
           td_quantity_sign(ret) > 0;
}

static const td_str qos_lists[] = {TD_STR_INIT("containers"), TD_STR_INIT("initContainers")};
static const td_str qos_names[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};

struct qos_state {
    struct td_arena *arena;
    bool has_any;
    bool has_all_limits;
    struct td_quantity sums[2][2]; /* by resource; requests, limits */
    bool has_sum[2][2];
};

static void qos_add(struct qos_state *state, const struct td_json *resources)
{
    for (size_t r = 0; r < 2; r++) {
        struct td_quantity values[2];
        bool has[2] = {
            qos_positive(state->arena, td_json_member(resources, "requests"), qos_names[r],
                         &values[0]),
            qos_positive(state->arena, td_json_member(resources, "limits"), qos_names[r],
                         &values[1]),
        };
        for (size_t side = 0; side < 2; side++) {
            if (has[side] && state->has_sum[r][side]) {
                td_quantity_add(state->arena, &state->sums[r][side], &values[side]);
            } else if (has[side]) {
                state->sums[r][side] = values[side];
                state->has_sum[r][side] = true;
            }
        }
        state->has_any = state->has_any || has[0] || has[1];
        state->has_all_limits = state->has_all_limits && has[1];
    }
}

static td_str qos_class(const struct qos_state *state)
{
    if (!state->has_any) {
        return TD_STR("BestEffort");
    }
    bool is_guaranteed = state->has_all_limits;
    for (size_t r = 0; r < 2; r++) {
        is_guaranteed = is_guaranteed && state->has_sum[r][0] == state->has_sum[r][1] &&
                        (!state->has_sum[r][0] ||
                         td_quantity_compare(&state->sums[r][0], &state->sums[r][1]) == 0);
    }
    return is_guaranteed ? TD_STR("Guaranteed") : TD_STR("Burstable");
}

/* Resources of the pod as a whole, where given, decide alone. */
td_str td_pod_qos_class(struct td_arena *arena, const struct td_json *pod)
{
    const struct td_json *spec = td_kind_spec(pod);
    struct qos_state state = {.arena = arena, .has_all_limits = true};
    const struct td_json *own = td_json_member(spec, "resources");
    if (td_json_member(own, "requests") || td_json_member(own, "limits")) {
        qos_add(&state, own);
        return qos_class(&state);
    }
    for (size_t i = 0; i < TD_COUNT(qos_lists); i++) {
        const struct td_json *item = td_json_first_item(td_kind_member(spec, qos_lists[i]));
        for (; item; item = item->next) {
            qos_add(&state, td_json_member(item, "resources"));
        }
    }
    return qos_class(&state);
}
