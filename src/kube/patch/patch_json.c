/*
 * JSON patch, applied to a private copy of the document: operations change it in place, and a
 * refused one leaves nothing behind.
 *
 * Upstream's library holds the document as lazily decoded texts, and three of its habits show. A
 * null that was read, a null that an operation gave and a null that was copied are three different
 * things to "test" and to paths that lead through them; they are told apart by the mark of the null
 * node. Scalars are compared as they were written, so 1 and 1.0 differ, and so do a letter and its
 * \u escape. Copies are written out with <, > and & escaped, and compared as such from then on.
 * Where upstream crashes (a null in a compared array, a member put into a copied null) the
 * operation is refused.
 */
#include "kube/patch/patch.h"

#include "base/error.h"
#include "base/limits.h"

enum null_mark {
    NULL_READ,   /* nothing: no value at all */
    NULL_GIVEN,  /* "value": null of an operation */
    NULL_COPIED, /* a copy of a given null: an object without members, until something looks */
};

struct json_patch {
    struct td_arena *arena;
    struct td_error *err;
    struct td_json *root;
    size_t copied_bytes; /* by "copy" so far, as JSON text */
    size_t steps;        /* nodes visited so far */
    bool has_marks;
};

struct json_place {
    struct td_json *parent; /* an object, an array or a null that stands for an empty object */
    td_str key;             /* decoded */
    size_t depth;           /* of a value put there, when it is a collection */
};

static int json_step(struct json_patch *patch, size_t count)
{
    patch->steps += count;
    if (patch->steps > TD_PATCH_STEPS_MAX) {
        return td_error_set(patch->err, TD_LIMIT, "patch takes more than %zu steps",
                            TD_PATCH_STEPS_MAX);
    }
    return TD_OK;
}

/* "~1" is a slash and "~0" a tilde, read once from left to right; other tildes stay. */
static td_str json_decode_key(struct td_arena *arena, td_str part)
{
    if (td_str_find(part, '~', 0) == part.len) {
        return part;
    }
    char *out = td_arena_alloc(arena, part.len);
    size_t len = 0;
    for (size_t i = 0; i < part.len; i++) {
        char next = i + 1 < part.len ? part.ptr[i + 1] : 0;
        bool is_escape = part.ptr[i] == '~' && (next == '0' || next == '1');
        out[len++] = !is_escape ? part.ptr[i] : next == '0' ? '~' : '/';
        i += is_escape ? 1 : 0;
    }
    return (td_str){.ptr = out, .len = len};
}

/* An index into `count` places: a negative one counts from the end. */
static bool json_index(td_str key, size_t count, size_t *ret)
{
    int64_t index = 0;
    if (!td_str_to_int64(key, &index)) {
        return false;
    }
    if (index < 0) {
        index += (int64_t)count;
    }
    if (index < 0 || (size_t)index >= count) {
        return false;
    }
    *ret = (size_t)index;
    return true;
}

/* The value at a place; NULL for a member that an object does not have. */
static int json_value_at(struct json_patch *patch, const struct json_place *place,
                         struct td_json **ret)
{
    const struct td_json *parent = place->parent;
    if (parent->type == TD_JSON_TYPE_OBJECT) {
        *ret = td_json_get(parent, place->key);
        return TD_OK;
    }
    if (parent->type == TD_JSON_TYPE_NULL) {
        *ret = NULL;
        return TD_OK;
    }
    size_t index = 0;
    if (!json_index(place->key, parent->count, &index)) {
        return td_error_set(patch->err, TD_INVALID, "no element \"%.*s\" in an array of %zu",
                            TD_STR_ARG(place->key), parent->count);
    }
    if (json_step(patch, index) < 0) {
        return TD_LIMIT;
    }
    *ret = td_json_at(parent, index);
    return TD_OK;
}

static bool json_is_nothing(const struct td_json *value)
{
    return !value || (value->type == TD_JSON_TYPE_NULL && value->mark == NULL_READ);
}

static bool json_can_enter(const struct td_json *value)
{
    return value && (value->type == TD_JSON_TYPE_OBJECT || value->type == TD_JSON_TYPE_ARRAY ||
                     (value->type == TD_JSON_TYPE_NULL && value->mark == NULL_COPIED));
}

/* What comes before the first slash is ignored. */
static int json_find(struct json_patch *patch, td_str path, struct json_place *ret)
{
    size_t slash = td_str_find(path, '/', 0);
    if (slash == path.len) {
        return td_error_set(patch->err, TD_INVALID, "path has no slash");
    }
    struct json_place place = {.parent = patch->root, .depth = 1};
    for (;;) {
        size_t end = td_str_find(path, '/', slash + 1);
        place.key = json_decode_key(patch->arena, td_str_slice(path, slash + 1, end));
        place.depth++;
        if (end == path.len) {
            *ret = place;
            return TD_OK;
        }
        struct td_json *child = NULL;
        int code = json_value_at(patch, &place, &child);
        if (code < 0) {
            return code;
        }
        if (!json_can_enter(child)) {
            return td_error_set(patch->err, TD_INVALID,
                                "document has no object or array at \"%.*s\"",
                                TD_STR_ARG(td_str_slice(path, 0, end)));
        }
        place.parent = child;
        slash = end;
    }
}

/* Count nodes and find how deep they go; nothing here is deeper than TD_JSON_DEPTH_MAX. */
static void json_weigh(const struct td_json *node, size_t depth, size_t *nodes, size_t *deepest)
{
    (*nodes)++;
    if (node->type != TD_JSON_TYPE_OBJECT && node->type != TD_JSON_TYPE_ARRAY) {
        return;
    }
    *deepest = depth > *deepest ? depth : *deepest;
    for (const struct td_json *child = td_json_first_child(node);
         child && depth <= TD_JSON_DEPTH_MAX; child = child->next) {
        json_weigh(child, depth + 1, nodes, deepest);
    }
}

static int json_check_depth(struct json_patch *patch, const struct json_place *place,
                            const struct td_json *value)
{
    size_t nodes = 0;
    size_t deepest = 0;
    json_weigh(value, place->depth, &nodes, &deepest);
    if (deepest > TD_JSON_DEPTH_MAX) {
        return td_error_set(patch->err, TD_LIMIT, "document would be nested deeper than %d",
                            TD_JSON_DEPTH_MAX);
    }
    return json_step(patch, nodes);
}

static int json_refuse_null_parent(struct json_patch *patch)
{
    return td_error_set(patch->err, TD_INVALID, "null cannot hold a member");
}

static int json_add(struct json_patch *patch, const struct json_place *place, struct td_json *value)
{
    struct td_json *parent = place->parent;
    if (parent->type == TD_JSON_TYPE_NULL) {
        return json_refuse_null_parent(patch);
    }
    int code = json_check_depth(patch, place, value);
    if (code < 0) {
        return code;
    }
    if (parent->type == TD_JSON_TYPE_OBJECT) {
        td_json_set(patch->arena, parent, place->key, value);
        return TD_OK;
    }
    size_t index = parent->count;
    bool is_last = td_str_equal(place->key, TD_STR("-"));
    if (!is_last && !json_index(place->key, parent->count + 1, &index)) {
        return td_error_set(patch->err, TD_INVALID, "no place \"%.*s\" in an array of %zu",
                            TD_STR_ARG(place->key), parent->count);
    }
    if (json_step(patch, index < parent->count ? index : 0) < 0) {
        return TD_LIMIT;
    }
    td_json_insert(parent, index, value);
    return TD_OK;
}

static int json_remove(struct json_patch *patch, const struct json_place *place)
{
    struct td_json *parent = place->parent;
    size_t index = 0;
    if (parent->type == TD_JSON_TYPE_ARRAY && json_index(place->key, parent->count, &index)) {
        if (json_step(patch, index) < 0) {
            return TD_LIMIT;
        }
        td_json_remove_at(parent, index);
        return TD_OK;
    }
    if (parent->type == TD_JSON_TYPE_OBJECT && td_json_remove(parent, place->key)) {
        return TD_OK;
    }
    return td_error_set(patch->err, TD_INVALID, "nothing to remove");
}

static int json_replace(struct json_patch *patch, const struct json_place *place,
                        struct td_json *value)
{
    struct td_json *parent = place->parent;
    if (parent->type != TD_JSON_TYPE_ARRAY) {
        return json_add(patch, place, value); /* a missing member is added */
    }
    size_t index = 0;
    if (!json_index(place->key, parent->count, &index)) {
        return td_error_set(patch->err, TD_INVALID, "no element \"%.*s\" in an array of %zu",
                            TD_STR_ARG(place->key), parent->count);
    }
    int code = json_check_depth(patch, place, value);
    if (code < 0) {
        return code;
    }
    if (json_step(patch, index) < 0) {
        return TD_LIMIT;
    }
    td_json_replace_at(parent, index, value);
    return TD_OK;
}

static bool json_same(const struct td_json *ours, const struct td_json *given, size_t depth);

static bool json_same_objects(const struct td_json *ours, const struct td_json *given, size_t depth)
{
    if (ours->count != given->count) {
        return false;
    }
    for (const struct td_json *member = td_json_first_member(ours); member; member = member->next) {
        const struct td_json *other = td_json_get(given, member->key);
        if (!other || json_is_nothing(member) != json_is_nothing(other)) {
            return false;
        }
        if (!json_is_nothing(member) && !json_same(member, other, depth + 1)) {
            return false;
        }
    }
    return true;
}

/* As "test" sees it: `ours` from the document, `given` from the operation's value, whose nulls were
 * all read. */
static bool json_same(const struct td_json *ours, const struct td_json *given, size_t depth)
{
    if (depth > TD_JSON_DEPTH_MAX || json_is_nothing(ours) || json_is_nothing(given)) {
        return false;
    }
    if (ours->type == TD_JSON_TYPE_NULL) {
        return ours->mark == NULL_COPIED && given->type == TD_JSON_TYPE_OBJECT && given->count == 0;
    }
    if (ours->type != given->type) {
        return false;
    }
    switch (ours->type) {
    case TD_JSON_TYPE_BOOL:
        return ours->boolean == given->boolean;
    case TD_JSON_TYPE_NUMBER:
        return td_str_equal(ours->text, given->text);
    case TD_JSON_TYPE_STRING:
        return ours->is_escaped == given->is_escaped && td_str_equal(ours->text, given->text);
    case TD_JSON_TYPE_OBJECT:
        return json_same_objects(ours, given, depth);
    default:
        break;
    }
    if (ours->count != given->count) {
        return false;
    }
    const struct td_json *other = td_json_first_item(given);
    for (const struct td_json *item = td_json_first_item(ours); item; item = item->next) {
        if (!json_same(item, other, depth + 1)) {
            return false;
        }
        other = other->next;
    }
    return true;
}

/* `given` is NULL when the operation has no value. */
static int json_test(struct json_patch *patch, td_str path, const struct td_json *given)
{
    const struct td_json *ours = patch->root;
    bool is_root = path.len == 0;
    if (!is_root) {
        struct json_place place;
        struct td_json *found = NULL;
        int code = json_find(patch, path, &place);
        if (code < 0) {
            return code;
        }
        code = json_value_at(patch, &place, &found);
        if (code < 0) {
            return code;
        }
        ours = found;
    }
    bool is_null = td_json_is(given, TD_JSON_TYPE_NULL);
    bool is_same = false;
    if (!is_root && json_is_nothing(ours)) {
        is_same = !given || is_null;
    } else if (!is_root && ours->type == TD_JSON_TYPE_NULL && ours->mark == NULL_GIVEN) {
        is_same = is_null;
    } else if (is_root && ours->type == TD_JSON_TYPE_NULL) {
        is_same = td_json_is(given, TD_JSON_TYPE_OBJECT) && given->count == 0;
    } else {
        is_same = given && json_same(ours, given, 1);
    }
    return is_same ? TD_OK : td_error_set(patch->err, TD_INVALID, "test failed");
}

static bool json_is_html(td_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.ptr[i];
        bool is_separator = byte == '\xe2' && i + 2 < text.len && text.ptr[i + 1] == '\x80' &&
                            (text.ptr[i + 2] == '\xa8' || text.ptr[i + 2] == '\xa9');
        if (byte == '<' || byte == '>' || byte == '&' || is_separator) {
            return true;
        }
    }
    return false;
}

/* All nulls as if read; when they were written out and read again (see the top), strings too. */
static void json_reread(struct td_json *node, size_t depth, bool was_written)
{
    if (node->type == TD_JSON_TYPE_NULL) {
        node->mark = NULL_READ;
    } else if (node->type == TD_JSON_TYPE_STRING) {
        node->is_escaped = node->is_escaped || (was_written && json_is_html(node->text));
    } else if (node->type == TD_JSON_TYPE_OBJECT || node->type == TD_JSON_TYPE_ARRAY) {
        for (struct td_json *child = td_json_first_child(node); child && depth <= TD_JSON_DEPTH_MAX;
             child = child->next) {
            json_reread(child, depth + 1, was_written);
        }
    }
}

static int json_copy(struct json_patch *patch, const struct json_place *place,
                     const struct td_json *source)
{
    if (json_is_nothing(source)) {
        return json_add(patch, place, td_json_new_null(patch->arena));
    }
    td_auto_buf text = td_buf_capped(TD_PATCH_COPY_BYTES_MAX - patch->copied_bytes);
    td_json_write(source, &(struct td_json_format){.escape_html = true}, &text);
    if (text.is_full) {
        return td_error_set(patch->err, TD_LIMIT, "patch copies more than %zu bytes",
                            TD_PATCH_COPY_BYTES_MAX);
    }
    patch->copied_bytes += text.len;
    struct td_json *copy = td_json_copy(patch->arena, source, false);
    json_reread(copy, 1, true);
    if (copy->type == TD_JSON_TYPE_NULL) {
        copy->mark = NULL_COPIED;
        patch->has_marks = true;
    }
    return json_add(patch, place, copy);
}

/* The operation's value as a node of its own; one that is absent counts as null. */
static struct td_json *json_value(struct json_patch *patch, const struct td_json *operation)
{
    const struct td_json *given = td_json_get(operation, TD_STR("value"));
    if (!given) {
        return td_json_new_null(patch->arena);
    }
    struct td_json *value = td_json_copy(patch->arena, given, false);
    if (value->type == TD_JSON_TYPE_NULL) {
        value->mark = NULL_GIVEN;
        patch->has_marks = true;
    }
    return value;
}

static int json_replace_root(struct json_patch *patch, struct td_json *value)
{
    if (value->type != TD_JSON_TYPE_OBJECT && value->type != TD_JSON_TYPE_ARRAY) {
        return td_error_set(patch->err, TD_INVALID, "document can only be an object or an array");
    }
    int code = json_check_depth(patch, &(struct json_place){.depth = 1}, value);
    if (code == TD_OK) {
        patch->root = value;
    }
    return code;
}

static int json_run_transfer(struct json_patch *patch, td_str path, td_str from, bool is_move)
{
    struct json_place place;
    struct td_json *value = NULL;
    int code = json_find(patch, from, &place);
    if (code < 0) {
        return code;
    }
    code = json_value_at(patch, &place, &value);
    if (code < 0) {
        return code;
    }
    code = is_move ? json_remove(patch, &place) : TD_OK;
    if (code < 0) {
        return code;
    }
    code = json_find(patch, path, &place);
    if (code < 0) {
        return code;
    }
    return is_move ? json_add(patch, &place, value) : json_copy(patch, &place, value);
}

static int json_run_edit(struct json_patch *patch, const struct td_json *operation, td_str kind,
                         td_str path)
{
    bool is_replace = td_str_equal(kind, TD_STR("replace"));
    if (is_replace && path.len == 0) {
        return json_replace_root(patch, json_value(patch, operation));
    }
    struct json_place place;
    int code = json_find(patch, path, &place);
    if (code < 0) {
        return code;
    }
    if (td_str_equal(kind, TD_STR("remove"))) {
        return json_remove(patch, &place);
    }
    struct td_json *value = json_value(patch, operation);
    return is_replace ? json_replace(patch, &place, value) : json_add(patch, &place, value);
}

static bool json_text_of(const struct td_json *operation, td_str name, td_str *ret)
{
    const struct td_json *member = td_json_get(operation, name);
    if (!td_json_is(member, TD_JSON_TYPE_STRING)) {
        return false;
    }
    *ret = member->text;
    return true;
}

static int json_run(struct json_patch *patch, const struct td_json *operation)
{
    td_str kind = TD_STR_EMPTY;
    td_str path = TD_STR_EMPTY;
    td_str from = TD_STR_EMPTY;
    if (!json_text_of(operation, TD_STR("op"), &kind)) {
        return td_error_set(patch->err, TD_INVALID, "op is missing");
    }
    bool is_edit = td_str_equal(kind, TD_STR("add")) || td_str_equal(kind, TD_STR("remove")) ||
                   td_str_equal(kind, TD_STR("replace"));
    bool is_test = td_str_equal(kind, TD_STR("test"));
    bool is_move = td_str_equal(kind, TD_STR("move"));
    if (!is_edit && !is_test && !is_move && !td_str_equal(kind, TD_STR("copy"))) {
        return td_error_set(patch->err, TD_INVALID, "unknown op");
    }
    if (!json_text_of(operation, TD_STR("path"), &path)) {
        return td_error_set(patch->err, TD_INVALID, "path is missing");
    }
    if (is_edit) {
        return json_run_edit(patch, operation, kind, path);
    }
    if (is_test) {
        return json_test(patch, path, td_json_get(operation, TD_STR("value")));
    }
    if (!json_text_of(operation, TD_STR("from"), &from)) {
        return td_error_set(patch->err, TD_INVALID, "from is missing");
    }
    return json_run_transfer(patch, path, from, is_move);
}

static int json_wrap(struct td_error *err, int code, size_t position,
                     const struct td_json *operation)
{
    td_str kind = td_json_text(operation, "op");
    td_str path = td_json_text(operation, "path");
    return td_error_wrap(err, code, "operation %zu (%.*s \"%.*s\")", position, TD_STR_ARG(kind),
                         TD_STR_ARG(path));
}

static int json_check_input(const struct td_json *document, const struct td_json *patch,
                            struct td_error *err)
{
    if (document->type != TD_JSON_TYPE_OBJECT && document->type != TD_JSON_TYPE_ARRAY &&
        document->type != TD_JSON_TYPE_NULL) {
        return td_error_set(err, TD_INVALID, "document is neither an object nor an array");
    }
    if (patch->type == TD_JSON_TYPE_NULL) {
        return TD_OK;
    }
    if (patch->type != TD_JSON_TYPE_ARRAY) {
        return td_error_set(err, TD_INVALID, "JSON patch is not an array");
    }
    for (const struct td_json *item = td_json_first_item(patch); item; item = item->next) {
        if (item->type != TD_JSON_TYPE_OBJECT && item->type != TD_JSON_TYPE_NULL) {
            return td_error_set(err, TD_INVALID, "JSON patch has an operation that is no object");
        }
    }
    if (patch->count > TD_PATCH_OPERATIONS_MAX) {
        return td_error_set(err, TD_LIMIT, "JSON patch has %zu operations, more than %d",
                            patch->count, TD_PATCH_OPERATIONS_MAX);
    }
    if (td_json_depth(document) > TD_JSON_DEPTH_MAX || td_json_depth(patch) > TD_JSON_DEPTH_MAX) {
        return td_error_set(err, TD_LIMIT, "document or patch is nested deeper than %d",
                            TD_JSON_DEPTH_MAX);
    }
    return TD_OK;
}

int td_patch_json(struct td_arena *arena, const struct td_json *document,
                  const struct td_json *patch, struct td_json **ret, struct td_error *err)
{
    int code = json_check_input(document, patch, err);
    if (code < 0) {
        return code;
    }
    struct json_patch state = {.arena = arena, .err = err};
    state.root = td_json_copy(arena, document, false);
    size_t position = 0;
    for (const struct td_json *item = td_json_first_item(patch); item; item = item->next) {
        code = json_run(&state, item);
        if (code < 0) {
            return json_wrap(err, code, position, item);
        }
        position++;
    }
    if (state.has_marks) {
        json_reread(state.root, 1, false);
    }
    *ret = state.root;
    return TD_OK;
}
