/* HorizontalPodAutoscaler: defaulting, conversion, admission. */
#include "golden/golden.h"

#include <string.h>

#include "api/hpa/hpa.h"
#include "base/limits.h"
#include "golden/hpa_support.h"
#include "kube/quantity/quantity.h"

static struct td_json *wrap_object(struct td_arena *arena, struct td_json *object)
{
    struct td_json *out = td_json_new_object(arena);
    td_json_set(arena, out, TD_STR("object"), object);
    return out;
}

static int run_defaults(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                        struct td_error *err)
{
    const struct td_json *object = td_json_get(in, TD_STR("object"));
    td_str operation = td_json_get_str(in, TD_STR("op"), TD_STR_EMPTY);
    struct td_json *made = td_json_copy(arena, object, false);
    int code;
    if (td_str_equal(operation, TD_STR("server"))) {
        td_str version = td_json_get_str(object, TD_STR("apiVersion"), TD_STR_EMPTY);
        code = td_hpa_convert(arena, object, version, &made, err);
    } else {
        code = td_hpa_default(arena, made, err);
    }
    if (code == TD_OK) {
        *ret = wrap_object(arena, made);
    }
    return code;
}

static int run_conversion(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                          struct td_error *err)
{
    td_str to = td_json_get_str(in, TD_STR("to"), TD_STR_EMPTY);
    td_str version = td_arena_format(arena, "autoscaling/%.*s", TD_STR_ARG(to));
    struct td_json *made;
    int code = td_hpa_convert(arena, td_json_get(in, TD_STR("object")), version, &made, err);
    if (code == TD_OK) {
        *ret = wrap_object(arena, made);
    }
    return code;
}

static int run_validation(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                          struct td_error *err)
{
    td_str operation = td_json_get_str(in, TD_STR("operation"), TD_STR_EMPTY);
    struct td_hpa_admission admission = {
        .operation = TD_HPA_CREATE,
        .object = td_json_get(in, TD_STR("object")),
        .old = td_json_get(in, TD_STR("oldObject")),
        .gates = {.scale_to_zero = td_json_get_bool(in, TD_STR("gateHPAScaleToZero"), false)},
    };
    if (td_str_equal(operation, TD_STR("update"))) {
        admission.operation = TD_HPA_UPDATE;
    } else if (td_str_equal(operation, TD_STR("statusUpdate"))) {
        admission.operation = TD_HPA_STATUS_UPDATE;
    }
    struct td_field_errors errors = {.arena = arena};
    int code = td_hpa_admit(arena, &admission, &errors, NULL, err);
    if (code < 0) {
        return code;
    }
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < errors.count; i++) {
        struct td_json *item = td_json_new_object(arena);
        td_json_set(arena, item, TD_STR("field"), td_json_new_string(arena, errors.items[i].field));
        td_json_set(arena, item, TD_STR("type"),
                    td_json_new_string(arena, td_field_error_type_name(errors.items[i].type)));
        td_json_append(list, item);
    }
    *ret = td_json_new_object(arena);
    td_json_set(arena, *ret, TD_STR("accepted"), td_json_new_bool(arena, errors.count == 0));
    td_json_set(arena, *ret, TD_STR("errors"), list);
    return TD_OK;
}

static bool has_error(const struct td_json *errors, const struct td_json *error)
{
    for (const struct td_json *item = td_json_first_child(errors); item; item = item->next) {
        if (td_json_equal(td_json_get(item, TD_STR("field")),
                          td_json_get(error, TD_STR("field"))) &&
            td_json_equal(td_json_get(item, TD_STR("type")), td_json_get(error, TD_STR("type")))) {
            return true;
        }
    }
    return false;
}

/* Errors are a set of fields and types; details are in words of our own. */
static bool is_same_verdict(const struct td_json *expected, const struct td_json *got)
{
    const struct td_json *theirs = td_json_get(expected, TD_STR("errors"));
    const struct td_json *ours = td_json_get(got, TD_STR("errors"));
    bool is_same = td_json_equal(td_json_get(expected, TD_STR("accepted")),
                                 td_json_get(got, TD_STR("accepted")));
    for (const struct td_json *item = td_json_first_child(theirs); item; item = item->next) {
        is_same = is_same && has_error(ours, item);
    }
    for (const struct td_json *item = td_json_first_child(ours); item; item = item->next) {
        is_same = is_same && has_error(theirs, item);
    }
    return is_same;
}

/* A whole object around the one field that a case is about. */
static struct td_json *selection_object(struct td_arena *arena, const struct td_json *value)
{
    static const char text[] =
        "{\"apiVersion\":\"autoscaling.tandem.dev/v2\",\"kind\":\"HorizontalPodAutoscaler\","
        "\"metadata\":{\"name\":\"hpa\",\"namespace\":\"ns\",\"resourceVersion\":\"7\"},"
        "\"spec\":{\"maxReplicas\":5,\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\","
        "\"kind\":\"Deployment\",\"name\":\"web\"}}}";
    struct td_json *object = NULL;
    if (td_json_parse(arena, td_str_from(text), NULL, &object, NULL) == TD_OK && value) {
        td_json_set(arena, td_json_get(object, TD_STR("spec")), TD_STR("selectionStrategy"),
                    td_json_copy(arena, value, false));
    }
    return object;
}

static int run_selection_field(struct td_arena *arena, const struct td_json *in,
                               struct td_json **ret, struct td_error *err)
{
    td_str operation = td_json_get_str(in, TD_STR("op"), TD_STR_EMPTY);
    const struct td_hpa_admission admission = {
        .operation = td_str_equal(operation, TD_STR("CREATE")) ? TD_HPA_CREATE : TD_HPA_UPDATE,
        .object = selection_object(arena, td_json_get(in, TD_STR("value"))),
        .old = selection_object(arena, td_json_get(in, TD_STR("stored"))),
        .gates = {.selection_strategy = td_json_get_bool(in, TD_STR("gate"), false)},
    };
    struct td_field_errors errors = {.arena = arena};
    struct td_json *stored = NULL;
    int code = td_hpa_admit(arena, &admission, &errors, &stored, err);
    if (code < 0) {
        return code;
    }
    bool is_valid = errors.count == 0;
    if (!is_valid && (errors.count != 1 || errors.items[0].type != TD_FIELD_UNSUPPORTED ||
                      !td_str_equal(errors.items[0].field, TD_STR("spec.selectionStrategy")))) {
        return td_error_set(err, TD_INVALID, "refused for another reason");
    }
    *ret = td_json_new_object(arena);
    td_json_set(arena, *ret, TD_STR("valid"), td_json_new_bool(arena, is_valid));
    if (is_valid) {
        const struct td_json *field = td_json_get_path(stored, "spec.selectionStrategy");
        td_json_set(arena, *ret, TD_STR("present"), td_json_new_bool(arena, field != NULL));
    }
    return TD_OK;
}

static int run_selection(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                         struct td_error *err)
{
    td_str kind = td_json_get_str(in, TD_STR("kind"), TD_STR_EMPTY);
    return td_str_equal(kind, TD_STR("field")) ? run_selection_field(arena, in, ret, err)
                                               : golden_hpa_effective_strategy(arena, in, ret, err);
}

/* --- comparing objects: absent equals null, quantities by value, round-trip annotations as JSON
 * --- */

static bool is_same_value(struct td_arena *arena, const struct td_json *a, const struct td_json *b);

static bool is_null(const struct td_json *node)
{
    return !node || node->type == TD_JSON_TYPE_NULL;
}

static bool has_all(struct td_arena *arena, const struct td_json *a, const struct td_json *b)
{
    for (const struct td_json *member = td_json_first_child(a); member; member = member->next) {
        if (!is_same_value(arena, member, td_json_get(b, member->key))) {
            return false;
        }
    }
    return true;
}

static bool is_same_quantity(struct td_arena *arena, const struct td_json *a,
                             const struct td_json *b)
{
    struct td_quantity first;
    struct td_quantity second;
    return td_quantity_from_json(arena, a, &first, NULL) == TD_OK &&
           td_quantity_from_json(arena, b, &second, NULL) == TD_OK &&
           td_quantity_compare(&first, &second) == 0;
}

static bool is_same_text(struct td_arena *arena, const struct td_json *a, const struct td_json *b)
{
    struct td_json *first;
    struct td_json *second;
    if (td_str_equal(a->text, b->text)) {
        return true;
    }
    if (td_str_starts_with(a->key, TD_STR("autoscaling.alpha.kubernetes.io/"))) {
        return td_json_parse(arena, a->text, NULL, &first, NULL) == TD_OK &&
               td_json_parse(arena, b->text, NULL, &second, NULL) == TD_OK &&
               is_same_value(arena, first, second);
    }
    bool is_quantity =
        td_str_ends_with(a->key, TD_STR("alue")) || td_str_ends_with(a->key, TD_STR("olerance"));
    return is_quantity && is_same_quantity(arena, a, b);
}

static bool is_same_value(struct td_arena *arena, const struct td_json *a, const struct td_json *b)
{
    if (is_null(a) || is_null(b)) {
        return is_null(a) && is_null(b);
    }
    if (a->type != b->type) {
        return false;
    }
    if (a->type == TD_JSON_TYPE_OBJECT) {
        return has_all(arena, a, b) && has_all(arena, b, a);
    }
    if (a->type == TD_JSON_TYPE_STRING) {
        return is_same_text(arena, a, b);
    }
    if (a->type != TD_JSON_TYPE_ARRAY) {
        return td_json_equal(a, b);
    }
    const struct td_json *other = td_json_first_child(b);
    for (const struct td_json *item = td_json_first_child(a); item && a->count == b->count;
         item = item->next) {
        if (!is_same_value(arena, item, other)) {
            return false;
        }
        other = other->next;
    }
    return a->count == b->count;
}

static bool is_same_object(const struct td_json *expected, const struct td_json *got)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    return is_same_value(&arena, expected, got);
}

const struct golden_topic golden_hpa_api[] = {
    {.name = "hpa/defaults", .run = run_defaults, .is_same = is_same_object},
    {.name = "hpa/conversion", .run = run_conversion, .is_same = is_same_object},
    {.name = "hpa/validation", .run = run_validation, .is_same = is_same_verdict},
    {.name = "seeds/hpa-selection-validation", .run = run_selection},
    {.name = NULL},
};
