/*
 * A number's text is read as sign * 0.D1D2D3... * 10^point, where D1 and the last digit are not
 * zero. That form is unique, so two numbers are equal when sign, digits and point are; and nothing
 * in it grows with the size of the exponent. The digits stay in the text, with a dot among them at
 * most, so taking a number apart allocates nothing.
 */
#include "base/json/json_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json/json_scan.h"

#define NUMBER_EXPONENT_DIGITS_MAX 18 /* so that sums with text lengths stay inside int64 */

/* A double is decided by at most 767 significant digits and whether anything follows them. */
#define NUMBER_DOUBLE_DIGITS_MAX 780

/* Beyond these decimal points every double is infinite, or zero. */
#define NUMBER_DOUBLE_POINT_MAX 400

struct number_parts {
    bool is_negative;
    bool is_zero;
    bool is_huge;    /* the exponent has too many digits: point leaves it out, exponent has it */
    td_str digits;   /* from the first to the last digit that is not zero; may hold a dot */
    size_t count;    /* digits in it, without the dot */
    int64_t point;   /* where the decimal point is, counted from before the first digit */
    td_str exponent; /* when huge: its digits without leading zeros */
    bool is_huge_negative;
};

static void number_read_exponent(td_str text, struct number_parts *parts)
{
    bool is_negative = text.ptr[0] == '-';
    size_t at = text.ptr[0] == '-' || text.ptr[0] == '+';
    while (at < text.len && text.ptr[at] == '0') {
        at++;
    }
    td_str digits = td_str_slice(text, at, text.len);
    int64_t value = 0;
    if (digits.len > NUMBER_EXPONENT_DIGITS_MAX) {
        parts->is_huge = true;
        parts->exponent = digits;
    } else {
        (void)(digits.len > 0 && td_str_to_int64(digits, &value)); /* 18 digits always fit */
    }
    parts->point += is_negative ? -value : value;
    parts->is_huge_negative = is_negative && parts->is_huge;
}

static struct number_parts number_read(td_str text)
{
    struct number_parts parts = {.is_negative = text.ptr[0] == '-'};
    size_t from = parts.is_negative;
    size_t to = from;
    while (to < text.len && (text.ptr[to] | 0x20) != 'e') {
        to++;
    }
    size_t dot = td_str_find(td_str_slice(text, 0, to), '.', from);
    size_t first = from;
    while (first < to && (text.ptr[first] == '0' || text.ptr[first] == '.')) {
        first++;
    }
    if (first == to) {
        parts.is_zero = true;
        return parts;
    }
    size_t last = to;
    while (text.ptr[last - 1] == '0' || text.ptr[last - 1] == '.') {
        last--;
    }
    parts.digits = td_str_slice(text, first, last);
    parts.count = last - first - (first < dot && dot < last);
    parts.point = (int64_t)dot - (int64_t)first + (first > dot);
    if (to < text.len) {
        number_read_exponent(td_str_slice(text, to + 1, text.len), &parts);
    }
    return parts;
}

bool td_json_number_is_valid(td_str text)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, text, 1);
    return td_json_reader_next(&reader) == TD_JSON_NUMBER && reader.text.len == text.len;
}

bool td_json_number_to_int64(td_str text, int64_t *ret)
{
    if (td_str_to_int64(text, ret)) {
        return true; /* nearly all: digits and nothing else */
    }
    struct number_parts parts = number_read(text);
    if (parts.is_zero) {
        *ret = 0;
        return true;
    }
    /* An int64 has 19 digits at most, and a whole number no digit after its point. */
    if (parts.is_huge || parts.point > 19 || parts.point < (int64_t)parts.count) {
        return false;
    }
    char digits[21] = {'-'};
    size_t len = parts.is_negative;
    for (size_t i = 0; i < parts.digits.len; i++) {
        if (parts.digits.ptr[i] != '.') {
            digits[len++] = parts.digits.ptr[i];
        }
    }
    while (len < (size_t)parts.point + parts.is_negative) {
        digits[len++] = '0';
    }
    return td_str_to_int64((td_str){.ptr = digits, .len = len}, ret);
}

/* Up to 15 digits and a power of ten up to 10^22 are exact doubles, so one multiplication or
 * division rounds once, as it must. */
static bool number_to_double_exact(const struct number_parts *parts, double *ret)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    int64_t power = parts->point - (int64_t)parts->count;
    if (parts->is_huge || parts->count > 15 || power < -22 || power > 22) {
        return false;
    }
    int64_t whole = 0;
    for (size_t i = 0; i < parts->digits.len; i++) {
        if (parts->digits.ptr[i] != '.') {
            whole = whole * 10 + (parts->digits.ptr[i] - '0');
        }
    }
    double value = (double)whole;
    value = power < 0 ? value / powers[-power] : value * powers[power];
    *ret = parts->is_negative ? -value : value;
    return true;
}

bool td_json_number_to_double(td_str text, double *ret)
{
    struct number_parts parts = number_read(text);
    bool is_tiny = parts.is_huge ? parts.is_huge_negative : parts.point < -NUMBER_DOUBLE_POINT_MAX;
    if (parts.is_zero || is_tiny) {
        *ret = parts.is_negative ? -0.0 : 0.0;
        return true;
    }
    if (parts.is_huge || parts.point > NUMBER_DOUBLE_POINT_MAX) {
        return false;
    }
    if (number_to_double_exact(&parts, ret)) {
        return true;
    }
    char digits[NUMBER_DOUBLE_DIGITS_MAX + 32] = "-0.";
    size_t len = 3;
    for (size_t i = 0; i < parts.digits.len && len < NUMBER_DOUBLE_DIGITS_MAX; i++) {
        if (parts.digits.ptr[i] != '.') {
            digits[len++] = parts.digits.ptr[i];
        }
    }
    if (len - 3 < parts.count) {
        digits[len++] = '1'; /* stands for what was cut: its last digit is not zero */
    }
    (void)snprintf(digits + len, sizeof(digits) - len, "e%d", (int)parts.point);
    double value = strtod(digits + !parts.is_negative, NULL);
    if (isinf(value)) {
        return false;
    }
    *ret = value;
    return true;
}

/* Equal digits, where one text may have a dot that the other has elsewhere or not at all. */
static bool number_digits_equal(td_str a, td_str b)
{
    size_t i = 0;
    size_t j = 0;
    for (;;) {
        i += i < a.len && a.ptr[i] == '.';
        j += j < b.len && b.ptr[j] == '.';
        if (i == a.len || j == b.len) {
            return i == a.len && j == b.len;
        }
        if (a.ptr[i++] != b.ptr[j++]) {
            return false;
        }
    }
}

bool td_json_number_equal(td_str a, td_str b)
{
    if (td_str_equal(a, b)) {
        return true;
    }
    struct number_parts x = number_read(a);
    struct number_parts y = number_read(b);
    if (x.is_zero || y.is_zero) {
        return x.is_zero && y.is_zero;
    }
    return x.is_negative == y.is_negative && x.count == y.count && x.point == y.point &&
           x.is_huge == y.is_huge && x.is_huge_negative == y.is_huge_negative &&
           td_str_equal(x.exponent, y.exponent) && number_digits_equal(x.digits, y.digits);
}
