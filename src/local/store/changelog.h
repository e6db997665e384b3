/*
 * The changes of one collection in order of their versions: a ring whose positions count from 0 and
 * never repeat, so that a cursor is one number. Each change holds references to the revisions
 * before and after it. `bytes` is what only the log keeps alive: replaced revisions, last states of
 * deleted objects, and the ring's own entries. Who appends also trims. One owner, no locking.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "local/store/store.h"

struct td_changelog {
    struct td_change *items; /* position modulo cap; owned */
    size_t cap;              /* power of two, or 0 */
    uint64_t first;          /* position of the oldest change */
    uint64_t end;            /* position of the next one */
    size_t bytes;
};

void td_changelog_done(struct td_changelog *log);

/* Adds a reference to both revisions. */
void td_changelog_append(struct td_changelog *log, const struct td_change *change);

/* The change at a position in [first, end). */
const struct td_change *td_changelog_at(const struct td_changelog *log, uint64_t position);

/* Position of the first change whose version is greater; `end` when there is none. */
uint64_t td_changelog_after(const struct td_changelog *log, uint64_t version);

/* Drop the oldest, or the newest, change; there must be one. */
void td_changelog_drop_first(struct td_changelog *log);
void td_changelog_drop_last(struct td_changelog *log);
