/*
 * A reconcile that writes nothing, so that a user can be told what would be decided now. It works
 * on copies of what is remembered; which other HPAs count the same pods is found out anew, since
 * this process may not have judged any of them.
 */
#include "base/error.h"
#include "base/limits.h"
#include "control/horizontal/horizontal_private.h"
#include "model/owners.h"

struct explain_context {
    td_horizontal_explain_fn fn;
    void *context;
    td_str namespace; /* of the object */
    td_str name;
    bool is_last;
    td_str warning;
};

static void explain_start(struct td_horizontal_loop *loop, enum horizontal_group group,
                          const struct explain_context *how);

/* The sync is gone afterwards. */
static void explain_tell(struct horizontal_sync *sync, int code, td_str message)
{
    struct explain_context *explain = sync->context;
    const struct td_horizontal_account account = {
        .code = code,
        .message = message,
        .api_version = horizontal_api_version(sync->group),
        .warning = explain->warning,
        .gated = sync->seen.gated,
        .pass = code == TD_OK ? &sync->decided.pass : NULL,
        .selection = code == TD_OK ? &sync->decided.selection : NULL,
        .is_last = explain->is_last,
    };
    explain->fn(explain->context, &account);
    if (!explain->is_last) {
        explain->is_last = true;
        explain_start(sync->loop, HORIZONTAL_BUILTIN, explain);
    }
    horizontal_sync_free(sync);
}

/* Which pods count, by name, and whose the others are. */
static void explain_list_pods(struct horizontal_sync *sync)
{
    struct td_arena *arena = &sync->arena;
    struct td_hpa_account_selection *selection = &sync->decided.selection;
    bool is_filtered = selection->is_filtered && !selection->is_failed;
    struct td_hpa_selected_pod *pods =
        td_arena_array(arena, struct td_hpa_selected_pod, sync->seen.pod_count + 1);
    for (size_t i = 0; i < sync->seen.pod_count; i++) {
        const struct td_meta *meta = &sync->seen.pods[i]->meta;
        const struct td_owner_reference *owner = meta->owner_count > 0 ? &meta->owners[0] : NULL;
        pods[i] = (struct td_hpa_selected_pod){
            .name = meta->name,
            .owner = owner ? td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(owner->kind),
                                             TD_STR_ARG(owner->name))
                           : TD_STR_EMPTY,
            .is_counted = !is_filtered || sync->seen.filter.verdicts[i] == TD_OWNER_OWNED,
        };
    }
    selection->pods = pods;
    selection->pod_count = sync->seen.pod_count;
}

static void explain_decided(struct horizontal_sync *sync)
{
    explain_list_pods(sync);
    explain_tell(sync, TD_OK, TD_STR_EMPTY);
}

const struct horizontal_purpose horizontal_purpose_explain = {.decided = explain_decided,
                                                              .finds_peers = true};

static void explain_copy_state(struct horizontal_sync *sync)
{
    const struct td_meta *meta = &sync->seen.hpa.meta;
    const struct horizontal_item *item =
        horizontal_item_find(sync->loop, sync->group, meta->namespace, meta->name);
    if (item) {
        td_hpa_state_copy(sync->decided.state, &item->state);
    }
}

static void explain_object(struct td_horizontal_loop *loop, enum horizontal_group group,
                           const struct explain_context *how,
                           const struct td_informer_object *object)
{
    struct horizontal_sync *sync = horizontal_sync_new(loop, group, &horizontal_purpose_explain);
    struct explain_context *explain = td_arena_new(&sync->arena, struct explain_context);
    *explain = *how;
    explain->namespace = td_arena_copy_str(&sync->arena, how->namespace);
    explain->name = td_arena_copy_str(&sync->arena, how->name);
    explain->warning = TD_STR_EMPTY;
    sync->context = explain;
    struct td_error err = TD_ERROR_INIT;
    td_str manager;
    if (horizontal_sync_read(sync, object, &err) != TD_OK) {
        explain_tell(sync, TD_INVALID, td_str_from(err.message));
        return;
    }
    if (group == HORIZONTAL_BUILTIN &&
        horizontal_guard_rival(&sync->arena, loop, object, &manager)) {
        explain->warning = horizontal_guard_words(&sync->arena, manager);
    }
    explain_copy_state(sync);
    horizontal_sync_begin(sync);
}

static void explain_start(struct td_horizontal_loop *loop, enum horizontal_group group,
                          const struct explain_context *how)
{
    const struct td_cache *cache = horizontal_cache(loop, group);
    const struct td_informer_object *object =
        cache ? td_cache_get(cache, how->namespace, how->name) : NULL;
    if (object) {
        explain_object(loop, group, how, object);
        return;
    }
    how->fn(how->context, &(struct td_horizontal_account){
                              .code = TD_NOT_FOUND,
                              .message = TD_STR("not found, neither in "
                                                "autoscaling.tandem.dev nor in autoscaling"),
                              .api_version = horizontal_api_version(group),
                              .warning = TD_STR_EMPTY,
                              .gated = TD_STR_EMPTY,
                              .is_last = how->is_last,
                          });
}

/* Selector, target and strategy of one other HPA; one whose target is not known counts nothing. */
static void explain_track_one(struct horizontal_sync *sync, const struct td_informer_object *object)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct td_selector selector;
    td_str namespace = object->head.namespace;
    if (td_informers_tree(&arena, object, &tree, NULL) != TD_OK ||
        td_hpa_tracker_add(sync->decided.tracker, namespace, object->head.name) != TD_OK) {
        return;
    }
    const struct td_object_reference target = horizontal_target(tree);
    td_hpa_tracker_put_target(sync->decided.tracker, namespace, object->head.name, &target);
    td_hpa_tracker_put_owned_only(sync->decided.tracker, namespace, object->head.name,
                                  horizontal_strategy(sync->loop, &arena, tree).strategy ==
                                      TD_HPA_STRATEGY_OWNERS);
    const struct td_controller controller = {
        .namespace = namespace,
        .api_version = target.api_version,
        .kind = target.kind,
        .name = target.name,
        .uid = TD_STR_EMPTY,
    };
    if (td_target_selector(&arena, td_informers_source(sync->loop->options.control.informers),
                           &controller, &selector, NULL) != TD_OK ||
        selector.matches_nothing) {
        return;
    }
    td_auto_buf text = td_buf_capped(TD_METRICS_PATH_BYTES_MAX);
    td_selector_write(&selector, &text);
    /* What was read a moment ago can be read again. */
    (void)td_hpa_tracker_put(sync->decided.tracker, namespace, object->head.name, td_buf_str(&text),
                             NULL);
}

void horizontal_explain_track(struct horizontal_sync *sync)
{
    const struct td_horizontal_loop *loop = sync->loop;
    for (int group = 0; group < HORIZONTAL_GROUPS; group++) {
        const struct td_cache *cache = horizontal_cache(loop, (enum horizontal_group)group);
        bool is_together =
            (enum horizontal_group)group == sync->group || (loop->options.serves_builtin && cache);
        size_t position = 0;
        for (const struct td_informer_object *object;
             cache && is_together && (object = td_cache_next(cache, &position));) {
            if (td_str_equal(object->head.namespace, sync->seen.hpa.meta.namespace)) {
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
    const struct explain_context how = {
        .fn = fn,
        .context = context,
        .namespace = namespace,
        .name = name,
        .is_last = !is_own || !is_builtin,
    };
    explain_start(loop, is_own ? HORIZONTAL_OWN : HORIZONTAL_BUILTIN, &how);
}
