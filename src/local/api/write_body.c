/*
 * Bodies: bytes of a media type into the tree of the kind that is expected. What a strict reader
 * objects to (unknown and duplicate fields) is refused, told in Warning headers or passed over, by
 * the call's fieldValidation.
 */
#include "base/error.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"
#include "kube/meta.h"
#include "kube/proto/proto.h"
#include "kube/schema/check.h"
#include "local/api/write.h"

#define BODY_PROTO "application/vnd.kubernetes.protobuf"

td_str td_body_media_type(struct td_arena *arena, td_str content_type)
{
    td_str media = td_str_trim(td_str_slice(content_type, 0, td_str_find(content_type, ';', 0)));
    char *lower = td_arena_alloc(arena, media.len + 1);
    for (size_t i = 0; i < media.len; i++) {
        char c = media.ptr[i];
        lower[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    lower[media.len] = 0;
    return (td_str){.ptr = lower, .len = media.len};
}

static void body_warn(struct td_api_call *call, td_str text)
{
    if (!call->warnings) {
        call->warnings = td_json_new_array(&call->arena);
    }
    td_json_append(call->warnings, td_json_new_string(&call->arena, text));
}

/* The start of a body, for messages: text when it looks like JSON, else hexadecimal. */
static td_str body_shown(struct td_arena *arena, td_str body)
{
    if (body.len == 0) {
        return TD_STR("<empty>");
    }
    td_str start = td_str_cut_utf8(body, TD_BODY_SHOWN_BYTES);
    const char *rest = body.len > TD_BODY_SHOWN_BYTES ? " ..." : "";
    if (body.ptr[0] == '{' && td_str_is_utf8(start)) {
        return td_arena_format(arena, "%.*s%s", TD_STR_ARG(start), rest);
    }
    td_auto_buf hex = td_buf_capped(2 * TD_BODY_SHOWN_BYTES + 8);
    start = td_str_slice(body, 0, TD_BODY_SHOWN_BYTES);
    for (size_t i = 0; i < start.len; i++) {
        td_buf_append_format(&hex, "%02x", (unsigned char)start.ptr[i]);
    }
    td_buf_append(&hex, td_str_from(rest));
    return td_arena_copy_str(arena, td_buf_str(&hex));
}

static bool body_unrecognized(struct td_api_call *call, const struct td_body_want *want,
                              const char *message)
{
    td_call_fail(call, 400, "BadRequest",
                 "the object provided is unrecognized (must be of type %.*s): %s (%.*s)",
                 TD_STR_ARG(want->kind), message,
                 TD_STR_ARG(body_shown(&call->arena, call->request.body)));
    return false;
}

const char *td_body_type_name(const struct td_json *tree)
{
    switch ((enum td_json_type)tree->type) {
    case TD_JSON_TYPE_BOOL:
        return "bool";
    case TD_JSON_TYPE_NUMBER:
        return "number";
    case TD_JSON_TYPE_STRING:
        return "string";
    case TD_JSON_TYPE_ARRAY:
        return "array";
    case TD_JSON_TYPE_NULL:
        return "null";
    case TD_JSON_TYPE_OBJECT:
        break;
    }
    return "object";
}

static struct td_json *body_parse_yaml(struct td_arena *arena, td_str text, struct td_error *err)
{
    struct td_yaml_documents documents;
    if (td_yaml_parse(arena, text, &documents, err) < 0) {
        return NULL;
    }
    return documents.count > 0 ? documents.items[0] : td_json_new_object(arena);
}

/* A body without a kind in its envelope is of the kind that the path names. */
static struct td_json *body_parse_proto(struct td_api_call *call, const struct td_body_want *want,
                                        struct td_error *err)
{
    struct td_proto_envelope envelope;
    if (td_proto_open(call->request.body, &envelope, err) < 0) {
        return NULL;
    }
    envelope.kind = envelope.kind.len > 0 ? envelope.kind : want->kind;
    envelope.api_version = envelope.api_version.len > 0 ? envelope.api_version : want->api_version;
    struct td_json *tree = NULL;
    (void)td_proto_decode(&call->arena, &envelope, &tree, err); /* the tree tells */
    return tree;
}

static struct td_json *body_parse_any(struct td_api_call *call, const struct td_body_want *want,
                                      td_str media, struct td_json_problems *problems,
                                      struct td_error *err)
{
    td_str body = call->request.body;
    if (td_str_equal(media, TD_STR(BODY_PROTO))) {
        return body_parse_proto(call, want, err);
    }
    if (td_str_ends_with(media, TD_STR("yaml"))) {
        return body_parse_yaml(&call->arena, body, err);
    }
    if (td_str_trim(body).len == 0) {
        (void)td_error_set(err, TD_INVALID, "unexpected end of JSON input");
        return NULL;
    }
    struct td_json *tree = NULL;
    (void)td_json_parse(&call->arena, body, &(struct td_json_options){.problems = problems}, &tree,
                        err); /* the tree tells */
    return tree;
}

/* All that is done with a body later costs something for each of its values, many times over: the
 * memory of its tree, its values and the items of its lists are bounded here, once. */
struct td_json *td_body_parse(struct td_api_call *call, const struct td_body_want *want,
                              td_str media, struct td_json_problems *problems, struct td_error *err)
{
    size_t whole = call->arena.max_bytes;
    call->arena.max_bytes = call->arena.used_bytes + TD_BODY_TREE_BYTES_MAX;
    struct td_json *tree = body_parse_any(call, want, media, problems, err);
    call->arena.max_bytes = whole;
    bool is_small =
        tree && td_json_check_size(tree, TD_BODY_VALUES_MAX, TD_BODY_ITEMS_MAX, err) == TD_OK;
    return is_small ? tree : NULL;
}

static bool body_is_json(td_str media)
{
    return media.len == 0 || td_str_equal(media, TD_STR("application/json"));
}

/* Custom resources have no protobuf form. */
static bool body_check_media(struct td_api_call *call, td_str media, bool has_proto)
{
    if (body_is_json(media) || td_str_equal(media, TD_STR("application/yaml")) ||
        (has_proto && td_str_equal(media, TD_STR(BODY_PROTO)))) {
        return true;
    }
    td_call_fail(call, 415, "UnsupportedMediaType",
                 "the body of the request was in an unknown format - accepted media types "
                 "include: application/json, application/yaml, "
                 "application/vnd.kubernetes.protobuf");
    return false;
}

static bool body_read(struct td_api_call *call, const struct td_body_want *want,
                      struct td_json_problems *problems, struct td_json **ret)
{
    td_str media = td_body_media_type(&call->arena, call->request.content_type);
    if (!body_check_media(call, media, !want->needs_kind)) {
        return false;
    }
    struct td_error err = TD_ERROR_INIT;
    struct td_json *tree = td_body_parse(call, want, media, problems, &err);
    if (!tree && err.code == TD_LIMIT) {
        td_call_fail(call, 413, "RequestEntityTooLarge", "%s", err.message);
        return false;
    }
    if (!tree) {
        if (body_is_json(media)) {
            (void)td_error_wrap(&err, err.code, "couldn't get version/kind; json parse error");
        }
        return body_unrecognized(call, want, err.message);
    }
    if (td_json_is(tree, TD_JSON_TYPE_NULL)) {
        tree = td_json_new_object(&call->arena);
    }
    if (!td_json_is(tree, TD_JSON_TYPE_OBJECT)) {
        (void)td_error_set(&err, TD_INVALID,
                           "couldn't get version/kind; json parse error: json: cannot unmarshal "
                           "%s into Go value",
                           td_body_type_name(tree));
        return body_unrecognized(call, want, err.message);
    }
    *ret = tree;
    return true;
}

/* Is it of the kind and version that the path names? What is missing is filled in. */
static bool body_check_kind(struct td_api_call *call, const struct td_body_want *want,
                            struct td_json *tree)
{
    td_str kind = td_json_text(tree, "kind");
    td_str version = td_json_text(tree, "apiVersion");
    if (want->needs_kind && kind.len == 0) {
        td_str shown = body_shown(&call->arena, call->request.body);
        td_str message =
            td_arena_format(&call->arena, "Object 'Kind' is missing in '%.*s'", TD_STR_ARG(shown));
        return body_unrecognized(call, want, message.ptr);
    }
    bool is_version =
        td_str_equal(version, want->api_version) || (version.len == 0 && !want->needs_kind);
    bool is_kind = td_str_equal(kind, want->kind) || kind.len == 0;
    td_str group = td_group_version_parse(version).group;
    bool is_group = td_str_equal(group, td_group_version_parse(want->api_version).group);
    if (is_kind && !is_version && (is_group || want->needs_kind)) {
        td_call_fail(call, 400, "BadRequest",
                     "the API version in the data (%.*s) does not match the expected API version "
                     "(%.*s)",
                     TD_STR_ARG(version), TD_STR_ARG(want->api_version));
        return false;
    }
    if (!is_kind || !is_version) {
        td_call_fail(call, 400, "BadRequest",
                     "%.*s in version \"%.*s\" cannot be handled as a %.*s: it is no %.*s of "
                     "version \"%.*s\"",
                     TD_STR_ARG(kind), TD_STR_ARG(td_group_version_parse(version).version),
                     TD_STR_ARG(want->kind), TD_STR_ARG(want->kind), TD_STR_ARG(want->api_version));
        return false;
    }
    td_json_set_str(&call->arena, tree, TD_STR("kind"), want->kind);
    td_json_set_str(&call->arena, tree, TD_STR("apiVersion"), want->api_version);
    return true;
}

td_str td_body_report(struct td_api_call *call, const struct td_json_problems *problems)
{
    if (problems->count == 0 || td_str_equal(call->query.field_validation, TD_STR("Ignore"))) {
        return TD_STR_EMPTY;
    }
    if (!td_str_equal(call->query.field_validation, TD_STR("Strict"))) {
        for (size_t i = 0; i < problems->count; i++) {
            body_warn(call, problems->items[i]);
        }
        return TD_STR_EMPTY;
    }
    td_auto_buf text =
        td_buf_capped((TD_STRICT_PROBLEMS_MAX + 1) * (TD_STRICT_PATH_BYTES_MAX + 32));
    td_buf_append(&text, TD_STR("strict decoding error: "));
    for (size_t i = 0; i < problems->count; i++) {
        td_buf_append(&text, i > 0 ? TD_STR(", ") : TD_STR_EMPTY);
        td_buf_append(&text, problems->items[i]);
    }
    return td_arena_copy_str(&call->arena, td_buf_str(&text));
}

/* Fields that came twice, except those that are unknown anyway. */
static void body_add_repeated(struct td_json_problems *problems,
                              const struct td_json_problems *repeated)
{
    static const td_str of_unknown = TD_STR_INIT("unknown field ");
    static const td_str of_repeated = TD_STR_INIT("duplicate field ");
    size_t unknown = problems->count;
    for (size_t i = 0; i < repeated->count && problems->count < TD_STRICT_PROBLEMS_MAX; i++) {
        td_str path = td_str_slice(repeated->items[i], of_repeated.len, repeated->items[i].len);
        bool is_said = false;
        for (size_t k = 0; k < unknown && !is_said; k++) {
            td_str said = problems->items[k];
            is_said = td_str_equal(td_str_slice(said, of_unknown.len, said.len), path);
        }
        if (!is_said) {
            problems->items[problems->count++] = repeated->items[i];
        }
    }
}

static bool body_refuse(struct td_api_call *call, const struct td_body_want *want, td_str why)
{
    td_str version = td_group_version_parse(want->api_version).version;
    td_call_fail(
        call, 400, "BadRequest", "%.*s in version \"%.*s\" cannot be handled as a %.*s: %.*s",
        TD_STR_ARG(want->kind), TD_STR_ARG(version), TD_STR_ARG(want->kind), TD_STR_ARG(why));
    return false;
}

bool td_body_decode(struct td_api_call *call, const struct td_body_want *want, struct td_json **ret)
{
    struct td_json_problems repeated = {.arena = &call->arena};
    struct td_json *tree = NULL;
    if (!body_read(call, want, &repeated, &tree) || !body_check_kind(call, want, tree)) {
        return false;
    }
    struct td_error err = TD_ERROR_INIT;
    if (want->is_checked && want->type && td_check_types(want->type, tree, NULL, &err) < 0) {
        return body_refuse(call, want, td_str_from(err.message));
    }
    bool is_ignored = td_str_equal(call->query.field_validation, TD_STR("Ignore"));
    struct td_json_problems problems = {.arena = &call->arena};
    if (want->type && !is_ignored) {
        td_schema_find_unknown(want->type, tree, &problems);
    }
    body_add_repeated(&problems, &repeated);
    td_str refusal = td_body_report(call, &problems);
    if (refusal.len > 0) {
        return body_refuse(call, want, refusal);
    }
    *ret = tree;
    return true;
}

bool td_body_decode_options(struct td_api_call *call, td_str kind, struct td_json **ret)
{
    td_str media = td_body_media_type(&call->arena, call->request.content_type);
    if (!body_check_media(call, media, true)) {
        return false;
    }
    const struct td_body_want want = {.api_version = TD_STR("v1"), .kind = kind};
    struct td_error err = TD_ERROR_INIT;
    struct td_json *tree = td_body_parse(call, &want, media, NULL, &err);
    if (!tree && err.code == TD_LIMIT) {
        td_call_fail(call, 413, "RequestEntityTooLarge", "%s", err.message);
        return false;
    }
    if (!tree) {
        td_call_fail(call, 400, "BadRequest", "couldn't get version/kind; json parse error: %s",
                     err.message);
        return false;
    }
    if (td_json_is(tree, TD_JSON_TYPE_NULL)) {
        tree = td_json_new_object(&call->arena);
    }
    td_str named = td_json_get_str(tree, TD_STR("kind"), kind);
    if (!td_json_is(tree, TD_JSON_TYPE_OBJECT) || !td_str_equal(named, kind)) {
        td_str version = td_json_get_str(tree, TD_STR("apiVersion"), TD_STR("meta.k8s.io/v1"));
        td_call_fail(call, 400, "BadRequest", "no kind \"%.*s\" is registered for version \"%.*s\"",
                     TD_STR_ARG(named), TD_STR_ARG(version));
        return false;
    }
    const struct td_schema_type *type = td_schema_find(TD_STR("v1"), kind);
    if (type && td_check_types(type, tree, NULL, &err) < 0) {
        td_call_fail(call, 400, "BadRequest", "%s", err.message);
        return false;
    }
    *ret = tree;
    return true;
}
