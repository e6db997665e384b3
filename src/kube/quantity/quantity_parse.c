/*
 * Reading quantities: Go's ParseQuantity and UnmarshalJSON.
 *
 * Upstream reads numbers of up to 18 digits straight into an int64 and keeps the text of those that
 * are written canonically; all others become decimals, are rounded away from zero to whole nanos
 * and keep no text. Exponents wrap at 32 bits as they do upstream ("1e4294967296" is 1). Digits are
 * only expanded up to TD_QUANTITY_DIGITS_MAX, so no exponent costs more than a short one.
 */
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "kube/quantity/decimal.h"
#include "kube/quantity/quantity.h"
#include "kube/quantity/quantity_private.h"

#define NANO_SCALE (-9)        /* the finest digit that parsing keeps */
#define SMALL_DIGITS_MAX 18    /* of a decimal that is stored as int64 at once */
#define SMALL_BINARY_DIGITS 14 /* the same before a binary suffix, its own digits included */

struct parts {
    td_str whole;    /* without zeros in front; may be empty */
    td_str fraction; /* after the point; may be empty */
    td_str suffix;
    bool is_negative;
    bool has_digit;
};

struct unit {
    enum td_quantity_format format; /* BINARY_SI: the exponent counts twos, else tens */
    int32_t exponent;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_suffix_letter(char c)
{
    switch (c) {
    case 'e':
    case 'E':
    case 'i':
    case 'n':
    case 'u':
    case 'm':
    case 'k':
    case 'K':
    case 'M':
    case 'G':
    case 'T':
    case 'P':
        return true;
    default:
        return false;
    }
}

static td_str take_digits(const char **at, const char *end)
{
    const char *begin = *at;
    while (*at < end && is_digit(**at)) {
        (*at)++;
    }
    return (td_str){.ptr = begin, .len = (size_t)(*at - begin)};
}

/* Split "-0012.50e+3" into its parts; false when it has another shape. */
static bool parts_scan(td_str text, struct parts *ret)
{
    const char *at = text.ptr;
    const char *end = text.ptr + text.len;
    ret->is_negative = *at == '-';
    if (*at == '-' || *at == '+') {
        at++;
    }
    const char *digits = at;
    while (at < end && *at == '0') {
        at++;
    }
    ret->whole = take_digits(&at, end);
    ret->has_digit = at > digits;
    ret->fraction = TD_STR_EMPTY;
    if (at < end && *at == '.') {
        at++;
        ret->fraction = take_digits(&at, end);
        ret->has_digit = ret->has_digit || ret->fraction.len > 0;
    }
    ret->suffix = (td_str){.ptr = at, .len = (size_t)(end - at)};
    while (at < end && is_suffix_letter(*at)) {
        at++;
    }
    if (at < end && (*at == '-' || *at == '+')) {
        at++;
    }
    (void)take_digits(&at, end); /* They belong to the suffix, which is read as a whole. */
    return at == end;
}

static bool unit_letter(char letter, struct unit *ret)
{
    static const struct {
        char letter;
        int32_t exponent;
    } rows[] = {{'n', -9}, {'u', -6}, {'m', -3}, {'k', 3}, {'M', 6},
                {'G', 9},  {'T', 12}, {'P', 15}, {'E', 18}};
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (rows[i].letter == letter) {
            *ret = (struct unit){.format = TD_QUANTITY_DECIMAL_SI, .exponent = rows[i].exponent};
            return true;
        }
    }
    return false;
}

static bool unit_binary(char letter, struct unit *ret)
{
    static const char letters[] = "KMGTPE";
    for (int32_t i = 0; letters[i] != '\0'; i++) {
        if (letters[i] == letter) {
            *ret = (struct unit){.format = TD_QUANTITY_BINARY_SI, .exponent = 10 * (i + 1)};
            return true;
        }
    }
    return false;
}

static bool unit_parse(td_str suffix, struct unit *ret)
{
    if (suffix.len == 0) {
        *ret = (struct unit){.format = TD_QUANTITY_DECIMAL_SI, .exponent = 0};
        return true;
    }
    if (suffix.len == 1) {
        return unit_letter(suffix.ptr[0], ret);
    }
    if (suffix.len == 2 && suffix.ptr[1] == 'i') {
        return unit_binary(suffix.ptr[0], ret);
    }
    int64_t exponent = 0;
    if ((suffix.ptr[0] != 'e' && suffix.ptr[0] != 'E') ||
        !td_str_to_int64(td_str_slice(suffix, 1, suffix.len), &exponent)) {
        return false;
    }
    *ret = (struct unit){
        .format = TD_QUANTITY_DECIMAL_EXPONENT,
        .exponent = td_quantity_scale_add(0, exponent),
    };
    return true;
}

/* Does the number end in "000", its fraction counted? Upstream then shortens the text. */
static bool parts_end_in_thousand(const struct parts *parts)
{
    size_t zeros = 0;
    for (size_t i = parts->fraction.len; i > 0 && parts->fraction.ptr[i - 1] == '0'; i--) {
        zeros++;
    }
    if (zeros < parts->fraction.len) {
        return zeros >= 3;
    }
    for (size_t i = parts->whole.len; i > 0 && parts->whole.ptr[i - 1] == '0'; i--) {
        zeros++;
    }
    return zeros >= 3;
}

static uint64_t digits_value(td_str digits, uint64_t value)
{
    for (size_t i = 0; i < digits.len; i++) {
        value = value * 10 + (uint64_t)(digits.ptr[i] - '0');
    }
    return value;
}

/* Numbers that upstream stores as int64 at once; only these keep their text. False for others. */
static bool parse_small(td_str text, const struct parts *parts, const struct unit *unit,
                        struct td_quantity *ret)
{
    size_t whole_digits = parts->whole.len > 0 ? parts->whole.len : 1;
    uint64_t value = 0;
    int32_t scale = 0;
    bool keeps_text = false;
    uint32_t shift = 0;
    if (unit->format == TD_QUANTITY_BINARY_SI) {
        shift = (uint32_t)unit->exponent;
        if (parts->fraction.len > 0 || whole_digits + shift * 3 / 10 > SMALL_BINARY_DIGITS) {
            return false;
        }
        value = digits_value(parts->whole, 0);
        keeps_text = value % 8 != 0;
    } else {
        scale = td_quantity_scale_add(unit->exponent, -(int64_t)parts->fraction.len);
        if (whole_digits + parts->fraction.len > SMALL_DIGITS_MAX || scale < NANO_SCALE) {
            return false;
        }
        value = digits_value(parts->fraction, digits_value(parts->whole, 0));
        keeps_text = scale % 3 == 0 && parts->whole.len > 0 && !parts_end_in_thousand(parts);
    }
    int64_t result = (int64_t)(value << shift);
    *ret = (struct td_quantity){
        .value = parts->is_negative ? -result : result,
        .scale = scale,
        .format = unit->format,
        .big = NULL,
        .text = keeps_text ? text : TD_STR_EMPTY,
    };
    return true;
}

/* Any other number: rounded away from zero to whole nanos and, with a binary suffix, capped. */
static void parse_big(struct td_arena *arena, const struct parts *parts, const struct unit *unit,
                      struct td_quantity *ret)
{
    uint64_t first[TD_DECIMAL_LIMBS_MAX];
    uint64_t second[TD_DECIMAL_LIMBS_MAX];
    uint64_t third[TD_DECIMAL_LIMBS_MAX];
    struct td_decimal number = td_decimal_from_digits(parts->whole, parts->fraction, first);
    int64_t scale = -(int64_t)parts->fraction.len;
    bool is_binary = unit->format == TD_QUANTITY_BINARY_SI;
    if (is_binary) {
        number = td_decimal_multiply(&number, INT64_C(1) << unit->exponent, second);
    } else {
        scale += unit->exponent;
    }
    number.scale = scale < INT32_MIN ? INT32_MIN : (int32_t)scale;
    enum td_quantity_format format = unit->format;
    if (number.count > 0) {
        bool is_exact = false;
        number = td_decimal_round(&number, NANO_SCALE, &is_exact, third);
    }
    if (is_binary && number.count > 0) {
        struct td_decimal max = td_decimal_from_int64(INT64_MAX, 0, first);
        number = td_decimal_compare(&number, &max) > 0 ? max : number;
        uint64_t limbs[TD_DECIMAL_LIMBS_MAX];
        struct td_decimal one = td_decimal_from_int64(1, 0, limbs);
        format = td_decimal_compare(&number, &one) < 0 ? TD_QUANTITY_DECIMAL_SI : format;
    }
    number.is_negative = parts->is_negative && number.count > 0;
    ret->format = format;
    td_quantity_store(arena, ret, &number);
}

int td_quantity_parse(struct td_arena *arena, td_str text, struct td_quantity *ret,
                      struct td_error *err)
{
    if (text.len > TD_QUANTITY_TEXT_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT, "quantity '%.32s...' has %zu bytes: at most %d",
                            text.ptr, text.len, TD_QUANTITY_TEXT_BYTES_MAX);
    }
    if (text.len == 1 && text.ptr[0] == '0') {
        *ret = (struct td_quantity){.format = TD_QUANTITY_DECIMAL_SI, .text = text};
        return TD_OK;
    }
    struct parts parts;
    if (text.len == 0 || !parts_scan(text, &parts)) {
        return td_error_set(err, TD_INVALID,
                            "quantity '%.*s' is not a number with a suffix such as m, k, Ki, Mi or "
                            "e3",
                            TD_STR_ARG(text));
    }
    struct unit unit;
    if (!unit_parse(parts.suffix, &unit)) {
        return td_error_set(err, TD_INVALID,
                            "quantity '%.*s' has the unknown suffix '%.*s': use n, u, m, k, M, G, "
                            "T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent such as e3",
                            TD_STR_ARG(text), TD_STR_ARG(parts.suffix));
    }
    if (parse_small(text, &parts, &unit, ret)) {
        return TD_OK;
    }
    if (!parts.has_digit) {
        return td_error_set(err, TD_INVALID, "quantity '%.*s' has no digits", TD_STR_ARG(text));
    }
    struct td_quantity quantity;
    parse_big(arena, &parts, &unit, &quantity);
    if (quantity.big && td_arena_check(arena, err) != TD_OK) {
        return TD_LIMIT;
    }
    *ret = quantity;
    return TD_OK;
}

/* The length of the space that begins at `at`, by Unicode's White_Space as Go trims it; 0 for
 * anything else. */
static size_t space_length(const char *at, size_t len)
{
    static const td_str wide[] = {
        TD_STR_INIT("\xc2\x85"), TD_STR_INIT("\u00a0"), TD_STR_INIT("\u1680"),
        TD_STR_INIT("\u2000"),   TD_STR_INIT("\u2001"), TD_STR_INIT("\u2002"),
        TD_STR_INIT("\u2003"),   TD_STR_INIT("\u2004"), TD_STR_INIT("\u2005"),
        TD_STR_INIT("\u2006"),   TD_STR_INIT("\u2007"), TD_STR_INIT("\u2008"),
        TD_STR_INIT("\u2009"),   TD_STR_INIT("\u200a"), TD_STR_INIT("\u2028"),
        TD_STR_INIT("\u2029"),   TD_STR_INIT("\u202f"), TD_STR_INIT("\u205f"),
        TD_STR_INIT("\u3000"),
    };
    if (len == 0) {
        return 0;
    }
    if (*at == ' ' || (*at >= '\t' && *at <= '\r')) {
        return 1;
    }
    for (size_t i = 0; (unsigned char)*at >= 0x80 && i < TD_COUNT(wide); i++) {
        if (td_str_starts_with((td_str){.ptr = at, .len = len}, wide[i])) {
            return wide[i].len;
        }
    }
    return 0;
}

static td_str trim_spaces(td_str text)
{
    for (size_t n; (n = space_length(text.ptr, text.len)) > 0;) {
        text = td_str_slice(text, n, text.len);
    }
    while (text.len > 0) {
        /* A space is one to three bytes long: step back to where its character begins. */
        size_t begin = text.len - 1;
        while (begin > 0 && text.len - begin < 3 &&
               ((unsigned char)text.ptr[begin] & 0xc0) == 0x80) {
            begin--;
        }
        if (space_length(text.ptr + begin, text.len - begin) != text.len - begin) {
            break;
        }
        text.len = begin;
    }
    return text;
}

int td_quantity_parse_json(struct td_arena *arena, td_str token, struct td_quantity *ret,
                           struct td_error *err)
{
    if (td_str_equal(token, TD_STR("null"))) {
        *ret = (struct td_quantity){.format = TD_QUANTITY_NONE, .text = TD_STR_EMPTY};
        return TD_OK;
    }
    /* Upstream takes the bytes between the quotes as they are: an escape is no part of a number. */
    if (token.len >= 2 && token.ptr[0] == '"' && token.ptr[token.len - 1] == '"') {
        token = td_str_slice(token, 1, token.len - 1);
    }
    return td_quantity_parse(arena, trim_spaces(token), ret, err);
}

int td_quantity_from_json(struct td_arena *arena, const struct td_json *node,
                          struct td_quantity *ret, struct td_error *err)
{
    if (!node || node->type == TD_JSON_TYPE_NULL) {
        *ret = (struct td_quantity){.format = TD_QUANTITY_NONE, .text = TD_STR_EMPTY};
        return TD_OK;
    }
    if (node->type != TD_JSON_TYPE_STRING && node->type != TD_JSON_TYPE_NUMBER) {
        return td_error_set(err, TD_INVALID, "a quantity must be a string or a number");
    }
    return td_quantity_parse(arena, trim_spaces(node->text), ret, err);
}
