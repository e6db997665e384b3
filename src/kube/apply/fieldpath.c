/*
 * Values inside steps are compared as upstream compares them: by type first, numbers as float64,
 * objects member by member in sorted order. Reading a step makes its value canonical once, so that
 * comparing needs no copies.
 */
#include "kube/apply/fieldpath.h"

#include <math.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"

#define STEP_TEXT_BYTES_MAX TD_JSON_BYTES_MAX

/* The order of types in upstream's comparison of values. */
static int value_rank(const struct td_json *value)
{
    switch ((enum td_json_type)value->type) {
    case TD_JSON_TYPE_NUMBER:
        return 0;
    case TD_JSON_TYPE_STRING:
        return 1;
    case TD_JSON_TYPE_BOOL:
        return 2;
    case TD_JSON_TYPE_ARRAY:
        return 3;
    case TD_JSON_TYPE_OBJECT:
        return 4;
    case TD_JSON_TYPE_NULL:
        return 5;
    }
    td_assert(false); /* a node of no known type */
    return 6;
}

/* A number beyond float64 counts as infinite: Go could not have read it at all. */
static double number_to_double(const struct td_json *number)
{
    double value;
    if (td_json_to_double(number, &value)) {
        return value;
    }
    return number->text.ptr[0] == '-' ? -HUGE_VAL : HUGE_VAL;
}

static int number_compare(const struct td_json *a, const struct td_json *b)
{
    if (td_str_equal(a->text, b->text)) {
        return 0;
    }
    int64_t ia;
    int64_t ib;
    if (td_json_to_int64(a, &ia) && td_json_to_int64(b, &ib)) {
        return (ia > ib) - (ia < ib);
    }
    double da = number_to_double(a);
    double db = number_to_double(b);
    return (da > db) - (da < db);
}

/* A total order of values of any types: numbers, strings, booleans, lists, objects, null. */
static int value_compare(const struct td_json *a, const struct td_json *b, unsigned depth);

static int children_compare(const struct td_json *a, const struct td_json *b, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    const struct td_json *x = td_json_first_child(a);
    const struct td_json *y = td_json_first_child(b);
    for (; x && y; x = x->next, y = y->next) {
        int order = a->type == TD_JSON_TYPE_OBJECT ? td_str_compare(x->key, y->key) : 0;
        if (order == 0) {
            order = value_compare(x, y, depth + 1);
        }
        if (order != 0) {
            return order;
        }
    }
    return (x != NULL) - (y != NULL);
}

static int value_compare(const struct td_json *a, const struct td_json *b, unsigned depth)
{
    int rank = value_rank(a);
    int other = value_rank(b);
    if (rank != other) {
        return rank < other ? -1 : 1;
    }
    switch ((enum td_json_type)a->type) {
    case TD_JSON_TYPE_NUMBER:
        return number_compare(a, b);
    case TD_JSON_TYPE_STRING:
        return td_str_compare(a->text, b->text);
    case TD_JSON_TYPE_BOOL:
        return (int)a->boolean - (int)b->boolean;
    case TD_JSON_TYPE_ARRAY:
    case TD_JSON_TYPE_OBJECT:
        return children_compare(a, b, depth);
    case TD_JSON_TYPE_NULL:
        break;
    }
    return 0;
}

static bool value_equal(const struct td_json *a, const struct td_json *b, unsigned depth);

/* Members usually come in the same order, so the neighbour is tried before a search. */
static bool object_equal(const struct td_json *a, const struct td_json *b, unsigned depth)
{
    const struct td_json *next = td_json_first_member(b);
    for (const struct td_json *member = td_json_first_member(a); member; member = member->next) {
        const struct td_json *other = next;
        if (!other || !td_str_equal(other->key, member->key)) {
            other = td_json_get(b, member->key);
        }
        if (!other || !value_equal(member, other, depth + 1)) {
            return false;
        }
        next = other->next;
    }
    return true;
}

static bool array_equal(const struct td_json *a, const struct td_json *b, unsigned depth)
{
    const struct td_json *other = td_json_first_item(b);
    for (const struct td_json *item = td_json_first_item(a); item && other; item = item->next) {
        if (!value_equal(item, other, depth + 1)) {
            return false;
        }
        other = other->next;
    }
    return true;
}

static bool value_equal(const struct td_json *a, const struct td_json *b, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    if (a->type != b->type) {
        return false;
    }
    switch ((enum td_json_type)a->type) {
    case TD_JSON_TYPE_NUMBER:
        return number_compare(a, b) == 0;
    case TD_JSON_TYPE_STRING:
        return td_str_equal(a->text, b->text);
    case TD_JSON_TYPE_BOOL:
        return a->boolean == b->boolean;
    case TD_JSON_TYPE_ARRAY:
        return a->count == b->count && array_equal(a, b, depth);
    case TD_JSON_TYPE_OBJECT:
        return a->count == b->count && object_equal(a, b, depth);
    case TD_JSON_TYPE_NULL:
        break;
    }
    return true;
}

bool td_field_value_equal(const struct td_json *a, const struct td_json *b)
{
    return value_equal(a, b, 0);
}

static int keys_compare(const struct td_field_step *a, const struct td_field_step *b)
{
    for (size_t i = 0; i < a->key_count && i < b->key_count; i++) {
        int order = td_str_compare(a->keys[i].name, b->keys[i].name);
        if (order == 0) {
            order = value_compare(a->keys[i].value, b->keys[i].value, 0);
        }
        if (order != 0) {
            return order;
        }
    }
    return (a->key_count > b->key_count) - (a->key_count < b->key_count);
}

int td_field_step_compare(const struct td_field_step *a, const struct td_field_step *b)
{
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    switch (a->kind) {
    case TD_FIELD_NAME:
        return td_str_compare(a->name, b->name);
    case TD_FIELD_KEY:
        return keys_compare(a, b);
    case TD_FIELD_VALUE:
        return value_compare(a->value, b->value, 0);
    case TD_FIELD_INDEX:
        return (a->index > b->index) - (a->index < b->index);
    case TD_FIELD_LOST:
        break;
    }
    return 0;
}

/*
 * Upstream reads the numbers of a path as float64 and writes them back as such, so a whole number
 * past 2^53 changes on its way through managedFields. Fifteen digits are always exact and stay as
 * they are.
 */
static void canonical_number(struct td_arena *arena, struct td_json *number)
{
    static const size_t exact_digits = 15;
    bool is_plain = number->text.len <= exact_digits;
    for (size_t i = 0; i < number->text.len && is_plain; i++) {
        is_plain = number->text.ptr[i] >= '0' && number->text.ptr[i] <= '9';
    }
    double value;
    if (is_plain || !td_json_to_double(number, &value)) {
        return;
    }
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_json_write_double(value, &text);
    number->text = td_arena_copy_str(arena, td_buf_str(&text));
}

/* The JSON value inside a step's text, made comparable: numbers canonical, members sorted. */
static int step_parse_value(struct td_arena *arena, td_str text, struct td_json **ret,
                            struct td_error *err)
{
    struct td_json *value;
    int r = td_json_parse(arena, text, NULL, &value, err);
    if (r < 0) {
        return td_error_wrap(err, r, "path element '%.*s'", TD_STR_ARG(text));
    }
    td_json_sort(arena, value);
    if (value->type == TD_JSON_TYPE_NUMBER) {
        canonical_number(arena, value);
    }
    *ret = value;
    return TD_OK;
}

static int step_parse_keys(struct td_arena *arena, td_str text, struct td_field_step *ret,
                           struct td_error *err)
{
    struct td_json *object;
    int r = step_parse_value(arena, text, &object, err);
    if (r < 0) {
        return r;
    }
    if (object->type == TD_JSON_TYPE_NULL) {
        *ret = (struct td_field_step){.kind = TD_FIELD_KEY, .is_read = true};
        return TD_OK;
    }
    if (object->type != TD_JSON_TYPE_OBJECT) {
        return td_error_set(err, TD_INVALID, "path element 'k:%.*s': the key is not an object",
                            TD_STR_ARG(text));
    }
    struct td_field_key *keys = td_arena_array(arena, struct td_field_key, object->count);
    size_t count = 0;
    for (struct td_json *member = td_json_first_member(object); member; member = member->next) {
        if (member->type == TD_JSON_TYPE_NUMBER) {
            canonical_number(arena, member);
        }
        keys[count++] = (struct td_field_key){.name = member->key, .value = member};
    }
    *ret = (struct td_field_step){
        .kind = TD_FIELD_KEY, .is_read = true, .keys = keys, .key_count = count};
    return TD_OK;
}

int td_field_step_parse(struct td_arena *arena, td_str text, struct td_field_step *ret,
                        struct td_error *err)
{
    if (text.len < 2 || text.ptr[1] != ':') {
        return td_error_set(err, TD_INVALID, "path element '%.*s' has no colon after its kind",
                            TD_STR_ARG(text));
    }
    td_str rest = td_str_slice(text, 2, text.len);
    struct td_json *value;
    int64_t index;
    int r;
    switch (text.ptr[0]) {
    case 'f':
        *ret = (struct td_field_step){.kind = TD_FIELD_NAME, .name = rest};
        return TD_OK;
    case 'k':
        return step_parse_keys(arena, rest, ret, err);
    case 'v':
        r = step_parse_value(arena, rest, &value, err);
        if (r < 0) {
            return r;
        }
        *ret = (struct td_field_step){.kind = TD_FIELD_VALUE, .is_read = true, .value = value};
        return TD_OK;
    case 'i':
        if (!td_str_to_int64(rest, &index)) {
            return td_error_set(err, TD_INVALID, "path element '%.*s': not a whole number",
                                TD_STR_ARG(text));
        }
        *ret = (struct td_field_step){.kind = TD_FIELD_INDEX, .index = index};
        return TD_OK;
    default:
        return TD_NOT_FOUND;
    }
}

/* A value inside a step, as Go writes what it read: 80.0 is 80. */
static void step_write_value_json(const struct td_json *value, struct td_buf *out)
{
    const struct td_json_format format = {.escape_html = true};
    int64_t whole;
    double number;
    if (value->type != TD_JSON_TYPE_NUMBER) {
        td_json_write(value, &format, out);
    } else if (td_str_to_int64(value->text, &whole)) {
        td_buf_append_int64(out, whole);
    } else if (td_json_to_double(value, &number)) {
        td_json_write_double(number, out);
    } else {
        td_buf_append(out, value->text);
    }
}

static void step_write_keys_json(const struct td_field_step *step, struct td_buf *out)
{
    td_buf_append_char(out, '{');
    for (size_t i = 0; i < step->key_count; i++) {
        if (i > 0) {
            td_buf_append_char(out, ',');
        }
        td_json_write_string(step->keys[i].name, false, out);
        td_buf_append_char(out, ':');
        step_write_value_json(step->keys[i].value, out);
    }
    td_buf_append_char(out, '}');
}

td_str td_field_step_text(struct td_arena *arena, const struct td_field_step *step)
{
    td_auto_buf text = td_buf_capped(STEP_TEXT_BYTES_MAX);
    switch (step->kind) {
    case TD_FIELD_NAME:
        td_buf_append(&text, TD_STR("f:"));
        td_buf_append(&text, step->name);
        break;
    case TD_FIELD_KEY:
        td_buf_append(&text, TD_STR("k:"));
        step_write_keys_json(step, &text);
        break;
    case TD_FIELD_VALUE:
        td_buf_append(&text, TD_STR("v:"));
        step_write_value_json(step->value, &text);
        break;
    case TD_FIELD_INDEX:
        td_buf_append(&text, TD_STR("i:"));
        td_buf_append_int64(&text, step->index);
        break;
    case TD_FIELD_LOST:
        td_assert(false); /* it has no text */
        break;
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}
