/*
 * What a library's failed allocation is an error of, not an end: keys and certificates, contexts of
 * TLS, a loop, a server and a client that ask each other over TLS. Every step is done whatever
 * became of those before it, and everything is freed: alloc_failure.py lets one allocation fail
 * after the other, and looks for a crash, a hang, and what is left. Exit status 0 always.
 */
#include <openssl/ssl.h>

#include "base/error.h"
#include "base/http/http_server.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "base/pki/pki.h"
#include "kube/client/transport_http.h"
#include "kube/kubeconfig/kubeconfig.h"

#define CALL_TIME (2 * TD_SECOND)
#define WHOLE_TIME (5 * TD_SECOND) /* then it is given up */

/* ---- Keys and certificates ---- */

struct keys {
    struct td_pki_pair ca;
    struct td_pki_pair server;
    struct td_pki_pair client;
    struct ssl_ctx_st *tls;
};

static void keys_make(struct keys *keys, const struct td_clock *clock)
{
    static const td_str name = TD_STR_INIT("localhost");
    static const td_str address = TD_STR_INIT("127.0.0.1");
    const struct td_instant now = {.unix_seconds = td_clock_wall(clock) / TD_SECOND};
    const struct td_pki_names names = {
        .common_name = name,
        .dns_names = &name,
        .dns_count = 1,
        .ip_addresses = &address,
        .ip_count = 1,
    };
    const struct td_pki_user user = {.name = name, .groups = &name, .group_count = 1};
    struct td_pki_validity validity;
    *keys = (struct keys){.tls = NULL};
    td_pki_pair_init(&keys->ca);
    td_pki_pair_init(&keys->server);
    td_pki_pair_init(&keys->client);
    (void)td_pki_make_ca(name, now, &keys->ca, NULL);
    td_str certificate = td_buf_str(&keys->ca.certificate_pem);
    td_str key = td_buf_str(&keys->ca.key_pem);
    (void)td_pki_issue_server(certificate, key, &names, now, &keys->server, NULL);
    (void)td_pki_issue_client(certificate, key, &user, now, &keys->client, NULL);
    (void)td_pki_validity_of(td_buf_str(&keys->server.certificate_pem), &validity, NULL);
    (void)td_pki_check_pair(td_buf_str(&keys->server.certificate_pem),
                            td_buf_str(&keys->server.key_pem), NULL);
    const struct td_pki_server server = {
        .certificate_pem = td_buf_str(&keys->server.certificate_pem),
        .key_pem = td_buf_str(&keys->server.key_pem),
        .client_ca_pem = certificate,
    };
    (void)td_pki_server_context(&server, &keys->tls, NULL);
}

static void keys_done(struct keys *keys)
{
    SSL_CTX_free(keys->tls);
    td_pki_pair_done(&keys->client);
    td_pki_pair_done(&keys->server);
    td_pki_pair_done(&keys->ca);
}

/* ---- One call over TLS ---- */

static void answer(struct td_http_exchange *exchange, const struct td_http_request *request,
                   void *context)
{
    (void)request;
    (void)context;
    td_http_reply(exchange, 200, NULL, 0, TD_STR("well"));
}

static void ignore_head(void *context, const struct td_call_head *head)
{
    (void)context;
    (void)head;
}

static void ignore_body(void *context, td_str bytes)
{
    (void)context;
    (void)bytes;
}

static void call_end(void *context, int code, const struct td_error *err)
{
    (void)code; /* an error is as good as an answer */
    (void)err;
    td_loop_stop(context);
}

static void give_up(struct td_timer *timer, void *context)
{
    (void)timer;
    td_loop_stop(context);
}

static void call_once(struct td_loop *loop, struct td_http_server *server, const struct keys *keys)
{
    static const struct td_call_events events = {
        .head = ignore_head, .body = ignore_body, .end = call_end};
    const struct td_kube_config config = {
        .source = TD_STR("here"),
        .is_tls = true,
        .host = TD_STR("127.0.0.1"),
        .port = td_http_server_port(server),
        .server = TD_STR("https://127.0.0.1"),
        .ca_pem = td_buf_str(&keys->ca.certificate_pem),
        .certificate_pem = td_buf_str(&keys->client.certificate_pem),
        .key_pem = td_buf_str(&keys->client.key_pem),
    };
    const struct td_transport_http_options options = {.loop = loop, .config = &config};
    struct td_transport *transport = NULL;
    if (td_transport_http_new(&options, &transport, NULL) != TD_OK) {
        return;
    }
    const struct td_call_request request = {
        .method = TD_STR("GET"), .path = TD_STR("/"), .deadline = CALL_TIME};
    struct td_timer *limit = td_timer_new(loop, give_up, loop);
    td_timer_set(limit, WHOLE_TIME);
    (void)transport->ops->start(transport, &request, &events, loop);
    (void)td_loop_run(loop, NULL);
    td_timer_free(limit);
    transport->ops->free(transport);
}

int main(void)
{
    struct keys keys;
    struct td_clock clock = td_clock_real();
    struct td_loop *loop = NULL;
    struct td_http_server *server = NULL;
    keys_make(&keys, &clock);
    if (td_loop_new(&clock, &loop, NULL) == TD_OK) {
        const struct td_http_server_options options = {
            .loop = loop, .address = "127.0.0.1:0", .tls = keys.tls, .handler = answer};
        if (keys.tls && td_http_server_new(&options, &server, NULL) == TD_OK) {
            call_once(loop, server, &keys);
        }
        td_http_server_free(server);
        td_loop_free(loop);
    }
    keys_done(&keys);
    return 0;
}
