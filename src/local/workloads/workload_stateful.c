/*
 * StatefulSets: pods with names and claims of their own, in order. What to do next is decided in
 * workload_stateful_plan.c. One ordinal too high to be looked at (TD_STATEFUL_SLOTS_MAX) is left
 * alone.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "local/store/edit.h"
#include "local/workloads/workload_private.h"
#include "local/workloads/workload_revision.h"
#include "local/workloads/workload_stateful_plan.h"

#define STATEFUL_HASH_LABEL "controller.kubernetes.io/hash"
#define STATEFUL_REVISION_LABEL "controller-revision-hash"
#define STATEFUL_NAME_LABEL "statefulset.kubernetes.io/pod-name"
#define STATEFUL_INDEX_LABEL "apps.kubernetes.io/pod-index"
#define STATEFUL_BURST ((size_t)500)

struct stateful_pod {
    const struct td_child *pod;
    int64_t ordinal;
};

struct stateful {
    struct td_workload_item *item;
    struct td_revisions revisions;
    const struct td_revision *current;
    const struct td_revision *update;
    int64_t start;
    int64_t replicas;
    int64_t min_ready;
    struct stateful_pod *slots; /* of ordinals from start; pod NULL: missing */
    size_t slot_count;
    struct stateful_pod *condemned; /* the highest ordinal first */
    size_t condemned_count;
};

/* "web-3" of "web" is 3; -1 when the name is not of that form. */
static int64_t stateful_ordinal(td_str set, td_str pod)
{
    int64_t ordinal;
    td_str digits = td_str_slice(pod, set.len + 1, pod.len);
    if (!td_str_starts_with(pod, set) || pod.len < set.len + 2 || pod.ptr[set.len] != '-' ||
        digits.ptr[0] < '0' || digits.ptr[0] > '9' || !td_str_to_int64(digits, &ordinal) ||
        ordinal > INT32_MAX) {
        return -1;
    }
    return ordinal;
}

static bool stateful_is_mine(const struct td_workload_item *item, const struct td_child *child)
{
    return stateful_ordinal(item->name, child->stored->name) >= 0;
}

/* ---- What is there ---- */

static int stateful_compare_down(const void *left, const void *right)
{
    const struct stateful_pod *a = left;
    const struct stateful_pod *b = right;
    return (a->ordinal < b->ordinal) - (a->ordinal > b->ordinal);
}

/* So many ordinals are looked at as exist, and some that are to be made next. */
static size_t stateful_slot_count(const struct stateful *set, const struct td_children *pods)
{
    int64_t highest = 0;
    for (size_t i = 0; i < pods->count; i++) {
        int64_t at = stateful_ordinal(set->item->name, pods->items[i]->stored->name) - set->start;
        highest = at >= 0 && at < set->replicas && at + 1 > highest ? at + 1 : highest;
    }
    int64_t count = highest + (int64_t)STATEFUL_BURST;
    count = count < set->replicas ? count : set->replicas;
    return count < (int64_t)TD_STATEFUL_SLOTS_MAX ? (size_t)count : TD_STATEFUL_SLOTS_MAX;
}

static void stateful_sort_out(struct stateful *set, const struct td_children *pods)
{
    struct td_arena *arena = set->item->arena;
    set->slot_count = stateful_slot_count(set, pods);
    set->slots = td_arena_array(arena, struct stateful_pod, set->slot_count);
    set->condemned = td_arena_array(arena, struct stateful_pod, pods->count);
    for (size_t i = 0; i < set->slot_count; i++) {
        set->slots[i].ordinal = set->start + (int64_t)i;
    }
    for (size_t i = 0; i < pods->count; i++) {
        const struct td_child *pod = pods->items[i];
        int64_t ordinal = stateful_ordinal(set->item->name, pod->stored->name);
        int64_t at = ordinal - set->start;
        if (at >= 0 && at < (int64_t)set->slot_count) {
            set->slots[at].pod = pod;
        } else if (at < 0 || at >= set->replicas) {
            set->condemned[set->condemned_count++] =
                (struct stateful_pod){.pod = pod, .ordinal = ordinal};
        }
    }
    qsort(set->condemned, set->condemned_count, sizeof(set->condemned[0]), stateful_compare_down);
}

static struct td_stateful_slot stateful_slot(const struct stateful *set,
                                             const struct stateful_pod *place)
{
    const struct td_child *pod = place->pod;
    if (!pod) {
        return (struct td_stateful_slot){.exists = false};
    }
    return (struct td_stateful_slot){
        .exists = true,
        .is_finished = td_pod_phase_is_over(pod->pod.phase),
        .is_terminating = pod->is_deleting,
        .is_ready = pod->pod.phase == TD_POD_RUNNING && pod->pod.is_ready,
        .is_available = td_pod_is_available(pod, set->min_ready, set->item->now),
        .revision = td_child_label(pod, STATEFUL_REVISION_LABEL),
    };
}

/* ---- Claims ---- */

static void stateful_bind_claim(struct td_workload_item *item, struct td_json *claim)
{
    struct td_workloads *all = item->control->all;
    struct td_arena *arena = item->arena;
    struct td_json *metadata = td_json_get(claim, TD_STR("metadata"));
    td_str uid = td_json_text(metadata, "uid");
    struct td_json *spec = td_json_ensure_object(arena, claim, TD_STR("spec"));
    td_json_set_str(arena, spec, TD_STR("volumeName"),
                    td_arena_format(arena, "pvc-%.*s", TD_STR_ARG(uid)));
    struct td_json *status = td_json_ensure_object(arena, claim, TD_STR("status"));
    td_json_set_str(arena, status, TD_STR("phase"), TD_STR("Bound"));
    const struct td_json *modes = td_json_get(spec, TD_STR("accessModes"));
    const struct td_json *size = td_json_get_path(spec, "resources.requests");
    td_json_set_copy(arena, status, TD_STR("accessModes"), modes);
    td_json_set_copy(arena, status, TD_STR("capacity"), size);
    (void)td_edit_put(all->api, all->claims, arena, claim, NULL); /* one that is not bound serves */
}

static td_str stateful_claim_name(const struct stateful *set, const struct td_json *template,
                                  int64_t ordinal)
{
    td_str name = td_json_text(td_json_get(template, TD_STR("metadata")), "name");
    return td_arena_format(set->item->arena, "%.*s-%.*s-%lld", TD_STR_ARG(name),
                           TD_STR_ARG(set->item->name), (long long)ordinal);
}

static bool stateful_wants_claims_gone(const struct td_workload_item *item, const char *when)
{
    const struct td_json *policy =
        td_json_get(item->spec, TD_STR("persistentVolumeClaimRetentionPolicy"));
    return td_str_equal(td_json_get_str(policy, td_str_from(when), TD_STR_EMPTY), TD_STR("Delete"));
}

static void stateful_make_claim(const struct stateful *set, const struct td_json *template,
                                int64_t ordinal)
{
    struct td_workload_item *item = set->item;
    struct td_workloads *all = item->control->all;
    struct td_arena *arena = item->arena;
    td_str name = stateful_claim_name(set, template, ordinal);
    struct td_json *there;
    if (td_edit_get(all->api, all->claims, item->ns, name, arena, &there, NULL) == TD_OK) {
        return;
    }
    struct td_json *claim = td_json_copy(arena, template, false);
    td_json_set_str(arena, claim, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set_str(arena, claim, TD_STR("kind"), TD_STR("PersistentVolumeClaim"));
    struct td_json *metadata = td_json_ensure_object(arena, claim, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"), name);
    td_json_set_str(arena, metadata, TD_STR("namespace"), item->ns);
    struct td_json *labels = td_json_ensure_object(arena, metadata, TD_STR("labels"));
    const struct td_json *from = td_json_get_path(item->spec, "selector.matchLabels");
    for (const struct td_json *l = td_json_first_member(from); l; l = l->next) {
        td_json_set_copy(arena, labels, l->key, l);
    }
    if (stateful_wants_claims_gone(item, "whenDeleted")) {
        td_set_controller(arena, metadata, item->object);
    }
    struct td_error err = TD_ERROR_INIT;
    if (td_edit_put(all->api, all->claims, arena, claim, &err) != TD_OK) {
        td_workload_event(item, true, "FailedCreate",
                          "Create Claim %.*s for Pod %.*s-%lld in StatefulSet %.*s failed error: "
                          "%s",
                          TD_STR_ARG(name), TD_STR_ARG(item->name), (long long)ordinal,
                          TD_STR_ARG(item->name), err.message);
        return;
    }
    stateful_bind_claim(item, claim);
    td_workload_event(item, false, "SuccessfulCreate",
                      "Create Claim %.*s Pod %.*s-%lld in StatefulSet %.*s success",
                      TD_STR_ARG(name), TD_STR_ARG(item->name), (long long)ordinal,
                      TD_STR_ARG(item->name));
}

/* A pod that goes for good takes its claims along when the set says so. */
static void stateful_hand_claims(const struct stateful *set, const struct stateful_pod *place)
{
    struct td_workload_item *item = set->item;
    struct td_workloads *all = item->control->all;
    const struct td_json *list = td_json_get(item->spec, TD_STR("volumeClaimTemplates"));
    const struct td_json *t = td_json_first_item(list);
    struct td_json *pod;
    if (!t || !stateful_wants_claims_gone(item, "whenScaled") ||
        td_edit_get(all->api, all->pods, item->ns, place->pod->stored->name, item->arena, &pod,
                    NULL) != TD_OK) {
        return;
    }
    for (; t; t = t->next) {
        struct td_json *claim;
        if (td_edit_get(all->api, all->claims, item->ns,
                        stateful_claim_name(set, t, place->ordinal), item->arena, &claim,
                        NULL) == TD_OK) {
            td_set_controller(item->arena, td_json_get(claim, TD_STR("metadata")), pod);
            (void)td_edit_put(all->api, all->claims, item->arena, claim,
                              NULL); /* a claim that stays is no harm */
        }
    }
}

/* ---- Pods ---- */

static void stateful_add_volumes(const struct stateful *set, struct td_json *spec, int64_t ordinal)
{
    struct td_arena *arena = set->item->arena;
    const struct td_json *list = td_json_get(set->item->spec, TD_STR("volumeClaimTemplates"));
    const struct td_json *t = td_json_first_item(list);
    if (!t) {
        return;
    }
    struct td_json *taken = td_json_new_object(arena);
    struct td_json *volumes = td_json_new_array(arena);
    for (; t; t = t->next) {
        td_str name = td_json_text(td_json_get(t, TD_STR("metadata")), "name");
        struct td_json *volume = td_json_new_object(arena);
        td_json_set_str(arena, volume, TD_STR("name"), name);
        struct td_json *source =
            td_json_ensure_object(arena, volume, TD_STR("persistentVolumeClaim"));
        td_json_set_str(arena, source, TD_STR("claimName"), stateful_claim_name(set, t, ordinal));
        td_json_append(volumes, volume);
        td_json_set_bool(arena, taken, name, true);
        stateful_make_claim(set, t, ordinal);
    }
    const struct td_json *old = td_json_get(spec, TD_STR("volumes"));
    for (const struct td_json *v = td_json_first_item(old); v; v = v->next) {
        if (!td_json_get(taken, td_json_text(v, "name"))) {
            td_json_append(volumes, td_json_copy(arena, v, false));
        }
    }
    td_json_set(arena, spec, TD_STR("volumes"), volumes);
}

/* Below the partition pods are still made from the template before. */
static const struct td_revision *stateful_revision_at(const struct stateful *set, int64_t ordinal)
{
    const struct td_json *strategy = td_json_get(set->item->spec, TD_STR("updateStrategy"));
    const struct td_json *rolling = td_json_get(strategy, TD_STR("rollingUpdate"));
    bool is_rolling = !td_str_equal(td_json_text(strategy, "type"), TD_STR("OnDelete"));
    int64_t kept = rolling ? td_json_get_int64(rolling, TD_STR("partition"), 0)
                           : td_json_get_int64(td_json_get(set->item->object, TD_STR("status")),
                                               TD_STR("currentReplicas"), 0);
    return (is_rolling || rolling) && ordinal < set->start + kept ? set->current : set->update;
}

static struct td_json *stateful_make(struct td_workload_item *item, size_t index, void *context)
{
    struct stateful *set = context;
    struct td_arena *arena = item->arena;
    int64_t ordinal = set->slots[index].ordinal;
    const struct td_revision *revision = stateful_revision_at(set, ordinal);
    struct td_json *pod = td_pod_from_template(arena, item->object, revision->template);
    struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
    td_str name = td_arena_format(arena, "%.*s-%lld", TD_STR_ARG(item->name), (long long)ordinal);
    td_json_set_str(arena, metadata, TD_STR("name"), name);
    struct td_json *labels = td_json_ensure_object(arena, metadata, TD_STR("labels"));
    td_json_set_str(arena, labels, TD_STR(STATEFUL_NAME_LABEL), name);
    td_json_set_str(arena, labels, TD_STR(STATEFUL_INDEX_LABEL),
                    td_arena_format(arena, "%lld", (long long)ordinal));
    td_json_set_str(arena, labels, TD_STR(STATEFUL_REVISION_LABEL), revision->name);
    struct td_json *spec = td_json_get(pod, TD_STR("spec"));
    td_json_set_str(arena, spec, TD_STR("hostname"), name);
    td_str service = td_json_text(item->spec, "serviceName");
    td_json_set_text(arena, spec, TD_STR("subdomain"), service);
    stateful_add_volumes(set, spec, ordinal);
    return pod;
}

static void stateful_delete(struct stateful *set, const struct stateful_pod *place)
{
    struct td_workload_item *item = set->item;
    struct td_workloads *all = item->control->all;
    struct td_error err = TD_ERROR_INIT;
    td_str name = td_arena_copy_str(item->arena, place->pod->stored->name);
    int code = td_edit_delete(all->api, all->pods, item->ns, name, place->pod->stored->uid,
                              TD_STR_EMPTY, -1, &err);
    if (code == TD_OK) {
        td_workload_event(item, false, "SuccessfulDelete",
                          "Delete Pod %.*s in StatefulSet %.*s successful", TD_STR_ARG(name),
                          TD_STR_ARG(item->name));
    } else if (code != TD_NOT_FOUND && code != TD_CONFLICT) {
        td_workload_event(item, true, "FailedDelete",
                          "Delete Pod %.*s in StatefulSet %.*s failed error: %s", TD_STR_ARG(name),
                          TD_STR_ARG(item->name), err.message);
    }
}

void td_stateful_made(struct td_workload_control *control, const struct td_pod_made *made)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str set = td_json_text(td_json_get(made->owner, TD_STR("metadata")), "name");
    bool is_made = made->code == TD_OK;
    td_str text =
        is_made
            ? td_arena_format(&arena, "Create Pod %.*s in StatefulSet %.*s successful",
                              TD_STR_ARG(made->pod), TD_STR_ARG(set))
            : td_arena_format(&arena, "Create Pod %.*s in StatefulSet %.*s failed error: %.*s",
                              TD_STR_ARG(made->pod), TD_STR_ARG(set), TD_STR_ARG(made->message));
    td_edit_event(control->all->api, made->owner, is_made ? TD_STR("Normal") : TD_STR("Warning"),
                  is_made ? TD_STR("SuccessfulCreate") : TD_STR("FailedCreate"),
                  control->row->component, text);
}

/* ---- Doing it ---- */

static void stateful_act(struct stateful *set)
{
    struct td_workload_item *item = set->item;
    struct td_arena *arena = item->arena;
    struct td_stateful_slot *slots =
        td_arena_array(arena, struct td_stateful_slot, set->slot_count + set->condemned_count);
    for (size_t i = 0; i < set->slot_count; i++) {
        slots[i] = stateful_slot(set, &set->slots[i]);
    }
    for (size_t i = 0; i < set->condemned_count; i++) {
        slots[set->slot_count + i] = stateful_slot(set, &set->condemned[i]);
    }
    const struct td_json *strategy = td_json_get(item->spec, TD_STR("updateStrategy"));
    const struct td_stateful_set plan = {
        .is_parallel =
            td_str_equal(td_json_text(item->spec, "podManagementPolicy"), TD_STR("Parallel")),
        .is_on_delete = td_str_equal(td_json_text(strategy, "type"), TD_STR("OnDelete")),
        .partition = td_json_get_int64(td_json_get(strategy, TD_STR("rollingUpdate")),
                                       TD_STR("partition"), 0),
        .update_revision = set->update->name,
        .replicas = slots,
        .replica_count = set->slot_count,
        .condemned = slots + set->slot_count,
        .condemned_count = set->condemned_count,
    };
    struct td_stateful_step *steps =
        td_arena_array(arena, struct td_stateful_step, set->slot_count + set->condemned_count + 1);
    size_t count = td_stateful_decide(&plan, steps);
    bool can_create = td_workload_can_create(item);
    unsigned failures = 0;
    for (size_t i = 0; i < count; i++) {
        const struct td_workload_owner *owner = td_workload_owner(item->control->all, item->uid);
        bool is_refused = owner && owner->failures > failures && i > 0;
        if (steps[i].action == TD_STATEFUL_CREATE && can_create && !is_refused) {
            failures = owner ? owner->failures : 0;
            td_pod_maker_create(item->control->maker, item->object,
                                stateful_make(item, steps[i].index, set));
        } else if (steps[i].action == TD_STATEFUL_DELETE) {
            stateful_delete(set, &set->slots[steps[i].index]);
        } else if (steps[i].action == TD_STATEFUL_CONDEMN) {
            stateful_hand_claims(set, &set->condemned[steps[i].index]);
            stateful_delete(set, &set->condemned[steps[i].index]);
        }
    }
}

/* ---- Status ---- */

struct stateful_counts {
    int64_t replicas;
    int64_t ready;
    int64_t available;
    int64_t current;
    int64_t updated;
};

static void stateful_count(const struct stateful *set, const struct td_child *pod,
                           struct stateful_counts *counts)
{
    td_str revision = td_child_label(pod, STATEFUL_REVISION_LABEL);
    bool is_created = pod->pod.phase != TD_POD_PHASE_NONE;
    bool is_ready = pod->pod.phase == TD_POD_RUNNING && pod->pod.is_ready;
    counts->replicas += is_created;
    counts->ready += is_ready;
    counts->available += is_ready && td_pod_is_available(pod, set->min_ready, set->item->now);
    if (is_created && !pod->is_deleting) {
        counts->current += td_str_equal(revision, set->current->name);
        counts->updated += td_str_equal(revision, set->update->name);
    }
}

static void stateful_update_status(const struct stateful *set, const struct td_children *pods)
{
    struct td_workload_item *item = set->item;
    struct td_arena *arena = item->arena;
    struct td_json *status = td_workload_status(item);
    struct stateful_counts counts = {.replicas = 0};
    for (size_t i = 0; i < pods->count; i++) {
        stateful_count(set, pods->items[i], &counts);
    }
    td_str current = set->current->name;
    bool is_rolling =
        !td_str_equal(td_json_text(td_json_get(item->spec, TD_STR("updateStrategy")), "type"),
                      TD_STR("OnDelete"));
    if (is_rolling && counts.updated == set->replicas && counts.ready == set->replicas &&
        counts.replicas == set->replicas) {
        counts.current = counts.updated;
        current = set->update->name;
    }
    td_json_set_int64(arena, status, TD_STR("observedGeneration"), item->generation);
    td_json_set_int64(arena, status, TD_STR("replicas"), counts.replicas);
    td_workload_set_count(arena, status, TD_STR("readyReplicas"), counts.ready);
    td_workload_set_count(arena, status, TD_STR("currentReplicas"), counts.current);
    td_workload_set_count(arena, status, TD_STR("updatedReplicas"), counts.updated);
    td_json_set_str(arena, status, TD_STR("currentRevision"), current);
    td_json_set_str(arena, status, TD_STR("updateRevision"), set->update->name);
    td_json_set_int64(arena, status, TD_STR("collisionCount"), set->revisions.collisions);
    td_json_set_int64(arena, status, TD_STR("availableReplicas"), counts.available);
    (void)td_workload_put_status(item, status); /* a conflict is looked at again */
    if (counts.ready != counts.available) {
        td_workload_watch_available(item, pods, set->min_ready);
    }
}

struct stateful_live {
    const struct stateful *set;
    const struct td_children *pods;
};

static bool stateful_is_live(const struct td_revision *revision, void *context)
{
    const struct stateful_live *live = context;
    bool is_live = td_str_equal(revision->name, live->set->current->name) ||
                   td_str_equal(revision->name, live->set->update->name);
    for (size_t i = 0; i < live->pods->count && !is_live; i++) {
        is_live = td_str_equal(td_child_label(live->pods->items[i], STATEFUL_REVISION_LABEL),
                               revision->name);
    }
    return is_live;
}

void td_stateful_sync(struct td_workload_item *item)
{
    struct stateful set = {
        .item = item,
        .start = td_json_get_int64(td_json_get(item->spec, TD_STR("ordinals")), TD_STR("start"), 0),
        .replicas = td_json_get_int64(item->spec, TD_STR("replicas"), 1),
        .min_ready = td_workload_min_ready(item),
    };
    struct td_children pods = td_workload_claim_pods(item, stateful_is_mine);
    td_revisions_load(item, TD_STR(STATEFUL_HASH_LABEL), &set.revisions);
    if (td_revisions_need(item, &set.revisions) != TD_OK) {
        return;
    }
    set.update = &set.revisions.items[set.revisions.count - 1];
    set.current =
        td_revisions_find(&set.revisions, td_json_text(td_json_get(item->object, TD_STR("status")),
                                                       "currentRevision"));
    set.current = set.current ? set.current : set.update;
    stateful_sort_out(&set, &pods);
    if (!item->is_deleting && td_workload_pending(item) == 0) {
        stateful_act(&set);
    }
    stateful_update_status(&set, &pods);
    struct stateful_live live = {.set = &set, .pods = &pods};
    td_revisions_truncate(item, &set.revisions, stateful_is_live, &live);
}
