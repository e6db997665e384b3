/*
 * Asking one webhook: an AdmissionReview over HTTPS, to a URL or to a Service. A Service has no
 * network behind it here, so its address is taken from its endpoints (or its externalName), while
 * its certificate must be for NAME.NAMESPACE.svc as everywhere. Connections are kept for the next
 * question to the same address under the same authority. A webhook that lives in this process is
 * asked by a call of its function, in the next turn of the loop.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/loop.h"
#include "kube/client/transport.h"
#include "kube/client/transport_http.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "kube/meta.h"
#include "kube/schema/check.h"
#include "kube/schema/schema.h"
#include "local/admission/admission_private.h"
#include "local/api/api_private.h"
#include "local/engine/faults.h"
#include "local/store/store.h"

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
    struct webhook_peer *peer; /* NULL: in this process */
    struct td_call *call;
    struct td_api *api;
    struct td_timer *turn;  /* of one in this process */
    td_str review;          /* likewise */
    struct td_arena *arena; /* of the request */
    td_webhook_fn done;
    void *context;
    td_str uid;
    td_str url; /* for messages */
    bool is_mutating;
    bool is_beta; /* asked in admission.k8s.io/v1beta1, whose answers are read less strictly */
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
    if (!caller) {
        return;
    }
    for (struct td_map_walk at = {.map = &caller->peers}; td_map_step(&at);) {
        peer_free(at.value);
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
    td_str url; /* as shown in messages */
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
    const struct td_stored *stored =
        td_store_get(td_api_store(caller->api), td_str_from(key), ns, name);
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
    for (const struct td_json *p = td_json_first_item(declared); p; p = p->next) {
        if (td_json_get_int64(p, TD_STR("port"), 0) == port) {
            name = td_json_text(p, "name");
            target = td_json_get_int64(p, TD_STR("targetPort"), port);
        }
    }
    const struct td_json *ports = td_json_get(subset, TD_STR("ports"));
    for (const struct td_json *p = td_json_first_item(ports); p; p = p->next) {
        if (ports->count == 1 || td_str_equal(td_json_text(p, "name"), name)) {
            return td_json_get_int64(p, TD_STR("port"), target);
        }
    }
    return target;
}

/* The first subset that has an address. */
static const struct td_json *place_subset(const struct td_json *endpoints)
{
    const struct td_json *subsets = td_json_get(endpoints, TD_STR("subsets"));
    for (const struct td_json *s = td_json_first_item(subsets); s; s = s->next) {
        const struct td_json *addresses = td_json_get(s, TD_STR("addresses"));
        if (addresses && td_json_first_item(addresses)) {
            return s;
        }
    }
    return NULL;
}

/* The names are set even when nothing answers to them, for the message. */
static int place_of_service(struct td_webhook_caller *caller, struct td_arena *arena,
                            const struct td_json *reference, struct webhook_place *ret,
                            struct td_error *err)
{
    td_str ns = td_json_text(reference, "namespace");
    td_str name = td_json_text(reference, "name");
    int64_t port = td_json_get_int64(reference, TD_STR("port"), 443);
    ret->path = td_json_get_str(reference, TD_STR("path"), TD_STR("/"));
    ret->server_name = td_arena_format(arena, "%.*s.%.*s.svc", TD_STR_ARG(name), TD_STR_ARG(ns));
    ret->url = td_arena_format(arena, "https://%.*s:%lld%.*s", TD_STR_ARG(ret->server_name),
                               (long long)port, TD_STR_ARG(ret->path));
    const struct td_json *service = place_read(caller, arena, "services", ns, name);
    const struct td_json *endpoints = place_read(caller, arena, "endpoints", ns, name);
    const struct td_json *subset = place_subset(endpoints);
    td_str external = td_json_text(td_json_get(service, TD_STR("spec")), "externalName");
    if (!service) {
        return td_error_set(err, TD_NOT_FOUND, "service \"%.*s\" not found", TD_STR_ARG(name));
    }
    if (external.len > 0) {
        ret->host = external;
    } else if (subset) {
        const struct td_json *addresses = td_json_get(subset, TD_STR("addresses"));
        ret->host = td_json_text(td_json_first_item(addresses), "ip");
        port = place_endpoint_port(service, subset, port);
    } else {
        return td_error_set(err, TD_NOT_FOUND, "no endpoints available for service \"%.*s\"",
                            TD_STR_ARG(name));
    }
    if (port < 1 || port > 65535) {
        return td_error_set(err, TD_INVALID, "service \"%.*s\" has no valid port",
                            TD_STR_ARG(name));
    }
    ret->port = (uint16_t)port;
    return TD_OK;
}

static int place_find(struct td_webhook_caller *caller, const struct td_webhook_entry *webhook,
                      struct td_arena *arena, struct webhook_place *ret, struct td_error *err)
{
    const struct td_json *config = td_json_get(webhook->tree, TD_STR("clientConfig"));
    const struct td_json *service = td_json_get(config, TD_STR("service"));
    td_str bundle = td_json_text(config, "caBundle");
    if (!td_base64_read(arena, bundle, TD_BASE64_STANDARD, &ret->ca_pem)) {
        return td_error_set(err, TD_INVALID, "its caBundle is not base64");
    }
    if (service) {
        return place_of_service(caller, arena, service, ret, err);
    }
    return place_of_url(arena, td_json_text(config, "url"), ret, err);
}

/* ---- Connections ---- */

/* Drops idle peers when there is no room for another. */
static void caller_make_room(struct td_webhook_caller *caller)
{
    if (caller->peers.count < TD_WEBHOOK_PEERS_MAX) {
        return;
    }
    for (struct td_map_walk at = {.map = &caller->peers}; td_map_step(&at);) {
        struct webhook_peer *peer = at.value;
        if (peer->calls == 0) {
            (void)td_map_remove(&caller->peers, peer->key); /* it was there */
            peer_free(peer);
        }
    }
}

static int caller_peer(struct td_webhook_caller *caller, const struct webhook_place *place,
                       struct webhook_peer **ret, struct td_error *err)
{
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
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

/* `name_key` is "kind" or "resource". */
static void review_add_name(struct td_arena *arena, struct td_json *request, const char *key,
                            td_str group, td_str version, td_str name_key, td_str name)
{
    struct td_json *gvk = td_json_ensure_object(arena, request, td_str_from(key));
    td_json_set_str(arena, gvk, TD_STR("group"), group);
    td_json_set_str(arena, gvk, TD_STR("version"), version);
    td_json_set_str(arena, gvk, name_key, name);
}

/* Kind and resource in one version. What is written to a subresource may have a kind of its own:
 * a Scale. */
static void review_add_names(const struct td_admission_request *admission, struct td_json *request,
                             const char *const keys[2], size_t version)
{
    const struct td_resource *resource = admission->at.resource;
    const struct td_json *object = admission->object ? admission->object : admission->old;
    td_str name = resource->versions[version].name;
    td_str kind = resource->kind;
    td_str api_version = resource->versions[version].api_version;
    if (admission->subresource.len > 0) {
        kind = td_json_get_str(object, TD_STR("kind"), kind);
        api_version = td_json_get_str(object, TD_STR("apiVersion"), api_version);
    }
    struct td_group_version of = td_group_version_parse(api_version);
    review_add_name(admission->arena, request, keys[0], of.group, of.version, TD_STR("kind"), kind);
    review_add_name(admission->arena, request, keys[1], resource->group, name, TD_STR("resource"),
                    resource->plural);
}

static void review_add_user(struct td_arena *arena, struct td_json *request,
                            const struct td_api_user *user)
{
    struct td_json *info = td_json_ensure_object(arena, request, TD_STR("userInfo"));
    td_json_set_str(arena, info, TD_STR("username"), user->name);
    td_json_set_text(arena, info, TD_STR("uid"), user->uid);
    struct td_json *groups = td_json_new_array(arena);
    for (size_t i = 0; i < user->group_count; i++) {
        td_json_append(groups, td_json_new_string(arena, user->groups[i]));
    }
    td_json_set(arena, info, TD_STR("groups"), groups);
}

/* apiVersion and kind are part of an object in a review, whatever form it has here. */
static struct td_json *review_object(const struct td_admission_request *admission, size_t version,
                                     const struct td_json *object)
{
    if (!object) {
        return td_json_new_null(admission->arena);
    }
    struct td_json *copy = td_json_copy(admission->arena, object, false);
    if (admission->subresource.len == 0 || !td_json_get(copy, TD_STR("kind"))) {
        const struct td_resource *resource = admission->at.resource;
        td_json_set_str(admission->arena, copy, TD_STR("kind"), resource->kind);
        td_json_set_str(admission->arena, copy, TD_STR("apiVersion"),
                        resource->versions[version].api_version);
    }
    return copy;
}

static struct td_json *review_options(const struct td_admission_request *admission)
{
    struct td_arena *arena = admission->arena;
    if (!admission->options_kind) {
        return td_json_new_null(arena);
    }
    struct td_json *options = td_json_new_object(arena);
    td_json_set_str(arena, options, TD_STR("kind"), td_str_from(admission->options_kind));
    td_json_set_str(arena, options, TD_STR("apiVersion"), TD_STR("meta.k8s.io/v1"));
    if (admission->is_dry_run) {
        struct td_json *all = td_json_new_array(arena);
        td_json_append(all, td_json_new_string(arena, TD_STR("All")));
        td_json_set(arena, options, TD_STR("dryRun"), all);
    }
    td_json_set_text(arena, options, TD_STR("fieldManager"), admission->field_manager);
    td_json_set_text(arena, options, TD_STR("fieldValidation"), admission->field_validation);
    return options;
}

static struct td_json *review_new(const struct td_admission_request *admission,
                                  const struct td_webhook_entry *webhook, td_str uid, bool is_beta)
{
    static const char *const keys[2][2] = {{"kind", "resource"},
                                           {"requestKind", "requestResource"}};
    struct td_arena *arena = admission->arena;
    struct td_json *review = td_json_new_object(arena);
    td_json_set_str(arena, review, TD_STR("kind"), TD_STR("AdmissionReview"));
    td_json_set_str(arena, review, TD_STR("apiVersion"),
                    is_beta ? TD_STR("admission.k8s.io/v1beta1") : TD_STR("admission.k8s.io/v1"));
    struct td_json *request = td_json_ensure_object(arena, review, TD_STR("request"));
    td_json_set_str(arena, request, TD_STR("uid"), uid);
    review_add_names(admission, request, keys[0], webhook->version);
    review_add_names(admission, request, keys[1], admission->at.version);
    if (admission->subresource.len > 0) {
        td_json_set_str(arena, request, TD_STR("subResource"), admission->subresource);
        td_json_set_str(arena, request, TD_STR("requestSubResource"), admission->subresource);
    }
    td_json_set_text(arena, request, TD_STR("name"), admission->name);
    bool is_namespace = td_str_equal(admission->at.resource->collection, TD_STR("namespaces"));
    td_str ns = is_namespace ? admission->name : admission->ns; /* of a namespace: itself */
    td_json_set_text(arena, request, TD_STR("namespace"), ns);
    td_json_set_str(arena, request, TD_STR("operation"), td_str_from(admission->operation));
    review_add_user(arena, request, admission->user);
    td_json_set(arena, request, TD_STR("object"),
                review_object(admission, webhook->version, admission->object));
    td_json_set(arena, request, TD_STR("oldObject"),
                review_object(admission, webhook->version, admission->old));
    td_json_set_bool(arena, request, TD_STR("dryRun"), admission->is_dry_run);
    td_json_set(arena, request, TD_STR("options"), review_options(admission));
    return review;
}

/* The first version of reviews on its list that we know. */
static bool review_is_beta(const struct td_webhook_entry *webhook)
{
    const struct td_json *list = td_json_get(webhook->tree, TD_STR("admissionReviewVersions"));
    for (const struct td_json *v = td_json_first_item(list); v; v = v->next) {
        bool is_text = v->type == TD_JSON_TYPE_STRING;
        if (is_text && td_str_equal(v->text, TD_STR("v1"))) {
            return false;
        }
        if (is_text && td_str_equal(v->text, TD_STR("v1beta1"))) {
            return true;
        }
    }
    return false;
}

/* ---- The answer ---- */

static void answer_fail(struct td_webhook_answer *answer, td_str message)
{
    *answer = (struct td_webhook_answer){.is_failed = true, .message = message};
}

static void answer_is_invalid(struct td_webhook_call *call, struct td_webhook_answer *answer,
                              const char *why)
{
    answer_fail(answer, td_arena_format(call->arena, "received invalid webhook response: %s", why));
}

/* False when the answer is no use. */
static bool answer_read_patch(struct td_webhook_call *call, const struct td_json *response,
                              struct td_webhook_answer *answer)
{
    const struct td_json *type = td_json_get(response, TD_STR("patchType"));
    td_str text = td_json_text(response, "patch");
    td_str bytes;
    if (!call->is_mutating && !call->is_beta && (text.len > 0 || type)) {
        answer_is_invalid(call, answer,
                          text.len > 0 ? "validating webhook may not return response.patch"
                                       : "validating webhook may not return response.patchType");
        return false;
    }
    if (!call->is_mutating || (text.len == 0 && !type)) {
        return true;
    }
    if (!call->is_beta && (text.len == 0 || !type)) {
        answer_is_invalid(call, answer,
                          type ? "webhook returned response.patchType but not response.patch"
                               : "webhook returned response.patch but not response.patchType");
        return false;
    }
    bool is_known = call->is_beta || (type->type == TD_JSON_TYPE_STRING &&
                                      td_str_equal(type->text, TD_STR("JSONPatch")));
    struct td_error err = TD_ERROR_INIT;
    if (!is_known) {
        answer_fail(answer, TD_STR("unsupported patch type: only JSONPatch is known"));
        return false;
    }
    bool is_base64 = td_base64_read(call->arena, text, TD_BASE64_STANDARD, &bytes);
    td_assert(is_base64); /* it was decoded as an AdmissionReview */
    if (td_json_parse(call->arena, bytes, NULL, &answer->patch, &err) != TD_OK ||
        !td_json_is(answer->patch, TD_JSON_TYPE_ARRAY)) {
        answer_fail(answer, td_arena_format(call->arena,
                                            "received undecodable patch in webhook response: %s",
                                            err.code != TD_OK ? err.message : "not an array"));
        return false;
    }
    return true;
}

/* The response of a review, or NULL when it is no use and *answer says why. */
static const struct td_json *answer_response(struct td_webhook_call *call,
                                             const struct td_json *review,
                                             struct td_webhook_answer *answer)
{
    const struct td_json *response = td_json_get(review, TD_STR("response"));
    td_str uid = td_json_text(response, "uid");
    td_str kind = td_json_text(review, "kind");
    td_str version = td_json_text(review, "apiVersion");
    if (!td_json_is(response, TD_JSON_TYPE_OBJECT)) {
        answer_is_invalid(call, answer, "webhook response was absent");
        return NULL;
    }
    if (!call->is_beta && !td_str_equal(uid, call->uid)) {
        td_str why = td_arena_format(call->arena, "expected response.uid=\"%.*s\", got \"%.*s\"",
                                     TD_STR_ARG(call->uid), TD_STR_ARG(uid));
        answer_is_invalid(call, answer, why.ptr);
        return NULL;
    }
    if (!call->is_beta && (!td_str_equal(kind, TD_STR("AdmissionReview")) ||
                           !td_str_equal(version, TD_STR("admission.k8s.io/v1")))) {
        td_str why = td_arena_format(
            call->arena,
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got %.*s, "
            "Kind=%.*s",
            TD_STR_ARG(version), TD_STR_ARG(kind));
        answer_is_invalid(call, answer, why.ptr);
        return NULL;
    }
    return response;
}

/* Both versions of reviews have the same shape. */
static int answer_decode(struct td_webhook_call *call, td_str text, struct td_json **ret,
                         struct td_error *err)
{
    const struct td_schema_type *type =
        td_schema_find(TD_STR("admission.k8s.io/v1"), TD_STR("AdmissionReview"));
    int code = td_json_parse(call->arena, text, NULL, ret, err);
    if (code != TD_OK) {
        return code;
    }
    return td_json_is(*ret, TD_JSON_TYPE_OBJECT) ? td_check_types(type, *ret, NULL, err)
                                                 : td_error_set(err, TD_INVALID, "not an object");
}

static void answer_read(struct td_webhook_call *call, struct td_webhook_answer *answer)
{
    td_str text = td_arena_copy_str(call->arena, td_buf_str(&call->body));
    struct td_json *review;
    struct td_error err = TD_ERROR_INIT;
    if (call->status < 200 || call->status > 299) {
        answer_fail(answer,
                    td_arena_format(call->arena,
                                    "failed to call webhook: the server answered with status %d",
                                    call->status));
        return;
    }
    if (call->body.is_full) {
        (void)td_error_set(&err, TD_LIMIT, "larger than %zu bytes",
                           TD_WEBHOOK_CALL_ANSWER_BYTES_MAX);
    } else {
        (void)answer_decode(call, text, &review, &err); /* seen below */
    }
    if (err.code != TD_OK) {
        answer_fail(
            answer,
            td_arena_format(call->arena,
                            "failed to call webhook: the response is not an AdmissionReview: %s",
                            err.message));
        return;
    }
    const struct td_json *response = answer_response(call, review, answer);
    if (!response) {
        return;
    }
    const struct td_json *status = td_json_get(response, TD_STR("status"));
    int64_t code = td_json_get_int64(status, TD_STR("code"), 0);
    struct td_webhook_answer read = {
        .is_allowed = td_json_get_bool(response, TD_STR("allowed"), false),
        .status = code >= 400 && code <= 599 ? (int)code : 0,
        .reason = td_json_text(status, "reason"),
        .message = td_json_text(status, "message"),
        .details = td_json_get(status, TD_STR("details")),
        .warnings = td_json_get(response, TD_STR("warnings")),
    };
    if (answer_read_patch(call, response, &read)) {
        *answer = read;
    } else {
        answer_fail(answer, read.message);
    }
}

static void call_free(struct td_webhook_call *call)
{
    if (call->peer) {
        call->peer->calls--;
    }
    td_timer_free(call->turn);
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
                                 call->arena, "failed to call webhook: Post \"%.*s\": %s",
                                 TD_STR_ARG(call->url),
                                 code == TD_TIMEOUT ? "context deadline exceeded" : err->message));
    }
    td_webhook_fn done = call->done;
    void *user = call->context;
    struct webhook_peer *peer = call->peer;
    if (peer) {
        peer->calls++; /* its transport must outlive this callback of it, whatever is asked next */
    }
    call_free(call);
    done(user, &answer);
    if (peer) {
        peer->calls--;
    }
}

static void call_turn(struct td_timer *timer, void *context)
{
    struct td_webhook_call *call = context;
    (void)timer;
    struct td_error err = TD_ERROR_INIT;
    if (!call->api->reviews.fn) {
        call_end(call, td_error_set(&err, TD_IO, "the webhook in this process was stopped"), &err);
        return;
    }
    call->status = 200;
    call->api->reviews.fn(call->api->reviews.context, call->review, &call->body);
    call_end(call, TD_OK, NULL);
}

/* "PATH?timeout=10s", as the webhook may want to know. */
static td_str call_path(struct td_arena *arena, const struct td_webhook_entry *webhook, td_str path)
{
    bool has_query = td_str_find(path, '?', 0) < path.len;
    return td_arena_format(arena, "%.*s%stimeout=%llds", TD_STR_ARG(path), has_query ? "&" : "?",
                           (long long)webhook->timeout_seconds);
}

static struct td_webhook_call *call_new(struct td_webhook_caller *caller,
                                        const struct td_webhook_entry *webhook,
                                        struct td_arena *arena, struct webhook_peer *peer)
{
    struct td_webhook_call *call = td_alloc_zero(1, sizeof(*call));
    call->peer = peer;
    call->api = caller->api;
    call->arena = arena;
    call->is_mutating = webhook->is_mutating;
    call->is_beta = review_is_beta(webhook);
    call->uid = td_arena_format(arena, "%08llx-0000-4000-8000-000000000000",
                                (unsigned long long)++caller->asked);
    td_buf_init(&call->body, TD_WEBHOOK_CALL_ANSWER_BYTES_MAX);
    if (peer) {
        peer->calls++;
    }
    return call;
}

/* Is the webhook one of this process? */
static bool place_is_here(const struct td_webhook_caller *caller, const struct webhook_place *place)
{
    return caller->api->reviews.fn && td_str_equal(place->url, caller->api->reviews.url);
}

static void call_start(struct td_webhook_call *call, const struct td_webhook_entry *webhook,
                       const struct webhook_place *place, td_str review)
{
    static const struct td_call_events events = {
        .head = call_head, .body = call_body, .end = call_end};
    if (!call->peer) {
        call->review = td_arena_copy_str(call->arena, review);
        call->turn = td_timer_new(td_api_loop(call->api), call_turn, call);
        td_timer_set(call->turn, 0);
        return;
    }
    const struct td_call_request ask = {
        .method = TD_STR("POST"),
        .path = call_path(call->arena, webhook, place->path),
        .content_type = TD_STR("application/json"),
        .body = review,
        .deadline = webhook->timeout_seconds * TD_SECOND,
    };
    struct td_transport *transport = call->peer->transport;
    call->call = transport->ops->start(transport, &ask, &events, call);
}

/* A scenario can declare that no webhook listens. */
static int place_reach(const struct td_webhook_caller *caller, const struct webhook_place *place,
                       struct td_error *err)
{
    const struct td_faults *faults = caller->api->faults;
    return faults && faults->are_webhooks_down
               ? td_error_set(err, TD_IO, "dial tcp %.*s:%u: connect: connection refused",
                              TD_STR_ARG(place->host), (unsigned)place->port)
               : TD_OK;
}

struct td_webhook_call *td_webhook_ask(struct td_webhook_caller *caller,
                                       const struct td_webhook_entry *webhook,
                                       const struct td_admission_request *request,
                                       td_webhook_fn done, void *context,
                                       struct td_webhook_answer *ret)
{
    struct td_arena *arena = request->arena;
    struct webhook_place place = {.server_name = TD_STR_EMPTY};
    struct webhook_peer *peer = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_arena_check(arena, &err) != TD_OK ||
        place_find(caller, webhook, arena, &place, &err) != TD_OK ||
        place_reach(caller, &place, &err) != TD_OK ||
        (!place_is_here(caller, &place) && caller_peer(caller, &place, &peer, &err) != TD_OK)) {
        td_str url = place.url.len > 0 ? call_path(arena, webhook, place.url) : TD_STR_EMPTY;
        answer_fail(ret, td_arena_format(arena, "failed to call webhook: %s%.*s%s%s",
                                         url.len > 0 ? "Post \"" : "", TD_STR_ARG(url),
                                         url.len > 0 ? "\": " : "", err.message));
        return NULL;
    }
    struct td_webhook_call *call = call_new(caller, webhook, arena, peer);
    call->done = done;
    call->context = context;
    call->url = call_path(arena, webhook, place.url);
    td_auto_buf body = td_buf_capped(TD_JSON_BYTES_MAX);
    td_json_write(review_new(request, webhook, call->uid, call->is_beta),
                  &(struct td_json_format){0}, &body);
    call_start(call, webhook, &place, td_buf_str(&body));
    return call;
}

void td_webhook_cancel(struct td_webhook_call *call)
{
    if (call->peer) {
        call->peer->transport->ops->cancel(call->call);
    }
    call_free(call);
}
