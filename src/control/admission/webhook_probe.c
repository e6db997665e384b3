/*
 * Are pods really mutated? Configuration that looks right proves nothing: a network policy, another
 * webhook or an unreachable Service can stand between the API server and us. So a pod is created by
 * dry run, through the API server, and must come back with the mark that a review gives it. While
 * it does not, the heartbeat that says "pods are mutated" stops, td_hook_trouble says why, and the
 * updater evicts nothing.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/hook_private.h"
#include "kube/client/client.h"
#include "kube/client/lease.h"
#include "kube/client/verbs.h"

#define PROBE_DEADLINE (10 * TD_SECOND)
#define PROBE_BEAT_MIN (100 * TD_MILLISECOND) /* however fast the clock is */
#define PROBE_SHARED (250 * TD_MILLISECOND)   /* evictions that follow each other have one probe */
#define PROBE_FAILURES_MAX 2 /* unanswered probes after which nothing is known any more */

struct hook_probe {
    struct td_hook *hook;
    struct td_timer *timer;
    struct td_client_call *call;
    struct td_heartbeat *heartbeat;
    td_str trouble; /* owned; empty: none */
    bool is_running;
    bool is_known; /* some probe was answered */
    unsigned failures;
    td_duration asked;  /* when the last probe was sent, in the machine's time */
    td_duration proved; /* the last that showed it was sent then */
    bool is_proved;     /* some did */
};

/* ---- The verdict ---- */

/* Readers compare the lease with the loop's clock, the heartbeat's timer is the machine's. */
static td_duration probe_beat_interval(const struct td_hook_options *options)
{
    const struct td_clock *clock = td_loop_clock(options->control.loop);
    if (clock->kind == TD_CLOCK_VIRTUAL) {
        return options->lease_interval;
    }
    td_duration real = td_clock_real_span(clock, options->lease_interval);
    return real > PROBE_BEAT_MIN ? real : PROBE_BEAT_MIN;
}

static void probe_beat(struct hook_probe *probe, bool is_wanted)
{
    const struct td_hook_options *options = &probe->hook->options;
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
        .interval = probe_beat_interval(options),
    };
    probe->heartbeat = td_heartbeat_new(&beat);
}

static void probe_judge(struct hook_probe *probe, td_str trouble)
{
    struct td_log *log = probe->hook->options.control.log;
    bool is_changed = !td_str_equal(probe->trouble, trouble);
    if (is_changed) {
        if (trouble.len > 0) {
            td_log_line(log, TD_LOG_WARN, "pods are not mutated", TD_LOG_S("because", trouble));
        } else {
            td_log_line(log, TD_LOG_INFO, "pods are mutated", TD_LOG_S("url", probe->hook->url));
        }
        td_text_free(probe->trouble);
        probe->trouble = td_text_copy(trouble);
    }
    td_tally_set(probe->hook->tallies.mutates, trouble.len == 0 ? 1 : 0);
    probe_beat(probe, probe->is_running && trouble.len == 0);
    if (is_changed && probe->hook->options.changed) {
        probe->hook->options.changed(probe->hook->options.changed_context);
    }
}

/* The API server gave an answer: was the pod changed on the way? */
static bool probe_is_marked(const struct td_client_reply *reply)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *pod = NULL;
    if (td_json_parse(&arena, reply->body, NULL, &pod, NULL) != TD_OK) {
        return false;
    }
    const struct td_json *annotations = td_json_get_path(pod, "metadata.annotations");
    return td_str_equal(td_json_get_str(annotations, TD_STR(HOOK_PROBE_KEY), TD_STR_EMPTY),
                        TD_STR(HOOK_PROBE_ANSWER));
}

static void probe_answered(void *context, const struct td_client_reply *reply)
{
    struct hook_probe *probe = context;
    struct td_hook *hook = probe->hook;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    probe->call = NULL;
    bool is_refused = reply->code == TD_DENIED || reply->code == TD_INVALID ||
                      reply->code == TD_NOT_FOUND || reply->code == TD_CONFLICT;
    if (reply->code == TD_OK) {
        probe->is_known = true;
        probe->failures = 0;
        probe->is_proved = probe_is_marked(reply);
        probe->proved = probe->asked;
        probe_judge(
            probe,
            probe->is_proved
                ? TD_STR_EMPTY
                : td_arena_format(&arena,
                                  "a pod created by dry run in namespace %.*s came back unchanged; "
                                  "check that the API server reaches %.*s (endpoints, network "
                                  "policies) and that MutatingWebhookConfiguration %.*s is intact",
                                  TD_STR_ARG(hook->options.namespace), TD_STR_ARG(hook->url),
                                  TD_STR_ARG(hook_configuration_name(HOOK_MUTATING))));
    } else if (is_refused || ++probe->failures >= PROBE_FAILURES_MAX) {
        probe_judge(probe, td_arena_format(
                               &arena,
                               "whether pods are mutated is not known, because a pod cannot be "
                               "created by dry run in namespace %.*s: %s; allow that, and it is "
                               "tried again",
                               TD_STR_ARG(hook->options.namespace), reply->err.message));
    }
    if (probe->is_running) {
        td_timer_set(probe->timer, hook->options.probe_interval);
    }
}

/* ---- Asking ---- */

/* A pod that the strictest policies let through, and that asks for next to nothing. */
static const char probe_pod[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"generateName\":"
    "\"tandem-webhook-probe-\",\"labels\":{\"" HOOK_PROBE_KEY "\":\"true\"},\"annotations\":{"
    "\"" HOOK_PROBE_KEY "\":\"asked\"}},\"spec\":{\"restartPolicy\":\"Never\","
    "\"automountServiceAccountToken\":false,\"securityContext\":{\"runAsNonRoot\":true,"
    "\"runAsUser\":65534,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}},\"containers\":[{"
    "\"name\":\"probe\",\"image\":\"registry.k8s.io/pause:3.10\",\"resources\":{\"requests\":{"
    "\"cpu\":\"1m\",\"memory\":\"1Mi\"},\"limits\":{\"cpu\":\"1m\",\"memory\":\"1Mi\"}},"
    "\"securityContext\":{\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":["
    "\"ALL\"]}}}]}}";

static void probe_ask(struct td_timer *timer, void *context)
{
    struct hook_probe *probe = context;
    const struct td_hook_options *options = &probe->hook->options;
    (void)timer;
    if (probe->call || !probe->is_running) {
        return;
    }
    if (!hook_registration_is_right(probe->hook->registration)) {
        return; /* hook_probe_registered comes when it is */
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
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
    probe->asked = td_clock_machine(td_loop_clock(options->control.loop));
    probe->call = td_client_send(options->control.client, &request, probe_answered, probe);
}

void hook_probe_registered(struct hook_probe *probe)
{
    const struct hook_registration *registration = probe ? probe->hook->registration : NULL;
    if (!probe || !probe->is_running) {
        return;
    }
    if (hook_registration_is_right(registration)) {
        if (probe->hook->options.probe_interval > 0) {
            td_timer_set(probe->timer, 0);
        } else {
            probe_judge(probe, TD_STR_EMPTY);
        }
        if (!probe->is_known) {
            probe_beat(probe, true); /* nothing speaks against it yet */
        }
        return;
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_str problem = hook_registration_problem(registration);
    probe_judge(probe,
                td_arena_format(&arena,
                                "MutatingWebhookConfiguration %.*s is not at the API server as it "
                                "should be%s%.*s; it is being put back",
                                TD_STR_ARG(hook_configuration_name(HOOK_MUTATING)),
                                problem.len > 0 ? ": " : "", TD_STR_ARG(problem)));
}

/* ---- The whole ---- */

struct hook_probe *hook_probe_new(struct td_hook *hook)
{
    struct hook_probe *probe = td_alloc_zero(1, sizeof(*probe));
    probe->hook = hook;
    probe->timer = td_timer_new(hook->options.control.loop, probe_ask, probe);
    probe->trouble = td_text_copy(TD_STR("the webhook has not been started"));
    return probe;
}

void hook_probe_start(struct hook_probe *probe)
{
    probe->is_running = true;
    if (hook_registration_is_right(probe->hook->registration)) {
        hook_probe_registered(probe); /* somebody else registers */
    } else {
        td_text_free(probe->trouble);
        probe->trouble = td_text_copy(TD_STR("the webhook is not registered yet"));
    }
}

void hook_probe_stop(struct hook_probe *probe)
{
    probe->is_running = false;
    td_timer_stop(probe->timer);
    td_client_cancel(probe->call);
    probe->call = NULL;
    probe_judge(probe, TD_STR("the webhook has been stopped"));
}

void hook_probe_free(struct hook_probe *probe)
{
    if (!probe) {
        return;
    }
    td_client_cancel(probe->call);
    td_heartbeat_free(probe->heartbeat);
    td_timer_free(probe->timer);
    td_text_free(probe->trouble);
    td_free(probe);
}

td_str hook_probe_trouble(const struct hook_probe *probe)
{
    return probe->trouble;
}

bool hook_probe_is_proved(struct hook_probe *probe, td_duration since)
{
    const struct td_hook_options *options = &probe->hook->options;
    if (options->probe_interval == 0 ||
        (probe->is_proved && probe->proved >= since - PROBE_SHARED)) {
        return true;
    }
    if (probe->is_running && !probe->call) {
        td_timer_set(probe->timer, 0);
    }
    return false;
}
