/*
 * ReplicaSet and ReplicationController: the same work on two kinds. Pods that are neither finished
 * nor being deleted count; too few are made up for, too many go in upstream's order.
 */
#include "base/error.h"
#include "base/limits.h"
#include "local/workloads/workload_private.h"
#include "local/workloads/workload_rank.h"

#define REPLICA_BURST ((int64_t)500)

struct replica_pods {
    struct td_children active;
    struct td_children terminating;
};

static struct replica_pods replica_sort_out(struct td_workload_item *item,
                                            const struct td_children *pods)
{
    struct replica_pods sorted = {
        .active = {.items = td_arena_array(item->arena, struct td_child *, pods->count)},
        .terminating = {.items = td_arena_array(item->arena, struct td_child *, pods->count)},
    };
    for (size_t i = 0; i < pods->count; i++) {
        struct td_child *pod = pods->items[i];
        if (td_pod_is_active(pod)) {
            sorted.active.items[sorted.active.count++] = pod;
        } else if (pod->is_deleting && !td_pod_phase_is_over(pod->pod.phase)) {
            sorted.terminating.items[sorted.terminating.count++] = pod;
        }
    }
    return sorted;
}

/* ---- Too many ---- */

static void replica_count_nodes(struct td_arena *arena, struct td_map *nodes,
                                const struct td_children *pods)
{
    for (size_t i = 0; i < pods->count; i++) {
        const struct td_child *pod = pods->items[i];
        if (!td_pod_is_active(pod)) {
            continue;
        }
        size_t *count = td_map_get(nodes, pod->pod.node);
        if (!count) {
            count = td_arena_new(arena, size_t);
            (void)td_map_put(nodes, pod->pod.node, count); /* as many as there are pods at most */
        }
        (*count)++;
    }
}

/* Pods of all ReplicaSets of one Deployment count as neighbours of each other. */
static void replica_count_related(struct td_workload_item *item, const struct td_children *own,
                                  struct td_map *nodes)
{
    struct td_workloads *all = item->control->all;
    const struct td_child *self = td_child_index_get(&all->replica_set_index, item->ns, item->name);
    if (!self || self->controller_uid.len == 0 ||
        item->control != &all->controls[TD_KIND_REPLICA_SET]) {
        replica_count_nodes(item->arena, nodes, own);
        return;
    }
    struct td_children sets =
        td_child_index_list(&all->replica_set_index, item->arena, self->controller_uid);
    for (size_t i = 0; i < sets.count; i++) {
        td_str uid = sets.items[i]->stored->uid;
        struct td_children pods = td_child_index_list(&all->pod_index, item->arena, uid);
        replica_count_nodes(item->arena, nodes, &pods);
    }
}

static int replica_delete(struct td_workload_item *item, const struct td_children *active,
                          size_t surplus)
{
    td_auto_map nodes = td_map_capped(active->count + TD_COLLECTION_OBJECTS_MAX);
    struct td_rank_pod *order = td_arena_array(item->arena, struct td_rank_pod, active->count);
    if (surplus < active->count) {
        replica_count_related(item, active, &nodes);
    }
    for (size_t i = 0; i < active->count; i++) {
        order[i] = td_pod_rank(active->items[i], i);
        const size_t *neighbours = td_map_get(&nodes, order[i].node);
        order[i].neighbours = neighbours ? *neighbours : 0;
    }
    td_rank_sort(order, active->count, item->now);
    for (size_t i = 0; i < surplus; i++) {
        int code = td_workload_delete_pod(item, active->items[order[i].index]);
        if (code != TD_OK && code != TD_NOT_FOUND && code != TD_CONFLICT) {
            return code;
        }
    }
    return TD_OK;
}

/* ---- Too few ---- */

static struct td_json *replica_make(struct td_workload_item *item, size_t index, void *context)
{
    (void)index;
    (void)context;
    return td_pod_from_template(item->arena, item->object,
                                td_json_get(item->spec, TD_STR("template")));
}

static int replica_manage(struct td_workload_item *item, const struct td_children *active)
{
    int64_t want = td_json_get_int64(item->spec, TD_STR("replicas"), 1);
    int64_t difference = (int64_t)active->count - want;
    if (difference >= 0) {
        td_workload_owner_clear(item->control->all, item->uid);
    }
    if (difference < 0 && td_workload_can_create(item)) {
        int64_t missing = -difference < REPLICA_BURST ? -difference : REPLICA_BURST;
        td_workload_create_pods(item, (size_t)missing, replica_make, NULL);
    } else if (difference > 0) {
        int64_t surplus = difference < REPLICA_BURST ? difference : REPLICA_BURST;
        int code = replica_delete(item, active, (size_t)surplus);
        if (difference > surplus) {
            td_workload_enqueue(item->control, item->ns, item->name);
        }
        return code;
    }
    return TD_OK;
}

/* ---- Status ---- */

/* Do the pod's labels include all of the template's? */
static bool replica_is_fully_labeled(const struct td_labels *template, const struct td_child *pod)
{
    for (size_t i = 0; i < template->count; i++) {
        const td_str *value = td_labels_get(&pod->labels, template->items[i].key);
        if (!value || !td_str_equal(*value, template->items[i].value)) {
            return false;
        }
    }
    return true;
}

static void replica_set_failure(struct td_workload_item *item, struct td_json *status,
                                const char *reason, td_str message)
{
    const struct td_condition condition = {
        .type = TD_STR("ReplicaFailure"),
        .status = TD_STR("True"),
        .reason = td_str_from(reason),
        .message = message,
    };
    td_workload_condition_put(item->arena, status, td_workload_condition(item, &condition, NULL));
}

static void replica_judge_failure(struct td_workload_item *item, struct td_json *status,
                                  int delete_code)
{
    const struct td_workload_owner *owner = td_workload_owner(item->control->all, item->uid);
    bool has_condition = td_condition_find(status, TD_STR("ReplicaFailure")) != NULL;
    bool is_refused = owner && owner->failures > 0;
    if (!is_refused && delete_code == TD_OK) {
        td_workload_condition_remove(status, TD_STR("ReplicaFailure"));
    } else if (!has_condition && is_refused) {
        replica_set_failure(item, status, "FailedCreate",
                            td_arena_copy_str(item->arena, owner->message));
    } else if (!has_condition) {
        replica_set_failure(item, status, "FailedDelete", TD_STR("unable to delete pods"));
    }
}

static void replica_update_status(struct td_workload_item *item, const struct replica_pods *pods,
                                  int delete_code)
{
    struct td_arena *arena = item->arena;
    struct td_json *status = td_workload_status(item);
    struct td_labels template =
        td_labels_from_json(arena, td_json_get_path(item->spec, "template.metadata.labels"));
    int64_t min_ready = td_workload_min_ready(item);
    int64_t labeled = 0;
    int64_t ready = 0;
    int64_t available = 0;
    for (size_t i = 0; i < pods->active.count; i++) {
        const struct td_child *pod = pods->active.items[i];
        labeled += replica_is_fully_labeled(&template, pod);
        ready += pod->pod.is_ready;
        available += td_pod_is_available(pod, min_ready, item->now);
    }
    replica_judge_failure(item, status, delete_code);
    td_json_set_int64(arena, status, TD_STR("replicas"), (int64_t)pods->active.count);
    td_workload_set_count(arena, status, TD_STR("fullyLabeledReplicas"), labeled);
    td_workload_set_count(arena, status, TD_STR("readyReplicas"), ready);
    td_workload_set_count(arena, status, TD_STR("availableReplicas"), available);
    if (item->control == &item->control->all->controls[TD_KIND_REPLICA_SET]) {
        td_json_set_int64(arena, status, TD_STR("terminatingReplicas"),
                          (int64_t)pods->terminating.count);
    }
    td_json_set_int64(arena, status, TD_STR("observedGeneration"), item->generation);
    (void)td_workload_put_status(item, status); /* a failure was told, a conflict is looked at */
    if (ready != available) {
        td_workload_watch_available(item, &pods->active, min_ready);
    }
}

static struct replica_pods replica_run(struct td_workload_item *item, int *ret_code)
{
    struct td_children own = td_workload_claim_pods(item, NULL);
    struct replica_pods pods = replica_sort_out(item, &own);
    *ret_code = TD_OK;
    if (!item->is_deleting && td_workload_pending(item) == 0) {
        *ret_code = replica_manage(item, &pods.active);
    }
    return pods;
}

void td_replica_sync(struct td_workload_item *item)
{
    int code;
    struct replica_pods pods = replica_run(item, &code);
    replica_update_status(item, &pods, code);
}

struct td_children td_workload_replicate(struct td_workload_item *item)
{
    int code;
    return replica_run(item, &code).active; /* a refusal is in the events, and tried again */
}
