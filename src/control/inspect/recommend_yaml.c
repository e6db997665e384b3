/*
 * Right sizes as manifests: one partial workload for each that no autoscaler sizes, to be reviewed
 * and applied by server-side apply, with comments that say from how much data they are.
 */
#include "base/json/json.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "base/yaml/yaml.h"
#include "control/inspect/recommend_once.h"

#define YAML_MEBI (INT64_C(1) << 20)

bool td_right_size_is_for_manifest(const struct td_right_size *row)
{
    bool is_fixed = td_str_equal(row->kind, TD_STR("Job")) || /* its template cannot change */
                    row->api_version.len == 0;                /* its kind is not known */
    return row->by.len == 0 && row->should.count > 0 && !row->is_pod_level && !is_fixed;
}

bool td_right_size_request(const struct td_right_size *row, enum td_right_resource resource,
                           struct td_quantity *ret)
{
    int64_t amount;
    if (row->is_kept[resource] || !td_right_amount(&row->should, resource, &amount)) {
        return false;
    }
    int64_t whole = (amount + YAML_MEBI - 1) / YAML_MEBI * YAML_MEBI;
    *ret = resource == TD_RIGHT_CPU ? td_quantity_new_milli(amount, TD_QUANTITY_DECIMAL_SI)
                                    : td_quantity_new(whole, TD_QUANTITY_BINARY_SI);
    return true;
}

/* Requests, and limits that would be below them. */
static struct td_json *yaml_container(struct td_arena *arena, const struct td_right_size *row)
{
    struct td_json *container = td_json_new_object(arena);
    struct td_json *requests = td_json_new_object(arena);
    struct td_json *limits = td_json_new_object(arena);
    td_json_set_str(arena, container, TD_STR("name"), row->container);
    struct td_json *resources = td_json_ensure_object(arena, container, TD_STR("resources"));
    td_json_set(arena, resources, TD_STR("requests"), requests);
    for (enum td_right_resource resource = 0; resource < TD_RIGHT_COUNT; resource++) {
        td_str name = td_right_names[resource];
        struct td_quantity request;
        if (!td_right_size_request(row, resource, &request)) {
            continue;
        }
        const struct td_quantity *limit = td_resource_list_get(&row->limits, name);
        td_json_set_str(arena, requests, name, td_quantity_text(arena, &request));
        if (limit && td_quantity_compare(limit, &request) < 0) {
            td_json_set_str(arena, limits, name, td_quantity_text(arena, &request));
        }
    }
    if (limits->count > 0) {
        td_json_set(arena, resources, TD_STR("limits"), limits);
    }
    return requests->count > 0 ? container : NULL;
}

static bool yaml_is_same(const struct td_right_size *a, const struct td_right_size *b)
{
    return td_str_equal(a->namespace, b->namespace) && td_str_equal(a->kind, b->kind) &&
           td_str_equal(a->workload, b->workload);
}

static struct td_json *yaml_workload(struct td_arena *arena, const struct td_right_size *row,
                                     struct td_json **ret_containers)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), row->api_version);
    td_json_set_str(arena, object, TD_STR("kind"), row->kind);
    struct td_json *meta = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, meta, TD_STR("name"), row->workload);
    td_json_set_str(arena, meta, TD_STR("namespace"), row->namespace);
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    if (td_str_equal(row->kind, TD_STR("CronJob"))) {
        spec = td_json_ensure_object(arena, spec, TD_STR("jobTemplate"));
        spec = td_json_ensure_object(arena, spec, TD_STR("spec"));
    }
    spec = td_json_ensure_object(arena, spec, TD_STR("template"));
    spec = td_json_ensure_object(arena, spec, TD_STR("spec"));
    *ret_containers = td_json_new_array(arena);
    td_json_set(arena, spec, TD_STR("containers"), *ret_containers);
    return object;
}

static void yaml_comment(const struct td_right_size *row, struct td_buf *out)
{
    char history[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(row->history - row->history % TD_MINUTE, history);
    (void)td_buf_append_format(out, "# container %.*s: %lld sample%s over %s, confidence %.2f",
                               TD_STR_ARG(row->container), (long long)row->samples,
                               TD_PLURAL(row->samples), history, row->confidence);
    for (enum td_right_resource resource = 0; resource < TD_RIGHT_COUNT; resource++) {
        if (row->is_floor[resource]) {
            (void)td_buf_append_format(out, "; %.*s %s", TD_STR_ARG(td_right_names[resource]),
                                       row->is_kept[resource] ? "stays, it is below the floor"
                                                              : "is a floor, it uses less");
        }
    }
    (void)td_buf_append_char(out, '\n');
}

/* The rows of one workload; the number of them. */
static size_t yaml_rows(const struct td_right_sizes *sizes, size_t first, struct td_arena *arena,
                        struct td_buf *out)
{
    const struct td_right_size *row = &sizes->items[first];
    struct td_json *containers;
    struct td_json *workload = yaml_workload(arena, row, &containers);
    td_auto_buf comments = td_buf_capped(TD_OBJECT_BYTES_MAX);
    size_t count = 0;
    for (; first + count < sizes->count && yaml_is_same(row, &sizes->items[first + count]);
         count++) {
        const struct td_right_size *each = &sizes->items[first + count];
        struct td_json *container =
            td_right_size_is_for_manifest(each) ? yaml_container(arena, each) : NULL;
        if (container) {
            td_json_append(containers, container);
            yaml_comment(each, &comments);
        }
    }
    if (containers->count > 0) {
        (void)td_buf_append_format(out, "---\n# window: %.*s\n%.*s", TD_STR_ARG(sizes->window),
                                   TD_STR_ARG(td_buf_str(&comments)));
        td_yaml_write(workload, out);
    }
    return count;
}

void td_right_sizes_yaml(const struct td_right_sizes *sizes, struct td_buf *out)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < sizes->count;) {
        td_arena_reset(&arena);
        i += yaml_rows(sizes, i, &arena, out);
    }
}
