/*
 * Cursors over the change logs. Waking is not per change: a commit only asks for the next turn of
 * the loop, and there each collection with news calls its cursors once, in the order in which they
 * were opened. A slice that ends in between goes on in the turn after, from the remembered cursor;
 * closing that cursor moves the mark to the next one.
 *
 * Serving a cursor costs more than the change it is told of: a record of TLS, system calls. So
 * under a stream of changes the cursors rest after each round, the longer the more of them there
 * are, and the next round brings each of them all that has come up meanwhile. A change after
 * quiet is told at once. A virtual clock knows no rest: there nothing costs anything.
 */
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "local/store/store_private.h"

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
            store->wake_count++;
            cursor->fn(cursor->context);
        }
        is_over = td_loop_slice_is_over(store->loop);
    }
    store->wake_next = NULL;
    return true;
}

/* True while the cursors rest; then the timer ends it. */
static bool watch_is_resting(struct td_store *store, td_duration now)
{
    if (now >= store->wake_at) {
        return false;
    }
    if (!td_timer_is_set(store->wake)) {
        td_timer_set(store->wake, store->wake_at - now);
    }
    return true;
}

static void watch_rest(struct td_store *store, td_duration now)
{
    size_t count =
        store->wake_count < TD_WATCH_REST_CURSORS ? store->wake_count : TD_WATCH_REST_CURSORS;
    td_duration rest = (td_duration)count * TD_WATCH_REST_US * TD_MICROSECOND;
    store->wake_at = now + td_clock_from_machine(td_loop_clock(store->loop), rest);
    store->wake_count = 0;
}

bool td_watch_wake(struct td_store *store)
{
    const struct td_clock *clock = td_loop_clock(store->loop);
    bool is_resumed = store->wake_index > 0 || store->wake_next;
    if (!is_resumed && watch_is_resting(store, td_clock_steady(clock))) {
        return true; /* for now */
    }
    for (; store->wake_index < store->collection_count; store->wake_index++) {
        if (!watch_wake_collection(store, store->collections[store->wake_index])) {
            return false;
        }
    }
    store->wake_index = 0;
    if (clock->kind != TD_CLOCK_VIRTUAL) {
        watch_rest(store, td_clock_steady(clock));
    }
    return !is_resumed; /* what was passed before may have news again */
}
