/*
 * Cells first, as texts in the arena; base/os/table.h finds how wide columns are and which fit.
 */
#include "cli/simulate/simulate_table.h"

#include "base/limits.h"
#include "base/os/screen_text.h"
#include "cli/up/screen_number.h"
#include "sim/world/world_report.h"

#define TABLE_CELL_BYTES_MAX ((size_t)512)
#define TABLE_NAME_COLUMNS_MAX 40

enum table_column {
    TABLE_NAME,
    TABLE_BY,
    TABLE_PODS,
    TABLE_CPU_REQUESTED,
    TABLE_CPU_USED,
    TABLE_CPU_SLACK,
    TABLE_THROTTLED,
    TABLE_MEMORY_REQUESTED,
    TABLE_MEMORY_USED,
    TABLE_MEMORY_SLACK,
    TABLE_OOMS,
    TABLE_RESTARTS,
    TABLE_EVICTIONS,
    TABLE_RESIZES,
    TABLE_LATENCY,
    TABLE_WAITING,
    TABLE_DROPPED,
    TABLE_COLUMN_COUNT
};

static const char *const table_titles[TABLE_COLUMN_COUNT] = {
    [TABLE_NAME] = "WORKLOAD",       [TABLE_BY] = "BY",
    [TABLE_PODS] = "PODS",           [TABLE_CPU_REQUESTED] = "CPU REQ",
    [TABLE_CPU_USED] = "USED",       [TABLE_CPU_SLACK] = "SLACK",
    [TABLE_THROTTLED] = "THROTTLED", [TABLE_MEMORY_REQUESTED] = "MEM REQ",
    [TABLE_MEMORY_USED] = "USED",    [TABLE_MEMORY_SLACK] = "SLACK",
    [TABLE_OOMS] = "OOMS",           [TABLE_RESTARTS] = "RESTARTS",
    [TABLE_EVICTIONS] = "EVICTED",   [TABLE_RESIZES] = "RESIZED",
    [TABLE_LATENCY] = "LATENCY",     [TABLE_WAITING] = "WAITING",
    [TABLE_DROPPED] = "DROPPED",
};

struct table {
    struct td_arena *arena;
    td_str (*rows)[TABLE_COLUMN_COUNT]; /* titles first, totals last */
    size_t row_count;
};

typedef void (*table_number_fn)(struct td_buf *buf, double value);

/* "-" below 0. */
static td_str table_cell(struct table *table, table_number_fn write, double value)
{
    td_auto_buf text = td_buf_capped(TABLE_CELL_BYTES_MAX);
    if (value < 0) {
        return TD_STR("-");
    }
    write(&text, value);
    return td_arena_copy_str(table->arena, td_buf_str(&text));
}

static td_str table_count(struct table *table, uint64_t count)
{
    return td_arena_format(table->arena, "%llu", (unsigned long long)count);
}

/* "shop/db (leader)" */
static td_str table_name(struct table *table, const struct td_engine_workload *load, td_str ns)
{
    td_auto_buf text = td_buf_capped(TABLE_CELL_BYTES_MAX);
    if (!td_str_equal(load->ns, ns)) {
        td_screen_clean(&text, load->ns, true);
        (void)td_buf_append_char(&text, '/'); /* a name that does not fit is cut */
    }
    td_screen_clean(&text, load->name, true);
    if (load->role.len > 0) {
        (void)td_buf_append(&text, TD_STR(" ("));
        td_screen_clean(&text, load->role, true);
        (void)td_buf_append_char(&text, ')');
    }
    return td_arena_copy_str(table->arena,
                             td_screen_cut(td_buf_str(&text), TABLE_NAME_COLUMNS_MAX));
}

static void table_figures(struct table *table, td_str *cells, const struct td_engine_workload *load,
                          td_duration span)
{
    struct td_world_figures figures = td_world_figures(load, span);
    cells[TABLE_CPU_REQUESTED] = table_cell(table, td_screen_cpu, figures.cpu_requested_milli);
    cells[TABLE_CPU_USED] = table_cell(table, td_screen_cpu, figures.cpu_used_milli);
    cells[TABLE_CPU_SLACK] = table_cell(table, td_screen_share, figures.cpu_slack);
    cells[TABLE_THROTTLED] = table_cell(table, td_screen_share, figures.cpu_throttled);
    cells[TABLE_MEMORY_REQUESTED] =
        table_cell(table, td_screen_memory, figures.memory_requested_bytes);
    cells[TABLE_MEMORY_USED] = table_cell(table, td_screen_memory, figures.memory_used_bytes);
    cells[TABLE_MEMORY_SLACK] = table_cell(table, td_screen_share, figures.memory_slack);
}

static void table_row(struct table *table, const struct td_world_row *row, td_str ns,
                      td_duration span)
{
    td_str *cells = table->rows[table->row_count++];
    bool has_requests = row->latency_seconds >= 0;
    table_figures(table, cells, &row->load, span);
    cells[TABLE_NAME] = table_name(table, &row->load, ns);
    cells[TABLE_BY] = row->by;
    cells[TABLE_PODS] = td_arena_format(table->arena, "%lld", (long long)row->replicas);
    cells[TABLE_OOMS] = table_count(table, row->load.kill_count);
    cells[TABLE_RESTARTS] = table_count(table, row->restart_count);
    cells[TABLE_EVICTIONS] = table_count(table, row->eviction_count);
    cells[TABLE_RESIZES] = table_count(table, row->resize_count);
    cells[TABLE_LATENCY] = table_cell(table, td_screen_span, row->mean_latency_seconds);
    cells[TABLE_WAITING] =
        has_requests ? td_arena_format(table->arena, "%.0f", row->waiting) : TD_STR("-");
    cells[TABLE_DROPPED] =
        has_requests ? td_arena_format(table->arena, "%.0f", row->dropped) : TD_STR("-");
}

static void table_totals(struct table *table, const struct td_world_view *view)
{
    td_str *cells = table->rows[table->row_count++];
    struct td_engine_workload sum = {.pod_count = 0};
    double dropped = 0;
    double waiting = 0;
    for (size_t i = 0; i < view->row_count; i++) {
        td_world_figures_add(&sum, &view->rows[i].load);
        waiting += view->rows[i].waiting;
        dropped += view->rows[i].dropped;
    }
    table_figures(table, cells, &sum, view->since);
    cells[TABLE_NAME] = TD_STR("total");
    cells[TABLE_BY] = TD_STR_EMPTY;
    cells[TABLE_PODS] = table_count(table, view->pod_count);
    cells[TABLE_OOMS] = table_count(table, view->kill_count);
    cells[TABLE_RESTARTS] = table_count(table, view->restart_count);
    cells[TABLE_EVICTIONS] = table_count(table, view->eviction_count);
    cells[TABLE_RESIZES] = table_count(table, view->resize_count);
    cells[TABLE_LATENCY] = TD_STR_EMPTY;
    cells[TABLE_WAITING] = td_arena_format(table->arena, "%.0f", waiting);
    cells[TABLE_DROPPED] = td_arena_format(table->arena, "%.0f", dropped);
}

static void table_write(const struct table *table, struct td_buf *out)
{
    for (size_t r = 0; r < table->row_count; r++) {
        for (size_t c = 0; c < TABLE_COLUMN_COUNT; c++) {
            (void)td_buf_append(out, table->rows[r][c]); /* the caller checks the buffer */
            (void)td_buf_append_char(out, c + 1 < TABLE_COLUMN_COUNT ? '\t' : '\n');
        }
    }
}

void td_simulate_table(const struct td_world_view *view, td_str ns,
                       const struct td_table_options *shape, struct td_arena *arena,
                       struct td_buf *out)
{
    struct table table = {.arena = arena};
    table.rows = td_arena_alloc_zero(arena, view->row_count + 2, sizeof(table.rows[0]));
    for (size_t c = 0; c < TABLE_COLUMN_COUNT; c++) {
        table.rows[0][c] = td_str_from(table_titles[c]);
    }
    table.row_count = 1;
    for (size_t i = 0; i < view->row_count; i++) {
        table_row(&table, &view->rows[i], ns, view->since);
    }
    table_totals(&table, view);
    td_auto_buf text = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    table_write(&table, &text);
    (void)td_buf_append_format(&text,
                               "%zu node%s, %zu pod%s (%zu pending), %llu event%s. CPU and memory "
                               "are averages over the run; slack = share of requests not used.\n",
                               view->node_count, TD_PLURAL(view->node_count), view->pod_count,
                               TD_PLURAL(view->pod_count), view->pending_count,
                               (unsigned long long)view->event_count, TD_PLURAL(view->event_count));
    struct td_table_options options = *shape;
    options.right = ~(1u << TABLE_NAME | 1u << TABLE_BY);
    td_table_write(td_buf_str(&text), &options, out);
    out->is_full = out->is_full || text.is_full;
}
