/* The flags of `tandem run` that users and tools rely on: each sets what it names, away from its
 * default, and a value that cannot be is one line that names flag and value. */
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
#include "base/limits.h"
#include "cli/run/run_flags.h"

enum value_type { DURATION, DOUBLE, BOOL, INT, INT64, SIZE, TEXT };

#define CONTROLLERS(member) offsetof(struct td_run_flags, controllers.member)

struct flag_case {
    const char *argument;
    enum value_type type;
    size_t offset;
    double number; /* durations: seconds */
    const char *text;
};

static const struct flag_case flag_cases[] = {
    {"--recommender-interval=7s", DURATION, CONTROLLERS(recommend.interval), 7, ""},
    {"--recommender-name=other", TEXT, CONTROLLERS(recommend.name), 0, "other"},
    {"--updater-interval=7s", DURATION, CONTROLLERS(update.interval), 7, ""},
    {"--cpu-histogram-decay-half-life=1h", DURATION, CONTROLLERS(recommend.config.cpu.half_life),
     3600, ""},
    {"--memory-histogram-decay-half-life=2h", DURATION,
     CONTROLLERS(recommend.config.memory.half_life), 7200, ""},
    {"--confidence-interval-cpu=3h", DURATION, CONTROLLERS(recommend.config.confidence_cpu), 10800,
     ""},
    {"--confidence-interval-memory=4h", DURATION, CONTROLLERS(recommend.config.confidence_memory),
     14400, ""},
    {"--eviction-tolerance=0.25", DOUBLE, CONTROLLERS(update.config.restriction.tolerance), 0.25,
     ""},
    {"--min-replicas=1", INT64, CONTROLLERS(update.config.restriction.min_replicas), 1, ""},
    {"--concurrent-cpu-startup-boost-syncs=3", SIZE, CONTROLLERS(update.boost_syncs), 3, ""},
    {"--horizontal-pod-autoscaler-sync-period=5s", DURATION, CONTROLLERS(horizontal.sync_period), 5,
     ""},
    {"--horizontal-pod-autoscaler-downscale-stabilization=1m", DURATION,
     CONTROLLERS(horizontal.config.downscale_stabilization), 60, ""},
    {"--horizontal-pod-autoscaler-tolerance=0.3", DOUBLE, CONTROLLERS(horizontal.config.tolerance),
     0.3, ""},
    {"--horizontal-pod-autoscaler-cpu-initialization-period=6m", DURATION,
     CONTROLLERS(horizontal.config.cpu_initialization), 360, ""},
    {"--horizontal-pod-autoscaler-initial-readiness-delay=40s", DURATION,
     CONTROLLERS(horizontal.config.readiness_delay), 40, ""},
    {"--horizontal=builtin", BOOL, CONTROLLERS(horizontal.serves_builtin), 1, ""},
    {"--hvpa-sync-period=9s", DURATION, CONTROLLERS(hvpa.sync_period), 9, ""},
    {"--leader-elect", BOOL, CONTROLLERS(leader.is_on), 1, ""},
    {"--leader-elect=true", BOOL, CONTROLLERS(leader.is_on), 1, ""},
    {"--leader-elect-lease-duration=30s", DURATION, CONTROLLERS(leader.lease_duration), 30, ""},
    {"--leader-elect-renew-deadline=9s", DURATION, CONTROLLERS(leader.renew_deadline), 9, ""},
    {"--leader-elect-retry-period=1s", DURATION, CONTROLLERS(leader.retry_period), 1, ""},
    {"--leader-elect-resource-namespace=mine", TEXT, CONTROLLERS(leader.namespace), 0, "mine"},
    {"--leader-elect-resource-name=lock", TEXT, CONTROLLERS(leader.name), 0, "lock"},
    {"--feature-gates=CPUStartupBoost=true", BOOL, CONTROLLERS(gates.cpu_startup_boost), 1, ""},
    {"--feature-gates=Hvpa=false", BOOL, CONTROLLERS(hvpa_gate), 0, ""},
    {"--kube-api-qps=7.5", DOUBLE, CONTROLLERS(qps), 7.5, ""},
    {"--kube-api-burst=9", INT, CONTROLLERS(burst), 9, ""},
    {"--v=6", INT64, offsetof(struct td_run_flags, verbosity), 6, ""},
    {"--webhook-timeout-seconds=9", INT, CONTROLLERS(webhook.timeout_seconds), 9, ""},
    {"--keep-webhooks", BOOL, CONTROLLERS(webhook.keeps), 1, ""},
    {"--vpa-object-namespace=team", TEXT, CONTROLLERS(vpa_namespace), 0, "team"},
};

static bool case_holds(const struct flag_case *row, const struct td_run_flags *flags)
{
    const void *place = (const char *)flags + row->offset;
    switch (row->type) {
    case DURATION:
        return *(const td_duration *)place == (td_duration)(row->number * (double)TD_SECOND);
    case DOUBLE:
        return *(const double *)place == row->number;
    case BOOL:
        return *(const bool *)place == (row->number > 0);
    case INT:
        return *(const int *)place == (int)row->number;
    case INT64:
        return *(const int64_t *)place == (int64_t)row->number;
    case SIZE:
        return *(const size_t *)place == (size_t)row->number;
    case TEXT:
        break;
    }
    return td_str_equal(*(const td_str *)place, td_str_from(row->text));
}

static int parse(struct td_arena *arena, const char *first, const char *second,
                 struct td_run_flags *ret, struct td_error *err)
{
    char words[2][256];
    char *argv[2] = {words[0], words[1]};
    (void)snprintf(words[0], sizeof(words[0]), "%s", first);
    (void)snprintf(words[1], sizeof(words[1]), "%s", second ? second : "");
    td_arena_reset(arena);
    int code = td_run_flags_parse(arena, second ? 2 : 1, argv, NULL, ret, err);
    if (code == TD_OK) { /* texts are the arguments', which go */
        ret->controllers.recommend.name = td_arena_copy_str(arena, ret->controllers.recommend.name);
        ret->controllers.leader.namespace =
            td_arena_copy_str(arena, ret->controllers.leader.namespace);
        ret->controllers.leader.name = td_arena_copy_str(arena, ret->controllers.leader.name);
        ret->controllers.vpa_namespace = td_arena_copy_str(arena, ret->controllers.vpa_namespace);
    }
    return code;
}

static void test_each_flag_sets_what_it_names(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < sizeof(flag_cases) / sizeof(flag_cases[0]); i++) {
        const struct flag_case *row = &flag_cases[i];
        struct td_run_flags flags;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(parse(&arena, "--v=4", NULL, &flags, &err), TD_OK);
        if (case_holds(row, &flags)) {
            fail_msg("%s: is the default", row->argument);
        }
        if (parse(&arena, row->argument, NULL, &flags, &err) != TD_OK) {
            fail_msg("%s", err.message);
        }
        if (!case_holds(row, &flags)) {
            fail_msg("%s: sets something else", row->argument);
        }
    }
}

static void test_values_that_cannot_be_are_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *first;
        const char *second;
        const char *says;
    } rows[] = {
        {"--nope", NULL, "--nope: unknown flag; 'tandem run --flags' lists them"},
        {"--leader-elect-resource-namespace=Bad_NS", NULL,
         "--leader-elect-resource-namespace: 'Bad_NS': must be a lower case DNS label "},
        {"--leader-elect-resource-namespace=", NULL, "--leader-elect-resource-namespace: '': "},
        {"--leader-elect-resource-name=Bad_Name", NULL,
         "--leader-elect-resource-name: 'Bad_Name': a lowercase RFC 1123 subdomain must "},
        {"--webhook-namespace=a.b", NULL, "--webhook-namespace: 'a.b': "},
        {"--webhook-secret=A", NULL, "--webhook-secret: 'A': "},
        {"--status-lease-name=a_b", NULL, "--status-lease-name: 'a_b': "},
        {"--ignored-vpa-object-namespaces=good,BAD", NULL,
         "--ignored-vpa-object-namespaces: 'BAD': "},
        {"--webhook-exempt-namespaces=a b", NULL, "--webhook-exempt-namespaces: 'a b': "},
        {"--vpa-object-namespace=X_Y", NULL, "--vpa-object-namespace: 'X_Y': "},
        {"--leader-elect", "--leader-elect-lease-duration=10s",
         "--leader-elect-lease-duration: '10s': must be longer than --leader-elect-renew-deadline "
         "'10s'"},
        {"--leader-elect", "--leader-elect-retry-period=9s",
         "--leader-elect-retry-period: '9s': must be shorter than --leader-elect-renew-deadline "
         "'10s' divided by 1.2"},
        {"--leader-elect-lease-duration=500ms", NULL,
         "--leader-elect-lease-duration: '500ms': must be at least 1s"},
        {"--feature-gates=Nope=true", NULL, "--feature-gates: 'Nope': unknown gate"},
        {"--horizontal=on", NULL, "--horizontal: 'on': must be off or builtin"},
        {"--v=-1", NULL, "--v: '-1': must be from 0 to 10"},
        {"--kube-api-qps=fast", NULL, "--kube-api-qps: 'fast': must be a number"},
        {"--kube-api-burst=0", NULL, "--kube-api-burst: '0': must be from 1 to 1000000"},
        {"--hvpa-sync-period", NULL, "--hvpa-sync-period: needs a value"},
        {"--concurrent-cpu-startup-boost-syncs=0", NULL,
         "--concurrent-cpu-startup-boost-syncs: '0': must be from 1 to 1000"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_run_flags flags;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(parse(&arena, rows[i].first, rows[i].second, &flags, &err), TD_INVALID);
        bool is_one_line = strchr(err.message, '\n') == NULL;
        if (strncmp(err.message, rows[i].says, strlen(rows[i].says)) != 0 || !is_one_line) {
            fail_msg("'%s' is not '%s'", err.message, rows[i].says);
        }
    }
}

/* A maximum that leaves no room is a mistake: with -1Gi every recommendation would be that. */
static void test_maxima_are_above_zero(void **state)
{
    (void)state;
    static const char *const flags[] = {
        "--container-recommendation-max-allowed-cpu",
        "--container-recommendation-max-allowed-memory",
        "--pod-recommendation-max-allowed-cpu",
        "--pod-recommendation-max-allowed-memory",
        "--max-allowed-cpu-boost",
    };
    static const char *const values[] = {"-1Gi", "-1m", "0", "0Mi", "-0"};
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        for (size_t j = 0; j < sizeof(values) / sizeof(values[0]); j++) {
            struct td_run_flags ignored;
            struct td_error err = TD_ERROR_INIT;
            char word[128];
            char says[128];
            (void)snprintf(word, sizeof(word), "%s=%s", flags[i], values[j]);
            (void)snprintf(says, sizeof(says), "%s: \"%s\": must be greater than 0", flags[i],
                           values[j]);
            assert_int_equal(parse(&arena, word, NULL, &ignored, &err), TD_INVALID);
            assert_string_equal(err.message, says);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_flag_sets_what_it_names),
        cmocka_unit_test(test_values_that_cannot_be_are_one_line),
        cmocka_unit_test(test_maxima_are_above_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
