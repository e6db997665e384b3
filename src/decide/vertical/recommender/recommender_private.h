/* The insides of the recommender, shared by its files only. */
#pragma once

#include "base/intern.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "decide/vertical/recommender/recommender.h"
#include "decide/vertical/recommender/scaleout.h"

/* A list of pointers, most of them to one thing only: no more room than it needs. */
struct td_links {
    void **items; /* the list is owned, what it points at is not */
    uint32_t count;
    uint32_t cap;
};

/* One container name's knowledge. */
struct td_slot {
    td_str container; /* interned */
    struct td_aggregate aggregate;
    void *estimator_state;           /* owned; NULL when the estimator has none */
    struct td_estimator_terms terms; /* of the pod seen last; where the estimator asks for them */
};

struct td_slots {
    struct td_slot **items; /* by container name; owned */
    uint32_t count;
    uint32_t cap;
};

/* A container name that pods have, under a number: pods keep four bytes of it. */
struct td_container_name {
    td_str text;        /* interned; a NULL ptr in a free place */
    uint32_t users;     /* containers of that name */
    uint32_t next_free; /* 1 + the next free place, 0 at the end */
};

struct td_container_names {
    struct {
        TD_VEC_FIELDS(struct td_container_name);
    } places;
    struct td_map numbers; /* text to 1 + number */
    uint32_t first_free;   /* 1 + a free place, or 0 */
};

struct td_tracked_container {
    struct td_container_state state;
    uint32_t name;                   /* a number of td_container_names */
    uint32_t cpu_limit_milli : 30;   /* 0 without one */
    uint32_t is_held : 1;            /* the peak of its memory window is not in the histogram yet */
    uint32_t cpu_request_milli : 30; /* in force, 0 without one; where the estimator asks for it */
    uint32_t lack : 2;               /* enum td_resize_lack, likewise */
};

/* A pod is one block: this, its containers, and its name after them. It moves when it gets a
 * container. */
struct td_tracked_pod {
    struct td_group *group;
    uint32_t place; /* in group->pods */
    uint32_t hash;  /* of "namespace/name" */
    uint32_t name_len : 10;
    uint32_t container_count : 13;
    uint32_t phase : 3;      /* enum td_pod_phase */
    uint32_t started_second; /* Unix time; 0: not known */
    struct td_tracked_container containers[];
};

/* Pods by namespace and name: an open-addressed table (linear probing) of pointers and nothing
 * else, since a pod knows its key and its hash. */
struct td_pod_table {
    struct td_tracked_pod **items; /* NULL where free; owned */
    size_t slot_count;             /* power of two, or 0 */
    size_t count;
};

struct td_model_vpa;

/* The pods of a namespace that have the same labels and target: they have the same VPAs. One block
 * of the heap. */
struct td_group {
    td_str key; /* target, newline, labels */
    struct td_namespace *namespace;
    struct td_labels labels;       /* label_items, whose texts are parts of key */
    td_str target;                 /* part of key */
    struct td_links pods;          /* struct td_tracked_pod, in no order */
    struct td_links vpas;          /* that select it; without is_upstream_exact at most one */
    struct td_slots slots;         /* with is_upstream_exact only */
    struct td_label label_items[]; /* and the text of the key after them */
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
    td_str key;  /* "namespace/name", at the end of this block */
    td_str name; /* part of key */
    struct td_namespace *namespace;
    struct td_selector *target_selector; /* owned, one block each */
    struct td_selector *pod_selector;    /* NULL: none */
    td_str target;                       /* interned */
    td_str target_kind;                  /* of targetRef; owned, as target_name */
    td_str target_name;
    struct td_instant created;
    const struct td_estimator *estimator;
    enum td_resize_lack lack;     /* of its mode */
    struct td_named_terms *terms; /* one per container policy, in its order; owned */
    uint32_t terms_count;
    uint32_t pod_count;
    struct td_scale_out scale_out;
    struct td_slots slots;  /* its knowledge; with is_upstream_exact that of checkpoints */
    struct td_links groups; /* that it selects */
    char text[];
};

struct td_recommender {
    struct td_vertical_config config;
    struct td_intern *texts;
    struct td_container_names names;
    struct td_pod_table pods;
    struct td_map vpas;       /* by "namespace/name" */
    struct td_map namespaces; /* by name */
    size_t slot_count;
    td_time last_gc; /* TD_CONTAINER_TIME_NONE before the first */
};

void td_links_add(struct td_links *links, void *item);
void td_links_done(struct td_links *links);

/* The VPA that learns from a group, or NULL; with is_upstream_exact all of them do. */
static inline struct td_model_vpa *td_group_owner(const struct td_group *group)
{
    return group->vpas.count > 0 ? group->vpas.items[0] : NULL;
}

/* Slots. find gives NULL; ensure makes one with the VPA's terms applied. */
struct td_slot *td_slots_find(const struct td_slots *slots, td_str container);
struct td_slot *td_slots_ensure(struct td_recommender *recommender, struct td_slots *slots,
                                td_str container, td_time now);
void td_slots_done(struct td_recommender *recommender, struct td_slots *slots);
void td_slots_remove(struct td_recommender *recommender, struct td_slots *slots, uint32_t index);

/* What the estimator of the VPA asks of the slot's container beside samples, if anything; looks at
 * all pods. */
void td_vpa_tell_terms(const struct td_recommender *recommender, const struct td_model_vpa *vpa,
                       struct td_slot *slot);

/* Where a container of this group learns, made when it is missing; NULL when nowhere. */
struct td_slot *td_group_slot(struct td_recommender *recommender, struct td_group *group,
                              td_str container, td_time now);
struct td_group *td_group_ensure(struct td_recommender *recommender,
                                 const struct td_observed_pod *observed);
void td_group_free_if_unused(struct td_recommender *recommender, struct td_group *group);
void td_group_free(struct td_recommender *recommender, struct td_group *group);

struct td_namespace *td_namespace_ensure(struct td_recommender *recommender, td_str name);

/* Links between groups and VPAs. */
void td_link_group(struct td_recommender *recommender, struct td_group *group);
void td_unlink_group(struct td_group *group);
void td_vpa_apply_policy(const struct td_recommender *recommender, const struct td_model_vpa *vpa,
                         struct td_slot *slot);

/* The policy, and the estimator's own state where it needs one. */
void td_vpa_apply_terms(struct td_recommender *recommender, const struct td_model_vpa *vpa,
                        struct td_slot *slot);
struct td_model_vpa *td_recommender_find_vpa(const struct td_recommender *recommender,
                                             td_str namespace, td_str name);

/* A pod that left its VPA starts its windows anew where it arrives. */
void td_pod_restart_windows(struct td_tracked_pod *pod);
/* When it started, or TD_TIME_NONE. */
td_time td_pod_started(const struct td_tracked_pod *pod);
static inline td_str td_pod_container_name(const struct td_recommender *recommender,
                                           const struct td_tracked_pod *pod, size_t container)
{
    return recommender->names.places.items[pod->containers[container].name].text;
}

/* NULL when the pod has none of that name. */
struct td_tracked_container *td_pod_container(const struct td_recommender *recommender,
                                              struct td_tracked_pod *pod, td_str container);

/* All pods and their names; groups stay. */
void td_pods_free(struct td_recommender *recommender);
