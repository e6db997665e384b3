/* Private to resource.c: a built-in kind as its table writes it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "local/resources/resource.h"

#define TD_ROW_VERSIONS_MAX 2
#define TD_ROW_SHORT_NAMES_MAX 2

struct td_resource_row {
    td_str group;
    td_str versions[TD_ROW_VERSIONS_MAX]; /* preferred first, which is stored too; none: v1 */
    td_str plural;
    td_str singular;
    td_str kind;
    td_str list_kind; /* empty: the kind with "List" behind */
    td_str short_names[TD_ROW_SHORT_NAMES_MAX];
    td_str category;   /* empty: none */
    td_str collection; /* empty: the plural with its group */
    bool is_namespaced;
    bool is_virtual;
    bool has_generation;
    bool is_stored_in_core; /* in core/v1, under another name of the same kind */
    unsigned verbs;         /* 0: all */
    unsigned subresources;
};

extern const struct td_resource_row td_resource_rows[];
extern const size_t td_resource_row_count;
