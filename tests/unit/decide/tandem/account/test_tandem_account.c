/* The account of a decision says what was wanted, done, held and comes next, and what it says
 * would change the decision does. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/error.h"
#include "decide/tandem/account/account.h"
#include "support/tandem_random.h"

#define ARENA_BYTES_MAX ((size_t)64 << 20)
#define TEXT_BYTES_MAX ((size_t)1 << 20)
#define APP TD_STR("app")

static void begin(struct tandem_case *self, enum td_hvpa_mode mode)
{
    tandem_case_init(self, mode);
    self->hvpa.meta.name = TD_STR("web");
    self->hvpa.meta.namespace = TD_STR("shop");
    self->in.replicas = 4;
    self->in.desired_replicas = 4;
}

static void check_text(struct tandem_case *self, td_str why, const char *expected)
{
    td_auto_arena arena;
    td_auto_buf out;
    td_arena_init(&arena, ARENA_BYTES_MAX);
    td_buf_init(&out, TEXT_BYTES_MAX);
    tandem_case_decide(self);
    struct td_tandem_account account = {
        .in = &self->in, .decision = &self->decision, .horizontal_why = why};
    td_tandem_account_write(&arena, &account, TD_TANDEM_ACCOUNT_TEXT, &out);
    assert_string_equal(out.ptr, expected);
}

/* A shared change shows both wishes and the arithmetic that split it. */
static void test_account_of_a_shared_change(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, TD_HVPA_RATIO_BASED);
    self.hvpa.hpa.min_replicas = 1;
    self.hvpa.hpa.max_replicas = 20;
    self.hvpa.ratio.has_start = true;
    self.hvpa.ratio.start = 2;
    self.hvpa.ratio.has_finish = true;
    self.hvpa.ratio.finish = 18;
    self.in.desired_replicas = 8;
    tandem_case_add(&self, APP, TD_HVPA_CPU, 500, 1000);
    tandem_case_add(&self, APP, TD_HVPA_MEMORY, 1024 * MI, 1024 * MI);
    check_text(
        &self, TD_STR("cpu 86% of target 60% over 4 ready pods"),
        "web (Hvpa shop/web, RatioBased 1:1, replicas 1..20, ratio stage 2..18) decided at "
        "2026-03-10T12:00:00Z\n"
        "\n"
        "  wanted  horizontally  8 replicas            cpu 86% of target 60% over 4 ready pods\n"
        "          vertically    cpu 1                 +100% of 500m\n"
        "                        memory 1Gi            no change\n"
        "  did     4 → 6 replicas and cpu 500m → 667m: replicas and requests share the change\n"
        "          4·(8/4)^0.5 = 5.66 → 6\n"
        "          the rest goes into size: 500m·(1/500m)^0.5·5.66/6 = 667m\n"
        "          capacity 2 → 4.002 cpu\n"
        "  held    nothing\n"
        "  next    larger requests are possible from 12:03:00 (3m0s)\n"
        "          usage counts as settled from 12:01:00 (1m0s)\n"
        "          smaller requests are possible from 12:15:00 (15m0s)\n"
        "  would change it:  a desired count of 6 replicas gives 5;  maxAllowed of cpu below 667m "
        "caps it;"
        "  a target of 1127Mi for memory is followed\n");
}

/* A wish that is held has its reason, and what would let it through. */
static void test_account_of_a_held_wish(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, TD_HVPA_HPA_BIASED);
    self.in.desired_replicas = 6;
    self.hvpa.vertical_down.update = TD_HVPA_UPDATE_OFF;
    tandem_case_add(&self, APP, TD_HVPA_CPU, 500, 300);
    check_text(
        &self, TD_STR_EMPTY,
        "web (Hvpa shop/web, HPABiased, replicas 2..10) decided at 2026-03-10T12:00:00Z\n\n "
        " wanted  horizontally  6 replicas\n          vertically    cpu 300m              "
        "-40% of 500m\n  did     4 → 6 replicas: replicas follow the HPA\n          "
        "capacity 2 → 3 cpu\n  held    cpu 500m → 300m: updateMode Off for this direction\n "
        " next    usage counts as settled from 12:01:00 (1m0s)\n  would change it:  cpu "
        "500m → 300m: vertical.scaleDown.updatePolicy.updateMode: Auto allows it;  a desired "
        "count of 5 replicas gives 5\n");
}

/* Nothing known at all is said plainly. */
static void test_account_of_missing_verdicts(void **state)
{
    (void)state;
    struct tandem_case self;
    begin(&self, TD_HVPA_MIXED);
    self.in.is_horizontal_valid = false;
    self.in.is_vertical_valid = false;
    check_text(&self, TD_STR("no metrics for 3 minutes"),
               "web (Hvpa shop/web, Mixed, replicas 2..10) decided at 2026-03-10T12:00:00Z\n\n  "
               "wanted  horizontally  unknown: no usable metric  no metrics for 3 minutes\n        "
               "  vertically    unknown\n  did     nothing: neither the HPA nor the VPA has a "
               "recommendation yet\n  held    nothing\n  next    no pending window\n  "
               "would change it:  a desired count of 5 replicas gives 5\n");
}

/* Any decision has an account in both forms; every wish that was significant and not made is in
 * it. */
static void test_every_decision_has_an_account(void **state)
{
    (void)state;
    static struct tandem_case self;
    struct tandem_random random = {.state = 5};
    td_auto_arena arena;
    td_auto_buf out;
    td_arena_init(&arena, ARENA_BYTES_MAX);
    td_buf_init(&out, TEXT_BYTES_MAX);
    for (int i = 0; i < 3000; i++) {
        tandem_random_case(&random, &self);
        tandem_case_decide(&self);
        struct td_tandem_account account = {.in = &self.in, .decision = &self.decision};
        td_tandem_account_write(&arena, &account, TD_TANDEM_ACCOUNT_TEXT, &out);
        td_buf_reset(&out);
        td_tandem_account_write(&arena, &account, TD_TANDEM_ACCOUNT_JSON, &out);
        struct td_json *tree = NULL;
        assert_int_equal(td_json_parse(&arena, td_buf_str(&out), NULL, &tree, NULL), TD_OK);
        size_t expected = 0;
        for (size_t r = 0; r < self.in.row_count; r++) {
            bool is_held =
                self.outcomes[r].request == self.rows[r].request &&
                (self.outcomes[r].block != TD_TANDEM_BLOCK_NONE || self.outcomes[r].is_significant);
            expected += is_held ? 1 : 0;
        }
        const struct td_json *held = td_json_get(tree, TD_STR("held"));
        assert_true(held->count >= expected);
        assert_true(held->count <= expected + 1);
        td_buf_reset(&out);
        td_arena_reset(&arena);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_account_of_a_shared_change),
        cmocka_unit_test(test_account_of_a_held_wish),
        cmocka_unit_test(test_account_of_missing_verdicts),
        cmocka_unit_test(test_every_decision_has_an_account),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
