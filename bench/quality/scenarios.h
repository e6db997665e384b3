/*
 * The loads and the set-ups that bench_quality compares: eight scenarios, and for each of them one
 * workload a set-up, side by side in one cluster that has room for all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/os/clock.h"

#define QUALITY_SCENARIOS ((size_t)8)
#define QUALITY_SETUPS_MAX ((size_t)40)
#define QUALITY_NAME_BYTES 32

struct quality_scenario {
    const char *name;
    const char *requests; /* the series, as a scenario file says it; NULL: the week below */
    const char *habits;   /* further lines of the demand */
    int replicas;         /* where nothing scales them: enough for the peak at about 60 % */
    int replicas_max;
    const char *cpu; /* of the template: request, limit; then memory */
    const char *cpu_limit;
    const char *memory;
    const char *memory_limit;
    bool has_roles;
    bool must_be_calm; /* the number of resizes is bounded */
};
extern const struct quality_scenario quality_scenarios[QUALITY_SCENARIOS];

enum quality_kind { QUALITY_FIXED, QUALITY_HPA, QUALITY_VPA, QUALITY_HPA_VPA, QUALITY_HVPA };

struct quality_setup {
    char name[QUALITY_NAME_BYTES]; /* also of the workload */
    enum quality_kind kind;
    int utilization;       /* percent, of the HPA */
    const char *estimator; /* NULL: no vertical recommendation */
    const char *mode;      /* of the Hvpa */
    bool is_memory_only;   /* the VPA's resources */
};

/* The set-ups in the order of the table; returns how many. */
size_t quality_setups(struct quality_setup *ret);

/* The two files of a run. */
void quality_write_scenario(const struct quality_scenario *scenario,
                            const struct quality_setup *setups, size_t count, struct td_buf *out);
void quality_write_objects(const struct quality_scenario *scenario,
                           const struct quality_setup *setups, size_t count, struct td_buf *out);
