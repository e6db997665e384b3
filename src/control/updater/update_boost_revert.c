/*
 * Startup boosts are taken back apart from the pass (vpa.md 3.7), soon after they
 * expire and for VPAs of any mode. A pod that is Ready and boosted is remembered, with the time
 * when it is to be looked at: when it was seen, when its boost will expire, or after a back-off.
 *
 * The queue has namespaces, not pods: all pods of one that are due are judged in one round over the
 * same VPAs and groups, so that a rollout of a thousand boosted pods does not read a thousand pods
 * a thousand times. The calls of a round, at most boost_syncs at one time, are done before the next
 * round begins. Everything can be learnt again from the pods, so nothing is kept over a restart.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/updater/update_private.h"
#include "decide/vertical/patch/boost.h"
#include "decide/vertical/updater/boost_revert.h"
#include "kube/client/client.h"
#include "kube/client/events.h"

#define UNBOOST_PAUSE_MIN (100 * TD_MILLISECOND) /* after the first failure, then doubled */
#define UNBOOST_PAUSE_MAX (1000 * TD_SECOND)
#define UNBOOST_LOOKUPS_MAX 5    /* pauses of a pod without a VPA, then it is forgotten */
#define UNBOOST_BUSY TD_SECOND   /* until an owner is known, or the cluster is */
#define UNBOOST_SETTLE TD_SECOND /* until caches have seen what we wrote */
#define UNBOOST_NEVER INT64_MAX  /* due only when the pod changes */
#define UNBOOST_ROUND_MAX 256    /* pods judged in one go */

struct revert_pod {
    td_str name; /* owned */
    unsigned pauses;
    td_time due;
};

struct revert_namespace {
    td_str name;        /* owned */
    struct td_map pods; /* by name */
};

/* A boost that is being taken back. */
struct revert_task {
    struct update_boost_revert *revert;
    td_str name; /* of the pod; in the arena, as all of it */
    const struct td_pod *pod;
    struct td_boost_revert_answer answer;
    struct td_client_call *call;
    bool is_annotating;
};

struct update_boost_revert {
    struct td_update_loop *loop;
    struct td_map namespaces; /* by name */
    size_t pod_count;
    struct td_queue *queue;
    struct td_timer *pause; /* until the rate limit lets a task through */
    bool is_running;

    /* Of the round under way. */
    struct td_arena arena;
    td_str namespace;
    struct revert_task *tasks;
    size_t task_count;
    size_t task_at; /* the next to be begun */
    size_t running;
    bool has_token; /* of the next */
};

/* ---- What is remembered ---- */

static void revert_pod_free(struct revert_pod *pod)
{
    td_text_free(pod->name);
    td_free(pod);
}

static struct revert_pod *revert_find(const struct update_boost_revert *revert, td_str namespace,
                                      td_str name)
{
    struct revert_namespace *ns = td_map_get(&revert->namespaces, namespace);
    return ns ? td_map_get(&ns->pods, name) : NULL;
}

/* The namespace stays: a round may be looking at it. */
static void revert_forget(struct update_boost_revert *revert, td_str namespace, td_str name)
{
    struct revert_namespace *ns = td_map_get(&revert->namespaces, namespace);
    struct revert_pod *pod = ns ? td_map_remove(&ns->pods, name) : NULL;
    if (pod) {
        revert->pod_count--;
        revert_pod_free(pod);
    }
}

static void revert_drop_namespace(struct update_boost_revert *revert, struct revert_namespace *ns)
{
    (void)td_map_remove(&revert->namespaces, ns->name);
    td_map_done(&ns->pods);
    td_text_free(ns->name);
    td_free(ns);
}

static struct revert_pod *revert_remember(struct update_boost_revert *revert, td_str namespace,
                                          td_str name)
{
    struct revert_namespace *ns = td_map_get(&revert->namespaces, namespace);
    if (!ns) {
        ns = td_alloc_zero(1, sizeof(*ns));
        ns->name = td_text_copy(namespace);
        td_map_init(&ns->pods, TD_UPDATER_PODS_MAX);
        if (td_map_put(&revert->namespaces, ns->name, ns) != TD_OK) {
            td_text_free(ns->name);
            td_free(ns);
            return NULL;
        }
    }
    struct revert_pod *pod = td_map_get(&ns->pods, name);
    if (!pod && revert->pod_count < TD_UPDATER_PODS_MAX) {
        pod = td_alloc_zero(1, sizeof(*pod));
        pod->name = td_text_copy(name);
        pod->due = UNBOOST_NEVER;
        (void)td_map_put(&ns->pods, pod->name, pod); /* it was counted: there is room */
        revert->pod_count++;
    }
    return pod;
}

/* A queue that is full has every namespace that it can have: the round after next sees the pod. */
static void revert_call_at(struct update_boost_revert *revert, td_str namespace, td_duration after)
{
    if (after > 0) {
        (void)td_queue_add_after(revert->queue, namespace, after, NULL);
    } else {
        (void)td_queue_add(revert->queue, namespace, NULL);
    }
}

static void revert_set_due(struct update_boost_revert *revert, td_str namespace,
                           struct revert_pod *pod, td_duration after)
{
    pod->due = update_now(revert->loop) + after;
    revert_call_at(revert, namespace, after);
}

static void revert_back_off(struct update_boost_revert *revert, td_str namespace,
                            struct revert_pod *pod)
{
    td_duration pause = UNBOOST_PAUSE_MIN;
    for (unsigned i = 0; i < pod->pauses && pause < UNBOOST_PAUSE_MAX; i++) {
        pause *= 2;
    }
    pod->pauses++;
    revert_set_due(revert, namespace, pod, pause < UNBOOST_PAUSE_MAX ? pause : UNBOOST_PAUSE_MAX);
}

/* Of two delays of one key a queue keeps the earlier, so the next one is asked for when a round is
 * over. */
static void revert_plan(struct update_boost_revert *revert, td_str namespace)
{
    struct revert_namespace *ns = td_map_get(&revert->namespaces, namespace);
    if (!ns || ns->pods.count == 0) {
        if (ns) {
            revert_drop_namespace(revert, ns);
        }
        return;
    }
    td_time first = UNBOOST_NEVER;
    for (struct td_map_walk at = {.map = &ns->pods}; td_map_step(&at);) {
        const struct revert_pod *pod = at.value;
        first = pod->due < first ? pod->due : first;
    }
    td_duration after = first - update_now(revert->loop);
    revert_call_at(revert, namespace, after > UNBOOST_PAUSE_MIN ? after : UNBOOST_PAUSE_MIN);
}

/* ---- Pods as they change ---- */

static bool revert_is_wanted(const struct td_informer_pod *pod)
{
    if (!td_informers_mentions(&pod->object, TD_BOOST_ANNOTATION_PREFIX)) {
        return false; /* nearly all */
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct td_pod decoded;
    return td_informers_tree(&arena, &pod->object, &tree, NULL) == TD_OK &&
           td_pod_decode(&arena, tree, &decoded, NULL) == TD_OK &&
           decoded.ready == TD_CONDITION_TRUE && td_boost_is_in_progress(&decoded);
}

static void revert_added(void *context, const void *object)
{
    struct update_boost_revert *revert = context;
    const struct td_informer_pod *seen = object;
    const struct td_updater_config *config = &revert->loop->options.config;
    td_str namespace = seen->object.head.namespace;
    if (!revert_is_wanted(seen) ||
        td_str_is_among(namespace, config->ignored_namespaces, config->ignored_namespace_count)) {
        return;
    }
    struct revert_pod *pod = revert_remember(revert, namespace, seen->object.head.name);
    if (pod) {
        revert_set_due(revert, namespace, pod, 0);
    }
}

static void revert_changed(void *context, const void *before, const void *after)
{
    (void)before;
    revert_added(context, after);
}

static void revert_deleted(void *context, const void *object)
{
    struct update_boost_revert *revert = context;
    const struct td_informer_pod *seen = object;
    td_str namespace = seen->object.head.namespace;
    revert_forget(revert, namespace, seen->object.head.name);
    struct revert_namespace *ns = td_map_get(&revert->namespaces, namespace);
    if (ns && ns->pods.count == 0 && !td_str_equal(namespace, revert->namespace)) {
        revert_drop_namespace(revert, ns);
    }
}

/* ---- Calls ---- */

static void revert_next(struct update_boost_revert *revert);

static void revert_tell(const struct revert_task *task)
{
    const struct td_control *control = &task->revert->loop->options.control;
    const struct td_meta *meta = &task->pod->meta;
    if (control->events) {
        td_events_record(control->events,
                         &(struct td_event){
                             .api_version = TD_STR("v1"),
                             .kind = TD_STR("Pod"),
                             .namespace = meta->namespace,
                             .name = meta->name,
                             .uid = meta->uid,
                             .reason = TD_STR("InPlaceResizedByVPA"),
                             .message = TD_STR("Pod was resized in place by VPA Updater."),
                             .decision = TD_STR("resized in place: startup boost ends"),
                         });
    }
}

static void revert_failed(struct update_boost_revert *revert,
                          const struct td_boost_revert_answer *answer, td_str name, const char *why)
{
    if (answer->vpa) {
        update_metrics_revert_boost(revert->loop, answer->vpa, answer->pod_count, false);
    }
    td_log_line(revert->loop->options.control.log, TD_LOG_WARN, "cannot revert CPU startup boost",
                TD_LOG_S("namespace", revert->namespace), TD_LOG_S("pod", name),
                TD_LOG_C("error", why));
}

/* A pod that changed meanwhile is looked at once more, when its change has arrived here too. */
static void revert_settle(struct revert_task *task, bool is_done)
{
    struct update_boost_revert *revert = task->revert;
    struct revert_pod *pod = revert_find(revert, revert->namespace, task->name);
    revert->running--;
    if (pod && !is_done) {
        revert_back_off(revert, revert->namespace, pod);
    } else if (pod && pod->due == UNBOOST_NEVER) {
        revert_forget(revert, revert->namespace, task->name);
    } else if (pod) {
        pod->pauses = 0;
        revert_set_due(revert, revert->namespace, pod, UNBOOST_SETTLE);
    }
}

static void revert_answered(void *context, const struct td_client_reply *reply);

/* False when nothing could be sent. */
static bool revert_send(struct revert_task *task)
{
    struct update_boost_revert *revert = task->revert;
    const struct td_control *control = &revert->loop->options.control;
    const struct td_json *patch =
        task->is_annotating ? task->answer.patch.pod : task->answer.patch.resize;
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (td_actuator_patch(&revert->arena, task->pod, patch, !task->is_annotating, NULL, &request,
                          &err) != TD_OK) {
        revert_failed(revert, &task->answer, task->name, err.message);
        return false;
    }
    request.flow = control->flow;
    task->call = td_client_send(control->client, &request, revert_answered, task);
    return true;
}

/* The resize comes first. While the annotation stands the pod counts as boosted, so one that could
 * not be removed is tried again with the whole. */
static void revert_answered(void *context, const struct td_client_reply *reply)
{
    struct revert_task *task = context;
    struct update_boost_revert *revert = task->revert;
    task->call = NULL;
    bool is_done = reply->code == TD_OK;
    if (!is_done) {
        revert_failed(revert, &task->answer, task->name, reply->err.message);
    } else if (!task->is_annotating) {
        update_metrics_revert_boost(revert->loop, task->answer.vpa, task->answer.pod_count, true);
        revert_tell(task);
        task->is_annotating = true;
        if (revert_send(task)) {
            return;
        }
        is_done = false;
    }
    revert_settle(task, is_done);
    revert_next(revert);
}

/* ---- Rounds ---- */

/* Tasks that were not begun are due again at the next start. */
static void revert_close(struct update_boost_revert *revert)
{
    for (; revert->task_at < revert->task_count; revert->task_at++) {
        td_str name = revert->tasks[revert->task_at].name;
        struct revert_pod *pod = revert_find(revert, revert->namespace, name);
        if (pod) {
            pod->due = update_now(revert->loop);
        }
    }
    revert_plan(revert, revert->namespace);
    revert->tasks = NULL;
    revert->task_count = 0;
    revert->task_at = 0;
    revert->has_token = false;
    revert->namespace = TD_STR_EMPTY;
    td_arena_done(&revert->arena); /* its memory is not needed until the next round */
    update_settle(revert->loop);
}

/* False when the next task has to wait for the rate limit of resizes. */
static bool revert_take_token(struct update_boost_revert *revert)
{
    const struct td_updater_config *config = &revert->loop->options.config;
    if (!revert->has_token) {
        td_time now = update_now(revert->loop);
        td_time at = td_token_bucket_take(update_resizes(revert->loop), config->rate_per_second,
                                          config->rate_burst, now);
        revert->has_token = true;
        if (at > now) {
            td_timer_set(revert->pause, at - now);
        }
    }
    return !td_timer_is_set(revert->pause);
}

static void revert_next(struct update_boost_revert *revert)
{
    size_t syncs = revert->loop->options.boost_syncs;
    while (revert->is_running && revert->task_at < revert->task_count &&
           revert->running < (syncs > 0 ? syncs : 1)) {
        if (!revert_take_token(revert)) {
            return;
        }
        struct revert_task *task = &revert->tasks[revert->task_at++];
        revert->has_token = false;
        revert->running++;
        if (!revert_send(task)) {
            revert_settle(task, false);
        }
    }
    bool is_over = !revert->is_running || revert->task_at == revert->task_count;
    if (revert->running == 0 && is_over && revert->namespace.len > 0) {
        revert_close(revert);
    }
}

static void revert_resume(struct td_timer *timer, void *context)
{
    (void)timer;
    revert_next(context);
}

/* What a round looks at. */
struct revert_view {
    struct update_boost_revert *revert;
    struct td_boost_revert round;
    struct revert_namespace *ns;
};

static size_t revert_pods(void *context, const struct td_pod **ret)
{
    struct revert_view *view = context;
    struct update_boost_revert *revert = view->revert;
    return update_gather_pods(revert->loop->options.control.informers, &revert->arena,
                              view->ns->name, ret);
}

static const struct td_pod *revert_decode(struct update_boost_revert *revert, td_str namespace,
                                          td_str name)
{
    struct td_informers *informers = revert->loop->options.control.informers;
    const struct td_informer_pod *seen =
        td_cache_get(td_informers_cache(informers, TD_INFORMER_PODS), namespace, name);
    struct td_pod *pod = td_arena_new(&revert->arena, struct td_pod);
    struct update_decoder decoder = {.informers = informers, .arena = &revert->arena};
    return seen && update_decode_pod(&decoder, &seen->object, pod) ? pod : NULL;
}

/* One pod that is due: forgotten, put off, or made a task. */
static void revert_judge(struct revert_view *view, struct revert_pod *pod)
{
    struct update_boost_revert *revert = view->revert;
    td_str namespace = view->ns->name;
    const struct td_pod *decoded = revert_decode(revert, namespace, pod->name);
    struct td_boost_revert_answer answer = {.fate = TD_BOOST_REVERT_NOTHING};
    struct td_error err = TD_ERROR_INIT;
    int code = decoded ? td_boost_revert_judge(&view->round, decoded, &answer, &err) : TD_OK;
    if (code == TD_BUSY) {
        revert_set_due(revert, namespace, pod, UNBOOST_BUSY);
        return;
    }
    if (code < 0) {
        revert_failed(revert, &answer, pod->name, err.message);
        revert_back_off(revert, namespace, pod);
        return;
    }
    bool is_lost = answer.fate == TD_BOOST_REVERT_NO_VPA && pod->pauses > UNBOOST_LOOKUPS_MAX;
    if (answer.fate == TD_BOOST_REVERT_NOTHING || is_lost) {
        revert_forget(revert, namespace, pod->name);
    } else if (answer.fate == TD_BOOST_REVERT_NOW) {
        pod->due = UNBOOST_NEVER;
        revert->tasks[revert->task_count++] =
            (struct revert_task){.revert = revert,
                                 .name = td_arena_copy_str(&revert->arena, pod->name),
                                 .pod = decoded,
                                 .answer = answer};
    } else if (answer.fate == TD_BOOST_REVERT_LATER && answer.after > 0) {
        pod->pauses = 0;
        revert_set_due(revert, namespace, pod, answer.after);
    } else {
        revert_back_off(revert, namespace, pod);
    }
}

/* The pods that are due, at most as many as a slice has time for. */
static void revert_judge_all(struct revert_view *view)
{
    struct update_boost_revert *revert = view->revert;
    td_time now = view->round.input.now;
    revert->tasks = td_arena_array(&revert->arena, struct revert_task, UNBOOST_ROUND_MAX);
    size_t judged = 0;
    for (struct td_map_walk at = {.map = &view->ns->pods}; td_map_step(&at);) {
        struct revert_pod *pod = at.value;
        if (pod->due > now) {
            continue;
        }
        if (judged++ == UNBOOST_ROUND_MAX) {
            return; /* the others are still due when this round is over */
        }
        revert_judge(view, pod);
    }
}

static enum td_job_result revert_round(td_str namespace, void *context)
{
    struct update_boost_revert *revert = context;
    const struct td_update_options *options = &revert->loop->options;
    struct revert_view view = {.revert = revert, .ns = td_map_get(&revert->namespaces, namespace)};
    if (!revert->is_running || !view.ns) {
        return TD_JOB_DONE; /* the start calls for all */
    }
    if (revert->namespace.len > 0 || !update_is_fresh(revert->loop)) {
        revert_call_at(revert, namespace,
                       revert->namespace.len > 0 ? UNBOOST_PAUSE_MIN : UNBOOST_BUSY);
        return TD_JOB_DONE;
    }
    struct td_boost_revert_input input = {
        .arena = &revert->arena,
        .now = update_now(revert->loop),
        .config = &options->config.restriction,
        .gates = &options->control.gates,
        .source = td_informers_source(options->control.informers),
        .limits = td_informers_limits(options->control.informers, namespace),
        .context = &view,
        .get_pods = revert_pods,
    };
    input.vpa_count = update_gather_vpas(options->control.informers, &revert->arena, namespace,
                                         NULL, &input.vpas);
    if (td_boost_revert_begin(&view.round, &input, NULL) != TD_OK) {
        revert_call_at(revert, namespace, UNBOOST_BUSY);
        td_arena_reset(&revert->arena);
        return TD_JOB_DONE;
    }
    revert->namespace = td_arena_copy_str(&revert->arena, namespace);
    revert_judge_all(&view);
    td_boost_revert_end(&view.round);
    revert_next(revert);
    return TD_JOB_DONE;
}

/* ---- The whole ---- */

struct update_boost_revert *update_boost_revert_new(struct td_update_loop *loop)
{
    static const struct td_cache_handler handler = {
        .added = revert_added,
        .changed = revert_changed,
        .deleted = revert_deleted,
    };
    struct update_boost_revert *revert = td_alloc_zero(1, sizeof(*revert));
    revert->loop = loop;
    td_map_init(&revert->namespaces, TD_CACHE_OBJECTS_MAX);
    td_arena_init(&revert->arena, TD_UPDATE_ARENA_BYTES_MAX);
    revert->queue =
        td_queue_new(loop->options.control.loop, revert_round, revert, TD_CACHE_OBJECTS_MAX);
    revert->pause = td_timer_new(loop->options.control.loop, revert_resume, revert);
    td_informers_subscribe(loop->options.control.informers, TD_INFORMER_PODS, &handler, revert);
    return revert;
}

void update_boost_revert_start(struct update_boost_revert *revert)
{
    revert->is_running = true;
    for (struct td_map_walk at = {.map = &revert->namespaces}; td_map_step(&at);) {
        revert_call_at(revert, at.key, 0);
    }
}

void update_boost_revert_stop(struct update_boost_revert *revert)
{
    revert->is_running = false;
    td_timer_stop(revert->pause);
    revert_next(revert);
}

bool update_boost_revert_is_idle(const struct update_boost_revert *revert)
{
    return revert->namespace.len == 0;
}

void update_boost_revert_free(struct update_boost_revert *revert)
{
    if (!revert) {
        return;
    }
    for (size_t i = 0; i < revert->task_at; i++) {
        td_client_cancel(revert->tasks[i].call);
    }
    for (struct td_map_walk at = {.map = &revert->namespaces}; td_map_step(&at);) {
        struct revert_namespace *ns = at.value;
        for (struct td_map_walk pod = {.map = &ns->pods}; td_map_step(&pod);) {
            revert_pod_free(pod.value);
        }
        revert_drop_namespace(revert, ns);
    }
    td_map_done(&revert->namespaces);
    td_queue_free(revert->queue);
    td_timer_free(revert->pause);
    td_arena_done(&revert->arena);
    td_free(revert);
}
