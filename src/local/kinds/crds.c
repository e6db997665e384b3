/*
 * A controller over the changes of the collection of definitions. Each change wakes it; it reads
 * the change log from its cursor, replaces or removes the row of the resource, and writes the
 * status of definitions that say something new. When the log has dropped changes it starts over
 * from what is stored. It writes that status and deletes the objects whose definition is gone,
 * nothing else, and stops with td_crds_free.
 */
#include "local/kinds/crds.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "local/api/api.h"
#include "local/api/write.h"
#include "local/kinds/condition.h"
#include "local/kinds/custom_row.h"
#include "local/store/edit.h"
#include "local/store/store.h"

#define CRDS_COLLECTION "customresourcedefinitions.apiextensions.k8s.io"

struct td_crds {
    struct td_api *api;
    struct td_log *log;
    struct td_watch_cursor cursor;
};

static void crds_complain(struct td_crds *crds, td_str name, const struct td_error *err)
{
    td_log_line(crds->log, TD_LOG_ERROR, "cannot serve the CustomResourceDefinition",
                TD_LOG_S("definition", name), TD_LOG_C("error", err->message));
}

/* ---- Status ---- */

static struct td_json *crds_condition(struct td_crds *crds, struct td_arena *arena,
                                      const char *type, const char *reason, const char *message)
{
    struct td_instant now = td_time_to_instant(td_api_now(crds->api));
    struct td_json *condition = td_json_new_object(arena);
    td_json_set(arena, condition, TD_STR("lastTransitionTime"), td_meta_time(arena, now));
    td_json_set_str(arena, condition, TD_STR("message"), td_str_from(message));
    td_json_set_str(arena, condition, TD_STR("reason"), td_str_from(reason));
    td_json_set_str(arena, condition, TD_STR("status"), TD_STR("True"));
    td_json_set_str(arena, condition, TD_STR("type"), td_str_from(type));
    return condition;
}

/* Adds the storage version to those that objects may be stored in. */
static bool crds_add_stored(struct td_arena *arena, struct td_json *status, td_str storage)
{
    struct td_json *versions = td_json_ensure_array(arena, status, TD_STR("storedVersions"));
    if (td_json_has_text(versions, storage)) {
        return false;
    }
    td_json_append(versions, td_json_new_string(arena, storage));
    return true;
}

static void crds_write_status(struct td_crds *crds, const struct td_stored *stored,
                              const struct td_resource *row)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    struct td_json *object;
    const struct td_json_options options = {.copy_strings = true};
    if (td_json_parse(&arena, stored->json, &options, &object, &err) != TD_OK) {
        crds_complain(crds, stored->name, &err);
        return;
    }
    struct td_json *status = td_json_ensure_object(&arena, object, TD_STR("status"));
    struct td_json *names = td_json_copy(
        &arena, td_json_get(td_json_get(object, TD_STR("spec")), TD_STR("names")), false);
    bool is_new = crds_add_stored(&arena, status, row->versions[row->storage].name);
    if (td_condition_is(status, TD_STR("Established"), TD_STR("True")) && !is_new &&
        td_json_equal(td_json_get(status, TD_STR("acceptedNames")), names)) {
        return;
    }
    struct td_json *conditions = td_json_new_array(&arena);
    td_json_append(conditions, crds_condition(crds, &arena, "NamesAccepted", "NoConflicts",
                                              "no conflicts found"));
    td_json_append(conditions, crds_condition(crds, &arena, "Established", "InitialNamesAccepted",
                                              "the initial names have been accepted"));
    td_json_set(&arena, status, TD_STR("acceptedNames"), names);
    td_json_set(&arena, status, TD_STR("conditions"), conditions);
    const struct td_resource *definitions = td_api_kind(
        crds->api, TD_STR("apiextensions.k8s.io/v1"), TD_STR("CustomResourceDefinition"));
    int code = td_edit_put(crds->api, definitions, &arena, object, &err);
    if (code != TD_OK && code != TD_CONFLICT) { /* overtaken: its own change comes next */
        crds_complain(crds, stored->name, &err);
    }
}

/* ---- Rows ---- */

static void crds_serve(struct td_crds *crds, const struct td_stored *stored)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_resource *row;
    void (*release)(struct td_resource * row);
    if (td_custom_row_new(stored->json, &row, &release, &err) != TD_OK) {
        crds_complain(crds, stored->name, &err);
        return;
    }
    if (row->version_count > 0) {
        td_resources_put_custom(td_api_resources(crds->api), row, release);
        crds_write_status(crds, stored, row);
    } else { /* no version is served: it is not found, but its objects stay */
        td_resources_remove_custom(td_api_resources(crds->api), row->group, row->plural);
        crds_write_status(crds, stored, row);
        release(row);
    }
}

/* All objects of a definition that is gone, whatever finalizers they have: no client could remove
 * those any more. */
static void crds_wipe(struct td_crds *crds, td_str collection_key)
{
    struct td_store *store = td_api_store(crds->api);
    struct td_collection *collection = td_store_find(store, collection_key);
    struct td_collection_iter iter = td_collection_walk(collection, TD_STR_EMPTY);
    for (struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
        struct td_error err = TD_ERROR_INIT;
        struct td_json *object;
        const struct td_json_options options = {.copy_strings = true};
        if (td_json_parse(&arena, stored->json, &options, &object, &err) != TD_OK ||
            td_meta_commit(store, collection, TD_CHANGE_DELETED, &arena, object, NULL, &err) !=
                TD_OK) {
            crds_complain(crds, stored->name, &err);
        }
    }
}

/* "widgets.example.com": the name of a definition is that of its collection. */
static void crds_forget(struct td_crds *crds, td_str name)
{
    size_t dot = td_str_find(name, '.', 0);
    crds_wipe(crds, name);
    td_resources_remove_custom(td_api_resources(crds->api), td_str_slice(name, dot + 1, name.len),
                               td_str_slice(name, 0, dot));
}

/* Does the definition say something new? A change of its status does not. */
static bool crds_is_changed(const struct td_change *change)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *before;
    struct td_json *after;
    return !change->before ||
           td_json_parse(&arena, change->before->json, NULL, &before, NULL) != TD_OK ||
           td_json_parse(&arena, change->after->json, NULL, &after, NULL) != TD_OK ||
           !td_json_equal(td_json_get(before, TD_STR("spec")), td_json_get(after, TD_STR("spec")));
}

static void crds_woken(void *context);

/* Serves all that are stored, from a new cursor on. */
static int crds_start(struct td_crds *crds, struct td_collection *collection, struct td_error *err)
{
    int code = td_watch_open(&crds->cursor, collection, td_store_version(td_api_store(crds->api)),
                             crds_woken, crds, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_collection_iter iter = td_collection_walk(collection, TD_STR_EMPTY);
    for (struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        crds_serve(crds, stored);
    }
    return TD_OK;
}

/* The log dropped changes before they were read: rows without a definition go, the others come
 * again. */
static void crds_restart(struct td_crds *crds)
{
    struct td_collection *collection = crds->cursor.collection;
    const struct td_resources *resources = td_api_resources(crds->api);
    struct td_error err = TD_ERROR_INIT;
    for (size_t i = td_resources_count(resources); i > 0; i--) {
        const struct td_resource *row = td_resources_row(resources, i - 1);
        if (row->custom && !td_collection_get(collection, TD_STR_EMPTY, row->collection)) {
            td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
            crds_forget(crds, td_arena_copy_str(&arena, row->collection));
        }
    }
    td_watch_close(&crds->cursor);
    if (crds_start(crds, collection, &err) != TD_OK) {
        crds_complain(crds, TD_STR("all"), &err);
    }
}

void td_crds_sync(struct td_crds *crds)
{
    const struct td_change *change;
    struct td_error err = TD_ERROR_INIT;
    int code;
    while ((code = td_watch_next(&crds->cursor, &change, &err)) == TD_OK && change) {
        struct td_stored *after = td_stored_ref(change->after);
        if (change->type == TD_CHANGE_DELETED) {
            crds_forget(crds, after->name);
        } else if (crds_is_changed(change)) {
            crds_serve(crds, after);
        }
        td_stored_unref(after);
    }
    if (code != TD_OK) {
        crds_restart(crds);
    }
}

static void crds_woken(void *context)
{
    td_crds_sync(context);
}

int td_crds_new(struct td_api *api, struct td_log *log, struct td_crds **ret, struct td_error *err)
{
    struct td_collection *collection;
    struct td_store *store = td_api_store(api);
    int code = td_store_collection(store, TD_STR(CRDS_COLLECTION), &collection, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_crds *crds = td_alloc_zero(1, sizeof(*crds));
    crds->api = api;
    crds->log = log;
    code = crds_start(crds, collection, err);
    if (code != TD_OK) {
        td_free(crds);
        return code;
    }
    *ret = crds;
    return TD_OK;
}

void td_crds_free(struct td_crds *crds)
{
    if (!crds) {
        return;
    }
    td_watch_close(&crds->cursor);
    td_free(crds);
}
