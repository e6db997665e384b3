/*
 * Families in a map by name, series in a map by their label values; the text is sorted when it is
 * written, not when a series is made.
 */
#include "base/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/text.h"

/* One piece of memory: there are several for each object that is looked after. */
struct td_metric_series {
    struct td_metric_family *family;
    double value;                           /* a histogram's sum */
    uint64_t count;                         /* of a histogram */
    uint64_t *buckets;                      /* not summed up; owned */
    uint32_t lengths[TD_METRIC_LABELS_MAX]; /* of the label values */
    char key[];                             /* the label values, a line each */
};

struct td_metric_family {
    struct td_metric_declaration declaration;
    size_t label_count;
    struct td_map series; /* by key */
};

struct td_metric_registry {
    struct td_map families; /* by name */
};

struct td_metric_registry *td_metric_registry_new(void)
{
    struct td_metric_registry *registry = td_alloc_zero(1, sizeof(*registry));
    td_map_init(&registry->families, TD_METRIC_FAMILIES_MAX);
    return registry;
}

static void metric_series_free(struct td_metric_series *series)
{
    td_free(series->buckets);
    td_free(series);
}

void td_metric_clear(struct td_metric_family *family)
{
    for (struct td_map_walk at = {.map = &family->series}; td_map_step(&at);) {
        metric_series_free(at.value);
    }
    td_map_reset(&family->series);
}

void td_metric_registry_free(struct td_metric_registry *registry)
{
    if (!registry) {
        return;
    }
    for (struct td_map_walk at = {.map = &registry->families}; td_map_step(&at);) {
        struct td_metric_family *family = at.value;
        td_metric_clear(family);
        td_map_done(&family->series);
        td_free(family);
    }
    td_map_done(&registry->families);
    td_free(registry);
}

struct td_metric_family *td_metric_declare(struct td_metric_registry *registry,
                                           const struct td_metric_declaration *declaration)
{
    td_str name = td_str_from(declaration->name);
    struct td_metric_family *family = td_map_get(&registry->families, name);
    if (family) {
        td_assert(family->declaration.kind == declaration->kind);
        return family;
    }
    family = td_alloc_zero(1, sizeof(*family));
    family->declaration = *declaration;
    while (family->label_count < TD_METRIC_LABELS_MAX && declaration->labels[family->label_count]) {
        family->label_count++;
    }
    td_map_init(&family->series, TD_METRIC_SERIES_MAX);
    int code = td_map_put(&registry->families, name, family);
    td_assert(code == 0); /* families are written in the source, and are few */
    return family;
}

/* The key of label values in a text of the heap: a line each, so that no two sets are one. */
static struct td_metric_series *metric_series_new(struct td_metric_family *family,
                                                  const td_str *values, td_str *ret_key)
{
    size_t len = 0;
    for (size_t i = 0; i < family->label_count; i++) {
        len += values[i].len + 1;
    }
    struct td_metric_series *series = td_alloc_zero(1, sizeof(*series) + len);
    series->family = family;
    char *at = series->key;
    for (size_t i = 0; i < family->label_count; i++) {
        series->lengths[i] = (uint32_t)values[i].len;
        (void)td_text_place(&at, values[i]);
        *at++ = '\n';
    }
    *ret_key = (td_str){.ptr = series->key, .len = len};
    return series;
}

struct td_metric_series *td_metric_series(struct td_metric_family *family, const td_str *values)
{
    td_str key;
    struct td_metric_series *series = metric_series_new(family, values, &key);
    struct td_metric_series *known = td_map_get(&family->series, key);
    if (known) {
        metric_series_free(series);
        return known;
    }
    if (family->declaration.kind == TD_METRIC_HISTOGRAM) {
        series->buckets = td_alloc_zero(family->declaration.bucket_count + 1, sizeof(uint64_t));
    }
    if (td_map_put(&family->series, key, series) != 0) {
        metric_series_free(series);
        return NULL;
    }
    return series;
}

void td_metric_drop(struct td_metric_family *family, const td_str *values)
{
    td_str key;
    struct td_metric_series *series = metric_series_new(family, values, &key);
    struct td_metric_series *known = td_map_remove(&family->series, key);
    if (known) {
        metric_series_free(known);
    }
    metric_series_free(series);
}

void td_metric_add(struct td_metric_series *series, double amount)
{
    if (series) {
        series->value += amount;
    }
}

void td_metric_set(struct td_metric_series *series, double value)
{
    if (series) {
        series->value = value;
    }
}

void td_metric_observe(struct td_metric_series *series, double value)
{
    if (!series) {
        return;
    }
    const struct td_metric_declaration *declaration = &series->family->declaration;
    size_t low = 0;
    size_t high = declaration->bucket_count;
    while (low < high) { /* the first bucket that holds it */
        size_t middle = low + (high - low) / 2;
        if (value <= declaration->buckets[middle]) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    series->buckets[low]++;
    series->count++;
    series->value += value;
}

double td_metric_value(const struct td_metric_series *series)
{
    return series ? series->value : 0;
}

/* ---- Text ---- */

static void metric_write_number(double value, struct td_buf *out)
{
    if (isfinite(value)) {
        td_json_write_double(value, out);
    } else {
        (void)td_buf_append(out, isnan(value) ? TD_STR("NaN")
                                 : value > 0  ? TD_STR("+Inf")
                                              : TD_STR("-Inf"));
    }
}

static void metric_write_escaped(td_str text, struct td_buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\n') {
            (void)td_buf_append(out, TD_STR("\\n"));
        } else {
            if (c == '\\' || c == '"') {
                (void)td_buf_append_char(out, '\\');
            }
            (void)td_buf_append_char(out, c);
        }
    }
}

/* "name_suffix{a="1",le="0.5"} " */
static void metric_write_head(const struct td_metric_series *series, const char *suffix,
                              const double *bound, td_str shard, struct td_buf *out)
{
    const struct td_metric_family *family = series->family;
    (void)td_buf_append_format(out, "%s%s", family->declaration.name, suffix);
    bool has_labels = family->label_count > 0 || bound || shard.len > 0;
    if (has_labels) {
        (void)td_buf_append_char(out, '{');
    }
    if (shard.len > 0) {
        (void)td_buf_append_format(out, "shard=\"%.*s\"%s", TD_STR_ARG(shard),
                                   family->label_count > 0 || bound ? "," : "");
    }
    const char *value = series->key;
    for (size_t i = 0; i < family->label_count; i++) {
        (void)td_buf_append_format(out, "%s%s=\"", i > 0 ? "," : "", family->declaration.labels[i]);
        metric_write_escaped((td_str){.ptr = value, .len = series->lengths[i]}, out);
        (void)td_buf_append_char(out, '"');
        value += series->lengths[i] + 1;
    }
    if (bound) {
        (void)td_buf_append_format(out, "%sle=\"", family->label_count > 0 ? "," : "");
        metric_write_number(*bound, out);
        (void)td_buf_append_char(out, '"');
    }
    (void)td_buf_append(out, has_labels ? TD_STR("} ") : TD_STR(" "));
}

static void metric_write_histogram(const struct td_metric_series *series, td_str shard,
                                   struct td_buf *out)
{
    const struct td_metric_declaration *declaration = &series->family->declaration;
    uint64_t sum = 0;
    for (size_t i = 0; i <= declaration->bucket_count; i++) {
        double bound = i < declaration->bucket_count ? declaration->buckets[i] : INFINITY;
        sum += series->buckets[i];
        metric_write_head(series, "_bucket", &bound, shard, out);
        (void)td_buf_append_format(out, "%llu\n", (unsigned long long)sum);
    }
    metric_write_head(series, "_sum", NULL, shard, out);
    metric_write_number(series->value, out);
    (void)td_buf_append_char(out, '\n');
    metric_write_head(series, "_count", NULL, shard, out);
    (void)td_buf_append_format(out, "%llu\n", (unsigned long long)series->count);
}

static int metric_compare(const void *a, const void *b)
{
    const struct td_map_entry *const *x = a;
    const struct td_map_entry *const *y = b;
    return td_str_compare((*x)->key, (*y)->key);
}

/* The entries of a map by key, in the arena. */
static const struct td_map_entry **metric_sorted(struct td_arena *arena, const struct td_map *map)
{
    const struct td_map_entry **entries =
        td_arena_array(arena, const struct td_map_entry *, map->count + 1);
    size_t position = 0;
    size_t count = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(map, &position))) {
        entries[count++] = entry;
    }
    if (count > 0) {
        qsort(entries, count, sizeof(*entries), metric_compare);
    }
    return entries;
}

static void metric_write_series(const struct td_metric_family *family, td_str shard,
                                struct td_buf *out)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_map_entry **entries = metric_sorted(&arena, &family->series);
    for (size_t i = 0; i < family->series.count; i++) {
        const struct td_metric_series *series = entries[i]->value;
        if (family->declaration.kind == TD_METRIC_HISTOGRAM) {
            metric_write_histogram(series, shard, out);
        } else {
            metric_write_head(series, "", NULL, shard, out);
            metric_write_number(series->value, out);
            (void)td_buf_append_char(out, '\n');
        }
    }
}

/* The family of that name in each source that has it, under one heading. */
static void metric_write_family(td_str name, const struct td_metric_source *sources, size_t count,
                                struct td_buf *out)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    bool has_heading = false;
    for (size_t i = 0; i < count; i++) {
        const struct td_metric_family *family = td_map_get(&sources[i].registry->families, name);
        if (!family || family->series.count == 0) {
            continue;
        }
        const struct td_metric_declaration *declaration = &family->declaration;
        if (!has_heading) {
            (void)td_buf_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", declaration->name,
                                       declaration->help, declaration->name,
                                       kinds[declaration->kind]);
            has_heading = true;
        }
        metric_write_series(family, sources[i].shard, out);
    }
}

void td_metric_sources_write(const struct td_metric_source *sources, size_t count,
                             struct td_buf *out)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_map names = td_map_capped(TD_METRIC_FAMILIES_MAX);
    for (size_t i = 0; i < count; i++) {
        for (struct td_map_walk at = {.map = &sources[i].registry->families}; td_map_step(&at);) {
            struct td_metric_family *family = at.value;
            (void)td_map_put(&names, td_str_from(family->declaration.name), family);
        }
    }
    const struct td_map_entry **families = metric_sorted(&arena, &names);
    for (size_t i = 0; i < names.count; i++) {
        metric_write_family(families[i]->key, sources, count, out);
    }
    td_map_done(&names);
}

void td_metric_registry_write(const struct td_metric_registry *registry, struct td_buf *out)
{
    const struct td_metric_source source = {.registry = registry, .shard = TD_STR_EMPTY};
    td_metric_sources_write(&source, 1, out);
}
