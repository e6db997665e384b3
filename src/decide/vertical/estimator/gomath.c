/*
 * Go computes these by published recipes that are simpler than those of a C library: log and exp2
 * by the polynomials of FDLIBM, powers by squaring on a mantissa and an exponent that are kept
 * apart. Every operation below is one IEEE double operation in the order that Go does it; the build
 * forbids fused multiply-add, so each is rounded by itself.
 */
#include "decide/vertical/estimator/gomath.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LN2_HI 6.93147180369123816490e-01
#define LN2_LO 1.90821492927058770002e-10
#define POW_EXPONENT_MAX (1 << 12) /* beyond it the result is 0 or infinite whatever follows */

static double pow_of_zero(double base, int exponent)
{
    double sign = exponent % 2 != 0 ? copysign(1.0, base) : 1.0;
    return exponent < 0 ? sign * INFINITY : sign * 0.0;
}

static double pow_of_infinity(double base, int exponent)
{
    double sign = exponent % 2 != 0 ? copysign(1.0, base) : 1.0;
    return exponent < 0 ? sign * 0.0 : sign * INFINITY;
}

double td_go_pow(double base, int exponent)
{
    if (exponent == 0 || base == 1.0) {
        return 1.0;
    }
    if (exponent == 1 || isnan(base)) {
        return base;
    }
    if (base == 0.0) {
        return pow_of_zero(base, exponent);
    }
    if (isinf(base)) {
        return pow_of_infinity(base, exponent);
    }
    int64_t base_exponent = 0;
    int first_exponent = 0;
    double mantissa = frexp(base, &first_exponent);
    base_exponent = first_exponent;
    double result = 1.0;
    int64_t result_exponent = 0;
    for (int64_t rest = exponent < 0 ? -(int64_t)exponent : exponent; rest != 0; rest >>= 1) {
        if (base_exponent < -POW_EXPONENT_MAX || base_exponent > POW_EXPONENT_MAX) {
            result_exponent += base_exponent;
            break;
        }
        if (rest & 1) {
            result *= mantissa;
            result_exponent += base_exponent;
        }
        mantissa *= mantissa;
        base_exponent *= 2;
        if (mantissa < 0.5) {
            mantissa += mantissa;
            base_exponent--;
        }
    }
    if (exponent < 0) {
        result = 1.0 / result;
        result_exponent = -result_exponent;
    }
    return ldexp(result, (int)result_exponent);
}

double td_go_log(double x)
{
    static const double l1 = 6.666666666666735130e-01;
    static const double l2 = 3.999999999940941908e-01;
    static const double l3 = 2.857142874366239149e-01;
    static const double l4 = 2.222219843214978396e-01;
    static const double l5 = 1.818357216161805012e-01;
    static const double l6 = 1.531383769920937332e-01;
    static const double l7 = 1.479819860511658591e-01;
    if (isnan(x) || x == INFINITY) {
        return x;
    }
    if (x <= 0.0) {
        return x < 0.0 ? NAN : -INFINITY;
    }
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    double k = (double)((int)((bits >> 52) & 0x7ff) - 0x3fe);
    bits = (bits & 0x000fffffffffffff) | 0x3fe0000000000000;
    double f1;
    memcpy(&f1, &bits, sizeof(f1));
    if (f1 < 0.70710678118654752440) {
        k -= 1.0;
        f1 *= 2.0;
    }
    double f = f1 - 1.0;
    double s = f / (2.0 + f);
    double s2 = s * s;
    double s4 = s2 * s2;
    double t1 = s2 * (l1 + s4 * (l3 + s4 * (l5 + s4 * l7)));
    double t2 = s4 * (l2 + s4 * (l4 + s4 * l6));
    double r = t1 + t2;
    double half_square = 0.5 * f * f;
    return k * LN2_HI - ((half_square - (s * (half_square + r) + k * LN2_LO)) - f);
}

/* x times 2^k; one multiplication where the result is an ordinary number. */
static double scale_by_power(double x, int k)
{
    if (k > -1000 && k < 1000) {
        uint64_t bits = (uint64_t)(k + 1023) << 52;
        double power;
        memcpy(&power, &bits, sizeof(power));
        return x * power;
    }
    return ldexp(x, k);
}

double td_go_exp2(double x)
{
    static const double p1 = 1.66666666666666657415e-01;
    static const double p2 = -2.77777777770155933842e-03;
    static const double p3 = 6.61375632143793436117e-05;
    static const double p4 = -1.65339022054652515390e-06;
    static const double p5 = 4.13813679705723846039e-08;
    if (isnan(x)) {
        return x;
    }
    if (x > 1.0239999999999999e+03) {
        return INFINITY;
    }
    if (x < -1.0740e+03) {
        return 0.0;
    }
    int k = 0;
    if (x > 0) {
        k = (int)(x + 0.5);
    } else if (x < 0) {
        k = (int)(x - 0.5);
    }
    double t = x - (double)k;
    double hi = t * LN2_HI;
    double lo = -t * LN2_LO;
    double r = hi - lo;
    double z = r * r;
    double c = r - z * (p1 + z * (p2 + z * (p3 + z * (p4 + z * p5))));
    double y = 1.0 - ((lo - (r * c) / (2.0 - c)) - hi);
    return scale_by_power(y, k);
}
