/* Properties of decisions that tables cannot show: the same on every machine, every reason
 * reachable, and the edges where state from before is missing. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "decide/tandem/actuation.h"
#include "decide/tandem/amount.h"
#include "decide/tandem/coupling.h"
#include "decide/tandem/gates.h"
#include "support/tandem_random.h"

#define DECISIONS 1000000
#define DECISIONS_DIGEST UINT64_C(0xc6630ae3b91c90df)
#define APP TD_STR("app")

/* A million random decisions have one digest, whatever compiler and machine made them. */
static void test_decisions_are_the_same_on_every_machine(void **state)
{
    (void)state;
    static struct tandem_case self;
    struct tandem_random random = {.state = 1};
    uint64_t digest = TANDEM_DIGEST_START;
    for (int i = 0; i < DECISIONS; i++) {
        tandem_random_case(&random, &self);
        tandem_case_decide(&self);
        digest = tandem_digest_decision(digest, &self);
    }
    assert_int_equal(digest, DECISIONS_DIGEST);
}

/* Every reason for a decision and every reason for a block can happen. */
static void test_every_reason_is_reachable(void **state)
{
    (void)state;
    static struct tandem_case self;
    struct tandem_random random = {.state = 3};
    int reasons[TD_TANDEM_REASON_COUNT] = {0};
    int blocks[TD_TANDEM_BLOCK_COUNT] = {0};
    for (int i = 0; i < 400000; i++) {
        tandem_random_case(&random, &self);
        tandem_case_decide(&self);
        reasons[self.decision.reason]++;
        for (size_t r = 0; r < self.in.row_count; r++) {
            blocks[self.outcomes[r].block]++;
        }
    }
    for (int i = 0; i < TD_TANDEM_REASON_COUNT; i++) {
        assert_true(reasons[i] > 0);
        assert_true(td_tandem_reason_name((enum td_tandem_reason)i).len > 0);
    }
    for (int i = 0; i < TD_TANDEM_BLOCK_COUNT; i++) {
        assert_true(blocks[i] > 0);
    }
}

/* Whole numbers survive powers and rounding: roots of powers, and values next to a whole one. */
static void test_rounding_forgives_the_last_bits(void **state)
{
    (void)state;
    for (int64_t root = 1; root < 3000; root++) {
        double square = (double)(root * root);
        assert_int_equal(td_tandem_ceil(td_tandem_power(square, 0.5)), root);
        assert_int_equal(td_tandem_floor(td_tandem_power(square, 0.5)), root);
        assert_int_equal(td_tandem_ceil(td_tandem_power(square * (double)root, 1.0 / 3)), root);
    }
    static const struct {
        double value;
        int64_t up;
        int64_t down;
    } rows[] = {{5, 5, 5},
                {5.0000000049, 5, 5},
                {5.00000001, 6, 5},
                {4.999999996, 5, 5},
                {4.99999999, 5, 4},
                {0, 0, 0},
                {1e300, INT64_MAX, INT64_MAX},
                {-1e300, INT64_MIN, INT64_MIN}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(td_tandem_ceil(rows[i].value), rows[i].up);
        assert_int_equal(td_tandem_floor(rows[i].value), rows[i].down);
    }
    assert_int_equal(td_tandem_ceil_quotient(30100, 60), 502);
    assert_int_equal(td_tandem_ceil_quotient(0, 60), 0);
    assert_int_equal(td_tandem_ceil_quotient((td_wide)INT64_MAX * 100, 1), INT64_MAX);
    assert_int_equal(td_tandem_round_up(TD_HVPA_MEMORY, 1.5 * (double)MI), 2 * MI);
    assert_int_equal(td_tandem_round_up(TD_HVPA_MEMORY, 1e300), INT64_MAX);
}

/* A limit follows its request, and one that leaves int64 is cut and reported. */
static void test_limits_follow_requests_without_wrapping(void **state)
{
    (void)state;
    static const struct {
        int64_t request;
        int64_t limit;
        struct td_hvpa_change gap;
        int64_t decided;
        int64_t expected;
        bool is_saturated;
    } rows[] = {
        {500, 1000, {0}, 800, 1600, false},
        {500, 500, {0}, 800, 800, false},
        {0, 640, {0}, 320, 320, false},
        {3, 10, {0}, 4, 14, false}, /* 13.3 rounded up */
        {500, 1000, {.has_percentage = true, .percentage = 50}, 800, 1200, false},
        {500, 1000, {.has_value = true, .amount = 500}, 800, 1300, false},
        {500, 500, {.has_value = true, .amount = 500}, 800, 800, false},
        {1, INT64_MAX / 2, {0}, 1000, INT64_MAX, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_tandem_row row = {.request = rows[i].request,
                                    .limit = {.is_set = true, .amount = rows[i].limit}};
        bool is_saturated = false;
        assert_int_equal(td_tandem_limit_for(&row, &rows[i].gap, rows[i].decided, &is_saturated),
                         rows[i].expected);
        assert_int_equal(is_saturated, rows[i].is_saturated);
    }
}

/* Resized a hundred times, to whatever size, a limit still has the proportion that the template
 * gave it; rounding from resize to resize would have added up. */
static void test_a_hundred_resizes_keep_the_proportion_of_the_limit(void **state)
{
    (void)state;
    static const struct {
        enum td_hvpa_resource resource;
        struct td_tandem_pair origin;
        int64_t smallest;
    } rows[] = {
        {TD_HVPA_CPU, {100, 125}, 20},
        {TD_HVPA_CPU, {300, 1000}, 7},
        {TD_HVPA_CPU, {250, 250}, 20},
        {TD_HVPA_MEMORY, {100 * MI, 150 * MI + 1}, 3},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_random random = {.state = i + 1};
        struct td_tandem_pair origin = rows[i].origin;
        int64_t request = origin.request;
        int64_t limit = origin.limit;
        for (int resizes = 0; resizes < 100;) {
            struct tandem_case self;
            tandem_case_init(&self, TD_HVPA_HPA_BIASED);
            self.in.replicas = 4;
            self.in.desired_replicas = 4;
            int64_t target = rows[i].smallest + tandem_pick(&random, 200);
            struct td_tandem_row *row =
                tandem_case_add(&self, APP, rows[i].resource, request, target);
            row->limit = (struct td_tandem_bound){.is_set = true, .amount = limit};
            row->origin = origin;
            tandem_case_decide(&self);
            resizes += self.outcomes[0].request != request ? 1 : 0;
            request = self.outcomes[0].request;
            limit = self.outcomes[0].limit.amount;
            assert_int_equal(limit, (origin.limit * request + origin.request - 1) / origin.request);
        }
    }
}

static void begin(struct tandem_case *self, enum td_hvpa_mode mode, int32_t n, int32_t d,
                  int64_t request, int64_t target)
{
    tandem_case_init(self, mode);
    self->in.replicas = n;
    self->in.desired_replicas = d;
    tandem_case_add(self, APP, TD_HVPA_CPU, request, target);
}

/* After a restart nothing is known of the last scaling: a decrease waits from the first sight, an
 * increase does not. */
static void test_a_missing_timestamp_holds_only_decreases(void **state)
{
    (void)state;
    static const struct {
        int64_t target;
        int64_t seen_ago;
        enum td_tandem_block block;
    } rows[] = {
        {300, 899, TD_TANDEM_BLOCK_STABILIZATION_WINDOW},
        {300, 900, TD_TANDEM_BLOCK_NONE},
        {800, 0, TD_TANDEM_BLOCK_NONE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_case self;
        begin(&self, TD_HVPA_HPA_BIASED, 4, 4, 500, rows[i].target);
        self.in.last_horizontal.is_set = false;
        self.in.last_vertical.is_set = false;
        self.in.first_seen = tandem_ago(rows[i].seen_ago);
        tandem_case_decide(&self);
        assert_int_equal(self.outcomes[0].block, rows[i].block);
    }
}

/* A clock that went back counts as no time, so a gate stays closed. */
static void test_a_clock_that_goes_back_keeps_gates_closed(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, TD_HVPA_HPA_BIASED, 4, 4, 500, 800);
    self.in.last_vertical = tandem_ago(-1000);
    tandem_case_decide(&self);
    assert_int_equal(self.outcomes[0].block, TD_TANDEM_BLOCK_STABILIZATION_WINDOW);
}

/* Patience: the timer begins, runs, expires once, starts again, and is kept where a gate held the
 * expired action. */
static void test_patience_timer_is_kept_from_tick_to_tick(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, TD_HVPA_MIXED, 4, 5, 500, 600);
    self.hvpa.mixed.horizontal_threshold = 1;
    self.hvpa.mixed.vertical_threshold[TD_HVPA_CPU] =
        (struct td_hvpa_change){.has_value = true, .amount = 200};
    tandem_case_decide(&self);
    assert_int_equal(self.decision.reason, TD_TANDEM_BELOW_THRESHOLDS);
    assert_int_equal(self.decision.below_thresholds_since.at.unix_seconds, TANDEM_NOON);
    self.in.below_thresholds_since = tandem_ago(299);
    tandem_case_decide(&self);
    assert_int_equal(self.decision.reason, TD_TANDEM_BELOW_THRESHOLDS);
    assert_int_equal(self.decision.below_thresholds_since.at.unix_seconds, TANDEM_NOON - 299);
    self.in.below_thresholds_since = tandem_ago(300);
    tandem_case_decide(&self);
    assert_int_equal(self.decision.reason, TD_TANDEM_THRESHOLD_PATIENCE_EXPIRED);
    assert_int_equal(self.decision.below_thresholds_since.at.unix_seconds, TANDEM_NOON);
    self.hvpa.horizontal_up.stabilization = TD_HOUR;
    self.in.last_horizontal = tandem_ago(10);
    tandem_case_decide(&self);
    assert_int_equal(self.decision.reason, TD_TANDEM_BLOCKED);
    assert_int_equal(self.decision.below_thresholds_since.at.unix_seconds, TANDEM_NOON - 300);
    self.in.desired_replicas = 4;
    tandem_case_decide(&self);
    assert_false(self.decision.below_thresholds_since.is_set);
}

/* An emergency is tried while a resize is under way, but not against a target known infeasible. */
static void test_emergency_passes_a_running_resize_only(void **state)
{
    (void)state;
    static const struct {
        enum td_tandem_resize resize;
        int64_t request;
        enum td_tandem_block block;
    } rows[] = {
        {TD_TANDEM_RESIZE_IN_PROGRESS, 2048, TD_TANDEM_BLOCK_NONE},
        {TD_TANDEM_RESIZE_INFEASIBLE, 1024, TD_TANDEM_BLOCK_RESIZE_INFEASIBLE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_case self;
        tandem_case_init(&self, TD_HVPA_HPA_BIASED);
        self.in.replicas = 3;
        self.in.desired_replicas = 3;
        self.in.resize = rows[i].resize;
        tandem_case_add(&self, APP, TD_HVPA_MEMORY, 1024 * MI, 2048 * MI)->is_emergency = true;
        tandem_case_decide(&self);
        assert_int_equal(self.outcomes[0].request, rows[i].request * MI);
        assert_int_equal(self.outcomes[0].block, rows[i].block);
    }
}

/* capacityPolicy Max moves axes that did not ask; Off and gates hold them all the same, and the
 * other axis makes up for it where it can. */
static void test_max_respects_what_holds_an_axis(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, TD_HVPA_RATIO_BASED, 4, 8, 500, 500);
    self.hvpa.hpa.max_replicas = 20;
    self.hvpa.ratio.capacity = TD_HVPA_MAX;
    self.rows[0].coupling = (struct td_tandem_coupling){.is_coupled = true, .utilization = 60};
    self.hvpa.coupling = TD_HVPA_REFERENCE;
    self.hvpa.vertical_up.update = TD_HVPA_UPDATE_OFF;
    tandem_case_decide(&self);
    assert_int_equal(self.outcomes[0].request, 500);
    assert_int_equal(self.decision.replicas, 8);
    assert_int_equal(self.outcomes[0].block, TD_TANDEM_BLOCK_UPDATE_POLICY);
    self.hvpa.vertical_up.update = TD_HVPA_UPDATE_AUTO;
    self.hvpa.horizontal_up.update = TD_HVPA_UPDATE_OFF;
    self.rows[0].target = 1000;
    tandem_case_decide(&self);
    assert_int_equal(self.decision.replicas, 4);
    assert_int_equal(self.outcomes[0].request, 1000);
}

/* capacityPolicy Max governs the ratio stage only, also when its common factor is 1: beyond the
 * stage a scale-in does not wait for a VPA that is content, nor a smaller request for the HPA. */
static void test_max_leaves_the_other_stages_to_blend(void **state)
{
    (void)state;
    static const struct {
        int32_t n;
        int32_t d;
        int64_t target;
        enum td_hvpa_axis axis; /* of the initial and the final stage */
        int32_t replicas;
        int64_t request;
        enum td_tandem_reason reason;
    } rows[] = {
        {12, 6, 500, TD_HVPA_HORIZONTAL, 10, 500, TD_TANDEM_HORIZONTAL_APPLIED}, /* to the border */
        {4, 2, 500, TD_HVPA_HORIZONTAL, 2, 500, TD_TANDEM_HORIZONTAL_APPLIED},
        {12, 6, 500, TD_HVPA_VERTICAL, 12, 500, TD_TANDEM_STAGE_FORBIDS},
        {12, 12, 250, TD_HVPA_VERTICAL, 12, 250, TD_TANDEM_VERTICAL_APPLIED},
        {12, 12, 250, TD_HVPA_HORIZONTAL, 12, 500, TD_TANDEM_STAGE_FORBIDS},
        {3, 3, 250, TD_HVPA_VERTICAL, 3, 250, TD_TANDEM_VERTICAL_APPLIED},
        {8, 4, 500, TD_HVPA_HORIZONTAL, 8, 500, TD_TANDEM_STAGE_FORBIDS}, /* in the stage: hold */
        {10, 5, 500, TD_HVPA_HORIZONTAL, 10, 500, TD_TANDEM_STAGE_FORBIDS},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_case self;
        begin(&self, TD_HVPA_RATIO_BASED, rows[i].n, rows[i].d, 500, rows[i].target);
        self.hvpa.hpa.min_replicas = 1;
        self.hvpa.hpa.max_replicas = 20;
        self.hvpa.ratio = (struct td_hvpa_ratio){.v_to_h = 1,
                                                 .has_start = true,
                                                 .start = 4,
                                                 .has_finish = true,
                                                 .finish = 10,
                                                 .overflow = true,
                                                 .capacity = TD_HVPA_MAX};
        self.hvpa.initial_scaling = rows[i].axis;
        self.hvpa.final_scaling = rows[i].axis;
        self.hvpa.coupling = TD_HVPA_REFERENCE;
        self.rows[0].coupling = (struct td_tandem_coupling){.is_coupled = true, .utilization = 60};
        tandem_case_decide(&self);
        assert_int_equal(self.decision.replicas, rows[i].replicas);
        assert_int_equal(self.outcomes[0].request, rows[i].request);
        assert_int_equal(self.decision.reason, rows[i].reason);
    }
}

/* Stabilization blocks a resize under Max as everywhere: the coupled request stays, and replicas
 * carry the capacity as far as they may. */
static void test_max_waits_for_stabilization(void **state)
{
    (void)state;
    static const struct {
        int32_t n;
        int32_t d;
        int64_t seconds_ago; /* of the last vertical scaling */
        int64_t target;
        int32_t replicas;
        int64_t request;
        enum td_tandem_block block;
    } rows[] = {
        {4, 8, 60, 500, 8, 500, TD_TANDEM_BLOCK_STABILIZATION_WINDOW},
        {4, 8, 60, 1000, 8, 500, TD_TANDEM_BLOCK_STABILIZATION_WINDOW},
        {4, 8, 180, 1000, 6, 667, TD_TANDEM_BLOCK_NONE},
        {4, 16, 60, 500, 16, 500, TD_TANDEM_BLOCK_STABILIZATION_WINDOW},
        {8, 4, 300, 250, 8, 500, TD_TANDEM_BLOCK_STABILIZATION_WINDOW}, /* t counts as r: hold */
        {8, 4, 900, 250, 5, 400, TD_TANDEM_BLOCK_NONE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_case self;
        begin(&self, TD_HVPA_RATIO_BASED, rows[i].n, rows[i].d, 500, rows[i].target);
        self.hvpa.hpa.min_replicas = 1;
        self.hvpa.hpa.max_replicas = 20;
        self.hvpa.ratio.capacity = TD_HVPA_MAX;
        self.hvpa.coupling = TD_HVPA_REFERENCE;
        self.rows[0].coupling = (struct td_tandem_coupling){.is_coupled = true, .utilization = 60};
        self.in.last_vertical = tandem_ago(rows[i].seconds_ago);
        tandem_case_decide(&self);
        assert_int_equal(self.decision.replicas, rows[i].replicas);
        assert_int_equal(self.outcomes[0].request, rows[i].request);
        assert_int_equal(self.outcomes[0].block, rows[i].block);
    }
}

/* A border cuts replicas and says so, because the rest belongs to an immediate next tick. */
static void test_a_cut_at_a_border_asks_for_another_tick(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, TD_HVPA_RATIO_BASED, 2, 8, 500, 1000);
    self.hvpa.ratio.has_start = true;
    self.hvpa.ratio.start = 4;
    tandem_case_decide(&self);
    assert_true(self.decision.blend.is_cut_by_border);
    assert_int_equal(self.decision.blend.border_replicas, 4);
    self.in.desired_replicas = 3;
    tandem_case_decide(&self);
    assert_false(self.decision.blend.is_cut_by_border);
}

/* The order of writes: what adds capacity first. */
static void test_increases_are_carried_out_first(void **state)
{
    (void)state;
    static const struct {
        int32_t to;
        int64_t request;
        size_t count;
        enum td_tandem_step steps[TD_TANDEM_STEPS_MAX];
    } rows[] = {
        {4, 500, 0, {0}},
        {6, 500, 1, {TD_TANDEM_STEP_SCALE}},
        {4, 700, 1, {TD_TANDEM_STEP_RESIZE}},
        {6, 700, 2, {TD_TANDEM_STEP_SCALE, TD_TANDEM_STEP_RESIZE}},
        {6, 300, 2, {TD_TANDEM_STEP_SCALE, TD_TANDEM_STEP_RESIZE}},
        {2, 300, 2, {TD_TANDEM_STEP_SCALE, TD_TANDEM_STEP_RESIZE}},
        {2, 700, 3, {TD_TANDEM_STEP_RESIZE, TD_TANDEM_STEP_WAIT_READY, TD_TANDEM_STEP_SCALE}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_case self;
        begin(&self, TD_HVPA_HPA_BIASED, 4, 4, 500, 500);
        tandem_case_decide(&self);
        self.decision.replicas = rows[i].to;
        self.outcomes[0].request = rows[i].request;
        struct td_tandem_plan plan = td_tandem_plan_of(&self.hvpa, &self.in, &self.decision);
        assert_int_equal(plan.count, rows[i].count);
        for (size_t s = 0; s < plan.count; s++) {
            assert_int_equal(plan.steps[s], rows[i].steps[s]);
        }
        self.hvpa.paused = true;
        assert_int_equal(td_tandem_plan_of(&self.hvpa, &self.in, &self.decision).count, 0);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decisions_are_the_same_on_every_machine),
        cmocka_unit_test(test_every_reason_is_reachable),
        cmocka_unit_test(test_rounding_forgives_the_last_bits),
        cmocka_unit_test(test_limits_follow_requests_without_wrapping),
        cmocka_unit_test(test_a_hundred_resizes_keep_the_proportion_of_the_limit),
        cmocka_unit_test(test_a_missing_timestamp_holds_only_decreases),
        cmocka_unit_test(test_a_clock_that_goes_back_keeps_gates_closed),
        cmocka_unit_test(test_patience_timer_is_kept_from_tick_to_tick),
        cmocka_unit_test(test_emergency_passes_a_running_resize_only),
        cmocka_unit_test(test_max_respects_what_holds_an_axis),
        cmocka_unit_test(test_max_leaves_the_other_stages_to_blend),
        cmocka_unit_test(test_max_waits_for_stabilization),
        cmocka_unit_test(test_a_cut_at_a_border_asks_for_another_tick),
        cmocka_unit_test(test_increases_are_carried_out_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
