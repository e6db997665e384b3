/*
 * Never: a write of `tandem run --shadow` that is not its own. Pods that are all wrong, killed for
 * want of memory, checkpoints whose VPA is gone: what every other controller would act on, for
 * hours. Every call that is no GET is looked at, and what is stored of others stays as it was.
 */
#include "never_bed.h"

#include "api/vpa/vpa.h"

#define CRDS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define SHADOWS                                                                                    \
    "/apis/" TD_SHADOW_GROUP "/" TD_SHADOW_VERSION "/namespaces/default/" TD_SHADOW_PLURAL
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
#define CHECKPOINTS                                                                                \
    "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalercheckpoints"

static size_t shadow_writes;
static size_t other_writes;
static char other_path[512];

static void shadow_look(struct never_bed *n, const struct td_call_request *request)
{
    (void)n;
    bool is_shadow = td_str_starts_with(request->path, TD_STR(SHADOWS "/")) &&
                     td_str_equal(request->method, TD_STR("PATCH"));
    bool is_lease = td_str_starts_with(request->path, TD_STR(LEASES "/tandem-shadow")) ||
                    (td_str_equal(request->path, TD_STR(LEASES)) &&
                     memmem(request->body.ptr, request->body.len, "tandem-shadow", 13));
    shadow_writes += is_shadow;
    if (!is_shadow && !is_lease) {
        other_writes++;
        (void)snprintf(other_path, sizeof(other_path), "%.*s %.*s", TD_STR_ARG(request->method),
                       TD_STR_ARG(request->path));
    }
}

static void shadow_configure(struct td_controllers_options *options)
{
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        options->has[kind] = kind == TD_CONTROLLER_SHADOW;
    }
    options->hvpa_gate = false;
    options->leader.is_on = true;
    options->leader.identity = TD_STR("tandem-a");
}

static void shadow_begin(struct never_bed *n)
{
    never_init(n);
    td_auto_buf text = td_buf_capped((size_t)4 << 20);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    td_json_write(td_vpa_shadow_crd(&n->c.bed.arena), &(struct td_json_format){.indent = 0}, &text);
    assert_int_equal(bed_call(&n->c.bed, "POST", CRDS, td_buf_str(&text).ptr, &answer), 201);
    shadow_writes = other_writes = 0;
    n->configure = shadow_configure;
    n->before_write = shadow_look;
    never_deploy(n, "web", 4);
    control_bed_create(
        &n->c, CHECKPOINTS,
        "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscalerCheckpoint"
        "','metadata':{'name':'gone-app'},'spec':{'vpaObjectName':'gone',"
        "'containerName':'app'}}");
    control_bed_run(&n->c, TD_MINUTE);
}

static td_str shadow_version(struct never_bed *n, const char *path)
{
    return td_json_text(td_json_get(control_bed_get(&n->c, path), TD_STR("metadata")),
                        "resourceVersion");
}

static void test_every_write_is_its_own(void **state)
{
    (void)state;
    struct never_bed n;
    shadow_begin(&n);
    never_vpa(&n, "web", NEVER_AT_LEAST("500m"));
    td_str vpa = shadow_version(&n, VPAS "/web");
    td_str checkpoint = shadow_version(&n, CHECKPOINTS "/gone-app");
    struct never_pods first = never_pods(&n);
    never_start(&n);
    control_bed_run(&n.c, 6 * TD_HOUR);
    struct never_pods last = never_pods(&n);
    if (other_writes > 0) {
        fail_msg("%zu writes that are not its own, the last: %s", other_writes, other_path);
    }
    assert_true(shadow_writes > 0);
    assert_true(never_same_pods(&first, &last));
    assert_true(td_str_equal(vpa, shadow_version(&n, VPAS "/web")));
    assert_true(td_str_equal(checkpoint, shadow_version(&n, CHECKPOINTS "/gone-app")));
    /* It would have: a pass of the updater takes half of them. */
    const struct td_json *shadow = control_bed_get(&n.c, SHADOWS "/web");
    assert_int_equal(td_json_item_count(td_json_get_path(shadow, "tandem.evict")), 2);
    assert_int_equal(td_json_item_count(td_json_get_path(shadow, "upstream.evict")), 0);
    const struct td_json *size =
        td_json_first_item(td_json_get_path(shadow, "recommendation.containerRecommendations"));
    assert_true(
        td_str_equal(td_json_text(td_json_get(size, TD_STR("target")), "cpu"), TD_STR("500m")));
    assert_true(never_counts(&n, "tandem_shadow_pods{by=\"tandem\",action=\"evict\"} 2\n"));
    assert_true(never_counts(&n, "tandem_shadow_vpas 1\n"));
    never_done(&n);
}

/* Its definition is not there: it says so and goes on. */
static void test_without_its_definition(void **state)
{
    (void)state;
    struct never_bed n;
    shadow_begin(&n);
    assert_int_equal(control_bed_delete(&n.c, CRDS "/" TD_SHADOW_PLURAL "." TD_SHADOW_GROUP), 200);
    never_vpa(&n, "web", NEVER_AT_LEAST("500m"));
    never_start(&n);
    control_bed_run(&n.c, TD_HOUR);
    assert_int_equal(other_writes, 0);
    assert_true(never_counts(&n, "tandem_shadow_pods{by=\"tandem\",action=\"evict\"} 2\n"));
    assert_true(never_counts(&n, "tandem_shadow_writes_total{is_error=\"true\"}"));
    never_done(&n);
}

/* A VPA that is deleted takes its object with it, by the owner that the object names. */
static void test_the_object_goes_with_its_vpa(void **state)
{
    (void)state;
    struct never_bed n;
    shadow_begin(&n);
    never_vpa(&n, "web", NEVER_AT_LEAST("500m"));
    never_start(&n);
    control_bed_run(&n.c, 10 * TD_MINUTE);
    assert_non_null(control_bed_get(&n.c, SHADOWS "/web"));
    assert_int_equal(control_bed_delete(&n.c, VPAS "/web"), 200);
    control_bed_run(&n.c, 10 * TD_MINUTE);
    assert_null(control_bed_get(&n.c, SHADOWS "/web"));
    assert_int_equal(other_writes, 0);
    assert_true(never_counts(&n, "tandem_shadow_vpas 0\n"));
    never_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_write_is_its_own),
        cmocka_unit_test(test_without_its_definition),
        cmocka_unit_test(test_the_object_goes_with_its_vpa),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
