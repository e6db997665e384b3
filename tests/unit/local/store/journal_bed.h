/*
 * Folders for tests of durable stores: made in memory or in the working directory, copied as a kill
 * would leave them, removed with all files. The whole state of a store as one text, to compare with
 * what a recovery brings back.
 */
#pragma once

#include "unit/local/store/store_bed.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/map.h"

#define FOLDER_BYTES 64
#define FILE_BYTES ((size_t)1 << 24)

static inline void folder_make(char path[FOLDER_BYTES])
{
    /* In memory where there is such a place: thousands of syncs are then quick. */
    bool has_memory = access("/dev/shm", W_OK) == 0;
    (void)snprintf(path, FOLDER_BYTES, "%sjournal-test-XXXXXX", has_memory ? "/dev/shm/" : "");
    assert_non_null(mkdtemp(path));
}

static inline size_t file_load(const char *folder, const char *name, char *bytes)
{
    char path[400];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t got = read(fd, bytes, FILE_BYTES);
    assert_true(got >= 0 && (size_t)got < FILE_BYTES);
    (void)close(fd);
    return (size_t)got;
}

static inline void file_save(const char *folder, const char *name, const char *bytes, size_t len)
{
    char path[400];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_true(write(fd, bytes, len) == (ssize_t)len);
    (void)close(fd);
}

/* Calls fn(name) for each file. */
static inline void folder_each(const char *path, void (*fn)(const char *, const char *, void *),
                               void *context)
{
    DIR *dir = opendir(path);
    assert_non_null(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            fn(path, entry->d_name, context);
        }
    }
    (void)closedir(dir);
}

static inline void folder_remove_file(const char *folder, const char *name, void *context)
{
    (void)context;
    char path[400];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

static inline void folder_empty(const char *path)
{
    folder_each(path, folder_remove_file, NULL);
}

static inline void folder_remove(const char *path)
{
    folder_empty(path);
    assert_int_equal(rmdir(path), 0);
}

static inline void folder_copy_file(const char *folder, const char *name, void *context)
{
    static char bytes[FILE_BYTES];
    size_t len = file_load(folder, name, bytes);
    file_save(context, name, bytes, len);
}

static inline void folder_copy(const char *from, char *to)
{
    folder_empty(to);
    folder_each(from, folder_copy_file, to);
}

/* All objects of all collections, by the collections' keys, texts as their hashes; free it. */
static inline char *bed_state(const struct bed *bed)
{
    static const char *const keys[] = {"pods", "nodes", "events"};
    struct td_buf out;
    td_buf_init(&out, (size_t)1 << 24);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct td_collection *collection = td_store_find(bed->store, td_str_from(keys[i]));
        if (!collection) {
            continue;
        }
        struct td_collection_iter iter;
        iter = td_collection_walk(collection, TD_STR_EMPTY);
        const struct td_stored *stored;
        while ((stored = td_collection_iter_next(&iter)) != NULL) {
            (void)td_buf_append_format(&out, "%s %.*s/%.*s %llu %zu %llx\n", keys[i],
                                       TD_STR_ARG(stored->ns), TD_STR_ARG(stored->name),
                                       (unsigned long long)stored->version, stored->json.len,
                                       (unsigned long long)td_map_hash(stored->json));
        }
    }
    char *copy = test_malloc(out.len + 1);
    memcpy(copy, td_buf_str(&out).ptr, out.len);
    copy[out.len] = '\0';
    td_buf_done(&out);
    return copy;
}
