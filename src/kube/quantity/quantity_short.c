/* Amounts for reading: few digits, the unit that makes the number small, never an exponent. */
#include <math.h>

#include "kube/quantity/quantity.h"

#define SHORT_TEXT_BYTES 6    /* a binary text that is not longer is shown as it is */
#define SHORT_NEXT_UNIT 999.5 /* would round to four digits */
#define SHORT_NEXT_BINARY 1023.5
#define SHORT_PLAIN_MAX 100000 /* larger ones get a suffix */
#define SHORT_QUANTITY_BYTES 256

static void write_bytes(double bytes, struct td_buf *out)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    size_t unit = 0;
    while (fabs(bytes) >= SHORT_NEXT_BINARY && unit < TD_COUNT(units) - 1) {
        bytes /= 1024;
        unit++;
    }
    int digits = fabs(bytes) < 9.95 ? 2 : 3;
    (void)td_buf_append_number(out, unit > 0 ? bytes : ceil(bytes), digits);
    (void)td_buf_append(out, td_str_from(units[unit]));
}

void td_amount_write_short(double amount, bool is_bytes, struct td_buf *out)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
    if (is_bytes) {
        write_bytes(amount, out);
        return;
    }
    if (fabs(amount) < 1000) {
        (void)td_buf_append_number(out, amount, 3);
        (void)td_buf_append(out, amount == 0 ? TD_STR_EMPTY : TD_STR("m"));
        return;
    }
    double whole = amount / 1000;
    size_t unit = 0;
    while (fabs(whole) >= (unit == 0 ? SHORT_PLAIN_MAX : SHORT_NEXT_UNIT) &&
           unit < TD_COUNT(units) - 1) {
        whole /= 1000;
        unit++;
    }
    (void)td_buf_append_number(out, whole, unit == 0 ? 4 : 3);
    (void)td_buf_append(out, td_str_from(units[unit]));
}

void td_quantity_write_short(const struct td_quantity *quantity, bool is_bytes, struct td_buf *out)
{
    td_auto_buf exact = td_buf_capped(SHORT_QUANTITY_BYTES);
    td_quantity_write(quantity, &exact);
    if (is_bytes && exact.len <= SHORT_TEXT_BYTES &&
        td_str_ends_with(td_buf_str(&exact), TD_STR("i"))) {
        (void)td_buf_append(out, td_buf_str(&exact));
    } else {
        double amount = td_quantity_to_double(quantity);
        td_amount_write_short(is_bytes ? amount : amount * 1000, is_bytes, out);
    }
}

td_str td_quantity_short(struct td_arena *arena, const struct td_quantity *quantity, bool is_bytes)
{
    td_auto_buf text = td_buf_capped(SHORT_QUANTITY_BYTES);
    td_quantity_write_short(quantity, is_bytes, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}
