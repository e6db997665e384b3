/* For tests of validation: what is among the errors. */
#pragma once

#include <string.h>

#include "kube/fielderror.h"

/* Is there an error of this field whose text contains `shown`? */
static inline bool has_line(const struct td_field_errors *errors, const char *field,
                            const char *shown)
{
    for (size_t i = 0; i < errors->count; i++) {
        td_auto_buf text;
        td_buf_init(&text, 1 << 16);
        td_field_error_write(&errors->items[i], &text);
        if (td_str_equal(errors->items[i].field, td_str_from(field)) && strstr(text.ptr, shown)) {
            return true;
        }
    }
    return false;
}
