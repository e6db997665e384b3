/*
 * Budgets by namespace, their members by pod, and counts of healthy pods that change by one with
 * each event.
 */
#include "local/controllers/disruption_index.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/vec.h"
#include "kube/meta.h"
#include "kube/objectkey.h"
#include "kube/selector/labels.h"
#include "local/kinds/condition.h"
#include "local/store/store.h"

struct budget_group {
    td_str ns; /* owned, behind the structure */
    TD_VEC_FIELDS(struct td_budget *);
};

/* What a pod means to any budget. */
struct pod_view {
    td_str name;
    struct td_labels labels;
    bool is_ready;
    bool is_deleting;
    const struct td_owner_reference *owner;
};

/* ---- Members ---- */

static void budget_count(struct td_budget *budget, const struct td_budget_member *member, bool adds)
{
    size_t step = adds ? 1 : (size_t)-1;
    budget->healthy += member->is_ready && !member->is_deleting ? step : 0;
    if (member->owner) {
        member->owner->count += step;
    } else {
        budget->unmanaged += step;
    }
}

static struct td_budget_owner *budget_owner(struct td_budget *budget,
                                            const struct td_owner_reference *reference)
{
    if (!reference) {
        return NULL;
    }
    struct td_budget_owner *owner = td_map_get(&budget->owners, reference->uid);
    if (owner) {
        return owner;
    }
    owner = td_alloc_zero(1, sizeof(*owner) + reference->api_version.len + reference->kind.len +
                                 reference->name.len + reference->uid.len);
    char *at = (char *)(owner + 1);
    owner->api_version = td_text_place(&at, reference->api_version);
    owner->kind = td_text_place(&at, reference->kind);
    owner->name = td_text_place(&at, reference->name);
    owner->uid = td_text_place(&at, reference->uid);
    if (td_map_put(&budget->owners, owner->uid, owner) != TD_OK) {
        td_free(owner);
        return NULL;
    }
    return owner;
}

static void budget_release_owner(struct td_budget *budget, struct td_budget_owner *owner)
{
    if (owner && owner->count == 0) {
        (void)td_map_remove(&budget->owners, owner->uid); /* it is there */
        td_free(owner);
    }
}

static bool budget_drop_member(struct td_budget *budget, td_str name)
{
    struct td_budget_member *member = td_map_remove(&budget->members, name);
    if (!member) {
        return false;
    }
    budget_count(budget, member, false);
    budget_release_owner(budget, member->owner);
    td_free(member);
    return true;
}

/* True: something that counts is new. */
static bool budget_put_member(struct td_budget *budget, const struct pod_view *pod)
{
    struct td_budget_member *member = td_map_get(&budget->members, pod->name);
    struct td_budget_owner *owner = budget_owner(budget, pod->owner);
    if (member && member->is_ready == pod->is_ready && member->is_deleting == pod->is_deleting &&
        member->owner == owner) {
        return false;
    }
    struct td_budget_owner *before = NULL;
    if (member) {
        before = member->owner != owner ? member->owner : NULL;
        budget_count(budget, member, false);
    } else {
        member = td_alloc_zero(1, sizeof(*member) + pod->name.len);
        member->name = td_text_behind(member + 1, pod->name);
        if (td_map_put(&budget->members, member->name, member) != TD_OK) {
            td_free(member);
            budget_release_owner(budget, owner);
            return false;
        }
    }
    member->is_ready = pod->is_ready;
    member->is_deleting = pod->is_deleting;
    member->owner = owner;
    budget_count(budget, member, true);
    budget_release_owner(budget, before);
    return true;
}

static bool budget_judge_pod(struct td_budget *budget, const struct pod_view *pod)
{
    return td_selector_matches(&budget->selector, &pod->labels)
               ? budget_put_member(budget, pod)
               : budget_drop_member(budget, pod->name);
}

static void budget_clear(struct td_budget *budget)
{
    for (struct td_map_walk at = {.map = &budget->members}; td_map_step(&at);) {
        td_free(at.value);
    }
    for (struct td_map_walk at = {.map = &budget->owners}; td_map_step(&at);) {
        td_free(at.value);
    }
    td_map_reset(&budget->members);
    td_map_reset(&budget->owners);
    budget->healthy = 0;
    budget->unmanaged = 0;
}

static void budget_free(struct td_budget *budget)
{
    budget_clear(budget);
    td_map_done(&budget->members);
    td_map_done(&budget->owners);
    td_arena_done(&budget->arena);
    td_free(budget);
}

/* ---- Pods ---- */

static bool pod_view_read(struct td_arena *arena, td_str json, struct pod_view *ret)
{
    struct td_json *pod;
    struct td_meta meta;
    if (td_json_parse(arena, json, NULL, &pod, NULL) != TD_OK ||
        td_meta_decode(arena, pod, &meta, NULL) != TD_OK) {
        return false;
    }
    *ret = (struct pod_view){
        .name = meta.name,
        .labels = meta.labels,
        .is_ready =
            td_condition_is(td_json_get(pod, TD_STR("status")), TD_STR("Ready"), TD_STR("True")),
        .is_deleting = td_json_get_path(pod, "metadata.deletionTimestamp") != NULL,
        .owner = td_meta_controller(&meta),
    };
    return true;
}

void td_disruption_index_pod(struct td_disruption_index *index, td_str ns, td_str name, td_str json)
{
    const struct budget_group *group = td_map_get(&index->groups, ns);
    if (!group) {
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct pod_view pod;
    bool is_there = json.len > 0 && pod_view_read(&arena, json, &pod);
    for (size_t i = 0; i < group->count; i++) {
        struct td_budget *budget = group->items[i];
        if (is_there ? budget_judge_pod(budget, &pod) : budget_drop_member(budget, name)) {
            index->changed(index->context, budget->key);
        }
    }
}

/* ---- Budgets ---- */

static bool index_join_group(struct td_disruption_index *index, struct td_budget *budget)
{
    struct budget_group *group = td_map_get(&index->groups, budget->ns);
    if (!group) {
        group = td_alloc_zero(1, sizeof(*group) + budget->ns.len);
        group->ns = td_text_behind(group + 1, budget->ns);
        group->count_max = TD_COLLECTION_OBJECTS_MAX;
        if (td_map_put(&index->groups, group->ns, group) != TD_OK) {
            td_free(group);
            return false;
        }
    }
    struct td_budget **place = td_vec_push(group);
    if (place) {
        *place = budget;
    }
    return place != NULL;
}

static void index_leave_group(struct td_disruption_index *index, const struct td_budget *budget)
{
    struct budget_group *group = td_map_get(&index->groups, budget->ns);
    for (size_t i = 0; group && i < group->count; i++) {
        if (group->items[i] == budget) {
            td_vec_remove(group, i);
            break;
        }
    }
    if (group && group->count == 0) {
        (void)td_map_remove(&index->groups, group->ns); /* it is there */
        td_vec_done(group);
        td_free(group);
    }
}

static struct td_budget *index_make(struct td_disruption_index *index, td_str ns, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = td_object_key_write(TD_OBJECT_KEY(ns, name), buffer);
    struct td_budget *budget = td_alloc_zero(1, sizeof(*budget) + key.len);
    budget->key = td_text_behind(budget + 1, key);
    budget->ns = td_object_key_read(budget->key).namespace;
    budget->name = td_object_key_read(budget->key).name;
    td_arena_init(&budget->arena, TD_TREE_ARENA_BYTES_MAX);
    td_map_init(&budget->members, TD_COLLECTION_OBJECTS_MAX);
    td_map_init(&budget->owners, TD_COLLECTION_OBJECTS_MAX);
    if (td_map_put(&index->budgets, budget->key, budget) != TD_OK) {
        budget_free(budget);
        return NULL;
    }
    if (!index_join_group(index, budget)) {
        (void)td_map_remove(&index->budgets, budget->key); /* it is there */
        budget_free(budget);
        return NULL;
    }
    return budget;
}

static void index_find_members(struct td_disruption_index *index, struct td_budget *budget)
{
    const struct td_collection *pods = td_store_find(index->store, TD_STR("pods"));
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_collection_iter iter = td_collection_walk(pods, budget->ns);
    for (const struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        struct pod_view pod;
        if (pod_view_read(&arena, stored->json, &pod)) {
            (void)budget_judge_pod(budget, &pod); /* it is judged in any case */
        }
        td_arena_reset(&arena);
    }
}

void td_disruption_index_put(struct td_disruption_index *index, td_str ns, td_str name, td_str json)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_budget *budget =
        td_map_get(&index->budgets, td_object_key_text(&arena, TD_OBJECT_KEY(ns, name)));
    struct td_json *object;
    bool is_new = !budget;
    budget = budget ? budget : index_make(index, ns, name);
    if (!budget || td_json_parse(&arena, json, NULL, &object, NULL) != TD_OK) {
        return;
    }
    int64_t generation =
        td_json_get_int64(td_json_get(object, TD_STR("metadata")), TD_STR("generation"), 0);
    if (is_new || generation != budget->generation) {
        budget->generation = generation;
        budget_clear(budget);
        td_arena_reset(&budget->arena);
        const struct td_json *selector = td_json_get_path(object, "spec.selector");
        struct td_json *kept = selector ? td_json_copy(&budget->arena, selector, true) : NULL;
        if (td_selector_from_json(&budget->arena, kept, &budget->selector, NULL) != TD_OK) {
            budget->selector = (struct td_selector){.matches_nothing = true};
        }
        index_find_members(index, budget);
    }
    index->changed(index->context, budget->key);
}

void td_disruption_index_drop(struct td_disruption_index *index, td_str ns, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    struct td_budget *budget =
        td_map_remove(&index->budgets, td_object_key_write(TD_OBJECT_KEY(ns, name), buffer));
    if (budget) {
        index_leave_group(index, budget);
        budget_free(budget);
    }
}

const struct td_budget *td_disruption_index_get(const struct td_disruption_index *index, td_str key)
{
    return td_map_get(&index->budgets, key);
}

void td_disruption_index_init(struct td_disruption_index *index, struct td_store *store,
                              void (*changed)(void *context, td_str key), void *context)
{
    *index = (struct td_disruption_index){.store = store, .changed = changed, .context = context};
    td_map_init(&index->budgets, TD_COLLECTION_OBJECTS_MAX);
    td_map_init(&index->groups, TD_COLLECTION_OBJECTS_MAX);
}

void td_disruption_index_done(struct td_disruption_index *index)
{
    for (struct td_map_walk at = {.map = &index->groups}; td_map_step(&at);) {
        struct budget_group *group = at.value;
        for (size_t i = 0; i < group->count; i++) {
            budget_free(group->items[i]);
        }
        td_vec_done(group);
        td_free(group);
    }
    td_map_done(&index->groups);
    td_map_done(&index->budgets);
}
