/*
 * The head is kept as it came in one buffer, line by line; headers are remembered as places in it,
 * since it may move while it grows, and become slices when the blank line is there. A line is
 * looked at as soon as it is complete, so a broken one is refused without waiting for the rest, and
 * caps count what has arrived of a line that is not complete. Both depend only on how many bytes
 * came, never on the pieces: what is decided about a prefix is decided the same way however it
 * arrived.
 *
 * Framing (RFC 9112 section 6) is where requests are smuggled, so a request that two readers could
 * understand differently is refused instead of repaired: one Content-Length of digits only, or one
 * Transfer-Encoding that is exactly "chunked" and not in HTTP/1.0, and never both. Lines end in CR
 * LF and nothing else. Chunk extensions and trailers are checked and dropped.
 */
#include "base/http/http1.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/vec.h"

#define PROBLEM_BYTES 128
#define HEAD_KEPT_BYTES                                                                            \
    ((size_t)4 << 10) /* kept for the next request; larger ones are given back */
#define BODY_KEPT_BYTES ((size_t)16 << 10)
#define LINE_ENDS_BYTES 4   /* of an empty line and of the request line */
#define CHUNK_DIGITS_MAX 16 /* hexadecimal; any 64-bit size */

enum http1_step {
    STEP_LINE,
    STEP_HEADERS,
    STEP_LENGTH, /* a body of known length */
    STEP_CHUNK_SIZE,
    STEP_CHUNK_DATA,
    STEP_CHUNK_CR,
    STEP_CHUNK_LF,
    STEP_TRAILERS,
    STEP_DONE,
    STEP_FAILED,
};

/* A header as places in the head buffer. */
struct http1_span {
    size_t name_at;
    size_t name_len;
    size_t value_at;
    size_t value_len;
};

/* What the headers say about the body, gathered before it is judged. */
struct http1_framing {
    size_t host_count;
    size_t length_count;
    size_t encoding_count;
    td_str length;
    td_str encoding;
};

struct td_http1 {
    struct td_http1_limits limits;
    enum http1_step step;
    bool has_skipped_line; /* one empty line before a request is let pass */
    struct td_buf head;    /* request line and headers with their line ends */
    struct td_buf line;    /* chunk size or trailer under way */
    struct td_buf body;
    size_t line_at;   /* in head: the line under way */
    size_t header_at; /* in head: the first header line */
    struct {
        TD_VEC_FIELDS(struct http1_span);
    } spans;
    struct td_http_header *headers; /* owned; room for header_cap */
    size_t header_cap;
    size_t left_bytes;      /* of the body or of the chunk */
    size_t extension_bytes; /* of all chunk size lines */
    size_t trailer_bytes;
    size_t trailer_count;
    struct td_http1_request request;
    int status;
    char problem[PROBLEM_BYTES];
};

/* The characters of a token (RFC 9110 section 5.6.2): methods and header names. */
static const bool http1_is_token[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['!'] = true,  ['#'] = true,
    ['$'] = true,         ['%'] = true,         ['&'] = true,         ['\''] = true, ['*'] = true,
    ['+'] = true,         ['-'] = true,         ['.'] = true,         ['^'] = true,  ['_'] = true,
    ['`'] = true,         ['|'] = true,         ['~'] = true,
};

static bool text_is_token(td_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!http1_is_token[(uint8_t)text.ptr[i]]) {
            return false;
        }
    }
    return text.len > 0;
}

/* No control characters; bytes above 127 are left to the reader of the text. */
static bool text_is_visible(td_str text, bool may_have_blanks)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];
        bool is_blank = c == ' ' || c == '\t';
        if (is_blank ? !may_have_blanks : c < ' ' || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static td_str trim_blanks(td_str s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s = td_str_slice(s, 1, s.len);
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t')) {
        s.len--;
    }
    return s;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool td_http_text_equal(td_str a, td_str b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i])) {
            return false;
        }
    }
    return true;
}

const struct td_http_header *td_http_header_get(const struct td_http_header *headers, size_t count,
                                                td_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (td_http_text_equal(headers[i].name, name)) {
            return &headers[i];
        }
    }
    return NULL;
}

bool td_http_list_has(td_str value, td_str word)
{
    for (size_t at = 0; at <= value.len;) {
        size_t comma = td_str_find(value, ',', at);
        if (td_http_text_equal(trim_blanks(td_str_slice(value, at, comma)), word)) {
            return true;
        }
        at = comma + 1;
    }
    return false;
}

static void __attribute__((format(printf, 3, 4)))
http1_fail(struct td_http1 *parser, int status, const char *format, ...)
{
    parser->step = STEP_FAILED;
    parser->status = status;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(parser->problem, sizeof(parser->problem), format, args); /* cut when longer */
    va_end(args);
}

struct td_http1 *td_http1_new(const struct td_http1_limits *limits)
{
    struct td_http1 *parser = td_alloc_zero(1, sizeof(*parser));
    struct td_http1_limits *own = &parser->limits;
    *own = *limits;
    own->line_bytes_max = own->line_bytes_max ? own->line_bytes_max : TD_HTTP_LINE_BYTES_MAX;
    own->header_bytes_max =
        own->header_bytes_max ? own->header_bytes_max : TD_HTTP_HEADER_BYTES_MAX;
    own->header_count_max = own->header_count_max ? own->header_count_max : TD_HTTP_HEADERS_MAX;
    own->body_bytes_max = own->body_bytes_max ? own->body_bytes_max : TD_HTTP_BODY_BYTES_MAX;
    td_buf_init(&parser->head, own->line_bytes_max + LINE_ENDS_BYTES + own->header_bytes_max);
    td_buf_init(&parser->line, own->header_bytes_max + TD_HTTP_CHUNK_LINE_BYTES_MAX);
    td_buf_init(&parser->body, own->body_bytes_max);
    parser->spans.count_max = own->header_count_max;
    return parser;
}

void td_http1_free(struct td_http1 *parser)
{
    if (!parser) {
        return;
    }
    td_buf_done(&parser->head);
    td_buf_done(&parser->line);
    td_buf_done(&parser->body);
    td_vec_done(&parser->spans);
    td_free(parser->headers);
    td_free(parser);
}

static void buffer_empty(struct td_buf *buf, size_t kept_bytes)
{
    size_t max = buf->max;
    if (buf->cap > kept_bytes) {
        td_buf_done(buf);
        td_buf_init(buf, max);
    } else {
        td_buf_reset(buf);
    }
}

void td_http1_reset(struct td_http1 *parser)
{
    buffer_empty(&parser->head, HEAD_KEPT_BYTES);
    buffer_empty(&parser->line, HEAD_KEPT_BYTES);
    buffer_empty(&parser->body, BODY_KEPT_BYTES);
    td_vec_reset(&parser->spans);
    parser->step = STEP_LINE;
    parser->has_skipped_line = false;
    parser->line_at = 0;
    parser->header_at = 0;
    parser->left_bytes = 0;
    parser->extension_bytes = 0;
    parser->trailer_bytes = 0;
    parser->trailer_count = 0;
    parser->request = (struct td_http1_request){.minor = 0};
    parser->status = 0;
    parser->problem[0] = '\0';
}

/* Method, target and version, each parted by one space. */
static void http1_request_line(struct td_http1 *parser, td_str line)
{
    struct td_http1_request *request = &parser->request;
    size_t first = td_str_find(line, ' ', 0);
    size_t second = td_str_find(line, ' ', first + 1);
    td_str method = td_str_slice(line, 0, first);
    td_str target = td_str_slice(line, first + 1, second);
    td_str version = td_str_slice(line, second + 1, line.len);
    if (!text_is_token(method) || target.len == 0 || !text_is_visible(target, false) ||
        !text_is_visible(version, false)) {
        http1_fail(parser, 400, "malformed request line");
        return;
    }
    if (!td_str_equal(version, TD_STR("HTTP/1.1")) && !td_str_equal(version, TD_STR("HTTP/1.0"))) {
        http1_fail(parser, 400, "unsupported protocol version, only HTTP/1.1 and HTTP/1.0 are");
        return;
    }
    request->minor = version.ptr[version.len - 1] - '0';
    parser->step = STEP_HEADERS;
    parser->header_at = parser->head.len;
}

/* The part of a target behind scheme and host; empty when the target has no form we serve. */
static td_str target_origin_form(td_str target)
{
    bool is_origin = target.ptr[0] == '/' || td_str_equal(target, TD_STR("*"));
    if (is_origin) {
        return target;
    }
    size_t colon = td_str_find(target, ':', 0);
    td_str scheme = td_str_slice(target, 0, colon);
    bool is_absolute = (td_http_text_equal(scheme, TD_STR("http")) ||
                        td_http_text_equal(scheme, TD_STR("https"))) &&
                       td_str_starts_with(td_str_slice(target, colon, target.len), TD_STR("://"));
    size_t host = colon + 3;
    size_t path = td_str_find(target, '/', host);
    bool has_host =
        path > host && td_str_find(td_str_slice(target, host, path), '?', 0) == path - host;
    if (!is_absolute || target.len <= host || !has_host) {
        return TD_STR_EMPTY;
    }
    return path < target.len ? td_str_slice(target, path, target.len) : TD_STR("/");
}

/* Split one header line; false when it is not one. */
static bool header_split(td_str line, struct td_http_header *ret)
{
    size_t colon = td_str_find(line, ':', 0);
    td_str name = td_str_slice(line, 0, colon);
    td_str value = trim_blanks(td_str_slice(line, colon + 1, line.len));
    if (colon == line.len || !text_is_token(name) || !text_is_visible(value, true)) {
        return false;
    }
    *ret = (struct td_http_header){.name = name, .value = value};
    return true;
}

/* Digits only, once. Returns false when the request was refused. */
static bool http1_read_length(struct td_http1 *parser, td_str text)
{
    size_t length = 0;
    bool is_huge = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c < '0' || c > '9') {
            http1_fail(parser, 400, "malformed Content-Length");
            return false;
        }
        is_huge = is_huge || length > (SIZE_MAX - 9) / 10;
        length = is_huge ? SIZE_MAX : length * 10 + (size_t)(c - '0');
    }
    if (text.len == 0) {
        http1_fail(parser, 400, "malformed Content-Length");
        return false;
    }
    if (length > parser->limits.body_bytes_max) {
        http1_fail(parser, 413, "request body is larger than %zu bytes",
                   parser->limits.body_bytes_max);
        return false;
    }
    parser->left_bytes = length;
    return true;
}

/* How the body is framed, from what the headers say; the step that reads it. */
static void http1_frame_body(struct td_http1 *parser, const struct http1_framing *framing)
{
    int minor = parser->request.minor;
    if (framing->host_count > 1 || (framing->host_count == 0 && minor == 1)) {
        http1_fail(parser, 400, "exactly one Host header is needed");
    } else if (framing->length_count > 0 && framing->encoding_count > 0) {
        http1_fail(parser, 400, "both Content-Length and Transfer-Encoding");
    } else if (framing->length_count > 1) {
        http1_fail(parser, 400, "more than one Content-Length");
    } else if (framing->encoding_count > 1 ||
               (framing->encoding_count == 1 &&
                !td_http_text_equal(framing->encoding, TD_STR("chunked")))) {
        http1_fail(parser, 400, "unsupported Transfer-Encoding, only 'chunked' is");
    } else if (framing->encoding_count == 1 && minor == 0) {
        http1_fail(parser, 400, "Transfer-Encoding in HTTP/1.0");
    } else if (framing->encoding_count == 1) {
        parser->step = STEP_CHUNK_SIZE;
    } else if (framing->length_count == 0) {
        parser->step = STEP_DONE;
    } else if (http1_read_length(parser, framing->length)) {
        parser->step = parser->left_bytes > 0 ? STEP_LENGTH : STEP_DONE;
    }
}

/* Turn the places into slices, now that the head does not move any more. */
static void http1_set_headers(struct td_http1 *parser)
{
    size_t count = parser->spans.count;
    if (count > parser->header_cap) {
        parser->headers = td_realloc(parser->headers, count * sizeof(*parser->headers));
        parser->header_cap = count;
    }
    td_str head = td_buf_str(&parser->head);
    for (size_t i = 0; i < count; i++) {
        const struct http1_span *span = &parser->spans.items[i];
        parser->headers[i] = (struct td_http_header){
            .name = {.ptr = head.ptr + span->name_at, .len = span->name_len},
            .value = {.ptr = head.ptr + span->value_at, .len = span->value_len},
        };
    }
    struct td_http1_request *request = &parser->request;
    request->headers = parser->headers;
    request->header_count = count;
    size_t start = parser->has_skipped_line ? 2 : 0;
    td_str line = td_str_slice(head, start, parser->header_at - 2);
    size_t first = td_str_find(line, ' ', 0);
    request->method = td_str_slice(line, 0, first);
    request->target =
        target_origin_form(td_str_slice(line, first + 1, td_str_find(line, ' ', first + 1)));
}

/* The blank line is there: everything the headers decide. */
static void http1_finish_head(struct td_http1 *parser)
{
    http1_set_headers(parser);
    struct td_http1_request *request = &parser->request;
    if (request->target.len == 0) {
        http1_fail(parser, 400, "malformed request target");
        return;
    }
    struct http1_framing framing = {.host_count = 0};
    bool has_close = false;
    bool has_keep_alive = false;
    for (size_t i = 0; i < request->header_count; i++) {
        const struct td_http_header *header = &request->headers[i];
        if (td_http_text_equal(header->name, TD_STR("Host"))) {
            framing.host_count++;
        } else if (td_http_text_equal(header->name, TD_STR("Content-Length"))) {
            framing.length_count++;
            framing.length = header->value;
        } else if (td_http_text_equal(header->name, TD_STR("Transfer-Encoding"))) {
            framing.encoding_count++;
            framing.encoding = header->value;
        } else if (td_http_text_equal(header->name, TD_STR("Connection"))) {
            has_close = has_close || td_http_list_has(header->value, TD_STR("close"));
            has_keep_alive =
                has_keep_alive || td_http_list_has(header->value, TD_STR("keep-alive"));
        }
    }
    request->is_keep_alive = !has_close && (request->minor == 1 || has_keep_alive);
    http1_frame_body(parser, &framing);
    const struct td_http_header *expect =
        td_http_header_get(request->headers, request->header_count, TD_STR("Expect"));
    if (!expect || request->minor == 0 || parser->step == STEP_FAILED) {
        return;
    }
    if (td_http_text_equal(expect->value, TD_STR("100-continue"))) {
        request->expects_continue = parser->step != STEP_DONE;
    } else {
        http1_fail(parser, 417, "unsupported Expect, only '100-continue' is");
    }
}

static void http1_header_line(struct td_http1 *parser, td_str line)
{
    struct td_http_header header;
    if (line.len == 0) {
        http1_finish_head(parser);
        return;
    }
    if (line.ptr[0] == ' ' || line.ptr[0] == '\t') {
        http1_fail(parser, 400, "folded header line");
        return;
    }
    if (!header_split(line, &header)) {
        http1_fail(parser, 400, "malformed header line");
        return;
    }
    struct http1_span *span = td_vec_push(&parser->spans);
    if (!span) {
        http1_fail(parser, 431, "more than %zu headers", parser->limits.header_count_max);
        return;
    }
    const char *head = td_buf_str(&parser->head).ptr;
    *span = (struct http1_span){
        .name_at = (size_t)(header.name.ptr - head),
        .name_len = header.name.len,
        .value_at = (size_t)(header.value.ptr - head),
        .value_len = header.value.len,
    };
}

static void http1_trailer_line(struct td_http1 *parser, td_str line)
{
    struct td_http_header header;
    if (line.len == 0) {
        parser->step = STEP_DONE;
    } else if (!header_split(line, &header)) {
        http1_fail(parser, 400, "malformed trailer line");
    } else if (parser->trailer_count >= parser->limits.header_count_max) {
        http1_fail(parser, 431, "more than %zu trailers", parser->limits.header_count_max);
    } else {
        parser->trailer_count++;
        parser->trailer_bytes += line.len + 2;
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    char small = lower(c);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/* Hexadecimal digits, then nothing or an extension that begins with a semicolon. */
static void http1_chunk_line(struct td_http1 *parser, td_str line)
{
    uint64_t size = 0;
    size_t digits = 0;
    for (; digits < line.len && hex_digit(line.ptr[digits]) >= 0; digits++) {
        if (digits == CHUNK_DIGITS_MAX) {
            http1_fail(parser, 400, "malformed chunk size");
            return;
        }
        size = size << 4 | (uint64_t)hex_digit(line.ptr[digits]);
    }
    td_str extension = td_str_slice(line, digits, line.len);
    if (digits == 0 || (extension.len > 0 && extension.ptr[0] != ';') ||
        !text_is_visible(extension, true)) {
        http1_fail(parser, 400, "malformed chunk size");
        return;
    }
    parser->extension_bytes += extension.len;
    if (parser->extension_bytes > TD_HTTP_CHUNK_EXTENSION_BYTES_MAX) {
        http1_fail(parser, 400, "chunk extensions are too long");
        return;
    }
    if (size > parser->limits.body_bytes_max - parser->body.len) {
        http1_fail(parser, 413, "request body is larger than %zu bytes",
                   parser->limits.body_bytes_max);
        return;
    }
    parser->left_bytes = (size_t)size;
    parser->step = size > 0 ? STEP_CHUNK_DATA : STEP_TRAILERS;
}

/* Move the rest of a line from `input` to `buf`, where it began at `start`. True when it is
 * complete: *ret_line is then its text without the line end. Fails the request when the line with
 * its end is longer than bytes_max, or ends in a bare LF. */
static bool http1_take_line(struct td_http1 *parser, struct td_buf *buf, size_t start,
                            size_t bytes_max, int status_too_long, td_str *input, td_str *ret_line)
{
    size_t end = td_str_find(*input, '\n', 0);
    bool is_complete = end < input->len;
    size_t count = is_complete ? end + 1 : input->len;
    if (count > bytes_max - (buf->len - start)) {
        http1_fail(parser, status_too_long, "a line of the request, or all of them, are too long");
        return false;
    }
    int result = td_buf_append(buf, td_str_slice(*input, 0, count));
    td_assert(result == 0); /* bytes_max is within the buffer's */
    *input = td_str_slice(*input, count, input->len);
    if (!is_complete) {
        return false;
    }
    td_str line = td_str_slice(td_buf_str(buf), start, buf->len - 1);
    if (line.len == 0 || line.ptr[line.len - 1] != '\r') {
        http1_fail(parser, 400, "a line does not end in CR LF");
        return false;
    }
    *ret_line = td_str_slice(line, 0, line.len - 1);
    return true;
}

static void http1_feed_request_line(struct td_http1 *parser, td_str *input)
{
    uint8_t first = (uint8_t)input->ptr[0];
    bool is_start = parser->head.len == parser->line_at;
    /* Another protocol is refused at its first byte, not when a line happens to end. */
    if (is_start && first != '\r' && !http1_is_token[first]) {
        http1_fail(parser, 400, "malformed request line");
        return;
    }
    td_str line;
    if (!http1_take_line(parser, &parser->head, parser->line_at, parser->limits.line_bytes_max + 2,
                         414, input, &line)) {
        return;
    }
    if (line.len == 0 && !parser->has_skipped_line) {
        parser->has_skipped_line = true;
        parser->line_at = parser->head.len;
        return;
    }
    http1_request_line(parser, line);
    parser->line_at = parser->head.len;
}

static void http1_feed_headers(struct td_http1 *parser, td_str *input)
{
    size_t bytes_max = parser->limits.header_bytes_max - (parser->line_at - parser->header_at);
    td_str line;
    if (http1_take_line(parser, &parser->head, parser->line_at, bytes_max, 431, input, &line)) {
        http1_header_line(parser, line);
        parser->line_at = parser->head.len;
    }
}

/* Size lines and trailers: nothing of them is kept. */
static void http1_feed_chunk_line(struct td_http1 *parser, td_str *input)
{
    bool is_size = parser->step == STEP_CHUNK_SIZE;
    if (is_size && parser->line.len == 0 && hex_digit(input->ptr[0]) < 0) {
        http1_fail(parser, 400, "malformed chunk size");
        return;
    }
    size_t bytes_max = is_size ? TD_HTTP_CHUNK_LINE_BYTES_MAX
                               : parser->limits.header_bytes_max - parser->trailer_bytes;
    td_str line;
    if (!http1_take_line(parser, &parser->line, 0, bytes_max, is_size ? 400 : 431, input, &line)) {
        return;
    }
    if (is_size) {
        http1_chunk_line(parser, line);
    } else {
        http1_trailer_line(parser, line);
    }
    td_buf_reset(&parser->line);
}

static void http1_feed_data(struct td_http1 *parser, td_str *input, enum http1_step next)
{
    size_t count = input->len < parser->left_bytes ? input->len : parser->left_bytes;
    int result = td_buf_append(&parser->body, td_str_slice(*input, 0, count));
    td_assert(result == 0); /* lengths were checked against the cap before */
    *input = td_str_slice(*input, count, input->len);
    parser->left_bytes -= count;
    if (parser->left_bytes == 0) {
        parser->step = next;
    }
}

static void http1_feed_mark(struct td_http1 *parser, td_str *input, char mark, enum http1_step next)
{
    if (input->ptr[0] != mark) {
        http1_fail(parser, 400, "a chunk does not end where its size says");
        return;
    }
    *input = td_str_slice(*input, 1, input->len);
    parser->step = next;
}

size_t td_http1_feed(struct td_http1 *parser, td_str bytes)
{
    td_str input = bytes;
    while (input.len > 0 && parser->step < STEP_DONE) {
        switch (parser->step) {
        case STEP_LINE:
            http1_feed_request_line(parser, &input);
            break;
        case STEP_HEADERS:
            http1_feed_headers(parser, &input);
            break;
        case STEP_LENGTH:
            http1_feed_data(parser, &input, STEP_DONE);
            break;
        case STEP_CHUNK_DATA:
            http1_feed_data(parser, &input, STEP_CHUNK_CR);
            break;
        case STEP_CHUNK_CR:
            http1_feed_mark(parser, &input, '\r', STEP_CHUNK_LF);
            break;
        case STEP_CHUNK_LF:
            http1_feed_mark(parser, &input, '\n', STEP_CHUNK_SIZE);
            break;
        case STEP_CHUNK_SIZE:
        case STEP_TRAILERS:
            http1_feed_chunk_line(parser, &input);
            break;
        default:
            td_assert(false);
        }
    }
    parser->request.body = td_buf_str(&parser->body);
    return bytes.len - input.len;
}

enum td_http1_state td_http1_state(const struct td_http1 *parser)
{
    switch (parser->step) {
    case STEP_LINE:
    case STEP_HEADERS:
        return TD_HTTP1_HEAD;
    case STEP_DONE:
        return TD_HTTP1_DONE;
    case STEP_FAILED:
        return TD_HTTP1_FAILED;
    default:
        return TD_HTTP1_BODY;
    }
}

bool td_http1_is_empty(const struct td_http1 *parser)
{
    return parser->step == STEP_LINE && parser->head.len == parser->line_at;
}

const struct td_http1_request *td_http1_request(const struct td_http1 *parser)
{
    return &parser->request;
}

int td_http1_status(const struct td_http1 *parser)
{
    return parser->status;
}

const char *td_http1_problem(const struct td_http1 *parser)
{
    return parser->problem;
}

size_t td_http1_body_bytes(const struct td_http1 *parser)
{
    return parser->body.cap;
}
