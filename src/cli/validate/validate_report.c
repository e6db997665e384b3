/*
 * Findings in the formats of build servers: JUnit (a test case an object, for test reports) and
 * SARIF 2.1.0 (a result a finding, for code scanning and editors).
 */
#include <string.h>

#include "base/json/json.h"
#include "base/limits.h"
#include "cli/output.h"
#include "cli/validate/validate_private.h"

/* ---- JUnit ---- */

/* Text of an attribute or an element; what XML has no place for becomes '?'. */
static void junit_text(struct td_buf *out, td_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        switch (byte) {
        case '&':
            (void)td_buf_append(out, TD_STR("&amp;")); /* checked when it is written */
            break;
        case '<':
            (void)td_buf_append(out, TD_STR("&lt;"));
            break;
        case '>':
            (void)td_buf_append(out, TD_STR("&gt;"));
            break;
        case '"':
            (void)td_buf_append(out, TD_STR("&quot;"));
            break;
        default:
            if (byte < ' ') {
                (void)td_buf_append_format(out, byte == '\n' ? "&#10;" : byte == '\t' ? "\t" : "?");
            } else {
                (void)td_buf_append_char(out, (char)byte);
            }
        }
    }
}

static void junit_attribute(struct td_buf *out, const char *name, td_str value)
{
    (void)td_buf_append_format(out, " %s=\"", name);
    junit_text(out, value);
    (void)td_buf_append_char(out, '"');
}

/* "web.yaml:7: spec.replicas: what" */
static void junit_sentence(struct td_buf *out, td_str file, const struct td_problem *problem)
{
    junit_text(out, file);
    (void)td_buf_append_format(out, ":%u: %s", (unsigned)problem->line,
                               problem->is_warning ? "warning: " : "");
    junit_text(out, problem->field);
    (void)td_buf_append(out, problem->field.len > 0 ? TD_STR(": ") : TD_STR_EMPTY);
    junit_text(out, problem->message);
}

/* The format wants failures first, and all other output of a case in one element. */
static void junit_findings(struct td_buf *out, td_str file, const struct td_problem *problems,
                           size_t count)
{
    size_t warning_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (problems[i].is_warning) {
            warning_count++;
            continue;
        }
        (void)td_buf_append(out, TD_STR("      <failure"));
        junit_attribute(out, "type", td_str_from(problems[i].rule));
        junit_attribute(out, "message", problems[i].message);
        (void)td_buf_append_char(out, '>');
        junit_sentence(out, file, &problems[i]);
        (void)td_buf_append(out, TD_STR("</failure>\n"));
    }
    const char *lead = "      <system-out>";
    for (size_t i = 0; i < count; i++) {
        if (problems[i].is_warning) {
            (void)td_buf_append_format(out, "%s", lead);
            junit_sentence(out, file, &problems[i]);
            lead = "\n";
        }
    }
    (void)td_buf_append(out, warning_count > 0 ? TD_STR("</system-out>\n") : TD_STR_EMPTY);
}

static void junit_case(struct td_buf *out, td_str file, td_str name,
                       const struct td_problem *problems, size_t count)
{
    (void)td_buf_append(out, TD_STR("    <testcase"));
    junit_attribute(out, "classname", file);
    junit_attribute(out, "name", name);
    (void)td_buf_append_format(out, count > 0 ? " time=\"0\">\n" : " time=\"0\"/>\n");
    junit_findings(out, file, problems, count);
    if (count > 0) {
        (void)td_buf_append(out, TD_STR("    </testcase>\n"));
    }
}

static bool junit_fails(const struct td_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        if (!problems->items[i].is_warning) {
            return true;
        }
    }
    return false;
}

int td_validate_print_junit(struct td_validate *run)
{
    td_auto_buf out = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    size_t cases = run->manifest.count;
    size_t failures = 0;
    for (size_t i = 0; i < run->manifest.count; i++) {
        failures += junit_fails(&run->problems[i]);
    }
    for (size_t i = 0; i < run->finding_count; i++) {
        cases += run->findings[i].object.len == 0;
        failures += run->findings[i].object.len == 0;
    }
    (void)td_buf_append(&out, TD_STR("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"));
    (void)td_buf_append_format(
        &out,
        "  <testsuite name=\"tandem validate\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
        "time=\"0\">\n",
        cases, failures);
    for (size_t i = 0; i < run->finding_count; i++) {
        const struct validate_finding *finding = &run->findings[i];
        if (finding->object.len == 0) {
            junit_case(&out, finding->file, finding->file.len > 0 ? finding->file : TD_STR("files"),
                       finding->problem, 1);
        }
    }
    for (size_t i = 0; i < run->manifest.count; i++) {
        const struct td_manifest_object *object = &run->manifest.items[i];
        junit_case(&out, object->file, td_manifest_title(&run->arena, object),
                   run->problems[i].items, run->problems[i].count);
    }
    (void)td_buf_append(&out, TD_STR("  </testsuite>\n</testsuites>\n"));
    return td_validate_write(&out);
}

/* ---- SARIF ---- */

/* A path as a URI reference: what is not plain is escaped. */
static td_str sarif_uri(struct td_arena *arena, td_str path)
{
    td_auto_buf uri = td_buf_capped(TD_JSON_BYTES_MAX);
    for (size_t i = 0; i < path.len; i++) {
        unsigned char byte = (unsigned char)path.ptr[i];
        bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                        (byte >= '0' && byte <= '9') || memchr("-._~/", byte, 5) != NULL;
        (void)td_buf_append_format(&uri, is_plain ? "%c" : "%%%02X", byte);
    }
    return td_arena_copy_str(arena, td_buf_str(&uri));
}

static struct td_json *sarif_location(struct td_arena *arena,
                                      const struct validate_finding *finding)
{
    struct td_json *location = td_json_new_object(arena);
    struct td_json *place = td_json_ensure_object(arena, location, TD_STR("physicalLocation"));
    struct td_json *artifact = td_json_ensure_object(arena, place, TD_STR("artifactLocation"));
    td_json_set_str(arena, artifact, TD_STR("uri"), sarif_uri(arena, finding->file));
    if (finding->problem->line > 0) {
        struct td_json *region = td_json_ensure_object(arena, place, TD_STR("region"));
        td_json_set_int64(arena, region, TD_STR("startLine"), finding->problem->line);
    }
    return location;
}

static struct td_json *sarif_result(struct td_arena *arena, const struct validate_finding *finding)
{
    const struct td_problem *problem = finding->problem;
    struct td_json *result = td_json_new_object(arena);
    struct td_json *message = td_json_new_object(arena);
    td_str text = td_arena_format(arena, "%.*s%s%.*s%s%.*s", TD_STR_ARG(finding->object),
                                  finding->object.len > 0 ? ": " : "", TD_STR_ARG(problem->field),
                                  problem->field.len > 0 ? ": " : "", TD_STR_ARG(problem->message));
    td_json_set_str(arena, message, TD_STR("text"), text);
    td_json_set_str(arena, result, TD_STR("ruleId"), td_str_from(problem->rule));
    td_json_set_str(arena, result, TD_STR("level"),
                    problem->is_warning ? TD_STR("warning") : TD_STR("error"));
    td_json_set(arena, result, TD_STR("message"), message);
    if (finding->file.len > 0) {
        struct td_json *locations = td_json_new_array(arena);
        td_json_append(locations, sarif_location(arena, finding));
        td_json_set(arena, result, TD_STR("locations"), locations);
    }
    return result;
}

static struct td_json *sarif_rules(struct td_validate *run)
{
    struct td_arena *arena = &run->arena;
    struct td_json *rules = td_json_new_array(arena);
    struct td_json *seen = td_json_new_object(arena);
    for (size_t i = 0; i < run->finding_count; i++) {
        td_str id = td_str_from(run->findings[i].problem->rule);
        if (!td_json_get(seen, id)) {
            struct td_json *rule = td_json_new_object(arena);
            td_json_set_str(arena, rule, TD_STR("id"), id);
            td_json_append(rules, rule);
            td_json_set(arena, seen, id, td_json_new_null(arena));
        }
    }
    return rules;
}

int td_validate_print_sarif(struct td_validate *run)
{
    struct td_arena *arena = &run->arena;
    struct td_json *report = td_json_new_object(arena);
    struct td_json *runs = td_json_new_array(arena);
    struct td_json *one = td_json_new_object(arena);
    struct td_json *results = td_json_new_array(arena);
    td_json_set_str(arena, report, TD_STR("$schema"),
                    TD_STR("https://json.schemastore.org/sarif-2.1.0.json"));
    td_json_set_str(arena, report, TD_STR("version"), TD_STR("2.1.0"));
    struct td_json *tool = td_json_ensure_object(arena, one, TD_STR("tool"));
    struct td_json *driver = td_json_ensure_object(arena, tool, TD_STR("driver"));
    td_json_set_str(arena, driver, TD_STR("name"), TD_STR("tandem validate"));
    td_json_set_str(arena, driver, TD_STR("version"), TD_STR(TANDEM_VERSION));
    td_json_set(arena, driver, TD_STR("rules"), sarif_rules(run));
    for (size_t i = 0; i < run->finding_count; i++) {
        td_json_append(results, sarif_result(arena, &run->findings[i]));
    }
    td_json_set(arena, one, TD_STR("results"), results);
    td_json_append(runs, one);
    td_json_set(arena, report, TD_STR("runs"), runs);
    return td_output_print(report, TD_OUTPUT_JSON);
}
