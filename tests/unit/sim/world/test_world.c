/* A scenario at work: what is brought into the cluster, what is refused, and what there is to see.
 */
#include "support/world_bed.h"

#include "sim/world/world_report.h"

#define POD_TEMPLATE(app)                                                                          \
    "  selector: {matchLabels: {app: " app "}}\n"                                                  \
    "  template:\n"                                                                                \
    "    metadata: {labels: {app: " app "}}\n"                                                     \
    "    spec:\n"                                                                                  \
    "      containers:\n"                                                                          \
    "      - name: main\n"                                                                         \
    "        image: x\n"                                                                           \
    "        resources: {requests: {cpu: 200m, memory: 100Mi}, limits: {cpu: 400m}}\n"
#define DEPLOYMENT(name, replicas)                                                                 \
    "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " name "}\nspec:\n"              \
    "  replicas: " replicas "\n" POD_TEMPLATE(name)
#define STATEFUL_SET(name, replicas)                                                               \
    "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: " name "}\nspec:\n"             \
    "  serviceName: x\n  replicas: " replicas "\n" POD_TEMPLATE(name)
#define VPA(name, role)                                                                            \
    "---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\n"                        \
    "metadata: {name: " name "}\nspec:\n"                                                          \
    "  targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}\n"                            \
    "  selector: {matchLabels: {role: " role "}}\n"
#define HPA(name, target)                                                                          \
    "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n"                             \
    "metadata: {name: " name "}\nspec:\n"                                                          \
    "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: " target "}\n"                \
    "  maxReplicas: 4\n"
#define DB_ROLES                                                                                   \
    "  demand:\n"                                                                                  \
    "  - target: {kind: StatefulSet, name: db}\n"                                                  \
    "    roles: {label: role, leader: {cpu: 300m, memory: 90Mi}, follower: {cpu: 50m, memory: "    \
    "40Mi}}\n"

/* Objects of all kinds of workload are rows, in order of names, with what they wish and who acts on
 * them, also when they have no pods. */
static void test_world_shows_every_workload(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(
        &bed, WORLD_BED_HEAD,
        DEPLOYMENT("web", "2") DEPLOYMENT("cold", "0")
            HPA("scales-web",
                "web") "---\napiVersion: v1\nkind: Pod\nmetadata: {name: alone}\n"
                       "spec: {containers: [{name: c, image: x}]}\n"
                       "---\napiVersion: v1\nkind: Pod\nmetadata: {name: huge}\n"
                       "spec: {resources: {requests: {cpu: \"99\"}}, containers: [{name: c, "
                       "image: x}]}\n");
    world_bed_run(&bed, 30 * TD_SECOND);
    struct td_world_view view = world_bed_look(&bed);
    static const struct {
        const char *kind, *name, *by;
        int64_t replicas;
        size_t pods;
    } rows[] = {
        {"Pod", "alone", "", 1, 1},
        {"Deployment", "cold", "", 0, 0},
        {"Pod", "huge", "", 1, 0},
        {"Deployment", "web", "hpa/scales-web", 2, 2},
    };
    assert_int_equal(view.row_count, sizeof(rows) / sizeof(rows[0]));
    for (size_t i = 0; i < view.row_count; i++) {
        const struct td_world_row *row = &view.rows[i];
        assert_true(td_str_equal(row->load.kind, td_str_from(rows[i].kind)));
        assert_true(td_str_equal(row->load.name, td_str_from(rows[i].name)));
        assert_true(td_str_equal(row->by, td_str_from(rows[i].by)));
        assert_int_equal(row->replicas, rows[i].replicas);
        assert_int_equal(row->load.pod_count, rows[i].pods);
    }
    assert_int_equal(view.node_count, 2);
    assert_int_equal(view.ready_node_count, 2);
    assert_int_equal(view.pod_count, 4);
    assert_int_equal(view.pending_count, 1);
    assert_true(view.rows[2].is_pod_level);
    assert_true(world_bed_has_line(&bed, " FailedScheduling Pod/huge "));
    assert_true(view.cpu_capacity_milli == 16000);
    assert_int_equal(view.requested.cpu_request_milli, 400);
    assert_true(world_bed_has_line(&bed, "0 ScalingReplicaSet Deployment/web "));
    assert_false(world_bed_has_line(&bed, "Scheduled"));
    world_bed_delete(&bed, "apps/v1", "Deployment", "web");
    world_bed_delete(&bed, "autoscaling/v2", "HorizontalPodAutoscaler", "scales-web");
    world_bed_run(&bed, 2 * TD_MINUTE);
    assert_null(world_bed_row(&bed, "web", ""));
    assert_int_equal(world_bed_look(&bed).pod_count, 2);
    world_bed_done(&bed);
}

/* An Hvpa that names its workload inside hpaSpec and vpaSpec only is shown beside it. */
static void test_world_shows_an_hvpa_of_the_literal_form(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(
        &bed, WORLD_BED_HEAD,
        DEPLOYMENT("web",
                   "2") "---\napiVersion: autoscaling.k8s.io/v1alpha1\nkind: Hvpa\n"
                        "metadata: {name: both}\nspec:\n"
                        "  targetRef: {kind: \"\", name: \"\"}\n"
                        "  hpaSpec:\n    spec:\n"
                        "      scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n"
                        "      maxReplicas: 4\n"
                        "  vpaSpec:\n    spec:\n"
                        "      targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n");
    world_bed_run(&bed, 10 * TD_SECOND);
    const struct td_world_row *row = world_bed_row(&bed, "web", "");
    assert_non_null(row);
    assert_true(td_str_equal(row->by, TD_STR("hvpa/both")));
    world_bed_done(&bed);
}

/* Kinds and namespaces may come after the objects that need them in the files. */
static void test_world_brings_objects_in_an_order_that_works(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(
        &bed, WORLD_BED_HEAD,
        "apiVersion: test.dev/v1\nkind: Game\nmetadata: {name: chess, namespace: play}\n"
        "spec: {replicas: 3}\n"
        "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: play}\n"
        "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        "metadata: {name: games.test.dev}\n"
        "spec:\n"
        "  group: test.dev\n"
        "  scope: Namespaced\n"
        "  names: {kind: Game, plural: games}\n"
        "  versions:\n"
        "  - name: v1\n"
        "    served: true\n"
        "    storage: true\n"
        "    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: "
        "true}}\n"
        "    subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: "
        ".status.replicas}}\n");
    world_bed_run(&bed, TD_SECOND);
    const struct td_world_row *row = world_bed_row(&bed, "chess", "");
    assert_non_null(row);
    assert_int_equal(row->replicas, 3);
    world_bed_done(&bed);
}

/* What the server refuses is one line with file, line and field. */
static void test_world_names_the_place_of_a_bad_manifest(void **state)
{
    (void)state;
    static const struct {
        const char *objects, *message;
    } rows[] = {
        {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n"
         "  replicas: -1\n" POD_TEMPLATE("web"),
         "objects.yaml:5: spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
        {DEPLOYMENT("web", "1") "  speed: 3\n", "objects.yaml:"},
        {DEPLOYMENT("web", "1") "  speed: 3\n", "spec.speed"},
        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
         "---\napiVersion: test.dev/v1\nkind: Nothing\nmetadata: {name: b}\n",
         "objects.yaml:5: kind: Nothing: the cluster does not serve this kind in test.dev/v1"},
        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: nowhere}\n",
         "objects.yaml:1: ConfigMap: a: namespaces \"nowhere\" not found"},
        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\n", "objects.yaml:"},
        {"kind: ConfigMap\n", "objects.yaml:1: apiVersion: must be set"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world_bed bed;
        world_bed_init(&bed);
        world_bed_file(&bed, "objects.yaml", rows[i].objects);
        world_bed_start(&bed, WORLD_BED_HEAD, -1);
        assert_int_equal(bed.code, TD_INVALID);
        assert_null(bed.world);
        if (!strstr(bed.err.message, rows[i].message) || strchr(bed.err.message, '\n')) {
            fail_msg("%s\nis not: %s", bed.err.message, rows[i].message);
        }
        world_bed_done(&bed);
    }
}

/* What the scenario names and the manifests lack is one line too. */
static void test_world_names_the_place_of_a_missing_target(void **state)
{
    (void)state;
#define BAD_DEMAND(target) "  demand:\n  - target: " target "\n    cpu: 1m\n    memory: 1Mi\n"
#define BAD_EVENT(event)                                                                           \
    "  events:\n  - {at: 5m, do: metrics-gap, for: 1m}\n  - {at: 1m, " event "}\n"
    static const struct {
        const char *body, *message;
    } rows[] = {
        {BAD_DEMAND("{kind: Deployment, name: wob}"),
         "scenario.yaml:8: spec.demand[0].target: Deployment/wob: no such object in the manifests"},
        {BAD_DEMAND("{kind: StatefulSet, name: web}"), "StatefulSet/web: no such object in the"},
        {BAD_DEMAND("{kind: Deployment, name: web, container: side}"),
         "scenario.yaml:8: spec.demand[0].target.container: side: no such container in its pods"},
        {BAD_EVENT("do: scale, target: deployment/wob, replicas: 2"),
         "scenario.yaml:9: spec.events[1].target: Deployment/wob: no such object in the"},
        {BAD_EVENT("do: node-loss, node: node-3, for: 1m"),
         "scenario.yaml:9: spec.events[1].node: node-3: "},
        {BAD_EVENT("do: scale, target: configmap/web, replicas: 2"), "scenario.yaml:9: "},
        {BAD_EVENT("do: apply, manifest: none.yaml"), "scenario.yaml:9: spec.events[1].manifest: "},
        {BAD_EVENT("do: apply, manifest: none.yaml"), "none.yaml: No such file or directory"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world_bed bed;
        world_bed_init(&bed);
        world_bed_file(&bed, "objects.yaml", DEPLOYMENT("web", "1"));
        td_str text = td_arena_format(&bed.arena, "%s%s", WORLD_BED_HEAD, rows[i].body);
        world_bed_start(&bed, text.ptr, -1);
        assert_int_not_equal(bed.code, TD_OK);
        assert_null(bed.world);
        if (!strstr(bed.err.message, rows[i].message) || strchr(bed.err.message, '\n')) {
            fail_msg("%s\nis not: %s", bed.err.message, rows[i].message);
        }
        world_bed_done(&bed);
    }
}

static const char *role_of(struct world_bed *bed, const char *pod)
{
    return world_bed_text(bed, "v1", "Pod", pod, "metadata.labels.role");
}

/* The first role has one holder, the pod with the lowest name; another takes over when it goes. */
static void test_world_keeps_one_leader(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(&bed, WORLD_BED_HEAD DB_ROLES,
                    STATEFUL_SET("db", "3") VPA("lead", "leader") VPA("follow", "follower"));
    world_bed_run(&bed, TD_MINUTE);
    assert_string_equal(role_of(&bed, "db-0"), "leader");
    assert_string_equal(role_of(&bed, "db-1"), "follower");
    assert_string_equal(role_of(&bed, "db-2"), "follower");
    const struct td_world_row *leader = world_bed_row(&bed, "db", "leader");
    const struct td_world_row *follower = world_bed_row(&bed, "db", "follower");
    assert_int_equal(leader->replicas, 1);
    assert_int_equal(follower->replicas, 2);
    assert_true(td_str_equal(leader->by, TD_STR("vpa/lead")));
    assert_true(td_str_equal(follower->by, TD_STR("vpa/follow")));
    assert_true(leader->decided_at < 0); /* a role that is taken is no autoscaler's decision */
    world_bed_delete(&bed, "v1", "Pod", "db-0");
    world_bed_run(&bed, TD_MINUTE);
    assert_string_equal(role_of(&bed, "db-1"), "leader");
    assert_string_equal(role_of(&bed, "db-0"), "follower");
    assert_string_equal(role_of(&bed, "db-2"), "follower");
    world_bed_done(&bed);
}

/* A scenario moves the role: the pod takes it, the previous holder gets what the pod had, and that
 * stays. */
static void test_world_moves_a_role(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(&bed,
                    WORLD_BED_HEAD DB_ROLES
                    "  events:\n"
                    "  - {at: 2m, do: move-role, target: statefulset/db, label: role=leader, to: "
                    "db-2}\n"
                    "  - {at: 3m, do: move-role, target: statefulset/db, label: role=leader, to: "
                    "db-7}\n",
                    STATEFUL_SET("db", "3"));
    world_bed_run(&bed, 5 * TD_MINUTE);
    assert_string_equal(role_of(&bed, "db-0"), "follower");
    assert_string_equal(role_of(&bed, "db-1"), "follower");
    assert_string_equal(role_of(&bed, "db-2"), "leader");
    assert_true(world_bed_has_line(&bed, "120 move-role StatefulSet/db role=leader moves to db-2"));
    assert_true(world_bed_has_line(&bed, "180 move-role StatefulSet/db there is no pod db-7"));
    assert_true(world_bed_row(&bed, "db", "leader")->load.use.cpu_milli > 200);
    world_bed_done(&bed);
}

/* Faults last as long as the longest of those that overlap; each says when it begins and ends. */
static void test_world_breaks_and_mends(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_init(&bed);
    world_bed_file(&bed, "objects.yaml", DEPLOYMENT("web", "1"));
    world_bed_file(&bed, "later.yaml", DEPLOYMENT("more", "-3"));
    world_bed_start(&bed,
                    WORLD_BED_HEAD "  events:\n"
                                   "  - {at: 1m, do: node-loss, node: node-2, for: 10m}\n"
                                   "  - {at: 5m, do: node-loss, node: node-2, for: 10m}\n"
                                   "  - {at: 20m, do: scale, target: deployment/web, replicas: 3}\n"
                                   "  - {at: 21m, do: apply, manifest: later.yaml}\n",
                    -1);
    assert_int_equal(bed.code, TD_OK);
    world_bed_run(&bed, 12 * TD_MINUTE);
    assert_int_equal(world_bed_look(&bed).ready_node_count, 1);
    world_bed_run(&bed, 5 * TD_MINUTE);
    assert_int_equal(world_bed_look(&bed).ready_node_count, 2);
    assert_true(world_bed_has_line(&bed, "60 node-loss Node/node-2 silent for 10m0s\n"));
    assert_true(world_bed_has_line(&bed, "660 node-loss Node/node-2 is over\n"));
    assert_true(world_bed_has_line(&bed, "900 node-loss Node/node-2 is over\n"));
    world_bed_run(&bed, 10 * TD_MINUTE);
    assert_int_equal(world_bed_row(&bed, "web", "")->replicas, 3);
    assert_int_equal(world_bed_row(&bed, "web", "")->load.pod_count, 3);
    assert_true(world_bed_has_line(&bed, "1260 apply / "));
    assert_true(world_bed_has_line(&bed, "later.yaml:6: spec.replicas: Invalid value: -3: "));
    world_bed_done(&bed);
}

static td_str run_report(struct world_bed *bed, const char *scenario, int64_t seed)
{
    world_bed_init(bed);
    world_bed_file(bed, "objects.yaml", DEPLOYMENT("web", "2") STATEFUL_SET("db", "3"));
    world_bed_start(bed, scenario, seed);
    assert_int_equal(bed->code, TD_OK);
    world_bed_run(bed, 40 * TD_MINUTE);
    td_auto_buf text;
    td_buf_init(&text, TD_TREE_ARENA_BYTES_MAX);
    td_json_write(td_world_report(bed->world, &bed->arena), &(struct td_json_format){.indent = 1},
                  &text);
    return td_arena_copy_str(&bed->arena, td_buf_str(&text));
}

/* A run is a function of scenario and seed, wherever the seed is said. */
static void test_world_replays(void **state)
{
    (void)state;
#define NOISY(seed)                                                                                \
    WORLD_BED_HEAD "  seed: " seed "\n" DB_ROLES "  - target: {kind: Deployment, name: web}\n"     \
                   "    cpu: {shape: constant, value: 150m, noise: 30%}\n"                         \
                   "    memory: 50Mi\n"
    struct world_bed beds[4];
    td_str first = run_report(&beds[0], NOISY("7"), -1);
    td_str again = run_report(&beds[1], NOISY("7"), -1);
    td_str said = run_report(&beds[2], NOISY("3"), 7);
    td_str other = run_report(&beds[3], NOISY("3"), -1);
    assert_true(td_str_equal(first, again));
    assert_true(td_str_equal(first, said));
    assert_false(td_str_equal(first, other));
    assert_true(td_str_equal(td_buf_str(&beds[0].lines), td_buf_str(&beds[2].lines)));
    for (size_t i = 0; i < 4; i++) {
        world_bed_done(&beds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_world_shows_every_workload),
        cmocka_unit_test(test_world_shows_an_hvpa_of_the_literal_form),
        cmocka_unit_test(test_world_brings_objects_in_an_order_that_works),
        cmocka_unit_test(test_world_names_the_place_of_a_bad_manifest),
        cmocka_unit_test(test_world_names_the_place_of_a_missing_target),
        cmocka_unit_test(test_world_keeps_one_leader),
        cmocka_unit_test(test_world_moves_a_role),
        cmocka_unit_test(test_world_breaks_and_mends),
        cmocka_unit_test(test_world_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
