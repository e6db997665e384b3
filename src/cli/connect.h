/*
 * What the commands that look at a cluster share: the flags that say which cluster, found as
 * kubectl finds it, and one look at it (control/inspect/snapshot.h).
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/os/clock.h"
#include "cli/options.h"
#include "control/informers/informers.h"
#include "kube/kubeconfig/kubeconfig.h"

struct td_client;
struct td_client_flow;
struct td_error;
struct td_snapshot;
struct td_loop;

struct td_connect {
    const char *command;           /* for messages */
    const char *kubeconfig;        /* --kubeconfig, or NULL */
    const char *context;           /* --context, or NULL */
    const char *feature_gates;     /* --feature-gates, or NULL */
    const char *estimator;         /* of `tandem recommend`, or NULL */
    td_str namespace;              /* only this one is looked at; empty: all */
    bool needs[TD_INFORMER_COUNT]; /* as snapshot.h has it */
    struct td_arena arena;
    struct td_clock clock;
    struct td_kube_config config;
    struct td_loop *loop;
    struct td_snapshot *snapshot;
    struct td_client *client; /* of td_connect_call */
    struct td_client_flow *flow;
    void (*ready)(void *context); /* private, as all below */
    void *ready_context;
    int status;
};

/* Rows of the table of a command's options, for its member of the type above. */
#define TD_CONNECT_OPTIONS(type, member)                                                           \
    TD_OPTION_TEXT("kubeconfig", 0, type, member.kubeconfig),                                      \
        TD_OPTION_TEXT("context", 0, type, member.context),                                        \
        TD_OPTION_TEXT("feature-gates", 0, type, member.feature_gates)

void td_connect_init(struct td_connect *connect, const char *command);
void td_connect_done(struct td_connect *connect);

/* The configuration alone, for its namespace: TD_EXIT_DONE, or TD_EXIT_FAILED after one line. */
int td_connect_load(struct td_connect *connect);

/* Looks at the cluster, calls `ready` from the loop when it has been seen, and returns when
 * td_connect_end was called: with its status, or TD_EXIT_FAILED after one line. */
int td_connect_run(struct td_connect *connect, void (*ready)(void *context), void *context);
/* The same without the look: `ready` is called at once and asks through client and flow. What it
 * has begun is freed before td_connect_done. */
int td_connect_call(struct td_connect *connect, void (*ready)(void *context), void *context);

/* One line that says why the cluster cannot be read, with the next step: TD_EXIT_FAILED. */
int td_connect_fail(const struct td_connect *connect, int code, const struct td_error *err);
void td_connect_end(struct td_connect *connect, int status);
