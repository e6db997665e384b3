/*
 * Three rules. A mode that is stuck drops requests or loses containers to memory far beyond what
 * the HPA alone does. The default Hvpa is dominated when some HPA set-up is 3 % cheaper and not
 * worse in anything else. And a day has fewer than twelve resizes where the load is one of those
 * that made the Hvpa restless; not under track, which follows the hour in small steps by design.
 */
#include "judge.h"

#include <stdio.h>
#include <string.h>

#define DAYS 4
#define RESIZES_A_DAY 12
#define DROPS_FACTOR 3    /* of the HPA's, and a share of all requests */
#define DROPS_SHARE 0.002 /* is stuck */
#define OOMS_MORE 12      /* than the HPA, in four days */
#define CHEAPER 0.97      /* 3 % */
#define USUAL_HPA "hpa70" /* what costs are given against */
#define DEFAULT_HVPA "hvpa-ratio-upstream"

bool quality_is_measure(const char *setup)
{
    return strcmp(setup, USUAL_HPA) == 0 || strcmp(setup, DEFAULT_HVPA) == 0;
}

struct quality_figures quality_mean(const struct quality_table *table, size_t scenario,
                                    size_t setup)
{
    struct quality_figures sum = {.cost = 0};
    double *to = (double *)&sum;
    size_t members = sizeof(sum) / sizeof(double);
    for (size_t seed = 0; seed < table->seed_count; seed++) {
        const double *from = (const double *)&table->figures[scenario][setup][seed];
        for (size_t i = 0; i < members; i++) {
            to[i] += from[i] / (double)table->seed_count;
        }
    }
    return sum;
}

static size_t find_setup(const struct quality_table *table, const char *name)
{
    size_t i = 0;
    while (i < table->setup_count && strcmp(table->setups[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void print_scenario(const struct quality_table *table, size_t scenario)
{
    const char *name = quality_scenarios[scenario].name;
    struct quality_figures usual = quality_mean(table, scenario, find_setup(table, USUAL_HPA));
    printf("\n%-24s %6s %8s %8s %8s %10s %6s %7s %8s %8s\n", name, "cost", "mean ms", "p50 ms",
           "p99 ms", "dropped", "OOMs", "evicted", "resizes", "replicas");
    for (size_t i = 0; i < table->setup_count; i++) {
        struct quality_figures f = quality_mean(table, scenario, i);
        printf("  %-22s %6.1f %8.1f %8.1f %8.1f %10.0f %6.1f %7.1f %8.1f %8.1f\n",
               table->setups[i].name, 100 * f.cost / usual.cost, f.mean, f.p50, f.p99,
               f.dropped / DAYS, f.ooms / DAYS, f.evictions / DAYS, f.resizes / DAYS,
               f.changes / DAYS);
    }
}

void quality_print(const struct quality_table *table)
{
    for (size_t s = 0; s < QUALITY_SCENARIOS; s++) {
        if (table->has[s]) {
            print_scenario(table, s);
        }
    }
    printf("\ncost: of requests, the HPA with a target of 70 %% is 100; the rest a day\n\n");
    for (size_t s = 0; s < QUALITY_SCENARIOS; s++) {
        double usual = quality_mean(table, s, find_setup(table, USUAL_HPA)).cost;
        for (size_t i = 0; table->has[s] && i < table->setup_count; i++) {
            if (table->setups[i].kind != QUALITY_HVPA) {
                continue;
            }
            struct quality_figures f = quality_mean(table, s, i);
            char name[80];
            (void)snprintf(name, sizeof(name), "bench quality_%s_%s", quality_scenarios[s].name,
                           table->setups[i].name);
            printf("%s_cost %.1f %%\n", name, 100 * f.cost / usual);
            printf("%s_latency %.1f ms\n", name, f.mean);
            printf("%s_dropped %.0f requests/day\n", name, f.dropped / DAYS);
            printf("%s_resizes %.1f resizes/day\n", name, f.resizes / DAYS);
        }
    }
}

static void write_figures(FILE *file, const struct quality_figures *f)
{
    (void)fprintf(file,
                  "{\"cost\": %.3f, \"latencyMeanMs\": %.3f, \"latencyP50Ms\": %.3f, "
                  "\"latencyP99Ms\": %.3f, \"dropped\": %.1f, \"requests\": %.0f, \"ooms\": %.1f, "
                  "\"evictions\": %.1f, \"resizes\": %.1f, \"replicaChanges\": %.1f}",
                  f->cost, f->mean, f->p50, f->p99, f->dropped, f->requests, f->ooms, f->evictions,
                  f->resizes, f->changes);
}

bool quality_write_json(const struct quality_table *table, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        return false;
    }
    (void)fprintf(file, "{\"days\": %d, \"seeds\": %zu, \"scenarios\": {", DAYS, table->seed_count);
    const char *between = "";
    for (size_t s = 0; s < QUALITY_SCENARIOS; s++) {
        if (!table->has[s]) {
            continue;
        }
        (void)fprintf(file, "%s\n  \"%s\": {", between, quality_scenarios[s].name);
        between = ",";
        for (size_t i = 0; i < table->setup_count; i++) {
            (void)fprintf(file, "%s\n    \"%s\": [", i > 0 ? "," : "", table->setups[i].name);
            for (size_t seed = 0; seed < table->seed_count; seed++) {
                (void)fprintf(file, "%s", seed > 0 ? ", " : "");
                write_figures(file, &table->figures[s][i][seed]);
            }
            (void)fprintf(file, "]");
        }
        (void)fprintf(file, "}");
    }
    (void)fprintf(file, "\n}}\n");
    bool is_written = ferror(file) == 0;
    return fclose(file) == 0 && is_written;
}

/* Cheaper by 3 %, and not worse in anything that a user notices. */
static bool dominates(const struct quality_figures *a, const struct quality_figures *b)
{
    return a->cost <= b->cost * CHEAPER && a->mean <= b->mean && a->p99 <= b->p99 &&
           a->dropped <= b->dropped && a->ooms <= b->ooms;
}

static size_t judge_scenario(const struct quality_table *table, size_t s)
{
    const char *name = quality_scenarios[s].name;
    size_t count = 0;
    struct quality_figures usual = quality_mean(table, s, find_setup(table, USUAL_HPA));
    struct quality_figures ours = quality_mean(table, s, find_setup(table, DEFAULT_HVPA));
    for (size_t i = 0; i < table->setup_count; i++) {
        const struct quality_setup *setup = &table->setups[i];
        struct quality_figures f = quality_mean(table, s, i);
        bool is_stuck = f.dropped > usual.dropped * DROPS_FACTOR + f.requests * DROPS_SHARE ||
                        f.ooms > usual.ooms + OOMS_MORE;
        if (setup->kind == QUALITY_HVPA && is_stuck) {
            printf("stuck: %s under %s drops %.0f requests (the HPA %.0f), OOMs %.1f (%.1f)\n",
                   name, setup->name, f.dropped, usual.dropped, f.ooms, usual.ooms);
            count++;
        }
        bool is_hpa =
            setup->kind == QUALITY_HPA || (setup->kind == QUALITY_HPA_VPA && setup->is_memory_only);
        if (is_hpa && dominates(&f, &ours)) {
            printf("dominated: %s by %s\n", name, setup->name);
            count++;
        }
        bool is_by_day = strcmp(setup->estimator ? setup->estimator : "", "track") != 0;
        if (setup->kind == QUALITY_HVPA && is_by_day && quality_scenarios[s].must_be_calm &&
            f.resizes >= (double)RESIZES_A_DAY * DAYS) {
            printf("restless: %s under %s, %.1f resizes a day\n", name, setup->name,
                   f.resizes / DAYS);
            count++;
        }
    }
    return count;
}

size_t quality_judge(const struct quality_table *table)
{
    size_t count = 0;
    for (size_t s = 0; s < QUALITY_SCENARIOS; s++) {
        count += table->has[s] ? judge_scenario(table, s) : 0;
    }
    return count;
}
