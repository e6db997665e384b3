/*
 * What the process counts about itself, in Prometheus' text format: counters, gauges and histograms
 * with labels, under upstream's names where upstream has them. A family is declared once; a series
 * is found by its label values and kept until it is dropped, so callers keep the pointer and count
 * without lookups. Series of objects that are gone are dropped by their owner: bounded by what is
 * managed. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum td_metric_kind { TD_METRIC_COUNTER, TD_METRIC_GAUGE, TD_METRIC_HISTOGRAM };

#define TD_METRIC_LABELS_MAX 6

struct td_metric_registry;
struct td_metric_family;
struct td_metric_series;

struct td_metric_declaration {
    const char *name; /* static, as all texts here */
    const char *help;
    enum td_metric_kind kind;
    const char *labels[TD_METRIC_LABELS_MAX]; /* ends with NULL */
    const double *buckets;                    /* of a histogram, growing */
    size_t bucket_count;
};

struct td_metric_registry *td_metric_registry_new(void);
void td_metric_registry_free(struct td_metric_registry *registry);

/* Declaring the same name again gives the same family. */
struct td_metric_family *td_metric_declare(struct td_metric_registry *registry,
                                           const struct td_metric_declaration *declaration);

/* One value a label, in their order; made at 0 when it is new. NULL past TD_METRIC_SERIES_MAX,
 * which the functions below take and ignore. */
struct td_metric_series *td_metric_series(struct td_metric_family *family, const td_str *values);
void td_metric_drop(struct td_metric_family *family, const td_str *values);
void td_metric_clear(struct td_metric_family *family); /* gauges that are set anew in each pass */

void td_metric_add(struct td_metric_series *series, double amount); /* counter or gauge */
void td_metric_set(struct td_metric_series *series, double value);  /* gauge */
void td_metric_observe(struct td_metric_series *series, double value);
double td_metric_value(const struct td_metric_series *series);

/* Families by name, series by label values: the same state is the same text. */
void td_metric_registry_write(const struct td_metric_registry *registry, struct td_buf *out);

/* Several registries as one text; series of a source with a shard have it as their first label. */
struct td_metric_source {
    const struct td_metric_registry *registry;
    td_str shard; /* empty: none */
};
void td_metric_sources_write(const struct td_metric_source *sources, size_t count,
                             struct td_buf *out);
