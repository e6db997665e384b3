/*
 * One workload: its row, what its autoscalers are set to, its pods, the last day as points, and
 * what happened to it.
 */
#include "base/os/loop.h"
#include "web/json_writer.h"
#include "web/web_private.h"

#define VIEW_PODS_MAX 500
#define VIEW_ROW_MARKS_MAX 500
#define VIEW_MINUTE_MS 60000

static const char *const resource_names[] = {"cpu", "memory"};

static void amounts_write(struct td_json_writer *writer, const char *name,
                          const double amounts[TD_MODEL_RESOURCES])
{
    td_writer_open(writer, name, '{');
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        td_writer_known(writer, resource_names[r], amounts[r], 0);
    }
    td_writer_close(writer, '}');
}

static void scaler_write(const struct td_model_scaler *scaler, struct td_json_writer *writer)
{
    static const char *const kinds[] = {"hvpa", "hpa", "vpa"};
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "kind", td_str_from(kinds[scaler->kind]));
    td_writer_text(writer, "name", scaler->name);
    td_writer_text(writer, "mode", scaler->mode);
    td_writer_known(writer, "min", (double)scaler->replicas_min, 0);
    td_writer_known(writer, "max", (double)scaler->replicas_max, 0);
    td_writer_known(writer, "wanted", (double)scaler->wanted, 0);
    td_writer_known(writer, "utilization", (double)scaler->utilization, 0);
    td_writer_known(writer, "ratio", scaler->ratio, 4);
    td_writer_text(writer, "estimator", scaler->estimator);
    amounts_write(writer, "least", scaler->least);
    amounts_write(writer, "most", scaler->most);
    td_writer_open(writer, "containers", '[');
    for (size_t i = 0; i < scaler->container_count; i++) {
        const struct td_model_container *c = &scaler->containers[i];
        td_writer_open(writer, NULL, '{');
        td_writer_text(writer, "name", c->name);
        amounts_write(writer, "target", c->target);
        amounts_write(writer, "lower", c->lower);
        amounts_write(writer, "upper", c->upper);
        td_writer_close(writer, '}');
    }
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static void scalers_write(const struct td_model_row *row, struct td_json_writer *writer)
{
    td_writer_open(writer, "scalers", '[');
    for (size_t kind = 0; kind < TD_MODEL_SCALER_KINDS; kind++) {
        if (row->scalers[kind]) {
            scaler_write(row->scalers[kind], writer);
        }
    }
    td_writer_close(writer, ']');
}

static void pods_write(const struct td_model_row *row, struct td_json_writer *writer)
{
    size_t count = 0;
    td_writer_open(writer, "pods", '[');
    for (const struct td_model_pod *pod = row->pods; pod && count < VIEW_PODS_MAX;
         pod = pod->next, count++) {
        td_writer_open(writer, NULL, '{');
        td_writer_text(writer, "name", pod->name);
        td_writer_text(writer, "node", pod->node);
        td_writer_bool(writer, "ready", pod->is_ready);
        td_writer_bool(writer, "pending", pod->is_pending);
        amounts_write(writer, "request", pod->request);
        amounts_write(writer, "limit", pod->limit);
        amounts_write(writer, "use", pod->use);
        td_writer_int(writer, "restarts", pod->restarts);
        td_writer_int(writer, "ooms", (int64_t)pod->oom_count);
        td_writer_int(writer, "created", pod->created * 1000);
        td_writer_close(writer, '}');
    }
    td_writer_close(writer, ']');
    td_writer_int(writer, "podCount", (int64_t)row->pod_count);
}

static void samples_write(const struct td_web *web, const struct td_model_row *row,
                          struct td_json_writer *writer)
{
    const struct td_rings *rings = &web->model->rings;
    struct td_ring_span span = td_ring_span(rings, row->ring);
    td_writer_int(writer, "start", span.first * VIEW_MINUTE_MS);
    td_writer_int(writer, "step", rings->minutes_per_point * VIEW_MINUTE_MS);
    td_writer_int(writer, "count", (int64_t)span.count);
    for (size_t s = 0; s < TD_SAMPLE_COUNT; s++) {
        td_writer_open(writer, td_ring_sample_names[s], '[');
        for (size_t i = 0; i < span.count; i++) {
            td_writer_known(writer, NULL, td_ring_sample(row->ring, i, (enum td_ring_sample)s), 0);
        }
        td_writer_close(writer, ']');
    }
}

/* Pairs of a time and what holds from then on. */
static void settings_write(const struct td_model_row *row, struct td_json_writer *writer)
{
    for (size_t s = 0; s < TD_SETTING_COUNT; s++) {
        size_t position = 0;
        int64_t minute;
        double value;
        td_writer_open(writer, td_ring_setting_names[s], '[');
        while (
            td_ring_next_change(row->ring, (enum td_ring_setting)s, &position, &minute, &value)) {
            td_writer_open(writer, NULL, '[');
            td_writer_int(writer, NULL, minute * VIEW_MINUTE_MS);
            td_writer_known(writer, NULL, value, 0);
            td_writer_close(writer, ']');
        }
        td_writer_close(writer, ']');
    }
}

static void history_write(const struct td_web *web, const struct td_model_row *row,
                          struct td_json_writer *writer)
{
    td_writer_open(writer, "history", '{');
    if (row->ring) {
        samples_write(web, row, writer);
        settings_write(row, writer);
    }
    td_writer_close(writer, '}');
}

static void marks_write(const struct td_model *model, const struct td_model_row *row,
                        struct td_json_writer *writer)
{
    size_t first = model->marks.count;
    size_t count = 0;
    while (first > 0 && count < VIEW_ROW_MARKS_MAX) {
        first--;
        count += td_str_equal(model->marks.items[first].row, row->key);
    }
    td_writer_open(writer, "marks", '[');
    for (size_t i = first; i < model->marks.count; i++) {
        const struct td_model_mark *mark = &model->marks.items[i];
        if (!td_str_equal(mark->row, row->key)) {
            continue;
        }
        td_writer_open(writer, NULL, '{');
        td_writer_int(writer, "at", mark->at / TD_MILLISECOND);
        td_writer_text(writer, "kind", mark->kind);
        td_writer_text(writer, "text", mark->text);
        td_writer_close(writer, '}');
    }
    td_writer_close(writer, ']');
}

static void accounts_write(const struct td_model *model, const struct td_model_row *row,
                           struct td_json_writer *writer)
{
    td_writer_open(writer, "accounts", '[');
    for (size_t i = 0; i < model->accounts.count; i++) {
        const struct td_model_account *account = &model->accounts.items[i];
        if (td_str_equal(account->row, row->key)) {
            td_writer_open(writer, NULL, '{');
            td_writer_int(writer, "at", account->at / TD_MILLISECOND);
            td_writer_text(writer, "text", account->text);
            td_writer_close(writer, '}');
        }
    }
    td_writer_close(writer, ']');
}

void web_view_workload(const struct web_call *call)
{
    td_auto_arena arena = td_arena_capped(WEB_ARENA_BYTES_MAX);
    td_auto_buf body = td_buf_capped(WEB_ANSWER_BYTES_MAX);
    struct td_json_writer writer = {.out = &body};
    const struct td_model *model = call->web->model;
    const struct td_model_row *row = web_call_row(call, &arena);
    if (!row) {
        return;
    }
    td_writer_open(&writer, NULL, '{');
    td_writer_int(&writer, "now", td_model_now(model) / TD_MILLISECOND);
    td_writer_int(&writer, "version", (int64_t)model->version);
    td_writer_text(&writer, "ns", row->ns);
    td_writer_text(&writer, "kind", row->kind);
    td_writer_text(&writer, "name", row->name);
    td_writer_text(&writer, "by", row->by);
    td_writer_int(&writer, "replicas", row->replicas);
    td_writer_int(&writer, "ready", (int64_t)row->ready_count);
    td_writer_int(&writer, "measured", (int64_t)row->measured_count);
    amounts_write(&writer, "request", row->request);
    amounts_write(&writer, "limit", row->limit);
    amounts_write(&writer, "use", row->use);
    amounts_write(&writer, "target", row->target);
    amounts_write(&writer, "lower", row->lower);
    amounts_write(&writer, "upper", row->upper);
    td_writer_known(&writer, "throttled", row->throttled, 4);
    td_writer_known(&writer, "latency", row->latency, 4);
    td_writer_int(&writer, "ooms", (int64_t)row->oom_count);
    td_writer_text(&writer, "decision", row->decision);
    td_writer_known(&writer, "decidedAt",
                    row->decided_at == INT64_MIN ? -1 : (double)(row->decided_at / TD_MILLISECOND),
                    0);
    scalers_write(row, &writer);
    pods_write(row, &writer);
    history_write(call->web, row, &writer);
    marks_write(model, row, &writer);
    accounts_write(model, row, &writer);
    td_writer_close(&writer, '}');
    web_reply_json(call->exchange, 200, &body);
}
