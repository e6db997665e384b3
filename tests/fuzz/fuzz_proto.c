/* Protobuf bodies from any bytes: each gives a tree that can be written and read back as the same
 * tree, or an error with a message and no tree. */
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "kube/proto/proto.h"

#define ARENA_BYTES ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_str body = {.ptr = size > 0 ? (const char *)data : "", .len = size};
    struct td_error err = TD_ERROR_INIT;
    struct td_proto_envelope envelope;
    if (td_proto_open(body, &envelope, &err) < 0) {
        td_assert(err.message[0] != '\0');
        return 0;
    }
    struct td_json *tree = NULL;
    int r = td_proto_decode(&arena, &envelope, &tree, &err);
    if (r < 0) {
        td_assert(r == TD_INVALID || r == TD_LIMIT);
        td_assert(err.code == r);
        td_assert(!tree);
        return 0;
    }
    td_assert(td_json_depth(tree) <= TD_JSON_DEPTH_MAX);
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    td_json_write(tree, &(struct td_json_format){.indent = 0}, &text);
    if (text.is_full) {
        return 0;
    }
    struct td_json *again = NULL;
    td_assert(td_json_parse(&arena, td_buf_str(&text), NULL, &again, NULL) == TD_OK);
    td_assert(td_json_equal(tree, again));
    return 0;
}
