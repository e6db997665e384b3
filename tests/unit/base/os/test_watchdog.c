/* A loop that stands still ends its process, and says where it stood; one that turns does not. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "base/os/watchdog.h"

#define ALLOWED (100 * TD_MILLISECOND)

static enum td_job_result job_spin(td_str key, void *context)
{
    (void)key;
    (void)context;
    for (;;) {
    }
    return TD_JOB_DONE;
}

/* A call that waits for ever, as for a disk that is gone. */
static enum td_job_result job_wait(td_str key, void *context)
{
    char byte;
    (void)key;
    while (read(*(int *)context, &byte, 1) != 0) {
    }
    return TD_JOB_DONE;
}

static enum td_job_result job_yield(td_str key, void *context)
{
    struct td_loop *loop = *(struct td_loop **)context;
    (void)key;
    while (!td_loop_slice_is_over(loop)) {
    }
    return TD_JOB_AGAIN;
}

static void stop(struct td_timer *timer, void *context)
{
    (void)timer;
    td_loop_stop(context);
}

/* In the child: the job under a watchdog, for half a second at the most. Its status and its words.
 */
static int run_child(td_job_fn job, char *words, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        int silent[2];
        struct td_clock clock = td_clock_real();
        struct td_loop *loop = NULL;
        struct td_error err = TD_ERROR_INIT;
        void *context = job == job_wait ? (void *)&silent[0] : (void *)&loop;
        if (pipe(silent) != 0 || dup2(ends[1], STDERR_FILENO) < 0 ||
            td_loop_new(&clock, &loop, &err) != TD_OK) {
            _exit(1);
        }
        struct td_queue *queue = td_queue_new(loop, job, context, 1);
        struct td_timer *timer = td_timer_new(loop, stop, loop);
        td_timer_set(timer, 5 * ALLOWED);
        bool is_set = !job || td_queue_add(queue, TD_STR("job"), &err) == TD_OK;
        bool is_good = is_set && td_watchdog_start(loop, ALLOWED, &err) == TD_OK &&
                       td_loop_run(loop, &err) == TD_OK;
        td_watchdog_stop();
        _exit(is_good ? 0 : 1);
    }
    (void)close(ends[1]);
    size_t len = 0;
    for (ssize_t got; len < size - 1 && (got = read(ends[0], words + len, size - 1 - len)) > 0;) {
        len += (size_t)got;
    }
    words[len] = '\0';
    (void)close(ends[0]);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_watchdog_ends_a_loop_that_stands(void **state)
{
    static const td_job_fn jobs[] = {job_spin, job_wait};
    char words[8192];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int status = run_child(jobs[i], words, sizeof(words));
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
        assert_non_null(strstr(words, "the event loop has not turned for 100 ms"));
#if __has_include(<execinfo.h>)
        assert_non_null(strstr(words, "test_watchdog(+0x")); /* a place in this program */
#endif
    }
}

static void test_watchdog_lets_a_loop_turn(void **state)
{
    static const td_job_fn jobs[] = {job_yield, NULL}; /* busy all the time, and idle */
    char words[8192];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(run_child(jobs[i], words, sizeof(words)), 0);
        assert_string_equal(words, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watchdog_ends_a_loop_that_stands),
        cmocka_unit_test(test_watchdog_lets_a_loop_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
