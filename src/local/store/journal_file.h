/*
 * The system calls of the journal, all on files of one folder, each with a message that names the
 * file. A test can make any of them fail (td_journal_fault). Private to the journal.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "local/store/journal.h"

struct td_error;

#define TD_JOURNAL_NAME_BYTES 40 /* "snapshot-", 20 digits, ".tmp" */

struct td_journal_folder {
    const char *path; /* for messages; owned by the journal */
    int fd;
    const struct td_journal_fault *fault; /* NULL outside tests */
};

/* Make the folder when it is not there, and take it: `folder` has its path. TD_DENIED: others can
 * write to it, or it is a symbolic link. TD_BUSY: another process has it. */
int td_journal_folder_open(struct td_journal_folder *folder, struct td_error *err);

/* flags as of openat, O_CLOEXEC added; TD_IO also when it is not there, TD_DENIED when it is no
 * plain file of ours: symbolic links are not followed. */
int td_journal_file_open(const struct td_journal_folder *folder, const char *name, int flags,
                         int *ret, struct td_error *err);

/* All of the bytes, however few the system takes at a time. */
int td_journal_file_write(const struct td_journal_folder *folder, const char *name, int fd,
                          td_str bytes, struct td_error *err);

/* The file's data and length, or with the folder's own fd its names. TD_IO also when it was removed
 * meanwhile: what is in it could not be found again. */
int td_journal_file_sync(const struct td_journal_folder *folder, const char *name, int fd,
                         struct td_error *err);
int td_journal_file_cut(const struct td_journal_folder *folder, const char *name, int fd,
                        uint64_t bytes, struct td_error *err);
int td_journal_file_rename(const struct td_journal_folder *folder, const char *from, const char *to,
                           struct td_error *err);
int td_journal_file_remove(const struct td_journal_folder *folder, const char *name,
                           struct td_error *err);

/* Reads a file through a window: large files do not have to fit into memory. */
struct td_journal_reader {
    const struct td_journal_folder *folder;
    const char *name;
    int fd;
    uint64_t size; /* of the file */
    struct td_buf window;
    uint64_t window_at; /* where the window begins */
};

int td_journal_reader_open(struct td_journal_reader *reader, const struct td_journal_folder *folder,
                           const char *name, struct td_error *err);
void td_journal_reader_close(struct td_journal_reader *reader);

/* The bytes [offset, offset + len), fewer at the end of the file; valid until the next call. `len`
 * is at most a record at its cap. */
int td_journal_reader_get(struct td_journal_reader *reader, uint64_t offset, size_t len,
                          td_str *ret, struct td_error *err);
