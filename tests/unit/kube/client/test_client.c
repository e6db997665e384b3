/* The client: rate, turns of flows, the one place that retries, deadlines, refusals as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/os/clock.h"
#include "kube/client/client.h"
#include "support/fake_transport.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* One client on a virtual clock; answers are those of `script` in turn, the last one for ever. */
struct bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct fake_transport fake;
    struct td_client *client;
    const struct fake_answer *script;
    size_t script_count;
    size_t at;
    td_duration started[64]; /* when each request reached the transport */
    /* What came back. */
    int done;
    struct td_client_reply reply; /* of the last; its texts are copied below */
    char body[256];
    char reason[64];
    char warning[128];
    td_duration done_at;
};

static void bed_answer(void *context, const struct td_call_request *request,
                       struct fake_answer *ret)
{
    (void)request;
    struct bed *bed = context;
    if (bed->fake.starts <= COUNT(bed->started)) {
        bed->started[bed->fake.starts - 1] = td_clock_steady(&bed->clock);
    }
    if (bed->script_count > 0) {
        *ret = bed->script[bed->at];
        bed->at = bed->at + 1 < bed->script_count ? bed->at + 1 : bed->at;
    }
}

static void bed_init(struct bed *bed, double qps, int burst)
{
    *bed = (struct bed){.clock = td_clock_virtual(0)};
    assert_int_equal(td_loop_new(&bed->clock, &bed->loop, NULL), TD_OK);
    fake_init(&bed->fake, bed->loop, bed_answer, bed);
    bed->client = td_client_new(&(struct td_client_options){.loop = bed->loop,
                                                            .transport = &bed->fake.transport,
                                                            .qps = qps,
                                                            .burst = burst,
                                                            .seed = 1});
}

static void bed_done(struct bed *bed)
{
    td_client_free(bed->client);
    assert_true(bed->fake.is_freed);
    td_loop_free(bed->loop);
}

static void bed_run(struct bed *bed)
{
    assert_int_equal(td_loop_run(bed->loop, NULL), TD_OK);
}

static void keep(char *out, size_t size, td_str text)
{
    (void)snprintf(out, size, "%.*s", TD_STR_ARG(text));
}

static void bed_reply(void *context, const struct td_client_reply *reply)
{
    struct bed *bed = context;
    bed->done++;
    bed->reply = *reply;
    bed->done_at = td_clock_steady(&bed->clock);
    keep(bed->body, sizeof(bed->body), reply->body);
    keep(bed->reason, sizeof(bed->reason), reply->reason);
    keep(bed->warning, sizeof(bed->warning), reply->warning);
}

static const struct td_client_request get_pods = {
    .method = TD_STR_INIT("GET"),
    .path = TD_STR_INIT("/api/v1/pods"),
};
static const struct td_client_request post_pod = {
    .method = TD_STR_INIT("POST"),
    .path = TD_STR_INIT("/api/v1/namespaces/a/pods"),
    .body = TD_STR_INIT("{}"),
};

#define STATUS(reason, message)                                                                    \
    "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"" message "\"}"

/* Each status has its code, the Status object its reason, and the text names method and path. */
static void test_client_reads_refusals(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body;
        int code;
        const char *reason;
        const char *text;
    } rows[] = {
        {200, "{\"a\":1}", TD_OK, "", ""},
        {201, "", TD_OK, "", ""},
        {404, STATUS("NotFound", "pods \\\"x\\\" not found"), TD_NOT_FOUND, "NotFound",
         "POST /api/v1/namespaces/a/pods: pods \"x\" not found (404 NotFound)"},
        {409, STATUS("Conflict", "changed"), TD_CONFLICT, "Conflict",
         "POST /api/v1/namespaces/a/pods: changed (409 Conflict)"},
        {409, STATUS("AlreadyExists", "there"), TD_EXISTS, "AlreadyExists",
         "POST /api/v1/namespaces/a/pods: there (409 AlreadyExists)"},
        {410, STATUS("Expired", "too old"), TD_GONE, "Expired",
         "POST /api/v1/namespaces/a/pods: too old (410 Expired)"},
        {400, "no json", TD_INVALID, "", "POST /api/v1/namespaces/a/pods: no json (400)"},
        {422, STATUS("Invalid", "bad"), TD_INVALID, "Invalid",
         "POST /api/v1/namespaces/a/pods: bad (422 Invalid)"},
        {403, STATUS("Forbidden", "no"), TD_DENIED, "Forbidden",
         "POST /api/v1/namespaces/a/pods: no (403 Forbidden)"},
        {403,
         "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"too big\",\"details\":{"
         "\"causes\":[{\"reason\":\"NodeCapacity\"}]}}",
         TD_DENIED, "NodeCapacity", "POST /api/v1/namespaces/a/pods: too big (403 NodeCapacity)"},
        {413, "", TD_LIMIT, "", "POST /api/v1/namespaces/a/pods:  (413)"},
        {429, STATUS("TooManyRequests", "slow"), TD_BUSY, "TooManyRequests",
         "POST /api/v1/namespaces/a/pods: slow (429 TooManyRequests)"},
        {500, "a\nb\001", TD_IO, "", "POST /api/v1/namespaces/a/pods: a b  (500)"},
        {307, "", TD_INVALID, "",
         "POST /api/v1/namespaces/a/pods: a redirect, which is not followed (307)"},
        {200, "{\"a\":", TD_IO, "",
         "POST /api/v1/namespaces/a/pods: broken answer: line 1 column 6: unexpected end"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bed bed;
        bed_init(&bed, 0, 0);
        const struct fake_answer answer = {
            .status = rows[i].status, .body = rows[i].body, .retry_after = -1};
        bed.script = &answer;
        bed.script_count = 1;
        (void)td_client_send(bed.client, &post_pod, bed_reply, &bed);
        bed_run(&bed);
        assert_int_equal(bed.done, 1);
        assert_int_equal(bed.reply.code, rows[i].code);
        assert_int_equal(bed.reply.status, rows[i].status);
        assert_string_equal(bed.reason, rows[i].reason);
        if (rows[i].status == 200 && rows[i].code == TD_IO) {
            assert_memory_equal(bed.reply.err.message, rows[i].text, 48);
        } else {
            assert_string_equal(bed.reply.err.message, rows[i].text);
        }
        assert_int_equal(bed.fake.starts, 1);
        bed_done(&bed);
    }
}

/* What is repeated: everything that may help for calls that may be done twice, and for others only
 * what the server did not begin. */
static void test_client_repeats_what_is_safe(void **state)
{
    (void)state;
    static const char budget[] = "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"message\":"
                                 "\"no\",\"details\":{\"causes\":[{\"reason\":"
                                 "\"DisruptionBudget\"}]}}";
    static const struct {
        struct fake_answer first;
        bool is_get;
        size_t starts;
    } rows[] = {
        {{.status = 500, .retry_after = -1}, true, 2},
        {{.status = 500, .retry_after = -1}, false, 1},
        {{.status = 503, .retry_after = TD_SECOND}, false, 1},
        {{.status = 501, .retry_after = -1}, true, 1},
        {{.status = 429, .retry_after = -1}, true, 2},
        {{.status = 429, .retry_after = -1}, false, 1},
        {{.status = 429, .retry_after = TD_SECOND}, false, 2},
        {{.status = 429, .retry_after = TD_SECOND, .body = budget}, false, 1},
        {{.status = 429, .retry_after = TD_SECOND, .body = budget}, true, 1},
        {{.code = TD_IO}, true, 2},
        {{.code = TD_IO}, false, 1},
        {{.code = TD_TIMEOUT}, true, 2},
        {{.code = TD_BUSY}, false, 2},
        {{.code = TD_INVALID}, true, 1},
        {{.code = TD_DENIED}, true, 1},
        {{.status = 404, .retry_after = -1}, true, 1},
        {{.status = 200, .retry_after = -1, .body = "{\"items\":["}, true, 2},
        {{.status = 200, .retry_after = -1, .body = "{}{"}, true, 2},
        {{.status = 200, .retry_after = -1, .body = "x", .type = "text/plain"}, true, 1},
        {{.status = 401, .retry_after = -1}, true, 2},
        {{.status = 401, .retry_after = -1}, false, 2},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bed bed;
        bed_init(&bed, 0, 0);
        const struct fake_answer script[] = {rows[i].first, {.status = 200, .retry_after = -1}};
        bed.script = script;
        bed.script_count = 2;
        (void)td_client_send(bed.client, rows[i].is_get ? &get_pods : &post_pod, bed_reply, &bed);
        bed_run(&bed);
        assert_int_equal(bed.done, 1);
        assert_int_equal(bed.fake.starts, rows[i].starts);
        assert_int_equal(bed.fake.forgotten, rows[i].first.status == 401);
        if (rows[i].starts == 2) {
            assert_int_equal(bed.reply.code, TD_OK);
        }
        bed_done(&bed);
    }
}

/* A 401 is answered once with new credentials, then believed. */
static void test_client_believes_the_second_401(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed, 0, 0);
    const struct fake_answer script[] = {
        {.status = 401, .retry_after = -1, .body = STATUS("Unauthorized", "who")}};
    bed.script = script;
    bed.script_count = 1;
    (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    bed_run(&bed);
    assert_int_equal(bed.fake.starts, 2);
    assert_int_equal(bed.fake.forgotten, 1);
    assert_int_equal(bed.reply.code, TD_DENIED);
    assert_int_equal(bed.done_at, 0);
    bed_done(&bed);
}

/* A storm of 500s: pauses grow with jitter, tries end, and the last answer is the reply. */
static void test_client_gives_up_on_a_storm(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed, 0, 0);
    const struct fake_answer script[] = {{.status = 500, .retry_after = -1, .body = "storm"}};
    bed.script = script;
    bed.script_count = 1;
    struct td_client_request request = get_pods;
    request.deadline = TD_HOUR;
    (void)td_client_send(bed.client, &request, bed_reply, &bed);
    bed_run(&bed);
    assert_int_equal(bed.fake.starts, TD_CLIENT_TRIES_MAX);
    assert_int_equal(bed.reply.code, TD_IO);
    assert_string_equal(bed.reply.err.message, "GET /api/v1/pods: storm (500)");
    td_duration base = TD_CLIENT_PAUSE_MIN_MS * TD_MILLISECOND;
    for (size_t i = 1; i < TD_CLIENT_TRIES_MAX; i++) {
        td_duration pause = bed.started[i] - bed.started[i - 1];
        assert_in_range(pause, base / 2, base * 3 / 2);
        base = base * 2 < TD_CLIENT_PAUSE_MAX_MS * TD_MILLISECOND
                   ? base * 2
                   : TD_CLIENT_PAUSE_MAX_MS * TD_MILLISECOND;
    }
    struct td_client_counts counts = td_client_counts(bed.client);
    assert_int_equal(counts.calls, TD_CLIENT_TRIES_MAX);
    assert_int_equal(counts.retries, TD_CLIENT_TRIES_MAX - 1);
    assert_int_equal(counts.failures, 1);
    bed_done(&bed);
}

/* Retry-After is waited for when the deadline allows it; otherwise the refusal is the answer. */
static void test_client_honours_retry_after(void **state)
{
    (void)state;
    static const struct {
        td_duration retry_after, deadline;
        size_t starts;
        td_duration done_at_min;
    } rows[] = {
        {7 * TD_SECOND, 30 * TD_SECOND, 2, 7 * TD_SECOND},
        {31 * TD_SECOND, 0, 1, 0},
        {3600 * TD_SECOND, 10 * TD_SECOND, 1, 0},
        {INT64_MAX, 10 * TD_SECOND, 1, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bed bed;
        bed_init(&bed, 0, 0);
        const struct fake_answer script[] = {{.status = 429, .retry_after = rows[i].retry_after},
                                             {.status = 200, .retry_after = -1}};
        bed.script = script;
        bed.script_count = 2;
        struct td_client_request request = post_pod;
        request.deadline = rows[i].deadline;
        (void)td_client_send(bed.client, &request, bed_reply, &bed);
        bed_run(&bed);
        assert_int_equal(bed.fake.starts, rows[i].starts);
        assert_int_equal(bed.reply.code, rows[i].starts == 2 ? TD_OK : TD_BUSY);
        assert_true(bed.done_at >= rows[i].done_at_min);
        bed_done(&bed);
    }
}

/* The deadline covers silence, the line and repeated tries, and says what came before. */
static void test_client_deadline_covers_everything(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed, 0, 0);
    const struct fake_answer silent[] = {{.is_silent = true}};
    bed.script = silent;
    bed.script_count = 1;
    (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    bed_run(&bed);
    assert_int_equal(bed.reply.code, TD_TIMEOUT);
    assert_int_equal(bed.done_at, 30 * TD_SECOND);
    assert_int_equal(bed.fake.cancels, 1);
    assert_string_equal(bed.reply.err.message, "GET /api/v1/pods: no answer within 30s");
    bed_done(&bed);

    bed_init(&bed, 0.01, 1);
    (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    bed_run(&bed);
    assert_int_equal(bed.done, 2);
    assert_int_equal(bed.fake.starts, 1);
    assert_string_equal(bed.reply.err.message,
                        "GET /api/v1/pods: its turn did not come within 30s");
    bed_done(&bed);

    bed_init(&bed, 0, 0);
    const struct fake_answer then_silent[] = {{.status = 500, .retry_after = -1, .body = "x"},
                                              {.is_silent = true}};
    bed.script = then_silent;
    bed.script_count = 2;
    (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    bed_run(&bed);
    assert_string_equal(
        bed.reply.err.message,
        "GET /api/v1/pods: no answer within 30s; before: GET /api/v1/pods: x (500)");
    bed_done(&bed);
}

/* Bursts go out at once, the rest at the rate; retries are under it as well. */
static void test_client_keeps_the_rate(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed, 5, 10);
    for (int i = 0; i < 30; i++) {
        (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    }
    bed_run(&bed);
    assert_int_equal(bed.done, 30);
    for (size_t i = 0; i < 30; i++) {
        td_duration want = i < 10 ? 0 : (td_duration)(i - 9) * 200 * TD_MILLISECOND;
        assert_in_range(bed.started[i], want, want + TD_MICROSECOND);
    }
    assert_true(td_client_counts(bed.client).waited_ns > 0);
    bed_done(&bed);

    /* Fifty calls against a server that always fails: no second has more tries than the rate. */
    bed_init(&bed, 5, 1);
    const struct fake_answer script[] = {{.status = 503, .retry_after = -1}};
    bed.script = script;
    bed.script_count = 1;
    for (int i = 0; i < 50; i++) {
        (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    }
    bed_run(&bed);
    assert_int_equal(bed.done, 50);
    assert_in_range(bed.fake.starts, 50, 5 * 30 + 1);
    bed_done(&bed);
}

struct named {
    char *order; /* appended to by each reply */
    char name;
};

static void named_reply(void *context, const struct td_client_reply *reply)
{
    (void)reply;
    struct named *named = context;
    size_t len = strlen(named->order);
    named->order[len] = named->name;
    named->order[len + 1] = '\0';
}

/* A flow with many calls does not hold up one with few: they take turns. */
static void test_client_flows_take_turns(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed, 10, 1);
    char order[64] = "";
    struct named a = {order, 'a'}, b = {order, 'b'}, c = {order, 'c'};
    struct td_client_flow *flow_a = td_client_flow_new(bed.client, TD_STR("a"));
    struct td_client_flow *flow_b = td_client_flow_new(bed.client, TD_STR("b"));
    struct td_client_flow *flow_c = td_client_flow_new(bed.client, TD_STR("c"));
    struct td_client_request request = get_pods;
    request.flow = flow_a;
    for (int i = 0; i < 12; i++) {
        (void)td_client_send(bed.client, &request, named_reply, &a);
    }
    request.flow = flow_b;
    for (int i = 0; i < 4; i++) {
        (void)td_client_send(bed.client, &request, named_reply, &b);
    }
    request.flow = flow_c;
    (void)td_client_send(bed.client, &request, named_reply, &c);
    bed_run(&bed);
    assert_int_equal(strlen(order), 17);
    /* The first token went before the others came. */
    assert_memory_equal(order + 13, "aaaa", 4);
    assert_true(strchr(order, 'c') - order <= 3);
    for (const char *at = order; (at = strstr(at, "aa")) && at < order + 9;) {
        fail_msg("flow a went twice in a row: %s", order);
    }
    td_client_flow_free(flow_a);
    td_client_flow_free(flow_b);
    bed_done(&bed);
}

/* Never more calls at the server than the cap, and a full flow refuses from the loop. */
static void test_client_is_bounded(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed, 0, 0);
    const struct fake_answer script[] = {
        {.status = 200, .retry_after = -1, .after = TD_MILLISECOND}};
    bed.script = script;
    bed.script_count = 1;
    for (size_t i = 0; i < TD_CLIENT_QUEUE_MAX; i++) {
        (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    }
    (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    assert_int_equal(bed.done, 0);
    bed_run(&bed);
    assert_int_equal(bed.done, TD_CLIENT_QUEUE_MAX + 1);
    assert_int_equal(bed.fake.open_max, TD_CLIENT_IN_FLIGHT_MAX);
    assert_int_equal(td_client_counts(bed.client).failures, 1);
    bed_done(&bed);
}

/* Cancelled calls, freed flows and a freed client do not call back. */
static void test_client_cancel_is_silent(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed, 1, 1);
    struct td_client_flow *flow = td_client_flow_new(bed.client, TD_STR("f"));
    struct td_client_request request = get_pods;
    request.flow = flow;
    struct td_client_call *at_transport = td_client_send(bed.client, &request, bed_reply, &bed);
    struct td_client_call *in_line = td_client_send(bed.client, &request, bed_reply, &bed);
    (void)td_client_send(bed.client, &request, bed_reply, &bed);
    td_client_cancel(at_transport);
    td_client_cancel(in_line);
    td_client_cancel(NULL);
    td_client_flow_free(flow);
    bed_run(&bed);
    assert_int_equal(bed.done, 0);
    (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    bed_done(&bed);
    assert_int_equal(bed.done, 0);
}

struct stream {
    struct bed *bed;
    struct td_client_call *call;
    bool is_cancelling;
    int heads, ends, code;
    char body[128];
    char message[256];
};

static void stream_head(void *context, const struct td_call_head *head)
{
    struct stream *stream = context;
    stream->heads++;
    assert_int_equal(head->status, 200);
}

static void stream_body(void *context, td_str bytes)
{
    struct stream *stream = context;
    keep(stream->body, sizeof(stream->body), bytes);
    if (stream->is_cancelling) {
        td_client_cancel(stream->call);
    }
}

static void stream_end(void *context, int code, const struct td_error *err)
{
    struct stream *stream = context;
    stream->ends++;
    stream->code = code;
    keep(stream->message, sizeof(stream->message), td_str_from(err->message));
}

static const struct td_call_events stream_events = {stream_head, stream_body, stream_end};

/* Pieces of a 2xx are handed on as they come; a refusal is the server's message; no repetition. */
static void test_client_stream_hands_on_or_explains(void **state)
{
    (void)state;
    static const struct {
        struct fake_answer answer;
        const char *body;
        int code;
        const char *message;
        size_t starts;
    } rows[] = {
        {{.status = 200, .retry_after = -1, .body = "{\"type\":"}, "{\"type\":", TD_OK, "", 1},
        {{.status = 200, .retry_after = -1, .body = "x", .code = TD_IO},
         "x",
         TD_IO,
         "GET /api/v1/pods: the fake says so",
         1},
        {{.status = 410, .retry_after = -1, .body = STATUS("Expired", "too old")},
         "",
         TD_GONE,
         "GET /api/v1/pods: too old (410 Expired)",
         1},
        {{.status = 500, .retry_after = -1, .body = "x"},
         "",
         TD_IO,
         "GET /api/v1/pods: x (500)",
         1},
        {{.code = TD_BUSY}, "", TD_IO, "GET /api/v1/pods: the fake says so", 1},
        {{.status = 401, .retry_after = -1}, "", TD_DENIED, "GET /api/v1/pods:  (401)", 2},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bed bed;
        bed_init(&bed, 0, 0);
        bed.script = &rows[i].answer;
        bed.script_count = 1;
        struct stream stream = {.bed = &bed};
        stream.call = td_client_stream(bed.client, &get_pods, &stream_events, &stream);
        bed_run(&bed);
        assert_int_equal(stream.ends, 1);
        assert_int_equal(stream.code, rows[i].code);
        assert_string_equal(stream.body, rows[i].body);
        assert_string_equal(stream.message, rows[i].message);
        assert_int_equal(stream.heads, rows[i].answer.status == 200);
        assert_int_equal(bed.fake.starts, rows[i].starts);
        bed_done(&bed);
    }
}

/* A stream that is told when to come back comes then, and not for ever. */
static void test_client_stream_honours_retry_after(void **state)
{
    (void)state;
    static const struct {
        int status;
        td_duration retry_after;
        size_t refusals; /* before the stream is let in */
        size_t starts;
        int code;
    } rows[] = {
        {429, 3 * TD_SECOND, 1, 2, TD_OK},
        {503, 3 * TD_SECOND, 2, 3, TD_OK},
        {429, 3 * TD_SECOND, 100, TD_CLIENT_TRIES_MAX, TD_BUSY},
        {429, INT64_MAX, 1, 1, TD_BUSY},
        {403, 3 * TD_SECOND, 1, 1, TD_DENIED},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bed bed;
        bed_init(&bed, 0, 0);
        struct fake_answer script[101];
        for (size_t j = 0; j < rows[i].refusals; j++) {
            script[j] =
                (struct fake_answer){.status = rows[i].status, .retry_after = rows[i].retry_after};
        }
        script[rows[i].refusals] = (struct fake_answer){.status = 200, .retry_after = -1};
        bed.script = script;
        bed.script_count = rows[i].refusals + 1;
        struct stream stream = {.bed = &bed};
        stream.call = td_client_stream(bed.client, &get_pods, &stream_events, &stream);
        bed_run(&bed);
        assert_int_equal(stream.ends, 1);
        assert_int_equal(stream.code, rows[i].code);
        assert_int_equal(bed.fake.starts, rows[i].starts);
        for (size_t j = 1; j < rows[i].starts; j++) {
            assert_true(bed.started[j] - bed.started[j - 1] >= rows[i].retry_after);
        }
        bed_done(&bed);
    }
}

/* A stream has no deadline unless it asks, and may be cancelled from inside its own callback. */
static void test_client_stream_stays_open_and_is_cancelled(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed, 0, 0);
    const struct fake_answer script[] = {
        {.status = 200, .retry_after = -1, .body = "{}", .is_open = true}};
    bed.script = script;
    bed.script_count = 1;
    struct stream open = {.bed = &bed};
    open.call = td_client_stream(bed.client, &get_pods, &stream_events, &open);
    struct stream cancelling = {.bed = &bed, .is_cancelling = true};
    cancelling.call = td_client_stream(bed.client, &get_pods, &stream_events, &cancelling);
    bed_run(&bed);
    assert_string_equal(open.body, "{}");
    assert_int_equal(open.ends, 0);
    assert_int_equal(cancelling.ends, 0);
    assert_int_equal(bed.fake.open, 1);
    td_client_cancel(open.call);
    bed_done(&bed);
}

/* Pauses double between their bounds, each times 0.5 to 1.5, for as long as one likes. */
static void test_backoff_grows_to_its_cap(void **state)
{
    (void)state;
    struct td_backoff backoff = {.min = TD_SECOND, .max = 10 * TD_SECOND, .random = 7};
    td_duration base = TD_SECOND;
    td_duration seen_min = INT64_MAX, seen_max = 0;
    for (int i = 0; i < 1000; i++) {
        td_duration pause = td_backoff_next(&backoff);
        assert_in_range(pause, base / 2, base * 3 / 2);
        base = base * 2 < 10 * TD_SECOND ? base * 2 : 10 * TD_SECOND;
        if (i > 5) {
            seen_min = pause < seen_min ? pause : seen_min;
            seen_max = pause > seen_max ? pause : seen_max;
        }
    }
    assert_true(seen_min < 6 * TD_SECOND && seen_max > 14 * TD_SECOND);
    td_backoff_reset(&backoff);
    assert_true(td_backoff_next(&backoff) <= TD_SECOND * 3 / 2);
}

/* A body of that size; free it. */
static char *large_body(size_t bytes)
{
    char *body = td_alloc(bytes + 1);
    memset(body, 'a', bytes);
    body[0] = '"';
    body[bytes - 1] = '"';
    body[bytes] = '\0';
    return body;
}

/* Answers that never end fill the budget; what does not fit beside them is let go, and tried again
 * until they are gone. */
static void test_client_answers_share_one_budget(void **state)
{
    (void)state;
    struct bed bed;
    size_t bytes = TD_CLIENT_ANSWERS_BYTES_MAX / 3 - 1000;
    char *body = large_body(bytes);
    const struct fake_answer open = {.status = 200, .body = body, .is_open = true};
    const struct fake_answer whole = {.status = 200, .body = body};
    const struct fake_answer script[] = {open, open, open, whole};
    bed_init(&bed, 0, 0);
    bed.script = script;
    bed.script_count = COUNT(script);
    struct td_client_request request = get_pods;
    request.deadline = 2 * TD_SECOND;
    for (size_t i = 0; i < 3; i++) {
        (void)td_client_send(bed.client, &request, bed_reply, &bed);
    }
    (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    bed_run(&bed);
    assert_int_equal(bed.done, 4);
    assert_int_equal(bed.reply.code, TD_OK);
    assert_true(bed.done_at >= 2 * TD_SECOND);
    assert_true(td_client_counts(bed.client).retries >= 2);
    /* The budget is whole again. */
    bed.script = &whole;
    bed.script_count = 1;
    bed.at = 0;
    uint64_t retries = td_client_counts(bed.client).retries;
    for (size_t i = 0; i < 6; i++) {
        (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    }
    bed_run(&bed);
    assert_int_equal(bed.done, 10);
    assert_int_equal(bed.reply.code, TD_OK);
    assert_true(td_client_counts(bed.client).retries == retries);
    bed_done(&bed);
    td_free(body);
}

/* It is not read on to its end, and not asked for again. */
static void test_client_cuts_an_answer_above_the_cap(void **state)
{
    (void)state;
    struct bed bed;
    char *body = large_body(TD_CLIENT_ANSWER_BYTES_MAX + 1);
    const struct fake_answer answer = {.status = 200, .body = body, .is_open = true};
    bed_init(&bed, 0, 0);
    bed.script = &answer;
    bed.script_count = 1;
    (void)td_client_send(bed.client, &get_pods, bed_reply, &bed);
    bed_run(&bed);
    assert_int_equal(bed.done, 1);
    assert_int_equal(bed.reply.code, TD_LIMIT);
    assert_true(bed.done_at < TD_SECOND);
    assert_int_equal(bed.fake.starts, 1);
    assert_int_equal(bed.fake.open, 0);
    bed_done(&bed);
    td_free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_client_reads_refusals),
        cmocka_unit_test(test_client_repeats_what_is_safe),
        cmocka_unit_test(test_client_believes_the_second_401),
        cmocka_unit_test(test_client_gives_up_on_a_storm),
        cmocka_unit_test(test_client_honours_retry_after),
        cmocka_unit_test(test_client_deadline_covers_everything),
        cmocka_unit_test(test_client_keeps_the_rate),
        cmocka_unit_test(test_client_flows_take_turns),
        cmocka_unit_test(test_client_is_bounded),
        cmocka_unit_test(test_client_cancel_is_silent),
        cmocka_unit_test(test_client_stream_hands_on_or_explains),
        cmocka_unit_test(test_client_stream_honours_retry_after),
        cmocka_unit_test(test_client_stream_stays_open_and_is_cancelled),
        cmocka_unit_test(test_client_answers_share_one_budget),
        cmocka_unit_test(test_client_cuts_an_answer_above_the_cap),
        cmocka_unit_test(test_backoff_grows_to_its_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
