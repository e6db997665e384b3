/* The insides of the recommender, shared by its files and by nobody else. */
#pragma once

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "decide/vertical/recommender.h"

/* One container name's knowledge. */
struct td_slot {
    td_str container; /* interned */
    struct td_aggregate aggregate;
    void *estimator_state; /* owned; NULL when the estimator has none */
};

struct td_slots {
    struct td_slot **items; /* by container name; owned */
    uint32_t count;
    uint32_t cap;
};

struct td_tracked_container {
    td_str name; /* interned */
    struct td_container_state state;
    int64_t cpu_limit_milli;
    bool was_measured;
};

struct td_tracked_pod {
    td_str key; /* "namespace/name"; owned */
    struct td_group *group;
    struct td_tracked_pod *next; /* of the group */
    struct td_tracked_pod *previous;
    struct td_tracked_container *containers; /* owned */
    uint16_t container_count;
    uint8_t phase; /* enum td_pod_phase */
};

struct td_model_vpa;

/* The pods of a namespace that have the same labels and target: they have the same VPAs. */
struct td_group {
    td_str key; /* target, newline, labels; owned */
    struct td_namespace *namespace;
    struct td_labels labels; /* texts are parts of key; items owned */
    td_str target;           /* part of key */
    struct td_tracked_pod *pods;
    size_t pod_count;
    struct {
        TD_VEC_FIELDS(struct td_model_vpa *);
    } vpas;                /* that select it; without is_upstream_exact at most one */
    struct td_slots slots; /* with is_upstream_exact only */
};

struct td_namespace {
    td_str name; /* interned */
    struct td_map groups;
    struct {
        TD_VEC_FIELDS(struct td_model_vpa *);
    } vpas; /* oldest first, then by name */
};

struct td_named_terms {
    td_str container; /* interned */
    struct td_learn_terms terms;
};

struct td_model_vpa {
    td_str key;  /* "namespace/name"; owned */
    td_str name; /* part of key */
    struct td_namespace *namespace;
    struct td_selector *target_selector; /* owned, one block each */
    struct td_selector *pod_selector;    /* NULL: none */
    td_str selector_text;                /* canonical, of both; owned */
    td_str target;                       /* interned */
    td_str target_kind;                  /* interned */
    td_str target_name;                  /* interned */
    struct td_instant created;
    const struct td_estimator *estimator;
    struct td_named_terms *terms; /* one per container policy, in its order; owned */
    size_t terms_count;
    struct td_slots slots; /* its knowledge; with is_upstream_exact that of checkpoints */
    struct {
        TD_VEC_FIELDS(struct td_group *);
    } groups; /* that it selects */
    size_t pod_count;
};

struct td_recommender {
    struct td_vertical_config config;
    struct td_intern *texts;
    struct td_map pods;       /* by "namespace/name" */
    struct td_map vpas;       /* by "namespace/name" */
    struct td_map namespaces; /* by name */
    size_t slot_count;
    td_time last_gc; /* TD_CONTAINER_TIME_NONE before the first */
};

/* Slots. find gives NULL; ensure makes one with the VPA's terms applied. */
struct td_slot *td_slots_find(const struct td_slots *slots, td_str container);
struct td_slot *td_slots_ensure(struct td_recommender *recommender, struct td_slots *slots,
                                td_str container, td_time now);
void td_slots_done(struct td_recommender *recommender, struct td_slots *slots);
void td_slots_remove(struct td_recommender *recommender, struct td_slots *slots, uint32_t index);

/* Where a container of this group learns, made when it is missing; NULL when nowhere. */
struct td_slot *td_group_slot(struct td_recommender *recommender, struct td_group *group,
                              td_str container, td_time now);
struct td_group *td_group_ensure(struct td_recommender *recommender,
                                 const struct td_pod_sight *sight);
void td_group_free_if_unused(struct td_recommender *recommender, struct td_group *group);
void td_group_free(struct td_recommender *recommender, struct td_group *group);

struct td_namespace *td_namespace_ensure(struct td_recommender *recommender, td_str name);

/* Links between groups and VPAs. */
void td_link_group(struct td_recommender *recommender, struct td_group *group);
void td_unlink_group(struct td_group *group);
bool td_vpa_selects(const struct td_model_vpa *vpa, const struct td_labels *labels, td_str target);
void td_vpa_apply_policy(const struct td_recommender *recommender, const struct td_model_vpa *vpa,
                         struct td_slot *slot);

/* The policy, and the estimator's own state where it needs one. */
void td_vpa_apply_terms(struct td_recommender *recommender, const struct td_model_vpa *vpa,
                        struct td_slot *slot);
struct td_model_vpa *td_recommender_find_vpa(const struct td_recommender *recommender,
                                             td_str namespace, td_str name);

/* A pod that left its VPA starts its windows anew where it arrives. */
void td_pod_restart_windows(struct td_tracked_pod *pod);

/* What a VPA knows, one item per container name in order: borrowed slots, or with
 * is_upstream_exact merged copies that td_view_done frees. */
struct td_vpa_view {
    struct td_slot **items;
    size_t count;
    bool is_owned;
};
void td_view_init(struct td_recommender *recommender, struct td_arena *arena,
                  struct td_model_vpa *vpa, td_time now, struct td_vpa_view *ret);
void td_view_done(struct td_vpa_view *view);
