/*
 * Pull reader over one complete JSON text (RFC 8259) in memory. Every byte is checked: structure,
 * numbers, escapes, UTF-8, control characters, depth. Nothing is allocated and nothing is copied:
 * token texts are slices of the input, which must outlive them; a string with escapes is decoded on
 * demand. The first failure is final: the reader keeps returning TD_JSON_ERROR and
 * td_json_reader_error gives the message with line and column.
 *
 *     struct td_json_reader r;
 *     td_json_reader_init(&r, text, TD_JSON_DEPTH_MAX);
 *     for (enum td_json_token t; (t = td_json_reader_next(&r)) > TD_JSON_END;) ...
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/str.h"

struct td_arena;
struct td_error;

enum td_json_token {
    TD_JSON_ERROR = -1,
    TD_JSON_END = 0, /* the whole text was read */
    TD_JSON_BEGIN_OBJECT,
    TD_JSON_END_OBJECT,
    TD_JSON_BEGIN_ARRAY,
    TD_JSON_END_ARRAY,
    TD_JSON_KEY,    /* text: the member's name */
    TD_JSON_STRING, /* text: between the quotes, as written */
    TD_JSON_NUMBER, /* text: as written */
    TD_JSON_TRUE,
    TD_JSON_FALSE,
    TD_JSON_NULL,
};

struct td_json_reader {
    const char *at;
    const char *end;
    const char *begin;
    td_str text;        /* of the last KEY, STRING or NUMBER token */
    bool has_escape;    /* the text holds backslashes: use td_json_reader_decode before comparing */
    uint32_t depth;     /* open arrays and objects */
    uint32_t depth_max; /* 1 to TD_JSON_DEPTH_MAX; 0 given to init means the latter */
    uint8_t expect;     /* private: what may come next, an enum td_json_expect */
    int code;           /* 0, or the td_code of the failure */
    const char *problem;                               /* static text of the failure */
    uint64_t is_object[(TD_JSON_DEPTH_MAX + 63) / 64]; /* private: one bit a level */
};

void td_json_reader_init(struct td_json_reader *reader, td_str text, uint32_t depth_max);

enum td_json_token td_json_reader_next(struct td_json_reader *reader);

/* After a KEY: read and check its whole value without reporting it. After BEGIN_OBJECT or
 * BEGIN_ARRAY: the rest of that collection up to its end. At the start: the whole value. After any
 * other token there is nothing to skip. 0, or a negative code. */
int td_json_reader_skip(struct td_json_reader *reader);

/* The last KEY or STRING token's text with escapes resolved: the input slice itself when it has
 * none, else an arena copy. */
td_str td_json_reader_decode(const struct td_json_reader *reader, struct td_arena *arena);

/* Is the last KEY token equal to `name`? Right for escaped keys too. */
bool td_json_reader_escaped_key_is(const struct td_json_reader *reader, td_str name);
static inline bool td_json_reader_key_is(const struct td_json_reader *reader, td_str name)
{
    return reader->has_escape ? td_json_reader_escaped_key_is(reader, name)
                              : td_str_equal(reader->text, name);
}

/* The last NUMBER token as int64: false when it has a fraction or exponent that makes it no whole
 * number, or is out of range. 1e3 and 1.0 are whole. */
bool td_json_reader_int64(const struct td_json_reader *reader, int64_t *ret);

/* Fill err ("line 3 column 14: expected ',' or '}'") and return the code; only after TD_JSON_ERROR.
 */
int td_json_reader_error(const struct td_json_reader *reader, struct td_error *err);
