/* Appends and syncs the records of commits, and says when a snapshot would make the log shorter. */
#include "local/store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "local/store/journal_private.h"

#define ROOM_WRITE_BYTES ((size_t)64 << 10)
#define SNAPSHOT_WRITE_BYTES ((size_t)64 << 10) /* objects are gathered up to this */

void td_journal_name(char name[TD_JOURNAL_NAME_BYTES], const char *kind, uint64_t number)
{
    (void)snprintf(name, TD_JOURNAL_NAME_BYTES, "%s-%" PRIu64, kind, number); /* fits */
}

/* The folder itself is locked already; the file tells versions of us that only look at it. */
static int journal_lock(struct td_journal *journal, struct td_error *err)
{
    int code =
        td_journal_file_open(&journal->folder, "lock", O_RDWR | O_CREAT, &journal->lock_fd, err);
    if (code < 0) {
        return code;
    }
    if (flock(journal->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        return TD_OK;
    }
    return errno == EWOULDBLOCK
               ? td_error_set(err, TD_BUSY, "%s is in use by another process", journal->folder.path)
               : td_error_set(err, TD_IO, "lock %s: %s", journal->folder.path, strerror(errno));
}

int td_journal_open(const struct td_journal_options *options, td_journal_load_fn fn, void *context,
                    struct td_journal_state *ret_state, struct td_journal **ret,
                    struct td_error *err)
{
    struct td_journal *journal = td_alloc_zero(1, sizeof(*journal));
    size_t path_bytes = strlen(options->path) + 1;
    char *path = td_alloc(path_bytes);
    memcpy(path, options->path, path_bytes);
    journal->folder = (struct td_journal_folder){.path = path, .fd = -1, .fault = options->fault};
    journal->lock_fd = -1;
    journal->fd = -1;
    journal->snapshot_fd = -1;
    journal->log = options->log;
    td_crc32c_init(&journal->crc);
    td_buf_init(&journal->scratch, TD_JOURNAL_RECORD_BYTES + TD_JOURNAL_BODY_BYTES_MAX);
    td_buf_init(&journal->snapshot,
                SNAPSHOT_WRITE_BYTES + TD_JOURNAL_RECORD_BYTES + TD_JOURNAL_BODY_BYTES_MAX);
    int code = td_journal_folder_open(&journal->folder, err);
    if (code == TD_OK) {
        code = journal_lock(journal, err);
    }
    if (code == TD_OK) {
        code = td_journal_recover(journal, options, fn, context, ret_state, err);
    }
    if (code < 0) {
        td_journal_close(journal);
        return code;
    }
    *ret = journal;
    return TD_OK;
}

static void journal_close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd); /* what counts was synced */
    }
    *fd = -1;
}

void td_journal_close(struct td_journal *journal)
{
    if (!journal) {
        return;
    }
    td_journal_snapshot_give_up(journal);
    journal_close_fd(&journal->fd);
    journal_close_fd(&journal->lock_fd);
    journal_close_fd(&journal->folder.fd);
    td_buf_done(&journal->scratch);
    td_buf_done(&journal->snapshot);
    td_free_pointer(&journal->folder.path);
    td_free(journal);
}

/* Once a write or sync of the log failed, what follows bytes_synced in the file is unknown. */
static int journal_failed(struct td_journal *journal, const struct td_error *why,
                          struct td_error *err)
{
    if (journal->failure.code == TD_OK) {
        journal->failure = *why;
    }
    return td_error_set(err, TD_IO, "storage failed, writes are refused until it works again: %s",
                        journal->failure.message);
}

int td_journal_append(struct td_journal *journal, const struct td_journal_record *record,
                      struct td_error *err)
{
    if (journal->failure.code != TD_OK) {
        return journal_failed(journal, &journal->failure, err);
    }
    td_assert(record->version == journal->version + 1);
    char name[TD_JOURNAL_NAME_BYTES];
    struct td_error why = TD_ERROR_INIT;
    struct td_journal_record marked = *record;
    marked.mark = journal->bytes_synced;
    td_buf_reset(&journal->scratch);
    td_journal_put_record(&journal->scratch, &journal->crc, &marked);
    td_assert(!journal->scratch.is_full); /* the store keeps to the caps */
    td_journal_name(name, "log", journal->number);
    if (td_journal_file_write(&journal->folder, name, journal->fd, td_buf_str(&journal->scratch),
                              &why) < 0) {
        return journal_failed(journal, &why, err);
    }
    journal->bytes += journal->scratch.len;
    journal->pending_count++;
    journal->version = record->version;
    return TD_OK;
}

int td_journal_sync(struct td_journal *journal, struct td_error *err)
{
    char name[TD_JOURNAL_NAME_BYTES];
    struct td_error why = TD_ERROR_INIT;
    if (journal->failure.code != TD_OK) {
        return journal_failed(journal, &journal->failure, err);
    }
    if (journal->pending_count == 0) {
        return TD_OK;
    }
    td_journal_name(name, "log", journal->number);
    if (td_journal_file_sync(&journal->folder, name, journal->fd, &why) < 0) {
        return journal_failed(journal, &why, err);
    }
    journal->bytes_synced = journal->bytes;
    journal->pending_count = 0;
    return TD_OK;
}

const char *td_journal_failure(const struct td_journal *journal)
{
    return journal->failure.code == TD_OK ? NULL : journal->failure.message;
}

/* Zeros behind the end of the log: no record is among them, so a crash leaves an end to cut. */
static int journal_try_room(struct td_journal *journal, const char *name, struct td_error *err)
{
    static const char zeros[ROOM_WRITE_BYTES];
    int code = TD_OK;
    for (size_t bytes = 0; code == TD_OK && bytes < TD_JOURNAL_ROOM_BYTES; bytes += sizeof(zeros)) {
        const td_str part = {.ptr = zeros, .len = sizeof(zeros)};
        code = td_journal_file_write(&journal->folder, name, journal->fd, part, err);
    }
    return code < 0 ? code : td_journal_file_sync(&journal->folder, name, journal->fd, err);
}

static int journal_cut_back(struct td_journal *journal, const char *name, struct td_error *err)
{
    int code = td_journal_file_cut(&journal->folder, name, journal->fd, journal->bytes_synced, err);
    return code < 0 ? code : td_journal_file_sync(&journal->folder, name, journal->fd, err);
}

int td_journal_heal(struct td_journal *journal, struct td_error *err)
{
    if (journal->failure.code == TD_OK) {
        return TD_OK;
    }
    char name[TD_JOURNAL_NAME_BYTES];
    td_journal_name(name, "log", journal->number);
    int code = journal_cut_back(journal, name, err);
    if (code == TD_OK) {
        struct td_error why = TD_ERROR_INIT;
        int room = journal_try_room(journal, name, &why);
        code = journal_cut_back(journal, name, err);
        if (code == TD_OK && room < 0) {
            if (err) {
                *err = why;
            }
            code = room;
        }
    }
    if (code == TD_OK) {
        journal->bytes = journal->bytes_synced;
        journal->version -= journal->pending_count;
        journal->pending_count = 0;
        journal->failure = (struct td_error)TD_ERROR_INIT;
    }
    return code;
}

size_t td_journal_pending_bytes(const struct td_journal *journal)
{
    return (size_t)(journal->bytes - journal->bytes_synced);
}

size_t td_journal_pending_count(const struct td_journal *journal)
{
    return journal->pending_count;
}

int td_journal_make_log(struct td_journal *journal, uint64_t number, int *ret_fd,
                        struct td_error *err)
{
    char name[TD_JOURNAL_NAME_BYTES];
    const struct td_journal_folder *folder = &journal->folder;
    const struct td_journal_head head = {
        .kind = TD_JOURNAL_LOG,
        .number = number,
        .version = journal->version,
    };
    int fd;
    td_journal_name(name, "log", number);
    td_buf_reset(&journal->scratch);
    td_journal_put_head(&journal->scratch, &journal->crc, &head);
    int code =
        td_journal_file_open(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, &fd, err);
    if (code < 0) {
        return code;
    }
    code = td_journal_file_write(folder, name, fd, td_buf_str(&journal->scratch), err);
    if (code == TD_OK) {
        code = td_journal_file_sync(folder, name, fd, err);
    }
    if (code == TD_OK) {
        code = td_journal_file_sync(folder, "", folder->fd, err);
    }
    if (code < 0) {
        (void)close(fd); /* without records it is as good as not there */
        return code;
    }
    *ret_fd = fd;
    return TD_OK;
}

/* ---- Snapshots ---- */

static uint64_t journal_log_bytes(const struct td_journal *journal)
{
    return journal->bytes_before + journal->bytes;
}

static uint64_t journal_log_bytes_min(const struct td_journal *journal)
{
    const struct td_journal_fault *fault = journal->folder.fault;
    return fault ? fault->log_bytes_min : TD_JOURNAL_LOG_BYTES_MIN;
}

bool td_journal_wants_snapshot(const struct td_journal *journal, size_t live_bytes)
{
    uint64_t bytes = journal_log_bytes(journal);
    return journal->failure.code == TD_OK && journal->snapshot_fd < 0 &&
           bytes > journal_log_bytes_min(journal) && bytes / 2 > live_bytes &&
           bytes > journal->bytes_wanted;
}

static void journal_temporary_name(char name[TD_JOURNAL_NAME_BYTES], uint64_t number)
{
    td_journal_name(name, "snapshot", number);
    size_t len = strlen(name);
    (void)snprintf(name + len, TD_JOURNAL_NAME_BYTES - len, ".tmp"); /* fits */
}

bool td_journal_has_snapshot(const struct td_journal *journal)
{
    return journal->snapshot_fd >= 0;
}

void td_journal_snapshot_give_up(struct td_journal *journal)
{
    char name[TD_JOURNAL_NAME_BYTES];
    if (journal->snapshot_fd < 0) {
        return;
    }
    journal_close_fd(&journal->snapshot_fd);
    td_buf_reset(&journal->snapshot);
    journal_temporary_name(name, journal->number);
    /* What stays behind is removed when the folder is opened again. */
    (void)td_journal_file_remove(&journal->folder, name, NULL);
    journal->bytes_wanted = journal_log_bytes(journal) + journal_log_bytes_min(journal);
}

/* The new log file takes over; from here on the old ones only grow older. */
static void journal_switch(struct td_journal *journal, uint64_t number, int fd)
{
    journal_close_fd(&journal->fd);
    journal->bytes_before += journal->bytes;
    journal->fd = fd;
    journal->number = number;
    journal->bytes = TD_JOURNAL_HEAD_BYTES;
    journal->bytes_synced = TD_JOURNAL_HEAD_BYTES;
}

int td_journal_snapshot_begin(struct td_journal *journal, struct td_error *err)
{
    td_assert(journal->snapshot_fd < 0);
    int log_fd;
    int code = td_journal_sync(journal, err);
    if (code < 0) {
        return code;
    }
    journal->bytes_wanted = journal_log_bytes(journal) + journal_log_bytes_min(journal);
    code = td_journal_make_log(journal, journal->number + 1, &log_fd, err);
    if (code < 0) {
        return code;
    }
    journal_switch(journal, journal->number + 1, log_fd);
    char name[TD_JOURNAL_NAME_BYTES];
    journal_temporary_name(name, journal->number);
    code = td_journal_file_open(&journal->folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND,
                                &journal->snapshot_fd, err);
    if (code < 0) {
        return code;
    }
    const struct td_journal_head head = {
        .kind = TD_JOURNAL_SNAPSHOT,
        .number = journal->number,
        .version = journal->version,
    };
    td_journal_put_head(&journal->snapshot, &journal->crc, &head);
    journal->snapshot_count = 0;
    return TD_OK;
}

static int snapshot_write(struct td_journal *journal, struct td_error *err)
{
    char name[TD_JOURNAL_NAME_BYTES];
    journal_temporary_name(name, journal->number);
    int code = td_journal_file_write(&journal->folder, name, journal->snapshot_fd,
                                     td_buf_str(&journal->snapshot), err);
    td_buf_reset(&journal->snapshot);
    return code;
}

static int snapshot_add(struct td_journal *journal, const struct td_journal_record *record,
                        struct td_error *err)
{
    td_journal_put_record(&journal->snapshot, &journal->crc, record);
    td_assert(!journal->snapshot.is_full);
    return journal->snapshot.len < SNAPSHOT_WRITE_BYTES ? TD_OK : snapshot_write(journal, err);
}

int td_journal_snapshot_put(struct td_journal *journal, const struct td_journal_record *object,
                            struct td_error *err)
{
    td_assert(journal->snapshot_fd >= 0);
    struct td_journal_record record = *object;
    record.type = TD_JOURNAL_OBJECT;
    record.mark = journal->snapshot_count++;
    int code = snapshot_add(journal, &record, err);
    if (code < 0) {
        td_journal_snapshot_give_up(journal);
    }
    return code;
}

static int snapshot_sync(struct td_journal *journal, struct td_error *err)
{
    char name[TD_JOURNAL_NAME_BYTES];
    journal_temporary_name(name, journal->number);
    int code = snapshot_write(journal, err);
    return code < 0 ? code
                    : td_journal_file_sync(&journal->folder, name, journal->snapshot_fd, err);
}

int td_journal_snapshot_sync(struct td_journal *journal, struct td_error *err)
{
    int code = snapshot_sync(journal, err);
    if (code < 0) {
        td_journal_snapshot_give_up(journal);
    }
    return code;
}

int td_journal_snapshot_end(struct td_journal *journal, uint64_t version, struct td_error *err)
{
    td_assert(journal->snapshot_fd >= 0);
    td_assert(version == journal->version);
    td_assert(journal->pending_count == 0);
    const struct td_journal_folder *folder = &journal->folder;
    const struct td_journal_record end = {
        .type = TD_JOURNAL_END,
        .version = version,
        .mark = journal->snapshot_count,
    };
    char from[TD_JOURNAL_NAME_BYTES];
    char to[TD_JOURNAL_NAME_BYTES];
    journal_temporary_name(from, journal->number);
    td_journal_name(to, "snapshot", journal->number);
    int code = snapshot_add(journal, &end, err);
    if (code == TD_OK) {
        code = snapshot_sync(journal, err);
    }
    if (code == TD_OK) {
        code = td_journal_file_rename(folder, from, to, err);
    }
    /* When the name may not survive, the files it replaces must stay: both ways are whole. */
    if (code == TD_OK) {
        code = td_journal_file_sync(folder, "", folder->fd, err);
    }
    if (code < 0) {
        td_journal_snapshot_give_up(journal);
        return code;
    }
    journal_close_fd(&journal->snapshot_fd);
    journal->bytes_before = 0;
    journal->bytes_wanted = 0;
    td_journal_clean(journal, journal->number);
    return TD_OK;
}
