/*
 * A file is replaced by writing a temporary one beside it, syncing both and renaming, so that a
 * reader sees the old or the new text.
 */
#include "base/os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"

#define FILE_PIECE_BYTES ((size_t)1 << 16)

static const char *file_title(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

bool td_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

const char *td_file_beside_program(struct td_arena *arena, const char *name)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path));
    while (len > 0 && len < (ssize_t)sizeof(path) && path[len - 1] != '/') {
        len--;
    }
    return len > 0 && len < (ssize_t)sizeof(path)
               ? td_arena_format(arena, "%.*s%s", (int)len, path, name).ptr
               : NULL;
}

/* Reads until the end or one byte past the cap, which is how a file at the cap is told from a
 * larger one. */
static int file_read_fd(int fd, const char *title, size_t bytes_max, struct td_buf *content,
                        struct td_error *err)
{
    for (;;) {
        size_t room = bytes_max + 1 - content->len;
        room = room < FILE_PIECE_BYTES ? room : FILE_PIECE_BYTES;
        char *place = td_buf_reserve(content, room);
        ssize_t got = read(fd, place, room);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return td_error_set(err, TD_IO, "%s: %s", title, strerror(errno));
        }
        if (got == 0) {
            return TD_OK;
        }
        td_buf_commit(content, (size_t)got);
        if (content->len > bytes_max) {
            return td_error_set(err, TD_LIMIT, "%s: larger than %zu bytes", title, bytes_max);
        }
    }
}

int td_file_read(const char *path, struct td_arena *arena, size_t bytes_max, td_str *ret,
                 struct td_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        int code = errno == ENOENT ? TD_NOT_FOUND : errno == EACCES ? TD_DENIED : TD_IO;
        return td_error_set(err, code, "%s: %s", path, strerror(errno));
    }
    td_auto_buf content = td_buf_capped(bytes_max + 1);
    int code = file_read_fd(fd, file_title(path), bytes_max, &content, err);
    if (!is_stdin) {
        (void)close(fd); /* only read from */
    }
    if (code == TD_OK) {
        *ret = td_arena_copy_str(arena, td_buf_str(&content));
    }
    return code;
}

static bool file_write_fd(int fd, td_str content)
{
    for (size_t done = 0; done < content.len;) {
        ssize_t put = write(fd, content.ptr + done, content.len - done);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

/* The rename itself lasts only once its folder is on the disk. */
static bool file_sync_folder(const char *path)
{
    td_auto_buf folder = td_buf_capped(TD_PATH_BYTES_MAX);
    const char *slash = strrchr(path, '/');
    td_str name = slash ? (td_str){.ptr = path, .len = (size_t)(slash - path) + 1} : TD_STR(".");
    if (td_buf_append(&folder, name) < 0) {
        return false;
    }
    int fd = open(folder.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool is_done = fsync(fd) == 0 || errno == EINVAL; /* some file systems have nothing to do */
    (void)close(fd);                                  /* only synced */
    return is_done;
}

int td_file_write(const char *path, unsigned mode, td_str content, struct td_error *err)
{
    td_auto_buf temporary = td_buf_capped(TD_PATH_BYTES_MAX);
    if (td_buf_append_format(&temporary, "%s.XXXXXX", path) < 0) {
        return td_error_set(err, TD_LIMIT, "%s: the path is too long", path);
    }
    int fd = mkostemp(temporary.ptr, O_CLOEXEC); /* of mode 0600 */
    if (fd < 0) {
        int code = errno == ENOENT ? TD_NOT_FOUND : errno == EACCES ? TD_DENIED : TD_IO;
        return td_error_set(err, code, "%s: %s", path, strerror(errno));
    }
    bool is_written = file_write_fd(fd, content) && fchmod(fd, (mode_t)mode) == 0 && fsync(fd) == 0;
    int reason = errno;
    bool is_closed = close(fd) == 0;
    reason = is_written ? errno : reason;
    if (!is_written || !is_closed || rename(temporary.ptr, path) != 0) {
        reason = is_written && is_closed ? errno : reason;
        (void)unlink(temporary.ptr); /* the failure above is the one to report */
        return td_error_set(err, TD_IO, "%s: %s", path, strerror(reason));
    }
    if (!file_sync_folder(path)) {
        return td_error_set(err, TD_IO, "%s: its folder: %s", path, strerror(errno));
    }
    return TD_OK;
}

int td_file_replace(const char *path, td_str content, struct td_error *err)
{
    char whole[PATH_MAX];
    struct stat status;
    if (!realpath(path, whole) || stat(whole, &status) != 0) {
        int code = errno == ENOENT ? TD_NOT_FOUND : errno == EACCES ? TD_DENIED : TD_IO;
        return td_error_set(err, code, "%s: %s", path, strerror(errno));
    }
    return td_file_write(whole, status.st_mode & 07777, content, err);
}

struct file_walk {
    const char *endings;
    td_file_fn fn;
    void *context;
    size_t count;
};

static bool file_has_ending(const char *name, const char *endings)
{
    td_str rest = td_str_from(endings);
    while (rest.len > 0) {
        size_t end = td_str_find(rest, ',', 0);
        if (td_str_ends_with(td_str_from(name), td_str_slice(rest, 0, end))) {
            return true;
        }
        rest = td_str_slice(rest, end + 1, rest.len);
    }
    return false;
}

static int file_walk_folder(struct file_walk *walk, const char *path, int depth,
                            struct td_error *err);

static int file_walk_entry(struct file_walk *walk, const char *path, const char *name, int depth,
                           struct td_error *err)
{
    td_auto_buf child;
    struct stat status;
    td_buf_init(&child, TD_PATH_BYTES_MAX);
    const char *slash = td_str_ends_with(td_str_from(path), TD_STR("/")) ? "" : "/";
    if (td_buf_append_format(&child, "%s%s%s", path, slash, name) < 0) {
        return td_error_set(err, TD_LIMIT, "%s/%s: the path is too long", path, name);
    }
    bool is_there = lstat(child.ptr, &status) == 0;
    if (is_there && S_ISDIR(status.st_mode)) {
        return file_walk_folder(walk, child.ptr, depth + 1, err);
    }
    bool is_link = is_there && S_ISLNK(status.st_mode);
    if (is_link && stat(child.ptr, &status) == 0 && S_ISDIR(status.st_mode)) {
        return TD_OK; /* a link to a folder may lead in a circle */
    }
    bool is_file = !is_there || is_link || S_ISREG(status.st_mode);
    if (!is_file || !file_has_ending(name, walk->endings)) {
        return TD_OK;
    }
    walk->count++;
    return walk->fn(child.ptr, walk->context, err);
}

static int file_walk_folder(struct file_walk *walk, const char *path, int depth,
                            struct td_error *err)
{
    if (depth > TD_FOLDER_DEPTH_MAX) {
        return td_error_set(err, TD_LIMIT, "%s: nested more than %d folders deep", path,
                            TD_FOLDER_DEPTH_MAX);
    }
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) {
        walk->count++;
        return walk->fn(path, walk->context, err); /* reading it says why */
    }
    int code = TD_OK;
    for (int i = 0; i < count; i++) {
        if (code == TD_OK && entries[i]->d_name[0] != '.') {
            code = file_walk_entry(walk, path, entries[i]->d_name, depth, err);
        }
        free(entries[i]);
    }
    free(entries);
    return code;
}

int td_file_each(const char *path, const char *endings, td_file_fn fn, void *context,
                 struct td_error *err)
{
    struct stat status;
    if (strcmp(path, "-") == 0 || stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return fn(path, context, err);
    }
    struct file_walk walk = {.endings = endings, .fn = fn, .context = context};
    int code = file_walk_folder(&walk, path, 0, err);
    if (code == TD_OK && walk.count == 0) {
        return td_error_set(err, TD_NOT_FOUND, "%s: no file here ends in %s", path, endings);
    }
    return code;
}
