/*
 * What a schema type says about one value: which forms it may have (map, list, scalar), whether it
 * is owned whole, the type of a member or item, and the step that names an item of its list.
 */
#include "kube/apply/typed_types.h"

#include <stdlib.h>

unsigned td_typed_forms(const struct td_schema_type *type)
{
    if (!type) {
        return 0;
    }
    switch (type->kind) {
    case TD_SCHEMA_ANY:
        return TD_FORM_MAP | TD_FORM_SCALAR | TD_FORM_LIST;
    case TD_SCHEMA_OBJECT:
    case TD_SCHEMA_MAP:
        return TD_FORM_MAP;
    case TD_SCHEMA_LIST:
        return TD_FORM_LIST;
    case TD_SCHEMA_STRING:
    case TD_SCHEMA_INT32:
    case TD_SCHEMA_INT64:
    case TD_SCHEMA_NUMBER:
    case TD_SCHEMA_BOOL:
    case TD_SCHEMA_QUANTITY:
    case TD_SCHEMA_INT_OR_STRING:
    case TD_SCHEMA_TIME:
    case TD_SCHEMA_MICRO_TIME:
    case TD_SCHEMA_DURATION:
    case TD_SCHEMA_BYTES:
        break;
    }
    return TD_FORM_SCALAR;
}

static unsigned value_form(const struct td_json *value)
{
    if (!value) {
        return 0;
    }
    switch ((enum td_json_type)value->type) {
    case TD_JSON_TYPE_BOOL:
    case TD_JSON_TYPE_NUMBER:
    case TD_JSON_TYPE_STRING:
        return TD_FORM_SCALAR;
    case TD_JSON_TYPE_ARRAY:
        return TD_FORM_LIST;
    case TD_JSON_TYPE_OBJECT:
        return TD_FORM_MAP;
    case TD_JSON_TYPE_NULL:
        break;
    }
    return 0;
}

unsigned td_typed_forms_of(const struct td_schema_type *type, const struct td_json *value)
{
    unsigned forms = td_typed_forms(type);
    unsigned form = value_form(value);
    return (forms & form) != 0 ? form : forms;
}

unsigned td_typed_first_form(unsigned forms)
{
    return forms & (~forms + 1);
}

bool td_typed_is_atomic(const struct td_schema_type *type, unsigned form)
{
    if (form == TD_FORM_LIST) {
        return type->topology != TD_SCHEMA_SET && type->topology != TD_SCHEMA_KEYED;
    }
    return type->topology == TD_SCHEMA_ATOMIC;
}

const struct td_schema_type *td_typed_member(const struct td_schema_type *type, td_str name,
                                             bool *ret_is_named)
{
    *ret_is_named = false;
    if (type->kind == TD_SCHEMA_ANY) {
        return type;
    }
    const struct td_schema_field *field =
        type->kind == TD_SCHEMA_OBJECT ? td_schema_field(type, name) : NULL;
    if (field) {
        *ret_is_named = true;
        return field->type;
    }
    return type->element;
}

const struct td_schema_type *td_typed_item(const struct td_schema_type *type)
{
    static const struct td_schema_type atomic_any = {.kind = TD_SCHEMA_ANY,
                                                     .topology = TD_SCHEMA_ATOMIC};
    return type->kind == TD_SCHEMA_ANY ? &atomic_any : type->element;
}

/* The default of a key member: a string or a number as JSON text, without escapes. */
static const struct td_json *key_fallback(struct td_arena *arena, td_str text)
{
    if (text.len == 0) {
        return NULL;
    }
    if (text.ptr[0] == '"') {
        return td_json_new_string(arena, td_str_slice(text, 1, text.len - 1));
    }
    return td_json_new_number(arena, text);
}

/* Keys are few; insertion keeps them sorted by name. */
static void keys_insert(struct td_field_key *keys, size_t count, struct td_field_key key)
{
    size_t at = count;
    for (; at > 0 && td_str_compare(keys[at - 1].name, key.name) > 0; at--) {
        keys[at] = keys[at - 1];
    }
    keys[at] = key;
}

static const char *keyed_step(struct td_arena *arena, const struct td_schema_type *list,
                              const struct td_json *item, struct td_field_step *ret)
{
    if (item->type != TD_JSON_TYPE_OBJECT) {
        return "an item of a list with keys is not an object";
    }
    struct td_field_key *keys = td_arena_array(arena, struct td_field_key, list->list_key_count);
    size_t count = 0;
    for (size_t i = 0; i < list->list_key_count; i++) {
        const struct td_schema_key *key = &list->list_keys[i];
        const struct td_json *value = td_json_get(item, key->name);
        if (!value) {
            value = key_fallback(arena, key->fallback);
        }
        if (value) {
            keys_insert(keys, count, (struct td_field_key){.name = key->name, .value = value});
            count++;
        }
    }
    if (count == 0) {
        return "an item of a list with keys has none of them";
    }
    *ret = (struct td_field_step){.kind = TD_FIELD_KEY, .keys = keys, .key_count = count};
    return NULL;
}

const char *td_typed_step(struct td_arena *arena, const struct td_schema_type *list,
                          const struct td_json *item, struct td_field_step *ret)
{
    if (list->topology == TD_SCHEMA_KEYED) {
        return keyed_step(arena, list, item, ret);
    }
    switch ((enum td_json_type)item->type) {
    case TD_JSON_TYPE_OBJECT:
        return "an item of a set is an object";
    case TD_JSON_TYPE_ARRAY:
        return "an item of a set is a list";
    case TD_JSON_TYPE_NULL:
        return "an item of a set is null";
    case TD_JSON_TYPE_BOOL:
    case TD_JSON_TYPE_NUMBER:
    case TD_JSON_TYPE_STRING:
        break;
    }
    *ret = (struct td_field_step){.kind = TD_FIELD_VALUE, .value = item};
    return NULL;
}

static int item_compare(const void *a, const void *b)
{
    const struct td_typed_item *left = *(const struct td_typed_item *const *)a;
    const struct td_typed_item *right = *(const struct td_typed_item *const *)b;
    int order = td_field_step_compare(&left->step, &right->step);
    if (order == 0) {
        order = (left->position > right->position) - (left->position < right->position);
    }
    return order;
}

/* Equal steps stand together after sorting; the first of each run learns its length. */
static void items_count_same(struct td_typed_items *items)
{
    size_t first = 0;
    for (size_t i = 0; i < items->count; i++) {
        if (i > 0 &&
            td_field_step_compare(&items->sorted[first]->step, &items->sorted[i]->step) != 0) {
            first = i;
        }
        items->items[items->sorted[first]->position].same++;
    }
}

struct td_typed_items td_typed_items_new(struct td_arena *arena, const struct td_schema_type *type,
                                         const struct td_json *list)
{
    struct td_typed_items items = {.count = 0};
    if (!list || list->count == 0) {
        return items;
    }
    items.items = td_arena_array(arena, struct td_typed_item, list->count);
    items.sorted = td_arena_array(arena, const struct td_typed_item *, list->count);
    for (const struct td_json *value = td_json_first_item(list); value; value = value->next) {
        struct td_typed_item *item = &items.items[items.count];
        if (!td_typed_step(arena, type, value, &item->step)) {
            item->value = value;
            item->position = items.count;
            items.sorted[items.count++] = item;
        }
    }
    qsort(items.sorted, items.count, sizeof(items.sorted[0]), item_compare);
    items_count_same(&items);
    return items;
}

size_t td_typed_items_find(const struct td_typed_items *items, const struct td_field_step *step)
{
    size_t low = 0;
    size_t high = items->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (td_field_step_compare(&items->sorted[middle]->step, step) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_found =
        low < items->count && td_field_step_compare(&items->sorted[low]->step, step) == 0;
    return is_found ? low : items->count;
}
