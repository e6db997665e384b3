/*
 * What credentials.c and credentials_exec.c share; private to them.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/os/clock.h"
#include "kube/kubeconfig/credentials.h"
#include "kube/kubeconfig/kubeconfig.h"

struct td_process;

struct td_credentials_wait {
    struct td_credentials_wait *next;
    struct td_credentials_wait **link; /* what points at this one */
    struct td_credentials *owner;
    td_credential_fn fn;
    void *context;
};

/* The plugin and its last answer, which is in the credentials' own texts. */
struct td_credentials_exec {
    struct td_process *process; /* while it runs */
    bool has_answer;
    bool is_rejected; /* the server refused the answer */
    bool has_expiry;
    td_time expires;
    bool has_run;
    td_duration ended;       /* steady time of the last end */
    struct td_error failure; /* of the last run; code 0 when it was good */
};

struct td_credentials {
    const struct td_kube_config *config;
    struct td_loop *loop;
    struct td_buf token;
    struct td_buf certificate_pem;
    struct td_buf key_pem;
    struct td_buf ca_pem;
    uint64_t generation;
    uint64_t connection_generation;
    td_duration token_due; /* steady time of the next look at the token's file */
    td_duration pem_due;   /* of the next look at the certificates' files */
    struct td_credentials_exec exec;
    struct td_credentials_wait *waits;
    size_t wait_count;
};

/* Replace a text; the same content changes no generation. */
void td_credentials_set_token(struct td_credentials *credentials, td_str token);
void td_credentials_set_pair(struct td_credentials *credentials, td_str certificate_pem,
                             td_str key_pem);

/* Is there an answer of the plugin that may be used now? TD_BUSY after starting it or while it
 * runs, else its failure. */
int td_credentials_exec_get(struct td_credentials *credentials, struct td_error *err);

/* What the last run left: TD_OK when there is an answer to use, else the failure. */
int td_credentials_exec_result(const struct td_credentials *credentials, struct td_error *err);

/* The plugin has ended: tell those who wait. */
void td_credentials_tell(struct td_credentials *credentials);
