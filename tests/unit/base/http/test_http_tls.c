/* The HTTP server over TLS: client certificates, rotation, half-closed and silent clients, and that
 * everything plain holds there too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/limits.h"
#include "support/http_bed.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define BLOCK_BYTES ((size_t)20000)

/* A key, a certificate made with it, and the certificates it may sign. */
struct identity {
    EVP_PKEY *key;
    X509 *certificate;
};

/* `issuer` NULL: signed by itself. `organizations` are parted by commas. */
static struct identity identity_new(const char *name, const char *organizations,
                                    const struct identity *issuer)
{
    static long serial = 1;
    struct identity identity = {.key = EVP_EC_gen("P-256"), .certificate = X509_new()};
    X509 *certificate = identity.certificate;
    assert_non_null(identity.key);
    assert_int_equal(X509_set_version(certificate, X509_VERSION_3), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), -60));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), 3600));
    assert_int_equal(X509_set_pubkey(certificate, identity.key), 1);
    X509_NAME *subject = X509_get_subject_name(certificate);
    for (td_str rest = td_str_from(organizations); rest.len > 0;) {
        size_t comma = td_str_find(rest, ',', 0);
        assert_int_equal(X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8,
                                                    (const unsigned char *)rest.ptr, (int)comma, -1,
                                                    0),
                         1);
        rest = td_str_slice(rest, comma + 1, rest.len);
    }
    assert_int_equal(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                                (const unsigned char *)name, -1, -1, 0),
                     1);
    if (!issuer) {
        X509_EXTENSION *is_authority =
            X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");
        assert_int_equal(X509_add_ext(certificate, is_authority, -1), 1);
        X509_EXTENSION_free(is_authority);
    }
    const struct identity *signer = issuer ? issuer : &identity;
    assert_int_equal(X509_set_issuer_name(certificate, X509_get_subject_name(signer->certificate)),
                     1);
    assert_true(X509_sign(certificate, signer->key, EVP_sha256()) > 0);
    return identity;
}

static void identity_done(struct identity *identity)
{
    EVP_PKEY_free(identity->key);
    X509_free(identity->certificate);
}

static SSL_CTX *server_tls(const struct identity *own, const struct identity *authority)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate(tls, own->certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(tls, own->key), 1);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(tls), authority->certificate);
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    return tls;
}

static SSL_CTX *client_tls(const struct identity *own)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    if (own) {
        assert_int_equal(SSL_CTX_use_certificate(tls, own->certificate), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(tls, own->key), 1);
    }
    return tls;
}

/* What all tests share: an authority, a server and clients with and without a certificate. */
struct world {
    struct bed bed;
    struct identity authority;
    struct identity server;
    struct identity user;
    SSL_CTX *server_tls;
    SSL_CTX *user_tls;
    SSL_CTX *nobody_tls;
    struct td_http_exchange *stream; /* the last one that was begun */
    size_t blocks_left;
    int requests;
    int streams;
    int closes;
};

static char block[BLOCK_BYTES];

static void pump(struct td_http_exchange *exchange, void *context)
{
    struct world *world = context;
    if (world->blocks_left == 0) {
        return;
    }
    while (world->blocks_left > 0 &&
           td_http_exchange_pending_bytes(exchange) < TD_HTTP_WRITE_HIGH_BYTES) {
        td_http_reply_write(exchange, (td_str){.ptr = block, .len = BLOCK_BYTES});
        world->blocks_left--;
    }
    if (world->blocks_left == 0) {
        td_http_reply_end(exchange);
    }
}

static void count_close(struct td_http_exchange *exchange, void *context)
{
    (void)exchange;
    struct world *world = context;
    world->closes++;
}

/* /watch is a stream, the rest is answered with who asked. */
static void serve(struct td_http_exchange *exchange, const struct td_http_request *request,
                  void *context)
{
    struct world *world = context;
    world->requests++;
    assert_true(request->is_tls);
    if (td_str_equal(request->target, TD_STR("/watch"))) {
        world->stream = exchange;
        td_http_exchange_set_callbacks(exchange, pump, count_close, world);
        td_http_reply_begin(exchange, 200, NULL, 0);
        world->streams++;
        pump(exchange, world);
        return;
    }
    td_auto_buf text;
    td_buf_init(&text, BED_TEXT_BYTES);
    (void)td_buf_append_format(&text, "<%d:%.*s", request->has_peer,
                               TD_STR_ARG(request->peer_name));
    for (size_t i = 0; i < request->peer_organization_count; i++) {
        (void)td_buf_append_format(&text, "|%.*s", TD_STR_ARG(request->peer_organizations[i]));
    }
    (void)td_buf_append_format(&text, ">");
    td_http_reply(exchange, 200, NULL, 0, td_buf_str(&text));
}

static void world_start(struct world *world, const struct td_http_limits *limits)
{
    *world = (struct world){.authority = identity_new("authority", "", NULL)};
    world->server = identity_new("server", "", &world->authority);
    world->user = identity_new("j\xc3\xb6rg", "team:a,team b", &world->authority);
    world->server_tls = server_tls(&world->server, &world->authority);
    world->user_tls = client_tls(&world->user);
    world->nobody_tls = client_tls(NULL);
    struct td_http_server_options options = {
        .tls = world->server_tls, .handler = serve, .context = world};
    if (limits) {
        options.limits = *limits;
    }
    bed_start(&world->bed, &options);
}

static void world_stop(struct world *world)
{
    bed_stop(&world->bed);
    identity_done(&world->authority);
    identity_done(&world->server);
    identity_done(&world->user);
    SSL_CTX_free(world->server_tls);
    SSL_CTX_free(world->user_tls);
    SSL_CTX_free(world->nobody_tls);
}

#define GET TD_STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
#define WATCH TD_STR("GET /watch HTTP/1.1\r\nHost: x\r\n\r\n")

/* The subject of a verified certificate; anonymous without one, and no entry with a foreign one. */
static void test_http_tls_knows_its_peer(void **state)
{
    (void)state;
    struct world world;
    world_start(&world, NULL);
    struct identity stranger = identity_new("admin", "masters", NULL);
    SSL_CTX *stranger_tls = client_tls(&stranger);
    const struct {
        SSL_CTX *tls;
        const char *want; /* NULL: the handshake fails */
    } rows[] = {
        {world.user_tls, "<1:j\xc3\xb6rg|team:a|team b>"},
        {world.nobody_tls, "<0:>"},
        {stranger_tls, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
            struct client client;
            client_open_sized(&world.bed, &client, rows[i].tls, 0);
            SSL_set_max_proto_version(client.ssl, version);
            client_send(&world.bed, &client, GET);
            if (rows[i].want) {
                client_expect(&world.bed, &client, rows[i].want);
                client_send(&world.bed, &client, GET); /* kept alive */
                client_expect_count(&world.bed, &client, rows[i].want, 2);
            } else {
                struct want want = {.client = &client};
                assert_true(bed_until(&world.bed, want_has_ended, &want));
                assert_true(client.is_broken);
            }
            client_close(&client);
        }
    }
    identity_done(&stranger);
    SSL_CTX_free(stranger_tls);
    world_stop(&world);
}

/* A resumed session needs no certificate again, and is still known by it. */
static void test_http_tls_resumes_sessions(void **state)
{
    (void)state;
    struct world world;
    struct client clients[2];
    world_start(&world, NULL);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        SSL_SESSION *session = NULL;
        for (size_t i = 0; i < 2; i++) {
            client_open_sized(&world.bed, &clients[i], world.user_tls, 0);
            SSL_set_max_proto_version(clients[i].ssl, version);
            if (session) {
                assert_int_equal(SSL_set_session(clients[i].ssl, session), 1);
            }
            client_send(&world.bed, &clients[i], GET);
            client_expect(&world.bed, &clients[i], "<1:j\xc3\xb6rg|team:a|team b>");
            assert_int_equal(SSL_session_reused(clients[i].ssl), i);
            SSL_SESSION_free(session);
            session = SSL_get1_session(clients[i].ssl);
        }
        SSL_SESSION_free(session);
        client_close(&clients[0]);
        client_close(&clients[1]);
    }
    world_stop(&world);
}

/* New connections get the new certificate, those open go on. */
static void test_http_tls_rotates_certificates(void **state)
{
    (void)state;
    struct world world;
    struct client clients[2];
    world_start(&world, NULL);
    client_open_sized(&world.bed, &clients[0], world.user_tls, 0);
    client_send(&world.bed, &clients[0], GET);
    client_expect(&world.bed, &clients[0], "team");
    struct identity next = identity_new("next", "", &world.authority);
    SSL_CTX *next_tls = server_tls(&next, &world.authority);
    td_http_server_set_tls(world.bed.server, next_tls);
    SSL_CTX_free(next_tls);
    client_open_sized(&world.bed, &clients[1], world.user_tls, 0);
    const char *const names[] = {"server", "next"};
    for (size_t i = 0; i < 2; i++) {
        client_send(&world.bed, &clients[i], GET);
        client_expect_count(&world.bed, &clients[i], "team b>", 2 - i);
        char name[64];
        X509 *certificate = SSL_get0_peer_certificate(clients[i].ssl);
        (void)X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                                        sizeof(name));
        assert_string_equal(name, names[i]);
        client_close(&clients[i]);
    }
    identity_done(&next);
    world_stop(&world);
}

/* Who speaks plain HTTP is told so; who says nothing is cut off. */
static void test_http_tls_handshake_failures(void **state)
{
    (void)state;
    const struct td_http_limits limits = {.handshake_time = 100 * TD_MILLISECOND};
    struct world world;
    struct client client;
    world_start(&world, &limits);
    client_open(&world.bed, &client);
    client_send(&world.bed, &client, GET);
    client_expect_end(&world.bed, &client);
    assert_int_equal(bed_status(&client), 400);
    assert_true(
        client_has(&client, "\r\n\r\nthis port speaks HTTPS, the request was plain HTTP.\n"));
    client_close(&client);
    static const char *const rows[] = {"", "\x16\x03\x01", "\x16\x03\x01\xff\xff\xff\xff", "\r\n"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        client_open(&world.bed, &client);
        client_send(&world.bed, &client, td_str_from(rows[i]));
        struct want want = {.client = &client};
        assert_true(bed_until(&world.bed, want_has_ended, &want));
        client_close(&client);
    }
    assert_int_equal(world.requests, 0);
    assert_int_equal(td_http_server_connections(world.bed.server), 0);
    world_stop(&world);
}

/* 8 MB are refused readably, and many requests in one go are all answered, though they are more
 * than the server reads ahead. */
static void test_http_tls_refuses_and_pipelines(void **state)
{
    (void)state;
    struct world world;
    struct client client;
    world_start(&world, NULL);
    client_open_sized(&world.bed, &client, world.nobody_tls, 0);
    char *text = calloc(1, 8000000);
    assert_non_null(text);
    client_send(&world.bed, &client,
                TD_STR("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n"));
    client_send(&world.bed, &client, (td_str){.ptr = text, .len = 8000000});
    assert_false(client.is_broken);
    client_expect_end(&world.bed, &client);
    assert_int_equal(bed_status(&client), 413);
    client_close(&client);
    free(text);

    td_auto_buf many;
    td_buf_init(&many, (size_t)8 << 20);
    const size_t count = 3000;
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append(&many,
                            TD_STR("GET / HTTP/1.1\r\nHost: x\r\nX: 0123456789012345678901234"
                                   "56789012345678901234567890123456789\r\n\r\n"));
    }
    client_open_sized(&world.bed, &client, world.nobody_tls, 0);
    client_send(&world.bed, &client, td_buf_str(&many));
    client_expect_count(&world.bed, &client, "<0:>", count);
    client_close(&client);
    world_stop(&world);
}

/* A client that says TLS's goodbye keeps its claim to what is finite; an idle stream is over. */
static void test_http_tls_half_closed(void **state)
{
    (void)state;
    struct world world;
    struct client client;
    world_start(&world, NULL);
    client_open_sized(&world.bed, &client, world.nobody_tls, 0);
    world.blocks_left = 200;
    client_send(&world.bed, &client, WATCH);
    (void)SSL_shutdown(client.ssl);
    client_expect_end(&world.bed, &client);
    assert_true(client_has(&client, "0\r\n\r\n"));
    assert_true(client.in.len > 200 * BLOCK_BYTES);
    assert_int_equal(world.closes, 0);
    client_close(&client);

    client_open_sized(&world.bed, &client, world.nobody_tls, 0);
    client_send(&world.bed, &client, WATCH);
    client_expect(&world.bed, &client, "chunked\r\n\r\n");
    (void)SSL_shutdown(client.ssl);
    client_expect_end(&world.bed, &client);
    bed_expect_count(&world.bed, &world.closes, 1);
    assert_int_equal(td_http_server_connections(world.bed.server), 0);
    client_close(&client);
    world_stop(&world);
}

/* A client that leaves with a goodbye, a plain end or a reset while much is unsent: on_close once,
 * and the server does not spin on its dead socket. */
static void test_http_tls_client_leaves(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct world world;
        struct client client;
        world_start(&world, NULL);
        client_open_sized(&world.bed, &client, world.nobody_tls, 4096);
        world.blocks_left = way == 3 ? 0 : 100000;
        client_send(&world.bed, &client, WATCH);
        client_expect(&world.bed, &client, "chunked\r\n\r\n");
        bed_run(&world.bed, 10);
        if (way == 0) {
            (void)SSL_shutdown(client.ssl);
        }
        const struct linger at_once = {.l_onoff = way == 1, .l_linger = 0};
        (void)setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        client_close(&client);
        bed_expect_count(&world.bed, &world.closes, 1);
        bed_run(&world.bed, 10);
        assert_int_equal(world.closes, 1);
        assert_int_equal(td_http_server_connections(world.bed.server), 0);
        world_stop(&world);
    }
}

static void give_back(void *arg)
{
    int *count = arg;
    (*count)++;
}

/* Pieces of every size by reference arrive whole and in order. */
static void test_http_tls_references(void **state)
{
    (void)state;
    struct world world;
    struct client client;
    int released = 0;
    world_start(&world, NULL);
    client_open_sized(&world.bed, &client, world.nobody_tls, 0);
    client_send(&world.bed, &client, WATCH);
    bed_expect_count(&world.bed, &world.streams, 1);
    static char bytes[40000];
    memset(bytes, 'r', sizeof(bytes));
    static const size_t sizes[] = {1, 512, 513, 16384, 16385, 40000};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        td_http_reply_write_ref(world.stream, (td_str){.ptr = bytes, .len = sizes[i]}, give_back,
                                &released);
    }
    td_http_reply_end(world.stream);
    client_expect(&world.bed, &client, "r\r\n0\r\n\r\n");
    assert_int_equal(released, COUNT(sizes));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char line[32];
        (void)snprintf(line, sizeof(line), "\n%zx\r\nr", sizes[i]);
        assert_true(client_has(&client, line));
    }
    client_close(&client);
    world_stop(&world);
}

int main(void)
{
    memset(block, 'b', sizeof(block));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_tls_knows_its_peer),
        cmocka_unit_test(test_http_tls_resumes_sessions),
        cmocka_unit_test(test_http_tls_rotates_certificates),
        cmocka_unit_test(test_http_tls_handshake_failures),
        cmocka_unit_test(test_http_tls_refuses_and_pipelines),
        cmocka_unit_test(test_http_tls_half_closed),
        cmocka_unit_test(test_http_tls_client_leaves),
        cmocka_unit_test(test_http_tls_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
