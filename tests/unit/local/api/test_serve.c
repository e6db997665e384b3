/*
 * The API handler behind HTTP and HTTPS: who asks is found by certificate and token, whole answers
 * have a length, streams obey the client's pace, and clients may go at any time.
 */
#include "support/http_bed.h"

#include <openssl/pem.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/pki/pki.h"
#include "base/timefmt.h"
#include "local/api/api.h"
#include "local/api/serve.h"
#include "local/auth/auth.h"
#include "local/store/store.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ADMIN "Authorization: Bearer 0123456789abcdef\r\n"
#define MAPS "/api/v1/namespaces/ns/configmaps"

struct serve_bed {
    struct bed bed; /* without its server */
    struct td_store *store;
    struct td_auth *auth;
    struct td_api *api;
    struct td_serve *serve;
    struct td_pki_pair ca;
    SSL_CTX *tls; /* the server's; NULL: plain */
};

static struct td_instant now(struct serve_bed *serve)
{
    return td_time_to_instant(td_clock_wall(&serve->bed.clock));
}

static void make_tls(struct serve_bed *serve)
{
    td_auto_pki_pair own;
    td_pki_pair_init(&own);
    static const td_str ips[] = {TD_STR_INIT("127.0.0.1")};
    const struct td_pki_names names = {
        .common_name = TD_STR("server"), .ip_addresses = ips, .ip_count = 1};
    assert_int_equal(td_pki_make_ca(TD_STR("ca"), now(serve), &serve->ca, NULL), TD_OK);
    td_str ca = td_buf_str(&serve->ca.certificate_pem);
    assert_int_equal(
        td_pki_issue_server(ca, td_buf_str(&serve->ca.key_pem), &names, now(serve), &own, NULL),
        TD_OK);
    const struct td_pki_server server = {.certificate_pem = td_buf_str(&own.certificate_pem),
                                         .key_pem = td_buf_str(&own.key_pem),
                                         .client_ca_pem = ca};
    assert_int_equal(td_pki_server_context(&server, &serve->tls, NULL), TD_OK);
}

static void serve_start(struct serve_bed *serve, bool is_tls)
{
    *serve = (struct serve_bed){.bed = {.clock = td_clock_real()}};
    td_pki_pair_init(&serve->ca);
    assert_int_equal(td_loop_new(&serve->bed.clock, &serve->bed.loop, NULL), TD_OK);
    serve->bed.tick = td_timer_new(serve->bed.loop, bed_on_tick, &serve->bed);
    assert_int_equal(td_store_new(serve->bed.loop, NULL, &serve->store, NULL), TD_OK);
    const struct td_auth_options auth = {.store = serve->store,
                                         .clock = &serve->bed.clock,
                                         .token_key = TD_STR("key"),
                                         .admin_token = TD_STR("0123456789abcdef")};
    serve->auth = td_auth_new(&auth);
    const struct td_api_options api = {
        .loop = serve->bed.loop, .store = serve->store, .auth = serve->auth, .seed = 1};
    assert_int_equal(td_api_new(&api, &serve->api, NULL), TD_OK);
    if (is_tls) {
        make_tls(serve);
    }
    const struct td_serve_options options = {.loop = serve->bed.loop,
                                             .api = serve->api,
                                             .auth = serve->auth,
                                             .address = "127.0.0.1:0",
                                             .tls = serve->tls};
    assert_int_equal(td_serve_new(&options, &serve->serve, NULL), TD_OK);
}

static void serve_stop(struct serve_bed *serve)
{
    td_serve_free(serve->serve);
    td_api_free(serve->api);
    td_auth_free(serve->auth);
    td_store_free(serve->store);
    td_timer_free(serve->bed.tick);
    td_loop_free(serve->bed.loop);
    td_pki_pair_done(&serve->ca);
    SSL_CTX_free(serve->tls);
}

static void send_text(struct serve_bed *serve, struct client *client, const char *method,
                      const char *target, const char *headers, const char *body)
{
    char text[4096];
    int len =
        snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n%s",
                 method, target, headers, strlen(body), body);
    assert_true(len > 0 && (size_t)len < sizeof(text));
    client_send(&serve->bed, client, (td_str){.ptr = text, .len = (size_t)len});
}

/* One request on a connection of its own; the answer up to `until` is left in client->in. */
static int ask(struct serve_bed *serve, struct client *client, SSL_CTX *tls, const char *method,
               const char *target, const char *headers, const char *body, const char *until)
{
    client_connect(client, td_serve_port(serve->serve), tls, 0);
    send_text(serve, client, method, target, headers, body);
    client_expect(&serve->bed, client, until);
    return bed_status(client);
}

static void make_namespace(struct serve_bed *serve, SSL_CTX *tls)
{
    struct client client;
    assert_int_equal(ask(serve, &client, tls, "POST", "/api/v1/namespaces",
                         ADMIN "Content-Type: application/json\r\n",
                         "{\"metadata\":{\"name\":\"ns\"}}", "}}"),
                     201);
    client_close(&client);
}

/* Small whole answers carry their length; long ones and streams are chunked. */
static void test_framing(void **state)
{
    (void)state;
    struct serve_bed serve;
    serve_start(&serve, false);
    make_namespace(&serve, NULL);
    static const struct {
        const char *target;
        const char *until;
        int status;
        bool is_chunked;
    } rows[] = {
        {"/version", "gitVersion", 200, false},
        {"/api/v1/namespaces/ns", "\"name\":\"ns\"", 200, false},
        {MAPS "/none", "NotFound", 404, false},
        {"/openapi/v2", "swagger", 200, true},
        {"/api/v1/namespaces?watch=1", "ADDED", 200, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct client client;
        int status = ask(&serve, &client, NULL, "GET", rows[i].target, ADMIN, "", rows[i].until);
        assert_int_equal(status, rows[i].status);
        assert_int_equal(client_has(&client, "Transfer-Encoding: chunked"), rows[i].is_chunked);
        assert_int_equal(client_has(&client, "Content-Length: "), !rows[i].is_chunked);
        assert_true(client_has(&client, "Audit-Id: "));
        client_close(&client);
    }
    serve_stop(&serve);
}

/* Several requests on one connection are answered in order. */
static void test_keep_alive(void **state)
{
    (void)state;
    struct serve_bed serve;
    serve_start(&serve, false);
    struct client client;
    (void)ask(&serve, &client, NULL, "GET", "/healthz", ADMIN, "", "ok");
    send_text(&serve, &client, "GET", "/api/v1/namespaces", ADMIN, "");
    client_expect(&serve.bed, &client, "NamespaceList");
    send_text(&serve, &client, "GET", "/nope", ADMIN, "");
    client_expect(&serve.bed, &client, "404 page not found");
    client_close(&client);
    serve_stop(&serve);
}

/* Who cannot be identified gets a 401, who may not a 403, both as a Status. */
static void test_refusals(void **state)
{
    (void)state;
    struct serve_bed serve;
    serve_start(&serve, false);
    static const struct {
        const char *headers;
        int status;
        const char *text;
    } rows[] = {
        {"Authorization: Bearer wrong\r\n", 401,
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
         "\"message\":\"Unauthorized\",\"reason\":\"Unauthorized\",\"code\":401}"},
        {"", 403, "User \\\"system:anonymous\\\" cannot list resource \\\"pods\\\""},
        {ADMIN "Impersonate-User: bob\r\n", 403,
         "User \\\"bob\\\" cannot list resource \\\"pods\\\""},
        {"Impersonate-User: bob\r\n", 403,
         "users \\\"bob\\\" is forbidden: User \\\"system:anonymous\\\" cannot impersonate"},
        {ADMIN "impersonate-user: bob\r\nIMPERSONATE-GROUP: system:masters\r\n", 200, "PodList"},
        {ADMIN "Impersonate-Extra-Reason: x\r\n", 403, "extra fields"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct client client;
        int status =
            ask(&serve, &client, NULL, "GET", "/api/v1/pods", rows[i].headers, "", rows[i].text);
        assert_int_equal(status, rows[i].status);
        assert_true(client_has(&client, "Content-Type: application/json"));
        client_close(&client);
    }
    serve_stop(&serve);
}

static SSL_CTX *client_tls(struct serve_bed *serve, const char *user, const char *group)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    assert_non_null(tls);
    if (!user) {
        return tls;
    }
    td_auto_pki_pair pair;
    td_pki_pair_init(&pair);
    const td_str groups[] = {td_str_from(group)};
    const struct td_pki_user who = {
        .name = td_str_from(user), .groups = groups, .group_count = group ? 1 : 0};
    assert_int_equal(td_pki_issue_client(td_buf_str(&serve->ca.certificate_pem),
                                         td_buf_str(&serve->ca.key_pem), &who, now(serve), &pair,
                                         NULL),
                     TD_OK);
    td_str certificate = td_buf_str(&pair.certificate_pem);
    td_str key = td_buf_str(&pair.key_pem);
    BIO *certificate_bio = BIO_new_mem_buf(certificate.ptr, (int)certificate.len);
    BIO *key_bio = BIO_new_mem_buf(key.ptr, (int)key.len);
    X509 *x509 = PEM_read_bio_X509(certificate_bio, NULL, NULL, NULL);
    EVP_PKEY *private = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL);
    assert_int_equal(SSL_CTX_use_certificate(tls, x509), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(tls, private), 1);
    X509_free(x509);
    EVP_PKEY_free(private);
    BIO_free(certificate_bio);
    BIO_free(key_bio);
    return tls;
}

/* A client certificate names user and groups; none is anonymous. */
static void test_certificates(void **state)
{
    (void)state;
    struct serve_bed serve;
    serve_start(&serve, true);
    static const struct {
        const char *user;
        const char *group;
        int status;
        const char *text;
    } rows[] = {
        {"root", "system:masters", 201,
         "\"username\":\"root\",\"groups\":[\"system:masters\",\"system:authenticated\"]"},
        {"eve", "dev", 403, "User \\\"eve\\\" cannot create"},
        {"eve", NULL, 403, "User \\\"eve\\\" cannot create"},
        {NULL, NULL, 403, "User \\\"system:anonymous\\\" cannot create"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        SSL_CTX *tls = client_tls(&serve, rows[i].user, rows[i].group);
        struct client client;
        int status =
            ask(&serve, &client, tls, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                "Content-Type: application/json\r\n", "{}", rows[i].text);
        assert_int_equal(status, rows[i].status);
        client_close(&client);
        SSL_CTX_free(tls);
    }
    serve_stop(&serve);
}

static void make_map(struct serve_bed *serve, size_t number, size_t bytes)
{
    char *value = td_alloc(bytes + 1);
    memset(value, 'x', bytes);
    value[bytes] = '\0';
    char *text = td_alloc(bytes + 512);
    int body =
        snprintf(text, bytes + 512, "{\"metadata\":{\"name\":\"m%zu\"},\"data\":{\"k\":\"%s\"}}",
                 number, value);
    char head[512];
    int len = snprintf(head, sizeof(head),
                       "POST " MAPS " HTTP/1.1\r\nHost: x\r\n" ADMIN
                       "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n",
                       body);
    struct client client;
    client_connect(&client, td_serve_port(serve->serve), NULL, 0);
    client_send(&serve->bed, &client, (td_str){.ptr = head, .len = (size_t)len});
    client_send(&serve->bed, &client, (td_str){.ptr = text, .len = (size_t)body});
    client_expect(&serve->bed, &client, "HTTP/1.1 201");
    client_close(&client);
    td_free(text);
    td_free(value);
}

/* A client that goes during a watch takes nothing along, and others go on. */
static void test_client_goes_during_a_watch(void **state)
{
    (void)state;
    struct serve_bed serve;
    serve_start(&serve, false);
    make_namespace(&serve, NULL);
    struct client one;
    struct client two;
    (void)ask(&serve, &one, NULL, "GET", MAPS "?watch=1", ADMIN, "", "\r\n\r\n");
    (void)ask(&serve, &two, NULL, "GET", MAPS "?watch=1", ADMIN, "", "\r\n\r\n");
    make_map(&serve, 1, 10);
    client_expect(&serve.bed, &one, "\"m1\"");
    client_close(&one);
    bed_run(&serve.bed, 5);
    make_map(&serve, 2, 10);
    client_expect(&serve.bed, &two, "\"m2\"");
    client_close(&two);
    bed_run(&serve.bed, 5);
    serve_stop(&serve);
}

/* A slow reader of a long list gets all of it, and the server holds little of it at a time. */
static void test_slow_reader(void **state)
{
    (void)state;
    struct serve_bed serve;
    serve_start(&serve, false);
    make_namespace(&serve, NULL);
    for (size_t i = 0; i < 30; i++) {
        make_map(&serve, i, 200000);
    }
    struct client client;
    client_connect(&client, td_serve_port(serve.serve), NULL, 4096);
    send_text(&serve, &client, "GET", MAPS, ADMIN, "");
    for (size_t i = 0; i < 20; i++) {
        bed_run(&serve.bed, 2);
        client_read(&client, 10000);
    }
    assert_true(client.in.len <= 200000);
    client_expect(&serve.bed, &client, "\r\n0\r\n\r\n");
    assert_true(client_has(&client, "\"m29\""));
    assert_true(client.in.len > 6000000);
    client_close(&client);
    serve_stop(&serve);
}

/* The server goes with everything open. */
static void test_server_goes(void **state)
{
    (void)state;
    struct serve_bed serve;
    serve_start(&serve, false);
    make_namespace(&serve, NULL);
    make_map(&serve, 1, 1000000);
    struct client watching;
    struct client slow;
    (void)ask(&serve, &watching, NULL, "GET", MAPS "?watch=1", ADMIN, "", "ADDED");
    client_connect(&slow, td_serve_port(serve.serve), NULL, 4096);
    send_text(&serve, &slow, "GET", MAPS, ADMIN, "");
    bed_run(&serve.bed, 5);
    serve_stop(&serve);
    client_close(&watching);
    client_close(&slow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_framing),
        cmocka_unit_test(test_keep_alive),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_client_goes_during_a_watch),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_server_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
