/*
 * A controller is a row of functions: made before the informers start, since it listens to it;
 * started when this process leads, or at once without leader election; stopped when it does not
 * lead any more, after which its lease is tried for again. At the end all are stopped at once, and
 * each gives its lease back when what it had begun is over.
 */
#include "control/controllers.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "control/controllers_private.h"
#include "control/informers/informers.h"
#include "control/preflight/preflight.h"
#include "control/reach.h"
#include "control/shadow/shadow.h"
#include "control/upstream.h"
#include "kube/bearer.h"
#include "kube/client/client.h"
#include "kube/client/events.h"
#include "kube/client/lease.h"
#include "kube/client/metrics_client.h"
#include "kube/client/transport.h"

#define CONTROLLERS_SILENT_INTERVALS 5               /* upstream's health check */
#define CONTROLLERS_PATIENCE (15 * TD_SECOND)        /* for an orderly end */
#define CONTROLLERS_ADMISSION_LEASE "tandem-webhook" /* of a process that is alone */
#define CONTROLLERS_TEXT_BYTES_MAX ((size_t)64 << 10)

static td_time controllers_now(const struct td_controllers *controllers)
{
    return td_clock_wall(td_loop_clock(controllers->options.loop));
}

/* ---- What controllers ask of each other ---- */

td_str controllers_staleness(const struct controllers_one *one, struct td_arena *arena)
{
    const struct td_controllers *all = one->all;
    td_duration interval = 0;
    td_time last = TD_TIME_NONE;
    if (one->state != CONTROLLERS_RUNNING) {
        return TD_STR_EMPTY; /* it may not even be there */
    }
    if (one->kind == TD_CONTROLLER_RECOMMENDER || one->kind == TD_CONTROLLER_SHADOW) {
        interval = all->options.recommend.interval;
        last = td_recommend_loop_is_reading(all->recommend)
                   ? controllers_now(all)
                   : td_recommend_loop_last(all->recommend);
    } else if (one->kind == TD_CONTROLLER_UPDATER) {
        interval = all->options.update.interval;
        last = td_update_loop_last(all->update);
    }
    last = last > one->since ? last : one->since;
    td_duration silent = controllers_now(all) - last;
    if (interval == 0 || silent <= CONTROLLERS_SILENT_INTERVALS * interval ||
        !td_informers_is_synced(all->informers)) {
        return TD_STR_EMPTY; /* nor is there anything to do before the cluster is seen */
    }
    char text[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(silent, text);
    return td_arena_format(arena, "the %s's last activity was %s ago",
                           td_controller_name(one->kind), text);
}

/* The webhook of this process. */
static struct td_webhook *controllers_webhook(const struct td_controllers *all)
{
    return all->options.common ? all->options.common->webhook : all->webhook;
}

static td_str controllers_webhook_problem(void *context)
{
    const struct td_controllers *all = context;
    const struct td_webhook *webhook = controllers_webhook(all);
    td_str problem = webhook ? td_webhook_problem(webhook) : TD_STR_EMPTY;
    bool is_updating = all->ones[TD_CONTROLLER_UPDATER].state == CONTROLLERS_RUNNING;
    return problem.len == 0 && is_updating ? td_update_loop_problem(all->update) : problem;
}

static bool controllers_is_proved(void *context, td_duration since)
{
    struct td_controllers *all = context;
    struct td_webhook *webhook = controllers_webhook(all);
    return !webhook || td_webhook_is_proved(webhook, since);
}

/* Hvpas have no look at the lease: without a webhook here that is probed, nor an updater that does
 * look, their pods are not evicted. */
static td_str controllers_hvpa_problem(void *context)
{
    const struct td_controllers *all = context;
    bool is_updating = all->ones[TD_CONTROLLER_UPDATER].state == CONTROLLERS_RUNNING;
    return controllers_webhook(all) || is_updating
               ? controllers_webhook_problem(context)
               : TD_STR("cannot tell whether the webhook mutates pods, so no pod is evicted: "
                        "neither admission nor the updater runs in this process");
}

/* Every VPA says whether its pods would be mutated: soon, not with the next pass. */
static void controllers_webhook_changed(void *context)
{
    struct td_controllers *all = context;
    if (all->recommend) {
        td_recommend_loop_tell(all->recommend);
    }
}

static bool controllers_is_exempt(void *context, td_str namespace)
{
    const struct td_controllers *all = context;
    const struct td_webhook *webhook = controllers_webhook(all);
    return webhook && td_webhook_is_exempt(webhook, namespace);
}

/* Why pods must not be evicted: they would come back unchanged, or what is recommended is old. */
static struct td_update_problem controllers_problem(void *context)
{
    struct td_controllers *all = context;
    const struct controllers_one *one = &all->ones[TD_CONTROLLER_RECOMMENDER];
    struct td_update_problem problem = {.reason = "Webhook",
                                        .message = controllers_webhook_problem(all)};
    td_arena_reset(&all->texts);
    if (problem.message.len > 0 || one->state != CONTROLLERS_RUNNING) {
        return problem; /* another process may recommend, and says in each VPA what it goes by */
    }
    problem = (struct td_update_problem){.reason = "Recommender",
                                         .message = controllers_staleness(one, &all->texts)};
    if (problem.message.len == 0) {
        problem = (struct td_update_problem){
            .reason = "Metrics", .message = td_recommend_loop_problem(all->recommend, &all->texts)};
    }
    return problem;
}

/* ---- Each controller ---- */

struct controllers_row {
    const char *component; /* of its events */
    int (*make)(struct td_controllers *all, const struct td_control *control, struct td_error *err);
};

static int recommender_make(struct td_controllers *all, const struct td_control *control,
                            struct td_error *err)
{
    struct td_recommend_options options = all->options.recommend;
    options.control = *control;
    options.ignored_namespaces = all->options.ignored_namespaces;
    options.ignored_count = all->options.ignored_count;
    options.vpa_namespace = all->options.vpa_namespace;
    options.config.per_vpa_config = control->gates.per_vpa_config;
    options.get_webhook_problem = controllers_webhook_problem;
    options.is_exempt = controllers_is_exempt;
    options.context = all;
    return td_recommend_loop_new(&options, &all->recommend, err);
}

static int updater_make(struct td_controllers *all, const struct td_control *control,
                        struct td_error *err)
{
    struct td_update_options options = all->options.update;
    options.max_cpu_boost = all->options.webhook.max_cpu_boost;
    options.control = *control;
    options.config.ignored_namespaces = all->options.ignored_namespaces;
    options.config.ignored_namespace_count = all->options.ignored_count;
    options.get_problem = controllers_problem;
    options.is_exempt = controllers_is_exempt;
    options.is_proved = controllers_is_proved;
    options.context = all;
    return td_update_loop_new(&options, &all->update, err);
}

static bool controllers_sizes(void *context, struct td_arena *arena,
                              const struct td_controller *top, const struct td_pod *pod,
                              struct td_pod_sizes *ret)
{
    struct td_controllers *all = context;
    return all->hvpa && td_hvpa_loop_sizes(all->hvpa, arena, top, pod, ret);
}

static int admission_make(struct td_controllers *all, const struct td_control *control,
                          struct td_error *err)
{
    td_auto_arena arena =
        td_arena_capped(TD_TREE_ARENA_BYTES_MAX); /* the webhook copies what it is given */
    struct td_webhook_options options = all->options.webhook;
    td_str *exempt =
        td_arena_array(&arena, td_str, options.exempt_count + all->options.ignored_count + 1);
    for (size_t i = 0; i < options.exempt_count; i++) {
        exempt[i] = options.exempt_namespaces[i];
    }
    for (size_t i = 0; i < all->options.ignored_count; i++) {
        exempt[options.exempt_count++] = all->options.ignored_namespaces[i];
    }
    options.exempt_namespaces = exempt;
    options.control = *control;
    options.get_sizes = all->options.hvpa_gate ? controllers_sizes : NULL;
    options.sizes_context = all;
    options.changed = controllers_webhook_changed;
    options.changed_context = all;
    return td_webhook_new(&options, &all->webhook, err);
}

static int horizontal_make(struct td_controllers *all, const struct td_control *control,
                           struct td_error *err)
{
    struct td_horizontal_options options = all->options.horizontal;
    options.control = *control;
    return td_horizontal_loop_new(&options, &all->horizontal, err);
}

static int hvpa_make(struct td_controllers *all, const struct td_control *control,
                     struct td_error *err)
{
    struct td_hvpa_options options = all->options.hvpa;
    options.control = *control;
    options.recommend = all->recommend;
    options.gather = all->horizontal;
    options.get_webhook_problem = controllers_hvpa_problem;
    options.is_proved = controllers_is_proved;
    options.is_exempt = controllers_is_exempt;
    options.restriction = &all->options.update.config.restriction;
    options.context = all;
    return td_hvpa_loop_new(&options, &all->hvpa, err);
}

/* Learns as the recommender does, and writes nothing but objects of its own. */
static int shadow_make(struct td_controllers *all, const struct td_control *control,
                       struct td_error *err)
{
    all->options.recommend.is_quiet = true;
    int code = recommender_make(all, control, err);
    if (code == TD_OK) {
        struct td_update_options update = all->options.update;
        update.config.ignored_namespaces = all->options.ignored_namespaces;
        update.config.ignored_namespace_count = all->options.ignored_count;
        all->shadow = td_shadow_new(&(struct td_shadow_options){
            .control = *control,
            .recommend = all->recommend,
            .update = &update,
            .interval = all->options.recommend.interval,
        });
    }
    return code;
}

static const struct controllers_row controllers_rows[TD_CONTROLLER_COUNT] = {
    [TD_CONTROLLER_RECOMMENDER] = {"vpa-recommender", recommender_make},
    [TD_CONTROLLER_UPDATER] = {"vpa-updater", updater_make},
    [TD_CONTROLLER_ADMISSION] = {"vpa-admission-controller", admission_make},
    [TD_CONTROLLER_HORIZONTAL] = {"horizontal-pod-autoscaler", horizontal_make},
    [TD_CONTROLLER_HVPA] = {"hvpa", hvpa_make},
    [TD_CONTROLLER_SHADOW] = {"tandem-shadow", shadow_make},
};

static void controllers_start_one(struct td_controllers *all, enum td_controller_kind kind)
{
    switch (kind) {
    case TD_CONTROLLER_RECOMMENDER:
        td_recommend_loop_start(all->recommend);
        break;
    case TD_CONTROLLER_UPDATER:
        td_update_loop_start(all->update);
        break;
    case TD_CONTROLLER_ADMISSION:
        td_webhook_start(all->webhook);
        break;
    case TD_CONTROLLER_HORIZONTAL:
        td_horizontal_loop_start(all->horizontal);
        break;
    case TD_CONTROLLER_HVPA:
        td_hvpa_loop_start(all->hvpa);
        break;
    case TD_CONTROLLER_SHADOW:
        td_recommend_loop_start(all->recommend);
        td_shadow_start(all->shadow);
        break;
    case TD_CONTROLLER_COUNT:
        break;
    }
}

/* The shadow first, which reads what the recommender knows. */
static void shadow_stopped(void *context)
{
    struct td_controllers *all = context;
    td_recommend_loop_stop(all->recommend, all->shadow_done, all->shadow_context);
}

static void shadow_stop(struct td_controllers *all, void (*done)(void *context), void *context)
{
    all->shadow_done = done;
    all->shadow_context = context;
    td_shadow_stop(all->shadow, shadow_stopped, all);
}

static void controllers_stop_one(struct td_controllers *all, enum td_controller_kind kind,
                                 void (*done)(void *context), void *context)
{
    switch (kind) {
    case TD_CONTROLLER_RECOMMENDER:
        td_recommend_loop_stop(all->recommend, done, context);
        break;
    case TD_CONTROLLER_UPDATER:
        td_update_loop_stop(all->update, done, context);
        break;
    case TD_CONTROLLER_ADMISSION:
        td_webhook_stop(all->webhook, done, context);
        break;
    case TD_CONTROLLER_HORIZONTAL:
        td_horizontal_loop_stop(all->horizontal, done, context);
        break;
    case TD_CONTROLLER_HVPA:
        td_hvpa_loop_stop(all->hvpa, done, context);
        break;
    case TD_CONTROLLER_SHADOW:
        shadow_stop(all, done, context);
        break;
    case TD_CONTROLLER_COUNT:
        break;
    }
}

/* ---- Start and stop of one ---- */

/* A message for each controller, so that none is taken for the repetition of another's. */
static void one_say(const struct controllers_one *one, enum td_log_level level, const char *what,
                    const char *key, td_str value)
{
    char message[64];
    (void)snprintf(message, sizeof(message), "%s %s", td_controller_name(one->kind), what);
    td_log_line(one->all->options.log, level, message, TD_LOG_S(key, value));
}

/* With its gate off the controller of Hvpas decides nothing and leads nothing: it only writes into
 * their statuses that they are not acted on. */
static bool one_is_open(const struct controllers_one *one)
{
    return one->kind != TD_CONTROLLER_HVPA || one->all->options.hvpa_gate;
}

/* Hvpas are decided where the recommender learns: the lease is competed for while it does. */
static bool controllers_may_lead(const struct controllers_one *one)
{
    const struct td_controllers *all = one->all;
    bool has_base = one->kind != TD_CONTROLLER_HVPA || all->options.leader.is_alone ||
                    !all->options.has[TD_CONTROLLER_RECOMMENDER] ||
                    all->ones[TD_CONTROLLER_RECOMMENDER].state == CONTROLLERS_RUNNING;
    return has_base && td_upstream_allows(all->upstream, one->kind);
}

static void one_compete(struct controllers_one *one)
{
    if (one->lease && one->state == CONTROLLERS_IDLE && controllers_may_lead(one) &&
        !one->all->is_ending) {
        one->state = CONTROLLERS_WAITING;
        td_lease_start(one->lease);
    }
}

static void one_begin(struct controllers_one *one)
{
    one->state = CONTROLLERS_RUNNING;
    one->since = controllers_now(one->all);
    if (one_is_open(one)) {
        one_say(one, TD_LOG_INFO, "started", "lease",
                one->lease ? one->lease_name : TD_STR("none"));
    } else {
        one_say(one, TD_LOG_INFO, "disabled", "gate", TD_STR("Hvpa"));
    }
    controllers_start_one(one->all, one->kind);
    if (one->kind == TD_CONTROLLER_RECOMMENDER) {
        one_compete(&one->all->ones[TD_CONTROLLER_HVPA]);
    }
}

static void controllers_tell_end(struct td_controllers *all)
{
    void (*done)(void *context) = all->done;
    all->done = NULL;
    if (done) {
        td_timer_stop(all->patience);
        done(all->done_context);
    }
}

/* The end is reached when every controller is idle. */
static void controllers_check_end(struct td_controllers *all)
{
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        if (all->ones[kind].state != CONTROLLERS_IDLE) {
            return;
        }
    }
    if (all->is_ending) {
        controllers_tell_end(all);
    }
}

static void one_released(void *context)
{
    struct controllers_one *one = context;
    one->state = CONTROLLERS_IDLE;
    controllers_check_end(one->all);
    one_compete(one); /* what it waited for came meanwhile */
}

static void one_release(struct controllers_one *one)
{
    if (one->lease) {
        one->state = CONTROLLERS_RELEASING;
        td_lease_stop(one->lease, one_released, one);
    } else {
        one_released(one);
    }
}

static void one_ended(void *context)
{
    struct controllers_one *one = context;
    one_say(one, TD_LOG_INFO, "stopped", "then",
            one->all->is_ending ? TD_STR("shutdown") : TD_STR("wait for lease"));
    if (one->all->is_ending || !controllers_may_lead(one)) {
        one_release(one);
    } else {
        one->state = CONTROLLERS_WAITING;
        td_lease_start(one->lease);
    }
}

static void one_end(struct controllers_one *one)
{
    one->state = CONTROLLERS_STOPPING;
    controllers_stop_one(one->all, one->kind, one_ended, one);
}

/* ---- Leases ---- */

/* Begins what waits for no lease of its own, once no other installation is in the way. */
void controllers_begin_clear(struct td_controllers *all)
{
    bool is_alone = all->options.leader.is_alone;
    if (all->is_ending || all->is_refused || !controllers_is_clear(all)) {
        return;
    }
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        struct controllers_one *one = &all->ones[kind];
        bool is_waiting = one->state == CONTROLLERS_IDLE || one->state == CONTROLLERS_WAITING;
        if (all->options.has[kind] && is_waiting && (is_alone || !one->lease) &&
            controllers_may_lead(one)) {
            one_begin(one);
        }
    }
}

/* The webhook goes on: the registration tells which of two answers. */
void controllers_follow(struct controllers_one *one)
{
    if (controllers_may_lead(one)) {
        one_compete(one);
    } else if (one->state == CONTROLLERS_RUNNING && one->kind != TD_CONTROLLER_ADMISSION) {
        one_end(one);
    } else if (one->state == CONTROLLERS_WAITING) {
        one_release(one);
    }
}

static void lease_won(void *context)
{
    struct controllers_one *one = context;
    one->has_seen = true;
    if (one->state == CONTROLLERS_WAITING && !one->all->options.leader.is_alone) {
        one_begin(one);
    }
    controllers_begin_clear(one->all);
}

/* Without the right to leases there is no telling who else is there: it does its work. */
static void lease_denied(void *context, const struct td_error *why)
{
    struct controllers_one *one = context;
    if (!one->is_denied) {
        one_say(one, TD_LOG_WARN, "may not use its lease", "because", td_str_from(why->message));
    }
    one->is_denied = true;
    controllers_begin_clear(one->all);
}

static void lease_lost(void *context, const struct td_error *why)
{
    struct controllers_one *one = context;
    one_say(one, TD_LOG_WARN, "lost its lease", "because", td_str_from(why->message));
    if (one->all->options.leader.is_alone) {
        td_lease_start(one->lease); /* no other process takes its work over: it goes on */
        return;
    }
    if (one->state == CONTROLLERS_RUNNING) {
        one_end(one);
    }
    controllers_follow(&one->all->ones[TD_CONTROLLER_HVPA]);
}

static void lease_seen(void *context, td_str identity)
{
    struct controllers_one *one = context;
    bool is_us = td_str_equal(identity, one->all->options.leader.identity);
    one->has_leader = identity.len > 0;
    controllers_guard_see(one, identity);
    controllers_begin_clear(one->all);
    if (one->all->options.leader.is_alone) {
        return;
    }
    if (one->kind == TD_CONTROLLER_RECOMMENDER && one->has_leader && !is_us) {
        td_recommend_loop_reread(one->all->recommend);
    }
    one_say(one, TD_LOG_INFO, "leader changed", "identity",
            identity.len > 0 ? identity : TD_STR("none"));
}

/* In the arena of texts. */
static td_str one_lease_name(const struct controllers_one *one)
{
    struct td_controllers *all = one->all;
    const struct td_leader_options *leader = &all->options.leader;
    if (one->kind == TD_CONTROLLER_ADMISSION) {
        return TD_STR(CONTROLLERS_ADMISSION_LEASE);
    }
    td_str name = td_controller_lease_name(&all->texts, one->kind, all->options.has, leader->name,
                                           all->options.replaces_upstream);
    /* VPAs name their recommender, so one of another name is no other installation. */
    td_str recommender = all->options.recommend.name;
    bool is_other = leader->is_alone && one->kind == TD_CONTROLLER_RECOMMENDER &&
                    leader->name.len == 0 && !td_str_equal(recommender, TD_STR("default"));
    return is_other ? td_arena_format(&all->texts, "%.*s-%.*s", TD_STR_ARG(name),
                                      TD_STR_ARG(recommender))
                    : name;
}

static int one_make_lease(struct controllers_one *one, struct td_error *err)
{
    struct td_controllers *all = one->all;
    const struct td_leader_options *leader = &all->options.leader;
    bool has_lease = leader->is_alone || (leader->is_on && td_controller_lease(one->kind));
    if (!has_lease || !one_is_open(one)) {
        return TD_OK;
    }
    td_arena_reset(&all->texts);
    one->lease_name = td_text_copy(one_lease_name(one));
    const struct td_lease_options options = {
        .loop = all->options.loop,
        .client = all->client,
        .flow = all->lease_flow,
        .namespace = leader->namespace,
        .name = one->lease_name,
        .identity = leader->identity,
        .duration = leader->lease_duration,
        .renew_deadline = leader->renew_deadline,
        .retry_period = leader->retry_period,
        .seed = all->options.seed + (uint64_t)one->kind,
        .events = {.started = lease_won,
                   .stopped = lease_lost,
                   .new_leader = lease_seen,
                   .denied = lease_denied},
        .context = one,
    };
    return td_lease_new(&options, &one->lease, err);
}

/* ---- Making ---- */

static struct td_control one_control(const struct controllers_one *one)
{
    const struct td_controllers *all = one->all;
    return (struct td_control){
        .loop = all->options.loop,
        .client = all->client,
        .flow = one->flow,
        .informers = all->informers,
        .events = one->events,
        .metrics_client = all->metrics_client,
        .registry = all->registry,
        .log = all->options.log,
        .gates = all->options.gates,
        .hvpa_gate = all->options.hvpa_gate,
        .selection_strategy_gate = all->options.selection_strategy_gate,
        .scale_to_zero_gate = all->options.horizontal.config.can_scale_to_zero,
        .tolerance_gate = all->options.horizontal.config.is_tolerance_configurable,
        .shard = all->options.shard,
        .caps_to_node = all->options.caps_to_node,
        .seed = all->options.seed + (uint64_t)one->kind,
    };
}

static int one_make(struct td_controllers *all, enum td_controller_kind kind, struct td_error *err)
{
    struct controllers_one *one = &all->ones[kind];
    const struct controllers_row *row = &controllers_rows[kind];
    td_str component = td_str_from(row->component);
    one->flow = td_client_flow_new(all->client, td_str_from(td_controller_name(kind)));
    one->events = td_events_new(&(struct td_events_options){.loop = all->options.loop,
                                                            .client = all->client,
                                                            .flow = one->flow,
                                                            .component = component});
    const struct td_control control = one_control(one);
    int code = row->make(all, &control, err);
    return code == TD_OK ? one_make_lease(one, err) : code;
}

/* The kinds that each controller looks at. */
static void controllers_want(const struct td_controllers_options *options,
                             struct td_informers_options *informers)
{
    static const unsigned pods = 1u << TD_INFORMER_PODS;
    static const unsigned vpas = 1u << TD_INFORMER_VPAS;
    static const unsigned limits = 1u << TD_INFORMER_LIMIT_RANGES;
    static const unsigned hpas = 1u << TD_INFORMER_HPAS | 1u << TD_INFORMER_OWN_HPAS;
    const unsigned hvpas = options->hvpa_gate ? 1u << TD_INFORMER_HVPAS : 0;
    const unsigned nodes = options->caps_to_node ? 1u << TD_INFORMER_NODES : 0;
    const unsigned wanted[TD_CONTROLLER_COUNT] = {
        [TD_CONTROLLER_RECOMMENDER] = pods | vpas | hvpas,
        [TD_CONTROLLER_UPDATER] = pods | vpas | limits | nodes,
        [TD_CONTROLLER_ADMISSION] = vpas | limits | hvpas | nodes | 1u << TD_INFORMER_OWN_HPAS,
        [TD_CONTROLLER_HORIZONTAL] = pods | hpas | hvpas,
        [TD_CONTROLLER_SHADOW] = pods | vpas | limits | nodes,
        [TD_CONTROLLER_HVPA] =
            options->hvpa_gate ? pods | vpas | hpas | hvpas | limits | 1u << TD_INFORMER_NODES
                               : 1u << TD_INFORMER_HVPAS, /* to say that they are not acted on */
    };
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        for (size_t i = 0; options->has[kind] && i < TD_INFORMER_COUNT; i++) {
            bool is_workload = i >= TD_INFORMER_DEPLOYMENTS;
            informers->wants[i] = informers->wants[i] || is_workload || (wanted[kind] >> i & 1u);
        }
    }
}

static int controllers_make(struct td_controllers *all, struct td_error *err)
{
    const struct td_controllers_options *options = &all->options;
    struct td_informers_options informers = {
        .loop = options->loop,
        .client = all->client,
        .log = options->log,
        .vpa_namespace = options->vpa_namespace,
        .shard = options->shard,
        .seed = options->seed,
    };
    controllers_want(options, &informers);
    int code = td_informers_new(&informers, &all->informers, err);
    if (code == TD_OK && options->server.len > 0) {
        all->reach = td_reach_new(&(struct td_reach_options){.loop = options->loop,
                                                             .client = all->client,
                                                             .flow = all->reach_flow,
                                                             .informers = all->informers,
                                                             .log = options->log,
                                                             .server = options->server});
    }
    for (size_t kind = 0; code == TD_OK && kind < TD_CONTROLLER_COUNT; kind++) {
        if (options->has[kind]) {
            code = one_make(all, (enum td_controller_kind)kind, err);
        }
    }
    /* Admission gives new pods the sizes that Hvpas have decided, wherever that was. */
    if (code == TD_OK && options->has[TD_CONTROLLER_ADMISSION] && options->hvpa_gate &&
        !all->hvpa) {
        const struct td_control control = one_control(&all->ones[TD_CONTROLLER_ADMISSION]);
        code = hvpa_make(all, &control, err);
    }
    if (code == TD_OK && options->watches_upstream) {
        all->upstream = controllers_watch_upstream(all);
    }
    return code == TD_OK && options->address ? controllers_listen(all, err) : code;
}

static int controllers_check_options(const struct td_controllers_options *options,
                                     struct td_error *err)
{
    bool has_any = false;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        has_any = has_any || options->has[kind];
        if (options->has[kind] && !controllers_rows[kind].make) {
            return td_error_set(err, TD_INVALID, "controllers: '%s' is not part of this program",
                                td_controller_name((enum td_controller_kind)kind));
        }
    }
    if (options->vpa_namespace.len > 0 && options->ignored_count > 0) {
        return td_error_set(err, TD_INVALID,
                            "vpa-object-namespace and ignored-vpa-object-namespaces exclude each "
                            "other");
    }
    return has_any || options->write_metrics
               ? TD_OK
               : td_error_set(err, TD_INVALID, "controllers: the list names no controller");
}

static void controllers_impatient(struct td_timer *timer, void *context)
{
    struct td_controllers *all = context;
    (void)timer;
    td_log_write(all->options.log, TD_LOG_WARN,
                 "shutdown timed out, requests in flight are abandoned", NULL);
    controllers_tell_end(all);
}

int td_controllers_new(const struct td_controllers_options *options, struct td_controllers **ret,
                       struct td_error *err)
{
    int code = controllers_check_options(options, err);
    if (code != TD_OK) {
        options->transport->ops->free(options->transport);
        return code;
    }
    struct td_controllers *all = td_alloc_zero(1, sizeof(*all));
    all->options = *options;
    td_arena_init(&all->texts, CONTROLLERS_TEXT_BYTES_MAX);
    all->registry = td_metric_registry_new();
    all->patience = td_timer_new(options->loop, controllers_impatient, all);
    all->guard = td_timer_new(options->loop, controllers_guard_rings, all);
    const struct td_client_options client = {
        .loop = options->loop,
        .transport = options->transport,
        .qps = options->qps,
        .burst = options->burst,
        .seed = options->seed,
        .keeps_server_time = true,
    };
    all->client = td_client_new(&client);
    all->lease_flow = td_client_flow_new(all->client, TD_STR("leases"));
    all->access_flow = td_client_flow_new(all->client, TD_STR("access"));
    all->bearers = td_bearers_new(options->loop, all->client, all->access_flow);
    all->reach_flow = td_client_flow_new(all->client, TD_STR("reach"));
    all->measure_flow = td_client_flow_new(all->client, TD_STR("metrics"));
    all->metrics_client = td_metrics_client_new(options->loop, all->client, all->measure_flow,
                                                options->horizontal.sync_period);
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        all->ones[kind].all = all;
        all->ones[kind].kind = (enum td_controller_kind)kind;
    }
    code = controllers_make(all, err);
    if (code != TD_OK) {
        td_controllers_free(all);
        return code;
    }
    *ret = all;
    return TD_OK;
}

/* ---- The whole ---- */

void td_controllers_start(struct td_controllers *controllers)
{
    if (controllers->options.checks_access) {
        controllers_check(controllers);
    }
    controllers->is_started = true;
    if (controllers->reach) {
        td_reach_start(controllers->reach);
    }
    td_informers_start(controllers->informers);
    td_upstream_start(controllers->upstream);
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        struct controllers_one *one = &controllers->ones[kind];
        if (one->lease) {
            one_compete(one);
        }
    }
    controllers_begin_clear(controllers);
}

void td_controllers_stop(struct td_controllers *controllers, void (*done)(void *context),
                         void *context)
{
    controllers->is_ending = true;
    controllers->done = done;
    controllers->done_context = context;
    td_timer_set_machine(controllers->patience, CONTROLLERS_PATIENCE);
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        struct controllers_one *one = &controllers->ones[kind];
        if (one->state == CONTROLLERS_RUNNING) {
            one_end(one);
        } else if (one->state == CONTROLLERS_WAITING) {
            one_release(one);
        }
    }
    controllers_check_end(controllers);
}

void td_controllers_free(struct td_controllers *controllers)
{
    if (!controllers) {
        return;
    }
    controllers_stop_listening(controllers);
    td_reach_free(controllers->reach);
    td_upstream_free(controllers->upstream);
    td_access_cancel(controllers->access);
    td_preflight_free(controllers->preflight);
    td_webhook_free(controllers->webhook);
    td_hvpa_loop_free(controllers->hvpa);
    td_shadow_free(controllers->shadow);
    td_recommend_loop_free(controllers->recommend);
    td_update_loop_free(controllers->update);
    td_horizontal_loop_free(controllers->horizontal);
    td_metrics_client_free(controllers->metrics_client);
    td_informers_free(controllers->informers);
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        td_lease_free(controllers->ones[kind].lease);
        td_text_free(controllers->ones[kind].lease_name);
        td_text_free(controllers->ones[kind].holder);
        td_events_free(controllers->ones[kind].events);
    }
    td_timer_free(controllers->patience);
    td_timer_free(controllers->guard);
    td_client_free(controllers->client);
    td_metric_registry_free(controllers->registry);
    td_arena_done(&controllers->texts);
    td_free(controllers);
}

bool td_controllers_is_leading(const struct td_controllers *controllers,
                               enum td_controller_kind kind)
{
    const struct controllers_one *one = &controllers->ones[kind];
    return one->state == CONTROLLERS_RUNNING && one_is_open(one);
}

struct td_webhook *td_controllers_webhook(struct td_controllers *controllers)
{
    return controllers->webhook;
}
