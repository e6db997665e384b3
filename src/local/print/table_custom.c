/*
 * Columns that a definition of a custom resource asks for. A column's JSON path is read step by
 * step while it is followed: ".name" with "\." for a dot in a name, "['name']", which means the
 * same as ".name", dots included, "[2]", "[-1]", "[*]" and ".*", and "[?(@.type==\"Ready\")]" with
 * ==, != and the four orders on numbers and texts. A path can lead to many values; the first is
 * shown. What cannot be read or is not there gives an empty cell, as on a server.
 */
#include "local/print/table_private.h"

#include "base/error.h"
#include "kube/fielderror.h"

/* --- paths --- */

enum path_kind { PATH_MEMBER, PATH_INNER, PATH_INDEX, PATH_ALL, PATH_FILTER };

struct path_step {
    enum path_kind kind;
    td_str name;       /* of a member; the text of a path inside quotes */
    int64_t index;     /* negative: from the end */
    td_str left;       /* of a filter: the path behind the @ */
    td_str comparison; /* "==", ...; empty: is it there? */
    td_str right;
};

static bool path_is_name_end(char c)
{
    return c == '.' || c == '[' || c == ']' || c == ' ' || c == '|' || c == '=' || c == '!' ||
           c == '<' || c == '>' || c == ')';
}

/* A name up to what ends it, with its escapes resolved; moves *at behind it. */
static td_str path_name(struct td_arena *arena, td_str path, size_t *at)
{
    size_t from = *at;
    size_t escapes = 0;
    while (*at < path.len && !path_is_name_end(path.ptr[*at])) {
        bool is_escape = path.ptr[*at] == '\\' && *at + 1 < path.len;
        escapes += is_escape;
        *at += is_escape ? 2 : 1;
    }
    td_str raw = td_str_slice(path, from, *at);
    if (escapes == 0) {
        return raw;
    }
    char *name = td_arena_alloc(arena, raw.len);
    size_t len = 0;
    for (size_t i = 0; i < raw.len; i++) {
        i += raw.ptr[i] == '\\' && i + 1 < raw.len;
        name[len++] = raw.ptr[i];
    }
    return (td_str){.ptr = name, .len = len};
}

static td_str path_unquote(td_str text)
{
    bool is_quoted = text.len >= 2 && (text.ptr[0] == '\'' || text.ptr[0] == '"') &&
                     text.ptr[text.len - 1] == text.ptr[0];
    return is_quoted ? td_str_slice(text, 1, text.len - 1) : text;
}

/* Where the bracket at `from` closes, quotes and nested brackets passed over; path.len if not. */
static size_t path_close(td_str path, size_t from)
{
    char quote = '\0';
    size_t depth = 0;
    for (size_t i = from; i < path.len; i++) {
        char c = path.ptr[i];
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == '[') {
            depth++;
        } else if (c == ']' && --depth == 0) {
            return i;
        }
    }
    return path.len;
}

static bool path_read_filter(td_str inside, struct path_step *step)
{
    static const td_str comparisons[] = {TD_STR_INIT("=="), TD_STR_INIT("!="), TD_STR_INIT("<="),
                                         TD_STR_INIT(">="), TD_STR_INIT("<"),  TD_STR_INIT(">")};
    inside = td_str_trim(inside);
    if (inside.len == 0 || inside.ptr[0] != '@') {
        return false;
    }
    step->kind = PATH_FILTER;
    step->left = td_str_slice(inside, 1, inside.len);
    step->comparison = TD_STR_EMPTY;
    for (size_t at = 1; at < inside.len && step->comparison.len == 0; at++) {
        for (size_t i = 0; i < TD_COUNT(comparisons); i++) {
            td_str rest = td_str_slice(inside, at, inside.len);
            if (step->comparison.len == 0 && td_str_starts_with(rest, comparisons[i])) {
                step->comparison = comparisons[i];
                step->left = td_str_trim(td_str_slice(inside, 1, at));
                step->right = td_str_trim(td_str_slice(rest, comparisons[i].len, rest.len));
            }
        }
    }
    return true;
}

static bool path_read_bracket(td_str inside, struct path_step *step)
{
    inside = td_str_trim(inside);
    if (td_str_starts_with(inside, TD_STR("?(")) && td_str_ends_with(inside, TD_STR(")"))) {
        return path_read_filter(td_str_slice(inside, 2, inside.len - 1), step);
    }
    if (td_str_equal(inside, TD_STR("*"))) {
        step->kind = PATH_ALL;
        return true;
    }
    step->name = path_unquote(inside);
    step->kind = step->name.len < inside.len ? PATH_INNER : PATH_INDEX;
    return step->kind == PATH_INNER || td_str_to_int64(inside, &step->index);
}

/* The step at *at, which is moved behind it; false at what is no path. */
static bool path_next(struct td_arena *arena, td_str path, size_t *at, struct path_step *step)
{
    if (path.ptr[*at] == '[') {
        size_t close = path_close(path, *at);
        bool is_read =
            close < path.len && path_read_bracket(td_str_slice(path, *at + 1, close), step);
        *at = close + 1;
        return is_read;
    }
    if (path.ptr[*at] != '.') {
        return false;
    }
    (*at)++;
    *step = (struct path_step){.kind = PATH_MEMBER, .name = path_name(arena, path, at)};
    if (td_str_equal(step->name, TD_STR("*"))) {
        step->kind = PATH_ALL;
    }
    return step->name.len > 0;
}

/* --- following a path --- */

static const struct td_json *path_find(struct td_arena *arena, const struct td_json *node,
                                       td_str path, unsigned depth);

static bool path_compares(int order, td_str comparison)
{
    bool has_equal = td_str_ends_with(comparison, TD_STR("="));
    switch (comparison.ptr[0]) {
    case '=':
        return order == 0;
    case '!':
        return order != 0;
    case '<':
        return order < 0 || (has_equal && order == 0);
    default:
        return order > 0 || (has_equal && order == 0);
    }
}

static bool path_holds(struct td_arena *arena, const struct td_json *item,
                       const struct path_step *step, unsigned depth)
{
    const struct td_json *left = path_find(arena, item, step->left, depth + 1);
    if (!left || step->comparison.len == 0) {
        return left != NULL;
    }
    td_str right = path_unquote(step->right);
    bool is_text = right.len < step->right.len;
    if (left->type == TD_JSON_TYPE_STRING && is_text) {
        return path_compares(td_str_compare(left->text, right), step->comparison);
    }
    if (left->type == TD_JSON_TYPE_BOOL && !is_text) {
        td_str shown = left->boolean ? TD_STR("true") : TD_STR("false");
        return path_compares(td_str_compare(shown, right), step->comparison);
    }
    double a = 0;
    double b = 0;
    const struct td_json *number = NULL;
    struct td_json *parsed = NULL;
    if (td_json_parse(arena, right, NULL, &parsed, NULL) == TD_OK &&
        td_json_is(parsed, TD_JSON_TYPE_NUMBER)) {
        number = parsed;
    }
    return left->type == TD_JSON_TYPE_NUMBER && number && td_json_to_double(left, &a) &&
           td_json_to_double(number, &b) && path_compares((a > b) - (a < b), step->comparison);
}

/* The first value that the rest of the path has in any child that the step takes. */
static const struct td_json *path_search(struct td_arena *arena, const struct td_json *node,
                                         const struct path_step *step, td_str rest, unsigned depth)
{
    bool has_children = td_json_is(node, TD_JSON_TYPE_ARRAY) ||
                        (td_json_is(node, TD_JSON_TYPE_OBJECT) && step->kind == PATH_ALL);
    for (const struct td_json *item = has_children ? td_json_first_child(node) : NULL; item;
         item = item->next) {
        if (step->kind == PATH_FILTER && !path_holds(arena, item, step, depth)) {
            continue;
        }
        const struct td_json *found = path_find(arena, item, rest, depth + 1);
        if (found || td_arena_check(arena, NULL) != TD_OK) {
            return found;
        }
    }
    return NULL;
}

static const struct td_json *path_item(const struct td_json *list, int64_t index)
{
    if (!td_json_is(list, TD_JSON_TYPE_ARRAY)) {
        return NULL;
    }
    int64_t count = (int64_t)list->count;
    index += index < 0 ? count : 0;
    return index >= 0 && index < count ? td_json_at(list, (size_t)index) : NULL;
}

static const struct td_json *path_find(struct td_arena *arena, const struct td_json *node,
                                       td_str path, unsigned depth)
{
    size_t at = 0;
    if (depth > TD_TABLE_PATH_DEPTH_MAX) {
        return NULL;
    }
    while (node && at < path.len) {
        struct path_step step = {.name = TD_STR_EMPTY};
        if (!path_next(arena, path, &at, &step)) {
            return NULL;
        }
        if (step.kind == PATH_ALL || step.kind == PATH_FILTER) {
            return path_search(arena, node, &step, td_str_slice(path, at, path.len), depth);
        }
        if (step.kind == PATH_MEMBER) {
            node = td_json_get(node, step.name);
            continue;
        }
        if (step.kind == PATH_INNER) {
            td_str inner = td_arena_format(arena, ".%.*s", TD_STR_ARG(step.name));
            node = path_find(arena, node, inner, depth + 1);
            continue;
        }
        node = path_item(node, step.index);
    }
    return node;
}

/* --- cells --- */

static struct td_json *custom_text_cell(const struct td_table_row *row, const struct td_json *value)
{
    double number;
    int64_t whole;
    switch ((enum td_json_type)value->type) {
    case TD_JSON_TYPE_STRING:
        return td_table_string(row, value->text);
    case TD_JSON_TYPE_NULL:
        return td_table_string(row, TD_STR("<no value>"));
    case TD_JSON_TYPE_BOOL:
        return td_table_string(row, value->boolean ? TD_STR("true") : TD_STR("false"));
    case TD_JSON_TYPE_NUMBER:
        return td_table_string(row, td_str_to_int64(value->text, &whole) ||
                                            !td_json_to_double(value, &number)
                                        ? value->text
                                        : td_field_double_text(row->arena, number));
    case TD_JSON_TYPE_ARRAY:
    case TD_JSON_TYPE_OBJECT:
        break;
    }
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    struct td_json *sorted = td_json_copy(row->arena, value, false);
    td_json_sort(row->arena, sorted);
    td_json_write(sorted, &(struct td_json_format){.escape_html = true}, &text);
    return td_table_buffer(row, &text);
}

static struct td_json *custom_number_cell(const struct td_table_row *row,
                                          const struct td_json *value, bool is_whole)
{
    int64_t whole;
    double number;
    if (is_whole && td_json_to_int64(value, &whole)) {
        return td_json_new_int64(row->arena, whole);
    }
    if (!td_json_to_double(value, &number)) {
        return td_json_new_null(row->arena);
    }
    bool is_cut = is_whole && number > -9223372036854775808.0 && number < 9223372036854775808.0;
    return is_cut ? td_json_new_int64(row->arena, (int64_t)number)
                  : td_json_new_double(row->arena, number);
}

static struct td_json *custom_date_cell(const struct td_table_row *row, td_str text)
{
    struct td_instant since;
    if (text.len == 0 || td_str_equal(text, TD_STR("null"))) {
        return td_table_string(row, TD_STR("<unknown>"));
    }
    if (td_time_parse(text, &since, NULL) != TD_OK) {
        return td_table_string(row, TD_STR("<invalid>"));
    }
    return td_table_string(row, td_table_span(row->arena, since, row->now));
}

static struct td_json *custom_cell(const struct td_table_row *row, const struct td_json *column)
{
    td_str type = td_json_text(column, "type");
    td_str path = td_json_text(column, "jsonPath");
    const struct td_json *value = path_find(row->arena, row->object, path, 0);
    bool is_integer = td_str_equal(type, TD_STR("integer"));
    if (!value) {
        return td_json_new_null(row->arena);
    }
    if (td_str_equal(type, TD_STR("string"))) {
        return custom_text_cell(row, value);
    }
    if (td_str_equal(type, TD_STR("date")) && value->type == TD_JSON_TYPE_STRING) {
        return custom_date_cell(row, value->text);
    }
    if (td_str_equal(type, TD_STR("boolean")) && value->type == TD_JSON_TYPE_BOOL) {
        return td_json_new_bool(row->arena, value->boolean);
    }
    if ((is_integer || td_str_equal(type, TD_STR("number"))) &&
        value->type == TD_JSON_TYPE_NUMBER) {
        return custom_number_cell(row, value, is_integer);
    }
    return td_json_new_null(row->arena);
}

struct td_json *td_table_custom_cells(struct td_table_row *row, const struct td_json *columns)
{
    struct td_json *cells = td_json_new_array(row->arena);
    td_json_append(cells, td_cell_name(row, NULL));
    const struct td_json *column = td_json_first_item(columns);
    if (!column) {
        td_json_append(cells, td_cell_age(row, NULL));
    }
    for (; column; column = column->next) {
        td_json_append(cells, custom_cell(row, column));
    }
    return cells;
}

/* --- columns --- */

struct custom_column {
    td_str name;
    td_str type;
    td_str format;
    td_str description;
    int64_t priority;
};

static void custom_add_column(struct td_arena *arena, struct td_json *list,
                              const struct custom_column *column)
{
    struct td_json *made = td_json_new_object(arena);
    td_json_set_str(arena, made, TD_STR("name"), column->name);
    td_json_set_str(arena, made, TD_STR("type"), column->type);
    td_json_set_str(arena, made, TD_STR("format"), column->format);
    td_json_set_str(arena, made, TD_STR("description"), column->description);
    td_json_set_int64(arena, made, TD_STR("priority"), column->priority);
    td_json_append(list, made);
}

struct td_json *td_table_custom_columns(struct td_arena *arena, const struct td_json *columns)
{
    struct td_json *list = td_json_new_array(arena);
    custom_add_column(arena, list,
                      &(struct custom_column){.name = TD_STR("Name"),
                                              .type = TD_STR("string"),
                                              .format = TD_STR("name"),
                                              .description = TD_STR("The object's name.")});
    const struct td_json *item = td_json_first_item(columns);
    if (!item) {
        custom_add_column(
            arena, list,
            &(struct custom_column){.name = TD_STR("Age"),
                                    .type = TD_STR("date"),
                                    .format = TD_STR_EMPTY,
                                    .description = TD_STR("When the object was created.")});
    }
    for (; item; item = item->next) {
        td_str path = td_json_text(item, "jsonPath");
        td_str description = td_json_text(item, "description");
        if (description.len == 0) {
            description = td_arena_format(arena, "Value at the JSON path %.*s.", TD_STR_ARG(path));
        }
        custom_add_column(
            arena, list,
            &(struct custom_column){.name = td_json_text(item, "name"),
                                    .type = td_json_text(item, "type"),
                                    .format = td_json_text(item, "format"),
                                    .description = description,
                                    .priority = td_json_get_int64(item, TD_STR("priority"), 0)});
    }
    return list;
}
