/*
 * One question after another: /version, whose date is the server's clock; then the informers,
 * until each has listed once or may not; then metrics; then the webhook's registration and lease.
 * What is denied or absent is noted, and named where it explains why something is missing.
 */
#include "control/inspect/snapshot.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "control/gates.h"
#include "kube/client/client.h"
#include "kube/client/metrics_client.h"
#include "kube/client/server_clock.h"
#include "kube/client/verbs.h"

#define SNAPSHOT_POLL (10 * TD_MILLISECOND)
#define SNAPSHOT_PATIENCE (30 * TD_SECOND)
#define SNAPSHOT_FIRST_ANSWER (2 * TD_SECOND) /* later it is taken for dead */
#define SNAPSHOT_STALE (5 * TD_MINUTE)        /* of metrics */
#define SNAPSHOT_LEASE_MAX TD_MINUTE          /* as the updater's */

/* Of an installation in the cluster, of a process outside, of upstream's or what took its place. */
static const td_str snapshot_hooks[] = {TD_STR_INIT(TD_WEBHOOK_INSIDE),
                                        TD_STR_INIT(TD_WEBHOOK_OUTSIDE),
                                        TD_STR_INIT(TD_WEBHOOK_UPSTREAM)};
/* Any of them says that pods are mutated; the newest counts. */
static const td_str snapshot_leases[] = {TD_STR_INIT(TD_STATUS_LEASE),
                                         TD_STR_INIT(TD_UPSTREAM_STATUS_LEASE)};

td_time td_snapshot_now(const struct td_snapshot *snapshot)
{
    return td_clock_wall(td_loop_clock(snapshot->loop));
}

static void snapshot_end(struct td_snapshot *snapshot, int code, const struct td_error *err)
{
    td_snapshot_fn done = snapshot->done;
    snapshot->done = NULL;
    td_timer_stop(snapshot->poll);
    done(snapshot->context, code, err);
}

/* ---- The webhook: is it registered, does its heart beat ---- */

static td_time snapshot_lease_time(td_str body)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *lease;
    struct td_instant at;
    if (td_json_parse(&arena, body, NULL, &lease, NULL) != TD_OK) {
        return TD_TIME_NONE;
    }
    const struct td_json *text = td_json_get_path(lease, "spec.renewTime");
    bool is_read = td_json_is(text, TD_JSON_TYPE_STRING) &&
                   (td_time_parse(text->text, &at, NULL) == TD_OK ||
                    td_time_parse_fraction(text->text, 6, &at, NULL) == TD_OK);
    return is_read ? td_time_from_instant(at) : TD_TIME_NONE;
}

static void snapshot_get(struct td_snapshot *snapshot, const struct td_api_path *path,
                         td_client_done_fn done)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (td_verb_get(&arena, path, &request, &err) != TD_OK) {
        snapshot_end(snapshot, err.code, &err);
        return;
    }
    request.flow = snapshot->flow;
    snapshot->call = td_client_send(snapshot->client, &request, done, snapshot);
}

static void snapshot_ask_lease(struct td_snapshot *snapshot);

static void snapshot_lease_read(void *context, const struct td_client_reply *reply)
{
    struct td_snapshot *snapshot = context;
    const struct td_error none = TD_ERROR_INIT;
    snapshot->call = NULL;
    if (reply->code == TD_OK) {
        td_time renewed = snapshot_lease_time(reply->body);
        bool is_newer =
            snapshot->webhook_renewed == TD_TIME_NONE || renewed > snapshot->webhook_renewed;
        snapshot->webhook_renewed = is_newer ? renewed : snapshot->webhook_renewed;
    }
    snapshot->is_webhook_known =
        snapshot->is_webhook_known && (reply->code == TD_OK || reply->code == TD_NOT_FOUND);
    if (++snapshot->leases_asked < TD_COUNT(snapshot_leases)) {
        snapshot_ask_lease(snapshot);
    } else {
        snapshot_end(snapshot, TD_OK, &none);
    }
}

static void snapshot_ask_lease(struct td_snapshot *snapshot)
{
    const struct td_api_path path = {
        .group = TD_STR("coordination.k8s.io"),
        .version = TD_STR("v1"),
        .namespace = snapshot->update.lease_namespace,
        .plural = TD_STR("leases"),
        .name = snapshot_leases[snapshot->leases_asked],
    };
    snapshot_get(snapshot, &path, snapshot_lease_read);
}

static void snapshot_webhook_read(void *context, const struct td_client_reply *reply);

static void snapshot_ask_webhook(struct td_snapshot *snapshot, td_str name)
{
    const struct td_api_path path = {
        .group = TD_STR("admissionregistration.k8s.io"),
        .version = TD_STR("v1"),
        .plural = TD_STR("mutatingwebhookconfigurations"),
        .name = name,
    };
    snapshot_get(snapshot, &path, snapshot_webhook_read);
}

static void snapshot_webhook_read(void *context, const struct td_client_reply *reply)
{
    struct td_snapshot *snapshot = context;
    snapshot->call = NULL;
    if (reply->code == TD_NOT_FOUND && ++snapshot->hooks_asked < TD_COUNT(snapshot_hooks)) {
        snapshot_ask_webhook(snapshot, snapshot_hooks[snapshot->hooks_asked]);
        return;
    }
    snapshot->has_webhook = reply->code == TD_OK;
    snapshot->is_webhook_known = reply->code == TD_OK || reply->code == TD_NOT_FOUND;
    snapshot_ask_lease(snapshot);
}

td_str td_snapshot_webhook_problem(const struct td_snapshot *snapshot, struct td_arena *arena)
{
    if (!snapshot->is_webhook_known) {
        return TD_STR_EMPTY; /* without the right to look there is nothing to say */
    }
    if (!snapshot->has_webhook) {
        return TD_STR("no webhook for pods is registered (" TD_WEBHOOK_INSIDE
                      "), so new pods are not mutated; run the admission controller: tandem run");
    }
    td_duration age = snapshot->webhook_renewed == TD_TIME_NONE
                          ? 0
                          : td_snapshot_now(snapshot) - snapshot->webhook_renewed;
    if (snapshot->webhook_renewed == TD_TIME_NONE || age <= SNAPSHOT_LEASE_MAX) {
        return snapshot->webhook_renewed == TD_TIME_NONE
                   ? TD_STR("the webhook's status lease does not exist: no admission controller "
                            "has reported that it mutates pods; see its log")
                   : TD_STR_EMPTY;
    }
    char text[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(age - age % TD_SECOND, text);
    return td_arena_format(arena,
                           "the admission controller renewed its status lease %s ago, so the "
                           "updater evicts no pods; is it running? see its log",
                           text);
}

/* ---- Metrics ---- */

static void snapshot_sample(void *context, const struct td_container_metrics *measure)
{
    struct td_snapshot *snapshot = context;
    bool is_ahead = measure->time > td_snapshot_now(snapshot) + TD_CLOCKS_APART_MAX;
    td_time *newest = is_ahead ? &snapshot->measured_ahead : &snapshot->measured;
    if (*newest == TD_TIME_NONE || measure->time > *newest) {
        *newest = measure->time;
    }
}

static void snapshot_measured(void *context, int code, const struct td_error *err)
{
    struct td_snapshot *snapshot = context;
    snapshot->measure = NULL;
    snapshot->metrics_error = *err;
    snapshot->metrics_error.code = code;
    snapshot_ask_webhook(snapshot, snapshot_hooks[0]);
}

td_str td_snapshot_metrics_problem(const struct td_snapshot *snapshot, struct td_arena *arena)
{
    if (snapshot->metrics_error.code == TD_NOT_FOUND &&
        td_cache_count(td_informers_cache(snapshot->informers, TD_INFORMER_PODS)) == 0) {
        return TD_STR_EMPTY; /* no running pod in the namespaces of the snapshot */
    }
    if (snapshot->metrics_error.code != TD_OK) {
        return td_arena_format(arena,
                               "cannot read pod metrics: %s; is a metrics server installed? run "
                               "kubectl top pods %s%.*s",
                               snapshot->metrics_error.message,
                               snapshot->namespace.len > 0 ? "-n " : "-A",
                               TD_STR_ARG(snapshot->namespace));
    }
    /* A node's fast clock does not say how old the metrics are. */
    td_time ahead = snapshot->measured_ahead;
    td_time measured =
        ahead != TD_TIME_NONE && ahead <= td_snapshot_now(snapshot) + TD_CLOCKS_APART_MAX
            ? ahead
            : snapshot->measured;
    if (measured == TD_TIME_NONE && ahead != TD_TIME_NONE) {
        return TD_STR(
            "all pod metrics have timestamps in the future; synchronize the clocks of the nodes");
    }
    if (measured == TD_TIME_NONE) {
        return td_arena_format(arena,
                               "the metrics API has no pod metrics; is a metrics server installed? "
                               "run kubectl top pods %s%.*s",
                               snapshot->namespace.len > 0 ? "-n " : "-A",
                               TD_STR_ARG(snapshot->namespace));
    }
    td_duration age = td_snapshot_now(snapshot) - measured;
    if (age <= SNAPSHOT_STALE) {
        return TD_STR_EMPTY;
    }
    char text[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(age - age % TD_SECOND, text);
    return td_arena_format(
        arena, "the newest pod metrics are %s old and are ignored; check metrics-server", text);
}

/* ---- The informers ---- */

static const char *snapshot_kind_name(enum td_informer_kind kind)
{
    static const char *const names[TD_INFORMER_COUNT] = {
        [TD_INFORMER_PODS] = "pods",
        [TD_INFORMER_VPAS] = "verticalpodautoscalers",
        [TD_INFORMER_HPAS] = "horizontalpodautoscalers",
        [TD_INFORMER_OWN_HPAS] = "horizontalpodautoscalers.autoscaling.tandem.dev",
        [TD_INFORMER_HVPAS] = "hvpas",
        [TD_INFORMER_LIMIT_RANGES] = "limitranges",
        [TD_INFORMER_NODES] = "nodes",
        [TD_INFORMER_DEPLOYMENTS] = "deployments",
        [TD_INFORMER_REPLICA_SETS] = "replicasets",
        [TD_INFORMER_STATEFUL_SETS] = "statefulsets",
        [TD_INFORMER_DAEMON_SETS] = "daemonsets",
        [TD_INFORMER_JOBS] = "jobs",
        [TD_INFORMER_CRON_JOBS] = "cronjobs",
        [TD_INFORMER_REPLICATION_CONTROLLERS] = "replicationcontrollers",
    };
    return names[kind];
}

/* The kind is not installed: then there are no such objects. The informers are stricter, since to
 * a controller that writes, a missing VPA would make its checkpoints look left over. What may not
 * be listed, as nodes with the rights of one namespace, is told and does without, unless it is what
 * was asked about. */
static bool snapshot_is_absent(const struct td_snapshot *snapshot, size_t kind)
{
    bool is_ours =
        kind == TD_INFORMER_VPAS || kind == TD_INFORMER_OWN_HPAS || kind == TD_INFORMER_HVPAS;
    bool is_spare = is_ours || kind == TD_INFORMER_HPAS || kind == TD_INFORMER_LIMIT_RANGES ||
                    kind == TD_INFORMER_NODES;
    const struct td_cache *cache =
        td_informers_cache(snapshot->informers, (enum td_informer_kind)kind);
    int code = td_cache_error(cache)->code;
    return (is_ours && code == TD_NOT_FOUND) ||
           (is_spare && code == TD_DENIED && !snapshot->needs[kind]);
}

static void snapshot_note_denied(struct td_snapshot *snapshot)
{
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        const struct td_cache *cache =
            td_informers_cache(snapshot->informers, (enum td_informer_kind)kind);
        snapshot->is_denied[kind] =
            !td_cache_is_synced(cache) && td_cache_error(cache)->code == TD_DENIED;
    }
}

static td_str snapshot_add_name(struct td_arena *arena, td_str names, const char *name)
{
    return td_arena_format(arena, "%.*s%s%s", TD_STR_ARG(names), names.len > 0 ? ", " : "", name);
}

td_str td_snapshot_rights_problem(const struct td_snapshot *snapshot, struct td_arena *arena)
{
    td_str names = TD_STR_EMPTY;
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        bool is_reported = snapshot->is_denied[kind] &&
                           (kind != TD_INFORMER_NODES || snapshot->needs[TD_INFORMER_HVPAS]);
        if (is_reported) {
            names =
                snapshot_add_name(arena, names, snapshot_kind_name((enum td_informer_kind)kind));
        }
    }
    if (td_recommend_loop_is_denied(snapshot->recommend)) {
        names = snapshot_add_name(arena, names, "verticalpodautoscalercheckpoints");
    }
    return names.len == 0 ? names
                          : td_arena_format(arena,
                                            "no permission to list %.*s: they are treated as "
                                            "absent; ask for the list permission",
                                            TD_STR_ARG(names));
}

static bool snapshot_is_synced(const struct td_snapshot *snapshot)
{
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        const struct td_cache *cache =
            td_informers_cache(snapshot->informers, (enum td_informer_kind)kind);
        if (!td_cache_is_synced(cache) && !snapshot_is_absent(snapshot, kind)) {
            return false;
        }
    }
    return true;
}

/* Nothing has failed, or what the cache tries again anyway: a server that is busy or behind. */
static bool snapshot_may_pass(int code)
{
    return code == TD_OK || code == TD_TIMEOUT || code == TD_BUSY || code == TD_GONE;
}

/* What stands in the way for good. */
static int snapshot_problem(const struct td_snapshot *snapshot, bool is_late, struct td_error *err)
{
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        const struct td_cache *cache =
            td_informers_cache(snapshot->informers, (enum td_informer_kind)kind);
        const struct td_error *problem = td_cache_error(cache);
        if (td_cache_is_synced(cache) || snapshot_is_absent(snapshot, kind) ||
            (snapshot_may_pass(problem->code) && !is_late)) {
            continue;
        }
        return td_error_set(err, problem->code == TD_OK ? TD_TIMEOUT : problem->code, "%s: %s",
                            snapshot_kind_name((enum td_informer_kind)kind),
                            problem->code == TD_OK ? "the list timed out" : problem->message);
    }
    return TD_OK;
}

static void snapshot_poll(struct td_timer *timer, void *context)
{
    static const struct td_metrics_handler handler = {.pod = snapshot_sample,
                                                      .done = snapshot_measured};
    struct td_snapshot *snapshot = context;
    td_duration waited = td_clock_machine(td_loop_clock(snapshot->loop)) - snapshot->began;
    struct td_error err = TD_ERROR_INIT;
    if (snapshot_is_synced(snapshot)) {
        snapshot_note_denied(snapshot);
        snapshot->measure = td_metrics_get_pods(snapshot->metrics_client, snapshot->namespace,
                                                TD_STR_EMPTY, &handler, snapshot);
    } else if (snapshot_problem(snapshot, waited > snapshot->patience, &err) != TD_OK) {
        snapshot_end(snapshot, err.code, &err);
    } else {
        td_timer_set_machine(timer, SNAPSHOT_POLL);
    }
}

static void snapshot_ignore(void *context, td_str bytes)
{
    (void)context;
    (void)bytes;
}

static void snapshot_answered(void *context, int code, const struct td_error *err)
{
    struct td_snapshot *snapshot = context;
    snapshot->call = NULL;
    if (code != TD_OK) {
        snapshot_end(snapshot, code, err);
        return;
    }
    td_informers_start(snapshot->informers);
    td_timer_set_machine(snapshot->poll, SNAPSHOT_POLL);
}

/* ---- The whole ---- */

static int snapshot_make(struct td_snapshot *snapshot, const struct td_snapshot_options *options,
                         struct td_error *err)
{
    struct td_controllers_options defaults = td_controllers_options_default();
    struct td_log *log = options->log;
    struct td_informers_options informers = {.loop = snapshot->loop,
                                             .client = snapshot->client,
                                             .log = log,
                                             .namespace = snapshot->namespace};
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        informers.wants[kind] = true;
    }
    int code = td_gates_set(&defaults, options->feature_gates, err);
    code = code == TD_OK ? td_informers_new(&informers, &snapshot->informers, err) : code;
    if (code != TD_OK) {
        return code;
    }
    const struct td_control control = {
        .loop = snapshot->loop,
        .client = snapshot->client,
        .flow = snapshot->flow,
        .informers = snapshot->informers,
        .metrics_client = snapshot->metrics_client,
        .registry = snapshot->registry,
        .log = log,
        .gates = defaults.gates,
        .hvpa_gate = defaults.hvpa_gate,
        .selection_strategy_gate = defaults.selection_strategy_gate,
    };
    defaults.recommend.control = control;
    defaults.recommend.namespace = snapshot->namespace;
    defaults.recommend.estimator = options->estimator;
    defaults.recommend.is_estimator_forced = options->estimator.len > 0;
    defaults.recommend.config.per_vpa_config = defaults.gates.per_vpa_config;
    defaults.update.control = control;
    defaults.horizontal.control = control;
    defaults.horizontal.serves_builtin =
        true; /* the verdict does not depend on who serves the HPA */
    defaults.hvpa.control = control;
    snapshot->update = defaults.update;
    code = td_recommend_loop_new(&defaults.recommend, &snapshot->recommend, err);
    code = code == TD_OK ? td_horizontal_loop_new(&defaults.horizontal, &snapshot->horizontal, err)
                         : code;
    defaults.hvpa.recommend = snapshot->recommend;
    defaults.hvpa.gather = snapshot->horizontal;
    return code == TD_OK ? td_hvpa_loop_new(&defaults.hvpa, &snapshot->hvpa, err) : code;
}

int td_snapshot_new(const struct td_snapshot_options *options, struct td_snapshot **ret,
                    struct td_error *err)
{
    struct td_snapshot *snapshot = td_alloc_zero(1, sizeof(*snapshot));
    const struct td_client_options client = {
        .loop = options->loop, .transport = options->transport, .keeps_server_time = true};
    snapshot->loop = options->loop;
    snapshot->measured = TD_TIME_NONE;
    snapshot->measured_ahead = TD_TIME_NONE;
    snapshot->webhook_renewed = TD_TIME_NONE;
    snapshot->patience = options->patience > 0 ? options->patience : SNAPSHOT_PATIENCE;
    snapshot->namespace = td_text_copy(options->namespace);
    memcpy(snapshot->needs, options->needs, sizeof(snapshot->needs));
    snapshot->client = td_client_new(&client);
    snapshot->flow = td_client_flow_new(snapshot->client, TD_STR("snapshot"));
    snapshot->registry = td_metric_registry_new();
    snapshot->metrics_client =
        td_metrics_client_new(options->loop, snapshot->client, snapshot->flow, TD_MINUTE);
    snapshot->poll = td_timer_new(options->loop, snapshot_poll, snapshot);
    int code = snapshot_make(snapshot, options, err);
    if (code != TD_OK) {
        td_snapshot_free(snapshot);
        return code;
    }
    *ret = snapshot;
    return TD_OK;
}

void td_snapshot_start(struct td_snapshot *snapshot, td_snapshot_fn done, void *context)
{
    snapshot->done = done;
    snapshot->context = context;
    snapshot->began = td_clock_machine(td_loop_clock(snapshot->loop));
    static const struct td_call_events events = {.body = snapshot_ignore, .end = snapshot_answered};
    const struct td_client_request request = {
        .flow = snapshot->flow,
        .method = TD_STR("GET"),
        .path = TD_STR("/version"),
        .deadline =
            snapshot->patience < SNAPSHOT_FIRST_ANSWER ? snapshot->patience : SNAPSHOT_FIRST_ANSWER,
    };
    snapshot->call = td_client_stream(snapshot->client, &request, &events, snapshot);
}

void td_snapshot_free(struct td_snapshot *snapshot)
{
    if (!snapshot) {
        return;
    }
    if (snapshot->measure) {
        td_metrics_cancel(snapshot->measure);
    }
    if (snapshot->call) {
        td_client_cancel(snapshot->call);
    }
    td_hvpa_loop_free(snapshot->hvpa);
    td_horizontal_loop_free(snapshot->horizontal);
    td_recommend_loop_free(snapshot->recommend);
    td_metrics_client_free(snapshot->metrics_client);
    td_informers_free(snapshot->informers);
    td_timer_free(snapshot->poll);
    td_client_free(snapshot->client);
    td_metric_registry_free(snapshot->registry);
    td_text_free(snapshot->namespace);
    td_free(snapshot);
}
