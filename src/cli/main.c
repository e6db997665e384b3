/*
 * The list of commands, help, and what all of them share: the locale of the output and how a
 * program ends when the reader of its output is gone.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/os/usage.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/output.h"

static const struct td_command main_commands[] = {
    {.name = "up",
     .summary = "start a local cluster: a Kubernetes API server in this process",
     .is_long = true,
     .run = td_command_up},
    {.name = "run",
     .summary = "run the controllers on a cluster: VPA, HPA and Hvpa",
     .is_long = true,
     .run = td_command_run},
    {.name = "explain",
     .summary = "explain what an autoscaler decided and what would change it",
     .run = td_command_explain},
    {.name = "recommend",
     .summary = "recommend requests for every container of a cluster, once",
     .run = td_command_recommend},
    {.name = "simulate",
     .summary = "run a scenario with workloads and controllers in virtual time",
     .run = td_command_simulate},
    {.name = "validate",
     .summary = "check manifests offline: fields, types, quantities, selectors",
     .run = td_command_validate},
    {.name = "replay",
     .summary = "back-test request policies on recorded usage",
     .run = td_command_replay},
    {.name = "manifests",
     .summary = "print the manifests to install the controllers with kubectl apply",
     .run = td_command_manifests},
};

#define MAIN_WORD_BYTES_MAX 256 /* of a word that may be a command */
#define MAIN_COMMAND_COUNT (sizeof(main_commands) / sizeof(main_commands[0]))

static void main_help(FILE *out)
{
    (void)fputs(
        "tandem scales Kubernetes pods: requests (VPA), replicas (HPA) or both (Hvpa).\n\n  "
        "tandem validate k8s/            for example: check the manifests of a folder\n\nusage: "
        "tandem COMMAND [OPTIONS]    tandem help COMMAND    tandem --version\n\n",
        out);
    for (size_t i = 0; i < MAIN_COMMAND_COUNT; i++) {
        (void)fprintf(out, "  %-12s %s\n", main_commands[i].name, main_commands[i].summary);
    }
    (void)fputs("\nExit status: 0 success, 1 problems found, 2 failure. Guide: docs/\n", out);
}

/* Is the reader of standard output gone? Safe in a handler. */
static bool main_is_unread(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/* Ends as a program that does not look at signals: quietly, with status 141 in a shell. */
static void main_end_unread(void)
{
    (void)signal(SIGPIPE, SIG_DFL); /* neither fails for a signal that there is */
    (void)raise(SIGPIPE);
}

/* Sockets that are closed raise it too, and are no reason to end. */
static void main_on_pipe(int number)
{
    int saved = errno;
    (void)number;
    if (main_is_unread()) {
        main_end_unread();
    }
    errno = saved;
}

static int main_dispatch(int argc, char **argv)
{
    if (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "version") == 0) {
        td_version_print();
        return TD_EXIT_DONE;
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        main_help(stdout);
        return TD_EXIT_DONE;
    }
    for (size_t i = 0; i < MAIN_COMMAND_COUNT; i++) {
        if (strcmp(argv[0], main_commands[i].name) == 0) {
            (void)signal(SIGPIPE, main_commands[i].is_long ? SIG_IGN : main_on_pipe);
            return main_commands[i].run(argc, argv);
        }
    }
    const char *meant = td_str_suggest(td_str_from(argv[0]), main_commands, MAIN_COMMAND_COUNT,
                                       sizeof(main_commands[0]));
    return meant ? td_command_fail("'%s' is not a command; did you mean %s?", argv[0], meant)
                 : td_command_fail("'%s' is not a command; 'tandem --help' lists them", argv[0]);
}

/* `help X` is `X --help`. */
static int main_help_of(const char *command)
{
    char word[MAIN_WORD_BYTES_MAX];
    char help[] = "--help";
    char *argv[] = {word, help, NULL};
    (void)snprintf(word, sizeof(word), "%s", command); /* a longer one is no command either */
    return main_dispatch(2, argv);
}

int main(int argc, char **argv)
{
    td_alloc_setup();
    td_usage_raise_files();
    td_output_setup();
    if (argc < 2) {
        main_help(stderr);
        return TD_EXIT_FAILED;
    }
    bool is_help = strcmp(argv[1], "help") == 0;
    int status =
        is_help ? main_help_of(argc > 2 ? argv[2] : "--help") : main_dispatch(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (main_is_unread()) {
            main_end_unread();
        }
        return td_command_fail("cannot write to standard output");
    }
    return status;
}
