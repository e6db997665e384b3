/*
 * The page of a cluster that is too large for a test to have: an API server made up in this process
 * answers with COUNT Deployments of PODS pods each, a VPA for every second and an HPA for every
 * fourth of them. The clock runs 24 hours of history in, then at its usual pace. Prints "ready URL
 * BYTES", the memory of the page, and serves until it is ended. Usage: large_cluster COUNT PODS
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/os/loop.h"
#include "kube/client/transport.h"
#include "web/web.h"
#include "web/web_private.h"

#define FAST 2500.0
#define COUNT_MAX 100000
#define PODS_MAX 10
#define ITEMS_A_TURN 250
#define PIECE_BYTES_MAX ((size_t)4 << 20)
#define LOOK_EVERY (200 * TD_MILLISECOND)
#define START (INT64_C(1790000000) * TD_SECOND)

struct large {
    struct td_transport transport;
    struct td_loop *loop;
    int64_t count;    /* of workloads */
    int64_t pods;     /* of each */
    long long before; /* memory of the process without the page */
    struct td_web *web;
    struct td_timer *look;
    bool is_done;
};

enum kind {
    KIND_NONE,
    KIND_DEPLOYMENTS,
    KIND_REPLICA_SETS,
    KIND_PODS,
    KIND_NODES,
    KIND_VPAS,
    KIND_HPAS,
    KIND_METRICS
};

struct td_call {
    struct large *large;
    struct td_timer *timer;
    struct td_call_events events;
    void *context;
    enum kind kind;
    bool is_watch;
    bool is_refused; /* lists are read in pages */
    bool has_begun;
    bool is_cancelled;
    bool is_busy;
    int64_t at;
    int64_t end;
    int64_t limit;
};

/* ---- Objects ---- */

static void write_meta(struct td_buf *out, const char *name, long long i, const char *more)
{
    (void)td_buf_append_format(out,
                               "{\"metadata\":{\"name\":\"%s-%05lld\",\"namespace\":\"team-%lld\","
                               "\"uid\":\"%s%lld\",\"resourceVersion\":\"1\"%s}",
                               name, i, i % 50, name, i, more);
}

static void write_pod(struct td_buf *out, long long i, long long of)
{
    (void)td_buf_append_format(
        out,
        "{\"metadata\":{\"name\":\"app-%05lld-abc-%lld\",\"namespace\":\"team-%lld\",\"uid\":\"p%"
        "lld\","
        "\"resourceVersion\":\"1\",\"labels\":{\"app\":\"app-%05lld\"},\"creationTimestamp\":"
        "\"2026-09-01T00:00:00Z\",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"
        "\"ReplicaSet\",\"name\":\"rs-%05lld\",\"uid\":\"rs%lld\",\"controller\":true}]},\"spec\":"
        "{\"nodeName\":\"node-%lld\",\"containers\":[{\"name\":\"app\",\"image\":\"app\","
        "\"resources\":"
        "{\"requests\":{\"cpu\":\"%lldm\",\"memory\":\"%lldMi\"}}}]},\"status\":{\"phase\":"
        "\"Running\","
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"containerStatuses\":[{"
        "\"name\":"
        "\"app\",\"ready\":true,\"restartCount\":0,\"state\":{\"running\":{}}}]}}",
        of, i, of % 50, i, of, of, of, i % 300, 100 + i % 900, 128 + i % 2000);
}

static void write_item(struct td_buf *out, const struct large *large, enum kind kind, long long i)
{
    long long of = i / large->pods; /* of a pod */
    char more[256] = "";
    switch (kind) {
    case KIND_DEPLOYMENTS:
        write_meta(out, "app", i, "");
        (void)td_buf_append_format(
            out,
            ",\"spec\":{\"replicas\":%lld,\"selector\":{\"matchLabels\":{\"app\":"
            "\"app-%05lld\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":"
            "\"app-%05lld\"}},\"spec\":{\"containers\":[{\"name\":\"app\"}]}}}}",
            (long long)large->pods, i, i);
        break;
    case KIND_REPLICA_SETS:
        (void)snprintf(more, sizeof(more),
                       ",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\","
                       "\"name\":\"app-%05lld\",\"uid\":\"app%lld\",\"controller\":true}]",
                       i, i);
        write_meta(out, "rs", i, more);
        (void)td_buf_append(out, TD_STR(",\"spec\":{\"replicas\":2}}"));
        break;
    case KIND_PODS:
        write_pod(out, i, of);
        break;
    case KIND_NODES:
        (void)td_buf_append_format(
            out,
            "{\"metadata\":{\"name\":\"node-%lld\",\"uid\":\"n%lld\","
            "\"resourceVersion\":\"1\"},\"status\":{\"allocatable\":{\"cpu\":"
            "\"64\",\"memory\":\"256Gi\"},\"conditions\":[{\"type\":\"Ready\","
            "\"status\":\"True\"}]}}",
            i, i);
        break;
    case KIND_VPAS:
        write_meta(out, "app", 2 * i, "");
        (void)td_buf_append_format(
            out,
            ",\"spec\":{\"targetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":"
            "\"app-%05lld\"}},\"status\":{\"recommendation\":{\"containerRecommendations\":[{"
            "\"containerName\":\"app\",\"target\":{\"cpu\":\"%lldm\",\"memory\":\"300Mi\"},"
            "\"lowerBound\":"
            "{\"cpu\":\"50m\",\"memory\":\"200Mi\"},\"upperBound\":{\"cpu\":\"2\",\"memory\":"
            "\"1Gi\"}}]}}}",
            2 * i, 50 + i % 500);
        break;
    case KIND_HPAS:
        write_meta(out, "app", 4 * i + 1, "");
        (void)td_buf_append_format(
            out,
            ",\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\","
            "\"name\":\"app-%05lld\"},\"minReplicas\":1,\"maxReplicas\":10},\"status\":{"
            "\"desiredReplicas\":2}}",
            4 * i + 1);
        break;
    case KIND_METRICS:
        (void)td_buf_append_format(out,
                                   "{\"metadata\":{\"name\":\"app-%05lld-abc-%lld\",\"namespace\":"
                                   "\"team-%lld\"},\"timestamp\":"
                                   "\"2026-09-22T00:00:00Z\",\"window\":\"15s\",\"containers\":[{"
                                   "\"name\":\"app\",\"usage\":"
                                   "{\"cpu\":\"%lldm\",\"memory\":\"%lldMi\"}}]}",
                                   of, i, of % 50, 20 + i * 7 % 700, 64 + i * 11 % 1500);
        break;
    case KIND_NONE:
        break;
    }
}

/* ---- Answers ---- */

static int64_t kind_count(const struct large *large, enum kind kind)
{
    switch (kind) {
    case KIND_DEPLOYMENTS:
    case KIND_REPLICA_SETS:
        return large->count;
    case KIND_PODS:
    case KIND_METRICS:
        return large->pods * large->count;
    case KIND_NODES:
        return 300;
    case KIND_VPAS:
        return large->count / 2;
    case KIND_HPAS:
        return large->count / 4;
    case KIND_NONE:
        break;
    }
    return 0;
}

static bool path_has(td_str path, const char *part)
{
    return memmem(path.ptr, path.len, part, strlen(part)) != NULL;
}

static enum kind kind_of(td_str path)
{
    static const struct {
        const char *part;
        enum kind kind;
    } parts[] = {{"/metrics.k8s.io/", KIND_METRICS},
                 {"/api/v1/pods", KIND_PODS},
                 {"/api/v1/nodes", KIND_NODES},
                 {"/apis/apps/v1/deployments", KIND_DEPLOYMENTS},
                 {"/apis/apps/v1/replicasets", KIND_REPLICA_SETS},
                 {"/verticalpodautoscalers?", KIND_VPAS},
                 {"/apis/autoscaling/v2/horizontalpodautoscalers", KIND_HPAS}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (path_has(path, parts[i].part)) {
            return parts[i].kind;
        }
    }
    return KIND_NONE;
}

static int64_t path_number(td_str path, const char *word)
{
    const char *at = memmem(path.ptr, path.len, word, strlen(word));
    return at ? strtoll(at + strlen(word), NULL, 10) : 0;
}

static void call_free(struct td_call *call)
{
    td_timer_free(call->timer);
    td_free(call);
}

static void call_end(struct td_call *call)
{
    struct td_error none = TD_ERROR_INIT;
    struct td_call_events events = call->events;
    void *context = call->context;
    call_free(call);
    events.end(context, TD_OK, &none);
}

static void call_piece(struct td_call *call, struct td_buf *text)
{
    int64_t last = call->at + ITEMS_A_TURN < call->end ? call->at + ITEMS_A_TURN : call->end;
    if (!call->has_begun) {
        const struct td_call_head head = {.status = call->is_refused ? 400 : 200,
                                          .content_type = TD_STR("application/json"),
                                          .retry_after = -1};
        if (call->events.head) {
            call->events.head(call->context, &head);
        }
        (void)td_buf_append(text, call->is_refused ? TD_STR("{}") : TD_STR("{\"items\":["));
    }
    for (; call->at < last; call->at++) {
        if (call->has_begun) {
            (void)td_buf_append_char(text, ',');
        }
        call->has_begun = true;
        write_item(text, call->large, call->kind, call->at);
    }
    call->has_begun = true;
    if (call->at == call->end && !call->is_refused) {
        (void)td_buf_append(text, TD_STR("],\"metadata\":{\"resourceVersion\":\"1\""));
        if (call->end < kind_count(call->large, call->kind)) {
            (void)td_buf_append_format(text, ",\"continue\":\"%lld\"", (long long)call->end);
        }
        (void)td_buf_append(text, TD_STR("}}"));
    }
}

static void call_turn(struct td_timer *timer, void *context)
{
    struct td_call *call = context;
    td_auto_buf text = td_buf_capped(PIECE_BYTES_MAX);
    call->is_busy = true;
    if (call->is_watch) {
        const struct td_call_head head = {
            .status = 200, .content_type = TD_STR("application/json"), .retry_after = -1};
        if (call->events.head) {
            call->events.head(call->context, &head); /* and nothing ever happens */
        }
    } else {
        call_piece(call, &text);
        if (!call->is_cancelled) {
            call->events.body(call->context, td_buf_str(&text));
        }
    }
    call->is_busy = false;
    if (call->is_cancelled) {
        call_free(call);
    } else if (!call->is_watch && call->at == call->end) {
        call_end(call);
    } else if (!call->is_watch) {
        td_timer_set_machine(timer, 0);
    }
}

static struct td_call *large_start(struct td_transport *transport,
                                   const struct td_call_request *request,
                                   const struct td_call_events *events, void *context)
{
    struct td_call *call = td_alloc_zero(1, sizeof(*call));
    call->large = (struct large *)transport;
    call->events = *events;
    call->context = context;
    call->kind = kind_of(request->path);
    call->is_refused = path_has(request->path, "sendInitialEvents=");
    call->is_watch = path_has(request->path, "watch=") && !call->is_refused;
    call->at = path_number(request->path, "continue=");
    call->limit = path_number(request->path, "limit=");
    call->end = kind_count(call->large, call->kind);
    if (call->limit > 0 && call->at + call->limit < call->end) {
        call->end = call->at + call->limit;
    }
    if (call->is_refused) {
        call->at = call->end;
    }
    call->timer = td_timer_new(call->large->loop, call_turn, call);
    td_timer_set_machine(call->timer, 0);
    return call;
}

static void large_cancel(struct td_call *call)
{
    call->is_cancelled = true;
    if (!call->is_busy) {
        call_free(call);
    }
}

static void large_free(struct td_transport *transport)
{
    td_free(transport);
}

static int large_connect(void *context, struct td_transport **ret, struct td_error *err)
{
    static const struct td_transport_ops ops = {
        .start = large_start, .cancel = large_cancel, .free = large_free};
    const struct large *from = context;
    struct large *made = td_alloc_zero(1, sizeof(*made));
    (void)err;
    *made = (struct large){
        .transport = {.ops = &ops}, .loop = from->loop, .count = from->count, .pods = from->pods};
    *ret = &made->transport;
    return TD_OK;
}

/* ---- The whole ---- */

static long long memory_bytes(void)
{
    long long kib = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof(line), status)) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtoll(line + 6, NULL, 10);
        }
    }
    if (status) {
        (void)fclose(status);
    }
    return kib * 1024;
}

static void large_look(struct td_timer *timer, void *context)
{
    struct large *large = context;
    const struct td_model *model = large->web->model;
    size_t measured = 0;
    for (struct td_map_walk at = {.map = &model->rows}; td_map_step(&at);) {
        measured += ((struct td_model_row *)at.value)->measured_count > 0;
    }
    bool is_whole = measured == (size_t)large->count;
    if (is_whole && !large->is_done && td_loop_clock(large->loop)->speed < FAST) {
        td_loop_set_speed(large->loop, FAST); /* everything is known: the day may begin */
    }
    if (td_model_now(model) - model->started >= 24 * TD_HOUR && is_whole && !large->is_done) {
        large->is_done = true;
        td_loop_set_speed(large->loop, 1);
        (void)printf("ready http://127.0.0.1:%u %lld of which history %zu\n",
                     (unsigned)td_web_port(large->web), memory_bytes() - large->before,
                     td_rings_bytes(&model->rings));
        (void)fflush(stdout);
    }
    td_timer_set_machine(timer, LOOK_EVERY);
}

static void on_signal(int number)
{
    (void)number;
    exit(0);
}

int main(int argc, char **argv)
{
    struct large large = {.count = argc > 1 ? strtoll(argv[1], NULL, 10) : 0,
                          .pods = argc > 2 ? strtoll(argv[2], NULL, 10) : 0};
    struct td_clock clock = td_clock_accelerated(1, START);
    struct td_error err = TD_ERROR_INIT;
    if (large.count < 1 || large.count > COUNT_MAX || large.pods < 1 || large.pods > PODS_MAX) {
        (void)fprintf(stderr, "usage: large_cluster COUNT PODS, 1 to %d and 1 to %d\n", COUNT_MAX,
                      PODS_MAX);
        return 2;
    }
    (void)signal(SIGTERM, on_signal);
    large.before = memory_bytes();
    if (td_loop_new(&clock, &large.loop, &err) != TD_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    const struct td_web_options options = {.loop = large.loop,
                                           .listen = "127.0.0.1:0",
                                           .title = TD_STR("large"),
                                           .connect = large_connect,
                                           .context = &large};
    if (td_web_new(&options, &large.web, &err) != TD_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    large.look = td_timer_new(large.loop, large_look, &large);
    td_timer_set_machine(large.look, LOOK_EVERY);
    return td_loop_run(large.loop, &err) == TD_OK ? 0 : 1;
}
