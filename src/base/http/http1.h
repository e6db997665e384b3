/*
 * One HTTP/1.1 request at a time, read from bytes as they arrive: request line, headers, and a body
 * framed by Content-Length or chunks. Strict where two readers could disagree about where a request
 * ends: both framings, a framing twice, folded headers, bare CR or LF, NUL, a space before the
 * colon and odd chunk sizes are refused. The result depends on the bytes alone, not on how they
 * were cut into pieces. A failure is a 4xx status with a short sentence, and it is final: the
 * connection cannot be read on. Every part is capped (base/limits.h). No I/O, no clock, one owner.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct td_http_header {
    td_str name;  /* as sent; compare with td_http_header_get */
    td_str value; /* without spaces around it */
};

/* The first header of this name, upper and lower case alike, or NULL. */
const struct td_http_header *td_http_header_get(const struct td_http_header *headers, size_t count,
                                                td_str name);

/* Do both hold the same text, ASCII letters of either case being equal? */
bool td_http_text_equal(td_str a, td_str b);

/* Is `word` an element of a comma-separated value, as in "Connection: close, upgrade"? */
bool td_http_list_has(td_str value, td_str word);

/* What one request may cost; a zero stands for the default in base/limits.h. */
struct td_http1_limits {
    size_t line_bytes_max;   /* request line; past it 414 */
    size_t header_bytes_max; /* all header lines, and again all trailer lines; past it 431 */
    size_t header_count_max; /* past it 431 */
    size_t body_bytes_max;   /* past it 413 */
};

enum td_http1_state {
    TD_HTTP1_HEAD,   /* reading the request line or the headers */
    TD_HTTP1_BODY,   /* the headers are complete, the body is not */
    TD_HTTP1_DONE,   /* the request is complete */
    TD_HTTP1_FAILED, /* see td_http1_status */
};

/* Valid from TD_HTTP1_BODY on; the body is whole from TD_HTTP1_DONE on. */
struct td_http1_request {
    td_str method;
    td_str target; /* origin form ("/path?query", not decoded), or "*"; of an absolute form its
                      part behind the host */
    int minor;     /* HTTP/1.minor: 0 or 1 */
    const struct td_http_header *headers;
    size_t header_count;
    td_str body;
    bool is_keep_alive;    /* may the connection serve another request? */
    bool expects_continue; /* Expect: 100-continue, and there is a body */
};

struct td_http1;

struct td_http1 *td_http1_new(const struct td_http1_limits *limits);
void td_http1_free(struct td_http1 *parser);

/* Take bytes until the request is complete or refused; returns how many were taken. What is left
 * over belongs to the next request. Takes nothing once done or failed. */
size_t td_http1_feed(struct td_http1 *parser, td_str bytes);

enum td_http1_state td_http1_state(const struct td_http1 *parser);

/* Has nothing of a request arrived yet? */
bool td_http1_is_empty(const struct td_http1 *parser);

/* Valid until the next feed, reset or free. */
const struct td_http1_request *td_http1_request(const struct td_http1 *parser);

/* Of a failed request: 400, 413, 414, 417 or 431, and one line of text without a line end. */
int td_http1_status(const struct td_http1 *parser);
const char *td_http1_problem(const struct td_http1 *parser);

/* Memory that the body holds now. */
size_t td_http1_body_bytes(const struct td_http1 *parser);

/* Begin the next request; small buffers are kept, large ones given back. */
void td_http1_reset(struct td_http1 *parser);
