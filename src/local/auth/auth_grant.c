/*
 * A user grants only what that user has. Who writes a role needs each right in it, or the verb
 * `escalate` on it; who writes a binding needs each right of the role that it refers to, or the
 * verb `bind` on that role. The rules are taken apart into single rights (a group, a resource, a
 * verb, a name), each of which one rule of the writer must cover; those that none covers are named,
 * put together again by resource, as upstream does. A write that changes nothing but owners,
 * finalizers and managed fields is let through, so that the garbage collector can end what it must.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "kube/quote.h"
#include "local/auth/auth_private.h"

#define GRANT_GROUP "rbac.authorization.k8s.io"

/* A single right. */
struct grant_right {
    td_str group;
    td_str resource;
    td_str name; /* NULL pointer: of every object */
    td_str url;  /* not empty: of a path, and no resource */
    td_str verb;
};

struct grant {
    struct td_arena *arena;
    struct td_auth_rule *held;
    size_t held_count;
    size_t held_max;
    size_t seen;           /* rights that were looked at */
    struct td_map missing; /* arrays of quoted verbs, by the text of the rule before them */
};

/* ---- What the writer has ---- */

static void grant_count(const struct td_auth_rule *rule, void *context)
{
    (void)rule;
    ((struct grant *)context)->held_max++;
}

static void grant_hold(const struct td_auth_rule *rule, void *context)
{
    struct grant *grant = context;
    grant->held[grant->held_count++] = *rule;
}

static bool grant_has_resource(struct td_arena *arena, const struct td_json *list, td_str resource)
{
    size_t slash = td_str_find(resource, '/', 0);
    if (auth_lists(list, resource) || slash == resource.len) {
        return auth_lists(list, resource);
    }
    td_str sub = td_str_slice(resource, slash + 1, resource.len);
    return td_json_has_text(list, td_arena_format(arena, "*/%.*s", TD_STR_ARG(sub)));
}

static bool grant_covers(struct td_arena *arena, const struct td_auth_rule *rule,
                         const struct grant_right *right)
{
    bool has_names = rule->names && rule->names->count > 0;
    if (!auth_lists(rule->verbs, right->verb)) {
        return false;
    }
    if (right->url.len > 0) {
        return !has_names && auth_lists_path(rule->paths, right->url);
    }
    return auth_lists(rule->groups, right->group) &&
           grant_has_resource(arena, rule->resources, right->resource) &&
           (!has_names || (right->name.ptr && td_json_has_text(rule->names, right->name)));
}

/* ---- What the writer lacks ---- */

static void grant_quote(struct td_buf *out, const char *key, td_str text)
{
    (void)td_buf_append_format(out, "%s%s:[", out->len > 0 ? ", " : "", key);
    td_quote_write(text, out);
    (void)td_buf_append(out, TD_STR("]"));
}

static void grant_miss(struct grant *grant, const struct grant_right *right)
{
    td_auto_buf head = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_auto_buf verb = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_quote_write(right->verb, &verb);
    if (right->url.len > 0) {
        grant_quote(&head, "NonResourceURLs", right->url);
        (void)td_buf_append_format(&head, ", Verbs:[%.*s", TD_STR_ARG(td_buf_str(&verb)));
    } else {
        grant_quote(&head, "APIGroups", right->group);
        grant_quote(&head, "Resources", right->resource);
        if (right->name.ptr) {
            grant_quote(&head, "ResourceNames", right->name);
        }
    }
    struct td_json *verbs = td_map_get(&grant->missing, td_buf_str(&head));
    if (!verbs) {
        verbs = td_json_new_array(grant->arena);
        (void)td_map_put(&grant->missing, td_arena_copy_str(grant->arena, td_buf_str(&head)),
                         verbs); /* as many as rights at most */
    }
    if (right->url.len == 0) {
        td_json_append(
            verbs,
            td_json_new_string(grant->arena, td_arena_copy_str(grant->arena, td_buf_str(&verb))));
    }
}

/* False: there are too many to look at. */
static bool grant_look(struct grant *grant, const struct grant_right *right)
{
    if (grant->seen++ >= TD_GRANT_RIGHTS_MAX) {
        return false;
    }
    for (size_t i = 0; i < grant->held_count; i++) {
        if (grant_covers(grant->arena, &grant->held[i], right)) {
            return true;
        }
    }
    grant_miss(grant, right);
    return true;
}

static bool grant_look_resource(struct grant *grant, const struct td_json *rule, td_str verb,
                                td_str group)
{
    const struct td_json *names = td_json_get(rule, TD_STR("resourceNames"));
    const struct td_json *resource = td_json_first_item(td_json_get(rule, TD_STR("resources")));
    for (bool fits = true; resource; resource = resource->next) {
        struct grant_right right = {.group = group, .resource = resource->text, .verb = verb};
        const struct td_json *name = td_json_first_item(names);
        if (!name) {
            fits = grant_look(grant, &right);
        }
        for (; name && fits; name = name->next) {
            right.name = name->text;
            fits = grant_look(grant, &right);
        }
        if (!fits) {
            return false;
        }
    }
    return true;
}

static bool grant_look_rule(struct grant *grant, const struct td_json *rule)
{
    const struct td_json *verb = td_json_first_item(td_json_get(rule, TD_STR("verbs")));
    for (; verb; verb = verb->next) {
        const struct td_json *group = td_json_first_item(td_json_get(rule, TD_STR("apiGroups")));
        for (; group; group = group->next) {
            if (!grant_look_resource(grant, rule, verb->text, group->text)) {
                return false;
            }
        }
        const struct td_json *url =
            td_json_first_item(td_json_get(rule, TD_STR("nonResourceURLs")));
        for (; url; url = url->next) {
            const struct grant_right right = {.url = url->text, .verb = verb->text};
            if (!grant_look(grant, &right)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- What is said ---- */

static td_str grant_lines(struct grant *grant)
{
    size_t count = 0;
    td_str *lines = td_arena_array(grant->arena, td_str, grant->missing.count);
    for (struct td_map_walk at = {.map = &grant->missing}; td_map_step(&at);) {
        td_auto_buf line = td_buf_capped(TD_OBJECT_BYTES_MAX);
        bool is_path = td_json_item_count(at.value) == 0;
        (void)td_buf_append_format(&line, "{%.*s%s", TD_STR_ARG(at.key),
                                   is_path ? "" : ", Verbs:[");
        for (const struct td_json *verb = td_json_first_item(at.value); verb; verb = verb->next) {
            (void)td_buf_append_format(&line, "%s%.*s",
                                       verb == td_json_first_item(at.value) ? "" : " ",
                                       TD_STR_ARG(verb->text));
        }
        (void)td_buf_append(&line, TD_STR("]}"));
        lines[count++] = td_arena_copy_str(grant->arena, td_buf_str(&line));
    }
    qsort(lines, count, sizeof(*lines), td_str_compare_items);
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append_format(&text, "%s%.*s", i > 0 ? "\n" : "", TD_STR_ARG(lines[i]));
    }
    return td_arena_copy_str(grant->arena, td_buf_str(&text));
}

static td_str grant_refusal(struct grant *grant, const struct td_api_user *user, bool is_whole)
{
    td_auto_buf groups = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_auto_buf name = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_quote_write(user->name, &name);
    for (size_t i = 0; i < user->group_count; i++) {
        (void)td_buf_append(&groups, i > 0 ? TD_STR(" ") : TD_STR_EMPTY);
        td_quote_write(user->groups[i], &groups);
    }
    if (!is_whole) {
        return td_arena_format(grant->arena,
                               "more than %d rights cannot be compared with those of "
                               "user %.*s",
                               TD_GRANT_RIGHTS_MAX, TD_STR_ARG(td_buf_str(&name)));
    }
    return td_arena_format(grant->arena,
                           "user %.*s (groups=[%.*s]) is attempting to grant RBAC permissions not "
                           "currently held:\n%.*s",
                           TD_STR_ARG(td_buf_str(&name)), TD_STR_ARG(td_buf_str(&groups)),
                           TD_STR_ARG(grant_lines(grant)));
}

/* TD_DENIED: the user lacks one of these rights. */
static int grant_confirm(struct td_auth *auth, const struct td_grant *asked,
                         const struct td_json *rules, struct td_arena *arena, td_str *ret_why)
{
    struct grant grant = {.arena = arena};
    bool is_whole = true;
    td_auth_each_rule(auth, asked->user, asked->ns, grant_count, &grant);
    grant.held = td_arena_array(arena, struct td_auth_rule, grant.held_max);
    td_auth_each_rule(auth, asked->user, asked->ns, grant_hold, &grant);
    td_map_init(&grant.missing, TD_GRANT_RIGHTS_MAX);
    for (const struct td_json *rule = td_json_first_item(rules); rule && is_whole;
         rule = rule->next) {
        is_whole = grant_look_rule(&grant, rule);
    }
    bool is_held = is_whole && grant.missing.count == 0;
    if (!is_held) {
        *ret_why = grant_refusal(&grant, asked->user, is_whole);
    }
    td_map_done(&grant.missing);
    return is_held ? TD_OK : TD_DENIED;
}

/* ---- Roles and bindings ---- */

static struct td_json *grant_without_owners(struct td_arena *arena, const struct td_json *object)
{
    static const td_str keys[] = {TD_STR_INIT("ownerReferences"), TD_STR_INIT("finalizers"),
                                  TD_STR_INIT("managedFields"), TD_STR_INIT("resourceVersion")};
    struct td_json *copy = td_json_copy(arena, object, false);
    struct td_json *metadata = td_json_get(copy, TD_STR("metadata"));
    for (size_t i = 0; i < TD_COUNT(keys); i++) {
        (void)td_json_remove(metadata, keys[i]); /* it may not be there */
    }
    return copy;
}

static bool grant_is_collecting(struct td_arena *arena, const struct td_grant *asked)
{
    return asked->old && td_json_equal(grant_without_owners(arena, asked->object),
                                       grant_without_owners(arena, asked->old));
}

static bool grant_may(struct td_auth *auth, const struct td_grant *asked, const char *verb,
                      td_str plural, td_str name)
{
    const struct td_auth_attributes access = {.verb = td_str_from(verb),
                                              .group = TD_STR(GRANT_GROUP),
                                              .resource = plural,
                                              .ns = asked->ns,
                                              .name = name};
    return td_auth_allows(auth, asked->user, &access, NULL, NULL);
}

/* A role whose rules are chosen by the labels of others may grant anything. */
static const struct td_json *grant_of_aggregation(struct td_arena *arena)
{
    struct td_json *rules = NULL;
    int code =
        td_json_parse(arena,
                      TD_STR("[{\"apiGroups\":[\"*\"],\"resources\":[\"*\"],\"verbs\":[\"*\"]},"
                             "{\"nonResourceURLs\":[\"*\"],\"verbs\":[\"*\"]}]"),
                      NULL, &rules, NULL);
    td_assert(code == TD_OK);
    return rules;
}

static int grant_check_role(struct td_auth *auth, const struct td_grant *asked,
                            struct td_arena *arena, td_str *ret_why)
{
    if (grant_may(auth, asked, "escalate", asked->plural, asked->name)) {
        return TD_OK;
    }
    bool is_aggregated = td_json_get(asked->object, TD_STR("aggregationRule")) ||
                         td_json_get(asked->old, TD_STR("aggregationRule"));
    int code =
        grant_confirm(auth, asked, td_json_get(asked->object, TD_STR("rules")), arena, ret_why);
    return code == TD_OK && is_aggregated
               ? grant_confirm(auth, asked, grant_of_aggregation(arena), arena, ret_why)
               : code;
}

static int grant_check_binding(struct td_auth *auth, const struct td_grant *asked,
                               struct td_arena *arena, td_str *ret_why)
{
    const struct td_json *reference = td_json_get(asked->object, TD_STR("roleRef"));
    td_str name = td_json_text(reference, "name");
    bool is_role = td_str_equal(td_json_text(reference, "kind"), TD_STR("Role"));
    bool is_cluster = td_str_equal(td_json_text(reference, "kind"), TD_STR("ClusterRole"));
    td_str plural = is_cluster ? TD_STR("clusterroles") : TD_STR("roles");
    const struct td_json *rules = NULL;
    if ((!is_role && !is_cluster) || (is_role && asked->ns.len == 0) ||
        grant_may(auth, asked, "bind", plural, name)) {
        return TD_OK; /* what is no role is refused when the object is checked */
    }
    if (!auth_role_rules(auth, arena, asked->ns, is_cluster, name, &rules)) {
        /* The binding's storage looks for it, so it is missing under that name. */
        *ret_why = td_arena_format(arena, "%.*s." GRANT_GROUP " \"%.*s\" not found",
                                   TD_STR_ARG(asked->plural), TD_STR_ARG(name));
        return TD_NOT_FOUND;
    }
    return grant_confirm(auth, asked, rules, arena, ret_why);
}

int td_auth_check_grant(struct td_auth *auth, const struct td_grant *asked, struct td_arena *arena,
                        td_str *ret_why)
{
    bool is_role = td_str_equal(asked->plural, TD_STR("roles")) ||
                   td_str_equal(asked->plural, TD_STR("clusterroles"));
    if (auth_has_group(asked->user, TD_STR("system:masters")) ||
        grant_is_collecting(arena, asked)) {
        return TD_OK;
    }
    return is_role ? grant_check_role(auth, asked, arena, ret_why)
                   : grant_check_binding(auth, asked, arena, ret_why);
}
