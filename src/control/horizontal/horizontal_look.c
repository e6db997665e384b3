/*
 * What happens between two syncs of an HPA. Upstream judges each HPA once in a sync period, and
 * what changes in between waits for the next time. Here a change of what an HPA is judged by, of
 * its metrics (horizontal_usage.c) or of its pods, makes the controller look: a sync up to its
 * decision, out of what is known already, on a copy of the history. A look that would not change
 * the number of replicas leaves no trace, neither in the cluster nor in the history; one that would
 * makes the HPA due at once. So all that is seen from outside is what upstream's controller would
 * do whose period happened to end in this moment.
 *
 * Rates stay as they are. After a sync that changed the scale, or wanted to and failed, there are
 * no looks until the next one, a period later: without policies an HPA may double in each sync, and
 * that is meant for each period. Stabilization windows and policies go by time anyway. An HPA that
 * has metrics which are asked for one by one (Pods, Object, External) is not looked at.
 */
#include "api/hpa/hpa_source.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "control/horizontal/horizontal_private.h"
#include "decide/horizontal/pods.h"

#define LOOK_EVERY TD_SECOND /* and no more often, however much changes */

/* ---- When ---- */

void horizontal_look_want(struct horizontal_item *item)
{
    bool is_busy = item->sync || item->is_in_line; /* afterwards it is asked again */
    item->wants_look = !item->is_gone && (is_busy || item->may_look);
    if (item->wants_look && !is_busy) {
        td_duration wait = item->looked + LOOK_EVERY - horizontal_steady(item->loop);
        horizontal_item_queue(item, wait > 0 ? wait : 0);
    }
}

void horizontal_look_allow(struct horizontal_sync *sync)
{
    const struct td_hpa_pass *pass = &sync->decided.pass;
    bool is_resource = true;
    for (size_t i = 0; i < sync->seen.hpa.metric_count; i++) {
        is_resource = is_resource && td_hpa_metric_is_resource(&sync->seen.hpa.metrics[i]);
    }
    sync->item->is_evaluated = pass->is_evaluated;
    sync->item->may_look = pass->is_evaluated && is_resource && !pass->wants_rescale;
}

/* ---- Pods ---- */

static void look_for_pod(struct td_horizontal_loop *loop, const struct td_pod *pod)
{
    td_str found[TD_HPA_AMBIGUOUS_MAX];
    size_t count = td_hpa_tracker_find(&loop->tracker, NULL, pod->meta.namespace, &pod, 1, found);
    for (size_t i = 0; i < count; i++) {
        td_str name = td_str_slice(found[i], pod->meta.namespace.len + 1, found[i].len);
        for (int group = 0; group < HORIZONTAL_GROUPS; group++) {
            struct horizontal_item *item =
                horizontal_item_find(loop, (enum horizontal_group)group, pod->meta.namespace, name);
            if (item) {
                horizontal_look_want(item);
            }
        }
    }
}

static void look_at_pod(void *context, const void *object)
{
    struct td_horizontal_loop *loop = context;
    if (!loop->is_running || loop->items.count == 0) {
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_pod *pod = horizontal_pods_decode(&arena, object);
    if (pod) {
        look_for_pod(loop, pod);
    }
}

/* Is it judged otherwise now? */
static bool look_differs(const struct td_pod *before, const struct td_pod *after)
{
    struct td_hpa_pod old = {.has_sample = false};
    struct td_hpa_pod new = {.has_sample = false};
    td_hpa_pod_fill(&old, before);
    td_hpa_pod_fill(&new, after);
    return old.phase != new.phase || old.ready != new.ready ||
           old.is_terminating != new.is_terminating || old.start_time != new.start_time ||
           old.ready_since != new.ready_since;
}

static void look_at_change(void *context, const void *before, const void *after)
{
    struct td_horizontal_loop *loop = context;
    const struct td_informer_pod *old = before;
    const struct td_informer_pod *new = after;
    if (!loop->is_running || loop->items.count == 0) {
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_pod *was = horizontal_pods_decode(&arena, old);
    const struct td_pod *is = horizontal_pods_decode(&arena, new);
    bool is_other = old->object.labels_hash != new->object.labels_hash;
    if (is && was && (is_other || look_differs(was, is))) {
        look_for_pod(loop, is);
    }
    if (was && is_other) {
        look_for_pod(loop, was);
    }
}

void horizontal_look_init(struct td_horizontal_loop *loop)
{
    static const struct td_cache_handler handler = {
        .added = look_at_pod, .changed = look_at_change, .deleted = look_at_pod};
    td_informers_subscribe(loop->options.control.informers, TD_INFORMER_PODS, &handler, loop);
}

/* ---- The scale as a sync read it ---- */

void horizontal_scale_done(struct horizontal_scale *kept)
{
    td_text_free(kept->selector);
    td_text_free(kept->uid);
    *kept = (struct horizontal_scale){.is_known = false};
}

void horizontal_scale_keep(struct horizontal_scale *kept, const struct td_hpa_scale *scale)
{
    if (!kept->is_known || !td_str_equal(kept->selector, scale->selector) ||
        !td_str_equal(kept->uid, scale->uid)) {
        horizontal_scale_done(kept);
        kept->selector = td_text_copy(scale->selector);
        kept->uid = td_text_copy(scale->uid);
        kept->is_known = true;
    }
    kept->spec_replicas = scale->spec_replicas;
    kept->status_replicas = scale->status_replicas;
}

/* ---- One look ---- */

static void look_end(struct horizontal_sync *sync, bool is_due)
{
    struct horizontal_item *item = sync->item;
    horizontal_sync_free(sync);
    horizontal_item_looked(item, is_due);
}

static void look_decided(struct horizontal_sync *sync)
{
    look_end(sync, sync->decided.pass.wants_rescale);
}

const struct horizontal_purpose horizontal_purpose_look = {
    .decided = look_decided, .is_periodic = true, .is_look = true};

void horizontal_look_start(struct horizontal_item *item, const struct td_informer_object *object)
{
    struct td_horizontal_loop *loop = item->loop;
    struct horizontal_sync *sync = horizontal_sync_new(loop, item->group, &horizontal_purpose_look);
    sync->item = item;
    sync->decided.tracker = &loop->tracker;
    item->sync = sync;
    item->looked = horizontal_steady(loop);
    loop->sync_count++;
    td_hpa_state_copy(sync->decided.state, &item->state);
    if (horizontal_sync_read(sync, object, NULL) != TD_OK) {
        look_end(sync, false);
        return;
    }
    horizontal_sync_begin(sync);
}
