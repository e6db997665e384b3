/*
 * What a workload came to in a run, the table and the data of all of them, and what may not be.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "scenarios.h"

#define QUALITY_SEEDS ((size_t)3)

/* Of four days. */
struct quality_figures {
    double cost;      /* core-hours requested, 7.5 GiB for a core */
    double mean;      /* latency, in milliseconds: of all requests the same */
    double p50;       /* of the minutes, weighted by their requests */
    double p99;       /* the same */
    double dropped;   /* requests */
    double requests;  /* that came */
    double ooms;      /* containers killed for memory */
    double evictions; /* pods */
    double resizes;   /* pods resized in place */
    double changes;   /* of the number of replicas */
};

struct quality_table {
    size_t scenario_count;
    size_t setup_count;
    size_t seed_count;
    struct quality_setup setups[QUALITY_SETUPS_MAX];
    bool has[QUALITY_SCENARIOS];
    bool is_chosen[QUALITY_SETUPS_MAX];
    size_t chosen_count;
    struct quality_figures figures[QUALITY_SCENARIOS][QUALITY_SETUPS_MAX][QUALITY_SEEDS];
};

/* Is it one by which others are judged? */
bool quality_is_measure(const char *setup);

/* The mean over the seeds. */
struct quality_figures quality_mean(const struct quality_table *table, size_t scenario,
                                    size_t setup);

/* Lines "bench NAME VALUE UNIT" of the Hvpas and the usual HPA, and a table for each scenario. */
void quality_print(const struct quality_table *table);

/* False: the file cannot be written. */
bool quality_write_json(const struct quality_table *table, const char *path);

/* Says what is wrong, a line each; how many there are. */
size_t quality_judge(const struct quality_table *table);
