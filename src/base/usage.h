/*
 * What this process itself uses of its machine, for its metrics.
 */
#pragma once

#include <stdint.h>

struct td_usage {
    double cpu_seconds; /* user and system together, since the start */
    int64_t resident_bytes;
    int64_t virtual_bytes;
    int64_t open_files;
    int64_t files_max;
};

/* What cannot be found out is 0. */
struct td_usage td_usage_read(void);
