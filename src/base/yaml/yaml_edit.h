/*
 * Setting one value in the text of a YAML or JSON file, by position: all other bytes stay as they
 * are, comments, order, indentation, quotes and line ends included. Mappings that are missing on
 * the way are added at the end of the one that they belong to, in its style. The new text is read
 * back and must differ from the old one in that value alone; what an anchor shares with another
 * place, or an alias or a merge key brings from one, is refused.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

struct td_error;

/* A member of a mapping, or with an empty key an item of a list. */
struct td_yaml_step {
    td_str key;
    size_t index;
};

struct td_yaml_place {
    size_t document; /* as td_yaml_parse counts them: empty ones are left out */
    const struct td_yaml_step *steps;
    size_t step_count;
};

/* `value` is a text without blanks, written plain or in the quotes that are there. *ret is in the
 * arena. On failure the message has the line. */
int td_yaml_edit(struct td_arena *arena, td_str text, const struct td_yaml_place *place,
                 td_str value, td_str *ret, struct td_error *err);
