/*
 * DaemonSets: one pod a node that its template fits. Pods are bound to their nodes by affinity, as
 * upstream's, so that the scheduler places them. A pod that failed is replaced at the earliest a
 * second after it was made, where upstream doubles that time each time.
 */
#include "local/workloads/workload_daemon.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "local/api/api.h"
#include "local/nodes/node_fit.h"
#include "local/store/store.h"
#include "local/workloads/workload_daemon_plan.h"
#include "local/workloads/workload_private.h"
#include "local/workloads/workload_revision.h"
#include "local/workloads/workload_rollout.h"

#define DAEMON_HASH_LABEL "controller-revision-hash"
#define DAEMON_GENERATION_LABEL "pod-template-generation"
#define DAEMON_GENERATION "deprecated.daemonset.template.generation"
#define DAEMON_FAILED_PAUSE TD_SECOND

struct daemon_node {
    td_str name;
    struct td_child **pods; /* the oldest first */
    size_t count;
    size_t cap;
};

struct daemon {
    struct td_workload_item *item;
    struct td_json *template; /* with what all daemon pods tolerate */
    td_str hash;
    int64_t min_ready;
    struct daemon_node *nodes;    /* by name */
    struct td_daemon_node *plans; /* of the same */
    size_t count;
    struct td_map by_name;
};

/* ---- Nodes that change ---- */

/* What decides where daemons run: labels, taints. All else of a node changes often. */
static bool daemon_is_same_node(const struct td_stored *before, const struct td_stored *after)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *a;
    struct td_json *b;
    return td_json_parse(&arena, before->json, NULL, &a, NULL) == TD_OK &&
           td_json_parse(&arena, after->json, NULL, &b, NULL) == TD_OK &&
           td_json_equal(td_json_get_path(a, "metadata.labels"),
                         td_json_get_path(b, "metadata.labels")) &&
           td_json_equal(td_json_get_path(a, "spec.taints"), td_json_get_path(b, "spec.taints"));
}

void td_workload_node_changed(struct td_workloads *all, const struct td_stored *before,
                              const struct td_stored *after)
{
    struct td_workload_control *control = &all->controls[TD_KIND_DAEMON_SET];
    bool is_same = before && after && daemon_is_same_node(before, after);
    if (after) {
        td_child_index_refresh(&all->node_index, after->ns, after->name);
    } else if (before) {
        td_child_index_refresh(&all->node_index, before->ns, before->name);
    }
    const struct td_collection *sets =
        td_store_find(td_api_store(all->api), control->row->collection);
    if (!sets || td_collection_count(sets, TD_STR_EMPTY) == 0 || is_same) {
        return;
    }
    struct td_collection_iter iter = td_collection_walk(sets, TD_STR_EMPTY);
    for (const struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        td_workload_enqueue(control, stored->ns, stored->name);
    }
}

/* ---- The template ---- */

static void daemon_tolerate(struct td_arena *arena, struct td_json *list, const char *key,
                            const char *effect)
{
    struct td_json *toleration = td_json_new_object(arena);
    td_json_set_str(arena, toleration, TD_STR("key"), td_str_from(key));
    td_json_set_str(arena, toleration, TD_STR("operator"), TD_STR("Exists"));
    td_json_set_str(arena, toleration, TD_STR("effect"), td_str_from(effect));
    for (const struct td_json *t = td_json_first_item(list); t; t = t->next) {
        if (td_json_equal(t, toleration)) {
            return;
        }
    }
    td_json_append(list, toleration);
}

static struct td_json *daemon_template(struct td_workload_item *item, td_str hash)
{
    static const char *const pressures[] = {
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unschedulable",
    };
    struct td_arena *arena = item->arena;
    struct td_json *template =
        td_json_copy(arena, td_json_get(item->spec, TD_STR("template")), false);
    struct td_json *spec = td_json_ensure_object(arena, template, TD_STR("spec"));
    struct td_json *list = td_json_ensure_array(arena, spec, TD_STR("tolerations"));
    daemon_tolerate(arena, list, "node.kubernetes.io/not-ready", "NoExecute");
    daemon_tolerate(arena, list, "node.kubernetes.io/unreachable", "NoExecute");
    for (size_t i = 0; i < TD_COUNT(pressures); i++) {
        daemon_tolerate(arena, list, pressures[i], "NoSchedule");
    }
    if (td_json_get_bool(spec, TD_STR("hostNetwork"), false)) {
        daemon_tolerate(arena, list, "node.kubernetes.io/network-unavailable", "NoSchedule");
    }
    struct td_json *metadata = td_json_ensure_object(arena, template, TD_STR("metadata"));
    struct td_json *labels = td_json_ensure_object(arena, metadata, TD_STR("labels"));
    td_json_set_str(arena, labels, TD_STR(DAEMON_HASH_LABEL), hash);
    td_str generation = td_json_get_str(td_json_get(item->metadata, TD_STR("annotations")),
                                        TD_STR(DAEMON_GENERATION), TD_STR_EMPTY);
    td_json_set_text(arena, labels, TD_STR(DAEMON_GENERATION_LABEL), generation);
    return template;
}

/* Bound to one node: whatever the template required of nodes holds for it already. */
static struct td_json *daemon_make(struct daemon *daemon, td_str node)
{
    struct td_arena *arena = daemon->item->arena;
    struct td_json *pod = td_pod_from_template(arena, daemon->item->object, daemon->template);
    struct td_json *spec = td_json_get(pod, TD_STR("spec"));
    struct td_json *affinity = td_json_ensure_object(arena, spec, TD_STR("affinity"));
    struct td_json *of_nodes = td_json_ensure_object(arena, affinity, TD_STR("nodeAffinity"));
    struct td_json *field = td_json_new_object(arena);
    td_json_set_str(arena, field, TD_STR("key"), TD_STR("metadata.name"));
    td_json_set_str(arena, field, TD_STR("operator"), TD_STR("In"));
    struct td_json *values = td_json_new_array(arena);
    td_json_append(values, td_json_new_string(arena, node));
    td_json_set(arena, field, TD_STR("values"), values);
    struct td_json *fields = td_json_new_array(arena);
    td_json_append(fields, field);
    struct td_json *term = td_json_new_object(arena);
    td_json_set(arena, term, TD_STR("matchFields"), fields);
    struct td_json *terms = td_json_new_array(arena);
    td_json_append(terms, term);
    struct td_json *required = td_json_new_object(arena);
    td_json_set(arena, required, TD_STR("nodeSelectorTerms"), terms);
    td_json_set(arena, of_nodes, TD_STR("requiredDuringSchedulingIgnoredDuringExecution"),
                required);
    return pod;
}

/* ---- What is there ---- */

static int daemon_compare_nodes(const void *left, const void *right)
{
    const struct daemon_node *a = left;
    const struct daemon_node *b = right;
    return td_str_compare(a->name, b->name);
}

/* Placed pods first, then by age: the one that counts is in front. */
static int daemon_compare_pods(const void *left, const void *right)
{
    const struct td_child *a = *(struct td_child *const *)left;
    const struct td_child *b = *(struct td_child *const *)right;
    int by_place = (a->pod.node.len == 0) - (b->pod.node.len == 0);
    int by_time = (a->created > b->created) - (a->created < b->created);
    if (by_place != 0 || by_time != 0) {
        return by_place != 0 ? by_place : by_time;
    }
    return td_str_compare(a->stored->name, b->stored->name);
}

static void daemon_judge_node(struct daemon *daemon, const struct td_child *node,
                              struct td_daemon_node *plan)
{
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_json *spec = td_json_get(daemon->template, TD_STR("spec"));
    td_str fixed = td_json_text(spec, "nodeName");
    struct td_json *object = NULL;
    td_str text = node->stored->json;
    if (memmem(text.ptr, text.len, "\"taints\"", 8) &&
        td_json_parse(&scratch, text, NULL, &object, NULL) != TD_OK) {
        return; /* it was stored by us, so it can be read */
    }
    const struct td_json *taints = td_json_get_path(object, "spec.taints");
    const struct td_json *tolerations = td_json_get(spec, TD_STR("tolerations"));
    bool fits = (fixed.len == 0 || td_str_equal(fixed, node->stored->name)) &&
                td_node_fits_affinity(td_json_get(spec, TD_STR("nodeSelector")),
                                      td_json_get_path(spec, TD_NODE_AFFINITY_PATH),
                                      node->stored->name, &node->labels);
    plan->should_run = fits && td_node_tolerates(tolerations, taints, false);
    plan->should_continue = fits && td_node_tolerates(tolerations, taints, true);
}

static void daemon_load_nodes(struct daemon *daemon)
{
    struct td_workload_item *item = daemon->item;
    struct td_workloads *all = item->control->all;
    struct td_children list = td_child_index_orphans(&all->node_index, item->arena, TD_STR_EMPTY);
    daemon->nodes = td_arena_array(item->arena, struct daemon_node, list.count);
    daemon->plans = td_arena_array(item->arena, struct td_daemon_node, list.count);
    daemon->count = list.count;
    for (size_t i = 0; i < list.count; i++) {
        daemon->nodes[i].name = list.items[i]->stored->name;
    }
    qsort(daemon->nodes, daemon->count, sizeof(daemon->nodes[0]), daemon_compare_nodes);
    for (size_t i = 0; i < daemon->count; i++) {
        (void)td_map_put(&daemon->by_name, daemon->nodes[i].name, &daemon->nodes[i]); /* it fits */
    }
    for (size_t i = 0; i < list.count; i++) {
        const struct daemon_node *node = td_map_get(&daemon->by_name, list.items[i]->stored->name);
        daemon_judge_node(daemon, list.items[i], &daemon->plans[node - daemon->nodes]);
    }
}

/* Pods by node; one whose node is gone, and that never was on it, goes at once. */
static void daemon_place_pods(struct daemon *daemon, const struct td_children *pods)
{
    struct td_workload_item *item = daemon->item;
    for (size_t i = 0; i < pods->count; i++) {
        struct td_child *pod = pods->items[i];
        td_str name = pod->pod.node.len > 0 ? pod->pod.node : pod->pod.affinity_node;
        struct daemon_node *node = td_map_get(&daemon->by_name, name);
        if (!node) {
            if (pod->pod.node.len == 0 && !pod->is_deleting) {
                (void)td_workload_delete_pod(item, pod); /* the next pass tries again */
            }
            continue;
        }
        node->pods =
            td_arena_grow(item->arena, node->pods, node->count, &node->cap, sizeof(node->pods[0]));
        node->pods[node->count++] = pod;
    }
    for (size_t n = 0; n < daemon->count; n++) {
        struct daemon_node *node = &daemon->nodes[n];
        struct td_daemon_node *plan = &daemon->plans[n];
        if (node->count > 0) {
            qsort(node->pods, node->count, sizeof(node->pods[0]), daemon_compare_pods);
        }
        plan->count = node->count;
        plan->pods = td_arena_array(item->arena, struct td_daemon_pod, node->count);
        for (size_t i = 0; i < node->count; i++) {
            const struct td_child *pod = node->pods[i];
            plan->pods[i] = (struct td_daemon_pod){
                .is_new = td_str_equal(td_child_label(pod, DAEMON_HASH_LABEL), daemon->hash),
                .is_terminating = pod->is_deleting,
                .is_finished = td_pod_phase_is_over(pod->pod.phase),
                .is_ready = pod->pod.is_ready,
                .is_available = td_pod_is_available(pod, daemon->min_ready, item->now),
            };
        }
    }
}

/* ---- Doing it ---- */

/* A pod that ended is told and removed; another one takes its place when it is gone. */
static void daemon_remove_finished(struct daemon *daemon, const struct daemon_node *node,
                                   const struct td_child *pod, struct td_daemon_pod *plan)
{
    struct td_workload_item *item = daemon->item;
    bool is_failed = pod->pod.phase == TD_POD_FAILED;
    td_duration wait = pod->created + DAEMON_FAILED_PAUSE - item->now;
    if (is_failed && wait > 0) {
        td_workload_enqueue_after(item->control, item->ns, item->name, wait);
        return;
    }
    td_workload_event(item, is_failed, is_failed ? "FailedDaemonPod" : "SucceededDaemonPod",
                      "Found %s daemon pod %.*s/%.*s on node %.*s, will try to %s it",
                      is_failed ? "failed" : "succeeded", TD_STR_ARG(item->ns),
                      TD_STR_ARG(pod->stored->name), TD_STR_ARG(node->name),
                      is_failed ? "kill" : "delete");
    plan->is_deleted = true;
}

struct daemon_work {
    struct daemon *daemon;
    td_str *nodes;
};

static struct td_json *daemon_make_next(struct td_workload_item *item, size_t index, void *context)
{
    const struct daemon_work *work = context;
    (void)item;
    return daemon_make(work->daemon, work->nodes[index]);
}

static void daemon_act(struct daemon *daemon)
{
    struct td_workload_item *item = daemon->item;
    struct daemon_work work = {
        .daemon = daemon,
        .nodes = td_arena_array(item->arena, td_str, daemon->count),
    };
    size_t missing = 0;
    for (size_t n = 0; n < daemon->count; n++) {
        struct daemon_node *node = &daemon->nodes[n];
        struct td_daemon_node *plan = &daemon->plans[n];
        for (size_t i = 0; i < node->count; i++) {
            if (plan->pods[i].is_finished && !plan->pods[i].is_terminating &&
                plan->should_continue) {
                daemon_remove_finished(daemon, node, node->pods[i], &plan->pods[i]);
            }
            if (plan->pods[i].is_deleted) {
                (void)td_workload_delete_pod(item, node->pods[i]); /* the next pass tries again */
            }
        }
        if (plan->is_created) {
            work.nodes[missing++] = node->name;
        }
    }
    if (missing > 0 && td_workload_can_create(item)) {
        td_workload_create_pods(item, missing, daemon_make_next, &work);
    } else if (missing == 0) {
        td_workload_owner_clear(item->control->all, item->uid);
    }
}

static struct td_daemon_limits daemon_limits(const struct daemon *daemon)
{
    struct td_workload_item *item = daemon->item;
    const struct td_json *rolling = td_json_get_path(item->spec, "updateStrategy.rollingUpdate");
    int64_t desired = 0;
    for (size_t n = 0; n < daemon->count; n++) {
        desired += daemon->plans[n].should_run;
    }
    struct td_daemon_limits limits = {
        .unavailable_max = td_rollout_share(
            item->arena, td_json_get(rolling, TD_STR("maxUnavailable")), desired, true),
        .surge_max =
            td_rollout_share(item->arena, td_json_get(rolling, TD_STR("maxSurge")), desired, true),
    };
    if (limits.unavailable_max == 0 && limits.surge_max == 0) {
        limits.unavailable_max = 1;
    }
    return limits;
}

/* ---- Status ---- */

static void daemon_update_status(struct daemon *daemon, const struct td_children *pods,
                                 int64_t collisions, bool is_seen)
{
    struct td_workload_item *item = daemon->item;
    struct td_arena *arena = item->arena;
    int64_t desired = 0;
    int64_t current = 0;
    int64_t misplaced = 0;
    int64_t ready = 0;
    int64_t updated = 0;
    int64_t available = 0;
    for (size_t n = 0; n < daemon->count; n++) {
        const struct td_daemon_node *plan = &daemon->plans[n];
        bool is_scheduled = plan->count > 0;
        desired += plan->should_run;
        misplaced += is_scheduled && !plan->should_run;
        if (is_scheduled && plan->should_run) {
            current++;
            ready += plan->pods[0].is_ready;
            available += plan->pods[0].is_available;
            updated += plan->pods[0].is_new;
        }
    }
    struct td_json *status = td_workload_status(item);
    td_json_set_int64(arena, status, TD_STR("currentNumberScheduled"), current);
    td_json_set_int64(arena, status, TD_STR("numberMisscheduled"), misplaced);
    td_json_set_int64(arena, status, TD_STR("desiredNumberScheduled"), desired);
    td_json_set_int64(arena, status, TD_STR("numberReady"), ready);
    if (is_seen) {
        td_json_set_int64(arena, status, TD_STR("observedGeneration"), item->generation);
    }
    td_workload_set_count(arena, status, TD_STR("updatedNumberScheduled"), updated);
    td_workload_set_count(arena, status, TD_STR("numberAvailable"), available);
    td_workload_set_count(arena, status, TD_STR("numberUnavailable"), desired - available);
    td_workload_set_count(arena, status, TD_STR("collisionCount"), collisions);
    (void)td_workload_put_status(item, status); /* a conflict is looked at again */
    if (ready != available) {
        td_workload_watch_available(item, pods, daemon->min_ready);
    }
}

struct daemon_live {
    const struct td_children *pods;
    td_str hash;
};

static bool daemon_is_live(const struct td_revision *revision, void *context)
{
    const struct daemon_live *live = context;
    bool is_live = td_str_equal(revision->hash, live->hash);
    for (size_t i = 0; i < live->pods->count && !is_live; i++) {
        is_live =
            td_str_equal(td_child_label(live->pods->items[i], DAEMON_HASH_LABEL), revision->hash);
    }
    return is_live;
}

static void daemon_run(struct daemon *daemon, const struct td_children *pods,
                       const struct td_revisions *revisions)
{
    struct td_workload_item *item = daemon->item;
    daemon_load_nodes(daemon);
    daemon_place_pods(daemon, pods);
    bool is_seen = td_workload_pending(item) == 0;
    if (is_seen) {
        struct td_daemon_limits limits = daemon_limits(daemon);
        td_daemon_manage(daemon->plans, daemon->count, &limits);
        if (!td_str_equal(td_json_text(td_json_get(item->spec, TD_STR("updateStrategy")), "type"),
                          TD_STR("OnDelete"))) {
            td_daemon_roll(daemon->plans, daemon->count, &limits);
        }
        daemon_act(daemon);
    }
    daemon_update_status(daemon, pods, revisions->collisions, is_seen);
    struct daemon_live live = {.pods = pods, .hash = daemon->hash};
    td_revisions_truncate(item, revisions, daemon_is_live, &live);
}

void td_daemon_sync(struct td_workload_item *item)
{
    if (item->is_deleting) {
        return;
    }
    struct td_revisions revisions;
    td_revisions_load(item, TD_STR(DAEMON_HASH_LABEL), &revisions);
    if (td_revisions_need(item, &revisions) != TD_OK) {
        return;
    }
    struct td_children pods = td_workload_claim_pods(item, NULL);
    struct daemon daemon = {
        .item = item,
        .hash = revisions.items[revisions.count - 1].hash,
        .min_ready = td_workload_min_ready(item),
    };
    daemon.template = daemon_template(item, daemon.hash);
    td_map_init(&daemon.by_name, TD_COLLECTION_OBJECTS_MAX);
    daemon_run(&daemon, &pods, &revisions);
    td_map_done(&daemon.by_name);
}
