/*
 * Right sizes: a block for each container, what it asks for now and what it should, and the objects
 * that would do it. One look at a cluster has no history, so there are no plots.
 */
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "control/inspect/recommend_once.h"
#include "web/report/report_data.h"

static const struct report_column sizes_columns[] = {
    {"pods", "count", 0}, {"CPU", "cpu", 0},   {"memory", "memory", 0},
    {"OOMs", "count", 0}, {"data", "text", 0},
};

enum { SIZES_NOW, SIZES_SHOULD, SIZES_COUNT };

static const char *const sizes_names[SIZES_COUNT] = {"now", "recommended"};

static void row_open(struct td_json_writer *writer, const char *name, td_str detail)
{
    td_writer_open(writer, NULL, '{');
    td_writer_int(writer, "run", 0);
    td_writer_text(writer, "name", td_str_from(name));
    td_writer_text(writer, "detail", detail);
    td_writer_open(writer, "cells", '[');
}

static void row_close(struct td_json_writer *writer)
{
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static void amount_write(struct td_json_writer *writer, const struct td_resource_list *list,
                         enum td_right_resource resource)
{
    int64_t amount;
    if (td_right_amount(list, resource, &amount)) {
        td_writer_int(writer, NULL, amount);
    } else {
        td_writer_null(writer, NULL);
    }
}

static td_str data_words(struct td_arena *arena, const struct td_right_size *row)
{
    if (row->should.count == 0) {
        return td_arena_format(arena, "not enough data (%lld samples)", (long long)row->samples);
    }
    td_str floors = row->is_floor[TD_RIGHT_CPU] && row->is_floor[TD_RIGHT_MEMORY]
                        ? TD_STR("; both are floors")
                    : row->is_floor[TD_RIGHT_CPU]    ? TD_STR("; CPU is a floor")
                    : row->is_floor[TD_RIGHT_MEMORY] ? TD_STR("; memory is a floor")
                                                     : TD_STR_EMPTY;
    return td_arena_format(arena, "%lld samples over %.1f h, confidence %.1f%.*s",
                           (long long)row->samples, (double)row->history / (double)TD_HOUR,
                           row->confidence, TD_STR_ARG(floors));
}

static void block_open(struct td_json_writer *writer, td_str name, td_str kind)
{
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "name", name);
    td_writer_text(writer, "kind", kind);
    td_writer_open(writer, "rows", '[');
}

static void block_write(struct td_json_writer *writer, struct td_arena *arena,
                        const struct td_right_size *row)
{
    const struct td_resource_list *lists[SIZES_COUNT] = {&row->now, &row->should};
    block_open(writer,
               td_arena_format(arena, "%.*s/%.*s %.*s", TD_STR_ARG(row->namespace),
                               TD_STR_ARG(row->workload), TD_STR_ARG(row->container)),
               row->kind);
    for (int i = 0; i < SIZES_COUNT; i++) {
        row_open(writer, sizes_names[i], i == SIZES_NOW ? row->by : TD_STR_EMPTY);
        td_writer_int(writer, NULL, (int64_t)row->pods);
        amount_write(writer, lists[i], TD_RIGHT_CPU);
        amount_write(writer, lists[i], TD_RIGHT_MEMORY);
        td_writer_int(writer, NULL, row->ooms);
        td_writer_text(writer, NULL, i == SIZES_NOW ? TD_STR_EMPTY : data_words(arena, row));
        row_close(writer);
    }
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static td_str floors_words(struct td_arena *arena, const struct td_right_sum sums[TD_RIGHT_COUNT])
{
    if (sums[TD_RIGHT_CPU].floors <= 0 && sums[TD_RIGHT_MEMORY].floors <= 0) {
        return TD_STR_EMPTY;
    }
    return td_arena_format(arena, "and floors of %.0fm and %.0fMi", sums[TD_RIGHT_CPU].floors,
                           sums[TD_RIGHT_MEMORY].floors / (1 << 20));
}

/* As the table has it: what has no recommendation counts in neither. */
static void total_write(struct td_json_writer *writer, struct td_arena *arena,
                        const struct td_right_sizes *sizes)
{
    const struct td_right_sum sums[TD_RIGHT_COUNT] = {td_right_sizes_sum(sizes, TD_RIGHT_CPU),
                                                      td_right_sizes_sum(sizes, TD_RIGHT_MEMORY)};
    size_t pods = 0;
    int64_t ooms = 0;
    for (size_t i = 0; i < sizes->count; i++) {
        bool is_counted = sizes->items[i].should.count > 0;
        pods += is_counted ? sizes->items[i].pods : 0;
        ooms += is_counted ? sizes->items[i].ooms : 0;
    }
    block_open(writer, TD_STR("total of all pods"), TD_STR_EMPTY);
    for (int i = 0; i < SIZES_COUNT; i++) {
        bool is_now = i == SIZES_NOW;
        row_open(writer, sizes_names[i], TD_STR_EMPTY);
        td_writer_int(writer, NULL, (int64_t)pods);
        for (int r = 0; r < TD_RIGHT_COUNT; r++) {
            td_writer_number(writer, NULL, is_now ? sums[r].before : sums[r].after, 0);
        }
        td_writer_int(writer, NULL, ooms);
        td_writer_text(writer, NULL, is_now ? TD_STR_EMPTY : floors_words(arena, sums));
        row_close(writer);
    }
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static void write_run(struct td_json_writer *writer, struct td_arena *arena,
                      const struct td_right_sizes *sizes)
{
    size_t left_out = td_right_sizes_left_out(sizes);
    td_writer_open(writer, "runs", '[');
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "name", TD_STR("recommend"));
    td_writer_int(writer, "start", 0);
    td_writer_int(writer, "end", 1);
    td_writer_int(writer, "step", 1);
    td_writer_int(writer, "count", 0);
    td_writer_open(writer, "facts", '[');
    report_fact(writer, "data from", sizes->window);
    report_fact(writer, "containers", td_arena_format(arena, "%zu", sizes->count));
    if (left_out > 0) {
        report_fact(writer, "without enough data", td_arena_format(arena, "%zu", left_out));
    }
    if (sizes->unowned > 0) {
        report_fact(writer, "pods without a controller",
                    td_arena_format(arena, "%zu", sizes->unowned));
    }
    if (sizes->problem.len > 0) {
        report_fact(writer, "warning", sizes->problem);
    }
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
    td_writer_close(writer, ']');
}

void td_report_recommend(const struct td_report_head *head, const struct td_right_sizes *sizes,
                         struct td_buf *out)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_auto_buf yaml = td_buf_capped(TD_REPORT_BYTES_MAX);
    struct td_json_writer writer = {.out = out};
    report_begin(&writer, head);
    write_run(&writer, &arena, sizes);
    td_writer_open(&writer, "score", '{');
    td_writer_text(&writer, "title", TD_STR("Requests"));
    td_writer_text(&writer, "what", TD_STR("container"));
    td_writer_text(&writer, "side", TD_STR("request"));
    td_writer_text(&writer, "note",
                   TD_STR("Amounts are of one pod, those of the total of all pods that run. A "
                          "floor is the smallest request that is recommended: use is below it."));
    report_columns(&writer, sizes_columns, TD_COUNT(sizes_columns));
    td_writer_open(&writer, "blocks", '[');
    total_write(&writer, &arena, sizes);
    for (size_t i = 0; i < sizes->count; i++) {
        block_write(&writer, &arena, &sizes->items[i]);
    }
    td_writer_close(&writer, ']');
    td_writer_close(&writer, '}');
    td_writer_raw(&writer, "groups", TD_STR("[]"));
    td_writer_raw(&writer, "events", TD_STR("{\"rows\":[],\"leftOut\":0}"));
    td_right_sizes_yaml(sizes, &yaml);
    td_writer_open(&writer, "texts", '[');
    if (yaml.len > 0) {
        report_text(&writer,
                    TD_STR("YAML for kubectl apply --server-side --force-conflicts "
                           "--field-manager=tandem-recommend -f -"),
                    td_buf_str(&yaml));
    }
    td_writer_close(&writer, ']');
    report_end(&writer);
    out->is_full = out->is_full || yaml.is_full;
}
