/*
 * Private to strategic merge patch and its three-way form: values as upstream sees them after
 * decoding, lists that are reordered, and the merge itself. Upstream decodes numbers into int64 or
 * float64, so 1 and 1.0 are values of different types; comparing two objects, or two lists, where a
 * scalar is expected crashes it and is refused here. Everything lives in the arena of the call, on
 * private copies of the inputs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/map.h"
#include "kube/schema/schema.h"

struct td_error;

#define PATCH_DIRECTIVE TD_STR("$patch")
#define PATCH_RETAIN_KEYS TD_STR("$retainKeys")
#define PATCH_ORDER_PREFIX TD_STR("$setElementOrder")
#define PATCH_DELETE_PREFIX TD_STR("$deleteFromPrimitiveList")

#define PATCH_NONE SIZE_MAX /* no position */

struct patch_work {
    struct td_arena *arena;
    struct td_error *err;
    td_str path;        /* of what was at fault, written while a failure is passed up */
    bool onto_document; /* directives are carried out; else two patches become one and keep them */
};

/* Decoded types, as upstream tells them apart. */
enum patch_kind {
    PATCH_MISSING,
    PATCH_NULL,
    PATCH_BOOL,
    PATCH_INT64,
    PATCH_FLOAT64,
    PATCH_STRING,
    PATCH_LIST,
    PATCH_OBJECT,
};

/* A scalar's identity: equal kinds and texts are equal values. */
struct patch_value {
    enum patch_kind kind;
    td_str text; /* empty for lists and objects, which have no identity */
};

enum patch_kind td_patch_kind(const struct td_json *node); /* NULL is missing */
struct patch_value td_patch_value(struct patch_work *work, const struct td_json *node);

/* As Go prints it with %v, by which lists are sorted; NULL and null are "<nil>". */
td_str td_patch_print(struct patch_work *work, const struct td_json *node);

/* Equal in type and value, lists in order. */
bool td_patch_deep_equal(struct patch_work *work, const struct td_json *a, const struct td_json *b);

/* A private copy of an input, which must be an object; null and NULL are an empty one. */
int td_patch_import(struct patch_work *work, const struct td_json *input, const char *what,
                    struct td_json **ret);

/* Numbers as Go writes them again: what is no int64 has the precision of a float64. */
void td_patch_export(struct patch_work *work, struct td_json *tree);

/* What the type says of one field. */
struct patch_field {
    const struct td_schema_type *type; /* of the object, or of the list's elements */
    bool retains_keys;
    bool is_merged;
    bool is_replaced;
    td_str key; /* merge key, or empty */
};
int td_patch_lookup_object(struct patch_work *work, const struct td_schema_type *type, td_str name,
                           struct patch_field *ret);
int td_patch_lookup_list(struct patch_work *work, const struct td_schema_type *type, td_str name,
                         struct patch_field *ret);

/* Put `name` in front of the path of a failure; returns `code`. */
int td_patch_fail_at(struct patch_work *work, td_str name, int code);

/* Wrap the failure with its path; returns `code`. */
int td_patch_fail(struct patch_work *work, int code);

/* A list as an array of nodes. Several arrays may hold one node; only one of them becomes JSON. */
struct patch_list {
    struct td_json **items;
    size_t count;
};
struct patch_list td_patch_list(struct patch_work *work, const struct td_json *array);
struct td_json *td_patch_list_json(struct patch_work *work, struct patch_list list);
struct patch_list td_patch_list_copy(struct patch_work *work, struct patch_list list);

/* The one kind of all elements of both lists; lists of lists, of nulls and of mixed kinds, and two
 * empty lists are refused. */
int td_patch_element_kind(struct patch_work *work, struct patch_list a, struct patch_list b,
                          enum patch_kind *ret);

/* Positions of a list's elements by their value, or by that of their member `key`: each is found in
 * constant time however long the list. */
struct patch_index {
    struct patch_value *values;
    size_t *next_same; /* position of the next equal value; only when is_mapped */
    size_t count;
    size_t capacity;
    size_t foreign;    /* first element that is no object, when there is a key; else PATCH_NONE */
    bool has_lists;    /* among the values, */
    bool has_objects;  /* which nothing can be compared with */
    bool is_mapped;    /* long enough for the map */
    struct td_map map; /* kind and text to 1 + first position */
};

/* `key` is NULL for the elements themselves. Room for `capacity` elements, of which the list's are
 * filled in. */
void td_patch_index_init(struct patch_work *work, struct patch_index *index, struct patch_list list,
                         const td_str *key, size_t capacity);
void td_patch_index_done(struct patch_index *index);
void td_patch_index_add(struct patch_work *work, struct patch_index *index,
                        struct patch_value value);

/* First position of `value`, or PATCH_NONE. TD_INVALID when it cannot be compared. */
int td_patch_index_find(struct patch_work *work, const struct patch_index *index,
                        struct patch_value value, size_t *ret);
size_t td_patch_index_next(const struct patch_index *index, size_t position);

/* How a list is ordered: `order` by merge key when the kind is PATCH_OBJECT. */
struct patch_order {
    struct patch_list order;
    td_str key;
    enum patch_kind kind;
};

/* Sort `list` in place as `by` has it; elements to be deleted go last. */
int td_patch_sort(struct patch_work *work, struct patch_list *list, const struct patch_order *by);

/* Split `merged` into what is in `order` and what only the server has, sort the first by `order`
 * and the second by `server`, and interleave them. */
int td_patch_arrange(struct patch_work *work, struct patch_list merged,
                     const struct patch_order *order, struct patch_list server,
                     struct patch_list *ret);

/* Drop scalars that are there already, in upstream's way: the last element takes a dropped one's
 * place. Returns how many stay; those behind them are leftovers. */
size_t td_patch_deduplicate(struct patch_work *work, struct patch_list list);

/* Sorted by their text; equal ones end up reversed, as by upstream's sort. */
void td_patch_sort_printed(struct patch_work *work, struct patch_list list, const td_str *key);

/* Merge `patch` into `original`; both are used up. */
int td_patch_merge_objects(struct patch_work *work, const struct td_schema_type *type,
                           struct td_json *original, struct td_json *patch, size_t depth,
                           struct td_json **ret);

/* The patch from `original` to `modified`. Merging lists of scalars in `original` are left sorted:
 * upstream does so, and a later difference shows it. */
struct patch_diff_options {
    bool with_order;
    bool without_changes;
    bool without_deletions;
    bool with_retain_keys;
};
int td_patch_diff(struct patch_work *work, const struct td_schema_type *type,
                  struct td_json *original, const struct td_json *modified,
                  const struct patch_diff_options *options, struct td_json **ret);
