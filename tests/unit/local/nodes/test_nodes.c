/* Nodes of our own: what they look like, that they stay ready, and what becomes of their pods. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/timefmt.h"

#include "support/nodes_bed.h"

static size_t count_nodes(struct nodes_bed *n)
{
    return td_collection_count(td_store_find(n->bed.store, TD_STR("nodes")), TD_STR_EMPTY);
}

/* As many as asked for, complete. */
static void test_nodes_are_made(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 3);
    assert_int_equal(count_nodes(&n), 3);
    static const struct {
        const char *path;
        const char *text;
    } rows[] = {
        {"status.capacity.cpu", "8"},
        {"status.capacity.memory", "32Gi"},
        {"status.allocatable.cpu", "8"},
        {"status.allocatable.memory", "32Gi"},
        {"status.allocatable.pods", "110"},
        {"status.nodeInfo.architecture", "amd64"},
        {"status.nodeInfo.operatingSystem", "linux"},
    };
    const struct td_json *node = edit_bed_get(&n.bed, "v1", "Node", "", "node-2");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(edit_bed_text(&n.bed, node, rows[i].path), rows[i].text);
    }
    const struct td_json *labels = td_json_get_path(node, "metadata.labels");
    assert_true(td_str_equal(
        td_json_get_str(labels, TD_STR("kubernetes.io/hostname"), TD_STR_EMPTY), TD_STR("node-2")));
    assert_true(td_str_equal(td_json_get_str(labels, TD_STR("kubernetes.io/os"), TD_STR_EMPTY),
                             TD_STR("linux")));
    assert_string_equal(edit_bed_condition(&n.bed, node, "Ready", "reason"), "KubeletReady");
    nodes_bed_done(&n);
}

/* Leases are renewed every ten seconds, conditions every five minutes, and a node that a client
 * calls not ready says otherwise. */
static void test_nodes_stay_ready(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 1);
    const struct td_json *lease;
    static const struct {
        int seconds;
        const char *renewed;
    } rows[] = {{0, "2023-11-14T22:13:20.000000Z"},
                {10, "2023-11-14T22:13:30.000000Z"},
                {25, "2023-11-14T22:13:50.000000Z"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_run(&n.bed, rows[i].seconds * TD_SECOND);
        lease =
            edit_bed_get(&n.bed, "coordination.k8s.io/v1", "Lease", "kube-node-lease", "node-1");
        assert_string_equal(edit_bed_text(&n.bed, lease, "spec.renewTime"), rows[i].renewed);
        assert_string_equal(edit_bed_text(&n.bed, lease, "spec.holderIdentity"), "node-1");
        assert_string_equal(edit_bed_text(&n.bed, lease, "spec.leaseDurationSeconds"), "40");
    }
    assert_int_equal(nodes_bed_patch(&n, "/api/v1/nodes/node-1/status",
                                     "{'status':{'conditions':[{'type':'Ready','status':'Unknown'"
                                     "}]}}"),
                     200);
    const struct td_json *node = edit_bed_get(&n.bed, "v1", "Node", "", "node-1");
    assert_string_equal(edit_bed_condition(&n.bed, node, "Ready", "status"), "True");
    bed_run(&n.bed, 5 * TD_MINUTE);
    node = edit_bed_get(&n.bed, "v1", "Node", "", "node-1");
    assert_string_equal(edit_bed_condition(&n.bed, node, "Ready", "lastHeartbeatTime"),
                        "2023-11-14T22:18:20Z");
    nodes_bed_done(&n);
}

/* What others write into a lease stays in it, whatever its form, and it is renewed all the same. */
static void test_leases_that_others_touch_are_renewed(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 1);
    edit_bed_put(&n.bed,
                 "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'kube-node-lease'}}");
    static const struct {
        const char *patch;
        const char *path;
        const char *text;
    } rows[] = {
        {"{'metadata':{'labels':{'a':'b'}}}", "metadata.labels.a", "b"},
        {"{'metadata':{'annotations':{'renewTime':'x','resourceVersion':'y'}}}",
         "metadata.annotations.renewTime", "x"},
        {"{'metadata':{'annotations':{'q':'\\'renewTime\\':\\'2023'}}}", "metadata.labels.a", "b"},
        {"{'spec':{'renewTime':null}}", "metadata.labels.a", "b"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(
            nodes_bed_patch(&n,
                            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1",
                            rows[i].patch),
            200);
        bed_run(&n.bed, TD_MINUTE);
        const struct td_json *lease =
            edit_bed_get(&n.bed, "coordination.k8s.io/v1", "Lease", "kube-node-lease", "node-1");
        char renewed[TD_TIME_TEXT_BYTES];
        td_time now = td_clock_wall(&n.bed.clock);
        size_t bytes = td_time_format(td_time_to_instant(now - now % (10 * TD_SECOND)), 6, renewed);
        assert_string_equal(edit_bed_text(&n.bed, lease, "spec.renewTime"), renewed);
        assert_int_equal(bytes, 27);
        assert_string_equal(edit_bed_text(&n.bed, lease, rows[i].path), rows[i].text);
        assert_string_equal(edit_bed_text(&n.bed, lease, "spec.holderIdentity"), "node-1");
    }
    assert_int_equal(td_edit_delete(n.bed.api,
                                    edit_bed_resource(&n.bed, "coordination.k8s.io/v1", "Lease"),
                                    TD_STR("kube-node-lease"), TD_STR("node-1"), TD_STR_EMPTY,
                                    TD_STR_EMPTY, -1, NULL),
                     TD_OK);
    bed_run(&n.bed, 10 * TD_SECOND);
    assert_non_null(
        edit_bed_get(&n.bed, "coordination.k8s.io/v1", "Lease", "kube-node-lease", "node-1"));
    nodes_bed_done(&n);
}

/* Versions of a lease grow in length: its other texts stay where they are. */
static void test_leases_survive_many_renewals(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 3);
    bed_run(&n.bed, 2 * TD_HOUR);
    for (size_t i = 1; i <= 3; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "node-%zu", i);
        const struct td_json *lease =
            edit_bed_get(&n.bed, "coordination.k8s.io/v1", "Lease", "kube-node-lease", name);
        assert_string_equal(edit_bed_text(&n.bed, lease, "spec.renewTime"),
                            "2023-11-15T00:13:20.000000Z");
        assert_string_equal(edit_bed_text(&n.bed, lease, "metadata.name"), name);
        assert_string_equal(edit_bed_text(&n.bed, lease, "spec.leaseDurationSeconds"), "40");
        const struct td_stored *stored =
            td_collection_get(td_store_find(n.bed.store, TD_STR("leases.coordination.k8s.io")),
                              TD_STR("kube-node-lease"), td_str_from(name));
        char version[24];
        (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)stored->version);
        assert_string_equal(edit_bed_text(&n.bed, lease, "metadata.resourceVersion"), version);
    }
    nodes_bed_done(&n);
}

/* Pods of a node that was deleted go when it stays away for 40 s; of one that comes back not. */
static void test_pods_of_a_deleted_node_go(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 2);
    nodes_bed_put_pod(&n, "a", "", ",'nodeName':'node-1'");
    nodes_bed_put_pod(&n, "b", "", ",'nodeName':'node-2'");
    nodes_bed_put_pod(&n, "c", "", ",'nodeName':'never'");
    bed_run(&n.bed, 2 * TD_SECOND);
    const struct td_resource *nodes = edit_bed_resource(&n.bed, "v1", "Node");
    for (int i = 1; i <= 2; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "node-%d", i);
        assert_int_equal(td_edit_delete(n.bed.api, nodes, TD_STR_EMPTY, td_str_from(name),
                                        TD_STR_EMPTY, TD_STR("Background"), -1, NULL),
                         TD_OK);
    }
    bed_run(&n.bed, 39 * TD_SECOND);
    assert_non_null(nodes_bed_pod(&n, "a"));
    edit_bed_put(&n.bed, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'node-2',"
                         "'annotations':{'tandem.dev/kubelet':'local'}}}");
    bed_run(&n.bed, 2 * TD_SECOND);
    assert_null(nodes_bed_pod(&n, "a"));
    assert_string_equal(nodes_bed_pod_text(&n, "b", "status.phase"), "Running");
    assert_string_equal(nodes_bed_pod_text(&n, "c", "status.phase"), "Pending");
    nodes_bed_done(&n);
}

/* A cluster that is started again with fewer nodes has fewer; with the same, the same ones. */
static void test_nodes_of_the_last_run_are_kept(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 3);
    nodes_bed_put_pod(&n, "p", "", ",'nodeName':'node-1'");
    bed_run(&n.bed, 2 * TD_SECOND);
    const char *uid =
        edit_bed_text(&n.bed, edit_bed_get(&n.bed, "v1", "Node", "", "node-1"), "metadata.uid");
    const char *version = nodes_bed_pod_text(&n, "p", "metadata.resourceVersion");
    static const size_t counts[] = {3, 1, 2, 0};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        td_nodes_free(n.nodes);
        const struct td_node_size size = td_node_size_usual((int64_t)counts[i]);
        const struct td_nodes_options options = {.api = n.bed.api, .sizes = &size, .size_count = 1};
        assert_int_equal(td_nodes_new(&options, &n.nodes, NULL), TD_OK);
        bed_run(&n.bed, 2 * TD_SECOND);
        assert_int_equal(count_nodes(&n), counts[i]);
        if (counts[i] > 0) {
            const struct td_json *node = edit_bed_get(&n.bed, "v1", "Node", "", "node-1");
            assert_string_equal(edit_bed_text(&n.bed, node, "metadata.uid"), uid);
            assert_string_equal(nodes_bed_pod_text(&n, "p", "metadata.resourceVersion"), version);
        }
    }
    nodes_bed_put_pod(&n, "q", "", "");
    td_nodes_free(n.nodes);
    const struct td_node_size single = td_node_size_usual(1);
    const struct td_nodes_options one = {.api = n.bed.api, .sizes = &single, .size_count = 1};
    assert_int_equal(td_nodes_new(&one, &n.nodes, NULL), TD_OK);
    bed_run(&n.bed, 2 * TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(&n, "q", "status.podIP"), "10.128.0.2");
    struct td_error err = TD_ERROR_INIT;
    struct td_nodes *none = NULL;
    const struct td_node_size crowd = td_node_size_usual(5001);
    const struct td_nodes_options many = {.api = n.bed.api, .sizes = &crowd, .size_count = 1};
    assert_int_equal(td_nodes_new(&many, &none, &err), TD_LIMIT);
    assert_string_equal(err.message, "5001 nodes: at most 5000 are supported");
    nodes_bed_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_are_made),
        cmocka_unit_test(test_nodes_stay_ready),
        cmocka_unit_test(test_leases_that_others_touch_are_renewed),
        cmocka_unit_test(test_leases_survive_many_renewals),
        cmocka_unit_test(test_pods_of_a_deleted_node_go),
        cmocka_unit_test(test_nodes_of_the_last_run_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
