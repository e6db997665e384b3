/* What a definition asks for and this server does not do, as warnings to the client that writes it.
 */
#include "base/error.h"
#include "kube/schema/regex.h"
#include "kube/schema/schema_private.h"

struct warn {
    struct td_arena *arena;
    td_str version;
    struct td_json *warnings;
    bool has_rules;
    size_t patterns;      /* told of */
    size_t pattern_bytes; /* looked at */
    size_t visited;
};

#define WARN_PATTERNS_MAX 5
#define WARN_NODES_MAX 100000

static void warn_add(struct warn *warn, td_str text)
{
    td_json_append(warn->warnings, td_json_new_string(warn->arena, text));
}

static void warn_pattern(struct warn *warn, td_str pattern)
{
    struct td_error err = TD_ERROR_INIT;
    warn->pattern_bytes += pattern.len;
    if (pattern.len == 0 || warn->patterns >= WARN_PATTERNS_MAX ||
        warn->pattern_bytes > TD_REGEX_DEFINITION_BYTES_MAX || /* it is refused */
        td_regex_check(pattern, &err) != TD_LIMIT) {
        return;
    }
    warn->patterns++;
    warn_add(warn, td_arena_format(warn->arena, "version %.*s: values are not checked: %s",
                                   TD_STR_ARG(warn->version), err.message));
}

/* Every node of the schema's tree is looked at as if it were a schema: members of other nodes have
 * these names only where a user calls a property so, and then they are no text and no list. */
static void warn_walk(struct warn *warn, const struct td_json *node, unsigned depth)
{
    bool has_children = node->type == TD_JSON_TYPE_OBJECT || node->type == TD_JSON_TYPE_ARRAY;
    if (!has_children || depth > TD_SCHEMA_DEPTH_MAX || warn->visited++ > WARN_NODES_MAX) {
        return;
    }
    const struct td_json *rules = td_json_get(node, TD_STR("x-kubernetes-validations"));
    warn->has_rules =
        warn->has_rules || (td_json_is(rules, TD_JSON_TYPE_ARRAY) && rules->count > 0);
    warn_pattern(warn, td_json_text(node, "pattern"));
    for (const struct td_json *child = td_json_first_child(node); child; child = child->next) {
        warn_walk(warn, child, depth + 1);
    }
}

void td_schema_warn(struct td_arena *arena, td_str version, const struct td_json *schema,
                    struct td_json *warnings)
{
    struct warn warn = {.arena = arena, .version = version, .warnings = warnings};
    if (!warnings || !td_json_is(schema, TD_JSON_TYPE_OBJECT)) {
        return;
    }
    warn_walk(&warn, schema, 0);
    if (warn.has_rules) {
        warn_add(&warn, td_arena_format(arena,
                                        "version %.*s: x-kubernetes-validations are stored, but "
                                        "this server does not evaluate them",
                                        TD_STR_ARG(version)));
    }
}
