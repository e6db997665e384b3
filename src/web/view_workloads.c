/*
 * All workloads as one table: an array of names of columns, and an array of values a row, so that
 * 10,000 of them are a megabyte and a half. The text is made once and given to all who ask until
 * something has changed.
 */
#include "web/json_writer.h"
#include "web/web_private.h"

static const char *const columns[] = {
    "ns",        "kind",          "name",      "by",           "replicas",   "ready",
    "min",       "max",           "pods",      "measured",     "cpuRequest", "cpuUse",
    "cpuTarget", "memoryRequest", "memoryUse", "memoryTarget", "throttled",  "latency",
    "ooms",      "decidedAt",     "decision",  "podLevel",
};

static const struct td_model_scaler *row_horizontal(const struct td_model_row *row)
{
    return row->scalers[TD_MODEL_HVPA] ? row->scalers[TD_MODEL_HVPA] : row->scalers[TD_MODEL_HPA];
}

static void row_write(const struct td_model_row *row, struct td_json_writer *writer)
{
    const struct td_model_scaler *scaler = row_horizontal(row);
    td_writer_open(writer, NULL, '[');
    td_writer_text(writer, NULL, row->ns);
    td_writer_text(writer, NULL, row->kind);
    td_writer_text(writer, NULL, row->name);
    td_writer_text(writer, NULL, row->by);
    td_writer_int(writer, NULL, row->replicas);
    td_writer_int(writer, NULL, (int64_t)row->ready_count);
    td_writer_known(writer, NULL, scaler ? (double)scaler->replicas_min : -1, 0);
    td_writer_known(writer, NULL, scaler ? (double)scaler->replicas_max : -1, 0);
    td_writer_int(writer, NULL, (int64_t)row->pod_count);
    td_writer_int(writer, NULL, (int64_t)row->measured_count);
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        td_writer_number(writer, NULL, row->request[r], 0);
        td_writer_known(writer, NULL, row->measured_count > 0 ? row->use[r] : -1, 0);
        td_writer_known(writer, NULL, row->target[r], 0);
    }
    td_writer_known(writer, NULL, row->throttled, 4);
    td_writer_known(writer, NULL, row->latency, 4);
    td_writer_int(writer, NULL, (int64_t)row->oom_count);
    if (row->decided_at == INT64_MIN) {
        td_writer_null(writer, NULL);
    } else {
        td_writer_int(writer, NULL, row->decided_at / TD_MILLISECOND);
    }
    td_writer_text(writer, NULL, row->decision);
    td_writer_bool(writer, NULL, row->is_pod_level);
    td_writer_close(writer, ']');
}

static void workloads_write(const struct web_call *call, struct td_buf *body)
{
    struct td_json_writer writer = {.out = body};
    const struct td_model *model = call->web->model;
    td_writer_open(&writer, NULL, '{');
    td_writer_int(&writer, "now", td_model_now(model) / TD_MILLISECOND);
    td_writer_int(&writer, "version", (int64_t)model->version);
    td_writer_open(&writer, "columns", '[');
    for (size_t i = 0; i < TD_COUNT(columns); i++) {
        td_writer_text(&writer, NULL, td_str_from(columns[i]));
    }
    td_writer_close(&writer, ']');
    td_writer_open(&writer, "rows", '[');
    for (struct td_map_walk at = {.map = &model->rows}; td_map_step(&at);) {
        const struct td_model_row *row = at.value;
        if (row->is_there && web_is_in_scope(call, row->ns)) {
            row_write(row, &writer);
        }
    }
    td_writer_close(&writer, ']');
    td_writer_close(&writer, '}');
}

void web_view_workloads(const struct web_call *call)
{
    struct td_web *web = call->web;
    if (call->scope.len > 0) {
        td_auto_buf body = td_buf_capped(WEB_ANSWER_BYTES_MAX);
        td_model_look(web->model);
        workloads_write(call, &body);
        web_reply_json(call->exchange, 200, &body);
        return;
    }
    web_look(web);
    if (web_shared_begin(web, &web->rows)) {
        workloads_write(call, &web->rows.body);
    }
    web_reply_json(call->exchange, 200, &web->rows.body);
}
