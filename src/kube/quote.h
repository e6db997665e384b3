/*
 * Text in quotes as Go's %q prints it: how upstream shows a string in its messages, which clients
 * see. Not JSON: a control character is \x01 or \a, a byte that is no UTF-8 is \xff, and
 * what has no visible form is \u00a0. Characters that Unicode has not assigned are shown as they
 * are, where Go escapes those its tables do not know yet.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* Appends; check out at the end. */
void td_quote_write(td_str text, struct td_buf *out);
