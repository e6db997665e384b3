#include "control/recommender/recommend_loop.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "control/measure_client.h"
#include "control/recommend_tallies.h"
#include "control/recommender/recommend_private.h"
#include "kube/client/client.h"

#define LOOP_LOOK_PAUSE (100 * TD_MILLISECOND)
#define LOOP_LOOK_TRIES_MAX 50

td_time recommend_now(const struct td_recommend_loop *loop)
{
    return td_clock_wall(td_loop_clock(loop->options.control.loop));
}

void recommend_wake(struct td_recommend_loop *loop)
{
    (void)td_queue_add(loop->work, TD_STR("pass"), NULL); /* one key always fits */
}

void recommend_write_begin(struct td_recommend_loop *loop, struct recommend_write *write,
                           void (*release)(struct recommend_write *write))
{
    *write = (struct recommend_write){.loop = loop, .next = loop->first_write, .release = release};
    if (write->next) {
        write->next->previous = write;
    }
    loop->first_write = write;
    loop->writes++;
}

void recommend_write_end(struct recommend_write *write)
{
    struct td_recommend_loop *loop = write->loop;
    *(write->previous ? &write->previous->next : &loop->first_write) = write->next;
    if (write->next) {
        write->next->previous = write->previous;
    }
    write->release(write);
    loop->writes--;
}

struct recommend_vpa *recommend_find(const struct td_recommend_loop *loop, td_str ns, td_str name)
{
    td_auto_buf key;
    td_buf_init(&key, TD_CACHE_KEY_BYTES_MAX);
    (void)td_buf_append_format(&key, "%.*s/%.*s", TD_STR_ARG(ns), TD_STR_ARG(name));
    return key.is_full ? NULL : td_map_get(&loop->vpas, td_buf_str(&key));
}

/* ---- Metrics ---- */

static void loop_sample(void *context, const struct td_pod_measure *measure)
{
    struct td_recommend_loop *loop = context;
    struct td_tracked_pod *pod =
        td_recommender_find_pod(loop->model, measure->namespace, measure->pod);
    td_time now = recommend_now(loop);
    if (!pod) {
        return;
    }
    bool is_new = false;
    if (!recommend_is_of_another(loop, measure->namespace, measure->pod, measure->time)) {
        if (measure->has_cpu) {
            is_new = td_recommender_sample(loop->model, pod, measure->container, TD_LEARN_CPU,
                                           measure->time, measure->cpu_milli, now) == TD_FEED_TAKEN;
        }
        if (measure->has_memory) {
            (void)td_recommender_sample(loop->model, pod, measure->container, TD_LEARN_MEMORY,
                                        measure->time, measure->memory_bytes, now);
        }
    }
    /* A time in the future, of a fast clock, says nothing about the age of the metrics; that it was
     * not read before does. */
    td_time time = measure->time <= now ? measure->time : is_new ? now : 0;
    loop->last_metrics = time > loop->last_metrics ? time : loop->last_metrics;
}

static void loop_measured(void *context, int code, const struct td_error *err)
{
    struct td_recommend_loop *loop = context;
    loop->measure = NULL;
    loop->metrics_error = *err;
    loop->metrics_failures = code == TD_OK ? 0 : loop->metrics_failures + 1;
    recommend_tally_metrics(loop, code != TD_OK);
    if (code != TD_OK && code != TD_NOT_FOUND) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "metrics cannot be read",
                    TD_LOG_C("error", err->message));
    }
    recommend_feed_ooms(loop);
    recommend_wake(loop);
}

static void loop_measure(struct td_recommend_loop *loop)
{
    static const struct td_measure_handler handler = {.pod = loop_sample, .done = loop_measured};
    loop->measure = td_measure_pods(loop->options.control.measures, loop->options.namespace,
                                    TD_STR_EMPTY, &handler, loop);
}

/* ---- Phases ---- */

static int loop_compare_checkpointed(const void *a, const void *b)
{
    const struct recommend_vpa *const *x = a;
    const struct recommend_vpa *const *y = b;
    if ((*x)->checkpointed != (*y)->checkpointed) {
        return (*x)->checkpointed < (*y)->checkpointed ? -1 : 1;
    }
    return td_str_compare((*x)->key, (*y)->key);
}

/* The VPAs of a phase of writes. */
static void loop_collect(struct td_recommend_loop *loop)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    td_vec_reset(&loop->turns);
    loop->turn_at = 0;
    while ((entry = td_map_next(&loop->vpas, &position))) {
        struct recommend_vpa *vpa = entry->value;
        bool is_due = !loop->is_urgent_only || vpa->is_urgent ||
                      (loop->is_telling && loop->phase == RECOMMEND_STATUSES);
        struct recommend_vpa **place = is_due ? td_vec_push(&loop->turns) : NULL;
        if (place) {
            *place = vpa;
        }
    }
}

static void loop_enter(struct td_recommend_loop *loop, enum recommend_phase phase)
{
    static const char *const steps[] = {
        [RECOMMEND_VPAS] = "LoadVPAs",
        [RECOMMEND_PODS] = "LoadPods",
        [RECOMMEND_METRICS] = "LoadMetrics",
        [RECOMMEND_STATUSES] = "UpdateVPAs",
        [RECOMMEND_CHECKPOINTS] = "MaintainCheckpoints",
        [RECOMMEND_GC] = "GarbageCollect", /* the others are no steps of every pass */
    };
    td_time now = recommend_now(loop);
    if (steps[loop->phase]) {
        recommend_tally_step(loop, steps[loop->phase], now - loop->phase_began);
    }
    loop->phase = phase;
    loop->phase_began = now;
    if (phase == RECOMMEND_VPAS) {
        recommend_roll_vpas(loop);
    } else if (phase == RECOMMEND_PODS) {
        recommend_take_pods(loop);
    } else if (phase == RECOMMEND_METRICS) {
        loop_measure(loop);
    } else if (phase == RECOMMEND_HISTORY) {
        recommend_read_checkpoints(loop);
    } else if (phase == RECOMMEND_PROMETHEUS) {
        recommend_history_start(loop);
    } else if (phase == RECOMMEND_STANZAS) {
        recommend_begin_stanzas(loop);
    } else if (phase == RECOMMEND_STATUSES) {
        recommend_tally_begin(loop);
        loop_collect(loop);
    } else if (phase == RECOMMEND_CHECKPOINTS) {
        loop_collect(loop);
        if (loop->turns.count > 0) {
            qsort(loop->turns.items, loop->turns.count, sizeof(*loop->turns.items),
                  loop_compare_checkpointed);
        }
    }
}

void recommend_settle(struct td_recommend_loop *loop)
{
    if (loop->stopped) {
        void (*stopped)(void *context) = loop->stopped;
        loop->stopped = NULL;
        stopped(loop->stopped_context);
    }
}

static void loop_finish(struct td_recommend_loop *loop)
{
    td_time now = recommend_now(loop);
    loop->is_looking = false;
    loop_enter(loop, RECOMMEND_IDLE);
    if (!loop->is_urgent_only) {
        recommend_tally_step(loop, "total", now - loop->pass_began);
        loop->last_pass = now;
    }
    loop->is_urgent_only = false;
    if (loop->ooms.count > 0 && !td_timer_is_set(loop->urgent)) {
        td_timer_set(loop->urgent, TD_RECOMMEND_URGENT_MS * TD_MILLISECOND);
    }
    recommend_settle(loop);
}

static bool loop_target_exists(void *context, td_str namespace, td_str kind, td_str name)
{
    struct td_recommend_loop *loop = context;
    const struct td_workload_source *source = td_sight_source(loop->options.control.sight);
    return source->get_workload(source->context, kind, namespace, name) != NULL;
}

static void loop_collect_garbage(struct td_recommend_loop *loop)
{
    td_time now = recommend_now(loop);
    const struct td_target_lookup lookup = {.target_exists = loop_target_exists, .context = loop};
    td_recommender_gc(loop->model, now, &lookup);
    if (now - loop->last_gc >= loop->options.checkpoints_gc_interval) {
        loop->last_gc = now;
        recommend_collect_checkpoints(loop);
    }
}

/* One VPA of a phase of writes; false when all were begun. */
static bool loop_write_next(struct td_recommend_loop *loop)
{
    if (loop->turn_at == loop->turns.count) {
        return false;
    }
    struct recommend_vpa *vpa = loop->turns.items[loop->turn_at];
    if (loop->phase == RECOMMEND_STATUSES) {
        recommend_write_status(loop, vpa);
    } else if (recommend_now(loop) - loop->phase_began < loop->options.checkpoints_timeout ||
               loop->turn_at < loop->options.writes_max) {
        recommend_write_checkpoints(loop, vpa);
        vpa->is_urgent = false;
    }
    loop->turn_at++;
    return true;
}

/* What comes after a phase that is over. */
static enum recommend_phase loop_next_phase(const struct td_recommend_loop *loop)
{
    switch (loop->phase) {
    case RECOMMEND_HISTORY:
        return RECOMMEND_PODS;
    case RECOMMEND_VPAS:
        return loop->has_history ? RECOMMEND_PODS : RECOMMEND_HISTORY;
    case RECOMMEND_PODS:
        if (loop->is_urgent_only) {
            return RECOMMEND_STANZAS;
        }
        return loop->history ? RECOMMEND_PROMETHEUS : RECOMMEND_METRICS;
    case RECOMMEND_PROMETHEUS: /* when it failed the pass begins anew, with checkpoints alone */
        return loop->has_history ? RECOMMEND_METRICS : RECOMMEND_VPAS;
    case RECOMMEND_METRICS:
        return RECOMMEND_STANZAS;
    case RECOMMEND_STANZAS:
        return loop->is_looking ? RECOMMEND_IDLE : RECOMMEND_STATUSES;
    case RECOMMEND_STATUSES:
        return RECOMMEND_CHECKPOINTS;
    case RECOMMEND_CHECKPOINTS:
        return loop->is_urgent_only ? RECOMMEND_IDLE : RECOMMEND_GC;
    default:
        return RECOMMEND_IDLE;
    }
}

/* Somebody who looks once cannot wait for the next pass, nor can history that is read once: true,
 * the targets of some VPAs are being asked for, and the job comes back. */
static bool loop_awaits_targets(struct td_recommend_loop *loop)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    bool is_awaited = loop->is_looking || (loop->is_running && !loop->has_history);
    if (!is_awaited || loop->look_tries++ >= LOOP_LOOK_TRIES_MAX) {
        return false;
    }
    while ((entry = td_map_next(&loop->vpas, &position))) {
        if (((const struct recommend_vpa *)entry->value)->linked == 0) {
            /* One key always fits. */
            (void)td_queue_add_after(loop->work, TD_STR("pass"), LOOP_LOOK_PAUSE, NULL);
            return true;
        }
    }
    return false;
}

/* The same of pods whose owners are being asked for. */
static bool loop_awaits_owners(struct td_recommend_loop *loop)
{
    if (!loop->is_running || !loop->history || loop->is_urgent_only || loop->dirty.count == 0 ||
        loop->look_tries++ >= LOOP_LOOK_TRIES_MAX) {
        return false;
    }
    (void)td_queue_add_after(loop->work, TD_STR("pass"), LOOP_LOOK_PAUSE, NULL); /* as above */
    return true;
}

enum loop_answer { LOOP_AGAIN, LOOP_WAITS, LOOP_OVER };

static enum loop_answer loop_write(struct td_recommend_loop *loop)
{
    if (loop->writes >= loop->options.writes_max) {
        return LOOP_WAITS;
    }
    if (loop_write_next(loop)) {
        return LOOP_AGAIN;
    }
    return loop->writes > 0 ? LOOP_WAITS : LOOP_OVER;
}

static enum loop_answer loop_feed(struct td_recommend_loop *loop)
{
    if (!recommend_feed_pods(loop)) {
        return LOOP_AGAIN;
    }
    if (loop->is_urgent_only) {
        recommend_feed_ooms(loop);
    }
    if (loop_awaits_owners(loop)) {
        recommend_take_pods(loop);
        return LOOP_WAITS;
    }
    return LOOP_OVER;
}

/* A piece of the phase: there is more of it, it waits for an answer, or it is over. */
static enum loop_answer loop_go_on(struct td_recommend_loop *loop)
{
    switch (loop->phase) {
    case RECOMMEND_IDLE:
        return LOOP_WAITS;
    case RECOMMEND_VPAS:
        if (recommend_link_next(loop)) {
            return LOOP_AGAIN;
        }
        if (loop_awaits_targets(loop)) {
            recommend_roll_vpas(loop);
            return LOOP_WAITS;
        }
        return LOOP_OVER;
    case RECOMMEND_PODS:
        return loop_feed(loop);
    case RECOMMEND_PROMETHEUS:
        if (!recommend_history_is_over(loop)) {
            return LOOP_WAITS;
        }
        recommend_history_free(loop);
        return LOOP_OVER;
    case RECOMMEND_HISTORY:
    case RECOMMEND_METRICS:
        if (loop->measure || loop->page) {
            return LOOP_WAITS;
        }
        return loop->phase == RECOMMEND_METRICS && !recommend_drop_pods(loop) ? LOOP_AGAIN
                                                                              : LOOP_OVER;
    case RECOMMEND_STANZAS:
        return recommend_find_stanzas(loop) ? LOOP_OVER : LOOP_AGAIN;
    case RECOMMEND_STATUSES:
    case RECOMMEND_CHECKPOINTS:
        return loop_write(loop);
    case RECOMMEND_GC:
        if (loop->last_gc < loop->pass_began) {
            loop_collect_garbage(loop);
        }
        return loop->writes > 0 || loop->page ? LOOP_WAITS : LOOP_OVER;
    }
    return LOOP_OVER;
}

/* One step of the pass; false: it waits for an answer, or is over. */
static bool loop_step(struct td_recommend_loop *loop)
{
    enum loop_answer answer = loop_go_on(loop);
    if (answer != LOOP_OVER) {
        return answer == LOOP_AGAIN;
    }
    bool goes_on = loop->is_running || loop->is_looking;
    enum recommend_phase next = goes_on ? loop_next_phase(loop) : RECOMMEND_IDLE;
    if (next == RECOMMEND_IDLE) {
        loop_finish(loop);
        return false;
    }
    loop_enter(loop, next);
    return true;
}

static enum td_job_result loop_work(td_str key, void *context)
{
    struct td_recommend_loop *loop = context;
    (void)key;
    while (loop_step(loop)) {
        if (td_loop_slice_is_over(loop->options.control.loop)) {
            return TD_JOB_AGAIN;
        }
    }
    return TD_JOB_DONE;
}

static bool loop_begin(struct td_recommend_loop *loop, bool is_urgent_only)
{
    if (loop->phase != RECOMMEND_IDLE || !td_sight_is_synced(loop->options.control.sight)) {
        return false;
    }
    loop->is_urgent_only = is_urgent_only;
    loop->is_telling = loop->must_tell;
    loop->must_tell = false;
    loop->pass_began = recommend_now(loop);
    loop_enter(loop, RECOMMEND_VPAS);
    recommend_wake(loop);
    return true;
}

static void loop_tick(struct td_timer *timer, void *context)
{
    struct td_recommend_loop *loop = context;
    td_timer_set(timer, loop->options.interval);
    (void)loop_begin(loop, false); /* the one under way, or the next, does it */
}

static void loop_hurry(struct td_timer *timer, void *context)
{
    struct td_recommend_loop *loop = context;
    if (!loop->is_running) {
        return;
    }
    if (!loop_begin(loop, true)) {
        td_timer_set(timer, TD_RECOMMEND_URGENT_MS * TD_MILLISECOND);
    }
}

static void loop_meet(struct td_timer *timer, void *context)
{
    struct td_recommend_loop *loop = context;
    (void)timer;
    if (loop->is_running && recommend_vpas_meet(loop) && !td_timer_is_set(loop->urgent)) {
        td_timer_set(loop->urgent, 0);
    }
}

/* ---- The whole ---- */

int td_recommend_loop_new(const struct td_recommend_options *options,
                          struct td_recommend_loop **ret, struct td_error *err)
{
    struct td_recommend_loop *loop = td_alloc_zero(1, sizeof(*loop));
    struct td_loop *events = options->control.loop;
    loop->options = *options;
    loop->options.writes_max = options->writes_max > 0 ? options->writes_max : 1;
    loop->model = td_recommender_new(&loop->options.config);
    loop->work = td_queue_new(events, loop_work, loop, 1);
    loop->timer = td_timer_new(events, loop_tick, loop);
    loop->urgent = td_timer_new(events, loop_hurry, loop);
    loop->meeting = td_timer_new(events, loop_meet, loop);
    td_map_init(&loop->vpas, TD_CACHE_OBJECTS_MAX);
    td_map_init(&loop->targets, TD_CACHE_OBJECTS_MAX);
    loop->turns.count_max = TD_CACHE_OBJECTS_MAX;
    loop->roll.count_max = 2 * TD_CACHE_OBJECTS_MAX; /* Hvpas too */
    td_arena_init(&loop->roll.arena, TD_TREE_ARENA_BYTES_MAX);
    recommend_tallies_init(loop);
    recommend_vpas_init(loop);
    int code = recommend_pods_init(loop, err);
    code = code == TD_OK ? recommend_history_new(loop, err) : code;
    if (code != TD_OK) {
        td_recommend_loop_free(loop);
        return code;
    }
    *ret = loop;
    return TD_OK;
}

void td_recommend_loop_start(struct td_recommend_loop *loop)
{
    loop->is_running = true;
    loop->look_tries = 0;
    loop->started = recommend_now(loop);
    if (!loop->is_watching) {
        loop->is_watching = true; /* also while another process leads */
        td_cache_start(loop->evictions);
    }
    td_timer_set(loop->timer, loop->options.interval);
}

void td_recommend_loop_stop(struct td_recommend_loop *loop, void (*done)(void *context),
                            void *context)
{
    loop->is_running = false;
    td_timer_stop(loop->timer);
    td_timer_stop(loop->urgent);
    if (loop->measure) {
        td_measure_cancel(loop->measure);
        loop->measure = NULL;
    }
    if (loop->page) { /* checkpoints are read from the first when it is started again */
        td_client_cancel(loop->page);
        loop->page = NULL;
    }
    if (loop->phase == RECOMMEND_PROMETHEUS) {
        recommend_history_stop(loop);
        loop_enter(loop, RECOMMEND_IDLE);
    }
    if (loop->phase == RECOMMEND_IDLE) {
        done(context);
        return;
    }
    loop->stopped = done;
    loop->stopped_context = context;
    recommend_wake(loop);
}

void td_recommend_loop_look(struct td_recommend_loop *loop, void (*done)(void *context),
                            void *context)
{
    td_assert(!loop->is_running);
    td_assert(loop->phase == RECOMMEND_IDLE);
    loop->is_looking = true;
    loop->look_tries = 0;
    loop->stopped = done;
    loop->stopped_context = context;
    loop->pass_began = recommend_now(loop);
    loop_enter(loop, RECOMMEND_VPAS);
    recommend_wake(loop);
}

void td_recommend_loop_free(struct td_recommend_loop *loop)
{
    if (!loop) {
        return;
    }
    if (loop->measure) {
        td_measure_cancel(loop->measure);
    }
    if (loop->page) {
        td_client_cancel(loop->page);
    }
    while (loop->first_write) {
        td_client_cancel(loop->first_write->call);
        recommend_write_end(loop->first_write);
    }
    recommend_history_free(loop);
    recommend_pods_done(loop);
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&loop->vpas, &position))) {
        recommend_vpa_free(entry->value);
    }
    td_map_done(&loop->vpas);
    td_map_done(&loop->targets);
    td_vec_done(&loop->turns);
    td_vec_done(&loop->roll);
    td_arena_done(&loop->roll.arena);
    recommend_tallies_done(loop);
    td_timer_free(loop->timer);
    td_timer_free(loop->urgent);
    td_timer_free(loop->meeting);
    recommend_vpas_done(loop);
    td_queue_free(loop->work);
    td_recommender_free(loop->model);
    td_free(loop);
}

struct td_recommender *td_recommend_loop_model(struct td_recommend_loop *loop)
{
    return loop->model;
}

bool td_recommend_loop_is_denied(const struct td_recommend_loop *loop)
{
    return loop->is_denied;
}

td_time td_recommend_loop_last(const struct td_recommend_loop *loop)
{
    return loop->last_pass > 0 ? loop->last_pass : TD_TIME_NONE;
}

td_str td_recommend_loop_trouble(const struct td_recommend_loop *loop, struct td_arena *arena)
{
    if (loop->last_pass < loop->started) {
        return TD_STR("nothing was recommended yet since the start");
    }
    if (loop->metrics_failures > 0) {
        return td_arena_format(arena, "metrics of pods cannot be read: %s",
                               loop->metrics_error.message);
    }
    if (loop->last_metrics == 0) {
        return TD_STR("no metrics of pods were read yet");
    }
    td_duration age = recommend_now(loop) - loop->last_metrics;
    if (age <= recommend_stale_age(loop)) {
        return TD_STR_EMPTY;
    }
    char text[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(age - age % TD_SECOND, text);
    return td_arena_format(arena, "the newest metrics of pods are %s old", text);
}

void td_recommend_loop_tell(struct td_recommend_loop *loop)
{
    const struct td_recommend_options *options = &loop->options;
    bool is_trouble =
        options->get_hook_trouble && options->get_hook_trouble(options->context).len > 0;
    if (!loop->is_running || (!loop->has_history && !is_trouble)) {
        return; /* the first pass says it */
    }
    loop->must_tell = true;
    if (!td_timer_is_set(loop->urgent)) {
        td_timer_set(loop->urgent, TD_RECOMMEND_URGENT_MS * TD_MILLISECOND);
    }
}

bool td_recommend_loop_is_reading(const struct td_recommend_loop *loop)
{
    return loop->phase == RECOMMEND_PROMETHEUS;
}

void td_recommend_loop_reread(struct td_recommend_loop *loop)
{
    loop->has_history = false;
    loop->look_tries = 0;
}
