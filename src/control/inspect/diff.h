/* Two texts as a unified diff, three lines of context around each change. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* Nothing when they are equal. Names are "a/" and "b/" before `name`, as patch -p1 takes them. The
 * owner of the buffer checks its appends. */
void td_diff_write(td_str name, td_str before, td_str after, struct td_buf *out);
