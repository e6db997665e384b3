/*
 * Private to the JSON modules: the one state machine under the pull reader, skip and the tree. One
 * call of td_json_scan_step checks and passes one token; the caller keeps the position and the
 * expectation in registers. The functions are inline because a token is a dozen bytes long and a
 * call would cost as much as the work (bench/bench_json.c). A failure is stored in the reader and
 * reported as a NULL position.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/error.h"
#include "base/json/json_reader.h"

#define JSON_INLINE static inline __attribute__((always_inline))

enum td_json_expect {
    TD_JSON_EXPECT_VALUE,        /* at the start, and after a member's name */
    TD_JSON_EXPECT_FIRST_MEMBER, /* after '{' */
    TD_JSON_EXPECT_FIRST_ITEM,   /* after '[' */
    TD_JSON_EXPECT_AFTER_MEMBER, /* after a value in an object */
    TD_JSON_EXPECT_AFTER_ITEM,   /* after a value in an array */
    TD_JSON_EXPECT_END,          /* after the outermost value */
    TD_JSON_EXPECT_NOTHING,      /* after a failure */
};

/* Store the first failure and return NULL. */
const char *td_json_scan_fail(struct td_json_reader *reader, const char *at, int code,
                              const char *problem);

/* From a byte of a string that is not plain ASCII text: check it and what belongs to it (an escape,
 * a run of UTF-8 characters) and return the byte after. */
const char *td_json_scan_special(struct td_json_reader *reader, const char *at);

/* The rest of a string byte by byte, for the last bytes of the text; returns past its quote. */
const char *td_json_scan_string_tail(struct td_json_reader *reader, const char *at);

/* Slow parts of the step, kept out of the way of the fast ones. */
const char *td_json_scan_word(struct td_json_reader *reader, const char *at,
                              enum td_json_token *ret_token);
const char *td_json_scan_fail_expected(struct td_json_reader *reader, const char *at,
                                       uint8_t expect);

/* Length of the well-formed character of two to four bytes at `at`, or 0. */
size_t td_json_scan_utf8_char(const char *at, size_t len);

/* Resolve the escapes of a checked string into `out`, which has room for raw.len bytes; returns the
 * decoded length, which is never larger. */
size_t td_json_scan_unescape(td_str raw, char *out);

/* Is `name` the checked string `raw` with its escapes resolved? */
bool td_json_scan_is_unescaped(td_str raw, td_str name);

#ifdef __SSE2__

#define JSON_SCAN_WIDTH 16

/* Index of the first byte that ends or interrupts plain ASCII text, or JSON_SCAN_WIDTH. */
JSON_INLINE unsigned json_scan_plain(const char *at)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
    /* The mask takes each byte's top bit, so the bytes themselves add all that is not ASCII. */
    __m128i stop = _mm_or_si128(_mm_or_si128(quote, slash), _mm_or_si128(control, bytes));
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(stop) | 1U << JSON_SCAN_WIDTH);
}

/* Index of the first byte that is not white space, or JSON_SCAN_WIDTH. */
JSON_INLINE unsigned json_scan_blank(const char *at)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i space = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(' '));
    __m128i tab = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
    __m128i line = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'));
    __m128i carriage = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r'));
    __m128i blank = _mm_or_si128(_mm_or_si128(space, tab), _mm_or_si128(line, carriage));
    return (unsigned)__builtin_ctz(~(unsigned)_mm_movemask_epi8(blank));
}

#else

#define JSON_SCAN_WIDTH 8
#define JSON_SCAN_EACH(byte) (0x0101010101010101U * (uint64_t)(byte))

JSON_INLINE uint64_t json_scan_load(const char *at)
{
    uint64_t bytes;
    memcpy(&bytes, at, sizeof(bytes));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    return bytes;
}

/* The top bit of each byte below `limit` (at most 128); bits above the first hit may be wrong. */
JSON_INLINE uint64_t json_scan_below(uint64_t bytes, unsigned limit)
{
    return (bytes - JSON_SCAN_EACH(limit)) & ~bytes & JSON_SCAN_EACH(0x80);
}

JSON_INLINE unsigned json_scan_plain(const char *at)
{
    uint64_t bytes = json_scan_load(at);
    uint64_t stop = json_scan_below(bytes ^ JSON_SCAN_EACH('"'), 1);
    stop |= json_scan_below(bytes ^ JSON_SCAN_EACH('\\'), 1);
    stop |= json_scan_below(bytes, 0x20) | (bytes & JSON_SCAN_EACH(0x80));
    return stop ? (unsigned)__builtin_ctzll(stop) / 8 : JSON_SCAN_WIDTH;
}

JSON_INLINE unsigned json_scan_blank(const char *at)
{
    unsigned i = 0;
    while (i < JSON_SCAN_WIDTH &&
           (at[i] == ' ' || (at[i] >= '\t' && at[i] <= '\r' && at[i] != '\v' && at[i] != '\f'))) {
        i++;
    }
    return i;
}

#endif

JSON_INLINE bool json_scan_is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

/* Past white space; compact texts have none, pretty ones have much. */
JSON_INLINE const char *json_scan_space(const char *at, const char *end)
{
    if (at < end && (unsigned char)*at > ' ') {
        return at;
    }
    while (end - at >= JSON_SCAN_WIDTH) {
        unsigned len = json_scan_blank(at);
        at += len;
        if (len < JSON_SCAN_WIDTH) {
            return at;
        }
    }
    while (at < end && json_scan_is_space(*at)) {
        at++;
    }
    return at;
}

JSON_INLINE bool json_scan_is_digit(char byte)
{
    return (unsigned char)(byte - '0') < 10;
}

/* From the byte after the opening quote; sets text and has_escape, returns past the closing one. */
JSON_INLINE const char *json_scan_string(struct td_json_reader *reader, const char *at,
                                         const char *end)
{
    const char *from = at;
    reader->has_escape = false;
    while (end - at >= JSON_SCAN_WIDTH) {
        unsigned len = json_scan_plain(at);
        at += len;
        if (len == JSON_SCAN_WIDTH) {
            continue;
        }
        if (*at == '"') {
            reader->text = (td_str){.ptr = from, .len = (size_t)(at - from)};
            return at + 1;
        }
        at = td_json_scan_special(reader, at);
        if (!at) {
            return NULL;
        }
    }
    at = td_json_scan_string_tail(reader, at);
    if (at) {
        reader->text = (td_str){.ptr = from, .len = (size_t)(at - 1 - from)};
    }
    return at;
}

JSON_INLINE const char *json_scan_digits(const char *at, const char *end)
{
    while (at < end && json_scan_is_digit(*at)) {
        at++;
    }
    return at;
}

JSON_INLINE const char *json_scan_number(struct td_json_reader *reader, const char *at,
                                         const char *end)
{
    const char *from = at;
    at += *at == '-';
    const char *digits = at;
    at = json_scan_digits(at, end);
    if (at == digits) {
        return td_json_scan_fail(reader, at, TD_INVALID, "expected a digit after '-'");
    }
    if (*digits == '0' && at - digits > 1) {
        return td_json_scan_fail(reader, digits, TD_INVALID, "a number must not begin with 0");
    }
    if (at < end && *at == '.') {
        digits = at + 1;
        at = json_scan_digits(digits, end);
        if (at == digits) {
            return td_json_scan_fail(reader, at, TD_INVALID, "expected a digit after '.'");
        }
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        digits = at + 1;
        digits += digits < end && (*digits == '+' || *digits == '-');
        at = json_scan_digits(digits, end);
        if (at == digits) {
            return td_json_scan_fail(reader, at, TD_INVALID, "expected a digit in the exponent");
        }
    }
    reader->text = (td_str){.ptr = from, .len = (size_t)(at - from)};
    return at;
}

/* What comes after a value, by the collection that is open. */
JSON_INLINE uint8_t json_scan_after(const struct td_json_reader *reader)
{
    if (reader->depth == 0) {
        return TD_JSON_EXPECT_END;
    }
    uint32_t level = reader->depth - 1;
    bool is_object = reader->is_object[level / 64] >> level % 64 & 1;
    return is_object ? TD_JSON_EXPECT_AFTER_MEMBER : TD_JSON_EXPECT_AFTER_ITEM;
}

JSON_INLINE const char *json_scan_open(struct td_json_reader *reader, const char *at,
                                       uint8_t *expect, enum td_json_token *ret_token)
{
    uint32_t level = reader->depth;
    if (level >= reader->depth_max) {
        return td_json_scan_fail(reader, at, TD_LIMIT, "nested too deep");
    }
    uint64_t bit = (uint64_t)1 << level % 64;
    reader->depth = level + 1;
    if (*at == '{') {
        reader->is_object[level / 64] |= bit;
        *expect = TD_JSON_EXPECT_FIRST_MEMBER;
        *ret_token = TD_JSON_BEGIN_OBJECT;
    } else {
        reader->is_object[level / 64] &= ~bit;
        *expect = TD_JSON_EXPECT_FIRST_ITEM;
        *ret_token = TD_JSON_BEGIN_ARRAY;
    }
    return at + 1;
}

/* At '}' or ']', which the caller has found to be the right one. */
JSON_INLINE const char *json_scan_close(struct td_json_reader *reader, const char *at,
                                        uint8_t *expect, enum td_json_token *ret_token)
{
    *ret_token = *at == '}' ? TD_JSON_END_OBJECT : TD_JSON_END_ARRAY;
    reader->depth--;
    *expect = json_scan_after(reader);
    return at + 1;
}

/* A member's name and its colon. */
JSON_INLINE const char *json_scan_key(struct td_json_reader *reader, const char *at,
                                      const char *end, uint8_t *expect,
                                      enum td_json_token *ret_token)
{
    if (at == end || *at != '"') {
        return td_json_scan_fail(reader, at, TD_INVALID, "expected a member's name in quotes");
    }
    at = json_scan_string(reader, at + 1, end);
    if (!at) {
        return NULL;
    }
    at = json_scan_space(at, end);
    if (at == end || *at != ':') {
        return td_json_scan_fail(reader, at, TD_INVALID, "expected ':' after a member's name");
    }
    *expect = TD_JSON_EXPECT_VALUE;
    *ret_token = TD_JSON_KEY;
    return at + 1;
}

JSON_INLINE const char *json_scan_value(struct td_json_reader *reader, const char *at,
                                        const char *end, uint8_t *expect,
                                        enum td_json_token *ret_token)
{
    if (at == end) {
        return td_json_scan_fail(reader, at, TD_INVALID, "expected a value");
    }
    char byte = *at;
    if (byte == '"') {
        *ret_token = TD_JSON_STRING;
        *expect = json_scan_after(reader);
        return json_scan_string(reader, at + 1, end);
    }
    if (byte == '{' || byte == '[') {
        return json_scan_open(reader, at, expect, ret_token);
    }
    *expect = json_scan_after(reader);
    if (json_scan_is_digit(byte) || byte == '-') {
        *ret_token = TD_JSON_NUMBER;
        return json_scan_number(reader, at, end);
    }
    return td_json_scan_word(reader, at, ret_token);
}

/* One token from `at`: returns the place after it, or NULL after a failure. At the end of the text
 * the token is TD_JSON_END. */
JSON_INLINE const char *json_scan_step(struct td_json_reader *reader, const char *at,
                                       const char *end, uint8_t *expect,
                                       enum td_json_token *ret_token)
{
    at = json_scan_space(at, end);
    char byte = at < end ? *at : '\0';
    switch (*expect) {
    case TD_JSON_EXPECT_AFTER_MEMBER:
        if (byte == ',') {
            at = json_scan_space(at + 1, end);
            return json_scan_key(reader, at, end, expect, ret_token);
        }
        if (byte == '}') {
            return json_scan_close(reader, at, expect, ret_token);
        }
        break;
    case TD_JSON_EXPECT_VALUE:
        return json_scan_value(reader, at, end, expect, ret_token);
    case TD_JSON_EXPECT_FIRST_MEMBER:
        if (byte == '}') {
            return json_scan_close(reader, at, expect, ret_token);
        }
        return json_scan_key(reader, at, end, expect, ret_token);
    case TD_JSON_EXPECT_AFTER_ITEM:
        if (byte == ',') {
            at = json_scan_space(at + 1, end);
            return json_scan_value(reader, at, end, expect, ret_token);
        }
        if (byte == ']') {
            return json_scan_close(reader, at, expect, ret_token);
        }
        break;
    case TD_JSON_EXPECT_FIRST_ITEM:
        if (byte == ']') {
            return json_scan_close(reader, at, expect, ret_token);
        }
        return json_scan_value(reader, at, end, expect, ret_token);
    case TD_JSON_EXPECT_END:
        if (at == end) {
            *ret_token = TD_JSON_END;
            return at;
        }
        break;
    default:
        return NULL;
    }
    return td_json_scan_fail_expected(reader, at, *expect);
}
