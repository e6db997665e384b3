/*
 * The feature gates by their names: which there are, and what `--feature-gates` switches in the
 * options of the controllers. The same list for every command that has the flag.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct td_controllers_options;
struct td_error;

struct td_gate {
    const char *name;
    const char *stage; /* "alpha", "beta" */
    bool is_on;        /* in the options that were asked about */
};

#define TD_GATE_COUNT 9

struct td_gate td_gate_at(const struct td_controllers_options *options, size_t index);

/* "Name=true,Name=false", also AllAlpha and AllBeta; TD_INVALID names the wrong entry. Members that
 * follow from a gate are settled too, so it is called once, with an empty list where none was
 * given. */
int td_gates_set(struct td_controllers_options *options, td_str list, struct td_error *err);
