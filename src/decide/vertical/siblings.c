/*
 * Are two selectors disjoint?
 *
 * A selector is a set of requirements that must all hold, each about one key, and keys are
 * independent of each other. So a label set that satisfies both selectors exists iff each key, by
 * itself, has a choice (absent, or some value) that satisfies every requirement of both on that
 * key. For one key there are four kinds of requirements:
 *
 * 1. In: present, with a value of a list. Any choice must be in every such list, so the shortest of
 *    them holds all candidates.
 * 2. NotIn: absent, or a value outside a list. All these lists together are the forbidden values.
 * 3. Exists: present. Values are unbounded, so some value is always outside the forbidden ones.
 * 4. DoesNotExist: absent.
 *
 * The choices made on the way are the witness. Requirements come sorted by key, so one walk over
 * both lists meets each key once. The work for a key is candidates of the shortest list times the
 * number of lists, which is at most their total length, times the logarithm of a search.
 */
#include "decide/vertical/siblings.h"

#include <stdlib.h>

#include "base/assert.h"

#define WITNESS_VALUE "x" /* where any value will do */

/* The requirements of one key: two runs, one of each selector. */
struct key_group {
    td_str key;
    const struct td_requirement *own;
    size_t own_count;
    const struct td_requirement *other;
    size_t other_count;
};

/* What a key can be. */
struct key_choice {
    bool is_possible;
    bool is_present;
    td_str value; /* when present */
};

static const struct td_requirement *group_at(const struct key_group *group, size_t i)
{
    return i < group->own_count ? &group->own[i] : &group->other[i - group->own_count];
}

static bool is_in(enum td_selector_operator operation)
{
    return operation == TD_SELECTOR_IN || operation == TD_SELECTOR_EQUALS ||
           operation == TD_SELECTOR_DOUBLE_EQUALS;
}

static bool is_not_in(enum td_selector_operator operation)
{
    return operation == TD_SELECTOR_NOT_IN || operation == TD_SELECTOR_NOT_EQUALS;
}

static bool has_value(const td_str *values, size_t count, td_str value)
{
    return count > 0 && bsearch(&value, values, count, sizeof(value), td_str_compare_items) != NULL;
}

/* All values that NotIn forbids, sorted. */
static struct td_key_list group_forbidden(struct td_arena *arena, const struct key_group *group)
{
    size_t count = 0;
    for (size_t i = 0; i < group->own_count + group->other_count; i++) {
        const struct td_requirement *requirement = group_at(group, i);
        count += is_not_in(requirement->operation) ? requirement->value_count : 0;
    }
    td_str *values = td_arena_array(arena, td_str, count);
    size_t at = 0;
    for (size_t i = 0; i < group->own_count + group->other_count; i++) {
        const struct td_requirement *requirement = group_at(group, i);
        if (is_not_in(requirement->operation) && requirement->value_count > 0) {
            memcpy(values + at, requirement->values, requirement->value_count * sizeof(*values));
            at += requirement->value_count;
        }
    }
    if (count > 1) {
        qsort(values, count, sizeof(*values), td_str_compare_items);
    }
    return (struct td_key_list){.items = values, .count = count};
}

/* The In requirements of a key. */
struct in_lists {
    const struct td_requirement **items;
    size_t count;
    const struct td_requirement *shortest; /* NULL: there are none */
};

static struct in_lists group_in_lists(struct td_arena *arena, const struct key_group *group)
{
    size_t count = group->own_count + group->other_count;
    struct in_lists lists = {.items = td_arena_array(arena, const struct td_requirement *, count)};
    for (size_t i = 0; i < count; i++) {
        const struct td_requirement *requirement = group_at(group, i);
        if (!is_in(requirement->operation)) {
            continue;
        }
        lists.items[lists.count++] = requirement;
        if (!lists.shortest || requirement->value_count < lists.shortest->value_count) {
            lists.shortest = requirement;
        }
    }
    return lists;
}

static bool lists_have(const struct in_lists *lists, td_str value)
{
    for (size_t i = 0; i < lists->count; i++) {
        if (!has_value(lists->items[i]->values, lists->items[i]->value_count, value)) {
            return false;
        }
    }
    return true;
}

/* A value outside the forbidden ones; among count + 1 different texts there is one. */
static td_str free_value(struct td_arena *arena, const struct td_key_list *forbidden)
{
    td_str value = TD_STR(WITNESS_VALUE);
    for (size_t i = 0; has_value(forbidden->items, forbidden->count, value); i++) {
        td_assert(i <= forbidden->count);
        value = td_arena_format(arena, WITNESS_VALUE "%zu", i);
    }
    return value;
}

static struct key_choice group_choose(struct td_arena *arena, const struct key_group *group)
{
    bool needs_present = false;
    bool needs_absent = false;
    for (size_t i = 0; i < group->own_count + group->other_count; i++) {
        enum td_selector_operator operation = group_at(group, i)->operation;
        td_assert(operation != TD_SELECTOR_GREATER); /* not in a LabelSelector */
        td_assert(operation != TD_SELECTOR_LESS);
        needs_present = needs_present || is_in(operation) || operation == TD_SELECTOR_EXISTS;
        needs_absent = needs_absent || operation == TD_SELECTOR_NOT_EXISTS;
    }
    if (needs_absent || !needs_present) {
        return (struct key_choice){.is_possible = !(needs_absent && needs_present)};
    }
    struct td_key_list forbidden = group_forbidden(arena, group);
    struct in_lists lists = group_in_lists(arena, group);
    if (!lists.shortest) {
        return (struct key_choice){true, true, free_value(arena, &forbidden)};
    }
    for (size_t i = 0; i < lists.shortest->value_count; i++) {
        td_str value = lists.shortest->values[i];
        if (!has_value(forbidden.items, forbidden.count, value) && lists_have(&lists, value)) {
            return (struct key_choice){true, true, value};
        }
    }
    return (struct key_choice){.is_possible = false};
}

/* The end of the run of one key that begins at `from`. */
static size_t run_end(const struct td_selector *selector, size_t from)
{
    size_t end = from;
    while (end < selector->count &&
           td_str_equal(selector->requirements[end].key, selector->requirements[from].key)) {
        end++;
    }
    return end;
}

/* The next key in order and what both say about it; false at the end. */
static bool group_next(const struct td_selector *own, const struct td_selector *other,
                       size_t *own_at, size_t *other_at, struct key_group *ret)
{
    bool has_own = *own_at < own->count;
    bool has_other = *other_at < other->count;
    if (!has_own && !has_other) {
        return false;
    }
    int order = has_own ? -1 : 1;
    if (has_own && has_other) {
        order = td_str_compare(own->requirements[*own_at].key, other->requirements[*other_at].key);
    }
    *ret = (struct key_group){.key = order <= 0 ? own->requirements[*own_at].key
                                                : other->requirements[*other_at].key};
    if (order <= 0) {
        size_t end = run_end(own, *own_at);
        ret->own = own->requirements + *own_at;
        ret->own_count = end - *own_at;
        *own_at = end;
    }
    if (order >= 0) {
        size_t end = run_end(other, *other_at);
        ret->other = other->requirements + *other_at;
        ret->other_count = end - *other_at;
        *other_at = end;
    }
    return true;
}

/* Growing lists of a comparison, each with room for every requirement. */
struct relate_lists {
    td_str *own;
    td_str *other;
    td_str *common;
    td_str *contradictory;
    td_str *own_contradictory;
    struct td_label *witness;
    size_t own_count;
    size_t other_count;
    size_t common_count;
    size_t contradictory_count;
    size_t own_contradictory_count;
    size_t witness_count;
};

static bool group_is_possible(struct td_arena *arena, struct key_group group, bool is_own)
{
    if (is_own) {
        group.other_count = 0;
    } else {
        group.own_count = 0;
    }
    return group_choose(arena, &group).is_possible;
}

static void relate_group(struct td_arena *arena, const struct key_group *group,
                         struct relate_lists *lists, struct td_selector_relation *relation)
{
    struct key_choice choice = group_choose(arena, group);
    if (group->own_count > 0) {
        lists->own[lists->own_count++] = group->key;
    }
    if (group->other_count > 0) {
        lists->other[lists->other_count++] = group->key;
    }
    if (group->own_count > 0 && group->other_count > 0) {
        lists->common[lists->common_count++] = group->key;
    }
    if (choice.is_possible && choice.is_present) {
        lists->witness[lists->witness_count++] = (struct td_label){group->key, choice.value};
    }
    if (choice.is_possible) {
        return; /* then each of the two is possible alone */
    }
    lists->contradictory[lists->contradictory_count++] = group->key;
    if (!group_is_possible(arena, *group, true)) {
        lists->own_contradictory[lists->own_contradictory_count++] = group->key;
    }
    if (!group_is_possible(arena, *group, false)) {
        relation->is_other_contradictory = true;
    }
}

static void relate_decide(const struct relate_lists *lists, struct td_selector_relation *relation)
{
    struct td_key_list contradictory = {lists->contradictory, lists->contradictory_count};
    relation->is_disjoint = lists->contradictory_count > 0;
    relation->is_contradictory = lists->own_contradictory_count > 0;
    relation->own_keys = (struct td_key_list){lists->own, lists->own_count};
    relation->other_keys = (struct td_key_list){lists->other, lists->other_count};
    if (!relation->is_disjoint) {
        relation->witness = (struct td_labels){lists->witness, lists->witness_count};
    }
    if (relation->is_contradictory) {
        relation->verdict = TD_SELECTOR_CONTRADICTORY;
        relation->keys =
            (struct td_key_list){lists->own_contradictory, lists->own_contradictory_count};
    } else if (lists->own_count == 0 || lists->other_count == 0) {
        relation->verdict = TD_SELECTOR_CATCH_ALL;
    } else if (lists->common_count == 0) {
        relation->verdict = TD_SELECTOR_NO_COMMON_KEY;
    } else if (relation->is_disjoint) {
        relation->verdict = TD_SELECTOR_DISJOINT;
        relation->keys = contradictory;
    } else {
        relation->verdict = TD_SELECTOR_SATISFIABLE;
        relation->keys = (struct td_key_list){lists->common, lists->common_count};
    }
}

struct td_selector_relation td_selector_disjoint(struct td_arena *arena,
                                                 const struct td_selector *own,
                                                 const struct td_selector *other)
{
    static const struct td_selector catch_all = {.requirements = NULL};
    own = own ? own : &catch_all;
    other = other ? other : &catch_all;
    size_t room = own->count + other->count;
    struct relate_lists lists = {
        .own = td_arena_array(arena, td_str, own->count),
        .other = td_arena_array(arena, td_str, other->count),
        .common = td_arena_array(arena, td_str, own->count),
        .contradictory = td_arena_array(arena, td_str, room),
        .own_contradictory = td_arena_array(arena, td_str, own->count),
        .witness = td_arena_array(arena, struct td_label, room),
    };
    struct td_selector_relation relation = {.is_disjoint = false};
    struct key_group group;
    size_t own_at = 0;
    size_t other_at = 0;
    while (group_next(own, other, &own_at, &other_at, &group)) {
        relate_group(arena, &group, &lists, &relation);
    }
    relate_decide(&lists, &relation);
    return relation;
}
