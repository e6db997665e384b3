/*
 * A call is in exactly one place: in the line of its flow, at the transport, in a pause before the
 * next try, or on its way to report a failure. One timer of its own moves it on in each of them.
 * Flows take turns, one call each, whenever the bucket has a token and the server has not too many
 * calls already; a try is a turn, so repetitions are under the rate limit too. Nothing is called
 * back from inside send: the transport promises the same.
 */
#include "kube/client/client.h"

#include <math.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "kube/client/client_reply.h"
#include "kube/client/server_clock.h"

enum call_state { CALL_IN_LINE, CALL_AT_TRANSPORT, CALL_IN_PAUSE, CALL_REFUSED };

struct call_list {
    struct td_client_call *first;
    struct td_client_call *last;
};

struct td_client_call {
    struct td_client_flow *flow;
    enum call_state state;
    struct td_client_call *next; /* in the line of the flow, or among its others */
    struct td_client_call *previous;
    struct td_timer *timer; /* owned: the deadline, the end of a pause, or the refusal's turn */
    struct td_call *call;   /* while at the transport */
    struct td_call_request request;
    char *text;             /* of the request; owned */
    td_client_done_fn done; /* NULL for a stream */
    struct td_call_events events;
    void *context;
    bool is_stream;
    bool is_idempotent;
    bool has_new_credentials; /* a 401 was answered by forgetting them */
    unsigned tries;
    unsigned tries_max;
    td_duration due;      /* the deadline, of the machine's time; INT64_MAX: none */
    td_duration in_line;  /* since when */
    td_duration deadline; /* as asked, for messages */
    struct td_backoff backoff;
    int status; /* of the head; 0 before */
    bool is_json;
    td_duration retry_after;
    struct td_buf warning;
    struct td_buf body;
    struct td_error last_error; /* of the last try */
};

struct td_client_flow {
    struct td_client *client;
    struct td_client_flow *next;
    struct call_list line;
    struct call_list others;
    size_t count; /* calls of both lists */
    char name[64];
};

struct td_client {
    struct td_loop *loop;
    struct td_transport *transport;
    double qps;
    double burst;
    double tokens;
    bool keeps_server_time;
    td_duration tokens_at;        /* steady time of `tokens` */
    struct td_timer *turn;        /* set while a call waits for a token */
    struct td_client_flow *flows; /* a ring: the one whose turn is next; NULL when there is none */
    struct td_client_flow *shared;
    size_t in_flight;     /* calls at the transport, streams not counted */
    size_t answers_bytes; /* that the bodies of all calls hold */
    uint64_t random;
    struct td_client_counts counts;
};

static void client_turn(struct td_client *client);

static void list_remove(struct call_list *list, struct td_client_call *call)
{
    *(call->previous ? &call->previous->next : &list->first) = call->next;
    *(call->next ? &call->next->previous : &list->last) = call->previous;
    call->previous = NULL;
    call->next = NULL;
}

static void list_add_last(struct call_list *list, struct td_client_call *call)
{
    call->next = NULL;
    call->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = call;
    list->last = call;
}

static void list_add_first(struct call_list *list, struct td_client_call *call)
{
    call->previous = NULL;
    call->next = list->first;
    *(list->first ? &list->first->previous : &list->last) = call;
    list->first = call;
}

static struct call_list *call_list_of(struct td_client_call *call)
{
    return call->state == CALL_IN_LINE ? &call->flow->line : &call->flow->others;
}

static void call_move(struct td_client_call *call, enum call_state state)
{
    struct td_client *client = call->flow->client;
    if (call->state == CALL_AT_TRANSPORT && !call->is_stream) {
        td_assert(client->in_flight > 0);
        client->in_flight--;
    }
    list_remove(call_list_of(call), call);
    call->state = state;
    if (state == CALL_IN_LINE && call->tries > 0) {
        list_add_first(&call->flow->line, call); /* it has stood in the line before */
    } else {
        list_add_last(call_list_of(call), call);
    }
    if (state == CALL_AT_TRANSPORT && !call->is_stream) {
        client->in_flight++;
    }
}

/* Deadlines and pauses are real time: an accelerated clock does not make the network faster. */
static td_duration client_now(const struct td_client *client)
{
    return td_clock_machine(td_loop_clock(client->loop));
}

static size_t call_body_bytes_max(const struct td_client_call *call)
{
    return call->is_stream ? TD_CLIENT_ERROR_BYTES_MAX : TD_CLIENT_ANSWER_BYTES_MAX;
}

/* Empty the body, for another try or for good; what it held may be used by others. */
static void call_drop_body(struct td_client_call *call)
{
    struct td_client *client = call->flow->client;
    td_assert(client->answers_bytes >= call->body.len);
    client->answers_bytes -= call->body.len;
    td_buf_done(&call->body); /* a reset would keep its memory */
    td_buf_init(&call->body, call_body_bytes_max(call));
}

static void call_free(struct td_client_call *call)
{
    call_drop_body(call);
    if (call->call) {
        call->flow->client->transport->ops->cancel(call->call);
        call->call = NULL;
    }
    if (call->state == CALL_AT_TRANSPORT && !call->is_stream) {
        call->flow->client->in_flight--;
    }
    list_remove(call_list_of(call), call);
    call->flow->count--;
    td_timer_free(call->timer);
    td_buf_done(&call->warning);
    td_buf_done(&call->body);
    td_free(call->text);
    td_free(call);
}

/* The call is over: the next one may go, then the user hears of it. Nothing of the client is
 * touched after the user's callback. */
static void call_finish(struct td_client_call *call, const struct td_client_reply *reply)
{
    struct td_client *client = call->flow->client;
    struct td_client_call copy = *call;
    /* What the reply points at lives until the callback has returned. */
    client->answers_bytes -= call->body.len;
    td_buf_init(&call->warning, 0);
    td_buf_init(&call->body, 0);
    call->text = NULL;
    call_free(call);
    if (reply->code != TD_OK) {
        client->counts.failures++;
    }
    client_turn(client);
    if (copy.is_stream) {
        copy.events.end(copy.context, reply->code, &reply->err);
    } else {
        copy.done(copy.context, reply);
    }
    td_buf_done(&copy.warning);
    td_buf_done(&copy.body);
    td_free(copy.text);
}

static void call_fail(struct td_client_call *call, const struct td_error *err)
{
    struct td_client_reply reply = {
        .code = err->code,
        .status = call->status,
        .reason = TD_STR_EMPTY,
        .body = TD_STR_EMPTY,
        .warning = TD_STR_EMPTY,
        .err = *err,
    };
    call_finish(call, &reply);
}

static void call_wait_until(struct td_client_call *call, td_duration due)
{
    if (due == INT64_MAX) {
        td_timer_stop(call->timer);
    } else {
        td_timer_set_machine(call->timer, due - client_now(call->flow->client));
    }
}

static void call_time_out(struct td_client_call *call)
{
    char span[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(call->deadline, span); /* the length is not needed */
    struct td_error err = TD_ERROR_INIT;
    (void)td_error_set(&err, TD_TIMEOUT, "%.*s %.*s: %s within %s%s%s",
                       TD_STR_ARG(call->request.method), TD_STR_ARG(call->request.path),
                       call->state == CALL_IN_LINE ? "its turn did not come" : "no answer", span,
                       call->last_error.code != TD_OK ? "; before: " : "",
                       call->last_error.message);
    call_fail(call, &err);
}

static void call_rings(struct td_timer *timer, void *context)
{
    (void)timer;
    struct td_client_call *call = context;
    struct td_client *client = call->flow->client;
    switch (call->state) {
    case CALL_IN_LINE:
    case CALL_AT_TRANSPORT:
        call_time_out(call);
        return;
    case CALL_IN_PAUSE:
        call_move(call, CALL_IN_LINE);
        call->in_line = client_now(client);
        call_wait_until(call, call->due);
        client_turn(client);
        return;
    case CALL_REFUSED:
        break;
    }
    struct td_error err = call->last_error;
    call_fail(call, &err);
}

static bool call_is_success(const struct td_client_call *call)
{
    return call->status >= 200 && call->status < 300;
}

static void call_head(void *context, const struct td_call_head *head)
{
    struct td_client_call *call = context;
    call->status = head->status;
    call->retry_after = head->retry_after;
    if (call->flow->client->keeps_server_time) {
        td_server_clock_follow(call->flow->client->loop, head);
    }
    call->is_json = td_str_equal(head->content_type, TD_STR("application/json"));
    (void)td_buf_append(&call->warning, head->warning); /* a long one is left out */
    if (call->is_stream && call_is_success(call) && call->events.head) {
        call->events.head(call->context, head);
    }
}

static void call_end(void *context, int code, const struct td_error *err);

/* What is too large will not get smaller by reading on. */
static void call_cut(struct td_client_call *call, int code, const struct td_error *err)
{
    call->flow->client->transport->ops->cancel(call->call);
    call_end(call, code, err);
}

/* An answer above its own cap is refused. One that does not fit beside those of other calls is let
 * go and tried again after a pause: they will be gone then. */
static void call_body(void *context, td_str bytes)
{
    struct td_client_call *call = context;
    struct td_client *client = call->flow->client;
    if (call->is_stream && call_is_success(call)) {
        call->events.body(call->context, bytes);
        return; /* the user may have cancelled it: the call is not touched any more */
    }
    if (bytes.len > TD_CLIENT_ANSWERS_BYTES_MAX - client->answers_bytes) {
        struct td_error err = TD_ERROR_INIT;
        int code = td_error_set(&err, TD_IO, "the answers in flight are above %zu bytes",
                                (size_t)TD_CLIENT_ANSWERS_BYTES_MAX);
        call_drop_body(call);
        call_cut(call, code, &err);
        return;
    }
    size_t before = call->body.len;
    int code = td_buf_append(&call->body, bytes);
    client->answers_bytes += call->body.len - before;
    if (code < 0) {
        call_cut(call, TD_OK, NULL); /* the reply tells that it was cut */
    }
}

static void call_clear(struct td_client_call *call)
{
    td_buf_reset(&call->warning);
    call_drop_body(call);
    call->status = 0;
    call->is_json = false;
    call->retry_after = -1;
}

/* A stream is repeated only when the server names a time; how long to wait otherwise depends on
 * what came before it, which its user knows. */
static bool call_is_put_off(const struct td_client_call *call,
                            const struct td_client_answer *answer)
{
    return answer->code == TD_OK && call->retry_after >= 0 &&
           (answer->status == 429 || answer->status >= 500);
}

/* When should it be tried again? Negative: not at all. */
static td_duration call_pause(struct td_client_call *call, const struct td_client_answer *answer,
                              const struct td_client_reply *reply)
{
    if (answer->code == TD_OK && answer->status == 401 && !call->has_new_credentials &&
        call->flow->client->transport->ops->forget_credentials) {
        call->has_new_credentials = true;
        call->flow->client->transport->ops->forget_credentials(call->flow->client->transport);
        return 0;
    }
    if (call->tries >= call->tries_max || (call->is_stream && !call_is_put_off(call, answer))) {
        return -1;
    }
    enum td_client_repeat repeat = td_client_reply_repeat(answer, reply, call->retry_after);
    if (repeat == TD_CLIENT_REPEAT_NEVER ||
        (repeat == TD_CLIENT_REPEAT_IDEMPOTENT && !call->is_idempotent)) {
        return -1;
    }
    td_duration pause = td_backoff_next(&call->backoff);
    pause = pause > call->retry_after ? pause : call->retry_after;
    td_duration left = call->due - client_now(call->flow->client);
    return pause < left ? pause : -1;
}

static void call_end(void *context, int code, const struct td_error *err)
{
    struct td_client_call *call = context;
    struct td_client *client = call->flow->client;
    call->call = NULL;
    const struct td_client_answer answer = {
        .method = call->request.method,
        .path = call->request.path,
        .code = code,
        .err = err,
        .status = code == TD_OK || call->is_stream ? call->status : 0,
        .is_json = call->is_json,
        .is_cut = call->body.is_full,
        .body = td_buf_str(&call->body),
        .warning = td_buf_str(&call->warning),
    };
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_client_reply reply;
    td_client_reply_read(&arena, &answer, &reply);
    td_duration pause = reply.code == TD_OK ? -1 : call_pause(call, &answer, &reply);
    if (pause < 0) {
        call_finish(call, &reply);
        return;
    }
    client->counts.retries++;
    call->last_error = reply.err;
    call_clear(call);
    call_move(call, CALL_IN_PAUSE);
    call_wait_until(call, client_now(client) + pause);
    client_turn(client);
}

static void call_start(struct td_client_call *call)
{
    static const struct td_call_events events = {
        .head = call_head,
        .body = call_body,
        .end = call_end,
    };
    struct td_client *client = call->flow->client;
    td_duration now = client_now(client);
    client->counts.calls++;
    client->counts.waited_ns += (uint64_t)(now - call->in_line);
    call->tries++;
    call_move(call, CALL_AT_TRANSPORT);
    call->call = client->transport->ops->start(client->transport, &call->request, &events, call);
    td_assert(call->call);
}

/* Is there a token? When not, the turn is set for when there will be one. */
static bool client_take_token(struct td_client *client)
{
    if (client->qps <= 0) {
        return true;
    }
    td_duration now = td_clock_steady(td_loop_clock(client->loop));
    double earned = (double)(now - client->tokens_at) / (double)TD_SECOND * client->qps;
    client->tokens = fmin(client->burst, client->tokens + earned);
    client->tokens_at = now;
    if (client->tokens >= 1 - 1e-9) { /* a wait that was rounded to whole nanoseconds is enough */
        client->tokens -= 1;
        return true;
    }
    double wait = ceil((1 - client->tokens) / client->qps * (double)TD_SECOND);
    td_timer_set(client->turn, wait >= 0x1p62 ? INT64_MAX / 2 : (td_duration)wait);
    return false;
}

static struct td_client_flow *client_next_flow(struct td_client *client)
{
    struct td_client_flow *flow = client->flows;
    do {
        if (flow->line.first) {
            return flow;
        }
        flow = flow->next;
    } while (flow != client->flows);
    return NULL;
}

static void client_turn(struct td_client *client)
{
    while (client->in_flight < TD_CLIENT_IN_FLIGHT_MAX) {
        struct td_client_flow *flow = client_next_flow(client);
        if (!flow || !client_take_token(client)) {
            return;
        }
        client->flows = flow->next;
        call_start(flow->line.first);
    }
}

static void client_turn_rings(struct td_timer *timer, void *context)
{
    (void)timer;
    client_turn(context);
}

struct td_client *td_client_new(const struct td_client_options *options)
{
    td_assert(options->qps <= 0 || options->burst >= 1);
    struct td_client *client = td_alloc_zero(1, sizeof(*client));
    client->loop = options->loop;
    client->transport = options->transport;
    client->qps = options->qps;
    client->keeps_server_time = options->keeps_server_time;
    client->burst = options->burst;
    client->tokens = options->burst;
    client->random = options->seed;
    client->tokens_at = td_clock_steady(td_loop_clock(options->loop));
    client->turn = td_timer_new(options->loop, client_turn_rings, client);
    client->shared = td_client_flow_new(client, TD_STR("shared"));
    return client;
}

void td_client_free(struct td_client *client)
{
    if (!client) {
        return;
    }
    while (client->flows) {
        td_client_flow_free(client->flows);
    }
    td_timer_free(client->turn);
    client->transport->ops->free(client->transport);
    td_free(client);
}

struct td_client_flow *td_client_flow_new(struct td_client *client, td_str name)
{
    struct td_client_flow *flow = td_alloc_zero(1, sizeof(*flow));
    flow->client = client;
    td_str shown = td_str_cut_utf8(name, sizeof(flow->name) - 1);
    memcpy(flow->name, shown.ptr ? shown.ptr : "", shown.len);
    if (client->flows) {
        flow->next = client->flows->next;
        client->flows->next = flow;
    } else {
        flow->next = flow;
        client->flows = flow;
    }
    return flow;
}

void td_client_flow_free(struct td_client_flow *flow)
{
    if (!flow) {
        return;
    }
    struct td_client *client = flow->client;
    while (flow->line.first) {
        call_free(flow->line.first);
    }
    while (flow->others.first) {
        call_free(flow->others.first);
    }
    td_assert(flow->count == 0);
    struct td_client_flow *before = flow;
    while (before->next != flow) {
        before = before->next;
    }
    before->next = flow->next;
    if (client->flows == flow) {
        client->flows = flow->next == flow ? NULL : flow->next;
    }
    td_free(flow);
}

static td_str call_copy(char **at, td_str text)
{
    td_str copy = {.ptr = *at, .len = text.len};
    memcpy(*at, text.ptr ? text.ptr : "", text.len);
    *at += text.len;
    return copy;
}

static void call_copy_request(struct td_client_call *call, const struct td_client_request *from)
{
    td_str type = from->body.len > 0 && from->content_type.len == 0 ? TD_STR("application/json")
                                                                    : from->content_type;
    call->text = td_alloc(from->method.len + from->path.len + from->accept.len + type.len +
                          from->body.len + 1);
    char *at = call->text;
    call->request = (struct td_call_request){
        .method = call_copy(&at, from->method),
        .path = call_copy(&at, from->path),
        .accept = call_copy(&at, from->accept),
        .content_type = call_copy(&at, type),
        .body = call_copy(&at, from->body),
        .idle = from->idle,
    };
}

static struct td_client_call *call_new(struct td_client *client,
                                       const struct td_client_request *request, bool is_stream)
{
    struct td_client_call *call = td_alloc_zero(1, sizeof(*call));
    call->flow = request->flow ? request->flow : client->shared;
    td_assert(call->flow->client == client);
    call->is_stream = is_stream;
    call->tries_max = request->tries_max > 0 ? request->tries_max : TD_CLIENT_TRIES_MAX;
    call->is_idempotent = request->is_idempotent || td_str_equal(request->method, TD_STR("GET"));
    call_copy_request(call, request);
    call->deadline = request->deadline;
    if (call->deadline <= 0 && !is_stream) {
        call->deadline = TD_CLIENT_DEADLINE_MS * TD_MILLISECOND;
    }
    call->in_line = client_now(client);
    bool has_due = call->deadline > 0 && call->deadline < INT64_MAX / 2;
    call->due = has_due ? call->in_line + call->deadline : INT64_MAX;
    call->request.deadline = call->deadline;
    call->retry_after = -1;
    client->random += UINT64_C(0x9e3779b97f4a7c15); /* another stream of jitter for each call */
    call->backoff = (struct td_backoff){
        .min = TD_CLIENT_PAUSE_MIN_MS * TD_MILLISECOND,
        .max = TD_CLIENT_PAUSE_MAX_MS * TD_MILLISECOND,
        .random = client->random,
    };
    td_buf_init(&call->warning, TD_LOG_VALUE_BYTES_MAX);
    td_buf_init(&call->body, call_body_bytes_max(call));
    call->timer = td_timer_new(client->loop, call_rings, call);
    return call;
}

static struct td_client_call *call_send(struct td_client *client, struct td_client_call *call)
{
    struct td_client_flow *flow = call->flow;
    bool has_room = flow->count < TD_CLIENT_QUEUE_MAX;
    flow->count++;
    if (!has_room) {
        call->state = CALL_REFUSED;
        (void)td_error_set(&call->last_error, TD_LIMIT, "%.*s %.*s: %zu calls of '%s' wait already",
                           TD_STR_ARG(call->request.method), TD_STR_ARG(call->request.path),
                           (size_t)TD_CLIENT_QUEUE_MAX, flow->name); /* reported from the loop */
        list_add_last(&flow->others, call);
        td_timer_set(call->timer, 0);
        return call;
    }
    call->state = CALL_IN_LINE;
    list_add_last(&flow->line, call);
    call_wait_until(call, call->due);
    client_turn(client);
    return call;
}

struct td_client_call *td_client_send(struct td_client *client,
                                      const struct td_client_request *request,
                                      td_client_done_fn done, void *context)
{
    struct td_client_call *call = call_new(client, request, false);
    call->done = done;
    call->context = context;
    return call_send(client, call);
}

struct td_client_call *td_client_stream(struct td_client *client,
                                        const struct td_client_request *request,
                                        const struct td_call_events *events, void *context)
{
    struct td_client_call *call = call_new(client, request, true);
    call->events = *events;
    call->context = context;
    return call_send(client, call);
}

void td_client_cancel(struct td_client_call *call)
{
    if (call) {
        struct td_client *client = call->flow->client;
        call_free(call);
        client_turn(client);
    }
}

struct td_client_counts td_client_counts(const struct td_client *client)
{
    return client->counts;
}
