/*
 * Text for a terminal: cleaned of what a terminal would take for an order (names and messages come
 * from any client that may write to the API) and measured in columns, of which some characters take
 * two and some none. Where the locale has no UTF-8 everything is ASCII: characters that we use have
 * a spelling (an arrow is "->"), others are '?'. Pure functions but for td_screen_stream.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/os/env.h"
#include "base/str.h"

/* Does the locale of the environment have UTF-8? LC_ALL counts before LC_CTYPE before LANG; none of
 * them set is the locale C, which has not. */
bool td_screen_has_utf8(td_env_fn env, void *context);

/* Appends the text in ASCII; line ends and control characters stay. */
void td_screen_ascii(struct td_buf *buf, td_str text);

/* Appends a JSON text in ASCII: other characters, which only its strings have, are escaped. */
void td_screen_ascii_json(struct td_buf *buf, td_str json);

/* A stream that writes what it gets to the descriptor in ASCII, however it was cut into pieces;
 * buffered as `mode` says (_IOFBF, _IOLBF, _IONBF). NULL: there is no memory for one. The
 * descriptor stays open when it is closed. */
FILE *td_screen_stream(int fd, int mode);

/* Appends the text without control characters: line ends and tabs become spaces, the others and
 * broken bytes '?'; in ASCII without UTF-8. What does not fit into the buffer is left out. */
void td_screen_clean(struct td_buf *buf, td_str text, bool has_utf8);

/* Columns of a clean text. */
size_t td_screen_width(td_str text);

/* The longest start of a clean text that takes at most `columns_max`. */
td_str td_screen_cut(td_str text, size_t columns_max);

/* Appends a clean text whole when it takes at most `columns_max`, else its start up to the end of a
 * word and an ellipsis ("..." without UTF-8). */
void td_screen_clip(struct td_buf *buf, td_str text, size_t columns_max, bool has_utf8);
