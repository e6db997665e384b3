/*
 * Set algebra over sorted trees. Every operation walks two sorted arrays side by side and goes down
 * only where both have children, so it costs what the sets have in common plus, for a union, what
 * is copied. When one side is much longer than the other (one owner of three fields against a
 * change of thousands) the short one is looked up in the long one instead: many owners times one
 * large change must not become a product.
 *
 * Subtrees are shared wherever the answer is one of the inputs, and equal pointers are equal sets.
 */
#include "kube/apply/fieldset.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/limits.h"
#include "kube/apply/fieldset_types.h"

#define BUILDER_CAP_FIRST 4
#define SEARCH_FACTOR 16 /* from this ratio of lengths on, search instead of walking */

/* Building. */

static struct td_fieldset *fieldset_alloc(struct td_arena *arena, size_t cap)
{
    struct td_fieldset *set = td_arena_alloc(arena, sizeof(*set) + cap * sizeof(set->nodes[0]));
    set->count = 0;
    return set;
}

void td_fieldset_builder_add(struct td_fieldset_builder *builder, const struct td_field_step *step,
                             bool is_member, const struct td_fieldset *children)
{
    if (!is_member && !children) {
        return;
    }
    if (!builder->set || builder->set->count == builder->cap) {
        size_t cap = builder->set ? builder->cap * 2 : BUILDER_CAP_FIRST;
        struct td_fieldset *grown = fieldset_alloc(builder->arena, cap);
        if (builder->set) {
            grown->count = builder->set->count;
            memcpy(grown->nodes, builder->set->nodes, grown->count * sizeof(grown->nodes[0]));
        }
        builder->set = grown;
        builder->cap = cap;
    }
    builder->set->nodes[builder->set->count++] =
        (struct td_fieldset_node){.step = *step, .is_member = is_member, .children = children};
}

static int node_compare(const void *a, const void *b)
{
    const struct td_fieldset_node *left = a;
    const struct td_fieldset_node *right = b;
    return td_field_step_compare(&left->step, &right->step);
}

const struct td_fieldset *td_fieldset_builder_finish(struct td_fieldset_builder *builder)
{
    struct td_fieldset *set = builder->set;
    if (!set) {
        return NULL;
    }
    bool is_sorted = true;
    for (size_t i = 1; i < set->count && is_sorted; i++) {
        is_sorted = node_compare(&set->nodes[i - 1], &set->nodes[i]) < 0;
    }
    if (is_sorted) {
        return set;
    }
    qsort(set->nodes, set->count, sizeof(set->nodes[0]), node_compare);
    size_t kept = 0;
    for (size_t i = 1; i < set->count; i++) {
        struct td_fieldset_node *last = &set->nodes[kept];
        struct td_fieldset_node *node = &set->nodes[i];
        if (node_compare(last, node) == 0) {
            last->is_member |= node->is_member;
            last->children = td_fieldset_union(builder->arena, last->children, node->children);
        } else {
            set->nodes[++kept] = *node;
        }
    }
    set->count = kept + 1;
    return set;
}

/* The first node at or after `from` whose step is not below `step`. */
static size_t fieldset_lower_bound(const struct td_fieldset *set, const struct td_field_step *step,
                                   size_t from)
{
    size_t low = from;
    size_t high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (td_field_step_compare(&set->nodes[middle].step, step) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const struct td_fieldset_node *td_fieldset_find(const struct td_fieldset *set,
                                                const struct td_field_step *step)
{
    if (!set) {
        return NULL;
    }
    size_t at = fieldset_lower_bound(set, step, 0);
    bool is_found = at < set->count && td_field_step_compare(&set->nodes[at].step, step) == 0;
    return is_found ? &set->nodes[at] : NULL;
}

/* Algebra. */

static const struct td_fieldset *fieldset_union(struct td_arena *arena, const struct td_fieldset *a,
                                                const struct td_fieldset *b, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    if (a == b || !b) {
        return a;
    }
    if (!a) {
        return b;
    }
    struct td_fieldset *out = fieldset_alloc(arena, a->count + b->count);
    size_t i = 0;
    size_t j = 0;
    while (i < a->count && j < b->count) {
        int order = node_compare(&a->nodes[i], &b->nodes[j]);
        struct td_fieldset_node *node = &out->nodes[out->count++];
        *node = order <= 0 ? a->nodes[i] : b->nodes[j];
        if (order == 0) {
            node->is_member |= b->nodes[j].is_member;
            node->children = fieldset_union(arena, node->children, b->nodes[j].children, depth + 1);
        }
        i += order <= 0;
        j += order >= 0;
    }
    for (; i < a->count; i++) {
        out->nodes[out->count++] = a->nodes[i];
    }
    for (; j < b->count; j++) {
        out->nodes[out->count++] = b->nodes[j];
    }
    return out;
}

const struct td_fieldset *td_fieldset_union(struct td_arena *arena, const struct td_fieldset *a,
                                            const struct td_fieldset *b)
{
    return fieldset_union(arena, a, b, 0);
}

const struct td_fieldset *td_fieldset_union_all(struct td_arena *arena,
                                                const struct td_fieldset **sets, size_t count)
{
    while (count > 1) {
        size_t half = 0;
        for (size_t i = 0; i < count; i += 2) {
            const struct td_fieldset *other = i + 1 < count ? sets[i + 1] : NULL;
            sets[half++] = td_fieldset_union(arena, sets[i], other);
        }
        count = half;
    }
    return count == 1 ? sets[0] : NULL;
}

/* Where `step` would be in `b` at or after `from`: by search when b is long, else step by step. */
static size_t fieldset_seek(const struct td_fieldset *b, const struct td_field_step *step,
                            size_t from, bool is_search)
{
    if (is_search) {
        return fieldset_lower_bound(b, step, from);
    }
    while (from < b->count && td_field_step_compare(&b->nodes[from].step, step) < 0) {
        from++;
    }
    return from;
}

static const struct td_fieldset *fieldset_intersection(struct td_arena *arena,
                                                       const struct td_fieldset *a,
                                                       const struct td_fieldset *b, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    if (a == b || !a || !b) {
        return a && b ? a : NULL;
    }
    bool is_left_short = a->count <= b->count;
    const struct td_fieldset *few = is_left_short ? a : b;
    const struct td_fieldset *many = is_left_short ? b : a;
    bool is_search = many->count / SEARCH_FACTOR > few->count;
    struct td_fieldset_builder out = {.arena = arena};
    size_t j = 0;
    for (size_t i = 0; i < few->count; i++) {
        j = fieldset_seek(many, &few->nodes[i].step, j, is_search);
        if (j == many->count) {
            break;
        }
        const struct td_fieldset_node *left = is_left_short ? &few->nodes[i] : &many->nodes[j];
        const struct td_fieldset_node *right = is_left_short ? &many->nodes[j] : &few->nodes[i];
        if (node_compare(left, right) == 0) {
            const struct td_fieldset *children =
                fieldset_intersection(arena, left->children, right->children, depth + 1);
            td_fieldset_builder_add(&out, &left->step, left->is_member && right->is_member,
                                    children);
        }
    }
    return out.set;
}

const struct td_fieldset *td_fieldset_intersection(struct td_arena *arena,
                                                   const struct td_fieldset *a,
                                                   const struct td_fieldset *b)
{
    return fieldset_intersection(arena, a, b, 0);
}

static const struct td_fieldset *fieldset_difference(struct td_arena *arena,
                                                     const struct td_fieldset *a,
                                                     const struct td_fieldset *b, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    if (!a || a == b) {
        return NULL;
    }
    if (!b) {
        return a;
    }
    bool is_search = b->count / SEARCH_FACTOR > a->count;
    bool is_changed = false;
    struct td_fieldset_builder out = {.arena = arena};
    size_t j = 0;
    for (size_t i = 0; i < a->count; i++) {
        struct td_fieldset_node node = a->nodes[i];
        j = fieldset_seek(b, &node.step, j, is_search);
        if (j < b->count && node_compare(&node, &b->nodes[j]) == 0) {
            const struct td_fieldset_node *other = &b->nodes[j];
            node.is_member = node.is_member && !other->is_member;
            node.children = fieldset_difference(arena, node.children, other->children, depth + 1);
            is_changed |= node.is_member != a->nodes[i].is_member;
            is_changed |= node.children != a->nodes[i].children;
        }
        td_fieldset_builder_add(&out, &node.step, node.is_member, node.children);
    }
    return is_changed ? out.set : a;
}

const struct td_fieldset *td_fieldset_difference(struct td_arena *arena,
                                                 const struct td_fieldset *a,
                                                 const struct td_fieldset *b)
{
    return fieldset_difference(arena, a, b, 0);
}

static size_t fieldset_size(const struct td_fieldset *set, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    size_t size = 0;
    for (size_t i = 0; set && i < set->count; i++) {
        size += set->nodes[i].is_member;
        size += fieldset_size(set->nodes[i].children, depth + 1);
    }
    return size;
}

size_t td_fieldset_size(const struct td_fieldset *set)
{
    return fieldset_size(set, 0);
}

static size_t fieldset_depth(const struct td_fieldset *set, unsigned level)
{
    td_assert(level <= TD_JSON_DEPTH_MAX);
    size_t deepest = 0;
    for (size_t i = 0; set && i < set->count; i++) {
        size_t depth = 1 + fieldset_depth(set->nodes[i].children, level + 1);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

size_t td_fieldset_depth(const struct td_fieldset *set)
{
    return fieldset_depth(set, 0);
}
