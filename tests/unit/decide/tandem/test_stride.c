/* Steps of requests: how long they are, and whether replicas carry a growth instead. A tolerance is
 * 10 % here, so a stride is a fifth; the HPA's target is 70 % and its tolerance 10 %. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "decide/tandem/work.h"
#include "support/tandem_cases.h"

#define WEB TD_STR("web")

static const struct td_hpa_metric by_cpu = {
    .type = TD_HPA_RESOURCE,
    .name = TD_STR_INIT("cpu"),
    .target = {.type = TD_HPA_UTILIZATION,
               .has_average_utilization = true,
               .average_utilization = 70},
};
static const struct td_hpa_metric by_requests = {
    .type = TD_HPA_PODS,
    .name = TD_STR_INIT("requests_per_second"),
    .target = {.type = TD_HPA_AVERAGE_VALUE, .average_value_milli = 100000},
};

/* A workload under Reconcile whose cpu is measured: what a pod uses decides, and the template asks
 * for as much as there is. */
static void begin(struct tandem_case *self, int32_t replicas, int32_t desired, int64_t request,
                  int64_t usage)
{
    tandem_case_init(self, TD_HVPA_RATIO_BASED);
    self->hvpa.hpa.metrics = &by_cpu;
    self->hvpa.hpa.metric_count = 1;
    self->hvpa.hpa.max_replicas = 20;
    self->in.replicas = replicas;
    self->in.desired_replicas = desired;
    struct td_tandem_row *row = tandem_case_add(self, WEB, TD_HVPA_CPU, request, usage);
    row->coupling = (struct td_tandem_coupling){.is_coupled = true,
                                                .utilization = 70,
                                                .usage = {.is_set = true, .amount = usage},
                                                .in_template = request};
}

static void decide(struct tandem_case *self, int32_t replicas, int64_t request)
{
    tandem_case_decide(self);
    assert_int_equal(self->decision.replicas, replicas);
    assert_int_equal(self->outcomes[0].request, request);
}

/* Ten pods use 78 % of 500m, which is 11 % above the target: the HPA wants 12. A share of size
 * would be 500·(557/500)^½·10.95/11 = 526m for ten pods. 10·390/(0.7·1.1·500) = 10.1: eleven
 * replicas bring it within the tolerance. */
static void test_replicas_carry_what_would_be_a_short_step(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, 10, 12, 500, 390);
    decide(&self, 11, 500);
    assert_int_equal(self.decision.blend.carrier, TD_TANDEM_CARRIED_BY_REPLICAS);
    assert_int_equal(self.outcomes[0].block, TD_TANDEM_BLOCK_NONE);
}

/* The case edge-reconcile-spike-capped of hvpa/decide-ratiobased: a share of 1278m is 28 % for four
 * pods, less than four tolerances; 4·2500/(0.5·1.1·1000) = 18.2, the HPA asks for ten, and the
 * stage ends at eight. */
static void test_many_replicas_go_before_size(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, 4, 10, 1000, 2500);
    self.rows[0].coupling.utilization = 50;
    self.rows[0].target = 575;
    self.rows[0].uncapped = 575;
    self.rows[0].max_allowed = (struct td_tandem_bound){.is_set = true, .amount = 2000};
    self.hvpa.ratio.has_finish = true;
    self.hvpa.ratio.finish = 8;
    decide(&self, 8, 1000);
}

/* Two pods of 323m use 400m, 1.77 times the target: three of them, and of the 408m of an even share
 * what three need: 2·572/3 = 382m, 18 % more. */
static void test_few_replicas_share_what_is_needed(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, 2, 4, 323, 400);
    decide(&self, 3, 382);
    assert_int_equal(self.decision.blend.carrier, TD_TANDEM_CARRIED_BY_BOTH);
}

/* The same at the limit: how much more is wanted is not seen, so all that the HPA asks for. */
static void test_a_limit_that_hides_the_wish_sends_replicas(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, 2, 5, 323, 484);
    self.rows[0].limit = (struct td_tandem_bound){.is_set = true, .amount = 485};
    decide(&self, 5, 323);
}

/* Two pods, 11 % above the target: one more would be half of all, and size is behind the line of
 * the ratio, which begins at minReplicas of the template. So size takes a stride: 300·1.2. */
static void test_size_leaps_where_a_replica_is_too_much(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, 2, 3, 300, 233);
    self.rows[0].coupling.in_template = 500;
    decide(&self, 2, 360);
    assert_int_equal(self.decision.blend.carrier, TD_TANDEM_CARRIED_BY_SIZE);
    begin(&self, 2, 3, 500, 390); /* on the line: a replica */
    decide(&self, 3, 500);
    begin(&self, 3, 4, 600, 467); /* 500·(3/2)^1 = 750m for three */
    self.rows[0].coupling.in_template = 500;
    decide(&self, 3, 720);
}

/* The HPA is content with the pods that it has and those that are not ready yet. */
static void test_what_the_hpa_measures_asks_once(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, 5, 5, 271, 400);
    decide(&self, 5, 271);
    assert_int_equal(self.outcomes[0].block, TD_TANDEM_BLOCK_SMALL_STEP);
    assert_int_equal(self.decision.reason, TD_TANDEM_NO_CHANGE);
}

/* At minReplicas a request shrinks whole once it is a fifth above its target, to half a tolerance
 * above it: 350·1.05. The case edge-reconcile-fraction (600 → 502, a factor of 1.195) stays. */
static void test_a_request_shrinks_by_a_stride(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, 2, 2, 500, 245);
    decide(&self, 2, 367);
    begin(&self, 2, 2, 600, 301);
    self.rows[0].coupling.utilization = 60;
    decide(&self, 2, 600);
    assert_int_equal(self.outcomes[0].block, TD_TANDEM_BLOCK_SMALL_STEP);
    begin(&self, 2, 2, 430, 245); /* 430/350 = 1.23: not within an hour of a change of replicas */
    self.in.last_horizontal = tandem_ago(3000);
    decide(&self, 2, 430);
    self.in.last_horizontal = tandem_ago(3600);
    decide(&self, 2, 367);
}

/* A target at minAllowed, to which a use of 14m was raised, tells nothing of what is used: no half
 * a tolerance is left. */
static void test_a_request_shrinks_to_its_minimum(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, 2, 2, 2000, 14);
    self.rows[0].target = 100;
    self.rows[0].uncapped = 25;
    self.rows[0].min_allowed = (struct td_tandem_bound){.is_set = true, .amount = 100};
    decide(&self, 2, 100);
}

/* Memory that no metric measures takes its target whole, in RatioBased too, and a fifth more than
 * it has where that is less than a tenth above the target: 1100·1.2 = 1320 < 1.1·1210. */
static void test_what_no_metric_measures_grows_by_strides(void **state)
{
    (void)state;
    static const enum td_hvpa_mode modes[] = {TD_HVPA_HPA_BIASED, TD_HVPA_VPA_BIASED, TD_HVPA_MIXED,
                                              TD_HVPA_RATIO_BASED};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct tandem_case self;
        begin(&self, 4, 4, 500, 350);
        self.hvpa.mode = modes[i];
        tandem_case_add(&self, WEB, TD_HVPA_MEMORY, 1100 * MI, 1210 * MI);
        decide(&self, 4, 500);
        assert_int_equal(self.outcomes[1].request, 1320 * MI);
        self.rows[1].target = 2000 * MI;
        decide(&self, 4, 500);
        assert_int_equal(self.outcomes[1].request, 2000 * MI);
        self.rows[1].target = 1210 * MI; /* not above its upper bound, nor maxAllowed */
        self.rows[1].upper = (struct td_tandem_bound){.is_set = true, .amount = 1250 * MI};
        decide(&self, 4, 500);
        assert_int_equal(self.outcomes[1].request, 1250 * MI);
        self.rows[1].is_emergency = true;
        decide(&self, 4, 500);
        assert_int_equal(self.outcomes[1].request, 1210 * MI);
    }
}

/* A leak crosses the lower bound again and again: less than a tolerance waits while the limit
 * leaves room, and does not where the limit is what would kill it. */
static void test_a_slight_breach_waits_where_the_limit_leaves_room(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, 4, 4, 500, 350);
    struct td_tandem_row *memory =
        tandem_case_add(&self, WEB, TD_HVPA_MEMORY, 1000 * MI, 1050 * MI);
    memory->lower = (struct td_tandem_bound){.is_set = true, .amount = 1040 * MI};
    memory->limit = (struct td_tandem_bound){.is_set = true, .amount = 2000 * MI};
    decide(&self, 4, 500);
    assert_int_equal(self.outcomes[1].request, 1000 * MI);
    memory->limit.amount = 1000 * MI;
    decide(&self, 4, 500);
    assert_int_equal(self.outcomes[1].request, 1155 * MI);
}

/* Less than a tolerance down would take a stride back, so it does not go along with cpu. */
static void test_a_row_of_its_own_does_not_go_along_downwards(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, 4, 4, 500, 800);
    self.hvpa.mode = TD_HVPA_VPA_BIASED;
    self.hvpa.coupling = TD_HVPA_REFERENCE;
    tandem_case_add(&self, WEB, TD_HVPA_MEMORY, 1000 * MI, 950 * MI);
    decide(&self, 4, 800);
    assert_int_equal(self.outcomes[1].request, 1000 * MI);
}

/* Which rows are measured: requests a second stand for cpu, nothing but memory for memory. */
static void test_which_rows_are_measured(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_RATIO_BASED);
    struct td_tandem_row cpu = {.container = WEB, .resource = TD_HVPA_CPU};
    struct td_tandem_row memory = {.container = WEB, .resource = TD_HVPA_MEMORY};
    struct td_hpa_metric of_container = by_cpu;
    of_container.type = TD_HPA_CONTAINER_RESOURCE;
    of_container.container = TD_STR("sidecar");
    self.hvpa.hpa.metric_count = 1;
    self.hvpa.hpa.metrics = &by_requests;
    assert_true(tandem_is_measured(&self.hvpa, &cpu));
    assert_false(tandem_is_measured(&self.hvpa, &memory));
    self.hvpa.hpa.metrics = &by_cpu;
    assert_true(tandem_is_measured(&self.hvpa, &cpu));
    self.hvpa.hpa.metrics = &of_container;
    assert_false(tandem_is_measured(&self.hvpa, &cpu));
    cpu.container = TD_STR("sidecar");
    assert_true(tandem_is_measured(&self.hvpa, &cpu));
}

/* minChange judges what would be done: of a wish of 249m 59m. Three replicas and a bit,
 * 2·400/(0.77· 323) = 3.2, do it instead. capacityPolicy Max: 10·1120/11 = 1018m are not worth it,
 * and 11200m need twelve of 1000m. */
static void test_min_change_and_tolerance_judge_the_step(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, 2, 4, 323, 400);
    self.hvpa.vertical_up.min_change[TD_HVPA_CPU] =
        (struct td_hvpa_change){.has_value = true, .amount = 100};
    decide(&self, 4, 323);
    begin(&self, 10, 12, 1000, 784);
    self.hvpa.ratio.capacity = TD_HVPA_MAX;
    decide(&self, 12, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas_carry_what_would_be_a_short_step),
        cmocka_unit_test(test_many_replicas_go_before_size),
        cmocka_unit_test(test_few_replicas_share_what_is_needed),
        cmocka_unit_test(test_a_limit_that_hides_the_wish_sends_replicas),
        cmocka_unit_test(test_size_leaps_where_a_replica_is_too_much),
        cmocka_unit_test(test_what_the_hpa_measures_asks_once),
        cmocka_unit_test(test_a_request_shrinks_by_a_stride),
        cmocka_unit_test(test_a_request_shrinks_to_its_minimum),
        cmocka_unit_test(test_what_no_metric_measures_grows_by_strides),
        cmocka_unit_test(test_a_slight_breach_waits_where_the_limit_leaves_room),
        cmocka_unit_test(test_a_row_of_its_own_does_not_go_along_downwards),
        cmocka_unit_test(test_which_rows_are_measured),
        cmocka_unit_test(test_min_change_and_tolerance_judge_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
