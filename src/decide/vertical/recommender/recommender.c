/*
 * Pods are kept in groups of the same labels and target, because all pods of a group have the same
 * VPAs: matching costs once a group and not once a pod, and the count of a VPA's pods is a sum over
 * its groups. A rollout makes a new group and empties an old one, which is then freed; what was
 * learnt is with the VPA.
 */
#include "decide/vertical/recommender/recommender.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/text.h"
#include "decide/vertical/recommender/recommender_private.h"
#include "kube/objectkey.h"

void td_links_add(struct td_links *links, void *item)
{
    if (links->count == links->cap) {
        links->cap = links->cap > 0 ? links->cap * 2 : 1;
        links->items = td_realloc(links->items, links->cap * sizeof(void *));
    }
    links->items[links->count++] = item;
}

void td_links_done(struct td_links *links)
{
    td_free(links->items);
    *links = (struct td_links){.items = NULL};
}

struct td_recommender *td_recommender_new(const struct td_vertical_config *config)
{
    struct td_recommender *recommender = td_alloc_zero(1, sizeof(*recommender));
    recommender->config = *config;
    recommender->texts = td_intern_new(TD_RECOMMENDER_TEXTS_MAX);
    recommender->last_gc = TD_CONTAINER_TIME_NONE;
    recommender->names.places.count_max = TD_RECOMMENDER_TEXTS_MAX;
    td_map_init(&recommender->names.numbers, TD_RECOMMENDER_TEXTS_MAX);
    td_map_init(&recommender->vpas, TD_RECOMMENDER_VPAS_MAX);
    td_map_init(&recommender->namespaces, TD_RECOMMENDER_NAMESPACES_MAX);
    return recommender;
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
static void group_key(const struct td_observed_pod *observed, struct td_buf *out)
{
    (void)td_buf_append(out, observed->target);
    for (size_t i = 0; i < observed->labels.count; i++) {
        (void)td_buf_append_char(out, '\n');
        (void)td_buf_append(out, observed->labels.items[i].key);
        (void)td_buf_append_char(out, '=');
        (void)td_buf_append(out, observed->labels.items[i].value);
    }
}

/* A group with the labels as parts of its own key. */
static struct td_group *group_new(const struct td_observed_pod *observed, td_str key)
{
    size_t labels = observed->labels.count;
    struct td_group *group =
        td_alloc_zero(1, sizeof(*group) + labels * sizeof(struct td_label) + key.len);
    char *text = (char *)(group->label_items + labels);
    size_t at = observed->target.len;
    group->key = td_text_place(&text, key);
    group->target = td_str_slice(group->key, 0, at);
    for (size_t i = 0; i < labels; i++) {
        size_t key_len = observed->labels.items[i].key.len;
        size_t value_len = observed->labels.items[i].value.len;
        group->label_items[i].key = td_str_slice(group->key, at + 1, at + 1 + key_len);
        at += 2 + key_len;
        group->label_items[i].value = td_str_slice(group->key, at, at + value_len);
        at += value_len;
    }
    group->labels = (struct td_labels){.items = group->label_items, .count = labels};
    return group;
}

struct td_group *td_group_ensure(struct td_recommender *recommender,
                                 const struct td_observed_pod *observed)
{
    struct td_namespace *namespace = td_namespace_ensure(recommender, observed->namespace);
    td_auto_buf key = td_buf_capped(TD_JSON_BYTES_MAX);
    group_key(observed, &key);
    if (!namespace || key.is_full) {
        return NULL;
    }
    struct td_group *group = td_map_get(&namespace->groups, td_buf_str(&key));
    if (group) {
        return group;
    }
    group = group_new(observed, td_buf_str(&key));
    group->namespace = namespace;
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
    td_links_done(&group->vpas);
    td_links_done(&group->pods);
    td_free(group);
}

void td_group_free_if_unused(struct td_recommender *recommender, struct td_group *group)
{
    struct td_namespace *namespace = group->namespace;
    if (group->pods.count > 0 || group->slots.count > 0) {
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
    struct td_model_vpa *owner = td_group_owner(group);
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

struct td_model_vpa *td_recommender_find_vpa(const struct td_recommender *recommender,
                                             td_str namespace, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&recommender->vpas,
                      td_object_key_write(TD_OBJECT_KEY(namespace, name), buffer));
}

void td_recommender_free(struct td_recommender *recommender)
{
    if (!recommender) {
        return;
    }
    for (struct td_map_walk at = {.map = &recommender->vpas}; td_map_step(&at);) {
        const struct td_model_vpa *vpa = at.value;
        td_recommender_delete_vpa(recommender, vpa->namespace->name, vpa->name);
    }
    td_pods_free(recommender);
    for (struct td_map_walk at = {.map = &recommender->namespaces}; td_map_step(&at);) {
        struct td_namespace *namespace = at.value;
        size_t within = 0;
        const struct td_map_entry *inner;
        while ((inner = td_map_next(&namespace->groups, &within)) != NULL) {
            td_group_free(recommender, inner->value);
        }
        namespace_free(recommender, namespace);
    }
    td_map_done(&recommender->vpas);
    td_map_done(&recommender->namespaces);
    td_intern_free(recommender->texts);
    td_free(recommender);
}
