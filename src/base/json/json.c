/*
 * Making, finding, changing and copying nodes. Members are a linked list; an object that has grown
 * large gets a hash index (json_index.h), which every change here keeps right.
 */
#include "base/json/json.h"

#include <math.h>

#include "base/assert.h"
#include "base/json/json_index.h"
#include "base/json/json_node.h"
#include "base/json/json_number.h"

static struct td_json *json_new(struct td_arena *arena, enum td_json_type type)
{
    struct td_json *node = json_node_alloc(arena);
    *node = (struct td_json){.type = (uint8_t)type};
    return node;
}

struct td_json *td_json_new_null(struct td_arena *arena)
{
    return json_new(arena, TD_JSON_TYPE_NULL);
}

struct td_json *td_json_new_bool(struct td_arena *arena, bool value)
{
    struct td_json *node = json_new(arena, TD_JSON_TYPE_BOOL);
    node->boolean = value;
    return node;
}

static struct td_json *json_new_text(struct td_arena *arena, enum td_json_type type, td_str text)
{
    struct td_json *node = json_new(arena, type);
    node->text = text.ptr ? text : TD_STR_EMPTY;
    return node;
}

struct td_json *td_json_new_int64(struct td_arena *arena, int64_t value)
{
    return json_new_text(arena, TD_JSON_TYPE_NUMBER, td_arena_int64(arena, value));
}

struct td_json *td_json_new_double(struct td_arena *arena, double value)
{
    td_auto_buf text = td_buf_capped(TD_JSON_DOUBLE_BYTES);
    td_json_write_double(value, &text);
    return json_new_text(arena, TD_JSON_TYPE_NUMBER, td_arena_copy_str(arena, td_buf_str(&text)));
}

struct td_json *td_json_new_number(struct td_arena *arena, td_str text)
{
    td_assert(td_json_number_is_valid(text));
    return json_new_text(arena, TD_JSON_TYPE_NUMBER, text);
}

struct td_json *td_json_new_string(struct td_arena *arena, td_str text)
{
    return json_new_text(arena, TD_JSON_TYPE_STRING, text);
}

struct td_json *td_json_new_array(struct td_arena *arena)
{
    return json_new(arena, TD_JSON_TYPE_ARRAY);
}

struct td_json *td_json_new_strings(struct td_arena *arena, const td_str *texts, size_t count)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        td_json_append(list, td_json_new_string(arena, texts[i]));
    }
    return list;
}

struct td_json *td_json_new_object(struct td_arena *arena)
{
    return json_new(arena, TD_JSON_TYPE_OBJECT);
}

void td_json_take(struct td_json *node, struct td_json *from)
{
    struct td_json value = *from;
    value.key = node->key;
    value.line = node->line;
    value.mark = node->mark;
    value.next = node->next;
    *node = value;
}

/* The member and, when it is there, its predecessor. */
static struct td_json *json_find(const struct td_json *object, td_str key,
                                 struct td_json **ret_prev)
{
    if (object->index) {
        return td_json_index_find(object, key, td_json_index_tag(key), ret_prev);
    }
    struct td_json *prev = NULL;
    for (struct td_json *member = object->head_child; member; member = member->next) {
        if (td_str_equal(member->key, key)) {
            *ret_prev = prev;
            return member;
        }
        prev = member;
    }
    return NULL;
}

struct td_json *td_json_get(const struct td_json *object, td_str key)
{
    struct td_json *prev;
    return td_json_is(object, TD_JSON_TYPE_OBJECT) ? json_find(object, key, &prev) : NULL;
}

struct td_json *td_json_get_path(const struct td_json *object, const char *dotted)
{
    td_str path = td_str_from(dotted);
    struct td_json *found = NULL;
    size_t from = 0;
    do {
        size_t to = td_str_find(path, '.', from);
        found = td_json_get(object, td_str_slice(path, from, to));
        object = found;
        from = to + 1;
    } while (found && from <= path.len);
    return found;
}

/* Put `value` where `old` is; prev is the child before it, or NULL. */
static void json_exchange(struct td_json *parent, struct td_json *prev, struct td_json *old,
                          struct td_json *value)
{
    value->next = old->next;
    if (prev) {
        prev->next = value;
    } else {
        parent->head_child = value;
    }
    if (parent->tail_child == old) {
        parent->tail_child = value;
    }
    old->next = NULL;
}

static void json_unlink(struct td_json *parent, struct td_json *prev, struct td_json *child)
{
    if (prev) {
        prev->next = child->next;
    } else {
        parent->head_child = child->next;
    }
    if (parent->tail_child == child) {
        parent->tail_child = prev;
    }
    child->next = NULL;
    parent->count--;
}

void td_json_set(struct td_arena *arena, struct td_json *object, td_str key, struct td_json *value)
{
    td_assert(td_json_is(object, TD_JSON_TYPE_OBJECT));
    td_assert(value && value != object);
    struct td_json *prev = NULL;
    struct td_json *old = json_find(object, key, &prev);
    if (old == value) {
        return;
    }
    value->key = key.ptr ? key : TD_STR_EMPTY;
    if (old) {
        if (object->index) {
            td_json_index_replace(object, old, value);
        }
        json_exchange(object, prev, old, value);
        return;
    }
    prev = object->tail_child;
    value->next = NULL;
    json_node_link(object, value);
    if (object->index) {
        td_json_index_add(arena, object, value, td_json_index_tag(key), prev);
    } else if (object->count > TD_JSON_INDEX_FROM) {
        td_json_index_build(arena, object);
    }
}

bool td_json_remove(struct td_json *object, td_str key)
{
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return false;
    }
    struct td_json *prev = NULL;
    struct td_json *old = json_find(object, key, &prev);
    if (!old) {
        return false;
    }
    if (object->index) {
        td_json_index_remove(object, old);
    }
    json_unlink(object, prev, old);
    return true;
}

void td_json_set_str(struct td_arena *arena, struct td_json *object, td_str key, td_str text)
{
    td_json_set(arena, object, key, td_json_new_string(arena, text));
}

void td_json_set_int64(struct td_arena *arena, struct td_json *object, td_str key, int64_t value)
{
    td_json_set(arena, object, key, td_json_new_int64(arena, value));
}

void td_json_set_double(struct td_arena *arena, struct td_json *object, td_str key, double value)
{
    td_json_set(arena, object, key,
                isfinite(value) ? td_json_new_double(arena, value) : td_json_new_null(arena));
}

void td_json_set_text(struct td_arena *arena, struct td_json *object, td_str key, td_str text)
{
    if (text.len > 0) {
        td_json_set_str(arena, object, key, text);
    }
}

void td_json_set_copy(struct td_arena *arena, struct td_json *object, td_str key,
                      const struct td_json *value)
{
    if (value) {
        td_json_set(arena, object, key, td_json_copy(arena, value, false));
    }
}

void td_json_set_bool(struct td_arena *arena, struct td_json *object, td_str key, bool value)
{
    td_json_set(arena, object, key, td_json_new_bool(arena, value));
}

struct td_json *td_json_ensure_object(struct td_arena *arena, struct td_json *object, td_str key)
{
    struct td_json *found = td_json_get(object, key);
    if (!td_json_is(found, TD_JSON_TYPE_OBJECT)) {
        found = td_json_new_object(arena);
        td_json_set(arena, object, key, found);
    }
    return found;
}

struct td_json *td_json_ensure_array(struct td_arena *arena, struct td_json *object, td_str key)
{
    struct td_json *found = td_json_get(object, key);
    if (!td_json_is(found, TD_JSON_TYPE_ARRAY)) {
        found = td_json_new_array(arena);
        td_json_set(arena, object, key, found);
    }
    return found;
}

void td_json_set_filled(struct td_arena *arena, struct td_json *object, td_str key,
                        struct td_json *array)
{
    if (array->count > 0) {
        td_json_set(arena, object, key, array);
    } else {
        (void)td_json_remove(object, key); /* it may not be there */
    }
}

bool td_json_has_text(const struct td_json *array, td_str text)
{
    const struct td_json *item = td_json_first_item(array);
    while (item && !(item->type == TD_JSON_TYPE_STRING && td_str_equal(item->text, text))) {
        item = item->next;
    }
    return item != NULL;
}

/* The child at `index`, or the last one for an index just past it; also the one before. */
static struct td_json *json_seek(const struct td_json *array, size_t index,
                                 struct td_json **ret_prev)
{
    struct td_json *prev = NULL;
    struct td_json *item = array->head_child;
    for (size_t i = 0; i < index; i++) {
        prev = item;
        item = item->next;
    }
    *ret_prev = prev;
    return item;
}

struct td_json *td_json_at(const struct td_json *array, size_t index)
{
    struct td_json *prev;
    if (!td_json_is(array, TD_JSON_TYPE_ARRAY) || index >= array->count) {
        return NULL;
    }
    return index + 1 == array->count ? array->tail_child : json_seek(array, index, &prev);
}

void td_json_append(struct td_json *array, struct td_json *value)
{
    td_assert(td_json_is(array, TD_JSON_TYPE_ARRAY));
    td_assert(value && value != array);
    value->key = TD_STR_EMPTY;
    value->next = NULL;
    json_node_link(array, value);
}

void td_json_insert(struct td_json *array, size_t index, struct td_json *value)
{
    td_assert(td_json_is(array, TD_JSON_TYPE_ARRAY));
    td_assert(index <= array->count);
    td_assert(value && value != array);
    if (index == array->count) {
        td_json_append(array, value);
        return;
    }
    struct td_json *prev;
    struct td_json *item = json_seek(array, index, &prev);
    value->key = TD_STR_EMPTY;
    value->next = item;
    if (prev) {
        prev->next = value;
    } else {
        array->head_child = value;
    }
    array->count++;
}

void td_json_remove_at(struct td_json *array, size_t index)
{
    td_assert(td_json_is(array, TD_JSON_TYPE_ARRAY));
    td_assert(index < array->count);
    struct td_json *prev;
    struct td_json *item = json_seek(array, index, &prev);
    json_unlink(array, prev, item);
}

void td_json_replace_at(struct td_json *array, size_t index, struct td_json *value)
{
    td_assert(td_json_is(array, TD_JSON_TYPE_ARRAY));
    td_assert(index < array->count);
    td_assert(value && value != array);
    struct td_json *prev;
    struct td_json *item = json_seek(array, index, &prev);
    if (item != value) {
        value->key = TD_STR_EMPTY;
        json_exchange(array, prev, item, value);
    }
}

td_str td_json_get_str(const struct td_json *object, td_str key, td_str fallback)
{
    const struct td_json *member = td_json_get(object, key);
    return td_json_is(member, TD_JSON_TYPE_STRING) ? member->text : fallback;
}

bool td_json_get_bool(const struct td_json *object, td_str key, bool fallback)
{
    const struct td_json *member = td_json_get(object, key);
    return td_json_is(member, TD_JSON_TYPE_BOOL) ? member->boolean : fallback;
}

int64_t td_json_get_int64(const struct td_json *object, td_str key, int64_t fallback)
{
    int64_t value = fallback;
    return td_json_to_int64(td_json_get(object, key), &value) ? value : fallback;
}

bool td_json_to_int64(const struct td_json *number, int64_t *ret)
{
    return td_json_is(number, TD_JSON_TYPE_NUMBER) && td_json_number_to_int64(number->text, ret);
}

bool td_json_to_double(const struct td_json *number, double *ret)
{
    return td_json_is(number, TD_JSON_TYPE_NUMBER) && td_json_number_to_double(number->text, ret);
}
