/* The findings as lines of text, or the same as JSON or YAML. */
#include <stdio.h>

#include "base/error.h"
#include "base/json/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/validate/validate_private.h"

/* What was skipped: the member of a report, and the words for one and for more. */
static const struct {
    const char *member;
    const char *one;
    const char *more;
} skip_words[TD_SKIP_COUNT] = {
    [TD_SKIP_TEMPLATE] = {"helmTemplates", "Helm template", "Helm templates"},
    [TD_SKIP_CHART] = {"charts", "chart", "charts"},
    [TD_SKIP_VALUES] = {"values", "values file", "values files"},
    [TD_SKIP_KUSTOMIZATION] = {"kustomizations", "kustomization", "kustomizations"},
    [TD_SKIP_PATCH] = {"patches", "Kustomize patch", "Kustomize patches"},
    [TD_SKIP_OTHER] = {"other", "file that is no manifest", "files that are no manifests"},
    [TD_SKIP_IGNORED] = {"ignored", "ignored file", "ignored files"},
};

int td_validate_write(const struct td_buf *text)
{
    struct td_error err = TD_ERROR_INIT;
    if (td_buf_check(text, "the report", &err) < 0) {
        return td_command_fail("%s", err.message);
    }
    (void)fwrite(text->ptr, 1, text->len, stdout); /* main looks at the stream's state */
    return TD_EXIT_DONE;
}

struct td_json *td_validate_row(struct td_arena *arena, const struct validate_finding *finding)
{
    const struct td_problem *problem = finding->problem;
    struct td_json *row = td_json_new_object(arena);
    td_json_set_str(arena, row, TD_STR("file"), finding->file);
    td_json_set_int64(arena, row, TD_STR("line"), problem->line);
    td_json_set_str(arena, row, TD_STR("object"), finding->object);
    td_json_set_str(arena, row, TD_STR("field"), problem->field);
    td_json_set_str(arena, row, TD_STR("rule"), td_str_from(problem->rule));
    td_json_set_str(arena, row, TD_STR("message"), problem->message);
    return row;
}

/* A message that begins with the field's own name ("selector overlaps ...") needs no path before
 * it. */
static bool print_names_itself(td_str field, td_str message)
{
    size_t start = field.len;
    while (start > 0 && field.ptr[start - 1] != '.') {
        start--;
    }
    td_str name = td_str_slice(field, start, field.len);
    return field.len == 0 || (td_str_starts_with(message, name) && message.len > name.len &&
                              message.ptr[name.len] == ' ');
}

/* "web.yaml:7: warning: Deployment shop/web: spec.replicas: " */
static void print_place(const struct validate_finding *finding)
{
    const struct td_problem *problem = finding->problem;
    /* "A and B both act on ...": the message goes on where the object's name ends. */
    bool goes_on = td_str_starts_with(problem->message, TD_STR("and "));
    if (finding->file.len > 0) {
        (void)printf("%.*s:", TD_STR_ARG(finding->file));
    }
    if (problem->line > 0) {
        (void)printf("%u:", (unsigned)problem->line);
    }
    bool has_column = finding->object.len == 0 && problem->line > 0 &&
                      problem->message.ptr[0] >= '0' && problem->message.ptr[0] <= '9';
    (void)printf("%s%s", finding->file.len > 0 && !has_column ? " " : "",
                 problem->is_warning ? "warning: " : "");
    if (finding->object.len > 0) {
        (void)printf("%.*s%s", TD_STR_ARG(finding->object), goes_on ? " " : ": ");
    }
    if (!goes_on && !print_names_itself(problem->field, problem->message)) {
        (void)printf("%.*s: ", TD_STR_ARG(problem->field));
    }
}

/* One finding: its place, then the message; further lines of that are indented. */
static void print_finding(const struct validate_finding *finding)
{
    print_place(finding);
    td_str message = finding->problem->message;
    while (message.len > 0) {
        size_t end = td_str_find(message, '\n', 0);
        (void)printf("%.*s\n%s", TD_STR_ARG(td_str_slice(message, 0, end)),
                     end + 1 < message.len ? "    " : "");
        message = td_str_slice(message, end + 1, message.len);
    }
}

static void print_skipped(const struct td_validate *run)
{
    const char *lead = "skipped";
    for (size_t i = 0; i < TD_SKIP_COUNT; i++) {
        if (run->skipped[i] > 0) {
            (void)printf("%s %zu %s", lead, run->skipped[i],
                         run->skipped[i] == 1 ? skip_words[i].one : skip_words[i].more);
            lead = ",";
        }
    }
    if (lead[0] == ',') {
        (void)printf("\n");
    }
}

static void print_table(const struct td_validate *run)
{
    for (size_t i = 0; i < run->finding_count; i++) {
        print_finding(&run->findings[i]);
    }
    size_t warnings = run->finding_count - run->problem_count;
    size_t objects = run->manifest.count;
    if (run->problem_count > 0) {
        (void)printf("%zu problem%s", run->problem_count, TD_PLURAL(run->problem_count));
    } else {
        (void)printf("no problems");
    }
    if (warnings > 0) {
        (void)printf(" and %zu warning%s", warnings, TD_PLURAL(warnings));
    }
    (void)printf(" in %zu object%s (%zu file%s)\n", objects, TD_PLURAL(objects), run->file_count,
                 TD_PLURAL(run->file_count));
    if (run->unknown_count > 0) {
        (void)printf("%zu object%s of a kind that is not known: only metadata was checked\n",
                     run->unknown_count, run->unknown_count == 1 ? " is" : "s are");
    }
    print_skipped(run);
}

/* When nothing could be read there is nothing to report but why, one line each. */
static int print_unread(const struct td_validate *run)
{
    for (size_t i = 0; i < run->finding_count; i++) {
        const struct validate_finding *finding = &run->findings[i];
        td_str message = finding->problem->message;
        bool has_column = finding->problem->line > 0 && message.len > 0 && message.ptr[0] >= '0' &&
                          message.ptr[0] <= '9';
        char line[16] = "";
        if (finding->problem->line > 0) {
            (void)snprintf(line, sizeof(line), ":%u", (unsigned)finding->problem->line);
        }
        (void)td_command_fail("%.*s%s:%s%.*s", TD_STR_ARG(finding->file), line,
                              has_column ? "" : " ", TD_STR_ARG(message));
    }
    return TD_EXIT_FAILED;
}

static int print_data(struct td_validate *run)
{
    struct td_arena *arena = &run->arena;
    struct td_json *report = td_json_new_object(arena);
    struct td_json *lists[2] = {td_json_new_array(arena), td_json_new_array(arena)};
    struct td_json *skipped = td_json_new_object(arena);
    for (size_t i = 0; i < run->finding_count; i++) {
        const struct validate_finding *finding = &run->findings[i];
        td_json_append(lists[finding->problem->is_warning], td_validate_row(arena, finding));
    }
    for (size_t i = 0; i < TD_SKIP_COUNT; i++) {
        if (run->skipped[i] > 0) {
            td_json_set_int64(arena, skipped, td_str_from(skip_words[i].member),
                              (int64_t)run->skipped[i]);
        }
    }
    td_json_set(arena, report, TD_STR("problems"), lists[0]);
    td_json_set(arena, report, TD_STR("warnings"), lists[1]);
    td_json_set_int64(arena, report, TD_STR("objects"), (int64_t)run->manifest.count);
    td_json_set_int64(arena, report, TD_STR("unknown"), (int64_t)run->unknown_count);
    td_json_set_int64(arena, report, TD_STR("files"), (int64_t)run->file_count);
    td_json_set(arena, report, TD_STR("skipped"), skipped);
    return td_output_print(report,
                           run->output == TD_VALIDATE_YAML ? TD_OUTPUT_YAML : TD_OUTPUT_JSON);
}

int td_validate_print(struct td_validate *run)
{
    switch (run->output) {
    case TD_VALIDATE_JSON:
    case TD_VALIDATE_YAML:
        return print_data(run);
    case TD_VALIDATE_JUNIT:
        return td_validate_print_junit(run);
    case TD_VALIDATE_SARIF:
        return td_validate_print_sarif(run);
    case TD_VALIDATE_TABLE:
        break;
    }
    if (td_validate_is_blind(run)) {
        return print_unread(run);
    }
    print_table(run);
    return TD_EXIT_DONE;
}
