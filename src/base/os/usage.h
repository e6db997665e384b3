/*
 * What this process itself uses of its machine, for its metrics, and giving some of it back.
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

/* A figure that /proc does not have is 0. */
struct td_usage td_usage_read(void);
int64_t td_usage_files_max(void);

/* Lets the process open as many files as it is allowed to: the usual limit of 1,024 is for programs
 * that cannot count further. */
void td_usage_raise_files(void);

/* Gives back to the machine what is free in the midst of the heap, after work that needed much for
 * a moment. Takes milliseconds of a large heap. */
void td_usage_trim(void);
