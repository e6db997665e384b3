/* HTTP/1 requests from any bytes. The first byte chooses the size of pieces: fed whole and in
 * pieces, a stream gives the same requests and the same refusal, and every request keeps the
 * promises of its header. Small caps let short inputs reach them. */
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/http/http1.h"

#define TEXT_BYTES ((size_t)4 << 20)
#define REQUESTS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct td_http1_limits limits = {
    .line_bytes_max = 256,
    .header_bytes_max = 512,
    .header_count_max = 8,
    .body_bytes_max = 128,
};

static bool has_line_end(td_str text)
{
    return td_str_find(text, '\r', 0) < text.len || td_str_find(text, '\n', 0) < text.len ||
           td_str_find(text, '\0', 0) < text.len;
}

/* Everything that a reader sees, as text. */
static void describe(const struct td_http1 *parser, struct td_buf *text)
{
    const struct td_http1_request *request = td_http1_request(parser);
    enum td_http1_state state = td_http1_state(parser);
    (void)td_buf_append_format(text, "state %d\n", (int)state); /* the cap is checked at the end */
    if (state == TD_HTTP1_FAILED) {
        td_assert(td_http1_status(parser) >= 400 && td_http1_status(parser) < 500);
        (void)td_buf_append_format(text, "%d %s\n", td_http1_status(parser),
                                   td_http1_problem(parser));
    }
    if (state != TD_HTTP1_DONE && state != TD_HTTP1_BODY) {
        return;
    }
    td_assert(request->method.len > 0 && !has_line_end(request->method));
    td_assert(request->target.len > 0 && !has_line_end(request->target));
    td_assert(request->target.ptr[0] == '/' || td_str_equal(request->target, TD_STR("*")));
    td_assert(request->header_count <= limits.header_count_max);
    td_assert(request->body.len <= limits.body_bytes_max);
    (void)td_buf_append_format(text, "%.*s %.*s 1.%d %d%d\n", TD_STR_ARG(request->method),
                               TD_STR_ARG(request->target), request->minor, request->is_keep_alive,
                               request->expects_continue);
    for (size_t i = 0; i < request->header_count; i++) {
        const struct td_http_header *header = &request->headers[i];
        td_assert(header->name.len > 0 && !has_line_end(header->name));
        td_assert(!has_line_end(header->value));
        (void)td_buf_append(text, header->name);
        (void)td_buf_append(text, TD_STR("="));
        (void)td_buf_append(text, header->value);
        (void)td_buf_append(text, TD_STR("\n"));
    }
    (void)td_buf_append(text, request->body);
}

static void read_all(struct td_http1 *parser, td_str input, size_t piece, struct td_buf *text)
{
    size_t at = 0;
    size_t requests = 0;
    td_http1_reset(parser);
    while (at < input.len && requests < REQUESTS_MAX) {
        size_t end = input.len - at < piece ? input.len : at + piece;
        size_t taken = td_http1_feed(parser, td_str_slice(input, at, end));
        td_assert(taken <= end - at);
        at += taken;
        if (td_http1_state(parser) == TD_HTTP1_FAILED) {
            break;
        }
        if (td_http1_state(parser) == TD_HTTP1_DONE) {
            describe(parser, text);
            td_http1_reset(parser);
            requests++;
        } else {
            td_assert(at == end);
        }
    }
    describe(parser, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    td_str input = {.ptr = (const char *)data + 1, .len = size - 1};
    size_t piece = (size_t)data[0] % 61 + 1;
    td_auto_buf whole;
    td_auto_buf pieces;
    td_buf_init(&whole, TEXT_BYTES);
    td_buf_init(&pieces, TEXT_BYTES);
    struct td_http1 *parser = td_http1_new(&limits);
    read_all(parser, input, input.len + 1, &whole);
    read_all(parser, input, piece, &pieces);
    td_http1_free(parser);
    td_assert(td_str_equal(td_buf_str(&whole), td_buf_str(&pieces)));
    return 0;
}
