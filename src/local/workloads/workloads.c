/*
 * The frame of the workload controllers: one observer, one queue of objects to look at, one row of
 * functions a kind.
 */
#include "local/workloads/workloads.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "kube/objectkey.h"
#include "local/api/api.h"
#include "local/jobs/workload_job.h"
#include "local/store/edit.h"
#include "local/store/observer.h"
#include "local/workloads/workload_custom.h"
#include "local/workloads/workload_daemon.h"
#include "local/workloads/workload_private.h"

#define WORKLOAD_BACKOFF_MIN (5 * TD_MILLISECOND) /* as client-go's default rate limiter */
#define WORKLOAD_BACKOFF_MAX (1000 * TD_SECOND)
#define WORKLOAD_BACKOFF_SHIFT_MAX 20
#define WORKLOAD_DEFINITIONS "customresourcedefinitions.apiextensions.k8s.io"

#define ROW(version, kind_, collection_, component_, sync_)                                        \
    .api_version = TD_STR_INIT(version), .kind = TD_STR_INIT(kind_),                               \
    .collection = TD_STR_INIT(collection_), .component = TD_STR_INIT(component_), .sync = (sync_)
#define USER(name) .user = TD_STR_INIT("system:serviceaccount:kube-system:" name)

const struct td_workload_row td_workload_rows[TD_KIND_COUNT] = {
    [TD_KIND_REPLICA_SET] = {ROW("apps/v1", "ReplicaSet", "replicasets.apps",
                                 "replicaset-controller", td_replica_sync),
                             USER("replicaset-controller")},
    [TD_KIND_REPLICATION_CONTROLLER] = {ROW("v1", "ReplicationController", "replicationcontrollers",
                                            "replication-controller", td_replica_sync),
                                        USER("replication-controller")},
    [TD_KIND_DEPLOYMENT] = {ROW("apps/v1", "Deployment", "deployments.apps",
                                "deployment-controller", td_deployment_sync)},
    [TD_KIND_STATEFUL_SET] = {ROW("apps/v1", "StatefulSet", "statefulsets.apps",
                                  "statefulset-controller", td_stateful_sync),
                              USER("statefulset-controller"), .made = td_stateful_made},
    [TD_KIND_DAEMON_SET] = {ROW("apps/v1", "DaemonSet", "daemonsets.apps", "daemonset-controller",
                                td_daemon_sync),
                            USER("daemon-set-controller")},
    [TD_KIND_JOB] = {ROW("batch/v1", "Job", "jobs.batch", "job-controller", td_job_sync),
                     USER("job-controller")},
    [TD_KIND_CRON_JOB] = {ROW("batch/v1", "CronJob", "cronjobs.batch", "cronjob-controller",
                              td_cron_sync),
                          USER("cronjob-controller"), .made = td_cron_made,
                          .made_group_version = TD_STR_INIT("/apis/batch/v1"),
                          .made_plural = TD_STR_INIT("jobs")},
};

static const td_str workload_collections[] = {
    TD_STR_INIT("pods"),
    TD_STR_INIT("nodes"),
    TD_STR_INIT("replicationcontrollers"),
    TD_STR_INIT("replicasets.apps"),
    TD_STR_INIT("deployments.apps"),
    TD_STR_INIT("statefulsets.apps"),
    TD_STR_INIT("daemonsets.apps"),
    TD_STR_INIT("controllerrevisions.apps"),
    TD_STR_INIT("jobs.batch"),
    TD_STR_INIT("cronjobs.batch"),
    TD_STR_INIT(WORKLOAD_DEFINITIONS),
};

/* ---- Queues ---- */

void td_workload_enqueue_after(struct td_workload_control *control, td_str ns, td_str name,
                               td_duration after)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = td_object_key_write(TD_OBJECT_KEY(ns, name), buffer);
    struct td_error err = TD_ERROR_INIT;
    int code = after > 0 ? td_queue_add_after(control->queue, key, after, &err)
                         : td_queue_add(control->queue, key, &err);
    if (code != TD_OK) {
        td_log_line(control->all->log, TD_LOG_ERROR, "workload queue full, workload dropped",
                    TD_LOG_S("kind", control->row->kind), TD_LOG_S("name", key),
                    TD_LOG_C("error", err.message));
    }
}

void td_workload_enqueue(struct td_workload_control *control, td_str ns, td_str name)
{
    td_workload_enqueue_after(control, ns, name, 0);
}

/* The row of a custom kind is another one after each change of its definition. */
static bool workload_find_resource(struct td_workload_control *control)
{
    const struct td_resources *resources = td_api_resources(control->all->api);
    if (control->is_built_in) {
        return true;
    }
    control->resource = NULL;
    for (size_t i = td_resources_count(resources); i > 0 && !control->resource; i--) {
        const struct td_resource *row = td_resources_row(resources, i - 1); /* custom ones last */
        control->resource = td_str_equal(row->collection, control->row->collection) ? row : NULL;
    }
    return control->resource != NULL;
}

static enum td_job_result workload_work(td_str key, void *context)
{
    struct td_workload_control *control = context;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_object_key of = td_object_key_read(key);
    struct td_workload_item item;
    if (workload_find_resource(control) &&
        td_workload_load(control, &arena, of.namespace, of.name, &item)) {
        control->row->sync(&item);
    }
    return TD_JOB_DONE;
}

/* ---- Owners whose sync fails ---- */

struct td_workload_owner *td_workload_owner(const struct td_workloads *all, td_str uid)
{
    return td_map_get(&all->owners, uid);
}

struct td_workload_owner *td_workload_owner_need(struct td_workloads *all, td_str uid)
{
    struct td_workload_owner *owner = td_map_get(&all->owners, uid);
    if (!owner) {
        owner = td_alloc_zero(1, sizeof(*owner) + uid.len);
        owner->uid = td_text_behind(owner + 1, uid);
        (void)td_map_put(&all->owners, owner->uid, owner); /* room for every object */
    }
    return owner;
}

static void workload_owner_free(struct td_workload_owner *owner)
{
    if (owner) {
        td_text_free(owner->message);
        td_free(owner);
    }
}

void td_workload_owner_clear(struct td_workloads *all, td_str uid)
{
    workload_owner_free(td_map_remove(&all->owners, uid));
}

static td_duration workload_backoff(unsigned failures)
{
    unsigned shift = failures > 0 ? failures - 1 : 0;
    shift = shift < WORKLOAD_BACKOFF_SHIFT_MAX ? shift : WORKLOAD_BACKOFF_SHIFT_MAX;
    td_duration pause = WORKLOAD_BACKOFF_MIN << shift;
    return pause < WORKLOAD_BACKOFF_MAX ? pause : WORKLOAD_BACKOFF_MAX;
}

/* ---- What became of pods ---- */

static void workload_refused(struct td_workload_control *control, td_str uid, td_str name,
                             const struct td_pod_made *made)
{
    struct td_workloads *all = control->all;
    struct td_workload_owner *owner = td_workload_owner_need(all, uid);
    owner->failures++;
    owner->batch = 0;
    owner->retry_at = td_api_now(all->api) + workload_backoff(owner->failures);
    td_text_set(&owner->message, made->message);
    td_workload_enqueue_after(control, made->ns, name, workload_backoff(owner->failures));
}

static void workload_tell(struct td_workload_control *control, const struct td_pod_made *made)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    bool is_made = made->code == TD_OK;
    td_str text = is_made
                      ? td_arena_format(&arena, "Created pod: %.*s", TD_STR_ARG(made->pod))
                      : td_arena_format(&arena, "Error creating: %.*s", TD_STR_ARG(made->message));
    td_edit_event(control->all->api, made->owner, is_made ? TD_STR("Normal") : TD_STR("Warning"),
                  is_made ? TD_STR("SuccessfulCreate") : TD_STR("FailedCreate"),
                  control->row->component, text);
}

static void workload_made(void *context, const struct td_pod_made *made)
{
    struct td_workload_control *control = context;
    const struct td_json *metadata = td_json_get(made->owner, TD_STR("metadata"));
    td_str name = td_json_text(metadata, "name");
    td_str uid = td_json_text(metadata, "uid");
    if (made->code == TD_OK) {
        struct td_workload_owner *owner = td_workload_owner(control->all, uid);
        if (owner && owner->failures > 0) {
            td_workload_owner_clear(control->all, uid);
        }
        td_child_index_refresh(&control->all->pod_index, made->ns, made->pod);
    } else if (made->code != TD_GONE) { /* in a namespace that goes nothing will come of it */
        workload_refused(control, uid, name, made);
    }
    if (made->code != TD_GONE) {
        (control->row->made ? control->row->made : workload_tell)(control, made);
    }
    td_workload_enqueue(control, made->ns, name);
}

/* ---- Observing ---- */

static struct td_workload_control *workload_control_of(struct td_workloads *all,
                                                       const struct td_child *child)
{
    for (size_t i = 0; i < TD_KIND_COUNT; i++) {
        struct td_workload_control *control = &all->controls[i];
        if (td_str_equal(child->controller_kind, control->row->kind) &&
            td_str_equal(child->controller_api_version, control->row->api_version)) {
            return control;
        }
    }
    return td_workload_custom_control(all, child);
}

static void workload_enqueue_controller(struct td_workloads *all, const struct td_child *child)
{
    struct td_workload_control *control = workload_control_of(all, child);
    if (control) {
        td_workload_enqueue(control, child->stored->ns, child->controller_name);
    }
}

/* A child without controller: those that select it may want it. */
static void workload_offer(struct td_workloads *all, enum td_workload_kinds kind,
                           const struct td_child *orphan)
{
    struct td_workload_control *control = &all->controls[kind];
    const struct td_collection *collection =
        td_store_find(td_api_store(all->api), control->row->collection);
    const struct td_stored *stored;
    struct td_collection_iter iter = td_collection_walk(collection, orphan->stored->ns);
    while ((stored = td_collection_iter_next(&iter))) {
        td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
        struct td_workload_item item;
        if (!td_workload_load(control, &arena, stored->ns, stored->name, &item)) {
            continue;
        }
        struct td_selector selector = td_workload_selector(&item);
        if (td_selector_matches(&selector, &orphan->labels)) {
            td_workload_enqueue(control, stored->ns, stored->name);
        }
    }
    td_collection_iter_done(&iter);
}

/* Did the child lose its controller, or change its labels? */
static bool workload_is_news(const struct td_child *before, const struct td_child *after)
{
    return after && after->controller_uid.len == 0 && !after->is_deleting &&
           (!before || before->controller_uid.len > 0 ||
            !td_labels_equal(&before->labels, &after->labels));
}

static void workload_child_changed(struct td_workloads *all, const struct td_child *before,
                                   const struct td_child *after)
{
    if (before && (!after || !td_str_equal(before->controller_uid, after->controller_uid))) {
        workload_enqueue_controller(all, before);
    }
    if (after) {
        workload_enqueue_controller(all, after);
    }
}

/* A Deployment that recreates its pods waits for the last old one to go, and hears of nothing but
 * its ReplicaSets. */
static void workload_pod_gone(struct td_workloads *all, const struct td_child *pod)
{
    if (!td_str_equal(pod->controller_kind, TD_STR("ReplicaSet"))) {
        return;
    }
    const struct td_child *set =
        td_child_index_get(&all->replica_set_index, pod->stored->ns, pod->controller_name);
    if (set) {
        workload_enqueue_controller(all, set);
    }
}

/* ---- Pods that a Job left behind ---- */

/* Is there no Job any more that would take its finalizer off the pod? */
static bool workload_is_stray(const struct td_workloads *all, const struct td_child *pod)
{
    if (!pod->pod.has_tracking_finalizer) {
        return false;
    }
    const struct td_stored *job = td_store_get(td_api_store(all->api), TD_STR("jobs.batch"),
                                               pod->stored->ns, pod->controller_name);
    return pod->controller_uid.len == 0 || (td_str_equal(pod->controller_kind, TD_STR("Job")) &&
                                            !(job && td_str_equal(job->uid, pod->controller_uid)));
}

static void workload_note_stray(struct td_workloads *all, const struct td_child *pod)
{
    if (workload_is_stray(all, pod)) {
        (void)td_queue_add(all->strays, pod->key, NULL); /* as many as there are pods at most */
    }
}

static enum td_job_result workload_release_stray(td_str key, void *context)
{
    struct td_workloads *all = context;
    const struct td_child *pod = td_map_get(&all->pod_index.children, key);
    if (pod && workload_is_stray(all, pod)) {
        struct td_object_key of = td_object_key_read(key);
        td_job_release_pod(all, of.namespace, of.name);
    }
    return TD_JOB_DONE;
}

static void workload_job_gone(struct td_workloads *all, td_str uid)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_children pods = td_child_index_list(&all->pod_index, &arena, uid);
    for (size_t i = 0; i < pods.count; i++) {
        workload_note_stray(all, pods.items[i]);
    }
}

static void workload_pod_changed(const struct td_child *before, const struct td_child *after,
                                 void *context)
{
    struct td_workloads *all = context;
    if (before && after && td_child_is_same(before, after)) {
        return;
    }
    workload_child_changed(all, before, after);
    if (after) {
        workload_note_stray(all, after);
    }
    if (before && (!after || after->pod.phase != before->pod.phase)) {
        workload_pod_gone(all, before);
    }
    if (workload_is_news(before, after)) {
        workload_offer(all, TD_KIND_REPLICA_SET, after);
        workload_offer(all, TD_KIND_REPLICATION_CONTROLLER, after);
        workload_offer(all, TD_KIND_STATEFUL_SET, after);
        workload_offer(all, TD_KIND_DAEMON_SET, after);
        workload_offer(all, TD_KIND_JOB, after);
    }
}

static void workload_set_changed(const struct td_child *before, const struct td_child *after,
                                 void *context)
{
    struct td_workloads *all = context;
    workload_child_changed(all, before, after);
    if (workload_is_news(before, after)) {
        workload_offer(all, TD_KIND_DEPLOYMENT, after);
    }
}

static void workload_other_changed(const struct td_child *before, const struct td_child *after,
                                   void *context)
{
    workload_child_changed(context, before, after);
}

static void workload_observe(const struct td_resource *resource, struct td_stored *before,
                             struct td_stored *after, void *context)
{
    struct td_workloads *all = context;
    const struct td_stored *stored = after ? after : before;
    if (td_str_equal(resource->collection, TD_STR("pods"))) {
        td_child_index_refresh(&all->pod_index, stored->ns, stored->name);
        return;
    }
    if (td_str_equal(resource->collection, TD_STR("nodes"))) {
        td_workload_node_changed(all, before, after);
        return;
    }
    if (td_str_equal(resource->collection, TD_STR(WORKLOAD_DEFINITIONS))) {
        td_workload_custom_definition(all, stored->name, after);
        return;
    }
    if (td_str_equal(resource->collection, all->revision_index.collection)) {
        td_child_index_refresh(&all->revision_index, stored->ns, stored->name);
        return;
    }
    if (td_str_equal(resource->collection, all->replica_set_index.collection)) {
        td_child_index_refresh(&all->replica_set_index, stored->ns, stored->name);
    } else if (td_str_equal(resource->collection, all->job_index.collection)) {
        td_child_index_refresh(&all->job_index, stored->ns, stored->name);
    }
    for (size_t i = 0; i < TD_KIND_COUNT; i++) {
        if (!td_str_equal(resource->collection, all->controls[i].row->collection)) {
            continue;
        }
        if (after) {
            td_workload_enqueue(&all->controls[i], stored->ns, stored->name);
        } else {
            td_workload_owner_clear(all, stored->uid);
        }
    }
    if (!after && td_str_equal(resource->collection, all->job_index.collection)) {
        workload_job_gone(all, stored->uid);
    }
}

/* ---- Life ---- */

void td_workload_control_init(struct td_workloads *all, struct td_workload_control *control,
                              const struct td_workload_row *row)
{
    *control = (struct td_workload_control){.all = all, .row = row};
    control->queue = td_queue_new(td_api_loop(all->api), workload_work, control, TD_WORK_QUEUE_MAX);
    if (row->user.len > 0) {
        const struct td_pod_maker_options options = {
            .api = all->api,
            .user = row->user,
            .group_version = row->made_group_version,
            .plural = row->made_plural,
            .fn = workload_made,
            .context = control,
        };
        control->maker = td_pod_maker_new(&options);
    }
}

void td_workload_control_done(struct td_workload_control *control)
{
    td_pod_maker_free(control->maker);
    td_queue_free(control->queue);
}

struct td_workloads *td_workloads_new(struct td_api *api, struct td_log *log)
{
    struct td_workloads *all = td_alloc_zero(1, sizeof(*all));
    all->api = api;
    all->log = log;
    all->pods = td_api_kind(api, TD_STR("v1"), TD_STR("Pod"));
    all->claims = td_api_kind(api, TD_STR("v1"), TD_STR("PersistentVolumeClaim"));
    all->revisions = td_api_kind(api, TD_STR("apps/v1"), TD_STR("ControllerRevision"));
    struct td_store *store = td_api_store(api);
    td_child_index_init(&all->pod_index, store, TD_STR("pods"), workload_pod_changed, all);
    td_child_index_init(&all->replica_set_index, store, TD_STR("replicasets.apps"),
                        workload_set_changed, all);
    td_child_index_init(&all->revision_index, store, TD_STR("controllerrevisions.apps"),
                        workload_other_changed, all);
    td_child_index_init(&all->job_index, store, TD_STR("jobs.batch"), workload_other_changed, all);
    td_child_index_init(&all->node_index, store, TD_STR("nodes"), workload_other_changed, all);
    td_map_init(&all->owners, TD_COLLECTION_OBJECTS_MAX);
    td_map_init(&all->customs, TD_CUSTOM_WORKLOADS_MAX);
    all->strays =
        td_queue_new(td_api_loop(api), workload_release_stray, all, TD_COLLECTION_OBJECTS_MAX);
    for (size_t i = 0; i < TD_KIND_COUNT; i++) {
        const struct td_workload_row *row = &td_workload_rows[i];
        td_workload_control_init(all, &all->controls[i], row);
        all->controls[i].is_built_in = true;
        all->controls[i].resource = td_api_kind(api, row->api_version, row->kind);
    }
    all->observer = td_observer_new(api, workload_collections, TD_COUNT(workload_collections),
                                    workload_observe, all);
    return all;
}

void td_workloads_free(struct td_workloads *all)
{
    if (!all) {
        return;
    }
    td_observer_free(all->observer);
    for (size_t i = 0; i < TD_KIND_COUNT; i++) {
        td_workload_control_done(&all->controls[i]);
    }
    td_workload_custom_free_all(all);
    td_queue_free(all->strays);
    td_child_index_done(&all->pod_index);
    td_child_index_done(&all->replica_set_index);
    td_child_index_done(&all->revision_index);
    td_child_index_done(&all->job_index);
    td_child_index_done(&all->node_index);
    for (struct td_map_walk at = {.map = &all->owners}; td_map_step(&at);) {
        workload_owner_free(at.value);
    }
    td_map_done(&all->owners);
    td_free(all);
}
