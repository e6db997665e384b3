/*
 * Entries are in one map by name. Each hangs in at most one bucket of selectors and one of targets
 * by an intrusive list, so that a change of either is a few pointers and an empty bucket goes at
 * once.
 */
#include "decide/horizontal/tracker.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "decide/horizontal/owners.h"
#include "kube/meta.h"
#include "kube/objectkey.h"

#define ENTRY_ARENA_BYTES_MAX ((size_t)16 << 20) /* one selector with its copy */
#define ENTRY_ARENA_SPARE ((size_t)16)           /* a text's NUL, rounded up */

/* HPAs that share an equality or a target. */
struct bucket {
    td_str key; /* owned */
    struct place *first;
};

/* The place of an HPA in a bucket. */
struct place {
    struct tracked *entry;
    struct bucket *bucket; /* NULL: in none, and the rest means nothing */
    struct place *next;
    struct place **link; /* what points at this one */
};

struct tracked {
    struct td_arena arena; /* of everything below */
    td_str key;            /* "namespace/name" */
    td_str text;           /* the selector as it was given; empty before the first */
    struct td_selector selector;
    struct place by_label;  /* in no bucket while it selects nothing */
    struct place by_target; /* in no bucket while the target is not known */
    bool is_owned_only;     /* counts only what the target owns */
};

void td_hpa_tracker_init(struct td_hpa_tracker *tracker)
{
    td_map_init(&tracker->entries, TD_HPA_TRACKED_MAX);
    td_map_init(&tracker->labels, TD_HPA_TRACKED_MAX);
    td_map_init(&tracker->targets, TD_HPA_TRACKED_MAX);
}

static void leave(struct td_map *buckets, struct place *place)
{
    struct bucket *bucket = place->bucket;
    if (!bucket) {
        return;
    }
    *place->link = place->next;
    if (place->next) {
        place->next->link = place->link;
    }
    place->bucket = NULL;
    if (!bucket->first) {
        (void)td_map_remove(buckets, bucket->key); /* it is there */
        td_text_free(bucket->key);
        td_free(bucket);
    }
}

static struct bucket *bucket_for(struct td_map *buckets, td_str key)
{
    struct bucket *bucket = td_map_get(buckets, key);
    if (bucket) {
        return bucket;
    }
    bucket = td_alloc_zero(1, sizeof(*bucket));
    bucket->key = td_text_copy(key);
    /* An HPA is in one bucket at most and there are no more buckets than HPAs, so it fits. */
    int code = td_map_put(buckets, bucket->key, bucket);
    td_assert(code == TD_OK);
    return bucket;
}

/* Moves the place from its bucket to that of `key`. */
static void move(struct td_map *buckets, struct place *place, td_str key)
{
    leave(buckets, place);
    struct bucket *bucket = bucket_for(buckets, key);
    place->bucket = bucket;
    place->next = bucket->first;
    place->link = &bucket->first;
    if (bucket->first) {
        bucket->first->link = &place->next;
    }
    bucket->first = place;
}

static void free_entry(struct td_hpa_tracker *tracker, struct tracked *entry)
{
    leave(&tracker->labels, &entry->by_label);
    leave(&tracker->targets, &entry->by_target);
    td_arena_done(&entry->arena);
    td_free(entry);
}

void td_hpa_tracker_done(struct td_hpa_tracker *tracker)
{
    size_t position = 0;
    const struct td_map_entry *each = NULL;
    while ((each = td_map_next(&tracker->entries, &position))) {
        free_entry(tracker, each->value);
    }
    td_map_done(&tracker->entries);
    td_map_done(&tracker->labels);
    td_map_done(&tracker->targets);
}

static struct tracked *find_entry(const struct td_hpa_tracker *tracker, td_str namespace,
                                  td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&tracker->entries,
                      td_object_key_write(TD_OBJECT_KEY(namespace, name), buffer));
}

int td_hpa_tracker_add(struct td_hpa_tracker *tracker, td_str namespace, td_str name)
{
    if (find_entry(tracker, namespace, name)) {
        return TD_OK;
    }
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    struct tracked *entry = td_alloc(sizeof(*entry));
    *entry = (struct tracked){
        .text = TD_STR_EMPTY, .by_label = {.entry = entry}, .by_target = {.entry = entry}};
    td_str key = td_object_key_write(TD_OBJECT_KEY(namespace, name), buffer);
    td_arena_init_exact(&entry->arena, key.len + ENTRY_ARENA_SPARE, ENTRY_ARENA_BYTES_MAX);
    entry->key = td_arena_copy_str(&entry->arena, key);
    int code = td_map_put(&tracker->entries, entry->key, entry);
    if (code < 0) {
        free_entry(tracker, entry);
    }
    return code;
}

void td_hpa_tracker_remove(struct td_hpa_tracker *tracker, td_str namespace, td_str name)
{
    struct tracked *entry = find_entry(tracker, namespace, name);
    if (entry) {
        (void)td_map_remove(&tracker->entries, entry->key); /* it is there */
        free_entry(tracker, entry);
    }
}

/* The first requirement that one label can meet alone, or NULL. */
static const struct td_requirement *equality_of(const struct td_selector *selector)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct td_requirement *each = &selector->requirements[i];
        bool is_equality = each->operation == TD_SELECTOR_EQUALS ||
                           each->operation == TD_SELECTOR_DOUBLE_EQUALS ||
                           each->operation == TD_SELECTOR_IN;
        if (is_equality && each->value_count == 1) {
            return each;
        }
    }
    return NULL;
}

int td_hpa_tracker_put(struct td_hpa_tracker *tracker, td_str namespace, td_str name,
                       td_str selector, struct td_error *err)
{
    struct tracked *entry = find_entry(tracker, namespace, name);
    if (!entry || (entry->by_label.bucket && td_str_equal(entry->text, selector))) {
        return TD_OK;
    }
    td_auto_arena parsing = td_arena_capped(ENTRY_ARENA_BYTES_MAX);
    struct td_selector parsed;
    int code = td_selector_parse(&parsing, selector, &parsed, err);
    if (code < 0) {
        return code;
    }
    /* What stays is in a piece of memory of just its size: there are many HPAs. */
    size_t used = parsing.used_bytes;
    (void)td_selector_copy(&parsing, &parsed); /* to know the size */
    struct td_arena arena;
    td_arena_init_exact(
        &arena, parsing.used_bytes - used + selector.len + entry->key.len + 2 * ENTRY_ARENA_SPARE,
        ENTRY_ARENA_BYTES_MAX);
    parsed = td_selector_copy(&arena, &parsed);
    td_str text = td_arena_copy_str(&arena, selector);
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    const struct td_requirement *equality = equality_of(&parsed);
    td_str key = equality ? TD_KEY_LINES(buffer, namespace, equality->key, equality->values[0])
                          : namespace; /* the bucket of selectors that have no equality */
    move(&tracker->labels, &entry->by_label, key);
    /* The key of the map lies in the old arena: it moves to the new one together with the rest. */
    td_str own_key = td_arena_copy_str(&arena, entry->key);
    (void)td_map_put(&tracker->entries, own_key, entry); /* replaces, so it fits */
    td_arena_done(&entry->arena);
    entry->arena = arena;
    entry->key = own_key;
    entry->text = text;
    entry->selector = parsed;
    return TD_OK;
}

static td_str target_key(char buffer[TD_OBJECT_KEY_BYTES_MAX], td_str namespace,
                         const struct td_object_reference *target)
{
    return TD_KEY_LINES(buffer, namespace, td_group_version_parse(target->api_version).group,
                        target->kind, target->name);
}

void td_hpa_tracker_put_target(struct td_hpa_tracker *tracker, td_str namespace, td_str name,
                               const struct td_object_reference *target)
{
    struct tracked *entry = find_entry(tracker, namespace, name);
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = target_key(buffer, namespace, target);
    if (entry && !(entry->by_target.bucket && td_str_equal(entry->by_target.bucket->key, key))) {
        move(&tracker->targets, &entry->by_target, key);
    }
}

static size_t add_name(td_str *names, size_t count, td_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (td_str_equal(names[i], name)) {
            return count;
        }
    }
    names[count] = name;
    return count + 1;
}

void td_hpa_tracker_put_owned_only(struct td_hpa_tracker *tracker, td_str namespace, td_str name,
                                   bool is_owned_only)
{
    struct tracked *entry = find_entry(tracker, namespace, name);
    if (entry) {
        entry->is_owned_only = is_owned_only;
    }
}

/* What target_key put together. */
static struct td_owner_target target_of(const struct tracked *entry)
{
    td_str parts[4];
    td_str rest = entry->by_target.bucket->key;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t end = td_str_find(rest, '\n', 0);
        parts[i] = td_str_slice(rest, 0, end);
        rest = td_str_slice(rest, end + 1, rest.len);
    }
    return (struct td_owner_target){.namespace = parts[0],
                                    .group = parts[1],
                                    .kind = parts[2],
                                    .name = parts[3],
                                    .uid = TD_STR_EMPTY};
}

/* What a lookup asks with. */
struct question {
    const struct td_hpa_tracker *tracker;
    const struct td_workload_source *source; /* NULL: labels alone */
    const struct td_pod *pod;
};

static bool counts(const struct question *question, const struct tracked *entry)
{
    if (!td_selector_matches(&entry->selector, &question->pod->meta.labels)) {
        return false;
    }
    if (!question->source || !entry->is_owned_only || !entry->by_target.bucket) {
        return true;
    }
    const struct td_owner_target target = target_of(entry);
    return td_owner_may_own(question->source, &target, question->pod);
}

static size_t collect(const struct question *question, td_str key, td_str *names, size_t count)
{
    const struct bucket *bucket = td_map_get(&question->tracker->labels, key);
    const struct place *place = bucket ? bucket->first : NULL;
    for (; place && count < TD_HPA_AMBIGUOUS_MAX; place = place->next) {
        if (counts(question, place->entry)) {
            count = add_name(names, count, place->entry->key);
        }
    }
    return count;
}

/* Pods of one template follow each other with the same labels and the same only owner. */
static bool is_like(const struct question *question, const struct td_meta *before)
{
    const struct td_meta *pod = &question->pod->meta;
    bool has_same_owner =
        !question->source ||
        (pod->owner_count == before->owner_count && pod->owner_count <= 1 &&
         (pod->owner_count == 0 || td_owner_is_same(&pod->owners[0], &before->owners[0])));
    return has_same_owner && td_labels_equal(&pod->labels, &before->labels);
}

size_t td_hpa_tracker_find(const struct td_hpa_tracker *tracker,
                           const struct td_workload_source *source, td_str namespace,
                           const struct td_pod *const *pods, size_t pod_count,
                           td_str ret[TD_HPA_AMBIGUOUS_MAX])
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < pod_count && count < TD_HPA_AMBIGUOUS_MAX; i++) {
        const struct question question = {.tracker = tracker, .source = source, .pod = pods[i]};
        const struct td_labels *labels = &pods[i]->meta.labels;
        if (i > 0 && is_like(&question, &pods[i - 1]->meta)) {
            continue;
        }
        count = collect(&question, namespace, ret, count);
        for (size_t l = 0; l < labels->count && count < TD_HPA_AMBIGUOUS_MAX; l++) {
            td_str key =
                TD_KEY_LINES(buffer, namespace, labels->items[l].key, labels->items[l].value);
            count = collect(&question, key, ret, count);
        }
    }
    qsort(ret, count, sizeof(ret[0]), td_str_compare_items);
    return count;
}

size_t td_hpa_tracker_find_target(const struct td_hpa_tracker *tracker, td_str namespace,
                                  const struct td_object_reference *target,
                                  td_str ret[TD_HPA_AMBIGUOUS_MAX])
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    const struct bucket *bucket =
        td_map_get(&tracker->targets, target_key(buffer, namespace, target));
    const struct place *place = bucket ? bucket->first : NULL;
    size_t count = 0;
    for (; place && count < TD_HPA_AMBIGUOUS_MAX; place = place->next) {
        ret[count++] = place->entry->key;
    }
    qsort(ret, count, sizeof(ret[0]), td_str_compare_items);
    return count;
}
