/*
 * The metrics are one table: a name, a unit and how it follows from the sums of the rows that a
 * rule is about. The name of a workload may have dots, so a rule is read from its end: the longest
 * metric that the text ends with is meant.
 */
#include "sim/record/rules.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "kube/quantity/quantity.h"
#include "sim/record/record.h"
#include "sim/scenario/scenario.h"
#include "sim/world/world.h"
#include "sim/world/world_report.h"

enum rule_unit { RULE_COUNT, RULE_CPU, RULE_MEMORY, RULE_SHARE, RULE_TIME };

enum rule_scope { RULE_OF_BOTH, RULE_OF_WORKLOADS, RULE_OF_THE_RUN, RULE_OF_REQUESTS };

/* The rows that a rule is about, together. */
struct rule_sums {
    const struct td_world_view *view;
    struct td_world_figures figures;
    struct td_engine_workload load;
    uint64_t restarts;
    uint64_t evictions;
    uint64_t resizes;
    int64_t replicas;
    int64_t replicas_most;
    uint64_t replica_changes;
    double waiting;
    double dropped;
    struct td_record_latency latency;
};

struct rule_metric {
    const char *name;
    enum rule_unit unit;
    enum rule_scope scope;
    double (*value)(const struct rule_sums *sums); /* below 0: there is none */
};

/* ---- The metrics ---- */

#define RULE_VALUE(word, what)                                                                     \
    static double value_##word(const struct rule_sums *sums)                                       \
    {                                                                                              \
        return (double)(what);                                                                     \
    }
RULE_VALUE(ooms, sums->load.kill_count)
RULE_VALUE(restarts, sums->restarts)
RULE_VALUE(evictions, sums->evictions)
RULE_VALUE(resizes, sums->resizes)
RULE_VALUE(pending, sums->view->pending_count)
RULE_VALUE(replicas, sums->replicas)
RULE_VALUE(replicas_most, sums->replicas_most)
RULE_VALUE(replica_changes, sums->replica_changes)
RULE_VALUE(cpu_requested, sums->figures.cpu_requested_milli)
RULE_VALUE(cpu_used, sums->figures.cpu_used_milli)
RULE_VALUE(cpu_slack, sums->figures.cpu_slack)
RULE_VALUE(cpu_throttled, sums->figures.cpu_throttled)
RULE_VALUE(cpu_starved, sums->figures.cpu_starved)
RULE_VALUE(memory_requested, sums->figures.memory_requested_bytes)
RULE_VALUE(memory_used, sums->figures.memory_used_bytes)
RULE_VALUE(memory_slack, sums->figures.memory_slack)
RULE_VALUE(waiting, sums->waiting)
RULE_VALUE(dropped, sums->dropped)
RULE_VALUE(latency, td_record_latency_mean(&sums->latency))
RULE_VALUE(latency_p50, td_record_latency_at(&sums->latency, 0.50))
RULE_VALUE(latency_p90, td_record_latency_at(&sums->latency, 0.90))
RULE_VALUE(latency_p95, td_record_latency_at(&sums->latency, 0.95))
RULE_VALUE(latency_p99, td_record_latency_at(&sums->latency, 0.99))
RULE_VALUE(latency_most, sums->latency.most)

static const struct rule_metric rule_metrics[] = {
    {"ooms", RULE_COUNT, RULE_OF_BOTH, value_ooms},
    {"restarts", RULE_COUNT, RULE_OF_BOTH, value_restarts},
    {"evictions", RULE_COUNT, RULE_OF_BOTH, value_evictions},
    {"resizes", RULE_COUNT, RULE_OF_BOTH, value_resizes},
    {"pending", RULE_COUNT, RULE_OF_THE_RUN, value_pending},
    {"replicas", RULE_COUNT, RULE_OF_WORKLOADS, value_replicas},
    {"replicas.max", RULE_COUNT, RULE_OF_WORKLOADS, value_replicas_most},
    {"replicas.changes", RULE_COUNT, RULE_OF_BOTH, value_replica_changes},
    {"cpu.requested", RULE_CPU, RULE_OF_BOTH, value_cpu_requested},
    {"cpu.used", RULE_CPU, RULE_OF_BOTH, value_cpu_used},
    {"cpu.slack", RULE_SHARE, RULE_OF_BOTH, value_cpu_slack},
    {"cpu.throttled", RULE_SHARE, RULE_OF_BOTH, value_cpu_throttled},
    {"cpu.starved", RULE_SHARE, RULE_OF_BOTH, value_cpu_starved},
    {"memory.requested", RULE_MEMORY, RULE_OF_BOTH, value_memory_requested},
    {"memory.used", RULE_MEMORY, RULE_OF_BOTH, value_memory_used},
    {"memory.slack", RULE_SHARE, RULE_OF_BOTH, value_memory_slack},
    {"latency", RULE_TIME, RULE_OF_REQUESTS, value_latency},
    {"latency.p50", RULE_TIME, RULE_OF_REQUESTS, value_latency_p50},
    {"latency.p90", RULE_TIME, RULE_OF_REQUESTS, value_latency_p90},
    {"latency.p95", RULE_TIME, RULE_OF_REQUESTS, value_latency_p95},
    {"latency.p99", RULE_TIME, RULE_OF_REQUESTS, value_latency_p99},
    {"latency.max", RULE_TIME, RULE_OF_REQUESTS, value_latency_most},
    {"waiting", RULE_COUNT, RULE_OF_REQUESTS, value_waiting},
    {"dropped", RULE_COUNT, RULE_OF_REQUESTS, value_dropped},
};

const char *td_rule_metric_name(size_t index)
{
    return index < TD_COUNT(rule_metrics) ? rule_metrics[index].name : NULL;
}

/* ---- Reading ---- */

static const struct {
    td_str text; /* longer ones before their beginnings */
    enum td_rule_sign sign;
} rule_signs[] = {
    {TD_STR_INIT(">="), TD_RULE_AT_LEAST}, {TD_STR_INIT("<="), TD_RULE_AT_MOST},
    {TD_STR_INIT("=="), TD_RULE_EQUAL},    {TD_STR_INIT("!="), TD_RULE_OTHER},
    {TD_STR_INIT(">"), TD_RULE_ABOVE},     {TD_STR_INIT("<"), TD_RULE_BELOW},
};

/* Where the comparison begins; the text's length: there is none. */
static size_t rule_find_sign(td_str text)
{
    size_t at = 0;
    while (at < text.len && text.ptr[at] != '<' && text.ptr[at] != '>' && text.ptr[at] != '=' &&
           text.ptr[at] != '!') {
        at++;
    }
    return at;
}

static int rule_parse_sign(td_str text, size_t at, size_t *ret_end, enum td_rule_sign *ret,
                           struct td_error *err)
{
    td_str rest = td_str_slice(text, at, text.len);
    for (size_t i = 0; i < TD_COUNT(rule_signs); i++) {
        if (td_str_starts_with(rest, rule_signs[i].text)) {
            *ret = rule_signs[i].sign;
            *ret_end = at + rule_signs[i].text.len;
            return TD_OK;
        }
    }
    return td_error_set(err, TD_INVALID,
                        "'%.*s': needs a comparison, one of > >= < <= == !=, as in 'ooms > 0'",
                        TD_STR_ARG(text));
}

/* The metric that was meant, with the workload in front of it; empty: none comes near. */
static td_str rule_suggest(struct td_arena *arena, td_str subject)
{
    for (size_t start = 0; start <= subject.len;) {
        td_str word = td_str_slice(subject, start, subject.len);
        const char *meant =
            td_str_suggest(word, rule_metrics, TD_COUNT(rule_metrics), sizeof(rule_metrics[0]));
        if (meant) {
            return td_arena_format(arena, "%.*s%s", (int)start, subject.ptr, meant);
        }
        start = td_str_find(subject, '.', start) + 1;
    }
    return TD_STR_EMPTY;
}

static int rule_refuse_metric(struct td_arena *arena, td_str subject, struct td_error *err)
{
    td_str meant = rule_suggest(arena, subject);
    if (meant.len > 0) {
        return td_error_set(err, TD_INVALID, "'%.*s': no such metric; did you mean %.*s?",
                            TD_STR_ARG(subject), TD_STR_ARG(meant));
    }
    td_auto_buf names = td_buf_capped(TD_OBJECT_BYTES_MAX);
    for (size_t i = 0; i < TD_COUNT(rule_metrics); i++) {
        (void)td_buf_append_format(&names, "%s%s", i > 0 ? ", " : "", rule_metrics[i].name);
    }
    return td_error_set(err, TD_INVALID, "'%.*s': no such metric; use %.*s", TD_STR_ARG(subject),
                        (int)names.len, names.ptr);
}

/* "web.latency.p99": the longest metric at the end, after a workload and a dot or alone. */
static const struct rule_metric *rule_find_metric(td_str subject, td_str *ret_workload)
{
    const struct rule_metric *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < TD_COUNT(rule_metrics); i++) {
        td_str name = td_str_from(rule_metrics[i].name);
        bool is_end =
            name.len <= subject.len && name.len > longest &&
            td_str_equal(td_str_slice(subject, subject.len - name.len, subject.len), name);
        bool is_alone = is_end && name.len == subject.len;
        if (is_alone || (is_end && subject.ptr[subject.len - name.len - 1] == '.')) {
            found = &rule_metrics[i];
            longest = name.len;
        }
    }
    *ret_workload = found && subject.len > longest
                        ? td_str_slice(subject, 0, subject.len - longest - 1)
                        : TD_STR_EMPTY;
    return found;
}

/* "shop/db(leader)" */
static int rule_split_workload(struct td_rule *rule, struct td_error *err)
{
    td_str rest = rule->workload;
    size_t slash = td_str_find(rest, '/', 0);
    rule->ns = slash < rest.len ? td_str_slice(rest, 0, slash) : TD_STR_EMPTY;
    rest = slash < rest.len ? td_str_slice(rest, slash + 1, rest.len) : rest;
    size_t open = td_str_find(rest, '(', 0);
    rule->name = td_str_slice(rest, 0, open);
    rule->role = TD_STR_EMPTY;
    if (open < rest.len && rest.ptr[rest.len - 1] == ')') {
        rule->role = td_str_slice(rest, open + 1, rest.len - 1);
    }
    bool is_wrong = rule->name.len == 0 || (open < rest.len && rule->role.len == 0) ||
                    (slash < rule->workload.len && rule->ns.len == 0);
    return is_wrong ? td_error_set(err, TD_INVALID,
                                   "'%.*s': a workload is written NAME, NAMESPACE/NAME or "
                                   "NAME(ROLE)",
                                   TD_STR_ARG(rule->workload))
                    : TD_OK;
}

/* A number of at most nine digits behind the point and no sign, "12.5". */
static bool rule_parse_number(td_str text, double *ret)
{
    char word[TD_QUANTITY_TEXT_BYTES_MAX];
    char *end;
    if (text.len == 0 || text.len >= sizeof(word)) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        bool is_digit = text.ptr[i] >= '0' && text.ptr[i] <= '9';
        if (!is_digit && text.ptr[i] != '.') {
            return false;
        }
        word[i] = text.ptr[i];
    }
    word[text.len] = '\0';
    *ret = strtod(word, &end);
    return *end == '\0' && isfinite(*ret);
}

static bool rule_parse_bound(struct td_arena *arena, td_str text, enum rule_unit unit, double *ret)
{
    struct td_quantity quantity;
    td_duration span;
    bool is_percent = text.len > 0 && text.ptr[text.len - 1] == '%';
    switch (unit) {
    case RULE_COUNT:
        return rule_parse_number(text, ret);
    case RULE_SHARE:
        if (!rule_parse_number(is_percent ? td_str_slice(text, 0, text.len - 1) : text, ret)) {
            return false;
        }
        *ret = is_percent ? *ret / 100 : *ret;
        return true;
    case RULE_TIME:
        if (!td_scenario_parse_duration(text, &span)) {
            return false;
        }
        *ret = (double)span / (double)TD_SECOND;
        return true;
    case RULE_CPU:
    case RULE_MEMORY:
        break;
    }
    if (td_quantity_parse(arena, text, &quantity, NULL) != TD_OK) {
        return false;
    }
    *ret = td_quantity_to_double(&quantity) * (unit == RULE_CPU ? 1000 : 1);
    return isfinite(*ret) && *ret >= 0;
}

int td_rule_parse(struct td_arena *arena, td_str text, struct td_rule *ret, struct td_error *err)
{
    static const char *const examples[] = {[RULE_COUNT] = "a number such as 3",
                                           [RULE_CPU] = "an amount such as 500m",
                                           [RULE_MEMORY] = "an amount such as 2Gi",
                                           [RULE_SHARE] = "a share such as 5% or 0.05",
                                           [RULE_TIME] = "a time such as 200ms"};
    struct td_rule rule = {.text = td_str_trim(text)};
    size_t at = rule_find_sign(rule.text);
    size_t end = 0;
    int code = rule_parse_sign(rule.text, at, &end, &rule.sign, err);
    if (code != TD_OK) {
        return code;
    }
    td_str subject = td_str_trim(td_str_slice(rule.text, 0, at));
    td_str bound = td_str_trim(td_str_slice(rule.text, end, rule.text.len));
    rule.metric = rule_find_metric(subject, &rule.workload);
    if (!rule.metric) {
        return rule_refuse_metric(arena, subject, err);
    }
    if (!rule_parse_bound(arena, bound, rule.metric->unit, &rule.bound)) {
        return td_error_set(err, TD_INVALID, "'%.*s': '%.*s': %s is compared with %s",
                            TD_STR_ARG(rule.text), TD_STR_ARG(bound), rule.metric->name,
                            examples[rule.metric->unit]);
    }
    if (rule.workload.len > 0 && rule.metric->scope == RULE_OF_THE_RUN) {
        return td_error_set(err, TD_INVALID,
                            "'%.*s': %s is of the whole run: write it without a workload",
                            TD_STR_ARG(rule.text), rule.metric->name);
    }
    if (rule.workload.len == 0 && rule.metric->scope == RULE_OF_WORKLOADS) {
        return td_error_set(err, TD_INVALID, "'%.*s': %s is of one workload: WORKLOAD.%s",
                            TD_STR_ARG(rule.text), rule.metric->name, rule.metric->name);
    }
    bool has_dot = td_str_starts_with(subject, TD_STR("."));
    code = rule.workload.len > 0 || has_dot ? rule_split_workload(&rule, err) : TD_OK;
    if (code == TD_OK) {
        *ret = rule;
    }
    return code;
}

/* ---- Before the run ---- */

struct rule_names {
    struct td_arena *arena;
    const char **items;
    size_t count;
    size_t cap;
};

static void names_add(struct rule_names *names, td_str ns, td_str name, td_str role)
{
    for (int with_ns = 0; with_ns < 2; with_ns++) {
        td_str text =
            td_arena_format(names->arena, "%.*s%s%.*s%s%.*s%s", with_ns ? (int)ns.len : 0, ns.ptr,
                            with_ns ? "/" : "", TD_STR_ARG(name), role.len > 0 ? "(" : "",
                            TD_STR_ARG(role), role.len > 0 ? ")" : "");
        names->items = td_arena_grow(names->arena, names->items, names->count, &names->cap,
                                     sizeof(names->items[0]));
        names->items[names->count++] = text.ptr; /* formatted texts end with a NUL */
    }
}

static void names_of(struct rule_names *names, struct td_world *world,
                     const struct td_scenario *scenario)
{
    struct td_world_view view;
    td_world_look(world, names->arena, &view);
    for (size_t i = 0; i < view.row_count; i++) {
        names_add(names, view.rows[i].load.ns, view.rows[i].load.name, TD_STR_EMPTY);
    }
    for (size_t i = 0; i < scenario->demand_count; i++) {
        const struct td_demand *demand = &scenario->demands[i];
        names_add(names, demand->ns, demand->name, TD_STR_EMPTY);
        for (size_t r = 0; demand->role_label.len > 0 && r < demand->role_count; r++) {
            names_add(names, demand->ns, demand->name, demand->roles[r].value);
        }
    }
}

static bool rule_is_about(const struct td_rule *rule, td_str ns, td_str name)
{
    return rule->workload.len == 0 ||
           (td_str_equal(rule->name, name) && (rule->ns.len == 0 || td_str_equal(rule->ns, ns)));
}

static bool rule_has_requests(const struct td_rule *rule, const struct td_scenario *scenario)
{
    for (size_t i = 0; i < scenario->demand_count; i++) {
        const struct td_demand *demand = &scenario->demands[i];
        if (demand->driver == TD_DEMAND_REQUESTS && rule_is_about(rule, demand->ns, demand->name)) {
            return true;
        }
    }
    return false;
}

static int rule_refuse_workload(const struct td_rule *rule, const struct rule_names *names,
                                struct td_error *err)
{
    const char *meant =
        td_str_suggest(rule->workload, names->items, names->count, sizeof(names->items[0]));
    if (meant) {
        return td_error_set(err, TD_INVALID, "'%.*s': no workload %.*s; did you mean %s?",
                            TD_STR_ARG(rule->text), TD_STR_ARG(rule->workload), meant);
    }
    td_auto_buf list = td_buf_capped(TD_OBJECT_BYTES_MAX);
    for (size_t i = 0; i < names->count; i += 2) {
        bool is_again = false;
        for (size_t k = 0; k < i && !is_again; k += 2) {
            is_again = td_str_equal(td_str_from(names->items[k]), td_str_from(names->items[i]));
        }
        if (!is_again) {
            (void)td_buf_append_format(&list, "%s%s", i > 0 ? ", " : "", names->items[i]);
        }
    }
    return td_error_set(err, TD_INVALID, "'%.*s': no workload %.*s; there is %.*s",
                        TD_STR_ARG(rule->text), TD_STR_ARG(rule->workload), (int)list.len,
                        list.ptr ? list.ptr : "");
}

int td_rule_check(const struct td_rule *rule, struct td_world *world,
                  const struct td_scenario *scenario, struct td_error *err)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct rule_names names = {.arena = &arena};
    bool is_known = rule->workload.len == 0;
    names_of(&names, world, scenario);
    for (size_t i = 0; !is_known && i < names.count; i++) {
        is_known = td_str_equal(rule->workload, td_str_from(names.items[i]));
    }
    if (!is_known) {
        return rule_refuse_workload(rule, &names, err);
    }
    if (rule->metric->scope == RULE_OF_REQUESTS && !rule_has_requests(rule, scenario)) {
        return td_error_set(err, TD_INVALID, "'%.*s': the scenario sends no requests to %s%.*s",
                            TD_STR_ARG(rule->text), rule->workload.len > 0 ? "" : "any workload",
                            TD_STR_ARG(rule->workload));
    }
    return TD_OK;
}

/* ---- After the run ---- */

static void sums_add(struct rule_sums *sums, const struct td_world_row *row,
                     const struct td_record *record)
{
    const struct td_record_row *kept =
        td_record_find(record, row->load.ns, row->load.kind, row->load.name, row->load.role);
    td_world_figures_add(&sums->load, &row->load);
    sums->restarts += row->restart_count;
    sums->evictions += row->eviction_count;
    sums->resizes += row->resize_count;
    sums->replicas += row->replicas;
    sums->waiting += row->waiting;
    sums->dropped += row->dropped;
    if (kept) {
        sums->replicas_most += kept->replicas_most;
        sums->replica_changes += kept->replica_changes;
        if (kept->latency) {
            td_record_latency_join(&sums->latency, kept->latency);
        }
    }
}

static bool rule_holds(const struct td_rule *rule, double value)
{
    switch (rule->sign) {
    case TD_RULE_ABOVE:
        return value > rule->bound;
    case TD_RULE_AT_LEAST:
        return value >= rule->bound;
    case TD_RULE_BELOW:
        return value < rule->bound;
    case TD_RULE_AT_MOST:
        return value <= rule->bound;
    case TD_RULE_EQUAL:
        return value == rule->bound;
    case TD_RULE_OTHER:
        break;
    }
    return value != rule->bound;
}

struct td_rule_verdict td_rule_judge(const struct td_rule *rule, const struct td_world_view *view,
                                     const struct td_record *record)
{
    struct rule_sums sums = {.view = view};
    bool is_there = rule->workload.len == 0;
    for (size_t i = 0; i < view->row_count; i++) {
        const struct td_world_row *row = &view->rows[i];
        if (rule_is_about(rule, row->load.ns, row->load.name) &&
            (rule->role.len == 0 || td_str_equal(rule->role, row->load.role))) {
            is_there = true;
            sums_add(&sums, row, record);
        }
    }
    if (rule->workload.len == 0) { /* those of workloads that are gone count too */
        sums.load.kill_count = view->kill_count;
        sums.restarts = view->restart_count;
        sums.evictions = view->eviction_count;
        sums.resizes = view->resize_count;
    }
    sums.figures = td_world_figures(&sums.load, view->since);
    double value = is_there ? rule->metric->value(&sums) : -1;
    bool has_value = value >= 0;
    return (struct td_rule_verdict){
        .is_broken = !has_value || rule_holds(rule, value), .has_value = has_value, .value = value};
}

td_str td_rule_value(struct td_arena *arena, const struct td_rule *rule,
                     const struct td_rule_verdict *verdict)
{
    double value = verdict->value;
    if (!verdict->has_value) {
        return TD_STR("without a value");
    }
    switch (rule->metric->unit) {
    case RULE_CPU:
        return td_arena_format(arena, "%.1fm", value);
    case RULE_MEMORY:
        return td_arena_format(arena, "%.1fMi", value / (1 << 20));
    case RULE_SHARE:
        return td_arena_format(arena, "%.4g%%", value * 100);
    case RULE_TIME:
        return value < 1 ? td_arena_format(arena, "%.4gms", value * 1000)
                         : td_arena_format(arena, "%.4gs", value);
    case RULE_COUNT:
        break;
    }
    return td_arena_format(arena, "%.10g", value);
}
