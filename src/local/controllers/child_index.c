#include "local/controllers/child_index.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "base/vec.h"
#include "kube/meta.h"

#define CHILD_TRACKING_FINALIZER "batch.kubernetes.io/job-tracking"
#define CHILD_DELETION_COST "controller.kubernetes.io/pod-deletion-cost"

struct td_child_group {
    td_str key; /* owned */
    TD_VEC_FIELDS(struct td_child *);
};

static void child_free_text(td_str text)
{
    td_free((void *)(uintptr_t)text.ptr);
}

static td_str child_copy_text(td_str text)
{
    char *copy = td_alloc(text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return (td_str){.ptr = copy, .len = text.len};
}

static void child_free(struct td_child *child)
{
    if (!child) {
        return;
    }
    td_stored_unref(child->stored);
    child_free_text(child->key);
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

static td_time child_time(const struct td_json *object, td_str key)
{
    td_time time;
    td_str text = td_json_get_str(object, key, TD_STR_EMPTY);
    return td_pod_time_parse(text, &time, NULL) == TD_OK ? time : TD_TIME_NONE;
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
    const struct td_json *c = td_json_first_item(list);
    for (; c; c = c->next) {
        if (td_str_equal(td_json_get_str(c, TD_STR("name"), TD_STR_EMPTY), name)) {
            return td_str_equal(td_json_get_str(c, TD_STR("restartPolicy"), TD_STR_EMPTY),
                                TD_STR("Always"));
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
        td_time end = child_time(td_json_get_path(c, "state.terminated"), TD_STR("finishedAt"));
        facts->finished = end > facts->finished ? end : facts->finished;
    }
    list = td_json_get(status, TD_STR("initContainerStatuses"));
    c = td_json_first_item(list);
    for (; c; c = c->next) {
        int64_t restarts = td_json_get_int64(c, TD_STR("restartCount"), 0);
        facts->restarts_total += restarts;
        if (restarts > facts->sidecar_restarts &&
            child_is_sidecar(td_json_get(pod, TD_STR("spec")),
                             td_json_get_str(c, TD_STR("name"), TD_STR_EMPTY))) {
            facts->sidecar_restarts = restarts;
        }
    }
}

static void child_read_conditions(const struct td_json *pod, struct td_pod_facts *facts)
{
    const struct td_json *list = td_json_get_path(pod, "status.conditions");
    const struct td_json *c = td_json_first_item(list);
    for (; c; c = c->next) {
        if (td_str_equal(td_json_get_str(c, TD_STR("type"), TD_STR_EMPTY), TD_STR("Ready"))) {
            facts->is_ready =
                td_str_equal(td_json_get_str(c, TD_STR("status"), TD_STR_EMPTY), TD_STR("True"));
            facts->ready_since =
                facts->is_ready ? child_time(c, TD_STR("lastTransitionTime")) : TD_TIME_NONE;
        }
    }
}

/* spec.affinity as the DaemonSet controller writes it: one term that names the node. */
static td_str child_affinity_node(const struct td_json *pod)
{
    const struct td_json *terms = td_json_get_path(
        pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
             "nodeSelectorTerms");
    const struct td_json *term = td_json_first_item(terms);
    for (; term; term = term->next) {
        const struct td_json *fields = td_json_get(term, TD_STR("matchFields"));
        const struct td_json *f = td_json_first_item(fields);
        for (; f; f = f->next) {
            const struct td_json *values = td_json_get(f, TD_STR("values"));
            if (td_str_equal(td_json_get_str(f, TD_STR("key"), TD_STR_EMPTY),
                             TD_STR("metadata.name")) &&
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
    td_str node =
        td_json_get_str(td_json_get(pod, TD_STR("spec")), TD_STR("nodeName"), TD_STR_EMPTY);
    *facts = (struct td_pod_facts){
        .phase = td_pod_phase_from(
            td_json_get_str(td_json_get(pod, TD_STR("status")), TD_STR("phase"), TD_STR_EMPTY)),
        .ready_since = TD_TIME_NONE,
        .finished = TD_TIME_NONE,
        .node = child_slice(child->stored, node),
        .affinity_node = child_slice(child->stored, child_affinity_node(pod)),
        .deletion_cost = child_deletion_cost(metadata),
    };
    child_read_conditions(pod, facts);
    child_read_containers(pod, facts);
    const struct td_json *list = td_json_get(metadata, TD_STR("finalizers"));
    const struct td_json *f = td_json_first_item(list);
    for (; f; f = f->next) {
        if (f->type == TD_JSON_TYPE_STRING &&
            td_str_equal(f->text, TD_STR(CHILD_TRACKING_FINALIZER))) {
            facts->has_tracking_finalizer = true;
        }
    }
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
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    struct td_meta meta;
    if (td_json_parse(&arena, stored->json, NULL, &object, NULL) != TD_OK ||
        td_meta_decode(&arena, object, &meta, NULL) != TD_OK) {
        return NULL; /* what cannot be read belongs to nobody */
    }
    struct td_child *child = child_new(stored, &meta.labels);
    child->key = child_copy_text(key);
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
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&index->children, &position))) {
        child_free(entry->value);
    }
    position = 0;
    while ((entry = td_map_next(&index->groups, &position))) {
        struct td_child_group *group = entry->value;
        child_free_text(group->key);
        td_vec_done(group);
        td_free(group);
    }
    td_map_done(&index->children);
    td_map_done(&index->groups);
}

static td_str child_key(struct td_arena *arena, td_str ns, td_str name)
{
    return td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(ns), TD_STR_ARG(name));
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
        child_free_text(group->key);
        td_vec_done(group);
        td_free(group);
    }
    child->group = NULL;
}

static void child_join(struct td_child_index *index, struct td_child *child)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_str key = child->controller_uid.len > 0 ? child->controller_uid
                                               : child_key(&arena, TD_STR_EMPTY, child->stored->ns);
    struct td_child_group *group = td_map_get(&index->groups, key);
    if (!group) {
        group = td_alloc_zero(1, sizeof(*group));
        group->count_max = TD_COLLECTION_OBJECTS_MAX;
        group->key = child_copy_text(key);
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
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_str key = child_key(&arena, ns, name);
    struct td_child *before = td_map_get(&index->children, key);
    const struct td_collection *collection = td_store_find(index->store, index->collection);
    struct td_stored *stored = collection ? td_collection_get(collection, ns, name) : NULL;
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
    return child_list(index, arena, child_key(arena, TD_STR_EMPTY, ns));
}
