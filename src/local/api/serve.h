/*
 * The API handler behind HTTPS: finds out who asks (local/auth/auth.h), hands the request to
 * td_api_start and the answer to the connection, with the connection's flow control. Nothing about
 * Kubernetes' kinds is known here.
 */
#pragma once

#include <stdint.h>

struct ssl_ctx_st;
struct td_api;
struct td_auth;
struct td_error;
struct td_loop;
struct td_serve;

struct td_serve_options {
    struct td_loop *loop;
    struct td_api *api;     /* borrowed */
    struct td_auth *auth;   /* borrowed */
    const char *address;    /* "127.0.0.1:6443"; port 0: any */
    struct ssl_ctx_st *tls; /* with client certificates */
};

int td_serve_new(const struct td_serve_options *options, struct td_serve **ret,
                 struct td_error *err);
void td_serve_free(struct td_serve *serve); /* NULL is accepted */
uint16_t td_serve_port(const struct td_serve *serve);
