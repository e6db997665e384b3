/*
 * Reading a folder back. The newest snapshot is the base; the log files from its number on are
 * replayed over it, each beginning at the version at which the one before ended, each record one
 * version further. So nothing can be missing in between without being noticed.
 *
 * Only the end of the last log file may be unreadable: a record that was being written when the
 * process ended. It is cut, once everything before it was loaded. What makes an unreadable place an
 * end, and not damage in the middle?
 *
 *  1. Nothing readable follows: an end. (A process that is killed leaves a start of what it wrote.)
 *  2. A readable record follows that says, by its mark, that this place was on disk when it was
 *     written: damage of something that was acknowledged.
 *  3. A readable record follows that does not say so, and a disk sector of zeros lies in between: a
 *     machine that lost power wrote later sectors of the last batch before earlier ones. An end.
 *  4. Else: damage.
 *
 * A last log file without records is one whose making was interrupted, or given up: it is as good
 * as not there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/os/log.h"
#include "local/store/journal_private.h"

#define SECTOR_BYTES ((size_t)512)
#define SCAN_BYTES ((size_t)64 << 10)

struct recover_numbers {
    uint64_t log;      /* the highest; 0: none */
    uint64_t snapshot; /* the highest; 0: none */
};

struct recover {
    struct td_journal *journal;
    td_journal_load_fn fn;
    void *context;
    uint64_t version;      /* reached so far */
    uint64_t floor;        /* all changes after it are handed over and were not there before */
    uint64_t snapshot_end; /* the version that the snapshot's END names */
    uint64_t torn_at;      /* of the last log file; UINT64_MAX: it is whole */
};

/* "log-12" gives 12; 0 for every other name, also for ones that we would write differently. */
static uint64_t recover_number(const char *name, const char *kind)
{
    char again[TD_JOURNAL_NAME_BYTES];
    size_t kind_len = strlen(kind);
    int64_t number;
    if (strncmp(name, kind, kind_len) != 0 || name[kind_len] != '-' ||
        !td_str_to_int64(td_str_from(name + kind_len + 1), &number) || number <= 0) {
        return 0;
    }
    td_journal_name(again, kind, (uint64_t)number);
    return strcmp(name, again) == 0 ? (uint64_t)number : 0;
}

static DIR *recover_open_dir(const struct td_journal_folder *folder, struct td_error *err)
{
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        (void)td_error_set(err, TD_IO, "read folder %s: %s", folder->path, strerror(errno));
        if (fd >= 0) {
            (void)close(fd); /* only read from */
        }
    }
    return dir;
}

static int recover_list(const struct td_journal_folder *folder, struct recover_numbers *numbers,
                        struct td_error *err)
{
    DIR *dir = recover_open_dir(folder, err);
    if (!dir) {
        return TD_IO;
    }
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        uint64_t snapshot = recover_number(entry->d_name, "snapshot");
        uint64_t log = recover_number(entry->d_name, "log");
        numbers->snapshot = snapshot > numbers->snapshot ? snapshot : numbers->snapshot;
        numbers->log = log > numbers->log ? log : numbers->log;
    }
    (void)closedir(dir); /* only read from */
    return TD_OK;
}

void td_journal_clean(struct td_journal *journal, uint64_t number)
{
    DIR *dir = recover_open_dir(&journal->folder, NULL);
    if (!dir) {
        return; /* the next snapshot or start cleans */
    }
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        uint64_t log = recover_number(entry->d_name, "log");
        uint64_t snapshot = recover_number(entry->d_name, "snapshot");
        bool is_old = (log > 0 && log < number) || (snapshot > 0 && snapshot < number);
        bool is_unfinished = td_str_starts_with(td_str_from(entry->d_name), TD_STR("snapshot-")) &&
                             td_str_ends_with(td_str_from(entry->d_name), TD_STR(".tmp"));
        if (is_old || is_unfinished) {
            /* What stays is never read, for its number is too low or its name not one. */
            (void)td_journal_file_remove(&journal->folder, entry->d_name, NULL);
        }
    }
    (void)closedir(dir); /* only read from */
}

static int recover_damaged(const struct td_journal_reader *reader, uint64_t offset,
                           const char *problem, struct td_error *err)
{
    return td_error_set(err, TD_INVALID, "%s/%s: damaged at byte %" PRIu64 ": %s",
                        reader->folder->path, reader->name, offset, problem);
}

/* The record at `offset`; TD_INVALID without a message when none is readable there. */
static int recover_record(struct recover *recover, struct td_journal_reader *reader,
                          uint64_t offset, struct td_journal_record *ret, size_t *ret_bytes,
                          struct td_error *err)
{
    td_str bytes;
    size_t body;
    int code = td_journal_reader_get(reader, offset, TD_JOURNAL_RECORD_BYTES, &bytes, err);
    if (code < 0) {
        return code;
    }
    if (td_journal_body_bytes(bytes, &body) < 0) {
        return TD_INVALID;
    }
    code = td_journal_reader_get(reader, offset, TD_JOURNAL_RECORD_BYTES + body, &bytes, err);
    if (code < 0) {
        return code;
    }
    *ret_bytes = bytes.len;
    return td_journal_get_record(bytes, &recover->journal->crc, ret);
}

/* Offset of the next place at or after `offset` where a record could begin, or the file's size. */
static int recover_find(struct td_journal_reader *reader, uint64_t offset, uint64_t *ret,
                        struct td_error *err)
{
    td_str magic = TD_JOURNAL_MAGIC;
    while (offset + magic.len <= reader->size) {
        td_str bytes;
        int code = td_journal_reader_get(reader, offset, SCAN_BYTES, &bytes, err);
        if (code < 0) {
            return code;
        }
        const char *found = memmem(bytes.ptr, bytes.len, magic.ptr, magic.len);
        if (found) {
            *ret = offset + (uint64_t)(found - bytes.ptr);
            return TD_OK;
        }
        if (bytes.len < magic.len) {
            break; /* the file became shorter while it was read */
        }
        offset += bytes.len - (magic.len - 1); /* one may lie across the border */
    }
    *ret = reader->size;
    return TD_OK;
}

static int recover_has_hole(struct td_journal_reader *reader, uint64_t from, uint64_t to, bool *ret,
                            struct td_error *err)
{
    static const char zeros[SECTOR_BYTES];
    uint64_t at = (from + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
    *ret = false;
    for (; !*ret && at + SECTOR_BYTES <= to; at += SECTOR_BYTES) {
        td_str bytes;
        int code = td_journal_reader_get(reader, at, SECTOR_BYTES, &bytes, err);
        if (code < 0) {
            return code;
        }
        *ret = bytes.len == SECTOR_BYTES && memcmp(bytes.ptr, zeros, SECTOR_BYTES) == 0;
    }
    return TD_OK;
}

/* Is the unreadable place at `offset` the end of what was written? See the top of the file. */
static int recover_judge(struct recover *recover, struct td_journal_reader *reader, uint64_t offset,
                         bool *ret_is_end, struct td_error *err)
{
    uint64_t first = 0; /* readable record behind it */
    uint64_t at = offset + 1;
    while (at < reader->size) {
        struct td_journal_record record;
        size_t bytes;
        int code = recover_find(reader, at, &at, err);
        if (code < 0) {
            return code;
        }
        if (at == reader->size) {
            break;
        }
        code = recover_record(recover, reader, at, &record, &bytes, err);
        if (code < 0 && code != TD_INVALID) {
            return code;
        }
        if (code == TD_OK && record.mark > offset) {
            *ret_is_end = false;
            return TD_OK;
        }
        first = code == TD_OK && first == 0 ? at : first;
        at += code == TD_OK ? bytes : 1;
    }
    if (first == 0) {
        *ret_is_end = true;
        return TD_OK;
    }
    return recover_has_hole(reader, offset, first, ret_is_end, err);
}

static int recover_hand_over(struct recover *recover, const struct td_journal_reader *reader,
                             uint64_t offset, const struct td_journal_record *record,
                             struct td_error *err)
{
    struct td_error why = TD_ERROR_INIT;
    int code = recover->fn(recover->context, record, &why);
    return code < 0 ? recover_damaged(reader, offset, why.message, err) : TD_OK;
}

/* The records of one log file, from behind its head. */
static int recover_replay(struct recover *recover, struct td_journal_reader *reader, bool is_last,
                          struct td_error *err)
{
    uint64_t offset = TD_JOURNAL_HEAD_BYTES;
    while (offset < reader->size) {
        struct td_journal_record record;
        size_t bytes;
        bool is_end = false;
        int code = recover_record(recover, reader, offset, &record, &bytes, err);
        if (code == TD_INVALID && is_last) {
            code = recover_judge(recover, reader, offset, &is_end, err);
            code = code == TD_OK ? TD_INVALID : code;
        }
        if (is_end) {
            recover->torn_at = offset;
            return TD_OK;
        }
        if (code == TD_INVALID) {
            return recover_damaged(reader, offset, "cannot decode the record", err);
        }
        if (code < 0) {
            return code;
        }
        if (record.type > TD_JOURNAL_DELETED || record.version != recover->version + 1) {
            return recover_damaged(reader, offset,
                                   "the record's version does not follow the previous one", err);
        }
        code = recover_hand_over(recover, reader, offset, &record, err);
        if (code < 0) {
            return code;
        }
        recover->version = record.version;
        offset += bytes;
    }
    return TD_OK;
}

static int recover_head(struct recover *recover, struct td_journal_reader *reader, td_str kind,
                        struct td_journal_head *ret, struct td_error *err)
{
    td_str bytes;
    int code = td_journal_reader_get(reader, 0, TD_JOURNAL_HEAD_BYTES, &bytes, err);
    if (code < 0) {
        return code;
    }
    return td_journal_get_head(bytes, &recover->journal->crc, kind, ret) < 0
               ? recover_damaged(reader, 0, "the file has a wrong header", err)
               : TD_OK;
}

/* `is_first`: nothing was read before, so it is this file that tells the version to begin with. */
static int recover_log(struct recover *recover, uint64_t number, bool is_first, bool is_last,
                       struct td_error *err)
{
    char name[TD_JOURNAL_NAME_BYTES];
    struct td_journal_reader reader;
    struct td_journal_head head;
    td_journal_name(name, "log", number);
    int code = td_journal_reader_open(&reader, &recover->journal->folder, name, err);
    if (code < 0) {
        return code;
    }
    code = recover_head(recover, &reader, TD_JOURNAL_LOG, &head, err);
    if (code == TD_OK && head.number != number) {
        code =
            recover_damaged(&reader, 0, "the file belongs to another position of the journal", err);
    } else if (code == TD_OK && !is_first && head.version != recover->version) {
        code = recover_damaged(&reader, 0, "the file does not follow the previous one", err);
    }
    if (code == TD_OK) {
        recover->floor = is_first ? head.version : recover->floor;
        recover->version = head.version;
        code = recover_replay(recover, &reader, is_last, err);
    }
    if (code == TD_OK) {
        recover->journal->bytes_before += recover->journal->bytes;
        recover->journal->bytes = recover->torn_at < reader.size ? recover->torn_at : reader.size;
    }
    td_journal_reader_close(&reader);
    return code;
}

static int recover_snapshot_records(struct recover *recover, struct td_journal_reader *reader,
                                    struct td_error *err)
{
    uint64_t offset = TD_JOURNAL_HEAD_BYTES;
    uint64_t count = 0;
    struct td_journal_record record = {.type = TD_JOURNAL_OBJECT};
    while (record.type == TD_JOURNAL_OBJECT) {
        size_t bytes;
        int code = recover_record(recover, reader, offset, &record, &bytes, err);
        if (code == TD_INVALID || (code == TD_OK && record.mark != count) ||
            (code == TD_OK && record.type < TD_JOURNAL_OBJECT)) {
            return recover_damaged(reader, offset, "cannot decode the record", err);
        }
        if (code == TD_OK) {
            code = recover_hand_over(recover, reader, offset, &record, err);
        }
        if (code < 0) {
            return code;
        }
        offset += bytes;
        count++;
    }
    recover->snapshot_end = record.version;
    recover->floor = record.version;
    return offset == reader->size ? TD_OK
                                  : recover_damaged(reader, offset, "data after the end", err);
}

static int recover_snapshot(struct recover *recover, uint64_t number, struct td_error *err)
{
    char name[TD_JOURNAL_NAME_BYTES];
    struct td_journal_reader reader;
    struct td_journal_head head;
    td_journal_name(name, "snapshot", number);
    int code = td_journal_reader_open(&reader, &recover->journal->folder, name, err);
    if (code < 0) {
        return code;
    }
    code = recover_head(recover, &reader, TD_JOURNAL_SNAPSHOT, &head, err);
    if (code == TD_OK && head.number != number) {
        code =
            recover_damaged(&reader, 0, "the file belongs to another position of the journal", err);
    }
    if (code == TD_OK) {
        code = recover_snapshot_records(recover, &reader, err);
    }
    if (code == TD_OK && head.version > recover->snapshot_end) {
        code = recover_damaged(&reader, 0, "its first version is after its last", err);
    }
    recover->version = code == TD_OK ? head.version : recover->version;
    td_journal_reader_close(&reader);
    return code;
}

/* The last log file has no records? Then the one before is the last. *ret_is_new tells that there
 * is not even one with a whole head: nothing was ever written. */
static int recover_drop_empty(struct recover *recover, uint64_t first, uint64_t *last,
                              bool *ret_is_new, struct td_error *err)
{
    char name[TD_JOURNAL_NAME_BYTES];
    struct td_journal_reader reader;
    struct td_journal_head head;
    td_journal_name(name, "log", *last);
    int code = td_journal_reader_open(&reader, &recover->journal->folder, name, err);
    if (code < 0) {
        return code;
    }
    if (reader.size <= TD_JOURNAL_HEAD_BYTES && *last > first) {
        --*last;
    } else if (reader.size <= TD_JOURNAL_HEAD_BYTES) {
        *ret_is_new = recover_head(recover, &reader, TD_JOURNAL_LOG, &head, NULL) < 0;
    }
    td_journal_reader_close(&reader);
    return TD_OK;
}

/* Replay the log files from the snapshot's number on. */
static int recover_logs(struct recover *recover, const struct recover_numbers *numbers,
                        struct td_error *err)
{
    struct td_journal *journal = recover->journal;
    bool has_snapshot = numbers->snapshot > 0;
    bool is_new = numbers->log == 0 && !has_snapshot;
    uint64_t first = has_snapshot ? numbers->snapshot : 1;
    uint64_t last = numbers->log;
    if (!is_new && last < first) {
        return td_error_set(err, TD_INVALID, "%s/log-%" PRIu64 " is missing", journal->folder.path,
                            first);
    }
    int code = is_new ? TD_OK : recover_drop_empty(recover, first, &last, &is_new, err);
    for (uint64_t number = first; code == TD_OK && !is_new && number <= last; number++) {
        code = recover_log(recover, number, number == first && !has_snapshot, number == last, err);
        journal->number = number;
    }
    if (code == TD_OK && recover->version < recover->snapshot_end) {
        code = td_error_set(err, TD_INVALID,
                            "%s/log-%" PRIu64 " ends at version %" PRIu64
                            ", before the snapshot does at %" PRIu64,
                            journal->folder.path, last, recover->version, recover->snapshot_end);
    }
    return code;
}

/* Cut what is torn, and bring to disk what a killed process only wrote: it will be read by others
 * now. */
static int recover_take_up(struct recover *recover, struct td_error *err)
{
    struct td_journal *journal = recover->journal;
    const struct td_journal_folder *folder = &journal->folder;
    char name[TD_JOURNAL_NAME_BYTES];
    td_journal_name(name, "log", journal->number);
    int code = td_journal_file_open(folder, name, O_WRONLY | O_APPEND, &journal->fd, err);
    if (code == TD_OK && recover->torn_at != UINT64_MAX) {
        const struct td_log_field fields[] = {
            TD_LOG_C("folder", folder->path),
            TD_LOG_C("file", name),
            TD_LOG_I("offset", (int64_t)recover->torn_at),
            {.key = NULL},
        };
        td_log_write(journal->log, TD_LOG_WARN,
                     "truncated an incomplete record at the end of the log", fields);
        code = td_journal_file_cut(folder, name, journal->fd, recover->torn_at, err);
    }
    if (code == TD_OK) {
        code = td_journal_file_sync(folder, name, journal->fd, err);
    }
    if (code == TD_OK) {
        code = td_journal_file_sync(folder, "", folder->fd, err);
    }
    journal->bytes_synced = journal->bytes;
    return code;
}

static int recover_begin(struct recover *recover, struct recover_numbers *numbers,
                         struct td_error *err)
{
    struct td_journal *journal = recover->journal;
    int code = recover_list(&journal->folder, numbers, err);
    if (code == TD_OK && numbers->snapshot > 0) {
        code = recover_snapshot(recover, numbers->snapshot, err);
    }
    if (code == TD_OK) {
        code = recover_logs(recover, numbers, err);
    }
    if (code < 0) {
        return code;
    }
    journal->version = recover->version;
    if (journal->number > 0) {
        code = recover_take_up(recover, err);
    } else {
        journal->number = numbers->snapshot > 0 ? numbers->snapshot : 1;
        code = td_journal_make_log(journal, journal->number, &journal->fd, err);
        journal->bytes = TD_JOURNAL_HEAD_BYTES;
        journal->bytes_synced = TD_JOURNAL_HEAD_BYTES;
    }
    return code;
}

int td_journal_recover(struct td_journal *journal, const struct td_journal_options *options,
                       td_journal_load_fn fn, void *context, struct td_journal_state *ret,
                       struct td_error *err)
{
    struct recover recover = {
        .journal = journal,
        .fn = fn,
        .context = context,
        .version = options->version_start,
        .floor = options->version_start,
        .torn_at = UINT64_MAX,
    };
    struct recover_numbers numbers = {0};
    int code = recover_begin(&recover, &numbers, err);
    if (code < 0) {
        return code;
    }
    td_journal_clean(journal, numbers.snapshot);
    *ret = (struct td_journal_state){.version = recover.version, .floor = recover.floor};
    return TD_OK;
}
