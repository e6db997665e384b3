/* Which node a pod gets, and what it is told when there is none. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "local/nodes/node_index.h"

#include "support/nodes_bed.h"

#define NODES "0/3 nodes are available: "
#define NO_CLAIMS " no new claims to deallocate, preemption: 0/3 nodes are available: "
#define HOPELESS NO_CLAIMS "3 Preemption is not helpful for scheduling."

/* Three nodes with labels, one of them tainted, one cordoned. */
static void furnish(struct nodes_bed *n)
{
    assert_int_equal(nodes_bed_patch(n, "/api/v1/nodes/node-1",
                                     "{'metadata':{'labels':{'zone':'a','size':'10'}}}"),
                     200);
    assert_int_equal(
        nodes_bed_patch(n, "/api/v1/nodes/node-2",
                        "{'metadata':{'labels':{'zone':'b','size':'20'}},'spec':{'taints':[{"
                        "'key':'team','value':'x','effect':'NoSchedule'}]}}"),
        200);
    assert_int_equal(nodes_bed_patch(n, "/api/v1/nodes/node-3",
                                     "{'metadata':{'labels':{'zone':'c'}},'spec':{"
                                     "'unschedulable':true}}"),
                     200);
}

#define AFFINITY(term)                                                                             \
    ",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"              \
    "'nodeSelectorTerms':[" term "]}}}"
#define EXPRESSION(key, operator, values)                                                          \
    AFFINITY("{'matchExpressions':[{'key':'" key "','operator':'" operator"'" values "}]}")

/* Selectors, affinity, taints and cordons; an empty node: it waits. */
static void test_scheduler_filters_nodes(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *node;
    } rows[] = {
        {"", "node-1"},
        {",'nodeSelector':{'zone':'a'}", "node-1"},
        {",'nodeSelector':{'zone':'b'}", ""},
        {",'nodeSelector':{'zone':'z'}", ""},
        {",'nodeSelector':{'kubernetes.io/hostname':'node-1'}", "node-1"},
        {",'nodeSelector':{'zone':'b'},'tolerations':[{'key':'team','operator':'Equal','value':"
         "'x','effect':'NoSchedule'}]",
         "node-2"},
        {",'nodeSelector':{'zone':'b'},'tolerations':[{'key':'team','value':'y'}]", ""},
        {",'nodeSelector':{'zone':'b'},'tolerations':[{'key':'team','operator':'Exists'}]",
         "node-2"},
        {",'nodeSelector':{'zone':'b'},'tolerations':[{'operator':'Exists','effect':"
         "'NoExecute'}]",
         ""},
        {",'nodeSelector':{'zone':'c'},'tolerations':[{'operator':'Exists'}]", "node-3"},
        {",'nodeSelector':{'zone':'c'},'tolerations':[{'key':'node.kubernetes.io/unschedulable',"
         "'operator':'Exists'}]",
         "node-3"},
        {EXPRESSION("zone", "In", ",'values':['a','z']"), "node-1"},
        {EXPRESSION("zone", "In", ",'values':['z']"), ""},
        {EXPRESSION("zone", "NotIn", ",'values':['a']"), ""},
        {EXPRESSION("none", "NotIn", ",'values':['a']"), "node-1"},
        {EXPRESSION("size", "Exists", ""), "node-1"},
        {EXPRESSION("size", "DoesNotExist", ""), ""},
        {EXPRESSION("size", "Gt", ",'values':['9']"), "node-1"},
        {EXPRESSION("size", "Gt", ",'values':['10']"), ""},
        {EXPRESSION("size", "Lt", ",'values':['11']"), "node-1"},
        {EXPRESSION("zone", "Lt", ",'values':['11']"), ""},
        {AFFINITY("{'matchFields':[{'key':'metadata.name','operator':'In','values':["
                  "'node-1']}]}"),
         "node-1"},
        {AFFINITY("{'matchFields':[{'key':'metadata.name','operator':'NotIn','values':["
                  "'node-1']}]}"),
         ""},
        {AFFINITY("{}"), ""},
        {AFFINITY("{},{'matchExpressions':[{'key':'zone','operator':'Exists'}]}"), "node-1"},
        {AFFINITY(""), ""},
        {",'schedulerName':'mine'", ""},
        {",'schedulingGates':[{'name':'g'}]", ""},
    };
    struct nodes_bed n;
    nodes_bed_init(&n, 3);
    furnish(&n);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "p-%zu", i);
        nodes_bed_put_pod(&n, name, "", rows[i].spec);
        bed_run(&n.bed, TD_MILLISECOND);
        assert_string_equal(nodes_bed_pod_text(&n, name, "spec.nodeName"), rows[i].node);
    }
    nodes_bed_done(&n);
}

/* Upstream's words, and the condition that carries them. */
static void test_scheduler_says_why_nothing_fits(void **state)
{
    (void)state;
    static const struct {
        const char *resources;
        const char *spec;
        const char *message;
    } rows[] = {
        {"'requests':{'cpu':'9'}", "", NODES "3 Insufficient cpu." HOPELESS},
        {"'requests':{'cpu':'9','memory':'33Gi'}", "",
         NODES "3 Insufficient cpu, 3 Insufficient memory." HOPELESS},
        {"'requests':{'example.com/gpu':'1'}", "",
         NODES "3 Insufficient example.com/gpu." HOPELESS},
        {"'requests':{'cpu':'1'}", ",'nodeSelector':{'zone':'z'}",
         NODES "3 node(s) didn't match Pod's node affinity/selector." HOPELESS},
        {"", ",'resources':{'requests':{'cpu':'8001m'}}", NODES "3 Insufficient cpu." HOPELESS},
        {"'requests':{'cpu':'5'}", "",
         NODES "3 Insufficient cpu." NO_CLAIMS "3 No preemption victims found for incoming pod."},
    };
    struct nodes_bed n;
    nodes_bed_init(&n, 3);
    for (int i = 0; i < 3; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "full-%d", i);
        nodes_bed_put_pod(&n, name, "'requests':{'cpu':'4'}", "");
    }
    bed_run(&n.bed, TD_MILLISECOND);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "p-%zu", i);
        nodes_bed_put_pod(&n, name, rows[i].resources, rows[i].spec);
        bed_run(&n.bed, TD_MILLISECOND);
        const struct td_json *pod = nodes_bed_pod(&n, name);
        assert_string_equal(edit_bed_condition(&n.bed, pod, "PodScheduled", "message"),
                            rows[i].message);
        assert_string_equal(edit_bed_condition(&n.bed, pod, "PodScheduled", "status"), "False");
        assert_string_equal(edit_bed_condition(&n.bed, pod, "PodScheduled", "reason"),
                            "Unschedulable");
        assert_string_equal(edit_bed_event(&n.bed, name, "FailedScheduling"), rows[i].message);
    }
    furnish(&n);
    nodes_bed_put_pod(&n, "mixed", "'requests':{'cpu':'5'}", "");
    bed_run(&n.bed, TD_MILLISECOND);
    assert_string_equal(
        edit_bed_condition(&n.bed, nodes_bed_pod(&n, "mixed"), "PodScheduled", "message"),
        NODES "1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 node(s) "
              "were unschedulable." NO_CLAIMS
              "1 No preemption victims found for incoming pod, 2 Preemption is not "
              "helpful for scheduling.");
    nodes_bed_done(&n);
}

/* Pods of one controller are spread; what is bound counts, by requests and by number. */
static void test_scheduler_spreads_and_fills(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 3);
    for (int i = 0; i < 9; i++) {
        char text[512];
        (void)snprintf(text, sizeof(text),
                       "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'s-%d','namespace':'n',"
                       "'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'r',"
                       "'uid':'u','controller':true}]},'spec':{'containers':[{'name':'a','image':"
                       "'i','resources':{'requests':{'cpu':'%dm'}}}]}}",
                       i, 100 + i * 200);
        edit_bed_put(&n.bed, text);
    }
    bed_run(&n.bed, TD_MILLISECOND);
    int counts[3] = {0};
    for (int i = 0; i < 9; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "s-%d", i);
        const char *node = nodes_bed_pod_text(&n, name, "spec.nodeName");
        assert_int_equal(strlen(node), strlen("node-1"));
        counts[node[5] - '1']++;
        assert_string_equal(nodes_bed_pod_text(&n, name, "metadata.generation"), "1");
        char want[64];
        (void)snprintf(want, sizeof(want), "Successfully assigned n/%s to %s", name, node);
        assert_string_equal(edit_bed_event(&n.bed, name, "Scheduled"), want);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(counts[i], 3);
    }
    for (int i = 0; i < 330; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "f-%d", i);
        nodes_bed_put_pod(&n, name, "", "");
    }
    bed_run(&n.bed, TD_MILLISECOND);
    int waiting = 0;
    for (int i = 0; i < 330; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "f-%d", i);
        waiting += nodes_bed_pod_text(&n, name, "spec.nodeName")[0] ? 0 : 1;
    }
    assert_int_equal(waiting, 9);
    assert_string_equal(
        edit_bed_condition(&n.bed, nodes_bed_pod(&n, "f-329"), "PodScheduled", "message"),
        NODES "3 Too many pods." NO_CLAIMS "3 No preemption victims found for incoming pod.");
    nodes_bed_done(&n);
}

static void delete_pod(struct nodes_bed *n, const char *name)
{
    assert_int_equal(td_edit_delete(n->bed.api, edit_bed_resource(&n->bed, "v1", "Pod"),
                                    TD_STR("n"), td_str_from(name), TD_STR_EMPTY, TD_STR_EMPTY, 0,
                                    NULL),
                     TD_OK);
}

/* Each thing that makes room lets a pod through that waited for it. */
static void test_scheduler_tries_again(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 1);
    nodes_bed_put_pod(&n, "big", "'requests':{'cpu':'8'}", "");
    bed_run(&n.bed, TD_MILLISECOND);
    static const char *const waiting[] = {"by-deletion", "by-node", "by-label", "by-uncordon",
                                          "by-end"};
    nodes_bed_put_pod(&n, waiting[0], "'requests':{'cpu':'8'}", "");
    bed_run(&n.bed, TD_MILLISECOND);
    assert_string_equal(nodes_bed_pod_text(&n, waiting[0], "spec.nodeName"), "");
    delete_pod(&n, "big");
    bed_run(&n.bed, 2 * TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(&n, waiting[0], "spec.nodeName"), "node-1");
    nodes_bed_put_pod(&n, waiting[1], "'requests':{'cpu':'2'}", "");
    nodes_bed_put_pod(&n, waiting[2], "", ",'nodeSelector':{'fast':'yes'}");
    bed_run(&n.bed, TD_MILLISECOND);
    edit_bed_put(&n.bed, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'other'},'status':{"
                         "'allocatable':{'cpu':'2','memory':'1Gi','pods':'10'},'conditions':[{"
                         "'type':'Ready','status':'True'}]}}");
    bed_run(&n.bed, 2 * TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(&n, waiting[1], "spec.nodeName"), "other");
    assert_string_equal(nodes_bed_pod_text(&n, waiting[1], "status.startTime"), "");
    assert_int_equal(
        nodes_bed_patch(&n, "/api/v1/nodes/node-1", "{'metadata':{'labels':{'fast':'yes'}}}"), 200);
    bed_run(&n.bed, 2 * TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(&n, waiting[2], "spec.nodeName"), "node-1");
    delete_pod(&n, waiting[0]);
    assert_int_equal(nodes_bed_patch(&n, "/api/v1/nodes/node-1", "{'spec':{'unschedulable':true}}"),
                     200);
    nodes_bed_put_pod(&n, waiting[3], "'requests':{'cpu':'8'}", ",'restartPolicy':'Never'");
    bed_run(&n.bed, 2 * TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(&n, waiting[3], "spec.nodeName"), "");
    assert_int_equal(nodes_bed_patch(&n, "/api/v1/nodes/node-1", "{'spec':{'unschedulable':null}}"),
                     200);
    nodes_bed_put_pod(&n, waiting[4], "'requests':{'cpu':'8'}", "");
    bed_run(&n.bed, 2 * TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(&n, waiting[3], "spec.nodeName"), "node-1");
    assert_string_equal(nodes_bed_pod_text(&n, waiting[4], "spec.nodeName"), "");
    bed_run(&n.bed, 8 * TD_SECOND); /* the other one ends */
    assert_string_equal(nodes_bed_pod_text(&n, waiting[4], "spec.nodeName"), "node-1");
    nodes_bed_done(&n);
}

/* Without a node of our own pods are left to another scheduler. */
static void test_scheduler_rests_without_own_nodes(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 0);
    edit_bed_put(&n.bed, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'kwok'},'status':{"
                         "'allocatable':{'cpu':'2','memory':'1Gi','pods':'10'},'conditions':[{"
                         "'type':'Ready','status':'True'}]}}");
    nodes_bed_put_pod(&n, "p", "", "");
    nodes_bed_put_pod(&n, "q", "'requests':{'cpu':'1'}", ",'nodeName':'kwok'");
    bed_run(&n.bed, TD_MINUTE);
    assert_string_equal(nodes_bed_pod_text(&n, "p", "spec.nodeName"), "");
    assert_null(td_json_get_path(nodes_bed_pod(&n, "p"), "status.conditions"));
    assert_string_equal(nodes_bed_pod_text(&n, "q", "status.phase"), "Pending");
    /* A node that a user makes for us is one of ours. */
    edit_bed_put(&n.bed, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'mine','annotations':"
                         "{'tandem.dev/kubelet':'local'}},'status':{'capacity':{'cpu':'64','memory'"
                         ":'1Gi','pods':'10'}}}");
    bed_run(&n.bed, 3 * TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(&n, "p", "spec.nodeName"), "mine");
    assert_string_equal(nodes_bed_pod_text(&n, "p", "status.phase"), "Running");
    const struct td_json *node = edit_bed_get(&n.bed, "v1", "Node", "", "mine");
    assert_string_equal(edit_bed_condition(&n.bed, node, "Ready", "status"), "True");
    assert_string_equal(edit_bed_text(&n.bed, node, "status.allocatable.cpu"), "64");
    nodes_bed_done(&n);
}

/* What a pod asks for as a whole: sums, the largest start, sidecars, overhead, its own word. */
static void test_scheduler_counts_what_a_pod_asks_for(void **state)
{
    (void)state;
#define ASKS(cpu, memory) "'resources':{'requests':{'cpu':'" cpu "','memory':'" memory "'}}"
#define TWO "'containers':[{'name':'a'," ASKS("1", "1Gi") "},{'name':'b'," ASKS("500m", "1Gi") "}]"
    static const struct {
        const char *spec;
        int64_t cpu;
        int64_t memory_mi;
    } rows[] = {
        {"'containers':[{'name':'a'}]", 0, 0},
        {TWO, 1500, 2048},
        {TWO ",'overhead':{'cpu':'250m','memory':'64Mi'}", 1750, 2112},
        {TWO ",'initContainers':[{'name':'i'," ASKS("4", "1Gi") "}]", 4000, 2048},
        {TWO
         ",'initContainers':[{'name':'i'," ASKS("1", "1Gi") "},{'name':'j'," ASKS("1", "3Gi") "}]",
         1500, 3072},
        {TWO ",'initContainers':[{'name':'s','restartPolicy':'Always'," ASKS("1", "1Gi") "}]", 2500,
         3072},
        /* An init container runs beside the sidecars before it. */
        {TWO ",'initContainers':[{'name':'s','restartPolicy':'Always'," ASKS(
             "1", "1Gi") "},{'name':'i'," ASKS("2", "1Gi") "}]",
         3000, 3072},
        {TWO ",'initContainers':[{'name':'i'," ASKS(
             "2", "1Gi") "},{'name':'s','restartPolicy':'Always'," ASKS("1", "1Gi") "}]",
         2500, 3072},
        {TWO "," ASKS("5", "512Mi"), 5000, 512},
        {TWO ",'resources':{'requests':{'cpu':'5'}}", 5000, 2048},
        {TWO "," ASKS("5", "512Mi") ",'overhead':{'cpu':'250m'}", 5250, 512},
    };
    struct bed bed;
    bed_init(&bed);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[2048];
        (void)snprintf(text, sizeof(text),
                       "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},'spec':{%s}}",
                       rows[i].spec);
        struct td_node_amount *asked;
        size_t count;
        assert_int_equal(
            td_pod_amounts(&bed.arena, edit_bed_parse(&bed, text), false, &asked, &count), TD_OK);
        int64_t cpu = 0;
        int64_t memory = 0;
        for (size_t j = 0; j < count; j++) {
            cpu += td_str_equal(asked[j].name, TD_STR("cpu")) ? asked[j].value : 0;
            memory += td_str_equal(asked[j].name, TD_STR("memory")) ? asked[j].value : 0;
        }
        if (cpu != rows[i].cpu || memory != rows[i].memory_mi << 20) {
            fail_msg("row %zu: %lld and %lldMi", i, (long long)cpu, (long long)memory >> 20);
        }
    }
    bed_done(&bed);
#undef ASKS
#undef TWO
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scheduler_filters_nodes),
        cmocka_unit_test(test_scheduler_says_why_nothing_fits),
        cmocka_unit_test(test_scheduler_spreads_and_fills),
        cmocka_unit_test(test_scheduler_tries_again),
        cmocka_unit_test(test_scheduler_rests_without_own_nodes),
        cmocka_unit_test(test_scheduler_counts_what_a_pod_asks_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
