/*
 * A call becomes a request of the API handler by a timer of the loop, so that its callback never
 * runs inside the call that sends it.
 */
#include "local/api/transport.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"

struct local_transport {
    struct td_transport base;
    struct td_api *api;
    struct td_loop *loop;
    struct td_arena arena; /* of the texts below */
    struct td_api_user user;
    td_str groups[2];
    td_str user_agent;
    size_t call_count; /* in progress */
};

/* The request waits for the next turn of the loop, because a transport never calls back from inside
 * start. */
struct td_call {
    struct local_transport *transport;
    struct td_timer *timer;
    struct td_api_call *call; /* NULL: not begun, or over */
    struct td_call_events events;
    void *context;
    struct td_arena arena; /* of the request, until it has begun */
    struct td_api_request request;
    bool is_starting;
    bool has_head;
    bool is_calling; /* one of its callbacks is running */
    bool has_ended;
    bool is_cancelled; /* from inside one of its callbacks: it ends in the next turn */
};

static void local_call_free(struct td_call *call)
{
    call->transport->call_count--;
    td_timer_free(call->timer);
    td_arena_done(&call->arena);
    td_free(call);
}

/* Only what a td_call_head has room for is looked at. */
static void local_head(void *context, int status, const struct td_api_header *headers, size_t count)
{
    struct td_call *call = context;
    call->has_head = true;
    struct td_call_head head = {
        .status = status, .content_type = TD_STR_EMPTY, .retry_after = -1, .warning = TD_STR_EMPTY};
    for (size_t i = 0; i < count; i++) {
        td_str value = headers[i].value;
        int64_t seconds;
        if (td_str_equal(headers[i].name, TD_STR("Content-Type"))) {
            head.content_type = td_str_slice(value, 0, td_str_find(value, ';', 0));
        } else if (td_str_equal(headers[i].name, TD_STR("Retry-After")) &&
                   td_str_to_int64(value, &seconds)) {
            head.retry_after = seconds * TD_SECOND;
        } else if (td_str_equal(headers[i].name, TD_STR("Warning")) && head.warning.len == 0) {
            head.warning = value;
        }
    }
    if (call->events.head && !call->is_cancelled) {
        call->is_calling = true;
        call->events.head(call->context, &head);
        call->is_calling = false;
    }
}

static void local_body(void *context, td_str bytes, void (*release)(void *owner), void *owner)
{
    struct td_call *call = context;
    if (!call->is_cancelled) {
        call->is_calling = true;
        call->events.body(call->context, bytes);
        call->is_calling = false;
    }
    if (release) {
        release(owner);
    }
}

static bool local_is_full(void *context)
{
    const struct td_call *call = context;
    return call->is_cancelled;
}

static void local_end(void *context)
{
    struct td_call *call = context;
    call->call = NULL;
    call->has_ended = true;
    if (call->is_starting) {
        return;
    }
    struct td_call_events events = call->events;
    void *user = call->context;
    bool is_cancelled = call->is_cancelled;
    struct td_error err = TD_ERROR_INIT;
    int code = call->has_head ? TD_OK
                              : td_error_set(&err, TD_IO, "the server stopped before it responded");
    local_call_free(call);
    if (!is_cancelled) {
        events.end(user, code, code == TD_OK ? NULL : &err);
    }
}

static const struct td_api_sink local_sink = {
    .head = local_head, .body = local_body, .is_full = local_is_full, .end = local_end};

static void local_begin(struct td_timer *timer, void *context)
{
    struct td_call *call = context;
    (void)timer;
    if (call->is_cancelled) {
        td_api_cancel(call->call);
        local_call_free(call);
        return;
    }
    call->is_starting = true;
    call->call = td_api_start(call->transport->api, &call->request, &local_sink, call);
    call->is_starting = false;
    td_arena_reset(&call->arena);
    if (call->has_ended) {
        local_end(call);
    }
}

static struct td_call *local_start(struct td_transport *base, const struct td_call_request *request,
                                   const struct td_call_events *events, void *context)
{
    struct local_transport *transport = (struct local_transport *)base;
    struct td_call *call = td_alloc_zero(1, sizeof(*call));
    call->transport = transport;
    call->events = *events;
    call->context = context;
    td_arena_init(&call->arena, TD_TREE_ARENA_BYTES_MAX);
    td_str accept = request->accept.len > 0 ? request->accept : TD_STR("application/json");
    call->request = (struct td_api_request){
        .method = td_arena_copy_str(&call->arena, request->method),
        .target = td_arena_copy_str(&call->arena, request->path),
        .accept = td_arena_copy_str(&call->arena, accept),
        .content_type = td_arena_copy_str(&call->arena, request->content_type),
        .user_agent = transport->user_agent,
        .body = td_arena_copy_str(&call->arena, request->body),
        .user = transport->user,
    };
    call->timer = td_timer_new(transport->loop, local_begin, call);
    td_timer_set(call->timer, 0);
    transport->call_count++;
    return call;
}

static void local_cancel(struct td_call *call)
{
    if (call->is_starting || call->is_calling) {
        call->is_cancelled = true;
        td_timer_set(call->timer, 0);
        return;
    }
    if (call->call) {
        td_api_cancel(call->call);
    }
    local_call_free(call);
}

static void local_free(struct td_transport *base)
{
    struct local_transport *transport = (struct local_transport *)base;
    td_assert(transport->call_count == 0);
    td_arena_done(&transport->arena);
    td_free(transport);
}

static const struct td_transport_ops local_ops = {
    .start = local_start, .cancel = local_cancel, .free = local_free};

struct td_transport *td_transport_local_new(const struct td_transport_local_options *options)
{
    struct local_transport *transport = td_alloc_zero(1, sizeof(*transport));
    transport->base.ops = &local_ops;
    transport->api = options->api;
    transport->loop = options->loop;
    td_arena_init(&transport->arena, TD_TREE_ARENA_BYTES_MAX);
    transport->groups[0] = td_arena_copy_str(&transport->arena, options->group);
    transport->groups[1] = TD_STR("system:authenticated"); /* as over HTTPS */
    transport->user_agent = td_arena_copy_str(&transport->arena, options->user_agent);
    transport->user = (struct td_api_user){
        .name = td_arena_copy_str(&transport->arena, options->user),
        .uid = TD_STR_EMPTY,
        .groups = transport->groups,
        .group_count = 2,
    };
    return &transport->base;
}
