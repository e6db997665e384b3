/* What the parts of the preflight share: the answers, and how a finding is told. */
#pragma once

#include "base/arena.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/vec.h"
#include "control/preflight/preflight.h"
#include "kube/client/client.h"
#include "model/pod.h" /* TD_TIME_NONE */

struct td_access;

#define PREFLIGHT_PROBE "tandem-preflight"

/* Read first. */
enum preflight_question {
    PREFLIGHT_VERSION,
    PREFLIGHT_GROUPS,
    PREFLIGHT_CORE,
    PREFLIGHT_SERVED, /* autoscaling.k8s.io/v1 */
    PREFLIGHT_SERVICE,
    PREFLIGHT_METRICS,
    PREFLIGHT_PODS, /* that run */
    PREFLIGHT_VPAS, /* the definitions, as PREFLIGHT_CHECKPOINTS to PREFLIGHT_SHADOWS */
    PREFLIGHT_CHECKPOINTS,
    PREFLIGHT_OWN_HPAS,
    PREFLIGHT_HVPAS,
    PREFLIGHT_SHADOWS,
    PREFLIGHT_LEASES,
    PREFLIGHT_WEBHOOKS,
    PREFLIGHT_MANAGERS, /* pods of kube-controller-manager */
    PREFLIGHT_HPAS,
    PREFLIGHT_NODES,
    PREFLIGHT_SHARDED, /* one pod of all, with a selector of shards */
    PREFLIGHT_NAMESPACE,
    PREFLIGHT_ACCOUNT,
    PREFLIGHT_SECRET,
    PREFLIGHT_SCALED, /* KEDA's */
    PREFLIGHT_HVPA_OBJECTS,
    PREFLIGHT_DEPLOYMENTS, /* in pages */
    PREFLIGHT_READS,       /* how many are read; those below are tried */
    PREFLIGHT_TRY_POD = PREFLIGHT_READS,
    PREFLIGHT_TRY_POD_LEVEL,
    PREFLIGHT_TRY_ZERO,
    PREFLIGHT_TRY_TOLERANCE,
    PREFLIGHT_QUESTIONS,
};

struct preflight_answer {
    struct td_preflight *preflight;
    struct td_client_call *call;
    bool is_asked;
    int code; /* of the reply */
    int status;
    struct td_error err;
    td_str warning;
    struct td_json *tree; /* NULL: no JSON */
};

/* A Deployment that autoscales. */
struct preflight_part {
    const char *program; /* of the table in preflight_parts.c */
    td_str namespace;
    td_str name;
    td_str image;
    int64_t replicas;
};

struct td_preflight {
    struct td_preflight_options options;
    struct td_arena arena; /* of answers and findings */
    struct td_arena page;  /* of the Deployments that are being read */
    struct preflight_answer answers[PREFLIGHT_QUESTIONS];
    size_t open;
    bool is_trying; /* the dry runs are under way */
    struct td_access *access;
    bool is_account; /* the rights are those of the service account */
    td_str missing;  /* lines of rights that are not there */
    size_t missing_count;
    size_t rights_count;
    struct td_error access_error;
    struct {
        TD_VEC_FIELDS(struct preflight_part);
    } parts;
    struct {
        TD_VEC_FIELDS(struct td_finding);
    } findings;
    struct td_findings result;
    td_preflight_fn fn;
    void *context;
};

/* Texts are formatted into the arena by the caller; `remedy` may be empty. */
void preflight_tell(struct td_preflight *preflight, enum td_finding_state state, const char *check,
                    td_str found, td_str remedy);

static inline const struct preflight_answer *preflight_answer(const struct td_preflight *preflight,
                                                              enum preflight_question question)
{
    return &preflight->answers[question];
}
/* The object or list that came back; NULL: none did. */
static inline const struct td_json *preflight_tree(const struct td_preflight *preflight,
                                                   enum preflight_question question)
{
    const struct preflight_answer *answer = &preflight->answers[question];
    return answer->code == TD_OK ? answer->tree : NULL;
}
/* Was it asked for, and may it not be read? */
static inline bool preflight_is_denied(const struct td_preflight *preflight,
                                       enum preflight_question question)
{
    const struct preflight_answer *answer = &preflight->answers[question];
    return answer->is_asked && answer->code == TD_DENIED;
}

/* Nothing of upstream's is in its way. */
static inline bool preflight_is_shadow(const struct td_preflight *preflight)
{
    return preflight->options.install.has[TD_CONTROLLER_SHADOW];
}

/* How old a time of an object is; TD_TIME_NONE when it has none. */
td_duration preflight_age(const struct td_preflight *preflight, td_str time);

/* ---- preflight_ask.c ---- */

struct td_client_request preflight_read(struct td_preflight *preflight,
                                        enum preflight_question question);
struct td_client_request preflight_try(struct td_preflight *preflight,
                                       enum preflight_question question);
bool preflight_is_wanted(const struct td_preflight *preflight, enum preflight_question question);
/* Where pods are tried: the program's namespace, or "default" while that is not there. */
td_str preflight_place(const struct td_preflight *preflight);

/* ---- Judges ---- */

void preflight_judge_server(struct td_preflight *preflight);
void preflight_judge_metrics(struct td_preflight *preflight);
void preflight_judge_definitions(struct td_preflight *preflight);
void preflight_judge_rights(struct td_preflight *preflight);
void preflight_judge_parts(struct td_preflight *preflight);
void preflight_judge_webhook(struct td_preflight *preflight);
void preflight_judge_horizontal(struct td_preflight *preflight);
void preflight_judge_keda(struct td_preflight *preflight);
void preflight_judge_pods(struct td_preflight *preflight);
/* Keeps those of a page of Deployments that autoscale. */
void preflight_take_parts(struct td_preflight *preflight, const struct td_json *list);
