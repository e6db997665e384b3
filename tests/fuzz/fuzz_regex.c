/* A pattern, and behind the first line a text: what compiles was checked before it, matching never
 * takes more steps than it may, and neither takes longer than a budget. */
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "budget.h"
#include "kube/schema/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct budget budget = budget_begin();
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str input = {.ptr = (const char *)data, .len = size};
    size_t end = td_str_find(input, '\n', 0);
    td_str pattern = td_str_slice(input, 0, end);
    td_str text = end < size ? td_str_slice(input, end + 1, size) : TD_STR_EMPTY;
    struct td_error err = TD_ERROR_INIT;
    struct td_error again = TD_ERROR_INIT;
    struct td_regex *regex;
    int code = td_regex_compile(&arena, pattern, &regex, &err);
    td_assert(td_regex_check(pattern, &again) == code);
    td_assert(code == TD_OK || err.message[0] != '\0');
    if (code == TD_OK && td_str_is_utf8(text)) {
        int64_t steps = TD_SCHEMA_STEPS_MAX;
        bool matches = false;
        int result = td_regex_match(regex, text, &steps, &matches);
        td_assert(result == TD_OK || result == TD_LIMIT);
        td_assert(steps <= TD_SCHEMA_STEPS_MAX);
    }
    budget_end(&budget);
    return 0;
}
