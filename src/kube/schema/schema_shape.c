/*
 * Pruning and defaulting in one walk down the schema and the object, which is copied on the way:
 *
 * 1. A member without a schema is dropped, unless unknown fields are preserved there. A value
 *    that may be anything (additionalProperties: true) keeps its scalars, but objects in it lose
 *    their members, as upstream has it.
 * 2. A null goes, unless its schema is nullable or has a default, which takes its place. Null items
 *    of lists stay for the check to refuse.
 * 3. A missing member with a default gets it, and so do members inside what was just made.
 */
#include "base/error.h"
#include "kube/schema/schema_private.h"

static bool shape_is_meta(td_str key)
{
    return td_str_equal(key, TD_STR("apiVersion")) || td_str_equal(key, TD_STR("kind")) ||
           td_str_equal(key, TD_STR("metadata"));
}

/* A schema, or NULL: booleans stand for "anything". */
static const struct td_json *shape_schema(const struct td_json *node)
{
    return td_json_is(node, TD_JSON_TYPE_OBJECT) ? node : NULL;
}

struct shape {
    struct td_arena *arena;
    size_t *made;                 /* values that came from defaults */
    bool is_default;              /* inside one */
    const struct td_json *schema; /* NULL: nothing is known */
    bool keeps_unknown;
    bool is_root;
    unsigned depth;
};

static struct td_json *shape_value(const struct shape *shape, const struct td_json *value);

static const struct td_json *shape_default(const struct td_json *schema)
{
    const struct td_json *value = td_json_get(schema, TD_STR("default"));
    return td_json_is(value, TD_JSON_TYPE_NULL) ? NULL : value;
}

static struct td_json *shape_below(const struct shape *shape, const struct td_json *schema,
                                   const struct td_json *value, bool keeps_unknown)
{
    const struct td_json *fallback = shape_default(schema);
    bool is_replaced = value->type == TD_JSON_TYPE_NULL && schema && fallback &&
                       !schema_flag(schema, TD_STR("nullable"));
    struct shape below = {
        .arena = shape->arena,
        .made = shape->made,
        .is_default = shape->is_default || is_replaced || value == fallback,
        .schema = schema,
        .keeps_unknown =
            keeps_unknown || schema_flag(schema, TD_STR("x-kubernetes-preserve-unknown-fields")),
        .depth = shape->depth + 1,
    };
    return shape_value(&below, is_replaced ? fallback : value);
}

/* What becomes of a member; NULL when it goes. */
static struct td_json *shape_member(const struct shape *shape, const struct td_json *member)
{
    const struct td_json *schema = shape->schema;
    bool is_embedded =
        shape->is_root || schema_flag(schema, TD_STR("x-kubernetes-embedded-resource"));
    const struct td_json *others = td_json_get(schema, TD_STR("additionalProperties"));
    const struct td_json *own = td_json_get(td_json_get(schema, TD_STR("properties")), member->key);
    bool has_others = others && !(others->type == TD_JSON_TYPE_BOOL && !others->boolean);
    if (is_embedded && shape_is_meta(member->key)) {
        return td_json_copy(shape->arena, member, false);
    }
    if (!own && !has_others) {
        return shape->keeps_unknown ? td_json_copy(shape->arena, member, false) : NULL;
    }
    const struct td_json *known = shape_schema(own ? own : others);
    bool is_stray = member->type == TD_JSON_TYPE_NULL && known && !shape_default(known) &&
                    !schema_flag(known, TD_STR("nullable"));
    return is_stray ? NULL : shape_below(shape, known, member, false);
}

static struct td_json *shape_object(const struct shape *shape, const struct td_json *object)
{
    struct td_json *made = td_json_new_object(shape->arena);
    made->line = object->line;
    for (const struct td_json *member = td_json_first_member(object); member;
         member = member->next) {
        struct td_json *kept = shape_member(shape, member);
        if (kept) {
            td_json_set(shape->arena, made, member->key, kept);
        }
    }
    const struct td_json *properties =
        shape_schema(td_json_get(shape->schema, TD_STR("properties")));
    for (const struct td_json *own = td_json_first_member(properties); own; own = own->next) {
        const struct td_json *fallback = shape_default(own);
        if (fallback && !td_json_get(made, own->key)) {
            td_json_set(shape->arena, made, own->key,
                        shape_below(shape, shape_schema(own), fallback, false));
        }
    }
    return made;
}

static struct td_json *shape_list(const struct shape *shape, const struct td_json *list)
{
    const struct td_json *items = shape_schema(td_json_get(shape->schema, TD_STR("items")));
    struct td_json *made = td_json_new_array(shape->arena);
    made->line = list->line;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        bool is_kept = shape->keeps_unknown && !items;
        td_json_append(made, is_kept ? td_json_copy(shape->arena, item, false)
                                     : shape_below(shape, items, item, shape->keeps_unknown));
    }
    return made;
}

static struct td_json *shape_value(const struct shape *shape, const struct td_json *value)
{
    /* Defaults nest like schemas, so depth is that of the object or of its definition. */
    bool is_deep = shape->depth >= TD_SCHEMA_DEPTH_MAX;
    *shape->made += shape->is_default;
    if (*shape->made > TD_CRD_DEFAULT_NODES_MAX) {
        return td_json_new_null(shape->arena); /* the whole is refused */
    }
    if (value->type == TD_JSON_TYPE_OBJECT && !is_deep) {
        return shape_object(shape, value);
    }
    if (value->type == TD_JSON_TYPE_ARRAY && !is_deep) {
        return shape_list(shape, value);
    }
    return td_json_copy(shape->arena, value, false);
}

int td_schema_shape(struct td_arena *arena, const struct td_json *schema,
                    const struct td_json *object, struct td_json **ret, struct td_error *err)
{
    size_t made = 0;
    const struct shape root = {
        .arena = arena,
        .made = &made,
        .schema = shape_schema(schema),
        .keeps_unknown = schema_flag(schema, TD_STR("x-kubernetes-preserve-unknown-fields")),
        .is_root = true,
    };
    struct td_json *shaped = shape_value(&root, object);
    if (made > TD_CRD_DEFAULT_NODES_MAX) {
        return td_error_set(err, TD_LIMIT, "the defaults of its schema have more than %zu values",
                            (size_t)TD_CRD_DEFAULT_NODES_MAX);
    }
    *ret = shaped;
    return TD_OK;
}
