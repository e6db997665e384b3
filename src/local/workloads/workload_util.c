/*
 * What the workload controllers share: loading and writing an object, its status and conditions,
 * claiming children by owner and selector, creating and deleting pods, hashing templates.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/timefmt.h"
#include "local/store/edit.h"
#include "local/workloads/workload_private.h"

#define UTIL_HASH_START UINT32_C(2166136261) /* FNV-1a of 32 bits */
#define UTIL_HASH_FACTOR UINT32_C(16777619)
#define UTIL_HASH_LETTERS "bcdfghjklmnpqrstvwxz2456789"

/* ---- Objects ---- */

bool td_workload_load(struct td_workload_control *control, struct td_arena *arena, td_str ns,
                      td_str name, struct td_workload_item *ret)
{
    struct td_json *object;
    if (td_edit_get(control->all->api, control->resource, ns, name, arena, &object, NULL) !=
        TD_OK) {
        return false;
    }
    struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    *ret = (struct td_workload_item){
        .control = control,
        .arena = arena,
        .object = object,
        .metadata = metadata,
        .spec = td_json_ensure_object(arena, object, TD_STR("spec")),
        .ns = td_json_text(metadata, "namespace"),
        .name = td_json_text(metadata, "name"),
        .uid = td_json_text(metadata, "uid"),
        .generation = td_json_get_int64(metadata, TD_STR("generation"), 0),
        .is_deleting = td_json_get(metadata, TD_STR("deletionTimestamp")) != NULL,
        .now = td_api_now(control->all->api),
    };
    return true;
}

int td_workload_put(struct td_workload_item *item)
{
    struct td_workload_control *control = item->control;
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_put(control->all->api, control->resource, item->arena, item->object, &err);
    if (code == TD_CONFLICT) {
        td_workload_enqueue(control, item->ns, item->name);
    } else if (code != TD_OK && code != TD_NOT_FOUND) {
        td_log_line(control->all->log, TD_LOG_ERROR, "cannot update workload",
                    TD_LOG_S("kind", control->row->kind), TD_LOG_S("name", item->name),
                    TD_LOG_C("error", err.message));
    }
    return code;
}

struct td_json *td_workload_status(const struct td_workload_item *item)
{
    const struct td_json *old = td_json_get(item->object, TD_STR("status"));
    return old ? td_json_copy(item->arena, old, false) : td_json_new_object(item->arena);
}

int td_workload_put_status(struct td_workload_item *item, struct td_json *status)
{
    const struct td_json *old = td_json_get(item->object, TD_STR("status"));
    if (old && td_json_equal(old, status)) {
        return TD_OK;
    }
    td_json_set(item->arena, item->object, TD_STR("status"), status);
    return td_workload_put(item);
}

void td_workload_set_count(struct td_arena *arena, struct td_json *object, td_str key,
                           int64_t value)
{
    if (value != 0) {
        td_json_set_int64(arena, object, key, value);
    } else {
        (void)td_json_remove(object, key); /* it may not be there */
    }
}

int64_t td_workload_min_ready(const struct td_workload_item *item)
{
    return td_json_get_int64(item->spec, TD_STR("minReadySeconds"), 0);
}

struct td_json *td_workload_time(struct td_arena *arena, td_time time)
{
    return td_json_new_string(arena, td_time_text(arena, td_time_to_instant(time), 0));
}

void td_workload_event(const struct td_workload_item *item, bool is_warning, const char *reason,
                       const char *format, ...)
{
    char text[TD_EVENT_MESSAGE_BYTES_MAX + 1];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (len > 0) {
        td_edit_event(item->control->all->api, item->object,
                      is_warning ? TD_STR("Warning") : TD_STR("Normal"), td_str_from(reason),
                      item->control->row->component, td_str_from(text));
    }
}

/* ---- Conditions ---- */

void td_workload_condition_remove(struct td_json *status, td_str type)
{
    if (td_condition_remove(status, type) &&
        td_json_item_count(td_json_get(status, TD_STR("conditions"))) == 0) {
        (void)td_json_remove(status, TD_STR("conditions")); /* it is there */
    }
}

struct td_json *td_workload_condition(const struct td_workload_item *item,
                                      const struct td_condition *condition, const char *other_time)
{
    struct td_arena *arena = item->arena;
    struct td_json *made = td_json_new_object(arena);
    td_json_set_str(arena, made, TD_STR("type"), condition->type);
    td_json_set_str(arena, made, TD_STR("status"), condition->status);
    if (other_time) {
        td_json_set(arena, made, td_str_from(other_time), td_workload_time(arena, item->now));
    }
    td_json_set(arena, made, TD_STR("lastTransitionTime"), td_workload_time(arena, item->now));
    td_json_set_str(arena, made, TD_STR("reason"), condition->reason);
    td_json_set_str(arena, made, TD_STR("message"), condition->message);
    return made;
}

void td_workload_condition_put(struct td_arena *arena, struct td_json *status,
                               struct td_json *condition)
{
    td_workload_condition_remove(status, td_json_text(condition, "type"));
    struct td_json *list = td_json_ensure_array(arena, status, TD_STR("conditions"));
    td_json_append(list, condition);
}

/* ---- Children ---- */

/* What an item claims its children by. */
struct util_claim {
    struct td_child_index *index;
    const struct td_resource *resource;
    struct td_selector selector;
    td_workload_mine_fn is_mine;
};

struct td_selector td_workload_selector(const struct td_workload_item *item)
{
    struct td_json *selector = td_json_get(item->spec, TD_STR("selector"));
    struct td_selector result = {.matches_nothing = true};
    if (selector && !td_json_get(selector, TD_STR("matchLabels")) &&
        !td_json_get(selector, TD_STR("matchExpressions")) &&
        td_str_equal(item->control->row->api_version, TD_STR("v1"))) {
        /* A ReplicationController's selector is a plain set of labels. */
        struct td_json *wrapped = td_json_new_object(item->arena);
        td_json_set_copy(item->arena, wrapped, TD_STR("matchLabels"), selector);
        selector = wrapped;
    }
    if (td_selector_from_json(item->arena, selector, &result, NULL) != TD_OK ||
        td_selector_is_empty(&result)) {
        return (struct td_selector){.matches_nothing = true};
    }
    return result;
}

struct td_rank_pod td_pod_rank(const struct td_child *pod, size_t index)
{
    return (struct td_rank_pod){
        .index = index,
        .node = pod->pod.node,
        .phase = pod->pod.phase,
        .is_ready = pod->pod.is_ready,
        .deletion_cost = pod->pod.deletion_cost,
        .ready_since = pod->pod.ready_since,
        .restarts = pod->pod.restarts,
        .sidecar_restarts = pod->pod.sidecar_restarts,
        .created = pod->created,
        .uid = pod->stored->uid,
    };
}

bool td_pod_is_active(const struct td_child *pod)
{
    return !pod->is_deleting && !td_pod_phase_is_over(pod->pod.phase);
}

/* Writes the child with the item as its controller, or with none. */
static void util_set_controller(struct td_workload_item *item, const struct util_claim *claim,
                                const struct td_child *child, bool is_adopted)
{
    struct td_workloads *all = item->control->all;
    struct td_json *object;
    struct td_stored *stored = td_stored_ref(child->stored);
    if (td_edit_get(all->api, claim->resource, stored->ns, stored->name, item->arena, &object,
                    NULL) == TD_OK) {
        struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
        const struct td_json *old = td_json_get(metadata, TD_STR("ownerReferences"));
        struct td_json *kept = td_json_new_array(item->arena);
        for (const struct td_json *r = td_json_first_item(old); r; r = r->next) {
            if (!td_str_equal(td_json_text(r, "uid"), item->uid)) {
                td_json_append(kept, td_json_copy(item->arena, r, false));
            }
        }
        if (is_adopted) {
            td_json_append(kept, td_controller_reference(item->arena, item->object));
        }
        td_json_set_filled(item->arena, metadata, TD_STR("ownerReferences"), kept);
        if (td_edit_put(all->api, claim->resource, item->arena, object, NULL) != TD_OK) {
            td_workload_enqueue(item->control, item->ns, item->name);
        }
    }
    td_child_index_refresh(claim->index, stored->ns, stored->name);
    td_stored_unref(stored);
}

/* Orphans that the item selects become its own. */
static void util_adopt(struct td_workload_item *item, const struct util_claim *claim)
{
    struct td_children orphans = td_child_index_orphans(claim->index, item->arena, item->ns);
    for (size_t i = 0; i < orphans.count; i++) {
        const struct td_child *child = orphans.items[i];
        if (td_pod_is_active(child) && td_selector_matches(&claim->selector, &child->labels) &&
            (!claim->is_mine || claim->is_mine(item, child))) {
            util_set_controller(item, claim, child, true);
        }
    }
}

struct td_children td_workload_claim(struct td_workload_item *item, struct td_child_index *index,
                                     const struct td_resource *resource,
                                     td_workload_mine_fn is_mine)
{
    const struct util_claim claim = {index, resource, td_workload_selector(item), is_mine};
    if (!item->is_deleting) {
        util_adopt(item, &claim);
    }
    struct td_children own = td_child_index_list(index, item->arena, item->uid);
    struct td_children kept = {
        .items = td_arena_array(item->arena, struct td_child *, own.count),
    };
    for (size_t i = 0; i < own.count; i++) {
        struct td_child *child = own.items[i];
        if (is_mine && !is_mine(item, child)) {
            continue;
        }
        if (td_selector_matches(&claim.selector, &child->labels)) {
            kept.items[kept.count++] = child;
        } else if (!item->is_deleting && td_pod_is_active(child)) {
            util_set_controller(item, &claim, child, false);
        }
    }
    return kept;
}

struct td_children td_workload_claim_pods(struct td_workload_item *item,
                                          td_workload_mine_fn is_mine)
{
    struct td_workloads *all = item->control->all;
    return td_workload_claim(item, &all->pod_index, all->pods, is_mine);
}

bool td_pod_is_available(const struct td_child *pod, int64_t min_ready_seconds, td_time now)
{
    if (!pod->pod.is_ready) {
        return false;
    }
    return min_ready_seconds <= 0 || (pod->pod.ready_since != TD_TIME_NONE &&
                                      pod->pod.ready_since + min_ready_seconds * TD_SECOND <= now);
}

void td_workload_watch_available(struct td_workload_item *item, const struct td_children *pods,
                                 int64_t min_ready_seconds)
{
    td_duration next = 0;
    for (size_t i = 0; i < pods->count && min_ready_seconds > 0; i++) {
        const struct td_child *pod = pods->items[i];
        if (!pod->pod.is_ready || td_pod_is_available(pod, min_ready_seconds, item->now)) {
            continue;
        }
        td_duration wait = pod->pod.ready_since + min_ready_seconds * TD_SECOND - item->now;
        wait = pod->pod.ready_since == TD_TIME_NONE ? min_ready_seconds * TD_SECOND : wait;
        next = next == 0 || wait < next ? wait : next;
    }
    if (next > 0) {
        td_workload_enqueue_after(item->control, item->ns, item->name, next);
    }
}

/* ---- Pods ---- */

int td_workload_delete_pod(struct td_workload_item *item, const struct td_child *pod)
{
    struct td_workloads *all = item->control->all;
    struct td_error err = TD_ERROR_INIT;
    td_str name = td_arena_copy_str(item->arena, pod->stored->name);
    int code = td_edit_delete(all->api, all->pods, item->ns, name, pod->stored->uid, TD_STR_EMPTY,
                              -1, &err);
    if (code == TD_OK) {
        td_workload_event(item, false, "SuccessfulDelete", "Deleted pod: %.*s", TD_STR_ARG(name));
    } else if (code != TD_NOT_FOUND && code != TD_CONFLICT) {
        td_workload_event(item, true, "FailedDelete", "Error deleting: %s", err.message);
    }
    return code;
}

size_t td_workload_pending(const struct td_workload_item *item)
{
    return td_pod_maker_pending(item->control->maker, item->uid);
}

bool td_workload_can_create(struct td_workload_item *item)
{
    const struct td_workload_owner *owner = td_workload_owner(item->control->all, item->uid);
    return td_workload_pending(item) == 0 &&
           !(owner && owner->failures > 0 && owner->retry_at > item->now);
}

void td_workload_create_pods(struct td_workload_item *item, size_t count, td_workload_make_fn make,
                             void *context)
{
    struct td_workloads *all = item->control->all;
    struct td_workload_owner *owner = td_workload_owner(all, item->uid);
    unsigned failures = owner ? owner->failures : 0;
    size_t batch = owner && owner->batch > 0 ? owner->batch : 1;
    size_t done = 0;
    while (done < count) {
        for (size_t i = 0; i < batch && done < count; i++, done++) {
            struct td_json *pod = make(item, done, context);
            td_pod_maker_create(item->control->maker, item->object, pod);
        }
        batch *= 2;
        owner = td_workload_owner(all, item->uid);
        if (owner && owner->failures > failures) {
            return; /* the rest would be refused as well */
        }
        if (td_workload_pending(item) > 0 && done < count) {
            td_workload_owner_need(all, item->uid)->batch = batch;
            return; /* its answers bring the workload back here */
        }
    }
    if (owner && owner->failures == 0) {
        td_workload_owner_clear(all, item->uid);
    }
}

td_str td_workload_hash(struct td_arena *arena, const struct td_json *tree, int64_t collisions)
{
    struct td_json *sorted = td_json_copy(arena, tree, false);
    td_json_sort(arena, sorted);
    td_auto_buf text = td_buf_capped(TD_STREAM_BYTES_MAX);
    td_json_write(sorted, &(struct td_json_format){.indent = 0}, &text);
    if (collisions > 0) {
        (void)td_buf_append_format(&text, "#%lld", (long long)collisions); /* cut at the maximum */
    }
    uint32_t hash = UTIL_HASH_START;
    td_str bytes = td_buf_str(&text);
    for (size_t i = 0; i < bytes.len; i++) {
        hash = (hash ^ (unsigned char)bytes.ptr[i]) * UTIL_HASH_FACTOR;
    }
    char digits[16];
    int len = snprintf(digits, sizeof(digits), "%u", hash);
    for (int i = 0; i < len; i++) {
        digits[i] = UTIL_HASH_LETTERS[(unsigned char)digits[i] % (sizeof(UTIL_HASH_LETTERS) - 1)];
    }
    return td_arena_copy_str(arena, (td_str){.ptr = digits, .len = (size_t)len});
}
