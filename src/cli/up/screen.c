/*
 * A table is made in two passes over the rows that fit: the first finds how wide each column is,
 * the second writes. Both make a cell's text anew in one scratch buffer, so nothing is kept. Widths
 * have a minimum that fits ordinary values: a column does not move when a number gains a digit.
 */
#include "cli/up/screen.h"

#include <stdint.h>

#include "base/limits.h"
#include "base/os/screen_text.h"
#include "base/os/table.h"
#include "cli/up/screen_number.h"

#define SCREEN_HELP_AT 17       /* columns for titles, where they are explained */
#define SCREEN_LINES_ABOVE 3    /* status, an empty one, titles */
#define SCREEN_THROTTLED 0.01   /* a share from which on it is worth a look ... */
#define SCREEN_STRANGLED 0.25   /* ... and from which on it is bad */
#define SCREEN_STATUS_GAP "   " /* between parts of the first line */

enum screen_state { SCREEN_PLAIN, SCREEN_TITLE, SCREEN_LOOK, SCREEN_BAD };

/* One line being written. */
struct screen_line {
    const struct td_screen *screen;
    struct td_buf *buf;
    size_t columns; /* written, spaces that wait included */
    size_t spaces;  /* that wait: a line does not end in them */
};

static void line_space(struct screen_line *line, size_t count)
{
    line->spaces += count;
    line->columns += count;
}

/* Up to the screen's edge; returns the columns it took. Results of appending are not looked at: a
 * frame that its buffer cannot hold is short, and the caller sees that. */
static size_t line_text(struct screen_line *line, td_str text, enum screen_state state)
{
    static const char *const colours[] = {"", "\033[1m", "\033[33m", "\033[31m"};
    size_t room = line->screen->width > line->columns ? line->screen->width - line->columns : 0;
    td_str cut = td_str_trim(td_screen_cut(text, room));
    if (cut.len == 0) {
        return 0;
    }
    bool is_coloured = line->screen->has_colour && state != SCREEN_PLAIN;
    (void)td_buf_append_format(line->buf, "%*s", (int)line->spaces, "");
    (void)td_buf_append(line->buf, td_str_from(is_coloured ? colours[state] : ""));
    (void)td_buf_append(line->buf, cut);
    (void)td_buf_append(line->buf, is_coloured ? TD_STR("\033[0m") : TD_STR_EMPTY);
    size_t columns = td_screen_width(cut);
    line->spaces = 0;
    line->columns += columns;
    return columns;
}

/* A sentence that the rest of the line has no room for ends with a word and an ellipsis. */
static void line_clip(const struct screen_line *line, struct td_buf *text)
{
    td_auto_buf whole = td_buf_capped(TD_SCREEN_CELL_BYTES_MAX);
    size_t width = line->screen->width;
    (void)td_buf_append(&whole, td_buf_str(text)); /* of the same size */
    td_buf_reset(text);
    td_screen_clip(text, td_buf_str(&whole), width > line->columns ? width - line->columns : 0,
                   line->screen->has_utf8);
}

static void line_end(struct screen_line *line)
{
    (void)td_buf_append_char(line->buf, '\n');
    line->columns = 0;
    line->spaces = 0;
}

/* ---- The status ---- */

static void status_time(struct td_buf *buf, td_duration since, bool has_seconds)
{
    int64_t seconds = since / TD_SECOND;
    (void)td_buf_append_format(buf, "day %lld %02lld:%02lld", (long long)(seconds / 86400 + 1),
                               (long long)(seconds / 3600 % 24), (long long)(seconds / 60 % 60));
    if (has_seconds) {
        (void)td_buf_append_format(buf, ":%02lld", (long long)(seconds % 60));
    }
}

static void status_slack(struct td_buf *buf, const char *word, double requested, double used)
{
    if (requested > 0 && used <= requested) {
        (void)td_buf_append_format(buf, " (%s%.0f%%)", word, (1 - used / requested) * 100);
    } else if (requested > 0) {
        (void)td_buf_append_format(buf, " (over by %.0f%%)", (used / requested - 1) * 100);
    }
}

static void status_cpu(struct td_buf *buf, const struct td_world_view *view)
{
    double requested = (double)view->requested.cpu_request_milli;
    (void)td_buf_append_format(buf, "cpu req %.1f used %.1f", requested / 1000,
                               view->used.cpu_milli / 1000);
    status_slack(buf, "slack ", requested, view->used.cpu_milli);
}

static void status_memory(struct td_buf *buf, const struct td_world_view *view)
{
    double requested = (double)view->requested.memory_request_bytes;
    (void)td_buf_append(buf, TD_STR("memory req "));
    td_screen_memory(buf, requested);
    (void)td_buf_append(buf, TD_STR(" used "));
    td_screen_memory(buf, view->used.memory_bytes);
    status_slack(buf, "", requested, view->used.memory_bytes);
}

static enum screen_state status_pods(struct td_buf *buf, const struct td_world_view *view)
{
    (void)td_buf_append_format(buf, "pods %zu", view->pod_count);
    if (view->pending_count > 0) {
        (void)td_buf_append_format(buf, " (%zu pending)", view->pending_count);
        return SCREEN_LOOK;
    }
    return SCREEN_PLAIN;
}

/* Nodes are told of only while one is missing. */
static enum screen_state status_nodes(struct td_buf *buf, const struct td_world_view *view)
{
    if (view->ready_node_count < view->node_count) {
        (void)td_buf_append_format(buf, "nodes %zu of %zu", view->ready_node_count,
                                   view->node_count);
    }
    return SCREEN_BAD;
}

#define SCREEN_STATUS_PARTS 8

/* The part of that number, empty when there is nothing to tell. */
static enum screen_state status_part(struct td_buf *buf, const struct td_world_view *view,
                                     size_t number)
{
    switch (number) {
    case 0:
        status_time(buf, view->since, false);
        return SCREEN_PLAIN;
    case 1:
        return status_nodes(buf, view);
    case 2:
        return status_pods(buf, view);
    case 3:
        status_cpu(buf, view);
        return SCREEN_PLAIN;
    case 4:
        status_memory(buf, view);
        return SCREEN_PLAIN;
    case 5:
        (void)td_buf_append_format(buf, "oom %llu", (unsigned long long)view->kill_count);
        return SCREEN_PLAIN;
    case 6:
        (void)td_buf_append_format(buf, "evictions %llu", (unsigned long long)view->eviction_count);
        return SCREEN_PLAIN;
    default:
        (void)td_buf_append_format(buf, "resizes %llu", (unsigned long long)view->resize_count);
        return SCREEN_PLAIN;
    }
}

/* Parts that do not fit whole are left out, the first one is cut. */
static void screen_status(struct screen_line *line, const struct td_world_view *view,
                          struct td_buf *scratch)
{
    line_space(line, 1);
    for (size_t i = 0; i < SCREEN_STATUS_PARTS; i++) {
        td_buf_reset(scratch);
        enum screen_state state = status_part(scratch, view, i);
        if (scratch->len == 0) {
            continue;
        }
        size_t gap = i > 0 ? sizeof(SCREEN_STATUS_GAP) - 1 : 0;
        if (i > 0 && line->columns + gap + scratch->len > line->screen->width) {
            break;
        }
        line_space(line, gap);
        (void)line_text(line, td_buf_str(scratch), state);
    }
    line_end(line);
}

/* ---- Cells ---- */

struct screen_rows {
    const struct td_screen *screen;
    const struct td_world_view *view;
    size_t count;        /* that fit */
    bool has_namespaces; /* more than one: names are told with theirs */
};

typedef enum screen_state (*screen_cell_fn)(const struct screen_rows *rows,
                                            const struct td_world_row *row, struct td_buf *buf);

static enum screen_state cell_workload(const struct screen_rows *rows,
                                       const struct td_world_row *row, struct td_buf *buf)
{
    bool has_utf8 = rows->screen->has_utf8;
    if (rows->has_namespaces) {
        td_screen_clean(buf, row->load.ns, has_utf8);
        (void)td_buf_append_char(buf, '/');
    }
    td_screen_clean(buf, row->load.name, has_utf8);
    if (row->load.role.len > 0) {
        (void)td_buf_append(buf, TD_STR(" ("));
        td_screen_clean(buf, row->load.role, has_utf8);
        (void)td_buf_append_char(buf, ')');
    } else if (row->is_pod_level) {
        (void)td_buf_append(buf, TD_STR(" (pod-level)"));
    }
    return SCREEN_PLAIN;
}

static enum screen_state cell_by(const struct screen_rows *rows, const struct td_world_row *row,
                                 struct td_buf *buf)
{
    td_screen_clean(buf, row->by.len > 0 ? row->by : TD_STR("-"), rows->screen->has_utf8);
    return SCREEN_PLAIN;
}

static enum screen_state cell_replicas(const struct screen_rows *rows,
                                       const struct td_world_row *row, struct td_buf *buf)
{
    int64_t ready = (int64_t)row->load.ready_count;
    if (ready == row->replicas) {
        (void)td_buf_append_int64(buf, ready);
        return SCREEN_PLAIN;
    }
    (void)td_buf_append_format(buf, "%lld %s %lld", (long long)ready,
                               rows->screen->has_utf8 ? "\u2192" : "->", (long long)row->replicas);
    return SCREEN_LOOK;
}

/* What one pod asks for and uses: the mean of those that run. */
static void cell_pair(const struct td_world_row *row, double requested, double used,
                      void (*write)(struct td_buf *buf, double value), struct td_buf *buf)
{
    double pods = (double)row->load.pod_count;
    if (row->load.pod_count == 0) {
        (void)td_buf_append_char(buf, '-');
        return;
    }
    write(buf, requested / pods);
    (void)td_buf_append_char(buf, '/');
    write(buf, used / pods);
    (void)td_buf_append(buf, row->is_pod_level ? TD_STR(" pod") : TD_STR_EMPTY);
}

static enum screen_state cell_cpu(const struct screen_rows *rows, const struct td_world_row *row,
                                  struct td_buf *buf)
{
    (void)rows;
    cell_pair(row, (double)row->load.limits.cpu_request_milli, row->load.use.cpu_milli,
              td_screen_cpu, buf);
    return SCREEN_PLAIN;
}

static enum screen_state cell_memory(const struct screen_rows *rows, const struct td_world_row *row,
                                     struct td_buf *buf)
{
    (void)rows;
    cell_pair(row, (double)row->load.limits.memory_request_bytes, row->load.use.memory_bytes,
              td_screen_memory, buf);
    return SCREEN_PLAIN;
}

static enum screen_state cell_throttled(const struct screen_rows *rows,
                                        const struct td_world_row *row, struct td_buf *buf)
{
    (void)rows;
    td_screen_share(buf, row->throttled_share);
    if (row->throttled_share >= SCREEN_STRANGLED) {
        return SCREEN_BAD;
    }
    return row->throttled_share >= SCREEN_THROTTLED ? SCREEN_LOOK : SCREEN_PLAIN;
}

static enum screen_state cell_kills(const struct screen_rows *rows, const struct td_world_row *row,
                                    struct td_buf *buf)
{
    (void)rows;
    (void)td_buf_append_format(buf, "%llu", (unsigned long long)row->load.kill_count);
    return row->load.kill_count > 0 ? SCREEN_BAD : SCREEN_PLAIN;
}

static enum screen_state cell_latency(const struct screen_rows *rows,
                                      const struct td_world_row *row, struct td_buf *buf)
{
    (void)rows;
    if (row->latency_seconds < 0) {
        (void)td_buf_append_char(buf, '-');
        return SCREEN_PLAIN;
    }
    td_screen_span(buf, row->latency_seconds);
    if (row->waiting < 0.5) {
        return SCREEN_PLAIN;
    }
    if (row->waiting < 9999.5) {
        (void)td_buf_append_format(buf, " +%.0f", row->waiting);
    } else {
        (void)td_buf_append_format(buf, " +%.0fk", row->waiting / 1000);
    }
    return SCREEN_LOOK;
}

static enum screen_state cell_decision(const struct screen_rows *rows,
                                       const struct td_world_row *row, struct td_buf *buf)
{
    if (row->decided_at < 0 || row->decision.len == 0) {
        (void)td_buf_append_char(buf, '-');
        return SCREEN_PLAIN;
    }
    const td_duration day = 24 * TD_HOUR;
    if (row->decided_at / day != rows->view->since / day) {
        status_time(buf, row->decided_at, false);
    } else {
        long long minutes = (long long)(row->decided_at / TD_MINUTE);
        (void)td_buf_append_format(buf, "%02lld:%02lld", minutes / 60 % 24, minutes % 60);
    }
    (void)td_buf_append_char(buf, ' ');
    td_screen_clean(buf, row->decision, rows->screen->has_utf8);
    return SCREEN_PLAIN;
}

/* ---- The table ---- */

static const struct screen_column {
    td_str title;
    size_t width_min;
    screen_cell_fn cell;
    const char *help;
} screen_columns[] = {
    {TD_STR_INIT("WORKLOAD"), 12, cell_workload,
     "name, with the role of its pods in brackets; pod-level: its pods have pod-level resources"},
    {TD_STR_INIT("BY"), 8, cell_by, "the autoscaler that targets it"},
    {TD_STR_INIT("REPLICAS"), 8, cell_replicas, "ready pods; with an arrow: ready and desired"},
    {TD_STR_INIT("CPU req/used"), 12, cell_cpu,
     "average per pod, requested and used; pod: a pod-level request"},
    {TD_STR_INIT("MEMORY req/used"), 15, cell_memory, "the same for memory"},
    {TD_STR_INIT("THROTTLED"), 9, cell_throttled,
     "share of the CPU time demanded in the last minute that limits and full nodes withheld"},
    {TD_STR_INIT("OOM"), 3, cell_kills, "containers OOM-killed"},
    {TD_STR_INIT("LATENCY"), 10, cell_latency,
     "current mean latency of requests, with time in the queue; +N: requests in the queue"},
    {TD_STR_INIT("LAST DECISION"), 13, cell_decision,
     "when an autoscaler last changed it, what it did and why"},
};

#define SCREEN_COLUMNS (sizeof(screen_columns) / sizeof(screen_columns[0]))

static void table_widths(const struct screen_rows *rows, struct td_buf *scratch,
                         size_t widths[SCREEN_COLUMNS])
{
    for (size_t c = 0; c < SCREEN_COLUMNS; c++) {
        widths[c] = screen_columns[c].width_min;
        /* The last column is cut, however wide it is. */
        for (size_t r = 0; c + 1 < SCREEN_COLUMNS && r < rows->count; r++) {
            td_buf_reset(scratch);
            (void)screen_columns[c].cell(rows, &rows->view->rows[r], scratch); /* only its width */
            size_t width = td_screen_width(td_buf_str(scratch));
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
}

/* Titles when `row` is NULL. */
static void table_line(const struct screen_rows *rows, const struct td_world_row *row,
                       const size_t widths[SCREEN_COLUMNS], size_t column_count,
                       struct td_buf *scratch, struct screen_line *line)
{
    line_space(line, 1);
    for (size_t c = 0; c < column_count; c++) {
        td_buf_reset(scratch);
        enum screen_state state = SCREEN_TITLE;
        if (row) {
            state = screen_columns[c].cell(rows, row, scratch);
        } else {
            (void)td_buf_append(scratch, screen_columns[c].title); /* a few bytes */
        }
        if (row && c + 1 == SCREEN_COLUMNS) {
            line_clip(line, scratch);
        }
        size_t width = line_text(line, td_buf_str(scratch), state);
        line_space(line, (widths[c] > width ? widths[c] - width : 0) + TD_TABLE_GAP);
    }
    line_end(line);
}

static void screen_rows_write(const struct screen_rows *rows, struct td_buf *scratch,
                              struct screen_line *line)
{
    size_t widths[SCREEN_COLUMNS];
    table_widths(rows, scratch, widths);
    size_t column_count = td_table_fit(widths, SCREEN_COLUMNS, rows->screen->width);
    table_line(rows, NULL, widths, column_count, scratch, line);
    for (size_t r = 0; r < rows->count; r++) {
        table_line(rows, &rows->view->rows[r], widths, column_count, scratch, line);
    }
}

static void screen_note(struct screen_line *line, td_str text)
{
    line_space(line, 1);
    (void)line_text(line, text, SCREEN_PLAIN);
    line_end(line);
}

static void screen_help(struct screen_line *line, size_t lines_max)
{
    for (size_t c = 0; c < SCREEN_COLUMNS && c < lines_max; c++) {
        line_space(line, 1);
        size_t width = line_text(line, screen_columns[c].title, SCREEN_TITLE);
        line_space(line, SCREEN_HELP_AT - width);
        (void)line_text(line, td_str_from(screen_columns[c].help), SCREEN_PLAIN);
        line_end(line);
    }
    if (lines_max > SCREEN_COLUMNS) {
        screen_note(line, TD_STR("keys: ? returns to the table, q or Ctrl-C quits"));
    }
}

static bool view_has_namespaces(const struct td_world_view *view)
{
    for (size_t i = 1; i < view->row_count; i++) {
        if (!td_str_equal(view->rows[i].load.ns, view->rows[0].load.ns)) {
            return true;
        }
    }
    return false;
}

void td_screen_table(const struct td_screen *screen, const struct td_world_view *view,
                     struct td_buf *buf)
{
    td_auto_buf scratch;
    td_buf_init(&scratch, TD_SCREEN_CELL_BYTES_MAX);
    struct screen_line line = {.screen = screen, .buf = buf};
    if (screen->height == 0) {
        return;
    }
    screen_status(&line, view, &scratch);
    if (screen->height <= SCREEN_LINES_ABOVE) {
        return;
    }
    line_end(&line);
    size_t room = screen->height - SCREEN_LINES_ABOVE;
    if (screen->shows_help) {
        screen_help(&line, room + 1);
        return;
    }
    if (view->row_count == 0) {
        screen_note(&line, TD_STR("no workloads yet: kubectl apply -f FILE"));
        return;
    }
    struct screen_rows rows = {.screen = screen,
                               .view = view,
                               .count = view->row_count <= room ? view->row_count : room - 1,
                               .has_namespaces = view_has_namespaces(view)};
    screen_rows_write(&rows, &scratch, &line);
    if (rows.count < view->row_count) {
        td_buf_reset(&scratch);
        (void)td_buf_append_format(&scratch, "and %zu more", view->row_count - rows.count);
        screen_note(&line, td_buf_str(&scratch));
    }
}

/* Cut like a cell: one event cannot fill the screen. */
static void event_text(struct td_buf *buf, td_str text)
{
    td_auto_buf cell;
    td_buf_init(&cell, TD_SCREEN_CELL_BYTES_MAX);
    td_screen_clean(&cell, text, true);
    (void)td_buf_append(buf, td_buf_str(&cell)); /* checked once, by the caller */
}

void td_screen_event(const struct td_world_event *event, bool has_colour, struct td_buf *buf)
{
    bool is_coloured = has_colour && td_str_equal(event->type, TD_STR("Warning"));
    status_time(buf, event->at, true);
    (void)td_buf_append(buf, TD_STR("  "));
    event_text(buf, event->kind.len > 0 ? event->kind : event->type);
    if (event->name.len > 0) {
        (void)td_buf_append_char(buf, ' ');
        event_text(buf, event->name);
    }
    (void)td_buf_append(buf, is_coloured ? TD_STR("  \033[33m") : TD_STR("  "));
    event_text(buf, event->reason);
    (void)td_buf_append(buf, is_coloured ? TD_STR("\033[0m: ") : TD_STR(": "));
    event_text(buf, event->message);
    (void)td_buf_append_char(buf, '\n');
}
