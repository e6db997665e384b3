/*
 * The keys of a local cluster: its authority, the server's certificate, the administrator's, and
 * the key that signs service account tokens. Made anew for a cluster in memory; of a durable one
 * the authority and the signing key are kept in its data folder (0600), so that kubeconfigs and
 * tokens stay good over a restart. Certificates are issued at each start.
 */
#pragma once

#include "base/pki/pki.h"
#include "base/str.h"

struct ssl_ctx_st;
struct td_error;

struct td_identity {
    struct td_pki_pair ca;
    struct td_pki_pair server;
    struct td_pki_pair admin;
    struct td_buf token_key; /* a secret */
};

void td_identity_init(struct td_identity *identity);
void td_identity_done(struct td_identity *identity); /* secrets are wiped */

/* data_dir NULL: nothing is kept. `host` is the address that the server is reached by, beside
 * loopback. Times are real time: peers check them with their own clocks. */
int td_identity_load(struct td_identity *identity, const char *data_dir, td_str host,
                     struct td_instant now, struct td_error *err);

/* The server's TLS context, asking clients for certificates of the authority. */
int td_identity_tls(const struct td_identity *identity, struct ssl_ctx_st **ret,
                    struct td_error *err);

/* The administrator's kubeconfig, written to `path` with mode 0600. */
int td_identity_write_kubeconfig(const struct td_identity *identity, const char *path, td_str name,
                                 td_str server_url, struct td_error *err);
