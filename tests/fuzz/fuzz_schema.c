/*
 * A schema and an object, both from the input, divided by the first newline: whatever they are,
 * shaping and checking end without a crash, and an object that was shaped once stays as it is.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "kube/schema/schema_check.h"

#define FUZZ_ARENA_BYTES_MAX ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_auto_arena arena;
    td_arena_init(&arena, FUZZ_ARENA_BYTES_MAX);
    td_str text = {.ptr = (const char *)data, .len = size};
    size_t line = td_str_find(text, '\n', 0);
    struct td_json *schema = NULL;
    struct td_json *object = NULL;
    struct td_json *shaped = NULL;
    struct td_json *again = NULL;
    if (td_json_parse(&arena, td_str_slice(text, 0, line), NULL, &schema, NULL) != TD_OK ||
        td_json_parse(&arena, td_str_slice(text, line + 1, size), NULL, &object, NULL) != TD_OK) {
        return 0;
    }
    struct td_json *warnings = td_json_new_array(&arena);
    td_schema_warn(&arena, TD_STR("v1"), schema, warnings);
    if (td_schema_shape(&arena, schema, object, &shaped, NULL) != TD_OK) {
        return 0;
    }
    struct td_field_errors errors = {.arena = &arena};
    td_schema_check(schema, shaped, &errors);
    if (td_schema_shape(&arena, schema, shaped, &again, NULL) == TD_OK &&
        !td_json_equal(shaped, again)) {
        abort();
    }
    return 0;
}
