/*
 * The inside of a field set, for the walks that make and read sets node by node. A set is an array
 * of nodes sorted by step; each is a member, has members below it, or both. Nodes that are neither
 * do not exist, so the only empty set is NULL. Sets are never changed once finished: they share
 * subtrees freely.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "kube/apply/fieldpath.h"

struct td_fieldset;

struct td_fieldset_node {
    struct td_field_step step;
    bool is_member;
    const struct td_fieldset *children; /* NULL when there are none */
};

struct td_fieldset {
    size_t count; /* above 0 */
    struct td_fieldset_node nodes[];
};

/* Collects nodes in any order; zero it but for the arena. */
struct td_fieldset_builder {
    struct td_arena *arena;
    struct td_fieldset *set;
    size_t cap;
};

/* A node that is neither a member nor has children is left out. */
void td_fieldset_builder_add(struct td_fieldset_builder *builder, const struct td_field_step *step,
                             bool is_member, const struct td_fieldset *children);

/* The set of what was added, sorted, equal steps joined; NULL when nothing was. */
const struct td_fieldset *td_fieldset_builder_finish(struct td_fieldset_builder *builder);

/* The node of that step, or NULL. */
const struct td_fieldset_node *td_fieldset_find(const struct td_fieldset *set,
                                                const struct td_field_step *step);

/* Union of many sets in n log n steps, where one after the other could take n squared. The array is
 * used as scratch space. */
const struct td_fieldset *td_fieldset_union_all(struct td_arena *arena,
                                                const struct td_fieldset **sets, size_t count);

/* How many members the set has, and how many steps its longest path. */
size_t td_fieldset_size(const struct td_fieldset *set);
size_t td_fieldset_depth(const struct td_fieldset *set);

/* Call `visit` with each member's path text, in upstream's order (the members of a level, then what
 * is below them), until it returns false. The text is only valid during the call. */
typedef bool (*td_fieldset_visitor)(void *context, td_str path);
void td_fieldset_visit(const struct td_fieldset *set, td_fieldset_visitor visit, void *context);
