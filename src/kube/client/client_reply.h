/*
 * From what a transport delivered to what a user of the client reads: the td_code, the reason of a
 * Status object and one line of text. Pure; texts of the reply are borrowed from the answer and
 * the arena.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "kube/client/client.h"

struct td_client_answer {
    td_str method;
    td_str path;
    int code;                   /* how the call ended, see td_call_events.end */
    const struct td_error *err; /* its reason unless TD_OK */
    int status;                 /* 0: no head came */
    bool is_json;
    bool is_cut; /* the body was larger than its cap */
    td_str body;
    td_str warning;
};

/* A 2xx answer of JSON that is not one whole value is TD_IO: a coding that was cut, or a
 * connection without a length, looks complete to HTTP. */
void td_client_reply_read(struct td_arena *arena, const struct td_client_answer *answer,
                          struct td_client_reply *ret);

/* What the server said, without the words of this client; those when it said nothing. In the arena.
 */
td_str td_reply_message(struct td_arena *arena, const struct td_client_reply *reply);

/* Does the answer say that nothing was done, or is it one that a repetition may turn into another?
 */
enum td_client_repeat {
    TD_CLIENT_REPEAT_NEVER,
    TD_CLIENT_REPEAT_IDEMPOTENT, /* only calls that may be done twice */
    TD_CLIENT_REPEAT_ALWAYS,     /* the server did nothing */
};
enum td_client_repeat td_client_reply_repeat(const struct td_client_answer *answer,
                                             const struct td_client_reply *reply,
                                             td_duration retry_after);
