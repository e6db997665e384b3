/* Rules of --fail-if: what is read, what is refused and with which right name, what they judge, and
 * that each metric is documented. */
#include "support/world_bed.h"

#include "base/error.h"
#include "base/os/file.h"
#include "sim/record/record.h"
#include "sim/record/rules.h"

#define OBJECTS                                                                                    \
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n"                        \
    "  replicas: 2\n  selector: {matchLabels: {app: web}}\n"                                       \
    "  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n"              \
    "      - {name: main, image: x, resources: {requests: {cpu: 200m, memory: 100Mi}, "            \
    "limits: {memory: 200Mi}}}\n"                                                                  \
    "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web.v2}\nspec:\n"                \
    "  replicas: 1\n  selector: {matchLabels: {app: v2}}\n"                                        \
    "  template:\n    metadata: {labels: {app: v2}}\n    spec:\n      containers:\n"               \
    "      - {name: main, image: x, resources: {requests: {cpu: 100m, memory: 100Mi}}}\n"          \
    "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n"                   \
    "  serviceName: db\n  replicas: 2\n  selector: {matchLabels: {app: db}}\n"                     \
    "  template:\n    metadata: {labels: {app: db}}\n    spec:\n      containers:\n"               \
    "      - {name: main, image: x, resources: {requests: {cpu: 100m, memory: 100Mi}}}\n"
#define DEMAND                                                                                     \
    "  demand:\n"                                                                                  \
    "  - target: {kind: Deployment, name: web}\n"                                                  \
    "    requests: {value: 10/s}\n    perRequest: {cpu: 10ms, memory: 1Mi}\n"                      \
    "    idle: {cpu: 10m, memory: 50Mi}\n    startup: {time: 1s, cpu: 10m}\n"                      \
    "  - target: {kind: Deployment, name: web.v2}\n    cpu: 50m\n    memory: 50Mi\n"               \
    "  - target: {kind: StatefulSet, name: db}\n"                                                  \
    "    roles: {label: role, leader: {cpu: 300m, memory: 90Mi}, follower: {cpu: 50m, memory: "    \
    "40Mi}}\n"

static struct td_rule parsed(struct td_arena *arena, const char *text)
{
    struct td_rule rule = {.bound = -1};
    struct td_error err = TD_ERROR_INIT;
    if (td_rule_parse(arena, td_str_from(text), &rule, &err) != TD_OK) {
        fail_msg("%s: %s", text, err.message);
    }
    return rule;
}

static void test_rule_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *ns, *name, *role;
        enum td_rule_sign sign;
        double bound;
    } rows[] = {
        {"ooms > 0", "", "", "", TD_RULE_ABOVE, 0},
        {"  ooms>=3 ", "", "", "", TD_RULE_AT_LEAST, 3},
        {"web.latency.p99 > 200ms", "", "web", "", TD_RULE_ABOVE, 0.2},
        {"web.latency < 1m30s", "", "web", "", TD_RULE_BELOW, 90},
        {"shop/db(leader).cpu.used <= 1500m", "shop", "db", "leader", TD_RULE_AT_MOST, 1500},
        {"web.v2.memory.used == 2Gi", "", "web.v2", "", TD_RULE_EQUAL, 2147483648},
        {"cpu.slack != 5%", "", "", "", TD_RULE_OTHER, 0.05},
        {"memory.slack > 0.25", "", "", "", TD_RULE_ABOVE, 0.25},
        {"latency.ooms > 1", "", "latency", "", TD_RULE_ABOVE, 1},
        {"replicas.replicas.max > 1", "", "replicas", "", TD_RULE_ABOVE, 1},
    };
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        struct td_rule rule = parsed(&arena, rows[i].text);
        assert_true(td_str_equal(rule.ns, td_str_from(rows[i].ns)));
        assert_true(td_str_equal(rule.name, td_str_from(rows[i].name)));
        assert_true(td_str_equal(rule.role, td_str_from(rows[i].role)));
        assert_int_equal(rule.sign, rows[i].sign);
        if (rule.bound < rows[i].bound * 0.999999 || rule.bound > rows[i].bound * 1.000001) {
            fail_msg("%s: %g", rows[i].text, rule.bound);
        }
    }
}

static void test_rule_refuses_what_is_misspelt(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words; /* part of the message */
    } rows[] = {
        {"", "needs a comparison"},
        {"ooms", "needs a comparison"},
        {"ooms = 3", "needs a comparison"},
        {"ooms ! 3", "needs a comparison"},
        {"oom > 0", "did you mean ooms?"},
        {"web.latncy.p99 > 1s", "did you mean web.latency.p99?"},
        {"web.v2.cpu.usde > 1", "did you mean web.v2.cpu.used?"},
        {"nonsense > 0", "no such metric; use ooms, restarts"},
        {" > 0", "no such metric"},
        {"ooms > ", "compared with a number"},
        {"ooms > -1", "compared with a number"},
        {"ooms > 1e9", "compared with a number"},
        {"ooms > 1 2", "compared with a number"},
        {"ooms > nan", "compared with a number"},
        {"ooms > 1.2.3", "compared with a number"},
        {"web.latency > 200", "compared with a time such as 200ms"},
        {"cpu.used > 5Zi", "compared with an amount such as 500m"},
        {"cpu.used > -1", "compared with an amount such as 500m"},
        {"cpu.used > 1e400", "compared with an amount such as 500m"},
        {"memory.used > much", "compared with an amount such as 2Gi"},
        {"cpu.slack > %", "compared with a share"},
        {"web.pending > 0", "write it without a workload"},
        {"replicas.max > 0", "is of one workload"},
        {"(leader).ooms > 0", "a workload is written"},
        {"db().ooms > 0", "a workload is written"},
        {"db(x.ooms > 0", "a workload is written"},
        {"/db.ooms > 0", "a workload is written"},
        {".ooms > 0", "a workload is written"},
    };
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        struct td_rule rule = {.bound = -1};
        struct td_error err = TD_ERROR_INIT;
        int code = td_rule_parse(&arena, td_str_from(rows[i].text), &rule, &err);
        if (code != TD_INVALID || !strstr(err.message, rows[i].words)) {
            fail_msg("'%s': %d %s", rows[i].text, code, err.message);
        }
        assert_true(rule.bound == -1); /* outputs are untouched */
        assert_null(strchr(err.message, '\n'));
    }
}

/* What the scenario does not have is refused before it runs. */
static void test_rule_is_checked_against_the_world(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words; /* NULL: it is fine */
    } rows[] = {
        {"ooms > 0", NULL},
        {"web.ooms > 0", NULL},
        {"default/web.ooms > 0", NULL},
        {"web.v2.ooms > 0", NULL},
        {"db.ooms > 0", NULL},
        {"db(follower).ooms > 0", NULL},
        {"latency.p99 > 1s", NULL},
        {"wbe.ooms > 0", "no workload wbe; did you mean web?"},
        {"db(folower).ooms > 0", "did you mean db(follower)?"},
        {"other/web.ooms > 0", "no workload other/web"},
        {"elephant.ooms > 0", "there is "},
        {"db.latency > 1s", "sends no requests to db"},
    };
    struct world_bed bed;
    world_bed_begin(&bed, WORLD_BED_HEAD DEMAND, OBJECTS);
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        struct td_rule rule = parsed(&bed.arena, rows[i].text);
        struct td_error err = TD_ERROR_INIT;
        int code = td_rule_check(&rule, bed.world, &bed.scenario, &err);
        bool is_right = rows[i].words ? code == TD_INVALID && strstr(err.message, rows[i].words)
                                      : code == TD_OK;
        if (!is_right) {
            fail_msg("'%s': %d %s", rows[i].text, code, err.message);
        }
    }
    world_bed_done(&bed);
}

static void test_rule_judges_a_run(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_broken;
    } rows[] = {
        {"ooms > 0", false},
        {"ooms == 0", true},
        {"web.replicas == 2", true},
        {"web.replicas.max > 2", false},
        {"db.replicas == 2", true},
        {"db(leader).cpu.used > 200m", true},
        {"db(follower).cpu.used > 200m", false},
        {"web.latency > 1ms", true},
        {"web.latency.p99 > 10s", false},
        {"web.latency.max < 1us", false},
        {"cpu.requested > 1", false},
        {"cpu.requested > 500m", true},
        {"pending != 0", false},
        {"web.v2.memory.used < 1Gi", true},
    };
    struct world_bed bed;
    world_bed_begin(&bed, WORLD_BED_HEAD DEMAND, OBJECTS);
    struct td_record *record = td_record_new(10 * TD_MINUTE, 0);
    td_record_begin(record, bed.loop, bed.world);
    world_bed_run(&bed, 10 * TD_MINUTE);
    struct td_world_view view = world_bed_look(&bed);
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        struct td_rule rule = parsed(&bed.arena, rows[i].text);
        struct td_rule_verdict verdict = td_rule_judge(&rule, &view, record);
        assert_true(verdict.has_value);
        if (verdict.is_broken != rows[i].is_broken) {
            td_str value = td_rule_value(&bed.arena, &rule, &verdict);
            fail_msg("'%s': it is %.*s", rows[i].text, TD_STR_ARG(value));
        }
    }
    td_record_free(record);
    world_bed_done(&bed);
}

/* What cannot be measured breaks a rule: a check that checks nothing must not pass. */
static void test_rule_without_a_value_is_broken(void **state)
{
    (void)state;
    struct world_bed bed;
    world_bed_begin(&bed, WORLD_BED_HEAD DEMAND, OBJECTS);
    struct td_record *record = td_record_new(TD_MINUTE, 0);
    struct td_world_view view = {.row_count = 0};
    struct td_rule rule = parsed(&bed.arena, "web.latency.p99 > 1s");
    struct td_rule_verdict verdict = td_rule_judge(&rule, &view, record);
    assert_true(verdict.is_broken);
    assert_false(verdict.has_value);
    assert_true(
        td_str_equal(td_rule_value(&bed.arena, &rule, &verdict), TD_STR("without a value")));
    td_record_free(record);
    world_bed_done(&bed);
}

static void test_latency_percentiles(void **state)
{
    (void)state;
    struct td_record_latency latency = {.sum = 0};
    assert_true(td_record_latency_at(&latency, 0.99) < 0);
    assert_true(td_record_latency_mean(&latency) < 0);
    for (int i = 1; i <= 1000; i++) {
        td_record_latency_add(&latency, i / 1000.0, 1);
    }
    const double shares[] = {0.5, 0.9, 0.99, 1};
    for (size_t i = 0; i < TD_COUNT(shares); i++) {
        double found = td_record_latency_at(&latency, shares[i]);
        assert_true(found >= shares[i] && found <= shares[i] * 1.021);
    }
    td_record_latency_add(&latency, 5000, 1e9); /* far beyond the last bucket */
    assert_true(td_record_latency_at(&latency, 0.99) > 3600);
    assert_true(latency.most == 5000);
    struct td_record_latency sum = {.sum = 0};
    td_record_latency_join(&sum, &latency);
    assert_true(td_record_latency_mean(&sum) == td_record_latency_mean(&latency));
}

/* docs/report.md has a row for each metric, and none for what is no metric. */
static void test_metrics_are_documented(void **state)
{
    (void)state;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str page;
    assert_int_equal(td_file_read(TEST_DATA_DIR "/../../docs/report.md", &arena,
                                  TD_SCENARIO_BYTES_MAX, &page, NULL),
                     TD_OK);
    size_t count = 0;
    for (const char *name; (name = td_rule_metric_name(count)) != NULL; count++) {
        td_str row = td_arena_format(&arena, "\n| `%s` |", name);
        if (!strstr(page.ptr, row.ptr)) {
            fail_msg("docs/report.md: no row for %s", name);
        }
    }
    assert_true(count > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule_is_read),
        cmocka_unit_test(test_rule_refuses_what_is_misspelt),
        cmocka_unit_test(test_rule_is_checked_against_the_world),
        cmocka_unit_test(test_rule_judges_a_run),
        cmocka_unit_test(test_rule_without_a_value_is_broken),
        cmocka_unit_test(test_latency_percentiles),
        cmocka_unit_test(test_metrics_are_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
