/*
 * Label selectors, both forms: the text of ?labelSelector= and metav1.LabelSelector (matchLabels,
 * matchExpressions). A selector is a list of requirements in upstream's order (sorted by key), all
 * of which must hold. Immutable once made; texts are in the arena or slices of the input. Matching
 * allocates nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/selector/labels.h"

struct td_error;

enum td_selector_operator {
    TD_SELECTOR_EQUALS,        /* "=" */
    TD_SELECTOR_DOUBLE_EQUALS, /* "==" */
    TD_SELECTOR_NOT_EQUALS,    /* "!=" */
    TD_SELECTOR_IN,            /* "in" */
    TD_SELECTOR_NOT_IN,        /* "notin" */
    TD_SELECTOR_EXISTS,        /* "exists" */
    TD_SELECTOR_NOT_EXISTS,    /* "!" */
    TD_SELECTOR_GREATER,       /* "gt" */
    TD_SELECTOR_LESS,          /* "lt" */
};

struct td_requirement {
    td_str key;
    enum td_selector_operator operation;
    const td_str *values; /* sorted; unique, except where a LabelSelector repeats one */
    size_t value_count;
};

struct td_selector {
    const struct td_requirement *requirements;
    size_t count;
    bool matches_nothing; /* from a nil LabelSelector */
};

/* labels.Parse. What it refuses is said in upstream's words, cut at the size of a message. */
int td_selector_parse(struct td_arena *arena, td_str text, struct td_selector *ret,
                      struct td_error *err);

/* LabelSelectorAsSelector: NULL or JSON null selects nothing, {} everything. Messages as above; a
 * member of the wrong type is named by its path ("matchExpressions[1].operator: ..."). */
int td_selector_from_json(struct td_arena *arena, const struct td_json *selector,
                          struct td_selector *ret, struct td_error *err);

/* Would it be read? The message begins with the place of what is wrong ("matchExpressions[1]: ").
 */
int td_selector_check_json(struct td_arena *arena, const struct td_json *selector,
                           struct td_error *err);

/* A copy in the arena, texts too. */
struct td_selector td_selector_copy(struct td_arena *arena, const struct td_selector *selector);

bool td_selector_matches(const struct td_selector *selector, const struct td_labels *labels);

/* Selector.Empty(): selects everything. */
bool td_selector_is_empty(const struct td_selector *selector);

/* Selector.String(), the canonical text; and metav1.FormatLabelSelector ("<none>" for everything).
 */
void td_selector_write(const struct td_selector *selector, struct td_buf *out);
void td_selector_write_format(const struct td_selector *selector, struct td_buf *out);

/* "=", "==", "!=", "in", "notin", "exists", "!", "gt", "lt". */
td_str td_selector_operator_name(enum td_selector_operator operation);
