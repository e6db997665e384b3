/*
 * Three maps: sets of pods by namespace and labels, the sets of a namespace, and the sets that
 * have a label. A change of labels moves a pod between sets; a set without pods is freed with its
 * links.
 */
#include "control/informers/pod_index.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "kube/objectkey.h"
#include "kube/selector/labels.h"
#include "kube/selector/selector.h"

/* Sets of one namespace that have one label, or all of them. */
struct labels_bucket {
    struct td_map *map; /* that it is in */
    td_str key;         /* owned */
    struct td_pod_index_link *first;
    size_t count;
};

/* The place of a set in a bucket. */
struct td_pod_index_link {
    struct td_pod_set *alike;
    struct labels_bucket *bucket;
    struct td_pod_index_link *next;
    struct td_pod_index_link *previous;
};

/* Pods of one namespace with the same labels. One allocation: links, labels and texts follow. */
struct td_pod_set {
    td_str key; /* of the map */
    struct td_informer_pod *first;
    struct td_informer_pod *last;
    struct td_labels labels;
    struct td_pod_index_link *links; /* one a label, and one of the namespace */
};

void td_pod_index_init(struct td_pod_index *labels)
{
    td_map_init(&labels->sets, TD_CACHE_OBJECTS_MAX);
    td_map_init(&labels->spaces, TD_CACHE_OBJECTS_MAX);
    td_map_init(&labels->buckets, TD_INFORMER_BUCKETS_MAX);
}

static void labels_free_buckets(struct td_map *map)
{
    for (struct td_map_walk at = {.map = map}; td_map_step(&at);) {
        struct labels_bucket *bucket = at.value;
        td_text_free(bucket->key);
        td_free(bucket);
    }
    td_map_done(map);
}

void td_pod_index_done(struct td_pod_index *labels)
{
    for (struct td_map_walk at = {.map = &labels->sets}; td_map_step(&at);) {
        td_free(at.value);
    }
    td_map_done(&labels->sets);
    labels_free_buckets(&labels->spaces);
    labels_free_buckets(&labels->buckets);
}

/* ---- Buckets ---- */

static td_str labels_key(char buffer[TD_OBJECT_KEY_BYTES_MAX], td_str namespace,
                         const struct td_label *label)
{
    return label ? TD_KEY_LINES(buffer, namespace, label->key, label->value) : namespace;
}

/* `label` NULL: all sets of the namespace. */
static const struct labels_bucket *labels_find(const struct td_pod_index *labels, td_str namespace,
                                               const struct td_label *label)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(label ? &labels->buckets : &labels->spaces,
                      labels_key(buffer, namespace, label));
}

static struct labels_bucket *labels_bucket_of(struct td_pod_index *labels, td_str namespace,
                                              const struct td_label *label)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = labels_key(buffer, namespace, label);
    struct td_map *map = label ? &labels->buckets : &labels->spaces;
    struct labels_bucket *bucket = td_map_get(map, key);
    if (!bucket) {
        bucket = td_alloc_zero(1, sizeof(*bucket));
        bucket->map = map;
        bucket->key = td_text_copy(key);
        if (td_map_put(map, bucket->key, bucket) != TD_OK) {
            td_text_free(bucket->key);
            td_free(bucket);
            return NULL;
        }
    }
    return bucket;
}

static void labels_link(struct td_pod_index *labels, struct td_pod_index_link *link,
                        td_str namespace, const struct td_label *label)
{
    struct labels_bucket *bucket = labels_bucket_of(labels, namespace, label);
    link->bucket = bucket;
    if (!bucket) {
        td_assert(label); /* there are no more namespaces than pods */
        labels->is_cut = true;
        return;
    }
    link->previous = NULL;
    link->next = bucket->first;
    if (bucket->first) {
        bucket->first->previous = link;
    }
    bucket->first = link;
    bucket->count++;
}

static void labels_unlink(struct td_pod_index_link *link)
{
    struct labels_bucket *bucket = link->bucket;
    if (!bucket) {
        return;
    }
    *(link->previous ? &link->previous->next : &bucket->first) = link->next;
    if (link->next) {
        link->next->previous = link->previous;
    }
    if (--bucket->count == 0) {
        (void)td_map_remove(bucket->map, bucket->key); /* it is there */
        td_text_free(bucket->key);
        td_free(bucket);
    }
}

/* ---- Sets ---- */

static td_str labels_set_key(struct td_buf *out, const struct td_informer_pod *pod)
{
    (void)td_buf_append(out, pod->object.head.namespace);
    (void)td_buf_append(out, (td_str){.ptr = (const char *)&pod->object.labels_hash,
                                      .len = sizeof(pod->object.labels_hash)});
    return td_buf_str(out);
}

static struct td_pod_set *labels_set_new(td_str key, const struct td_labels *given)
{
    size_t count = given->count;
    size_t bytes = sizeof(struct td_pod_set) + (count + 1) * sizeof(struct td_pod_index_link) +
                   count * sizeof(struct td_label) + key.len;
    for (size_t i = 0; i < count; i++) {
        bytes += given->items[i].key.len + given->items[i].value.len;
    }
    struct td_pod_set *alike = td_alloc_zero(1, bytes);
    alike->links = (struct td_pod_index_link *)(alike + 1);
    struct td_label *items = (struct td_label *)(alike->links + count + 1);
    char *at = (char *)(items + count);
    alike->key = td_text_place(&at, key);
    for (size_t i = 0; i < count; i++) {
        items[i].key = td_text_place(&at, given->items[i].key);
        items[i].value = td_text_place(&at, given->items[i].value);
    }
    alike->labels = (struct td_labels){.items = items, .count = count};
    return alike;
}

static struct td_pod_set *labels_set_of(struct td_pod_index *labels,
                                        const struct td_informer_pod *pod)
{
    td_auto_buf key = td_buf_capped(TD_OBJECT_KEY_BYTES_MAX);
    struct td_pod_set *alike = td_map_get(&labels->sets, labels_set_key(&key, pod));
    if (alike) {
        return alike;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree = NULL;
    (void)td_informers_tree(&arena, &pod->object, &tree, NULL); /* our own text: it can be read */
    struct td_labels given = td_labels_from_json(&arena, td_json_get_path(tree, "metadata.labels"));
    alike = labels_set_new(td_buf_str(&key), &given);
    int code = td_map_put(&labels->sets, alike->key, alike);
    td_assert(code == TD_OK); /* no more sets than pods */
    for (size_t i = 0; i <= given.count; i++) {
        alike->links[i].alike = alike;
        labels_link(labels, &alike->links[i], pod->object.head.namespace,
                    i < given.count ? &alike->labels.items[i] : NULL);
    }
    return alike;
}

void td_pod_index_add(struct td_pod_index *labels, struct td_informer_pod *pod)
{
    struct td_pod_set *alike = labels_set_of(labels, pod);
    pod->alike = alike;
    pod->next_alike = NULL;
    pod->previous_alike = alike->last;
    *(alike->last ? &alike->last->next_alike : &alike->first) = pod;
    alike->last = pod;
}

void td_pod_index_remove(struct td_pod_index *labels, struct td_informer_pod *pod)
{
    struct td_pod_set *alike = pod->alike;
    *(pod->previous_alike ? &pod->previous_alike->next_alike : &alike->first) = pod->next_alike;
    *(pod->next_alike ? &pod->next_alike->previous_alike : &alike->last) = pod->previous_alike;
    if (!alike->first) {
        (void)td_map_remove(&labels->sets, alike->key); /* it is there */
        for (size_t i = 0; i <= alike->labels.count; i++) {
            labels_unlink(&alike->links[i]);
        }
        td_free(alike);
    }
}

void td_pod_index_change(struct td_pod_index *labels, struct td_informer_pod *before,
                         struct td_informer_pod *after)
{
    if (before->object.labels_hash != after->object.labels_hash) {
        td_pod_index_remove(labels, before);
        td_pod_index_add(labels, after);
        return;
    }
    struct td_pod_set *alike = before->alike;
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

void td_pod_index_match(const struct td_pod_index *labels, td_str namespace,
                        const struct td_selector *selector, struct td_pod_match *ret)
{
    const struct labels_bucket *best = labels_find(labels, namespace, NULL);
    *ret = (struct td_pod_match){.selector = selector};
    for (size_t i = 0; best && !labels->is_cut && i < selector->count; i++) {
        const struct td_requirement *requirement = &selector->requirements[i];
        if (!labels_is_equality(requirement)) {
            continue;
        }
        const struct td_label label = {.key = requirement->key, .value = requirement->values[0]};
        const struct labels_bucket *bucket = labels_find(labels, namespace, &label);
        best = bucket && bucket->count >= best->count ? best : bucket;
    }
    ret->link = best && !selector->matches_nothing ? best->first : NULL;
}

const struct td_informer_pod *td_pod_match_next(struct td_pod_match *match)
{
    const struct td_informer_pod *pod = match->pod ? match->pod->next_alike : NULL;
    while (!pod && match->link) {
        const struct td_pod_set *alike = match->link->alike;
        match->link = match->link->next;
        pod = td_selector_matches(match->selector, &alike->labels) ? alike->first : NULL;
    }
    match->pod = pod;
    return pod;
}
