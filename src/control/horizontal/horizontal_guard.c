/*
 * Two controllers must never scale one target (hpa.md 7.8). Whether another one serves the same
 * built-in HPA is judged by decide/horizontal/claim.h. Another object that scales the same target
 * is noticed by targets: ours steps back, since the built-in one may be served by a controller that
 * knows nothing of ours.
 */
#include "api/hvpa/hvpa.h"
#include "base/error.h"
#include "base/limits.h"
#include "control/horizontal/horizontal_private.h"

/* ---- Another controller ---- */

bool horizontal_guard_rival(struct td_arena *arena, const struct td_horizontal_loop *loop,
                            const struct td_informer_object *object, td_str *ret_manager)
{
    struct td_hpa_marks marks = td_hpa_marks_read(arena, object->status_text, HORIZONTAL_MANAGER);
    *ret_manager = marks.manager;
    return td_hpa_marks_are_fresh(&marks, loop->options.sync_period, horizontal_now(loop));
}

enum td_hpa_claim_verdict horizontal_guard_judge(struct td_arena *arena,
                                                 struct horizontal_item *item,
                                                 const struct td_informer_object *object,
                                                 td_str *ret_manager, td_duration *ret_wait)
{
    const struct td_horizontal_options *options = &item->loop->options;
    if (item->group != HORIZONTAL_BUILTIN) {
        *ret_manager = TD_STR_EMPTY;
        return TD_HPA_CLAIM_GO;
    }
    struct td_hpa_marks marks = td_hpa_marks_read(arena, object->status_text, HORIZONTAL_MANAGER);
    *ret_manager = marks.manager;
    return td_hpa_claim_judge(&item->claim, &marks, options->sync_period, options->is_alone,
                              horizontal_now(item->loop), ret_wait);
}

td_str horizontal_guard_words(struct td_arena *arena, td_str manager)
{
    return td_arena_format(
        arena,
        "'%.*s' reconciles this HPA, so tandem does not; start kube-controller-manager with "
        "--controllers=*,-horizontal-pod-autoscaler-controller, or use apiVersion "
        "autoscaling.tandem.dev/v2, or run with --horizontal=off",
        TD_STR_ARG(manager));
}

/* ---- Another object on the same target ---- */

struct td_object_reference horizontal_target(const struct td_json *tree)
{
    const struct td_json *target = td_informers_target(TD_INFORMER_HPAS, tree);
    return (struct td_object_reference){
        .api_version = td_json_text(target, "apiVersion"),
        .kind = td_json_text(target, "kind"),
        .name = td_json_text(target, "name"),
    };
}

static void guard_put(struct td_hpa_tracker *tracker, const struct td_cache_head *head,
                      const struct td_object_reference *target)
{
    /* Past the cap of the tracker it is not known, as if it had not been created yet. */
    if (td_hpa_tracker_add(tracker, head->namespace, head->name) == TD_OK) {
        td_hpa_tracker_put_target(tracker, head->namespace, head->name, target);
    }
}

/* One that is not valid, or does not scale horizontally, does nothing, and its target is free. */
static bool guard_hvpa_target(struct td_arena *arena, const struct td_json *tree,
                              struct td_object_reference *ret)
{
    struct td_hvpa hvpa;
    bool is_scaling = td_hvpa_decode(arena, tree, &hvpa, NULL, NULL) == TD_OK &&
                      td_hvpa_scales_horizontally(&hvpa);
    if (is_scaling) {
        *ret = hvpa.target;
    }
    return is_scaling;
}

static bool guard_hpa_target(struct td_arena *arena, const struct td_json *tree,
                             struct td_object_reference *ret)
{
    (void)arena; /* the target is a part of the tree */
    *ret = horizontal_target(tree);
    return true;
}

static void guard_deleted(void *context, const void *deleted)
{
    const struct horizontal_guarded *guarded = context;
    const struct td_cache_head *head = deleted;
    td_hpa_tracker_remove(guarded->tracker, head->namespace, head->name);
}

static void guard_added(void *context, const void *added)
{
    const struct horizontal_guarded *guarded = context;
    const struct td_informer_object *object = added;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct td_object_reference target;
    if (td_informers_tree(&arena, object, &tree, NULL) == TD_OK &&
        guarded->read(&arena, tree, &target)) {
        guard_put(guarded->tracker, &object->head, &target);
    } else {
        guard_deleted(context, added);
    }
}

static void guard_changed(void *context, const void *before, const void *after)
{
    const struct td_informer_object *old = before;
    const struct td_informer_object *new = after;
    if (old->spec_hash != new->spec_hash) {
        guard_added(context, after);
    }
}

void horizontal_guard_init(struct td_horizontal_loop *loop)
{
    static const struct td_cache_handler handler = {
        .added = guard_added, .changed = guard_changed, .deleted = guard_deleted};
    struct td_informers *informers = loop->options.control.informers;
    td_hpa_tracker_init(&loop->builtin);
    td_hpa_tracker_init(&loop->hvpas);
    loop->guarded_hpas = (struct horizontal_guarded){&loop->builtin, guard_hpa_target};
    loop->guarded_hvpas = (struct horizontal_guarded){&loop->hvpas, guard_hvpa_target};
    td_informers_subscribe(informers, TD_INFORMER_HPAS, &handler, &loop->guarded_hpas);
    if (loop->options.control.hvpa_gate) { /* else none of them acts, and targets are free */
        td_informers_subscribe(informers, TD_INFORMER_HVPAS, &handler, &loop->guarded_hvpas);
    }
}

td_str horizontal_guard_conflict(struct td_arena *arena, const struct td_horizontal_loop *loop,
                                 const struct td_hpa *hpa)
{
    const struct {
        const struct td_hpa_tracker *tracker;
        const char *what;
    } rows[] = {{&loop->builtin, "the autoscaling/v2 HorizontalPodAutoscaler"},
                {&loop->hvpas, "the Hvpa"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str names[TD_HPA_AMBIGUOUS_MAX];
        if (td_hpa_tracker_find_target(rows[i].tracker, hpa->meta.namespace, &hpa->target, names) >
            0) {
            return td_arena_format(arena,
                                   "%.*s '%.*s' is also scaled by %s '%.*s'; delete one of them",
                                   TD_STR_ARG(hpa->target.kind), TD_STR_ARG(hpa->target.name),
                                   rows[i].what, TD_STR_ARG(names[0]));
        }
    }
    return TD_STR_EMPTY;
}
