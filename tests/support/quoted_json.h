/* JSON for tests, written with single quotes where it has double ones; what does not parse fails
 * the test. The tree and its texts are in the arena. */
#pragma once

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/error.h"
#include "base/json/json.h"

/* The text alone, NUL-terminated. */
static inline td_str quoted_text(struct td_arena *arena, const char *text)
{
    size_t len = strlen(text);
    char *bytes = td_arena_alloc(arena, len + 1);
    for (size_t i = 0; i <= len; i++) {
        bytes[i] = text[i] == '\'' ? '"' : text[i];
    }
    return (td_str){.ptr = bytes, .len = len};
}

static inline struct td_json *quoted_json(struct td_arena *arena, const char *text)
{
    struct td_json *tree = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_json_parse(arena, quoted_text(arena, text), NULL, &tree, &err) < 0) {
        fail_msg("%s in %s", err.message, text);
    }
    return tree;
}
