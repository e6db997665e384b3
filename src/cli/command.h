/*
 * The commands of the program, one file each: it reads its options, calls a library function and
 * renders what comes back. Exit status: 0 done, 1 found problems, 2 could not run (with one line on
 * standard error). Commands are the only code that prints.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"

enum { TD_EXIT_DONE = 0, TD_EXIT_PROBLEMS = 1, TD_EXIT_FAILED = 2 };

struct td_command {
    const char *name;
    const char *summary;               /* one line for `tandem --help` */
    bool is_long;                      /* goes on until a signal: a closed pipe does not end it */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
};

int td_command_validate(int argc, char **argv);
int td_command_replay(int argc, char **argv);
int td_command_simulate(int argc, char **argv);
int td_command_up(int argc, char **argv);
int td_command_run(int argc, char **argv);
int td_command_explain(int argc, char **argv);
int td_command_recommend(int argc, char **argv);
int td_command_manifests(int argc, char **argv);
int td_command_preflight(int argc, char **argv);
int td_command_page(int argc, char **argv);

/* `tandem --version`: program, commit, compiler, libraries. */
void td_version_print(void);
td_str td_version_text(void); /* "tandem 1.0.0 (commit abc)" */

/* One line on standard error, "tandem: ..."; returns TD_EXIT_FAILED. */
int td_command_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
