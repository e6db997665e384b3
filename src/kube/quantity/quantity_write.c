/*
 * Writing quantities: Go's String and CanonicalizeBytes.
 *
 * The canonical form has no zeros that a suffix could carry and an exponent that is a multiple of
 * three (ten for binary ones). An exponent that has no suffix is written without one ("1000E"
 * becomes "1"), as upstream does: what we write must be what the API server would.
 */
#include "base/assert.h"
#include "kube/quantity/decimal.h"
#include "kube/quantity/quantity.h"
#include "kube/quantity/quantity_private.h"

#define NUMBER_TEXT_BYTES 40    /* sign, suffix and a few zeros around a decimal's digits */
#define BINARY_PLAIN_BELOW 1024 /* binary quantities under it are written as decimals */

static td_str decimal_suffix(int32_t exponent)
{
    static const td_str suffixes[] = {
        TD_STR_INIT("n"), TD_STR_INIT("u"), TD_STR_INIT("m"), TD_STR_INIT(""),  TD_STR_INIT("k"),
        TD_STR_INIT("M"), TD_STR_INIT("G"), TD_STR_INIT("T"), TD_STR_INIT("P"), TD_STR_INIT("E"),
    };
    bool has_suffix = exponent >= -9 && exponent <= 18;
    return has_suffix ? suffixes[(exponent + 9) / 3] : TD_STR_EMPTY;
}

static td_str binary_suffix(uint32_t times)
{
    static const td_str suffixes[] = {
        TD_STR_INIT(""),   TD_STR_INIT("Ki"), TD_STR_INIT("Mi"), TD_STR_INIT("Gi"),
        TD_STR_INIT("Ti"), TD_STR_INIT("Pi"), TD_STR_INIT("Ei"),
    };
    return times < TD_COUNT(suffixes) ? suffixes[times] : TD_STR_EMPTY;
}

static void write_exponent(int32_t exponent, enum td_quantity_format format, struct td_buf *out)
{
    if (format == TD_QUANTITY_DECIMAL_SI) {
        (void)td_buf_append(out, decimal_suffix(exponent)); /* A full buffer stays full. */
    } else if (exponent != 0) {
        (void)td_buf_append_char(out, 'e');
        (void)td_buf_append_int64(out, exponent);
    }
}

/* Digits without zeros at the end, but for those that make the exponent a multiple of three. */
static void write_decimal_big(const struct td_decimal *x, enum td_quantity_format format,
                              struct td_buf *out)
{
    char digits[TD_DECIMAL_TEXT_BYTES];
    size_t len = td_decimal_digits_text(x, digits);
    int32_t exponent = x->scale;
    while (len > 1 && digits[len - 1] == '0') {
        len--;
        exponent = td_quantity_scale_add(exponent, 1);
    }
    if (x->is_negative) {
        (void)td_buf_append_char(out, '-'); /* A full buffer stays full: callers check once. */
    }
    (void)td_buf_append(out, (td_str){.ptr = digits, .len = len});
    while (exponent % 3 != 0) {
        (void)td_buf_append_char(out, '0');
        exponent = td_quantity_scale_add(exponent, -1);
    }
    write_exponent(exponent, format, out);
}

static void write_decimal(const struct td_quantity *quantity, enum td_quantity_format format,
                          struct td_buf *out)
{
    int64_t amount = quantity->value;
    int32_t exponent = quantity->scale;
    while (!quantity->big && amount % 10 == 0) {
        amount /= 10;
        exponent = td_quantity_scale_add(exponent, 1);
    }
    /* How many zeros make the exponent a multiple of three, which may be negative. */
    int32_t zeros = (exponent % 3 + 3) % 3;
    if (quantity->big ||
        __builtin_mul_overflow(amount, (int64_t)td_decimal_powers[zeros], &amount)) {
        uint64_t limbs[TD_DECIMAL_LIMBS_MAX];
        struct td_decimal x = td_quantity_decimal(quantity, limbs);
        write_decimal_big(&x, format, out);
        return;
    }
    (void)td_buf_append_int64(out, amount); /* A full buffer stays full: callers check once. */
    write_exponent(td_quantity_scale_add(exponent, -zeros), format, out);
}

/* The whole number that the quantity is, when that fits. */
static bool quantity_whole_int64(const struct td_quantity *quantity, int64_t *ret)
{
    if (quantity->big || quantity->scale < -TD_QUANTITY_STEPS_MAX ||
        quantity->scale > TD_QUANTITY_STEPS_MAX) {
        return false;
    }
    if (quantity->scale < 0) {
        *ret = quantity->value / (int64_t)td_decimal_powers[-quantity->scale];
        return true;
    }
    return !__builtin_mul_overflow(quantity->value, (int64_t)td_decimal_powers[quantity->scale],
                                   ret);
}

/* The quantity is a whole number. */
static void write_binary(const struct td_quantity *quantity, struct td_buf *out)
{
    int64_t whole = 0;
    if (quantity_whole_int64(quantity, &whole)) {
        uint32_t times = 0;
        while (whole != INT64_MIN && whole % 1024 == 0) {
            whole /= 1024;
            times++;
        }
        (void)td_buf_append_int64(out, whole); /* A full buffer stays full: callers check once. */
        (void)td_buf_append(out, binary_suffix(times));
        return;
    }
    uint64_t first[TD_DECIMAL_LIMBS_MAX];
    uint64_t second[TD_DECIMAL_LIMBS_MAX];
    struct td_decimal x = td_quantity_decimal(quantity, first);
    bool is_exact = false;
    struct td_decimal rounded = td_decimal_round(&x, 0, &is_exact, second);
    if (rounded.scale != 0) {
        /* Too long to be written out: the one form that is still short and right. */
        write_decimal_big(&x, TD_QUANTITY_DECIMAL_EXPONENT, out);
        return;
    }
    uint32_t times = td_decimal_remove_1024(&rounded, second);
    char digits[TD_DECIMAL_TEXT_BYTES];
    size_t len = td_decimal_digits_text(&rounded, digits);
    if (rounded.is_negative) {
        (void)td_buf_append_char(out, '-');
    }
    (void)td_buf_append(out, (td_str){.ptr = digits, .len = len});
    (void)td_buf_append(out, binary_suffix(times));
}

static bool quantity_is_whole(const struct td_quantity *quantity)
{
    if (quantity->big) {
        uint64_t limbs[TD_DECIMAL_LIMBS_MAX];
        bool is_exact = false;
        (void)td_decimal_round(quantity->big, 0, &is_exact, limbs); /* Only exactness counts. */
        return is_exact;
    }
    if (quantity->scale >= 0 || quantity->value == 0) {
        return true;
    }
    return quantity->scale >= -TD_QUANTITY_STEPS_MAX &&
           quantity->value % (int64_t)td_decimal_powers[-quantity->scale] == 0;
}

/* The format that the canonical form really has: small and fractional binary quantities are written
 * as decimals, so that nothing is rounded. */
static enum td_quantity_format quantity_canonical_format(const struct td_quantity *quantity)
{
    switch (quantity->format) {
    case TD_QUANTITY_DECIMAL_SI:
    case TD_QUANTITY_DECIMAL_EXPONENT:
        return quantity->format;
    case TD_QUANTITY_BINARY_SI:
        break;
    case TD_QUANTITY_NONE:
    default:
        return TD_QUANTITY_DECIMAL_EXPONENT;
    }
    struct td_quantity low = td_quantity_new(-BINARY_PLAIN_BELOW, TD_QUANTITY_DECIMAL_SI);
    struct td_quantity high = td_quantity_new(BINARY_PLAIN_BELOW, TD_QUANTITY_DECIMAL_SI);
    bool is_small =
        td_quantity_compare(quantity, &low) > 0 && td_quantity_compare(quantity, &high) < 0;
    return is_small || !quantity_is_whole(quantity) ? TD_QUANTITY_DECIMAL_SI
                                                    : TD_QUANTITY_BINARY_SI;
}

void td_quantity_write_canonical(const struct td_quantity *quantity, struct td_buf *out)
{
    if (td_quantity_sign(quantity) == 0) {
        (void)td_buf_append_char(out, '0'); /* A full buffer stays full: callers check once. */
        return;
    }
    enum td_quantity_format format = quantity_canonical_format(quantity);
    if (format == TD_QUANTITY_BINARY_SI) {
        write_binary(quantity, out);
    } else {
        write_decimal(quantity, format, out);
    }
}

void td_quantity_write(const struct td_quantity *quantity, struct td_buf *out)
{
    if (quantity->text.len > 0) {
        (void)td_buf_append(out,
                            quantity->text); /* A full buffer stays full: callers check once. */
    } else {
        td_quantity_write_canonical(quantity, out);
    }
}

td_str td_quantity_text(struct td_arena *arena, const struct td_quantity *quantity)
{
    if (quantity->text.len > 0) {
        return td_arena_copy_str(arena, quantity->text);
    }
    td_auto_buf buf = td_buf_capped(TD_DECIMAL_TEXT_BYTES + NUMBER_TEXT_BYTES);
    td_quantity_write_canonical(quantity, &buf);
    td_assert(!buf.is_full);
    return td_arena_copy_str(arena, td_buf_str(&buf));
}
