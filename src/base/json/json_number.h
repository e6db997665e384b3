/*
 * Private to the JSON modules: the value of a number's text, exactly. Every text given here has the
 * form of a JSON number. Digits and exponents may be as long as the text: nothing is multiplied
 * out, so 1e999999999 costs no more than 1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Is the whole text a JSON number? */
bool td_json_number_is_valid(td_str text);

/* False unless whole and in range; 1e3 and 1.0 are whole. */
bool td_json_number_to_int64(td_str text, int64_t *ret);

/* The nearest double, ties to even; false when it overflows. */
bool td_json_number_to_double(td_str text, double *ret);

/* By exact value: 1, 1.0 and 10e-1 are equal, and so are 0 and -0. Exponents of more than 18 digits
 * are not computed with: two such numbers are equal only when they are written alike but for
 * leading and trailing zeros. */
bool td_json_number_equal(td_str a, td_str b);
