#include "control/glance.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "control/gates.h"
#include "control/measure_client.h"
#include "control/tally.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"

#define GLANCE_POLL (10 * TD_MILLISECOND)
#define GLANCE_PATIENCE (30 * TD_SECOND)
#define GLANCE_STALE (5 * TD_MINUTE) /* of metrics */
#define GLANCE_APART_MIN TD_MINUTE   /* clocks of machines differ by less */
#define GLANCE_LEASE_MAX TD_MINUTE   /* as the updater's */
#define GLANCE_HOOK "vpa-webhook-config"

td_time td_glance_now(const struct td_glance *glance)
{
    return td_clock_wall(td_loop_clock(glance->loop));
}

static void glance_end(struct td_glance *glance, int code, const struct td_error *err)
{
    td_glance_fn done = glance->done;
    glance->done = NULL;
    td_timer_stop(glance->poll);
    done(glance->context, code, err);
}

/* ---- What time it is there ---- */

static void glance_set_clock(struct td_glance *glance, td_time date)
{
    struct td_clock *clock = td_loop_clock(glance->loop);
    td_duration apart = date > 0 ? date - td_clock_wall(clock) : 0;
    bool is_apart = apart > GLANCE_APART_MIN || apart < -GLANCE_APART_MIN;
    if (clock->kind == TD_CLOCK_ACCELERATED && is_apart) {
        clock->wall_start += apart;
    }
}

static void glance_dated(void *context, const struct td_call_head *head)
{
    glance_set_clock(context, head->date);
}

/* ---- The webhook: is it registered, does its heart beat ---- */

static td_time glance_lease_time(td_str body)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
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

static void glance_get(struct td_glance *glance, const struct td_api_path *path,
                       td_client_done_fn done)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (td_verb_get(&arena, path, &request, &err) != TD_OK) {
        glance_end(glance, err.code, &err);
        return;
    }
    request.flow = glance->flow;
    glance->call = td_client_send(glance->client, &request, done, glance);
}

static void glance_lease_read(void *context, const struct td_client_reply *reply)
{
    struct td_glance *glance = context;
    const struct td_error none = TD_ERROR_INIT;
    glance->call = NULL;
    if (reply->code == TD_OK) {
        glance->hook_renewed = glance_lease_time(reply->body);
    }
    glance->is_hook_known =
        glance->is_hook_known && (reply->code == TD_OK || reply->code == TD_NOT_FOUND);
    glance_end(glance, TD_OK, &none);
}

static void glance_hook_read(void *context, const struct td_client_reply *reply)
{
    struct td_glance *glance = context;
    glance->call = NULL;
    glance_set_clock(glance, reply->date); /* a fast cluster has moved on since it was measured */
    glance->has_hook = reply->code == TD_OK;
    glance->is_hook_known = reply->code == TD_OK || reply->code == TD_NOT_FOUND;
    const struct td_api_path path = {
        .group = TD_STR("coordination.k8s.io"),
        .version = TD_STR("v1"),
        .namespace = glance->update.lease_namespace,
        .plural = TD_STR("leases"),
        .name = glance->update.lease_name,
    };
    glance_get(glance, &path, glance_lease_read);
}

td_str td_glance_hook_trouble(const struct td_glance *glance, struct td_arena *arena)
{
    if (!glance->is_hook_known) {
        return TD_STR_EMPTY; /* without the right to look there is nothing to say */
    }
    if (!glance->has_hook) {
        return TD_STR("no webhook for pods is registered (" GLANCE_HOOK "), so pods come back "
                      "unchanged; run the admission controller: tandem run");
    }
    td_duration age =
        glance->hook_renewed == TD_TIME_NONE ? 0 : td_glance_now(glance) - glance->hook_renewed;
    if (glance->hook_renewed == TD_TIME_NONE || age <= GLANCE_LEASE_MAX) {
        return glance->hook_renewed == TD_TIME_NONE
                   ? TD_STR("the webhook's lease is missing: no admission controller says that it "
                            "changes pods; look at its log")
                   : TD_STR_EMPTY;
    }
    char text[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(age - age % TD_SECOND, text);
    return td_arena_format(arena,
                           "the admission controller has not said for %s that it changes pods, so "
                           "nothing is evicted; is it running? look at its log",
                           text);
}

/* ---- Metrics ---- */

static void glance_sample(void *context, const struct td_pod_measure *measure)
{
    struct td_glance *glance = context;
    bool is_ahead = measure->time > td_glance_now(glance) + GLANCE_APART_MIN;
    td_time *newest = is_ahead ? &glance->measured_ahead : &glance->measured;
    if (*newest == TD_TIME_NONE || measure->time > *newest) {
        *newest = measure->time;
    }
}

static void glance_measured(void *context, int code, const struct td_error *err)
{
    struct td_glance *glance = context;
    glance->measure = NULL;
    glance->metrics_error = *err;
    glance->metrics_error.code = code;
    const struct td_api_path path = {
        .group = TD_STR("admissionregistration.k8s.io"),
        .version = TD_STR("v1"),
        .plural = TD_STR("mutatingwebhookconfigurations"),
        .name = TD_STR(GLANCE_HOOK),
    };
    glance_get(glance, &path, glance_hook_read);
}

td_str td_glance_metrics_trouble(const struct td_glance *glance, struct td_arena *arena)
{
    if (glance->metrics_error.code == TD_NOT_FOUND &&
        td_cache_count(td_sight_cache(glance->sight, TD_SIGHT_PODS)) == 0) {
        return TD_STR_EMPTY; /* nobody to measure where we look */
    }
    if (glance->metrics_error.code != TD_OK) {
        return td_arena_format(arena,
                               "metrics of pods cannot be read: %s; is a metrics server installed? "
                               "kubectl top pods",
                               glance->metrics_error.message);
    }
    /* A node's fast clock does not say how old the metrics are. */
    td_time ahead = glance->measured_ahead;
    td_time measured = ahead != TD_TIME_NONE && ahead <= td_glance_now(glance) + GLANCE_APART_MIN
                           ? ahead
                           : glance->measured;
    if (measured == TD_TIME_NONE && ahead != TD_TIME_NONE) {
        return TD_STR(
            "all metrics of pods bear times in the future, so their age is not known; set "
            "the clocks of the nodes");
    }
    if (measured == TD_TIME_NONE) {
        return TD_STR("there are no metrics of pods; is a metrics server installed? kubectl top "
                      "pods");
    }
    td_duration age = td_glance_now(glance) - measured;
    if (age <= GLANCE_STALE) {
        return TD_STR_EMPTY;
    }
    char text[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(age - age % TD_SECOND, text);
    return td_arena_format(arena,
                           "the newest metrics of pods are %s old, and nothing is learnt from old "
                           "ones; look at the metrics server",
                           text);
}

/* ---- The sight ---- */

static const char *glance_kind_name(enum td_sight_kind kind)
{
    static const char *const names[TD_SIGHT_COUNT] = {
        [TD_SIGHT_PODS] = "pods",
        [TD_SIGHT_VPAS] = "verticalpodautoscalers",
        [TD_SIGHT_HPAS] = "horizontalpodautoscalers",
        [TD_SIGHT_OWN_HPAS] = "horizontalpodautoscalers.autoscaling.tandem.dev",
        [TD_SIGHT_HVPAS] = "hvpas",
        [TD_SIGHT_LIMIT_RANGES] = "limitranges",
        [TD_SIGHT_NODES] = "nodes",
        [TD_SIGHT_DEPLOYMENTS] = "deployments",
        [TD_SIGHT_REPLICA_SETS] = "replicasets",
        [TD_SIGHT_STATEFUL_SETS] = "statefulsets",
        [TD_SIGHT_DAEMON_SETS] = "daemonsets",
        [TD_SIGHT_JOBS] = "jobs",
        [TD_SIGHT_CRON_JOBS] = "cronjobs",
        [TD_SIGHT_REPLICATION_CONTROLLERS] = "replicationcontrollers",
    };
    return names[kind];
}

/* Nobody installed it: then there are no such objects. The sight is stricter, since for who writes
 * a missing VPA would make its checkpoints look left over. What may not be listed, as nodes with
 * the rights of one namespace, is told and does without, unless it is what was asked about. */
static bool glance_is_absent(const struct td_glance *glance, size_t kind)
{
    bool is_ours = kind == TD_SIGHT_VPAS || kind == TD_SIGHT_OWN_HPAS || kind == TD_SIGHT_HVPAS;
    bool is_spare =
        is_ours || kind == TD_SIGHT_HPAS || kind == TD_SIGHT_LIMIT_RANGES || kind == TD_SIGHT_NODES;
    const struct td_cache *cache = td_sight_cache(glance->sight, (enum td_sight_kind)kind);
    int code = td_cache_trouble(cache)->code;
    return (is_ours && code == TD_NOT_FOUND) ||
           (is_spare && code == TD_DENIED && !glance->needs[kind]);
}

static void glance_note_denied(struct td_glance *glance)
{
    for (size_t kind = 0; kind < TD_SIGHT_COUNT; kind++) {
        const struct td_cache *cache = td_sight_cache(glance->sight, (enum td_sight_kind)kind);
        glance->is_denied[kind] =
            !td_cache_is_synced(cache) && td_cache_trouble(cache)->code == TD_DENIED;
    }
}

static td_str glance_add_name(struct td_arena *arena, td_str names, const char *name)
{
    return td_arena_format(arena, "%.*s%s%s", TD_STR_ARG(names), names.len > 0 ? ", " : "", name);
}

td_str td_glance_rights_trouble(const struct td_glance *glance, struct td_arena *arena)
{
    td_str names = TD_STR_EMPTY;
    for (size_t kind = 0; kind < TD_SIGHT_COUNT; kind++) {
        bool is_told =
            glance->is_denied[kind] && (kind != TD_SIGHT_NODES || glance->needs[TD_SIGHT_HVPAS]);
        if (is_told) {
            names = glance_add_name(arena, names, glance_kind_name((enum td_sight_kind)kind));
        }
    }
    if (td_recommend_loop_is_denied(glance->recommend)) {
        names = glance_add_name(arena, names, "verticalpodautoscalercheckpoints");
    }
    return names.len == 0 ? names
                          : td_arena_format(arena,
                                            "these may not be listed, and count as if there were "
                                            "none: %.*s; ask for the right to list them",
                                            TD_STR_ARG(names));
}

static bool glance_is_synced(const struct td_glance *glance)
{
    for (size_t kind = 0; kind < TD_SIGHT_COUNT; kind++) {
        const struct td_cache *cache = td_sight_cache(glance->sight, (enum td_sight_kind)kind);
        if (!td_cache_is_synced(cache) && !glance_is_absent(glance, kind)) {
            return false;
        }
    }
    return true;
}

/* Nothing has failed, or what the cache tries again anyway: a server that is busy or behind. */
static bool glance_may_pass(int code)
{
    return code == TD_OK || code == TD_TIMEOUT || code == TD_BUSY || code == TD_GONE;
}

/* What stands in the way for good. */
static int glance_trouble(const struct td_glance *glance, bool is_late, struct td_error *err)
{
    for (size_t kind = 0; kind < TD_SIGHT_COUNT; kind++) {
        const struct td_cache *cache = td_sight_cache(glance->sight, (enum td_sight_kind)kind);
        const struct td_error *trouble = td_cache_trouble(cache);
        if (td_cache_is_synced(cache) || glance_is_absent(glance, kind) ||
            (glance_may_pass(trouble->code) && !is_late)) {
            continue;
        }
        return td_error_set(err, trouble->code == TD_OK ? TD_TIMEOUT : trouble->code, "%s: %s",
                            glance_kind_name((enum td_sight_kind)kind),
                            trouble->code == TD_OK ? "the list has not come in time"
                                                   : trouble->message);
    }
    return TD_OK;
}

static void glance_poll(struct td_timer *timer, void *context)
{
    static const struct td_measure_handler handler = {.pod = glance_sample,
                                                      .done = glance_measured};
    struct td_glance *glance = context;
    td_duration waited = td_clock_machine(td_loop_clock(glance->loop)) - glance->began;
    struct td_error err = TD_ERROR_INIT;
    if (glance_is_synced(glance)) {
        glance_note_denied(glance);
        glance->measure =
            td_measure_pods(glance->measures, glance->namespace, TD_STR_EMPTY, &handler, glance);
    } else if (glance_trouble(glance, waited > glance->patience, &err) != TD_OK) {
        glance_end(glance, err.code, &err);
    } else {
        td_timer_set_machine(timer, GLANCE_POLL);
    }
}

static void glance_ignore(void *context, td_str bytes)
{
    (void)context;
    (void)bytes;
}

static void glance_answered(void *context, int code, const struct td_error *err)
{
    struct td_glance *glance = context;
    glance->call = NULL;
    if (code != TD_OK) {
        glance_end(glance, code, err);
        return;
    }
    td_sight_start(glance->sight);
    td_timer_set_machine(glance->poll, GLANCE_POLL);
}

/* ---- The whole ---- */

static int glance_make(struct td_glance *glance, const struct td_glance_options *options,
                       struct td_error *err)
{
    struct td_controllers_options defaults = td_controllers_options_default();
    struct td_log *log = options->log;
    struct td_sight_options sight = {
        .loop = glance->loop, .client = glance->client, .log = log, .namespace = glance->namespace};
    for (size_t kind = 0; kind < TD_SIGHT_COUNT; kind++) {
        sight.wants[kind] = true;
    }
    int code = td_gates_set(&defaults, options->feature_gates, err);
    code = code == TD_OK ? td_sight_new(&sight, &glance->sight, err) : code;
    if (code != TD_OK) {
        return code;
    }
    const struct td_control control = {
        .loop = glance->loop,
        .client = glance->client,
        .flow = glance->flow,
        .sight = glance->sight,
        .measures = glance->measures,
        .tally = glance->tally,
        .log = log,
        .gates = defaults.gates,
        .hvpa_gate = defaults.hvpa_gate,
        .selection_strategy_gate = defaults.selection_strategy_gate,
    };
    defaults.recommend.control = control;
    defaults.recommend.namespace = glance->namespace;
    defaults.recommend.config.per_vpa_config = defaults.gates.per_vpa_config;
    defaults.update.control = control;
    defaults.horizontal.control = control;
    defaults.horizontal.serves_builtin = true; /* whoever serves it, it decides the same */
    defaults.hvpa.control = control;
    glance->update = defaults.update;
    code = td_recommend_loop_new(&defaults.recommend, &glance->recommend, err);
    code = code == TD_OK ? td_horizontal_loop_new(&defaults.horizontal, &glance->horizontal, err)
                         : code;
    defaults.hvpa.recommend = glance->recommend;
    defaults.hvpa.gather = glance->horizontal;
    return code == TD_OK ? td_hvpa_loop_new(&defaults.hvpa, &glance->hvpa, err) : code;
}

int td_glance_new(const struct td_glance_options *options, struct td_glance **ret,
                  struct td_error *err)
{
    struct td_glance *glance = td_alloc_zero(1, sizeof(*glance));
    const struct td_client_options client = {.loop = options->loop,
                                             .transport = options->transport};
    glance->loop = options->loop;
    glance->measured = TD_TIME_NONE;
    glance->measured_ahead = TD_TIME_NONE;
    glance->hook_renewed = TD_TIME_NONE;
    glance->patience = options->patience > 0 ? options->patience : GLANCE_PATIENCE;
    glance->namespace = td_text_copy(options->namespace);
    memcpy(glance->needs, options->needs, sizeof(glance->needs));
    glance->client = td_client_new(&client);
    glance->flow = td_client_flow_new(glance->client, TD_STR("glance"));
    glance->tally = td_tally_new();
    glance->measures =
        td_measure_client_new(options->loop, glance->client, glance->flow, TD_MINUTE);
    glance->poll = td_timer_new(options->loop, glance_poll, glance);
    int code = glance_make(glance, options, err);
    if (code != TD_OK) {
        td_glance_free(glance);
        return code;
    }
    *ret = glance;
    return TD_OK;
}

void td_glance_start(struct td_glance *glance, td_glance_fn done, void *context)
{
    glance->done = done;
    glance->context = context;
    glance->began = td_clock_machine(td_loop_clock(glance->loop));
    static const struct td_call_events events = {
        .head = glance_dated, .body = glance_ignore, .end = glance_answered};
    const struct td_client_request request = {
        .flow = glance->flow,
        .method = TD_STR("GET"),
        .path = TD_STR("/version"),
        .deadline = glance->patience,
    };
    glance->call = td_client_stream(glance->client, &request, &events, glance);
}

void td_glance_free(struct td_glance *glance)
{
    if (!glance) {
        return;
    }
    if (glance->measure) {
        td_measure_cancel(glance->measure);
    }
    if (glance->call) {
        td_client_cancel(glance->call);
    }
    td_hvpa_loop_free(glance->hvpa);
    td_horizontal_loop_free(glance->horizontal);
    td_recommend_loop_free(glance->recommend);
    td_measure_client_free(glance->measures);
    td_sight_free(glance->sight);
    td_timer_free(glance->poll);
    td_client_free(glance->client);
    td_tally_free(glance->tally);
    td_text_free(glance->namespace);
    td_free(glance);
}
