/* Numbers for reading: few digits, Kubernetes' units. */
#pragma once

#include "base/buf.h"

/* "430m", "2.1", "12.5", "140" */
void td_screen_cpu(struct td_buf *buf, double milli);
/* "180Mi", "1.1Gi", "1.4Ti" */
void td_screen_memory(struct td_buf *buf, double bytes);
/* "0%", "<1%", "12%" */
void td_screen_share(struct td_buf *buf, double share);
/* "45ms", "2.1s", "12m"; "<1ms" */
void td_screen_span(struct td_buf *buf, double seconds);
