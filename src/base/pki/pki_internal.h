/*
 * Shared by pki.c, pki_tls.c and hmac.c only.
 */
#pragma once

#include <openssl/bio.h>

#include "base/str.h"

struct td_error;

/* "WHAT: OpenSSL's reason", with OpenSSL's own list of errors emptied; returns `code`. */
int td_pki_fail(struct td_error *err, int code, const char *what);

/* Answers OpenSSL's question for a password with none: it would otherwise ask on the terminal. */
int td_pki_no_password(char *out, int size, int is_writing, void *context);

/* Before OpenSSL is used: it takes its own beginning for granted, and would crash later where there
 * was no memory for that. Costs a look at a flag but for the first time. */
void td_pki_setup(void);

/* The text to read from; NULL above TD_PEM_BYTES_MAX. */
BIO *td_pki_open(td_str pem);
