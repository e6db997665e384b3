/*
 * One walk down the schema and the object together: members with a default come first, then every
 * member that is there now is entered, so that defaults inside a default are set too. What is
 * copied is counted, since a small body can ask for many copies of a large default.
 */
#include "api/crd_apply.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"

struct crd_defaults {
    struct td_arena *arena;
    size_t nodes; /* copied so far */
    struct td_error *err;
};

static size_t default_count(const struct td_json *node, size_t depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    size_t count = 1;
    if (node->type == TD_JSON_TYPE_ARRAY || node->type == TD_JSON_TYPE_OBJECT) {
        for (const struct td_json *child = node->first; child; child = child->next) {
            count += default_count(child, depth + 1);
        }
    }
    return count;
}

static int default_value(struct crd_defaults *defaults, const struct td_json *schema,
                         struct td_json *value, size_t depth);

static int default_missing(struct crd_defaults *defaults, const struct td_json *properties,
                           struct td_json *object, size_t depth)
{
    const struct td_json *known =
        td_json_is(properties, TD_JSON_TYPE_OBJECT) ? properties->first : NULL;
    for (; known; known = known->next) {
        const struct td_json *value = td_json_get(known, TD_STR("default"));
        bool is_meta = depth == 0 && td_str_equal(known->key, TD_STR("metadata"));
        if (!value || is_meta || td_json_get(object, known->key)) {
            continue;
        }
        defaults->nodes += default_count(value, 0);
        if (defaults->nodes > TD_CRD_DEFAULT_NODES_MAX) {
            return td_error_set(defaults->err, TD_LIMIT,
                                "the defaults of the schema would add more than %d values",
                                TD_CRD_DEFAULT_NODES_MAX);
        }
        td_json_set(defaults->arena, object, known->key,
                    td_json_copy(defaults->arena, value, true));
    }
    return TD_OK;
}

static int default_object(struct crd_defaults *defaults, const struct td_json *schema,
                          struct td_json *object, size_t depth)
{
    const struct td_json *properties = td_json_get(schema, TD_STR("properties"));
    const struct td_json *others = td_json_get(schema, TD_STR("additionalProperties"));
    int code = default_missing(defaults, properties, object, depth);
    for (struct td_json *member = object->first; member && code == TD_OK; member = member->next) {
        const struct td_json *known = td_json_get(properties, member->key);
        bool is_meta = depth == 0 && td_str_equal(member->key, TD_STR("metadata"));
        if (!is_meta) {
            code = default_value(defaults, known ? known : others, member, depth + 1);
        }
    }
    return code;
}

static int default_value(struct crd_defaults *defaults, const struct td_json *schema,
                         struct td_json *value, size_t depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    if (!td_json_is(schema, TD_JSON_TYPE_OBJECT)) {
        return TD_OK;
    }
    if (value->type == TD_JSON_TYPE_OBJECT) {
        return default_object(defaults, schema, value, depth);
    }
    const struct td_json *items = td_json_get(schema, TD_STR("items"));
    struct td_json *item = items && value->type == TD_JSON_TYPE_ARRAY ? value->first : NULL;
    int code = TD_OK;
    for (; item && code == TD_OK; item = item->next) {
        code = default_value(defaults, items, item, depth + 1);
    }
    return code;
}

int td_crd_default(struct td_arena *arena, const struct td_json *schema, struct td_json *object,
                   struct td_error *err)
{
    struct crd_defaults defaults = {.arena = arena, .err = err};
    return default_value(&defaults, schema, object, 0);
}
