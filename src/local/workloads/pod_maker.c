/*
 * Creations and deletions of pods on behalf of an owner, counted while their answers are
 * outstanding, with the events that controllers record.
 */
#include "local/workloads/pod_maker.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/text.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "local/api/api.h"

struct maker_call {
    struct td_pod_maker *maker;
    struct maker_call *previous; /* of the maker's open calls */
    struct maker_call *next;
    struct td_api_call *call; /* NULL before it goes on by itself, and when it is over */
    struct td_arena arena;    /* of the texts below */
    struct td_json *owner;
    td_str owner_uid;
    td_str ns;
    td_str pod;
    int status;
    struct td_buf body;
    bool is_starting; /* the sink may be called before td_api_start has returned */
    bool has_ended;
};

struct maker_owner {
    td_str uid; /* owned */
    size_t pending;
};

struct td_pod_maker {
    struct td_pod_maker_options options;
    struct td_map owners; /* by uid: maker_owner; only those with something pending */
    struct maker_call *first;
};

/* ---- Trees ---- */

struct td_json *td_controller_reference(struct td_arena *arena, const struct td_json *owner)
{
    struct td_json *reference = td_json_new_object(arena);
    td_json_set_str(arena, reference, TD_STR("apiVersion"), td_json_text(owner, "apiVersion"));
    td_json_set_str(arena, reference, TD_STR("kind"), td_json_text(owner, "kind"));
    td_json_set_str(arena, reference, TD_STR("name"), td_meta_text(owner, TD_STR("name")));
    td_json_set_str(arena, reference, TD_STR("uid"), td_meta_text(owner, TD_STR("uid")));
    td_json_set_bool(arena, reference, TD_STR("controller"), true);
    td_json_set_bool(arena, reference, TD_STR("blockOwnerDeletion"), true);
    return reference;
}

void td_set_controller(struct td_arena *arena, struct td_json *metadata,
                       const struct td_json *owner)
{
    struct td_json *references = td_json_new_array(arena);
    td_json_append(references, td_controller_reference(arena, owner));
    td_json_set(arena, metadata, TD_STR("ownerReferences"), references);
}

struct td_json *td_pod_from_template(struct td_arena *arena, const struct td_json *owner,
                                     const struct td_json *template)
{
    static const td_str copied[] = {
        TD_STR_INIT("labels"),
        TD_STR_INIT("annotations"),
        TD_STR_INIT("finalizers"),
    };
    const struct td_json *from = td_json_get(template, TD_STR("metadata"));
    struct td_json *pod = td_json_new_object(arena);
    td_json_set_str(arena, pod, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set_str(arena, pod, TD_STR("kind"), TD_STR("Pod"));
    struct td_json *metadata = td_json_ensure_object(arena, pod, TD_STR("metadata"));
    td_str name = td_meta_text(owner, TD_STR("name"));
    td_str prefix = td_arena_format(arena, "%.*s-", TD_STR_ARG(name));
    if (td_name_check_subdomain_prefix(prefix, NULL) > 0) {
        prefix = name;
    }
    td_json_set_str(arena, metadata, TD_STR("generateName"), prefix);
    td_json_set_str(arena, metadata, TD_STR("namespace"), td_meta_text(owner, TD_STR("namespace")));
    for (size_t i = 0; i < TD_COUNT(copied); i++) {
        const struct td_json *value = td_json_get(from, copied[i]);
        td_json_set_copy(arena, metadata, copied[i], value);
    }
    td_set_controller(arena, metadata, owner);
    const struct td_json *spec = td_json_get(template, TD_STR("spec"));
    td_json_set(arena, pod, TD_STR("spec"),
                spec ? td_json_copy(arena, spec, false) : td_json_new_object(arena));
    return pod;
}

/* ---- Pending ---- */

size_t td_pod_maker_pending(const struct td_pod_maker *maker, td_str owner_uid)
{
    const struct maker_owner *owner = td_map_get(&maker->owners, owner_uid);
    return owner ? owner->pending : 0;
}

static void maker_begin_pending(struct td_pod_maker *maker, td_str uid)
{
    struct maker_owner *owner = td_map_get(&maker->owners, uid);
    if (!owner) {
        owner = td_alloc_zero(1, sizeof(*owner) + uid.len);
        owner->uid = td_text_behind(owner + 1, uid);
        (void)td_map_put(&maker->owners, owner->uid, owner); /* the map has room for all owners */
    }
    owner->pending++;
}

static void maker_end_pending(struct td_pod_maker *maker, td_str uid)
{
    struct maker_owner *owner = td_map_get(&maker->owners, uid);
    if (owner && --owner->pending == 0) {
        (void)td_map_remove(&maker->owners, uid); /* it is there */
        td_free(owner);
    }
}

static void maker_call_free(struct maker_call *call)
{
    struct maker_call **from = call->previous ? &call->previous->next : &call->maker->first;
    *from = call->next;
    if (call->next) {
        call->next->previous = call->previous;
    }
    td_buf_done(&call->body);
    td_arena_done(&call->arena);
    td_free(call);
}

/* ---- Answers ---- */

static bool maker_is_namespace_gone(const struct td_json *status)
{
    const struct td_json *causes = td_json_get_path(status, "details.causes");
    for (const struct td_json *c = td_json_first_item(causes); c; c = c->next) {
        if (td_str_equal(td_json_text(c, "reason"), TD_STR("NamespaceTerminating"))) {
            return true;
        }
    }
    return false;
}

static void maker_read(struct maker_call *call, struct td_pod_made *made)
{
    struct td_json *answer = NULL;
    made->code = TD_DENIED;
    made->message = TD_STR("cannot decode the response");
    if (td_json_parse(&call->arena, td_buf_str(&call->body), NULL, &answer, NULL) != TD_OK) {
        return;
    }
    td_str reason = td_json_text(answer, "reason");
    if (call->status / 100 == 2) {
        made->code = TD_OK;
        made->message = TD_STR_EMPTY;
        made->pod = td_meta_text(answer, TD_STR("name"));
        return;
    }
    made->message = td_json_text(answer, "message");
    if (maker_is_namespace_gone(answer)) {
        made->code = TD_GONE;
    } else if (td_str_equal(reason, TD_STR("AlreadyExists"))) {
        made->code = TD_EXISTS;
    }
}

static void maker_finish(struct maker_call *call)
{
    struct td_pod_maker *maker = call->maker;
    struct td_pod_made made = {.owner = call->owner, .ns = call->ns, .pod = call->pod};
    maker_read(call, &made);
    maker_end_pending(maker, call->owner_uid);
    maker->options.fn(maker->options.context, &made);
    maker_call_free(call);
}

static void maker_head(void *context, int status, const struct td_api_header *headers, size_t count)
{
    struct maker_call *call = context;
    (void)headers;
    (void)count;
    call->status = status;
}

static void maker_body(void *context, td_str bytes, void (*release)(void *owner), void *owner)
{
    struct maker_call *call = context;
    (void)td_buf_append(&call->body, bytes); /* one that does not fit cannot be read: see there */
    if (release) {
        release(owner);
    }
}

static bool maker_is_full(void *context)
{
    (void)context;
    return false;
}

static void maker_end(void *context)
{
    struct maker_call *call = context;
    call->call = NULL;
    call->has_ended = true;
    if (!call->is_starting) {
        maker_finish(call);
    }
}

static const struct td_api_sink maker_sink = {
    .head = maker_head, .body = maker_body, .is_full = maker_is_full, .end = maker_end};

/* ---- Asking ---- */

/* What an event needs to know of the object that it is about. */
static struct td_json *maker_about(struct td_arena *arena, const struct td_json *owner)
{
    static const td_str kept[] = {
        TD_STR_INIT("name"),
        TD_STR_INIT("namespace"),
        TD_STR_INIT("uid"),
        TD_STR_INIT("resourceVersion"),
    };
    struct td_json *about = td_json_new_object(arena);
    td_str kind = td_json_text(owner, "kind");
    td_str version = td_json_text(owner, "apiVersion");
    td_json_set_str(arena, about, TD_STR("kind"), td_arena_copy_str(arena, kind));
    td_json_set_str(arena, about, TD_STR("apiVersion"), td_arena_copy_str(arena, version));
    struct td_json *metadata = td_json_ensure_object(arena, about, TD_STR("metadata"));
    for (size_t i = 0; i < TD_COUNT(kept); i++) {
        td_json_set_str(arena, metadata, kept[i],
                        td_arena_copy_str(arena, td_meta_text(owner, kept[i])));
    }
    return about;
}

void td_pod_maker_create(struct td_pod_maker *maker, const struct td_json *owner,
                         const struct td_json *pod)
{
    struct maker_call *call = td_alloc_zero(1, sizeof(*call));
    call->maker = maker;
    call->next = maker->first;
    if (maker->first) {
        maker->first->previous = call;
    }
    maker->first = call;
    td_arena_init(&call->arena, TD_TREE_ARENA_BYTES_MAX);
    td_buf_init(&call->body, TD_STREAM_BYTES_MAX);
    call->owner = maker_about(&call->arena, owner);
    call->owner_uid = td_meta_text(call->owner, TD_STR("uid"));
    call->ns = td_meta_text(call->owner, TD_STR("namespace"));
    call->pod = td_arena_copy_str(&call->arena, td_meta_text(pod, TD_STR("name")));
    maker_begin_pending(maker, call->owner_uid);
    const struct td_pod_maker_options *options = &maker->options;
    td_str group = options->group_version.len > 0 ? options->group_version : TD_STR("/api/v1");
    td_str plural = options->plural.len > 0 ? options->plural : TD_STR("pods");
    static const td_str groups[] = {TD_STR_INIT("system:masters")};
    const struct td_api_request request = {
        .method = TD_STR("POST"),
        .target = td_arena_format(&call->arena, "%.*s/namespaces/%.*s/%.*s", TD_STR_ARG(group),
                                  TD_STR_ARG(call->ns), TD_STR_ARG(plural)),
        .accept = TD_STR("application/json"),
        .content_type = TD_STR("application/json"),
        .user_agent = TD_STR("kube-controller-manager"),
        .body = td_json_line(&call->arena, pod),
        .user = {.name = maker->options.user, .groups = groups, .group_count = 1},
    };
    call->is_starting = true;
    call->call = td_api_start(maker->options.api, &request, &maker_sink, call);
    call->is_starting = false;
    if (call->has_ended) {
        maker_finish(call);
    }
}

struct td_pod_maker *td_pod_maker_new(const struct td_pod_maker_options *options)
{
    struct td_pod_maker *maker = td_alloc_zero(1, sizeof(*maker));
    maker->options = *options;
    td_map_init(&maker->owners, TD_COLLECTION_OBJECTS_MAX);
    return maker;
}

void td_pod_maker_free(struct td_pod_maker *maker)
{
    if (!maker) {
        return;
    }
    while (maker->first) {
        struct maker_call *call = maker->first;
        if (call->call) {
            td_api_cancel(call->call);
        }
        maker_end_pending(maker, call->owner_uid);
        maker_call_free(call);
    }
    td_map_done(&maker->owners);
    td_free(maker);
}
