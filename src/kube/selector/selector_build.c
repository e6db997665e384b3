/*
 * A requirement is checked when it is complete: its key, the number of its values by its operator,
 * then each value. All faults become one message, in the form of upstream's field errors.
 */
#include "kube/selector/selector_build.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/json/json.h"
#include "kube/names.h"
#include "kube/quote.h"

#define SELECTOR_RULES_BYTES_MAX 2048                /* the words of all rules one text can break */
#define SELECTOR_FAULTS_BYTES_MAX ((size_t)32 << 10) /* far more than a message keeps */

void td_selector_values_push(struct td_arena *arena, struct td_selector_values *values, td_str text)
{
    values->items =
        td_arena_grow(arena, values->items, values->count, &values->cap, sizeof(*values->items));
    values->items[values->count++] = text;
}

void td_selector_values_sort(struct td_selector_values *values)
{
    if (values->count > 1) {
        qsort(values->items, values->count, sizeof(*values->items), td_str_compare_items);
    }
}

void td_selector_values_unique(struct td_selector_values *values)
{
    size_t kept = 0;
    for (size_t i = 0; i < values->count; i++) {
        if (kept == 0 || !td_str_equal(values->items[kept - 1], values->items[i])) {
            values->items[kept++] = values->items[i];
        }
    }
    values->count = kept;
}

int td_selector_list_push(struct td_arena *arena, struct td_selector_list *list,
                          const struct td_requirement *requirement, struct td_error *err)
{
    list->items = td_arena_grow(arena, list->items, list->count, &list->cap, sizeof(*list->items));
    list->items[list->count++] = *requirement;
    return td_arena_check(arena, err);
}

/* Order by key, then by place; both point into one array. */
static int selector_compare(const void *a, const void *b)
{
    const struct td_requirement *left = *(const struct td_requirement *const *)a;
    const struct td_requirement *right = *(const struct td_requirement *const *)b;
    int order = td_str_compare(left->key, right->key);
    return order != 0 ? order : (left > right) - (left < right);
}

static bool selector_is_sorted(const struct td_selector_list *list)
{
    for (size_t i = 1; i < list->count; i++) {
        if (td_str_compare(list->items[i - 1].key, list->items[i].key) > 0) {
            return false;
        }
    }
    return true;
}

struct td_selector td_selector_list_finish(struct td_arena *arena,
                                           const struct td_selector_list *list)
{
    if (selector_is_sorted(list)) {
        return (struct td_selector){.requirements = list->items, .count = list->count};
    }
    const struct td_requirement **order =
        td_arena_array(arena, const struct td_requirement *, list->count);
    for (size_t i = 0; i < list->count; i++) {
        order[i] = &list->items[i];
    }
    qsort(order, list->count, sizeof(*order), selector_compare);
    struct td_requirement *sorted = td_arena_array(arena, struct td_requirement, list->count);
    for (size_t i = 0; i < list->count; i++) {
        sorted[i] = *order[i];
    }
    return (struct td_selector){.requirements = sorted, .count = list->count};
}

/* What is wrong, as upstream's field errors say it. No text is shown longer than a message is. */
struct selector_faults {
    struct td_buf text;
    size_t count;
};

static td_str faults_cut(td_str text)
{
    return td_str_cut_utf8(text, TD_ERROR_MESSAGE_BYTES);
}

static void faults_begin(struct selector_faults *faults)
{
    if (faults->count++ > 0) {
        (void)td_buf_append(&faults->text, TD_STR(", "));
    }
}

/* The rules that `text` breaks, joined. */
static void faults_add_rules(struct selector_faults *faults, td_str text,
                             size_t (*check)(td_str, struct td_buf *))
{
    td_auto_buf lines = td_buf_capped(SELECTOR_RULES_BYTES_MAX);
    (void)check(text, &lines); /* the lines say how many */
    td_str rest = td_buf_str(&lines);
    (void)td_buf_append(&faults->text, TD_STR(": Invalid value: "));
    td_quote_write(faults_cut(text), &faults->text);
    for (const char *sign = ": "; rest.len > 0; sign = "; ") {
        size_t end = td_str_find(rest, '\n', 0);
        (void)td_buf_append_format(&faults->text, "%s%.*s", sign,
                                   TD_STR_ARG(td_str_slice(rest, 0, end)));
        rest = td_str_slice(rest, end + 1, rest.len);
    }
}

/* The values are shown as JSON. */
static void faults_add_count(struct selector_faults *faults,
                             const struct td_requirement *requirement, const char *rule)
{
    struct td_buf *text = &faults->text;
    faults_begin(faults);
    (void)td_buf_append(text, TD_STR("values: Invalid value: "));
    for (size_t i = 0; i < requirement->value_count && text->len < TD_ERROR_MESSAGE_BYTES; i++) {
        (void)td_buf_append_char(text, i == 0 ? '[' : ',');
        td_json_write_string(faults_cut(requirement->values[i]), true, text);
    }
    (void)td_buf_append_format(text, "%s: %s", requirement->value_count > 0 ? "]" : "null", rule);
}

static bool selector_is_comparison(enum td_selector_operator operation)
{
    return operation == TD_SELECTOR_GREATER || operation == TD_SELECTOR_LESS;
}

/* The rule on the number of values that is broken, or NULL. One value is all that the text form
 * gives to the other operators. */
static const char *selector_count_rule(const struct td_requirement *requirement)
{
    switch (requirement->operation) {
    case TD_SELECTOR_IN:
    case TD_SELECTOR_NOT_IN:
        return requirement->value_count > 0
                   ? NULL
                   : "for 'in', 'notin' operators, values set can't be empty";
    case TD_SELECTOR_EXISTS:
    case TD_SELECTOR_NOT_EXISTS:
        return requirement->value_count == 0
                   ? NULL
                   : "values set must be empty for exists and does not exist";
    default:
        td_assert(requirement->value_count == 1);
        return NULL;
    }
}

static bool selector_is_integer(td_str value)
{
    int64_t number = 0;
    return td_str_to_int64(value, &number);
}

static bool selector_is_valid(const struct td_requirement *requirement)
{
    if (td_name_check_qualified(requirement->key, NULL) > 0 || selector_count_rule(requirement)) {
        return false;
    }
    for (size_t i = 0; i < requirement->value_count; i++) {
        td_str value = requirement->values[i];
        if (td_name_check_label_value(value, NULL) > 0 ||
            (selector_is_comparison(requirement->operation) && !selector_is_integer(value))) {
            return false;
        }
    }
    return true;
}

/* Stops where the message is cut anyway. */
static void faults_add_values(struct selector_faults *faults,
                              const struct td_requirement *requirement)
{
    if (selector_is_comparison(requirement->operation) &&
        !selector_is_integer(requirement->values[0])) {
        faults_begin(faults);
        (void)td_buf_append(&faults->text, TD_STR("values[0]: Invalid value: "));
        td_quote_write(faults_cut(requirement->values[0]), &faults->text);
        (void)td_buf_append(&faults->text,
                            TD_STR(": for 'Gt', 'Lt' operators, the value must be an integer"));
    }
    for (size_t i = 0; i < requirement->value_count && faults->text.len < TD_ERROR_MESSAGE_BYTES;
         i++) {
        if (td_name_check_label_value(requirement->values[i], NULL) > 0) {
            faults_begin(faults);
            (void)td_buf_append_format(&faults->text, "values[%zu][%.*s]", i,
                                       TD_STR_ARG(faults_cut(requirement->key)));
            faults_add_rules(faults, requirement->values[i], td_name_check_label_value);
        }
    }
}

static int faults_end(const struct selector_faults *faults, struct td_error *err)
{
    td_str text = td_buf_str(&faults->text);
    return faults->count == 1 ? td_error_set(err, TD_INVALID, "%.*s", TD_STR_ARG(text))
                              : td_error_set(err, TD_INVALID, "[%.*s]", TD_STR_ARG(text));
}

int td_selector_check(const struct td_requirement *requirement, struct td_error *err)
{
    if (selector_is_valid(requirement)) {
        return TD_OK;
    }
    struct selector_faults faults = {.count = 0};
    td_buf_init(&faults.text, SELECTOR_FAULTS_BYTES_MAX);
    if (td_name_check_qualified(requirement->key, NULL) > 0) {
        faults_begin(&faults);
        (void)td_buf_append(&faults.text, TD_STR("key"));
        faults_add_rules(&faults, requirement->key, td_name_check_qualified);
    }
    const char *rule = selector_count_rule(requirement);
    if (rule) {
        faults_add_count(&faults, requirement, rule);
    }
    faults_add_values(&faults, requirement);
    int code = faults_end(&faults, err);
    td_buf_done(&faults.text);
    return code;
}

/* Upstream has no path here and prints that. */
int td_selector_check_key(td_str key, struct td_error *err)
{
    if (td_name_check_qualified(key, NULL) == 0) {
        return TD_OK;
    }
    struct selector_faults faults = {.count = 0};
    td_buf_init(&faults.text, SELECTOR_FAULTS_BYTES_MAX);
    faults_begin(&faults);
    (void)td_buf_append(&faults.text, TD_STR("<nil>"));
    faults_add_rules(&faults, key, td_name_check_qualified);
    int code = faults_end(&faults, err);
    td_buf_done(&faults.text);
    return code;
}
