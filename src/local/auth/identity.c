/*
 * Makes or loads the authority, the certificates and the signing key of a cluster, and writes them
 * where the cluster is durable.
 */
#include "local/auth/identity.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "kube/kubeconfig/kubeconfig.h"

void td_identity_init(struct td_identity *identity)
{
    td_pki_pair_init(&identity->ca);
    td_pki_pair_init(&identity->server);
    td_pki_pair_init(&identity->admin);
    td_buf_init(&identity->token_key, TD_TOKEN_TEXT_BYTES_MAX);
}

void td_identity_done(struct td_identity *identity)
{
    td_pki_pair_done(&identity->ca);
    td_pki_pair_done(&identity->server);
    td_pki_pair_done(&identity->admin);
    if (identity->token_key.ptr) {
        explicit_bzero(identity->token_key.ptr, identity->token_key.len);
    }
    td_buf_done(&identity->token_key);
}

/* One kept text: TD_NOT_FOUND when it was never written. */
static int identity_read(struct td_arena *arena, const char *data_dir, const char *name,
                         struct td_buf *ret, struct td_error *err)
{
    td_str path = td_arena_format(arena, "%s/%s", data_dir, name);
    td_str text;
    int code = td_file_read(path.ptr, arena, TD_PEM_BYTES_MAX, &text, err);
    if (code != TD_OK) {
        return code;
    }
    td_buf_reset(ret);
    return td_buf_append(ret, text);
}

static int identity_write(struct td_arena *arena, const char *data_dir, const char *name,
                          const struct td_buf *text, struct td_error *err)
{
    td_str path = td_arena_format(arena, "%s/%s", data_dir, name);
    return td_file_write(path.ptr, 0600, td_buf_str(text), err);
}

#define IDENTITY_CA_CERTIFICATE "ca.crt"
#define IDENTITY_CA_KEY "ca.key"
#define IDENTITY_TOKEN_KEY "token.key"

static int identity_make(struct td_identity *identity, struct td_instant now, struct td_error *err)
{
    int code = td_pki_make_ca(TD_STR("tandem local cluster"), now, &identity->ca, err);
    td_buf_reset(&identity->token_key);
    return code == TD_OK ? td_random_token(&identity->token_key, err) : code;
}

/* The authority's key is written last: a folder without it was left half made, and is made anew. */
static int identity_keep(struct td_identity *identity, struct td_arena *arena, const char *data_dir,
                         struct td_error *err)
{
    int code = identity_write(arena, data_dir, IDENTITY_TOKEN_KEY, &identity->token_key, err);
    if (code == TD_OK) {
        code = identity_write(arena, data_dir, IDENTITY_CA_CERTIFICATE,
                              &identity->ca.certificate_pem, err);
    }
    return code == TD_OK
               ? identity_write(arena, data_dir, IDENTITY_CA_KEY, &identity->ca.key_pem, err)
               : code;
}

/* Truncated keys would authenticate the wrong clients. */
static int identity_check(const struct td_identity *identity, const char *data_dir,
                          struct td_error *err)
{
    size_t wanted = (size_t)2 * TD_TOKEN_BYTES; /* in hexadecimal */
    if (identity->token_key.len < wanted) {
        return td_error_set(err, TD_INVALID, "%s/%s: has %zu bytes instead of %zu", data_dir,
                            IDENTITY_TOKEN_KEY, identity->token_key.len, wanted);
    }
    int code = td_pki_check_pair(td_buf_str(&identity->ca.certificate_pem),
                                 td_buf_str(&identity->ca.key_pem), err);
    return code == TD_OK ? TD_OK
                         : td_error_wrap(err, code, "%s/%s, %s", data_dir, IDENTITY_CA_CERTIFICATE,
                                         IDENTITY_CA_KEY);
}

static int identity_load_kept(struct td_identity *identity, const char *data_dir,
                              struct td_instant now, struct td_error *err)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    int code = identity_read(&arena, data_dir, IDENTITY_CA_KEY, &identity->ca.key_pem, err);
    if (code == TD_NOT_FOUND) {
        code = identity_make(identity, now, err);
        return code == TD_OK ? identity_keep(identity, &arena, data_dir, err) : code;
    }
    if (code == TD_OK) {
        code = identity_read(&arena, data_dir, IDENTITY_CA_CERTIFICATE,
                             &identity->ca.certificate_pem, err);
    }
    if (code == TD_OK) {
        code = identity_read(&arena, data_dir, IDENTITY_TOKEN_KEY, &identity->token_key, err);
    }
    return code == TD_OK ? identity_check(identity, data_dir, err) : code;
}

int td_identity_load(struct td_identity *identity, const char *data_dir, td_str host,
                     struct td_instant now, struct td_error *err)
{
    int code = data_dir ? identity_load_kept(identity, data_dir, now, err)
                        : identity_make(identity, now, err);
    if (code != TD_OK) {
        return code;
    }
    const td_str dns[] = {TD_STR("localhost"), TD_STR("kubernetes"), TD_STR("kubernetes.default"),
                          TD_STR("kubernetes.default.svc"),
                          TD_STR("kubernetes.default.svc.cluster.local")};
    const td_str addresses[] = {TD_STR("127.0.0.1"), TD_STR("::1"), TD_STR("10.96.0.1"), host};
    const struct td_pki_names names = {
        .common_name = TD_STR("tandem"),
        .dns_names = dns,
        .dns_count = TD_COUNT(dns),
        .ip_addresses = addresses,
        .ip_count = host.len > 0 ? 4 : 3,
    };
    td_str ca = td_buf_str(&identity->ca.certificate_pem);
    td_str key = td_buf_str(&identity->ca.key_pem);
    code = td_pki_issue_server(ca, key, &names, now, &identity->server, err);
    const td_str masters = TD_STR("system:masters");
    const struct td_pki_user admin = {
        .name = TD_STR("kubernetes-admin"), .groups = &masters, .group_count = 1};
    return code == TD_OK ? td_pki_issue_client(ca, key, &admin, now, &identity->admin, err) : code;
}

int td_identity_tls(const struct td_identity *identity, struct ssl_ctx_st **ret,
                    struct td_error *err)
{
    const struct td_pki_server server = {
        .certificate_pem = td_buf_str(&identity->server.certificate_pem),
        .key_pem = td_buf_str(&identity->server.key_pem),
        .client_ca_pem = td_buf_str(&identity->ca.certificate_pem),
    };
    return td_pki_server_context(&server, ret, err);
}

int td_identity_write_kubeconfig(const struct td_identity *identity, const char *path, td_str name,
                                 td_str server_url, struct td_error *err)
{
    td_auto_buf text = td_buf_capped(TD_PEM_BYTES_MAX);
    const struct td_kubeconfig_entry entry = {
        .name = name,
        .server = server_url,
        .ca_pem = td_buf_str(&identity->ca.certificate_pem),
        .certificate_pem = td_buf_str(&identity->admin.certificate_pem),
        .key_pem = td_buf_str(&identity->admin.key_pem),
    };
    td_kubeconfig_write(&entry, &text);
    int code = td_buf_check(&text, "kubeconfig", err);
    return code == TD_OK ? td_file_write(path, 0600, td_buf_str(&text), err) : code;
}
