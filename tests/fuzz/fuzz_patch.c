/* All four patches from any bytes: a document and a patch, split at the first newline or NUL, meet
 * as a Pod. Inputs must stay as they are, results must be writable and readable again, and what a
 * three-way patch makes must apply. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/patch/patch.h"
#include "kube/schema/schema.h"

#define ARENA_BYTES ((size_t)512 << 20)
#define TEXT_BYTES ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static td_str written(struct td_arena *arena, const struct td_json *tree)
{
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES);
    td_json_write(tree, &(struct td_json_format){.indent = 0}, &text);
    td_assert(!text.is_full);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static void check_result(struct td_arena *arena, int code, const struct td_json *result,
                         const struct td_error *err)
{
    if (code < 0) {
        td_assert(!result);
        td_assert(err->code == code);
        td_assert(err->message[0] != 0);
        return;
    }
    struct td_json *again = NULL;
    td_assert(td_json_depth(result) <= TD_JSON_DEPTH_MAX);
    td_assert(td_json_parse(arena, written(arena, result), NULL, &again, NULL) == TD_OK);
    td_assert(td_json_equal(result, again));
}

static void run_three_way(struct td_arena *arena, const struct td_schema_type *type,
                          const struct td_json *document, const struct td_json *patch,
                          bool overwrite)
{
    struct td_patch_three_way input = {
        .original = overwrite ? document : NULL,
        .modified = patch,
        .current = document,
        .overwrite = overwrite,
    };
    struct td_error err = TD_ERROR_INIT;
    struct td_json *made = NULL;
    int code = td_patch_three_way(arena, type, &input, &made, &err);
    check_result(arena, code, made, &err);
    if (code < 0) {
        return;
    }
    struct td_json *result = NULL;
    code = td_patch_strategic(arena, type, document, made, &result, &err);
    check_result(arena, code, result, &err);
}

static void run_all(struct td_arena *arena, const struct td_json *document,
                    const struct td_json *patch)
{
    const struct td_schema_type *type = td_schema_find(TD_STR("v1"), TD_STR("Pod"));
    struct td_error err = TD_ERROR_INIT;
    struct td_json *result = NULL;
    int code = td_patch_json(arena, document, patch, &result, &err);
    check_result(arena, code, result, &err);
    result = NULL;
    code = td_patch_merge(arena, document, patch, &result, &err);
    check_result(arena, code, result, &err);
    result = NULL;
    code = td_patch_strategic(arena, type, document, patch, &result, &err);
    check_result(arena, code, result, &err);
    run_three_way(arena, type, document, patch, true);
    run_three_way(arena, type, document, patch, false);
    struct td_json_problems problems = {.arena = arena};
    td_schema_find_unknown(type, document, &problems);
    td_assert(problems.count <= TD_STRICT_PROBLEMS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_str text = {.ptr = (const char *)data, .len = size};
    size_t newline = td_str_find(text, '\n', 0);
    size_t nul = td_str_find(text, '\0', 0);
    size_t end = newline < nul ? newline : nul;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *document = NULL;
    struct td_json *patch = NULL;
    if (td_json_parse(&arena, td_str_slice(text, 0, end), NULL, &document, NULL) < 0 ||
        td_json_parse(&arena, td_str_slice(text, end + 1, size), NULL, &patch, NULL) < 0) {
        return 0;
    }
    td_str document_before = written(&arena, document);
    td_str patch_before = written(&arena, patch);
    run_all(&arena, document, patch);
    td_assert(td_str_equal(written(&arena, document), document_before));
    td_assert(td_str_equal(written(&arena, patch), patch_before));
    return 0;
}
