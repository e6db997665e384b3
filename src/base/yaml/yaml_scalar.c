/*
 * The rules are those of the YAML 1.1 reader under sigs.k8s.io/yaml, which differ from the YAML
 * specification in places that manifests rely on:
 *
 *  1. The first byte decides what is tried at all. A letter outside yYnNtTfFoO~ always begins a
 *     string, so "Inf" and "0" with a leading letter never become numbers, and "null" is found
 *     through its 'n'.
 *  2. Numbers drop every '_' first (1_000), then are read as Go reads an integer of any base (0x,
 * 0o, 0b, or a leading 0 for octal), then as a decimal float. So 017 is 15, and 08, which is no
 *     octal, is the float 8.
 *  3. Whole numbers past 64 bits become floats, and floats past the range of float64 stay strings.
 *  4. A text that begins with '.' is a float by Go's own grammar, in which '_' must stand between
 *     digits.
 *  5. Base 60 (1:30) is not read; dates are recognised but stay strings.
 */
#include "base/yaml/yaml_scalar.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/yaml/yaml_text.h"

#define YAML_TAG_PREFIX "tag:yaml.org,2002:"
#define YAML_FLOAT32_DIGITS_MAX 9       /* enough for every float to read back as itself */
#define YAML_FLOAT32_EXACT_DIGITS 120   /* after the point: the longest expansion of a float */
#define YAML_FLOAT32_END 0x1.ffffffp127 /* from here a double rounds to an infinite float */
#define YAML_DECIMAL_BYTES 40
#define YAML_FLOAT32_EXACT_BYTES (YAML_FLOAT32_EXACT_DIGITS + 16)

static struct td_yaml_scalar scalar_string(td_str text)
{
    return (struct td_yaml_scalar){.kind = TD_YAML_STRING, .text = text};
}

static bool scalar_is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Words. The empty text is null too. */
static bool scalar_resolve_word(td_str text, struct td_yaml_scalar *ret)
{
    static const struct {
        td_str forms[5];
        struct td_yaml_scalar value;
    } words[] = {
        {{TD_STR_INIT("y"), TD_STR_INIT("Y"), TD_STR_INIT("yes"), TD_STR_INIT("Yes"),
          TD_STR_INIT("YES")},
         {.kind = TD_YAML_BOOL, .boolean = true}},
        {{TD_STR_INIT("true"), TD_STR_INIT("True"), TD_STR_INIT("TRUE")},
         {.kind = TD_YAML_BOOL, .boolean = true}},
        {{TD_STR_INIT("on"), TD_STR_INIT("On"), TD_STR_INIT("ON")},
         {.kind = TD_YAML_BOOL, .boolean = true}},
        {{TD_STR_INIT("n"), TD_STR_INIT("N"), TD_STR_INIT("no"), TD_STR_INIT("No"),
          TD_STR_INIT("NO")},
         {.kind = TD_YAML_BOOL, .boolean = false}},
        {{TD_STR_INIT("false"), TD_STR_INIT("False"), TD_STR_INIT("FALSE")},
         {.kind = TD_YAML_BOOL, .boolean = false}},
        {{TD_STR_INIT("off"), TD_STR_INIT("Off"), TD_STR_INIT("OFF")},
         {.kind = TD_YAML_BOOL, .boolean = false}},
        {{TD_STR_INIT("~"), TD_STR_INIT("null"), TD_STR_INIT("Null"), TD_STR_INIT("NULL")},
         {.kind = TD_YAML_NULL}},
        {{TD_STR_INIT(".nan"), TD_STR_INIT(".NaN"), TD_STR_INIT(".NAN")},
         {.kind = TD_YAML_FLOAT, .number = (double)NAN}},
        {{TD_STR_INIT(".inf"), TD_STR_INIT(".Inf"), TD_STR_INIT(".INF")},
         {.kind = TD_YAML_FLOAT, .number = (double)INFINITY}},
        {{TD_STR_INIT("+.inf"), TD_STR_INIT("+.Inf"), TD_STR_INIT("+.INF")},
         {.kind = TD_YAML_FLOAT, .number = (double)INFINITY}},
        {{TD_STR_INIT("-.inf"), TD_STR_INIT("-.Inf"), TD_STR_INIT("-.INF")},
         {.kind = TD_YAML_FLOAT, .number = -(double)INFINITY}},
    };
    if (text.len == 0) {
        *ret = (struct td_yaml_scalar){.kind = TD_YAML_NULL};
        return true;
    }
    for (size_t i = 0; i < TD_COUNT(words) && text.len <= 5; i++) {
        for (size_t f = 0; f < 5 && words[i].forms[f].len > 0; f++) {
            if (td_str_equal(text, words[i].forms[f])) {
                *ret = words[i].value;
                return true;
            }
        }
    }
    return false;
}

/* The value of digits in `base`; false when there are none, one is foreign, or 64 bits overflow. */
static bool scalar_read_digits(td_str digits, uint64_t base, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits.len; i++) {
        char c = digits.ptr[i];
        char lower = (char)(c | 0x20);
        uint64_t digit = base;
        if (scalar_is_digit(c)) {
            digit = (uint64_t)(c - '0');
        } else if (lower >= 'a' && lower <= 'f') {
            digit = (uint64_t)(lower - 'a') + 10;
        }
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
    }
    *ret = value;
    return digits.len > 0;
}

/* Digits after an optional sign, with the base that their prefix asks for. */
static bool scalar_read_magnitude(td_str digits, uint64_t *ret)
{
    if (digits.len >= 3 && digits.ptr[0] == '0') {
        char letter = (char)(digits.ptr[1] | 0x20);
        uint64_t base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
        if (base > 0) {
            return scalar_read_digits(td_str_slice(digits, 2, digits.len), base, ret);
        }
    }
    if (digits.len >= 2 && digits.ptr[0] == '0') {
        return scalar_read_digits(td_str_slice(digits, 1, digits.len), 8, ret);
    }
    return scalar_read_digits(digits, 10, ret);
}

/* A magnitude with its sign as INT, or as UINT when it is large and was written without a sign. */
static bool scalar_make_int(uint64_t magnitude, char sign, struct td_yaml_scalar *ret)
{
    uint64_t limit = (uint64_t)INT64_MAX + (sign == '-' ? 1 : 0);
    if (magnitude <= limit) {
        int64_t value = (int64_t)(sign == '-' ? 0 - magnitude : magnitude);
        *ret = (struct td_yaml_scalar){.kind = TD_YAML_INT, .integer = value};
        return true;
    }
    if (sign == '\0') {
        *ret = (struct td_yaml_scalar){.kind = TD_YAML_UINT, .large = magnitude};
        return true;
    }
    return false;
}

static bool scalar_is_sign(char byte)
{
    return byte == '+' || byte == '-';
}

static bool scalar_read_int(td_str text, struct td_yaml_scalar *ret)
{
    char sign = text.len > 0 && scalar_is_sign(text.ptr[0]) ? text.ptr[0] : '\0';
    uint64_t magnitude;
    return scalar_read_magnitude(td_str_slice(text, sign ? 1 : 0, text.len), &magnitude) &&
           scalar_make_int(magnitude, sign, ret);
}

/* The library tries binary once more with the sign behind the prefix, so 0b-1 is -1. */
static bool scalar_read_binary(td_str text, struct td_yaml_scalar *ret)
{
    if (!td_str_starts_with(text, TD_STR("0b")) || text.len < 3 || !scalar_is_sign(text.ptr[2])) {
        return false;
    }
    uint64_t magnitude;
    return scalar_read_digits(td_str_slice(text, 3, text.len), 2, &magnitude) &&
           scalar_make_int(magnitude, text.ptr[2], ret);
}

static size_t scalar_skip_digits(td_str text, size_t at)
{
    while (at < text.len && scalar_is_digit(text.ptr[at])) {
        at++;
    }
    return at;
}

/*
 * A decimal float: sign, digits with an optional point (at least one digit), exponent. The pieces
 * are put together again as a JSON number (no plus, no spare zeros, digits on both sides of the
 * point), so that one function of json.h does the exact conversion.
 */
static bool scalar_read_float(td_str text, double *ret)
{
    size_t whole = text.len > 0 && scalar_is_sign(text.ptr[0]) ? 1 : 0;
    size_t whole_end = scalar_skip_digits(text, whole);
    bool has_point = whole_end < text.len && text.ptr[whole_end] == '.';
    size_t fraction = has_point ? whole_end + 1 : whole_end;
    size_t fraction_end = scalar_skip_digits(text, fraction);
    if (whole_end == whole && fraction_end == fraction) {
        return false;
    }
    size_t exponent = fraction_end;
    if (exponent < text.len && (text.ptr[exponent] | 0x20) == 'e') {
        size_t digits = exponent + 1;
        digits += digits < text.len && scalar_is_sign(text.ptr[digits]) ? 1 : 0;
        size_t end = scalar_skip_digits(text, digits);
        if (end == digits || end != text.len) {
            return false;
        }
    } else if (exponent != text.len) {
        return false;
    }
    while (whole < whole_end && text.ptr[whole] == '0') {
        whole++;
    }
    td_auto_buf number = td_buf_capped(text.len + 1);
    if (text.ptr[0] == '-') {
        (void)td_buf_append_char(&number, '-'); /* fits: at most one byte longer than the text */
    }
    td_str digits = whole < whole_end ? td_str_slice(text, whole, whole_end) : TD_STR("0");
    (void)td_buf_append(&number, digits);
    if (fraction < fraction_end) {
        (void)td_buf_append(&number, td_str_slice(text, fraction - 1, fraction_end));
    }
    (void)td_buf_append(&number, td_str_slice(text, exponent, text.len));
    td_assert(!number.is_full);
    struct td_json node = {.type = TD_JSON_TYPE_NUMBER, .text = td_buf_str(&number)};
    return td_json_to_double(&node, ret);
}

/* Every '_' must stand between two digits. */
static bool scalar_underscores_separate(td_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool is_between = i > 0 && i + 1 < text.len && scalar_is_digit(text.ptr[i - 1]) &&
                          scalar_is_digit(text.ptr[i + 1]);
        if (text.ptr[i] == '_' && !is_between) {
            return false;
        }
    }
    return true;
}

static void scalar_drop_underscores(td_str text, struct td_buf *out)
{
    char *place = td_buf_reserve(out, text.len);
    td_assert(place);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '_') {
            place[len++] = text.ptr[i];
        }
    }
    td_buf_commit(out, len);
}

static bool scalar_resolve_number(td_str text, struct td_yaml_scalar *ret)
{
    td_auto_buf stripped = td_buf_capped(text.len);
    bool is_point_first = text.ptr[0] == '.';
    if (td_str_find(text, '_', 0) < text.len) {
        if (is_point_first && !scalar_underscores_separate(text)) {
            return false;
        }
        scalar_drop_underscores(text, &stripped);
        text = td_buf_str(&stripped);
    }
    if (!is_point_first && scalar_read_int(text, ret)) {
        return true;
    }
    double number;
    if (scalar_read_float(text, &number)) {
        *ret = (struct td_yaml_scalar){.kind = TD_YAML_FLOAT, .number = number};
        return true;
    }
    return scalar_read_binary(text, ret);
}

/* Words and numbers; `with_dates` also tells timestamps from strings. */
static struct td_yaml_scalar scalar_resolve(td_str text, bool with_dates)
{
    struct td_yaml_scalar scalar = scalar_string(text);
    if (scalar_resolve_word(text, &scalar)) {
        return scalar;
    }
    if (with_dates && td_yaml_is_timestamp(text)) {
        scalar.kind = TD_YAML_TIMESTAMP;
        return scalar;
    }
    char first = text.ptr[0];
    if (scalar_is_digit(first) || scalar_is_sign(first) || first == '.') {
        (void)scalar_resolve_number(text, &scalar); /* when it is no number it stays a string */
    }
    return scalar;
}

struct td_yaml_scalar td_yaml_resolve_plain(td_str text)
{
    return scalar_resolve(text, true);
}

static const char *scalar_kind_name(enum td_yaml_kind kind)
{
    switch (kind) {
    case TD_YAML_NULL:
        return "null";
    case TD_YAML_BOOL:
        return "bool";
    case TD_YAML_INT:
    case TD_YAML_UINT:
        return "int";
    case TD_YAML_FLOAT:
        return "float";
    case TD_YAML_TIMESTAMP:
        return "timestamp";
    case TD_YAML_STRING:
    default:
        return "str";
    }
}

int td_yaml_resolve_tagged(struct td_arena *arena, td_str tag, td_str text,
                           struct td_yaml_scalar *ret, struct td_error *err)
{
    td_str name = TD_STR_EMPTY;
    if (td_str_starts_with(tag, TD_STR(YAML_TAG_PREFIX))) {
        name = td_str_slice(tag, sizeof(YAML_TAG_PREFIX) - 1, tag.len);
    }
    if (td_str_equal(name, TD_STR("binary"))) {
        td_str decoded;
        if (!td_base64_read(arena, text, TD_BASE64_STANDARD, &decoded)) {
            return td_error_set(err, TD_INVALID, "!!binary value is not valid base64");
        }
        *ret = scalar_string(td_yaml_valid_utf8(arena, decoded));
        return TD_OK;
    }
    bool is_checked = td_str_equal(name, TD_STR("bool")) || td_str_equal(name, TD_STR("int")) ||
                      td_str_equal(name, TD_STR("float")) || td_str_equal(name, TD_STR("null")) ||
                      td_str_equal(name, TD_STR("timestamp"));
    if (!is_checked) {
        *ret = scalar_string(text);
        return TD_OK;
    }
    struct td_yaml_scalar scalar = scalar_resolve(text, td_str_equal(name, TD_STR("timestamp")));
    if (td_str_equal(name, TD_STR("float")) && scalar.kind == TD_YAML_INT) {
        scalar = (struct td_yaml_scalar){.kind = TD_YAML_FLOAT, .number = (double)scalar.integer};
    }
    const char *kind = scalar_kind_name(scalar.kind);
    if (!td_str_equal(name, td_str_from(kind))) {
        return td_error_set(err, TD_INVALID, "'%.*s' is a !!%s and not a !!%.*s", TD_STR_ARG(text),
                            kind, TD_STR_ARG(name));
    }
    *ret = scalar;
    return TD_OK;
}

struct scalar_decimal {
    long digits;  /* the first `count` digits, as a number */
    int count;    /* 1 to YAML_FLOAT32_DIGITS_MAX */
    int exponent; /* of the first digit */
};

static void scalar_print(struct scalar_decimal decimal, char text[static YAML_DECIMAL_BYTES])
{
    (void)snprintf(text, YAML_DECIMAL_BYTES, "%lde%d", decimal.digits,
                   decimal.exponent - decimal.count + 1);
}

/* The decimal as the double next to it: with so few digits it prints as the same decimal again. */
static double scalar_value(struct scalar_decimal decimal)
{
    char text[YAML_DECIMAL_BYTES];
    scalar_print(decimal, text);
    return strtod(text, NULL);
}

static bool scalar_reads_back(struct scalar_decimal decimal, float value)
{
    char text[YAML_DECIMAL_BYTES];
    scalar_print(decimal, text);
    return strtof(text, NULL) == value;
}

/* Are the digits before the exponent more than half of a unit of the digit before them? */
static bool scalar_rounds_up(const char *rest, bool on_tie)
{
    if (*rest != '5') {
        return *rest > '5' && *rest <= '9'; /* an 'e' means that nothing is left */
    }
    rest++;
    while (*rest == '0') {
        rest++;
    }
    return *rest == 'e' ? on_tie : true;
}

/*
 * The shortest decimal that reads back as |value|, and of those of that length the nearest. It is
 * looked for on both sides of the exact expansion, because next to a power of two the nearest one
 * may miss where its neighbour reads back. A tie goes to the even digit, at a power of two upwards.
 */
static struct scalar_decimal scalar_shortest(float value)
{
    char exact[YAML_FLOAT32_EXACT_BYTES];
    value = fabsf(value);
    (void)snprintf(exact, sizeof(exact), "%.*e", YAML_FLOAT32_EXACT_DIGITS, (double)value);
    struct scalar_decimal down = {.digits = exact[0] - '0', .count = 1};
    down.exponent = (int)strtol(exact + YAML_FLOAT32_EXACT_DIGITS + 3, NULL, 10);
    const char *rest = exact + 2; /* digits that `down` leaves out */
    int power;
    bool is_power = frexpf(value, &power) == 0.5F;
    for (;;) {
        struct scalar_decimal up = down;
        up.digits++;
        if (up.digits == 10) { /* only the first digit can carry: 9.9 is found as 10 there */
            up.digits = 1;
            up.exponent++;
        }
        bool is_down = scalar_reads_back(down, value);
        bool is_up = scalar_reads_back(up, value);
        if (is_down || is_up || down.count == YAML_FLOAT32_DIGITS_MAX) {
            bool is_upper = scalar_rounds_up(rest, down.digits % 2 != 0 || is_power);
            return is_up && (!is_down || is_upper) ? up : down;
        }
        down.digits = down.digits * 10 + (*rest - '0');
        down.count++;
        rest++;
    }
}

/*
 * A float as the library names it when it is a key: the shortest digits that read back as the same
 * 32-bit float (whatever precision the text had), with an exponent below 1e-4 and from 1e6. So 0.1
 * is "0.1", 1e3 is "1000" and 1234567.0 is "1.234567e+06".
 */
static td_str scalar_float_key(struct td_arena *arena, double number)
{
    if (isnan(number)) {
        return TD_STR(".nan");
    }
    if (fabs(number) >= YAML_FLOAT32_END) {
        return number < 0 ? TD_STR("-.inf") : TD_STR(".inf");
    }
    bool is_past_max = fabs(number) > (double)FLT_MAX; /* but nearer to it than to the end */
    float single = is_past_max ? copysignf(FLT_MAX, signbit(number) ? -1.0F : 1.0F) : (float)number;
    struct scalar_decimal decimal = scalar_shortest(single);
    const char *sign = signbit(single) ? "-" : "";
    int places = decimal.count - 1 - decimal.exponent;
    if (decimal.exponent >= -4 && decimal.exponent < 6) {
        return td_arena_format(arena, "%s%.*f", sign, places > 0 ? places : 0,
                               scalar_value(decimal));
    }
    return td_arena_format(arena, "%s%.*e", sign, decimal.count - 1, scalar_value(decimal));
}

int td_yaml_scalar_key(struct td_arena *arena, const struct td_yaml_scalar *scalar, td_str *ret,
                       struct td_error *err)
{
    switch (scalar->kind) {
    case TD_YAML_NULL:
        return td_error_set(err, TD_INVALID, "a key is null");
    case TD_YAML_BOOL:
        *ret = scalar->boolean ? TD_STR("true") : TD_STR("false");
        return TD_OK;
    case TD_YAML_INT:
        *ret = td_arena_format(arena, "%lld", (long long)scalar->integer);
        return TD_OK;
    case TD_YAML_UINT:
        return td_error_set(err, TD_INVALID,
                            "key %llu is larger than any whole number a key can be",
                            (unsigned long long)scalar->large);
    case TD_YAML_FLOAT:
        *ret = scalar_float_key(arena, scalar->number);
        return TD_OK;
    case TD_YAML_TIMESTAMP:
    case TD_YAML_STRING:
    default:
        *ret = td_arena_copy_str(arena, scalar->text);
        return TD_OK;
    }
}

int td_yaml_scalar_node(struct td_arena *arena, const struct td_yaml_scalar *scalar,
                        struct td_json **ret, struct td_error *err)
{
    switch (scalar->kind) {
    case TD_YAML_NULL:
        *ret = td_json_new_null(arena);
        return TD_OK;
    case TD_YAML_BOOL:
        *ret = td_json_new_bool(arena, scalar->boolean);
        return TD_OK;
    case TD_YAML_INT:
        *ret = td_json_new_int64(arena, scalar->integer);
        return TD_OK;
    case TD_YAML_UINT:
        *ret = td_json_new_number(
            arena, td_arena_format(arena, "%llu", (unsigned long long)scalar->large));
        return TD_OK;
    case TD_YAML_FLOAT:
        if (!isfinite(scalar->number)) {
            return td_error_set(err, TD_INVALID, "%s cannot be written as a JSON number",
                                isnan(scalar->number) ? ".nan"
                                : scalar->number < 0  ? "-.inf"
                                                      : ".inf");
        }
        *ret = td_json_new_double(arena, scalar->number);
        return TD_OK;
    case TD_YAML_TIMESTAMP:
    case TD_YAML_STRING:
    default:
        *ret = td_json_new_string(arena, td_arena_copy_str(arena, scalar->text));
        return TD_OK;
    }
}
