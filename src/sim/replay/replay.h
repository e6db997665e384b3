/*
 * Back-testing: what a policy for requests would have done with recorded use. Open loop: use is
 * what the trace says, whatever the policy sets. Walk-forward: a policy sees a window only after it
 * is over (the oracle excepted, which is there to show what is possible). The rules of the
 * simulation and the meaning of each figure: docs/replay.md. Pure and deterministic; the deciders
 * are the ones that run on a cluster.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "sim/replay/trace.h"

struct replay_rule;
struct td_buf;
struct td_estimator;

/* One way to set requests: an estimator (decide/vertical/estimator/estimator.h) under the updater's
 * rule for it, or a rule of replay's own: "as-was", "krr", "oracle". */
struct td_replay_policy {
    const char *name;
    const char *title; /* for tables */
    const struct replay_rule *rule;
    const struct td_estimator *estimator; /* NULL: the rule has none */
    int64_t limit_permille; /* of the memory limit to the request; 0: 1000, limit = request */
};

#define TD_REPLAY_LIMIT_PERMILLE_MAX 100000

/* By its place in the list, and by name; false when there is none. */
bool td_replay_policy_at(size_t index, struct td_replay_policy *ret);
bool td_replay_policy_find(td_str name, struct td_replay_policy *ret);
/* All names, parted by ", ". */
void td_replay_policy_write_names(struct td_buf *out);

/* Sums over windows after the first day of their trace. */
struct td_replay_score {
    int64_t windows;
    int64_t cpu_windows;    /* those with a CPU request to compare with */
    int64_t memory_windows; /* likewise */
    double cpu_requested;   /* millicores, summed over windows */
    double cpu_slack;       /* requested and not used */
    double cpu_used;
    double cpu_excess;       /* used above the request */
    int64_t cpu_overruns;    /* windows whose average was above the request */
    int64_t cpu_throttles;   /* windows whose p90 was above the request */
    double memory_requested; /* bytes, summed over windows */
    double memory_slack;     /* against the average */
    int64_t memory_overruns; /* windows whose highest use was above the request */
    int64_t ooms;            /* kills; as-was: memory_overruns, because no container was killed */
    int64_t changes;         /* of the requests, CPU and memory together */
    int64_t cpu_changes;     /* of that of CPU */
    int64_t containers;      /* with a window that counts */
    int64_t containers_oom;  /* and with an OOM */
};

/* Shares from 0 to 1; NaN where there is nothing to divide by. */
struct td_replay_figures {
    double cpu_slack;
    double cpu_overrun;
    double cpu_excess;
    double throttled;
    double memory_slack;
    double memory_overrun;
    double ooms_per_day; /* and container */
    double changes_per_day;
    double cpu_changes_per_day;
    double cost; /* of what was requested, against as-was */
    double container_days;
};

void td_replay_score_add(struct td_replay_score *sum, const struct td_replay_score *score);
struct td_replay_figures td_replay_figures(const struct td_replay_score *score,
                                           const struct td_replay_score *as_was);

/* One policy over one trace. */
void td_replay_run(const struct td_replay_policy *policy, const struct td_trace *trace,
                   struct td_replay_score *ret);

/* The same, and each window with the request that was in force in it. */
struct td_replay_window {
    size_t index;
    int64_t cpu_milli; /* 0: none, as the one below */
    int64_t memory_bytes;
    int64_t limit_bytes; /* of memory */
    const char *why;     /* of the latest change of the request; NULL: there was none */
    bool is_oom;         /* use is above the limit; as-was: it happened, nothing was killed */
};
typedef void (*td_replay_watch_fn)(void *context, const struct td_replay_window *window);
void td_replay_watch(const struct td_replay_policy *policy, const struct td_trace *trace,
                     td_replay_watch_fn fn, void *context, struct td_replay_score *ret);

/* Windows that count, and of them those whose use touches a limit that was set: the true demand may
 * have been higher. */
void td_replay_count(const struct td_trace *trace, int64_t *ret_windows, int64_t *ret_censored);
