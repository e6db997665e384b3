/*
 * Field selectors (?fieldSelector=metadata.name=a,status.phase!=Running): upstream's parser, order
 * and escaping. Which fields a kind supports is the API server's business, not this file's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

struct td_error;

struct td_field_requirement {
    td_str field;
    td_str value; /* unescaped */
    bool is_not;  /* "!=" */
};

struct td_field_selector {
    const struct td_field_requirement *requirements;
    size_t count;
};

int td_field_selector_parse(struct td_arena *arena, td_str text, struct td_field_selector *ret,
                            struct td_error *err);

/* `get` returns the value of a field, the empty slice when it has none. */
typedef td_str (*td_field_get_fn)(td_str field, void *context);
bool td_field_selector_matches(const struct td_field_selector *selector, td_field_get_fn get,
                               void *context);

/* Selector.String(), values escaped again. */
void td_field_selector_write(const struct td_field_selector *selector, struct td_buf *out);
