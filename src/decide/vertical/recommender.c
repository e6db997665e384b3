/*
 * Pods are kept in groups of the same labels and target, because all pods of a group have the same
 * VPAs: matching costs once a group and not once a pod, and the count of a VPA's pods is a sum over
 * its groups. A rollout makes a new group and empties an old one, which is then freed; what was
 * learnt is with the VPA.
 */
#include "decide/vertical/recommender.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/recommender_private.h"

#define KEY_BYTES 640 /* longer names are refused by every API server */

static td_str copy_text(td_str text)
{
    char *copy = td_alloc(text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return (td_str){.ptr = copy, .len = text.len};
}

static void free_text(td_str text)
{
    td_free((void *)(uintptr_t)text.ptr);
}

/* "namespace/name" in place; the empty slice when it does not fit. */
static td_str object_key(char buffer[KEY_BYTES], td_str namespace, td_str name)
{
    if (namespace.len + 1 + name.len > KEY_BYTES) {
        return TD_STR_EMPTY;
    }
    if (namespace.len > 0) {
        memcpy(buffer, namespace.ptr, namespace.len);
    }
    buffer[namespace.len] = '/';
    if (name.len > 0) {
        memcpy(buffer + namespace.len + 1, name.ptr, name.len);
    }
    return (td_str){.ptr = buffer, .len = namespace.len + 1 + name.len};
}

struct td_recommender *td_recommender_new(const struct td_vertical_config *config)
{
    struct td_recommender *recommender = td_alloc_zero(1, sizeof(*recommender));
    recommender->config = *config;
    recommender->texts = td_intern_new(TD_RECOMMENDER_TEXTS_MAX);
    recommender->last_gc = TD_CONTAINER_TIME_NONE;
    td_map_init(&recommender->pods, TD_RECOMMENDER_PODS_MAX);
    td_map_init(&recommender->vpas, TD_RECOMMENDER_VPAS_MAX);
    td_map_init(&recommender->namespaces, TD_RECOMMENDER_NAMESPACES_MAX);
    return recommender;
}

const struct td_vertical_config *td_recommender_config(const struct td_recommender *recommender)
{
    return &recommender->config;
}

size_t td_recommender_aggregates(const struct td_recommender *recommender)
{
    return recommender->slot_count;
}

size_t td_recommender_live_aggregates(const struct td_recommender *recommender)
{
    size_t count = recommender->slot_count;
    size_t at = 0;
    const struct td_map_entry *entry;
    while (recommender->config.is_upstream_exact &&
           (entry = td_map_next(&recommender->vpas, &at)) != NULL) {
        const struct td_model_vpa *vpa = entry->value;
        count -= vpa->slots.count;
    }
    return count;
}

struct td_slot *td_slots_find(const struct td_slots *slots, td_str container)
{
    for (uint32_t i = 0; i < slots->count; i++) {
        if (td_str_equal(slots->items[i]->container, container)) {
            return slots->items[i];
        }
    }
    return NULL;
}

struct td_slot *td_slots_ensure(struct td_recommender *recommender, struct td_slots *slots,
                                td_str container, td_time now)
{
    struct td_slot *slot = td_slots_find(slots, container);
    if (slot) {
        return slot;
    }
    td_str name = td_intern_ref(recommender->texts, container);
    if (!name.ptr) {
        return NULL;
    }
    slot = td_alloc_zero(1, sizeof(*slot));
    slot->container = name;
    td_aggregate_init(&slot->aggregate, &recommender->config, now);
    if (slots->count == slots->cap) {
        slots->cap = slots->cap ? slots->cap * 2 : 1;
        slots->items = td_realloc(slots->items, slots->cap * sizeof(struct td_slot *));
    }
    uint32_t at = slots->count++;
    for (; at > 0 && td_str_compare(slots->items[at - 1]->container, name) > 0; at--) {
        slots->items[at] = slots->items[at - 1];
    }
    slots->items[at] = slot;
    recommender->slot_count++;
    return slot;
}

static void slot_free(struct td_recommender *recommender, struct td_slot *slot)
{
    td_aggregate_done(&slot->aggregate);
    td_free(slot->estimator_state);
    td_intern_unref(recommender->texts, slot->container);
    td_free(slot);
    recommender->slot_count--;
}

void td_slots_remove(struct td_recommender *recommender, struct td_slots *slots, uint32_t index)
{
    slot_free(recommender, slots->items[index]);
    slots->count--;
    for (uint32_t i = index; i < slots->count; i++) {
        slots->items[i] = slots->items[i + 1];
    }
}

void td_slots_done(struct td_recommender *recommender, struct td_slots *slots)
{
    for (uint32_t i = 0; i < slots->count; i++) {
        slot_free(recommender, slots->items[i]);
    }
    td_free(slots->items);
    *slots = (struct td_slots){.items = NULL};
}

struct td_namespace *td_namespace_ensure(struct td_recommender *recommender, td_str name)
{
    struct td_namespace *namespace = td_map_get(&recommender->namespaces, name);
    if (namespace) {
        return namespace;
    }
    td_str text = td_intern_ref(recommender->texts, name);
    if (!text.ptr) {
        return NULL;
    }
    namespace = td_alloc_zero(1, sizeof(*namespace));
    namespace->name = text;
    namespace->vpas.count_max = TD_RECOMMENDER_VPAS_MAX;
    td_map_init(&namespace->groups, TD_RECOMMENDER_PODS_MAX);
    if (td_map_put(&recommender->namespaces, text, namespace) < 0) {
        td_map_done(&namespace->groups);
        td_intern_unref(recommender->texts, text);
        td_free(namespace);
        return NULL;
    }
    return namespace;
}

static void namespace_free(struct td_recommender *recommender, struct td_namespace *namespace)
{
    td_map_done(&namespace->groups);
    td_vec_done(&namespace->vpas);
    td_intern_unref(recommender->texts, namespace->name);
    td_free(namespace);
}

/* target, newline, then key=value pairs with newlines between; labels cannot hold newlines. */
static void group_key(const struct td_pod_sight *sight, struct td_buf *out)
{
    (void)td_buf_append(out, sight->target);
    for (size_t i = 0; i < sight->labels.count; i++) {
        (void)td_buf_append_char(out, '\n');
        (void)td_buf_append(out, sight->labels.items[i].key);
        (void)td_buf_append_char(out, '=');
        (void)td_buf_append(out, sight->labels.items[i].value);
    }
}

/* The labels again, as parts of the group's own key. */
static void group_own_labels(struct td_group *group, const struct td_pod_sight *sight)
{
    struct td_label *items =
        sight->labels.count > 0 ? td_alloc(sight->labels.count * sizeof(*items)) : NULL;
    size_t at = sight->target.len;
    group->target = td_str_slice(group->key, 0, at);
    for (size_t i = 0; i < sight->labels.count; i++) {
        size_t key_len = sight->labels.items[i].key.len;
        size_t value_len = sight->labels.items[i].value.len;
        items[i].key = td_str_slice(group->key, at + 1, at + 1 + key_len);
        at += 2 + key_len;
        items[i].value = td_str_slice(group->key, at, at + value_len);
        at += value_len;
    }
    group->labels = (struct td_labels){.items = items, .count = sight->labels.count};
}

struct td_group *td_group_ensure(struct td_recommender *recommender,
                                 const struct td_pod_sight *sight)
{
    struct td_namespace *namespace = td_namespace_ensure(recommender, sight->namespace);
    td_auto_buf key;
    td_buf_init(&key, TD_JSON_BYTES_MAX);
    group_key(sight, &key);
    if (!namespace || key.is_full) {
        return NULL;
    }
    struct td_group *group = td_map_get(&namespace->groups, td_buf_str(&key));
    if (group) {
        return group;
    }
    group = td_alloc_zero(1, sizeof(*group));
    group->key = copy_text(td_buf_str(&key));
    group->namespace = namespace;
    group->vpas.count_max = TD_RECOMMENDER_VPAS_MAX;
    group_own_labels(group, sight);
    if (td_map_put(&namespace->groups, group->key, group) < 0) {
        td_group_free(recommender, group);
        return NULL;
    }
    td_link_group(recommender, group);
    return group;
}

void td_group_free(struct td_recommender *recommender, struct td_group *group)
{
    td_unlink_group(group);
    td_slots_done(recommender, &group->slots);
    td_vec_done(&group->vpas);
    td_free((void *)(uintptr_t)group->labels.items);
    free_text(group->key);
    td_free(group);
}

void td_group_free_if_unused(struct td_recommender *recommender, struct td_group *group)
{
    struct td_namespace *namespace = group->namespace;
    if (group->pod_count > 0 || group->slots.count > 0) {
        return;
    }
    td_map_remove(&namespace->groups, group->key);
    td_group_free(recommender, group);
    if (namespace->groups.count == 0 && namespace->vpas.count == 0) {
        td_map_remove(&recommender->namespaces, namespace->name);
        namespace_free(recommender, namespace);
    }
}

struct td_slot *td_group_slot(struct td_recommender *recommender, struct td_group *group,
                              td_str container, td_time now)
{
    bool is_exact = recommender->config.is_upstream_exact;
    struct td_model_vpa *owner = group->vpas.count > 0 ? group->vpas.items[0] : NULL;
    if (!is_exact && !owner) {
        return NULL;
    }
    struct td_slots *slots = is_exact ? &group->slots : &owner->slots;
    struct td_slot *slot = td_slots_find(slots, container);
    if (slot) {
        return slot;
    }
    slot = td_slots_ensure(recommender, slots, container, now);
    for (size_t i = 0; slot && i < group->vpas.count; i++) {
        td_vpa_apply_terms(recommender, group->vpas.items[i], slot);
    }
    return slot;
}

static void group_attach(struct td_group *group, struct td_tracked_pod *pod)
{
    pod->group = group;
    pod->previous = NULL;
    pod->next = group->pods;
    if (group->pods) {
        group->pods->previous = pod;
    }
    group->pods = pod;
    group->pod_count++;
    for (size_t i = 0; i < group->vpas.count; i++) {
        group->vpas.items[i]->pod_count++;
    }
}

static void group_detach(struct td_tracked_pod *pod)
{
    struct td_group *group = pod->group;
    *(pod->previous ? &pod->previous->next : &group->pods) = pod->next;
    if (pod->next) {
        pod->next->previous = pod->previous;
    }
    group->pod_count--;
    for (size_t i = 0; i < group->vpas.count; i++) {
        group->vpas.items[i]->pod_count--;
    }
}

void td_pod_restart_windows(struct td_tracked_pod *pod)
{
    for (uint16_t i = 0; i < pod->container_count; i++) {
        td_time last_cpu = pod->containers[i].state.last_cpu;
        td_time last_memory = pod->containers[i].state.last_memory;
        td_container_state_init(&pod->containers[i].state);
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
    bool has_same_owner = left->vpas.count > 0 && group->vpas.count > 0 &&
                          left->vpas.items[0] == group->vpas.items[0];
    group_detach(pod);
    group_attach(group, pod);
    if (!recommender->config.is_upstream_exact && !has_same_owner) {
        td_pod_restart_windows(pod);
    }
    for (uint16_t i = 0; i < pod->container_count; i++) {
        (void)td_group_slot(recommender, group, pod->containers[i].name, now);
    }
    td_group_free_if_unused(recommender, left);
}

int td_recommender_set_pod(struct td_recommender *recommender, const struct td_pod_sight *sight,
                           td_time now, struct td_tracked_pod **ret, struct td_error *err)
{
    char buffer[KEY_BYTES];
    td_str key = object_key(buffer, sight->namespace, sight->name);
    if (key.len == 0) {
        return td_error_set(err, TD_INVALID, "pod '%.*s': name is too long",
                            TD_STR_ARG(sight->name));
    }
    struct td_tracked_pod *pod = td_map_get(&recommender->pods, key);
    if (!pod && recommender->pods.count >= TD_RECOMMENDER_PODS_MAX) {
        return td_error_set(err, TD_LIMIT, "more than %zu pods", TD_RECOMMENDER_PODS_MAX);
    }
    struct td_group *group = td_group_ensure(recommender, sight);
    if (!group) {
        return td_error_set(err, TD_LIMIT, "pod '%.*s': too many names or labels", TD_STR_ARG(key));
    }
    if (!pod) {
        pod = td_alloc_zero(1, sizeof(*pod));
        pod->key = copy_text(key);
        group_attach(group, pod);
        int code = td_map_put(&recommender->pods, pod->key, pod);
        td_assert(code == 0); /* the count was looked at above */
    } else if (pod->group != group) {
        pod_move(recommender, pod, group, now);
    }
    pod->phase = (uint8_t)sight->phase;
    if (ret) {
        *ret = pod;
    }
    return TD_OK;
}

static void pod_free(struct td_recommender *recommender, struct td_tracked_pod *pod)
{
    for (uint16_t i = 0; i < pod->container_count; i++) {
        td_intern_unref(recommender->texts, pod->containers[i].name);
    }
    td_free(pod->containers);
    free_text(pod->key);
    td_free(pod);
}

void td_recommender_delete_pod(struct td_recommender *recommender, td_str namespace, td_str name)
{
    char buffer[KEY_BYTES];
    td_str key = object_key(buffer, namespace, name);
    struct td_tracked_pod *pod = td_map_remove(&recommender->pods, key);
    if (!pod) {
        return;
    }
    struct td_group *group = pod->group;
    group_detach(pod);
    pod_free(recommender, pod);
    td_group_free_if_unused(recommender, group);
}

struct td_tracked_pod *td_recommender_find_pod(const struct td_recommender *recommender,
                                               td_str namespace, td_str name)
{
    char buffer[KEY_BYTES];
    return td_map_get(&recommender->pods, object_key(buffer, namespace, name));
}

struct td_model_vpa *td_recommender_find_vpa(const struct td_recommender *recommender,
                                             td_str namespace, td_str name)
{
    char buffer[KEY_BYTES];
    return td_map_get(&recommender->vpas, object_key(buffer, namespace, name));
}

int td_recommender_set_container(struct td_recommender *recommender, struct td_tracked_pod *pod,
                                 td_str container, int64_t cpu_limit_milli, td_time now,
                                 struct td_error *err)
{
    for (uint16_t i = 0; i < pod->container_count; i++) {
        if (td_str_equal(pod->containers[i].name, container)) {
            pod->containers[i].cpu_limit_milli = cpu_limit_milli;
            return TD_OK;
        }
    }
    td_str name = td_intern_ref(recommender->texts, container);
    if (!name.ptr || pod->container_count == TD_POD_CONTAINERS_MAX) {
        td_intern_unref(recommender->texts, name);
        return td_error_set(err, TD_LIMIT, "pod '%.*s': too many containers", TD_STR_ARG(pod->key));
    }
    size_t count = (size_t)pod->container_count + 1;
    pod->containers = td_realloc(pod->containers, count * sizeof(*pod->containers));
    struct td_tracked_container *added = &pod->containers[pod->container_count++];
    *added = (struct td_tracked_container){.name = name, .cpu_limit_milli = cpu_limit_milli};
    td_container_state_init(&added->state);
    (void)td_group_slot(recommender, pod->group, name, now);
    return TD_OK;
}

void td_recommender_free(struct td_recommender *recommender)
{
    const struct td_map_entry *entry;
    size_t at = 0;
    if (!recommender) {
        return;
    }
    while ((entry = td_map_next(&recommender->vpas, &at)) != NULL) {
        const struct td_model_vpa *vpa = entry->value;
        td_recommender_delete_vpa(recommender, vpa->namespace->name, vpa->name);
    }
    for (at = 0; (entry = td_map_next(&recommender->pods, &at)) != NULL;) {
        group_detach(entry->value);
        pod_free(recommender, entry->value);
    }
    for (at = 0; (entry = td_map_next(&recommender->namespaces, &at)) != NULL;) {
        struct td_namespace *namespace = entry->value;
        size_t within = 0;
        const struct td_map_entry *inner;
        while ((inner = td_map_next(&namespace->groups, &within)) != NULL) {
            td_group_free(recommender, inner->value);
        }
        namespace_free(recommender, namespace);
    }
    td_map_done(&recommender->pods);
    td_map_done(&recommender->vpas);
    td_map_done(&recommender->namespaces);
    td_intern_free(recommender->texts);
    td_free(recommender);
}
