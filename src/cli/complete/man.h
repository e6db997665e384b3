/*
 * The manual page of a command, in mdoc, from its help and from the table of flags: `tandem man
 * COMMAND`. `make install` lays the pages down; `tandem man COMMAND | man -l -` reads one without.
 */
#pragma once

#include <stddef.h>

struct td_command;
struct td_options;

/* Prints the page of a command; returns TD_EXIT_DONE. */
int td_man_print(const struct td_options *options);

/* Prints the page of the program: `help` is what `tandem --help` begins with. */
void td_man_print_program(const char *help, const struct td_command *commands, size_t count);
