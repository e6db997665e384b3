/*
 * The golden harness: cases with known answers, judged one function a topic. A topic's function
 * turns `in` into `out`, or fails with an error where the case expects one. What it returns is
 * compared with the case's `out` as JSON values; a topic whose vectors say otherwise brings its own
 * comparison.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"

struct golden_topic {
    const char *name; /* "kube/quantity-parse" */
    int (*run)(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
               struct td_error *err);
    /* NULL: td_json_equal. */
    bool (*is_same)(const struct td_json *expected, const struct td_json *got);
    bool names_field; /* an error begins with the field that the case's error begins with */
};

/* Each file of topics ends with an entry whose name is NULL. */
extern const struct golden_topic
    golden_kube_values[]; /* quantities, times, int-or-string, pod requests */
extern const struct golden_topic golden_kube_selectors[]; /* selectors, names */
extern const struct golden_topic
    golden_kube_patches[];                            /* JSON, merge, strategic, three-way patch */
extern const struct golden_topic golden_kube_apply[]; /* server-side apply */
extern const struct golden_topic
    golden_hpa_api[]; /* HorizontalPodAutoscaler: defaults, conversion, validation */
extern const struct golden_topic
    golden_vpa_api[]; /* VerticalPodAutoscaler: admission, CRD, siblings */
extern const struct golden_topic golden_hpa_replicas[];   /* pod groups, the five metric types */
extern const struct golden_topic golden_hpa_behavior[];   /* tolerance, behaviour, status */
extern const struct golden_topic golden_hpa_scenario[];   /* several metrics, whole reconciles */
extern const struct golden_topic golden_hpa_selection[];  /* selectors, selection strategy */
extern const struct golden_topic golden_vpa_learn[];      /* histograms, aggregates, estimator */
extern const struct golden_topic golden_vpa_feed[];       /* the recommender's model of a cluster */
extern const struct golden_topic golden_vpa_pods[];       /* LimitRanges, capping */
extern const struct golden_topic golden_vpa_patches[];    /* patches of pods, pod-level resources */
extern const struct golden_topic golden_adaptive[];       /* the adaptive estimator */
extern const struct golden_topic golden_track[];          /* the track estimator */
extern const struct golden_topic golden_vpa_owners[];     /* controllers, which VPA has a pod */
extern const struct golden_topic golden_vpa_updater[];    /* priority, restriction, whole passes */
extern const struct golden_topic golden_vpa_pass[];       /* whole passes, the proposals */
extern const struct golden_topic golden_vpa_partition[];  /* several VPAs of one target */
extern const struct golden_topic golden_seeds_podlevel[]; /* pod-level resources */
extern const struct golden_topic golden_hvpa_api[];       /* Hvpa: decoding, rules, ownership */
extern const struct golden_topic golden_hvpa_decide[];    /* the coordinator */
