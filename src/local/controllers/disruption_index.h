/*
 * Which pods each budget selects, and what counts of them: kept up to date by one change at a time,
 * so that judging a budget never walks the pods of its namespace. Owned by disruption.c, fed by its
 * observer. Budgets, members and owners belong to the index. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "kube/selector/selector.h"

struct td_store;

/* A controller of a budget's pods. */
struct td_budget_owner {
    td_str api_version; /* texts are owned, behind the structure */
    td_str kind;
    td_str name;
    td_str uid;
    size_t count; /* of pods */
};

struct td_budget_member {
    td_str name; /* owned, behind the structure */
    bool is_ready;
    bool is_deleting;
    struct td_budget_owner *owner; /* NULL: no controller */
};

struct td_budget {
    td_str key; /* "namespace/name"; behind the structure, as the two below */
    td_str ns;
    td_str name;
    int64_t generation;
    struct td_arena arena; /* of the selector */
    struct td_selector selector;
    struct td_map members; /* by name */
    struct td_map owners;  /* by uid */
    size_t healthy;        /* members that are ready and stay */
    size_t unmanaged;      /* members without an owner */
};

struct td_disruption_index {
    struct td_map budgets; /* by key */
    struct td_map groups;  /* struct budget_group by namespace */
    struct td_store *store;
    void (*changed)(void *context, td_str key); /* a budget is to be judged */
    void *context;
};

void td_disruption_index_init(struct td_disruption_index *index, struct td_store *store,
                              void (*changed)(void *context, td_str key), void *context);
void td_disruption_index_done(struct td_disruption_index *index);

/* A budget as it is now; its pods are looked for when its spec is new. */
void td_disruption_index_put(struct td_disruption_index *index, td_str ns, td_str name,
                             td_str json);
void td_disruption_index_drop(struct td_disruption_index *index, td_str ns, td_str name);

/* A pod as it is now; json empty: it is gone. */
void td_disruption_index_pod(struct td_disruption_index *index, td_str ns, td_str name,
                             td_str json);

/* NULL: there is none. */
const struct td_budget *td_disruption_index_get(const struct td_disruption_index *index,
                                                td_str key);
