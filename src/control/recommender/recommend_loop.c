/*
 * The recommender's pass, and what starts and ends it.
 *
 * What starts it: once the informers are synced, a timer begins a whole pass every interval. An
 * urgent pass, seconds after its cause, brings what cannot wait for the next whole one: an OOM, two
 * VPAs that have come to share a target, a webhook that has begun or ceased to work. `tandem
 * recommend` and `tandem explain` run one looking pass on a loop that is not started.
 *
 * Its states are the rows of `phases`, below, from top to bottom; each row says in which kinds of
 * pass it takes part. Between two passes the loop is in RECOMMEND_IDLE. One job works the phases
 * off in slices of time: where a phase waits for an answer (a page of checkpoints, metrics,
 * Prometheus, a write) the job ends, and the answer wakes it. The first pass of a leader reads the
 * checkpoints, and Prometheus where there is one; when checkpoints cannot be read the pass is given
 * up, since statuses and checkpoints made without them would be poorer than those that are stored.
 *
 * What it may write: the status of VPAs that are its own, their checkpoints, events on those VPAs;
 * it removes checkpoints without a VPA. Never pods, workloads, or the spec of anything. A looking
 * pass writes nothing.
 *
 * How it stops: td_recommend_loop_stop cancels reads, lets the writes that are under way end, and
 * enters no further phase. What is in the model stays for the next start, unless another process
 * has led in between (td_recommend_loop_reread).
 */
#include "control/recommender/recommend_loop.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/os/usage.h"
#include "base/timefmt.h"
#include "control/recommender/recommend_metrics.h"
#include "control/recommender/recommend_private.h"
#include "kube/client/client.h"
#include "kube/client/metrics_client.h"

#define LOOP_LOOK_PAUSE (100 * TD_MILLISECOND)
#define LOOP_LOOK_TRIES_MAX 50
#define LOOP_TELL_PAUSE (10 * TD_SECOND) /* between lines about a first pass that takes long */

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
    *write =
        (struct recommend_write){.loop = loop, .next = loop->pass.first_write, .release = release};
    if (write->next) {
        write->next->previous = write;
    }
    loop->pass.first_write = write;
    loop->pass.writes++;
}

void recommend_write_end(struct recommend_write *write)
{
    struct td_recommend_loop *loop = write->loop;
    *(write->previous ? &write->previous->next : &loop->pass.first_write) = write->next;
    if (write->next) {
        write->next->previous = write->previous;
    }
    write->release(write);
    loop->pass.writes--;
}

struct recommend_vpa *recommend_find(const struct td_recommend_loop *loop, td_str ns, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&loop->vpas, td_object_key_write(TD_OBJECT_KEY(ns, name), buffer));
}

/* ---- Metrics ---- */

static void loop_sample(void *context, const struct td_container_metrics *measure)
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
    loop->pass.measure = NULL;
    loop->metrics_error = *err;
    loop->metrics_failures = code == TD_OK ? 0 : loop->metrics_failures + 1;
    recommend_metrics_responses(loop, code != TD_OK);
    if (code != TD_OK && code != TD_NOT_FOUND) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "cannot read pod metrics",
                    TD_LOG_C("error", err->message));
    }
    recommend_feed_ooms(loop);
    recommend_wake(loop);
}

static void loop_measure(struct td_recommend_loop *loop)
{
    static const struct td_metrics_handler handler = {.pod = loop_sample, .done = loop_measured};
    loop->pass.measure = td_metrics_get_pods(loop->options.control.metrics_client,
                                             loop->options.namespace, TD_STR_EMPTY, &handler, loop);
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

/* The VPAs that a phase of writes has to look at. */
static void loop_collect(struct td_recommend_loop *loop)
{
    td_vec_reset(&loop->pass.turns);
    loop->pass.turn_at = 0;
    for (struct td_map_walk at = {.map = &loop->vpas}; td_map_step(&at);) {
        struct recommend_vpa *vpa = at.value;
        bool is_due = loop->pass.kind != RECOMMEND_URGENT || vpa->is_urgent ||
                      (loop->pass.is_telling && loop->pass.phase == RECOMMEND_STATUSES);
        struct recommend_vpa **place = is_due ? td_vec_push(&loop->pass.turns) : NULL;
        if (place) {
            *place = vpa;
        }
    }
}

/* What a step of a phase says: there is more to do, an answer is awaited, it is over, or the pass
 * has to begin anew. */
enum loop_answer { LOOP_AGAIN, LOOP_WAITS, LOOP_OVER, LOOP_RESTARTS };

/* Tries again in a moment; false when it has been tried too often since the start. */
static bool loop_try_later(struct td_recommend_loop *loop)
{
    if (loop->look_tries++ >= LOOP_LOOK_TRIES_MAX) {
        return false;
    }
    /* One key always fits. */
    (void)td_queue_add_after(loop->work, TD_STR("pass"), LOOP_LOOK_PAUSE, NULL);
    return true;
}

static bool loop_has_unlinked(const struct td_recommend_loop *loop)
{
    for (struct td_map_walk at = {.map = &loop->vpas}; td_map_step(&at);) {
        if (((const struct recommend_vpa *)at.value)->linked == 0) {
            return true;
        }
    }
    return false;
}

/* A VPA whose target is being asked for is linked by the next pass. A looking pass has no next one,
 * and history is read once: they wait for the targets. */
static enum loop_answer loop_link(struct td_recommend_loop *loop)
{
    if (recommend_link_next(loop)) {
        return LOOP_AGAIN;
    }
    bool is_awaited = loop->pass.kind == RECOMMEND_LOOK || (loop->is_running && !loop->has_history);
    if (is_awaited && loop_has_unlinked(loop) && loop_try_later(loop)) {
        recommend_roll_vpas(loop);
        return LOOP_WAITS;
    }
    return LOOP_OVER;
}

static void loop_remember(struct td_recommend_loop *loop)
{
    if (!loop->has_history) {
        recommend_read_checkpoints(loop);
    }
}

static enum loop_answer loop_await_page(struct td_recommend_loop *loop)
{
    return loop->pass.page ? LOOP_WAITS : LOOP_OVER;
}

/* Before history is read from Prometheus, pods whose owners are being asked for are waited for. */
static enum loop_answer loop_feed(struct td_recommend_loop *loop)
{
    if (!recommend_feed_pods(loop)) {
        return LOOP_AGAIN;
    }
    bool is_urgent = loop->pass.kind == RECOMMEND_URGENT;
    if (is_urgent) {
        recommend_feed_ooms(loop);
    }
    if (loop->is_running && loop->history && !is_urgent && loop->pods.dirty.texts.count > 0 &&
        loop_try_later(loop)) {
        recommend_take_pods(loop);
        return LOOP_WAITS;
    }
    return LOOP_OVER;
}

static void loop_ask_history(struct td_recommend_loop *loop)
{
    if (loop->history) {
        recommend_history_start(loop);
    }
}

/* When it failed the pass begins anew, with checkpoints alone. */
static enum loop_answer loop_await_history(struct td_recommend_loop *loop)
{
    if (!loop->history) {
        return LOOP_OVER;
    }
    if (!recommend_history_is_over(loop)) {
        return LOOP_WAITS;
    }
    recommend_history_free(loop);
    return loop->has_history ? LOOP_OVER : LOOP_RESTARTS;
}

static enum loop_answer loop_await_metrics(struct td_recommend_loop *loop)
{
    if (loop->pass.measure) {
        return LOOP_WAITS;
    }
    return recommend_drop_pods(loop) ? LOOP_OVER : LOOP_AGAIN;
}

static enum loop_answer loop_find_stanzas(struct td_recommend_loop *loop)
{
    return recommend_find_stanzas(loop) ? LOOP_OVER : LOOP_AGAIN;
}

/* The next VPA of a phase of writes, as long as there are not too many writes under way. */
static enum loop_answer loop_write(struct td_recommend_loop *loop,
                                   void (*write)(struct td_recommend_loop *loop,
                                                 struct recommend_vpa *vpa))
{
    if (loop->pass.writes >= loop->options.writes_max) {
        return LOOP_WAITS;
    }
    if (loop->pass.turn_at < loop->pass.turns.count) {
        write(loop, loop->pass.turns.items[loop->pass.turn_at]);
        loop->pass.turn_at++;
        return LOOP_AGAIN;
    }
    return loop->pass.writes > 0 ? LOOP_WAITS : LOOP_OVER;
}

static void loop_begin_statuses(struct td_recommend_loop *loop)
{
    recommend_metrics_begin(loop);
    loop_collect(loop);
}

static enum loop_answer loop_write_statuses(struct td_recommend_loop *loop)
{
    return loop_write(loop, recommend_write_status);
}

/* Those that were written longest ago come first: what the timeout leaves out has its turn then. */
static void loop_begin_checkpoints(struct td_recommend_loop *loop)
{
    loop_collect(loop);
    if (loop->pass.turns.count > 0) {
        qsort(loop->pass.turns.items, loop->pass.turns.count, sizeof(*loop->pass.turns.items),
              loop_compare_checkpointed);
    }
}

static void loop_write_checkpoint(struct td_recommend_loop *loop, struct recommend_vpa *vpa)
{
    td_duration took = recommend_now(loop) - loop->pass.phase_began;
    if (took < loop->options.checkpoints_timeout || loop->pass.turn_at < loop->options.writes_max) {
        if (!loop->options.is_quiet) {
            recommend_write_checkpoints(loop, vpa);
        }
        vpa->is_urgent = false;
    }
}

static enum loop_answer loop_write_all_checkpoints(struct td_recommend_loop *loop)
{
    return loop_write(loop, loop_write_checkpoint);
}

static bool loop_target_exists(void *context, td_str namespace, td_str kind, td_str name)
{
    static const enum td_informer_kind kinds[] = {
        [TD_WORKLOAD_CRON_JOB] = TD_INFORMER_CRON_JOBS,
        [TD_WORKLOAD_DAEMON_SET] = TD_INFORMER_DAEMON_SETS,
        [TD_WORKLOAD_DEPLOYMENT] = TD_INFORMER_DEPLOYMENTS,
        [TD_WORKLOAD_JOB] = TD_INFORMER_JOBS,
        [TD_WORKLOAD_REPLICATION_CONTROLLER] = TD_INFORMER_REPLICATION_CONTROLLERS,
        [TD_WORKLOAD_REPLICA_SET] = TD_INFORMER_REPLICA_SETS,
        [TD_WORKLOAD_STATEFUL_SET] = TD_INFORMER_STATEFUL_SETS,
    };
    struct td_recommend_loop *loop = context;
    enum td_workload_kind workload = td_workload_kind_of(kind);
    if (workload == TD_WORKLOAD_OTHER) {
        return false;
    }
    /* It is there, that is enough: asked for as a workload each of them would be decoded. */
    const struct td_cache *cache =
        td_informers_cache(loop->options.control.informers, kinds[workload]);
    return cache && td_cache_get(cache, namespace, name);
}

static void loop_collect_garbage(struct td_recommend_loop *loop)
{
    td_time now = recommend_now(loop);
    const struct td_target_lookup lookup = {.target_exists = loop_target_exists, .context = loop};
    td_recommender_gc(loop->model, now, &lookup);
    bool is_due = now - loop->last_gc >= loop->options.checkpoints_gc_interval;
    if (is_due && !loop->options.is_quiet) {
        loop->last_gc = now;
        if (td_clock_real_span(td_loop_clock(loop->options.control.loop), TD_SECOND) > 0) {
            td_usage_trim(); /* the first pass needs more than those that follow */
        }
        recommend_collect_checkpoints(loop);
    }
}

static enum loop_answer loop_await_garbage(struct td_recommend_loop *loop)
{
    return loop->pass.writes > 0 || loop->pass.page ? LOOP_WAITS : LOOP_OVER;
}

/* The kinds of pass that a phase is part of. */
#define IN_ALL (RECOMMEND_WHOLE | RECOMMEND_URGENT | RECOMMEND_LOOK)
#define IN_READS (RECOMMEND_WHOLE | RECOMMEND_LOOK)
#define IN_WRITES (RECOMMEND_WHOLE | RECOMMEND_URGENT)

/* The pass, like upstream's RunOnce. A name is upstream's for the step of a metric; phases without
 * one are not measured. */
static const struct loop_phase {
    const char *name;
    unsigned kinds;
    void (*enter)(struct td_recommend_loop *loop);
    enum loop_answer (*step)(struct td_recommend_loop *loop);
} phases[RECOMMEND_PHASES] = {
    [RECOMMEND_VPAS] = {"LoadVPAs", IN_ALL, recommend_roll_vpas, loop_link},
    [RECOMMEND_MEMORY] = {NULL, IN_ALL, loop_remember, loop_await_page},
    [RECOMMEND_PODS] = {"LoadPods", IN_ALL, recommend_take_pods, loop_feed},
    [RECOMMEND_PROMETHEUS] = {NULL, IN_READS, loop_ask_history, loop_await_history},
    [RECOMMEND_METRICS] = {"LoadMetrics", IN_READS, loop_measure, loop_await_metrics},
    [RECOMMEND_STANZAS] = {NULL, IN_ALL, recommend_begin_stanzas, loop_find_stanzas},
    [RECOMMEND_STATUSES] = {"UpdateVPAs", IN_WRITES, loop_begin_statuses, loop_write_statuses},
    [RECOMMEND_CHECKPOINTS] = {"MaintainCheckpoints", IN_WRITES, loop_begin_checkpoints,
                               loop_write_all_checkpoints},
    [RECOMMEND_GC] = {"GarbageCollect", RECOMMEND_WHOLE, loop_collect_garbage, loop_await_garbage},
};

/* ---- What is said of the first pass ---- */

/* Of a large cluster it takes a while: who waits for it sees where it is. */
static bool loop_is_first(const struct td_recommend_loop *loop)
{
    return loop->is_running && loop->last_pass < loop->started &&
           loop->pass.kind == RECOMMEND_WHOLE;
}

/* What the phase under way still has to do, where it is known. */
static size_t loop_left(const struct td_recommend_loop *loop)
{
    switch (loop->pass.phase) {
    case RECOMMEND_VPAS:
        return loop->pass.roll.count - loop->pass.roll.at;
    case RECOMMEND_PODS:
        return loop->pods.feeding.texts.count;
    case RECOMMEND_STATUSES:
    case RECOMMEND_CHECKPOINTS:
        return loop->pass.turns.count - loop->pass.turn_at + loop->pass.writes;
    default:
        return 0;
    }
}

static void loop_tell_progress(struct td_recommend_loop *loop)
{
    static const char *const words[RECOMMEND_PHASES] = {
        [RECOMMEND_VPAS] = "finds the pods of VPAs",
        [RECOMMEND_MEMORY] = "reads checkpoints",
        [RECOMMEND_PODS] = "reads pods",
        [RECOMMEND_PROMETHEUS] = "reads history",
        [RECOMMEND_METRICS] = "reads metrics",
        [RECOMMEND_STANZAS] = "reads resources of pods",
        [RECOMMEND_STATUSES] = "writes recommendations",
        [RECOMMEND_CHECKPOINTS] = "writes checkpoints",
        [RECOMMEND_GC] = "forgets what is gone",
    };
    td_time now = recommend_now(loop);
    if (loop_is_first(loop) && words[loop->pass.phase] &&
        now - loop->pass.told >= LOOP_TELL_PAUSE) {
        loop->pass.told = now;
        td_log_line(loop->options.control.log, TD_LOG_INFO, "recommender's first pass goes on",
                    TD_LOG_C("it", words[loop->pass.phase]),
                    TD_LOG_I("left", (int64_t)loop_left(loop)),
                    TD_LOG_I("seconds", (now - loop->pass.began) / TD_SECOND));
    }
}

static void loop_tell_end(const struct td_recommend_loop *loop, td_time now)
{
    if (loop_is_first(loop) && now - loop->pass.began >= LOOP_TELL_PAUSE) {
        td_log_line(loop->options.control.log, TD_LOG_INFO, "recommender's first pass is over",
                    TD_LOG_I("vpas", (int64_t)loop->vpas.count),
                    TD_LOG_I("seconds", (now - loop->pass.began) / TD_SECOND));
    }
}

/* ---- Steps ---- */

static void loop_leave(struct td_recommend_loop *loop)
{
    const char *name = phases[loop->pass.phase].name;
    if (name) {
        recommend_metrics_step(loop, name, recommend_now(loop) - loop->pass.phase_began);
    }
}

static void loop_enter(struct td_recommend_loop *loop, enum recommend_phase phase)
{
    loop_leave(loop);
    loop->pass.phase = phase;
    loop->pass.phase_began = recommend_now(loop);
    phases[phase].enter(loop);
}

void recommend_end(struct td_recommend_loop *loop)
{
    loop->pass.phase = RECOMMEND_IDLE;
    if (loop->stopped) {
        void (*stopped)(void *context) = loop->stopped;
        loop->stopped = NULL;
        stopped(loop->stopped_context);
    }
}

static void loop_finish(struct td_recommend_loop *loop)
{
    td_time now = recommend_now(loop);
    loop_leave(loop);
    loop_tell_end(loop, now);
    if (loop->pass.kind != RECOMMEND_URGENT) {
        recommend_metrics_step(loop, "total", now - loop->pass.began);
        loop->last_pass = now;
    }
    if (loop->pods.ooms.count > 0 && !td_timer_is_set(loop->urgent)) {
        td_timer_set(loop->urgent, TD_RECOMMEND_URGENT_MS * TD_MILLISECOND);
    }
    recommend_end(loop);
}

/* One step of the pass; false: it waits for an answer, or is over. */
static bool loop_step(struct td_recommend_loop *loop)
{
    unsigned phase = loop->pass.phase;
    if (phase == RECOMMEND_IDLE) {
        return false;
    }
    enum loop_answer answer = phases[phase].step(loop);
    if (answer == LOOP_AGAIN || answer == LOOP_WAITS) {
        return answer == LOOP_AGAIN;
    }
    bool goes_on = loop->is_running || loop->pass.kind == RECOMMEND_LOOK;
    phase = answer == LOOP_RESTARTS ? RECOMMEND_VPAS : phase + 1;
    while (phase < RECOMMEND_PHASES && !(phases[phase].kinds & loop->pass.kind)) {
        phase++;
    }
    if (!goes_on || phase == RECOMMEND_PHASES) {
        loop_finish(loop);
        return false;
    }
    loop_enter(loop, phase);
    return true;
}

static enum td_job_result loop_work(td_str key, void *context)
{
    struct td_recommend_loop *loop = context;
    (void)key;
    loop_tell_progress(loop);
    while (loop_step(loop)) {
        if (td_loop_slice_is_over(loop->options.control.loop)) {
            return TD_JOB_AGAIN;
        }
    }
    return TD_JOB_DONE;
}

static bool loop_begin(struct td_recommend_loop *loop, enum recommend_kind kind)
{
    if (loop->pass.phase != RECOMMEND_IDLE ||
        !td_informers_is_synced(loop->options.control.informers)) {
        return false;
    }
    loop->pass.kind = kind;
    loop->pass.is_telling = loop->must_tell;
    loop->must_tell = false;
    loop->pass.began = recommend_now(loop);
    loop->pass.told = loop->pass.began;
    loop_enter(loop, RECOMMEND_VPAS);
    recommend_wake(loop);
    return true;
}

static void loop_tick(struct td_timer *timer, void *context)
{
    struct td_recommend_loop *loop = context;
    td_timer_set(timer, loop->options.interval);
    (void)loop_begin(loop, RECOMMEND_WHOLE); /* the one under way, or the next, does it */
}

static void loop_hurry(struct td_timer *timer, void *context)
{
    struct td_recommend_loop *loop = context;
    if (!loop->is_running) {
        return;
    }
    if (!loop_begin(loop, RECOMMEND_URGENT)) {
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
    loop->pass.turns.count_max = TD_CACHE_OBJECTS_MAX;
    loop->pass.roll.count_max = 2 * TD_CACHE_OBJECTS_MAX; /* Hvpas too */
    td_arena_init(&loop->pass.roll.arena, TD_TREE_ARENA_BYTES_MAX);
    recommend_metrics_init(loop);
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
    if (!loop->pods.is_watching) {
        loop->pods.is_watching = true; /* also while another process leads */
        td_cache_start(loop->pods.evictions);
    }
    td_timer_set(loop->timer, loop->options.interval);
}

void td_recommend_loop_stop(struct td_recommend_loop *loop, void (*done)(void *context),
                            void *context)
{
    loop->is_running = false;
    td_timer_stop(loop->timer);
    td_timer_stop(loop->urgent);
    if (loop->pass.measure) {
        td_metrics_cancel(loop->pass.measure);
        loop->pass.measure = NULL;
    }
    td_client_cancel(
        loop->pass.page); /* checkpoints are read from the first when it is started again */
    loop->pass.page = NULL;
    if (td_recommend_loop_is_reading(loop)) {
        recommend_history_stop(loop);
        loop->pass.phase = RECOMMEND_IDLE;
    }
    if (loop->pass.phase == RECOMMEND_IDLE) {
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
    td_assert(loop->pass.phase == RECOMMEND_IDLE);
    loop->pass.kind = RECOMMEND_LOOK;
    loop->look_tries = 0;
    loop->stopped = done;
    loop->stopped_context = context;
    loop->pass.began = recommend_now(loop);
    loop_enter(loop, RECOMMEND_VPAS);
    recommend_wake(loop);
}

void td_recommend_loop_free(struct td_recommend_loop *loop)
{
    if (!loop) {
        return;
    }
    if (loop->pass.measure) {
        td_metrics_cancel(loop->pass.measure);
    }
    td_client_cancel(loop->pass.page);
    while (loop->pass.first_write) {
        td_client_cancel(loop->pass.first_write->call);
        recommend_write_end(loop->pass.first_write);
    }
    recommend_history_free(loop);
    recommend_pods_done(loop);
    for (struct td_map_walk at = {.map = &loop->vpas}; td_map_step(&at);) {
        recommend_vpa_free(at.value);
    }
    td_map_done(&loop->vpas);
    td_map_done(&loop->targets);
    td_vec_done(&loop->pass.turns);
    td_vec_done(&loop->pass.roll);
    td_arena_done(&loop->pass.roll.arena);
    td_free(loop->metrics);
    td_timer_free(loop->timer);
    td_timer_free(loop->urgent);
    td_timer_free(loop->meeting);
    td_string_set_done(&loop->fresh);
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

td_str td_recommend_loop_problem(const struct td_recommend_loop *loop, struct td_arena *arena)
{
    if (loop->last_pass < loop->started) {
        return TD_STR("the recommender has not finished its first pass yet");
    }
    if (loop->metrics_failures > 0) {
        return td_arena_format(arena, "cannot read pod metrics: %s", loop->metrics_error.message);
    }
    if (loop->last_metrics == 0) {
        return TD_STR("the recommender has not read pod metrics yet");
    }
    td_duration age = recommend_now(loop) - loop->last_metrics;
    if (age <= recommend_stale_age(loop)) {
        return TD_STR_EMPTY;
    }
    char text[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(age - age % TD_SECOND, text);
    return td_arena_format(arena, "the newest pod metrics are %s old", text);
}

void td_recommend_loop_tell(struct td_recommend_loop *loop)
{
    const struct td_recommend_options *options = &loop->options;
    bool is_problem =
        options->get_webhook_problem && options->get_webhook_problem(options->context).len > 0;
    if (!loop->is_running || (!loop->has_history && !is_problem)) {
        return; /* the first pass says it */
    }
    loop->must_tell = true;
    if (!td_timer_is_set(loop->urgent)) {
        td_timer_set(loop->urgent, TD_RECOMMEND_URGENT_MS * TD_MILLISECOND);
    }
}

bool td_recommend_loop_is_reading(const struct td_recommend_loop *loop)
{
    return loop->pass.phase == RECOMMEND_PROMETHEUS && loop->history;
}

void td_recommend_loop_reread(struct td_recommend_loop *loop)
{
    loop->has_history = false;
    loop->look_tries = 0;
}
