/*
 * The command `tandem validate`: files are read into one manifest, definitions are judged first so
 * that their kinds are known, then every other object alone and all of them together. With
 * --migrate it prints Hvpas instead (validate_migrate.c).
 */
#include <stdio.h>
#include <string.h>

#include "api/objects.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/validate/validate_private.h"
#include "decide/manifests.h"
#include "decide/vertical/siblings_check.h"
#include "kube/objectkey.h"
#include "local/kinds/offline.h"

static const char validate_help[] =
    "check manifests offline, as the API server and tandem's webhooks would\n\n"
    "  tandem validate k8s/ db.yaml      for example: a folder and a file\n\n"
    "usage: tandem validate [--output FORMAT] [--ignore PATTERN]... [--allow-empty]\n"
    "                       [--migrate] FILE...\n\n"
    "  -o, --output FORMAT   table, json, yaml, junit or sarif (table)\n"
    "  --ignore PATTERN      leave out paths that match, or have a part that\n"
    "                        matches: '*.json', 'vendor', 'k8s/old-*'\n"
    "  --allow-empty         files without any object are no problem\n"
    "  --migrate             print instead, as YAML with notes, the Hvpa that\n"
    "                        replaces each HPA and VPA on one workload, and each\n"
    "                        Hvpa of gardener; exit status 1 if one has no\n"
    "                        equivalent\n\n"
    "Reads YAML and JSON files, and folders; '-' is standard input. Helm charts,\n"
    "kustomizations and files of other programs are counted and skipped. Exit\n"
    "status: 0 no problems (warnings are none), 1 problems found, 2 nothing could\n"
    "be read. Guide: docs/validate.md\n";

void td_validate_add(struct td_validate *run, const struct validate_finding *finding)
{
    run->findings = td_arena_grow(&run->arena, run->findings, run->finding_count, &run->finding_cap,
                                  sizeof(*run->findings));
    run->findings[run->finding_count++] = *finding;
    run->problem_count += !finding->problem->is_warning;
}

/* Definitions first, then the rest; each object alone. */
static void validate_alone(struct td_validate *run)
{
    struct td_offline *offline = td_offline_new();
    const struct td_manifest *manifest = &run->manifest;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < manifest->count; i++) {
            const struct td_manifest_object *object = &manifest->items[i];
            if (td_offline_is_definition(object) == (pass == 0)) {
                run->problems[i].arena = &run->arena;
                run->unknown_count += !td_offline_judge(offline, object, &run->problems[i]);
            }
        }
    }
    td_offline_free(offline);
}

static void validate_objects(struct td_validate *run)
{
    const struct td_manifest *manifest = &run->manifest;
    run->problems = td_arena_array(&run->arena, struct td_problems, manifest->count);
    validate_alone(run);
    td_objects_check_all(manifest, run->problems);
    td_siblings_check_all(manifest, run->problems);
    td_manifests_check_all(manifest, run->problems);
    for (size_t i = 0; i < manifest->count; i++) {
        const struct td_manifest_object *object = &manifest->items[i];
        for (size_t j = 0; j < run->problems[i].count; j++) {
            td_validate_add(run, &(struct validate_finding){
                                     .file = object->file,
                                     .object = td_manifest_title(&run->arena, object),
                                     .problem = &run->problems[i].items[j],
                                 });
        }
    }
}

static void validate_expect_objects(struct td_validate *run)
{
    static const struct td_problem nothing = {
        .message = TD_STR_INIT("no objects found; name files or folders that have manifests, or "
                               "say --allow-empty"),
        .rule = "no-objects",
    };
    if (run->manifest.count == 0 && run->unread_count == 0 && !run->allows_empty) {
        td_validate_add(run, &(struct validate_finding){.problem = &nothing});
    }
}

bool td_validate_is_blind(const struct td_validate *run)
{
    size_t skipped = 0;
    for (size_t i = 0; i < TD_SKIP_COUNT; i++) {
        skipped += run->skipped[i];
    }
    return run->unread_count > 0 && run->file_count == 0 && skipped == 0;
}

static int validate_run(struct td_validate *run, int count, char **paths)
{
    for (int i = 0; i < count; i++) {
        td_validate_read(run, paths[i]);
    }
    td_validate_drop_patches(run);
    int status = TD_EXIT_DONE;
    if (run->migrates) {
        status = td_validate_migrate(run);
    } else {
        validate_objects(run);
        validate_expect_objects(run);
        status = td_validate_print(run);
    }
    if (td_validate_is_blind(run)) {
        return TD_EXIT_FAILED;
    }
    return status == TD_EXIT_DONE && run->problem_count > 0 ? TD_EXIT_PROBLEMS : status;
}

static int validate_output(void *place, const char *word)
{
    static const char *const words[] = {"table", "json", "yaml", "junit", "sarif"};
    for (size_t i = 0; i < TD_COUNT(words); i++) {
        if (strcmp(word, words[i]) == 0) {
            *(enum td_validate_output *)place = (enum td_validate_output)i;
            return TD_EXIT_DONE;
        }
    }
    return td_command_fail("validate: --output: '%s': use table, json, yaml, junit or sarif", word);
}

static int validate_ignore(void *place, const char *pattern)
{
    struct td_patterns *ignored = place;
    ignored->items[ignored->count++] = pattern;
    return TD_EXIT_DONE;
}

static const struct td_option validate_options[] = {
    TD_OPTION("output", 'o', struct td_validate, output, validate_output),
    TD_OPTION("ignore", 0, struct td_validate, ignored, validate_ignore),
    TD_OPTION_FLAG("allow-empty", 0, struct td_validate, allows_empty),
    TD_OPTION_FLAG("migrate", 0, struct td_validate, migrates),
};

static int validate_command(struct td_validate *run, int argc, char **argv)
{
    const struct td_options options = {"validate", validate_help, validate_options,
                                       TD_COUNT(validate_options)};
    run->ignored.items = td_arena_array(&run->arena, const char *, (size_t)argc);
    int status = td_options_parse(&options, run, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (optind == argc) {
        return td_command_fail("validate: no files; for example 'tandem validate k8s/'");
    }
    if (run->migrates && run->output > TD_VALIDATE_YAML) {
        return td_command_fail("validate: --migrate prints yaml or json");
    }
    return validate_run(run, argc - optind, argv + optind);
}

int td_command_validate(int argc, char **argv)
{
    struct td_validate run = {.output = TD_VALIDATE_TABLE};
    td_arena_init(&run.arena, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&run.text, TD_TREE_ARENA_BYTES_MAX);
    run.patches = td_json_new_object(&run.arena);
    int status = validate_command(&run, argc, argv);
    td_validate_free_files(&run);
    td_arena_done(&run.text);
    td_arena_done(&run.arena);
    return status;
}
