/*
 * What controllers see of a cluster: objects cut down to what deciders read, pods by namespace,
 * limits, owners, and what has to be asked for singly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/informers/informers.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/resourcelist.h"
#include "support/control_bed.h"

static const char deployment[] =
    "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'web'},'spec':{'replicas':2,"
    "'selector':{'matchLabels':{'app':'web'}},'template':{'metadata':{'labels':{'app':'web'},"
    "'annotations':{'vpaUpdates':'yes','other':'no'}},"
    "'spec':{'containers':[{'name':'app','image':'nginx','env':[{'name':'A','value':'b'}],"
    "'resources':{'requests':{'cpu':'100m'}}}]}}}}";

static const char definition[] =
    "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{'name':"
    "'games.play.dev'},'spec':{'group':'play.dev','scope':'Namespaced','names':{'plural':'games',"
    "'kind':'Game'},'versions':[{'name':'v1','served':true,'storage':true,'schema':{"
    "'openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'object','properties':{"
    "'replicas':{'type':'integer'}}},'status':{'type':'object','properties':{'replicas':{'type':"
    "'integer'},'selector':{'type':'string'}}}}}},'subresources':{'status':{},'scale':{"
    "'specReplicasPath':'.spec.replicas','statusReplicasPath':'.status.replicas',"
    "'labelSelectorPath':'.status.selector'}}}]}}";

struct informers_bed {
    struct control_bed c;
    struct td_informers *informers;
    int settled;
};

static void informers_bed_settled(void *context)
{
    (*(int *)context)++;
}

static void informers_bed_init(struct informers_bed *s)
{
    *s = (struct informers_bed){.informers = NULL};
    control_bed_init(&s->c);
    struct td_informers_options options = {.loop = s->c.bed.loop, .client = s->c.client, .seed = 1};
    for (size_t i = 0; i < TD_INFORMER_COUNT; i++) {
        options.wants[i] = true;
    }
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_informers_new(&options, &s->informers, &err), TD_OK);
    td_informers_on_settled(s->informers, informers_bed_settled, &s->settled);
    assert_false(td_informers_is_synced(s->informers));
    assert_int_equal(td_informers_age(s->informers), INT64_MAX);
    td_informers_start(s->informers);
    control_bed_run(&s->c, 2 * TD_SECOND);
    assert_true(td_informers_is_synced(s->informers));
}

static void informers_bed_done(struct informers_bed *s)
{
    td_informers_free(s->informers);
    control_bed_done(&s->c);
}

static size_t informers_bed_pods(const struct informers_bed *s, const char *ns)
{
    size_t count = 0;
    for (const struct td_informer_pod *pod = NULL;
         (pod = td_informers_next_pod(s->informers, td_str_from(ns), pod));) {
        count++;
    }
    return count;
}

static const char *pod_text(struct informers_bed *s, const struct td_informer_pod *pod)
{
    return td_informers_text(&s->c.bed.arena, &pod->object).ptr;
}

static void test_pods_are_cut_down_and_found_by_namespace(void **state)
{
    (void)state;
    struct informers_bed s;
    informers_bed_init(&s);
    control_bed_create(&s.c, "/apis/apps/v1/namespaces/default/deployments", deployment);
    control_bed_run(&s.c, 30 * TD_SECOND);
    assert_int_equal(informers_bed_pods(&s, "default"), 2);
    assert_int_equal(informers_bed_pods(&s, "elsewhere"), 0);
    const struct td_informer_pod *pod = td_informers_next_pod(s.informers, TD_STR("default"), NULL);
    assert_true(td_str_equal(pod->phase, TD_STR("Running")));
    assert_memory_equal(pod->node.ptr, "node-", 5);
    assert_true(pod->object.labels_hash == pod->next->object.labels_hash);
    assert_null(strstr(pod_text(&s, pod), "\"env\""));
    assert_null(strstr(pod_text(&s, pod), "\"other\""));
    assert_null(strstr(pod_text(&s, pod), "PodScheduled"));
    assert_non_null(strstr(pod_text(&s, pod), "\"vpaUpdates\""));
    assert_non_null(strstr(pod_text(&s, pod), "\"Ready\""));
    char target[128];
    (void)snprintf(target, sizeof(target), "/api/v1/namespaces/default/pods/%s",
                   pod->object.head.name.ptr);
    assert_null(strstr(pod_text(&s, pod), "managedFields")); /* it was never resized */
    char resize[160];
    (void)snprintf(resize, sizeof(resize), "%s/resize", target);
    assert_int_equal(control_bed_patch(&s.c, resize,
                                       "{'spec':{'containers':[{'name':'app','image':'nginx',"
                                       "'env':[{'name':'A','value':'b'}],'resources':{"
                                       "'requests':{'cpu':'123m'}}}]}}"),
                     200);
    td_time resized = td_clock_wall(&s.c.bed.clock);
    control_bed_run(&s.c, 30 * TD_SECOND);
    pod = td_cache_get(td_informers_cache(s.informers, TD_INFORMER_PODS), TD_STR("default"),
                       td_str_from(strrchr(target, '/') + 1));
    assert_non_null(strstr(pod_text(&s, pod), "\"managedFields\":[{\"subresource\":\"resize\""));
    struct td_json *tree;
    struct td_pod decoded;
    assert_int_equal(td_informers_tree(&s.c.bed.arena, &pod->object, &tree, NULL), TD_OK);
    assert_int_equal(td_pod_decode(&s.c.bed.arena, tree, &decoded, NULL), TD_OK);
    assert_true(resized - decoded.resized >= 0 && resized - decoded.resized <= TD_SECOND);
    uint64_t before = pod->object.labels_hash;
    assert_int_equal(control_bed_patch(&s.c, target, "{'metadata':{'labels':{'role':'leader'}}}"),
                     200);
    control_bed_run(&s.c, 30 * TD_SECOND);
    pod = td_informers_next_pod(s.informers, TD_STR("default"), NULL);
    assert_true(pod->object.labels_hash != before || pod->next->object.labels_hash != before);
    assert_int_equal(control_bed_delete(&s.c, "/apis/apps/v1/namespaces/default/deployments/web"),
                     200);
    control_bed_run(&s.c, TD_MINUTE);
    assert_int_equal(informers_bed_pods(&s, "default"), 0);
    assert_true(td_informers_age(s.informers) < 2 * TD_MINUTE);
    informers_bed_done(&s);
}

static void test_limits_follow_their_objects(void **state)
{
    (void)state;
    struct informers_bed s;
    informers_bed_init(&s);
    assert_null(td_informers_limits(s.informers, TD_STR("default")));
    control_bed_create(&s.c, "/api/v1/namespaces/default/limitranges",
                       "{'metadata':{'name':'b'},'spec':{'limits':[{'type':'Container','max':{"
                       "'cpu':'2'}}]}}");
    control_bed_run(&s.c, TD_SECOND);
    const struct td_limit_ranges *limits = td_informers_limits(s.informers, TD_STR("default"));
    assert_non_null(limits);
    assert_true(limits->container.is_set);
    assert_ptr_equal(td_informers_limits(s.informers, TD_STR("default")), limits);
    assert_null(td_informers_limits(s.informers, TD_STR("kube-system")));
    assert_int_equal(control_bed_delete(&s.c, "/api/v1/namespaces/default/limitranges/b"), 200);
    control_bed_run(&s.c, TD_SECOND);
    assert_null(td_informers_limits(s.informers, TD_STR("default")));
    informers_bed_done(&s);
}

/* Much of one resource alone makes no large node. */
static void test_the_largest_node_is_found(void **state)
{
    (void)state;
    static const char *const nodes[] = {
        "{'metadata':{'name':'wide'},'status':{'allocatable':{'cpu':'400','memory':'8Gi'}}}",
        "{'metadata':{'name':'deep'},'status':{'allocatable':{'cpu':'4','memory':'4000Gi'}}}",
        "{'metadata':{'name':'large'},'status':{'allocatable':{'cpu':'200','memory':'2000Gi'}}}",
        "{'metadata':{'name':'odd'},'status':{'allocatable':{'cpu':'500'}}}",
    };
    struct informers_bed s;
    informers_bed_init(&s);
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        control_bed_create(&s.c, "/api/v1/nodes", nodes[i]);
    }
    control_bed_run(&s.c, 2 * TD_MINUTE);
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    const struct td_resource_list *offered = td_informers_largest_node(s.informers, &arena);
    assert_non_null(offered);
    assert_int_equal(td_quantity_milli(td_resource_list_get(offered, TD_STR("cpu"))), 200000);
    assert_int_equal(td_quantity_value(td_resource_list_get(offered, TD_STR("memory"))),
                     INT64_C(2000) << 30);
    informers_bed_done(&s);
}

static void test_owners_are_walked_to_the_top(void **state)
{
    (void)state;
    struct informers_bed s;
    informers_bed_init(&s);
    control_bed_create(&s.c, "/apis/apps/v1/namespaces/default/deployments", deployment);
    control_bed_run(&s.c, 5 * TD_SECOND);
    const struct td_informer_pod *pod = td_informers_next_pod(s.informers, TD_STR("default"), NULL);
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct td_meta meta;
    struct td_controller owner;
    struct td_controller top;
    bool is_found;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_informers_tree(&arena, &pod->object, &tree, &err), TD_OK);
    assert_int_equal(td_meta_decode(&arena, tree, &meta, &err), TD_OK);
    assert_true(td_controller_of_pod(&meta, &owner));
    assert_int_equal(
        td_controller_top(td_informers_source(s.informers), &owner, &top, &is_found, &err), TD_OK);
    assert_true(is_found);
    assert_true(td_str_equal(top.kind, TD_STR("Deployment")));
    assert_true(td_str_equal(top.name, TD_STR("web")));
    informers_bed_done(&s);
}

static int informers_bed_selector(struct informers_bed *s, struct td_arena *arena,
                                  struct td_selector *ret, struct td_error *err)
{
    const struct td_controller target = {.namespace = TD_STR("default"),
                                         .api_version = TD_STR("play.dev/v1"),
                                         .kind = TD_STR("Game"),
                                         .name = TD_STR("chess")};
    return td_target_selector(arena, td_informers_source(s->informers), &target, ret, err);
}

static void test_kinds_and_scales_are_asked_for_and_remembered(void **state)
{
    (void)state;
    struct informers_bed s;
    informers_bed_init(&s);
    struct td_served_resource resource;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_informers_resource(s.informers, TD_STR("apps"), TD_STR("Deployment"), 0,
                                           &resource, &err),
                     TD_BUSY);
    control_bed_run(&s.c, TD_SECOND);
    assert_int_equal(s.settled, 1);
    assert_int_equal(td_informers_resource(s.informers, TD_STR("apps"), TD_STR("Deployment"), 0,
                                           &resource, &err),
                     TD_OK);
    assert_true(td_str_equal(resource.plural, TD_STR("deployments")));
    assert_true(td_str_equal(resource.version, TD_STR("v1")));
    assert_int_equal(td_informers_resource(s.informers, TD_STR(""), TD_STR("ReplicationController"),
                                           0, &resource, &err),
                     TD_OK);
    assert_int_equal(
        td_informers_resource(s.informers, TD_STR("play.dev"), TD_STR("Game"), 0, &resource, &err),
        TD_NOT_FOUND);
    assert_string_equal(err.message, "no matches for kind \"Game\" in group \"play.dev\"");
    control_bed_create(&s.c, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
    control_bed_run(&s.c, 31 * TD_SECOND);
    control_bed_create(&s.c, "/apis/play.dev/v1/namespaces/default/games",
                       "{'apiVersion':'play.dev/v1','kind':'Game','metadata':{'name':'chess'},"
                       "'spec':{'replicas':2}}");
    assert_int_equal(control_bed_patch(&s.c,
                                       "/apis/play.dev/v1/namespaces/default/games/chess/status",
                                       "{'status':{'replicas':2,'selector':'app=chess'}}"),
                     200);
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_selector selector;
    for (int i = 0; i < 2; i++) { /* discovery, then the scale */
        assert_int_equal(informers_bed_selector(&s, &arena, &selector, &err), TD_BUSY);
        control_bed_run(&s.c, TD_SECOND);
    }
    assert_int_equal(informers_bed_selector(&s, &arena, &selector, &err), TD_OK);
    assert_int_equal(selector.count, 1);
    assert_true(td_str_equal(selector.requirements[0].key, TD_STR("app")));
    int asked = s.settled;
    assert_int_equal(informers_bed_selector(&s, &arena, &selector, &err), TD_OK);
    control_bed_run(&s.c, TD_MINUTE);
    assert_int_equal(s.settled, asked);
    informers_bed_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_are_cut_down_and_found_by_namespace),
        cmocka_unit_test(test_limits_follow_their_objects),
        cmocka_unit_test(test_the_largest_node_is_found),
        cmocka_unit_test(test_owners_are_walked_to_the_top),
        cmocka_unit_test(test_kinds_and_scales_are_asked_for_and_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
