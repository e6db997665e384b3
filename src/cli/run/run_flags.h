/*
 * The flags of `tandem run`: one table with name, type, default, bounds and meaning, from which
 * they are read, told (`--flags`) and documented (docs/run.md holds the same table, which a test
 * compares). Names are upstream's where upstream has them; `_` may stand for `-`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/os/env.h"
#include "base/str.h"
#include "control/controllers.h"

struct td_error;

struct td_run_flags {
    struct td_controllers_options controllers;
    td_str kubeconfig; /* empty: as kubectl finds it, or the pod's own */
    td_str context;
    td_str address;     /* empty: none */
    td_str page_listen; /* empty: no page */
    bool has_address;
    size_t shards;
    bool has_shards;   /* also of one: the replicas agree by the shards' leases */
    int64_t verbosity; /* klog's */
    bool is_log_json;
    bool is_quiet;
    bool is_shadow;
    bool wants_help;
    bool wants_flags;
    td_str webhook_listen; /* empty: by where it runs */
    int64_t webhook_port;
    /* As written, read at the end. */
    td_str controllers_text;
    td_str gates_text;
    td_str horizontal_text;
    td_str storage_text;
    td_str logging_text;
    td_str strategy_text;
    td_str limit_range_text;
    td_str ignored_text;
    td_str exempt_text;
    td_str bearer_file;
    td_str client_ca_file;
    td_str container_max_cpu;
    td_str container_max_memory;
    td_str pod_max_cpu;
    td_str pod_max_memory;
    td_str boost_max;
};

/* What follows the command's name. Texts are the arguments' or the arena's. TD_INVALID with one
 * line that names flag and value. */
int td_run_flags_parse(struct td_arena *arena, int argc, char **argv, td_env_fn env,
                       struct td_run_flags *ret, struct td_error *err);

/* For `tandem up` and `tandem simulate`, whose controllers run in the cluster's process: takes the
 * flags that say how recommender, updater, admission, horizontal and hvpa decide out of a command
 * line, and leaves the rest in its order. Those of a connection, a registration, an election or a
 * Prometheus stay, and are unknown there. On failure the line of *err names flag and value. */
int td_run_flags_extract(struct td_arena *arena, int *argc, char **argv,
                         struct td_controllers_options *ret, struct td_error *err);

/* What can be said of values only together, or by other rules than the table has: names of objects
 * and namespaces, times of leases. TD_INVALID likewise. */
int td_run_flags_check(const struct td_run_flags *flags, struct td_error *err);
/* The authority of --webhook-client-ca-file, into the options of the webhook. */
int td_run_flags_read_client_ca(struct td_arena *arena, struct td_run_flags *flags,
                                struct td_error *err);

/* What --shadow means for the controllers; TD_INVALID beside flags that act. */
int td_run_flags_settle_shadow(struct td_run_flags *flags, struct td_error *err);

/* A row of the table. */
struct td_run_flag {
    const char *name;
    const char *group; /* NULL: that of the row before */
    const char *help;
    bool is_switch;       /* --name, or --name=false */
    bool is_of_decisions; /* td_run_flags_extract takes it */
};

/* By its place; false past the end. */
bool td_run_flags_at(size_t index, struct td_run_flag *ret);
/* Appends its default. */
void td_run_flags_default(size_t index, struct td_buf *out);

/* The table, as Markdown. */
void td_run_flags_write(struct td_buf *out);
