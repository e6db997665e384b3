/* Our authority and its certificates, judged by OpenSSL's verifier, its command and handshakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "base/pki/pki.h"

#define NOW 1794700000 /* 2026-11-15 */
#define DAY 86400

struct certificates {
    struct td_pki_pair ca;
    struct td_pki_pair server;
    struct td_pki_pair client;
};

static const td_str dns_names[] = {TD_STR_INIT("localhost"), TD_STR_INIT("kubernetes.default.svc")};
static const td_str addresses[] = {TD_STR_INIT("127.0.0.1"), TD_STR_INIT("::1")};
static const td_str groups[] = {TD_STR_INIT("system:masters"), TD_STR_INIT("a,b=c")};

static const struct td_instant now = {.unix_seconds = NOW};

static int set_up(void **state)
{
    static struct certificates made;
    struct td_error err = TD_ERROR_INIT;
    td_pki_pair_init(&made.ca);
    td_pki_pair_init(&made.server);
    td_pki_pair_init(&made.client);
    *state = &made;
    assert_int_equal(td_pki_make_ca(TD_STR("tandem-ca"), now, &made.ca, &err), TD_OK);
    struct td_pki_names names = {TD_STR("tandem"), dns_names, 2, addresses, 2};
    td_str ca = td_buf_str(&made.ca.certificate_pem);
    td_str key = td_buf_str(&made.ca.key_pem);
    assert_int_equal(td_pki_issue_server(ca, key, &names, now, &made.server, &err), TD_OK);
    struct td_pki_user user = {TD_STR("admin"), groups, 2};
    assert_int_equal(td_pki_issue_client(ca, key, &user, now, &made.client, &err), TD_OK);
    return 0;
}

static int tear_down(void **state)
{
    struct certificates *made = *state;
    td_pki_pair_done(&made->ca);
    td_pki_pair_done(&made->server);
    td_pki_pair_done(&made->client);
    return 0;
}

static X509 *read_certificate(const struct td_pki_pair *pair)
{
    BIO *bio = BIO_new_mem_buf(pair->certificate_pem.ptr, (int)pair->certificate_pem.len);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(certificate);
    return certificate;
}

/* The verifier's answer for `pair` under our authority, for one purpose at one time. */
static int verify(const struct certificates *made, const struct td_pki_pair *pair, int purpose,
                  time_t time)
{
    X509 *ca = read_certificate(&made->ca);
    X509 *certificate = read_certificate(pair);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    assert_int_equal(X509_STORE_add_cert(store, ca), 1);
    assert_int_equal(X509_STORE_CTX_init(context, store, certificate, NULL), 1);
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_time(param, time);
    X509_VERIFY_PARAM_set_purpose(param, purpose);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT | X509_V_FLAG_CHECK_SS_SIGNATURE);
    (void)X509_verify_cert(context);
    int answer = X509_STORE_CTX_get_error(context);
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    X509_free(certificate);
    X509_free(ca);
    return answer;
}

/* Each certificate is good for its purpose during its time and for nothing else. */
static void test_pki_chains_verify(void **state)
{
    const struct certificates *made = *state;
    const struct {
        const struct td_pki_pair *pair;
        int purpose;
        int64_t after;
        int answer;
    } rows[] = {
        {&made->server, X509_PURPOSE_SSL_SERVER, 0, X509_V_OK},
        {&made->server, X509_PURPOSE_SSL_CLIENT, 0, X509_V_ERR_INVALID_PURPOSE},
        {&made->server, X509_PURPOSE_SSL_SERVER, -TD_PKI_BACKDATE_SECONDS, X509_V_OK},
        {&made->server, X509_PURPOSE_SSL_SERVER, -TD_PKI_BACKDATE_SECONDS - 1,
         X509_V_ERR_CERT_NOT_YET_VALID},
        {&made->server, X509_PURPOSE_SSL_SERVER, 365 * DAY - 1, X509_V_OK},
        {&made->server, X509_PURPOSE_SSL_SERVER, 365 * DAY, X509_V_ERR_CERT_HAS_EXPIRED},
        {&made->client, X509_PURPOSE_SSL_CLIENT, 0, X509_V_OK},
        {&made->client, X509_PURPOSE_SSL_SERVER, 0, X509_V_ERR_INVALID_PURPOSE},
        {&made->ca, X509_PURPOSE_SSL_SERVER, (int64_t)3650 * DAY - 1, X509_V_OK},
        {&made->ca, X509_PURPOSE_SSL_SERVER, (int64_t)3650 * DAY, X509_V_ERR_CERT_HAS_EXPIRED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(verify(made, rows[i].pair, rows[i].purpose, NOW + rows[i].after),
                         rows[i].answer);
    }
}

/* Another authority of the same name did not issue it. */
static void test_pki_other_authority_does_not_verify(void **state)
{
    const struct certificates *made = *state;
    struct certificates other = *made;
    struct td_error err = TD_ERROR_INIT;
    td_pki_pair_init(&other.ca);
    assert_int_equal(td_pki_make_ca(TD_STR("tandem-ca"), now, &other.ca, &err), TD_OK);
    assert_int_not_equal(verify(&other, &made->server, X509_PURPOSE_SSL_SERVER, NOW), X509_V_OK);
    td_pki_pair_done(&other.ca);
}

/* The names asked for are those that a client checks, and no others. */
static void test_pki_server_names(void **state)
{
    const struct certificates *made = *state;
    X509 *certificate = read_certificate(&made->server);
    assert_int_equal(X509_check_host(certificate, "localhost", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(certificate, "kubernetes.default.svc", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(certificate, "tandem", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ip_asc(certificate, "127.0.0.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(certificate, "::1", 0), 1);
    assert_int_equal(X509_check_ip_asc(certificate, "127.0.0.2", 0), 0);
    X509_free(certificate);
}

/* User and groups arrive byte for byte, whatever signs they hold. */
static void test_pki_client_names(void **state)
{
    const struct certificates *made = *state;
    X509 *certificate = read_certificate(&made->client);
    char line[256];
    (void)X509_NAME_oneline(X509_get_subject_name(certificate), line, sizeof(line));
    assert_string_equal(line, "/O=system:masters/O=a,b=c/CN=admin");
    X509_free(certificate);
}

/* Validity is read back as it was made. */
static void test_pki_reads_validity(void **state)
{
    const struct certificates *made = *state;
    struct td_error err = TD_ERROR_INIT;
    struct td_pki_validity validity;
    td_str pem = td_buf_str(&made->client.certificate_pem);
    assert_int_equal(td_pki_validity_of(pem, &validity, &err), TD_OK);
    assert_int_equal(validity.not_before.unix_seconds, NOW - TD_PKI_BACKDATE_SECONDS);
    assert_int_equal(validity.not_after.unix_seconds, NOW + 365 * DAY);
    const td_str bad[] = {TD_STR_EMPTY, TD_STR("no certificate"), td_str_slice(pem, 0, pem.len / 2),
                          td_buf_str(&made->client.key_pem)};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err = TD_ERROR_INIT;
        assert_int_equal(td_pki_validity_of(bad[i], &validity, &err), TD_INVALID);
        assert_non_null(strstr(err.message, "read a certificate: "));
        assert_int_equal(ERR_peek_error(), 0);
    }
}

/* Names that no certificate can hold are refused by name; the pair stays as it was. */
static void test_pki_refuses_bad_names(void **state)
{
    const struct certificates *made = *state;
    td_str ca = td_buf_str(&made->ca.certificate_pem);
    td_str key = td_buf_str(&made->ca.key_pem);
    static char long_name[66];
    memset(long_name, 'n', sizeof(long_name) - 1);
    const td_str bad_ip = TD_STR("300.1.1.1");
    const td_str bad_dns = TD_STR_EMPTY;
    const struct {
        struct td_pki_names names;
        const char *message;
    } rows[] = {
        {{TD_STR("a"), NULL, 0, &bad_ip, 1}, "certificate: '300.1.1.1' is no IP address"},
        {{TD_STR("a"), &bad_dns, 1, NULL, 0}, "certificate: '' is no DNS name"},
        {{td_str_from(long_name), NULL, 0, NULL, 0}, "string too long"},
        {{TD_STR("\xff"), NULL, 0, NULL, 0}, "certificate for "},
        {{TD_STR("a"), dns_names, TD_PKI_NAMES_MAX + 1, NULL, 0}, "more than 256 names"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_pki_pair pair;
        struct td_error err = TD_ERROR_INIT;
        td_pki_pair_init(&pair);
        assert_true(td_pki_issue_server(ca, key, &rows[i].names, now, &pair, &err) < 0);
        assert_non_null(strstr(err.message, rows[i].message));
        assert_int_equal(pair.certificate_pem.len, 0);
        assert_int_equal(pair.key_pem.len, 0);
    }
}

/* An authority whose key is another's signs nothing. */
static void test_pki_authority_key_must_fit(void **state)
{
    const struct certificates *made = *state;
    td_auto_pki_pair pair;
    struct td_error err = TD_ERROR_INIT;
    struct td_pki_user user = {.name = TD_STR("a")};
    td_pki_pair_init(&pair);
    assert_int_equal(td_pki_issue_client(td_buf_str(&made->ca.certificate_pem),
                                         td_buf_str(&made->client.key_pem), &user, now, &pair,
                                         &err),
                     TD_INVALID);
    assert_null(strstr(err.message, "BEGIN"));
}

/* Moves bytes between the two ends until neither has more to say. */
static bool shake_hands(SSL *server, SSL *client)
{
    for (int turn = 0; turn < 10; turn++) {
        int a = SSL_do_handshake(client);
        int b = SSL_do_handshake(server);
        if (a == 1 && b == 1) {
            char byte;
            return SSL_read(client, &byte, 1) <= 0 && SSL_get_error(client, -1) != SSL_ERROR_SSL;
        }
    }
    return false;
}

struct hands {
    SSL_CTX *server_context;
    SSL_CTX *client_context;
    SSL *server;
    SSL *client;
};

static void meet(const struct certificates *made, bool asks_client, struct hands *hands)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_pki_server options = {
        .certificate_pem = td_buf_str(&made->server.certificate_pem),
        .key_pem = td_buf_str(&made->server.key_pem),
        .client_ca_pem = asks_client ? td_buf_str(&made->ca.certificate_pem) : TD_STR_EMPTY};
    assert_int_equal(td_pki_server_context(&options, &hands->server_context, &err), TD_OK);
    hands->client_context = SSL_CTX_new(TLS_client_method());
    X509 *ca = read_certificate(&made->ca);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(hands->client_context), ca);
    X509_free(ca);
    X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(hands->client_context), NOW);
    X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(hands->server_context), NOW);
    SSL_CTX_set_verify(hands->client_context, SSL_VERIFY_PEER, NULL);
    hands->server = SSL_new(hands->server_context);
    hands->client = SSL_new(hands->client_context);
    BIO *one = NULL;
    BIO *other = NULL;
    assert_int_equal(BIO_new_bio_pair(&one, 65536, &other, 65536), 1);
    SSL_set_bio(hands->server, one, one);
    SSL_set_bio(hands->client, other, other);
    SSL_set_accept_state(hands->server);
    SSL_set_connect_state(hands->client);
    SSL_set1_host(hands->client, "localhost");
}

static void part(struct hands *hands)
{
    SSL_free(hands->server);
    SSL_free(hands->client);
    SSL_CTX_free(hands->server_context);
    SSL_CTX_free(hands->client_context);
    ERR_clear_error();
}

static void present(struct hands *hands, const struct td_pki_pair *pair)
{
    X509 *certificate = read_certificate(pair);
    BIO *bio = BIO_new_mem_buf(pair->key_pem.ptr, (int)pair->key_pem.len);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_int_equal(SSL_use_certificate(hands->client, certificate), 1);
    assert_int_equal(SSL_use_PrivateKey(hands->client, key), 1);
    EVP_PKEY_free(key);
    X509_free(certificate);
}

/* A client without a certificate, with a good one and with a stranger's, and one of TLS 1.1. */
static void test_pki_server_context_shakes_hands(void **state)
{
    const struct certificates *made = *state;
    struct td_error err = TD_ERROR_INIT;
    struct hands hands;
    meet(made, true, &hands);
    assert_int_equal(
        SSL_set_alpn_protos(hands.client, (const unsigned char *)"\2h2\10http/1.1", 12), 0);
    assert_true(shake_hands(hands.server, hands.client));
    const unsigned char *protocol = NULL;
    unsigned int len = 0;
    SSL_get0_alpn_selected(hands.client, &protocol, &len);
    assert_int_equal(len, 8);
    assert_memory_equal(protocol, "http/1.1", 8);
    assert_null(SSL_get0_peer_certificate(hands.server));
    part(&hands);

    meet(made, true, &hands);
    present(&hands, &made->client);
    assert_true(shake_hands(hands.server, hands.client));
    assert_non_null(SSL_get0_peer_certificate(hands.server));
    assert_int_equal(SSL_get_verify_result(hands.server), X509_V_OK);
    part(&hands);

    struct td_pki_pair stranger;
    td_pki_pair_init(&stranger);
    assert_int_equal(td_pki_make_ca(TD_STR("stranger"), now, &stranger, &err), TD_OK);
    meet(made, true, &hands);
    present(&hands, &stranger);
    assert_false(shake_hands(hands.server, hands.client));
    part(&hands);
    td_pki_pair_done(&stranger);

    meet(made, false, &hands);
    SSL_set_security_level(hands.client, 0);
    SSL_set_max_proto_version(hands.client, TLS1_1_VERSION);
    assert_false(shake_hands(hands.server, hands.client));
    part(&hands);
}

/* Server contexts are not made of broken parts; the reason says which. */
static void test_pki_server_context_refuses_broken_parts(void **state)
{
    const struct certificates *made = *state;
    td_str certificate = td_buf_str(&made->server.certificate_pem);
    td_str key = td_buf_str(&made->server.key_pem);
    const struct {
        struct td_pki_server server;
        const char *message;
    } rows[] = {
        {{TD_STR("x"), key, TD_STR_EMPTY}, "server certificate: "},
        {{certificate, TD_STR_EMPTY, TD_STR_EMPTY}, "key of the server certificate: "},
        {{certificate, td_buf_str(&made->ca.key_pem), TD_STR_EMPTY},
         "key of the server certificate: "},
        {{certificate, key, TD_STR("x")}, "authority of client certificates: "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        SSL_CTX *context = NULL;
        assert_int_equal(td_pki_server_context(&rows[i].server, &context, &err), TD_INVALID);
        assert_int_equal(strncmp(err.message, rows[i].message, strlen(rows[i].message)), 0);
        assert_null(context);
    }
}

/* The openssl command, a reader of its own, accepts chain, purpose and name. */
static void test_pki_openssl_command_accepts(void **state)
{
    const struct certificates *made = *state;
    struct td_error err = TD_ERROR_INIT;
    if (system("openssl version >/dev/null 2>&1") != 0) {
        skip(); /* the command is not everywhere; the library's own verdict is tested above */
    }
    char folder[] = "td-test-pki-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(td_file_write("ca.crt", 0600, td_buf_str(&made->ca.certificate_pem), &err),
                     TD_OK);
    assert_int_equal(
        td_file_write("server.crt", 0600, td_buf_str(&made->server.certificate_pem), &err), TD_OK);
    assert_int_equal(system("openssl verify -attime 1794700000 -x509_strict -purpose sslserver "
                            "-verify_hostname localhost -CAfile ca.crt server.crt >/dev/null"),
                     0);
    assert_int_equal(unlink("ca.crt"), 0);
    assert_int_equal(unlink("server.crt"), 0);
    assert_int_equal(chdir(".."), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Tokens are long, of hexadecimal digits, and never the same. */
static void test_random_tokens_differ(void **state)
{
    (void)state;
    struct td_error err = TD_ERROR_INIT;
    td_auto_buf one;
    td_auto_buf other;
    td_buf_init(&one, 100);
    td_buf_init(&other, 100);
    assert_int_equal(td_random_token(&one, &err), TD_OK);
    assert_int_equal(td_random_token(&other, &err), TD_OK);
    assert_int_equal(one.len, 2 * TD_TOKEN_BYTES);
    assert_int_equal(strspn(one.ptr, "0123456789abcdef"), one.len);
    assert_false(td_str_equal(td_buf_str(&one), td_buf_str(&other)));
    td_auto_buf small;
    td_buf_init(&small, 10);
    assert_int_equal(td_random_token(&small, &err), TD_LIMIT);
}

/* Secrets are equal when every byte is. */
static void test_secret_equal(void **state)
{
    (void)state;
    assert_true(td_secret_equal(TD_STR("abc"), TD_STR("abc")));
    assert_false(td_secret_equal(TD_STR("abd"), TD_STR("abc")));
    assert_false(td_secret_equal(TD_STR("ab"), TD_STR("abc")));
    assert_false(td_secret_equal(TD_STR("abcd"), TD_STR("abc")));
    assert_false(td_secret_equal(TD_STR_EMPTY, TD_STR("abc")));
    assert_false(td_secret_equal(TD_STR("abc"), TD_STR_EMPTY));
    assert_true(td_secret_equal((td_str){NULL, 0}, TD_STR_EMPTY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pki_chains_verify),
        cmocka_unit_test(test_pki_other_authority_does_not_verify),
        cmocka_unit_test(test_pki_server_names),
        cmocka_unit_test(test_pki_client_names),
        cmocka_unit_test(test_pki_reads_validity),
        cmocka_unit_test(test_pki_refuses_bad_names),
        cmocka_unit_test(test_pki_authority_key_must_fit),
        cmocka_unit_test(test_pki_server_context_shakes_hands),
        cmocka_unit_test(test_pki_server_context_refuses_broken_parts),
        cmocka_unit_test(test_pki_openssl_command_accepts),
        cmocka_unit_test(test_random_tokens_differ),
        cmocka_unit_test(test_secret_equal),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
