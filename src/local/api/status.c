/* The failures of the API: v1 Status objects in the words and with the details that clients of the
 * real server know. */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/stringset.h"
#include "local/api/api_private.h"
#include "local/api/call.h"

struct td_json *td_call_status(struct td_api_call *call, int status, const char *reason,
                               td_str message)
{
    struct td_arena *arena = &call->arena;
    struct td_json *tree = td_json_new_object(arena);
    td_json_set_str(arena, tree, TD_STR("kind"), TD_STR("Status"));
    td_json_set_str(arena, tree, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set(arena, tree, TD_STR("metadata"), td_json_new_object(arena));
    td_json_set_str(arena, tree, TD_STR("status"),
                    status < 400 ? TD_STR("Success") : TD_STR("Failure"));
    td_json_set_str(arena, tree, TD_STR("message"), message);
    if (reason[0] != '\0') {
        td_json_set_str(arena, tree, TD_STR("reason"), td_str_from(reason));
    }
    td_json_set_int64(arena, tree, TD_STR("code"), status);
    return tree;
}

/* `details` goes before the code, where upstream writes it. */
static void status_set_details(struct td_arena *arena, struct td_json *status,
                               struct td_json *details)
{
    int64_t code = td_json_get_int64(status, TD_STR("code"), 0);
    (void)td_json_remove(status, TD_STR("code"));
    td_json_set(arena, status, TD_STR("details"), details);
    td_json_set_int64(arena, status, TD_STR("code"), code);
}

struct td_json *td_status_details(struct td_arena *arena, td_str name, td_str group, td_str kind)
{
    struct td_json *details = td_json_new_object(arena);
    td_json_set_text(arena, details, TD_STR("name"), name);
    td_json_set_text(arena, details, TD_STR("group"), group);
    td_json_set_text(arena, details, TD_STR("kind"), kind);
    return details;
}

static struct td_json *status_cause(struct td_arena *arena, const char *reason, td_str message,
                                    td_str field)
{
    struct td_json *cause = td_json_new_object(arena);
    td_json_set_str(arena, cause, TD_STR("reason"), td_str_from(reason));
    td_json_set_str(arena, cause, TD_STR("message"), message);
    td_json_set_text(arena, cause, TD_STR("field"), field);
    return cause;
}

void td_call_fail(struct td_api_call *call, int status, const char *reason, const char *format, ...)
{
    td_auto_buf message = td_buf_capped(TD_STATUS_MESSAGE_BYTES_MAX);
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    size_t room = len > 0 ? (size_t)len + 1 : 1;
    room = room > TD_STATUS_MESSAGE_BYTES_MAX ? TD_STATUS_MESSAGE_BYTES_MAX : room;
    char *out = td_buf_reserve(&message, room);
    td_str text = TD_STR_EMPTY;
    if (out) {
        va_start(arguments, format);
        (void)vsnprintf(out, room, format, arguments); /* cut: only a message */
        va_end(arguments);
        text = td_str_cut_utf8((td_str){.ptr = out, .len = room - 1}, room - 1);
    }
    struct td_json *tree =
        td_call_status(call, status, reason, td_arena_copy_str(&call->arena, text));
    td_call_reply_json(call, status, tree);
}

static void status_fail_empty(struct td_api_call *call, int status, const char *reason,
                              td_str message)
{
    struct td_json *tree = td_call_status(call, status, reason, message);
    status_set_details(&call->arena, tree, td_json_new_object(&call->arena));
    td_call_reply_json(call, status, tree);
}

void td_call_no_resource(struct td_api_call *call)
{
    status_fail_empty(call, 404, "NotFound",
                      TD_STR("the server could not find the requested resource"));
}

void td_call_no_method(struct td_api_call *call)
{
    status_fail_empty(call, 405, "MethodNotAllowed",
                      TD_STR("the server does not allow this method on the requested resource"));
}

/* "deployments.apps", "pods". */
static td_str status_resource(const struct td_api_call *call, struct td_arena *arena)
{
    const struct td_resource *resource = call->at.resource;
    return resource->group.len == 0
               ? resource->plural
               : td_arena_format(arena, "%.*s.%.*s", TD_STR_ARG(resource->plural),
                                 TD_STR_ARG(resource->group));
}

void td_call_not_found(struct td_api_call *call, td_str name)
{
    struct td_arena *arena = &call->arena;
    td_str message = td_arena_format(arena, "%.*s \"%.*s\" not found",
                                     TD_STR_ARG(status_resource(call, arena)), TD_STR_ARG(name));
    struct td_json *status = td_call_status(call, 404, "NotFound", message);
    status_set_details(
        arena, status,
        td_status_details(arena, name, call->at.resource->group, call->at.resource->plural));
    td_call_reply_json(call, 404, status);
}

void td_call_conflict(struct td_api_call *call, td_str name, const char *detail)
{
    struct td_arena *arena = &call->arena;
    td_str message =
        td_arena_format(arena, "Operation cannot be fulfilled on %.*s \"%.*s\": %s",
                        TD_STR_ARG(status_resource(call, arena)), TD_STR_ARG(name), detail);
    struct td_json *status = td_call_status(call, 409, "Conflict", message);
    status_set_details(
        arena, status,
        td_status_details(arena, name, call->at.resource->group, call->at.resource->plural));
    td_call_reply_json(call, 409, status);
}

/* ---- Fields ---- */

/* The lines of the errors, each once as upstream's aggregate: "a", or "[a, b]". */
static td_str status_error_list(struct td_arena *arena, const struct td_field_errors *errors,
                                const td_str *lines)
{
    td_auto_buf list = td_buf_capped(TD_API_ANSWER_BYTES_MAX);
    size_t written = 0;
    td_auto_string_set seen = td_string_set_capped(errors->count + 1);
    for (size_t i = 0; i < errors->count; i++) {
        if (td_string_set_add(&seen, lines[i]) == TD_EXISTS) {
            continue;
        }
        (void)td_buf_append(&list, written > 0 ? TD_STR(", ") : TD_STR(""));
        (void)td_buf_append(&list, lines[i]);
        written++;
    }
    td_str text = td_buf_str(&list);
    return written == 1 ? td_arena_copy_str(arena, text)
                        : td_arena_format(arena, "[%.*s]", TD_STR_ARG(text));
}

struct status_subject {
    td_str group;
    td_str kind;
    td_str name;
};

static void status_invalid(struct td_api_call *call, const struct status_subject *subject,
                           const struct td_field_errors *errors)
{
    struct td_arena *arena = &call->arena;
    struct td_json *causes = td_json_new_array(arena);
    td_str *lines = td_arena_array(arena, td_str, errors->count + 1);
    td_auto_buf line = td_buf_capped(TD_API_ANSWER_BYTES_MAX);
    for (size_t i = 0; i < errors->count; i++) {
        const struct td_field_error *error = &errors->items[i];
        td_buf_reset(&line);
        td_field_error_write(error, &line);
        lines[i] = td_arena_copy_str(arena, td_buf_str(&line));
        size_t field = error->field.len > 0 ? error->field.len + 2 : 0; /* "spec.x: " */
        td_json_append(causes,
                       status_cause(arena, td_field_error_reason(error->type),
                                    td_str_slice(lines[i], field, lines[i].len), error->field));
    }
    td_str message = td_arena_format(
        arena, "%.*s%s%.*s \"%.*s\" is invalid%s%.*s", TD_STR_ARG(subject->kind),
        subject->group.len > 0 ? "." : "", TD_STR_ARG(subject->group), TD_STR_ARG(subject->name),
        errors->count > 0 ? ": " : "",
        TD_STR_ARG(errors->count > 0 ? status_error_list(arena, errors, lines) : TD_STR_EMPTY));
    struct td_json *status = td_call_status(call, 422, "Invalid", message);
    struct td_json *details =
        td_status_details(arena, subject->name, subject->group, subject->kind);
    if (causes->count > 0) {
        td_json_set(arena, details, TD_STR("causes"), causes);
    }
    status_set_details(arena, status, details);
    td_call_reply_json(call, 422, status);
}

void td_call_invalid(struct td_api_call *call, td_str kind, td_str name,
                     const struct td_field_errors *errors)
{
    struct status_subject subject = {.group = call->at.resource->group, .kind = kind, .name = name};
    status_invalid(call, &subject, errors);
}

void td_call_invalid_options(struct td_api_call *call, const char *kind,
                             const struct td_field_errors *errors)
{
    struct status_subject subject = {
        .group = TD_STR("meta.k8s.io"), .kind = td_str_from(kind), .name = TD_STR_EMPTY};
    status_invalid(call, &subject, errors);
}

void td_call_invalid_of(struct td_api_call *call, td_str group, td_str kind, td_str name,
                        const struct td_field_errors *errors)
{
    struct status_subject subject = {.group = group, .kind = kind, .name = name};
    status_invalid(call, &subject, errors);
}

/* ---- Versions ---- */

void td_call_version_too_large(struct td_api_call *call, uint64_t version)
{
    struct td_arena *arena = &call->arena;
    td_str message = td_arena_format(
        arena, "Timeout: Too large resource version: %llu, current: %llu",
        (unsigned long long)version, (unsigned long long)td_store_version(call->api->store));
    struct td_json *status = td_call_status(call, 504, "Timeout", message);
    struct td_json *details = td_json_new_object(arena);
    struct td_json *causes = td_json_new_array(arena);
    td_json_append(causes, status_cause(arena, "ResourceVersionTooLarge",
                                        TD_STR("Too large resource version"), TD_STR_EMPTY));
    td_json_set(arena, details, TD_STR("causes"), causes);
    td_json_set_int64(arena, details, TD_STR("retryAfterSeconds"), 1);
    status_set_details(arena, status, details);
    call->retry_after_seconds = 1;
    td_call_reply_json(call, 504, status);
}
