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
#include "cli/complete/complete.h"
#include "cli/complete/man.h"
#include "cli/options.h"
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
    {.name = "preflight",
     .summary = "check whether a cluster is fit for the controllers",
     .run = td_command_preflight},
    {.name = "explain",
     .summary = "explain what an autoscaler decided and what would change it",
     .run = td_command_explain},
    {.name = "page",
     .summary = "show a cluster in the browser: use, requests, decisions and why",
     .is_long = true,
     .run = td_command_page},
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

#define MAIN_WORDS_MAX 1024     /* of a line that is being typed */
#define MAIN_WORD_BYTES_MAX 256 /* of a word that may be a command */
#define MAIN_COMMAND_COUNT (sizeof(main_commands) / sizeof(main_commands[0]))

#define MAIN_HELP                                                                                  \
    "tandem scales Kubernetes pods: requests (VPA), replicas (HPA) or both (Hvpa).\n\n"            \
    "  tandem validate k8s/            for example: check the manifests of a folder\n\n"           \
    "usage: tandem COMMAND [OPTIONS]\n"                                                            \
    "       tandem help COMMAND    tandem man COMMAND    tandem --version\n\n"
#define MAIN_HELP_END "Exit status: 0 success, 1 problems found, 2 failure. Guide: docs/\n"

static void main_help(FILE *out)
{
    (void)fputs(MAIN_HELP, out);
    for (size_t i = 0; i < MAIN_COMMAND_COUNT; i++) {
        (void)fprintf(out, "  %-12s %s\n", main_commands[i].name, main_commands[i].summary);
    }
    (void)fputs("\n" MAIN_HELP_END, out);
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
            (void)signal(SIGXFSZ, SIG_IGN); /* a file over its limit is an error of write */
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

/* `man X` prints the manual page of X, in mdoc; `man` that of the program. */
static int main_man(int argc, char **argv)
{
    char word[MAIN_WORD_BYTES_MAX];
    char question[] = TD_OPTIONS_MAN;
    char *asked[] = {word, question, NULL};
    if (argc > 2) {
        return td_command_fail("man: '%s': takes one command", argv[2]);
    }
    if (argc < 2) {
        td_man_print_program(MAIN_HELP MAIN_HELP_END, main_commands, MAIN_COMMAND_COUNT);
        return TD_EXIT_DONE;
    }
    (void)snprintf(word, sizeof(word), "%s", argv[1]);
    return word[0] == '-'
               ? td_command_fail("man: '%s': takes a command, such as 'tandem man run'", word)
               : main_dispatch(2, asked);
}

/* `__complete WORD...`: what the last word may become (complete/complete.h). Of a command that
 * there is not nothing is known, and who types is not told so. */
static int main_complete(int argc, char **argv)
{
    char question[] = TD_OPTIONS_COMPLETE;
    char *asked[MAIN_WORDS_MAX + 1] = {argc > 1 ? argv[1] : NULL, question};
    bool is_about = argc == 3 && (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "man") == 0);
    for (size_t i = 0; argc > 2 && argc <= MAIN_WORDS_MAX && i < MAIN_COMMAND_COUNT; i++) {
        if (strcmp(argv[1], main_commands[i].name) == 0) {
            memcpy(asked + 2, argv + 2, (size_t)(argc - 2) * sizeof(*argv));
            return main_dispatch(argc, asked);
        }
    }
    for (size_t i = 0; (argc == 2 || is_about) && i < MAIN_COMMAND_COUNT; i++) {
        td_complete_print(argv[argc - 1], main_commands[i].name, main_commands[i].summary);
    }
    if (argc == 2) {
        td_complete_print(argv[1], "help", "print the help of a command");
        td_complete_print(argv[1], "man", "print the manual page of a command");
    }
    td_complete_end(TD_COMPLETE_NO_FILES);
    return TD_EXIT_DONE;
}

/* What is about commands, and none itself. */
static int main_words(int argc, char **argv)
{
    if (strcmp(argv[0], "help") == 0) {
        return main_help_of(argc > 1 ? argv[1] : "--help");
    }
    if (strcmp(argv[0], "man") == 0) {
        return main_man(argc, argv);
    }
    return strcmp(argv[0], "__complete") == 0 ? main_complete(argc, argv)
                                              : main_dispatch(argc, argv);
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
    int status = main_words(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (main_is_unread()) {
            main_end_unread();
        }
        return td_command_fail("cannot write to standard output");
    }
    return status;
}
