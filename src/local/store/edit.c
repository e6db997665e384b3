/*
 * Writes of the cluster's own controllers: the last steps of the pipeline without its first ones.
 * They say what the object is to be, and the rules of versions, generations, finalizers and events
 * are the same as for any client.
 */
#include "local/store/edit.h"

#include "base/error.h"
#include "base/limits.h"
#include "kube/meta.h"
#include "local/api/api_private.h"
#include "local/api/write.h"

#define EDIT_HASH_START UINT64_C(0xcbf29ce484222325)
#define EDIT_HASH_FACTOR UINT64_C(0x100000001b3)

static struct td_instant edit_now(struct td_api *api)
{
    return td_time_to_instant(td_api_now(api));
}

static int edit_missing(const struct td_resource *resource, td_str name, struct td_error *err)
{
    return td_error_set(err, TD_NOT_FOUND, "%.*s \"%.*s\" not found",
                        TD_STR_ARG(resource->collection), TD_STR_ARG(name));
}

int td_edit_get(struct td_api *api, const struct td_resource *resource, td_str ns, td_str name,
                struct td_arena *arena, struct td_json **ret, struct td_error *err)
{
    const struct td_stored *stored =
        td_store_get(td_api_store(api), resource->collection, ns, name);
    if (!stored) {
        return edit_missing(resource, name, err);
    }
    return td_json_parse(arena, stored->json, &(struct td_json_options){.copy_strings = true}, ret,
                         err);
}

/* A new object: what the server knows of it. */
static int edit_create(struct td_api *api, const struct td_resource *resource,
                       struct td_collection *collection, struct td_arena *arena,
                       struct td_json *object, struct td_error *err)
{
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("uid"), td_api_new_uid(api, arena));
    td_json_set(arena, metadata, TD_STR("creationTimestamp"), td_meta_time(arena, edit_now(api)));
    if (resource->has_generation) {
        td_json_set_int64(arena, metadata, TD_STR("generation"), 1);
    }
    return td_meta_commit(td_api_store(api), collection, TD_CHANGE_ADDED, arena, object, NULL, err);
}

/* Is it a new generation? Binding a pod to a node is none. */
static bool edit_is_generation(struct td_arena *arena, const struct td_resource *resource,
                               const struct td_json *old, const struct td_json *object)
{
    const struct td_json *before = td_json_get(old, TD_STR("spec"));
    const struct td_json *after = td_json_get(object, TD_STR("spec"));
    if (!resource->has_generation || td_json_equal(before, after)) {
        return false;
    }
    bool is_binding = td_str_equal(resource->collection, TD_STR("pods")) &&
                      !td_json_get(before, TD_STR("nodeName")) &&
                      td_json_get(after, TD_STR("nodeName"));
    if (!is_binding) {
        return true;
    }
    struct td_json *unbound = td_json_copy(arena, after, false);
    (void)td_json_remove(unbound, TD_STR("nodeName")); /* it is there */
    return !td_json_equal(before, unbound);
}

static int edit_replace(struct td_api *api, const struct td_resource *resource,
                        struct td_collection *collection, struct td_arena *arena,
                        struct td_json *old, struct td_json *object, struct td_error *err)
{
    static const td_str kept[] = {
        TD_STR_INIT("uid"),
        TD_STR_INIT("creationTimestamp"),
        TD_STR_INIT("generation"),
    };
    const struct td_json *before = td_json_get(old, TD_STR("metadata"));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    for (size_t i = 0; i < TD_COUNT(kept); i++) {
        const struct td_json *value = td_json_get(before, kept[i]);
        td_json_set_copy(arena, metadata, kept[i], value);
    }
    if (td_meta_is_finished(resource, old, object)) {
        return td_meta_commit(td_api_store(api), collection, TD_CHANGE_DELETED, arena, object, NULL,
                              err);
    }
    if (td_json_equal(old, object)) {
        return TD_OK;
    }
    if (edit_is_generation(arena, resource, old, object)) {
        int64_t generation = td_json_get_int64(before, TD_STR("generation"), 0);
        td_json_set_int64(arena, metadata, TD_STR("generation"), generation + 1);
    }
    return td_meta_commit(td_api_store(api), collection, TD_CHANGE_MODIFIED, arena, object, NULL,
                          err);
}

int td_edit_put(struct td_api *api, const struct td_resource *resource, struct td_arena *arena,
                struct td_json *object, struct td_error *err)
{
    struct td_collection *collection;
    int r = td_store_collection(td_api_store(api), resource->collection, &collection, err);
    if (r < 0) {
        return r;
    }
    td_str version = td_meta_text(object, TD_STR("resourceVersion"));
    if (version.len == 0) {
        return edit_create(api, resource, collection, arena, object, err);
    }
    td_str name = td_meta_text(object, TD_STR("name"));
    td_str ns = td_meta_text(object, TD_STR("namespace"));
    struct td_json *old;
    r = td_edit_get(api, resource, ns, name, arena, &old, err);
    if (r < 0) {
        return r;
    }
    if (!td_str_equal(td_meta_text(old, TD_STR("resourceVersion")), version)) {
        return td_error_set(err, TD_CONFLICT, "%.*s \"%.*s\": the object has been modified",
                            TD_STR_ARG(resource->collection), TD_STR_ARG(name));
    }
    return edit_replace(api, resource, collection, arena, old, object, err);
}

int td_edit_delete(struct td_api *api, const struct td_resource *resource, td_str ns, td_str name,
                   td_str uid, td_str propagation, int64_t grace_seconds, struct td_error *err)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *old;
    int r = td_edit_get(api, resource, ns, name, &arena, &old, err);
    if (r < 0) {
        return r;
    }
    if (uid.len > 0 && !td_str_equal(td_meta_text(old, TD_STR("uid")), uid)) {
        return td_error_set(err, TD_CONFLICT, "%.*s \"%.*s\": the UID does not match",
                            TD_STR_ARG(resource->collection), TD_STR_ARG(name));
    }
    const struct td_deletion options = {
        .propagation = propagation,
        .grace_seconds = grace_seconds,
    };
    struct td_json *object = td_json_copy(&arena, old, false);
    enum td_delete_outcome outcome =
        td_delete_plan(&arena, resource, &options, edit_now(api), object);
    if (outcome == TD_DELETE_PENDING ||
        (outcome == TD_DELETE_LATER && td_json_equal(old, object))) {
        return TD_OK;
    }
    enum td_change_type type = outcome == TD_DELETE_NOW ? TD_CHANGE_DELETED : TD_CHANGE_MODIFIED;
    struct td_collection *collection = td_store_find(td_api_store(api), resource->collection);
    return td_meta_commit(td_api_store(api), collection, type, &arena, object, NULL, err);
}

/* ---- Events ---- */

static struct td_json *edit_involved(struct td_arena *arena, const struct td_json *about,
                                     td_str part)
{
    static const td_str of_metadata[] = {
        TD_STR_INIT("namespace"),
        TD_STR_INIT("name"),
        TD_STR_INIT("uid"),
        TD_STR_INIT("resourceVersion"),
    };
    struct td_json *involved = td_json_new_object(arena);
    td_json_set_str(arena, involved, TD_STR("kind"), td_json_text(about, "kind"));
    td_json_set_str(arena, involved, TD_STR("apiVersion"), td_json_text(about, "apiVersion"));
    for (size_t i = 0; i < TD_COUNT(of_metadata); i++) {
        td_str value = td_meta_text(about, of_metadata[i]);
        td_json_set_text(arena, involved, of_metadata[i], value);
    }
    td_json_set_text(arena, involved, TD_STR("fieldPath"), part);
    return involved;
}

/* The same occasion on the same object gives the same name, which is how repeats are counted. */
static td_str edit_event_name(struct td_arena *arena, const struct td_json *about,
                              const struct td_occasion *event)
{
    td_str key = td_arena_format(
        arena, "%.*s/%.*s/%.*s/%.*s/%.*s/%.*s/%.*s", TD_STR_ARG(td_meta_text(about, TD_STR("uid"))),
        TD_STR_ARG(event->type), TD_STR_ARG(event->reason), TD_STR_ARG(event->component),
        TD_STR_ARG(event->message), TD_STR_ARG(event->host), TD_STR_ARG(event->part));
    uint64_t hash = EDIT_HASH_START; /* FNV-1a: the same in every run */
    for (size_t i = 0; i < key.len; i++) {
        hash = (hash ^ (unsigned char)key.ptr[i]) * EDIT_HASH_FACTOR;
    }
    td_str base =
        td_str_cut_utf8(td_meta_text(about, TD_STR("name")), TD_EVENT_NAME_BASE_BYTES_MAX);
    return td_arena_format(arena, "%.*s.%016llx", TD_STR_ARG(base), (unsigned long long)hash);
}

static struct td_json *edit_event_object(struct td_arena *arena, const struct td_json *about,
                                         const struct td_occasion *event, td_str ns, td_str name)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("kind"), TD_STR("Event"));
    td_json_set_str(arena, object, TD_STR("apiVersion"), TD_STR("v1"));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"), name);
    td_json_set_str(arena, metadata, TD_STR("namespace"), ns);
    td_json_set(arena, object, TD_STR("involvedObject"), edit_involved(arena, about, event->part));
    td_json_set_str(arena, object, TD_STR("reason"), event->reason);
    td_json_set_str(arena, object, TD_STR("message"), event->message);
    struct td_json *source = td_json_ensure_object(arena, object, TD_STR("source"));
    td_json_set_str(arena, source, TD_STR("component"), event->component);
    td_json_set_text(arena, source, TD_STR("host"), event->host);
    td_json_set_int64(arena, object, TD_STR("count"), 0);
    td_json_set_str(arena, object, TD_STR("type"), event->type);
    td_json_set(arena, object, TD_STR("eventTime"), td_json_new_null(arena));
    td_json_set_str(arena, object, TD_STR("reportingComponent"), event->component);
    td_json_set_str(arena, object, TD_STR("reportingInstance"), event->host);
    return object;
}

void td_edit_record(struct td_api *api, const struct td_json *about,
                    const struct td_occasion *reported)
{
    struct td_resource_at at =
        td_resources_find_kind(td_api_resources(api), TD_STR("v1"), TD_STR("Event"));
    if (!at.resource) {
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_occasion event = *reported;
    event.message = td_str_cut_utf8(reported->message, TD_EVENT_MESSAGE_BYTES_MAX);
    td_str ns = td_meta_text(about, TD_STR("namespace"));
    ns = ns.len > 0 ? ns : TD_STR("default");
    td_str name = edit_event_name(&arena, about, &event);
    struct td_json *object;
    if (td_edit_get(api, at.resource, ns, name, &arena, &object, NULL) < 0) {
        object = edit_event_object(&arena, about, &event, ns, name);
    }
    struct td_json *now = td_meta_time(&arena, edit_now(api));
    if (!td_json_get(object, TD_STR("firstTimestamp"))) {
        td_json_set_copy(&arena, object, TD_STR("firstTimestamp"), now);
    }
    td_json_set(&arena, object, TD_STR("lastTimestamp"), now);
    td_json_set_int64(&arena, object, TD_STR("count"),
                      td_json_get_int64(object, TD_STR("count"), 0) + 1);
    /* An event that cannot be stored is lost, as with every other recorder. */
    (void)td_edit_put(api, at.resource, &arena, object, NULL);
}

void td_edit_event(struct td_api *api, const struct td_json *about, td_str type, td_str reason,
                   td_str component, td_str message)
{
    const struct td_occasion event = {
        .type = type, .reason = reason, .component = component, .message = message};
    td_edit_record(api, about, &event);
}
