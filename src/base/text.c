#include "base/text.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

td_str td_text_copy(td_str text)
{
    char *copy = td_alloc(text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return (td_str){.ptr = copy, .len = text.len};
}

void td_text_free(td_str text)
{
    td_free((void *)(uintptr_t)text.ptr);
}
