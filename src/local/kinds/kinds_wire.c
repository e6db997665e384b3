/*
 * A server decodes an object into a struct and encodes it again, and clients see the second text.
 * This file does to a tree what that trip does. A null is as good as absent, and so is the zero
 * value of a member that is no pointer; members that the encoder always writes appear with their
 * zero value; members that the struct does not have are lost; quantities and times take their
 * canonical form, and quantities of resource lists are rounded up to thousandths.
 */
#include "base/limits.h"
#include "base/timefmt.h"
#include "kube/quantity/quantity.h"
#include "local/kinds/kinds_default.h"

#define WIRE_MILLI_SCALE (-3)
#define WIRE_MICRO_DIGITS 6

static struct td_json *wire_zero(struct td_arena *arena, const struct td_schema_field *field)
{
    if (field->is_pointer) {
        return td_json_new_null(arena);
    }
    switch (field->type->kind) {
    case TD_SCHEMA_INT32:
    case TD_SCHEMA_INT64:
    case TD_SCHEMA_NUMBER:
    case TD_SCHEMA_INT_OR_STRING:
        return td_json_new_int64(arena, 0);
    case TD_SCHEMA_BOOL:
        return td_json_new_bool(arena, false);
    case TD_SCHEMA_OBJECT:
        return td_json_new_object(arena);
    case TD_SCHEMA_STRING:
        return td_json_new_string(arena, TD_STR_EMPTY);
    case TD_SCHEMA_QUANTITY:
        return td_json_new_string(arena, TD_STR("0"));
    case TD_SCHEMA_DURATION:
        return td_json_new_string(arena, TD_STR("0s"));
    case TD_SCHEMA_MAP:
    case TD_SCHEMA_BYTES:
    case TD_SCHEMA_TIME:
    case TD_SCHEMA_MICRO_TIME:
    case TD_SCHEMA_ANY:
    case TD_SCHEMA_LIST:
        break;
    }
    return td_json_new_null(arena);
}

static void wire_set_text(struct td_json *value, td_str text)
{
    value->type = TD_JSON_TYPE_STRING;
    value->text = text;
    value->is_escaped = false;
}

static void wire_quantity(struct td_arena *arena, struct td_json *value, bool is_rounded)
{
    struct td_quantity quantity;
    if (td_quantity_from_json(arena, value, &quantity, NULL) < 0) {
        return;
    }
    if (is_rounded) {
        (void)td_quantity_round_up(arena, &quantity, WIRE_MILLI_SCALE); /* lost digits are meant */
    }
    wire_set_text(value, td_quantity_text(arena, &quantity));
}

static void wire_time(struct td_arena *arena, struct td_json *value, int fraction_digits)
{
    struct td_instant instant;
    if (value->type != TD_JSON_TYPE_STRING || td_time_parse(value->text, &instant, NULL) < 0) {
        return;
    }
    wire_set_text(value, td_time_text(arena, instant, fraction_digits));
}

static void wire_duration(struct td_arena *arena, struct td_json *value)
{
    td_duration duration;
    if (value->type != TD_JSON_TYPE_STRING || td_duration_parse(value->text, &duration, NULL) < 0) {
        return;
    }
    char text[TD_DURATION_TEXT_BYTES];
    size_t len = td_duration_format(duration, text);
    wire_set_text(value, td_arena_copy_str(arena, (td_str){.ptr = text, .len = len}));
}

static void wire_value(struct td_arena *arena, const struct td_schema_type *type,
                       struct td_json *value, uint32_t depth);

static void wire_drop_unknown(const struct td_schema_type *type, struct td_json *object)
{
    struct td_json *next = NULL;
    for (struct td_json *member = td_json_first_member(object); member; member = next) {
        next = member->next;
        if (!td_schema_member(type, member->key)) {
            (void)td_json_remove(object, member->key); /* it was just found */
        }
    }
}

static void wire_object(struct td_arena *arena, const struct td_schema_type *type,
                        struct td_json *object, uint32_t depth)
{
    size_t known = 0;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct td_schema_field *field = &type->fields[i];
        struct td_json *member = td_json_get(object, field->name);
        if (field->is_written && (!member || member->type == TD_JSON_TYPE_NULL)) {
            member = wire_zero(arena, field);
            td_json_set(arena, object, field->name, member);
        }
        if (!member) {
            continue;
        }
        bool is_absent = field->is_pointer ? member->type == TD_JSON_TYPE_NULL
                                           : td_schema_is_empty(field->type, member);
        if (is_absent && !field->is_written) {
            (void)td_json_remove(object, field->name); /* it was just found */
            continue;
        }
        known++;
        wire_value(arena, field->type, member, depth + 1);
    }
    if (known < object->count) {
        wire_drop_unknown(type, object);
    }
}

/* A null among the items of a list or a map is the element's zero value. The node keeps its place,
 * only its content changes. */
static void wire_fill(struct td_arena *arena, const struct td_schema_type *type,
                      struct td_json *item)
{
    struct td_schema_field field = {.type = type};
    td_json_take(item, wire_zero(arena, &field));
}

static void wire_items(struct td_arena *arena, const struct td_schema_type *type,
                       struct td_json *collection, uint32_t depth)
{
    const struct td_schema_type *element = type->element;
    bool is_resource_list = type->kind == TD_SCHEMA_MAP && element->kind == TD_SCHEMA_QUANTITY;
    for (struct td_json *item = td_json_first_child(collection); item; item = item->next) {
        if (item->type == TD_JSON_TYPE_NULL) {
            wire_fill(arena, element, item);
        }
        if (is_resource_list) {
            wire_quantity(arena, item, true);
        } else {
            wire_value(arena, element, item, depth + 1);
        }
    }
}

/* The parser caps the tree's depth; the check is for trees made by code. */
static void wire_value(struct td_arena *arena, const struct td_schema_type *type,
                       struct td_json *value, uint32_t depth)
{
    if (depth > TD_JSON_DEPTH_MAX) {
        return;
    }
    switch (type->kind) {
    case TD_SCHEMA_OBJECT:
        if (value->type == TD_JSON_TYPE_OBJECT) {
            wire_object(arena, type, value, depth);
        }
        break;
    case TD_SCHEMA_LIST:
    case TD_SCHEMA_MAP:
        wire_items(arena, type, value, depth);
        break;
    case TD_SCHEMA_QUANTITY:
        wire_quantity(arena, value, false);
        break;
    case TD_SCHEMA_TIME:
        wire_time(arena, value, 0);
        break;
    case TD_SCHEMA_MICRO_TIME:
        wire_time(arena, value, WIRE_MICRO_DIGITS);
        break;
    case TD_SCHEMA_DURATION:
        wire_duration(arena, value);
        break;
    case TD_SCHEMA_ANY:
    case TD_SCHEMA_STRING:
    case TD_SCHEMA_INT32:
    case TD_SCHEMA_INT64:
    case TD_SCHEMA_NUMBER:
    case TD_SCHEMA_BOOL:
    case TD_SCHEMA_INT_OR_STRING:
    case TD_SCHEMA_BYTES:
        break;
    }
}

void td_kind_to_wire(struct td_arena *arena, const struct td_schema_type *type,
                     struct td_json *object)
{
    wire_value(arena, type, object, 0);
}
