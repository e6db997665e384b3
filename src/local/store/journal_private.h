/*
 * Shared by journal.c and journal_recover.c only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "local/store/journal.h"
#include "local/store/journal_file.h"

struct td_journal {
    struct td_journal_folder folder; /* path owned */
    int lock_fd;
    struct td_log *log; /* borrowed; NULL drops */
    struct td_crc32c crc;
    struct td_buf scratch; /* one record */

    uint64_t number; /* of the log file that is appended to */
    int fd;
    uint64_t bytes;          /* of that file */
    uint64_t bytes_synced;   /* of these on disk */
    size_t pending_count;    /* changes that are not */
    uint64_t version;        /* of the last change */
    uint64_t bytes_before;   /* of log files before it that are still needed */
    uint64_t bytes_wanted;   /* no new try of a snapshot before the log has so many */
    struct td_error failure; /* the first one; its code is 0 before */

    int snapshot_fd;         /* -1: none is being written */
    uint64_t snapshot_count; /* objects in it */
    struct td_buf snapshot;  /* not yet written */
};

void td_journal_name(char name[TD_JOURNAL_NAME_BYTES], const char *kind, uint64_t number);

/* An empty log file with this number, its head on disk, and its name too; whatever had the name is
 * replaced. */
int td_journal_make_log(struct td_journal *journal, uint64_t number, int *ret_fd,
                        struct td_error *err);

/* Remove files whose number is lower, and all unfinished snapshots; files that cannot be removed do
 * no harm. */
void td_journal_clean(struct td_journal *journal, uint64_t number);

/* Fills the empty journal from its folder. */
int td_journal_recover(struct td_journal *journal, const struct td_journal_options *options,
                       td_journal_load_fn fn, void *context, struct td_journal_state *ret,
                       struct td_error *err);
