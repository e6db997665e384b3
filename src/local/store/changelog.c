#include "local/store/changelog.h"

#include "base/alloc.h"
#include "base/assert.h"

#define RING_CAP_FIRST ((size_t)16)

static size_t changelog_weight(const struct td_change *change)
{
    size_t before = change->before ? change->before->bytes : 0;
    size_t after = change->type == TD_CHANGE_DELETED ? change->after->bytes : 0;
    return sizeof(*change) + before + after;
}

static struct td_change *changelog_slot(const struct td_changelog *log, uint64_t position)
{
    return &log->items[position & (log->cap - 1)];
}

void td_changelog_done(struct td_changelog *log)
{
    while (log->first < log->end) {
        td_changelog_drop_first(log);
    }
    td_free(log->items);
    *log = (struct td_changelog){0};
}

static void changelog_grow(struct td_changelog *log)
{
    struct td_changelog wider = *log;
    wider.cap = log->cap > 0 ? log->cap * 2 : RING_CAP_FIRST;
    wider.items = td_alloc(wider.cap * sizeof(*wider.items));
    for (uint64_t position = log->first; position < log->end; position++) {
        *changelog_slot(&wider, position) = *changelog_slot(log, position);
    }
    td_free(log->items);
    *log = wider;
}

void td_changelog_append(struct td_changelog *log, const struct td_change *change)
{
    td_assert(change->after);
    if (log->end - log->first == log->cap) {
        changelog_grow(log);
    }
    *changelog_slot(log, log->end) = *change;
    (void)td_stored_ref(change->after); /* the log's own */
    if (change->before) {
        (void)td_stored_ref(change->before);
    }
    log->end++;
    log->bytes += changelog_weight(change);
}

const struct td_change *td_changelog_at(const struct td_changelog *log, uint64_t position)
{
    td_assert(position >= log->first);
    td_assert(position < log->end);
    return changelog_slot(log, position);
}

uint64_t td_changelog_after(const struct td_changelog *log, uint64_t version)
{
    uint64_t low = log->first;
    uint64_t high = log->end;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (changelog_slot(log, middle)->version <= version) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void changelog_release(struct td_changelog *log, const struct td_change *change)
{
    log->bytes -= changelog_weight(change);
    td_stored_unref(change->before);
    td_stored_unref(change->after);
}

void td_changelog_drop_first(struct td_changelog *log)
{
    td_assert(log->first < log->end);
    changelog_release(log, changelog_slot(log, log->first));
    log->first++;
}

void td_changelog_drop_last(struct td_changelog *log)
{
    td_assert(log->first < log->end);
    log->end--;
    changelog_release(log, changelog_slot(log, log->end));
}
