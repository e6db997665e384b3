/*
 * Finds the columns of a kind, fills a row an object and wraps both in the Table form; cells of
 * custom columns are in table_custom.c.
 */
#include "local/print/table_private.h"

#include <stdlib.h>

#include "base/error.h"
#include "kube/quantity/quantity.h"
#include "kube/selector/labels.h"
#include "kube/selector/selector.h"
#include "local/kinds/custom.h"

/* --- ages --- */

/* Two units for what is young in each range, as kubectl prints ages: "90s", "5m30s", "7d5h",
 * "2y3d".
 */
td_str td_table_span(struct td_arena *arena, struct td_instant from, struct td_instant to)
{
    int64_t seconds = to.unix_seconds - from.unix_seconds;
    int64_t nanos = (int64_t)to.nanos - from.nanos;
    /* Cut towards zero. */
    seconds -= seconds > 0 && nanos < 0 ? 1 : 0;
    seconds += seconds < 0 && nanos > 0 ? 1 : 0;
    if (seconds < -1) {
        return TD_STR("<invalid>");
    }
    seconds = seconds < 0 ? 0 : seconds;
    int64_t minutes = seconds / 60;
    int64_t hours = minutes / 60;
    int64_t days = hours / 24;
    if (seconds < 120) {
        return td_arena_format(arena, "%llds", (long long)seconds);
    }
    if (minutes < 10 && seconds % 60 != 0) {
        return td_arena_format(arena, "%lldm%llds", (long long)minutes, (long long)(seconds % 60));
    }
    if (hours < 3) {
        return td_arena_format(arena, "%lldm", (long long)minutes);
    }
    if (hours < 8 && minutes % 60 != 0) {
        return td_arena_format(arena, "%lldh%lldm", (long long)hours, (long long)(minutes % 60));
    }
    if (hours < 48) {
        return td_arena_format(arena, "%lldh", (long long)hours);
    }
    if (days < 8 && hours % 24 != 0) {
        return td_arena_format(arena, "%lldd%lldh", (long long)days, (long long)(hours % 24));
    }
    if (days < 730) {
        return td_arena_format(arena, "%lldd", (long long)days);
    }
    if (days < 8 * 365 && days % 365 != 0) {
        return td_arena_format(arena, "%lldy%lldd", (long long)(days / 365),
                               (long long)(days % 365));
    }
    return td_arena_format(arena, "%lldy", (long long)(days / 365));
}

td_str td_table_age(struct td_arena *arena, td_str since, struct td_instant now)
{
    struct td_instant created;
    if (since.len == 0 || td_time_parse(since, &created, NULL) != TD_OK) {
        return TD_STR("<unknown>");
    }
    return td_table_span(arena, created, now);
}

/* --- helpers --- */

td_str td_table_text(const struct td_json *object, const char *path, td_str fallback)
{
    const struct td_json *node = td_json_get_path(object, path);
    return td_json_is(node, TD_JSON_TYPE_STRING) && node->text.len > 0 ? node->text : fallback;
}

int64_t td_table_number(const struct td_json *object, const char *path)
{
    const struct td_json *node = td_json_get_path(object, path);
    int64_t number = 0;
    if (td_json_is(node, TD_JSON_TYPE_NUMBER)) {
        (void)td_json_to_int64(node, &number); /* what is no whole number shows as 0 */
    }
    return number;
}

struct td_json *td_table_string(const struct td_table_row *row, td_str text)
{
    return td_json_new_string(row->arena, text);
}

struct td_json *td_table_buffer(const struct td_table_row *row, const struct td_buf *text)
{
    return td_json_new_string(row->arena, td_arena_copy_str(row->arena, td_buf_str(text)));
}

void td_table_join(struct td_buf *out, td_str separator, td_str text)
{
    /* The buffer holds parts of one object, which is smaller than its cap. */
    if (out->len > 0) {
        (void)td_buf_append(out, separator);
    }
    (void)td_buf_append(out, text);
}

void td_table_join_sorted(struct td_buf *out, td_str *texts, size_t count)
{
    if (count > 0) {
        qsort(texts, count, sizeof(texts[0]), td_str_compare_items);
    }
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !td_str_equal(texts[i], texts[i - 1])) {
            td_table_join(out, TD_STR(","), texts[i]);
        }
    }
}

td_str td_table_lower(struct td_arena *arena, td_str text)
{
    char *copy = td_arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        copy[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return (td_str){.ptr = copy, .len = text.len};
}

td_str td_table_quantity(const struct td_table_row *row, const struct td_json *node)
{
    struct td_quantity quantity;
    if (!node || td_quantity_from_json(row->arena, node, &quantity, NULL) != TD_OK) {
        return TD_STR("0");
    }
    return td_quantity_text(row->arena, &quantity);
}

td_str td_table_condition(const struct td_json *conditions, td_str type)
{
    for (const struct td_json *item = td_json_first_item(conditions); item; item = item->next) {
        if (td_str_equal(td_json_text(item, "type"), type)) {
            return td_json_text(item, "status");
        }
    }
    return TD_STR_EMPTY;
}

/* --- general cells --- */

struct td_json *td_cell_name(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    return td_table_string(row, td_table_text(row->object, "metadata.name", TD_STR_EMPTY));
}

struct td_json *td_cell_age(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    td_str created = td_table_text(row->object, "metadata.creationTimestamp", TD_STR_EMPTY);
    return td_table_string(row, td_table_age(row->arena, created, row->now));
}

struct td_json *td_cell_created(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    return td_table_string(row,
                           td_table_text(row->object, "metadata.creationTimestamp", TD_STR_EMPTY));
}

struct td_json *td_cell_text(struct td_table_row *row, const struct td_table_column *column)
{
    return td_table_string(row,
                           td_table_text(row->object, column->path, td_str_from(column->fallback)));
}

struct td_json *td_cell_number(struct td_table_row *row, const struct td_table_column *column)
{
    return td_json_new_int64(row->arena, td_table_number(row->object, column->path));
}

struct td_json *td_cell_bool(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *node = td_json_get_path(row->object, column->path);
    return td_json_new_bool(row->arena, td_json_is(node, TD_JSON_TYPE_BOOL) && node->boolean);
}

struct td_json *td_cell_count(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *node = td_json_get_path(row->object, column->path);
    bool has_children =
        td_json_is(node, TD_JSON_TYPE_ARRAY) || td_json_is(node, TD_JSON_TYPE_OBJECT);
    return td_json_new_int64(row->arena, has_children ? (int64_t)node->count : 0);
}

struct td_json *td_cell_ready(struct td_table_row *row, const struct td_table_column *column)
{
    return td_table_string(
        row, td_arena_format(row->arena, "%lld/%lld",
                             (long long)td_table_number(row->object, column->path),
                             (long long)td_table_number(row->object, column->fallback)));
}

struct td_json *td_cell_scalar(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *node = td_json_get_path(row->object, column->path);
    bool has_text = td_json_is(node, TD_JSON_TYPE_STRING) || td_json_is(node, TD_JSON_TYPE_NUMBER);
    return td_table_string(row, has_text ? node->text : td_str_from(column->fallback));
}

struct td_json *td_cell_labels(struct td_table_row *row, const struct td_table_column *column)
{
    struct td_labels labels =
        td_labels_from_json(row->arena, td_json_get_path(row->object, column->path));
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    for (size_t i = 0; i < labels.count; i++) {
        td_table_join(&text, TD_STR(","), labels.items[i].key);
        (void)td_buf_append_char(&text, '='); /* as above */
        (void)td_buf_append(&text, labels.items[i].value);
    }
    return text.len > 0 ? td_table_buffer(row, &text) : td_table_string(row, TD_STR("<none>"));
}

struct td_json *td_cell_selector(struct td_table_row *row, const struct td_table_column *column)
{
    struct td_selector selector;
    const struct td_json *node = td_json_get_path(row->object, column->path);
    if (td_selector_from_json(row->arena, node, &selector, NULL) != TD_OK) {
        return td_table_string(row, TD_STR("<error>"));
    }
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_selector_write_format(&selector, &text);
    return td_table_buffer(row, &text);
}

struct td_json *td_cell_bool_text(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *node = td_json_get_path(row->object, column->path);
    if (!td_json_is(node, TD_JSON_TYPE_BOOL)) {
        return td_table_string(row, td_str_from(column->fallback));
    }
    return td_table_string(row, node->boolean ? TD_STR("True") : TD_STR("False"));
}

struct td_json *td_cell_reference(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *node = td_json_get_path(row->object, column->path);
    td_str kind = td_json_text(node, "kind");
    td_str name = td_json_text(node, "name");
    return td_table_string(
        row, td_arena_format(row->arena, "%.*s/%.*s", TD_STR_ARG(kind), TD_STR_ARG(name)));
}

static struct td_json *cell_each(struct td_table_row *row, const char *path, td_str key)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    const struct td_json *list = td_json_get_path(row->object, path);
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        if (item != td_json_first_item(list)) {
            (void)td_buf_append_char(&text, ','); /* parts of one object: it fits */
        }
        (void)td_buf_append(&text, td_json_get_str(item, key, TD_STR_EMPTY));
    }
    return td_table_buffer(row, &text);
}

struct td_json *td_cell_containers(struct td_table_row *row, const struct td_table_column *column)
{
    return cell_each(row, column->path, TD_STR("name"));
}

struct td_json *td_cell_images(struct td_table_row *row, const struct td_table_column *column)
{
    return cell_each(row, column->path, TD_STR("image"));
}

/* --- tables --- */

/* For kinds that have no columns of their own. */
static const struct td_table_kind table_plain = {
    .columns = {{"Name", "string", 0, td_cell_name, NULL, NULL},
                {"Created At", "date", 0, td_cell_created, NULL, NULL}}};

static const struct td_table_kind *table_find(const struct td_resource *resource)
{
    for (size_t i = 0; i < td_table_kind_count; i++) {
        if (td_str_equal(td_str_from(td_table_kinds[i].collection), resource->collection)) {
            return &td_table_kinds[i];
        }
    }
    return &table_plain;
}

static const char *table_description(const struct td_table_column *column)
{
    if (column->cell == td_cell_name) {
        return "The object's name.";
    }
    return column->cell == td_cell_age || column->cell == td_cell_created
               ? "When the object was created."
               : "";
}

struct td_json *td_table_columns(struct td_arena *arena, struct td_resource_at at)
{
    if (at.resource->custom) {
        return td_table_custom_columns(arena, at.resource->custom->versions[at.version].columns);
    }
    const struct td_table_kind *kind = table_find(at.resource);
    struct td_json *columns = td_json_new_array(arena);
    for (size_t i = 0; i < TD_TABLE_COLUMNS_MAX && kind->columns[i].name; i++) {
        const struct td_table_column *row = &kind->columns[i];
        bool is_name = strcmp(row->name, "Name") == 0;
        struct td_json *column = td_json_new_object(arena);
        td_json_set_str(arena, column, TD_STR("name"), td_str_from(row->name));
        td_json_set_str(arena, column, TD_STR("type"), td_str_from(row->type));
        td_json_set_str(arena, column, TD_STR("format"), is_name ? TD_STR("name") : TD_STR_EMPTY);
        td_json_set_str(arena, column, TD_STR("description"), td_str_from(table_description(row)));
        td_json_set_int64(arena, column, TD_STR("priority"), row->priority);
        td_json_append(columns, column);
    }
    return columns;
}

/* The columns know objects of the storage version; the others become one. */
static const struct td_json *table_stored(struct td_arena *arena, struct td_resource_at at,
                                          const struct td_json *object)
{
    struct td_json *stored = NULL;
    if (at.version == at.resource->storage ||
        td_resource_convert(arena, at.resource, at.version, at.resource->storage,
                            td_json_copy(arena, object, false), &stored, NULL) != TD_OK) {
        return object; /* one that does not convert shows what it has */
    }
    return stored;
}

struct td_json *td_table_cells(struct td_arena *arena, struct td_resource_at at,
                               const struct td_json *object, struct td_instant now)
{
    struct td_table_row row = {.arena = arena, .object = object, .now = now};
    if (at.resource->custom) {
        return td_table_custom_cells(&row, at.resource->custom->versions[at.version].columns);
    }
    row.object = table_stored(arena, at, object);
    const struct td_table_kind *kind = table_find(at.resource);
    struct td_json *cells = td_json_new_array(arena);
    for (size_t i = 0; i < TD_TABLE_COLUMNS_MAX && kind->columns[i].name; i++) {
        td_json_append(cells, kind->columns[i].cell(&row, &kind->columns[i]));
    }
    return cells;
}

struct td_json *td_table_conditions(struct td_arena *arena, struct td_resource_at at,
                                    const struct td_json *object)
{
    bool is_pod = !at.resource->custom && at.resource->group.len == 0 &&
                  td_str_equal(at.resource->kind, TD_STR("Pod"));
    td_str phase = is_pod ? td_table_text(object, "status.phase", TD_STR_EMPTY) : TD_STR_EMPTY;
    bool has_failed = td_str_equal(phase, TD_STR("Failed"));
    if (!has_failed && !td_str_equal(phase, TD_STR("Succeeded"))) {
        return NULL;
    }
    struct td_json *conditions = td_json_new_array(arena);
    struct td_json *condition = td_json_new_object(arena);
    td_json_set_str(arena, condition, TD_STR("type"), TD_STR("Completed"));
    td_json_set_str(arena, condition, TD_STR("status"), TD_STR("True"));
    td_json_set_str(arena, condition, TD_STR("reason"), phase);
    td_json_set_str(arena, condition, TD_STR("message"),
                    has_failed ? TD_STR("A container of the pod failed.")
                               : TD_STR("All containers of the pod ended well."));
    td_json_append(conditions, condition);
    return conditions;
}
