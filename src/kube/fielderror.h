/*
 * What validation finds: a list of errors, each with the JSON path of the field, upstream's class,
 * the bad value and a detail, so that a server can answer 422 with one cause each and a user
 * reads one line each. At most TD_FIELD_ERRORS_MAX are kept, and long texts are cut: what an object
 * does to its reader's memory is bounded. Texts are in the arena. Shared by every object of this
 * room.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/objectpath.h"

enum td_field_error_type {
    TD_FIELD_REQUIRED,    /* "Required value" */
    TD_FIELD_INVALID,     /* "Invalid value" */
    TD_FIELD_UNSUPPORTED, /* "Unsupported value" */
    TD_FIELD_FORBIDDEN,   /* "Forbidden" */
    TD_FIELD_DUPLICATE,   /* "Duplicate value" */
    TD_FIELD_TOO_MANY,    /* "Too many" */
    TD_FIELD_TOO_LONG,    /* "Too long" */
    TD_FIELD_NOT_FOUND,   /* "Not found" */
    TD_FIELD_TYPE_INVALID /* "Invalid value" of the wrong JSON type */
};

struct td_field_error {
    td_str field; /* "spec.metrics[0].resource.name" */
    enum td_field_error_type type;
    td_str value; /* as shown: -1, "x"; empty for classes that show none */
    td_str detail;
};

struct td_field_errors {
    struct td_arena *arena;
    struct td_field_error *items; /* in the order found */
    size_t count;
    size_t cap;
};

void td_field_required(struct td_field_errors *errors, const struct td_field_path *path,
                       const char *detail);
void td_field_forbidden(struct td_field_errors *errors, const struct td_field_path *path,
                        const char *detail);

/* `value` as upstream prints it: strings quoted, numbers and booleans bare. */
void td_field_invalid_str(struct td_field_errors *errors, const struct td_field_path *path,
                          td_str value, const char *detail);
/* The same for each line of `details`, as the td_name_check_ functions write them. */
void td_field_invalid_lines(struct td_field_errors *errors, const struct td_field_path *path,
                            td_str value, td_str details);
void td_field_invalid_int(struct td_field_errors *errors, const struct td_field_path *path,
                          int64_t value, const char *detail);

/* A finite float as upstream prints it: shortest digits, with an exponent below 1e-04 and from
 * 1e+06 on (Go's %v). */
td_str td_field_double_text(struct td_arena *arena, double value);

/* detail becomes `supported values: "a", "b"`. */
void td_field_unsupported(struct td_field_errors *errors, const struct td_field_path *path,
                          td_str value, const td_str *supported, size_t supported_count);

/* With a quoted value and no detail: "Duplicate value: \"a\"". */
void td_field_error_str(struct td_field_errors *errors, const struct td_field_path *path,
                        enum td_field_error_type type, td_str value);

/* For any other combination; texts are copied into the arena. */
void td_field_error_add(struct td_field_errors *errors, const struct td_field_path *path,
                        enum td_field_error_type type, td_str value, td_str detail);

/* "Required value", ... */
td_str td_field_error_type_name(enum td_field_error_type type);

/* The reason of the cause in a Status: "FieldValueRequired", ... */
const char *td_field_error_reason(enum td_field_error_type type);

/* The whole line: "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1". */
void td_field_error_write(const struct td_field_error *error, struct td_buf *out);
