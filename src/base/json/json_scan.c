/*
 * The parts of the scanner that are too large to be inlined: strings with escapes, UTF-8, numbers,
 * and the words of each error.
 */
#include "base/json/json_scan.h"

const char *td_json_scan_fail(struct td_json_reader *reader, const char *at, int code,
                              const char *problem)
{
    if (reader->code == TD_OK) {
        reader->at = at;
        reader->code = code;
        reader->problem = problem;
        reader->expect = TD_JSON_EXPECT_NOTHING;
    }
    return NULL;
}

const char *td_json_scan_fail_expected(struct td_json_reader *reader, const char *at,
                                       uint8_t expect)
{
    const char *problem = "expected nothing after the value";
    if (expect == TD_JSON_EXPECT_AFTER_MEMBER) {
        problem = "expected ',' or '}' after a member";
    } else if (expect == TD_JSON_EXPECT_AFTER_ITEM) {
        problem = "expected ',' or ']' after an item";
    }
    return td_json_scan_fail(reader, at, TD_INVALID, problem);
}

static bool scan_is_word(const char *at, const char *end, const char *word, size_t len)
{
    return (size_t)(end - at) >= len && memcmp(at, word, len) == 0;
}

const char *td_json_scan_word(struct td_json_reader *reader, const char *at,
                              enum td_json_token *ret_token)
{
    if (scan_is_word(at, reader->end, "true", 4)) {
        *ret_token = TD_JSON_TRUE;
        return at + 4;
    }
    if (scan_is_word(at, reader->end, "false", 5)) {
        *ret_token = TD_JSON_FALSE;
        return at + 5;
    }
    if (scan_is_word(at, reader->end, "null", 4)) {
        *ret_token = TD_JSON_NULL;
        return at + 4;
    }
    if (at == reader->begin && scan_is_word(at, reader->end, "\xEF\xBB\xBF", 3)) {
        return td_json_scan_fail(reader, at, TD_INVALID, "expected a value, not a byte order mark");
    }
    return td_json_scan_fail(reader, at, TD_INVALID, "expected a value");
}

/* The value of the hexadecimal digit, or 16. */
static uint32_t scan_hex_digit(char byte)
{
    if (json_scan_is_digit(byte)) {
        return (uint32_t)(byte - '0');
    }
    char lower = (char)(byte | 0x20);
    return lower >= 'a' && lower <= 'f' ? (uint32_t)(lower - 'a') + 10 : 16;
}

/* The four hexadecimal digits at `at`; false when they are cut short or something else. */
static bool scan_hex(const char *at, const char *end, uint32_t *ret)
{
    if (end - at < 4) {
        return false;
    }
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t digit = scan_hex_digit(at[i]);
        if (digit > 15) {
            return false;
        }
        value = value << 4 | digit;
    }
    *ret = value;
    return true;
}

/* From the 'u' of an escape. Halves of a surrogate pair are accepted only together and in order:
 * alone they are no character and could not be written as UTF-8. */
static const char *scan_unicode_escape(struct td_json_reader *reader, const char *at)
{
    const char *end = reader->end;
    uint32_t unit;
    if (!scan_hex(at + 1, end, &unit)) {
        return td_json_scan_fail(reader, at, TD_INVALID,
                                 "expected four hexadecimal digits after \\u");
    }
    if (unit < 0xD800 || unit > 0xDFFF) {
        return at + 5;
    }
    uint32_t low;
    bool is_pair = unit < 0xDC00 && end - at >= 7 && at[5] == '\\' && at[6] == 'u' &&
                   scan_hex(at + 7, end, &low) && low >= 0xDC00 && low <= 0xDFFF;
    if (!is_pair) {
        return td_json_scan_fail(reader, at, TD_INVALID, "half of a surrogate pair in \\u escapes");
    }
    return at + 11;
}

static const char *scan_escape(struct td_json_reader *reader, const char *at)
{
    reader->has_escape = true;
    at++;
    if (at == reader->end) {
        return td_json_scan_fail(reader, at, TD_INVALID, "the text ends inside a string");
    }
    switch (*at) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return at + 1;
    case 'u':
        return scan_unicode_escape(reader, at);
    default:
        return td_json_scan_fail(reader, at, TD_INVALID, "unknown escape in a string");
    }
}

/* The second byte's range depends on the lead byte: that excludes overlong forms, surrogates and
 * what lies past U+10FFFF. */
size_t td_json_scan_utf8_char(const char *at, size_t len)
{
    const unsigned char *p = (const unsigned char *)at;
    unsigned char lead = p[0];
    size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || len < need) {
        return 0;
    }
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high) {
        return 0;
    }
    if (need > 2 && (p[2] & 0xC0) != 0x80) {
        return 0;
    }
    if (need > 3 && (p[3] & 0xC0) != 0x80) {
        return 0;
    }
    return need;
}

const char *td_json_scan_special(struct td_json_reader *reader, const char *at)
{
    if (*at == '\\') {
        return scan_escape(reader, at);
    }
    if ((unsigned char)*at < 0x20) {
        return td_json_scan_fail(reader, at, TD_INVALID,
                                 "control character in a string must be escaped");
    }
    while (at < reader->end && (unsigned char)*at >= 0x80) {
        size_t len = td_json_scan_utf8_char(at, (size_t)(reader->end - at));
        if (len == 0) {
            return td_json_scan_fail(reader, at, TD_INVALID, "invalid UTF-8 in a string");
        }
        at += len;
    }
    return at;
}

const char *td_json_scan_string_tail(struct td_json_reader *reader, const char *at)
{
    while (at && at < reader->end && *at != '"') {
        unsigned char byte = (unsigned char)*at;
        if (byte >= 0x20 && byte < 0x80 && byte != '\\') {
            at++;
        } else {
            at = td_json_scan_special(reader, at);
        }
    }
    if (!at) {
        return NULL;
    }
    if (at == reader->end) {
        return td_json_scan_fail(reader, at, TD_INVALID, "the text ends inside a string");
    }
    return at + 1;
}

static size_t scan_put_utf8(uint32_t point, char *out)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xC0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3F));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xE0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3F));
        out[2] = (char)(0x80 | (point & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3F));
    out[2] = (char)(0x80 | (point >> 6 & 0x3F));
    out[3] = (char)(0x80 | (point & 0x3F));
    return 4;
}

static char scan_escape_value(char letter)
{
    switch (letter) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return letter;
    }
}

/* Decode the escape at `at` (a backslash) to `out`; returns how many bytes were read and sets how
 * many were written. The digits were checked when the string was read. */
static size_t scan_decode_escape(const char *at, const char *end, char *out, size_t *ret_written)
{
    if (at[1] != 'u') {
        out[0] = scan_escape_value(at[1]);
        *ret_written = 1;
        return 2;
    }
    uint32_t point = 0;
    uint32_t low = 0;
    (void)scan_hex(at + 2, end, &point);
    if (point < 0xD800 || point > 0xDFFF) {
        *ret_written = scan_put_utf8(point, out);
        return 6;
    }
    (void)scan_hex(at + 8, end, &low);
    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    *ret_written = scan_put_utf8(point, out);
    return 12;
}

size_t td_json_scan_unescape(td_str raw, char *out)
{
    const char *at = raw.ptr;
    const char *end = raw.ptr + raw.len;
    size_t len = 0;
    while (at < end) {
        const char *slash = memchr(at, '\\', (size_t)(end - at));
        size_t run = (size_t)((slash ? slash : end) - at);
        memcpy(out + len, at, run);
        len += run;
        at += run;
        if (at < end) {
            size_t written;
            at += scan_decode_escape(at, end, out + len, &written);
            len += written;
        }
    }
    return len;
}

bool td_json_scan_is_unescaped(td_str raw, td_str name)
{
    const char *at = raw.ptr;
    const char *end = raw.ptr + raw.len;
    size_t matched = 0;
    while (at < end) {
        char piece[4] = {*at};
        size_t written = 1;
        at += *at == '\\' ? scan_decode_escape(at, end, piece, &written) : 1;
        if (written > name.len - matched || memcmp(piece, name.ptr + matched, written) != 0) {
            return false;
        }
        matched += written;
    }
    return matched == name.len;
}
