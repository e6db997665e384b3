/* The track estimator: its sentences, what it keeps, and its place behind the interface. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "decide/vertical/estimator/estimator.h"
#include "decide/vertical/estimator/track.h"

#define START INT64_C(1772323200) /* 2026-03-01 */
#define MIB (INT64_C(1) << 20)
#define ARENA_BYTES ((size_t)1 << 20)
#define STATE_BYTES_MAX 4096

static void check_text(const struct td_track_answer *answer, const char *expected)
{
    td_auto_buf text = td_buf_capped(1024);
    td_track_write_cpu(answer, false, &text);
    assert_true(td_str_equal(td_buf_str(&text), td_str_from(expected)));
}

static void test_track_explains_itself(void **unused)
{
    (void)unused;
    struct td_track_answer answer = {.target = 431,
                                     .recent = 392,
                                     .margin = 100000,
                                     .reason = TD_TRACK_RECENT_USE,
                                     .base = TD_TRACK_RECENT_USE,
                                     .judged = 500,
                                     .over = 18};
    check_text(&answer, "cpu 431m: three quarters of the last hour 392m, +10 % margin learnt from "
                        "3.6 % shortage");
    answer.judged = 0;
    answer.margin = 105000;
    check_text(&answer, "cpu 431m: three quarters of the last hour 392m, +10.5 % margin");
    answer.floor = 700;
    answer.target = 773;
    answer.reason = answer.base = TD_TRACK_USUAL_HOUR;
    check_text(&answer, "cpu 773m: a usual hour of the last day 700m (three quarters of the last "
                        "hour 392m), +10.5 % margin");
    answer.reason = answer.base = TD_TRACK_FIRST_DAY;
    check_text(&answer, "cpu 773m: a busy hour of the first day 700m (three quarters of the last "
                        "hour 392m), +10.5 % margin");
    answer.reason = TD_TRACK_MINIMUM;
    answer.base = TD_TRACK_RECENT_USE;
    answer.target = 10;
    answer.recent = 3;
    check_text(&answer, "cpu 10m: minimum; three quarters of the last hour 3m, +10.5 % margin");
    answer.reason = TD_TRACK_NO_DATA;
    check_text(&answer, "cpu 10m: minimum, no samples yet");
}

/* Half an hour above a request of 100m, half an hour below one of 900m: six slots each. */
static void test_track_counts_what_its_margin_learnt_from(void **unused)
{
    (void)unused;
    const struct td_track_params *params = td_track_params_of(TD_TRACK_BALANCED);
    struct td_track state;
    struct td_track_answer answer;
    td_track_init(&state);
    for (int slot = 0; slot <= 12; slot++) {
        td_track_cpu(&state, params, START + slot * 300, 500, 0, slot < 6 ? 100 : 900);
    }
    td_track_recommend(&state, params, &answer);
    assert_int_equal(answer.judged, 12);
    assert_int_equal(answer.over, 6);
    assert_int_equal(answer.margin, 105000 + 6 * 2400 - 6 * 100);
    /* The counts are of about the last week. */
    for (int slot = 13; slot <= 3000; slot++) {
        td_track_cpu(&state, params, START + slot * 300, 500, 0, 900);
    }
    assert_true(state.judged <= TD_TRACK_JUDGED_MAX);
    assert_true(state.over <= 3);
    assert_int_equal(state.margin, 50000);
}

static void test_track_refuses_a_state_by_its_first_bad_field(void **unused)
{
    (void)unused;
    static const char whole[] =
        "{'version':'t1','first':1,'slot':1,'slotSum':1,'slotSamples':1,'slotTop':1,"
        "'slotRequests':-1,'recent':[1],'hour':1,'hourValues':[1],'hours':[1],'margin':1}";
    static const struct {
        const char *from;
        const char *to;
        const char *message;
    } rows[] = {
        {"'t1'", "'a1'", "version: "},
        {"'slotTop':1", "'slotTop':-1", "slotTop: "},
        {"'slotRequests':-1", "'slotRequests':-2", "slotRequests: "},
        {"'recent':[1]", "'recent':[1,1,1,1,1,1,1,1,1,1,1,1,1]", "recent: 13 entries"},
        {"'hourValues':[1]", "'hourValues':[1000000001]", "hourValues: "},
        {"'margin':1}", "'margin':490001}", "margin: "},
        {"'margin':1}", "'margin':'1'}", "margin: "},
        {",'hours':[1]", "", "hours: missing"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const char *at = strstr(whole, rows[i].from);
        assert_non_null(at);
        char text[512];
        (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - whole), whole, rows[i].to,
                       at + strlen(rows[i].from));
        for (char *c = text; *c; c++) {
            *c = *c == '\'' ? '"' : *c;
        }
        struct td_json *saved = NULL;
        struct td_error err = TD_ERROR_INIT;
        struct td_track state = {.margin = 7};
        assert_int_equal(td_json_parse(&arena, td_str_from(text), NULL, &saved, &err), TD_OK);
        assert_true(td_track_load(&state, saved, &err) < 0);
        assert_int_equal(strncmp(err.message, rows[i].message, strlen(rows[i].message)), 0);
        assert_int_equal(state.margin, 7);
    }
}

/* A state of any estimator, and what it recommends. */
struct probe {
    const struct td_estimator *estimator;
    struct td_vertical_config config;
    _Alignas(16) unsigned char state[STATE_BYTES_MAX];
    struct td_estimate estimate;
    struct td_account account;
};

static void probe_init(struct probe *probe, const struct td_estimator *estimator)
{
    *probe = (struct probe){.estimator = estimator, .config = td_vertical_config_default()};
    assert_true(estimator->state_bytes <= sizeof(probe->state));
    estimator->init(probe->state);
}

static void probe_ask(struct probe *probe, int64_t t)
{
    const struct td_estimator_input input = {
        .config = &probe->config, .state = probe->state, .now = t * TD_SECOND};
    probe->account = (struct td_account){.estimator = probe->estimator->name};
    probe->estimator->recommend(&input, &probe->estimate, &probe->account);
}

static void probe_feed(struct probe *probe, int64_t hours)
{
    for (int64_t minute = 0; minute < hours * 60; minute++) {
        td_time at = (START + minute * 60) * TD_SECOND;
        const struct td_cpu_use use = {.milli = 400 + minute % 7, .request_milli = 450};
        probe->estimator->add_cpu(probe->state, at, &use);
        probe->estimator->add_memory(probe->state, at, 500 * MIB);
    }
    probe_ask(probe, START + hours * 3600);
}

/* Where CPU cannot be resized in place the adaptive estimator sizes both, and says why. */
static void test_track_falls_back_to_adaptive(void **unused)
{
    (void)unused;
    static const struct {
        enum td_resize_lack lack;
        const struct td_estimator *asked;
        const char *used;
    } rows[] = {
        {TD_RESIZE_LACKS_MODE, &td_estimator_track, "adaptive"},
        {TD_RESIZE_LACKS_NODE, &td_estimator_track_careful, "adaptive-careful"},
        {TD_RESIZE_RESTARTS, &td_estimator_track_frugal, "adaptive-frugal"},
        {TD_RESIZE_RESTARTS, &td_estimator_track_calm, "adaptive"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct probe track;
        struct probe adaptive;
        probe_init(&track, rows[i].asked);
        probe_init(&adaptive, td_estimator_find(td_str_from(rows[i].used)));
        probe_feed(&track, 30);
        probe_feed(&adaptive, 30);
        assert_null(track.account.instead);
        assert_non_null(track.account.tracked_risk);
        assert_string_equal(track.account.cpu.reason, "recent");
        const struct td_estimator_terms terms = {.lack = rows[i].lack};
        track.estimator->set_terms(track.state, &terms);
        probe_ask(&track, START + 30 * 3600);
        assert_string_equal(track.account.estimator, rows[i].used);
        assert_string_equal(track.account.instead, td_resize_lack_text(rows[i].lack));
        assert_null(track.account.tracked_risk);
        assert_memory_equal(&track.estimate, &adaptive.estimate, sizeof(track.estimate));
    }
}

/* What is saved by one is understood by the other: a VPA that changes its estimator or risk goes
 * on with what was known. */
static void test_track_and_adaptive_share_annotations(void **unused)
{
    (void)unused;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct probe adaptive;
    struct probe track;
    struct probe calm;
    struct td_json *annotations = td_json_new_object(&arena);
    probe_init(&adaptive, &td_estimator_adaptive);
    probe_init(&track, &td_estimator_track);
    probe_init(&calm, &td_estimator_track_calm);
    probe_feed(&adaptive, 30);
    adaptive.estimator->save(&arena, adaptive.state, annotations);
    assert_int_equal(track.estimator->load(track.state, annotations, NULL), TD_OK);
    probe_ask(&track, START + 30 * 3600);
    assert_int_equal(track.estimate.memory.target < adaptive.estimate.memory.target, true);
    assert_true(track.account.cpu.lacks_data);
    probe_feed(&track, 30); /* memory of closed hours is ignored, CPU is new */
    track.estimator->save(&arena, track.state, annotations);
    assert_int_equal(calm.estimator->load(calm.state, annotations, NULL), TD_OK);
    probe_ask(&calm, START + 30 * 3600);
    assert_int_equal(calm.estimate.cpu.target, track.estimate.cpu.target);
    assert_string_equal(calm.account.cpu.detail, track.account.cpu.detail);
    /* A refused part starts empty, the other one stays. */
    struct td_error err = TD_ERROR_INIT;
    td_json_set_str(&arena, annotations, TD_TRACK_ANNOTATION, TD_STR("{\"version\":\"t2\"}"));
    assert_true(calm.estimator->load(calm.state, annotations, &err) < 0);
    assert_int_equal(strncmp(err.message, "tandem.dev/track: version: ", 27), 0);
    probe_ask(&calm, START + 30 * 3600);
    assert_true(calm.account.cpu.lacks_data);
    assert_false(calm.account.memory.lacks_data);
}

/* With room above the request a kill is at the limit, and what it demands is of the request. */
static void test_track_takes_an_oom_at_the_limit(void **unused)
{
    (void)unused;
    static const struct {
        int64_t request; /* of the template, Mi */
        int64_t limit;
        enum td_resize_lack lack;
        int64_t target; /* after a kill at a request of 1000 and a limit of 1500, Mi */
    } rows[] = {
        {1000, 1000, TD_RESIZE_POSSIBLE, 1200},
        {1000, 1500, TD_RESIZE_POSSIBLE, 1200}, /* 1500 * 1.2 / 1.5 */
        {1000, 3000, TD_RESIZE_POSSIBLE, 900},  /* divided by two at most */
        {1000, 0, TD_RESIZE_POSSIBLE, 1800},
        {1000, 1500, TD_RESIZE_LACKS_MODE, 1200}, /* of the request, as adaptive has it */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct probe track;
        probe_init(&track, &td_estimator_track);
        const struct td_estimator_terms terms = {.memory_request_bytes = rows[i].request * MIB,
                                                 .memory_limit_bytes = rows[i].limit * MIB,
                                                 .lack = rows[i].lack};
        const struct td_oom_kill kill = {.request_bytes = 1000 * MIB, .limit_bytes = 1500 * MIB};
        track.estimator->set_terms(track.state, &terms);
        track.estimator->add_oom(track.state, START * TD_SECOND, &kill);
        probe_ask(&track, START + 60);
        assert_int_equal(track.estimate.memory.target / MIB, rows[i].target);
        assert_string_equal(track.account.memory.reason, "oom");
    }
}

static void test_track_risks_are_reasons_of_a_condition(void **unused)
{
    (void)unused;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (int risk = TD_TRACK_BALANCED; risk <= TD_TRACK_CALM; risk++) {
        const struct td_track_params *params = td_track_params_of((enum td_track_risk)risk);
        td_str reason = td_track_risk_reason(&arena, params->risk);
        assert_ptr_equal(td_track_params_of_reason(reason), params);
    }
    assert_true(td_str_equal(td_track_risk_reason(&arena, "calm"), TD_STR("Calm")));
    assert_null(td_track_params_of_reason(TD_STR("calm")));
    assert_null(td_track_params_of_reason(TD_STR("")));
    assert_null(td_track_params_find(TD_STR("bold")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_track_explains_itself),
        cmocka_unit_test(test_track_counts_what_its_margin_learnt_from),
        cmocka_unit_test(test_track_refuses_a_state_by_its_first_bad_field),
        cmocka_unit_test(test_track_falls_back_to_adaptive),
        cmocka_unit_test(test_track_and_adaptive_share_annotations),
        cmocka_unit_test(test_track_takes_an_oom_at_the_limit),
        cmocka_unit_test(test_track_risks_are_reasons_of_a_condition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
