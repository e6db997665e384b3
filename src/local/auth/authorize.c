/*
 * May this user do what this call asks? The verb follows from method and path as upstream derives
 * it; a refusal is a 403 that says who, what and where.
 */
#include "local/api/api_private.h"
#include "local/auth/auth.h"

static td_str authorize_verb(const struct td_api_call *call, bool has_name)
{
    static const struct {
        td_str method;
        td_str of_one;
        td_str of_all;
    } verbs[] = {
        {TD_STR_INIT("GET"), TD_STR_INIT("get"), TD_STR_INIT("list")},
        {TD_STR_INIT("HEAD"), TD_STR_INIT("get"), TD_STR_INIT("list")},
        {TD_STR_INIT("POST"), TD_STR_INIT("create"), TD_STR_INIT("create")},
        {TD_STR_INIT("PUT"), TD_STR_INIT("update"), TD_STR_INIT("update")},
        {TD_STR_INIT("PATCH"), TD_STR_INIT("patch"), TD_STR_INIT("patch")},
        {TD_STR_INIT("DELETE"), TD_STR_INIT("delete"), TD_STR_INIT("deletecollection")},
    };
    for (size_t i = 0; i < TD_COUNT(verbs); i++) {
        if (td_str_equal(verbs[i].method, call->request.method)) {
            return has_name ? verbs[i].of_one : verbs[i].of_all;
        }
    }
    return TD_STR_EMPTY;
}

/* Of a path that is no resource the verb is the method. */
static td_str authorize_method(struct td_api_call *call)
{
    td_str method = call->request.method;
    char *lower = td_arena_alloc(&call->arena, method.len);
    for (size_t i = 0; i < method.len; i++) {
        bool is_upper = method.ptr[i] >= 'A' && method.ptr[i] <= 'Z';
        lower[i] = (char)(is_upper ? method.ptr[i] - 'A' + 'a' : method.ptr[i]);
    }
    return (td_str){.ptr = lower, .len = method.len};
}

bool td_authorize_path(struct td_api_call *call, td_str path)
{
    struct td_auth *auth = td_api_auth(call->api);
    const struct td_auth_attributes access = {.verb = authorize_method(call), .path = path};
    if (!auth || td_auth_allows(auth, &call->request.user, &access, &call->arena, NULL)) {
        return true;
    }
    td_str refusal = td_auth_refusal(&call->arena, &call->request.user, &access);
    td_call_fail(call, 403, "Forbidden", "forbidden: %.*s", TD_STR_ARG(refusal));
    return false;
}

/* A list of one object by its name is about that object, so that a right to it is enough. */
static td_str authorize_name(const struct td_api_call *call)
{
    td_str selector = call->query.field_selector;
    td_str name = call->path.name;
    for (size_t from = 0; name.len == 0 && from < selector.len;) {
        size_t end = td_str_find(selector, ',', from);
        td_str part = td_str_slice(selector, from, end);
        size_t equals = td_str_find(part, '=', 0);
        bool is_double = equals + 1 < part.len && part.ptr[equals + 1] == '=';
        if (td_str_equal(td_str_slice(part, 0, equals), TD_STR("metadata.name"))) {
            name = td_str_slice(part, equals + (is_double ? 2 : 1), part.len);
        }
        from = end + 1;
    }
    return name;
}

static bool authorize_verb_on(struct td_api_call *call, td_str verb)
{
    struct td_auth *auth = td_api_auth(call->api);
    const struct td_call_path *path = &call->path;
    bool is_namespace = path->group.len == 0 && td_str_equal(path->plural, TD_STR("namespaces"));
    const struct td_auth_attributes access = {
        .verb = verb,
        .group = path->group,
        .resource = path->plural,
        .subresource = path->subresource,
        .ns = is_namespace ? path->name : path->ns, /* a namespace is in itself */
        .name = authorize_name(call),
    };
    if (!auth || td_auth_allows(auth, &call->request.user, &access, &call->arena, NULL)) {
        return true;
    }
    td_str refusal = td_auth_refusal(&call->arena, &call->request.user, &access);
    td_str quoted = path->name.len > 0
                        ? td_arena_format(&call->arena, " \"%.*s\"", TD_STR_ARG(path->name))
                        : TD_STR_EMPTY;
    td_call_fail(call, 403, "Forbidden", "%.*s%s%.*s%.*s is forbidden: %.*s",
                 TD_STR_ARG(path->plural), path->group.len > 0 ? "." : "", TD_STR_ARG(path->group),
                 TD_STR_ARG(quoted), TD_STR_ARG(refusal));
    return false;
}

bool td_authorize_resource(struct td_api_call *call, bool is_watch)
{
    return authorize_verb_on(call, is_watch ? TD_STR("watch")
                                            : authorize_verb(call, call->path.name.len > 0));
}

bool td_authorize_create(struct td_api_call *call)
{
    return authorize_verb_on(call, TD_STR("create"));
}
