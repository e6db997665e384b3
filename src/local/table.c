#include "local/table.h"

#include "base/error.h"

struct table_column {
    const char *name;
    const char *type;
    const char *format;
    const char *description;
    int priority;
};

static const struct table_column table_common[] = {
    {"Name", "string", "name", "The object's name.", 0},
    {"Age", "string", "", "Time since the object was created.", 0},
};

struct td_json *td_table_columns(struct td_arena *arena, struct td_resource_at at)
{
    (void)at; /* these columns are the same for every kind */
    struct td_json *columns = td_json_new_array(arena);
    for (size_t i = 0; i < sizeof(table_common) / sizeof(table_common[0]); i++) {
        const struct table_column *row = &table_common[i];
        struct td_json *column = td_json_new_object(arena);
        td_json_set_str(arena, column, TD_STR("name"), td_str_from(row->name));
        td_json_set_str(arena, column, TD_STR("type"), td_str_from(row->type));
        td_json_set_str(arena, column, TD_STR("format"), td_str_from(row->format));
        td_json_set_str(arena, column, TD_STR("description"), td_str_from(row->description));
        td_json_set_int64(arena, column, TD_STR("priority"), row->priority);
        td_json_append(columns, column);
    }
    return columns;
}

/* Two units for what is young in each range, as people read ages: "90s", "5m30s", "7d5h", "2y3d".
 */
td_str td_table_age(struct td_arena *arena, td_str since, struct td_instant now)
{
    struct td_instant created;
    if (since.len == 0 || td_time_parse(since, &created, NULL) != TD_OK) {
        return TD_STR("<unknown>");
    }
    int64_t seconds = now.unix_seconds - created.unix_seconds;
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

struct td_json *td_table_cells(struct td_arena *arena, struct td_resource_at at,
                               const struct td_json *object, struct td_instant now)
{
    (void)at;
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    td_str created = td_json_get_str(metadata, TD_STR("creationTimestamp"), TD_STR_EMPTY);
    struct td_json *cells = td_json_new_array(arena);
    td_json_append(
        cells, td_json_new_string(arena, td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY)));
    td_json_append(cells, td_json_new_string(arena, td_table_age(arena, created, now)));
    return cells;
}
