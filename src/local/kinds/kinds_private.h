/*
 * Shared by the files of the kinds only. Each kind has one row of rules: how
 * its names look, what a write may not set, what must hold, which fields can be selected by. Trees
 * have passed td_kind_default, so types are right and members that are always written are there.
 */
#pragma once

#include "api/object_check.h"
#include "base/limits.h"
#include "local/kinds/kinds.h"
#include "local/kinds/kinds_default.h"

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

/* Members of a row of rules. */
#define TD_KIND(group_, kind_, validate_)                                                          \
    .group = TD_STR_INIT(group_), .kind = TD_STR_INIT(kind_), .validate = (validate_)
#define TD_KIND_FIELDS(rules) .fields = (rules), .field_count = TD_COUNT(rules)
#define TD_KIND_END                                                                                \
    {                                                                                              \
        .kind = TD_STR_INIT("")                                                                    \
    }

/* The tables of the files; each ends by TD_KIND_END. */
extern const struct td_kind_rules td_kind_pod_rules[], td_kind_workload_rules[],
    td_kind_batch_rules[], td_kind_core_rules[], td_kind_policy_rules[], td_kind_webhook_rules[],
    td_kind_rbac_rules[], td_kind_definition_rules[];

/* The time of the write, as a member. */
td_str td_kind_now(const struct td_kind_write *write);

/* A count or a percentage; capped: of at most 100%. */
void td_kind_check_share(struct td_field_errors *errors, const struct td_field_path *parent,
                         const struct td_json *object, td_str key, bool is_capped);
