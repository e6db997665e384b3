/*
 * The reader of a scenario file, member by member: nodes, manifests, metrics, and what
 * scenario_demand.c and scenario_events.c read of it. A parser of YAML gives lines, so each
 * refusal names file, line and field.
 */
#include "sim/scenario/scenario.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "base/stringset.h"
#include "base/timefmt.h"
#include "base/yaml/yaml.h"
#include "kube/names.h"
#include "local/jobs/cron_schedule.h"
#include "sim/scenario/scenario_demand.h"
#include "sim/scenario/scenario_events.h"
#include "sim/scenario/scenario_values.h"

#define SCENARIO_API "sim.tandem.dev/v1"
#define SCENARIO_RUNS_LOOKED_AT                                                                    \
    50 /* of a schedule, to see whether its runs are equally far apart */
static int scenario_node(const struct td_place *place, int64_t room, struct td_node_size *ret)
{
    struct node_amounts {
        double cpu_milli;
        double memory_bytes;
    };
    static const struct td_place_field fields[] = {
        {"count", TD_PLACE_OTHER, false, 0},
        {"cpu", TD_PLACE_CPU, false, offsetof(struct node_amounts, cpu_milli)},
        {"memory", TD_PLACE_BYTES, false, offsetof(struct node_amounts, memory_bytes)},
        {"pods", TD_PLACE_OTHER, false, 0},
    };
    *ret = td_node_size_usual(1);
    struct node_amounts amounts = {.cpu_milli = (double)ret->cpu_milli,
                                   .memory_bytes = (double)ret->memory_bytes};
    struct td_place count = td_place_member(place, "count");
    struct td_place cpu = td_place_member(place, "cpu");
    struct td_place memory = td_place_member(place, "memory");
    struct td_place pods = td_place_member(place, "pods");
    int code = td_place_fields(place, fields, TD_COUNT(fields), &amounts);
    code = code == TD_OK ? td_place_int(&count, 1, TD_NODES_OWN_MAX, &ret->count) : code;
    code = code == TD_OK ? td_place_int(&pods, 1, TD_SCENARIO_PODS_PER_NODE_MAX, &ret->pods) : code;
    if (code == TD_OK && ret->count > room) {
        return td_place_refuse(place, "more than %d nodes in total", TD_NODES_OWN_MAX);
    }
    if (code == TD_OK && (amounts.cpu_milli < 1 || amounts.memory_bytes < 1)) {
        return td_place_refuse(amounts.cpu_milli < 1 ? &cpu : &memory, "must be greater than 0");
    }
    ret->cpu_milli = (int64_t)amounts.cpu_milli;
    ret->memory_bytes = (int64_t)amounts.memory_bytes;
    return code;
}

static int scenario_nodes(const struct td_place *place, struct td_scenario *ret)
{
    size_t count = 0;
    int64_t total = 0;
    int code = td_place_list(place, TD_NODES_OWN_MAX, &count);
    if (code != TD_OK || count == 0) {
        return code;
    }
    struct td_node_size *nodes = td_arena_array(place->source->arena, struct td_node_size, count);
    const struct td_json *item = td_json_first_item(place->value);
    for (size_t i = 0; code == TD_OK && i < count; i++, item = item->next) {
        struct td_place at = td_place_item(place, item, i);
        code = scenario_node(&at, TD_NODES_OWN_MAX - total, &nodes[i]);
        total += nodes[i].count;
    }
    ret->nodes = nodes;
    ret->node_count = count;
    return code;
}

static int scenario_manifests(const struct td_place *place, struct td_scenario *ret)
{
    size_t count = 0;
    int code = td_place_list(place, TD_SCENARIO_MANIFESTS_MAX, &count);
    if (code != TD_OK || count == 0) {
        return code;
    }
    td_str *paths = td_arena_array(place->source->arena, td_str, count);
    const struct td_json *item = td_json_first_item(place->value);
    for (size_t i = 0; code == TD_OK && i < count; i++, item = item->next) {
        struct td_place at = td_place_item(place, item, i);
        code = td_place_read(&at, TD_PLACE_PATH, &paths[i]);
    }
    ret->manifests = paths;
    ret->manifest_count = count;
    return code;
}

/* ---- Metrics ---- */

static int metric_labels(const struct td_place *place, struct td_labels *ret)
{
    if (!place->value) {
        return TD_OK;
    }
    if (!td_json_is(place->value, TD_JSON_TYPE_OBJECT) ||
        place->value->count > TD_SCENARIO_LABELS_MAX) {
        return td_place_refuse(place, "must be a mapping of at most %zu labels",
                               TD_SCENARIO_LABELS_MAX);
    }
    for (const struct td_json *m = td_json_first_member(place->value); m; m = m->next) {
        const struct td_place label = {
            .source = place->source, .parent = place, .name = m->key, .value = m};
        if (!td_json_is(m, TD_JSON_TYPE_STRING) || td_name_check_qualified(m->key, NULL) > 0 ||
            td_name_check_label_value(m->text, NULL) > 0) {
            return td_place_refuse(&label, "must be a label: a key and a text");
        }
    }
    *ret = td_labels_from_json(place->source->arena, place->value);
    return TD_OK;
}

/* It is a part of URLs, and so has no characters that mean something there. */
static int metric_name(const struct td_place *place, td_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                        (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == ':';
        if (!is_plain) {
            return td_place_refuse(place, "must be letters, digits, '_', '-', '.' and ':'");
        }
    }
    return TD_OK;
}

/* Whose value would be asked for, of two with the same text? */
static int metric_only_once(const struct td_place *place, const struct td_measure *measure,
                            struct td_string_set *seen)
{
    struct td_arena *arena = place->source->arena;
    td_str key = td_arena_format(arena, "%.*s %.*s/%.*s", TD_STR_ARG(measure->name),
                                 TD_STR_ARG(measure->kind), TD_STR_ARG(measure->object));
    for (size_t i = 0; i < measure->labels.count; i++) {
        key = td_arena_format(arena, "%.*s %.*s=%.*s", TD_STR_ARG(key),
                              TD_STR_ARG(measure->labels.items[i].key),
                              TD_STR_ARG(measure->labels.items[i].value));
    }
    if (td_string_set_add(seen, key) == TD_EXISTS) {
        struct td_place name = td_place_member(place, "name");
        return td_place_refuse(&name, "duplicates an earlier item");
    }
    return TD_OK; /* as many fit as there are items */
}

static int scenario_metric(const struct td_place *place, struct td_string_set *seen,
                           struct td_measure *ret)
{
    static const struct td_place_field fields[] = {
        {"name", TD_PLACE_TEXT, true, offsetof(struct td_measure, name)},
        {"about", TD_PLACE_OTHER, false, 0},
        {"labels", TD_PLACE_OTHER, false, 0},
        {"value", TD_PLACE_AMOUNT_SERIES, true, offsetof(struct td_measure, series)},
    };
    struct td_place name = td_place_member(place, "name");
    struct td_place about = td_place_member(place, "about");
    struct td_place labels = td_place_member(place, "labels");
    struct td_scenario_target target = {.kind = TD_STR_EMPTY, .name = TD_STR_EMPTY};
    int code = td_place_fields(place, fields, TD_COUNT(fields), ret);
    code = code == TD_OK ? metric_name(&name, ret->name) : code;
    code = code == TD_OK ? td_scenario_read_target(&about, false, &target) : code;
    if (code == TD_OK && about.value && labels.value) {
        return td_place_refuse(&labels, "only allowed for external metrics");
    }
    code = code == TD_OK ? metric_labels(&labels, &ret->labels) : code;
    ret->kind = target.kind;
    ret->object = target.name;
    return code == TD_OK ? metric_only_once(place, ret, seen) : code;
}

static uint64_t scenario_metric_seed(uint64_t seed, size_t index)
{
    return seed + 7919 * (index + 1);
}

static int scenario_metric_list(const struct td_place *place, struct td_scenario *ret)
{
    size_t count = 0;
    int code = td_place_list(place, TD_SCENARIO_METRICS_MAX, &count);
    if (code != TD_OK || count == 0) {
        return code;
    }
    struct td_measure *metrics = td_arena_array(place->source->arena, struct td_measure, count);
    const struct td_json *item = td_json_first_item(place->value);
    td_auto_string_set seen = td_string_set_capped(TD_SCENARIO_METRICS_MAX);
    for (size_t i = 0; code == TD_OK && i < count; i++, item = item->next) {
        struct td_place at = td_place_item(place, item, i);
        metrics[i].ns = ret->ns;
        metrics[i].seed = scenario_metric_seed(ret->seed, i);
        code = scenario_metric(&at, &seen, &metrics[i]);
    }
    ret->metrics = metrics;
    ret->metric_count = count;
    return code;
}

static int scenario_metrics(const struct td_place *place, struct td_scenario *ret)
{
    static const struct td_place_field fields[] = {
        {"resolution", TD_PLACE_SPAN, false, offsetof(struct td_scenario, metrics_every)},
        {"lag", TD_PLACE_DURATION, false, offsetof(struct td_scenario, metrics_lag)},
        {"series", TD_PLACE_OTHER, false, 0},
    };
    const td_duration longest = TD_SCENARIO_METRICS_SPAN_MAX_SECONDS * TD_SECOND;
    ret->metrics_every = 15 * TD_SECOND; /* as metrics-server's own manifests ask for */
    if (!place->value) {
        return TD_OK;
    }
    struct td_place every = td_place_member(place, "resolution");
    struct td_place lag = td_place_member(place, "lag");
    struct td_place series = td_place_member(place, "series");
    int code = td_place_fields(place, fields, TD_COUNT(fields), ret);
    if (code == TD_OK && (ret->metrics_every < TD_SECOND || ret->metrics_every > longest)) {
        return td_place_refuse(&every, "must be from 1s to 1h");
    }
    if (code == TD_OK && ret->metrics_lag > longest) {
        return td_place_refuse(&lag, "must be from 0s to 1h");
    }
    return code == TD_OK ? scenario_metric_list(&series, ret) : code;
}

/* ---- The file ---- */

static int scenario_spec(const struct td_place *place, struct td_scenario *ret)
{
    static const struct td_place_field fields[] = {
        {"seed", TD_PLACE_OTHER, false, 0},
        {"duration", TD_PLACE_SPAN, false, offsetof(struct td_scenario, duration)},
        {"nodes", TD_PLACE_OTHER, false, 0},
        {"manifests", TD_PLACE_OTHER, false, 0},
        {"demand", TD_PLACE_OTHER, false, 0},
        {"events", TD_PLACE_OTHER, false, 0},
        {"metrics", TD_PLACE_OTHER, false, 0},
    };
    struct td_place seed = td_place_member(place, "seed");
    struct td_place nodes = td_place_member(place, "nodes");
    struct td_place manifests = td_place_member(place, "manifests");
    struct td_place demand = td_place_member(place, "demand");
    struct td_place events = td_place_member(place, "events");
    struct td_place metrics = td_place_member(place, "metrics");
    int64_t number = 1;
    int code = td_place_fields(place, fields, TD_COUNT(fields), ret);
    code = code == TD_OK ? td_place_int(&seed, 0, INT64_MAX, &number) : code;
    ret->seed = (uint64_t)number;
    code = code == TD_OK ? scenario_nodes(&nodes, ret) : code;
    code = code == TD_OK ? scenario_manifests(&manifests, ret) : code;
    code = code == TD_OK ? td_scenario_read_demands(&demand, ret) : code;
    code = code == TD_OK ? scenario_metrics(&metrics, ret) : code;
    return code == TD_OK ? td_scenario_read_events(&events, ret) : code;
}

static int scenario_must_be(const struct td_place *place, td_str given, const char *text)
{
    return td_str_equal(given, td_str_from(text)) ? TD_OK
                                                  : td_place_refuse(place, "must be %s", text);
}

static int scenario_root(const struct td_place *place, struct td_scenario *ret)
{
    struct scenario_head {
        td_str version;
        td_str kind;
    };
    static const struct td_place_field fields[] = {
        {"apiVersion", TD_PLACE_TEXT, true, offsetof(struct scenario_head, version)},
        {"kind", TD_PLACE_TEXT, true, offsetof(struct scenario_head, kind)},
        {"metadata", TD_PLACE_OTHER, true, 0},
        {"spec", TD_PLACE_OTHER, true, 0},
    };
    static const struct td_place_field metadata_fields[] = {
        {"name", TD_PLACE_LABEL, true, offsetof(struct td_scenario, name)},
        {"namespace", TD_PLACE_LABEL, false, offsetof(struct td_scenario, ns)},
    };
    struct scenario_head head = {.version = TD_STR_EMPTY};
    struct td_place version = td_place_member(place, "apiVersion");
    struct td_place kind = td_place_member(place, "kind");
    struct td_place metadata = td_place_member(place, "metadata");
    struct td_place spec = td_place_member(place, "spec");
    int code = td_place_fields(place, fields, TD_COUNT(fields), &head);
    code = code == TD_OK ? scenario_must_be(&version, head.version, SCENARIO_API) : code;
    code = code == TD_OK ? scenario_must_be(&kind, head.kind, "Scenario") : code;
    code = code == TD_OK
               ? td_place_fields(&metadata, metadata_fields, TD_COUNT(metadata_fields), ret)
               : code;
    return code == TD_OK ? scenario_spec(&spec, ret) : code;
}

/* "line 3: duplicate key 'a'" becomes "FILE:3: duplicate key 'a'". */
static int scenario_yaml_error(td_str path, int code, const struct td_error *found,
                               struct td_error *err)
{
    td_str message = td_str_from(found->message);
    size_t colon = td_str_find(message, ':', 0);
    td_str line = td_str_starts_with(message, TD_STR("line ")) ? td_str_slice(message, 5, colon)
                                                               : TD_STR("1");
    td_str rest = td_str_starts_with(message, TD_STR("line "))
                      ? td_str_slice(message, colon + 2, message.len)
                      : message;
    code = td_error_set(err, code, "%.*s:%.*s: %.*s", TD_STR_ARG(path), TD_STR_ARG(line),
                        TD_STR_ARG(rest));
    td_place_flatten(err);
    return code;
}

int td_scenario_parse(struct td_arena *arena, td_str path, td_str text, struct td_scenario *ret,
                      struct td_error *err)
{
    struct td_yaml_documents documents = {.count = 0};
    struct td_error found = TD_ERROR_INIT;
    int code = td_yaml_parse(arena, text, &documents, &found);
    if (code != TD_OK) {
        return scenario_yaml_error(path, code, &found, err);
    }
    if (documents.count != 1) {
        return td_error_set(err, TD_INVALID, "%.*s:1: has %zu documents; a scenario is one",
                            TD_STR_ARG(path), documents.count);
    }
    struct td_scenario scenario = {.path = td_arena_copy_str(arena, path), .ns = TD_STR("default")};
    struct td_scenario_source source = {.arena = arena, .path = scenario.path, .err = err};
    const struct td_place root = {.source = &source, .value = documents.items[0]};
    td_map_init(&source.traces, TD_SCENARIO_DEMANDS_MAX);
    code = scenario_root(&root, &scenario);
    td_map_done(&source.traces);
    if (code == TD_OK) {
        *ret = scenario;
    }
    return code;
}

int td_scenario_load(struct td_arena *arena, const char *path, struct td_scenario *ret,
                     struct td_error *err)
{
    td_str text;
    int code = td_file_read(path, arena, TD_SCENARIO_BYTES_MAX, &text, err);
    return code == TD_OK ? td_scenario_parse(arena, td_str_from(path), text, ret, err) : code;
}

void td_scenario_set_seed(struct td_arena *arena, struct td_scenario *scenario, uint64_t seed)
{
    struct td_demand *demands = td_arena_array(arena, struct td_demand, scenario->demand_count);
    struct td_measure *metrics = td_arena_array(arena, struct td_measure, scenario->metric_count);
    for (size_t i = 0; i < scenario->demand_count; i++) {
        demands[i] = scenario->demands[i];
        demands[i].seed = td_scenario_demand_seed(seed, i);
    }
    for (size_t i = 0; i < scenario->metric_count; i++) {
        metrics[i] = scenario->metrics[i];
        metrics[i].seed = scenario_metric_seed(seed, i);
    }
    scenario->seed = seed;
    scenario->demands = demands;
    scenario->metrics = metrics;
}

int td_scenario_check_schedule(const struct td_scenario *scenario, size_t demand, td_str schedule,
                               td_time start, struct td_error *err)
{
    const struct td_demand *entry = &scenario->demands[demand];
    struct td_cron_schedule cron;
    char every[TD_DURATION_TEXT_BYTES];
    td_time before = 0;
    int code = entry->run_every > 0 ? td_cron_parse(schedule, &cron, err) : TD_OK;
    if (code != TD_OK || entry->run_every == 0 || td_cron_next(&cron, start, &before) != TD_OK) {
        return code;
    }
    for (size_t i = 0; i < SCENARIO_RUNS_LOOKED_AT; i++) {
        td_time next = before;
        if (td_cron_next(&cron, before, &next) != TD_OK || next - before != entry->run_every) {
            (void)td_duration_format(entry->run_every, every); /* its length is in its NUL */
            return td_error_set(err, TD_INVALID,
                                "%.*s:%u: spec.demand[%zu].run.every: %s: the schedule of CronJob "
                                "%.*s is '%.*s'",
                                TD_STR_ARG(scenario->path), (unsigned)entry->line, demand, every,
                                TD_STR_ARG(entry->name), TD_STR_ARG(schedule));
        }
        before = next;
    }
    return TD_OK;
}
