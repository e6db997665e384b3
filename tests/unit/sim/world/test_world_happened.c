/* What a world tells of: kills, evictions, resizes, a lost leader; and what its rows say of it. */
#include "support/world_bed.h"

#include "support/api_bed.h"

#define POD(name, container, resources)                                                            \
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " name ", labels: {app: " name "}}\n"        \
    "spec: {containers: [{name: " container ", image: x, resources: " resources "}]}\n"
#define DEMAND(kind, name, rest) "  - {target: {kind: " kind ", name: " name "}, " rest "}\n"

static void ask(struct world_bed *world, const char *method, const char *target, const char *type,
                const char *body)
{
    struct bed bed = {.api = td_cluster_api(td_world_cluster(world->world)), .loop = world->loop};
    bed_auto_answer answer;
    bed_answer_init(&answer);
    bed_ask(
        &bed,
        &(struct bed_request){
            .method = method, .target = target, .content_type = type, .body = td_str_from(body)},
        &answer);
    if (answer.status < 200 || answer.status > 299) {
        fail_msg("%s %s: %d %s", method, target, answer.status, answer.body.ptr);
    }
}

#define DECIDED(name, reason, annotations)                                                         \
    "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{" annotations "\"name\":\"" name      \
    "\"},"                                                                                         \
    "\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"namespace\":\"default\","        \
    "\"name\":"                                                                                    \
    "\"web\"},\"reason\":\"" reason "\",\"message\":\"a message\",\"type\":\"Normal\"}"

/* A container above its memory limit is told as a kill, with its name, and counted with its
 * restart. */
static void test_world_tells_of_a_kill(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(&bed,
                    WORLD_BED_HEAD "  demand:\n" DEMAND("Pod", "fat", "cpu: 10m, memory: 200Mi"),
                    POD("fat", "main", "{limits: {memory: 100Mi}}"));
    world_bed_run(&bed, 5 * TD_SECOND / 2); /* started after one, killed after two */
    const struct td_world_row *row = world_bed_row(&bed, "fat", "");
    assert_int_equal(row->load.kill_count, 1);
    assert_int_equal(row->restart_count, 1);
    assert_true(world_bed_has_line(
        &bed, " OOMKilled Pod/fat container main used more memory than its limit\n"));
    assert_true(row->decided_at < 0); /* nothing was decided */
    world_bed_run(&bed, TD_MINUTE);
    struct td_world_view view = world_bed_look(&bed);
    assert_true(view.kill_count >= 2);
    assert_int_equal(view.kill_count, view.rows[0].load.kill_count);
    assert_int_equal(view.restart_count, view.rows[0].restart_count);
    assert_true(world_bed_has_line(&bed, " BackOff Pod/fat "));
    world_bed_done(&bed);
}

/* What an autoscaler decided is kept in its own words, or in those of its Event; what happens
 * afterwards does not replace it. */
static void test_world_keeps_the_last_decision(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(&bed, WORLD_BED_HEAD, POD("web", "main", "{}"));
    world_bed_run(&bed, 5 * TD_SECOND);
    assert_true(world_bed_row(&bed, "web", "")->decided_at < 0);
    ask(&bed, "POST", "/api/v1/namespaces/default/events", NULL,
        DECIDED("a", "InPlaceResizedByVPA", ""));
    world_bed_run(&bed, TD_SECOND);
    assert_true(td_str_equal(world_bed_row(&bed, "web", "")->decision, TD_STR("a message")));
    ask(&bed, "POST", "/api/v1/namespaces/default/events", NULL,
        DECIDED("b", "InPlaceResizedByVPA",
                "\"annotations\":{\"tandem.dev/decision\":\"resized in place: cpu 1 \u2192 2\"},"));
    world_bed_run(&bed, TD_SECOND);
    ask(&bed, "POST", "/api/v1/namespaces/default/events", NULL, DECIDED("c", "SomethingElse", ""));
    world_bed_run(&bed, TD_SECOND);
    const struct td_world_row *row = world_bed_row(&bed, "web", "");
    assert_true(td_str_equal(row->decision, TD_STR("resized in place: cpu 1 \u2192 2")));
    assert_true(row->decided_at > 0);
    world_bed_done(&bed);
}

/* An eviction through the API makes no Event of its own, and is told. */
static void test_world_tells_of_an_eviction(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(&bed, WORLD_BED_HEAD,
                    "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n"
                    "  serviceName: x\n  selector: {matchLabels: {app: db}}\n"
                    "  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, "
                    "image: x}]}}\n");
    world_bed_run(&bed, 10 * TD_SECOND);
    ask(&bed, "POST", "/api/v1/namespaces/default/pods/db-0/eviction", NULL,
        "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"db-0\"}}");
    world_bed_run(&bed, 10 * TD_SECOND);
    assert_true(world_bed_has_line(&bed, "10 Evicted Pod/db-0 evicted through the API\n"));
    assert_int_equal(world_bed_look(&bed).eviction_count, 1);
    assert_int_equal(world_bed_row(&bed, "db", "")->eviction_count, 1);
    world_bed_done(&bed);
}

/* A resize is told once, with what changed. */
static void test_world_tells_of_a_resize(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(&bed, WORLD_BED_HEAD,
                    POD("one", "main", "{requests: {cpu: 100m, memory: 100Mi}}"));
    world_bed_run(&bed, 10 * TD_SECOND);
    ask(&bed, "PATCH", "/api/v1/namespaces/default/pods/one/resize",
        "application/strategic-merge-patch+json",
        "{\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"requests\":{\"cpu\":"
        "\"250m\"}}}]}}");
    world_bed_run(&bed, 30 * TD_SECOND);
    assert_true(world_bed_has_line(&bed, " ResizeCompleted Pod/one main cpu 100m -> 250m\n"));
    assert_false(world_bed_has_line(&bed, "ResizeStarted"));
    const struct td_world_row *row = world_bed_row(&bed, "one", "");
    assert_int_equal(row->resize_count, 1);
    assert_int_equal(row->load.limits.cpu_request_milli, 250);
    assert_int_equal(world_bed_look(&bed).resize_count, 1);
    world_bed_done(&bed);
}

/* A leader on a node that falls silent is replaced once its pod counts as not ready. */
static void test_world_replaces_a_lost_leader(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(
        &bed,
        WORLD_BED_HEAD "  demand:\n"
                       "  - target: {kind: StatefulSet, name: db}\n"
                       "    roles: {label: role, leader: {cpu: 300m, memory: 90Mi}, follower: "
                       "{cpu: 50m, memory: 40Mi}}\n"
                       "  events:\n"
                       "  - {at: 2m, do: node-loss, node: node-1, for: 3m}\n",
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n"
        "  replicas: 2\n  serviceName: x\n  selector: {matchLabels: {app: db}}\n"
        "  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: x}]}}\n");
    world_bed_run(&bed, TD_MINUTE);
    assert_string_equal(world_bed_text(&bed, "v1", "Pod", "db-0", "spec.nodeName"), "node-1");
    assert_string_equal(world_bed_text(&bed, "v1", "Pod", "db-0", "metadata.labels.role"),
                        "leader");
    world_bed_run(&bed, 4 * TD_MINUTE + 30 * TD_SECOND);
    assert_string_equal(world_bed_text(&bed, "v1", "Pod", "db-0", "metadata.labels.role"),
                        "follower");
    assert_string_equal(world_bed_text(&bed, "v1", "Pod", "db-1", "metadata.labels.role"),
                        "leader");
    assert_true(world_bed_has_line(&bed, " RoleTaken Pod/db-1 is leader now\n"));
    world_bed_done(&bed);
}

/* Of several autoscalers the coordinator counts, then who sets replicas, then who sets sizes. */
static void test_world_names_who_acts(void **state)
{
    (void)state;
#define TARGET "{apiVersion: apps/v1, kind: Deployment, name: web}"
#define AUTOSCALER(version, kind, name, rest)                                                      \
    "---\napiVersion: " version "\nkind: " kind "\nmetadata: {name: " name "}\nspec: " rest "\n"
    static const char vpa[] = AUTOSCALER("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "v",
                                         "{targetRef: " TARGET "}");
    static const char hpa[] = AUTOSCALER("autoscaling/v2", "HorizontalPodAutoscaler", "h",
                                         "{maxReplicas: 3, scaleTargetRef: " TARGET "}");
    static const char hvpa[] =
        AUTOSCALER("autoscaling.k8s.io/v1alpha1", "Hvpa", "z",
                   "{mode: HPAPreferred, targetRef: " TARGET
                   ", hpaSpec: {maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, "
                   "target: {type: Utilization, averageUtilization: 60}}}]}}");
    static const char web[] =
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n"
        "  selector: {matchLabels: {app: web}}\n"
        "  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: x}]}}\n";
    static const struct {
        const char *first, *second, *by;
    } rows[] = {
        {"", "", ""},        {vpa, "", "vpa/v"},    {hpa, vpa, "hpa/h"},
        {vpa, hpa, "hpa/h"}, {hpa, hvpa, "hvpa/z"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world_bed bed;
        td_auto_buf text;
        td_buf_init(&text, 1 << 16);
        (void)td_buf_append_format(&text, "%s%s%s", rows[i].first, web, rows[i].second);
        world_bed_begin(&bed, WORLD_BED_HEAD, td_buf_str(&text).ptr);
        world_bed_run(&bed, 5 * TD_SECOND);
        assert_true(td_str_equal(world_bed_row(&bed, "web", "")->by, td_str_from(rows[i].by)));
        world_bed_done(&bed);
    }
}

/* A stream of requests that its pods cannot serve: latency, what is throttled, what is lost. */
static void test_world_shows_what_throttling_costs(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(&bed,
                    WORLD_BED_HEAD "  demand:\n"
                                   "  - target: {kind: Pod, name: slow}\n"
                                   "    requests: 100/s\n"
                                   "    perRequest: {cpu: 10ms}\n"
                                   "  - target: {kind: Pod, name: quick}\n"
                                   "    requests: 10/s\n"
                                   "    perRequest: {cpu: 10ms}\n",
                    POD("slow", "main", "{limits: {cpu: 500m}}") POD("quick", "main", "{}"));
    world_bed_run(&bed, 3 * TD_MINUTE);
    (void)world_bed_look(&bed); /* from now on the last minute is known */
    world_bed_run(&bed, 3 * TD_MINUTE);
    const struct td_world_row *slow = world_bed_row(&bed, "slow", "");
    const struct td_world_row *quick = world_bed_row(&bed, "quick", "");
    assert_true(slow->throttled_share > 0.4 && slow->throttled_share < 0.6);
    assert_true(quick->throttled_share == 0);
    assert_true(slow->dropped > 50 * 300);
    assert_true(quick->dropped < 10 * 60);
    assert_true(slow->mean_latency_seconds > quick->mean_latency_seconds);
    assert_true(quick->mean_latency_seconds > 0);
    world_bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_world_tells_of_a_kill),
        cmocka_unit_test(test_world_keeps_the_last_decision),
        cmocka_unit_test(test_world_tells_of_an_eviction),
        cmocka_unit_test(test_world_tells_of_a_resize),
        cmocka_unit_test(test_world_replaces_a_lost_leader),
        cmocka_unit_test(test_world_names_who_acts),
        cmocka_unit_test(test_world_shows_what_throttling_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
