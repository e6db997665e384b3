/*
 * Limbs hold eighteen decimal digits, not binary ones. Quantities are written, rounded and aligned
 * in powers of ten all the time and multiplied or divided by powers of two rarely, so with decimal
 * limbs nearly everything is one pass over them, and what an attacker can ask for stays linear.
 *
 * Alignment rests on one idea: decimal_group(x, power) reads the eighteen digits of x from 10^power
 * upwards, wherever the limbs of x begin. Two numbers of different scales are added or compared by
 * reading both in the same groups, and rounding is reading groups that begin at the new scale.
 */
#include "kube/quantity/decimal.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"

#define LIMB_BASE UINT64_C(1000000000000000000)
#define DOUBLE_DIGITS_MAX 309 /* of the integral part of the largest double */
#define DOUBLE_WORDS 18       /* 64-bit words that hold so many digits */
#define FACTOR_DIGITS_MAX 19  /* of an int64 */

typedef unsigned __int128 u128;

const uint64_t td_decimal_powers[19] = {
    UINT64_C(1),
    UINT64_C(10),
    UINT64_C(100),
    UINT64_C(1000),
    UINT64_C(10000),
    UINT64_C(100000),
    UINT64_C(1000000),
    UINT64_C(10000000),
    UINT64_C(100000000),
    UINT64_C(1000000000),
    UINT64_C(10000000000),
    UINT64_C(100000000000),
    UINT64_C(1000000000000),
    UINT64_C(10000000000000),
    UINT64_C(100000000000000),
    UINT64_C(1000000000000000),
    UINT64_C(10000000000000000),
    UINT64_C(100000000000000000),
    UINT64_C(1000000000000000000),
};

static_assert(TD_DECIMAL_LIMBS_MAX * TD_DECIMAL_LIMB_DIGITS >=
                  TD_QUANTITY_DIGITS_MAX + FACTOR_DIGITS_MAX + 2 * TD_DECIMAL_LIMB_DIGITS,
              "a number at its cap leaves room for a carry");

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static int32_t clamp_int32(int64_t value)
{
    if (value > INT32_MAX) {
        return INT32_MAX;
    }
    return value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

/* A view of `count` limbs without the zeros at the top. */
static struct td_decimal decimal_view(const uint64_t *limbs, uint32_t count, int32_t scale,
                                      bool is_negative)
{
    while (count > 0 && limbs[count - 1] == 0) {
        count--;
    }
    return (struct td_decimal){
        .limbs = limbs,
        .count = count,
        .scale = scale,
        .is_negative = is_negative && count > 0,
    };
}

static uint32_t decimal_digits(const struct td_decimal *x)
{
    if (x->count == 0) {
        return 0;
    }
    uint32_t digits = 1;
    while (digits < TD_DECIMAL_LIMB_DIGITS && x->limbs[x->count - 1] >= td_decimal_powers[digits]) {
        digits++;
    }
    return (x->count - 1) * TD_DECIMAL_LIMB_DIGITS + digits;
}

/* The power of ten just above the highest digit. */
static int64_t decimal_top(const struct td_decimal *x)
{
    return (int64_t)x->scale + decimal_digits(x);
}

static uint64_t decimal_limb(const struct td_decimal *x, int64_t index)
{
    return index >= 0 && index < (int64_t)x->count ? x->limbs[index] : 0;
}

/* The digits of 10^power to 10^(power + 17). */
static uint64_t decimal_group(const struct td_decimal *x, int64_t power)
{
    int64_t offset = power - x->scale;
    int64_t index = offset / TD_DECIMAL_LIMB_DIGITS;
    int64_t shift = offset % TD_DECIMAL_LIMB_DIGITS;
    if (shift < 0) {
        index--;
        shift += TD_DECIMAL_LIMB_DIGITS;
    }
    if (shift == 0) {
        return decimal_limb(x, index);
    }
    uint64_t low = decimal_limb(x, index) / td_decimal_powers[shift];
    uint64_t high = decimal_limb(x, index + 1) % td_decimal_powers[shift];
    return low + high * td_decimal_powers[TD_DECIMAL_LIMB_DIGITS - shift];
}

/* Is there a digit other than 0 below 10^power? */
static bool decimal_has_digits_below(const struct td_decimal *x, int64_t power)
{
    int64_t offset = power - x->scale;
    for (int64_t i = 0; i < (int64_t)x->count && offset > 0; i++) {
        uint64_t divisor =
            td_decimal_powers[offset < TD_DECIMAL_LIMB_DIGITS ? offset : TD_DECIMAL_LIMB_DIGITS];
        if (x->limbs[i] % divisor != 0) {
            return true;
        }
        offset -= TD_DECIMAL_LIMB_DIGITS;
    }
    return false;
}

/* The digits from 10^scale upwards; those below are dropped. */
static struct td_decimal decimal_cut(const struct td_decimal *x, int32_t scale,
                                     uint64_t limbs[TD_DECIMAL_LIMBS_MAX])
{
    int64_t digits = decimal_top(x) - scale;
    uint32_t count = 0;
    for (int64_t done = 0; done < digits; done += TD_DECIMAL_LIMB_DIGITS) {
        td_assert(count < TD_DECIMAL_LIMBS_MAX);
        limbs[count++] = decimal_group(x, scale + done);
    }
    return decimal_view(limbs, count, scale, x->is_negative);
}

struct td_decimal td_decimal_from_int64(int64_t value, int32_t scale,
                                        uint64_t limbs[TD_DECIMAL_LIMBS_MAX])
{
    limbs[0] = magnitude(value) % LIMB_BASE;
    limbs[1] = magnitude(value) / LIMB_BASE;
    return decimal_view(limbs, 2, scale, value < 0);
}

struct td_decimal td_decimal_from_digits(td_str high, td_str low,
                                         uint64_t limbs[TD_DECIMAL_LIMBS_MAX])
{
    size_t digits = high.len + low.len;
    td_assert(digits <= TD_QUANTITY_TEXT_BYTES_MAX);
    uint32_t count = 0;
    for (size_t end = digits; end > 0;) {
        size_t begin = end > TD_DECIMAL_LIMB_DIGITS ? end - TD_DECIMAL_LIMB_DIGITS : 0;
        uint64_t limb = 0;
        for (size_t i = begin; i < end; i++) {
            char digit = i < high.len ? high.ptr[i] : low.ptr[i - high.len];
            limb = limb * 10 + (uint64_t)(digit - '0');
        }
        limbs[count++] = limb;
        end = begin;
    }
    return decimal_view(limbs, count, 0, false);
}

const struct td_decimal *td_decimal_copy(struct td_arena *arena, const struct td_decimal *x)
{
    uint64_t *limbs = td_arena_array(arena, uint64_t, x->count);
    if (x->count > 0) {
        memcpy(limbs, x->limbs, x->count * sizeof(*limbs));
    }
    struct td_decimal *copy = td_arena_new(arena, struct td_decimal);
    *copy = *x;
    copy->limbs = limbs;
    return copy;
}

static int decimal_sign(const struct td_decimal *x)
{
    if (x->count == 0) {
        return 0;
    }
    return x->is_negative ? -1 : 1;
}

/* Order of the numbers without their signs; neither is zero. */
static int decimal_compare_magnitude(const struct td_decimal *a, const struct td_decimal *b)
{
    int64_t top = decimal_top(a);
    if (top != decimal_top(b)) {
        return top < decimal_top(b) ? -1 : 1;
    }
    int64_t bottom = a->scale < b->scale ? a->scale : b->scale;
    /* Numbers of equal height are at most as long as the longer one: a bounded walk. */
    while (top > bottom) {
        top -= TD_DECIMAL_LIMB_DIGITS;
        uint64_t left = decimal_group(a, top);
        uint64_t right = decimal_group(b, top);
        if (left != right) {
            return left < right ? -1 : 1;
        }
    }
    return 0;
}

int td_decimal_compare(const struct td_decimal *a, const struct td_decimal *b)
{
    int sign = decimal_sign(a);
    if (sign != decimal_sign(b)) {
        return sign < decimal_sign(b) ? -1 : 1;
    }
    return sign == 0 ? 0 : sign * decimal_compare_magnitude(a, b);
}

struct td_decimal td_decimal_add(const struct td_decimal *a, const struct td_decimal *b,
                                 uint64_t limbs[TD_DECIMAL_LIMBS_MAX])
{
    if (a->count == 0 || b->count == 0) {
        const struct td_decimal *sum = a->count == 0 ? b : a;
        return decimal_cut(sum, sum->scale, limbs);
    }
    bool is_sum = a->is_negative == b->is_negative;
    if (!is_sum && decimal_compare_magnitude(a, b) < 0) {
        const struct td_decimal *smaller = a;
        a = b;
        b = smaller;
    }
    int64_t top = decimal_top(a) > decimal_top(b) ? decimal_top(a) : decimal_top(b);
    int64_t bottom = a->scale < b->scale ? a->scale : b->scale;
    if (top + 1 - bottom > TD_QUANTITY_DIGITS_MAX) {
        bottom = top + 1 - TD_QUANTITY_DIGITS_MAX;
    }
    uint32_t count = 0;
    int64_t carry = 0;
    for (int64_t power = bottom; power <= top; power += TD_DECIMAL_LIMB_DIGITS) {
        int64_t left = (int64_t)decimal_group(a, power);
        int64_t right = (int64_t)decimal_group(b, power);
        int64_t limb = (is_sum ? left + right : left - right) + carry;
        carry = limb < 0 ? -1 : limb >= (int64_t)LIMB_BASE;
        td_assert(count < TD_DECIMAL_LIMBS_MAX);
        limbs[count++] = (uint64_t)(limb - carry * (int64_t)LIMB_BASE);
    }
    td_assert(carry == 0);
    return decimal_view(limbs, count, clamp_int32(bottom), a->is_negative);
}

struct td_decimal td_decimal_multiply(const struct td_decimal *x, int64_t factor,
                                      uint64_t limbs[TD_DECIMAL_LIMBS_MAX])
{
    int64_t bottom = x->scale;
    if (decimal_top(x) + FACTOR_DIGITS_MAX - bottom > TD_QUANTITY_DIGITS_MAX) {
        bottom = decimal_top(x) + FACTOR_DIGITS_MAX - TD_QUANTITY_DIGITS_MAX;
    }
    struct td_decimal product = decimal_cut(x, clamp_int32(bottom), limbs);
    u128 carry = 0;
    uint32_t count = product.count;
    for (uint32_t i = 0; i < count; i++) {
        u128 limb = (u128)limbs[i] * magnitude(factor) + carry;
        limbs[i] = (uint64_t)(limb % LIMB_BASE);
        carry = limb / LIMB_BASE;
    }
    while (carry > 0) {
        td_assert(count < TD_DECIMAL_LIMBS_MAX);
        limbs[count++] = (uint64_t)(carry % LIMB_BASE);
        carry /= LIMB_BASE;
    }
    return decimal_view(limbs, count, product.scale, x->is_negative != (factor < 0));
}

struct td_decimal td_decimal_round(const struct td_decimal *x, int32_t scale, bool *ret_is_exact,
                                   uint64_t limbs[TD_DECIMAL_LIMBS_MAX])
{
    *ret_is_exact = true;
    if (decimal_top(x) - scale > TD_QUANTITY_DIGITS_MAX) {
        return *x;
    }
    struct td_decimal rounded = decimal_cut(x, scale, limbs);
    if (!decimal_has_digits_below(x, scale)) {
        return rounded;
    }
    *ret_is_exact = false;
    uint32_t i = 0;
    while (i < rounded.count && limbs[i] == LIMB_BASE - 1) {
        limbs[i++] = 0;
    }
    td_assert(i < TD_DECIMAL_LIMBS_MAX);
    limbs[i] = i < rounded.count ? limbs[i] + 1 : 1;
    uint32_t count = i < rounded.count ? rounded.count : i + 1;
    return decimal_view(limbs, count, scale, x->is_negative);
}

uint32_t td_decimal_remove_1024(struct td_decimal *x, uint64_t limbs[TD_DECIMAL_LIMBS_MAX])
{
    td_assert(x->limbs == limbs);
    uint32_t times = 0;
    /* LIMB_BASE is a multiple of 1024, so the lowest limb alone tells. */
    while (x->count > 0 && limbs[0] % 1024 == 0) {
        uint64_t rest = 0;
        for (uint32_t i = x->count; i > 0; i--) {
            u128 limb = (u128)rest * LIMB_BASE + limbs[i - 1];
            limbs[i - 1] = (uint64_t)(limb / 1024);
            rest = (uint64_t)(limb % 1024);
        }
        *x = decimal_view(limbs, x->count, x->scale, x->is_negative);
        times++;
    }
    return times;
}

bool td_decimal_digits_int64(const struct td_decimal *x, int64_t *ret)
{
    u128 digits = (u128)decimal_limb(x, 1) * LIMB_BASE + decimal_limb(x, 0);
    u128 max = (u128)INT64_MAX + x->is_negative;
    if (x->count > 2 || digits > max) {
        return false;
    }
    *ret = (int64_t)(x->is_negative ? 0 - (uint64_t)digits : (uint64_t)digits);
    return true;
}

int64_t td_decimal_scaled_int64(const struct td_decimal *x, int32_t scale)
{
    int64_t limit = x->is_negative ? INT64_MIN : INT64_MAX;
    if (x->count == 0) {
        return 0;
    }
    if (decimal_top(x) - scale > FACTOR_DIGITS_MAX) {
        return limit;
    }
    u128 whole = (u128)decimal_group(x, (int64_t)scale + TD_DECIMAL_LIMB_DIGITS) * LIMB_BASE +
                 decimal_group(x, scale) + decimal_has_digits_below(x, scale);
    if (whole >= magnitude(limit)) {
        return limit;
    }
    return x->is_negative ? -(int64_t)whole : (int64_t)whole;
}

double td_decimal_digits_double(const struct td_decimal *x)
{
    if (decimal_digits(x) > DOUBLE_DIGITS_MAX) {
        return x->is_negative ? -INFINITY : INFINITY;
    }
    uint64_t words[DOUBLE_WORDS] = {0}; /* lowest first */
    uint32_t count = 0;
    for (uint32_t i = x->count; i > 0; i--) {
        u128 carry = x->limbs[i - 1];
        for (uint32_t w = 0; w < count; w++) {
            carry += (u128)words[w] * LIMB_BASE;
            words[w] = (uint64_t)carry;
            carry >>= 64;
        }
        if (carry > 0) {
            td_assert(count < DOUBLE_WORDS);
            words[count++] = (uint64_t)carry;
        }
    }
    if (count == 0) {
        return 0;
    }
    /* The highest 64 bits, with the lowest of them set when anything below is: that bit is far
     * under the half of a double's last place, so one rounding conversion gives the nearest. */
    int shift = __builtin_clzll(words[count - 1]);
    uint64_t next = count > 1 ? words[count - 2] : 0;
    uint64_t top = words[count - 1] << shift;
    bool has_rest = false;
    if (shift > 0) {
        top |= next >> (64 - shift);
        has_rest = next << shift != 0;
    } else {
        has_rest = next != 0;
    }
    for (uint32_t w = 0; w + 2 < count; w++) {
        has_rest = has_rest || words[w] != 0;
    }
    double result = ldexp((double)(top | has_rest), (int)(count - 1) * 64 - shift);
    return x->is_negative ? -result : result;
}

size_t td_decimal_digits_text(const struct td_decimal *x, char out[TD_DECIMAL_TEXT_BYTES])
{
    uint32_t digits = decimal_digits(x);
    if (digits == 0) {
        out[0] = '0';
        return 1;
    }
    for (uint32_t i = 0; i < x->count; i++) {
        uint64_t limb = x->limbs[i];
        uint32_t end = digits - i * TD_DECIMAL_LIMB_DIGITS;
        uint32_t begin = end > TD_DECIMAL_LIMB_DIGITS ? end - TD_DECIMAL_LIMB_DIGITS : 0;
        for (uint32_t at = end; at > begin; at--) {
            out[at - 1] = (char)('0' + limb % 10);
            limb /= 10;
        }
    }
    return digits;
}
