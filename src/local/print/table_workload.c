/* Cells of workloads and of what scales them. */
#include "local/print/table_private.h"

#include "base/error.h"
#include "kube/meta.h"
#include "kube/selector/selector.h"

struct td_json *td_cell_deployment_selector(struct td_table_row *row,
                                            const struct td_table_column *column)
{
    struct td_selector selector;
    const struct td_json *node = td_json_get_path(row->object, column->path);
    if (td_selector_from_json(row->arena, node, &selector, NULL) != TD_OK) {
        return td_table_string(row, TD_STR("<invalid>"));
    }
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_selector_write(&selector, &text);
    return td_table_buffer(row, &text);
}

struct td_json *td_cell_job_status(struct td_table_row *row, const struct td_table_column *column)
{
    static const struct {
        td_str type;
        td_str word;
    } rows[] = {
        {TD_STR_INIT("Complete"), TD_STR_INIT("Complete")},
        {TD_STR_INIT("Failed"), TD_STR_INIT("Failed")},
        {TD_STR_INIT(""), TD_STR_INIT("Terminating")}, /* when it is being deleted */
        {TD_STR_INIT("Suspended"), TD_STR_INIT("Suspended")},
        {TD_STR_INIT("FailureTarget"), TD_STR_INIT("FailureTarget")},
        {TD_STR_INIT("SuccessCriteriaMet"), TD_STR_INIT("SuccessCriteriaMet")},
    };
    const struct td_json *conditions = td_json_get_path(row->object, column->path);
    bool is_deleted =
        td_table_text(row->object, "metadata.deletionTimestamp", TD_STR_EMPTY).len > 0;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        bool is_so =
            rows[i].type.len == 0
                ? is_deleted
                : td_str_equal(td_table_condition(conditions, rows[i].type), TD_STR("True"));
        if (is_so) {
            return td_table_string(row, rows[i].word);
        }
    }
    return td_table_string(row, TD_STR("Running"));
}

struct td_json *td_cell_job_completions(struct td_table_row *row,
                                        const struct td_table_column *column)
{
    (void)column;
    long long done = (long long)td_table_number(row->object, "status.succeeded");
    long long parallel = (long long)td_table_number(row->object, "spec.parallelism");
    if (td_json_is(td_json_get_path(row->object, "spec.completions"), TD_JSON_TYPE_NUMBER)) {
        long long wanted = (long long)td_table_number(row->object, "spec.completions");
        return td_table_string(row, td_arena_format(row->arena, "%lld/%lld", done, wanted));
    }
    if (parallel > 1) {
        return td_table_string(row, td_arena_format(row->arena, "%lld/1 of %lld", done, parallel));
    }
    return td_table_string(row, td_arena_format(row->arena, "%lld/1", done));
}

struct td_json *td_cell_job_duration(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    struct td_instant start;
    struct td_instant end = row->now;
    td_str from = td_table_text(row->object, "status.startTime", TD_STR_EMPTY);
    td_str to = td_table_text(row->object, "status.completionTime", TD_STR_EMPTY);
    if (from.len == 0 || td_time_parse(from, &start, NULL) != TD_OK) {
        return td_table_string(row, TD_STR_EMPTY);
    }
    if (to.len > 0) {
        (void)td_time_parse(to, &end, NULL); /* was checked when it was written */
    }
    return td_table_string(row, td_table_span(row->arena, start, end));
}

struct td_json *td_cell_since(struct td_table_row *row, const struct td_table_column *column)
{
    td_str since = td_table_text(row->object, column->path, TD_STR_EMPTY);
    return td_table_string(row, since.len == 0 ? td_str_from(column->fallback)
                                               : td_table_age(row->arena, since, row->now));
}

/* --- horizontal pod autoscalers --- */

#define HPA_TARGETS_SHOWN 2

/* A quantity behind a pointer that may be nil. */
static td_str hpa_quantity(const struct td_table_row *row, const struct td_json *node,
                           const char *missing)
{
    bool is_there = node && node->type != TD_JSON_TYPE_NULL;
    return is_there ? td_table_quantity(row, node) : td_str_from(missing);
}

static td_str hpa_percent(const struct td_table_row *row, const struct td_json *parent,
                          const char *missing)
{
    const struct td_json *node = td_json_get(parent, TD_STR("averageUtilization"));
    if (!td_json_is(node, TD_JSON_TYPE_NUMBER)) {
        return td_str_from(missing);
    }
    return td_arena_format(row->arena, "%.*s%%", TD_STR_ARG(node->text));
}

/* Where a metric of this type stands in a spec or a status: its member, named for the type. */
static td_str hpa_member(td_str type)
{
    static const struct {
        td_str type;
        td_str member;
    } rows[] = {
        {TD_STR_INIT("Resource"), TD_STR_INIT("resource")},
        {TD_STR_INIT("ContainerResource"), TD_STR_INIT("containerResource")},
        {TD_STR_INIT("Pods"), TD_STR_INIT("pods")},
        {TD_STR_INIT("Object"), TD_STR_INIT("object")},
        {TD_STR_INIT("External"), TD_STR_INIT("external")},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (td_str_equal(rows[i].type, type)) {
            return rows[i].member;
        }
    }
    return TD_STR_EMPTY;
}

/* "10%/80%", "250m/500m", "3/10 (avg)"; what is not known yet is "<unknown>". */
static td_str hpa_target(const struct td_table_row *row, td_str member,
                         const struct td_json *target, const struct td_json *status)
{
    const struct td_json *current = td_json_get(status, TD_STR("current"));
    const struct td_json *average = td_json_get(target, TD_STR("averageValue"));
    bool is_resource = td_str_equal(member, TD_STR("resource")) ||
                       td_str_equal(member, TD_STR("containerResource"));
    bool is_pods = td_str_equal(member, TD_STR("pods"));
    if (is_resource && !average) {
        td_str now = hpa_percent(row, current, "<unknown>");
        td_str wanted = hpa_percent(row, target, "<auto>");
        return td_arena_format(row->arena, "%.*s/%.*s", TD_STR_ARG(now), TD_STR_ARG(wanted));
    }
    bool is_average = average || is_pods;
    td_str key = is_average ? TD_STR("averageValue") : TD_STR("value");
    /* A status without its average is not known yet, except where upstream shows a nil. */
    bool shows_nil = status && (!is_average || is_pods || is_resource);
    td_str now = hpa_quantity(row, td_json_get(current, key), shows_nil ? "<nil>" : "<unknown>");
    td_str wanted = hpa_quantity(row, td_json_get(target, key), "<nil>");
    bool is_marked = is_average && !is_pods && !is_resource;
    return td_arena_format(row->arena, "%.*s/%.*s%s", TD_STR_ARG(now), TD_STR_ARG(wanted),
                           is_marked ? " (avg)" : "");
}

static td_str hpa_metric(const struct td_table_row *row, const struct td_json *spec,
                         const struct td_json *status)
{
    td_str member = hpa_member(td_json_text(spec, "type"));
    const struct td_json *source = td_json_get(spec, member);
    td_str name = td_json_text(source, "name");
    if (member.len == 0) {
        return TD_STR("<unknown type>");
    }
    td_str text =
        hpa_target(row, member, td_json_get(source, TD_STR("target")), td_json_get(status, member));
    return name.len == 0
               ? text
               : td_arena_format(row->arena, "%.*s: %.*s", TD_STR_ARG(name), TD_STR_ARG(text));
}

struct td_json *td_cell_hpa_targets(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    const struct td_json *specs = td_json_get_path(row->object, "spec.metrics");
    const struct td_json *status =
        td_json_first_item(td_json_get_path(row->object, "status.currentMetrics"));
    size_t count = td_json_item_count(specs);
    const struct td_json *spec = td_json_first_item(specs);
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    for (size_t i = 0; spec && i < HPA_TARGETS_SHOWN; i++, spec = spec->next) {
        td_table_join(&text, TD_STR(", "), hpa_metric(row, spec, status));
        status = status ? status->next : NULL;
    }
    if (count == 0) {
        return td_table_string(row, TD_STR("<none>"));
    }
    if (count > HPA_TARGETS_SHOWN) {
        (void)td_buf_append_format(&text, " + %zu more...", count - HPA_TARGETS_SHOWN);
    }
    return td_table_buffer(row, &text);
}

/* --- controller revisions --- */

/* "statefulset.apps/web". */
struct td_json *td_cell_revision_owner(struct td_table_row *row,
                                       const struct td_table_column *column)
{
    const struct td_json *owner = td_meta_controller_tree(row->object);
    if (!owner) {
        return td_table_string(row, td_str_from(column->fallback));
    }
    td_str group = td_group_version_parse(td_json_text(owner, "apiVersion")).group;
    td_str kind = td_json_text(owner, "kind");
    td_str name = td_json_text(owner, "name");
    td_str text = td_arena_format(row->arena, "%.*s%s%.*s", TD_STR_ARG(kind),
                                  group.len > 0 ? "." : "", TD_STR_ARG(group));
    td_str lower = td_table_lower(row->arena, text);
    return td_table_string(
        row, td_arena_format(row->arena, "%.*s/%.*s", TD_STR_ARG(lower), TD_STR_ARG(name)));
}
