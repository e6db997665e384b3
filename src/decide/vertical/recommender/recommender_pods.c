/*
 * Tracked pods. A large cluster has hundreds of thousands, so each is one block of the heap: the
 * pod, its containers, its name. Whatever many pods share is elsewhere (namespace, labels and
 * target in the group, container names under a number), and the table that finds a pod holds
 * pointers only.
 *
 * Removing from the table closes the gap at once: those behind it that would no longer be reached
 * from their own place move up, so there are no marks and a probe ends at the first free slot. At
 * most three quarters of the slots are used.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "decide/vertical/recommender/recommender_private.h"
#include "kube/objectkey.h"

#define TABLE_SLOTS_FIRST ((size_t)64)
#define CPU_LIMIT_MILLI_MAX INT64_C(0x3fffffff) /* a million cores */

static_assert(TD_OBJECT_KEY_BYTES_MAX < 1 << 10, "a pod's name_len has 10 bits");
static_assert(TD_POD_CONTAINERS_MAX < 1 << 13, "a pod's container_count has 13 bits");

static char *pod_text(struct td_tracked_pod *pod)
{
    return (char *)(pod->containers + pod->container_count);
}

static td_str pod_name(const struct td_tracked_pod *pod)
{
    return (td_str){.ptr = (const char *)(pod->containers + pod->container_count),
                    .len = pod->name_len};
}

static size_t pod_bytes(size_t container_count, size_t name_len)
{
    return sizeof(struct td_tracked_pod) + container_count * sizeof(struct td_tracked_container) +
           name_len;
}

struct td_tracked_container *td_pod_container(const struct td_recommender *recommender,
                                              struct td_tracked_pod *pod, td_str container)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        if (td_str_equal(td_pod_container_name(recommender, pod, i), container)) {
            return &pod->containers[i];
        }
    }
    return NULL;
}

/* The number of a name with one user more, or a negative code at the limit. */
static int64_t name_ref(struct td_recommender *recommender, td_str text)
{
    struct td_container_names *names = &recommender->names;
    uintptr_t known = (uintptr_t)td_map_get(&names->numbers, text);
    if (known > 0) {
        names->places.items[known - 1].users++;
        return (int64_t)known - 1;
    }
    td_str copy = td_intern_ref(recommender->texts, text);
    if (!copy.ptr) {
        return TD_LIMIT;
    }
    uint32_t number = names->first_free;
    if (number > 0) {
        names->first_free = names->places.items[number - 1].next_free;
    } else {
        struct td_container_name *added = td_vec_push(&names->places);
        td_assert(added); /* there are no more numbers than interned texts */
        number = (uint32_t)names->places.count;
    }
    names->places.items[number - 1] = (struct td_container_name){.text = copy, .users = 1};
    int code = td_map_put(&names->numbers, copy, (void *)(uintptr_t)number);
    td_assert(code == 0);
    return (int64_t)number - 1;
}

static void name_unref(struct td_recommender *recommender, uint32_t number)
{
    struct td_container_names *names = &recommender->names;
    struct td_container_name *name = &names->places.items[number];
    td_assert(name->users > 0);
    if (--name->users > 0) {
        return;
    }
    (void)td_map_remove(&names->numbers, name->text);
    td_intern_unref(recommender->texts, name->text);
    *name = (struct td_container_name){.text = TD_STR_EMPTY, .next_free = names->first_free};
    names->first_free = number + 1;
}

static bool pod_is(const struct td_tracked_pod *pod, td_str namespace, td_str name)
{
    return td_str_equal(pod_name(pod), name) &&
           td_str_equal(pod->group->namespace->name, namespace);
}

static struct td_tracked_pod *table_find(const struct td_pod_table *table, td_str namespace,
                                         td_str name, uint32_t hash)
{
    if (table->count == 0) {
        return NULL;
    }
    size_t mask = table->slot_count - 1;
    for (size_t at = hash & mask; table->items[at]; at = (at + 1) & mask) {
        struct td_tracked_pod *pod = table->items[at];
        if (pod->hash == hash && pod_is(pod, namespace, name)) {
            return pod;
        }
    }
    return NULL;
}

static size_t table_slot(const struct td_pod_table *table, const struct td_tracked_pod *pod)
{
    size_t mask = table->slot_count - 1;
    size_t at = pod->hash & mask;
    while (table->items[at] != pod) {
        td_assert(table->items[at]);
        at = (at + 1) & mask;
    }
    return at;
}

static void table_place(struct td_pod_table *table, struct td_tracked_pod *pod)
{
    size_t mask = table->slot_count - 1;
    size_t at = pod->hash & mask;
    while (table->items[at]) {
        at = (at + 1) & mask;
    }
    table->items[at] = pod;
}

static void table_resize(struct td_pod_table *table, size_t slot_count)
{
    struct td_pod_table old = *table;
    table->items = td_alloc_zero(slot_count, sizeof(struct td_tracked_pod *));
    table->slot_count = slot_count;
    for (size_t at = 0; at < old.slot_count; at++) {
        if (old.items[at]) {
            table_place(table, old.items[at]);
        }
    }
    td_free(old.items);
}

static void table_add(struct td_pod_table *table, struct td_tracked_pod *pod)
{
    if (table->count >= table->slot_count / 4 * 3) {
        table_resize(table, table->slot_count > 0 ? table->slot_count * 2 : TABLE_SLOTS_FIRST);
    }
    table_place(table, pod);
    table->count++;
}

static void table_remove(struct td_pod_table *table, const struct td_tracked_pod *pod)
{
    size_t mask = table->slot_count - 1;
    size_t gap = table_slot(table, pod);
    for (size_t at = (gap + 1) & mask; table->items[at]; at = (at + 1) & mask) {
        size_t from_home = (at - table->items[at]->hash) & mask;
        if (from_home >= ((at - gap) & mask)) {
            table->items[gap] = table->items[at];
            gap = at;
        }
    }
    table->items[gap] = NULL;
    table->count--;
    if (table->slot_count > TABLE_SLOTS_FIRST && table->count < table->slot_count / 8) {
        table_resize(table, table->slot_count / 2);
    }
}

static void group_attach(struct td_group *group, struct td_tracked_pod *pod)
{
    pod->group = group;
    pod->place = group->pods.count;
    td_links_add(&group->pods, pod);
    for (uint32_t i = 0; i < group->vpas.count; i++) {
        struct td_model_vpa *vpa = group->vpas.items[i];
        vpa->pod_count++;
    }
}

static void group_detach(struct td_tracked_pod *pod)
{
    struct td_group *group = pod->group;
    struct td_tracked_pod *last = group->pods.items[--group->pods.count];
    group->pods.items[pod->place] = last;
    last->place = pod->place;
    for (uint32_t i = 0; i < group->vpas.count; i++) {
        struct td_model_vpa *vpa = group->vpas.items[i];
        vpa->pod_count--;
    }
}

td_time td_pod_started(const struct td_tracked_pod *pod)
{
    return pod->started_second > 0 ? (td_time)pod->started_second * TD_SECOND : TD_TIME_NONE;
}

void td_pod_restart_windows(struct td_tracked_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        td_time last_cpu = pod->containers[i].state.last_cpu;
        td_time last_memory = pod->containers[i].state.last_memory;
        td_container_state_init(&pod->containers[i].state);
        pod->containers[i].is_held = false;
        /* A sample counts once, wherever the pod has been. */
        pod->containers[i].state.last_cpu = last_cpu;
        pod->containers[i].state.last_memory = last_memory;
    }
}

/* A known pod with other labels or another target. */
static void pod_move(struct td_recommender *recommender, struct td_tracked_pod *pod,
                     struct td_group *group, td_time now)
{
    struct td_group *left = pod->group;
    bool has_same_owner = td_group_owner(left) && td_group_owner(left) == td_group_owner(group);
    group_detach(pod);
    group_attach(group, pod);
    if (!recommender->config.is_upstream_exact && !has_same_owner) {
        td_pod_restart_windows(pod);
    }
    for (size_t i = 0; i < pod->container_count; i++) {
        (void)td_group_slot(recommender, group, td_pod_container_name(recommender, pod, i), now);
    }
    td_group_free_if_unused(recommender, left);
}

static struct td_tracked_pod *pod_new(struct td_recommender *recommender, struct td_group *group,
                                      td_str name, uint32_t hash)
{
    struct td_tracked_pod *pod = td_alloc_zero(1, pod_bytes(0, name.len));
    pod->hash = hash;
    pod->name_len = (uint32_t)name.len & 1023;
    char *text = pod_text(pod);
    (void)td_text_place(&text, name);
    group_attach(group, pod);
    table_add(&recommender->pods, pod);
    return pod;
}

td_str td_target_key(struct td_arena *arena, td_str group, td_str kind, td_str name)
{
    return td_arena_format(arena, "%.*s/%.*s/%.*s", TD_STR_ARG(group), TD_STR_ARG(kind),
                           TD_STR_ARG(name));
}

int td_recommender_set_pod(struct td_recommender *recommender,
                           const struct td_observed_pod *observed, td_time now,
                           struct td_tracked_pod **ret, struct td_error *err)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = td_object_key_write(TD_OBJECT_KEY(observed->namespace, observed->name), buffer);
    if (key.len == 0) {
        return td_error_set(err, TD_INVALID, "pod '%.*s': name is too long",
                            TD_STR_ARG(observed->name));
    }
    uint32_t hash = (uint32_t)td_map_hash(key);
    struct td_tracked_pod *pod =
        table_find(&recommender->pods, observed->namespace, observed->name, hash);
    if (!pod && recommender->pods.count >= TD_RECOMMENDER_PODS_MAX) {
        return td_error_set(err, TD_LIMIT, "more than %zu pods", TD_RECOMMENDER_PODS_MAX);
    }
    struct td_group *group = td_group_ensure(recommender, observed);
    if (!group) {
        return td_error_set(err, TD_LIMIT, "pod '%.*s': too many names or labels", TD_STR_ARG(key));
    }
    if (!pod) {
        pod = pod_new(recommender, group, observed->name, hash);
    } else if (pod->group != group) {
        pod_move(recommender, pod, group, now);
    }
    pod->phase = (uint32_t)observed->phase & 7;
    if (observed->started > 0 && observed->started / TD_SECOND <= UINT32_MAX) {
        pod->started_second = (uint32_t)(observed->started / TD_SECOND);
    }
    if (ret) {
        *ret = pod;
    }
    return TD_OK;
}

static void pod_free(struct td_recommender *recommender, struct td_tracked_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        name_unref(recommender, pod->containers[i].name);
    }
    td_free(pod);
}

struct td_tracked_pod *td_recommender_find_pod(const struct td_recommender *recommender,
                                               td_str namespace, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = td_object_key_write(TD_OBJECT_KEY(namespace, name), buffer);
    uint32_t hash = (uint32_t)td_map_hash(key);
    return table_find(&recommender->pods, namespace, name, hash);
}

void td_recommender_delete_pod(struct td_recommender *recommender, td_str namespace, td_str name)
{
    struct td_tracked_pod *pod = td_recommender_find_pod(recommender, namespace, name);
    if (!pod) {
        return;
    }
    struct td_group *group = pod->group;
    table_remove(&recommender->pods, pod);
    group_detach(pod);
    pod_free(recommender, pod);
    td_group_free_if_unused(recommender, group);
}

/* Makes room for a container more; the pod moves, and those who point at it are told. */
static struct td_tracked_pod *pod_grow(struct td_recommender *recommender,
                                       struct td_tracked_pod *pod)
{
    size_t slot = table_slot(&recommender->pods, pod);
    size_t count = (size_t)pod->container_count + 1;
    struct td_tracked_pod *grown = td_realloc(pod, pod_bytes(count, pod->name_len));
    char *text = pod_text(grown);
    grown->container_count = (uint32_t)count & 8191;
    memmove(pod_text(grown), text, grown->name_len);
    recommender->pods.items[slot] = grown;
    grown->group->pods.items[grown->place] = grown;
    return grown;
}

static uint32_t milli_kept(int64_t milli)
{
    int64_t kept = milli < CPU_LIMIT_MILLI_MAX ? milli : CPU_LIMIT_MILLI_MAX;
    return kept > 0 ? (uint32_t)kept : 0;
}

int td_recommender_set_container(struct td_recommender *recommender, struct td_tracked_pod **pod,
                                 td_str container, int64_t cpu_limit_milli, td_time now,
                                 struct td_error *err)
{
    struct td_tracked_container *known = td_pod_container(recommender, *pod, container);
    if (known) {
        known->cpu_limit_milli = milli_kept(cpu_limit_milli) & 0x3fffffff;
        return TD_OK;
    }
    int64_t number = (*pod)->container_count < TD_POD_CONTAINERS_MAX
                         ? name_ref(recommender, container)
                         : TD_LIMIT;
    if (number < 0) {
        return td_error_set(err, TD_LIMIT, "pod '%.*s': too many containers",
                            TD_STR_ARG(pod_name(*pod)));
    }
    struct td_tracked_pod *grown = pod_grow(recommender, *pod);
    struct td_tracked_container *added = &grown->containers[grown->container_count - 1];
    *added = (struct td_tracked_container){
        .name = (uint32_t)number, .cpu_limit_milli = milli_kept(cpu_limit_milli) & 0x3fffffff};
    td_container_state_init(&added->state);
    (void)td_group_slot(recommender, grown->group, container, now);
    *pod = grown;
    return TD_OK;
}

bool td_recommender_wants_terms(const struct td_tracked_pod *pod)
{
    const struct td_model_vpa *owner = td_group_owner(pod->group);
    return owner && owner->estimator->set_terms;
}

void td_recommender_set_terms(struct td_recommender *recommender, struct td_tracked_pod *pod,
                              td_str container, const struct td_container_terms *terms, td_time now)
{
    struct td_tracked_container *tracked = td_pod_container(recommender, pod, container);
    struct td_slot *slot = td_group_slot(recommender, pod->group, container, now);
    if (!tracked || !slot || !slot->estimator_state || !td_recommender_wants_terms(pod)) {
        return;
    }
    tracked->cpu_request_milli = milli_kept(terms->cpu_request_milli) & 0x3fffffff;
    tracked->lack = (uint32_t)terms->lack & 3;
    slot->terms.memory_request_bytes = terms->memory_request_bytes;
    slot->terms.memory_limit_bytes = terms->memory_limit_bytes;
    if (slot->terms.lack == TD_RESIZE_POSSIBLE) { /* else the next status looks at all pods */
        slot->terms.lack = terms->lack;
    }
    td_group_owner(pod->group)->estimator->set_terms(slot->estimator_state, &slot->terms);
}

void td_pods_free(struct td_recommender *recommender)
{
    for (size_t at = 0; at < recommender->pods.slot_count; at++) {
        if (recommender->pods.items[at]) {
            group_detach(recommender->pods.items[at]);
            pod_free(recommender, recommender->pods.items[at]);
        }
    }
    td_free(recommender->pods.items);
    recommender->pods = (struct td_pod_table){.items = NULL};
    td_vec_done(&recommender->names.places);
    td_map_done(&recommender->names.numbers);
}
