/*
 * The buffer grows twofold up to its maximum. The first append that does not fit sets is_full, and
 * every later one reports TD_LIMIT without looking at the bytes.
 */
#include "base/buf.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"

#define BUF_CAP_FIRST 512
#define BUF_DECIMALS_MAX 9

struct td_buf td_buf_capped(size_t max)
{
    td_assert(max < SIZE_MAX);
    return (struct td_buf){.max = max};
}

void td_buf_init(struct td_buf *buf, size_t max)
{
    *buf = td_buf_capped(max);
}

void td_buf_done(struct td_buf *buf)
{
    td_free(buf->ptr);
    *buf = (struct td_buf){.max = buf->max};
}

void td_buf_reset(struct td_buf *buf)
{
    buf->len = 0;
    buf->is_full = false;
    if (buf->ptr) {
        buf->ptr[0] = '\0';
    }
}

int td_buf_append_number(struct td_buf *buf, double value, int digits)
{
    if (!isfinite(value)) {
        return td_buf_append(buf, isnan(value) ? TD_STR("unknown") : TD_STR("infinite"));
    }
    int decimals = digits - 1;
    for (double rest = fabs(value); rest >= 10 && decimals > 0; rest /= 10) {
        decimals--;
    }
    for (double rest = fabs(value); rest > 0 && rest < 1 && decimals < BUF_DECIMALS_MAX;
         rest *= 10) {
        decimals++;
    }
    size_t before = buf->len;
    int code = td_buf_append_format(buf, "%.*f", decimals, value);
    bool has_point = code == TD_OK && memchr(buf->ptr + before, '.', buf->len - before);
    while (has_point && buf->ptr[buf->len - 1] == '0') {
        buf->ptr[--buf->len] = '\0';
    }
    if (has_point && buf->ptr[buf->len - 1] == '.') {
        buf->ptr[--buf->len] = '\0';
    }
    return code;
}

char *td_buf_reserve(struct td_buf *buf, size_t len)
{
    if (buf->is_full || len > buf->max - buf->len) {
        buf->is_full = true;
        return NULL;
    }
    size_t need = buf->len + len + 1;
    if (need > buf->cap) {
        size_t cap = buf->cap > 0 ? buf->cap : BUF_CAP_FIRST;
        while (cap < need) {
            cap = cap > SIZE_MAX / 2 ? need : cap * 2;
        }
        cap = cap > buf->max + 1 ? buf->max + 1 : cap;
        buf->ptr = td_realloc(buf->ptr, cap);
        buf->cap = cap;
    }
    return buf->ptr + buf->len;
}

void td_buf_commit(struct td_buf *buf, size_t len)
{
    td_assert(len < buf->cap - buf->len);
    buf->len += len;
    buf->ptr[buf->len] = '\0';
}

int td_buf_append(struct td_buf *buf, td_str bytes)
{
    char *place = td_buf_reserve(buf, bytes.len);
    if (!place) {
        return TD_LIMIT;
    }
    if (bytes.len > 0) {
        memcpy(place, bytes.ptr, bytes.len);
    }
    td_buf_commit(buf, bytes.len);
    return TD_OK;
}

int td_buf_append_char(struct td_buf *buf, char byte)
{
    if (buf->is_full || buf->cap - buf->len < 2) {
        return td_buf_append(buf, (td_str){.ptr = &byte, .len = 1});
    }
    buf->ptr[buf->len++] = byte;
    buf->ptr[buf->len] = '\0';
    return TD_OK;
}

int td_buf_append_format(struct td_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    td_assert(len >= 0);
    char *place = td_buf_reserve(buf, (size_t)len);
    if (!place) {
        return TD_LIMIT;
    }
    va_start(args, format);
    (void)vsnprintf(place, (size_t)len + 1, format, args); /* same length as measured above */
    va_end(args);
    td_buf_commit(buf, (size_t)len);
    return TD_OK;
}

int td_buf_append_int64(struct td_buf *buf, int64_t value)
{
    char digits[TD_INT64_DIGITS_MAX];
    return td_buf_append(buf, td_text_int64(digits, value));
}

void td_buf_consume(struct td_buf *buf, size_t len)
{
    td_assert(len <= buf->len);
    if (len > 0) {
        memmove(buf->ptr, buf->ptr + len, buf->len - len);
        buf->len -= len;
        buf->ptr[buf->len] = '\0';
    }
}

td_str td_buf_str(const struct td_buf *buf)
{
    return buf->ptr ? (td_str){.ptr = buf->ptr, .len = buf->len} : TD_STR_EMPTY;
}

int td_buf_check(const struct td_buf *buf, const char *what, struct td_error *err)
{
    if (buf->is_full) {
        return td_error_set(err, TD_LIMIT, "%s is larger than %zu bytes", what, buf->max);
    }
    return TD_OK;
}
