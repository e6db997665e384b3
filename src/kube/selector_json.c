/*
 * The object form, metav1.LabelSelector. Values that Go would decode to nothing (null, a missing
 * member) count as empty; other wrong types are refused with their path. A LabelSelector may repeat
 * a value and upstream's canonical text shows it twice, so values are sorted but not made unique.
 */
#include "kube/selector.h"

#include "base/error.h"
#include "kube/selector_build.h"

/* One element of matchExpressions while it is read. */
struct json_expression {
    struct td_arena *arena;
    size_t index; /* in matchExpressions */
    struct td_requirement *requirement;
    struct td_error *err;
};

/* A string; null and missing are empty. */
static int json_text(const struct td_json *node, td_str *ret, struct td_error *err)
{
    if (!node || node->type == TD_JSON_TYPE_NULL) {
        *ret = TD_STR_EMPTY;
        return TD_OK;
    }
    if (node->type != TD_JSON_TYPE_STRING) {
        return td_error_set(err, TD_INVALID, "must be a string");
    }
    *ret = node->text;
    return TD_OK;
}

/* `node` when it is of `type`, NULL when it is missing or null; false when it is something else. */
static bool json_collection(const struct td_json *node, enum td_json_type type,
                            const struct td_json **ret)
{
    if (node && node->type != TD_JSON_TYPE_NULL && node->type != type) {
        return false;
    }
    *ret = td_json_is(node, type) ? node : NULL;
    return true;
}

static int json_match_label(struct td_arena *arena, const struct td_json *member,
                            struct td_requirement *ret, struct td_error *err)
{
    int code = td_selector_check_key(member->key, err);
    if (code != TD_OK) {
        return err ? td_error_wrap(err, "matchLabels") : code;
    }
    td_str *value = td_arena_new(arena, td_str);
    code = json_text(member, value, err);
    if (code == TD_OK) {
        code = td_selector_check_value(*value, err);
    }
    if (code != TD_OK) {
        return err ? td_error_wrap(err, "matchLabels[%.*s]", TD_STR_ARG(member->key)) : code;
    }
    *ret = (struct td_requirement){
        .key = member->key, .operation = TD_SELECTOR_EQUALS, .values = value, .value_count = 1};
    return TD_OK;
}

static int expression_wrap(const struct json_expression *expression, int code, const char *member)
{
    return expression->err ? td_error_wrap(expression->err, "matchExpressions[%zu]%s",
                                           expression->index, member)
                           : code;
}

static int expression_operator(const struct json_expression *expression, const struct td_json *node)
{
    static const struct {
        td_str text;
        enum td_selector_operator operation;
    } rows[] = {
        {TD_STR_INIT("In"), TD_SELECTOR_IN},
        {TD_STR_INIT("NotIn"), TD_SELECTOR_NOT_IN},
        {TD_STR_INIT("Exists"), TD_SELECTOR_EXISTS},
        {TD_STR_INIT("DoesNotExist"), TD_SELECTOR_NOT_EXISTS},
    };
    td_str text = TD_STR_EMPTY;
    int code = json_text(node, &text, expression->err);
    if (code != TD_OK) {
        return expression_wrap(expression, code, ".operator");
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (td_str_equal(rows[i].text, text)) {
            expression->requirement->operation = rows[i].operation;
            return TD_OK;
        }
    }
    code = td_error_set(expression->err, TD_INVALID,
                        "'%.*s' is not In, NotIn, Exists or DoesNotExist", TD_STR_ARG(text));
    return expression_wrap(expression, code, ".operator");
}

static int expression_key(const struct json_expression *expression, const struct td_json *node)
{
    td_str key = TD_STR_EMPTY;
    int code = json_text(node, &key, expression->err);
    if (code == TD_OK) {
        code = td_selector_check_key(key, expression->err);
    }
    if (code != TD_OK) {
        return expression_wrap(expression, code, ".key");
    }
    expression->requirement->key = key;
    return TD_OK;
}

static int expression_check_count(const struct json_expression *expression, size_t count)
{
    enum td_selector_operator operation = expression->requirement->operation;
    bool needs_values = operation == TD_SELECTOR_IN || operation == TD_SELECTOR_NOT_IN;
    if (needs_values == (count > 0)) {
        return TD_OK;
    }
    int code = td_error_set(expression->err, TD_INVALID, "%s",
                            needs_values ? "In and NotIn need at least one value"
                                         : "Exists and DoesNotExist take no values");
    return expression_wrap(expression, code, ".values");
}

static int expression_values(const struct json_expression *expression, const struct td_json *list)
{
    int code = expression_check_count(expression, list ? list->count : 0);
    if (code != TD_OK || !list) {
        return code;
    }
    struct td_selector_values values = {
        .items = td_arena_array(expression->arena, td_str, list->count), .cap = list->count};
    for (const struct td_json *node = list->first; node; node = node->next) {
        code = json_text(node, &values.items[values.count], expression->err);
        if (code == TD_OK) {
            code = td_selector_check_value(values.items[values.count], expression->err);
        }
        if (code != TD_OK && expression->err) {
            (void)td_error_wrap(expression->err, "matchExpressions[%zu].values[%zu]",
                                expression->index, values.count);
        }
        if (code != TD_OK) {
            return code;
        }
        values.count++;
    }
    td_selector_values_sort(&values);
    expression->requirement->values = values.items;
    expression->requirement->value_count = values.count;
    return TD_OK;
}

static int json_match_expression(const struct json_expression *expression,
                                 const struct td_json *node)
{
    const struct td_json *object = NULL;
    const struct td_json *values = NULL;
    if (!json_collection(node, TD_JSON_TYPE_OBJECT, &object)) {
        int code = td_error_set(expression->err, TD_INVALID, "must be an object");
        return expression_wrap(expression, code, "");
    }
    if (!json_collection(td_json_get(object, TD_STR("values")), TD_JSON_TYPE_ARRAY, &values)) {
        int code = td_error_set(expression->err, TD_INVALID, "must be an array of strings");
        return expression_wrap(expression, code, ".values");
    }
    int code = expression_operator(expression, td_json_get(object, TD_STR("operator")));
    if (code != TD_OK) {
        return code;
    }
    code = expression_key(expression, td_json_get(object, TD_STR("key")));
    if (code != TD_OK) {
        return code;
    }
    return expression_values(expression, values);
}

static int json_match_labels(struct td_arena *arena, const struct td_json *labels,
                             struct td_selector_list *list, struct td_error *err)
{
    for (const struct td_json *node = labels ? labels->first : NULL; node; node = node->next) {
        struct td_requirement requirement = {.values = NULL, .value_count = 0};
        int code = json_match_label(arena, node, &requirement, err);
        if (code != TD_OK) {
            return code;
        }
        code = td_selector_list_push(arena, list, &requirement, err);
        if (code != TD_OK) {
            return code;
        }
    }
    return TD_OK;
}

static int json_match_expressions(struct td_arena *arena, const struct td_json *expressions,
                                  struct td_selector_list *list, struct td_error *err)
{
    size_t index = 0;
    for (const struct td_json *node = expressions ? expressions->first : NULL; node;
         node = node->next) {
        struct td_requirement requirement = {.values = NULL, .value_count = 0};
        struct json_expression expression = {
            .arena = arena, .index = index, .requirement = &requirement, .err = err};
        int code = json_match_expression(&expression, node);
        if (code != TD_OK) {
            return code;
        }
        code = td_selector_list_push(arena, list, &requirement, err);
        if (code != TD_OK) {
            return code;
        }
        index++;
    }
    return TD_OK;
}

int td_selector_from_json(struct td_arena *arena, const struct td_json *selector,
                          struct td_selector *ret, struct td_error *err)
{
    const struct td_json *object = NULL;
    const struct td_json *labels = NULL;
    const struct td_json *expressions = NULL;
    if (!json_collection(selector, TD_JSON_TYPE_OBJECT, &object)) {
        return td_error_set(err, TD_INVALID, "label selector: must be an object");
    }
    if (!object) {
        *ret = (struct td_selector){.requirements = NULL, .count = 0, .matches_nothing = true};
        return TD_OK;
    }
    if (!json_collection(td_json_get(object, TD_STR("matchLabels")), TD_JSON_TYPE_OBJECT,
                         &labels)) {
        return td_error_set(err, TD_INVALID, "matchLabels: must be an object of strings");
    }
    if (!json_collection(td_json_get(object, TD_STR("matchExpressions")), TD_JSON_TYPE_ARRAY,
                         &expressions)) {
        return td_error_set(err, TD_INVALID, "matchExpressions: must be an array of objects");
    }
    struct td_selector_list list = {.items = NULL, .count = 0, .cap = 0};
    int code = json_match_labels(arena, labels, &list, err);
    if (code == TD_OK) {
        code = json_match_expressions(arena, expressions, &list, err);
    }
    if (code != TD_OK) {
        return code;
    }
    *ret = td_selector_list_finish(arena, &list);
    return TD_OK;
}
