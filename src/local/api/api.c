/*
 * From a request to its entry: path, resource, verb, query, form, in this order, so that what is
 * wrong first is what the client is told, as the real server does. Calls that go on are linked
 * here until they end.
 */
#include "local/api/api.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "local/api/api_private.h"
#include "local/engine/faults.h"

int td_api_new(const struct td_api_options *options, struct td_api **ret, struct td_error *err)
{
    (void)err; /* nothing of the present parts can fail */
    struct td_api *api = td_alloc_zero(1, sizeof(*api));
    api->loop = options->loop;
    api->store = options->store;
    api->auth = options->auth;
    api->faults = options->faults;
    api->measures = options->measures;
    api->has_no_strategy = options->has_no_strategy;
    api->random = options->seed;
    api->audit_random = ~options->seed;
    api->server_url = td_text_copy(options->server_url);
    api->resources = td_resources_new();
    api->admission = td_admission_new(api);
    *ret = api;
    return TD_OK;
}

void td_api_free(struct td_api *api)
{
    if (!api) {
        return;
    }
    api->is_closing = true;
    while (api->calls) {
        td_assert(api->calls->holds == 0); /* not from inside one of its calls */
        td_call_end(api->calls);
    }
    td_admission_free(api->admission);
    td_resources_free(api->resources);
    td_text_free(api->server_url);
    td_text_free(api->reviews.url);
    td_free(api);
}

void td_api_answer_reviews(struct td_api *api, td_str url, td_api_review_fn fn, void *context)
{
    td_text_set(&api->reviews.url, url);
    api->reviews.fn = fn;
    api->reviews.context = context;
}

struct td_resources *td_api_resources(struct td_api *api)
{
    return api->resources;
}

struct td_store *td_api_store(struct td_api *api)
{
    return api->store;
}

struct td_admission *td_api_admission(struct td_api *api)
{
    return api->admission;
}

struct td_auth *td_api_auth(struct td_api *api)
{
    return api->auth;
}

struct td_loop *td_api_loop(struct td_api *api)
{
    return api->loop;
}

const struct td_resource *td_api_kind(struct td_api *api, td_str api_version, td_str kind)
{
    return td_resources_find_kind(td_api_resources(api), api_version, kind).resource;
}

td_time td_api_now(struct td_api *api)
{
    return td_clock_wall(td_loop_clock(td_api_loop(api)));
}

/* ---- Routing ---- */

struct api_subresource {
    td_str name;
    unsigned flag; /* enum td_subresources */
};

static const struct api_subresource api_subresources[] = {
    {TD_STR_INIT("status"), TD_SUB_STATUS},
    {TD_STR_INIT("scale"), TD_SUB_SCALE},
    {TD_STR_INIT("eviction"), TD_SUB_EVICTION},
    {TD_STR_INIT("resize"), TD_SUB_RESIZE},
    {TD_STR_INIT("binding"), TD_SUB_BINDING},
    {TD_STR_INIT("token"), TD_SUB_TOKEN},
    {TD_STR_INIT("finalize"), TD_SUB_FINALIZE},
    {TD_STR_INIT("approval"), TD_SUB_APPROVAL},
    {TD_STR_INIT("ephemeralcontainers"), TD_SUB_EPHEMERAL},
    {TD_STR_INIT("proxy"), TD_SUB_PROCESS},
    {TD_STR_INIT("exec"), TD_SUB_PROCESS},
    {TD_STR_INIT("attach"), TD_SUB_PROCESS},
    {TD_STR_INIT("log"), TD_SUB_PROCESS},
    {TD_STR_INIT("portforward"), TD_SUB_PROCESS},
};

/* The flag of the call's subresource when its resource has it, else 0. */
static unsigned api_subresource(const struct td_api_call *call)
{
    td_str name = call->path.subresource;
    for (size_t i = 0; i < TD_COUNT(api_subresources); i++) {
        if (td_str_equal(name, api_subresources[i].name)) {
            unsigned flag = api_subresources[i].flag & call->at.resource->subresources;
            bool is_proxy = td_str_equal(name, TD_STR("proxy"));
            bool is_pod = td_str_equal(call->at.resource->plural, TD_STR("pods"));
            return flag == TD_SUB_PROCESS && !is_proxy && !is_pod ? 0 : flag;
        }
    }
    return 0;
}

typedef void (*api_entry_fn)(struct td_api_call *call);

/* What a request line leads to; fn NULL: the method is not allowed. */
struct api_entry {
    api_entry_fn fn;
    enum td_query_kind query;
};

static void api_refuse_process(struct td_api_call *call)
{
    struct td_collection *collection =
        td_store_find(call->api->store, call->at.resource->collection);
    if (!collection || !td_collection_get(collection, call->path.ns, call->path.name)) {
        td_call_not_found(call, call->path.name);
        return;
    }
    td_call_fail(call, 400, "BadRequest",
                 "%.*s of %.*s \"%.*s\" is not possible: the local cluster runs no process behind "
                 "a pod, a service or a node",
                 TD_STR_ARG(call->path.subresource), TD_STR_ARG(call->at.resource->plural),
                 TD_STR_ARG(call->path.name));
}

static struct api_entry api_subresource_entry(const struct td_api_call *call, unsigned flag)
{
    td_str method = call->request.method;
    bool is_get = td_str_equal(method, TD_STR("GET"));
    bool is_post = td_str_equal(method, TD_STR("POST"));
    if (flag == TD_SUB_PROCESS) {
        return (struct api_entry){api_refuse_process, TD_QUERY_GET};
    }
    if (is_post && flag == TD_SUB_EVICTION) {
        return (struct api_entry){td_pod_evict, TD_QUERY_CREATE};
    }
    if (is_post && flag == TD_SUB_BINDING) {
        return (struct api_entry){td_pod_bind, TD_QUERY_CREATE};
    }
    if (is_post && flag == TD_SUB_TOKEN) {
        return (struct api_entry){td_reviews_create, TD_QUERY_CREATE};
    }
    bool is_object = (flag & (TD_SUB_EVICTION | TD_SUB_BINDING | TD_SUB_TOKEN)) == 0;
    bool is_readable = is_object && flag != TD_SUB_FINALIZE;
    if (is_get && is_readable) {
        return (struct api_entry){flag == TD_SUB_SCALE ? td_scale_get : td_read_get, TD_QUERY_GET};
    }
    if (td_str_equal(method, TD_STR("PUT")) && is_object) {
        return (struct api_entry){td_write_update, TD_QUERY_UPDATE};
    }
    if (td_str_equal(method, TD_STR("PATCH")) && is_readable) {
        return (struct api_entry){td_write_patch, TD_QUERY_PATCH};
    }
    return (struct api_entry){.fn = NULL};
}

struct api_verb {
    td_str method;
    bool has_name;
    unsigned verb; /* enum td_resource_verbs */
    api_entry_fn fn;
    enum td_query_kind query;
};

static const struct api_verb api_verbs[] = {
    {TD_STR_INIT("GET"), true, TD_VERB_GET, td_read_get, TD_QUERY_GET},
    {TD_STR_INIT("GET"), false, TD_VERB_LIST, td_read_list, TD_QUERY_LIST},
    {TD_STR_INIT("POST"), false, TD_VERB_CREATE, td_write_create, TD_QUERY_CREATE},
    {TD_STR_INIT("PUT"), true, TD_VERB_UPDATE, td_write_update, TD_QUERY_UPDATE},
    {TD_STR_INIT("PATCH"), true, TD_VERB_PATCH, td_write_patch, TD_QUERY_PATCH},
    {TD_STR_INIT("DELETE"), true, TD_VERB_DELETE, td_write_delete, TD_QUERY_DELETE},
    {TD_STR_INIT("DELETE"), false, TD_VERB_DELETE_COLLECTION, td_write_delete_collection,
     TD_QUERY_DELETE_COLLECTION},
};

/* Kinds that are answered without the store. */
static api_entry_fn api_virtual_entry(const struct td_api_call *call)
{
    const struct td_resource *resource = call->at.resource;
    if (td_str_ends_with(resource->group, TD_STR("metrics.k8s.io"))) {
        return td_metrics_read;
    }
    return td_str_equal(resource->plural, TD_STR("bindings")) ? td_pod_bind : td_reviews_create;
}

static struct api_entry api_object_entry(const struct td_api_call *call)
{
    const struct td_resource *resource = call->at.resource;
    bool is_everywhere = resource->is_namespaced && call->path.ns.len == 0;
    for (size_t i = 0; i < TD_COUNT(api_verbs); i++) {
        const struct api_verb *row = &api_verbs[i];
        if (!td_str_equal(row->method, call->request.method) ||
            row->has_name != (call->path.name.len > 0)) {
            continue;
        }
        if ((resource->verbs & row->verb) == 0 || (is_everywhere && row->verb != TD_VERB_LIST)) {
            break;
        }
        return (struct api_entry){resource->is_virtual ? api_virtual_entry(call) : row->fn,
                                  row->query};
    }
    return (struct api_entry){.fn = NULL};
}

/* Is there such a path for the resource, whatever the method? */
static bool api_scope_fits(const struct td_api_call *call)
{
    const struct td_call_path *path = &call->path;
    if (!call->at.resource->is_namespaced) {
        return path->ns.len == 0;
    }
    return path->ns.len > 0 || path->name.len == 0;
}

static bool api_knows_group(const struct td_resources *resources, td_str group)
{
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        if (td_str_equal(td_resources_row(resources, i)->group, group)) {
            return true;
        }
    }
    return false;
}

static void api_no_page(struct td_api_call *call)
{
    td_call_reply(call, 404, TD_STR("text/plain; charset=utf-8"), TD_STR("404 page not found\n"));
}

/* The form the client wants; false when it was refused and the call answered. */
static bool api_negotiate(struct td_api_call *call, bool is_list)
{
    struct td_accept accept;
    bool is_stream = call->query.is_watch;
    if (!td_accept_parse(call->request.accept, is_stream, &accept)) {
        const char *types = is_stream ? "application/json;stream=watch, "
                                        "application/vnd.kubernetes.protobuf;stream=watch"
                                      : "application/json, application/yaml, "
                                        "application/vnd.kubernetes.protobuf";
        td_call_fail(call, 406, "NotAcceptable", "only the following media types are accepted: %s",
                     types);
        return false;
    }
    call->form = accept.form;
    call->is_yaml = accept.is_yaml;
    td_str include = call->query.include_object;
    if (accept.form == TD_FORM_TABLE && include.len > 0 && !td_str_equal(include, TD_STR("None")) &&
        !td_str_equal(include, TD_STR("Metadata")) && !td_str_equal(include, TD_STR("Object"))) {
        td_call_fail(call, 400, "BadRequest",
                     "Unable to convert to Table as requested: includeObject: Invalid value: "
                     "\"%.*s\": must be 'Metadata', 'Object', 'None', or empty",
                     TD_STR_ARG(include));
        return false;
    }
    bool wants_list = is_list && !is_stream;
    if (accept.form == TD_FORM_PARTIAL && accept.is_list_form != wants_list) {
        call->form = TD_FORM_OBJECT;
        td_call_fail(
            call, 406, "NotAcceptable",
            "you requested %s, but the requested object is %s list (%.*s)",
            accept.is_list_form ? "PartialObjectMetadataList" : "PartialObjectMetadata",
            wants_list ? "a" : "not a",
            TD_STR_ARG(wants_list ? call->at.resource->list_kind : call->at.resource->kind));
        return false;
    }
    return true;
}

/* The old /watch/ paths: a name stands for a field selector. */
static struct api_entry api_watch_entry(struct td_api_call *call)
{
    bool is_get = td_str_equal(call->request.method, TD_STR("GET"));
    bool is_watched = (call->at.resource->verbs & TD_VERB_WATCH) != 0;
    call->query.is_watch = true;
    return (struct api_entry){is_get && is_watched ? td_watch_start : NULL, TD_QUERY_LIST};
}

static struct api_entry api_entry_of(struct td_api_call *call, unsigned subresource)
{
    if (call->query.is_watch) {
        return api_watch_entry(call);
    }
    return call->path.subresource.len > 0 ? api_subresource_entry(call, subresource)
                                          : api_object_entry(call);
}

/* A resource was found: verb, query and form. */
static void api_route_resource(struct td_api_call *call, td_str query)
{
    bool is_metric = call->at.resource->is_virtual &&
                     td_str_ends_with(call->at.resource->group, TD_STR("metrics.k8s.io"));
    unsigned subresource = api_subresource(call);
    bool has_unknown_part = call->path.subresource.len > 0 && subresource == 0;
    if (!is_metric && (has_unknown_part || !api_scope_fits(call))) {
        td_call_no_resource(call);
        return;
    }
    struct api_entry entry = api_entry_of(call, subresource);
    if (is_metric && td_str_equal(call->request.method, TD_STR("GET"))) {
        entry = (struct api_entry){td_metrics_read, TD_QUERY_GET};
    }
    if (!entry.fn) {
        td_call_no_method(call);
        return;
    }
    td_str name = call->path.name;
    if (!td_query_parse(call, query, entry.query)) {
        return;
    }
    if (entry.fn == td_read_list && call->query.is_watch) {
        entry.fn = (call->at.resource->verbs & TD_VERB_WATCH) != 0 ? td_watch_start : NULL;
    } else if (entry.fn != td_watch_start) {
        call->query.is_watch = false; /* of one object: a plain get */
    } else if (name.len > 0) {
        td_str selector = td_arena_format(
            &call->arena, "metadata.name=%.*s%s%.*s", TD_STR_ARG(name),
            call->query.field_selector.len > 0 ? "," : "", TD_STR_ARG(call->query.field_selector));
        call->query.field_selector = selector;
    }
    if (!entry.fn) {
        td_call_no_method(call);
        return;
    }
    if (td_authorize_resource(call, entry.fn == td_watch_start) &&
        api_negotiate(call, entry.query == TD_QUERY_LIST)) {
        entry.fn(call);
    }
}

static void api_route(struct td_api_call *call)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_target target;
    if (td_target_parse(&call->arena, call->request.target, &target, &err) != TD_OK) {
        td_call_fail(call, 400, "BadRequest", "%s", err.message);
        return;
    }
    bool is_watch = false;
    bool is_resource = td_path_parse(&target, &call->path, &is_watch);
    if (!is_resource && (!td_authorize_path(call, target.path) || td_describe(call, target.path))) {
        return;
    }
    if (!is_resource) {
        bool is_api =
            target.segment_count > 0 && (td_str_equal(target.segments[0], TD_STR("api")) ||
                                         td_str_equal(target.segments[0], TD_STR("apis")));
        if (is_api && target.segment_count > 2) {
            td_call_no_resource(call);
        } else {
            api_no_page(call);
        }
        return;
    }
    call->query.is_watch = is_watch;
    struct td_resource_at at = td_resources_find(call->api->resources, call->path.group,
                                                 call->path.version, call->path.plural);
    if (at.resource) {
        td_resource_ref(at.resource);
        call->at = at;
        api_route_resource(call, target.query);
    } else if (!td_authorize_resource(call, is_watch)) {
        return; /* who may not look learns nothing */
    } else if (api_knows_group(call->api->resources, call->path.group)) {
        td_call_no_resource(call);
    } else {
        api_no_page(call);
    }
}

/* ---- Faults ---- */

/* Whether it lives and which version it is can always be asked. */
static bool api_is_spared(td_str target)
{
    static const td_str paths[] = {TD_STR_INIT("/healthz"), TD_STR_INIT("/readyz"),
                                   TD_STR_INIT("/livez"), TD_STR_INIT("/version")};
    td_str path = td_str_slice(target, 0, td_str_find(target, '?', 0));
    for (size_t i = 0; i < TD_COUNT(paths); i++) {
        if (td_str_starts_with(path, paths[i]) &&
            (path.len == paths[i].len || path.ptr[paths[i].len] == '/')) {
            return true;
        }
    }
    return false;
}

/* Does this request fail for no reason of its own? One number of a row is drawn for each. */
static bool api_is_struck(struct td_api *api, td_str target)
{
    struct td_faults *faults = api->faults;
    if (!faults || faults->api_error_share <= 0 || api_is_spared(target)) {
        return false;
    }
    uint64_t z = ++faults->draws * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (double)(z >> 11) / (double)(UINT64_C(1) << 53) < faults->api_error_share;
}

/* ---- Calls ---- */

static void api_copy_user(struct td_arena *arena, struct td_api_user *user)
{
    user->name = td_arena_copy_str(arena, user->name);
    user->uid = td_arena_copy_str(arena, user->uid);
    td_str *groups = td_arena_array(arena, td_str, user->group_count + 1);
    for (size_t i = 0; i < user->group_count; i++) {
        groups[i] = td_arena_copy_str(arena, user->groups[i]);
    }
    user->groups = groups;
}

static struct td_api_call *api_new_call(struct td_api *api, const struct td_api_request *request,
                                        const struct td_api_sink *sink, void *context)
{
    struct td_api_call *call = td_alloc_zero(1, sizeof(*call));
    td_arena_init(&call->arena,
                  request->body.len > 0 ? TD_API_WRITE_BYTES_MAX : TD_API_CALL_BYTES_MAX);
    call->api = api;
    call->sink = sink;
    call->sink_context = context;
    call->request = *request;
    td_str *texts[] = {&call->request.method,     &call->request.target,
                       &call->request.accept,     &call->request.content_type,
                       &call->request.user_agent, &call->request.body};
    for (size_t i = 0; i < TD_COUNT(texts); i++) {
        *texts[i] = td_arena_copy_str(&call->arena, *texts[i]);
    }
    api_copy_user(&call->arena, &call->request.user);
    call->warnings = td_json_new_array(&call->arena);
    call->next = api->calls;
    if (api->calls) {
        api->calls->previous = call;
    }
    api->calls = call;
    return call;
}

/* ---- Writes in flight ---- */

/* A write that waits (for a webhook, for the disk) keeps its memory: the budget of all of them is
 * finite, and beyond half of it no user may add to what is theirs. */
static bool api_has_budget(const struct td_api *api, const struct td_api_request *request)
{
    bool is_busy = api->held_bytes > TD_API_WAITING_BYTES_MAX / 2 ||
                   api->held_count > TD_API_WAITING_COUNT_MAX / 2;
    if (request->body.len == 0 || !is_busy) {
        return true;
    }
    size_t bytes = 0;
    size_t count = 0;
    for (const struct td_api_call *call = api->calls; call; call = call->next) {
        if (call->held_bytes > 0 && td_str_equal(call->request.user.name, request->user.name)) {
            bytes += call->held_bytes;
            count++;
        }
    }
    return api->held_bytes <= TD_API_WAITING_BYTES_MAX &&
           api->held_count <= TD_API_WAITING_COUNT_MAX && bytes <= TD_API_WAITING_BYTES_MAX / 2 &&
           count <= TD_API_WAITING_COUNT_MAX / 2;
}

static void api_count_waiting(struct td_api_call *call)
{
    if (call->request.body.len > 0) {
        call->held_bytes = call->arena.used_bytes;
        call->api->held_bytes += call->held_bytes;
        call->api->held_count++;
    }
}

struct td_api_call *td_api_start(struct td_api *api, const struct td_api_request *request,
                                 const struct td_api_sink *sink, void *context)
{
    td_assert(!api->is_closing);
    struct td_api_call *call = api_new_call(api, request, sink, context);
    td_call_hold(call);
    if (!api_has_budget(api, &call->request)) {
        call->retry_after_seconds = 1;
        td_call_fail(call, 429, "TooManyRequests",
                     "the server has too many writes in flight; please try again later");
    } else if (api_is_struck(api, call->request.target)) {
        td_call_fail(call, 500, "InternalError",
                     "Internal error occurred: the scenario makes requests fail");
    } else {
        api_route(call);
    }
    bool is_over = call->is_over;
    if (!is_over) {
        api_count_waiting(call);
    }
    td_call_drop(call);
    return is_over ? NULL : call;
}

void td_api_resume(struct td_api_call *call)
{
    td_call_hold(call);
    if (call->resume && !call->is_over) {
        call->resume(call);
    }
    td_call_drop(call);
}

void td_api_cancel(struct td_api_call *call)
{
    td_call_cancel(call);
}
