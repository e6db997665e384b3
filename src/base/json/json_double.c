/*
 * A float64 as Go writes it: the shortest decimal that reads back as the same double, and among the
 * shortest the nearest one. Found by printing and reading back, which is exact in every C library
 * that counts:
 *
 * 1. A decimal of up to 15 digits survives the way through a normal double, so if any such text
 *    means this double, printing 15 digits and cutting zeros gives it.
 * 2. Else 16 digits, then 17, which always suffice. A power of two is nearer to its lower neighbour
 *    than to its upper one: there the nearest decimal of 16 digits may mean that neighbour while
 * the next one up means the double. That one is tried too.
 * 3. Doubles below the normal range have fewer digits: all lengths are tried from 1.
 */
#include "base/json/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

#define DOUBLE_DIGITS_MAX 17

struct double_digits {
    char text[DOUBLE_DIGITS_MAX + 16]; /* "d.ddde-dd", as %e prints it */
    int exponent;                      /* of the first digit */
    char digits[DOUBLE_DIGITS_MAX + 1];
    size_t count; /* without zeros at the end */
};

/* Print with `count` digits; is it the same double again? */
static bool double_print(double value, int count, struct double_digits *ret)
{
    (void)snprintf(ret->text, sizeof(ret->text), "%.*e", count - 1, value);
    return strtod(ret->text, NULL) == value;
}

/* Add one to the last digit. Not needed when all are nines: a decimal power is no power of two. */
static bool double_print_above(double value, int count, struct double_digits *ret)
{
    (void)snprintf(ret->text, sizeof(ret->text), "%.*e", count - 1, value);
    for (int i = count; i >= 0; i--) {
        if (ret->text[i] == '.') {
            continue;
        }
        if (ret->text[i] < '9') {
            ret->text[i]++;
            return strtod(ret->text, NULL) == value;
        }
        ret->text[i] = '0';
    }
    return false;
}

static void double_print_shortest(double value, struct double_digits *ret)
{
    int from = value < DBL_MIN ? 1 : 15;
    int exponent;
    bool is_power = frexp(value, &exponent) == 0.5;
    for (int count = from; count < DOUBLE_DIGITS_MAX; count++) {
        if (double_print(value, count, ret) ||
            (is_power && count == 16 && double_print_above(value, count, ret))) {
            return;
        }
    }
    (void)double_print(value, DOUBLE_DIGITS_MAX, ret);
}

static struct double_digits double_read(double value)
{
    struct double_digits parts = {.count = 0};
    double_print_shortest(value, &parts);
    const char *p = parts.text;
    for (; *p != 'e'; p++) {
        if (*p != '.') {
            parts.digits[parts.count++] = *p;
        }
    }
    bool is_negative = p[1] == '-';
    for (p += 2; *p; p++) {
        parts.exponent = parts.exponent * 10 + (*p - '0');
    }
    parts.exponent = is_negative ? -parts.exponent : parts.exponent;
    while (parts.count > 1 && parts.digits[parts.count - 1] == '0') {
        parts.count--;
    }
    return parts;
}

static void double_put_zeros(size_t count, struct td_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append_char(out, '0'); /* the buffer remembers a failure */
    }
}

static void double_put(const char *digits, size_t count, struct td_buf *out)
{
    (void)td_buf_append(out, (td_str){.ptr = digits, .len = count}); /* the buffer remembers */
}

static void double_put_fixed(const struct double_digits *parts, struct td_buf *out)
{
    if (parts->exponent < 0) {
        (void)td_buf_append(out, TD_STR("0.")); /* the buffer remembers */
        double_put_zeros((size_t)(-parts->exponent - 1), out);
        double_put(parts->digits, parts->count, out);
        return;
    }
    size_t whole = (size_t)parts->exponent + 1;
    if (parts->count <= whole) {
        double_put(parts->digits, parts->count, out);
        double_put_zeros(whole - parts->count, out);
        return;
    }
    double_put(parts->digits, whole, out);
    (void)td_buf_append_char(out, '.'); /* the buffer remembers */
    double_put(parts->digits + whole, parts->count - whole, out);
}

/* Go's exponent has a sign and two digits at least; its JSON writer then takes the zero out of
 * e-0X. */
static void double_put_exponent(const struct double_digits *parts, struct td_buf *out)
{
    double_put(parts->digits, 1, out);
    if (parts->count > 1) {
        (void)td_buf_append_char(out, '.'); /* the buffer remembers */
        double_put(parts->digits + 1, parts->count - 1, out);
    }
    (void)td_buf_append_format(out, "e%+d", parts->exponent); /* the buffer remembers */
}

void td_json_write_double(double value, struct td_buf *out)
{
    td_assert(isfinite(value));
    if (signbit(value)) {
        (void)td_buf_append_char(out, '-'); /* the buffer remembers */
        value = -value;
    }
    if (value == 0.0) {
        (void)td_buf_append_char(out, '0'); /* the buffer remembers */
        return;
    }
    struct double_digits parts = double_read(value);
    if (value >= 1e-6 && value < 1e21) {
        double_put_fixed(&parts, out);
    } else {
        double_put_exponent(&parts, out);
    }
}
