/*
 * The only door to the heap. Every call either succeeds or ends the process through one function:
 * inputs are capped before they are stored, so running out of memory means that the machine is out
 * of it. Any thread may call.
 */
#pragma once

#include <stddef.h>

#define td_auto_free __attribute__((cleanup(td_free_pointer)))

/* At the start of the program: memory of large pieces goes back to the machine when it is freed, so
 * that one large request does not make the process large for ever. */
void td_alloc_setup(void);

void *td_alloc(size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));
void *td_alloc_zero(size_t count, size_t size)
    __attribute__((malloc, returns_nonnull, warn_unused_result));
void *td_realloc(void *ptr, size_t size) __attribute__((returns_nonnull, warn_unused_result));
void td_free(void *ptr);

/* For td_auto_free: frees the pointer that `slot` points at. */
void td_free_pointer(void *slot);

_Noreturn void td_out_of_memory(void);
