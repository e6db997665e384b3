/*
 * X.509 by OpenSSL. Each certificate is made in the same steps: key, subject, validity, the
 * extensions of its role, signature. Names come from users and configuration, so they are put into
 * the structures as data and never pass through OpenSSL's configuration syntax, in which a comma or
 * a colon would mean something. Serial numbers are random, 127 bits, so two authorities of one name
 * never hand out the same one.
 */
#include "base/pki/pki.h"

#include <limits.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/pki/pki_internal.h"

#define PKI_DAY_SECONDS 86400
#define PKI_CA_DAYS 3650
#define PKI_LEAF_DAYS 365
#define PKI_SERIAL_BYTES 16
#define PKI_X509_V3 2 /* the version's number on the wire */

/* One thing that is put into a certificate besides its key. */
struct pki_request {
    td_str common_name;
    const td_str *organisations;
    size_t organisation_count;
    GENERAL_NAMES *alternatives; /* or NULL */
    const char *usage;           /* keyUsage */
    const char *purpose;         /* extendedKeyUsage, or NULL */
    const char *constraints;     /* basicConstraints */
    int days;
};

/* Who signs; for an authority of its own the new certificate and key. */
struct pki_issuer {
    X509 *certificate;
    EVP_PKEY *key;
};

void td_pki_setup(void)
{
    if (OPENSSL_init_crypto(0, NULL) != 1 || !OSSL_LIB_CTX_get0_global_default()) {
        td_out_of_memory();
    }
}

int td_pki_fail(struct td_error *err, int code, const char *what)
{
    unsigned long number = ERR_peek_last_error();
    const char *reason = number ? ERR_reason_error_string(number) : NULL;
    ERR_clear_error(); /* what stays would be taken for a failure of the next connection */
    return td_error_set(err, code, "%s: %s", what, reason ? reason : "OpenSSL gives no reason");
}

int td_pki_no_password(char *out, int size, int is_writing, void *context)
{
    (void)out;
    (void)size;
    (void)is_writing;
    (void)context;
    return -1;
}

BIO *td_pki_open(td_str pem)
{
    return pem.len > TD_PEM_BYTES_MAX ? NULL
                                      : BIO_new_mem_buf(pem.ptr ? pem.ptr : "", (int)pem.len);
}

void td_pki_pair_init(struct td_pki_pair *pair)
{
    td_buf_init(&pair->certificate_pem, TD_PEM_BYTES_MAX);
    td_buf_init(&pair->key_pem, TD_PEM_BYTES_MAX);
}

void td_pki_pair_done(struct td_pki_pair *pair)
{
    if (pair->key_pem.ptr) {
        OPENSSL_cleanse(pair->key_pem.ptr, pair->key_pem.cap);
    }
    td_buf_done(&pair->certificate_pem);
    td_buf_done(&pair->key_pem);
}

/* Replaces the content of `ret` by that of `made`, which is left as a pair to be done. */
static void pki_pair_move(struct td_pki_pair *made, struct td_pki_pair *ret)
{
    struct td_pki_pair old = *ret;
    *ret = *made;
    *made = old;
}

static int pki_add_name(X509_NAME *name, int nid, td_str text, struct td_error *err)
{
    if (!td_str_is_utf8(text) || text.len > INT_MAX ||
        X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8, (const unsigned char *)text.ptr,
                                   (int)text.len, -1, 0) != 1) {
        td_pki_fail(err, TD_INVALID, OBJ_nid2ln(nid));
        return td_error_wrap(err, TD_INVALID, "certificate for '%.*s'", TD_STR_ARG(text));
    }
    return TD_OK;
}

static int pki_set_subject(X509 *certificate, const struct pki_request *request,
                           struct td_error *err)
{
    X509_NAME *name = X509_get_subject_name(certificate);
    for (size_t i = 0; i < request->organisation_count; i++) {
        int code = pki_add_name(name, NID_organizationName, request->organisations[i], err);
        if (code < 0) {
            return code;
        }
    }
    return pki_add_name(name, NID_commonName, request->common_name, err);
}

static bool pki_set_serial(X509 *certificate)
{
    unsigned char bytes[PKI_SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1) {
        return false;
    }
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and of full length */
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool is_done = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return is_done;
}

static bool pki_set_validity(X509 *certificate, struct td_instant now, int days)
{
    time_t begin = (time_t)(now.unix_seconds - TD_PKI_BACKDATE_SECONDS);
    time_t end = (time_t)now.unix_seconds;
    return ASN1_TIME_adj(X509_getm_notBefore(certificate), begin, 0, 0) &&
           ASN1_TIME_adj(X509_getm_notAfter(certificate), end, days, 0);
}

static bool pki_add_extension(X509 *certificate, X509V3_CTX *context, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_nconf_nid(NULL, context, nid, value);
    bool is_done = extension && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return is_done;
}

/* The values here are all ours; names of users are added as structures. */
static bool pki_add_extensions(X509 *certificate, X509 *issuer, const struct pki_request *request)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    bool is_issued = issuer != certificate;
    return pki_add_extension(certificate, &context, NID_basic_constraints, request->constraints) &&
           pki_add_extension(certificate, &context, NID_key_usage, request->usage) &&
           (!request->purpose ||
            pki_add_extension(certificate, &context, NID_ext_key_usage, request->purpose)) &&
           pki_add_extension(certificate, &context, NID_subject_key_identifier, "hash") &&
           (!is_issued ||
            pki_add_extension(certificate, &context, NID_authority_key_identifier, "keyid")) &&
           (!request->alternatives ||
            X509_add1_ext_i2d(certificate, NID_subject_alt_name, request->alternatives, 0,
                              X509V3_ADD_DEFAULT) == 1);
}

static int pki_fill(X509 *certificate, EVP_PKEY *key, const struct pki_issuer *issuer,
                    const struct pki_request *request, struct td_instant now, struct td_error *err)
{
    int code = pki_set_subject(certificate, request, err);
    if (code < 0) {
        return code;
    }
    X509_NAME *issuer_name = X509_get_subject_name(issuer->certificate);
    if (X509_set_version(certificate, PKI_X509_V3) != 1 || !pki_set_serial(certificate) ||
        X509_set_issuer_name(certificate, issuer_name) != 1 ||
        X509_set_pubkey(certificate, key) != 1) {
        return td_pki_fail(err, TD_IO, "make a certificate");
    }
    if (!pki_set_validity(certificate, now, request->days)) {
        return td_pki_fail(err, TD_INVALID, "validity of a certificate");
    }
    if (!pki_add_extensions(certificate, issuer->certificate, request) ||
        X509_sign(certificate, issuer->key, EVP_sha256()) == 0) {
        return td_pki_fail(err, TD_IO, "sign a certificate");
    }
    return TD_OK;
}

/* The BIO's memory is wiped first when it held a key. */
static int pki_take_pem(BIO *bio, bool is_secret, struct td_buf *out, struct td_error *err)
{
    char *bytes = NULL;
    long len = BIO_get_mem_data(bio, &bytes);
    if (len > 0) {
        (void)td_buf_append(out, (td_str){.ptr = bytes, .len = (size_t)len}); /* checked below */
    }
    if (len > 0 && is_secret) {
        OPENSSL_cleanse(bytes, (size_t)len);
    }
    return td_buf_check(out, "a certificate", err);
}

static int pki_write(X509 *certificate, EVP_PKEY *key, struct td_pki_pair *out,
                     struct td_error *err)
{
    BIO *certificate_bio = BIO_new(BIO_s_mem());
    BIO *key_bio = BIO_new(BIO_s_mem());
    int code = TD_IO;
    if (certificate_bio && key_bio && PEM_write_bio_X509(certificate_bio, certificate) == 1 &&
        PEM_write_bio_PKCS8PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL) == 1) {
        code = pki_take_pem(certificate_bio, false, &out->certificate_pem, err);
        int key_code = pki_take_pem(key_bio, true, &out->key_pem, err);
        code = code < 0 ? code : key_code;
    } else {
        code = td_pki_fail(err, TD_IO, "write a certificate");
    }
    BIO_free(certificate_bio);
    BIO_free(key_bio);
    return code;
}

/* With issuer NULL the certificate signs itself. */
static int pki_make(const struct pki_issuer *issuer, const struct pki_request *request,
                    struct td_instant now, struct td_pki_pair *ret, struct td_error *err)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    td_auto_pki_pair made;
    td_pki_pair_init(&made);
    int code = TD_OK;
    if (!key || !certificate) {
        code = td_pki_fail(err, TD_IO, "make a key");
    } else {
        struct pki_issuer self = {.certificate = certificate, .key = key};
        code = pki_fill(certificate, key, issuer ? issuer : &self, request, now, err);
    }
    if (code == TD_OK) {
        code = pki_write(certificate, key, &made, err);
    }
    if (code == TD_OK) {
        pki_pair_move(&made, ret);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
    return code;
}

int td_pki_make_ca(td_str common_name, struct td_instant now, struct td_pki_pair *ret,
                   struct td_error *err)
{
    td_pki_setup();
    struct pki_request request = {.common_name = common_name,
                                  .constraints = "critical,CA:TRUE",
                                  .usage = "critical,digitalSignature,keyCertSign,cRLSign",
                                  .days = PKI_CA_DAYS};
    return pki_make(NULL, &request, now, ret, err);
}

/* `what` begins the message of a failure. */
static int pki_read_pair(td_str certificate_pem, td_str key_pem, const char *what,
                         struct pki_issuer *ret, struct td_error *err)
{
    BIO *certificate_bio = td_pki_open(certificate_pem);
    BIO *key_bio = td_pki_open(key_pem);
    struct pki_issuer issuer = {NULL, NULL};
    if (certificate_bio && key_bio) {
        issuer.certificate = PEM_read_bio_X509(certificate_bio, NULL, td_pki_no_password, NULL);
        issuer.key = PEM_read_bio_PrivateKey(key_bio, NULL, td_pki_no_password, NULL);
    }
    BIO_free(certificate_bio);
    BIO_free(key_bio);
    bool is_pair = issuer.certificate && issuer.key &&
                   X509_check_private_key(issuer.certificate, issuer.key) == 1;
    if (is_pair) {
        *ret = issuer;
        return TD_OK;
    }
    const char *problem = !issuer.certificate ? "the certificate is not readable as PEM"
                          : !issuer.key       ? "the key is not readable as PEM without a password"
                                              : "the key is not that of the certificate";
    X509_free(issuer.certificate);
    EVP_PKEY_free(issuer.key);
    ERR_clear_error(); /* OpenSSL's words for these are no help */
    return td_error_set(err, TD_INVALID, "%s: %s", what, problem);
}

static int pki_issue(td_str ca_certificate_pem, td_str ca_key_pem,
                     const struct pki_request *request, struct td_instant now,
                     struct td_pki_pair *ret, struct td_error *err)
{
    struct pki_issuer issuer;
    int code = pki_read_pair(ca_certificate_pem, ca_key_pem, "certificate and key of the authority",
                             &issuer, err);
    if (code < 0) {
        return code;
    }
    code = pki_make(&issuer, request, now, ret, err);
    X509_free(issuer.certificate);
    EVP_PKEY_free(issuer.key);
    return code;
}

/* Takes `name` in any case. */
static bool pki_push_name(GENERAL_NAMES *names, GENERAL_NAME *name, int type, void *value)
{
    if (!name || !value) {
        GENERAL_NAME_free(name);
        return false;
    }
    GENERAL_NAME_set0_value(name, type, value);
    if (sk_GENERAL_NAME_push(names, name) <= 0) {
        GENERAL_NAME_free(name);
        return false;
    }
    return true;
}

static bool pki_push_dns(GENERAL_NAMES *names, td_str text)
{
    if (text.len == 0 || text.len > INT_MAX || memchr(text.ptr, 0, text.len)) {
        return false;
    }
    ASN1_IA5STRING *value = ASN1_IA5STRING_new();
    if (value && ASN1_STRING_set(value, text.ptr, (int)text.len) != 1) {
        ASN1_IA5STRING_free(value);
        value = NULL;
    }
    return pki_push_name(names, GENERAL_NAME_new(), GEN_DNS, value);
}

static bool pki_push_ip(GENERAL_NAMES *names, td_str text)
{
    char copy[64]; /* longer than any address */
    if (text.len == 0 || text.len >= sizeof(copy)) {
        return false;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return pki_push_name(names, GENERAL_NAME_new(), GEN_IPADD, a2i_IPADDRESS(copy));
}

static int pki_alternatives(const struct td_pki_names *names, GENERAL_NAMES *out,
                            struct td_error *err)
{
    for (size_t i = 0; i < names->dns_count; i++) {
        if (!pki_push_dns(out, names->dns_names[i])) {
            return td_error_set(err, TD_INVALID, "certificate: '%.*s' is no DNS name",
                                TD_STR_ARG(names->dns_names[i]));
        }
    }
    for (size_t i = 0; i < names->ip_count; i++) {
        if (!pki_push_ip(out, names->ip_addresses[i])) {
            ERR_clear_error();
            return td_error_set(err, TD_INVALID, "certificate: '%.*s' is no IP address",
                                TD_STR_ARG(names->ip_addresses[i]));
        }
    }
    return TD_OK;
}

int td_pki_issue_server(td_str ca_certificate_pem, td_str ca_key_pem,
                        const struct td_pki_names *names, struct td_instant now,
                        struct td_pki_pair *ret, struct td_error *err)
{
    td_pki_setup();
    if (names->dns_count > TD_PKI_NAMES_MAX || names->ip_count > TD_PKI_NAMES_MAX) {
        return td_error_set(err, TD_LIMIT, "certificate: more than %d names", TD_PKI_NAMES_MAX);
    }
    GENERAL_NAMES *alternatives = sk_GENERAL_NAME_new_null();
    if (!alternatives) {
        return td_pki_fail(err, TD_IO, "make a certificate");
    }
    bool has_names = names->dns_count + names->ip_count > 0;
    struct pki_request request = {.common_name = names->common_name,
                                  .alternatives = has_names ? alternatives : NULL,
                                  .constraints = "critical,CA:FALSE",
                                  .usage = "critical,digitalSignature",
                                  .purpose = "serverAuth",
                                  .days = PKI_LEAF_DAYS};
    int code = pki_alternatives(names, alternatives, err);
    if (code == TD_OK) {
        code = pki_issue(ca_certificate_pem, ca_key_pem, &request, now, ret, err);
    }
    GENERAL_NAMES_free(alternatives);
    return code;
}

int td_pki_issue_client(td_str ca_certificate_pem, td_str ca_key_pem,
                        const struct td_pki_user *user, struct td_instant now,
                        struct td_pki_pair *ret, struct td_error *err)
{
    td_pki_setup();
    if (user->group_count > TD_PKI_NAMES_MAX) {
        return td_error_set(err, TD_LIMIT, "certificate: more than %d groups", TD_PKI_NAMES_MAX);
    }
    struct pki_request request = {.common_name = user->name,
                                  .organisations = user->groups,
                                  .organisation_count = user->group_count,
                                  .constraints = "critical,CA:FALSE",
                                  .usage = "critical,digitalSignature",
                                  .purpose = "clientAuth",
                                  .days = PKI_LEAF_DAYS};
    return pki_issue(ca_certificate_pem, ca_key_pem, &request, now, ret, err);
}

int td_pki_check_pair(td_str certificate_pem, td_str key_pem, struct td_error *err)
{
    td_pki_setup();
    struct pki_issuer pair = {NULL, NULL};
    int code = pki_read_pair(certificate_pem, key_pem, "certificate and key", &pair, err);
    X509_free(pair.certificate);
    EVP_PKEY_free(pair.key);
    return code;
}

static bool pki_read_time(const ASN1_TIME *time, struct td_instant *ret)
{
    struct tm parts;
    if (ASN1_TIME_to_tm(time, &parts) != 1) {
        return false;
    }
    *ret = (struct td_instant){.unix_seconds = timegm(&parts), .nanos = 0};
    return true;
}

int td_pki_validity_of(td_str certificate_pem, struct td_pki_validity *ret, struct td_error *err)
{
    td_pki_setup();
    BIO *bio = td_pki_open(certificate_pem);
    X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, td_pki_no_password, NULL) : NULL;
    BIO_free(bio);
    struct td_pki_validity validity;
    bool is_read = certificate &&
                   pki_read_time(X509_get0_notBefore(certificate), &validity.not_before) &&
                   pki_read_time(X509_get0_notAfter(certificate), &validity.not_after);
    X509_free(certificate);
    if (!is_read) {
        return td_pki_fail(err, TD_INVALID, "read a certificate");
    }
    *ret = validity;
    return TD_OK;
}

int td_random_bytes(void *out, size_t len, struct td_error *err)
{
    td_pki_setup();
    if (len > INT_MAX || RAND_bytes(out, (int)len) != 1) {
        return td_pki_fail(err, TD_IO, "random bytes");
    }
    return TD_OK;
}

int td_random_token(struct td_buf *out, struct td_error *err)
{
    unsigned char bytes[TD_TOKEN_BYTES];
    int code = td_random_bytes(bytes, sizeof(bytes), err);
    if (code < 0) {
        return code;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        (void)td_buf_append_format(out, "%02x", bytes[i]); /* checked below */
    }
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return td_buf_check(out, "a token", err);
}

bool td_secret_equal(td_str given, td_str secret)
{
    bool is_same_length = given.len == secret.len;
    const char *other = is_same_length ? secret.ptr : given.ptr;
    return given.len == 0 ? is_same_length
                          : CRYPTO_memcmp(given.ptr, other, given.len) == 0 && is_same_length;
}
