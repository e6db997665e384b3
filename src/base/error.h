/*
 * One way to fail. A function that can fail returns 0 or a negative td_code and takes `struct
 * td_error *err` last; err may be NULL when the caller does not need the text. It is set once,
 * where the failure is found, and then only wrapped, so the message reads from intent to cause:
 * "read 'a.yaml': line 3: tab in indentation". The message is cut at its fixed size (never
 * allocated) and on success the object is left untouched.
 */
#pragma once

enum td_code {
    TD_OK = 0,
    TD_NOT_FOUND = -1,
    TD_CONFLICT = -2, /* another writer changed it, or owns it */
    TD_GONE = -3,     /* the position asked for has expired */
    TD_INVALID = -4,  /* malformed or refused input */
    TD_LIMIT = -5,    /* a named cap of base/limits.h was reached */
    TD_TIMEOUT = -6,
    TD_IO = -7,
    TD_DENIED = -8,
    TD_BUSY = -9, /* try again later */
    TD_EXISTS = -10,
};

#define TD_ERROR_MESSAGE_BYTES 1024

struct td_error {
    int code;         /* a td_code; 0 when nothing failed */
    const char *file; /* where it was set; static storage */
    int line;
    char message[TD_ERROR_MESSAGE_BYTES]; /* NUL-terminated, cut at a whole UTF-8 character */
};

#define TD_ERROR_INIT ((struct td_error){.code = TD_OK})

/* Set the error and return `code`, so that callers write `return td_error_set(err, TD_INVALID,
 * ...)`. */
#define td_error_set(err, code, ...) td_error_set_at(err, code, __FILE__, __LINE__, __VA_ARGS__)

int td_error_set_at(struct td_error *err, int code, const char *file, int line, const char *format,
                    ...) __attribute__((format(printf, 5, 6)));

/* Put "what this level was trying to do: " in front of the message of a failure with that code, and
 * return the code. */
int td_error_wrap(struct td_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The code's name for logs and metrics: "not-found", "conflict", ... */
const char *td_code_name(int code);
