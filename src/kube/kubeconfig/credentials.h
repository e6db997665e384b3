/*
 * Who we are, for the next request: token, password or client certificate of a td_kube_config, kept
 * fresh. Token files are read again after a minute, certificate and authority files when they
 * change, exec plugins are run on the loop when their answer has expired; a 401 asks for all of it
 * at once. Use by the transport, before each request:
 *
 *     int code = td_credentials_get(credentials, &credential, err);
 *     if (code == TD_BUSY) wait = td_credentials_wait(credentials, fn, context);  // plugin runs
 *     ... on a 401: td_credentials_reject(credentials, credential.generation), retry once
 *
 * What a td_credential points at is valid until control returns to the loop: copy it into the
 * request. When connection_generation differs from that of an open connection, new requests need a
 * new one. Texts of errors never hold a secret. One owner, on the loop's thread.
 */
#pragma once

#include <stdint.h>

#include "base/str.h"

struct td_credentials;
struct td_credentials_wait;
struct td_error;
struct td_kube_config;
struct td_loop;

struct td_credential {
    td_str bearer_token; /* empty: none */
    td_str username;     /* basic authentication when not empty */
    td_str password;
    td_str certificate_pem; /* client certificate with key_pem; empty: none */
    td_str key_pem;
    td_str ca_pem;                  /* authorities of the server; empty: the system's */
    uint64_t generation;            /* grows whenever any of these changed */
    uint64_t connection_generation; /* grows when certificate, key or authorities changed */
};

/* `config` with its arena, and the loop, must outlive the object; ages are by the loop's clock. */
struct td_credentials *td_credentials_new(const struct td_kube_config *config,
                                          struct td_loop *loop);

/* Stops a running plugin; those that wait are not called. NULL is accepted. */
void td_credentials_free(struct td_credentials *credentials);

/* TD_OK with what to use now; TD_BUSY while an exec plugin runs (it was started when needed); any
 * other code is a failure that the request shares: the plugin failed, or a token was never read. A
 * file that cannot be read any more keeps its last content. `err` is not set for TD_BUSY. */
int td_credentials_get(struct td_credentials *credentials, struct td_credential *ret,
                       struct td_error *err);

/* After TD_BUSY: called once from the loop when the plugin has finished, with TD_OK and
 * `credential`, or with the failure and `err`; it must not free the credentials. TD_LIMIT when
 * TD_CREDENTIALS_WAITS_MAX wait already. */
typedef void (*td_credential_fn)(int code, const struct td_credential *credential,
                                 const struct td_error *err, void *context);
int td_credentials_wait(struct td_credentials *credentials, td_credential_fn fn, void *context,
                        struct td_credentials_wait **ret, struct td_error *err);

/* Not to be called any more; only before its call. */
void td_credentials_cancel(struct td_credentials_wait *wait);

/* The server answered 401 to a request made under `generation`: files are read again and a plugin
 * runs again at the next get, unless that happened since. A plugin is never started more often than
 * every TD_EXEC_INTERVAL_MIN_MS, whatever the server says; until then its last answer stands. */
void td_credentials_reject(struct td_credentials *credentials, uint64_t generation);
