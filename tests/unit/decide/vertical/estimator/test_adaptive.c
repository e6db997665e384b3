/* The adaptive estimator beyond its golden cases: properties that hold for any input, extremes,
 * texts, and its place behind the estimator interface. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/error.h"
#include "decide/vertical/estimator/adaptive.h"
#include "decide/vertical/estimator/adaptive_apply.h"
#include "decide/vertical/estimator/estimator.h"

#define ARENA_BYTES ((size_t)16 << 20)
#define DAY 86400
#define START INT64_C(1772409600) /* 2026-03-02T00:00:00Z */
#define MIB ((int64_t)1 << 20)

/* A small generator of our own, so that every run sees the same numbers. */
static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static const struct td_adaptive_params *balanced(void)
{
    return td_adaptive_params_of(TD_RISK_BALANCED);
}

static void feed_random(struct td_adaptive *state, uint64_t seed, int count)
{
    int64_t t = START;
    for (int i = 0; i < count; i++) {
        t += (int64_t)(next_random(&seed) % 2000);
        td_adaptive_cpu(state, balanced(), t, (int64_t)(next_random(&seed) % 5000),
                        (int64_t)(next_random(&seed) % 3) * 2500);
        td_adaptive_memory(state, t, (int64_t)(next_random(&seed) % 4000) * MIB);
        if (next_random(&seed) % 200 == 0) {
            td_adaptive_oom(state, balanced(), t, (int64_t)(next_random(&seed) % 4000) * MIB);
        }
    }
}

/* The same events give the same state and the same answer, bit for bit. */
static void test_adaptive_is_deterministic(void **context)
{
    (void)context;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct td_adaptive a;
        struct td_adaptive b;
        struct td_adaptive_answer left;
        struct td_adaptive_answer right;
        memset(&a, 0x5a, sizeof(a));
        memset(&b, 0xa5, sizeof(b));
        memset(&left, 0, sizeof(left));
        memset(&right, 0, sizeof(right));
        td_adaptive_init(&a);
        td_adaptive_init(&b);
        feed_random(&a, seed, 700);
        feed_random(&b, seed, 700);
        td_adaptive_recommend(&a, balanced(), START + 10 * DAY, &left);
        td_adaptive_recommend(&b, balanced(), START + 10 * DAY, &right);
        assert_int_equal(left.cpu.target, right.cpu.target);
        assert_int_equal(left.cpu.upper, right.cpu.upper);
        assert_int_equal(left.memory.target, right.memory.target);
        assert_int_equal(left.memory.lower, right.memory.lower);
        assert_int_equal(left.memory.reason, right.memory.reason);
    }
}

/* Saved and loaded, a state answers alike, now and after more samples, and saves as the same text.
 */
static void test_adaptive_load_gives_back_what_was_saved(void **context)
{
    (void)context;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_adaptive state;
        struct td_adaptive loaded;
        struct td_error err = TD_ERROR_INIT;
        td_adaptive_init(&state);
        feed_random(&state, seed, (int)(seed * 37));
        struct td_json *saved = td_adaptive_save(&arena, &state);
        assert_int_equal(td_adaptive_load(&loaded, saved, &err), TD_OK);
        assert_true(td_json_equal(saved, td_adaptive_save(&arena, &loaded)));
        feed_random(&state, seed + 1000, 400);
        feed_random(&loaded, seed + 1000, 400);
        assert_true(
            td_json_equal(td_adaptive_save(&arena, &state), td_adaptive_save(&arena, &loaded)));
    }
}

/* Each refusal names its field and leaves the state alone. */
static void test_adaptive_load_refuses_by_field(void **context)
{
    (void)context;
    static const struct {
        const char *field;
        const char *value; /* NULL: removed */
    } rows[] = {
        {"version", "\"a2\""},
        {"version", "1"},
        {"version", NULL},
        {"first", "-2"},
        {"first", "100000000000001"},
        {"slot", "-2"},
        {"slotSum", "-1"},
        {"slotSum", "1000000000000001"},
        {"slotSamples", "1000001"},
        {"slotTop", "1000000001"},
        {"cpu", "7"},
        {"cpu", "[1.5]"},
        {"cpu", "[1000000001]"},
        {"cpu", "[null]"},
        {"hours", "[-1]"},
        {"hours", "{}"},
        {"days", "[1,2,3,4,5,6,7,8,9]"},
        {"days", "[100000000000001]"},
        {"hour", "1.0"},
        {"hourPeak", "1e3"},
        {"day", "\"1\""},
        {"dayPeak", "true"},
        {"seen", "256"},
        {"oomFloor", "-1"},
        {"oomTime", "null"},
        {"oomCount", NULL},
        {"oomStreak", "4"},
        {"oomStreak", "99999999999999999999"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_adaptive state;
        struct td_error err = TD_ERROR_INIT;
        td_adaptive_init(&state);
        feed_random(&state, 3, 50);
        struct td_json *saved = td_adaptive_save(&arena, &state);
        td_str field = td_str_from(rows[i].field);
        if (rows[i].value) {
            struct td_json *value = NULL;
            assert_int_equal(td_json_parse(&arena, td_str_from(rows[i].value), NULL, &value, &err),
                             TD_OK);
            td_json_set(&arena, saved, field, value);
        } else {
            assert_true(td_json_remove(saved, field));
        }
        struct td_adaptive target = {.first = 77};
        assert_int_equal(td_adaptive_load(&target, saved, &err), TD_INVALID);
        assert_int_equal(target.first, 77);
        assert_memory_equal(err.message, rows[i].field, field.len);
        assert_int_equal(err.message[field.len], ':');
    }
}

/* Lower bound, target and upper bound are in order, and they are the requests that are left alone:
 * one unit outside is changed. */
static void test_adaptive_bounds_are_the_band(void **context)
{
    (void)context;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct td_adaptive state;
        struct td_adaptive_answer answer;
        td_adaptive_init(&state);
        feed_random(&state, seed, 300);
        td_adaptive_recommend(&state, balanced(), START + 30 * DAY, &answer);
        assert_true(answer.cpu.lower <= answer.cpu.target);
        assert_true(answer.cpu.target <= answer.cpu.upper);
        assert_true(answer.memory.lower <= answer.memory.target);
        assert_true(answer.memory.target <= answer.memory.upper);
        struct td_adaptive_apply_input input = {
            .now = START + 30 * DAY,
            .changed = START,
            .target = {.cpu_milli = answer.cpu.target, .memory_bytes = answer.memory.target},
        };
        const struct {
            int64_t cpu;
            int64_t memory;
            bool is_apply;
        } rows[] = {
            {answer.cpu.lower, answer.memory.upper, false},
            {answer.cpu.upper, answer.memory.lower, false},
            {answer.cpu.lower - 1, answer.memory.target, true},
            {answer.cpu.upper + 1, answer.memory.target, true},
            {answer.cpu.target, answer.memory.lower - 1, true},
            {answer.cpu.target, answer.memory.upper + 1, true},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            input.current = (struct td_adaptive_amounts){rows[i].cpu, rows[i].memory};
            assert_int_equal(td_adaptive_apply(&input, balanced()).is_apply, rows[i].is_apply);
        }
    }
}

/* What an OOM demands stays whole for four weeks, then goes in twenty days and never rises. */
static void test_adaptive_floor_decays(void **context)
{
    (void)context;
    struct td_adaptive state;
    td_adaptive_init(&state);
    td_adaptive_oom(&state, balanced(), START, 1000 * MIB);
    int64_t whole = 1200 * MIB;
    int64_t last = whole;
    assert_int_equal(td_adaptive_floor(&state, balanced(), START - DAY), whole);
    assert_int_equal(td_adaptive_floor(&state, balanced(), START + 29 * DAY - 1), whole);
    assert_int_equal(td_adaptive_floor(&state, balanced(), START + 29 * DAY), whole * 950 / 1000);
    assert_int_equal(td_adaptive_floor(&state, balanced(), START + 48 * DAY), 0);
    for (int64_t t = START; t < START + 60 * DAY; t += 7777) {
        int64_t floor = td_adaptive_floor(&state, balanced(), t);
        assert_true(floor <= last && floor >= 0);
        last = floor;
    }
}

/* Extremes of every input come back within the maxima; the undefined-behaviour build watches. */
static void test_adaptive_takes_extremes(void **context)
{
    (void)context;
    static const int64_t extremes[] = {INT64_MIN,     -1,       0, 1, 1000000000, INT64_MAX / 1000,
                                       INT64_MAX - 1, INT64_MAX};
    size_t count = sizeof(extremes) / sizeof(extremes[0]);
    for (int risk = TD_RISK_BALANCED; risk <= TD_RISK_FRUGAL; risk++) {
        const struct td_adaptive_params *params =
            td_adaptive_params_of((enum td_adaptive_risk)risk);
        struct td_adaptive state;
        td_adaptive_init(&state);
        for (size_t i = 0; i < count * count * count; i++) {
            int64_t a = extremes[i % count];
            int64_t b = extremes[i / count % count];
            int64_t c = extremes[i / count / count];
            struct td_adaptive_answer answer;
            td_adaptive_cpu(&state, params, a, b, c);
            td_adaptive_memory(&state, a, b);
            td_adaptive_oom(&state, params, a, b);
            td_adaptive_recommend(&state, params, c, &answer);
            assert_true(answer.cpu.target <= 2 * TD_ADAPTIVE_CPU_MAX);
            assert_true(answer.memory.target <= TD_ADAPTIVE_MAX);
            struct td_adaptive_apply_input input = {
                .now = a, .changed = b, .is_oom = true, .current = {c, a}, .target = {b, c}};
            (void)td_adaptive_apply(&input, params); /* It must only come back. */
        }
    }
}

/* A slot takes a million samples and can still be saved and loaded. */
static void test_adaptive_slot_has_a_bound(void **context)
{
    (void)context;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_adaptive state;
    struct td_adaptive loaded;
    td_adaptive_init(&state);
    for (int i = 0; i < 1000100; i++) {
        td_adaptive_cpu(&state, balanced(), START, TD_ADAPTIVE_CPU_MAX, 0);
    }
    assert_int_equal(td_adaptive_load(&loaded, td_adaptive_save(&arena, &state), NULL), TD_OK);
}

/* A stored sum that its samples cannot have is taken for the most there is, and does no harm to
 * what is saved later. */
static void test_adaptive_bounds_a_sum_from_outside(void **context)
{
    (void)context;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_adaptive state;
    struct td_adaptive_answer answer;
    struct td_error err = TD_ERROR_INIT;
    td_adaptive_init(&state);
    td_adaptive_cpu(&state, balanced(), START, 500, 0);
    struct td_json *saved = td_adaptive_save(&arena, &state);
    td_json_set(&arena, saved, TD_STR("slotSum"), td_json_new_int64(&arena, 1000000000000000));
    assert_int_equal(td_adaptive_load(&state, saved, &err), TD_OK);
    td_adaptive_recommend(&state, balanced(), START, &answer);
    assert_int_equal(answer.cpu.peak, TD_ADAPTIVE_CPU_MAX);
    td_adaptive_cpu(&state, balanced(), START + DAY, 500, 0);
    saved = td_adaptive_save(&arena, &state);
    assert_int_equal(td_adaptive_load(&state, saved, &err), TD_OK);
}

/* The texts of accounts. */
static void test_adaptive_explains_itself(void **context)
{
    (void)context;
    static const struct {
        struct td_adaptive_cpu_answer cpu;
        struct td_adaptive_memory_answer memory;
        const char *cpu_text;
        const char *memory_text;
    } rows[] = {
        {{.target = 587,
          .reason = TD_ADAPTIVE_QUANTILE,
          .quantile = 970,
          .slots = 288,
          .peak = 587,
          .first_arm = 970,
          .first_peak = 587},
         {.target = 550 * MIB,
          .reason = TD_ADAPTIVE_RECENT_PEAK,
          .margin = 100,
          .peak = 500 * MIB,
          .hours = 24},
         "cpu 587m: 97 % of the last 288 five-minute windows stayed at or below 587m",
         "memory 550Mi: highest of the last 24 observed hours 500Mi + 10 %"},
        {{.target = 604,
          .reason = TD_ADAPTIVE_QUANTILE,
          .quantile = 940,
          .slots = 36,
          .margin = 87,
          .peak = 556,
          .first_arm = 970,
          .first_peak = 1400},
         {.target = 500 * MIB, .reason = TD_ADAPTIVE_OLDER_PEAK, .old_peak_age = 3},
         "cpu 604m: 94 % of the last 36 five-minute windows stayed at or below 556m; +8.7 % "
         "because "
         "only 3 h were seen; 97 % would need 1.4, which costs more than the 6 % shortage",
         "memory 500Mi: a peak 3 days ago, less 2 % a day"},
        {{.target = 10, .reason = TD_ADAPTIVE_NO_DATA},
         {.target = 620 * MIB,
          .reason = TD_ADAPTIVE_OOM,
          .floor = 620 * MIB,
          .oom_count = 1,
          .oom_time = START},
         "cpu 10m: minimum, no samples yet",
         "memory 620Mi: OOM on 2026-03-02, 1 so far: kept at or above 620Mi until 2026-03-30"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_buf text;
        td_buf_init(&text, 4096);
        td_adaptive_write_cpu(&rows[i].cpu, false, &text);
        assert_string_equal(text.ptr, rows[i].cpu_text);
        td_buf_reset(&text);
        td_adaptive_write_memory(&rows[i].memory, balanced(), false, &text);
        assert_string_equal(text.ptr, rows[i].memory_text);
    }
}

/* A decision tells what it compared, and until when it waits. */
static void test_adaptive_decision_tells_when_it_ends(void **context)
{
    (void)context;
    const struct td_adaptive_apply_input input = {.now = START + 3600,
                                                  .changed = START,
                                                  .current = {1000, 1000 * MIB},
                                                  .target = {500, 500 * MIB}};
    struct td_adaptive_decision made = td_adaptive_apply(&input, balanced());
    td_auto_buf text;
    td_buf_init(&text, 4096);
    td_adaptive_write_decision(&input, balanced(), &made, &text);
    assert_int_equal(made.until, START + 43200);
    assert_string_equal(text.ptr,
                        "waiting: cpu 1 → 500m, memory 1000Mi → 500Mi; changed when the target is "
                        "above +10 % or below −20 % (memory +4, −10); a decrease is possible from "
                        "2026-03-02T12:00:00Z");
}

/* Annotations choose the estimator and its risk; what names nothing is reported and ignored. */
static void test_estimator_is_chosen_by_annotation(void **context)
{
    (void)context;
    static const struct {
        const char *estimator;
        const char *risk;
        const char *chosen;
        const char *unknown;
    } rows[] = {
        {NULL, NULL, "upstream", NULL},
        {"adaptive", NULL, "adaptive", NULL},
        {"adaptive", "balanced", "adaptive", NULL},
        {"adaptive", "careful", "adaptive-careful", NULL},
        {"adaptive", "frugal", "adaptive-frugal", NULL},
        {"adaptive", "bold", "adaptive", "tandem.dev/risk"},
        {"magic", NULL, "upstream", "tandem.dev/estimator"},
        {"upstream", "careful", "upstream", "tandem.dev/risk"},
        {"track", "calm", "track-calm", NULL},
        {"track-calm", "careful", "track-careful", NULL},
        {"track-calm", "balanced", "track", NULL},
        {"adaptive", "calm", "adaptive", "tandem.dev/risk"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_json *annotations = td_json_new_object(&arena);
        if (rows[i].estimator) {
            td_json_set(&arena, annotations, TD_ESTIMATOR_ANNOTATION,
                        td_json_new_string(&arena, td_str_from(rows[i].estimator)));
        }
        if (rows[i].risk) {
            td_json_set(&arena, annotations, TD_RISK_ANNOTATION,
                        td_json_new_string(&arena, td_str_from(rows[i].risk)));
        }
        struct td_estimator_choice choice =
            td_estimator_choose(annotations, &td_estimator_upstream);
        assert_string_equal(choice.estimator->name, rows[i].chosen);
        assert_int_equal(choice.unknown != NULL, rows[i].unknown != NULL);
        if (rows[i].unknown) {
            assert_true(td_str_equal(choice.unknown->key, td_str_from(rows[i].unknown)));
        }
    }
    assert_string_equal(td_estimator_choose(NULL, &td_estimator_upstream).estimator->name,
                        "upstream");
}

/* Behind the interface the answers are the same, and the minima are ours unless the user set some.
 */
static void test_estimator_interface_carries_adaptive(void **context)
{
    (void)context;
    const struct td_estimator *estimator = td_estimator_find(TD_STR("adaptive"));
    struct td_vertical_config config = td_vertical_config_default();
    struct td_adaptive state;
    struct td_estimate estimate;
    struct td_account account = {.samples = 0};
    estimator->init(&state);
    estimator->add_cpu(&state, START * TD_SECOND + 5, &(struct td_cpu_use){.milli = 500});
    estimator->add_memory(&state, START * TD_SECOND + 5, 500 * MIB);
    struct td_estimator_input input = {
        .config = &config, .state = &state, .now = (START + 60) * TD_SECOND};
    estimator->recommend(&input, &estimate, &account);
    assert_int_equal(estimate.cpu.target, 549);
    assert_int_equal(estimate.memory.target, 625 * MIB);
    assert_string_equal(account.cpu.reason, "quantile");
    assert_string_equal(account.memory.detail, "highest of the last 1 observed hours 500Mi + 25 %");
    config.pod_min_cpu_milli = 2000;
    input.min_cpu_milli = 2000;
    estimator->recommend(&input, &estimate, &account);
    assert_int_equal(estimate.cpu.target, 2000);
    assert_string_equal(account.cpu.reason, "minimum");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adaptive_is_deterministic),
        cmocka_unit_test(test_adaptive_load_gives_back_what_was_saved),
        cmocka_unit_test(test_adaptive_load_refuses_by_field),
        cmocka_unit_test(test_adaptive_bounds_are_the_band),
        cmocka_unit_test(test_adaptive_floor_decays),
        cmocka_unit_test(test_adaptive_takes_extremes),
        cmocka_unit_test(test_adaptive_slot_has_a_bound),
        cmocka_unit_test(test_adaptive_bounds_a_sum_from_outside),
        cmocka_unit_test(test_adaptive_explains_itself),
        cmocka_unit_test(test_adaptive_decision_tells_when_it_ends),
        cmocka_unit_test(test_estimator_is_chosen_by_annotation),
        cmocka_unit_test(test_estimator_interface_carries_adaptive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
