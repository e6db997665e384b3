/*
 * Open, append, sync, rename and list, each with the file's name in its error and a place where a
 * test can make it fail.
 */
#include "local/store/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "local/store/journal_record.h"

#define FILE_MODE 0600 /* secrets are among the objects */
#define WINDOW_BYTES ((size_t)1 << 20)

/* 0, or the errno that a test wants; `bytes` is what a write may take. */
static int file_fault(const struct td_journal_folder *folder, enum td_journal_call call,
                      size_t *bytes)
{
    return folder->fault && folder->fault->fn
               ? folder->fault->fn(folder->fault->context, call, bytes)
               : 0;
}

static int file_failed(const struct td_journal_folder *folder, const char *what, const char *name,
                       int number, struct td_error *err)
{
    return td_error_set(err, TD_IO, "%s %s/%s: %s", what, folder->path, name, strerror(number));
}

int td_journal_file_open(const struct td_journal_folder *folder, const char *name, int flags,
                         int *ret, struct td_error *err)
{
    int number = file_fault(folder, TD_JOURNAL_OPEN, NULL);
    int fd = number ? -1 : openat(folder->fd, name, flags | O_CLOEXEC, FILE_MODE);
    if (fd < 0) {
        return file_failed(folder, "open", name, number ? number : errno, err);
    }
    *ret = fd;
    return TD_OK;
}

int td_journal_file_write(const struct td_journal_folder *folder, const char *name, int fd,
                          td_str bytes, struct td_error *err)
{
    while (bytes.len > 0) {
        size_t part = bytes.len;
        int number = file_fault(folder, TD_JOURNAL_WRITE, &part);
        ssize_t written = number ? -1 : write(fd, bytes.ptr, part);
        if (written < 0 && !number && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            /* A write that takes nothing and says nothing would be tried for ever. */
            number = number ? number : written == 0 ? ENOSPC : errno;
            return file_failed(folder, "write", name, number, err);
        }
        bytes = td_str_slice(bytes, (size_t)written, bytes.len);
    }
    return TD_OK;
}

int td_journal_file_sync(const struct td_journal_folder *folder, const char *name, int fd,
                         struct td_error *err)
{
    int number = file_fault(folder, TD_JOURNAL_SYNC, NULL);
    bool is_folder = fd == folder->fd;
    int code = -1;
    do {
        code = number ? -1 : is_folder ? fsync(fd) : fdatasync(fd);
    } while (code < 0 && !number && errno == EINTR);
    return code == 0 ? TD_OK
                     : file_failed(folder, "write to disk", name, number ? number : errno, err);
}

int td_journal_file_cut(const struct td_journal_folder *folder, const char *name, int fd,
                        uint64_t bytes, struct td_error *err)
{
    int number = file_fault(folder, TD_JOURNAL_CUT, NULL);
    int code = number ? -1 : ftruncate(fd, (off_t)bytes);
    return code == 0 ? TD_OK : file_failed(folder, "cut", name, number ? number : errno, err);
}

int td_journal_file_rename(const struct td_journal_folder *folder, const char *from, const char *to,
                           struct td_error *err)
{
    int number = file_fault(folder, TD_JOURNAL_RENAME, NULL);
    int code = number ? -1 : renameat(folder->fd, from, folder->fd, to);
    return code == 0 ? TD_OK : file_failed(folder, "rename", from, number ? number : errno, err);
}

int td_journal_file_remove(const struct td_journal_folder *folder, const char *name,
                           struct td_error *err)
{
    int number = file_fault(folder, TD_JOURNAL_REMOVE, NULL);
    int code = number ? -1 : unlinkat(folder->fd, name, 0);
    return code == 0 ? TD_OK : file_failed(folder, "remove", name, number ? number : errno, err);
}

int td_journal_reader_open(struct td_journal_reader *reader, const struct td_journal_folder *folder,
                           const char *name, struct td_error *err)
{
    int fd = -1;
    struct stat status;
    int code = td_journal_file_open(folder, name, O_RDONLY, &fd, err);
    if (code < 0) {
        return code;
    }
    if (fstat(fd, &status) != 0) {
        code = file_failed(folder, "read", name, errno, err);
        (void)close(fd); /* only read from */
        return code;
    }
    *reader = (struct td_journal_reader){
        .folder = folder,
        .name = name,
        .fd = fd,
        .size = (uint64_t)status.st_size,
    };
    td_buf_init(&reader->window,
                TD_JOURNAL_RECORD_BYTES + TD_JOURNAL_BODY_BYTES_MAX + WINDOW_BYTES);
    return TD_OK;
}

void td_journal_reader_close(struct td_journal_reader *reader)
{
    (void)close(reader->fd); /* only read from */
    td_buf_done(&reader->window);
}

/* Fill the window from `offset` on, with `len` bytes or as many as there are. */
static int reader_fill(struct td_journal_reader *reader, uint64_t offset, size_t len,
                       struct td_error *err)
{
    td_buf_reset(&reader->window);
    reader->window_at = offset;
    while (reader->window.len < len) {
        size_t room = len - reader->window.len;
        char *place = td_buf_reserve(&reader->window, room);
        ssize_t got =
            place ? pread(reader->fd, place, room, (off_t)(offset + reader->window.len)) : 0;
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return file_failed(reader->folder, "read", reader->name, errno, err);
        }
        if (got == 0) {
            break;
        }
        td_buf_commit(&reader->window, (size_t)got);
    }
    return TD_OK;
}

int td_journal_reader_get(struct td_journal_reader *reader, uint64_t offset, size_t len,
                          td_str *ret, struct td_error *err)
{
    uint64_t left = offset < reader->size ? reader->size - offset : 0;
    len = left < len ? (size_t)left : len;
    bool is_inside =
        offset >= reader->window_at && offset + len <= reader->window_at + reader->window.len;
    if (!is_inside) {
        size_t want = len < WINDOW_BYTES ? WINDOW_BYTES : len;
        int code = reader_fill(reader, offset, want, err);
        if (code < 0) {
            return code;
        }
    }
    size_t begin = (size_t)(offset - reader->window_at);
    *ret = td_str_slice(td_buf_str(&reader->window), begin, begin + len);
    return TD_OK;
}
