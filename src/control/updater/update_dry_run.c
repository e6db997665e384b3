/*
 * What the updater looks at in one namespace, and a pass over it that sends nothing: each action is
 * answered as if it had been done, so that budgets are used up as they would be, but for evictions
 * whose replacement would be refused.
 */
#include "base/error.h"
#include "base/os/loop.h"
#include "control/updater/update_private.h"
#include "model/pod.h"

size_t update_gather_vpas(const struct td_informers *informers, struct td_arena *arena,
                          td_str namespace, const struct td_update_view *view,
                          const struct td_vpa *const **ret)
{
    const struct td_cache *cache = td_informers_cache(informers, TD_INFORMER_VPAS);
    const struct td_vpa **vpas =
        td_arena_array(arena, const struct td_vpa *, td_cache_count(cache) + 1);
    size_t count = 0;
    size_t position = 0;
    for (const struct td_informer_object *object; (object = td_cache_next(cache, &position));) {
        struct td_json *tree;
        if (!td_str_equal(object->head.namespace, namespace)) {
            continue;
        }
        struct td_vpa *vpa = td_arena_new(arena, struct td_vpa);
        if (td_informers_tree(arena, object, &tree, NULL) == TD_OK &&
            td_vpa_decode(arena, tree, vpa, NULL) == TD_OK) {
            vpas[count++] = vpa;
            if (view) {
                view->see(view->context, arena, vpa);
            }
        }
    }
    *ret = vpas;
    return count;
}

size_t update_gather_pods(struct td_informers *informers, struct td_arena *arena, td_str namespace,
                          const struct td_pod **ret)
{
    size_t count = 0;
    const struct td_informer_pod *pod = NULL;
    while ((pod = td_informers_next_pod(informers, namespace, pod))) {
        count++;
    }
    struct td_pod *pods = td_arena_array(arena, struct td_pod, count + 1);
    count = 0;
    struct update_decoder decoder = {.informers = informers, .arena = arena};
    while ((pod = td_informers_next_pod(informers, namespace, pod))) {
        bool is_over = td_pod_phase_is_over(td_pod_phase_from(pod->phase));
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
    return td_informers_limits(context, namespace);
}

/* TD_BUSY: the judge is still reading. */
static int dry_answer(struct td_updater_pass *pass, const struct td_updater_action *action,
                      const struct td_update_judge *judge)
{
    static const enum td_updater_result results[] = {
        [TD_REPLACEMENT_FINE] = TD_UPDATER_DONE,
        [TD_REPLACEMENT_REFUSED] = TD_UPDATER_REFUSED,
        [TD_REPLACEMENT_UNKNOWN] = TD_UPDATER_FAILED,
    };
    td_str why = TD_STR_EMPTY;
    enum td_replacement_verdict verdict = judge && action->call == TD_UPDATER_EVICT
                                              ? judge->judge(judge->context, action, &why)
                                              : TD_REPLACEMENT_FINE;
    if (verdict == TD_REPLACEMENT_READING) {
        return TD_BUSY;
    }
    td_updater_pass_result(pass, results[verdict], why);
    return TD_OK;
}

int td_update_dry_run(const struct td_update_options *options, struct td_arena *arena,
                      td_str namespace, const struct td_update_view *view,
                      const struct td_update_judge *judge, struct td_updater_notes *ret,
                      struct td_error *err)
{
    struct td_informers *informers = options->control.informers;
    struct td_updater_state state;
    struct td_updater_pass pass;
    struct td_updater_action action;
    td_updater_state_init(&state);
    struct td_updater_input input = {
        .arena = arena,
        .now = td_clock_wall(td_loop_clock(options->control.loop)),
        .config = &options->config,
        .gates = options->control.gates,
        .source = td_informers_source(informers),
        .state = &state,
        .context = informers,
        .get_limits = dry_limits,
    };
    input.vpa_count = update_gather_vpas(informers, arena, namespace, view, &input.vpas);
    input.pod_count = update_gather_pods(informers, arena, namespace, &input.pods);
    int code = td_updater_pass_begin(&pass, &input, err);
    if (code == TD_OK) {
        while (code == TD_OK && td_updater_pass_next(&pass, input.now, &action)) {
            code = dry_answer(&pass, &action, judge);
        }
        if (code == TD_OK) {
            *ret = pass.notes;
        }
        td_updater_pass_end(&pass);
    }
    td_updater_state_done(&state);
    return code;
}
