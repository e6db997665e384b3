/*
 * JSON tree in an arena: order of members kept, numbers kept as written, edits in place. A node
 * belongs to at most one parent; whatever is put into two places is copied first. Strings without
 * escapes are slices of the text that was parsed, so that text must live as long as the tree
 * (options.copy_strings for one that does not). Objects with many members get a hash index by
 * themselves, so get and set stay cheap whatever arrives. Nothing here is freed singly.
 *
 * Duplicate members: the last one wins and takes the place of the first, as Go's decoder into a
 * map; with options.problems each is also named by its JSON path. Trees are compared by value
 * (numbers too: 1 equals 1.0).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"

struct td_error;
struct td_json_index;

enum td_json_type {
    TD_JSON_TYPE_NULL,
    TD_JSON_TYPE_BOOL,
    TD_JSON_TYPE_NUMBER,
    TD_JSON_TYPE_STRING,
    TD_JSON_TYPE_ARRAY,
    TD_JSON_TYPE_OBJECT,
};

struct td_json {
    uint8_t type; /* enum td_json_type */
    bool boolean;
    bool is_escaped; /* STRING: was written with escapes, so not byte for byte like text */
    uint8_t mark;    /* for the tree's owner; 0 at first, kept by copies */
    uint32_t line;   /* where it began in its file, from 1; 0 when not known */
    td_str key;      /* member name, when the parent is an object */
    union {
        td_str text; /* STRING: decoded; NUMBER: as written */
        struct {
            struct td_json
                *head_child; /* walk by td_json_first_item and its like, never from here */
            struct td_json *tail_child;
        };
    };
    struct td_json *next;        /* sibling; links, keys and counts are changed by calls only */
    size_t count;                /* children of an array or object */
    struct td_json_index *index; /* private: of a large object, or NULL */
};

/* What a strict reader objects to; see td_schema for unknown fields. */
struct td_json_problems {
    struct td_arena *arena;
    td_str items[TD_STRICT_PROBLEMS_MAX]; /* "duplicate field \"spec.replicas\"" */
    size_t count;
    bool is_cut; /* there were more */
};

struct td_json_options {
    size_t bytes_max;                  /* 0: TD_JSON_BYTES_MAX */
    uint32_t depth_max;                /* 0: TD_JSON_DEPTH_MAX */
    bool copy_strings;                 /* the tree must outlive the text */
    bool track_lines;                  /* fill td_json.line */
    uint32_t first_line;               /* of the text in its file; 0: 1 */
    struct td_json_problems *problems; /* collect duplicates here; may be NULL */
};

/* options may be NULL for the defaults. On failure the message has line and column, and *ret is
 * untouched. */
int td_json_parse(struct td_arena *arena, td_str text, const struct td_json_options *options,
                  struct td_json **ret, struct td_error *err);

/* JSON text of the program itself, which is right and small. Whether the arena is still within its
 * cap is asked by those who fill it from outside data. */
struct td_json *td_json_parse_own(struct td_arena *arena, const char *text);

/* Making nodes; texts are borrowed, numbers must be valid JSON numbers. */
struct td_json *td_json_new_null(struct td_arena *arena);
struct td_json *td_json_new_bool(struct td_arena *arena, bool value);
struct td_json *td_json_new_int64(struct td_arena *arena, int64_t value);
struct td_json *td_json_new_double(struct td_arena *arena,
                                   double value); /* Go's float64 text; must be finite */
struct td_json *td_json_new_number(struct td_arena *arena, td_str text);
struct td_json *td_json_new_string(struct td_arena *arena, td_str text);
struct td_json *td_json_new_array(struct td_arena *arena);
struct td_json *td_json_new_object(struct td_arena *arena);
struct td_json *td_json_new_strings(struct td_arena *arena, const td_str *texts, size_t count);

/* A deep copy of nodes; texts stay shared unless copy_texts. */
struct td_json *td_json_copy(struct td_arena *arena, const struct td_json *node, bool copy_texts);

static inline bool td_json_is(const struct td_json *node, enum td_json_type type)
{
    return node && node->type == type;
}

/* The way into every walk: `for (item = td_json_first_item(list); item; item = item->next)`. The
 * links share their place with a text, so they are followed only in what is a list or an object:
 * NULL, null, a text, or an object where a list was meant have no items. scripts/check-banned keeps
 * the links themselves to the JSON modules. */
static inline struct td_json *td_json_first_item(const struct td_json *array)
{
    return td_json_is(array, TD_JSON_TYPE_ARRAY) ? array->head_child : NULL;
}

static inline struct td_json *td_json_first_member(const struct td_json *object)
{
    return td_json_is(object, TD_JSON_TYPE_OBJECT) ? object->head_child : NULL;
}

/* Of an array or an object, for walks that take both. */
static inline bool td_json_is_collection(const struct td_json *node)
{
    return td_json_is(node, TD_JSON_TYPE_ARRAY) || td_json_is(node, TD_JSON_TYPE_OBJECT);
}

static inline struct td_json *td_json_first_child(const struct td_json *node)
{
    return td_json_is_collection(node) ? node->head_child : NULL;
}

static inline struct td_json *td_json_last_child(const struct td_json *node)
{
    return td_json_is_collection(node) ? node->tail_child : NULL;
}

/* What an array of the same node would hold: 0 for what is no array, or no object. */
static inline size_t td_json_item_count(const struct td_json *array)
{
    return td_json_is(array, TD_JSON_TYPE_ARRAY) ? array->count : 0;
}

static inline size_t td_json_member_count(const struct td_json *object)
{
    return td_json_is(object, TD_JSON_TYPE_OBJECT) ? object->count : 0;
}

/* Objects. NULL nodes and nodes of another type have no members: get gives NULL. */
struct td_json *td_json_get(const struct td_json *object, td_str key);
struct td_json *td_json_get_path(const struct td_json *object,
                                 const char *dotted); /* "spec.template.spec" */
void td_json_set(struct td_arena *arena, struct td_json *object, td_str key,
                 struct td_json *value); /* add or replace in place */
void td_json_set_str(struct td_arena *arena, struct td_json *object, td_str key, td_str text);
void td_json_set_int64(struct td_arena *arena, struct td_json *object, td_str key, int64_t value);
void td_json_set_bool(struct td_arena *arena, struct td_json *object, td_str key, bool value);
/* Null where the value is infinite or no number, which JSON cannot say. */
void td_json_set_double(struct td_arena *arena, struct td_json *object, td_str key, double value);
/* An empty text, or a value that is NULL, changes nothing. The copy shares the texts of `value`. */
void td_json_set_text(struct td_arena *arena, struct td_json *object, td_str key, td_str text);
void td_json_set_copy(struct td_arena *arena, struct td_json *object, td_str key,
                      const struct td_json *value);
bool td_json_remove(struct td_json *object, td_str key);

/* The object under `key`, made when it is missing or not an object. */
struct td_json *td_json_ensure_object(struct td_arena *arena, struct td_json *object, td_str key);
/* The same of an array. */
struct td_json *td_json_ensure_array(struct td_arena *arena, struct td_json *object, td_str key);
/* The array under `key`, or nothing when it is empty. */
void td_json_set_filled(struct td_arena *arena, struct td_json *object, td_str key,
                        struct td_json *array);

/* Members in byte order of their names, recursively: the order in which Go writes maps. */
void td_json_sort(struct td_arena *arena, struct td_json *node);

/* Arrays. Index at most count for insert, below it for the others, except that `at` gives NULL past
 * the end. All but append walk to the index: use td_json_first_item to visit every item. */
struct td_json *td_json_at(const struct td_json *array, size_t index);
void td_json_append(struct td_json *array, struct td_json *value);
bool td_json_has_text(const struct td_json *array, td_str text); /* NULL has none */
void td_json_insert(struct td_json *array, size_t index, struct td_json *value);
void td_json_remove_at(struct td_json *array, size_t index);
void td_json_replace_at(struct td_json *array, size_t index, struct td_json *value);

/* Values of typed members; the fallback when missing or of another type. */
td_str td_json_get_str(const struct td_json *object, td_str key, td_str fallback);
static inline td_str td_json_text(const struct td_json *object, const char *key)
{
    return td_json_get_str(object, (td_str){.ptr = key, .len = strlen(key)}, TD_STR_EMPTY);
}
/* A member that is there and not null, or NULL. */
static inline struct td_json *td_json_member(const struct td_json *object, const char *key)
{
    struct td_json *member = td_json_get(object, (td_str){.ptr = key, .len = strlen(key)});
    return td_json_is(member, TD_JSON_TYPE_NULL) ? NULL : member;
}
bool td_json_get_bool(const struct td_json *object, td_str key, bool fallback);
int64_t td_json_get_int64(const struct td_json *object, td_str key, int64_t fallback);

/* A NUMBER node's value. int64: false unless whole and in range (1e3 and 1.0 are whole). double:
 * nearest, as Go's ParseFloat; false when it overflows. */
bool td_json_to_int64(const struct td_json *number, int64_t *ret);
bool td_json_to_double(const struct td_json *number, double *ret);

/* The node keeps its place, name, line and mark, and gets the value of `from`, which is then no
 * longer used. */
void td_json_take(struct td_json *node, struct td_json *from);

/* Nested arrays and objects: 0 for a scalar or NULL, 1 for an array of scalars. Trees made by code
 * may be of any depth; one deeper than TD_JSON_DEPTH_MAX can be written, but not read back. */
size_t td_json_depth(const struct td_json *node);

/* TD_LIMIT when a tree has more values, or one of its lists and objects more items, than these:
 * work on a tree that passes is bounded, whatever is done for each of its values. */
int td_json_check_size(const struct td_json *node, size_t values_max, size_t items_max,
                       struct td_error *err);

/* Equal as JSON values: member order ignored, numbers by exact value. NULL pointers are equal only
 * to each other. */
bool td_json_equal(const struct td_json *a, const struct td_json *b);

/* Writing. Go's rules: strings escaped as encoding/json does (with escape_html: also < > & as the
 * API server and json.Marshal write them), numbers as they are, no spaces unless indent is above 0.
 * Appends to out; check out at the end. */
struct td_json_format {
    int indent; /* spaces a level; 0: one line */
    bool escape_html;
};
void td_json_write(const struct td_json *node, const struct td_json_format *format,
                   struct td_buf *out);
void td_json_write_string(td_str text, bool escape_html, struct td_buf *out);
/* On one line, in the arena. */
td_str td_json_line(struct td_arena *arena, const struct td_json *node);

/* A float64 as Go's encoding/json writes it (shortest digits that read back, exponent below 1e-6
 * and from 1e21); must be finite. At most TD_JSON_DOUBLE_BYTES bytes. */
#define TD_JSON_DOUBLE_BYTES 32
void td_json_write_double(double value, struct td_buf *out);
