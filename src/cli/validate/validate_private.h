/*
 * One run of `tandem validate`: what was read, what was skipped and what was found. Everything
 * lives until the run ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/manifest.h"
#include "kube/schema/check.h"

/* Files that are no manifests of objects, by what they are instead. */
enum td_validate_skip {
    TD_SKIP_TEMPLATE,
    TD_SKIP_CHART,
    TD_SKIP_VALUES,
    TD_SKIP_KUSTOMIZATION,
    TD_SKIP_PATCH, /* named as such by a kustomization */
    TD_SKIP_OTHER,
    TD_SKIP_IGNORED, /* --ignore */
    TD_SKIP_COUNT,
};

enum td_validate_output {
    TD_VALIDATE_TABLE,
    TD_VALIDATE_JSON,
    TD_VALIDATE_YAML,
    TD_VALIDATE_JUNIT,
    TD_VALIDATE_SARIF,
};

/* A finding, about an object or about a whole file. */
struct validate_finding {
    td_str file;   /* empty: about all of them */
    td_str object; /* "Deployment shop/web"; empty: the file */
    const struct td_problem *problem;
};

struct td_validate_file; /* memory of one file that holds objects */

struct td_patterns {
    const char **items;
    size_t count;
};

struct td_validate {
    struct td_arena arena;
    struct td_arena text; /* of the file in hand */
    struct td_validate_file *files;
    size_t tree_bytes; /* of all files */
    struct td_manifest manifest;
    struct td_problems *problems;      /* of each object */
    struct validate_finding *findings; /* files first, then objects in their order */
    size_t finding_count;
    size_t finding_cap;
    size_t problem_count; /* findings that are no warnings */
    size_t unread_count;  /* files that could not be read or decoded */
    size_t file_count;    /* that could, and hold objects */
    size_t unknown_count; /* objects of kinds that are not served */
    size_t skipped[TD_SKIP_COUNT];
    struct td_json *patches; /* paths that kustomizations name as patches, a set */
    const char *argument;    /* of the command line, in hand */
    struct td_patterns ignored;
    enum td_validate_output output;
    bool migrates;
    bool allows_empty;
};

/* Adds the objects of a file or folder; what cannot be read becomes a finding. */
void td_validate_read(struct td_validate *run, const char *path);
/* Once all are read: what a kustomization names as a patch is no object. */
void td_validate_drop_patches(struct td_validate *run);
void td_validate_free_files(struct td_validate *run);

/* Were there files, and none of them readable? */
bool td_validate_is_blind(const struct td_validate *run);

void td_validate_add(struct td_validate *run, const struct validate_finding *finding);

/* Each prints the run; the exit status. */
int td_validate_print(struct td_validate *run);
int td_validate_print_junit(struct td_validate *run);
int td_validate_print_sarif(struct td_validate *run);
int td_validate_migrate(struct td_validate *run);

/* A whole text on standard output. */
int td_validate_write(const struct td_buf *text);
/* A finding as a member of a report. */
struct td_json *td_validate_row(struct td_arena *arena, const struct validate_finding *finding);
