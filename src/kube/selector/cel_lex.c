/*
 * Tokens of CEL. As in upstream's lexer the longest token wins, and a text that begins none is
 * refused with the bytes that were looked at: from its start to the character that fits nowhere.
 */
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "kube/selector/cel.h"

#define LEX_SHOWN_BYTES_MAX 512 /* of a message */

static int lex_at(td_str text, size_t i)
{
    return i < text.len ? (unsigned char)text.ptr[i] : -1;
}

static bool lex_is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool lex_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool lex_is_hex(int c)
{
    return lex_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static size_t lex_skip_digits(td_str text, size_t i)
{
    while (lex_is_digit(lex_at(text, i))) {
        i++;
    }
    return i;
}

/* Behind white space and comments. */
static size_t lex_skip_blank(td_str text, size_t i)
{
    while (i < text.len) {
        if (memchr(" \t\r\n\f", text.ptr[i], 5)) {
            i++;
        } else if (text.ptr[i] == '/' && lex_at(text, i + 1) == '/') {
            i = td_str_find(text, '\n', i);
        } else {
            return i;
        }
    }
    return i;
}

/* ---- Strings ---- */

/* Behind the escape at `i`; 0 when it is none, *ret_bad then where it breaks. */
static size_t lex_escape(td_str text, size_t i, size_t *ret_bad)
{
    int c = lex_at(text, i + 1);
    size_t digits = c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    *ret_bad = i + 1;
    if (c > 0 && strchr("abfnrtv\"'\\?`", c)) {
        return i + 2;
    }
    if (c >= '0' && c <= '3') {
        for (size_t k = 2; k < 4; k++) {
            *ret_bad = i + k;
            if (lex_at(text, i + k) < '0' || lex_at(text, i + k) > '7') {
                return 0;
            }
        }
        return i + 4;
    }
    for (size_t k = 0; k < digits; k++) {
        *ret_bad = i + 2 + k;
        if (!lex_is_hex(lex_at(text, i + 2 + k))) {
            return 0;
        }
    }
    return digits > 0 ? i + 2 + digits : 0;
}

/* Behind the string whose quotes (1 or 3) are at `i`; 0 when it does not end, *ret_bad then where
 * it breaks. */
static size_t lex_quoted(td_str text, size_t i, size_t quotes, bool is_raw, size_t *ret_bad)
{
    td_str closing = td_str_slice(text, i, i + quotes);
    i += quotes;
    while (i < text.len) {
        if (td_str_equal(td_str_slice(text, i, i + quotes), closing)) {
            return i + quotes;
        }
        bool is_line_end = text.ptr[i] == '\n' || text.ptr[i] == '\r';
        if (is_line_end && quotes == 1) {
            break;
        }
        if (text.ptr[i] == '\\' && !is_raw) {
            i = lex_escape(text, i, ret_bad);
            if (i == 0) {
                return 0;
            }
        } else {
            i++;
        }
    }
    *ret_bad = i;
    return 0;
}

/* Behind the string, prefix included, that begins at `i`; 0: none. */
static size_t lex_string(td_str text, size_t i, bool is_raw, size_t *ret_bad)
{
    int quote = lex_at(text, i);
    if (quote != '"' && quote != '\'') {
        return 0;
    }
    bool is_triple = lex_at(text, i + 1) == quote && lex_at(text, i + 2) == quote;
    size_t end = is_triple ? lex_quoted(text, i, 3, is_raw, ret_bad) : 0;
    return end > 0 ? end : lex_quoted(text, i, 1, is_raw, ret_bad);
}

/* ---- Numbers and words ---- */

/* Behind the exponent at `i`, or `i`. */
static size_t lex_exponent(td_str text, size_t i)
{
    int c = lex_at(text, i);
    size_t at = i + 1 + (lex_at(text, i + 1) == '+' || lex_at(text, i + 1) == '-' ? 1 : 0);
    return (c == 'e' || c == 'E') && lex_is_digit(lex_at(text, at)) ? lex_skip_digits(text, at) : i;
}

static size_t lex_number(td_str text, size_t i, enum td_cel_token_type *ret_type)
{
    size_t whole = lex_skip_digits(text, i);
    size_t end = whole;
    if (lex_at(text, whole) == '.' && lex_is_digit(lex_at(text, whole + 1))) {
        end = lex_skip_digits(text, whole + 1);
    }
    if (whole > i || end > whole) {
        end = lex_exponent(text, end);
    }
    if (end > whole) {
        *ret_type = TD_CEL_FLOAT;
        return end;
    }
    if (lex_at(text, i) == '0' && lex_at(text, i + 1) == 'x' && lex_is_hex(lex_at(text, i + 2))) {
        for (end = i + 2; lex_is_hex(lex_at(text, end));) {
            end++;
        }
    }
    bool is_unsigned = lex_at(text, end) == 'u' || lex_at(text, end) == 'U';
    *ret_type = is_unsigned ? TD_CEL_UINT : TD_CEL_INT;
    return is_unsigned ? end + 1 : end;
}

static size_t lex_word(td_str text, size_t i, enum td_cel_token_type *ret_type)
{
    static const td_str words[] = {TD_STR_INIT("true"), TD_STR_INIT("false"), TD_STR_INIT("null")};
    size_t end = i;
    while (lex_is_letter(lex_at(text, end)) || lex_is_digit(lex_at(text, end))) {
        end++;
    }
    td_str word = td_str_slice(text, i, end);
    *ret_type = td_str_equal(word, TD_STR("in"))                ? TD_CEL_SYMBOL
                : td_str_is_among(word, words, TD_COUNT(words)) ? TD_CEL_WORD
                                                                : TD_CEL_IDENTIFIER;
    return end;
}

/* Behind the `identifier` at `i`; 0: it is none. */
static size_t lex_escaped(td_str text, size_t i, size_t *ret_bad)
{
    size_t end = i + 1;
    while (lex_is_letter(lex_at(text, end)) || lex_is_digit(lex_at(text, end)) ||
           (end < text.len && memchr(".-/ ", text.ptr[end], 4))) {
        end++;
    }
    *ret_bad = end;
    return lex_at(text, end) == '`' && end > i + 1 ? end + 1 : 0;
}

static size_t lex_symbol(td_str text, size_t i, size_t *ret_bad)
{
    static const td_str pairs[] = {TD_STR_INIT("=="), TD_STR_INIT("!="), TD_STR_INIT("<="),
                                   TD_STR_INIT(">="), TD_STR_INIT("&&"), TD_STR_INIT("||")};
    if (td_str_is_among(td_str_slice(text, i, i + 2), pairs, TD_COUNT(pairs))) {
        return i + 2;
    }
    bool is_half = memchr("=&|", text.ptr[i], 3) != NULL;
    *ret_bad = is_half ? i + 1 : i;
    return memchr("[]{}().,-!?:+*/%<>", text.ptr[i], 18) ? i + 1 : 0;
}

/* ---- One token ---- */

static int lex_refuse(td_str text, size_t from, size_t bad, struct td_error *err)
{
    size_t step = bad < text.len ? td_str_utf8_char(td_str_slice(text, bad, text.len)) : 0;
    td_str shown = td_str_slice(text, from, bad + (step > 0 ? step : 1));
    shown = td_str_cut_utf8(shown, LEX_SHOWN_BYTES_MAX);
    return td_error_set(err, TD_INVALID, "Syntax error: token recognition error at: '%.*s'",
                        TD_STR_ARG(shown));
}

/* A string with the prefix that its first letters are; 0: they are none of one. */
static size_t lex_prefixed(td_str text, size_t i, enum td_cel_token_type *ret_type, size_t *ret_bad)
{
    size_t at = i;
    bool is_bytes = lex_at(text, at) == 'b' || lex_at(text, at) == 'B';
    at += is_bytes ? 1 : 0;
    bool is_raw = lex_at(text, at) == 'r' || lex_at(text, at) == 'R';
    at += is_raw ? 1 : 0;
    *ret_type = is_bytes ? TD_CEL_BYTES : TD_CEL_STRING;
    return lex_string(text, at, is_raw, ret_bad);
}

int td_cel_next(td_str text, size_t from, struct td_cel_token *ret, struct td_error *err)
{
    size_t i = lex_skip_blank(text, from);
    if (i >= text.len) {
        *ret = (struct td_cel_token){.type = TD_CEL_END, .text = TD_STR("<EOF>"), .end = i};
        return TD_OK;
    }
    enum td_cel_token_type type = TD_CEL_SYMBOL;
    int c = lex_at(text, i);
    size_t bad = i;
    size_t end = lex_prefixed(text, i, &type, &bad);
    if (end > 0) {
        /* A string. */
    } else if (lex_is_digit(c) || (c == '.' && lex_is_digit(lex_at(text, i + 1)))) {
        end = lex_number(text, i, &type);
    } else if (lex_is_letter(c)) {
        end = lex_word(text, i, &type);
    } else if (c == '`') {
        type = TD_CEL_ESCAPED;
        end = lex_escaped(text, i, &bad);
    } else if (c != '"' && c != '\'') {
        type = TD_CEL_SYMBOL;
        end = lex_symbol(text, i, &bad);
    }
    if (end == 0) {
        return lex_refuse(text, i, bad, err);
    }
    *ret = (struct td_cel_token){.type = type, .text = td_str_slice(text, i, end), .end = end};
    return TD_OK;
}

/* ---- What a string means ---- */

static bool lex_write_utf8(struct td_buf *out, uint32_t rune)
{
    char bytes[4];
    size_t count = 0;
    if (rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000)) {
        return false;
    }
    if (rune < 0x80) {
        bytes[count++] = (char)rune;
    } else {
        int extra = rune < 0x800 ? 1 : rune < 0x10000 ? 2 : 3;
        static const unsigned char heads[] = {0, 0xc0, 0xe0, 0xf0};
        bytes[count++] = (char)(heads[extra] | (rune >> (6 * extra)));
        for (int k = extra - 1; k >= 0; k--) {
            bytes[count++] = (char)(0x80 | ((rune >> (6 * k)) & 0x3f));
        }
    }
    (void)td_buf_append(out, (td_str){.ptr = bytes, .len = count});
    return true;
}

/* The rune of the digits of an escape. */
static uint32_t lex_digits(td_str digits, uint32_t base)
{
    uint32_t rune = 0;
    for (size_t i = 0; i < digits.len; i++) {
        char c = digits.ptr[i];
        uint32_t digit = (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        rune = rune * base + digit;
    }
    return rune;
}

static bool lex_write_escape(td_str escape, struct td_buf *out)
{
    static const char letters[] = "abfnrtv";
    static const char meanings[] = "\a\b\f\n\r\t\v";
    const char *letter = strchr(letters, escape.ptr[1]);
    if (escape.len > 2) {
        bool is_octal = escape.ptr[1] <= '9';
        td_str digits = td_str_slice(escape, is_octal ? 1 : 2, escape.len);
        return lex_write_utf8(out, lex_digits(digits, is_octal ? 8 : 16));
    }
    (void)td_buf_append_char(out, letter ? meanings[letter - letters] : escape.ptr[1]);
    return true;
}

int td_cel_unquote(struct td_arena *arena, td_str token, td_str *ret, struct td_error *err)
{
    bool is_raw = token.ptr[0] == 'r' || token.ptr[0] == 'R';
    size_t from = is_raw ? 1 : 0;
    size_t quotes = token.len >= from + 6 && token.ptr[from + 1] == token.ptr[from] &&
                            token.ptr[from + 2] == token.ptr[from]
                        ? 3
                        : 1;
    td_str inner = td_str_slice(token, from + quotes, token.len - quotes);
    if (is_raw || td_str_find(inner, '\\', 0) == inner.len) {
        *ret = inner;
        return TD_OK;
    }
    td_auto_buf out = td_buf_capped(inner.len); /* an escape is never shorter than what it means */
    size_t bad;
    for (size_t i = 0; i < inner.len;) {
        size_t end = inner.ptr[i] == '\\' ? lex_escape(inner, i, &bad) : i + 1;
        td_str piece = td_str_slice(inner, i, end);
        if (piece.len == 1) {
            (void)td_buf_append(&out, piece);
        } else if (!lex_write_escape(piece, &out)) {
            return td_error_set(err, TD_INVALID, "invalid unicode code point");
        }
        i = end;
    }
    *ret = td_arena_copy_str(arena, td_buf_str(&out));
    return TD_OK;
}
