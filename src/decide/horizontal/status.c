/*
 * Status and conditions between JSON and structs, and the comparison that saves a write: two
 * statuses are the same when upstream would read the same struct from them, by the types of the
 * schema.
 */
#include "decide/horizontal/status.h"

#include "api/hpa/hpa.h"
#include "kube/quantity/quantity.h"

/* A status nests no deeper: a metric's selector with its expressions and their values. */
#define STATUS_DEPTH_MAX 16

static struct td_instant read_time(const struct td_json *object, td_str key)
{
    struct td_instant instant = TD_INSTANT_ZERO;
    td_str text = td_json_get_str(object, key, TD_STR_EMPTY);
    (void)td_time_parse(text, &instant, NULL); /* a text that is no time reads as none */
    return instant;
}

void td_hpa_conditions_read(struct td_arena *arena, const struct td_json *list,
                            struct td_hpa_conditions *ret)
{
    bool is_list = td_json_is(list, TD_JSON_TYPE_ARRAY);
    *ret = (struct td_hpa_conditions){.arena = arena, .is_list = is_list};
    ret->cap = (td_json_item_count(list)) + 4;
    ret->items = td_arena_array(arena, struct td_hpa_condition, ret->cap);
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        if (!td_json_is(item, TD_JSON_TYPE_OBJECT)) {
            continue;
        }
        ret->items[ret->count++] = (struct td_hpa_condition){
            .type = td_json_text(item, "type"),
            .status = td_json_text(item, "status"),
            .reason = td_json_text(item, "reason"),
            .message = td_json_text(item, "message"),
            .since = read_time(item, TD_STR("lastTransitionTime")),
        };
    }
}

static struct td_hpa_condition *find_condition(const struct td_hpa_conditions *conditions,
                                               td_str type)
{
    for (size_t i = 0; i < conditions->count; i++) {
        if (td_str_equal(conditions->items[i].type, type)) {
            return &conditions->items[i];
        }
    }
    return NULL;
}

static struct td_hpa_condition *append_condition(struct td_hpa_conditions *conditions, td_str type)
{
    conditions->items = td_arena_grow(conditions->arena, conditions->items, conditions->count,
                                      &conditions->cap, sizeof(*conditions->items));
    struct td_hpa_condition *condition = &conditions->items[conditions->count++];
    *condition =
        (struct td_hpa_condition){.type = type, .status = TD_STR_EMPTY, .since = TD_INSTANT_ZERO};
    conditions->is_list = true;
    return condition;
}

void td_hpa_condition_set(struct td_hpa_conditions *conditions, td_time now, td_str type,
                          bool status, td_str reason, td_str message)
{
    struct td_hpa_condition *condition = find_condition(conditions, type);
    if (!condition) {
        condition = append_condition(conditions, type);
    }
    td_str text = status ? TD_STR("True") : TD_STR("False");
    if (!td_str_equal(condition->status, text)) {
        condition->since = td_time_to_instant(now);
    }
    condition->status = text;
    condition->reason = reason;
    condition->message = message;
}

void td_hpa_condition_remove(struct td_hpa_conditions *conditions, td_str type)
{
    size_t kept = 0;
    for (size_t i = 0; i < conditions->count; i++) {
        if (!td_str_equal(conditions->items[i].type, type)) {
            conditions->items[kept++] = conditions->items[i];
        }
    }
    conditions->count = kept;
}

bool td_hpa_condition_is_true(const struct td_hpa_conditions *conditions, td_str type)
{
    const struct td_hpa_condition *condition = find_condition(conditions, type);
    return condition && td_str_equal(condition->status, TD_STR("True"));
}

void td_hpa_conditions_normalized(struct td_hpa_conditions *conditions,
                                  const struct td_hpa_normalized *normalized, td_time now)
{
    const struct td_hpa_stabilized *stabilized = &normalized->stabilized;
    const struct td_hpa_limited *limited = &normalized->limited;
    if (stabilized->is_held) {
        td_hpa_condition_set(conditions, now, TD_HPA_ABLE_TO_SCALE, true, stabilized->reason,
                             stabilized->message);
    } else {
        td_hpa_condition_set(conditions, now, TD_HPA_ABLE_TO_SCALE, true,
                             TD_STR("ReadyForNewScale"),
                             TD_STR("recommended size matches current size"));
    }
    td_hpa_condition_set(conditions, now, TD_HPA_SCALING_LIMITED, limited->is_limited,
                         limited->reason, limited->message);
}

static bool is_zero_time(struct td_instant instant)
{
    return instant.unix_seconds == TD_INSTANT_ZERO.unix_seconds && instant.nanos == 0;
}

static struct td_json *time_json(struct td_arena *arena, struct td_instant instant)
{
    if (is_zero_time(instant)) {
        return td_json_new_null(arena);
    }
    return td_json_new_string(arena, td_time_text(arena, instant, 0));
}

struct td_json *td_hpa_conditions_json(struct td_arena *arena,
                                       const struct td_hpa_conditions *conditions)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < conditions->count; i++) {
        const struct td_hpa_condition *condition = &conditions->items[i];
        struct td_json *item = td_json_new_object(arena);
        td_json_set_str(arena, item, TD_STR("type"), condition->type);
        td_json_set_str(arena, item, TD_STR("status"), condition->status);
        td_json_set(arena, item, TD_STR("lastTransitionTime"), time_json(arena, condition->since));
        td_json_set_text(arena, item, TD_STR("reason"), condition->reason);
        td_json_set_text(arena, item, TD_STR("message"), condition->message);
        td_json_append(list, item);
    }
    return list;
}

static int32_t read_count(const struct td_json *status, td_str key)
{
    int64_t count = td_json_get_int64(status, key, 0);
    return count > INT32_MAX || count < INT32_MIN ? 0 : (int32_t)count;
}

void td_hpa_status_read(struct td_arena *arena, const struct td_json *status,
                        struct td_hpa_status *ret)
{
    const struct td_json *metrics = td_json_get(status, TD_STR("currentMetrics"));
    *ret = (struct td_hpa_status){
        .observed_generation = td_json_get_int64(status, TD_STR("observedGeneration"), 0),
        .last_scale_time = read_time(status, TD_STR("lastScaleTime")),
        .current_replicas = read_count(status, TD_STR("currentReplicas")),
        .desired_replicas = read_count(status, TD_STR("desiredReplicas")),
        .current_metrics = td_json_is(metrics, TD_JSON_TYPE_ARRAY) ? metrics : NULL,
    };
    ret->has_last_scale_time = !is_zero_time(ret->last_scale_time);
    td_hpa_conditions_read(arena, td_json_get(status, TD_STR("conditions")), &ret->conditions);
}

struct td_json *td_hpa_status_json(struct td_arena *arena, const struct td_hpa_status *status)
{
    struct td_json *object = td_json_new_object(arena);
    if (status->observed_generation != 0) {
        td_json_set_int64(arena, object, TD_STR("observedGeneration"), status->observed_generation);
    }
    if (status->has_last_scale_time) {
        td_json_set(arena, object, TD_STR("lastScaleTime"),
                    time_json(arena, status->last_scale_time));
    }
    if (status->current_replicas != 0) {
        td_json_set_int64(arena, object, TD_STR("currentReplicas"), status->current_replicas);
    }
    td_json_set_int64(arena, object, TD_STR("desiredReplicas"), status->desired_replicas);
    td_json_set(arena, object, TD_STR("currentMetrics"),
                status->current_metrics ? td_json_copy(arena, status->current_metrics, false)
                                        : td_json_new_null(arena));
    if (status->conditions.count > 0) {
        td_json_set(arena, object, TD_STR("conditions"),
                    td_hpa_conditions_json(arena, &status->conditions));
    }
    return object;
}

static bool is_zero(const struct td_json *node)
{
    int64_t number;
    if (!node || td_json_is(node, TD_JSON_TYPE_NULL)) {
        return true;
    }
    switch ((enum td_json_type)node->type) {
    case TD_JSON_TYPE_NUMBER:
        return td_json_to_int64(node, &number) && number == 0;
    case TD_JSON_TYPE_STRING:
        return node->text.len == 0;
    case TD_JSON_TYPE_BOOL:
        return !node->boolean;
    default:
        return node->count == 0;
    }
}

static bool is_same_quantity(td_str a, td_str b)
{
    td_auto_arena arena = td_arena_capped(1 << 20);
    struct td_quantity left;
    struct td_quantity right;
    if (td_quantity_parse(&arena, a, &left, NULL) < 0 ||
        td_quantity_parse(&arena, b, &right, NULL) < 0) {
        return td_str_equal(a, b);
    }
    return td_quantity_compare(&left, &right) == 0;
}

static bool is_same_time(td_str a, td_str b)
{
    struct td_instant left;
    struct td_instant right;
    if (td_time_parse(a, &left, NULL) < 0 || td_time_parse(b, &right, NULL) < 0) {
        return td_str_equal(a, b);
    }
    return left.unix_seconds == right.unix_seconds && left.nanos == right.nanos;
}

static bool is_same(const struct td_schema_type *type, bool is_pointer, const struct td_json *a,
                    const struct td_json *b, int depth);

/* NULL: the schema does not have it. */
static bool is_same_member(const struct td_schema_type *type, td_str key, const struct td_json *a,
                           const struct td_json *b, int depth)
{
    bool has_fields = type && type->kind == TD_SCHEMA_OBJECT;
    const struct td_schema_field *field = has_fields ? td_schema_field(type, key) : NULL;
    return is_same(field ? field->type : NULL, field && field->is_pointer, a, b, depth + 1);
}

static bool is_same_object(const struct td_schema_type *type, const struct td_json *a,
                           const struct td_json *b, int depth)
{
    for (const struct td_json *member = td_json_first_member(a); member; member = member->next) {
        if (!is_same_member(type, member->key, member, td_json_get(b, member->key), depth)) {
            return false;
        }
    }
    for (const struct td_json *member = td_json_first_member(b); member; member = member->next) {
        if (!td_json_get(a, member->key) &&
            !is_same_member(type, member->key, NULL, member, depth)) {
            return false;
        }
    }
    return true;
}

static bool is_same_array(const struct td_schema_type *type, const struct td_json *a,
                          const struct td_json *b, int depth)
{
    const struct td_json *other = td_json_first_item(b);
    for (const struct td_json *item = td_json_first_item(a); item; item = item->next) {
        if (!other || !is_same(type ? type->element : NULL, false, item, other, depth + 1)) {
            return false;
        }
        other = other->next;
    }
    return !other;
}

/* A pointer's absence upstream can tell from a zero value. */
static bool is_same(const struct td_schema_type *type, bool is_pointer, const struct td_json *a,
                    const struct td_json *b, int depth)
{
    a = td_json_is(a, TD_JSON_TYPE_NULL) ? NULL : a;
    b = td_json_is(b, TD_JSON_TYPE_NULL) ? NULL : b;
    if (!a || !b) {
        return a == b || (!is_pointer && is_zero(a) && is_zero(b));
    }
    if (a->type != b->type || depth > STATUS_DEPTH_MAX) {
        return false;
    }
    if (td_json_is(a, TD_JSON_TYPE_OBJECT)) {
        return is_same_object(type, a, b, depth);
    }
    if (td_json_is(a, TD_JSON_TYPE_ARRAY)) {
        return is_same_array(type, a, b, depth);
    }
    bool is_text = type && td_json_is(a, TD_JSON_TYPE_STRING);
    if (is_text && type->kind == TD_SCHEMA_TIME) {
        return is_same_time(a->text, b->text);
    }
    if (is_text && type->kind == TD_SCHEMA_QUANTITY) {
        return is_same_quantity(a->text, b->text);
    }
    return td_json_equal(a, b);
}

bool td_hpa_status_differs(const struct td_json *stored, const struct td_json *updated)
{
    static const struct td_json nothing = {.type = TD_JSON_TYPE_OBJECT};
    const struct td_json *before = td_json_is(stored, TD_JSON_TYPE_OBJECT) ? stored : &nothing;
    const struct td_json *after = td_json_is(updated, TD_JSON_TYPE_OBJECT) ? updated : &nothing;
    return !is_same_object(td_schema_member(td_hpa_schema(), TD_STR("status")), before, after, 0);
}

td_str td_hpa_quantity_text(struct td_arena *arena, td_str resource, int64_t milli)
{
    enum td_quantity_format format =
        td_str_equal(resource, TD_STR("memory")) ? TD_QUANTITY_BINARY_SI : TD_QUANTITY_DECIMAL_SI;
    struct td_quantity quantity = td_quantity_new_milli(milli, format);
    return td_quantity_text(arena, &quantity);
}
