/*
 * Events of a scenario at their moments. What begins and ends are moments in one list by time, over
 * which one timer walks. Faults follow from the set of events that are active: after each moment
 * they are worked out anew, so that two that overlap end when the later one does.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "local/cluster.h"
#include "sim/world/world_private.h"

static const struct {
    td_str name;
    bool is_fault; /* lasts, and is undone at its end */
} event_actions[] = {
    [TD_ACTION_MOVE_ROLE] = {TD_STR_INIT("move-role"), false},
    [TD_ACTION_NODE_LOSS] = {TD_STR_INIT("node-loss"), true},
    [TD_ACTION_WEBHOOK_DOWN] = {TD_STR_INIT("webhook-down"), true},
    [TD_ACTION_METRICS_GAP] = {TD_STR_INIT("metrics-gap"), true},
    [TD_ACTION_API_ERRORS] = {TD_STR_INIT("api-errors"), true},
    [TD_ACTION_SLOW_START] = {TD_STR_INIT("slow-start"), true},
    [TD_ACTION_SCALE] = {TD_STR_INIT("scale"), false},
    [TD_ACTION_APPLY] = {TD_STR_INIT("apply"), false},
};

/* ---- Telling ---- */

static void event_tell(struct td_world *world, const struct td_scenario_event *event,
                       td_str message)
{
    bool is_node = event->action == TD_ACTION_NODE_LOSS;
    bool is_workload = event->name.len > 0;
    const struct td_world_event reported = {
        .at = td_engine_since(world->engine),
        .type = TD_STR("Scenario"),
        .reason = event_actions[event->action].name,
        .kind = is_node ? TD_STR("Node") : (is_workload ? event->kind : TD_STR_EMPTY),
        .ns = is_workload ? world->scenario->ns : TD_STR_EMPTY,
        .name = is_node ? event->node : (is_workload ? event->name : TD_STR_EMPTY),
        .message = message,
        .decision = TD_STR_EMPTY,
        .workload_kind = is_workload ? event->kind : TD_STR_EMPTY,
        .workload_name = is_workload ? event->name : TD_STR_EMPTY,
        .role = TD_STR_EMPTY,
    };
    td_world_tell(world, &reported);
}

static td_str event_span(struct td_arena *arena, td_duration span)
{
    char text[TD_DURATION_TEXT_BYTES];
    size_t len = td_duration_format(span, text);
    return td_arena_copy_str(arena, (td_str){.ptr = text, .len = len});
}

/* What begins, as a sentence. */
static td_str event_message(struct td_arena *arena, const struct td_scenario_event *event)
{
    td_str span = event_span(arena, event->lasts);
    switch (event->action) {
    case TD_ACTION_MOVE_ROLE:
        return td_arena_format(arena, "%.*s=%.*s moves to %.*s", TD_STR_ARG(event->label_key),
                               TD_STR_ARG(event->label_value), TD_STR_ARG(event->to));
    case TD_ACTION_NODE_LOSS:
        return td_arena_format(arena, "silent for %.*s", TD_STR_ARG(span));
    case TD_ACTION_WEBHOOK_DOWN:
        return td_arena_format(arena, "no webhook answers for %.*s", TD_STR_ARG(span));
    case TD_ACTION_METRICS_GAP:
        return td_arena_format(arena, "no metrics for %.*s", TD_STR_ARG(span));
    case TD_ACTION_API_ERRORS:
        return td_arena_format(arena, "%.4g%% of API requests fail for %.*s", event->amount * 100,
                               TD_STR_ARG(span));
    case TD_ACTION_SLOW_START:
        return td_arena_format(arena, "starts take %.4g times as long for %.*s", event->amount,
                               TD_STR_ARG(span));
    case TD_ACTION_SCALE:
        return td_arena_format(arena, "to %.0f replicas", event->amount);
    case TD_ACTION_APPLY:
        return event->manifest;
    }
    return TD_STR_EMPTY;
}

/* ---- What is active ---- */

static bool event_is_same(const struct td_scenario_event *a, const struct td_scenario_event *b)
{
    return a->action == b->action && td_str_equal(a->kind, b->kind) &&
           td_str_equal(a->name, b->name) && td_str_equal(a->node, b->node);
}

/* The largest amount among active events of the same kind and target; below 0: none is active. */
static double event_amount(const struct td_world *world, const struct td_scenario_event *event)
{
    const struct td_scenario *scenario = world->scenario;
    double amount = -1;
    for (size_t i = 0; i < scenario->event_count; i++) {
        const struct td_scenario_event *other = &scenario->events[i];
        if (world->schedule.is_active[i] && event_is_same(event, other) && other->amount > amount) {
            amount = other->amount;
        }
    }
    return amount;
}

/* Makes what the event is about as the active ones of its kind demand. */
static int event_enforce(struct td_world *world, const struct td_scenario_event *event,
                         struct td_error *err)
{
    double amount = event_amount(world, event);
    bool is_active = amount >= 0;
    switch (event->action) {
    case TD_ACTION_NODE_LOSS:
        return td_cluster_lose_node(world->cluster, event->node, is_active, err);
    case TD_ACTION_WEBHOOK_DOWN:
        world->faults.are_webhooks_down = is_active || world->hand_webhooks_down;
        return TD_OK;
    case TD_ACTION_METRICS_GAP:
        world->faults.is_metrics_gap = is_active;
        return TD_OK;
    case TD_ACTION_API_ERRORS:
        world->faults.api_error_share = is_active ? amount : 0;
        return TD_OK;
    case TD_ACTION_SLOW_START:
        td_engine_slow_starts(world->engine, world->scenario->ns, event->kind, event->name,
                              is_active ? amount : 1);
        return TD_OK;
    case TD_ACTION_MOVE_ROLE:
    case TD_ACTION_SCALE:
    case TD_ACTION_APPLY:
        break;
    }
    return TD_OK;
}

/* ---- Moments ---- */

static void event_ended(struct td_world *world, size_t tag, int code, const struct td_error *err)
{
    if (code != TD_OK) {
        event_tell(world, &world->scenario->events[tag], td_str_from(err->message));
    }
}

static int event_begin(struct td_world *world, size_t index, struct td_error *err)
{
    const struct td_scenario_event *event = &world->scenario->events[index];
    switch (event->action) {
    case TD_ACTION_MOVE_ROLE:
        return td_world_roles_move(world, event, err);
    case TD_ACTION_SCALE:
        td_world_scale(world, event, index, event_ended);
        return TD_OK;
    case TD_ACTION_APPLY:
        td_world_apply(world, &world->schedule.files[index], index, event_ended);
        return TD_OK;
    case TD_ACTION_NODE_LOSS:
    case TD_ACTION_WEBHOOK_DOWN:
    case TD_ACTION_METRICS_GAP:
    case TD_ACTION_API_ERRORS:
    case TD_ACTION_SLOW_START:
        break;
    }
    world->schedule.is_active[index] = true;
    return event_enforce(world, event, err);
}

static void moment_act(struct td_world *world, const struct td_world_moment *moment)
{
    const struct td_scenario_event *event = &world->scenario->events[moment->event];
    struct td_error err = TD_ERROR_INIT;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    int code = TD_OK;
    if (moment->is_end) {
        world->schedule.is_active[moment->event] = false;
        event_tell(world, event, TD_STR("is over"));
        code = event_enforce(world, event, &err);
    } else {
        event_tell(world, event, event_message(&arena, event));
        code = event_begin(world, moment->event, &err);
    }
    if (code != TD_OK) {
        event_tell(world, event, td_str_from(err.message));
    }
}

static void moments_set(struct td_world *world)
{
    if (world->schedule.next < world->schedule.count) {
        td_duration wait =
            world->schedule.moments[world->schedule.next].at - td_engine_since(world->engine);
        td_timer_set(world->schedule.timer, wait > 0 ? wait : 0);
    }
}

static void moments_come(struct td_timer *timer, void *context)
{
    struct td_world *world = context;
    (void)timer;
    while (world->schedule.next < world->schedule.count &&
           world->schedule.moments[world->schedule.next].at <= td_engine_since(world->engine)) {
        moment_act(world, &world->schedule.moments[world->schedule.next++]);
    }
    moments_set(world);
}

static int moment_compare(const void *a, const void *b)
{
    const struct td_world_moment *left = a;
    const struct td_world_moment *right = b;
    if (left->at != right->at) {
        return left->at < right->at ? -1 : 1;
    }
    if (left->event != right->event) {
        return left->event < right->event ? -1 : 1;
    }
    return (int)left->is_end - (int)right->is_end;
}

/* ---- By hand ---- */

static void hand_tell(struct td_world *world, td_str reason, td_str kind, td_str name,
                      td_str message)
{
    const struct td_world_event reported = {.at = td_engine_since(world->engine),
                                            .type = TD_STR("Scenario"),
                                            .reason = reason,
                                            .kind = kind,
                                            .ns = TD_STR_EMPTY,
                                            .name = name,
                                            .message = message};
    td_world_tell(world, &reported);
}

void td_world_break_webhooks(struct td_world *world, bool is_down)
{
    bool is_active = false;
    for (size_t i = 0; world->scenario && i < world->scenario->event_count; i++) {
        is_active = is_active || (world->schedule.is_active[i] &&
                                  world->scenario->events[i].action == TD_ACTION_WEBHOOK_DOWN);
    }
    world->hand_webhooks_down = is_down;
    world->faults.are_webhooks_down = is_active || is_down;
    hand_tell(world, event_actions[TD_ACTION_WEBHOOK_DOWN].name, TD_STR_EMPTY, TD_STR_EMPTY,
              is_down ? TD_STR("no webhook answers, by hand") : TD_STR("is over"));
}

int td_world_lose_node(struct td_world *world, td_str node, bool is_lost, struct td_error *err)
{
    int code = td_cluster_lose_node(world->cluster, node, is_lost, err);
    if (code == TD_OK) {
        hand_tell(world, event_actions[TD_ACTION_NODE_LOSS].name, TD_STR("Node"), node,
                  is_lost ? TD_STR("silent, by hand") : TD_STR("is over"));
    }
    return code;
}

void td_world_set_load(struct td_world *world, double factor)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_engine_set_load(world->engine, factor);
    hand_tell(world, TD_STR("load"), TD_STR_EMPTY, TD_STR_EMPTY,
              td_arena_format(&arena, "%.4g times the load, by hand", factor));
}

struct td_world_hand td_world_hand(const struct td_world *world)
{
    return (struct td_world_hand){.are_webhooks_down = world->hand_webhooks_down,
                                  .load = td_engine_load(world->engine)};
}

/* ---- Outside ---- */

/* Events are kept in order of time; messages count them in the order of lines. */
size_t td_world_event_index(const struct td_scenario *scenario,
                            const struct td_scenario_event *event)
{
    size_t index = 0;
    for (size_t i = 0; i < scenario->event_count; i++) {
        index += scenario->events[i].line < event->line;
    }
    return index;
}

int td_world_events_load(struct td_world *world, struct td_error *err)
{
    const struct td_scenario *scenario = world->scenario;
    size_t count = scenario ? scenario->event_count : 0;
    world->schedule.is_active = td_arena_array(&world->arena, bool, count);
    world->schedule.files = td_arena_array(&world->arena, struct td_manifest, count);
    world->schedule.moments = td_arena_array(&world->arena, struct td_world_moment, 2 * count);
    for (size_t i = 0; i < count; i++) {
        const struct td_scenario_event *event = &scenario->events[i];
        world->schedule.moments[world->schedule.count++] =
            (struct td_world_moment){.at = event->at, .event = i};
        if (event_actions[event->action].is_fault) {
            world->schedule.moments[world->schedule.count++] = (struct td_world_moment){
                .at = event->at + event->lasts, .event = i, .is_end = true};
        }
        if (event->action == TD_ACTION_APPLY) {
            int code = td_world_read_manifest(&world->arena, event->manifest,
                                              &world->schedule.files[i], err);
            if (code < 0 && code != TD_INVALID) { /* else it has named file and line */
                return td_error_wrap(err, code, "%.*s:%u: spec.events[%zu].manifest",
                                     TD_STR_ARG(scenario->path), (unsigned)event->line,
                                     td_world_event_index(scenario, event));
            }
            if (code < 0) {
                return code;
            }
        }
    }
    qsort(world->schedule.moments, world->schedule.count, sizeof(world->schedule.moments[0]),
          moment_compare);
    return TD_OK;
}

void td_world_events_start(struct td_world *world)
{
    world->schedule.timer = td_timer_new(world->loop, moments_come, world);
    moments_set(world);
}

void td_world_events_done(struct td_world *world)
{
    td_timer_free(world->schedule.timer);
}
