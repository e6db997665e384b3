/*
 * A reconcile that writes nothing, so that people can be told what would be decided now. It works
 * on copies of what is remembered; which other HPAs count the same pods is found out anew, since
 * this process may not have judged any of them.
 */
#include "base/error.h"
#include "base/limits.h"
#include "control/horizontal/horizontal_private.h"
#include "model/owners.h"

static void explain_start(struct td_horizontal_loop *loop, enum horizontal_group group,
                          td_str namespace, td_str name, const struct horizontal_sync *how)
{
    const struct td_cache *cache = horizontal_cache(loop, group);
    const struct td_sight_object *object = cache ? td_cache_get(cache, namespace, name) : NULL;
    if (object) {
        horizontal_sync_start_dry(loop, group, object, how);
        return;
    }
    how->explain(how->explain_context,
                 &(struct td_horizontal_account){
                     .code = TD_NOT_FOUND,
                     .message = TD_STR("there is no such HorizontalPodAutoscaler, neither in "
                                       "autoscaling.tandem.dev nor in autoscaling"),
                     .api_version = horizontal_api_version(group),
                     .warning = TD_STR_EMPTY,
                     .gated = TD_STR_EMPTY,
                     .is_last = how->is_last,
                 });
}

void horizontal_explain_tell(struct horizontal_sync *sync, int code, td_str message)
{
    const struct td_horizontal_account account = {
        .code = code,
        .message = message,
        .api_version = horizontal_api_version(sync->group),
        .warning = sync->warning,
        .gated = sync->gated,
        .pass = code == TD_OK ? &sync->pass : NULL,
        .selection = code == TD_OK ? &sync->selection : NULL,
        .is_last = sync->is_last,
    };
    sync->explain(sync->explain_context, &account);
    if (!sync->is_last) {
        const struct horizontal_sync how = {
            .explain = sync->explain, .explain_context = sync->explain_context, .is_last = true};
        explain_start(sync->loop, HORIZONTAL_BUILTIN, sync->namespace, sync->name, &how);
    }
    horizontal_sync_free(sync);
}

void horizontal_explain_state(struct horizontal_sync *sync)
{
    const struct td_meta *meta = &sync->hpa.meta;
    const struct horizontal_item *item =
        horizontal_item_find(sync->loop, sync->group, meta->namespace, meta->name);
    if (!item) {
        return;
    }
    const struct td_hpa_history *from = &item->state.history;
    struct td_hpa_history *to = &sync->own_state.history;
    sync->own_state.strategy = item->state.strategy;
    for (size_t i = 0; i < from->recommendations.count; i++) {
        *td_vec_push(&to->recommendations) = from->recommendations.items[i]; /* the same cap */
    }
    for (size_t i = 0; i < from->ups.count; i++) {
        *td_vec_push(&to->ups) = from->ups.items[i];
    }
    for (size_t i = 0; i < from->downs.count; i++) {
        *td_vec_push(&to->downs) = from->downs.items[i];
    }
}

/* Selector, target and strategy of one other HPA; one whose target is not known counts nothing. */
static void explain_track_one(struct horizontal_sync *sync, const struct td_sight_object *object)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct td_selector selector;
    td_str namespace = object->head.namespace;
    if (td_sight_tree(&arena, object, &tree, NULL) != TD_OK ||
        td_hpa_tracker_add(sync->tracker, namespace, object->head.name) != TD_OK) {
        return;
    }
    const struct td_object_reference target = horizontal_target(tree);
    td_hpa_tracker_put_target(sync->tracker, namespace, object->head.name, &target);
    td_hpa_tracker_put_owned_only(sync->tracker, namespace, object->head.name,
                                  horizontal_strategy(sync->loop, &arena, tree).strategy ==
                                      TD_HPA_STRATEGY_OWNERS);
    const struct td_controller controller = {
        .namespace = namespace,
        .api_version = target.api_version,
        .kind = target.kind,
        .name = target.name,
        .uid = TD_STR_EMPTY,
    };
    if (td_target_selector(&arena, td_sight_source(sync->loop->options.control.sight), &controller,
                           &selector, NULL) != TD_OK ||
        selector.matches_nothing) {
        return;
    }
    td_auto_buf text;
    td_buf_init(&text, TD_MEASURE_PATH_BYTES_MAX);
    td_selector_write(&selector, &text);
    /* What was read a moment ago can be read again. */
    (void)td_hpa_tracker_put(sync->tracker, namespace, object->head.name, td_buf_str(&text), NULL);
}

void horizontal_explain_track(struct horizontal_sync *sync)
{
    const struct td_horizontal_loop *loop = sync->loop;
    for (int group = 0; group < HORIZONTAL_GROUPS; group++) {
        const struct td_cache *cache = horizontal_cache(loop, (enum horizontal_group)group);
        bool is_together =
            (enum horizontal_group)group == sync->group || (loop->options.serves_builtin && cache);
        size_t position = 0;
        for (const struct td_sight_object *object;
             cache && is_together && (object = td_cache_next(cache, &position));) {
            if (td_str_equal(object->head.namespace, sync->hpa.meta.namespace)) {
                explain_track_one(sync, object);
            }
        }
    }
}

void td_horizontal_explain(struct td_horizontal_loop *loop, td_str namespace, td_str name,
                           td_horizontal_explain_fn fn, void *context)
{
    const struct td_cache *own = horizontal_cache(loop, HORIZONTAL_OWN);
    const struct td_cache *builtin = horizontal_cache(loop, HORIZONTAL_BUILTIN);
    bool is_own = own && td_cache_get(own, namespace, name);
    bool is_builtin = builtin && td_cache_get(builtin, namespace, name);
    const struct horizontal_sync how = {
        .explain = fn, .explain_context = context, .is_last = !is_own || !is_builtin};
    explain_start(loop, is_own ? HORIZONTAL_OWN : HORIZONTAL_BUILTIN, namespace, name, &how);
}
