#include "base/text.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

td_str td_text_copy(td_str text)
{
    char *at = td_alloc(text.len + 1);
    td_str copy = td_text_place(&at, text);
    *at = '\0';
    return copy;
}

void td_text_free(td_str text)
{
    td_free((void *)(uintptr_t)text.ptr);
}

void td_text_set(td_str *owned, td_str text)
{
    if (owned->ptr && td_str_equal(*owned, text)) {
        return;
    }
    td_str copy = td_text_copy(text);
    td_text_free(*owned);
    *owned = copy;
}

td_str td_text_int64(char buffer[TD_INT64_DIGITS_MAX], int64_t value)
{
    size_t at = TD_INT64_DIGITS_MAX;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        buffer[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        buffer[--at] = '-';
    }
    return (td_str){.ptr = buffer + at, .len = TD_INT64_DIGITS_MAX - at};
}

td_str td_text_behind(void *end, td_str text)
{
    char *at = end;
    return td_text_place(&at, text);
}
