#include "base/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* Cut a message that filled its buffer so that it does not end inside a UTF-8 character. */
static void error_trim_utf8(char *message, size_t len)
{
    size_t start = len;
    while (start > 0 && ((unsigned char)message[start - 1] & 0xC0) == 0x80) {
        start--;
    }
    if (start == 0) {
        return;
    }
    unsigned char lead = (unsigned char)message[start - 1];
    size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (len - (start - 1) < need) {
        message[start - 1] = '\0';
    }
}

int td_error_set_at(struct td_error *err, int code, const char *file, int line, const char *format,
                    ...)
{
    td_assert(code < 0);
    if (!err) {
        return code;
    }
    err->code = code;
    err->file = file;
    err->line = line;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    if (len >= (int)sizeof(err->message)) {
        error_trim_utf8(err->message, sizeof(err->message) - 1);
    }
    return code;
}

int td_error_wrap(struct td_error *err, const char *format, ...)
{
    td_assert(err->code < 0);
    char joined[TD_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(joined, sizeof(joined), format, args);
    va_end(args);
    td_assert(len >= 0);
    size_t used = (size_t)len < sizeof(joined) ? (size_t)len : sizeof(joined) - 1;
    int rest = snprintf(joined + used, sizeof(joined) - used, ": %s", err->message);
    if (used + (size_t)rest >= sizeof(joined)) {
        error_trim_utf8(joined, sizeof(joined) - 1);
    }
    memcpy(err->message, joined, sizeof(joined));
    return err->code;
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
