/*
 * IntOrString: a JSON number or string that means a count or a percentage (maxSurge, minAvailable).
 * As Go's k8s.io/apimachinery intstr. The string is a slice of, or an arena copy from, the input.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

struct td_error;

struct td_intstr {
    bool is_string;
    int32_t number;
    td_str string;
};

/* UnmarshalJSON over one JSON token. */
int td_intstr_parse_json(struct td_arena *arena, td_str token, struct td_intstr *ret,
                         struct td_error *err);

/* intstr.Parse, for command lines: a number when it reads as an int32, else the string. */
struct td_intstr td_intstr_parse(td_str text);

void td_intstr_write(const struct td_intstr *value, struct td_buf *out);      /* String() */
void td_intstr_write_json(const struct td_intstr *value, struct td_buf *out); /* as a JSON token */
int64_t td_intstr_int_value(const struct td_intstr *value); /* IntValue(); 0 when no number */

/* GetScaledValueFromIntOrPercent. */
int td_intstr_scaled(const struct td_intstr *value, int64_t total, bool round_up, int64_t *ret,
                     struct td_error *err);
