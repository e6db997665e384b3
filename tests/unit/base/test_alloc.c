/* The heap door: every size gives memory, and our own mistakes end the process loudly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"

/* Sizes of nothing are valid pieces, and zeroed memory is zero. */
static void test_alloc_gives_memory_for_every_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 4096, 100000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        td_auto_free char *piece = td_alloc(sizes[i]);
        memset(piece, 'x', sizes[i]);
        td_auto_free char *zeroed = td_alloc_zero(sizes[i], 3);
        for (size_t j = 0; j < sizes[i] * 3; j++) {
            assert_int_equal(zeroed[j], 0);
        }
    }
    td_free(td_alloc_zero(0, 0));
    td_free(NULL);
}

/* Growing keeps the content, from nothing and down to nothing. */
static void test_alloc_realloc_keeps_content(void **state)
{
    (void)state;
    char *piece = td_realloc(NULL, 4);
    memcpy(piece, "abc", 4);
    piece = td_realloc(piece, 100000);
    assert_string_equal(piece, "abc");
    piece = td_realloc(piece, 0);
    td_free(piece);
}

static void fail_assertion(void)
{
    td_assert(1 + 1 == 3);
}

static void overflow_count(void)
{
    struct td_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    volatile size_t count = SIZE_MAX / 2;
    void *volatile piece = td_arena_alloc_zero(&arena, count, 4);
    (void)piece; /* is not reached */
}

/* Runs fn in a child and returns how it ended; what it printed to stderr goes into text. */
static int run_in_child(void (*fn)(void), char *text, size_t text_size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {.rlim_cur = 0, .rlim_max = 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)dup2(ends[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    assert_true(child > 0);
    (void)close(ends[1]);
    size_t len = 0;
    ssize_t n;
    while ((n = read(ends[0], text + len, text_size - 1 - len)) > 0) {
        len += (size_t)n;
    }
    text[len] = '\0';
    (void)close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* A failed assertion prints one line that says where and what, and aborts. */
static void test_assert_prints_one_line_and_aborts(void **state)
{
    (void)state;
    char text[4096];
    int status = run_in_child(fail_assertion, text, sizeof(text));
    assert_true(WIFSIGNALED(status));
    assert_non_null(strstr(text, "tandem: internal error at "));
    assert_non_null(strstr(text, "1 + 1 == 3\n"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* A count that overflows ends the process through the one door, without touching memory. */
static void test_alloc_ends_the_process_on_overflow(void **state)
{
    (void)state;
    char text[4096];
    int status = run_in_child(overflow_count, text, sizeof(text));
    assert_true(WIFSIGNALED(status));
    assert_string_equal(text, "tandem: out of memory\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_gives_memory_for_every_size),
        cmocka_unit_test(test_alloc_realloc_keeps_content),
        cmocka_unit_test(test_assert_prints_one_line_and_aborts),
        cmocka_unit_test(test_alloc_ends_the_process_on_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
