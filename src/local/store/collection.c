/*
 * Reading a collection. A page of a past version is made from what is there now and the changes
 * since: for each object that changed, the first change after that version says what it was
 * before. These earlier states, sorted like the collection, are merged with it: where both have an
 * object the earlier state counts, and an earlier state of "was not there" takes the object out.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "local/store/store_private.h"

uint64_t td_collection_version(const struct td_collection *collection)
{
    return collection->version;
}

struct td_stored *td_collection_get(const struct td_collection *collection, td_str ns, td_str name)
{
    struct td_ordered_place place;
    return td_ordered_find(&collection->objects, ns, name, &place);
}

struct td_stored *td_store_get(const struct td_store *store, td_str key, td_str ns, td_str name)
{
    const struct td_collection *collection = td_store_find(store, key);
    return collection ? td_collection_get(collection, ns, name) : NULL;
}

static struct td_ordered_place collection_begin(const struct td_collection *collection, td_str ns)
{
    const struct td_ordered_key key = {.ns = ns, .name = TD_STR_EMPTY, .side = TD_ORDERED_AT};
    return td_ordered_seek(&collection->objects, &key);
}

static struct td_ordered_place collection_end(const struct td_collection *collection, td_str ns)
{
    if (ns.len == 0) {
        return (struct td_ordered_place){.chunk = collection->objects.chunk_count};
    }
    const struct td_ordered_key key = {.ns = ns, .side = TD_ORDERED_BEHIND_NAMESPACE};
    return td_ordered_seek(&collection->objects, &key);
}

size_t td_collection_count(const struct td_collection *collection, td_str ns)
{
    if (ns.len == 0) {
        return collection->objects.count;
    }
    return td_ordered_rank(&collection->objects, collection_end(collection, ns)) -
           td_ordered_rank(&collection->objects, collection_begin(collection, ns));
}

struct td_collection_iter td_collection_walk(const struct td_collection *collection, td_str ns)
{
    if (!collection) {
        return (struct td_collection_iter){.collection = NULL};
    }
    struct td_ordered_place begin = collection_begin(collection, ns);
    return (struct td_collection_iter){
        .collection = collection,
        .ns = ns,
        .changes = collection->objects.changes,
        .chunk = begin.chunk,
        .place = begin.index,
    };
}

/* Where to go on: the place of before, or a new one when objects were added or removed since. */
static struct td_ordered_place iter_place(const struct td_collection_iter *iter)
{
    const struct td_ordered *objects = &iter->collection->objects;
    if (iter->changes == objects->changes) {
        return (struct td_ordered_place){.chunk = iter->chunk, .index = iter->place};
    }
    if (!iter->last) {
        return collection_begin(iter->collection, iter->ns);
    }
    const struct td_ordered_key key = {
        .ns = iter->last->ns,
        .name = iter->last->name,
        .side = TD_ORDERED_BEHIND,
    };
    return td_ordered_seek(objects, &key);
}

struct td_stored *td_collection_iter_next(struct td_collection_iter *iter)
{
    if (!iter->collection) {
        return NULL;
    }
    const struct td_ordered *objects = &iter->collection->objects;
    struct td_ordered_place place = iter_place(iter);
    struct td_stored *item = td_ordered_get(objects, place);
    if (!item || (iter->ns.len > 0 && !td_str_equal(item->ns, iter->ns))) {
        td_collection_iter_done(iter);
        return NULL;
    }
    place = td_ordered_next(objects, place);
    td_stored_unref(iter->last);
    iter->last = td_stored_ref(item);
    iter->changes = objects->changes;
    iter->chunk = place.chunk;
    iter->place = place.index;
    return item;
}

void td_collection_iter_done(struct td_collection_iter *iter)
{
    td_stored_unref(iter->last);
    *iter = (struct td_collection_iter){0};
}

/* An object that changed since the version of the page. */
struct page_change {
    const struct td_stored *key; /* any revision of it */
    struct td_stored *then;      /* NULL: was not there */
    uint64_t position;
    bool is_now; /* is it there now? */
};

struct page_work {
    const struct td_collection *collection;
    const struct td_page_query *query;
    struct td_ordered_place begin; /* objects of now: the next one */
    struct td_ordered_place end;
    struct page_change *changes; /* owned */
    size_t change_count;
    size_t change_at; /* the next one */
};

static int page_compare_keys(const struct td_stored *a, const struct td_stored *b)
{
    int by_ns = td_str_compare(a->ns, b->ns);
    return by_ns != 0 ? by_ns : td_str_compare(a->name, b->name);
}

static int page_compare(const void *left, const void *right)
{
    const struct page_change *a = left;
    const struct page_change *b = right;
    int by_key = page_compare_keys(a->key, b->key);
    return by_key != 0 ? by_key : a->position < b->position ? -1 : a->position > b->position;
}

static bool page_has_key(const struct td_page_query *query, const struct td_stored *key)
{
    if (query->ns.len > 0 && !td_str_equal(key->ns, query->ns)) {
        return false;
    }
    if (query->after_name.len == 0) {
        return true;
    }
    int by_ns = td_str_compare(key->ns, query->after_ns);
    return by_ns != 0 ? by_ns > 0 : td_str_compare(key->name, query->after_name) > 0;
}

/* The changes of the query's range, one an object: its first tells what was then, its last what is
 * now. */
static void page_collect_changes(struct page_work *work)
{
    const struct td_changelog *log = &work->collection->log;
    uint64_t position = td_changelog_after(log, work->query->version);
    if (position == log->end) {
        return;
    }
    struct page_change *changes = td_alloc((log->end - position) * sizeof(*changes));
    size_t count = 0;
    for (; position < log->end; position++) {
        const struct td_change *change = td_changelog_at(log, position);
        if (page_has_key(work->query, change->after)) {
            changes[count++] = (struct page_change){
                .key = change->after,
                .then = change->before,
                .position = position,
                .is_now = change->type != TD_CHANGE_DELETED,
            };
        }
    }
    qsort(changes, count, sizeof(*changes), page_compare);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && page_compare_keys(changes[kept - 1].key, changes[i].key) == 0) {
            changes[kept - 1].is_now = changes[i].is_now;
        } else {
            changes[kept++] = changes[i];
        }
    }
    work->changes = changes;
    work->change_count = kept;
}

static bool page_places_equal(struct td_ordered_place a, struct td_ordered_place b)
{
    return a.chunk == b.chunk && a.index == b.index;
}

/* One step of the merge: *ret is the object at this point of the order as it was then, or NULL when
 * it was not there. False at the end of both. */
static bool page_step(struct page_work *work, struct td_stored **ret)
{
    const struct td_ordered *objects = &work->collection->objects;
    bool has_now = !page_places_equal(work->begin, work->end);
    bool has_change = work->change_at < work->change_count;
    if (!has_now && !has_change) {
        return false;
    }
    struct td_stored *now = has_now ? td_ordered_get(objects, work->begin) : NULL;
    const struct page_change *change = has_change ? &work->changes[work->change_at] : NULL;
    int order = !has_now ? 1 : !has_change ? -1 : page_compare_keys(now, change->key);
    if (order <= 0) {
        work->begin = td_ordered_next(objects, work->begin);
    }
    if (order >= 0) {
        work->change_at++;
    }
    *ret = order < 0 ? now : change->then;
    return true;
}

/* Objects behind the page: those of now, corrected by the changes that are left. */
static size_t page_remaining(const struct page_work *work)
{
    const struct td_ordered *objects = &work->collection->objects;
    size_t count = td_ordered_rank(objects, work->end) - td_ordered_rank(objects, work->begin);
    for (size_t i = work->change_at; i < work->change_count; i++) {
        count += work->changes[i].then ? 1 : 0;
        count -= work->changes[i].is_now ? 1 : 0;
    }
    return count;
}

static void page_fill(struct page_work *work, struct td_page *page)
{
    size_t total = page_remaining(work);
    size_t max = work->query->max > 0 && work->query->max < total ? work->query->max : total;
    page->items = td_alloc(max * sizeof(struct td_stored *) + 1);
    struct td_stored *item;
    while (page->count < max && page_step(work, &item)) {
        if (item) {
            page->items[page->count++] = td_stored_ref(item);
        }
    }
    td_assert(page->count == max);
    page->remaining = total - max;
}

int td_collection_snapshot_at(const struct td_collection *collection,
                              const struct td_page_query *query, struct td_page *ret,
                              struct td_error *err)
{
    uint64_t newest = collection->store->version;
    struct td_page_query at = *query;
    at.version = query->version > 0 ? query->version : newest;
    if (at.version > newest) {
        return td_error_set(err, TD_INVALID, "version %llu is still to come, the newest is %llu",
                            (unsigned long long)at.version, (unsigned long long)newest);
    }
    if (at.version < collection->floor) {
        return td_error_set(err, TD_GONE, "version %llu has expired, the oldest is %llu",
                            (unsigned long long)at.version, (unsigned long long)collection->floor);
    }
    const struct td_ordered_key after = {
        .ns = at.after_ns,
        .name = at.after_name,
        .side = TD_ORDERED_BEHIND,
    };
    struct page_work work = {
        .collection = collection,
        .query = &at,
        .begin = collection_begin(collection, at.ns),
        .end = collection_end(collection, at.ns),
    };
    bool is_inside = at.ns.len == 0 || td_str_equal(at.ns, at.after_ns);
    if (at.after_name.len > 0 && is_inside) {
        work.begin = td_ordered_seek(&collection->objects, &after);
    } else if (at.after_name.len > 0 && td_str_compare(at.after_ns, at.ns) > 0) {
        work.begin = work.end;
    }
    page_collect_changes(&work);
    struct td_page page = {.version = at.version};
    page_fill(&work, &page);
    td_free(work.changes);
    *ret = page;
    return TD_OK;
}

void td_page_done(struct td_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        td_stored_unref(page->items[i]);
    }
    td_free(page->items);
    *page = (struct td_page){0};
}
