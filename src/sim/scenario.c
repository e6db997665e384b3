#include "sim/scenario.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/yaml.h"
#include "sim/scenario_demand.h"
#include "sim/scenario_values.h"

#define SCENARIO_API "sim.tandem.dev/v1"

static uint64_t scenario_demand_seed(uint64_t seed, size_t index)
{
    return seed * UINT64_C(0x9e3779b97f4a7c15) + index;
}

static uint64_t scenario_metric_seed(uint64_t seed, size_t index)
{
    return seed + 7919 * (index + 1);
}

/* A path of the file, beside it when relative. */
static td_str scenario_path(struct td_arena *arena, td_str file, td_str path)
{
    size_t slash = file.len;
    while (slash > 0 && file.ptr[slash - 1] != '/') {
        slash--;
    }
    if (td_str_starts_with(path, TD_STR("/")) || slash == 0) {
        return td_arena_copy_str(arena, path);
    }
    return td_arena_format(arena, "%.*s%.*s", TD_STR_ARG(td_str_slice(file, 0, slash)),
                           TD_STR_ARG(path));
}

static int scenario_nodes(const struct td_place *place, struct td_scenario *ret)
{
    static const char *const names[] = {"count", "cpu", "memory", "pods", NULL};
    if (!place->value) {
        return TD_OK;
    }
    int code = td_place_array(place);
    struct td_node_size *nodes =
        td_arena_array(place->arena, struct td_node_size, code == TD_OK ? place->value->count : 0);
    size_t count = 0;
    for (const struct td_json *item = code == TD_OK ? place->value->first : NULL;
         item && code == TD_OK; item = item->next, count++) {
        struct td_place at = td_place_item(place, item, count);
        double cpu = 8000;
        double memory = 34359738368.0;
        nodes[count] = (struct td_node_size){.count = 1, .pods = 110};
        code = td_place_object(&at, names);
        struct td_place number = td_place_member(&at, "count");
        struct td_place cpus = td_place_member(&at, "cpu");
        struct td_place bytes = td_place_member(&at, "memory");
        struct td_place pods = td_place_member(&at, "pods");
        code = code == TD_OK ? td_place_int(&number, 1, 5000, &nodes[count].count) : code;
        code = code == TD_OK ? td_place_cpu(&cpus, &cpu) : code;
        code = code == TD_OK ? td_place_bytes(&bytes, &memory) : code;
        code = code == TD_OK ? td_place_int(&pods, 1, 10000, &nodes[count].pods) : code;
        nodes[count].cpu_milli = (int64_t)cpu;
        nodes[count].memory_bytes = (int64_t)memory;
    }
    ret->nodes = nodes;
    ret->node_count = count;
    return code;
}

static int scenario_manifests(const struct td_place *place, struct td_scenario *ret)
{
    if (!place->value) {
        return TD_OK;
    }
    int code = td_place_array(place);
    td_str *paths = td_arena_array(place->arena, td_str, code == TD_OK ? place->value->count : 0);
    size_t count = 0;
    for (const struct td_json *item = code == TD_OK ? place->value->first : NULL;
         item && code == TD_OK; item = item->next, count++) {
        struct td_place at = td_place_item(place, item, count);
        td_str text = TD_STR_EMPTY;
        code = td_place_text(&at, true, &text);
        paths[count] = scenario_path(place->arena, place->file, text);
    }
    ret->manifests = paths;
    ret->manifest_count = count;
    return code;
}

static int scenario_demands(const struct td_place *place, struct td_scenario *ret)
{
    if (!place->value) {
        return TD_OK;
    }
    int code = td_place_array(place);
    struct td_demand *demands =
        td_arena_array(place->arena, struct td_demand, code == TD_OK ? place->value->count : 0);
    size_t count = 0;
    for (const struct td_json *item = code == TD_OK ? place->value->first : NULL;
         item && code == TD_OK; item = item->next, count++) {
        struct td_place at = td_place_item(place, item, count);
        struct td_demand *demand = &demands[count];
        code = td_scenario_read_demand(&at, demand);
        demand->ns = ret->ns;
        demand->line = item->line;
        demand->seed = scenario_demand_seed(ret->seed, count);
        for (size_t i = 0; code == TD_OK && i < count; i++) {
            if (td_str_equal(demands[i].kind, demand->kind) &&
                td_str_equal(demands[i].name, demand->name) &&
                td_str_equal(demands[i].container, demand->container)) {
                struct td_place target = td_place_member(&at, "target");
                code = td_place_refuse(&target, "is the target of spec.demand[%zu] already", i);
            }
        }
    }
    ret->demands = demands;
    ret->demand_count = count;
    return code;
}

/* ---- Events ---- */

static const struct {
    const char *name;
    enum td_scenario_action action;
    const char *needs[4];
} scenario_actions[] = {
    {"move-role", TD_ACTION_MOVE_ROLE, {"target", "label", "to", NULL}},
    {"node-loss", TD_ACTION_NODE_LOSS, {"node", "for", NULL}},
    {"webhook-down", TD_ACTION_WEBHOOK_DOWN, {"for", NULL}},
    {"metrics-gap", TD_ACTION_METRICS_GAP, {"for", NULL}},
    {"api-errors", TD_ACTION_API_ERRORS, {"for", "share", NULL}},
    {"slow-start", TD_ACTION_SLOW_START, {"target", "for", "factor", NULL}},
    {"scale", TD_ACTION_SCALE, {"target", "replicas", NULL}},
    {"apply", TD_ACTION_APPLY, {"manifest", NULL}},
};

static int event_action(const struct td_place *place, const struct td_place *at,
                        enum td_scenario_action *ret)
{
    td_str text = TD_STR_EMPTY;
    int code = td_place_text(place, true, &text);
    for (size_t i = 0; code == TD_OK && i < sizeof(scenario_actions) / sizeof(scenario_actions[0]);
         i++) {
        if (!td_str_equal(text, td_str_from(scenario_actions[i].name))) {
            continue;
        }
        for (size_t n = 0; scenario_actions[i].needs[n]; n++) {
            struct td_place member = td_place_member(at, scenario_actions[i].needs[n]);
            if (!member.value) {
                return td_place_refuse(&member, "is required by %s", scenario_actions[i].name);
            }
        }
        *ret = scenario_actions[i].action;
        return TD_OK;
    }
    return code == TD_OK ? td_place_refuse(place, "must be move-role, node-loss, webhook-down, "
                                                  "metrics-gap, api-errors, slow-start, scale or "
                                                  "apply")
                         : code;
}

/* "statefulset/db" */
static int event_target(const struct td_place *place, struct td_scenario_event *ret)
{
    td_str text = TD_STR_EMPTY;
    int code = td_place_text(place, false, &text);
    size_t slash = td_str_find(text, '/', 0);
    if (code != TD_OK || text.len == 0) {
        return code;
    }
    ret->name = td_str_slice(text, slash + 1, text.len);
    if (ret->name.len == 0) {
        return td_place_refuse(place, "must be kind/name, such as statefulset/db");
    }
    return td_scenario_read_kind(place, td_str_slice(text, 0, slash), &ret->kind);
}

static int event_label(const struct td_place *place, struct td_scenario_event *ret)
{
    td_str text = TD_STR_EMPTY;
    int code = td_place_text(place, false, &text);
    size_t equals = td_str_find(text, '=', 0);
    if (code == TD_OK && text.len > 0 && equals == text.len) {
        return td_place_refuse(place, "must be key=value, such as role=leader");
    }
    ret->label_key = td_str_slice(text, 0, equals);
    ret->label_value = td_str_slice(text, equals + 1, text.len);
    return code;
}

static int scenario_event(const struct td_place *at, struct td_scenario_event *ret)
{
    static const char *const names[] = {"at",  "do",    "target", "label",    "to",       "node",
                                        "for", "share", "factor", "replicas", "manifest", NULL};
    int code = td_place_object(at, names);
    struct td_place when = td_place_member(at, "at");
    struct td_place action = td_place_member(at, "do");
    struct td_place target = td_place_member(at, "target");
    struct td_place label = td_place_member(at, "label");
    struct td_place to = td_place_member(at, "to");
    struct td_place node = td_place_member(at, "node");
    struct td_place lasts = td_place_member(at, "for");
    struct td_place share = td_place_member(at, "share");
    struct td_place factor = td_place_member(at, "factor");
    struct td_place replicas = td_place_member(at, "replicas");
    struct td_place manifest = td_place_member(at, "manifest");
    if (code == TD_OK && !when.value) {
        return td_place_refuse(&when, "is required");
    }
    int64_t count = 0;
    code = code == TD_OK ? td_place_duration(&when, &ret->at) : code;
    code = code == TD_OK ? event_action(&action, at, &ret->action) : code;
    code = code == TD_OK ? event_target(&target, ret) : code;
    code = code == TD_OK ? event_label(&label, ret) : code;
    code = code == TD_OK ? td_place_text(&to, false, &ret->to) : code;
    code = code == TD_OK ? td_place_text(&node, false, &ret->node) : code;
    code = code == TD_OK ? td_place_duration(&lasts, &ret->lasts) : code;
    code = code == TD_OK ? td_place_share(&share, &ret->amount) : code;
    code = code == TD_OK ? td_place_number(&factor, 0, &ret->amount) : code;
    code = code == TD_OK ? td_place_int(&replicas, 0, 100000, &count) : code;
    code = code == TD_OK ? td_place_text(&manifest, false, &ret->manifest) : code;
    ret->amount = replicas.value ? (double)count : ret->amount;
    ret->line = at->value ? at->value->line : 0;
    if (ret->manifest.len > 0) {
        ret->manifest = scenario_path(at->arena, at->file, ret->manifest);
    }
    return code;
}

static int scenario_compare_events(const void *a, const void *b)
{
    const struct td_scenario_event *left = a;
    const struct td_scenario_event *right = b;
    if (left->at != right->at) {
        return left->at < right->at ? -1 : 1;
    }
    return left->line < right->line ? -1 : left->line > right->line;
}

static int scenario_events(const struct td_place *place, struct td_scenario *ret)
{
    if (!place->value) {
        return TD_OK;
    }
    int code = td_place_array(place);
    struct td_scenario_event *events = td_arena_array(place->arena, struct td_scenario_event,
                                                      code == TD_OK ? place->value->count : 0);
    size_t count = 0;
    for (const struct td_json *item = code == TD_OK ? place->value->first : NULL;
         item && code == TD_OK; item = item->next, count++) {
        struct td_place at = td_place_item(place, item, count);
        code = scenario_event(&at, &events[count]);
    }
    qsort(events, count, sizeof(events[0]), scenario_compare_events);
    ret->events = events;
    ret->event_count = count;
    return code;
}

/* ---- Metrics ---- */

/* A metric's numbers are quantities: "20", "300m". */
static int metric_value(const struct td_place *place, double *ret)
{
    return td_place_bytes(place, ret);
}

static int scenario_metric(const struct td_place *at, struct td_measure *ret)
{
    static const char *const names[] = {"name", "about", "value", NULL};
    int code = td_place_object(at, names);
    struct td_place name = td_place_member(at, "name");
    struct td_place about = td_place_member(at, "about");
    struct td_place value = td_place_member(at, "value");
    if (code == TD_OK && !value.value) {
        return td_place_refuse(&value, "is required");
    }
    struct td_scenario_event target = {.name = TD_STR_EMPTY};
    code = code == TD_OK ? td_place_text(&name, true, &ret->name) : code;
    code = code == TD_OK ? event_target(&about, &target) : code;
    ret->kind = target.kind;
    ret->object = target.name;
    return code == TD_OK ? td_place_series(&value, metric_value, &ret->series) : code;
}

static int scenario_metrics(const struct td_place *place, struct td_scenario *ret)
{
    static const char *const names[] = {"resolution", "lag", "series", NULL};
    ret->metrics_every = 15 * TD_SECOND;
    if (!place->value) {
        return TD_OK;
    }
    int code = td_place_object(place, names);
    struct td_place every = td_place_member(place, "resolution");
    struct td_place lag = td_place_member(place, "lag");
    struct td_place series = td_place_member(place, "series");
    code = code == TD_OK ? td_place_duration(&every, &ret->metrics_every) : code;
    code = code == TD_OK ? td_place_duration(&lag, &ret->metrics_lag) : code;
    if (code != TD_OK || !series.value) {
        return code;
    }
    code = td_place_array(&series);
    struct td_measure *metrics =
        td_arena_array(place->arena, struct td_measure, code == TD_OK ? series.value->count : 0);
    size_t count = 0;
    for (const struct td_json *item = code == TD_OK ? series.value->first : NULL;
         item && code == TD_OK; item = item->next, count++) {
        struct td_place at = td_place_item(&series, item, count);
        metrics[count].seed = scenario_metric_seed(ret->seed, count);
        code = scenario_metric(&at, &metrics[count]);
    }
    ret->metrics = metrics;
    ret->metric_count = count;
    return code;
}

/* ---- The file ---- */

static int scenario_spec(const struct td_place *place, struct td_scenario *ret)
{
    static const char *const names[] = {"seed",   "duration", "nodes",   "manifests",
                                        "demand", "events",   "metrics", NULL};
    int code = td_place_object(place, names);
    struct td_place seed = td_place_member(place, "seed");
    struct td_place duration = td_place_member(place, "duration");
    struct td_place nodes = td_place_member(place, "nodes");
    struct td_place manifests = td_place_member(place, "manifests");
    struct td_place demand = td_place_member(place, "demand");
    struct td_place events = td_place_member(place, "events");
    struct td_place metrics = td_place_member(place, "metrics");
    int64_t number = 1;
    code = code == TD_OK ? td_place_int(&seed, 0, INT64_MAX, &number) : code;
    ret->seed = (uint64_t)number;
    code = code == TD_OK ? td_place_duration(&duration, &ret->duration) : code;
    code = code == TD_OK ? scenario_nodes(&nodes, ret) : code;
    code = code == TD_OK ? scenario_manifests(&manifests, ret) : code;
    code = code == TD_OK ? scenario_demands(&demand, ret) : code;
    code = code == TD_OK ? scenario_metrics(&metrics, ret) : code;
    return code == TD_OK ? scenario_events(&events, ret) : code;
}

static int scenario_root(const struct td_place *place, struct td_scenario *ret)
{
    static const char *const names[] = {"apiVersion", "kind", "metadata", "spec", NULL};
    static const char *const meta_names[] = {"name", "namespace", NULL};
    int code = td_place_object(place, names);
    struct td_place version = td_place_member(place, "apiVersion");
    struct td_place kind = td_place_member(place, "kind");
    struct td_place metadata = td_place_member(place, "metadata");
    struct td_place spec = td_place_member(place, "spec");
    td_str text = TD_STR_EMPTY;
    code = code == TD_OK ? td_place_text(&version, true, &text) : code;
    if (code == TD_OK && !td_str_equal(text, TD_STR(SCENARIO_API))) {
        code = td_place_refuse(&version, "must be " SCENARIO_API);
    }
    code = code == TD_OK ? td_place_text(&kind, true, &text) : code;
    if (code == TD_OK && !td_str_equal(text, TD_STR("Scenario"))) {
        code = td_place_refuse(&kind, "must be Scenario");
    }
    code = code == TD_OK ? td_place_object(&metadata, meta_names) : code;
    struct td_place name = td_place_member(&metadata, "name");
    struct td_place ns = td_place_member(&metadata, "namespace");
    code = code == TD_OK ? td_place_text(&name, true, &ret->name) : code;
    code = code == TD_OK ? td_place_text(&ns, false, &ret->ns) : code;
    return code == TD_OK ? scenario_spec(&spec, ret) : code;
}

int td_scenario_parse(struct td_arena *arena, td_str path, td_str text, struct td_scenario *ret,
                      struct td_error *err)
{
    struct td_yaml_documents documents = {.count = 0};
    int code = td_yaml_parse(arena, text, &documents, err);
    if (code != TD_OK) {
        return err ? td_error_wrap(err, "%.*s", TD_STR_ARG(path)) : code;
    }
    if (documents.count != 1) {
        return td_error_set(err, TD_INVALID, "%.*s: has %zu documents; a scenario is one",
                            TD_STR_ARG(path), documents.count);
    }
    struct td_scenario scenario = {.path = td_arena_copy_str(arena, path), .ns = TD_STR("default")};
    const struct td_place root = {
        .arena = arena, .file = scenario.path, .value = documents.items[0], .err = err};
    code = scenario_root(&root, &scenario);
    if (code == TD_OK) {
        *ret = scenario;
    }
    return code;
}

int td_scenario_load(struct td_arena *arena, const char *path, struct td_scenario *ret,
                     struct td_error *err)
{
    td_str text;
    int code = td_file_read(path, arena, TD_YAML_BYTES_MAX, &text, err);
    return code == TD_OK ? td_scenario_parse(arena, td_str_from(path), text, ret, err) : code;
}

void td_scenario_set_seed(struct td_arena *arena, struct td_scenario *scenario, uint64_t seed)
{
    struct td_demand *demands = td_arena_array(arena, struct td_demand, scenario->demand_count);
    struct td_measure *metrics = td_arena_array(arena, struct td_measure, scenario->metric_count);
    for (size_t i = 0; i < scenario->demand_count; i++) {
        demands[i] = scenario->demands[i];
        demands[i].seed = scenario_demand_seed(seed, i);
    }
    for (size_t i = 0; i < scenario->metric_count; i++) {
        metrics[i] = scenario->metrics[i];
        metrics[i].seed = scenario_metric_seed(seed, i);
    }
    scenario->seed = seed;
    scenario->demands = demands;
    scenario->metrics = metrics;
}
