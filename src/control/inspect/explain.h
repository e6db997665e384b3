/*
 * Why an autoscaler decided what it did, what it would do next, and what would change it; for a pod
 * which VPA manages it, or why none does; for a workload who acts on it. What the controllers read
 * is read (control/inspect/snapshot.h), their own deciders are asked without writing, and their
 * accounts are rendered, as text and as a tree of the same content. What is missing
 * (metrics, a webhook, an owner) is said with the next step. One thread, the loop's.
 */
#pragma once

#include "base/error.h"
#include "base/str.h"
#include "control/informers/informers.h"

struct td_explain;
struct td_snapshot;
struct td_json;

enum td_explain_kind {
    TD_EXPLAIN_VPA,
    TD_EXPLAIN_HPA,
    TD_EXPLAIN_HVPA,
    TD_EXPLAIN_POD,
    TD_EXPLAIN_WORKLOAD,
};

struct td_explain_subject {
    enum td_explain_kind kind;
    td_str workload; /* of a workload: "Deployment"; else empty */
    td_str namespace;
    td_str name;
};

/* From a word such as "vpa", "deploy", "statefulsets.apps", as kubectl takes them; TD_INVALID with
 * the words that there are. Namespace and name stay as they are. */
/* The kinds as they are shown to who types, by place; NULL past the end. */
const char *td_explain_kind_at(size_t index);
int td_explain_parse_kind(td_str word, struct td_explain_subject *ret, struct td_error *err);

/* Which autoscalers must be readable (snapshot.h). */
void td_explain_needs(const struct td_explain_subject *subject, bool needs[TD_INFORMER_COUNT]);

/* Valid during the call. */
struct td_explanation {
    int code; /* TD_OK; TD_NOT_FOUND: there is no such object; else it could not be found out */
    struct td_error err;
    td_str text; /* ends with a newline */
    const struct td_json *json;
};
typedef void (*td_explain_fn)(void *context, const struct td_explanation *explanation);

/* On a snapshot that is there; `fn` is called once, from the loop, unless it is freed before. */
struct td_explain *td_explain_start(struct td_snapshot *snapshot,
                                    const struct td_explain_subject *subject, td_explain_fn fn,
                                    void *context);
void td_explain_free(struct td_explain *explain); /* not from inside `fn` */
