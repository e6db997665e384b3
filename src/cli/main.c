#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/os/usage.h"
#include "cli/command.h"

static const struct td_command main_commands[] = {
    {.name = "up",
     .summary = "start a local cluster: a Kubernetes API server in this process",
     .run = td_command_up},
    {.name = "run",
     .summary = "run the controllers on a cluster: vertical, horizontal, and both together",
     .run = td_command_run},
    {.name = "explain",
     .summary = "why an autoscaler decided what it did, and what would change it",
     .run = td_command_explain},
    {.name = "recommend",
     .summary = "right sizes of every container of a cluster, once, with nothing installed",
     .run = td_command_recommend},
    {.name = "simulate",
     .summary = "run a scenario in virtual time: what workloads used, waited for and lost",
     .run = td_command_simulate},
    {.name = "validate",
     .summary = "check manifests offline: fields, types, names, quantities, selectors",
     .run = td_command_validate},
    {.name = "replay",
     .summary = "back-test policies for requests on recorded use: slack, shortage, OOMs, changes",
     .run = td_command_replay},
    {.name = "manifests",
     .summary = "print what a cluster needs to run the controllers, for kubectl apply",
     .run = td_command_manifests},
};

#define MAIN_COMMAND_COUNT (sizeof(main_commands) / sizeof(main_commands[0]))

int td_command_fail(const char *format, ...)
{
    va_list args;
    (void)fputs("tandem: ", stderr); /* nowhere else to report that stderr is closed */
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    return TD_EXIT_FAILED;
}

static void main_help(FILE *out)
{
    (void)fputs(
        "tandem decides how big Kubernetes pods are and how many there are, the two together.\n\n"
        "  tandem validate k8s/            for example: check the manifests of a folder\n\n"
        "usage: tandem COMMAND [OPTIONS]    tandem COMMAND --help    tandem --version\n\n",
        out);
    for (size_t i = 0; i < MAIN_COMMAND_COUNT; i++) {
        (void)fprintf(out, "  %-12s %s\n", main_commands[i].name, main_commands[i].summary);
    }
    (void)fputs("\nExit status: 0 done, 1 found problems, 2 could not run. Guide: docs/\n", out);
}

static int main_dispatch(int argc, char **argv)
{
    if (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "version") == 0) {
        td_version_print();
        return TD_EXIT_DONE;
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 ||
        strcmp(argv[0], "help") == 0) {
        main_help(stdout);
        return TD_EXIT_DONE;
    }
    for (size_t i = 0; i < MAIN_COMMAND_COUNT; i++) {
        if (strcmp(argv[0], main_commands[i].name) == 0) {
            return main_commands[i].run(argc, argv);
        }
    }
    return td_command_fail("'%s' is not a command; 'tandem --help' lists them", argv[0]);
}

int main(int argc, char **argv)
{
    td_alloc_setup();
    td_usage_raise_files();
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an ordinary write error, seen below */
    if (argc < 2) {
        main_help(stderr);
        return TD_EXIT_FAILED;
    }
    int status = main_dispatch(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return td_command_fail("cannot write to standard output");
    }
    return status;
}
