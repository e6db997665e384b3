/*
 * Jobs: pods that run to their end. How pods are counted is in workload_job_track.c, what policies
 * say of them in workload_job_policy.c.
 */
#include "local/jobs/workload_job.h"

#include "base/error.h"
#include "local/store/edit.h"
#include "local/workloads/workload_rank.h"

#define JOB_FINALIZER "batch.kubernetes.io/job-tracking"
#define JOB_INDEX "batch.kubernetes.io/job-completion-index"
#define JOB_BURST ((int64_t)500)

/* ---- Pods ---- */

struct job_work {
    struct td_job *job;
    int64_t *indexes; /* of the pods to make; NULL when not indexed */
};

static void job_add_index_variable(struct td_arena *arena, struct td_json *containers)
{
    for (struct td_json *c = td_json_first_item(containers); c; c = c->next) {
        struct td_json *list = td_json_ensure_array(arena, c, TD_STR("env"));
        struct td_json *variable = td_json_new_object(arena);
        td_json_set_str(arena, variable, TD_STR("name"), TD_STR("JOB_COMPLETION_INDEX"));
        struct td_json *from = td_json_ensure_object(arena, variable, TD_STR("valueFrom"));
        struct td_json *field = td_json_ensure_object(arena, from, TD_STR("fieldRef"));
        td_json_set_str(arena, field, TD_STR("fieldPath"),
                        TD_STR("metadata.labels['" JOB_INDEX "']"));
        td_json_append(list, variable);
    }
}

static void job_set_index(struct td_workload_item *item, struct td_json *pod, int64_t index)
{
    struct td_arena *arena = item->arena;
    struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
    struct td_json *spec = td_json_get(pod, TD_STR("spec"));
    td_str text = td_arena_format(arena, "%lld", (long long)index);
    td_json_set_str(arena, td_json_ensure_object(arena, metadata, TD_STR("annotations")),
                    TD_STR(JOB_INDEX), text);
    td_json_set_str(arena, td_json_ensure_object(arena, metadata, TD_STR("labels")),
                    TD_STR(JOB_INDEX), text);
    td_str name = td_arena_format(arena, "%.*s-%.*s", TD_STR_ARG(item->name), TD_STR_ARG(text));
    td_json_set_str(arena, spec, TD_STR("hostname"), name);
    td_json_set_str(arena, metadata, TD_STR("generateName"),
                    td_arena_format(arena, "%.*s-", TD_STR_ARG(name)));
    job_add_index_variable(arena, td_json_get(spec, TD_STR("containers")));
    job_add_index_variable(arena, td_json_get(spec, TD_STR("initContainers")));
}

/* The pod knows how often its index has failed before it. */
static void job_set_failures(struct td_workload_item *item, struct td_json *pod,
                             const struct td_job_failure *last)
{
    struct td_arena *arena = item->arena;
    struct td_json *annotations =
        td_json_get(td_json_get(pod, TD_STR("metadata")), TD_STR("annotations"));
    int64_t failures = last ? last->failures + last->is_counted : 0;
    int64_t ignored = last ? last->ignored + !last->is_counted : 0;
    td_json_set_str(arena, annotations, TD_STR(TD_JOB_INDEX_FAILURES),
                    td_arena_format(arena, "%lld", (long long)failures));
    if (ignored > 0) {
        td_json_set_str(arena, annotations, TD_STR(TD_JOB_INDEX_IGNORED),
                        td_arena_format(arena, "%lld", (long long)ignored));
    }
}

static struct td_json *job_make(struct td_workload_item *item, size_t number, void *context)
{
    const struct job_work *work = context;
    struct td_json *pod = td_pod_from_template(item->arena, item->object,
                                               td_json_get(item->spec, TD_STR("template")));
    struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
    struct td_json *finalizers = td_json_ensure_array(item->arena, metadata, TD_STR("finalizers"));
    td_json_append(finalizers, td_json_new_string(item->arena, TD_STR(JOB_FINALIZER)));
    if (work->indexes) {
        job_set_index(item, pod, work->indexes[number]);
    }
    if (work->indexes && work->job->index_limit >= 0) {
        job_set_failures(item, pod, td_job_held(work->job, work->indexes[number]));
    }
    return pod;
}

/* The mark goes first: a pod that we remove did not fail. */
static void job_delete_pod(struct td_job *job, const struct td_child *pod)
{
    struct td_workload_item *item = job->item;
    td_job_release_pod(item->control->all, item->ns, pod->stored->name);
    int code = td_workload_delete_pod(item, pod);
    job->active_count--;
    job->ready -= pod->pod.is_ready;
    job->terminating += code == TD_OK && pod->pod.node.len > 0;
}

static void job_delete_active(struct td_job *job)
{
    for (size_t i = 0; i < job->active.count; i++) {
        job_delete_pod(job, job->active.items[i]);
    }
    job->active.count = 0;
}

/* The Job is over: its pods go and keep their marks until they are counted. */
static void job_end_active(struct td_job *job)
{
    for (size_t i = 0; i < job->active.count; i++) {
        const struct td_child *pod = job->active.items[i];
        job->ready -= pod->pod.is_ready;
        job->terminating += td_workload_delete_pod(job->item, pod) == TD_OK;
        job->active_count--;
    }
    job->active.count = 0;
}

/* ---- How many ---- */

static void job_delete_surplus(struct td_job *job, size_t surplus)
{
    struct td_workload_item *item = job->item;
    struct td_rank_pod *order = td_arena_array(item->arena, struct td_rank_pod, job->active.count);
    for (size_t i = 0; i < job->active.count; i++) {
        order[i] = td_pod_rank(job->active.items[i], i);
    }
    td_rank_sort(order, job->active.count, item->now);
    for (size_t i = 0; i < surplus && i < job->active.count; i++) {
        job_delete_pod(job, job->active.items[order[i].index]);
    }
}

/* Indexes that run twice, or that the Job does not have any more. */
static bool job_delete_strays(struct td_job *job, struct td_job_indexes *running)
{
    bool is_changed = false;
    for (size_t i = 0; job->is_indexed && i < job->active.count; i++) {
        int64_t index = td_job_pod_index(job->active.items[i]);
        if (index < 0 || index >= job->completions || td_job_indexes_has(running, index) ||
            td_job_indexes_has(&job->indexes, index)) {
            job_delete_pod(job, job->active.items[i]);
            is_changed = true;
        } else {
            td_job_indexes_add(running, index);
        }
    }
    return is_changed;
}

/* After failures the next pod waits, unless each index waits for itself. True when it has to. */
static bool job_waits(struct td_job *job)
{
    struct td_workload_item *item = job->item;
    if (job->index_limit >= 0) {
        return false;
    }
    td_time success = TD_TIME_NONE;
    td_time failure = TD_TIME_NONE;
    for (size_t i = 0; i < job->pods.count; i++) {
        const struct td_pod_facts *pod = &job->pods.items[i]->pod;
        td_time end = pod->finished != TD_TIME_NONE ? pod->finished : job->pods.items[i]->created;
        if (pod->phase == TD_POD_SUCCEEDED && end > success) {
            success = end;
        } else if (pod->phase == TD_POD_FAILED && end > failure) {
            failure = end;
        }
    }
    int64_t failures = 0;
    for (size_t i = 0; i < job->pods.count; i++) {
        const struct td_pod_facts *pod = &job->pods.items[i]->pod;
        td_time end = pod->finished != TD_TIME_NONE ? pod->finished : job->pods.items[i]->created;
        failures += pod->phase == TD_POD_FAILED && end > success;
    }
    if (failures == 0) {
        return false;
    }
    td_time retry = td_job_retry_at(failures, failure);
    if (retry > item->now) {
        td_workload_enqueue_after(item->control, item->ns, item->name, retry - item->now);
    }
    return retry > item->now;
}

/* May the index have another pod? After a failure it waits. */
static bool job_index_waits(struct td_job *job, int64_t index)
{
    struct td_workload_item *item = job->item;
    const struct td_job_failure *last = job->index_limit >= 0 ? td_job_held(job, index) : NULL;
    if (!last) {
        return false;
    }
    const struct td_pod_facts *pod = &last->pod->pod;
    td_time end = pod->finished != TD_TIME_NONE ? pod->finished : last->pod->created;
    td_time retry = td_job_retry_at(last->failures + last->ignored + 1, end);
    if (retry > item->now) {
        td_workload_enqueue_after(item->control, item->ns, item->name, retry - item->now);
    }
    return retry > item->now;
}

/* The first indexes without an active pod; of those the ones that need not wait. */
static int64_t job_choose(struct td_job *job, const struct td_job_indexes *running,
                          int64_t *indexes, int64_t missing)
{
    int64_t seen = 0;
    int64_t found = 0;
    for (int64_t i = 0; i < (int64_t)job->indexes.size && seen < missing; i++) {
        if (!td_job_indexes_has(&job->indexes, i) && !td_job_indexes_has(running, i) &&
            !td_job_indexes_has(&job->failed_indexes, i)) {
            seen++;
            if (!job_index_waits(job, i)) {
                indexes[found++] = i;
            }
        }
    }
    return found;
}

static void job_create(struct td_job *job, int64_t missing, const struct td_job_indexes *running)
{
    struct td_workload_item *item = job->item;
    struct job_work work = {.job = job};
    missing = missing < JOB_BURST ? missing : JOB_BURST;
    if (job->is_indexed) {
        work.indexes = td_arena_array(item->arena, int64_t, (size_t)missing);
        missing = job_choose(job, running, work.indexes, missing);
    }
    const struct td_workloads *all = item->control->all;
    td_workload_create_pods(item, (size_t)missing, job_make, &work);
    const struct td_workload_owner *owner = td_workload_owner(all, item->uid);
    job->active_count += owner && owner->failures > 0 ? 0 : missing;
}

static void job_manage(struct td_job *job)
{
    struct td_workload_item *item = job->item;
    if (job->is_suspended) {
        job_delete_active(job);
        return;
    }
    struct td_job_indexes running = td_job_indexes_new(item->arena, job->indexes.size);
    if (job_delete_strays(job, &running)) {
        return;
    }
    const struct td_job_need need = {
        .parallelism = job->parallelism,
        .completions = job->completions,
        .succeeded = job->succeeded,
        .active = job->active_count,
    };
    int64_t want = td_job_want_active(&need);
    int64_t waiting = job->replaces_failed_only ? job->terminating : 0;
    for (size_t i = 0; job->replaces_failed_only && i < job->pods.count; i++) {
        const struct td_child *pod = job->pods.items[i];
        if (pod->is_deleting && pod->pod.phase != TD_POD_FAILED) {
            td_job_indexes_add(&running, td_job_pod_index(pod));
        }
    }
    if (job->active_count > want) {
        job_delete_surplus(job, (size_t)(job->active_count - want));
    } else if (want - waiting > job->active_count && td_workload_can_create(item) &&
               !job_waits(job)) {
        job_create(job, want - waiting - job->active_count, &running);
    }
}

/* ---- How it ends ---- */

static void job_end(struct td_job *job, const char *type, const char *reason, const char *message)
{
    job->end_type = td_str_from(type);
    job->reason = td_str_from(reason);
    job->message = td_str_from(message);
}

/* What an earlier pass found stays so. */
static void job_remember_end(struct td_job *job)
{
    static const char *const interim[][2] = {
        {"SuccessCriteriaMet", "Complete"},
        {"FailureTarget", "Failed"},
    };
    for (size_t i = 0; i < 2 && job->end_type.len == 0; i++) {
        const struct td_json *c = td_condition_find(job->status, td_str_from(interim[i][0]));
        if (td_str_equal(td_json_text(c, "status"), TD_STR("True"))) {
            job->end_type = td_str_from(interim[i][1]);
            job->reason = td_json_text(c, "reason");
            job->message = td_json_text(c, "message");
        }
    }
}

static bool job_restarts_too_often(const struct td_job *job, int64_t limit)
{
    const struct td_json *spec = td_json_get_path(job->item->spec, "template.spec");
    if (!td_str_equal(td_json_text(spec, "restartPolicy"), TD_STR("OnFailure"))) {
        return false;
    }
    int64_t restarts = 0;
    for (size_t i = 0; i < job->active.count; i++) {
        restarts += job->active.items[i]->pod.restarts_total;
    }
    return limit == 0 ? restarts > 0 : restarts >= limit;
}

static void job_judge_failure(struct td_job *job)
{
    struct td_workload_item *item = job->item;
    int64_t limit = td_json_get_int64(item->spec, TD_STR("backoffLimit"), 6);
    int64_t deadline = td_json_get_int64(item->spec, TD_STR("activeDeadlineSeconds"), -1);
    td_time start = td_time_member(job->status, TD_STR("startTime"));
    if (job->fail_message.len > 0) {
        job_end(job, "Failed", "PodFailurePolicy", "");
        job->message = job->fail_message;
    } else if (job->failed > limit || job_restarts_too_often(job, limit)) {
        job_end(job, "Failed", "BackoffLimitExceeded",
                "Job has reached the specified backoff limit");
    } else if (deadline >= 0 && start != TD_TIME_NONE && !job->is_suspended) {
        td_duration left = start + deadline * TD_SECOND - item->now;
        if (left <= 0) {
            job_end(job, "Failed", "DeadlineExceeded",
                    "Job was active longer than specified deadline");
        } else {
            td_workload_enqueue_after(item->control, item->ns, item->name, left);
        }
    }
}

/* Indexes that failed for good, and the policy that is content with some. */
static void job_judge_indexes(struct td_job *job)
{
    struct td_workload_item *item = job->item;
    int64_t most = td_json_get_int64(item->spec, TD_STR("maxFailedIndexes"), -1);
    int64_t failed = (int64_t)td_job_indexes_count(&job->failed_indexes);
    td_str message;
    if (job->index_limit >= 0 && most >= 0 && failed > most) {
        job_end(job, "Failed", "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes");
    } else if (job->index_limit >= 0 && failed > 0 && failed + job->succeeded >= job->completions) {
        job_end(job, "Failed", "FailedIndexes", "Job has failed indexes");
    } else if (td_job_judge_success(item->arena, td_json_get(item->spec, TD_STR("successPolicy")),
                                    &job->indexes, &message)) {
        job_end(job, "Complete", "SuccessPolicy", "");
        job->message = message;
    }
}

static void job_judge_suspension(struct td_job *job)
{
    struct td_workload_item *item = job->item;
    if (job->is_suspended) {
        if (td_job_set_condition(job, TD_STR("Suspended"), true, TD_STR("JobSuspended"),
                                 TD_STR("Job suspended"))) {
            td_workload_event(item, false, "Suspended", "Job suspended");
            (void)td_json_remove(job->status, TD_STR("startTime")); /* it may not be there */
        }
    } else if (td_job_set_condition(job, TD_STR("Suspended"), false, TD_STR("JobResumed"),
                                    TD_STR("Job resumed"))) {
        td_workload_event(item, false, "Resumed", "Job resumed");
        td_json_set(item->arena, job->status, TD_STR("startTime"),
                    td_workload_time(item->arena, item->now));
    }
}

static void job_decide(struct td_job *job)
{
    struct td_workload_item *item = job->item;
    bool is_sure = td_workload_pending(item) == 0;
    job_remember_end(job);
    if (job->end_type.len == 0) {
        job_judge_failure(job);
    }
    if (job->end_type.len == 0 && job->is_indexed) {
        job_judge_indexes(job);
    }
    if (job->end_type.len > 0) {
        if (is_sure) {
            td_job_close(job);
        }
        job_end_active(job);
        if (!is_sure) {
            job->end_type = TD_STR_EMPTY; /* a pod may still come */
        }
        return;
    }
    if (is_sure && !item->is_deleting) {
        job_manage(job);
    }
    const struct td_job_need need = {
        .completions = job->completions,
        .succeeded = job->succeeded,
        .active = job->active_count + (int64_t)td_workload_pending(item),
    };
    if (td_job_is_complete(&need)) {
        job_end(job, "Complete", "CompletionsReached", "Reached expected number of succeeded pods");
    } else if (is_sure && !item->is_deleting) {
        job_judge_suspension(job);
    }
}

/* ---- Afterwards ---- */

static void job_expire(struct td_workload_item *item, const struct td_json *status, td_str end_type)
{
    struct td_workloads *all = item->control->all;
    int64_t ttl = td_json_get_int64(item->spec, TD_STR("ttlSecondsAfterFinished"), -1);
    td_time end = td_time_member(td_condition_find(status, end_type), TD_STR("lastTransitionTime"));
    if (ttl < 0 || end == TD_TIME_NONE || item->is_deleting) {
        return;
    }
    td_duration left = end + ttl * TD_SECOND - item->now;
    if (left > 0) {
        td_workload_enqueue_after(item->control, item->ns, item->name, left);
        return;
    }
    (void)td_edit_delete(all->api, item->control->resource, item->ns, item->name, item->uid,
                         TD_STR("Foreground"), -1, NULL); /* gone already is fine */
}

/* Pods of a finished Job are not tracked any more. */
static void job_release_rest(struct td_workload_item *item)
{
    struct td_workloads *all = item->control->all;
    struct td_children pods = td_child_index_list(&all->pod_index, item->arena, item->uid);
    for (size_t i = 0; i < pods.count; i++) {
        if (pods.items[i]->pod.has_tracking_finalizer) {
            td_job_release_pod(all, item->ns, pods.items[i]->stored->name);
        }
    }
}

void td_job_sync(struct td_workload_item *item)
{
    const struct td_json *old = td_json_get(item->object, TD_STR("status"));
    td_str end_type = td_job_end_of(old);
    if (end_type.len > 0) {
        job_release_rest(item);
        job_expire(item, old, end_type);
        return;
    }
    struct td_job job = {
        .item = item,
        .status = td_workload_status(item),
        .pods = td_workload_claim_pods(item, NULL),
        .is_indexed = td_str_equal(td_json_text(item->spec, "completionMode"), TD_STR("Indexed")),
        .is_suspended = td_json_get_bool(item->spec, TD_STR("suspend"), false),
        .replaces_failed_only =
            td_str_equal(td_json_text(item->spec, "podReplacementPolicy"), TD_STR("Failed")),
        .parallelism = td_json_get_int64(item->spec, TD_STR("parallelism"), 1),
        .completions = td_json_get_int64(item->spec, TD_STR("completions"), -1),
        .failure_policy = td_json_get(item->spec, TD_STR("podFailurePolicy")),
    };
    size_t size = job.is_indexed && job.completions > 0 ? (size_t)job.completions : 0;
    job.indexes = td_job_indexes_new(item->arena, size);
    td_job_indexes_read(&job.indexes, td_json_text(old, "completedIndexes"));
    job.index_limit =
        job.is_indexed ? td_json_get_int64(item->spec, TD_STR("backoffLimitPerIndex"), -1) : -1;
    job.failed_indexes = td_job_indexes_new(item->arena, size);
    td_job_indexes_read(&job.failed_indexes, td_json_text(old, "failedIndexes"));
    if (!td_json_get(job.status, TD_STR("startTime")) && !job.is_suspended) {
        td_json_set(item->arena, job.status, TD_STR("startTime"),
                    td_workload_time(item->arena, item->now));
    }
    td_job_track(&job);
    job_decide(&job);
    td_job_settle(&job);
}
