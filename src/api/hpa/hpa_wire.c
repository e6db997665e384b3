/*
 * A server decodes an object into a struct and encodes it again, and clients see the second text.
 * This file does to a tree what that trip does: a null is as good as absent; members without which
 * the struct cannot be written appear with their zero value; optional members that hold their zero
 * value vanish, unless they are pointers and so can tell zero from absent; quantities and times
 * take their canonical form. Members that the struct does not have would be lost there; we keep
 * them.
 */
#include "api/hpa/hpa_private.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "kube/quantity/quantity.h"

static struct td_json *wire_zero(struct td_arena *arena, const struct td_schema_type *type)
{
    switch (type->kind) {
    case TD_SCHEMA_INT32:
    case TD_SCHEMA_INT64:
    case TD_SCHEMA_NUMBER:
        return td_json_new_int64(arena, 0);
    case TD_SCHEMA_BOOL:
        return td_json_new_bool(arena, false);
    case TD_SCHEMA_OBJECT:
    case TD_SCHEMA_MAP:
        return td_json_new_object(arena);
    case TD_SCHEMA_STRING:
    case TD_SCHEMA_BYTES:
        return td_json_new_string(arena, TD_STR_EMPTY);
    case TD_SCHEMA_QUANTITY:
        return td_json_new_string(arena, TD_STR("0"));
    case TD_SCHEMA_INT_OR_STRING:
    case TD_SCHEMA_TIME:
    case TD_SCHEMA_MICRO_TIME:
    case TD_SCHEMA_DURATION:
    case TD_SCHEMA_ANY:
    case TD_SCHEMA_LIST:
        break;
    }
    return td_json_new_null(arena);
}

/* Is it written even when it is zero? A list or a time that is written as null is left out. */
static bool wire_is_required(const struct td_schema_field *field)
{
    return field->is_written && field->type->kind != TD_SCHEMA_LIST &&
           field->type->kind != TD_SCHEMA_TIME;
}

static void wire_scalar(struct td_arena *arena, const struct td_schema_type *type,
                        struct td_json *value)
{
    struct td_quantity quantity;
    struct td_instant instant;
    if (type->kind == TD_SCHEMA_QUANTITY &&
        td_quantity_from_json(arena, value, &quantity, NULL) == TD_OK) {
        value->type = TD_JSON_TYPE_STRING;
        value->text = td_quantity_text(arena, &quantity);
        value->is_escaped = false;
    } else if (type->kind == TD_SCHEMA_TIME && value->type == TD_JSON_TYPE_STRING &&
               td_time_parse(value->text, &instant, NULL) == TD_OK) {
        value->text = td_time_text(arena, instant, 0);
        value->is_escaped = false;
    }
}

static void wire_value(struct td_arena *arena, const struct td_schema_type *type,
                       struct td_json *value, uint32_t depth);

static void wire_object(struct td_arena *arena, const struct td_schema_type *type,
                        struct td_json *object, uint32_t depth)
{
    for (size_t i = 0; i < type->field_count; i++) {
        const struct td_schema_field *field = &type->fields[i];
        struct td_json *member = td_json_get(object, field->name);
        bool is_required = wire_is_required(field);
        if (is_required && (!member || member->type == TD_JSON_TYPE_NULL)) {
            member = wire_zero(arena, field->type);
            td_json_set(arena, object, field->name, member);
        }
        if (!member) {
            continue;
        }
        bool is_absent = field->is_pointer ? member->type == TD_JSON_TYPE_NULL
                                           : td_schema_is_empty(field->type, member);
        if (is_absent && !is_required) {
            (void)td_json_remove(object, field->name); /* it was just found */
        } else {
            wire_value(arena, field->type, member, depth + 1);
        }
    }
}

/* A null among the items of a list or a map is the element's zero value. The node keeps its place,
 * only its content changes. */
static void wire_fill(struct td_arena *arena, const struct td_schema_type *type,
                      struct td_json *item)
{
    td_json_take(item, wire_zero(arena, type));
}

/* Bounded by the depth of the schema, which is finite for this kind; the parser capped the depth of
 * the tree. */
static void wire_value(struct td_arena *arena, const struct td_schema_type *type,
                       struct td_json *value, uint32_t depth)
{
    td_assert(depth < TD_JSON_DEPTH_MAX);
    bool is_collection = type->kind == TD_SCHEMA_LIST || type->kind == TD_SCHEMA_MAP;
    if (type->kind == TD_SCHEMA_OBJECT && value->type == TD_JSON_TYPE_OBJECT) {
        wire_object(arena, type, value, depth);
    } else if (is_collection && value->type != TD_JSON_TYPE_NULL) {
        for (struct td_json *item = td_json_first_child(value); item; item = item->next) {
            if (item->type == TD_JSON_TYPE_NULL) {
                wire_fill(arena, type->element, item);
            }
            wire_value(arena, type->element, item, depth + 1);
        }
    } else {
        wire_scalar(arena, type, value);
    }
}

void td_hpa_to_wire(struct td_arena *arena, const struct td_schema_type *type,
                    struct td_json *object)
{
    wire_value(arena, type, object, 0);
}
