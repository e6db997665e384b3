#include "base/alloc.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define ALLOC_MAPPED_BYTES (256 << 10) /* larger pieces are mapped singly */
#define ALLOC_TRIM_BYTES (1 << 20)     /* kept free at the end of the heap */

_Noreturn void td_out_of_memory(void)
{
    (void)fputs("tandem: out of memory\n", stderr); /* nothing is left to do if this fails too */
    abort();
}

_Noreturn void td_assert_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "tandem: internal error at %s:%d: %s\n", file, line, condition);
    abort();
}

void td_alloc_setup(void)
{
#ifdef __GLIBC__
    /* Said once, the thresholds are no longer raised by what was freed; refusing is harmless. */
    (void)mallopt(M_MMAP_THRESHOLD, ALLOC_MAPPED_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, ALLOC_TRIM_BYTES);
#endif
}

void *td_alloc(size_t size)
{
    void *ptr = malloc(size > 0 ? size : 1);
    if (!ptr) {
        td_out_of_memory();
    }
    return ptr;
}

void *td_alloc_zero(size_t count, size_t size)
{
    void *ptr = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
    if (!ptr) {
        td_out_of_memory();
    }
    return ptr;
}

void *td_realloc(void *ptr, size_t size)
{
    void *grown = realloc(ptr, size > 0 ? size : 1);
    if (!grown) {
        td_out_of_memory();
    }
    return grown;
}

void td_free(void *ptr)
{
    free(ptr);
}

void td_free_pointer(void *slot)
{
    void *ptr;
    memcpy(&ptr, slot, sizeof(ptr));
    free(ptr);
}
