/*
 * Manifests on their way into the cluster, as kubectl would bring them: read from files and
 * folders, then one server-side apply an object, in order, namespaces and definitions first. Each
 * run of requests is one structure that goes on by itself: an answer that is there at once leads to
 * the next request without a turn of the loop; one that waits (for a webhook, for the disk) comes
 * later. While the server fails, or while what an object needs (its kind, its namespace) is still
 * being made, the request is repeated.
 */
#include "api/objects.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "kube/paths.h"
#include "local/resources/resource.h"
#include "sim/world/world_private.h"

#define MANIFESTS_ENDINGS ".yaml,.yml,.json"
#define MANIFESTS_PAUSE (20 * TD_MILLISECOND) /* before the second try; doubles */

/* Requests one after the other: objects to apply, or one scale. */
struct td_world_call {
    struct td_world *world;
    struct td_world_call *previous;
    struct td_world_call *next;
    const struct td_manifest_object **objects; /* in order, in the arena */
    size_t count;
    size_t at;
    const struct td_scenario_event *scale; /* NULL: objects */
    size_t tag;
    td_world_done_fn done;
    struct td_arena arena;
    struct td_arena request_arena; /* of the request in hand */
    struct td_buf answer;
    int status;
    int tries;
    struct td_api_call *call; /* that waits; NULL: none */
    struct td_timer *timer;   /* for the next try */
    bool is_starting;         /* inside td_api_start */
    bool has_ended;
};

/* ---- Reading ---- */

struct manifests_read {
    struct td_arena *arena;
    struct td_manifest *manifest;
};

static int manifests_read_file(const char *path, void *context, struct td_error *err)
{
    const struct manifests_read *read = context;
    td_str text;
    int code = td_file_read(path, read->arena, TD_YAML_BYTES_MAX, &text, err);
    if (code < 0) {
        return code;
    }
    td_str file = td_arena_copy_str(read->arena, td_str_from(path));
    return td_manifest_read(read->arena, file, text, read->manifest, err);
}

int td_world_read_manifest(struct td_arena *arena, td_str path, struct td_manifest *manifest,
                           struct td_error *err)
{
    struct manifests_read read = {.arena = arena, .manifest = manifest};
    td_str name = td_arena_copy_str(arena, path);
    return td_file_each(name.ptr, MANIFESTS_ENDINGS, manifests_read_file, &read, err);
}

/* ---- One run ---- */

static void call_go_on(struct td_world_call *call);

static void call_free(struct td_world_call *call)
{
    *(call->previous ? &call->previous->next : &call->world->calls) = call->next;
    if (call->next) {
        call->next->previous = call->previous;
    }
    if (call->call) {
        td_api_cancel(call->call);
    }
    td_timer_free(call->timer);
    td_buf_done(&call->answer);
    td_arena_done(&call->request_arena);
    td_arena_done(&call->arena);
    td_free(call);
}

static void call_end(struct td_world_call *call, int code, const struct td_error *err)
{
    struct td_world *world = call->world;
    td_world_done_fn done = call->done;
    size_t tag = call->tag;
    call_free(call);
    done(world, tag, code, err);
}

static void call_head(void *context, int status, const struct td_api_header *headers, size_t count)
{
    struct td_world_call *call = context;
    (void)headers;
    (void)count;
    call->status = status;
}

static void call_body(void *context, td_str bytes, void (*release)(void *owner), void *owner)
{
    struct td_world_call *call = context;
    (void)td_buf_append(&call->answer, bytes); /* what does not fit is not needed for a message */
    if (release) {
        release(owner);
    }
}

static bool call_is_full(void *context)
{
    (void)context;
    return false;
}

static void call_answered(void *context)
{
    struct td_world_call *call = context;
    call->call = NULL;
    call->has_ended = true;
    if (!call->is_starting) {
        call_go_on(call);
    }
}

static const struct td_api_sink call_sink = {
    .head = call_head, .body = call_body, .is_full = call_is_full, .end = call_answered};

static void call_start(struct td_world_call *call, const struct td_api_request *request)
{
    static const td_str groups[] = {TD_STR_INIT("system:masters"),
                                    TD_STR_INIT("system:authenticated")};
    struct td_api_request sent = *request;
    sent.accept = TD_STR("application/json");
    sent.user_agent = TD_STR("tandem");
    sent.user = (struct td_api_user){
        .name = TD_STR("kubernetes-admin"),
        .groups = groups,
        .group_count = TD_COUNT(groups),
    };
    td_buf_reset(&call->answer);
    call->status = 0;
    call->has_ended = false;
    call->is_starting = true;
    call->call = td_api_start(call->world->api, &sent, &call_sink, call);
    call->is_starting = false;
}

/* ---- Requests ---- */

static td_str path_text(struct td_arena *arena, const struct td_api_path *path, const char *query,
                        struct td_error *err)
{
    td_auto_buf text = td_buf_capped(TD_API_PATH_BYTES_MAX);
    if (td_path_write(path, &text, err) < 0) {
        return TD_STR_EMPTY;
    }
    (void)td_buf_append(&text, td_str_from(query)); /* a path at its cap is refused by the server */
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static td_str world_namespace(const struct td_world *world)
{
    return world->scenario ? world->scenario->ns : TD_STR("default");
}

/* What the server is sent names the namespace. */
static td_str object_body(struct td_arena *arena, const struct td_manifest_object *object,
                          td_str ns)
{
    struct td_json *tree = td_json_copy(arena, object->tree, false);
    if (ns.len > 0) {
        struct td_json *metadata = td_json_ensure_object(arena, tree, TD_STR("metadata"));
        td_json_set_str(arena, metadata, TD_STR("namespace"), ns);
    }
    return td_json_line(arena, tree);
}

static int call_send_object(struct td_world_call *call, const struct td_manifest_object *object,
                            struct td_error *err)
{
    struct td_world *world = call->world;
    struct td_resource_at at =
        td_resources_find_kind(td_api_resources(world->api), object->api_version, object->kind);
    if (!at.resource || at.resource->is_virtual) {
        return td_error_set(err, TD_NOT_FOUND,
                            "%.*s:%u: kind: %.*s: the cluster does not serve this kind in %.*s",
                            TD_STR_ARG(object->file), (unsigned)object->line,
                            TD_STR_ARG(object->kind), TD_STR_ARG(object->api_version));
    }
    const struct td_json *metadata = td_json_get(object->tree, TD_STR("metadata"));
    bool is_named = td_json_text(metadata, "name").len > 0;
    td_str ns = at.resource->is_namespaced
                    ? (object->namespace.len > 0 ? object->namespace : world_namespace(world))
                    : TD_STR_EMPTY;
    const struct td_api_path path = {
        .group = at.resource->group,
        .version = at.resource->versions[at.version].name,
        .namespace = ns,
        .plural = at.resource->plural,
        .name = is_named ? object->name : TD_STR_EMPTY,
    };
    const char *query = is_named ? "?fieldManager=tandem&force=true&fieldValidation=Strict"
                                 : "?fieldManager=tandem&fieldValidation=Strict";
    td_str target = path_text(&call->request_arena, &path, query, err);
    if (target.len == 0) {
        return td_error_wrap(err, TD_INVALID, "%.*s:%u: metadata.name", TD_STR_ARG(object->file),
                             (unsigned)object->line);
    }
    const struct td_api_request request = {
        .method = is_named ? TD_STR("PATCH") : TD_STR("POST"),
        .target = target,
        .content_type =
            is_named ? TD_STR("application/apply-patch+yaml") : TD_STR("application/json"),
        .body = object_body(&call->request_arena, object, ns),
    };
    call_start(call, &request);
    return TD_OK;
}

const struct td_resource *td_world_resource_of_kind(const struct td_world *world, td_str kind)
{
    const struct td_resources *resources = td_api_resources(world->api);
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *resource = td_resources_row(resources, i);
        if (!resource->is_virtual && td_str_equal(resource->kind, kind)) {
            return resource;
        }
    }
    return NULL;
}

static int call_send_scale(struct td_world_call *call, struct td_error *err)
{
    const struct td_scenario_event *event = call->scale;
    const struct td_resource *resource = td_world_resource_of_kind(call->world, event->kind);
    if (!resource) {
        return td_error_set(err, TD_NOT_FOUND, "the cluster does not serve kind %.*s",
                            TD_STR_ARG(event->kind));
    }
    const struct td_served_resource served = {
        .group = resource->group,
        .version = resource->versions[0].name,
        .plural = resource->plural,
        .is_namespaced = true,
    };
    const struct td_api_path path =
        td_path_scale(&served, TD_OBJECT_KEY(world_namespace(call->world), event->name));
    td_str target = path_text(&call->request_arena, &path, "?fieldManager=tandem", err);
    if (target.len == 0) {
        return TD_INVALID;
    }
    const struct td_api_request request = {
        .method = TD_STR("PATCH"),
        .target = target,
        .content_type = TD_STR("application/merge-patch+json"),
        .body = td_arena_format(&call->request_arena, "{\"spec\":{\"replicas\":%lld}}",
                                (long long)event->amount),
    };
    call_start(call, &request);
    return TD_OK;
}

/* ---- Answers ---- */

/* The message of a Status, and the first field it names. */
static int call_refusal(struct td_world_call *call, struct td_error *err)
{
    td_arena_reset(&call->request_arena);
    struct td_json *status = NULL;
    (void)td_json_parse(&call->request_arena, td_buf_str(&call->answer), NULL, &status,
                        NULL); /* an answer without a Status has no message */
    td_str message =
        td_json_get_str(status, TD_STR("message"), TD_STR("refused by the API server"));
    if (call->scale) {
        return td_error_set(err, TD_INVALID, "%.*s", TD_STR_ARG(message));
    }
    const struct td_manifest_object *object = call->objects[call->at];
    const struct td_json *cause = td_json_at(td_json_get_path(status, "details.causes"), 0);
    td_str field = td_json_text(cause, "field");
    if (field.len > 0) {
        uint32_t line = td_objects_line(object->tree, field);
        td_str why = td_json_get_str(cause, TD_STR("message"), message);
        return td_error_set(err, TD_INVALID, "%.*s:%u: %.*s: %.*s", TD_STR_ARG(object->file),
                            (unsigned)(line > 0 ? line : object->line), TD_STR_ARG(field),
                            TD_STR_ARG(why));
    }
    return td_error_set(err, TD_INVALID, "%.*s:%u: %.*s: %.*s: %.*s", TD_STR_ARG(object->file),
                        (unsigned)object->line, TD_STR_ARG(object->kind), TD_STR_ARG(object->name),
                        TD_STR_ARG(message));
}

/* What may be there in a moment: a kind, a namespace, its service account; a server that fails. */
static bool call_may_repeat(const struct td_world_call *call)
{
    return call->tries < TD_WORLD_TRIES_MAX &&
           (call->status == 403 || call->status == 404 || call->status == 409 ||
            call->status == 429 || call->status >= 500);
}

static void call_again(struct td_timer *timer, void *context)
{
    (void)timer;
    call_go_on(context);
}

static void call_repeat(struct td_world_call *call)
{
    if (!call->timer) {
        call->timer = td_timer_new(call->world->loop, call_again, call);
    }
    td_timer_set(call->timer, MANIFESTS_PAUSE << call->tries);
    call->tries++;
    call->has_ended = false;
}

/* Sends what is next. False: it cannot be sent yet, or never (then *ret_code says so). */
static int call_send(struct td_world_call *call, struct td_error *err)
{
    td_arena_reset(&call->request_arena);
    return call->scale ? call_send_scale(call, err)
                       : call_send_object(call, call->objects[call->at], err);
}

/* From answer to request to answer, as far as it goes without waiting. */
static void call_go_on(struct td_world_call *call)
{
    struct td_error err = TD_ERROR_INIT;
    for (;;) { /* at most TD_WORLD_TRIES_MAX rounds for each of call->count objects */
        if (call->has_ended && call->status >= 200 && call->status < 300) {
            call->at++;
            call->tries = 0;
        } else if (call->has_ended && call_may_repeat(call)) {
            call_repeat(call);
            return;
        } else if (call->has_ended) {
            call_end(call, call_refusal(call, &err), &err);
            return;
        }
        if (call->at == call->count) {
            call_end(call, TD_OK, NULL);
            return;
        }
        call->has_ended = false;
        int code = call_send(call, &err);
        if (code == TD_NOT_FOUND && call->tries < TD_WORLD_TRIES_MAX) {
            call_repeat(call);
            return;
        }
        if (code < 0) {
            call_end(call, TD_INVALID, &err);
            return;
        }
        if (!call->has_ended) {
            return;
        }
    }
}

static struct td_world_call *call_new(struct td_world *world, size_t tag, td_world_done_fn done)
{
    struct td_world_call *call = td_alloc_zero(1, sizeof(*call));
    call->world = world;
    call->tag = tag;
    call->done = done;
    td_arena_init(&call->arena, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&call->request_arena, TD_TREE_ARENA_BYTES_MAX);
    td_buf_init(&call->answer, TD_API_ANSWER_BYTES_MAX);
    call->next = world->calls;
    if (call->next) {
        call->next->previous = call;
    }
    world->calls = call;
    return call;
}

/* Namespaces, then definitions, then the rest. */
static int object_rank(const struct td_manifest_object *object)
{
    if (td_str_equal(object->kind, TD_STR("Namespace"))) {
        return 0;
    }
    return td_str_equal(object->kind, TD_STR("CustomResourceDefinition")) ? 1 : 2;
}

void td_world_apply(struct td_world *world, const struct td_manifest *manifest, size_t tag,
                    td_world_done_fn done)
{
    struct td_world_call *call = call_new(world, tag, done);
    call->objects =
        td_arena_array(&call->arena, const struct td_manifest_object *, manifest->count);
    for (int rank = 0; rank <= 2; rank++) {
        for (size_t i = 0; i < manifest->count; i++) {
            if (object_rank(&manifest->items[i]) == rank) {
                call->objects[call->count++] = &manifest->items[i];
            }
        }
    }
    call_go_on(call);
}

void td_world_scale(struct td_world *world, const struct td_scenario_event *event, size_t tag,
                    td_world_done_fn done)
{
    struct td_world_call *call = call_new(world, tag, done);
    call->scale = event;
    call->count = 1;
    call_go_on(call);
}

void td_world_calls_done(struct td_world *world)
{
    while (world->calls) {
        call_free(world->calls);
    }
}
