/* A resize on its way, given up and tried again; memory emergencies; verdicts in words. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "decide/tandem/emergency.h"
#include "decide/tandem/progress.h"
#include "decide/tandem/requests.h"
#include "decide/tandem/verdict.h"
#include "support/tandem_cases.h"
#include "unit/decide/support.h"
#include "unit/decide/vertical_support.h"

#define ARENA_BYTES ((size_t)8 << 20)
#define NOW (1000 * TD_HOUR)

static struct td_hvpa_requests memory_of(struct td_arena *arena, const char *text)
{
    struct td_hvpa_requests made = {.count = 0};
    struct td_quantity quantity;
    assert_int_equal(td_quantity_parse(arena, td_str_from(text), &quantity, NULL), TD_OK);
    td_tandem_request_put(arena, &made, TD_STR("app"), TD_HVPA_MEMORY, &quantity);
    return made;
}

static struct td_pod pod_of(struct td_arena *arena, const char *memory, const char *ready,
                            const char *last_state)
{
    return vertical_pod(
        arena, td_arena_format(
                   arena,
                   "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\"},\"spec\":{\"containers\":"
                   "[{\"name\":\"app\",\"resources\":{\"requests\":{\"memory\":\"%s\"}}}]},"
                   "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
                   "\"status\":\"%s\"}],\"containerStatuses\":[{\"name\":\"app\"%s}]}}",
                   memory, ready, last_state)
                   .ptr);
}

static struct td_tandem_row *add_row(struct tandem_case *self, enum td_hvpa_resource resource,
                                     int64_t request, int64_t target)
{
    struct td_tandem_row *row = tandem_case_add(self, TD_STR("app"), resource, request, target);
    self->in.hvpa = &self->hvpa;
    self->in.rows = self->rows;
    self->in.row_count = (size_t)(row - self->rows) + 1;
    return row;
}

static void test_a_resize_is_given_up_after_a_quarter_of_an_hour(void **unused)
{
    (void)unused;
    static const struct {
        const char *memory; /* of the pod; 200Mi are decided */
        const char *ready;
        td_duration since; /* that the condition Progressing is true; 0: it is not */
        bool is_progressing;
        bool is_growing;
        bool is_given_up;
    } rows[] = {
        {"200Mi", "True", TD_HOUR, false, false, false},
        {"100Mi", "True", 0, true, true, false},
        {"100Mi", "False", 14 * TD_MINUTE, true, false, false},
        {"300Mi", "True", 14 * TD_MINUTE, true, false, false},
        {"100Mi", "True", 15 * TD_MINUTE, false, false, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct tandem_case self;
        tandem_case_init(&self, TD_HVPA_RATIO_BASED);
        self.hvpa.has_vpa = true;
        struct td_vpa_condition condition = {
            .type = TD_STR("Progressing"),
            .status = rows[i].since > 0 ? TD_STR("True") : TD_STR("False"),
            .last_transition = td_time_to_instant(NOW - rows[i].since)};
        self.hvpa.status.conditions = &condition;
        self.hvpa.status.condition_count = 1;
        const struct td_hvpa_requests decided = memory_of(&arena, "200Mi");
        const struct td_hvpa_requests limits = {.count = 0};
        const struct td_pod pod = pod_of(&arena, rows[i].memory, rows[i].ready, "");
        struct td_tandem_progress_input input = {.hvpa = &self.hvpa,
                                                 .decided = &decided,
                                                 .limits = &limits,
                                                 .pods = &pod,
                                                 .pod_count = 1,
                                                 .now = NOW};
        struct td_tandem_progress made = td_tandem_progress_of(&input);
        assert_int_equal(made.is_progressing, rows[i].is_progressing);
        assert_int_equal(made.is_growing, rows[i].is_growing);
        assert_int_equal(made.is_given_up, rows[i].is_given_up);
        assert_int_equal(made.is_dropped, rows[i].is_given_up); /* no pod has it */
        assert_int_equal(made.infeasible.is_set, rows[i].is_given_up);
        if (!rows[i].is_given_up) {
            continue;
        }
        /* It is not begun again, for an hour or until less is wanted. */
        self.hvpa.status.infeasible = made.infeasible;
        input.now = NOW + 59 * TD_MINUTE;
        made = td_tandem_progress_of(&input);
        assert_true(made.infeasible.is_set);
        assert_false(made.is_progressing);
        struct td_tandem_row *row =
            add_row(&self, TD_HVPA_MEMORY, INT64_C(100) << 20, INT64_C(200) << 20);
        assert_int_equal(td_tandem_resize_of(&made, &self.in), TD_TANDEM_RESIZE_INFEASIBLE);
        row->target = INT64_C(150) << 20;
        row->uncapped = row->target;
        assert_int_equal(td_tandem_resize_of(&made, &self.in), TD_TANDEM_RESIZE_NONE);
        condition.status = TD_STR("False");
        input.now = NOW + TD_HOUR;
        made = td_tandem_progress_of(&input);
        assert_false(made.infeasible.is_set);
        assert_true(made.is_progressing);
    }
}

static void test_a_paused_hvpa_waits_for_no_pod(void **unused)
{
    (void)unused;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    const struct td_hvpa_requests decided = memory_of(&arena, "200Mi");
    const struct td_hvpa_requests limits = {.count = 0};
    const struct td_pod pod = pod_of(&arena, "100Mi", "True", "");
    struct td_hvpa hvpa = {.has_vpa = true, .paused = true};
    const struct td_tandem_progress_input input = {.hvpa = &hvpa,
                                                   .decided = &decided,
                                                   .limits = &limits,
                                                   .pods = &pod,
                                                   .pod_count = 1,
                                                   .now = NOW};
    assert_false(td_tandem_progress_of(&input).is_progressing);
    hvpa.paused = false;
    assert_true(td_tandem_progress_of(&input).is_progressing);
    hvpa.vertical_up.update = TD_HVPA_UPDATE_OFF;
    hvpa.vertical_down.update = TD_HVPA_UPDATE_OFF;
    assert_false(td_tandem_progress_of(&input).is_progressing);
}

#define KILLED(reason)                                                                             \
    ",\"lastState\":{\"terminated\":{\"reason\":\"" reason                                         \
    "\",\"finishedAt\":\"1970-02-11T16:00:00Z\"}}"
#define KILLED_AT (1000 * TD_HOUR)

static void test_a_kill_raises_a_flag_once(void **unused)
{
    (void)unused;
    static const struct {
        const char *memory;
        const char *last_state;
        td_duration after;   /* the kill, it is now */
        td_duration applied; /* the last vertical change, before the kill; 0: none */
        size_t count;
    } rows[] = {
        {"200Mi", KILLED("OOMKilled"), TD_MINUTE, 0, 1},
        {"200Mi", KILLED("Error"), TD_MINUTE, 0, 0},
        {"100Mi", KILLED("OOMKilled"), TD_MINUTE, 0, 0}, /* with another size */
        {"200Mi", KILLED("OOMKilled"), 30 * TD_MINUTE, 0, 0},
        {"200Mi", KILLED("OOMKilled"), TD_MINUTE, TD_MINUTE, 1},
        {"200Mi", KILLED("OOMKilled"), TD_MINUTE, -TD_SECOND, 0}, /* it got more since */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const struct td_hvpa_requests decided = memory_of(&arena, "200Mi");
        const struct td_pod pod = pod_of(&arena, rows[i].memory, "True", rows[i].last_state);
        const struct td_hvpa_status status = {.has_vertical_time = rows[i].applied != 0,
                                              .vertical_time =
                                                  td_time_to_instant(KILLED_AT - rows[i].applied)};
        struct td_tandem_emergencies all = {.arena = &arena,
                                            .before = &status,
                                            .decided = &decided,
                                            .now = KILLED_AT + rows[i].after,
                                            .seen = TD_TIME_NONE};
        td_tandem_emergencies_recall(&all);
        td_tandem_emergencies_add_kills(&all, &pod);
        assert_int_equal(all.count, rows[i].count);
        assert_int_equal(all.newest, rows[i].count > 0 ? KILLED_AT : TD_TIME_NONE);
        struct td_tandem_emergencies again = {.arena = &arena,
                                              .before = &status,
                                              .decided = &decided,
                                              .now = all.now,
                                              .seen = all.newest};
        td_tandem_emergencies_recall(&again);
        td_tandem_emergencies_add_kills(&again, &pod);
        assert_int_equal(again.count, 0);
    }
}

static void test_a_flag_goes_with_more_memory_or_with_time(void **unused)
{
    (void)unused;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_RATIO_BASED);
    (void)add_row(&self, TD_HVPA_MEMORY, 100, 100);
    struct td_hvpa_emergency flag = {.container = TD_STR("app"), .usable_seconds = 1700};
    struct td_hvpa_status status = {.emergency = &flag, .emergency_count = 1};
    struct td_tandem_outcome outcome = {.request = 100};
    struct td_tandem_emergencies all = {.arena = &arena, .before = &status, .seen = TD_TIME_NONE};
    td_tandem_emergencies_recall(&all);
    td_tandem_emergencies_settle(&all, &self.in, &outcome, 100); /* held: its time stands still */
    assert_int_equal(all.items[0].usable_seconds, 1700);
    outcome.can_emergency_act = true;
    td_tandem_emergencies_settle(&all, &self.in, &outcome, 100);
    assert_int_equal(all.items[0].usable_seconds, 1800);
    flag = all.items[0];
    struct td_tandem_emergencies next = {.arena = &arena, .before = &status, .seen = TD_TIME_NONE};
    td_tandem_emergencies_recall(&next);
    assert_int_equal(next.count, 0);
    outcome.request = 120;
    td_tandem_emergencies_settle(&all, &self.in, &outcome, 1);
    assert_int_equal(all.count, 0);
}

static void test_a_decision_is_told_with_its_reason(void **unused)
{
    (void)unused;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct tandem_case self;
    tandem_case_init(&self, TD_HVPA_RATIO_BASED);
    self.in.replicas = 2;
    (void)add_row(&self, TD_HVPA_CPU, 100, 100);
    (void)add_row(&self, TD_HVPA_MEMORY, 1 << 20, 1 << 20);
    struct td_tandem_outcome outcomes[] = {{.request = 100}, {.request = 2 << 20}};
    struct td_tandem_decision decision = {
        .replicas = 4, .reason = TD_TANDEM_BOTH_APPLIED, .outcomes = outcomes, .outcome_count = 2};
    td_str mode = td_hvpa_mode_name(self.hvpa.mode);
    assert_string_equal(
        td_tandem_scaled_text(&arena, &self.in, &decision).ptr,
        td_arena_format(&arena, "2 -> 4 replicas; BothApplied, %.*s", TD_STR_ARG(mode)).ptr);
    decision.blend.has_stage = true;
    decision.blend.stage = TD_TANDEM_RATIO;
    assert_string_equal(
        td_tandem_resized_text(&arena, &self.in, &decision).ptr,
        td_arena_format(&arena, "app memory 1Mi -> 2Mi; BothApplied, %.*s, Ratio", TD_STR_ARG(mode))
            .ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_resize_is_given_up_after_a_quarter_of_an_hour),
        cmocka_unit_test(test_a_paused_hvpa_waits_for_no_pod),
        cmocka_unit_test(test_a_kill_raises_a_flag_once),
        cmocka_unit_test(test_a_flag_goes_with_more_memory_or_with_time),
        cmocka_unit_test(test_a_decision_is_told_with_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
