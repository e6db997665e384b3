/* Amounts and shares in the sentences of estimators. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

void td_adaptive_write_milli(struct td_buf *out, int64_t milli);
/* "97" or "9.9". */
void td_adaptive_write_percent(struct td_buf *out, int64_t permille);
