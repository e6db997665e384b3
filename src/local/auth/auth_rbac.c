/*
 * Role-based access control. The four kinds are read from the store into one flat list of bindings,
 * each with the rules of its role, and read again when a version of one of the four collections
 * moved. A local cluster has dozens of them, so a request walks the list.
 */
#include "base/json/json.h"
#include "local/auth/auth_private.h"
#include "local/store/store.h"

#define AUTH_GROUP "rbac.authorization.k8s.io"

static const struct td_collection *auth_collection(const struct td_auth *auth, const char *key)
{
    return td_store_find(auth->store, td_str_from(key));
}

static uint64_t auth_rules_version(const struct td_auth *auth)
{
    static const char *const keys[] = {"roles." AUTH_GROUP, "rolebindings." AUTH_GROUP,
                                       "clusterroles." AUTH_GROUP,
                                       "clusterrolebindings." AUTH_GROUP};
    uint64_t sum = 0; /* versions only grow, so an equal sum means that none moved */
    for (size_t i = 0; i < TD_COUNT(keys); i++) {
        const struct td_collection *collection = auth_collection(auth, keys[i]);
        sum += collection ? td_collection_version(collection) : 0;
    }
    return sum;
}

static struct td_json *auth_parse(struct td_arena *arena, const struct td_stored *stored)
{
    struct td_json *tree = NULL;
    const struct td_json_options options = {.copy_strings = true};
    /* Stored objects were written by us; one that cannot be read grants nothing. */
    (void)td_json_parse(arena, stored->json, &options, &tree, NULL);
    return tree;
}

bool auth_role_rules(const struct td_auth *auth, struct td_arena *arena, td_str ns, bool is_cluster,
                     td_str name, const struct td_json **ret)
{
    const struct td_collection *roles =
        auth_collection(auth, is_cluster ? "clusterroles." AUTH_GROUP : "roles." AUTH_GROUP);
    const struct td_stored *stored =
        roles ? td_collection_get(roles, is_cluster ? TD_STR_EMPTY : ns, name) : NULL;
    if (stored) {
        *ret = td_json_get(auth_parse(arena, stored), TD_STR("rules"));
    }
    return stored;
}

static size_t auth_count(const struct td_collection *collection)
{
    return collection ? td_collection_count(collection, TD_STR_EMPTY) : 0;
}

static void auth_read_bindings(struct td_auth *auth, const struct td_collection *collection)
{
    struct td_arena *arena = &auth->rules_arena;
    struct td_collection_iter iter = td_collection_walk(collection, TD_STR_EMPTY);
    for (const struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        const struct td_json *tree = auth_parse(arena, stored);
        const struct td_json *ref = td_json_get(tree, TD_STR("roleRef"));
        td_str kind = td_json_text(ref, "kind");
        td_str role = td_json_text(ref, "name");
        bool is_cluster = td_str_equal(kind, TD_STR("ClusterRole"));
        const struct td_json *rules = NULL; /* of a role that does not exist */
        (void)auth_role_rules(auth, arena, stored->ns, is_cluster, role, &rules);
        auth->bindings[auth->binding_count++] = (struct auth_binding){
            .ns = td_arena_copy_str(arena, stored->ns),
            .name = td_arena_copy_str(arena, stored->name),
            .role = td_arena_format(arena, "%.*s \"%.*s\"", TD_STR_ARG(kind), TD_STR_ARG(role)),
            .subjects = td_json_get(tree, TD_STR("subjects")),
            .rules = rules,
        };
    }
}

static void auth_refresh(struct td_auth *auth)
{
    uint64_t version = auth_rules_version(auth);
    if (auth->has_rules && auth->rules_version == version) {
        return;
    }
    const struct td_collection *cluster = auth_collection(auth, "clusterrolebindings." AUTH_GROUP);
    const struct td_collection *spaced = auth_collection(auth, "rolebindings." AUTH_GROUP);
    td_arena_reset(&auth->rules_arena);
    auth->bindings = td_arena_array(&auth->rules_arena, struct auth_binding,
                                    auth_count(cluster) + auth_count(spaced));
    auth->binding_count = 0;
    auth_read_bindings(auth, cluster);
    auth_read_bindings(auth, spaced);
    auth->rules_version = version;
    auth->has_rules = true;
}

static bool auth_is_subject(const struct td_json *subject, const struct td_api_user *user,
                            td_str binding_ns)
{
    td_str kind = td_json_text(subject, "kind");
    td_str name = td_json_text(subject, "name");
    if (td_str_equal(kind, TD_STR("User"))) {
        return td_str_equal(user->name, name);
    }
    if (td_str_equal(kind, TD_STR("Group"))) {
        return auth_has_group(user, name);
    }
    td_str prefix = TD_STR("system:serviceaccount:");
    if (!td_str_equal(kind, TD_STR("ServiceAccount")) || !td_str_starts_with(user->name, prefix)) {
        return false;
    }
    td_str ns = td_json_text(subject, "namespace");
    ns = ns.len > 0 ? ns : binding_ns;
    td_str rest = td_str_slice(user->name, prefix.len, user->name.len);
    return ns.len > 0 && rest.len == ns.len + 1 + name.len && td_str_starts_with(rest, ns) &&
           rest.ptr[ns.len] == ':' && td_str_ends_with(rest, name);
}

/* The subject of the binding that the user is, or NULL. */
static const struct td_json *auth_binds(const struct auth_binding *binding,
                                        const struct td_api_user *user)
{
    for (const struct td_json *s = td_json_first_item(binding->subjects); s; s = s->next) {
        if (auth_is_subject(s, user, binding->ns)) {
            return s;
        }
    }
    return NULL;
}

/* Is `text` in the list, or "*"? */
bool auth_lists(const struct td_json *list, td_str text)
{
    return td_json_has_text(list, TD_STR("*")) || td_json_has_text(list, text);
}

static bool auth_lists_resource(const struct td_json *list, const struct td_auth_attributes *access)
{
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_str text = item->type == TD_JSON_TYPE_STRING ? item->text : TD_STR_EMPTY;
        size_t slash = td_str_find(text, '/', 0);
        td_str resource = td_str_slice(text, 0, slash);
        td_str sub = td_str_slice(text, slash + 1, text.len);
        bool is_any = td_str_equal(resource, TD_STR("*"));
        if ((is_any && slash == text.len) ||
            ((is_any || td_str_equal(resource, access->resource)) &&
             td_str_equal(sub, access->subresource))) {
            return true;
        }
    }
    return false;
}

bool auth_lists_path(const struct td_json *list, td_str path)
{
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_str text = item->type == TD_JSON_TYPE_STRING ? item->text : TD_STR_EMPTY;
        if (td_str_equal(text, path) ||
            (td_str_ends_with(text, TD_STR("*")) &&
             td_str_starts_with(path, td_str_slice(text, 0, text.len - 1)))) {
            return true;
        }
    }
    return false;
}

static bool auth_rule_allows(const struct td_json *rule, const struct td_auth_attributes *access)
{
    if (!auth_lists(td_json_get(rule, TD_STR("verbs")), access->verb)) {
        return false;
    }
    if (access->path.len > 0) {
        return auth_lists_path(td_json_get(rule, TD_STR("nonResourceURLs")), access->path);
    }
    const struct td_json *names = td_json_get(rule, TD_STR("resourceNames"));
    bool has_names = names && names->count > 0;
    return auth_lists(td_json_get(rule, TD_STR("apiGroups")), access->group) &&
           auth_lists_resource(td_json_get(rule, TD_STR("resources")), access) &&
           (!has_names || (access->name.len > 0 && td_json_has_text(names, access->name)));
}

static bool auth_binding_allows(const struct auth_binding *binding,
                                const struct td_auth_attributes *access)
{
    for (const struct td_json *rule = td_json_first_item(binding->rules); rule; rule = rule->next) {
        if (auth_rule_allows(rule, access)) {
            return true;
        }
    }
    return false;
}

/* A namespaced binding grants nothing outside its namespace. */
static bool auth_binding_reaches(const struct auth_binding *binding, td_str ns, bool is_path)
{
    return binding->ns.len == 0 || (!is_path && td_str_equal(binding->ns, ns));
}

/* `RBAC: allowed by RoleBinding "b/ns" of Role "r" to Group "g"` */
static td_str auth_reason(struct td_arena *arena, const struct auth_binding *binding,
                          const struct td_json *subject)
{
    td_str kind = td_json_text(subject, "kind");
    td_str name = td_json_text(subject, "name");
    td_str ns = td_json_text(subject, "namespace");
    bool is_account = td_str_equal(kind, TD_STR("ServiceAccount"));
    bool is_spaced = binding->ns.len > 0;
    return td_arena_format(
        arena, "RBAC: allowed by %s \"%.*s%s%.*s\" of %.*s to %.*s \"%.*s%s%.*s\"",
        is_spaced ? "RoleBinding" : "ClusterRoleBinding", TD_STR_ARG(binding->name),
        is_spaced ? "/" : "", TD_STR_ARG(binding->ns), TD_STR_ARG(binding->role), TD_STR_ARG(kind),
        TD_STR_ARG(name), is_account ? "/" : "", TD_STR_ARG(is_account ? ns : TD_STR_EMPTY));
}

bool td_auth_allows(struct td_auth *auth, const struct td_api_user *user,
                    const struct td_auth_attributes *access, struct td_arena *arena,
                    td_str *ret_reason)
{
    if (auth_has_group(user, TD_STR("system:masters"))) {
        if (ret_reason) {
            *ret_reason = TD_STR_EMPTY;
        }
        return true;
    }
    auth_refresh(auth);
    for (size_t i = 0; i < auth->binding_count; i++) {
        const struct auth_binding *binding = &auth->bindings[i];
        const struct td_json *subject =
            auth_binding_reaches(binding, access->ns, access->path.len > 0)
                ? auth_binds(binding, user)
                : NULL;
        if (!subject || !auth_binding_allows(binding, access)) {
            continue;
        }
        if (ret_reason) {
            *ret_reason = auth_reason(arena, binding, subject);
        }
        return true;
    }
    return false;
}

td_str td_auth_refusal(struct td_arena *arena, const struct td_api_user *user,
                       const struct td_auth_attributes *access)
{
    if (access->path.len > 0) {
        return td_arena_format(arena, "User \"%.*s\" cannot %.*s path \"%.*s\"",
                               TD_STR_ARG(user->name), TD_STR_ARG(access->verb),
                               TD_STR_ARG(access->path));
    }
    td_str scope = access->ns.len > 0 ? td_arena_format(arena, " in the namespace \"%.*s\"",
                                                        TD_STR_ARG(access->ns))
                                      : TD_STR(" at the cluster scope");
    return td_arena_format(
        arena, "User \"%.*s\" cannot %.*s resource \"%.*s%s%.*s\" in API group \"%.*s\"%.*s",
        TD_STR_ARG(user->name), TD_STR_ARG(access->verb), TD_STR_ARG(access->resource),
        access->subresource.len > 0 ? "/" : "", TD_STR_ARG(access->subresource),
        TD_STR_ARG(access->group), TD_STR_ARG(scope));
}

void td_auth_each_rule(struct td_auth *auth, const struct td_api_user *user, td_str ns,
                       td_auth_rule_fn fn, void *context)
{
    auth_refresh(auth);
    for (size_t i = 0; i < auth->binding_count; i++) {
        const struct auth_binding *binding = &auth->bindings[i];
        if (!auth_binding_reaches(binding, ns, false) || !auth_binds(binding, user)) {
            continue;
        }
        for (const struct td_json *rule = td_json_first_item(binding->rules); rule;
             rule = rule->next) {
            fn(&(struct td_auth_rule){.verbs = td_json_get(rule, TD_STR("verbs")),
                                      .groups = td_json_get(rule, TD_STR("apiGroups")),
                                      .resources = td_json_get(rule, TD_STR("resources")),
                                      .names = td_json_get(rule, TD_STR("resourceNames")),
                                      .paths = td_json_get(rule, TD_STR("nonResourceURLs"))},
               context);
        }
    }
}
