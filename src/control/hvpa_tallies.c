/*
 * What the Hvpa controller counts (hvpa.md 5.3). Gauges are of one object each and go with it.
 */
#include "control/hvpa/hvpa_private.h"

void hvpa_tallies_init(struct td_hvpa_loop *loop)
{
    struct td_tally *tally = loop->options.control.tally;
    loop->tallies = (struct hvpa_tallies){
        .decisions = td_tally_declare(
            tally, &(struct td_tally_declaration){.name = "hvpa_decisions_total",
                                                  .help = "Decisions of ticks, by what they were.",
                                                  .kind = TD_TALLY_COUNTER,
                                                  .labels = {"mode", "axis", "reason"}}),
        .blocked = td_tally_declare(
            tally, &(struct td_tally_declaration){.name = "hvpa_blocked_total",
                                                  .help = "Wishes that a tick held back.",
                                                  .kind = TD_TALLY_COUNTER,
                                                  .labels = {"axis", "reason"}}),
        .gain = td_tally_declare(
            tally,
            &(struct td_tally_declaration){
                .name = "hvpa_loop_gain",
                .help = "By how much HPA and VPA in turn would multiply the replicas.",
                .kind = TD_TALLY_GAUGE,
                .labels = {"namespace", "hvpa", "container", "resource"}}),
        .replicas = td_tally_declare(
            tally, &(struct td_tally_declaration){.name = "hvpa_replicas",
                                                  .help = "Replicas: current, the HPA's, decided.",
                                                  .kind = TD_TALLY_GAUGE,
                                                  .labels = {"namespace", "hvpa", "kind"}}),
        .requests = td_tally_declare(
            tally,
            &(struct td_tally_declaration){
                .name = "hvpa_requests",
                .help = "Requests in cores or bytes: current, the VPA's target, decided.",
                .kind = TD_TALLY_GAUGE,
                .labels = {"namespace", "hvpa", "container", "resource", "kind"}}),
    };
}

static void tally_replicas(const struct hvpa_tick *tick, td_str kind, int32_t value)
{
    const td_str values[] = {tick->item->namespace, tick->item->name, kind};
    td_tally_set(td_tally_series(tick->loop->tallies.replicas, values), value);
}

static void tally_request(const struct hvpa_tick *tick, const struct td_tandem_row *row,
                          td_str kind, int64_t amount)
{
    const td_str values[] = {tick->item->namespace, tick->item->name, row->container,
                             td_hvpa_resource_name(row->resource), kind};
    double unit = row->resource == TD_HVPA_CPU ? 1000 : 1;
    td_tally_set(td_tally_series(tick->loop->tallies.requests, values), (double)amount / unit);
}

static void tally_block(const struct hvpa_tick *tick, td_str axis, enum td_tandem_block block)
{
    const td_str values[] = {axis, td_tandem_block_name(block)};
    if (block != TD_TANDEM_BLOCK_NONE) {
        td_tally_add(td_tally_series(tick->loop->tallies.blocked, values), 1);
    }
}

static void tally_row(const struct hvpa_tick *tick, size_t index)
{
    const struct td_tandem_row *row = &tick->rows[index];
    const struct td_tandem_outcome *outcome = &tick->outcomes[index];
    const td_str values[] = {tick->item->namespace, tick->item->name, row->container,
                             td_hvpa_resource_name(row->resource)};
    double gain;
    tally_request(tick, row, TD_STR("current"), row->request);
    tally_request(tick, row, TD_STR("target"), outcome->wish);
    tally_request(tick, row, TD_STR("decided"), outcome->request);
    tally_block(tick, TD_STR("vertical"), outcome->block);
    if (td_tandem_gain(row, outcome->wish, &gain)) {
        td_tally_set(td_tally_series(tick->loop->tallies.gain, values), gain);
    } else {
        td_tally_drop(tick->loop->tallies.gain, values);
    }
}

void hvpa_tally(const struct hvpa_tick *tick)
{
    const td_str values[] = {td_hvpa_mode_name(tick->hvpa.mode),
                             td_tandem_axis_name(tick->decision.axis),
                             td_tandem_reason_name(tick->decision.reason)};
    td_tally_add(td_tally_series(tick->loop->tallies.decisions, values), 1);
    tally_block(tick, TD_STR("horizontal"), tick->decision.horizontal_block);
    tally_replicas(tick, TD_STR("current"), tick->input.replicas);
    tally_replicas(tick, TD_STR("hpa"), tick->decision.desired_replicas);
    tally_replicas(tick, TD_STR("decided"), tick->decision.replicas);
    for (size_t i = 0; i < tick->row_count; i++) {
        tally_row(tick, i);
    }
}

void hvpa_tally_forget(const struct hvpa_item *item)
{
    static const td_str kinds[] = {TD_STR_INIT("current"), TD_STR_INIT("hpa"),
                                   TD_STR_INIT("decided"), TD_STR_INIT("target")};
    const struct hvpa_tallies *tallies = &item->loop->tallies;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        const td_str replicas[] = {item->namespace, item->name, kinds[k]};
        td_tally_drop(tallies->replicas, replicas);
        for (size_t i = 0; i < item->sizes.count; i++) {
            for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
                td_str resource = td_hvpa_resource_name((enum td_hvpa_resource)r);
                const td_str requests[] = {item->namespace, item->name,
                                           item->sizes.items[i].container, resource, kinds[k]};
                td_tally_drop(tallies->requests, requests);
                td_tally_drop(tallies->gain, requests);
            }
        }
    }
}
