/* TLS of the transport: who is trusted, under which name, and certificates that rotate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/pki/pki.h"
#include "support/transport_bed.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* An authority, a server under it with two names, and the last request that reached it. */
struct world {
    struct td_pki_pair ca;
    struct td_pki_pair other_ca;
    struct td_pki_pair server;
    SSL_CTX *tls;
    char user[64];
    char request[1024];
    size_t connection;
    bool is_open; /* answers are not ended */
};

static struct td_instant now(void)
{
    struct td_clock clock = td_clock_real();
    return td_time_to_instant(td_clock_wall(&clock));
}

static void world_init(struct world *world, td_str dns_name)
{
    *world = (struct world){.tls = NULL};
    td_pki_pair_init(&world->ca);
    td_pki_pair_init(&world->other_ca);
    td_pki_pair_init(&world->server);
    assert_int_equal(td_pki_make_ca(TD_STR("ca"), now(), &world->ca, NULL), TD_OK);
    assert_int_equal(td_pki_make_ca(TD_STR("other"), now(), &world->other_ca, NULL), TD_OK);
    const td_str addresses[] = {TD_STR("127.0.0.1")};
    const struct td_pki_names names = {
        .common_name = TD_STR("server"),
        .dns_names = &dns_name,
        .dns_count = dns_name.len > 0 ? 1 : 0,
        .ip_addresses = addresses,
        .ip_count = dns_name.len > 0 ? 0 : 1,
    };
    assert_int_equal(td_pki_issue_server(td_buf_str(&world->ca.certificate_pem),
                                         td_buf_str(&world->ca.key_pem), &names, now(),
                                         &world->server, NULL),
                     TD_OK);
    const struct td_pki_server server = {
        .certificate_pem = td_buf_str(&world->server.certificate_pem),
        .key_pem = td_buf_str(&world->server.key_pem),
        .client_ca_pem = td_buf_str(&world->ca.certificate_pem),
    };
    assert_int_equal(td_pki_server_context(&server, &world->tls, NULL), TD_OK);
}

static void world_done(struct world *world)
{
    SSL_CTX_free(world->tls);
    td_pki_pair_done(&world->ca);
    td_pki_pair_done(&world->other_ca);
    td_pki_pair_done(&world->server);
}

static void world_answer(void *context, const struct raw_request *request, struct raw_reply *ret)
{
    struct world *world = context;
    (void)snprintf(world->user, sizeof(world->user), "%s", request->user);
    (void)snprintf(world->request, sizeof(world->request), "%s", request->text);
    world->connection = request->connection;
    ret->bytes = world->is_open ? TD_STR("HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n{\"a\":1}")
                                : TD_STR("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                         "Content-Length: 7\r\n\r\n{\"a\":1}");
}

/* The configuration's authority is the only one; its server name is the one that is checked. */
static void test_tls_trusts_what_is_configured(void **state)
{
    (void)state;
    enum { OURS, OTHER, SYSTEM };
    static const struct {
        int authority;
        const char *dns; /* in the server's certificate; "": its address */
        const char *server_name;
        bool is_insecure;
        int code;
    } rows[] = {
        {OURS, "", "", false, TD_OK},
        {OTHER, "", "", false, TD_INVALID},
        {SYSTEM, "", "", false, TD_INVALID},
        {OTHER, "", "", true, TD_OK},
        {OURS, "api.internal", "", false, TD_INVALID},
        {OURS, "api.internal", "api.internal", false, TD_OK},
        {OURS, "api.internal", "other.internal", false, TD_INVALID},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world;
        world_init(&world, td_str_from(rows[i].dns));
        struct http_bed bed;
        http_bed_init(&bed, td_clock_real(), world.tls, world_answer, &world);
        bed.config.ca_pem = rows[i].authority == OURS ? td_buf_str(&world.ca.certificate_pem)
                            : rows[i].authority == OTHER
                                ? td_buf_str(&world.other_ca.certificate_pem)
                                : TD_STR_EMPTY;
        bed.config.is_insecure = rows[i].is_insecure;
        bed.config.tls_server_name = td_str_from(rows[i].server_name);
        http_bed_connect(&bed);
        struct http_call call = {0};
        http_get(&bed, &call);
        assert_int_equal(call.code, rows[i].code);
        if (rows[i].code == TD_OK) {
            char host[64];
            (void)snprintf(host, sizeof(host), "\r\nHost: 127.0.0.1:%u\r\n", bed.server.port);
            assert_non_null(strstr(world.request, host));
        } else {
            assert_int_equal(bed.server.requests, 0);
        }
        http_bed_done(&bed);
        world_done(&world);
    }
}

static void write_file(const char *path, td_str text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text.ptr, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
}

/* As the loader does it, the configuration begins with what the files hold. */
static void write_user(struct world *world, const char *folder, const char *name,
                       struct http_bed *bed)
{
    char path[256];
    td_auto_pki_pair pair;
    td_pki_pair_init(&pair);
    const struct td_pki_user user = {.name = td_str_from(name)};
    assert_int_equal(td_pki_issue_client(td_buf_str(&world->ca.certificate_pem),
                                         td_buf_str(&world->ca.key_pem), &user, now(), &pair, NULL),
                     TD_OK);
    (void)snprintf(path, sizeof(path), "%s/key", folder);
    write_file(path, td_buf_str(&pair.key_pem));
    (void)snprintf(path, sizeof(path), "%s/crt", folder);
    write_file(path, td_buf_str(&pair.certificate_pem));
    if (!bed->transport) {
        bed->config.certificate_pem =
            td_arena_copy_str(&bed->arena, td_buf_str(&pair.certificate_pem));
        bed->config.key_pem = td_arena_copy_str(&bed->arena, td_buf_str(&pair.key_pem));
    }
}

/* A new certificate in the files: the next calls use it on a new connection, the old connection is
 * closed, and what was under way on it is not torn. */
static void test_tls_follows_a_rotated_certificate(void **state)
{
    (void)state;
    char folder[] = "tls-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct world world;
    world_init(&world, TD_STR_EMPTY);
    struct http_bed bed;
    http_bed_init(&bed, td_clock_accelerated(1000, 0), world.tls, world_answer, &world);
    write_user(&world, folder, "one", &bed);
    char paths[2][64];
    (void)snprintf(paths[0], sizeof(paths[0]), "%s/crt", folder);
    (void)snprintf(paths[1], sizeof(paths[1]), "%s/key", folder);
    bed.config.ca_pem = td_buf_str(&world.ca.certificate_pem);
    bed.config.certificate_file = td_str_from(paths[0]);
    bed.config.key_file = td_str_from(paths[1]);
    http_bed_connect(&bed);

    struct http_call call = {0};
    http_get(&bed, &call);
    assert_string_equal(call.message, "");
    assert_string_equal(world.user, "one");
    http_get(&bed, &call);
    assert_int_equal(bed.server.connections, 1);

    /* A stream stays open on the old connection. */
    world.is_open = true;
    struct http_call stream = {0};
    const struct td_call_request request = {.method = TD_STR("GET"), .path = TD_STR("/watch")};
    http_call_start(&bed, &stream, &request);
    http_bed_run(&bed, 30);
    assert_string_equal(stream.body, "{\"a\":1}");
    world.is_open = false;
    write_user(&world, folder, "two", &bed);
    http_bed_run(&bed, 30); /* half a minute of the credentials' clock */
    bed.open = 0;
    http_get(&bed, &call);
    assert_int_equal(call.code, TD_OK);
    assert_string_equal(world.user, "two");
    assert_int_equal(bed.server.connections, 2);
    assert_int_equal(stream.ends, 0);
    assert_int_equal(bed.server.open, 2);
    bed.transport->ops->cancel(stream.call);
    bed.open = 1;
    http_bed_run(&bed, 30);
    assert_int_equal(bed.server.open, 1); /* nothing keeps the old connection any more */
    bed.open = 0;
    http_get(&bed, &call);
    assert_int_equal(bed.server.connections, 2);
    http_bed_done(&bed);
    world_done(&world);
    (void)unlink(paths[0]);
    (void)unlink(paths[1]);
    (void)rmdir(folder);
}

/* A certificate that is none, and a key of another one: no request, no key in the message. */
static void test_tls_refuses_broken_certificates(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TD_STR_EMPTY);
    const td_str rows[] = {TD_STR("no pem"), td_buf_str(&world.other_ca.key_pem)};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_bed bed;
        http_bed_init(&bed, td_clock_real(), world.tls, world_answer, &world);
        bed.config.ca_pem = td_buf_str(&world.ca.certificate_pem);
        bed.config.certificate_pem = td_buf_str(&world.ca.certificate_pem);
        bed.config.key_pem = rows[i];
        http_bed_connect(&bed);
        struct http_call call = {0};
        http_get(&bed, &call);
        assert_int_equal(call.code, TD_DENIED);
        assert_null(strstr(call.message, "PRIVATE"));
        assert_int_equal(bed.server.requests, 0);
        http_bed_done(&bed);
    }
    world_done(&world);
}

/* What a client offers, each name after its length. */
static int note_offer(SSL *tls, const unsigned char **out, unsigned char *out_len,
                      const unsigned char *offer, unsigned int len, void *context)
{
    (void)tls;
    (void)out;
    (void)out_len;
    (void)snprintf(context, 64, "%.*s", (int)len, (const char *)offer);
    return SSL_TLSEXT_ERR_NOACK;
}

/* Over HTTP/2 libcurl leaves rests of answers lying: a server that has it must not choose it. */
static void test_tls_offers_http_1_only(void **state)
{
    (void)state;
    struct world world;
    char offer[64] = "";
    world_init(&world, TD_STR_EMPTY);
    SSL_CTX_set_alpn_select_cb(world.tls, note_offer, offer);
    struct http_bed bed;
    http_bed_init(&bed, td_clock_real(), world.tls, world_answer, &world);
    bed.config.ca_pem = td_buf_str(&world.ca.certificate_pem);
    http_bed_connect(&bed);
    struct http_call call = {0};
    http_get(&bed, &call);
    assert_int_equal(call.code, TD_OK);
    assert_string_equal(offer, "\x08http/1.1");
    http_bed_done(&bed);
    world_done(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_trusts_what_is_configured),
        cmocka_unit_test(test_tls_follows_a_rotated_certificate),
        cmocka_unit_test(test_tls_refuses_broken_certificates),
        cmocka_unit_test(test_tls_offers_http_1_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
