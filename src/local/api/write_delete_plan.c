/*
 * What a delete request makes of an object, by the rules of upstream's registry:
 *
 * 1. A pod that runs somewhere is given time: it is marked and stays until the kubelet deletes it
 * again with no time left. A later request can only shorten that time.
 * 2. Foreground and Orphan are promises of the garbage collector: a finalizer keeps the object
 * until they are kept. What the request says goes before a finalizer that is there already.
 * 3. An object with finalizers is marked as being deleted and stays until the last one is gone.
 * 4. A namespace is always marked first, as terminating: its content goes before it does.
 * 5. Everything else goes at once.
 */
#include "base/error.h"
#include "local/api/write.h"
#include "model/pod.h"

#define PLAN_FOREGROUND TD_STR("foregroundDeletion")
#define PLAN_ORPHAN TD_STR("orphan")

/* Kinds older than the garbage collector keep what they own unless the request says otherwise. */
static bool plan_leaves_orphans(const struct td_resource *resource)
{
    return td_str_equal(resource->collection, TD_STR("replicationcontrollers")) ||
           td_str_equal(resource->collection, TD_STR("jobs.batch"));
}

/* Which of the collector's two finalizers the object is to have; empty: none. */
static td_str plan_promise(const struct td_resource *resource, const struct td_deletion *options,
                           const struct td_json *finalizers)
{
    if (td_str_equal(resource->kind, TD_STR("Event"))) {
        return TD_STR_EMPTY;
    }
    if (options->has_orphans) {
        return options->orphans ? PLAN_ORPHAN : TD_STR_EMPTY;
    }
    if (options->propagation.len > 0) {
        bool is_orphan = td_str_equal(options->propagation, TD_STR("Orphan"));
        bool is_foreground = td_str_equal(options->propagation, TD_STR("Foreground"));
        td_str rest = is_foreground ? PLAN_FOREGROUND : TD_STR_EMPTY;
        return is_orphan ? PLAN_ORPHAN : rest;
    }
    if (td_json_has_text(finalizers, PLAN_ORPHAN)) {
        return PLAN_ORPHAN;
    }
    if (td_json_has_text(finalizers, PLAN_FOREGROUND)) {
        return PLAN_FOREGROUND;
    }
    return plan_leaves_orphans(resource) ? PLAN_ORPHAN : TD_STR_EMPTY;
}

static void plan_set_promise(struct td_arena *arena, struct td_json *metadata, td_str promise)
{
    const struct td_json *before = td_json_get(metadata, TD_STR("finalizers"));
    struct td_json *after = td_json_new_array(arena);
    for (const struct td_json *item = td_json_first_item(before); item; item = item->next) {
        bool is_promise =
            td_json_is(item, TD_JSON_TYPE_STRING) &&
            (td_str_equal(item->text, PLAN_ORPHAN) || td_str_equal(item->text, PLAN_FOREGROUND));
        if (!is_promise || (promise.len > 0 && td_str_equal(item->text, promise))) {
            td_json_append(after, td_json_copy(arena, item, false));
        }
    }
    if (promise.len > 0 && !td_json_has_text(after, promise)) {
        td_json_append(after, td_json_new_string(arena, promise));
    }
    td_json_set_filled(arena, metadata, TD_STR("finalizers"), after);
}

/* The first mark of a deletion also counts as a new generation. */
static void plan_mark(struct td_arena *arena, struct td_json *metadata, struct td_instant at,
                      int64_t grace_seconds)
{
    int64_t generation = td_json_get_int64(metadata, TD_STR("generation"), 0);
    if (!td_json_get(metadata, TD_STR("deletionTimestamp")) && generation > 0) {
        td_json_set_int64(arena, metadata, TD_STR("generation"), generation + 1);
    }
    at.unix_seconds += grace_seconds;
    td_json_set(arena, metadata, TD_STR("deletionTimestamp"), td_meta_time(arena, at));
    td_json_set_int64(arena, metadata, TD_STR("deletionGracePeriodSeconds"), grace_seconds);
}

/* Seconds that a pod is given. */
static int64_t plan_pod_grace(const struct td_json *pod, int64_t asked)
{
    const struct td_json *spec = td_json_get(pod, TD_STR("spec"));
    bool has_node = td_json_text(spec, "nodeName").len > 0;
    if (!has_node || td_pod_tree_is_over(pod)) {
        return 0;
    }
    int64_t grace = asked;
    if (asked == TD_GRACE_UNSET) {
        grace = td_json_get_int64(spec, TD_STR("terminationGracePeriodSeconds"), 0);
    }
    grace = grace < 0 ? 1 : grace;
    return grace > TD_GRACE_SECONDS_MAX ? TD_GRACE_SECONDS_MAX : grace;
}

/* A pod that is being deleted already: its time can be shortened. True: nothing changes. */
static bool plan_shorten(struct td_arena *arena, struct td_json *metadata, int64_t asked,
                         struct td_instant now)
{
    int64_t before = td_json_get_int64(metadata, TD_STR("deletionGracePeriodSeconds"), 0);
    int64_t grace = asked != TD_GRACE_UNSET && asked < 0 ? 1 : asked;
    if (asked == TD_GRACE_UNSET || grace >= before) {
        return true;
    }
    struct td_instant until = now;
    td_str text = td_json_text(metadata, "deletionTimestamp");
    struct td_instant marked;
    if (td_time_parse(text, &marked, NULL) == TD_OK) {
        until.unix_seconds = marked.unix_seconds - before + grace;
    }
    if (until.unix_seconds < now.unix_seconds) {
        until = now;
        grace = grace != 0 ? 1 : 0;
    }
    td_json_set(arena, metadata, TD_STR("deletionTimestamp"), td_meta_time(arena, until));
    td_json_set_int64(arena, metadata, TD_STR("deletionGracePeriodSeconds"), grace);
    return false;
}

static enum td_delete_outcome plan_namespace(struct td_arena *arena,
                                             const struct td_resource *resource,
                                             struct td_instant now, struct td_json *object)
{
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    if (td_json_get(metadata, TD_STR("deletionTimestamp"))) {
        return td_meta_has_finalizers(resource, object) ? TD_DELETE_PENDING : TD_DELETE_NOW;
    }
    td_json_set(arena, metadata, TD_STR("deletionTimestamp"), td_meta_time(arena, now));
    struct td_json *status = td_json_ensure_object(arena, object, TD_STR("status"));
    td_json_set_str(arena, status, TD_STR("phase"), TD_STR("Terminating"));
    return td_meta_has_finalizers(resource, object) ? TD_DELETE_LATER : TD_DELETE_NOW;
}

enum td_delete_outcome td_delete_plan(struct td_arena *arena, const struct td_resource *resource,
                                      const struct td_deletion *options, struct td_instant now,
                                      struct td_json *object)
{
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    if (td_str_equal(resource->collection, TD_STR("namespaces"))) {
        return plan_namespace(arena, resource, now, object);
    }
    bool is_marked = td_json_get(metadata, TD_STR("deletionTimestamp")) != NULL;
    int64_t pending = td_json_get_int64(metadata, TD_STR("deletionGracePeriodSeconds"), 0);
    int64_t grace = 0;
    if (td_str_equal(resource->collection, TD_STR("pods"))) {
        if (is_marked && pending != 0) {
            if (plan_shorten(arena, metadata, options->grace_seconds, now)) {
                return TD_DELETE_PENDING;
            }
            grace = td_json_get_int64(metadata, TD_STR("deletionGracePeriodSeconds"), 0);
        } else if (!is_marked) {
            grace = plan_pod_grace(object, options->grace_seconds);
            plan_mark(arena, metadata, now, grace);
        }
        is_marked = true;
    }
    td_str promise = plan_promise(resource, options, td_json_get(metadata, TD_STR("finalizers")));
    plan_set_promise(arena, metadata, promise);
    if (!td_meta_has_finalizers(resource, object) && grace == 0) {
        return TD_DELETE_NOW;
    }
    if (!is_marked) {
        plan_mark(arena, metadata, now, 0);
    }
    return TD_DELETE_LATER;
}
