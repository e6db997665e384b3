/* Reading traces and replaying policies: figures worked out by hand, and the rule that a policy
 * sees only the past. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "decide/vertical/estimator/estimator.h"
#include "sim/replay/replay.h"

#define DAY 86400
#define MIB ((int64_t)1 << 20)
#define HEADER "time_s,cpu_avg_cores,memory_max_bytes\n"

static const char *policy_name(size_t index)
{
    struct td_replay_policy policy;
    return td_replay_policy_at(index, &policy) ? policy.name : NULL;
}

static int read_text(struct td_trace_set *set, const char *path, const char *text,
                     struct td_error *err)
{
    td_trace_set_init(set);
    int code = td_trace_read(set, td_str_from(path), td_str_from(text), err);
    return code < 0 ? code : td_trace_set_finish(set, err);
}

static void read_data(struct td_trace_set *set, const char *name)
{
    td_auto_arena arena;
    td_str text;
    char path[512];
    td_arena_init(&arena, TD_TRACE_BYTES_MAX);
    (void)snprintf(path, sizeof(path), "%s/traces/%s", TEST_DATA_DIR, name);
    assert_int_equal(td_file_read(path, &arena, TD_TRACE_BYTES_MAX, &text, NULL), TD_OK);
    assert_int_equal(td_trace_read(set, td_str_from(path), text, NULL), TD_OK);
}

/* Columns in any order, fractions dropped, what is absent or lacking filled in. */
static void test_trace_reads_csv(void **context)
{
    (void)context;
    struct td_trace_set set;
    struct td_error err = TD_ERROR_INIT;
    const char *text = "memory_max_bytes,time_s,cpu_avg_cores,cpu_p90_cores\r\n"
                       "1000,0,1.139,-64\r\n2000,300.9,6.104e-05,0.25\r\n3000,600,2,\r\n\r\n";
    assert_int_equal(read_text(&set, "some/web-1.csv", text, &err), TD_OK);
    assert_int_equal(set.traces.count, 1);
    const struct td_trace *trace = &set.traces.items[0];
    assert_true(td_str_equal(trace->name, TD_STR("web-1")));
    assert_int_equal(trace->count, 3);
    assert_int_equal(trace->items[0].cpu_milli, 1139);
    assert_int_equal(trace->items[0].cpu_p90_milli, 1139);
    assert_int_equal(trace->items[0].memory_bytes, 1000);
    assert_int_equal(trace->items[0].memory_limit_bytes, 0);
    assert_int_equal(trace->items[1].time, 300);
    assert_int_equal(trace->items[1].cpu_milli, 0);
    assert_int_equal(trace->items[1].cpu_p90_milli, 250);
    assert_int_equal(trace->items[2].cpu_p90_milli, 2000);
    td_trace_set_done(&set);
}

/* What cannot be read is refused with file, line or path, column and value. */
static void test_trace_names_what_is_wrong(void **context)
{
    (void)context;
    static const struct {
        const char *path;
        const char *text;
        const char *message;
    } rows[] = {
        {"a.csv", "", "a.csv:1: the file is empty"},
        {"a.csv", HEADER, "a.csv:1: no rows after the header"},
        {"a.csv", "time_s,cpu_avg_cores\n0,1\n",
         "a.csv:1: memory_max_bytes: the column is missing"},
        {"a.csv", "time_s,cpu\n",
         "a.csv:1: column 2: 'cpu': unknown column; docs/replay.md lists them"},
        {"a.csv", "time_s,time_s\n", "a.csv:1: column 2: 'time_s': duplicate column"},
        {"a.csv", HEADER "0,x,1\n", "a.csv:2: cpu_avg_cores: 'x': not a number from 0 to 1e+06"},
        {"a.csv", HEADER "0,-1,1\n", "a.csv:2: cpu_avg_cores: '-1': not a number from 0 to 1e+06"},
        {"a.csv", HEADER "0,1,NaN\n",
         "a.csv:2: memory_max_bytes: 'NaN': not a number from 0 to 1e+14"},
        {"a.csv", HEADER "0,1,1e15\n",
         "a.csv:2: memory_max_bytes: '1e15': not a number from 0 to 1e+14"},
        {"a.csv", HEADER "0,0x1,1\n",
         "a.csv:2: cpu_avg_cores: '0x1': not a number from 0 to 1e+06"},
        {"a.csv", HEADER "0,1,\n", "a.csv:2: memory_max_bytes: '': not a number from 0 to 1e+14"},
        {"a.csv", HEADER "0,1,1\n300,1\n", "a.csv:3: 2 columns, but the header has 3"},
        {"a.csv", HEADER "0,1,1,1\n", "a.csv:2: 4 columns, but the header has 3"},
        {"a.csv", HEADER "300,1,1\n300,1,1\n", "a.csv:3: time_s: '300': not later than '300'"},
        {"a.csv", HEADER "0,1,1\n\n300,1,1\n", "a.csv:3: time_s: '': not a number from 0 to 9e+09"},
        {"a.json", "{\"a\":", NULL},
        {"a.json", "{\"status\":\"error\"}", "a.json: status: 'error': the query failed"},
        {"a.json", "{\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
         "a.json: resultType: 'vector': not 'matrix'"},
        {"a.json", "{\"result\":7}", "a.json: result: not a list of series"},
        {"a.json", "[{\"metric\":{\"container\":\"a\",\"__name__\":\"up\"},\"values\":[]}]",
         "a.json: result[0].metric.__name__: 'up': not a known series"},
        {"a.json", "[{\"metric\":{\"container\":\"a\"},\"values\":[]}]",
         "a.json: result[0].metric.resource: '': neither the metric name nor this label tells cpu "
         "from memory; rename the file to begin with cpu or memory"},
        {"cpu.json", "[{\"metric\":{\"container\":\"a\"},\"values\":[[1,\"NaN\"]]}]",
         "cpu.json: result[0].values[0]: 'NaN': not a number in its range"},
        {"cpu.json", "[{\"metric\":{\"container\":\"a\"},\"values\":[[1]]}]",
         "cpu.json: result[0].values[0]: '': not a pair of timestamp and string"},
        {"cpu.json", "[{\"metric\":{\"container\":\"a\"},\"values\":[[-1,\"1\"]]}]",
         "cpu.json: result[0].values[0]: '-1': not a time in seconds"},
        {"cpu.json", "[{\"metric\":{\"container\":\"a\"},\"value\":[1,\"1\"]}]",
         "cpu.json: result[0].values: '': not a list: is it the response of a range query?"},
        {"cpu.json", "[{\"metric\":{\"container\":\"a\"},\"values\":[[1,\"1\"]]}]",
         "the traces have no window with both cpu and memory"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_trace_set set;
        struct td_error err = TD_ERROR_INIT;
        assert_true(read_text(&set, rows[i].path, rows[i].text, &err) < 0);
        if (rows[i].message) {
            assert_string_equal(err.message, rows[i].message);
        }
        td_trace_set_done(&set);
    }
}

/* Counters become rates, points become windows, and files of one container meet. */
static void test_trace_reads_prometheus(void **context)
{
    (void)context;
    struct td_trace_set set;
    td_trace_set_init(&set);
    read_data(&set, "usage.json");
    read_data(&set, "memory.json");
    read_data(&set, "requests.json");
    assert_int_equal(td_trace_set_finish(&set, NULL), TD_OK);
    assert_int_equal(set.traces.count, 1);
    const struct td_trace *trace = &set.traces.items[0];
    assert_true(td_str_equal(trace->name, TD_STR("shop/web-0/web")));
    assert_int_equal(trace->count, 6 * 24 * 2 - 1); /* the first point of a counter is no rate */
    assert_int_equal(trace->items[0].cpu_milli, 100);
    assert_int_equal(trace->items[0].memory_bytes, 201 * MIB);
    assert_int_equal(trace->items[0].cpu_limit_milli, 500);
    assert_int_equal(trace->items[0].memory_limit_bytes, 512 * MIB);
    td_trace_set_done(&set);
}

/* Steady use of 0.5 cores and 500Mi under 1 core and 1000Mi, for two days. */
static void make_steady(struct td_trace *trace, struct td_trace_window *windows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        windows[i] = (struct td_trace_window){.time = (int64_t)i * 300,
                                              .cpu_milli = 500,
                                              .cpu_p90_milli = 600,
                                              .memory_bytes = 400 * MIB,
                                              .memory_bytes_max = 500 * MIB,
                                              .cpu_limit_milli = 1000,
                                              .memory_limit_bytes = 1000 * MIB};
    }
    *trace = (struct td_trace){.name = TD_STR("steady"), .items = windows, .count = count};
}

static struct td_replay_score run(const char *policy, const struct td_trace *trace)
{
    struct td_replay_score score;
    struct td_replay_policy found;
    assert_true(td_replay_policy_find(td_str_from(policy), &found));
    td_replay_run(&found, trace, &score);
    return score;
}

/* Figures of a steady trace, worked out by hand. */
static void test_replay_figures_of_steady_use(void **context)
{
    (void)context;
    static struct td_trace_window windows[576];
    struct td_trace trace;
    make_steady(&trace, windows, 576);
    struct td_replay_score as_was = run("as-was", &trace);
    struct td_replay_score krr = run("krr", &trace);
    struct td_replay_score oracle = run("oracle", &trace);
    struct td_replay_figures was = td_replay_figures(&as_was, &as_was);
    assert_int_equal(as_was.windows, 288);
    assert_float_equal(was.cpu_slack, 0.5, 1e-9);
    assert_float_equal(was.memory_slack, 0.6, 1e-9);
    assert_float_equal(was.cost, 1, 1e-9);
    assert_float_equal(was.container_days, 1, 1e-9);
    struct td_replay_figures seen = td_replay_figures(&oracle, &as_was);
    assert_float_equal(seen.cpu_slack, 0, 1e-9);
    assert_float_equal(seen.throttled, 1, 1e-9);
    assert_float_equal(seen.cost, 0.5, 1e-9);
    assert_int_equal(oracle.ooms, 0);
    assert_int_equal(krr.changes, 1); /* after one day, to 500m and 575Mi */
    assert_float_equal(krr.cpu_requested, 1000 + 287 * 500, 1e-6);
    assert_float_equal(krr.memory_requested, (double)(1000 + 287 * 575) * (double)MIB, 1e-3);
    assert_int_equal(run("adaptive", &trace).cpu_overruns, 0);
}

/* Memory above the request is an OOM and the policy then sees no more than its request; as it was
 * no container is killed. */
static void test_replay_kills_at_the_limit(void **context)
{
    (void)context;
    struct td_trace_set set;
    td_trace_set_init(&set);
    read_data(&set, "step.csv");
    assert_int_equal(td_trace_set_finish(&set, NULL), TD_OK);
    const struct td_trace *trace = &set.traces.items[0];
    assert_int_equal(run("as-was", trace).ooms, 0);
    assert_int_equal(run("oracle", trace).ooms, 0);
    assert_true(run("adaptive", trace).ooms >= 2);
    assert_true(run("upstream", trace).ooms >= 2);
    struct td_replay_score krr = run("krr", trace); /* it is told of OOMs as well */
    assert_true(krr.ooms >= 2);
    assert_true(krr.ooms <= 6); /* a quarter more each time, and the next window */
    assert_true(run("track", trace).ooms >= 2);
    td_trace_set_done(&set);
}

/* Two traces with one past and different futures: until they part, no policy but the oracle may
 * tell them apart. */
static void test_replay_policies_see_only_the_past(void **context)
{
    (void)context;
    static struct td_trace_window left[864];
    static struct td_trace_window right[864];
    struct td_trace a;
    struct td_trace b;
    size_t parting = 700;
    make_steady(&a, left, 864);
    make_steady(&b, right, 864);
    for (size_t i = 0; i < 864; i++) {
        left[i].cpu_milli = right[i].cpu_milli = 300 + (int64_t)(i * 37 % 211);
        if (i >= parting) {
            right[i].cpu_milli = 5000;
            right[i].memory_bytes_max = 5000 * MIB;
        }
    }
    a.count = parting;
    b.count = parting;
    for (size_t p = 0; policy_name(p); p++) {
        struct td_replay_score whole_a = run(policy_name(p), &a);
        struct td_replay_score whole_b = run(policy_name(p), &b);
        assert_memory_equal(&whole_a, &whole_b, sizeof(whole_a));
    }
    /* The window at the parting is judged by a request made before it. */
    for (size_t p = 0; policy_name(p); p++) {
        if (strcmp(policy_name(p), "oracle") == 0) {
            continue;
        }
        a.count = parting + 1;
        b.count = parting + 1;
        double next_a = run(policy_name(p), &a).cpu_requested;
        double next_b = run(policy_name(p), &b).cpu_requested;
        assert_float_equal(next_a, next_b, 1e-6);
    }
}

/* After more than an hour without windows there is a new pod, with what admission gives it; up to
 * an hour it is the same one. */
static void test_replay_makes_a_new_pod_after_a_hole(void **context)
{
    (void)context;
    static struct td_trace_window windows[600];
    struct td_trace trace;
    for (int64_t hole = 3600; hole <= 3900; hole += 300) {
        make_steady(&trace, windows, 600);
        for (size_t i = 0; i < 600; i++) {
            windows[i].cpu_milli = windows[i].cpu_p90_milli = i < 300 ? 500 : 480;
            windows[i].time += i >= 300 ? hole : 0;
        }
        struct td_replay_score track = run("track", &trace);
        /* 480m and its margin are in the band of what was set for 500m: only a new pod gets it. */
        double first = (double)track.cpu_requested / (double)track.cpu_windows;
        assert_true(hole > 3600 ? first < 545 : first >= 545);
    }
}

/* A limit above the request: kills come at the limit, and memory is closer to use. */
static void test_replay_leaves_room_above_the_request(void **context)
{
    (void)context;
    struct td_trace_set set;
    td_trace_set_init(&set);
    read_data(&set, "step.csv");
    assert_int_equal(td_trace_set_finish(&set, NULL), TD_OK);
    struct td_replay_policy policy;
    assert_true(td_replay_policy_find(TD_STR("track"), &policy));
    struct td_replay_score equal;
    struct td_replay_score roomy;
    td_replay_run(&policy, &set.traces.items[0], &equal);
    policy.limit_permille = 2000;
    td_replay_run(&policy, &set.traces.items[0], &roomy);
    assert_true(roomy.ooms < equal.ooms);
    assert_true(roomy.memory_requested < equal.memory_requested);
    assert_true(roomy.memory_overruns > 0);
    td_trace_set_done(&set);
}

/* Traces that never knew what was set are replayed too; only the comparison with it is missing. */
static void test_replay_without_known_requests(void **context)
{
    (void)context;
    static struct td_trace_window windows[576];
    struct td_trace trace;
    make_steady(&trace, windows, 576);
    for (size_t i = 0; i < 576; i++) {
        windows[i].cpu_limit_milli = 0;
        windows[i].memory_limit_bytes = 0;
    }
    struct td_replay_score as_was = run("as-was", &trace);
    struct td_replay_score adaptive = run("adaptive", &trace);
    struct td_replay_figures figures = td_replay_figures(&adaptive, &as_was);
    assert_true(isnan(td_replay_figures(&as_was, &as_was).cpu_slack));
    assert_true(isnan(figures.cost));
    assert_true(figures.cpu_slack < 0.2);
    assert_int_equal(run("upstream", &trace).cpu_windows, 288);
}

/* What a cluster can be run with can be back-tested, and nothing is known by two names. */
static void test_replay_knows_every_estimator(void **context)
{
    (void)context;
    static const char *const names[] = {"as-was",          "krr",       "oracle",
                                        "upstream",        "adaptive",  "adaptive-careful",
                                        "adaptive-frugal", "track",     "track-careful",
                                        "track-frugal",    "track-calm"};
    struct td_replay_policy policy;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(td_replay_policy_find(td_str_from(names[i]), &policy));
    }
    for (size_t i = 0; td_estimator_at(i); i++) {
        assert_true(td_replay_policy_find(td_str_from(td_estimator_at(i)->name), &policy));
        assert_ptr_equal(policy.estimator, td_estimator_at(i));
    }
    assert_false(td_replay_policy_find(TD_STR("magic"), &policy));
}

/* Empty, one window, windows a day apart: nothing divides by zero, and sums add up. */
static void test_replay_takes_short_and_sparse_traces(void **context)
{
    (void)context;
    static struct td_trace_window windows[50];
    for (size_t count = 0; count <= 50; count += count < 3 ? 1 : 47) {
        struct td_trace trace;
        make_steady(&trace, windows, count);
        for (size_t i = 0; i < count; i++) {
            windows[i].time = (int64_t)i * DAY;
        }
        for (size_t p = 0; policy_name(p); p++) {
            struct td_replay_score score = run(policy_name(p), &trace);
            struct td_replay_score sum = score;
            td_replay_score_add(&sum, &score);
            assert_int_equal(score.windows, count > 1 ? count - 1 : 0);
            assert_int_equal(sum.windows, 2 * score.windows);
            int64_t counted;
            int64_t censored;
            td_replay_count(&trace, &counted, &censored);
            assert_int_equal(counted, score.windows);
            assert_int_equal(censored, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_reads_csv),
        cmocka_unit_test(test_trace_names_what_is_wrong),
        cmocka_unit_test(test_trace_reads_prometheus),
        cmocka_unit_test(test_replay_knows_every_estimator),
        cmocka_unit_test(test_replay_figures_of_steady_use),
        cmocka_unit_test(test_replay_kills_at_the_limit),
        cmocka_unit_test(test_replay_policies_see_only_the_past),
        cmocka_unit_test(test_replay_makes_a_new_pod_after_a_hole),
        cmocka_unit_test(test_replay_leaves_room_above_the_request),
        cmocka_unit_test(test_replay_without_known_requests),
        cmocka_unit_test(test_replay_takes_short_and_sparse_traces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
