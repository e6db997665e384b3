/*
 * The child leads a process group of its own, so that a shell script and what it started are killed
 * together; one that talks to the terminal stays in ours, since a background group that reads from
 * the terminal is stopped. The end is the end of its output first (all writers have closed the
 * pipe), then its exit, asked for with a growing pause: usually it is already there.
 */
#include "base/os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/loop.h"

#define PROCESS_PIECE_BYTES ((size_t)1 << 14)
#define PROCESS_POLL_FIRST_US 500
#define PROCESS_POLL_LAST_US 100000

struct td_process {
    pid_t pid;     /* 0 once it has been waited for */
    bool is_alone; /* leads its own group */
    int fd;        /* reading end; -1 once closed */
    struct td_buf output;
    struct event *reads;
    struct event *deadline;
    struct event *poll; /* asks whether it has exited */
    long poll_us;
    td_process_fn fn;
    void *context;
};

bool td_process_has_terminal(void)
{
    return isatty(STDIN_FILENO) == 1;
}

/* A killed process ends at once, so waiting for it does not hold the loop up. */
static void process_kill(struct td_process *process)
{
    if (process->pid == 0) {
        return;
    }
    (void)kill(process->is_alone ? -process->pid : process->pid, SIGKILL); /* it may be gone */
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    process->pid = 0;
}

static void process_close(struct td_process *process)
{
    if (process->reads) {
        event_free(process->reads);
        process->reads = NULL;
    }
    if (process->fd >= 0) {
        (void)close(process->fd); /* only read from */
        process->fd = -1;
    }
}

void td_process_free(struct td_process *process)
{
    if (!process) {
        return;
    }
    process_kill(process);
    process_close(process);
    if (process->deadline) {
        event_free(process->deadline);
    }
    if (process->poll) {
        event_free(process->poll);
    }
    td_buf_done(&process->output);
    td_free(process);
}

static void process_finish(struct td_process *process, int code, int exit_status)
{
    process_kill(process);
    process_close(process);
    (void)event_del(process->deadline); /* nothing to do when it is not set */
    (void)event_del(process->poll);
    struct td_process_end end = {
        .code = code, .exit_status = exit_status, .output = td_buf_str(&process->output)};
    process->fn(&end, process->context);
}

static void process_poll_later(struct td_process *process)
{
    struct timeval pause = {.tv_usec = process->poll_us};
    process->poll_us *= process->poll_us < PROCESS_POLL_LAST_US / 2 ? 2 : 1;
    if (event_add(process->poll, &pause) != 0) {
        process_finish(process, TD_IO, 0);
    }
}

static void process_asks(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct td_process *process = context;
    int status = 0;
    pid_t got = waitpid(process->pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) {
        process_poll_later(process);
    } else if (got < 0) {
        process->pid = 0; /* already reaped elsewhere: its status is lost */
        process_finish(process, TD_IO, 0);
    } else {
        process->pid = 0;
        process_finish(process, TD_OK,
                       WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    }
}

static void process_times_out(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    process_finish(context, TD_TIMEOUT, 0);
}

static void process_reads(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    struct td_process *process = context;
    char *place = td_buf_reserve(&process->output, PROCESS_PIECE_BYTES);
    td_assert(place); /* the buffer has room for a piece above the cap */
    ssize_t got = read(fd, place, PROCESS_PIECE_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (got <= 0) {
        process_close(process);
        process_asks(-1, 0, process);
        return;
    }
    td_buf_commit(&process->output, (size_t)got);
    if (process->output.len > process->output.max - PROCESS_PIECE_BYTES) {
        process_finish(process, TD_LIMIT, 0);
    }
}

static td_str process_variable_name(const char *variable)
{
    td_str text = td_str_from(variable);
    return td_str_slice(text, 0, td_str_find(text, '=', 0));
}

/* Ours without those that are given, then the given ones without those given again later. */
static int process_environment(const char *const *given, const char ***ret, struct td_error *err)
{
    size_t our_count = 0;
    size_t given_count = 0;
    td_auto_map last = td_map_capped(TD_PROCESS_ARGS_MAX);
    for (; environ[our_count]; our_count++) {
    }
    for (; given && given[given_count]; given_count++) {
        union {
            const char *text;
            void *value;
        } item = {.text = given[given_count]};
        if (td_map_put(&last, process_variable_name(given[given_count]), item.value) < 0) {
            return td_error_set(err, TD_LIMIT, "more than %d variables", TD_PROCESS_ARGS_MAX);
        }
    }
    const char **all = td_alloc_zero(our_count + given_count + 1, sizeof(*all));
    size_t count = 0;
    for (size_t i = 0; i < our_count; i++) {
        if (!td_map_has(&last, process_variable_name(environ[i]))) {
            all[count++] = environ[i];
        }
    }
    for (size_t i = 0; i < given_count; i++) {
        if (td_map_get(&last, process_variable_name(given[i])) == (const void *)given[i]) {
            all[count++] = given[i];
        }
    }
    *ret = all;
    return TD_OK;
}

static int process_arguments(const struct td_process_spec *spec, const char ***ret,
                             struct td_error *err)
{
    size_t count = 0;
    for (; spec->args && spec->args[count]; count++) {
    }
    if (count > TD_PROCESS_ARGS_MAX) {
        return td_error_set(err, TD_LIMIT, "more than %d arguments", TD_PROCESS_ARGS_MAX);
    }
    const char **all = td_alloc_zero(count + 2, sizeof(*all));
    all[0] = spec->command;
    for (size_t i = 0; i < count; i++) {
        all[i + 1] = spec->args[i];
    }
    *ret = all;
    return TD_OK;
}

/* What we ignore or block the child does not: it expects the defaults. */
static int process_set_attributes(posix_spawnattr_t *attributes, bool is_alone)
{
    sigset_t none;
    sigset_t defaults;
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    (void)sigemptyset(&none);
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGPIPE);
    (void)sigaddset(&defaults, SIGINT);
    (void)sigaddset(&defaults, SIGTERM);
    flags = (short)(is_alone ? flags | POSIX_SPAWN_SETPGROUP : flags);
    int reason = posix_spawnattr_setsigmask(attributes, &none);
    reason = reason ? reason : posix_spawnattr_setsigdefault(attributes, &defaults);
    reason = reason ? reason : posix_spawnattr_setpgroup(attributes, 0);
    return reason ? reason : posix_spawnattr_setflags(attributes, flags);
}

/* Returns an errno, 0 when it runs. */
static int process_spawn(struct td_process *process, const char **args, const char **env,
                         int output_fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int reason = posix_spawn_file_actions_init(&actions);
    if (reason) {
        return reason;
    }
    reason = posix_spawnattr_init(&attributes);
    if (reason) {
        (void)posix_spawn_file_actions_destroy(&actions); /* was made */
        return reason;
    }
    reason = posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
    if (!reason && process->is_alone) {
        reason = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    reason = reason ? reason : process_set_attributes(&attributes, process->is_alone);
    union {
        const char **given;
        char **wanted; /* posix_spawn does not change them */
    } argv = {.given = args}, envp = {.given = env};
    pid_t pid = 0;
    reason = reason ? reason
                    : posix_spawnp(&pid, args[0], &actions, &attributes, argv.wanted, envp.wanted);
    (void)posix_spawnattr_destroy(&attributes); /* were made */
    (void)posix_spawn_file_actions_destroy(&actions);
    process->pid = reason ? 0 : pid;
    return reason;
}

static int process_watch(struct td_process *process, struct td_loop *loop, td_duration deadline,
                         struct td_error *err)
{
    struct event_base *base = td_loop_base(loop);
    struct timeval after = {.tv_sec = deadline / TD_SECOND,
                            .tv_usec = deadline % TD_SECOND / TD_MICROSECOND};
    process->reads = event_new(base, process->fd, EV_READ | EV_PERSIST, process_reads, process);
    process->deadline = evtimer_new(base, process_times_out, process);
    process->poll = evtimer_new(base, process_asks, process);
    if (!process->reads || !process->deadline || !process->poll ||
        event_add(process->reads, NULL) != 0 || event_add(process->deadline, &after) != 0) {
        return td_error_set(err, TD_IO, "cannot watch a process");
    }
    return TD_OK;
}

static int process_run(struct td_process *process, const struct td_process_spec *spec,
                       int output_fd, struct td_error *err)
{
    td_auto_free const char **args = NULL;
    td_auto_free const char **env = NULL;
    int code = process_arguments(spec, &args, err);
    code = code < 0 ? code : process_environment(spec->env, &env, err);
    if (code < 0) {
        return code;
    }
    int reason = process_spawn(process, args, env, output_fd);
    if (reason) {
        code = reason == ENOENT ? TD_NOT_FOUND : reason == EACCES ? TD_DENIED : TD_IO;
        return td_error_set(err, code, "%s: %s", spec->command, strerror(reason));
    }
    return TD_OK;
}

int td_process_start(struct td_loop *loop, const struct td_process_spec *spec, td_process_fn fn,
                     void *context, struct td_process **ret, struct td_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return td_error_set(err, TD_IO, "%s: %s", spec->command, strerror(errno));
    }
    (void)fcntl(ends[1], F_SETFL, 0); /* the child's end waits, as programs expect */
    struct td_process *process = td_alloc_zero(1, sizeof(*process));
    *process = (struct td_process){.is_alone = !spec->passes_stdin,
                                   .fd = ends[0],
                                   .poll_us = PROCESS_POLL_FIRST_US,
                                   .fn = fn,
                                   .context = context};
    td_buf_init(&process->output, spec->output_bytes_max + PROCESS_PIECE_BYTES);
    int code = process_run(process, spec, ends[1], err);
    (void)close(ends[1]); /* the child has its own */
    code = code < 0 ? code : process_watch(process, loop, spec->deadline, err);
    if (code < 0) {
        td_process_free(process);
        return code;
    }
    *ret = process;
    return TD_OK;
}
