/*
 * Startup boosts are taken back apart from the pass (corrections.md, vpa.md 10), soon after they
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

struct unboost_pod {
    td_str name; /* owned */
    unsigned pauses;
    td_time due;
};

struct unboost_namespace {
    td_str name;        /* owned */
    struct td_map pods; /* by name */
};

/* A boost that is being taken back. */
struct unboost_task {
    struct update_unboost *unboost;
    td_str name; /* of the pod; in the arena, as all of it */
    const struct td_vertical_pod *pod;
    struct td_unboost_answer answer;
    struct td_client_call *call;
    bool is_annotating;
};

struct update_unboost {
    struct td_update_loop *loop;
    struct td_map namespaces; /* by name */
    size_t pod_count;
    struct td_queue *queue;
    struct td_timer *pause; /* until the rate limit lets a task through */
    bool is_running;

    /* Of the round under way. */
    struct td_arena arena;
    td_str namespace;
    struct unboost_task *tasks;
    size_t task_count;
    size_t task_at; /* the next to be begun */
    size_t running;
    bool has_token; /* of the next */
};

/* ---- What is remembered ---- */

static void unboost_pod_free(struct unboost_pod *pod)
{
    td_text_free(pod->name);
    td_free(pod);
}

static struct unboost_pod *unboost_find(const struct update_unboost *unboost, td_str namespace,
                                        td_str name)
{
    struct unboost_namespace *ns = td_map_get(&unboost->namespaces, namespace);
    return ns ? td_map_get(&ns->pods, name) : NULL;
}

/* The namespace stays: a round may be looking at it. */
static void unboost_forget(struct update_unboost *unboost, td_str namespace, td_str name)
{
    struct unboost_namespace *ns = td_map_get(&unboost->namespaces, namespace);
    struct unboost_pod *pod = ns ? td_map_remove(&ns->pods, name) : NULL;
    if (pod) {
        unboost->pod_count--;
        unboost_pod_free(pod);
    }
}

static void unboost_drop_namespace(struct update_unboost *unboost, struct unboost_namespace *ns)
{
    (void)td_map_remove(&unboost->namespaces, ns->name);
    td_map_done(&ns->pods);
    td_text_free(ns->name);
    td_free(ns);
}

static struct unboost_pod *unboost_remember(struct update_unboost *unboost, td_str namespace,
                                            td_str name)
{
    struct unboost_namespace *ns = td_map_get(&unboost->namespaces, namespace);
    if (!ns) {
        ns = td_alloc_zero(1, sizeof(*ns));
        ns->name = td_text_copy(namespace);
        td_map_init(&ns->pods, TD_UPDATER_PODS_MAX);
        if (td_map_put(&unboost->namespaces, ns->name, ns) != TD_OK) {
            td_text_free(ns->name);
            td_free(ns);
            return NULL;
        }
    }
    struct unboost_pod *pod = td_map_get(&ns->pods, name);
    if (!pod && unboost->pod_count < TD_UPDATER_PODS_MAX) {
        pod = td_alloc_zero(1, sizeof(*pod));
        pod->name = td_text_copy(name);
        pod->due = UNBOOST_NEVER;
        (void)td_map_put(&ns->pods, pod->name, pod); /* it was counted: there is room */
        unboost->pod_count++;
    }
    return pod;
}

/* A queue that is full has every namespace that it can have: the round after next sees the pod. */
static void unboost_call_at(struct update_unboost *unboost, td_str namespace, td_duration after)
{
    if (after > 0) {
        (void)td_queue_add_after(unboost->queue, namespace, after, NULL);
    } else {
        (void)td_queue_add(unboost->queue, namespace, NULL);
    }
}

static void unboost_set_due(struct update_unboost *unboost, td_str namespace,
                            struct unboost_pod *pod, td_duration after)
{
    pod->due = update_now(unboost->loop) + after;
    unboost_call_at(unboost, namespace, after);
}

static void unboost_back_off(struct update_unboost *unboost, td_str namespace,
                             struct unboost_pod *pod)
{
    td_duration pause = UNBOOST_PAUSE_MIN;
    for (unsigned i = 0; i < pod->pauses && pause < UNBOOST_PAUSE_MAX; i++) {
        pause *= 2;
    }
    pod->pauses++;
    unboost_set_due(unboost, namespace, pod, pause < UNBOOST_PAUSE_MAX ? pause : UNBOOST_PAUSE_MAX);
}

/* Of two delays of one key a queue keeps the earlier, so the next one is asked for when a round is
 * over. */
static void unboost_plan(struct update_unboost *unboost, td_str namespace)
{
    struct unboost_namespace *ns = td_map_get(&unboost->namespaces, namespace);
    if (!ns || ns->pods.count == 0) {
        if (ns) {
            unboost_drop_namespace(unboost, ns);
        }
        return;
    }
    td_time first = UNBOOST_NEVER;
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&ns->pods, &position))) {
        const struct unboost_pod *pod = entry->value;
        first = pod->due < first ? pod->due : first;
    }
    td_duration after = first - update_now(unboost->loop);
    unboost_call_at(unboost, namespace, after > UNBOOST_PAUSE_MIN ? after : UNBOOST_PAUSE_MIN);
}

/* ---- Pods as they change ---- */

static bool unboost_is_ignored(const struct update_unboost *unboost, td_str namespace)
{
    const struct td_updater_config *config = &unboost->loop->options.config;
    for (size_t i = 0; i < config->ignored_namespace_count; i++) {
        if (td_str_equal(config->ignored_namespaces[i], namespace)) {
            return true;
        }
    }
    return false;
}

static bool unboost_is_wanted(const struct td_sight_pod *pod)
{
    td_str mark = TD_BOOST_ANNOTATION_PREFIX;
    if (!memmem(pod->object.text.ptr, pod->object.text.len, mark.ptr, mark.len)) {
        return false; /* nearly all */
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct td_vertical_pod decoded;
    return td_sight_tree(&arena, &pod->object, &tree, NULL) == TD_OK &&
           td_vertical_pod_decode(&arena, tree, &decoded, NULL) == TD_OK &&
           decoded.ready == TD_CONDITION_TRUE && td_boost_is_in_progress(&decoded);
}

static void unboost_added(void *context, const void *object)
{
    struct update_unboost *unboost = context;
    const struct td_sight_pod *seen = object;
    td_str namespace = seen->object.head.namespace;
    if (!unboost_is_wanted(seen) || unboost_is_ignored(unboost, namespace)) {
        return;
    }
    struct unboost_pod *pod = unboost_remember(unboost, namespace, seen->object.head.name);
    if (pod) {
        unboost_set_due(unboost, namespace, pod, 0);
    }
}

static void unboost_changed(void *context, const void *before, const void *after)
{
    (void)before;
    unboost_added(context, after);
}

static void unboost_deleted(void *context, const void *object)
{
    struct update_unboost *unboost = context;
    const struct td_sight_pod *seen = object;
    td_str namespace = seen->object.head.namespace;
    unboost_forget(unboost, namespace, seen->object.head.name);
    struct unboost_namespace *ns = td_map_get(&unboost->namespaces, namespace);
    if (ns && ns->pods.count == 0 && !td_str_equal(namespace, unboost->namespace)) {
        unboost_drop_namespace(unboost, ns);
    }
}

/* ---- Calls ---- */

static void unboost_next(struct update_unboost *unboost);

static void unboost_tell(const struct unboost_task *task)
{
    const struct td_control *control = &task->unboost->loop->options.control;
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
                         });
    }
}

static void unboost_failed(struct update_unboost *unboost, const struct td_unboost_answer *answer,
                           td_str name, const char *why)
{
    if (answer->vpa) {
        update_tally_unboost(unboost->loop, answer->vpa, answer->pod_count, false);
    }
    td_log_line(unboost->loop->options.control.log, TD_LOG_WARN,
                "a startup boost cannot be taken back", TD_LOG_S("namespace", unboost->namespace),
                TD_LOG_S("pod", name), TD_LOG_C("error", why));
}

/* A pod that changed meanwhile is looked at once more, when its change has arrived here too. */
static void unboost_settle(struct unboost_task *task, bool is_done)
{
    struct update_unboost *unboost = task->unboost;
    struct unboost_pod *pod = unboost_find(unboost, unboost->namespace, task->name);
    unboost->running--;
    if (pod && !is_done) {
        unboost_back_off(unboost, unboost->namespace, pod);
    } else if (pod && pod->due == UNBOOST_NEVER) {
        unboost_forget(unboost, unboost->namespace, task->name);
    } else if (pod) {
        pod->pauses = 0;
        unboost_set_due(unboost, unboost->namespace, pod, UNBOOST_SETTLE);
    }
}

static void unboost_answered(void *context, const struct td_client_reply *reply);

/* False when nothing could be sent. */
static bool unboost_send(struct unboost_task *task)
{
    struct update_unboost *unboost = task->unboost;
    const struct td_control *control = &unboost->loop->options.control;
    const struct td_json *patch =
        task->is_annotating ? task->answer.patch.pod : task->answer.patch.resize;
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (update_patch_request(&unboost->arena, task->pod, patch, !task->is_annotating, &request,
                             &err) != TD_OK) {
        unboost_failed(unboost, &task->answer, task->name, err.message);
        return false;
    }
    request.flow = control->flow;
    task->call = td_client_send(control->client, &request, unboost_answered, task);
    return true;
}

/* The resize comes first. While the annotation stands the pod counts as boosted, so one that could
 * not be removed is tried again with the whole. */
static void unboost_answered(void *context, const struct td_client_reply *reply)
{
    struct unboost_task *task = context;
    struct update_unboost *unboost = task->unboost;
    task->call = NULL;
    bool is_done = reply->code == TD_OK;
    if (!is_done) {
        unboost_failed(unboost, &task->answer, task->name, reply->err.message);
    } else if (!task->is_annotating) {
        update_tally_unboost(unboost->loop, task->answer.vpa, task->answer.pod_count, true);
        unboost_tell(task);
        task->is_annotating = true;
        if (unboost_send(task)) {
            return;
        }
        is_done = false;
    }
    unboost_settle(task, is_done);
    unboost_next(unboost);
}

/* ---- Rounds ---- */

/* Tasks that were not begun are due again when somebody starts us. */
static void unboost_close(struct update_unboost *unboost)
{
    for (; unboost->task_at < unboost->task_count; unboost->task_at++) {
        td_str name = unboost->tasks[unboost->task_at].name;
        struct unboost_pod *pod = unboost_find(unboost, unboost->namespace, name);
        if (pod) {
            pod->due = update_now(unboost->loop);
        }
    }
    unboost_plan(unboost, unboost->namespace);
    unboost->tasks = NULL;
    unboost->task_count = 0;
    unboost->task_at = 0;
    unboost->has_token = false;
    unboost->namespace = TD_STR_EMPTY;
    td_arena_done(&unboost->arena); /* until the next round nobody needs it */
    update_settle(unboost->loop);
}

/* False when the next task has to wait for the rate limit of resizes. */
static bool unboost_take_token(struct update_unboost *unboost)
{
    const struct td_updater_config *config = &unboost->loop->options.config;
    if (!unboost->has_token) {
        td_time now = update_now(unboost->loop);
        td_time at = td_token_bucket_take(update_resizes(unboost->loop), config->rate_per_second,
                                          config->rate_burst, now);
        unboost->has_token = true;
        if (at > now) {
            td_timer_set(unboost->pause, at - now);
        }
    }
    return !td_timer_is_set(unboost->pause);
}

static void unboost_next(struct update_unboost *unboost)
{
    size_t syncs = unboost->loop->options.boost_syncs;
    while (unboost->is_running && unboost->task_at < unboost->task_count &&
           unboost->running < (syncs > 0 ? syncs : 1)) {
        if (!unboost_take_token(unboost)) {
            return;
        }
        struct unboost_task *task = &unboost->tasks[unboost->task_at++];
        unboost->has_token = false;
        unboost->running++;
        if (!unboost_send(task)) {
            unboost_settle(task, false);
        }
    }
    bool is_over = !unboost->is_running || unboost->task_at == unboost->task_count;
    if (unboost->running == 0 && is_over && unboost->namespace.len > 0) {
        unboost_close(unboost);
    }
}

static void unboost_resume(struct td_timer *timer, void *context)
{
    (void)timer;
    unboost_next(context);
}

/* What a round looks at. */
struct unboost_view {
    struct update_unboost *unboost;
    struct td_unboost round;
    struct unboost_namespace *ns;
};

static size_t unboost_pods(void *context, const struct td_vertical_pod **ret)
{
    struct unboost_view *view = context;
    struct update_unboost *unboost = view->unboost;
    return update_gather_pods(unboost->loop->options.control.sight, &unboost->arena, view->ns->name,
                              ret);
}

static const struct td_vertical_pod *unboost_decode(struct update_unboost *unboost,
                                                    td_str namespace, td_str name)
{
    struct td_sight *sight = unboost->loop->options.control.sight;
    const struct td_sight_pod *seen =
        td_cache_get(td_sight_cache(sight, TD_SIGHT_PODS), namespace, name);
    struct td_vertical_pod *pod = td_arena_new(&unboost->arena, struct td_vertical_pod);
    struct update_decoder decoder = {.sight = sight, .arena = &unboost->arena};
    return seen && update_decode_pod(&decoder, &seen->object, pod) ? pod : NULL;
}

/* One pod that is due: forgotten, put off, or made a task. */
static void unboost_judge(struct unboost_view *view, struct unboost_pod *pod)
{
    struct update_unboost *unboost = view->unboost;
    td_str namespace = view->ns->name;
    const struct td_vertical_pod *decoded = unboost_decode(unboost, namespace, pod->name);
    struct td_unboost_answer answer = {.fate = TD_UNBOOST_NOTHING};
    struct td_error err = TD_ERROR_INIT;
    int code = decoded ? td_unboost_judge(&view->round, decoded, &answer, &err) : TD_OK;
    if (code == TD_BUSY) {
        unboost_set_due(unboost, namespace, pod, UNBOOST_BUSY);
        return;
    }
    if (code < 0) {
        unboost_failed(unboost, &answer, pod->name, err.message);
        unboost_back_off(unboost, namespace, pod);
        return;
    }
    bool is_lost = answer.fate == TD_UNBOOST_NO_VPA && pod->pauses > UNBOOST_LOOKUPS_MAX;
    if (answer.fate == TD_UNBOOST_NOTHING || is_lost) {
        unboost_forget(unboost, namespace, pod->name);
    } else if (answer.fate == TD_UNBOOST_NOW) {
        pod->due = UNBOOST_NEVER;
        unboost->tasks[unboost->task_count++] =
            (struct unboost_task){.unboost = unboost,
                                  .name = td_arena_copy_str(&unboost->arena, pod->name),
                                  .pod = decoded,
                                  .answer = answer};
    } else if (answer.fate == TD_UNBOOST_LATER && answer.after > 0) {
        pod->pauses = 0;
        unboost_set_due(unboost, namespace, pod, answer.after);
    } else {
        unboost_back_off(unboost, namespace, pod);
    }
}

/* The pods that are due, at most as many as a slice has time for. */
static void unboost_judge_all(struct unboost_view *view)
{
    struct update_unboost *unboost = view->unboost;
    td_time now = view->round.input.now;
    unboost->tasks = td_arena_array(&unboost->arena, struct unboost_task, UNBOOST_ROUND_MAX);
    size_t judged = 0;
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&view->ns->pods, &position))) {
        struct unboost_pod *pod = entry->value;
        if (pod->due > now) {
            continue;
        }
        if (judged++ == UNBOOST_ROUND_MAX) {
            return; /* the others are still due when this round is over */
        }
        unboost_judge(view, pod);
    }
}

static enum td_job_result unboost_round(td_str namespace, void *context)
{
    struct update_unboost *unboost = context;
    const struct td_update_options *options = &unboost->loop->options;
    struct unboost_view view = {.unboost = unboost,
                                .ns = td_map_get(&unboost->namespaces, namespace)};
    if (!unboost->is_running || !view.ns) {
        return TD_JOB_DONE; /* the start calls for all */
    }
    if (unboost->namespace.len > 0 || !update_is_fresh(unboost->loop)) {
        unboost_call_at(unboost, namespace,
                        unboost->namespace.len > 0 ? UNBOOST_PAUSE_MIN : UNBOOST_BUSY);
        return TD_JOB_DONE;
    }
    struct td_unboost_input input = {
        .arena = &unboost->arena,
        .now = update_now(unboost->loop),
        .config = &options->config.restriction,
        .gates = &options->control.gates,
        .source = td_sight_source(options->control.sight),
        .limits = td_sight_limits(options->control.sight, namespace),
        .context = &view,
        .get_pods = unboost_pods,
    };
    input.vpa_count =
        update_gather_vpas(options->control.sight, &unboost->arena, namespace, &input.vpas);
    if (td_unboost_begin(&view.round, &input, NULL) != TD_OK) {
        unboost_call_at(unboost, namespace, UNBOOST_BUSY);
        td_arena_reset(&unboost->arena);
        return TD_JOB_DONE;
    }
    unboost->namespace = td_arena_copy_str(&unboost->arena, namespace);
    unboost_judge_all(&view);
    td_unboost_end(&view.round);
    unboost_next(unboost);
    return TD_JOB_DONE;
}

/* ---- The whole ---- */

struct update_unboost *update_unboost_new(struct td_update_loop *loop)
{
    static const struct td_cache_handler handler = {
        .added = unboost_added,
        .changed = unboost_changed,
        .deleted = unboost_deleted,
    };
    struct update_unboost *unboost = td_alloc_zero(1, sizeof(*unboost));
    unboost->loop = loop;
    td_map_init(&unboost->namespaces, TD_CACHE_OBJECTS_MAX);
    td_arena_init(&unboost->arena, TD_UPDATE_ARENA_BYTES_MAX);
    unboost->queue =
        td_queue_new(loop->options.control.loop, unboost_round, unboost, TD_CACHE_OBJECTS_MAX);
    unboost->pause = td_timer_new(loop->options.control.loop, unboost_resume, unboost);
    td_sight_subscribe(loop->options.control.sight, TD_SIGHT_PODS, &handler, unboost);
    return unboost;
}

void update_unboost_start(struct update_unboost *unboost)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    unboost->is_running = true;
    while ((entry = td_map_next(&unboost->namespaces, &position))) {
        unboost_call_at(unboost, entry->key, 0);
    }
}

void update_unboost_stop(struct update_unboost *unboost)
{
    unboost->is_running = false;
    td_timer_stop(unboost->pause);
    unboost_next(unboost);
}

bool update_unboost_is_idle(const struct update_unboost *unboost)
{
    return unboost->namespace.len == 0;
}

void update_unboost_free(struct update_unboost *unboost)
{
    if (!unboost) {
        return;
    }
    for (size_t i = 0; i < unboost->task_at; i++) {
        if (unboost->tasks[i].call) {
            td_client_cancel(unboost->tasks[i].call);
        }
    }
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&unboost->namespaces, &position))) {
        struct unboost_namespace *ns = entry->value;
        size_t at = 0;
        const struct td_map_entry *pod;
        while ((pod = td_map_next(&ns->pods, &at))) {
            unboost_pod_free(pod->value);
        }
        unboost_drop_namespace(unboost, ns);
    }
    td_map_done(&unboost->namespaces);
    td_queue_free(unboost->queue);
    td_timer_free(unboost->pause);
    td_arena_done(&unboost->arena);
    td_free(unboost);
}
