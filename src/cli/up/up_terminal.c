/*
 * Terminal settings, the size of the window, keys, and the redrawing of changed lines. A signal
 * handler puts the terminal back with calls that are safe there.
 */
#include "cli/up/up_terminal.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"

#define TERMINAL_COLUMNS 80 /* of a terminal that does not say */
#define TERMINAL_LINES 24
#define TERMINAL_HIDE "\033[?25l"
#define TERMINAL_SHOW "\033[?25h"
#define TERMINAL_CLEAR "\033[H\033[2J"

struct td_terminal {
    struct td_terminal_options options;
    struct event *input; /* NULL: no keys */
    struct event *resized;
    struct event *suspended;
    struct td_buf shown; /* the last frame */
    struct td_buf next;  /* what is written to get to the next one */
};

/* What a handler of signals may touch: enough to put everything back. */
static struct {
    volatile sig_atomic_t is_on;
    volatile sig_atomic_t has_settings;
    struct termios settings; /* as we found them */
} terminal_state;

static const int terminal_crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGQUIT};
#define TERMINAL_CRASHES (sizeof(terminal_crashes) / sizeof(terminal_crashes[0]))
static struct sigaction terminal_before[TERMINAL_CRASHES];

bool td_terminal_is_there(const char *term)
{
    return isatty(STDOUT_FILENO) && term && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

void td_terminal_size(size_t *ret_columns, size_t *ret_lines)
{
    struct winsize size;
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    *ret_columns = is_known ? size.ws_col : TERMINAL_COLUMNS;
    *ret_lines = is_known && size.ws_row > 0 ? size.ws_row : TERMINAL_LINES;
}

/* Safe in a handler. What the terminal does not accept is lost: there is no other output. */
static void terminal_write(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, len);
        if (written < 0 && errno != EINTR) {
            return;
        }
        size_t done = written > 0 ? (size_t)written : 0;
        bytes += done;
        len -= done;
    }
}

/* Safe in a handler. */
static void terminal_leave(void)
{
    if (!terminal_state.is_on) {
        return;
    }
    terminal_state.is_on = 0;
    terminal_write(TERMINAL_SHOW, sizeof(TERMINAL_SHOW) - 1);
    if (terminal_state.has_settings) {
        /* A terminal that is gone needs no settings. */
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal_state.settings);
    }
}

/* Puts the terminal back, then lets happen what would have happened without us. */
static void terminal_crash(int signal_number)
{
    terminal_leave();
    for (size_t i = 0; i < TERMINAL_CRASHES; i++) {
        if (terminal_crashes[i] == signal_number) {
            (void)sigaction(signal_number, &terminal_before[i], NULL); /* cannot fail: it was set */
        }
    }
    (void)raise(signal_number);
}

static void terminal_catch(void)
{
    struct sigaction action = {.sa_handler = terminal_crash};
    (void)sigemptyset(&action.sa_mask); /* these cannot fail: signals and pointers are good */
    for (size_t i = 0; i < TERMINAL_CRASHES; i++) {
        (void)sigaction(terminal_crashes[i], &action, &terminal_before[i]);
    }
}

static void terminal_uncatch(void)
{
    for (size_t i = 0; i < TERMINAL_CRASHES; i++) {
        (void)sigaction(terminal_crashes[i], &terminal_before[i], NULL); /* as above */
    }
}

/* Without job control no other process group owns it. */
static bool terminal_is_ours(void)
{
    pid_t group = tcgetpgrp(STDOUT_FILENO);
    return group < 0 || group == getpgrp();
}

/* In the background settings cannot be changed: the system would stop us. */
static void terminal_enter(struct td_terminal *terminal)
{
    if (terminal_state.is_on || !terminal_is_ours()) {
        return;
    }
    struct termios settings;
    terminal_state.has_settings = terminal->input && tcgetattr(STDIN_FILENO, &settings) == 0;
    terminal_state.settings = terminal_state.has_settings ? settings : terminal_state.settings;
    terminal_state.is_on = 1;
    if (terminal_state.has_settings) {
        settings.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        /* A failure leaves keys to be ended by Enter; they still work. */
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &settings);
        (void)event_add(terminal->input, NULL); /* without it there are no keys */
    }
    terminal_write(TERMINAL_HIDE, sizeof(TERMINAL_HIDE) - 1);
}

static void terminal_suspend(struct td_terminal *terminal)
{
    if (terminal->input) {
        (void)event_del(terminal->input); /* fails only for events that were never made */
    }
    terminal_leave();
}

static void terminal_begin_anew(struct td_terminal *terminal)
{
    if (terminal_state.is_on) {
        td_buf_reset(&terminal->shown);
        terminal_write(TERMINAL_CLEAR, sizeof(TERMINAL_CLEAR) - 1);
        terminal->options.cleared(terminal->options.context);
    }
}

static void terminal_on_input(evutil_socket_t fd, short what, void *context)
{
    struct td_terminal *terminal = context;
    char keys[64];
    (void)what;
    ssize_t count = read((int)fd, keys, sizeof(keys));
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) {
        (void)event_del(terminal->input); /* the terminal is gone; its end is told by a signal */
    }
    for (ssize_t i = 0; i < count; i++) {
        terminal->options.key(keys[i], terminal->options.context);
    }
}

static void terminal_on_resize(evutil_socket_t signal_number, short what, void *context)
{
    (void)signal_number;
    (void)what;
    terminal_begin_anew(context);
}

/* Ctrl-Z: the shell gets its terminal as it was. What follows happens when we go on. */
static void terminal_on_suspend(evutil_socket_t signal_number, short what, void *context)
{
    (void)signal_number;
    (void)what;
    terminal_suspend(context);
    (void)raise(SIGSTOP);
    terminal_enter(context);
    terminal_begin_anew(context);
}

int td_terminal_new(const struct td_terminal_options *options, struct td_terminal **ret,
                    struct td_error *err)
{
    td_assert(!terminal_state.is_on);
    struct td_terminal *terminal = td_alloc_zero(1, sizeof(*terminal));
    terminal->options = *options;
    td_buf_init(&terminal->shown, TD_SCREEN_BYTES_MAX);
    td_buf_init(&terminal->next, 2 * TD_SCREEN_BYTES_MAX);
    terminal->resized = evsignal_new(options->base, SIGWINCH, terminal_on_resize, terminal);
    terminal->suspended = evsignal_new(options->base, SIGTSTP, terminal_on_suspend, terminal);
    if (isatty(STDIN_FILENO)) {
        terminal->input = event_new(options->base, STDIN_FILENO, EV_READ | EV_PERSIST,
                                    terminal_on_input, terminal);
    }
    terminal_catch();
    if (!terminal->resized || !terminal->suspended || event_add(terminal->resized, NULL) != 0 ||
        event_add(terminal->suspended, NULL) != 0) {
        td_terminal_free(terminal);
        return td_error_set(err, TD_IO, "cannot wait for signals of the terminal");
    }
    terminal_enter(terminal);
    *ret = terminal;
    return TD_OK;
}

void td_terminal_free(struct td_terminal *terminal)
{
    if (!terminal) {
        return;
    }
    terminal_suspend(terminal);
    terminal_uncatch();
    struct event *const events[] = {terminal->input, terminal->resized, terminal->suspended};
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        if (events[i]) {
            event_free(events[i]);
        }
    }
    td_buf_done(&terminal->shown);
    td_buf_done(&terminal->next);
    td_free(terminal);
}

/* ---- Drawing ---- */

static size_t frame_lines(td_str frame)
{
    size_t count = 0;
    for (size_t at = td_str_find(frame, '\n', 0); at < frame.len;
         at = td_str_find(frame, '\n', at + 1)) {
        count++;
    }
    return count;
}

/* The line at `*at`, without its end; empty behind the last one. Moves on. */
static td_str frame_line(td_str frame, size_t *at)
{
    size_t end = td_str_find(frame, '\n', *at);
    td_str line = td_str_slice(frame, *at, end);
    *at = end < frame.len ? end + 1 : frame.len;
    return line;
}

/* From the line below the last frame to the line below this one. */
static void frame_update(td_str shown, td_str frame, struct td_buf *out)
{
    size_t before = frame_lines(shown);
    size_t count = frame_lines(frame);
    size_t shown_at = 0;
    size_t frame_at = 0;
    if (before > 0) {
        (void)td_buf_append_format(out, "\033[%zuA", before); /* checked once, by the caller */
    }
    for (size_t i = 0; i < count; i++) {
        td_str old = frame_line(shown, &shown_at);
        td_str line = frame_line(frame, &frame_at);
        if (i >= before || !td_str_equal(old, line)) {
            (void)td_buf_append(out, TD_STR("\r\033[2K"));
            (void)td_buf_append(out, line);
        }
        (void)td_buf_append_char(out, '\n');
    }
    if (count < before) {
        (void)td_buf_append(out, TD_STR("\033[J"));
    }
}

static bool terminal_takes_output(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0;
}

void td_terminal_draw(struct td_terminal *terminal, td_str frame)
{
    if (!terminal_state.is_on) {
        terminal_enter(terminal);
        terminal_begin_anew(terminal); /* which draws */
        return;
    }
    if (td_str_equal(td_buf_str(&terminal->shown), frame) || !terminal_takes_output()) {
        return;
    }
    td_buf_reset(&terminal->next);
    frame_update(td_buf_str(&terminal->shown), frame, &terminal->next);
    td_buf_reset(&terminal->shown);
    if (terminal->next.is_full || td_buf_append(&terminal->shown, frame) != TD_OK) {
        td_buf_reset(&terminal->shown); /* larger than any window: not drawn */
        return;
    }
    terminal_write(terminal->next.ptr, terminal->next.len);
}
