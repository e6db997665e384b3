/*
 * Cursors over the change logs. Waking is not per change: a commit only asks for the next turn of
 * the loop, and there each collection with news calls its cursors once, in the order in which they
 * were opened. A slice that ends in between goes on in the turn after, from the remembered cursor;
 * closing that cursor moves the mark to the next one.
 */
#include "base/assert.h"
#include "base/error.h"
#include "base/loop.h"
#include "local/store_private.h"

int td_watch_open(struct td_watch_cursor *cursor, struct td_collection *collection,
                  uint64_t version, td_watch_fn fn, void *context, struct td_error *err)
{
    if (version < collection->floor) {
        return td_error_set(err, TD_GONE, "version %llu has expired, the oldest is %llu",
                            (unsigned long long)version, (unsigned long long)collection->floor);
    }
    struct td_watch_cursor *head = &collection->cursors;
    *cursor = (struct td_watch_cursor){
        .collection = collection,
        .position = td_changelog_after(&collection->log, version),
        .after = version,
        .order = collection->store->cursor_order++,
        .fn = fn,
        .context = context,
        .previous = head->previous,
        .next = head,
    };
    head->previous->next = cursor;
    head->previous = cursor;
    return TD_OK;
}

int td_watch_next(struct td_watch_cursor *cursor, const struct td_change **ret,
                  struct td_error *err)
{
    const struct td_collection *collection = cursor->collection;
    td_assert(collection);
    if (cursor->position < collection->log.first) {
        return td_error_set(err, TD_GONE,
                            "the watch is behind: changes up to version %llu are gone",
                            (unsigned long long)collection->floor);
    }
    const struct td_change *found = NULL;
    while (!found && cursor->position < collection->published) {
        const struct td_change *change = td_changelog_at(&collection->log, cursor->position);
        cursor->position++;
        /* Not so for a cursor that was opened at a version still to come. */
        found = change->version > cursor->after ? change : NULL;
    }
    *ret = found;
    return TD_OK;
}

void td_watch_close(struct td_watch_cursor *cursor)
{
    if (!cursor->collection) {
        return;
    }
    struct td_store *store = cursor->collection->store;
    if (store->wake_next == cursor) {
        store->wake_next = cursor->next;
    }
    cursor->previous->next = cursor->next;
    cursor->next->previous = cursor->previous;
    *cursor = (struct td_watch_cursor){0};
}

/* False when the slice is over and cursors are left. */
static bool watch_wake_collection(struct td_store *store, struct td_collection *collection)
{
    if (!store->wake_next) {
        if (collection->announced == collection->published) {
            return true;
        }
        collection->announced = collection->published;
        store->wake_next = collection->cursors.next;
        store->wake_order_end = store->cursor_order;
    }
    const struct td_watch_cursor *head = &collection->cursors;
    bool is_over = false;
    while (store->wake_next != head && store->wake_next->order < store->wake_order_end) {
        if (is_over) {
            return false;
        }
        const struct td_watch_cursor *cursor = store->wake_next;
        store->wake_next = cursor->next;
        if (cursor->fn) {
            cursor->fn(cursor->context);
        }
        is_over = td_loop_slice_is_over(store->loop);
    }
    store->wake_next = NULL;
    return true;
}

bool td_watch_wake(struct td_store *store)
{
    bool is_resumed = store->wake_index > 0 || store->wake_next;
    for (; store->wake_index < store->collection_count; store->wake_index++) {
        if (!watch_wake_collection(store, store->collections[store->wake_index])) {
            return false;
        }
    }
    store->wake_index = 0;
    return !is_resumed; /* what was passed before may have news again */
}
