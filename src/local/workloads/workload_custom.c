/*
 * Keeps as many pods as `spec.replicas` of a custom object says, made from its `spec.template`,
 * and writes its status.
 */
#include "local/workloads/workload_custom.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "kube/meta.h"
#include "local/api/write.h"
#include "local/kinds/custom.h"
#include "local/store/observer.h"
#include "local/workloads/workload_private.h"

#define CUSTOM_ANNOTATION "tandem.dev/workload"
#define CUSTOM_DEFINITIONS "customresourcedefinitions.apiextensions.k8s.io"

struct custom_kind {
    struct td_workload_control control;
    struct td_workload_row row;
    struct td_arena texts; /* of the row */
    td_str group;
    /* Its objects, and definitions: a controller that observes neither is not told that a kind is
     * served. */
    td_str observed[2];
    struct td_observer *observer;
};

/* ---- What a ReplicaSet would be told ---- */

static struct td_json *custom_spec(struct td_workload_item *item,
                                   const struct td_custom_version *version)
{
    struct td_arena *arena = item->arena;
    const struct td_json *template = td_json_get(item->spec, TD_STR("template"));
    const struct td_json *selector = td_json_get(item->spec, TD_STR("selector"));
    const struct td_json *labels = td_json_get_path(template, "metadata.labels");
    const struct td_json *wanted =
        td_json_get_path(item->object, td_scale_place(arena, version->scale_spec).ptr);
    int64_t replicas = 1;
    if (td_json_is(wanted, TD_JSON_TYPE_NUMBER)) {
        (void)td_json_to_int64(wanted, &replicas); /* no whole number: one */
    }
    struct td_json *spec = td_json_new_object(arena);
    td_json_set_int64(arena, spec, TD_STR("replicas"), replicas > 0 ? replicas : 0);
    if (td_json_is(template, TD_JSON_TYPE_OBJECT)) {
        td_json_set_copy(arena, spec, TD_STR("template"), template);
    }
    if (td_json_is(selector, TD_JSON_TYPE_OBJECT)) {
        td_json_set_copy(arena, spec, TD_STR("selector"), selector);
    } else if (td_json_is(labels, TD_JSON_TYPE_OBJECT)) {
        struct td_json *own = td_json_ensure_object(arena, spec, TD_STR("selector"));
        td_json_set_copy(arena, own, TD_STR("matchLabels"), labels);
    }
    return spec;
}

static td_str custom_selector_text(struct td_workload_item *item)
{
    struct td_selector selector = td_workload_selector(item);
    td_auto_buf text = td_buf_capped(TD_SELECTOR_BYTES_MAX);
    td_selector_write(&selector, &text);
    return td_arena_copy_str(item->arena, td_buf_str(&text));
}

/* Only what the definition's schema knows stays, as if the controller were a client. */
static void custom_update_status(struct td_workload_item *item, const struct td_custom *custom,
                                 const struct td_custom_version *version,
                                 const struct td_children *active)
{
    struct td_arena *arena = item->arena;
    struct td_json *object = td_json_copy(arena, item->object, false);
    struct td_error err = TD_ERROR_INIT;
    int64_t ready = 0;
    td_str key;
    for (size_t i = 0; i < active->count; i++) {
        ready += active->items[i]->pod.is_ready;
    }
    struct td_json *counts = td_scale_parent(arena, object, version->scale_status, &key);
    td_json_set_int64(arena, counts, key, (int64_t)active->count);
    td_json_set_int64(arena, counts, TD_STR("readyReplicas"), ready);
    td_json_set_int64(arena, counts, TD_STR("observedGeneration"), item->generation);
    if (version->scale_selector.len > 0) {
        struct td_json *parent = td_scale_parent(arena, object, version->scale_selector, &key);
        td_json_set_str(arena, parent, key, custom_selector_text(item));
    }
    size_t storage = item->control->resource->storage;
    if (td_custom_default(arena, custom, storage, object, &err) != TD_OK) {
        td_log_line(item->control->all->log, TD_LOG_ERROR,
                    "cannot update the custom workload's status", TD_LOG_S("name", item->name),
                    TD_LOG_C("error", err.message));
        return;
    }
    item->object = object;
    (void)td_workload_put(item); /* unchanged it is not written; a conflict is looked at again */
}

static void custom_sync(struct td_workload_item *item)
{
    const struct td_resource *resource = item->control->resource;
    const struct td_custom_version *version = &resource->custom->versions[resource->storage];
    if (version->scale_spec.len == 0 || version->scale_status.len == 0) {
        return;
    }
    item->spec = custom_spec(item, version);
    struct td_children active = td_workload_replicate(item);
    custom_update_status(item, resource->custom, version, &active);
}

/* ---- Definitions ---- */

static void custom_observe(const struct td_resource *resource, struct td_stored *before,
                           struct td_stored *after, void *context)
{
    struct custom_kind *kind = context;
    if (!td_str_equal(resource->collection, kind->row.collection)) {
        return;
    }
    if (after) {
        td_workload_enqueue(&kind->control, after->ns, after->name);
    } else {
        td_workload_owner_clear(kind->control.all, before->uid);
    }
}

static void custom_free(struct custom_kind *kind)
{
    td_observer_free(kind->observer);
    td_workload_control_done(&kind->control);
    td_arena_done(&kind->texts);
    td_free(kind);
}

static void custom_add(struct td_workloads *all, td_str name, const struct td_json *spec)
{
    struct custom_kind *kind = td_alloc_zero(1, sizeof(*kind));
    td_arena_init(&kind->texts, TD_TREE_ARENA_BYTES_MAX);
    const struct td_json *names = td_json_get(spec, TD_STR("names"));
    kind->group = td_arena_copy_str(&kind->texts, td_json_text(spec, "group"));
    kind->row = (struct td_workload_row){
        .api_version = kind->group, /* without a version: rows change theirs */
        .kind = td_arena_copy_str(&kind->texts, td_json_text(names, "kind")),
        .collection = td_arena_copy_str(&kind->texts, name),
        .component = TD_STR("workload-controller"),
        .user = td_workload_rows[TD_KIND_REPLICA_SET].user,
        .sync = custom_sync,
    };
    td_workload_control_init(all, &kind->control, &kind->row);
    (void)td_map_put(&all->customs, kind->row.collection, kind); /* the caller saw room */
    kind->observed[0] = kind->row.collection;
    kind->observed[1] = TD_STR(CUSTOM_DEFINITIONS);
    kind->observer = td_observer_new(all->api, kind->observed, 2, custom_observe, kind);
}

static bool custom_is_workload(const struct td_json *definition)
{
    const struct td_json *annotations = td_json_get_path(definition, "metadata.annotations");
    const struct td_json *spec = td_json_get(definition, TD_STR("spec"));
    return td_str_equal(td_json_get_str(annotations, TD_STR(CUSTOM_ANNOTATION), TD_STR_EMPTY),
                        TD_STR("pods")) &&
           td_str_equal(td_json_text(spec, "scope"), TD_STR("Namespaced")) &&
           !td_json_get_path(definition, "metadata.deletionTimestamp");
}

void td_workload_custom_definition(struct td_workloads *all, td_str name,
                                   const struct td_stored *after)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *definition = NULL;
    bool is_workload = after &&
                       td_json_parse(&arena, td_arena_copy_str(&arena, after->json), NULL,
                                     &definition, NULL) == TD_OK &&
                       custom_is_workload(definition);
    struct custom_kind *known = td_map_get(&all->customs, name);
    if (known && !is_workload) {
        (void)td_map_remove(&all->customs, name); /* it is there */
        custom_free(known);
    } else if (!known && is_workload && all->customs.count < TD_CUSTOM_WORKLOADS_MAX) {
        custom_add(all, name, td_json_get(definition, TD_STR("spec")));
    } else if (!known && is_workload) {
        td_log_line(all->log, TD_LOG_ERROR, "too many custom kinds own pods: kind ignored",
                    TD_LOG_S("definition", name));
    }
}

struct td_workload_control *td_workload_custom_control(const struct td_workloads *all,
                                                       const struct td_child *child)
{
    td_str group = td_group_version_parse(child->controller_api_version).group;
    for (struct td_map_walk at = {.map = &all->customs}; td_map_step(&at);) {
        struct custom_kind *kind = at.value;
        if (td_str_equal(kind->group, group) &&
            td_str_equal(kind->row.kind, child->controller_kind)) {
            return &kind->control;
        }
    }
    return NULL;
}

void td_workload_custom_free_all(struct td_workloads *all)
{
    for (struct td_map_walk at = {.map = &all->customs}; td_map_step(&at);) {
        custom_free(at.value);
    }
    td_map_done(&all->customs);
}
