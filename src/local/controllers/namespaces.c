/*
 * A namespace that is being deleted is worked on in passes: a pass walks every collection page by
 * page, deletes what is not yet being deleted, and at its end writes down what is left. Between
 * passes each object that goes only costs the question whether it was the last one, so a namespace
 * of many pods with grace is not walked once for each of them. Another pass comes when time passed
 * or when something new appeared, which controllers can do at any moment.
 */
#include "local/controllers/namespaces.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "local/api/api.h"
#include "local/kinds/condition.h"
#include "local/resources/resource.h"
#include "local/store/edit.h"
#include "local/store/observer.h"
#include "local/store/store.h"

#define NAMESPACES_PASS_EVERY (5 * TD_SECOND)
#define NAMESPACES_PAGE 256 /* objects looked at before others have their turn */

struct td_namespaces {
    struct td_api *api;
    struct td_log *log;
    td_str ca_pem; /* owned */
    struct td_observer *observer;
    struct td_queue *queue;  /* names */
    struct td_map departing; /* struct departure by name */
};

/* A namespace that is being deleted. */
struct departure {
    td_str name;        /* owned, behind the structure */
    td_duration due;    /* steady time of the next pass */
    uint64_t resources; /* generation of the rows that the pass walks */
    size_t row;         /* where the pass is ... */
    struct td_buf last; /* ... and behind which name */
};

static td_duration namespaces_now(struct td_namespaces *namespaces)
{
    return td_clock_steady(td_loop_clock(td_api_loop(namespaces->api)));
}

static void namespaces_enqueue(struct td_namespaces *namespaces, td_str name, td_duration after)
{
    struct td_error err = TD_ERROR_INIT;
    int code = after > 0 ? td_queue_add_after(namespaces->queue, name, after, &err)
                         : td_queue_add(namespaces->queue, name, &err);
    if (code != TD_OK) {
        td_log_line(namespaces->log, TD_LOG_ERROR, "namespace queue full, namespace dropped",
                    TD_LOG_S("namespace", name), TD_LOG_C("error", err.message));
    }
}

static void namespaces_complain(struct td_namespaces *namespaces, const char *what, td_str name,
                                const struct td_error *err)
{
    td_log_line(namespaces->log, TD_LOG_ERROR, what, TD_LOG_S("namespace", name),
                TD_LOG_C("error", err->message));
}

/* ---- What every namespace has ---- */

static struct td_json *namespaces_new_object(struct td_arena *arena, const char *kind, td_str ns,
                                             const char *name)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("kind"), td_str_from(kind));
    td_json_set_str(arena, object, TD_STR("apiVersion"), TD_STR("v1"));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"), td_str_from(name));
    td_json_set_str(arena, metadata, TD_STR("namespace"), ns);
    return object;
}

static void namespaces_put(struct td_namespaces *namespaces, struct td_arena *arena,
                           const struct td_resource *resource, struct td_json *object, td_str ns)
{
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_put(namespaces->api, resource, arena, object, &err);
    if (code != TD_OK && code != TD_CONFLICT && code != TD_EXISTS) {
        namespaces_complain(namespaces, "cannot create the namespace's default objects", ns, &err);
    }
}

static void namespaces_furnish(struct td_namespaces *namespaces, struct td_arena *arena, td_str ns)
{
    const struct td_resource *accounts =
        td_api_kind(namespaces->api, TD_STR("v1"), TD_STR("ServiceAccount"));
    struct td_json *object;
    if (td_edit_get(namespaces->api, accounts, ns, TD_STR("default"), arena, &object, NULL) !=
        TD_OK) {
        object = namespaces_new_object(arena, "ServiceAccount", ns, "default");
        namespaces_put(namespaces, arena, accounts, object, ns);
    }
    if (namespaces->ca_pem.len == 0) {
        return;
    }
    const struct td_resource *maps =
        td_api_kind(namespaces->api, TD_STR("v1"), TD_STR("ConfigMap"));
    if (td_edit_get(namespaces->api, maps, ns, TD_STR("kube-root-ca.crt"), arena, &object, NULL) !=
        TD_OK) {
        object = namespaces_new_object(arena, "ConfigMap", ns, "kube-root-ca.crt");
    }
    struct td_json *data = td_json_new_object(arena);
    td_json_set_str(arena, data, TD_STR("ca.crt"), namespaces->ca_pem);
    td_json_set(arena, object, TD_STR("data"), data);
    namespaces_put(namespaces, arena, maps, object, ns);
}

/* ---- Leaving ---- */

static void departure_free(struct departure *departure)
{
    td_buf_done(&departure->last);
    td_free(departure);
}

static struct departure *departure_of(struct td_namespaces *namespaces, td_str name)
{
    struct departure *departure = td_map_get(&namespaces->departing, name);
    if (departure) {
        return departure;
    }
    departure = td_alloc_zero(1, sizeof(*departure) + name.len);
    departure->name = td_text_behind(departure + 1, name);
    departure->due = namespaces_now(namespaces);
    td_buf_init(&departure->last, TD_STORED_NAME_BYTES_MAX);
    if (td_map_put(&namespaces->departing, departure->name, departure) != TD_OK) {
        departure_free(departure);
        return NULL;
    }
    return departure;
}

/* Rows whose objects are in namespaces; events.k8s.io shows what the core group stores. */
static const struct td_collection *namespaces_content(struct td_namespaces *namespaces, size_t row,
                                                      const struct td_resource **ret)
{
    *ret = td_resources_row(td_api_resources(namespaces->api), row);
    bool is_own = (*ret)->is_namespaced && !(*ret)->is_virtual &&
                  ((*ret)->custom || (*ret)->storage < (*ret)->version_count);
    return is_own ? td_store_find(td_api_store(namespaces->api), (*ret)->collection) : NULL;
}

static size_t namespaces_remaining(struct td_namespaces *namespaces, td_str ns)
{
    size_t rows = td_resources_count(td_api_resources(namespaces->api));
    size_t remaining = 0;
    for (size_t i = 0; i < rows; i++) {
        const struct td_resource *resource;
        const struct td_collection *collection = namespaces_content(namespaces, i, &resource);
        remaining += collection ? td_collection_count(collection, ns) : 0;
    }
    return remaining;
}

static void namespaces_delete_page(struct td_namespaces *namespaces, td_str ns,
                                   const struct td_resource *resource, const struct td_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        struct td_error err = TD_ERROR_INIT;
        int code = td_edit_delete(namespaces->api, resource, ns, page->items[i]->name,
                                  page->items[i]->uid, TD_STR("Background"), -1, &err);
        if (code != TD_OK && code != TD_NOT_FOUND && code != TD_CONFLICT) {
            namespaces_complain(namespaces, "cannot delete the namespace's content", ns, &err);
        }
    }
}

/* One page of the pass; false when the pass is over. */
static bool namespaces_step(struct td_namespaces *namespaces, struct departure *departure)
{
    const struct td_resources *resources = td_api_resources(namespaces->api);
    if (departure->resources != td_resources_generation(resources)) {
        departure->resources = td_resources_generation(resources);
        departure->row = 0;
        td_buf_reset(&departure->last);
    }
    const struct td_resource *resource;
    const struct td_collection *collection = NULL;
    while (departure->row < td_resources_count(resources) &&
           !(collection = namespaces_content(namespaces, departure->row, &resource))) {
        departure->row++;
    }
    if (!collection) {
        return false;
    }
    bool is_begun = departure->last.len > 0;
    const struct td_page_query query = {
        .ns = departure->name,
        .after_ns = is_begun ? departure->name : TD_STR_EMPTY,
        .after_name = td_buf_str(&departure->last),
        .max = NAMESPACES_PAGE,
    };
    struct td_page page;
    size_t remaining = 0;
    if (td_collection_snapshot_at(collection, &query, &page, NULL) == TD_OK) {
        namespaces_delete_page(namespaces, departure->name, resource, &page);
        remaining = page.remaining;
        td_buf_reset(&departure->last);
        if (page.count > 0) {
            (void)td_buf_append(&departure->last, page.items[page.count - 1]->name); /* it fits */
        }
        td_page_done(&page);
    }
    if (remaining == 0) {
        departure->row++;
        td_buf_reset(&departure->last);
    }
    return true;
}

/* ---- What is left ---- */

struct leftovers {
    struct td_arena *arena;
    struct td_map finalizers; /* size_t * by name */
    td_str *lines;            /* "configmaps. has 1 resource instances" */
    size_t line_count;
    size_t line_cap;
};

static void leftovers_add_line(struct leftovers *left, td_str line)
{
    left->lines = td_arena_grow(left->arena, left->lines, left->line_count, &left->line_cap,
                                sizeof(*left->lines));
    left->lines[left->line_count++] = line;
}

static td_str leftovers_join(struct leftovers *left, const char *intro)
{
    td_auto_buf text = td_buf_capped(TD_STATUS_MESSAGE_BYTES_MAX);
    (void)td_buf_append(&text, td_str_from(intro)); /* sticky: what does not fit is left out */
    qsort(left->lines, left->line_count, sizeof(*left->lines), td_str_compare_items);
    for (size_t i = 0; i < left->line_count; i++) {
        (void)td_buf_append(&text, i > 0 ? TD_STR(", ") : TD_STR_EMPTY);
        (void)td_buf_append(&text, left->lines[i]);
    }
    left->line_count = 0;
    return td_arena_copy_str(left->arena, td_buf_str(&text));
}

static void leftovers_count_finalizers(struct leftovers *left, const struct td_stored *stored)
{
    static const char word[] = "\"finalizers\"";
    struct td_json *object;
    if (!memmem(stored->json.ptr, stored->json.len, word, sizeof(word) - 1) ||
        td_json_parse(left->arena, stored->json, &(struct td_json_options){.copy_strings = true},
                      &object, NULL) != TD_OK) {
        return;
    }
    const struct td_json *list = td_json_get_path(object, "metadata.finalizers");
    for (const struct td_json *f = td_json_first_item(list); f; f = f->next) {
        if (f->type != TD_JSON_TYPE_STRING) {
            continue;
        }
        size_t *count = td_map_get(&left->finalizers, f->text);
        if (!count) {
            count = td_arena_new(left->arena, size_t);
            (void)td_map_put(&left->finalizers, f->text, count); /* at the cap: not named */
        }
        (*count)++;
    }
}

static void leftovers_walk(struct td_namespaces *namespaces, struct leftovers *left, td_str ns)
{
    size_t rows = td_resources_count(td_api_resources(namespaces->api));
    for (size_t i = 0; i < rows; i++) {
        const struct td_resource *resource;
        const struct td_collection *collection = namespaces_content(namespaces, i, &resource);
        size_t count = collection ? td_collection_count(collection, ns) : 0;
        if (count == 0) {
            continue;
        }
        leftovers_add_line(left,
                           td_arena_format(left->arena, "%.*s.%.*s has %zu resource instances",
                                           TD_STR_ARG(resource->plural),
                                           TD_STR_ARG(resource->group), count));
        struct td_collection_iter iter = td_collection_walk(collection, ns);
        for (const struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
            leftovers_count_finalizers(left, stored);
        }
    }
}

static bool namespaces_set_condition(struct td_namespaces *namespaces, struct td_arena *arena,
                                     struct td_json *status, const char *const texts[3],
                                     td_str problem)
{
    const struct td_condition condition = {
        .type = td_str_from(texts[0]),
        .status = problem.len > 0 ? TD_STR("True") : TD_STR("False"),
        .reason = td_str_from(texts[1]),
        .message = problem.len > 0 ? problem : td_str_from(texts[2]),
    };
    return td_condition_set(arena, status, &condition,
                            td_time_to_instant(td_api_now(namespaces->api)));
}

/* The five conditions of a namespace that waits, in upstream's words. */
static void namespaces_report(struct td_namespaces *namespaces, struct td_arena *arena,
                              struct td_json *object, td_str ns)
{
    struct leftovers left = {.arena = arena};
    td_map_init(&left.finalizers, TD_RESOURCES_MAX);
    leftovers_walk(namespaces, &left, ns);
    td_str content = leftovers_join(&left, "Some resources are remaining: ");
    for (struct td_map_walk at = {.map = &left.finalizers}; td_map_step(&at);) {
        leftovers_add_line(&left, td_arena_format(arena, "%.*s in %zu resource instances",
                                                  TD_STR_ARG(at.key), *(const size_t *)at.value));
    }
    bool has_finalizers = left.finalizers.count > 0;
    td_str finalizers =
        leftovers_join(&left, "Some content in the namespace has finalizers remaining: ");
    td_map_done(&left.finalizers);
    const struct {
        const char *texts[3];
        td_str problem;
    } rows[] = {
        {{"NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
          "All resources successfully discovered"},
         TD_STR_EMPTY},
        {{"NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
          "All legacy kube types successfully parsed"},
         TD_STR_EMPTY},
        {{"NamespaceDeletionContentFailure", "ContentDeleted",
          "All content successfully deleted, may be waiting on finalization"},
         TD_STR_EMPTY},
        {{"NamespaceContentRemaining", "SomeResourcesRemain", ""}, content},
        {{"NamespaceFinalizersRemaining",
          has_finalizers ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
          "All content-preserving finalizers finished"},
         has_finalizers ? finalizers : TD_STR_EMPTY},
    };
    struct td_json *status = td_json_ensure_object(arena, object, TD_STR("status"));
    bool is_changed = false;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        is_changed |=
            namespaces_set_condition(namespaces, arena, status, rows[i].texts, rows[i].problem);
    }
    if (is_changed) {
        namespaces_put(namespaces, arena,
                       td_api_kind(namespaces->api, TD_STR("v1"), TD_STR("Namespace")), object, ns);
    }
}

/* Nothing is left in it: without its finalizer it goes, unless others have one on it too. */
static void namespaces_finish(struct td_namespaces *namespaces, struct td_arena *arena,
                              struct td_json *object, td_str ns)
{
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    const struct td_json *list = td_json_get(spec, TD_STR("finalizers"));
    struct td_json *kept = td_json_new_array(arena);
    for (const struct td_json *f = td_json_first_item(list); f; f = f->next) {
        if (!td_json_is(f, TD_JSON_TYPE_STRING) || !td_str_equal(f->text, TD_STR("kubernetes"))) {
            td_json_append(kept, td_json_copy(arena, f, false));
        }
    }
    if (list && kept->count < list->count) {
        td_json_set_filled(arena, spec, TD_STR("finalizers"), kept);
        namespaces_put(namespaces, arena,
                       td_api_kind(namespaces->api, TD_STR("v1"), TD_STR("Namespace")), object, ns);
    }
}

static enum td_job_result namespaces_leave(struct td_namespaces *namespaces, struct td_arena *arena,
                                           struct td_json *object, td_str ns)
{
    struct departure *departure = departure_of(namespaces, ns);
    if (!departure) {
        return TD_JOB_DONE; /* at the cap of objects there are no more namespaces either */
    }
    td_duration now = namespaces_now(namespaces);
    if (departure->due <= now) {
        if (namespaces_step(namespaces, departure)) {
            return TD_JOB_AGAIN;
        }
        departure->row = 0;
        departure->due = now + NAMESPACES_PASS_EVERY;
        if (namespaces_remaining(namespaces, ns) > 0) {
            namespaces_report(namespaces, arena, object, ns);
            namespaces_enqueue(namespaces, ns, NAMESPACES_PASS_EVERY);
            return TD_JOB_DONE;
        }
    }
    if (namespaces_remaining(namespaces, ns) == 0) {
        namespaces_finish(namespaces, arena, object, ns);
    }
    return TD_JOB_DONE;
}

static enum td_job_result namespaces_work(td_str name, void *context)
{
    struct td_namespaces *namespaces = context;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    if (td_edit_get(namespaces->api,
                    td_api_kind(namespaces->api, TD_STR("v1"), TD_STR("Namespace")), TD_STR_EMPTY,
                    name, &arena, &object, NULL) != TD_OK) {
        struct departure *departure = td_map_remove(&namespaces->departing, name);
        if (departure) {
            departure_free(departure);
        }
        return TD_JOB_DONE;
    }
    if (td_json_get_path(object, "metadata.deletionTimestamp")) {
        return namespaces_leave(namespaces, &arena, object, name);
    }
    namespaces_furnish(namespaces, &arena, name);
    return TD_JOB_DONE;
}

/* ---- Observing ---- */

static bool namespaces_is_furniture(const struct td_resource *resource, td_str name)
{
    return (td_str_equal(name, TD_STR("default")) &&
            td_str_equal(resource->collection, TD_STR("serviceaccounts"))) ||
           (td_str_equal(name, TD_STR("kube-root-ca.crt")) &&
            td_str_equal(resource->collection, TD_STR("configmaps")));
}

static void namespaces_observe(const struct td_resource *resource, struct td_stored *before,
                               struct td_stored *after, void *context)
{
    struct td_namespaces *namespaces = context;
    const struct td_stored *stored = after ? after : before;
    if (td_str_equal(resource->collection, TD_STR("namespaces"))) {
        namespaces_enqueue(namespaces, stored->name, 0);
        return;
    }
    if (stored->ns.len == 0) {
        return;
    }
    struct departure *departure =
        namespaces->departing.count > 0 ? td_map_get(&namespaces->departing, stored->ns) : NULL;
    if (departure) {
        if (!before) {
            departure->due = namespaces_now(namespaces);
        }
        if (!before || !after) {
            namespaces_enqueue(namespaces, stored->ns, 0);
        }
    } else if (namespaces_is_furniture(resource, stored->name)) {
        namespaces_enqueue(namespaces, stored->ns, 0);
    }
}

struct td_namespaces *td_namespaces_new(struct td_api *api, struct td_log *log, td_str ca_pem)
{
    struct td_namespaces *namespaces = td_alloc_zero(1, sizeof(*namespaces) + ca_pem.len);
    namespaces->api = api;
    namespaces->log = log;
    namespaces->ca_pem = td_text_behind(namespaces + 1, ca_pem);
    td_map_init(&namespaces->departing, TD_COLLECTION_OBJECTS_MAX);
    namespaces->queue =
        td_queue_new(td_api_loop(api), namespaces_work, namespaces, TD_WORK_QUEUE_MAX);
    namespaces->observer = td_observer_new(api, NULL, 0, namespaces_observe, namespaces);
    return namespaces;
}

void td_namespaces_free(struct td_namespaces *namespaces)
{
    if (!namespaces) {
        return;
    }
    td_observer_free(namespaces->observer);
    td_queue_free(namespaces->queue);
    for (struct td_map_walk at = {.map = &namespaces->departing}; td_map_step(&at);) {
        departure_free(at.value);
    }
    td_map_done(&namespaces->departing);
    td_free(namespaces);
}
