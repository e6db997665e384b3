/*
 * Events: each action has a table of its members. Read in the order of the file, told in the order
 * of time; those of one moment keep their order.
 */
#include "sim/scenario/scenario_events.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "kube/names.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/scenario_demand.h"

#define EVENT_FIELDS_MAX 5
#define EVENT_COMMON 2 /* at and do */

struct event_action {
    const char *name;
    enum td_scenario_action action;
    size_t count;
    struct td_place_field fields[EVENT_FIELDS_MAX];
};

#define AT(member) offsetof(struct td_scenario_event, member)
static const struct event_action event_actions[] = {
    {"move-role",
     TD_ACTION_MOVE_ROLE,
     3,
     {{"target", TD_PLACE_OTHER, true, 0},
      {"label", TD_PLACE_OTHER, true, 0},
      {"to", TD_PLACE_NAME, true, AT(to)}}},
    {"node-loss",
     TD_ACTION_NODE_LOSS,
     2,
     {{"node", TD_PLACE_NAME, true, AT(node)}, {"for", TD_PLACE_SPAN, true, AT(lasts)}}},
    {"webhook-down", TD_ACTION_WEBHOOK_DOWN, 1, {{"for", TD_PLACE_SPAN, true, AT(lasts)}}},
    {"metrics-gap", TD_ACTION_METRICS_GAP, 1, {{"for", TD_PLACE_SPAN, true, AT(lasts)}}},
    {"api-errors",
     TD_ACTION_API_ERRORS,
     2,
     {{"for", TD_PLACE_SPAN, true, AT(lasts)}, {"share", TD_PLACE_SHARE, true, AT(amount)}}},
    {"slow-start",
     TD_ACTION_SLOW_START,
     3,
     {{"target", TD_PLACE_OTHER, true, 0},
      {"for", TD_PLACE_SPAN, true, AT(lasts)},
      {"factor", TD_PLACE_FACTOR, true, AT(amount)}}},
    {"scale",
     TD_ACTION_SCALE,
     2,
     {{"target", TD_PLACE_OTHER, true, 0}, {"replicas", TD_PLACE_OTHER, true, 0}}},
    {"apply", TD_ACTION_APPLY, 1, {{"manifest", TD_PLACE_PATH, true, AT(manifest)}}},
};

static int event_find_action(const struct td_place *place, const struct event_action **ret)
{
    td_str name = TD_STR_EMPTY;
    int code = td_place_read(place, TD_PLACE_TEXT, &name);
    for (size_t i = 0; code == TD_OK && i < TD_COUNT(event_actions); i++) {
        if (td_str_equal(name, td_str_from(event_actions[i].name))) {
            *ret = &event_actions[i];
            return TD_OK;
        }
    }
    return code == TD_OK
               ? td_place_refuse(place, "must be move-role, node-loss, webhook-down, metrics-gap, "
                                        "api-errors, slow-start, scale or apply")
               : code;
}

static int event_target(const struct td_place *place, struct td_scenario_event *ret)
{
    struct td_scenario_target target = {.kind = TD_STR_EMPTY, .name = TD_STR_EMPTY};
    int code = td_scenario_read_target(place, false, &target);
    ret->kind = target.kind;
    ret->name = target.name;
    return code;
}

static int event_label(const struct td_place *place, struct td_scenario_event *ret)
{
    td_str text = TD_STR_EMPTY;
    int code = td_place_read(place, TD_PLACE_TEXT, &text);
    if (code != TD_OK || text.len == 0) {
        return code;
    }
    size_t equals = td_str_find(text, '=', 0);
    ret->label_key = td_str_slice(text, 0, equals);
    ret->label_value = td_str_slice(text, equals + 1, text.len);
    if (equals == text.len || td_name_check_qualified(ret->label_key, NULL) > 0 ||
        td_name_check_label_value(ret->label_value, NULL) > 0) {
        return td_place_refuse(place, "must be KEY=VALUE, such as role=leader");
    }
    return TD_OK;
}

/* Nodes that manifests bring have any name; ours have numbers. */
static int event_node(const struct td_place *place, const struct td_scenario *scenario,
                      const struct td_scenario_event *event)
{
    int64_t count = 0;
    size_t number = td_node_object_number(event->node);
    for (size_t i = 0; i < scenario->node_count; i++) {
        count += scenario->nodes[i].count;
    }
    if (count > 0 && number > (size_t)count) {
        return td_place_refuse(place, "spec.nodes has node-1 to node-%lld", (long long)count);
    }
    return TD_OK;
}

static int event_read(const struct td_place *place, const struct td_scenario *scenario,
                      struct td_scenario_event *ret)
{
    struct td_place_field fields[EVENT_COMMON + EVENT_FIELDS_MAX] = {
        {"at", TD_PLACE_DURATION, true, AT(at)},
        {"do", TD_PLACE_OTHER, true, 0},
    };
    const struct event_action *action = NULL;
    struct td_place what = td_place_member(place, "do");
    int64_t replicas = 0;
    if (!td_json_is(place->value, TD_JSON_TYPE_OBJECT)) {
        return td_place_refuse(place, "must be a mapping");
    }
    if (!what.value) {
        return td_place_refuse(&what, "is required");
    }
    int code = event_find_action(&what, &action);
    if (code != TD_OK) {
        return code;
    }
    for (size_t i = 0; i < action->count; i++) {
        fields[EVENT_COMMON + i] = action->fields[i];
    }
    struct td_place target = td_place_member(place, "target");
    struct td_place label = td_place_member(place, "label");
    struct td_place count = td_place_member(place, "replicas");
    struct td_place node = td_place_member(place, "node");
    ret->action = action->action;
    ret->line = td_place_line(place);
    code = td_place_fields(place, fields, EVENT_COMMON + action->count, ret);
    code = code == TD_OK ? event_target(&target, ret) : code;
    code = code == TD_OK ? event_label(&label, ret) : code;
    code = code == TD_OK ? td_place_int(&count, 0, TD_SCENARIO_REPLICAS_MAX, &replicas) : code;
    ret->amount = count.value ? (double)replicas : ret->amount;
    return code == TD_OK && node.value ? event_node(&node, scenario, ret) : code;
}
#undef AT

/* ---- Roles that move must be there ---- */

/* "StatefulSet/db": the entry that has its roles, in `by_name`. */
static void events_map_roles(const struct td_scenario *scenario, struct td_arena *arena,
                             struct td_map *by_name)
{
    for (size_t i = 0; i < scenario->demand_count; i++) {
        td_str key = td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(scenario->demands[i].kind),
                                     TD_STR_ARG(scenario->demands[i].name));
        if (scenario->demands[i].role_count > 0) {
            size_t *place = td_arena_new(arena, size_t);
            *place = i;
            (void)td_map_put(by_name, key, place); /* as many fit as there are entries */
        }
    }
}

static int event_check_role(const struct td_place *place, const struct td_scenario *scenario,
                            const struct td_map *by_name, const struct td_scenario_event *event)
{
    struct td_place target = td_place_member(place, "target");
    struct td_place label = td_place_member(place, "label");
    td_str key = td_arena_format(place->source->arena, "%.*s/%.*s", TD_STR_ARG(event->kind),
                                 TD_STR_ARG(event->name));
    const size_t *found = td_map_get(by_name, key);
    if (!found) {
        return td_place_refuse(&target, "no entry of spec.demand gives it roles");
    }
    const struct td_demand *demand = &scenario->demands[*found];
    bool is_known = td_str_equal(demand->role_label, event->label_key);
    size_t i = 0;
    while (i < demand->role_count && !td_str_equal(demand->roles[i].value, event->label_value)) {
        i++;
    }
    return is_known && i < demand->role_count
               ? TD_OK
               : td_place_refuse(&label, "is not one of the roles in spec.demand[%zu]", *found);
}

/* ---- All of them ---- */

/* Items of one array: those of the same moment stay in its order. */
static int events_compare(const void *a, const void *b)
{
    const struct td_scenario_event *left = *(const struct td_scenario_event *const *)a;
    const struct td_scenario_event *right = *(const struct td_scenario_event *const *)b;
    if (left->at != right->at) {
        return left->at < right->at ? -1 : 1;
    }
    return left < right ? -1 : left > right;
}

static const struct td_scenario_event *
events_sorted(struct td_arena *arena, const struct td_scenario_event *events, size_t count)
{
    const struct td_scenario_event **order =
        td_arena_array(arena, const struct td_scenario_event *, count);
    struct td_scenario_event *sorted = td_arena_array(arena, struct td_scenario_event, count);
    for (size_t i = 0; i < count; i++) {
        order[i] = &events[i];
    }
    qsort(order, count, sizeof(order[0]), events_compare);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = *order[i];
    }
    return sorted;
}

int td_scenario_read_events(const struct td_place *place, struct td_scenario *ret)
{
    struct td_arena *arena = place->source->arena;
    size_t count = 0;
    int code = td_place_list(place, TD_SCENARIO_EVENTS_MAX, &count);
    if (code != TD_OK || count == 0) {
        return code;
    }
    struct td_scenario_event *events = td_arena_array(arena, struct td_scenario_event, count);
    const struct td_json *item = td_json_first_item(place->value);
    td_auto_map by_name = td_map_capped(TD_SCENARIO_DEMANDS_MAX);
    events_map_roles(ret, arena, &by_name);
    for (size_t i = 0; code == TD_OK && i < count; i++, item = item->next) {
        struct td_place at = td_place_item(place, item, i);
        code = event_read(&at, ret, &events[i]);
        if (code == TD_OK && events[i].action == TD_ACTION_MOVE_ROLE) {
            code = event_check_role(&at, ret, &by_name, &events[i]);
        }
    }
    if (code == TD_OK) {
        ret->events = events_sorted(arena, events, count);
        ret->event_count = count;
    }
    return code;
}
