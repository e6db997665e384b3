/* Every row of the specification's decision tables, each as a test of its own name. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "decide/tandem/coupling.h"
#include "support/tandem_cases.h"

#define HPA_INVALID (-1)
#define ABSENT 0
#define APP TD_STR("app")

struct amounts {
    int64_t request;
    int64_t target;
    int64_t decided;
};

/* One row of a table: cpu in milli-cores, memory in MiB; a resource with target 0 is not
 * controlled. */
struct table_row {
    const char *id;
    enum td_hvpa_mode mode;
    int32_t n;
    int32_t d;
    int32_t min;
    int32_t max;
    struct amounts cpu;
    struct amounts memory;
    int32_t replicas;
    enum td_tandem_reason reason;
    void (*setup)(struct tandem_case *self);
};

static void bounds_520_900(struct tandem_case *self)
{
    self->rows[0].lower = (struct td_tandem_bound){.is_set = true, .amount = 520};
    self->rows[0].upper = (struct td_tandem_bound){.is_set = true, .amount = 900};
}

static void max_2000(struct tandem_case *self)
{
    self->rows[0].max_allowed = (struct td_tandem_bound){.is_set = true, .amount = 2000};
}

static void max_4000(struct tandem_case *self)
{
    self->rows[0].max_allowed = (struct td_tandem_bound){.is_set = true, .amount = 4000};
}

static void min_100(struct tandem_case *self)
{
    self->rows[0].min_allowed = (struct td_tandem_bound){.is_set = true, .amount = 100};
}

static void limit_600_requests_only(struct tandem_case *self)
{
    self->rows[0].limit = (struct td_tandem_bound){.is_set = true, .amount = 600};
    self->rows[0].is_requests_only = true;
}

static void coupled(struct tandem_case *self)
{
    self->rows[0].coupling = (struct td_tandem_coupling){.is_coupled = true, .utilization = 60};
}

static void mixed(struct tandem_case *self, int32_t threshold, enum td_hvpa_axis preference)
{
    self->hvpa.mixed.horizontal_threshold = threshold;
    self->hvpa.mixed.preference = preference;
    self->hvpa.mixed.vertical_threshold[TD_HVPA_CPU] =
        (struct td_hvpa_change){.has_value = true, .amount = 200};
}

static void x1_vertical(struct tandem_case *self)
{
    mixed(self, 1, TD_HVPA_VERTICAL);
}

static void x1_horizontal(struct tandem_case *self)
{
    mixed(self, 1, TD_HVPA_HORIZONTAL);
}

static void x1_horizontal_waited(struct tandem_case *self)
{
    mixed(self, 1, TD_HVPA_HORIZONTAL);
    self->in.below_thresholds_since = tandem_ago(300);
}

static void x2_horizontal(struct tandem_case *self)
{
    mixed(self, 2, TD_HVPA_HORIZONTAL);
}

static void x1_horizontal_limit_550(struct tandem_case *self)
{
    mixed(self, 1, TD_HVPA_HORIZONTAL);
    self->rows[0].limit = (struct td_tandem_bound){.is_set = true, .amount = 550};
}

static void x1_vertical_limit_600(struct tandem_case *self)
{
    mixed(self, 1, TD_HVPA_VERTICAL);
    limit_600_requests_only(self);
}

static void ratio(struct tandem_case *self, double v_to_h, int32_t start, int32_t finish)
{
    self->hvpa.ratio.v_to_h = v_to_h;
    self->hvpa.ratio.has_start = start != ABSENT;
    self->hvpa.ratio.start = start;
    self->hvpa.ratio.has_finish = finish != ABSENT;
    self->hvpa.ratio.finish = finish;
}

static void ratio_1(struct tandem_case *self)
{
    ratio(self, 1, 2, 18);
}

static void ratio_1_from_1_to_8(struct tandem_case *self)
{
    ratio(self, 1, 1, 8);
}

static void ratio_3(struct tandem_case *self)
{
    ratio(self, 3, 2, 18);
}

static void ratio_0(struct tandem_case *self)
{
    ratio(self, 0, 2, 18);
}

static void ratio_half(struct tandem_case *self)
{
    ratio(self, 0.5, 1, 18);
}

static void stages_4_10(struct tandem_case *self)
{
    ratio(self, 1, 4, 10);
}

static void stages_4_10_vertical(struct tandem_case *self)
{
    ratio(self, 1, 4, 10);
    self->hvpa.initial_scaling = TD_HVPA_VERTICAL;
}

static void stages_4_10_vertical_max_2000(struct tandem_case *self)
{
    stages_4_10_vertical(self);
    max_2000(self);
}

static void stages_4_10_max_4000(struct tandem_case *self)
{
    stages_4_10(self);
    max_4000(self);
}

static void stages_4_open_max_4000(struct tandem_case *self)
{
    ratio(self, 1, 4, ABSENT);
    max_4000(self);
}

static void stages_4_10_max_4000_no_overflow(struct tandem_case *self)
{
    stages_4_10_max_4000(self);
    self->hvpa.ratio.overflow = false;
}

static void stages_4_10_min_100(struct tandem_case *self)
{
    stages_4_10(self);
    min_100(self);
}

static void stages_open_10_min_100(struct tandem_case *self)
{
    ratio(self, 1, ABSENT, 10);
    min_100(self);
}

static void capacity_max(struct tandem_case *self)
{
    ratio_1(self);
    coupled(self);
    self->hvpa.ratio.capacity = TD_HVPA_MAX;
    self->hvpa.coupling = TD_HVPA_REFERENCE;
    self->rows[0].min_allowed = (struct td_tandem_bound){.is_set = true, .amount = 100};
    max_4000(self);
}

static void capacity_max_800(struct tandem_case *self)
{
    capacity_max(self);
    self->rows[0].max_allowed.amount = 800;
}

#define P(id, n, d, min, max) "P" #id, TD_HVPA_HPA_PREFERRED, n, d, min, max
#define H(id, n, d) "H" #id, TD_HVPA_HPA_BIASED, n, d, 2, 10
#define V(id, n, d) "V" #id, TD_HVPA_VPA_BIASED, n, d, 2, 10
#define M(id, n, d) "M" #id, TD_HVPA_MIXED, n, d, 2, 10
#define R(id, n, d) "R" #id, TD_HVPA_RATIO_BASED, n, d, 1, 20
#define X(id, n, d) "X" #id, TD_HVPA_RATIO_BASED, n, d, 1, 20
#define NOT_CONTROLLED                                                                             \
    {                                                                                              \
        0, 0, 0                                                                                    \
    }
#define HORIZONTAL TD_TANDEM_HORIZONTAL_APPLIED
#define VERTICAL TD_TANDEM_VERTICAL_APPLIED
#define BOTH TD_TANDEM_BOTH_APPLIED
#define NOTHING TD_TANDEM_NO_CHANGE
#define FORBIDS TD_TANDEM_STAGE_FORBIDS
#define BELOW TD_TANDEM_BELOW_THRESHOLDS
#define HELD_BELOW_MAX TD_TANDEM_VERTICAL_HELD_BELOW_MAX_REPLICAS
#define HELD_ABOVE_MIN TD_TANDEM_VERTICAL_HELD_ABOVE_MIN_REPLICAS

/* clang-format off */
static const struct table_row table[] = {
    {P(1, 3, 5, 2, 10), {500, 800, 500}, NOT_CONTROLLED, 5, HORIZONTAL, NULL},
    {P(2, 10, 10, 2, 10), {500, 800, 800}, NOT_CONTROLLED, 10, VERTICAL, NULL},
    {P(3, 10, 14, 2, 10), {500, 800, 800}, {1024, 768, 1024}, 10, VERTICAL, NULL},
    {P(4, 6, 6, 2, 10), {500, 800, 500}, NOT_CONTROLLED, 6, HELD_BELOW_MAX, NULL},
    {P(5, 2, 2, 2, 10), {500, 300, 300}, {1024, 1536, 1024}, 2, VERTICAL, NULL},
    {P(6, 2, 1, 2, 10), {500, 300, 300}, NOT_CONTROLLED, 2, VERTICAL, NULL},
    {P(7, 10, 7, 2, 10), {500, 800, 500}, NOT_CONTROLLED, 7, HORIZONTAL, NULL},
    {P(8, 3, 3, 3, 3), {500, 800, 800}, {1024, 512, 512}, 3, VERTICAL, NULL},
    {P(9, 10, 10, 2, 10), {500, 540, 500}, NOT_CONTROLLED, 10, NOTHING, NULL},
    {P(10, 10, 10, 2, 10), {500, 540, 540}, NOT_CONTROLLED, 10, VERTICAL, bounds_520_900},
    {P(11, 12, 15, 2, 10), {500, 800, 500}, NOT_CONTROLLED, 10, HORIZONTAL, NULL},
    {P(12, 10, HPA_INVALID, 2, 10), {500, 800, 800}, NOT_CONTROLLED, 10, VERTICAL, NULL},
    {P(13, 10, 10, 2, 10), {2000, 3000, 2000}, NOT_CONTROLLED, 10, NOTHING, max_2000},
    {P(14, 6, 6, 2, 10), NOT_CONTROLLED, {1024, 512, 1024}, 6, HELD_ABOVE_MIN, NULL},
    {H(1, 4, 6), {500, 800, 500}, NOT_CONTROLLED, 6, HORIZONTAL, NULL},
    {H(2, 4, 4), {500, 800, 800}, NOT_CONTROLLED, 4, VERTICAL, NULL},
    {H(3, 4, 4), {500, 800, 800}, {1024, 1060, 1060}, 4, VERTICAL, NULL},
    {H(4, 4, 3), NOT_CONTROLLED, {1024, 2048, 1024}, 3, HORIZONTAL, NULL},
    {H(5, 10, 14), {500, 800, 800}, NOT_CONTROLLED, 10, VERTICAL, NULL},
    {H(6, 4, HPA_INVALID), {500, 800, 800}, NOT_CONTROLLED, 4, VERTICAL, NULL},
    {H(7, 4, 4), {500, 530, 500}, {1024, 1060, 1024}, 4, NOTHING, NULL},
    {H(8, 4, 4), {500, 800, 600}, NOT_CONTROLLED, 4, VERTICAL, limit_600_requests_only},
    {V(1, 4, 6), {500, 800, 800}, NOT_CONTROLLED, 4, VERTICAL, NULL},
    {V(2, 4, 6), {500, 540, 500}, NOT_CONTROLLED, 6, HORIZONTAL, NULL},
    {V(3, 4, 6), {2000, 2600, 2000}, NOT_CONTROLLED, 6, HORIZONTAL, max_2000},
    {V(4, 4, 2), {500, 400, 400}, {1024, 1024, 1024}, 4, VERTICAL, NULL},
    {V(5, 4, 6), {500, 300, 500}, NOT_CONTROLLED, 6, HORIZONTAL, coupled},
    {V(6, 4, 6), NOT_CONTROLLED, {1024, 512, 512}, 4, VERTICAL, NULL},
    {V(7, 4, 4), {0, 250, 250}, NOT_CONTROLLED, 4, VERTICAL, NULL},
    {M(1, 4, 7), {500, 600, 500}, NOT_CONTROLLED, 7, HORIZONTAL, x1_vertical},
    {M(2, 4, 5), {500, 800, 800}, NOT_CONTROLLED, 4, VERTICAL, x1_horizontal},
    {M(3, 4, 7), {500, 800, 500}, NOT_CONTROLLED, 7, HORIZONTAL, x1_horizontal},
    {M(4, 4, 7), {500, 800, 800}, NOT_CONTROLLED, 4, VERTICAL, x1_vertical},
    {M(5, 4, 5), {500, 600, 500}, NOT_CONTROLLED, 4, BELOW, x1_horizontal},
    {M(6, 4, 5), {500, 600, 500}, NOT_CONTROLLED, 5, TD_TANDEM_THRESHOLD_PATIENCE_EXPIRED, x1_horizontal_waited},
    {M(7, 4, 6), {500, 700, 500}, NOT_CONTROLLED, 4, BELOW, x2_horizontal},
    {M(8, 4, 5), {500, 600, 600}, NOT_CONTROLLED, 4, VERTICAL, x1_horizontal_limit_550},
    {M(9, 4, 5), {500, 500, 500}, NOT_CONTROLLED, 5, HORIZONTAL, x1_vertical},
    {M(10, 4, 4), {500, 560, 560}, NOT_CONTROLLED, 4, VERTICAL, x1_horizontal},
    {M(11, 4, 1), {500, 250, 250}, NOT_CONTROLLED, 4, VERTICAL, x1_vertical},
    {M(12, 4, 7), {500, 900, 600}, NOT_CONTROLLED, 4, VERTICAL, x1_vertical_limit_600},
    {R(1, 4, 16), {500, 2000, 1000}, NOT_CONTROLLED, 8, BOTH, ratio_1},
    {"R2", TD_HVPA_RATIO_BASED, 1, 5, 1, 10, {1000, 5000, 1667}, NOT_CONTROLLED, 3, BOTH, ratio_1_from_1_to_8},
    {R(3, 4, 8), {500, 1000, 667}, NOT_CONTROLLED, 6, BOTH, ratio_1},
    {R(4, 4, 8), {500, 1000, 800}, NOT_CONTROLLED, 5, BOTH, ratio_3},
    {R(5, 4, 8), {500, 1000, 500}, NOT_CONTROLLED, 8, HORIZONTAL, ratio_0},
    {R(6, 3, 6), {300, 600, 360}, NOT_CONTROLLED, 5, BOTH, ratio_half},
    {R(7, 8, 4), {1000, 500, 800}, NOT_CONTROLLED, 5, BOTH, ratio_1},
    {R(8, 4, 4), {500, 1000, 708}, NOT_CONTROLLED, 4, VERTICAL, ratio_1},
    {R(9, 4, 5), {500, 500, 500}, NOT_CONTROLLED, 5, HORIZONTAL, ratio_1},
    {R(10, 5, 4), {500, 500, 500}, NOT_CONTROLLED, 4, HORIZONTAL, ratio_1},
    {R(11, 4, 2), {1000, 2000, 2000}, NOT_CONTROLLED, 2, BOTH, ratio_1},
    {R(12, 4, 8), {1000, 600, 1000}, {1024, 512, 1024}, 6, HORIZONTAL, ratio_1},
    {R(13, 4, 9), {500, 1125, 750}, {1024, 1280, 1280}, 6, BOTH, ratio_1},
    {R(14, 2, 4), {500, 1000, 500}, NOT_CONTROLLED, 4, HORIZONTAL, stages_4_10},
    {R(15, 2, 8), {500, 1000, 500}, NOT_CONTROLLED, 4, HORIZONTAL, stages_4_10},
    {R(16, 2, 8), {500, 1000, 1000}, NOT_CONTROLLED, 2, VERTICAL, stages_4_10_vertical},
    {R(17, 2, 6), {2000, 3000, 2000}, NOT_CONTROLLED, 4, HORIZONTAL, stages_4_10_vertical_max_2000},
    {R(18, 2, 6), {1000, 1000, 1000}, NOT_CONTROLLED, 2, FORBIDS, stages_4_10_vertical_max_2000},
    {R(19, 9, 16), {500, 1000, 849}, NOT_CONTROLLED, 10, BOTH, stages_4_10},
    {R(20, 10, 14), {500, 1000, 500}, NOT_CONTROLLED, 14, HORIZONTAL, stages_4_10_max_4000},
    {R(21, 10, 14), {500, 1000, 698}, NOT_CONTROLLED, 12, BOTH, stages_4_open_max_4000},
    {R(22, 20, 25), {500, 1000, 1000}, NOT_CONTROLLED, 20, VERTICAL, stages_4_open_max_4000},
    {R(23, 20, 25), {500, 1000, 1000}, NOT_CONTROLLED, 20, VERTICAL, stages_4_10_max_4000},
    {R(24, 20, 25), {500, 1000, 500}, NOT_CONTROLLED, 20, FORBIDS, stages_4_10_max_4000_no_overflow},
    {R(25, 12, 6), {1000, 500, 1000}, NOT_CONTROLLED, 10, HORIZONTAL, stages_4_10},
    {R(26, 4, 2), {1000, 500, 1000}, NOT_CONTROLLED, 2, HORIZONTAL, stages_4_10_min_100},
    {"R27", TD_HVPA_RATIO_BASED, 2, 1, 2, 20, {1000, 500, 500}, NOT_CONTROLLED, 2, VERTICAL, stages_open_10_min_100},
    {R(28, 4, 8), {0, 250, 250}, NOT_CONTROLLED, 6, BOTH, ratio_1},
    {X(1, 4, 16), {500, 500, 1000}, NOT_CONTROLLED, 8, BOTH, capacity_max},
    {X(2, 4, 4), {500, 2000, 1000}, NOT_CONTROLLED, 8, BOTH, capacity_max},
    {X(3, 4, 4), {500, 250, 500}, NOT_CONTROLLED, 4, FORBIDS, capacity_max},
    {X(4, 8, 4), {1000, 600, 800}, NOT_CONTROLLED, 6, BOTH, capacity_max},
    {X(5, 4, 16), {500, 500, 800}, NOT_CONTROLLED, 10, BOTH, capacity_max_800},
    {X(6, 4, 8), {500, 250, 667}, NOT_CONTROLLED, 6, BOTH, capacity_max},
};
/* clang-format on */

static void begin_row(const struct table_row *row, struct tandem_case *self)
{
    tandem_case_init(self, row->mode);
    self->hvpa.hpa.min_replicas = row->min;
    self->hvpa.hpa.max_replicas = row->max;
    self->in.replicas = row->n;
    self->in.is_horizontal_valid = row->d != HPA_INVALID;
    self->in.desired_replicas = row->d;
    if (row->cpu.target > 0) {
        tandem_case_add(self, APP, TD_HVPA_CPU, row->cpu.request, row->cpu.target);
    }
    if (row->memory.target > 0) {
        tandem_case_add(self, APP, TD_HVPA_MEMORY, row->memory.request * MI,
                        row->memory.target * MI);
    }
    if (row->setup) {
        row->setup(self);
    }
}

/* A table's row gives the replicas, requests and reason that the table says. */
static void test_table_row(void **state)
{
    const struct table_row *row = *state;
    struct tandem_case self;
    begin_row(row, &self);
    tandem_case_decide(&self);
    assert_int_equal(self.decision.replicas, row->replicas);
    size_t i = 0;
    if (row->cpu.target > 0) {
        assert_int_equal(self.outcomes[i++].request, row->cpu.decided);
    }
    if (row->memory.target > 0) {
        assert_int_equal(self.outcomes[i++].request, row->memory.decided * MI);
    }
    assert_int_equal(i, self.in.row_count);
    assert_string_equal(td_tandem_reason_name(self.decision.reason).ptr,
                        td_tandem_reason_name(row->reason).ptr);
}

/* Two containers with R13's replicas: each row gets its own share. */
static void test_two_containers_each_get_their_share(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_RATIO_BASED);
    self.hvpa.hpa.min_replicas = 1;
    self.hvpa.hpa.max_replicas = 20;
    ratio_1(&self);
    self.in.replicas = 4;
    self.in.desired_replicas = 9;
    tandem_case_add(&self, APP, TD_HVPA_CPU, 500, 1125);
    tandem_case_add(&self, TD_STR("sidecar"), TD_HVPA_CPU, 100, 200);
    tandem_case_decide(&self);
    assert_int_equal(self.decision.replicas, 6);
    assert_int_equal(self.outcomes[0].request, 750);
    assert_int_equal(self.outcomes[1].request, 142);
}

/* What one row of G or E asks: one row of cpu or memory, and what became of both axes. */
static void decide_cpu(struct tandem_case *self, int32_t n, int32_t d, int64_t request,
                       int64_t target)
{
    self->in.replicas = n;
    self->in.desired_replicas = d;
    tandem_case_add(self, APP, TD_HVPA_CPU, request, target);
    tandem_case_decide(self);
}

static void test_G1_stabilization_holds_the_biased_axis(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_HPA_BIASED);
    self.hvpa.horizontal_up.stabilization = 2 * TD_MINUTE;
    self.in.last_horizontal = tandem_ago(60);
    decide_cpu(&self, 4, 6, 500, 800);
    assert_int_equal(self.decision.axis, TD_TANDEM_AXIS_NONE);
    assert_int_equal(self.decision.reason, TD_TANDEM_BLOCKED);
    assert_int_equal(self.decision.horizontal_block, TD_TANDEM_BLOCK_STABILIZATION_WINDOW);
    assert_int_equal(self.outcomes[0].block, TD_TANDEM_BLOCK_NONE);
}

static void test_G2_a_switched_off_axis_lets_the_other_act(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_HPA_BIASED);
    self.hvpa.horizontal_up.update = TD_HVPA_UPDATE_OFF;
    decide_cpu(&self, 4, 6, 500, 800);
    assert_int_equal(self.decision.replicas, 4);
    assert_int_equal(self.outcomes[0].request, 800);
    assert_int_equal(self.decision.horizontal_block, TD_TANDEM_BLOCK_UPDATE_POLICY);
}

static void test_G3_a_closed_window_removes_the_wish(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_VPA_BIASED);
    self.hvpa.vertical_down.update = TD_HVPA_UPDATE_WINDOW;
    self.hvpa.window =
        (struct td_hvpa_window){.is_set = true, .begin_second = 79200, .end_second = 82800};
    decide_cpu(&self, 4, 6, 500, 300);
    assert_int_equal(self.decision.replicas, 6);
    assert_int_equal(self.outcomes[0].request, 500);
    assert_int_equal(self.outcomes[0].block, TD_TANDEM_BLOCK_MAINTENANCE_WINDOW);
}

/* Both ends of a window that spans midnight belong to it. */
static void test_G4_a_window_spans_midnight(void **state)
{
    (void)state;
    static const struct {
        int32_t second_of_day;
        bool is_inside;
    } rows[] = {{82799, false}, {82800, true}, {3540, true}, {3600, true}, {3601, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_case self;
        tandem_case_init(&self, TD_HVPA_VPA_BIASED);
        self.hvpa.vertical_up.update = TD_HVPA_UPDATE_WINDOW;
        self.hvpa.window =
            (struct td_hvpa_window){.is_set = true, .begin_second = 82800, .end_second = 3600};
        self.in.now.unix_seconds = TANDEM_NOON - 43200 + rows[i].second_of_day;
        decide_cpu(&self, 4, 4, 500, 800);
        assert_int_equal(self.outcomes[0].request, rows[i].is_inside ? 800 : 500);
    }
}

static void min_change_200(struct tandem_case *self)
{
    tandem_case_init(self, TD_HVPA_HPA_BIASED);
    self->hvpa.vertical_up.min_change[TD_HVPA_CPU] =
        (struct td_hvpa_change){.has_value = true, .amount = 200};
}

static void test_G5_min_change_holds_and_says_so(void **state)
{
    (void)state;
    struct tandem_case self;
    min_change_200(&self);
    decide_cpu(&self, 4, 4, 500, 600);
    assert_int_equal(self.outcomes[0].request, 500);
    assert_int_equal(self.outcomes[0].block, TD_TANDEM_BLOCK_MIN_CHANGE);
    assert_int_equal(self.decision.reason, TD_TANDEM_NO_CHANGE);
}

static void test_G6_the_smaller_of_value_and_percentage_counts(void **state)
{
    (void)state;
    struct tandem_case self;
    min_change_200(&self);
    self.hvpa.vertical_up.min_change[TD_HVPA_CPU].has_percentage = true;
    self.hvpa.vertical_up.min_change[TD_HVPA_CPU].percentage = 10;
    decide_cpu(&self, 4, 4, 500, 600);
    assert_int_equal(self.outcomes[0].request, 600);
}

static void test_G7_a_breached_bound_beats_min_change(void **state)
{
    (void)state;
    struct tandem_case self;
    min_change_200(&self);
    self.in.replicas = 4;
    self.in.desired_replicas = 4;
    tandem_case_add(&self, APP, TD_HVPA_CPU, 500, 600)->lower =
        (struct td_tandem_bound){.is_set = true, .amount = 550};
    tandem_case_decide(&self);
    assert_int_equal(self.outcomes[0].request, 600);
}

static void test_G8_a_gated_axis_leaves_its_share_alone(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_RATIO_BASED);
    self.hvpa.hpa.min_replicas = 1;
    self.hvpa.hpa.max_replicas = 20;
    ratio_1(&self);
    self.hvpa.horizontal_up.stabilization = 2 * TD_MINUTE;
    self.in.last_horizontal = tandem_ago(90);
    decide_cpu(&self, 4, 8, 500, 1000);
    assert_int_equal(self.decision.replicas, 4);
    assert_int_equal(self.outcomes[0].request, 708);
    assert_int_equal(self.decision.horizontal_block, TD_TANDEM_BLOCK_STABILIZATION_WINDOW);
}

static void test_G9_an_unfinished_resize_lets_the_hpa_act(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_VPA_BIASED);
    self.in.resize = TD_TANDEM_RESIZE_IN_PROGRESS;
    decide_cpu(&self, 4, 6, 500, 800);
    assert_int_equal(self.decision.replicas, 6);
    assert_int_equal(self.outcomes[0].request, 500);
    assert_int_equal(self.outcomes[0].block, TD_TANDEM_BLOCK_RESIZE_IN_PROGRESS);
}

static void test_G10_a_decrease_waits_until_replicas_have_settled(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_HPA_BIASED);
    self.in.last_horizontal = tandem_ago(30);
    decide_cpu(&self, 4, 4, 500, 300);
    assert_int_equal(self.decision.axis, TD_TANDEM_AXIS_NONE);
    assert_int_equal(self.outcomes[0].block, TD_TANDEM_BLOCK_SETTLING);
    assert_int_equal(self.decision.reason, TD_TANDEM_BLOCKED);
}

static struct td_tandem_row *add_killed(struct tandem_case *self, int64_t request_mi,
                                        int64_t target_mi)
{
    struct td_tandem_row *row =
        tandem_case_add(self, APP, TD_HVPA_MEMORY, request_mi * MI, target_mi * MI);
    row->is_emergency = true;
    return row;
}

static void test_E1_a_killed_container_grows_in_every_stage(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_HPA_PREFERRED);
    self.in.replicas = 3;
    self.in.desired_replicas = 3;
    add_killed(&self, 1024, 1536);
    tandem_case_decide(&self);
    assert_int_equal(self.decision.replicas, 3);
    assert_int_equal(self.outcomes[0].request, 1536 * MI);
    assert_int_equal(self.decision.reason, TD_TANDEM_EMERGENCY_MEMORY);
    assert_true(self.decision.is_emergency);
}

static void test_E2_emergency_joins_what_the_mode_decided(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_HPA_BIASED);
    add_killed(&self, 1024, 1536);
    decide_cpu(&self, 3, 5, 500, 800);
    assert_int_equal(self.decision.replicas, 5);
    assert_int_equal(self.outcomes[0].request, 1536 * MI);
    assert_int_equal(self.outcomes[1].request, 500);
    assert_int_equal(self.decision.reason, TD_TANDEM_HORIZONTAL_APPLIED);
    assert_int_equal(self.decision.axis, TD_TANDEM_AXIS_BOTH);
}

static const enum td_hvpa_mode modes[] = {TD_HVPA_HPA_PREFERRED, TD_HVPA_HPA_BIASED,
                                          TD_HVPA_VPA_BIASED, TD_HVPA_MIXED, TD_HVPA_RATIO_BASED};

static void decide_killed(struct tandem_case *self, enum td_hvpa_mode mode, int64_t target_mi,
                          int64_t max_mi, enum td_hvpa_update update)
{
    tandem_case_init(self, mode);
    self->in.replicas = 3;
    self->in.desired_replicas = 3;
    self->hvpa.vertical_up.update = update;
    struct td_tandem_row *row = add_killed(self, 1024, target_mi);
    row->max_allowed = (struct td_tandem_bound){.is_set = max_mi > 0, .amount = max_mi * MI};
    tandem_case_decide(self);
}

static void test_E3_the_flag_waits_for_the_recommender(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct tandem_case self;
        decide_killed(&self, modes[i], 1024, 0, TD_HVPA_UPDATE_AUTO);
        assert_int_equal(self.decision.axis, TD_TANDEM_AXIS_NONE);
        assert_false(self.decision.is_emergency);
        assert_true(self.outcomes[0].can_emergency_act);
        assert_false(self.outcomes[0].is_at_max_allowed);
    }
}

static void test_E4_off_means_off_for_emergencies_too(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct tandem_case self;
        decide_killed(&self, modes[i], 1536, 0, TD_HVPA_UPDATE_OFF);
        assert_int_equal(self.outcomes[0].request, 1024 * MI);
        assert_int_equal(self.outcomes[0].block, TD_TANDEM_BLOCK_UPDATE_POLICY);
        assert_int_equal(self.decision.reason, TD_TANDEM_BLOCKED);
        assert_false(self.outcomes[0].can_emergency_act);
    }
}

static void test_E5_emergency_takes_memory_in_full(void **state)
{
    (void)state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_RATIO_BASED);
    self.hvpa.hpa.min_replicas = 1;
    self.hvpa.hpa.max_replicas = 20;
    ratio_1(&self);
    add_killed(&self, 1024, 2048);
    decide_cpu(&self, 4, 8, 500, 1000);
    assert_int_equal(self.decision.replicas, 6);
    assert_int_equal(self.outcomes[0].request, 2048 * MI);
    assert_int_equal(self.outcomes[1].request, 667);
    assert_int_equal(self.decision.reason, TD_TANDEM_BOTH_APPLIED);
}

static void test_E6_at_max_allowed_nothing_is_left_but_a_warning(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct tandem_case self;
        decide_killed(&self, modes[i], 1536, 1024, TD_HVPA_UPDATE_AUTO);
        assert_int_equal(self.decision.axis, TD_TANDEM_AXIS_NONE);
        assert_true(self.outcomes[0].is_at_max_allowed);
    }
}

struct reconcile_row {
    const char *id;
    int32_t utilization;
    int64_t usage; /* below 0: unknown */
    int64_t request;
    int64_t target;
    int64_t expected;
    bool is_conflict;
};

static const struct reconcile_row reconcile_table[] = {
    {"Reconcile1 keeps the size the HPA is content with", 50, 500, 1000, 575, 1000, false},
    {"Reconcile2 rounds up", 60, 301, 600, 347, 502, false},
    {"Reconcile3 no wish", 80, 400, 500, 460, 500, false},
    {"Reconcile4 spike asks for the HPA's factor", 50, 2500, 1000, 575, 5000, false},
    {"Reconcile5 headroom conflict", 50, 500, 1000, 1200, 1200, true},
    {"Reconcile6 never shrinks blind", 50, -1, 1000, 575, 1000, false},
};

/* A row of the table of Reconcile gives its target and its condition. */
static void test_reconcile_row(void **state)
{
    const struct reconcile_row *expected = *state;
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_RATIO_BASED);
    struct td_tandem_row *row =
        tandem_case_add(&self, APP, TD_HVPA_CPU, expected->request, expected->target);
    row->coupling = (struct td_tandem_coupling){
        .is_coupled = true,
        .utilization = expected->utilization,
        .usage = {.is_set = expected->usage >= 0, .amount = expected->usage}};
    self.in.hvpa = &self.hvpa;
    assert_int_equal(td_tandem_wish_of(&self.in, row).target, expected->expected);
    int64_t in_template = expected->request;
    struct td_tandem_coupled_condition condition =
        td_tandem_coupled_of(&self.hvpa, row, &in_template, 1);
    assert_int_equal(condition.reason, expected->is_conflict ? TD_TANDEM_COUPLED_HEADROOM_CONFLICT
                                                             : TD_TANDEM_COUPLED_FALSE);
}

#define TABLE_COUNT (sizeof(table) / sizeof(table[0]))
#define RECONCILE_COUNT (sizeof(reconcile_table) / sizeof(reconcile_table[0]))

/* cmocka hands state on as a plain pointer; the tests only read the rows. */
static void *state_of(const void *row)
{
    return (void *)(uintptr_t)row;
}

int main(void)
{
    static const struct CMUnitTest single[] = {
        cmocka_unit_test(test_two_containers_each_get_their_share),
        cmocka_unit_test(test_G1_stabilization_holds_the_biased_axis),
        cmocka_unit_test(test_G2_a_switched_off_axis_lets_the_other_act),
        cmocka_unit_test(test_G3_a_closed_window_removes_the_wish),
        cmocka_unit_test(test_G4_a_window_spans_midnight),
        cmocka_unit_test(test_G5_min_change_holds_and_says_so),
        cmocka_unit_test(test_G6_the_smaller_of_value_and_percentage_counts),
        cmocka_unit_test(test_G7_a_breached_bound_beats_min_change),
        cmocka_unit_test(test_G8_a_gated_axis_leaves_its_share_alone),
        cmocka_unit_test(test_G9_an_unfinished_resize_lets_the_hpa_act),
        cmocka_unit_test(test_G10_a_decrease_waits_until_replicas_have_settled),
        cmocka_unit_test(test_E1_a_killed_container_grows_in_every_stage),
        cmocka_unit_test(test_E2_emergency_joins_what_the_mode_decided),
        cmocka_unit_test(test_E3_the_flag_waits_for_the_recommender),
        cmocka_unit_test(test_E4_off_means_off_for_emergencies_too),
        cmocka_unit_test(test_E5_emergency_takes_memory_in_full),
        cmocka_unit_test(test_E6_at_max_allowed_nothing_is_left_but_a_warning),
    };
    static struct CMUnitTest rows[TABLE_COUNT + RECONCILE_COUNT];
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        rows[i] = (struct CMUnitTest){
            .name = table[i].id, .test_func = test_table_row, .initial_state = state_of(&table[i])};
    }
    for (size_t i = 0; i < RECONCILE_COUNT; i++) {
        rows[TABLE_COUNT + i] = (struct CMUnitTest){.name = reconcile_table[i].id,
                                                    .test_func = test_reconcile_row,
                                                    .initial_state = state_of(&reconcile_table[i])};
    }
    int failed = cmocka_run_group_tests_name("single", single, NULL, NULL);
    return cmocka_run_group_tests_name("tables", rows, NULL, NULL) + failed;
}
