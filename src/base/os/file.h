/*
 * Whole files and folders of files, read under a cap, and files replaced in one step. "-" is
 * standard input when reading. Messages name the file
 * and the system's reason. Nothing is kept open.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

struct td_error;

/* Is there a file, or anything else, of this name? */
bool td_file_exists(const char *path);

/* The path of a file beside the running program, in the arena; NULL: the system does not tell. */
const char *td_file_beside_program(struct td_arena *arena, const char *name);

/* The content of one file, in the arena; TD_LIMIT when it is larger than bytes_max (nothing past
 * the cap is read). */
int td_file_read(const char *path, struct td_arena *arena, size_t bytes_max, td_str *ret,
                 struct td_error *err);

/* Make or replace a file in one step: a reader, also after a crash, finds the old content or the
 * new one. `mode` (0600) is the new file's, whatever the umask and the old one's. The folder must
 * exist. */
int td_file_write(const char *path, unsigned mode, td_str content, struct td_error *err);

/* New content for a file that exists, in one step; its mode stays, and a symbolic link goes on
 * pointing at it. */
int td_file_replace(const char *path, td_str content, struct td_error *err);

/* Called with each file's path; a negative return ends the walk and is passed on. */
typedef int (*td_file_fn)(const char *path, void *context, struct td_error *err);

/* A file, or "-", is visited as it is. A folder is walked in byte order of names: files whose name
 * ends in one of `endings`
 * (".yaml,.yml,.json"), folders below it, nothing hidden, no links to folders. A link that leads
 * nowhere and a folder that cannot be opened are visited too: reading them says why. A folder
 * without any such file is TD_NOT_FOUND. */
int td_file_each(const char *path, const char *endings, td_file_fn fn, void *context,
                 struct td_error *err);
