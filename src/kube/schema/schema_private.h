/* What the files of schema checking share; private to them. */
#pragma once

#include "base/limits.h"
#include "base/map.h"
#include "kube/schema/schema_check.h"

/* One check of one object. */
struct schema_work {
    struct td_arena *arena;
    struct td_map patterns; /* text to compiled pattern, or to NULL when it is not known */
    int64_t steps;          /* left */
};

/* A value's place and its schema. */
struct schema_at {
    struct schema_work *work;
    const struct td_json *schema;
    const struct td_field_path *path; /* NULL: the root */
    unsigned depth;
};

/* What was found, and how much was right: of alternatives that all fail, upstream reports the one
 * of which most was right. */
struct schema_result {
    struct td_field_errors errors;
    int64_t matches;
};

static inline bool schema_flag(const struct td_json *schema, td_str key)
{
    return td_json_get_bool(schema, key, false);
}

/* ---- schema_check.c ---- */

/* Adds an error unless the same was added before. */
void td_structural_add(const struct schema_at *at, struct schema_result *result,
                       enum td_field_error_type type, td_str value, td_str detail);
/* The same without a path in front, as upstream does where only the text names the place. */
void td_structural_add_bare(const struct schema_at *at, struct schema_result *result,
                            td_str detail);
td_str td_structural_path(const struct schema_at *at);
td_str td_structural_shown(struct td_arena *arena, const struct td_json *value);
bool td_structural_is_integer(const struct td_json *value); /* written without point or exponent */
bool td_structural_is_whole_float(double number);           /* near enough to pass as an integer */
bool td_structural_has_type(const struct td_json *schema, const char *type);
size_t td_structural_type_count(const struct td_json *schema);
/* Does the pattern match? True for one that is not known. */
bool td_structural_matches(struct schema_work *work, td_str pattern, td_str text);

/* ---- schema_number.c ---- */

void td_structural_check_number(const struct schema_at *at, const struct td_json *value,
                                struct schema_result *result);

/* ---- schema_format.c ---- */

/* Empty when the format is not checked for the schema's type. */
td_str td_structural_format(const struct td_json *schema);
bool td_structural_format_holds(struct schema_work *work, td_str format, td_str text);

/* ---- schema_lists.c ---- */

bool td_structural_has_duplicates(struct schema_work *work, const struct td_json *list);
void td_structural_check_lists(const struct schema_at *at, const struct td_json *value,
                               struct schema_result *result);
