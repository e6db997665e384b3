/*
 * Kubernetes resource quantities ("100m", "1.5Gi", "1e3"), exact over Go's whole range: a value
 * that fits is an int64 with a power of ten, any other an arbitrary-precision decimal in the arena
 * that was passed. A parsed quantity remembers its text when that counts as canonical, so writing
 * it back gives the same bytes; arithmetic forgets it. Value semantics otherwise: copy a
 * td_quantity freely while its arena and its text live. Nothing here depends on locale, clock or
 * order of calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

struct td_error;
struct td_json;
struct td_decimal; /* arbitrary precision; private to quantity.c */

enum td_quantity_format {
    TD_QUANTITY_NONE, /* the zero quantity that null leaves */
    TD_QUANTITY_DECIMAL_SI,
    TD_QUANTITY_BINARY_SI,
    TD_QUANTITY_DECIMAL_EXPONENT,
};

struct td_quantity {
    int64_t value; /* times 10^scale, when big is NULL */
    int32_t scale;
    enum td_quantity_format format;
    const struct td_decimal *big; /* in an arena; NULL while value and scale are exact */
    td_str text;                  /* the kept input, or empty */
};

/* Go's ParseQuantity. The kept text is a slice of the input. */
int td_quantity_parse(struct td_arena *arena, td_str text, struct td_quantity *ret,
                      struct td_error *err);

/* Go's Quantity.UnmarshalJSON over one JSON token: a string (spaces around it are trimmed), a
 * number, or null. */
int td_quantity_parse_json(struct td_arena *arena, td_str token, struct td_quantity *ret,
                           struct td_error *err);

/* The same over a node of a JSON tree; NULL reads as null. */
int td_quantity_from_json(struct td_arena *arena, const struct td_json *node,
                          struct td_quantity *ret, struct td_error *err);

/* String(): the kept text, else the canonical form. td_quantity_write_canonical ignores the kept
 * text. */
void td_quantity_write(const struct td_quantity *quantity, struct td_buf *out);
void td_quantity_write_canonical(const struct td_quantity *quantity, struct td_buf *out);

/* td_quantity_write into the arena. */
td_str td_quantity_text(struct td_arena *arena, const struct td_quantity *quantity);

/* For reading: bytes as "2.9Gi" (exact where that is as short, "1280Mi"), other amounts as "430m",
 * "2.1" or "1.5M", to four digits. */
void td_quantity_write_short(const struct td_quantity *quantity, bool is_bytes, struct td_buf *out);
td_str td_quantity_short(struct td_arena *arena, const struct td_quantity *quantity, bool is_bytes);
/* The same of bytes, or of thousandths of anything else. */
void td_amount_write_short(double amount, bool is_bytes, struct td_buf *out);

struct td_quantity td_quantity_new(int64_t value, enum td_quantity_format format);
struct td_quantity td_quantity_new_milli(int64_t milli, enum td_quantity_format format);
struct td_quantity td_quantity_new_scaled(int64_t value, int32_t scale); /* decimal SI */

/* Value(), MilliValue(), ScaledValue(scale): rounded away from zero; clamped to int64 where
 * upstream would overflow. */
int64_t td_quantity_value(const struct td_quantity *quantity);
int64_t td_quantity_milli(const struct td_quantity *quantity);
int64_t td_quantity_scaled(const struct td_quantity *quantity, int32_t scale);

double td_quantity_to_double(const struct td_quantity *quantity); /* AsApproximateFloat64 */
int td_quantity_sign(const struct td_quantity *quantity);
int td_quantity_compare(const struct td_quantity *a, const struct td_quantity *b);

/* Arithmetic in place; the format follows a, or b when a is zero (add, sub). */
void td_quantity_add(struct td_arena *arena, struct td_quantity *a, const struct td_quantity *b);
void td_quantity_sub(struct td_arena *arena, struct td_quantity *a, const struct td_quantity *b);
void td_quantity_negate(struct td_arena *arena, struct td_quantity *a);

/* Mul(): true when the int64 path sufficed. RoundUp(scale): false when precision was lost. */
bool td_quantity_multiply(struct td_arena *arena, struct td_quantity *a, int64_t factor);
bool td_quantity_round_up(struct td_arena *arena, struct td_quantity *a, int32_t scale);

/* "DecimalSI", "BinarySI", "DecimalExponent", "". */
td_str td_quantity_format_name(enum td_quantity_format format);
