/*
 * Preloaded into a program, it counts allocations and lets one of them fail: how tests/alloc sees
 * what becomes of each. Whose allocations count is told by where the call came from: the program's
 * own (ALLOC_WHO=ours), which go through base/alloc.c, or those of the libraries that it uses
 * (ALLOC_WHO=libraries). Those of the test framework and of the C library itself are let be: a
 * test program cannot do without them, and what the C library needs is a few hundred bytes.
 *
 * What was allocated and not freed is told at the end: with a failure there may be no more of it
 * than without.
 *
 *   ALLOC_AT     which one fails, from 1; 0: none
 *   ALLOC_LOG    a file: where it failed, or "OURS LIBRARIES" at the end; then "left OURS
 * LIBRARIES"
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc's own, by the names under which it exports them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *ptr);

#define RANGES_MAX 16
#define BLOCKS_MAX ((size_t)1 << 21) /* a power of two; those of the program that are held */

struct range {
    uintptr_t from;
    uintptr_t to;
};

static struct range program;
static struct range spared[RANGES_MAX];
static size_t spared_count;
static bool is_on;
static bool is_ours; /* of those that may fail */
static long at;
static long counts[2]; /* of the libraries, of the program */
static int file = -1;
static uintptr_t blocks[BLOCKS_MAX]; /* a set of addresses, by linear probing */
static long held[2];                 /* of them, by the libraries and by the program */
static bool is_lost;                 /* more were held at one time than there is room for */
static bool is_locked;

static bool has(const struct range *range, uintptr_t address)
{
    return address >= range->from && address < range->to;
}

static int see(struct dl_phdr_info *info, size_t size, void *context)
{
    static const char *const names[] = {"libc.so",    "libc.musl", "ld-linux", "libcmocka",
                                        "libjansson", "failing.",  "libm.so",  "linux-vdso"};
    struct range range = {.from = UINTPTR_MAX, .to = 0};
    bool *is_first = context;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t to = from + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            range.from = from < range.from ? from : range.from;
            range.to = to > range.to ? to : range.to;
        }
    }
    if (*is_first) {
        program = range;
        *is_first = false;
        return 0;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strstr(info->dlpi_name, names[i]) && spared_count < RANGES_MAX) {
            spared[spared_count++] = range;
        }
    }
    return 0;
}

/* The file is open from the begin: the program may take from itself what it needs for that. */
static void tell(const char *text)
{
    if (file >= 0) {
        (void)!write(file, text, strlen(text));
    }
}

/* ---- What the program holds ---- */

static void blocks_lock(void)
{
    while (__atomic_test_and_set(&is_locked, __ATOMIC_ACQUIRE)) {
    }
}

static void blocks_unlock(void)
{
    __atomic_clear(&is_locked, __ATOMIC_RELEASE);
}

/* The lowest bit of an address tells whose block it is. */
static size_t blocks_home(uintptr_t block)
{
    return (size_t)((block >> 4) * 0x9e3779b97f4a7c15ULL >> 32) & (BLOCKS_MAX - 1);
}

static void blocks_add(void *ptr, int who)
{
    uintptr_t block = (uintptr_t)ptr | (uintptr_t)who;
    blocks_lock();
    is_lost = is_lost || (size_t)(held[0] + held[1]) >= BLOCKS_MAX / 2;
    if (!is_lost) {
        size_t at = blocks_home(block);
        while (blocks[at] != 0) {
            at = (at + 1) & (BLOCKS_MAX - 1);
        }
        blocks[at] = block;
        held[who]++;
    }
    blocks_unlock();
}

/* Those behind a hole move up, so that each is still found from its home. */
static void blocks_close(size_t hole)
{
    size_t at = (hole + 1) & (BLOCKS_MAX - 1);
    for (; blocks[at] != 0; at = (at + 1) & (BLOCKS_MAX - 1)) {
        size_t behind = (at - blocks_home(blocks[at])) & (BLOCKS_MAX - 1);
        if (behind >= ((at - hole) & (BLOCKS_MAX - 1))) {
            blocks[hole] = blocks[at];
            hole = at;
        }
    }
    blocks[hole] = 0;
}

/* Those that are let be are not there. */
static void blocks_remove(const void *ptr)
{
    if (!ptr || file < 0) {
        return;
    }
    blocks_lock();
    size_t at = blocks_home((uintptr_t)ptr);
    while (blocks[at] != 0 && (blocks[at] & ~(uintptr_t)1) != (uintptr_t)ptr) {
        at = (at + 1) & (BLOCKS_MAX - 1);
    }
    if (blocks[at] != 0) {
        held[blocks[at] & 1]--;
        blocks_close(at);
    }
    blocks_unlock();
}

__attribute__((constructor)) static void begin(void)
{
    const char *who = getenv("ALLOC_WHO");
    const char *which = getenv("ALLOC_AT");
    const char *path = getenv("ALLOC_LOG");
    bool is_first = true;
    file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    (void)dl_iterate_phdr(see, &is_first);
    is_ours = who && strcmp(who, "ours") == 0;
    at = which ? strtol(which, NULL, 10) : 0;
    is_on = who != NULL;
}

__attribute__((destructor)) static void end(void)
{
    char text[64];
    if (is_on && at == 0) {
        is_on = false;
        (void)snprintf(text, sizeof(text), "%ld %ld\n", counts[1], counts[0]);
        tell(text);
    }
    (void)snprintf(text, sizeof(text), "left %ld %ld\n", is_lost ? 0 : held[1],
                   is_lost ? 0 : held[0]);
    tell(text);
    file = -1; /* what goes on from here is not the program's */
}

/* 1: the program's own, 0: a library's, -1: of those that are let be. */
static int owner(uintptr_t caller)
{
    if (has(&program, caller)) {
        return 1;
    }
    for (size_t i = 0; i < spared_count; i++) {
        if (has(&spared[i], caller)) {
            return -1;
        }
    }
    return 0;
}

static bool fails(void *caller)
{
    int who = is_on ? owner((uintptr_t)caller) : -1;
    if (who < 0 || __atomic_add_fetch(&counts[who], 1, __ATOMIC_RELAXED) != at || who != is_ours) {
        return false;
    }
    is_on = false;
    Dl_info info = {.dli_fname = NULL};
    char text[512];
    (void)dladdr(caller, &info);
    (void)snprintf(text, sizeof(text), "%s %s\n", info.dli_fname ? info.dli_fname : "?",
                   info.dli_sname ? info.dli_sname : "?");
    tell(text);
    errno = ENOMEM;
    return true;
}

/* What was given is noted, whoever frees it. */
static void *given(void *ptr, void *caller)
{
    int who = ptr && file >= 0 ? owner((uintptr_t)caller) : -1;
    if (who >= 0) {
        blocks_add(ptr, who);
    }
    return ptr;
}

void *malloc(size_t size)
{
    void *caller = __builtin_return_address(0);
    return fails(caller) ? NULL : given(__libc_malloc(size), caller);
}

void *calloc(size_t number, size_t size)
{
    void *caller = __builtin_return_address(0);
    return fails(caller) ? NULL : given(__libc_calloc(number, size), caller);
}

void *realloc(void *ptr, size_t size)
{
    void *caller = __builtin_return_address(0);
    if (fails(caller)) {
        return NULL;
    }
    blocks_remove(ptr); /* before another thread can be given its address */
    return given(__libc_realloc(ptr, size), caller);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    void *caller = __builtin_return_address(0);
    return fails(caller) ? NULL : given(__libc_memalign(alignment, size), caller);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
    void *caller = __builtin_return_address(0);
    void *ptr = fails(caller) ? NULL : given(__libc_memalign(alignment, size), caller);
    if (!ptr) {
        return ENOMEM;
    }
    *ret = ptr;
    return 0;
}

void free(void *ptr)
{
    blocks_remove(ptr);
    __libc_free(ptr);
}
