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

enum td_tally_kind { TD_TALLY_COUNTER, TD_TALLY_GAUGE, TD_TALLY_HISTOGRAM };

#define TD_TALLY_LABELS_MAX 6

struct td_tally;
struct td_tally_family;
struct td_tally_series;

struct td_tally_declaration {
    const char *name; /* static, as all texts here */
    const char *help;
    enum td_tally_kind kind;
    const char *labels[TD_TALLY_LABELS_MAX]; /* ends with NULL */
    const double *buckets;                   /* of a histogram, growing */
    size_t bucket_count;
};

struct td_tally *td_tally_new(void);
void td_tally_free(struct td_tally *tally);

/* Declaring the same name again gives the same family. */
struct td_tally_family *td_tally_declare(struct td_tally *tally,
                                         const struct td_tally_declaration *declaration);

/* One value a label, in their order; made at 0 when it is new. NULL past TD_TALLY_SERIES_MAX, which
 * the functions below take and ignore. */
struct td_tally_series *td_tally_series(struct td_tally_family *family, const td_str *values);
void td_tally_drop(struct td_tally_family *family, const td_str *values);
void td_tally_clear(struct td_tally_family *family); /* gauges that are set anew in each pass */

void td_tally_add(struct td_tally_series *series, double amount); /* counter or gauge */
void td_tally_set(struct td_tally_series *series, double value);  /* gauge */
void td_tally_observe(struct td_tally_series *series, double value);
double td_tally_value(const struct td_tally_series *series);

/* Families by name, series by label values: the same state is the same text. */
void td_tally_write(const struct td_tally *tally, struct td_buf *out);
