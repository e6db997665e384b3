/*
 * Children by the uid of their controller; a change is decoded once, and a list asks the store for
 * revisions that the observer has not brought yet.
 */
#include "local/controllers/child_index.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "base/vec.h"
#include "kube/meta.h"
#include "kube/objectkey.h"
#include "local/kinds/condition.h"

#define CHILD_TRACKING_FINALIZER "batch.kubernetes.io/job-tracking"
#define CHILD_DELETION_COST "controller.kubernetes.io/pod-deletion-cost"

struct td_child_group {
    td_str key; /* owned */
    TD_VEC_FIELDS(struct td_child *);
};

static void child_free(struct td_child *child)
{
    if (!child) {
        return;
    }
    td_stored_unref(child->stored);
    td_text_free(child->key);
    td_free(child);
}

/* ---- Decoding ---- */

/* A text that outlives the tree: one that was written without escapes. Names, uids and labels
 * always are; what is not is treated as missing. */
static td_str child_slice(const struct td_stored *stored, td_str text)
{
    bool is_inside =
        text.ptr >= stored->json.ptr && text.ptr + text.len <= stored->json.ptr + stored->json.len;
    return is_inside ? text : TD_STR_EMPTY;
}

/* Only what reads as upstream's int32 counts: no plus sign, no leading zeros. */
static int64_t child_deletion_cost(const struct td_json *metadata)
{
    td_str text = td_json_get_str(td_json_get(metadata, TD_STR("annotations")),
                                  TD_STR(CHILD_DELETION_COST), TD_STR_EMPTY);
    int64_t cost;
    bool is_padded = text.len > 1 && (text.ptr[0] == '0' || text.ptr[0] == '+');
    if (is_padded || !td_str_to_int64(text, &cost) || cost > INT32_MAX || cost < INT32_MIN) {
        return 0;
    }
    return cost;
}

static bool child_is_sidecar(const struct td_json *spec, td_str name)
{
    const struct td_json *list = td_json_get(spec, TD_STR("initContainers"));
    for (const struct td_json *c = td_json_first_item(list); c; c = c->next) {
        if (td_str_equal(td_json_text(c, "name"), name)) {
            return td_str_equal(td_json_text(c, "restartPolicy"), TD_STR("Always"));
        }
    }
    return false;
}

static void child_read_containers(const struct td_json *pod, struct td_pod_facts *facts)
{
    const struct td_json *status = td_json_get(pod, TD_STR("status"));
    const struct td_json *list = td_json_get(status, TD_STR("containerStatuses"));
    const struct td_json *c = td_json_first_item(list);
    for (; c; c = c->next) {
        int64_t restarts = td_json_get_int64(c, TD_STR("restartCount"), 0);
        facts->restarts = restarts > facts->restarts ? restarts : facts->restarts;
        facts->restarts_total += restarts;
        td_time end = td_time_member(td_json_get_path(c, "state.terminated"), TD_STR("finishedAt"));
        facts->finished = end > facts->finished ? end : facts->finished;
    }
    list = td_json_get(status, TD_STR("initContainerStatuses"));
    c = td_json_first_item(list);
    for (; c; c = c->next) {
        int64_t restarts = td_json_get_int64(c, TD_STR("restartCount"), 0);
        facts->restarts_total += restarts;
        if (restarts > facts->sidecar_restarts &&
            child_is_sidecar(td_json_get(pod, TD_STR("spec")), td_json_text(c, "name"))) {
            facts->sidecar_restarts = restarts;
        }
    }
}

static void child_read_conditions(const struct td_json *pod, struct td_pod_facts *facts)
{
    const struct td_json *status = td_json_get(pod, TD_STR("status"));
    const struct td_json *ready = td_condition_find(status, TD_STR("Ready"));
    facts->is_ready = td_str_equal(td_json_text(ready, "status"), TD_STR("True"));
    if (facts->is_ready) {
        facts->ready_since = td_time_member(ready, TD_STR("lastTransitionTime"));
    }
}

/* spec.affinity as the DaemonSet controller writes it: one term that names the node. */
static td_str child_affinity_node(const struct td_json *pod)
{
    const struct td_json *terms = td_json_get_path(
        pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
             "nodeSelectorTerms");
    for (const struct td_json *term = td_json_first_item(terms); term; term = term->next) {
        const struct td_json *fields = td_json_get(term, TD_STR("matchFields"));
        for (const struct td_json *f = td_json_first_item(fields); f; f = f->next) {
            const struct td_json *values = td_json_get(f, TD_STR("values"));
            if (td_str_equal(td_json_text(f, "key"), TD_STR("metadata.name")) &&
                td_json_is(td_json_first_item(values), TD_JSON_TYPE_STRING)) {
                return td_json_first_item(values)->text;
            }
        }
    }
    return TD_STR_EMPTY;
}

static void child_read_pod(struct td_child *child, const struct td_json *pod)
{
    struct td_pod_facts *facts = &child->pod;
    const struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
    td_str node = td_json_text(td_json_get(pod, TD_STR("spec")), "nodeName");
    *facts = (struct td_pod_facts){
        .phase = td_pod_phase_from(td_json_text(td_json_get(pod, TD_STR("status")), "phase")),
        .ready_since = TD_TIME_NONE,
        .finished = TD_TIME_NONE,
        .node = child_slice(child->stored, node),
        .affinity_node = child_slice(child->stored, child_affinity_node(pod)),
        .deletion_cost = child_deletion_cost(metadata),
    };
    child_read_conditions(pod, facts);
    child_read_containers(pod, facts);
    const struct td_json *list = td_json_get(metadata, TD_STR("finalizers"));
    facts->has_tracking_finalizer = td_json_has_text(list, TD_STR(CHILD_TRACKING_FINALIZER));
}

static struct td_child *child_new(struct td_stored *stored, const struct td_labels *labels)
{
    struct td_child *child =
        td_alloc_zero(1, sizeof(*child) + labels->count * sizeof(child->items[0]));
    child->stored = td_stored_ref(stored);
    for (size_t i = 0; i < labels->count; i++) {
        child->items[i].key = child_slice(stored, labels->items[i].key);
        child->items[i].value = child_slice(stored, labels->items[i].value);
    }
    child->labels = (struct td_labels){.items = child->items, .count = labels->count};
    return child;
}

static struct td_child *child_decode(const struct td_child_index *index, struct td_stored *stored,
                                     td_str key)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    struct td_meta meta;
    if (td_json_parse(&arena, stored->json, NULL, &object, NULL) != TD_OK ||
        td_meta_decode(&arena, object, &meta, NULL) != TD_OK) {
        return NULL; /* what cannot be decoded has no owner */
    }
    struct td_child *child = child_new(stored, &meta.labels);
    child->key = td_text_copy(key);
    child->created = td_time_from_instant(meta.created);
    child->is_deleting = td_json_get_path(object, "metadata.deletionTimestamp") != NULL;
    const struct td_owner_reference *owner = td_meta_controller(&meta);
    if (owner) {
        child->controller_uid = child_slice(stored, owner->uid);
        child->controller_api_version = child_slice(stored, owner->api_version);
        child->controller_kind = child_slice(stored, owner->kind);
        child->controller_name = child_slice(stored, owner->name);
    }
    if (td_str_equal(index->collection, TD_STR("pods"))) {
        child_read_pod(child, object);
    }
    return child;
}

bool td_child_is_same(const struct td_child *a, const struct td_child *b)
{
    const struct td_pod_facts *p = &a->pod;
    const struct td_pod_facts *q = &b->pod;
    bool is_same_life = td_str_equal(a->stored->uid, b->stored->uid) &&
                        td_str_equal(a->controller_uid, b->controller_uid) &&
                        a->is_deleting == b->is_deleting && td_labels_equal(&a->labels, &b->labels);
    return is_same_life && p->phase == q->phase && p->is_ready == q->is_ready &&
           p->ready_since == q->ready_since && p->finished == q->finished &&
           p->restarts == q->restarts && p->restarts_total == q->restarts_total &&
           p->sidecar_restarts == q->sidecar_restarts && p->deletion_cost == q->deletion_cost &&
           td_str_equal(p->node, q->node) && p->has_tracking_finalizer == q->has_tracking_finalizer;
}

td_str td_child_label(const struct td_child *child, const char *key)
{
    const td_str *value = td_labels_get(&child->labels, td_str_from(key));
    return value ? *value : TD_STR_EMPTY;
}

/* ---- The index ---- */

void td_child_index_init(struct td_child_index *index, struct td_store *store, td_str collection,
                         td_child_fn fn, void *context)
{
    *index = (struct td_child_index){
        .store = store, .collection = collection, .fn = fn, .context = context};
    td_map_init(&index->children, TD_COLLECTION_OBJECTS_MAX);
    td_map_init(&index->groups, TD_COLLECTION_OBJECTS_MAX);
}

void td_child_index_done(struct td_child_index *index)
{
    for (struct td_map_walk at = {.map = &index->children}; td_map_step(&at);) {
        child_free(at.value);
    }
    for (struct td_map_walk at = {.map = &index->groups}; td_map_step(&at);) {
        struct td_child_group *group = at.value;
        td_text_free(group->key);
        td_vec_done(group);
        td_free(group);
    }
    td_map_done(&index->children);
    td_map_done(&index->groups);
}

/* No uid has a slash. */
static td_str child_orphans_key(td_str ns, char buffer[TD_OBJECT_KEY_BYTES_MAX])
{
    return td_object_key_write(TD_OBJECT_KEY(ns, TD_STR_EMPTY), buffer);
}

static void child_leave(struct td_child_index *index, struct td_child *child)
{
    struct td_child_group *group = child->group;
    if (!group) {
        return;
    }
    struct td_child *last = group->items[group->count - 1];
    group->items[child->place] = last; /* a large group must not be moved for each that leaves */
    last->place = child->place;
    group->count--;
    if (group->count == 0) {
        (void)td_map_remove(&index->groups, group->key); /* it is there */
        td_text_free(group->key);
        td_vec_done(group);
        td_free(group);
    }
    child->group = NULL;
}

static void child_join(struct td_child_index *index, struct td_child *child)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = child->controller_uid.len > 0 ? child->controller_uid
                                               : child_orphans_key(child->stored->ns, buffer);
    struct td_child_group *group = td_map_get(&index->groups, key);
    if (!group) {
        group = td_alloc_zero(1, sizeof(*group));
        group->count_max = TD_COLLECTION_OBJECTS_MAX;
        group->key = td_text_copy(key);
        (void)td_map_put(&index->groups, group->key, group); /* one a child at most: it fits */
    }
    struct td_child **place = td_vec_push(group);
    if (place) {
        *place = child;
        child->group = group;
        child->place = group->count - 1;
    }
}

/* The next revision takes the place of the one before among its siblings, so that order stays. */
static void child_replace(struct td_child_index *index, struct td_child *before,
                          struct td_child *after)
{
    if (!td_str_equal(before->controller_uid, after->controller_uid) || !before->group) {
        child_leave(index, before);
        child_join(index, after);
        return;
    }
    after->group = before->group;
    after->place = before->place;
    after->group->items[after->place] = after;
    before->group = NULL;
}

void td_child_index_refresh(struct td_child_index *index, td_str ns, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = td_object_key_write(TD_OBJECT_KEY(ns, name), buffer);
    struct td_child *before = td_map_get(&index->children, key);
    struct td_stored *stored = td_store_get(index->store, index->collection, ns, name);
    if (before ? before->stored == stored : !stored) {
        return;
    }
    struct td_child *after = stored ? child_decode(index, stored, key) : NULL;
    if (before && after) {
        child_replace(index, before, after);
    } else if (before) {
        child_leave(index, before);
        (void)td_map_remove(&index->children, key); /* it is there */
    } else if (after) {
        child_join(index, after);
    }
    if (after) {
        (void)td_map_put(&index->children, after->key, after); /* as many as the store holds */
    }
    if (before || after) {
        index->fn(before, after, index->context);
    }
    child_free(before);
}

const struct td_child *td_child_index_get(const struct td_child_index *index, td_str ns,
                                          td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&index->children, td_object_key_write(TD_OBJECT_KEY(ns, name), buffer));
}

/* Looks at each child's newest revision first; most are the ones that are known. */
static struct td_children child_list(struct td_child_index *index, struct td_arena *arena,
                                     td_str key)
{
    struct td_child_group *group = td_map_get(&index->groups, key);
    struct td_children list = {.count = 0};
    if (!group) {
        return list;
    }
    const struct td_collection *collection = td_store_find(index->store, index->collection);
    size_t count = group->count;
    struct td_child **known = td_arena_array(arena, struct td_child *, count);
    memcpy(known, group->items, count * sizeof(known[0]));
    for (size_t i = 0; i < count; i++) {
        struct td_stored *stored = known[i]->stored;
        if (td_collection_get(collection, stored->ns, stored->name) != stored) {
            td_stored_ref(stored);
            td_child_index_refresh(index, stored->ns, stored->name);
            td_stored_unref(stored);
        }
    }
    group = td_map_get(&index->groups, key);
    if (group) {
        list.items = td_arena_array(arena, struct td_child *, group->count);
        list.count = group->count;
        memcpy(list.items, group->items, group->count * sizeof(list.items[0]));
    }
    return list;
}

struct td_children td_child_index_list(struct td_child_index *index, struct td_arena *arena,
                                       td_str controller_uid)
{
    return child_list(index, arena, controller_uid);
}

struct td_children td_child_index_orphans(struct td_child_index *index, struct td_arena *arena,
                                          td_str ns)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return child_list(index, arena, child_orphans_key(ns, buffer));
}
