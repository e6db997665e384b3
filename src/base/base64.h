/*
 * Base64 (RFC 4648): the standard alphabet with padding, as Secrets, kubeconfigs and YAML use it,
 * and the URL alphabet without, as tokens do. Decoded bytes are in the arena and may hold anything.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

enum td_base64 {
    TD_BASE64_STANDARD, /* + and /, padded */
    TD_BASE64_URL,      /* - and _, not padded */
};

void td_base64_write(td_str bytes, enum td_base64 alphabet, struct td_buf *out);

/* False when malformed. The standard form may be broken into lines. */
bool td_base64_read(struct td_arena *arena, td_str text, enum td_base64 alphabet, td_str *ret);
