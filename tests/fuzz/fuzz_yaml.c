/* YAML from any bytes: what parses can be written, and is read back as the same trees; a value is
 * set in the text, or that is refused with a line. */
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"
#include "base/yaml/yaml_edit.h"

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

/* The last member of a document and a new one inside it. */
static void check_edits(struct td_arena *arena, td_str text, const struct td_json *tree,
                        size_t document)
{
    const struct td_json *last = NULL;
    for (const struct td_json *member =
             td_json_is(tree, TD_JSON_TYPE_OBJECT) ? td_json_first_member(tree) : NULL;
         member; member = member->next) {
        last = member->key.len > 0 ? member : last;
    }
    const struct td_yaml_step steps[] = {{.key = last ? last->key : TD_STR("a")},
                                         {.key = TD_STR("requests")},
                                         {.key = TD_STR("cpu")}};
    for (size_t count = 1; count <= TD_COUNT(steps); count++) {
        const struct td_yaml_place place = {
            .document = document, .steps = steps, .step_count = count};
        struct td_error err = TD_ERROR_INIT;
        td_str edited;
        if (td_yaml_edit(arena, text, &place, TD_STR("430m"), &edited, &err) != TD_OK) {
            td_assert(td_str_starts_with(td_str_from(err.message), TD_STR("line ")));
        }
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
    if (documents.count > 0) { /* the last one, behind all others */
        check_edits(&arena, text, documents.items[documents.count - 1], documents.count - 1);
    }
    return 0;
}
