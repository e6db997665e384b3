/*
 * One HTML file of a finished run (docs/report.md): a head that says what was run, a table of
 * scores, plots of each workload with decisions as marks, all decisions, and texts. Style, scripts
 * and data are inside it, and a security policy with their hashes, so that nothing is asked for and
 * nothing else runs. The bytes depend on what is handed in alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct td_error;
struct td_record;
struct td_replay_policy;
struct td_replay_score;
struct td_right_sizes;
struct td_shadow_table;
struct td_rule;
struct td_rule_verdict;
struct td_scenario;
struct td_trace_set;
struct td_world_view;

/* What was run. */
struct td_report_head {
    td_str title;   /* "tandem simulate shop" */
    td_str command; /* as it was written */
    td_str version;
};

/* ---- The file: data is one JSON object, as below ---- */

int td_report_write(td_str title, td_str data, struct td_buf *out, struct td_error *err);

/* Modules of web/ as one script: each in a scope of its own, imports taken from those before it.
 * TD_INVALID when a module has a form of import or export that this does not know. */
int td_report_bundle(const char *const *paths, size_t count, struct td_buf *out,
                     struct td_error *err);

/* ---- simulate ---- */

struct td_report_rule {
    const struct td_rule *rule;
    const struct td_rule_verdict *verdict;
};

struct td_report_run {
    td_str name; /* tells runs apart: the scenario's path */
    const struct td_scenario *scenario;
    td_str text; /* of the scenario's file */
    uint64_t seed;
    const struct td_world_view *view; /* of its end */
    const struct td_record *record;
    const struct td_report_rule *rules;
    size_t rule_count;
};

/* The data. Full where it is too large. */
void td_report_simulate(const struct td_report_head *head, const struct td_report_run *runs,
                        size_t count, struct td_buf *out);

/* ---- replay ---- */

struct td_report_replay {
    const struct td_trace_set *set;
    const struct td_replay_policy *policies; /* with their memory limit */
    size_t policy_count;
    /* A row for as-was, then one for each policy; a column a trace. */
    const struct td_replay_score *scores;
    const struct td_replay_score *totals; /* of each row */
    int64_t windows;
    int64_t censored;
};

/* Runs the policies once more over the traces that have plots, to see each window. */
void td_report_replay(const struct td_report_head *head, const struct td_report_replay *replay,
                      struct td_buf *out);

/* ---- recommend ---- */

void td_report_recommend(const struct td_report_head *head, const struct td_right_sizes *sizes,
                         struct td_buf *out);

/* ---- recommend --shadow ---- */

void td_report_shadow(const struct td_report_head *head, struct td_shadow_table *table,
                      struct td_buf *out);
