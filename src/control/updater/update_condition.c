/*
 * Condition EvictionBlocked of a VPA: pods that should be updated, and are not evicted because it
 * could only do harm. The rest of the status is the recommender's, perhaps in another process,
 * whose passes have the same rhythm and write the status whole. So a condition is written a few
 * seconds after the pass that found it, as one member of the list, and only to the very version
 * that the informer has. What is lost all the same is found missing by the next pass.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/timefmt.h"
#include "control/updater/update_private.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"
#include "kube/patch/patch_write.h"

#define CONDITION_DELAY (5 * TD_SECOND)

#define CONDITION_TYPE TD_STR("EvictionBlocked")

/* To be written; in the arena of the conditions. */
struct condition_wish {
    td_str namespace;
    td_str name;
    td_str reason; /* empty: it goes */
    td_str message;
    struct condition_wish *next;
};

struct condition_write {
    struct update_conditions *conditions;
    struct condition_write *next;
    struct condition_write *previous;
    struct td_client_call *call;
};

struct update_conditions {
    struct td_update_loop *loop;
    struct td_timer *timer;
    struct td_arena arena; /* of the wishes */
    struct condition_wish *wishes;
    struct condition_write *first_write; /* under way */
};

static void condition_release(struct condition_write *write)
{
    *(write->previous ? &write->previous->next : &write->conditions->first_write) = write->next;
    if (write->next) {
        write->next->previous = write->previous;
    }
    td_free(write);
}

static void condition_written(void *context, const struct td_client_reply *reply)
{
    struct condition_write *write = context;
    struct td_update_loop *loop = write->conditions->loop;
    bool is_outrun = reply->code == TD_CONFLICT || reply->status == 422;
    if (reply->code != TD_OK && reply->code != TD_NOT_FOUND && !is_outrun) {
        td_log_line(loop->options.control.log, TD_LOG_WARN,
                    "cannot update the VPA's EvictionBlocked condition",
                    TD_LOG_C("error", reply->err.message));
    }
    condition_release(write);
    update_settle(loop);
}

static void condition_send(struct update_conditions *conditions, struct td_arena *arena,
                           const struct condition_wish *wish, const struct td_json *patch)
{
    const struct td_control *control = &conditions->loop->options.control;
    const struct td_api_path path = {
        .group = TD_STR("autoscaling.k8s.io"),
        .version = TD_STR("v1"),
        .namespace = wish->namespace,
        .plural = TD_STR("verticalpodautoscalers"),
        .name = wish->name,
        .subresource = TD_STR("status"),
    };
    struct td_client_request request;
    if (td_verb_patch(arena, &path, TD_PATCH_JSON, td_json_line(arena, patch), NULL, &request,
                      NULL) != TD_OK) {
        return;
    }
    request.flow = control->flow;
    struct condition_write *write = td_alloc_zero(1, sizeof(*write));
    *write = (struct condition_write){.conditions = conditions, .next = conditions->first_write};
    if (write->next) {
        write->next->previous = write;
    }
    conditions->first_write = write;
    write->call = td_client_send(control->client, &request, condition_written, write);
}

/* Where it is among the stored conditions, or where it belongs: they are sorted by type. */
static const struct td_json *condition_find(const struct td_json *list, size_t *ret_place)
{
    const struct td_json *item = td_json_first_item(list);
    *ret_place = 0;
    for (; item; item = item->next) {
        int order = td_str_compare(td_json_text(item, "type"), CONDITION_TYPE);
        if (order >= 0) {
            return order == 0 ? item : NULL;
        }
        (*ret_place)++;
    }
    return NULL;
}

static bool condition_says(const struct td_json *stored, td_str reason, td_str message)
{
    return td_str_equal(td_json_text(stored, "reason"), reason) &&
           td_str_equal(td_json_text(stored, "message"), message);
}

static struct td_json *condition_make(struct td_arena *arena, td_time at,
                                      const struct td_json *stored,
                                      const struct condition_wish *wish)
{
    char now[TD_TIME_TEXT_BYTES];
    (void)td_time_format(td_time_to_instant(at), 0, now);
    td_str since = td_json_get_str(stored, TD_STR("lastTransitionTime"),
                                   td_arena_copy_str(arena, td_str_from(now)));
    struct td_json *made = td_json_new_object(arena);
    td_json_set_str(arena, made, TD_STR("lastTransitionTime"), since);
    td_json_set_str(arena, made, TD_STR("message"), wish->message);
    td_json_set_str(arena, made, TD_STR("reason"), wish->reason);
    td_json_set_str(arena, made, TD_STR("status"), TD_STR("True"));
    td_json_set_str(arena, made, TD_STR("type"), CONDITION_TYPE);
    return made;
}

/* One wish: nothing is sent where the VPA says so already, or where it has no conditions at all,
 * since then the recommender has not spoken yet. */
static void condition_write(struct update_conditions *conditions, const struct condition_wish *wish)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_update_loop *loop = conditions->loop;
    const struct td_informer_object *object =
        td_cache_get(td_informers_cache(loop->options.control.informers, TD_INFORMER_VPAS),
                     wish->namespace, wish->name);
    struct td_json *tree;
    if (!object || td_informers_tree(&arena, object, &tree, NULL) != TD_OK) {
        return;
    }
    size_t place;
    const struct td_json *list = td_json_get_path(tree, "status.conditions");
    const struct td_json *stored = condition_find(list, &place);
    bool is_right = wish->reason.len > 0
                        ? stored && condition_says(stored, wish->reason, wish->message)
                        : stored == NULL;
    if (is_right || !td_json_is(list, TD_JSON_TYPE_ARRAY)) {
        return;
    }
    td_str version = td_json_text(td_json_get(tree, TD_STR("metadata")), "resourceVersion");
    struct td_json *patch = td_json_new_array(&arena);
    td_patch_append(&arena, patch, "test", TD_STR("/metadata/resourceVersion"),
                    td_json_new_string(&arena, version));
    td_patch_append(&arena, patch,
                    wish->reason.len == 0 ? "remove"
                    : stored              ? "replace"
                                          : "add",
                    td_arena_format(&arena, "/status/conditions/%zu", place),
                    wish->reason.len > 0 ? condition_make(&arena, update_now(loop), stored, wish)
                                         : NULL);
    condition_send(conditions, &arena, wish, patch);
}

static void condition_flush(struct td_timer *timer, void *context)
{
    struct update_conditions *conditions = context;
    (void)timer;
    for (struct condition_wish *wish = conditions->wishes; wish; wish = wish->next) {
        condition_write(conditions, wish);
    }
    conditions->wishes = NULL;
    td_arena_reset(&conditions->arena);
}

void update_condition_set(struct td_update_loop *loop, const struct td_vpa *vpa, td_str reason,
                          td_str message)
{
    struct update_conditions *conditions = loop->conditions;
    size_t place;
    const struct td_json *stored =
        condition_find(td_json_get_path(vpa->tree, "status.conditions"), &place);
    bool is_right =
        reason.len > 0 ? stored && condition_says(stored, reason, message) : stored == NULL;
    if (is_right) {
        return;
    }
    struct condition_wish *wish = td_arena_new(&conditions->arena, struct condition_wish);
    *wish = (struct condition_wish){
        .namespace = td_arena_copy_str(&conditions->arena, vpa->meta.namespace),
        .name = td_arena_copy_str(&conditions->arena, vpa->meta.name),
        .reason = td_arena_copy_str(&conditions->arena, reason),
        .message = td_arena_copy_str(&conditions->arena, message),
        .next = conditions->wishes,
    };
    if (!conditions->wishes) {
        td_timer_set(conditions->timer, CONDITION_DELAY);
    }
    conditions->wishes = wish;
}

struct update_conditions *update_conditions_new(struct td_update_loop *loop)
{
    struct update_conditions *conditions = td_alloc_zero(1, sizeof(*conditions));
    conditions->loop = loop;
    conditions->timer = td_timer_new(loop->options.control.loop, condition_flush, conditions);
    td_arena_init(&conditions->arena, TD_UPDATE_ARENA_BYTES_MAX);
    return conditions;
}

void update_conditions_stop(struct update_conditions *conditions)
{
    td_timer_stop(conditions->timer);
    conditions->wishes = NULL;
    td_arena_done(&conditions->arena);
}

bool update_conditions_are_idle(const struct update_conditions *conditions)
{
    return !conditions->first_write;
}

void update_conditions_free(struct update_conditions *conditions)
{
    while (conditions->first_write) {
        td_client_cancel(conditions->first_write->call);
        condition_release(conditions->first_write);
    }
    td_timer_free(conditions->timer);
    td_arena_done(&conditions->arena);
    td_free(conditions);
}
