/*
 * The store on disk: an append-only log of commits, and snapshots that keep it short. Only store.c
 * and its parts use it. The folder holds
 *
 *     lock           held by flock(2) while the folder is open, and so is the folder itself
 *     log-N          commits, in order; the one with the highest number is appended to
 *     snapshot-N     all objects; log-N and those after it are replayed over it
 *     snapshot-N.tmp one that is being written
 *
 * A commit is written at once and is on disk after the next td_journal_sync. Crash safety, step by
 * step, is told in docs/internals/local/store.md. After the first failed write or sync of the log
 * every call fails with the same reason until td_journal_heal: what the disk holds behind the last
 * sync is not known. A failed snapshot is no such failure: the log goes on. One owner, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "local/store/journal_record.h"

struct td_error;
struct td_journal;
struct td_log;

enum td_journal_call {
    TD_JOURNAL_OPEN,
    TD_JOURNAL_WRITE,
    TD_JOURNAL_SYNC,
    TD_JOURNAL_CUT,
    TD_JOURNAL_RENAME,
    TD_JOURNAL_REMOVE,
};

/* For tests: `fn` (may be NULL) is asked before each system call that changes something. 0 lets it
 * happen, another number is the errno it fails with; of a write *bytes (else NULL) may be lowered:
 * it is then a short one.
 */
struct td_journal_fault {
    int (*fn)(void *context, enum td_journal_call call, size_t *bytes);
    void *context;
    uint64_t log_bytes_min; /* instead of TD_JOURNAL_LOG_BYTES_MIN */
};

struct td_journal_options {
    const char *path;
    uint64_t version_start; /* of a new folder */
    struct td_log *log;     /* NULL drops */
    const struct td_journal_fault *fault;
};

/* How recovery hands over what it reads, in order: the objects of the snapshot (TD_JOURNAL_OBJECT),
 * then one TD_JOURNAL_END when there was one, then changes. Changes up to the version of the END
 * are partly in the objects already (the snapshot was written while they happened): they are put
 * over them without looking. A negative return ends it. */
typedef int (*td_journal_load_fn)(void *context, const struct td_journal_record *record,
                                  struct td_error *err);

struct td_journal_state {
    uint64_t version; /* of the last change */
    uint64_t floor;   /* all changes after this version were handed over */
};

/* Read everything back, cut a torn tail, and be ready to append. TD_BUSY: another process has it.
 * TD_INVALID: damaged, with file and offset; then nothing was changed. */
int td_journal_open(const struct td_journal_options *options, td_journal_load_fn fn, void *context,
                    struct td_journal_state *ret_state, struct td_journal **ret,
                    struct td_error *err);

/* What was not synced is not synced here either. NULL is accepted. */
void td_journal_close(struct td_journal *journal);

/* Write one change; its version follows that of the one before, its mark is set here. */
int td_journal_append(struct td_journal *journal, const struct td_journal_record *record,
                      struct td_error *err);

/* Bring all of them to disk. */
int td_journal_sync(struct td_journal *journal, struct td_error *err);

/* Why nothing can be written any more, or NULL. */
const char *td_journal_failure(const struct td_journal *journal);

/* Try whether the disk takes TD_JOURNAL_ROOM_BYTES again. TD_OK: it does, all changes that were not
 * synced are cut off, and the next one has the version after the last that was. */
int td_journal_heal(struct td_journal *journal, struct td_error *err);

/* Bytes and changes that were appended since the last sync. */
size_t td_journal_pending_bytes(const struct td_journal *journal);
size_t td_journal_pending_count(const struct td_journal *journal);

/* Has the log outgrown what a snapshot of `live_bytes` costs? */
bool td_journal_wants_snapshot(const struct td_journal *journal, size_t live_bytes);

/* A snapshot is begun (a new log file begins here), is given the objects in any order, each in a
 * state that is not older than its beginning, and ended with the newest version, which must be on
 * disk. On failure of any of them it is given up, and wanted again when the log has grown. */
int td_journal_snapshot_begin(struct td_journal *journal, struct td_error *err);
int td_journal_snapshot_put(struct td_journal *journal, const struct td_journal_record *object,
                            struct td_error *err);
int td_journal_snapshot_sync(struct td_journal *journal, struct td_error *err);
int td_journal_snapshot_end(struct td_journal *journal, uint64_t version, struct td_error *err);
bool td_journal_has_snapshot(const struct td_journal *journal);
void td_journal_snapshot_give_up(struct td_journal *journal);
