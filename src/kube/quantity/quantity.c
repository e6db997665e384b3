/*
 * Quantities with the answers of Go's resource.Quantity: values and arithmetic; quantity_parse.c
 * and quantity_write.c are the other two parts.
 *
 * Upstream keeps a number as an int64 with a power of ten while it can and as an
 * arbitrary-precision decimal after that; which of the two it is shows in a few results (the text
 * that parsing keeps, Mul's answer, the last bit of a float). Here the rule is: a number whose
 * digits fit an int64 is stored as one, whatever path upstream took, with the same digits and the
 * same power of ten; only others go to the arena. The common quantities are therefore parsed,
 * compared, added and written without allocating.
 *
 * Where upstream would need gigabytes ("1e99999999" plus one), digits of a result beyond
 * TD_QUANTITY_DIGITS_MAX are cut instead. Comparing never expands and is always exact.
 */
#include "kube/quantity/quantity.h"

#include <math.h>

#include "kube/quantity/decimal.h"
#include "kube/quantity/quantity_private.h"

struct td_decimal td_quantity_decimal(const struct td_quantity *quantity,
                                      uint64_t limbs[TD_DECIMAL_LIMBS_MAX])
{
    return quantity->big ? *quantity->big
                         : td_decimal_from_int64(quantity->value, quantity->scale, limbs);
}

void td_quantity_store(struct td_arena *arena, struct td_quantity *quantity,
                       const struct td_decimal *x)
{
    int64_t value = 0;
    /* The most negative int64 stays a decimal: upstream does not shorten it when it writes an
     * int64. */
    bool fits = td_decimal_digits_int64(x, &value) && value != INT64_MIN;
    quantity->value = fits ? value : 0;
    quantity->scale = fits ? x->scale : 0;
    quantity->big = fits ? NULL : td_decimal_copy(arena, x);
    quantity->text = TD_STR_EMPTY;
}

struct td_quantity td_quantity_new(int64_t value, enum td_quantity_format format)
{
    return (struct td_quantity){.value = value, .format = format, .text = TD_STR_EMPTY};
}

struct td_quantity td_quantity_new_milli(int64_t milli, enum td_quantity_format format)
{
    return (struct td_quantity){
        .value = milli, .scale = -3, .format = format, .text = TD_STR_EMPTY};
}

struct td_quantity td_quantity_new_scaled(int64_t value, int32_t scale)
{
    return (struct td_quantity){
        .value = value, .scale = scale, .format = TD_QUANTITY_DECIMAL_SI, .text = TD_STR_EMPTY};
}

/* value / 10^steps, rounded away from zero. */
static int64_t divide_away(int64_t value, int64_t steps, bool *ret_is_exact)
{
    int64_t quotient = 0;
    int64_t remainder = value;
    if (steps <= TD_QUANTITY_STEPS_MAX) {
        int64_t divisor = (int64_t)td_decimal_powers[steps];
        quotient = value / divisor;
        remainder = value % divisor;
    }
    *ret_is_exact = remainder == 0;
    if (remainder == 0) {
        return quotient;
    }
    return remainder < 0 ? quotient - 1 : quotient + 1;
}

int64_t td_quantity_scaled(const struct td_quantity *quantity, int32_t scale)
{
    if (quantity->big) {
        return td_decimal_scaled_int64(quantity->big, scale);
    }
    int64_t value = quantity->value;
    int64_t steps = (int64_t)quantity->scale - scale;
    if (steps < 0) {
        bool is_exact = false;
        return divide_away(value, -steps, &is_exact);
    }
    if (value == 0) {
        return 0;
    }
    int64_t result = 0;
    if (steps > TD_QUANTITY_STEPS_MAX ||
        __builtin_mul_overflow(value, (int64_t)td_decimal_powers[steps], &result)) {
        return value < 0 ? INT64_MIN : INT64_MAX;
    }
    return result;
}

int64_t td_quantity_value(const struct td_quantity *quantity)
{
    return td_quantity_scaled(quantity, 0);
}

int64_t td_quantity_milli(const struct td_quantity *quantity)
{
    return td_quantity_scaled(quantity, -3);
}

/* 10^exponent by the same two factors as Go's math.Pow10, so that the last bit agrees. */
static double power_of_ten(int32_t exponent)
{
    static const double low[32] = {
        1e00, 1e01, 1e02, 1e03, 1e04, 1e05, 1e06, 1e07, 1e08, 1e09, 1e10,
        1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21,
        1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31,
    };
    static const double high[] = {
        1e00, 1e32, 1e64, 1e96, 1e128, 1e160, 1e192, 1e224, 1e256, 1e288,
    };
    static const double high_inverse[] = {
        1e00, 1e-32, 1e-64, 1e-96, 1e-128, 1e-160, 1e-192, 1e-224, 1e-256, 1e-288, 1e-320,
    };
    if (exponent >= 0) {
        return exponent <= 308 ? high[exponent / 32] * low[exponent % 32] : INFINITY;
    }
    return exponent >= -323 ? high_inverse[-exponent / 32] / low[-exponent % 32] : 0;
}

double td_quantity_to_double(const struct td_quantity *quantity)
{
    int32_t scale = quantity->big ? quantity->big->scale : quantity->scale;
    double digits =
        quantity->big ? td_decimal_digits_double(quantity->big) : (double)quantity->value;
    if (scale == 0 || digits == 0) {
        return digits;
    }
    return digits * power_of_ten(scale);
}

int td_quantity_sign(const struct td_quantity *quantity)
{
    if (quantity->big) {
        return quantity->big->is_negative ? -1 : quantity->big->count > 0;
    }
    return (quantity->value > 0) - (quantity->value < 0);
}

int td_quantity_compare(const struct td_quantity *a, const struct td_quantity *b)
{
    int64_t steps = (int64_t)a->scale - b->scale;
    if (a->big || b->big || steps > TD_QUANTITY_STEPS_MAX || steps < -TD_QUANTITY_STEPS_MAX) {
        uint64_t first[TD_DECIMAL_LIMBS_MAX];
        uint64_t second[TD_DECIMAL_LIMBS_MAX];
        struct td_decimal left = td_quantity_decimal(a, first);
        struct td_decimal right = td_quantity_decimal(b, second);
        return td_decimal_compare(&left, &right);
    }
    __int128 left = a->value;
    __int128 right = b->value;
    if (steps > 0) {
        left *= td_decimal_powers[steps];
    } else {
        right *= td_decimal_powers[-steps];
    }
    return (left > right) - (left < right);
}

/* a + b as int64 with a power of ten; false when that would overflow. The most negative one is left
 * to decimals, see td_quantity_store. */
static bool add_small(struct td_quantity *a, int64_t value, int32_t scale)
{
    if (value == 0) {
        return true;
    }
    if (a->value == 0) {
        a->value = value;
        a->scale = scale;
        return true;
    }
    int64_t steps = (int64_t)a->scale - scale;
    if (steps > TD_QUANTITY_STEPS_MAX || steps < -TD_QUANTITY_STEPS_MAX) {
        return false;
    }
    int64_t left = a->value;
    int64_t right = value;
    int64_t *coarse = steps > 0 ? &left : &right;
    int64_t power = (int64_t)td_decimal_powers[steps > 0 ? steps : -steps];
    int64_t sum = 0;
    if (__builtin_mul_overflow(*coarse, power, coarse) ||
        __builtin_add_overflow(left, right, &sum) || sum == INT64_MIN) {
        return false;
    }
    a->value = sum;
    a->scale = steps > 0 ? scale : a->scale;
    return true;
}

static void quantity_sum(struct td_arena *arena, struct td_quantity *a, const struct td_quantity *b,
                         bool is_negated)
{
    if (td_quantity_sign(a) == 0) {
        a->format = b->format;
    }
    bool is_small = !a->big && !b->big && !(is_negated && b->value == INT64_MIN);
    if (is_small && add_small(a, is_negated ? -b->value : b->value, b->scale)) {
        a->text = TD_STR_EMPTY;
        return;
    }
    uint64_t first[TD_DECIMAL_LIMBS_MAX];
    uint64_t second[TD_DECIMAL_LIMBS_MAX];
    uint64_t third[TD_DECIMAL_LIMBS_MAX];
    struct td_decimal left = td_quantity_decimal(a, first);
    struct td_decimal right = td_quantity_decimal(b, second);
    right.is_negative = right.is_negative != (is_negated && right.count > 0);
    struct td_decimal sum = td_decimal_add(&left, &right, third);
    td_quantity_store(arena, a, &sum);
}

void td_quantity_add(struct td_arena *arena, struct td_quantity *a, const struct td_quantity *b)
{
    quantity_sum(arena, a, b, false);
}

void td_quantity_sub(struct td_arena *arena, struct td_quantity *a, const struct td_quantity *b)
{
    quantity_sum(arena, a, b, true);
}

void td_quantity_negate(struct td_arena *arena, struct td_quantity *a)
{
    if (!a->big && a->value != INT64_MIN) {
        a->value = -a->value;
        a->text = TD_STR_EMPTY;
        return;
    }
    uint64_t limbs[TD_DECIMAL_LIMBS_MAX];
    struct td_decimal x = td_quantity_decimal(a, limbs);
    x.is_negative = !x.is_negative;
    td_quantity_store(arena, a, &x);
}

bool td_quantity_multiply(struct td_arena *arena, struct td_quantity *a, int64_t factor)
{
    a->text = TD_STR_EMPTY;
    int64_t product = 0;
    if (!a->big && !__builtin_mul_overflow(a->value, factor, &product) && product != INT64_MIN) {
        a->value = product;
        a->scale = product == 0 ? 0 : a->scale;
        return true;
    }
    uint64_t first[TD_DECIMAL_LIMBS_MAX];
    uint64_t second[TD_DECIMAL_LIMBS_MAX];
    struct td_decimal x = td_quantity_decimal(a, first);
    struct td_decimal result = td_decimal_multiply(&x, factor, second);
    td_quantity_store(arena, a, &result);
    return td_decimal_digits_int64(&result, &product);
}

bool td_quantity_round_up(struct td_arena *arena, struct td_quantity *a, int32_t scale)
{
    bool is_exact = true;
    if (a->big) {
        uint64_t limbs[TD_DECIMAL_LIMBS_MAX];
        struct td_decimal rounded = td_decimal_round(a->big, scale, &is_exact, limbs);
        td_quantity_store(arena, a, &rounded);
        return is_exact;
    }
    if (a->scale >= scale) {
        return true;
    }
    a->value = divide_away(a->value, (int64_t)scale - a->scale, &is_exact);
    a->scale = scale;
    a->text = TD_STR_EMPTY;
    return is_exact;
}

td_str td_quantity_format_name(enum td_quantity_format format)
{
    switch (format) {
    case TD_QUANTITY_DECIMAL_SI:
        return TD_STR("DecimalSI");
    case TD_QUANTITY_BINARY_SI:
        return TD_STR("BinarySI");
    case TD_QUANTITY_DECIMAL_EXPONENT:
        return TD_STR("DecimalExponent");
    case TD_QUANTITY_NONE:
    default:
        return TD_STR_EMPTY;
    }
}
