/*
 * A controller is a row of functions: made before the sight starts, since it listens to it; started
 * when this process leads, or at once without leader election; stopped when it does not lead any
 * more, after which its lease is tried for again. At the end all are stopped at once, and each
 * gives its lease back when what it had begun is over.
 */
#include "control/controllers.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/http/http_server.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "control/controllers_private.h"
#include "control/measure_client.h"
#include "control/sight.h"
#include "control/tally.h"
#include "kube/client/client.h"
#include "kube/client/events.h"
#include "kube/client/lease.h"
#include "kube/client/transport.h"

#define CONTROLLERS_SILENT_INTERVALS 5        /* upstream's health check */
#define CONTROLLERS_PATIENCE (15 * TD_SECOND) /* for an orderly end */
#define CONTROLLERS_TEXT_BYTES_MAX ((size_t)64 << 10)

td_time controllers_now(const struct td_controllers *controllers)
{
    return td_clock_wall(td_loop_clock(controllers->options.loop));
}

/* ---- What controllers ask of each other ---- */

td_str controllers_silence(const struct controllers_one *one, struct td_arena *arena)
{
    const struct td_controllers *all = one->all;
    td_duration interval = 0;
    td_time last = TD_TIME_NONE;
    if (one->state != CONTROLLERS_RUNNING) {
        return TD_STR_EMPTY; /* it may not even be there */
    }
    if (one->kind == TD_CONTROLLER_RECOMMENDER) {
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
        !td_sight_is_synced(all->sight)) {
        return TD_STR_EMPTY; /* nor is there anything to do before the cluster is seen */
    }
    char text[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(silent, text);
    return td_arena_format(arena, "the %s's last activity was %s ago",
                           td_controller_name(one->kind), text);
}

static td_str controllers_hook_trouble(void *context)
{
    const struct td_controllers *all = context;
    td_str trouble = all->hook ? td_hook_trouble(all->hook) : TD_STR_EMPTY;
    bool is_updating = all->ones[TD_CONTROLLER_UPDATER].state == CONTROLLERS_RUNNING;
    return trouble.len == 0 && is_updating ? td_update_loop_trouble(all->update) : trouble;
}

static bool controllers_is_proved(void *context, td_duration since)
{
    struct td_controllers *all = context;
    return !all->hook || td_hook_is_proved(all->hook, since);
}

/* Hvpas have no look at the lease: without a webhook here that is probed, nor an updater that does
 * look, their pods are not evicted. */
static td_str controllers_hvpa_trouble(void *context)
{
    const struct td_controllers *all = context;
    bool is_updating = all->ones[TD_CONTROLLER_UPDATER].state == CONTROLLERS_RUNNING;
    return all->hook || is_updating
               ? controllers_hook_trouble(context)
               : TD_STR("neither admission nor the updater runs in this process: it is not known "
                        "whether pods are mutated, and none is evicted");
}

/* Every VPA says whether its pods would be mutated: soon, not with the next pass. */
static void controllers_hook_changed(void *context)
{
    struct td_controllers *all = context;
    if (all->recommend) {
        td_recommend_loop_tell(all->recommend);
    }
}

static bool controllers_is_exempt(void *context, td_str namespace)
{
    const struct td_controllers *all = context;
    return all->hook && td_hook_is_exempt(all->hook, namespace);
}

/* Why pods must not be evicted: they would come back unchanged, or what is recommended is old. */
static struct td_update_trouble controllers_trouble(void *context)
{
    struct td_controllers *all = context;
    const struct controllers_one *one = &all->ones[TD_CONTROLLER_RECOMMENDER];
    struct td_update_trouble trouble = {.reason = "Webhook",
                                        .message = controllers_hook_trouble(all)};
    td_arena_reset(&all->texts);
    if (trouble.message.len > 0 || one->state != CONTROLLERS_RUNNING) {
        return trouble; /* another process may recommend, and says in each VPA what it goes by */
    }
    trouble = (struct td_update_trouble){.reason = "Recommender",
                                         .message = controllers_silence(one, &all->texts)};
    if (trouble.message.len == 0) {
        trouble = (struct td_update_trouble){
            .reason = "Metrics", .message = td_recommend_loop_trouble(all->recommend, &all->texts)};
    }
    return trouble;
}

/* ---- Each controller ---- */

struct controllers_row {
    const char *component; /* of its events */
    int (*make)(struct td_controllers *all, const struct td_control *control, struct td_error *err);
    void (*start)(struct td_controllers *all);
    void (*stop)(struct td_controllers *all, void (*done)(void *context), void *context);
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
    options.get_hook_trouble = controllers_hook_trouble;
    options.is_exempt = controllers_is_exempt;
    options.context = all;
    return td_recommend_loop_new(&options, &all->recommend, err);
}

static void recommender_start(struct td_controllers *all)
{
    td_recommend_loop_start(all->recommend);
}

static void recommender_stop(struct td_controllers *all, void (*done)(void *context), void *context)
{
    td_recommend_loop_stop(all->recommend, done, context);
}

static int updater_make(struct td_controllers *all, const struct td_control *control,
                        struct td_error *err)
{
    struct td_update_options options = all->options.update;
    options.max_cpu_boost = all->options.hook.max_cpu_boost;
    options.control = *control;
    options.config.ignored_namespaces = all->options.ignored_namespaces;
    options.config.ignored_namespace_count = all->options.ignored_count;
    options.get_trouble = controllers_trouble;
    options.is_exempt = controllers_is_exempt;
    options.is_proved = controllers_is_proved;
    options.context = all;
    return td_update_loop_new(&options, &all->update, err);
}

static void updater_start(struct td_controllers *all)
{
    td_update_loop_start(all->update);
}

static void updater_stop(struct td_controllers *all, void (*done)(void *context), void *context)
{
    td_update_loop_stop(all->update, done, context);
}

static bool controllers_sizes(void *context, struct td_arena *arena,
                              const struct td_controller *top, const struct td_vertical_pod *pod,
                              struct td_pod_sizes *ret)
{
    struct td_controllers *all = context;
    return all->hvpa && td_hvpa_loop_sizes(all->hvpa, arena, top, pod, ret);
}

static int admission_make(struct td_controllers *all, const struct td_control *control,
                          struct td_error *err)
{
    td_auto_arena arena; /* the webhook copies what it is given */
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_hook_options options = all->options.hook;
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
    options.changed = controllers_hook_changed;
    options.changed_context = all;
    return td_hook_new(&options, &all->hook, err);
}

static void admission_start(struct td_controllers *all)
{
    td_hook_start(all->hook);
}

static void admission_stop(struct td_controllers *all, void (*done)(void *context), void *context)
{
    td_hook_stop(all->hook, done, context);
}

static int horizontal_make(struct td_controllers *all, const struct td_control *control,
                           struct td_error *err)
{
    struct td_horizontal_options options = all->options.horizontal;
    options.control = *control;
    return td_horizontal_loop_new(&options, &all->horizontal, err);
}

static void horizontal_start(struct td_controllers *all)
{
    td_horizontal_loop_start(all->horizontal);
}

static void horizontal_stop(struct td_controllers *all, void (*done)(void *context), void *context)
{
    td_horizontal_loop_stop(all->horizontal, done, context);
}

static int hvpa_make(struct td_controllers *all, const struct td_control *control,
                     struct td_error *err)
{
    struct td_hvpa_options options = all->options.hvpa;
    options.control = *control;
    options.recommend = all->recommend;
    options.gather = all->horizontal;
    options.get_hook_trouble = controllers_hvpa_trouble;
    options.is_proved = controllers_is_proved;
    options.is_exempt = controllers_is_exempt;
    options.restriction = &all->options.update.config.restriction;
    options.context = all;
    return td_hvpa_loop_new(&options, &all->hvpa, err);
}

static void hvpa_start(struct td_controllers *all)
{
    td_hvpa_loop_start(all->hvpa);
}

static void hvpa_stop(struct td_controllers *all, void (*done)(void *context), void *context)
{
    td_hvpa_loop_stop(all->hvpa, done, context);
}

static const struct controllers_row controllers_rows[TD_CONTROLLER_COUNT] = {
    [TD_CONTROLLER_RECOMMENDER] = {"vpa-recommender", recommender_make, recommender_start,
                                   recommender_stop},
    [TD_CONTROLLER_UPDATER] = {"vpa-updater", updater_make, updater_start, updater_stop},
    [TD_CONTROLLER_ADMISSION] = {"vpa-admission-controller", admission_make, admission_start,
                                 admission_stop},
    [TD_CONTROLLER_HORIZONTAL] = {"horizontal-pod-autoscaler", horizontal_make, horizontal_start,
                                  horizontal_stop},
    [TD_CONTROLLER_HVPA] = {"hvpa", hvpa_make, hvpa_start, hvpa_stop},
};

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
static bool one_may_lead(const struct controllers_one *one)
{
    const struct td_controllers *all = one->all;
    return one->kind != TD_CONTROLLER_HVPA || !all->options.has[TD_CONTROLLER_RECOMMENDER] ||
           all->ones[TD_CONTROLLER_RECOMMENDER].state == CONTROLLERS_RUNNING;
}

static void one_compete(struct controllers_one *one)
{
    if (one->lease && one->state == CONTROLLERS_IDLE && one_may_lead(one) && !one->all->is_ending) {
        one->state = CONTROLLERS_WAITING;
        td_lease_start(one->lease);
    }
}

static void one_begin(struct controllers_one *one)
{
    one->state = CONTROLLERS_RUNNING;
    one->since = controllers_now(one->all);
    if (one_is_open(one)) {
        one_say(one, TD_LOG_INFO, "starts", "lease", one->lease ? one->lease_name : TD_STR("none"));
    } else {
        one_say(one, TD_LOG_INFO, "is off", "gate", TD_STR("Hvpa"));
    }
    controllers_rows[one->kind].start(one->all);
    if (one->kind == TD_CONTROLLER_RECOMMENDER) {
        one_compete(&one->all->ones[TD_CONTROLLER_HVPA]);
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
    if (all->is_ending && all->done) {
        void (*done)(void *context) = all->done;
        all->done = NULL;
        td_timer_stop(all->patience);
        done(all->done_context);
    }
}

static void one_released(void *context)
{
    struct controllers_one *one = context;
    one->state = CONTROLLERS_IDLE;
    controllers_check_end(one->all);
    if (one->kind == TD_CONTROLLER_HVPA) {
        one_compete(one); /* the recommender came back meanwhile */
    }
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
    one_say(one, TD_LOG_INFO, "has stopped", "then",
            one->all->is_ending ? TD_STR("the end") : TD_STR("waits for its lease"));
    if (one->all->is_ending || !one_may_lead(one)) {
        one_release(one);
    } else {
        one->state = CONTROLLERS_WAITING;
        td_lease_start(one->lease);
    }
}

static void one_end(struct controllers_one *one)
{
    one->state = CONTROLLERS_STOPPING;
    controllers_rows[one->kind].stop(one->all, one_ended, one);
}

/* ---- Leases ---- */

static void lease_won(void *context)
{
    struct controllers_one *one = context;
    if (one->state == CONTROLLERS_WAITING) {
        one_begin(one);
    }
}

static void lease_lost(void *context, const struct td_error *why)
{
    struct controllers_one *one = context;
    one_say(one, TD_LOG_WARN, "leads no more", "because", td_str_from(why->message));
    if (one->state == CONTROLLERS_RUNNING) {
        one_end(one);
    }
    struct controllers_one *hvpa = &one->all->ones[TD_CONTROLLER_HVPA];
    if (hvpa->state == CONTROLLERS_RUNNING && !one_may_lead(hvpa)) {
        one_end(hvpa);
    } else if (hvpa->state == CONTROLLERS_WAITING && !one_may_lead(hvpa)) {
        one_release(hvpa);
    }
}

static void lease_seen(void *context, td_str identity)
{
    struct controllers_one *one = context;
    bool is_us = td_str_equal(identity, one->all->options.leader.identity);
    one->has_leader = identity.len > 0;
    if (one->kind == TD_CONTROLLER_RECOMMENDER && one->has_leader && !is_us) {
        td_recommend_loop_reread(one->all->recommend);
    }
    one_say(one, TD_LOG_INFO, "has a leader", "identity",
            identity.len > 0 ? identity : TD_STR("none"));
}

static int one_make_lease(struct controllers_one *one, struct td_error *err)
{
    struct td_controllers *all = one->all;
    const struct td_leader_options *leader = &all->options.leader;
    if (!leader->is_on || !td_controller_lease(one->kind) || !one_is_open(one)) {
        return TD_OK;
    }
    td_arena_reset(&all->texts);
    one->lease_name = td_text_copy(
        td_controller_lease_name(&all->texts, one->kind, all->options.has, leader->name));
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
        .events = {.started = lease_won, .stopped = lease_lost, .new_leader = lease_seen},
        .context = one,
    };
    return td_lease_new(&options, &one->lease, err);
}

/* ---- Making ---- */

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
    const struct td_control control = {
        .loop = all->options.loop,
        .client = all->client,
        .flow = one->flow,
        .sight = all->sight,
        .events = one->events,
        .measures = all->measures,
        .tally = all->tally,
        .log = all->options.log,
        .gates = all->options.gates,
        .hvpa_gate = all->options.hvpa_gate,
        .selection_strategy_gate = all->options.selection_strategy_gate,
        .scale_to_zero_gate = all->options.horizontal.config.can_scale_to_zero,
        .tolerance_gate = all->options.horizontal.config.is_tolerance_configurable,
        .caps_to_node = all->options.caps_to_node,
        .seed = all->options.seed + (uint64_t)kind,
    };
    int code = row->make(all, &control, err);
    return code == TD_OK ? one_make_lease(one, err) : code;
}

/* The kinds that each controller looks at. */
static void controllers_want(const struct td_controllers_options *options,
                             struct td_sight_options *sight)
{
    static const unsigned pods = 1u << TD_SIGHT_PODS;
    static const unsigned vpas = 1u << TD_SIGHT_VPAS;
    static const unsigned limits = 1u << TD_SIGHT_LIMIT_RANGES;
    static const unsigned hpas = 1u << TD_SIGHT_HPAS | 1u << TD_SIGHT_OWN_HPAS;
    const unsigned hvpas = options->hvpa_gate ? 1u << TD_SIGHT_HVPAS : 0;
    const unsigned nodes = options->caps_to_node ? 1u << TD_SIGHT_NODES : 0;
    const unsigned wanted[TD_CONTROLLER_COUNT] = {
        [TD_CONTROLLER_RECOMMENDER] = pods | vpas | hvpas,
        [TD_CONTROLLER_UPDATER] = pods | vpas | limits | nodes,
        [TD_CONTROLLER_ADMISSION] = vpas | limits | hvpas | nodes | 1u << TD_SIGHT_OWN_HPAS,
        [TD_CONTROLLER_HORIZONTAL] = pods | hpas | hvpas,
        [TD_CONTROLLER_HVPA] = options->hvpa_gate
                                   ? pods | vpas | hpas | hvpas | limits | 1u << TD_SIGHT_NODES
                                   : 1u << TD_SIGHT_HVPAS, /* to say that they are not acted on */
    };
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        for (size_t i = 0; options->has[kind] && i < TD_SIGHT_COUNT; i++) {
            bool is_workload = i >= TD_SIGHT_DEPLOYMENTS;
            sight->wants[i] = sight->wants[i] || is_workload || (wanted[kind] >> i & 1u);
        }
    }
}

static int controllers_make(struct td_controllers *all, struct td_error *err)
{
    const struct td_controllers_options *options = &all->options;
    struct td_sight_options sight = {
        .loop = options->loop,
        .client = all->client,
        .log = options->log,
        .vpa_namespace = options->vpa_namespace,
        .seed = options->seed,
    };
    controllers_want(options, &sight);
    int code = td_sight_new(&sight, &all->sight, err);
    for (size_t kind = 0; code == TD_OK && kind < TD_CONTROLLER_COUNT; kind++) {
        if (options->has[kind]) {
            code = one_make(all, (enum td_controller_kind)kind, err);
        }
    }
    /* Admission gives new pods the sizes that Hvpas have decided, wherever that was. */
    if (code == TD_OK && options->has[TD_CONTROLLER_ADMISSION] && options->hvpa_gate &&
        !all->hvpa) {
        const struct td_control control = {
            .loop = options->loop,
            .client = all->client,
            .flow = all->ones[TD_CONTROLLER_ADMISSION].flow,
            .sight = all->sight,
            .measures = all->measures,
            .tally = all->tally,
            .log = options->log,
            .gates = options->gates,
            .hvpa_gate = true,
            .seed = options->seed,
        };
        code = hvpa_make(all, &control, err);
    }
    return code == TD_OK && options->address ? controllers_listen(all, err) : code;
}

static int controllers_check(const struct td_controllers_options *options, struct td_error *err)
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
    return has_any ? TD_OK : td_error_set(err, TD_INVALID, "controllers: none is chosen");
}

static void controllers_impatient(struct td_timer *timer, void *context)
{
    struct td_controllers *all = context;
    (void)timer;
    td_log_write(all->options.log, TD_LOG_WARN, "not everything came to its end in time", NULL);
    if (all->done) {
        void (*done)(void *context) = all->done;
        all->done = NULL;
        done(all->done_context);
    }
}

int td_controllers_new(const struct td_controllers_options *options, struct td_controllers **ret,
                       struct td_error *err)
{
    int code = controllers_check(options, err);
    if (code != TD_OK) {
        options->transport->ops->free(options->transport);
        return code;
    }
    struct td_controllers *all = td_alloc_zero(1, sizeof(*all));
    all->options = *options;
    td_arena_init(&all->texts, CONTROLLERS_TEXT_BYTES_MAX);
    all->tally = td_tally_new();
    all->patience = td_timer_new(options->loop, controllers_impatient, all);
    const struct td_client_options client = {
        .loop = options->loop,
        .transport = options->transport,
        .qps = options->qps,
        .burst = options->burst,
        .seed = options->seed,
    };
    all->client = td_client_new(&client);
    all->lease_flow = td_client_flow_new(all->client, TD_STR("leases"));
    all->access_flow = td_client_flow_new(all->client, TD_STR("access"));
    all->measure_flow = td_client_flow_new(all->client, TD_STR("metrics"));
    all->measures = td_measure_client_new(options->loop, all->client, all->measure_flow,
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

static void controllers_checked(void *context, const struct td_access_result *result)
{
    struct td_controllers *all = context;
    all->access = NULL;
    all->access_missing = result->missing;
    if (result->code != TD_OK) {
        td_log_line(all->options.log, TD_LOG_WARN, "what is allowed cannot be found out",
                    TD_LOG_C("error", result->err.message));
    }
    td_str lines = result->lines;
    while (lines.len > 0) {
        size_t end = td_str_find(lines, '\n', 0);
        td_arena_reset(&all->texts);
        td_str line = td_arena_format(&all->texts, "permission is missing: %.*s",
                                      TD_STR_ARG(td_str_slice(lines, 0, end)));
        lines = td_str_slice(lines, end < lines.len ? end + 1 : end, lines.len);
        td_log_write(all->options.log, TD_LOG_ERROR, line.ptr, NULL);
    }
}

static void controllers_check_access(struct td_controllers *all)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    const struct td_controllers_options *options = &all->options;
    const struct td_rights_scope scope = {
        .has = options->has,
        .caps_to_node = options->caps_to_node,
        .lease_name = options->leader.name,
        .places = {
            [TD_RIGHT_OWN] = {.namespace = options->hook.namespace, .name = options->hook.secret},
            [TD_RIGHT_ELECTION] = {.is_off = !options->leader.is_on,
                                   .namespace = options->leader.namespace},
            [TD_RIGHT_STATUS] = {.namespace = options->hook.lease_namespace,
                                 .name = options->hook.lease_name},
            [TD_RIGHT_STATUS_READ] = {.is_off = !options->update.uses_lease,
                                      .namespace = options->update.lease_namespace,
                                      .name = options->update.lease_name},
        }};
    const struct td_access_rule *rules;
    size_t count = td_rights_questions(&arena, &scope, &rules);
    all->access =
        td_access_check(all->client, all->access_flow, rules, count, controllers_checked, all);
}

void td_controllers_start(struct td_controllers *controllers)
{
    if (controllers->options.checks_access) {
        controllers_check_access(controllers);
    }
    controllers->is_started = true;
    td_sight_start(controllers->sight);
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        struct controllers_one *one = &controllers->ones[kind];
        if (one->lease) {
            one_compete(one);
        } else if (controllers->options.has[kind]) {
            one_begin(one);
        }
    }
}

void td_controllers_stop(struct td_controllers *controllers, void (*done)(void *context),
                         void *context)
{
    controllers->is_ending = true;
    controllers->done = done;
    controllers->done_context = context;
    td_timer_set(controllers->patience, CONTROLLERS_PATIENCE);
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
    td_http_server_free(controllers->server);
    td_access_cancel(controllers->access);
    td_hook_free(controllers->hook);
    td_hvpa_loop_free(controllers->hvpa);
    td_recommend_loop_free(controllers->recommend);
    td_update_loop_free(controllers->update);
    td_horizontal_loop_free(controllers->horizontal);
    td_measure_client_free(controllers->measures);
    td_sight_free(controllers->sight);
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        td_lease_free(controllers->ones[kind].lease);
        td_text_free(controllers->ones[kind].lease_name);
        td_events_free(controllers->ones[kind].events);
    }
    td_timer_free(controllers->patience);
    td_client_free(controllers->client);
    td_tally_free(controllers->tally);
    td_arena_done(&controllers->texts);
    td_free(controllers);
}

bool td_controllers_is_leading(const struct td_controllers *controllers,
                               enum td_controller_kind kind)
{
    const struct controllers_one *one = &controllers->ones[kind];
    return one->state == CONTROLLERS_RUNNING && one_is_open(one);
}

struct td_hook *td_controllers_hook(struct td_controllers *controllers)
{
    return controllers->hook;
}
