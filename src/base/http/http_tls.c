/* The client certificate's subject, and telling a plain request from other failures of TLS. */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/alloc.h"
#include "base/http/http_internal.h"
#include "base/limits.h"

/* One part of the subject as UTF-8, copied; empty when it cannot be read as text. */
static td_str peer_text(struct td_arena *arena, const X509_NAME *subject, int place)
{
    unsigned char *text = NULL;
    const X509_NAME_ENTRY *entry = X509_NAME_get_entry(subject, place);
    int len = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry));
    if (len < 0) {
        return TD_STR_EMPTY;
    }
    td_str copy = td_arena_copy_str(arena, (td_str){.ptr = (char *)text, .len = (size_t)len});
    OPENSSL_free(text);
    return copy;
}

struct http_peer *http_peer_new(SSL *ssl)
{
    X509 *certificate = SSL_get0_peer_certificate(ssl);
    if (!certificate || SSL_get_verify_result(ssl) != X509_V_OK) {
        return NULL;
    }
    struct http_peer *peer = td_alloc_zero(1, sizeof(*peer));
    td_arena_init(&peer->arena, SIZE_MAX); /* OpenSSL has capped the certificate already */
    peer->name = TD_STR_EMPTY;
    peer->organizations = td_arena_array(&peer->arena, td_str, TD_HTTP_PEER_ORGANIZATIONS_MAX);
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int place = -1;
    /* The last common name counts, as it does for Go's programs. */
    for (int next; (next = X509_NAME_get_index_by_NID(subject, NID_commonName, place)) >= 0;) {
        place = next;
    }
    if (place >= 0) {
        peer->name = peer_text(&peer->arena, subject, place);
    }
    place = -1;
    while (peer->organization_count < TD_HTTP_PEER_ORGANIZATIONS_MAX) {
        place = X509_NAME_get_index_by_NID(subject, NID_organizationName, place);
        if (place < 0) {
            break;
        }
        peer->organizations[peer->organization_count++] = peer_text(&peer->arena, subject, place);
    }
    return peer;
}

void http_peer_free(struct http_peer *peer)
{
    if (!peer) {
        return;
    }
    td_arena_done(&peer->arena);
    td_free(peer);
}

bool http_tls_is_plain_request(unsigned long code)
{
    return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST;
}
