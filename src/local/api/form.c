/* The forms in which one object can be asked for: another version, only its metadata, a row of a
 * Table. */
#include "base/error.h"
#include "local/api/api_private.h"
#include "local/print/table.h"

int td_form_convert(const struct td_api_call *call, struct td_arena *arena, struct td_json *stored,
                    struct td_json **ret, struct td_error *err)
{
    const struct td_resource *resource = call->at.resource;
    if (call->at.version == resource->storage) {
        *ret = stored;
        return TD_OK;
    }
    return td_resource_convert(arena, resource, resource->storage, call->at.version, stored, ret,
                               err);
}

struct td_json *td_form_partial(struct td_arena *arena, struct td_json *object)
{
    struct td_json *partial = td_json_new_object(arena);
    td_json_set_str(arena, partial, TD_STR("kind"), TD_STR("PartialObjectMetadata"));
    td_json_set_str(arena, partial, TD_STR("apiVersion"), TD_STR("meta.k8s.io/v1"));
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    td_json_set(arena, partial, TD_STR("metadata"),
                metadata ? td_json_copy(arena, metadata, false) : td_json_new_object(arena));
    return partial;
}

struct td_json *td_form_row(const struct td_api_call *call, struct td_arena *arena,
                            struct td_json *object)
{
    struct td_json *row = td_json_new_object(arena);
    td_json_set(arena, row, TD_STR("cells"),
                td_table_cells(arena, call->at, object, td_call_now(call)));
    struct td_json *conditions = td_table_conditions(arena, call->at, object);
    if (conditions) {
        td_json_set(arena, row, TD_STR("conditions"), conditions);
    }
    td_str include = call->query.include_object;
    struct td_json *shown = object;
    if (td_str_equal(include, TD_STR("None"))) {
        shown = td_json_new_null(arena);
    } else if (!td_str_equal(include, TD_STR("Object"))) {
        shown = td_form_partial(arena, object);
    }
    td_json_set(arena, row, TD_STR("object"), shown);
    return row;
}

struct td_json *td_form_table(const struct td_api_call *call, struct td_arena *arena,
                              struct td_json *metadata, bool has_columns)
{
    struct td_json *table = td_json_new_object(arena);
    td_json_set_str(arena, table, TD_STR("kind"), TD_STR("Table"));
    td_json_set_str(arena, table, TD_STR("apiVersion"), TD_STR("meta.k8s.io/v1"));
    td_json_set(arena, table, TD_STR("metadata"), metadata);
    td_json_set(arena, table, TD_STR("columnDefinitions"),
                has_columns ? td_table_columns(arena, call->at) : td_json_new_null(arena));
    return table;
}

static struct td_json *form_single_table(const struct td_api_call *call, struct td_arena *arena,
                                         struct td_json *object)
{
    td_str version = td_json_text(td_json_get(object, TD_STR("metadata")), "resourceVersion");
    struct td_json *metadata = td_json_new_object(arena);
    td_json_set_str(arena, metadata, TD_STR("resourceVersion"), version);
    struct td_json *table = td_form_table(call, arena, metadata, true);
    struct td_json *rows = td_json_new_array(arena);
    td_json_append(rows, td_form_row(call, arena, object));
    td_json_set(arena, table, TD_STR("rows"), rows);
    return table;
}

int td_form_object(const struct td_api_call *call, struct td_arena *arena, struct td_json *stored,
                   struct td_json **ret, struct td_error *err)
{
    struct td_json *object;
    int code = td_form_convert(call, arena, stored, &object, err);
    if (code != TD_OK) {
        return code;
    }
    switch (call->form) {
    case TD_FORM_OBJECT:
        *ret = object;
        break;
    case TD_FORM_PARTIAL:
        *ret = td_form_partial(arena, object);
        break;
    case TD_FORM_TABLE:
        *ret = form_single_table(call, arena, object);
        break;
    }
    return TD_OK;
}
