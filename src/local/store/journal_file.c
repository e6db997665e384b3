/*
 * Open, append, sync, rename and list, each with the file's name in its error and a place where a
 * test can make it fail.
 */
#include "local/store/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "local/store/journal_record.h"

#define FOLDER_MODE 0700
#define MODE_OTHERS_WRITE 022
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

/* Who can write to a file of ours decides what the cluster is: its secrets, its roles. The
 * message's path is `path`, and behind it a slash and `name` when that is not empty. */
static int file_check_owner(int fd, const char *path, const char *name, struct stat *ret,
                            struct td_error *err)
{
    const char *slash = name[0] ? "/" : "";
    if (fstat(fd, ret) != 0) {
        return td_error_set(err, TD_IO, "open %s%s%s: %s", path, slash, name, strerror(errno));
    }
    if (ret->st_uid != geteuid()) {
        return td_error_set(err, TD_DENIED, "%s%s%s belongs to user %lu, not to us (%lu)", path,
                            slash, name, (unsigned long)ret->st_uid, (unsigned long)geteuid());
    }
    if (ret->st_mode & MODE_OTHERS_WRITE) {
        return td_error_set(err, TD_DENIED,
                            "%s%s%s can be written to by others (mode %04o): chmod go-w %s%s%s",
                            path, slash, name, (unsigned)ret->st_mode & 07777U, path, slash, name);
    }
    return TD_OK;
}

/* Not followed even when it leads to a folder of ours: who can change it can lead us elsewhere. */
static int folder_open(struct td_journal_folder *folder, struct td_error *err)
{
    char path[PATH_MAX];
    size_t len = strlen(folder->path);
    if (len >= sizeof(path)) {
        return td_error_set(err, TD_IO, "open folder %s: %s", folder->path, strerror(ENAMETOOLONG));
    }
    memcpy(path, folder->path, len + 1);
    while (len > 1 && path[len - 1] == '/') { /* "link/" would be followed */
        path[--len] = '\0';
    }
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder->fd >= 0) {
        return TD_OK;
    }
    int number = errno;
    struct stat status;
    bool is_link = lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
    return is_link
               ? td_error_set(err, TD_DENIED,
                              "%s is a symbolic link, which is not followed: name the folder", path)
               : td_error_set(err, TD_IO, "open folder %s: %s", path, strerror(number));
}

/* The lock is on the folder, which has no name inside itself that could be removed. Where folders
 * have no locks (NFS) the file "lock" has to do. */
static int folder_lock(const struct td_journal_folder *folder, struct td_error *err)
{
    if (flock(folder->fd, LOCK_EX | LOCK_NB) == 0 || errno == EBADF || errno == EINVAL ||
        errno == ENOLCK || errno == EOPNOTSUPP) {
        return TD_OK;
    }
    return errno == EWOULDBLOCK
               ? td_error_set(err, TD_BUSY, "%s is in use by another process", folder->path)
               : td_error_set(err, TD_IO, "lock %s: %s", folder->path, strerror(errno));
}

/* A new folder's name in the folder above has to survive too. */
static int folder_sync_above(const struct td_journal_folder *folder, struct td_error *err)
{
    int above = openat(folder->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = above >= 0 && fsync(above) == 0
                   ? TD_OK
                   : td_error_set(err, TD_IO, "write to disk the folder above %s: %s", folder->path,
                                  strerror(errno));
    if (above >= 0) {
        (void)close(above); /* only read from */
    }
    return code;
}

int td_journal_folder_open(struct td_journal_folder *folder, struct td_error *err)
{
    struct stat status;
    bool is_new = mkdir(folder->path, FOLDER_MODE) == 0;
    if (!is_new && errno != EEXIST) {
        return td_error_set(err, TD_IO, "make folder %s: %s", folder->path, strerror(errno));
    }
    int code = folder_open(folder, err);
    if (code == TD_OK) {
        code = file_check_owner(folder->fd, folder->path, "", &status, err);
    }
    if (code == TD_OK) {
        code = folder_lock(folder, err);
    }
    return code == TD_OK && is_new ? folder_sync_above(folder, err) : code;
}

/* Nothing but a plain file: a pipe would hold us up, a link lead elsewhere. */
static int file_check(const struct td_journal_folder *folder, const char *name, int fd,
                      struct td_error *err)
{
    struct stat status;
    int code = file_check_owner(fd, folder->path, name, &status, err);
    if (code == TD_OK && !S_ISREG(status.st_mode)) {
        code = td_error_set(err, TD_DENIED, "%s/%s is not a plain file", folder->path, name);
    }
    return code;
}

int td_journal_file_open(const struct td_journal_folder *folder, const char *name, int flags,
                         int *ret, struct td_error *err)
{
    int number = file_fault(folder, TD_JOURNAL_OPEN, NULL);
    flags |= O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd = number ? -1 : openat(folder->fd, name, flags, FILE_MODE);
    if (fd < 0) {
        number = number ? number : errno;
        return number == ELOOP
                   ? td_error_set(err, TD_DENIED, "%s/%s is a symbolic link, which is not followed",
                                  folder->path, name)
                   : file_failed(folder, "open", name, number, err);
    }
    int code = file_check(folder, name, fd, err);
    if (code < 0) {
        (void)close(fd); /* nothing was written */
        return code;
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
    struct stat status;
    if (fstat(fd, &status) == 0 && status.st_nlink == 0) {
        return td_error_set(err, TD_IO, "%s/%s was removed while it was in use", folder->path,
                            name);
    }
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
