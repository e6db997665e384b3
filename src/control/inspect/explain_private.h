/*
 * What the files of the explanation share: text and tree grow together, a line at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "control/inspect/explain.h"
#include "control/inspect/snapshot.h"
#include "decide/vertical/updater/updater_account.h"

struct explain_replacements; /* explain_replacement.c */
struct td_timer;

struct td_explain {
    struct td_snapshot *snapshot;
    struct td_explain_subject subject;
    struct td_arena texts; /* of the subject */
    struct td_arena arena; /* of one attempt */
    struct td_buf text;
    struct td_json *json;
    struct td_json *says;
    struct td_timer *again;                    /* a source had to ask first */
    struct explain_replacements *replacements; /* NULL: none was judged */
    int tries;
    td_explain_fn fn;
    void *context;
};

/* The first line of the text, and the head of the tree. */
void explain_title(struct td_explain *explain, td_str kind, td_str api_version, td_str more);
/* A sentence under a label; an empty label goes on with the one before. */
void explain_say(struct td_explain *explain, const char *label, td_str sentence);
/* A paragraph of a decider, below a label. */
void explain_quote(struct td_explain *explain, const char *label, td_str paragraph);
void explain_end(struct td_explain *explain);
void explain_fail(struct td_explain *explain, int code, const char *message);

/* The object of a kind, as a tree; NULL when there is none. */
struct td_json *explain_object(struct td_explain *explain, enum td_informer_kind kind,
                               td_str namespace, td_str name);
/* "cpu 500m, memory 1Gi"; "nothing" for an empty list. */
td_str explain_amounts(struct td_arena *arena, const struct td_resource_list *list);
/* What was found out besides: metrics and webhook. */
void explain_problems(struct td_explain *explain, bool has_webhook);
/* A note of the updater about one pod, or about all: what would be done, or why not. */
td_str explain_note(struct td_explain *explain, const struct td_updater_note *note);
/* What the updater would do to the pods of a namespace, those of the VPA held where it would hold
 * them. TD_BUSY: something is being asked for. */
int explain_updater(struct td_explain *explain, const struct td_vpa *vpa,
                    struct td_updater_notes *ret, struct td_error *err);
void explain_replacements_free(struct explain_replacements *all); /* NULL is accepted */
/* Conditions that are worth a word, with the next step. */
void explain_conditions(struct td_explain *explain, const struct td_vpa_condition *conditions,
                        size_t count);

/* Each returns TD_OK when all is said, TD_BUSY when something is being asked for, or another code
 * with its reason. */
int explain_vpa(struct td_explain *explain, struct td_error *err);
int explain_pod(struct td_explain *explain, struct td_error *err);
int explain_workload(struct td_explain *explain, struct td_error *err);
/* Ends by itself. */
void explain_hvpa(struct td_explain *explain);
