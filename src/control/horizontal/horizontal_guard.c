/*
 * Two controllers must never scale one target (hpa.md 7.8). Another one that serves the same
 * built-in HPA is noticed by the marks that its status writes leave in managedFields. Another
 * object that scales the same target is noticed by targets: ours steps back, since the built-in
 * one may be served by a controller that knows nothing of ours.
 */
#include "api/hvpa/hvpa.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/timefmt.h"
#include "control/horizontal/horizontal_private.h"

/* ---- Another controller ---- */

#define GUARD_CLAIM_SLACK (5 * TD_SECOND) /* for a controller that is late */
#define GUARD_HOLD_PERIODS 8              /* from a claim that was lost to the next */

/* Who wrote the status, and when; times have whole seconds. */
struct guard_marks {
    bool has_ours;
    td_time ours;
    bool has_other;
    td_time other; /* the newest of the others' */
    td_str manager;
};

static struct guard_marks guard_read(struct td_arena *arena, const struct td_sight_object *object)
{
    struct guard_marks marks = {.manager = TD_STR_EMPTY};
    struct td_json *list = NULL;
    if (object->status_text.len == 0 ||
        td_json_parse(arena, object->status_text, &(struct td_json_options){.copy_strings = true},
                      &list, NULL) != TD_OK ||
        !td_json_is(list, TD_JSON_TYPE_ARRAY)) {
        return marks;
    }
    for (const struct td_json *e = td_json_first_item(list); e; e = e->next) {
        struct td_instant at;
        td_str manager = td_json_get_str(e, TD_STR("manager"), TD_STR_EMPTY);
        if (td_time_parse(td_json_get_str(e, TD_STR("time"), TD_STR_EMPTY), &at, NULL) != TD_OK) {
            continue;
        }
        td_time time = td_time_from_instant(at);
        if (td_str_equal(manager, HORIZONTAL_MANAGER)) {
            marks.has_ours = true;
            marks.ours = time;
        } else if (!marks.has_other || time > marks.other) {
            marks.has_other = true;
            marks.other = time;
            marks.manager = manager;
        }
    }
    return marks;
}

static bool guard_is_fresh(const struct td_horizontal_loop *loop, const struct guard_marks *marks)
{
    return marks->has_other && horizontal_now(loop) - marks->other < 2 * loop->options.sync_period;
}

bool horizontal_guard_rival(struct td_arena *arena, const struct td_horizontal_loop *loop,
                            const struct td_sight_object *object, td_str *ret_manager)
{
    struct guard_marks marks = guard_read(arena, object);
    *ret_manager = marks.manager;
    return guard_is_fresh(loop, &marks);
}

/* The claim was made: does it stand? */
static enum horizontal_verdict guard_judge_claim(struct horizontal_item *item,
                                                 const struct guard_marks *marks,
                                                 td_duration *ret_wait)
{
    td_duration left = item->claimed + item->loop->options.sync_period + GUARD_CLAIM_SLACK -
                       horizontal_now(item->loop);
    if (left > 0) {
        *ret_wait = left;
        return HORIZONTAL_WAIT;
    }
    item->claimed = TD_TIME_NONE;
    bool is_ours = marks->has_ours && marks->ours >= marks->other;
    return is_ours ? HORIZONTAL_GO : HORIZONTAL_CLAIM; /* it could not be written */
}

/*
 * A controller that agrees with what is stored writes nothing, so silence alone does not mean that
 * it is gone. Who wants to follow another therefore claims the HPA first: a word in the status that
 * the other takes away in its next pass if there is one. Only a claim that stood for longer than
 * that is acted on.
 */
enum horizontal_verdict horizontal_guard_judge(struct td_arena *arena, struct horizontal_item *item,
                                               const struct td_sight_object *object,
                                               td_str *ret_manager, td_duration *ret_wait)
{
    const struct td_horizontal_loop *loop = item->loop;
    td_time now = horizontal_now(loop);
    td_duration period = loop->options.sync_period;
    struct guard_marks marks = guard_read(arena, object);
    *ret_manager = marks.manager;
    if (item->group != HORIZONTAL_BUILTIN) {
        return HORIZONTAL_GO;
    }
    if (guard_is_fresh(loop, &marks)) {
        item->hold_until =
            item->claimed != TD_TIME_NONE ? now + GUARD_HOLD_PERIODS * period : item->hold_until;
        item->claimed = TD_TIME_NONE;
        item->needs_claim = true;
        return HORIZONTAL_RIVAL;
    }
    if (loop->options.is_alone) {
        return HORIZONTAL_GO;
    }
    if (!marks.has_ours && !marks.has_other) {
        *ret_wait = item->first_seen + 2 * period - now;
        return *ret_wait > 0 ? HORIZONTAL_WAIT : HORIZONTAL_GO;
    }
    if (marks.has_other && now < item->hold_until) {
        return HORIZONTAL_RIVAL;
    }
    if (item->claimed != TD_TIME_NONE) {
        return guard_judge_claim(item, &marks, ret_wait);
    }
    bool is_theirs = marks.has_other && (!marks.has_ours || marks.other > marks.ours);
    return is_theirs || (marks.has_other && item->needs_claim) ? HORIZONTAL_CLAIM : HORIZONTAL_GO;
}

td_str horizontal_guard_words(struct td_arena *arena, td_str manager)
{
    return td_arena_format(
        arena,
        "'%.*s' is serving this HPA, so nothing is done here; start kube-controller-manager with "
        "--controllers=*,-horizontal-pod-autoscaler-controller, or use apiVersion "
        "autoscaling.tandem.dev/v2, or run with --horizontal=off",
        TD_STR_ARG(manager));
}

/* ---- Another object on the same target ---- */

struct td_object_reference horizontal_target(const struct td_json *tree)
{
    const struct td_json *target = td_sight_target(TD_SIGHT_HPAS, tree);
    return (struct td_object_reference){
        .api_version = td_json_get_str(target, TD_STR("apiVersion"), TD_STR_EMPTY),
        .kind = td_json_get_str(target, TD_STR("kind"), TD_STR_EMPTY),
        .name = td_json_get_str(target, TD_STR("name"), TD_STR_EMPTY),
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

static void guard_hpa_added(void *context, const void *added)
{
    struct td_horizontal_loop *loop = context;
    const struct td_sight_object *object = added;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    if (td_sight_tree(&arena, object, &tree, NULL) == TD_OK) {
        const struct td_object_reference target = horizontal_target(tree);
        guard_put(&loop->builtin, &object->head, &target);
    }
}

static void guard_hpa_changed(void *context, const void *before, const void *after)
{
    const struct td_sight_object *old = before;
    const struct td_sight_object *new = after;
    if (old->asked != new->asked) {
        guard_hpa_added(context, after);
    }
}

static void guard_hpa_deleted(void *context, const void *deleted)
{
    struct td_horizontal_loop *loop = context;
    const struct td_cache_head *head = deleted;
    td_hpa_tracker_remove(&loop->builtin, head->namespace, head->name);
}

static void guard_hvpa_deleted(void *context, const void *deleted)
{
    struct td_horizontal_loop *loop = context;
    const struct td_cache_head *head = deleted;
    td_hpa_tracker_remove(&loop->hvpas, head->namespace, head->name);
}

/* One that is not valid does nothing, and its target is free. */
static void guard_hvpa_added(void *context, const void *added)
{
    struct td_horizontal_loop *loop = context;
    const struct td_sight_object *object = added;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct td_hvpa hvpa;
    if (td_sight_tree(&arena, object, &tree, NULL) == TD_OK &&
        td_hvpa_decode(&arena, tree, &hvpa, NULL, NULL) == TD_OK &&
        td_hvpa_scales_horizontally(&hvpa)) {
        guard_put(&loop->hvpas, &object->head, &hvpa.target);
    } else {
        guard_hvpa_deleted(context, added);
    }
}

static void guard_hvpa_changed(void *context, const void *before, const void *after)
{
    const struct td_sight_object *old = before;
    const struct td_sight_object *new = after;
    if (old->asked != new->asked) {
        guard_hvpa_added(context, after);
    }
}

void horizontal_guard_init(struct td_horizontal_loop *loop)
{
    static const struct td_cache_handler hpas = {
        .added = guard_hpa_added, .changed = guard_hpa_changed, .deleted = guard_hpa_deleted};
    static const struct td_cache_handler hvpas = {
        .added = guard_hvpa_added, .changed = guard_hvpa_changed, .deleted = guard_hvpa_deleted};
    td_hpa_tracker_init(&loop->builtin);
    td_hpa_tracker_init(&loop->hvpas);
    td_sight_subscribe(loop->options.control.sight, TD_SIGHT_HPAS, &hpas, loop);
    if (loop->options.control.hvpa_gate) { /* else none of them acts, and targets are free */
        td_sight_subscribe(loop->options.control.sight, TD_SIGHT_HVPAS, &hvpas, loop);
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
                                   "%.*s '%.*s' is scaled by %s '%.*s' too; delete one of them",
                                   TD_STR_ARG(hpa->target.kind), TD_STR_ARG(hpa->target.name),
                                   rows[i].what, TD_STR_ARG(names[0]));
        }
    }
    return TD_STR_EMPTY;
}
