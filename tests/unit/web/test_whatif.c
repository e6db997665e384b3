/*
 * The page of a local cluster: rows, history, what other settings would have done, YAML, and the
 * faults that a visitor may cause; and what of that is refused.
 */
#include "support/web_bed.h"

#define SCENARIO                                                                                   \
    WORLD_BED_HEAD                                                                                 \
    "  demand:\n"                                                                                  \
    "  - {target: {kind: Deployment, name: app}, cpu: {value: 300m}, memory: {value: 200Mi}}\n"
#define OBJECTS                                                                                    \
    "apiVersion: apps/v1\n"                                                                        \
    "kind: Deployment\n"                                                                           \
    "metadata: {name: app, namespace: default}\n"                                                  \
    "spec:\n"                                                                                      \
    "  replicas: 2\n"                                                                              \
    "  selector: {matchLabels: {app: app}}\n"                                                      \
    "  template:\n"                                                                                \
    "    metadata: {labels: {app: app}}\n"                                                         \
    "    spec:\n"                                                                                  \
    "      containers:\n"                                                                          \
    "      - name: app\n"                                                                          \
    "        image: nginx\n"                                                                       \
    "        resources: {requests: {cpu: \"1\", memory: 512Mi}}\n"
#define ROW "\"ns\":\"default\",\"kind\":\"Deployment\",\"name\":\"app\",\"by\":\"\""
#define ROW_QUERY "ns=default&kind=Deployment&name=app&by="

static struct web_answer last;

static void begin(struct web_bed *bed)
{
    *bed = (struct web_bed){.web = NULL};
    web_bed_begin(bed, SCENARIO, OBJECTS);
    web_bed_serve(bed, (struct td_web_options){.price_cpu = 20, .price_memory = 2});
    for (int i = 0; i < 200; i++) { /* until there are ten minutes of it */
        web_bed_run(bed, 20);
        last = web_bed_get(bed, "/api/workload?" ROW_QUERY);
        if (last.status == 200 && web_answer_has(&last, "\"cpuP50\":[") &&
            text_count(last.body, TD_STR(",300,300,300,300,300,300,300")) > 0) {
            return;
        }
    }
    fail_msg("there is no history: %.*s", TD_STR_ARG(td_str_slice(last.body, 0, BED_TEXT_BYTES)));
}

/* The row, its pods, its sums. */
static void test_views_show_the_cluster(void **state)
{
    (void)state;
    struct web_bed bed;
    begin(&bed);
    web_answer_expect(&last, 200, "\"replicas\":2");
    web_answer_expect(&last, 200, "\"request\":{\"cpu\":2000,\"memory\":1073741824}");
    web_answer_expect(&last, 200, "\"podCount\":2");
    struct web_answer answer = web_bed_get(&bed, "/api/workloads");
    web_answer_expect(&answer, 200,
                      "[\"default\",\"Deployment\",\"app\",\"\",2,2,null,null,2,2,2000,600,"
                      "null,1073741824,419430400,null");
    answer = web_bed_get(&bed, "/api/cluster");
    web_answer_expect(&answer, 200, "\"readyNodes\":2");
    web_answer_expect(&answer, 200, "\"cpuSlack\":[");
    web_answer_expect(&answer, 200, "0.7]"); /* 1400m of 2 cores */
    answer = web_bed_get(&bed, "/api/info");
    web_answer_expect(&answer, 200, "\"priceCpu\":20");
    answer = web_bed_get(&bed, "/api/yaml?" ROW_QUERY);
    web_answer_expect(&answer, 200, "kind: VerticalPodAutoscaler");
    answer = web_bed_get(&bed, "/api/explain?ns=default&kind=deployment&name=app");
    web_answer_expect(&answer, 200, "\"explanation\"");
    web_bed_done(&bed);
}

/* A smaller request costs less; an HPA wants the pods that the load needs; bounds bind; the YAML
 * says what was asked. */
static void test_whatif_decides(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        const char *texts[4];
    } rows[] = {
        {"\"mode\":\"VPA\"",
         {"\"was\":{\"cpu\":1", "\"replicas\":2,", "kind: VerticalPodAutoscaler"}},
        {"\"mode\":\"VPA\",\"minCpu\":700,\"maxCpu\":700",
         {"\"is\":{\"cpu\":1400,", "cpu: 700m", "minAllowed"}},
        {"\"mode\":\"VPA\",\"cpuPercentile\":0.5,\"margin\":0",
         {"--target-cpu-percentile=0.5", "--recommendation-margin-fraction=0"}},
        {"\"mode\":\"VPA\",\"estimator\":\"adaptive\"", {"tandem.dev/estimator: adaptive"}},
        {"\"mode\":\"HPA\",\"utilization\":10,\"minReplicas\":1,\"maxReplicas\":5",
         {"kind: HorizontalPodAutoscaler", "averageUtilization: 10", "maxReplicas: 5",
          ",5,5,5,5]"}},
        {"\"mode\":\"HPA+VPA\",\"utilization\":60", {"---", "kind: HorizontalPodAutoscaler"}},
        {"\"mode\":\"RatioBased\",\"utilization\":60,\"ratio\":0.5,\"maxReplicas\":8",
         {"kind: Hvpa", "vToHScalingRatio: 0.5", "mode: RatioBased"}},
        {"\"mode\":\"HPAPreferred\",\"utilization\":60,\"minReplicas\":1", {"mode: HPAPreferred"}},
        {"\"mode\":\"VPABiased\",\"utilization\":60", {"mode: VPABiased"}},
        {"\"mode\":\"Mixed\",\"utilization\":60", {"mode: Mixed"}},
    };
    struct web_bed bed;
    begin(&bed);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *body = td_arena_format(&bed.arena, "{" ROW ",%s}", rows[i].settings).ptr;
        struct web_answer answer = web_bed_post(&bed, "/api/whatif", body);
        for (size_t t = 0; t < 4 && rows[i].texts[t]; t++) {
            web_answer_expect(&answer, 200, rows[i].texts[t]);
        }
    }
    web_bed_done(&bed);
}

/* Values that cannot be are refused by name, before any work. */
static void test_whatif_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        const char *text;
    } rows[] = {
        {"\"mode\":\"none\"", "mode: must be"},
        {"\"mode\":7", "mode: must be"},
        {"\"mode\":\"VPA\",\"cpuPercentile\":1.01",
         "cpuPercentile: must be a number from 0.01 to 1"},
        {"\"mode\":\"VPA\",\"cpuPercentile\":\"0.9\"", "cpuPercentile: must be"},
        {"\"mode\":\"VPA\",\"margin\":-1", "margin: must be"},
        {"\"mode\":\"VPA\",\"maxMemory\":1e300", "maxMemory: must be"},
        {"\"mode\":\"VPA\",\"minCpu\":2,\"maxCpu\":1", "minCpu: must not be above maxCpu"},
        {"\"mode\":\"VPA\",\"estimator\":\"magic\"", "estimator: "},
        {"\"mode\":\"HPA\"", "utilization: is needed"},
        {"\"mode\":\"HPA\",\"utilization\":0", "utilization: must be"},
        {"\"mode\":\"HPA\",\"utilization\":50,\"minReplicas\":9,\"maxReplicas\":3",
         "minReplicas: must not be above"},
        {"\"mode\":\"HPA\",\"utilization\":50,\"maxReplicas\":1e9", "maxReplicas: must be"},
        {"\"mode\":\"RatioBased\",\"utilization\":50,\"ratio\":-0.5", "ratio: must be"},
    };
    struct web_bed bed;
    begin(&bed);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *body = td_arena_format(&bed.arena, "{" ROW ",%s}", rows[i].settings).ptr;
        struct web_answer answer = web_bed_post(&bed, "/api/whatif", body);
        web_answer_expect(&answer, 400, rows[i].text);
    }
    struct web_answer answer =
        web_bed_post(&bed, "/api/whatif", "{\"ns\":\"default\",\"kind\":\"Deployment\"}");
    assert_int_equal(answer.status, 404);
    web_bed_done(&bed);
}

/* A caller that leaves in the middle of the work ends it; so does the end of the page. */
static void test_whatif_ends_with_its_caller(void **state)
{
    (void)state;
    struct web_bed bed;
    struct client clients[3];
    begin(&bed);
    for (size_t i = 0; i < 3; i++) {
        web_bed_send(&bed, &clients[i],
                     web_bed_request(&bed, "POST /api/whatif", "Content-Type: application/json\r\n",
                                     "{" ROW ",\"mode\":\"VPA\"}"));
        web_bed_close(&clients[i]);
    }
    td_web_free(bed.web);
    bed.web = NULL;
    web_bed_done(&bed);
}

/* The clock, the load, webhooks, nodes and pods; everything else is refused with what there is. */
static void test_scenario_is_played_with(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int status;
        const char *text;
    } rows[] = {
        {"{\"do\":\"look\"}", 200, "\"speed\":600"},
        {"{\"do\":\"load\",\"factor\":2}", 200, "\"load\":2"},
        {"{\"do\":\"load\",\"factor\":0}", 400, "factor: must be"},
        {"{\"do\":\"load\"}", 400, "factor: must be"},
        {"{\"do\":\"webhook-down\",\"down\":true}", 200, "\"webhooksDown\":true"},
        {"{\"do\":\"node-loss\",\"name\":\"none\"}", 404, "none"},
        {"{\"do\":\"kill-pod\",\"ns\":\"default\",\"name\":\"none\"}", 404, "no such pod"},
        {"{\"do\":\"kill-pod\"}", 400, "are needed"},
        {"{\"do\":\"clock\",\"speed\":-1}", 400, "speed: must be"},
        {"{\"do\":\"clock\",\"speed\":1e9}", 400, "speed: must be"},
        {"{\"do\":\"dance\"}", 400, "do: must be one of"},
        {"[]", 400, "do: must be one of"},
        {"{\"do\":\"clock\",\"speed\":0}", 200, "\"speed\":0"},
        {"{\"do\":\"clock\",\"speed\":60}", 200, "\"speed\":60"},
    };
    struct web_bed bed;
    begin(&bed);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct web_answer answer = web_bed_post(&bed, "/api/scenario", rows[i].body);
        web_answer_expect(&answer, rows[i].status, rows[i].text);
    }
    web_bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views_show_the_cluster),
        cmocka_unit_test(test_whatif_decides),
        cmocka_unit_test(test_whatif_refuses),
        cmocka_unit_test(test_whatif_ends_with_its_caller),
        cmocka_unit_test(test_scenario_is_played_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
