/*
 * Acting on one pod, for the updater and the Hvpa controller alike: the requests of an eviction and
 * of a resize, what their answers mean, and the proof that the webhook mutates new pods, which both
 * want before an eviction. What is read before an eviction is in replacement.h. The caller sends
 * the requests through its own flow and keeps its own budget.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/os/clock.h"
#include "decide/vertical/patch/podstanza.h"
#include "decide/vertical/pod.h"

struct td_client_reply;
struct td_client_request;
struct td_error;
struct td_json;
struct td_log;
struct td_write_options;

/* Evicts this very pod, not another that has its name by now. */
int td_actuator_evict(struct td_arena *arena, const struct td_pod *pod,
                      struct td_client_request *ret, struct td_error *err);

/* A JSON patch to the pod, or to its resize subresource; `options` may be NULL. */
int td_actuator_patch(struct td_arena *arena, const struct td_pod *pod, const struct td_json *patch,
                      bool is_resize, const struct td_write_options *options,
                      struct td_client_request *ret, struct td_error *err);

/* The log lines that the proposal on pod-level resources asks for, one for each request that stays
 * as it is because nothing is recommended for it. `log` may be NULL. */
void td_actuator_log_lacking(struct td_log *log, const struct td_pod *pod,
                             const struct td_lacking *lacking);

enum td_resize_result {
    TD_RESIZE_RESULT_DONE,
    TD_RESIZE_RESULT_GONE,     /* the pod does not exist any more, or another has its name */
    TD_RESIZE_RESULT_CAPACITY, /* the pod's node is too small, says the API server by a cause */
    TD_RESIZE_RESULT_UNFIT,    /* only a new pod, perhaps on another node, can have that size */
    TD_RESIZE_RESULT_FAILED,   /* see the reply's err */
};
enum td_resize_result td_resize_result_of(const struct td_client_reply *reply);

/* The webhook's proof for one eviction; zero before the first question. */
struct td_webhook_proof {
    unsigned waits;    /* unanswered questions */
    td_duration since; /* time of the machine: an older proof does not count */
};

enum td_proof_state {
    TD_PROOF_SEEN,    /* new pods are mutated; the next eviction asks anew */
    TD_PROOF_AWAITED, /* ask again after a pause */
    TD_PROOF_MISSING, /* `waits_max` pauses were not enough */
};

/* `is_proved` may be NULL: then no webhook of this process has to prove anything. */
enum td_proof_state td_webhook_proof_ask(struct td_webhook_proof *proof,
                                         bool (*is_proved)(void *context, td_duration since),
                                         void *context, const struct td_clock *clock,
                                         unsigned waits_max);
