#include "control/sight_labels.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "kube/selector/labels.h"
#include "kube/selector/selector.h"

/* Sets of one namespace that have one label, or all of them. */
struct labels_bucket {
    struct td_map *map; /* that it is in */
    td_str key;         /* owned */
    struct td_sight_hook *first;
    size_t count;
};

/* The place of a set in a bucket. */
struct td_sight_hook {
    struct td_sight_alike *alike;
    struct labels_bucket *bucket;
    struct td_sight_hook *next;
    struct td_sight_hook *previous;
};

/* Pods of one namespace with the same labels. One allocation: hooks, labels and texts follow. */
struct td_sight_alike {
    td_str key; /* of the map */
    struct td_sight_pod *first;
    struct td_sight_pod *last;
    struct td_labels labels;
    struct td_sight_hook *hooks; /* one a label, and one of the namespace */
};

void td_sight_labels_init(struct td_sight_labels *labels)
{
    td_map_init(&labels->sets, TD_CACHE_OBJECTS_MAX);
    td_map_init(&labels->spaces, TD_CACHE_OBJECTS_MAX);
    td_map_init(&labels->buckets, TD_SIGHT_BUCKETS_MAX);
}

static void labels_free_buckets(struct td_map *map)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(map, &position))) {
        struct labels_bucket *bucket = entry->value;
        td_text_free(bucket->key);
        td_free(bucket);
    }
    td_map_done(map);
}

void td_sight_labels_done(struct td_sight_labels *labels)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&labels->sets, &position))) {
        td_free(entry->value);
    }
    td_map_done(&labels->sets);
    labels_free_buckets(&labels->spaces);
    labels_free_buckets(&labels->buckets);
}

/* ---- Buckets ---- */

/* Keys above the cap are cut alike: sets are held against the whole selector in any case. */
static td_str labels_key(struct td_buf *out, td_str namespace, const struct td_label *label)
{
    (void)td_buf_append(out, namespace);
    if (label) {
        (void)td_buf_append_format(out, "\n%.*s\n%.*s", TD_STR_ARG(label->key),
                                   TD_STR_ARG(label->value));
    }
    return td_buf_str(out);
}

/* `label` NULL: all sets of the namespace. */
static const struct labels_bucket *labels_find(const struct td_sight_labels *labels,
                                               td_str namespace, const struct td_label *label)
{
    td_auto_buf key;
    td_buf_init(&key, TD_CACHE_KEY_BYTES_MAX);
    return td_map_get(label ? &labels->buckets : &labels->spaces,
                      labels_key(&key, namespace, label));
}

static struct labels_bucket *labels_bucket_of(struct td_sight_labels *labels, td_str namespace,
                                              const struct td_label *label)
{
    td_auto_buf key;
    td_buf_init(&key, TD_CACHE_KEY_BYTES_MAX);
    struct td_map *map = label ? &labels->buckets : &labels->spaces;
    struct labels_bucket *bucket = td_map_get(map, labels_key(&key, namespace, label));
    if (!bucket) {
        bucket = td_alloc_zero(1, sizeof(*bucket));
        bucket->map = map;
        bucket->key = td_text_copy(td_buf_str(&key));
        if (td_map_put(map, bucket->key, bucket) != TD_OK) {
            td_text_free(bucket->key);
            td_free(bucket);
            return NULL;
        }
    }
    return bucket;
}

static void labels_hook(struct td_sight_labels *labels, struct td_sight_hook *hook,
                        td_str namespace, const struct td_label *label)
{
    struct labels_bucket *bucket = labels_bucket_of(labels, namespace, label);
    hook->bucket = bucket;
    if (!bucket) {
        td_assert(label); /* there are no more namespaces than pods */
        labels->is_cut = true;
        return;
    }
    hook->previous = NULL;
    hook->next = bucket->first;
    if (bucket->first) {
        bucket->first->previous = hook;
    }
    bucket->first = hook;
    bucket->count++;
}

static void labels_unhook(struct td_sight_hook *hook)
{
    struct labels_bucket *bucket = hook->bucket;
    if (!bucket) {
        return;
    }
    *(hook->previous ? &hook->previous->next : &bucket->first) = hook->next;
    if (hook->next) {
        hook->next->previous = hook->previous;
    }
    if (--bucket->count == 0) {
        (void)td_map_remove(bucket->map, bucket->key); /* it is there */
        td_text_free(bucket->key);
        td_free(bucket);
    }
}

/* ---- Sets ---- */

static td_str labels_set_key(struct td_buf *out, const struct td_sight_pod *pod)
{
    (void)td_buf_append(out, pod->object.head.namespace);
    (void)td_buf_append(
        out, (td_str){.ptr = (const char *)&pod->labels_hash, .len = sizeof(pod->labels_hash)});
    return td_buf_str(out);
}

static td_str labels_copy(char **at, td_str text)
{
    td_str copy = {.ptr = *at, .len = text.len};
    if (text.len > 0) {
        memcpy(*at, text.ptr, text.len);
    }
    *at += text.len;
    return copy;
}

static struct td_sight_alike *labels_set_new(td_str key, const struct td_labels *given)
{
    size_t count = given->count;
    size_t bytes = sizeof(struct td_sight_alike) + (count + 1) * sizeof(struct td_sight_hook) +
                   count * sizeof(struct td_label) + key.len;
    for (size_t i = 0; i < count; i++) {
        bytes += given->items[i].key.len + given->items[i].value.len;
    }
    struct td_sight_alike *alike = td_alloc_zero(1, bytes);
    alike->hooks = (struct td_sight_hook *)(alike + 1);
    struct td_label *items = (struct td_label *)(alike->hooks + count + 1);
    char *at = (char *)(items + count);
    alike->key = labels_copy(&at, key);
    for (size_t i = 0; i < count; i++) {
        items[i].key = labels_copy(&at, given->items[i].key);
        items[i].value = labels_copy(&at, given->items[i].value);
    }
    alike->labels = (struct td_labels){.items = items, .count = count};
    return alike;
}

static struct td_sight_alike *labels_set_of(struct td_sight_labels *labels,
                                            const struct td_sight_pod *pod)
{
    td_auto_buf key;
    td_buf_init(&key, TD_CACHE_KEY_BYTES_MAX);
    struct td_sight_alike *alike = td_map_get(&labels->sets, labels_set_key(&key, pod));
    if (alike) {
        return alike;
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree = NULL;
    (void)td_sight_tree(&arena, &pod->object, &tree, NULL); /* our own text: it can be read */
    struct td_labels given = td_labels_from_json(&arena, td_json_get_path(tree, "metadata.labels"));
    alike = labels_set_new(td_buf_str(&key), &given);
    int code = td_map_put(&labels->sets, alike->key, alike);
    td_assert(code == TD_OK); /* no more sets than pods */
    for (size_t i = 0; i <= given.count; i++) {
        alike->hooks[i].alike = alike;
        labels_hook(labels, &alike->hooks[i], pod->object.head.namespace,
                    i < given.count ? &alike->labels.items[i] : NULL);
    }
    return alike;
}

void td_sight_labels_add(struct td_sight_labels *labels, struct td_sight_pod *pod)
{
    struct td_sight_alike *alike = labels_set_of(labels, pod);
    pod->alike = alike;
    pod->next_alike = NULL;
    pod->previous_alike = alike->last;
    *(alike->last ? &alike->last->next_alike : &alike->first) = pod;
    alike->last = pod;
}

void td_sight_labels_remove(struct td_sight_labels *labels, struct td_sight_pod *pod)
{
    struct td_sight_alike *alike = pod->alike;
    *(pod->previous_alike ? &pod->previous_alike->next_alike : &alike->first) = pod->next_alike;
    *(pod->next_alike ? &pod->next_alike->previous_alike : &alike->last) = pod->previous_alike;
    if (!alike->first) {
        (void)td_map_remove(&labels->sets, alike->key); /* it is there */
        for (size_t i = 0; i <= alike->labels.count; i++) {
            labels_unhook(&alike->hooks[i]);
        }
        td_free(alike);
    }
}

void td_sight_labels_change(struct td_sight_labels *labels, struct td_sight_pod *before,
                            struct td_sight_pod *after)
{
    if (before->labels_hash != after->labels_hash) {
        td_sight_labels_remove(labels, before);
        td_sight_labels_add(labels, after);
        return;
    }
    struct td_sight_alike *alike = before->alike;
    after->alike = alike;
    after->next_alike = before->next_alike;
    after->previous_alike = before->previous_alike;
    *(after->previous_alike ? &after->previous_alike->next_alike : &alike->first) = after;
    *(after->next_alike ? &after->next_alike->previous_alike : &alike->last) = after;
}

/* ---- Matching ---- */

/* Does the requirement name one label that a pod must have? */
static bool labels_is_equality(const struct td_requirement *requirement)
{
    return (requirement->operation == TD_SELECTOR_EQUALS ||
            requirement->operation == TD_SELECTOR_DOUBLE_EQUALS ||
            requirement->operation == TD_SELECTOR_IN) &&
           requirement->value_count == 1;
}

void td_sight_labels_match(const struct td_sight_labels *labels, td_str namespace,
                           const struct td_selector *selector, struct td_sight_match *ret)
{
    const struct labels_bucket *best = labels_find(labels, namespace, NULL);
    *ret = (struct td_sight_match){.selector = selector};
    for (size_t i = 0; best && !labels->is_cut && i < selector->count; i++) {
        const struct td_requirement *requirement = &selector->requirements[i];
        if (!labels_is_equality(requirement)) {
            continue;
        }
        const struct td_label label = {.key = requirement->key, .value = requirement->values[0]};
        const struct labels_bucket *bucket = labels_find(labels, namespace, &label);
        best = bucket && bucket->count >= best->count ? best : bucket;
    }
    ret->hook = best && !selector->matches_nothing ? best->first : NULL;
}

const struct td_sight_pod *td_sight_match_next(struct td_sight_match *match)
{
    const struct td_sight_pod *pod = match->pod ? match->pod->next_alike : NULL;
    while (!pod && match->hook) {
        const struct td_sight_alike *alike = match->hook->alike;
        match->hook = match->hook->next;
        pod = td_selector_matches(match->selector, &alike->labels) ? alike->first : NULL;
    }
    match->pod = pod;
    return pod;
}
