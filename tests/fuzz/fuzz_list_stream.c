/* A list that arrives in pieces, from any bytes. The first byte chooses the size of pieces: fed
 * whole and in pieces, it gives the same items and the same end, and every item of a list that is
 * JSON is JSON. */
#include <stdint.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "kube/cache/list_stream.h"

#define TEXT_BYTES ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
    bool is_json;       /* the whole input */
    struct td_buf text; /* everything that came out */
};

static bool is_json(td_str text)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    return td_json_parse(&arena, text, NULL, &tree, NULL) == TD_OK;
}

static int on_item(void *context, td_str text, struct td_error *err)
{
    struct run *run = context;
    (void)err;
    td_assert(!run->is_json || is_json(text));
    (void)td_buf_append_format(&run->text, "\n%zu:", text.len); /* the cap is checked at the end */
    (void)td_buf_append(&run->text, text);
    return TD_OK;
}

static void run_list(struct run *run, td_str input, size_t piece)
{
    struct td_list_stream stream;
    struct td_error err = TD_ERROR_INIT;
    int code = TD_OK;
    td_list_stream_init(&stream, on_item, run);
    for (size_t at = 0; at < input.len && code == TD_OK; at += piece) {
        /* A copy of its own, so that reading past a piece is seen. */
        td_auto_buf copy;
        td_buf_init(&copy, input.len);
        size_t end = input.len - at < piece ? input.len : at + piece;
        (void)td_buf_append(&copy, td_str_slice(input, at, end));
        code = td_list_stream_feed(&stream, td_buf_str(&copy), &err);
    }
    code = code == TD_OK ? td_list_stream_finish(&stream, &err) : code;
    td_assert(code == TD_OK || err.message[0] != '\0');
    (void)td_buf_append_format(&run->text, "\nend %d", code);
    td_list_stream_done(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    td_str input = {.ptr = (const char *)data + 1, .len = size - 1};
    struct run whole = {.is_json = is_json(input)};
    struct run pieces = {.is_json = whole.is_json};
    td_buf_init(&whole.text, TEXT_BYTES);
    td_buf_init(&pieces.text, TEXT_BYTES);
    run_list(&whole, input, input.len + 1);
    run_list(&pieces, input, (size_t)data[0] % 67 + 1);
    td_assert(!whole.text.is_full);
    td_assert(td_str_equal(td_buf_str(&whole.text), td_buf_str(&pieces.text)));
    td_buf_done(&whole.text);
    td_buf_done(&pieces.text);
    return 0;
}
