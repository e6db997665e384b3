/* Does a value have the shape of its type? The gate in front of every other walk of typed.h. */
#include "kube/apply/typed.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/apply/typed_types.h"

#define PATH_TEXT_BYTES_MAX ((size_t)TD_ERROR_MESSAGE_BYTES)

/* The way from the root to the value being looked at, kept on the stack. */
struct place {
    const struct place *up; /* NULL at the root */
    struct td_field_step step;
    unsigned depth;
};

struct validation {
    struct td_arena *arena;
    bool allow_duplicates;
    struct td_error *err;
};

static int validate_value(const struct validation *v, const struct td_schema_type *type,
                          const struct td_json *value, const struct place *place);

static void place_write(const struct place *place, struct td_buf *out)
{
    const struct place *way[TD_JSON_DEPTH_MAX + 1];
    size_t count = 0;
    for (; place->up && count <= TD_JSON_DEPTH_MAX; place = place->up) {
        way[count++] = place;
    }
    while (count > 0) {
        td_field_step_write(&way[--count]->step, out);
    }
}

/* Refuse the value at `place`, naming its path. */
static int validate_refuse(const struct validation *v, int code, const struct place *place,
                           const char *what)
{
    td_auto_buf path = td_buf_capped(PATH_TEXT_BYTES_MAX);
    place_write(place, &path);
    return td_error_set(v->err, code, "%.*s: %s", TD_STR_ARG(td_buf_str(&path)), what);
}

static const char *scalar_problem(enum td_schema_kind kind, const struct td_json *value)
{
    if (value->type == TD_JSON_TYPE_NULL) {
        return NULL;
    }
    switch (kind) {
    case TD_SCHEMA_INT32:
    case TD_SCHEMA_INT64:
    case TD_SCHEMA_NUMBER:
        return value->type == TD_JSON_TYPE_NUMBER ? NULL : "expected a number";
    case TD_SCHEMA_STRING:
    case TD_SCHEMA_DURATION:
    case TD_SCHEMA_BYTES:
        return value->type == TD_JSON_TYPE_STRING ? NULL : "expected a string";
    case TD_SCHEMA_BOOL:
        return value->type == TD_JSON_TYPE_BOOL ? NULL : "expected true or false";
    case TD_SCHEMA_QUANTITY:
    case TD_SCHEMA_INT_OR_STRING:
    case TD_SCHEMA_TIME:
    case TD_SCHEMA_MICRO_TIME:
    case TD_SCHEMA_ANY:
    case TD_SCHEMA_OBJECT:
    case TD_SCHEMA_MAP:
    case TD_SCHEMA_LIST:
        break;
    }
    bool is_scalar = value->type != TD_JSON_TYPE_ARRAY && value->type != TD_JSON_TYPE_OBJECT;
    return is_scalar ? NULL : "expected a number, a string, true or false";
}

static int validate_map(const struct validation *v, const struct td_schema_type *type,
                        const struct td_json *value, const struct place *place)
{
    if (value->type == TD_JSON_TYPE_NULL) {
        return TD_OK;
    }
    if (value->type != TD_JSON_TYPE_OBJECT) {
        return validate_refuse(v, TD_INVALID, place, "expected an object");
    }
    for (const struct td_json *member = td_json_first_member(value); member;
         member = member->next) {
        const struct place below = {
            .up = place,
            .step = {.kind = TD_FIELD_NAME, .name = member->key},
            .depth = place->depth + 1,
        };
        bool is_named;
        const struct td_schema_type *member_type = td_typed_member(type, member->key, &is_named);
        if (!member_type) {
            return validate_refuse(v, TD_INVALID, &below, "field not declared in schema");
        }
        int r = validate_value(v, member_type, member, &below);
        if (r < 0) {
            return r;
        }
    }
    return TD_OK;
}

/* The keys of an associative list: each item has one and, unless allowed, its own. */
static int validate_keys(const struct validation *v, const struct td_schema_type *type,
                         const struct td_json *list, const struct place *place)
{
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next, index++) {
        struct td_field_step step;
        const char *problem = td_typed_step(v->arena, type, item, &step);
        if (problem) {
            const struct place below = {
                .up = place,
                .step = {.kind = TD_FIELD_INDEX, .index = (int64_t)index},
                .depth = place->depth + 1,
            };
            return validate_refuse(v, TD_INVALID, &below, problem);
        }
    }
    if (v->allow_duplicates) {
        return TD_OK;
    }
    struct td_typed_items items = td_typed_items_new(v->arena, type, list);
    for (size_t i = 0; i < items.count; i++) {
        if (items.items[i].same > 1) {
            const struct place below = {
                .up = place,
                .step = items.items[i].step,
                .depth = place->depth + 1,
            };
            return validate_refuse(v, TD_INVALID, &below, "duplicate entries for key");
        }
    }
    return TD_OK;
}

static int validate_list(const struct validation *v, const struct td_schema_type *type,
                         const struct td_json *value, const struct place *place)
{
    if (value->type == TD_JSON_TYPE_NULL) {
        return TD_OK;
    }
    if (value->type != TD_JSON_TYPE_ARRAY) {
        return validate_refuse(v, TD_INVALID, place, "expected a list");
    }
    if (!td_typed_is_atomic(type, TD_FORM_LIST)) {
        int r = validate_keys(v, type, value, place);
        if (r < 0) {
            return r;
        }
    }
    int64_t index = 0;
    for (const struct td_json *item = td_json_first_item(value); item; item = item->next, index++) {
        const struct place below = {
            .up = place,
            .step = {.kind = TD_FIELD_INDEX, .index = index},
            .depth = place->depth + 1,
        };
        int r = validate_value(v, td_typed_item(type), item, &below);
        if (r < 0) {
            return r;
        }
    }
    return TD_OK;
}

static int validate_value(const struct validation *v, const struct td_schema_type *type,
                          const struct td_json *value, const struct place *place)
{
    if (place->depth > TD_JSON_DEPTH_MAX) {
        return validate_refuse(v, TD_LIMIT, place, "nested too deeply");
    }
    switch (td_typed_first_form(td_typed_forms_of(type, value))) {
    case TD_FORM_MAP:
        return validate_map(v, type, value, place);
    case TD_FORM_LIST:
        return validate_list(v, type, value, place);
    default:
        break;
    }
    const char *problem = scalar_problem(type->kind, value);
    return problem ? validate_refuse(v, TD_INVALID, place, problem) : TD_OK;
}

int td_typed_validate(struct td_arena *arena, const struct td_schema_type *type,
                      const struct td_json *value, bool allow_duplicates, struct td_error *err)
{
    td_assert(type);
    const struct validation v = {.arena = arena, .allow_duplicates = allow_duplicates, .err = err};
    const struct place root = {.depth = 0};
    return validate_value(&v, type, value, &root);
}
