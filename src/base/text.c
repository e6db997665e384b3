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

td_str td_text_place(char **at, td_str text)
{
    td_str copy = {.ptr = *at, .len = text.len};
    if (text.len > 0) {
        memcpy(*at, text.ptr, text.len);
    }
    *at += text.len;
    return copy;
}

td_str td_text_behind(void *end, td_str text)
{
    char *at = end;
    return td_text_place(&at, text);
}
