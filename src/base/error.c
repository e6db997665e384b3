/*
 * The names of the codes, and messages that are set once and then only wrapped; what does not fit
 * is cut at a character.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/str.h"

/* A message is made here and then cut: the room past its size lets the cut see a whole character.
 */
struct error_draft {
    char text[TD_ERROR_MESSAGE_BYTES + 4];
};

__attribute__((format(printf, 3, 0))) static size_t
error_draft_add(struct error_draft *draft, size_t used, const char *format, va_list args)
{
    int len = vsnprintf(draft->text + used, sizeof(draft->text) - used, format, args);
    if (len < 0) {
        draft->text[used] = '\0'; /* longer than an int can count: keep what there is */
        return used;
    }
    size_t room = sizeof(draft->text) - used - 1;
    return used + ((size_t)len < room ? (size_t)len : room);
}

/* By way of the draft, so that arguments may point into the old message. */
static void error_take_draft(struct td_error *err, const struct error_draft *draft, size_t len)
{
    td_str whole = {.ptr = draft->text, .len = len};
    td_str message = td_str_cut_utf8(whole, sizeof(err->message) - 1);
    memcpy(err->message, message.ptr, message.len);
    err->message[message.len] = '\0';
}

int td_error_set_at(struct td_error *err, int code, const char *file, int line, const char *format,
                    ...)
{
    td_assert(code < 0);
    if (!err) {
        return code;
    }
    struct error_draft draft;
    va_list args;
    va_start(args, format);
    size_t len = error_draft_add(&draft, 0, format, args);
    va_end(args);
    error_take_draft(err, &draft, len);
    err->code = code;
    err->file = file;
    err->line = line;
    return code;
}

int td_error_wrap(struct td_error *err, int code, const char *format, ...)
{
    td_assert(code < 0);
    if (!err) {
        return code;
    }
    td_assert(err->code < 0); /* it was set where the failure was found */
    struct error_draft draft;
    va_list args;
    va_start(args, format);
    size_t used = error_draft_add(&draft, 0, format, args);
    va_end(args);
    size_t room = sizeof(draft.text) - used;
    int rest = snprintf(draft.text + used, room, ": %s", err->message);
    td_assert(rest >= 2); /* both parts are bounded */
    size_t added = (size_t)rest < room ? (size_t)rest : room - 1;
    error_take_draft(err, &draft, used + added);
    return code;
}

const char *td_code_name(int code)
{
    switch (code) {
    case TD_OK:
        return "ok";
    case TD_NOT_FOUND:
        return "not-found";
    case TD_CONFLICT:
        return "conflict";
    case TD_GONE:
        return "gone";
    case TD_INVALID:
        return "invalid";
    case TD_LIMIT:
        return "limit";
    case TD_TIMEOUT:
        return "timeout";
    case TD_IO:
        return "io";
    case TD_DENIED:
        return "denied";
    case TD_BUSY:
        return "busy";
    case TD_EXISTS:
        return "exists";
    default:
        return "unknown";
    }
}
