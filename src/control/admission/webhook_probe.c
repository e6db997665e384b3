/*
 * Are pods really mutated? Configuration that looks right proves nothing: a network policy, another
 * webhook or an unreachable Service can stand between the API server and us. So a pod is created by
 * dry run, through the API server, and must come back with the mark that a review gives it. While
 * it does not, the heartbeat that says "pods are mutated" stops, td_webhook_problem says why, and
 * the updater evicts nothing.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/admission/webhook_private.h"
#include "kube/client/client.h"
#include "kube/client/lease.h"
#include "kube/client/verbs.h"

#define PROBE_DEADLINE (10 * TD_SECOND)
#define PROBE_SHARED (250 * TD_MILLISECOND) /* evictions that follow each other have one probe */
#define PROBE_FAILURES_MAX 2 /* unanswered probes after which nothing is known any more */

struct webhook_probe {
    struct td_webhook *webhook;
    struct td_timer *timer;
    struct td_client_call *call;
    struct td_heartbeat *heartbeat;
    td_str problem; /* owned; empty: none */
    bool is_running;
    bool is_known; /* some probe was answered */
    unsigned failures;
    td_duration sent_at; /* when the last probe was sent, in the machine's time */
    td_duration proved;  /* the last that showed it was sent then */
    bool is_proved;      /* some did */
};

/* ---- The verdict ---- */

static void probe_beat(struct webhook_probe *probe, bool is_wanted)
{
    const struct td_webhook_options *options = &probe->webhook->options;
    if (!is_wanted || options->lease_name.len == 0) {
        td_heartbeat_free(probe->heartbeat);
        probe->heartbeat = NULL;
        return;
    }
    if (probe->heartbeat) {
        return;
    }
    const struct td_heartbeat_options beat = {
        .loop = options->control.loop,
        .client = options->control.client,
        .flow = options->control.flow,
        .namespace =
            options->lease_namespace.len > 0 ? options->lease_namespace : TD_STR("kube-system"),
        .name = options->lease_name,
        .holder = TD_STR("tandem"),
        .duration_seconds = options->lease_interval / TD_SECOND,
        .interval = options->lease_interval,
    };
    probe->heartbeat = td_heartbeat_new(&beat);
}

static void probe_judge(struct webhook_probe *probe, td_str problem)
{
    struct td_log *log = probe->webhook->options.control.log;
    bool is_changed = !td_str_equal(probe->problem, problem);
    if (is_changed) {
        if (problem.len > 0) {
            td_log_line(log, TD_LOG_WARN, "webhook probe failed: new pods are not mutated",
                        TD_LOG_S("because", problem));
        } else {
            td_log_line(log, TD_LOG_INFO, "webhook probe succeeded: new pods are mutated",
                        TD_LOG_S("url", probe->webhook->url));
        }
        td_text_set(&probe->problem, problem);
    }
    td_metric_set(probe->webhook->metrics.mutates, problem.len == 0 ? 1 : 0);
    probe_beat(probe, probe->is_running && problem.len == 0);
    if (is_changed && probe->webhook->options.changed) {
        probe->webhook->options.changed(probe->webhook->options.changed_context);
    }
}

/* The API server gave an answer: was the pod changed on the way? */
static bool probe_is_marked(const struct td_client_reply *reply)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *pod = NULL;
    if (td_json_parse(&arena, reply->body, NULL, &pod, NULL) != TD_OK) {
        return false;
    }
    const struct td_json *annotations = td_json_get_path(pod, "metadata.annotations");
    return td_str_equal(td_json_get_str(annotations, TD_STR(WEBHOOK_PROBE_KEY), TD_STR_EMPTY),
                        TD_STR(WEBHOOK_PROBE_ANSWER));
}

static void probe_answered(void *context, const struct td_client_reply *reply)
{
    struct webhook_probe *probe = context;
    struct td_webhook *webhook = probe->webhook;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    probe->call = NULL;
    bool is_refused = reply->code == TD_DENIED || reply->code == TD_INVALID ||
                      reply->code == TD_NOT_FOUND || reply->code == TD_CONFLICT;
    if (reply->code == TD_OK) {
        probe->is_known = true;
        probe->failures = 0;
        probe->is_proved = probe_is_marked(reply);
        probe->proved = probe->sent_at;
        probe_judge(
            probe,
            probe->is_proved
                ? TD_STR_EMPTY
                : td_arena_format(
                      &arena,
                      "the webhook did not mutate a pod created by dry run in namespace "
                      "%.*s; check that the API server reaches %.*s (endpoints, network "
                      "policies) and that MutatingWebhookConfiguration %.*s is intact",
                      TD_STR_ARG(webhook->options.namespace), TD_STR_ARG(webhook->url),
                      TD_STR_ARG(webhook_configuration_name(probe->webhook, WEBHOOK_MUTATING))));
    } else if (is_refused || ++probe->failures >= PROBE_FAILURES_MAX) {
        probe_judge(probe,
                    td_arena_format(&arena,
                                    "cannot probe the webhook: creating a pod by dry run in "
                                    "namespace %.*s failed: %s; allow it, the probe is repeated",
                                    TD_STR_ARG(webhook->options.namespace), reply->err.message));
    }
    if (probe->is_running) {
        td_timer_set(probe->timer, webhook->options.probe_interval);
    }
}

/* ---- Asking ---- */

/* A pod that the strictest policies let through, and that asks for next to nothing. */
static const char probe_pod[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"generateName\":"
    "\"tandem-webhook-probe-\",\"labels\":{\"" WEBHOOK_PROBE_KEY "\":\"true\"},\"annotations\":{"
    "\"" WEBHOOK_PROBE_KEY "\":\"asked\"}},\"spec\":{\"restartPolicy\":\"Never\","
    "\"automountServiceAccountToken\":false,\"securityContext\":{\"runAsNonRoot\":true,"
    "\"runAsUser\":65534,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}},\"containers\":[{"
    "\"name\":\"probe\",\"image\":\"registry.k8s.io/pause:3.10\",\"resources\":{\"requests\":{"
    "\"cpu\":\"1m\",\"memory\":\"1Mi\"},\"limits\":{\"cpu\":\"1m\",\"memory\":\"1Mi\"}},"
    "\"securityContext\":{\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":["
    "\"ALL\"]}}}]}}";

static void probe_ask(struct td_timer *timer, void *context)
{
    struct webhook_probe *probe = context;
    const struct td_webhook_options *options = &probe->webhook->options;
    (void)timer;
    if (probe->call || !probe->is_running) {
        return;
    }
    if (!webhook_registration_is_right(probe->webhook->registration)) {
        return; /* webhook_probe_registered comes when it is */
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_api_path path = {
        .version = TD_STR("v1"), .namespace = options->namespace, .plural = TD_STR("pods")};
    const struct td_write_options write = {.is_dry_run = true};
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (td_verb_create(&arena, &path, td_str_from(probe_pod), &write, &request, &err) != TD_OK) {
        probe_judge(probe, td_str_from(err.message));
        return;
    }
    request.flow = options->control.flow;
    request.deadline = PROBE_DEADLINE;
    request.is_idempotent = true; /* a dry run leaves nothing behind */
    probe->sent_at = td_clock_machine(td_loop_clock(options->control.loop));
    probe->call = td_client_send(options->control.client, &request, probe_answered, probe);
}

void webhook_probe_registered(struct webhook_probe *probe)
{
    const struct webhook_registration *registration = probe ? probe->webhook->registration : NULL;
    if (!probe || !probe->is_running) {
        return;
    }
    if (webhook_registration_is_right(registration)) {
        if (probe->webhook->options.probe_interval > 0) {
            td_timer_set(probe->timer, 0);
        } else {
            probe_judge(probe, TD_STR_EMPTY);
        }
        if (!probe->is_known) {
            probe_beat(probe, true); /* nothing speaks against it yet */
        }
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str problem = webhook_registration_problem(registration);
    probe_judge(probe, td_arena_format(
                           &arena,
                           "MutatingWebhookConfiguration %.*s is missing or was "
                           "changed%s%.*s; the admission controller is restoring it",
                           TD_STR_ARG(webhook_configuration_name(probe->webhook, WEBHOOK_MUTATING)),
                           problem.len > 0 ? ": " : "", TD_STR_ARG(problem)));
}

/* ---- The whole ---- */

struct webhook_probe *webhook_probe_new(struct td_webhook *webhook)
{
    struct webhook_probe *probe = td_alloc_zero(1, sizeof(*probe));
    probe->webhook = webhook;
    probe->timer = td_timer_new(webhook->options.control.loop, probe_ask, probe);
    probe->problem = td_text_copy(TD_STR("the webhook is not started yet"));
    return probe;
}

void webhook_probe_start(struct webhook_probe *probe)
{
    probe->is_running = true;
    if (webhook_registration_is_right(probe->webhook->registration)) {
        webhook_probe_registered(probe); /* another process registers it */
    } else {
        td_text_set(&probe->problem, TD_STR("the webhook is not registered yet"));
    }
}

void webhook_probe_stop(struct webhook_probe *probe)
{
    probe->is_running = false;
    td_timer_stop(probe->timer);
    td_client_cancel(probe->call);
    probe->call = NULL;
    probe_judge(probe, TD_STR("the webhook is stopped"));
}

void webhook_probe_free(struct webhook_probe *probe)
{
    if (!probe) {
        return;
    }
    td_client_cancel(probe->call);
    td_heartbeat_free(probe->heartbeat);
    td_timer_free(probe->timer);
    td_text_free(probe->problem);
    td_free(probe);
}

td_str webhook_probe_problem(const struct webhook_probe *probe)
{
    return probe->problem;
}

bool webhook_probe_is_proved(struct webhook_probe *probe, td_duration since)
{
    const struct td_webhook_options *options = &probe->webhook->options;
    if (options->probe_interval == 0 ||
        (probe->is_proved && probe->proved >= since - PROBE_SHARED)) {
        return true;
    }
    if (probe->is_running && !probe->call) {
        td_timer_set(probe->timer, 0);
    }
    return false;
}
