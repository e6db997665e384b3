/*
 * Who may see the page of controllers in a cluster: those of whom the API server says, by their
 * bearer token, that they may list VerticalPodAutoscalers, everywhere or in the namespace of the
 * parameter `in` (kube/bearer.h).
 */
#include "base/alloc.h"
#include "base/text.h"
#include "kube/bearer.h"
#include "web/web_private.h"

/* A caller who waits. */
struct access_ask {
    struct web_call call;
    td_str scope; /* owned */
    struct td_bearer_ask *bearer;
    struct access_ask *next;
    struct access_ask **place;
};

struct web_access {
    struct td_bearers *bearers;
    struct access_ask *asks;
};

static void access_go_on(const struct web_call *call, int status)
{
    if (status == 200) {
        web_route(call);
    } else if (status == 401) {
        web_fail(call->exchange, 401, TD_STR("a bearer token of this cluster is needed"));
    } else if (status == 403) {
        web_fail(call->exchange, 403,
                 call->scope.len > 0
                     ? TD_STR("you may not list verticalpodautoscalers in this namespace")
                     : TD_STR("you may not list verticalpodautoscalers in all namespaces; choose "
                              "one namespace"));
    } else {
        web_fail(call->exchange, 503, TD_STR("the API server does not say who you are"));
    }
}

static void ask_free(struct access_ask *ask)
{
    *ask->place = ask->next;
    if (ask->next) {
        ask->next->place = ask->place;
    }
    td_text_free(ask->scope);
    td_free(ask);
}

static void ask_answered(void *context, int status)
{
    struct access_ask *ask = context;
    struct web_call call = ask->call;
    td_auto_arena arena = td_arena_capped(WEB_ARENA_BYTES_MAX);
    call.scope = td_arena_copy_str(&arena, ask->scope);
    td_http_exchange_set_callbacks(call.exchange, NULL, NULL, NULL);
    ask_free(ask);
    access_go_on(&call, status);
}

static void ask_closed(struct td_http_exchange *exchange, void *context)
{
    struct access_ask *ask = context;
    (void)exchange;
    td_bearer_leave(ask->bearer);
    ask_free(ask);
}

static void access_wait(struct web_access *access, const struct web_call *call,
                        struct access_ask *ask)
{
    ask->call = *call;
    ask->scope = td_text_copy(call->scope);
    ask->next = access->asks;
    ask->place = &access->asks;
    if (ask->next) {
        ask->next->place = &ask->next;
    }
    access->asks = ask;
    td_http_exchange_set_callbacks(call->exchange, NULL, ask_closed, ask);
}

void web_access_admit(const struct web_call *from)
{
    struct web_access *access = from->web->access;
    td_auto_arena arena = td_arena_capped(WEB_ARENA_BYTES_MAX);
    struct web_call call = *from;
    const struct td_http_header *header = td_http_header_get(
        call.request->headers, call.request->header_count, TD_STR("Authorization"));
    call.scope = web_parameter(&arena, call.query, "in");
    const struct td_bearer_question question = {
        .token = td_bearer_token(header ? header->value : TD_STR_EMPTY),
        .verb = TD_STR("list"),
        .group = TD_STR("autoscaling.k8s.io"),
        .resource = TD_STR("verticalpodautoscalers"),
        .namespace = call.scope,
    };
    struct access_ask *ask = td_alloc_zero(1, sizeof(*ask));
    int status = td_bearer_ask(access->bearers, &question, ask_answered, ask, &ask->bearer);
    if (status == 0) {
        access_wait(access, &call, ask);
    } else {
        td_free(ask);
        access_go_on(&call, status);
    }
}

void web_access_new(struct td_web *web)
{
    web->access = td_alloc_zero(1, sizeof(*web->access));
    web->access->bearers = td_bearers_new(web->options.loop, web->model->client, web->model->flow);
}

void web_access_free(struct web_access *access)
{
    if (!access) {
        return;
    }
    td_bearers_free(access->bearers);
    while (access->asks) {
        ask_free(access->asks);
    }
    td_free(access);
}
