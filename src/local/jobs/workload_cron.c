/*
 * CronJobs: Jobs at times. A Job's name holds the minute it was due, so that none is made twice.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "local/jobs/cron_schedule.h"
#include "local/jobs/workload_job.h"
#include "local/store/edit.h"
#include "local/workloads/workload_private.h"

#define CRON_LATER (100 * TD_MILLISECOND) /* behind the time, as upstream looks */
#define CRON_MISSED_MANY 100
#define CRON_ANNOTATION "batch.kubernetes.io/cronjob-scheduled-timestamp"

struct cron_job {
    struct td_json *object;
    td_str name;
    td_str uid;
    td_time created;
    td_str end_type; /* "Complete", "Failed", or empty while it runs */
};

struct cron {
    struct td_workload_item *item;
    struct td_json *status;
    struct cron_job *jobs;
    size_t count;
};

/* ---- Jobs in hand ---- */

static int cron_compare(const void *left, const void *right)
{
    const struct cron_job *a = left;
    const struct cron_job *b = right;
    int by_time = (a->created > b->created) - (a->created < b->created);
    return by_time != 0 ? by_time : td_str_compare(a->name, b->name);
}

static void cron_load(struct cron *cron)
{
    struct td_workload_item *item = cron->item;
    struct td_workloads *all = item->control->all;
    struct td_children own = td_child_index_list(&all->job_index, item->arena, item->uid);
    cron->jobs = td_arena_array(item->arena, struct cron_job, own.count);
    for (size_t i = 0; i < own.count; i++) {
        struct cron_job *job = &cron->jobs[cron->count];
        if (td_edit_get(all->api, all->controls[TD_KIND_JOB].resource, item->ns,
                        own.items[i]->stored->name, item->arena, &job->object, NULL) != TD_OK) {
            continue;
        }
        const struct td_json *metadata = td_json_get(job->object, TD_STR("metadata"));
        job->name = td_json_text(metadata, "name");
        job->uid = td_json_text(metadata, "uid");
        job->created = own.items[i]->created;
        job->end_type = td_job_end_of(td_json_get(job->object, TD_STR("status")));
        cron->count++;
    }
    if (cron->count > 0) {
        qsort(cron->jobs, cron->count, sizeof(cron->jobs[0]), cron_compare);
    }
}

static struct td_json *cron_active(struct cron *cron)
{
    struct td_json *list = td_json_get(cron->status, TD_STR("active"));
    return td_json_is(list, TD_JSON_TYPE_ARRAY) ? list : NULL;
}

/* Position in the list of those that run, or its length. */
static size_t cron_find_active(struct cron *cron, td_str uid)
{
    const struct td_json *list = cron_active(cron);
    size_t position = 0;
    for (const struct td_json *a = td_json_first_item(list); a; a = a->next, position++) {
        if (td_str_equal(td_json_text(a, "uid"), uid)) {
            return position;
        }
    }
    return position;
}

static void cron_drop_active(struct cron *cron, size_t position)
{
    td_json_remove_at(cron_active(cron), position);
    if (cron_active(cron)->count == 0) {
        (void)td_json_remove(cron->status, TD_STR("active")); /* it is there */
    }
}

/* ---- What became of Jobs ---- */

static void cron_note_success(struct cron *cron, const struct cron_job *job)
{
    td_time last = td_time_member(cron->status, TD_STR("lastSuccessfulTime"));
    td_time end =
        td_time_member(td_json_get(job->object, TD_STR("status")), TD_STR("completionTime"));
    if (end != TD_TIME_NONE && end > last) {
        td_json_set(cron->item->arena, cron->status, TD_STR("lastSuccessfulTime"),
                    td_workload_time(cron->item->arena, end));
    }
}

static bool cron_has_job(const struct cron *cron, td_str uid)
{
    for (size_t i = 0; i < cron->count; i++) {
        if (td_str_equal(cron->jobs[i].uid, uid)) {
            return true;
        }
    }
    return false;
}

static void cron_review(struct cron *cron)
{
    struct td_workload_item *item = cron->item;
    for (size_t i = 0; i < cron->count; i++) {
        const struct cron_job *job = &cron->jobs[i];
        size_t position = cron_find_active(cron, job->uid);
        bool is_listed = cron_active(cron) && position < cron_active(cron)->count;
        if (job->end_type.len == 0 && !is_listed) {
            td_workload_event(item, true, "UnexpectedJob",
                              "Saw a job that the controller did not create or forgot: %.*s",
                              TD_STR_ARG(job->name));
        } else if (job->end_type.len > 0 && is_listed) {
            cron_drop_active(cron, position);
            td_workload_event(item, false, "SawCompletedJob",
                              "Saw completed job: %.*s, condition: %.*s", TD_STR_ARG(job->name),
                              TD_STR_ARG(job->end_type));
        }
        if (td_str_equal(job->end_type, TD_STR("Complete"))) {
            cron_note_success(cron, job);
        }
    }
    const struct td_json *list = cron_active(cron);
    for (size_t i = td_json_item_count(list); i > 0; i--) {
        const struct td_json *reference = td_json_at(cron_active(cron), i - 1);
        if (!cron_has_job(cron, td_json_text(reference, "uid"))) {
            td_str name = td_json_text(reference, "name");
            td_workload_event(item, false, "MissingJob", "Active job went missing: %.*s",
                              TD_STR_ARG(name));
            cron_drop_active(cron, i - 1);
        }
    }
}

static void cron_delete_job(struct cron *cron, td_str name, td_str uid)
{
    struct td_workload_item *item = cron->item;
    struct td_workloads *all = item->control->all;
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_delete(all->api, all->controls[TD_KIND_JOB].resource, item->ns, name, uid,
                              TD_STR("Background"), -1, &err);
    size_t position = cron_find_active(cron, uid);
    if (cron_active(cron) && position < cron_active(cron)->count) {
        cron_drop_active(cron, position);
    }
    if (code == TD_OK) {
        td_workload_event(item, false, "SuccessfulDelete", "Deleted job %.*s", TD_STR_ARG(name));
    } else if (code != TD_NOT_FOUND) {
        td_workload_event(item, true, "FailedDelete", "Deleted job: %s", err.message);
    }
}

/* The oldest of those that ended in one way go first. */
static void cron_clean_up(struct cron *cron, const char *end_type, td_str limit_key)
{
    int64_t limit = td_json_get_int64(cron->item->spec, limit_key, -1);
    int64_t surplus = -limit;
    for (size_t i = 0; i < cron->count; i++) {
        surplus += td_str_equal(cron->jobs[i].end_type, td_str_from(end_type));
    }
    for (size_t i = 0; limit >= 0 && i < cron->count && surplus > 0; i++) {
        if (td_str_equal(cron->jobs[i].end_type, td_str_from(end_type))) {
            cron_delete_job(cron, cron->jobs[i].name, cron->jobs[i].uid);
            surplus--;
        }
    }
}

/* ---- Times ---- */

struct cron_due {
    bool is_due;
    bool are_many_missed;
    td_time time;
};

/* The latest time that has passed without a Job. */
static int cron_find_due(const struct td_workload_item *item, const struct td_json *status,
                         const struct td_cron_schedule *schedule, struct cron_due *ret)
{
    td_time earliest = td_time_member(status, TD_STR("lastScheduleTime"));
    if (earliest == TD_TIME_NONE) {
        earliest = td_time_member(item->metadata, TD_STR("creationTimestamp"));
    }
    int64_t deadline = td_json_get_int64(item->spec, TD_STR("startingDeadlineSeconds"), -1);
    if (deadline >= 0 && item->now - deadline * TD_SECOND > earliest) {
        earliest = item->now - deadline * TD_SECOND;
    }
    td_time first;
    td_time second;
    *ret = (struct cron_due){.is_due = false};
    if (td_cron_next(schedule, earliest, &first) != TD_OK ||
        td_cron_next(schedule, first, &second) != TD_OK) {
        return TD_NOT_FOUND;
    }
    if (item->now < first) {
        return TD_OK;
    }
    *ret = (struct cron_due){.is_due = true, .time = first};
    if (item->now < second) {
        return TD_OK;
    }
    int64_t missed = (item->now - first) / (second - first) + 1;
    td_time at = first + (missed - 2) * (second - first);
    for (int i = 0; i < TD_CRON_STEPS_MAX; i++) {
        if (td_cron_next(schedule, at, &at) != TD_OK || at > item->now) {
            break;
        }
        ret->time = at;
    }
    ret->are_many_missed = missed > CRON_MISSED_MANY;
    return TD_OK;
}

static void cron_wait(struct td_workload_item *item, const struct td_cron_schedule *schedule,
                      td_time from)
{
    td_time next;
    from = from > item->now ? from : item->now;
    if (td_cron_next(schedule, from, &next) == TD_OK) {
        td_workload_enqueue_after(item->control, item->ns, item->name,
                                  next - item->now + CRON_LATER);
    }
}

/* ---- Starting ---- */

static td_str cron_job_name(const struct td_workload_item *item, td_time due)
{
    return td_arena_format(item->arena, "%.*s-%lld", TD_STR_ARG(item->name),
                           (long long)(due / TD_MINUTE));
}

static struct td_json *cron_make(struct td_workload_item *item, td_time due)
{
    struct td_arena *arena = item->arena;
    const struct td_json *template = td_json_get(item->spec, TD_STR("jobTemplate"));
    struct td_json *job = td_pod_from_template(arena, item->object, template);
    td_json_set_str(arena, job, TD_STR("apiVersion"), TD_STR("batch/v1"));
    td_json_set_str(arena, job, TD_STR("kind"), TD_STR("Job"));
    struct td_json *metadata = td_json_get(job, TD_STR("metadata"));
    (void)td_json_remove(metadata, TD_STR("generateName")); /* it is there */
    td_json_set_str(arena, metadata, TD_STR("name"), cron_job_name(item, due));
    struct td_json *annotations = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
    td_json_set(arena, annotations, TD_STR(CRON_ANNOTATION), td_workload_time(arena, due));
    return job;
}

static void cron_replace_active(struct cron *cron)
{
    const struct td_json *list = cron_active(cron);
    for (size_t i = td_json_item_count(list); i > 0; i--) {
        const struct td_json *reference = td_json_at(cron_active(cron), i - 1);
        cron_delete_job(cron, td_json_text(reference, "name"), td_json_text(reference, "uid"));
    }
}

/* Says whether a Job is to be started now; `due` is when it was meant to be. */
static bool cron_may_start(struct cron *cron, const struct cron_due *due)
{
    struct td_workload_item *item = cron->item;
    td_str policy = td_json_text(item->spec, "concurrencyPolicy");
    int64_t deadline = td_json_get_int64(item->spec, TD_STR("startingDeadlineSeconds"), -1);
    if (due->are_many_missed) {
        td_workload_event(item, true, "TooManyMissedTimes",
                          "too many missed start times. Set or decrease "
                          ".spec.startingDeadlineSeconds or check clock skew");
    }
    if (deadline >= 0 && due->time + deadline * TD_SECOND < item->now) {
        char text[TD_TIME_TEXT_BYTES];
        (void)td_time_format(td_time_to_instant(due->time), 0, text); /* it fits */
        td_workload_event(item, true, "MissSchedule", "Missed scheduled time to start a job: %s",
                          text);
        return false;
    }
    if (td_time_member(cron->status, TD_STR("lastScheduleTime")) == due->time) {
        return false;
    }
    if (td_str_equal(policy, TD_STR("Forbid")) && cron_active(cron)) {
        td_workload_event(item, false, "JobAlreadyActive",
                          "Not starting job because prior execution is running and concurrency "
                          "policy is Forbid");
        return false;
    }
    if (td_str_equal(policy, TD_STR("Replace"))) {
        cron_replace_active(cron);
    }
    return true;
}

/* The new Job is listed as one that runs, and its time as done. */
static void cron_list_job(struct td_workload_item *item, const struct td_json *job)
{
    struct td_arena *arena = item->arena;
    const struct td_json *metadata = td_json_get(job, TD_STR("metadata"));
    struct td_json *status = td_json_ensure_object(arena, item->object, TD_STR("status"));
    struct cron cron = {.item = item, .status = status};
    td_str uid = td_json_text(metadata, "uid");
    size_t position = cron_find_active(&cron, uid);
    if (cron_active(&cron) && position < cron_active(&cron)->count) {
        return;
    }
    struct td_json *reference = td_json_new_object(arena);
    td_json_set_str(arena, reference, TD_STR("kind"), TD_STR("Job"));
    td_json_set_str(arena, reference, TD_STR("namespace"), item->ns);
    td_json_set_str(arena, reference, TD_STR("name"), td_json_text(metadata, "name"));
    td_json_set_str(arena, reference, TD_STR("uid"), uid);
    td_json_set_str(arena, reference, TD_STR("apiVersion"), TD_STR("batch/v1"));
    td_json_set_str(arena, reference, TD_STR("resourceVersion"),
                    td_json_text(metadata, "resourceVersion"));
    struct td_json *list = cron_active(&cron);
    if (!list) {
        list = td_json_new_array(arena);
        td_json_set(arena, status, TD_STR("active"), list);
    }
    td_json_append(list, reference);
    td_str due = td_json_get_str(td_json_get(metadata, TD_STR("annotations")),
                                 TD_STR(CRON_ANNOTATION), TD_STR_EMPTY);
    td_json_set_str(arena, status, TD_STR("lastScheduleTime"), due);
    (void)td_workload_put(item); /* a conflict is looked at again */
}

void td_cron_made(struct td_workload_control *control, const struct td_pod_made *made)
{
    struct td_workloads *all = control->all;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_workload_item item;
    struct td_json *job;
    td_str name = td_json_text(td_json_get(made->owner, TD_STR("metadata")), "name");
    if (!td_workload_load(control, &arena, made->ns, name, &item)) {
        return;
    }
    if (made->code != TD_OK && made->code != TD_EXISTS) {
        td_workload_event(&item, true, "FailedCreate", "Error creating job: %.*s",
                          TD_STR_ARG(made->message));
        return;
    }
    td_child_index_refresh(&all->job_index, made->ns, made->pod);
    if (td_edit_get(all->api, all->controls[TD_KIND_JOB].resource, made->ns, made->pod, &arena,
                    &job, NULL) != TD_OK) {
        return;
    }
    if (made->code == TD_OK) {
        td_workload_event(&item, false, "SuccessfulCreate", "Created job %.*s",
                          TD_STR_ARG(made->pod));
    }
    cron_list_job(&item, job);
}

static void cron_schedule(struct cron *cron)
{
    struct td_workload_item *item = cron->item;
    td_str zone = td_json_text(item->spec, "timeZone");
    td_str text = td_json_text(item->spec, "schedule");
    struct td_error err = TD_ERROR_INIT;
    struct td_cron_schedule schedule;
    struct cron_due due;
    int64_t offset = 0;
    if (td_cron_zone(zone, &offset, &err) != TD_OK) {
        td_workload_event(item, true, "UnknownTimeZone", "invalid timeZone: \"%.*s\": %s",
                          TD_STR_ARG(zone), err.message);
    } else if (td_json_get_bool(item->spec, TD_STR("suspend"), false)) {
        td_workload_owner_clear(item->control->all, item->uid);
    } else if (td_cron_parse(text, &schedule, &err) != TD_OK) {
        td_workload_event(item, true, "UnparseableSchedule", "unparseable schedule: \"%.*s\" : %s",
                          TD_STR_ARG(text), err.message);
    } else {
        schedule.offset = offset;
        if (cron_find_due(item, cron->status, &schedule, &due) != TD_OK) {
            td_workload_event(item, true, "InvalidSchedule", "invalid schedule: %.*s : %s",
                              TD_STR_ARG(text), "there is no such time");
            return;
        }
        bool is_started = due.is_due && td_workload_can_create(item) && cron_may_start(cron, &due);
        (void)td_workload_put_status(item, cron->status); /* a conflict is looked at again */
        cron_wait(item, &schedule, due.is_due ? due.time : item->now);
        if (is_started) { /* its answer writes the status */
            td_pod_maker_create(item->control->maker, item->object, cron_make(item, due.time));
        }
    }
}

void td_cron_sync(struct td_workload_item *item)
{
    struct cron cron = {
        .item = item,
        .status = td_workload_status(item),
    };
    if (td_workload_pending(item) > 0) {
        return; /* the answer brings it back here */
    }
    cron_load(&cron);
    cron_clean_up(&cron, "Complete", TD_STR("successfulJobsHistoryLimit"));
    cron_clean_up(&cron, "Failed", TD_STR("failedJobsHistoryLimit"));
    cron_review(&cron); /* last: of a Job that is forgotten at once its end is not told */
    (void)td_workload_put_status(item,
                                 td_json_copy(item->arena, cron.status, false)); /* as above */
    if (!item->is_deleting) {
        cron_schedule(&cron);
    }
}
