#include <getopt.h>
#include <stdio.h>

#include "api/objects.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/validate_migrate.h"
#include "decide/manifests.h"
#include "decide/vertical/siblings_check.h"
#include "kube/manifest.h"
#include "kube/schema/check.h"

static const char validate_help[] =
    "check manifests offline, as the API server and our webhooks would\n\n"
    "  tandem validate k8s/ db.yaml      for example: a folder and a file; '-' reads standard "
    "input\n\n"
    "usage: tandem validate [--output table|json|yaml] [--migrate] FILE...\n\n"
    "--migrate prints instead the Hvpa that each HPA and VPA on one workload could become, and "
    "each\n"
    "Hvpa of gardener's, as YAML with notes; exit status 1 when one cannot be expressed.\n\n"
    "Reads YAML and JSON (.json), folders too. Exit status: 0 no problems, 1 problems, 2 a file "
    "cannot be\n"
    "read or decoded. Guide: docs/validate.md\n";

struct validate {
    struct td_arena arena;
    struct td_manifest manifest;
    size_t file_count;
    struct td_json *problems; /* array of objects: file, line, object, field, message */
    enum td_output output;
    bool migrates;
};

/* One file; failures are already complete sentences with the file's name. */
static int validate_read(const char *path, void *context, struct td_error *err)
{
    struct validate *run = context;
    td_str text;
    int code = td_file_read(path, &run->arena, TD_YAML_BYTES_MAX, &text, err);
    if (code < 0) {
        return code;
    }
    run->file_count++;
    td_str name = td_arena_copy_str(&run->arena, td_str_from(path));
    return td_manifest_read(&run->arena, name, text, &run->manifest, err);
}

/* One object by itself: what cannot be decoded fails, all else is collected. */
static int validate_object(const struct td_manifest_object *object, struct td_problems *problems,
                           struct td_error *err)
{
    const struct td_schema_type *type = td_objects_schema(object->api_version, object->kind);
    const struct td_schema_type *shape = type ? type : td_schema_any_object();
    struct td_error cause = TD_ERROR_INIT;
    uint32_t line = object->line;
    if (td_check_types(shape, object->tree, &line, &cause) < 0) {
        return td_error_set(err, cause.code, "%.*s:%u: %s", TD_STR_ARG(object->file), line,
                            cause.message);
    }
    td_check_object(type, object->tree, problems);
    td_objects_check(object->api_version, object->kind, object->tree, problems);
    return TD_OK;
}

static void validate_report(struct validate *run, const struct td_manifest_object *object,
                            const struct td_problems *problems)
{
    struct td_arena *arena = &run->arena;
    td_str title = td_arena_format(arena, "%.*s %.*s%s%.*s", TD_STR_ARG(object->kind),
                                   TD_STR_ARG(object->namespace),
                                   object->namespace.len > 0 ? "/" : "", TD_STR_ARG(object->name));
    for (size_t i = 0; i < problems->count; i++) {
        struct td_json *row = td_json_new_object(arena);
        td_json_set(arena, row, TD_STR("file"), td_json_new_string(arena, object->file));
        td_json_set(arena, row, TD_STR("line"), td_json_new_int64(arena, problems->items[i].line));
        td_json_set(arena, row, TD_STR("object"), td_json_new_string(arena, title));
        td_json_set(arena, row, TD_STR("field"),
                    td_json_new_string(arena, problems->items[i].field));
        td_json_set(arena, row, TD_STR("message"),
                    td_json_new_string(arena, problems->items[i].message));
        td_json_append(run->problems, row);
    }
}

/* Every object alone, then all together, reported in the order of files. */
static int validate_objects(struct validate *run, struct td_error *err)
{
    const struct td_manifest *manifest = &run->manifest;
    struct td_problems *problems = td_arena_array(&run->arena, struct td_problems, manifest->count);
    for (size_t i = 0; i < manifest->count; i++) {
        problems[i].arena = &run->arena;
        int code = validate_object(&manifest->items[i], &problems[i], err);
        if (code < 0) {
            return code;
        }
    }
    td_objects_check_all(manifest, problems);
    td_siblings_check_all(manifest, problems);
    td_manifests_check_all(manifest, problems);
    for (size_t i = 0; i < manifest->count; i++) {
        validate_report(run, &manifest->items[i], &problems[i]);
    }
    return TD_OK;
}

/* A message that begins with the field's own name ("selector overlaps ...") needs no path before
 * it. */
static bool validate_names_itself(td_str field, td_str message)
{
    size_t start = field.len;
    while (start > 0 && field.ptr[start - 1] != '.') {
        start--;
    }
    td_str name = td_str_slice(field, start, field.len);
    return field.len == 0 || (td_str_starts_with(message, name) && message.len > name.len &&
                              message.ptr[name.len] == ' ');
}

/* One problem: its place, then the message; further lines of that are indented. */
static void validate_print_row(const struct td_json *row)
{
    td_str field = td_json_get_str(row, TD_STR("field"), TD_STR_EMPTY);
    td_str message = td_json_get_str(row, TD_STR("message"), TD_STR_EMPTY);
    /* "A and B both act on ...": the message goes on where the object's name ends. */
    bool goes_on = td_str_starts_with(message, TD_STR("and "));
    (void)printf(
        "%.*s:%lld: %.*s%s", TD_STR_ARG(td_json_get_str(row, TD_STR("file"), TD_STR_EMPTY)),
        (long long)td_json_get_int64(row, TD_STR("line"), 0),
        TD_STR_ARG(td_json_get_str(row, TD_STR("object"), TD_STR_EMPTY)), goes_on ? " " : ": ");
    if (!goes_on && !validate_names_itself(field, message)) {
        (void)printf("%.*s: ", TD_STR_ARG(field));
    }
    while (message.len > 0) {
        size_t end = td_str_find(message, '\n', 0);
        (void)printf("%.*s\n%s", TD_STR_ARG(td_str_slice(message, 0, end)),
                     end + 1 < message.len ? "    " : "");
        message = td_str_slice(message, end + 1, message.len);
    }
}

static void validate_print_table(const struct validate *run)
{
    for (const struct td_json *row = td_json_first_item(run->problems); row; row = row->next) {
        validate_print_row(row);
    }
    size_t count = run->problems->count;
    char number[24] = "no";
    if (count > 0) {
        (void)snprintf(number, sizeof(number), "%zu", count);
    }
    (void)printf("%s problem%s in %zu object%s (%zu file%s)\n", number, count == 1 ? "" : "s",
                 run->manifest.count, run->manifest.count == 1 ? "" : "s", run->file_count,
                 run->file_count == 1 ? "" : "s");
}

static int validate_print(struct validate *run)
{
    if (run->output == TD_OUTPUT_TABLE) {
        validate_print_table(run);
        return TD_EXIT_DONE;
    }
    struct td_arena *arena = &run->arena;
    struct td_json *report = td_json_new_object(arena);
    td_json_set(arena, report, TD_STR("problems"), run->problems);
    td_json_set(arena, report, TD_STR("objects"),
                td_json_new_int64(arena, (int64_t)run->manifest.count));
    td_json_set(arena, report, TD_STR("files"), td_json_new_int64(arena, (int64_t)run->file_count));
    return td_output_print(report, run->output);
}

static int validate_files(struct validate *run, int count, char **paths)
{
    struct td_error err = TD_ERROR_INIT;
    for (int i = 0; i < count; i++) {
        if (td_file_each(paths[i], ".yaml,.yml,.json", validate_read, run, &err) < 0) {
            return td_command_fail("%s", err.message);
        }
    }
    if (run->migrates) {
        return td_validate_migrate(&run->arena, &run->manifest, run->output == TD_OUTPUT_JSON);
    }
    if (validate_objects(run, &err) < 0) {
        return td_command_fail("%s", err.message);
    }
    int status = validate_print(run);
    return status == TD_EXIT_DONE && run->problems->count > 0 ? TD_EXIT_PROBLEMS : status;
}

int td_command_validate(int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},
        {"migrate", no_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct validate run = {.output = TD_OUTPUT_TABLE};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":o:h", options, NULL)) != -1;) {
        if (option == 'h') {
            (void)fputs(validate_help, stdout); /* main looks at the stream's state */
            return TD_EXIT_DONE;
        }
        if (option == 'm') {
            run.migrates = true;
            continue;
        }
        if (option != 'o') {
            return td_command_fail(
                "validate: %s: unknown option or missing value; see 'tandem validate --help'",
                argv[optind - 1]);
        }
        if (td_output_parse("validate", optarg, &run.output) != TD_EXIT_DONE) {
            return TD_EXIT_FAILED;
        }
    }
    if (optind == argc) {
        return td_command_fail("validate: no files; for example 'tandem validate k8s/'");
    }
    td_arena_init(&run.arena, TD_TREE_ARENA_BYTES_MAX);
    run.problems = td_json_new_array(&run.arena);
    int status = validate_files(&run, argc - optind, argv + optind);
    td_arena_done(&run.arena);
    return status;
}
