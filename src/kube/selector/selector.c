/*
 * Matching, copying and writing of finished selectors; reading is selector_parse.c (texts) and
 * selector_json.c (trees).
 */
#include "kube/selector/selector.h"

#include <stdint.h>
#include <stdlib.h>

#define SELECTOR_LINEAR_VALUES 8 /* up to so many values are compared one by one */

static bool requirement_has_value(const struct td_requirement *requirement, td_str value)
{
    const td_str *values = requirement->values;
    if (requirement->value_count > SELECTOR_LINEAR_VALUES) {
        return bsearch(&value, values, requirement->value_count, sizeof(*values),
                       td_str_compare_items) != NULL;
    }
    for (size_t i = 0; i < requirement->value_count; i++) {
        if (td_str_equal(values[i], value)) {
            return true;
        }
    }
    return false;
}

/* A label whose value is no integer satisfies neither comparison. */
static bool requirement_compares(const struct td_requirement *requirement, td_str value)
{
    int64_t left = 0;
    int64_t right = 0;
    if (requirement->value_count != 1 || !td_str_to_int64(value, &left) ||
        !td_str_to_int64(requirement->values[0], &right)) {
        return false;
    }
    return requirement->operation == TD_SELECTOR_GREATER ? left > right : left < right;
}

/* `value` is NULL when the set has no such label. */
static bool requirement_matches(const struct td_requirement *requirement, const td_str *value)
{
    switch (requirement->operation) {
    case TD_SELECTOR_EQUALS:
    case TD_SELECTOR_DOUBLE_EQUALS:
    case TD_SELECTOR_IN:
        return value && requirement_has_value(requirement, *value);
    case TD_SELECTOR_NOT_EQUALS:
    case TD_SELECTOR_NOT_IN:
        return !value || !requirement_has_value(requirement, *value);
    case TD_SELECTOR_EXISTS:
        return value != NULL;
    case TD_SELECTOR_NOT_EXISTS:
        return value == NULL;
    case TD_SELECTOR_GREATER:
    case TD_SELECTOR_LESS:
        return value && requirement_compares(requirement, *value);
    }
    return false;
}

struct td_selector td_selector_copy(struct td_arena *arena, const struct td_selector *selector)
{
    struct td_requirement *requirements =
        td_arena_array(arena, struct td_requirement, selector->count);
    for (size_t i = 0; i < selector->count; i++) {
        const struct td_requirement *from = &selector->requirements[i];
        td_str *values = td_arena_array(arena, td_str, from->value_count);
        for (size_t v = 0; v < from->value_count; v++) {
            values[v] = td_arena_copy_str(arena, from->values[v]);
        }
        requirements[i] = (struct td_requirement){
            .key = td_arena_copy_str(arena, from->key),
            .operation = from->operation,
            .values = values,
            .value_count = from->value_count,
        };
    }
    return (struct td_selector){
        .requirements = requirements,
        .count = selector->count,
        .matches_nothing = selector->matches_nothing,
    };
}

bool td_selector_matches(const struct td_selector *selector, const struct td_labels *labels)
{
    if (selector->matches_nothing) {
        return false;
    }
    for (size_t i = 0; i < selector->count; i++) {
        const struct td_requirement *requirement = &selector->requirements[i];
        if (!requirement_matches(requirement, td_labels_get(labels, requirement->key))) {
            return false;
        }
    }
    return true;
}

bool td_selector_is_empty(const struct td_selector *selector)
{
    return !selector->matches_nothing && selector->count == 0;
}

static td_str requirement_sign(enum td_selector_operator operation)
{
    switch (operation) {
    case TD_SELECTOR_IN:
        return TD_STR(" in (");
    case TD_SELECTOR_NOT_IN:
        return TD_STR(" notin (");
    case TD_SELECTOR_GREATER:
        return TD_STR(">");
    case TD_SELECTOR_LESS:
        return TD_STR("<");
    case TD_SELECTOR_EXISTS:
    case TD_SELECTOR_NOT_EXISTS:
        return TD_STR_EMPTY;
    case TD_SELECTOR_EQUALS:
    case TD_SELECTOR_DOUBLE_EQUALS:
    case TD_SELECTOR_NOT_EQUALS:
        break;
    }
    return td_selector_operator_name(operation);
}

/* Appends are not checked one by one: a full buffer is sticky and its owner asks at the end. */
static void requirement_write(const struct td_requirement *requirement, struct td_buf *out)
{
    if (requirement->operation == TD_SELECTOR_NOT_EXISTS) {
        (void)td_buf_append_char(out, '!');
    }
    (void)td_buf_append(out, requirement->key);
    (void)td_buf_append(out, requirement_sign(requirement->operation));
    for (size_t i = 0; i < requirement->value_count; i++) {
        if (i > 0) {
            (void)td_buf_append_char(out, ',');
        }
        (void)td_buf_append(out, requirement->values[i]);
    }
    if (requirement->operation == TD_SELECTOR_IN || requirement->operation == TD_SELECTOR_NOT_IN) {
        (void)td_buf_append_char(out, ')');
    }
}

void td_selector_write(const struct td_selector *selector, struct td_buf *out)
{
    for (size_t i = 0; i < selector->count; i++) {
        if (i > 0) {
            (void)td_buf_append_char(out, ',');
        }
        requirement_write(&selector->requirements[i], out);
    }
}

void td_selector_write_format(const struct td_selector *selector, struct td_buf *out)
{
    if (selector->count == 0) {
        (void)td_buf_append(out, TD_STR("<none>"));
        return;
    }
    td_selector_write(selector, out);
}

td_str td_selector_operator_name(enum td_selector_operator operation)
{
    switch (operation) {
    case TD_SELECTOR_EQUALS:
        return TD_STR("=");
    case TD_SELECTOR_DOUBLE_EQUALS:
        return TD_STR("==");
    case TD_SELECTOR_NOT_EQUALS:
        return TD_STR("!=");
    case TD_SELECTOR_IN:
        return TD_STR("in");
    case TD_SELECTOR_NOT_IN:
        return TD_STR("notin");
    case TD_SELECTOR_EXISTS:
        return TD_STR("exists");
    case TD_SELECTOR_NOT_EXISTS:
        return TD_STR("!");
    case TD_SELECTOR_GREATER:
        return TD_STR("gt");
    case TD_SELECTOR_LESS:
        return TD_STR("lt");
    }
    return TD_STR_EMPTY;
}
