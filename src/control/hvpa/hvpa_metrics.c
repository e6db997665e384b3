/*
 * What the Hvpa controller counts (hvpa.md 5.3). Gauges are of one object each and go with it.
 */
#include "control/hvpa/hvpa_private.h"

void hvpa_metrics_init(struct td_hvpa_loop *loop)
{
    static const struct td_metric_declaration rows[] = {
        {"hvpa_decisions_total", "Decisions of Hvpa reconciliations, by mode, axis and reason.",
         .kind = TD_METRIC_COUNTER, .labels = {"mode", "axis", "reason"}},
        {"hvpa_blocked_total",
         "Changes that a reconciliation wanted but blocked, by axis and reason.",
         .kind = TD_METRIC_COUNTER, .labels = {"axis", "reason"}},
        {"hvpa_loop_gain",
         "Factor by which an uncoupled HPA and VPA would multiply the replicas in each round.",
         .kind = TD_METRIC_GAUGE, .labels = {"namespace", "hvpa", "container", "resource"}},
        {"hvpa_replicas", "Replicas of the target: current, desired by the HPA, decided.",
         .kind = TD_METRIC_GAUGE, .labels = {"namespace", "hvpa", "kind"}},
        {"hvpa_requests",
         "Container requests in cores or bytes: current, the VPA's target, decided.",
         .kind = TD_METRIC_GAUGE, .labels = {"namespace", "hvpa", "container", "resource", "kind"}},
    };
    struct td_metric_family **families[] = {&loop->metrics.decisions, &loop->metrics.blocked,
                                            &loop->metrics.gain, &loop->metrics.replicas,
                                            &loop->metrics.requests};
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        *families[i] = td_metric_declare(loop->options.control.registry, &rows[i]);
    }
}

static void metric_replicas(const struct hvpa_reconcile *run, td_str kind, int32_t value)
{
    const td_str values[] = {run->item->namespace, run->item->name, kind};
    td_metric_set(td_metric_series(run->loop->metrics.replicas, values), value);
}

static void metric_request(const struct hvpa_reconcile *run, const struct td_tandem_row *row,
                           td_str kind, int64_t amount)
{
    const td_str values[] = {run->item->namespace, run->item->name, row->container,
                             td_hvpa_resource_name(row->resource), kind};
    double unit = row->resource == TD_HVPA_CPU ? 1000 : 1;
    td_metric_set(td_metric_series(run->loop->metrics.requests, values), (double)amount / unit);
}

static void metric_block(const struct hvpa_reconcile *run, td_str axis, enum td_tandem_block block)
{
    const td_str values[] = {axis, td_tandem_block_name(block)};
    if (block != TD_TANDEM_BLOCK_NONE) {
        td_metric_add(td_metric_series(run->loop->metrics.blocked, values), 1);
    }
}

static void metric_row(const struct hvpa_reconcile *run, size_t index)
{
    const struct td_tandem_row *row = &run->decided.rows[index];
    const struct td_tandem_outcome *outcome = &run->decided.outcomes[index];
    const td_str values[] = {run->item->namespace, run->item->name, row->container,
                             td_hvpa_resource_name(row->resource)};
    double gain;
    metric_request(run, row, TD_STR("current"), row->request);
    metric_request(run, row, TD_STR("target"), outcome->wish);
    metric_request(run, row, TD_STR("decided"), outcome->request);
    metric_block(run, TD_STR("vertical"), outcome->block);
    if (td_tandem_gain(row, outcome->wish, &gain)) {
        td_metric_set(td_metric_series(run->loop->metrics.gain, values), gain);
    } else {
        td_metric_drop(run->loop->metrics.gain, values);
    }
}

void hvpa_metrics_record(const struct hvpa_reconcile *run)
{
    const td_str values[] = {td_hvpa_mode_name(run->hvpa.mode),
                             td_tandem_axis_name(run->decided.decision.axis),
                             td_tandem_reason_name(run->decided.decision.reason)};
    td_metric_add(td_metric_series(run->loop->metrics.decisions, values), 1);
    metric_block(run, TD_STR("horizontal"), run->decided.decision.horizontal_block);
    metric_replicas(run, TD_STR("current"), run->decided.input.replicas);
    metric_replicas(run, TD_STR("hpa"), run->decided.decision.desired_replicas);
    metric_replicas(run, TD_STR("decided"), run->decided.decision.replicas);
    for (size_t i = 0; i < run->decided.row_count; i++) {
        metric_row(run, i);
    }
}

void hvpa_metrics_forget(const struct hvpa_item *item)
{
    static const td_str kinds[] = {TD_STR_INIT("current"), TD_STR_INIT("hpa"),
                                   TD_STR_INIT("decided"), TD_STR_INIT("target")};
    const struct hvpa_metrics *metrics = &item->loop->metrics;
    for (size_t k = 0; k < TD_COUNT(kinds); k++) {
        const td_str replicas[] = {item->namespace, item->name, kinds[k]};
        td_metric_drop(metrics->replicas, replicas);
        for (size_t i = 0; i < item->sizes.count; i++) {
            for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
                td_str resource = td_hvpa_resource_name((enum td_hvpa_resource)r);
                const td_str requests[] = {item->namespace, item->name,
                                           item->sizes.items[i].container, resource, kinds[k]};
                td_metric_drop(metrics->requests, requests);
                td_metric_drop(metrics->gain, requests);
            }
        }
    }
}
