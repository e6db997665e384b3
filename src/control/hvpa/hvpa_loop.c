/*
 * One item for each Hvpa, and a queue of their keys. A key comes due with the sync period, when the
 * spec of the object changes, when a pod of its namespace is killed for want of memory or evicted,
 * and after a back-off. A due item starts a reconcile (hvpa_reconcile.c), of which at most
 * HVPA_READING_MAX read at one time.
 *
 * A reconcile is HVPA_READING while the HPA machinery gathers scale, pods and metrics; HVPA_WRITING
 * while the status, the scale and the template or pods are written, in that order; HVPA_ACTUATING
 * between two writes to pods. When its item comes due again it is given up, unless a write is under
 * way: then the item runs again at its end.
 *
 * The loop writes the status, the scale and the template of the target, resizes and evicts pods
 * (hvpa_actuate.c), child objects (hvpa_children.c) and events. Stopped, it gives up what reads and
 * waits for what writes; it goes on answering the webhook with the sizes of new pods, from the
 * status that is stored.
 */
#include "control/hvpa/hvpa_loop.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/hvpa/hvpa_private.h"
#include "decide/vertical/patch/podsizes.h"
#include "decide/vertical/updater/pass.h"
#include "kube/objectkey.h"

#define LOOP_UNREADY_PAUSE TD_SECOND
#define LOOP_CROWDED_PAUSE (100 * TD_MILLISECOND)
#define LOOP_BACKOFF_MIN (15 * TD_SECOND)
#define LOOP_BACKOFF_MAX (5 * TD_MINUTE)
/* After an OOM the recommender learns of it first. */
#define LOOP_OOM_PAUSE ((TD_RECOMMEND_URGENT_MS + 500) * TD_MILLISECOND)
#define LOOP_OOM_WINDOW 200 /* bytes around the word that tell one OOM from another */

td_time hvpa_now(const struct td_hvpa_loop *loop)
{
    return td_clock_wall(td_loop_clock(loop->options.control.loop));
}

/* ---- Items ---- */

static void item_free(struct hvpa_item *item)
{
    td_text_free(item->key);
    td_text_free(item->status);
    td_text_free(item->failure);
    td_text_free(item->blocked);
    td_arena_done(&item->sizes_arena);
    td_arena_done(&item->spec_arena);
    td_hpa_state_done(&item->horizontal);
    td_updater_state_done(&item->restrictions);
    td_free(item);
}

static struct hvpa_item *item_new(struct td_hvpa_loop *loop, const struct td_cache_head *head)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    struct hvpa_item *item = td_alloc_zero(1, sizeof(*item));
    item->loop = loop;
    item->key =
        td_text_copy(td_object_key_write(TD_OBJECT_KEY(head->namespace, head->name), buffer));
    item->namespace = td_object_key_read(item->key).namespace;
    item->name = td_object_key_read(item->key).name;
    item->status = td_text_copy(TD_STR_EMPTY);
    item->failure = td_text_copy(TD_STR_EMPTY);
    item->first_seen = hvpa_now(loop);
    item->oom_seen = TD_TIME_NONE;
    item->last_reconcile = TD_TIME_NONE;
    item->backoff = (struct td_backoff){
        .min = LOOP_BACKOFF_MIN, .max = LOOP_BACKOFF_MAX, .random = loop->options.control.seed};
    td_arena_init(&item->sizes_arena, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&item->spec_arena, TD_TREE_ARENA_BYTES_MAX);
    td_hpa_state_init(&item->horizontal);
    td_updater_state_init(&item->restrictions);
    if (td_map_put(&loop->items, item->key, item) != TD_OK) {
        item_free(item);
        return NULL;
    }
    return item;
}

struct hvpa_item *hvpa_item_find(const struct td_hvpa_loop *loop, td_str namespace, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&loop->items, td_object_key_write(TD_OBJECT_KEY(namespace, name), buffer));
}

void hvpa_item_now(struct hvpa_item *item)
{
    if (item->loop->is_running) {
        item->due = 0;
        (void)td_queue_add(item->loop->queue, item->key, NULL); /* room for all items */
    }
}

/* Again after so long, at least. */
static void item_later(struct hvpa_item *item, td_duration after)
{
    if (item->loop->is_running) {
        (void)td_queue_add_after(item->loop->queue, item->key, after, NULL); /* likewise */
    }
}

struct td_api_path hvpa_item_path(const struct hvpa_item *item)
{
    return (struct td_api_path){
        .group = TD_STR(TD_HVPA_GROUP),
        .version = TD_STR(TD_HVPA_VERSION),
        .namespace = item->namespace,
        .plural = TD_STR("hvpas"),
        .name = item->name,
    };
}

/* What new pods are to have by the status: what was applied last, or what pods run with while the
 * Hvpa is paused, since then decisions are not carried out. */
void hvpa_item_set_status(struct hvpa_item *item, td_str text)
{
    td_text_set(&item->status, text);
    td_arena_reset(&item->sizes_arena);
    item->sizes = (struct td_hvpa_requests){.count = 0};
    item->size_limits = (struct td_hvpa_requests){.count = 0};
    struct td_json *tree;
    struct td_hvpa_status status;
    if (text.len == 0 ||
        td_json_parse(&item->sizes_arena, item->status, NULL, &tree, NULL) != TD_OK ||
        td_hvpa_status_decode(&item->sizes_arena, tree, &status, NULL) != TD_OK ||
        !status.has_vertical_time) {
        return;
    }
    if (!item->is_paused && hvpa_input_decided(&status)) {
        item->sizes = status.decision.requests;
        item->size_limits = status.decision.limits;
    } else {
        item->sizes = status.current_requests;
    }
}

/* In either form of the vpaSpec; one that cannot be read selects nothing. */
static void item_read_selector(struct hvpa_item *item, const struct td_json *spec)
{
    bool is_object = false;
    const struct td_json *selector =
        td_json_get(td_hvpa_part(spec, TD_STR("vpaSpec"), &is_object), TD_STR("selector"));
    td_arena_reset(&item->spec_arena);
    item->has_selector = td_json_is(selector, TD_JSON_TYPE_OBJECT) && selector->count > 0 &&
                         item->loop->options.control.gates.heterogeneous_workloads;
    item->selector = (struct td_selector){.matches_nothing = true};
    if (item->has_selector) {
        /* Left as it is when it does not read. */
        (void)td_selector_from_json(&item->spec_arena,
                                    td_json_copy(&item->spec_arena, selector, true),
                                    &item->selector, NULL);
    }
}

/* What a person has written; .spec.replicas is our own or that of an HPA. */
static uint64_t item_hash(struct td_json *spec)
{
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    (void)td_json_remove(spec, TD_STR("replicas"));
    td_json_write(spec, &(struct td_json_format){.indent = 0}, &text);
    return td_map_hash(td_buf_str(&text));
}

static void item_read(struct hvpa_item *item, const struct td_informer_object *object)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    if (td_informers_tree(&arena, object, &tree, NULL) != TD_OK) {
        return;
    }
    struct td_json *spec = td_json_get(tree, TD_STR("spec"));
    item->spec_hash = td_json_is(spec, TD_JSON_TYPE_OBJECT) ? item_hash(spec) : 0;
    item->is_objects = td_str_equal(td_json_text(spec, "sources"), TD_STR("Objects"));
    item->is_paused = td_json_get_bool(spec, TD_STR("paused"), false);
    item->is_template = td_str_equal(
        td_json_text(td_json_get(spec, TD_STR("vertical")), "actuation"), TD_STR("Template"));
    item->is_kept = td_str_equal(td_json_text(spec, "onDelete"), TD_STR("Keep"));
    item_read_selector(item, spec);
    const struct td_json *status = td_json_get(tree, TD_STR("status"));
    if (item->is_ours && item->loop->is_running) {
        return; /* ours is newer, or the same */
    }
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    if (status) {
        td_json_write(status, &(struct td_json_format){.indent = 0}, &text);
    }
    hvpa_item_set_status(item, td_buf_str(&text));
}

void hvpa_item_done(struct hvpa_item *item)
{
    struct td_hvpa_loop *loop = item->loop;
    if (item->is_gone) {
        item_free(item);
    } else if (item->is_again) {
        item->is_again = false;
        hvpa_item_now(item);
    } else {
        td_time now = hvpa_now(loop);
        item_later(item, item->due > now ? item->due - now : 0);
    }
    if (loop->stopped && loop->reconcile_count == 0) {
        void (*stopped)(void *context) = loop->stopped;
        loop->stopped = NULL;
        stopped(loop->stopped_context);
    }
}

/* ---- Reconciles ---- */

/* True: there is none any more. */
static bool item_leave_reconcile(struct hvpa_item *item)
{
    struct hvpa_reconcile *run = item->reconcile;
    bool can_leave =
        run && (run->phase == HVPA_READING || (run->phase == HVPA_ACTUATING && !run->call));
    if (can_leave) {
        item->last_reconcile = run->now;
        hvpa_reconcile_free(run);
    }
    return !item->reconcile;
}

static void item_run(struct hvpa_item *item)
{
    struct td_hvpa_loop *loop = item->loop;
    const struct td_cache *cache =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_HVPAS);
    const struct td_informer_object *object = td_cache_get(cache, item->namespace, item->name);
    if (!object) {
        return; /* its deletion is about to be told */
    }
    if (!td_informers_is_synced(loop->options.control.informers)) {
        item_later(item, LOOP_UNREADY_PAUSE);
    } else if (hvpa_delete_begin(item, object) || object->is_deleting) {
        return;
    } else if (loop->reading_count >= HVPA_READING_MAX) {
        item_later(item, LOOP_CROWDED_PAUSE);
    } else {
        item->is_ours = true;
        /* A reconcile whose call is never answered is given up then. */
        item_later(item, 2 * loop->options.sync_period);
        hvpa_reconcile_start(item, object, NULL, NULL);
    }
}

static enum td_job_result loop_job(td_str key, void *context)
{
    struct td_hvpa_loop *loop = context;
    struct hvpa_item *item = loop->is_running ? td_map_get(&loop->items, key) : NULL;
    td_time now = hvpa_now(loop);
    if (!item) {
        return TD_JOB_DONE;
    }
    if (item->due > now) {
        /* An earlier delay than the one that counts. */
        if (!item->reconcile) {
            item_later(item, item->due - now);
        }
    } else if (item_leave_reconcile(item)) {
        item_run(item);
    } else {
        item->is_again = true;
    }
    return TD_JOB_DONE;
}

/* ---- What the informers tell ---- */

static void loop_added(void *context, const void *object)
{
    struct td_hvpa_loop *loop = context;
    const struct td_informer_object *seen = object;
    struct hvpa_item *item = item_new(loop, &seen->head);
    if (!item) {
        td_log_line(loop->options.control.log, TD_LOG_ERROR, "Hvpa ignored: too many Hvpas",
                    TD_LOG_S("namespace", seen->head.namespace), TD_LOG_S("hvpa", seen->head.name));
        return;
    }
    item_read(item, seen);
    hvpa_item_now(item);
}

static void loop_deleted(void *context, const void *object)
{
    struct td_hvpa_loop *loop = context;
    const struct td_informer_object *seen = object;
    struct hvpa_item *item = hvpa_item_find(loop, seen->head.namespace, seen->head.name);
    if (!item) {
        return;
    }
    (void)td_map_remove(&loop->items, item->key);
    hvpa_metrics_forget(item);
    item->is_gone = true;
    if (item_leave_reconcile(item)) {
        item_free(item);
    }
}

static void loop_changed(void *context, const void *before, const void *after)
{
    struct td_hvpa_loop *loop = context;
    const struct td_informer_object *old = before;
    const struct td_informer_object *new = after;
    struct hvpa_item *item = hvpa_item_find(loop, new->head.namespace, new->head.name);
    if (!item || !td_str_equal(old->head.uid, new->head.uid)) {
        loop_deleted(loop, before);
        loop_added(loop, after);
        return;
    }
    uint64_t was = item->spec_hash;
    item_read(item, new);
    if (old->generation != new->generation && (item->is_objects || item->spec_hash != was)) {
        hvpa_item_now(item); /* what was being decided is of yesterday */
    } else if (new->is_deleting && !old->is_deleting) {
        hvpa_item_now(item);
    }
}

/* ---- Out of memory, or evicted for want of it ---- */

/* The word and what is around it; empty: it is not there. */
static td_str oom_around(struct td_arena *arena, const struct td_informer_pod *pod, td_str word)
{
    td_str text = td_informers_text(arena, &pod->object);
    const char *at = memmem(text.ptr, text.len, word.ptr, word.len);
    size_t offset = at ? (size_t)(at - text.ptr) : 0;
    return at ? td_str_slice(text, offset > LOOP_OOM_WINDOW ? offset - LOOP_OOM_WINDOW : 0,
                             offset + LOOP_OOM_WINDOW)
              : TD_STR_EMPTY;
}

static bool oom_is_new(const struct td_informer_pod *before, const struct td_informer_pod *after,
                       td_str word)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    return td_informers_mentions(&after->object, word) &&
           !td_str_equal(oom_around(&arena, before, word), oom_around(&arena, after, word));
}

/* Whose pod it is takes a walk; the few Hvpas of its namespace look for themselves. */
static void pods_changed(void *context, const void *before, const void *after)
{
    struct td_hvpa_loop *loop = context;
    const struct td_informer_pod *pod = after;
    if (!loop->is_running || (!oom_is_new(before, after, TD_STR("\"OOMKilled\"")) &&
                              !oom_is_new(before, after, TD_STR("\"Evicted\"")))) {
        return;
    }
    td_time due = hvpa_now(loop) + LOOP_OOM_PAUSE;
    for (struct td_map_walk at = {.map = &loop->items}; td_map_step(&at);) {
        struct hvpa_item *item = at.value;
        if (td_str_equal(item->namespace, pod->object.head.namespace)) {
            item->due = item->due > due ? due : item->due;
            item_later(item, LOOP_OOM_PAUSE);
        }
    }
}

/* ---- The whole ---- */

static void loop_subscribe(struct td_hvpa_loop *loop)
{
    static const struct td_cache_handler hvpas = {
        .added = loop_added, .changed = loop_changed, .deleted = loop_deleted};
    static const struct td_cache_handler pods = {.changed = pods_changed};
    struct td_informers *informers = loop->options.control.informers;
    td_informers_subscribe(informers, TD_INFORMER_HVPAS, &hvpas, loop);
    td_informers_subscribe(informers, TD_INFORMER_PODS, &pods, loop);
}

/* Metrics and pods are gathered by the machinery of HPAs, which need not be running. */
static int loop_gather(struct td_hvpa_loop *loop, struct td_error *err)
{
    const struct td_hvpa_options *options = &loop->options;
    const struct td_horizontal_options horizontal = {
        .control = options->control,
        .config = options->horizontal,
        .sync_period = options->sync_period,
        .syncs_max = 1,
        .strategy = {.is_gate_on = options->control.selection_strategy_gate,
                     .primary_key = TD_HPA_STRATEGY_ANNOTATION},
        .owner_ttl = TD_OWNER_TTL_DEFAULT,
    };
    if (options->gather) {
        loop->horizontal = options->gather;
        return TD_OK;
    }
    loop->owns_horizontal = true;
    return td_horizontal_loop_new(&horizontal, &loop->horizontal, err);
}

int td_hvpa_loop_new(const struct td_hvpa_options *options, struct td_hvpa_loop **ret,
                     struct td_error *err)
{
    if (options->sync_period <= 0) {
        return td_error_set(err, TD_INVALID, "hvpa-sync-period must be greater than 0");
    }
    struct td_hvpa_loop *loop = td_alloc_zero(1, sizeof(*loop));
    loop->options = *options;
    loop->restriction =
        options->restriction ? *options->restriction : td_updater_config_default().restriction;
    td_map_init(&loop->items, TD_CACHE_OBJECTS_MAX);
    loop->queue = td_queue_new(options->control.loop, loop_job, loop, TD_CACHE_OBJECTS_MAX);
    hvpa_metrics_init(loop);
    hvpa_targets_init(loop);
    int code = loop_gather(loop, err);
    if (code != TD_OK) {
        loop->owns_horizontal = false;
        td_hvpa_loop_free(loop);
        return code;
    }
    loop_subscribe(loop);
    *ret = loop;
    return TD_OK;
}

void td_hvpa_loop_start(struct td_hvpa_loop *loop)
{
    const struct td_cache *cache =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_HVPAS);
    loop->is_running = true;
    for (struct td_map_walk at = {.map = &loop->items}; td_map_step(&at);) {
        struct hvpa_item *item = at.value;
        const struct td_informer_object *object = td_cache_get(cache, item->namespace, item->name);
        item->first_seen = hvpa_now(loop);
        item->is_ours = false; /* another process may have decided meanwhile */
        item->written = 0;
        item->last_reconcile = TD_TIME_NONE;
        if (object) {
            item_read(item, object);
        }
        hvpa_item_now(item);
    }
}

void td_hvpa_loop_stop(struct td_hvpa_loop *loop, void (*done)(void *context), void *context)
{
    loop->is_running = false;
    for (struct td_map_walk at = {.map = &loop->items}; td_map_step(&at);) {
        (void)item_leave_reconcile(at.value); /* those that write come to their end */
    }
    if (loop->reconcile_count == 0) {
        done(context);
        return;
    }
    loop->stopped = done;
    loop->stopped_context = context;
}

void td_hvpa_loop_free(struct td_hvpa_loop *loop)
{
    if (!loop) {
        return;
    }
    loop->is_running = false;
    for (struct td_map_walk at = {.map = &loop->items}; td_map_step(&at);) {
        struct hvpa_item *item = at.value;
        if (item->reconcile) {
            hvpa_reconcile_free(item->reconcile);
        }
        item_free(item);
    }
    td_map_done(&loop->items);
    hvpa_children_cancel(loop);
    hvpa_targets_done(loop);
    if (loop->owns_horizontal) {
        td_horizontal_loop_free(loop->horizontal);
    }
    td_queue_free(loop->queue);
    td_free(loop);
}

void td_hvpa_loop_explain(struct td_hvpa_loop *loop, td_str namespace, td_str name,
                          td_hvpa_explain_fn fn, void *context)
{
    const struct td_cache *cache =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_HVPAS);
    const struct td_informer_object *object = td_cache_get(cache, namespace, name);
    struct hvpa_item *item = object ? hvpa_item_find(loop, namespace, name) : NULL;
    td_assert(!loop->is_running);
    if (!item) {
        fn(context, &(struct td_hvpa_reported){.code = TD_NOT_FOUND,
                                               .reason = TD_STR("NotFound"),
                                               .message = TD_STR("Hvpa not found")});
        return;
    }
    hvpa_reconcile_start(item, object, fn, context);
}

static const struct td_resource_list *sizes_of(const struct td_hvpa_requests *all, td_str container)
{
    static const struct td_resource_list none = {.count = 0};
    for (size_t i = 0; i < all->count; i++) {
        if (td_str_equal(all->items[i].container, container)) {
            return &all->items[i].resources;
        }
    }
    return &none;
}

static struct td_pod_sizes pod_sizes(struct td_arena *arena, td_str hvpa,
                                     const struct td_hvpa_requests *requests,
                                     const struct td_hvpa_requests *limits)
{
    struct td_pod_size *sizes = td_arena_array(arena, struct td_pod_size, requests->count + 1);
    for (size_t i = 0; i < requests->count; i++) {
        td_str container = requests->items[i].container;
        sizes[i] = (struct td_pod_size){
            .container = td_tandem_is_pod(container) ? TD_STR_EMPTY : container,
            .requests = requests->items[i].resources,
            .limits = *sizes_of(limits, container),
        };
    }
    return (struct td_pod_sizes){.hvpa = hvpa, .items = sizes, .count = requests->count};
}

struct td_pod_sizes hvpa_decided_sizes(struct hvpa_reconcile *run)
{
    return pod_sizes(&run->arena, run->item->name, &run->decided.requests, &run->decided.limits);
}

struct td_pod_sizes hvpa_item_sizes(struct td_arena *arena, const struct hvpa_item *item)
{
    return pod_sizes(arena, item->name, &item->sizes, &item->size_limits);
}

bool td_hvpa_loop_sizes(void *loop, struct td_arena *arena, const struct td_controller *top,
                        const struct td_pod *pod, struct td_pod_sizes *ret)
{
    const struct td_ownership_target target = {
        .namespace = top->namespace,
        .api_version = top->api_version,
        .kind = top->kind,
        .name = top->name,
    };
    const struct hvpa_item *item = hvpa_targets_owner(loop, &target);
    if (!item) {
        return false;
    }
    bool is_sized = !item->is_template && (!item->has_selector ||
                                           td_selector_matches(&item->selector, &pod->meta.labels));
    static const struct td_hvpa_requests none = {.count = 0};
    *ret = pod_sizes(arena, item->name, is_sized ? &item->sizes : &none, &item->size_limits);
    return true;
}
