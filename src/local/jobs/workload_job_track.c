/*
 * A pod that ended is counted once, even when the process dies in between: first its uid is written
 * into the status (uncountedTerminatedPods), then its finalizer is taken away, then the number goes
 * up and the uid is removed. A uid on the list whose pod has no finalizer any more was not counted.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "local/jobs/workload_job.h"
#include "local/store/edit.h"

#define JOB_FINALIZER "batch.kubernetes.io/job-tracking"
#define JOB_INDEX_LABEL "batch.kubernetes.io/job-completion-index"

int64_t td_job_pod_index(const struct td_child *pod)
{
    const td_str *text = td_labels_get(&pod->labels, TD_STR(JOB_INDEX_LABEL));
    int64_t index;
    return text && td_str_to_int64(*text, &index) && index >= 0 ? index : -1;
}

static bool track_is_true(const struct td_json *status, td_str type)
{
    return td_str_equal(td_json_text(td_condition_find(status, type), "status"), TD_STR("True"));
}

td_str td_job_end_of(const struct td_json *status)
{
    if (track_is_true(status, TD_STR("Complete"))) {
        return TD_STR("Complete");
    }
    return track_is_true(status, TD_STR("Failed")) ? TD_STR("Failed") : TD_STR_EMPTY;
}

bool td_job_set_condition(struct td_job *job, td_str type, bool is_true, td_str reason,
                          td_str message)
{
    struct td_workload_item *item = job->item;
    td_str status = is_true ? TD_STR("True") : TD_STR("False");
    const struct td_json *old = td_condition_find(job->status, type);
    if ((!old && !is_true) || (old && td_str_equal(td_json_text(old, "status"), status) &&
                               td_str_equal(td_json_text(old, "reason"), reason))) {
        return false;
    }
    const struct td_condition condition = {
        .type = type, .status = status, .reason = reason, .message = message};
    td_workload_condition_put(item->arena, job->status,
                              td_workload_condition(item, &condition, "lastProbeTime"));
    return true;
}

/* ---- The list ---- */

static struct td_json *track_list(struct td_job *job, td_str key)
{
    struct td_arena *arena = job->item->arena;
    struct td_json *uncounted =
        td_json_ensure_object(arena, job->status, TD_STR("uncountedTerminatedPods"));
    struct td_json *list = td_json_ensure_array(arena, uncounted, key);
    return list;
}

static void track_read_list(struct td_map *listed, const struct td_json *list)
{
    for (struct td_json *u = td_json_first_item(list); u; u = u->next) {
        if (u->type == TD_JSON_TYPE_STRING) {
            (void)td_map_put(listed, u->text, u); /* no more than the status has room for */
        }
    }
}

/* Has it ended badly? One that is being deleted will, unless the Job waits for its end. */
static bool track_is_failed(const struct td_job *job, const struct td_child *pod)
{
    return pod->pod.phase == TD_POD_FAILED ||
           (pod->is_deleting && pod->pod.phase != TD_POD_SUCCEEDED && !job->replaces_failed_only);
}

static void track_list_pod(struct td_job *job, const struct td_child *pod, bool is_success)
{
    struct td_arena *arena = job->item->arena;
    struct td_json *list = track_list(job, is_success ? TD_STR("succeeded") : TD_STR("failed"));
    td_json_append(list, td_json_new_string(arena, td_arena_copy_str(arena, pod->stored->uid)));
    job->is_news = true;
}

/* ---- Failures ---- */

static int track_compare(const void *left, const void *right)
{
    const struct td_job_failure *a = left;
    const struct td_job_failure *b = right;
    if (a->index != b->index) {
        return a->index < b->index ? -1 : 1;
    }
    int64_t a_count = a->failures + a->ignored;
    int64_t b_count = b->failures + b->ignored;
    if (a_count != b_count) {
        return a_count < b_count ? -1 : 1;
    }
    td_time a_end = a->pod->pod.finished;
    td_time b_end = b->pod->pod.finished;
    return a_end != b_end ? (a_end < b_end ? -1 : 1)
                          : td_str_compare(a->pod->stored->uid, b->pod->stored->uid);
}

/* Rules are asked only where there are any: they need the whole pod. */
static void track_judge(struct td_job *job, struct td_job_failure *failure)
{
    struct td_workload_item *item = job->item;
    struct td_workloads *all = item->control->all;
    struct td_json *pod;
    failure->index = job->is_indexed ? td_job_pod_index(failure->pod) : -1;
    failure->is_counted = true;
    if ((!job->failure_policy && job->index_limit < 0) ||
        td_edit_get(all->api, all->pods, item->ns, failure->pod->stored->name, item->arena, &pod,
                    NULL) != TD_OK) {
        return;
    }
    struct td_job_verdict verdict = td_job_judge_pod(item->arena, job->failure_policy, pod);
    failure->is_counted = verdict.action != TD_JOB_ACTION_IGNORE;
    failure->failures = td_job_failures(pod, TD_STR(TD_JOB_INDEX_FAILURES));
    failure->ignored = td_job_failures(pod, TD_STR(TD_JOB_INDEX_IGNORED));
    if (verdict.action == TD_JOB_ACTION_FAIL_JOB && job->fail_message.len == 0) {
        job->fail_message = verdict.message;
    }
    failure->ends_index =
        job->index_limit >= 0 && (verdict.action == TD_JOB_ACTION_FAIL_INDEX ||
                                  (failure->is_counted && failure->failures >= job->index_limit));
}

/* With a limit an index, its last failure waits for the next pod of the index. */
static void track_hold(struct td_job *job)
{
    struct td_arena *arena = job->item->arena;
    struct td_job_indexes active = td_job_indexes_new(arena, job->indexes.size);
    for (size_t i = 0; i < job->active.count; i++) {
        td_job_indexes_add(&active, td_job_pod_index(job->active.items[i]));
    }
    for (size_t i = 0; i < job->failure_count; i++) {
        struct td_job_failure *f = &job->failures[i];
        bool is_last = i + 1 == job->failure_count || job->failures[i + 1].index != f->index;
        bool is_over = td_job_indexes_has(&job->indexes, f->index) ||
                       td_job_indexes_has(&job->failed_indexes, f->index) ||
                       td_job_indexes_has(&active, f->index);
        f->is_held = is_last && !is_over && f->index >= 0 && f->index < job->completions;
    }
}

static void track_failures(struct td_job *job)
{
    for (size_t i = 0; i < job->failure_count; i++) {
        track_judge(job, &job->failures[i]);
        if (job->failures[i].ends_index) {
            td_job_indexes_add(&job->failed_indexes, job->failures[i].index);
        }
    }
    qsort(job->failures, job->failure_count, sizeof(job->failures[0]), track_compare);
    if (job->index_limit >= 0) {
        track_hold(job);
    }
    for (size_t i = 0; i < job->failure_count; i++) {
        const struct td_job_failure *f = &job->failures[i];
        if (f->is_counted && !f->is_held) {
            track_list_pod(job, f->pod, false);
        }
        job->failed += f->is_counted && f->is_held;
    }
}

const struct td_job_failure *td_job_held(const struct td_job *job, int64_t index)
{
    size_t low = 0;
    size_t high = job->failure_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (job->failures[middle].index <= index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct td_job_failure *f = low > 0 ? &job->failures[low - 1] : NULL;
    return f && f->index == index && f->is_held ? f : NULL;
}

void td_job_close(struct td_job *job)
{
    bool is_failed = td_str_equal(job->end_type, TD_STR("Failed"));
    int64_t listed = 0;
    for (size_t i = 0; i < job->failure_count; i++) {
        struct td_job_failure *f = &job->failures[i];
        if (f->is_held && f->is_counted) {
            track_list_pod(job, f->pod, false);
            listed++;
        }
        f->is_held = false;
    }
    for (size_t i = 0; is_failed && i < job->active.count; i++) {
        struct td_job_failure f = {.pod = job->active.items[i]};
        track_judge(job, &f);
        if (f.is_counted && f.pod->pod.has_tracking_finalizer &&
            (!job->is_indexed || (f.index >= 0 && f.index < job->completions))) {
            track_list_pod(job, f.pod, false);
            listed++;
        }
    }
    job->failed_listed += listed;
}

/* ---- Pods ---- */

static void track_pod(struct td_job *job, struct td_map *listed, struct td_child *pod)
{
    bool has_ended = td_pod_phase_is_over(pod->pod.phase);
    if (td_pod_is_active(pod)) {
        job->active.items[job->active.count++] = pod;
        job->ready += pod->pod.is_ready;
    }
    job->terminating += pod->is_deleting && !has_ended;
    bool is_success = pod->pod.phase == TD_POD_SUCCEEDED;
    if (job->is_indexed && is_success && td_map_has(listed, pod->stored->uid)) {
        td_job_indexes_add(&job->indexes, td_job_pod_index(pod)); /* listed by a pass that broke */
    }
    if (!pod->pod.has_tracking_finalizer || (!is_success && !track_is_failed(job, pod)) ||
        td_map_has(listed, pod->stored->uid)) {
        return;
    }
    int64_t index = td_job_pod_index(pod);
    if (job->is_indexed && is_success && td_job_indexes_has(&job->indexes, index)) {
        td_job_release_pod(job->item->control->all, job->item->ns,
                           pod->stored->name); /* the index was done before */
        return;
    }
    if (!is_success) {
        job->failures[job->failure_count++].pod = pod;
        return;
    }
    track_list_pod(job, pod, true);
    if (job->is_indexed) {
        td_job_indexes_add(&job->indexes, index);
    }
}

void td_job_track(struct td_job *job)
{
    td_auto_map listed = td_map_capped(TD_COLLECTION_OBJECTS_MAX);
    struct td_json *succeeded = track_list(job, TD_STR("succeeded"));
    struct td_json *failed = track_list(job, TD_STR("failed"));
    track_read_list(&listed, succeeded);
    track_read_list(&listed, failed);
    job->active.items = td_arena_array(job->item->arena, struct td_child *, job->pods.count);
    job->failures = td_arena_array(job->item->arena, struct td_job_failure, job->pods.count);
    for (size_t i = 0; i < job->pods.count; i++) {
        track_pod(job, &listed, job->pods.items[i]);
    }
    track_failures(job);
    job->succeeded = job->is_indexed ? (int64_t)td_job_indexes_count(&job->indexes)
                                     : td_json_get_int64(job->status, TD_STR("succeeded"), 0) +
                                           (int64_t)succeeded->count;
    job->failed_listed =
        td_json_get_int64(job->status, TD_STR("failed"), 0) + (int64_t)failed->count;
    job->failed += job->failed_listed;
    job->active_count = (int64_t)job->active.count;
}

/* ---- Settling ---- */

void td_job_release_pod(struct td_workloads *all, td_str ns, td_str name)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *pod;
    if (td_edit_get(all->api, all->pods, ns, name, &arena, &pod, NULL) != TD_OK) {
        return;
    }
    struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
    const struct td_json *old = td_json_get(metadata, TD_STR("finalizers"));
    const struct td_json *f = td_json_first_item(old);
    struct td_json *kept = td_json_new_array(&arena);
    for (; f; f = f->next) {
        if (f->type != TD_JSON_TYPE_STRING || !td_str_equal(f->text, TD_STR(JOB_FINALIZER))) {
            td_json_append(kept, td_json_copy(&arena, f, false));
        }
    }
    td_json_set_filled(&arena, metadata, TD_STR("finalizers"), kept);
    (void)td_edit_put(all->api, all->pods, &arena, pod, NULL); /* it was read in this turn */
}

/* All pods that are on the list, and in a Job that ends all others. */
static void track_release(struct td_job *job)
{
    struct td_workload_item *item = job->item;
    td_auto_map listed = td_map_capped(TD_COLLECTION_OBJECTS_MAX);
    track_read_list(&listed, track_list(job, TD_STR("succeeded")));
    track_read_list(&listed, track_list(job, TD_STR("failed")));
    for (size_t i = 0; i < job->pods.count; i++) {
        const struct td_child *pod = job->pods.items[i];
        if (pod->pod.has_tracking_finalizer &&
            (job->end_type.len > 0 || td_map_has(&listed, pod->stored->uid))) {
            td_str name = td_arena_copy_str(item->arena, pod->stored->name);
            td_job_release_pod(item->control->all, item->ns, name);
        }
    }
    for (size_t i = 0; i < job->failure_count; i++) {
        const struct td_job_failure *f = &job->failures[i];
        if (!f->is_counted && !f->is_held) {
            td_str name = td_arena_copy_str(item->arena, f->pod->stored->name);
            td_job_release_pod(item->control->all, item->ns, name);
        }
    }
}

static void track_count(struct td_job *job)
{
    struct td_arena *arena = job->item->arena;
    td_workload_set_count(arena, job->status, TD_STR("succeeded"), job->succeeded);
    td_workload_set_count(arena, job->status, TD_STR("failed"), job->failed_listed);
    if (job->index_limit >= 0) {
        td_json_set_str(arena, job->status, TD_STR("failedIndexes"),
                        td_job_indexes_write(arena, &job->failed_indexes));
    }
    if (job->is_indexed) {
        td_str text = td_job_indexes_write(arena, &job->indexes);
        td_json_set_text(arena, job->status, TD_STR("completedIndexes"), text);
    }
    td_json_set(arena, job->status, TD_STR("uncountedTerminatedPods"), td_json_new_object(arena));
}

static void track_set_numbers(struct td_job *job)
{
    struct td_arena *arena = job->item->arena;
    td_workload_set_count(arena, job->status, TD_STR("active"), job->active_count);
    td_json_set_int64(arena, job->status, TD_STR("ready"), job->ready);
    td_json_set_int64(arena, job->status, TD_STR("terminating"), job->terminating);
}

/* Lists that are empty are not written. */
static void track_trim(struct td_job *job)
{
    static const td_str keys[] = {TD_STR_INIT("succeeded"), TD_STR_INIT("failed")};
    struct td_json *uncounted = td_json_get(job->status, TD_STR("uncountedTerminatedPods"));
    for (size_t i = 0; i < 2; i++) {
        const struct td_json *list = td_json_get(uncounted, keys[i]);
        if (list && list->count == 0) {
            (void)td_json_remove(uncounted, keys[i]); /* it is there */
        }
    }
}

static void track_end(struct td_job *job)
{
    struct td_workload_item *item = job->item;
    bool is_complete = td_str_equal(job->end_type, TD_STR("Complete"));
    (void)td_job_set_condition(job, job->end_type, true, job->reason,
                               job->message); /* it is new: the Job was not over */
    if (is_complete) {
        td_json_set(item->arena, job->status, TD_STR("completionTime"),
                    td_workload_time(item->arena, item->now));
        td_workload_event(item, false, "Completed", "Job completed");
    } else {
        char reason[64];
        (void)snprintf(reason, sizeof(reason), "%.*s", TD_STR_ARG(job->reason)); /* one of ours */
        td_workload_event(item, true, reason, "%.*s", TD_STR_ARG(job->message));
    }
}

void td_job_settle(struct td_job *job)
{
    struct td_workload_item *item = job->item;
    bool is_interim = false;
    if (job->end_type.len > 0) {
        is_interim = td_job_set_condition(job,
                                          td_str_equal(job->end_type, TD_STR("Complete"))
                                              ? TD_STR("SuccessCriteriaMet")
                                              : TD_STR("FailureTarget"),
                                          true, job->reason, job->message);
    }
    track_set_numbers(job);
    if (job->is_news || is_interim) {
        struct td_json *copy = td_json_copy(item->arena, job->status, false);
        track_trim(job);
        if (td_workload_put_status(item, job->status) != TD_OK) {
            return; /* nothing is let go before it is on the list */
        }
        job->status = copy;
    }
    track_release(job);
    track_count(job);
    if (job->end_type.len > 0 && job->terminating == 0) {
        track_end(job);
    }
    (void)td_workload_put_status(item, job->status); /* a conflict is looked at again */
}
