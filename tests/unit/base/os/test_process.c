/* Child processes on the loop: output, ends, environment, deadlines and caps. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/os/loop.h"
#include "base/os/process.h"

struct run {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_process *process;
    struct td_buf output;
    int calls;
    int code;
    int exit_status;
};

static int set_up(void **state)
{
    static struct run run;
    struct td_error err = TD_ERROR_INIT;
    run = (struct run){.clock = td_clock_real()};
    td_buf_init(&run.output, (size_t)1 << 20);
    *state = &run;
    return td_loop_new(&run.clock, &run.loop, &err);
}

static int tear_down(void **state)
{
    struct run *run = *state;
    td_loop_free(run->loop);
    td_buf_done(&run->output);
    return 0;
}

static void ended(const struct td_process_end *end, void *context)
{
    struct run *run = context;
    run->calls++;
    run->code = end->code;
    run->exit_status = end->exit_status;
    (void)td_buf_append(&run->output, end->output);
    td_process_free(run->process);
    run->process = NULL;
}

static int start(struct run *run, const char *script, const char *const *env, size_t bytes_max,
                 td_duration deadline, struct td_error *err)
{
    const char *const args[] = {"-c", script, NULL};
    struct td_process_spec spec = {.command = "sh",
                                   .args = args,
                                   .env = env,
                                   .output_bytes_max = bytes_max,
                                   .deadline = deadline};
    td_buf_reset(&run->output);
    run->calls = 0;
    return td_process_start(run->loop, &spec, ended, run, &run->process, err);
}

static void run_script(struct run *run, const char *script, const char *const *env,
                       size_t bytes_max, td_duration deadline)
{
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(start(run, script, env, bytes_max, deadline, &err), TD_OK);
    assert_int_equal(run->calls, 0);
    assert_int_equal(td_loop_run(run->loop, &err), TD_OK);
    assert_int_equal(run->calls, 1);
}

/* What it printed and how it ended. */
static void test_process_output_and_status(void **state)
{
    struct run *run = *state;
    static const struct {
        const char *script;
        const char *output;
        int exit_status;
    } rows[] = {
        {"true", "", 0},
        {"printf hello", "hello", 0},
        {"printf x; exit 3", "x", 3},
        {"kill -TERM $$", "", 128 + SIGTERM},
        {"cat", "", 0}, /* standard input is empty */
        {"printf a; exec >&-; sleep 0.05; exit 4", "a", 4},
        {"(sleep 0.05; printf late) & printf soon", "soonlate", 0},
        {"printf \"%s%s\" \"$TD_A\" \"$TD_B\"", "twob", 0},
    };
    const char *const env[] = {"TD_A=one", "TD_B=b", "TD_A=two", NULL};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        run_script(run, rows[i].script, env, 100, 10 * TD_SECOND);
        assert_int_equal(run->code, TD_OK);
        assert_int_equal(run->exit_status, rows[i].exit_status);
        assert_string_equal(td_buf_str(&run->output).ptr, rows[i].output);
    }
}

/* Our variables are passed on, a given one replaces ours. */
static void test_process_environment(void **state)
{
    struct run *run = *state;
    assert_int_equal(setenv("TD_TEST_OURS", "ours", 1), 0);
    assert_int_equal(setenv("TD_TEST_BOTH", "ours", 1), 0);
    const char *const env[] = {"TD_TEST_BOTH=given", NULL};
    run_script(run, "env | grep -c ^TD_TEST_; printf \"$TD_TEST_OURS $TD_TEST_BOTH\"", env, 100,
               10 * TD_SECOND);
    assert_string_equal(run->output.ptr, "2\nours given");
    run_script(run, "printf \"$TD_TEST_BOTH\"", NULL, 100, 10 * TD_SECOND);
    assert_string_equal(run->output.ptr, "ours");
}

/* A byte past the cap ends it; at the cap it is fine. */
static void test_process_bounds_output(void **state)
{
    struct run *run = *state;
    run_script(run, "printf 12345", NULL, 5, 10 * TD_SECOND);
    assert_int_equal(run->code, TD_OK);
    assert_int_equal(run->output.len, 5);
    run_script(run, "printf 123456; sleep 60", NULL, 5, 10 * TD_SECOND);
    assert_int_equal(run->code, TD_LIMIT);
    run_script(run, "yes", NULL, 100000, 10 * TD_SECOND);
    assert_int_equal(run->code, TD_LIMIT);
}

/* Over its time it is killed, with what it started. */
static void test_process_deadline(void **state)
{
    struct run *run = *state;
    td_duration before = td_clock_steady(&run->clock);
    run_script(run, "sleep 60 & printf x; sleep 60", NULL, 100, 100 * TD_MILLISECOND);
    assert_int_equal(run->code, TD_TIMEOUT);
    run_script(run, "exec >&-; sleep 60", NULL, 100, 100 * TD_MILLISECOND);
    assert_int_equal(run->code, TD_TIMEOUT);
    assert_true(td_clock_steady(&run->clock) - before < 30 * TD_SECOND);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie is left */
}

/* Freed early it is gone without a callback. */
static void test_process_free_kills(void **state)
{
    struct run *run = *state;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(start(run, "sleep 60", NULL, 100, 60 * TD_SECOND, &err), TD_OK);
    td_process_free(run->process);
    assert_int_equal(td_loop_run(run->loop, &err), TD_OK);
    assert_int_equal(run->calls, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    td_process_free(NULL);
}

/* What cannot be started is said at once. */
static void test_process_start_failures(void **state)
{
    struct run *run = *state;
    static const struct {
        const char *command;
        int code;
    } rows[] = {
        {"td-no-such-command", TD_NOT_FOUND},
        {"/nowhere/at/all", TD_NOT_FOUND},
        {"/", TD_DENIED},
        {"/etc/passwd", TD_DENIED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_process_spec spec = {
            .command = rows[i].command, .output_bytes_max = 10, .deadline = TD_SECOND};
        assert_int_equal(td_process_start(run->loop, &spec, ended, run, &run->process, &err),
                         rows[i].code);
        assert_int_equal(strncmp(err.message, rows[i].command, strlen(rows[i].command)), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_process_output_and_status, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_process_environment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_process_bounds_output, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_process_deadline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_process_free_kills, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_process_start_failures, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
