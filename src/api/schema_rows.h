/*
 * What the tables of our own kinds are written with: rows of fields, objects and lists, and the
 * types that every kind has. Private to the files that hold such tables, hence the short names;
 * constant data, nothing to free, any thread may read. Fields of an object are sorted by name, as
 * td_schema_field wants them.
 */
#pragma once

#include "base/str.h"
#include "kube/schema/schema.h"

#define FIELD(json_name, field_type)                                                               \
    {                                                                                              \
        .name = TD_STR_INIT(json_name), .type = &(field_type)                                      \
    }
#define POINTER(json_name, field_type)                                                             \
    {                                                                                              \
        .name = TD_STR_INIT(json_name), .type = &(field_type), .is_pointer = true                  \
    }
#define OBJECT(type_name, members)                                                                 \
    {                                                                                              \
        .name = TD_STR_INIT(type_name), .kind = TD_SCHEMA_OBJECT, .fields = (members),             \
        .field_count = TD_COUNT(members)                                                           \
    }
#define LIST(item_type)                                                                            \
    {                                                                                              \
        .kind = TD_SCHEMA_LIST, .topology = TD_SCHEMA_ATOMIC, .element = &(item_type)              \
    }

static const struct td_schema_type type_any = {.kind = TD_SCHEMA_ANY};
static const struct td_schema_type type_string = {.kind = TD_SCHEMA_STRING};
static const struct td_schema_type type_int32 = {.kind = TD_SCHEMA_INT32};
static const struct td_schema_type type_int64 = {.kind = TD_SCHEMA_INT64};
static const struct td_schema_type type_number = {.kind = TD_SCHEMA_NUMBER};
static const struct td_schema_type type_bool = {.kind = TD_SCHEMA_BOOL};
static const struct td_schema_type type_quantity = {.kind = TD_SCHEMA_QUANTITY};
static const struct td_schema_type type_time = {.kind = TD_SCHEMA_TIME};
static const struct td_schema_type type_duration = {.kind = TD_SCHEMA_DURATION};
static const struct td_schema_type type_strings = LIST(type_string);
static const struct td_schema_type type_resources = {.kind = TD_SCHEMA_MAP,
                                                     .element = &type_quantity};

static const struct td_schema_field reference_fields[] = {
    FIELD("apiVersion", type_string), FIELD("kind", type_string), FIELD("name", type_string)};
static const struct td_schema_type type_reference = {
    .name = TD_STR_INIT("CrossVersionObjectReference"),
    .kind = TD_SCHEMA_OBJECT,
    .topology = TD_SCHEMA_ATOMIC,
    .fields = reference_fields,
    .field_count = TD_COUNT(reference_fields),
};
