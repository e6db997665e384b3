/*
 * What the vertical recommender knows of a cluster, driven by events: pods come and go, VPAs are
 * set and deleted, samples and OOMs arrive, and a pass asks for a status or for checkpoints. No
 * clock, no I/O: every call that needs the time is given it.
 *
 * There is one aggregate per VPA object and container name, so memory follows what is managed and
 * not how often it is rolled out; a sample belongs to the VPA that the pod had when it was
 * measured, and stays there. Pods that match no VPA are tracked (a VPA may come), but nothing is
 * learnt from them. Memory peaks of young pods lower nothing, and neither does anything else in the
 * hours after a scale-out (scaleout.h). With is_upstream_exact there is one aggregate per label set
 * instead, linked to every VPA that selects it, as upstream has it.
 *
 * The recommender owns everything it holds; strings given to it are copied. One owner, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/vpa/checkpoint.h"
#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/os/clock.h"
#include "decide/vertical/estimator/estimator.h"
#include "decide/vertical/recommender/config.h"
#include "kube/selector/labels.h"
#include "kube/selector/selector.h"
#include "model/pod.h"

struct td_error;
struct td_recommender;
struct td_tracked_pod; /* valid until its pod is deleted or gets a container */

struct td_recommender *td_recommender_new(const struct td_vertical_config *config);
void td_recommender_free(struct td_recommender *recommender);

/* As the target of a pod that is gone and whose owner is not known: its labels alone
 * decide. */
#define TD_TARGET_UNKNOWN TD_STR("*")

/* A pod as the recommender needs it. */
struct td_observed_pod {
    td_str namespace;
    td_str name;
    struct td_labels labels;
    td_str
        target; /* its topmost controller, a td_target_key; empty: its owners were not followed */
    enum td_pod_phase phase;
    td_time started; /* status.startTime; 0 or before: not known, and one that is known stays */
};

/* The text that stands for a target in links and pods. */
td_str td_target_key(struct td_arena *arena, td_str group, td_str kind, td_str name);

/* Add a pod or note what changed; TD_LIMIT at TD_RECOMMENDER_PODS_MAX. */
int td_recommender_set_pod(struct td_recommender *recommender,
                           const struct td_observed_pod *observed, td_time now,
                           struct td_tracked_pod **ret, struct td_error *err);
void td_recommender_delete_pod(struct td_recommender *recommender, td_str namespace, td_str name);
struct td_tracked_pod *td_recommender_find_pod(const struct td_recommender *recommender,
                                               td_str namespace, td_str name);

/* A container of spec.containers; the limit is for estimators that look at throttling. A new one
 * moves the pod: *pod is then where it is now. */
int td_recommender_set_container(struct td_recommender *recommender, struct td_tracked_pod **pod,
                                 td_str container, int64_t cpu_limit_milli, td_time now,
                                 struct td_error *err);

/* What estimators ask of a container beside its samples; of no concern where the VPA's asks for
 * none (td_recommender_wants_terms). */
struct td_container_terms {
    int64_t cpu_request_milli;    /* in force; 0: none */
    int64_t memory_request_bytes; /* of the pod template; 0: not set */
    int64_t memory_limit_bytes;   /* likewise */
    enum td_resize_lack lack;     /* of this pod and its node */
};
bool td_recommender_wants_terms(const struct td_tracked_pod *pod);
void td_recommender_set_terms(struct td_recommender *recommender, struct td_tracked_pod *pod,
                              td_str container, const struct td_container_terms *terms,
                              td_time now);

enum td_feed {
    TD_FEED_TAKEN,
    TD_FEED_DISCARDED,    /* negative, or not newer than the last one */
    TD_FEED_NO_CONTAINER, /* the pod has no such container */
    TD_FEED_UNMANAGED,    /* no VPA selects the pod */
    TD_FEED_OOM_CAPPED,   /* taken; maxAllowed stopped the bump */
    TD_FEED_OOM_TOO_OLD,
};

/* One measurement, whose time may be in the future: then it counts as of now, and once. A resource
 * that the metrics do not have is no call. */
enum td_feed td_recommender_sample(struct td_recommender *recommender, struct td_tracked_pod *pod,
                                   td_str container, enum td_learn_resource resource, td_time time,
                                   int64_t amount, td_time now);
enum td_feed td_recommender_oom(struct td_recommender *recommender, struct td_tracked_pod *pod,
                                td_str container, td_time time, const struct td_oom_kill *kill,
                                td_time now);

/* Set a VPA. Its pods are those of its namespace that both selectors match (pod_selector may be
 * NULL) and whose target is `target` (empty: any). History is kept whatever is edited. An unknown
 * estimator annotation leaves the default one. */
struct td_vpa_link {
    const struct td_vpa *vpa;
    const struct td_selector *target_selector;
    const struct td_selector *pod_selector;
    td_str target;
    const struct td_estimator *estimator; /* NULL: upstream's */
    enum td_resize_lack lack;             /* why its mode resizes no pod in place */
};
int td_recommender_set_vpa(struct td_recommender *recommender, const struct td_vpa_link *link,
                           td_time now, struct td_error *err);

/* False when there was none. Its knowledge goes with it. */
bool td_recommender_delete_vpa(struct td_recommender *recommender, td_str namespace, td_str name);

/* What a restarted recommender reads: the checkpoint, and annotations of its object (may be NULL).
 * TD_NOT_FOUND when there is no such VPA. An annotation that does not read is left out. */
int td_recommender_load(struct td_recommender *recommender, td_str namespace,
                        const struct td_checkpoint *checkpoint, const struct td_json *annotations,
                        td_time now, struct td_error *err);

/* The status that a VPA should have now, from its object as it lies in the API. */
struct td_vpa_status {
    struct td_recommendation recommendation;
    struct td_vpa_condition *conditions; /* sorted by type */
    size_t condition_count;
    int64_t observed_generation;
    size_t pod_count;
    bool is_changed; /* differs in meaning from the object's; otherwise nothing is written */
    struct td_account *accounts; /* one per container of the recommendation */
};
int td_recommender_status(struct td_recommender *recommender, struct td_arena *arena,
                          const struct td_vpa *object, const struct td_resource_list *global_max,
                          td_time now, struct td_vpa_status *ret, struct td_error *err);
struct td_json *td_vpa_status_json(struct td_arena *arena, const struct td_vpa_status *status);

/* What a controller adds to a status: a condition of its own (or, when it is not set, none of that
 * type). After the last change td_vpa_status_compare tells anew whether it differs from the
 * object's. Texts are borrowed. */
void td_vpa_status_condition(struct td_vpa_status *status, td_str type, bool is_set, td_str reason,
                             td_str message, td_time now);
void td_vpa_status_compare(struct td_vpa_status *status, const struct td_vpa *object);

/* The checkpoints to write for a VPA, by container name. The running memory windows are left out,
 * as upstream has it; OOMs in them are in the annotation. */
struct td_stored_checkpoint {
    struct td_checkpoint checkpoint;
    struct td_json *annotations; /* object, under tandem.dev/; may be empty */
};
int td_recommender_store(struct td_recommender *recommender, struct td_arena *arena,
                         td_str namespace, td_str name, td_time now,
                         struct td_stored_checkpoint **ret, size_t *ret_count,
                         struct td_error *err);

/* At most once an hour: forget what no longer contributes. target_exists (may be NULL: none does)
 * tells whether a VPA's target still resolves. */
struct td_target_lookup {
    bool (*target_exists)(void *context, td_str namespace, td_str kind, td_str name);
    void *context;
};
void td_recommender_gc(struct td_recommender *recommender, td_time now,
                       const struct td_target_lookup *lookup);

/* Which VPA a pod's samples go to ("namespace/name" in the arena), or the empty slice. */
td_str td_recommender_vpa_of(const struct td_recommender *recommender, struct td_arena *arena,
                             const struct td_tracked_pod *pod);

/* When a VPA's newest CPU sample was measured (TD_TIME_NONE: never), and whether some pod of it
 * runs and could be. */
struct td_vpa_measured {
    td_time newest;
    bool is_running;
};
struct td_vpa_measured td_recommender_measured(const struct td_recommender *recommender,
                                               td_str namespace, td_str name);

/* Aggregates in all, and those without what only checkpoints brought (upstream's count). */
size_t td_recommender_aggregates(const struct td_recommender *recommender);
size_t td_recommender_live_aggregates(const struct td_recommender *recommender);
