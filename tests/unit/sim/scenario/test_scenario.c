/* Scenario files: what a good one means, and the one line that a bad one is answered with. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "sim/scenario/scenario.h"

#define FOLDER TEST_DATA_DIR "/scenarios/"
#define HEAD "apiVersion: sim.tandem.dev/v1\nkind: Scenario\nmetadata: {name: t}\nspec:\n"
#define SPEC(text) HEAD text "\n"
#define DEMAND(text) HEAD "  demand:\n  - target: {kind: Deployment, name: web}\n    " text "\n"
#define EVENT(text)                                                                                \
    HEAD "  nodes: [{count: 3}]\n"                                                                 \
         "  demand: [{target: {kind: Deployment, name: web}, roles: {label: role, a: {}, b: "      \
         "{}}}]\n  events:\n  - " text "\n"
#define METRIC(text) HEAD "  metrics:\n    series:\n    - " text "\n"

static void assert_text(td_str text, const char *expected)
{
    if (!td_str_equal(text, td_str_from(expected))) {
        fail_msg("'%.*s' instead of '%s'", TD_STR_ARG(text), expected);
    }
}

static void load(struct td_arena *arena, const char *path, struct td_scenario *ret)
{
    struct td_error err = TD_ERROR_INIT;
    td_arena_init(arena, TD_TREE_ARENA_BYTES_MAX);
    if (td_scenario_load(arena, path, ret, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
}

/* The example of the specification loads as it is. */
static void test_the_shop(void **state)
{
    (void)state;
    td_auto_arena arena;
    struct td_scenario s;
    load(&arena, FOLDER "shop.yaml", &s);
    assert_text(s.name, "shop");
    assert_text(s.ns, "default");
    assert_int_equal(s.seed, 7);
    assert_int_equal(s.duration, 72 * TD_HOUR);
    assert_int_equal(s.node_count, 1);
    assert_int_equal(s.nodes[0].count, 3);
    assert_int_equal(s.nodes[0].cpu_milli, 8000);
    assert_int_equal(s.nodes[0].memory_bytes, (int64_t)32 << 30);
    assert_int_equal(s.nodes[0].pods, 110);
    assert_text(s.manifests[0], FOLDER "shop.yaml");
    assert_int_equal(s.demand_count, 3);
    const struct td_demand *web = &s.demands[0];
    assert_text(web->container, "web");
    assert_int_equal(web->driver, TD_DEMAND_REQUESTS);
    assert_int_equal(web->requests.shape, TD_SERIES_DAY);
    assert_true(web->requests.low == 40 && web->requests.high == 900);
    assert_true(web->requests.noise == 0.05);
    assert_int_equal(web->requests.peak_at, 14 * TD_HOUR);
    assert_true(web->request_cpu_ms == 12 && web->request_memory_bytes == 0.4 * 1048576);
    assert_true(web->idle_cpu_milli == 20 && web->idle_memory_bytes == 180.0 * 1048576);
    assert_int_equal(web->startup_time, 20 * TD_SECOND);
    assert_true(web->startup_cpu_milli == 1000 && web->warmup_factor == 1);
    const struct td_demand *db = &s.demands[1];
    assert_int_equal(db->driver, TD_DEMAND_ROLES);
    assert_int_equal(db->role_count, 2);
    assert_text(db->roles[0].value, "leader");
    assert_true(db->roles[0].cpu.low == 1800 && db->roles[1].cpu.low == 400);
    assert_int_equal(s.demands[2].driver, TD_DEMAND_RUN);
    assert_int_equal(s.demands[2].run_time, 90 * TD_SECOND);
    assert_int_equal(s.demands[2].run_every, 30 * TD_MINUTE);
    assert_int_equal(s.demands[2].line, 17);
    assert_int_equal(s.event_count, 3);
    assert_int_equal(s.events[0].action, TD_ACTION_MOVE_ROLE);
    assert_text(s.events[0].kind, "StatefulSet");
    assert_text(s.events[0].to, "db-1");
    assert_text(s.events[1].node, "node-2");
    assert_int_equal(s.events[1].lasts, 30 * TD_MINUTE);
    assert_int_equal(s.metrics_every, 15 * TD_SECOND);
}

/* Requests: shares by role, from other entries, and what goes with them. */
static void test_requests_of_every_sort(void **state)
{
    (void)state;
    td_auto_arena arena;
    struct td_scenario s;
    load(&arena, FOLDER "all.yaml", &s);
    const struct td_demand *web = &s.demands[0];
    assert_text(web->ns, "shop");
    assert_text(web->kind, "Deployment");
    assert_int_equal(web->requests.shape, TD_SERIES_WEEK);
    assert_true(web->requests.low == 1 && web->requests.high == 10);
    assert_true(web->requests.weekend == 0.25);
    assert_int_equal(web->requests.peak_at, 9 * TD_HOUR + 30 * TD_MINUTE);
    assert_true(web->request_cpu_ms == 1.5 && web->request_memory_bytes == 1024);
    assert_text(web->role_label, "shard");
    assert_int_equal(web->role_count, 2);
    assert_text(web->roles[0].value, "hot");
    assert_true(web->roles[0].weight == 8 && web->roles[1].weight == 1);
    assert_int_equal(web->warmup_time, 90 * TD_SECOND);
    assert_true(web->warmup_factor == 3);
    assert_true(web->leak_bytes_per_hour == 10.0 * 1048576);
    assert_true(web->keeps_memory && web->is_carried_over && !web->has_source);
    const struct td_demand *api = &s.demands[1];
    assert_true(api->has_source && !api->is_carried_over);
    assert_int_equal(api->source, 0);
    assert_true(api->source_times == 2.5 && api->request_cpu_ms == 0.1);
    assert_int_equal(s.demands[2].source, 1);
    assert_true(s.demands[2].source_times == 1 && s.demands[2].request_memory_bytes == 64);
    assert_true(web->seed != api->seed);
}

/* The other drivers, each series with its own members. */
static void test_series_of_every_shape(void **state)
{
    (void)state;
    td_auto_arena arena;
    struct td_scenario s;
    load(&arena, FOLDER "all.yaml", &s);
    const struct td_demand *db = &s.demands[3];
    assert_text(db->roles[0].value, "zoo"); /* the file's order, not the alphabet's */
    assert_text(db->roles[1].value, "alpha");
    assert_true(db->roles[0].cpu.low == 2000 && db->roles[0].cpu.noise == 0.01);
    const struct td_series *spikes = &db->roles[1].memory;
    assert_int_equal(spikes->shape, TD_SERIES_SPIKES);
    assert_int_equal(spikes->every, TD_HOUR);
    assert_int_equal(spikes->lasts, 5 * TD_MINUTE);
    const struct td_demand *agent = &s.demands[4];
    assert_int_equal(agent->driver, TD_DEMAND_PER_POD);
    assert_int_equal(agent->cpu.shape, TD_SERIES_STEPS);
    assert_true(agent->cpu.low == 5 && agent->cpu.points[1].value == 20);
    assert_int_equal(agent->cpu.period, 24 * TD_HOUR);
    assert_int_equal(agent->memory.shape, TD_SERIES_RAMP);
    assert_int_equal(agent->memory.point_count, 2);
    assert_int_equal(agent->memory.period, 0);
    const struct td_demand *canary = &s.demands[5];
    assert_text(canary->kind, "Rollout");
    assert_int_equal(canary->cpu.shape, TD_SERIES_STEPS);
    assert_true(canary->cpu.points[0].value == 100 && canary->cpu.points[1].value == 102);
    assert_true(canary->memory.points[0].value == 524288000);
    assert_int_equal(canary->cpu.points[1].at, TD_HOUR);
    assert_int_equal(canary->cpu.period, (td_duration)canary->cpu.point_count * TD_HOUR);
    assert_int_equal(canary->memory.period, canary->cpu.period);
    const struct td_demand *one = &s.demands[6];
    assert_ptr_equal(one->cpu.points, canary->cpu.points); /* read once */
    assert_true(one->cpu.noise == 0.02 && one->cpu.period == 0);
    assert_true(one->memory.low == 64.0 * 1048576);
    assert_int_equal(s.demands[7].run_every, 0);
    assert_int_equal(s.demands[8].memory.shape, TD_SERIES_DAY);
    assert_true(s.demands[9].idle_cpu_milli == 1);
}

/* Nodes, metrics and events; events in the order of time, then of the file. */
static void test_the_rest_of_the_file(void **state)
{
    (void)state;
    static const struct {
        enum td_scenario_action action;
        td_duration at;
        double amount;
    } events[] = {
        {TD_ACTION_METRICS_GAP, 0, 0},         {TD_ACTION_APPLY, TD_HOUR, 0},
        {TD_ACTION_SLOW_START, TD_HOUR, 4},    {TD_ACTION_API_ERRORS, TD_HOUR, 0.2},
        {TD_ACTION_SCALE, 2 * TD_HOUR, 0},     {TD_ACTION_NODE_LOSS, 2 * TD_HOUR, 0},
        {TD_ACTION_MOVE_ROLE, 3 * TD_HOUR, 0}, {TD_ACTION_WEBHOOK_DOWN, 4 * TD_HOUR, 0},
    };
    td_auto_arena arena;
    struct td_scenario s;
    load(&arena, FOLDER "all.yaml", &s);
    assert_int_equal(s.duration, 36 * TD_HOUR);
    assert_int_equal(s.node_count, 2);
    assert_int_equal(s.nodes[0].pods, 50);
    assert_int_equal(s.nodes[1].count, 1);
    assert_int_equal(s.nodes[1].cpu_milli, 1500);
    assert_int_equal(s.nodes[1].memory_bytes, (int64_t)32 << 30);
    assert_text(s.manifests[1], "/etc/b.yaml");
    assert_int_equal(s.metrics_every, 30 * TD_SECOND);
    assert_int_equal(s.metrics_lag, 5 * TD_SECOND);
    assert_int_equal(s.metric_count, 3);
    assert_int_equal(s.metrics[0].labels.count, 2);
    assert_text(s.metrics[0].labels.items[0].key, "env");
    assert_int_equal(s.metrics[0].kind.len, 0);
    assert_true(s.metrics[1].series.low == 1.5);
    assert_text(s.metrics[2].kind, "Service");
    assert_text(s.metrics[2].object, "web");
    assert_text(s.metrics[2].ns, "shop");
    assert_int_equal(s.event_count, sizeof(events) / sizeof(events[0]));
    for (size_t i = 0; i < s.event_count; i++) {
        assert_int_equal(s.events[i].action, events[i].action);
        assert_int_equal(s.events[i].at, events[i].at);
        assert_true(s.events[i].amount == events[i].amount);
    }
    assert_text(s.events[1].manifest, FOLDER "c.yaml");
    assert_text(s.events[6].label_key, "tandem.dev/role");
    assert_text(s.events[6].label_value, "zoo");
}

static void check_refused(const char *text, const char *message)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    struct td_scenario s = {.seed = 99};
    const char *shown = err.message;
    int code = td_scenario_parse(&arena, TD_STR(FOLDER "t.yaml"), td_str_from(text), &s, &err);
    if (strncmp(shown, FOLDER, strlen(FOLDER)) == 0) {
        shown += strlen(FOLDER);
    }
    if (code == TD_OK || strcmp(shown, message) != 0) {
        fail_msg("%s\nis answered with: %s\ninstead of:      %s", text,
                 code == TD_OK ? "success" : shown, message);
    }
    assert_null(strchr(err.message, '\n'));
    assert_int_equal(s.seed, 99); /* untouched */
}

static const struct {
    const char *text;
    const char *message;
} bad_rows[] = {
    {"", "t.yaml:1: has 0 documents; a scenario is one"},
    {"a: b: c\n", "t.yaml:1: mapping values are not allowed in this context"},
    {"a: 1\na: 2\n", "t.yaml:2: duplicate key 'a', first set in line 1"},
    {"- 1\n", "t.yaml:1: the file: a list: must be a mapping"},
    {"just a text\n", "t.yaml:1: the file: just a text: must be a mapping"},
    {"{}\n---\n{}\n", "t.yaml:1: has 2 documents; a scenario is one"},
    {"a: \001\n", "t.yaml:1: control characters are not allowed"},
    {"apiVersion: sim.tandem.dev/v2\nkind: Scenario\nmetadata: {name: t}\nspec: {}\n",
     "t.yaml:1: apiVersion: sim.tandem.dev/v2: must be sim.tandem.dev/v1"},
    {"apiVersion: sim.tandem.dev/v1\nkind: Deployment\nmetadata: {name: t}\nspec: {}\n",
     "t.yaml:2: kind: Deployment: must be Scenario"},
    {"kind: Scenario\nmetadata: {name: t}\nspec: {}\n",
     "t.yaml:1: apiVersion: missing: is required"},
    {"apiVersion: sim.tandem.dev/v1\nkind: Scenario\nspec: {}\n",
     "t.yaml:1: metadata: missing: is required"},
    {"apiVersion: sim.tandem.dev/v1\nkind: Scenario\nmetadata: {}\nspec: {}\n",
     "t.yaml:3: metadata.name: missing: is required"},
    {"apiVersion: sim.tandem.dev/v1\nkind: Scenario\nmetadata: {name: Shop}\nspec: {}\n",
     "t.yaml:3: metadata.name: Shop: must be a name of small letters, digits and '-'"},
    {"apiVersion: sim.tandem.dev/v1\nkind: Scenario\nmetadata: {name: t, namespace: "
     "a.b}\nspec: {}\n",
     "t.yaml:3: metadata.namespace: a.b: must be a name of small letters, digits and '-'"},
    {"apiVersion: sim.tandem.dev/v1\nkind: Scenario\nmetadata: {name: t}\n",
     "t.yaml:1: spec: missing: is required"},
    {"apiVersion: sim.tandem.dev/v1\nkind: Scenario\nmetadata: {name: t}\nspecs: {}\n",
     "t.yaml:4: specs: a mapping: unknown field; did you mean spec?"},
    {"apiVersion: sim.tandem.dev/v1\nkind: Scenario\nmetadata: {name: t}\nspec: []\n",
     "t.yaml:4: spec: a list: must be a mapping"},
    {SPEC("  sed: 1"), "t.yaml:5: spec.sed: 1: unknown field; did you mean seed?"},
    {SPEC("  colour: blue"), "t.yaml:5: spec.colour: blue: unknown field; see docs/scenario.md"},
    {SPEC("  \"a\\nb\": 1"), "t.yaml:5: spec.a b: 1: unknown field; see docs/scenario.md"},
    {SPEC("  seed: -1"),
     "t.yaml:5: spec.seed: -1: must be a whole number from 0 to 9223372036854775807"},
    {SPEC("  seed: 1.5"),
     "t.yaml:5: spec.seed: 1.5: must be a whole number from 0 to 9223372036854775807"},
    {SPEC("  seed: 99999999999999999999"), "t.yaml:5: spec.seed: 100000000000000000000: must "
                                           "be a whole number from 0 to 9223372036854775807"},
    {SPEC("  seed: seven"),
     "t.yaml:5: spec.seed: seven: must be a whole number from 0 to 9223372036854775807"},
    {SPEC("  duration: 3"), "t.yaml:5: spec.duration: 3: must be a duration from 0s to 3650d, "
                            "such as 90s, 9h30m or 3d"},
    {SPEC("  duration: 3 days"), "t.yaml:5: spec.duration: 3 days: must be a duration from 0s "
                                 "to 3650d, such as 90s, 9h30m or 3d"},
    {SPEC("  duration: d"), "t.yaml:5: spec.duration: d: must be a duration from 0s to 3650d, "
                            "such as 90s, 9h30m or 3d"},
    {SPEC("  duration: 0s"), "t.yaml:5: spec.duration: 0s: must be longer than 0s"},
    {SPEC("  duration: -1h"), "t.yaml:5: spec.duration: -1h: must be a duration from 0s to "
                              "3650d, such as 90s, 9h30m or 3d"},
    {SPEC("  duration: 3651d"), "t.yaml:5: spec.duration: 3651d: must be a duration from 0s to "
                                "3650d, such as 90s, 9h30m or 3d"},
    {SPEC("  duration: 3650d1ns"), "t.yaml:5: spec.duration: 3650d1ns: must be a duration from "
                                   "0s to 3650d, such as 90s, 9h30m or 3d"},
    {SPEC("  duration: 99999999999999999999d"),
     "t.yaml:5: spec.duration: 99999999999999999999d: must be a duration from 0s to 3650d, "
     "such as 90s, 9h30m or 3d"},
    {SPEC("  duration: \"\""), "t.yaml:5: spec.duration: '': must be a duration from 0s to "
                               "3650d, such as 90s, 9h30m or 3d"},
    {SPEC("  nodes: 3"), "t.yaml:5: spec.nodes: 3: must be a list"},
    {SPEC("  nodes: [3]"), "t.yaml:5: spec.nodes[0]: 3: must be a mapping"},
    {SPEC("  nodes: [{count: 0}]"),
     "t.yaml:5: spec.nodes[0].count: 0: must be a whole number from 1 to 5000"},
    {SPEC("  nodes: [{count: 5001}]"),
     "t.yaml:5: spec.nodes[0].count: 5001: must be a whole number from 1 to 5000"},
    {SPEC("  nodes: [{count: 3000}, {count: 2001}]"),
     "t.yaml:5: spec.nodes[1]: a mapping: more than 5000 nodes in total"},
    {SPEC("  nodes: [{cpu: 0}]"), "t.yaml:5: spec.nodes[0].cpu: 0: must be greater than 0"},
    {SPEC("  nodes: [{cpu: .nan}]"), "t.yaml:5: .nan cannot be written as a JSON number"},
    {SPEC("  nodes: [{cpu: .inf}]"), "t.yaml:5: .inf cannot be written as a JSON number"},
    {SPEC("  nodes: [{memory: 0}]"), "t.yaml:5: spec.nodes[0].memory: 0: must be greater than 0"},
    {SPEC("  nodes: [{cpu: -1}]"), "t.yaml:5: spec.nodes[0].cpu: -1: must be a quantity from 0 "
                                   "to 1000000, such as 250m or 1.5"},
    {SPEC("  nodes: [{memory: 2Pi}]"),
     "t.yaml:5: spec.nodes[0].memory: 2Pi: must be a quantity from 0 to 1Pi, such as 180Mi"},
    {SPEC("  nodes: [{cpus: 4}]"),
     "t.yaml:5: spec.nodes[0].cpus: 4: unknown field; did you mean cpu?"},
    {SPEC("  nodes: [{pods: 0}]"),
     "t.yaml:5: spec.nodes[0].pods: 0: must be a whole number from 1 to 10000"},
    {SPEC("  manifests: shop.yaml"), "t.yaml:5: spec.manifests: shop.yaml: must be a list"},
    {SPEC("  manifests: [1]"), "t.yaml:5: spec.manifests[0]: 1: must be a text"},
    {SPEC("  manifests: [\"-\"]"), "t.yaml:5: spec.manifests[0]: -: must be the path of a file"},
    {SPEC("  manifests: [\"a\\0b\"]"),
     "t.yaml:5: spec.manifests[0]: a: must be the path of a file"},
    {SPEC("  demand: {}"), "t.yaml:5: spec.demand: a mapping: must be a list"},
    {SPEC("  demand:\n  - cpu: 1"), "t.yaml:6: spec.demand[0].target: missing: is required"},
    {SPEC("  demand:\n  - target: {kind: Deployment, name: web}"),
     "t.yaml:6: spec.demand[0]: a mapping: must have requests, usage or another kind of demand"},
    {SPEC("  demand:\n  - target: deployment/web\n    cpu: 1"),
     "t.yaml:6: spec.demand[0].target: deployment/web: must be a mapping"},
    {SPEC("  demand:\n  - target: {kind: thing, name: web}\n    cpu: 1"),
     "t.yaml:6: spec.demand[0].target.kind: thing: must name a kind such as Deployment"},
    {SPEC("  demand:\n  - target: {kind: Deployment, name: Web_1}\n    cpu: 1"),
     "t.yaml:6: spec.demand[0].target.name: Web_1: must be a name of small letters, digits, "
     "'-' and '.'"},
    {SPEC("  demand:\n  - target: {kind: Deployment}\n    cpu: 1"),
     "t.yaml:6: spec.demand[0].target.name: missing: is required"},
    {SPEC("  demand:\n  - target: {kind: Deployment, name: web, container: a.b}\n    cpu: 1"),
     "t.yaml:6: spec.demand[0].target.container: a.b: must be a name of small letters, digits "
     "and '-'"},
    {SPEC("  demand:\n  - {target: {kind: Deployment, name: web}, cpu: 1}\n  - {target: {kind: "
          "deployment, name: web}, cpu: 2}"),
     "t.yaml:7: spec.demand[1].target: a mapping: Deployment/web is already the target of "
     "spec.demand[0]"},
    {SPEC("  demand:\n  - {target: {kind: Deployment, name: web, container: a}, cpu: 1}\n  - "
          "{target: {kind: Deployment, name: web, container: a}, cpu: 2}"),
     "t.yaml:7: spec.demand[1].target: a mapping: Deployment/web/a is already the target of "
     "spec.demand[0]"},
    {DEMAND("cpu: -1"), "t.yaml:7: spec.demand[0].cpu: -1: must be a quantity from 0 to "
                        "1000000, such as 250m or 1.5"},
    {DEMAND("cpu: lots"), "t.yaml:7: spec.demand[0].cpu: lots: must be a quantity from 0 to "
                          "1000000, such as 250m or 1.5"},
    {DEMAND("cpu: 1e7"), "t.yaml:7: spec.demand[0].cpu: 10000000: must be a quantity from 0 to "
                         "1000000, such as 250m or 1.5"},
    {DEMAND("cpu: 1e400"), "t.yaml:7: spec.demand[0].cpu: 1e400: must be a quantity from 0 to "
                           "1000000, such as 250m or 1.5"},
    {DEMAND("cpu: true"), "t.yaml:7: spec.demand[0].cpu: true: must be a quantity from 0 to "
                          "1000000, such as 250m or 1.5"},
    {DEMAND("memory: -1Gi"),
     "t.yaml:7: spec.demand[0].memory: -1Gi: must be a quantity from 0 to 1Pi, such as 180Mi"},
    {DEMAND("memory: [1]"), "t.yaml:7: spec.demand[0].memory: a list: must be a quantity from "
                            "0 to 1Pi, such as 180Mi"},
    {DEMAND("memry: 1Gi"),
     "t.yaml:7: spec.demand[0].memry: 1Gi: unknown field; did you mean memory?"},
    {DEMAND("cpu: {shape: square}"), "t.yaml:7: spec.demand[0].cpu.shape: square: must be "
                                     "constant, steps, ramp, day, week, spikes or trace"},
    {DEMAND("cpu: {shape: 1}"), "t.yaml:7: spec.demand[0].cpu.shape: 1: must be a text"},
    {DEMAND("cpu: {shape: day, low: 1}"),
     "t.yaml:7: spec.demand[0].cpu.high: missing: is required"},
    {DEMAND("cpu: {shape: day, low: 2, high: 1}"),
     "t.yaml:7: spec.demand[0].cpu.high: 1: must not be below low"},
    {DEMAND("cpu: {shape: day, low: 1, high: 2, points: []}"),
     "t.yaml:7: spec.demand[0].cpu.points: a list: unknown field; see docs/scenario.md"},
    {DEMAND("cpu: {shape: day, low: 1, high: 2, peakAt: \"24:00\"}"),
     "t.yaml:7: spec.demand[0].cpu.peakAt: 24:00: must be a time of day such as \"14:00\""},
    {DEMAND("cpu: {shape: day, low: 1, high: 2, peakAt: noon}"),
     "t.yaml:7: spec.demand[0].cpu.peakAt: noon: must be a time of day such as \"14:00\""},
    {DEMAND("cpu: {shape: day, low: 1, high: 2, noise: 101%}"),
     "t.yaml:7: spec.demand[0].cpu.noise: 101%: must be a share from 0 to 1, such as 5% or "
     "0.05"},
    {DEMAND("cpu: {shape: day, low: 1, high: 2, noise: -5%}"),
     "t.yaml:7: spec.demand[0].cpu.noise: -5%: must be a share from 0 to 1, such as 5% or "
     "0.05"},
    {DEMAND("cpu: {shape: week, low: 1, high: 2, weekend: -1}"),
     "t.yaml:7: spec.demand[0].cpu.weekend: -1: must be a number from 0 to 1000000"},
    {DEMAND("cpu: {shape: week, low: 1, high: 2, weekend: .inf}"),
     "t.yaml:7: .inf cannot be written as a JSON number"},
    {DEMAND("cpu: {shape: spikes, high: 2, every: 1h}"),
     "t.yaml:7: spec.demand[0].cpu.for: missing: is required"},
    {DEMAND("cpu: {shape: spikes, high: 2, every: 1h, for: 1h}"),
     "t.yaml:7: spec.demand[0].cpu.for: 1h: must be shorter than every"},
    {DEMAND("cpu: {shape: spikes, high: 2, every: 0s, for: 1h}"),
     "t.yaml:7: spec.demand[0].cpu.every: 0s: must be longer than 0s"},
    {DEMAND("cpu: {shape: steps}"), "t.yaml:7: spec.demand[0].cpu.points: missing: is required"},
    {DEMAND("cpu: {shape: steps, points: []}"),
     "t.yaml:7: spec.demand[0].cpu.points: a list: has no point"},
    {DEMAND("cpu: {shape: steps, points: [{at: 1h}]}"),
     "t.yaml:7: spec.demand[0].cpu.points[0].value: missing: is required"},
    {DEMAND("cpu: {shape: steps, points: [{at: 1h, value: 1}, {at: 1h, value: 2}]}"),
     "t.yaml:7: spec.demand[0].cpu.points[1].at: 1h: must be later than the point before it"},
    {DEMAND("cpu: {shape: ramp, points: [{at: 1h, value: 1}, {at: 2h, value: 2}], repeat: 2h}"),
     "t.yaml:7: spec.demand[0].cpu.repeat: 2h: must be later than the last point"},
    {DEMAND("cpu: {shape: steps, points: [{at: 1h, value: 1}], repeat: true}"),
     "t.yaml:7: spec.demand[0].cpu.repeat: true: must be a duration from 0s to 3650d, such as "
     "90s, 9h30m or 3d"},
    {DEMAND("cpu: {shape: trace}"), "t.yaml:7: spec.demand[0].cpu.file: missing: is required"},
    {DEMAND("cpu: {shape: trace, file: none.csv}"),
     "t.yaml:7: spec.demand[0].cpu.file: none.csv: No such file or directory"},
    {DEMAND("cpu: {shape: trace, file: ../traces/usage.json}"),
     "t.yaml:7: spec.demand[0].cpu.file: ../traces/usage.json: the traces have no window with "
     "both cpu and memory"},
    {DEMAND("cpu: {shape: trace, file: bad.csv}"),
     "bad.csv:3: cpu_avg_cores: 'x': not a number from 0 to 1e+06"},
    {DEMAND("cpu: {shape: trace, file: ../traces/step.csv, repeat: 1h}"),
     "t.yaml:7: spec.demand[0].cpu.repeat: 1h: must be true or false"},
    {DEMAND("trace: {file: ../traces/step.csv}\n    cpu: 1"),
     "t.yaml:8: spec.demand[0].cpu: 1: not allowed together with trace"},
    {DEMAND("trace: ../traces/step.csv"),
     "t.yaml:7: spec.demand[0].trace: ../traces/step.csv: must be a mapping"},
    {DEMAND("requests: 5"),
     "t.yaml:6: spec.demand[0].perRequest: missing: is required together with requests"},
    {DEMAND("perRequest: {cpu: 1ms}"),
     "t.yaml:6: spec.demand[0].requests: missing: is required together with perRequest"},
    {DEMAND("requests: {shape: trace, file: x}\n    perRequest: {}"),
     "t.yaml:7: spec.demand[0].requests.shape: trace: must be constant, steps, ramp, day, week "
     "or spikes"},
    {DEMAND("requests: -5/s\n    perRequest: {}"),
     "t.yaml:7: spec.demand[0].requests: -5/s: must be a rate from 0/s to 1000000000/s, such "
     "as 40/s or 600/m"},
    {DEMAND("requests: 5/d\n    perRequest: {}"),
     "t.yaml:7: spec.demand[0].requests: 5/d: must be a rate from 0/s to 1000000000/s, such as "
     "40/s or 600/m"},
    {DEMAND("requests: 2000000000/s\n    perRequest: {}"),
     "t.yaml:7: spec.demand[0].requests: 2000000000/s: must be a rate from 0/s to "
     "1000000000/s, such as 40/s or 600/m"},
    {DEMAND("requests: 5/s\n    perRequest: {cpu: 12}"),
     "t.yaml:8: spec.demand[0].perRequest.cpu: 12: must be processor time from 0s to 1h, such "
     "as 12ms"},
    {DEMAND("requests: 5/s\n    perRequest: {cpu: -12ms}"),
     "t.yaml:8: spec.demand[0].perRequest.cpu: -12ms: must be processor time from 0s to 1h, "
     "such as 12ms"},
    {DEMAND("requests: 5/s\n    perRequest: {}\n    run: {for: 1s}"),
     "t.yaml:9: spec.demand[0].run: a mapping: not allowed together with requests"},
    {DEMAND("requests: 5/s\n    perRequest: {}\n    cpu: 1"),
     "t.yaml:9: spec.demand[0].cpu: 1: not allowed together with requests"},
    {DEMAND("requests: {by: web}\n    perRequest: {}"),
     "t.yaml:7: spec.demand[0].requests.by: web: must be KIND/NAME or KIND/NAME/CONTAINER, "
     "such as deployment/web"},
    {DEMAND("requests: {by: deployment/web/a/b}\n    perRequest: {}"),
     "t.yaml:7: spec.demand[0].requests.by: deployment/web/a/b: must be KIND/NAME or "
     "KIND/NAME/CONTAINER, such as deployment/web"},
    {DEMAND("requests: {by: deployment/api}\n    perRequest: {}"),
     "t.yaml:7: spec.demand[0].requests.by: deployment/api: no entry of spec.demand gives it "
     "requests"},
    {DEMAND("requests: {by: deployment/web, times: -1}\n    perRequest: {}"),
     "t.yaml:7: spec.demand[0].requests.times: -1: must be a number from 0 to 1000000"},
    {DEMAND("requests: {by: deployment/web, times: 1001}\n    perRequest: {}"),
     "t.yaml:7: spec.demand[0].requests.times: 1001: must be at most 1000"},
    {DEMAND("requests: {by: deployment/web}\n    perRequest: {}"),
     "t.yaml:7: spec.demand[0].requests.by: deployment/web: requests go in a circle: web -> "
     "web"},
    {SPEC("  demand:\n  - {target: {kind: Deployment, name: web}, cpu: 1}\n  - target: {kind: "
          "Deployment, name: api}\n    requests: {by: deployment/web}\n    perRequest: {}"),
     "t.yaml:8: spec.demand[1].requests.by: deployment/web: no entry of spec.demand gives it "
     "requests"},
    {SPEC("  demand:\n  - {target: {kind: Deployment, name: web}, requests: {by: "
          "deployment/db}, perRequest: {}}\n  - {target: {kind: Deployment, name: api}, "
          "requests: {by: deployment/web}, perRequest: {}}\n  - {target: {kind: Deployment, "
          "name: db}, requests: {by: deployment/api}, perRequest: {}}"),
     "t.yaml:6: spec.demand[0].requests.by: deployment/db: requests go in a circle: web -> api "
     "-> db -> web"},
    {SPEC("  demand:\n  - {target: {kind: Deployment, name: in}, requests: {by: "
          "deployment/web}, perRequest: {}}\n  - {target: {kind: Deployment, name: web}, "
          "requests: {by: deployment/api}, perRequest: {}}\n  - {target: {kind: Deployment, "
          "name: api}, requests: {by: deployment/web}, perRequest: {}}"),
     "t.yaml:7: spec.demand[1].requests.by: deployment/api: requests go in a circle: web -> "
     "api -> web"},
    {SPEC("  demand:\n  - {target: {kind: Deployment, name: web, container: a}, requests: 1, "
          "perRequest: {}}\n  - {target: {kind: Deployment, name: web, container: b}, "
          "requests: 1, perRequest: {}}\n  - {target: {kind: Deployment, name: api}, requests: "
          "{by: deployment/web}, perRequest: {}}"),
     "t.yaml:8: spec.demand[2].requests.by: deployment/web: has 2 entries with requests; name "
     "one with KIND/NAME/CONTAINER"},
    {DEMAND("roles: {leader: {cpu: 1}}"),
     "t.yaml:7: spec.demand[0].roles.label: missing: is required"},
    {DEMAND("roles: {label: role}"),
     "t.yaml:7: spec.demand[0].roles: a mapping: must name 1 to 64 roles"},
    {DEMAND("roles: {label: \"a b\", leader: {cpu: 1}}"),
     "t.yaml:7: spec.demand[0].roles.label: a b: must be the key of a label such as role"},
    {DEMAND("roles: {label: role, \"a b\": {cpu: 1}}"),
     "t.yaml:7: spec.demand[0].roles.a b: a mapping: the name of a role must be the value of a "
     "label"},
    {DEMAND("roles: {label: role, leader: 1}"),
     "t.yaml:7: spec.demand[0].roles.leader: 1: must be a mapping"},
    {DEMAND("roles: {label: role, leader: {weight: 2}}"),
     "t.yaml:7: spec.demand[0].roles.leader.weight: 2: unknown field; see docs/scenario.md"},
    {DEMAND("roles: [leader]"),
     "t.yaml:7: spec.demand[0].roles: a list: must be a mapping of a label and its values"},
    {DEMAND("requests: 5\n    perRequest: {}\n    roles: {label: role, hot: {cpu: 1}}"),
     "t.yaml:9: spec.demand[0].roles.hot.cpu: 1: unknown field; see docs/scenario.md"},
    {DEMAND("requests: 5\n    perRequest: {}\n    roles: {label: role, hot: {weight: 0}, cold: "
            "{weight: 0}}"),
     "t.yaml:9: spec.demand[0].roles: a mapping: a role must have a weight above 0"},
    {DEMAND("requests: 5\n    perRequest: {}\n    roles: {label: role, hot: {weight: -1}}"),
     "t.yaml:9: spec.demand[0].roles.hot.weight: -1: must be a number from 0 to 1000000"},
    {SPEC("  demand:\n  - {target: {kind: Pod, name: a, container: x}, roles: {label: r, a: "
          "{}, b: {}}}\n  - {target: {kind: Pod, name: a, container: z}, roles: {label: r, b: "
          "{}, a: {}}}"),
     "t.yaml:7: spec.demand[1].roles: a mapping: must be those of spec.demand[0], of the same "
     "pods"},
    {DEMAND("run: {cpu: 1}"), "t.yaml:7: spec.demand[0].run.for: missing: is required"},
    {DEMAND("run: {for: 0s}"), "t.yaml:7: spec.demand[0].run.for: 0s: must be longer than 0s"},
    {DEMAND("run: {for: 1m, every: 30m}"),
     "t.yaml:7: spec.demand[0].run.every: 30m: only allowed for a CronJob"},
    {DEMAND("idle: {cpu: -1m}"), "t.yaml:7: spec.demand[0].idle.cpu: -1m: must be a quantity "
                                 "from 0 to 1000000, such as 250m or 1.5"},
    {DEMAND("idle: 20m"), "t.yaml:7: spec.demand[0].idle: 20m: must be a mapping"},
    {DEMAND("startup: {cpu: 1}"), "t.yaml:7: spec.demand[0].startup.time: missing: is required"},
    {DEMAND("startup: {time: 20}"), "t.yaml:7: spec.demand[0].startup.time: 20: must be a "
                                    "duration from 0s to 3650d, such as 90s, 9h30m or 3d"},
    {DEMAND("warmup: {time: 20s}"), "t.yaml:7: spec.demand[0].warmup.factor: missing: is required"},
    {DEMAND("warmup: {time: 20s, factor: 0.5}"),
     "t.yaml:7: spec.demand[0].warmup.factor: 0.5: must be a number from 1 to 1000000"},
    {DEMAND("memoryHabits: {leakPerHour: -1}"),
     "t.yaml:7: spec.demand[0].memoryHabits.leakPerHour: -1: must be a quantity from 0 to 1Pi, "
     "such as 180Mi"},
    {DEMAND("memoryHabits: {neverReturns: 1}"),
     "t.yaml:7: spec.demand[0].memoryHabits.neverReturns: 1: must be true or false"},
    {DEMAND("memoryHabits: {leaksPerHour: 1}"),
     "t.yaml:7: spec.demand[0].memoryHabits.leaksPerHour: 1: unknown field; did you mean "
     "leakPerHour?"},
    {DEMAND("overflow: queue"), "t.yaml:7: spec.demand[0].overflow: queue: must be wait or drop"},
    {EVENT("{do: scale}"), "t.yaml:8: spec.events[0].at: missing: is required"},
    {EVENT("{at: 1h}"), "t.yaml:8: spec.events[0].do: missing: is required"},
    {EVENT("nothing"), "t.yaml:8: spec.events[0]: nothing: must be a mapping"},
    {EVENT("{at: 1h, do: explode}"),
     "t.yaml:8: spec.events[0].do: explode: must be move-role, node-loss, webhook-down, "
     "metrics-gap, api-errors, slow-start, scale or apply"},
    {EVENT("{at: -1h, do: metrics-gap, for: 1m}"),
     "t.yaml:8: spec.events[0].at: -1h: must be a duration from 0s to 3650d, such as 90s, "
     "9h30m or 3d"},
    {EVENT("{at: 1h, do: metrics-gap}"), "t.yaml:8: spec.events[0].for: missing: is required"},
    {EVENT("{at: 1h, do: metrics-gap, for: 0s}"),
     "t.yaml:8: spec.events[0].for: 0s: must be longer than 0s"},
    {EVENT("{at: 1h, do: metrics-gap, for: 1m, share: 5%}"),
     "t.yaml:8: spec.events[0].share: 5%: unknown field; see docs/scenario.md"},
    {EVENT("{at: 1h, do: api-errors, for: 1m, share: 2}"),
     "t.yaml:8: spec.events[0].share: 2: must be a share from 0 to 1, such as 5% or 0.05"},
    {EVENT("{at: 1h, do: node-loss, node: node-4, for: 1m}"),
     "t.yaml:8: spec.events[0].node: node-4: spec.nodes has node-1 to node-3"},
    {EVENT("{at: 1h, do: node-loss, node: Node_4, for: 1m}"),
     "t.yaml:8: spec.events[0].node: Node_4: must be a name of small letters, digits, '-' and "
     "'.'"},
    {EVENT("{at: 1h, do: scale, target: web, replicas: 3}"),
     "t.yaml:8: spec.events[0].target: web: must be KIND/NAME, such as deployment/web"},
    {EVENT("{at: 1h, do: scale, target: deployment/web, replicas: -3}"),
     "t.yaml:8: spec.events[0].replicas: -3: must be a whole number from 0 to 100000"},
    {EVENT("{at: 1h, do: scale, target: deployment/web, replicas: 1.5}"),
     "t.yaml:8: spec.events[0].replicas: 1.5: must be a whole number from 0 to 100000"},
    {EVENT("{at: 1h, do: slow-start, target: deployment/web, for: 1m, factor: 0}"),
     "t.yaml:8: spec.events[0].factor: 0: must be a number from 1 to 1000000"},
    {EVENT("{at: 1h, do: move-role, target: statefulset/db, label: role=leader, to: db-1}"),
     "t.yaml:8: spec.events[0].target: statefulset/db: no entry of spec.demand gives it roles"},
    {EVENT("{at: 1h, do: move-role, target: deployment/web, label: leader, to: db-1}"),
     "t.yaml:8: spec.events[0].label: leader: must be KEY=VALUE, such as role=leader"},
    {EVENT("{at: 1h, do: move-role, target: deployment/web, label: rolle=a, to: db-1}"),
     "t.yaml:8: spec.events[0].label: rolle=a: is not one of the roles in spec.demand[0]"},
    {EVENT("{at: 1h, do: move-role, target: deployment/web, label: role=c, to: db-1}"),
     "t.yaml:8: spec.events[0].label: role=c: is not one of the roles in spec.demand[0]"},
    {EVENT("{at: 1h, do: apply, manifest: 5}"),
     "t.yaml:8: spec.events[0].manifest: 5: must be a text"},
    {METRIC("{name: a}"), "t.yaml:7: spec.metrics.series[0].value: missing: is required"},
    {METRIC("{value: 1}"), "t.yaml:7: spec.metrics.series[0].name: missing: is required"},
    {METRIC("{name: a/b, value: 1}"), "t.yaml:7: spec.metrics.series[0].name: a/b: must be "
                                      "letters, digits, '_', '-', '.' and ':'"},
    {METRIC("{name: a, value: -1}"), "t.yaml:7: spec.metrics.series[0].value: -1: must be a "
                                     "quantity from 0 to 1P, such as 20 or 300m"},
    {METRIC("{name: a, value: 2P}"), "t.yaml:7: spec.metrics.series[0].value: 2P: must be a "
                                     "quantity from 0 to 1P, such as 20 or 300m"},
    {METRIC("{name: a, about: web, value: 1}"),
     "t.yaml:7: spec.metrics.series[0].about: web: must be KIND/NAME, such as deployment/web"},
    {METRIC("{name: a, about: service/web, labels: {a: b}, value: 1}"),
     "t.yaml:7: spec.metrics.series[0].labels: a mapping: only allowed for external metrics"},
    {METRIC("{name: a, labels: {a: 1}, value: 1}"),
     "t.yaml:7: spec.metrics.series[0].labels.a: 1: must be a label: a key and a text"},
    {METRIC("{name: a, labels: [a], value: 1}"),
     "t.yaml:7: spec.metrics.series[0].labels: a list: must be a mapping of at most 32 labels"},
    {METRIC("{name: a, value: 1}\n    - {name: a, value: 2}"),
     "t.yaml:8: spec.metrics.series[1].name: a: duplicates an earlier item"},
    {SPEC("  metrics: {resolution: 10ms}"),
     "t.yaml:5: spec.metrics.resolution: 10ms: must be from 1s to 1h"},
    {SPEC("  metrics: {resolution: 2h}"),
     "t.yaml:5: spec.metrics.resolution: 2h: must be from 1s to 1h"},
    {SPEC("  metrics: {lag: 2h}"), "t.yaml:5: spec.metrics.lag: 2h: must be from 0s to 1h"},
    {SPEC("  metrics: {lags: 2s}"),
     "t.yaml:5: spec.metrics.lags: 2s: unknown field; did you mean lag?"},
};

/* Each row is refused with one line: file, line, field, value, why. */
static void test_bad_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_rows) / sizeof(bad_rows[0]); i++) {
        check_refused(bad_rows[i].text, bad_rows[i].message);
    }
}

/* Files that are not there, and texts read without an error object. */
static void test_no_file(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    struct td_scenario s;
    assert_int_equal(td_scenario_load(&arena, FOLDER "none.yaml", &s, &err), TD_NOT_FOUND);
    assert_int_equal(td_scenario_parse(&arena, TD_STR("t"), TD_STR("a: 1"), &s, NULL), TD_INVALID);
    assert_int_equal(td_scenario_parse(&arena, TD_STR("t"), TD_STR("{"), &s, NULL), TD_INVALID);
}

/* As many entries as allowed take no longer than their number; one more is refused. A chain may be
 * so long, and no longer. */
static void test_limits(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        const char *item; /* with the number, and the one before */
        size_t count;
        const char *message; /* NULL: it is good */
    } rows[] = {
        {"  demand:\n", "  - {target: {kind: Pod, name: p%zu}, cpu: 1m} # %zu\n", 20000, NULL},
        {"  demand:\n", "  - {target: {kind: Pod, name: p%zu}, cpu: 1m} # %zu\n", 20001,
         "t:5: spec.demand: a list: has 20001 items, more than 20000"},
        {"  demand:\n  - {target: {kind: Pod, name: p0}, requests: 1, perRequest: {}}\n",
         "  - {target: {kind: Pod, name: p%zu}, requests: {by: pod/p%zu}, perRequest: {}}\n", 15,
         NULL},
        {"  demand:\n  - {target: {kind: Pod, name: p0}, requests: 1, perRequest: {}}\n",
         "  - {target: {kind: Pod, name: p%zu}, requests: {by: pod/p%zu}, perRequest: {}}\n", 16,
         "t:22: spec.demand[16].requests.by: pod/p15: requests pass more than 16 workloads on "
         "their way"},
        {"  demand:\n  - {target: {kind: Pod, name: p0}, requests: {by: pod/p20}, perRequest: "
         "{}}\n",
         "  - {target: {kind: Pod, name: p%zu}, requests: {by: pod/p%zu}, perRequest: {}}\n", 20,
         "t:6: spec.demand[0].requests.by: pod/p20: requests go in a circle: p0 -> p5 -> p6 -> p7 "
         "-> p8 -> p9 -> p10 -> p11 -> p12 -> p13 -> p14 -> p15 -> p16 -> p17 -> p18 -> p19 -> p20 "
         "-> p0 and more"},
        {"  events:\n", "  - {at: %zus, do: webhook-down, for: 1s} # %zu\n", 20001,
         "t:5: spec.events: a list: has 20001 items, more than 20000"},
        {"  manifests:\n", "  - a%zu.yaml # %zu\n", 1001,
         "t:5: spec.manifests: a list: has 1001 items, more than 1000"},
        {"  metrics:\n    series:\n", "    - {name: a%zu, value: 1} # %zu\n", 1001,
         "t:6: spec.metrics.series: a list: has 1001 items, more than 1000"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
        td_auto_buf text;
        td_buf_init(&text, TD_SCENARIO_BYTES_MAX);
        td_buf_append_format(&text, "%s%s", HEAD, rows[i].head);
        for (size_t n = 1; n <= rows[i].count; n++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            td_buf_append_format(&text, rows[i].item, n, n - 1);
#pragma GCC diagnostic pop
        }
        struct td_error err = TD_ERROR_INIT;
        struct td_scenario s;
        int code = td_scenario_parse(&arena, TD_STR("t"), td_buf_str(&text), &s, &err);
        assert_string_equal(err.message, rows[i].message ? rows[i].message : "");
        assert_int_equal(code, rows[i].message ? TD_INVALID : TD_OK);
    }
}

/* `every` is held against the schedule of the CronJob. */
static void test_every_is_what_the_schedule_says(void **state)
{
    (void)state;
    static const struct {
        const char *schedule;
        const char *message; /* NULL: it is so */
    } rows[] = {
        {"*/30 * * * *", NULL},  {"@every 30m", NULL}, {"*/15 * * * *", ""},
        {"0,30 9-17 * * *", ""}, {"0 0 30 2 *", NULL}, /* never runs */
    };
    td_auto_arena arena;
    struct td_scenario s;
    load(&arena, FOLDER "shop.yaml", &s);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        td_str schedule = td_str_from(rows[i].schedule);
        int code = td_scenario_check_schedule(&s, 2, schedule, 0, &err);
        assert_int_equal(code, rows[i].message ? TD_INVALID : TD_OK);
        td_str expected =
            td_arena_format(&arena,
                            FOLDER "shop.yaml:17: spec.demand[2].run.every: 30m0s: the schedule of "
                                   "CronJob report is '%s'",
                            rows[i].schedule);
        assert_string_equal(err.message, rows[i].message ? expected.ptr : "");
    }
    assert_int_equal(td_scenario_check_schedule(&s, 0, TD_STR("nonsense"), 0, NULL), TD_OK);
    assert_int_equal(td_scenario_check_schedule(&s, 2, TD_STR("nonsense"), 0, NULL), TD_INVALID);
}

/* Every block of the page is a scenario, or a part of spec that stands in one. */
static void test_the_page_is_right(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_str page;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_file_read(TEST_DATA_DIR "/../../docs/scenario.md", &arena,
                                  TD_SCENARIO_BYTES_MAX, &page, &err),
                     TD_OK);
    const char *at = page.ptr;
    size_t count = 0;
    while ((at = strstr(at, "```yaml\n"))) {
        at += strlen("```yaml\n");
        const char *end = strstr(at, "```");
        td_str block = {.ptr = at, .len = (size_t)(end - at)};
        bool is_whole = td_str_starts_with(block, TD_STR("apiVersion"));
        td_str text = td_arena_format(&arena, "%s%.*s", is_whole ? "" : HEAD, TD_STR_ARG(block));
        struct td_scenario s;
        err = TD_ERROR_INIT;
        if (td_scenario_parse(&arena, TD_STR(FOLDER "page.yaml"), text, &s, &err) != TD_OK) {
            fail_msg("%s\n%.*s", err.message, TD_STR_ARG(text));
        }
        at = end;
        count++;
    }
    assert_true(count > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_shop),
        cmocka_unit_test(test_requests_of_every_sort),
        cmocka_unit_test(test_series_of_every_shape),
        cmocka_unit_test(test_the_rest_of_the_file),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_every_is_what_the_schedule_says),
        cmocka_unit_test(test_the_page_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
