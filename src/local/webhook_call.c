/*
 * Asking one webhook: an AdmissionReview over HTTPS, to a URL or to a Service. A Service has no
 * network behind it here, so its address is taken from its endpoints (or its externalName), while
 * its certificate must be for NAME.NAMESPACE.svc as everywhere. Connections are kept for the next
 * question to the same address under the same authority.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "kube/kubeconfig.h"
#include "kube/paths.h"
#include "kube/transport.h"
#include "kube/transport_http.h"
#include "local/admission_private.h"
#include "local/store.h"

/* A server that webhooks live on. */
struct webhook_peer {
    struct td_arena arena; /* of key and config */
    td_str key;
    struct td_kube_config config;
    struct td_transport *transport;
    size_t calls; /* in progress */
};

struct td_webhook_caller {
    struct td_api *api;
    struct td_map peers; /* by key */
    uint64_t asked;      /* for the uid of a review */
};

struct td_webhook_call {
    struct webhook_peer *peer;
    struct td_call *call;
    struct td_arena *arena; /* of the request */
    td_webhook_fn done;
    void *context;
    td_str uid;
    td_str url; /* for messages */
    int status;
    struct td_buf body;
};

struct td_webhook_caller *td_webhook_caller_new(struct td_api *api)
{
    struct td_webhook_caller *caller = td_alloc_zero(1, sizeof(*caller));
    caller->api = api;
    td_map_init(&caller->peers, TD_WEBHOOK_PEERS_MAX);
    return caller;
}

static void peer_free(struct webhook_peer *peer)
{
    if (peer->transport) {
        peer->transport->ops->free(peer->transport);
    }
    td_arena_done(&peer->arena);
    td_free(peer);
}

void td_webhook_caller_free(struct td_webhook_caller *caller)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    if (!caller) {
        return;
    }
    while ((entry = td_map_next(&caller->peers, &position))) {
        peer_free(entry->value);
    }
    td_map_done(&caller->peers);
    td_free(caller);
}

/* ---- Where ---- */

struct webhook_place {
    td_str host;
    uint16_t port;
    td_str path;
    td_str server_name; /* that the certificate is for; empty: the host */
    td_str ca_pem;
    td_str url; /* as people know it */
};

/* "https://host:port/path" */
static int place_of_url(struct td_arena *arena, td_str url, struct webhook_place *ret,
                        struct td_error *err)
{
    td_str scheme = TD_STR("https://");
    if (!td_str_starts_with(url, scheme)) {
        return td_error_set(err, TD_INVALID, "the URL '%.*s' does not begin with https://",
                            TD_STR_ARG(url));
    }
    td_str rest = td_str_slice(url, scheme.len, url.len);
    size_t slash = td_str_find(rest, '/', 0);
    td_str authority = td_str_slice(rest, 0, slash);
    ret->path = slash < rest.len ? td_str_slice(rest, slash, rest.len) : TD_STR("/");
    ret->url = url;
    size_t colon = authority.len;
    while (colon > 0 && authority.ptr[colon - 1] != ':' && authority.ptr[colon - 1] != ']') {
        colon--;
    }
    bool has_port = colon > 0 && authority.ptr[colon - 1] == ':';
    int64_t port = 443;
    if (has_port && (!td_str_to_int64(td_str_slice(authority, colon, authority.len), &port) ||
                     port < 1 || port > 65535)) {
        return td_error_set(err, TD_INVALID, "the URL '%.*s' has no valid port", TD_STR_ARG(url));
    }
    td_str host = has_port ? td_str_slice(authority, 0, colon - 1) : authority;
    if (td_str_starts_with(host, TD_STR("[")) && host.len > 2) {
        host = td_str_slice(host, 1, host.len - 1);
    }
    ret->host = td_arena_copy_str(arena, host);
    ret->port = (uint16_t)port;
    return TD_OK;
}

static struct td_json *place_read(struct td_webhook_caller *caller, struct td_arena *arena,
                                  const char *key, td_str ns, td_str name)
{
    const struct td_collection *collection =
        td_store_find(td_api_store(caller->api), td_str_from(key));
    const struct td_stored *stored = collection ? td_collection_get(collection, ns, name) : NULL;
    struct td_json *tree = NULL;
    if (stored) {
        (void)td_json_parse(arena, stored->json, &(struct td_json_options){.copy_strings = true},
                            &tree, NULL); /* what we stored can be read */
    }
    return tree;
}

/* The port that the endpoints have for the Service's port: by its name, else the only one. */
static int64_t place_endpoint_port(const struct td_json *service, const struct td_json *subset,
                                   int64_t port)
{
    const struct td_json *declared = td_json_get_path(service, "spec.ports");
    td_str name = TD_STR_EMPTY;
    int64_t target = port;
    for (const struct td_json *p = declared ? declared->first : NULL; p; p = p->next) {
        if (td_json_get_int64(p, TD_STR("port"), 0) == port) {
            name = td_json_get_str(p, TD_STR("name"), TD_STR_EMPTY);
            target = td_json_get_int64(p, TD_STR("targetPort"), port);
        }
    }
    const struct td_json *ports = td_json_get(subset, TD_STR("ports"));
    for (const struct td_json *p = ports ? ports->first : NULL; p; p = p->next) {
        if (ports->count == 1 ||
            td_str_equal(td_json_get_str(p, TD_STR("name"), TD_STR_EMPTY), name)) {
            return td_json_get_int64(p, TD_STR("port"), target);
        }
    }
    return target;
}

static int place_of_service(struct td_webhook_caller *caller, struct td_arena *arena,
                            const struct td_json *reference, struct webhook_place *ret,
                            struct td_error *err)
{
    td_str ns = td_json_get_str(reference, TD_STR("namespace"), TD_STR_EMPTY);
    td_str name = td_json_get_str(reference, TD_STR("name"), TD_STR_EMPTY);
    int64_t port = td_json_get_int64(reference, TD_STR("port"), 443);
    const struct td_json *service = place_read(caller, arena, "services", ns, name);
    const struct td_json *endpoints = place_read(caller, arena, "endpoints", ns, name);
    const struct td_json *subsets = td_json_get(endpoints, TD_STR("subsets"));
    const struct td_json *subset = subsets ? subsets->first : NULL;
    const struct td_json *addresses = td_json_get(subset, TD_STR("addresses"));
    td_str external =
        td_json_get_str(td_json_get(service, TD_STR("spec")), TD_STR("externalName"), TD_STR_EMPTY);
    if (!service) {
        return td_error_set(err, TD_NOT_FOUND, "service \"%.*s\" not found", TD_STR_ARG(name));
    }
    if (external.len > 0) {
        ret->host = external;
    } else if (addresses && addresses->first) {
        ret->host = td_json_get_str(addresses->first, TD_STR("ip"), TD_STR_EMPTY);
        port = place_endpoint_port(service, subset, port);
    } else {
        return td_error_set(err, TD_NOT_FOUND, "no endpoints available for service \"%.*s\"",
                            TD_STR_ARG(name));
    }
    ret->port = (uint16_t)port;
    ret->path = td_json_get_str(reference, TD_STR("path"), TD_STR("/"));
    ret->server_name = td_arena_format(arena, "%.*s.%.*s.svc", TD_STR_ARG(name), TD_STR_ARG(ns));
    ret->url = td_arena_format(arena, "https://%.*s:%lld%.*s", TD_STR_ARG(ret->server_name),
                               (long long)td_json_get_int64(reference, TD_STR("port"), 443),
                               TD_STR_ARG(ret->path));
    return TD_OK;
}

static int place_find(struct td_webhook_caller *caller, const struct td_webhook *webhook,
                      struct td_arena *arena, struct webhook_place *ret, struct td_error *err)
{
    const struct td_json *config = td_json_get(webhook->tree, TD_STR("clientConfig"));
    const struct td_json *service = td_json_get(config, TD_STR("service"));
    td_str bundle = td_json_get_str(config, TD_STR("caBundle"), TD_STR_EMPTY);
    if (!td_base64_read(arena, bundle, TD_BASE64_STANDARD, &ret->ca_pem)) {
        return td_error_set(err, TD_INVALID, "its caBundle is not base64");
    }
    if (service) {
        return place_of_service(caller, arena, service, ret, err);
    }
    return place_of_url(arena, td_json_get_str(config, TD_STR("url"), TD_STR_EMPTY), ret, err);
}

/* ---- Connections ---- */

/* Drops the peers that nobody talks to, when there is no room for another. */
static void caller_make_room(struct td_webhook_caller *caller)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    if (caller->peers.count < TD_WEBHOOK_PEERS_MAX) {
        return;
    }
    while ((entry = td_map_next(&caller->peers, &position))) {
        struct webhook_peer *peer = entry->value;
        if (peer->calls == 0) {
            (void)td_map_remove(&caller->peers, peer->key); /* it was there */
            peer_free(peer);
        }
    }
}

static int caller_peer(struct td_webhook_caller *caller, const struct webhook_place *place,
                       struct webhook_peer **ret, struct td_error *err)
{
    td_auto_arena scratch;
    td_arena_init(&scratch, TD_TREE_ARENA_BYTES_MAX);
    td_str key = td_arena_format(&scratch, "%.*s %u %.*s %.*s", TD_STR_ARG(place->host),
                                 (unsigned)place->port, TD_STR_ARG(place->server_name),
                                 TD_STR_ARG(place->ca_pem));
    struct webhook_peer *peer = td_map_get(&caller->peers, key);
    if (peer) {
        *ret = peer;
        return TD_OK;
    }
    caller_make_room(caller);
    peer = td_alloc_zero(1, sizeof(*peer));
    td_arena_init(&peer->arena, TD_TREE_ARENA_BYTES_MAX);
    bool is_six = td_str_find(place->host, ':', 0) < place->host.len;
    peer->key = td_arena_copy_str(&peer->arena, key);
    peer->config = (struct td_kube_config){
        .source = TD_STR("webhook"),
        .is_tls = true,
        .host = td_arena_copy_str(&peer->arena, place->host),
        .port = place->port,
        .server =
            td_arena_format(&peer->arena, "https://%s%.*s%s:%u", is_six ? "[" : "",
                            TD_STR_ARG(place->host), is_six ? "]" : "", (unsigned)place->port),
        .ca_pem = td_arena_copy_str(&peer->arena, place->ca_pem),
        .tls_server_name = td_arena_copy_str(&peer->arena, place->server_name),
        .is_compression_disabled = true,
    };
    const struct td_transport_http_options options = {.loop = td_api_loop(caller->api),
                                                      .config = &peer->config};
    int code = td_transport_http_new(&options, &peer->transport, err);
    if (code == TD_OK && td_map_put(&caller->peers, peer->key, peer) != TD_OK) {
        code =
            td_error_set(err, TD_LIMIT, "more than %d servers of webhooks", TD_WEBHOOK_PEERS_MAX);
    }
    if (code != TD_OK) {
        peer_free(peer);
        return code;
    }
    *ret = peer;
    return TD_OK;
}

/* ---- The review ---- */

static void review_kind(struct td_arena *arena, struct td_json *request, const char *key,
                        const struct td_resource_at *at, bool is_resource)
{
    struct td_json *gvk = td_json_ensure_object(arena, request, td_str_from(key));
    td_json_set_str(arena, gvk, TD_STR("group"), at->resource->group);
    td_json_set_str(arena, gvk, TD_STR("version"), at->resource->versions[at->version].name);
    td_json_set_str(arena, gvk, is_resource ? TD_STR("resource") : TD_STR("kind"),
                    is_resource ? at->resource->plural : at->resource->kind);
}

static void review_add_user(struct td_arena *arena, struct td_json *request,
                            const struct td_api_user *user)
{
    struct td_json *info = td_json_ensure_object(arena, request, TD_STR("userInfo"));
    td_json_set_str(arena, info, TD_STR("username"), user->name);
    if (user->uid.len > 0) {
        td_json_set_str(arena, info, TD_STR("uid"), user->uid);
    }
    struct td_json *groups = td_json_new_array(arena);
    for (size_t i = 0; i < user->group_count; i++) {
        td_json_append(groups, td_json_new_string(arena, user->groups[i]));
    }
    td_json_set(arena, info, TD_STR("groups"), groups);
}

/* apiVersion and kind are part of an object in a review, whatever form it has here. */
static struct td_json *review_object(const struct td_admission_request *admission,
                                     const struct td_json *object)
{
    if (!object) {
        return td_json_new_null(admission->arena);
    }
    struct td_json *copy = td_json_copy(admission->arena, object, false);
    if (admission->subresource.len == 0 || !td_json_get(copy, TD_STR("kind"))) {
        const struct td_resource_at *at = &admission->at;
        td_json_set_str(admission->arena, copy, TD_STR("kind"), at->resource->kind);
        td_json_set_str(admission->arena, copy, TD_STR("apiVersion"),
                        at->resource->versions[at->version].api_version);
    }
    return copy;
}

static struct td_json *review_new(const struct td_admission_request *admission, td_str uid)
{
    struct td_arena *arena = admission->arena;
    struct td_json *review = td_json_new_object(arena);
    td_json_set_str(arena, review, TD_STR("kind"), TD_STR("AdmissionReview"));
    td_json_set_str(arena, review, TD_STR("apiVersion"), TD_STR("admission.k8s.io/v1"));
    struct td_json *request = td_json_ensure_object(arena, review, TD_STR("request"));
    td_json_set_str(arena, request, TD_STR("uid"), uid);
    review_kind(arena, request, "kind", &admission->at, false);
    review_kind(arena, request, "resource", &admission->at, true);
    review_kind(arena, request, "requestKind", &admission->at, false);
    review_kind(arena, request, "requestResource", &admission->at, true);
    if (admission->subresource.len > 0) {
        td_json_set_str(arena, request, TD_STR("subResource"), admission->subresource);
        td_json_set_str(arena, request, TD_STR("requestSubResource"), admission->subresource);
    }
    if (admission->name.len > 0) {
        td_json_set_str(arena, request, TD_STR("name"), admission->name);
    }
    if (admission->ns.len > 0) {
        td_json_set_str(arena, request, TD_STR("namespace"), admission->ns);
    }
    td_json_set_str(arena, request, TD_STR("operation"), td_str_from(admission->operation));
    review_add_user(arena, request, admission->user);
    td_json_set(arena, request, TD_STR("object"), review_object(admission, admission->object));
    td_json_set(arena, request, TD_STR("oldObject"), review_object(admission, admission->old));
    td_json_set(arena, request, TD_STR("dryRun"), td_json_new_bool(arena, admission->is_dry_run));
    td_json_set(arena, request, TD_STR("options"),
                admission->options ? td_json_copy(arena, admission->options, false)
                                   : td_json_new_null(arena));
    return review;
}

/* ---- The answer ---- */

static void answer_fail(struct td_webhook_answer *answer, td_str message)
{
    *answer = (struct td_webhook_answer){.is_failed = true, .message = message};
}

static void answer_read_patch(struct td_webhook_call *call, const struct td_json *response,
                              struct td_webhook_answer *answer)
{
    td_str text = td_json_get_str(response, TD_STR("patch"), TD_STR_EMPTY);
    td_str bytes;
    if (text.len == 0) {
        return;
    }
    if (!td_str_equal(td_json_get_str(response, TD_STR("patchType"), TD_STR_EMPTY),
                      TD_STR("JSONPatch"))) {
        answer_fail(answer, TD_STR("the answer has a patch that is no JSONPatch"));
    } else if (!td_base64_read(call->arena, text, TD_BASE64_STANDARD, &bytes) ||
               td_json_parse(call->arena, bytes, NULL, &answer->patch, NULL) != TD_OK) {
        answer_fail(answer, TD_STR("the patch of the answer cannot be read"));
    }
}

static void answer_read(struct td_webhook_call *call, struct td_webhook_answer *answer)
{
    td_str text = td_arena_copy_str(call->arena, td_buf_str(&call->body));
    struct td_json *review;
    struct td_error err = TD_ERROR_INIT;
    if (call->status < 200 || call->status > 299) {
        answer_fail(answer, td_arena_format(call->arena, "the server answered with status %d",
                                            call->status));
        return;
    }
    if (call->body.is_full || td_json_parse(call->arena, text, NULL, &review, &err) != TD_OK) {
        answer_fail(answer, td_arena_format(call->arena, "the answer is no AdmissionReview: %s",
                                            err.message));
        return;
    }
    const struct td_json *response = td_json_get(review, TD_STR("response"));
    if (!td_str_equal(td_json_get_str(response, TD_STR("uid"), TD_STR_EMPTY), call->uid)) {
        answer_fail(answer, TD_STR("the answer's uid is not that of the question"));
        return;
    }
    const struct td_json *status = td_json_get(response, TD_STR("status"));
    *answer = (struct td_webhook_answer){
        .is_allowed = td_json_get_bool(response, TD_STR("allowed"), false),
        .status = (int)td_json_get_int64(status, TD_STR("code"), 0),
        .reason = td_json_get_str(status, TD_STR("reason"), TD_STR_EMPTY),
        .message = td_json_get_str(status, TD_STR("message"), TD_STR_EMPTY),
        .warnings = td_json_get(response, TD_STR("warnings")),
    };
    answer_read_patch(call, response, answer);
}

static void call_free(struct td_webhook_call *call)
{
    call->peer->calls--;
    td_buf_done(&call->body);
    td_free(call);
}

static void call_head(void *context, const struct td_call_head *head)
{
    struct td_webhook_call *call = context;
    call->status = head->status;
}

static void call_body(void *context, td_str bytes)
{
    struct td_webhook_call *call = context;
    (void)td_buf_append(&call->body, bytes); /* a full buffer is seen at the end */
}

static void call_end(void *context, int code, const struct td_error *err)
{
    struct td_webhook_call *call = context;
    struct td_webhook_answer answer;
    if (code == TD_OK) {
        answer_read(call, &answer);
    } else {
        answer_fail(&answer, td_arena_format(
                                 call->arena, "Post \"%.*s\": %s", TD_STR_ARG(call->url),
                                 code == TD_TIMEOUT ? "context deadline exceeded" : err->message));
    }
    td_webhook_fn done = call->done;
    void *user = call->context;
    call_free(call);
    done(user, &answer);
}

struct td_webhook_call *td_webhook_ask(struct td_webhook_caller *caller,
                                       const struct td_webhook *webhook,
                                       const struct td_admission_request *request,
                                       td_webhook_fn done, void *context)
{
    static const struct td_call_events events = {
        .head = call_head, .body = call_body, .end = call_end};
    struct td_arena *arena = request->arena;
    struct webhook_place place = {.server_name = TD_STR_EMPTY};
    struct webhook_peer *peer;
    struct td_error err = TD_ERROR_INIT;
    if (place_find(caller, webhook, arena, &place, &err) != TD_OK ||
        caller_peer(caller, &place, &peer, &err) != TD_OK) {
        struct td_webhook_answer answer;
        answer_fail(&answer, td_arena_copy_str(arena, td_str_from(err.message)));
        done(context, &answer);
        return NULL;
    }
    struct td_webhook_call *call = td_alloc_zero(1, sizeof(*call));
    *call = (struct td_webhook_call){
        .peer = peer, .arena = arena, .done = done, .context = context, .url = place.url};
    call->uid = td_arena_format(arena, "%08llx-0000-4000-8000-000000000000",
                                (unsigned long long)++caller->asked);
    td_buf_init(&call->body, TD_WEBHOOK_ANSWER_BYTES_MAX);
    td_auto_buf body;
    td_buf_init(&body, TD_JSON_BYTES_MAX);
    td_json_write(review_new(request, call->uid), &(struct td_json_format){0}, &body);
    const struct td_call_request ask = {
        .method = TD_STR("POST"),
        .path = td_arena_format(arena, "%.*s%stimeout=%llds", TD_STR_ARG(place.path),
                                td_str_find(place.path, '?', 0) < place.path.len ? "&" : "?",
                                (long long)webhook->timeout_seconds),
        .content_type = TD_STR("application/json"),
        .body = td_buf_str(&body),
        .deadline = webhook->timeout_seconds * TD_SECOND,
    };
    peer->calls++;
    call->call = peer->transport->ops->start(peer->transport, &ask, &events, call);
    return call;
}

void td_webhook_cancel(struct td_webhook_call *call)
{
    call->peer->transport->ops->cancel(call->call);
    call_free(call);
}
