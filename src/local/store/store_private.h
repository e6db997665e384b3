/*
 * Shared by the files of the store (store.c, store_durable.c, collection.c, watch.c) only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "local/store/changelog.h"
#include "local/store/ordered.h"
#include "local/store/store.h"

struct td_journal;
struct td_queue;
struct td_timer;

struct td_collection {
    struct td_store *store;
    td_str key;                /* lies behind the structure */
    struct td_ordered objects; /* newest revisions; holds a reference to each */
    struct td_changelog log;
    uint64_t floor;     /* changes up to this version may be missing in the log */
    uint64_t version;   /* of the last change */
    uint64_t published; /* position behind the last change that is on disk */
    uint64_t announced; /* position behind the last change that cursors were woken for */
    struct td_watch_cursor cursors; /* head of the ring of open ones, in order */
};

struct td_store {
    struct td_journal *journal;              /* owned; NULL in memory */
    struct td_queue *snapshots;              /* owned; the job that writes one; NULL in memory */
    struct td_collection_iter snapshot_iter; /* the next object of it */
    size_t snapshot_index;                   /* the collection it is in */
    uint64_t load_end;     /* while loading: the version up to which changes are put over objects */
    struct td_log *logger; /* borrowed; NULL drops */
    bool is_failed;        /* the journal is; said, and what was not on disk taken back */
    td_duration heal_at;   /* steady time; before it the journal is not tried again */
    struct td_loop *loop;  /* borrowed */
    struct td_timer *flush;             /* set while something waits for the next turn */
    struct td_map by_key;               /* key to collection */
    struct td_collection **collections; /* in order of their making; owned */
    size_t collection_count;
    uint64_t version;                     /* of the last commit */
    uint64_t durable_version;             /* of the last commit that is on disk */
    uint64_t floor;                       /* of collections that are made from now on */
    size_t live_bytes;                    /* newest revisions */
    size_t log_bytes;                     /* of all change logs */
    uint64_t ages[TD_CHANGE_LOG_MINUTES]; /* durable versions of the last minutes, a ring */
    size_t age_next;                      /* the oldest of them, the next to be replaced */
    td_duration aged_at;                  /* the machine's steady time of the newest */
    struct td_durable_wait waits;         /* head of the ring of waiting ones */
    uint64_t cursor_order;                /* of the next td_watch_open */
    size_t wake_index;                    /* the collection whose cursors are being woken */
    struct td_watch_cursor *wake_next;    /* the next of them; NULL: the collection was not begun */
    uint64_t wake_order_end;              /* cursors opened since are not woken */
    struct td_timer *wake;                /* set while changes wait for the rest to end */
    td_duration wake_at;                  /* steady time; before it no round begins */
    size_t wake_count;                    /* cursors woken in this round */
};

/* Wake the cursors of all collections with news; false when the slice ended before all were. */
bool td_watch_wake(struct td_store *store);

/* The next turn of the loop brings to disk, tells those who wait and wakes cursors. */
void td_store_ask_flush(struct td_store *store);

/* The object's new state at `place`; `after` is NULL when it is deleted. Takes a reference of
 * `after` and gives back that of the state before. */
void td_collection_put(struct td_collection *collection, struct td_ordered_place place,
                       struct td_stored *before, struct td_stored *after);

/* Put a change behind the log, which makes it the collection's newest, and drop old ones. */
void td_collection_log(struct td_collection *collection, const struct td_change *change);

/* ---- Durable stores: store_durable.c ---- */

/* Read the folder back into the empty store. */
int td_store_load(struct td_store *store, const struct td_store_options *options,
                  struct td_error *err);

/* Bring all commits to disk and let cursors see them. */
int td_store_sync(struct td_store *store, struct td_error *err);

/* Forget all commits that are not on disk. */
void td_store_take_back(struct td_store *store);

/* Begin a snapshot when one is due. */
void td_store_snapshot(struct td_store *store);
