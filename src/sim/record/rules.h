/*
 * Rules that a run must not meet, for a CI: "ooms > 0", "web.latency.p99 > 200ms". A rule is a
 * metric of the whole run or of one workload ("NAMESPACE/NAME(ROLE).METRIC", of which the namespace
 * and the role may be left out), a comparison and a bound. It is read and checked before the run
 * and judged after it. docs/report.md has the metrics.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

struct rule_metric;
struct td_error;
struct td_record;
struct td_scenario;
struct td_world;
struct td_world_view;

enum td_rule_sign {
    TD_RULE_ABOVE,
    TD_RULE_AT_LEAST,
    TD_RULE_BELOW,
    TD_RULE_AT_MOST,
    TD_RULE_EQUAL,
    TD_RULE_OTHER
};

struct td_rule {
    td_str text;     /* as it was written */
    td_str workload; /* "shop/db(leader)"; empty: the whole run */
    td_str ns;       /* empty: any, as the role */
    td_str name;
    td_str role;
    const struct rule_metric *metric;
    enum td_rule_sign sign;
    double bound;
};

/* Texts are slices of `text`, or in the arena. TD_INVALID with one line that names what is wrong
 * and, where one comes near, the right name. */
int td_rule_parse(struct td_arena *arena, td_str text, struct td_rule *ret, struct td_error *err);

/* Does the world have that workload, and the workload that metric? Before anything ran. */
int td_rule_check(const struct td_rule *rule, struct td_world *world,
                  const struct td_scenario *scenario, struct td_error *err);

struct td_rule_verdict {
    bool is_broken; /* the comparison holds, or there is nothing to compare */
    bool has_value;
    double value;
};
struct td_rule_verdict td_rule_judge(const struct td_rule *rule, const struct td_world_view *view,
                                     const struct td_record *record);

/* "37", "231ms", "12.5%"; "no value". In the arena. */
td_str td_rule_value(struct td_arena *arena, const struct td_rule *rule,
                     const struct td_rule_verdict *verdict);

/* The metrics; NULL: no more. */
const char *td_rule_metric_name(size_t index);
