/* Quantities from any bytes. Two texts, parted by a comma, are parsed; what parses can be written,
 * read again and is the same number, and arithmetic undoes itself. */
#include <math.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/quantity/quantity.h"

#define ARENA_BYTES ((size_t)16 << 20)
#define TEXT_BYTES ((size_t)2 * TD_QUANTITY_DIGITS_MAX)
#define SCALE_FAR 500 /* beyond it sums may lose digits */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static td_str canonical(struct td_arena *arena, const struct td_quantity *quantity)
{
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES);
    td_quantity_write_canonical(quantity, &text);
    td_assert(!text.is_full);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* Upstream has no suffix from 1e21 on, and exponents wrap at 32 bits: such texts lose the number.
 */
static bool canonical_is_faithful(const struct td_quantity *quantity)
{
    struct td_quantity limit = td_quantity_new_scaled(1, 21);
    struct td_quantity lowest = td_quantity_new_scaled(-1, 21);
    bool is_near =
        td_quantity_compare(quantity, &limit) < 0 && td_quantity_compare(quantity, &lowest) > 0;
    if (quantity->format == TD_QUANTITY_DECIMAL_EXPONENT) {
        struct td_quantity far = td_quantity_new_scaled(1, 2000000000);
        struct td_quantity lowest_far = td_quantity_new_scaled(-1, 2000000000);
        is_near = td_quantity_compare(quantity, &far) < 0 &&
                  td_quantity_compare(quantity, &lowest_far) > 0;
    }
    return is_near;
}

/* The text of a number is that of the number read back from it. One without a suffix reads back as
 * decimal, though, so a binary number that 1024 does not divide comes back as 2k for 2000. */
static void check_stable(struct td_arena *arena, const struct td_quantity *quantity, td_str text,
                         const struct td_quantity *again)
{
    if (td_str_equal(canonical(arena, again), text)) {
        return;
    }
    td_assert(quantity->format == TD_QUANTITY_BINARY_SI);
    td_assert(again->format == TD_QUANTITY_DECIMAL_SI);
    td_assert(!td_str_ends_with(text, TD_STR("i")));
}

static void check_text(struct td_arena *arena, const struct td_quantity *quantity)
{
    struct td_quantity again;
    if (quantity->text.len > 0) {
        td_assert(td_quantity_parse(arena, quantity->text, &again, NULL) == TD_OK);
        td_assert(td_quantity_compare(quantity, &again) == 0);
    }
    td_str text = canonical(arena, quantity);
    if (text.len > TD_QUANTITY_TEXT_BYTES_MAX || !canonical_is_faithful(quantity)) {
        return;
    }
    td_assert(td_quantity_parse(arena, text, &again, NULL) == TD_OK);
    td_assert(td_quantity_compare(quantity, &again) == 0);
    check_stable(arena, quantity, text, &again);
    td_assert(td_quantity_sign(&again) == td_quantity_sign(quantity));
    td_assert(td_quantity_value(&again) == td_quantity_value(quantity));
    td_assert(td_quantity_milli(&again) == td_quantity_milli(quantity));
}

static void check_pair(struct td_arena *arena, const struct td_quantity *a,
                       const struct td_quantity *b)
{
    int order = td_quantity_compare(a, b);
    td_assert(td_quantity_compare(b, a) == -order);
    struct td_quantity difference = *a;
    td_quantity_sub(arena, &difference, b);
    td_assert(td_quantity_sign(&difference) == order);
    struct td_quantity far = td_quantity_new_scaled(1, SCALE_FAR);
    struct td_quantity lowest = td_quantity_new_scaled(-1, SCALE_FAR);
    if (td_quantity_compare(a, &far) < 0 && td_quantity_compare(a, &lowest) > 0 &&
        td_quantity_compare(b, &far) < 0 && td_quantity_compare(b, &lowest) > 0) {
        td_quantity_add(arena, &difference, b);
        td_assert(td_quantity_compare(&difference, a) == 0);
    }
    struct td_quantity product = *a;
    (void)td_quantity_multiply(arena, &product, -3); /* Only the number is judged. */
    td_assert(td_quantity_sign(&product) == -td_quantity_sign(a));
    struct td_quantity rounded = *a;
    bool is_exact = td_quantity_round_up(arena, &rounded, -2);
    td_assert(td_quantity_compare(&rounded, a) == (is_exact ? 0 : td_quantity_sign(a)));
    td_assert(!isnan(td_quantity_to_double(a)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_str input = {.ptr = size > 0 ? (const char *)data : "", .len = size};
    size_t comma = td_str_find(input, ',', 0);
    td_str texts[2] = {td_str_slice(input, 0, comma), td_str_slice(input, comma + 1, size)};
    struct td_quantity items[2];
    int codes[2];
    for (int i = 0; i < 2; i++) {
        struct td_error err = TD_ERROR_INIT;
        codes[i] = td_quantity_parse(&arena, texts[i], &items[i], &err);
        td_assert((codes[i] == TD_OK) == (err.message[0] == '\0'));
        if (codes[i] == TD_OK) {
            check_text(&arena, &items[i]);
        }
    }
    if (codes[0] == TD_OK && codes[1] == TD_OK) {
        check_pair(&arena, &items[0], &items[1]);
    }
    struct td_quantity token;
    (void)td_quantity_parse_json(&arena, input, &token, NULL); /* It must only come back. */
    return 0;
}
