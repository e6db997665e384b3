/*
 * Texts on the heap, for what outlives a turn: a copy followed by a NUL that is not counted. The
 * owner frees it.
 */
#pragma once

#include "base/str.h"

td_str td_text_copy(td_str text);
void td_text_free(td_str text);
