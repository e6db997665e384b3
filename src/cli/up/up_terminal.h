/*
 * The terminal under a live table: a frame is redrawn in place below what was printed before it,
 * only lines that changed; keys come without waiting for a line; and the cursor and the settings
 * are put back however the program ends: freed, stopped by Ctrl-Z, or crashed. In the background
 * (`tandem up &`) nothing is drawn and nothing read. Standard input and output are used; keys are
 * off when input is no terminal. One at a time in a process, because signals know only one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct event_base;
struct td_error;
struct td_terminal;

struct td_terminal_options {
    struct event_base *base;
    void (*key)(char key, void *context);
    /* The window has another size, or another process wrote to it for a while: it is empty now, and
     * all that should be on it is to be printed and drawn again. */
    void (*cleared)(void *context);
    void *context;
};

/* Is standard output a terminal that can be drawn on? `term` is $TERM. */
bool td_terminal_is_there(const char *term);

int td_terminal_new(const struct td_terminal_options *options, struct td_terminal **ret,
                    struct td_error *err);
void td_terminal_free(struct td_terminal *terminal); /* NULL is accepted */

void td_terminal_size(size_t *ret_columns, size_t *ret_lines);

/* Lines, each ended by a newline and none wider than the window. Fewer than the window's, so that
 * the cursor has a line too. Skipped when the terminal takes nothing now (Ctrl-S). */
void td_terminal_draw(struct td_terminal *terminal, td_str frame);
