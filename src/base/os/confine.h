/*
 * Takes away from the running process what it does not need, for good: after td_confine a hole in
 * a parser leads to no shell, no file of others and no part of the kernel that we never use. It
 * adds to what a pod's securityContext does, and protects where there is none.
 *
 * Landlock (Linux 5.13): no file can be written, made or run; readable are what the C library and
 * OpenSSL read, and the folders of the caller's files; no signal leaves the process (Linux 6.12).
 * Seccomp: no programs, no tracing, no mounts, namespaces, modules or keys, no change of a file's
 * mode, owner or times, no typing into a terminal, and no sockets but those of the internet and
 * local ones. Files and sockets that are open stay as they are. Threads and children inherit it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct td_error;

struct td_confine_options {
    const td_str *files; /* that are read again later; NUL-terminated, empty ones are passed over */
    size_t file_count;
};

struct td_confined {
    int landlock_version; /* of the kernel; 0: it has none, or may not be asked */
    bool has_seccomp;
};

/* What the kernel lacks is told in *ret and is no failure. TD_IO when it refuses half way: then
 * nothing more than the result says is in force. Elsewhere than on Linux nothing happens. */
int td_confine(const struct td_confine_options *options, struct td_confined *ret,
               struct td_error *err);
