/*
 * The status of one VPA: what the model says, what the controller knows beside it (why its target
 * cannot be used, an elder sibling, a webhook that does not work, metrics that are old), and one
 * patch when it differs from what is stored.
 */
#include "api/gates.h"
#include "api/hvpa/hvpa.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "control/recommender/recommend_metrics.h"
#include "control/recommender/recommend_private.h"
#include "kube/client/client.h"
#include "kube/client/events.h"
#include "kube/client/verbs.h"
#include "kube/patch/patch_write.h"

/* Metrics older than this many intervals are not presented as fresh. */
#define STATUS_STALE_INTERVALS 5
#define STATUS_STALE_MIN (5 * TD_MINUTE)
/* One failed read is nothing that ten thousand statuses should say. */
#define STATUS_FAILURES_MAX 2

td_duration recommend_stale_age(const struct td_recommend_loop *loop)
{
    td_duration age = STATUS_STALE_INTERVALS * loop->options.interval;
    return age > STATUS_STALE_MIN ? age : STATUS_STALE_MIN;
}

static td_time status_later(td_time a, td_time b)
{
    return a > b ? a : b;
}

/* Since when the pods of a VPA, which run, are not measured; empty: they are, or none could be. The
 * words stay the same from pass to pass, or each would write each status anew. */
static td_str status_stale(struct td_recommend_loop *loop, struct td_arena *arena,
                           struct recommend_vpa *vpa)
{
    td_time now = recommend_now(loop);
    struct td_vpa_measured measured =
        td_recommender_measured(loop->model, vpa->of.namespace, vpa->of.name);
    if (!measured.is_running) {
        vpa->idle = now;
        return TD_STR_EMPTY;
    }
    td_time since = status_later(measured.newest,
                                 status_later(vpa->idle, loop->is_running ? loop->started : 0));
    bool is_broken = loop->metrics_failures >= (loop->is_running ? STATUS_FAILURES_MAX : 1);
    if (!is_broken && now - since <= recommend_stale_age(loop)) {
        return TD_STR_EMPTY;
    }
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    if (measured.newest == TD_TIME_NONE) {
        (void)td_buf_append(&text, TD_STR("the metrics API never had metrics of its pods"));
    } else {
        char time[TD_TIME_TEXT_BYTES];
        (void)td_time_format(td_time_to_instant(measured.newest), 0, time);
        (void)td_buf_append_format(&text, "the newest metrics of its pods are from %s", time);
    }
    if (loop->metrics_failures > 0) {
        (void)td_buf_append_format(&text, "; cannot read pod metrics: %s",
                                   loop->metrics_error.message);
    }
    (void)td_buf_append(&text, TD_STR("; the recommendation is based on earlier samples"));
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* Why new pods of the VPA are not changed, and the reason for a condition; empty: they are. */
static td_str status_webhook_problem(const struct td_recommend_loop *loop, struct td_arena *arena,
                                     const struct td_vpa *object, td_str *ret_reason)
{
    const struct td_recommend_options *options = &loop->options;
    td_str namespace = object->meta.namespace;
    if (object->mode != TD_VPA_OFF && options->is_exempt &&
        options->is_exempt(options->context, namespace)) {
        *ret_reason = TD_STR("NamespaceExempt");
        return td_arena_format(
            arena, "the webhook exempts namespace %.*s, so the updater evicts no pods there",
            TD_STR_ARG(namespace));
    }
    *ret_reason = TD_STR("ProbeFailed");
    return options->get_webhook_problem ? options->get_webhook_problem(options->context)
                                        : TD_STR_EMPTY;
}

/* Which container keeps the recommendation from being applied yet; empty: none does. */
static td_str status_unsure(const struct td_recommend_loop *loop, struct td_arena *arena,
                            const struct td_vpa_status *status)
{
    double least = loop->options.min_confidence;
    for (size_t i = 0; i < status->recommendation.container_count && status->accounts; i++) {
        if (!td_confidence_allows(&status->accounts[i], least)) {
            td_str name = status->recommendation.containers[i].container_name;
            return td_arena_format(arena,
                                   "container %.*s has less than %.3g days of history; the "
                                   "recommendation is not applied until it has",
                                   TD_STR_ARG(name), least);
        }
    }
    return TD_STR_EMPTY;
}

const struct td_estimator *td_recommend_loop_estimator(const struct td_recommend_loop *loop)
{
    return recommend_choose(loop, NULL).estimator;
}

td_str td_recommend_loop_estimator_problem(const struct td_recommend_loop *loop,
                                           struct td_arena *arena,
                                           const struct td_json *annotations)
{
    struct td_estimator_choice choice = recommend_choose(loop, annotations);
    return td_estimator_problem(arena, &choice);
}

static void status_conditions(struct td_recommend_loop *loop, struct td_arena *arena,
                              struct recommend_vpa *vpa, const struct td_vpa *object, td_str gated,
                              struct td_vpa_status *status)
{
    td_time now = recommend_now(loop);
    td_str webhook_reason;
    td_str webhook = status_webhook_problem(loop, arena, object, &webhook_reason);
    td_str stale = status_stale(loop, arena, vpa);
    td_vpa_status_condition(status, TD_STR("ConfigUnsupported"), vpa->config_error.len > 0,
                            TD_STR_EMPTY, vpa->config_error, now);
    td_vpa_status_condition(status, TD_STR("ConflictingSelector"), vpa->conflict.len > 0,
                            TD_STR("OverlapsOlder"), vpa->conflict, now);
    td_vpa_status_condition(status, TD_STR("WebhookNotMutating"), webhook.len > 0, webhook_reason,
                            webhook, now);
    td_vpa_status_condition(status, TD_STR("MetricsStale"), stale.len > 0,
                            TD_STR("NoRecentMetrics"), stale, now);
    td_str unsure = status_unsure(loop, arena, status);
    td_vpa_status_condition(status, TD_STR("LowConfidence"), unsure.len > 0, TD_STR("ShortHistory"),
                            unsure, now);
    td_vpa_status_condition(status, TD_STR(TD_GATE_OFF), gated.len > 0, TD_STR("FieldIgnored"),
                            gated, now);
    td_str unknown = td_recommend_loop_estimator_problem(loop, arena, object->meta.annotations);
    td_vpa_status_condition(status, TD_STR("EstimatorUnknown"), unknown.len > 0,
                            TD_STR("UnknownValue"), unknown, now);
    recommend_metrics_stale(loop, stale.len > 0);
}

struct status_write {
    struct recommend_write base;
    td_str key; /* owned */
};

static void status_free(struct recommend_write *base)
{
    struct status_write *write = (struct status_write *)base;
    td_text_free(write->key);
    td_free(write);
}

static void status_written(void *context, const struct td_client_reply *reply)
{
    struct status_write *write = context;
    struct td_recommend_loop *loop = write->base.loop;
    if (reply->code != TD_OK && reply->code != TD_NOT_FOUND) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "cannot update the VPA's status",
                    TD_LOG_S("vpa", write->key), TD_LOG_C("error", reply->err.message));
    }
    recommend_write_end(&write->base);
    recommend_wake(loop);
}

static void status_send(struct td_recommend_loop *loop, struct td_arena *arena,
                        const struct td_vpa *object, const struct td_vpa_status *status)
{
    td_str body = td_patch_one(arena, "add", TD_STR("/status"), td_vpa_status_json(arena, status));
    const struct td_api_path path = {
        .group = TD_STR("autoscaling.k8s.io"),
        .version = TD_STR("v1"),
        .namespace = object->meta.namespace,
        .plural = TD_STR("verticalpodautoscalers"),
        .name = object->meta.name,
        .subresource = TD_STR("status"),
    };
    struct td_client_request request;
    if (td_verb_patch(arena, &path, TD_PATCH_JSON, body, NULL, &request, NULL) != TD_OK) {
        return;
    }
    request.flow = loop->options.control.flow;
    request.is_idempotent = true; /* the whole status, each time */
    struct status_write *write = td_alloc_zero(1, sizeof(*write));
    recommend_write_begin(loop, &write->base, status_free);
    write->key = td_text_copy(
        td_object_key_text(arena, TD_OBJECT_KEY(object->meta.namespace, object->meta.name)));
    write->base.call =
        td_client_send(loop->options.control.client, &request, status_written, write);
}

/* Adds what the pod as a whole should have. */
static void status_add_pod(const struct td_recommend_loop *loop, struct td_arena *arena,
                           const struct recommend_vpa *vpa, const struct td_vpa *object,
                           struct td_vpa_status *status)
{
    struct td_cap_steps steps = {.count = 0};
    const struct td_pod_level_terms terms = {
        .use = vpa->use,
        .policy = object->policy.is_set ? &object->policy : NULL,
        .global_max = &loop->options.global_max,
        .pod_max = &loop->options.pod_max,
    };
    td_pod_level_recommend(arena, &terms, &status->recommendation, &steps);
}

/* The object as it is stored, and its status as it should be. */
static int status_compute(struct td_recommend_loop *loop, struct td_arena *arena,
                          struct recommend_vpa *vpa, struct td_vpa *ret_object,
                          struct td_vpa_status *ret, struct td_error *err)
{
    const struct td_informer_object *seen =
        td_cache_get(td_informers_cache(loop->options.control.informers, TD_INFORMER_VPAS),
                     vpa->of.namespace, vpa->of.name);
    struct td_json *tree;
    if (!seen || vpa->linked == 0) {
        return td_error_set(err, TD_NOT_FOUND,
                            "the recommender's informer does not have the VPA yet");
    }
    int code = td_informers_tree(arena, seen, &tree, err);
    code = code == TD_OK ? td_vpa_decode(arena, tree, ret_object, err) : code;
    td_str gated = code == TD_OK
                       ? td_vpa_close_gates(arena, &loop->options.control.gates, ret_object)
                       : TD_STR_EMPTY;
    code = code == TD_OK
               ? td_recommender_status(loop->model, arena, ret_object, &loop->options.global_max,
                                       recommend_now(loop), ret, err)
               : code;
    if (code != TD_OK) {
        return code;
    }
    status_add_pod(loop, arena, vpa, ret_object, ret);
    status_conditions(loop, arena, vpa, ret_object, gated, ret);
    td_vpa_status_compare(ret, ret_object);
    return TD_OK;
}

static bool status_has(const struct td_vpa_condition *conditions, size_t count,
                       const struct td_vpa_condition *sought)
{
    for (size_t i = 0; i < count; i++) {
        if (td_str_equal(conditions[i].type, sought->type) &&
            td_str_equal(conditions[i].message, sought->message)) {
            return true;
        }
    }
    return false;
}

/* A conflict, a value that names nothing, or a field whose gate is off, is told once, not after
 * each restart: what is stored says whether it was. */
static void status_tell(struct td_recommend_loop *loop, const struct td_vpa *object,
                        const struct td_vpa_status *status)
{
    for (size_t i = 0; i < status->condition_count && loop->options.control.events; i++) {
        const struct td_vpa_condition *c = &status->conditions[i];
        bool is_reported = td_str_equal(c->type, TD_STR("ConflictingSelector")) ||
                           td_str_equal(c->type, TD_STR("EstimatorUnknown")) ||
                           td_str_equal(c->type, TD_STR(TD_GATE_OFF));
        if (!is_reported || status_has(object->conditions, object->condition_count, c)) {
            continue;
        }
        td_events_record(loop->options.control.events,
                         &(struct td_event){
                             .api_version = TD_STR("autoscaling.k8s.io/v1"),
                             .kind = TD_STR("VerticalPodAutoscaler"),
                             .namespace = object->meta.namespace,
                             .name = object->meta.name,
                             .uid = object->meta.uid,
                             .is_warning = true,
                             .reason = c->type,
                             .message = c->message,
                         });
    }
}

void recommend_write_status(struct td_recommend_loop *loop, struct recommend_vpa *vpa)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_vpa object;
    struct td_vpa_status status;
    if (status_compute(loop, &arena, vpa, &object, &status, NULL) != TD_OK) {
        return;
    }
    recommend_metrics_vpa(loop, vpa, &object, &status);
    if (status.is_changed && !loop->options.is_quiet) {
        status_tell(loop, &object, &status);
        status_send(loop, &arena, &object, &status);
    }
}

/* A VPA that only recommends may be on the same target: pods teach one of them, and that is it. */
static const struct recommend_vpa *status_elder(const struct td_recommend_loop *loop,
                                                const struct recommend_vpa *entry)
{
    const struct recommend_vpa *vpa = td_map_get(&loop->targets, entry->target);
    while (vpa && (vpa == entry || vpa->linked == 0)) {
        vpa = vpa->sibling;
    }
    return vpa;
}

int td_recommend_loop_vpa(struct td_recommend_loop *loop, struct td_arena *arena, td_str namespace,
                          td_str name, struct td_vpa *ret_object, struct td_vpa_status *ret,
                          struct td_error *err)
{
    struct recommend_vpa *entry = recommend_find(loop, namespace, name);
    return entry ? status_compute(loop, arena, entry, ret_object, ret, err)
                 : td_error_set(err, TD_NOT_FOUND, "the VPA names another recommender");
}

int td_recommend_loop_hvpa(struct td_recommend_loop *loop, struct td_arena *arena,
                           const struct td_hvpa *hvpa, struct td_vpa_status *ret,
                           struct td_error *err)
{
    struct td_vpa object = hvpa->vpa;
    object.mode = TD_VPA_RECREATE; /* the Hvpa acts on the bounds, which Off takes for a display */
    object.meta.name = recommend_hvpa_name(arena, hvpa->meta.name);
    const struct recommend_vpa *entry =
        recommend_find(loop, hvpa->meta.namespace, object.meta.name);
    if (!entry || entry->linked == 0 || td_recommend_loop_is_reading(loop)) {
        return td_error_set(err, TD_NOT_FOUND,
                            "the recommender's informer does not have the Hvpa yet");
    }
    if (entry->config_error.len > 0) {
        return td_error_set(err, TD_INVALID, "%.*s", TD_STR_ARG(entry->config_error));
    }
    td_time now = recommend_now(loop);
    const struct td_resource_list *most = &loop->options.global_max;
    const struct recommend_vpa *elder = status_elder(loop, entry);
    int code = td_recommender_status(loop->model, arena, &object, most, now, ret, err);
    if (code == TD_OK && ret->pod_count == 0 && elder) {
        object.meta.name = elder->of.name;
        code = td_recommender_status(loop->model, arena, &object, most, now, ret, err);
        entry = elder;
    }
    if (code == TD_OK) {
        status_add_pod(loop, arena, entry, &object, ret);
    }
    return code;
}
