/*
 * What the files of the kinds share; nobody else includes this. Each kind has one row of rules: how
 * its names look, what a write may not set, what must hold, which fields can be selected by. Trees
 * have passed td_kind_default, so types are right and members that are always written are there.
 */
#pragma once

#include "base/limits.h"
#include "local/kinds.h"
#include "local/kinds_default.h"

typedef size_t (*td_kind_name_fn)(td_str name, struct td_buf *out);

/* A field selector's field and the member whose text it is; `fallback` for one that is absent. */
struct td_kind_field_rule {
    td_str field;
    const char *path; /* dotted; NULL: computed by the kind */
    td_str fallback;
};

struct td_kind_rules {
    td_str group;
    td_str kind;
    td_kind_name_fn check_name;                   /* NULL: DNS subdomain */
    void (*prepare)(struct td_kind_write *write); /* after what all kinds share; may be NULL */
    void (*validate)(const struct td_kind_write *write, struct td_field_errors *errors);
    const struct td_kind_field_rule *fields;
    size_t field_count;
};

/* The tables of the files; each ends by its count. */
extern const struct td_kind_rules td_kind_pod_rules[];
extern const size_t td_kind_pod_rule_count;
extern const struct td_kind_rules td_kind_workload_rules[];
extern const size_t td_kind_workload_rule_count;
extern const struct td_kind_rules td_kind_batch_rules[];
extern const size_t td_kind_batch_rule_count;
extern const struct td_kind_rules td_kind_core_rules[];
extern const size_t td_kind_core_rule_count;
extern const struct td_kind_rules td_kind_policy_rules[];
extern const size_t td_kind_policy_rule_count;
extern const struct td_kind_rules td_kind_webhook_rules[];
extern const size_t td_kind_webhook_rule_count;
extern const struct td_kind_rules td_kind_rbac_rules[];
extern const size_t td_kind_rbac_rule_count;
extern const struct td_kind_rules td_kind_definition_rules[];
extern const size_t td_kind_definition_rule_count;

/* Members. */
static inline struct td_json *td_kind_spec(const struct td_json *object)
{
    return td_kind_member(object, TD_STR("spec"));
}
static inline struct td_json *td_kind_metadata(const struct td_json *object)
{
    return td_kind_member(object, TD_STR("metadata"));
}
/* Equal, where null, absent and both empty are the same. */
bool td_kind_same(const struct td_json *a, const struct td_json *b);
bool td_kind_same_member(const struct td_json *a, const struct td_json *b, td_str key);
/* `key` of `to` becomes what it is in `from`, or goes. */
void td_kind_take(struct td_arena *arena, struct td_json *to, const struct td_json *from,
                  td_str key);

/* The time of the write, as a member. */
td_str td_kind_now(const struct td_kind_write *write);

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

/* A pod template at `path`. */
void td_pod_check_template(struct td_field_errors *errors, const struct td_field_path *path,
                           const struct td_json *template);
/* A count or a percentage; capped: of at most 100%. */
void td_kind_check_share(struct td_field_errors *errors, const struct td_field_path *parent,
                         const struct td_json *object, td_str key, bool is_capped);
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
/* "Guaranteed", "Burstable" or "BestEffort". */
td_str td_pod_qos_class(struct td_arena *arena, const struct td_json *pod);
