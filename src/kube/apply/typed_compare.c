/*
 * What changed between two values: the fields removed, modified and added. Both sides are walked
 * together along the type. A side that is missing (NULL) marks everything below as added or
 * removed; null is a value like any other, but takes whichever form the other side has.
 *
 * When the two sides have different forms (an untyped field turned from an object into a number)
 * upstream walks them once in each form and takes both answers; so do we.
 */
#include "kube/apply/typed.h"

#include "base/assert.h"
#include "base/limits.h"
#include "kube/apply/fieldset_types.h"
#include "kube/apply/typed_types.h"

enum change { REMOVED, MODIFIED, ADDED, CHANGE_COUNT };

/* What the comparison of one place puts into its parent's three sets. */
struct changed {
    bool is_member[CHANGE_COUNT];
    const struct td_fieldset *children[CHANGE_COUNT];
};

struct sides {
    const struct td_json *before; /* either may be NULL, not both */
    const struct td_json *after;
};

static struct changed compare_value(struct td_arena *arena, const struct td_schema_type *type,
                                    struct sides sides, unsigned depth);

static void builders_add(struct td_fieldset_builder builders[CHANGE_COUNT],
                         const struct td_field_step *step, const struct changed *changed)
{
    for (size_t i = 0; i < CHANGE_COUNT; i++) {
        td_fieldset_builder_add(&builders[i], step, changed->is_member[i], changed->children[i]);
    }
}

static struct changed builders_finish(struct td_fieldset_builder builders[CHANGE_COUNT])
{
    struct changed out = {.is_member = {false}};
    for (size_t i = 0; i < CHANGE_COUNT; i++) {
        out.children[i] = td_fieldset_builder_finish(&builders[i]);
    }
    return out;
}

static void builders_init(struct td_fieldset_builder builders[CHANGE_COUNT], struct td_arena *arena)
{
    for (size_t i = 0; i < CHANGE_COUNT; i++) {
        builders[i] = (struct td_fieldset_builder){.arena = arena};
    }
}

static struct changed compare_leaf(struct sides sides)
{
    struct changed out = {.is_member = {false}};
    if (!sides.before) {
        out.is_member[ADDED] = true;
    } else if (!sides.after) {
        out.is_member[REMOVED] = true;
    } else {
        out.is_member[MODIFIED] = !td_field_value_equal(sides.before, sides.after);
    }
    return out;
}

static void compare_member(struct td_arena *arena, const struct td_schema_type *type, td_str key,
                           struct sides sides, unsigned depth,
                           struct td_fieldset_builder builders[CHANGE_COUNT])
{
    bool is_named;
    const struct td_schema_type *member_type = td_typed_member(type, key, &is_named);
    const struct td_field_step step = {.kind = TD_FIELD_NAME, .name = key};
    struct changed below = compare_value(arena, member_type, sides, depth + 1);
    builders_add(builders, &step, &below);
}

static struct changed compare_maps(struct td_arena *arena, const struct td_schema_type *type,
                                   struct sides maps, unsigned depth)
{
    struct td_fieldset_builder builders[CHANGE_COUNT];
    builders_init(builders, arena);
    for (const struct td_json *m = td_json_first_member(maps.before); m; m = m->next) {
        struct sides sides = {.before = m, .after = td_json_get(maps.after, m->key)};
        compare_member(arena, type, m->key, sides, depth, builders);
    }
    for (const struct td_json *m = td_json_first_member(maps.after); m; m = m->next) {
        if (!td_json_get(maps.before, m->key)) {
            struct sides sides = {.before = NULL, .after = m};
            compare_member(arena, type, m->key, sides, depth, builders);
        }
    }
    return builders_finish(builders);
}

static bool same_items_equal(const struct td_typed_item *const *before,
                             const struct td_typed_item *const *after)
{
    if (before[0]->same != after[0]->same) {
        return false;
    }
    for (size_t i = 0; i < before[0]->same; i++) {
        if (!td_field_value_equal(before[i]->value, after[i]->value)) {
            return false;
        }
    }
    return true;
}

/* The items of one key on both sides; either may be NULL. Several items of one key are compared as
 * a whole, and only the key itself changes hands. */
static struct changed compare_same_items(struct td_arena *arena, const struct td_schema_type *type,
                                         const struct td_typed_item *const *before,
                                         const struct td_typed_item *const *after, unsigned depth)
{
    struct changed out = {.is_member = {false}};
    size_t count_before = before ? before[0]->same : 0;
    size_t count_after = after ? after[0]->same : 0;
    struct sides sides = {
        .before = count_before == 1 ? before[0]->value : NULL,
        .after = count_after == 1 ? after[0]->value : NULL,
    };
    if (count_before > 1 && count_after > 1) {
        out.is_member[MODIFIED] = !same_items_equal(before, after);
        return out;
    }
    if (sides.before || sides.after) {
        out = compare_value(arena, td_typed_item(type), sides, depth + 1);
    }
    if (count_before > 1) {
        out.is_member[REMOVED] = true;
    } else if (count_after > 1) {
        out.is_member[ADDED] = true;
    }
    return out;
}

/* Both lists sorted by key, walked side by side. */
static struct changed compare_lists(struct td_arena *arena, const struct td_schema_type *type,
                                    struct sides lists, unsigned depth)
{
    struct td_fieldset_builder builders[CHANGE_COUNT];
    builders_init(builders, arena);
    struct td_typed_items before = td_typed_items_new(arena, type, lists.before);
    struct td_typed_items after = td_typed_items_new(arena, type, lists.after);
    size_t i = 0;
    size_t j = 0;
    while (i < before.count || j < after.count) {
        int order = i == before.count ? 1 : -1;
        if (i < before.count && j < after.count) {
            order = td_field_step_compare(&before.sorted[i]->step, &after.sorted[j]->step);
        }
        const struct td_typed_item *const *left = order <= 0 ? &before.sorted[i] : NULL;
        const struct td_typed_item *const *right = order >= 0 ? &after.sorted[j] : NULL;
        struct changed below = compare_same_items(arena, type, left, right, depth);
        builders_add(builders, left ? &left[0]->step : &right[0]->step, &below);
        i += left ? left[0]->same : 0;
        j += right ? right[0]->same : 0;
    }
    return builders_finish(builders);
}

static bool is_empty_side(const struct td_json *side)
{
    return !side || side->count == 0;
}

/* Compare in one form; *ret_is_leaf tells whether the place was taken as a whole. */
static struct changed compare_form(struct td_arena *arena, const struct td_schema_type *type,
                                   unsigned form, struct sides sides, unsigned depth,
                                   bool *ret_is_leaf)
{
    enum td_json_type wanted = form == TD_FORM_MAP ? TD_JSON_TYPE_OBJECT : TD_JSON_TYPE_ARRAY;
    struct sides parts = {
        .before = td_json_is(sides.before, wanted) ? sides.before : NULL,
        .after = td_json_is(sides.after, wanted) ? sides.after : NULL,
    };
    *ret_is_leaf = form == TD_FORM_SCALAR || td_typed_is_atomic(type, form) ||
                   (is_empty_side(parts.before) && is_empty_side(parts.after));
    if (*ret_is_leaf) {
        return compare_leaf(sides);
    }
    return form == TD_FORM_MAP ? compare_maps(arena, type, parts, depth)
                               : compare_lists(arena, type, parts, depth);
}

static void changed_join(struct td_arena *arena, struct changed *out, const struct changed *more)
{
    for (size_t i = 0; i < CHANGE_COUNT; i++) {
        out->is_member[i] |= more->is_member[i];
        out->children[i] = td_fieldset_union(arena, out->children[i], more->children[i]);
    }
}

static struct changed compare_value(struct td_arena *arena, const struct td_schema_type *type,
                                    struct sides sides, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    unsigned forms_before = td_typed_forms_of(type, sides.before);
    unsigned forms_after = td_typed_forms_of(type, sides.after);
    unsigned form = td_typed_first_form(sides.after ? forms_after : forms_before);
    if (form == 0) {
        return (struct changed){.is_member = {false}};
    }
    bool is_leaf;
    struct changed out = compare_form(arena, type, form, sides, depth, &is_leaf);
    if (sides.before && sides.after && forms_before != forms_after) {
        bool is_other_leaf;
        unsigned other = td_typed_first_form(forms_before);
        struct changed more = compare_form(arena, type, other, sides, depth, &is_other_leaf);
        changed_join(arena, &out, &more);
    }
    if (!is_leaf && !sides.before) {
        out.is_member[ADDED] = true;
    } else if (!is_leaf && !sides.after) {
        out.is_member[REMOVED] = true;
    }
    return out;
}

struct td_typed_changes td_typed_compare(struct td_arena *arena, const struct td_schema_type *type,
                                         const struct td_json *before, const struct td_json *after)
{
    struct sides sides = {.before = before, .after = after};
    struct changed changed = compare_value(arena, type, sides, 0);
    return (struct td_typed_changes){
        .removed = changed.children[REMOVED],
        .modified = changed.children[MODIFIED],
        .added = changed.children[ADDED],
    };
}
