/* How small a pod may become before the HPA no longer notices its load, and what may not hold a
 * scale-out back. The law itself is tests/property/tandem_serves.c. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "decide/tandem/coupling.h"
#include "decide/tandem/floor.h"
#include "support/tandem_cases.h"

#define APP TD_STR_INIT("app")
#define SIDE TD_STR_INIT("sidecar")

/* A pod of 500m (limit 750m) in the template, an HPA with a target of 60 %: it waits for 300m. */
static struct td_tandem_row *begin(struct tandem_case *self, enum td_hvpa_mode mode,
                                   enum td_hvpa_coupling coupling, int32_t n, int64_t request,
                                   int64_t target)
{
    tandem_case_init(self, mode);
    self->hvpa.coupling = coupling;
    self->in.replicas = n;
    self->in.desired_replicas = n;
    struct td_tandem_row *row = tandem_case_add(self, TD_STR("app"), TD_HVPA_CPU, request, target);
    row->limit = (struct td_tandem_bound){.is_set = true, .amount = request * 3 / 2};
    row->origin = (struct td_tandem_pair){.request = 500, .limit = 750};
    row->coupling = (struct td_tandem_coupling){
        .is_coupled = true,
        .utilization = 60,
        .in_template = 500,
        .reference = coupling == TD_HVPA_REFERENCE ? 300 : 0,
        .usage = {.is_set = true, .amount = 100},
    };
    self->in.hvpa = &self->hvpa;
    return row;
}

static void is_young(struct tandem_case *self)
{
    self->rows[0].is_young = true;
}

static void up_is_off(struct tandem_case *self)
{
    self->hvpa.vertical_up.update = TD_HVPA_UPDATE_OFF;
}

static void up_has_window(struct tandem_case *self)
{
    self->hvpa.vertical_up.update = TD_HVPA_UPDATE_WINDOW;
    self->hvpa.window = (struct td_hvpa_window){.is_set = true, .end_second = 86399};
}

static void out_is_off(struct tandem_case *self)
{
    self->hvpa.horizontal_up.update = TD_HVPA_UPDATE_OFF;
}

static void tolerance_20(struct tandem_case *self)
{
    self->rows[0].coupling.headroom_percent = td_tandem_headroom_of(0.2);
}

static void target_95(struct tandem_case *self)
{
    self->rows[0].coupling.utilization = 95;
    self->rows[0].coupling.reference = self->hvpa.coupling == TD_HVPA_REFERENCE ? 475 : 0;
}

static void limit_is_request(struct tandem_case *self)
{
    self->rows[0].origin = (struct td_tandem_pair){.request = 500, .limit = 500};
    target_95(self);
}

static void beside_200(struct tandem_case *self)
{
    self->rows[0].coupling.beside = 200;
}

static void sum_of_700(struct tandem_case *self)
{
    self->rows[0].coupling.reference = 420;
}

static void busy_300(struct tandem_case *self)
{
    self->rows[0].coupling.usage.amount = 300;
}

static void no_template(struct tandem_case *self)
{
    self->rows[0].coupling.in_template = 0;
    self->rows[0].coupling.reference = 0;
}

static void not_coupled(struct tandem_case *self)
{
    self->rows[0].coupling.is_coupled = false;
}

static void size_only(struct tandem_case *self)
{
    self->hvpa.mode = TD_HVPA_RATIO_BASED;
    self->hvpa.ratio.has_start = true;
    self->hvpa.ratio.start = 8;
    self->hvpa.initial_scaling = TD_HVPA_VERTICAL;
    self->rows[0].coupling.usage.amount = 600;
    self->in.desired_replicas = self->in.replicas + 2;
}

static void without_overflow(struct tandem_case *self)
{
    self->hvpa.mode = TD_HVPA_RATIO_BASED;
    self->hvpa.ratio.overflow = false;
}

/* Each floor by its derivation; replicas are 2 to 10. */
static void test_each_floor(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum td_hvpa_coupling coupling;
        int32_t n;
        int64_t request;
        void (*change)(struct tandem_case *self);
        int64_t floor;
    } rows[] = {
        {"60 % of 500m and 15 %", TD_HVPA_REFERENCE, 4, 500, NULL, 345},
        {"less than a day was seen: the template", TD_HVPA_REFERENCE, 4, 500, is_young, 500},
        {"at maxReplicas the template", TD_HVPA_REFERENCE, 10, 500, NULL, 500},
        {"replicas may not go out: the template", TD_HVPA_REFERENCE, 4, 500, out_is_off, 500},
        {"requests may not grow: the template", TD_HVPA_REFERENCE, 4, 500, up_is_off, 500},
        {"or only at times", TD_HVPA_REFERENCE, 4, 500, up_has_window, 500},
        {"or not at maxReplicas", TD_HVPA_REFERENCE, 4, 500, without_overflow, 500},
        {"a tolerance of 20 %: 60 % of 500m and 25 %", TD_HVPA_REFERENCE, 4, 500, tolerance_20,
         375},
        {"95 % of 500m and 15 % is 547m: not above the template", TD_HVPA_REFERENCE, 4, 500,
         target_95, 500},
        {"60 % of two containers, 700m, and 15 %", TD_HVPA_REFERENCE, 4, 500, sum_of_700, 483},
        {"only size grows, 600m used: 600m / 60 %", TD_HVPA_REFERENCE, 4, 500, size_only, 1000},
        {"no request in the template", TD_HVPA_REFERENCE, 4, 500, no_template, 0},
        {"a container beside the pod's own request", TD_HVPA_REFERENCE, 4, 500, not_coupled, 345},
        {"a limit of 150 % lets use exceed 69 %", TD_HVPA_COUPLING_NONE, 4, 500, NULL, 0},
        {"of 100 % not 109 %: the template", TD_HVPA_COUPLING_NONE, 4, 500, limit_is_request, 500},
        {"150 % of R above 69 % of (R + 200m): 170.4m", TD_HVPA_RECONCILE, 4, 500, beside_200, 171},
        {"not coupled at all", TD_HVPA_RECONCILE, 4, 500, not_coupled, 0},
        {"at maxReplicas what content needs: 100m / 60 %", TD_HVPA_COUPLING_NONE, 10, 500, NULL,
         167},
        {"at once when it is more than there is: 300m / 60 %", TD_HVPA_COUPLING_NONE, 10, 200,
         busy_300, 500},
        {"within the HPA's tolerance it is no more than there is", TD_HVPA_COUPLING_NONE, 10, 460,
         busy_300, 460},
        {"only size grows: beyond the template", TD_HVPA_RECONCILE, 4, 500, size_only, 1000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_case self;
        struct td_tandem_row *row =
            begin(&self, TD_HVPA_HPA_PREFERRED, rows[i].coupling, rows[i].n, rows[i].request, 150);
        if (rows[i].change) {
            rows[i].change(&self);
        }
        int64_t floor = td_tandem_floor_of(&self.in, row);
        if (floor != rows[i].floor) {
            fail_msg("%s: %lld", rows[i].name, (long long)floor);
        }
    }
}

/* The report: two pods at night would have been shrunk to 163m, limit 245m, below the 330m at which
 * the HPA goes out. They stop at 345m, limit 518m. */
static void test_hpa_preferred_does_not_starve_its_pods(void **state)
{
    (void)state;
    struct tandem_case self;
    struct td_tandem_row *row = begin(&self, TD_HVPA_HPA_PREFERRED, TD_HVPA_REFERENCE, 2, 500, 163);
    tandem_case_decide(&self);
    assert_int_equal(self.decision.reason, TD_TANDEM_VERTICAL_APPLIED);
    assert_int_equal(self.outcomes[0].request, 345);
    assert_int_equal(self.outcomes[0].limit.amount, 518);
    assert_true(self.outcomes[0].is_kept);
    /* maxAllowed is the user's word, whatever follows. */
    row->max_allowed = (struct td_tandem_bound){.is_set = true, .amount = 200};
    tandem_case_decide(&self);
    assert_int_equal(self.outcomes[0].request, 200);
    assert_int_equal(self.outcomes[0].floor, 200);
}

/* Pods that an earlier version starved, or that a changed template made too small, grow to the
 * floor at once: in every mode, wherever replicas stand and however small the step is. */
static void test_a_starved_request_grows_in_every_mode(void **state)
{
    (void)state;
    static const enum td_hvpa_mode modes[] = {TD_HVPA_HPA_PREFERRED, TD_HVPA_HPA_BIASED,
                                              TD_HVPA_VPA_BIASED, TD_HVPA_MIXED,
                                              TD_HVPA_RATIO_BASED};
    static const int64_t requests[] = {163, 340};
    for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
        for (size_t r = 0; r < 2; r++) {
            struct tandem_case self;
            begin(&self, modes[m], TD_HVPA_REFERENCE, 4, requests[r], 150);
            self.hvpa.vertical_up.min_change[TD_HVPA_CPU] =
                (struct td_hvpa_change){.has_value = true, .amount = 1000};
            tandem_case_decide(&self);
            assert_int_equal(self.decision.replicas, 4);
            assert_int_equal(self.outcomes[0].request, 345);
            assert_int_equal(self.decision.reason, TD_TANDEM_VERTICAL_APPLIED);
        }
    }
}

/* In the middle of its range HPAPreferred gives the floor and no more. */
static void test_hpa_preferred_gives_no_more_than_the_floor(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, TD_HVPA_HPA_PREFERRED, TD_HVPA_REFERENCE, 4, 163, 900);
    tandem_case_decide(&self);
    assert_int_equal(self.outcomes[0].request, 345);
    self.in.replicas = 10;
    self.in.desired_replicas = 10;
    tandem_case_decide(&self);
    assert_int_equal(self.outcomes[0].request, 900);
}

/* A fixed limit of 1977m and a target of 92 %: from requests of 1868m on use could no longer exceed
 * 1.15 times the target. More is asked for nowhere but where the template does. */
static void test_requests_do_not_grow_until_the_hpa_is_blind(void **state)
{
    (void)state;
    struct tandem_case self;
    struct td_tandem_row *row =
        begin(&self, TD_HVPA_HPA_BIASED, TD_HVPA_COUPLING_NONE, 4, 1500, 3000);
    row->is_requests_only = true;
    row->limit.amount = 1977;
    row->coupling.utilization = 92;
    row->coupling.in_template = 1533;
    tandem_case_decide(&self);
    assert_int_equal(self.outcomes[0].request, 1868);
    row->coupling.in_template = 1900;
    tandem_case_decide(&self);
    assert_int_equal(self.outcomes[0].request, 1900);
    self.hvpa.coupling = TD_HVPA_REFERENCE;
    row->coupling.reference = 1748;
    tandem_case_decide(&self);
    assert_int_equal(self.outcomes[0].request, 1977);
}

/* ---- More replicas do not wait for a gate ---- */

struct wish {
    td_str container;
    enum td_hvpa_resource resource;
    int64_t request;
    int64_t target;
    int64_t lower;
    int64_t upper;
    bool is_coupled;
    enum td_tandem_block block;
};

struct held {
    const char *name; /* of the case in the shared vectors, whose answer this replaces */
    enum td_hvpa_mode mode;
    int32_t n;
    int32_t d;
    int64_t horizontal_ago;
    int64_t vertical_ago;
    void (*change)(struct td_hvpa *hvpa);
    struct wish wishes[3];
};

static void y_1_core_2_gi(struct td_hvpa *hvpa)
{
    hvpa->mixed.horizontal_threshold = 1;
    hvpa->mixed.vertical_threshold[0] = (struct td_hvpa_change){.has_value = true, .amount = 1000};
    hvpa->mixed.vertical_threshold[1] =
        (struct td_hvpa_change){.has_value = true, .amount = 2048 * MI};
    hvpa->mixed.patience_seconds = 600;
}

static void up_off_down_at_once(struct td_hvpa *hvpa)
{
    hvpa->mixed.preference = TD_HVPA_VERTICAL;
    hvpa->vertical_up.update = TD_HVPA_UPDATE_OFF;
    hvpa->vertical_down.stabilization = 0;
    hvpa->tolerance_percent = 0;
}

static void down_off(struct td_hvpa *hvpa)
{
    hvpa->mixed.preference = TD_HVPA_VERTICAL;
    hvpa->mixed.horizontal_threshold = 2;
    hvpa->mixed.patience_seconds = 0;
    hvpa->vertical_down.update = TD_HVPA_UPDATE_OFF;
}

static void settles_300(struct td_hvpa *hvpa)
{
    hvpa->mixed.horizontal_threshold = 1;
    hvpa->settle_seconds = 300;
}

static void min_change_80(struct td_hvpa *hvpa)
{
    hvpa->mixed.preference = TD_HVPA_VERTICAL;
    hvpa->mixed.horizontal_threshold = 2;
    hvpa->vertical_down.min_change[0] =
        (struct td_hvpa_change){.has_percentage = true, .percentage = 80};
}

static void pref_vertical_settles_30(struct td_hvpa *hvpa)
{
    hvpa->mixed.preference = TD_HVPA_VERTICAL;
    hvpa->mixed.horizontal_threshold = 3;
    hvpa->settle_seconds = 30;
}

static void up_1_hour(struct td_hvpa *hvpa)
{
    hvpa->vertical_up.stabilization = TD_HOUR;
}

static void up_off(struct td_hvpa *hvpa)
{
    hvpa->vertical_up.update = TD_HVPA_UPDATE_OFF;
}

static void up_off_tolerance_0(struct td_hvpa *hvpa)
{
    hvpa->vertical_up.update = TD_HVPA_UPDATE_OFF;
    hvpa->tolerance_percent = 0;
}

static void tolerance_30(struct td_hvpa *hvpa)
{
    hvpa->tolerance_percent = 30;
}

#define NONE TD_TANDEM_BLOCK_NONE
#define STABLE TD_TANDEM_BLOCK_STABILIZATION_WINDOW
#define SETTLING TD_TANDEM_BLOCK_SETTLING
#define OPPOSING TD_TANDEM_BLOCK_OPPOSING
#define OFF TD_TANDEM_BLOCK_UPDATE_POLICY
#define LONG_AGO 777600

/* clang-format off */
/* Each has a wish for more replicas and none for requests that is not held: by a gate, by the guard
 * or by a direction that is off. It used to wait for what the gate holds; now replicas follow the
 * HPA, and the held wishes say why. */
static const struct held held_table[] = {
    {"decide-mixed/random-008", TD_HVPA_MIXED, 1, 2, 30, 3600, y_1_core_2_gi,
     {{APP, TD_HVPA_CPU, 640, 192, 0, 0, true, OPPOSING},
      {APP, TD_HVPA_MEMORY, 2048 * MI, 1826392702, 0, 0, false, SETTLING},
      {SIDE, TD_HVPA_MEMORY, 256 * MI, 282980167, 0, 0, false, NONE}}},
    {"decide-mixed/random-013", TD_HVPA_MIXED, 1, 2, 59, 901, up_off_down_at_once,
     {{APP, TD_HVPA_CPU, 3000, 1800, 1080, 2341, false, SETTLING},
      {SIDE, TD_HVPA_MEMORY, 256 * MI, 218 * MI, 0, 0, true, OPPOSING}}},
    {"decide-mixed/random-017", TD_HVPA_MIXED, 1, 6, 3600, 10, down_off,
     {{APP, TD_HVPA_CPU, 100, 60, 0, 0, false, OFF},
      {APP, TD_HVPA_MEMORY, 768 * MI, 1152 * MI, 0, 0, false, STABLE},
      {SIDE, TD_HVPA_CPU, 300, 315, 0, 0, false, NONE}}},
    {"decide-mixed/random-073", TD_HVPA_MIXED, 1, 2, 60, 180, settles_300,
     {{APP, TD_HVPA_CPU, 100, 90, 0, 0, false, STABLE},
      {SIDE, TD_HVPA_CPU, 1500, 1275, 1020, 1339, true, OPPOSING}}},
    {"decide-mixed/random-077", TD_HVPA_MIXED, 1, 2, LONG_AGO, 179, min_change_80,
     {{APP, TD_HVPA_CPU, 640, 384, 230, 769, false, TD_TANDEM_BLOCK_MIN_CHANGE},
      {APP, TD_HVPA_MEMORY, 4096 * MI, 3482 * MI, 0, 0, true, OPPOSING},
      {SIDE, TD_HVPA_MEMORY, 2048 * MI, 2560 * MI, 0, 0, false, STABLE}}},
    {"decide-mixed/random-096", TD_HVPA_MIXED, 2, 3, LONG_AGO, 899, pref_vertical_settles_30,
     {{APP, TD_HVPA_CPU, 1500, 1545, 0, 0, true, NONE},
      {SIDE, TD_HVPA_CPU, 2000, 1000, 0, 0, false, STABLE},
      {SIDE, TD_HVPA_MEMORY, 64 * MI, 71104189, 0, 0, true, NONE}}},
    {"decide-vpabiased/random-019", TD_HVPA_VPA_BIASED, 3, 4, LONG_AGO, 600, NULL,
     {{APP, TD_HVPA_CPU, 100, 97, 0, 0, false, NONE},
      {SIDE, TD_HVPA_CPU, 1000, 300, 0, 0, false, STABLE},
      {SIDE, TD_HVPA_MEMORY, 1000 * MI, 1080848990, 0, 0, false, NONE}}},
    {"decide-vpabiased/random-086", TD_HVPA_VPA_BIASED, 6, 17, LONG_AGO, 900, up_1_hour,
     {{APP, TD_HVPA_CPU, 1200, 1260, 1222, 1324, false, STABLE},
      {SIDE, TD_HVPA_MEMORY, 2048 * MI, 1229 * MI, 0, 0, true, OPPOSING}}},
    {"decide-vpabiased/random-090", TD_HVPA_VPA_BIASED, 7, 9, 30, 900, up_off,
     {{APP, TD_HVPA_CPU, 1500, 6000, 0, 0, false, OFF},
      {SIDE, TD_HVPA_CPU, 400, 368, 294, 387, false, SETTLING}}},
    {"decide-vpabiased/random-096", TD_HVPA_VPA_BIASED, 5, 10, LONG_AGO, 181, up_off_tolerance_0,
     {{APP, TD_HVPA_CPU, 200, 194, 0, 0, false, STABLE},
      {APP, TD_HVPA_MEMORY, 1500 * MI, 1680 * MI, 0, 0, false, OFF}}},
    {"decide-vpabiased/random-103", TD_HVPA_VPA_BIASED, 7, 23, 59, LONG_AGO, tolerance_30,
     {{SIDE, TD_HVPA_CPU, 1500, 900, 0, 0, false, SETTLING},
      {SIDE, TD_HVPA_MEMORY, 300 * MI, 150 * MI, 0, 0, true, OPPOSING}}},
};
/* clang-format on */

static void test_more_replicas_do_not_wait_for_a_gate(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(held_table) / sizeof(held_table[0]); i++) {
        const struct held *held = &held_table[i];
        struct tandem_case self;
        tandem_case_init(&self, held->mode);
        self.hvpa.hpa.min_replicas = 1;
        self.hvpa.hpa.max_replicas = 30;
        self.in.replicas = held->n;
        self.in.desired_replicas = held->d;
        self.in.last_horizontal = tandem_ago(held->horizontal_ago);
        self.in.last_vertical = tandem_ago(held->vertical_ago);
        for (size_t w = 0; w < 3 && held->wishes[w].request > 0; w++) {
            const struct wish *wish = &held->wishes[w];
            struct td_tandem_row *row = tandem_case_add(&self, wish->container, wish->resource,
                                                        wish->request, wish->target);
            row->lower = (struct td_tandem_bound){.is_set = wish->lower > 0, .amount = wish->lower};
            row->upper = (struct td_tandem_bound){.is_set = wish->upper > 0, .amount = wish->upper};
            row->coupling.is_coupled = wish->is_coupled;
            row->coupling.utilization = 60;
        }
        if (held->change) {
            held->change(&self.hvpa);
        }
        tandem_case_decide(&self);
        if (self.decision.replicas != held->d ||
            self.decision.reason != TD_TANDEM_HORIZONTAL_APPLIED) {
            fail_msg("%s: %d replicas", held->name, self.decision.replicas);
        }
        for (size_t w = 0; w < self.in.row_count; w++) {
            assert_int_equal(self.outcomes[w].request, held->wishes[w].request);
            assert_int_equal(self.outcomes[w].block, held->wishes[w].block);
        }
    }
}

/* An open gate goes first as ever; fewer replicas wait as ever. */
static void test_a_gate_still_holds_the_rest(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_VPA_BIASED);
    self.in.replicas = 4;
    self.in.desired_replicas = 6;
    tandem_case_add(&self, TD_STR("app"), TD_HVPA_MEMORY, 1024 * MI, 512 * MI);
    tandem_case_decide(&self);
    assert_int_equal(self.decision.replicas, 4);
    assert_int_equal(self.outcomes[0].request, 512 * MI);
    self.in.desired_replicas = 3;
    self.in.last_vertical = tandem_ago(60);
    tandem_case_decide(&self);
    assert_int_equal(self.decision.replicas, 4);
    assert_int_equal(self.decision.reason, TD_TANDEM_BLOCKED);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_floor),
        cmocka_unit_test(test_hpa_preferred_does_not_starve_its_pods),
        cmocka_unit_test(test_a_starved_request_grows_in_every_mode),
        cmocka_unit_test(test_hpa_preferred_gives_no_more_than_the_floor),
        cmocka_unit_test(test_requests_do_not_grow_until_the_hpa_is_blind),
        cmocka_unit_test(test_more_replicas_do_not_wait_for_a_gate),
        cmocka_unit_test(test_a_gate_still_holds_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
