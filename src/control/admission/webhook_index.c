/*
 * VPAs by the target they name, so that a pod meets only those that can be its own. Kept up by what
 * the informers tell, and only names are kept: a VPA is decoded when a review needs it, which costs
 * microseconds, where ten thousand decoded ones would cost a hundred megabytes. A change of status,
 * of which there is one a minute and VPA, does not touch the index.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "control/admission/webhook_private.h"
#include "control/informers/informers.h"
#include "kube/objectkey.h"

struct index_target {
    td_str key; /* owned */
    struct {
        TD_VEC_FIELDS(td_str);
    } names; /* of VPAs, owned */
};

/* How many autoscalers a namespace has. */
struct index_namespace {
    td_str name; /* owned */
    size_t count;
};

struct webhook_index {
    struct td_informers *informers;
    struct td_map targets;    /* by "namespace/kind/name" */
    struct td_map namespaces; /* by name */
};

/* ---- Namespaces ---- */

static void index_count(struct webhook_index *index, td_str name)
{
    struct index_namespace *ns = td_map_get(&index->namespaces, name);
    if (!ns) {
        ns = td_alloc_zero(1, sizeof(*ns));
        ns->name = td_text_copy(name);
        if (td_map_put(&index->namespaces, ns->name, ns) != TD_OK) {
            td_text_free(ns->name);
            td_free(ns);
            return;
        }
    }
    ns->count++;
}

static void index_discount(struct webhook_index *index, td_str name)
{
    struct index_namespace *ns = td_map_get(&index->namespaces, name);
    if (ns && --ns->count == 0) {
        (void)td_map_remove(&index->namespaces, name); /* it is there */
        td_text_free(ns->name);
        td_free(ns);
    }
}

bool webhook_index_has(const struct webhook_index *index, td_str namespace)
{
    return td_map_has(&index->namespaces, namespace);
}

/* ---- Targets ---- */

/* The key of the target that a VPA names; empty: none can be read. */
static td_str index_target_of(struct td_arena *arena, const struct td_informer_object *object,
                              char buffer[TD_OBJECT_KEY_BYTES_MAX])
{
    struct td_json *tree;
    if (td_informers_tree(arena, object, &tree, NULL) != TD_OK) {
        return TD_STR_EMPTY;
    }
    const struct td_json *target = td_json_get_path(tree, "spec.targetRef");
    td_str kind = td_json_text(target, "kind");
    td_str name = td_json_text(target, "name");
    return kind.len + name.len > 0 ? TD_KEY_LINES(buffer, object->head.namespace, kind, name)
                                   : TD_STR_EMPTY;
}

static void index_target_free(struct index_target *target)
{
    for (size_t i = 0; i < target->names.count; i++) {
        td_text_free(target->names.items[i]);
    }
    td_vec_done(&target->names);
    td_text_free(target->key);
    td_free(target);
}

static void index_put(struct webhook_index *index, const struct td_informer_object *object)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = index_target_of(&arena, object, buffer);
    struct index_target *target = td_map_get(&index->targets, key);
    if (key.len == 0) {
        return;
    }
    if (!target) {
        target = td_alloc_zero(1, sizeof(*target));
        target->key = td_text_copy(key);
        target->names.count_max = TD_VPAS_MAX;
        if (td_map_put(&index->targets, target->key, target) != TD_OK) {
            index_target_free(target);
            return;
        }
    }
    td_str *place = td_vec_push(&target->names);
    if (place) {
        *place = td_text_copy(object->head.name);
    }
}

static void index_drop(struct webhook_index *index, const struct td_informer_object *object)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    struct index_target *target =
        td_map_get(&index->targets, index_target_of(&arena, object, buffer));
    for (size_t i = 0; target && i < target->names.count; i++) {
        if (td_str_equal(target->names.items[i], object->head.name)) {
            td_text_free(target->names.items[i]);
            td_vec_remove(&target->names, i);
            break;
        }
    }
    if (target && target->names.count == 0) {
        (void)td_map_remove(&index->targets, target->key); /* it is there */
        index_target_free(target);
    }
}

/* ---- What the informers tell ---- */

static void index_vpa_added(void *context, const void *object)
{
    const struct td_informer_object *vpa = object;
    index_count(context, vpa->head.namespace);
    index_put(context, vpa);
}

static void index_vpa_changed(void *context, const void *before, const void *after)
{
    const struct td_informer_object *old = before;
    const struct td_informer_object *new = after;
    bool is_status_only =
        new->generation > 0 &&
        new->generation == old->generation &&td_str_equal(new->head.uid, old->head.uid);
    if (!is_status_only) {
        index_drop(context, old);
        index_put(context, new);
    }
}

static void index_vpa_deleted(void *context, const void *object)
{
    const struct td_informer_object *vpa = object;
    index_discount(context, vpa->head.namespace);
    index_drop(context, vpa);
}

static void index_hvpa_added(void *context, const void *object)
{
    const struct td_informer_object *hvpa = object;
    index_count(context, hvpa->head.namespace);
}

static void index_hvpa_deleted(void *context, const void *object)
{
    const struct td_informer_object *hvpa = object;
    index_discount(context, hvpa->head.namespace);
}

struct webhook_index *webhook_index_new(struct td_informers *informers, bool counts_hvpas)
{
    static const struct td_cache_handler vpas = {
        .added = index_vpa_added, .changed = index_vpa_changed, .deleted = index_vpa_deleted};
    static const struct td_cache_handler hvpas = {.added = index_hvpa_added,
                                                  .deleted = index_hvpa_deleted};
    struct webhook_index *index = td_alloc_zero(1, sizeof(*index));
    index->informers = informers;
    td_map_init(&index->targets, TD_VPAS_MAX);
    td_map_init(&index->namespaces, TD_CACHE_OBJECTS_MAX);
    td_informers_subscribe(informers, TD_INFORMER_VPAS, &vpas, index);
    if (counts_hvpas) {
        td_informers_subscribe(informers, TD_INFORMER_HVPAS, &hvpas, index);
    }
    return index;
}

void webhook_index_free(struct webhook_index *index)
{
    if (!index) {
        return;
    }
    for (struct td_map_walk at = {.map = &index->targets}; td_map_step(&at);) {
        index_target_free(at.value);
    }
    for (struct td_map_walk at = {.map = &index->namespaces}; td_map_step(&at);) {
        struct index_namespace *ns = at.value;
        td_text_free(ns->name);
        td_free(ns);
    }
    td_map_done(&index->targets);
    td_map_done(&index->namespaces);
    td_free(index);
}

size_t webhook_index_find(const struct webhook_index *index, struct td_arena *arena,
                          td_str namespace, td_str kind, td_str name,
                          const struct td_vpa *const **ret)
{
    const struct td_cache *cache = td_informers_cache(index->informers, TD_INFORMER_VPAS);
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    const struct index_target *target =
        td_map_get(&index->targets, TD_KEY_LINES(buffer, namespace, kind, name));
    size_t max = target ? target->names.count : 0;
    const struct td_vpa **vpas = td_arena_array(arena, const struct td_vpa *, max + 1);
    size_t count = 0;
    for (size_t i = 0; i < max && count < TD_SIBLINGS_MAX; i++) {
        const struct td_informer_object *object =
            td_cache_get(cache, namespace, target->names.items[i]);
        struct td_vpa *vpa = td_arena_new(arena, struct td_vpa);
        struct td_json *tree;
        if (object && td_informers_tree(arena, object, &tree, NULL) == TD_OK &&
            td_vpa_decode(arena, tree, vpa, NULL) == TD_OK) {
            vpas[count++] = vpa;
        }
    }
    *ret = vpas;
    return count;
}
