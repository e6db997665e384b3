/*
 * The three metrics APIs: use of pods and nodes (metrics_resource.c), custom and external metrics
 * (metrics_custom.c), all for td_metrics_read of local/api/call.h. Private to these files. What
 * they share: who is selected, and texts of times.
 */
#pragma once

#include <stdbool.h>

#include "base/os/clock.h"
#include "local/api/api_private.h"
#include "local/engine/measures.h"

struct td_selector;
struct td_stored;

#define TD_METRICS_WINDOW (15 * TD_SECOND) /* of values without samples */

void td_metrics_resource(struct td_api_call *call);
void td_metrics_custom(struct td_api_call *call);
void td_metrics_external(struct td_api_call *call);

/* The engine whose samples are told; NULL: no engine. */
const struct td_engine *td_metrics_engine(const struct td_api_call *call);

td_time td_metrics_now(const struct td_api_call *call);
td_str td_metrics_time(struct td_arena *arena, td_time time); /* RFC 3339, whole seconds */

/* The label selector of the query; false when it was refused. */
bool td_metrics_selector(struct td_api_call *call, struct td_selector *ret);
/* By the labels of a stored object, parsed into `scratch`. */
bool td_metrics_selected(struct td_arena *scratch, const struct td_selector *selector,
                         const struct td_stored *stored);
