/*
 * The storage of the local cluster's API server: objects as compact JSON text, one collection a
 * kind, one counter of versions (the resourceVersion) for all of them, and one ordered log of
 * changes a collection, over which a watcher is a cursor. Optionally durable (see journal.h).
 *
 * Writing is two steps, because an object's text holds its version: td_store_reserve tells which
 * version comes next, the caller writes it into the JSON, td_store_commit stores it. Nothing may be
 * committed in between. Whether the writer saw the newest version is the caller's question: it
 * compares td_stored.version before it commits; all of this happens inside one callback of the
 * loop.
 *
 * When is a write done? Objects are at their newest state at once, so that writers of the same turn
 * see each other. But NOTHING THAT WAS READ OR WRITTEN MAY LEAVE THE PROCESS BEFORE IT IS ON DISK:
 * the handler of a request, reading ones too, either finds td_store_is_durable or waits with
 * td_store_when_durable; cursors hand out only what is on disk. So no client ever sees something
 * that a crash takes back. Without a data folder everything counts as being on disk at once.
 *
 * Ownership: a `struct td_stored` is immutable and counted; what get, iterators and cursors return
 * is borrowed until the next commit or the return to the loop, td_stored_ref keeps it. All belongs
 * to the loop's thread. Callbacks come from the loop, never from inside a call of this header.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "local/store/stored.h"

struct td_error;
struct td_log;
struct td_loop;
struct td_store;
struct td_collection;
struct td_journal_fault;

struct td_store_options {
    const char *data_dir;   /* durable: the folder, made when absent (0700); NULL: memory only */
    uint64_t version_start; /* of a new store; the first commit gets the next one; 0 means 1 */
    struct td_log *log;     /* what recovery cut, snapshots that failed; NULL drops it */
    const struct td_journal_fault *fault; /* tests only: makes system calls fail; NULL */
};

/* A durable store is read back here, before anything else happens: TD_BUSY when another process has
 * the folder, TD_INVALID naming file and offset when it is damaged (nothing is changed then),
 * TD_IO. `options` may be NULL: in memory. */
int td_store_new(struct td_loop *loop, const struct td_store_options *options,
                 struct td_store **ret, struct td_error *err);

/* Brings what was committed to disk when it still waits. Cursors must have been closed, and no
 * td_durable_wait may wait. NULL is accepted. */
void td_store_free(struct td_store *store);

/* ---- Versions ---- */

/* The newest version: of the last commit, or version_start. A list answers with this one. */
uint64_t td_store_version(const struct td_store *store);

/* The newest version that is on disk: what a bookmark may name. At most td_store_version. */
uint64_t td_store_durable_version(const struct td_store *store);

/* The version of the next commit: always td_store_version + 1, and not taken until then. */
uint64_t td_store_reserve(const struct td_store *store);

/* Forget all changes up to `version` (at most the newest that is on disk; else that one), in every
 * collection: cursors and snapshots below it are TD_GONE from then on. */
void td_store_compact(struct td_store *store, uint64_t version);

/* ---- Collections ---- */

/* The objects of one kind, by a key like "pods" or "deployments.apps"; made on first use and kept
 * until the store is freed. TD_LIMIT when there are TD_COLLECTIONS_MAX. */
int td_store_collection(struct td_store *store, td_str key, struct td_collection **ret,
                        struct td_error *err);

/* The collection when it was made already, or NULL. */
struct td_collection *td_store_find(const struct td_store *store, td_str key);

/* Version of the collection's last change, or where its store began. */
uint64_t td_collection_version(const struct td_collection *collection);

/* ---- Writing ---- */

enum td_change_type { TD_CHANGE_ADDED, TD_CHANGE_MODIFIED, TD_CHANGE_DELETED };

struct td_commit {
    enum td_change_type type;
    td_str ns;        /* empty for what has no namespace */
    td_str name;      /* not empty */
    uint64_t version; /* what td_store_reserve told */
    td_str json;      /* compact, with the version inside; of a deletion: the object's last state,
                         carrying the deletion's version; copied */
};

/* TD_EXISTS when an added object is there, TD_NOT_FOUND when a modified or deleted one is not;
 * TD_LIMIT when a cap is reached; TD_INVALID when the text is no JSON object; TD_IO when the disk
 * refuses: from then on every commit is, until it takes writes again (td_store_failure). *ret (may
 * be NULL) is the new revision, borrowed. */
int td_store_commit(struct td_store *store, struct td_collection *collection,
                    const struct td_commit *commit, struct td_stored **ret, struct td_error *err);

/* Why nothing can be written at the moment, or NULL. When the last try is TD_STORE_HEAL_PAUSE ago
 * the disk is tried again first, as each commit does it. */
const char *td_store_failure(struct td_store *store);

/* Is everything that was committed so far on disk? Then an answer may leave at once. */
bool td_store_is_durable(const struct td_store *store);

/* TD_OK: all that was committed before the wait is on disk. TD_IO: the disk failed, what was not on
 * disk was taken back, and the answer must be an error. */
typedef void (*td_durable_fn)(void *context, int code);

/* Lies in the caller's structure, so waiting costs no memory of its own; must be all zero at first.
 */
struct td_durable_wait {
    td_durable_fn fn;
    void *context;
    struct td_durable_wait *previous; /* private; NULL when it does not wait */
    struct td_durable_wait *next;
};

/* Calls back once, from the loop (also when nothing has to be waited for), in the order of the
 * calls. */
void td_store_when_durable(struct td_store *store, struct td_durable_wait *wait, td_durable_fn fn,
                           void *context);

/* When the connection that waited is gone; nothing happens when it does not wait. */
void td_durable_wait_cancel(struct td_durable_wait *wait);

/* ---- Reading ---- */

/* The newest revision, borrowed; NULL when there is none. */
struct td_stored *td_collection_get(const struct td_collection *collection, td_str ns, td_str name);

/* Objects of one namespace, or of all when `ns` is empty. */
size_t td_collection_count(const struct td_collection *collection, td_str ns);

/* The newest revision in the collection of that key; NULL: there is none. */
struct td_stored *td_store_get(const struct td_store *store, td_str key, td_str ns, td_str name);

/* Walks the newest revisions in order of namespace and name (bytes). Commits may happen between two
 * calls of next: it goes on behind the object it returned last. */
struct td_collection_iter {
    const struct td_collection *collection;
    td_str ns;              /* borrowed */
    struct td_stored *last; /* private; holds a reference until the end or _done */
    uint64_t changes;       /* private */
    size_t chunk, place;    /* private */
};

/* `ns` empty: all namespaces. It must outlive the iterator. Of NULL there is nothing to walk. */
struct td_collection_iter td_collection_walk(const struct td_collection *collection, td_str ns);
struct td_stored *td_collection_iter_next(struct td_collection_iter *iter);

/* Only needed when the walk is given up before next returned NULL; allowed always. */
void td_collection_iter_done(struct td_collection_iter *iter);

struct td_page_query {
    uint64_t version;  /* the objects as they were then; 0: as they are now */
    td_str ns;         /* empty: all namespaces */
    td_str after_ns;   /* begin behind this object, which need not exist any more ... */
    td_str after_name; /* ... empty: begin at the first */
    size_t max;        /* objects in the page; 0: all */
};

struct td_page {
    struct td_stored **items; /* in order of namespace and name; owned, each with a reference */
    size_t count;
    size_t remaining; /* objects behind the page's last one in the same snapshot */
    uint64_t version; /* the one asked for, or the newest */
};

/* One page of a snapshot: asked with the first page's version, all pages together are the objects
 * as they were at that version, whatever changed since. Costs the page plus the changes since.
 * TD_GONE when the log does not reach back to the version, TD_INVALID when it is still to come. */
int td_collection_snapshot_at(const struct td_collection *collection,
                              const struct td_page_query *query, struct td_page *ret,
                              struct td_error *err);
void td_page_done(struct td_page *page);

/* ---- Watching ---- */

struct td_change {
    uint64_t version;
    enum td_change_type type;
    struct td_stored *before; /* NULL when added */
    struct td_stored *after;  /* when deleted: the last state, carrying the deletion's version */
};

/* Called from the loop when the collection has changes that were not announced before: once for
 * many of them, cursors in the order in which they were opened. It may close any cursor. */
typedef void (*td_watch_fn)(void *context);

/* Lies in the caller's structure. */
struct td_watch_cursor {
    struct td_collection *collection; /* NULL when closed */
    uint64_t position;                /* private: of the next change in the collection's log */
    td_watch_fn fn;
    void *context;
    struct td_watch_cursor *previous; /* private */
    struct td_watch_cursor *next;
    uint64_t order; /* private: which open it was */
    uint64_t after; /* private: the version it was opened at */
};

/* The changes after `version`, a later one than the newest included: then those after that. TD_GONE
 * when the log does not reach back to it. `fn` may be NULL: no callback. What is there already
 * is not announced: read it with next. */
int td_watch_open(struct td_watch_cursor *cursor, struct td_collection *collection,
                  uint64_t version, td_watch_fn fn, void *context, struct td_error *err);

/* The next change that is on disk, borrowed, or NULL when there is none yet. TD_GONE when the log
 * dropped it before it was read: the cursor is of no use any more, but must still be closed. */
int td_watch_next(struct td_watch_cursor *cursor, const struct td_change **ret,
                  struct td_error *err);

/* Allowed for one that was closed, or is all zero. */
void td_watch_close(struct td_watch_cursor *cursor);
