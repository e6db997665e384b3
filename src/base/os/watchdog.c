/*
 * The handler only counts, writes a byte into the pipe, and at the end writes what is prepared: it
 * calls nothing that is not safe in a handler. The first call of backtrace loads a library, so it
 * is made at the start.
 */
#include "base/os/watchdog.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define WATCHDOG_HAS_STACK 1
#endif

#include "base/assert.h"
#include "base/error.h"
#include "base/os/loop.h"

#define WATCHDOG_TICKS 5 /* that the loop may miss */
#define WATCHDOG_FRAMES_MAX 48
#define WATCHDOG_TEXT_BYTES 160

static struct {
    int ends[2]; /* of the pipe: the loop reads the first */
    struct event *event;
    volatile sig_atomic_t missed;
    char text[WATCHDOG_TEXT_BYTES]; /* the last words */
    size_t text_len;
} watchdog = {.ends = {-1, -1}};

static void watchdog_bite(void)
{
    if (write(STDERR_FILENO, watchdog.text, watchdog.text_len) < 0) {
        /* nowhere else to say it: the signal below says that something is wrong */
    }
#ifdef WATCHDOG_HAS_STACK
    void *frames[WATCHDOG_FRAMES_MAX];
    backtrace_symbols_fd(frames, backtrace(frames, WATCHDOG_FRAMES_MAX), STDERR_FILENO);
#endif
    (void)signal(SIGABRT, SIG_DFL); /* it does not fail for a signal that there is */
    abort();
}

static void watchdog_tick(int number)
{
    int saved = errno;
    (void)number;
    if (++watchdog.missed > WATCHDOG_TICKS) {
        watchdog_bite();
    }
    if (write(watchdog.ends[1], "", 1) < 0) {
        /* a full pipe is a loop that reads nothing: the count goes on */
    }
    errno = saved;
}

static void watchdog_turned(evutil_socket_t fd, short what, void *context)
{
    char bytes[64];
    (void)what;
    (void)context;
    while (read(fd, bytes, sizeof(bytes)) > 0) {
    }
    watchdog.missed = 0;
}

static int watchdog_arm(td_duration allowed, struct td_error *err)
{
    struct sigaction action = {.sa_handler = watchdog_tick, .sa_flags = SA_RESTART};
    td_duration micros = allowed / TD_MICROSECOND / WATCHDOG_TICKS;
    const struct timeval tick = {
        .tv_sec = (time_t)(micros / 1000000),
        .tv_usec = (suseconds_t)(micros % 1000000),
    };
    const struct itimerval timer = {.it_interval = tick, .it_value = tick};
    (void)sigemptyset(&action.sa_mask); /* fails for no set */
    if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &timer, NULL) != 0) {
        return td_error_set(err, TD_IO, "cannot watch the event loop: %s", strerror(errno));
    }
    return TD_OK;
}

int td_watchdog_start(struct td_loop *loop, td_duration allowed, struct td_error *err)
{
    td_assert(!watchdog.event);
    td_assert(allowed >= TD_MILLISECOND);
#ifdef WATCHDOG_HAS_STACK
    void *frame[1];
    (void)backtrace(frame, 1); /* loads what it needs */
#endif
    int len = snprintf(
        watchdog.text, sizeof(watchdog.text),
        "tandem: the event loop has not turned for %lld ms: the process ends. Where it stood:\n",
        (long long)(allowed / TD_MILLISECOND));
    td_assert(len > 0 && (size_t)len < sizeof(watchdog.text));
    watchdog.text_len = (size_t)len;
    watchdog.missed = 0;
    if (pipe2(watchdog.ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return td_error_set(err, TD_IO, "cannot watch the event loop: %s", strerror(errno));
    }
    watchdog.event = event_new(td_loop_base(loop), watchdog.ends[0], EV_READ | EV_PERSIST,
                               watchdog_turned, NULL);
    if (!watchdog.event || event_add(watchdog.event, NULL) != 0) {
        td_watchdog_stop();
        return td_error_set(err, TD_IO, "cannot watch the event loop");
    }
    int code = watchdog_arm(allowed, err);
    if (code != TD_OK) {
        td_watchdog_stop();
    }
    return code;
}

void td_watchdog_stop(void)
{
    const struct itimerval none = {.it_value = {.tv_sec = 0}};
    (void)setitimer(ITIMER_REAL, &none, NULL); /* fails for no timer that there is */
    (void)signal(SIGALRM, SIG_DFL);            /* it does not fail for a signal that there is */
    if (watchdog.event) {
        event_free(watchdog.event);
        watchdog.event = NULL;
    }
    for (size_t i = 0; i < 2; i++) {
        if (watchdog.ends[i] >= 0) {
            (void)close(watchdog.ends[i]); /* nothing was kept in it */
            watchdog.ends[i] = -1;
        }
    }
}
