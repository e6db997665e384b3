/*
 * History from a Prometheus that the test plays: what it teaches the recommender before its first
 * pass, what checkpoints know already, and that one that fails, lies or never answers does no harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "control/informers/informers.h"
#include "control/prometheus/history.h"
#include "control/recommender/recommend_loop.h"
#include "kube/client/metrics_client.h"
#include "support/control_bed.h"
#include "support/fake_transport.h"

#define VPAS "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
#define DAY (24 * TD_HOUR)

/* A container that Prometheus knows, with constant use from some time on. */
struct fake_container {
    const char *pod; /* NULL: there is no more */
    const char *container;
    double cores;
    double bytes;
    double from_seconds; /* before it there are no points */
    double to_seconds;   /* 0: for ever */
};

struct fake_prometheus {
    struct fake_transport transport;
    struct td_arena arena; /* of the answers */
    const struct fake_container *containers;
    const char *labels; /* series of the instant query; NULL: none */
    size_t ranges;      /* range queries so far */
    size_t fail_at;     /* the first of them that is refused, from 1; 0: none */
    bool is_silent;
    double shift_seconds; /* a lie about every time */
    char cpu_path[1024];  /* of the last query of that kind */
};

static double fake_number(td_str path, const char *key)
{
    const char *at = memmem(path.ptr, path.len, key, strlen(key));
    return at ? strtod(at + strlen(key), NULL) : 0;
}

static void fake_series(const struct fake_prometheus *fake, const struct fake_container *c,
                        td_str path, bool is_cpu, struct td_buf *out)
{
    double step = fake_number(path, "step=");
    double end = fake_number(path, "end=");
    const char *separator = "";
    (void)td_buf_append_format(
        out,
        "{\"metric\":{\"namespace\":\"default\",\"pod_name\":\"%s\",\"name\":\"%s\"},\"values\":[",
        c->pod, c->container);
    for (double at = fake_number(path, "start="); at <= end; at += step) {
        if (at >= c->from_seconds && (c->to_seconds <= 0 || at <= c->to_seconds)) {
            (void)td_buf_append_format(out, "%s[%.3f,\"%.17g\"]", separator,
                                       at + fake->shift_seconds, is_cpu ? c->cores : c->bytes);
            separator = ",";
        }
    }
    (void)td_buf_append(out, TD_STR("]}"));
}

static void fake_answers(void *context, const struct td_call_request *request,
                         struct fake_answer *ret)
{
    struct fake_prometheus *fake = context;
    bool is_range = memmem(request->path.ptr, request->path.len, "query_range", 11);
    bool is_cpu = memmem(request->path.ptr, request->path.len, "rate", 4);
    td_auto_buf out;
    td_buf_init(&out, (size_t)16 << 20);
    fake->ranges += is_range;
    ret->is_silent = fake->is_silent;
    if (is_range && is_cpu) {
        (void)snprintf(fake->cpu_path, sizeof(fake->cpu_path), "%.*s", TD_STR_ARG(request->path));
    }
    if (is_range && fake->fail_at > 0 && fake->ranges >= fake->fail_at) {
        ret->status = 503;
        ret->body = "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"too slow\"}";
        return;
    }
    (void)td_buf_append_format(
        &out, "{\"status\":\"success\",\"data\":{\"resultType\":\"%s\",\"result\":[%s",
        is_range ? "matrix" : "vector", is_range || !fake->labels ? "" : fake->labels);
    const char *separator = "";
    for (const struct fake_container *c = fake->containers; is_range && c && c->pod; c++) {
        (void)td_buf_append_format(&out, "%s", separator);
        fake_series(fake, c, request->path, is_cpu, &out);
        separator = ",";
    }
    (void)td_buf_append(&out, TD_STR("]}}"));
    ret->body = td_arena_copy_str(&fake->arena, td_buf_str(&out)).ptr;
}

static void fake_prometheus_init(struct fake_prometheus *fake, struct td_loop *loop,
                                 const struct fake_container *containers)
{
    *fake = (struct fake_prometheus){.containers = containers};
    td_arena_init(&fake->arena, (size_t)64 << 20);
    fake_init(&fake->transport, loop, fake_answers, fake);
}

struct history_bed {
    struct control_bed c;
    struct td_informers *informers;
    struct td_metrics_client *metrics_client;
    struct td_metric_registry *registry;
    struct td_recommend_loop *loop;
    bool is_stopped;
};

static struct td_prometheus_options bed_prometheus(struct fake_prometheus *fake)
{
    return (struct td_prometheus_options){
        .address = TD_STR("http://prometheus.example"),
        .job = TD_STR("kubernetes-cadvisor"),
        .query_timeout = 5 * TD_MINUTE,
        .history_length = 8 * DAY,
        .history_resolution = TD_HOUR,
        .cpu_metric = TD_STR("container_cpu_usage_seconds_total"),
        .memory_metric = TD_STR("container_memory_working_set_bytes"),
        .pod_label_prefix = TD_STR("label_"),
        .pod_labels_metric = TD_STR("last_over_time(kube_pod_labels[8d])"),
        .pod_namespace_label = TD_STR("namespace"),
        .pod_name_label = TD_STR("pod"),
        .container_namespace_label = TD_STR("namespace"),
        .container_pod_name_label = TD_STR("pod_name"),
        .container_name_label = TD_STR("name"),
        .transport = fake ? &fake->transport.transport : NULL,
    };
}

static void history_bed_start(struct history_bed *b, const struct td_prometheus_options *prometheus)
{
    struct td_informers_options informers = {
        .loop = b->c.bed.loop, .client = b->c.client, .seed = 1};
    for (size_t i = 0; i < TD_INFORMER_COUNT; i++) {
        informers.wants[i] = true;
    }
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_informers_new(&informers, &b->informers, &err), TD_OK);
    b->metrics_client = td_metrics_client_new(b->c.bed.loop, b->c.client, NULL, TD_MINUTE);
    b->registry = td_metric_registry_new();
    struct td_recommend_options options = {
        .control = {.loop = b->c.bed.loop,
                    .client = b->c.client,
                    .informers = b->informers,
                    .metrics_client = b->metrics_client,
                    .registry = b->registry},
        .config = td_vertical_config_default(),
        .name = TD_STR("default"),
        .interval = TD_MINUTE,
        .checkpoints_gc_interval = 10 * TD_MINUTE,
        .checkpoints_timeout = TD_MINUTE,
        .writes_max = 10,
    };
    if (prometheus) {
        options.prometheus = *prometheus;
    }
    assert_int_equal(td_recommend_loop_new(&options, &b->loop, &err), TD_OK);
    td_informers_start(b->informers);
    td_recommend_loop_start(b->loop);
}

static void bed_is_stopped(void *context)
{
    *(bool *)context = true;
}

static void history_bed_stop(struct history_bed *b)
{
    b->is_stopped = false;
    td_recommend_loop_stop(b->loop, bed_is_stopped, &b->is_stopped);
    control_bed_run(&b->c, TD_SECOND);
    assert_true(b->is_stopped);
    td_recommend_loop_free(b->loop);
    td_metrics_client_free(b->metrics_client);
    td_informers_free(b->informers);
    td_metric_registry_free(b->registry);
}

static void history_bed_init(struct history_bed *b)
{
    *b = (struct history_bed){.informers = NULL};
    control_bed_init(&b->c);
    control_bed_create(
        &b->c, "/apis/apps/v1/namespaces/default/deployments",
        "{'metadata':{'name':'web'},'spec':{'replicas':1,'selector':{'matchLabels':{"
        "'app.kubernetes.io/name':'web'}},'template':{'metadata':{'labels':{"
        "'app.kubernetes.io/name':'web'},'annotations':{'usage.tandem.dev/app':'500m,500000000'}},"
        "'spec':{'containers':[{'name':'app','image':'nginx'}]}}}}");
    control_bed_create(&b->c, VPAS,
                       "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
                       "'metadata':{'name':'web'},'spec':{'targetRef':{'apiVersion':'apps/v1',"
                       "'kind':'Deployment','name':'web'},'updatePolicy':{'updateMode':'Off'}}}");
    control_bed_run(&b->c, 10 * TD_SECOND);
}

static void history_bed_done(struct history_bed *b)
{
    history_bed_stop(b);
    control_bed_done(&b->c);
}

static void expect_target(struct history_bed *b, const char *resource, const char *expected)
{
    const struct td_json *vpa = control_bed_get(&b->c, VPAS "/web");
    const struct td_json *list =
        td_json_get_path(vpa, "status.recommendation.containerRecommendations");
    const struct td_json *first = td_json_first_child(list);
    td_str target = td_json_get_str(td_json_get(first, TD_STR("target")), td_str_from(resource),
                                    TD_STR("none"));
    if (!td_str_equal(target, td_str_from(expected))) {
        fail_msg("%s: %.*s, not %s", resource, TD_STR_ARG(target), expected);
    }
}

static void expect_counted(struct history_bed *b, const char *line)
{
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_metric_registry_write(b->registry, &text);
    if (!strstr(td_buf_str(&text).ptr, line)) {
        fail_msg("no '%s' in:\n%s", line, td_buf_str(&text).ptr);
    }
}

/* The name of the one pod that there is. */
static const char *bed_pod(struct history_bed *b)
{
    const struct td_json *pods = control_bed_get(&b->c, "/api/v1/namespaces/default/pods");
    const struct td_json *first = td_json_first_child(td_json_get(pods, TD_STR("items")));
    td_str name =
        td_json_get_str(td_json_get(first, TD_STR("metadata")), TD_STR("name"), TD_STR_EMPTY);
    return td_arena_copy_str(&b->c.bed.arena, name).ptr;
}

/* Pods that are gone are found by their labels, which Prometheus writes in its own way; the first
 * pass knows eight days. Others' pods, pods without labels and odd values teach nothing. */
static void test_pods_that_are_gone_teach_before_the_first_pass(void **state)
{
    (void)state;
    static const struct fake_container containers[] = {
        {.pod = "web-old", .container = "app", .cores = 1.0, .bytes = 1.0e9},
        {.pod = "other", .container = "app", .cores = 9.0, .bytes = 9.0e9},
        {.pod = "nobody", .container = "app", .cores = 9.0, .bytes = 9.0e9},
        {.pod = "web-odd", .container = "app", .cores = -1, .bytes = 1e300},
        {.pod = NULL},
    };
    struct history_bed b;
    struct fake_prometheus fake;
    history_bed_init(&b);
    fake_prometheus_init(&fake, b.c.bed.loop, containers);
    fake.labels = "{\"metric\":{\"namespace\":\"default\",\"pod\":\"web-old\","
                  "\"label_app_kubernetes_io_name\":\"web\"},\"value\":[1700000000,\"1\"]},"
                  "{\"metric\":{\"namespace\":\"default\",\"pod\":\"web-odd\","
                  "\"label_app_kubernetes_io_name\":\"web\"},\"value\":[1700000000,\"1\"]},"
                  "{\"metric\":{\"namespace\":\"default\",\"pod\":\"other\","
                  "\"label_app_kubernetes_io_name\":\"other\"},\"value\":[1700000000,\"1\"]}";
    struct td_prometheus_options prometheus = bed_prometheus(&fake);
    history_bed_start(&b, &prometheus);
    control_bed_run(&b.c, 65 * TD_SECOND);
    expect_target(&b, "cpu", "1168m"); /* one core and the margin */
    expect_target(&b, "memory", "1168723596");
    expect_counted(&b, "tandem_recommender_history_reads_total{is_error=\"false\"} 1\n");
    expect_counted(&b, "tandem_recommender_history_samples_total 386\n"); /* 193 of each */
    expect_counted(&b, "vpa_recommender_prometheus_client_api_requests_count{code=\"200\","
                       "method=\"get\"} 3\n");
    assert_int_equal(fake.ranges, 2);
    assert_non_null(strstr(fake.cpu_path,
                           "query=rate%28container_cpu_usage_seconds_total%7Bjob%3D%22kubernetes-"
                           "cadvisor%22%2C%20pod_name%3D~%22.%2B%22%2C%20name%21%3D%22POD%22%2C%"
                           "20name%21%3D%22%22%7D%5B1h%5D%29&start="));
    history_bed_done(&b);
    td_arena_done(&fake.arena);
}

/* A pod that is there needs no labels of Prometheus; history and what is measured live make one. */
static void test_pods_that_are_there_have_their_history(void **state)
{
    (void)state;
    struct history_bed b;
    struct fake_prometheus fake;
    history_bed_init(&b);
    const struct fake_container containers[] = {
        {.pod = bed_pod(&b), .container = "app", .cores = 1.0, .bytes = 1.0e9},
        {.pod = bed_pod(&b), .container = "init", .cores = 9.0, .bytes = 9.0e9},
        {.pod = NULL},
    };
    fake_prometheus_init(&fake, b.c.bed.loop, containers);
    struct td_prometheus_options prometheus = bed_prometheus(&fake);
    prometheus.pod_labels_metric = TD_STR_EMPTY;
    history_bed_start(&b, &prometheus);
    control_bed_run(&b.c, 65 * TD_SECOND);
    expect_target(&b, "cpu", "1168m");
    expect_counted(&b, "tandem_recommender_history_samples_total 386\n");
    control_bed_run(&b.c, 5 * TD_HOUR); /* 300 samples of 500m outweigh 193 that fade */
    expect_target(&b, "cpu", "587m");
    history_bed_done(&b);
    td_arena_done(&fake.arena);
}

/* What lies in the time of a checkpoint was counted; what lies before it was not. */
static void test_a_sample_that_a_checkpoint_has_is_not_counted_twice(void **state)
{
    (void)state;
    struct history_bed b;
    history_bed_init(&b);
    history_bed_start(&b, NULL);
    control_bed_run(&b.c, 30 * TD_MINUTE + 30 * TD_SECOND);
    expect_target(&b, "cpu", "587m");
    history_bed_stop(&b);
    const struct fake_container containers[] = {
        {.pod = bed_pod(&b),
         .container = "app",
         .cores = 4.0,
         .bytes = 4.0e9,
         .from_seconds = BED_START + 100},
        {.pod = NULL},
    };
    struct fake_prometheus fake;
    fake_prometheus_init(&fake, b.c.bed.loop, containers);
    struct td_prometheus_options prometheus = bed_prometheus(&fake);
    prometheus.history_resolution = TD_MINUTE;
    prometheus.history_length = TD_HOUR;
    history_bed_start(&b, &prometheus);
    control_bed_run(&b.c, 65 * TD_SECOND);
    expect_target(&b, "cpu", "587m");
    /* Only what came after the last checkpoint: the minute of the restart. */
    expect_counted(&b, "tandem_recommender_history_samples_total 4\n");
    history_bed_done(&b);
    td_arena_done(&fake.arena);
}

/* Refused in the second of two pieces, or a lie: nothing of it stays, checkpoints do. */
static void test_a_prometheus_that_fails_half_way_leaves_no_trace(void **state)
{
    (void)state;
    static const struct {
        size_t fail_at;
        double shift_seconds;
    } rows[] = {{.fail_at = 1}, {.fail_at = 3}, {.fail_at = 4}, {.shift_seconds = 86400}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct history_bed b;
        struct fake_prometheus fake;
        history_bed_init(&b);
        history_bed_start(&b, NULL);
        control_bed_run(&b.c, 10 * TD_MINUTE + 30 * TD_SECOND);
        history_bed_stop(&b);
        const struct fake_container containers[] = {
            {.pod = bed_pod(&b), .container = "app", .cores = 4.0, .bytes = 4.0e9},
            {.pod = "web-old", .container = "app", .cores = 4.0, .bytes = 4.0e9},
            {.pod = NULL},
        };
        fake_prometheus_init(&fake, b.c.bed.loop, containers);
        fake.fail_at = rows[i].fail_at;
        fake.shift_seconds = rows[i].shift_seconds;
        fake.labels = "{\"metric\":{\"namespace\":\"default\",\"pod\":\"web-old\","
                      "\"label_app_kubernetes_io_name\":\"web\"},\"value\":[1700000000,\"1\"]}";
        struct td_prometheus_options prometheus = bed_prometheus(&fake);
        prometheus.history_resolution = 30 * TD_MINUTE; /* 385 steps: two pieces */
        history_bed_start(&b, &prometheus);
        control_bed_run(&b.c, 65 * TD_SECOND);
        expect_target(&b, "cpu", "587m");
        expect_target(&b, "memory", "587804717");
        expect_counted(&b, "tandem_recommender_history_reads_total{is_error=\"true\"} 1\n");
        expect_counted(&b, "tandem_recommender_history_samples_total 0\n");
        size_t asked = fake.transport.starts;
        control_bed_run(&b.c, 5 * TD_MINUTE);
        assert_int_equal(fake.transport.starts, asked); /* it was given up */
        history_bed_done(&b);
        td_arena_done(&fake.arena);
    }
}

/* The pass waits for it, but stopping does not; started again, it is asked again. */
static void test_a_silent_prometheus_does_not_hold_up_a_stop(void **state)
{
    (void)state;
    static const struct fake_container containers[] = {
        {.pod = "web-old", .container = "app", .cores = 1.0, .bytes = 1.0e9},
        {.pod = NULL},
    };
    struct history_bed b;
    struct fake_prometheus fake;
    history_bed_init(&b);
    fake_prometheus_init(&fake, b.c.bed.loop, containers);
    fake.labels = "{\"metric\":{\"namespace\":\"default\",\"pod\":\"web-old\","
                  "\"label_app_kubernetes_io_name\":\"web\"},\"value\":[1700000000,\"1\"]}";
    struct td_prometheus_options prometheus = bed_prometheus(&fake);
    fake.is_silent = true;
    history_bed_start(&b, &prometheus);
    control_bed_run(&b.c, 10 * TD_MINUTE);
    assert_true(td_recommend_loop_is_reading(b.loop));
    expect_target(&b, "cpu", "none");
    bool is_stopped = false;
    td_recommend_loop_stop(b.loop, bed_is_stopped, &is_stopped);
    control_bed_run(&b.c, TD_SECOND);
    assert_true(is_stopped);
    assert_int_equal(fake.transport.open, 0);
    fake.is_silent = false;
    td_recommend_loop_start(b.loop);
    control_bed_run(&b.c, 65 * TD_SECOND);
    expect_target(&b, "cpu", "1168m");
    history_bed_done(&b);
    td_arena_done(&fake.arena);
}

static void test_an_address_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const addresses[] = {"ftp://a", "http://", "http://u:p@h", "http://h:99999"};
    struct td_clock clock = td_clock_virtual(0);
    struct td_loop *loop;
    assert_int_equal(td_loop_new(&clock, &loop, NULL), TD_OK);
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        struct td_prometheus_options options = bed_prometheus(NULL);
        struct td_prometheus *made = NULL;
        struct td_error err = TD_ERROR_INIT;
        options.address = td_str_from(addresses[i]);
        assert_int_equal(td_prometheus_new(loop, &options, NULL, &made, &err), TD_INVALID);
        assert_null(made);
        assert_null(strstr(err.message, "u:p"));
    }
    td_loop_free(loop);
}

/* ---- Pieces of time ---- */

struct piece_bed {
    size_t samples;
    td_time last;
    int wrong; /* samples out of order */
    int code;
    bool is_done;
    char message[TD_ERROR_MESSAGE_BYTES];
};

static void *piece_container(void *context, td_str ns, td_str pod, td_str name)
{
    (void)ns;
    (void)pod;
    (void)name;
    return context;
}

static void piece_sample(void *context, void *container, enum td_learn_resource resource,
                         td_time time, int64_t amount)
{
    struct piece_bed *bed = context;
    (void)container;
    bed->wrong += time < bed->last || amount != (resource == TD_LEARN_CPU ? 250 : 7);
    bed->last = time;
    bed->samples++;
}

static void piece_done(void *context, int code, const struct td_error *err)
{
    struct piece_bed *bed = context;
    bed->code = code;
    bed->is_done = true;
    (void)snprintf(bed->message, sizeof(bed->message), "%s", err->message);
}

/* Pieces shrink until they fit and arrive whole and in the order of time; what does not fit into
 * one step is refused. */
static void test_history_comes_in_pieces_that_fit(void **state)
{
    (void)state;
    static const struct fake_container containers[] = {
        {.pod = "a", .container = "x", .cores = 0.25, .bytes = 7},
        {.pod = "b", .container = "x", .cores = 0.25, .bytes = 7},
        {.pod = NULL},
    };
    static const struct {
        size_t points_max;
        int code;
        size_t samples;
    } rows[] = {
        {0, TD_OK, 2004},  {2004, TD_OK, 2004}, {1000, TD_OK, 2004},
        {64, TD_OK, 2004}, {4, TD_OK, 2004},    {3, TD_LIMIT, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_clock clock = td_clock_virtual(BED_START * TD_SECOND);
        struct td_loop *loop;
        assert_int_equal(td_loop_new(&clock, &loop, NULL), TD_OK);
        struct fake_prometheus fake;
        fake_prometheus_init(&fake, loop, containers);
        struct td_prometheus_options options = bed_prometheus(&fake);
        struct td_prometheus *prometheus;
        assert_int_equal(td_prometheus_new(loop, &options, NULL, &prometheus, NULL), TD_OK);
        static const struct td_history_handler handler = {
            .container = piece_container, .sample = piece_sample, .done = piece_done};
        struct piece_bed bed = {.samples = 0};
        const struct td_history_options history_options = {
            .loop = loop,
            .prometheus = prometheus,
            .cpu_query = TD_STR("rate(x)"),
            .memory_query = TD_STR("y"),
            .namespace_label = TD_STR("namespace"),
            .pod_label = TD_STR("pod_name"),
            .container_label = TD_STR("name"),
            .start = BED_START * TD_SECOND - 500 * TD_MINUTE,
            .end = BED_START * TD_SECOND,
            .step = TD_MINUTE,
            .query_timeout = TD_MINUTE,
            .points_max = rows[i].points_max,
        };
        struct td_history *history = td_history_start(&history_options, &handler, &bed);
        assert_int_equal(td_loop_run(loop, NULL), TD_OK);
        assert_true(bed.is_done);
        assert_int_equal(bed.code, rows[i].code);
        assert_int_equal(bed.samples, rows[i].samples);
        assert_int_equal(bed.wrong, 0);
        if (rows[i].code != TD_OK) {
            assert_string_equal(bed.message,
                                "http://prometheus.example: more than 3 samples in one step");
        }
        td_history_free(history);
        td_prometheus_free(prometheus);
        td_loop_free(loop);
        td_arena_done(&fake.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_that_are_gone_teach_before_the_first_pass),
        cmocka_unit_test(test_pods_that_are_there_have_their_history),
        cmocka_unit_test(test_a_sample_that_a_checkpoint_has_is_not_counted_twice),
        cmocka_unit_test(test_a_prometheus_that_fails_half_way_leaves_no_trace),
        cmocka_unit_test(test_a_silent_prometheus_does_not_hold_up_a_stop),
        cmocka_unit_test(test_an_address_that_is_none_is_refused),
        cmocka_unit_test(test_history_comes_in_pieces_that_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
