/*
 * What a shell asks while a command line is typed: `tandem __complete WORD...` prints what the last
 * word may become, a candidate a line with what it means behind a tab, and at the end ":N", which
 * says what else the shell may do. The form is that of kubectl's plugins, so that one answer serves
 * bash, zsh, fish and `kubectl tandem`. Everything comes from the tables that options are read by
 * and from the help text.
 */
#pragma once

#include <stddef.h>

struct td_options;

/* The sum of these stands behind the colon. */
enum { TD_COMPLETE_NO_SPACE = 2, TD_COMPLETE_NO_FILES = 4, TD_COMPLETE_FOLDERS = 16 };

/* Prints for a command and the words behind its name, of which the last one, maybe empty, is being
 * typed. Returns TD_EXIT_DONE: a line that is wrong so far has no candidates. */
int td_complete(const struct td_options *options, int count, char **words);

/* One candidate and the last line, for the word before all options. */
void td_complete_print(const char *typed, const char *candidate, const char *meaning);
void td_complete_end(int directive);
