/*
 * Upstream's VPA and the shadow beside it: a block for each container with the target and the
 * bounds of both, and which pods an updater would evict or resize by each. Of a VPA with several
 * containers the pods are counted in its first block.
 */
#include "api/vpa/recommendation.h"
#include "base/arena.h"
#include "base/limits.h"
#include "control/inspect/recommend_once.h"
#include "control/inspect/shadow_table.h"
#include "web/report/report_data.h"

static const struct report_column shadow_columns[] = {
    {"CPU", "cpu", 0},       {"CPU from", "cpu", 0},       {"CPU to", "cpu", 0},
    {"memory", "memory", 0}, {"memory from", "memory", 0}, {"memory to", "memory", 0},
    {"evicts", "count", 0},  {"resizes", "count", 0},
};

static void shadow_amount_write(struct td_json_writer *writer, const struct td_resource_list *list,
                                enum td_right_resource resource)
{
    int64_t amount;
    if (list && td_right_amount(list, resource, &amount)) {
        td_writer_int(writer, NULL, amount);
    } else {
        td_writer_null(writer, NULL);
    }
}

static void shadow_count_write(struct td_json_writer *writer, bool is_counted, size_t count)
{
    if (is_counted) {
        td_writer_int(writer, NULL, (int64_t)count);
    } else {
        td_writer_null(writer, NULL);
    }
}

static void shadow_side_write(struct td_json_writer *writer, const struct td_shadow_row *row,
                              enum td_shadow_side side)
{
    const struct td_container_recommendation *one = row->sides[side].recommendation;
    td_writer_open(writer, NULL, '{');
    td_writer_int(writer, "run", 0);
    td_writer_text(writer, "name",
                   side == TD_SHADOW_UPSTREAM ? TD_STR("upstream") : TD_STR("tandem"));
    td_writer_text(writer, "detail", one ? TD_STR_EMPTY : TD_STR("none yet"));
    td_writer_open(writer, "cells", '[');
    for (size_t i = 0; i < TD_RIGHT_COUNT; i++) {
        enum td_right_resource resource = (enum td_right_resource)i;
        shadow_amount_write(writer, one ? &one->target : NULL, resource);
        shadow_amount_write(writer, one ? &one->lower_bound : NULL, resource);
        shadow_amount_write(writer, one ? &one->upper_bound : NULL, resource);
    }
    shadow_count_write(writer, row->is_first, row->sides[side].evicts);
    shadow_count_write(writer, row->is_first, row->sides[side].resizes);
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

struct shadow_blocks {
    struct td_json_writer *writer;
    struct td_arena *arena;
};

static void shadow_block_write(void *context, const struct td_shadow_row *row)
{
    const struct shadow_blocks *blocks = context;
    struct td_json_writer *writer = blocks->writer;
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "name",
                   td_arena_format(blocks->arena, "%.*s/%.*s %.*s", TD_STR_ARG(row->namespace),
                                   TD_STR_ARG(row->vpa), TD_STR_ARG(row->container)));
    td_writer_text(writer, "kind", TD_STR("VerticalPodAutoscaler"));
    td_writer_open(writer, "rows", '[');
    shadow_side_write(writer, row, TD_SHADOW_UPSTREAM);
    shadow_side_write(writer, row, TD_SHADOW_TANDEM);
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static void shadow_run_write(struct td_json_writer *writer, struct td_arena *arena,
                             const struct td_shadow_table *table)
{
    td_writer_open(writer, "runs", '[');
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "name", TD_STR("recommend --shadow"));
    td_writer_int(writer, "start", 0);
    td_writer_int(writer, "end", 1);
    td_writer_int(writer, "step", 1);
    td_writer_int(writer, "count", 0);
    td_writer_open(writer, "facts", '[');
    report_fact(writer, "VPAs", td_arena_format(arena, "%zu", td_shadow_table_count(table)));
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
    td_writer_close(writer, ']');
}

void td_report_shadow(const struct td_report_head *head, struct td_shadow_table *table,
                      struct td_buf *out)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_auto_buf sum = td_buf_capped(TD_REPORT_BYTES_MAX);
    struct td_json_writer writer = {.out = out};
    struct shadow_blocks blocks = {.writer = &writer, .arena = &arena};
    td_shadow_table_sum(table, &sum);
    report_begin(&writer, head);
    shadow_run_write(&writer, &arena, table);
    td_writer_open(&writer, "score", '{');
    td_writer_text(&writer, "title", TD_STR("Recommendations of both"));
    td_writer_text(&writer, "what", TD_STR("container"));
    td_writer_text(&writer, "side", TD_STR("by"));
    td_writer_text(&writer, "note", td_str_trim(td_buf_str(&sum)));
    report_columns(&writer, shadow_columns, TD_COUNT(shadow_columns));
    td_writer_open(&writer, "blocks", '[');
    td_shadow_table_walk(table, shadow_block_write, &blocks);
    td_writer_close(&writer, ']');
    td_writer_close(&writer, '}');
    td_writer_raw(&writer, "groups", TD_STR("[]"));
    td_writer_raw(&writer, "events", TD_STR("{\"rows\":[],\"leftOut\":0}"));
    td_writer_raw(&writer, "texts", TD_STR("[]"));
    report_end(&writer);
}
