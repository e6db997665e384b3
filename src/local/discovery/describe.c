/*
 * The paths that are no resources: discovery, OpenAPI, version, health, and the list of paths.
 */
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "local/api/call.h"
#include "local/discovery/discovery.h"
#include "local/discovery/openapi.h"

#define DESCRIBE_AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

/* Does an Accept header ask for the aggregated form before the plain one? The parameters come in
 * any order, so they are looked for one by one. */
static bool describe_wants_aggregated(td_str accept)
{
    td_str rest = accept;
    while (rest.len > 0) {
        size_t comma = td_str_find(rest, ',', 0);
        td_str choice = td_str_trim(td_str_slice(rest, 0, comma));
        rest = td_str_slice(rest, comma + 1, rest.len);
        bool is_json = td_str_starts_with(choice, TD_STR("application/json"));
        bool is_aggregated = memmem(choice.ptr, choice.len, "as=APIGroupDiscoveryList", 24) &&
                             memmem(choice.ptr, choice.len, "v=v2", 4) &&
                             !memmem(choice.ptr, choice.len, "v=v2beta1", 9);
        if (is_json && is_aggregated) {
            return true;
        }
        if (td_str_equal(choice, TD_STR("application/json"))) {
            return false;
        }
    }
    return false;
}

static void describe_aggregated(struct td_api_call *call, bool is_core)
{
    struct td_json *tree =
        td_discovery_aggregated(&call->arena, td_api_resources(call->api), is_core);
    td_auto_buf body = td_buf_capped(TD_JSON_BYTES_MAX);
    td_json_write(tree, &(struct td_json_format){0}, &body);
    td_call_reply(call, 200, TD_STR(DESCRIBE_AGGREGATED), td_buf_str(&body));
}

static bool describe_discovery(struct td_api_call *call, td_str path)
{
    const struct td_resources *resources = td_api_resources(call->api);
    bool is_core = td_str_equal(path, TD_STR("/api"));
    if (is_core || td_str_equal(path, TD_STR("/apis"))) {
        if (describe_wants_aggregated(call->request.accept)) {
            describe_aggregated(call, is_core);
        } else {
            td_call_reply_json(call, 200,
                               is_core ? td_discovery_versions(&call->arena)
                                       : td_discovery_groups(&call->arena, resources));
        }
        return true;
    }
    struct td_json *tree = NULL;
    td_str apis = TD_STR("/apis/");
    if (td_str_equal(path, TD_STR("/api/v1"))) {
        tree = td_discovery_resources(&call->arena, resources, TD_STR_EMPTY, TD_STR("v1"));
    } else if (td_str_starts_with(path, apis)) {
        td_str rest = td_str_slice(path, apis.len, path.len);
        size_t slash = td_str_find(rest, '/', 0);
        td_str version = td_str_slice(rest, slash + 1, rest.len);
        td_str group = td_str_slice(rest, 0, slash);
        tree = version.len == 0 ? td_discovery_group(&call->arena, resources, group)
                                : td_discovery_resources(&call->arena, resources, group, version);
    }
    if (tree) {
        td_call_reply_json(call, 200, tree);
    }
    return tree;
}

/*
 * Old clients, and kubectl about a kind that there is not, ask for OpenAPI v2 in protobuf and for
 * nothing else. They get a document without definitions: they find that the kind is not in it, and
 * say so, where a refusal would be shown instead of their message.
 */
static bool describe_openapi_empty(struct td_api_call *call)
{
    static const td_str type =
        TD_STR_INIT("application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    /* Document {swagger (1): "2.0", info (2): {title (1): "Kubernetes", version (2): "v1"}} */
    static const td_str document = TD_STR_INIT("\x0a\x03"
                                               "2.0\x12\x10\x0a\x0a"
                                               "Kubernetes\x12\x02v1");
    td_str accept = call->request.accept;
    if (!memmem(accept.ptr, accept.len, "protobuf", 8) ||
        memmem(accept.ptr, accept.len, "json", 4)) {
        return false;
    }
    td_call_reply(call, 200, type, document);
    return true;
}

static bool describe_openapi(struct td_api_call *call, td_str path)
{
    const struct td_resources *resources = td_api_resources(call->api);
    struct td_json *tree = NULL;
    td_str core = TD_STR("/openapi/v3/api/");
    td_str apis = TD_STR("/openapi/v3/apis/");
    if (td_str_equal(path, TD_STR("/openapi/v2"))) {
        if (describe_openapi_empty(call)) {
            return true;
        }
        tree = td_openapi_v2(&call->arena, resources);
    } else if (td_str_equal(path, TD_STR("/openapi/v3"))) {
        tree = td_openapi_v3_index(&call->arena, resources);
    } else if (td_str_starts_with(path, core)) {
        tree = td_openapi_v3(&call->arena, resources, TD_STR_EMPTY,
                             td_str_slice(path, core.len, path.len));
    } else if (td_str_starts_with(path, apis)) {
        td_str rest = td_str_slice(path, apis.len, path.len);
        size_t slash = td_str_find(rest, '/', 0);
        tree = td_openapi_v3(&call->arena, resources, td_str_slice(rest, 0, slash),
                             td_str_slice(rest, slash + 1, rest.len));
    }
    if (tree) {
        td_call_reply_json(call, 200, tree);
    }
    return tree;
}

static void describe_version(struct td_api_call *call)
{
    static const char *const members[][2] = {
        {"major", "1"},    {"minor", "36"},      {"gitVersion", "v1.36.3+tandem"},
        {"gitCommit", ""}, {"gitTreeState", ""}, {"buildDate", "1970-01-01T00:00:00Z"},
        {"goVersion", ""}, {"compiler", ""},     {"platform", "linux/amd64"},
    };
    struct td_json *tree = td_json_new_object(&call->arena);
    for (size_t i = 0; i < TD_COUNT(members); i++) {
        td_json_set_str(&call->arena, tree, td_str_from(members[i][0]), td_str_from(members[i][1]));
    }
    td_call_reply_json(call, 200, tree);
}

struct describe_check {
    const char *name;
    const char *problem; /* NULL: none */
};

/* One line a check, as kube-apiserver lists them; a problem is said: no client here is a stranger.
 */
static void describe_checks(struct td_api_call *call, const char *name,
                            const struct describe_check *checks, size_t count, bool is_verbose)
{
    td_str body = TD_STR("");
    bool has_problem = false;
    for (size_t i = 0; i < count; i++) {
        const char *problem = checks[i].problem;
        has_problem = has_problem || problem;
        body = problem ? td_arena_format(&call->arena, "%.*s[-]%s failed: %s\n", TD_STR_ARG(body),
                                         checks[i].name, problem)
                       : td_arena_format(&call->arena, "%.*s[+]%s ok\n", TD_STR_ARG(body),
                                         checks[i].name);
    }
    if (has_problem || is_verbose) {
        body = td_arena_format(&call->arena, "%.*s%s check %s\n", TD_STR_ARG(body), name,
                               has_problem ? "failed" : "passed");
    } else {
        body = TD_STR("ok");
    }
    td_call_reply(call, has_problem ? 500 : 200, TD_STR("text/plain; charset=utf-8"), body);
}

/* healthz, livez, readyz, alone or with one check behind a slash. A disk that fails is no reason
 * to start the program again, so livez leaves it out. */
static bool describe_health(struct td_api_call *call, td_str path)
{
    static const char *const names[] = {"/healthz", "/readyz", "/livez"};
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        td_str name = td_str_from(names[i]);
        if (!td_str_starts_with(path, name)) {
            continue;
        }
        td_str rest = td_str_slice(path, name.len, path.len);
        struct describe_check checks[] = {
            {.name = "ping"},
            {.name = "storage", .problem = td_store_failure(td_api_store(call->api))},
        };
        size_t count = i < 2 ? 2 : 1;
        size_t one = 0; /* the check behind the slash */
        while (one < count &&
               !(rest.len > 1 && rest.ptr[0] == '/' &&
                 td_str_equal(td_str_slice(rest, 1, rest.len), td_str_from(checks[one].name)))) {
            one++;
        }
        if (rest.len > 0 && one == count) {
            continue;
        }
        td_str target = call->request.target;
        bool is_verbose = memmem(target.ptr, target.len, "?verbose", 8);
        describe_checks(call, names[i] + 1, rest.len > 0 ? checks + one : checks,
                        rest.len > 0 ? 1 : count, is_verbose);
        return true;
    }
    return false;
}

static void describe_paths(struct td_api_call *call)
{
    const struct td_json *groups = td_json_get(
        td_discovery_groups(&call->arena, td_api_resources(call->api)), TD_STR("groups"));
    static const char *const first[] = {"/api", "/api/v1", "/apis"};
    static const char *const last[] = {"/healthz",    "/livez",  "/openapi/v2",
                                       "/openapi/v3", "/readyz", "/version"};
    struct td_json *tree = td_json_new_object(&call->arena);
    struct td_json *paths = td_json_new_array(&call->arena);
    for (size_t i = 0; i < TD_COUNT(first); i++) {
        td_json_append(paths, td_json_new_string(&call->arena, td_str_from(first[i])));
    }
    for (const struct td_json *group = td_json_first_item(groups); group; group = group->next) {
        td_str name = td_json_text(group, "name");
        td_json_append(paths,
                       td_json_new_string(&call->arena, td_arena_format(&call->arena, "/apis/%.*s",
                                                                        TD_STR_ARG(name))));
    }
    for (size_t i = 0; i < TD_COUNT(last); i++) {
        td_json_append(paths, td_json_new_string(&call->arena, td_str_from(last[i])));
    }
    td_json_set(&call->arena, tree, TD_STR("paths"), paths);
    td_call_reply_json(call, 200, tree);
}

/* Is it a path of ours, whatever is behind it? */
static bool describe_owns(td_str path)
{
    static const char *const places[] = {"/version", "/api",   "/apis",  "/openapi",
                                         "/healthz", "/livez", "/readyz"};
    for (size_t i = 0; i < TD_COUNT(places); i++) {
        td_str place = td_str_from(places[i]);
        if (td_str_starts_with(path, place) &&
            (path.len == place.len || path.ptr[place.len] == '/')) {
            return true;
        }
    }
    return td_str_equal(path, TD_STR("/"));
}

bool td_describe(struct td_api_call *call, td_str path)
{
    td_str method = call->request.method;
    if (path.len > 1 && td_str_ends_with(path, TD_STR("/"))) {
        path = td_str_slice(path, 0, path.len - 1);
    }
    if (!td_str_equal(method, TD_STR("GET")) && !td_str_equal(method, TD_STR("HEAD"))) {
        bool is_own = describe_owns(path);
        if (is_own) {
            td_call_no_method(call);
        }
        return is_own;
    }
    if (describe_health(call, path)) {
        return true;
    }
    if (td_str_equal(path, TD_STR("/version"))) {
        describe_version(call);
        return true;
    }
    if (td_str_equal(path, TD_STR("/"))) {
        describe_paths(call);
        return true;
    }
    return td_str_starts_with(path, TD_STR("/openapi")) ? describe_openapi(call, path)
                                                        : describe_discovery(call, path);
}
