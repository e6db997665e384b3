/*
 * A child process: run a command, gather what it prints on
 * standard output under a cap, and tell how it ended, all on the loop. The child gets our
 * environment with the given variables added, standard error as ours, and standard input only when
 * asked. Its deadline is real time, whatever clock the loop has: a process does not run faster in a
 * simulation. When it is over its time or its cap, or freed early, it is killed with those it
 * started.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/os/clock.h"
#include "base/str.h"

struct td_error;
struct td_loop;
struct td_process;

struct td_process_spec {
    const char *command;     /* with a slash a path, else looked up in PATH */
    const char *const *args; /* without the command; NULL ends it */
    const char *const *env;  /* "NAME=value" over ours, the last of a name wins; NULL ends it */
    bool passes_stdin;       /* the terminal's; else it reads nothing */
    size_t output_bytes_max;
    td_duration deadline;
};

struct td_process_end {
    int code; /* TD_OK: it exited, see status; TD_TIMEOUT, TD_LIMIT or TD_IO: it was killed */
    int exit_status; /* 0 to 255; 128 and its number when a signal ended it */
    td_str output;   /* valid during the call */
};

/* Called once from the loop, never from inside start; the process may be freed inside it. */
typedef void (*td_process_fn)(const struct td_process_end *end, void *context);

/* TD_NOT_FOUND when there is no such command, TD_DENIED when it may not be run. What `spec` points
 * at is not needed afterwards. */
int td_process_start(struct td_loop *loop, const struct td_process_spec *spec, td_process_fn fn,
                     void *context, struct td_process **ret, struct td_error *err);

/* Kills what still runs, without calling back. NULL is accepted. */
void td_process_free(struct td_process *process);

/* May a child talk to a person through our standard input? */
bool td_process_has_terminal(void);
