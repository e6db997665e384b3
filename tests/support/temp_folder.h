/* A folder of a test's own, with files in it and gone at the end. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/os/file.h"

struct temp_folder {
    char path[1024]; /* absolute, below the current folder */
};

static inline int temp_folder_make(struct temp_folder *folder)
{
    static const char name[] = "/td-test-XXXXXX";
    if (!getcwd(folder->path, sizeof(folder->path) - sizeof(name))) {
        return -1;
    }
    memcpy(folder->path + strlen(folder->path), name, sizeof(name));
    return mkdtemp(folder->path) ? 0 : -1;
}

static inline const char *temp_path(const struct temp_folder *folder, struct td_arena *arena,
                                    const char *name)
{
    return td_arena_format(arena, "%s/%s", folder->path, name).ptr;
}

static inline const char *temp_file(const struct temp_folder *folder, struct td_arena *arena,
                                    const char *name, unsigned mode, td_str content)
{
    struct td_error err = TD_ERROR_INIT;
    const char *path = temp_path(folder, arena, name);
    if (td_file_write(path, mode, content, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        abort();
    }
    return path;
}

/* Files directly inside; there are no folders. */
static inline void temp_folder_remove(const struct temp_folder *folder)
{
    DIR *entries = opendir(folder->path);
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        char path[2048];
        int length = snprintf(path, sizeof(path), "%s/%s", folder->path, entry->d_name);
        if (length > 0 && (size_t)length < sizeof(path)) {
            (void)unlink(path);
        }
    }
    (void)closedir(entries);
    (void)rmdir(folder->path);
}
