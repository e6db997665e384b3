/* TLS contexts of servers and clients from keys and certificates in memory, TLS 1.2 and newer. */
#include "base/pki/pki.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/error.h"
#include "base/pki/pki_internal.h"

/* The text ended, rather than broke: PEM says so by an error that has to be taken off the list. */
static bool pki_at_end(void)
{
    unsigned long number = ERR_peek_last_error();
    bool is_end =
        ERR_GET_LIB(number) == ERR_LIB_PEM && ERR_GET_REASON(number) == PEM_R_NO_START_LINE;
    if (is_end) {
        ERR_clear_error();
    }
    return is_end;
}

/* Called for each certificate of a text; takes a reference of its own. */
typedef bool (*pki_certificate_fn)(SSL_CTX *context, X509 *certificate, int index);

static bool pki_each(SSL_CTX *context, td_str pem, pki_certificate_fn fn)
{
    BIO *bio = td_pki_open(pem);
    bool is_good = bio != NULL;
    for (int index = 0; is_good; index++) { /* each takes its bytes of a text that is capped */
        X509 *certificate = PEM_read_bio_X509(bio, NULL, td_pki_no_password, NULL);
        if (!certificate) {
            is_good = pki_at_end() && index > 0;
            break;
        }
        is_good = fn(context, certificate, index);
        X509_free(certificate);
    }
    BIO_free(bio);
    return is_good;
}

static bool pki_use_certificate(SSL_CTX *context, X509 *certificate, int index)
{
    return index == 0 ? SSL_CTX_use_certificate(context, certificate) == 1
                      : SSL_CTX_add1_chain_cert(context, certificate) == 1;
}

static bool pki_trust_certificate(SSL_CTX *context, X509 *certificate, int index)
{
    (void)index;
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1 &&
           SSL_CTX_add_client_CA(context, certificate) == 1;
}

static bool pki_use_key(SSL_CTX *context, td_str pem)
{
    BIO *bio = td_pki_open(pem);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, td_pki_no_password, NULL) : NULL;
    BIO_free(bio);
    bool is_good = key && SSL_CTX_use_PrivateKey(context, key) == 1;
    EVP_PKEY_free(key);
    return is_good && SSL_CTX_check_private_key(context) == 1;
}

/* A client that offers only protocols we do not speak is served as if it had offered none. */
static int pki_choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                               const unsigned char *offered, unsigned int offered_len,
                               void *context)
{
    static const unsigned char spoken[] = "\x08http/1.1";
    (void)ssl;
    (void)context;
    unsigned char *chosen = NULL;
    if (SSL_select_next_proto(&chosen, out_len, spoken, sizeof(spoken) - 1, offered, offered_len) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* Sessions are bound to this name, without which OpenSSL refuses to resume one that was made with a
 * client certificate. */
static bool pki_set_options(SSL_CTX *context)
{
    static const unsigned char name[] = "tandem";
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(context, pki_choose_protocol, NULL);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_session_id_context(context, name, sizeof(name) - 1) == 1;
}

static int pki_fill_context(SSL_CTX *context, const struct td_pki_server *server,
                            struct td_error *err)
{
    if (!pki_set_options(context)) {
        return td_pki_fail(err, TD_IO, "TLS options");
    }
    if (!pki_each(context, server->certificate_pem, pki_use_certificate)) {
        return td_pki_fail(err, TD_INVALID, "server certificate");
    }
    if (!pki_use_key(context, server->key_pem)) {
        return td_pki_fail(err, TD_INVALID, "key of the server certificate");
    }
    if (server->client_ca_pem.len == 0) {
        return TD_OK;
    }
    if (!pki_each(context, server->client_ca_pem, pki_trust_certificate)) {
        return td_pki_fail(err, TD_INVALID, "authority of client certificates");
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    return TD_OK;
}

int td_pki_server_context(const struct td_pki_server *server, struct ssl_ctx_st **ret,
                          struct td_error *err)
{
    td_pki_setup();
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context) {
        return td_pki_fail(err, TD_IO, "TLS context");
    }
    int code = pki_fill_context(context, server, err);
    if (code < 0) {
        SSL_CTX_free(context);
        return code;
    }
    *ret = context;
    return TD_OK;
}
