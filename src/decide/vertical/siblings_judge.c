/* Who shares a target with whom, and what is said about it. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/limits.h"
#include "decide/vertical/siblings.h"
#include "kube/meta.h"

bool td_vpa_is_sibling(const struct td_vpa *a, const struct td_vpa *b)
{
    return a->has_target && b->has_target && td_str_equal(a->meta.namespace, b->meta.namespace) &&
           !td_str_equal(a->meta.name, b->meta.name) &&
           td_str_equal(a->target_kind, b->target_kind) &&
           td_str_equal(a->target_name, b->target_name) &&
           td_str_equal(td_group_version_parse(a->target_api_version).group,
                        td_group_version_parse(b->target_api_version).group);
}

int td_vpa_compare_age(const struct td_vpa *a, const struct td_vpa *b)
{
    const struct td_instant *first = &a->meta.created;
    const struct td_instant *second = &b->meta.created;
    if (first->unix_seconds != second->unix_seconds) {
        return first->unix_seconds < second->unix_seconds ? -1 : 1;
    }
    if (first->nanos != second->nanos) {
        return first->nanos < second->nanos ? -1 : 1;
    }
    int order = td_str_compare(a->meta.name, b->meta.name);
    return (order > 0) - (order < 0);
}

/* "{app=db, role=leader}". */
static td_str witness_text(struct td_arena *arena, const struct td_labels *witness)
{
    td_auto_buf text = td_buf_capped(TD_SELECTOR_BYTES_MAX);
    /* Past its cap the text is cut: it is only shown. */
    (void)td_buf_append_char(&text, '{');
    for (size_t i = 0; i < witness->count; i++) {
        (void)td_buf_append_format(&text, "%s%.*s=%.*s", i > 0 ? ", " : "",
                                   TD_STR_ARG(witness->items[i].key),
                                   TD_STR_ARG(witness->items[i].value));
    }
    (void)td_buf_append_char(&text, '}');
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static int compare_key(const void *key, const void *item)
{
    const td_str *left = key;
    const struct td_requirement *right = item;
    return td_str_compare(*left, right->key);
}

/* Requirements are sorted by key. */
static bool constrains(const struct td_selector *selector, td_str key)
{
    return selector && selector->count > 0 &&
           bsearch(&key, selector->requirements, selector->count, sizeof(*selector->requirements),
                   compare_key) != NULL;
}

/* What holds exactly where the requirement does not. */
static struct td_requirement opposite(const struct td_requirement *requirement)
{
    struct td_requirement made = *requirement;
    switch (requirement->operation) {
    case TD_SELECTOR_IN:
    case TD_SELECTOR_EQUALS:
    case TD_SELECTOR_DOUBLE_EQUALS:
        made.operation = TD_SELECTOR_NOT_IN;
        break;
    case TD_SELECTOR_EXISTS:
        made.operation = TD_SELECTOR_NOT_EXISTS;
        break;
    case TD_SELECTOR_NOT_EXISTS:
        made.operation = TD_SELECTOR_EXISTS;
        break;
    default:
        made.operation = TD_SELECTOR_IN;
        break;
    }
    return made;
}

/* As in a sentence: "role NotIn (leader)". */
static td_str requirement_text(struct td_arena *arena, const struct td_requirement *requirement)
{
    if (requirement->operation == TD_SELECTOR_EXISTS ||
        requirement->operation == TD_SELECTOR_NOT_EXISTS) {
        return td_arena_format(arena, "%.*s %s", TD_STR_ARG(requirement->key),
                               requirement->operation == TD_SELECTOR_EXISTS ? "Exists"
                                                                            : "DoesNotExist");
    }
    bool is_not_in = requirement->operation == TD_SELECTOR_NOT_IN ||
                     requirement->operation == TD_SELECTOR_NOT_EQUALS;
    td_auto_buf text = td_buf_capped(TD_SELECTOR_BYTES_MAX);
    /* As above: only shown. */
    (void)td_buf_append_format(&text, "%.*s %s (", TD_STR_ARG(requirement->key),
                               is_not_in ? "NotIn" : "In");
    for (size_t i = 0; i < requirement->value_count; i++) {
        (void)td_buf_append_format(&text, "%s%.*s", i > 0 ? ", " : "",
                                   TD_STR_ARG(requirement->values[i]));
    }
    (void)td_buf_append_char(&text, ')');
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* Can `own` still match a pod when the requirement is added to it? */
static bool can_add(struct td_arena *arena, const struct td_selector *own,
                    const struct td_requirement *requirement)
{
    const struct td_selector alone = {.requirements = requirement, .count = 1};
    return !own || td_selector_disjoint(arena, own, &alone).verdict != TD_SELECTOR_DISJOINT;
}

td_str td_selector_way_out(struct td_arena *arena, const struct td_selector *own,
                           const struct td_selector *other)
{
    if (!other || other->count == 0) {
        return TD_STR_EMPTY;
    }
    /* Rather a key that only the other has: adding one is easier than changing one. */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < other->count; i++) {
            struct td_requirement made = opposite(&other->requirements[i]);
            bool is_wanted = pass == 1 || !constrains(own, made.key);
            if (is_wanted && can_add(arena, own, &made)) {
                return td_arena_format(arena, "add a key that tells them apart, e.g. %.*s",
                                       TD_STR_ARG(requirement_text(arena, &made)));
            }
        }
    }
    /* Each would leave nothing to match: what is required of the key has to go. */
    struct td_requirement made = opposite(&other->requirements[0]);
    return td_arena_format(
        arena, "select something else by a key of both, e.g. %.*s instead of what it has for %.*s",
        TD_STR_ARG(requirement_text(arena, &made)), TD_STR_ARG(made.key));
}

static const struct td_selector *selector_of(const struct td_vpa *vpa)
{
    return vpa->has_selector ? &vpa->pod_selector : NULL;
}

/* Why two VPAs do not go together, without naming the other. */
static td_str conflict_reason(struct td_arena *arena, const struct td_vpa *vpa,
                              const struct td_sibling_conflict *conflict)
{
    const struct td_selector_relation *relation = &conflict->relation;
    td_str witness = witness_text(arena, &relation->witness);
    if (relation->verdict == TD_SELECTOR_CATCH_ALL) {
        bool is_own = !vpa->has_selector;
        bool is_other = !conflict->sibling->has_selector;
        const char *which = is_own && is_other ? "both are catch-all"
                            : is_own           ? "this VPA has no selector and is catch-all"
                                               : "the other has no selector and is catch-all";
        return td_arena_format(arena,
                               "%s; VPAs that share a target each need a selector, and no pod may "
                               "match two",
                               which);
    }
    td_str way_out = td_selector_way_out(arena, selector_of(vpa), selector_of(conflict->sibling));
    if (relation->verdict == TD_SELECTOR_NO_COMMON_KEY) {
        return td_arena_format(arena,
                               "no label key is constrained by both (%.*s here, %.*s there), so a "
                               "pod with labels %.*s would have two; %.*s",
                               TD_STR_ARG(relation->own_keys.items[0]),
                               TD_STR_ARG(relation->other_keys.items[0]), TD_STR_ARG(witness),
                               TD_STR_ARG(way_out));
    }
    return td_arena_format(arena, "both would manage a pod with labels %.*s; %.*s",
                           TD_STR_ARG(witness), TD_STR_ARG(way_out));
}

bool td_vpa_find_conflict(struct td_arena *arena, const struct td_vpa *vpa,
                          const struct td_vpa *sibling, struct td_sibling_conflict *ret)
{
    struct td_sibling_conflict made = {
        .sibling = sibling,
        .relation = td_selector_disjoint(arena, selector_of(vpa), selector_of(sibling)),
    };
    if (made.relation.verdict == TD_SELECTOR_DISJOINT) {
        return false;
    }
    made.reason = conflict_reason(arena, vpa, &made);
    made.message = td_arena_format(arena, "selector overlaps with %.*s/%.*s: %.*s",
                                   TD_STR_ARG(sibling->meta.namespace),
                                   TD_STR_ARG(sibling->meta.name), TD_STR_ARG(made.reason));
    *ret = made;
    return true;
}

bool td_vpa_is_same_selection(const struct td_vpa *a, const struct td_vpa *b)
{
    bool is_same_selector = a->has_selector && b->has_selector
                                ? td_json_equal(a->selector_tree, b->selector_tree)
                                : a->has_selector == b->has_selector;
    return is_same_selector && a->has_target == b->has_target &&
           td_str_equal(a->target_kind, b->target_kind) &&
           td_str_equal(a->target_name, b->target_name) &&
           td_str_equal(td_group_version_parse(a->target_api_version).group,
                        td_group_version_parse(b->target_api_version).group);
}

static bool judge_is_unchanged(const struct td_sibling_request *request)
{
    for (size_t i = 0; request->is_update && i < request->existing_count; i++) {
        const struct td_vpa *stored = request->existing[i];
        if (td_str_equal(stored->meta.namespace, request->vpa->meta.namespace) &&
            td_str_equal(stored->meta.name, request->vpa->meta.name)) {
            return td_vpa_is_same_selection(stored, request->vpa);
        }
    }
    return false;
}

static int compare_names(const void *a, const void *b)
{
    const struct td_vpa *const *left = a;
    const struct td_vpa *const *right = b;
    return td_str_compare((*left)->meta.name, (*right)->meta.name);
}

static void judge_find_siblings(struct td_arena *arena, const struct td_sibling_request *request,
                                struct td_sibling_judgement *judgement)
{
    const struct td_vpa **siblings =
        td_arena_array(arena, const struct td_vpa *, request->existing_count);
    size_t count = 0;
    for (size_t i = 0; i < request->existing_count; i++) {
        if (td_vpa_is_sibling(request->vpa, request->existing[i])) {
            siblings[count++] = request->existing[i];
        }
    }
    if (count > 1) {
        qsort(siblings, count, sizeof(*siblings), compare_names);
    }
    judgement->siblings = siblings;
    judgement->sibling_count = count;
}

static void judge_conflicts(struct td_arena *arena, const struct td_vpa *vpa,
                            struct td_sibling_judgement *judgement)
{
    struct td_sibling_conflict *conflicts =
        td_arena_array(arena, struct td_sibling_conflict, judgement->sibling_count);
    td_auto_buf message = td_buf_capped(TD_SELECTOR_BYTES_MAX);
    for (size_t i = 0; i < judgement->sibling_count; i++) {
        struct td_sibling_conflict *conflict = &conflicts[judgement->conflict_count];
        if (!td_vpa_find_conflict(arena, vpa, judgement->siblings[i], conflict)) {
            continue;
        }
        judgement->conflict_count++;
        /* A refusal past the cap is cut: it is only shown. */
        (void)td_buf_append(&message, message.len > 0 ? TD_STR("; ") : TD_STR("spec.selector: "));
        (void)td_buf_append(&message, conflict->message);
    }
    judgement->conflicts = conflicts;
    judgement->is_allowed = judgement->conflict_count == 0;
    judgement->message = td_arena_copy_str(arena, td_buf_str(&message));
}

td_str td_selector_contradiction_text(struct td_arena *arena, td_str key)
{
    return td_arena_format(arena,
                           "selector can never match a pod: its requirements on key \"%.*s\" "
                           "contradict each other",
                           TD_STR_ARG(key));
}

struct td_sibling_judgement td_vpa_judge_siblings(struct td_arena *arena,
                                                  const struct td_sibling_request *request)
{
    struct td_sibling_judgement judgement = {.is_allowed = true, .message = TD_STR_EMPTY};
    judge_find_siblings(arena, request, &judgement);
    if (!request->gate) {
        return judgement;
    }
    judgement.is_unchanged = judge_is_unchanged(request);
    if (judgement.is_unchanged) {
        return judgement;
    }
    struct td_selector_relation alone =
        td_selector_disjoint(arena, selector_of(request->vpa), NULL);
    if (!alone.is_contradictory) {
        judge_conflicts(arena, request->vpa, &judgement);
        return judgement;
    }
    judgement.is_allowed = false;
    judgement.is_contradictory = true;
    judgement.contradictory_keys = alone.keys;
    td_str reason = td_selector_contradiction_text(arena, alone.keys.items[0]);
    judgement.message = td_arena_format(arena, "spec.selector: %.*s", TD_STR_ARG(reason));
    return judgement;
}

bool td_vpa_find_elder(struct td_arena *arena, const struct td_vpa *vpa,
                       const struct td_vpa *const *existing, size_t existing_count,
                       struct td_sibling_conflict *ret)
{
    const struct td_vpa *elder = NULL;
    struct td_selector_relation found = {.is_disjoint = true};
    for (size_t i = 0; i < existing_count; i++) {
        if (!td_vpa_is_sibling(vpa, existing[i]) || td_vpa_compare_age(existing[i], vpa) >= 0 ||
            (elder && td_vpa_compare_age(existing[i], elder) >= 0)) {
            continue;
        }
        struct td_selector_relation relation =
            td_selector_disjoint(arena, selector_of(vpa), selector_of(existing[i]));
        if (!relation.is_disjoint) {
            elder = existing[i];
            found = relation;
        }
    }
    if (!elder) {
        return false;
    }
    if (!vpa->has_selector && !elder->has_selector) {
        td_str reason = TD_STR("neither VPA has a selector");
        *ret = (struct td_sibling_conflict){
            .sibling = elder,
            .relation = found,
            .reason = reason,
            .message = td_arena_format(
                arena, "the older VPA %.*s/%.*s has the same target and manages all its pods: %.*s",
                TD_STR_ARG(elder->meta.namespace), TD_STR_ARG(elder->meta.name),
                TD_STR_ARG(reason)),
        };
        return true;
    }
    td_str witness = witness_text(arena, &found.witness);
    *ret = (struct td_sibling_conflict){
        .sibling = elder,
        .relation = found,
        .reason = td_arena_format(arena, "both match a pod with labels %.*s", TD_STR_ARG(witness)),
        .message = td_arena_format(arena,
                                   "selector overlaps with the older VPA %.*s/%.*s, which manages "
                                   "pods that both match, such as one with labels %.*s",
                                   TD_STR_ARG(elder->meta.namespace), TD_STR_ARG(elder->meta.name),
                                   TD_STR_ARG(witness)),
    };
    return true;
}
