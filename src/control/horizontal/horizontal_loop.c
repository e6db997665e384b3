/*
 * The loop of the horizontal controller: which HPA is reconciled when.
 *
 * What starts it. td_horizontal_loop_new subscribes to the informers; every HPA of our own group,
 * and every built-in one when the options say so, becomes an item. td_horizontal_loop_start puts
 * all items into the work queue. From then on an item is due when its object is added, when its
 * spec or its selection strategy changes, and one sync period after its last sync ended. Between
 * two syncs it is looked at when something changes that it is judged by (horizontal_look.c); where
 * that would change the number of replicas, it is due at once.
 *
 * Its states. A due item runs at once when one of the `syncs_max` places is free, and else stands
 * in a line for the next place. An item that runs has a sync (horizontal_sync.c): READING, while it
 * reads the scale, pods, owners and metrics, and WRITING, from its first write on. An item that
 * becomes due while it runs is marked and runs again afterwards. An item is put off instead when
 * the caches are not listed yet, when the cache does not show our own last write, or when another
 * controller may be serving it (decide/horizontal/claim.h).
 *
 * What it may write. Per sync at most one change of the target's scale subresource (repeated on a
 * conflict) and one of the HPA's status, then events. Nothing is written for syncs that an Hvpa or
 * `explain` asked for: those have no item.
 *
 * How it stops. td_horizontal_loop_stop gives up syncs that are READING at once, lets those that
 * are WRITING end, and calls back when the last one has. A deleted HPA is treated the same way.
 * Freeing the loop cancels everything.
 */
#include "control/horizontal/horizontal_loop.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/horizontal/horizontal_private.h"
#include "kube/objectkey.h"

#define LOOP_SWEEP_EVERY TD_OWNER_SWEEP_DEFAULT
#define LOOP_MOMENTS 150             /* of a sync period, at which syncs begin */
#define LOOP_UNREADY_PAUSE TD_SECOND /* until the caches have been listed */

td_time horizontal_now(const struct td_horizontal_loop *loop)
{
    return td_clock_wall(td_loop_clock(loop->options.control.loop));
}

td_duration horizontal_steady(const struct td_horizontal_loop *loop)
{
    return td_clock_steady(td_loop_clock(loop->options.control.loop));
}

td_str horizontal_api_version(enum horizontal_group group)
{
    return group == HORIZONTAL_OWN ? TD_STR("autoscaling.tandem.dev/v2") : TD_STR("autoscaling/v2");
}

const struct td_cache *horizontal_cache(const struct td_horizontal_loop *loop,
                                        enum horizontal_group group)
{
    return td_informers_cache(loop->options.control.informers,
                              group == HORIZONTAL_OWN ? TD_INFORMER_OWN_HPAS : TD_INFORMER_HPAS);
}

/* ---- Items ---- */

static td_str loop_key(char buffer[TD_OBJECT_KEY_BYTES_MAX], enum horizontal_group group,
                       td_str namespace, td_str name)
{
    const char number[] = {(char)('0' + (int)group)};
    return TD_KEY_LINES(buffer, (td_str){.ptr = number, .len = 1}, namespace, name);
}

struct horizontal_item *horizontal_item_find(const struct td_horizontal_loop *loop,
                                             enum horizontal_group group, td_str namespace,
                                             td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&loop->items, loop_key(buffer, group, namespace, name));
}

static void item_free(struct horizontal_item *item)
{
    horizontal_usage_quit(item);
    horizontal_scale_done(&item->scale);
    td_hpa_state_done(&item->state);
    td_text_free(item->key);
    td_free(item);
}

static struct horizontal_item *item_new(struct td_horizontal_loop *loop,
                                        enum horizontal_group group,
                                        const struct td_cache_head *head)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    struct horizontal_item *item = td_alloc_zero(1, sizeof(*item));
    item->loop = loop;
    item->group = group;
    item->key = td_text_copy(loop_key(buffer, group, head->namespace, head->name));
    item->name = td_str_slice(item->key, item->key.len - head->name.len, item->key.len);
    item->namespace = td_str_slice(item->key, 2, 2 + head->namespace.len);
    item->due = horizontal_steady(loop);
    item->claim.first_seen = horizontal_now(loop);
    item->rival_reported = TD_TIME_NONE;
    item->claim.claimed = TD_TIME_NONE;
    td_hpa_state_init(&item->state);
    if (td_map_put(&loop->items, item->key, item) != TD_OK) {
        item_free(item);
        return NULL;
    }
    return item;
}

struct td_hpa_strategy_choice horizontal_strategy(const struct td_horizontal_loop *loop,
                                                  struct td_arena *arena,
                                                  const struct td_json *tree)
{
    struct td_hpa hpa = {.selection_strategy = TD_STR_EMPTY};
    const struct td_json *value = td_json_get_path(tree, "spec.selectionStrategy");
    if (td_meta_decode(arena, tree, &hpa.meta, NULL) != TD_OK) {
        return (struct td_hpa_strategy_choice){.strategy = TD_HPA_STRATEGY_LABELS};
    }
    hpa.has_selection_strategy = td_json_is(value, TD_JSON_TYPE_STRING);
    hpa.selection_strategy = hpa.has_selection_strategy ? value->text : TD_STR_EMPTY;
    return td_hpa_strategy_choose(&hpa, &loop->options.strategy);
}

/* What the object asks for, so that a change of it is noticed; the tree is that of the object. */
static uint64_t item_strategy(const struct td_horizontal_loop *loop, struct td_arena *arena,
                              const struct td_json *tree)
{
    struct td_hpa_strategy_choice choice = horizontal_strategy(loop, arena, tree);
    return choice.is_unsupported ? td_map_hash(choice.value) : (uint64_t)choice.strategy;
}

void horizontal_item_queue(struct horizontal_item *item, td_duration after)
{
    if (item->loop->is_running) {
        (void)td_queue_add_after(item->loop->queue, item->key, after, NULL); /* room for all */
    }
}

static void item_add_now(struct horizontal_item *item)
{
    td_duration now = horizontal_steady(item->loop);
    item->due = item->due < now ? item->due : now;
    horizontal_item_queue(item, 0);
}

static void item_add_later(struct horizontal_item *item, td_duration after)
{
    item->due = horizontal_steady(item->loop) + after;
    horizontal_item_queue(item, after);
}

/* ---- The line of those that are due ---- */

static void line_add(struct horizontal_item *item)
{
    struct td_horizontal_loop *loop = item->loop;
    item->is_in_line = true;
    item->next_in_line = NULL;
    *(loop->line_last ? &loop->line_last->next_in_line : &loop->line_first) = item;
    loop->line_last = item;
}

static struct horizontal_item *line_take(struct td_horizontal_loop *loop)
{
    struct horizontal_item *item = loop->line_first;
    if (item) {
        loop->line_first = item->next_in_line;
        loop->line_last = loop->line_first ? loop->line_last : NULL;
        item->is_in_line = false;
    }
    return item;
}

/* The next one, by way of the queue: a long line must not become a deep stack. */
static void line_next(struct td_horizontal_loop *loop)
{
    struct horizontal_item *item = line_take(loop);
    while (item && item->is_gone) {
        item_free(item);
        item = line_take(loop);
    }
    if (item) {
        horizontal_item_queue(item, 0);
    }
}

static void line_drain(struct td_horizontal_loop *loop)
{
    for (struct horizontal_item *item; (item = line_take(loop));) {
        if (item->is_gone) {
            item_free(item);
        }
    }
}

void horizontal_item_put_off(struct horizontal_item *item, td_duration after)
{
    item->may_look = false;
    item_add_later(item, after);
    line_next(item->loop);
}

/* A sync period, and until the next moment at which syncs begin: those of one moment stay together,
 * so that the process wakes up for many at once. Never sooner than a period after the last sync:
 * what that one did counts for a period. */
static td_duration item_pause(const struct horizontal_item *item)
{
    const struct td_horizontal_loop *loop = item->loop;
    td_duration period = loop->options.sync_period;
    td_duration step = period / LOOP_MOMENTS;
    td_duration due = horizontal_steady(loop) + period;
    td_duration past = step > 0 ? (due - loop->created) % step : 0;
    return past > 0 ? period + step - past : period;
}

/* A place is free. */
static void loop_go_on(struct td_horizontal_loop *loop)
{
    if (loop->stopped && loop->sync_count == 0) {
        void (*stopped)(void *context) = loop->stopped;
        loop->stopped = NULL;
        stopped(loop->stopped_context);
        return;
    }
    line_next(loop);
}

/* What changed while its sync, or a look, was under way. */
static void item_go_on(struct horizontal_item *item)
{
    if (item->is_again) {
        item->is_again = false;
        item_add_now(item);
    } else if (item->wants_look) {
        horizontal_look_want(item);
    }
}

void horizontal_item_done(struct horizontal_item *item)
{
    struct td_horizontal_loop *loop = item->loop;
    if (item->is_gone) {
        item_free(item);
    } else {
        if (!item->is_evaluated) {
            horizontal_usage_quit(item);
            item->may_look = false;
        }
        item_add_later(item, item_pause(item));
        item_go_on(item);
    }
    loop_go_on(loop);
}

void horizontal_item_looked(struct horizontal_item *item, bool is_due)
{
    struct td_horizontal_loop *loop = item->loop;
    td_duration left = is_due ? 0 : item->due - horizontal_steady(loop);
    if (item->is_gone) {
        item_free(item);
    } else {
        item_add_later(item, left > 0 ? left : 0);
        item_go_on(item);
    }
    loop_go_on(loop);
}

static bool loop_is_listed(const struct td_horizontal_loop *loop, enum td_informer_kind kind)
{
    const struct td_cache *cache = td_informers_cache(loop->options.control.informers, kind);
    /* A kind that the cluster does not have has no objects. */
    return !cache || td_cache_is_synced(cache) || td_cache_error(cache)->code == TD_NOT_FOUND;
}

/* Who else scales the target must be known before anything is scaled. */
static bool loop_is_ready(const struct td_horizontal_loop *loop)
{
    return loop_is_listed(loop, TD_INFORMER_PODS) && loop_is_listed(loop, TD_INFORMER_HPAS) &&
           loop_is_listed(loop, TD_INFORMER_OWN_HPAS) && loop_is_listed(loop, TD_INFORMER_HVPAS);
}

/* Has the informers not yet shown us our own last write? */
static bool item_is_stale(const struct horizontal_item *item,
                          const struct td_informer_object *object)
{
    int64_t seen;
    int64_t listed;
    td_str position = td_cache_version(horizontal_cache(item->loop, item->group));
    if (item->written_version == 0 || !td_str_to_int64(object->head.version, &seen)) {
        return false;
    }
    return seen < item->written_version &&
           !(td_str_to_int64(position, &listed) && listed >= item->written_version);
}

/* False: it is not its time. */
static bool item_run(struct horizontal_item *item, bool is_due)
{
    struct td_horizontal_loop *loop = item->loop;
    const struct td_informer_object *object =
        td_cache_get(horizontal_cache(loop, item->group), item->namespace, item->name);
    if (!object) {
        return false; /* its deletion is about to be told */
    }
    if (!loop_is_ready(loop)) {
        item_add_later(item, LOOP_UNREADY_PAUSE);
        return false;
    }
    if (!is_due && item_is_stale(item, object)) {
        horizontal_item_queue(item, item->due - horizontal_steady(loop));
        return false;
    }
    if (item_is_stale(item, object)) {
        horizontal_metrics_stale(item);
        item_add_later(item, loop->options.sync_period);
        return false;
    }
    item->wants_look = false;
    if (is_due) {
        horizontal_sync_start(item, object);
    } else {
        horizontal_look_start(item, object);
    }
    return true;
}

static enum td_job_result loop_job(td_str key, void *context)
{
    struct td_horizontal_loop *loop = context;
    struct horizontal_item *item = loop->is_running ? td_map_get(&loop->items, key) : NULL;
    if (!item || item->is_in_line) {
        return TD_JOB_DONE;
    }
    td_duration left = item->due - horizontal_steady(loop);
    bool is_due = left <= 0;
    if (item->sync) {
        item->is_again = item->is_again || is_due;
    } else if (!is_due && !item->wants_look) {
        horizontal_item_queue(item, left); /* it was to be looked at, and that is settled */
    } else if (loop->sync_count >= loop->options.syncs_max) {
        line_add(item);
    } else if (!item_run(item, is_due)) {
        line_next(loop);
    }
    return TD_JOB_DONE;
}

/* ---- What the informers tell ---- */

static void loop_added(void *context, const void *added)
{
    const struct horizontal_group_context *group = context;
    struct td_horizontal_loop *loop = group->loop;
    const struct td_informer_object *object = added;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct horizontal_item *item = item_new(loop, group->group, &object->head);
    if (!item) {
        td_log_line(loop->options.control.log, TD_LOG_ERROR, "HPA ignored: too many HPAs",
                    TD_LOG_S("namespace", object->head.namespace),
                    TD_LOG_S("hpa", object->head.name));
        return;
    }
    /* Past the cap of the tracker it is not known which pods it selects. */
    (void)td_hpa_tracker_add(&loop->tracker, item->namespace, item->name);
    if (td_informers_tree(&arena, object, &tree, NULL) == TD_OK) {
        const struct td_object_reference target = horizontal_target(tree);
        td_hpa_tracker_put_target(&loop->tracker, item->namespace, item->name, &target);
        item->strategy = item_strategy(loop, &arena, tree);
    }
    horizontal_metrics_objects(loop);
    item_add_now(item);
}

static void loop_deleted(void *context, const void *deleted)
{
    const struct horizontal_group_context *group = context;
    struct td_horizontal_loop *loop = group->loop;
    const struct td_cache_head *head = deleted;
    struct horizontal_item *item =
        horizontal_item_find(loop, group->group, head->namespace, head->name);
    if (!item) {
        return;
    }
    (void)td_map_remove(&loop->items, item->key);
    td_hpa_tracker_remove(&loop->tracker, item->namespace, item->name);
    horizontal_metrics_forget(item);
    horizontal_metrics_objects(loop);
    item->is_gone = true;
    bool is_reading = item->sync && item->sync->phase == HORIZONTAL_READING;
    if (is_reading) {
        horizontal_sync_free(item->sync);
        horizontal_item_done(item);
    } else if (!item->sync && !item->is_in_line) {
        item_free(item);
    }
}

static void loop_changed(void *context, const void *old_object, const void *new_object)
{
    const struct horizontal_group_context *group = context;
    const struct td_informer_object *before = old_object;
    const struct td_informer_object *after = new_object;
    struct td_horizontal_loop *loop = group->loop;
    struct horizontal_item *item =
        horizontal_item_find(loop, group->group, after->head.namespace, after->head.name);
    if (!item || !td_str_equal(before->head.uid, after->head.uid)) {
        loop_deleted(context, before);
        loop_added(context, after);
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *old;
    struct td_json *new;
    if (before->spec_hash == after->spec_hash ||
        td_informers_tree(&arena, after, &new, NULL) != TD_OK) {
        return;
    }
    /* Servers before 1.37 keep no generation of built-in HPAs: the specs are compared. */
    bool is_changed = before->generation != after->generation;
    if (after->generation == 0 && td_informers_tree(&arena, before, &old, NULL) == TD_OK) {
        is_changed =
            !td_json_equal(td_json_get(old, TD_STR("spec")), td_json_get(new, TD_STR("spec")));
    }
    uint64_t strategy = item_strategy(loop, &arena, new);
    if (is_changed || strategy != item->strategy) {
        const struct td_object_reference target = horizontal_target(new);
        td_hpa_tracker_put_target(&loop->tracker, item->namespace, item->name, &target);
        item->strategy = strategy;
        item_add_now(item);
    }
}

/* Called from inside another's callback: go on from the loop. */
static void loop_settled(void *context)
{
    struct td_horizontal_loop *loop = context;
    for (struct horizontal_sync *sync = loop->syncs; sync; sync = sync->next) {
        sync->is_settled = sync->is_settled || sync->resume;
    }
    td_timer_set(loop->wake, 0);
}

static void loop_wake(struct td_timer *timer, void *context)
{
    (void)timer;
    horizontal_sync_wake(context);
}

static void loop_sweep(struct td_timer *timer, void *context)
{
    struct td_horizontal_loop *loop = context;
    td_owner_cache_sweep(&loop->owners, horizontal_now(loop));
    td_timer_set(timer, LOOP_SWEEP_EVERY);
}

/* ---- The whole ---- */

static void loop_subscribe(struct td_horizontal_loop *loop)
{
    static const struct td_cache_handler handler = {
        .added = loop_added, .changed = loop_changed, .deleted = loop_deleted};
    static const enum td_informer_kind kinds[HORIZONTAL_GROUPS] = {
        [HORIZONTAL_OWN] = TD_INFORMER_OWN_HPAS, [HORIZONTAL_BUILTIN] = TD_INFORMER_HPAS};
    struct td_informers *informers = loop->options.control.informers;
    td_informers_index_pods(informers);
    for (int i = 0; i < HORIZONTAL_GROUPS; i++) {
        loop->groups[i] = (struct horizontal_group_context){loop, (enum horizontal_group)i};
        if (i != HORIZONTAL_BUILTIN || loop->options.serves_builtin) {
            td_informers_subscribe(informers, kinds[i], &handler, &loop->groups[i]);
        }
    }
    td_informers_on_settled(informers, loop_settled, loop);
}

int td_horizontal_loop_new(const struct td_horizontal_options *options,
                           struct td_horizontal_loop **ret, struct td_error *err)
{
    if (options->sync_period <= 0 || options->syncs_max == 0) {
        return td_error_set(err, TD_INVALID,
                            options->syncs_max == 0
                                ? "concurrent-horizontal-pod-autoscaler-syncs must be greater than "
                                  "0, but got 0"
                                : "horizontal-pod-autoscaler-sync-period must be greater than 0");
    }
    struct td_horizontal_loop *loop = td_alloc_zero(1, sizeof(*loop));
    struct td_loop *events = options->control.loop;
    loop->options = *options;
    loop->created = td_clock_steady(td_loop_clock(events));
    loop->options.strategy.is_gate_on = options->control.selection_strategy_gate;
    if (options->strategy.primary_key.len == 0) {
        loop->options.strategy.primary_key = TD_HPA_STRATEGY_ANNOTATION;
    }
    if (options->owner_ttl == 0) {
        loop->options.owner_ttl = TD_OWNER_TTL_DEFAULT;
    }
    loop->random = options->control.seed;
    td_map_init(&loop->items, TD_HPA_TRACKED_MAX);
    td_hpa_tracker_init(&loop->tracker);
    loop->queue = td_queue_new(events, loop_job, loop, TD_HPA_TRACKED_MAX);
    loop->wake = td_timer_new(events, loop_wake, loop);
    loop->sweep = td_timer_new(events, loop_sweep, loop);
    td_timer_set(loop->sweep, LOOP_SWEEP_EVERY);
    horizontal_metrics_init(loop);
    horizontal_usage_init(loop);
    horizontal_owners_init(loop);
    horizontal_guard_init(loop);
    loop_subscribe(loop);
    horizontal_look_init(loop);
    *ret = loop;
    return TD_OK;
}

void td_horizontal_loop_start(struct td_horizontal_loop *loop)
{
    loop->is_running = true;
    td_time now = horizontal_now(loop);
    for (struct td_map_walk at = {.map = &loop->items}; td_map_step(&at);) {
        struct horizontal_item *item = at.value;
        item->claim.first_seen = now;
        item->due = horizontal_steady(loop);
        item_add_now(item);
    }
}

void td_horizontal_loop_stop(struct td_horizontal_loop *loop, void (*done)(void *context),
                             void *context)
{
    loop->is_running = false;
    line_drain(loop);
    for (struct td_map_walk at = {.map = &loop->items}; td_map_step(&at);) {
        horizontal_usage_quit(at.value);
    }
    struct horizontal_sync *next;
    for (struct horizontal_sync *sync = loop->syncs; sync; sync = next) {
        next = sync->next;
        if (sync->item && sync->phase == HORIZONTAL_READING) {
            horizontal_sync_free(sync);
        }
    }
    if (loop->sync_count == 0) {
        done(context);
        return;
    }
    loop->stopped = done;
    loop->stopped_context = context;
}

static void loop_free_items(struct td_horizontal_loop *loop)
{
    line_drain(loop);
    while (loop->syncs) {
        struct horizontal_item *item = loop->syncs->item;
        horizontal_sync_free(loop->syncs);
        if (item && item->is_gone) {
            item_free(item);
        }
    }
    for (struct td_map_walk at = {.map = &loop->items}; td_map_step(&at);) {
        item_free(at.value);
    }
    td_map_done(&loop->items);
}

void td_horizontal_loop_free(struct td_horizontal_loop *loop)
{
    if (!loop) {
        return;
    }
    loop->is_running = false;
    loop_free_items(loop);
    horizontal_owners_done(loop);
    horizontal_usage_done(loop);
    td_hpa_tracker_done(&loop->tracker);
    td_hpa_tracker_done(&loop->builtin);
    td_hpa_tracker_done(&loop->hvpas);
    td_queue_free(loop->queue);
    td_timer_free(loop->wake);
    td_timer_free(loop->sweep);
    td_free(loop);
}
