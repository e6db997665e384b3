/*
 * A growing byte buffer that is born with a maximum. Reaching it is an ordinary TD_LIMIT, and it is
 * sticky: later appends do nothing and report it again, so a writer may append many times and check
 * once at the end. The bytes are always followed by a NUL that is not counted. What is appended
 * must not lie in the buffer itself. One owner, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct td_error;

struct td_buf {
    char *ptr; /* owned; NULL until the first append */
    size_t len;
    size_t cap;
    size_t max;   /* bytes, NUL not counted */
    bool is_full; /* an append did not fit; stays until reset */
};

#define td_auto_buf __attribute__((cleanup(td_buf_done))) struct td_buf

void td_buf_init(struct td_buf *buf, size_t max);
struct td_buf td_buf_capped(size_t max); /* for a local, as td_arena_capped */
void td_buf_done(struct td_buf *buf);

/* Forget the content and the failure, keep the memory. */
void td_buf_reset(struct td_buf *buf);

int td_buf_append(struct td_buf *buf, td_str bytes);
int td_buf_append_char(struct td_buf *buf, char byte);
int td_buf_append_format(struct td_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int td_buf_append_int64(struct td_buf *buf, int64_t value);
/* For reading: about `digits` significant digits, without exponent and trailing zeros; "infinite".
 */
int td_buf_append_number(struct td_buf *buf, double value, int digits);

/* Room for `len` more bytes to be written at the returned place, or NULL when that is past the
 * maximum; the caller then adds what it wrote to buf->len with td_buf_commit. */
char *td_buf_reserve(struct td_buf *buf, size_t len);
void td_buf_commit(struct td_buf *buf, size_t len);

/* Remove the first `len` bytes, moving the rest to the front: once for all lines, not line by line.
 */
void td_buf_consume(struct td_buf *buf, size_t len);

/* The content as a slice, valid until the next change; never has a NULL pointer. */
td_str td_buf_str(const struct td_buf *buf);

/* TD_OK, or TD_LIMIT with a message when something did not fit. */
int td_buf_check(const struct td_buf *buf, const char *what, struct td_error *err);
