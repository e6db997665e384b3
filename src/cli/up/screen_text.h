/*
 * Text for a terminal: cleaned of what a terminal would take for an order (names and messages come
 * from anybody who may write to the API) and measured in columns, of which some characters take two
 * and some none. Pure functions; nothing depends on the process's locale.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* Appends the text without control characters: line ends and tabs become spaces, the others and
 * broken bytes '?'. Without UTF-8 arrows become "->" and other characters beyond ASCII '?'. What
 * does not fit into the buffer is left out. */
void td_screen_clean(struct td_buf *buf, td_str text, bool has_utf8);

/* Columns of a clean text. */
size_t td_screen_width(td_str text);

/* The longest start of a clean text that takes at most `columns_max`. */
td_str td_screen_cut(td_str text, size_t columns_max);

/* "430m", "2.1", "12.5", "140" */
void td_screen_cpu(struct td_buf *buf, double milli);
/* "180Mi", "1.1Gi", "1.4Ti" */
void td_screen_memory(struct td_buf *buf, double bytes);
/* "0%", "<1%", "12%" */
void td_screen_share(struct td_buf *buf, double share);
/* "45ms", "2.1s", "12m"; "<1ms" */
void td_screen_span(struct td_buf *buf, double seconds);
