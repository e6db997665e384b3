/*
 * The recommender (vpa.md 2): every interval reads resource metrics, feeds the model
 * (decide/vertical/recommender/recommender.h), writes the statuses that changed and then the
 * checkpoints that changed, oldest first. OOMs come from pod updates and eviction events as they
 * happen. At the start knowledge comes from checkpoints, and from Prometheus for the time that they
 * do not cover. Pods, VPAs and targets follow the informers. A pass is sliced; writes go in
 * parallel, as many as `writes_max`. Metrics that are old or missing teach nothing, and a status
 * says so (condition MetricsStale), never the other way round.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/os/clock.h"
#include "control/common.h"
#include "control/prometheus/prometheus.h"
#include "decide/vertical/recommender/config.h"
#include "decide/vertical/resourcelist.h"

struct td_arena;
struct td_error;
struct td_hvpa;
struct td_recommend_loop;
struct td_recommender;
struct td_vpa_status;

struct td_recommend_options {
    struct td_control control;
    struct td_vertical_config config;
    td_str name;                      /* --recommender-name: "default" */
    const td_str *ignored_namespaces; /* --ignored-vpa-object-namespaces */
    size_t ignored_count;
    td_duration interval; /* 1 min */
    td_duration checkpoints_gc_interval;
    td_duration checkpoints_timeout;
    size_t writes_max;                  /* --update-worker-count */
    struct td_resource_list global_max; /* --container-recommendation-max-allowed-* */
    struct td_resource_list pod_max;    /* --pod-recommendation-max-allowed-* */
    double min_confidence;              /* --min-confidence-to-apply; 0: none */
    td_str estimator;                   /* default of VPAs without the annotation */
    bool is_estimator_forced;           /* it is used for all, whatever they ask for */
    bool is_quiet;    /* learns and computes, and writes neither status nor checkpoint nor event */
    td_str namespace; /* whose metrics and checkpoints are read; empty: of all */
    td_str vpa_namespace;                    /* --vpa-object-namespace: the only one asked about */
    struct td_prometheus_options prometheus; /* history before the first pass; no address: none */
    /* Webhook not mutating (webhook.h): its words become a condition of every VPA; empty: it works.
     */
    td_str (*get_webhook_problem)(void *context);
    /* The webhook leaves out new pods of the namespace; NULL: of none. */
    bool (*is_exempt)(void *context, td_str namespace);
    void *context;
};

int td_recommend_loop_new(const struct td_recommend_options *options,
                          struct td_recommend_loop **ret, struct td_error *err);
void td_recommend_loop_start(struct td_recommend_loop *loop);
/* Writes what is under way to its end, then calls done once. */
void td_recommend_loop_stop(struct td_recommend_loop *loop, void (*done)(void *context),
                            void *context);
void td_recommend_loop_free(struct td_recommend_loop *loop);

/* One pass that learns from checkpoints and present metrics and writes nothing, for `tandem
 * recommend` and `tandem explain`; on a loop that is not started, once the informers are synced.
 * `done` is called once.
 */
void td_recommend_loop_look(struct td_recommend_loop *loop, void (*done)(void *context),
                            void *context);
/* The status that a VPA should have now, and its object; TD_NOT_FOUND: it is not there, or another
 * recommender's. */
int td_recommend_loop_vpa(struct td_recommend_loop *loop, struct td_arena *arena, td_str namespace,
                          td_str name, struct td_vpa *ret_object, struct td_vpa_status *ret,
                          struct td_error *err);

/* For Hvpas, which ask the same model without a VPA object of their own. */
struct td_recommender *td_recommend_loop_model(struct td_recommend_loop *loop);
/* What a VPA with the vpaSpec of the Hvpa would have as its status now. TD_NOT_FOUND before the
 * first pass that saw the object. */
int td_recommend_loop_hvpa(struct td_recommend_loop *loop, struct td_arena *arena,
                           const struct td_hvpa *hvpa, struct td_vpa_status *ret,
                           struct td_error *err);
/* The estimator of VPAs without the annotation. */
const struct td_estimator *td_recommend_loop_estimator(const struct td_recommend_loop *loop);
/* Which annotation names no estimator, or no risk of it, and what is used; empty: all is well. */
td_str td_recommend_loop_estimator_problem(const struct td_recommend_loop *loop,
                                           struct td_arena *arena,
                                           const struct td_json *annotations);
/* May checkpoints not be listed? Known after the first pass. */
bool td_recommend_loop_is_denied(const struct td_recommend_loop *loop);
/* When the last whole pass ended; TD_TIME_NONE before the first. */
td_time td_recommend_loop_last(const struct td_recommend_loop *loop);
/* Is history being read from Prometheus? Until its end there is no pass, and no silence either. */
bool td_recommend_loop_is_reading(const struct td_recommend_loop *loop);
/* Why what is recommended does not rest on present metrics, as a sentence: they were not yet
 * read, cannot be read, or are old. Empty: it does. Text is in the arena. */
td_str td_recommend_loop_problem(const struct td_recommend_loop *loop, struct td_arena *arena);
/* Something that get_webhook_problem says has changed: statuses say so soon, not with the next
 * pass.
 */
void td_recommend_loop_tell(struct td_recommend_loop *loop);
/* Another process has led: what it learnt is read from its checkpoints at the next pass, in place
 * of what is known here. */
void td_recommend_loop_reread(struct td_recommend_loop *loop);
