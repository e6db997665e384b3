/*
 * VPAs that share a target (proposal: selector beside targetRef). Two of them may live side by side
 * only if their selectors are proven disjoint, so that no pod ever has two masters. The test is
 * exact, and where two selectors overlap it shows one label set that both select. The webhook asks
 * for a judgement before an object is stored; the controllers, which a webhook cannot protect from
 * races, ask which elder sibling a VPA must yield to. Pure; results are in the arena, texts are
 * shared with the selectors.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/str.h"
#include "kube/selector/labels.h"
#include "kube/selector/selector.h"

/* Tested in this order; all but DISJOINT are refused. */
enum td_selector_case {
    TD_SELECTOR_CONTRADICTORY, /* the first selector can never match */
    TD_SELECTOR_CATCH_ALL,     /* case 1: one of them selects every pod of the target */
    TD_SELECTOR_NO_COMMON_KEY, /* case 2: no key is constrained by both */
    TD_SELECTOR_DISJOINT,      /* case 3: some key cannot satisfy both */
    TD_SELECTOR_SATISFIABLE,   /* common keys, and all can be satisfied */
};

struct td_key_list {
    const td_str *items; /* sorted, unique */
    size_t count;
};

struct td_selector_relation {
    enum td_selector_case verdict;
    bool is_disjoint;      /* no label set satisfies both, whatever the verdict */
    bool is_contradictory; /* the first one alone */
    bool is_other_contradictory;
    struct td_key_list keys;     /* CONTRADICTORY, DISJOINT: contradictory; SATISFIABLE: common */
    struct td_key_list own_keys; /* all that the first constrains */
    struct td_key_list other_keys;
    struct td_labels witness; /* unless is_disjoint: both select it */
};

/* Compare `own`, of the VPA being judged, with `other`; both made from LabelSelectors. NULL, or one
 * without requirements, is a catch-all. */
struct td_selector_relation td_selector_disjoint(struct td_arena *arena,
                                                 const struct td_selector *own,
                                                 const struct td_selector *other);

/* Same namespace, API group, kind and name of target, and not the same object. */
bool td_vpa_is_sibling(const struct td_vpa *a, const struct td_vpa *b);

/* Have both the same target and the same selector? Missing, null and {} are one and the same. */
bool td_vpa_is_same_selection(const struct td_vpa *a, const struct td_vpa *b);

/* creationTimestamp, then name; -1, 0 or 1. */
int td_vpa_compare_age(const struct td_vpa *a, const struct td_vpa *b);

struct td_sibling_conflict {
    const struct td_vpa *sibling;
    struct td_selector_relation relation;
    td_str reason;  /* why, with witness and way out, the sibling not named */
    td_str message; /* "selector overlaps with NS/NAME: " and the reason */
};

/* Would `vpa` get into conflict with `sibling`? *ret is set when so. */
bool td_vpa_find_conflict(struct td_arena *arena, const struct td_vpa *vpa,
                          const struct td_vpa *sibling, struct td_sibling_conflict *ret);

struct td_sibling_request {
    const struct td_vpa *vpa; /* as submitted */
    bool is_update;
    const struct td_vpa *const
        *existing; /* any VPAs, the stored version of the object among them */
    size_t existing_count;
    bool gate; /* HeterogeneousWorkloads */
};

struct td_sibling_judgement {
    bool is_allowed;
    bool is_unchanged;     /* an update of neither selector nor target: not checked */
    bool is_contradictory; /* of the submitted selector; siblings were not compared then */
    struct td_key_list contradictory_keys;
    const struct td_vpa *const *siblings; /* sorted by name */
    size_t sibling_count;
    const struct td_sibling_conflict *conflicts; /* in the order of siblings */
    size_t conflict_count;
    td_str message; /* of the refusal, all conflicts named; empty when allowed */
};

/* Why a selector with this contradictory key is refused, with or without siblings. */
td_str td_selector_contradiction_text(struct td_arena *arena, td_str key);

struct td_sibling_judgement td_vpa_judge_siblings(struct td_arena *arena,
                                                  const struct td_sibling_request *request);

/* The eldest sibling older than `vpa` whose pods it would share: pods that both match stay with
 * that one. False when there is none. The message names the elder and the witness, as condition
 * ConflictingSelector shows them. */
bool td_vpa_find_elder(struct td_arena *arena, const struct td_vpa *vpa,
                       const struct td_vpa *const *existing, size_t existing_count,
                       struct td_sibling_conflict *ret);

/* What to do about `own` so that it is apart from `other` and still selects something: a
 * requirement to add, or one to put in the place of another. Empty where `other` is catch-all. */
td_str td_selector_way_out(struct td_arena *arena, const struct td_selector *own,
                           const struct td_selector *other);
