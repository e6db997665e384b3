/*
 * What the updater looks at in one namespace, and a pass over it that calls nobody: each action is
 * answered as if it had been done, so that budgets are used up as they would be.
 */
#include "base/error.h"
#include "base/os/loop.h"
#include "control/updater/update_private.h"

size_t update_gather_vpas(const struct td_sight *sight, struct td_arena *arena, td_str namespace,
                          const struct td_vpa *const **ret)
{
    const struct td_cache *cache = td_sight_cache(sight, TD_SIGHT_VPAS);
    const struct td_vpa **vpas =
        td_arena_array(arena, const struct td_vpa *, td_cache_count(cache) + 1);
    size_t count = 0;
    size_t position = 0;
    for (const struct td_sight_object *object; (object = td_cache_next(cache, &position));) {
        struct td_json *tree;
        if (!td_str_equal(object->head.namespace, namespace)) {
            continue;
        }
        struct td_vpa *vpa = td_arena_new(arena, struct td_vpa);
        if (td_sight_tree(arena, object, &tree, NULL) == TD_OK &&
            td_vpa_decode(arena, tree, vpa, NULL) == TD_OK) {
            vpas[count++] = vpa;
        }
    }
    *ret = vpas;
    return count;
}

size_t update_gather_pods(struct td_sight *sight, struct td_arena *arena, td_str namespace,
                          const struct td_vertical_pod **ret)
{
    size_t count = 0;
    const struct td_sight_pod *pod = NULL;
    while ((pod = td_sight_next_pod(sight, namespace, pod))) {
        count++;
    }
    struct td_vertical_pod *pods = td_arena_array(arena, struct td_vertical_pod, count + 1);
    count = 0;
    struct update_decoder decoder = {.sight = sight, .arena = arena};
    while ((pod = td_sight_next_pod(sight, namespace, pod))) {
        bool is_over = td_str_equal(pod->phase, TD_STR("Succeeded")) ||
                       td_str_equal(pod->phase, TD_STR("Failed"));
        if (pod->node.len > 0 && !is_over &&
            update_decode_pod(&decoder, &pod->object, &pods[count])) {
            count++;
        }
    }
    *ret = pods;
    return count;
}

static const struct td_limit_ranges *dry_limits(void *context, td_str namespace)
{
    return td_sight_limits(context, namespace);
}

int td_update_dry(const struct td_update_options *options, struct td_arena *arena, td_str namespace,
                  struct td_updater_notes *ret, struct td_error *err)
{
    struct td_sight *sight = options->control.sight;
    struct td_updater_state state;
    struct td_updater_pass pass;
    struct td_updater_action action;
    td_updater_state_init(&state);
    struct td_updater_input input = {
        .arena = arena,
        .now = td_clock_wall(td_loop_clock(options->control.loop)),
        .config = &options->config,
        .gates = options->control.gates,
        .source = td_sight_source(sight),
        .state = &state,
        .context = sight,
        .get_limits = dry_limits,
    };
    input.vpa_count = update_gather_vpas(sight, arena, namespace, &input.vpas);
    input.pod_count = update_gather_pods(sight, arena, namespace, &input.pods);
    int code = td_updater_pass_begin(&pass, &input, err);
    if (code == TD_OK) {
        while (td_updater_pass_next(&pass, input.now, &action)) {
            td_updater_pass_result(&pass, TD_UPDATER_DONE, TD_STR_EMPTY);
        }
        *ret = pass.notes;
        td_updater_pass_end(&pass);
    }
    td_updater_state_done(&state);
    return code;
}
