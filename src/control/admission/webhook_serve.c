/*
 * The HTTPS side: any path, a JSON body, an answer at once. A review about a pod whose owner is not
 * known yet (a ReplicaSet that is a moment old) is held, until the deadline, when the pod is let
 * through as it is. What is kept of it besides its bytes is the question that it waits for: that is
 * asked again and again, and the review is read again once there is an answer. Times here are the
 * machine's: the API server waits by them.
 */
#include <openssl/ssl.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/http/http_server.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "control/admission/webhook_private.h"

#define SERVE_RETRY (25 * TD_MILLISECOND)
#define SERVE_SLICE (10 * TD_MILLISECOND) /* of trying again, at one go */
#define SERVE_PAUSE TD_MILLISECOND        /* between two slices */
#define SERVE_QUESTION_BYTES 512          /* names are mostly this short, five of them */

struct serve_waiting {
    struct webhook_server *server;
    struct td_http_exchange *exchange;
    td_str body;       /* lives as long as the exchange */
    td_duration since; /* when it came, of the machine's steady time */
    td_duration again; /* not read before, whatever is learnt */
    struct webhook_question question;
    struct td_arena texts; /* of the question */
    struct serve_waiting *next;
    struct serve_waiting *previous;
};

struct webhook_server {
    struct td_webhook *webhook;
    struct td_http_server *http;
    struct ssl_ctx_st *tls; /* that it serves with */
    struct td_timer *retry;
    struct serve_waiting *first;
    struct serve_waiting *next; /* to be tried in the next slice; NULL: the first */
    size_t waiting_count;
};

static td_duration serve_now(const struct webhook_server *server)
{
    return td_clock_machine(td_loop_clock(server->webhook->options.control.loop));
}

static void serve_reply(struct td_http_exchange *exchange, td_str answer)
{
    static const struct td_http_header type = {TD_STR_INIT("Content-Type"),
                                               TD_STR_INIT("application/json")};
    td_http_reply(exchange, 200, &type, 1, answer);
}

/* ---- Those that wait ---- */

static void serve_forget(struct serve_waiting *waiting)
{
    struct webhook_server *server = waiting->server;
    *(waiting->previous ? &waiting->previous->next : &server->first) = waiting->next;
    if (waiting->next) {
        waiting->next->previous = waiting->previous;
    }
    server->next = server->next == waiting ? waiting->next : server->next;
    server->waiting_count--;
    td_arena_done(&waiting->texts);
    td_free(waiting);
}

static void serve_gone(struct td_http_exchange *exchange, void *context)
{
    (void)exchange;
    serve_forget(context);
}

/* The texts of the question are of a review that is over. What only the review itself can tell is
 * asked after as long as it has waited: a handful of times up to any deadline. */
static void serve_keep_question(struct serve_waiting *waiting,
                                const struct webhook_question *question)
{
    const struct td_controller *about = &question->controller;
    td_duration now = serve_now(waiting->server);
    td_duration waited = now - waiting->since;
    td_arena_reset(&waiting->texts);
    waiting->again = question->kind == WEBHOOK_ASKS_REVIEW
                         ? now + (waited > SERVE_RETRY ? waited : SERVE_RETRY)
                         : now;
    waiting->question = (struct webhook_question){
        .kind = question->kind,
        .controller = {.namespace = td_arena_copy_str(&waiting->texts, about->namespace),
                       .api_version = td_arena_copy_str(&waiting->texts, about->api_version),
                       .kind = td_arena_copy_str(&waiting->texts, about->kind),
                       .name = td_arena_copy_str(&waiting->texts, about->name),
                       .uid = td_arena_copy_str(&waiting->texts, about->uid)},
    };
}

static void serve_wait(struct webhook_server *server, struct td_http_exchange *exchange,
                       td_str body, td_duration since, const struct webhook_question *question)
{
    struct serve_waiting *waiting = td_alloc_zero(1, sizeof(*waiting));
    *waiting = (struct serve_waiting){
        .server = server,
        .exchange = exchange,
        .body = body,
        .since = since,
        .next = server->first,
    };
    td_arena_init_exact(&waiting->texts, SERVE_QUESTION_BYTES, TD_WEBHOOK_BODY_BYTES_MAX);
    serve_keep_question(waiting, question);
    if (server->first) {
        server->first->previous = waiting;
    }
    server->first = waiting;
    server->waiting_count++;
    td_http_exchange_set_callbacks(exchange, NULL, serve_gone, waiting);
    if (!td_timer_is_set(server->retry)) {
        td_timer_set_machine(server->retry, SERVE_RETRY);
    }
}

/* A review is read again when what it waits for is known, or its time is over. */
static void serve_try(struct webhook_server *server, struct serve_waiting *waiting)
{
    td_auto_buf answer = td_buf_capped(TD_WEBHOOK_ANSWER_BYTES_MAX);
    td_duration now = serve_now(server);
    struct webhook_question question = {.kind = WEBHOOK_ASKS_REVIEW};
    const struct webhook_attempt attempt = {
        .is_last = now - waiting->since >= server->webhook->options.deadline,
        .can_wait = true,
        .since = waiting->since,
        .question = &question,
    };
    if (!attempt.is_last &&
        (now < waiting->again || webhook_question_is_open(server->webhook, &waiting->question))) {
        return;
    }
    /* It was judged before, so it is not too large. */
    if (webhook_review_try(server->webhook, waiting->body, &attempt, &answer) == TD_BUSY) {
        serve_keep_question(waiting, &question);
        return;
    }
    struct td_http_exchange *exchange = waiting->exchange;
    td_http_exchange_set_callbacks(exchange, NULL, NULL, NULL);
    serve_forget(waiting);
    serve_reply(exchange, td_buf_str(&answer));
}

/* A pass over many is cut into slices; those not yet tried in this pass are first in the next
 * slice. */
static void serve_retry(struct td_timer *timer, void *context)
{
    struct webhook_server *server = context;
    td_duration end = serve_now(server) + SERVE_SLICE;
    struct serve_waiting *waiting = server->next ? server->next : server->first;
    while (waiting && serve_now(server) < end) {
        server->next = waiting->next;
        serve_try(server, waiting);
        waiting = server->next;
    }
    server->next = waiting;
    if (server->first) {
        td_timer_set_machine(timer, waiting ? SERVE_PAUSE : SERVE_RETRY);
    }
}

void webhook_server_retry(struct webhook_server *server)
{
    if (!server || !server->first) {
        return;
    }
    for (struct serve_waiting *waiting = server->first; waiting; waiting = waiting->next) {
        waiting->again = 0;
    }
    td_timer_set_machine(server->retry, 0);
}

/* ---- Requests ---- */

static bool serve_is_json(const struct td_http_request *request)
{
    const struct td_http_header *type =
        td_http_header_get(request->headers, request->header_count, TD_STR("Content-Type"));
    td_str media =
        type ? td_str_slice(type->value, 0, td_str_find(type->value, ';', 0)) : TD_STR_EMPTY;
    return td_http_text_equal(td_str_trim(media), TD_STR("application/json"));
}

static void serve_request(struct td_http_exchange *exchange, const struct td_http_request *request,
                          void *context)
{
    struct webhook_server *server = context;
    if (server->webhook->options.client_ca_pem.len > 0 && !request->has_peer) {
        td_http_reply(exchange, 401, NULL, 0, TD_STR("a client certificate is needed"));
        return;
    }
    if (!serve_is_json(request)) {
        td_http_reply(exchange, 200, NULL, 0, TD_STR_EMPTY);
        return;
    }
    if (request->body.len > TD_WEBHOOK_BODY_BYTES_MAX) {
        td_http_reply(exchange, 413, NULL, 0, TD_STR("request payload too large"));
        return;
    }
    td_auto_buf answer = td_buf_capped(TD_WEBHOOK_ANSWER_BYTES_MAX);
    struct webhook_question question = {.kind = WEBHOOK_ASKS_REVIEW};
    const struct webhook_attempt attempt = {
        .question = &question,
        .is_last = server->webhook->options.deadline <= 0 ||
                   server->waiting_count >= TD_WEBHOOK_WAITING_MAX,
        .can_wait = true,
        .since = serve_now(server),
    };
    int code = webhook_review_try(server->webhook, request->body, &attempt, &answer);
    if (code == TD_BUSY) {
        serve_wait(server, exchange, request->body, attempt.since, &question);
        return;
    }
    if (code == TD_LIMIT) {
        /* An error of the call, not of the object: the registration's failurePolicy decides. */
        td_http_reply(exchange, 413, NULL, 0,
                      TD_STR("the AdmissionReview has too many JSON values"));
        return;
    }
    td_duration began = serve_now(server);
    serve_reply(exchange, td_buf_str(&answer));
    (void)webhook_metrics_step(server->webhook, "write_response", began);
}

int webhook_server_new(struct td_webhook *webhook, struct ssl_ctx_st *tls,
                       struct webhook_server **ret, struct td_error *err)
{
    struct webhook_server *server = td_alloc_zero(1, sizeof(*server));
    server->webhook = webhook;
    const struct td_http_server_options options = {
        .loop = webhook->options.control.loop,
        .address = webhook->options.listen,
        .tls = tls,
        .handler = serve_request,
        .context = server,
        /* A little more than is taken, so that it is refused here in words that are known. */
        .limits = {.request = {.body_bytes_max = TD_WEBHOOK_BODY_BYTES_MAX + 1}},
    };
    int code = td_http_server_new(&options, &server->http, err);
    if (code != TD_OK) {
        td_free(server);
        return code;
    }
    server->retry = td_timer_new(webhook->options.control.loop, serve_retry, server);
    (void)SSL_CTX_up_ref(tls); /* of one that is held cannot fail */
    server->tls = tls;
    *ret = server;
    return TD_OK;
}

void webhook_server_free(struct webhook_server *server)
{
    if (!server) {
        return;
    }
    td_http_server_free(server->http); /* those that wait are told that they are gone */
    td_timer_free(server->retry);
    SSL_CTX_free(server->tls);
    td_free(server);
}

uint16_t webhook_server_port(const struct webhook_server *server)
{
    return td_http_server_port(server->http);
}

void webhook_server_set_tls(struct webhook_server *server, struct ssl_ctx_st *tls)
{
    td_http_server_set_tls(server->http, tls);
    (void)SSL_CTX_up_ref(tls); /* of one that is held cannot fail */
    SSL_CTX_free(server->tls);
    server->tls = tls;
    for (size_t i = 0; i < server->webhook->follower_count; i++) {
        server->webhook->followers[i].fn(server->webhook->followers[i].context, tls);
    }
}

void td_webhook_follow_tls(struct td_webhook *webhook,
                           void (*fn)(void *context, struct ssl_ctx_st *tls), void *context)
{
    td_assert(webhook->follower_count < TD_COUNT(webhook->followers));
    webhook->followers[webhook->follower_count++] = (struct webhook_follower){fn, context};
    if (webhook->server) {
        fn(context, webhook->server->tls);
    }
}
