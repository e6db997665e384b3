/*
 * The table of statuses and reasons to codes, and the sentence of a failed call: method, path,
 * what the server said.
 */
#include "kube/client/client_reply.h"

#include "base/json/json.h"
#include "base/json/json_reader.h"

#define REPLY_TEXT_BYTES_MAX 512 /* shown of an answer that is no Status */

static int reply_code_of(int status, td_str reason)
{
    switch (status) {
    case 401:
    case 403:
        return TD_DENIED;
    case 404:
        return TD_NOT_FOUND;
    case 408:
        return TD_TIMEOUT;
    case 409:
        return td_str_equal(reason, TD_STR("AlreadyExists")) ? TD_EXISTS : TD_CONFLICT;
    case 410:
        return TD_GONE;
    case 412:
        return TD_CONFLICT;
    case 413:
        return TD_LIMIT;
    case 429:
        return TD_BUSY;
    default:
        break;
    }
    return status >= 500 ? TD_IO : TD_INVALID;
}

/* The cause that says why an eviction or a resize was refused outranks the plain "TooManyRequests"
 * or "Forbidden". */
static td_str reply_reason(const struct td_json *object)
{
    const struct td_json *causes = td_json_get_path(object, "details.causes");
    if (td_json_is(causes, TD_JSON_TYPE_ARRAY)) {
        for (const struct td_json *cause = td_json_first_item(causes); cause; cause = cause->next) {
            td_str reason = td_json_text(cause, "reason");
            if (td_str_equal(reason, TD_STR("DisruptionBudget")) ||
                td_str_equal(reason, TD_STR("NodeCapacity"))) {
                return reason;
            }
        }
    }
    return td_json_text(object, "reason");
}

/* One line of it, without control characters, cut. */
static td_str reply_line(struct td_arena *arena, td_str text)
{
    td_str line = td_str_cut_utf8(td_str_trim(text), REPLY_TEXT_BYTES_MAX);
    char *copy = td_arena_alloc(arena, line.len + 1);
    for (size_t i = 0; i < line.len; i++) {
        unsigned char byte = (unsigned char)line.ptr[i];
        copy[i] = byte < 0x20 || byte == 0x7f ? ' ' : line.ptr[i];
    }
    return td_str_is_utf8((td_str){.ptr = copy, .len = line.len})
               ? (td_str){.ptr = copy, .len = line.len}
               : TD_STR("(an answer that is no text)");
}

static void reply_read_refusal(struct td_arena *arena, const struct td_client_answer *answer,
                               struct td_client_reply *reply)
{
    td_str message = TD_STR_EMPTY;
    struct td_json *object = NULL;
    bool is_whole = answer->is_json && answer->body.len < TD_CLIENT_ERROR_BYTES_MAX;
    if (is_whole && td_json_parse(arena, answer->body, NULL, &object, NULL) == TD_OK &&
        td_str_equal(td_json_text(object, "kind"), TD_STR("Status"))) {
        reply->reason = reply_reason(object);
        message = td_json_text(object, "message");
    }
    if (message.len == 0 && reply->reason.len == 0) {
        message = answer->body;
    }
    message = reply_line(arena, message);
    reply->code = reply_code_of(answer->status, reply->reason);
    if (answer->status < 400) {
        message = TD_STR("a redirect, which is not followed");
    }
    (void)td_error_set(&reply->err, reply->code, "%.*s %.*s: %.*s (%d%s%.*s)",
                       TD_STR_ARG(answer->method), TD_STR_ARG(answer->path), TD_STR_ARG(message),
                       answer->status, reply->reason.len > 0 ? " " : "",
                       TD_STR_ARG(reply->reason)); /* returns the code set above */
}

static int reply_check_whole(td_str body, struct td_error *err)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, body, TD_JSON_DEPTH_MAX);
    if (td_json_reader_skip(&reader) == TD_OK && td_json_reader_next(&reader) == TD_JSON_END) {
        return TD_OK;
    }
    (void)td_json_reader_error(&reader, err); /* its code says what is wrong with a text of ours */
    return TD_IO;
}

static void reply_read_success(const struct td_client_answer *answer, struct td_client_reply *reply)
{
    struct td_error err = TD_ERROR_INIT;
    if (answer->is_cut) {
        reply->code = td_error_set(&reply->err, TD_LIMIT, "%.*s %.*s: answer above %zu bytes",
                                   TD_STR_ARG(answer->method), TD_STR_ARG(answer->path),
                                   (size_t)TD_CLIENT_ANSWER_BYTES_MAX);
        return;
    }
    if (!answer->is_json || answer->body.len == 0 ||
        reply_check_whole(answer->body, &err) == TD_OK) {
        reply->code = TD_OK;
        reply->body = answer->body;
        return;
    }
    reply->code = td_error_set(&reply->err, TD_IO, "%.*s %.*s: broken answer: %s",
                               TD_STR_ARG(answer->method), TD_STR_ARG(answer->path), err.message);
}

void td_client_reply_read(struct td_arena *arena, const struct td_client_answer *answer,
                          struct td_client_reply *ret)
{
    *ret = (struct td_client_reply){
        .status = answer->status,
        .reason = TD_STR_EMPTY,
        .body = TD_STR_EMPTY,
        .warning = answer->warning,
    };
    if (answer->code != TD_OK) {
        /* A refused connection matters only to the decision about a retry. */
        int code = answer->code == TD_BUSY ? TD_IO : answer->code;
        ret->code = td_error_set(&ret->err, code, "%.*s %.*s: %s", TD_STR_ARG(answer->method),
                                 TD_STR_ARG(answer->path),
                                 answer->err ? answer->err->message : td_code_name(code));
    } else if (answer->status >= 200 && answer->status < 300) {
        reply_read_success(answer, ret);
    } else {
        ret->body = answer->body;
        reply_read_refusal(arena, answer, ret);
    }
}

enum td_client_repeat td_client_reply_repeat(const struct td_client_answer *answer,
                                             const struct td_client_reply *reply,
                                             td_duration retry_after)
{
    if (answer->code == TD_BUSY) {
        return TD_CLIENT_REPEAT_ALWAYS; /* refused before anything was sent */
    }
    if (td_str_equal(reply->reason, TD_STR("DisruptionBudget"))) {
        return TD_CLIENT_REPEAT_NEVER;
    }
    if (answer->code == TD_OK && answer->status == 429) {
        return retry_after >= 0 ? TD_CLIENT_REPEAT_ALWAYS : TD_CLIENT_REPEAT_IDEMPOTENT;
    }
    bool is_broken = reply->code == TD_IO || reply->code == TD_TIMEOUT;
    return is_broken && answer->status != 501 ? TD_CLIENT_REPEAT_IDEMPOTENT
                                              : TD_CLIENT_REPEAT_NEVER;
}

td_str td_reply_message(struct td_arena *arena, const struct td_client_reply *reply)
{
    struct td_json *status;
    td_str message = TD_STR_EMPTY;
    if (td_json_parse(arena, reply->body, &(struct td_json_options){.copy_strings = true}, &status,
                      NULL) == TD_OK) {
        message = td_json_text(status, "message");
    }
    return message.len > 0 ? message : td_arena_copy_str(arena, td_str_from(reply->err.message));
}
