/*
 * Counts and conditions of a Deployment (Available, Progressing, ReplicaFailure), and when its
 * progress deadline passes.
 */

#include "kube/apply/last_applied.h"
#include "local/workloads/workload_deployment.h"

#define DEPLOYMENT_HISTORY_BYTES_MAX ((size_t)2000) /* of revisions that one set had before */
#define DEPLOYMENT_DEADLINE_NONE INT32_MAX          /* as upstream */

bool td_deployment_has_deadline(const struct td_workload_item *item)
{
    return td_json_get_int64(item->spec, TD_STR("progressDeadlineSeconds"),
                             DEPLOYMENT_DEADLINE_NONE) != DEPLOYMENT_DEADLINE_NONE;
}

/* ---- Conditions ---- */

static void status_keep_transition(struct td_workload_item *item, const struct td_json *old,
                                   struct td_json *c)
{
    const struct td_json *time = td_json_get(old, TD_STR("lastTransitionTime"));
    if (time && td_str_equal(td_json_text(old, "status"), td_json_text(c, "status"))) {
        td_json_set_copy(item->arena, c, TD_STR("lastTransitionTime"), time);
    }
}

void td_deployment_set_condition(struct td_workload_item *item, struct td_json *status,
                                 const struct td_condition *condition)
{
    const struct td_json *old = td_condition_find(status, condition->type);
    if (old && td_str_equal(td_json_text(old, "status"), condition->status) &&
        td_str_equal(td_json_text(old, "reason"), condition->reason)) {
        return;
    }
    struct td_json *c = td_workload_condition(item, condition, "lastUpdateTime");
    if (old) {
        status_keep_transition(item, old, c);
    }
    td_workload_condition_put(item->arena, status, c);
}

void td_deployment_check_paused(struct td_workload_item *item)
{
    struct td_json *status = td_json_ensure_object(item->arena, item->object, TD_STR("status"));
    const struct td_json *old = td_condition_find(status, TD_STR("Progressing"));
    td_str reason = td_json_text(old, "reason");
    bool is_paused = td_json_get_bool(item->spec, TD_STR("paused"), false);
    bool says_paused = td_str_equal(reason, TD_STR("DeploymentPaused"));
    if (!td_deployment_has_deadline(item) || is_paused == says_paused ||
        td_str_equal(reason, TD_STR("ProgressDeadlineExceeded"))) {
        return;
    }
    const struct td_condition condition = {
        .type = TD_STR("Progressing"),
        .status = TD_STR("Unknown"),
        .reason = is_paused ? TD_STR("DeploymentPaused") : TD_STR("DeploymentResumed"),
        .message = is_paused ? TD_STR("Deployment is paused") : TD_STR("Deployment is resumed"),
    };
    td_deployment_set_condition(item, status, &condition);
    (void)td_workload_put(item); /* a conflict is looked at again */
}

/* ---- Revisions ---- */

static td_str status_annotation(const struct td_json *object, const char *key)
{
    return td_json_get_str(td_json_get_path(object, "metadata.annotations"), td_str_from(key),
                           TD_STR_EMPTY);
}

static int64_t status_revision(const struct td_json *object)
{
    int64_t revision = 0;
    (void)td_str_to_int64(status_annotation(object, TD_ANNOTATION_REVISION),
                          &revision); /* none or no number: 0 */
    return revision;
}

td_str td_deployment_next_revision(const struct td_deployment *deployment)
{
    int64_t highest = 0;
    for (size_t i = 0; i < deployment->count; i++) {
        int64_t revision = status_revision(deployment->sets[i].object);
        bool is_old = !(deployment->has_new && i == deployment->new_index);
        highest = is_old && revision > highest ? revision : highest;
    }
    return td_arena_format(deployment->item->arena, "%lld", (long long)highest + 1);
}

/* The set comes back into use: the revision it had is remembered, the oldest ones are dropped when
 * there are too many. */
static td_str status_history(struct td_arena *arena, td_str history, td_str revision)
{
    if (history.len == 0) {
        return revision;
    }
    while (history.len > 0 && history.len + revision.len + 1 > DEPLOYMENT_HISTORY_BYTES_MAX) {
        history = td_str_slice(history, td_str_find(history, ',', 0) + 1, history.len);
    }
    return history.len == 0
               ? revision
               : td_arena_format(arena, "%.*s,%.*s", TD_STR_ARG(history), TD_STR_ARG(revision));
}

static bool status_is_own_annotation(td_str key)
{
    static const td_str own[] = {
        TD_STR_INIT(TD_LAST_APPLIED_ANNOTATION), TD_STR_INIT(TD_ANNOTATION_REVISION),
        TD_STR_INIT(TD_ANNOTATION_HISTORY),      TD_STR_INIT(TD_ANNOTATION_DESIRED),
        TD_STR_INIT(TD_ANNOTATION_MAX),          TD_STR_INIT("deprecated.deployment.rollback.to"),
    };
    return td_str_is_among(key, own, TD_COUNT(own));
}

static bool status_copy_annotations(struct td_workload_item *item, struct td_json *annotations)
{
    const struct td_json *from = td_json_get(item->metadata, TD_STR("annotations"));
    const struct td_json *a = td_json_first_member(from);
    bool is_changed = false;
    for (; a; a = a->next) {
        const struct td_json *there = td_json_get(annotations, a->key);
        if (a->type == TD_JSON_TYPE_STRING && !status_is_own_annotation(a->key) &&
            !(there && td_json_equal(there, a))) {
            td_json_set_str(item->arena, annotations, a->key, a->text);
            is_changed = true;
        }
    }
    return is_changed;
}

bool td_deployment_annotate_new(struct td_deployment *deployment, struct td_json *set,
                                td_str revision, bool does_exist)
{
    struct td_workload_item *item = deployment->item;
    struct td_arena *arena = item->arena;
    struct td_json *metadata = td_json_ensure_object(arena, set, TD_STR("metadata"));
    struct td_json *annotations = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
    bool is_changed = status_copy_annotations(item, annotations);
    td_str before = status_annotation(set, TD_ANNOTATION_REVISION);
    int64_t next = 0;
    (void)td_str_to_int64(revision, &next); /* we wrote it */
    if (status_revision(set) < next) {
        td_json_set_str(arena, annotations, TD_STR(TD_ANNOTATION_REVISION), revision);
        if (before.len > 0) {
            td_str history = status_annotation(set, TD_ANNOTATION_HISTORY);
            td_json_set_str(arena, annotations, TD_STR(TD_ANNOTATION_HISTORY),
                            status_history(arena, history, before));
        }
        is_changed = true;
    }
    if (!does_exist) {
        const struct td_rollout *rollout = &deployment->rollout;
        td_json_set_str(arena, annotations, TD_STR(TD_ANNOTATION_DESIRED),
                        td_arena_format(arena, "%lld", (long long)rollout->replicas));
        td_json_set_str(
            arena, annotations, TD_STR(TD_ANNOTATION_MAX),
            td_arena_format(arena, "%lld", (long long)(rollout->replicas + rollout->surge_max)));
        is_changed = true;
    }
    return is_changed;
}

static bool status_set_revision(struct td_workload_item *item, td_str revision)
{
    if (td_str_equal(status_annotation(item->object, TD_ANNOTATION_REVISION), revision)) {
        return false;
    }
    struct td_json *annotations =
        td_json_ensure_object(item->arena, item->metadata, TD_STR("annotations"));
    td_json_set_str(item->arena, annotations, TD_STR(TD_ANNOTATION_REVISION), revision);
    return true;
}

void td_deployment_note_new(struct td_deployment *deployment, td_str revision, td_str name)
{
    struct td_workload_item *item = deployment->item;
    bool is_changed = status_set_revision(item, revision);
    if (td_deployment_has_deadline(item)) {
        const struct td_condition condition = {
            .type = TD_STR("Progressing"),
            .status = TD_STR("True"),
            .reason = TD_STR("NewReplicaSetCreated"),
            .message =
                td_arena_format(item->arena, "Created new replica set \"%.*s\"", TD_STR_ARG(name)),
        };
        struct td_json *status = td_json_ensure_object(item->arena, item->object, TD_STR("status"));
        td_deployment_set_condition(item, status, &condition);
        is_changed = true;
    }
    if (is_changed) {
        (void)td_workload_put(item); /* a conflict is looked at again */
    }
}

void td_deployment_note_found(struct td_deployment *deployment)
{
    struct td_workload_item *item = deployment->item;
    const struct td_deployment_set *set = &deployment->sets[deployment->new_index];
    bool is_changed =
        status_set_revision(item, status_annotation(set->object, TD_ANNOTATION_REVISION));
    struct td_json *status = td_json_ensure_object(item->arena, item->object, TD_STR("status"));
    if (td_deployment_has_deadline(item) && !td_condition_find(status, TD_STR("Progressing"))) {
        const struct td_condition condition = {
            .type = TD_STR("Progressing"),
            .status = TD_STR("True"),
            .reason = TD_STR("FoundNewReplicaSet"),
            .message = td_arena_format(item->arena, "Found new replica set \"%.*s\"",
                                       TD_STR_ARG(set->name)),
        };
        td_deployment_set_condition(item, status, &condition);
        is_changed = true;
    }
    if (is_changed) {
        (void)td_workload_put(item); /* a conflict is looked at again */
    }
}

/* ---- Status ---- */

struct status_counts {
    int64_t replicas;
    int64_t updated;
    int64_t ready;
    int64_t available;
    int64_t observed;
};

static struct status_counts status_read(const struct td_json *status)
{
    return (struct status_counts){
        .replicas = td_json_get_int64(status, TD_STR("replicas"), 0),
        .updated = td_json_get_int64(status, TD_STR("updatedReplicas"), 0),
        .ready = td_json_get_int64(status, TD_STR("readyReplicas"), 0),
        .available = td_json_get_int64(status, TD_STR("availableReplicas"), 0),
        .observed = td_json_get_int64(status, TD_STR("observedGeneration"), 0),
    };
}

static bool status_is_complete(const struct td_workload_item *item,
                               const struct status_counts *counts)
{
    int64_t want = td_json_get_int64(item->spec, TD_STR("replicas"), 1);
    return counts->updated == want && counts->replicas == want && counts->available == want &&
           counts->observed >= item->generation;
}

bool td_deployment_is_complete(const struct td_workload_item *item)
{
    struct status_counts counts = status_read(td_json_get(item->object, TD_STR("status")));
    return status_is_complete(item, &counts);
}

static struct status_counts status_count(struct td_deployment *deployment, struct td_json *status)
{
    struct td_arena *arena = deployment->item->arena;
    struct status_counts counts = {.observed = deployment->item->generation};
    int64_t asked = 0;
    int64_t terminating = 0;
    bool is_terminating_known = true;
    for (size_t i = 0; i < deployment->count; i++) {
        const struct td_rollout_set *plan = &deployment->plans[i];
        const struct td_json *set = td_json_get(deployment->sets[i].object, TD_STR("status"));
        asked += plan->replicas;
        counts.replicas += plan->actual;
        counts.updated += plan->is_new ? plan->actual : 0;
        counts.ready += plan->ready;
        counts.available += plan->available;
        bool has = td_json_get(set, TD_STR("terminatingReplicas")) != NULL;
        bool is_seen = td_json_get_int64(set, TD_STR("observedGeneration"), 0) > 0;
        is_terminating_known = is_terminating_known && (has || !is_seen);
        terminating += td_json_get_int64(set, TD_STR("terminatingReplicas"), 0);
    }
    int64_t missing = asked > counts.available ? asked - counts.available : 0;
    td_workload_set_count(arena, status, TD_STR("observedGeneration"), counts.observed);
    td_workload_set_count(arena, status, TD_STR("replicas"), counts.replicas);
    td_workload_set_count(arena, status, TD_STR("updatedReplicas"), counts.updated);
    td_workload_set_count(arena, status, TD_STR("readyReplicas"), counts.ready);
    td_workload_set_count(arena, status, TD_STR("availableReplicas"), counts.available);
    td_workload_set_count(arena, status, TD_STR("unavailableReplicas"), missing);
    if (is_terminating_known) {
        td_json_set_int64(arena, status, TD_STR("terminatingReplicas"), terminating);
    } else {
        (void)td_json_remove(status, TD_STR("terminatingReplicas")); /* it may not be there */
    }
    return counts;
}

/* Has the last sign of progress been too long ago? */
static bool status_is_late(const struct td_workload_item *item, const struct td_json *progressing)
{
    td_str reason = td_json_text(progressing, "reason");
    if (!progressing || td_str_equal(reason, TD_STR("NewReplicaSetAvailable"))) {
        return false;
    }
    if (td_str_equal(reason, TD_STR("ProgressDeadlineExceeded"))) {
        return true;
    }
    int64_t deadline = td_json_get_int64(item->spec, TD_STR("progressDeadlineSeconds"), 0);
    td_time last = td_time_member(progressing, TD_STR("lastUpdateTime"));
    return last != TD_TIME_NONE && last + deadline * TD_SECOND < item->now;
}

/* "ReplicaSet "web-xyz" has successfully progressed." */
static td_str status_sentence(const struct td_deployment *deployment, const char *what)
{
    const struct td_workload_item *item = deployment->item;
    td_str name = deployment->has_new ? deployment->sets[deployment->new_index].name : item->name;
    return td_arena_format(item->arena, "%s \"%.*s\" %s",
                           deployment->has_new ? "ReplicaSet" : "Deployment", TD_STR_ARG(name),
                           what);
}

static void status_judge_progress(struct td_deployment *deployment, struct td_json *status,
                                  const struct status_counts *now)
{
    struct td_workload_item *item = deployment->item;
    const struct td_json *before = td_json_get(item->object, TD_STR("status"));
    struct status_counts old = status_read(before);
    const struct td_json *last = td_condition_find(before, TD_STR("Progressing"));
    struct td_condition next = {.type = TD_STR("Progressing"), .status = TD_STR("True")};
    bool is_settled = now->replicas == now->updated &&
                      td_str_equal(td_json_text(last, "reason"), TD_STR("NewReplicaSetAvailable"));
    bool is_moving = now->updated > old.updated ||
                     now->replicas - now->updated < old.replicas - old.updated ||
                     now->ready > old.ready || now->available > old.available;
    if (is_settled) {
        return;
    }
    if (status_is_complete(item, now)) {
        next.reason = TD_STR("NewReplicaSetAvailable");
        next.message = status_sentence(deployment, "has successfully progressed.");
        td_deployment_set_condition(item, status, &next);
    } else if (is_moving) {
        next.reason = TD_STR("ReplicaSetUpdated");
        next.message = status_sentence(deployment, "is progressing.");
        struct td_json *c = td_workload_condition(item, &next, "lastUpdateTime");
        if (last) {
            status_keep_transition(item, last, c);
        }
        td_workload_condition_put(item->arena, status, c);
    } else if (status_is_late(item, td_condition_find(status, TD_STR("Progressing")))) {
        next.status = TD_STR("False");
        next.reason = TD_STR("ProgressDeadlineExceeded");
        next.message = status_sentence(deployment, "has timed out progressing.");
        td_deployment_set_condition(item, status, &next);
    }
}

/* A set that cannot make its pods is the Deployment's problem; the new set's comes first. */
static void status_judge_failure(struct td_deployment *deployment, struct td_json *status)
{
    struct td_workload_item *item = deployment->item;
    const struct td_json *found = NULL;
    for (size_t i = 0; i < deployment->count; i++) {
        const struct td_json *c = td_condition_find(
            td_json_get(deployment->sets[i].object, TD_STR("status")), TD_STR("ReplicaFailure"));
        found = c && (!found || deployment->plans[i].is_new) ? c : found;
    }
    if (!found) {
        td_workload_condition_remove(status, TD_STR("ReplicaFailure"));
        return;
    }
    const struct td_condition condition = {
        .type = TD_STR("ReplicaFailure"),
        .status = td_json_text(found, "status"),
        .reason = td_json_text(found, "reason"),
        .message = td_json_text(found, "message"),
    };
    td_deployment_set_condition(item, status, &condition);
}

/* Without news, looks again when the deadline has passed. */
static void status_watch_deadline(struct td_workload_item *item, const struct status_counts *counts)
{
    const struct td_json *last =
        td_condition_find(td_json_get(item->object, TD_STR("status")), TD_STR("Progressing"));
    td_time since = td_time_member(last, TD_STR("lastUpdateTime"));
    if (!td_deployment_has_deadline(item) || since == TD_TIME_NONE ||
        status_is_complete(item, counts) ||
        td_str_equal(td_json_text(last, "reason"), TD_STR("ProgressDeadlineExceeded"))) {
        return;
    }
    int64_t deadline = td_json_get_int64(item->spec, TD_STR("progressDeadlineSeconds"), 0);
    td_duration after = since + deadline * TD_SECOND - item->now;
    td_workload_enqueue_after(item->control, item->ns, item->name,
                              (after > 0 ? after : 0) + TD_SECOND);
}

void td_deployment_update_status(struct td_deployment *deployment, bool is_rollout)
{
    struct td_workload_item *item = deployment->item;
    struct td_json *status = td_workload_status(item);
    struct status_counts counts = status_count(deployment, status);
    const struct td_rollout *rollout = &deployment->rollout;
    bool is_available = counts.available >= rollout->replicas - rollout->unavailable_max;
    const struct td_condition available = {
        .type = TD_STR("Available"),
        .status = is_available ? TD_STR("True") : TD_STR("False"),
        .reason = is_available ? TD_STR("MinimumReplicasAvailable")
                               : TD_STR("MinimumReplicasUnavailable"),
        .message = is_available ? TD_STR("Deployment has minimum availability.")
                                : TD_STR("Deployment does not have minimum availability."),
    };
    td_deployment_set_condition(item, status, &available);
    if (is_rollout) {
        if (td_deployment_has_deadline(item)) {
            status_judge_progress(deployment, status, &counts);
        } else {
            td_workload_condition_remove(status, TD_STR("Progressing"));
        }
        status_judge_failure(deployment, status);
        if (td_json_equal(td_json_get(item->object, TD_STR("status")), status)) {
            status_watch_deadline(item, &counts);
        }
    }
    (void)td_workload_put_status(item, status); /* a conflict is looked at again */
}
