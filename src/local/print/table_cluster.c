/* Cells of nodes, events, configuration, quotas and access. */
#include "local/print/table_private.h"

#define NODE_ROLE_PREFIX TD_STR("node-role.kubernetes.io/")
#define NODE_ROLE_LABEL TD_STR("kubernetes.io/role")

/* --- nodes --- */

struct td_json *td_cell_node_status(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *conditions = td_json_get_path(row->object, column->path);
    const struct td_json *unschedulable = td_json_get_path(row->object, "spec.unschedulable");
    bool is_cordoned = td_json_is(unschedulable, TD_JSON_TYPE_BOOL) && unschedulable->boolean;
    td_str word = TD_STR("Unknown");
    /* The last condition of a type counts. */
    for (const struct td_json *item = td_json_first_item(conditions); item; item = item->next) {
        td_str status = td_json_text(item, "status");
        if (td_str_equal(td_json_text(item, "type"), TD_STR("Ready"))) {
            word = td_str_equal(status, TD_STR("True")) ? TD_STR("Ready") : TD_STR("NotReady");
        }
    }
    return td_table_string(row, td_arena_format(row->arena, "%.*s%s", TD_STR_ARG(word),
                                                is_cordoned ? ",SchedulingDisabled" : ""));
}

struct td_json *td_cell_node_roles(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *labels = td_json_get_path(row->object, column->path);
    size_t count = 0;
    td_str *roles = td_arena_array(row->arena, td_str, td_json_member_count(labels));
    for (const struct td_json *label = td_json_first_member(labels); label; label = label->next) {
        td_str role = TD_STR_EMPTY;
        if (td_str_starts_with(label->key, NODE_ROLE_PREFIX)) {
            role = td_str_slice(label->key, NODE_ROLE_PREFIX.len, label->key.len);
        } else if (td_str_equal(label->key, NODE_ROLE_LABEL) &&
                   label->type == TD_JSON_TYPE_STRING) {
            role = label->text;
        }
        if (role.len > 0) {
            roles[count++] = role;
        }
    }
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_table_join_sorted(&text, roles, count);
    return text.len > 0 ? td_table_buffer(row, &text)
                        : td_table_string(row, td_str_from(column->fallback));
}

struct td_json *td_cell_node_address(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *list = td_json_get_path(row->object, "status.addresses");
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        if (td_str_equal(td_json_text(item, "type"), td_str_from(column->path))) {
            return td_table_string(row, td_json_text(item, "address"));
        }
    }
    return td_table_string(row, td_str_from(column->fallback));
}

struct td_json *td_cell_node_kernel(struct td_table_row *row, const struct td_table_column *column)
{
    td_str kernel = td_table_text(row->object, column->path, td_str_from(column->fallback));
    td_str machine = td_table_text(row->object, "status.nodeInfo.architecture", TD_STR_EMPTY);
    return td_table_string(row, machine.len == 0
                                    ? kernel
                                    : td_arena_format(row->arena, "%.*s (%.*s)", TD_STR_ARG(kernel),
                                                      TD_STR_ARG(machine)));
}

/* --- events --- */

static td_str event_first_age(struct td_table_row *row)
{
    td_str micro = td_table_text(row->object, "eventTime", TD_STR_EMPTY);
    td_str first = td_table_text(row->object, "firstTimestamp", micro);
    return td_table_age(row->arena, first, row->now);
}

struct td_json *td_cell_event_first(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    return td_table_string(row, event_first_age(row));
}

struct td_json *td_cell_event_last(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    td_str last = td_table_text(row->object, "lastTimestamp", TD_STR_EMPTY);
    const struct td_json *series = td_json_get(row->object, TD_STR("series"));
    if (td_json_is(series, TD_JSON_TYPE_OBJECT)) {
        last = td_json_text(series, "lastObservedTime");
        return td_table_string(row, td_table_age(row->arena, last, row->now));
    }
    return td_table_string(row, last.len > 0 ? td_table_age(row->arena, last, row->now)
                                             : event_first_age(row));
}

struct td_json *td_cell_event_object(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    td_str kind = td_table_text(row->object, "involvedObject.kind", TD_STR_EMPTY);
    td_str name = td_table_text(row->object, "involvedObject.name", TD_STR_EMPTY);
    td_str lower = td_table_lower(row->arena, kind);
    return td_table_string(row, td_arena_format(row->arena, "%.*s%s%.*s", TD_STR_ARG(lower),
                                                name.len > 0 ? "/" : "", TD_STR_ARG(name)));
}

struct td_json *td_cell_event_source(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    td_str component =
        td_table_text(row->object, "source.component",
                      td_table_text(row->object, "reportingComponent", TD_STR_EMPTY));
    td_str host = td_table_text(row->object, "source.host",
                                td_table_text(row->object, "reportingInstance", TD_STR_EMPTY));
    return td_table_string(row, host.len == 0
                                    ? component
                                    : td_arena_format(row->arena, "%.*s, %.*s",
                                                      TD_STR_ARG(component), TD_STR_ARG(host)));
}

struct td_json *td_cell_event_message(struct td_table_row *row,
                                      const struct td_table_column *column)
{
    (void)column;
    return td_table_string(row, td_str_trim(td_table_text(row->object, "message", TD_STR_EMPTY)));
}

struct td_json *td_cell_event_count(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    bool has_series = td_json_is(td_json_get(row->object, TD_STR("series")), TD_JSON_TYPE_OBJECT);
    int64_t count = td_table_number(row->object, has_series ? "series.count" : "count");
    return td_json_new_int64(row->arena, count == 0 && !has_series ? 1 : count);
}

/* --- configuration, quotas --- */

struct td_json *td_cell_config_count(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    const struct td_json *data = td_json_get(row->object, TD_STR("data"));
    const struct td_json *binary = td_json_get(row->object, TD_STR("binaryData"));
    size_t count = td_json_member_count(data);
    count += td_json_member_count(binary);
    return td_json_new_int64(row->arena, (int64_t)count);
}

struct td_json *td_cell_quota(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *given = td_json_get_path(row->object, "status.hard");
    const struct td_json *used = td_json_get_path(row->object, "status.used");
    bool wants_limits = column->path != NULL;
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    if (!td_json_is(given, TD_JSON_TYPE_OBJECT)) {
        return td_table_string(row, TD_STR_EMPTY);
    }
    struct td_json *hard = td_json_copy(row->arena, given, false);
    td_json_sort(row->arena, hard);
    for (const struct td_json *item = td_json_first_member(hard); item; item = item->next) {
        if (td_str_starts_with(item->key, TD_STR("limits.")) != wants_limits) {
            continue;
        }
        td_str now = td_table_quantity(row, td_json_get(used, item->key));
        td_str most = td_table_quantity(row, item);
        td_str part = td_arena_format(row->arena, "%.*s: %.*s/%.*s", TD_STR_ARG(item->key),
                                      TD_STR_ARG(now), TD_STR_ARG(most));
        td_table_join(&text, TD_STR(", "), part);
    }
    return td_table_buffer(row, &text);
}

/* --- access --- */

struct td_json *td_cell_subjects(struct td_table_row *row, const struct td_table_column *column)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_str wanted = td_str_from(column->path);
    bool is_account = td_str_equal(wanted, TD_STR("ServiceAccount"));
    const struct td_json *list = td_json_get(row->object, TD_STR("subjects"));
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_str name = td_json_text(item, "name");
        td_str ns = td_json_text(item, "namespace");
        if (!td_str_equal(td_json_text(item, "kind"), wanted)) {
            continue;
        }
        td_table_join(
            &text, TD_STR(", "),
            is_account ? td_arena_format(row->arena, "%.*s/%.*s", TD_STR_ARG(ns), TD_STR_ARG(name))
                       : name);
    }
    return td_table_buffer(row, &text);
}

struct td_json *td_cell_param_kind(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *kind = td_json_get_path(row->object, column->path);
    td_str version = td_json_text(kind, "apiVersion");
    td_str name = td_json_text(kind, "kind");
    if (!td_json_is(kind, TD_JSON_TYPE_OBJECT)) {
        return td_table_string(row, td_str_from(column->fallback));
    }
    return td_table_string(
        row, td_arena_format(row->arena, "%.*s/%.*s", TD_STR_ARG(version), TD_STR_ARG(name)));
}

struct td_json *td_cell_param_ref(struct td_table_row *row, const struct td_table_column *column)
{
    td_str name = td_table_text(row->object, "spec.paramRef.name", TD_STR_EMPTY);
    td_str ns = td_table_text(row->object, "spec.paramRef.namespace", TD_STR("*"));
    if (name.len > 0) {
        return td_table_string(
            row, td_arena_format(row->arena, "%.*s/%.*s", TD_STR_ARG(ns), TD_STR_ARG(name)));
    }
    const struct td_table_column selector = {.path = "spec.paramRef.selector"};
    return td_json_get_path(row->object, selector.path)
               ? td_cell_selector(row, &selector)
               : td_table_string(row, td_str_from(column->fallback));
}
