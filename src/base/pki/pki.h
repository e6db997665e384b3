/*
 * Certificates of our own: a small authority that issues server and client certificates (EC P-256),
 * and the TLS context of a server made of them. PEM texts go in and out; nothing is kept. Time is
 * the caller's; a certificate is valid from TD_PKI_BACKDATE_SECONDS earlier, so that a peer whose
 * clock is a little behind accepts it. Failures carry OpenSSL's reason, never key material.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/timefmt.h"

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */
struct td_error;

/* Caller's storage, empty after td_pki_pair_init; a call that succeeds replaces the content. */
struct td_pki_pair {
    struct td_buf certificate_pem;
    struct td_buf key_pem; /* a secret: PKCS #8, not encrypted; wiped by done */
};

#define td_auto_pki_pair __attribute__((cleanup(td_pki_pair_done))) struct td_pki_pair

void td_pki_pair_init(struct td_pki_pair *pair);
void td_pki_pair_done(struct td_pki_pair *pair);

/* A new authority that signs itself, for ten years. */
int td_pki_make_ca(td_str common_name, struct td_instant now, struct td_pki_pair *ret,
                   struct td_error *err);

struct td_pki_names {
    td_str common_name;
    const td_str *dns_names; /* SANs: "localhost", "kubernetes.default.svc" */
    size_t dns_count;
    const td_str *ip_addresses; /* SANs: "127.0.0.1", "::1" */
    size_t ip_count;
};

/* A server's certificate signed by the authority, for one year. */
int td_pki_issue_server(td_str ca_certificate_pem, td_str ca_key_pem,
                        const struct td_pki_names *names, struct td_instant now,
                        struct td_pki_pair *ret, struct td_error *err);

/* A client's: the common name is the user, each organisation a group. */
struct td_pki_user {
    td_str name;
    const td_str *groups;
    size_t group_count;
};

int td_pki_issue_client(td_str ca_certificate_pem, td_str ca_key_pem,
                        const struct td_pki_user *user, struct td_instant now,
                        struct td_pki_pair *ret, struct td_error *err);

struct td_pki_validity {
    struct td_instant not_before;
    struct td_instant not_after;
};

/* Of the first certificate in the text. */
int td_pki_validity_of(td_str certificate_pem, struct td_pki_validity *ret, struct td_error *err);

/* Does the key belong to the first certificate of the text? */
int td_pki_check_pair(td_str certificate_pem, td_str key_pem, struct td_error *err);

struct td_pki_server {
    td_str certificate_pem; /* the server's, then any in between */
    td_str key_pem;
    td_str client_ca_pem; /* empty: client certificates are not asked for */
};

/* TLS 1.2 and later, ALPN http/1.1, session tickets. With client authorities a certificate that is
 * sent must be valid, but none has to be sent. The caller frees it with SSL_CTX_free. */
int td_pki_server_context(const struct td_pki_server *server, struct ssl_ctx_st **ret,
                          struct td_error *err);

/* Cryptographically random bytes, from the system. */
int td_random_bytes(void *out, size_t len, struct td_error *err);

/* A new bearer token, appended: TD_TOKEN_BYTES random bytes in hexadecimal. */
int td_random_token(struct td_buf *out, struct td_error *err);

/* Equal? In time that depends on the length of `given` only. */
bool td_secret_equal(td_str given, td_str secret);
