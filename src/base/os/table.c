/*
 * The text is walked twice: for the widths of columns, and to write. A cell is borrowed from the
 * text, so nothing is kept but the widths.
 */
#include "base/os/table.h"

#include "base/limits.h"
#include "base/os/screen_text.h"

#define TABLE_COLUMNS_MAX 32
#define TABLE_SENTENCE_MIN 16 /* columns that a cut sentence needs to say anything */

struct table {
    const struct td_table_options *options;
    size_t widths[TABLE_COLUMNS_MAX];
    size_t count; /* of columns */
    size_t shown;
    td_str titles; /* the first row; empty before it was seen */
    struct td_buf *out;
};

size_t td_table_fit(const size_t *widths, size_t count, size_t width)
{
    size_t end = 1 + widths[0];
    size_t shown = 1;
    while (shown < count && end + TD_TABLE_GAP + widths[shown] <= width) {
        end += TD_TABLE_GAP + widths[shown];
        shown++;
    }
    return shown;
}

static td_str table_line(td_str *text)
{
    size_t end = td_str_find(*text, '\n', 0);
    td_str line = td_str_slice(*text, 0, end);
    *text = td_str_slice(*text, end + 1, text->len);
    return line;
}

static bool table_is_row(td_str line)
{
    return td_str_find(line, '\t', 0) < line.len;
}

/* Cell by cell; false behind the last one. */
static bool table_cell(td_str line, size_t *at, td_str *ret)
{
    if (*at > line.len) {
        return false;
    }
    size_t end = td_str_find(line, '\t', *at);
    *ret = td_str_slice(line, *at, end);
    *at = end + 1;
    return true;
}

static void table_measure(struct table *table, td_str text)
{
    while (text.len > 0) {
        td_str line = table_line(&text);
        td_str cell;
        size_t at = 0;
        for (size_t c = 0;
             table_is_row(line) && c < TABLE_COLUMNS_MAX && table_cell(line, &at, &cell); c++) {
            size_t width = td_screen_width(cell);
            table->widths[c] = width > table->widths[c] ? width : table->widths[c];
            table->count = c + 1 > table->count ? c + 1 : table->count;
        }
        table->titles = table->titles.len == 0 && table_is_row(line) ? line : table->titles;
    }
    if (table->options->width == 0 || table->count == 0) {
        table->shown = table->count;
        return;
    }
    size_t fit[TABLE_COLUMNS_MAX];
    memcpy(fit, table->widths, sizeof(fit));
    size_t *last = &fit[table->count - 1];
    if (table->options->has_sentences && *last > TABLE_SENTENCE_MIN) {
        *last = TABLE_SENTENCE_MIN;
    }
    table->shown = td_table_fit(fit, table->count, table->options->width);
}

static void table_spaces(struct td_buf *out, size_t count)
{
    (void)td_buf_append_format(out, "%*s", (int)count, ""); /* the owner of the buffer checks it */
}

static void table_row(struct table *table, td_str line)
{
    const struct td_table_options *options = table->options;
    size_t columns = 1;
    size_t waiting = 1; /* spaces that come before the next text */
    td_str cell;
    size_t at = 0;
    for (size_t c = 0; c < table->shown && table_cell(line, &at, &cell); c++) {
        size_t width = td_screen_width(cell);
        size_t fill = table->widths[c] > width ? table->widths[c] - width : 0;
        bool is_right = options->right >> c & 1u;
        size_t room = options->width > columns ? options->width - columns : 0;
        td_auto_buf cut = td_buf_capped(TD_SCREEN_CELL_BYTES_MAX);
        if (options->width > 0 && width > room) {
            td_screen_clip(&cut, cell, room, options->has_utf8);
            cell = td_buf_str(&cut);
        }
        waiting += is_right ? fill : 0;
        if (cell.len > 0) {
            table_spaces(table->out, waiting);
            (void)td_buf_append(table->out, cell);
            waiting = 0;
        }
        waiting += (is_right ? 0 : fill) + TD_TABLE_GAP;
        columns += table->widths[c] + TD_TABLE_GAP;
    }
    (void)td_buf_append_char(table->out, '\n');
}

/* Folded: no line is wider than the terminal unless one word is. */
static void table_note(struct table *table, td_str line)
{
    size_t width = table->options->width;
    while (width > 0 && td_screen_width(line) > width) {
        size_t end = td_screen_cut(line, width).len;
        while (end > 0 && line.ptr[end] != ' ') {
            end--;
        }
        end = end > 0 ? end : td_str_find(line, ' ', 0);
        (void)td_buf_append(table->out, td_str_slice(line, 0, end));
        (void)td_buf_append_char(table->out, '\n');
        line = td_str_slice(line, end + 1, line.len);
    }
    (void)td_buf_append(table->out, line);
    (void)td_buf_append_char(table->out, '\n');
}

static void table_dropped(struct table *table)
{
    td_auto_buf note = td_buf_capped(TD_SCREEN_CELL_BYTES_MAX);
    td_str title;
    size_t at = 0;
    for (size_t c = 0; table_cell(table->titles, &at, &title); c++) {
        if (c >= table->shown) {
            (void)td_buf_append_format(
                &note, "%s%.*s",
                note.len > 0 ? ", " : "a wider terminal also shows: ", TD_STR_ARG(title));
        }
    }
    if (note.len > 0) {
        table_note(table, td_buf_str(&note));
    }
}

void td_table_write(td_str text, const struct td_table_options *options, struct td_buf *out)
{
    td_auto_buf ascii = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    if (!options->has_utf8) {
        td_screen_ascii(&ascii, text);
        text = td_buf_str(&ascii);
    }
    struct table table = {.options = options, .out = out};
    table_measure(&table, text);
    bool was_row = false;
    while (text.len > 0) {
        td_str line = table_line(&text);
        bool is_row = table_is_row(line);
        if (was_row && !is_row) {
            table_dropped(&table);
        }
        if (is_row) {
            table_row(&table, line);
        } else {
            table_note(&table, line);
        }
        was_row = is_row;
    }
    if (was_row) {
        table_dropped(&table);
    }
    out->is_full = out->is_full || ascii.is_full;
}
