/* YAML from any bytes: what parses can be written, and is read back as the same trees. */
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"

#define ARENA_BYTES ((size_t)256 << 20)
#define TEXT_BYTES                                                                                 \
    ((size_t)32 << 20) /* indentation can make a deep tree much longer than its text */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_document(struct td_arena *arena, const struct td_json *tree)
{
    td_auto_buf text;
    struct td_yaml_documents again;
    td_buf_init(&text, TEXT_BYTES);
    td_assert(td_json_depth(tree) <= TD_YAML_DEPTH_MAX);
    td_yaml_write(tree, &text);
    if (text.is_full) {
        return;
    }
    int code = td_yaml_parse(arena, td_buf_str(&text), &again, NULL);
    if (code != TD_LIMIT) {
        td_assert(code == TD_OK);
        td_assert(again.count == 1);
        td_assert(td_json_equal(again.items[0], tree));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_auto_arena arena;
    struct td_yaml_documents documents;
    struct td_error err = TD_ERROR_INIT;
    td_arena_init(&arena, ARENA_BYTES);
    td_str text = {.ptr = (const char *)data, .len = size};
    if (td_yaml_parse(&arena, text, &documents, &err) < 0) {
        td_assert(err.code == TD_INVALID || err.code == TD_LIMIT);
        td_assert(td_str_starts_with(td_str_from(err.message), TD_STR("line ")));
        return 0;
    }
    for (size_t i = 0; i < documents.count; i++) {
        check_document(&arena, documents.items[i]);
    }
    return 0;
}
