/* What a disruption budget says it allows, as upstream's controller counts it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "local/controllers/disruption.h"
#include "local/kinds/crds.h"
#include "support/edit_bed.h"

struct fixture {
    struct bed bed;
    struct td_crds *crds;
    struct td_disruption *disruption;
};

static int setup(void **state)
{
    struct fixture *f = td_alloc_zero(1, sizeof(*f));
    bed_init(&f->bed);
    assert_int_equal(td_crds_new(f->bed.api, NULL, &f->crds, NULL), TD_OK);
    f->disruption = td_disruption_new(f->bed.api, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    td_disruption_free(f->disruption);
    td_crds_free(f->crds);
    bed_done(&f->bed);
    td_free(f);
    return 0;
}

/* The uid of a stored object; "" when there is none. */
static const char *uid_of(struct fixture *f, const char *api_version, const char *kind,
                          const char *name)
{
    return edit_bed_text(&f->bed, edit_bed_get(&f->bed, api_version, kind, "n", name),
                         "metadata.uid");
}

static void put_pod(struct fixture *f, int number, bool is_ready, const char *api_version,
                    const char *kind, const char *owner)
{
    char text[1024];
    char reference[512] = "";
    if (owner) {
        (void)snprintf(reference, sizeof(reference),
                       ",'ownerReferences':[{'apiVersion':'%s','kind':'%s','name':'%s','uid':'%s',"
                       "'controller':true}]",
                       api_version, kind, owner, uid_of(f, api_version, kind, owner));
    }
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p-%d','namespace':'n',"
                   "'labels':{'app':'web'}%s},'spec':{},'status':{'phase':'Running','conditions':[{"
                   "'type':'Ready','status':'%s'}]}}",
                   number, reference, is_ready ? "True" : "False");
    edit_bed_put(&f->bed, text);
}

static void put_budget(struct fixture *f, const char *bound)
{
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'name':'b',"
                   "'namespace':'n'},'spec':{'selector':{'matchLabels':{'app':'web'}},%s}}",
                   bound);
    edit_bed_put(&f->bed, text);
    bed_run(&f->bed, 10 * TD_MILLISECOND);
}

static void check_numbers(struct fixture *f, const char *want)
{
    const struct td_json *b = edit_bed_get(&f->bed, "policy/v1", "PodDisruptionBudget", "n", "b");
    char got[128];
    (void)snprintf(got, sizeof(got), "%s/%s/%s/%s %s",
                   edit_bed_text(&f->bed, b, "status.expectedPods"),
                   edit_bed_text(&f->bed, b, "status.currentHealthy"),
                   edit_bed_text(&f->bed, b, "status.desiredHealthy"),
                   edit_bed_text(&f->bed, b, "status.disruptionsAllowed"),
                   edit_bed_condition(&f->bed, b, "DisruptionAllowed", "reason"));
    assert_string_equal(got, want);
    assert_string_equal(edit_bed_text(&f->bed, b, "status.observedGeneration"),
                        edit_bed_text(&f->bed, b, "metadata.generation"));
}

/* A ReplicaSet of a Deployment with that many replicas wanted. */
static void put_deployment(struct fixture *f, int replicas)
{
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'web',"
                   "'namespace':'n'},'spec':{'replicas':%d}}",
                   replicas);
    edit_bed_put(&f->bed, text);
    for (int i = 0; i < 2; i++) { /* two sets, as in a rollout: the Deployment counts once */
        (void)snprintf(text, sizeof(text),
                       "{'apiVersion':'apps/v1','kind':'ReplicaSet','metadata':{'name':'web-%d',"
                       "'namespace':'n','ownerReferences':[{'apiVersion':'apps/v1','kind':"
                       "'Deployment','name':'web','uid':'%s','controller':true}]},'spec':{"
                       "'replicas':77}}",
                       i, uid_of(f, "apps/v1", "Deployment", "web"));
        edit_bed_put(&f->bed, text);
    }
}

/* Expected, healthy, desired, allowed and the reason, for each way to say a bound. */
static void test_budget_counts_pods_of_a_deployment(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *bound;
        int replicas;
        int ready;
        int unready;
        const char *want;
    } rows[] = {
        {"'minAvailable':1", 3, 3, 0, "3/3/1/2 SufficientPods"},
        {"'minAvailable':3", 3, 3, 0, "3/3/3/0 InsufficientPods"},
        {"'minAvailable':5", 3, 3, 0, "3/3/5/0 InsufficientPods"},
        {"'minAvailable':0", 3, 3, 0, "3/3/0/3 SufficientPods"},
        {"'minAvailable':1", 3, 0, 0, "0/0/1/0 InsufficientPods"},
        {"'minAvailable':0", 3, 0, 0, "0/0/0/0 InsufficientPods"},
        {"'minAvailable':'50%'", 3, 3, 0, "3/3/2/1 SufficientPods"},
        {"'minAvailable':'50%'", 4, 3, 0, "4/3/2/1 SufficientPods"},
        {"'minAvailable':'100%'", 4, 3, 1, "4/3/4/0 InsufficientPods"},
        {"'maxUnavailable':1", 4, 4, 0, "4/4/3/1 SufficientPods"},
        {"'maxUnavailable':1", 4, 3, 1, "4/3/3/0 InsufficientPods"},
        {"'maxUnavailable':0", 4, 4, 0, "4/4/4/0 InsufficientPods"},
        {"'maxUnavailable':9", 4, 4, 0, "4/4/0/4 SufficientPods"},
        {"'maxUnavailable':'30%'", 4, 4, 0, "4/4/2/2 SufficientPods"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        put_deployment(f, rows[i].replicas);
        put_budget(f, rows[i].bound);
        for (int p = 0; p < rows[i].ready + rows[i].unready; p++) {
            put_pod(f, p, p < rows[i].ready, "apps/v1", "ReplicaSet", p % 2 ? "web-0" : "web-1");
        }
        bed_run(&f->bed, 10 * TD_MILLISECOND);
        check_numbers(f, rows[i].want);
        for (int p = 0; p < rows[i].ready + rows[i].unready; p++) {
            char name[16];
            (void)snprintf(name, sizeof(name), "p-%d", p);
            assert_int_equal(td_edit_delete(f->bed.api, edit_bed_resource(&f->bed, "v1", "Pod"),
                                            TD_STR("n"), td_str_from(name), TD_STR_EMPTY,
                                            TD_STR_EMPTY, 0, NULL),
                             TD_OK);
        }
        bed_run(&f->bed, 10 * TD_MILLISECOND);
    }
}

/* Other controllers: sets without a Deployment, the old kind, a custom one with a scale, and those
 * that cannot be asked. */
static void test_budget_finds_the_scale_of_controllers(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *object;
        const char *api_version;
        const char *kind;
        const char *want; /* numbers, or the message of SyncFailed */
    } rows[] = {
        {"{'apiVersion':'apps/v1','kind':'ReplicaSet','metadata':{'name':'o','namespace':'n'},"
         "'spec':{'replicas':4}}",
         "apps/v1", "ReplicaSet", "4/1/2/0 InsufficientPods"},
        {"{'apiVersion':'apps/v1','kind':'StatefulSet','metadata':{'name':'o','namespace':'n'},"
         "'spec':{'replicas':1}}",
         "apps/v1", "StatefulSet", "1/1/1/0 InsufficientPods"},
        {"{'apiVersion':'v1','kind':'ReplicationController','metadata':{'name':'o','namespace':"
         "'n'},'spec':{'replicas':2}}",
         "v1", "ReplicationController", "2/1/1/0 InsufficientPods"},
        {"{'apiVersion':'example.com/v1','kind':'Widget','metadata':{'name':'o','namespace':"
         "'n'},'spec':{'size':2}}",
         "example.com/v1", "Widget", "2/1/1/0 InsufficientPods"},
        {"{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'o','namespace':'n'},"
         "'spec':{}}",
         "batch/v1", "Job", "jobs.batch does not implement the scale subresource"},
    };
    edit_bed_put(&f->bed,
                 "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition',"
                 "'metadata':{'name':'widgets.example.com'},'spec':{'group':'example.com',"
                 "'scope':'Namespaced','names':{'plural':'widgets','singular':'widget','kind':"
                 "'Widget','listKind':'WidgetList'},'versions':[{'name':'v1','served':true,"
                 "'storage':true,'subresources':{'scale':{'specReplicasPath':'.spec.size',"
                 "'statusReplicasPath':'.status.size'}},'schema':{'openAPIV3Schema':{'type':"
                 "'object','x-kubernetes-preserve-unknown-fields':true}}}]}}");
    bed_run(&f->bed, 10 * TD_MILLISECOND);
    put_budget(f, "'minAvailable':'50%'");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        edit_bed_put(&f->bed, rows[i].object);
        put_pod(f, 0, true, rows[i].api_version, rows[i].kind, "o");
        bed_run(&f->bed, 10 * TD_MILLISECOND);
        const struct td_json *b =
            edit_bed_get(&f->bed, "policy/v1", "PodDisruptionBudget", "n", "b");
        if (strstr(rows[i].want, "/")) {
            check_numbers(f, rows[i].want);
        } else {
            assert_string_equal(edit_bed_condition(&f->bed, b, "DisruptionAllowed", "reason"),
                                "SyncFailed");
            assert_string_equal(edit_bed_condition(&f->bed, b, "DisruptionAllowed", "message"),
                                rows[i].want);
        }
    }
    /* A controller that is not there any more. */
    (void)td_edit_delete(f->bed.api, edit_bed_resource(&f->bed, "apps/v1", "ReplicaSet"),
                         TD_STR("n"), TD_STR("o"), TD_STR_EMPTY, TD_STR("Orphan"), 0, NULL);
    put_pod(f, 1, true, "apps/v1", "ReplicaSet", "missing");
    put_pod(f, 0, true, NULL, NULL, NULL);
    bed_run(&f->bed, 10 * TD_MILLISECOND);
    const struct td_json *b = edit_bed_get(&f->bed, "policy/v1", "PodDisruptionBudget", "n", "b");
    assert_string_equal(edit_bed_condition(&f->bed, b, "DisruptionAllowed", "message"),
                        "found no controllers for pod \"p-1\"");
    assert_string_equal(edit_bed_text(&f->bed, b, "status.disruptionsAllowed"), "0");
}

/* An eviction is spent at once, counts while the pod is still there, and is forgotten after two
 * minutes. */
static void test_budget_remembers_evictions_for_two_minutes(void **state)
{
    struct fixture *f = *state;
    struct bed_answer answer;
    bed_answer_init(&answer);
    put_budget(f, "'minAvailable':2");
    for (int i = 0; i < 3; i++) {
        put_pod(f, i, true, NULL, NULL, NULL);
    }
    bed_run(&f->bed, 10 * TD_MILLISECOND);
    check_numbers(f, "3/3/2/1 SufficientPods");
    /* What the eviction writes, for a pod that then is not deleted. */
    edit_bed_put(&f->bed, "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{"
                          "'name':'b','namespace':'n'},'spec':{'selector':{'matchLabels':{'app':"
                          "'web'}},'minAvailable':2},'status':{'disruptionsAllowed':0,"
                          "'observedGeneration':1,'disruptedPods':{'p-1':'2023-11-14T22:13:20Z',"
                          "'gone':'2023-11-14T22:13:20Z'}}}");
    bed_run(&f->bed, 10 * TD_MILLISECOND);
    check_numbers(f, "3/2/2/0 InsufficientPods");
    const struct td_json *b = edit_bed_get(&f->bed, "policy/v1", "PodDisruptionBudget", "n", "b");
    assert_int_equal(td_json_get_path(b, "status.disruptedPods")->count, 1);
    bed_run(&f->bed, 119 * TD_SECOND);
    check_numbers(f, "3/2/2/0 InsufficientPods");
    bed_run(&f->bed, 2 * TD_SECOND);
    check_numbers(f, "3/3/2/1 SufficientPods");
    b = edit_bed_get(&f->bed, "policy/v1", "PodDisruptionBudget", "n", "b");
    assert_null(td_json_get_path(b, "status.disruptedPods"));
    assert_string_equal(edit_bed_event(&f->bed, "p-1", "NotDeleted"),
                        "Pod was expected by PDB n/b to be deleted but it wasn't");
    /* Through the door that evictions come in by. */
    assert_int_equal(bed_call(&f->bed, "POST", "/api/v1/namespaces/n/pods/p-0/eviction",
                              "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                              "\"name\":\"p-0\"}}",
                              &answer),
                     201);
    bed_run(&f->bed, 10 * TD_MILLISECOND);
    check_numbers(f, "2/2/2/0 InsufficientPods");
    assert_int_equal(bed_call(&f->bed, "POST", "/api/v1/namespaces/n/pods/p-1/eviction",
                              "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                              "\"name\":\"p-1\"}}",
                              &answer),
                     429);
    bed_answer_done(&answer);
}

/* Pods without a controller cannot be expected: said once, with the selector, and the refusal of an
 * eviction does not blame numbers that are in order. */
static void test_budget_warns_of_pods_without_controller(void **state)
{
    struct fixture *f = *state;
    put_pod(f, 0, true, NULL, NULL, NULL);
    put_budget(f, "'maxUnavailable':1");
    check_numbers(f, "0/1/0/0 InsufficientPods");
    const char *text = edit_bed_event(&f->bed, "b", "UnmanagedPods");
    assert_non_null(strstr(text, "(selector: &LabelSelector{MatchLabels:map[string]string{"));
    assert_non_null(strstr(text, "},MatchExpressions:[]LabelSelectorRequirement{},})"));
    struct bed_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(bed_call(&f->bed, "POST", "/api/v1/namespaces/n/pods/p-0/eviction",
                              "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                              "\"name\":\"p-0\"}}",
                              &answer),
                     429);
    assert_non_null(strstr(td_arena_copy_str(&f->bed.arena, td_buf_str(&answer.body)).ptr,
                           "The disruption budget b does not allow evicting pods currently\""));
    bed_answer_done(&answer);
}

/* A new selector is a new set of pods; pods whose labels change come and go. */
static void test_budget_follows_labels(void **state)
{
    struct fixture *f = *state;
    put_budget(f, "'minAvailable':0");
    assert_string_equal(edit_bed_event(&f->bed, "b", "NoPods"), "No matching pods found");
    put_pod(f, 0, true, NULL, NULL, NULL);
    put_pod(f, 1, true, NULL, NULL, NULL);
    bed_run(&f->bed, 10 * TD_MILLISECOND);
    check_numbers(f, "2/2/0/2 SufficientPods");
    edit_bed_put(&f->bed, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p-1','namespace':"
                          "'n','labels':{'app':'other'}},'spec':{}}");
    bed_run(&f->bed, 10 * TD_MILLISECOND);
    check_numbers(f, "1/1/0/1 SufficientPods");
    edit_bed_put(&f->bed, "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{"
                          "'name':'b','namespace':'n'},'spec':{'selector':{},'minAvailable':0}}");
    bed_run(&f->bed, 10 * TD_MILLISECOND);
    check_numbers(f, "2/1/0/1 SufficientPods");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_budget_counts_pods_of_a_deployment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_budget_finds_the_scale_of_controllers, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_budget_remembers_evictions_for_two_minutes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_budget_warns_of_pods_without_controller, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_budget_follows_labels, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
