/*
 * Checks that the validators of built-in kinds share: members of a tree, names, labels, selectors,
 * ports, what may not change. Errors are upstream's: its paths, classes and words. Trees have the
 * types of their schema.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json/json.h"
#include "base/str.h"
#include "kube/fielderror.h"

typedef size_t (*td_kind_name_fn)(td_str name, struct td_buf *out);

/* A member that is there and not null, or NULL. */
static inline struct td_json *td_kind_member(const struct td_json *object, td_str key)
{
    struct td_json *member = td_json_get(object, key);
    return td_json_is(member, TD_JSON_TYPE_NULL) ? NULL : member;
}

static inline td_str td_kind_text(const struct td_json *object, td_str key)
{
    return td_json_get_str(object, key, TD_STR_EMPTY);
}

static inline struct td_json *td_kind_spec(const struct td_json *object)
{
    return td_json_member(object, "spec");
}
static inline struct td_json *td_kind_metadata(const struct td_json *object)
{
    return td_json_member(object, "metadata");
}
/* Equal, where null, absent and both empty are the same. */
bool td_kind_same(const struct td_json *a, const struct td_json *b);
bool td_kind_same_member(const struct td_json *a, const struct td_json *b, td_str key);
/* `key` of `to` becomes what it is in `from`, or goes. */
void td_kind_take(struct td_arena *arena, struct td_json *to, const struct td_json *from,
                  td_str key);

/* Checks that many kinds share; `path` is of the object that has the member, unless said. */
void td_kind_check_name_at(struct td_field_errors *errors, const struct td_field_path *path,
                           td_str name, td_kind_name_fn check);
void td_kind_check_not_negative(struct td_field_errors *errors, const struct td_field_path *path,
                                const struct td_json *object, td_str key);
void td_kind_check_one_of(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *object, td_str key, const td_str *values,
                          size_t count);
/* "field is immutable", with the new value, when they differ. */
void td_kind_check_immutable(struct td_field_errors *errors, const struct td_field_path *path,
                             const struct td_json *value, const struct td_json *old);
/* Labels and annotations at `path` of ObjectMeta. */
void td_kind_check_labels(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *labels);
void td_kind_check_annotations(struct td_field_errors *errors, const struct td_field_path *path,
                               const struct td_json *annotations);
/* A LabelSelector at `path`. */
void td_kind_check_selector(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *selector);
/* Does a LabelSelector match these labels? False when it cannot be read. */
bool td_kind_selects(struct td_arena *arena, const struct td_json *selector,
                     const struct td_json *labels);
/* An error whose value is a tree, shown as JSON; `detail` is formatted text. */
void td_kind_invalid_tree(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *value, const char *detail);
void td_kind_invalid_text(struct td_field_errors *errors, const struct td_field_path *path,
                          td_str value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The child path of a map key: path[key]. */
struct td_field_path td_kind_key(const struct td_field_path *parent, td_str key);
/* A name that may stand in a path, whatever its letters: no slash, no percent sign, no dots
 * alone. */
size_t td_kind_check_path_segment(td_str name, struct td_buf *out);
/* Adds `name` to a set, an object; false when it was there already. */
bool td_kind_add_name(struct td_arena *arena, struct td_json *set, td_str name);
void td_kind_duplicate(struct td_field_errors *errors, const struct td_field_path *path,
                       td_str value);
/* A port number, or with names allowed a port's name. */
void td_kind_check_port(struct td_field_errors *errors, const struct td_field_path *path,
                        const struct td_json *port);
