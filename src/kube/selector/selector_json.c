/*
 * The object form, metav1.LabelSelector. Values that Go would decode to nothing (null, a missing
 * member) count as empty; other wrong types are refused with their path, in words of ours. What
 * upstream refuses in a selector of the right types is said in its words, which do not say where:
 * td_selector_check_json adds that. A LabelSelector may repeat
 * a value and upstream's canonical text shows it twice, so values are sorted but not made unique.
 */
#include "kube/selector/selector.h"

#include "base/error.h"
#include "kube/quote.h"
#include "kube/selector/selector_build.h"

#define JSON_QUOTED_BYTES_MAX (4 * TD_ERROR_MESSAGE_BYTES + 2) /* every byte escaped */

/* One requirement while it is read, and where it stands. */
struct json_place {
    struct td_arena *arena;
    bool is_label; /* of matchLabels */
    bool is_shown; /* messages begin with the place even where upstream's do not */
    size_t index;  /* in matchExpressions */
    struct td_error *err;
};

/* A string; null and missing are empty. False when it is something else. */
static bool json_text(const struct td_json *node, td_str *ret)
{
    if (node && node->type != TD_JSON_TYPE_NULL && node->type != TD_JSON_TYPE_STRING) {
        return false;
    }
    *ret = td_json_is(node, TD_JSON_TYPE_STRING) ? node->text : TD_STR_EMPTY;
    return true;
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

/* Puts the place in front of a message. */
static int place_wrap(const struct json_place *place, int code, const char *member)
{
    return place->is_label
               ? td_error_wrap(place->err, code, "matchLabels%s", member)
               : td_error_wrap(place->err, code, "matchExpressions[%zu]%s", place->index, member);
}

/* A value of the wrong type: upstream's decoder has refused it before, so the words are ours. */
static int place_refuse(const struct json_place *place, const char *member, const char *rule)
{
    int code = td_error_set(place->err, TD_INVALID, "%s", rule);
    return place_wrap(place, code, member);
}

static int place_check(const struct json_place *place, const struct td_requirement *requirement)
{
    int code = td_selector_check(requirement, place->err);
    return code != TD_OK && place->is_shown ? place_wrap(place, code, "") : code;
}

static int json_match_label(const struct json_place *place, const struct td_json *member,
                            struct td_requirement *ret)
{
    td_str *value = td_arena_new(place->arena, td_str);
    if (!json_text(member, value)) {
        int code = td_error_set(place->err, TD_INVALID, "must be a string");
        return td_error_wrap(place->err, code, "matchLabels[%.*s]", TD_STR_ARG(member->key));
    }
    *ret = (struct td_requirement){
        .key = member->key, .operation = TD_SELECTOR_EQUALS, .values = value, .value_count = 1};
    return place_check(place, ret);
}

static int json_operator(const struct json_place *place, const struct td_json *node,
                         enum td_selector_operator *ret)
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
    if (!json_text(node, &text)) {
        return place_refuse(place, ".operator", "must be a string");
    }
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (td_str_equal(rows[i].text, text)) {
            *ret = rows[i].operation;
            return TD_OK;
        }
    }
    td_auto_buf quoted = td_buf_capped(JSON_QUOTED_BYTES_MAX);
    td_quote_write(td_str_cut_utf8(text, TD_ERROR_MESSAGE_BYTES), &quoted);
    int code = td_error_set(place->err, TD_INVALID, "%.*s is not a valid label selector operator",
                            TD_STR_ARG(td_buf_str(&quoted)));
    return place->is_shown ? place_wrap(place, code, "") : code;
}

static int json_values(const struct json_place *place, const struct td_json *list,
                       struct td_selector_values *ret)
{
    *ret = (struct td_selector_values){.items = td_arena_array(place->arena, td_str, list->count),
                                       .cap = list->count};
    for (const struct td_json *node = td_json_first_item(list); node; node = node->next) {
        if (!json_text(node, &ret->items[ret->count])) {
            int code = td_error_set(place->err, TD_INVALID, "must be a string");
            return td_error_wrap(place->err, code, "matchExpressions[%zu].values[%zu]",
                                 place->index, ret->count);
        }
        ret->count++;
    }
    return TD_OK;
}

/* Values are sorted after they were checked: a message counts them as they were written. */
static int json_match_expression(const struct json_place *place, const struct td_json *node,
                                 struct td_requirement *ret)
{
    const struct td_json *object = NULL;
    const struct td_json *list = NULL;
    struct td_selector_values values = {.items = NULL, .count = 0, .cap = 0};
    *ret = (struct td_requirement){.values = NULL};
    if (!json_collection(node, TD_JSON_TYPE_OBJECT, &object)) {
        return place_refuse(place, "", "must be an object");
    }
    if (!json_collection(td_json_get(object, TD_STR("values")), TD_JSON_TYPE_ARRAY, &list)) {
        return place_refuse(place, ".values", "must be an array of strings");
    }
    if (!json_text(td_json_get(object, TD_STR("key")), &ret->key)) {
        return place_refuse(place, ".key", "must be a string");
    }
    int code = list ? json_values(place, list, &values) : TD_OK;
    if (code == TD_OK) {
        code = json_operator(place, td_json_get(object, TD_STR("operator")), &ret->operation);
    }
    if (code != TD_OK) {
        return code;
    }
    ret->values = values.items;
    ret->value_count = values.count;
    code = place_check(place, ret);
    td_selector_values_sort(&values);
    return code;
}

/* All of one collection; its place says which. */
static int json_requirements(struct json_place *place, const struct td_json *collection,
                             struct td_selector_list *list)
{
    const struct td_json *node = td_json_first_child(collection);
    for (; node; node = node->next) {
        struct td_requirement requirement = {.values = NULL, .value_count = 0};
        int code = place->is_label ? json_match_label(place, node, &requirement)
                                   : json_match_expression(place, node, &requirement);
        if (code == TD_OK) {
            code = td_selector_list_push(place->arena, list, &requirement, place->err);
        }
        if (code != TD_OK) {
            return code;
        }
        place->index++;
    }
    return TD_OK;
}

/* With `is_shown` every message begins with its place. */
static int json_read(struct td_arena *arena, const struct td_json *selector, bool is_shown,
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
    struct json_place label = {.arena = arena, .is_label = true, .is_shown = is_shown, .err = err};
    struct json_place expression = {.arena = arena, .is_shown = is_shown, .err = err};
    int code = json_requirements(&label, labels, &list);
    if (code == TD_OK) {
        code = json_requirements(&expression, expressions, &list);
    }
    if (code != TD_OK) {
        return code;
    }
    *ret = td_selector_list_finish(arena, &list);
    return TD_OK;
}

int td_selector_from_json(struct td_arena *arena, const struct td_json *selector,
                          struct td_selector *ret, struct td_error *err)
{
    return json_read(arena, selector, false, ret, err);
}

int td_selector_check_json(struct td_arena *arena, const struct td_json *selector,
                           struct td_error *err)
{
    struct td_selector ignored;
    return json_read(arena, selector, true, &ignored, err);
}
