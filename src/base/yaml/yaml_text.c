/* Timestamps and binary scalars, as the Go library of Kubernetes reads them. */
#include "base/yaml/yaml_text.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

static bool text_is_digit(td_str text, size_t at)
{
    return at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9';
}

/* One or two digits at *at, which is moved past them; exactly two when is_fixed. */
static bool text_read_pair(td_str text, size_t *at, bool is_fixed, int *ret)
{
    if (!text_is_digit(text, *at)) {
        return false;
    }
    int value = text.ptr[*at] - '0';
    if (text_is_digit(text, *at + 1)) {
        value = value * 10 + (text.ptr[*at + 1] - '0');
        *at += 2;
    } else if (is_fixed) {
        return false;
    } else {
        *at += 1;
    }
    *ret = value;
    return true;
}

static bool text_read_char(td_str text, size_t *at, char wanted)
{
    if (*at >= text.len || text.ptr[*at] != wanted) {
        return false;
    }
    *at += 1;
    return true;
}

static bool text_read_date(td_str text, size_t *at)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = 0;
    for (; *at < 4; *at += 1) {
        if (!text_is_digit(text, *at)) {
            return false;
        }
        year = year * 10 + (text.ptr[*at] - '0');
    }
    int month;
    int day;
    bool is_shaped = text_read_char(text, at, '-') && text_read_pair(text, at, false, &month) &&
                     text_read_char(text, at, '-') && text_read_pair(text, at, false, &day);
    if (!is_shaped || month < 1 || month > 12 || day < 1 || day > days[month - 1]) {
        return false;
    }
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month != 2 || day < 29 || is_leap;
}

/* 21:59:43 with an optional fraction of any length after '.' or ','. */
static bool text_read_clock(td_str text, size_t *at)
{
    int hour;
    int minute;
    int second;
    bool is_shaped = text_read_pair(text, at, false, &hour) && text_read_char(text, at, ':') &&
                     text_read_pair(text, at, false, &minute) && text_read_char(text, at, ':') &&
                     text_read_pair(text, at, false, &second);
    if (!is_shaped || hour > 23 || minute > 59 || second > 59) {
        return false;
    }
    bool has_mark = *at < text.len && (text.ptr[*at] == '.' || text.ptr[*at] == ',');
    if (has_mark && text_is_digit(text, *at + 1)) {
        do {
            *at += 1;
        } while (text_is_digit(text, *at));
    }
    return true;
}

/* Z, or an offset such as -05:00; up to 24:60, as Go allows. */
static bool text_read_zone(td_str text, size_t *at)
{
    if (text_read_char(text, at, 'Z')) {
        return true;
    }
    if (!text_read_char(text, at, '+') && !text_read_char(text, at, '-')) {
        return false;
    }
    int hours;
    int minutes;
    return text_read_pair(text, at, true, &hours) && text_read_char(text, at, ':') &&
           text_read_pair(text, at, true, &minutes) && hours <= 24 && minutes <= 60;
}

bool td_yaml_is_timestamp(td_str text)
{
    size_t at = 0;
    if (!text_read_date(text, &at)) {
        return false;
    }
    if (at == text.len) {
        return true;
    }
    if (text_read_char(text, &at, 'T') || text_read_char(text, &at, 't')) {
        return text_read_clock(text, &at) && text_read_zone(text, &at) && at == text.len;
    }
    if (!text_read_char(text, &at, ' ')) {
        return false;
    }
    while (at < text.len && text.ptr[at] == ' ') {
        at++;
    }
    return text_read_clock(text, &at) && at == text.len;
}

td_str td_yaml_valid_utf8(struct td_arena *arena, td_str bytes)
{
    if (td_str_is_utf8(bytes)) {
        return bytes;
    }
    char *out = td_arena_alloc(arena, bytes.len * (sizeof(REPLACEMENT) - 1));
    size_t len = 0;
    for (size_t at = 0; at < bytes.len;) {
        size_t n = td_str_utf8_char(td_str_slice(bytes, at, bytes.len));
        td_str piece = n > 0 ? td_str_slice(bytes, at, at + n) : TD_STR(REPLACEMENT);
        memcpy(out + len, piece.ptr, piece.len);
        len += piece.len;
        at += n > 0 ? n : 1;
    }
    return (td_str){.ptr = out, .len = len};
}
