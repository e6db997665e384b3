/*
 * A pod that does not fit waits in a set. Whatever makes room does not try the whole set at once,
 * but at most once a second: so a thousand pods that wait while a thousand others go cost a few
 * passes, not a million tries.
 */
#include "local/nodes/scheduler.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "kube/objectkey.h"
#include "local/api/api.h"
#include "local/kinds/condition.h"
#include "local/nodes/node_index.h"
#include "local/nodes/scheduler_fit.h"
#include "local/store/edit.h"
#include "local/store/store.h"
#include "model/pod.h"

#define SCHEDULER_COMPONENT TD_STR("default-scheduler")
#define SCHEDULER_RETRY_KEY TD_STR("retry") /* no pod: keys of pods have two lines */
#define SCHEDULER_RETRY_EVERY TD_SECOND

struct td_scheduler {
    struct td_api *api;
    struct td_log *log;
    struct td_node_index *index;
    struct td_queue *queue; /* keys of pods, or SCHEDULER_RETRY_KEY */
    struct td_map waiting;  /* struct waiting_pod by key */
    td_duration retried;    /* steady time of the last pass over the waiting ones */
};

struct waiting_pod {
    td_str key; /* owned, behind the structure */
    int64_t generation;
};

/* Reasons why nodes do not fit, counted. */
struct refusals {
    struct td_arena *arena;
    struct td_map counts; /* size_t * by reason */
    size_t hopeless;
    size_t hopeful;
};

static void scheduler_enqueue(struct td_scheduler *scheduler, td_str key, td_duration after)
{
    struct td_error err = TD_ERROR_INIT;
    int code = after > 0 ? td_queue_add_after(scheduler->queue, key, after, &err)
                         : td_queue_add(scheduler->queue, key, &err);
    if (code != TD_OK) {
        td_log_line(scheduler->log, TD_LOG_ERROR, "scheduler queue full, pod dropped",
                    TD_LOG_C("error", err.message));
    }
}

/* ---- Waiting ---- */

static void scheduler_forget(struct td_scheduler *scheduler, td_str key)
{
    struct waiting_pod *pod = td_map_remove(&scheduler->waiting, key);
    td_free(pod);
}

static void scheduler_wait(struct td_scheduler *scheduler, td_str key, int64_t generation)
{
    struct waiting_pod *pod = td_map_get(&scheduler->waiting, key);
    if (!pod) {
        pod = td_alloc_zero(1, sizeof(*pod) + key.len);
        pod->key = td_text_behind(pod + 1, key);
        if (td_map_put(&scheduler->waiting, pod->key, pod) != TD_OK) {
            td_free(pod);
            return; /* at the cap of objects */
        }
    }
    pod->generation = generation;
}

static void scheduler_retry(struct td_scheduler *scheduler)
{
    scheduler->retried = td_clock_steady(td_loop_clock(td_api_loop(scheduler->api)));
    for (struct td_map_walk at = {.map = &scheduler->waiting}; td_map_step(&at);) {
        scheduler_enqueue(scheduler, at.key, 0);
    }
}

void td_scheduler_room(struct td_scheduler *scheduler)
{
    if (scheduler->waiting.count == 0 || scheduler->index->own_count == 0) {
        return;
    }
    td_duration now = td_clock_steady(td_loop_clock(td_api_loop(scheduler->api)));
    td_duration next = scheduler->retried + SCHEDULER_RETRY_EVERY;
    scheduler_enqueue(scheduler, SCHEDULER_RETRY_KEY, next > now ? next - now : 0);
}

/* Is it for us to place? */
static bool scheduler_wants(const struct td_json *pod)
{
    const struct td_json *spec = td_json_get(pod, TD_STR("spec"));
    const struct td_json *gates = td_json_get(spec, TD_STR("schedulingGates"));
    return td_json_text(spec, "nodeName").len == 0 &&
           td_str_equal(td_json_get_str(spec, TD_STR("schedulerName"), TD_STR("default-scheduler")),
                        TD_STR("default-scheduler")) &&
           !(td_json_is(gates, TD_JSON_TYPE_ARRAY) && gates->count > 0) &&
           !td_json_get_path(pod, "metadata.deletionTimestamp") && !td_pod_tree_is_over(pod);
}

static int64_t scheduler_generation(const struct td_json *pod)
{
    return td_json_get_int64(td_json_get(pod, TD_STR("metadata")), TD_STR("generation"), 0);
}

void td_scheduler_pod(struct td_scheduler *scheduler, td_str key, const struct td_json *pod)
{
    if (!pod || !scheduler_wants(pod)) {
        scheduler_forget(scheduler, key);
        return;
    }
    const struct waiting_pod *known = td_map_get(&scheduler->waiting, key);
    if (known && known->generation == scheduler_generation(pod)) {
        return; /* its status changed: we did that */
    }
    if (scheduler->index->own_count == 0) {
        scheduler_wait(scheduler, key, scheduler_generation(pod));
        return;
    }
    scheduler_enqueue(scheduler, key, 0);
}

/* ---- Refusing ---- */

static void refusals_add(struct refusals *refusals, const struct td_fit *fit)
{
    for (size_t i = 0; i < fit->reason_count; i++) {
        size_t *count = td_map_get(&refusals->counts, fit->reasons[i]);
        if (!count) {
            count = td_arena_new(refusals->arena, size_t);
            (void)td_map_put(&refusals->counts, fit->reasons[i], count); /* at the cap: not said */
        }
        (*count)++;
    }
    refusals->hopeless += fit->is_hopeless ? 1 : 0;
    refusals->hopeful += fit->is_hopeless ? 0 : 1;
}

/* "1 Insufficient cpu, 2 Too many pods", in byte order as upstream sorts them. */
static td_str refusals_join(struct refusals *refusals)
{
    td_str *lines = td_arena_array(refusals->arena, td_str, refusals->counts.count);
    size_t count = 0;
    for (struct td_map_walk at = {.map = &refusals->counts}; td_map_step(&at);) {
        lines[count++] =
            td_arena_format(refusals->arena, "%zu %.*s", *(size_t *)at.value, TD_STR_ARG(at.key));
    }
    qsort(lines, count, sizeof(*lines), td_str_compare_items);
    td_auto_buf text = td_buf_capped(TD_STATUS_MESSAGE_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append(&text, i > 0 ? TD_STR(", ") : TD_STR_EMPTY); /* sticky */
        (void)td_buf_append(&text, lines[i]);
    }
    return td_arena_copy_str(refusals->arena, td_buf_str(&text));
}

/* What upstream adds of its attempts to make room by preemption, which here are none. */
static td_str refusals_preemption(struct refusals *refusals)
{
    td_str hopeless =
        refusals->hopeless > 0
            ? td_arena_format(refusals->arena, "%zu Preemption is not helpful for scheduling",
                              refusals->hopeless)
            : TD_STR_EMPTY;
    td_str hopeful =
        refusals->hopeful > 0
            ? td_arena_format(refusals->arena, "%zu No preemption victims found for incoming pod",
                              refusals->hopeful)
            : TD_STR_EMPTY;
    bool is_swapped = td_str_compare(hopeful, hopeless) < 0;
    td_str first = is_swapped ? hopeful : hopeless;
    td_str second = is_swapped ? hopeless : hopeful;
    const char *comma = first.len > 0 && second.len > 0 ? ", " : "";
    return td_arena_format(refusals->arena, "%.*s%s%.*s", TD_STR_ARG(first), comma,
                           TD_STR_ARG(second));
}

static td_str scheduler_message(struct td_scheduler *scheduler, struct refusals *refusals)
{
    size_t nodes = scheduler->index->node_count;
    return td_arena_format(refusals->arena,
                           "0/%zu nodes are available: %.*s. no new claims to deallocate, "
                           "preemption: 0/%zu nodes are available: %.*s.",
                           nodes, TD_STR_ARG(refusals_join(refusals)), nodes,
                           TD_STR_ARG(refusals_preemption(refusals)));
}

static void scheduler_put(struct td_scheduler *scheduler, struct td_arena *arena, td_str key,
                          struct td_json *pod)
{
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_put(scheduler->api, td_api_kind(scheduler->api, TD_STR("v1"), TD_STR("Pod")),
                           arena, pod, &err);
    if (code == TD_OK) {
        (void)td_node_index_set_pod(scheduler->index, key, /* it was on no node before */
                                    td_store_version(td_api_store(scheduler->api)), pod);
    } else if (code != TD_CONFLICT && code != TD_NOT_FOUND) {
        td_log_line(scheduler->log, TD_LOG_ERROR, "scheduler: cannot bind pod",
                    TD_LOG_C("error", err.message));
    }
}

static void scheduler_refuse(struct td_scheduler *scheduler, struct td_arena *arena, td_str key,
                             struct td_json *pod, td_str message)
{
    const struct td_condition condition = {
        .type = TD_STR("PodScheduled"),
        .status = TD_STR("False"),
        .reason = TD_STR("Unschedulable"),
        .message = message,
        .observed_generation = scheduler_generation(pod),
        .has_probe_time = true,
    };
    scheduler_wait(scheduler, key, scheduler_generation(pod));
    if (td_condition_set(arena, td_json_ensure_object(arena, pod, TD_STR("status")), &condition,
                         td_time_to_instant(td_api_now(scheduler->api)))) {
        scheduler_put(scheduler, arena, key, pod);
        td_edit_event(scheduler->api, pod, TD_STR("Warning"), TD_STR("FailedScheduling"),
                      SCHEDULER_COMPONENT, message);
    }
}

/* ---- Binding ---- */

static void scheduler_bind(struct td_scheduler *scheduler, struct td_arena *arena, td_str key,
                           struct td_json *pod, td_str node)
{
    const struct td_condition condition = {
        .type = TD_STR("PodScheduled"),
        .status = TD_STR("True"),
        .has_probe_time = true,
    };
    td_str name = td_arena_copy_str(arena, node);
    td_json_set_str(arena, td_json_ensure_object(arena, pod, TD_STR("spec")), TD_STR("nodeName"),
                    name);
    (void)td_condition_set(arena, td_json_ensure_object(arena, pod, TD_STR("status")), &condition,
                           td_time_to_instant(td_api_now(scheduler->api)));
    scheduler_forget(scheduler, key);
    scheduler_put(scheduler, arena, key, pod);
    td_edit_event(scheduler->api, pod, TD_STR("Normal"), TD_STR("Scheduled"), SCHEDULER_COMPONENT,
                  td_arena_format(arena, "Successfully assigned %.*s to %.*s", TD_STR_ARG(key),
                                  TD_STR_ARG(name)));
}

static const struct td_node *scheduler_choose(struct td_scheduler *scheduler,
                                              const struct td_fit_pod *pod,
                                              struct refusals *refusals)
{
    const struct td_node *best = NULL;
    for (struct td_map_walk at = {.map = &scheduler->index->nodes}; td_map_step(&at);) {
        const struct td_node *node = at.value;
        struct td_fit fit;
        if (!node->exists) {
            continue;
        }
        td_fit_check(refusals->arena, pod, node, &fit);
        if (!fit.fits) {
            refusals_add(refusals, &fit);
        } else if (!best || td_fit_is_better(pod, node, best)) {
            best = node;
        }
    }
    return best;
}

static enum td_job_result scheduler_work(td_str key, void *context)
{
    struct td_scheduler *scheduler = context;
    if (td_str_equal(key, SCHEDULER_RETRY_KEY)) {
        scheduler_retry(scheduler);
        return TD_JOB_DONE;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_object_key of = td_object_key_read(key);
    struct td_json *pod;
    struct td_fit_pod wish;
    if (td_edit_get(scheduler->api, td_api_kind(scheduler->api, TD_STR("v1"), TD_STR("Pod")),
                    of.namespace, of.name, &arena, &pod, NULL) != TD_OK ||
        !scheduler_wants(pod) || td_fit_pod_read(&arena, pod, &wish) != TD_OK) {
        return TD_JOB_DONE;
    }
    if (scheduler->index->own_count == 0) {
        scheduler_wait(scheduler, key, scheduler_generation(pod));
        return TD_JOB_DONE;
    }
    struct refusals refusals = {.arena = &arena};
    td_map_init(&refusals.counts, TD_COLLECTION_OBJECTS_MAX);
    const struct td_node *node = scheduler_choose(scheduler, &wish, &refusals);
    if (node) {
        scheduler_bind(scheduler, &arena, key, pod, node->name);
    } else {
        scheduler_refuse(scheduler, &arena, key, pod, scheduler_message(scheduler, &refusals));
    }
    td_map_done(&refusals.counts);
    return TD_JOB_DONE;
}

struct td_scheduler *td_scheduler_new(struct td_api *api, struct td_log *log,
                                      struct td_node_index *index)
{
    struct td_scheduler *scheduler = td_alloc_zero(1, sizeof(*scheduler));
    scheduler->api = api;
    scheduler->log = log;
    scheduler->index = index;
    scheduler->retried = td_clock_steady(td_loop_clock(td_api_loop(api))) - SCHEDULER_RETRY_EVERY;
    td_map_init(&scheduler->waiting, TD_COLLECTION_OBJECTS_MAX);
    scheduler->queue = td_queue_new(td_api_loop(api), scheduler_work, scheduler, TD_WORK_QUEUE_MAX);
    return scheduler;
}

void td_scheduler_free(struct td_scheduler *scheduler)
{
    if (!scheduler) {
        return;
    }
    td_queue_free(scheduler->queue);
    for (struct td_map_walk at = {.map = &scheduler->waiting}; td_map_step(&at);) {
        td_free(at.value);
    }
    td_map_done(&scheduler->waiting);
    td_free(scheduler);
}
